// SPDX-License-Identifier: Apache-2.0
//
// soft: graphs in every order that their edges leave open, what captures tell
// the log, and what other threads may do meanwhile. What a GPU would do as well
// is in tests/contract.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "base/env.h"
#include "base/thread.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

#define OK(call)    assert_int_equal((call), KILN_CU_SUCCESS)
#define IS(e, call) assert_int_equal((call), KILN_CU_ERROR_##e)

enum { WORDS = 8, NODES = 24, GRAPHS = 12 };

// words[to] = words[to] * 3 + words[from] + value
static const char kPtx[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".visible .entry mix(.param .u64 to, .param .u64 from, .param .u32 v) {\n"
    ".reg .b32 %r<6>;\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [to];\nld.param.u64 %d2, [from];\n"
    "ld.param.u32 %r1, [v];\nld.volatile.global.u32 %r2, [%d1];\n"
    "ld.volatile.global.u32 %r3, [%d2];\nmad.lo.u32 %r4, %r2, 3, %r3;\n"
    "add.u32 %r5, %r4, %r1;\nst.volatile.global.u32 [%d1], %r5;\nret;\n}\n";

// one-thread
typedef struct device_t {
  kilni_base_env_t env;
  kiln_host_t host;
  kiln_cuda_table_t cu;
  kiln_cu_context_t context;
  kiln_cu_module_t module;
  kiln_cu_function_t mix;
  kiln_cu_deviceptr_t words;
  char logged[1024];
  int log_count;
} device_t;

static void keep_log(kiln_log_level_t level, const char* space,
                     const char* line, void* user) {
  device_t* d = user;
  (void)level;
  (void)space;
  snprintf(d->logged, sizeof(d->logged), "%s", line);
  d->log_count++;
}

static void open_device(device_t* d, uint32_t workers, uint64_t seed,
                        const char* order) {
  memset(d, 0, sizeof(*d));
  assert_null(kilni_base_env_init(&d->env, kiln_allocator_libc()));
  for (int i = 0; i < KILNI_ENV_COUNT; i++) {
    assert_null(kilni_base_env_set(&d->env, (kilni_base_env_id_t)i, NULL));
  }
  d->host = (kiln_host_t){.allocator = kiln_allocator_libc(),
                          .env = &d->env,
                          .seed = seed,
                          .log = {keep_log, d, KILN_LOG_WARNING, 0},
                          .process_id = kilni_base_process_id()};
  const kilni_soft_options_t options = {
      .struct_size = sizeof(options), .worker_count = workers, .order = order};
  assert_null(kilni_soft_start(&d->host, &options, &d->cu));
  OK(d->cu.cuInit(0));
  OK(d->cu.cuDevicePrimaryCtxRetain(&d->context, 0));
  OK(d->cu.cuCtxSetCurrent(d->context));
  OK(d->cu.cuModuleLoadData(&d->module, kPtx));
  OK(d->cu.cuModuleGetFunction(&d->mix, d->module, "mix"));
  OK(d->cu.cuMemAlloc(&d->words, WORDS * 4));
  OK(d->cu.cuMemsetD32(d->words, 1, WORDS));
  OK(d->cu.cuCtxSynchronize());
}

static void close_device(device_t* d) {
  kilni_soft_stop();
  kilni_base_env_deinit(&d->env);
}

static uint32_t next_random(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33);
}

// ---- Any order that the edges leave open ----

// What one node of a random graph does. thread-compatible
typedef struct act_t {
  uint32_t kind;  // 0: a kernel, 1: a copy of a word, 2: a fill
  uint32_t to;
  uint32_t from;
  uint32_t value;
} act_t;

static void choose_acts(uint64_t* random, act_t* acts) {
  for (int i = 0; i < NODES; i++) {
    acts[i].kind = next_random(random) % 4;
    if (acts[i].kind == 3) acts[i].kind = 0;
    acts[i].to = next_random(random) % WORDS;
    acts[i].from = next_random(random) % WORDS;
    acts[i].value = next_random(random) % 1000;
  }
}

// Two acts that meet in a word have to keep their order.
static bool meet(const act_t* a, const act_t* b) {
  return a->to == b->to || (b->kind != 2 && a->to == b->from) ||
         (a->kind != 2 && a->from == b->to);
}

static void by_host(const act_t* acts, uint32_t* words) {
  for (int i = 0; i < WORDS; i++) words[i] = 1;
  for (int i = 0; i < NODES; i++) {
    const act_t* a = &acts[i];
    if (a->kind == 0) {
      words[a->to] = words[a->to] * 3 + words[a->from] + a->value;
    } else {
      words[a->to] = a->kind == 1 ? words[a->from] : a->value;
    }
  }
}

static kiln_cu_graph_node_t add_act(device_t* d, kiln_cu_graph_t graph,
                                    const act_t* act,
                                    const kiln_cu_graph_node_t* after,
                                    size_t count) {
  kiln_cu_graph_node_t node = NULL;
  kiln_cu_deviceptr_t to = d->words + 4 * act->to;
  kiln_cu_deviceptr_t from = d->words + 4 * act->from;
  uint32_t value = act->value;
  void* arguments[] = {&to, &from, &value};
  const kiln_cu_kernel_node_t kernel = {.function = d->mix,
                                        .grid_x = 1,
                                        .grid_y = 1,
                                        .grid_z = 1,
                                        .block_x = 1,
                                        .block_y = 1,
                                        .block_z = 1,
                                        .params = arguments};
  const kiln_cu_memset_node_t fill = {
      .to = to, .value = value, .element_bytes = 4, .width = 1, .height = 1};
  kiln_cu_copy_3d_t copy;
  memset(&copy, 0, sizeof(copy));
  copy.from.type = KILN_CU_MEMORYTYPE_DEVICE;
  copy.from.device = from;
  copy.to.type = KILN_CU_MEMORYTYPE_DEVICE;
  copy.to.device = to;
  copy.width_bytes = 4;
  copy.height = 1;
  copy.depth = 1;
  if (act->kind == 0) {
    OK(d->cu.cuGraphAddKernelNode(&node, graph, after, count, &kernel));
  } else if (act->kind == 1) {
    OK(d->cu.cuGraphAddMemcpyNode(&node, graph, after, count, &copy,
                                  d->context));
  } else {
    OK(d->cu.cuGraphAddMemsetNode(&node, graph, after, count, &fill,
                                  d->context));
  }
  return node;
}

// A random graph is run as a whole and compared with the host.
static void run_random(device_t* d, uint64_t* random) {
  act_t acts[NODES];
  kiln_cu_graph_node_t nodes[NODES];
  uint32_t wanted[WORDS];
  uint32_t found[WORDS];
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  choose_acts(random, acts);
  by_host(acts, wanted);
  OK(d->cu.cuGraphCreate(&graph, 0));
  for (int i = 0; i < NODES; i++) {
    kiln_cu_graph_node_t after[NODES];
    size_t count = 0;
    for (int k = 0; k < i; k++) {
      if (meet(&acts[k], &acts[i])) after[count++] = nodes[k];
    }
    nodes[i] = add_act(d, graph, &acts[i], after, count);
  }
  OK(d->cu.cuGraphInstantiateWithParams(&exec, graph, &params));
  OK(d->cu.cuGraphDestroy(graph));
  OK(d->cu.cuMemsetD32(d->words, 1, WORDS));
  OK(d->cu.cuGraphLaunch(exec, NULL));
  OK(d->cu.cuMemcpyDtoH(found, d->words, sizeof(found)));
  assert_memory_equal(found, wanted, sizeof(found));
  OK(d->cu.cuGraphExecDestroy(exec));
}

static void test_any_order(void** state) {
  (void)state;
  static const struct {
    uint32_t workers;
    uint64_t seed;
    const char* order;
  } kWays[] = {{1, 0, NULL},     {1, 1, NULL},     {1, 77, NULL},
               {4, 5, NULL},     {1, 0, "latest"}, {1, 9, "latest"},
               {3, 11, "latest"}};
  for (size_t i = 0; i < sizeof(kWays) / sizeof(kWays[0]); i++) {
    device_t d;
    uint64_t random = 2026;
    open_device(&d, kWays[i].workers, kWays[i].seed, kWays[i].order);
    for (int k = 0; k < GRAPHS; k++) run_random(&d, &random);
    close_device(&d);
  }
}

// Two nodes without an edge between them run in either order: some seed shows
// each.
static void test_seed_chooses(void** state) {
  (void)state;
  bool seen[2] = {false, false};
  for (uint64_t seed = 1; seed < 40 && !(seen[0] && seen[1]); seed++) {
    device_t d;
    uint32_t word = 0;
    kiln_cu_graph_t graph = NULL;
    kiln_cu_graph_exec_t exec = NULL;
    kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
    const act_t acts[2] = {{2, 0, 0, 10}, {2, 0, 0, 20}};
    open_device(&d, 1, seed, NULL);
    OK(d.cu.cuGraphCreate(&graph, 0));
    (void)add_act(&d, graph, &acts[0], NULL, 0);
    (void)add_act(&d, graph, &acts[1], NULL, 0);
    OK(d.cu.cuGraphInstantiateWithParams(&exec, graph, &params));
    OK(d.cu.cuGraphLaunch(exec, NULL));
    OK(d.cu.cuMemcpyDtoH(&word, d.words, sizeof(word)));
    assert_true(word == 10 || word == 20);
    seen[word == 20] = true;
    close_device(&d);
  }
  assert_true(seen[0] && seen[1]);
}

// ---- Handles ----

static void test_handles(void** state) {
  (void)state;
  device_t d;
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_node_t node = NULL;
  kiln_cu_graph_node_t other = NULL;
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  size_t count = 0;
  open_device(&d, 1, 0, NULL);
  OK(d.cu.cuGraphCreate(&graph, 0));
  OK(d.cu.cuGraphAddEmptyNode(&node, graph, NULL, 0));
  OK(d.cu.cuGraphAddEmptyNode(&other, graph, &node, 1));
  OK(d.cu.cuGraphInstantiateWithParams(&exec, graph, &params));
  OK(d.cu.cuGraphDestroyNode(node));
  IS(INVALID_VALUE, d.cu.cuGraphDestroyNode(node));
  IS(INVALID_VALUE, d.cu.cuGraphAddEmptyNode(&other, graph, &node, 1));
  OK(d.cu.cuGraphDestroy(graph));
  IS(INVALID_VALUE, d.cu.cuGraphDestroy(graph));
  IS(INVALID_VALUE, d.cu.cuGraphGetNodes(graph, NULL, &count));
  OK(d.cu.cuGraphExecDestroy(exec));
  IS(INVALID_VALUE, d.cu.cuGraphExecDestroy(exec));
  IS(INVALID_VALUE, d.cu.cuGraphLaunch(exec, NULL));
  close_device(&d);
}

// ---- Loops ----

enum { EMPTY_BODY, FILL_IN_BODY, KERNEL_BESIDE };

static kiln_cu_graph_exec_t endless(device_t* d, int how) {
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_node_t node = NULL;
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_graph_condition_t handle = 0;
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_node_params_t loop;
  const act_t fill = {2, 0, 0, 7};
  memset(&loop, 0, sizeof(loop));
  OK(d->cu.cuGraphCreate(&graph, 0));
  OK(d->cu.cuGraphConditionalHandleCreate(&handle, graph, d->context, 5,
                                          KILN_CU_GRAPH_COND_ASSIGN_DEFAULT));
  loop.type = KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL;
  loop.of.conditional.handle = handle;
  loop.of.conditional.type = KILN_CU_GRAPH_COND_TYPE_WHILE;
  loop.of.conditional.count = 1;
  loop.of.conditional.context = d->context;
  OK(d->cu.cuGraphAddNode(&node, graph, NULL, NULL, 0, &loop));
  if (how == FILL_IN_BODY) {
    (void)add_act(d, loop.of.conditional.graphs[0], &fill, NULL, 0);
  } else if (how == KERNEL_BESIDE) {
    // 5 * 3 + 1 - 16: as cudaGraphSetConditional would.
    kiln_cu_deviceptr_t to = (kiln_cu_deviceptr_t)handle;
    uint32_t value = 0u - 16;
    void* arguments[] = {&to, &d->words, &value};
    const kiln_cu_kernel_node_t kernel = {
        d->mix, 1, 1, 1, 1, 1, 1, 0, arguments, NULL, NULL, NULL};
    OK(d->cu.cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
  }
  OK(d->cu.cuGraphInstantiateWithParams(&exec, graph, &params));
  OK(d->cu.cuGraphDestroy(graph));
  return exec;
}

// Nothing can ever set the value of such a loop: it ends with an error that
// says so, also where other work is there that nobody has asked for.
static void test_loops_without_kernels_end(void** state) {
  (void)state;
  static const char* const kOrders[] = {NULL, "latest"};
  for (int way = 0; way < 8; way++) {
    device_t d;
    kiln_cu_stream_t stream = NULL;
    kiln_cu_stream_t aside = NULL;
    open_device(&d, way < 4 ? 1 : 3, 0, kOrders[way % 2]);
    OK(d.cu.cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
    OK(d.cu.cuStreamCreate(&aside, KILN_CU_STREAM_NON_BLOCKING));
    OK(d.cu.cuMemsetD8Async(d.words, 0, 4, aside));
    OK(d.cu.cuGraphLaunch(endless(&d, way % 4 >= 2 ? FILL_IN_BODY : EMPTY_BODY),
                          stream));
    // It may have ended by now.
    (void)d.cu.cuMemsetD8Async(d.words, 0, 4, stream);
    IS(LAUNCH_TIMEOUT, d.cu.cuStreamSynchronize(stream));
    assert_non_null(strstr(d.logged, "never ends"));
    assert_non_null(strstr(d.logged, "its value is 5"));
    close_device(&d);
  }
}

// A kernel beside the loop ends it, in whatever order they come.
static void test_a_kernel_beside_ends_a_loop(void** state) {
  (void)state;
  for (uint64_t seed = 0; seed < 12; seed++) {
    device_t d;
    open_device(&d, seed < 6 ? 1 : 3, seed, seed % 2 != 0 ? "latest" : NULL);
    kiln_cu_graph_exec_t exec = endless(&d, KERNEL_BESIDE);
    OK(d.cu.cuGraphLaunch(exec, NULL));
    OK(d.cu.cuGraphLaunch(exec, NULL));
    OK(d.cu.cuCtxSynchronize());
    assert_int_equal(d.log_count, 0);
    close_device(&d);
  }
}

// ---- What is told ----

static void add_to(device_t* d, kiln_cu_stream_t stream) {
  uint32_t value = 1;
  void* arguments[] = {&d->words, &d->words, &value};
  OK(d->cu.cuLaunchKernel(d->mix, 1, 1, 1, 1, 1, 1, 0, stream, arguments,
                          NULL));
}

static void test_unjoined_is_told(void** state) {
  (void)state;
  device_t d;
  kiln_cu_stream_t streams[2] = {NULL, NULL};
  kiln_cu_event_t event = NULL;
  kiln_cu_graph_t graph = NULL;
  char fork[32];
  open_device(&d, 1, 0, NULL);
  OK(d.cu.cuStreamCreate(&streams[0], KILN_CU_STREAM_NON_BLOCKING));
  OK(d.cu.cuStreamCreate(&streams[1], KILN_CU_STREAM_NON_BLOCKING));
  OK(d.cu.cuEventCreate(&event, KILN_CU_EVENT_DISABLE_TIMING));
  OK(d.cu.cuStreamBeginCapture(streams[0],
                               KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(d.cu.cuEventRecord(event, streams[0]));
  OK(d.cu.cuStreamWaitEvent(streams[1], event, 0));
  add_to(&d, streams[1]);
  assert_int_equal(d.log_count, 0);
  IS(STREAM_CAPTURE_UNJOINED, d.cu.cuStreamEndCapture(streams[0], &graph));
  assert_int_equal(d.log_count, 1);
  snprintf(fork, sizeof(fork), "0x%llx",
           (unsigned long long)(uintptr_t)streams[1]);
  assert_non_null(strstr(d.logged, fork));
  assert_non_null(strstr(d.logged, "cuStreamWaitEvent"));
  assert_non_null(strstr(d.logged, "cuLaunchKernel"));
  // The call that breaks a capture is told too.
  OK(d.cu.cuStreamBeginCapture(streams[0],
                               KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  IS(STREAM_CAPTURE_UNSUPPORTED, d.cu.cuStreamSynchronize(streams[0]));
  assert_int_equal(d.log_count, 2);
  assert_non_null(strstr(d.logged, "cuStreamSynchronize"));
  IS(STREAM_CAPTURE_INVALIDATED, d.cu.cuStreamEndCapture(streams[0], &graph));
  close_device(&d);
}

// ---- Other threads ----

// What another thread does to a captured stream. one-thread
typedef struct visitor_t {
  device_t* d;
  kiln_cu_stream_t stream;
  kiln_cu_result_t end;
  kiln_cu_result_t alloc;
} visitor_t;

static void visit(void* user) {
  visitor_t* v = user;
  kiln_cu_graph_t graph = NULL;
  kiln_cu_deviceptr_t memory = 0;
  uint32_t value = 1;
  void* arguments[] = {&v->d->words, &v->d->words, &value};
  (void)v->d->cu.cuCtxSetCurrent(v->d->context);
  (void)v->d->cu.cuLaunchKernel(v->d->mix, 1, 1, 1, 1, 1, 1, 0, v->stream,
                                arguments, NULL);
  v->end = v->d->cu.cuStreamEndCapture(v->stream, &graph);
  v->alloc = v->d->cu.cuMemAlloc(&memory, 64);
}

static void test_another_thread(void** state) {
  (void)state;
  device_t d;
  kiln_cu_graph_t graph = NULL;
  kilni_base_thread_t thread;
  visitor_t v;
  memset(&v, 0, sizeof(v));
  open_device(&d, 1, 0, NULL);
  v.d = &d;
  OK(d.cu.cuStreamCreate(&v.stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(d.cu.cuStreamBeginCapture(v.stream,
                               KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  assert_null(kilni_base_thread_start(&thread, "visitor", visit, &v));
  kilni_base_thread_join(&thread);
  assert_int_equal(v.end, KILN_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  assert_int_equal(v.alloc, KILN_CU_SUCCESS);
  // What it launched did not run: it is told with the call.
  assert_int_equal(d.log_count, 1);
  assert_non_null(strstr(d.logged, "cuLaunchKernel"));
  OK(d.cu.cuStreamEndCapture(v.stream, &graph));
  OK(d.cu.cuGraphDestroy(graph));
  OK(d.cu.cuStreamBeginCapture(v.stream, KILN_CU_STREAM_CAPTURE_MODE_GLOBAL));
  assert_null(kilni_base_thread_start(&thread, "visitor", visit, &v));
  kilni_base_thread_join(&thread);
  assert_int_equal(v.alloc, KILN_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  IS(STREAM_CAPTURE_INVALIDATED, d.cu.cuStreamEndCapture(v.stream, &graph));
  assert_null(graph);
  close_device(&d);
}

static void begin_there(void* user) {
  visitor_t* v = user;
  (void)v->d->cu.cuCtxSetCurrent(v->d->context);
  v->end = v->d->cu.cuStreamBeginCapture(
      v->stream, KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

// A thread that has ended is nobody else's, though the next one lies where it
// lay: its capture cannot be ended, nor is it in another thread's way.
static void test_a_thread_that_ended(void** state) {
  (void)state;
  device_t d;
  kiln_cu_graph_t graph = NULL;
  kilni_base_thread_t thread;
  visitor_t v;
  memset(&v, 0, sizeof(v));
  open_device(&d, 1, 0, NULL);
  v.d = &d;
  OK(d.cu.cuStreamCreate(&v.stream, KILN_CU_STREAM_NON_BLOCKING));
  assert_null(kilni_base_thread_start(&thread, "first", begin_there, &v));
  kilni_base_thread_join(&thread);
  OK(v.end);
  assert_null(kilni_base_thread_start(&thread, "second", visit, &v));
  kilni_base_thread_join(&thread);
  assert_int_equal(v.end, KILN_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  assert_int_equal(v.alloc, KILN_CU_SUCCESS);
  IS(STREAM_CAPTURE_WRONG_THREAD, d.cu.cuStreamEndCapture(v.stream, &graph));
  close_device(&d);
}

// ---- The end ----

static void count_end(void* user) {
  ++*(int*)user;
}

// What is there when the device stops goes with it, also what is captured.
static void test_stop(void** state) {
  (void)state;
  device_t d;
  int ended = 0;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_user_object_t object = NULL;
  kiln_cu_graph_condition_t handle = 0;
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  const act_t act = {0, 0, 1, 2};
  open_device(&d, 1, 3, NULL);
  OK(d.cu.cuGraphCreate(&graph, 0));
  (void)add_act(&d, graph, &act, NULL, 0);
  OK(d.cu.cuUserObjectCreate(&object, &ended, count_end, 1,
                             KILN_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(d.cu.cuGraphRetainUserObject(graph, object, 1,
                                  KILN_CU_GRAPH_USER_OBJECT_MOVE));
  OK(d.cu.cuGraphInstantiateWithParams(&exec, graph, &params));
  OK(d.cu.cuGraphConditionalHandleCreate(&handle, graph, NULL, 0, 0));
  OK(d.cu.cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(d.cu.cuGraphLaunch(exec, stream));
  OK(d.cu.cuStreamBeginCapture(stream, KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  add_to(&d, stream);
  close_device(&d);
  assert_int_equal(ended, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_any_order),
      cmocka_unit_test(test_seed_chooses),
      cmocka_unit_test(test_loops_without_kernels_end),
      cmocka_unit_test(test_a_kernel_beside_ends_a_loop),
      cmocka_unit_test(test_a_thread_that_ended),
      cmocka_unit_test(test_handles),
      cmocka_unit_test(test_unjoined_is_told),
      cmocka_unit_test(test_another_thread),
      cmocka_unit_test(test_stop),
  };
  return cmocka_run_group_tests_name("soft_graph", tests, NULL, NULL);
}
