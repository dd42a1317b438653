// SPDX-License-Identifier: Apache-2.0
//
// dispatch: telemetry: what is counted, exactly; and how it is written.
//
// With the arguments `prometheus` or `json` it writes a snapshot instead, with
// labels that need escaping, for telemetry_formats.py to read.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>

#include "dispatch_kit.h"
#include "dispatch/dispatch_counters.h"

enum { N = 1000, THREADS = 8, ROUNDS = 50 };

static void open_counting(dispatch_kit_t* kit) {
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  options.telemetry = KILN_SWITCH_ON;
  dispatch_kit_open_with(kit, &options);
}

static kiln_telemetry_t read_all(dispatch_kit_t* kit) {
  kiln_telemetry_t t = kiln_telemetry_default();
  assert_null(kiln_telemetry_read(kit->dispatcher, &t));
  return t;
}

static void assert_counters_zero(const kiln_telemetry_t* t) {
#define ZERO(NAME, field, what) assert_int_equal(t->field, 0);
  KILNI_TELEMETRY_COUNTERS(ZERO)
#undef ZERO
  assert_int_equal(t->measured_device_max_ns, 0);
}

static void assert_bad_argument(kiln_status_t status) {
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
}

// ---- What is counted ----

static void dispatch_host(kiln_pipeline_t* pipeline, float* x, float* y,
                          const kiln_dispatch_options_t* options) {
  kiln_pending_t* pending = NULL;
  kiln_binding_t bindings[] = {kiln_bind_f32(3),
                               kiln_bind_host_in(x, N * sizeof(float)),
                               kiln_bind_host_inout(y, N * sizeof(float))};
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, options, &pending));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
}

static void test_host_bytes(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_counting(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  static float x[N], y[N];
  dispatch_host(pipeline, x, y, NULL);
  kiln_telemetry_t t = read_all(&kit);
  const uint64_t bytes = N * sizeof(float);
  const kiln_pipeline_info_t* info = kiln_pipeline_info(pipeline);
  uint64_t per_block = (uint64_t)info->block[0] * info->work_per_thread[0];
  uint64_t blocks = (N + per_block - 1) / per_block;
  assert_int_equal(t.enabled, 1);
  assert_int_equal(t.dispatches, 1);
  assert_int_equal(t.launches, 1);
  assert_int_equal(t.uploads, 2);
  assert_int_equal(t.uploaded_bytes, 2 * bytes);
  assert_int_equal(t.downloads, 1);
  assert_int_equal(t.downloaded_bytes, bytes);
  assert_int_equal(t.staged_bytes, 3 * bytes);
  assert_int_equal(t.transient_bytes, 2 * bytes);
  assert_int_equal(t.transient_misses, 2);
  assert_int_equal(t.transient_hits, 0);
  assert_int_equal(t.work_items, N);
  assert_int_equal(t.launched_threads, blocks * info->block[0]);
  assert_int_equal(t.work_slots, blocks * per_block);
  assert_int_equal(t.cleared_bytes, 0);
  assert_int_equal(t.waits, 1);
  assert_int_equal(t.pipelines, 1);
  assert_int_equal(t.pipelines_alive, 1);
  assert_int_equal(t.pendings_alive, 0);
  assert_int_equal(t.traps, 0);
  assert_int_equal(t.timed_dispatches, 0);
  assert_true(t.pipeline_lower_ns > 0);
  assert_true(t.pipeline_load_ns > 0);
  assert_int_equal(t.pipeline_link_ns, 0);
  assert_int_equal(t.cached_pipelines + t.linked_pipelines, 0);
  // The memory was kept, and is used again.
  dispatch_host(pipeline, x, y, NULL);
  kiln_telemetry_t again = read_all(&kit);
  assert_int_equal(again.transient_hits, 2);
  assert_int_equal(again.transient_misses, 2);
  assert_int_equal(again.uploaded_bytes, 4 * bytes);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_resident_bytes(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_counting(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kEven, NULL);
  kiln_resident_t y = dispatch_kit_resident(&kit, N * 4, NULL);
  kiln_binding_t bindings[] = {kiln_bind_u32(N), kiln_bind_resident(y)};
  kiln_prepared_t* prepared = NULL;
  assert_null(kiln_pipeline_prepare(pipeline, bindings, 2, NULL, &prepared));
  for (int i = 0; i < 3; i++) assert_null(kiln_prepared_run(prepared, NULL));
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  kiln_telemetry_t t = read_all(&kit);
  assert_int_equal(t.residents, 1);
  assert_int_equal(t.resident_bytes, N * 4);
  assert_int_equal(t.resident_buffers, 1);
  assert_true(t.resident_held_bytes >= N * 4);
  assert_int_equal(t.prepared_runs, 3);
  assert_int_equal(t.dispatches, 1);
  assert_int_equal(t.launches, 4);
  assert_int_equal(t.work_items, 4 * N);
  // It does not write every element: each run clears all of it.
  assert_int_equal(t.cleared_bytes, 4 * N * 4);
  assert_int_equal(t.uploads + t.downloads + t.uploaded_bytes, 0);
  assert_int_equal(t.waits, 1);
  assert_true(t.wait_ns > 0);
  kiln_prepared_release(prepared);
  assert_null(kiln_resident_free(kit.dispatcher, y));
  kiln_pipeline_release(pipeline);
  t = read_all(&kit);
  assert_int_equal(t.resident_buffers, 0);
  assert_int_equal(t.residents, 1);
  assert_int_equal(t.pipelines_alive, 0);
  dispatch_kit_close(&kit);
}

// What a run of a sequence, or of a prepared dispatch, trapped in is counted
// when it is told and forgotten: once, whatever pendings have said before.
static void test_sequence_trap(void** state) {
  (void)state;
  const uint32_t kSeven[8] = {7};
  dispatch_kit_t kit;
  kiln_sequence_t* s = NULL;
  kiln_pending_t* pending = NULL;
  open_counting(&kit);
  kiln_pipeline_t* trapping = dispatch_kit_pipeline(&kit, kTrapping, NULL);
  kiln_binding_t pair[] = {
      kiln_bind_resident(dispatch_kit_resident(&kit, sizeof(kSeven), kSeven)),
      kiln_bind_resident(dispatch_kit_resident(&kit, sizeof(kSeven), NULL))};
  assert_null(kiln_sequence_create(kit.dispatcher, NULL, &s));
  assert_null(kiln_sequence_add_dispatch(s, trapping, pair, 2, NULL, NULL));
  assert_null(kiln_sequence_finish(s));
  for (uint64_t round = 1; round <= 2; round++) {
    for (int i = 0; i < 2; i++) {
      assert_null(kiln_sequence_run(s, NULL, &pending));
      assert_says(kiln_pending_wait(pending, KILN_PENDING_FOREVER),
                  KILN_STATUS_LAUNCH_FAILED, "trapped");
      kiln_pending_release(pending);
    }
    assert_says(kiln_sequence_check(s, NULL, NULL), KILN_STATUS_LAUNCH_FAILED,
                "trapped");
    assert_null(kiln_sequence_check(s, NULL, NULL));
    assert_int_equal(read_all(&kit).traps, round);
  }
  kiln_sequence_release(s);
  kiln_pipeline_release(trapping);
  dispatch_kit_close(&kit);
}

static void test_batch_trap_time(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_counting(&kit);
  kiln_pipeline_t* step = dispatch_kit_pipeline(&kit, kStep, NULL);
  kiln_pipeline_t* trapping = dispatch_kit_pipeline(&kit, kTrapping, NULL);
  uint32_t x[4][8];
  memset(x, 0, sizeof(x));
  kiln_binding_t bindings[4];
  for (int i = 0; i < 4; i++) {
    bindings[i] = kiln_bind_host_inout(x[i], sizeof(x[i]));
  }
  kiln_dispatch_batch_t batch = kiln_dispatch_batch_default();
  batch.binding_count = 1;
  batch.bindings = bindings;
  batch.count = 4;
  kiln_pending_t* pending = NULL;
  assert_null(kiln_pipeline_dispatch_batch(step, NULL, &batch, NULL, &pending));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
  kiln_telemetry_t t = read_all(&kit);
  assert_int_equal(t.batches, 1);
  assert_int_equal(t.dispatches, 4);
  assert_int_equal(t.launches, 4);
  // What a captured stream refuses was put on none.
  kiln_graph_builder_t* builder = NULL;
  kiln_stream_t* captured = NULL;
  assert_null(kiln_graph_builder_create(kit.device, NULL, &builder));
  assert_null(kiln_graph_builder_begin(builder, KILN_GRAPH_CAPTURE_RELAXED));
  assert_null(kiln_graph_builder_stream(builder, &captured));
  assert_says(kiln_pipeline_dispatch_batch(step, captured, &batch, NULL, NULL),
              KILN_STATUS_INVALID_STATE, "captured");
  kiln_graph_builder_release(builder);
  t = read_all(&kit);
  assert_int_equal(t.batches, 1);
  assert_int_equal(t.dispatches, 4);
  // A trap is counted once, however often it is asked for.
  uint32_t seven[8] = {7};
  kiln_binding_t pair[] = {kiln_bind_host_in(seven, sizeof(seven)),
                           kiln_bind_host_out(x, sizeof(seven))};
  kiln_dispatch_options_t timed = kiln_dispatch_options_default();
  timed.timed = KILN_SWITCH_ON;
  assert_null(
      kiln_pipeline_dispatch(trapping, NULL, pair, 2, &timed, &pending));
  for (int i = 0; i < 3; i++) {
    assert_says(kiln_pending_wait(pending, KILN_PENDING_FOREVER),
                KILN_STATUS_LAUNCH_FAILED, "trapped");
  }
  kiln_pending_times_t times;
  assert_null(kiln_pending_times(pending, &times));
  kiln_pending_release(pending);
  t = read_all(&kit);
  assert_int_equal(t.traps, 1);
  assert_int_equal(t.timed_dispatches, 1);
  assert_int_equal(t.timed_enqueue_ns, times.enqueue_ns);
  assert_int_equal(t.measured_dispatches, 1);
  assert_int_equal(t.measured_device_ns, times.device_ns);
  assert_int_equal(t.measured_device_max_ns, times.device_ns);
  kiln_pipeline_release(step);
  kiln_pipeline_release(trapping);
  dispatch_kit_close(&kit);
}

static void test_reset(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_counting(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  static float x[N], y[N];
  dispatch_host(pipeline, x, y, NULL);
  kiln_resident_t kept = dispatch_kit_resident(&kit, N * 4, x);
  kiln_telemetry_t before = read_all(&kit);
  kiln_telemetry_reset(kit.dispatcher);
  kiln_telemetry_t t = read_all(&kit);
  assert_counters_zero(&t);
  assert_int_equal(t.enabled, 1);
  // Nothing that is held was touched.
#define SAME(field, what) assert_int_equal(t.field, before.field);
  before.measured_device_max_ns = 0;
  KILNI_TELEMETRY_GAUGES(SAME)
  KILNI_TELEMETRY_CACHE(SAME)
#undef SAME
  dispatch_host(pipeline, x, y, NULL);
  t = read_all(&kit);
  assert_int_equal(t.dispatches, 1);
  assert_int_equal(t.transient_hits, 2);
  assert_int_equal(t.transient_misses, 0);
  assert_null(kiln_resident_free(kit.dispatcher, kept));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
  kiln_telemetry_reset(NULL);
}

static void test_off(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  static float x[N], y[N];
  dispatch_host(pipeline, x, y, NULL);
  kiln_telemetry_t t = read_all(&kit);
  assert_int_equal(t.enabled, 0);
  assert_counters_zero(&t);
  assert_int_equal(t.pipelines_alive, 1);
  assert_true(t.transient_held_bytes > 0);
  kiln_telemetry_reset(kit.dispatcher);
  kiln_pipeline_trace_t trace = kiln_pipeline_trace_default();
  assert_says(kiln_pipeline_trace(pipeline, &trace), KILN_STATUS_INVALID_STATE,
              "\"saxpy\"");
  assert_int_equal(trace.total_ns, 0);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_trace(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_counting(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  kiln_pipeline_trace_t trace = kiln_pipeline_trace_default();
  assert_null(kiln_pipeline_trace(pipeline, &trace));
  kiln_string_view_t text =
      kiln_program_code_text(kiln_pipeline_code(pipeline));
  assert_int_equal(trace.ptx_bytes, text.size);
  assert_int_equal(trace.code_bytes, text.size);
  assert_int_equal(trace.from_cache, 0);
  assert_int_equal(trace.link_ns, 0);
  assert_true(trace.lower_ns > 0 && trace.load_ns > 0);
  assert_true(trace.total_ns >= trace.lower_ns + trace.load_ns);
  kiln_telemetry_t t = read_all(&kit);
  assert_int_equal(t.pipeline_lower_ns, trace.lower_ns);
  assert_int_equal(t.pipeline_load_ns, trace.load_ns);
  assert_int_equal(t.pipeline_ptx_bytes, trace.ptx_bytes);
  assert_int_equal(t.pipeline_code_bytes, trace.code_bytes);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// ---- Structs of other versions ----

static void test_sizes(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_counting(&kit);
  struct {
    kiln_telemetry_t t;
    uint64_t later[2];
  } wide;
  memset(&wide, 0xee, sizeof(wide));
  wide.t.struct_size = sizeof(wide);
  assert_null(kiln_telemetry_read(kit.dispatcher, &wide.t));
  assert_int_equal(wide.t.struct_size, sizeof(wide));
  assert_int_equal(wide.later[0] | wide.later[1], 0);
  assert_int_equal(wide.t.enabled, 1);
  // None is smaller than that of the first version.
  memset(&wide, 0xee, sizeof(wide));
  wide.t.struct_size = sizeof(wide.t) - 8;
  assert_says(kiln_telemetry_read(kit.dispatcher, &wide.t),
              KILN_STATUS_INVALID_ARGUMENT, "struct_size");
  assert_int_equal(wide.t.resident_peak_bytes, 0xeeeeeeeeeeeeeeee);
  wide.t.struct_size = 0;
  assert_says(kiln_telemetry_read(kit.dispatcher, &wide.t),
              KILN_STATUS_INVALID_ARGUMENT, "struct_size");
  assert_bad_argument(kiln_telemetry_read(kit.dispatcher, NULL));
  wide.t = kiln_telemetry_default();
  assert_bad_argument(kiln_telemetry_read(NULL, &wide.t));
  assert_bad_argument(kiln_pipeline_trace(NULL, NULL));
  dispatch_kit_close(&kit);
}

// ---- Text ----

static void test_format(void** state) {
  (void)state;
  kiln_telemetry_t t = kiln_telemetry_default();
  kiln_telemetry_format_t format = kiln_telemetry_format_default();
  kiln_telemetry_label_t labels[] = {{"device", "a\"b\\c\nd"}};
  static char text[32768];
  size_t length = 0, whole = 0;
  t.uploads = 12;
  t.wait_ns = 1234567890123;
  assert_null(kiln_telemetry_format(&t, NULL, sizeof(text), text, &length));
  assert_int_equal(strlen(text), length);
  assert_non_null(strstr(text,
                         "# HELP kiln_uploads_total copies from the host\n"
                         "# TYPE kiln_uploads_total counter\n"
                         "kiln_uploads_total 12\n"));
  assert_non_null(strstr(text, "\nkiln_wait_seconds_total 1234.567890123\n"));
  assert_non_null(strstr(text, "# TYPE kiln_resident_held_bytes gauge\n"));
  format.labels = labels;
  format.label_count = 1;
  assert_null(kiln_telemetry_format(&t, &format, sizeof(text), text, NULL));
  assert_non_null(
      strstr(text, "\nkiln_uploads_total{device=\"a\\\"b\\\\c\\nd\"} 12\n"));
  // What does not fit is cut, and the length is that of the whole.
  assert_null(kiln_telemetry_format(&t, &format, 0, NULL, &whole));
  assert_null(kiln_telemetry_format(&t, &format, 10, text, &length));
  assert_int_equal(length, whole);
  assert_string_equal(text, "# HELP ki");
}

static void test_format_refused(void** state) {
  (void)state;
  static const char* const kNames[] = {"", "9a", "__a", "a-b", "a b", "\xc3"};
  kiln_telemetry_t t = kiln_telemetry_default();
  kiln_telemetry_format_t format = kiln_telemetry_format_default();
  kiln_telemetry_label_t labels[33];
  format.labels = labels;
  format.label_count = 1;
  labels[0].value = "x";
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); i++) {
    labels[0].name = kNames[i];
    assert_says(kiln_telemetry_format(&t, &format, 0, NULL, NULL),
                KILN_STATUS_INVALID_ARGUMENT, "as a telemetry label");
  }
  labels[0].name = "a";
  labels[1] = labels[0];
  format.label_count = 2;
  assert_says(kiln_telemetry_format(&t, &format, 0, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "two labels");
  format.label_count = 33;
  assert_says(kiln_telemetry_format(&t, &format, 0, NULL, NULL),
              KILN_STATUS_LIMIT_EXCEEDED, "33 labels");
  format.label_count = 0;
  format.format = 2;
  assert_bad_argument(kiln_telemetry_format(&t, &format, 0, NULL, NULL));
  assert_bad_argument(kiln_telemetry_format(NULL, NULL, 0, NULL, NULL));
  // A text of over a mebibyte is refused, not cut.
  static char huge[40000];
  memset(huge, 'x', sizeof(huge) - 1);
  format = kiln_telemetry_format_default();
  labels[0].value = huge;
  format.labels = labels;
  format.label_count = 1;
  kiln_status_t status = kiln_telemetry_format(&t, &format, 0, NULL, NULL);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  kiln_status_free(status);
}

// ---- Threads ----

// What eight threads do at once. thread-safe
typedef struct crowd_t {
  dispatch_kit_t kit;
  kiln_pipeline_t* step;
  pthread_barrier_t start;
} crowd_t;

static void* work(void* user) {
  crowd_t* crowd = user;
  uint32_t x[16];
  memset(x, 0, sizeof(x));
  kiln_telemetry_t t = kiln_telemetry_default();
  uint64_t last = 0, failed = 0;
  pthread_barrier_wait(&crowd->start);
  for (int i = 0; i < ROUNDS; i++) {
    kiln_binding_t binding = kiln_bind_host_inout(x, sizeof(x));
    kiln_pending_t* pending = NULL;
    kiln_status_t status =
        kiln_pipeline_dispatch(crowd->step, NULL, &binding, 1, NULL, &pending);
    failed += !kiln_status_is_ok(status);
    kiln_status_free(status);
    status = kiln_pending_wait(pending, KILN_PENDING_FOREVER);
    failed += !kiln_status_is_ok(status);
    kiln_status_free(status);
    kiln_pending_release(pending);
    // Read while the others count: never less than before.
    status = kiln_telemetry_read(crowd->kit.dispatcher, &t);
    failed += !kiln_status_is_ok(status) || t.dispatches < last;
    kiln_status_free(status);
    last = t.dispatches;
  }
  return failed == 0 ? NULL : crowd;
}

static void test_threads(void** state) {
  (void)state;
  static crowd_t crowd;
  pthread_t threads[THREADS];
  open_counting(&crowd.kit);
  crowd.step = dispatch_kit_pipeline(&crowd.kit, kStep, NULL);
  assert_int_equal(pthread_barrier_init(&crowd.start, NULL, THREADS), 0);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, work, &crowd), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void* answer = NULL;
    pthread_join(threads[i], &answer);
    assert_null(answer);
  }
  pthread_barrier_destroy(&crowd.start);
  kiln_telemetry_t t = read_all(&crowd.kit);
  // None is lost.
  assert_int_equal(t.dispatches, THREADS * ROUNDS);
  assert_int_equal(t.launches, THREADS * ROUNDS);
  assert_int_equal(t.waits, THREADS * ROUNDS);
  assert_int_equal(t.work_items, THREADS * ROUNDS * 16);
  assert_int_equal(t.uploaded_bytes, THREADS * ROUNDS * 64);
  assert_int_equal(t.downloaded_bytes, THREADS * ROUNDS * 64);
  assert_int_equal(t.transient_hits + t.transient_misses, THREADS * ROUNDS);
  kiln_pipeline_release(crowd.step);
  dispatch_kit_close(&crowd.kit);
}

// What threads count lies on lines of their own.
static void test_lines(void** state) {
  (void)state;
  assert_int_equal(sizeof(kilni_dispatch_counter_shard_t) % 64, 0);
  assert_int_equal(alignof(kilni_dispatch_counter_shard_t), 64);
  assert_int_equal(offsetof(kilni_dispatch_counters_t, longest_ns) % 64, 0);
}

// ---- For the readers of formats ----

static int print(const char* name) {
  kiln_telemetry_t t = kiln_telemetry_default();
  kiln_telemetry_format_t format = kiln_telemetry_format_default();
  const kiln_telemetry_label_t labels[] = {
      {"device", "soft"},
      {"quoted", "a \"b\" \\ {c=\"d\"} # e\nf\tg\x01"},
      {"text", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\xa5 \xff\xc3 \xed\xa0\x80"}};
  uint64_t value = 1;
  t.enabled = 1;
#define NUMBER(field, what) t.field = value++;
  KILNI_TELEMETRY_GAUGES(NUMBER)
  KILNI_TELEMETRY_CACHE(NUMBER)
#undef NUMBER
#define NUMBER(NAME, field, what) t.field = value++;
  KILNI_TELEMETRY_COUNTERS(NUMBER)
#undef NUMBER
  t.wait_ns = UINT64_MAX;
  format.format = strcmp(name, "json") == 0 ? KILN_TELEMETRY_JSON
                                            : KILN_TELEMETRY_PROMETHEUS;
  format.labels = labels;
  format.label_count = 3;
  static char text[1 << 16];
  size_t length = 0;
  kiln_status_t status =
      kiln_telemetry_format(&t, &format, sizeof(text), text, &length);
  bool ok = kiln_status_is_ok(status) && length < sizeof(text);
  kiln_status_free(status);
  return ok && fwrite(text, 1, length, stdout) == length ? 0 : 1;
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_host_bytes),
      cmocka_unit_test(test_resident_bytes),
      cmocka_unit_test(test_batch_trap_time),
      cmocka_unit_test(test_sequence_trap),
      cmocka_unit_test(test_reset),
      cmocka_unit_test(test_off),
      cmocka_unit_test(test_trace),
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_format),
      cmocka_unit_test(test_format_refused),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_lines),
  };
  if (argc == 2) return print(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
