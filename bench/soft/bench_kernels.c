// SPDX-License-Identifier: Apache-2.0
//
// bench: whole kernels on the software device, on one core, beside the same
// work in plain C at -O2.
//
//   bench_kernels [--root DIR] [--lanes NAME]...
//
// DIR holds examples/pictures/*.ptx (default: the source tree). The unit is
// 1e9 thread-instructions a second: one PTX instruction executed by one active
// lane whose guard is true. The baseline is the same kernel as plain C, in the
// time that it takes: the ratio says how far the engine is from C.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host.h"
#include "base/thread.h"
#include "bench_plain.h"
#include "bench_report.h"
#include "soft/engine/soft_grid.h"

enum { WIDTH = 512, HEIGHT = 512, LIMIT = 512, REPEATS = 5 };

// A kernel and the memory it works on.
typedef struct subject_t {
  const char* name;
  const char* file;
  const char* entry;
  uint32_t block[3];
  uint32_t in_bytes;  // 0: no input buffer
  uint32_t out_bytes;
  int32_t scalars[3];
  int scalar_count;
  void (*plain)(const uint8_t* in, uint8_t* out, const int32_t* scalars);
} subject_t;

static const subject_t kSubjects[] = {
    {"mandelbrot",
     "mandelbrot.ptx",
     "mandelbrot",
     {32, 8, 1},
     0,
     WIDTH* HEIGHT * 3,
     {WIDTH, HEIGHT, LIMIT},
     3,
     bench_plain_mandelbrot},
    {"blur",
     "blur.ptx",
     "blur",
     {16, 16, 1},
     WIDTH* HEIGHT,
     WIDTH* HEIGHT,
     {WIDTH, HEIGHT, 0},
     2,
     bench_plain_blur},
};

static kiln_host_t make_host(const kilni_env_t* env) {
  kiln_host_t host = {.allocator = kiln_allocator_libc(), .env = env};
  host.worker_count = 1;
  host.process_id = kilni_process_id();
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
  uint64_t in;
  uint64_t out;
  uint8_t params[64];
} run_t;

static void fill_input(uint8_t* bytes, size_t size) {
  uint32_t state = 1;
  for (size_t i = 0; i < size; i++) {
    state = state * 1664525u + 1013904223u;
    bytes[i] = (uint8_t)(state >> 24);
  }
}

static void open_run(run_t* run, const subject_t* subject, const char* root,
                     const kilni_soft_lane_set_t* lanes) {
  char path[1024];
  uint8_t* text;
  size_t size;
  kilni_ptx_module_t* module;
  snprintf(path, sizeof(path), "%s/examples/pictures/%s", root, subject->file);
  check(kilni_file_read(run->host.allocator, path, 1 << 24, &text, &size));
  check(kilni_ptx_module_create((kiln_bytes_view_t){text, size}, path, NULL,
                                run->host.allocator, &module));
  kilni_file_free(run->host.allocator, text, size);
  check(kilni_soft_memory_create(&run->host, true, &run->memory));
  check(kilni_soft_code_create(&run->host, module, lanes, run->memory,
                               &run->code));
  kilni_ptx_module_release(module);
  uint8_t* at = run->params;
  if (subject->in_bytes) {
    check(kilni_soft_memory_alloc(run->memory, subject->in_bytes,
                                  KILNI_SOFT_ALLOC_DEVICE, &run->in));
    fill_input(kilni_soft_memory_host(run->memory, run->in, subject->in_bytes),
               subject->in_bytes);
    memcpy(at, &run->in, 8);
    at += 8;
  }
  check(kilni_soft_memory_alloc(run->memory, subject->out_bytes,
                                KILNI_SOFT_ALLOC_DEVICE, &run->out));
  memcpy(at, &run->out, 8);
  memcpy(at + 8, subject->scalars, 4u * (unsigned)subject->scalar_count);
}

static void close_run(run_t* run) {
  kilni_soft_code_destroy(run->code);
  kilni_soft_memory_destroy(run->memory);
}

// Runs the kernel once; returns nanoseconds and the thread-instructions.
static uint64_t run_once(run_t* run, const subject_t* subject,
                         uint64_t* out_executed) {
  kilni_soft_launch_t launch = {
      .entry = kilni_soft_code_find(run->code, subject->entry),
      .grid = {(WIDTH + subject->block[0] - 1) / subject->block[0],
               (HEIGHT + subject->block[1] - 1) / subject->block[1], 1},
      .block = {subject->block[0], subject->block[1], subject->block[2]},
      .stack_bytes = 1024,
      .params = run->params};
  kilni_soft_grid_t* grid;
  uint64_t start = bench_time_ns();
  check(kilni_soft_grid_create(&run->host, run->memory, &launch, &grid));
  kilni_soft_grid_work(grid);
  uint64_t spent = bench_time_ns() - start;
  const kilni_soft_fault_t* fault = kilni_soft_grid_fault(grid);
  if (fault->kind != KILNI_SOFT_FAULT_NONE) {
    fprintf(stderr, "%s\n", fault->report);
    exit(8);
  }
  *out_executed = kilni_soft_grid_executed(grid);
  kilni_soft_grid_destroy(grid);
  return spent;
}

// The shortest of several runs, and whether the bytes are those of plain C.
static void bench_subject(bench_report_t* report, const subject_t* subject,
                          const char* root, const kiln_host_t* host,
                          const kilni_soft_lane_set_t* lanes) {
  run_t run = {.host = *host};
  open_run(&run, subject, root, lanes);
  uint8_t* in = malloc(subject->in_bytes + 1);
  uint8_t* out = malloc(subject->out_bytes);
  fill_input(in, subject->in_bytes);
  uint64_t best = UINT64_MAX, best_plain = UINT64_MAX, executed = 0;
  for (int i = 0; i < REPEATS; i++) {
    uint64_t spent = run_once(&run, subject, &executed);
    if (spent < best) best = spent;
    uint64_t start = bench_time_ns();
    subject->plain(in, out, subject->scalars);
    spent = bench_time_ns() - start;
    if (spent < best_plain) best_plain = spent;
  }
  if (memcmp(out,
             kilni_soft_memory_host(run.memory, run.out, subject->out_bytes),
             subject->out_bytes) != 0) {
    fprintf(stderr, "%s: the bytes differ from plain C\n", subject->name);
    exit(1);
  }
  char name[BENCH_NAME_BYTES];
  snprintf(name, sizeof(name), "%s/%s", subject->name, lanes->name);
  bench_report_more(report, name, "1e9 thread-instructions/s",
                    (double)executed / (double)best, "plain C -O2, same rate",
                    (double)executed / (double)best_plain);
  close_run(&run);
  free(in);
  free(out);
}

int main(int argc, char** argv) {
  const char* root = KILN_SOURCE_DIR;
  const char* only = NULL;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--root") == 0) root = argv[i + 1];
    if (strcmp(argv[i], "--lanes") == 0) only = argv[i + 1];
  }
  kilni_env_t env;
  check(kilni_env_init(&env, kiln_allocator_libc()));
  kiln_host_t host = make_host(&env);
  static bench_report_t report;
  report.device = "soft";
  static const char* const kSets[] = {"plain", "avx2", "avx512"};
  for (size_t s = 0; s < sizeof(kSets) / sizeof(kSets[0]); s++) {
    const kilni_soft_lane_set_t* lanes = kilni_soft_lanes_choose(kSets[s]);
    if (lanes == NULL || (only && strcmp(only, kSets[s]) != 0)) continue;
    for (size_t i = 0; i < sizeof(kSubjects) / sizeof(kSubjects[0]); i++) {
      bench_subject(&report, &kSubjects[i], root, &host, lanes);
    }
  }
  bench_report_print(&report);
  kilni_env_deinit(&env);
  return 0;
}
