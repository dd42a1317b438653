// SPDX-License-Identifier: Apache-2.0
//
// live: the library's plans at full size, beside plain C.
//
//   live_library_plans               2^26 elements on cuda:0; 77 without a GPU
//   live_library_plans soft 14       2^14 on the software device
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"
#include "plain_bytes.h"

static int failures;

static bool ok(kiln_status_t status, const char* what, int line) {
  if (kiln_status_is_ok(status)) return true;
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  printf("live_library_plans.c:%d: %s: %s\n", line, what, text);
  kiln_status_free(status);
  failures++;
  return false;
}

#define OK(call) ok((call), #call, __LINE__)

// The device, and inputs that all stages share. one-thread
typedef struct live_t {
  kiln_dispatcher_t* dispatcher;
  uint32_t count;
  uint32_t* numbers;
  uint8_t* bytes;
} live_t;

typedef struct argument_t {
  const void* data;  // NULL: nothing yet
  void* out;         // NULL: nobody asks
  uint64_t bytes;
} argument_t;

static void* space(uint64_t bytes) {
  void* data = calloc(1, (size_t)bytes + 16);
  if (data == NULL) exit(1);
  return data;
}

// Two runs of one plan: what the first leaves in its memory is nothing to the
// second. Scalars stand behind the buffers.
static void run_with(live_t* live, const char* name,
                     const kiln_library_options_t* options,
                     argument_t* arguments, uint32_t count,
                     const kiln_binding_t* scalars, uint32_t scalar_count) {
  kiln_library_plan_t* plan = NULL;
  kiln_resident_t residents[8];
  kiln_binding_t bindings[16];
  if (!OK(kiln_library_plan_create(live->dispatcher, name, options, &plan))) {
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    OK(kiln_resident_allocate(live->dispatcher, arguments[i].bytes,
                              &residents[i]));
    if (arguments[i].data != NULL) {
      OK(kiln_resident_upload(live->dispatcher, NULL, residents[i], 0,
                              arguments[i].bytes, arguments[i].data));
    }
    bindings[i] = kiln_bind_resident(residents[i]);
  }
  for (uint32_t i = 0; i < scalar_count; i++) bindings[count + i] = scalars[i];
  OK(kiln_library_plan_run(plan, NULL, bindings, count + scalar_count));
  OK(kiln_library_plan_run(plan, NULL, bindings, count + scalar_count));
  OK(kiln_dispatcher_synchronize(live->dispatcher));
  for (uint32_t i = 0; i < count; i++) {
    if (arguments[i].out != NULL) {
      OK(kiln_resident_download(live->dispatcher, NULL, residents[i], 0,
                                arguments[i].bytes, arguments[i].out));
    }
    OK(kiln_resident_free(live->dispatcher, residents[i]));
  }
  kiln_library_plan_release(plan);
}

static void run(live_t* live, const char* name,
                const kiln_library_options_t* options, argument_t* arguments,
                uint32_t count) {
  run_with(live, name, options, arguments, count, NULL, 0);
}

static void judge(const char* what, const void* have, const void* want,
                  uint64_t bytes) {
  const uint8_t* a = have;
  const uint8_t* b = want;
  uint64_t at = 0;
  while (at < bytes && a[at] == b[at]) at++;
  printf("%s: %s\n", what, at == bytes ? "ok" : "not ok");
  if (at == bytes) return;
  printf("  differs from byte %llu of %llu on\n", (unsigned long long)at,
         (unsigned long long)bytes);
  failures++;
}

static kiln_library_options_t options_of(const live_t* live, uint32_t type) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = type;
  options.count = live->count;
  return options;
}

static void scan_words(live_t* live) {
  uint64_t bytes = (uint64_t)live->count * 4;
  uint32_t* want = space(bytes);
  uint32_t* have = space(bytes);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < live->count; i++) {
    want[i] = sum;
    sum += live->numbers[i];
  }
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_U32);
  options.exclusive = KILN_SWITCH_ON;
  argument_t arguments[] = {{live->numbers, NULL, bytes}, {NULL, have, bytes}};
  run(live, "scan", &options, arguments, 2);
  judge("scan of u32", have, want, bytes);
  free(want);
  free(have);
}

// A head at one in `one_in`.
static void scan_segments(live_t* live, uint32_t one_in) {
  uint64_t bytes = (uint64_t)live->count * 4;
  uint32_t* want = space(bytes);
  uint32_t* have = space(bytes);
  uint8_t* heads = space(live->count);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < live->count; i++) {
    heads[i] = live->numbers[i] % one_in == 0;
    sum = heads[i] != 0 ? live->numbers[i] : sum + live->numbers[i];
    want[i] = sum;
  }
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_U32);
  argument_t arguments[] = {{live->numbers, NULL, bytes},
                            {heads, NULL, live->count},
                            {NULL, have, bytes}};
  run(live, "scan_segments", &options, arguments, 3);
  printf("a head in %u: ", (unsigned)one_in);
  judge("scan of segments", have, want, bytes);
  free(want);
  free(have);
  free(heads);
}

// Whole numbers, whose sums are exact; of 8 bytes.
static void scan_doubles(live_t* live) {
  uint32_t count = live->count / 2;
  uint64_t bytes = (uint64_t)count * 8;
  double* x = space(bytes);
  double* want = space(bytes);
  double* have = space(bytes);
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    x[i] = (double)(live->numbers[i] & 0xffff);
    sum += x[i];
    want[i] = sum;
  }
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_F64);
  argument_t arguments[] = {{x, NULL, bytes}, {NULL, have, bytes}};
  run(live, "scan", &options, arguments, 2);
  judge("scan of f64", have, want, bytes);
  free(x);
  free(want);
  free(have);
}

// Floats that are rounded: the same bits again.
static void scan_floats(live_t* live) {
  uint64_t bytes = (uint64_t)live->count * 4;
  float* x = space(bytes);
  float* first = space(bytes);
  float* again = space(bytes);
  for (uint32_t i = 0; i < live->count; i++) {
    x[i] = (float)live->numbers[i] * 0x1p-32f;
  }
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_F32);
  argument_t arguments[] = {{x, NULL, bytes}, {NULL, first, bytes}};
  run(live, "scan", &options, arguments, 2);
  arguments[1].out = again;
  for (int i = 0; i < 3; i++) {
    run(live, "scan", &options, arguments, 2);
    judge("scan of f32, again", again, first, bytes);
  }
  printf("  the last sum is %g\n", (double)first[live->count - 1]);
  free(x);
  free(first);
  free(again);
}

static void compact(live_t* live) {
  uint64_t bytes = (uint64_t)live->count * 4;
  uint32_t* want = space(bytes);
  uint32_t* have = space(bytes);
  uint32_t kept = 0, told = 0;
  for (uint32_t i = 0; i < live->count; i++) {
    if (live->bytes[i] != 0) want[kept++] = live->numbers[i];
  }
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_U32);
  argument_t arguments[] = {{live->numbers, NULL, bytes},
                            {live->bytes, NULL, live->count},
                            {NULL, have, bytes},
                            {NULL, &told, 4}};
  run(live, "compact", &options, arguments, 4);
  judge("compact: count", &told, &kept, 4);
  judge("compact", have, want, (uint64_t)kept * 4);
  free(want);
  free(have);
}

static void unique(live_t* live) {
  uint64_t bytes = (uint64_t)live->count * 4;
  uint32_t* x = space(bytes);
  uint32_t* want = space(bytes);
  uint32_t* starts = space(bytes);
  uint32_t* values = space(bytes);
  uint32_t runs = 0, told = 0;
  for (uint32_t i = 0; i < live->count; i++) {
    x[i] = i > 0 && live->bytes[i] < 3 ? x[i - 1] : live->numbers[i] & 3;
    if (i == 0 || x[i] != x[i - 1]) want[runs++] = i;
  }
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_U32);
  argument_t arguments[] = {{x, NULL, bytes},
                            {NULL, values, bytes},
                            {NULL, starts, bytes},
                            {NULL, &told, 4}};
  run(live, "unique", &options, arguments, 4);
  judge("unique: runs", &told, &runs, 4);
  judge("unique: starts", starts, want, (uint64_t)runs * 4);
  free(x);
  free(want);
  free(starts);
  free(values);
}

static void runs(live_t* live) {
  uint64_t bytes = (uint64_t)live->count * 4;
  uint32_t* x = space(bytes);
  uint32_t* want = space(bytes);
  uint32_t* lengths = space(bytes);
  uint32_t found = 0, told = 0;
  for (uint32_t i = 0; i < live->count; i++) {
    x[i] = i > 0 && live->bytes[i] < 3 ? x[i - 1] : live->numbers[i] & 3;
    if (i == 0 || x[i] != x[i - 1]) found++;
    want[found - 1]++;
  }
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_U32);
  argument_t arguments[] = {{x, NULL, bytes},
                            {NULL, NULL, bytes},
                            {NULL, lengths, bytes},
                            {NULL, &told, 4}};
  run(live, "runs", &options, arguments, 4);
  judge("runs: count", &told, &found, 4);
  judge("runs: lengths", lengths, want, (uint64_t)found * 4);
  free(x);
  free(want);
  free(lengths);
}

// Of all bytes of the numbers, but for a few at the end.
static void crc32(live_t* live, uint32_t less) {
  uint64_t bytes = (uint64_t)live->count * 4 - less;
  const uint8_t* text = (const uint8_t*)live->numbers;
  uint32_t table[256];
  for (uint32_t v = 0; v < 256; v++) {
    table[v] = v;
    for (int k = 0; k < 8; k++) {
      uint32_t low = table[v] & 1;
      table[v] = table[v] >> 1 ^ (low != 0 ? UINT32_C(0xedb88320) : 0);
    }
  }
  uint32_t want = UINT32_MAX, have = 0;
  for (uint64_t i = 0; i < bytes; i++) {
    want = want >> 8 ^ table[(want ^ text[i]) & 255];
  }
  want = ~want;
  argument_t arguments[] = {{text, NULL, bytes}, {NULL, &have, 4}};
  run(live, "crc32", NULL, arguments, 2);
  judge("crc32", &have, &want, 4);
}

static void blake3(live_t* live, uint32_t less) {
  uint64_t bytes = (uint64_t)live->count * 4 - less;
  const uint8_t* text = (const uint8_t*)live->numbers;
  uint32_t want[8], have[8] = {0};
  plain_bytes_blake3(text, (size_t)bytes, want);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = bytes;
  argument_t arguments[] = {{text, NULL, bytes}, {NULL, have, 32}};
  run(live, "blake3", &options, arguments, 2);
  judge("blake3", have, want, 32);
}

// As many bytes as there are numbers, of JSON, and of what only looks like it.
static void json_index(live_t* live, bool broken) {
  uint8_t* text = space(live->count);
  uint32_t* want = space((uint64_t)live->count * 4);
  uint32_t* have = space((uint64_t)live->count * 4);
  uint32_t told[2] = {0, 0}, found[2];
  plain_bytes_write_json(text, live->count, 1);
  for (uint32_t i = 0; broken && i < live->count; i++) {
    text[i] = (uint8_t)"\\\\\"{},: a"[live->numbers[i] % 10];
  }
  found[0] = plain_bytes_json(text, live->count, want, &found[1]);
  kiln_library_options_t options = options_of(live, 0);
  argument_t arguments[] = {{text, NULL, live->count},
                            {NULL, have, (uint64_t)live->count * 4},
                            {NULL, told, 8}};
  run(live, "json_index", &options, arguments, 3);
  judge("json_index: count", told, found, 8);
  judge("json_index", have, want, (uint64_t)found[0] * 4);
  free(text);
  free(want);
  free(have);
}

// Words in JSON of as many bytes as there are numbers.
static void aho_corasick(live_t* live) {
  static const char* const kWords[] = {"key",   "key1", "sentence", "true", "e",
                                       "\"k\"", "ey12", ",\n  {",   "12"};
  enum { WORDS = sizeof(kWords) / sizeof(kWords[0]) };
  plain_bytes_pattern_t plain[WORDS];
  kiln_string_view_t views[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) {
    plain[i].bytes = views[i].data = kWords[i];
    plain[i].size = views[i].size = strlen(kWords[i]);
  }
  kiln_library_patterns_t* patterns = NULL;
  kiln_library_patterns_tables_t t;
  if (!OK(kiln_library_patterns_create(views, WORDS, NULL, &patterns))) return;
  kiln_library_patterns_tables(patterns, &t);
  uint64_t bytes = (uint64_t)live->count * 4;
  uint8_t* text = space(live->count);
  uint32_t* want[2] = {space(bytes), space(bytes)};
  uint32_t* have[2] = {space(bytes), space(bytes)};
  plain_bytes_write_json(text, live->count, 2);
  uint32_t told = 0, found = plain_bytes_match(text, live->count, plain, WORDS,
                                               want[0], want[1], live->count);
  kiln_library_options_t options = options_of(live, 0);
  argument_t arguments[] = {{text, NULL, live->count},
                            {t.kinds, NULL, 256},
                            {t.next, NULL, t.next_count * 4},
                            {t.ends, NULL, t.end_count * 4},
                            {t.patterns, NULL, t.pattern_count * 4},
                            {NULL, have[0], bytes},
                            {NULL, have[1], bytes},
                            {NULL, &told, 4}};
  const kiln_binding_t scalars[] = {kiln_bind_u32(t.longest),
                                    kiln_bind_u32(t.quiet)};
  run_with(live, "aho_corasick", &options, arguments, 8, scalars, 2);
  judge("aho_corasick: count", &told, &found, 4);
  judge("aho_corasick: places", have[0], want[0], (uint64_t)found * 4);
  judge("aho_corasick: which", have[1], want[1], (uint64_t)found * 4);
  kiln_library_patterns_release(patterns);
  free(text);
  for (int i = 0; i < 2; i++) {
    free(want[i]);
    free(have[i]);
  }
}

// JSON in blocks of 64 KiB; some of them broken.
static void lz4(live_t* live) {
  enum { EACH = 65536 };
  uint32_t blocks = (live->count + EACH - 1) / EACH;
  size_t most = plain_bytes_lz4_most(EACH);
  uint8_t* text = space(live->count);
  uint8_t* want = space(live->count);
  uint8_t* have = space(live->count);
  uint8_t* packed = space(blocks * most);
  uint32_t* tables = space((uint64_t)(blocks + 1) * 4 * 6);
  uint32_t* starts = tables;
  uint32_t* places = starts + blocks + 1;
  uint32_t* sizes[2] = {places + blocks + 1, places + 2 * (blocks + 1)};
  uint32_t* errors[2] = {sizes[1] + blocks + 1, sizes[1] + 2 * (blocks + 1)};
  plain_bytes_write_json(text, live->count, 3);
  for (uint32_t k = 0; k < blocks; k++) {
    uint32_t from = k * EACH;
    uint32_t here = live->count - from < EACH ? live->count - from : EACH;
    size_t size = plain_bytes_lz4_pack(text + from, here, packed + starts[k]);
    if (k % 7 == 3) packed[starts[k] + size * k / blocks] ^= 0xf1;
    size_t error;
    places[k + 1] = from + here;
    starts[k + 1] = starts[k] + (uint32_t)size;
    sizes[0][k] = (uint32_t)plain_bytes_lz4_unpack(packed + starts[k], size,
                                                   want + from, here, &error);
    errors[0][k] = (uint32_t)error;
  }
  uint64_t bytes = (uint64_t)blocks * 4;
  argument_t arguments[] = {
      {packed, NULL, starts[blocks]}, {starts, NULL, bytes + 4},
      {places, NULL, bytes + 4},      {have, have, live->count},
      {NULL, sizes[1], bytes},        {NULL, errors[1], bytes}};
  run(live, "lz4", NULL, arguments, 6);
  judge("lz4", have, want, live->count);
  judge("lz4: sizes", sizes[1], sizes[0], bytes);
  judge("lz4: errors", errors[1], errors[0], bytes);
  free(text);
  free(want);
  free(have);
  free(packed);
  free(tables);
}

static void lines(live_t* live) {
  const uint8_t* text = (const uint8_t*)live->numbers;
  uint32_t* want = space((uint64_t)live->count * 4);
  uint32_t* have = space((uint64_t)live->count * 4);
  uint32_t found = 0, told = 0;
  for (uint32_t i = 0; i < live->count; i++) {
    if (i == 0 || text[i - 1] == '\n') want[found++] = i;
  }
  kiln_library_options_t options = options_of(live, 0);
  argument_t arguments[] = {{text, NULL, live->count},
                            {NULL, have, (uint64_t)live->count * 4},
                            {NULL, &told, 4}};
  run(live, "lines", &options, arguments, 3);
  judge("lines: count", &told, &found, 4);
  judge("lines", have, want, (uint64_t)found * 4);
  free(want);
  free(have);
}

static void fold(live_t* live) {
  uint64_t bytes = (uint64_t)live->count * 4;
  uint32_t sum = 0, least = UINT32_MAX, have = 0;
  for (uint32_t i = 0; i < live->count; i++) {
    sum += live->numbers[i];
    if (live->numbers[i] < least) least = live->numbers[i];
  }
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_U32);
  argument_t arguments[] = {{live->numbers, NULL, bytes}, {NULL, &have, 4}};
  run(live, "fold", &options, arguments, 2);
  judge("fold: sum", &have, &sum, 4);
  options.operation = KILN_LIBRARY_MIN;
  run(live, "fold", &options, arguments, 2);
  judge("fold: least", &have, &least, 4);
}

static void segments(live_t* live, uint32_t segment) {
  uint32_t count = live->count / segment;
  uint32_t* starts = space(((uint64_t)count + 1) * 4);
  uint32_t* want = space((uint64_t)count * 4);
  uint32_t* have = space((uint64_t)count * 4);
  for (uint32_t s = 0; s < count; s++) {
    starts[s] = s * segment;
    for (uint32_t i = 0; i < segment; i++) {
      want[s] += live->numbers[s * segment + i];
    }
  }
  starts[count] = count * segment;
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U32;
  options.segment = segment;
  argument_t arguments[] = {{live->numbers, NULL, (uint64_t)live->count * 4},
                            {starts, NULL, ((uint64_t)count + 1) * 4},
                            {NULL, have, (uint64_t)count * 4}};
  run(live, "segments", &options, arguments, 3);
  char what[64];
  snprintf(what, sizeof(what), "segments of %u", (unsigned)segment);
  judge(what, have, want, (uint64_t)count * 4);
  free(starts);
  free(want);
  free(have);
}

static uint32_t turned(uint32_t bits) {
  uint32_t out = 0;
  for (int i = 0; i < 32; i++) out |= (bits >> i & 1) << (31 - i);
  return out;
}

// Pairs of a key and where it stood: in order, each once, equal ones in the
// order in which they stood.
// By the entry's own order, or by an order of ours: bits from the last on.
static void sort(live_t* live, const char* name, const char* order,
                 uint32_t mask) {
  bool merges = strcmp(name, "merge_sort") == 0;
  uint32_t count = merges ? live->count : live->count / 2;
  uint64_t bytes = (uint64_t)count * 4;
  uint32_t* keys = space(bytes);
  uint32_t* places = space(bytes);
  uint32_t* sorted = space(bytes);
  uint32_t* moved = space(bytes);
  uint8_t* seen = space(count);
  for (uint32_t i = 0; i < count; i++) {
    keys[i] = live->numbers[i] & mask;
    places[i] = i;
  }
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_U32);
  options.value_type = KILN_PROGRAM_TYPE_U32;
  options.order = order;
  argument_t arguments[] = {{keys, NULL, bytes},
                            {places, NULL, bytes},
                            {NULL, sorted, bytes},
                            {NULL, moved, bytes}};
  run(live, name, &options, arguments, 4);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < count; i++) {
    bool good = moved[i] < count && seen[moved[i]]++ == 0 &&
                keys[moved[i]] == sorted[i];
    if (i > 0) {
      uint32_t last = order != NULL ? turned(sorted[i - 1]) : sorted[i - 1];
      uint32_t here = order != NULL ? turned(sorted[i]) : sorted[i];
      good = good && (last < here || (last == here && moved[i - 1] < moved[i]));
    }
    wrong += !good;
  }
  printf("%s of pairs%s, mask %x: %u wrong\n", name,
         order != NULL ? " by an order" : "", (unsigned)mask, wrong);
  failures += wrong != 0;
  uint32_t* alone = space(bytes);
  options.value_type = 0;
  argument_t of_keys[] = {{keys, NULL, bytes}, {NULL, alone, bytes}};
  run(live, name, &options, of_keys, 2);
  judge(merges ? "merge_sort of keys" : "sort of keys", alone, sorted, bytes);
  free(keys);
  free(places);
  free(sorted);
  free(moved);
  free(seen);
  free(alone);
}

// Rows of shares, beside doubles.
static void softmax(live_t* live, uint32_t width) {
  uint32_t rows = live->count / width;
  uint64_t bytes = (uint64_t)rows * width * 4;
  float* x = space(bytes);
  float* y = space(bytes);
  for (uint64_t i = 0; i < bytes / 4; i++) {
    x[i] = (float)(int32_t)live->numbers[i] * 0x1p-27f;
  }
  kiln_library_plan_t* plan = NULL;
  kiln_resident_t in, out;
  OK(kiln_resident_allocate(live->dispatcher, bytes, &in));
  OK(kiln_resident_allocate(live->dispatcher, bytes, &out));
  OK(kiln_resident_upload(live->dispatcher, NULL, in, 0, bytes, x));
  if (OK(kiln_library_plan_create(live->dispatcher, "softmax", NULL, &plan))) {
    const kiln_binding_t bindings[] = {
        kiln_bind_resident(in), kiln_bind_resident(out), kiln_bind_u32(width)};
    OK(kiln_library_plan_run(plan, NULL, bindings, 3));
    OK(kiln_resident_download(live->dispatcher, NULL, out, 0, bytes, y));
  }
  kiln_library_plan_release(plan);
  OK(kiln_resident_free(live->dispatcher, in));
  OK(kiln_resident_free(live->dispatcher, out));
  uint32_t wrong = 0;
  // One row of 64 is enough.
  for (uint32_t r = 0; r < rows; r += 64) {
    const float* row = x + (uint64_t)r * width;
    const float* have = y + (uint64_t)r * width;
    double top = (double)row[0], sum = 0;
    for (uint32_t j = 1; j < width; j++) {
      if ((double)row[j] > top) top = (double)row[j];
    }
    for (uint32_t j = 0; j < width; j++) sum += exp((double)row[j] - top);
    for (uint32_t j = 0; j < width; j++) {
      double want = exp((double)row[j] - top) / sum;
      wrong += !(fabs((double)have[j] - want) <= 1e-5 * want + 1e-37);
    }
  }
  printf("softmax of %u: %u wrong\n", (unsigned)width, (unsigned)wrong);
  failures += wrong != 0;
  free(x);
  free(y);
}

// Of all bytes of the numbers, and of one byte only; and of elements of other
// types with more bins than a subgroup has to itself.
static void histogram(live_t* live, uint32_t type, uint32_t bytes,
                      uint32_t bins, bool one) {
  uint64_t all = (uint64_t)live->count * 4, count = all / bytes;
  uint8_t* x = space(all);
  uint32_t* want = space(bins * UINT64_C(4));
  uint32_t* have = space(bins * UINT64_C(4));
  if (!one) memcpy(x, live->numbers, (size_t)all);
  for (uint64_t i = 0; i < count; i++) {
    uint32_t value = 0;
    memcpy(&value, x + i * bytes, bytes);
    if (bytes == 4) value &= 0x3fff;
    memcpy(x + i * bytes, &value, bytes);
    if (value < bins) want[value]++;
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.type = type;
  options.bins = bins;
  argument_t arguments[] = {{x, NULL, all}, {NULL, have, bins * UINT64_C(4)}};
  run(live, "histogram", &options, arguments, 2);
  char what[64];
  snprintf(what, sizeof(what), "histogram of %u bins, %u bytes each",
           (unsigned)bins, (unsigned)bytes);
  judge(what, have, want, bins * UINT64_C(4));
  free(x);
  free(want);
  free(have);
}

// Matrices of `side` rows and about as many columns: one in some thousand
// elements beside the same chain of sums in C, which it is to the bit.
static void matmul(live_t* live, uint32_t type, uint32_t side) {
  uint32_t m = side, n = side - 3, k = side / 2 + 1, wrong = 0;
  uint32_t bytes = type == KILN_PROGRAM_TYPE_F64 ? 8 : 4;
  uint8_t* a = space((uint64_t)m * k * bytes);
  uint8_t* b = space((uint64_t)k * n * bytes);
  uint8_t* c = space((uint64_t)m * n * bytes);
  const uint8_t* const ends[] = {a + (uint64_t)m * k * bytes,
                                 b + (uint64_t)k * n * bytes};
  uint32_t from = 0;
  for (int i = 0; i < 2; i++) {
    for (uint8_t* at = i == 0 ? a : b; at < ends[i]; at += bytes) {
      double value = (double)(int32_t)live->numbers[from] * 0x1p-31;
      float rounded = (float)value;
      memcpy(at, bytes == 8 ? (void*)&value : (void*)&rounded, bytes);
      from = (from + 1) % live->count;
    }
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.type = type;
  kiln_library_plan_t* plan = NULL;
  kiln_resident_t of[3];
  const uint64_t sizes[] = {(uint64_t)m * k * bytes, (uint64_t)k * n * bytes,
                            (uint64_t)m * n * bytes};
  for (int i = 0; i < 3; i++) {
    OK(kiln_resident_allocate(live->dispatcher, sizes[i], &of[i]));
  }
  OK(kiln_resident_upload(live->dispatcher, NULL, of[0], 0, sizes[0], a));
  OK(kiln_resident_upload(live->dispatcher, NULL, of[1], 0, sizes[1], b));
  if (OK(kiln_library_plan_create(live->dispatcher, "matmul", &options,
                                  &plan))) {
    const kiln_binding_t bindings[] = {
        kiln_bind_resident(of[0]), kiln_bind_resident(of[1]),
        kiln_bind_resident(of[2]), kiln_bind_u32(m),
        kiln_bind_u32(n),          kiln_bind_u32(k)};
    OK(kiln_library_plan_run(plan, NULL, bindings, 6));
    OK(kiln_resident_download(live->dispatcher, NULL, of[2], 0, sizes[2], c));
  }
  kiln_library_plan_release(plan);
  for (uint64_t e = 0; e < (uint64_t)m * n; e += 4099) {
    uint64_t i = e / n, j = e % n;
    double sum = 0;
    float less = 0;
    for (uint64_t p = 0; p < k; p++) {
      if (bytes == 8) {
        sum = fma(((double*)(void*)a)[i * k + p],
                  ((double*)(void*)b)[p * n + j], sum);
      } else {
        less = fmaf(((float*)(void*)a)[i * k + p],
                    ((float*)(void*)b)[p * n + j], less);
      }
    }
    const void* want = bytes == 8 ? (void*)&sum : (void*)&less;
    wrong += memcmp(c + e * bytes, want, bytes) != 0;
  }
  printf("matmul of %u, %u bytes each: %u wrong\n", (unsigned)side,
         (unsigned)bytes, (unsigned)wrong);
  failures += wrong != 0;
  for (int i = 0; i < 3; i++) OK(kiln_resident_free(live->dispatcher, of[i]));
  free(a);
  free(b);
  free(c);
}

// f16 or bf16 of a number of at most 8 bits times 2^-6, and what such bits are.
static uint16_t half_of(bool is_f16, int number) {
  if (number == 0) return 0;
  int place = 0, size = number < 0 ? -number : number;
  while (size >> place > 1) place++;
  int exponent = place - 6 + (is_f16 ? 15 : 127), digits = is_f16 ? 10 : 7;
  int rest = (size - (1 << place)) << digits >> place;
  return (uint16_t)((number < 0 ? 0x8000 : 0) | exponent << digits | rest);
}

static double of_half(bool is_f16, uint16_t bits) {
  int digits = is_f16 ? 10 : 7, bias = is_f16 ? 15 : 127;
  int exponent = (bits & 0x7fff) >> digits, rest = bits & ((1 << digits) - 1);
  if (exponent != 0) rest += 1 << digits;
  double size = ldexp(rest, (exponent != 0 ? exponent : 1) - bias - digits);
  return (bits & 0x8000) != 0 ? -size : size;
}

// With a budget: each sum as near as docs/library/matmul.md says.
static void matmul_half(live_t* live, bool is_f16, uint32_t m, uint32_t n,
                        uint32_t k) {
  uint64_t counts[3] = {(uint64_t)m * k, (uint64_t)k * n, (uint64_t)m * n};
  uint16_t* halves[3];
  uint32_t wrong = 0, from = 0;
  kiln_resident_t of[3];
  for (int i = 0; i < 3; i++) {
    halves[i] = space(counts[i] * 2);
    for (uint64_t e = 0; e < counts[i]; e++, from = (from + 1) % live->count) {
      halves[i][e] = half_of(is_f16, (int)(live->numbers[from] % 255) - 127);
    }
    OK(kiln_resident_allocate(live->dispatcher, counts[i] * 2, &of[i]));
    OK(kiln_resident_upload(live->dispatcher, NULL, of[i], 0, counts[i] * 2,
                            halves[i]));
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.type = is_f16 ? KILN_PROGRAM_TYPE_F16 : KILN_PROGRAM_TYPE_BF16;
  options.max_ulp = 32;
  kiln_library_plan_t* plan = NULL;
  if (OK(kiln_library_plan_create(live->dispatcher, "matmul", &options,
                                  &plan))) {
    const kiln_binding_t bindings[] = {
        kiln_bind_resident(of[0]), kiln_bind_resident(of[1]),
        kiln_bind_resident(of[2]), kiln_bind_u32(m),
        kiln_bind_u32(n),          kiln_bind_u32(k)};
    OK(kiln_library_plan_run(plan, NULL, bindings, 6));
    OK(kiln_resident_download(live->dispatcher, NULL, of[2], 0, counts[2] * 2,
                              halves[2]));
  }
  kiln_library_plan_release(plan);
  for (uint64_t e = 0; e < counts[2]; e += 997) {
    double exact = 0, all = 0;
    for (uint64_t p = 0; p < k; p++) {
      double x = of_half(is_f16, halves[0][e / n * k + p]) *
                 of_half(is_f16, halves[1][p * n + e % n]);
      exact += x;
      all += fabs(x);
    }
    double sums = (k / 16 + 2) * 0x1p-18 * all;
    double most = (fabs(exact) + sums) * (is_f16 ? 0x1p-11 : 0x1p-8) + sums;
    wrong += !(fabs(of_half(is_f16, halves[2][e]) - exact) <= most + 0x1p-24);
  }
  printf("matmul of %s to 32 ULP, %u x %u x %u: %u wrong\n",
         is_f16 ? "f16" : "bf16", (unsigned)m, (unsigned)n, (unsigned)k,
         (unsigned)wrong);
  failures += wrong != 0;
  for (int i = 0; i < 3; i++) {
    OK(kiln_resident_free(live->dispatcher, of[i]));
    free(halves[i]);
  }
}

// What element `e` of a convolution is, as the text adds up: x has `side` rows
// and columns and as many channels as y.
static float convolved(const float* x, const float* filters, uint32_t side,
                       uint32_t channels, uint32_t f, uint64_t e) {
  uint64_t plane = (uint64_t)side * side, o = e / plane;
  uint32_t row = (uint32_t)(e % plane / side), column = (uint32_t)(e % side);
  float sum = 0;
  for (uint64_t c = 0; c < channels; c++) {
    for (uint32_t i = 0; i < f; i++) {
      for (uint32_t j = 0; j < f; j++) {
        uint32_t r = row + i - f / 2, s = column + j - f / 2;
        float value =
            r < side && s < side ? x[c * plane + (uint64_t)r * side + s] : 0;
        sum = fmaf(value, filters[((o * channels + c) * f + i) * f + j], sum);
      }
    }
  }
  return sum;
}

static void convolution(live_t* live, uint32_t side, uint32_t channels,
                        uint32_t f) {
  uint64_t count = (uint64_t)side * side * channels;
  uint64_t of_filters = (uint64_t)channels * channels * f * f;
  if (count + of_filters > live->count) return;
  float* x = space((count + of_filters) * 4);
  float* y = space(count * 4);
  for (uint64_t i = 0; i < count + of_filters; i++) {
    x[i] = (float)(int32_t)live->numbers[i] * 0x1p-31f;
  }
  kiln_library_plan_t* plan = NULL;
  kiln_resident_t in, out;
  OK(kiln_resident_allocate(live->dispatcher, (count + of_filters) * 4, &in));
  OK(kiln_resident_allocate(live->dispatcher, count * 4, &out));
  OK(kiln_resident_upload(live->dispatcher, NULL, in, 0,
                          (count + of_filters) * 4, x));
  if (OK(kiln_library_plan_create(live->dispatcher, "convolution", NULL,
                                  &plan))) {
    const kiln_binding_t bindings[] = {
        kiln_bind_resident_range(in, 0, count * 4),
        kiln_bind_resident_range(in, count * 4, of_filters * 4),
        kiln_bind_resident(out),
        kiln_bind_u32(side),
        kiln_bind_u32(side),
        kiln_bind_u32(channels),
        kiln_bind_u32(channels),
        kiln_bind_u32(f),
        kiln_bind_u32(f)};
    OK(kiln_library_plan_run(plan, NULL, bindings, 9));
    OK(kiln_resident_download(live->dispatcher, NULL, out, 0, count * 4, y));
  }
  kiln_library_plan_release(plan);
  OK(kiln_resident_free(live->dispatcher, in));
  OK(kiln_resident_free(live->dispatcher, out));
  uint32_t wrong = 0;
  for (uint64_t e = 0; e < count; e += count < 1000000 ? 1 : 1021) {
    float want = convolved(x, x + count, side, channels, f, e);
    // Every bit is to be the same.
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    wrong += memcmp(&y[e], &want, 4) != 0;
  }
  printf("convolution of %u channels of %u, filters of %u: %u wrong\n",
         (unsigned)channels, (unsigned)side, (unsigned)f, (unsigned)wrong);
  failures += wrong != 0;
  free(x);
  free(y);
}

// One query in doubles: its scores, then its average of column `d`.
static double attend(const float* q, const float* k, const float* v,
                     uint32_t keys, uint32_t d) {
  double top = -(double)INFINITY, total = 0, sum = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (uint64_t j = 0; j < keys; j++) {
      double dot = 0;
      for (int e = 0; e < 64; e++) {
        dot += (double)q[e] * (double)k[j * 64 + (uint64_t)e];
      }
      if (pass == 0) {
        top = dot / 8 > top ? dot / 8 : top;
        continue;
      }
      double weight = exp(dot / 8 - top);
      total += weight;
      sum += weight * (double)v[j * 64 + d];
    }
  }
  return sum / total;
}

// Heads of `n` rows of 64 numbers; one element in some thousand is looked at.
static void attention(live_t* live, uint32_t n, uint32_t heads, bool causal) {
  uint64_t count = UINT64_C(64) * n * heads;
  if (3 * count > live->count) return;
  float* x = space(3 * count * 4);
  float* y = space(count * 4);
  for (uint64_t i = 0; i < 3 * count; i++) {
    x[i] = (float)(int32_t)live->numbers[i] * (i < count ? 0x1p-29f : 0x1p-31f);
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.segment = 64;
  kiln_library_plan_t* plan = NULL;
  kiln_resident_t in, out;
  OK(kiln_resident_allocate(live->dispatcher, 3 * count * 4, &in));
  OK(kiln_resident_allocate(live->dispatcher, count * 4, &out));
  OK(kiln_resident_upload(live->dispatcher, NULL, in, 0, 3 * count * 4, x));
  if (OK(kiln_library_plan_create(live->dispatcher, "attention", &options,
                                  &plan))) {
    const kiln_binding_t bindings[] = {
        kiln_bind_resident_range(in, 0, count * 4),
        kiln_bind_resident_range(in, count * 4, count * 4),
        kiln_bind_resident_range(in, 2 * count * 4, count * 4),
        kiln_bind_resident(out),
        kiln_bind_u32(n),
        kiln_bind_u32(n),
        kiln_bind_u32(causal)};
    OK(kiln_library_plan_run(plan, NULL, bindings, 7));
    OK(kiln_resident_download(live->dispatcher, NULL, out, 0, count * 4, y));
  }
  kiln_library_plan_release(plan);
  OK(kiln_resident_free(live->dispatcher, in));
  OK(kiln_resident_free(live->dispatcher, out));
  uint32_t wrong = 0;
  for (uint64_t e = 0; e < count; e += 8191) {
    uint64_t row = e / 64, head = row / n;
    double want = attend(
        x + row * 64, x + count + head * n * 64, x + 2 * count + head * n * 64,
        causal ? (uint32_t)(row % n) + 1 : n, (uint32_t)(e % 64));
    wrong += !(fabs((double)y[e] - want) <= 0x1p-18);
  }
  printf("attention of %u x %u%s: %u wrong\n", (unsigned)heads, (unsigned)n,
         causal ? ", causal" : "", (unsigned)wrong);
  failures += wrong != 0;
  free(x);
  free(y);
}

// One row of complex numbers in doubles, as in test_library_fft.c: x's numbers
// are `step` from each other.
static void plain_fft(const float* x, double* y, uint32_t n, uint32_t step) {
  if (n == 1) {
    y[0] = (double)x[0];
    y[1] = (double)x[1];
    return;
  }
  double* low = y;
  double* high = y + n;
  plain_fft(x, low, n / 2, step * 2);
  plain_fft(x + 2 * (size_t)step, high, n / 2, step * 2);
  for (uint32_t k = 0; k < n / 2; k++) {
    double angle = 6.28318530717958647692 * k / n;
    double c = cos(angle), s = -sin(angle);
    double re = high[2 * k] * c - high[2 * k + 1] * s;
    double im = high[2 * k] * s + high[2 * k + 1] * c;
    high[2 * k] = low[2 * k] - re;
    high[2 * k + 1] = low[2 * k + 1] - im;
    low[2 * k] += re;
    low[2 * k + 1] += im;
  }
}

// Runs a plan of fft twice and fetches what it made.
static void run_fft(live_t* live, uint32_t size, const float* x, float* y) {
  uint64_t bytes = (uint64_t)live->count * 4;
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_F32);
  options.segment = size;
  kiln_library_plan_t* plan = NULL;
  kiln_resident_t in, out;
  OK(kiln_resident_allocate(live->dispatcher, bytes, &in));
  OK(kiln_resident_allocate(live->dispatcher, bytes, &out));
  OK(kiln_resident_upload(live->dispatcher, NULL, in, 0, bytes, x));
  if (OK(kiln_library_plan_create(live->dispatcher, "fft", &options, &plan))) {
    const kiln_binding_t bindings[] = {
        kiln_bind_resident(in), kiln_bind_resident(out), kiln_bind_u32(0)};
    OK(kiln_library_plan_run(plan, NULL, bindings, 3));
    OK(kiln_library_plan_run(plan, NULL, bindings, 3));
    OK(kiln_resident_download(live->dispatcher, NULL, out, 0, bytes, y));
  }
  kiln_library_plan_release(plan);
  OK(kiln_resident_free(live->dispatcher, in));
  OK(kiln_resident_free(live->dispatcher, out));
}

// Every row of those that one in about a million numbers begins.
static void fft(live_t* live, uint32_t size) {
  uint64_t bytes = (uint64_t)live->count * 4, row = 2 * (uint64_t)size;
  if (row > live->count) return;
  float* x = space(bytes);
  float* y = space(bytes);
  double* want = space(row * 8);
  for (uint64_t i = 0; i < live->count; i++) {
    x[i] = (float)(int32_t)live->numbers[i] * 0x1p-31f;
  }
  run_fft(live, size, x, y);
  uint32_t wrong = 0, log = 0;
  while (1u << log < size) log++;
  // A transform has a size.
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
  uint64_t rows = live->count / row;
  for (uint64_t r = 0; r < rows; r += rows > 16 ? rows / 16 : 1) {
    double square = 0;
    plain_fft(x + r * row, want, size, 1);
    for (uint64_t i = 0; i < row; i++) square += want[i] * want[i] / size;
    double most = 0x1p-23 * log * sqrt(square);
    for (uint64_t i = 0; i < row; i++) {
      wrong += !(fabs((double)y[r * row + i] - want[i]) <= most);
    }
  }
  printf("fft of %u: %u wrong\n", (unsigned)size, (unsigned)wrong);
  failures += wrong != 0;
  free(x);
  free(y);
  free(want);
}

// What is kept in front, in its order; the rest behind it, from the end on.
static void divide(live_t* live) {
  uint64_t bytes = (uint64_t)live->count * 4;
  uint32_t* want = space(bytes);
  uint32_t* have = space(bytes);
  uint32_t kept = 0, others = 0, told = 0;
  for (uint32_t i = 0; i < live->count; i++) {
    if (live->bytes[i] == 1) {
      want[kept++] = live->numbers[i];
    } else {
      want[live->count - 1 - others++] = live->numbers[i];
    }
  }
  kiln_library_options_t options = options_of(live, KILN_PROGRAM_TYPE_U32);
  options.rest = KILN_SWITCH_ON;
  uint8_t* keep = space(live->count);
  for (uint32_t i = 0; i < live->count; i++) keep[i] = live->bytes[i] == 1;
  argument_t arguments[] = {{live->numbers, NULL, bytes},
                            {keep, NULL, live->count},
                            {NULL, have, bytes},
                            {NULL, &told, 4}};
  run(live, "compact", &options, arguments, 4);
  judge("partition: count", &told, &kept, 4);
  judge("partition", have, want, bytes);
  free(want);
  free(have);
  free(keep);
}

// To places all over the list, each of them once but for some that are none,
// and from there.
static void moves(live_t* live) {
  uint64_t bytes = (uint64_t)live->count * 4;
  uint32_t* places = space(bytes);
  uint32_t* want = space(bytes);
  uint32_t* back = space(bytes);
  uint32_t* have = space(bytes);
  for (uint32_t i = 0; i < live->count; i++) {
    uint32_t to = (i * 2654435761u) & (live->count - 1);
    places[i] = i % 9 == 4 ? live->count + i : to;
    if (i % 9 == 4) continue;
    want[i] = live->numbers[to];
    back[to] = live->numbers[i];
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U32;
  argument_t arguments[] = {
      {live->numbers, NULL, bytes}, {places, NULL, bytes}, {NULL, have, bytes}};
  run(live, "gather", &options, arguments, 3);
  judge("gather", have, want, bytes);
  memset(have, 0, (size_t)bytes);
  arguments[2].data = have;
  run(live, "scatter", &options, arguments, 3);
  judge("scatter", have, back, bytes);
  free(places);
  free(want);
  free(back);
  free(have);
}

static void transpose(live_t* live, uint32_t w) {
  uint32_t h = live->count / w;
  uint64_t count = (uint64_t)w * h;
  uint32_t* want = space(count * 4);
  uint32_t* have = space(count * 4);
  for (uint64_t i = 0; i < count; i++) {
    want[i % w * h + i / w] = live->numbers[i];
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U32;
  argument_t arguments[] = {{live->numbers, NULL, count * 4},
                            {NULL, have, count * 4}};
  const kiln_binding_t scalars[] = {kiln_bind_u32(w), kiln_bind_u32(h)};
  run_with(live, "transpose", &options, arguments, 2, scalars, 2);
  judge("transpose", have, want, count * 4);
  free(want);
  free(have);
}

// Sums of 4,096 each; and y = a x + y by one rounding.
static void lines_of_numbers(live_t* live) {
  uint64_t bytes = (uint64_t)live->count * 4;
  uint32_t sums = (live->count + 4095) / 4096;
  uint32_t* want = space(bytes);
  uint32_t* have = space(bytes);
  float* x = space(bytes);
  float* y = space(bytes);
  float* made = space(bytes);
  for (uint32_t i = 0; i < live->count; i++) {
    want[i / 4096] += live->numbers[i];
    x[i] = (float)live->numbers[i] * 0x1p-32f;
    y[i] = (float)(int32_t)live->numbers[live->count - 1 - i] * 0x1p-31f;
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U32;
  argument_t of_sums[] = {{live->numbers, NULL, bytes},
                          {NULL, have, sums * UINT64_C(4)}};
  run(live, "reduce", &options, of_sums, 2);
  judge("reduce", have, want, sums * UINT64_C(4));
  kiln_library_plan_t* plan = NULL;
  kiln_resident_t in, out;
  OK(kiln_resident_allocate(live->dispatcher, bytes, &in));
  OK(kiln_resident_allocate(live->dispatcher, bytes, &out));
  OK(kiln_resident_upload(live->dispatcher, NULL, in, 0, bytes, x));
  OK(kiln_resident_upload(live->dispatcher, NULL, out, 0, bytes, y));
  if (OK(kiln_library_plan_create(live->dispatcher, "saxpy", NULL, &plan))) {
    const kiln_binding_t bindings[] = {
        kiln_bind_f32(2.7f), kiln_bind_resident(in), kiln_bind_resident(out)};
    OK(kiln_library_plan_run(plan, NULL, bindings, 3));
    OK(kiln_resident_download(live->dispatcher, NULL, out, 0, bytes, made));
  }
  kiln_library_plan_release(plan);
  OK(kiln_resident_free(live->dispatcher, in));
  OK(kiln_resident_free(live->dispatcher, out));
  for (uint32_t i = 0; i < live->count; i++) y[i] = fmaf(2.7f, x[i], y[i]);
  judge("saxpy", made, y, bytes);
  free(want);
  free(have);
  free(x);
  free(y);
  free(made);
}

// Characters of two bytes, whole; then one byte of them another.
static void utf8(live_t* live) {
  uint32_t count = live->count & ~UINT32_C(1);
  uint8_t* text = space(count);
  for (uint32_t i = 0; i < count; i++) text[i] = i % 2 == 0 ? 0xc3 : 0xa9;
  for (uint32_t way = 0; way < 3; way++) {
    uint32_t at = way == 1 ? count / 3 * 2 : count - 2, left = 7;
    uint32_t want = way == 0 ? 0 : count - at;
    if (way > 0) text[at] = way == 1 ? 0xc1 : 0xe2;
    argument_t arguments[] = {{text, NULL, count}, {NULL, &left, 4}};
    run(live, "utf8", NULL, arguments, 2);
    judge("utf8", &left, &want, 4);
    text[at] = 0xc3;
  }
  free(text);
}

// One number in some thousand beside the same rounds in C.
static void philox(live_t* live) {
  const uint64_t seed = UINT64_C(0x123456789abcdef0);
  const uint64_t start = UINT64_C(0xfffffff0);
  uint64_t bytes = (uint64_t)live->count * 4;
  uint32_t* have = space(bytes);
  uint32_t wrong = 0;
  kiln_library_plan_t* plan = NULL;
  kiln_resident_t out;
  OK(kiln_resident_allocate(live->dispatcher, bytes, &out));
  if (OK(kiln_library_plan_create(live->dispatcher, "philox", NULL, &plan))) {
    const kiln_binding_t bindings[] = {
        kiln_bind_resident(out), kiln_bind_u32(live->count),
        kiln_bind_u64(seed), kiln_bind_u64(start)};
    OK(kiln_library_plan_run(plan, NULL, bindings, 4));
    OK(kiln_resident_download(live->dispatcher, NULL, out, 0, bytes, have));
  }
  kiln_library_plan_release(plan);
  OK(kiln_resident_free(live->dispatcher, out));
  for (uint64_t i = 0; i < live->count; i += 1021) {
    uint64_t counter = start + i / 4;
    uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int r = 0; r < 10; r++) {
      uint64_t a = UINT64_C(0xd2511f53) * x[0], c = UINT64_C(0xcd9e8d57) * x[2];
      const uint32_t next[4] = {(uint32_t)(c >> 32) ^ x[1] ^ k[0], (uint32_t)c,
                                (uint32_t)(a >> 32) ^ x[3] ^ k[1], (uint32_t)a};
      memcpy(x, next, sizeof(next));
      k[0] += UINT32_C(0x9e3779b9);
      k[1] += UINT32_C(0xbb67ae85);
    }
    wrong += have[i] != x[i % 4];
  }
  printf("philox: %u wrong\n", (unsigned)wrong);
  failures += wrong != 0;
  free(have);
}

// Layer norm of rows, one of 64 beside doubles.
static void normalize(live_t* live, uint32_t width) {
  uint32_t rows = live->count / width, wrong = 0;
  uint64_t count = (uint64_t)rows * width;
  float* x = space(count * 4);
  float* y = space(count * 4);
  float* scale = space(width * UINT64_C(4));
  float* shift = space(width * UINT64_C(4));
  for (uint64_t i = 0; i < count; i++) {
    x[i] = 3 + (float)(int32_t)live->numbers[i] * 0x1p-31f;
  }
  for (uint32_t j = 0; j < width; j++) {
    scale[j] = 1 + (float)(j % 5);
    shift[j] = (float)(j % 3);
  }
  argument_t arguments[] = {{x, NULL, count * 4},
                            {scale, NULL, width * UINT64_C(4)},
                            {shift, NULL, width * UINT64_C(4)},
                            {NULL, y, count * 4}};
  const kiln_binding_t scalars[] = {kiln_bind_u32(width), kiln_bind_f32(1e-3f)};
  run_with(live, "normalize", NULL, arguments, 4, scalars, 2);
  for (uint32_t r = 0; r < rows; r += 64) {
    const float* row = x + (uint64_t)r * width;
    double mean = 0, variance = 0;
    for (uint32_t j = 0; j < width; j++) mean += (double)row[j] / width;
    for (uint32_t j = 0; j < width; j++) {
      double away = (double)row[j] - mean;
      variance += away * away / width;
    }
    double factor = 1 / sqrt(variance + 1e-3);
    for (uint32_t j = 0; j < width; j++) {
      double want = ((double)row[j] - mean) * factor * (double)scale[j] +
                    (double)shift[j];
      double have = (double)y[(uint64_t)r * width + j];
      wrong += !(fabs(have - want) <= 2e-5);
    }
  }
  printf("normalize of %u: %u wrong\n", (unsigned)width, (unsigned)wrong);
  failures += wrong != 0;
  free(x);
  free(y);
  free(scale);
  free(shift);
}

// At most 2^16 bodies, which are 2^32 pairs; one in some thousand beside
// doubles.
static void nbody(live_t* live) {
  uint32_t n = live->count / 1024 < 64 ? 64 : live->count / 1024, wrong = 0;
  float* x = space(n * UINT64_C(16));
  float* y = space(n * UINT64_C(12));
  for (uint32_t i = 0; i < 4 * n; i++) {
    float value = (float)(int32_t)live->numbers[i % live->count] * 0x1p-31f;
    x[i] = i % 4 == 3 ? fabsf(value) : value;
  }
  argument_t arguments[] = {{x, NULL, n * UINT64_C(16)},
                            {NULL, y, n * UINT64_C(12)}};
  const kiln_binding_t scalar = kiln_bind_f32(0.05f);
  run_with(live, "nbody", NULL, arguments, 2, &scalar, 1);
  for (uint32_t i = 0; i < n; i += n / 64) {
    double pull[3] = {0}, size = 0;
    for (uint32_t j = 0; j < n; j++) {
      double d[3], square = 0.05 * 0.05;
      for (uint32_t c = 0; c < 3; c++) {
        d[c] = (double)x[4 * j + c] - (double)x[4 * i + c];
        square += d[c] * d[c];
      }
      double factor = (double)x[4 * j + 3] / (square * sqrt(square));
      for (uint32_t c = 0; c < 3; c++) {
        pull[c] += factor * d[c];
        size += fabs(factor * d[c]);
      }
    }
    for (uint32_t c = 0; c < 3; c++) {
      wrong += !(fabs((double)y[3 * i + c] - pull[c]) <= size * 2e-5);
    }
  }
  printf("nbody of %u: %u wrong\n", (unsigned)n, (unsigned)wrong);
  failures += wrong != 0;
  free(x);
  free(y);
}

static void run_all(live_t* live) {
  live->numbers = space((uint64_t)live->count * 4);
  live->bytes = space(live->count);
  uint64_t seed = 1;
  for (uint32_t i = 0; i < live->count; i++) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    live->numbers[i] = (uint32_t)(seed >> 32);
    live->bytes[i] = (uint8_t)(seed >> 24 & 3);
  }
  scan_words(live);
  scan_segments(live, 40);
  scan_segments(live, 1000000);
  scan_doubles(live);
  scan_floats(live);
  compact(live);
  unique(live);
  runs(live);
  crc32(live, 0);
  crc32(live, 1);
  blake3(live, 0);
  blake3(live, 1);
  json_index(live, false);
  json_index(live, true);
  aho_corasick(live);
  lz4(live);
  lines(live);
  fold(live);
  sort(live, "sort", NULL, 0xffffffffu);
  sort(live, "sort", NULL, 0xf00fu);
  sort(live, "merge_sort", NULL, 0xffffffffu);
  sort(live, "merge_sort", NULL, 0xf00fu);
  sort(live, "merge_sort", "return reverse_bits(a) < reverse_bits(b);",
       0xffffffu);
  softmax(live, 1000);
  softmax(live, 3000);
  softmax(live, 4100);
  softmax(live, 8192);
  softmax(live, 9000);
  histogram(live, KILN_PROGRAM_TYPE_U8, 1, 256, false);
  histogram(live, KILN_PROGRAM_TYPE_U8, 1, 256, true);
  histogram(live, KILN_PROGRAM_TYPE_U16, 2, 200, false);
  histogram(live, KILN_PROGRAM_TYPE_U16, 2, 5000, false);
  histogram(live, KILN_PROGRAM_TYPE_U32, 4, 12288, false);
  uint32_t side = live->count < 1u << 24 ? 131 : 4099;
  matmul(live, KILN_PROGRAM_TYPE_F32, side);
  matmul(live, KILN_PROGRAM_TYPE_F64, side);
  matmul_half(live, true, side, side / 8 * 8, 520);
  matmul_half(live, false, side / 8 * 8, side, 1000);
  matmul_half(live, true, 300, 259, 127);
  convolution(live, 45, 3, 4);
  convolution(live, 500, 61, 3);
  convolution(live, 7000, 1, 15);
  attention(live, 4096, 8, false);
  attention(live, 4000, 9, true);
  attention(live, 60, 1, true);
  fft(live, 256);
  fft(live, 4096);
  fft(live, 8192);
  fft(live, 1 << 14);
  fft(live, 1 << 20);
  fft(live, 1 << 23);
  divide(live);
  moves(live);
  transpose(live, live->count < 1u << 24 ? 132 : 8192);
  transpose(live, live->count < 1u << 24 ? 131 : 4099);
  lines_of_numbers(live);
  utf8(live);
  philox(live);
  normalize(live, 1000);
  normalize(live, 3001);
  normalize(live, 8192);
  nbody(live);
  segments(live, 32);
  segments(live, 1000);
  segments(live, 9000);
  free(live->numbers);
  free(live->bytes);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  live_t live;
  memset(&live, 0, sizeof(live));
  live.count = 1u << (argc > 2 ? atoi(argv[2]) % 32 : 26);
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* opened = NULL;
  if (!OK(kiln_runtime_create(NULL, &runtime))) return 1;
  kiln_status_t status = kiln_runtime_open_device(runtime, device, &opened);
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(runtime);
    return 77;
  }
  if (OK(kiln_dispatcher_create(opened, NULL, &live.dispatcher))) {
    run_all(&live);
  }
  kiln_dispatcher_release(live.dispatcher);
  kiln_device_release(opened);
  kiln_runtime_release(runtime);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
