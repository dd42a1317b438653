// SPDX-License-Identifier: Apache-2.0
//
// tests: eight threads that capture, embed, launch and release one graph, one
// executable and one kernel, while others allocate and launch.
//
// What must hold: captures that keep to their thread are not disturbed by other
// threads, counts of references are exact, and the last release may be made by
// any of them.
#define _POSIX_C_SOURCE 200809L  // nanosleep

#include <pthread.h>
#include <stdatomic.h>

#include "hostile.h"

enum { CAPTURERS = 8, ALLOCATORS = 2, ROUNDS = 20 };

static hostile_t world;
static kiln_graph_t* shared_graph;
static kiln_graph_exec_t* shared_exec;
static atomic_bool is_over;
static atomic_int failures;

// What cmocka cannot be told on another thread.
static bool good(kiln_status_t status) {
  bool is_ok = kiln_status_is_ok(status);
  if (!is_ok) atomic_fetch_add(&failures, 1);
  kiln_status_free(status);
  return is_ok;
}

static void* allocate(void* user) {
  (void)user;
  while (!atomic_load(&is_over)) {
    kiln_buffer_t* buffer = NULL;
    kiln_stream_t* stream = NULL;
    if (good(kiln_buffer_create(world.device, 1 << 16, NULL, &buffer)) &&
        good(kiln_stream_create(world.device, NULL, &stream))) {
      (void)good(hostile_run(world.add, stream, buffer, 0));
      (void)good(kiln_stream_synchronize(stream));
    }
    kiln_stream_release(stream);
    kiln_buffer_release(buffer);
  }
  return NULL;
}

static kiln_status_t put(kiln_graph_builder_t* builder) {
  kiln_stream_t* stream = NULL;
  kiln_status_t status = kiln_graph_builder_stream(builder, &stream);
  if (!kiln_status_is_ok(status)) return status;
  return hostile_run(world.add, stream, world.buffer, 0);
}

static void capture_once(bool waits) {
  kiln_graph_builder_t *builder = NULL, *forks[2] = {NULL};
  kiln_graph_exec_t* exec = NULL;
  kiln_stream_t* stream = NULL;
  bool is_whole =
      good(kiln_graph_builder_create(world.device, NULL, &builder)) &&
      good(
          kiln_graph_builder_begin(builder, KILN_GRAPH_CAPTURE_THREAD_LOCAL)) &&
      good(put(builder)) && good(kiln_graph_builder_split(builder, 3, forks)) &&
      good(put(forks[0])) && good(put(forks[1])) &&
      good(kiln_graph_builder_embed(builder, shared_graph));
  kiln_graph_builder_t* all[] = {forks[0], builder, forks[1]};
  if (is_whole && good(kiln_graph_builder_join(all, 3, NULL)) &&
      good(kiln_graph_builder_end(builder)) &&
      good(kiln_graph_builder_exec(builder, NULL, &exec)) &&
      good(kiln_stream_create(world.device, NULL, &stream))) {
    (void)good(kiln_graph_exec_launch(exec, stream));
  }
  kiln_graph_exec_release(exec);
  kiln_graph_builder_release(builder);
  kiln_graph_builder_release(forks[0]);
  kiln_graph_builder_release(forks[1]);
  if (waits && stream != NULL) (void)good(kiln_stream_synchronize(stream));
  kiln_stream_release(stream);
}

static void* capture(void* user) {
  (void)user;
  for (int i = 0; i < ROUNDS; i++) {
    kiln_graph_retain(shared_graph);
    kiln_graph_exec_retain(shared_exec);
    kiln_kernel_retain(world.add);
    capture_once(i % 7 == 0);
    kiln_graph_release(shared_graph);
    kiln_graph_exec_release(shared_exec);
    kiln_kernel_release(world.add);
  }
  kiln_graph_release(shared_graph);
  kiln_graph_exec_release(shared_exec);
  return NULL;
}

static void test_all_at_once(void** state) {
  (void)state;
  pthread_t capturers[CAPTURERS], allocators[ALLOCATORS];
  hostile_open(&world);
  WORKS(kiln_graph_create(world.device, &shared_graph));
  kiln_launch_t* launch = hostile_launch(world.add, world.buffer, 0);
  kiln_graph_work_t work = kiln_graph_work_launch(launch);
  WORKS(kiln_graph_add(shared_graph, NULL, 0, &work, NULL));
  kiln_launch_release(launch);
  WORKS(kiln_graph_exec_create(shared_graph, NULL, &shared_exec));
  for (int i = 0; i < CAPTURERS; i++) {
    kiln_graph_retain(shared_graph);
    kiln_graph_exec_retain(shared_exec);
  }
  kiln_graph_release(shared_graph);  // the last one is a thread's
  kiln_graph_exec_release(shared_exec);
  for (int i = 0; i < ALLOCATORS; i++) {
    assert_int_equal(pthread_create(&allocators[i], NULL, allocate, NULL), 0);
  }
  for (int i = 0; i < CAPTURERS; i++) {
    assert_int_equal(pthread_create(&capturers[i], NULL, capture, NULL), 0);
  }
  for (int i = 0; i < CAPTURERS; i++) pthread_join(capturers[i], NULL);
  atomic_store(&is_over, true);
  for (int i = 0; i < ALLOCATORS; i++) pthread_join(allocators[i], NULL);
  assert_int_equal(atomic_load(&failures), 0);
  hostile_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
