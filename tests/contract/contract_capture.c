// SPDX-License-Identifier: Apache-2.0
//
// contract: captures of streams as graphs, and what they forbid.
#include <stdatomic.h>
#include <string.h>

#include "contract.h"
#include "table/cuda_table.h"

// What most cases need. one-thread
typedef struct bench_t {
  kiln_cu_module_t module;
  kiln_cu_stream_t stream;
  kiln_cu_stream_t other;
  kiln_cu_event_t fork;
  kiln_cu_event_t join;
  kiln_cu_deviceptr_t words;  // 64 of them, zero
} bench_t;

static void set_up(contract_t* t, bench_t* b) {
  memset(b, 0, sizeof(*b));
  b->module = contract_load(t);
  OK(t->cu->cuStreamCreate(&b->stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuStreamCreate(&b->other, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuEventCreate(&b->fork, KILN_CU_EVENT_DISABLE_TIMING));
  OK(t->cu->cuEventCreate(&b->join, KILN_CU_EVENT_DISABLE_TIMING));
  OK(t->cu->cuMemAlloc(&b->words, 256));
  OK(t->cu->cuMemsetD8(b->words, 0, 256));
  OK(t->cu->cuCtxSynchronize());
}

static void tear_down(contract_t* t, bench_t* b) {
  OK(t->cu->cuStreamDestroy(b->stream));
  OK(t->cu->cuStreamDestroy(b->other));
  OK(t->cu->cuEventDestroy(b->fork));
  OK(t->cu->cuEventDestroy(b->join));
  OK(t->cu->cuMemFree(b->words));
  OK(t->cu->cuModuleUnload(b->module));
}

static uint32_t word(contract_t* t, const bench_t* b, unsigned index) {
  uint32_t value = 0;
  OK(t->cu->cuMemcpyDtoH(&value, b->words + 4 * index, sizeof(value)));
  return value;
}

static void step(contract_t* t, const bench_t* b, kiln_cu_stream_t stream,
                 unsigned index, uint32_t value) {
  kiln_cu_deviceptr_t at = b->words + 4 * index;
  void* params[] = {&at, &value};
  OK(contract_one(t, b->module, "step", stream, params));
}

static void begin(contract_t* t, const bench_t* b) {
  OK(t->cu->cuStreamBeginCapture(b->stream,
                                 KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static kiln_cu_graph_t end(contract_t* t, const bench_t* b) {
  kiln_cu_graph_t graph = NULL;
  OK(t->cu->cuStreamEndCapture(b->stream, &graph));
  CHECK(graph != NULL);
  return graph;
}

static kiln_cu_capture_status_t status(contract_t* t, kiln_cu_stream_t stream) {
  kiln_cu_capture_status_t status = 99;
  OK(t->cu->cuStreamIsCapturing(stream, &status));
  return status;
}

static void run(contract_t* t, const bench_t* b, kiln_cu_graph_t graph) {
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  OK(t->cu->cuGraphInstantiateWithParams(&exec, graph, &params));
  OK(t->cu->cuGraphDestroy(graph));
  OK(t->cu->cuGraphLaunch(exec, b->stream));
  OK(t->cu->cuStreamSynchronize(b->stream));
  OK(t->cu->cuGraphExecDestroy(exec));
}

static void count_call(void* user) {
  atomic_fetch_add((atomic_uint*)user, 1);
}

// After a capture that gave nothing: the stream works, and captures.
static void still_works(contract_t* t, bench_t* b) {
  CHECK(status(t, b->stream) == KILN_CU_STREAM_CAPTURE_STATUS_NONE);
  OK(t->cu->cuMemsetD8Async(b->words, 0, 256, b->stream));
  step(t, b, b->stream, 60, 1);
  begin(t, b);
  step(t, b, b->stream, 60, 2);
  run(t, b, end(t, b));
  CHECK(word(t, b, 60) == 5);
}

static void capture_line(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  atomic_uint calls = 0;
  uint32_t host[2] = {0, 0};
  CHECK(status(t, b.stream) == KILN_CU_STREAM_CAPTURE_STATUS_NONE);
  begin(t, &b);
  CHECK(status(t, b.stream) == KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(status(t, b.other) == KILN_CU_STREAM_CAPTURE_STATUS_NONE);
  OK(t->cu->cuMemsetD32Async(b.words, 5, 2, b.stream));
  step(t, &b, b.stream, 0, 1);
  OK(t->cu->cuMemcpyDtoDAsync(b.words + 8, b.words, 8, b.stream));
  OK(t->cu->cuMemcpyDtoHAsync(host, b.words + 8, 8, b.stream));
  OK(t->cu->cuLaunchHostFunc(b.stream, count_call, &calls));
  kiln_cu_graph_t graph = end(t, &b);
  CHECK(status(t, b.stream) == KILN_CU_STREAM_CAPTURE_STATUS_NONE);
  size_t count = 0;
  OK(t->cu->cuGraphGetNodes(graph, NULL, &count));
  CHECK(count == 5);
  OK(t->cu->cuGraphGetEdges(graph, NULL, NULL, &count));
  CHECK(count == 4);
  CHECK(atomic_load(&calls) == 0 && word(t, &b, 0) == 0);
  run(t, &b, graph);
  CHECK(host[0] == 16 && host[1] == 5 && atomic_load(&calls) == 1);
  tear_down(t, &b);
}

static void capture_fork(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  begin(t, &b);
  step(t, &b, b.stream, 0, 1);
  OK(t->cu->cuEventRecord(b.fork, b.stream));
  OK(t->cu->cuStreamWaitEvent(b.other, b.fork, 0));
  CHECK(status(t, b.other) == KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE);
  step(t, &b, b.other, 1, 2);
  step(t, &b, b.stream, 0, 3);
  OK(t->cu->cuEventRecord(b.join, b.other));
  OK(t->cu->cuStreamWaitEvent(b.stream, b.join, 0));
  step(t, &b, b.stream, 1, 4);
  kiln_cu_graph_t graph = end(t, &b);
  CHECK(status(t, b.other) == KILN_CU_STREAM_CAPTURE_STATUS_NONE);
  size_t count = 0;
  OK(t->cu->cuGraphGetRootNodes(graph, NULL, &count));
  CHECK(count == 1);
  OK(t->cu->cuGraphGetEdges(graph, NULL, NULL, &count));
  CHECK(count == 4);
  run(t, &b, graph);
  CHECK(word(t, &b, 0) == 1 * 3 + 3 && word(t, &b, 1) == 2 * 3 + 4);
  tear_down(t, &b);
}

static void capture_unjoined(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_t graph = NULL;
  begin(t, &b);
  step(t, &b, b.stream, 0, 1);
  OK(t->cu->cuEventRecord(b.fork, b.stream));
  OK(t->cu->cuStreamWaitEvent(b.other, b.fork, 0));
  step(t, &b, b.other, 1, 2);
  IS(STREAM_CAPTURE_UNJOINED, t->cu->cuStreamEndCapture(b.stream, &graph));
  CHECK(graph == NULL);
  CHECK(status(t, b.other) == KILN_CU_STREAM_CAPTURE_STATUS_NONE);
  still_works(t, &b);
  tear_down(t, &b);
}

static void capture_states(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_t graph = NULL;
  IS(ILLEGAL_STATE, t->cu->cuStreamEndCapture(b.stream, &graph));
  IS(STREAM_CAPTURE_UNSUPPORTED,
     t->cu->cuStreamBeginCapture(NULL,
                                 KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  IS(INVALID_VALUE, t->cu->cuStreamBeginCapture(b.stream, 9));
  begin(t, &b);
  IS(ILLEGAL_STATE, t->cu->cuStreamBeginCapture(
                        b.stream, KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  step(t, &b, b.stream, 0, 1);
  run(t, &b, end(t, &b));
  CHECK(word(t, &b, 0) == 1);
  tear_down(t, &b);
}

// Ends a capture that was broken; nothing comes of it.
static void end_broken(contract_t* t, bench_t* b) {
  kiln_cu_graph_t graph = NULL;
  CHECK(status(t, b->stream) == KILN_CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  IS(STREAM_CAPTURE_INVALIDATED, t->cu->cuStreamEndCapture(b->stream, &graph));
  CHECK(graph == NULL);
  still_works(t, b);
}

static void capture_broken_by_wait(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  begin(t, &b);
  IS(STREAM_CAPTURE_UNSUPPORTED, t->cu->cuStreamSynchronize(b.stream));
  IS(STREAM_CAPTURE_INVALIDATED,
     t->cu->cuMemsetD8Async(b.words, 1, 4, b.stream));
  end_broken(t, &b);
  begin(t, &b);
  IS(STREAM_CAPTURE_UNSUPPORTED, t->cu->cuStreamQuery(b.stream));
  end_broken(t, &b);
  tear_down(t, &b);
}

static void capture_broken_by_event(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  begin(t, &b);
  step(t, &b, b.stream, 0, 1);
  OK(t->cu->cuEventRecord(b.fork, b.stream));
  IS(CAPTURED_EVENT, t->cu->cuEventQuery(b.fork));
  end_broken(t, &b);
  begin(t, &b);
  step(t, &b, b.stream, 0, 1);
  OK(t->cu->cuEventRecord(b.fork, b.stream));
  IS(CAPTURED_EVENT, t->cu->cuEventSynchronize(b.fork));
  end_broken(t, &b);
  tear_down(t, &b);
}

static void capture_isolation(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  OK(t->cu->cuEventRecord(b.fork, b.other));
  begin(t, &b);
  IS(STREAM_CAPTURE_ISOLATION, t->cu->cuStreamWaitEvent(b.stream, b.fork, 0));
  end_broken(t, &b);
  tear_down(t, &b);
}

static void capture_merge(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_t graph = NULL;
  begin(t, &b);
  OK(t->cu->cuStreamBeginCapture(b.other,
                                 KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  step(t, &b, b.other, 0, 1);
  OK(t->cu->cuEventRecord(b.fork, b.other));
  IS(STREAM_CAPTURE_MERGE, t->cu->cuStreamWaitEvent(b.stream, b.fork, 0));
  IS(STREAM_CAPTURE_INVALIDATED, t->cu->cuStreamEndCapture(b.other, &graph));
  end_broken(t, &b);
  tear_down(t, &b);
}

static void capture_unmatched(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_t graph = NULL;
  begin(t, &b);
  step(t, &b, b.stream, 0, 1);
  OK(t->cu->cuEventRecord(b.fork, b.stream));
  OK(t->cu->cuStreamWaitEvent(b.other, b.fork, 0));
  IS(STREAM_CAPTURE_UNMATCHED, t->cu->cuStreamEndCapture(b.other, &graph));
  CHECK(graph == NULL);
  const kiln_cu_result_t result = t->cu->cuStreamEndCapture(b.stream, &graph);
  if (result == KILN_CU_SUCCESS) OK(t->cu->cuGraphDestroy(graph));
  still_works(t, &b);
  tear_down(t, &b);
}

static void capture_implicit(contract_t* t) {
  bench_t b;
  kiln_cu_stream_t blocking = NULL;
  kiln_cu_graph_t graph = NULL;
  set_up(t, &b);
  OK(t->cu->cuStreamCreate(&blocking, KILN_CU_STREAM_DEFAULT));
  OK(t->cu->cuStreamBeginCapture(blocking,
                                 KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  IS(STREAM_CAPTURE_IMPLICIT, t->cu->cuMemsetD8Async(b.words, 1, 4, NULL));
  IS(STREAM_CAPTURE_INVALIDATED, t->cu->cuStreamEndCapture(blocking, &graph));
  CHECK(graph == NULL);
  OK(t->cu->cuStreamDestroy(blocking));
  still_works(t, &b);
  tear_down(t, &b);
}

// A call that is unsafe, in each mode of the thread.
static void capture_modes(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_t graph = NULL;
  kiln_cu_deviceptr_t memory = 0;
  OK(t->cu->cuStreamBeginCapture(b.stream, KILN_CU_STREAM_CAPTURE_MODE_GLOBAL));
  IS(STREAM_CAPTURE_UNSUPPORTED, t->cu->cuMemAlloc(&memory, 64));
  end_broken(t, &b);
  OK(t->cu->cuStreamBeginCapture(b.stream, KILN_CU_STREAM_CAPTURE_MODE_GLOBAL));
  kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(t->cu->cuThreadExchangeStreamCaptureMode(&mode));
  OK(t->cu->cuMemAlloc(&memory, 64));
  OK(t->cu->cuMemFree(memory));
  OK(t->cu->cuThreadExchangeStreamCaptureMode(&mode));
  OK(t->cu->cuStreamEndCapture(b.stream, &graph));
  OK(t->cu->cuGraphDestroy(graph));
  OK(t->cu->cuStreamBeginCapture(b.stream,
                                 KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(t->cu->cuMemAlloc(&memory, 64));
  OK(t->cu->cuMemFree(memory));
  OK(t->cu->cuStreamEndCapture(b.stream, &graph));
  OK(t->cu->cuGraphDestroy(graph));
  tear_down(t, &b);
}

static void capture_info(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_capture_status_t seen = 99;
  uint64_t id = 0;
  uint64_t again = 0;
  kiln_cu_graph_t graph = NULL;
  const kiln_cu_graph_node_t* nodes = NULL;
  size_t count = 9;
  OK(t->cu->cuStreamGetCaptureInfo(b.stream, &seen, NULL, NULL, NULL, NULL));
  CHECK(seen == KILN_CU_STREAM_CAPTURE_STATUS_NONE);
  begin(t, &b);
  OK(t->cu->cuStreamGetCaptureInfo(b.stream, &seen, &id, &graph, &nodes,
                                   &count));
  CHECK(seen == KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE && id != 0);
  CHECK(graph != NULL && count == 0);
  step(t, &b, b.stream, 0, 1);
  OK(t->cu->cuStreamGetCaptureInfo(b.stream, &seen, &again, &graph, &nodes,
                                   &count));
  CHECK(again == id && count == 1 && nodes != NULL && nodes[0] != NULL);
  // A node by hand, behind what was captured.
  kiln_cu_graph_node_t empty = NULL;
  kiln_cu_graph_node_t behind = nodes[0];
  OK(t->cu->cuGraphAddEmptyNode(&empty, graph, &behind, 1));
  OK(t->cu->cuStreamUpdateCaptureDependencies(
      b.stream, &empty, 1, KILN_CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  step(t, &b, b.stream, 0, 2);
  kiln_cu_graph_t made = end(t, &b);
  OK(t->cu->cuGraphGetEdges(made, NULL, NULL, &count));
  CHECK(count == 2);
  run(t, &b, made);
  CHECK(word(t, &b, 0) == 5);
  IS(INVALID_VALUE,
     t->cu->cuStreamGetCaptureInfo(b.stream, NULL, NULL, NULL, NULL, NULL));
  tear_down(t, &b);
}

static void capture_to_graph(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_t given = NULL;
  kiln_cu_graph_node_t first = NULL;
  size_t count = 0;
  OK(t->cu->cuGraphCreate(&graph, 0));
  OK(t->cu->cuGraphAddEmptyNode(&first, graph, NULL, 0));
  OK(t->cu->cuStreamBeginCaptureToGraph(
      b.stream, graph, &first, NULL, 1,
      KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  step(t, &b, b.stream, 0, 1);
  step(t, &b, b.stream, 0, 2);
  OK(t->cu->cuStreamEndCapture(b.stream, &given));
  CHECK(given == graph);
  OK(t->cu->cuGraphGetEdges(graph, NULL, NULL, &count));
  CHECK(count == 2);
  run(t, &b, graph);
  CHECK(word(t, &b, 0) == 5);
  tear_down(t, &b);
}

static void capture_stream_ends(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  // A fork that was joined may go before the capture ends.
  kiln_cu_stream_t fork = NULL;
  OK(t->cu->cuStreamCreate(&fork, KILN_CU_STREAM_NON_BLOCKING));
  begin(t, &b);
  step(t, &b, b.stream, 0, 1);
  OK(t->cu->cuEventRecord(b.fork, b.stream));
  OK(t->cu->cuStreamWaitEvent(fork, b.fork, 0));
  step(t, &b, fork, 0, 2);
  OK(t->cu->cuEventRecord(b.join, fork));
  OK(t->cu->cuStreamWaitEvent(b.stream, b.join, 0));
  OK(t->cu->cuStreamDestroy(fork));
  run(t, &b, end(t, &b));
  CHECK(word(t, &b, 0) == 5);
  tear_down(t, &b);
}

static void capture_memory(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_deviceptr_t memory = 0;
  begin(t, &b);
  OK(t->cu->cuMemAllocAsync(&memory, 256, b.stream));
  CHECK(memory != 0);
  OK(t->cu->cuMemsetD32Async(memory, 5, 4, b.stream));
  OK(t->cu->cuMemcpyDtoDAsync(b.words, memory, 16, b.stream));
  OK(t->cu->cuMemFreeAsync(memory, b.stream));
  kiln_cu_graph_t graph = end(t, &b);
  size_t count = 0;
  OK(t->cu->cuGraphGetNodes(graph, NULL, &count));
  CHECK(count == 4);
  run(t, &b, graph);
  CHECK(word(t, &b, 3) == 5);
  tear_down(t, &b);
}

static const contract_case_t cases[] = {
    {"capture_line", capture_line, CONTRACT_PLAIN},
    {"capture_fork", capture_fork, CONTRACT_PLAIN},
    {"capture_unjoined", capture_unjoined, CONTRACT_PLAIN},
    {"capture_states", capture_states, CONTRACT_PLAIN},
    {"capture_broken_by_wait", capture_broken_by_wait, CONTRACT_PLAIN},
    {"capture_broken_by_event", capture_broken_by_event, CONTRACT_PLAIN},
    {"capture_isolation", capture_isolation, CONTRACT_PLAIN},
    {"capture_merge", capture_merge, CONTRACT_PLAIN},
    {"capture_unmatched", capture_unmatched, CONTRACT_PLAIN},
    {"capture_implicit", capture_implicit, CONTRACT_PLAIN},
    {"capture_modes", capture_modes, CONTRACT_PLAIN},
    {"capture_info", capture_info, CONTRACT_PLAIN},
    {"capture_to_graph", capture_to_graph, CONTRACT_PLAIN},
    {"capture_memory", capture_memory, CONTRACT_PLAIN},
    {"capture_stream_ends", capture_stream_ends, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_capture, cases);
