// SPDX-License-Identifier: Apache-2.0
//
// tests: branches of a capture, joined in odd orders, twice, across captures,
// and too late.
//
// Found in 0.1.0: join closed builders that it refused, or did not, against its
// own page; a fork whose capture had ended or was thrown away said CAPTURING
// for ever.
#define _POSIX_C_SOURCE 200809L  // nanosleep

#include "hostile.h"

HOSTILE_WORLD()

static void release_all(kiln_graph_builder_t** builders, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    kiln_graph_builder_release(builders[i]);
  }
}

// A grandchild is joined straight to the primary, in the middle of a list.
static void test_nested(void** state) {
  (void)state;
  kiln_graph_builder_t* primary = hostile_begin(&world, NULL, 0);
  kiln_graph_builder_t* forks[3];
  kiln_graph_builder_t* inner[2];
  kiln_graph_builder_t* innermost[1];
  kiln_graph_builder_t* root = NULL;
  hostile_capture(primary, world.add, world.buffer, 5);
  WORKS(kiln_graph_builder_split(primary, 4, forks));
  WORKS(kiln_graph_builder_split(forks[0], 3, inner));
  WORKS(kiln_graph_builder_split(inner[1], 2, innermost));
  hostile_capture(innermost[0], world.add, world.buffer, 1);
  kiln_graph_builder_t* cousins[] = {innermost[0], forks[2]};
  WORKS(kiln_graph_builder_join(cousins, 2, &root));
  assert_ptr_equal(root, innermost[0]);
  assert_int_equal(kiln_graph_builder_state(forks[2]),
                   KILN_GRAPH_BUILDER_CLOSED);
  hostile_capture(innermost[0], world.mul, world.buffer, 3);
  kiln_graph_builder_t* all[] = {forks[1], inner[0], innermost[0],
                                 primary,  forks[0], inner[1]};
  WORKS(kiln_graph_builder_join(all, 6, &root));
  assert_ptr_equal(root, primary);
  hostile_capture(primary, world.add, world.buffer, 100);
  WORKS(kiln_graph_builder_end(primary));
  hostile_expect(&world, primary, 118);
  release_all(forks, 3);
  release_all(inner, 2);
  release_all(innermost, 1);
  kiln_graph_builder_release(primary);
}

// Forks join each other, and the last of them takes the primary along.
static void test_the_primary_last(void** state) {
  (void)state;
  kiln_graph_builder_t* primary = hostile_begin(&world, NULL, 0);
  kiln_graph_builder_t* forks[3];
  WORKS(kiln_graph_builder_split(primary, 4, forks));
  for (int i = 0; i < 3; i++) {
    hostile_capture(forks[i], world.add, world.buffer, 0);
  }
  kiln_graph_builder_t* first[] = {forks[2], forks[0]};
  kiln_graph_builder_t* second[] = {forks[1], forks[2]};
  kiln_graph_builder_t* third[] = {forks[1], primary};
  WORKS(kiln_graph_builder_join(first, 2, NULL));
  WORKS(kiln_graph_builder_join(second, 2, NULL));
  hostile_capture(forks[1], world.add, world.buffer, 9);
  WORKS(kiln_graph_builder_join(third, 2, NULL));
  WORKS(kiln_graph_builder_end(primary));
  hostile_expect(&world, primary, 9);
  release_all(forks, 3);
  kiln_graph_builder_release(primary);
}

// A list that is no list of branches closes none of them.
static void test_lists_that_are_refused(void** state) {
  (void)state;
  kiln_graph_builder_t* one = hostile_begin(&world, NULL, 0);
  kiln_graph_builder_t* other = hostile_begin(&world, NULL, 0);
  kiln_graph_builder_t* of_one[1];
  kiln_graph_builder_t* of_other[1];
  WORKS(kiln_graph_builder_split(one, 2, of_one));
  WORKS(kiln_graph_builder_split(other, 2, of_other));
  kiln_graph_builder_t* lists[][2] = {
      {one, of_other[0]}, {one, other}, {one, one}, {one, NULL}};
  for (int i = 0; i < 4; i++) {
    REFUSED(INVALID_ARGUMENT, kiln_graph_builder_join(lists[i], 2, NULL));
  }
  REFUSED(INVALID_ARGUMENT, kiln_graph_builder_join(lists[0], 1, NULL));
  REFUSED(INVALID_ARGUMENT, kiln_graph_builder_join(NULL, 2, NULL));
  kiln_graph_builder_t* alive[] = {one, other, of_one[0], of_other[0]};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(kiln_graph_builder_state(alive[i]),
                     KILN_GRAPH_BUILDER_CAPTURING);
  }
  kiln_graph_builder_t* right[] = {one, of_one[0]};
  kiln_graph_builder_t* also[] = {of_other[0], other};
  WORKS(kiln_graph_builder_join(right, 2, NULL));
  WORKS(kiln_graph_builder_join(also, 2, NULL));
  REFUSED(INVALID_STATE, kiln_graph_builder_join(right, 2, NULL));
  WORKS(kiln_graph_builder_end(one));
  WORKS(kiln_graph_builder_end(other));
  release_all(alive, 4);
}

// Whatever became of the capture, its forks say so and take nothing more.
static void test_forks_that_are_late(void** state) {
  (void)state;
  for (int how = 0; how < 3; how++) {
    kiln_graph_builder_t* primary = hostile_begin(&world, NULL, 0);
    kiln_graph_builder_t* fork[1];
    kiln_graph_builder_t* more[1] = {NULL};
    WORKS(kiln_graph_builder_split(primary, 2, fork));
    hostile_capture(fork[0], world.add, world.buffer, 1);
    if (how == 0) REFUSED(INVALID_STATE, kiln_graph_builder_end(primary));
    if (how == 1) WORKS(kiln_graph_builder_close(primary));
    if (how == 2) {
      kiln_graph_builder_release(primary);
      primary = NULL;
    }
    assert_int_not_equal(kiln_graph_builder_state(fork[0]),
                         KILN_GRAPH_BUILDER_CAPTURING);
    kiln_stream_t* stream = NULL;
    kiln_status_t status = kiln_graph_builder_stream(fork[0], &stream);
    if (kiln_status_is_ok(status)) {
      REFUSED(INVALID_STATE, hostile_run(world.add, stream, world.buffer, 1));
    }
    kiln_status_free(status);
    REFUSED(INVALID_STATE, kiln_graph_builder_split(fork[0], 2, more));
    assert_null(more[0]);
    WORKS(kiln_graph_builder_close(fork[0]));
    assert_int_equal(kiln_graph_builder_state(fork[0]),
                     KILN_GRAPH_BUILDER_CLOSED);
    kiln_graph_builder_release(primary);
    kiln_graph_builder_release(fork[0]);
  }
}

static void test_as_many_as_there_may_be(void** state) {
  (void)state;
  enum { MOST = 256 };
  static kiln_graph_builder_t* all[MOST + 1];
  kiln_graph_builder_t* primary = hostile_begin(&world, NULL, 0);
  REFUSED(INVALID_ARGUMENT, kiln_graph_builder_split(primary, MOST + 1, all));
  REFUSED(INVALID_ARGUMENT, kiln_graph_builder_split(primary, 1, all));
  WORKS(kiln_graph_builder_split(primary, MOST, all));
  for (int i = 0; i < MOST - 1; i++) {
    hostile_capture(all[i], world.add, world.buffer, 0);
  }
  all[MOST - 1] = primary;
  WORKS(kiln_graph_builder_join(all, MOST, NULL));
  hostile_capture(primary, world.add, world.buffer, 3);
  WORKS(kiln_graph_builder_end(primary));
  hostile_expect(&world, primary, 3);
  release_all(all, MOST);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_nested, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_primary_last, setup, teardown),
      cmocka_unit_test_setup_teardown(test_lists_that_are_refused, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_forks_that_are_late, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_as_many_as_there_may_be, setup,
                                      teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
