// SPDX-License-Identifier: Apache-2.0
//
// graph: what keeps what alive, over the null provider, which counts who refers
// to which user object and tells at once when nobody does.
#include "graph_kit.h"

static graph_kit_t kit;
static kiln_graph_t* graph;
static int told[4];  // how often the owner of each was

static int setup(void** state) {
  (void)state;
  memset(told, 0, sizeof(told));
  graph_kit_open(&kit, false);
  return kiln_graph_create(kit.device, &graph) == NULL ? 0 : 1;
}

static int teardown(void** state) {
  (void)state;
  kiln_graph_release(graph);
  graph_kit_close(&kit);
  return 0;
}

// A RECORD node of an event that only the graph keeps.
static kiln_graph_node_t* add_event(kiln_graph_t* to, int* count) {
  kiln_event_t* event = graph_kit_event(&kit, count);
  kiln_graph_node_t* node =
      graph_kit_add(to, NULL, kiln_graph_work_record(event));
  kiln_event_release(event);
  return node;
}

static kiln_graph_exec_t* make_exec(kiln_graph_t* of) {
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_exec_create(of, NULL, &exec));
  return exec;
}

static void set_event(kiln_graph_node_t* node, int* count) {
  kiln_event_t* event = graph_kit_event(&kit, count);
  kiln_graph_work_t work = kiln_graph_work_record(event);
  assert_null(kiln_graph_node_set(node, &work));
  kiln_event_release(event);
}

static void exec_set_event(kiln_graph_exec_t* exec, kiln_graph_node_t* node,
                           int* count) {
  kiln_event_t* event = graph_kit_event(&kit, count);
  kiln_graph_work_t work = kiln_graph_work_record(event);
  assert_null(kiln_graph_exec_set(exec, node, &work));
  kiln_event_release(event);
}

static void test_a_removed_node_lets_go(void** state) {
  (void)state;
  kiln_graph_node_t* first = add_event(graph, &told[0]);
  (void)add_event(graph, &told[1]);
  assert_int_equal(told[0], 0);
  assert_null(kiln_graph_node_remove(first));
  assert_int_equal(told[0], 1);
  assert_int_equal(told[1], 0);
  kiln_graph_release(graph);
  assert_int_equal(told[1], 1);
  assert_null(kiln_graph_create(kit.device, &graph));
}

static void test_an_executable_keeps(void** state) {
  (void)state;
  kiln_graph_node_t* first = add_event(graph, &told[0]);
  kiln_graph_node_t* second = add_event(graph, &told[1]);
  kiln_graph_exec_t* exec = make_exec(graph);
  assert_int_equal(kilni_graph_counts(graph).sealed, 1);
  // What comes now is none of the executable's.
  kiln_graph_node_t* third = add_event(graph, &told[2]);
  assert_null(kiln_graph_node_remove(third));
  assert_int_equal(told[2], 1);
  assert_null(kiln_graph_node_remove(first));
  assert_null(kiln_graph_node_remove(second));
  assert_int_equal(told[0] + told[1], 0);
  assert_int_equal(kilni_graph_counts(graph).sealed, 0);
  kiln_graph_exec_release(exec);
  assert_int_equal(told[0], 1);
  assert_int_equal(told[1], 1);
}

static void test_an_executable_outlives_its_graph(void** state) {
  (void)state;
  (void)add_event(graph, &told[0]);
  kiln_graph_exec_t* exec = make_exec(graph);
  kiln_graph_release(graph);
  assert_int_equal(told[0], 0);
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  kiln_graph_exec_release(exec);
  assert_int_equal(told[0], 1);
  assert_null(kiln_graph_create(kit.device, &graph));
}

static void test_a_clone_keeps(void** state) {
  (void)state;
  kiln_graph_node_t* node = add_event(graph, &told[0]);
  kiln_graph_t* clone = NULL;
  assert_null(kiln_graph_clone(graph, &clone));
  assert_null(kiln_graph_node_remove(node));
  assert_int_equal(told[0], 0);
  kiln_graph_release(clone);
  assert_int_equal(told[0], 1);
}

static void test_other_work(void** state) {
  (void)state;
  kiln_graph_node_t* node = add_event(graph, &told[0]);
  set_event(node, &told[1]);
  assert_int_equal(told[0], 1);
  kiln_graph_exec_t* exec = make_exec(graph);
  set_event(node, &told[2]);
  assert_int_equal(told[1], 0);  // the executable's
  kiln_graph_exec_release(exec);
  assert_int_equal(told[1], 1);
  assert_int_equal(told[2], 0);
  assert_null(kiln_graph_node_remove(node));
  assert_int_equal(told[2], 1);
}

static void test_other_work_that_fails(void** state) {
  (void)state;
  kiln_graph_node_t* node = add_event(graph, &told[0]);
  kiln_event_t* event = graph_kit_event(&kit, &told[1]);
  kiln_graph_work_t work = kiln_graph_work_record(event);
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_INVALID_VALUE);
  kiln_status_t status = kiln_graph_node_set(node, &work);
  assert_int_equal(kilni_table_cuda_fault_disarm(&kit.table), 1);
  assert_false(kiln_status_is_ok(status));
  kiln_status_free(status);
  kiln_event_release(event);
  assert_int_equal(told[1], 1);
  assert_int_equal(told[0], 0);
  assert_null(kiln_graph_node_remove(node));
  assert_int_equal(told[0], 1);
}

static void test_nodes_of_executables(void** state) {
  (void)state;
  kiln_graph_node_t* node = add_event(graph, &told[0]);
  kiln_graph_exec_t* one = make_exec(graph);
  kiln_graph_exec_t* two = make_exec(graph);
  exec_set_event(one, node, &told[1]);
  exec_set_event(two, node, &told[2]);
  exec_set_event(one, node, &told[3]);
  // Launches under way may use any of them.
  assert_int_equal(told[1] + told[2] + told[3], 0);
  kiln_graph_exec_release(one);
  assert_int_equal(told[1], 1);
  assert_int_equal(told[3], 1);
  assert_int_equal(told[2], 0);
  kiln_graph_exec_release(two);
  assert_int_equal(told[2], 1);
  assert_int_equal(told[0], 0);
}

static void test_a_rejected_node_rolls_back(void** state) {
  (void)state;
  kiln_graph_node_t* node = add_event(graph, &told[0]);
  kiln_graph_exec_t* exec = make_exec(graph);
  kiln_event_t* event = graph_kit_event(&kit, &told[1]);
  kiln_graph_work_t work = kiln_graph_work_record(event);
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_INVALID_VALUE);
  kiln_status_t status = kiln_graph_exec_set(exec, node, &work);
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  assert_false(kiln_status_is_ok(status));
  kiln_status_free(status);
  kiln_event_release(event);
  assert_int_equal(told[1], 1);
  kiln_graph_exec_release(exec);
}

static void test_a_whole_update(void** state) {
  (void)state;
  kiln_graph_node_t* node = add_event(graph, &told[0]);
  kiln_graph_exec_t* exec = make_exec(graph);
  exec_set_event(exec, node, &told[1]);
  kiln_graph_t* next = NULL;
  assert_null(kiln_graph_create(kit.device, &next));
  (void)add_event(next, &told[2]);
  // Refused: nothing changes.
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  kiln_graph_update_t update;
  kiln_status_t status = kiln_graph_exec_update(exec, next, &update);
  assert_string_equal(kilni_table_cuda_fault_hit(&kit.table),
                      "cuGraphExecUpdate");
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  assert_false(kiln_status_is_ok(status));
  kiln_status_free(status);
  assert_int_equal(told[1], 0);
  assert_null(kiln_graph_exec_update(exec, next, &update));
  assert_int_equal(update.reason, KILN_GRAPH_UPDATE_DONE);
  assert_int_equal(told[1], 1);
  assert_int_equal(told[2], 0);
  // What it is given later goes with the next whole update.
  kiln_graph_release(next);
  assert_int_equal(told[2], 0);
  assert_null(kiln_graph_exec_update(exec, graph, NULL));
  assert_int_equal(told[2], 1);
  kiln_graph_exec_release(exec);
  assert_int_equal(told[0], 0);
}

static void test_host_data(void** state) {
  (void)state;
  int32_t data = 5;
  kiln_graph_work_t work = kiln_graph_work_host(graph_kit_told, &data);
  work.as.host.copied_bytes = sizeof(data);
  work.as.host.owner = graph_kit_owner(&told[0]);
  kiln_graph_node_t* node = graph_kit_add(graph, NULL, work);
  work.as.host.owner = graph_kit_owner(&told[1]);
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_INVALID_VALUE);
  kiln_status_t status = kiln_graph_node_set(node, &work);
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  assert_false(kiln_status_is_ok(status));
  kiln_status_free(status);
  assert_int_equal(told[0] + told[1], 0);  // not taken
  assert_null(kiln_graph_node_set(node, &work));
  assert_int_equal(told[0], 1);
  assert_null(kiln_graph_node_remove(node));
  assert_int_equal(told[1], 1);
}

static void test_children(void** state) {
  (void)state;
  kiln_graph_t* child = NULL;
  assert_null(kiln_graph_create(kit.device, &child));
  (void)add_event(child, &told[0]);
  kiln_graph_node_t* node =
      graph_kit_add(graph, NULL, kiln_graph_work_child(child));
  assert_int_equal(kilni_graph_counts(child).sealed, 1);
  kiln_graph_t* inner = NULL;
  assert_null(kiln_graph_node_inner(node, 0, &inner));
  (void)add_event(inner, &told[1]);
  assert_null(kiln_graph_node_remove(node));
  assert_int_equal(told[1], 1);
  kiln_graph_release(inner);
  kiln_graph_release(child);
  assert_int_equal(told[0], 1);
}

// What an executable's node is given is a copy of the child: it keeps what the
// child had, whatever becomes of that.
static void test_a_child_of_an_executable(void** state) {
  (void)state;
  kiln_graph_t* first = NULL;
  kiln_graph_t* second = NULL;
  assert_null(kiln_graph_create(kit.device, &first));
  assert_null(kiln_graph_create(kit.device, &second));
  kiln_graph_node_t* inner = add_event(second, &told[0]);
  kiln_graph_node_t* node =
      graph_kit_add(graph, NULL, kiln_graph_work_child(first));
  kiln_graph_exec_t* exec = make_exec(graph);
  kiln_graph_work_t work = kiln_graph_work_child(second);
  assert_null(kiln_graph_exec_set(exec, node, &work));
  assert_null(kiln_graph_node_remove(inner));
  assert_int_equal(told[0], 0);
  // What comes later is none of the executable's.
  (void)add_event(second, &told[1]);
  kiln_graph_release(second);
  assert_int_equal(told[0], 0);
  assert_int_equal(told[1], 1);
  kiln_graph_exec_release(exec);
  assert_int_equal(told[0], 1);
  kiln_graph_release(first);
}

static void test_kernels_and_buffers(void** state) {
  (void)state;
  kiln_owner_t owner = graph_kit_owner(&told[0]);
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_buffer_adopt(kit.device, kiln_buffer_address(kit.buffer), 64,
                                &owner, &buffer));
  assert_null(kiln_launch_set(kit.launch, 0, kiln_arg_buffer(buffer)));
  kiln_graph_node_t* node =
      graph_kit_add(graph, NULL, kiln_graph_work_launch(kit.launch));
  for (int i = 0; i < 9; i++) {
    assert_null(kiln_launch_set(kit.launch, 1, kiln_arg_u32((uint32_t)i)));
    (void)graph_kit_add(graph, NULL, kiln_graph_work_launch(kit.launch));
  }
  // Ten nodes of one launch keep their objects once.
  assert_int_equal(kilni_graph_counts(graph).live, 1);
  kiln_buffer_release(buffer);
  assert_null(kiln_launch_set(kit.launch, 0, kiln_arg_buffer(kit.buffer)));
  (void)graph_kit_add(graph, NULL, kiln_graph_work_launch(kit.launch));
  assert_int_equal(kilni_graph_counts(graph).live, 2);
  assert_null(kiln_graph_node_remove(node));
  assert_int_equal(told[0], 0);
  kiln_graph_release(graph);
  assert_int_equal(told[0], 1);
  assert_null(kiln_graph_create(kit.device, &graph));
}

// ---- Memory ----

static void test_adding_allocates_rarely(void** state) {
  (void)state;
  kiln_graph_node_t* last = NULL;
  kiln_graph_work_t work = kiln_graph_work_launch(kit.launch);
  uint64_t before = kit.watch.total_blocks;
  for (int i = 0; i < 1000; i++) {
    assert_null(kiln_graph_add(graph, &last, last != NULL, &work, &last));
  }
  // Chunks of nodes and their list, one segment and its chunk.
  assert_true(kit.watch.total_blocks - before <= 16);
  kiln_graph_exec_t* exec = make_exec(graph);
  before = kit.watch.total_blocks;
  kilni_table_cuda_fault_arm(&kit.table, 0, KILNI_FAULT_ONCE, 0);
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  assert_int_equal(kilni_table_cuda_fault_disarm(&kit.table), 1);
  assert_int_equal(kit.watch.total_blocks, before);
  kiln_graph_exec_release(exec);
}

static void test_changing_does_not_grow(void** state) {
  (void)state;
  kiln_graph_node_t* node =
      graph_kit_add(graph, NULL, kiln_graph_work_launch(kit.launch));
  kiln_graph_exec_t* exec = make_exec(graph);
  kiln_buffer_t* other = NULL;
  assert_null(kiln_buffer_create(kit.device, 64, NULL, &other));
  kiln_graph_work_t work = kiln_graph_work_launch(kit.launch);
  uint64_t blocks = 0;
  for (int i = 0; i < 2000; i++) {
    assert_null(kiln_launch_set(
        kit.launch, 0, kiln_arg_buffer(i % 2 == 0 ? other : kit.buffer)));
    assert_null(kiln_graph_node_set(node, &work));
    assert_null(kiln_graph_exec_set(exec, node, &work));
    if (i == 100) blocks = kit.watch.total_blocks;
  }
  assert_int_equal(kit.watch.total_blocks, blocks);
  kiln_buffer_release(other);
  kiln_graph_exec_release(exec);
}

// ---- The thread ----

// What is let go on the thread, and what tells that. one-thread
typedef struct late_t {
  kilni_device_late_entry_t entry;
  kiln_device_t* device;
  kilni_base_mutex_t lock;
  kilni_base_cond_t changed;
  bool done;
  uint64_t thread;
} late_t;

static void let_go(kilni_device_late_entry_t* entry) {
  late_t* late = (late_t*)entry;
  kiln_device_release(late->device);
  kilni_base_mutex_lock(&late->lock);
  late->thread = kilni_base_thread_self();
  late->done = true;
  kilni_base_cond_broadcast(&late->changed);
  kilni_base_mutex_unlock(&late->lock);
}

static void push(late_t* late, kiln_device_t* device) {
  memset(late, 0, sizeof(*late));
  late->entry.let_go = let_go;
  late->device = device;
  kilni_device_late_t* thread = NULL;
  assert_null(kilni_device_late_need(device, &thread));
  assert_null(kilni_base_mutex_init(&late->lock));
  assert_null(kilni_base_cond_init(&late->changed));
  kilni_device_late_push(thread, &late->entry);
  kilni_base_mutex_lock(&late->lock);
  while (!late->done) kilni_base_cond_wait(&late->changed, &late->lock);
  kilni_base_mutex_unlock(&late->lock);
  kilni_base_cond_deinit(&late->changed);
  kilni_base_mutex_deinit(&late->lock);
}

static void test_a_thread_lets_go(void** state) {
  (void)state;
  late_t late;
  kiln_device_retain(kit.device);
  push(&late, kit.device);
  assert_true(late.thread != kilni_base_thread_self());
}

// The device ends on the thread that it would wait for.
static void test_the_last_release_there(void** state) {
  (void)state;
  late_t late;
  kiln_device_t* device = NULL;
  assert_null(kiln_runtime_open_device(kit.runtime, "cuda:0", &device));
  push(&late, device);
  assert_true(late.thread != kilni_base_thread_self());
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      T(test_a_removed_node_lets_go),
      T(test_an_executable_keeps),
      T(test_an_executable_outlives_its_graph),
      T(test_a_clone_keeps),
      T(test_other_work),
      T(test_other_work_that_fails),
      T(test_nodes_of_executables),
      T(test_a_rejected_node_rolls_back),
      T(test_a_whole_update),
      T(test_host_data),
      T(test_children),
      T(test_a_child_of_an_executable),
      T(test_kernels_and_buffers),
      T(test_adding_allocates_rarely),
      T(test_changing_does_not_grow),
      T(test_a_thread_lets_go),
      T(test_the_last_release_there),
#undef T
  };
  return cmocka_run_group_tests_name("graph_owners", tests, NULL, NULL);
}
