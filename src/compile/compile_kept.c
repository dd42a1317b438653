// SPDX-License-Identifier: Apache-2.0
//
// compile: a result and its files as bytes that a cache keeps.
//
// Little-endian; a text is its length, its bytes and a NUL. Inconsistent data
// is not a result: the cache then makes a new one.
#include <string.h>

#include "compile/compile_files.h"

static const char kMagic[4] = {'K', 'C', 'R', '1'};

static void kept_put_u32(kilni_base_str_t* out, uint32_t value) {
  for (int i = 0; i < 4; i++) {
    kilni_base_str_add_char(out, (char)(value >> (8 * i)));
  }
}

static void kept_put_u64(kilni_base_str_t* out, uint64_t value) {
  kept_put_u32(out, (uint32_t)value);
  kept_put_u32(out, (uint32_t)(value >> 32));
}

static void kept_put_text(kilni_base_str_t* out, kiln_string_view_t text) {
  kept_put_u32(out, (uint32_t)text.size);
  kilni_base_str_add(out, text);
  kilni_base_str_add_char(out, 0);
}

void kilni_compile_kept_write(kilni_base_str_t* out,
                              const kilni_compile_kept_t* kept) {
  kilni_base_str_add(out, kilni_base_sv_make(kMagic, sizeof(kMagic)));
  kept_put_u32(out, kept->format);
  kept_put_u32(out, kept->line);
  kept_put_text(out, kept->log);
  kept_put_text(out, kept->note);
  kept_put_text(out, kept->arch);
  kept_put_u32(out, kept->name_count);
  kept_put_u32(out, (uint32_t)kept->files->count);
  for (uint32_t i = 0; i < kept->name_count * 2; i++) {
    kept_put_text(out, kilni_base_sv(kept->names[i]));
  }
  for (size_t i = 0; i < kept->files->count; i++) {
    const kilni_compile_file_dep_t* dep = &kept->files->items[i];
    kept_put_text(out, kilni_base_sv(dep->path));
    kept_put_u32(out, dep->state);
    kept_put_u64(out, dep->size);
    kept_put_u64(out, dep->inode);
    kept_put_u64(out, (uint64_t)dep->modified_ns);
    kilni_base_str_add(out,
                       kilni_base_sv_make(dep->digest, sizeof(dep->digest)));
  }
}

static const uint8_t* kept_take(kilni_compile_kept_reader_t* reader,
                                size_t size) {
  if (reader->bad || (size_t)(reader->end - reader->at) < size) {
    reader->bad = true;
    return NULL;
  }
  const uint8_t* at = reader->at;
  reader->at += size;
  return at;
}

static uint32_t take_u32(kilni_compile_kept_reader_t* reader) {
  const uint8_t* at = kept_take(reader, 4);
  if (at == NULL) return 0;
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
         (uint32_t)at[3] << 24;
}

static uint64_t take_u64(kilni_compile_kept_reader_t* reader) {
  uint64_t low = take_u32(reader);
  return low | (uint64_t)take_u32(reader) << 32;
}

static kiln_string_view_t kept_take_text(kilni_compile_kept_reader_t* reader) {
  uint32_t size = take_u32(reader);
  const uint8_t* at = kept_take(reader, (size_t)size + 1);
  if (at == NULL || at[size] != 0 || memchr(at, 0, size) != NULL) {
    reader->bad = true;
    return kilni_base_sv_make("", 0);
  }
  return kilni_base_sv_make((const char*)at, size);
}

bool kilni_compile_kept_open(kilni_compile_kept_reader_t* reader,
                             kiln_bytes_view_t bytes) {
  memset(reader, 0, sizeof(*reader));
  reader->at = bytes.data;
  reader->end = bytes.data + bytes.size;
  const uint8_t* magic = kept_take(reader, sizeof(kMagic));
  if (magic == NULL || memcmp(magic, kMagic, sizeof(kMagic)) != 0) return false;
  reader->format = take_u32(reader);
  reader->line = take_u32(reader);
  reader->log = kept_take_text(reader);
  reader->note = kept_take_text(reader);
  reader->arch = kept_take_text(reader);
  reader->name_count = take_u32(reader);
  reader->file_count = take_u32(reader);
  // Each has a few bytes at least: no count is believed that cannot be.
  size_t rest = (size_t)(reader->end - reader->at);
  if (reader->name_count > rest / 10 || reader->file_count > rest / 32 ||
      reader->file_count > KILNI_FILES_MAX) {
    reader->bad = true;
  }
  return !reader->bad;
}

bool kilni_compile_kept_name(kilni_compile_kept_reader_t* reader,
                             kiln_code_name_t* out_name) {
  out_name->expression = kept_take_text(reader).data;
  out_name->lowered = kept_take_text(reader).data;
  return !reader->bad;
}

bool kilni_compile_kept_file(kilni_compile_kept_reader_t* reader,
                             kilni_compile_file_dep_t* out_dep) {
  memset(out_dep, 0, sizeof(*out_dep));
  union {
    const char* borrowed;
    char* path;
  } text = {kept_take_text(reader).data};
  out_dep->path = text.path;
  out_dep->state = take_u32(reader);
  out_dep->size = take_u64(reader);
  out_dep->inode = take_u64(reader);
  out_dep->modified_ns = (int64_t)take_u64(reader);
  const uint8_t* digest = kept_take(reader, sizeof(out_dep->digest));
  if (digest != NULL) {
    memcpy(out_dep->digest, digest, sizeof(out_dep->digest));
    if (out_dep->digest[sizeof(out_dep->digest) - 1] != 0) reader->bad = true;
  }
  if (out_dep->state > KILNI_FILE_FRESH) reader->bad = true;
  return !reader->bad;
}
