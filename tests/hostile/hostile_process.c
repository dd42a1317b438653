// SPDX-License-Identifier: Apache-2.0
//
// tests: a process that forks in the middle of a capture.
//
// What must hold: in the child every call that would touch the device is
// INVALID_STATE, and it ends well; the parent goes on as if nothing had been.
#define _POSIX_C_SOURCE 200809L  // nanosleep, fork

#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

// Whether it is INVALID_STATE; the child has no cmocka.
static bool stops(kiln_status_t status) {
  bool is_so = kiln_status_code(status) == KILN_STATUS_INVALID_STATE;
  kiln_status_free(status);
  return is_so;
}

static bool child_is_refused(hostile_t* world, kiln_graph_t* graph,
                             kiln_graph_node_t* node, kiln_graph_exec_t* exec,
                             kiln_graph_builder_t* builder) {
  kiln_graph_work_t work = kiln_graph_work_fill(world->buffer, 0, 1, 1, 4);
  kiln_graph_t* other = NULL;
  return stops(kiln_graph_add(graph, NULL, 0, &work, NULL)) &&
         stops(kiln_graph_exec_launch(exec, world->stream)) &&
         stops(kiln_graph_builder_end(builder)) &&
         stops(kiln_graph_node_remove(node)) &&
         stops(kiln_graph_exec_set(exec, node, &work)) &&
         stops(kiln_graph_create(world->device, &other)) &&
         stops(kiln_graph_clone(graph, &other)) &&
         stops(kiln_graph_exec_update(exec, graph, NULL)) && other == NULL;
}

static void test_a_fork(void** state) {
  (void)state;
  hostile_t world;
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t* node = NULL;
  kiln_graph_exec_t* exec = NULL;
  hostile_open(&world);
  WORKS(kiln_graph_create(world.device, &graph));
  kiln_graph_work_t work = kiln_graph_work_fill(world.buffer, 0, 64, 1, 4);
  WORKS(kiln_graph_add(graph, NULL, 0, &work, &node));
  WORKS(kiln_graph_exec_create(graph, NULL, &exec));
  kiln_graph_builder_t* builder = hostile_begin(&world, NULL, 1);
  hostile_capture(builder, world.add, world.buffer, 1);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool is_good = child_is_refused(&world, graph, node, exec, builder);
    kiln_graph_builder_release(builder);
    kiln_graph_exec_release(exec);
    kiln_graph_release(graph);
    hostile_close(&world);
    _exit(is_good ? 0 : 1);
  }
  int ended = -1;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_true(WIFEXITED(ended));
  assert_int_equal(WEXITSTATUS(ended), 0);
  WORKS(kiln_graph_builder_end(builder));
  hostile_expect(&world, builder, 1);
  assert_int_equal(hostile_result(&world, exec), 1);
  kiln_graph_builder_release(builder);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
  hostile_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_fork),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
