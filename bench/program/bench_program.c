// SPDX-License-Identifier: Apache-2.0
//
// bench: programs: what lowering one takes, beside NVRTC for the same kernel,
// and how fast four of lib/ run on a GPU, beside a copy by the driver and the
// same kernels in CUDA C++.
//
//   bench_program [DEVICE] [ELEMENTS]     cuda:0, 1 << 26
//
// What has no NVRTC or no device is left out, and said so. Bars: a lowering in
// a two-hundredth of NVRTC's time, and 0.9 of the bandwidth of a copy.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_report.h"
#include "kiln/kiln.h"
#include "kiln/program_code.h"

enum { LOWERINGS = 401, COMPILATIONS = 5, LAUNCHES = 20, ROUNDS = 5 };

static const double kLimitLower = 50;  // microseconds
static const double kLimitRatio = 200;
static const double kLimitBandwidth = 0.9;

typedef struct case_t {
  const char* name;
  const char* source;  // the same in CUDA C++
  double moved;        // times the bytes of x
  uint32_t threads_x;  // of a CUDA block
  uint32_t threads_y;
} case_t;

static const case_t kCases[] = {
    {"map",
     "extern \"C\" __global__ void k(const float* __restrict__ x,\n"
     "    unsigned long long nx, float* __restrict__ y,\n"
     "    unsigned long long ny) {\n"
     "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "  if (i >= nx || i >= ny) return;\n"
     "  float v = x[i]; y[i] = (v * 3.0f + 2.0f) * v + 1.0f; }\n",
     2, 256, 1},
    {"saxpy",
     "extern \"C\" __global__ void k(const float* __restrict__ x,\n"
     "    unsigned long long nx, float* __restrict__ y,\n"
     "    unsigned long long ny, float a) {\n"
     "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
     "  if (i >= nx || i >= ny) return;\n"
     "  y[i] = fmaf(a, x[i], y[i]); }\n",
     3, 256, 1},
    {"reduce",
     "extern \"C\" __global__ void k(const float* __restrict__ x,\n"
     "    unsigned long long nx, float* __restrict__ y,\n"
     "    unsigned long long ny) {\n"
     "  __shared__ float parts[8];\n"
     "  unsigned first = blockIdx.x * 4096 + threadIdx.x; float sum = 0;\n"
     "  #pragma unroll\n"
     "  for (unsigned k = 0; k < 16; k++)\n"
     "    if (first + k * 256 < nx) sum += x[first + k * 256];\n"
     "  for (unsigned d = 16; d != 0; d /= 2)\n"
     "    sum += __shfl_xor_sync(0xffffffffu, sum, d);\n"
     "  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;\n"
     "  __syncthreads();\n"
     "  if (threadIdx.x == 0) { float t = 0;\n"
     "    for (unsigned k = 0; k < 8; k++) t += parts[k];\n"
     "    if (blockIdx.x < ny) y[blockIdx.x] = t; } }\n",
     1, 256, 1},
    {"transpose",
     "extern \"C\" __global__ void k(const float* __restrict__ x,\n"
     "    unsigned long long nx, float* __restrict__ y,\n"
     "    unsigned long long ny, unsigned w, unsigned h) {\n"
     "  __shared__ float tile[32][33];\n"
     "  unsigned left = blockIdx.x * 32, top = blockIdx.y * 32;\n"
     "  unsigned i = threadIdx.x, j = threadIdx.y;\n"
     "  for (unsigned k = 0; k < 32; k += 8)\n"
     "    if (left + i < w && top + j + k < h)\n"
     "      tile[j + k][i] = x[(top + j + k) * w + left + i];\n"
     "  __syncthreads();\n"
     "  for (unsigned k = 0; k < 32; k += 8)\n"
     "    if (top + i < h && left + j + k < w)\n"
     "      y[(left + j + k) * h + top + i] = tile[i][j + k]; }\n",
     2, 32, 8},
};

static bench_report_t g_report;
static bool g_good = true;

static void bar(bool holds, const char* what) {
  fprintf(stderr, "bar: %s %s\n", what, holds ? "holds" : "DOES NOT HOLD");
  g_good = g_good && holds;
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a;
  double y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof(*values), by_value);
  return values[count / 2];
}

static kiln_program_t* read_program(const char* name) {
  static char text[65536];
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s.kiln", BENCH_PROGRAMS, name);
  FILE* file = fopen(path, "rb");
  bench_need(file != NULL, path);
  kiln_string_view_t view = {text, fread(text, 1, sizeof(text), file)};
  fclose(file);
  kiln_program_t* program = NULL;
  bench_expect(kiln_program_parse(view, NULL, NULL, &program));
  return program;
}

static kiln_program_code_t* lower(const kiln_program_t* program) {
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.sm = 90;
  kiln_program_code_t* code = NULL;
  bench_expect(kiln_program_lower(program, &options, &code));
  return code;
}

// ---- Lowering ----

static double lowering_time(const kiln_program_t* program) {
  static double spent[LOWERINGS];
  for (int i = 0; i < LOWERINGS; i++) {
    uint64_t start = bench_time_ns();
    kiln_program_code_t* code = lower(program);
    spent[i] = (double)(bench_time_ns() - start) / 1000;
    kiln_program_code_release(code);
  }
  return median(spent, LOWERINGS);
}

static kiln_compile_result_t* compile(kiln_compiler_t* compiler,
                                      const char* source) {
  kiln_compile_options_t options = kiln_compile_options_default();
  kiln_compile_result_t* result = NULL;
  kiln_string_view_t view = {source, strlen(source)};
  options.arch = "compute_90";
  bench_expect(kiln_compiler_compile(compiler, view, &options, &result));
  return result;
}

static void bench_lowering(kiln_compiler_t* compiler, const case_t* c,
                           const kiln_program_t* program) {
  char name[BENCH_NAME_BYTES], what[192];
  snprintf(name, sizeof(name), "lower %s", c->name);
  double lowering = lowering_time(program);
  if (compiler == NULL) {
    bench_report_less(&g_report, name, "us", lowering, NULL, 0);
    return;
  }
  double spent[COMPILATIONS];
  for (int i = 0; i < COMPILATIONS; i++) {
    uint64_t start = bench_time_ns();
    kiln_compile_result_release(compile(compiler, c->source));
    spent[i] = (double)(bench_time_ns() - start) / 1000;
  }
  double compiled = median(spent, COMPILATIONS);
  bench_report_less(&g_report, name, "us", lowering, "NVRTC", compiled);
  snprintf(what, sizeof(what), "%s at least 200 times faster than NVRTC", name);
  bar(compiled / lowering >= kLimitRatio, what);
}

// About 100 expressions and statements.
static const char kHundred[] =
    "program hundred(x: in f32[], y: inout f32[length(x)], n: u32)\n"
    "  work length(x)\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  var a = x[i];\n"
    "  var b = y[i];\n"
    "  for k in 0..n { a = fma(a, b, x[(i + k) % n]); b = b * 0.5 + a; }\n"
    "  let c = a * b + a / b - sqrt(a * a + b * b);\n"
    "  let d = select(c > 1.0, c - 1.0, c + 1.0) * select(a < b, a, b);\n"
    "  let e = u32(d) ^ (i << 3) & 255 | (i / 7 + i % 13);\n"
    "  let f = f32(e * 3 + 1) / 3.0 + min(c, d) * max(a, b) - abs(c);\n"
    "  if f > 100.0 { y[i] = f; } else { y[i] = -f + floor(c) * ceil(d); }\n"
    "  if e % 2 == 0 { y[(i + 1) % n] = f * 2.0; }\n"
    "}\n";

static void bench_hundred(void) {
  kiln_string_view_t view = {kHundred, sizeof(kHundred) - 1};
  kiln_program_t* program = NULL;
  bench_expect(kiln_program_parse(view, NULL, NULL, &program));
  double lowering = lowering_time(program);
  bench_report_less(&g_report, "lower 100 nodes", "us", lowering, "limit",
                    kLimitLower);
  bar(lowering <= kLimitLower, "100 nodes in at most 50 us");
  kiln_program_release(program);
}

// ---- Running ----

typedef struct world_t {
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_event_t* start;
  kiln_event_t* end;
  kiln_buffer_t* x;
  kiln_buffer_t* y;
  uint64_t count;  // elements of x
  uint32_t side;   // x as a square
} world_t;

typedef struct launch_t {
  kiln_kernel_t* kernel;
  kiln_launch_config_t config;
  kiln_argument_t arguments[16];
  uint32_t count;
} launch_t;

static uint64_t nanoseconds(world_t* w, const launch_t* launch) {
  uint64_t least = UINT64_MAX;
  for (int round = 0; round < ROUNDS; round++) {
    bench_expect(kiln_event_record(w->start, w->stream));
    for (int i = 0; i < LAUNCHES; i++) {
      if (launch == NULL) {
        bench_expect(
            kiln_buffer_copy_async(w->y, w->stream, 0, w->x, 0, w->count * 4));
      } else {
        bench_expect(kiln_kernel_launch(launch->kernel, w->stream,
                                        &launch->config, launch->arguments,
                                        launch->count));
      }
    }
    bench_expect(kiln_event_record(w->end, w->stream));
    bench_expect(kiln_stream_synchronize(w->stream));
    uint64_t spent = 0;
    bench_expect(kiln_event_elapsed(w->start, w->end, &spent));
    if (spent < least) least = spent;
  }
  return least / LAUNCHES;
}

static void load(world_t* w, const char* text, size_t size, launch_t* launch) {
  kiln_module_t* module = NULL;
  kiln_bytes_view_t image = {(const uint8_t*)text, size};
  bench_expect(kiln_module_load(w->device, image, NULL, NULL, &module));
  bench_expect(kiln_kernel_create(module, NULL, &launch->kernel));
  kiln_module_release(module);
}

// How many elements y has for a program.
static uint64_t y_count(const world_t* w, const case_t* c) {
  return strcmp(c->name, "reduce") == 0 ? (w->count + 4095) / 4096 : w->count;
}

static uint32_t work_of(const world_t* w, const case_t* c, uint32_t axis) {
  if (strcmp(c->name, "transpose") == 0) {
    return (w->side + 31) / 32 *
               (axis == 0   ? 32
                : axis == 1 ? 8
                            : 0) +
           (axis == 2);
  }
  if (axis != 0) return 1;
  return (uint32_t)(strcmp(c->name, "reduce") == 0 ? y_count(w, c) * 256
                                                   : w->count);
}

static kiln_argument_t argument(const world_t* w, const case_t* c,
                                const kiln_program_parameter_t* p) {
  switch (p->kind) {
    case KILN_PROGRAM_PARAMETER_ADDRESS:
      return kiln_arg_buffer(p->index == 0 ? w->x : w->y);
    case KILN_PROGRAM_PARAMETER_LENGTH:
      return kiln_arg_u64(p->index == 0 ? w->count : y_count(w, c));
    case KILN_PROGRAM_PARAMETER_WORK:
      return kiln_arg_u32(work_of(w, c, p->index));
    default:
      return p->type == KILN_PROGRAM_TYPE_F32 ? kiln_arg_f32(2)
                                              : kiln_arg_u32(w->side);
  }
}

static void bench_running(world_t* w, kiln_compiler_t* compiler,
                          const case_t* c, const kiln_program_t* program,
                          double copy) {
  kiln_program_code_t* code = lower(program);
  kiln_program_launch_t how;
  kiln_program_code_launch(code, &how);
  launch_t ours = {.config = kiln_launch_config_default()}, theirs = ours;
  kiln_string_view_t text = kiln_program_code_text(code);
  load(w, text.data, text.size, &ours);
  ours.count = kiln_program_code_parameter_count(code);
  for (uint32_t i = 0; i < ours.count; i++) {
    kiln_program_parameter_t p;
    kiln_program_code_parameter(code, i, &p);
    ours.arguments[i] = argument(w, c, &p);
    // The CUDA kernels take the buffers and scalars, no work sizes.
    if (p.kind != KILN_PROGRAM_PARAMETER_WORK) {
      theirs.arguments[theirs.count++] = ours.arguments[i];
    }
  }
  for (uint32_t axis = 0; axis < 3; axis++) {
    ours.config.block[axis] = how.block[axis];
    ours.config.grid[axis] =
        (work_of(w, c, axis) + how.block[axis] - 1) / how.block[axis];
    theirs.config.block[axis] = how.block[axis];
    theirs.config.grid[axis] = ours.config.grid[axis];
  }
  double bytes = c->moved * (double)w->count * 4;
  double speed = bytes / (double)nanoseconds(w, &ours);
  char name[BENCH_NAME_BYTES], what[192];
  snprintf(name, sizeof(name), "run %s", c->name);
  bench_report_more(&g_report, name, "GB/s", speed, "copy", copy);
  snprintf(what, sizeof(what), "%s at 0.9 of a copy's bandwidth", name);
  bar(speed / copy >= kLimitBandwidth, what);
  if (compiler != NULL) {
    kiln_compile_result_t* result = compile(compiler, c->source);
    kiln_code_t* made = kiln_compile_result_code(result);
    kiln_bytes_view_t image = kiln_code_bytes(made);
    load(w, (const char*)image.data, image.size, &theirs);
    double other = bytes / (double)nanoseconds(w, &theirs);
    bench_report_more(&g_report, name, "GB/s", speed, "CUDA C++", other);
    kiln_kernel_release(theirs.kernel);
    kiln_compile_result_release(result);
  }
  kiln_kernel_release(ours.kernel);
  kiln_program_code_release(code);
}

static bool open_world(kiln_runtime_t* runtime, const char* name, world_t* w) {
  kiln_status_t status = kiln_runtime_open_device(runtime, name, &w->device);
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "no runs: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    return false;
  }
  kiln_event_options_t options = kiln_event_options_default();
  options.timing = KILN_SWITCH_ON;
  bench_expect(kiln_stream_create(w->device, NULL, &w->stream));
  bench_expect(kiln_event_create(w->device, &options, &w->start));
  bench_expect(kiln_event_create(w->device, &options, &w->end));
  bench_expect(kiln_buffer_create(w->device, w->count * 4, NULL, &w->x));
  bench_expect(kiln_buffer_create(w->device, w->count * 4, NULL, &w->y));
  bench_expect(kiln_buffer_fill(w->x, 0, w->count * 4, 0, 1));
  bench_expect(kiln_buffer_fill(w->y, 0, w->count * 4, 0, 1));
  return true;
}

static void close_world(world_t* w) {
  kiln_buffer_release(w->x);
  kiln_buffer_release(w->y);
  kiln_event_release(w->start);
  kiln_event_release(w->end);
  kiln_stream_release(w->stream);
  kiln_device_release(w->device);
}

int main(int argc, char** argv) {
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  world_t w;
  memset(&w, 0, sizeof(w));
  w.side = 1;
  uint64_t wanted = argc > 2 ? strtoull(argv[2], NULL, 0) : 1U << 26;
  while ((uint64_t)w.side * w.side * 4 <= wanted) w.side *= 2;
  w.count = (uint64_t)w.side * w.side;
  kiln_runtime_t* runtime = NULL;
  bench_expect(kiln_runtime_create(NULL, &runtime));
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = kiln_runtime_open_compiler(runtime, NULL, &compiler);
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "no NVRTC: %s\n", kiln_status_message(status));
    kiln_status_free(status);
  }
  g_report.device = device;
  bool runs = open_world(runtime, device, &w);
  double copy =
      runs ? 2.0 * (double)w.count * 4 / (double)nanoseconds(&w, NULL) : 0;
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    kiln_program_t* program = read_program(kCases[i].name);
    bench_lowering(compiler, &kCases[i], program);
    if (runs) bench_running(&w, compiler, &kCases[i], program, copy);
    kiln_program_release(program);
  }
  bench_hundred();
  bench_report_print(&g_report);
  if (runs) close_world(&w);
  kiln_compiler_release(compiler);
  kiln_runtime_release(runtime);
  return g_good ? 0 : 1;
}
