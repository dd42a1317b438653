// SPDX-License-Identifier: Apache-2.0
//
// device: modules made of code: when they are loaded, how things in them are
// called, and where and when they are unloaded.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <stdatomic.h>

#include "base/thread.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

static const char kPtx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 _Z5countv = 5;\n"
    ".visible .const .align 8 .b8 table[24];\n"
    ".visible .entry _Z3addIfEvPT_(.param .u64 x, .param .f32 a) { ret; }\n"
    ".visible .entry plain() .maxntid 128, 1, 1 { ret; }\n";

// Over the null provider or the software device. one-thread
typedef struct world_t {
  kiln_cuda_table_t table;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_code_t* code;
} world_t;

static kiln_cuda_table_t null_table;

static void open_world(world_t* world, const char* name) {
  memset(world, 0, sizeof(*world));
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &null_table;
  assert_null(kilni_runtime_create_with(NULL, &hooks, &world->runtime));
  assert_null(kiln_runtime_open_device(world->runtime, name, &world->device));
  static const kiln_code_name_t names[] = {{"add<float>", "_Z3addIfEvPT_"},
                                           {"&count", "_Z5countv"}};
  kiln_code_options_t options = kiln_code_options_default();
  options.names = names;
  options.name_count = 2;
  options.name = "math";
  kiln_bytes_view_t bytes = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  assert_null(kiln_code_create(bytes, &options, &world->code));
}

static void close_world(world_t* world) {
  kiln_code_release(world->code);
  kiln_device_release(world->device);
  kiln_runtime_release(world->runtime);
}

static int setup(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&null_table);
  return 0;
}

static int teardown(void** state) {
  (void)state;
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  return 0;
}

// Facts 5.2 P10, P18: loaded at the first kernel, kept by it alone.
static void test_lazy(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "cuda:0");
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  assert_false(kiln_module_is_loaded(module));
  assert_int_equal(kiln_module_kernel_count(module), 0);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_LIBRARY), 0);
  assert_null(kiln_kernel_create(module, "plain", &kernel));
  assert_true(kiln_module_is_loaded(module));
  assert_int_equal(kiln_module_kernel_count(module), 2);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_LIBRARY), 1);
  assert_null(kiln_module_ready(module));
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_LIBRARY), 1);
  kiln_module_release(module);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_LIBRARY), 1);
  kiln_kernel_release(kernel);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_LIBRARY), 0);
  close_world(&world);
}

static void test_never_used(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "cuda:0");
  kiln_module_t* module = NULL;
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  kiln_module_release(module);
  close_world(&world);
}

// Facts 5.2 P7, P12.
static void test_names(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  assert_null(kiln_kernel_create(module, "add<float>", &kernel));
  assert_string_equal(kiln_kernel_name(kernel), "_Z3addIfEvPT_");
  assert_int_equal(kiln_kernel_info(kernel)->param_count, 2);
  assert_int_equal(kiln_kernel_param(kernel, 1)->offset, 8);
  kiln_kernel_release(kernel);
  assert_null(kiln_kernel_create(module, "_Z3addIfEvPT_", &kernel));
  kiln_kernel_release(kernel);
  uint64_t address = 0;
  uint64_t bytes = 0;
  assert_null(kiln_module_global(module, "&count", &address, &bytes));
  assert_true(address != 0 && bytes == 4);
  assert_null(kiln_module_global(module, "table", &address, &bytes));
  assert_int_equal(bytes, 24);
  kiln_status_t status = kiln_kernel_create(module, "add<int>", &kernel);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
  status = kiln_module_global(module, "absent", &address, &bytes);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
  kiln_module_release(module);
  close_world(&world);
}

// Machine code has no names of parameters; the PTX it was made of has.
static void test_described(void** state) {
  (void)state;
  static const uint8_t cubin[64] = {0x7f, 'E',  'L', 'F',      2,         1,
                                    1,    0x41, 8,   [16] = 2, [18] = 190};
  world_t world;
  open_world(&world, "cuda:0");
  kiln_bytes_view_t bytes = {cubin, sizeof(cubin)};
  kiln_module_options_t options = kiln_module_options_default();
  for (int lazy = 0; lazy < 2; lazy++) {
    kiln_module_t* module = NULL;
    kiln_kernel_t* kernel = NULL;
    kiln_code_t* code = NULL;
    kiln_code_options_t of_code = kiln_code_options_default();
    of_code.format = KILN_CODE_FORMAT_CUBIN;
    options.described_by = world.code;
    assert_null(kiln_code_create(bytes, &of_code, &code));
    if (lazy == 1) {
      assert_null(kiln_module_create(world.device, code, &options, &module));
    } else {
      assert_null(
          kiln_module_load(world.device, bytes, &options, NULL, &module));
    }
    assert_null(kiln_kernel_create(module, "_Z3addIfEvPT_", &kernel));
    assert_int_equal(kiln_module_kernel_count(module), 2);
    assert_int_equal(kiln_kernel_info(kernel)->param_count, 2);
    assert_string_equal(kiln_kernel_param(kernel, 0)->name, "x");
    assert_int_equal(kiln_kernel_param(kernel, 1)->kind, KILN_PARAM_KIND_FLOAT);
    kiln_kernel_release(kernel);
    kiln_module_release(module);
    // Only PTX describes.
    options.described_by = code;
    module = NULL;
    kiln_status_t status =
        lazy == 1
            ? kiln_module_create(world.device, code, &options, &module)
            : kiln_module_load(world.device, bytes, &options, NULL, &module);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
    assert_null(module);
    kiln_status_free(status);
    kiln_code_release(code);
  }
  close_world(&world);
}

// Facts 5.2 P11: what is not linked is not loaded, and told so at once.
static void test_formats(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  static const uint32_t formats[] = {KILN_CODE_FORMAT_LTOIR,
                                     KILN_CODE_FORMAT_OBJECT,
                                     KILN_CODE_FORMAT_LIBRARY};
  static const char* const bytes[] = {"\355\103\116\177 ir", "\177ELF object",
                                      "!<arch>\n"};
  for (int i = 0; i < 3; i++) {
    kiln_code_options_t options = kiln_code_options_default();
    options.format = formats[i];
    options.name = "piece";
    kiln_bytes_view_t view = {(const uint8_t*)bytes[i], strlen(bytes[i])};
    kiln_code_t* code = NULL;
    kiln_module_t* module = NULL;
    assert_null(kiln_code_create(view, &options, &code));
    kiln_status_t status =
        kiln_module_create(world.device, code, NULL, &module);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
    assert_non_null(
        strstr(kiln_status_message(status), kiln_code_format_name(formats[i])));
    assert_non_null(strstr(kiln_status_fix(status), "link"));
    assert_null(module);
    kiln_status_free(status);
    kiln_code_release(code);
  }
  close_world(&world);
}

// A refusal is told at the first use, and again at the next.
static void test_late_refusal(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  static const char text[] =
      ".version 8.0\n.target sm_75\n.address_size 64\n"
      ".visible .entry k() { frobnicate; }\n";
  kiln_bytes_view_t view = {(const uint8_t*)text, sizeof(text) - 1};
  kiln_code_t* code = NULL;
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_code_create(view, NULL, &code));
  assert_null(kiln_module_create(world.device, code, NULL, &module));
  kiln_code_release(code);
  for (int i = 0; i < 2; i++) {
    kiln_status_t status = kiln_kernel_create(module, "k", &kernel);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
    kiln_status_free(status);
    assert_null(kernel);
    assert_false(kiln_module_is_loaded(module));
  }
  kiln_module_release(module);
  close_world(&world);
}

// What the software device cannot do it names, and what to do about it is the
// status's own Fix, not a line among others.
static void test_fix_of_the_log(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  static const char text[] =
      ".version 8.6\n.target sm_100\n.address_size 64\n"
      ".visible .entry k() { ret; }\n";
  kiln_bytes_view_t view = {(const uint8_t*)text, sizeof(text) - 1};
  kiln_module_t* module = NULL;
  kiln_status_t status =
      kiln_module_load(world.device, view, NULL, NULL, &module);
  assert_null(module);
  assert_string_equal(kiln_status_fix(status),
                      "compile for compute_90 or lower");
  char said[4096];
  kiln_status_format(status, sizeof(said), said, NULL);
  const char* first = strstr(said, "Fix: ");
  assert_non_null(first);
  assert_null(strstr(first + 1, "Fix: "));
  assert_non_null(strstr(said, "the software device is an sm_90"));
  kiln_status_free(status);
  close_world(&world);
}

// ---- Kernels that a driver lists ----

enum { MANY_KERNELS = 5000 };

static kiln_cu_result_t count_many(unsigned int* count,
                                   kiln_cu_module_t module) {
  (void)module;
  *count = MANY_KERNELS;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t enumerate_many(kiln_cu_function_t* functions,
                                       unsigned int count,
                                       kiln_cu_module_t module) {
  (void)module;
  for (unsigned int i = 0; i < count; i++) {
    functions[i] = (kiln_cu_function_t)(uintptr_t)(i + 1);
  }
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t name_many(const char** name,
                                  kiln_cu_function_t function) {
  static char text[32];
  (void)snprintf(text, sizeof(text), "k%u", (unsigned)(uintptr_t)function);
  *name = text;
  return KILN_CU_SUCCESS;
}

// A list that is cut off says nothing of the kernels behind its end.
static void test_more_kernels_than_are_listed(void** state) {
  (void)state;
  null_table.cuModuleGetFunctionCount = count_many;
  null_table.cuModuleEnumerateFunctions = enumerate_many;
  null_table.cuFuncGetName = name_many;
  world_t world;
  open_world(&world, "cuda:0");
  // A fatbin without entries: only the driver lists it.
  static const uint8_t fatbin[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16};
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_module_load(world.device,
                               (kiln_bytes_view_t){fatbin, sizeof(fatbin)},
                               NULL, NULL, &module));
  assert_true(kiln_module_kernel_count(module) < MANY_KERNELS);
  assert_null(kiln_kernel_create(module, "k4999", &kernel));
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  close_world(&world);
}

// Facts 5.2 P14.
static void test_attributes(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  assert_null(kiln_kernel_create(module, "plain", &kernel));
  kiln_module_release(module);
  int32_t value = 0;
  for (int twice = 0; twice < 2; twice++) {
    assert_null(kiln_kernel_attribute(kernel, KILN_KERNEL_ATTRIBUTE_MAX_THREADS,
                                      &value));
    assert_int_equal(value, 128);
    assert_null(kiln_kernel_attribute(kernel, KILN_KERNEL_ATTRIBUTE_PTX_VERSION,
                                      &value));
    assert_int_equal(value, 75);
    assert_null(kiln_kernel_attribute(
        kernel, KILN_KERNEL_ATTRIBUTE_SHARED_CARVEOUT, &value));
    assert_int_equal(value, -1);
  }
  for (uint32_t i = 0; i < 16; i++) {
    assert_null(kiln_kernel_attribute(kernel, i, &value));
  }
  kiln_status_t status = kiln_kernel_attribute(kernel, 16, &value);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  kiln_kernel_release(kernel);
  close_world(&world);
}

static size_t same_for_all(int threads) {
  (void)threads;
  return 4096;
}

// Facts 5.2 P16: consistent, and the function equals the number.
static void test_occupancy(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  assert_null(kiln_kernel_create(module, "plain", &kernel));
  uint32_t blocks = 0;
  uint32_t threads = 0;
  uint32_t more[2] = {0, 0};
  uint64_t bytes = 0;
  assert_null(kiln_kernel_max_blocks(kernel, 64, 0, &blocks));
  assert_true(blocks >= 1);
  assert_null(kiln_kernel_available_shared(kernel, blocks, 64, &bytes));
  assert_null(kiln_kernel_max_blocks(kernel, 64, bytes, &more[0]));
  assert_true(more[0] >= blocks);
  assert_null(kiln_kernel_best_block(kernel, NULL, 4096, 0, &blocks, &threads));
  assert_true(blocks >= 1 && threads >= 32 && threads <= 128);
  assert_null(
      kiln_kernel_best_block(kernel, same_for_all, 0, 0, &more[0], &more[1]));
  assert_int_equal(more[0], blocks);
  assert_int_equal(more[1], threads);
  assert_null(kiln_kernel_best_block(kernel, NULL, 0, 64, &blocks, &threads));
  assert_true(threads <= 64);
  kiln_status_t status = kiln_kernel_max_blocks(kernel, 0, 0, &blocks);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  close_world(&world);
}

// ---- Threads ----

enum { THREADS = 4, ROUNDS = 50 };

// Tells where a library ended. one-thread
static kiln_cu_context_t unloaded_in;
static kiln_cuda_table_t plain_table;

static kiln_cu_result_t see_unload(kiln_cu_library_t library) {
  plain_table.cuCtxGetCurrent(&unloaded_in);
  return plain_table.cuLibraryUnload(library);
}

// Facts 8.7 and 8.10: another context is current where the last user lets go.
static void test_unload_context(void** state) {
  (void)state;
  kilni_table_cuda_table_null(&plain_table);
  null_table.cuLibraryUnload = see_unload;
  world_t world;
  open_world(&world, "cuda:0");
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  assert_null(kiln_kernel_create(module, "plain", &kernel));
  kiln_module_release(module);
  // The kernel is the last that holds module, device and context.
  close_world(&world);
  kiln_cu_context_t other = (kiln_cu_context_t)(uintptr_t)0x4444;
  null_table.cuCtxSetCurrent(other);
  unloaded_in = NULL;
  kiln_kernel_release(kernel);
  assert_non_null(unloaded_in);
  assert_ptr_not_equal(unloaded_in, other);
  kiln_cu_context_t current = NULL;
  null_table.cuCtxGetCurrent(&current);
  assert_ptr_equal(current, other);
  null_table.cuCtxSetCurrent(NULL);
}

// ---- Nothing is loaded for ever, and nothing in use is unloaded ----

enum { MODULES = 64 };

// Every load and unload of the driver, and what is loaded. one-thread
static unsigned int loads;
static unsigned int unloads;
static kiln_cu_library_t live_libraries[MODULES];

static kiln_cu_result_t count_load(kiln_cu_library_t* library, const void* code,
                                   kiln_cu_jit_option_t* jit_options,
                                   void** jit_values, unsigned int jit_count,
                                   kiln_cu_library_option_t* options,
                                   void** values, unsigned int count) {
  kiln_cu_result_t result =
      plain_table.cuLibraryLoadData(library, code, jit_options, jit_values,
                                    jit_count, options, values, count);
  assert_true(loads < MODULES);
  live_libraries[loads++] = *library;
  return result;
}

static kiln_cu_result_t count_unload(kiln_cu_library_t library) {
  unsigned int at = 0;
  while (at < loads && live_libraries[at] != library) at++;
  assert_true(at < loads);  // loaded, and not unloaded before
  live_libraries[at] = NULL;
  unloads++;
  plain_table.cuCtxGetCurrent(&unloaded_in);
  return plain_table.cuLibraryUnload(library);
}

static kiln_cu_result_t load_nothing(kiln_cu_library_t* library,
                                     const void* code,
                                     kiln_cu_jit_option_t* jit_options,
                                     void** jit_values, unsigned int jit_count,
                                     kiln_cu_library_option_t* options,
                                     void** values, unsigned int count) {
  (void)code;
  (void)jit_options;
  (void)jit_values;
  (void)jit_count;
  (void)options;
  (void)values;
  (void)count;
  *library = (kiln_cu_library_t)(uintptr_t)0xbad;
  return KILN_CU_ERROR_NO_BINARY_FOR_GPU;
}

// What a failed call wrote is no library, and is not unloaded.
static void test_a_library_that_is_not_loaded(void** state) {
  (void)state;
  kilni_table_cuda_table_null(&plain_table);
  world_t world;
  kiln_module_t* module = NULL;
  loads = 0;
  unloads = 0;
  null_table.cuLibraryLoadData = load_nothing;
  null_table.cuLibraryUnload = count_unload;
  open_world(&world, "cuda:0");
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  kiln_status_t status = kiln_module_ready(module);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  kiln_status_free(status);
  kiln_module_release(module);
  assert_int_equal(unloads, 0);
  close_world(&world);
}

// Many modules of one code, half of them used: each is loaded once, when it is
// used, and unloaded once, by the last who lets go, in the device's context.
static void test_each_load_is_unloaded(void** state) {
  (void)state;
  kilni_table_cuda_table_null(&plain_table);
  loads = 0;
  unloads = 0;
  null_table.cuLibraryLoadData = count_load;
  null_table.cuLibraryUnload = count_unload;
  world_t world;
  kiln_module_t* modules[MODULES];
  kiln_kernel_t* kernels[MODULES][2] = {{NULL, NULL}};
  open_world(&world, "cuda:0");
  kiln_cu_context_t own = NULL;
  for (int i = 0; i < MODULES; i++) {
    assert_null(
        kiln_module_create(world.device, world.code, NULL, &modules[i]));
  }
  assert_int_equal(loads, 0);
  for (int i = 0; i < MODULES; i += 2) {
    assert_null(kiln_kernel_create(modules[i], "plain", &kernels[i][0]));
    assert_null(kiln_kernel_create(modules[i], "add<float>", &kernels[i][1]));
  }
  assert_int_equal(loads, MODULES / 2);
  for (int i = 0; i < MODULES; i++) kiln_module_release(modules[i]);
  assert_int_equal(unloads, 0);  // kernels hold theirs
  for (int i = 0; i < MODULES; i += 2) kiln_kernel_release(kernels[i][0]);
  assert_int_equal(unloads, 0);
  null_table.cuCtxSetCurrent((kiln_cu_context_t)(uintptr_t)0x4444);
  for (int i = 0; i < MODULES; i += 2) {
    kiln_kernel_release(kernels[i][1]);
    assert_int_equal(unloads, i / 2 + 1);
    if (i == 0) own = unloaded_in;
    assert_ptr_equal(unloaded_in, own);
    assert_ptr_not_equal(unloaded_in, (kiln_cu_context_t)(uintptr_t)0x4444);
  }
  assert_int_equal(unloads, loads);
  null_table.cuCtxSetCurrent(NULL);
  close_world(&world);
}

// What the threads share. thread-safe
typedef struct crowd_t {
  kiln_module_t* module;
  atomic_uint failures;
} crowd_t;

static void use_module(void* user) {
  crowd_t* crowd = user;
  for (int i = 0; i < ROUNDS; i++) {
    kiln_kernel_t* kernel = NULL;
    kiln_status_t status = kiln_kernel_create(
        crowd->module, i % 2 ? "plain" : "add<float>", &kernel);
    if (!kiln_status_is_ok(status)) atomic_fetch_add(&crowd->failures, 1);
    kiln_status_free(status);
    kiln_kernel_release(kernel);
  }
  kiln_module_release(crowd->module);
}

// All load at once; the last to let go, on whatever thread, unloads.
static void test_crowd(void** state) {
  (void)state;
  for (int round = 0; round < 10; round++) {
    world_t world;
    open_world(&world, "soft");
    crowd_t crowd = {NULL, 0};
    assert_null(
        kiln_module_create(world.device, world.code, NULL, &crowd.module));
    kilni_base_thread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
      kiln_module_retain(crowd.module);
      assert_null(
          kilni_base_thread_start(&threads[i], "user", use_module, &crowd));
    }
    kiln_module_release(crowd.module);
    close_world(&world);
    for (int i = 0; i < THREADS; i++) kilni_base_thread_join(&threads[i]);
    assert_int_equal(atomic_load(&crowd.failures), 0);
  }
}

// A cluster of one block is a block; the software device has no other.
static void test_clusters(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  assert_null(kiln_kernel_create(module, "plain", &kernel));
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = 64;
  uint32_t count = 0;
  uint32_t blocks = 0;
  static const uint32_t one[3] = {1, 0, 0};
  static const uint32_t two[3] = {2, 1, 1};
  assert_null(kiln_kernel_max_cluster(kernel, &config, &count));
  assert_int_equal(count, 1);
  assert_null(kiln_kernel_max_blocks(kernel, 64, 0, &blocks));
  assert_null(kiln_kernel_active_clusters(kernel, &config, one, &count));
  assert_int_equal(count,
                   blocks * kiln_device_info(world.device)->multiprocessors);
  config.shared_bytes = 1 << 20;  // more than a block has
  assert_null(kiln_kernel_active_clusters(kernel, &config, one, &count));
  assert_int_equal(count, 0);
  config.shared_bytes = 0;
  kiln_status_t status =
      kiln_kernel_active_clusters(kernel, &config, two, &count);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  assert_int_equal(count, 0);
  assert_true(strlen(kiln_status_fix(status)) > 0);
  kiln_status_free(status);
  config.block[0] = 4096;
  status = kiln_kernel_max_cluster(kernel, &config, &count);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  config.struct_size = 0;
  status = kiln_kernel_max_cluster(kernel, &config, &count);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  status = kiln_kernel_active_clusters(kernel, &config, NULL, &count);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  close_world(&world);
}

static kiln_cu_result_t old_attribute(int* value,
                                      kiln_cu_device_attribute_t attribute,
                                      kiln_cu_device_t device) {
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  kiln_cu_result_t result =
      table.cuDeviceGetAttribute(value, attribute, device);
  if (attribute == KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
    *value = 8;
  }
  return result;
}

static void test_no_clusters(void** state) {
  (void)state;
  null_table.cuDeviceGetAttribute = old_attribute;
  world_t world;
  open_world(&world, "cuda:0");
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  assert_null(kiln_kernel_create(module, "plain", &kernel));
  kiln_launch_config_t config = kiln_launch_config_default();
  uint32_t count = 0;
  kiln_status_t status = kiln_kernel_max_cluster(kernel, &config, &count);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  assert_non_null(strstr(kiln_status_message(status), "8."));
  kiln_status_free(status);
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  close_world(&world);
}

static atomic_int owners;

static void count_owner(void* user_data) {
  (void)user_data;
  atomic_fetch_add(&owners, 1);
}

static kiln_cu_kernel_t driver_kernel(const kiln_cuda_table_t* table,
                                      kiln_cu_library_t library) {
  kiln_cu_kernel_t kernel = NULL;
  assert_int_equal(table->cuLibraryGetKernel(&kernel, library, "plain"), 0);
  return kernel;
}

// Facts 5.2 P17: a kernel of a library that Kiln loaded keeps that module.
static void test_adopt_ours(void** state) {
  (void)state;
  atomic_store(&owners, 0);
  world_t world;
  open_world(&world, "cuda:0");
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  const kiln_owner_t owner = {count_owner, NULL};
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  assert_null(kiln_module_library(module));
  assert_null(kiln_module_handle(module));
  assert_null(kiln_module_ready(module));
  assert_non_null(kiln_module_handle(module));
  kiln_cu_kernel_t raw =
      driver_kernel(&null_table, kiln_module_library(module));
  assert_null(kiln_kernel_adopt(world.device, raw, &owner, &kernel));
  assert_int_equal(atomic_load(&owners), 1);
  assert_ptr_equal(kiln_kernel_module(kernel), module);
  assert_non_null(kiln_kernel_handle(kernel));
  kiln_module_release(module);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_LIBRARY), 1);
  kiln_kernel_release(kernel);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_LIBRARY), 0);
  assert_int_equal(atomic_load(&owners), 1);
  close_world(&world);
}

// One of somebody else's library is not unloaded, and its owner is told once.
static void adopt_foreign(const kiln_cuda_table_t* table, const char* name) {
  atomic_store(&owners, 0);
  world_t world;
  open_world(&world, name);
  kiln_cu_context_t context = NULL;
  kiln_cu_library_t library = NULL;
  kiln_kernel_t* kernel = NULL;
  const kiln_owner_t owner = {count_owner, NULL};
  assert_int_equal(table->cuDevicePrimaryCtxRetain(&context, 0), 0);
  assert_int_equal(table->cuCtxPushCurrent(context), 0);
  assert_int_equal(
      table->cuLibraryLoadData(&library, kPtx, NULL, NULL, 0, NULL, NULL, 0),
      0);
  kiln_cu_kernel_t raw = driver_kernel(table, library);
  assert_null(kiln_kernel_adopt(world.device, raw, &owner, &kernel));
  assert_int_equal(kiln_kernel_info(kernel)->params_known, 1);
  assert_int_equal(kiln_module_kernel_count(kiln_kernel_module(kernel)), 0);
  assert_null(kiln_module_library(kiln_kernel_module(kernel)));
  uint32_t blocks = 0;
  assert_null(kiln_kernel_max_blocks(kernel, 64, 0, &blocks));
  assert_true(blocks >= 1);
  kiln_kernel_retain(kernel);
  kiln_kernel_release(kernel);
  assert_int_equal(atomic_load(&owners), 0);
  kiln_kernel_release(kernel);
  assert_int_equal(atomic_load(&owners), 1);
  kiln_kernel_t* none = NULL;
  kiln_status_t status = kiln_kernel_adopt(world.device, NULL, &owner, &none);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  assert_null(none);
  assert_int_equal(atomic_load(&owners), 1);
  assert_int_equal(table->cuLibraryUnload(library), 0);
  assert_int_equal(table->cuCtxPopCurrent(&context), 0);
  assert_int_equal(table->cuDevicePrimaryCtxRelease(0), 0);
  close_world(&world);
}

static void test_adopt_foreign(void** state) {
  (void)state;
  adopt_foreign(&null_table, "cuda:0");
  // A driver of CUDA 12.4, and one of 12.2.
  kilni_table_cuda_mark(&null_table, KILNI_CUDA_ROW_cuKernelGetLibrary, false);
  adopt_foreign(&null_table, "cuda:0");
  kilni_table_cuda_mark(&null_table, KILNI_CUDA_ROW_cuKernelGetName, false);
  adopt_foreign(&null_table, "cuda:0");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_lazy),
      TEST(test_never_used),
      TEST(test_names),
      TEST(test_described),
      TEST(test_formats),
      TEST(test_late_refusal),
      TEST(test_attributes),
      TEST(test_occupancy),
      TEST(test_adopt_ours),
      TEST(test_adopt_foreign),
      TEST(test_clusters),
      TEST(test_no_clusters),
      TEST(test_unload_context),
      TEST(test_crowd),
      TEST(test_fix_of_the_log),
      TEST(test_each_load_is_unloaded),
      TEST(test_a_library_that_is_not_loaded),
      TEST(test_more_kernels_than_are_listed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
