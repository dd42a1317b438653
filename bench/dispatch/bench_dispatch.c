// SPDX-License-Identifier: Apache-2.0
//
// bench: a dispatch of four resident buffers: prepared, checked each time, with
// a scalar that changes, in a batch; and the driver's own launch of the same
// code with the same arguments, in turns and in one process.
//
//   bench_dispatch            over a driver table that does nothing: what the
//                             library itself costs. Fails above 100 ns for a
//                             dispatch, prepared or not, and if anything is
//                             allocated on the way
//   bench_dispatch cuda:0     over a driver, against its own cuLaunchKernel.
//                             Fails above 1.02 times that for a prepared run.
//                             Behind that, to their end: 1,000 dispatches each
//                             behind the one before, launched by the driver's
//                             call and by prepared runs that overlap (goal:
//                             0.85 times); told, not judged
//
// How it is measured is in bench_turns.h. Exit code 77 where there is no such
// device. bench_dispatch.py has the same in cuda.core and CuPy beside it.
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
  ELEMENTS = 32,
  RUNS = 200,  // of a turn: fewer than a driver holds before it waits
  STUB_ROUNDS = 1001,
  GPU_ROUNDS = 501,
  WAYS = 6,
  MAX_ARGUMENTS = 32,
  CHAINS = 3,
  CHAIN_RUNS = 1000,
  CHAIN_ROUNDS = 101,
};

static const double kStubLimit = 100.0;  // ns
static const double kGpuLimit = 1.02;    // times the driver's own call
static const double kChainGoal = 0.85;   // the same, to the end of the work

static const char kProgram[] =
    "program four(x: in u32[], y: in u32[length(x)], k: uniform u32[1],\n"
    "             a: u32, z: inout u32[length(x)]) work length(x) block 32\n"
    "{ let i = global_id.x; z[i] = x[i] + y[i] * k[0] + a; }\n";

// What the ways launch. one-thread
typedef struct job_t {
  const kiln_cuda_table_t* table;  // the driver itself
  kiln_dispatcher_t* dispatcher;
  kiln_pipeline_t* pipeline;
  kiln_prepared_t* prepared;
  kiln_stream_t* stream;
  kiln_resident_t residents[4];
  kiln_binding_t bindings[5];
  kiln_dispatch_plan_t plan;
  kiln_cu_module_t module;
  kiln_cu_function_t function;
  uint64_t values[MAX_ARGUMENTS];  // of the driver's own call
  uint32_t count;
} job_t;

// ---- The ways ----

static void by_driver(void* user, int count) {
  job_t* job = user;
  const kiln_dispatch_plan_t* p = &job->plan;
  kiln_cu_stream_t stream = kiln_stream_handle(job->stream);
  for (int i = 0; i < count; i++) {
    void* params[MAX_ARGUMENTS];
    for (uint32_t k = 0; k < job->count; k++) params[k] = &job->values[k];
    bench_need(job->table->cuLaunchKernel(job->function, p->grid[0], p->grid[1],
                                          p->grid[2], p->block[0], p->block[1],
                                          p->block[2], 0, stream, params,
                                          NULL) == KILN_CU_SUCCESS,
               "cuLaunchKernel failed");
  }
}

static void by_prepared(void* user, int count) {
  job_t* job = user;
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_prepared_run(job->prepared, job->stream);
    if (status != NULL) bench_expect(status);
  }
}

static void by_scalar(void* user, int count) {
  job_t* job = user;
  for (int i = 0; i < count; i++) {
    kiln_status_t status =
        kiln_prepared_set_scalar(job->prepared, 3, (uint64_t)i);
    if (status == NULL) status = kiln_prepared_run(job->prepared, job->stream);
    if (status != NULL) bench_expect(status);
  }
}

static void by_dispatch(void* user, int count) {
  job_t* job = user;
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_pipeline_dispatch(job->pipeline, job->stream,
                                                  job->bindings, 5, NULL, NULL);
    if (status != NULL) bench_expect(status);
  }
}

// A way of its own where the order of one stream is all that is wanted.
static void by_null(void* user, int count) {
  job_t* job = user;
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_prepared_run(job->prepared, NULL);
    if (status != NULL) bench_expect(status);
  }
}

static void by_dispatch_null(void* user, int count) {
  job_t* job = user;
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_pipeline_dispatch(job->pipeline, NULL,
                                                  job->bindings, 5, NULL, NULL);
    if (status != NULL) bench_expect(status);
  }
}

static const bench_way_t kWays[WAYS] = {
    {"cuLaunchKernel", by_driver, false},
    {"kiln_prepared_run", by_prepared, false},
    {"kiln_prepared_run, the own stream", by_null, false},
    {"kiln_prepared_set_scalar and run", by_scalar, false},
    {"kiln_pipeline_dispatch", by_dispatch, false},
    {"kiln_pipeline_dispatch, the own stream", by_dispatch_null, false},
};

static void wait_for(void* user) {
  job_t* job = user;
  bench_expect(kiln_stream_synchronize(job->stream));
  bench_expect(kiln_dispatcher_synchronize(job->dispatcher));
}

static bool judge(const bench_turns_t* turns, bool real) {
  bool good;
  if (real) {
    good = bench_turns_judge("a prepared run, in times the driver's call,",
                             turns->ratio[1], kGpuLimit);
    return bench_turns_judge(
               "kiln_pipeline_dispatch, the own stream, the same,",
               turns->ratio[5], kGpuLimit) &&
           good;
  }
  good = bench_turns_judge("ns of a prepared run", turns->best[1], kStubLimit);
  return bench_turns_judge("ns of kiln_pipeline_dispatch", turns->best[4],
                           kStubLimit) &&
         good;
}

// ---- To their end ----

// Dispatches one behind the other on the device: those that may start before
// what is in front has ended, beside those that may not. The driver's call
// launches the same code, which then has nothing to wait for.
static void chain_driver(void* user, int count) {
  by_driver(user, count);
  wait_for(user);
}

static void chain_caller(void* user, int count) {
  by_prepared(user, count);
  wait_for(user);
}

static void chain_overlapping(void* user, int count) {
  by_null(user, count);
  wait_for(user);
}

static const bench_way_t kChains[CHAINS] = {
    {"1,000 dependent, cuLaunchKernel", chain_driver, false},
    {"1,000 dependent, a caller's stream", chain_caller, false},
    {"1,000 dependent, overlapping", chain_overlapping, false},
};

static void measure_chain(job_t* job, bench_turns_t* turns) {
  bool waits = kiln_pipeline_info(job->pipeline)->waits != 0;
  turns->ways = kChains;
  turns->way_count = CHAINS;
  turns->rounds = CHAIN_ROUNDS;
  turns->runs = CHAIN_RUNS;
  turns->job = job;
  bench_turns_measure(turns);
  fprintf(stderr, "goal: under %.2f with an overlap%s: %.4f, %s\n", kChainGoal,
          waits ? "" : " (this device has none)", turns->ratio[2],
          turns->ratio[2] < kChainGoal ? "reached" : "not reached");
}

// ---- Making ----

static void make_values(job_t* job) {
  kiln_program_code_t* code = kiln_pipeline_code(job->pipeline);
  kiln_program_parameter_t p;
  for (uint32_t i = 0; kiln_program_code_parameter(code, i, &p); i++) {
    bench_need(i < MAX_ARGUMENTS, "more arguments than there is space for");
    job->count = i + 1;
    job->values[i] = p.index == 2 ? 1 : ELEMENTS;
    if (p.kind == KILN_PROGRAM_PARAMETER_WORK) job->values[i] = ELEMENTS;
    if (p.kind == KILN_PROGRAM_PARAMETER_SCALAR) job->values[i] = 5;
    if (p.kind != KILN_PROGRAM_PARAMETER_ADDRESS) continue;
    bench_expect(kiln_resident_address(job->dispatcher, job->residents[p.index],
                                       &job->values[i]));
  }
}

static void prepare(job_t* job, kiln_device_t* device) {
  static const uint32_t kWords[ELEMENTS] = {1, 2, 3};
  kiln_program_t* program = NULL;
  kiln_string_view_t text = {kProgram, sizeof(kProgram) - 1};
  bench_expect(kiln_dispatcher_create(device, NULL, &job->dispatcher));
  bench_expect(kiln_program_parse(text, NULL, NULL, &program));
  bench_expect(
      kiln_pipeline_create(job->dispatcher, program, NULL, &job->pipeline));
  kiln_program_release(program);
  bench_expect(kiln_stream_create(device, NULL, &job->stream));
  for (uint32_t i = 0; i < 4; i++) {
    uint64_t bytes = i == 2 ? 4 : sizeof(kWords);
    bench_expect(
        kiln_resident_allocate(job->dispatcher, bytes, &job->residents[i]));
    bench_expect(kiln_resident_upload(job->dispatcher, NULL, job->residents[i],
                                      0, bytes, kWords));
    job->bindings[i < 3 ? i : 4] = kiln_bind_resident(job->residents[i]);
  }
  job->bindings[3] = kiln_bind_u32(5);
  bench_expect(kiln_dispatcher_synchronize(job->dispatcher));
  bench_expect(kiln_pipeline_prepare(job->pipeline, job->bindings, 5, NULL,
                                     &job->prepared));
  kiln_prepared_plan(job->prepared, &job->plan);
  make_values(job);
}

// Once: the driver's own call must do what the others do.
static void compare(job_t* job) {
  uint32_t by[2][ELEMENTS];
  for (int i = 0; i < 2; i++) {
    kiln_resident_range_t all = {0, 0};
    bench_expect(kiln_resident_fill(job->dispatcher, NULL, job->residents[3],
                                    all, 0, 4));
    bench_expect(kiln_dispatcher_synchronize(job->dispatcher));
    kWays[i].run(job, 1);
    bench_expect(kiln_stream_synchronize(job->stream));
    bench_expect(kiln_resident_download(
        job->dispatcher, NULL, job->residents[3], 0, sizeof(by[i]), by[i]));
  }
  bench_need(memcmp(by[0], by[1], sizeof(by[0])) == 0 && by[0][1] == 2 + 2 + 5,
             "the ways do not do the same");
}

static void load_again(job_t* job) {
  kiln_program_code_t* code = kiln_pipeline_code(job->pipeline);
  bench_need(
      job->table->cuModuleLoadData(
          &job->module, kiln_program_code_text(code).data) == KILN_CU_SUCCESS &&
          job->table->cuModuleGetFunction(&job->function, job->module,
                                          kiln_program_code_entry(code)) ==
              KILN_CU_SUCCESS,
      "the driver does not load the kernel");
}

static void release(job_t* job) {
  kiln_prepared_release(job->prepared);
  kiln_pipeline_release(job->pipeline);
  for (int i = 0; i < 4; i++) {
    bench_expect(kiln_resident_free(job->dispatcher, job->residents[i]));
  }
  kiln_stream_release(job->stream);
  kiln_dispatcher_release(job->dispatcher);
}

int main(int argc, char** argv) {
  static bench_stage_t stage;
  static bench_turns_t turns;
  static bench_report_t report;
  static job_t job;
  bool real = argc > 1;
  bench_stage_init(&stage);
  KILNI_CUDA_SET(&stage.stub, cuLaunchKernel, bench_stub_launch);
  KILNI_CUDA_SET(&stage.stub, cuLaunchKernelEx, bench_stub_launch_ex);
  if (!bench_stage_open(&stage, real ? argv[1] : NULL)) return BENCH_SKIPPED;
  job.table = &stage.raw;
  prepare(&job, stage.device);
  load_again(&job);
  if (real) compare(&job);
  turns.ways = kWays;
  turns.way_count = WAYS;
  turns.rounds = real ? GPU_ROUNDS : STUB_ROUNDS;
  turns.runs = RUNS;
  turns.job = &job;
  turns.wait = wait_for;
  kWays[4].run(&job, 1);
  uint64_t allocations = stage.allocations;
  bench_turns_measure(&turns);
  bench_need(stage.allocations == allocations,
             "something was allocated on the way");
  fprintf(stderr, "allocations on the way: 0\n");
  report.device = kiln_device_name(stage.device);
  bench_turns_report(&turns, &report);
  bool good = judge(&turns, real);
  if (real) {
    static bench_turns_t chains;
    measure_chain(&job, &chains);
    bench_turns_report(&chains, &report);
  }
  bench_report_print(&report);
  (void)stage.raw.cuModuleUnload(job.module);
  release(&job);
  bench_stage_close(&stage);
  return good ? 0 : 1;
}
