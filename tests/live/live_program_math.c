// SPDX-License-Identifier: Apache-2.0
//
// live: strict math as a device computes it, judged by this machine's cores:
// every f32 for the functions of one operand, 1e7 seeded numbers for those of
// two and for f64.
//
//   live_program_math             on cuda:0; exit 77 without a GPU
//   live_program_math cuda COUNT  the same with COUNT seeded numbers
//   live_program_math soft COUNT  COUNT seeded numbers a function on soft
//
// The judge is the C library in the next wider type, good to a few thousandths
// of an ULP, so that an error of one is an error; nothing comes near it.
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
#include "math_points.h"

enum { THREADS_MAX = 64, CHUNK = 1 << 24, POINTS = 10000000 };

#define F32 KILN_PROGRAM_TYPE_F32
#define F64 KILN_PROGRAM_TYPE_F64

// A device with room for one chunk. one-thread
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

static double plain(const math_function_t* f, double x) {
  switch (f->op) {
    case KILN_PROGRAM_UNARY_EXP:
      return exp(x);
    case KILN_PROGRAM_UNARY_EXP2:
      return exp2(x);
    case KILN_PROGRAM_UNARY_LOG:
      return log(x);
    case KILN_PROGRAM_UNARY_LOG2:
      return log2(x);
    case KILN_PROGRAM_UNARY_SIN:
      return sin(x);
    case KILN_PROGRAM_UNARY_COS:
      return cos(x);
    case KILN_PROGRAM_UNARY_TAN:
      return tan(x);
    case KILN_PROGRAM_UNARY_ASIN:
      return asin(x);
    case KILN_PROGRAM_UNARY_ACOS:
      return acos(x);
    case KILN_PROGRAM_UNARY_ATAN:
      return atan(x);
    case KILN_PROGRAM_UNARY_SINH:
      return sinh(x);
    case KILN_PROGRAM_UNARY_COSH:
      return cosh(x);
    case KILN_PROGRAM_UNARY_TANH:
      return tanh(x);
    default:
      return 1.0 / sqrt(x);
  }
}

// The error of an f32 by C in double, which is far more than enough; the slow
// way for what is no ordinary number.
static double error_f32(const math_function_t* f, float x, float got) {
  const double want = plain(f, (double)x);
  const double size = fabs(want);
  if (!(size >= 0x1p-126 && size < 0x1p127)) {
    return math_quick_error(f, F32, (double)x, 0.0, (double)got);
  }
  uint64_t bits = 0;
  memcpy(&bits, &size, sizeof bits);
  // 2^-(exponent - 23).
  const double scale = as_f64((UINT64_C(2046) + 23U - (bits >> 52U)) << 52U);
  const double error = fabs(want - (double)got) * scale;
  return error == error ? error : 1e9;
}

static void* judge(void* user) {
  share_t* s = user;
  const bench_t* b = s->bench;
  for (uint32_t i = s->from; i < s->to; i++) {
    const uint64_t got = at(b->host_out, s->type, i);
    uint64_t x = s->base + i, y = 0;
    double error = 0.0;
    if (s->every) {
      error =
          error_f32(s->function, as_f32((uint32_t)x), as_f32((uint32_t)got));
    } else {
      x = at(b->host_x, s->type, i);
      y = at(b->host_y, s->type, i);
      error = s->type == F64 ? math_quick_error(s->function, F64, as_f64(x),
                                                as_f64(y), as_f64(got))
                             : math_quick_error(s->function, F32,
                                                (double)as_f32((uint32_t)x),
                                                (double)as_f32((uint32_t)y),
                                                (double)as_f32((uint32_t)got));
    }
    if (error > s->worst) {
      s->worst = error;
      s->worst_x = x;
      s->worst_y = y;
    }
  }
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
    if (pthread_create(&threads[t], NULL, work, &shares[t]) != 0) {
      (void)work(&shares[t]);
      threads[t] = pthread_self();
    }
  }
  for (uint32_t t = 0; t < b->threads; t++) {
    if (!pthread_equal(threads[t], pthread_self())) {
      (void)pthread_join(threads[t], NULL);
    }
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

// One function over `count` numbers; false if it is an ULP off or more.
static bool run(const bench_t* b, const math_function_t* f, uint8_t type,
                uint64_t count, bool every) {
  const size_t size = type == F64 ? 8U : 4U;
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
    if (!every) {
      on_all(b, &total, part, sample);
      good = ok(kiln_buffer_write(b->x, 0, part * size, b->host_x)) &&
             ok(kiln_buffer_write(b->y, 0, part * size, b->host_y));
    }
    good = good && launch(b, kernel, code, total.base, part) &&
           ok(kiln_buffer_read(b->out, 0, part * size, b->host_out));
    if (good) on_all(b, &total, part, judge);
    done += part;
  }
  (void)clock_gettime(CLOCK_MONOTONIC, &end);
  kiln_kernel_release(kernel);
  kiln_program_code_release(code);
  printf("%-12s %s %11llu %s numbers: %.4f ULP at %a, %a; %.1f s\n", f->name,
         type == F64 ? "f64" : "f32", (unsigned long long)done,
         every ? "of all" : "seeded", total.worst,
         program_number(type, total.worst_x),
         program_number(type, total.worst_y),
         (double)(end.tv_sec - start.tv_sec) +
             1e-9 * (double)(end.tv_nsec - start.tv_nsec));
  (void)fflush(stdout);
  return good && total.worst < 1.0;
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

int main(int count, char** words) {
  const bool soft = count > 1 && strcmp(words[1], "soft") == 0;
  const uint64_t points =
      count > 2 ? strtoull(words[2], NULL, 0) : (uint64_t)POINTS;
  bench_t b = {.chunk = soft ? (uint32_t)points : CHUNK};
  if (b.chunk > CHUNK) b.chunk = CHUNK;
  int result = 0;
  if (!open_bench(&b, soft ? "soft" : "cuda:0")) {
    close_bench(&b);
    return soft ? 1 : 77;
  }
  for (const math_function_t* f = MATH_FUNCTIONS; f->name != NULL; f++) {
    const bool every = !soft && !f->two;
    if (!run(&b, f, F32, every ? UINT64_C(1) << 32U : points, every)) {
      result = 1;
    }
    if (!run(&b, f, F64, points, false)) result = 1;
  }
  close_bench(&b);
  return result;
}
