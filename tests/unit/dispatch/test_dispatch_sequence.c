// SPDX-License-Identifier: Apache-2.0
//
// dispatch: sequences: recorded, run on streams, and what is refused.
#include "dispatch_kit.h"
#include "base/status_make.h"
#include "table/cuda_table.h"

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
  assert_null(kiln_sequence_add_copy(s, &y, &x, &number));
  assert_null(kiln_sequence_set_label(s, number, "first"));
  assert_null(kiln_sequence_set_label(s, number, "keep"));
  assert_says(kiln_sequence_set_label(s, 99, "keep"),
              KILN_STATUS_INVALID_ARGUMENT, "no step");
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
  assert_string_equal(step.label, "download");
  assert_true(kiln_sequence_step(list.sequence, 4, &step));
  assert_string_equal(step.label, "keep");
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

// ---- What is refused ----

static void test_order_of_calls(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_sequence_t* s = begin(&kit);
  kiln_replay_t* replay = NULL;
  kiln_resident_t x = dispatch_kit_resident(&kit, 64, NULL);
  kiln_binding_t bound = kiln_bind_resident(x);
  assert_says(kiln_sequence_run(s, NULL, NULL), KILN_STATUS_INVALID_STATE,
              "not finished");
  assert_says(kiln_sequence_instantiate(s, NULL, &replay),
              KILN_STATUS_INVALID_STATE, "not finished");
  assert_says(kiln_sequence_end_body(s), KILN_STATUS_INVALID_STATE, "is open");
  assert_null(kiln_sequence_begin_loop(s, 2, NULL));
  assert_says(kiln_sequence_end_body(s), KILN_STATUS_INVALID_ARGUMENT, "empty");
  assert_says(kiln_sequence_finish(s), KILN_STATUS_INVALID_STATE,
              "step 0 of \"list\" is open");
  assert_null(kiln_sequence_add_fill(s, &bound, 0, 4, NULL));
  assert_null(kiln_sequence_end_body(s));
  assert_null(kiln_sequence_finish(s));
  assert_says(kiln_sequence_finish(s), KILN_STATUS_INVALID_STATE, "before");
  assert_says(kiln_sequence_add_fill(s, &bound, 0, 4, NULL),
              KILN_STATUS_INVALID_STATE, "is finished");
  kiln_sequence_release(s);
  // As deep as it may be, and deeper.
  s = begin(&kit);
  for (int i = 0; i < 16; i++) {
    assert_null(kiln_sequence_begin_loop(s, 1, NULL));
  }
  assert_says(kiln_sequence_begin_loop(s, 1, NULL), KILN_STATUS_LIMIT_EXCEEDED,
              "nested 17 deep");
  kiln_sequence_release(s);
  // An empty one does nothing.
  s = begin(&kit);
  assert_null(kiln_sequence_finish(s));
  assert_null(kiln_sequence_run(s, NULL, NULL));
  assert_null(kiln_sequence_instantiate(s, NULL, &replay));
  assert_null(kiln_replay_run(replay, NULL, NULL));
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  assert_null(kiln_resident_free(kit.dispatcher, x));
  dispatch_kit_close(&kit);
}

static void finish_says(kiln_sequence_t* s, kiln_status_code_t code,
                        const char* word) {
  kiln_status_t status = kiln_sequence_finish(s);
  assert_non_null(strstr(kiln_status_fix(status), "record the sequence again"));
  assert_int_equal(kiln_status_code(status), code);
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  if (strstr(text, word) == NULL) fail_msg("no \"%s\": %s", word, text);
  if (strstr(text, "step 1 of \"list\"") == NULL) fail_msg("%s", text);
  assert_non_null(strstr(text, "Fix:"));
  kiln_status_free(status);
  status = kiln_sequence_finish(s);
  assert_non_null(strstr(kiln_status_fix(status), "record it again"));
  assert_says(status, KILN_STATUS_INVALID_STATE, "could not be finished");
  kiln_sequence_release(s);
}

// Each names the step, and the parameter where there is one.
static void test_wrong_steps(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* four = dispatch_kit_pipeline(&kit, kFour, NULL);
  kiln_resident_t x = dispatch_kit_resident(&kit, 64, NULL);
  kiln_binding_t bound = kiln_bind_resident(x);
  kiln_binding_t part = kiln_bind_resident_range(x, 0, 32);
  kiln_binding_t far = kiln_bind_resident_range(x, 60, 8);
  kiln_binding_t odd = kiln_bind_resident_range(x, 2, 4);
  kiln_binding_t number = kiln_bind_u32(3);
  static uint32_t host[16];
  for (int i = 0; i < 9; i++) {
    kiln_sequence_t* s = begin(&kit);
    kiln_binding_t b[4] = {bound, bound, bound, bound};
    kiln_fixpoint_options_t how = kiln_fixpoint_options_default();
    kiln_dispatch_options_t options = kiln_dispatch_options_default();
    assert_null(kiln_sequence_add_fill(s, &bound, 0, 4, NULL));
    switch (i) {
      case 0:
        b[1] = number;
        assert_null(kiln_sequence_add_dispatch(s, four, b, 4, NULL, NULL));
        finish_says(s, KILN_STATUS_INVALID_ARGUMENT, "\"y\"");
        break;
      case 1:
        assert_null(kiln_sequence_add_dispatch(s, four, b, 3, NULL, NULL));
        finish_says(s, KILN_STATUS_INVALID_ARGUMENT, "4 bindings, not 3");
        break;
      case 2:
        b[0] = kiln_bind_host_in(host, 64);
        assert_null(kiln_sequence_add_dispatch(s, four, b, 4, NULL, NULL));
        finish_says(s, KILN_STATUS_UNSUPPORTED, "host memory");
        break;
      case 3:
        options.iterations = 4;
        assert_null(kiln_sequence_add_dispatch(s, four, b, 4, &options, NULL));
        finish_says(s, KILN_STATUS_UNSUPPORTED, "iterations");
        break;
      case 4:
        assert_null(kiln_sequence_add_copy(s, &part, &part, NULL));
        finish_says(s, KILN_STATUS_INVALID_ARGUMENT, "over itself");
        break;
      case 5:
        assert_null(kiln_sequence_add_fill(s, &far, 0, 4, NULL));
        finish_says(s, KILN_STATUS_OUT_OF_RANGE, "8 bytes at 60");
        break;
      case 6:
        assert_null(kiln_sequence_add_fill(s, &odd, 0, 4, NULL));
        finish_says(s, KILN_STATUS_INVALID_ARGUMENT, "not whole values");
        break;
      case 7:
        assert_null(kiln_sequence_add_fill(s, &number, 0, 4, NULL));
        finish_says(s, KILN_STATUS_INVALID_ARGUMENT, "not a place");
        break;
      default:
        how.limit = 2;
        how.flag = part;
        assert_null(kiln_sequence_begin_fixpoint(s, &how, NULL));
        assert_says(kiln_sequence_add_upload(s, &part, host, 0, NULL),
                    KILN_STATUS_INVALID_ARGUMENT, "fixpoint");
        assert_null(kiln_sequence_add_fill(s, &bound, 0, 4, NULL));
        assert_null(kiln_sequence_end_body(s));
        finish_says(s, KILN_STATUS_INVALID_ARGUMENT, "a flag of 32 bytes");
    }
  }
  kiln_fixpoint_options_t how = kiln_fixpoint_options_default();
  kiln_sequence_t* s = begin(&kit);
  how.flag = part;
  assert_says(kiln_sequence_begin_fixpoint(s, &how, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "limit");
  kiln_sequence_release(s);
  kiln_pipeline_release(four);
  assert_null(kiln_resident_free(kit.dispatcher, x));
  dispatch_kit_close(&kit);
}

// ---- The order of a replay ----

static uint32_t edges_of(kiln_sequence_t* s) {
  kiln_replay_t* replay = NULL;
  uint32_t count = 0;
  assert_null(kiln_sequence_instantiate(s, NULL, &replay));
  assert_null(kiln_graph_edges(kiln_replay_graph(replay), 0, NULL, &count));
  kiln_replay_release(replay);
  return count;
}

// Four lanes of two steps each, and one that reads all of them.
static void test_edges(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* step = dispatch_kit_pipeline(&kit, kStep, NULL);
  kiln_resident_t x = dispatch_kit_resident(&kit, 256, NULL);
  kiln_resident_t y = dispatch_kit_resident(&kit, 256, NULL);
  for (uint32_t order = 0; order < 2; order++) {
    kiln_sequence_t* s = NULL;
    kiln_sequence_options_t options = kiln_sequence_options_default();
    options.order = order;
    assert_null(kiln_sequence_create(kit.dispatcher, &options, &s));
    kiln_binding_t from = kiln_bind_resident(x);
    kiln_binding_t to = kiln_bind_resident(y);
    for (uint64_t i = 0; i < 4; i++) {
      kiln_binding_t part = kiln_bind_resident_range(x, i * 64, 64);
      assert_null(kiln_sequence_add_fill(s, &part, 1, 4, NULL));
      assert_null(kiln_sequence_add_dispatch(s, step, &part, 1, NULL, NULL));
    }
    assert_null(kiln_sequence_add_copy(s, &to, &from, NULL));
    assert_null(kiln_sequence_finish(s));
    // 4 within the lanes and 4 to the copy; or one behind the other.
    assert_int_equal(edges_of(s), 8);
    uint32_t count = 0;
    kiln_replay_t* replay = NULL;
    assert_null(kiln_sequence_instantiate(s, NULL, &replay));
    kiln_graph_node_t* nodes[9];
    assert_null(kiln_graph_nodes(kiln_replay_graph(replay), 9, nodes, &count));
    assert_int_equal(count, 9);
    assert_null(kiln_graph_node_before(nodes[8], 0, NULL, &count));
    assert_int_equal(count, order == 0 ? 4 : 1);
    assert_string_equal(kiln_graph_node_name(nodes[1]), "step");
    kiln_replay_release(replay);
    kiln_sequence_release(s);
  }
  kiln_pipeline_release(step);
  assert_null(kiln_resident_free(kit.dispatcher, x));
  assert_null(kiln_resident_free(kit.dispatcher, y));
  dispatch_kit_close(&kit);
}

// ---- Changes ----

// A change of values keeps the graph; one of the order makes it anew, and what
// ran before on another stream is in front of it.
// ---- Overlap by request ----

// What is asked for on streams is an edge of a replay, where one dispatch alone
// is waited for; nowhere else.
static void test_overlap(void** state) {
  (void)state;
  enum { STEPS = 6 };
  const uint32_t kTwo = 2;
  dispatch_kit_t kit;
  kiln_dispatch_options_t asks = kiln_dispatch_options_default();
  kiln_graph_edge_t edges[STEPS];
  kiln_replay_t* replay = NULL;
  uint32_t count = 0, early = 0, step = 0, got[N];
  dispatch_kit_open(&kit);
  asks.overlap = KILN_SWITCH_ON;
  kiln_pipeline_t* twice = dispatch_kit_pipeline(&kit, kStep, NULL);
  kiln_pipeline_t* four = dispatch_kit_pipeline(&kit, kFour, NULL);
  kiln_resident_t r[3], two = dispatch_kit_resident(&kit, 4, &kTwo);
  kiln_binding_t b[4];
  for (int i = 0; i < 3; i++) {
    r[i] = dispatch_kit_resident(&kit, sizeof(got), NULL);
    b[i == 2 ? 3 : i] = kiln_bind_resident(r[i]);
  }
  b[2] = kiln_bind_resident(two);
  kiln_sequence_t* s = begin(&kit);
  assert_null(kiln_sequence_add_fill(s, &b[0], 5, 4, NULL));
  assert_null(kiln_sequence_add_dispatch(s, twice, &b[0], 1, &asks, NULL));
  assert_null(kiln_sequence_add_dispatch(s, twice, &b[0], 1, &asks, NULL));
  assert_null(kiln_sequence_add_fill(s, &b[1], 3, 4, NULL));
  assert_null(kiln_sequence_add_dispatch(s, four, b, 4, &asks, NULL));
  assert_null(kiln_sequence_add_dispatch(s, twice, &b[3], 1, &asks, &step));
  assert_null(kiln_sequence_finish(s));
  assert_null(kiln_sequence_instantiate(s, NULL, &replay));
  assert_null(
      kiln_graph_edges(kiln_replay_graph(replay), STEPS, edges, &count));
  assert_int_equal(count, 5);
  for (uint32_t i = 0; i < count; i++) {
    if (edges[i].type != KILN_GRAPH_EDGE_PROGRAMMATIC) continue;
    early++;
    assert_int_equal(edges[i].from_port, KILN_GRAPH_PORT_TRIGGER);
    assert_string_equal(kiln_graph_node_name(edges[i].to), "step");
  }
  // Between the first two, and in front of the last one.
  assert_int_equal(early, 2);
  for (int way = 0; way < 3; way++) {
    if (way == 2) {
      // Its one edge stays what it is.
      kiln_binding_t half = kiln_bind_resident_range(r[2], 0, 2 * N);
      assert_null(kiln_replay_rebind(replay, step, 0, &half));
    }
    assert_null(way == 0 ? kiln_sequence_run(s, NULL, NULL)
                         : kiln_replay_run(replay, NULL, NULL));
    dispatch_kit_fetch(&kit, r[2], sizeof(got), got);
    for (uint32_t i = 0; i < N; i++) {
      assert_int_equal(got[i], way == 2 && i >= N / 2 ? 29 : 59);
    }
  }
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  kiln_pipeline_release(twice);
  kiln_pipeline_release(four);
  dispatch_kit_close(&kit);
}

// What is in front of a round is another round.
static void test_overlap_in_rounds(void** state) {
  (void)state;
  dispatch_kit_t kit;
  kiln_dispatch_options_t asks = kiln_dispatch_options_default();
  kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
  dispatch_kit_open(&kit);
  asks.overlap = KILN_SWITCH_ON;
  kiln_pipeline_t* twice = dispatch_kit_pipeline(&kit, kStep, NULL);
  kiln_resident_t r = dispatch_kit_resident(&kit, 4 * N, NULL);
  kiln_binding_t b = kiln_bind_resident_range(r, 0, 64);
  options.flag = kiln_bind_resident_range(r, 128, 4);
  options.limit = 2;
  for (int way = 0; way < 2; way++) {
    kiln_sequence_t* s = begin(&kit);
    kiln_prepared_t* prepared = NULL;
    assert_null(kiln_sequence_begin_fixpoint(s, &options, NULL));
    if (way == 0) {
      assert_null(kiln_sequence_add_dispatch(s, twice, &b, 1, &asks, NULL));
    } else {
      assert_null(kiln_pipeline_prepare(twice, &b, 1, &asks, &prepared));
      assert_null(kiln_sequence_add_prepared(s, prepared, NULL));
    }
    assert_null(kiln_sequence_end_body(s));
    assert_says(kiln_sequence_finish(s), KILN_STATUS_UNSUPPORTED,
                "`overlap` in the body of a fixpoint");
    kiln_prepared_release(prepared);
    kiln_sequence_release(s);
  }
  kiln_pipeline_release(twice);
  dispatch_kit_close(&kit);
}

static void test_changes(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* saxpy = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  float x[N], y[N], z[N];
  for (int i = 0; i < N; i++) x[i] = (float)i;
  memset(y, 0, sizeof(y));
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(y), y);
  kiln_resident_t rz = dispatch_kit_resident(&kit, sizeof(y), y);
  kiln_binding_t first[] = {kiln_bind_f32(2), kiln_bind_resident(rx),
                            kiln_bind_resident(ry)};
  kiln_binding_t second[] = {kiln_bind_f32(3), kiln_bind_resident(rx),
                             kiln_bind_resident(rz)};
  kiln_sequence_t* s = begin(&kit);
  kiln_replay_t* replay = NULL;
  kiln_stream_t* mine = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &mine));
  assert_null(kiln_sequence_add_dispatch(s, saxpy, first, 3, NULL, NULL));
  assert_null(kiln_sequence_add_dispatch(s, saxpy, second, 3, NULL, NULL));
  assert_null(kiln_sequence_finish(s));
  assert_null(kiln_sequence_instantiate(s, NULL, &replay));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  assert_null(kiln_replay_run(replay, mine, NULL));  // y 2x, z 3x
  kiln_graph_t* graph = kiln_replay_graph(replay);
  assert_null(
      kiln_replay_set_scalar(replay, 1, 0, kiln_bind_f32(4).value.bits));
  assert_null(kiln_replay_run(replay, mine, NULL));  // y 4x, z 7x
  assert_ptr_equal(kiln_replay_graph(replay), graph);
  // The second reads what the first writes now.
  assert_null(kiln_replay_rebind(replay, 1, 1, &first[2]));
  assert_null(kiln_replay_run(replay, NULL, NULL));  // y 6x, z 7x + 24x
  uint32_t edges = 0;
  assert_null(kiln_graph_edges(kiln_replay_graph(replay), 0, NULL, &edges));
  assert_int_equal(edges, 1);
  dispatch_kit_fetch(&kit, ry, sizeof(y), y);
  dispatch_kit_fetch(&kit, rz, sizeof(z), z);
  for (int i = 0; i < N; i++) {
    assert_true(y[i] == 6 * (float)i);
    assert_true(z[i] == 31 * (float)i);
  }
  // Refused: nothing has changed.
  kiln_binding_t bad = kiln_bind_u32(1);
  assert_says(kiln_replay_rebind(replay, 1, 1, &bad),
              KILN_STATUS_INVALID_ARGUMENT, "step 1 of \"list\"");
  assert_says(kiln_replay_rebind(replay, 9, 1, &bad),
              KILN_STATUS_INVALID_ARGUMENT, "not a dispatch");
  // The sequence has kept its own.
  assert_null(kiln_sequence_run(s, NULL, NULL));  // y 8x, z 34x
  dispatch_kit_fetch(&kit, rz, sizeof(z), z);
  for (int i = 0; i < N; i++) assert_true(z[i] == 34 * (float)i);
  // Freed: neither runs any more, until it is bound to something else.
  assert_null(kiln_resident_free(kit.dispatcher, rz));
  assert_says(kiln_sequence_run(s, NULL, NULL), KILN_STATUS_INVALID_STATE,
              "freed");
  assert_says(kiln_replay_run(replay, NULL, NULL), KILN_STATUS_INVALID_STATE,
              "step 1 of \"list\"");
  kiln_resident_t rw = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_binding_t other = kiln_bind_resident(rw);
  assert_null(kiln_replay_rebind(replay, 1, 2, &other));
  assert_null(kiln_replay_run(replay, NULL, NULL));
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  kiln_stream_release(mine);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  assert_null(kiln_resident_free(kit.dispatcher, ry));
  assert_null(kiln_resident_free(kit.dispatcher, rw));
  kiln_pipeline_release(saxpy);
  dispatch_kit_close(&kit);
}

// Sizes that change what there is to do: nothing, and zeroes to begin with.
static void test_sizes_change(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* even = dispatch_kit_pipeline(&kit, kEven, NULL);
  uint32_t y[N];
  memset(y, 0xee, sizeof(y));
  kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(y), y);
  kiln_binding_t bindings[] = {kiln_bind_u32(10), kiln_bind_resident(ry)};
  kiln_sequence_t* s = begin(&kit);
  kiln_replay_t* replay = NULL;
  assert_null(kiln_sequence_add_dispatch(s, even, bindings, 2, NULL, NULL));
  assert_null(kiln_sequence_finish(s));
  assert_null(kiln_sequence_instantiate(s, NULL, &replay));
  for (uint32_t n = 0; n <= 40; n += 20) {
    memset(y, 0xee, sizeof(y));
    assert_null(
        kiln_resident_upload(kit.dispatcher, NULL, ry, 0, sizeof(y), y));
    assert_null(kiln_replay_set_scalar(replay, 0, 0, n));
    assert_null(kiln_replay_run(replay, NULL, NULL));
    dispatch_kit_fetch(&kit, ry, sizeof(y), y);
    for (uint32_t i = 0; i < N; i++) {
      assert_int_equal(y[i], i >= n ? 0xeeeeeeee : i % 2 == 0 ? i + 1 : 0);
    }
  }
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  assert_null(kiln_resident_free(kit.dispatcher, ry));
  kiln_pipeline_release(even);
  dispatch_kit_close(&kit);
}

// ---- What a run costs ----

// The blocks that were ever allocated by 20 runs of a replay of `steps` steps.
static uint64_t blocks_of_runs(dispatch_kit_t* kit, kiln_pipeline_t* step,
                               kiln_resident_t x, uint32_t steps) {
  kiln_sequence_t* s = begin(kit);
  kiln_replay_t* replay = NULL;
  kiln_stream_t* mine = NULL;
  kiln_binding_t bound = kiln_bind_resident(x);
  assert_null(kiln_stream_create(kit->device, NULL, &mine));
  for (uint32_t i = 0; i < steps; i++) {
    assert_null(kiln_sequence_add_dispatch(s, step, &bound, 1, NULL, NULL));
  }
  assert_null(kiln_sequence_finish(s));
  assert_null(kiln_sequence_instantiate(s, NULL, &replay));
  assert_null(kiln_replay_run(replay, NULL, NULL));
  assert_null(kiln_replay_run(replay, mine, NULL));
  uint64_t before = kit->watch.total_blocks;
  for (int round = 0; round < 20; round++) {
    assert_null(kiln_replay_run(replay, round < 10 ? NULL : mine, NULL));
  }
  uint64_t blocks = kit->watch.total_blocks - before;
  assert_null(kiln_stream_synchronize(mine));
  assert_null(kiln_dispatcher_synchronize(kit->dispatcher));
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  kiln_stream_release(mine);
  return blocks;
}

static void test_runs_allocate_nothing(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* step = dispatch_kit_pipeline(&kit, kStep, NULL);
  kiln_resident_t x = dispatch_kit_resident(&kit, 64, NULL);
  assert_int_equal(blocks_of_runs(&kit, step, x, 2), 0);
  assert_int_equal(blocks_of_runs(&kit, step, x, 200), 0);
  kiln_pipeline_release(step);
  assert_null(kiln_resident_free(kit.dispatcher, x));
  dispatch_kit_close(&kit);
}

static kiln_status_t count_calls(void* user, kiln_cuda_table_t* inout_table) {
  KILNI_RETURN_IF_ERROR(
      kilni_table_cuda_fault_install(inout_table, inout_table));
  *(kiln_cuda_table_t*)user = *inout_table;
  return kiln_ok();
}

static void count_no_more(void* user, const kiln_cuda_table_t* table) {
  (void)user;
  kilni_table_cuda_fault_remove(table);
}

// The driver calls of one run, on its own stream and on another one, of a
// replay of so many steps, each behind the one before.
static void calls_of_runs(uint32_t steps, uint64_t out_calls[2]) {
  static kiln_cuda_table_t null_table;
  static kiln_cuda_table_t counted;
  dispatch_kit_t kit;
  memset(&kit, 0, sizeof(kit));
  kilni_runtime_hooks_t hooks = {0};
  kilni_table_cuda_table_null(&null_table);
  hooks.cuda_table = &null_table;
  hooks.wrap = count_calls;
  hooks.unwrap = count_no_more;
  hooks.user = &counted;
  assert_null(kilni_runtime_create_with(NULL, &hooks, &kit.runtime));
  assert_null(kiln_runtime_open_device(kit.runtime, "cuda:0", &kit.device));
  assert_null(kiln_dispatcher_create(kit.device, NULL, &kit.dispatcher));
  kiln_pipeline_t* step = dispatch_kit_pipeline(&kit, kStep, NULL);
  kiln_resident_t x = dispatch_kit_resident(&kit, 64, NULL);
  kiln_binding_t bound = kiln_bind_resident(x);
  kiln_sequence_t* s = begin(&kit);
  kiln_replay_t* replay = NULL;
  kiln_stream_t* mine = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &mine));
  for (uint32_t i = 0; i < steps; i++) {
    assert_null(kiln_sequence_add_dispatch(s, step, &bound, 1, NULL, NULL));
  }
  assert_null(kiln_sequence_finish(s));
  assert_null(kiln_sequence_instantiate(s, NULL, &replay));
  for (int i = 0; i < 2; i++) {
    kiln_stream_t* stream = i == 0 ? NULL : mine;
    assert_null(kiln_replay_run(replay, stream, NULL));
    kilni_table_cuda_fault_arm(&counted, 0, KILNI_FAULT_ONCE, 0);
    assert_null(kiln_replay_run(replay, stream, NULL));
    out_calls[i] = kilni_table_cuda_fault_disarm(&counted);
  }
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  kiln_stream_release(mine);
  kiln_pipeline_release(step);
  assert_null(kiln_resident_free(kit.dispatcher, x));
  kiln_dispatcher_release(kit.dispatcher);
  kiln_device_release(kit.device);
  kiln_runtime_release(kit.runtime);
}

// One driver call, however long the sequence.
static void test_calls_of_runs(void** state) {
  (void)state;
  const uint32_t kSteps[] = {1, 10, 1000};
  for (int i = 0; i < 3; i++) {
    uint64_t calls[2] = {0, 0};
    calls_of_runs(kSteps[i], calls);
    assert_int_equal(calls[0], 1);
    assert_int_equal(calls[1], 1);
  }
}

static void test_counts(void** state) {
  (void)state;
  dispatch_kit_t kit;
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  options.telemetry = KILN_SWITCH_ON;
  dispatch_kit_open_with(&kit, &options);
  list_t list;
  list_open(&list, &kit);
  kiln_replay_t* replay = NULL;
  assert_null(kiln_sequence_instantiate(list.sequence, NULL, &replay));
  for (int i = 0; i < 3; i++) {
    assert_null(kiln_replay_run(replay, NULL, NULL));
    if (i > 0) assert_null(kiln_sequence_run(list.sequence, NULL, NULL));
  }
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  kiln_telemetry_t t = kiln_telemetry_default();
  assert_null(kiln_telemetry_read(kit.dispatcher, &t));
  assert_int_equal(t.replay_runs, 3);
  assert_int_equal(t.sequence_runs, 2);
  assert_int_equal(t.prepared_runs, 2 * 4);
  kiln_replay_release(replay);
  list_close(&list, &kit);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_run),
      cmocka_unit_test(test_replay),
      cmocka_unit_test(test_order_of_calls),
      cmocka_unit_test(test_wrong_steps),
      cmocka_unit_test(test_edges),
      cmocka_unit_test(test_overlap),
      cmocka_unit_test(test_overlap_in_rounds),
      cmocka_unit_test(test_changes),
      cmocka_unit_test(test_sizes_change),
      cmocka_unit_test(test_runs_allocate_nothing),
      cmocka_unit_test(test_calls_of_runs),
      cmocka_unit_test(test_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
