// SPDX-License-Identifier: Apache-2.0
//
// dispatch: pipelines, their bindings and what a dispatch does.
#include "dispatch_kit.h"

enum { N = 1000 };

static void fill_words(uint32_t* words, uint32_t count, uint32_t first) {
  for (uint32_t i = 0; i < count; i++) words[i] = first + i;
}

// ---- What a pipeline is ----

static void test_info(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  const kiln_pipeline_info_t* info = kiln_pipeline_info(pipeline);
  assert_string_equal(info->label, "saxpy");
  assert_int_equal(info->parameter_count, 3);
  assert_int_equal(info->work_dimensions, 1);
  assert_int_equal(info->cooperative, 0);
  assert_int_equal(info->grid_barrier, 0);
  assert_int_equal(info->traps, 0);
  assert_true(info->block[0] > 0);
  kiln_pipeline_parameter_t p;
  assert_true(kiln_pipeline_parameter(pipeline, 0, &p));
  assert_string_equal(p.name, "a");
  assert_int_equal(p.role, KILN_PROGRAM_ROLE_NONE);
  assert_int_equal(p.type, KILN_PROGRAM_TYPE_F32);
  assert_true(kiln_pipeline_parameter(pipeline, 2, &p));
  assert_string_equal(p.name, "y");
  assert_int_equal(p.role, KILN_PROGRAM_ROLE_INOUT);
  assert_int_equal(p.is_counted, 1);
  assert_false(kiln_pipeline_parameter(pipeline, 3, &p));
  assert_null(p.name);
  uint32_t index;
  assert_true(kiln_pipeline_find_parameter(pipeline, "x", &index));
  assert_int_equal(index, 1);
  assert_false(kiln_pipeline_find_parameter(pipeline, "q", &index));
  assert_int_equal(index, 0);
  assert_ptr_equal(kiln_pipeline_dispatcher(pipeline), kit.dispatcher);
  assert_non_null(kiln_pipeline_code(pipeline));
  assert_non_null(kiln_pipeline_kernel(pipeline));
  kiln_dispatcher_counts_t counts;
  kiln_dispatcher_counts(kit.dispatcher, &counts);
  assert_int_equal(counts.pipelines, 1);
  kiln_pipeline_release(pipeline);
  kiln_pipeline_t* meeting = dispatch_kit_pipeline(&kit, kMeeting, NULL);
  assert_int_equal(kiln_pipeline_info(meeting)->grid_barrier, 1);
  assert_int_equal(kiln_pipeline_info(meeting)->cooperative, 1);
  assert_true(kiln_dispatcher_has_grid_barrier(kit.dispatcher));
  kiln_pipeline_release(meeting);
  kiln_dispatcher_counts(kit.dispatcher, &counts);
  assert_int_equal(counts.pipelines, 0);
  dispatch_kit_close(&kit);
}

// ---- The kinds of bindings ----

static void check_saxpy(const float* y, float a) {
  for (uint32_t i = 0; i < N; i++) {
    assert_true(y[i] == a * (float)i + (float)(2 * i));
  }
}

static void test_host(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  float x[N], y[N];
  for (uint32_t i = 0; i < N; i++) {
    x[i] = (float)i;
    y[i] = (float)(2 * i);
  }
  kiln_binding_t bindings[] = {kiln_bind_f32(3),
                               kiln_bind_host_in(x, sizeof(x)),
                               kiln_bind_host_inout(y, sizeof(y))};
  kiln_pending_t* pending = NULL;
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, NULL, &pending));
  // The source may be changed at once.
  memset(x, 0xff, sizeof(x));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  check_saxpy(y, 3);
  bool ready = false;
  assert_null(kiln_pending_query(pending, &ready));
  assert_true(ready);
  assert_non_null(kiln_pending_event(pending));
  kiln_pending_release(pending);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_device_bindings(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  float x[N], y[N], out[N];
  for (uint32_t i = 0; i < N; i++) {
    x[i] = (float)i;
    y[i] = (float)(2 * i);
  }
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(y), y);
  kiln_binding_t bindings[] = {kiln_bind_f32(3), kiln_bind_resident(rx),
                               kiln_bind_resident(ry)};
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, NULL, NULL));
  dispatch_kit_fetch(&kit, ry, sizeof(out), out);
  check_saxpy(out, 3);
  // A buffer, with an offset, and a bare address.
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_buffer_create(kit.device, 256 + sizeof(y), NULL, &buffer));
  assert_null(kiln_buffer_write(buffer, 256, sizeof(y), y));
  uint64_t address = 0;
  assert_null(kiln_resident_address(kit.dispatcher, rx, &address));
  assert_true(address != 0);
  bindings[1] = kiln_bind_pointer(address, sizeof(x));
  bindings[2] = kiln_bind_buffer_range(buffer, 256, sizeof(y));
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, NULL, NULL));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  assert_null(kiln_buffer_read(buffer, 256, sizeof(out), out));
  check_saxpy(out, 3);
  kiln_buffer_release(buffer);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  assert_null(kiln_resident_free(kit.dispatcher, ry));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// "All of it" may be more than the pipeline takes; a range may not.
static void test_larger_buffers(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kEven, NULL);
  uint32_t words[16];
  memset(words, 0xee, sizeof(words));
  kiln_resident_t y = dispatch_kit_resident(&kit, sizeof(words), words);
  kiln_binding_t bindings[] = {kiln_bind_u32(8), kiln_bind_resident(y)};
  kiln_dispatch_plan_t plan;
  assert_null(kiln_pipeline_plan(pipeline, bindings, 2, NULL, &plan));
  assert_int_equal(plan.work[0], 8);
  assert_int_equal(plan.grid[0], 1);
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL));
  dispatch_kit_fetch(&kit, y, sizeof(words), words);
  for (uint32_t i = 0; i < 8; i++) {
    assert_int_equal(words[i], i % 2 == 0 ? i + 1 : 0);
  }
  for (uint32_t i = 8; i < 16; i++) assert_int_equal(words[i], 0xeeeeeeee);
  bindings[1] = kiln_bind_resident_range(y, 0, sizeof(words));
  assert_says(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "elements");
  bindings[1] = kiln_bind_resident_range(y, 0, 28);
  assert_says(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "elements");
  assert_null(kiln_resident_free(kit.dispatcher, y));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// ---- Outputs keep no stale bytes ----

static void check_even(const uint32_t* words, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(words[i], i % 2 == 0 ? i + 1 : 0);
  }
}

static void test_stale_bytes(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kEven, NULL);
  uint32_t words[N];
  kiln_resident_t y = dispatch_kit_resident(&kit, sizeof(words), NULL);
  kiln_resident_range_t all = {0, 0};
  assert_null(kiln_resident_fill(kit.dispatcher, NULL, y, all, 0xabababab, 4));
  kiln_binding_t bindings[] = {kiln_bind_u32(N), kiln_bind_resident(y)};
  kiln_dispatch_plan_t plan;
  assert_null(kiln_pipeline_plan(pipeline, bindings, 2, NULL, &plan));
  assert_int_equal(plan.cleared_bytes, sizeof(words));
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL));
  dispatch_kit_fetch(&kit, y, sizeof(words), words);
  check_even(words, N);
  // Host memory: a transient buffer that was full of other things.
  for (int round = 0; round < 3; round++) {
    memset(words, 0xcd, sizeof(words));
    bindings[1] = kiln_bind_host_out(words, sizeof(words));
    kiln_pending_t* pending = NULL;
    assert_null(
        kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, &pending));
    assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
    check_even(words, N);
  }
  // Unless the caller knows better.
  bindings[1] = kiln_bind_resident(y);
  assert_null(kiln_resident_fill(kit.dispatcher, NULL, y, all, 0xabababab, 4));
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  options.clear_outputs = KILN_SWITCH_OFF;
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, &options, NULL));
  dispatch_kit_fetch(&kit, y, sizeof(words), words);
  for (uint32_t i = 0; i < N; i++) {
    assert_int_equal(words[i], i % 2 == 0 ? i + 1 : 0xabababab);
  }
  assert_null(kiln_resident_free(kit.dispatcher, y));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// Which outputs need not be cleared, because every run writes all of them.
static void test_writes_all(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint32_t writes_all;  // of parameter "y"
  } kCases[] = {
      {"program p(x: in u32[], y: out u32[length(x)]) work length(x)\n"
       "{ let i = global_id.x; y[i] = x[i]; }",
       1},
      {"program p(x: in u32[], y: out u32[length(x)]) work length(y)\n"
       "{ y[global_id.x] = x[global_id.x]; }",
       1},
      {"program p(y: out u32[]) work length(y)\n"
       "{ let i = global_id.x; if i > 3u32 { y[0] = 1; } y[i] = i; }",
       1},
      {"program p(n: u32, y: out u32[n]) work n { y[global_id.x] = 1; }", 1},
      {"program p(y: out u32[64]) work 64 { y[u64(global_id.x)] = 1; }", 1},
      // Under a condition; not its own place; fewer or more than there is work.
      {"program p(n: u32, y: out u32[n]) work n\n"
       "{ let i = global_id.x; if i > 1u32 { y[i] = 1; } }",
       0},
      {"program p(n: u32, y: out u32[n]) work n { y[global_id.x + 1u32] = 1; }",
       0},
      {"program p(n: u32, m: u32, y: out u32[n]) work m { y[global_id.x] = 1; "
       "}",
       0},
      {"program p(y: out u32[64]) work 63 { y[global_id.x] = 1; }", 0},
      {"program p(y: out u32[64]) { y[global_id.x] = 1; }", 0},
      {"program p(y: out u32[64]) work (64, 2) { y[global_id.x] = 1; }", 0},
      {"program p(y: out u32[64]) work (8, 8) { y[global_id.y] = 1; }", 0},
      // It is read; a thread may leave before; another index by a name.
      {"program p(n: u32, y: out u32[n]) work n\n"
       "{ let i = global_id.x; let a = y[i + 1u32]; y[i] = a; }",
       0},
      {"program p(n: u32, y: out u32[n]) work n\n"
       "{ let i = global_id.x; if i == 2u32 { return; } y[i] = 1; }",
       0},
      {"program p(n: u32, y: out u32[n]) work n\n"
       "{ let i = global_id.x; if i == 2u32 { trap(1, 0u64); } y[i] = 1; }",
       0},
      {"program p(n: u32, y: out u32[n]) work n\n"
       "{ let i = n - 1u32 - global_id.x; y[i] = 1; }",
       0},
      {"program p(n: u32, y: out u32[n]) work n\n"
       "{ var i = global_id.x; i = 0; y[i] = 1; }",
       0},
      {"program p(n: u32, y: out u32[n]) work n\n"
       "{ let i = local_id.x; y[i] = 1; }",
       0},
      {"program p(n: u32, y: out u32[n]) work n\n"
       "{ let i = global_id.x; let a = atomic_add(y[i], 1u32); y[i] = a; }",
       0},
  };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    kiln_pipeline_t* pipeline =
        dispatch_kit_pipeline(&kit, kCases[i].text, NULL);
    kiln_pipeline_parameter_t p;
    uint32_t index;
    assert_true(kiln_pipeline_find_parameter(pipeline, "y", &index));
    assert_true(kiln_pipeline_parameter(pipeline, index, &p));
    if (p.writes_all != kCases[i].writes_all) {
      fail_msg("number %u: %s", (unsigned)i, kCases[i].text);
    }
    kiln_pipeline_release(pipeline);
  }
  // And none of what was there before stays.
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kCases[3].text, NULL);
  uint32_t words[N];
  memset(words, 0xee, sizeof(words));
  kiln_resident_t y = dispatch_kit_resident(&kit, sizeof(words), words);
  kiln_binding_t bindings[] = {kiln_bind_u32(N - 10), kiln_bind_resident(y)};
  kiln_dispatch_plan_t plan;
  assert_null(kiln_pipeline_plan(pipeline, bindings, 2, NULL, &plan));
  assert_int_equal(plan.cleared_bytes, 0);
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL));
  dispatch_kit_fetch(&kit, y, sizeof(words), words);
  for (uint32_t i = 0; i < N; i++) {
    assert_int_equal(words[i], i < N - 10 ? 1 : 0xeeeeeeee);
  }
  assert_null(kiln_resident_free(kit.dispatcher, y));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_no_work(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  float none[1];
  kiln_binding_t bindings[] = {kiln_bind_f32(3), kiln_bind_host_in(none, 0),
                               kiln_bind_pointer(0, 0)};
  kiln_pending_t* pending = NULL;
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, NULL, &pending));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// ---- Wrong bindings ----

static void test_wrong_bindings(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_t other;
  dispatch_kit_open(&kit);
  dispatch_kit_open(&other);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  float host[N];
  kiln_resident_t x = dispatch_kit_resident(&kit, sizeof(host), NULL);
  kiln_resident_t y = dispatch_kit_resident(&kit, sizeof(host), NULL);
  kiln_resident_t odd = dispatch_kit_resident(&kit, sizeof(host) - 2, NULL);
  kiln_resident_t foreign = dispatch_kit_resident(&other, sizeof(host), NULL);
  kiln_resident_t stale = dispatch_kit_resident(&kit, sizeof(host), NULL);
  assert_null(kiln_resident_free(kit.dispatcher, stale));
  kiln_resident_t none = {0};
  const struct {
    uint32_t index;
    kiln_binding_t binding;
    kiln_status_code_t code;
    const char* word;
  } kWrong[] = {
      {1, kiln_bind_resident(stale), KILN_STATUS_INVALID_ARGUMENT, "was freed"},
      {1, kiln_bind_resident(foreign), KILN_STATUS_INVALID_ARGUMENT,
       "not of this dispatcher"},
      {1, kiln_bind_resident(none), KILN_STATUS_INVALID_ARGUMENT, "none"},
      {1, kiln_bind_u32(1), KILN_STATUS_INVALID_ARGUMENT, "\"x\""},
      {0, kiln_bind_resident(x), KILN_STATUS_INVALID_ARGUMENT, "\"a\""},
      {0, kiln_bind_u32(1), KILN_STATUS_INVALID_ARGUMENT, "f32"},
      {2, kiln_bind_host_in(host, sizeof(host)), KILN_STATUS_INVALID_ARGUMENT,
       "only read"},
      {2, kiln_bind_host_out(host, sizeof(host)), KILN_STATUS_INVALID_ARGUMENT,
       "only written"},
      {1, kiln_bind_host_inout(host, sizeof(host)),
       KILN_STATUS_INVALID_ARGUMENT, "only read"},
      {1, kiln_bind_host_in(NULL, 4), KILN_STATUS_INVALID_ARGUMENT,
       "no memory"},
      {1, kiln_bind_static(host, sizeof(host)), KILN_STATUS_INVALID_ARGUMENT,
       "STATIC"},
      {1, kiln_bind_resident_range(x, 4, sizeof(host)),
       KILN_STATUS_OUT_OF_RANGE, "\"x\""},
      {1, kiln_bind_resident_range(x, 2, 400), KILN_STATUS_INVALID_ARGUMENT,
       "multiple"},
      {1, kiln_bind_resident_range(x, 0, 399), KILN_STATUS_INVALID_ARGUMENT,
       "whole"},
      // All of it, where nothing but its size says how many there are.
      {1, kiln_bind_resident(odd), KILN_STATUS_INVALID_ARGUMENT, "whole"},
      {1, kiln_bind_pointer(0, 400), KILN_STATUS_INVALID_ARGUMENT, "address 0"},
      {1, kiln_bind_buffer(NULL), KILN_STATUS_INVALID_ARGUMENT, "no buffer"},
      {1, kiln_bind_resident(y), KILN_STATUS_INVALID_ARGUMENT, "overlap"},
      {2, kiln_bind_resident_range(y, 0, 400), KILN_STATUS_INVALID_ARGUMENT,
       "elements"},
  };
  kiln_binding_t right[] = {kiln_bind_f32(3), kiln_bind_resident(x),
                            kiln_bind_resident(y)};
  for (size_t i = 0; i < sizeof(kWrong) / sizeof(kWrong[0]); i++) {
    kiln_binding_t bindings[3];
    memcpy(bindings, right, sizeof(bindings));
    bindings[kWrong[i].index] = kWrong[i].binding;
    kiln_pending_t* pending = (kiln_pending_t*)&kit;
    assert_says(
        kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, NULL, &pending),
        kWrong[i].code, kWrong[i].word);
    assert_null(pending);
  }
  assert_says(kiln_pipeline_dispatch(pipeline, NULL, right, 2, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "takes 3 bindings, not 2");
  kiln_binding_t zero;
  memset(&zero, 0, sizeof(zero));
  kiln_binding_t bindings[3] = {right[0], zero, right[2]};
  assert_says(kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "a binding of an unknown kind");
  kiln_stream_t* stream = NULL;
  assert_null(kiln_stream_create(other.device, NULL, &stream));
  assert_says(kiln_pipeline_dispatch(pipeline, stream, right, 3, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "stream");
  kiln_stream_release(stream);
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_buffer_create(other.device, sizeof(host), NULL, &buffer));
  bindings[1] = kiln_bind_buffer(buffer);
  assert_says(kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "\"x\"");
  kiln_buffer_release(buffer);
  assert_null(kiln_resident_free(other.dispatcher, foreign));
  assert_null(kiln_resident_free(kit.dispatcher, x));
  assert_null(kiln_resident_free(kit.dispatcher, odd));
  assert_null(kiln_resident_free(kit.dispatcher, y));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&other);
  dispatch_kit_close(&kit);
}

// Bytes that no memory can have are refused before anything is made of them.
static void test_far_bytes(void** state) {
  (void)state;
  static uint8_t bytes[16];
  static const char kBytes[] = "program bytes(x: in u8[], n: u32) work n { }\n";
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kBytes, NULL);
  const uint64_t kMost[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2};
  for (size_t i = 0; i < sizeof(kMost) / sizeof(kMost[0]); i++) {
    const kiln_binding_t far[] = {kiln_bind_host_in(bytes, kMost[i]),
                                  kiln_bind_pointer(4096, kMost[i])};
    for (int k = 0; k < 2; k++) {
      kiln_binding_t b[] = {far[k], kiln_bind_u32(1)};
      assert_says(kiln_pipeline_dispatch(pipeline, NULL, b, 2, NULL, NULL),
                  KILN_STATUS_INVALID_ARGUMENT, "more bytes than");
    }
    kiln_prepared_t* prepared = NULL;
    kiln_binding_t b[] = {kiln_bind_static(bytes, kMost[i]), kiln_bind_u32(1)};
    assert_says(kiln_pipeline_prepare(pipeline, b, 2, NULL, &prepared),
                KILN_STATUS_INVALID_ARGUMENT, "more bytes than");
  }
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_overlapping(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_options_t how = kiln_pipeline_options_default();
  how.overlapping = KILN_SWITCH_ON;
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, &how);
  float x[N];
  for (uint32_t i = 0; i < N; i++) x[i] = (float)i;
  kiln_resident_t y = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_binding_t bindings[] = {kiln_bind_f32(2), kiln_bind_resident(y),
                               kiln_bind_resident(y)};
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, NULL, NULL));
  dispatch_kit_fetch(&kit, y, sizeof(x), x);
  for (uint32_t i = 0; i < N; i++) assert_true(x[i] == 3 * (float)i);
  assert_null(kiln_resident_free(kit.dispatcher, y));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// A barrier in a loop whose end is read: threads that read different ends would
// meet at it different numbers of times.
static void test_overlapping_ends_of_loops(void** state) {
  (void)state;
  static const char kLoop[] =
      "program grow(ends: in u32[], x: in u32[], y: inout u32[])\n"
      "  work length(y) block 64 {\n"
      "  for k in 0..ends[0] {\n"
      "    let i = global_id.x;\n"
      "    if i < length(y) { y[i] = y[i] + x[0]; }\n"
      "    barrier;\n  }\n}\n";
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_options_t how = kiln_pipeline_options_default();
  how.overlapping = KILN_SWITCH_ON;
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kLoop, &how);
  uint32_t ones[N];
  for (uint32_t i = 0; i < N; i++) ones[i] = 1;
  kiln_resident_t one = dispatch_kit_resident(&kit, sizeof(ones), ones);
  kiln_resident_t y = dispatch_kit_resident(&kit, sizeof(ones), ones);
  kiln_prepared_t* prepared = NULL;
  // `ends` on `y` is refused, by each way; `x` on `y` is not.
  kiln_binding_t wrong[] = {kiln_bind_resident(y), kiln_bind_resident(one),
                            kiln_bind_resident(y)};
  assert_says(kiln_pipeline_dispatch(pipeline, NULL, wrong, 3, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "\"y\" and \"ends\"");
  assert_says(kiln_pipeline_prepare(pipeline, wrong, 3, NULL, &prepared),
              KILN_STATUS_INVALID_ARGUMENT, "\"y\" and \"ends\"");
  assert_null(prepared);
  uint32_t now[N];
  dispatch_kit_fetch(&kit, y, sizeof(now), now);
  assert_memory_equal(now, ones, sizeof(now));
  kiln_binding_t right[] = {kiln_bind_resident(one), kiln_bind_resident(y),
                            kiln_bind_resident(y)};
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, right, 3, NULL, NULL));
  dispatch_kit_fetch(&kit, y, sizeof(now), now);
  assert_true(now[0] == 2);
  assert_null(kiln_resident_free(kit.dispatcher, one));
  assert_null(kiln_resident_free(kit.dispatcher, y));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// ---- Options ----

static void test_options(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  // One element a thread, so that one block is not enough.
  kiln_pipeline_options_t how = kiln_pipeline_options_default();
  how.without = KILN_PROGRAM_WITHOUT_VECTORS;
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, &how);
  float y[N] = {0};
  kiln_resident_t x = dispatch_kit_resident(&kit, sizeof(y), y);
  kiln_binding_t bindings[] = {kiln_bind_f32(3), kiln_bind_resident(x),
                               kiln_bind_host_inout(y, sizeof(y))};
  enum { CASES = 13 };
  kiln_dispatch_options_t o[CASES];
  for (int i = 0; i < CASES; i++) o[i] = kiln_dispatch_options_default();
  const struct {
    kiln_status_code_t code;
    const char* word;
  } kSays[CASES] = {
      {KILN_STATUS_INVALID_ARGUMENT, "max_ulp"},
      {KILN_STATUS_UNSUPPORTED, "profile"},
      {KILN_STATUS_UNSUPPORTED, "speculation"},
      {KILN_STATUS_UNSUPPORTED, "persistent"},
      {KILN_STATUS_UNSUPPORTED, "block"},
      {KILN_STATUS_INVALID_ARGUMENT, "grid"},
      {KILN_STATUS_INVALID_ARGUMENT, "work"},
      {KILN_STATUS_LIMIT_EXCEEDED, "max_output_bytes"},
      {KILN_STATUS_UNSUPPORTED, "overlap"},
      {KILN_STATUS_INVALID_ARGUMENT, "clear_outputs"},
      {KILN_STATUS_INVALID_ARGUMENT, "speculation"},
      {KILN_STATUS_LIMIT_EXCEEDED, "grid.y"},
      {KILN_STATUS_INVALID_ARGUMENT, "waits"},
  };
  o[0].max_ulp = 4;
  o[1].profile = "h100";
  o[2].speculation = KILN_DISPATCH_FORCE;
  o[3].persistent = KILN_DISPATCH_FORCE;
  o[4].block[0] = 77;
  o[5].grid[0] = 1;
  o[6].work[0] = N;
  o[7].max_output_bytes = sizeof(y) - 1;
  o[8].overlap = o[8].cooperative = KILN_SWITCH_ON;
  o[9].clear_outputs = 3;
  o[10].speculation = 3;
  o[11].grid[1] = 1u << 31;
  o[12].wait_count = 1;
  for (int i = 0; i < CASES; i++) {
    kiln_status_t status =
        kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, &o[i], NULL);
    // Switches out of their range are breaches of the contract, without a fix.
    if (i == 9 || i == 10 || i == 12) {
      assert_int_equal(kiln_status_code(status), kSays[i].code);
      assert_non_null(strstr(kiln_status_message(status), kSays[i].word));
      kiln_status_free(status);
      continue;
    }
    assert_says(status, kSays[i].code, kSays[i].word);
  }
  // What is applied: strict, labels, one block more than needed, events, time.
  kiln_event_t* first = NULL;
  kiln_event_t* last = NULL;
  assert_null(kiln_event_create(kit.device, NULL, &first));
  assert_null(kiln_event_create(kit.device, NULL, &last));
  kiln_dispatch_options_t good = kiln_dispatch_options_default();
  good.max_ulp = KILN_DISPATCH_STRICT;
  good.label = "labelled";
  good.grid[0] = 64;
  good.speculation = KILN_DISPATCH_OFF;
  good.persistent = KILN_DISPATCH_OFF;
  good.cooperative = KILN_SWITCH_ON;
  good.timed = KILN_SWITCH_ON;
  good.waits = &first;
  good.wait_count = 1;
  good.record = last;
  good.max_output_bytes = sizeof(y);
  good.timeout_ns = 60000000000u;
  kiln_dispatch_plan_t plan;
  assert_null(kiln_pipeline_plan(pipeline, bindings, 3, &good, &plan));
  assert_int_equal(plan.grid[0], 64);
  assert_int_equal(plan.cooperative, 1);
  assert_int_equal(plan.upload_bytes, sizeof(y));
  assert_int_equal(plan.download_bytes, sizeof(y));
  kiln_pending_t* pending = NULL;
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 3, &good, &pending));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  assert_null(kiln_event_synchronize(last));
  kiln_pending_times_t times;
  assert_null(kiln_pending_times(pending, &times));
  assert_true(times.enqueue_ns > 0);
  kiln_pending_release(pending);
  kiln_event_release(first);
  kiln_event_release(last);
  assert_null(kiln_resident_free(kit.dispatcher, x));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_iterations(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kStep, NULL);
  uint32_t x[N] = {0};
  kiln_binding_t binding = kiln_bind_host_inout(x, sizeof(x));
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  options.iterations = 5;
  kiln_pending_t* pending = NULL;
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, &options, &pending));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_times_t times;
  assert_says(kiln_pending_times(pending, &times), KILN_STATUS_INVALID_STATE,
              "time");
  kiln_pending_release(pending);
  for (uint32_t i = 0; i < N; i++) assert_int_equal(x[i], 31);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_open_work(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kOpen, NULL);
  uint32_t y[100] = {0};
  kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(y), y);
  kiln_binding_t binding = kiln_bind_resident(ry);
  assert_int_equal(kiln_pipeline_info(pipeline)->work_dimensions, 0);
  assert_says(kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "work size");
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  options.work[0] = 40;
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, &options, NULL));
  options.work[0] = 0;
  options.grid[0] = 2;
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, &options, NULL));
  dispatch_kit_fetch(&kit, ry, sizeof(y), y);
  for (uint32_t i = 0; i < 100; i++) {
    assert_int_equal(y[i], i < 40 ? 2 : i < 64 ? 1 : 0);
  }
  assert_null(kiln_resident_free(kit.dispatcher, ry));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// ---- Traps, grid barriers, time limits ----

static void test_trap(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kTrapping, NULL);
  assert_int_equal(kiln_pipeline_info(pipeline)->traps, 1);
  uint32_t x[N], y[N];
  fill_words(x, N, 100);
  x[300] = 7;
  kiln_binding_t bindings[] = {kiln_bind_host_in(x, sizeof(x)),
                               kiln_bind_host_out(y, sizeof(y))};
  kiln_pending_t* pending = NULL;
  kiln_trap_t trap;
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, &pending));
  assert_says(kiln_pending_wait(pending, KILN_PENDING_FOREVER),
              KILN_STATUS_LAUNCH_FAILED, "tag 3 and address 0x12c");
  // Told as often as it is asked.
  bool ready = false;
  assert_says(kiln_pending_query(pending, &ready), KILN_STATUS_LAUNCH_FAILED,
              "trapping");
  assert_true(ready);
  assert_true(kiln_pending_trap(pending, &trap));
  assert_int_equal(trap.tag, 3);
  assert_int_equal(trap.address, 300);
  assert_int_equal(trap.block[0], 300 / kiln_pipeline_info(pipeline)->block[0]);
  kiln_pending_release(pending);
  // The device goes on, and the record is clean again.
  x[300] = 8;
  for (int i = 0; i < 3; i++) {
    assert_null(
        kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, &pending));
    assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    assert_false(kiln_pending_trap(pending, &trap));
    assert_int_equal(trap.tag, 0);
    kiln_pending_release(pending);
    assert_memory_equal(x, y, sizeof(x));
  }
  // Without a pending it is told to nobody, and harms nobody.
  x[300] = 7;
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_grid_barrier(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kMeeting, NULL);
  enum { M = 128 };
  uint32_t y[M];
  kiln_resident_t x = dispatch_kit_resident(&kit, sizeof(y), NULL);
  kiln_stream_t* stream = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &stream));
  kiln_binding_t bindings[] = {kiln_bind_resident(x),
                               kiln_bind_host_out(y, sizeof(y))};
  for (int i = 0; i < 3; i++) {
    kiln_pending_t* pending = NULL;
    memset(y, 0xff, sizeof(y));
    assert_null(kiln_pipeline_dispatch(pipeline, i == 1 ? stream : NULL,
                                       bindings, 2, NULL, &pending));
    assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
    for (uint32_t k = 0; k < M; k++) assert_int_equal(y[k], M - 1 - k);
  }
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  options.cooperative = KILN_SWITCH_OFF;
  assert_says(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, &options, NULL),
      KILN_STATUS_INVALID_ARGUMENT, "grid barrier");
  // Blocks that cannot all run at once are refused before the launch.
  enum { HUGE_COUNT = 4 << 20 };
  kiln_resident_t big =
      dispatch_kit_resident(&kit, (uint64_t)HUGE_COUNT * 4, NULL);
  kiln_resident_t out =
      dispatch_kit_resident(&kit, (uint64_t)HUGE_COUNT * 4, NULL);
  bindings[0] = kiln_bind_resident(big);
  bindings[1] = kiln_bind_resident(out);
  kiln_dispatch_plan_t plan;
  kiln_status_t status = kiln_pipeline_plan(pipeline, bindings, 2, NULL, &plan);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  kiln_status_free(status);
  assert_null(kiln_resident_free(kit.dispatcher, x));
  assert_null(kiln_resident_free(kit.dispatcher, big));
  assert_null(kiln_resident_free(kit.dispatcher, out));
  kiln_stream_release(stream);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// The device does nothing before somebody waits for it: the limit passes.
static void test_time_limit(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open_in(&kit, NULL, "latest");
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kTrapping, NULL);
  kiln_resident_t x = dispatch_kit_resident(&kit, 64, NULL);
  kiln_resident_t y = dispatch_kit_resident(&kit, 64, NULL);
  kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(y)};
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  kiln_pending_t* pending = NULL;
  bool ready = true;
  // Patience is not a limit: the work can be waited for again.
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, &pending));
  assert_null(kiln_pending_query(pending, &ready));
  assert_false(ready);
  kiln_trap_t trap;
  assert_false(kiln_pending_trap(pending, &trap));
  kiln_pending_release(pending);
  options.timeout_ns = 1;
  options.label = "slow";
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, &options, &pending));
  assert_says(kiln_pending_query(pending, &ready), KILN_STATUS_DEVICE_LOST,
              "\"slow\" had not finished");
  assert_true(ready);
  kiln_status_t status = kiln_pending_wait(pending, KILN_PENDING_FOREVER);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_DEVICE_LOST);
  kiln_status_free(status);
  status = kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_DEVICE_LOST);
  kiln_status_free(status);
  status = kiln_resident_free(kit.dispatcher, x);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_DEVICE_LOST);
  kiln_status_free(status);
  kiln_pending_release(pending);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// ---- Streams ----

static void test_streams(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kStep, NULL);
  uint32_t x[N] = {0};
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_binding_t binding = kiln_bind_resident(rx);
  kiln_stream_t* mine = NULL;
  kiln_stream_t* own = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &mine));
  assert_null(kiln_dispatcher_stream(kit.dispatcher, 0, &own));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  // Behind each other through an event, mine, then that of NULL.
  assert_null(kiln_pipeline_dispatch(pipeline, mine, &binding, 1, NULL, NULL));
  assert_null(kiln_stream_wait_stream(own, mine));
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, NULL, NULL));
  dispatch_kit_fetch(&kit, rx, sizeof(x), x);
  for (uint32_t i = 0; i < N; i++) assert_int_equal(x[i], 3);
  assert_int_equal(kiln_dispatcher_stream_count(kit.dispatcher), 4);
  kiln_stream_t* none = mine;
  assert_says(kiln_dispatcher_stream(kit.dispatcher, 4, &none),
              KILN_STATUS_OUT_OF_RANGE, "4");
  assert_null(none);
  // Freed while it is in use: behind that, without waiting.
  for (int i = 0; i < 4; i++) {
    assert_null(
        kiln_pipeline_dispatch(pipeline, mine, &binding, 1, NULL, NULL));
  }
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  assert_says(kiln_pipeline_dispatch(pipeline, mine, &binding, 1, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "was freed");
  assert_null(kiln_stream_synchronize(mine));
  kiln_stream_release(mine);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// Memory that is pageable cannot go into a graph, nor can a pending.
static void test_capture(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kStep, NULL);
  uint32_t x[N] = {0};
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  kiln_stream_t* stream = NULL;
  kiln_graph_builder_t* builder = NULL;
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &stream));
  kiln_graph_builder_options_t how = kiln_graph_builder_options_default();
  how.stream = stream;
  assert_null(kiln_graph_builder_create(kit.device, &how, &builder));
  assert_null(kiln_graph_builder_begin(builder, 0));
  kiln_binding_t host = kiln_bind_host_inout(x, sizeof(x));
  kiln_binding_t binding = kiln_bind_resident(rx);
  kiln_pending_t* pending = NULL;
  assert_says(kiln_pipeline_dispatch(pipeline, stream, &host, 1, NULL, NULL),
              KILN_STATUS_INVALID_STATE, "host memory (");
  assert_says(
      kiln_pipeline_dispatch(pipeline, stream, &binding, 1, NULL, &pending),
      KILN_STATUS_INVALID_STATE, "a pending (");
  // What can trap is prepared, as the Fix says.
  kiln_prepared_t* prepared = NULL;
  kiln_pipeline_t* traps = dispatch_kit_pipeline(
      &kit,
      "program careful(x: inout u32[]) work length(x)\n"
      "{ let i = global_id.x; if x[i] > 9 { trap(1, 2u64); } }\n",
      NULL);
  assert_says(kiln_pipeline_dispatch(traps, stream, &binding, 1, NULL, NULL),
              KILN_STATUS_INVALID_STATE, "code that can trap (");
  assert_null(kiln_pipeline_prepare(traps, &binding, 1, NULL, &prepared));
  assert_null(kiln_prepared_run(prepared, stream));
  assert_null(
      kiln_pipeline_dispatch(pipeline, stream, &binding, 1, NULL, NULL));
  assert_null(kiln_graph_builder_end(builder));
  assert_null(kiln_graph_builder_exec(builder, NULL, &exec));
  for (int i = 0; i < 3; i++) {
    assert_null(kiln_graph_exec_launch(exec, stream));
  }
  assert_null(kiln_stream_synchronize(stream));
  dispatch_kit_fetch(&kit, rx, sizeof(x), x);
  for (uint32_t i = 0; i < N; i++) assert_int_equal(x[i], 7);
  kiln_graph_exec_release(exec);
  kiln_graph_builder_release(builder);
  kiln_prepared_release(prepared);
  kiln_pipeline_release(traps);
  kiln_stream_release(stream);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// A builder's own stream takes no work when its capture has ended: what was
// dispatched to it is no hindrance to freeing, nor to waiting for all.
static void test_captured_by_builder(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kStep, NULL);
  uint32_t x[N] = {0};
  for (uint32_t round = 0; round < 2; round++) {
    kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
    kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(x), x);
    kiln_binding_t binding = kiln_bind_resident(rx);
    kiln_graph_builder_t* builder = NULL;
    kiln_stream_t* stream = NULL;
    assert_null(kiln_graph_builder_create(kit.device, NULL, &builder));
    assert_null(kiln_graph_builder_begin(builder, 0));
    assert_null(kiln_graph_builder_stream(builder, &stream));
    assert_null(
        kiln_pipeline_dispatch(pipeline, stream, &binding, 1, NULL, NULL));
    assert_null(kiln_graph_builder_end(builder));
    if (round == 0) kiln_graph_builder_release(builder);
    assert_null(kiln_resident_free(kit.dispatcher, ry));
    assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
    assert_null(kiln_dispatcher_clean(kit.dispatcher));
    if (round != 0) kiln_graph_builder_release(builder);
    assert_null(kiln_resident_free(kit.dispatcher, rx));
  }
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// ---- Batches ----

static void test_batch(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  enum { LANES = 10, WORDS = 300 };
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kStep, NULL);
  static uint32_t x[LANES][WORDS];
  kiln_binding_t bindings[LANES];
  for (uint32_t i = 0; i < LANES; i++) {
    for (uint32_t k = 0; k < WORDS; k++) x[i][k] = i * 1000 + k;
    bindings[i] = kiln_bind_host_inout(x[i], sizeof(x[i]));
  }
  kiln_dispatch_batch_t batch = kiln_dispatch_batch_default();
  batch.binding_count = 1;
  batch.bindings = bindings;
  batch.count = LANES;
  const uint32_t kWidths[] = {0, 1, 3};
  uint32_t want = 1;
  for (int round = 0; round < 3; round++) {
    kiln_pending_t* pending = NULL;
    batch.streams = kWidths[round];
    assert_null(
        kiln_pipeline_dispatch_batch(pipeline, NULL, &batch, NULL, &pending));
    assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
    want *= 2;
    for (uint32_t i = 0; i < LANES; i++) {
      for (uint32_t k = 0; k < WORDS; k++) {
        assert_int_equal(x[i][k], (i * 1000 + k) * want + want - 1);
      }
    }
  }
  // All are checked before the first: the number is told.
  bindings[7] = kiln_bind_host_inout(x[7], 3);
  uint32_t before = x[0][5];
  assert_says(kiln_pipeline_dispatch_batch(pipeline, NULL, &batch, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "number 7");
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  assert_int_equal(x[0][5], before);
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  options.timed = KILN_SWITCH_ON;
  assert_says(
      kiln_pipeline_dispatch_batch(pipeline, NULL, &batch, &options, NULL),
      KILN_STATUS_UNSUPPORTED, "timed");
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_info),
      cmocka_unit_test(test_host),
      cmocka_unit_test(test_device_bindings),
      cmocka_unit_test(test_larger_buffers),
      cmocka_unit_test(test_stale_bytes),
      cmocka_unit_test(test_no_work),
      cmocka_unit_test(test_writes_all),
      cmocka_unit_test(test_wrong_bindings),
      cmocka_unit_test(test_far_bytes),
      cmocka_unit_test(test_overlapping),
      cmocka_unit_test(test_overlapping_ends_of_loops),
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_iterations),
      cmocka_unit_test(test_open_work),
      cmocka_unit_test(test_trap),
      cmocka_unit_test(test_grid_barrier),
      cmocka_unit_test(test_streams),
      cmocka_unit_test(test_time_limit),
      cmocka_unit_test(test_capture),
      cmocka_unit_test(test_captured_by_builder),
      cmocka_unit_test(test_batch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
