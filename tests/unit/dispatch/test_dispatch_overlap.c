// SPDX-License-Identifier: Apache-2.0
//
// dispatch: launches that may start before what is in front of them has ended:
// which ones do, by default and by request, and that nobody can tell by the
// results.
#include "dispatch_kit.h"
#include "table/cuda_table.h"

enum { N = 300 };

// What the driver was asked for, below every wrapper.
static struct {
  kiln_cu_result_t (*launch)(const kiln_cu_launch_config_t* config,
                             kiln_cu_function_t function, void** params,
                             void** extra);
  kiln_cu_result_t (*plain)(kiln_cu_function_t function, unsigned int grid_x,
                            unsigned int grid_y, unsigned int grid_z,
                            unsigned int block_x, unsigned int block_y,
                            unsigned int block_z, unsigned int shared_bytes,
                            kiln_cu_stream_t stream, void** params,
                            void** extra);
  uint32_t early;
  uint32_t others;
} g_asked;

static bool is_early(const kiln_cu_launch_config_t* config) {
  for (unsigned int i = 0; i < config->attribute_count; i++) {
    if (config->attributes[i].id ==
        KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      return config->attributes[i].value.programmatic_serialization != 0;
    }
  }
  return false;
}

static kiln_cu_result_t launch_ex(const kiln_cu_launch_config_t* config,
                                  kiln_cu_function_t function, void** params,
                                  void** extra) {
  *(is_early(config) ? &g_asked.early : &g_asked.others) += 1;
  return g_asked.launch(config, function, params, extra);
}

static kiln_cu_result_t launch_plainly(
    kiln_cu_function_t function, unsigned int grid_x, unsigned int grid_y,
    unsigned int grid_z, unsigned int block_x, unsigned int block_y,
    unsigned int block_z, unsigned int shared_bytes, kiln_cu_stream_t stream,
    void** params, void** extra) {
  g_asked.others++;
  return g_asked.plain(function, grid_x, grid_y, grid_z, block_x, block_y,
                       block_z, shared_bytes, stream, params, extra);
}

static kiln_status_t watch_launches(void* user,
                                    kiln_cuda_table_t* inout_table) {
  (void)user;
  g_asked.launch = inout_table->cuLaunchKernelEx;
  g_asked.plain = inout_table->cuLaunchKernel;
  KILNI_CUDA_SET(inout_table, cuLaunchKernelEx, launch_ex);
  KILNI_CUDA_SET(inout_table, cuLaunchKernel, launch_plainly);
  return kiln_ok();
}

// Since the last call: `early` of `all` launches were allowed to overlap.
#define assert_asked(want_early, want_all)                        \
  do {                                                            \
    assert_int_equal(g_asked.early, (want_early));                \
    assert_int_equal(g_asked.early + g_asked.others, (want_all)); \
    g_asked.early = g_asked.others = 0;                           \
  } while (0)

// Under an odd seed the software device has one worker: one order of
// everything.
static void open_kit(dispatch_kit_t* kit, uint64_t seed) {
  memset(kit, 0, sizeof(*kit));
  fault_alloc_init(&kit->watch);
  kit->allocator = fault_alloc_allocator(&kit->watch);
  kit->own = kiln_allocator_libc();
  kilni_runtime_hooks_t hooks = {0};
  hooks.soft_allocator = &kit->own;
  hooks.wrap = watch_launches;
  kiln_runtime_options_t runtime = kiln_runtime_options_default();
  runtime.allocator = &kit->allocator;
  runtime.soft_seed = seed;
  runtime.soft_workers = seed == 0 ? 0 : seed % 2 != 0 ? 1 : 3;
  assert_null(kilni_runtime_create_with(&runtime, &hooks, &kit->runtime));
  assert_null(kiln_runtime_open_device(kit->runtime, "soft", &kit->device));
  assert_null(kiln_dispatcher_create(kit->device, NULL, &kit->dispatcher));
  g_asked.early = g_asked.others = 0;
}

// ---- Which launches overlap ----

static void test_default(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_kit(&kit, 0);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kStep, NULL);
  assert_int_equal(kiln_pipeline_info(pipeline)->waits, 1);
  uint32_t x[N] = {0};
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_binding_t binding = kiln_bind_resident(rx);
  kiln_stream_t* mine = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &mine));
  kiln_dispatch_options_t asks = kiln_dispatch_options_default();
  kiln_dispatch_options_t never = asks;
  asks.overlap = KILN_SWITCH_ON;
  asks.iterations = 3;
  never.overlap = KILN_SWITCH_OFF;
  // On its own stream, unless told not to.
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, NULL, NULL));
  assert_asked(1, 1);
  assert_null(
      kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, &never, NULL));
  assert_asked(0, 1);
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  // On a stream of the caller by request.
  assert_null(kiln_pipeline_dispatch(pipeline, mine, &binding, 1, NULL, NULL));
  assert_asked(0, 1);
  assert_null(kiln_pipeline_dispatch(pipeline, mine, &binding, 1, &asks, NULL));
  assert_asked(3, 3);
  assert_null(kiln_stream_synchronize(mine));
  // A batch, over streams that are not given out.
  kiln_dispatch_batch_t batch = kiln_dispatch_batch_default();
  kiln_binding_t parts[4];
  for (uint32_t i = 0; i < 4; i++) {
    parts[i] = kiln_bind_resident_range(rx, 64 * (uint64_t)i, 64);
  }
  batch.bindings = parts;
  batch.binding_count = 1;
  batch.count = 4;
  assert_null(kiln_pipeline_dispatch_batch(pipeline, NULL, &batch, NULL, NULL));
  assert_asked(4, 4);
  // A stream that was given out may hold anything.
  kiln_stream_t* own = NULL;
  assert_null(kiln_dispatcher_stream(kit.dispatcher, 0, &own));
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, NULL, NULL));
  assert_null(kiln_pipeline_dispatch(pipeline, own, &binding, 1, NULL, NULL));
  assert_asked(0, 2);
  asks.iterations = 1;
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, &asks, NULL));
  assert_asked(1, 1);
  dispatch_kit_fetch(&kit, rx, sizeof(x), x);
  for (uint32_t i = 0; i < N; i++) {
    assert_int_equal(x[i], (1u << (i < 64 ? 10 : 9)) - 1);
  }
  kiln_stream_release(mine);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

static void test_prepared(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_kit(&kit, 0);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kStep, NULL);
  uint32_t x[N] = {0};
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_binding_t binding = kiln_bind_resident(rx);
  kiln_stream_t* mine = NULL;
  kiln_stream_t* own = NULL;
  assert_null(kiln_stream_create(kit.device, NULL, &mine));
  kiln_dispatch_options_t how = kiln_dispatch_options_default();
  kiln_prepared_t* prepared[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < 3; i++) {
    how.overlap = i;  // KILN_SWITCH_*
    assert_null(
        kiln_pipeline_prepare(pipeline, &binding, 1, &how, &prepared[i]));
  }
  uint64_t before = kit.watch.total_blocks;
  assert_null(kiln_prepared_run(prepared[0], NULL));
  assert_asked(1, 1);
  assert_null(kiln_prepared_run(prepared[1], NULL));
  assert_asked(0, 1);
  assert_null(kiln_prepared_run(prepared[2], NULL));
  assert_asked(1, 1);
  assert_int_equal(kit.watch.total_blocks, before);
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  for (uint32_t i = 0; i < 3; i++) {
    assert_null(kiln_prepared_run(prepared[i], mine));
  }
  assert_asked(1, 3);
  assert_null(kiln_stream_synchronize(mine));
  assert_null(kiln_dispatcher_stream(kit.dispatcher, 0, &own));
  assert_null(kiln_prepared_run(prepared[0], NULL));
  assert_null(kiln_prepared_run(prepared[0], own));
  assert_asked(0, 2);
  dispatch_kit_fetch(&kit, rx, sizeof(x), x);
  for (uint32_t i = 0; i < N; i++) assert_int_equal(x[i], 255);
  for (uint32_t i = 0; i < 3; i++) kiln_prepared_release(prepared[i]);
  kiln_stream_release(mine);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// Code that does not wait, and launches that are as they must be.
static void test_never(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_kit(&kit, 0);
  uint32_t x[64] = {0};
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_resident_t ry = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_binding_t bindings[2] = {kiln_bind_resident(rx), kiln_bind_resident(ry)};
  kiln_dispatch_options_t asks = kiln_dispatch_options_default();
  kiln_pipeline_options_t how = kiln_pipeline_options_default();
  asks.overlap = KILN_SWITCH_ON;
  how.overlap = KILN_SWITCH_OFF;
  kiln_pipeline_t* plain = dispatch_kit_pipeline(&kit, kStep, &how);
  assert_int_equal(kiln_pipeline_info(plain)->waits, 0);
  assert_null(kiln_pipeline_dispatch(plain, NULL, bindings, 1, NULL, NULL));
  assert_asked(0, 1);
  assert_says(kiln_pipeline_dispatch(plain, NULL, bindings, 1, &asks, NULL),
              KILN_STATUS_UNSUPPORTED, "griddepcontrol.wait");
  // Blocks that wait for each other.
  kiln_pipeline_t* meeting = dispatch_kit_pipeline(&kit, kMeeting, NULL);
  assert_int_equal(kiln_pipeline_info(meeting)->waits, 0);
  assert_null(kiln_pipeline_dispatch(meeting, NULL, bindings, 2, NULL, NULL));
  assert_asked(0, 1);
  assert_says(kiln_pipeline_dispatch(meeting, NULL, bindings, 2, &asks, NULL),
              KILN_STATUS_UNSUPPORTED, "overlap");
  kiln_program_t* program = dispatch_kit_program(kMeeting);
  kiln_pipeline_t* none = NULL;
  how.overlap = KILN_SWITCH_ON;
  assert_says(kiln_pipeline_create(kit.dispatcher, program, &how, &none),
              KILN_STATUS_UNSUPPORTED, "grid barrier");
  kiln_program_release(program);
  // By request code that waits can be had, or nothing.
  kiln_pipeline_t* asked = dispatch_kit_pipeline(&kit, kStep, &how);
  assert_int_equal(kiln_pipeline_info(asked)->waits, 1);
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  kiln_pipeline_release(asked);
  kiln_pipeline_release(meeting);
  kiln_pipeline_release(plain);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  assert_null(kiln_resident_free(kit.dispatcher, ry));
  dispatch_kit_close(&kit);
}

// A kernel's pipeline knows by its description alone that it waits, so it
// overlaps by request only.
static void test_kernel(void** state) {
  (void)state;
  dispatch_kit_t kit;
  open_kit(&kit, 0);
  kiln_pipeline_t* made = dispatch_kit_pipeline(&kit, kStep, NULL);
  kiln_program_code_t* code = kiln_pipeline_code(made);
  kiln_interface_parameter_t parameters[4];
  kiln_program_parameter_t p;
  memset(parameters, 0, sizeof(parameters));
  uint32_t count = kiln_program_code_parameter_count(code);
  assert_in_range(count, 2, 4);
  for (uint32_t i = 0; i < count; i++) {
    assert_true(kiln_program_code_parameter(code, i, &p));
    parameters[i].type = KILN_PROGRAM_TYPE_U64;
    parameters[i].kind = KILN_INTERFACE_LENGTH;
    if (p.kind != KILN_PROGRAM_PARAMETER_ADDRESS) continue;
    parameters[i].kind = KILN_INTERFACE_BUFFER;
    parameters[i].type = KILN_PROGRAM_TYPE_U32;
    parameters[i].role = KILN_PROGRAM_ROLE_INOUT;
  }
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  kiln_interface_t interface = kiln_interface_default();
  interface.parameters = parameters;
  interface.parameter_count = count;
  interface.work[0].from = KILN_INTERFACE_BY_BUFFER;
  interface.work_per_thread[0] = launch.elements;
  interface.waits = KILN_SWITCH_ON;
  kiln_pipeline_t* pipeline = NULL;
  assert_null(kiln_pipeline_create_kernel(
      kit.dispatcher, kiln_pipeline_kernel(made), &interface, &pipeline));
  uint32_t x[N] = {0};
  kiln_resident_t rx = dispatch_kit_resident(&kit, sizeof(x), x);
  kiln_binding_t binding = kiln_bind_resident(rx);
  kiln_dispatch_options_t asks = kiln_dispatch_options_default();
  asks.overlap = KILN_SWITCH_ON;
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, NULL, NULL));
  assert_asked(0, 1);
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, &asks, NULL));
  assert_asked(1, 1);
  dispatch_kit_fetch(&kit, rx, sizeof(x), x);
  for (uint32_t i = 0; i < N; i++) assert_int_equal(x[i], 3);
  assert_null(kiln_resident_free(kit.dispatcher, rx));
  kiln_pipeline_release(pipeline);
  kiln_pipeline_release(made);
  dispatch_kit_close(&kit);
}

// ---- What they compute ----

// Each dispatch reads what all blocks of the one before have written.
static const char kTurn[] =
    "program turn(x: in u32[], y: out u32[length(x)]) work length(x) block 32\n"
    "{ let i = global_id.x; y[i] = x[length(x) - 1u32 - i] * 3u32 + i; }\n";

static void test_chain(void** state) {
  (void)state;
  enum { STEPS = 24, SEEDS = 12 };
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    dispatch_kit_t kit;
    open_kit(&kit, seed);
    kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, kTurn, NULL);
    uint32_t want[2][N] = {{0}};
    uint32_t got[N];
    kiln_resident_t r[2];
    r[0] = dispatch_kit_resident(&kit, sizeof(got), want[0]);
    r[1] = dispatch_kit_resident(&kit, sizeof(got), NULL);
    for (uint32_t k = 0; k < STEPS; k++) {
      kiln_binding_t bindings[2] = {kiln_bind_resident(r[k % 2]),
                                    kiln_bind_resident(r[1 - k % 2])};
      assert_null(
          kiln_pipeline_dispatch(pipeline, NULL, bindings, 2, NULL, NULL));
      for (uint32_t i = 0; i < N; i++) {
        want[1 - k % 2][i] = want[k % 2][N - 1 - i] * 3 + i;
      }
      // What is between two launches is between them.
      if (k % 7 == 3) {
        kiln_resident_range_t first = {0, 40};
        assert_null(kiln_resident_fill(kit.dispatcher, NULL, r[1 - k % 2],
                                       first, 5, 4));
        for (uint32_t i = 0; i < 10; i++) want[1 - k % 2][i] = 5;
      }
    }
    assert_asked(STEPS, STEPS);
    dispatch_kit_fetch(&kit, r[0], sizeof(got), got);
    assert_memory_equal(got, want[0], sizeof(got));
    assert_null(kiln_resident_free(kit.dispatcher, r[0]));
    assert_null(kiln_resident_free(kit.dispatcher, r[1]));
    kiln_pipeline_release(pipeline);
    dispatch_kit_close(&kit);
  }
}

// The software device runs such launches before the ones in front have ended:
// code that does not wait is found out. The same code as a pipeline's, with its
// waits or without, launched early by request.
static kiln_pipeline_t* by_text(dispatch_kit_t* kit, const char* program,
                                bool waits) {
  static const char kWait[] = "griddepcontrol.wait;";
  kiln_pipeline_t* made = dispatch_kit_pipeline(kit, program, NULL);
  kiln_program_code_t* code = kiln_pipeline_code(made);
  kiln_string_view_t view = kiln_program_code_text(code);
  char text[8192];
  assert_true(view.size < sizeof(text));
  memcpy(text, view.data, view.size + 1);
  char* at = strstr(text, kWait);
  assert_non_null(at);
  if (!waits) memset(at, ' ', sizeof(kWait) - 1);
  kiln_bytes_view_t bytes = {(const uint8_t*)text, view.size};
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_module_load(kit->device, bytes, NULL, NULL, &module));
  assert_null(
      kiln_kernel_create(module, kiln_program_code_entry(code), &kernel));
  kiln_interface_parameter_t parameters[8];
  kiln_program_parameter_t p;
  memset(parameters, 0, sizeof(parameters));
  uint32_t count = kiln_program_code_parameter_count(code);
  assert_in_range(count, 2, 8);
  for (uint32_t i = 0; i < count; i++) {
    assert_true(kiln_program_code_parameter(code, i, &p));
    bool buffer = p.kind == KILN_PROGRAM_PARAMETER_ADDRESS;
    parameters[i].kind = buffer ? KILN_INTERFACE_BUFFER : KILN_INTERFACE_LENGTH;
    parameters[i].type = buffer ? KILN_PROGRAM_TYPE_U32 : KILN_PROGRAM_TYPE_U64;
    parameters[i].role = buffer ? KILN_PROGRAM_ROLE_INOUT : 0;
    parameters[i].of = buffer ? 0 : i - 1;
  }
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  kiln_interface_t interface = kiln_interface_default();
  interface.parameters = parameters;
  interface.parameter_count = count;
  interface.work[0].from = KILN_INTERFACE_BY_BUFFER;
  interface.work_per_thread[0] = launch.elements;
  interface.waits = KILN_SWITCH_ON;
  kiln_pipeline_t* pipeline = NULL;
  assert_null(kiln_pipeline_create_kernel(kit->dispatcher, kernel, &interface,
                                          &pipeline));
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  kiln_pipeline_release(made);
  return pipeline;
}

// Nearly all of its threads return at once.
static const char kFirst[] =
    "program first(x: inout u32[]) work length(x) block 32\n"
    "{ let i = global_id.x; if i > 3u32 { return; } x[i] = x[i] + 1u32; }\n";

// Of `seeds` how many leave something else than a chain gives: of launches that
// wait or not, with such between them that touch other memory.
static uint32_t wrong_chains(uint32_t seeds, bool waits, bool between,
                             bool between_waits) {
  enum { STEPS = 8, WORDS = 200 };
  uint32_t wrong = 0;
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    dispatch_kit_t kit;
    open_kit(&kit, seed);
    kiln_pipeline_t* turn = by_text(&kit, kTurn, waits);
    kiln_pipeline_t* first = by_text(&kit, kFirst, between_waits);
    kiln_dispatch_options_t asks = kiln_dispatch_options_default();
    asks.overlap = KILN_SWITCH_ON;
    uint32_t want[2][WORDS] = {{0}};
    uint32_t got[WORDS];
    kiln_resident_t r[3];
    for (uint32_t i = 0; i < 3; i++) {
      r[i] = dispatch_kit_resident(&kit, sizeof(got), want[0]);
    }
    kiln_binding_t other = kiln_bind_resident(r[2]);
    for (uint32_t k = 0; k < STEPS; k++) {
      kiln_binding_t bindings[2] = {kiln_bind_resident(r[k % 2]),
                                    kiln_bind_resident(r[1 - k % 2])};
      assert_null(kiln_pipeline_dispatch(turn, NULL, bindings, 2, &asks, NULL));
      if (between) {
        assert_null(
            kiln_pipeline_dispatch(first, NULL, &other, 1, &asks, NULL));
      }
      for (uint32_t i = 0; i < WORDS; i++) {
        want[1 - k % 2][i] = want[k % 2][WORDS - 1 - i] * 3 + i;
      }
    }
    dispatch_kit_fetch(&kit, r[0], sizeof(got), got);
    wrong += memcmp(got, want[0], sizeof(got)) != 0;
    for (uint32_t i = 0; i < 3; i++) {
      assert_null(kiln_resident_free(kit.dispatcher, r[i]));
    }
    kiln_pipeline_release(first);
    kiln_pipeline_release(turn);
    dispatch_kit_close(&kit);
  }
  return wrong;
}

static void test_found_out(void** state) {
  (void)state;
  enum { SEEDS = 12 };
  assert_int_equal(wrong_chains(SEEDS, true, false, true), 0);
  assert_int_equal(wrong_chains(SEEDS, true, true, true), 0);
  // Without a wait it reads what the one in front has not written yet.
  assert_int_not_equal(wrong_chains(SEEDS, false, false, true), 0);
  // Without a wait in the one between, the next waits for too little.
  assert_int_not_equal(wrong_chains(SEEDS, true, true, false), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_default), cmocka_unit_test(test_prepared),
      cmocka_unit_test(test_never),   cmocka_unit_test(test_kernel),
      cmocka_unit_test(test_chain),   cmocka_unit_test(test_found_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
