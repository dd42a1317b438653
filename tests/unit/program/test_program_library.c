// SPDX-License-Identifier: Apache-2.0
//
// program: the programs of lib/ beside plain C, bit for bit: by the evaluator
// where that is not too slow, and lowered on the software device.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "evaluator_values.h"
#include "kiln/library.h"
#include "library_plain.h"
#include "program/ir/program_object.h"
#include "program/ir/program_types.h"
#include "program_kit.h"
#include "program_machine.h"
#include "test_tree.h"

#if defined(KILNI_SANITIZED)
enum { LESS = 10 };
#else
enum { LESS = 1 };
#endif

static char* file_of(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) fail_msg("%s cannot be read", path);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  long size = ftell(file);
  assert_true(size >= 0);
  rewind(file);
  char* text = calloc(1, (size_t)size + 1);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, (size_t)size, file), size);
  assert_int_equal(fclose(file), 0);
  return text;
}

static char* text_of(const char* name) {
  char path[1024], file[64];
  snprintf(file, sizeof(file), "lib/%s.kiln", name);
  return file_of(test_tree_path(path, sizeof(path), file));
}

// A program, what it is given, and what it should make of it. one-thread
typedef struct job_t {
  const char* name;
  struct {
    const void* data;  // NULL: zeroes
    const void* want;  // NULL: as before
    uint64_t count;
  } buffers[5];
  uint64_t scalars[3];
  bool only_soft;       // the evaluator would take too long
  program_trap_t trap;  // as it was found
} job_t;

static void make_world(const job_t* job, const kilni_program_ir_t* ir,
                       program_world_t* world) {
  memset(world, 0, sizeof(*world));
  for (uint32_t i = 1; i < ir->scalars.count; i++) {
    world->scalars[i] = job->scalars[i - 1];
  }
  for (uint32_t i = 1, n = 0; i < ir->buffers.count; i++) {
    const kilni_program_buffer_record_t* b = &ir->buffers.items[i];
    if (b->function != 0 || b->role == KILN_PROGRAM_ROLE_SHARED ||
        b->role == KILN_PROGRAM_ROLE_PRIVATE) {
      continue;
    }
    size_t bytes = job->buffers[n].count * kilni_program_type_bytes(b->type);
    world->buffers[i].count = job->buffers[n].count;
    world->buffers[i].data = calloc(1, bytes + 8);
    assert_non_null(world->buffers[i].data);
    if (job->buffers[n].data != NULL) {
      memcpy(world->buffers[i].data, job->buffers[n].data, bytes);
    }
    n++;
  }
}

static void check_world(const job_t* job, const kilni_program_ir_t* ir,
                        program_world_t* world, const char* by) {
  for (uint32_t i = 1, n = 0; i < ir->buffers.count; i++) {
    if (world->buffers[i].data == NULL) continue;
    const uint8_t* have = world->buffers[i].data;
    const uint8_t* want = job->buffers[n].want;
    if (want == NULL) want = job->buffers[n].data;
    uint32_t bytes = kilni_program_type_bytes(ir->buffers.items[i].type);
    for (uint64_t k = 0; want != NULL && k < job->buffers[n].count; k++) {
      if (memcmp(have + k * bytes, want + k * bytes, bytes) == 0) continue;
      uint64_t h = 0, w = 0;
      memcpy(&h, have + k * bytes, bytes);
      memcpy(&w, want + k * bytes, bytes);
      fail_msg("%s %s: %s[%llu] is %llx, should be %llx", job->name, by,
               kilni_program_ir_name(ir, ir->buffers.items[i].name),
               (unsigned long long)k, (unsigned long long)h,
               (unsigned long long)w);
    }
    n++;
  }
}

static void run(job_t* job) {
  char* text = text_of(job->name);
  kiln_program_t* program = kit_parse(text);
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  static const uint32_t kTargets[] = {0, 75, 90};
  static const char* const kBy[] = {"by the evaluator", "for sm_75",
                                    "for sm_90"};
  for (uint32_t way = job->only_soft ? 1 : 0; way < 3; way++) {
    program_world_t world;
    make_world(job, ir, &world);
    if (way == 0) {
      const char* wrong = program_evaluate(ir, &world);
      if (wrong != NULL) fail_msg("%s: %s", job->name, wrong);
    } else {
      kiln_program_lower_options_t options =
          kiln_program_lower_options_default();
      options.sm = kTargets[way];
      machine_run(ir, &options, &world);
    }
    job->trap = world.trap;
    check_world(job, ir, &world, kBy[way]);
    for (uint32_t i = 0; i < PROGRAM_BUFFERS_MAX; i++) {
      free(world.buffers[i].data);
    }
  }
  kiln_program_release(program);
  free(text);
}

// ---- Inputs ----

static uint64_t next(uint64_t* state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static void* zeroes(size_t count, size_t bytes) {
  void* data = calloc(count + 1, bytes);
  assert_non_null(data);
  return data;
}

static uint8_t* random_bytes(size_t count, uint64_t seed) {
  uint8_t* data = zeroes(count, 1);
  for (size_t i = 0; i < count; i++) data[i] = (uint8_t)next(&seed);
  return data;
}

// Sums of them are rounded, and now and then one is large, tiny or infinite.
static float* random_floats(size_t count, uint64_t seed) {
  float* data = zeroes(count, sizeof(float));
  for (size_t i = 0; i < count; i++) {
    uint64_t bits = next(&seed);
    data[i] = (float)(int32_t)bits * 0x1p-28f;
    if (bits >> 40 == 1) data[i] = 1e30f;
    if (bits >> 58 == 2) data[i] *= 1e-30f;
  }
  return data;
}

// ---- The first four ----

static void test_lines(void** state) {
  (void)state;
  static const uint32_t kSizes[] = {1, 2, 31, 255, 256, 4095, 4097, 10001};
  for (uint32_t s = 0; s < sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint32_t n = kSizes[s];
    float* x = random_floats(n, s);
    float* y = random_floats(n, s + 100);
    float* want = zeroes(n, sizeof(float));
    plain_map(x, want, n);
    job_t map = {.name = "map", .buffers = {{x, NULL, n}, {NULL, want, n}}};
    run(&map);
    memcpy(want, y, n * sizeof(float));
    plain_saxpy(3.1415927f, x, want, n);
    job_t saxpy = {.name = "saxpy",
                   .buffers = {{x, NULL, n}, {y, want, n}},
                   .scalars = {0x40490fdb}};
    run(&saxpy);
    plain_reduce(x, n, want);
    job_t reduce = {.name = "reduce",
                    .buffers = {{x, NULL, n}, {NULL, want, (n + 4095) / 4096}}};
    run(&reduce);
    free(x);
    free(y);
    free(want);
  }
}

static void test_transpose(void** state) {
  (void)state;
  static const uint32_t kSizes[][2] = {{1, 1},   {1, 40},  {33, 1},
                                       {31, 33}, {64, 32}, {100, 67}};
  for (uint32_t s = 0; s < sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint32_t w = kSizes[s][0], h = kSizes[s][1], n = w * h;
    float* x = random_floats(n, s);
    float* want = zeroes(n, sizeof(float));
    plain_transpose(x, want, w, h);
    job_t job = {.name = "transpose",
                 .buffers = {{x, NULL, n}, {NULL, want, n}},
                 .scalars = {w, h}};
    run(&job);
    free(x);
    free(want);
  }
}

// ---- Histogram ----

static void histogram_of(const uint8_t* x, size_t n) {
  uint32_t want[256];
  plain_histogram(x, n, want);
  job_t job = {.name = "histogram",
               .buffers = {{x, NULL, n}, {NULL, want, 256}},
               .only_soft = n > 20000};
  run(&job);
}

static void test_histogram(void** state) {
  (void)state;
  static const uint32_t kSizes[] = {1, 3, 1023, 16384, 16385, 100001};
  for (uint32_t s = 0; s < sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint8_t* x = random_bytes(kSizes[s], s);
    histogram_of(x, kSizes[s]);
    // All threads want the same count.
    memset(x, 255, kSizes[s]);
    histogram_of(x, kSizes[s]);
    free(x);
  }
  char path[1024];
  char* text = file_of(test_tree_path(path, sizeof(path), "README.md"));
  histogram_of((const uint8_t*)text, strlen(text));
  free(text);
}

// ---- Mandelbrot ----

static void test_mandelbrot(void** state) {
  (void)state;
  static const uint32_t kSizes[][3] = {
      {1, 1, 10}, {7, 5, 100}, {64, 48, 1}, {37, 30, 0}, {97, 61, 300}};
  for (uint32_t s = 0; s < sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint32_t w = kSizes[s][0], h = kSizes[s][1], n = w * h * 3;
    uint8_t* want = zeroes(n, 1);
    plain_mandelbrot(want, w, h, kSizes[s][2]);
    job_t job = {.name = "mandelbrot",
                 .buffers = {{NULL, want, n}},
                 .scalars = {w, h, kSizes[s][2]},
                 .only_soft = s > 2};
    run(&job);
    free(want);
  }
}

// ---- Matrix product ----

static void test_matmul(void** state) {
  (void)state;
  static const uint32_t kSizes[][3] = {
      {1, 1, 1},      {3, 5, 7},      {2, 3, 0},    {9, 130, 8},
      {128, 128, 16}, {129, 127, 33}, {17, 300, 64}};
  for (uint32_t s = 0; s < sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint32_t m = kSizes[s][0], n = kSizes[s][1], k = kSizes[s][2];
    float* a = random_floats((size_t)m * k, s);
    float* b = random_floats((size_t)k * n, s + 50);
    float* want = zeroes((size_t)m * n, sizeof(float));
    plain_matmul(a, b, want, m, n, k);
    job_t job = {.name = "matmul",
                 .buffers = {{a, NULL, (uint64_t)m * k},
                             {b, NULL, (uint64_t)k * n},
                             {NULL, want, (uint64_t)m * n}},
                 .scalars = {m, n, k},
                 .only_soft = s > 3 || LESS > 1};
    run(&job);
    free(a);
    free(b);
    free(want);
  }
}

static uint16_t* halves_of(const float* from, size_t count) {
  uint16_t* data = zeroes(count, sizeof(*data));
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &from[i], sizeof(bits));
    data[i] = (uint16_t)program_cast(KILN_PROGRAM_TYPE_F32,
                                     KILN_PROGRAM_TYPE_F16, bits);
  }
  return data;
}

// Strictly the same chains, by words or without them.
static void test_matmul_half(void** state) {
  (void)state;
  static const uint32_t kSizes[][3] = {{1, 1, 1},     {3, 5, 7},
                                       {2, 3, 0},     {130, 8, 8},
                                       {40, 136, 40}, {17, 300, 33}};
  for (uint32_t s = 0; s < 2 * sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint32_t m = kSizes[s / 2][0], n = kSizes[s / 2][1], k = kSizes[s / 2][2];
    float* a = zeroes((size_t)m * k, sizeof(float));
    float* b = zeroes((size_t)k * n, sizeof(float));
    float* sums = zeroes((size_t)m * n, sizeof(float));
    uint64_t seed = s;
    for (uint32_t i = 0; i < m * k; i++) a[i] = (float)(next(&seed) % 99) - 49;
    for (uint32_t i = 0; i < k * n; i++) {
      b[i] = (float)(next(&seed) % 1024) * 0x1p-12f - 0.1f;
    }
    uint16_t* x = halves_of(a, (size_t)m * k);
    uint16_t* y = halves_of(b, (size_t)k * n);
    for (uint32_t i = 0; i < k * n; i++) {
      uint32_t wide = (uint32_t)program_cast(KILN_PROGRAM_TYPE_F16,
                                             KILN_PROGRAM_TYPE_F32, y[i]);
      memcpy(&b[i], &wide, sizeof(wide));
    }
    plain_matmul(a, b, sums, m, n, k);
    uint16_t* want = halves_of(sums, (size_t)m * n);
    bool words = s % 2 == 1;
    job_t job = {.name = "matmul_half",
                 .buffers = {{x, NULL, (uint64_t)m * k},
                             {y, NULL, (uint64_t)k * n},
                             {NULL, want, (uint64_t)m * n},
                             {x, NULL, words ? (uint64_t)m * k / 2 : 0},
                             {y, NULL, words ? (uint64_t)k * n / 2 : 0}},
                 .scalars = {m, n, k},
                 .only_soft = s > 5 || LESS > 1};
    run(&job);
    free(a);
    free(b);
    free(sums);
    free(x);
    free(y);
    free(want);
  }
}

// What lies beyond the end of a row of a is not a part of the sums: neither
// the next row's infinity, nor a 0 that would turn a sum of -0.
static void test_matmul_edges(void** state) {
  (void)state;
  const float a[] = {1e-30f, 2, 1.0f / 0.0f, 4};
  const float b[] = {-1e-30f, 1, 0, 0};
  float want[4];
  plain_matmul(a, b, want, 2, 2, 2);
  job_t job = {.name = "matmul",
               .buffers = {{a, NULL, 4}, {b, NULL, 4}, {NULL, NULL, 4}},
               .scalars = {2, 2, 2}};
  run(&job);
  const float c[] = {1e-30f, 1.0f / 0.0f};
  const float d[] = {-1e-30f};
  const float minus[] = {-0.0f, -1.0f / 0.0f};
  plain_matmul(c, d, want, 2, 1, 1);
  assert_memory_equal(want, minus, sizeof(minus));
  job_t zero = {.name = "matmul",
                .buffers = {{c, NULL, 2}, {d, NULL, 1}, {NULL, minus, 2}},
                .scalars = {2, 1, 1}};
  run(&zero);
}

// ---- Blur ----

static void test_blur(void** state) {
  (void)state;
  static const uint32_t kSizes[][3] = {{1, 1, 1},  {2, 3, 4},   {5, 1, 3},
                                       {1, 9, 2},  {70, 37, 1}, {33, 65, 3},
                                       {64, 32, 4}};
  for (uint32_t s = 0; s < sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint32_t w = kSizes[s][0], h = kSizes[s][1], c = kSizes[s][2];
    uint8_t* x = random_bytes(w * h * c, s);
    uint8_t* want = zeroes(w * h * c, 1);
    plain_blur(x, want, (int)w, (int)h, (int)c);
    job_t job = {.name = "blur",
                 .buffers = {{x, NULL, w * h * c}, {NULL, want, w * h * c}},
                 .scalars = {w, h, c},
                 .only_soft = LESS > 1 && s > 4};
    run(&job);
    free(x);
    free(want);
  }
  const uint8_t five[] = {9, 9, 9, 9, 9}, none[5] = {0};
  job_t job = {.name = "blur",
               .buffers = {{five, NULL, 5}, {NULL, none, 5}},
               .scalars = {1, 1, 5}};
  run(&job);
  assert_int_equal(job.trap.set, 1);
  assert_int_equal(job.trap.tag, 1);
  assert_int_equal(job.trap.address, 5);
}

// ---- Game of Life ----

static void test_life(void** state) {
  (void)state;
  static const uint32_t kSizes[][3] = {
      {1, 1, 1},    {2, 2, 3},   {3, 5, 16},   {31, 7, 2},   {32, 33, 0},
      {33, 40, 16}, {64, 64, 1}, {100, 61, 7}, {961, 70, 5}, {990, 50, 16}};
  for (uint32_t s = 0; s < sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint32_t w = kSizes[s][0], h = kSizes[s][1], n = w * h;
    uint8_t* cells = random_bytes(n, s);
    // About a third of them live, by any number that is not 0.
    for (uint32_t i = 0; i < n; i++) cells[i] = cells[i] < 80 ? cells[i] : 0;
    uint8_t* want = zeroes(n, 1);
    plain_life(cells, want, w, h, kSizes[s][2]);
    job_t job = {.name = "life",
                 .buffers = {{cells, NULL, n}, {NULL, want, n}},
                 .scalars = {w, h, kSizes[s][2]},
                 .only_soft = s != 3 || LESS > 1};
    run(&job);
    free(cells);
    free(want);
  }
  const uint8_t one = 1, none = 0;
  job_t job = {.name = "life",
               .buffers = {{&one, NULL, 1}, {NULL, &none, 1}},
               .scalars = {1, 1, 17}};
  run(&job);
  assert_int_equal(job.trap.set, 1);
  assert_int_equal(job.trap.address, 17);
}

// ---- UTF-8 ----

static const uint8_t kEdges[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
                                 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0,
                                 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1,
                                 0xf3, 0xf4, 0xf5, 0xff};
enum { EDGES = sizeof(kEdges), ENDS = EDGES * EDGES * EDGES * EDGES };

static const char kOfFour[] =
    "program p(x: in u8[], o: out bool[length(x) / 4]) work length(x) / 4\n"
    "{\n"
    "  let i = global_id.x * 4;\n"
    "  let is_one = starts(x[i], x[i + 1], x[i + 2], x[i + 3]);\n"
    "  o[global_id.x] = is_one;\n"
    "}\n";

// The program's own table of what starts a character, on every four bytes at
// which table 3-7 of the Unicode Standard begins, ends or is divided.
static void test_utf8_table(void** state) {
  (void)state;
  char* text = text_of("utf8");
  char* end = strstr(text, "\nprogram ");
  assert_non_null(end);
  char* whole = zeroes(strlen(text) + sizeof(kOfFour), 1);
  memcpy(whole, text, (size_t)(end - text) + 1);
  strcat(whole, kOfFour);
  kiln_program_t* program = kit_parse(whole);
  uint32_t count = ENDS / LESS;
  uint8_t* fours = zeroes(count, 4);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t n = i * LESS;
    for (uint32_t k = 0; k < 4; k++, n /= EDGES) {
      fours[i * 4 + k] = kEdges[n % EDGES];
    }
  }
  job_t job = {
      .buffers = {{fours, NULL, count * UINT64_C(4)}, {NULL, NULL, count}}};
  program_world_t world;
  make_world(&job, kilni_program_ir(program), &world);
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  machine_run(kilni_program_ir(program), &options, &world);
  const uint8_t* have = world.buffers[2].data;
  uint32_t characters = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t* x = fours + i * 4;
    bool want = plain_utf8_character(x, 4) > 1;
    characters += want;
    if ((have[i] != 0) != want) {
      fail_msg("%02x %02x %02x %02x: should be %d", x[0], x[1], x[2], x[3],
               want);
    }
  }
  assert_true(characters > 5000u / LESS);
  free(world.buffers[1].data);
  free(world.buffers[2].data);
  free(fours);
  free(whole);
  free(text);
  kiln_program_release(program);
}

// The program loaded once and run on many texts. one-thread
typedef struct validator_t {
  soft_kit_t kit;
  kiln_program_code_t* code;
  uint64_t text, left;
} validator_t;

enum { TEXT_MOST = 600, TILE = 16384 };

static void open_validator(validator_t* v) {
  char* text = text_of("utf8");
  kiln_program_t* program = kit_parse(text);
  assert_true(kiln_status_is_ok(kiln_program_lower(program, NULL, &v->code)));
  soft_kit_way_t way;
  assert_true(soft_kit_way(0, &way));
  soft_kit_open(&v->kit, &way);
  soft_kit_load(&v->kit, kiln_program_code_text(v->code).data);
  kiln_program_release(program);
  free(text);
}

static void close_validator(validator_t* v) {
  soft_kit_close(&v->kit);
  kiln_program_code_release(v->code);
}

static void validate(validator_t* v, const uint8_t* text, size_t size) {
  uint8_t words[64];
  size_t used = 0;
  uint64_t addresses[2] = {soft_kit_buffer(&v->kit, text, size),
                           soft_kit_buffer(&v->kit, NULL, 4)};
  uint64_t lengths[2] = {size, 1};
  kiln_program_parameter_t p;
  for (uint32_t i = 0; kiln_program_code_parameter(v->code, i, &p); i++) {
    uint64_t value = p.kind == KILN_PROGRAM_PARAMETER_ADDRESS
                         ? addresses[p.index]
                     : p.kind == KILN_PROGRAM_PARAMETER_LENGTH
                         ? lengths[p.index]
                         : (size + TILE - 1) / TILE * 256;
    uint32_t bytes = kilni_program_type_bytes((uint8_t)p.type);
    used = (used + bytes - 1) / bytes * bytes;
    assert_true(used + 8 <= sizeof(words));
    memcpy(words + used, &value, bytes);
    used += bytes;
  }
  const uint64_t work[3] = {(size + TILE - 1) / TILE * 256, 1, 1};
  uint32_t grid[3];
  kiln_program_code_grid(v->code, work, grid);
  const uint32_t block[3] = {256, 1, 1};
  assert_int_equal(soft_kit_launch(&v->kit, kiln_program_code_entry(v->code),
                                   grid, block, 0, words, used),
                   KILNI_SOFT_FAULT_NONE);
  uint32_t left;
  soft_kit_read(&v->kit, addresses[1], &left, 4);
  size_t want = plain_utf8(text, size);
  if (left == want) return;
  for (size_t i = 0; i < size; i++) fprintf(stderr, "%02x ", text[i]);
  fail_msg("%u left of %zu, should be %zu", left, size, want);
}

// Each character or part of one between ASCII, at every place among the 16
// bytes of a thread, and at the end of the text.
static void test_utf8_places(void** state) {
  (void)state;
  static const char* const kParts[] = {
      "\x80",         "\xbf\x80",         "\xc2",
      "\xc2\x80",     "\xdf\xbf",         "\xc1\xbf",
      "\xc2\x80\x80", "\xe0\xa0\x80",     "\xe0\x9f\xbf",
      "\xe0\xa0",     "\xed\x9f\xbf",     "\xed\xa0\x80",
      "\xef\xbf\xbf", "\xef\xbf\xbf\x80", "\xf0\x90\x80\x80",
      "\xf0\x8f\xbf", "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80",
      "\xf1\x80\x80", "\xf5\x80\x80\x80", "\xf1\x80\x80\x80\x80",
      "\xff",         "\xf1\x80\x80\xc2", "\xe1\x80\xc2\x80"};
  validator_t* v = zeroes(1, sizeof(validator_t));
  open_validator(v);
  for (uint32_t p = 0; p < sizeof(kParts) / sizeof(kParts[0]); p++) {
    size_t size = strlen(kParts[p]);
    for (size_t at = 0; at < 40; at += LESS > 1 ? 3 : 1) {
      uint8_t text[64];
      memset(text, 'a', sizeof(text));
      memcpy(text + at, kParts[p], size);
      validate(v, text, sizeof(text));
      validate(v, text, at + size);
      // In the middle of others.
      for (size_t i = 0; i + 3 <= at; i += 3) {
        memcpy(text + i, "\xe2\x82\xac", 3);
      }
      validate(v, text, sizeof(text));
    }
  }
  close_validator(v);
  free(v);
}

// Characters in a row and, in most texts, one byte that is wrong.
static void test_utf8_texts(void** state) {
  (void)state;
  validator_t* v = zeroes(1, sizeof(validator_t));
  open_validator(v);
  uint64_t seed = 9;
  uint32_t valid = 0;
  for (uint32_t round = 0; round < 3000 / LESS; round++) {
    uint8_t text[TEXT_MOST + 4];
    size_t size = 0, most = next(&seed) % TEXT_MOST + 1;
    while (size < most) {
      uint64_t pick = next(&seed);
      uint8_t four[4];
      for (uint32_t k = 0; k < 4; k++) {
        four[k] = kEdges[(pick >> 8 * k) % EDGES];
      }
      if (pick >> 60 < 8) four[0] = 'x';
      size_t bytes = plain_utf8_character(four, 4);
      memcpy(text + size, four, bytes);
      size += bytes;
    }
    if (round % 4 != 0) {
      text[next(&seed) % size] = kEdges[next(&seed) % EDGES];
    }
    if (round % 8 == 1) size = most;
    valid += plain_utf8(text, size) == 0;
    validate(v, text, size);
  }
  assert_true(valid > 500u / LESS && valid < 2500u / LESS);
  char path[1024];
  char* page = file_of(test_tree_path(path, sizeof(path), "README.md"));
  validate(v, (const uint8_t*)page, strlen(page));
  free(page);
  close_validator(v);
  free(v);
}

// ---- All of them ----

// What each is lowered to reads no register that is not written, which
// machine_lower sees.
static void test_defined(void** state) {
  (void)state;
  static const uint32_t kTargets[] = {75, 80, 90};
  const uint32_t none = 2 * MACHINE_LAST_PASS - 1;
  kiln_library_entry_t entry;
  for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
    for (uint32_t t = 0; t < 3; t++) {
      free(machine_ptx(entry.text.data, kTargets[t], 0));
      free(machine_ptx(entry.text.data, kTargets[t], none));
    }
  }
}

// ---- Texts for ptxas ----

static int collect(void) {
  static const uint32_t kTargets[] = {75, 80, 90};
  kiln_library_entry_t entry;
  for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
    for (uint32_t t = 0; t < 3; t++) {
      machine_check_way(entry.text.data, NULL, NULL, 0, kTargets[t], 0);
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  machine_collect(argc, argv);
  if (argc > 1) return collect();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lines),       cmocka_unit_test(test_transpose),
      cmocka_unit_test(test_histogram),   cmocka_unit_test(test_mandelbrot),
      cmocka_unit_test(test_matmul),      cmocka_unit_test(test_matmul_edges),
      cmocka_unit_test(test_matmul_half), cmocka_unit_test(test_blur),
      cmocka_unit_test(test_life),        cmocka_unit_test(test_utf8_table),
      cmocka_unit_test(test_utf8_places), cmocka_unit_test(test_utf8_texts),
      cmocka_unit_test(test_defined),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
