// SPDX-License-Identifier: Apache-2.0
//
// graph: what a fault or a time limit says of the node that it met: on the
// software device.
#include "graph_kit.h"

static const char kLoopPtx[] =
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle,\n"
    "  .param .b32 value);\n"
    // Lets the loop go on, for ever.
    ".visible .entry go_on(.param .u64 handle) {\n"
    "  .reg .b64 %d<2>;\n  .reg .b32 %r<2>;\n"
    "  ld.param.u64 %d1, [handle];\n  mov.u32 %r1, 1;\n"
    "  {\n  .param .b64 a0;\n  .param .b32 a1;\n"
    "  st.param.b64 [a0], %d1;\n  st.param.b32 [a1], %r1;\n"
    "  call.uni cudaGraphSetConditional, (a0, a1);\n  }\n  ret;\n}\n"
    ".visible .entry spin() {\n$again:\n  bra.uni $again;\n}\n"
    ".visible .entry bad() {\n  .reg .b64 %d<2>;\n  mov.u64 %d1, 16;\n"
    "  st.global.u32 [%d1], 1;\n  ret;\n}\n";

enum { LIMIT_NS = 200000000 };

static graph_kit_t kit;
static kiln_module_t* module;
static kiln_graph_t* graph;
static kiln_graph_t* body;  // of its loop

static int setup(void** state) {
  (void)state;
  graph_kit_open(&kit, true);
  kiln_bytes_view_t ptx = {(const uint8_t*)kLoopPtx, sizeof(kLoopPtx) - 1};
  assert_null(kiln_module_load(kit.device, ptx, NULL, NULL, &module));
  assert_null(kiln_graph_create(kit.device, &graph));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  kiln_graph_release(body);
  kiln_graph_release(graph);
  body = NULL;
  kiln_module_release(module);
  graph_kit_close(&kit);
  return 0;
}

static kiln_graph_node_t* add(kiln_graph_t* to, kiln_graph_node_t* after,
                              kiln_graph_work_t work, const char* name) {
  kiln_graph_node_t* node = graph_kit_add(to, after, work);
  assert_null(kiln_graph_node_set_name(node, name));
  return node;
}

static kiln_graph_node_t* add_kernel(kiln_graph_t* to, const char* kernel_name,
                                     const kiln_argument_t* argument,
                                     const char* name) {
  kiln_kernel_t* kernel = NULL;
  kiln_launch_t* launch = NULL;
  assert_null(kiln_kernel_create(module, kernel_name, &kernel));
  assert_null(kiln_launch_create(kernel, NULL, &launch));
  assert_null(kiln_launch_set_all(launch, argument, argument != NULL));
  kiln_graph_node_t* node = add(to, NULL, kiln_graph_work_launch(launch), name);
  kiln_launch_release(launch);
  kiln_kernel_release(kernel);
  return node;
}

// A loop "loop" that begins, with `body`.
static void add_loop(kiln_graph_condition_t* out_condition) {
  const uint32_t first = 1;
  assert_null(kiln_graph_add_condition(graph, &first, out_condition));
  kiln_graph_node_t* loop = add(
      graph, NULL,
      kiln_graph_work_conditional(*out_condition, KILN_GRAPH_WHILE, 1), "loop");
  assert_null(kiln_graph_node_inner(loop, 0, &body));
}

// Launches the graph, and gives what the wait for it says.
static kiln_status_t launch_and_wait(uint64_t limit_ns) {
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_exec_create(graph, NULL, &exec));
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  kiln_status_t status = kiln_stream_wait(kit.stream, limit_ns);
  kiln_graph_exec_release(exec);
  return status;
}

static void assert_fix(kiln_status_t status, const char* word) {
  if (strstr(kiln_status_fix(status), word) == NULL) {
    fail_msg("no \"%s\" in the Fix: %s", word, kiln_status_fix(status));
  }
}

static void assert_fault(uint32_t kind, uint32_t cause, const char* node) {
  kiln_fault_t fault = kiln_fault_default();
  assert_null(kiln_device_fault(kit.device, &fault));
  assert_int_equal(fault.kind, kind);
  assert_int_equal(fault.cause, cause);
  assert_string_equal(fault.node, node);
}

static void test_a_limit_in_a_loop(void** state) {
  (void)state;
  kiln_graph_condition_t condition;
  add_loop(&condition);
  const kiln_argument_t handle = kiln_arg_u64(condition.handle);
  add_kernel(body, "go_on", &handle, "step");
  kiln_status_t status = launch_and_wait(LIMIT_NS);
  assert_fix(status, "set its condition to 0");
  assert_says(status, KILN_STATUS_DEVICE_LOST, "in graph node \"loop\"");
  assert_fault(KILN_FAULT_TIME_LIMIT, KILN_FAULT_CAUSE_LOOP, "loop");
}

// A kernel that never ends is the kernel's, in a loop too.
static void test_a_limit_in_a_kernel_of_a_loop(void** state) {
  (void)state;
  kiln_graph_condition_t condition;
  add_loop(&condition);
  add_kernel(body, "spin", NULL, "step");
  kiln_status_t status = launch_and_wait(LIMIT_NS);
  assert_fix(status, "at that line");
  assert_says(status, KILN_STATUS_DEVICE_LOST, "in graph node \"loop/step\"");
  assert_fault(KILN_FAULT_TIME_LIMIT, KILN_FAULT_CAUSE_NONE, "loop/step");
}

static void test_a_limit_in_a_wait(void** state) {
  (void)state;
  assert_null(kiln_buffer_fill(kit.buffer, 0, 4096, 0, 4));
  const kiln_graph_memory_op_t op = {kit.buffer, 64, 5, KILN_GRAPH_WAIT_REACHED,
                                     4};
  add(graph, NULL, kiln_graph_work_memory_ops(&op, 1), "gate");
  kiln_status_t status = launch_and_wait(LIMIT_NS);
  assert_fix(status, "written");
  assert_says(status, KILN_STATUS_DEVICE_LOST, "in graph node \"gate\"");
  assert_fault(KILN_FAULT_TIME_LIMIT, KILN_FAULT_CAUSE_WAIT, "gate");
  kiln_fault_t fault = kiln_fault_default();
  assert_null(kiln_device_fault(kit.device, &fault));
  assert_int_equal(fault.address, kiln_buffer_address(kit.buffer) + 64);
  assert_int_equal(fault.bytes, 4);
  assert_non_null(strstr(fault.detail, "to reach 5"));
  assert_non_null(strstr(fault.detail, "it is 0"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      T(test_a_limit_in_a_loop),
      T(test_a_limit_in_a_kernel_of_a_loop),
      T(test_a_limit_in_a_wait),
#undef T
  };
  return cmocka_run_group_tests_name("graph_faults", tests, NULL, NULL);
}
