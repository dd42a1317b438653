// SPDX-License-Identifier: Apache-2.0
//
// dispatch: which strategy a fixpoint gets, what is refused and why; drivers
// without WHILE nodes; changes between replays. What all strategies come to is
// in tests/live/live_fixpoint.c, which runs on soft, too.
#include "dispatch/sequence_build.h"
#include "dispatch/sequence_fixpoint.h"
#include "table/cuda_table.h"
#include "dispatch_kit.h"

enum { N = 100 };

static const char kCount[] =
    "program count(x: inout u32[], changed: inout u32[1], by: u32)\n"
    "  work length(x) block 32\n"
    "{ let i = global_id.x; let v = x[i]; let next = v - min(v, by);\n"
    "  x[i] = next; if next > 0 { changed[0] = 1; } }\n";
static const char kSparse[] =
    "program sparse(x: inout u32[], y: out u32[length(x)],\n"
    "    changed: out u32[1]) work length(x)\n"
    "{ let i = global_id.x; if x[i] > 0 { x[i] -= 1; y[i] = x[i];\n"
    "  changed[0] = 1; } }\n";

// One-thread.
typedef struct bench_t {
  dispatch_kit_t kit;
  kiln_resident_t x, y, flag;
} bench_t;

static void open_bench(bench_t* b) {
  static const uint32_t kZeroes[N] = {0};
  b->x = dispatch_kit_resident(&b->kit, 4 * N, kZeroes);
  b->y = dispatch_kit_resident(&b->kit, 4 * N, kZeroes);
  b->flag = dispatch_kit_resident(&b->kit, 4, kZeroes);
}

static void close_bench(bench_t* b) {
  assert_null(kiln_resident_free(b->kit.dispatcher, b->x));
  assert_null(kiln_resident_free(b->kit.dispatcher, b->y));
  assert_null(kiln_resident_free(b->kit.dispatcher, b->flag));
  dispatch_kit_close(&b->kit);
}

static kiln_sequence_t* begin(bench_t* b, uint32_t strategy) {
  kiln_sequence_t* s = NULL;
  kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
  options.strategy = strategy;
  options.limit = 50;
  options.flag = kiln_bind_resident(b->flag);
  assert_null(kiln_sequence_create(b->kit.dispatcher, NULL, &s));
  assert_null(kiln_sequence_begin_fixpoint(s, &options, NULL));
  return s;
}

static void add_count(bench_t* b, kiln_sequence_t* s, kiln_pipeline_t* count,
                      kiln_resident_t flag) {
  const kiln_binding_t bindings[] = {
      kiln_bind_resident(b->x), kiln_bind_resident(flag), kiln_bind_u32(1)};
  assert_null(kiln_sequence_add_dispatch(s, count, bindings, 3, NULL, NULL));
}

static kiln_sequence_step_t finish(kiln_sequence_t* s) {
  kiln_sequence_step_t step;
  assert_null(kiln_sequence_end_body(s));
  assert_null(kiln_sequence_finish(s));
  assert_true(kiln_sequence_step(s, 0, &step));
  return step;
}

static void run(bench_t* b, kiln_sequence_t* s, uint32_t from,
                uint32_t rounds) {
  uint32_t out[N], done = 0;
  kiln_resident_range_t all = {0, 0};
  kiln_pending_t* pending = NULL;
  assert_null(kiln_resident_fill(b->kit.dispatcher, NULL, b->x, all, from, 4));
  assert_null(kiln_sequence_run(s, NULL, &pending));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
  assert_null(kiln_sequence_rounds(s, 0, &done));
  assert_int_equal(done, rounds);
  dispatch_kit_fetch(&b->kit, b->x, sizeof(out), out);
  for (int i = 0; i < N; i++) assert_int_equal(out[i], 0);
}

// ---- A driver without WHILE nodes ----

static kiln_status_t hide_loops(void* user, kiln_cuda_table_t* inout_table) {
  (void)user;
  kilni_table_cuda_mark(inout_table,
                        KILNI_CUDA_ROW_cuGraphConditionalHandleCreate, false);
  return kiln_ok();
}

static void test_old_driver(void** state) {
  (void)state;
  bench_t b;
  memset(&b, 0, sizeof(b));
  fault_alloc_init(&b.kit.watch);
  b.kit.allocator = fault_alloc_allocator(&b.kit.watch);
  b.kit.own = kiln_allocator_libc();
  kilni_runtime_hooks_t hooks = {0};
  hooks.soft_allocator = &b.kit.own;
  hooks.wrap = hide_loops;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = &b.kit.allocator;
  assert_null(kilni_runtime_create_with(&options, &hooks, &b.kit.runtime));
  assert_null(kiln_runtime_open_device(b.kit.runtime, "soft", &b.kit.device));
  assert_null(kiln_dispatcher_create(b.kit.device, NULL, &b.kit.dispatcher));
  open_bench(&b);
  kiln_pipeline_t* count = dispatch_kit_pipeline(&b.kit, kCount, NULL);
  // Two dispatches: what is left is to poll, and both reasons are told.
  kiln_sequence_t* s = begin(&b, KILN_FIXPOINT_AUTO);
  add_count(&b, s, count, b.flag);
  add_count(&b, s, count, b.flag);
  kiln_sequence_step_t step = finish(s);
  assert_int_equal(step.strategy, KILN_FIXPOINT_POLL);
  assert_non_null(strstr(step.why, "COOPERATIVE: its body is more than one"));
  assert_non_null(strstr(step.why, "WHILE: "));
  // What the first one of a round leaves is told, and gone behind the second.
  run(&b, s, 10, 6);
  kiln_replay_t* replay = NULL;
  assert_says(kiln_sequence_instantiate(s, NULL, &replay),
              KILN_STATUS_UNSUPPORTED, "host");
  kiln_sequence_release(s);
  s = begin(&b, KILN_FIXPOINT_WHILE);
  add_count(&b, s, count, b.flag);
  assert_null(kiln_sequence_end_body(s));
  assert_says(kiln_sequence_finish(s), KILN_STATUS_UNSUPPORTED, "WHILE");
  kiln_sequence_release(s);
  s = begin(&b, KILN_FIXPOINT_AUTO);
  add_count(&b, s, count, b.flag);
  step = finish(s);
  assert_int_equal(step.strategy, KILN_FIXPOINT_COOPERATIVE);
  assert_null(step.why);
  run(&b, s, 10, 10);
  kiln_sequence_release(s);
  kiln_pipeline_release(count);
  close_bench(&b);
}

// ---- What one launch cannot do ----

static void refused(kiln_sequence_t* s, const char* why) {
  assert_null(kiln_sequence_end_body(s));
  assert_says(kiln_sequence_finish(s), KILN_STATUS_UNSUPPORTED, why);
  kiln_sequence_release(s);
}

static void test_refused(void** state) {
  (void)state;
  bench_t b;
  dispatch_kit_open(&b.kit);
  open_bench(&b);
  kiln_pipeline_options_t overlapping = kiln_pipeline_options_default();
  overlapping.overlapping = KILN_SWITCH_ON;
  kiln_pipeline_t* count = dispatch_kit_pipeline(&b.kit, kCount, NULL);
  kiln_pipeline_t* loose = dispatch_kit_pipeline(&b.kit, kCount, &overlapping);
  kiln_pipeline_t* sparse = dispatch_kit_pipeline(&b.kit, kSparse, NULL);
  kiln_resident_t other = dispatch_kit_resident(&b.kit, 4, "abcd");
  kiln_sequence_t* s = begin(&b, KILN_FIXPOINT_COOPERATIVE);
  add_count(&b, s, count, other);
  refused(s, "no parameter");
  s = begin(&b, KILN_FIXPOINT_COOPERATIVE);
  add_count(&b, s, loose, b.flag);
  refused(s, "overlap");
  s = begin(&b, KILN_FIXPOINT_COOPERATIVE);
  const kiln_binding_t place = kiln_bind_resident(b.y);
  assert_null(kiln_sequence_add_fill(s, &place, 0, 4, NULL));
  refused(s, "more than one dispatch");
  const kiln_binding_t bindings[] = {kiln_bind_resident(b.x),
                                     kiln_bind_resident(b.y),
                                     kiln_bind_resident(b.flag)};
  s = begin(&b, KILN_FIXPOINT_COOPERATIVE);
  assert_null(kiln_sequence_add_dispatch(s, sparse, bindings, 3, NULL, NULL));
  refused(s, "cleared before each round");
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  options.grid[0] = 4;
  s = begin(&b, KILN_FIXPOINT_COOPERATIVE);
  const kiln_binding_t counted[] = {bindings[0], bindings[2], kiln_bind_u32(1)};
  assert_null(kiln_sequence_add_dispatch(s, count, counted, 3, &options, NULL));
  refused(s, "number of blocks");
  // All of that is no hindrance to a WHILE node.
  s = begin(&b, KILN_FIXPOINT_AUTO);
  assert_null(kiln_sequence_add_dispatch(s, sparse, bindings, 3, NULL, NULL));
  kiln_sequence_step_t step = finish(s);
  assert_int_equal(step.strategy, KILN_FIXPOINT_WHILE);
  assert_non_null(strstr(step.why, "cleared"));
  run(&b, s, 4, 5);
  uint32_t y[N];
  dispatch_kit_fetch(&b.kit, b.y, sizeof(y), y);
  for (int i = 0; i < N; i++) assert_int_equal(y[i], 0);
  kiln_sequence_release(s);
  assert_null(kiln_resident_free(b.kit.dispatcher, other));
  kiln_pipeline_release(count);
  kiln_pipeline_release(loose);
  kiln_pipeline_release(sparse);
  close_bench(&b);
}

// ---- Changes between replays ----

static void test_changes(void** state) {
  (void)state;
  bench_t b;
  dispatch_kit_open(&b.kit);
  open_bench(&b);
  kiln_pipeline_t* count = dispatch_kit_pipeline(&b.kit, kCount, NULL);
  kiln_resident_t small = dispatch_kit_resident(&b.kit, 40, NULL);
  for (uint32_t how = KILN_FIXPOINT_COOPERATIVE; how <= KILN_FIXPOINT_WHILE;
       how++) {
    kiln_sequence_t* s = begin(&b, how);
    add_count(&b, s, count, b.flag);
    (void)finish(s);
    kiln_replay_t* replay = NULL;
    assert_null(kiln_sequence_instantiate(s, NULL, &replay));
    const kiln_binding_t places[] = {kiln_bind_resident(b.x),
                                     kiln_bind_resident(small)};
    for (uint32_t i = 0; i < 4; i++) {
      kiln_resident_t x = i % 2 == 0 ? b.x : small;
      kiln_resident_range_t all = {0, 0};
      uint32_t by = 1 + i / 2, done = 0, first = 1;
      assert_null(kiln_replay_rebind(replay, 1, 0, &places[i % 2]));
      assert_null(kiln_replay_set_scalar(replay, 1, 2, by));
      assert_null(kiln_resident_fill(b.kit.dispatcher, NULL, x, all, 12, 4));
      assert_null(kiln_replay_run(replay, NULL, NULL));
      assert_null(kiln_dispatcher_synchronize(b.kit.dispatcher));
      assert_null(kiln_replay_rounds(replay, 0, &done));
      assert_int_equal(done, 12 / by);
      dispatch_kit_fetch(&b.kit, x, 4, &first);
      assert_int_equal(first, 0);
    }
    kiln_replay_release(replay);
    kiln_sequence_release(s);
  }
  assert_null(kiln_resident_free(b.kit.dispatcher, small));
  kiln_pipeline_release(count);
  close_bench(&b);
}

// A graph of its own is launched by no capture: it is refused, and the capture
// goes on.
static void test_captured(void** state) {
  (void)state;
  bench_t b;
  dispatch_kit_open(&b.kit);
  open_bench(&b);
  kiln_pipeline_t* count = dispatch_kit_pipeline(&b.kit, kCount, NULL);
  for (uint32_t how = KILN_FIXPOINT_WHILE; how <= KILN_FIXPOINT_POLL; how++) {
    kiln_sequence_t* s = begin(&b, how);
    add_count(&b, s, count, b.flag);
    (void)finish(s);
    kiln_graph_builder_t* builder = NULL;
    kiln_stream_t* stream = NULL;
    assert_null(kiln_graph_builder_create(b.kit.device, NULL, &builder));
    assert_null(kiln_graph_builder_begin(builder, 0));
    assert_null(kiln_graph_builder_stream(builder, &stream));
    assert_says(kiln_sequence_run(s, stream, NULL), KILN_STATUS_INVALID_STATE,
                "captured");
    assert_null(kiln_graph_builder_end(builder));
    kiln_graph_builder_release(builder);
    kiln_sequence_release(s);
  }
  kiln_pipeline_release(count);
  close_bench(&b);
}

// What a replay refuses leaves it as it was: its flag is where it was, and it
// runs and changes as before.
static void test_flag_stays(void** state) {
  (void)state;
  bench_t b;
  dispatch_kit_open(&b.kit);
  open_bench(&b);
  kiln_pipeline_t* count = dispatch_kit_pipeline(&b.kit, kCount, NULL);
  kiln_resident_t other = dispatch_kit_resident(&b.kit, 4, "abcd");
  kiln_sequence_t* s = begin(&b, KILN_FIXPOINT_COOPERATIVE);
  add_count(&b, s, count, b.flag);
  (void)finish(s);
  kiln_replay_t* replay = NULL;
  assert_null(kiln_sequence_instantiate(s, NULL, &replay));
  const kiln_binding_t elsewhere = kiln_bind_resident(other);
  const kiln_binding_t same = kiln_bind_resident(b.flag);
  const kiln_binding_t x = kiln_bind_resident(b.x);
  kiln_resident_range_t all = {0, 0};
  for (uint32_t i = 0; i < 3; i++) {
    uint32_t done = 0, by = 1 + i;
    assert_says(kiln_replay_rebind(replay, 1, 1, &elsewhere),
                KILN_STATUS_UNSUPPORTED, "flag");
    assert_null(kiln_replay_set_scalar(replay, 1, 2, by));
    assert_null(kiln_replay_rebind(replay, 1, 0, &x));
    assert_null(kiln_replay_rebind(replay, 1, 1, &same));
    assert_null(kiln_resident_fill(b.kit.dispatcher, NULL, b.x, all, 12, 4));
    assert_null(kiln_replay_run(replay, NULL, NULL));
    assert_null(kiln_dispatcher_synchronize(b.kit.dispatcher));
    assert_null(kiln_replay_rounds(replay, 0, &done));
    assert_int_equal(done, 12 / by);
  }
  kiln_replay_release(replay);
  kiln_sequence_release(s);
  assert_null(kiln_resident_free(b.kit.dispatcher, other));
  kiln_pipeline_release(count);
  close_bench(&b);
}

// The limit of nodes is that of all graphs of a replay together, also where a
// fixpoint's own nodes are what passes it.
static void test_too_many_nodes(void** state) {
  (void)state;
  bench_t b;
  dispatch_kit_open(&b.kit);
  open_bench(&b);
  kiln_graph_t* graph = NULL;
  kiln_pipeline_t* count = dispatch_kit_pipeline(&b.kit, kCount, NULL);
  kiln_sequence_t* s = begin(&b, KILN_FIXPOINT_WHILE);
  add_count(&b, s, count, b.flag);
  (void)finish(s);
  for (uint32_t more = 0; more < 4; more++) {
    kilni_dispatch_build_t build = {&s->own, b.kit.allocator, 0, false};
    build.nodes = KILNI_SEQUENCE_NODES - 1 + more;
    assert_null(kiln_graph_create(b.kit.device, &graph));
    kiln_status_t status =
        kilni_dispatch_steps_build(&build, graph, 1, 2, NULL, 0, NULL);
    if (more == 0) {
      assert_null(status);
    } else {
      assert_says(status, KILN_STATUS_LIMIT_EXCEEDED, "more than 262144 nodes");
    }
    kiln_graph_release(graph);
  }
  kiln_sequence_release(s);
  kiln_pipeline_release(count);
  close_bench(&b);
}

// What was left out of a pipeline's code is left out of the rounds'.
static void test_without(void** state) {
  (void)state;
  static const char kFollow[] =
      "program follow(y: in u32[], x: inout u32[length(y)],\n"
      "    changed: inout u32[1]) work length(y) block 32\n"
      "{ let i = global_id.x; if x[i] < y[i] { x[i] += 1;\n"
      "  changed[0] = 1; } }\n";
  size_t lengths[2];
  bench_t b;
  dispatch_kit_open(&b.kit);
  open_bench(&b);
  for (int without = 0; without < 2; without++) {
    kiln_pipeline_options_t how = kiln_pipeline_options_default();
    if (without) how.without = KILN_PROGRAM_WITHOUT_SHARING;
    kiln_pipeline_t* follow = dispatch_kit_pipeline(&b.kit, kFollow, &how);
    const kiln_binding_t bindings[] = {kiln_bind_resident(b.y),
                                       kiln_bind_resident(b.x),
                                       kiln_bind_resident(b.flag)};
    kiln_sequence_t* s = begin(&b, KILN_FIXPOINT_COOPERATIVE);
    assert_null(kiln_sequence_add_dispatch(s, follow, bindings, 3, NULL, NULL));
    (void)finish(s);
    kiln_program_code_t* code = s->own.fixpoints[0]->code;
    lengths[without] = kiln_program_code_text(code).size;
    kiln_sequence_release(s);
    kiln_pipeline_release(follow);
  }
  // More is written where nothing is shared.
  assert_true(lengths[1] > lengths[0]);
  close_bench(&b);
}

// Runs on several streams share what is counted in: one behind the other.
static void test_streams(void** state) {
  (void)state;
  bench_t b;
  dispatch_kit_open_in(&b.kit, NULL, "latest");
  open_bench(&b);
  kiln_pipeline_t* count = dispatch_kit_pipeline(&b.kit, kCount, NULL);
  kiln_resident_range_t all = {0, 0};
  for (uint32_t how = KILN_FIXPOINT_COOPERATIVE; how <= KILN_FIXPOINT_POLL;
       how++) {
    kiln_sequence_t* s = begin(&b, how);
    add_count(&b, s, count, b.flag);
    (void)finish(s);
    assert_null(kiln_resident_fill(b.kit.dispatcher, NULL, b.x, all, 9, 4));
    assert_null(kiln_dispatcher_synchronize(b.kit.dispatcher));
    for (uint32_t i = 0; i < 3; i++) {
      kiln_stream_t* stream = NULL;
      assert_null(kiln_dispatcher_stream(
          b.kit.dispatcher, i % kiln_dispatcher_stream_count(b.kit.dispatcher),
          &stream));
      assert_null(kiln_sequence_run(s, stream, NULL));
    }
    assert_null(kiln_dispatcher_synchronize(b.kit.dispatcher));
    uint32_t done = 0;
    assert_null(kiln_sequence_rounds(s, 0, &done));
    // The last run found nothing to do.
    assert_int_equal(done, 1);
    kiln_sequence_release(s);
  }
  kiln_pipeline_release(count);
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_old_driver), cmocka_unit_test(test_refused),
      cmocka_unit_test(test_changes),    cmocka_unit_test(test_captured),
      cmocka_unit_test(test_flag_stays), cmocka_unit_test(test_too_many_nodes),
      cmocka_unit_test(test_without),    cmocka_unit_test(test_streams),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
