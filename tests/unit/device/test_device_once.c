// SPDX-License-Identifier: Apache-2.0
//
// device: PTX that is loaded is read once, whoever asks what it says.
//
// Counted: the reader is called by way of the test.
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "fault_alloc.h"
#include "image/image.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

static const char kPtx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 count = 5;\n"
    ".visible .entry add(.param .u64 x, .param .f32 a) { ret; }\n";

static atomic_uint reads;

kiln_status_t __real_kilni_image_ptx_module_create(
    kiln_bytes_view_t text, const char* name,
    const kilni_image_ptx_limits_t* limits, kiln_allocator_t allocator,
    kilni_image_ptx_module_t** out_module);
kiln_status_t __wrap_kilni_image_ptx_module_create(
    kiln_bytes_view_t text, const char* name,
    const kilni_image_ptx_limits_t* limits, kiln_allocator_t allocator,
    kilni_image_ptx_module_t** out_module);
kiln_status_t __wrap_kilni_image_ptx_module_create(
    kiln_bytes_view_t text, const char* name,
    const kilni_image_ptx_limits_t* limits, kiln_allocator_t allocator,
    kilni_image_ptx_module_t** out_module) {
  reads++;
  return __real_kilni_image_ptx_module_create(text, name, limits, allocator,
                                              out_module);
}

// one-thread
typedef struct world_t {
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_code_t* code;
} world_t;

static kiln_cuda_table_t null_table;

static void make_code(const kiln_allocator_t* allocator,
                      kiln_code_t** out_code) {
  kiln_code_options_t options = kiln_code_options_default();
  options.name = "math";
  options.allocator = allocator;
  kiln_bytes_view_t bytes = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  assert_null(kiln_code_create(bytes, &options, out_code));
}

static void open_world(world_t* world, const char* name) {
  memset(world, 0, sizeof(*world));
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &null_table;
  assert_null(kilni_runtime_create_with(NULL, &hooks, &world->runtime));
  assert_null(kiln_runtime_open_device(world->runtime, name, &world->device));
  make_code(NULL, &world->code);
  reads = 0;
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

// The kernel with its parameters, and the variable: by way of both who read.
static void assert_whole(kiln_module_t* module) {
  kiln_kernel_t* kernel = NULL;
  uint64_t address = 0;
  uint64_t bytes = 0;
  assert_null(kiln_kernel_create(module, "add", &kernel));
  assert_int_equal(kiln_kernel_info(kernel)->param_count, 2);
  assert_string_equal(kiln_kernel_param(kernel, 1)->name, "a");
  kiln_kernel_release(kernel);
  assert_null(kiln_module_global(module, "count", &address, &bytes));
  assert_int_equal(bytes, 4);
}

static void test_a_text_is_read_once_for_device_and_driver(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  kiln_module_t* module = NULL;
  kiln_bytes_view_t bytes = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  assert_null(kiln_module_load(world.device, bytes, NULL, NULL, &module));
  assert_int_equal(reads, 1);
  assert_whole(module);
  assert_int_equal(reads, 1);
  kiln_module_release(module);
  close_world(&world);
}

static void test_code_is_read_once_for_all_of_its_modules(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  kiln_module_t* modules[2] = {NULL, NULL};
  for (size_t i = 0; i < 2; i++) {
    assert_null(
        kiln_module_create(world.device, world.code, NULL, &modules[i]));
    assert_null(kiln_module_ready(modules[i]));
    assert_whole(modules[i]);
  }
  kiln_image_t* image = NULL;
  assert_null(kiln_code_image(world.code, &image));
  assert_int_equal(kiln_image_kernel_count(image), 1);
  kiln_image_release(image);
  assert_int_equal(reads, 1);
  // The second module needs neither the first one nor the code.
  kiln_module_release(modules[0]);
  kiln_code_release(world.code);
  world.code = NULL;
  assert_whole(modules[1]);
  kiln_module_release(modules[1]);
  close_world(&world);
}

// As `kiln run` does it, whose device says what the driver's compiler said.
static void test_code_that_describes_itself_is_not_read_again(void** state) {
  (void)state;
  static const char* const kDevices[] = {"soft", "cuda:0"};
  for (size_t i = 0; i < 2; i++) {
    world_t world;
    open_world(&world, kDevices[i]);
    kiln_image_t* image = NULL;
    kiln_module_t* module = NULL;
    kiln_module_options_t options = kiln_module_options_default();
    options.described_by = world.code;
    assert_null(kiln_code_image(world.code, &image));
    assert_null(kiln_module_load(world.device, kiln_code_bytes(world.code),
                                 &options, NULL, &module));
    assert_int_equal(kiln_module_kernel_count(module), 1);
    assert_int_equal(reads, 1);
    kiln_image_release(image);
    kiln_module_release(module);
    close_world(&world);
  }
}

// A GPU's driver has no use for what was read, so that code does not keep it.
static void test_a_gpu_leaves_nothing_with_the_code(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "cuda:0");
  kiln_module_t* module = NULL;
  assert_null(kiln_module_create(world.device, world.code, NULL, &module));
  assert_null(kiln_module_ready(module));
  assert_int_equal(reads, 1);
  assert_null(kilni_image_code_seen(world.code));
  kiln_module_release(module);
  close_world(&world);
}

// Memory of somebody else may end before the driver does: that reads for
// itself.
static void test_a_tree_in_memory_of_others_is_not_taken(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  fault_alloc_t watch;
  fault_alloc_init(&watch);
  kiln_allocator_t other = fault_alloc_allocator(&watch);
  kiln_code_t* code = NULL;
  kiln_module_t* module = NULL;
  make_code(&other, &code);
  kiln_module_options_t options = kiln_module_options_default();
  options.described_by = code;
  assert_null(kiln_module_load(world.device, kiln_code_bytes(code), &options,
                               NULL, &module));
  assert_int_equal(reads, 2);
  kiln_code_release(code);
  fault_alloc_assert_clean(&watch);
  fault_alloc_deinit(&watch);
  assert_whole(module);
  kiln_module_release(module);
  close_world(&world);
}

// What comes to the driver beside the device is read there; and nothing that
// was offered for one load is taken for another.
static void test_other_texts_are_read(void** state) {
  (void)state;
  world_t world;
  open_world(&world, "soft");
  char text[sizeof(kPtx)];
  memcpy(text, kPtx, sizeof(text));
  kiln_module_t* module = NULL;
  kiln_bytes_view_t bytes = {(const uint8_t*)text, sizeof(text) - 1};
  assert_null(kiln_module_load(world.device, bytes, NULL, NULL, &module));
  kiln_module_release(module);
  memcpy(strstr(text, "count"), "other", 5);
  assert_null(kiln_module_load(world.device, bytes, NULL, NULL, &module));
  uint64_t address = 0;
  uint64_t size = 0;
  assert_null(kiln_module_global(module, "other", &address, &size));
  assert_int_equal(reads, 2);
  kiln_module_release(module);
  close_world(&world);
}

// ---- Threads ----

enum { READERS = 4 };

// one-thread
typedef struct asker_t {
  kiln_code_t* code;
  kiln_image_t* image;
} asker_t;

static void ask(void* user) {
  asker_t* asker = user;
  kiln_status_free(kiln_code_image(asker->code, &asker->image));
}

// Who reads at once may read twice, and all are given one.
static void test_threads_are_given_one_image(void** state) {
  (void)state;
  kilni_base_thread_t threads[READERS];
  asker_t askers[READERS];
  kiln_code_t* code = NULL;
  make_code(NULL, &code);
  reads = 0;
  for (int i = 0; i < READERS; i++) {
    askers[i] = (asker_t){code, NULL};
    assert_null(kilni_base_thread_start(&threads[i], "ask", ask, &askers[i]));
  }
  for (int i = 0; i < READERS; i++) kilni_base_thread_join(&threads[i]);
  for (int i = 0; i < READERS; i++) {
    assert_non_null(askers[i].image);
    assert_ptr_equal(askers[i].image, askers[0].image);
  }
  assert_true(reads >= 1 && reads <= READERS);
  for (int i = 0; i < READERS; i++) kiln_image_release(askers[i].image);
  kiln_code_release(code);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_a_text_is_read_once_for_device_and_driver,
                             setup),
      cmocka_unit_test_setup(test_code_is_read_once_for_all_of_its_modules,
                             setup),
      cmocka_unit_test_setup(test_code_that_describes_itself_is_not_read_again,
                             setup),
      cmocka_unit_test_setup(test_a_gpu_leaves_nothing_with_the_code, setup),
      cmocka_unit_test_setup(test_a_tree_in_memory_of_others_is_not_taken,
                             setup),
      cmocka_unit_test_setup(test_other_texts_are_read, setup),
      cmocka_unit_test(test_threads_are_given_one_image),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
