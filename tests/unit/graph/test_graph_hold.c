// SPDX-License-Identifier: Apache-2.0
//
// graph: what an executable holds outlives its launches, over the null provider
// with work that ends when the test says so; and what a host program copies by
// a handle keeps its owners.
#include "graph_kit.h"

enum { CALLBACKS = 8 };

// What the driver was asked, and what it is to answer. one-thread
typedef struct plan_t {
  bool runs;  // what was launched has not ended
  kiln_cu_stream_t captured;
  kiln_cu_host_fn_t fns[CALLBACKS];
  void* users[CALLBACKS];
  uint32_t callbacks;
  uint32_t callbacks_at_once;
  uint32_t records;
  uint32_t waits;
  uint32_t uploads;
  uint32_t objects;
  kiln_cu_user_object_t object;  // the last one made
  uint32_t launches;
  bool at_once;  // calls back inside the call, and the hold ends there
  bool refuse;   // launches
  bool fault;    // the device is lost with the next query
} plan_t;

static plan_t plan;
static graph_kit_t kit;
static kiln_graph_t* graph;
static int told[4];
static kiln_cuda_table_t under;

static kiln_cu_result_t query(kiln_cu_stream_t stream) {
  assert_ptr_not_equal(stream, plan.captured);
  if (plan.fault) return KILN_CU_ERROR_ILLEGAL_ADDRESS;
  return plan.runs ? KILN_CU_ERROR_NOT_READY : KILN_CU_SUCCESS;
}

static kiln_cu_result_t record(kiln_cu_event_t event, kiln_cu_stream_t stream) {
  plan.records++;
  assert_ptr_not_equal(stream, plan.captured);
  return under.cuEventRecord(event, stream);
}

static kiln_cu_result_t wait(kiln_cu_stream_t stream, kiln_cu_event_t event,
                             unsigned int flags) {
  plan.waits++;
  return under.cuStreamWaitEvent(stream, event, flags);
}

static kiln_cu_result_t upload(kiln_cu_graph_exec_t exec,
                               kiln_cu_stream_t stream) {
  plan.uploads++;
  return under.cuGraphUpload(exec, stream);
}

static kiln_cu_result_t call_back(kiln_cu_stream_t stream, kiln_cu_host_fn_t fn,
                                  void* user) {
  (void)stream;
  if (plan.at_once) {
    plan.callbacks_at_once++;
    fn(user);
    kilni_device_late_settle(atomic_load(&kit.device->late));
    return KILN_CU_SUCCESS;
  }
  if (!plan.runs) {
    fn(user);
    return KILN_CU_SUCCESS;
  }
  assert_true(plan.callbacks < CALLBACKS);
  plan.fns[plan.callbacks] = fn;
  plan.users[plan.callbacks++] = user;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t make_object(kiln_cu_user_object_t* object, void* user,
                                    kiln_cu_host_fn_t destroy,
                                    unsigned int references,
                                    unsigned int flags) {
  plan.objects++;
  kiln_cu_result_t result =
      under.cuUserObjectCreate(object, user, destroy, references, flags);
  plan.object = *object;
  return result;
}

static kiln_cu_result_t launch(kiln_cu_graph_exec_t exec,
                               kiln_cu_stream_t stream) {
  (void)exec;
  (void)stream;
  plan.launches++;
  return plan.refuse ? KILN_CU_ERROR_INVALID_VALUE : KILN_CU_SUCCESS;
}

static kiln_cu_result_t is_capturing(kiln_cu_stream_t stream,
                                     kiln_cu_capture_status_t* status) {
  *status = stream == plan.captured ? KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE
                                    : KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  return KILN_CU_SUCCESS;
}

static void tweak(kiln_cuda_table_t* table) {
  under = *table;
  KILNI_CUDA_SET(table, cuStreamQuery, query);
  KILNI_CUDA_SET(table, cuEventRecord, record);
  KILNI_CUDA_SET(table, cuStreamWaitEvent, wait);
  KILNI_CUDA_SET(table, cuGraphUpload, upload);
  KILNI_CUDA_SET(table, cuLaunchHostFunc, call_back);
  KILNI_CUDA_SET(table, cuUserObjectCreate, make_object);
  KILNI_CUDA_SET(table, cuGraphLaunch, launch);
  KILNI_CUDA_SET(table, cuStreamIsCapturing, is_capturing);
}

static int setup(void** state) {
  (void)state;
  memset(told, 0, sizeof(told));
  memset(&plan, 0, sizeof(plan));
  graph_kit_open_with(&kit, false, tweak);
  return kiln_graph_create(kit.device, &graph) == NULL ? 0 : 1;
}

static int teardown(void** state) {
  (void)state;
  kiln_graph_release(graph);
  graph_kit_close(&kit);
  return 0;
}

static kiln_graph_node_t* add_event(kiln_graph_t* to, int* count) {
  kiln_event_t* event = graph_kit_event(&kit, count);
  kiln_graph_node_t* node =
      graph_kit_add(to, NULL, kiln_graph_work_record(event));
  kiln_event_release(event);
  return node;
}

static kiln_graph_exec_t* make_exec(void) {
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_exec_create(graph, NULL, &exec));
  return exec;
}

static kiln_stream_t* make_stream(void) {
  kiln_stream_t* stream = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &stream));
  return stream;
}

// An executable that alone keeps the owner told[0].
static kiln_graph_exec_t* lone_exec(void) {
  kiln_graph_node_t* node = add_event(graph, &told[0]);
  kiln_graph_exec_t* exec = make_exec();
  assert_null(kiln_graph_node_remove(node));
  assert_int_equal(told[0], 0);
  return exec;
}

static void settle(void) {
  kilni_device_late_settle(atomic_load(&kit.device->late));
}

static void all_ends(void) {
  plan.runs = false;
  for (uint32_t i = 0; i < plan.callbacks; i++) plan.fns[i](plan.users[i]);
  plan.callbacks = 0;
  settle();
}

static void test_a_launch_under_way(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  plan.runs = true;
  kiln_graph_exec_release(exec);
  settle();
  assert_int_equal(told[0], 0);
  assert_int_equal(plan.callbacks, 1);
  all_ends();
  assert_int_equal(told[0], 1);
  assert_int_equal(plan.uploads, 0);
  // An executable of Kiln's costs the driver no user object.
  assert_int_equal(plan.objects, 0);
}

static void test_one_that_never_ran(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  plan.runs = true;
  kiln_graph_exec_release(exec);
  assert_int_equal(told[0], 1);
  assert_int_equal(plan.records + plan.callbacks, 0);
}

static void test_a_launch_that_fails(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  plan.refuse = true;
  kiln_status_t status = kiln_graph_exec_launch(exec, kit.stream);
  assert_false(kiln_status_is_ok(status));
  kiln_status_free(status);
  kiln_graph_exec_release(exec);
  assert_int_equal(told[0], 1);
}

static void test_three_streams(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  kiln_stream_t* streams[] = {make_stream(), make_stream(), kit.stream};
  for (int i = 0; i < 9; i++) {
    assert_null(kiln_graph_exec_launch(exec, streams[i % 3]));
  }
  plan.runs = true;
  kiln_graph_exec_release(exec);
  assert_int_equal(plan.records, 3);
  assert_int_equal(plan.waits, 3);
  assert_int_equal(plan.callbacks, 1);
  assert_int_equal(plan.uploads, 0);
  assert_int_equal(told[0], 0);
  kiln_stream_release(streams[0]);
  kiln_stream_release(streams[1]);
  all_ends();
  assert_int_equal(told[0], 1);
}

static void test_many_streams(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  for (int i = 0; i < 7; i++) {
    kiln_stream_t* stream = make_stream();
    assert_null(kiln_graph_exec_launch(exec, stream));
    kiln_stream_release(stream);
  }
  plan.runs = true;
  kiln_graph_exec_release(exec);
  assert_int_equal(plan.uploads, 1);
  assert_int_equal(told[0], 0);
  all_ends();
  assert_int_equal(told[0], 1);
}

// The stream's last reference goes before the executable's.
static void test_a_stream_that_has_gone(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  kiln_stream_t* stream = make_stream();
  assert_null(kiln_graph_exec_launch(exec, stream));
  kiln_stream_release(stream);
  plan.runs = true;
  kiln_graph_exec_release(exec);
  assert_int_equal(plan.records, 1);
  assert_int_equal(told[0], 0);
  all_ends();
  assert_int_equal(told[0], 1);
}

static void test_a_stream_being_captured(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  plan.runs = true;
  plan.captured = kiln_stream_handle(kit.stream);
  kiln_graph_exec_release(exec);
  assert_int_equal(plan.records, 0);
  assert_int_equal(plan.uploads, 1);
  assert_int_equal(told[0], 0);
  all_ends();
  assert_int_equal(told[0], 1);
}

static void elsewhere(kiln_graph_exec_t* exec) {
  plan.runs = true;
  kiln_graph_exec_release(exec);
  assert_int_equal(plan.records, 0);
  assert_int_equal(plan.uploads, 1);
  assert_int_equal(told[0], 0);
  all_ends();
  assert_int_equal(told[0], 1);
}

static void test_a_thread_s_own_stream(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  kiln_stream_t* stream = NULL;
  assert_null(kiln_stream_default(kit.device, KILN_STREAM_PER_THREAD, &stream));
  assert_null(kiln_graph_exec_launch(exec, stream));
  kiln_stream_release(stream);
  elsewhere(exec);
}

static void test_a_handle_of_an_executable(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  assert_non_null(kiln_graph_exec_handle(exec));
  elsewhere(exec);
}

// A driver may call back from another thread before its call has returned, and
// what the callback lets go of is gone by then: the address sanitizer sees who
// reads it all the same.
static void test_a_callback_inside_the_call(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  plan.runs = true;
  plan.at_once = true;
  kiln_graph_exec_release(exec);
  assert_int_equal(plan.callbacks_at_once, 1);
  assert_int_equal(told[0], 1);
  plan.runs = false;
  settle();
  assert_int_equal(told[0], 1);
}

static void test_an_update_under_way(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  kiln_graph_t* next = NULL;
  assert_null(kiln_graph_create(kit.device, &next));
  (void)add_event(next, &told[1]);
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  plan.runs = true;
  assert_null(kiln_graph_exec_update(exec, next, NULL));
  kiln_graph_release(next);
  assert_int_equal(told[0] + told[1], 0);
  all_ends();
  assert_int_equal(told[0], 1);
  assert_int_equal(told[1], 0);
  kiln_graph_exec_release(exec);
  settle();
  assert_int_equal(told[1], 1);
}

// ---- Lost devices ----

static void lose(void) {
  kit.lost = true;
  kilni_device_mark_lost(kit.device);
}

static void test_lost_before(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  plan.runs = true;
  lose();
  kiln_graph_exec_release(exec);
  settle();
  assert_int_equal(told[0], 1);
  assert_int_equal(plan.callbacks, 0);
}

static void test_lost_at_the_end(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  plan.fault = true;
  kit.lost = true;
  kiln_graph_exec_release(exec);
  settle();
  assert_int_equal(told[0], 1);
}

// What goes the short way once it may, and must not when it may not any more.
static void test_nothing_goes_to_a_lost_device(void** state) {
  (void)state;
  kiln_graph_work_t work = kiln_graph_work_launch(kit.launch);
  kiln_graph_node_t* node = graph_kit_add(graph, NULL, work);
  node = graph_kit_add(graph, node, work);
  kiln_graph_exec_t* exec = make_exec();
  for (int i = 0; i < 2; i++) {
    assert_null(kiln_graph_exec_launch(exec, kit.stream));
    assert_null(kiln_graph_exec_set(exec, node, &work));
  }
  assert_int_equal(plan.launches, 2);
  plan.refuse = true;
  kiln_status_t status = kiln_graph_exec_launch(exec, kit.stream);
  assert_non_null(status);
  kiln_status_free(status);
  assert_int_equal(plan.launches, 3);  // not tried again
  plan.refuse = false;
  lose();
  assert_says(kiln_graph_exec_launch(exec, kit.stream), KILN_STATUS_DEVICE_LOST,
              "is lost");
  assert_says(kiln_graph_exec_set(exec, node, &work), KILN_STATUS_DEVICE_LOST,
              "is lost");
  assert_says(kiln_graph_add(graph, &node, 1, &work, NULL),
              KILN_STATUS_DEVICE_LOST, "is lost");
  assert_int_equal(plan.launches, 3);
  kiln_graph_exec_release(exec);
}

// The driver will not call back; nobody is left who would notice.
static void test_lost_while_it_waits(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = lone_exec();
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  plan.runs = true;
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
  graph = NULL;
  assert_int_equal(told[0], 0);
  lose();
  settle();
  assert_int_equal(told[0], 1);
}

// ---- Handles given out ----

static void test_a_raw_clone(void** state) {
  (void)state;
  kiln_graph_node_t* first = add_event(graph, &told[0]);
  kiln_cu_graph_t handle = kiln_graph_handle(graph);
  kiln_graph_node_t* second = add_event(graph, &told[1]);
  kiln_cu_graph_t clone = NULL;
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_graph_instantiate_t params;
  memset(&params, 0, sizeof(params));
  assert_int_equal(under.cuGraphClone(&clone, handle), KILN_CU_SUCCESS);
  assert_int_equal(under.cuGraphInstantiateWithParams(&exec, clone, &params),
                   KILN_CU_SUCCESS);
  assert_null(kiln_graph_node_remove(first));
  assert_null(kiln_graph_node_remove(second));
  kiln_graph_release(graph);
  graph = NULL;
  assert_int_equal(told[0] + told[1], 0);
  assert_int_equal(under.cuGraphDestroy(clone), KILN_CU_SUCCESS);
  settle();
  assert_int_equal(told[0] + told[1], 0);
  assert_int_equal(under.cuGraphExecDestroy(exec), KILN_CU_SUCCESS);
  settle();
  assert_int_equal(told[0], 1);
  assert_int_equal(told[1], 1);
}

// Owners that come when the handle is out already, in segments of their own.
static void test_owners_that_come_later(void** state) {
  (void)state;
  kiln_cu_graph_t handle = kiln_graph_handle(graph);
  assert_int_equal(plan.objects, 0);
  (void)add_event(graph, &told[0]);
  assert_int_equal(plan.objects, 1);
  kiln_graph_exec_release(make_exec());
  (void)add_event(graph, &told[1]);
  assert_int_equal(plan.objects, 2);
  assert_ptr_equal(kiln_graph_handle(graph), handle);
  assert_int_equal(plan.objects, 2);
  kiln_cu_graph_t clone = NULL;
  assert_int_equal(under.cuGraphClone(&clone, handle), KILN_CU_SUCCESS);
  kiln_graph_release(graph);
  graph = NULL;
  assert_int_equal(told[0] + told[1], 0);
  assert_int_equal(under.cuGraphDestroy(clone), KILN_CU_SUCCESS);
  settle();
  assert_int_equal(told[0] + told[1], 2);
}

static void test_a_raw_clone_of_what_is_inside(void** state) {
  (void)state;
  kiln_graph_t* child = NULL;
  assert_null(kiln_graph_create(kit.device, &child));
  (void)add_event(child, &told[0]);
  kiln_graph_node_t* node =
      graph_kit_add(graph, NULL, kiln_graph_work_child(child));
  kiln_graph_release(child);
  kiln_graph_t* inner = NULL;
  assert_null(kiln_graph_node_inner(node, 0, &inner));
  kiln_cu_graph_t clone = NULL;
  kiln_cu_graph_t handle = kiln_graph_handle(inner);
  assert_int_equal(under.cuGraphClone(&clone, handle), KILN_CU_SUCCESS);
  assert_null(kiln_graph_node_remove(node));
  // A driver ends the graph inside with the node; the null provider does not
  // know that it was there.
  assert_int_equal(under.cuGraphReleaseUserObject(handle, plan.object, 1),
                   KILN_CU_SUCCESS);
  kiln_graph_release(inner);
  kiln_graph_release(graph);
  graph = NULL;
  assert_int_equal(told[0], 0);
  assert_int_equal(under.cuGraphDestroy(clone), KILN_CU_SUCCESS);
  settle();
  assert_int_equal(told[0], 1);
}

static void test_launched_by_kernels(void** state) {
  (void)state;
  kiln_graph_node_t* node = add_event(graph, &told[0]);
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  options.device_launch = KILN_SWITCH_ON;
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_exec_create(graph, &options, &exec));
  assert_int_equal(plan.objects, 1);
  assert_null(kiln_graph_node_remove(node));
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  kiln_graph_exec_release(exec);
  settle();
  assert_int_equal(told[0], 1);
}

// ---- Shared ----

static void test_clones_of_clones(void** state) {
  (void)state;
  kiln_graph_node_t* node = add_event(graph, &told[0]);
  kiln_graph_t* one = NULL;
  kiln_graph_t* two = NULL;
  assert_null(kiln_graph_clone(graph, &one));
  assert_null(kiln_graph_clone(one, &two));
  assert_null(kiln_graph_node_remove(node));
  kiln_graph_release(one);
  assert_int_equal(told[0], 0);
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_exec_create(two, NULL, &exec));
  kiln_graph_release(two);
  assert_int_equal(told[0], 0);
  kiln_graph_exec_release(exec);
  assert_int_equal(told[0], 1);
}

static void test_children_of_children(void** state) {
  (void)state;
  kiln_graph_t* parent = NULL;
  kiln_graph_t* child = NULL;
  assert_null(kiln_graph_create(kit.device, &parent));
  assert_null(kiln_graph_create(kit.device, &child));
  (void)add_event(child, &told[0]);
  (void)graph_kit_add(parent, NULL, kiln_graph_work_child(child));
  kiln_graph_node_t* node =
      graph_kit_add(graph, NULL, kiln_graph_work_child(parent));
  kiln_graph_release(child);
  kiln_graph_release(parent);
  kiln_graph_exec_t* exec = make_exec();
  assert_null(kiln_graph_node_remove(node));
  assert_int_equal(told[0], 0);
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  plan.runs = true;
  kiln_graph_exec_release(exec);
  assert_int_equal(told[0], 0);
  all_ends();
  assert_int_equal(told[0], 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      T(test_a_launch_under_way),
      T(test_one_that_never_ran),
      T(test_a_launch_that_fails),
      T(test_three_streams),
      T(test_many_streams),
      T(test_a_stream_that_has_gone),
      T(test_a_stream_being_captured),
      T(test_a_thread_s_own_stream),
      T(test_a_handle_of_an_executable),
      T(test_a_callback_inside_the_call),
      T(test_an_update_under_way),
      T(test_lost_before),
      T(test_lost_at_the_end),
      T(test_lost_while_it_waits),
      T(test_nothing_goes_to_a_lost_device),
      T(test_a_raw_clone),
      T(test_owners_that_come_later),
      T(test_a_raw_clone_of_what_is_inside),
      T(test_launched_by_kernels),
      T(test_clones_of_clones),
      T(test_children_of_children),
#undef T
  };
  return cmocka_run_group_tests_name("graph_hold", tests, NULL, NULL);
}
