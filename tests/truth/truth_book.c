// SPDX-License-Identifier: Apache-2.0
//
// truth: what a GPU answered, in memory and as files, one for each family.
#define _POSIX_C_SOURCE 200809L

#include "truth_book.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 160, STREAMS_MAX = 100000, ROWS_MAX = 100000 };

static size_t raw_bytes(const truth_stream_t* stream) {
  return (size_t)stream->layout.raw * stream->outs * stream->width;
}

static size_t digest_count(const truth_stream_t* stream) {
  return stream->layout.fine + stream->layout.coarse;
}

// ---- Digests ----

static uint64_t rotate(uint64_t x, unsigned by) {
  return x << by | x >> (64 - by);
}

static uint64_t finish(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Four sums side by side, so that a block costs less than what it checks.
uint64_t truth_digest(const uint8_t* bytes, size_t size) {
  uint64_t sum[4] = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + 32 <= size; at += 32) {
    uint64_t word[4];
    memcpy(word, bytes + at, 32);
    for (uint32_t i = 0; i < 4; i++) {
      sum[i] = rotate((sum[i] ^ word[i]) * 0x9e3779b97f4a7c15u, 29);
    }
  }
  uint64_t rest = size;
  for (; at < size; at++) rest = rest * 0x100000001b3u ^ bytes[at];
  uint64_t all = finish(rest);
  for (uint32_t i = 0; i < 4; i++) all = finish(all ^ sum[i]);
  return all;
}

// ---- In memory ----

static void* grown(void* old, uint32_t count, size_t size) {
  if ((count & (count - 1)) != 0) return old;  // space is a power of two
  return realloc(old, (count ? (size_t)count * 2 : 1) * size);
}

static truth_stream_t* push_stream(truth_book_t* book) {
  truth_stream_t* more =
      grown(book->streams, book->stream_count, sizeof(*more));
  if (more == NULL) return NULL;
  book->streams = more;
  memset(&more[book->stream_count], 0, sizeof(*more));
  return &more[book->stream_count++];
}

static truth_row_t* push_row(truth_book_t* book, const char* name,
                             const char* family, uint32_t stream) {
  truth_row_t* more = grown(book->rows, book->row_count, sizeof(*more));
  if (more == NULL) return NULL;
  book->rows = more;
  truth_row_t* row = &more[book->row_count++];
  (void)snprintf(row->name, sizeof(row->name), "%s", name);
  (void)snprintf(row->family, sizeof(row->family), "%s", family);
  row->stream = stream;
  return row;
}

static bool make_space(truth_stream_t* stream) {
  stream->raw = malloc(raw_bytes(stream));
  stream->digests = malloc((digest_count(stream) + 1) * sizeof(uint64_t));
  return stream->raw != NULL && stream->digests != NULL;
}

static void release(truth_stream_t* stream) {
  free(stream->raw);
  free(stream->digests);
}

static bool same_shape(const truth_stream_t* stream,
                       const truth_entry_t* entry) {
  return stream->width == truth_kind_bytes(entry->result) &&
         stream->outs == entry->outs &&
         memcmp(&stream->layout, &entry->layout, sizeof(entry->layout)) == 0;
}

static bool same(const truth_stream_t* a, const truth_stream_t* b) {
  return a->check == b->check && a->width == b->width && a->outs == b->outs &&
         memcmp(&a->layout, &b->layout, sizeof(a->layout)) == 0 &&
         memcmp(a->raw, b->raw, raw_bytes(a)) == 0 &&
         memcmp(a->digests, b->digests, digest_count(a) * 8) == 0;
}

// A stream that only this family uses: a file stands for itself.
static uint32_t share(const truth_book_t* book, const char* family) {
  const uint32_t last = book->stream_count - 1;
  for (uint32_t i = 0; i < book->row_count; i++) {
    const truth_row_t* row = &book->rows[i];
    if (strcmp(row->family, family) == 0 &&
        same(&book->streams[row->stream], &book->streams[last])) {
      return row->stream;
    }
  }
  return last;
}

bool truth_book_add(truth_book_t* book, const truth_entry_t* entry,
                    const uint8_t* answers) {
  truth_stream_t* stream = push_stream(book);
  if (stream == NULL) return false;
  stream->width = truth_kind_bytes(entry->result);
  stream->outs = entry->outs;
  stream->layout = entry->layout;
  if (!make_space(stream)) return false;
  const size_t each = (size_t)stream->width * stream->outs;
  memcpy(stream->raw, answers, raw_bytes(stream));
  for (uint32_t b = 1; b < truth_layout_blocks(&entry->layout); b++) {
    uint32_t first, count;
    truth_layout_block(&entry->layout, b, &first, &count);
    stream->digests[b - 1] = truth_digest(answers + first * each, count * each);
  }
  stream->check =
      truth_digest(stream->raw, raw_bytes(stream)) ^
      truth_digest((const uint8_t*)stream->digests, digest_count(stream) * 8);
  const uint32_t index = share(book, entry->family);
  if (index + 1 != book->stream_count) {
    release(&book->streams[--book->stream_count]);
  }
  return push_row(book, entry->name, entry->family, index) != NULL;
}

static int by_name(const void* a, const void* b) {
  return strcmp(((const truth_row_t*)a)->name, ((const truth_row_t*)b)->name);
}

const truth_stream_t* truth_book_find(const truth_book_t* book,
                                      const truth_entry_t* entry) {
  truth_row_t key;
  (void)snprintf(key.name, sizeof(key.name), "%s", entry->name);
  const truth_row_t* row =
      book->row_count == 0
          ? NULL
          : bsearch(&key, book->rows, book->row_count, sizeof(key), by_name);
  if (row == NULL) return NULL;
  const truth_stream_t* stream = &book->streams[row->stream];
  return same_shape(stream, entry) ? stream : NULL;
}

void truth_book_free(truth_book_t* book) {
  for (uint32_t i = 0; i < book->stream_count; i++) {
    release(&book->streams[i]);
  }
  free(book->streams);
  free(book->rows);
  memset(book, 0, sizeof(*book));
}

// ---- Files ----

static void write_streams(FILE* file, const truth_book_t* book,
                          const uint32_t* numbers) {
  for (uint32_t i = 0; i < book->stream_count; i++) {
    const truth_stream_t* s = &book->streams[i];
    if (numbers[i] == UINT32_MAX) continue;
    (void)fwrite(s->raw, 1, raw_bytes(s), file);
    (void)fwrite(s->digests, 8, digest_count(s), file);
  }
}

static bool write_family(const truth_book_t* book, const char* path,
                         const char* family, uint32_t* numbers) {
  uint32_t streams = 0, rows = 0;
  FILE* file = fopen(path, "wb");
  if (file == NULL) return false;
  memset(numbers, 0xff, (book->stream_count + 1) * sizeof(*numbers));
  // Streams are in the order of their first row, and so are their numbers.
  for (uint32_t i = 0; i < book->row_count; i++) {
    const truth_row_t* row = &book->rows[i];
    if (strcmp(row->family, family) != 0) continue;
    rows++;
    if (numbers[row->stream] == UINT32_MAX) numbers[row->stream] = streams++;
  }
  (void)fprintf(file,
                "kiln recorded truth 1\ngenerator %u\ndevice %s\ndriver %s\n"
                "date %s\nfamily %s\nstreams %u\n",
                book->generator, book->device, book->driver, book->date, family,
                streams);
  for (uint32_t i = 0; i < book->stream_count; i++) {
    const truth_stream_t* s = &book->streams[i];
    if (numbers[i] == UINT32_MAX) continue;
    (void)fprintf(file, "%u %u %u %u %u %u\n", s->width, s->outs, s->layout.raw,
                  s->layout.fine, s->layout.coarse, s->layout.each);
  }
  (void)fprintf(file, "forms %u\n", rows);
  for (uint32_t i = 0; i < book->row_count; i++) {
    const truth_row_t* row = &book->rows[i];
    if (strcmp(row->family, family) != 0) continue;
    (void)fprintf(file, "%u %s\n", numbers[row->stream], row->name);
  }
  (void)fprintf(file, "end\n");
  write_streams(file, book, numbers);
  return fclose(file) == 0;
}

bool truth_book_write(const truth_book_t* book, const char* folder) {
  uint32_t* numbers = malloc((book->stream_count + 1) * sizeof(*numbers));
  bool done = numbers != NULL;
  for (uint32_t i = 0; i < book->row_count && done; i++) {
    const char* family = book->rows[i].family;
    bool seen = false;
    for (uint32_t k = 0; k < i && !seen; k++) {
      seen = strcmp(book->rows[k].family, family) == 0;
    }
    if (seen) continue;
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/%s.truth", folder, family);
    done = write_family(book, path, family, numbers);
    if (!done) printf("%s: cannot be written\n", path);
  }
  free(numbers);
  return done;
}

// The rest of a line that begins with `key` and a blank.
static bool read_line(FILE* file, const char* key, char* out, size_t capacity) {
  char line[LINE_BYTES];
  const size_t size = strlen(key);
  if (!fgets(line, sizeof(line), file)) return false;
  line[strcspn(line, "\n")] = '\0';
  if (strncmp(line, key, size) != 0) return false;
  return (size_t)snprintf(out, capacity, "%s", line + size) < capacity;
}

static bool read_number(FILE* file, const char* key, uint32_t most,
                        uint32_t* out) {
  char text[32];
  if (!read_line(file, key, text, sizeof(text))) return false;
  const unsigned long value = strtoul(text, NULL, 10);
  *out = (uint32_t)value;
  return value <= most;
}

static bool read_shape(FILE* file, truth_stream_t* stream) {
  char line[LINE_BYTES];
  truth_layout_t* l = &stream->layout;
  if (!fgets(line, sizeof(line), file) ||
      sscanf(line, "%u %u %u %u %u %u", &stream->width, &stream->outs, &l->raw,
             &l->fine, &l->coarse, &l->each) != 6) {
    return false;
  }
  return stream->width <= 8 && stream->outs <= 8 && l->raw <= 65536 &&
         l->fine <= 4096 && l->coarse <= 4096 && make_space(stream);
}

static bool read_row(FILE* file, truth_book_t* book, const char* family,
                     uint32_t before, uint32_t streams) {
  char line[LINE_BYTES];
  if (!fgets(line, sizeof(line), file)) return false;
  line[strcspn(line, "\n")] = '\0';
  char* name = strchr(line, ' ');
  const unsigned long stream = strtoul(line, NULL, 10);
  if (name == NULL || stream >= streams) return false;
  return push_row(book, name + 1, family, before + (uint32_t)stream) != NULL;
}

static bool read_open_file(truth_book_t* book, FILE* file) {
  char text[LINE_BYTES], family[16];
  uint32_t streams, rows;
  const uint32_t before = book->stream_count;
  if (!read_line(file, "kiln recorded truth 1", text, sizeof(text)) ||
      !read_number(file, "generator ", 1000, &book->generator) ||
      !read_line(file, "device ", book->device, sizeof(book->device)) ||
      !read_line(file, "driver ", book->driver, sizeof(book->driver)) ||
      !read_line(file, "date ", book->date, sizeof(book->date)) ||
      !read_line(file, "family ", family, sizeof(family)) ||
      !read_number(file, "streams ", STREAMS_MAX, &streams)) {
    return false;
  }
  for (uint32_t i = 0; i < streams; i++) {
    truth_stream_t* stream = push_stream(book);
    if (stream == NULL || !read_shape(file, stream)) return false;
  }
  if (!read_number(file, "forms ", ROWS_MAX, &rows)) return false;
  for (uint32_t i = 0; i < rows; i++) {
    if (!read_row(file, book, family, before, streams)) return false;
  }
  if (!read_line(file, "end", text, sizeof(text))) return false;
  for (uint32_t i = 0; i < streams; i++) {
    truth_stream_t* s = &book->streams[before + i];
    if (fread(s->raw, 1, raw_bytes(s), file) != raw_bytes(s) ||
        fread(s->digests, 8, digest_count(s), file) != digest_count(s)) {
      return false;
    }
  }
  return fgetc(file) == EOF && book->generator == TRUTH_GENERATOR;
}

bool truth_book_read(truth_book_t* book, const char* folder) {
  DIR* dir = opendir(folder);
  if (dir == NULL) return true;  // nothing is recorded yet
  bool done = true;
  for (struct dirent* e = readdir(dir); e != NULL && done; e = readdir(dir)) {
    const char* dot = strrchr(e->d_name, '.');
    if (dot == NULL || strcmp(dot, ".truth") != 0) continue;
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
    FILE* file = fopen(path, "rb");
    done = file != NULL && read_open_file(book, file);
    if (!done) {
      printf("%s: is not what generator %d recorded\n", path, TRUTH_GENERATOR);
    }
    if (file != NULL) (void)fclose(file);
  }
  (void)closedir(dir);
  if (book->row_count > 0) {
    qsort(book->rows, book->row_count, sizeof(book->rows[0]), by_name);
  }
  return done;
}
