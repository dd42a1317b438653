// SPDX-License-Identifier: Apache-2.0
//
// bench: a sequence of 1,000 small dispatches, each behind the one before: run
// on a stream, and as a replay; beside the driver's own launches of the same
// code and a graph of it that is made by the driver's calls.
//
//   bench_sequence            over a driver table that does nothing: what a run
//                             of a replay costs, of 10 and of 1,000 steps.
//                             Fails if either allocates, is above 100 ns, or
//                             the longer one is above twice the shorter one
//   bench_sequence cuda:0     over a driver, to the end of the work. Fails if a
//                             replay is not 2.7 times as fast as the driver's
//                             launches, or is above 1.05 times its graph
//
// Exit code 77 where there is no such device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_report.h"
#include "bench_stage.h"
#include "bench_stub.h"
#include "kiln/kiln.h"

enum {
  STEPS = 1000,
  FEW = 10,
  ELEMENTS = 32,
  ROUNDS = 101,
  WAYS = 5,
  STUB_WAYS = 2,
  STUB_RUNS = 100000,
  STUB_ROUNDS = 15,
  MAX_ARGUMENTS = 32,
};

static const double kStubLimit = 100.0;  // ns
static const double kFaster = 2.7;       // than the driver's launches
static const double kGraphLimit = 1.05;  // times the driver's graph

static const char kProgram[] =
    "program step(a: u32, x: inout u32[], y: in u32[length(x)])\n"
    "  work length(x) block 32\n"
    "{ let i = global_id.x; x[i] = x[i] * a + y[i]; }\n";

// What is measured. one-thread
typedef struct job_t {
  const kiln_cuda_table_t* table;  // the driver itself
  kiln_dispatcher_t* dispatcher;
  kiln_pipeline_t* pipeline;
  kiln_stream_t* stream;
  kiln_resident_t x;
  kiln_resident_t y;
  kiln_sequence_t* sequence;
  kiln_replay_t* replay;
  kiln_sequence_t* early_sequence;
  kiln_replay_t* early;  // its dispatches overlap each other, where they can
  kiln_sequence_t* few_sequence;
  kiln_replay_t* few;
  kiln_cu_module_t module;
  kiln_cu_function_t function;
  kiln_cu_graph_t graph;
  kiln_cu_graph_exec_t exec;
  uint64_t values[MAX_ARGUMENTS];  // of the driver's own launch
  void* params[MAX_ARGUMENTS];
} job_t;

static bench_stage_t g_stage;

static void need(kiln_cu_result_t result, const char* call) {
  bench_need(result == KILN_CU_SUCCESS, call);
}
#define CU(call) need((call), #call)

static kiln_cu_result_t stub_launch_graph(kiln_cu_graph_exec_t exec,
                                          kiln_cu_stream_t stream) {
  (void)exec;
  (void)stream;
  return KILN_CU_SUCCESS;
}

// ---- The ways ----

static void by_launches(job_t* job) {
  kiln_cu_stream_t stream = kiln_stream_handle(job->stream);
  for (int i = 0; i < STEPS; i++) {
    CU(job->table->cuLaunchKernel(job->function, 1, 1, 1, ELEMENTS, 1, 1, 0,
                                  stream, job->params, NULL));
  }
}

static void by_graph(job_t* job) {
  CU(job->table->cuGraphLaunch(job->exec, kiln_stream_handle(job->stream)));
}

static void by_stream(job_t* job) {
  bench_expect(kiln_sequence_run(job->sequence, job->stream, NULL));
}

static void by_replay(job_t* job) {
  kiln_status_t status = kiln_replay_run(job->replay, job->stream, NULL);
  if (status != NULL) bench_expect(status);
}

static void by_few(job_t* job) {
  kiln_status_t status = kiln_replay_run(job->few, job->stream, NULL);
  if (status != NULL) bench_expect(status);
}

static void by_early(job_t* job) {
  kiln_status_t status = kiln_replay_run(job->early, job->stream, NULL);
  if (status != NULL) bench_expect(status);
}

static const struct {
  const char* name;
  void (*run)(job_t* job);
} kWays[WAYS] = {
    {"1,000 steps, cuLaunchKernel", by_launches},
    {"1,000 steps, cuGraphLaunch", by_graph},
    {"1,000 steps, kiln_sequence_run", by_stream},
    {"1,000 steps, kiln_replay_run", by_replay},
    {"1,000 steps, kiln_replay_run, overlapping", by_early},
};

// ---- Making ----

static void make_params(job_t* job) {
  kiln_program_code_t* code = kiln_pipeline_code(job->pipeline);
  kiln_program_parameter_t p;
  for (uint32_t i = 0; kiln_program_code_parameter(code, i, &p); i++) {
    bench_need(i < MAX_ARGUMENTS, "more arguments than there is space for");
    job->params[i] = &job->values[i];
    job->values[i] = ELEMENTS;
    if (p.kind == KILN_PROGRAM_PARAMETER_SCALAR) job->values[i] = 3;
    if (p.kind != KILN_PROGRAM_PARAMETER_ADDRESS) continue;
    bench_expect(kiln_resident_address(
        job->dispatcher, p.index == 0 ? job->x : job->y, &job->values[i]));
  }
  CU(job->table->cuModuleLoadData(&job->module,
                                  kiln_program_code_text(code).data));
  CU(job->table->cuModuleGetFunction(&job->function, job->module,
                                     kiln_program_code_entry(code)));
}

static void make_graph(job_t* job) {
  kiln_cu_graph_node_t before = NULL;
  kiln_cu_graph_node_t node = NULL;
  kiln_cu_graph_instantiate_t how;
  memset(&how, 0, sizeof(how));
  CU(job->table->cuGraphCreate(&job->graph, 0));
  for (int i = 0; i < STEPS; i++) {
    kiln_cu_kernel_node_t kernel = {job->function, 1,    1,    1,
                                    ELEMENTS,      1,    1,    0,
                                    job->params,   NULL, NULL, NULL};
    CU(job->table->cuGraphAddKernelNode(&node, job->graph, &before, i > 0,
                                        &kernel));
    before = node;
  }
  CU(job->table->cuGraphInstantiateWithParams(&job->exec, job->graph, &how));
}

static void make_sequence(job_t* job, uint32_t steps, bool early,
                          kiln_sequence_t** out_sequence,
                          kiln_replay_t** out_replay) {
  kiln_binding_t bindings[] = {kiln_bind_u32(3), kiln_bind_resident(job->x),
                               kiln_bind_resident(job->y)};
  kiln_dispatch_options_t how = kiln_dispatch_options_default();
  bool waits = kiln_pipeline_info(job->pipeline)->waits != 0;
  if (early && waits) how.overlap = KILN_SWITCH_ON;
  bench_expect(kiln_sequence_create(job->dispatcher, NULL, out_sequence));
  for (uint32_t i = 0; i < steps; i++) {
    bench_expect(kiln_sequence_add_dispatch(*out_sequence, job->pipeline,
                                            bindings, 3, &how, NULL));
  }
  bench_expect(kiln_sequence_finish(*out_sequence));
  bench_expect(kiln_sequence_instantiate(*out_sequence, NULL, out_replay));
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
  kiln_resident_t* residents[] = {&job->x, &job->y};
  for (int i = 0; i < 2; i++) {
    bench_expect(
        kiln_resident_allocate(job->dispatcher, sizeof(kWords), residents[i]));
    bench_expect(kiln_resident_upload(job->dispatcher, NULL, *residents[i], 0,
                                      sizeof(kWords), kWords));
  }
  bench_expect(kiln_dispatcher_synchronize(job->dispatcher));
  make_sequence(job, STEPS, false, &job->sequence, &job->replay);
  make_sequence(job, STEPS, true, &job->early_sequence, &job->early);
  make_sequence(job, FEW, false, &job->few_sequence, &job->few);
}

static void release(job_t* job) {
  kiln_replay_release(job->few);
  kiln_replay_release(job->early);
  kiln_replay_release(job->replay);
  kiln_sequence_release(job->few_sequence);
  kiln_sequence_release(job->early_sequence);
  kiln_sequence_release(job->sequence);
  kiln_pipeline_release(job->pipeline);
  bench_expect(kiln_resident_free(job->dispatcher, job->x));
  bench_expect(kiln_resident_free(job->dispatcher, job->y));
  kiln_stream_release(job->stream);
  kiln_dispatcher_release(job->dispatcher);
}

// ---- Measuring ----

// Once: all ways must do the same.
static void compare(job_t* job) {
  uint32_t by[WAYS][ELEMENTS];
  for (int way = 0; way < WAYS; way++) {
    kiln_resident_range_t all = {0, 0};
    bench_expect(
        kiln_resident_fill(job->dispatcher, job->stream, job->x, all, 1, 4));
    kWays[way].run(job);
    bench_expect(kiln_resident_download(job->dispatcher, job->stream, job->x, 0,
                                        sizeof(by[way]), by[way]));
    bench_need(memcmp(by[way], by[0], sizeof(by[0])) == 0,
               "the ways do not do the same");
  }
}

// The ways in turns, each to the end of its work; a round begins with another
// one each time.
static bool measure(job_t* job, bench_report_t* out) {
  static double spent[WAYS][ROUNDS];
  static double to_launches[ROUNDS];
  static double to_graph[ROUNDS];
  for (int round = -3; round < ROUNDS; round++) {
    double took[WAYS] = {0};
    for (int k = 0; k < WAYS; k++) {
      int way = (k + round + 4) % WAYS;
      uint64_t start = bench_time_ns();
      kWays[way].run(job);
      bench_expect(kiln_stream_synchronize(job->stream));
      took[way] = (double)(bench_time_ns() - start);
    }
    if (round < 0) continue;
    for (int way = 0; way < WAYS; way++) spent[way][round] = took[way];
    to_launches[round] = took[0] / took[3];
    to_graph[round] = took[3] / took[1];
  }
  double raw = bench_median(spent[0], ROUNDS);
  double graph = bench_median(spent[1], ROUNDS);
  bench_report_less(out, kWays[0].name, "ns", raw, NULL, 0);
  bench_report_less(out, kWays[1].name, "ns", graph, kWays[0].name, raw);
  bench_report_less(out, kWays[2].name, "ns", bench_median(spent[2], ROUNDS),
                    kWays[0].name, raw);
  for (int way = 3; way < WAYS; way++) {
    bench_report_less(out, kWays[way].name, "ns",
                      bench_median(spent[way], ROUNDS), kWays[1].name, graph);
  }
  double faster = bench_median(to_launches, ROUNDS);
  double ratio = bench_median(to_graph, ROUNDS);
  bool good = faster >= kFaster && ratio <= kGraphLimit;
  fprintf(stderr,
          "a replay is %.3f times as fast as the driver's launches (bar: %.1f) "
          "and takes %.4f times what its graph does (bar: %.2f): %s\n",
          faster, kFaster, ratio, kGraphLimit,
          good ? "bars hold" : "BARS DO NOT HOLD");
  return good;
}

static bool measure_stub(job_t* job, bench_report_t* out) {
  static double spent[STUB_WAYS][STUB_ROUNDS];
  static void (*const kRuns[STUB_WAYS])(job_t*) = {by_few, by_replay};
  static const char* const kNames[STUB_WAYS] = {"10 steps, kiln_replay_run",
                                                "1,000 steps, kiln_replay_run"};
  for (int way = 0; way < STUB_WAYS; way++) kRuns[way](job);
  uint64_t allocations = g_stage.allocations;
  for (int round = 0; round < STUB_ROUNDS; round++) {
    for (int way = 0; way < STUB_WAYS; way++) {
      uint64_t start = bench_time_ns();
      for (int i = 0; i < STUB_RUNS; i++) kRuns[way](job);
      spent[way][round] = (double)(bench_time_ns() - start) / STUB_RUNS;
    }
  }
  bench_need(g_stage.allocations == allocations, "a run has allocated");
  double few = bench_median(spent[0], STUB_ROUNDS);
  double many = bench_median(spent[1], STUB_ROUNDS);
  bench_report_less(out, kNames[0], "ns", few, NULL, 0);
  bench_report_less(out, kNames[1], "ns", many, kNames[0], few);
  // The best rounds: what disturbs only adds.
  bool good = spent[0][0] <= kStubLimit && spent[1][0] <= kStubLimit &&
              spent[1][0] <= 2 * spent[0][0];
  fprintf(stderr,
          "allocations on the way: 0\nbar: at most 100 ns, whatever "
          "the length: %s\n",
          good ? "holds" : "DOES NOT HOLD");
  return good;
}

int main(int argc, char** argv) {
  static bench_report_t out;
  static job_t job;
  bool real = argc > 1;
  bench_stage_init(&g_stage);
  KILNI_CUDA_SET(&g_stage.stub, cuLaunchKernel, bench_stub_launch);
  KILNI_CUDA_SET(&g_stage.stub, cuGraphLaunch, stub_launch_graph);
  if (!bench_stage_open(&g_stage, real ? argv[1] : NULL)) return BENCH_SKIPPED;
  job.table = &g_stage.raw;
  prepare(&job, g_stage.device);
  make_params(&job);
  make_graph(&job);
  if (real) compare(&job);
  out.device = kiln_device_name(g_stage.device);
  bool good = real ? measure(&job, &out) : measure_stub(&job, &out);
  bench_report_print(&out);
  (void)job.table->cuGraphExecDestroy(job.exec);
  (void)job.table->cuGraphDestroy(job.graph);
  (void)job.table->cuModuleUnload(job.module);
  release(&job);
  bench_stage_close(&g_stage);
  return good ? 0 : 1;
}
