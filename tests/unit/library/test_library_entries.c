// SPDX-License-Identifier: Apache-2.0
//
// library: which entries there are, that each can be planned, and what is
// refused.
#include "library_kit.h"

#include "says.h"
#include "test_tree.h"

static void test_texts(void** state) {
  (void)state;
  kiln_library_entry_t entry, again;
  uint32_t count = kiln_library_count(), parts = 0;
  assert_true(count > 10);
  for (uint32_t i = 0; i < count; i++) {
    assert_true(kiln_library_entry(i, &entry));
    assert_true(kiln_library_find(entry.name, &again));
    assert_ptr_equal(again.text.data, entry.text.data);
    assert_int_equal(strlen(entry.text.data), entry.text.size);
    assert_true(strlen(entry.summary) > 3);
    char path[1024], file[128], page[128];
    snprintf(file, sizeof(file), "lib/%s.kiln", entry.name);
    // What is a part of another entry is on that one's page.
    snprintf(page, sizeof(page), "docs/library/%s.md",
             entry.part_of != NULL ? entry.part_of : entry.name);
    if (entry.part_of != NULL) {
      assert_true(kiln_library_find(entry.part_of, &again));
      assert_null(again.part_of);
      parts++;
    }
    FILE* stream = fopen(test_tree_path(path, sizeof(path), file), "rb");
    assert_non_null(stream);
    char* text = kit_zeroes(entry.text.size, 1);
    assert_int_equal(fread(text, 1, entry.text.size, stream), entry.text.size);
    assert_int_equal(fgetc(stream), EOF);
    assert_memory_equal(text, entry.text.data, entry.text.size);
    fclose(stream);
    free(text);
    stream = fopen(test_tree_path(path, sizeof(path), page), "rb");
    if (stream == NULL) fail_msg("%s is not there", page);
    fclose(stream);
  }
  assert_true(parts > 5 && parts < count / 2);
  assert_false(kiln_library_entry(count, &entry));
  assert_null(entry.name);
  assert_false(kiln_library_find("nothing", &entry));
  assert_false(kiln_library_find(NULL, &entry));
}

static void test_plans(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_entry_t entry;
  for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
    if (entry.part_of != NULL) continue;
    kiln_library_options_t options = kiln_library_options_default();
    kiln_library_plan_t* plan = NULL;
    kiln_status_t status =
        kiln_library_plan_create(kit.dispatcher, entry.name, &options, &plan);
    if (status != NULL) {
      // One with memory of its own wants to know how much.
      assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
      kiln_status_free(status);
      options.count = 5000;
      plan = kit_plan(&kit, entry.name, &options);
    }
    kiln_library_plan_info_t info;
    kiln_library_plan_info(plan, &info);
    assert_string_equal(info.name, entry.name);
    assert_true(info.launches > 0);
    assert_true(info.parameter_count > 0);
    assert_true((info.temporary_bytes != 0) == (options.count != 0));
    kiln_pipeline_parameter_t p;
    for (uint32_t k = 0; k < info.parameter_count; k++) {
      assert_true(kiln_library_plan_parameter(plan, k, &p));
      assert_non_null(p.name);
    }
    assert_false(kiln_library_plan_parameter(plan, info.parameter_count, &p));
    kiln_library_plan_retain(plan);
    kiln_library_plan_release(plan);
    kiln_library_plan_release(plan);
  }
  kiln_library_plan_release(NULL);
  kiln_library_plan_info_t none;
  kiln_library_plan_info(NULL, &none);
  assert_null(none.name);
  dispatch_kit_close(&kit);
}

// What is said of parameters is said of those that a plan has, in their order.
static void test_defaults(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_entry_t entry;
  kiln_library_default_t row;
  for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
    if (entry.part_of != NULL) {
      assert_false(kiln_library_default(entry.name, 0, &row));
      continue;
    }
    kiln_library_options_t options = kiln_library_options_default();
    options.count = 5000;
    kiln_library_plan_t* plan = kit_plan(&kit, entry.name, &options);
    kiln_pipeline_parameter_t p;
    uint32_t k = 0;
    for (; kiln_library_plan_parameter(plan, k, &p); k++) {
      assert_true(kiln_library_default(entry.name, k, &row));
      assert_string_equal(row.parameter, p.name);
      assert_int_equal(row.role, p.role);
    }
    assert_false(kiln_library_default(entry.name, k, &row));
    assert_null(row.parameter);
    kiln_library_plan_release(plan);
  }
  assert_false(kiln_library_default("nothing", 0, &row));
  assert_false(kiln_library_default(NULL, 0, &row));
  dispatch_kit_close(&kit);
}

static void refuse(dispatch_kit_t* kit, const char* name,
                   const kiln_library_options_t* options,
                   kiln_status_code_t code, const char* words) {
  kiln_library_plan_t* plan = NULL;
  kiln_status_t status =
      kiln_library_plan_create(kit->dispatcher, name, options, &plan);
  assert_null(plan);
  assert_says(status, code, words);
}

static void test_refusals(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  refuse(&kit, "nothing", NULL, KILN_STATUS_NOT_FOUND, "nothing");
  refuse(&kit, "sort_count", NULL, KILN_STATUS_INVALID_ARGUMENT,
         "a part of the library's \"sort\"");
  refuse(&kit, "scan", NULL, KILN_STATUS_INVALID_ARGUMENT, "options.count");
  kiln_library_options_t options = kiln_library_options_default();
  options.count = UINT64_C(1) << 32;
  refuse(&kit, "scan", &options, KILN_STATUS_INVALID_ARGUMENT, "options.count");
  options.count = 10;
  options.type = KILN_PROGRAM_TYPE_U8;
  refuse(&kit, "scan", &options, KILN_STATUS_UNSUPPORTED, "u8");
  options.type = 99;
  refuse(&kit, "scan", &options, KILN_STATUS_UNSUPPORTED, "none");
  options.type = 0;
  options.operation = KILN_LIBRARY_MAX;
  refuse(&kit, "scan", &options, KILN_STATUS_INVALID_ARGUMENT, "operation");
  options.operation = 0;
  options.segment = 8;
  refuse(&kit, "scan", &options, KILN_STATUS_INVALID_ARGUMENT, "segment");
  options.segment = 0;
  options.value_type = KILN_PROGRAM_TYPE_U32;
  refuse(&kit, "scan", &options, KILN_STATUS_INVALID_ARGUMENT, "value_type");
  options.value_type = 0;
  options.bins = 8;
  refuse(&kit, "scan", &options, KILN_STATUS_INVALID_ARGUMENT, "bins");
  options.bins = 0;
  options.rest = KILN_SWITCH_ON;
  refuse(&kit, "unique", &options, KILN_STATUS_INVALID_ARGUMENT, "rest");
  options = kiln_library_options_default();
  options.bins = 12289;
  refuse(&kit, "histogram", &options, KILN_STATUS_INVALID_ARGUMENT, "12288");
  options.bins = 256;
  options.type = KILN_PROGRAM_TYPE_I32;
  refuse(&kit, "histogram", &options, KILN_STATUS_UNSUPPORTED, "i32");
  options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_F64;
  refuse(&kit, "map", &options, KILN_STATUS_INVALID_ARGUMENT, "type");
  options.type = KILN_PROGRAM_TYPE_BOOL;
  refuse(&kit, "reduce", &options, KILN_STATUS_UNSUPPORTED, "numbers");
  options.type = 0;
  options.exclusive = KILN_SWITCH_ON;
  refuse(&kit, "map", &options, KILN_STATUS_INVALID_ARGUMENT, "exclusive");
  dispatch_kit_close(&kit);
}

// What a plan refuses, without a device, and its text by itself.
static void test_checks(void** state) {
  (void)state;
  static const struct {
    const char* name;
    kiln_program_define_t define;
    kiln_library_options_t options;
  } kCases[] = {
      {"attention", {"WIDTH", "129"}, {.segment = 129}},
      {"histogram", {"BINS", "20000"}, {.bins = 20000}},
      {"fft", {"SIZE", "9"}, {.segment = 9}},
  };
  kiln_library_entry_t entry;
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 5000;
  for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
    kiln_status_t status = kiln_library_check(entry.name, &options, NULL);
    assert_true(kiln_status_is_ok(status) == (entry.part_of == NULL));
    kiln_status_free(status);
  }
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    options = kCases[i].options;
    options.struct_size = sizeof(options);
    options.count = 5000;
    assert_says(kiln_library_check(kCases[i].name, &options, NULL),
                KILN_STATUS_INVALID_ARGUMENT, kCases[i].name);
    assert_true(kiln_library_find(kCases[i].name, &entry));
    kiln_program_t* program = NULL;
    kiln_program_parse_options_t parse = kiln_program_parse_options_default();
    parse.defines = &kCases[i].define;
    parse.define_count = 1;
    assert_says(kiln_program_parse(entry.text, &parse, NULL, &program),
                KILN_STATUS_COMPILE_FAILED, "");
    assert_null(program);
  }
  assert_says(kiln_library_check("nothing", NULL, NULL), KILN_STATUS_NOT_FOUND,
              "nothing");
  assert_says(kiln_library_check(NULL, NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "name");
  assert_says(kiln_library_check("scan", NULL, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "options.count");
}

static void test_runs_refused(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 4096;
  kiln_library_plan_t* plan = kit_plan(&kit, "scan", &options);
  uint32_t host[4] = {0};
  kiln_resident_t x = dispatch_kit_resident(&kit, 8192 * 4, NULL);
  kiln_resident_t y = dispatch_kit_resident(&kit, 8192 * 4, NULL);
  kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(y)};
  kiln_status_t status = kiln_library_plan_run(plan, NULL, bindings, 1);
  assert_says(status, KILN_STATUS_INVALID_ARGUMENT, "2 bindings");
  // More than it was planned for.
  status = kiln_library_plan_run(plan, NULL, bindings, 2);
  assert_says(status, KILN_STATUS_INVALID_ARGUMENT, "at most 4096");
  bindings[0] = kiln_bind_host_in(host, sizeof(host));
  status = kiln_library_plan_run(plan, NULL, bindings, 2);
  assert_says(status, KILN_STATUS_UNSUPPORTED, "host memory");
  kiln_library_plan_release(plan);
  assert_null(kiln_resident_free(kit.dispatcher, x));
  assert_null(kiln_resident_free(kit.dispatcher, y));
  dispatch_kit_close(&kit);
}

// A run allocates nothing.
static void test_allocations(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 4096;
  kiln_library_plan_t* plan = kit_plan(&kit, "scan", &options);
  kiln_resident_t x = dispatch_kit_resident(&kit, 4096 * 4, NULL);
  kiln_resident_t y = dispatch_kit_resident(&kit, 4096 * 4, NULL);
  kiln_binding_t bindings[] = {kiln_bind_resident(x), kiln_bind_resident(y)};
  assert_null(kiln_library_plan_run(plan, NULL, bindings, 2));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  uint64_t before = kit.watch.total_blocks;
  assert_null(kiln_library_plan_run(plan, NULL, bindings, 2));
  assert_int_equal(kit.watch.total_blocks, before);
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  kiln_library_plan_release(plan);
  assert_null(kiln_resident_free(kit.dispatcher, x));
  assert_null(kiln_resident_free(kit.dispatcher, y));
  dispatch_kit_close(&kit);
}

// Making a plan with one allocation failing, the first ones each in turn, then
// less and less densely: out of memory, and nothing is left behind
// (dispatch_kit_close looks).
static void test_out_of_memory(void** state) {
  (void)state;
  static const char* const kNames[] = {"scan", "sort", "fold", "fft"};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); i++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.count = 5000;
    // Once, so that what stays in the device is there.
    kiln_library_plan_release(kit_plan(&kit, kNames[i], &options));
    bool made = false;
    uint32_t failed = 0;
    for (uint64_t nth = 1; !made; nth += 1 + nth / 4) {
      kiln_library_plan_t* plan = NULL;
      fault_alloc_arm(&kit.watch, nth, false);
      kiln_status_t status =
          kiln_library_plan_create(kit.dispatcher, kNames[i], &options, &plan);
      bool met = fault_alloc_disarm(&kit.watch) >= nth;
      made = !met;
      failed += status != NULL;
      // What only would be kept for later may do without.
      if (status != NULL) {
        assert_int_equal(kiln_status_code(status), KILN_STATUS_OUT_OF_MEMORY);
        assert_null(plan);
        kiln_status_free(status);
      }
      kiln_library_plan_release(plan);
    }
    assert_true(failed > 5);
  }
  dispatch_kit_close(&kit);
}

// A run is captured into a graph, which then does it as often as it is
// launched, with runs of the plan itself in between; a pending is refused.
static void captured(dispatch_kit_t* kit, const char* name, uint32_t count) {
  enum { N = 5000 };
  kiln_library_options_t options = kiln_library_options_default();
  options.count = N;
  kiln_library_plan_t* plan = kit_plan(kit, name, &options);
  uint32_t want[N], have[N], x[N];
  for (uint32_t i = 0; i < N; i++) x[i] = i * 2654435761u >> 7;
  kiln_resident_t in = dispatch_kit_resident(kit, sizeof(x), x);
  kiln_resident_t out = dispatch_kit_resident(kit, count * 4, NULL);
  const kiln_binding_t bindings[] = {kiln_bind_resident(in),
                                     kiln_bind_resident(out)};
  kiln_stream_t* stream = NULL;
  kiln_graph_builder_t* builder = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_pending_t* pending = NULL;
  assert_null(kiln_stream_create(kit->device, NULL, &stream));
  assert_null(kiln_dispatcher_synchronize(kit->dispatcher));
  assert_null(kiln_library_plan_run(plan, stream, bindings, 2));
  assert_null(kiln_stream_synchronize(stream));
  dispatch_kit_fetch(kit, out, count * 4, want);
  kiln_graph_builder_options_t how = kiln_graph_builder_options_default();
  how.stream = stream;
  assert_null(kiln_graph_builder_create(kit->device, &how, &builder));
  assert_null(kiln_graph_builder_begin(builder, 0));
  assert_null(kiln_library_plan_run(plan, stream, bindings, 2));
  assert_says(kiln_library_plan_begin(plan, stream, bindings, 2, &pending),
              KILN_STATUS_INVALID_STATE, "captured");
  assert_null(kiln_graph_builder_end(builder));
  assert_null(kiln_graph_builder_exec(builder, NULL, &exec));
  for (uint32_t i = 0; i < 3; i++) {
    assert_null(kiln_graph_exec_launch(exec, stream));
    if (i == 1) assert_null(kiln_library_plan_run(plan, stream, bindings, 2));
    assert_null(kiln_stream_synchronize(stream));
    dispatch_kit_fetch(kit, out, count * 4, have);
    assert_memory_equal(have, want, count * 4);
  }
  kiln_graph_exec_release(exec);
  kiln_graph_builder_release(builder);
  kiln_stream_release(stream);
  assert_null(kiln_resident_free(kit->dispatcher, in));
  assert_null(kiln_resident_free(kit->dispatcher, out));
  kiln_library_plan_release(plan);
}

static void test_captured(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  captured(&kit, "scan", 5000);
  captured(&kit, "sort", 5000);
  captured(&kit, "merge_sort", 5000);
  captured(&kit, "fold", 1);
  dispatch_kit_close(&kit);
}

// Rounds are refused before anything is captured.
static void test_captured_rounds(void** state) {
  (void)state;
  static const uint32_t kStarts[] = {0, 1, 2, 3, 3}, kColumns[] = {1, 2, 3};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 10;
  kiln_library_plan_t* plan = kit_plan(&kit, "bfs", &options);
  uint32_t source = 0, levels[4];
  kiln_resident_t all[] = {
      dispatch_kit_resident(&kit, sizeof(kStarts), kStarts),
      dispatch_kit_resident(&kit, sizeof(kColumns), kColumns),
      dispatch_kit_resident(&kit, 4, &source),
      dispatch_kit_resident(&kit, sizeof(levels), NULL)};
  kiln_binding_t bindings[4];
  for (uint32_t i = 0; i < 4; i++) bindings[i] = kiln_bind_resident(all[i]);
  kiln_stream_t* stream = NULL;
  kiln_graph_builder_t* builder = NULL;
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &stream));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  assert_null(kiln_library_plan_run(plan, stream, bindings, 4));
  assert_null(kiln_stream_synchronize(stream));
  kiln_graph_builder_options_t how = kiln_graph_builder_options_default();
  how.stream = stream;
  assert_null(kiln_graph_builder_create(kit.device, &how, &builder));
  assert_null(kiln_graph_builder_begin(builder, 0));
  assert_says(kiln_library_plan_run(plan, stream, bindings, 4),
              KILN_STATUS_INVALID_STATE, "captured");
  assert_null(kiln_graph_builder_end(builder));
  assert_null(kiln_graph_builder_exec(builder, NULL, &exec));
  assert_null(kiln_resident_fill(kit.dispatcher, stream, all[3],
                                 (kiln_resident_range_t){0, sizeof(levels)}, 7,
                                 4));
  assert_null(kiln_graph_exec_launch(exec, stream));
  assert_null(kiln_stream_synchronize(stream));
  dispatch_kit_fetch(&kit, all[3], sizeof(levels), levels);
  for (uint32_t v = 0; v < 4; v++) assert_int_equal(levels[v], 7);
  // Behind it, it runs.
  assert_null(kiln_library_plan_run(plan, stream, bindings, 4));
  assert_null(kiln_stream_synchronize(stream));
  dispatch_kit_fetch(&kit, all[3], sizeof(levels), levels);
  for (uint32_t v = 0; v < 4; v++) assert_int_equal(levels[v], v);
  kiln_graph_exec_release(exec);
  kiln_graph_builder_release(builder);
  kiln_stream_release(stream);
  for (uint32_t i = 0; i < 4; i++) {
    assert_null(kiln_resident_free(kit.dispatcher, all[i]));
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// A run that is refused at a later step leaves nothing to the next one.
static void test_half_a_run(void** state) {
  (void)state;
  enum { N = 3000 };
  static const char* const kNames[] = {"sort", "merge_sort", "runs"};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  uint32_t x[N], want[N], have[N];
  for (uint32_t i = 0; i < N; i++) x[i] = i * 2654435761u >> 9;
  kiln_resident_t in = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_resident_t out[] = {dispatch_kit_resident(&kit, sizeof(x), NULL),
                           dispatch_kit_resident(&kit, sizeof(x), NULL),
                           dispatch_kit_resident(&kit, 4, NULL)};
  for (uint32_t k = 0; k < 3; k++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.count = N;
    kiln_library_plan_t* plan = kit_plan(&kit, kNames[k], &options);
    const kiln_binding_t good[] = {
        kiln_bind_resident(in), kiln_bind_resident(out[0]),
        kiln_bind_resident(out[1]), kiln_bind_resident(out[2])};
    kiln_binding_t bad[] = {good[0], good[1], good[2], good[3]};
    uint32_t count = k == 2 ? 4 : 2, last = k == 2 ? 2 : 1;
    bad[last] = kiln_bind_resident_range(out[last - 1], 0, 400);
    for (uint32_t i = 0; i < 3; i++) {
      assert_null(kiln_library_plan_run(plan, NULL, good, count));
      dispatch_kit_fetch(&kit, out[last - 1], sizeof(x), i == 0 ? want : have);
      if (i > 0) assert_memory_equal(have, want, sizeof(x));
      assert_says(kiln_library_plan_run(plan, NULL, bad, count),
                  KILN_STATUS_INVALID_ARGUMENT, "elements");
    }
    kiln_library_plan_release(plan);
  }
  assert_null(kiln_resident_free(kit.dispatcher, in));
  for (uint32_t i = 0; i < 3; i++) {
    assert_null(kiln_resident_free(kit.dispatcher, out[i]));
  }
  dispatch_kit_close(&kit);
}

// Two plans on two streams at once, and one of them released while it runs.
static void test_two_plans(void** state) {
  (void)state;
  enum { N = 20000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = N;
  uint32_t* x = kit_zeroes(N, 4);
  uint32_t* y = kit_zeroes(N, 4);
  for (uint32_t i = 0; i < N; i++) x[i] = i;
  kiln_resident_t in = dispatch_kit_resident(&kit, N * 4, x);
  for (uint32_t round = 0; round < 4; round++) {
    kiln_library_plan_t* plans[2];
    kiln_stream_t* streams[2];
    kiln_resident_t out[2];
    for (uint32_t i = 0; i < 2; i++) {
      plans[i] = kit_plan(&kit, "scan", &options);
      out[i] = dispatch_kit_resident(&kit, N * 4, NULL);
      assert_null(kiln_stream_create(kit.device, NULL, &streams[i]));
    }
    assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
    for (uint32_t i = 0; i < 2; i++) {
      const kiln_binding_t bindings[] = {kiln_bind_resident(in),
                                         kiln_bind_resident(out[i])};
      assert_null(kiln_library_plan_run(plans[i], streams[i], bindings, 2));
    }
    if (round % 2 == 0) kiln_library_plan_release(plans[0]);
    for (uint32_t i = 0; i < 2; i++) {
      assert_null(kiln_stream_synchronize(streams[i]));
      dispatch_kit_fetch(&kit, out[i], N * 4, y);
      for (uint32_t k = 0, sum = 0; k < N; k++) {
        sum += k;
        assert_int_equal(y[k], sum);
      }
      assert_null(kiln_resident_free(kit.dispatcher, out[i]));
      kiln_stream_release(streams[i]);
      if (i == 1 || round % 2 != 0) kiln_library_plan_release(plans[i]);
    }
  }
  assert_null(kiln_resident_free(kit.dispatcher, in));
  free(x);
  free(y);
  dispatch_kit_close(&kit);
}

// Each field of the options by itself, on each entry: planned, or refused by
// its name; nothing is passed by.
static void test_fields(void** state) {
  (void)state;
  static const char* const kFields[] = {"operation", "exclusive", "descending",
                                        "rest",      "rounds",    "symmetric",
                                        "order",     "value_type"};
  static const uint32_t kUsers[] = {2, 2, 2, 1, 2, 2, 1, 2};
  uint32_t users[8] = {0};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_entry_t entry;
  for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
    for (uint32_t f = 0; f < 8 && entry.part_of == NULL; f++) {
      kiln_library_options_t options = kiln_library_options_default();
      uint32_t* const fields[] = {&options.operation,   &options.exclusive,
                                  &options.descending,  &options.rest,
                                  &options.rounds,      &options.symmetric,
                                  &options.struct_size, &options.value_type};
      options.count = 100;
      *fields[f] = f == 7 ? KILN_PROGRAM_TYPE_U32 : 2;
      options.struct_size = sizeof(options);
      if (f == 6) options.order = "return a < b;";
      kiln_library_plan_t* plan = NULL;
      kiln_status_t status =
          kiln_library_plan_create(kit.dispatcher, entry.name, &options, &plan);
      users[f] += status == NULL;
      if (status != NULL) {
        assert_says(status, KILN_STATUS_INVALID_ARGUMENT, kFields[f]);
      }
      kiln_library_plan_release(plan);
    }
  }
  for (uint32_t f = 0; f < 8; f++) assert_int_equal(users[f], kUsers[f]);
  dispatch_kit_close(&kit);
}

// A plan has no pipelines that its user makes: the fix speaks of none.
static void test_memory_that_overlaps(void** state) {
  (void)state;
  dispatch_kit_t kit;
  kiln_library_options_t options = kiln_library_options_default();
  uint32_t x[8] = {0};
  dispatch_kit_open(&kit);
  options.count = 8;
  options.type = KILN_PROGRAM_TYPE_U32;
  kiln_library_plan_t* plan = kit_plan(&kit, "scan", &options);
  kiln_resident_t both = dispatch_kit_resident(&kit, sizeof(x), x);
  const kiln_binding_t bindings[] = {kiln_bind_resident(both),
                                     kiln_bind_resident(both)};
  kiln_status_t status = kiln_library_plan_run(plan, NULL, bindings, 2);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(kiln_status_fix(status), "does not overlap"));
  assert_null(strstr(kiln_status_fix(status), "pipeline"));
  kiln_status_free(status);
  assert_null(kiln_resident_free(kit.dispatcher, both));
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Results of different launches, one of which would be written over the other.
static void test_results_in_one_place(void** state) {
  (void)state;
  dispatch_kit_t kit;
  kiln_library_options_t options = kiln_library_options_default();
  uint32_t x[8] = {1, 1, 2, 2, 2, 3, 3, 7};
  dispatch_kit_open(&kit);
  options.count = 8;
  options.type = KILN_PROGRAM_TYPE_U32;
  kiln_library_plan_t* plan = kit_plan(&kit, "runs", &options);
  kiln_resident_t from = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_resident_t both = dispatch_kit_resident(&kit, 2 * sizeof(x), NULL);
  kiln_resident_t count = dispatch_kit_resident(&kit, 4, NULL);
  for (uint64_t apart = 0; apart <= sizeof(x); apart += 4) {
    const kiln_binding_t bindings[] = {
        kiln_bind_resident(from), kiln_bind_resident_range(both, 0, sizeof(x)),
        kiln_bind_resident_range(both, apart, sizeof(x)),
        kiln_bind_resident(count)};
    kiln_status_t status = kiln_library_plan_run(plan, NULL, bindings, 4);
    if (apart == sizeof(x)) {
      assert_true(kiln_status_is_ok(status));
    } else {
      assert_says(status, KILN_STATUS_INVALID_ARGUMENT, "lengths");
    }
  }
  assert_null(kiln_resident_free(kit.dispatcher, from));
  assert_null(kiln_resident_free(kit.dispatcher, both));
  assert_null(kiln_resident_free(kit.dispatcher, count));
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// As its page says: keys are read before the place of the result is written.
static void test_sort_in_place(void** state) {
  (void)state;
  enum { N = 20000 };
  dispatch_kit_t kit;
  kiln_library_options_t options = kiln_library_options_default();
  uint32_t* x = kit_zeroes(N, 4);
  uint64_t random = 1;
  for (uint32_t i = 0; i < N; i++) x[i] = (uint32_t)kit_next(&random);
  dispatch_kit_open(&kit);
  options.count = N;
  options.type = KILN_PROGRAM_TYPE_U32;
  kiln_library_plan_t* plan = kit_plan(&kit, "sort", &options);
  kiln_resident_t both = dispatch_kit_resident(&kit, N * sizeof(uint32_t), x);
  const kiln_binding_t bindings[] = {kiln_bind_resident(both),
                                     kiln_bind_resident(both)};
  assert_null(kiln_library_plan_run(plan, NULL, bindings, 2));
  assert_null(kiln_resident_download(kit.dispatcher, NULL, both, 0,
                                     N * sizeof(uint32_t), x));
  for (uint32_t i = 1; i < N; i++) assert_true(x[i - 1] <= x[i]);
  assert_null(kiln_resident_free(kit.dispatcher, both));
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
  free(x);
}

// Rows of two launches: the first one has read all when the second one writes.
static void test_fft_in_place(void** state) {
  (void)state;
  enum { N = 2 * 16384 };
  dispatch_kit_t kit;
  kiln_library_options_t options = kiln_library_options_default();
  float* x = kit_zeroes(N, sizeof(float));
  float* y = kit_zeroes(N, sizeof(float));
  for (uint32_t i = 0; i < N; i++) x[i] = (float)(i * 7 % 97);
  dispatch_kit_open(&kit);
  options.count = N;
  options.segment = N / 2;
  kiln_library_plan_t* plan = kit_plan(&kit, "fft", &options);
  kiln_resident_t from = dispatch_kit_resident(&kit, N * sizeof(float), x);
  kiln_resident_t to = dispatch_kit_resident(&kit, N * sizeof(float), NULL);
  for (int in_place = 0; in_place < 2; in_place++) {
    kiln_resident_t result = in_place != 0 ? from : to;
    const kiln_binding_t bindings[] = {
        kiln_bind_resident(from), kiln_bind_resident(result), kiln_bind_u32(0)};
    assert_null(kiln_library_plan_run(plan, NULL, bindings, 3));
    assert_null(kiln_resident_download(kit.dispatcher, NULL, result, 0,
                                       N * sizeof(float),
                                       in_place != 0 ? x : y));
  }
  assert_memory_equal(x, y, N * sizeof(float));
  assert_null(kiln_resident_free(kit.dispatcher, from));
  assert_null(kiln_resident_free(kit.dispatcher, to));
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
  free(x);
  free(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_that_overlaps),
      cmocka_unit_test(test_results_in_one_place),
      cmocka_unit_test(test_sort_in_place),
      cmocka_unit_test(test_fft_in_place),
      cmocka_unit_test(test_texts),
      cmocka_unit_test(test_plans),
      cmocka_unit_test(test_defaults),
      cmocka_unit_test(test_checks),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_runs_refused),
      cmocka_unit_test(test_allocations),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_captured),
      cmocka_unit_test(test_two_plans),
      cmocka_unit_test(test_fields),
      cmocka_unit_test(test_captured_rounds),
      cmocka_unit_test(test_half_a_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
