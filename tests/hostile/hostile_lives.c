// SPDX-License-Identifier: Apache-2.0
//
// tests: everything released in any order, with launches under way; every owner
// is told once, and nothing is left.
//
// What must hold: an executable needs nothing of what it was made of, and the
// order of releases is the caller's own affair. Found in 0.1.0: memory of
// earlier settings grew with every whole child that was set.
#define _POSIX_C_SOURCE 200809L  // nanosleep

#include <stdatomic.h>
#include <stdlib.h>

#include "hostile.h"

static atomic_int told;
static int given;

static void tell(void* user) {
  (void)user;
  atomic_fetch_add(&told, 1);
}

static void nothing(void* user) {
  (void)user;
}

static void slow(void* user) {
  (void)user;
  hostile_nap(2000);
}

static kiln_graph_work_t host_call(kiln_host_fn_t fn) {
  kiln_graph_work_t work = kiln_graph_work_host(fn, NULL);
  work.as.host.owner.release = tell;
  given++;
  return work;
}

static void all_are_told(void) {
  for (int i = 0; i < 2000 && atomic_load(&told) < given; i++) {
    hostile_nap(5000);
  }
  assert_int_equal(atomic_load(&told), given);
}

static int setup(void** state) {
  (void)state;
  given = 0;
  atomic_store(&told, 0);
  return 0;
}

// ---- Any order ----

typedef void (*release_fn_t)(void*);

// What is to be released, and how.
typedef struct heap_t {
  void* object[32];
  release_fn_t release[32];
  uint32_t count;
} heap_t;

static void put(heap_t* heap, void* object, release_fn_t release) {
  heap->object[heap->count] = object;
  heap->release[heap->count++] = release;
}
#define PUT(heap, object, release) \
  put((heap), (object), (release_fn_t)(void (*)(void))(release))

static uint32_t next_random(uint32_t* seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

static void release_in_any_order(heap_t* heap, uint32_t* seed) {
  while (heap->count > 0) {
    uint32_t at = next_random(seed) % heap->count--;
    heap->release[at](heap->object[at]);
    heap->object[at] = heap->object[heap->count];
    heap->release[at] = heap->release[heap->count];
  }
}

static kiln_graph_t* capture_into(hostile_t* world, heap_t* heap) {
  kiln_graph_builder_t *pair[2], *body = NULL;
  kiln_graph_t *inner = NULL, *graph = NULL;
  pair[0] = hostile_begin(world, NULL, 0);
  hostile_capture(pair[0], world->add, world->buffer, 1);
  hostile_choose(pair[0], KILN_GRAPH_IF, 1, 1, &body);
  WORKS(kiln_graph_builder_split(pair[0], 2, &pair[1]));
  kiln_graph_host_t call = host_call(nothing).as.host;
  WORKS(kiln_graph_builder_call_host(pair[0], &call));
  WORKS(kiln_graph_builder_join(pair, 2, NULL));
  WORKS(kiln_graph_builder_graph(body, &inner));
  WORKS(kiln_graph_builder_end(pair[0]));
  WORKS(kiln_graph_builder_graph(pair[0], &graph));
  PUT(heap, pair[0], kiln_graph_builder_release);
  PUT(heap, pair[1], kiln_graph_builder_release);
  PUT(heap, body, kiln_graph_builder_release);
  PUT(heap, inner, kiln_graph_release);
  PUT(heap, graph, kiln_graph_release);
  return graph;
}

static void launch_all(hostile_t* world, kiln_graph_t* const* graphs,
                       uint32_t count, heap_t* heap) {
  for (uint32_t i = 0; i < count; i++) {
    kiln_graph_exec_t* exec = NULL;
    WORKS(kiln_graph_exec_create(graphs[i], NULL, &exec));
    WORKS(kiln_graph_exec_launch(exec, world->stream));
    PUT(heap, exec, kiln_graph_exec_release);
  }
}

static void test_any_order(void** state) {
  (void)state;
  uint32_t seed = 7;
  for (int i = 0; i < 40; i++) {
    hostile_t world;
    heap_t heap = {{NULL}, {NULL}, 0};
    kiln_graph_t *parent = NULL, *child = NULL, *view = NULL, *clone = NULL;
    kiln_graph_node_t* node = NULL;
    hostile_open(&world);
    kiln_graph_t* captured = capture_into(&world, &heap);
    WORKS(kiln_graph_create(world.device, &parent));
    WORKS(kiln_graph_create(world.device, &child));
    kiln_launch_t* launch = hostile_launch(world.mul, world.buffer, 3);
    kiln_graph_work_t work = kiln_graph_work_launch(launch);
    WORKS(kiln_graph_add(child, NULL, 0, &work, NULL));
    work = host_call(nothing);
    WORKS(kiln_graph_add(child, NULL, 0, &work, NULL));
    work = kiln_graph_work_child(child);
    WORKS(kiln_graph_add(parent, NULL, 0, &work, &node));
    WORKS(kiln_graph_node_inner(node, 0, &view));
    WORKS(kiln_graph_clone(parent, &clone));
    kiln_graph_t* graphs[] = {captured, parent, clone};
    launch_all(&world, graphs, 3, &heap);
    if (i % 4 == 0) WORKS(kiln_graph_node_remove(node));
    PUT(&heap, parent, kiln_graph_release);
    PUT(&heap, child, kiln_graph_release);
    PUT(&heap, view, kiln_graph_release);
    PUT(&heap, clone, kiln_graph_release);
    PUT(&heap, launch, kiln_launch_release);
    PUT(&heap, world.buffer, kiln_buffer_release);
    PUT(&heap, world.add, kiln_kernel_release);
    PUT(&heap, world.mul, kiln_kernel_release);
    PUT(&heap, world.module, kiln_module_release);
    PUT(&heap, world.stream, kiln_stream_release);
    PUT(&heap, world.device, kiln_device_release);
    PUT(&heap, world.runtime, kiln_runtime_release);
    release_in_any_order(&heap, &seed);
  }
  all_are_told();
}

// The executable is all that is left, is launched, and goes while it runs.
static void test_an_executable_alone(void** state) {
  (void)state;
  for (int i = 0; i < 12; i++) {
    hostile_t world;
    kiln_graph_t* graph = NULL;
    kiln_graph_exec_t* exec = NULL;
    kiln_graph_node_t *first = NULL, *second = NULL;
    hostile_open(&world);
    WORKS(kiln_graph_create(world.device, &graph));
    kiln_launch_t* launch = hostile_launch(world.add, world.buffer, 1);
    kiln_graph_work_t work = kiln_graph_work_launch(launch);
    kiln_graph_work_t call = host_call(slow);
    WORKS(kiln_graph_add(graph, NULL, 0, &work, &first));
    WORKS(kiln_graph_add(graph, &first, 1, &call, &second));
    WORKS(kiln_graph_add(graph, &second, 1, &work, NULL));
    WORKS(kiln_graph_exec_create(graph, NULL, &exec));
    kiln_stream_t* stream = world.stream;
    kiln_stream_retain(stream);
    kiln_graph_release(graph);
    kiln_launch_release(launch);
    hostile_close(&world);
    WORKS(kiln_graph_exec_launch(exec, stream));
    if (i % 3 > 0) WORKS(kiln_graph_exec_launch(exec, stream));
    kiln_graph_exec_release(exec);
    if (i % 2 > 0) WORKS(kiln_stream_synchronize(stream));
    kiln_stream_release(stream);
  }
  all_are_told();
}

// More streams than an executable keeps, each gone before its work is done.
static void test_many_streams(void** state) {
  (void)state;
  hostile_t world;
  hostile_open(&world);
  for (int i = 0; i < 8; i++) {
    kiln_graph_t* graph = NULL;
    kiln_graph_exec_t* exec = NULL;
    kiln_graph_node_t* node = NULL;
    WORKS(kiln_graph_create(world.device, &graph));
    kiln_graph_work_t call = host_call(nothing);
    WORKS(kiln_graph_add(graph, NULL, 0, &call, &node));
    kiln_launch_t* launch = hostile_launch(world.add, world.buffer, 1);
    kiln_graph_work_t work = kiln_graph_work_launch(launch);
    WORKS(kiln_graph_add(graph, &node, 1, &work, NULL));
    kiln_launch_release(launch);
    WORKS(kiln_graph_exec_create(graph, NULL, &exec));
    kiln_graph_release(graph);
    for (int k = 0; k < 12; k++) {
      kiln_stream_t* stream = NULL;
      WORKS(kiln_stream_create(world.device, NULL, &stream));
      WORKS(kiln_graph_exec_launch(exec, stream));
      if (k % 2 > 0) WORKS(kiln_graph_exec_upload(exec, stream));
      kiln_stream_release(stream);
    }
    kiln_graph_exec_release(exec);
  }
  WORKS(kiln_device_synchronize(world.device));
  all_are_told();
  hostile_close(&world);
}

// ---- Owners ----

// What is refused leaves the owner with the caller.
static void test_owners_of_refused_calls(void** state) {
  (void)state;
  hostile_t world;
  kiln_graph_t *graph = NULL, *other = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_node_t* node = NULL;
  hostile_open(&world);
  WORKS(kiln_graph_create(world.device, &graph));
  WORKS(kiln_graph_create(world.device, &other));
  kiln_graph_work_t call = host_call(nothing);
  kiln_graph_work_t broken = call;
  broken.as.host.fn = NULL;
  WORKS(kiln_graph_add(graph, NULL, 0, &call, &node));
  WORKS(kiln_graph_exec_create(graph, NULL, &exec));
  REFUSED(INVALID_ARGUMENT, kiln_graph_add(other, &node, 1, &call, NULL));
  REFUSED(INVALID_ARGUMENT, kiln_graph_add(graph, NULL, 0, &broken, NULL));
  REFUSED(INVALID_ARGUMENT, kiln_graph_node_set(node, &broken));
  REFUSED(INVALID_ARGUMENT, kiln_graph_exec_set(exec, node, &broken));
  kiln_graph_node_t* out[4] = {node, node, node, node};
  kiln_graph_addition_t additions[] = {{&call, NULL, &out[0], 0, 0},
                                       {&broken, &out[0], &out[1], 1, 0},
                                       {&call, NULL, &out[2], 0, 0}};
  uint32_t added = 99;
  given++;  // the first addition stays
  REFUSED(INVALID_ARGUMENT, kiln_graph_add_all(other, additions, 3, &added));
  assert_int_equal(added, 1);
  assert_null(out[1]);
  assert_null(out[2]);
  hostile_nap(20000);
  assert_int_equal(atomic_load(&told), 0);
  kiln_graph_release(graph);
  kiln_graph_release(other);
  hostile_nap(20000);
  assert_int_equal(atomic_load(&told), 1);
  kiln_graph_exec_release(exec);
  all_are_told();
  hostile_close(&world);
}

// Captures that are thrown away tell the owners of what was captured.
static void test_owners_of_thrown_away_captures(void** state) {
  (void)state;
  hostile_t world;
  hostile_open(&world);
  for (int how = 0; how < 3; how++) {
    kiln_graph_builder_t* pair[2] = {NULL};
    kiln_graph_host_t call = host_call(nothing).as.host;
    pair[0] = hostile_begin(&world, NULL, 0);
    WORKS(kiln_graph_builder_split(pair[0], 2, &pair[1]));
    WORKS(kiln_graph_builder_call_host(pair[how == 2], &call));
    if (how == 1) WORKS(kiln_graph_builder_close(pair[0]));
    if (how == 2) REFUSED(INVALID_STATE, kiln_graph_builder_end(pair[0]));
    kiln_graph_builder_release(pair[0]);
    kiln_graph_builder_release(pair[1]);
    all_are_told();
  }
  hostile_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_any_order, setup),
      cmocka_unit_test_setup(test_an_executable_alone, setup),
      cmocka_unit_test_setup(test_many_streams, setup),
      cmocka_unit_test_setup(test_owners_of_refused_calls, setup),
      cmocka_unit_test_setup(test_owners_of_thrown_away_captures, setup),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
