// SPDX-License-Identifier: Apache-2.0
//
// bench: programs: what lowering one takes, beside NVRTC for the same kernel,
// and how fast four of lib/ run on a GPU, beside a copy by the driver and the
// same kernels in CUDA C++, written in several ways.
//
//   bench_program [DEVICE] [ELEMENTS]     cuda:0, 1 << 26 to 1 << 28
//
// What has no NVRTC or no device is left out, and said so. Bars: a lowering in
// a two-hundredth of NVRTC's time, and 0.9 of the bandwidth of a copy, at the
// largest size.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_program_cuda.h"
#include "bench_report.h"
#include "kiln/kiln.h"
#include "kiln/program_code.h"

enum { LOWERINGS = 401, COMPILATIONS = 5, LAUNCHES = 20, ROUNDS = 5 };

static const double kLimitLower = 50;  // microseconds
static const double kLimitRatio = 200;
static const double kLimitBandwidth = 0.9;

typedef struct case_t {
  const char* name;
  double moved;  // times the bytes of x
} case_t;

static const case_t kCases[] = {
    {"map", 2}, {"saxpy", 3}, {"reduce", 1}, {"transpose", 2}};
enum { CASES = sizeof(kCases) / sizeof(kCases[0]) };

// A way to lower a program.
typedef struct way_t {
  const char* program;
  const char* name;
  const char* block;      // NULL: the program's own
  uint32_t elements;      // a thread
  uint32_t without;       // KILN_PROGRAM_WITHOUT_*
  const char* values[3];  // of TILE, LANES, ROWS; NULL: the program's own
} way_t;

#define ELEMENTWISE(program)                                               \
  {program, "1 element", NULL, 1, 0, {NULL}},                              \
      {program, "2 elements", NULL, 2, 0, {NULL}},                         \
      {program, "8 elements", NULL, 8, 0, {NULL}},                         \
      {program, "4 elements, block 128", "  block 128\n", 4, 0, {NULL}}, { \
    program, "4 elements, block 512", "  block 512\n", 4, 0, {             \
      NULL                                                                 \
    }                                                                      \
  }

static const way_t kWays[] = {
    ELEMENTWISE("map"),
    ELEMENTWISE("saxpy"),
    {"reduce", "zeroed", NULL, 0, KILN_PROGRAM_WITHOUT_COVERING, {NULL}},
    {"transpose", "zeroed", NULL, 0, KILN_PROGRAM_WITHOUT_COVERING, {NULL}},
    {"transpose", "jumps", NULL, 0, KILN_PROGRAM_WITHOUT_PREDICATES, {NULL}},
    {"transpose",
     "tile 64, 1 lanes, 4 rows",
     NULL,
     0,
     0,
     {"64u32", "1u32", "4u32"}},
    {"transpose",
     "tile 64, 1 lanes, 8 rows",
     NULL,
     0,
     0,
     {"64u32", "1u32", "8u32"}},
    {"transpose",
     "tile 64, 4 lanes, 8 rows",
     NULL,
     0,
     0,
     {"64u32", "4u32", "8u32"}},
    {"transpose",
     "tile 64, 2 lanes, 8 rows",
     NULL,
     0,
     0,
     {"64u32", "2u32", "8u32"}},
    {"transpose",
     "tile 32, 1 lanes, 4 rows",
     NULL,
     0,
     0,
     {"32u32", "1u32", "4u32"}},
    {"transpose",
     "tile 32, 1 lanes, 8 rows",
     NULL,
     0,
     0,
     {"32u32", "1u32", "8u32"}},
    {"transpose",
     "tile 32, 4 lanes, 8 rows",
     NULL,
     0,
     0,
     {"32u32", "4u32", "8u32"}},
    {"transpose",
     "tile 32, 4 lanes, 32 rows",
     NULL,
     0,
     0,
     {"32u32", "4u32", "32u32"}},
    {"transpose", "no vectors", NULL, 0, KILN_PROGRAM_WITHOUT_VECTORS, {NULL}},
};
enum { WAYS = sizeof(kWays) / sizeof(kWays[0]) };

static bench_report_t g_report;
static bool g_good = true;

static void bar(bool holds, const char* what) {
  fprintf(stderr, "bar: %s %s\n", what, holds ? "holds" : "DOES NOT HOLD");
  g_good = g_good && holds;
}

// `way`: NULL, as it stands there.
static kiln_program_t* read_program(const char* name, const way_t* way) {
  const char* block = way != NULL ? way->block : NULL;
  static char text[65536];
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s.kiln", BENCH_PROGRAMS, name);
  FILE* file = fopen(path, "rb");
  bench_need(file != NULL, path);
  size_t size = fread(text, 1, sizeof(text) / 2, file);
  fclose(file);
  text[size] = 0;
  char* body = strstr(text, "\n{");
  if (block != NULL && body != NULL) {
    size_t more = strlen(block);
    memmove(body + 1 + more, body + 1, strlen(body + 1) + 1);
    memcpy(body + 1, block, more);
    size += more;
  }
  kiln_string_view_t view = {text, size};
  kiln_program_t* program = NULL;
  kiln_program_parse_options_t options = kiln_program_parse_options_default();
  kiln_program_define_t defines[3] = {
      {"TILE", NULL}, {"LANES", NULL}, {"ROWS", NULL}};
  if (way != NULL && way->values[0] != NULL) {
    options.defines = defines;
    options.define_count = 3;
    for (int i = 0; i < 3; i++) defines[i].value = way->values[i];
  }
  bench_expect(kiln_program_parse(view, &options, NULL, &program));
  return program;
}

// `way`: NULL, as it is by default.
static kiln_program_code_t* lower(const kiln_program_t* program,
                                  const way_t* way) {
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.sm = 90;
  if (way != NULL) {
    options.elements = way->elements;
    options.without = way->without;
  }
  kiln_program_code_t* code = NULL;
  bench_expect(kiln_program_lower(program, &options, &code));
  return code;
}

// ---- Lowering ----

static double lowering_time(const kiln_program_t* program) {
  static double spent[LOWERINGS];
  for (int i = 0; i < LOWERINGS; i++) {
    uint64_t start = bench_time_ns();
    kiln_program_code_t* code = lower(program, NULL);
    spent[i] = (double)(bench_time_ns() - start) / 1000;
    kiln_program_code_release(code);
  }
  return bench_median(spent, LOWERINGS);
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
  char source[CUDA_SOURCE_BYTES];
  cuda_way_source(cuda_way_plain(c->name), source);
  for (int i = 0; i < COMPILATIONS; i++) {
    uint64_t start = bench_time_ns();
    kiln_compile_result_release(compile(compiler, source));
    spent[i] = (double)(bench_time_ns() - start) / 1000;
  }
  double compiled = bench_median(spent, COMPILATIONS);
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
  uint32_t width;  // x as a matrix
  uint32_t height;
  uint32_t log;  // of count
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

// What is said of a program's parameters, and its work size.
typedef struct shape_t {
  uint64_t counts[2];  // of buffers, and scalars, in their order
  uint64_t scalars[2];
  uint64_t work[3];
} shape_t;

static void find_shape(const world_t* w, const kiln_program_t* program,
                       shape_t* out) {
  kiln_program_size_t sizes[4];
  kiln_program_parameter_info_t p;
  uint32_t buffers = 0, scalars = 0, count = 0;
  const float two = 2;
  uint32_t bits;
  memcpy(&bits, &two, sizeof(bits));
  memset(sizes, 0, sizeof(sizes));
  for (; count < 4 && kiln_program_parameter(program, count, &p); count++) {
    bool buffer = p.role != KILN_PROGRAM_ROLE_NONE;
    sizes[count].count = buffers == 0 ? w->count : KILN_PROGRAM_COUNT_UNKNOWN;
    buffers += buffer;
    if (buffer) continue;
    sizes[count].bits = p.type == KILN_PROGRAM_TYPE_F32 ? bits
                        : scalars == 0                  ? w->width
                                                        : w->height;
    out->scalars[scalars++] = sizes[count].bits;
  }
  bench_expect(kiln_program_sizes(program, sizes, out->work));
  buffers = 0;
  for (uint32_t i = 0; i < count; i++) {
    kiln_program_parameter(program, i, &p);
    if (p.role != KILN_PROGRAM_ROLE_NONE) {
      out->counts[buffers++] = sizes[i].count;
    }
  }
}

static kiln_argument_t argument(const world_t* w, const shape_t* shape,
                                const kiln_program_parameter_t* p) {
  switch (p->kind) {
    case KILN_PROGRAM_PARAMETER_ADDRESS:
      return kiln_arg_buffer(p->index == 0 ? w->x : w->y);
    case KILN_PROGRAM_PARAMETER_LENGTH:
      return kiln_arg_u64(shape->counts[p->index]);
    case KILN_PROGRAM_PARAMETER_WORK:
      return kiln_arg_u32((uint32_t)shape->work[p->index]);
    default:
      return kiln_arg_bytes(&shape->scalars[p->index], 4);
  }
}

// What is reported of a run: beside the copy, and beside another one.
static void tell(const world_t* w, const case_t* c, const char* way,
                 double speed, const char* other, double than) {
  char name[2 * BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "run %s 2^%u %s", c->name, w->log, way);
  bench_report_more(&g_report, name, "GB/s", speed, other, than);
}

static double speed_of(world_t* w, const case_t* c, const launch_t* launch) {
  return c->moved * (double)w->count * 4 / (double)nanoseconds(w, launch);
}

static double run_program(world_t* w, const case_t* c,
                          const kiln_program_t* program, const way_t* way) {
  kiln_program_code_t* code = lower(program, way);
  kiln_program_launch_t how;
  kiln_program_code_launch(code, &how);
  shape_t shape;
  find_shape(w, program, &shape);
  launch_t ours = {.config = kiln_launch_config_default()};
  kiln_string_view_t text = kiln_program_code_text(code);
  load(w, text.data, text.size, &ours);
  ours.count = kiln_program_code_parameter_count(code);
  for (uint32_t i = 0; i < ours.count; i++) {
    kiln_program_parameter_t p;
    kiln_program_code_parameter(code, i, &p);
    ours.arguments[i] = argument(w, &shape, &p);
  }
  memcpy(ours.config.block, how.block, sizeof(how.block));
  kiln_program_code_grid(code, shape.work, ours.config.grid);
  double speed = speed_of(w, c, &ours);
  kiln_kernel_release(ours.kernel);
  kiln_program_code_release(code);
  return speed;
}

static double run_cuda(world_t* w, const case_t* c, kiln_compiler_t* compiler,
                       const cuda_way_t* way) {
  char source[CUDA_SOURCE_BYTES];
  launch_t theirs = {.config = kiln_launch_config_default()};
  cuda_way_source(way, source);
  kiln_compile_result_t* result = compile(compiler, source);
  kiln_bytes_view_t image = kiln_code_bytes(kiln_compile_result_code(result));
  load(w, (const char*)image.data, image.size, &theirs);
  const kiln_argument_t arguments[] = {
      kiln_arg_buffer(w->x),
      kiln_arg_u64(w->count),
      kiln_arg_buffer(w->y),
      kiln_arg_u64(w->count),
      strcmp(c->name, "saxpy") == 0 ? kiln_arg_f32(2) : kiln_arg_u32(w->width),
      kiln_arg_u32(w->height)};
  memcpy(theirs.arguments, arguments, sizeof(arguments));
  theirs.count = strcmp(c->name, "transpose") == 0 ? 6
                 : strcmp(c->name, "saxpy") == 0   ? 5
                                                   : 4;
  theirs.config.block[0] = way->block_x;
  theirs.config.block[1] = way->block_y;
  theirs.config.block[2] = 1;
  cuda_way_grid(way, w->count, w->width, w->height, theirs.config.grid);
  double speed = speed_of(w, c, &theirs);
  kiln_kernel_release(theirs.kernel);
  kiln_compile_result_release(result);
  return speed;
}

// All ways to write a kernel in CUDA C++; the best one's speed.
static double run_cuda_ways(world_t* w, const case_t* c,
                            kiln_compiler_t* compiler, double copy,
                            char best[BENCH_NAME_BYTES]) {
  double most = 0;
  for (size_t i = 0; i < kCudaWayCount; i++) {
    const cuda_way_t* way = &kCudaWays[i];
    if (strcmp(way->kernel, c->name) != 0) continue;
    char name[BENCH_NAME_BYTES];
    snprintf(name, sizeof(name), "CUDA C++, %s, block %u", way->name,
             way->block_x * way->block_y);
    double speed = run_cuda(w, c, compiler, way);
    tell(w, c, name, speed, "copy", copy);
    if (speed > most) {
      most = speed;
      memcpy(best, name, sizeof(name));
    }
  }
  return most;
}

static void bench_running(world_t* w, kiln_compiler_t* compiler,
                          const case_t* c, bool all) {
  double copy = 2.0 * (double)w->count * 4 / (double)nanoseconds(w, NULL);
  char what[192], best[BENCH_NAME_BYTES];
  kiln_program_t* program = read_program(c->name, NULL);
  double speed = run_program(w, c, program, NULL);
  kiln_program_release(program);
  tell(w, c, "", speed, "copy", copy);
  if (compiler != NULL) {
    double plain = run_cuda(w, c, compiler, cuda_way_plain(c->name));
    tell(w, c, "", speed, "plain CUDA C++", plain);
  }
  if (!all) return;
  snprintf(what, sizeof(what), "run %s at 0.9 of a copy's bandwidth", c->name);
  bar(speed / copy >= kLimitBandwidth, what);
  for (int i = 0; i < WAYS; i++) {
    const way_t* way = &kWays[i];
    if (strcmp(way->program, c->name) != 0) continue;
    program = read_program(c->name, way);
    tell(w, c, way->name, run_program(w, c, program, way), "copy", copy);
    kiln_program_release(program);
  }
  if (compiler == NULL) return;
  double most = run_cuda_ways(w, c, compiler, copy, best);
  tell(w, c, "", speed, best, most);
}

static bool open_device(kiln_runtime_t* runtime, const char* name, world_t* w) {
  kiln_status_t status = kiln_runtime_open_device(runtime, name, &w->device);
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "no runs: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    return false;
  }
  if (kiln_device_info(w->device)->kind == KILN_DEVICE_KIND_SOFT) {
    fprintf(stderr, "no runs: a GPU's bandwidth is asked for\n");
    kiln_device_release(w->device);
    return false;
  }
  kiln_event_options_t options = kiln_event_options_default();
  options.timing = KILN_SWITCH_ON;
  bench_expect(kiln_stream_create(w->device, NULL, &w->stream));
  bench_expect(kiln_event_create(w->device, &options, &w->start));
  bench_expect(kiln_event_create(w->device, &options, &w->end));
  return true;
}

static void close_device(world_t* w) {
  kiln_event_release(w->start);
  kiln_event_release(w->end);
  kiln_stream_release(w->stream);
  kiln_device_release(w->device);
}

// `log`: of the elements of x.
static void bench_size(world_t* w, kiln_compiler_t* compiler, uint32_t log,
                       bool all) {
  w->log = log;
  w->count = UINT64_C(1) << log;
  w->width = 1U << log / 2;
  w->height = (uint32_t)(w->count / w->width);
  bench_expect(kiln_buffer_create(w->device, w->count * 4, NULL, &w->x));
  bench_expect(kiln_buffer_create(w->device, w->count * 4, NULL, &w->y));
  bench_expect(kiln_buffer_fill(w->x, 0, w->count * 4, 0, 1));
  bench_expect(kiln_buffer_fill(w->y, 0, w->count * 4, 0, 1));
  for (int i = 0; i < CASES; i++) bench_running(w, compiler, &kCases[i], all);
  kiln_buffer_release(w->x);
  kiln_buffer_release(w->y);
}

int main(int argc, char** argv) {
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  world_t w;
  memset(&w, 0, sizeof(w));
  uint64_t wanted = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
  kiln_runtime_t* runtime = NULL;
  bench_expect(kiln_runtime_create(NULL, &runtime));
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = kiln_runtime_open_compiler(runtime, NULL, &compiler);
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "no NVRTC: %s\n", kiln_status_message(status));
    kiln_status_free(status);
  }
  g_report.device = device;
  for (int i = 0; i < CASES; i++) {
    kiln_program_t* program = read_program(kCases[i].name, NULL);
    bench_lowering(compiler, &kCases[i], program);
    kiln_program_release(program);
  }
  bench_hundred();
  if (open_device(runtime, device, &w)) {
    uint32_t first = 26, last = 28;
    if (wanted != 0) {
      for (first = 2; wanted >> first > 1; first++) {
      }
      last = first;
    }
    for (uint32_t log = first; log <= last; log++) {
      bench_size(&w, compiler, log, log == last);
    }
    close_device(&w);
  }
  bench_report_print(&g_report);
  kiln_compiler_release(compiler);
  kiln_runtime_release(runtime);
  return g_good ? 0 : 1;
}
