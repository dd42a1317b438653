// SPDX-License-Identifier: Apache-2.0
//
// dispatch: every field of a dispatch's options is applied, or refused by its
// name; cooperative launches on a device that has none.
#include "dispatch_kit.h"
#include "table/cuda_table.h"

enum { N = 5000 };

// What the device was asked, and what it does not show. One at a time.
static struct {
  kiln_cuda_table_t under;
  bool alone;         // no cooperative launches
  int priority;       // of the last launch that had one
  uint32_t with;      // launches that had one
  uint32_t together;  // cooperative launches
} g_seen;

static kiln_cu_result_t hide(int* value, kiln_cu_device_attribute_t attribute,
                             kiln_cu_device_t device) {
  kiln_cu_result_t result =
      g_seen.under.cuDeviceGetAttribute(value, attribute, device);
  if (g_seen.alone &&
      attribute == KILN_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) {
    *value = 0;
  }
  return result;
}

static kiln_cu_result_t look(const kiln_cu_launch_config_t* config,
                             kiln_cu_function_t function, void** params,
                             void** extra) {
  for (unsigned int i = 0; i < config->attribute_count; i++) {
    if (config->attributes[i].id == KILN_CU_LAUNCH_ATTRIBUTE_PRIORITY) {
      g_seen.priority = config->attributes[i].value.priority;
      g_seen.with++;
    }
    if (config->attributes[i].id == KILN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      g_seen.together++;
    }
  }
  return g_seen.under.cuLaunchKernelEx(config, function, params, extra);
}

static kiln_status_t watch(void* user, kiln_cuda_table_t* inout_table) {
  (void)user;
  g_seen.under = *inout_table;
  KILNI_CUDA_SET(inout_table, cuDeviceGetAttribute, hide);
  KILNI_CUDA_SET(inout_table, cuLaunchKernelEx, look);
  return kiln_ok();
}

static void open_kit(dispatch_kit_t* kit, bool alone) {
  memset(kit, 0, sizeof(*kit));
  memset(&g_seen, 0, sizeof(g_seen));
  g_seen.alone = alone;
  fault_alloc_init(&kit->watch);
  kit->allocator = fault_alloc_allocator(&kit->watch);
  kit->own = kiln_allocator_libc();
  kilni_runtime_hooks_t hooks = {0};
  hooks.soft_allocator = &kit->own;
  hooks.wrap = watch;
  kiln_runtime_options_t runtime = kiln_runtime_options_default();
  runtime.allocator = &kit->allocator;
  assert_null(kilni_runtime_create_with(&runtime, &hooks, &kit->runtime));
  assert_null(kiln_runtime_open_device(kit->runtime, "soft", &kit->device));
  assert_null(kiln_dispatcher_create(kit->device, NULL, &kit->dispatcher));
}

// ---- Every field by its name ----

// How a field is refused. thread-safe
typedef struct field_t {
  const char* name;
  size_t offset;
  size_t bytes;
  uint64_t value;  // that is refused; 0: nothing there ever is
  kiln_status_code_t code;
  bool prepares;     // refused there, because it is of one run
  const char* word;  // of the message
} field_t;

#define FIELD(name, value, code, prepares, word)   \
  {#name,                                          \
   offsetof(kiln_dispatch_options_t, name),        \
   sizeof(((kiln_dispatch_options_t*)NULL)->name), \
   (value),                                        \
   KILN_STATUS_##code,                             \
   (prepares),                                     \
   (word)}
static const field_t kFields[] = {
    FIELD(struct_size, 3, INVALID_ARGUMENT, false, "struct_size"),
    FIELD(max_ulp, 4, INVALID_ARGUMENT, false, "`max_ulp` 0"),
    FIELD(label, 0, OK, false, ""),
    FIELD(profile, 1, UNSUPPORTED, false, "`profile`"),
    FIELD(timeout_ns, 1, UNSUPPORTED, true, "`timeout_ns`"),
    FIELD(max_output_bytes, 1, LIMIT_EXCEEDED, false, "max_output_bytes"),
    FIELD(work, N, INVALID_ARGUMENT, false, "work"),
    FIELD(grid, 1, INVALID_ARGUMENT, false, "grid"),
    FIELD(block, 77, UNSUPPORTED, false, "`block`"),
    FIELD(iterations, 2, UNSUPPORTED, true, "`iterations`"),
    FIELD(cooperative, 3, INVALID_ARGUMENT, false, "options.cooperative"),
    FIELD(speculation, 2, UNSUPPORTED, false, "`speculation`"),
    FIELD(persistent, 2, UNSUPPORTED, false, "`persistent`"),
    FIELD(clear_outputs, 3, INVALID_ARGUMENT, false, "options.clear_outputs"),
    FIELD(overlap, 3, INVALID_ARGUMENT, false, "options.overlap"),
    FIELD(timed, 1, UNSUPPORTED, true, "`timed`"),
    FIELD(priority, 1000, LIMIT_EXCEEDED, false, "`priority` is 1000"),
    FIELD(reserved, 1, INVALID_ARGUMENT, false, "`reserved`"),
    FIELD(wait_count, 1, INVALID_ARGUMENT, false, "options.waits"),
    FIELD(waits, 0, OK, false, ""),
    FIELD(record, 1, UNSUPPORTED, true, "`record`"),
};
enum { FIELDS = sizeof(kFields) / sizeof(kFields[0]) };

static void set(kiln_dispatch_options_t* options, const field_t* field) {
  char* at = (char*)options + field->offset;
  uint32_t narrow = (uint32_t)field->value;
  static char pointed[8] = "h100";
  void* pointer = pointed;
  if (strcmp(field->name, "profile") == 0 ||
      strcmp(field->name, "record") == 0) {
    memcpy(at, &pointer, sizeof(pointer));
  } else if (field->bytes == sizeof(field->value)) {
    memcpy(at, &field->value, sizeof(field->value));
  } else {
    memcpy(at, &narrow, sizeof(narrow));
  }
}

static void test_every_field(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_kit(&kit, false);
  kiln_pipeline_options_t how = kiln_pipeline_options_default();
  how.without = KILN_PROGRAM_WITHOUT_VECTORS;
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kSaxpy, &how);
  static float y[N];
  kiln_resident_t x = dispatch_kit_resident(&kit, sizeof(y), NULL);
  kiln_resident_t z = dispatch_kit_resident(&kit, sizeof(y), NULL);
  kiln_binding_t host[] = {kiln_bind_f32(3), kiln_bind_resident(x),
                           kiln_bind_host_inout(y, sizeof(y))};
  kiln_binding_t device[] = {kiln_bind_f32(3), kiln_bind_resident(x),
                             kiln_bind_resident(z)};
  size_t end = 0;
  for (uint32_t i = 0; i < FIELDS; i++) {
    const field_t* field = &kFields[i];
    // None is left out.
    assert_int_equal(field->offset, end);
    end += field->bytes;
    if (field->code == KILN_STATUS_OK) continue;
    kiln_dispatch_options_t options = kiln_dispatch_options_default();
    kiln_prepared_t* prepared = NULL;
    set(&options, field);
    kiln_status_t status =
        field->prepares
            ? kiln_pipeline_prepare(pipeline, device, 3, &options, &prepared)
            : kiln_pipeline_dispatch(pipeline, NULL, host, 3, &options, NULL);
    if (kiln_status_code(status) != field->code ||
        strstr(kiln_status_message(status), field->word) == NULL) {
      fail_msg("%s: %s", field->name, kiln_status_message(status));
    }
    kiln_status_free(status);
    assert_null(prepared);
  }
  assert_int_equal(end, sizeof(kiln_dispatch_options_t));
  assert_null(kiln_resident_free(kit.dispatcher, x));
  assert_null(kiln_resident_free(kit.dispatcher, z));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// ---- What is applied, and seen nowhere else ----

static void test_applied(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_kit(&kit, false);
  kiln_pipeline_t* four = dispatch_kit_pipeline(&kit, kFour, NULL);
  uint32_t words[64] = {7};
  kiln_resident_t x = dispatch_kit_resident(&kit, sizeof(words), words);
  kiln_resident_t k = dispatch_kit_resident(&kit, 4, words);
  kiln_resident_t z = dispatch_kit_resident(&kit, sizeof(words), NULL);
  kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(x),
                               kiln_bind_resident(k), kiln_bind_resident(z)};
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  kiln_dispatch_plan_t plan;
  assert_null(kiln_pipeline_plan(four, bindings, 4, NULL, &plan));
  assert_int_equal(plan.cooperative, 0);
  assert_int_equal(plan.cleared_bytes, 0);
  options.clear_outputs = KILN_SWITCH_ON;
  options.cooperative = KILN_SWITCH_ON;
  assert_null(kiln_pipeline_plan(four, bindings, 4, &options, &plan));
  assert_int_equal(plan.cooperative, 1);
  assert_int_equal(plan.cleared_bytes, sizeof(words));
  // Cooperative only when asked for, also without a barrier.
  assert_null(kiln_pipeline_dispatch(four, NULL, bindings, 4, NULL, NULL));
  assert_int_equal(g_seen.together, 0);
  assert_null(kiln_pipeline_dispatch(four, NULL, bindings, 4, &options, NULL));
  assert_int_equal(g_seen.together, 1);
  int32_t least = 0;
  assert_null(kiln_device_priorities(kit.device, &least, &options.priority));
  assert_true(options.priority < 0);
  assert_int_equal(g_seen.with, 0);
  assert_null(kiln_pipeline_dispatch(four, NULL, bindings, 4, &options, NULL));
  assert_int_equal(g_seen.with, 1);
  assert_int_equal(g_seen.priority, options.priority);
  kiln_prepared_t* prepared = NULL;
  assert_null(kiln_pipeline_prepare(four, bindings, 4, &options, &prepared));
  assert_null(kiln_prepared_run(prepared, NULL));
  assert_int_equal(g_seen.with, 2);
  kiln_prepared_release(prepared);
  // The label, where the dispatch is spoken of.
  kiln_pipeline_t* trapping = dispatch_kit_pipeline(&kit, kTrapping, NULL);
  kiln_dispatch_options_t labelled = kiln_dispatch_options_default();
  kiln_pending_t* pending = NULL;
  kiln_binding_t pair[] = {bindings[0], bindings[3]};
  labelled.label = "its own name";
  assert_null(
      kiln_pipeline_dispatch(trapping, NULL, pair, 2, &labelled, &pending));
  assert_says(kiln_pending_wait(pending, KILN_PENDING_FOREVER),
              KILN_STATUS_LAUNCH_FAILED, "\"its own name\"");
  kiln_pending_release(pending);
  kiln_pipeline_release(trapping);
  assert_null(kiln_resident_free(kit.dispatcher, x));
  assert_null(kiln_resident_free(kit.dispatcher, k));
  assert_null(kiln_resident_free(kit.dispatcher, z));
  kiln_pipeline_release(four);
  dispatch_kit_close(&kit);
}

// ---- Grid barriers: two questions ----

static void test_barrier_questions(void** state) {
  (void)state;
  for (int alone = 0; alone < 2; alone++) {
    dispatch_kit_t kit;
    open_kit(&kit, alone == 1);
    kiln_pipeline_t* step = dispatch_kit_pipeline(&kit, kStep, NULL);
    kiln_resident_t x = dispatch_kit_resident(&kit, 64, NULL);
    kiln_binding_t binding = kiln_bind_resident(x);
    kiln_dispatch_options_t options = kiln_dispatch_options_default();
    options.cooperative = KILN_SWITCH_ON;
    // Whether the device can, and whether the code does.
    assert_int_equal(kiln_dispatcher_has_grid_barrier(kit.dispatcher),
                     alone == 0);
    assert_int_equal(kiln_pipeline_info(step)->grid_barrier, 0);
    kiln_program_t* program = dispatch_kit_program(kMeeting);
    kiln_pipeline_t* meeting = NULL;
    kiln_status_t status =
        kiln_pipeline_create(kit.dispatcher, program, NULL, &meeting);
    if (alone == 0) {
      assert_null(status);
      assert_int_equal(kiln_pipeline_info(meeting)->grid_barrier, 1);
      assert_null(
          kiln_pipeline_dispatch(step, NULL, &binding, 1, &options, NULL));
    } else {
      assert_says(status, KILN_STATUS_UNSUPPORTED, "cooperative launches");
      assert_null(meeting);
      assert_says(
          kiln_pipeline_dispatch(step, NULL, &binding, 1, &options, NULL),
          KILN_STATUS_UNSUPPORTED, "cooperative launches");
    }
    kiln_pipeline_release(meeting);
    kiln_program_release(program);
    assert_null(kiln_resident_free(kit.dispatcher, x));
    kiln_pipeline_release(step);
    dispatch_kit_close(&kit);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_field),
      cmocka_unit_test(test_applied),
      cmocka_unit_test(test_barrier_questions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
