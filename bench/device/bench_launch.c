// SPDX-License-Identifier: Apache-2.0
//
// bench: a launch of four arguments: prepared once, checked each time, and by
// the driver's own call, in turns and in one process.
//
//   bench_launch            over a driver table that does nothing: what the
//                           library itself costs. Fails above 30 ns for a
//                           prepared launch, and if one allocates
//   bench_launch cuda:0     over a driver, against its own cuLaunchKernel with
//                           the same arguments. Fails above 1.02 times that
//
// Exit code 77 where there is no such device. The same job in Python is
// bench_launch.py.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_report.h"
#include "bench_stub.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/table.h"

enum {
  SKIPPED = 77,
  STUB_LAUNCHES = 200000,  // of a round
  GPU_LAUNCHES = 400,      // fewer than a driver holds before it waits
  STUB_ROUNDS = 15,
  GPU_ROUNDS = 201,
  WAYS = 5,
};

static const double kStubLimit = 30.0;  // ns
static const double kGpuLimit = 1.02;   // times the driver's own call

static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry nothing(.param .u64 x, .param .f32 a, .param .u32 n,\n"
    "    .param .u64 y) { ret; }\n";

// What the ways launch. one-thread
typedef struct job_t {
  const kiln_cuda_table_t* table;  // the driver itself
  kiln_stream_t* stream;
  kiln_kernel_t* kernel;
  kiln_buffer_t* buffer;
  kiln_launch_t* prepared;
  kiln_launch_t* overlapping;  // NULL where the device has none
  void* function;
  uint64_t address;
} job_t;

static uint64_t g_allocations;

// A driver that does nothing, and not even count.
static kiln_cu_result_t stub_launch_ex(const kiln_cu_launch_config_t* config,
                                       kiln_cu_function_t function,
                                       void** params, void** extra) {
  (void)config;
  (void)function;
  (void)params;
  (void)extra;
  return KILN_CU_SUCCESS;
}

// ---- The ways ----

static void by_driver(const job_t* job, int count) {
  uint64_t x = job->address;
  float a = 2;
  uint32_t n = 1000;
  kiln_cu_stream_t stream = kiln_stream_handle(job->stream);
  for (int i = 0; i < count; i++) {
    void* params[] = {&x, &a, &n, &x};
    bench_need(
        job->table->cuLaunchKernel(job->function, 1, 1, 1, 32, 1, 1, 0, stream,
                                   params, NULL) == KILN_CU_SUCCESS,
        "cuLaunchKernel failed");
  }
}

static void by_prepared(const job_t* job, int count) {
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_launch_run(job->prepared, job->stream);
    if (status != NULL) bench_expect(status);
  }
}

// One argument changes each time, as it does in a loop.
static void by_changed(const job_t* job, int count) {
  for (int i = 0; i < count; i++) {
    kiln_status_t status =
        kiln_launch_set(job->prepared, 2, kiln_arg_u32((uint32_t)i));
    if (status == NULL) status = kiln_launch_run(job->prepared, job->stream);
    if (status != NULL) bench_expect(status);
  }
}

static void by_checked(const job_t* job, int count) {
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = 32;
  for (int i = 0; i < count; i++) {
    kiln_argument_t arguments[] = {kiln_arg_buffer(job->buffer),
                                   kiln_arg_f32(2), kiln_arg_u32(1000),
                                   kiln_arg_buffer(job->buffer)};
    kiln_status_t status =
        kiln_kernel_launch(job->kernel, job->stream, &config, arguments, 4);
    if (status != NULL) bench_expect(status);
  }
}

static void by_overlapping(const job_t* job, int count) {
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_launch_run(job->overlapping, job->stream);
    if (status != NULL) bench_expect(status);
  }
}

typedef void (*way_fn_t)(const job_t* job, int count);

static const struct {
  const char* name;
  way_fn_t run;
} kWays[WAYS] = {
    {"cuLaunchKernel", by_driver},
    {"kiln_launch_run", by_prepared},
    {"kiln_launch_set and run", by_changed},
    {"kiln_kernel_launch", by_checked},
    {"kiln_launch_run, overlapping", by_overlapping},
};

// ---- Measuring ----

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a;
  double y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof(*values), by_value);
  return values[count / 2];
}

static double g_spent[WAYS][GPU_ROUNDS];
static double g_ratio[WAYS][GPU_ROUNDS];

// The ways in turns, so that all see the same machine; each round begins with
// another one.
static void measure(const job_t* job, int rounds, int launches) {
  for (int way = 0; way < WAYS; way++) {
    if (way == 4 && job->overlapping == NULL) continue;
    kWays[way].run(job, launches);
    bench_expect(kiln_stream_synchronize(job->stream));
  }
  for (int round = 0; round < rounds; round++) {
    for (int k = 0; k < WAYS; k++) {
      int way = (k + round) % WAYS;
      if (way == 4 && job->overlapping == NULL) continue;
      uint64_t start = bench_time_ns();
      kWays[way].run(job, launches);
      g_spent[way][round] = (double)(bench_time_ns() - start) / launches;
      bench_expect(kiln_stream_synchronize(job->stream));
    }
    for (int way = 0; way < WAYS; way++) {
      g_ratio[way][round] = g_spent[way][round] / g_spent[0][round];
    }
  }
}

static bool report(const job_t* job, const char* device, bool real,
                   int rounds) {
  static bench_report_t out;
  bool good = true;
  out.device = device;
  double raw = median(g_spent[0], rounds);
  bench_report_less(&out, kWays[0].name, "ns", raw, NULL, 0);
  for (int way = 1; way < WAYS; way++) {
    if (way == 4 && job->overlapping == NULL) continue;
    double ratio = median(g_ratio[way], rounds);
    double spent = median(g_spent[way], rounds);
    bench_report_less(&out, kWays[way].name, "ns", spent, "cuLaunchKernel",
                      raw);
    fprintf(stderr, "%-32s best %.1f ns, median of the rounds' ratios %.4f\n",
            kWays[way].name, g_spent[way][0], ratio);
    if (way != 1) continue;
    good = real ? ratio <= kGpuLimit : g_spent[way][0] <= kStubLimit;
    fprintf(stderr, "bar: %s %s\n",
            real ? "at most 1.02 times the driver's call"
                 : "at most 30 ns over a table that does nothing",
            good ? "holds" : "DOES NOT HOLD");
  }
  bench_report_print(&out);
  return good;
}

static void prepare(job_t* job, kiln_device_t* device) {
  kiln_module_t* module = NULL;
  kiln_bytes_view_t image = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
  bench_expect(kiln_module_load(device, image, NULL, NULL, &module));
  bench_expect(kiln_kernel_create(module, NULL, &job->kernel));
  kiln_module_release(module);
  bench_expect(kiln_stream_create(device, NULL, &job->stream));
  bench_expect(kiln_buffer_create(device, 4096, NULL, &job->buffer));
  job->address = kiln_buffer_address(job->buffer);
  kiln_argument_t arguments[] = {kiln_arg_buffer(job->buffer), kiln_arg_f32(2),
                                 kiln_arg_u32(1000),
                                 kiln_arg_buffer(job->buffer)};
  config.block[0] = 32;
  bench_expect(kiln_launch_create(job->kernel, &config, &job->prepared));
  bench_expect(kiln_launch_set_all(job->prepared, arguments, 4));
  attributes.overlap = KILN_SWITCH_ON;
  config.attributes = &attributes;
  kiln_status_t status =
      kiln_launch_create(job->kernel, &config, &job->overlapping);
  if (!kiln_status_is_ok(status)) {
    fprintf(stderr, "no overlapping launches: %s\n",
            kiln_status_message(status));
    kiln_status_free(status);
    return;
  }
  bench_expect(kiln_launch_set_all(job->overlapping, arguments, 4));
}

static void release(job_t* job, kiln_device_t* device) {
  kiln_launch_release(job->overlapping);
  kiln_launch_release(job->prepared);
  kiln_buffer_release(job->buffer);
  kiln_kernel_release(job->kernel);
  kiln_stream_release(job->stream);
  kiln_device_release(device);
}

// Where the driver's own call is taken from: below every wrapper.
static kiln_status_t keep_table(void* user, kiln_cuda_table_t* inout_table) {
  *(kiln_cuda_table_t*)user = *inout_table;
  return NULL;
}

int main(int argc, char** argv) {
  static kiln_cuda_table_t stub;
  static kiln_cuda_table_t raw;
  bool real = argc > 1;
  job_t job;
  memset(&job, 0, sizeof(job));
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kiln_allocator_t allocator = bench_counting_allocator(&g_allocations);
  kilni_runtime_hooks_t hooks = {0};
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  kilni_cuda_table_null(&stub);
  KILNI_CUDA_SET(&stub, cuLaunchKernel, bench_stub_launch);
  KILNI_CUDA_SET(&stub, cuLaunchKernelEx, stub_launch_ex);
  options.allocator = &allocator;
  hooks.wrap = keep_table;
  hooks.user = &raw;
  if (!real) hooks.cuda_table = &stub;
  bench_expect(kilni_runtime_create_with(&options, &hooks, &runtime));
  kiln_status_t status =
      kiln_runtime_open_device(runtime, real ? argv[1] : "cuda:0", &device);
  if (!kiln_status_is_ok(status)) {
    printf("no device: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(runtime);
    return SKIPPED;
  }
  job.table = &raw;
  prepare(&job, device);
  // The driver's own call is made as its users make it: with the context
  // current.
  bench_need(
      raw.cuCtxSetCurrent(kiln_device_context(device)) == KILN_CU_SUCCESS,
      "the context cannot be made current");
  kiln_cu_module_t module = NULL;
  kiln_cu_function_t function = NULL;
  bench_need(raw.cuModuleLoadData(&module, kPtx) == KILN_CU_SUCCESS &&
                 raw.cuModuleGetFunction(&function, module, "nothing") ==
                     KILN_CU_SUCCESS,
             "the driver does not load the kernel");
  job.function = function;
  int rounds = real ? GPU_ROUNDS : STUB_ROUNDS;
  uint64_t allocations = g_allocations;
  measure(&job, rounds, real ? GPU_LAUNCHES : STUB_LAUNCHES);
  bench_need(g_allocations == allocations,
             "something was allocated on the way");
  fprintf(stderr, "allocations on the way: 0\n");
  bool good = report(&job, kiln_device_name(device), real, rounds);
  (void)raw.cuModuleUnload(module);
  (void)raw.cuCtxSetCurrent(NULL);
  release(&job, device);
  kiln_runtime_release(runtime);
  return good ? 0 : 1;
}
