// SPDX-License-Identifier: Apache-2.0
//
// dispatch: prepared dispatches, pipelines of any kernel, and what neither may
// cost.
#include "dispatch_kit.h"

enum { N = 500 };

// ---- Prepared ----

static void fill_words(uint32_t* words, uint32_t count, uint32_t first) {
  for (uint32_t i = 0; i < count; i++) words[i] = first + i;
}

static void test_run(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kFour, NULL);
  uint32_t x[N], y[N], z[N], k = 3;
  fill_words(x, N, 0);
  fill_words(y, N, 1000);
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(y), y);
  kiln_resident_t rz = dispatch_kit_resident(&kit, sizeof(z), NULL);
  kiln_binding_t bindings[] = {kiln_bind_resident(rx), kiln_bind_resident(ry),
                               kiln_bind_static(&k, sizeof(k)),
                               kiln_bind_resident(rz)};
  kiln_prepared_t* prepared = NULL;
  assert_null(kiln_pipeline_prepare(pipeline, bindings, 4, NULL, &prepared));
  k = 77;  // was uploaded
  kiln_dispatch_plan_t plan;
  kiln_prepared_plan(prepared, &plan);
  assert_int_equal(plan.work[0], N);
  assert_ptr_equal(kiln_prepared_pipeline(prepared), pipeline);
  assert_non_null(kiln_prepared_launch(prepared));
  kiln_stream_t* mine = NULL;
  kiln_stream_t* own = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &mine));
  assert_null(kiln_dispatcher_stream(kit.dispatcher, 0, &own));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  for (int i = 0; i < 3; i++) {
    assert_null(kiln_prepared_run(prepared, i == 1 ? mine : NULL));
    assert_null(kiln_stream_wait_stream(own, mine));
    dispatch_kit_fetch(&kit, rz, sizeof(z), z);
    for (uint32_t j = 0; j < N; j++) {
      assert_int_equal(z[j], j + (1000 + j) * 3);
    }
  }
  assert_null(kiln_prepared_check(prepared, NULL));
  // Another buffer, and a shorter one with which the sizes change.
  kiln_resident_t rw = dispatch_kit_resident(&kit, sizeof(z), NULL);
  kiln_binding_t other = kiln_bind_resident(rw);
  assert_null(kiln_prepared_rebind(prepared, 3, &other));
  assert_null(kiln_prepared_run(prepared, NULL));
  dispatch_kit_fetch(&kit, rw, sizeof(z), z);
  assert_int_equal(z[N - 1], N - 1 + (1000 + N - 1) * 3);
  other = kiln_bind_resident_range(rx, 0, 40);
  assert_null(kiln_prepared_rebind(prepared, 0, &other));
  kiln_prepared_plan(prepared, &plan);
  assert_int_equal(plan.work[0], 10);
  // A wrong one changes nothing.
  other = kiln_bind_u32(4);
  assert_says(kiln_prepared_rebind(prepared, 0, &other),
              KILN_STATUS_INVALID_ARGUMENT, "\"x\"");
  assert_says(kiln_prepared_rebind(prepared, 4, &other),
              KILN_STATUS_INVALID_ARGUMENT, "number 4");
  assert_null(kiln_prepared_run(prepared, NULL));
  dispatch_kit_fetch(&kit, rw, sizeof(z), z);
  assert_int_equal(z[9], 9 + (1000 + 9) * 3);
  // Freed behind its back: it does not run, until it is bound again.
  assert_null(kiln_resident_free(kit.dispatcher, rw));
  assert_says(kiln_prepared_run(prepared, NULL), KILN_STATUS_INVALID_STATE,
              "\"z\"");
  other = kiln_bind_resident(rz);
  assert_null(kiln_prepared_rebind(prepared, 3, &other));
  assert_null(kiln_prepared_run(prepared, NULL));
  kiln_prepared_release(prepared);
  kiln_stream_release(mine);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  assert_null(kiln_resident_free(kit.dispatcher, ry));
  assert_null(kiln_resident_free(kit.dispatcher, rz));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_scalars(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kEven, NULL);
  uint32_t y[N];
  memset(y, 0xee, sizeof(y));
  kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(y), y);
  kiln_binding_t bindings[] = {kiln_bind_u32(10), kiln_bind_resident(ry)};
  kiln_prepared_t* prepared = NULL;
  assert_null(kiln_pipeline_prepare(pipeline, bindings, 2, NULL, &prepared));
  assert_null(kiln_prepared_run(prepared, NULL));
  // The work size follows the value; so does what is cleared.
  assert_null(kiln_prepared_set_scalar(prepared, 0, 20));
  kiln_dispatch_plan_t plan;
  kiln_prepared_plan(prepared, &plan);
  assert_int_equal(plan.work[0], 20);
  assert_int_equal(plan.cleared_bytes, 80);
  assert_null(kiln_prepared_run(prepared, NULL));
  dispatch_kit_fetch(&kit, ry, sizeof(y), y);
  for (uint32_t i = 0; i < N; i++) {
    assert_int_equal(y[i], i >= 20 ? 0xeeeeeeee : i % 2 == 0 ? i + 1 : 0);
  }
  assert_says(kiln_prepared_set_scalar(prepared, 0, N + 1),
              KILN_STATUS_INVALID_ARGUMENT, "elements");
  assert_says(kiln_prepared_set_scalar(prepared, 1, 3),
              KILN_STATUS_INVALID_ARGUMENT, "\"y\"");
  assert_null(kiln_prepared_run(prepared, NULL));
  kiln_prepared_release(prepared);
  assert_null(kiln_resident_free(kit.dispatcher, ry));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// A value that no size depends on.
static void test_plain_scalar(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, NULL);
  float x[N], y[N] = {0};
  for (uint32_t i = 0; i < N; i++) x[i] = (float)i;
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(y), y);
  kiln_binding_t bindings[] = {kiln_bind_f32(1), kiln_bind_resident(rx),
                               kiln_bind_resident(ry)};
  kiln_prepared_t* prepared = NULL;
  assert_null(kiln_pipeline_prepare(pipeline, bindings, 3, NULL, &prepared));
  uint64_t before = kit.watch.total_blocks;
  for (uint32_t a = 1; a <= 4; a++) {
    kiln_binding_t value = kiln_bind_f32((float)a);
    assert_null(kiln_prepared_set_scalar(prepared, 0, value.value.bits));
    assert_null(kiln_prepared_run(prepared, NULL));
  }
  assert_int_equal(kit.watch.total_blocks, before);
  // What was given stays when something else is bound.
  kiln_binding_t other = kiln_bind_resident(rx);
  assert_null(kiln_prepared_rebind(prepared, 1, &other));
  assert_null(kiln_prepared_run(prepared, NULL));
  dispatch_kit_fetch(&kit, ry, sizeof(y), y);
  for (uint32_t i = 0; i < N; i++) assert_true(y[i] == 14 * (float)i);
  kiln_prepared_release(prepared);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  assert_null(kiln_resident_free(kit.dispatcher, ry));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_refused(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kStep, NULL);
  uint32_t x[N] = {0};
  kiln_prepared_t* prepared = NULL;
  kiln_binding_t binding = kiln_bind_host_inout(x, sizeof(x));
  assert_says(kiln_pipeline_prepare(pipeline, &binding, 1, NULL, &prepared),
              KILN_STATUS_UNSUPPORTED, "host memory");
  assert_null(prepared);
  binding = kiln_bind_static(x, sizeof(x));
  assert_says(kiln_pipeline_prepare(pipeline, &binding, 1, NULL, &prepared),
              KILN_STATUS_INVALID_ARGUMENT, "STATIC");
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  binding = kiln_bind_resident(rx);
  const char* const kNames[] = {"waits", "record", "timed", "timeout_ns",
                                "iterations"};
  kiln_event_t* event = NULL;
  assert_null(kiln_event_create(kit.device, NULL, &event));
  for (int i = 0; i < 5; i++) {
    kiln_dispatch_options_t options = kiln_dispatch_options_default();
    if (i == 0) {
      options.waits = &event;
      options.wait_count = 1;
    }
    if (i == 1) options.record = event;
    if (i == 2) options.timed = KILN_SWITCH_ON;
    if (i == 3) options.timeout_ns = 1;
    if (i == 4) options.iterations = 2;
    assert_says(
        kiln_pipeline_prepare(pipeline, &binding, 1, &options, &prepared),
        KILN_STATUS_UNSUPPORTED, kNames[i]);
  }
  kiln_event_release(event);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_prepared_trap(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kTrapping, NULL);
  uint32_t x[N];
  fill_words(x, N, 100);
  x[33] = 7;
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(x), NULL);
  kiln_binding_t bindings[] = {kiln_bind_resident(rx), kiln_bind_resident(ry)};
  kiln_prepared_t* prepared = NULL;
  kiln_trap_t trap;
  assert_null(kiln_pipeline_prepare(pipeline, bindings, 2, NULL, &prepared));
  assert_null(kiln_prepared_run(prepared, NULL));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  assert_says(kiln_prepared_run(prepared, NULL), KILN_STATUS_INVALID_STATE,
              "trapped");
  assert_says(kiln_prepared_check(prepared, &trap), KILN_STATUS_LAUNCH_FAILED,
              "tag 3");
  assert_int_equal(trap.address, 33);
  assert_null(kiln_prepared_check(prepared, &trap));
  assert_int_equal(trap.tag, 0);
  x[33] = 8;
  assert_null(kiln_resident_upload(kit.dispatcher, NULL, rx, 0, sizeof(x), x));
  assert_null(kiln_prepared_run(prepared, NULL));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  assert_null(kiln_prepared_check(prepared, NULL));
  // Its end while it runs: nothing that it may write is used again too early.
  assert_null(kiln_prepared_run(prepared, NULL));
  kiln_prepared_release(prepared);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  assert_null(kiln_resident_free(kit.dispatcher, ry));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_prepared_barrier(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kMeeting, NULL);
  enum { M = 96 };
  uint32_t y[M];
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(y), NULL);
  kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(y), NULL);
  kiln_binding_t bindings[] = {kiln_bind_resident(rx), kiln_bind_resident(ry)};
  kiln_prepared_t* prepared = NULL;
  kiln_stream_t* mine = NULL;
  kiln_stream_t* own = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &mine));
  assert_null(kiln_dispatcher_stream(kit.dispatcher, 0, &own));
  assert_null(kiln_pipeline_prepare(pipeline, bindings, 2, NULL, &prepared));
  for (int i = 0; i < 6; i++) {
    assert_null(kiln_prepared_run(prepared, i % 2 == 0 ? mine : NULL));
  }
  assert_null(kiln_stream_wait_stream(own, mine));
  dispatch_kit_fetch(&kit, ry, sizeof(y), y);
  for (uint32_t k = 0; k < M; k++) assert_int_equal(y[k], M - 1 - k);
  kiln_prepared_release(prepared);
  kiln_stream_release(mine);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  assert_null(kiln_resident_free(kit.dispatcher, ry));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// ---- Nothing is allocated ----

static void test_no_allocation(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kFour, NULL);
  uint32_t x[N], k = 3;
  fill_words(x, N, 0);
  kiln_resident_t r[4];
  for (int i = 0; i < 4; i++) {
    r[i] = dispatch_kit_resident(&kit, i == 2 ? 4 : sizeof(x), i == 2 ? &k : x);
  }
  kiln_binding_t bindings[] = {
      kiln_bind_resident(r[0]), kiln_bind_resident(r[1]),
      kiln_bind_resident(r[2]), kiln_bind_resident(r[3])};
  kiln_prepared_t* prepared = NULL;
  assert_null(kiln_pipeline_prepare(pipeline, bindings, 4, NULL, &prepared));
  kiln_stream_t* mine = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &mine));
  for (int i = 0; i < 2; i++) {
    kiln_stream_t* stream = i == 0 ? NULL : mine;
    // The first use of a stream remembers it.
    assert_null(
        kiln_pipeline_dispatch(pipeline, stream, bindings, 4, NULL, NULL));
    uint64_t before = kit.watch.total_blocks;
    for (int round = 0; round < 20; round++) {
      assert_null(kiln_prepared_run(prepared, stream));
      assert_null(
          kiln_pipeline_dispatch(pipeline, stream, bindings, 4, NULL, NULL));
    }
    assert_int_equal(kit.watch.total_blocks, before);
    assert_null(kiln_stream_synchronize(mine));
    assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  }
  kiln_prepared_release(prepared);
  kiln_stream_release(mine);
  for (int i = 0; i < 4; i++) {
    assert_null(kiln_resident_free(kit.dispatcher, r[i]));
  }
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// ---- Any kernel ----

// y[i] = x[i] * a + b of a struct of two words, for i < n; n by value.
static const char kKernel[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry mad(.param .u64 px, .param .u64 py, .param .u32 pn,\n"
    "    .param .align 4 .b8 pc[8]) {\n"
    ".reg .pred %p<2>;\n.reg .b32 %r<12>;\n.reg .b64 %d<8>;\n"
    "ld.param.u64 %d1, [px];\nld.param.u64 %d2, [py];\n"
    "ld.param.u32 %r1, [pn];\nld.param.u32 %r2, [pc];\n"
    "ld.param.u32 %r3, [pc+4];\n"
    "mov.u32 %r4, %ctaid.x;\nmov.u32 %r5, %ntid.x;\nmov.u32 %r6, %tid.x;\n"
    "mad.lo.u32 %r7, %r4, %r5, %r6;\n"
    "setp.ge.u32 %p1, %r7, %r1;\n@%p1 bra done;\n"
    "mul.wide.u32 %d3, %r7, 4;\nadd.u64 %d4, %d1, %d3;\n"
    "add.u64 %d5, %d2, %d3;\nld.global.u32 %r8, [%d4];\n"
    "mad.lo.u32 %r9, %r8, %r2, %r3;\nst.global.u32 [%d5], %r9;\n"
    "done:\nret;\n}\n";

static kiln_kernel_t* load_kernel(dispatch_kit_t* kit) {
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  kiln_bytes_view_t bytes = {(const uint8_t*)kKernel, sizeof(kKernel) - 1};
  assert_null(kiln_module_load(kit->device, bytes, NULL, NULL, &module));
  assert_null(kiln_kernel_create(module, "mad", &kernel));
  kiln_module_release(module);
  return kernel;
}

static const uint32_t kConstants[2] = {5, 9};

static void describe(kiln_interface_parameter_t p[4], kiln_interface_t* out) {
  memset(p, 0, 4 * sizeof(*p));
  p[0].name = "x";
  p[0].kind = KILN_INTERFACE_BUFFER;
  p[0].type = KILN_PROGRAM_TYPE_U32;
  p[0].role = KILN_PROGRAM_ROLE_IN;
  p[1].kind = KILN_INTERFACE_BUFFER;
  p[1].type = KILN_PROGRAM_TYPE_U32;
  p[1].role = KILN_PROGRAM_ROLE_OUT;
  p[1].writes_all = KILN_SWITCH_ON;
  p[1].count.from = KILN_INTERFACE_BY_BUFFER;
  p[1].count.of = 0;
  p[2].kind = KILN_INTERFACE_LENGTH;
  p[2].type = KILN_PROGRAM_TYPE_U32;
  p[2].of = 0;
  p[3].kind = KILN_INTERFACE_BYTES;
  p[3].value = kConstants;
  p[3].value_bytes = sizeof(kConstants);
  *out = kiln_interface_default();
  out->parameters = p;
  out->parameter_count = 4;
  out->work[0].from = KILN_INTERFACE_BY_BUFFER;
  out->work[0].of = 0;
}

static void test_kernel(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_kernel_t* kernel = load_kernel(&kit);
  kiln_interface_parameter_t p[4];
  kiln_interface_t interface;
  describe(p, &interface);
  kiln_pipeline_t* pipeline = NULL;
  assert_null(kiln_pipeline_create_kernel(kit.dispatcher, kernel, &interface,
                                          &pipeline));
  const kiln_pipeline_info_t* info = kiln_pipeline_info(pipeline);
  assert_string_equal(info->label, "mad");
  assert_int_equal(info->parameter_count, 2);
  assert_int_equal(info->work_dimensions, 1);
  assert_int_equal(info->block[0], 256);
  assert_null(kiln_pipeline_code(pipeline));
  kiln_pipeline_parameter_t one;
  assert_true(kiln_pipeline_parameter(pipeline, 1, &one));
  assert_string_equal(one.name, "p1");
  assert_int_equal(one.writes_all, 1);
  uint32_t x[N], y[N];
  fill_words(x, N, 3);
  kiln_binding_t bindings[] = {kiln_bind_host_in(x, sizeof(x)),
                               kiln_bind_host_out(y, sizeof(y))};
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  kiln_dispatch_plan_t plan;
  for (uint32_t block = 0; block <= 64; block += 64) {
    kiln_pending_t* pending = NULL;
    options.block[0] = block;
    assert_null(kiln_pipeline_plan(pipeline, bindings, 2, &options, &plan));
    assert_int_equal(plan.grid[0], block == 0 ? 2 : 8);
    assert_int_equal(plan.cleared_bytes, 0);
    assert_null(kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, &options,
                                       &pending));
    assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(y[i], (3 + i) * 5 + 9);
  }
  options.block[0] = 2048;
  assert_says(
      kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, &options, NULL),
      KILN_STATUS_LIMIT_EXCEEDED, "2048");
  kiln_kernel_release(kernel);
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_wrong_interfaces(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_kernel_t* kernel = load_kernel(&kit);
  enum { CASES = 14 };
  const struct {
    kiln_status_code_t code;
    const char* word;
  } kSays[CASES] = {
      {KILN_STATUS_INVALID_ARGUMENT, "3 parameters"},
      {KILN_STATUS_INVALID_ARGUMENT, "role"},
      {KILN_STATUS_INVALID_ARGUMENT, "element_bytes"},
      {KILN_STATUS_INVALID_ARGUMENT, "writes_all"},
      {KILN_STATUS_INVALID_ARGUMENT, "8 bytes"},
      {KILN_STATUS_INVALID_ARGUMENT, "do not fit"},
      {KILN_STATUS_INVALID_ARGUMENT, "is not a buffer"},
      {KILN_STATUS_INVALID_ARGUMENT, "a count"},
      {KILN_STATUS_INVALID_ARGUMENT, "the work size"},
      {KILN_STATUS_INVALID_ARGUMENT, "out of its range"},
      {KILN_STATUS_INVALID_ARGUMENT, "axis"},
      {KILN_STATUS_LIMIT_EXCEEDED, "521"},
      {KILN_STATUS_LIMIT_EXCEEDED, "4096"},
      {KILN_STATUS_INVALID_ARGUMENT, "do not fit"},
  };
  for (int i = 0; i < CASES; i++) {
    kiln_interface_parameter_t p[4];
    kiln_interface_t interface;
    kiln_pipeline_t* pipeline = NULL;
    describe(p, &interface);
    if (i == 0) interface.parameter_count = 3;
    if (i == 1) p[0].role = KILN_PROGRAM_ROLE_SHARED;
    if (i == 2) p[0].type = KILN_PROGRAM_TYPE_NONE;
    if (i == 3) p[0].writes_all = KILN_SWITCH_ON;
    if (i == 4) p[2].type = KILN_PROGRAM_TYPE_U64;
    if (i == 5) p[2].type = KILN_PROGRAM_TYPE_F32;
    if (i == 6) p[2].of = 3;
    if (i == 7) p[1].count.of = 2;
    if (i == 8) interface.work[0].of = 9;
    if (i == 9) p[3].writes_all = KILN_SWITCH_ON + 1;
    if (i == 10) {
      p[2].kind = KILN_INTERFACE_WORK;
      p[2].of = 3;
    }
    if (i == 11) interface.parameter_count = 521;
    if (i == 12) interface.block[0] = 4096;
    if (i == 13) p[3].value = NULL;
    assert_says(kiln_pipeline_create_kernel(kit.dispatcher, kernel, &interface,
                                            &pipeline),
                kSays[i].code, kSays[i].word);
    assert_null(pipeline);
  }
  kiln_kernel_release(kernel);
  dispatch_kit_close(&kit);
}

// Its clusters divide each grid; one that leaves their size open has no
// pipeline. (The software device has clusters of one block, and looks away.)
static void test_kernel_in_clusters(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_kernel_t* kernel = load_kernel(&kit);
  kiln_interface_parameter_t p[4];
  kiln_interface_t interface;
  describe(p, &interface);
  kiln_pipeline_t* pipeline = NULL;
  kernel->in_clusters = true;
  assert_says(kiln_pipeline_create_kernel(kit.dispatcher, kernel, &interface,
                                          &pipeline),
              KILN_STATUS_UNSUPPORTED, "in clusters only");
  assert_null(pipeline);
  kernel->cluster[0] = 2;
  kernel->cluster[1] = kernel->cluster[2] = 1;
  for (uint32_t barrier = 0; barrier <= KILN_SWITCH_ON; barrier += 2) {
    interface.grid_barrier = barrier;
    assert_null(kiln_pipeline_create_kernel(kit.dispatcher, kernel, &interface,
                                            &pipeline));
    static uint32_t x[N], y[N];
    fill_words(x, N, 3);
    kiln_binding_t bindings[] = {kiln_bind_host_in(x, sizeof(x)),
                                 kiln_bind_host_out(y, sizeof(y))};
    kiln_dispatch_options_t options = kiln_dispatch_options_default();
    kiln_pending_t* pending = NULL;
    memset(y, 0, sizeof(y));
    assert_null(
        kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, &pending));
    assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(y[i], (3 + i) * 5 + 9);
    options.grid[0] = 3;
    assert_says(
        kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, &options, NULL),
        KILN_STATUS_INVALID_ARGUMENT, "grid.x is 3");
    kiln_pipeline_release(pipeline);
  }
  kiln_kernel_release(kernel);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_run),
      cmocka_unit_test(test_scalars),
      cmocka_unit_test(test_plain_scalar),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_prepared_trap),
      cmocka_unit_test(test_prepared_barrier),
      cmocka_unit_test(test_no_allocation),
      cmocka_unit_test(test_kernel),
      cmocka_unit_test(test_wrong_interfaces),
      cmocka_unit_test(test_kernel_in_clusters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
