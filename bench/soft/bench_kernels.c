// SPDX-License-Identifier: Apache-2.0
//
// bench: whole kernels on the software device, on one core and on two, beside
// the same work in plain C at -O2.
//
//   bench_kernels [--root DIR] [--lanes NAME] [--workers 1|2] [--only NAME]
//
// DIR is the source tree, where the kernels are. The unit is 1e9
// thread-instructions a second: one PTX instruction executed by one active
// lane whose guard is true; `value` is the best run, `median` the one in the
// middle. The baseline of one worker is the same kernel as plain C, in the time
// that it takes: the ratio says how far the engine is from C. The baseline of
// two workers is one worker.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host.h"
#include "base/thread.h"
#include "bench_plain.h"
#include "bench_report.h"
#include "soft/engine/soft_grid.h"

enum { REPEATS = 9, BUFFERS = 3, SCALARS = 3, WORKERS = 2 };

typedef enum fill_t {
  FILL_NONE,     // of zeros: an output
  FILL_BITS,     // random
  FILL_F32,      // small whole numbers: sums of products are exact
  FILL_F64,      //
  FILL_NUMBERS,  // 0, 1, 2 ... of 32 bits
} fill_t;

typedef struct buffer_t {
  uint32_t bytes;  // 0: none
  fill_t fill;
} buffer_t;

// A kernel and what it works on. The kernel's parameters are the buffers and
// the first `scalar_count` scalars.
typedef struct subject_t {
  const char* name;
  const char* file;
  const char* entry;
  uint32_t grid[3];
  uint32_t block[3];
  buffer_t buffers[BUFFERS];
  int32_t scalars[SCALARS];
  uint32_t scalar_count;
  double operations;  // of floating point, of a run; 0: not said
  bench_plain_t plain;
} subject_t;

enum {
  SIDE = 512,       // of a picture
  MESSAGES = 2048,  // of 0 to 2047 bytes
  PART = 512,       // keys that a block sorts
  PARTS = 256,
  ORDER = 256,  // of a matrix
  SQUARE = ORDER * ORDER,
  PRODUCT = 2 * ORDER * SQUARE,  // floating-point operations
};

// clang-format off
static const subject_t kSubjects[] = {
    {"mandelbrot", "examples/pictures/mandelbrot.ptx", "mandelbrot",
     {SIDE / 32, SIDE / 8, 1}, {32, 8, 1},
     {{SIDE * SIDE * 3, FILL_NONE}},
     {SIDE, SIDE, 512}, 3, 0, bench_plain_mandelbrot},
    {"blur", "examples/pictures/blur.ptx", "blur",
     {SIDE / 16, SIDE / 16, 1}, {16, 16, 1},
     {{SIDE * SIDE, FILL_BITS}, {SIDE * SIDE, FILL_NONE}},
     {SIDE, SIDE, 0}, 2, 0, bench_plain_blur},
    {"product_f32", "tests/kernels/matmul_tiled.cu.ptx", "matmul",
     {ORDER / 32, ORDER / 32, 1}, {8, 8, 1},
     {{SQUARE * 4, FILL_F32}, {SQUARE * 4, FILL_F32}, {SQUARE * 4, FILL_NONE}},
     {ORDER, 0, 0}, 1, PRODUCT, bench_plain_product_f32},
    {"product_f64", "tests/kernels/matmul_tiled.cu.ptx", "matmul_f64",
     {ORDER / 16, ORDER / 16, 1}, {16, 16, 1},
     {{SQUARE * 8, FILL_F64}, {SQUARE * 8, FILL_F64}, {SQUARE * 8, FILL_NONE}},
     {ORDER, 0, 0}, 1, PRODUCT, bench_plain_product_f64},
    {"sha256", "tests/kernels/sha256.cu.ptx", "sha256",
     {MESSAGES / 32, 1, 1}, {32, 1, 1},
     {{2 * MESSAGES, FILL_BITS}, {MESSAGES * 32, FILL_NONE}},
     {MESSAGES, 0, 0}, 1, 0, bench_plain_sha256},
    {"radix_sort", "tests/kernels/radix_sort.cu.ptx", "radix_sort",
     {PARTS, 1, 1}, {256, 1, 1},
     {{PARTS * PART * 4, FILL_BITS}, {PARTS * PART * 4, FILL_NUMBERS}},
     {PART, PARTS, 0}, 1, 0, bench_plain_radix_sort},
};
// clang-format on

static kiln_host_t make_host(const kilni_base_env_t* env) {
  kiln_host_t host = {.allocator = kiln_allocator_libc(), .env = env};
  host.worker_count = 1;
  host.process_id = kilni_base_process_id();
  return host;
}

static void check(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  fprintf(stderr, "%s\n", text);
  exit(kiln_status_code_exit(kiln_status_code(status)));
}

// What a run needs, made once.
typedef struct run_t {
  kiln_host_t host;
  kilni_soft_memory_t* memory;
  kilni_soft_code_t* code;
  uint64_t buffers[BUFFERS];  // device addresses
  void* plain[BUFFERS];       // the same for plain C
  uint8_t params[64];
} run_t;

// Seconds of several runs, and what one of them executed.
typedef struct times_t {
  double best;
  double median;
  uint64_t executed;
} times_t;

static void fill(void* memory, const buffer_t* buffer) {
  uint8_t* bytes = memory;
  uint32_t state = 1;
  uint32_t size = buffer->fill == FILL_BITS  ? 1
                  : buffer->fill == FILL_F64 ? 8
                                             : 4;
  memset(memory, 0, buffer->bytes);
  if (buffer->fill == FILL_NONE) return;
  for (uint32_t i = 0; i < buffer->bytes / size; i++) {
    state = state * 1664525u + 1013904223u;
    float narrow = (float)(state >> 28);
    double wide = narrow;
    uint8_t byte = (uint8_t)(state >> 24);
    const void* value = &byte;
    if (buffer->fill == FILL_F32) value = &narrow;
    if (buffer->fill == FILL_F64) value = &wide;
    if (buffer->fill == FILL_NUMBERS) value = &i;
    memcpy(bytes + i * size, value, size);
  }
}

static void* device_bytes(const run_t* run, const subject_t* subject, int b) {
  return kilni_soft_memory_host(run->memory, run->buffers[b],
                                subject->buffers[b].bytes);
}

static void load_code(run_t* run, const subject_t* subject, const char* root,
                      const kilni_soft_lane_set_t* lanes) {
  char path[1024];
  uint8_t* text;
  size_t size;
  kilni_image_ptx_module_t* module;
  snprintf(path, sizeof(path), "%s/%s", root, subject->file);
  check(kilni_base_file_read(run->host.allocator, path, 1 << 24, &text, &size));
  check(kilni_image_ptx_module_create((kiln_bytes_view_t){text, size}, path,
                                      NULL, run->host.allocator, &module));
  kilni_base_file_free(run->host.allocator, text, size);
  check(kilni_soft_memory_create(&run->host, true, &run->memory));
  check(kilni_soft_code_create(&run->host, module, lanes, run->memory,
                               &run->code));
  kilni_image_ptx_module_release(module);
}

static void open_run(run_t* run, const subject_t* subject, const char* root,
                     const kilni_soft_lane_set_t* lanes) {
  load_code(run, subject, root, lanes);
  uint8_t* at = run->params;
  for (int b = 0; b < BUFFERS && subject->buffers[b].bytes; b++) {
    uint32_t bytes = subject->buffers[b].bytes;
    check(kilni_soft_memory_alloc(run->memory, bytes, KILNI_SOFT_ALLOC_DEVICE,
                                  &run->buffers[b]));
    run->plain[b] = malloc(bytes);
    memcpy(at, &run->buffers[b], 8);
    at += 8;
  }
  memcpy(at, subject->scalars, 4u * subject->scalar_count);
}

static void close_run(run_t* run) {
  for (int b = 0; b < BUFFERS; b++) free(run->plain[b]);
  kilni_soft_code_destroy(run->code);
  kilni_soft_memory_destroy(run->memory);
}

// A second worker, which waits for the kernel without sleeping.
typedef struct helper_t {
  kilni_base_thread_t thread;
  atomic_int ready;
  _Atomic(kilni_soft_grid_t*) grid;
} helper_t;

static void help(void* user) {
  helper_t* helper = user;
  atomic_store(&helper->ready, 1);
  kilni_soft_grid_t* grid;
  while (!(grid = atomic_load(&helper->grid))) {
  }
  kilni_soft_grid_work(grid);
}

// Runs the kernel once; returns nanoseconds and the thread-instructions.
static uint64_t run_once(run_t* run, const subject_t* subject, int workers,
                         uint64_t* out_executed) {
  kilni_soft_launch_t launch = {
      .entry = kilni_soft_code_find(run->code, subject->entry),
      .stack_bytes = 1024,
      .params = run->params};
  memcpy(launch.grid, subject->grid, sizeof(launch.grid));
  memcpy(launch.block, subject->block, sizeof(launch.block));
  for (int b = 0; b < BUFFERS && subject->buffers[b].bytes; b++) {
    fill(device_bytes(run, subject, b), &subject->buffers[b]);
  }
  helper_t helper = {.ready = 0};
  if (workers > 1) {
    check(kilni_base_thread_start(&helper.thread, "bench", help, &helper));
    while (!atomic_load(&helper.ready)) {
    }
  }
  kilni_soft_grid_t* grid;
  uint64_t start = bench_time_ns();
  check(kilni_soft_grid_create(&run->host, run->memory, &launch, &grid));
  atomic_store(&helper.grid, grid);
  kilni_soft_grid_work(grid);
  kilni_base_thread_join(&helper.thread);
  uint64_t spent = bench_time_ns() - start;
  const kilni_soft_fault_t* fault = kilni_soft_grid_fault(grid);
  if (fault->kind != KILNI_SOFT_FAULT_NONE) {
    fprintf(stderr, "kernel \"%s\" failed at PTX line %u\n", fault->kernel,
            (unsigned)fault->line);
    exit(8);
  }
  *out_executed = kilni_soft_grid_executed(grid);
  kilni_soft_grid_destroy(grid);
  return spent;
}

static int by_size(const void* a, const void* b) {
  uint64_t x, y;
  memcpy(&x, a, sizeof(x));
  memcpy(&y, b, sizeof(y));
  return (x > y) - (x < y);
}

static times_t summary(uint64_t spent[REPEATS], uint64_t executed) {
  qsort(spent, REPEATS, sizeof(*spent), by_size);
  return (times_t){(double)spent[0], (double)spent[REPEATS / 2], executed};
}

static times_t time_kernel(run_t* run, const subject_t* subject, int workers) {
  uint64_t spent[REPEATS];
  uint64_t executed = 0;
  for (int i = 0; i < REPEATS; i++) {
    spent[i] = run_once(run, subject, workers, &executed);
  }
  for (int b = 0; b < BUFFERS && subject->buffers[b].bytes; b++) {
    if (memcmp(run->plain[b], device_bytes(run, subject, b),
               subject->buffers[b].bytes) != 0) {
      fprintf(stderr, "%s: the bytes differ from plain C\n", subject->name);
      exit(1);
    }
  }
  return summary(spent, executed);
}

static times_t time_plain(const run_t* run, const subject_t* subject) {
  uint64_t spent[REPEATS];
  for (int i = 0; i < REPEATS; i++) {
    for (int b = 0; b < BUFFERS && subject->buffers[b].bytes; b++) {
      fill(run->plain[b], &subject->buffers[b]);
    }
    uint64_t start = bench_time_ns();
    subject->plain(run->plain, subject->scalars);
    spent[i] = bench_time_ns() - start;
  }
  return summary(spent, 0);
}

static void add_row(bench_report_t* report, const char* name,
                    const subject_t* subject, const times_t* times,
                    const char* baseline, double baseline_time) {
  double executed = (double)times->executed;
  bench_report_more(report, name, "1e9 thread-instructions/s",
                    executed / times->best, baseline, executed / baseline_time);
  bench_row_t* row = &report->rows[report->count - 1];
  row->median = executed / times->median;
  row->gflops = subject->operations / times->best;
}

static void bench_subject(bench_report_t* report, const subject_t* subject,
                          const char* root, const kiln_host_t* host,
                          const kilni_soft_lane_set_t* lanes, int workers) {
  run_t run = {.host = *host};
  char name[BENCH_NAME_BYTES];
  open_run(&run, subject, root, lanes);
  times_t plain = time_plain(&run, subject);
  times_t one = time_kernel(&run, subject, 1);
  if (workers != WORKERS) {
    snprintf(name, sizeof(name), "%s/%s", subject->name, lanes->name);
    add_row(report, name, subject, &one, "plain C -O2, same rate", plain.best);
  }
  if (workers != 1) {
    times_t two = time_kernel(&run, subject, WORKERS);
    snprintf(name, sizeof(name), "%s/%s/2 workers", subject->name, lanes->name);
    add_row(report, name, subject, &two, "1 worker", one.best);
  }
  close_run(&run);
}

int main(int argc, char** argv) {
  const char* root = KILN_SOURCE_DIR;
  const char* set = NULL;
  const char* only = NULL;
  int workers = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--root") == 0) root = argv[i + 1];
    if (strcmp(argv[i], "--lanes") == 0) set = argv[i + 1];
    if (strcmp(argv[i], "--only") == 0) only = argv[i + 1];
    if (strcmp(argv[i], "--workers") == 0) workers = atoi(argv[i + 1]);
  }
  kilni_base_env_t env;
  check(kilni_base_env_init(&env, kiln_allocator_libc()));
  kiln_host_t host = make_host(&env);
  static bench_report_t report;
  report.device = "soft";
  static const char* const kSets[] = {"plain", "avx2", "avx512"};
  for (size_t s = 0; s < sizeof(kSets) / sizeof(kSets[0]); s++) {
    const kilni_soft_lane_set_t* lanes = kilni_soft_lanes_choose(kSets[s]);
    if (lanes == NULL || (set && strcmp(set, kSets[s]) != 0)) continue;
    for (size_t i = 0; i < sizeof(kSubjects) / sizeof(kSubjects[0]); i++) {
      if (only && strcmp(only, kSubjects[i].name) != 0) continue;
      bench_subject(&report, &kSubjects[i], root, &host, lanes, workers);
    }
  }
  bench_report_print(&report);
  kilni_base_env_deinit(&env);
  return 0;
}
