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
//                          the way, have no bar: docs/internals/graph.md
//   bench_graph cuda:0 N   asks a driver whether it takes a kernel node that
//                          names its context while none is current, and other
//                          parameters of one: each on its own, since drivers
//                          may crash over it. N from 1 to 6: kBare
//
// Both ways go side by side, 50 nodes of the one, 50 of the other, by lot which
// first, and then in the other order (bench_pair.h): both graphs grow, both
// captures run at once; calls for all nodes are one slice. Until November 2026
// a turn was the whole of one way, 300 us and more, in 41 rounds, and the same
// program gave figures 5 percent apart. What is judged is what was judged
// before, the middle mean of the rounds' ratios, in as many rounds as it takes
// for a standard error of 0.3 percent, or 12 seconds (30 of launches).
//
// Exit code 77 where there is no such device. The same job in Python is
// bench_graph.py.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_pair.h"
#include "bench_report.h"
#include "bench_stage.h"
#include "bench_stub.h"
#include "device/launch_check.h"
#include "kiln/kiln.h"
#include "table/cuda_table.h"

enum {
  NODES = 1000,
  SLICES = 20,     // of 50 nodes
  LAUNCHES = 20,   // of a slice: fewer than a driver holds before it waits
  OBJECTS = 1000,  // user objects of one graph
};

static const double kStubLimit = 30.0;  // ns for a node

static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry nothing(.param .u64 x, .param .f32 a, .param .u32 n,\n"
    "    .param .u64 y) { ret; }\n";

// What one of the two ways works on. one-thread
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

// As cheap as `must`.
static void need(kiln_cu_result_t result, const char* call) {
  if (result != KILN_CU_SUCCESS) bench_need(false, call);
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

// ---- The ways: prepared, measured in parts, ended ----

static void add_kiln(job_t* job, kiln_graph_t* graph, uint32_t from,
                     uint32_t to) {
  kiln_graph_work_t work = kiln_graph_work_launch(job->launch);
  for (uint32_t i = from; i < to; i++) {
    must(kiln_graph_add(graph, i > 0 ? &job->nodes[i - 1] : NULL, i > 0, &work,
                        &job->nodes[i]));
  }
}

static void add_raw(job_t* job, kiln_cu_graph_t graph, uint32_t from,
                    uint32_t to) {
  uint64_t x = job->address;
  float a = 2;
  uint32_t n = 1000;
  for (uint32_t i = from; i < to; i++) {
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

static void by_hand_kiln(job_t* job, uint32_t from, uint32_t to) {
  add_kiln(job, job->graph, from, to);
}

// The same in one call.
static void all_by_hand_kiln(job_t* job, uint32_t from, uint32_t to) {
  static kiln_graph_addition_t additions[NODES];
  kiln_graph_work_t work = kiln_graph_work_launch(job->launch);
  for (uint32_t i = from; i < to; i++) {
    additions[i].work = &work;
    additions[i].after = i > 0 ? &job->nodes[i - 1] : NULL;
    additions[i].after_count = i > 0;
    additions[i].out_node = &job->nodes[i];
  }
  must(kiln_graph_add_all(job->graph, additions + from, to - from, NULL));
  // Every call writes its own.
  // NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape)
}

static void by_hand_raw(job_t* job, uint32_t from, uint32_t to) {
  add_raw(job, job->raw_graph, from, to);
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

static void nothing(job_t* job) {
  (void)job;
}

static void no_part(job_t* job, uint32_t from, uint32_t to) {
  (void)job;
  (void)from;
  (void)to;
}

// Captures begin with their first part and end with their last one.

static void builder_kiln(job_t* job) {
  must(kiln_graph_builder_create(job->device, NULL, &job->builder));
  must(kiln_graph_builder_stream(job->builder, &job->captured));
}

static void capture_kiln(job_t* job, uint32_t from, uint32_t to) {
  if (from == 0) {
    must(kiln_graph_builder_begin(job->builder, KILN_GRAPH_CAPTURE_RELAXED));
  }
  for (uint32_t i = from; i < to; i++) {
    must(kiln_launch_run(job->launch, job->captured));
  }
  if (to == NODES) must(kiln_graph_builder_end(job->builder));
}

static void begin_raw(job_t* job) {
  CU(job->table->cuStreamBeginCapture(job->raw_stream,
                                      KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
}

static void finish_raw(job_t* job) {
  CU(job->table->cuStreamEndCapture(job->raw_stream, &job->raw_graph));
}

static void capture_raw(job_t* job, uint32_t from, uint32_t to) {
  const kiln_cuda_table_t* t = job->table;
  uint64_t x = job->address;
  float a = 2;
  uint32_t n = 1000;
  if (from == 0) begin_raw(job);
  for (uint32_t i = from; i < to; i++) {
    void* params[] = {&x, &a, &n, &x};
    CU(t->cuLaunchKernel(job->function, 1, 1, 1, 32, 1, 1, 0, job->raw_stream,
                         params, NULL));
  }
  if (to == NODES) finish_raw(job);
}

static void full_kiln(job_t* job) {
  empty_kiln(job);
  add_kiln(job, job->graph, 0, NODES);
}

static void full_raw(job_t* job) {
  empty_raw(job);
  add_raw(job, job->raw_graph, 0, NODES);
}

static void make_exec_kiln(job_t* job) {
  must(kiln_graph_exec_create(job->graph, NULL, &job->exec));
}

static void make_exec_raw(job_t* job) {
  kiln_cu_graph_instantiate_t params;
  memset(&params, 0, sizeof(params));
  CU(job->table->cuGraphInstantiateWithParams(&job->raw_exec, job->raw_graph,
                                              &params));
}

static void instantiate_kiln(job_t* job, uint32_t from, uint32_t to) {
  no_part(job, from, to);
  make_exec_kiln(job);
}

static void instantiate_raw(job_t* job, uint32_t from, uint32_t to) {
  no_part(job, from, to);
  make_exec_raw(job);
}

static void two_kiln(job_t* job) {
  full_kiln(job);
  make_exec_kiln(job);
  must(kiln_graph_create(job->device, &job->next));
  add_kiln(job, job->next, 0, NODES);
}

static void two_raw(job_t* job) {
  full_raw(job);
  make_exec_raw(job);
  CU(job->table->cuGraphCreate(&job->raw_next, 0));
  add_raw(job, job->raw_next, 0, NODES);
}

static void update_kiln(job_t* job, uint32_t from, uint32_t to) {
  no_part(job, from, to);
  must(kiln_graph_exec_update(job->exec, job->next, NULL));
}

static void update_raw(job_t* job, uint32_t from, uint32_t to) {
  no_part(job, from, to);
  kiln_cu_graph_update_t outcome;
  memset(&outcome, 0, sizeof(outcome));
  CU(job->table->cuGraphExecUpdate(job->raw_exec, job->raw_next, &outcome));
}

static void wait_kiln(job_t* job) {
  must(kiln_stream_synchronize(job->stream));
}

static void wait_raw(job_t* job) {
  CU(job->table->cuStreamSynchronize(job->raw_stream));
}

static void ready_kiln(job_t* job) {
  full_kiln(job);
  make_exec_kiln(job);
  must(kiln_graph_exec_launch(job->exec, job->stream));
  wait_kiln(job);
}

static void run_once_raw(job_t* job) {
  CU(job->table->cuGraphLaunch(job->raw_exec, job->raw_stream));
  wait_raw(job);
}

static void ready_raw(job_t* job) {
  full_raw(job);
  make_exec_raw(job);
  run_once_raw(job);
}

static void set_kiln(job_t* job, uint32_t from, uint32_t to) {
  kiln_graph_work_t work = kiln_graph_work_launch(job->launch);
  for (uint32_t i = from; i < to; i++) {
    must(kiln_graph_exec_set(job->exec, job->nodes[i], &work));
  }
}

static void set_new_kiln(job_t* job, uint32_t from, uint32_t to) {
  kiln_graph_work_t work = kiln_graph_work_launch(job->launch);
  for (uint32_t i = from; i < to; i++) {
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

static void set_all_kiln(job_t* job, uint32_t from, uint32_t to) {
  must(kiln_graph_exec_set_all(job->exec, g_changes + from, to - from, NULL));
}

static void set_all_new_kiln(job_t* job, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) g_arguments[i] = kiln_arg_u32(i);
  must(kiln_graph_exec_set_all(job->exec, g_changes + from, to - from, NULL));
}

static void set_one_raw(job_t* job, uint32_t index, uint32_t n) {
  uint64_t x = job->address;
  float a = 2;
  void* params[] = {&x, &a, &n, &x};
  kiln_cu_kernel_node_t kernel = {job->function, 1,    1,    1,   32, 1, 1, 0,
                                  params,        NULL, NULL, NULL};
  CU(job->table->cuGraphExecKernelNodeSetParams(
      job->raw_exec, job->raw_nodes[index], &kernel));
}

static void set_raw(job_t* job, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) set_one_raw(job, i, 1000);
}

static void set_new_raw(job_t* job, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) set_one_raw(job, i, i);
}

static void launch_kiln(job_t* job, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) {
    must(kiln_graph_exec_launch(job->exec, job->stream));
  }
}

static void launch_raw(job_t* job, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) {
    CU(job->table->cuGraphLaunch(job->raw_exec, job->raw_stream));
  }
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
  make_exec_raw(job);
  run_once_raw(job);
}

static void ready_holding_one(job_t* job) {
  ready_holding(job, 1);
}

static void ready_holding_many(job_t* job) {
  ready_holding(job, OBJECTS);
}

// Kiln's executable by the driver's call: what is left of the difference is
// the executable's.
static void launch_ours(job_t* job, uint32_t from, uint32_t to) {
  kiln_cu_graph_exec_t exec = kiln_graph_exec_handle(job->exec);
  kiln_cu_stream_t stream = kiln_stream_handle(job->stream);
  for (uint32_t i = from; i < to; i++) {
    CU(job->table->cuGraphLaunch(exec, stream));
  }
}

// The driver's executable on Kiln's stream.
static void launch_there(job_t* job, uint32_t from, uint32_t to) {
  kiln_cu_stream_t stream = kiln_stream_handle(job->stream);
  for (uint32_t i = from; i < to; i++) {
    CU(job->table->cuGraphLaunch(job->raw_exec, stream));
  }
}

// Kiln's kernel and lists, captured by the driver's calls on its own stream.
static void capture_prepared(job_t* job, uint32_t from, uint32_t to) {
  const kiln_cu_kernel_node_t* k = &job->launch->node;
  if (from == 0) begin_raw(job);
  for (uint32_t i = from; i < to; i++) {
    CU(job->table->cuLaunchKernel(
        k->function, k->grid_x, k->grid_y, k->grid_z, k->block_x, k->block_y,
        k->block_z, k->shared_bytes, job->raw_stream, k->params, k->extra));
  }
  if (to == NODES) finish_raw(job);
}

// The driver's kernel on the builder's stream.
static void capture_there(job_t* job, uint32_t from, uint32_t to) {
  kiln_cu_stream_t own = job->raw_stream;
  job->raw_stream = kiln_stream_handle(job->captured);
  capture_raw(job, from, to);
  job->raw_stream = own;
}

static void end_both(job_t* job) {
  end_raw(job);
  end_kiln(job);
}

static void by_hand_asked(job_t* job, uint32_t from, uint32_t to) {
  uint64_t x = job->address;
  float a = 2;
  uint32_t n = 1000;
  for (uint32_t i = from; i < to; i++) {
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

static void add_same(job_t* job, const kiln_cu_kernel_node_t* kernel,
                     uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) {
    CU(job->table->cuGraphAddKernelNode(&job->raw_nodes[i], job->raw_graph,
                                        i > 0 ? &job->raw_nodes[i - 1] : NULL,
                                        i > 0, kernel));
  }
}

static void by_hand_prepared(job_t* job, uint32_t from, uint32_t to) {
  add_same(job, &job->launch->node, from, to);
}

static void full_prepared(job_t* job) {
  empty_raw(job);
  by_hand_prepared(job, 0, NODES);
}

static void by_hand_by_library(job_t* job, uint32_t from, uint32_t to) {
  kiln_cu_kernel_node_t kernel = job->launch->node;
  if (job->by_library != NULL) {
    kernel.function = NULL;
    kernel.kernel = job->by_library;
    kernel.context = kiln_device_context(job->device);
  }
  add_same(job, &kernel, from, to);
}

static void launch_set_only(job_t* job, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) {
    must(kiln_launch_set(job->launch, 2, kiln_arg_u32(i)));
  }
}

typedef void (*step_fn_t)(job_t* job);
typedef void (*part_fn_t)(job_t* job, uint32_t from, uint32_t to);

// One side of a comparison. thread-safe
typedef struct side_t {
  step_fn_t begin;
  part_fn_t part;  // is measured
  step_fn_t end;
  step_fn_t settle;  // behind each part; may be NULL
} side_t;

// How the whole is cut. thread-safe
typedef struct shape_t {
  const char* unit;
  double divisor;  // of its time: what one of that unit is
  int slices;
  uint32_t runs;  // of a slice: nodes or launches
} shape_t;

// thread-safe
typedef struct way_t {
  const char* name;
  const shape_t* shape;
  double limit;            // 0: it is only told
  const side_t* sides[2];  // Kiln's, the driver's
} way_t;

static const shape_t kNodes = {"ns", NODES, SLICES, NODES / SLICES};
// One call for all of them.
static const shape_t kAllNodes = {"ns", NODES, 1, NODES};
static const shape_t kGraph = {"us", 1000, 1, NODES};
static const shape_t kLaunches = {"ns", LAUNCHES, 1, LAUNCHES};

#define SIDE(name, ...) static const side_t name = {__VA_ARGS__}
SIDE(kHand, empty_kiln, by_hand_kiln, end_kiln, NULL);
SIDE(kAllByHand, empty_kiln, all_by_hand_kiln, end_kiln, NULL);
SIDE(kMoreByHand, full_kiln, by_hand_kiln, end_kiln, NULL);
SIDE(kHandRaw, empty_raw, by_hand_raw, end_raw, NULL);
SIDE(kHandAsked, empty_raw, by_hand_asked, end_raw, NULL);
SIDE(kHandPrepared, empty_raw, by_hand_prepared, end_raw, NULL);
SIDE(kHandByLibrary, empty_raw, by_hand_by_library, end_raw, NULL);
SIDE(kMoreByHandRaw, full_raw, by_hand_raw, end_raw, NULL);
SIDE(kCapture, builder_kiln, capture_kiln, end_kiln, NULL);
SIDE(kCaptureRaw, nothing, capture_raw, end_raw, NULL);
SIDE(kCapturePrepared, nothing, capture_prepared, end_raw, NULL);
SIDE(kCaptureThere, builder_kiln, capture_there, end_both, NULL);
SIDE(kInstantiate, full_kiln, instantiate_kiln, end_kiln, NULL);
SIDE(kInstantiateRaw, full_raw, instantiate_raw, end_raw, NULL);
SIDE(kInstantiatePrepared, full_prepared, instantiate_raw, end_raw, NULL);
SIDE(kUpdate, two_kiln, update_kiln, end_kiln, NULL);
SIDE(kUpdateRaw, two_raw, update_raw, end_raw, NULL);
SIDE(kSet, ready_kiln, set_kiln, end_kiln, NULL);
SIDE(kSetAll, ready_changes, set_all_kiln, end_kiln, NULL);
SIDE(kSetRaw, ready_raw, set_raw, end_raw, NULL);
SIDE(kSetNew, ready_kiln, set_new_kiln, end_kiln, NULL);
SIDE(kSetAllNew, ready_new_changes, set_all_new_kiln, end_kiln, NULL);
SIDE(kSetNewRaw, ready_raw, set_new_raw, end_raw, NULL);
SIDE(kLaunch, ready_kiln, launch_kiln, end_kiln, wait_kiln);
SIDE(kLaunchRaw, ready_raw, launch_raw, end_raw, wait_raw);
SIDE(kLaunchOne, ready_holding_one, launch_raw, end_raw, wait_raw);
SIDE(kLaunchMany, ready_holding_many, launch_raw, end_raw, wait_raw);
SIDE(kLaunchOurs, ready_kiln, launch_ours, end_kiln, wait_kiln);
SIDE(kLaunchThere, ready_raw, launch_there, end_raw, wait_kiln);
SIDE(kArgument, nothing, launch_set_only, nothing, NULL);
SIDE(kNothing, nothing, no_part, nothing, NULL);
#undef SIDE

static const way_t kWays[] = {
    {"node by hand", &kNodes, 0, {&kHand, &kHandRaw}},
    {"node by hand, all in one call",
     &kAllNodes,
     1.05,
     {&kAllByHand, &kHandRaw}},
    {"captured kernel", &kNodes, 1.05, {&kCapture, &kCaptureRaw}},
    {"instantiate", &kGraph, 1.05, {&kInstantiate, &kInstantiateRaw}},
    {"update as a whole", &kGraph, 1.05, {&kUpdate, &kUpdateRaw}},
    {"update of a node", &kNodes, 0, {&kSet, &kSetRaw}},
    {"update, all in one call", &kAllNodes, 1.05, {&kSetAll, &kSetRaw}},
    {"update of a node, a new argument", &kNodes, 0, {&kSetNew, &kSetNewRaw}},
    {"update, a new argument, all in one call",
     &kAllNodes,
     1.05,
     {&kSetAllNew, &kSetNewRaw}},
    {"launch", &kLaunches, 1.02, {&kLaunch, &kLaunchRaw}},
    {"cause: launch, the driver's own again",
     &kLaunches,
     0,
     {&kLaunchRaw, &kLaunchRaw}},
    {"cause: launch, holds 1 user object",
     &kLaunches,
     0,
     {&kLaunchOne, &kLaunchRaw}},
    {"cause: launch, holds 1,000 user objects",
     &kLaunches,
     0,
     {&kLaunchMany, &kLaunchRaw}},
    {"cause: launch of Kiln's by the driver",
     &kLaunches,
     0,
     {&kLaunchOurs, &kLaunchRaw}},
    {"cause: launch on Kiln's stream",
     &kLaunches,
     0,
     {&kLaunchThere, &kLaunchRaw}},
    {"cause: captured, the driver's own again",
     &kNodes,
     0,
     {&kCaptureRaw, &kCaptureRaw}},
    {"cause: captured, Kiln's kernel",
     &kNodes,
     0,
     {&kCapturePrepared, &kCaptureRaw}},
    {"cause: captured on a builder's stream",
     &kNodes,
     0,
     {&kCaptureThere, &kCaptureRaw}},
    {"cause: instantiate, Kiln's kernel",
     &kGraph,
     0,
     {&kInstantiatePrepared, &kInstantiateRaw}},
    {"cause: by hand, the driver's own again",
     &kNodes,
     0,
     {&kHandRaw, &kHandRaw}},
    {"cause: by hand, context asked", &kNodes, 0, {&kHandAsked, &kHandRaw}},
    {"cause: by hand, Kiln's parameters",
     &kNodes,
     0,
     {&kHandPrepared, &kHandRaw}},
    {"cause: by hand, a library's kernel",
     &kNodes,
     0,
     {&kHandByLibrary, &kHandRaw}},
    {"cause: by hand, 1,000 more nodes",
     &kNodes,
     0,
     {&kMoreByHand, &kMoreByHandRaw}},
    {"cause: an argument of a launch", &kNodes, 0, {&kArgument, &kNothing}},
};
enum { WAYS = sizeof(kWays) / sizeof(kWays[0]) };

// ---- Measuring ----

// A way being measured. one-thread
typedef struct run_t {
  const way_t* way;
  job_t* jobs;                  // one for each side
  const uint64_t* allocations;  // of the library, ever
  uint64_t made;                // allocations of Kiln's parts of the last round
} run_t;

static void begin_side(void* user, int who) {
  run_t* run = user;
  if (who == 0) run->made = 0;
  run->way->sides[who]->begin(&run->jobs[who]);
}

static void measured_part(void* user, int who, int slice) {
  run_t* run = user;
  uint64_t before = *run->allocations;
  uint32_t from = (uint32_t)slice * run->way->shape->runs;
  run->way->sides[who]->part(&run->jobs[who], from,
                             from + run->way->shape->runs);
  if (who == 0) run->made += *run->allocations - before;
}

static void settle_side(void* user, int who) {
  run_t* run = user;
  step_fn_t settle = run->way->sides[who]->settle;
  if (settle != NULL) settle(&run->jobs[who]);
}

static void end_side(void* user, int who) {
  run_t* run = user;
  run->way->sides[who]->end(&run->jobs[who]);
}

static bool is_cause(const way_t* way) {
  return strncmp(way->name, "cause:", 6) == 0;
}

// Whether its bar holds; without one it is only told.
static bool judge(const run_t* run, const bench_pair_t* pair, bool real) {
  const way_t* way = run->way;
  bool launches = way->shape == &kLaunches && !is_cause(way);
  if (launches && run->made != 0) return false;
  if (real) return way->limit == 0 || pair->ratio <= way->limit;
  bool by_node = way->shape == &kNodes || way->shape == &kAllNodes;
  return !by_node || is_cause(way) ||
         pair->best[0] / way->shape->divisor <= kStubLimit;
}

static bool measure(run_t* run, bool real, bench_report_t* out) {
  const way_t* way = run->way;
  const shape_t* shape = way->shape;
  bool cause = is_cause(way);
  // A launch takes the device longer than the host: fewer rounds in a second.
  double seconds = shape == &kLaunches ? 30 : 12;
  bench_pair_t pair = {.begin = begin_side,
                       .slice = measured_part,
                       .settle = settle_side,
                       .end = end_side,
                       .user = run,
                       .slices = shape->slices,
                       .error = cause ? 0.01 : 0.003,
                       .seconds = cause ? 2 : seconds};
  bench_pair_measure(&pair);
  bool good = judge(run, &pair, real);
  bench_report_less(out, way->name, shape->unit,
                    pair.median[0] / shape->divisor, "the driver's own calls",
                    pair.median[1] / shape->divisor);
  fprintf(stderr,
          "%-40s middle mean of %d rounds' ratios %.4f (standard error %.4f), "
          "%llu allocations%s\n",
          way->name, pair.rounds, pair.ratio, pair.ratio_error,
          (unsigned long long)run->made, good ? "" : ": DOES NOT HOLD");
  return good;
}

static void prepare(job_t* job, const bench_stage_t* stage) {
  kiln_module_t* module = NULL;
  kiln_bytes_view_t image = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  kiln_launch_config_t config = kiln_launch_config_default();
  job->table = &stage->raw;
  job->device = stage->device;
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
    add_same(job, kernel, 0, NODES);
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
  if (job->by_library == NULL) return BENCH_SKIPPED;
  kiln_cu_kernel_node_t kernel = job->launch->node;
  kernel.context = kiln_device_context(job->device);
  if (what % 2 == 0) {
    kernel.function = NULL;
    kernel.kernel = job->by_library;
  }
  empty_raw(job);
  // Parameters are changed of a node of the same kind.
  if (what >= 2) add_same(job, &kernel, 0, NODES);
  if (what >= 4) make_exec_raw(job);
  CU(job->table->cuCtxSetCurrent(NULL));
  do_bare(job, what, &kernel);
  CU(job->table->cuCtxSetCurrent(kiln_device_context(job->device)));
  if (what < 4) make_exec_raw(job);
  launch_raw(job, 0, LAUNCHES);
  wait_raw(job);
  end_raw(job);
  printf("without a current context %s\n", kBare[what]);
  return 0;
}

static void release(job_t* job) {
  (void)job->table->cuStreamDestroy(job->raw_stream);
  kiln_launch_release(job->launch);
  kiln_buffer_release(job->buffer);
  kiln_kernel_release(job->kernel);
  kiln_stream_release(job->stream);
}

static void fill_stub(kiln_cuda_table_t* stub) {
  KILNI_CUDA_SET(stub, cuGraphAddKernelNode, stub_add);
  KILNI_CUDA_SET(stub, cuLaunchKernel, bench_stub_launch);
  KILNI_CUDA_SET(stub, cuGraphLaunch, stub_run);
  KILNI_CUDA_SET(stub, cuGraphExecKernelNodeSetParams, stub_set);
}

static bool measure_all(const bench_stage_t* stage, const job_t* job,
                        bool real) {
  static bench_report_t out;
  static job_t jobs[2];
  bool good = true;
  out.device = kiln_device_name(job->device);
  jobs[0] = *job;
  jobs[1] = *job;
  CU(job->table->cuStreamCreate(&jobs[0].raw_stream, 1));
  for (int i = 0; i < WAYS; i++) {
    run_t run = {&kWays[i], jobs, &stage->allocations, 0};
    good = measure(&run, real, &out) && good;
  }
  CU(job->table->cuStreamDestroy(jobs[0].raw_stream));
  fprintf(stderr, "bar: %s %s\n",
          real ? "at most 1.05 times the driver's calls, a launch 1.02, no "
                 "allocation in it"
               : "at most 30 ns for a node over a table that does nothing, no "
                 "allocation in a launch",
          good ? "holds" : "DOES NOT HOLD");
  bench_report_print(&out);
  return good;
}

int main(int argc, char** argv) {
  static bench_stage_t stage;
  static job_t job;
  bool real = argc > 1;
  bench_stage_init(&stage);
  fill_stub(&stage.stub);
  if (!bench_stage_open(&stage, real ? argv[1] : NULL)) return BENCH_SKIPPED;
  prepare(&job, &stage);
  find_by_library(&job);
  int told = argc > 2 ? ask_bare(&job, atoi(argv[2]) - 1)
                      : !measure_all(&stage, &job, real);
  release(&job);
  bench_stage_close(&stage);
  return told;
}
