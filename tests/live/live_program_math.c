// SPDX-License-Identifier: Apache-2.0
//
// live: strict math as a device computes it, judged by this machine's cores:
// every f32 for the functions of one operand, 1e8 seeded numbers for those of
// two and for f64, and the cases known to be hard.
//
//   live_program_math [cuda | soft] [f32 | f64 | both] [COUNT]
//
// cuda, as without a word: on cuda:0; exit 77 without a GPU. With a COUNT that
// many seeded numbers a function. On soft seeded numbers only if a COUNT is
// given: every f32 takes it an hour of one core a function.
//
// The judge is the C library in double (f32) or long double (f64). Its own
// error is measured in the same run, against MPFR on numbers of every share,
// and MPFR has the word where it says more than 0.9. Digests are
// sums over all numbers: those of every f32 do not depend on the device, and
// are compared with those that were recorded.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "evaluator_values.h"
#include "kiln/kiln.h"
#include "kiln/program.h"
#include "kiln/program_code.h"
#include "math_judge.h"
#include "math_points.h"

enum {
  THREADS_MAX = 64,
  CHUNK = 1 << 24,
  POINTS = 100000000,
  ALIKE = 1 << 20,  // numbers that soft computes as well
  ASKED = 16,       // numbers of a share that MPFR is asked about
};

// The digests of every f32, as an H200 had them on 2026-11-21.
static const struct {
  const char* name;
  uint64_t digest;
} DIGESTS[] = {
    {"EXP", UINT64_C(0x06c012af436c7904)},
    {"EXP2", UINT64_C(0xd61dd44db1917665)},
    {"LOG", UINT64_C(0xc43ca7d3589e81cd)},
    {"LOG2", UINT64_C(0xee32e2fce861677c)},
    {"SIN", UINT64_C(0x68778d1c52547c35)},
    {"COS", UINT64_C(0x355246e6d971b54e)},
    {"TAN", UINT64_C(0x324299c4fdfd669c)},
    {"ASIN", UINT64_C(0x581ed14932252820)},
    {"ACOS", UINT64_C(0xf35f89464651ebda)},
    {"ATAN", UINT64_C(0x3af0a646407fa2be)},
    {"SINH", UINT64_C(0xab16c8deed4a6c0b)},
    {"COSH", UINT64_C(0x64ed2104fcbb6783)},
    {"TANH", UINT64_C(0xa5a0b9a33ae5b19a)},
    {"INVERSE_SQRT", UINT64_C(0x898ff5d5640993ed)},
};

static bool is_recorded(const char* name, uint64_t digest) {
  for (size_t i = 0; i < sizeof DIGESTS / sizeof *DIGESTS; i++) {
    if (strcmp(DIGESTS[i].name, name) == 0) {
      return DIGESTS[i].digest == digest;
    }
  }
  return false;
}

// How far the judge may be from MPFR, in ULP of the type.
static const double APART_F32 = 1e-6;
static const double APART_F64 = 0.01;
static const double TRUST = 0.9;

#define F32 KILN_PROGRAM_TYPE_F32
#define F64 KILN_PROGRAM_TYPE_F64

// A device with space for one chunk. one-thread
typedef struct bench_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_buffer_t* x;
  kiln_buffer_t* y;
  kiln_buffer_t* out;
  uint32_t chunk;
  uint32_t threads;
  kiln_buffer_t* pinned[3];  // what the next three are in
  uint64_t* host_x;
  uint64_t* host_y;
  uint64_t* host_out;
} bench_t;

// What one core judges. one-thread
typedef struct share_t {
  const math_function_t* function;
  uint8_t type;
  bool every;  // numbers from `base` on; else those of x and y
  uint32_t base;
  uint32_t from;
  uint32_t to;
  uint64_t seed;
  const bench_t* bench;
  double worst;
  uint64_t worst_x;
  uint64_t worst_y;
  uint64_t doubted;  // how often MPFR had the word
  uint64_t astray;   // f32 that are not the nearest
  uint64_t digest;
  double apart;  // the judge from MPFR, at most
} share_t;

static bool ok(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return true;
  printf("%s\n", kiln_status_message(status));
  kiln_status_free(status);
  return false;
}

static uint64_t at(const uint64_t* words, uint8_t type, uint32_t i) {
  return type == F64 ? words[i] : ((const uint32_t*)(const void*)words)[i];
}

static void put(uint64_t* words, uint8_t type, uint32_t i, uint64_t value) {
  if (type == F64) {
    words[i] = value;
  } else {
    ((uint32_t*)(void*)words)[i] = (uint32_t)value;
  }
}

static float as_f32(uint32_t bits) {
  float value = 0.0F;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double as_f64(uint64_t bits) {
  double value = 0.0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// A word of a number and its result, to be summed.
static uint64_t mix(uint64_t x, uint64_t result) {
  uint64_t z = (x ^ result << 32U ^ result >> 32U) + (x << 7U) + result;
  z = (z ^ z >> 30U) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27U) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31U;
}

// The quick word on a result.
static double quick(const share_t* s, uint64_t x, uint64_t y, uint64_t got) {
  if (s->type == F64) {
    return math_quick_error(s->function, F64, as_f64(x), as_f64(y),
                            as_f64(got));
  }
  const float a = as_f32((uint32_t)x), r = as_f32((uint32_t)got);
  if (!s->function->two) return math_quicker_error(s->function, a, r);
  return math_quick_error(s->function, F32, (double)a,
                          (double)as_f32((uint32_t)y), (double)r);
}

// What MPFR says of a number, and how far the quick word is from it.
static double ask(share_t* s, uint64_t x, uint64_t y, uint64_t got) {
  const double exact = math_error(s->function, s->type, x, y, got, 0.0);
  const double apart = fabs(exact - quick(s, x, y, got));
  if (exact < 1e8 && apart > s->apart) s->apart = apart;
  return exact;
}

static void look(share_t* s, uint32_t i) {
  const bench_t* b = s->bench;
  uint64_t got = at(b->host_out, s->type, i);
  const uint64_t x = s->every ? s->base + i : at(b->host_x, s->type, i);
  const uint64_t y = s->every ? 0U : at(b->host_y, s->type, i);
  double error = quick(s, x, y, got);
  if (error > TRUST) {
    error = math_error(s->function, s->type, x, y, got, 0.0);
    s->doubted++;
  }
  if (error > 0.5 + APART_F32) s->astray++;
  if (s->type == F32 && (got & 0x7fffffffU) > 0x7f800000U) got = 0x7fc00000U;
  s->digest += mix(x, got);
  if (error > s->worst) {
    s->worst = error;
    s->worst_x = x;
    s->worst_y = y;
  }
}

static void* judge(void* user) {
  share_t* s = user;
  const bench_t* b = s->bench;
  for (uint32_t i = s->from; i < s->to; i++) look(s, i);
  uint64_t seed = s->seed + s->base + s->from;
  for (uint32_t k = 0; k < (uint32_t)ASKED && s->from < s->to; k++) {
    const uint64_t word = math_sample(F64, &seed) ^ seed;
    const uint32_t i = s->from + (uint32_t)(word % (s->to - s->from));
    const uint64_t x = s->every ? s->base + i : at(b->host_x, s->type, i);
    const uint64_t y = s->every ? 0U : at(b->host_y, s->type, i);
    const double error = ask(s, x, y, at(b->host_out, s->type, i));
    if (error > s->worst) {
      s->worst = error;
      s->worst_x = x;
      s->worst_y = y;
    }
  }
  math_judge_end();
  return NULL;
}

static void* sample(void* user) {
  share_t* s = user;
  for (uint32_t i = s->from; i < s->to; i++) {
    put(s->bench->host_x, s->type, i, math_sample(s->type, &s->seed));
    put(s->bench->host_y, s->type, i, math_sample(s->type, &s->seed));
  }
  return NULL;
}

// `work` on every core, each with its share of `count`.
static void on_all(const bench_t* b, share_t* total, uint32_t count,
                   void* (*work)(void*)) {
  pthread_t threads[THREADS_MAX];
  share_t shares[THREADS_MAX];
  for (uint32_t t = 0; t < b->threads; t++) {
    shares[t] = *total;
    shares[t].from = (uint32_t)((uint64_t)count * t / b->threads);
    shares[t].to = (uint32_t)((uint64_t)count * (t + 1U) / b->threads);
    shares[t].seed = total->seed ^ (uint64_t)t << 48U;
    shares[t].doubted = shares[t].astray = shares[t].digest = 0;
    shares[t].apart = 0.0;
    if (pthread_create(&threads[t], NULL, work, &shares[t]) != 0) {
      (void)work(&shares[t]);
      threads[t] = pthread_self();
    }
  }
  for (uint32_t t = 0; t < b->threads; t++) {
    if (!pthread_equal(threads[t], pthread_self())) {
      (void)pthread_join(threads[t], NULL);
    }
    total->doubted += shares[t].doubted;
    total->astray += shares[t].astray;
    total->digest += shares[t].digest;
    if (shares[t].apart > total->apart) total->apart = shares[t].apart;
    if (shares[t].worst > total->worst) {
      total->worst = shares[t].worst;
      total->worst_x = shares[t].worst_x;
      total->worst_y = shares[t].worst_y;
    }
  }
}

// A kernel of one function. Its parameters: base, then x and y where they are,
// and out.
static kiln_kernel_t* make_kernel(const bench_t* b, const math_function_t* f,
                                  uint8_t type, bool every,
                                  kiln_program_code_t** out_code) {
  char name[32], text[512];
  const char* word = type == F64 ? "f64" : "f32";
  uint32_t i = 0;
  for (; f->name[i] != '\0' && i < sizeof name - 1U; i++) {
    const char letter = f->name[i];
    name[i] = letter >= 'A' && letter <= 'Z' ? (char)(letter + 32) : letter;
  }
  name[i] = '\0';
  const char* call = f->op == KILN_PROGRAM_BINARY_REM && f->two ? "" : name;
  const char* between = call == name ? ", " : " % ";
  snprintf(text, sizeof text,
           "program m(base: u32, n: u32, x: in %s[], y: in %s[],\n"
           "    o: out %s[]) work n block 256 {\n"
           "  let i = global_id.x;\n"
           "  o[i] = %s(%s%s%s);\n}\n",
           word, word, word, call, every ? "bitcast_f32(base + i)" : "x[i]",
           f->two ? between : "", f->two ? "y[i]" : "");
  kiln_program_t* program = NULL;
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  const kiln_string_view_t view = {text, strlen(text)};
  if (ok(kiln_program_parse(view, NULL, NULL, &program)) &&
      ok(kiln_program_lower(program, NULL, out_code))) {
    const kiln_string_view_t ptx = kiln_program_code_text(*out_code);
    const kiln_bytes_view_t image = {(const uint8_t*)ptx.data, ptx.size + 1U};
    if (ok(kiln_module_load(b->device, image, NULL, NULL, &module)) &&
        !ok(kiln_kernel_create(module, kiln_program_code_entry(*out_code),
                               &kernel))) {
      kernel = NULL;
    }
  }
  kiln_module_release(module);
  kiln_program_release(program);
  return kernel;
}

static bool launch(const bench_t* b, kiln_kernel_t* kernel,
                   const kiln_program_code_t* code, uint32_t base,
                   uint32_t count) {
  const kiln_buffer_t* buffers[] = {b->x, b->y, b->out};
  kiln_argument_t arguments[16];
  kiln_program_parameter_t p;
  uint32_t n = 0;
  for (; n < 16U && kiln_program_code_parameter(code, n, &p); n++) {
    switch (p.kind) {
      case KILN_PROGRAM_PARAMETER_ADDRESS:
        arguments[n] = kiln_arg_u64(kiln_buffer_address(buffers[p.index]));
        break;
      case KILN_PROGRAM_PARAMETER_LENGTH:
        arguments[n] = kiln_arg_u64(count);
        break;
      case KILN_PROGRAM_PARAMETER_SCALAR:
        arguments[n] = kiln_arg_u32(p.index == 0U ? base : count);
        break;
      default:
        arguments[n] = kiln_arg_u32(count);
        break;
    }
  }
  kiln_launch_config_t config = kiln_launch_config_default();
  config.grid[0] = (count + 255U) / 256U;
  config.block[0] = 256;
  return ok(kiln_kernel_launch(kernel, b->stream, &config, arguments, n)) &&
         ok(kiln_stream_synchronize(b->stream));
}

// The cases known to be hard, into the first half of a chunk at most.
static void put_hard(const bench_t* b, const math_function_t* f, uint8_t type,
                     uint32_t part) {
  uint64_t x = 0, y = 0;
  uint32_t all = 0;
  while (math_hard(f, type, all, &x, &y)) all++;
  const uint32_t apart = all / (part / 2U + 1U) + 1U;
  for (uint32_t i = 0; math_hard(f, type, i * apart, &x, &y); i++) {
    put(b->host_x, type, i, x);
    put(b->host_y, type, i, y);
  }
}

// The numbers of host_x and host_y, `part` of them, through the kernel.
static bool compute(const bench_t* b, kiln_kernel_t* kernel,
                    const kiln_program_code_t* code, uint8_t type,
                    uint32_t part) {
  const size_t bytes = (size_t)part * (type == F64 ? 8U : 4U);
  return ok(kiln_buffer_write(b->x, 0, bytes, b->host_x)) &&
         ok(kiln_buffer_write(b->y, 0, bytes, b->host_y)) &&
         launch(b, kernel, code, 0, part) &&
         ok(kiln_buffer_read(b->out, 0, bytes, b->host_out));
}

// Whether soft and the device have the same bits for some numbers.
static bool same_on_soft(const bench_t* b, const bench_t* soft,
                         const math_function_t* f, uint8_t type) {
  share_t total = {.function = f, .type = type, .bench = soft, .seed = f->op};
  kiln_program_code_t *code = NULL, *soft_code = NULL;
  kiln_kernel_t* kernel = make_kernel(b, f, type, false, &code);
  kiln_kernel_t* twin = make_kernel(soft, f, type, false, &soft_code);
  const size_t bytes = (size_t)soft->chunk * 8U;
  uint32_t wrong = 0;
  on_all(soft, &total, soft->chunk, sample);
  put_hard(soft, f, type, soft->chunk);
  memcpy(b->host_x, soft->host_x, bytes);
  memcpy(b->host_y, soft->host_y, bytes);
  const bool ran = kernel != NULL && twin != NULL &&
                   compute(b, kernel, code, type, soft->chunk) &&
                   compute(soft, twin, soft_code, type, soft->chunk);
  for (uint32_t i = 0; ran && i < soft->chunk; i++) {
    const uint64_t want = at(soft->host_out, type, i);
    const uint64_t got = at(b->host_out, type, i);
    if (program_same(type, want, got)) continue;
    if (wrong++ < 3U) {
      printf("%s %s of %a, %a: soft %llx, the GPU %llx\n", f->name,
             type == F64 ? "f64" : "f32",
             program_number(type, at(b->host_x, type, i)),
             program_number(type, at(b->host_y, type, i)),
             (unsigned long long)want, (unsigned long long)got);
    }
  }
  kiln_kernel_release(kernel);
  kiln_kernel_release(twin);
  kiln_program_code_release(code);
  kiln_program_code_release(soft_code);
  return ran && wrong == 0U;
}

static void tell(const share_t* total, uint64_t done, double spent) {
  printf(
      "%-12s %s %10llu %s: %.5f ULP at %a, %a; judge %.1e from MPFR; "
      "%llu doubted",
      total->function->name, total->type == F64 ? "f64" : "f32",
      (unsigned long long)done, total->every ? "(all)" : "seeded", total->worst,
      program_number(total->type, total->worst_x),
      program_number(total->type, total->worst_y), total->apart,
      (unsigned long long)total->doubted);
  if (total->type == F32) {
    printf("; %llu not the nearest", (unsigned long long)total->astray);
  }
  if (total->every) {
    printf("; digest %016llx", (unsigned long long)total->digest);
  }
  printf("; %.1f s\n", spent);
  (void)fflush(stdout);
}

// One function over `count` numbers; false if it is an ULP off or more.
static bool run(const bench_t* b, const math_function_t* f, uint8_t type,
                uint64_t count, bool every) {
  kiln_program_code_t* code = NULL;
  kiln_kernel_t* kernel = make_kernel(b, f, type, every, &code);
  share_t total = {.function = f,
                   .type = type,
                   .every = every,
                   .bench = b,
                   .worst = -1.0,
                   .seed = f->op + 7U};
  struct timespec start, end;
  bool good = kernel != NULL;
  uint64_t done = 0;
  (void)clock_gettime(CLOCK_MONOTONIC, &start);
  while (good && done < count) {
    const uint64_t left = count - done;
    const uint32_t part = left < b->chunk ? (uint32_t)left : b->chunk;
    total.base = (uint32_t)done;
    total.seed += UINT64_C(0x100000001);
    if (every) {
      good = launch(b, kernel, code, total.base, part) &&
             ok(kiln_buffer_read(b->out, 0, (size_t)part * 4U, b->host_out));
    } else {
      on_all(b, &total, part, sample);
      if (done == 0U) put_hard(b, f, type, part);
      good = compute(b, kernel, code, type, part);
    }
    if (good) on_all(b, &total, part, judge);
    done += part;
  }
  (void)clock_gettime(CLOCK_MONOTONIC, &end);
  kiln_kernel_release(kernel);
  kiln_program_code_release(code);
  tell(&total, done,
       (double)(end.tv_sec - start.tv_sec) +
           1e-9 * (double)(end.tv_nsec - start.tv_nsec));
  if (good && every && !is_recorded(f->name, total.digest)) {
    printf("%s: the digest is not the one that was recorded\n", f->name);
    good = false;
  }
  const double apart = type == F64 || f->two ? APART_F64 : APART_F32;
  return good && total.worst < 1.0 && total.apart < apart;
}

static bool open_bench(bench_t* b, const char* label) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  b->threads = cores < 1             ? 1U
               : cores > THREADS_MAX ? THREADS_MAX
                                     : (uint32_t)cores;
  const size_t bytes = (size_t)b->chunk * 8U;
  if (!ok(kiln_runtime_create(NULL, &b->runtime)) ||
      !ok(kiln_runtime_open_device(b->runtime, label, &b->device)) ||
      !ok(kiln_stream_create(b->device, NULL, &b->stream))) {
    return false;
  }
  kiln_buffer_options_t pinned = kiln_buffer_options_default();
  pinned.kind = KILN_MEMORY_PINNED;
  for (uint32_t i = 0; i < 3U; i++) {
    if (!ok(kiln_buffer_create(b->device, bytes, &pinned, &b->pinned[i]))) {
      return false;
    }
  }
  b->host_x = kiln_buffer_host(b->pinned[0]);
  b->host_y = kiln_buffer_host(b->pinned[1]);
  b->host_out = kiln_buffer_host(b->pinned[2]);
  return ok(kiln_buffer_create(b->device, bytes, NULL, &b->x)) &&
         ok(kiln_buffer_create(b->device, bytes, NULL, &b->y)) &&
         ok(kiln_buffer_create(b->device, bytes, NULL, &b->out));
}

static void close_bench(bench_t* b) {
  for (uint32_t i = 0; i < 3U; i++) kiln_buffer_release(b->pinned[i]);
  kiln_buffer_release(b->x);
  kiln_buffer_release(b->y);
  kiln_buffer_release(b->out);
  kiln_stream_release(b->stream);
  kiln_device_release(b->device);
  kiln_runtime_release(b->runtime);
}

// All functions of a type.
static bool run_type(const bench_t* b, const bench_t* soft, uint8_t type,
                     uint64_t points) {
  bool good = true;
  for (const math_function_t* f = MATH_FUNCTIONS; f->name != NULL; f++) {
    const bool every = type == F32 && !f->two && points == 0U;
    const uint64_t count = every          ? UINT64_C(1) << 32U
                           : points == 0U ? (uint64_t)POINTS
                                          : points;
    if (!run(b, f, type, count, every)) good = false;
    if (soft != NULL && !same_on_soft(b, soft, f, type)) good = false;
  }
  return good;
}

int main(int count, char** words) {
  const bool soft = count > 1 && strcmp(words[1], "soft") == 0;
  const char* type = count > 2 ? words[2] : "both";
  const uint64_t points = count > 3 ? strtoull(words[3], NULL, 0) : 0U;
  bench_t b = {.chunk = CHUNK}, twin = {.chunk = ALIKE};
  if (points != 0U && points < b.chunk) b.chunk = (uint32_t)points;
  if (twin.chunk > b.chunk) twin.chunk = b.chunk;
  bool good = open_bench(&b, soft ? "soft" : "cuda:0");
  if (!good) {
    close_bench(&b);
    if (soft) return 1;
    printf("skipped: there is no GPU\n");
    return 77;
  }
  if (!soft) good = open_bench(&twin, "soft");
  const bench_t* other = soft ? NULL : &twin;
  if (good && strcmp(type, "f64") != 0) {
    good = run_type(&b, other, F32, points);
  }
  if (strcmp(type, "f32") != 0) {
    good = run_type(&b, other, F64, points) && good;
  }
  close_bench(&twin);
  close_bench(&b);
  return !good;
}
