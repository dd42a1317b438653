// SPDX-License-Identifier: Apache-2.0
//
// bench: a dispatch of four resident buffers: prepared, checked each time, with
// a scalar that changes, in a batch; and the driver's own launch of the same
// code with the same arguments, in turns and in one process.
//
//   bench_dispatch            over a driver table that does nothing: what the
//                             library itself costs. Fails above 100 ns for a
//                             prepared run, and if anything is allocated on the
//                             way
//   bench_dispatch cuda:0     over a driver, against its own cuLaunchKernel.
//                             Fails above 1.02 times that for a prepared run.
//                             Behind that, to their end: 1,000 dispatches each
//                             behind the one before, launched by the driver's
//                             call and by prepared runs that overlap (goal:
//                             0.85 times); told, not judged
//
// Exit code 77 where there is no such device. What cuda.core and CuPy need for
// a launch is beside bench_launch.
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
  ELEMENTS = 32,
  STUB_RUNS = 100000,  // of a round
  GPU_RUNS = 400,      // fewer than a driver holds before it waits
  STUB_ROUNDS = 15,
  GPU_ROUNDS = 201,
  WAYS = 5,
  MAX_ARGUMENTS = 32,
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

static uint64_t g_allocations;

// ---- The ways ----

static void by_driver(job_t* job, int count) {
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

static void by_prepared(job_t* job, int count) {
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_prepared_run(job->prepared, job->stream);
    if (status != NULL) bench_expect(status);
  }
}

static void by_scalar(job_t* job, int count) {
  for (int i = 0; i < count; i++) {
    kiln_status_t status =
        kiln_prepared_set_scalar(job->prepared, 3, (uint64_t)i);
    if (status == NULL) status = kiln_prepared_run(job->prepared, job->stream);
    if (status != NULL) bench_expect(status);
  }
}

static void by_dispatch(job_t* job, int count) {
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_pipeline_dispatch(job->pipeline, job->stream,
                                                  job->bindings, 5, NULL, NULL);
    if (status != NULL) bench_expect(status);
  }
}

// A way of its own where the order of one stream is all that is wanted.
static void by_null(job_t* job, int count) {
  for (int i = 0; i < count; i++) {
    kiln_status_t status = kiln_prepared_run(job->prepared, NULL);
    if (status != NULL) bench_expect(status);
  }
}

typedef void (*way_fn_t)(job_t* job, int count);

static const struct {
  const char* name;
  way_fn_t run;
} kWays[WAYS] = {
    {"cuLaunchKernel", by_driver},
    {"kiln_prepared_run", by_prepared},
    {"kiln_prepared_run, the own stream", by_null},
    {"kiln_prepared_set_scalar and run", by_scalar},
    {"kiln_pipeline_dispatch", by_dispatch},
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

static void wait_for(job_t* job) {
  bench_expect(kiln_stream_synchronize(job->stream));
  bench_expect(kiln_dispatcher_synchronize(job->dispatcher));
}

// The ways in turns, so that all see the same machine; each round begins with
// another one.
static void measure(job_t* job, int rounds, int runs) {
  for (int way = 0; way < WAYS; way++) {
    kWays[way].run(job, runs);
    wait_for(job);
  }
  for (int round = 0; round < rounds; round++) {
    for (int k = 0; k < WAYS; k++) {
      int way = (k + round) % WAYS;
      uint64_t start = bench_time_ns();
      kWays[way].run(job, runs);
      g_spent[way][round] = (double)(bench_time_ns() - start) / runs;
      wait_for(job);
    }
    for (int way = 0; way < WAYS; way++) {
      g_ratio[way][round] = g_spent[way][round] / g_spent[0][round];
    }
  }
}

static bool report(const char* device, bool real, int rounds) {
  static bench_report_t out;
  bool good = true;
  out.device = device;
  double raw = median(g_spent[0], rounds);
  bench_report_less(&out, kWays[0].name, "ns", raw, NULL, 0);
  for (int way = 1; way < WAYS; way++) {
    double ratio = median(g_ratio[way], rounds);
    double spent = median(g_spent[way], rounds);
    bench_report_less(&out, kWays[way].name, "ns", spent, kWays[0].name, raw);
    fprintf(stderr, "%-36s best %.1f ns, median of the rounds' ratios %.4f\n",
            kWays[way].name, g_spent[way][0], ratio);
    if (way != 1) continue;
    good = real ? ratio <= kGpuLimit : g_spent[way][0] <= kStubLimit;
    fprintf(stderr, "bar: %s %s\n",
            real ? "at most 1.02 times the driver's call"
                 : "at most 100 ns over a table that does nothing",
            good ? "holds" : "DOES NOT HOLD");
  }
  bench_report_print(&out);
  return good;
}

// Dispatches to their end, one behind the other on the device: those that may
// start before what is in front has ended, beside those that may not. The
// driver's call launches the same code, which then has nothing to wait for.
static void measure_chain(job_t* job, const char* device) {
  static const int kOf[3] = {0, 1, 2};  // of kWays
  static const char* const kNames[3] = {
      "1,000 dependent dispatches, cuLaunchKernel",
      "1,000 dependent dispatches, a caller's stream",
      "1,000 dependent dispatches, overlapping"};
  static double spent[3][CHAIN_ROUNDS];
  static double ratios[3][CHAIN_ROUNDS];
  static bench_report_t out;
  bool waits = kiln_pipeline_info(job->pipeline)->waits != 0;
  for (int round = -3; round < CHAIN_ROUNDS; round++) {
    double took[3] = {0, 0, 0};
    for (int k = 0; k < 3; k++) {
      int way = (k + round + 3) % 3;
      uint64_t start = bench_time_ns();
      kWays[kOf[way]].run(job, CHAIN_RUNS);
      wait_for(job);
      took[way] = (double)(bench_time_ns() - start);
    }
    for (int way = 0; way < 3 && round >= 0; way++) {
      spent[way][round] = took[way] / CHAIN_RUNS;
      ratios[way][round] = took[way] / took[0];
    }
  }
  out.device = device;
  double raw = median(spent[0], CHAIN_ROUNDS);
  for (int way = 0; way < 3; way++) {
    double ratio = median(ratios[way], CHAIN_ROUNDS);
    bench_report_less(&out, kNames[way], "ns", median(spent[way], CHAIN_ROUNDS),
                      way == 0 ? NULL : kNames[0], raw);
    fprintf(stderr, "%s: median of the rounds' ratios %.4f\n", kNames[way],
            ratio);
    if (way != 2) continue;
    fprintf(stderr, "goal: under %.2f with an overlap%s: %s\n", kChainGoal,
            waits ? "" : " (this device has none)",
            ratio < kChainGoal ? "reached" : "not reached");
  }
  bench_report_print(&out);
}

// ---- Making ----

static void make_values(job_t* job) {
  kiln_program_code_t* code = kiln_pipeline_code(job->pipeline);
  kiln_program_parameter_t p;
  for (uint32_t i = 0; kiln_program_code_parameter(code, i, &p); i++) {
    bench_need(i < MAX_ARGUMENTS, "more arguments than there is room for");
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

static void release(job_t* job, kiln_device_t* device) {
  kiln_prepared_release(job->prepared);
  kiln_pipeline_release(job->pipeline);
  for (int i = 0; i < 4; i++) {
    bench_expect(kiln_resident_free(job->dispatcher, job->residents[i]));
  }
  kiln_stream_release(job->stream);
  kiln_dispatcher_release(job->dispatcher);
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
  static job_t job;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kiln_allocator_t allocator = bench_counting_allocator(&g_allocations);
  kilni_runtime_hooks_t hooks = {0};
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  kilni_cuda_table_null(&stub);
  KILNI_CUDA_SET(&stub, cuLaunchKernel, bench_stub_launch);
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
  load_again(&job);
  if (real) compare(&job);
  int rounds = real ? GPU_ROUNDS : STUB_ROUNDS;
  kWays[4].run(&job, 1);
  uint64_t allocations = g_allocations;
  measure(&job, rounds, real ? GPU_RUNS : STUB_RUNS);
  bench_need(g_allocations == allocations,
             "something was allocated on the way");
  fprintf(stderr, "allocations on the way: 0\n");
  bool good = report(kiln_device_name(device), real, rounds);
  if (real) measure_chain(&job, kiln_device_name(device));
  (void)raw.cuModuleUnload(job.module);
  (void)raw.cuCtxSetCurrent(NULL);
  release(&job, device);
  kiln_runtime_release(runtime);
  return good ? 0 : 1;
}
