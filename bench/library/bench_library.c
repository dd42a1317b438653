// SPDX-License-Identifier: Apache-2.0
//
// bench: the library's plans on a device, beside a copy by the driver in the
// same run, and beside what CUB took on an H200 for the same (recorded: CUB
// comes as C++ templates for nvcc, which is no part of this tree).
//
//   bench_library [DEVICE] [LOG]     cuda:0, 26: 2^26 elements
//
// Rows are GB/s of what a run must move at least. The baseline of a row is
// CUB's figure where there is one and the size is the same, else the copy's. On
// the software device it is the same work in plain C on one core.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_library_plain.h"
#include "bench_world.h"
#include "kiln/kiln.h"
#include "plain_bytes.h"

enum { CUB_LOG = 26 };

typedef bench_job_t job_t;

typedef struct world_t {
  bench_world_t base;
  uint64_t count;
  double copy;  // GB/s
  plain_t plain;
  uint32_t* numbers_host;
  uint8_t* flags_host;
  float* floats_host;
  kiln_buffer_t* numbers;
  kiln_buffer_t* floats;  // the numbers as -1 to 1
  kiln_buffer_t* flags;
} world_t;

// The best of several rounds, in nanoseconds for one run.
static double spent(world_t* w, const job_t* job) {
  return bench_world_spent(&w->base, job, w->base.runs);
}

static kiln_buffer_t* memory(const world_t* w, uint64_t bytes) {
  return bench_world_memory(&w->base, bytes, NULL);
}

// A run in plain C, of what. one-thread
typedef struct plain_job_t {
  plain_run_t run;
  plain_t given;
} plain_job_t;

static void run_plain(void* context) {
  const plain_job_t* job = context;
  job->run(&job->given);
}

// Nanoseconds of the same in plain C, the best of several.
static double plain_time(const world_t* w, plain_run_t run, uint32_t width,
                         uint64_t count) {
  plain_job_t job = {run, w->plain};
  job.given.width = width;
  job.given.count = (size_t)count;
  return bench_plain_spent(run_plain, &job);
}

// `cub`: microseconds at 2^26, or 0.
static void tell(const world_t* w, const char* what, double bytes, double ns,
                 double cub, plain_run_t plain, uint32_t width) {
  char name[2 * BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "%s 2^%u", what, (unsigned)w->base.log);
  bool beside = cub > 0 && w->base.log == CUB_LOG;
  if (w->base.soft) {
    bench_report_more(w->base.report, name, "GB/s", bytes / ns, "plain C",
                      bytes / plain_time(w, plain, width, w->count));
    return;
  }
  bench_report_more(w->base.report, name, "GB/s", bytes / ns,
                    beside ? "CUB recorded on an H200" : "copy",
                    beside ? bytes / (cub * 1000) : w->copy);
}

static kiln_library_options_t options_of(const world_t* w, uint32_t type) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = type;
  options.count = w->count;
  return options;
}

static job_t job_of(const world_t* w, const char* name,
                    const kiln_library_options_t* options) {
  return bench_world_job(&w->base, name, options);
}

// An entry's own text with other consts, without a plan.
static job_t way_of(const world_t* w, const char* name,
                    const kiln_program_define_t* defines, uint32_t count) {
  kiln_library_entry_t entry;
  bench_need(kiln_library_find(name, &entry), name);
  kiln_program_parse_options_t options = kiln_program_parse_options_default();
  options.defines = defines;
  options.define_count = count;
  kiln_program_t* program = NULL;
  bench_expect(kiln_program_parse(entry.text, &options, NULL, &program));
  job_t job;
  memset(&job, 0, sizeof(job));
  bench_expect(
      kiln_pipeline_create(w->base.dispatcher, program, NULL, &job.pipeline));
  kiln_program_release(program);
  return job;
}

static void bind(job_t* job, kiln_buffer_t* buffer) {
  bench_job_bind(job, buffer);
}

static void bench_copy(world_t* w) {
  job_t job;
  memset(&job, 0, sizeof(job));
  job.copies_to = memory(w, w->count * 4);
  job.copies_from = w->numbers;
  job.bytes = w->count * 4;
  w->copy = (double)w->count * 8 / spent(w, &job);
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "copy 2^%u", (unsigned)w->base.log);
  bench_report_more(w->base.report, name, "GB/s", w->copy, NULL, 0);
  kiln_buffer_release(job.copies_to);
}

static void bench_fold(world_t* w) {
  kiln_library_options_t options = options_of(w, KILN_PROGRAM_TYPE_F32);
  job_t job = job_of(w, "fold", &options);
  kiln_buffer_t* result = memory(w, 4);
  bind(&job, w->numbers);
  bind(&job, result);
  tell(w, "fold f32", (double)w->count * 4, spent(w, &job), 68, plain_fold, 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(result);
}

static void bench_scan(world_t* w, uint32_t type, const char* what, double cub,
                       plain_run_t plain) {
  kiln_library_options_t options = options_of(w, type);
  options.exclusive = KILN_SWITCH_ON;
  job_t job = job_of(w, "scan", &options);
  kiln_buffer_t* sums = memory(w, w->count * 4);
  bind(&job, w->numbers);
  bind(&job, sums);
  tell(w, what, (double)w->count * 8, spent(w, &job), cub, plain, 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(sums);
}

// Heads are the flags: segments of two elements, about.
static void bench_scan_segments(world_t* w) {
  kiln_library_options_t options = options_of(w, KILN_PROGRAM_TYPE_U32);
  job_t job = job_of(w, "scan_segments", &options);
  kiln_buffer_t* sums = memory(w, w->count * 4);
  bind(&job, w->numbers);
  bind(&job, w->flags);
  bind(&job, sums);
  tell(w, "scan_segments u32", (double)w->count * 9, spent(w, &job), 0,
       plain_scan_segments, 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(sums);
}

// The scan with other tiles: which of them is the best on this device.
static void bench_scan_way(world_t* w, const char* threads, const char* rows) {
  const kiln_program_define_t defines[] = {{"THREADS", threads},
                                           {"ROWS", rows}};
  job_t job = way_of(w, "scan", defines, 2);
  kiln_buffer_t* sums = memory(w, w->count * 4);
  uint64_t states = (w->count / 512 + 2) * 8;
  kiln_buffer_t* state = memory(w, states);
  bench_expect(kiln_buffer_fill(state, 0, states, 0, 4));
  bind(&job, w->numbers);
  bind(&job, sums);
  bind(&job, state);
  char what[BENCH_NAME_BYTES];
  snprintf(what, sizeof(what), "scan u32 by %s threads, %s rows", threads,
           rows);
  tell(w, what, (double)w->count * 8, spent(w, &job), 178, plain_scan_u32, 0);
  kiln_pipeline_release(job.pipeline);
  kiln_buffer_release(sums);
  kiln_buffer_release(state);
}

static void bench_scan_ways(world_t* w) {
  static const char* const kThreads[] = {"128", "256", "512", "1024"};
  static const char* const kRows[] = {"2", "4", "6", "8"};
  for (int i = 0; i < 16; i++) {
    bench_scan_way(w, kThreads[i / 4], kRows[i % 4]);
  }
}

// What is kept: half of it.
static void bench_compact(world_t* w) {
  kiln_library_options_t options = options_of(w, KILN_PROGRAM_TYPE_U32);
  job_t job = job_of(w, "compact", &options);
  kiln_buffer_t* kept = memory(w, w->count * 4);
  kiln_buffer_t* count = memory(w, 4);
  bind(&job, w->numbers);
  bind(&job, w->flags);
  bind(&job, kept);
  bind(&job, count);
  tell(w, "compact u32, half kept", (double)w->count * 7, spent(w, &job), 0,
       plain_compact, 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(kept);
  kiln_buffer_release(count);
}

static void bench_unique(world_t* w) {
  kiln_library_options_t options = options_of(w, KILN_PROGRAM_TYPE_U32);
  job_t job = job_of(w, "unique", &options);
  kiln_buffer_t* values = memory(w, w->count * 4);
  kiln_buffer_t* starts = memory(w, w->count * 4);
  kiln_buffer_t* runs = memory(w, 4);
  bind(&job, w->numbers);
  bind(&job, values);
  bind(&job, starts);
  bind(&job, runs);
  tell(w, "unique u32, all different", (double)w->count * 12, spent(w, &job), 0,
       plain_unique, 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(values);
  kiln_buffer_release(starts);
  kiln_buffer_release(runs);
}

// What is kept, with other tiles: which of them is the best on this device.
static void bench_compact_way(world_t* w, const char* threads,
                              const char* each) {
  const kiln_program_define_t defines[] = {{"THREADS", threads},
                                           {"EACH", each}};
  job_t job = way_of(w, "compact", defines, 2);
  kiln_buffer_t* kept = memory(w, w->count * 4);
  kiln_buffer_t* count = memory(w, 4);
  uint64_t states = (w->count / 512 + 2) * 8;
  kiln_buffer_t* state = memory(w, states);
  bench_expect(kiln_buffer_fill(state, 0, states, 0, 4));
  bind(&job, w->numbers);
  bind(&job, w->flags);
  bind(&job, kept);
  bind(&job, count);
  bind(&job, state);
  char what[BENCH_NAME_BYTES];
  snprintf(what, sizeof(what), "compact by %s threads, %s each", threads, each);
  tell(w, what, (double)w->count * 7, spent(w, &job), 0, plain_compact, 0);
  kiln_pipeline_release(job.pipeline);
  kiln_buffer_release(kept);
  kiln_buffer_release(count);
  kiln_buffer_release(state);
}

static void bench_compact_ways(world_t* w) {
  static const char* const kThreads[] = {"256", "512", "1024"};
  static const char* const kEach[] = {"8", "16", "24", "32"};
  for (int i = 0; i < 12; i++) {
    bench_compact_way(w, kThreads[i / 4], kEach[i % 4]);
  }
}

static void bench_runs(world_t* w) {
  kiln_library_options_t options = options_of(w, KILN_PROGRAM_TYPE_U32);
  job_t job = job_of(w, "runs", &options);
  kiln_buffer_t* values = memory(w, w->count * 4);
  kiln_buffer_t* lengths = memory(w, w->count * 4);
  kiln_buffer_t* runs = memory(w, 4);
  bind(&job, w->numbers);
  bind(&job, values);
  bind(&job, lengths);
  bind(&job, runs);
  tell(w, "runs u32, all different", (double)w->count * 12, spent(w, &job), 0,
       plain_runs, 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(values);
  kiln_buffer_release(lengths);
  kiln_buffer_release(runs);
}

// crc32 by other blocks: which of them is the best on this device.
static void bench_crc32_way(world_t* w, const char* log, const char* batch,
                            const char* blocks) {
  const kiln_program_define_t defines[] = {
      {"LOG", log}, {"BATCH", batch}, {"BLOCKS", blocks}};
  job_t job = way_of(w, "crc32", defines, 3);
  kiln_buffer_t* result = memory(w, 4);
  bind(&job, w->numbers);
  bind(&job, result);
  char what[BENCH_NAME_BYTES];
  snprintf(what, sizeof(what), "crc32 by 2^%s threads, %s words, %s blocks",
           log, batch, blocks);
  tell(w, what, (double)w->count * 4, spent(w, &job), 0, plain_crc32, 0);
  kiln_pipeline_release(job.pipeline);
  kiln_buffer_release(result);
}

static void bench_crc32_ways(world_t* w) {
  static const char* const kWays[][3] = {
      {"7", "32", "528"}, {"8", "32", "396"}, {"8", "32", "264"},
      {"9", "16", "264"}, {"9", "32", "132"}, {"10", "16", "132"},
  };
  for (size_t i = 0; i < sizeof(kWays) / sizeof(kWays[0]); i++) {
    bench_crc32_way(w, kWays[i][0], kWays[i][1], kWays[i][2]);
  }
}

// All bytes of the numbers, read once.
static void bench_crc32(world_t* w) {
  job_t job = job_of(w, "crc32", NULL);
  kiln_buffer_t* result = memory(w, 4);
  bind(&job, w->numbers);
  bind(&job, result);
  tell(w, "crc32 of four bytes times", (double)w->count * 4, spent(w, &job), 0,
       plain_crc32, 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(result);
}

// The same.
static void bench_blake3(world_t* w) {
  kiln_library_options_t options = kiln_library_options_default();
  options.count = w->count * 4;
  job_t job = job_of(w, "blake3", &options);
  kiln_buffer_t* hash = memory(w, 32);
  bind(&job, w->numbers);
  bind(&job, hash);
  tell(w, "blake3 of four bytes times", (double)w->count * 4, spent(w, &job), 0,
       plain_blake3, 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(hash);
}

// With other blocks: which of them is the best on this device.
static void bench_blake3_way(world_t* w, const char* threads,
                             const char* products) {
  const kiln_program_define_t defines[] = {{"THREADS", threads},
                                           {"PRODUCTS", products}};
  job_t job = way_of(w, "blake3", defines, 2);
  kiln_buffer_t* hash = memory(w, 32);
  kiln_buffer_t* parts = memory(w, w->count / 512 + 32);
  kiln_buffer_t* done = memory(w, 4);
  bench_expect(kiln_buffer_fill(done, 0, 4, 0, 4));
  bind(&job, w->numbers);
  bind(&job, w->numbers);
  bind(&job, hash);
  bind(&job, parts);
  bind(&job, done);
  char what[BENCH_NAME_BYTES];
  snprintf(what, sizeof(what), "blake3 by %s threads%s", threads,
           products[0] == '1' ? ", products" : "");
  tell(w, what, (double)w->count * 4, spent(w, &job), 0, plain_blake3, 0);
  kiln_pipeline_release(job.pipeline);
  kiln_buffer_release(hash);
  kiln_buffer_release(parts);
  kiln_buffer_release(done);
}

// A buffer of `count` bytes of text; on the software device plain C has them
// too.
static kiln_buffer_t* text_buffer(world_t* w, const uint8_t* text) {
  kiln_buffer_t* buffer = memory(w, w->count);
  bench_expect(kiln_buffer_write(buffer, 0, (size_t)w->count, text));
  w->plain.flags = text;
  return buffer;
}

static void bench_json_index(world_t* w) {
  kiln_library_options_t options = options_of(w, 0);
  uint8_t* text = calloc((size_t)w->count, 1);
  bench_need(text != NULL, "memory");
  plain_bytes_write_json(text, (size_t)w->count, 1);
  kiln_buffer_t* buffer = text_buffer(w, text);
  kiln_buffer_t* places = memory(w, w->count * 4);
  kiln_buffer_t* count = memory(w, 8);
  job_t job = job_of(w, "json_index", &options);
  bind(&job, buffer);
  bind(&job, places);
  bind(&job, count);
  double ns = spent(w, &job);
  uint32_t found[2];
  bench_expect(kiln_buffer_read(count, 0, 8, found));
  // What is read and written at least.
  tell(w, "json_index", (double)w->count + 4.0 * found[0], ns, 0,
       plain_json_index, 0);
  w->plain.flags = w->flags_host;
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(buffer);
  kiln_buffer_release(places);
  kiln_buffer_release(count);
  free(text);
}

static kiln_buffer_t* filled(const world_t* w, const void* data,
                             uint64_t bytes) {
  kiln_buffer_t* buffer = memory(w, bytes);
  bench_expect(kiln_buffer_write(buffer, 0, (size_t)bytes, data));
  return buffer;
}

// A dozen words in JSON; a match is 8 bytes written.
static void bench_aho_corasick(world_t* w) {
  static const kiln_string_view_t kWords[] = {
      {"sentence", 8}, {"key12", 5},  {"word", 4},    {"null", 4},
      {"true", 4},     {"longer", 6}, {"\\u00e9", 6}, {"key777", 6},
      {"texts", 5},    {"error", 5},  {"-12.5", 5},   {"warning", 7}};
  kiln_library_patterns_t* patterns = NULL;
  kiln_library_patterns_tables_t t;
  bench_expect(kiln_library_patterns_create(kWords, 12, NULL, &patterns));
  kiln_library_patterns_tables(patterns, &t);
  kiln_library_options_t options = options_of(w, 0);
  uint8_t* text = calloc((size_t)w->count, 1);
  bench_need(text != NULL, "memory");
  plain_bytes_write_json(text, (size_t)w->count, 1);
  kiln_buffer_t* buffers[] = {text_buffer(w, text),
                              filled(w, t.kinds, 256),
                              filled(w, t.next, t.next_count * 4),
                              filled(w, t.ends, t.end_count * 4),
                              filled(w, t.patterns, t.pattern_count * 4),
                              memory(w, w->count),
                              memory(w, w->count),
                              memory(w, 4)};
  job_t job = job_of(w, "aho_corasick", &options);
  for (int i = 0; i < 8; i++) bind(&job, buffers[i]);
  job.bindings[job.count++] = kiln_bind_u32(t.longest);
  job.bindings[job.count++] = kiln_bind_u32(t.quiet);
  double ns = spent(w, &job);
  uint32_t found = 0;
  bench_expect(kiln_buffer_read(buffers[7], 0, 4, &found));
  uint32_t states = t.quiet + (uint32_t)t.end_count - 1;
  plain_bytes_tables_t tables = {
      t.kinds, t.next, t.ends, t.patterns, (uint32_t)t.next_count / states,
      t.quiet};
  w->plain.tables = &tables;
  tell(w, "aho_corasick, 12 words", (double)w->count + 8.0 * found, ns, 0,
       plain_aho_corasick, 0);
  w->plain.tables = NULL;
  w->plain.flags = w->flags_host;
  kiln_library_plan_release(job.plan);
  for (int i = 0; i < 8; i++) kiln_buffer_release(buffers[i]);
  kiln_library_patterns_release(patterns);
  free(text);
}

// JSON of four bytes a number, in blocks of 64 KiB: GB/s of what is read and
// what is written.
static void bench_lz4(world_t* w) {
  enum { EACH = 65536 };
  uint64_t bytes = w->count * 4;
  uint32_t blocks = (uint32_t)((bytes + EACH - 1) / EACH);
  uint8_t* text = calloc((size_t)bytes, 1);
  uint8_t* packed = calloc(blocks, plain_bytes_lz4_most(EACH));
  uint32_t* starts = calloc((size_t)blocks + 1, 4);
  uint32_t* places = calloc((size_t)blocks + 1, 4);
  bench_need(text != NULL && packed != NULL && starts != NULL && places != NULL,
             "memory");
  plain_bytes_write_json(text, (size_t)bytes, 1);
  for (uint32_t k = 0; k < blocks; k++) {
    uint64_t from = (uint64_t)k * EACH;
    size_t here = bytes - from < EACH ? (size_t)(bytes - from) : EACH;
    size_t size = plain_bytes_lz4_pack(text + from, here, packed + starts[k]);
    starts[k + 1] = starts[k] + (uint32_t)size;
    places[k + 1] = (uint32_t)(from + here);
  }
  uint64_t list = ((uint64_t)blocks + 1) * 4;
  kiln_buffer_t* buffers[] = {
      filled(w, packed, starts[blocks]), filled(w, starts, list),
      filled(w, places, list),           memory(w, bytes),
      memory(w, (uint64_t)blocks * 4),   memory(w, (uint64_t)blocks * 4)};
  job_t job = job_of(w, "lz4", NULL);
  for (int i = 0; i < 6; i++) bind(&job, buffers[i]);
  w->plain.flags = packed;
  w->plain.tables = starts;
  tell(w, "lz4 of four bytes times", (double)bytes + starts[blocks],
       spent(w, &job), 0, plain_lz4, blocks);
  w->plain.tables = NULL;
  w->plain.flags = w->flags_host;
  kiln_library_plan_release(job.plan);
  for (int i = 0; i < 6; i++) kiln_buffer_release(buffers[i]);
  free(text);
  free(packed);
  free(starts);
  free(places);
}

// The first quarter of the bytes, one in 256 of which ends a line.
static void bench_lines(world_t* w) {
  kiln_library_options_t options = options_of(w, 0);
  job_t job = job_of(w, "lines", &options);
  kiln_buffer_t* starts = memory(w, w->count * 4);
  kiln_buffer_t* count = memory(w, 4);
  job.bindings[job.count++] = kiln_bind_buffer_range(w->numbers, 0, w->count);
  bind(&job, starts);
  bind(&job, count);
  tell(w, "lines, of 256 bytes", (double)w->count, spent(w, &job), 0,
       plain_lines, 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(starts);
  kiln_buffer_release(count);
}

// ASCII, which is what most texts are.
static void bench_utf8(world_t* w) {
  job_t job = job_of(w, "utf8", NULL);
  kiln_buffer_t* left = memory(w, 4);
  bind(&job, w->flags);
  bind(&job, left);
  tell(w, "utf8, all ASCII", (double)w->count, spent(w, &job), 0, plain_utf8,
       0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(left);
}

static void bench_segments(world_t* w, uint32_t segment, double cub) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_F32;
  options.segment = segment;
  uint64_t count = w->count / segment;
  if (count == 0) return;
  uint32_t* list = calloc((size_t)count + 1, 4);
  bench_need(list != NULL, "memory");
  for (uint64_t s = 0; s <= count; s++) list[s] = (uint32_t)(s * segment);
  kiln_buffer_t* starts = memory(w, (count + 1) * 4);
  bench_expect(kiln_buffer_write(starts, 0, (size_t)(count + 1) * 4, list));
  kiln_buffer_t* results = memory(w, count * 4);
  job_t job = job_of(w, "segments", &options);
  bind(&job, w->numbers);
  bind(&job, starts);
  bind(&job, results);
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "segments f32 of %u", (unsigned)segment);
  tell(w, name, (double)w->count * 4, spent(w, &job), cub, plain_segments,
       segment);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(starts);
  kiln_buffer_release(results);
  free(list);
}

// The first half of the numbers, with values or without. `cub`: items in a
// nanosecond, at 2^25.
static void bench_sort(world_t* w, const char* entry, bool pairs, double cub) {
  kiln_library_options_t options = options_of(w, KILN_PROGRAM_TYPE_U32);
  options.count = w->count / 2;
  options.value_type = pairs ? KILN_PROGRAM_TYPE_U32 : 0;
  uint64_t bytes = options.count * 4;
  plain_run_t plain =
      strcmp(entry, "sort") == 0 ? plain_sort : plain_merge_sort;
  job_t job = job_of(w, entry, &options);
  kiln_buffer_t* sorted = memory(w, bytes);
  kiln_buffer_t* moved = memory(w, bytes);
  job.bindings[job.count++] = kiln_bind_buffer_range(w->numbers, 0, bytes);
  if (pairs) {
    job.bindings[job.count++] =
        kiln_bind_buffer_range(w->numbers, bytes, bytes);
  }
  bind(&job, sorted);
  if (pairs) bind(&job, moved);
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "%s %s u32 2^%u", entry,
           pairs ? "pairs" : "keys", (unsigned)w->base.log - 1);
  const char* baseline = NULL;
  double than = 0;
  if (w->base.soft && !pairs) {
    baseline = "plain C";
    than = (double)options.count / plain_time(w, plain, 0, options.count);
  } else if (!w->base.soft && w->base.log == CUB_LOG && cub > 0) {
    baseline = "CUB recorded on an H200";
    than = cub;
  }
  bench_report_more(w->base.report, name, "G items/s",
                    (double)options.count / spent(w, &job), baseline, than);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(sorted);
  kiln_buffer_release(moved);
}

// Rows of x, read and written once.
static void bench_rows(world_t* w, const char* name, uint32_t width) {
  job_t job = job_of(w, name, NULL);
  kiln_buffer_t* y = memory(w, w->count * 4);
  kiln_buffer_t* more = memory(w, (uint64_t)width * 4);
  bool two = strcmp(name, "normalize") == 0;
  bench_expect(kiln_buffer_fill(more, 0, (uint64_t)width * 4, 0x3f800000, 4));
  bind(&job, w->numbers);
  if (two) bind(&job, more);
  if (two) bind(&job, more);
  bind(&job, y);
  job.bindings[job.count++] = kiln_bind_u32(width);
  if (two) job.bindings[job.count++] = kiln_bind_f32(1e-5f);
  char what[BENCH_NAME_BYTES];
  snprintf(what, sizeof(what), "%s of %u", name, (unsigned)width);
  tell(w, what, (double)w->count * 8, spent(w, &job), 0,
       two ? plain_normalize : plain_softmax, width);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(y);
  kiln_buffer_release(more);
}

// The bytes of the numbers: as they are, and all the same.
static void bench_histogram(world_t* w, bool one, double cub) {
  job_t job = job_of(w, "histogram", NULL);
  kiln_buffer_t* counts = memory(w, 1024);
  kiln_buffer_t* zeroes = NULL;
  if (one) {
    zeroes = memory(w, w->count * 4);
    bench_expect(kiln_buffer_fill(zeroes, 0, w->count * 4, 0, 4));
  }
  bind(&job, one ? zeroes : w->numbers);
  bind(&job, counts);
  tell(w,
       one ? "histogram u8 of 256 bins, one value" : "histogram u8 of 256 bins",
       (double)w->count * 4, spent(w, &job), cub,
       one ? plain_histogram_of_one : plain_histogram, 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(counts);
  kiln_buffer_release(zeroes);
}

// Square matrices of 4096 rows, or fewer where there are not as many numbers.
static void bench_matmul(world_t* w, uint32_t type, uint32_t max_ulp) {
  uint32_t n = 4096, bytes = type == KILN_PROGRAM_TYPE_F64   ? 8
                             : type == KILN_PROGRAM_TYPE_F32 ? 4
                                                             : 2;
  while ((uint64_t)n * n * 2 * bytes > w->count * 4) n /= 2;
  uint64_t size = (uint64_t)n * n * bytes;
  double flops = 2.0 * n * n * n;
  kiln_library_options_t options = kiln_library_options_default();
  options.type = type;
  options.max_ulp = max_ulp;
  job_t job = job_of(w, "matmul", &options);
  kiln_buffer_t* c = memory(w, size);
  job.bindings[job.count++] = kiln_bind_buffer_range(w->floats, 0, size);
  job.bindings[job.count++] = kiln_bind_buffer_range(w->floats, size, size);
  bind(&job, c);
  for (int i = 0; i < 3; i++) job.bindings[job.count++] = kiln_bind_u32(n);
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "matmul %s%s of %u",
           kiln_program_type_name(type), max_ulp != 0 ? " to 32 ULP" : "",
           (unsigned)n);
  bool plain = w->base.soft && type == KILN_PROGRAM_TYPE_F32;
  bench_report_more(w->base.report, name, "GFLOP/s", flops / spent(w, &job),
                    plain ? "plain C" : NULL,
                    plain ? flops / plain_time(w, plain_matmul, n, 0) : 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(c);
}

// 64 channels of 256 x 256 to as many by filters of 3 x 3, or smaller ones.
static void bench_convolution(world_t* w) {
  uint32_t side = 256, channels = 64;
  while (side > 8 && 4 * (uint64_t)side * side * channels > w->count) side /= 2;
  uint64_t bytes = (uint64_t)side * side * channels * 4;
  uint64_t of_filters = (uint64_t)channels * channels * 9 * 4;
  if (bytes + of_filters > w->count * 4) return;
  double flops = 2.0 * 9 * side * side * channels * channels;
  job_t job = job_of(w, "convolution", NULL);
  kiln_buffer_t* y = memory(w, bytes);
  job.bindings[job.count++] = kiln_bind_buffer_range(w->floats, 0, bytes);
  job.bindings[job.count++] =
      kiln_bind_buffer_range(w->floats, bytes, of_filters);
  bind(&job, y);
  const uint32_t scalars[] = {side, side, channels, channels, 3, 3};
  for (int i = 0; i < 6; i++) {
    job.bindings[job.count++] = kiln_bind_u32(scalars[i]);
  }
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "convolution f32 3 x 3, %u channels of %u x %u",
           (unsigned)channels, (unsigned)side, (unsigned)side);
  double than = w->base.soft
                    ? flops / plain_time(w, plain_convolution, side, channels)
                    : 0;
  bench_report_more(w->base.report, name, "GFLOP/s", flops / spent(w, &job),
                    w->base.soft ? "plain C" : NULL, than);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(y);
}

// 16 heads of 4,096 rows of 64 numbers, or fewer where there are not as many.
// Of a causal one half of the products are.
static void bench_attention(world_t* w, uint32_t type, uint32_t max_ulp,
                            bool causal) {
  uint32_t heads = 16, n = 4096, bytes = type == KILN_PROGRAM_TYPE_F32 ? 4 : 2;
  while (heads > 1 && UINT64_C(192) * n * heads > w->count) heads /= 2;
  while (UINT64_C(192) * n > w->count) n /= 2;
  uint64_t size = UINT64_C(64) * n * heads * bytes;
  double flops = (causal ? 2.0 : 4.0) * n * n * 64 * heads;
  kiln_library_options_t options = kiln_library_options_default();
  options.type = type;
  options.segment = 64;
  options.max_ulp = max_ulp;
  job_t job = job_of(w, "attention", &options);
  kiln_buffer_t* y = memory(w, size);
  for (uint64_t i = 0; i < 3; i++) {
    job.bindings[job.count++] =
        kiln_bind_buffer_range(w->floats, i * size, size);
  }
  bind(&job, y);
  job.bindings[job.count++] = kiln_bind_u32(n);
  job.bindings[job.count++] = kiln_bind_u32(n);
  job.bindings[job.count++] = kiln_bind_u32(causal);
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "attention %s%s%s of %u x 64, %u heads",
           kiln_program_type_name(type), max_ulp != 0 ? " to 67 ULP" : "",
           causal ? ", causal," : "", (unsigned)n, (unsigned)heads);
  bool plain =
      w->base.soft && !causal && type == KILN_PROGRAM_TYPE_F32 && heads == 1;
  bench_report_more(w->base.report, name, "GFLOP/s", flops / spent(w, &job),
                    plain ? "plain C" : NULL,
                    plain ? flops / plain_time(w, plain_attention, n, 0) : 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(y);
}

// Rows of complex numbers in the first half of all, of which there are as
// many as cuFFT's figure is of where that is said. One read and one write
// count.
static void bench_fft(world_t* w, uint32_t log, double cufft) {
  kiln_library_options_t options = options_of(w, KILN_PROGRAM_TYPE_F32);
  options.count = w->count / 2;
  options.segment = UINT64_C(1) << log;
  uint64_t bytes = options.count * 4;
  if (options.count < 2 * options.segment) return;
  job_t job = job_of(w, "fft", &options);
  kiln_buffer_t* y = memory(w, bytes);
  job.bindings[job.count++] = kiln_bind_buffer_range(w->floats, 0, bytes);
  bind(&job, y);
  job.bindings[job.count++] = kiln_bind_u32(0);
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "fft f32 of %u, %u at once", 1u << log,
           (unsigned)(options.count >> log) / 2);
  const char* baseline = "copy";
  double than = w->copy;
  if (w->base.soft) {
    baseline = "plain C";
    than =
        (double)bytes * 2 / plain_time(w, plain_fft, 1u << log, options.count);
  } else if (cufft > 0 && w->base.log == CUB_LOG) {
    baseline = "cuFFT recorded on an H200";
    than = cufft;
  }
  bench_report_more(w->base.report, name, "GB/s",
                    (double)bytes * 2 / spent(w, &job), baseline, than);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(y);
}

// The numbers as a square matrix, or one twice as wide.
static void bench_transpose(world_t* w) {
  uint32_t height = 1u << w->base.log / 2;
  kiln_library_options_t options = kiln_library_options_default();
  job_t job = job_of(w, "transpose", &options);
  kiln_buffer_t* y = memory(w, w->count * 4);
  bind(&job, w->floats);
  bind(&job, y);
  job.bindings[job.count++] = kiln_bind_u32((uint32_t)(w->count / height));
  job.bindings[job.count++] = kiln_bind_u32(height);
  tell(w, "transpose f32", (double)w->count * 8, spent(w, &job), 0,
       plain_transpose, height);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(y);
}

// Elements by places: their own, or some of all of them.
static void bench_moves(world_t* w, const char* entry, bool in_order) {
  uint32_t* places = calloc((size_t)w->count, 4);
  bench_need(places != NULL, "memory");
  for (uint64_t i = 0; i < w->count; i++) {
    places[i] =
        in_order ? (uint32_t)i : w->numbers_host[i] >> (32 - w->base.log);
  }
  kiln_buffer_t* list = filled(w, places, w->count * 4);
  kiln_buffer_t* y = memory(w, w->count * 4);
  job_t job = job_of(w, entry, NULL);
  bind(&job, w->floats);
  bind(&job, list);
  bind(&job, y);
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "%s f32, %s order", entry,
           in_order ? "in" : "any");
  w->plain.tables = places;
  tell(w, name, (double)w->count * 12, spent(w, &job), 0,
       strcmp(entry, "gather") == 0 ? plain_gather : plain_scatter, 0);
  w->plain.tables = NULL;
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(list);
  kiln_buffer_release(y);
  free(places);
}

static void bench_philox(world_t* w) {
  job_t job = job_of(w, "philox", NULL);
  kiln_buffer_t* y = memory(w, w->count * 4);
  bind(&job, y);
  job.bindings[job.count++] = kiln_bind_u32((uint32_t)w->count);
  job.bindings[job.count++] = kiln_bind_u64(1);
  job.bindings[job.count++] = kiln_bind_u64(0);
  tell(w, "philox u32", (double)w->count * 4, spent(w, &job), 0, plain_philox,
       0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(y);
}

// 65,536 bodies, or fewer where there are not as many numbers.
static void bench_nbody(world_t* w, uint32_t max_ulp) {
  uint32_t n = 65536;
  while ((uint64_t)n * n > w->count * 64) n /= 2;
  kiln_library_options_t options = kiln_library_options_default();
  options.max_ulp = max_ulp;
  job_t job = job_of(w, "nbody", &options);
  kiln_buffer_t* pulls = memory(w, (uint64_t)n * 12);
  job.bindings[job.count++] =
      kiln_bind_buffer_range(w->floats, 0, (uint64_t)n * 16);
  bind(&job, pulls);
  job.bindings[job.count++] = kiln_bind_f32(0.01f);
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "nbody%s of %u", max_ulp != 0 ? " to 4 ULP" : "",
           (unsigned)n);
  double pairs = (double)n * n;
  bench_report_more(
      w->base.report, name, "G pairs/s", pairs / spent(w, &job),
      w->base.soft ? "plain C" : NULL,
      w->base.soft ? pairs / plain_time(w, plain_nbody, 0, n) : 0);
  kiln_library_plan_release(job.plan);
  kiln_buffer_release(pulls);
}

static void open_numbers(world_t* w) {
  w->numbers = memory(w, w->count * 4);
  w->flags = memory(w, w->count);
  uint32_t* numbers = calloc((size_t)w->count, 4);
  float* floats = calloc((size_t)w->count, 4);
  uint8_t* flags = calloc((size_t)w->count, 1);
  bench_need(numbers != NULL && floats != NULL && flags != NULL, "memory");
  uint64_t seed = 1;
  for (uint64_t i = 0; i < w->count; i++) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    numbers[i] = (uint32_t)(seed >> 32);
    floats[i] = (float)(int32_t)numbers[i] * 0x1p-31f;
    flags[i] = (uint8_t)(seed >> 63);
  }
  bench_expect(kiln_buffer_write(w->numbers, 0, (size_t)w->count * 4, numbers));
  w->floats = memory(w, w->count * 4);
  bench_expect(kiln_buffer_write(w->floats, 0, (size_t)w->count * 4, floats));
  bench_expect(kiln_buffer_write(w->flags, 0, (size_t)w->count, flags));
  w->plain.numbers = numbers;
  w->plain.floats = floats;
  w->plain.flags = flags;
  w->plain.out = calloc((size_t)w->count, 4);
  w->plain.other = calloc((size_t)w->count, 4);
  bench_need(w->plain.out != NULL && w->plain.other != NULL, "memory");
  w->numbers_host = numbers;
  w->floats_host = floats;
  w->flags_host = flags;
}

static void close_numbers(world_t* w) {
  free(w->numbers_host);
  free(w->floats_host);
  free(w->flags_host);
  free(w->plain.out);
  free(w->plain.other);
  kiln_buffer_release(w->numbers);
  kiln_buffer_release(w->floats);
  kiln_buffer_release(w->flags);
}

static void run_all(bench_world_t* base) {
  world_t w;
  memset(&w, 0, sizeof(w));
  w.base = *base;
  w.count = UINT64_C(1) << w.base.log;
  open_numbers(&w);
  bench_copy(&w);
  bench_fold(&w);
  bench_scan(&w, KILN_PROGRAM_TYPE_U32, "scan u32", 178, plain_scan_u32);
  bench_scan(&w, KILN_PROGRAM_TYPE_F32, "scan f32, in order", 178,
             plain_scan_f32);
  if (!w.base.soft) bench_scan_ways(&w);
  bench_scan_segments(&w);
  bench_compact(&w);
  if (!w.base.soft) bench_compact_ways(&w);
  bench_unique(&w);
  bench_runs(&w);
  bench_crc32(&w);
  if (!w.base.soft) bench_crc32_ways(&w);
  bench_lines(&w);
  bench_utf8(&w);
  bench_json_index(&w);
  bench_aho_corasick(&w);
  bench_lz4(&w);
  bench_blake3(&w);
  if (!w.base.soft) {
    static const char* const kThreads[] = {"128", "256", "512", "1024"};
    for (int i = 0; i < 8; i++) {
      bench_blake3_way(&w, kThreads[i / 2], i % 2 == 0 ? "0" : "1");
    }
  }
  bench_sort(&w, "sort", false, 39.7);
  bench_sort(&w, "sort", true, 33.4);
  bench_sort(&w, "merge_sort", false, 0);
  bench_sort(&w, "merge_sort", true, 0);
  for (uint32_t width = 1024; width <= 8192; width *= 2) {
    if (w.count < width) continue;
    bench_rows(&w, "softmax", width);
    bench_rows(&w, "normalize", width);
  }
  bench_histogram(&w, false, 133);
  bench_histogram(&w, true, 82);
  bench_matmul(&w, KILN_PROGRAM_TYPE_F32, 0);
  bench_matmul(&w, KILN_PROGRAM_TYPE_F16, 0);
  bench_matmul(&w, KILN_PROGRAM_TYPE_F16, 32);
  bench_matmul(&w, KILN_PROGRAM_TYPE_F64, 0);
  bench_attention(&w, KILN_PROGRAM_TYPE_F32, 0, false);
  bench_attention(&w, KILN_PROGRAM_TYPE_F32, 67, false);
  bench_attention(&w, KILN_PROGRAM_TYPE_F16, 67, true);
  bench_convolution(&w);
  bench_fft(&w, 10, 0);
  bench_fft(&w, 12, 0);
  bench_fft(&w, w.base.log < 22 ? w.base.log - 2 : 20, 1448);
  bench_segments(&w, 32, 2315);
  bench_segments(&w, 1024, 137);
  bench_segments(&w, 65536, 66);
  bench_transpose(&w);
  for (int i = 0; i < 4; i++) {
    bench_moves(&w, i / 2 == 0 ? "gather" : "scatter", i % 2 == 0);
  }
  bench_philox(&w);
  bench_nbody(&w, 0);
  bench_nbody(&w, 4);
  close_numbers(&w);
}

int main(int argc, char** argv) {
  return bench_world_main(argc, argv, 10, 28, run_all);
}
