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
// How it is measured is in bench_turns.h. Exit code 77 where there is no such
// device. The same job in Python is bench_launch.py.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_report.h"
#include "bench_stage.h"
#include "bench_stub.h"
#include "bench_turns.h"
#include "kiln/kiln.h"

enum {
  LAUNCHES = 200,  // of a turn: fewer than a driver holds before it waits
  STUB_ROUNDS = 1001,
  GPU_ROUNDS = 501,
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

// ---- The ways ----

static void by_driver(void* user, int count) {
  const job_t* job = user;
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

static void by_prepared(void* user, int count) {
  const job_t* job = user;
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_launch_run(job->prepared, job->stream);
    if (status != NULL) bench_expect(status);
  }
}

// One argument changes each time, as it does in a loop.
static void by_changed(void* user, int count) {
  const job_t* job = user;
  for (int i = 0; i < count; i++) {
    kiln_status_t status =
        kiln_launch_set(job->prepared, 2, kiln_arg_u32((uint32_t)i));
    if (status == NULL) status = kiln_launch_run(job->prepared, job->stream);
    if (status != NULL) bench_expect(status);
  }
}

static void by_checked(void* user, int count) {
  const job_t* job = user;
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

static void by_overlapping(void* user, int count) {
  const job_t* job = user;
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_launch_run(job->overlapping, job->stream);
    if (status != NULL) bench_expect(status);
  }
}

static void wait_for(void* user) {
  const job_t* job = user;
  bench_expect(kiln_stream_synchronize(job->stream));
}

static bool judge(const bench_turns_t* turns, bool real) {
  if (real) {
    return bench_turns_judge("a prepared launch, in times the driver's call,",
                             turns->ratio[1], kGpuLimit);
  }
  return bench_turns_judge("ns of a prepared launch", turns->best[1],
                           kStubLimit);
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

static void load(job_t* job, kiln_cu_module_t* out_module) {
  kiln_cu_function_t function = NULL;
  bench_need(
      job->table->cuModuleLoadData(out_module, kPtx) == KILN_CU_SUCCESS &&
          job->table->cuModuleGetFunction(&function, *out_module, "nothing") ==
              KILN_CU_SUCCESS,
      "the driver does not load the kernel");
  job->function = function;
}

static void release(job_t* job) {
  kiln_launch_release(job->overlapping);
  kiln_launch_release(job->prepared);
  kiln_buffer_release(job->buffer);
  kiln_kernel_release(job->kernel);
  kiln_stream_release(job->stream);
}

int main(int argc, char** argv) {
  static bench_stage_t stage;
  static bench_turns_t turns;
  static bench_report_t report;
  static job_t job;
  kiln_cu_module_t module = NULL;
  bool real = argc > 1;
  bench_stage_init(&stage);
  KILNI_CUDA_SET(&stage.stub, cuLaunchKernel, bench_stub_launch);
  KILNI_CUDA_SET(&stage.stub, cuLaunchKernelEx, bench_stub_launch_ex);
  if (!bench_stage_open(&stage, real ? argv[1] : NULL)) return BENCH_SKIPPED;
  job.table = &stage.raw;
  prepare(&job, stage.device);
  load(&job, &module);
  const bench_way_t ways[WAYS] = {
      {"cuLaunchKernel", by_driver, false},
      {"kiln_launch_run", by_prepared, false},
      {"kiln_launch_set and run", by_changed, false},
      {"kiln_kernel_launch", by_checked, false},
      {"kiln_launch_run, overlapping", by_overlapping, job.overlapping == NULL},
  };
  turns.ways = ways;
  turns.way_count = WAYS;
  turns.rounds = real ? GPU_ROUNDS : STUB_ROUNDS;
  turns.runs = LAUNCHES;
  turns.job = &job;
  turns.wait = wait_for;
  uint64_t allocations = stage.allocations;
  bench_turns_measure(&turns);
  bench_need(stage.allocations == allocations,
             "something was allocated on the way");
  fprintf(stderr, "allocations on the way: 0\n");
  report.device = kiln_device_name(stage.device);
  bench_turns_report(&turns, &report);
  bool good = judge(&turns, real);
  bench_report_print(&report);
  (void)stage.raw.cuModuleUnload(module);
  release(&job);
  bench_stage_close(&stage);
  return good ? 0 : 1;
}
