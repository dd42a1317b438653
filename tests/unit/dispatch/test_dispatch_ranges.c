// SPDX-License-Identifier: Apache-2.0
//
// dispatch: what a profiler is told. The process's table is opened once, so
// each way of finding it is a run of its own: the argument says which.
#include "base/dynlib.h"
#include "dispatch_kit.h"

enum { N = 64 };

static const char* way;

// What the fake has written down; "" if it is not there.
static const char* words_of(const char* library) {
  kilni_base_dynlib_t* opened = NULL;
  const char* (*words)(void) = NULL;
  kiln_status_t status =
      kilni_base_dynlib_open(kiln_allocator_libc(), library, &opened);
  if (status != NULL) {
    kiln_status_free(status);
    return "";
  }
  void* address = kilni_base_dynlib_symbol(opened, "fake_nvtx_words");
  memcpy(&words, &address, sizeof(words));
  kilni_base_dynlib_close(opened);
  return words();
}

static void work(dispatch_kit_t* kit) {
  uint32_t x[N];
  memset(x, 0, sizeof(x));
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(kit, kStep, NULL);
  kiln_binding_t host = kiln_bind_host_inout(x, sizeof(x));
  kiln_dispatch_options_t named = kiln_dispatch_options_default();
  named.label = "mine";
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, &host, 1, NULL, NULL));
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, &host, 1, &named, NULL));
  kiln_resident_t r = dispatch_kit_resident(kit, sizeof(x), x);
  kiln_binding_t binding = kiln_bind_resident(r);
  kiln_prepared_t* prepared = NULL;
  assert_null(kiln_pipeline_prepare(pipeline, &binding, 1, &named, &prepared));
  assert_null(kiln_prepared_run(prepared, NULL));
  kiln_prepared_release(prepared);
  kiln_dispatch_batch_t batch = kiln_dispatch_batch_default();
  batch.binding_count = 1;
  batch.bindings = &binding;
  batch.count = 1;
  assert_null(kiln_pipeline_dispatch_batch(pipeline, NULL, &batch, NULL, NULL));
  // What is refused is in no range that stays open.
  kiln_status_t status =
      kiln_pipeline_dispatch(pipeline, NULL, &binding, 2, NULL, NULL);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  assert_null(kiln_dispatcher_synchronize(kit->dispatcher));
  kiln_pipeline_release(pipeline);
}

static const char kTold[] =
    "domain:kiln make:step pop push:step pop push:mine pop push:mine pop "
    "push:step pop ";

static void test_way(void** state) {
  (void)state;
  dispatch_kit_t kit;
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  bool told = strcmp(way, "absent") != 0;
  const char* library =
      strcmp(way, "plain") == 0 ? "libnvToolsExt.so.1" : KILN_FAKE_NVTX;
  if (strcmp(way, "plain") == 0) options.ranges = KILN_SWITCH_ON;
  // Off is off, whatever is there.
  kiln_dispatcher_options_t off = options;
  off.ranges = KILN_SWITCH_OFF;
  dispatch_kit_open_with(&kit, &off);
  work(&kit);
  assert_string_equal(words_of(library), "");
  dispatch_kit_close(&kit);
  dispatch_kit_open_with(&kit, &options);
  work(&kit);
  dispatch_kit_close(&kit);
  assert_string_equal(words_of(library), told ? kTold : "");
  // A second dispatcher uses the same domain.
  dispatch_kit_open_with(&kit, &options);
  dispatch_kit_close(&kit);
  assert_string_equal(words_of(library), told ? kTold : "");
}

static void test_option(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  kiln_dispatcher_t* dispatcher = NULL;
  options.ranges = 3;
  kiln_status_t status =
      kiln_dispatcher_create(kit.device, &options, &dispatcher);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  dispatch_kit_close(&kit);
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_way),
      cmocka_unit_test(test_option),
  };
  way = argc == 2 ? argv[1] : "absent";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
