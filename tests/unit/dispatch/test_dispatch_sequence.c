// SPDX-License-Identifier: Apache-2.0
//
// dispatch: sequences: recorded, run on streams, and what is refused.
#include "dispatch_kit.h"

enum { N = 64 };

static kiln_sequence_t* begin(dispatch_kit_t* kit) {
  kiln_sequence_t* sequence = NULL;
  kiln_sequence_options_t options = kiln_sequence_options_default();
  options.label = "list";
  assert_null(kiln_sequence_create(kit->dispatcher, &options, &sequence));
  return sequence;
}

// fill, step x 2, loop(3){step}, copy, download.
typedef struct list_t {
  kiln_sequence_t* sequence;
  kiln_pipeline_t* step;
  kiln_resident_t x;
  kiln_resident_t y;
  uint32_t out[N];
  uint32_t first;
  uint32_t loop;
} list_t;

static void list_open(list_t* list, dispatch_kit_t* kit) {
  memset(list, 0, sizeof(*list));
  list->step = dispatch_kit_pipeline(kit, kStep, NULL);
  list->x = dispatch_kit_resident(kit, 4 * N, NULL);
  list->y = dispatch_kit_resident(kit, 4 * N, NULL);
  list->sequence = begin(kit);
  kiln_binding_t x = kiln_bind_resident(list->x);
  kiln_binding_t y = kiln_bind_resident_range(list->y, 0, 4 * N);
  uint32_t number = 99;
  kiln_sequence_t* s = list->sequence;
  assert_null(kiln_sequence_add_fill(s, &x, 5, 4, &number));
  assert_int_equal(number, 0);
  assert_null(
      kiln_sequence_add_dispatch(s, list->step, &x, 1, NULL, &list->first));
  assert_int_equal(list->first, 1);
  assert_null(kiln_sequence_begin_loop(s, 3, &list->loop));
  assert_int_equal(list->loop, 2);
  assert_null(kiln_sequence_add_dispatch(s, list->step, &x, 1, NULL, NULL));
  assert_null(kiln_sequence_end_body(s));
  assert_null(kiln_sequence_add_copy(s, &y, &x, NULL));
  assert_null(kiln_sequence_add_download(s, &y, list->out, &number));
  assert_int_equal(number, 5);
  assert_null(kiln_sequence_finish(s));
}

static void list_close(list_t* list, dispatch_kit_t* kit) {
  kiln_sequence_release(list->sequence);
  kiln_pipeline_release(list->step);
  assert_null(kiln_resident_free(kit->dispatcher, list->x));
  assert_null(kiln_resident_free(kit->dispatcher, list->y));
}

static uint32_t stepped(uint32_t value, int times) {
  while (times-- > 0) value = value * 2 + 1;
  return value;
}

static void test_run(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  list_t list;
  list_open(&list, &kit);
  kiln_stream_t* mine = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &mine));
  for (int round = 0; round < 4; round++) {
    kiln_pending_t* pending = NULL;
    memset(list.out, 0xee, sizeof(list.out));
    assert_null(kiln_sequence_run(list.sequence, round % 2 == 0 ? NULL : mine,
                                  round < 2 ? &pending : NULL));
    if (round < 2) {
      assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
      kiln_pending_release(pending);
    } else {
      assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
      assert_null(kiln_stream_synchronize(mine));
    }
    for (int i = 0; i < N; i++) assert_int_equal(list.out[i], stepped(5, 4));
  }
  kiln_sequence_step_t step;
  assert_int_equal(kiln_sequence_step_count(list.sequence), 6);
  assert_true(kiln_sequence_step(list.sequence, 1, &step));
  assert_int_equal(step.kind, KILN_STEP_DISPATCH);
  assert_string_equal(step.label, "step");
  assert_ptr_equal(step.pipeline, list.step);
  assert_true(kiln_sequence_step(list.sequence, 2, &step));
  assert_int_equal(step.kind, KILN_STEP_LOOP);
  assert_int_equal(step.body, 1);
  assert_int_equal(step.count, 3);
  assert_true(kiln_sequence_step(list.sequence, 5, &step));
  assert_int_equal(step.bytes, 4 * N);
  assert_false(kiln_sequence_step(list.sequence, 6, &step));
  kiln_stream_release(mine);
  list_close(&list, &kit);
  dispatch_kit_close(&kit);
}

static void test_replay(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  list_t list;
  list_open(&list, &kit);
  kiln_replay_t* replay = NULL;
  kiln_stream_t* mine = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &mine));
  assert_null(kiln_sequence_instantiate(list.sequence, NULL, &replay));
  for (int round = 0; round < 4; round++) {
    kiln_pending_t* pending = NULL;
    memset(list.out, 0xee, sizeof(list.out));
    assert_null(
        kiln_replay_run(replay, round % 2 == 0 ? NULL : mine, &pending));
    assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
    for (int i = 0; i < N; i++) assert_int_equal(list.out[i], stepped(5, 4));
  }
  uint32_t count = 0;
  assert_null(kiln_graph_nodes(kiln_replay_graph(replay), 0, NULL, &count));
  assert_int_equal(count, 7);
  assert_null(kiln_graph_edges(kiln_replay_graph(replay), 0, NULL, &count));
  assert_int_equal(count, 6);
  kiln_replay_release(replay);
  kiln_stream_release(mine);
  list_close(&list, &kit);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_run),
      cmocka_unit_test(test_replay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
