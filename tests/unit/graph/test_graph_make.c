// SPDX-License-Identifier: Apache-2.0
//
// graph: graphs by hand over the null provider, which knows every handle and
// counts who refers to what.
#include "graph_kit.h"

static graph_kit_t kit;

static int setup(void** state) {
  (void)state;
  graph_kit_open(&kit, false);
  return 0;
}

static int teardown(void** state) {
  (void)state;
  graph_kit_close(&kit);
  return 0;
}

static void nothing(void* user) {
  (void)user;
}

#define REFUSED(call, code, text) assert_says((call), KILN_STATUS_##code, text)

// ---- Nodes ----

static void test_every_kind(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_t* child = NULL;
  kiln_event_t* event = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  assert_null(kiln_graph_create(kit.device, &child));
  assert_null(kiln_event_create(kit.device, NULL, &event));
  char host[16] = {0};
  kiln_graph_memory_op_t op = {kit.buffer, 8, 5, KILN_GRAPH_WAIT_REACHED, 8};
  kiln_graph_semaphore_t semaphore = {(void*)(uintptr_t)0x77, 3};
  kiln_graph_work_t signal = kiln_graph_work_empty();
  signal.kind = KILN_GRAPH_SIGNAL_SEMAPHORES;
  memset(&signal.as.semaphores, 0, sizeof(signal.as.semaphores));
  signal.as.semaphores.list = &semaphore;
  signal.as.semaphores.count = 1;
  kiln_graph_work_t wait = signal;
  wait.kind = KILN_GRAPH_WAIT_SEMAPHORES;
  const kiln_graph_work_t works[] = {
      kiln_graph_work_launch(kit.launch),
      kiln_graph_work_move(kiln_graph_place_buffer(kit.buffer, 16),
                           kiln_graph_place_host_read(host), 16),
      kiln_graph_work_fill(kit.buffer, 4, 3, 7, 4),
      kiln_graph_work_host(nothing, NULL),
      kiln_graph_work_child(child),
      kiln_graph_work_empty(),
      kiln_graph_work_wait(event),
      kiln_graph_work_record(event),
      signal,
      wait,
      kiln_graph_work_allocate(256),
      kiln_graph_work_free(0x1234),
      kiln_graph_work_memory_ops(&op, 1),
  };
  kiln_graph_node_t* last = NULL;
  for (uint32_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
    kiln_graph_node_t* node = graph_kit_add(graph, last, works[i]);
    assert_int_equal(kiln_graph_node_kind(node), i);
    assert_true(kiln_graph_node_is_valid(node));
    assert_ptr_equal(kiln_graph_node_graph(node), graph);
    assert_non_null(kiln_graph_node_handle(node));
    bool allocates = i == KILN_GRAPH_ALLOCATE;
    assert_int_equal(kiln_graph_node_address(node) != 0, allocates);
    last = node;
  }
  kiln_graph_release(child);
  kiln_event_release(event);
  kiln_graph_release(graph);
}

static void test_removed(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_node_t* node =
      graph_kit_add(graph, NULL, kiln_graph_work_launch(kit.launch));
  kiln_graph_node_t* other =
      graph_kit_add(graph, node, kiln_graph_work_empty());
  assert_null(kiln_graph_node_set_name(node, "scale"));
  assert_null(kiln_graph_node_remove(node));
  assert_false(kiln_graph_node_is_valid(node));
  assert_null(kiln_graph_node_handle(node));
  const char* text = "the kernel node \"scale\" was removed";
  kiln_graph_work_t work = kiln_graph_work_launch(kit.launch);
  kiln_graph_node_info_t info;
  kiln_graph_edge_t edge = kiln_graph_edge(node, other);
  kiln_graph_t* inner;
  uint32_t count;
  REFUSED(kiln_graph_node_remove(node), INVALID_STATE, text);
  REFUSED(kiln_graph_node_set(node, &work), INVALID_STATE, text);
  REFUSED(kiln_graph_node_set_name(node, "x"), INVALID_STATE, text);
  REFUSED(kiln_graph_node_describe(node, &info), INVALID_STATE, text);
  REFUSED(kiln_graph_node_inner(node, 0, &inner), INVALID_STATE, text);
  REFUSED(kiln_graph_node_before(node, 0, NULL, &count), INVALID_STATE, text);
  REFUSED(kiln_graph_node_after(node, 0, NULL, &count), INVALID_STATE, text);
  REFUSED(kiln_graph_connect(graph, &edge, 1), INVALID_STATE, text);
  REFUSED(kiln_graph_disconnect(graph, &edge, 1), INVALID_STATE, text);
  REFUSED(kiln_graph_add(graph, &node, 1, &work, NULL), INVALID_STATE, text);
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_exec_create(graph, NULL, &exec));
  bool enabled;
  REFUSED(kiln_graph_exec_set(exec, node, &work), INVALID_STATE, text);
  REFUSED(kiln_graph_exec_enable(exec, node, false), INVALID_STATE, text);
  REFUSED(kiln_graph_exec_is_enabled(exec, node, &enabled), INVALID_STATE,
          text);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
}

static void test_names(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t* nodes[300];
  kiln_graph_node_t* found = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  for (int i = 0; i < 300; i++) {
    nodes[i] = graph_kit_add(graph, NULL, kiln_graph_work_empty());
  }
  assert_string_equal(kiln_graph_node_name(nodes[0]), "");
  assert_null(kiln_graph_node_set_name(nodes[299], "last"));
  assert_null(kiln_graph_node_set_name(nodes[0], "first"));
  assert_null(kiln_graph_find(graph, "last", &found));
  assert_ptr_equal(found, nodes[299]);
  assert_null(kiln_graph_find(graph, "first", &found));
  assert_ptr_equal(found, nodes[0]);
  REFUSED(kiln_graph_find(graph, "middle", &found), NOT_FOUND,
          "no node \"middle\"");
  assert_null(found);
  REFUSED(kiln_graph_find(graph, "", &found), NOT_FOUND, "no node");
  assert_null(kiln_graph_node_set_name(nodes[0], NULL));
  REFUSED(kiln_graph_find(graph, "first", &found), NOT_FOUND, "first");
  char longest[300];
  memset(longest, 'x', sizeof(longest));
  longest[256] = 0;
  REFUSED(kiln_graph_node_set_name(nodes[0], longest), LIMIT_EXCEEDED, "256");
  longest[255] = 0;
  assert_null(kiln_graph_node_set_name(nodes[0], longest));
  assert_string_equal(kiln_graph_node_name(nodes[0]), longest);
  kiln_graph_release(graph);
}

// ---- What is refused ----

static void refused(kiln_graph_t* graph, kiln_graph_work_t work,
                    kiln_status_code_t code, const char* text) {
  kiln_graph_node_t* node = (kiln_graph_node_t*)(uintptr_t)1;
  assert_says(kiln_graph_add(graph, NULL, 0, &work, &node), code, text);
  assert_null(node);
}

static void test_refused_copies(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  char host[64];
  kiln_graph_place_t at = kiln_graph_place_buffer(kit.buffer, 4000);
  kiln_graph_place_t from = kiln_graph_place_host_read(host);
  refused(graph, kiln_graph_work_move(at, from, 0),
          KILN_STATUS_INVALID_ARGUMENT, "0 bytes");
  refused(graph, kiln_graph_work_move(at, from, 97), KILN_STATUS_OUT_OF_RANGE,
          "needs 97 bytes, and the buffer has 4096");
  kiln_graph_copy_t copy;
  memset(&copy, 0, sizeof(copy));
  copy.to = kiln_graph_place_buffer(kit.buffer, 0);
  copy.from = from;
  copy.bytes = 8;
  copy.rows = 3;
  copy.to.row_bytes = 4;
  refused(graph, kiln_graph_work_copy(copy), KILN_STATUS_INVALID_ARGUMENT,
          "overlap");
  copy.to.row_bytes = 2048;
  refused(graph, kiln_graph_work_copy(copy), KILN_STATUS_OUT_OF_RANGE,
          "needs 4104 bytes");
  copy.to.row_bytes = UINT64_MAX / 2;
  copy.rows = 5;
  refused(graph, kiln_graph_work_copy(copy), KILN_STATUS_INVALID_ARGUMENT,
          "overflows");
  copy.to.buffer = NULL;
  refused(graph, kiln_graph_work_copy(copy), KILN_STATUS_INVALID_ARGUMENT,
          "one of a buffer, an array and host memory");
  copy.to = from;
  copy.to.buffer = kit.buffer;
  refused(graph, kiln_graph_work_copy(copy), KILN_STATUS_INVALID_ARGUMENT,
          "one of a buffer");
  kiln_graph_release(graph);
}

// As the stream operation says, which a node of one dimension is.
static void test_a_copy_over_itself(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_work_t work =
      kiln_graph_work_move(kiln_graph_place_buffer(kit.buffer, 8),
                           kiln_graph_place_buffer(kit.buffer, 0), 16);
  REFUSED(kiln_graph_add(graph, NULL, 0, &work, NULL), INVALID_ARGUMENT,
          "overlaps itself");
  work.as.copy.from.offset = 23;
  REFUSED(kiln_graph_add(graph, NULL, 0, &work, NULL), INVALID_ARGUMENT,
          "overlaps itself");
  work.as.copy.from.offset = 24;
  (void)graph_kit_add(graph, NULL, work);
  // From the left half of each row to its right one.
  work.as.copy.from.offset = 0;
  work.as.copy.to.offset = 16;
  work.as.copy.rows = 4;
  work.as.copy.from.row_bytes = 32;
  work.as.copy.to.row_bytes = 32;
  (void)graph_kit_add(graph, NULL, work);
  kiln_graph_release(graph);
}

static void test_refused_work(void** state) {
  (void)state;
  const kiln_status_code_t bad = KILN_STATUS_INVALID_ARGUMENT;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  refused(graph, kiln_graph_work_fill(kit.buffer, 0, 1, 0, 3), bad,
          "1, 2 or 4");
  refused(graph, kiln_graph_work_fill(kit.buffer, 2, 1, 0, 4), bad,
          "multiples");
  refused(graph, kiln_graph_work_fill(kit.buffer, 0, 0, 0, 4), bad, "0 values");
  refused(graph, kiln_graph_work_fill(NULL, 0, 1, 0, 4), bad,
          "without a buffer");
  refused(graph, kiln_graph_work_fill(kit.buffer, 0, 1025, 0, 4),
          KILN_STATUS_OUT_OF_RANGE, "4100");
  refused(graph, kiln_graph_work_host(NULL, NULL), bad, "without a function");
  kiln_graph_work_t host = kiln_graph_work_host(nothing, NULL);
  host.as.host.copied_bytes = 4;
  refused(graph, host, bad, "copies bytes from NULL");
  refused(graph, kiln_graph_work_record(NULL), bad, "without an event");
  refused(graph, kiln_graph_work_child(NULL), bad, "without a graph");
  refused(graph, kiln_graph_work_child(graph), bad, "a node of itself");
  refused(graph, kiln_graph_work_allocate(0), bad, "0 bytes");
  refused(graph, kiln_graph_work_free(0), bad, "address 0");
  refused(graph, kiln_graph_work_launch(NULL), bad, "launch");
  refused(graph, kiln_graph_work_memory_ops(NULL, 1), bad, "1 and 256");
  kiln_graph_memory_op_t op = {kit.buffer, 4, 5, KILN_GRAPH_WAIT_AND, 8};
  refused(graph, kiln_graph_work_memory_ops(&op, 1), bad, "memory operation");
  op.offset = 4096;
  refused(graph, kiln_graph_work_memory_ops(&op, 1), KILN_STATUS_OUT_OF_RANGE,
          "memory operation");
  kiln_graph_work_t unknown = kiln_graph_work_empty();
  unknown.kind = 99;
  refused(graph, unknown, bad, "an unknown kind");
  kiln_graph_release(graph);
}

static void test_refused_launches(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_launch_t* launch = NULL;
  assert_null(kiln_launch_create(kit.step, NULL, &launch));
  refused(graph, kiln_graph_work_launch(launch), KILN_STATUS_INVALID_STATE,
          "argument 0 (\"x\") of kernel \"step\" was never given");
  kiln_launch_release(launch);
  kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
  attributes.overlap = KILN_SWITCH_ON;
  kiln_launch_config_t config = kiln_launch_config_default();
  config.attributes = &attributes;
  assert_null(kiln_launch_create(kit.none, &config, &launch));
  refused(graph, kiln_graph_work_launch(launch), KILN_STATUS_INVALID_ARGUMENT,
          "the launch attribute `overlap`");
  kiln_launch_release(launch);
  kiln_graph_release(graph);
}

static void test_attributes(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
  attributes.cooperative = KILN_SWITCH_ON;
  kiln_launch_config_t config = kiln_launch_config_default();
  config.attributes = &attributes;
  kiln_launch_t* launch = NULL;
  kiln_launch_t* plain = NULL;
  assert_null(kiln_launch_create(kit.none, &config, &launch));
  assert_null(kiln_launch_create(kit.none, NULL, &plain));
  kiln_graph_work_t with = kiln_graph_work_launch(launch);
  kiln_graph_work_t without = kiln_graph_work_launch(plain);
  kiln_graph_node_t* node = graph_kit_add(graph, NULL, with);
  assert_null(kiln_graph_node_set(node, &with));
  REFUSED(kiln_graph_node_set(node, &without), INVALID_ARGUMENT,
          "attributes that differ from those of the kernel node \"0\"");
  node = graph_kit_add(graph, NULL, without);
  REFUSED(kiln_graph_node_set(node, &with), INVALID_ARGUMENT,
          "attributes that differ");
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_exec_create(graph, NULL, &exec));
  REFUSED(kiln_graph_exec_set(exec, node, &with), INVALID_ARGUMENT,
          "attributes that differ");
  assert_null(kiln_graph_exec_set(exec, node, &without));
  kiln_graph_exec_release(exec);
  kiln_launch_release(launch);
  kiln_launch_release(plain);
  kiln_graph_release(graph);
}

static void test_other_graphs(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_t* other = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  assert_null(kiln_graph_create(kit.device, &other));
  kiln_graph_node_t* mine = graph_kit_add(graph, NULL, kiln_graph_work_empty());
  kiln_graph_node_t* theirs =
      graph_kit_add(other, NULL, kiln_graph_work_empty());
  kiln_graph_work_t work = kiln_graph_work_empty();
  kiln_graph_node_t* both[] = {mine, theirs, NULL};
  REFUSED(kiln_graph_add(graph, both, 2, &work, NULL), INVALID_ARGUMENT,
          "`after[1]`, the empty node \"0\", is of another graph");
  REFUSED(kiln_graph_add(graph, both, 3, &work, NULL), INVALID_ARGUMENT,
          "after[1]");
  kiln_graph_edge_t edge = kiln_graph_edge(mine, theirs);
  REFUSED(kiln_graph_connect(graph, &edge, 1), INVALID_ARGUMENT,
          "`to` is a node of another graph");
  edge.to = mine;
  REFUSED(kiln_graph_connect(graph, &edge, 1), INVALID_ARGUMENT,
          "would wait for itself");
  edge = kiln_graph_edge(mine, graph_kit_add(graph, NULL, work));
  edge.type = 2;
  REFUSED(kiln_graph_connect(graph, &edge, 1), INVALID_ARGUMENT, "of type 2");
  edge.type = 0;
  edge.to = NULL;
  REFUSED(kiln_graph_connect(graph, &edge, 1), INVALID_ARGUMENT,
          "`to` is NULL");
  kiln_graph_release(graph);
  kiln_graph_release(other);
}

static void test_many_before(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t* nodes[40];
  assert_null(kiln_graph_create(kit.device, &graph));
  for (int i = 0; i < 40; i++) {
    nodes[i] = graph_kit_add(graph, NULL, kiln_graph_work_empty());
  }
  kiln_graph_work_t work = kiln_graph_work_empty();
  kiln_graph_node_t* node = NULL;
  assert_null(kiln_graph_add(graph, nodes, 40, &work, &node));
  assert_non_null(node);
  kiln_graph_release(graph);
}

// ---- Many nodes in one call ----

static void test_add_all(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t* nodes[4] = {NULL, NULL, NULL, NULL};
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_work_t kernel = kiln_graph_work_launch(kit.launch);
  kiln_graph_work_t fill = kiln_graph_work_fill(kit.buffer, 0, 4, 7, 4);
  kiln_graph_addition_t additions[] = {{&fill, NULL, &nodes[0], 0, 0},
                                       {&kernel, &nodes[0], &nodes[1], 1, 0},
                                       {&kernel, &nodes[1], NULL, 1, 0},
                                       {&kernel, &nodes[0], &nodes[3], 2, 0}};
  uint32_t added = 9;
  assert_null(kiln_graph_add_all(graph, additions, 4, &added));
  assert_int_equal(added, 4);
  assert_null(nodes[2]);
  uint32_t count = 0;
  assert_null(kiln_graph_nodes(graph, 0, NULL, &count));
  assert_int_equal(count, 4);
  assert_null(kiln_graph_add_all(graph, NULL, 0, &added));
  assert_int_equal(added, 0);
  kiln_graph_release(graph);
}

// A fault in a graph names its node: by the name that it had when the
// executable was made, or by its number; also when the graph is gone.
static void test_fault_names_its_node(void** state) {
  (void)state;
  static const char* const kNames[] = {"bad \"one\"", NULL};
  for (size_t i = 0; i < 2; i++) {
    graph_kit_t soft;
    graph_kit_open(&soft, true);
    const kiln_argument_t nowhere[] = {kiln_arg_pointer(16), kiln_arg_u32(1),
                                       kiln_arg_u32(1)};
    kiln_graph_t* graph = NULL;
    kiln_graph_exec_t* exec = NULL;
    assert_null(kiln_graph_create(soft.device, &graph));
    kiln_graph_node_t* good =
        graph_kit_add(graph, NULL, kiln_graph_work_launch(soft.launch));
    assert_null(kiln_graph_node_set_name(good, "good"));
    assert_null(kiln_launch_set_all(soft.launch, nowhere, 3));
    kiln_graph_node_t* bad =
        graph_kit_add(graph, good, kiln_graph_work_launch(soft.launch));
    assert_null(kiln_graph_node_set_name(bad, "forgotten"));
    assert_null(kiln_graph_node_set_name(bad, kNames[i]));
    assert_null(kiln_graph_exec_create(graph, NULL, &exec));
    kiln_graph_release(graph);
    assert_null(kiln_graph_exec_launch(exec, soft.stream));
    kiln_status_t status = kiln_stream_synchronize(soft.stream);
    char text[4096];
    kiln_status_format(status, sizeof(text), text, NULL);
    kiln_status_free(status);
    assert_non_null(strstr(text, "load of 4 bytes through a null pointer"));
    assert_non_null(strstr(text, kNames[i] != NULL
                                     ? "in graph node \"bad \"one\"\""
                                     : "in graph node \"1\""));
    kiln_fault_t fault = kiln_fault_default();
    assert_null(kiln_device_fault(soft.device, &fault));
    assert_string_equal(fault.node, kNames[i] != NULL ? kNames[i] : "1");
    kiln_graph_exec_release(exec);
    graph_kit_close(&soft);
  }
}

// A provider that keeps edges has what was added a moment before.
static void test_add_all_in_order(void** state) {
  (void)state;
  graph_kit_t soft;
  graph_kit_open(&soft, true);
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t* nodes[20];
  kiln_graph_addition_t additions[20];
  assert_null(kiln_graph_create(soft.device, &graph));
  kiln_graph_work_t work = kiln_graph_work_launch(soft.launch);
  memset(additions, 0, sizeof(additions));
  for (uint32_t i = 0; i < 20; i++) {
    additions[i].work = &work;
    additions[i].after = nodes;
    additions[i].after_count = i;
    additions[i].out_node = &nodes[i];
  }
  assert_null(kiln_graph_add_all(graph, additions, 20, NULL));
  for (uint32_t i = 0; i < 20; i++) {
    uint32_t count = 0;
    assert_null(kiln_graph_node_before(nodes[i], 0, NULL, &count));
    assert_int_equal(count, i);
  }
  kiln_graph_release(graph);
  graph_kit_close(&soft);
}

static void assert_broken(kiln_status_t status) {
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

// What is in front of the failure stays, with its owners, and nothing behind.
static void test_add_all_fails(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t* nodes[3];
  int told = 0;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_work_t host = kiln_graph_work_host(nothing, NULL);
  host.as.host.owner = graph_kit_owner(&told);
  kiln_graph_work_t kernel = kiln_graph_work_launch(NULL);
  kiln_graph_addition_t additions[] = {{&host, NULL, &nodes[0], 0, 0},
                                       {&kernel, &nodes[0], &nodes[1], 1, 0},
                                       {&host, NULL, &nodes[2], 0, 0}};
  uint32_t added = 9;
  memset(nodes, 0xff, sizeof(nodes));
  REFUSED(kiln_graph_add_all(graph, additions, 3, &added), INVALID_ARGUMENT,
          "a kernel node without a launch");
  assert_int_equal(added, 1);
  assert_non_null(nodes[0]);
  assert_null(nodes[1]);
  assert_null(nodes[2]);
  additions[0].reserved = 1;
  REFUSED(kiln_graph_add_all(graph, additions, 1, NULL), INVALID_ARGUMENT,
          "reserved");
  additions[0].reserved = 0;
  additions[0].work = NULL;
  assert_broken(kiln_graph_add_all(graph, additions, 1, NULL));
  assert_broken(kiln_graph_add_all(NULL, additions, 3, &added));
  assert_int_equal(added, 0);
  assert_broken(kiln_graph_add_all(graph, NULL, 3, NULL));
  uint32_t count = 0;
  assert_null(kiln_graph_nodes(graph, 0, NULL, &count));
  assert_int_equal(count, 1);
  assert_int_equal(told, 0);
  kiln_graph_release(graph);
  assert_int_equal(told, 1);
}

// ---- Nodes that change ----

// What the driver refuses has recorded nothing, and will not.
static void test_a_record_that_is_refused(void** state) {
  (void)state;
  kiln_event_options_t timed = kiln_event_options_default();
  timed.timing = KILN_SWITCH_ON;
  kiln_graph_t* graph = NULL;
  kiln_event_t* event = NULL;
  uint64_t elapsed = 0;
  assert_null(kiln_graph_create(kit.device, &graph));
  assert_null(kiln_event_create(kit.device, &timed, &event));
  kiln_graph_work_t work = kiln_graph_work_record(event);
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_FROM,
                             KILN_CU_ERROR_UNKNOWN);
  kiln_status_t status = kiln_graph_add(graph, NULL, 0, &work, NULL);
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  assert_non_null(status);
  kiln_status_free(status);
  REFUSED(kiln_event_elapsed(event, event, &elapsed), INVALID_STATE,
          "was never recorded");
  (void)graph_kit_add(graph, NULL, work);
  assert_null(kiln_event_elapsed(event, event, &elapsed));
  kiln_event_release(event);
  kiln_graph_release(graph);
}

static char long_name[600];
static kiln_cu_function_t named;  // what nodes are said to run

static kiln_cu_result_t name_it(const char** name,
                                kiln_cu_function_t function) {
  *name = (uintptr_t)function == 0x7770 ? long_name : "other";
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t function_of(kiln_cu_graph_node_t node,
                                    kiln_cu_kernel_node_t* params) {
  (void)node;
  memset(params, 0, sizeof(*params));
  params->function = named;
  return KILN_CU_SUCCESS;
}

static void tweak_names(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuFuncGetName, name_it);
  KILNI_CUDA_SET(table, cuGraphKernelNodeGetParams, function_of);
}

// As those of C++ templates are.
static void test_a_kernel_with_a_long_name(void** state) {
  (void)state;
  memset(long_name, 'k', sizeof(long_name) - 1);
  named = (kiln_cu_function_t)(uintptr_t)0x7770;
  graph_kit_open_with(&kit, false, tweak_names);
  kiln_graph_t* graph = NULL;
  kiln_graph_node_info_t info;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_node_t* node =
      graph_kit_add(graph, NULL, kiln_graph_work_launch(kit.launch));
  assert_null(kiln_graph_node_describe(node, &info));
  assert_string_equal(info.kernel, long_name);
  // Another one is asked for its name again.
  kiln_graph_work_t work = kiln_graph_work_launch(kit.launch);
  named = (kiln_cu_function_t)(uintptr_t)0x7780;
  assert_null(kiln_graph_node_set(node, &work));
  assert_null(kiln_graph_node_describe(node, &info));
  assert_string_equal(info.kernel, "other");
  kiln_graph_release(graph);
  graph_kit_close(&kit);
}

static void test_kinds_stay(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_node_t* node = graph_kit_add(graph, NULL, kiln_graph_work_empty());
  kiln_graph_node_t* fill =
      graph_kit_add(graph, NULL, kiln_graph_work_fill(kit.buffer, 0, 1, 0, 4));
  kiln_graph_work_t work = kiln_graph_work_empty();
  REFUSED(kiln_graph_node_set(node, &work), INVALID_ARGUMENT,
          "the work of the empty node \"0\" cannot be changed");
  REFUSED(kiln_graph_node_set(fill, &work), INVALID_ARGUMENT,
          "the fill node \"1\" cannot become an empty node");
  kiln_graph_release(graph);
}

// ---- Views ----

static void test_views(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_t* child = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  assert_null(kiln_graph_create(kit.device, &child));
  kiln_graph_node_t* node =
      graph_kit_add(graph, NULL, kiln_graph_work_child(child));
  assert_int_equal(kiln_graph_node_inner_count(node), 1);
  kiln_graph_t* view = NULL;
  kiln_graph_t* again = NULL;
  assert_null(kiln_graph_node_inner(node, 0, &view));
  assert_null(kiln_graph_node_inner(node, 0, &again));
  assert_ptr_equal(view, again);
  assert_ptr_equal(kiln_graph_inside(view), node);
  assert_null(kiln_graph_inside(graph));
  REFUSED(kiln_graph_node_inner(node, 1, &again), INVALID_ARGUMENT,
          "no known inner graph 1");
  assert_null(again);
  kiln_graph_node_t* inner =
      graph_kit_add(view, NULL, kiln_graph_work_launch(kit.launch));
  kiln_graph_exec_t* exec = NULL;
  REFUSED(kiln_graph_exec_create(view, NULL, &exec), INVALID_ARGUMENT,
          "runs as a part");
  assert_null(kiln_graph_node_remove(node));
  assert_null(kiln_graph_handle(view));
  assert_false(kiln_graph_node_is_valid(inner));
  kiln_graph_work_t work = kiln_graph_work_empty();
  REFUSED(kiln_graph_add(view, NULL, 0, &work, NULL), INVALID_STATE,
          "the node around this graph was removed");
  uint32_t count;
  REFUSED(kiln_graph_nodes(view, 0, NULL, &count), INVALID_STATE, "removed");
  REFUSED(kiln_graph_clone(view, &again), INVALID_STATE, "removed");
  // A view keeps the graph around it.
  kiln_graph_release(graph);
  kiln_graph_release(view);
  assert_int_equal(kiln_graph_node_inner_count(node), 1);
  kiln_graph_release(view);
  kiln_graph_release(child);
}

// ---- Executables ----

static void test_options(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  options.free_on_launch = KILN_SWITCH_ON;
  options.use_priority = KILN_SWITCH_ON;
  options.upload = kit.stream;
  assert_null(kiln_graph_exec_create(graph, &options, &exec));
  assert_ptr_equal(kiln_graph_exec_device(exec), kit.device);
  assert_non_null(kiln_graph_exec_handle(exec));
  assert_null(kiln_graph_exec_upload(exec, kit.stream));
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  kiln_graph_exec_release(exec);
  options.device_launch = KILN_SWITCH_ON;
  REFUSED(kiln_graph_exec_create(graph, &options, &exec), INVALID_ARGUMENT,
          "exclude each other");
  assert_null(exec);
  kiln_graph_release(graph);
}

static void test_exec_refuses(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_create(kit.device, &graph));
  kiln_graph_node_t* empty =
      graph_kit_add(graph, NULL, kiln_graph_work_empty());
  kiln_graph_node_t* fill =
      graph_kit_add(graph, NULL, kiln_graph_work_fill(kit.buffer, 0, 1, 0, 4));
  assert_null(kiln_graph_exec_create(graph, NULL, &exec));
  kiln_graph_work_t work = kiln_graph_work_empty();
  REFUSED(kiln_graph_exec_set(exec, empty, &work), INVALID_ARGUMENT,
          "cannot be changed");
  REFUSED(kiln_graph_exec_enable(exec, empty, false), INVALID_ARGUMENT,
          "the empty node \"0\" cannot be switched off");
  work = kiln_graph_work_fill(kit.buffer, 0, 1, 0, 4);
  work.as.fill.rows = 2;
  REFUSED(kiln_graph_exec_set(exec, fill, &work), INVALID_ARGUMENT,
          "one-dimensional work only");
  assert_null(kiln_graph_exec_enable(exec, fill, false));
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
}

// ---- Many nodes of an executable in one call ----

// Kernel nodes of one launch, and an executable of them. one-thread
typedef struct row_t {
  kiln_graph_t* graph;
  kiln_graph_node_t* nodes[4];
  kiln_graph_exec_t* exec;
  kiln_graph_work_t work;
} row_t;

static row_t row_of(const graph_kit_t* of) {
  row_t row = {NULL, {NULL}, NULL, kiln_graph_work_launch(of->launch)};
  assert_null(kiln_graph_create(of->device, &row.graph));
  for (int i = 0; i < 4; i++) {
    row.nodes[i] =
        graph_kit_add(row.graph, i > 0 ? row.nodes[i - 1] : NULL, row.work);
  }
  assert_null(kiln_graph_exec_create(row.graph, NULL, &row.exec));
  return row;
}

static void end_row(const row_t* row) {
  kiln_graph_exec_release(row->exec);
  kiln_graph_release(row->graph);
}

// Each node has the arguments that it was given, and the launch the last ones.
static void test_set_all(void** state) {
  (void)state;
  graph_kit_t soft;
  graph_kit_open(&soft, true);
  row_t row = row_of(&soft);
  kiln_argument_t given[4][2];
  kiln_graph_change_t changes[4];
  for (uint32_t i = 0; i < 4; i++) {
    given[i][0] = kiln_arg_u32(10);
    given[i][1] = kiln_arg_u32(i + 1);
    kiln_graph_change_t change = {row.nodes[i], &row.work, given[i], 1, 2};
    changes[i] = change;
  }
  uint32_t changed = 9;
  assert_null(kiln_graph_exec_set_all(row.exec, changes, 4, &changed));
  assert_int_equal(changed, 4);
  uint32_t value = 0;
  assert_null(kiln_buffer_write(soft.buffer, 0, 4, &value));
  assert_null(kiln_graph_exec_launch(row.exec, soft.stream));
  assert_null(kiln_launch_run(soft.launch, soft.stream));
  assert_null(kiln_stream_synchronize(soft.stream));
  assert_null(kiln_buffer_read(soft.buffer, 0, 4, &value));
  assert_int_equal(value, 12344);
  end_row(&row);
  graph_kit_close(&soft);
}

// The context is asked for once, and each node costs the driver's call.
static void test_set_all_calls(void** state) {
  (void)state;
  row_t row = row_of(&kit);
  const kiln_argument_t given = kiln_arg_u32(5);
  kiln_graph_change_t change = {row.nodes[0], &row.work, &given, 2, 1};
  kiln_graph_change_t changes[] = {change, change, change, change};
  for (int i = 0; i < 4; i++) changes[i].node = row.nodes[i];
  assert_null(kiln_graph_exec_set_all(row.exec, changes, 4, NULL));
  uint64_t before = kit.watch.total_blocks;
  uint64_t calls[2];
  for (uint32_t i = 0; i < 2; i++) {
    kilni_table_cuda_fault_arm(&kit.table, 0, KILNI_FAULT_ONCE, 0);
    assert_null(kiln_graph_exec_set_all(row.exec, changes, 2 + 2 * i, NULL));
    calls[i] = kilni_table_cuda_fault_disarm(&kit.table);
  }
  assert_int_equal(calls[1] - calls[0], 2);
  assert_int_equal(kit.watch.total_blocks, before);
  uint32_t changed = 9;
  assert_null(kiln_graph_exec_set_all(row.exec, NULL, 0, &changed));
  assert_int_equal(changed, 0);
  end_row(&row);
}

static void test_set_all_fails(void** state) {
  (void)state;
  row_t row = row_of(&kit);
  const kiln_argument_t good = kiln_arg_u32(5);
  const kiln_argument_t wrong = kiln_arg_f64(5);
  kiln_graph_work_t fill = kiln_graph_work_fill(kit.buffer, 0, 4, 7, 4);
  kiln_graph_change_t changes[] = {{row.nodes[0], &row.work, &good, 2, 1},
                                   {row.nodes[1], &row.work, &good, 1, 1},
                                   {row.nodes[2], &row.work, &wrong, 2, 1},
                                   {row.nodes[3], &row.work, &good, 2, 1}};
  uint32_t changed = 9;
#define BREAKS(at, text)                                             \
  do {                                                               \
    REFUSED(kiln_graph_exec_set_all(row.exec, changes, 4, &changed), \
            INVALID_ARGUMENT, text);                                 \
    assert_int_equal(changed, at);                                   \
  } while (0)
  BREAKS(2, "change 2 of 4");
  changes[1].first_argument = 3;
  BREAKS(1, "no parameter 3");
  changes[1].first_argument = UINT32_MAX;
  BREAKS(1, "no parameter 4294967295");
  changes[1].arguments = NULL;
  assert_broken(kiln_graph_exec_set_all(row.exec, changes, 4, &changed));
  changes[1].arguments = &good;
  changes[1].work = &fill;
  BREAKS(1, "arguments for a fill node");
  changes[1].argument_count = 0;
  BREAKS(1, "cannot become a fill node");
  changes[1].work = NULL;
  assert_broken(kiln_graph_exec_set_all(row.exec, changes, 4, &changed));
  changes[0].node = NULL;
  assert_broken(kiln_graph_exec_set_all(row.exec, changes, 4, &changed));
  assert_int_equal(changed, 0);
#undef BREAKS
  assert_broken(kiln_graph_exec_set_all(NULL, changes, 4, &changed));
  assert_broken(kiln_graph_exec_set_all(row.exec, NULL, 4, NULL));
  end_row(&row);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      T(test_every_kind),
      T(test_removed),
      T(test_names),
      T(test_refused_copies),
      T(test_refused_work),
      T(test_refused_launches),
      T(test_attributes),
      T(test_other_graphs),
      T(test_many_before),
      T(test_kinds_stay),
      T(test_views),
      T(test_options),
      T(test_exec_refuses),
      T(test_add_all),
      T(test_add_all_fails),
      cmocka_unit_test(test_fault_names_its_node),
      cmocka_unit_test(test_add_all_in_order),
      T(test_set_all_calls),
      cmocka_unit_test(test_set_all),
      T(test_set_all_fails),
      T(test_a_copy_over_itself),
      T(test_a_record_that_is_refused),
      cmocka_unit_test(test_a_kernel_with_a_long_name),
#undef T
  };
  return cmocka_run_group_tests_name("graph_make", tests, NULL, NULL);
}
