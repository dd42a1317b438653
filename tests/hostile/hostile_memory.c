// SPDX-License-Identifier: Apache-2.0
//
// tests: memory that graphs allocate, freed twice, by others and never; what
// many settings keep; what errors of graphs name.
//
// Found in 0.1.0: each of these refusals was the driver's bare number and told
// its reader to look at a trace.
#define _POSIX_C_SOURCE 200809L  // nanosleep

#include <stdatomic.h>
#include <stdlib.h>

#include "hostile.h"

HOSTILE_WORLD()

static kiln_graph_t* new_graph(void) {
  kiln_graph_t* graph = NULL;
  WORKS(kiln_graph_create(world.device, &graph));
  return graph;
}

// The text of a refusal with that code, which must not send its reader to a
// trace.
static const char* text_of(kiln_status_t status, kiln_status_code_t code) {
  static char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_string_equal(kiln_status_code_name(kiln_status_code(status)),
                      kiln_status_code_name(code));
  assert_null(strstr(text, "KILN_TRACE"));
  kiln_status_free(status);
  return text;
}

// ---- Allocations ----

static void test_memory_that_nobody_frees(void** state) {
  (void)state;
  kiln_graph_t* graph = new_graph();
  kiln_graph_node_t* node = NULL;
  kiln_graph_exec_t *exec = NULL, *second = NULL;
  kiln_graph_work_t work = kiln_graph_work_allocate(4096);
  WORKS(kiln_graph_add(graph, NULL, 0, &work, &node));
  assert_int_not_equal(kiln_graph_node_address(node), 0);
  WORKS(kiln_graph_exec_create(graph, NULL, &exec));
  (void)text_of(kiln_graph_exec_create(graph, NULL, &second),
                KILN_STATUS_UNSUPPORTED);
  assert_null(second);
  WORKS(kiln_graph_exec_launch(exec, world.stream));
  (void)text_of(kiln_graph_exec_launch(exec, world.stream),
                KILN_STATUS_INVALID_ARGUMENT);
  WORKS(kiln_stream_synchronize(world.stream));
  kiln_graph_t* clone = NULL;
  kiln_status_t status = kiln_graph_clone(graph, &clone);
  assert_false(kiln_status_is_ok(status));
  kiln_status_free(status);
  assert_null(clone);
  kiln_graph_exec_release(exec);
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  options.free_on_launch = KILN_SWITCH_ON;
  WORKS(kiln_graph_exec_create(graph, &options, &exec));
  for (int i = 0; i < 5; i++) {
    WORKS(kiln_graph_exec_launch(exec, world.stream));
  }
  WORKS(kiln_stream_synchronize(world.stream));
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
}

static void test_what_is_freed(void** state) {
  (void)state;
  kiln_graph_t* graph = new_graph();
  kiln_graph_t* other = new_graph();
  kiln_graph_node_t* node = NULL;
  kiln_graph_work_t work = kiln_graph_work_allocate(4096);
  WORKS(kiln_graph_add(graph, NULL, 0, &work, &node));
  work = kiln_graph_work_free(kiln_graph_node_address(node));
  WORKS(kiln_graph_add(other, NULL, 0, &work, NULL));
  const uint64_t wrong[] = {kiln_graph_node_address(node), 0x1234, 0,
                            kiln_buffer_address(world.buffer)};
  for (int i = 0; i < 4; i++) {
    work = kiln_graph_work_free(wrong[i]);
    (void)text_of(kiln_graph_add(other, NULL, 0, &work, NULL),
                  KILN_STATUS_INVALID_ARGUMENT);
  }
  work = kiln_graph_work_allocate(0);
  REFUSED(INVALID_ARGUMENT, kiln_graph_add(graph, NULL, 0, &work, NULL));
  work = kiln_graph_work_allocate((uint64_t)1 << 60);
  REFUSED(DEVICE_OUT_OF_MEMORY, kiln_graph_add(graph, NULL, 0, &work, NULL));
  work = kiln_graph_work_child(graph);
  (void)text_of(kiln_graph_add(other, NULL, 0, &work, NULL),
                KILN_STATUS_UNSUPPORTED);
  kiln_graph_release(graph);
  kiln_graph_release(other);
}

static void test_all_is_given_back(void** state) {
  (void)state;
  kiln_graph_memory_t memory;
  kiln_graph_t* graph = new_graph();
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_work_t work = kiln_graph_work_allocate(1 << 20);
  WORKS(kiln_graph_add(graph, NULL, 0, &work, NULL));
  WORKS(kiln_graph_exec_create(graph, NULL, &exec));
  WORKS(kiln_graph_exec_launch(exec, world.stream));
  WORKS(kiln_stream_synchronize(world.stream));
  WORKS(kiln_graph_memory_describe(world.device, &memory));
  assert_true(memory.used >= 1 << 20);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
  WORKS(kiln_graph_memory_trim(world.device));
  WORKS(kiln_graph_memory_reset_peaks(world.device));
  WORKS(kiln_graph_memory_describe(world.device, &memory));
  assert_int_equal(memory.used, 0);
  assert_int_equal(memory.reserved, 0);
  assert_int_equal(memory.used_peak, 0);
}

// ---- Growth ----

static atomic_long bytes_alive;

static void* counted(void* block, size_t old_size, size_t size,
                     size_t alignment, void* user) {
  (void)user;
  atomic_fetch_add(&bytes_alive,
                   (long)size - (block == NULL ? 0 : (long)old_size));
  if (size == 0) {
    free(block);
    return NULL;
  }
  void* fresh = NULL;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  if (posix_memalign(&fresh, alignment, size) != 0) return NULL;
  if (block != NULL) {
    memcpy(fresh, block, old_size < size ? old_size : size);
    free(block);
  }
  return fresh;
}

// As many settings as an accumulator makes in a day: with what they use the
// same, they keep no more at the end than at the beginning.
static void test_settings_do_not_pile_up(void** state) {
  (void)state;
  hostile_t here;
  kiln_allocator_t allocator = {counted, NULL};
  hostile_close(&world);  // a process has one software device
  hostile_open_with(&here, &allocator);
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t* node = NULL;
  kiln_graph_exec_t* exec = NULL;
  WORKS(kiln_graph_create(here.device, &graph));
  kiln_launch_t* launch = hostile_launch(here.add, here.buffer, 1);
  kiln_graph_work_t work = kiln_graph_work_launch(launch);
  WORKS(kiln_graph_add(graph, NULL, 0, &work, &node));
  WORKS(kiln_graph_exec_create(graph, NULL, &exec));
  long before = 0;
  for (uint32_t i = 0; i < 40000; i++) {
    kiln_argument_t operand = kiln_arg_u32(i);
    kiln_graph_change_t change = {node, &work, &operand, 2, 1};
    if (i == 20000) before = atomic_load(&bytes_alive);
    WORKS(kiln_graph_exec_set_all(exec, &change, 1, NULL));
    WORKS(kiln_graph_node_set(node, &work));
  }
  assert_true(atomic_load(&bytes_alive) - before < 4096);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
  kiln_launch_release(launch);
  hostile_close(&here);
  assert_int_equal(atomic_load(&bytes_alive), 0);
  hostile_open(&world);
}

// ---- What errors name ----

static void test_a_circle(void** state) {
  (void)state;
  kiln_graph_t* graph = new_graph();
  kiln_graph_node_t* nodes[3];
  static const char* const names[] = {"node0", "node1", "node2"};
  kiln_graph_work_t work = kiln_graph_work_empty();
  for (int i = 0; i < 3; i++) {
    WORKS(kiln_graph_add(graph, NULL, 0, &work, &nodes[i]));
    WORKS(kiln_graph_node_set_name(nodes[i], names[i]));
  }
  kiln_graph_edge_t edges[] = {kiln_graph_edge(nodes[0], nodes[1]),
                               kiln_graph_edge(nodes[1], nodes[2]),
                               kiln_graph_edge(nodes[2], nodes[0])};
  WORKS(kiln_graph_connect(graph, edges, 3));
  kiln_graph_exec_t* exec = NULL;
  assert_non_null(strstr(text_of(kiln_graph_exec_create(graph, NULL, &exec),
                                 KILN_STATUS_INVALID_ARGUMENT),
                         "node"));
  assert_null(exec);
  kiln_graph_release(graph);
}

// A kernel that reads where nothing is: its name is said, and nobody is sent to
// the software device who is there already.
static void test_a_fault_in_a_graph(void** state) {
  (void)state;
  kiln_graph_t* graph = new_graph();
  kiln_graph_exec_t* exec = NULL;
  kiln_launch_config_t shape = hostile_shape(HOSTILE_WORDS);
  kiln_launch_t* launch = NULL;
  WORKS(kiln_launch_create(world.add, &shape, &launch));
  kiln_argument_t arguments[] = {kiln_arg_pointer(0x10),
                                 kiln_arg_u32(HOSTILE_WORDS), kiln_arg_u32(1)};
  WORKS(kiln_launch_set_all(launch, arguments, 3));
  kiln_graph_work_t work = kiln_graph_work_launch(launch);
  WORKS(kiln_graph_add(graph, NULL, 0, &work, NULL));
  WORKS(kiln_graph_exec_create(graph, NULL, &exec));
  WORKS(kiln_graph_exec_launch(exec, world.stream));
  kiln_status_t status = kiln_stream_synchronize(world.stream);
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_false(kiln_status_is_ok(status));
  assert_non_null(strstr(text, "add"));
  assert_null(strstr(text, "run it on the software device"));
  kiln_status_free(status);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
  kiln_launch_release(launch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
      CASE(test_memory_that_nobody_frees),
      CASE(test_what_is_freed),
      CASE(test_all_is_given_back),
      CASE(test_settings_do_not_pile_up),
      CASE(test_a_circle),
      CASE(test_a_fault_in_a_graph),
#undef CASE
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
