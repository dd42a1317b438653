// SPDX-License-Identifier: Apache-2.0
//
// bench: a graph of 1,000 dependent kernels of four arguments: added by hand,
// captured, made executable, updated as a whole and node by node, launched; by
// Kiln and by the driver's own calls, in turns and in one process.
//
//   bench_graph            over a driver table that does nothing: what the
//                          library itself costs, and its allocations. Fails
//                          above 30 ns for a node added or changed, and if a
//                          launch allocates
//   bench_graph cuda:0     over a driver. Fails above 1.05 times its calls for
//                          1,000 nodes, and 1.02 for a launch. A node by
//                          itself, and rows that begin with "cause:", parts of
//                          the way, have no bar: docs/rooms/graph.md
//   bench_graph cuda:0 N   asks a driver whether it takes a kernel node that
//                          names its context while none is current, and other
//                          parameters of one: each on its own, since drivers
//                          may crash over it. N from 1 to 6: kBare
//
// Exit code 77 where there is no such device. The same job in Python is
// bench_graph.py.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_report.h"
#include "bench_stub.h"
#include "bench_turns.h"
#include "device/launch_check.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"

enum {
  SKIPPED = 77,
  NODES = 1000,
  ROUNDS = 41,
  LAUNCH_ROUNDS = 81,  // its bar is nearer to what one round is off
  LAUNCHES = 20,
  OBJECTS = 1000,      // user objects of one graph
  NODE_BYTES = 40,     // what the library keeps of a node
  NODES_AT_ONCE = 128  // in one piece of memory
};

static const double kStubLimit = 30.0;  // ns for a node

static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry nothing(.param .u64 x, .param .f32 a, .param .u32 n,\n"
    "    .param .u64 y) { ret; }\n";

// What is measured. one-thread
typedef struct job_t {
  const kiln_cuda_table_t* table;  // the driver itself
  kiln_device_t* device;
  kiln_stream_t* stream;
  kiln_kernel_t* kernel;
  kiln_buffer_t* buffer;
  kiln_launch_t* launch;
  kiln_cu_function_t function;
  kiln_cu_kernel_t by_library;  // the same kernel; NULL where there is none
  uint64_t address;
  // Of a round.
  kiln_graph_t* graph;
  kiln_graph_t* next;
  kiln_graph_exec_t* exec;
  kiln_graph_node_t* nodes[NODES];
  kiln_graph_builder_t* builder;
  kiln_stream_t* captured;
  kiln_cu_graph_t raw_graph;
  kiln_cu_graph_t raw_next;
  kiln_cu_graph_exec_t raw_exec;
  kiln_cu_graph_node_t raw_nodes[NODES];
  kiln_cu_stream_t raw_stream;
} job_t;

static uint64_t g_allocations;

static void need(kiln_cu_result_t result, const char* call) {
  bench_need(result == KILN_CU_SUCCESS, call);
}
#define CU(call) need((call), #call)

static void must(kiln_status_t status) {
  if (status != NULL) bench_expect(status);
}

// ---- A driver that does nothing ----

static kiln_cu_result_t stub_add(kiln_cu_graph_node_t* node,
                                 kiln_cu_graph_t graph,
                                 const kiln_cu_graph_node_t* after,
                                 size_t count,
                                 const kiln_cu_kernel_node_t* params) {
  static uintptr_t made = 0x1000;
  (void)graph;
  (void)after;
  (void)count;
  (void)params;
  *node = (kiln_cu_graph_node_t)(made += 16);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t stub_run(kiln_cu_graph_exec_t exec,
                                 kiln_cu_stream_t stream) {
  (void)exec;
  (void)stream;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t stub_set(kiln_cu_graph_exec_t exec,
                                 kiln_cu_graph_node_t node,
                                 const kiln_cu_kernel_node_t* params) {
  (void)exec;
  (void)node;
  (void)params;
  return KILN_CU_SUCCESS;
}

// ---- The ways: prepared, measured, ended ----

static void add_kiln(job_t* job, kiln_graph_t* graph) {
  kiln_graph_work_t work = kiln_graph_work_launch(job->launch);
  for (uint32_t i = 0; i < NODES; i++) {
    must(kiln_graph_add(graph, i > 0 ? &job->nodes[i - 1] : NULL, i > 0, &work,
                        &job->nodes[i]));
  }
}

static void add_raw(job_t* job, kiln_cu_graph_t graph) {
  uint64_t x = job->address;
  float a = 2;
  uint32_t n = 1000;
  for (uint32_t i = 0; i < NODES; i++) {
    void* params[] = {&x, &a, &n, &x};
    kiln_cu_kernel_node_t kernel = {job->function, 1,    1,    1,   32, 1, 1, 0,
                                    params,        NULL, NULL, NULL};
    CU(job->table->cuGraphAddKernelNode(&job->raw_nodes[i], graph,
                                        i > 0 ? &job->raw_nodes[i - 1] : NULL,
                                        i > 0, &kernel));
  }
}

static void empty_kiln(job_t* job) {
  must(kiln_graph_create(job->device, &job->graph));
}

static void empty_raw(job_t* job) {
  CU(job->table->cuGraphCreate(&job->raw_graph, 0));
}

static void by_hand_kiln(job_t* job) {
  add_kiln(job, job->graph);
}

// The same in one call.
static void all_by_hand_kiln(job_t* job) {
  static kiln_graph_addition_t additions[NODES];
  kiln_graph_work_t work = kiln_graph_work_launch(job->launch);
  for (uint32_t i = 0; i < NODES; i++) {
    additions[i].work = &work;
    additions[i].after = i > 0 ? &job->nodes[i - 1] : NULL;
    additions[i].after_count = i > 0;
    additions[i].out_node = &job->nodes[i];
  }
  must(kiln_graph_add_all(job->graph, additions, NODES, NULL));
}

static void by_hand_raw(job_t* job) {
  add_raw(job, job->raw_graph);
}

static void end_kiln(job_t* job) {
  kiln_graph_exec_release(job->exec);
  kiln_graph_release(job->graph);
  kiln_graph_release(job->next);
  kiln_graph_builder_release(job->builder);
  job->exec = NULL;
  job->graph = NULL;
  job->next = NULL;
  job->builder = NULL;
}

static void end_raw(job_t* job) {
  if (job->raw_exec != NULL) CU(job->table->cuGraphExecDestroy(job->raw_exec));
  if (job->raw_graph != NULL) CU(job->table->cuGraphDestroy(job->raw_graph));
  if (job->raw_next != NULL) CU(job->table->cuGraphDestroy(job->raw_next));
  job->raw_exec = NULL;
  job->raw_graph = NULL;
  job->raw_next = NULL;
}

static void builder_kiln(job_t* job) {
  must(kiln_graph_builder_create(job->device, NULL, &job->builder));
  must(kiln_graph_builder_stream(job->builder, &job->captured));
}

static void capture_kiln(job_t* job) {
  must(kiln_graph_builder_begin(job->builder, KILN_GRAPH_CAPTURE_RELAXED));
  for (uint32_t i = 0; i < NODES; i++) {
    must(kiln_launch_run(job->launch, job->captured));
  }
  must(kiln_graph_builder_end(job->builder));
}

static void nothing(job_t* job) {
  (void)job;
}

static void capture_raw(job_t* job) {
  const kiln_cuda_table_t* t = job->table;
  uint64_t x = job->address;
  float a = 2;
  uint32_t n = 1000;
  CU(t->cuStreamBeginCapture(job->raw_stream,
                             KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  for (uint32_t i = 0; i < NODES; i++) {
    void* params[] = {&x, &a, &n, &x};
    CU(t->cuLaunchKernel(job->function, 1, 1, 1, 32, 1, 1, 0, job->raw_stream,
                         params, NULL));
  }
  CU(t->cuStreamEndCapture(job->raw_stream, &job->raw_graph));
}

static void full_kiln(job_t* job) {
  empty_kiln(job);
  add_kiln(job, job->graph);
}

static void full_raw(job_t* job) {
  empty_raw(job);
  add_raw(job, job->raw_graph);
}

static void instantiate_kiln(job_t* job) {
  must(kiln_graph_exec_create(job->graph, NULL, &job->exec));
}

static void instantiate_raw(job_t* job) {
  kiln_cu_graph_instantiate_t params;
  memset(&params, 0, sizeof(params));
  CU(job->table->cuGraphInstantiateWithParams(&job->raw_exec, job->raw_graph,
                                              &params));
}

static void two_kiln(job_t* job) {
  full_kiln(job);
  instantiate_kiln(job);
  must(kiln_graph_create(job->device, &job->next));
  add_kiln(job, job->next);
}

static void two_raw(job_t* job) {
  full_raw(job);
  instantiate_raw(job);
  CU(job->table->cuGraphCreate(&job->raw_next, 0));
  add_raw(job, job->raw_next);
}

static void update_kiln(job_t* job) {
  must(kiln_graph_exec_update(job->exec, job->next, NULL));
}

static void update_raw(job_t* job) {
  kiln_cu_graph_update_t outcome;
  memset(&outcome, 0, sizeof(outcome));
  CU(job->table->cuGraphExecUpdate(job->raw_exec, job->raw_next, &outcome));
}

static void ready_kiln(job_t* job) {
  full_kiln(job);
  instantiate_kiln(job);
  must(kiln_graph_exec_launch(job->exec, job->stream));
  must(kiln_stream_synchronize(job->stream));
}

static void ready_raw(job_t* job) {
  full_raw(job);
  instantiate_raw(job);
  CU(job->table->cuGraphLaunch(job->raw_exec, job->raw_stream));
  CU(job->table->cuStreamSynchronize(job->raw_stream));
}

static void set_kiln(job_t* job) {
  kiln_graph_work_t work = kiln_graph_work_launch(job->launch);
  for (uint32_t i = 0; i < NODES; i++) {
    must(kiln_graph_exec_set(job->exec, job->nodes[i], &work));
  }
}

static void set_new_kiln(job_t* job) {
  kiln_graph_work_t work = kiln_graph_work_launch(job->launch);
  for (uint32_t i = 0; i < NODES; i++) {
    must(kiln_launch_set(job->launch, 2, kiln_arg_u32(i)));
    must(kiln_graph_exec_set(job->exec, job->nodes[i], &work));
  }
}

// The same in one call. The list of changes is made with the nodes, and serves
// each update.
static kiln_graph_change_t g_changes[NODES];
static kiln_argument_t g_arguments[NODES];
static kiln_graph_work_t g_work;

static void ready_list(job_t* job, uint32_t argument_count) {
  ready_kiln(job);
  g_work = kiln_graph_work_launch(job->launch);
  for (uint32_t i = 0; i < NODES; i++) {
    kiln_graph_change_t change = {job->nodes[i], &g_work, &g_arguments[i], 2,
                                  argument_count};
    g_changes[i] = change;
  }
}

static void ready_changes(job_t* job) {
  ready_list(job, 0);
}

static void ready_new_changes(job_t* job) {
  ready_list(job, 1);
}

static void set_all_kiln(job_t* job) {
  must(kiln_graph_exec_set_all(job->exec, g_changes, NODES, NULL));
}

static void set_all_new_kiln(job_t* job) {
  for (uint32_t i = 0; i < NODES; i++) g_arguments[i] = kiln_arg_u32(i);
  must(kiln_graph_exec_set_all(job->exec, g_changes, NODES, NULL));
}

// `step`: what the argument of one node is more than that of the one before.
static void set_each_raw(job_t* job, uint32_t first, uint32_t step) {
  uint64_t x = job->address;
  float a = 2;
  for (uint32_t i = 0; i < NODES; i++) {
    uint32_t n = first + step * i;
    void* params[] = {&x, &a, &n, &x};
    kiln_cu_kernel_node_t kernel = {job->function, 1,    1,    1,   32, 1, 1, 0,
                                    params,        NULL, NULL, NULL};
    CU(job->table->cuGraphExecKernelNodeSetParams(job->raw_exec,
                                                  job->raw_nodes[i], &kernel));
  }
}

static void set_raw(job_t* job) {
  set_each_raw(job, 1000, 0);
}

static void set_new_raw(job_t* job) {
  set_each_raw(job, 0, 1);
}

static void launch_kiln(job_t* job) {
  for (int i = 0; i < LAUNCHES; i++) {
    must(kiln_graph_exec_launch(job->exec, job->stream));
  }
}

static void launch_raw(job_t* job) {
  for (int i = 0; i < LAUNCHES; i++) {
    CU(job->table->cuGraphLaunch(job->raw_exec, job->raw_stream));
  }
}

static void wait_and_end_kiln(job_t* job) {
  must(kiln_stream_synchronize(job->stream));
  end_kiln(job);
}

static void wait_and_end_raw(job_t* job) {
  CU(job->table->cuStreamSynchronize(job->raw_stream));
  end_raw(job);
}

// ---- Causes: parts of the way ----

static void nobody_told(void* user) {
  (void)user;
}

static void hold(job_t* job, int count) {
  for (int i = 0; i < count; i++) {
    kiln_cu_user_object_t object = NULL;
    CU(job->table->cuUserObjectCreate(&object, job, nobody_told, 1,
                                      KILN_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    CU(job->table->cuGraphRetainUserObject(job->raw_graph, object, 1,
                                           KILN_CU_GRAPH_USER_OBJECT_MOVE));
  }
}

static void ready_holding(job_t* job, int count) {
  full_raw(job);
  hold(job, count);
  instantiate_raw(job);
  CU(job->table->cuGraphLaunch(job->raw_exec, job->raw_stream));
  CU(job->table->cuStreamSynchronize(job->raw_stream));
}

static void ready_holding_one(job_t* job) {
  ready_holding(job, 1);
}

static void ready_holding_many(job_t* job) {
  ready_holding(job, OBJECTS);
}

// Kiln's executable by the driver's call: what is left of the difference is
// the executable's.
static void launch_ours(job_t* job) {
  kiln_cu_graph_exec_t exec = kiln_graph_exec_handle(job->exec);
  kiln_cu_stream_t stream = kiln_stream_handle(job->stream);
  for (int i = 0; i < LAUNCHES; i++) {
    CU(job->table->cuGraphLaunch(exec, stream));
  }
}

// The driver's executable on Kiln's stream.
static void launch_there(job_t* job) {
  kiln_cu_stream_t stream = kiln_stream_handle(job->stream);
  for (int i = 0; i < LAUNCHES; i++) {
    CU(job->table->cuGraphLaunch(job->raw_exec, stream));
  }
}

static void wait_there_and_end(job_t* job) {
  CU(job->table->cuStreamSynchronize(kiln_stream_handle(job->stream)));
  end_raw(job);
}

static void by_hand_asked(job_t* job) {
  uint64_t x = job->address;
  float a = 2;
  uint32_t n = 1000;
  for (uint32_t i = 0; i < NODES; i++) {
    kiln_cu_context_t current = NULL;
    void* params[] = {&x, &a, &n, &x};
    kiln_cu_kernel_node_t kernel = {job->function, 1,    1,    1,   32, 1, 1, 0,
                                    params,        NULL, NULL, NULL};
    CU(job->table->cuCtxGetCurrent(&current));
    CU(job->table->cuGraphAddKernelNode(&job->raw_nodes[i], job->raw_graph,
                                        i > 0 ? &job->raw_nodes[i - 1] : NULL,
                                        i > 0, &kernel));
  }
}

static void add_same(job_t* job, const kiln_cu_kernel_node_t* kernel) {
  for (uint32_t i = 0; i < NODES; i++) {
    CU(job->table->cuGraphAddKernelNode(&job->raw_nodes[i], job->raw_graph,
                                        i > 0 ? &job->raw_nodes[i - 1] : NULL,
                                        i > 0, kernel));
  }
}

static void by_hand_prepared(job_t* job) {
  add_same(job, &job->launch->node);
}

static void full_prepared(job_t* job) {
  empty_raw(job);
  add_same(job, &job->launch->node);
}

static void by_hand_by_library(job_t* job) {
  kiln_cu_kernel_node_t kernel = job->launch->node;
  if (job->by_library != NULL) {
    kernel.function = NULL;
    kernel.kernel = job->by_library;
    kernel.context = kiln_device_context(job->device);
  }
  add_same(job, &kernel);
}

// What the objects of nodes need, written as the library writes it.
static void by_hand_with_memory(job_t* job) {
  enum { PIECES = (NODES + NODES_AT_ONCE - 1) / NODES_AT_ONCE };
  char* pieces[PIECES];
  for (uint32_t i = 0; i < NODES; i++) {
    uint32_t piece = i / NODES_AT_ONCE;
    if (i % NODES_AT_ONCE == 0) {
      pieces[piece] = calloc(NODES_AT_ONCE, NODE_BYTES);
      bench_need(pieces[piece] != NULL, "calloc");
    }
    kiln_cu_graph_node_t* place = &job->raw_nodes[i];
    CU(job->table->cuGraphAddKernelNode(place, job->raw_graph,
                                        i > 0 ? &job->raw_nodes[i - 1] : NULL,
                                        i > 0, &job->launch->node));
    memcpy(pieces[piece] + (size_t)(i % NODES_AT_ONCE) * NODE_BYTES, place,
           sizeof(*place));
  }
  for (int i = 0; i < PIECES; i++) free(pieces[i]);
}

// Handles as far apart as the library's nodes are, in memory that is there.
static void by_hand_apart(job_t* job) {
  enum { APART = NODE_BYTES / sizeof(kiln_cu_graph_node_t) };
  static kiln_cu_graph_node_t nodes[NODES][APART];
  for (uint32_t i = 0; i < NODES; i++) {
    CU(job->table->cuGraphAddKernelNode(nodes[i], job->raw_graph,
                                        i > 0 ? nodes[i - 1] : NULL, i > 0,
                                        &job->launch->node));
  }
}

// Kiln's way once it has been gone: memory, owners and thread are there.
static void half_kiln(job_t* job) {
  full_kiln(job);
}

static void half_raw(job_t* job) {
  full_raw(job);
}

static void launch_set_only(job_t* job) {
  for (uint32_t i = 0; i < NODES; i++) {
    must(kiln_launch_set(job->launch, 2, kiln_arg_u32(i)));
  }
}

typedef void (*step_fn_t)(job_t* job);

// thread-safe
typedef struct way_t {
  const char* name;
  const char* unit;
  double parts;  // in what is measured
  double limit;
  step_fn_t steps[2][3];  // of Kiln, of the driver: before, measured, behind
} way_t;

static const way_t kWays[] = {
    {"node by hand",
     "ns",
     NODES,
     0,
     {{empty_kiln, by_hand_kiln, end_kiln}, {empty_raw, by_hand_raw, end_raw}}},
    {"node by hand, all in one call",
     "ns",
     NODES,
     1.05,
     {{empty_kiln, all_by_hand_kiln, end_kiln},
      {empty_raw, by_hand_raw, end_raw}}},
    {"captured kernel",
     "ns",
     NODES,
     1.05,
     {{builder_kiln, capture_kiln, end_kiln}, {nothing, capture_raw, end_raw}}},
    {"instantiate",
     "us",
     1000,
     1.05,
     {{full_kiln, instantiate_kiln, end_kiln},
      {full_raw, instantiate_raw, end_raw}}},
    {"update as a whole",
     "us",
     1000,
     1.05,
     {{two_kiln, update_kiln, end_kiln}, {two_raw, update_raw, end_raw}}},
    {"update of a node",
     "ns",
     NODES,
     0,
     {{ready_kiln, set_kiln, end_kiln}, {ready_raw, set_raw, end_raw}}},
    {"update, all in one call",
     "ns",
     NODES,
     1.05,
     {{ready_changes, set_all_kiln, end_kiln}, {ready_raw, set_raw, end_raw}}},
    {"update of a node, a new argument",
     "ns",
     NODES,
     0,
     {{ready_kiln, set_new_kiln, end_kiln}, {ready_raw, set_new_raw, end_raw}}},
    {"update, a new argument, all in one call",
     "ns",
     NODES,
     1.05,
     {{ready_new_changes, set_all_new_kiln, end_kiln},
      {ready_raw, set_new_raw, end_raw}}},
    {"launch",
     "ns",
     LAUNCHES,
     1.02,
     {{ready_kiln, launch_kiln, wait_and_end_kiln},
      {ready_raw, launch_raw, wait_and_end_raw}}},
    {"cause: launch, the driver's own again",
     "ns",
     LAUNCHES,
     0,
     {{ready_raw, launch_raw, wait_and_end_raw},
      {ready_raw, launch_raw, wait_and_end_raw}}},
    {"cause: launch, holds 1 user object",
     "ns",
     LAUNCHES,
     0,
     {{ready_holding_one, launch_raw, wait_and_end_raw},
      {ready_raw, launch_raw, wait_and_end_raw}}},
    {"cause: launch, holds 1,000 user objects",
     "ns",
     LAUNCHES,
     0,
     {{ready_holding_many, launch_raw, wait_and_end_raw},
      {ready_raw, launch_raw, wait_and_end_raw}}},
    {"cause: launch of Kiln's by the driver",
     "ns",
     LAUNCHES,
     0,
     {{ready_kiln, launch_ours, wait_and_end_kiln},
      {ready_raw, launch_raw, wait_and_end_raw}}},
    {"cause: launch on Kiln's stream",
     "ns",
     LAUNCHES,
     0,
     {{ready_raw, launch_there, wait_there_and_end},
      {ready_raw, launch_raw, wait_and_end_raw}}},
    {"cause: instantiate, Kiln's kernel",
     "us",
     1000,
     0,
     {{full_prepared, instantiate_raw, end_raw},
      {full_raw, instantiate_raw, end_raw}}},
    {"cause: by hand, context asked",
     "ns",
     NODES,
     0,
     {{empty_raw, by_hand_asked, end_raw}, {empty_raw, by_hand_raw, end_raw}}},
    {"cause: by hand, Kiln's parameters",
     "ns",
     NODES,
     0,
     {{empty_raw, by_hand_prepared, end_raw},
      {empty_raw, by_hand_raw, end_raw}}},
    {"cause: by hand, a library's kernel",
     "ns",
     NODES,
     0,
     {{empty_raw, by_hand_by_library, end_raw},
      {empty_raw, by_hand_raw, end_raw}}},
    {"cause: by hand, nodes far apart",
     "ns",
     NODES,
     0,
     {{empty_raw, by_hand_apart, end_raw}, {empty_raw, by_hand_raw, end_raw}}},
    {"cause: by hand, memory for nodes",
     "ns",
     NODES,
     0,
     {{empty_raw, by_hand_with_memory, end_raw},
      {empty_raw, by_hand_raw, end_raw}}},
    {"cause: by hand, 1,000 more nodes",
     "ns",
     NODES,
     0,
     {{half_kiln, by_hand_kiln, end_kiln}, {half_raw, by_hand_raw, end_raw}}},
    {"cause: an argument of a launch",
     "ns",
     NODES,
     0,
     {{nothing, launch_set_only, nothing}, {nothing, nothing, nothing}}},
};
enum { WAYS = sizeof(kWays) / sizeof(kWays[0]) };

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

static double g_spent[2][LAUNCH_ROUNDS];
static double g_ratio[LAUNCH_ROUNDS];
static uint64_t g_made;  // allocations of the last measured step of Kiln

static double measure_step(job_t* job, const way_t* way, int who) {
  way->steps[who][0](job);
  uint64_t allocations = g_allocations;
  uint64_t start = bench_time_ns();
  way->steps[who][1](job);
  double spent = (double)(bench_time_ns() - start) / way->parts;
  if (who == 0) g_made = g_allocations - allocations;
  way->steps[who][2](job);
  return spent;
}

// As bench_turns does it: in each round both twice, one way in the middle, so
// that what gets slower meanwhile does so for both.
static void measure_round(job_t* job, const way_t* way, int round) {
  double spent[2][2];
  for (int k = 0; k < 4; k++) {
    int who = (k == 1 || k == 2) ^ (round & 1);
    spent[who][k / 2] = measure_step(job, way, who);
  }
  if (round < 0) return;
  for (int who = 0; who < 2; who++) {
    double* two = spent[who];
    g_spent[who][round] = two[0] < two[1] ? two[0] : two[1];
  }
  g_ratio[round] = (spent[0][0] + spent[0][1]) / (spent[1][0] + spent[1][1]);
}

static bool measure(job_t* job, const way_t* way, bool real,
                    bench_report_t* out) {
  bool launches = strcmp(way->name, "launch") == 0;
  int rounds = launches ? LAUNCH_ROUNDS : ROUNDS;
  for (int round = -2; round < rounds; round++) measure_round(job, way, round);
  double ratio = bench_turns_middle(g_ratio, rounds);
  double ours = median(g_spent[0], rounds);
  double raw = median(g_spent[1], rounds);
  bench_report_less(out, way->name, way->unit, ours, "the driver's own calls",
                    raw);
  // Without a limit it is only told.
  bool good = !real || way->limit == 0 || ratio <= way->limit;
  if (!real && way->parts == NODES && strncmp(way->name, "cause:", 6) != 0) {
    good = g_spent[0][0] <= kStubLimit;
  }
  if (launches) good = good && g_made == 0;
  fprintf(stderr,
          "%-40s middle mean of the rounds' ratios %.4f, %llu allocations%s\n",
          way->name, ratio, (unsigned long long)g_made,
          good ? "" : ": DOES NOT HOLD");
  return good;
}

static void prepare(job_t* job) {
  kiln_module_t* module = NULL;
  kiln_bytes_view_t image = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  kiln_launch_config_t config = kiln_launch_config_default();
  bench_expect(kiln_module_load(job->device, image, NULL, NULL, &module));
  bench_expect(kiln_kernel_create(module, NULL, &job->kernel));
  kiln_module_release(module);
  bench_expect(kiln_stream_create(job->device, NULL, &job->stream));
  bench_expect(kiln_buffer_create(job->device, 4096, NULL, &job->buffer));
  job->address = kiln_buffer_address(job->buffer);
  kiln_argument_t arguments[] = {kiln_arg_buffer(job->buffer), kiln_arg_f32(2),
                                 kiln_arg_u32(1000),
                                 kiln_arg_buffer(job->buffer)};
  config.block[0] = 32;
  bench_expect(kiln_launch_create(job->kernel, &config, &job->launch));
  bench_expect(kiln_launch_set_all(job->launch, arguments, 4));
  // The driver's own calls are made as its users make them: with the context
  // current.
  CU(job->table->cuCtxSetCurrent(kiln_device_context(job->device)));
  kiln_cu_module_t raw = NULL;
  CU(job->table->cuModuleLoadData(&raw, kPtx));
  CU(job->table->cuModuleGetFunction(&job->function, raw, "nothing"));
  CU(job->table->cuStreamCreate(&job->raw_stream, 1));
}

// The same kernel as a library has it. Where a driver table has none, the row
// measures the other way again.
static void find_by_library(job_t* job) {
  kiln_cu_library_t library = NULL;
  if (job->table->cuLibraryLoadData(&library, kPtx, NULL, NULL, 0, NULL, NULL,
                                    0) != KILN_CU_SUCCESS ||
      library == NULL) {
    return;
  }
  CU(job->table->cuLibraryGetKernel(&job->by_library, library, "nothing"));
}

// What can be done without a current context where the node names it.
static const char* const kBare[] = {
    "a node of a library's kernel is added",
    "a node of a function is added",
    "a node of a library's kernel is given other parameters",
    "a node of a function is given other parameters",
    "an executable's node of a library's kernel is given other parameters",
    "an executable's node of a function is given other parameters",
};

static void do_bare(job_t* job, int what, const kiln_cu_kernel_node_t* kernel) {
  if (what < 2) {
    add_same(job, kernel);
  } else if (what < 4) {
    CU(job->table->cuGraphKernelNodeSetParams(job->raw_nodes[0], kernel));
  } else {
    CU(job->table->cuGraphExecKernelNodeSetParams(job->raw_exec,
                                                  job->raw_nodes[0], kernel));
  }
}

// Whether a context that the node names is enough. Exit code 0: it is.
static int ask_bare(job_t* job, int what) {
  if (what < 0 || what >= (int)(sizeof(kBare) / sizeof(kBare[0]))) return 1;
  find_by_library(job);
  if (job->by_library == NULL) return SKIPPED;
  kiln_cu_kernel_node_t kernel = job->launch->node;
  kernel.context = kiln_device_context(job->device);
  if (what % 2 == 0) {
    kernel.function = NULL;
    kernel.kernel = job->by_library;
  }
  empty_raw(job);
  // Parameters are changed of a node of the same kind.
  if (what >= 2) add_same(job, &kernel);
  if (what >= 4) instantiate_raw(job);
  CU(job->table->cuCtxSetCurrent(NULL));
  do_bare(job, what, &kernel);
  CU(job->table->cuCtxSetCurrent(kiln_device_context(job->device)));
  if (what < 4) instantiate_raw(job);
  launch_raw(job);
  wait_and_end_raw(job);
  printf("without a current context %s\n", kBare[what]);
  return 0;
}

static void release(job_t* job) {
  (void)job->table->cuStreamDestroy(job->raw_stream);
  (void)job->table->cuCtxSetCurrent(NULL);
  kiln_launch_release(job->launch);
  kiln_buffer_release(job->buffer);
  kiln_kernel_release(job->kernel);
  kiln_stream_release(job->stream);
  kiln_device_release(job->device);
}

// Where the driver's own calls are taken from: below every wrapper.
static kiln_status_t keep_table(void* user, kiln_cuda_table_t* inout_table) {
  *(kiln_cuda_table_t*)user = *inout_table;
  return NULL;
}

static void fill_stub(kiln_cuda_table_t* stub) {
  kilni_cuda_table_null(stub);
  KILNI_CUDA_SET(stub, cuGraphAddKernelNode, stub_add);
  KILNI_CUDA_SET(stub, cuLaunchKernel, bench_stub_launch);
  KILNI_CUDA_SET(stub, cuGraphLaunch, stub_run);
  KILNI_CUDA_SET(stub, cuGraphExecKernelNodeSetParams, stub_set);
}

int main(int argc, char** argv) {
  static kiln_cuda_table_t stub;
  static kiln_cuda_table_t raw;
  static bench_report_t out;
  static job_t job;
  bool real = argc > 1;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kiln_allocator_t allocator = bench_counting_allocator(&g_allocations);
  kilni_runtime_hooks_t hooks = {0};
  kiln_runtime_t* runtime = NULL;
  fill_stub(&stub);
  options.allocator = &allocator;
  hooks.wrap = keep_table;
  hooks.user = &raw;
  if (!real) hooks.cuda_table = &stub;
  bench_expect(kilni_runtime_create_with(&options, &hooks, &runtime));
  kiln_status_t status =
      kiln_runtime_open_device(runtime, real ? argv[1] : "cuda:0", &job.device);
  if (!kiln_status_is_ok(status)) {
    printf("no device: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(runtime);
    return SKIPPED;
  }
  job.table = &raw;
  out.device = kiln_device_name(job.device);
  prepare(&job);
  if (argc > 2) {
    int told = ask_bare(&job, atoi(argv[2]) - 1);
    release(&job);
    kiln_runtime_release(runtime);
    return told;
  }
  find_by_library(&job);
  bool good = true;
  for (int i = 0; i < WAYS; i++) {
    good = measure(&job, &kWays[i], real, &out) && good;
  }
  fprintf(stderr, "bar: %s %s\n",
          real ? "at most 1.05 times the driver's calls, a launch 1.02, no "
                 "allocation in it"
               : "at most 30 ns for a node over a table that does nothing, no "
                 "allocation in a launch",
          good ? "holds" : "DOES NOT HOLD");
  bench_report_print(&out);
  release(&job);
  kiln_runtime_release(runtime);
  return good ? 0 : 1;
}
