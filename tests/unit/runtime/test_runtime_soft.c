// SPDX-License-Identifier: Apache-2.0
//
// runtime: the whole way on the software device.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "device/device_scope.h"
#include "kiln/kiln.h"

enum { COUNT = 10000, BYTES = COUNT * 4 };

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

// What a thread's index is, in %r4.
#define INDEX                  \
  "  .reg .b32 %r<8>;\n"       \
  "  .reg .b64 %rd<8>;\n"      \
  "  .reg .pred %p<3>;\n"      \
  "  mov.u32 %r1, %ctaid.x;\n" \
  "  mov.u32 %r2, %ntid.x;\n"  \
  "  mov.u32 %r3, %tid.x;\n"   \
  "  mad.lo.s32 %r4, %r1, %r2, %r3;\n"

// p[i] = q[i] + p[i] for i < n; then one that spins, one that strays, one
// that takes dynamic shared memory, one that waits for p[0] and sets p[1].
static const char kPtx[] = HEAD
    ".extern .shared .align 4 .b8 pool[];\n"
    ".visible .entry add(.param .u64 p, .param .u64 q, .param .u32 "
    "n)\n{\n" INDEX
    "  ld.param.u32 %r5, [n];\n"
    "  setp.ge.u32 %p1, %r4, %r5;\n"
    "  @%p1 ret;\n"
    "  ld.param.u64 %rd1, [p];\n"
    "  ld.param.u64 %rd2, [q];\n"
    "  mul.wide.u32 %rd3, %r4, 4;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  add.s64 %rd2, %rd2, %rd3;\n"
    "  ld.u32 %r6, [%rd1];\n"
    "  ld.u32 %r7, [%rd2];\n"
    "  add.u32 %r6, %r6, %r7;\n"
    "  st.u32 [%rd1], %r6;\n"
    "  ret;\n}\n"
    ".visible .entry spin()\n{\n"
    "$again:\n"
    "  bra.uni $again;\n}\n"
    ".visible .entry stray(.param .u64 p)\n{\n" INDEX
    "  ld.param.u64 %rd1, [p];\n"
    "  mul.wide.u32 %rd3, %r4, 4;\n"
    "  add.s64 %rd1, %rd1, %rd3;\n"
    "  st.global.u32 [%rd1], %r4;\n"
    "  ret;\n}\n"
    ".visible .entry share(.param .u64 p)\n{\n" INDEX
    "  ld.param.u64 %rd1, [p];\n"
    "  mov.u32 %r5, 7;\n"
    "  st.shared.u32 [pool+60000], %r5;\n"
    "  ld.shared.u32 %r6, [pool+60000];\n"
    "  st.global.u32 [%rd1], %r6;\n"
    "  ret;\n}\n"
    ".visible .entry poll(.param .u64 p)\n{\n" INDEX
    "  ld.param.u64 %rd1, [p];\n"
    "$look:\n"
    "  ld.volatile.global.u32 %r5, [%rd1];\n"
    "  setp.eq.u32 %p1, %r5, 0;\n"
    "  @%p1 bra $look;\n"
    "  st.global.u32 [%rd1+4], 77;\n"
    "  ret;\n}\n"
    ".visible .entry let_go(.param .u64 p)\n{\n" INDEX
    "  ld.param.u64 %rd1, [p];\n"
    "  st.volatile.global.u32 [%rd1], 1;\n"
    "  ret;\n}\n";

// gcc defines a macro, clang has a feature.
#if defined(__SANITIZE_THREAD__)
#define TEST_HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_HAS_TSAN 1
#endif
#endif

// A limit within which an endless kernel has begun for certain, on a machine
// that does much else as well.
#if defined(TEST_HAS_TSAN)
static const uint64_t kLimit = 1000000000u;
#else
static const uint64_t kLimit = 250000000u;
#endif

// A device and everything to run `kPtx` on it. one-thread
typedef struct world_t {
  kiln_device_t* device;
  kiln_module_t* module;
  kiln_stream_t* stream;
} world_t;

static kiln_bytes_view_t view(const char* text) {
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  return bytes;
}

static void assert_ok(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  char text[8192];
  kiln_status_format(status, sizeof(text), text, NULL);
  kiln_status_free(status);
  fail_msg("%s", text);
}

static void assert_says(kiln_status_t status, kiln_status_code_t code,
                        const char* word) {
  char text[8192];
  kiln_status_format(status, sizeof(text), text, NULL);
  if (kiln_status_code(status) != code || strstr(text, word) == NULL) {
    fail_msg("no %s with \"%s\" in: %s", kiln_status_code_name(code), word,
             text);
  }
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static int setup(void** state) {
  static world_t worlds[2];
  static int next;
  world_t* world = &worlds[next++ % 2];
  kiln_runtime_t* runtime = NULL;
  assert_ok(kiln_runtime_create(NULL, &runtime));
  assert_ok(kiln_runtime_open_device(runtime, "soft", &world->device));
  kiln_runtime_release(runtime);
  assert_ok(
      kiln_module_load(world->device, view(kPtx), NULL, NULL, &world->module));
  assert_ok(kiln_stream_create(world->device, NULL, &world->stream));
  *state = world;
  return 0;
}

static int teardown(void** state) {
  world_t* world = *state;
  kiln_stream_release(world->stream);
  kiln_module_release(world->module);
  kiln_device_release(world->device);
  return 0;
}

static kiln_kernel_t* kernel_of(world_t* world, const char* name) {
  kiln_kernel_t* kernel = NULL;
  assert_ok(kiln_kernel_create(world->module, name, &kernel));
  return kernel;
}

static kiln_buffer_t* buffer_of(world_t* world, uint64_t size) {
  kiln_buffer_t* buffer = NULL;
  assert_ok(kiln_buffer_create(world->device, size, NULL, &buffer));
  return buffer;
}

// ---- Work ----

static void test_vector_add(void** state) {
  world_t* world = *state;
  static uint32_t data[COUNT];
  kiln_buffer_t* p = buffer_of(world, BYTES);
  kiln_buffer_t* q = buffer_of(world, BYTES);
  for (uint32_t i = 0; i < COUNT; i++) data[i] = i;
  assert_ok(kiln_buffer_write(p, 0, BYTES, data));
  assert_ok(kiln_buffer_fill(q, 0, BYTES, 5, 4));
  kiln_kernel_t* kernel = kernel_of(world, "add");
  kiln_argument_t arguments[] = {kiln_arg_buffer(p), kiln_arg_buffer(q),
                                 kiln_arg_u32(COUNT)};
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = 256;
  config.grid[0] = (COUNT + 255) / 256;
  uint64_t before = 0;
  uint64_t after = 0;
  assert_ok(kiln_device_executed(world->device, &before));
  for (int i = 0; i < 3; i++) {
    assert_ok(kiln_kernel_launch(kernel, world->stream, &config, arguments, 3));
  }
  assert_ok(kiln_stream_wait(world->stream, 60000000000u));
  assert_ok(kiln_buffer_read(p, 0, BYTES, data));
  for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(data[i], i + 15);
  assert_ok(kiln_device_executed(world->device, &after));
  assert_true(after - before >= 3u * COUNT * 16);
  kiln_kernel_release(kernel);
  kiln_buffer_release(p);
  kiln_buffer_release(q);
}

static void test_in_stream_order(void** state) {
  world_t* world = *state;
  static uint32_t data[COUNT];
  static uint32_t back[COUNT];
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.stream = world->stream;
  kiln_buffer_t* p = NULL;
  kiln_buffer_t* q = buffer_of(world, BYTES);
  assert_ok(kiln_buffer_create(world->device, BYTES, &options, &p));
  for (uint32_t i = 0; i < COUNT; i++) data[i] = 3 * i;
  kiln_event_options_t timed = kiln_event_options_default();
  timed.timing = KILN_SWITCH_ON;
  kiln_event_t* start = NULL;
  kiln_event_t* end = NULL;
  assert_ok(kiln_event_create(world->device, &timed, &start));
  assert_ok(kiln_event_create(world->device, &timed, &end));
  kiln_kernel_t* kernel = kernel_of(world, "add");
  kiln_argument_t arguments[] = {kiln_arg_buffer(p), kiln_arg_buffer(q),
                                 kiln_arg_u32(COUNT)};
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = 128;
  config.grid[0] = (COUNT + 127) / 128;
  kiln_stream_t* s = world->stream;
  assert_ok(kiln_event_record(start, s));
  assert_ok(kiln_buffer_write_async(p, s, 0, BYTES, data));
  assert_ok(kiln_buffer_copy_async(q, s, 0, p, 0, BYTES));
  assert_ok(kiln_kernel_launch(kernel, s, &config, arguments, 3));
  assert_ok(kiln_buffer_read_async(p, s, 0, BYTES, back));
  assert_ok(kiln_event_record(end, s));
  assert_ok(kiln_event_synchronize(end));
  for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(back[i], 6 * i);
  uint64_t elapsed = 0;
  assert_ok(kiln_event_elapsed(start, end, &elapsed));
  assert_true(elapsed > 0);
  kiln_kernel_release(kernel);
  kiln_event_release(start);
  kiln_event_release(end);
  kiln_buffer_release(p);
  kiln_buffer_release(q);
}

#define CLUSTER_HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

// The kernel `in_clusters` launched, and what the driver's rows say of it.
static kiln_status_t launch_clustered(world_t* world, const char* text) {
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_status_t status =
      kiln_module_load(world->device, view(text), NULL, NULL, &module);
  if (!kiln_status_is_ok(status)) return status;
  assert_ok(kiln_kernel_create(module, "in_clusters", &kernel));
  status = kiln_kernel_launch(kernel, world->stream, &config, NULL, 0);
  const bool refused = !kiln_status_is_ok(status);
  kiln_status_t said;
  KILNI_DEVICE_CALL(said, world->device, cuLaunchKernel,
                    kiln_kernel_handle(kernel), 1, 1, 1, 1, 1, 1, 0,
                    kiln_stream_handle(world->stream), NULL, NULL);
  if (refused) {
    assert_says(said, KILN_STATUS_LAUNCH_FAILED, "INVALID_CLUSTER_SIZE");
  } else {
    assert_ok(said);
  }
  assert_ok(kiln_stream_synchronize(world->stream));
  int32_t must = 7, width = 7;
  assert_ok(kiln_kernel_attribute(
      kernel, KILN_KERNEL_ATTRIBUTE_CLUSTER_MUST_BE_SET, &must));
  assert_ok(kiln_kernel_attribute(kernel, KILN_KERNEL_ATTRIBUTE_CLUSTER_WIDTH,
                                  &width));
  assert_int_equal(must, strstr(text, ".explicitcluster") != NULL);
  assert_int_equal(width, strstr(text, ".reqnctapercluster") != NULL);
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  return status;
}

// A cluster has one block: what is made for more, or leaves its size open, is
// refused, and reads no wrong ranks.
static void test_kernels_for_clusters(void** state) {
  world_t* world = *state;
  assert_says(launch_clustered(world, CLUSTER_HEAD
                               ".visible .entry in_clusters()\n"
                               ".reqnctapercluster 1, 2 { ret; }\n"),
              KILN_STATUS_UNSUPPORTED, "line 4: kernel \"in_clusters\"");
  assert_says(
      launch_clustered(world, CLUSTER_HEAD ".visible .entry in_clusters()\n"
                                           ".explicitcluster { ret; }\n"),
      KILN_STATUS_UNSUPPORTED, "in clusters only");
  assert_ok(launch_clustered(world, CLUSTER_HEAD
                             ".visible .entry in_clusters() .explicitcluster\n"
                             ".reqnctapercluster 1, 1, 1 { ret; }\n"));
  assert_ok(launch_clustered(
      world, CLUSTER_HEAD ".visible .entry in_clusters() { ret; }\n"));
}

static void test_much_shared_memory(void** state) {
  world_t* world = *state;
  kiln_kernel_t* kernel = kernel_of(world, "share");
  kiln_buffer_t* p = buffer_of(world, 4);
  kiln_argument_t arguments[] = {kiln_arg_buffer(p)};
  kiln_launch_config_t config = kiln_launch_config_default();
  config.shared_bytes = 64000;
  assert_ok(kiln_kernel_launch(kernel, world->stream, &config, arguments, 1));
  assert_ok(kiln_stream_synchronize(world->stream));
  uint32_t value = 0;
  assert_ok(kiln_buffer_read(p, 0, 4, &value));
  assert_int_equal(value, 7);
  config.shared_bytes = 1u << 20;
  assert_says(kiln_kernel_launch(kernel, world->stream, &config, arguments, 1),
              KILN_STATUS_LIMIT_EXCEEDED, "1048576");
  kiln_buffer_release(p);
  kiln_kernel_release(kernel);
}

// ---- What goes wrong ----

static void test_wrong_arguments(void** state) {
  world_t* world = *state;
  kiln_kernel_t* kernel = kernel_of(world, "add");
  kiln_buffer_t* p = buffer_of(world, BYTES);
  kiln_argument_t a[] = {kiln_arg_buffer(p), kiln_arg_buffer(p),
                         kiln_arg_f32(1)};
  const kiln_status_code_t bad = KILN_STATUS_INVALID_ARGUMENT;
  kiln_stream_t* s = world->stream;
  assert_says(kiln_kernel_launch(kernel, s, NULL, a, 3), bad,
              "parameter 2 (\"n\")");
  assert_says(kiln_kernel_launch(kernel, s, NULL, a, 2), bad, "3 arguments");
  a[2] = kiln_arg_u64(1);
  assert_says(kiln_kernel_launch(kernel, s, NULL, a, 3), bad, "8 bytes");
  // Nothing of it reached the device.
  assert_ok(kiln_stream_synchronize(s));
  kiln_buffer_release(p);
  kiln_kernel_release(kernel);
}

static void test_modules_that_are_refused(void** state) {
  world_t* world = *state;
  kiln_module_t* module = NULL;
  kiln_load_log_t* log = NULL;
  kiln_module_options_t options = kiln_module_options_default();
  options.name = "broken.ptx";
  assert_says(kiln_module_load(world->device,
                               view(HEAD ".visible .entry k()\n{\n"
                                         "  frobnicate.u32 %r1;\n}\n"),
                               &options, &log, &module),
              KILN_STATUS_BAD_DATA, "broken.ptx");
  assert_null(module);
  assert_non_null(log);
  kiln_load_log_release(log);
  assert_says(
      kiln_module_load(world->device, view("hello"), NULL, NULL, &module),
      KILN_STATUS_BAD_DATA, "neither PTX, nor a cubin");
  // A form that the reader takes and the engine does not.
  options.name = "textures.ptx";
  assert_says(kiln_module_load(
                  world->device,
                  view(".version 8.0\n.target sm_90\n.address_size 64\n"
                       ".visible .entry k(.param .u64 t)\n{\n"
                       "  .reg .f32 %f<5>;\n  .reg .b64 %rd<2>;\n"
                       "  ld.param.u64 %rd1, [t];\n"
                       "  tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1}];\n"
                       "  ret;\n}\n"),
                  &options, NULL, &module),
              KILN_STATUS_UNSUPPORTED, "8");
  assert_null(module);
}

// Static shared memory as ptxas allows it: 48 KiB, and all for a target of one
// architecture.
static void test_static_shared_memory(void** state) {
  world_t* world = *state;
  static const char* const kTargets[] = {"sm_75", "sm_90", "sm_90a"};
  static const uint32_t kBytes[] = {49152, 49156, 232448, 232452};
  for (size_t i = 0; i < 12; i++) {
    char text[512];
    kiln_module_t* module = NULL;
    uint32_t most = i / 4 == 2 ? 232448 : 49152;
    snprintf(text, sizeof(text),
             ".version 8.0\n.target %s\n.address_size 64\n"
             ".shared .align 4 .b8 a[%u];\n.visible .entry much() {\n"
             ".reg .b32 %%r<2>;\nst.shared.u32 [a], %%r1;\nret;\n}\n",
             kTargets[i / 4], (unsigned)kBytes[i % 4]);
    kiln_status_t status =
        kiln_module_load(world->device, view(text), NULL, NULL, &module);
    if (kBytes[i % 4] <= most) {
      assert_ok(status);
    } else {
      assert_says(status, kiln_status_code(status), "\"much\" has ");
      assert_null(module);
    }
    kiln_module_release(module);
  }
}

static void test_the_only_kernel(void** state) {
  world_t* world = *state;
  kiln_kernel_t* kernel = NULL;
  assert_says(kiln_kernel_create(world->module, "missing", &kernel),
              KILN_STATUS_NOT_FOUND, "\"add\", \"spin\", \"stray\"");
  assert_null(kernel);
}

// A fault, its report, and a device that is lost from then on.
static void test_a_fault(void** state) {
  world_t* world = *state;
  kiln_kernel_t* kernel = kernel_of(world, "stray");
  kiln_buffer_t* p = buffer_of(world, 128);
  kiln_argument_t arguments[] = {kiln_arg_buffer(p)};
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = 64;
  assert_ok(kiln_kernel_launch(kernel, world->stream, &config, arguments, 1));
  kiln_status_t status = kiln_stream_synchronize(world->stream);
  kiln_status_native_t native;
  assert_true(kiln_status_native(status, &native));
  assert_string_equal(native.name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  char text[8192];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "stray"));
  assert_non_null(strstr(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
  assert_null(strstr(text, "device soft"));
  assert_says(status, KILN_STATUS_DEVICE_LOST, "out-of-bounds ");
  size_t length = 0;
  kiln_device_fault_text(world->device, sizeof(text), text, &length);
  assert_int_equal(strlen(text), length);
  assert_non_null(strstr(text, "stray"));
  assert_says(kiln_kernel_launch(kernel, world->stream, &config, arguments, 1),
              KILN_STATUS_DEVICE_LOST, "is lost");
  kiln_buffer_release(p);
  kiln_kernel_release(kernel);
}

// What meets a fault: any call that waits, asks or issues.
static kiln_status_t meet(world_t* world, int how, kiln_buffer_t* p) {
  kiln_status_t status = kiln_ok();
  bool ready = false;
  uint32_t word = 0;
  switch (how) {
    case 0:
      return kiln_stream_synchronize(world->stream);
    case 1:
      return kiln_device_synchronize(world->device);
    case 2:
      while (kiln_status_is_ok(status) && !ready) {
        status = kiln_stream_query(world->stream, &ready);
      }
      return status;
    case 3:
      // Not ordered with the stream: it may be done before the kernel is.
      while (kiln_status_is_ok(status)) {
        status = kiln_buffer_read(p, 0, sizeof(word), &word);
      }
      return status;
    default:
      return kiln_stream_wait(world->stream, 60000000000u);
  }
}

// One fault has one text, whichever call it is that meets it.
static void test_one_fault_one_text(void** state) {
  (void)state;
  char first[1024] = "";
  char first_fix[1024] = "";
  char first_notes[4096] = "";
  for (int i = 0; i < 40; i++) {
    void* opened = NULL;
    assert_int_equal(setup(&opened), 0);
    world_t* world = opened;
    kiln_kernel_t* kernel = kernel_of(world, "stray");
    kiln_buffer_t* p = buffer_of(world, 128);
    kiln_argument_t arguments[] = {kiln_arg_buffer(p)};
    kiln_launch_config_t config = kiln_launch_config_default();
    config.grid[0] = 40;
    config.block[0] = 64;
    assert_ok(kiln_kernel_launch(kernel, world->stream, &config, arguments, 1));
    kiln_status_t status = meet(world, i % 5, p);
    char notes[4096];
    kiln_device_fault_text(world->device, sizeof(notes), notes, NULL);
    if (i == 0) {
      snprintf(first, sizeof(first), "%s", kiln_status_message(status));
      snprintf(first_fix, sizeof(first_fix), "%s", kiln_status_fix(status));
      memcpy(first_notes, notes, sizeof(notes));
    }
    assert_string_equal(kiln_status_message(status), first);
    assert_string_equal(kiln_status_fix(status), first_fix);
    assert_string_equal(notes, first_notes);
    kiln_status_free(status);
    kiln_fault_t fault = kiln_fault_default();
    assert_ok(kiln_device_fault(world->device, &fault));
    assert_int_equal(fault.kind, KILN_FAULT_OUT_OF_BOUNDS);
    assert_int_equal(fault.access, KILN_FAULT_ACCESS_STORE);
    assert_int_equal(fault.buffer_bytes, 128);
    assert_int_equal(fault.buffer, kiln_buffer_address(p));
    assert_string_equal(fault.kernel, "stray");
    kiln_buffer_release(p);
    kiln_kernel_release(kernel);
    assert_int_equal(teardown(&opened), 0);
  }
}

// CPU time of this process, in seconds.
static double cpu_seconds(void) {
  return (double)clock() / CLOCKS_PER_SEC;
}

static void pause_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

// What ran and what waited behind it are stopped, and take no CPU time any
// more; a device that is opened anew works.
static void test_a_time_limit(void** state) {
  world_t* world = *state;
  kiln_kernel_t* kernel = kernel_of(world, "spin");
  assert_ok(kiln_kernel_launch(kernel, world->stream, NULL, NULL, 0));
  assert_ok(kiln_kernel_launch(kernel, world->stream, NULL, NULL, 0));
  bool ready = true;
  assert_ok(kiln_stream_query(world->stream, &ready));
  assert_false(ready);
  kiln_status_t status = kiln_stream_wait(world->stream, kLimit);
  char text[8192];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "in kernel \"spin\""));
  assert_non_null(strstr(text, "thread (0, 0, 0) of block (0, 0, 0)"));
  assert_says(status, KILN_STATUS_DEVICE_LOST, "open the device anew");
  kiln_fault_t fault = kiln_fault_default();
  assert_ok(kiln_device_fault(world->device, &fault));
  assert_int_equal(fault.kind, KILN_FAULT_TIME_LIMIT);
  kiln_kernel_release(kernel);
  // Whatever it still does ends on its own.
  double used = 0;
  for (int tries = 0; tries < 20; tries++) {
    double before = cpu_seconds();
    pause_ms(200);
    used = cpu_seconds() - before;
    if (used < 0.02) break;
  }
  assert_true(used < 0.02);
  void* other = NULL;
  assert_int_equal(setup(&other), 0);
  test_vector_add(&other);
  assert_int_equal(teardown(&other), 0);
}

static void fault_on(kiln_runtime_t* runtime) {
  world_t world;
  assert_ok(kiln_runtime_open_device(runtime, "soft", &world.device));
  assert_ok(
      kiln_module_load(world.device, view(kPtx), NULL, NULL, &world.module));
  assert_ok(kiln_stream_create(world.device, NULL, &world.stream));
  kiln_kernel_t* kernel = kernel_of(&world, "stray");
  kiln_buffer_t* p = buffer_of(&world, 128);
  kiln_argument_t arguments[] = {kiln_arg_buffer(p)};
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = 64;
  assert_ok(kiln_kernel_launch(kernel, world.stream, &config, arguments, 1));
  assert_says(kiln_stream_synchronize(world.stream), KILN_STATUS_DEVICE_LOST,
              "out-of-bounds ");
  kiln_buffer_release(p);
  kiln_kernel_release(kernel);
  void* state = &world;
  teardown(&state);
}

static void test_a_lost_device_is_not_opened_again(void** state) {
  (void)state;
  kiln_runtime_t* runtime = NULL;
  assert_ok(kiln_runtime_create(NULL, &runtime));
  fault_on(runtime);
  kiln_device_t* again = NULL;
  assert_says(kiln_runtime_open_device(runtime, "soft", &again),
              KILN_STATUS_DEVICE_LOST, "is lost to this process");
  assert_null(again);
  kiln_runtime_release(runtime);
  // That was the last runtime: the next one begins a new device.
  assert_ok(kiln_runtime_create(NULL, &runtime));
  assert_ok(kiln_runtime_open_device(runtime, "soft", &again));
  kiln_device_release(again);
  kiln_runtime_release(runtime);
}

static kiln_runtime_t* runtime_of_two(void) {
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kiln_runtime_t* runtime = NULL;
  options.soft_devices = 2;
  assert_ok(kiln_runtime_create(&options, &runtime));
  return runtime;
}

// A process has one software device of a number, as it has one primary context
// of a GPU: a fault loses it for each of its runtimes, others go on, and it
// comes back when the last of the runtimes is gone.
static void test_a_fault_is_of_the_process(void** state) {
  (void)state;
  kiln_runtime_t* guilty = runtime_of_two();
  kiln_runtime_t* innocent = runtime_of_two();
  world_t world;
  kiln_device_t* second = NULL;
  kiln_device_t* again = NULL;
  kiln_module_t* module = NULL;
  assert_ok(kiln_runtime_open_device(innocent, "soft", &world.device));
  assert_ok(kiln_runtime_open_device(innocent, "soft:1", &second));
  assert_ok(
      kiln_module_load(world.device, view(kPtx), NULL, NULL, &world.module));
  assert_ok(kiln_stream_create(world.device, NULL, &world.stream));
  fault_on(guilty);
  assert_says(kiln_module_load(world.device, view(kPtx), NULL, NULL, &module),
              KILN_STATUS_DEVICE_LOST,
              "until every runtime that has opened a software device");
  assert_says(kiln_module_load(world.device, view(kPtx), NULL, NULL, &module),
              KILN_STATUS_DEVICE_LOST, "release every runtime");
  assert_ok(kiln_module_load(second, view(kPtx), NULL, NULL, &module));
  kiln_runtime_t* late = runtime_of_two();
  assert_says(kiln_runtime_open_device(late, "soft", &again),
              KILN_STATUS_DEVICE_LOST,
              "until every runtime that has opened a software device");
  assert_null(again);
  kiln_runtime_release(late);
  kiln_runtime_release(guilty);
  // What was opened from a runtime holds it.
  kiln_runtime_release(innocent);
  late = runtime_of_two();
  assert_says(kiln_runtime_open_device(late, "soft", &again),
              KILN_STATUS_DEVICE_LOST, "until every runtime");
  kiln_runtime_release(late);
  kiln_module_release(module);
  kiln_device_release(second);
  void* opened = &world;
  teardown(&opened);
  late = runtime_of_two();
  assert_ok(kiln_runtime_open_device(late, "soft", &world.device));
  assert_ok(
      kiln_module_load(world.device, view(kPtx), NULL, NULL, &world.module));
  assert_ok(kiln_stream_create(world.device, NULL, &world.stream));
  kiln_runtime_release(late);
  test_vector_add(&opened);
  teardown(&opened);
}

// The time limit of one device object ends that one: another, over the same
// context, is as it was, and says nothing of a fault. What belongs to the one
// that is lost is lost to the other too.
static void test_a_limit_is_of_one_device(void** state) {
  (void)state;
  world_t worlds[2];
  world_t* world = &worlds[0];
  world_t* other = &worlds[1];
  kiln_runtime_t* runtime = NULL;
  assert_ok(kiln_runtime_create(NULL, &runtime));
  for (int i = 0; i < 2; i++) {
    assert_ok(kiln_runtime_open_device(runtime, "soft", &worlds[i].device));
    assert_ok(kiln_module_load(worlds[i].device, view(kPtx), NULL, NULL,
                               &worlds[i].module));
    assert_ok(kiln_stream_create(worlds[i].device, NULL, &worlds[i].stream));
  }
  kiln_runtime_release(runtime);
  kiln_kernel_t* spin = kernel_of(world, "spin");
  kiln_buffer_t* lost = buffer_of(world, 128);
  kiln_buffer_t* good = buffer_of(other, 128);
  assert_ok(kiln_kernel_launch(spin, world->stream, NULL, NULL, 0));
  assert_says(kiln_stream_wait(world->stream, kLimit), KILN_STATUS_DEVICE_LOST,
              "in kernel \"spin\"");
  kiln_fault_t fault = kiln_fault_default();
  assert_ok(kiln_device_fault(other->device, &fault));
  assert_int_equal(fault.kind, KILN_FAULT_NONE);
  size_t length = 1;
  char text[16];
  kiln_device_fault_text(other->device, sizeof(text), text, &length);
  assert_int_equal(length, 0);
  assert_says(kiln_buffer_copy(good, 0, lost, 0, 64), KILN_STATUS_DEVICE_LOST,
              "is lost");
  assert_says(kiln_buffer_copy(lost, 0, good, 0, 64), KILN_STATUS_DEVICE_LOST,
              "is lost");
  assert_says(kiln_buffer_copy_async(good, other->stream, 0, lost, 0, 64),
              KILN_STATUS_DEVICE_LOST, "is lost");
  assert_says(kiln_buffer_copy_async(lost, other->stream, 0, good, 0, 64),
              KILN_STATUS_DEVICE_LOST, "is lost");
  assert_says(kiln_buffer_fill_async(lost, other->stream, 0, 64, 0, 4),
              KILN_STATUS_DEVICE_LOST, "is lost");
  assert_ok(kiln_buffer_fill_async(good, other->stream, 0, 64, 0, 4));
  assert_ok(kiln_stream_synchronize(other->stream));
  assert_says(kiln_stream_synchronize(world->stream), KILN_STATUS_DEVICE_LOST,
              "open the device anew");
  // Its own limit is told as its own.
  kiln_kernel_release(spin);
  spin = kernel_of(other, "spin");
  assert_ok(kiln_kernel_launch(spin, other->stream, NULL, NULL, 0));
  assert_says(kiln_stream_wait(other->stream, kLimit), KILN_STATUS_DEVICE_LOST,
              "in kernel \"spin\"");
  assert_ok(kiln_device_fault(other->device, &fault));
  assert_int_equal(fault.kind, KILN_FAULT_TIME_LIMIT);
  assert_ok(kiln_device_fault(world->device, &fault));
  assert_int_equal(fault.kind, KILN_FAULT_TIME_LIMIT);
  kiln_buffer_release(good);
  kiln_buffer_release(lost);
  kiln_kernel_release(spin);
  for (int i = 0; i < 2; i++) {
    void* opened = &worlds[i];
    assert_int_equal(teardown(&opened), 0);
  }
}

// ---- A limit and the work of others ----

// Opens the device for a runtime with workers for what never ends and for what
// goes on beside it. The caller's in all but the device.
static kiln_runtime_t* runtime_of_workers(void) {
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kiln_runtime_t* runtime = NULL;
  options.soft_workers = 4;
  assert_ok(kiln_runtime_create(&options, &runtime));
  return runtime;
}

static void open_on(kiln_runtime_t* runtime, world_t* world) {
  assert_ok(kiln_runtime_open_device(runtime, "soft", &world->device));
  assert_ok(
      kiln_module_load(world->device, view(kPtx), NULL, NULL, &world->module));
  assert_ok(kiln_stream_create(world->device, NULL, &world->stream));
}

static void launch_on(world_t* world, const char* name, kiln_stream_t* stream,
                      kiln_buffer_t* p) {
  kiln_kernel_t* kernel = kernel_of(world, name);
  kiln_argument_t argument = kiln_arg_buffer(p);
  assert_ok(kiln_kernel_launch(kernel, stream, NULL, &argument, 1));
  kiln_kernel_release(kernel);
}

static void launch_spin(world_t* world, kiln_stream_t* stream) {
  kiln_kernel_t* kernel = kernel_of(world, "spin");
  assert_ok(kiln_kernel_launch(kernel, stream, NULL, NULL, 0));
  kiln_kernel_release(kernel);
}

// `mine` runs a kernel, and behind it a fill, while the limit of `other` ends:
// the kernel goes on, and its result is there when the wait says so.
static void check_goes_on(world_t* mine, kiln_stream_t* my_stream,
                          world_t* other, kiln_stream_t* other_stream) {
  static const uint32_t kZeroes[3];
  uint32_t back[3] = {0};
  bool ready = true;
  kiln_fault_t fault = kiln_fault_default();
  kiln_buffer_t* p = buffer_of(mine, sizeof(kZeroes));
  assert_ok(kiln_buffer_write(p, 0, sizeof(kZeroes), kZeroes));
  launch_on(mine, "poll", my_stream, p);
  assert_ok(kiln_buffer_fill_async(p, my_stream, 8, 4, 9, 4));
  launch_spin(other, other_stream);
  assert_says(kiln_stream_wait(other_stream, kLimit), KILN_STATUS_DEVICE_LOST,
              "in kernel \"spin\"");
  assert_ok(kiln_stream_query(my_stream, &ready));
  assert_false(ready);
  kiln_stream_t* beside = NULL;
  assert_ok(kiln_stream_create(mine->device, NULL, &beside));
  launch_on(mine, "let_go", beside, p);
  assert_ok(kiln_stream_synchronize(my_stream));
  assert_ok(kiln_buffer_read(p, 0, sizeof(back), back));
  assert_int_equal(back[1], 77);
  assert_int_equal(back[2], 9);
  assert_ok(kiln_device_fault(mine->device, &fault));
  assert_int_equal(fault.kind, KILN_FAULT_NONE);
  assert_ok(kiln_device_synchronize(mine->device));
  kiln_stream_release(beside);
  kiln_buffer_release(p);
}

static kiln_stream_t* default_of(const world_t* world, uint32_t which) {
  kiln_stream_t* stream = NULL;
  assert_ok(kiln_stream_default(world->device, which, &stream));
  return stream;
}

// Of two objects of one runtime, and of two runtimes; each on a stream of its
// own, or one of them on a default stream, which both have.
static void test_a_limit_spares_the_work_of_others(void** state) {
  (void)state;
  for (int i = 0; i < 6; i++) {
    kiln_runtime_t* first = runtime_of_workers();
    kiln_runtime_t* second = i % 2 == 0 ? first : runtime_of_workers();
    world_t mine;
    world_t other;
    open_on(first, &mine);
    open_on(second, &other);
    uint32_t which = i == 5 ? KILN_STREAM_PER_THREAD : KILN_STREAM_LEGACY;
    kiln_stream_t* shared = default_of(i < 4 ? &other : &mine, which);
    check_goes_on(&mine, i < 4 ? mine.stream : shared, &other,
                  i == 2 || i == 3 ? shared : other.stream);
    kiln_stream_release(shared);
    void* worlds[] = {&mine, &other};
    teardown(&worlds[0]);
    teardown(&worlds[1]);
    if (second != first) kiln_runtime_release(second);
    kiln_runtime_release(first);
  }
}

// Work that waits for what the limit has ended gives no result: its object is
// lost as well.
static void test_a_limit_ends_what_waits_for_it(void** state) {
  (void)state;
  kiln_runtime_t* runtime = runtime_of_workers();
  world_t mine;
  world_t other;
  open_on(runtime, &mine);
  open_on(runtime, &other);
  kiln_buffer_t* p = buffer_of(&mine, 128);
  kiln_event_t* event = NULL;
  assert_ok(kiln_event_create(other.device, NULL, &event));
  launch_spin(&other, other.stream);
  assert_ok(kiln_event_record(event, other.stream));
  assert_ok(kiln_stream_wait_event(mine.stream, event));
  assert_ok(kiln_buffer_fill_async(p, mine.stream, 0, 4, 9, 4));
  assert_says(kiln_stream_wait(other.stream, kLimit), KILN_STATUS_DEVICE_LOST,
              "in kernel \"spin\"");
  assert_says(kiln_stream_synchronize(mine.stream), KILN_STATUS_DEVICE_LOST,
              "in kernel \"spin\"");
  kiln_event_release(event);
  kiln_buffer_release(p);
  void* worlds[] = {&mine, &other};
  teardown(&worlds[0]);
  teardown(&worlds[1]);
  kiln_runtime_release(runtime);
}

// What a forked child does with a runtime of its own; 0: all as it should be.
static int be_a_child(const world_t* of_parent) {
  world_t kept = *of_parent;  // setup writes to its place
  world_t* parent = &kept;
  void* opened = NULL;
  if (kiln_status_code(kiln_stream_synchronize(parent->stream)) !=
      KILN_STATUS_INVALID_STATE) {
    return 1;
  }
  for (int i = 0; i < 2; i++) {
    if (setup(&opened) != 0) return 2;
    test_vector_add(&opened);
    kiln_fault_t fault = kiln_fault_default();
    if (!kiln_status_is_ok(kiln_device_fault(parent->device, &fault)) ||
        fault.kind != KILN_FAULT_NONE) {
      return 3;
    }
    if (teardown(&opened) != 0) return 4;
  }
  kiln_stream_release(parent->stream);
  kiln_device_release(parent->device);
  return 0;
}

// The parent's device is its own, with all that is open; the child's runtime
// has another, also of a child that a thread of the driver's was forked beside.
static void test_a_forked_child(void** state) {
  world_t* world = *state;
#if defined(TEST_HAS_TSAN)
  print_message("skip: the thread sanitizer lets no child have threads\n");
  skip();
#endif
  kiln_kernel_t* kernel = kernel_of(world, "spin");
  assert_ok(kiln_kernel_launch(kernel, world->stream, NULL, NULL, 0));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(60);
    _exit(be_a_child(world));
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  // First what ends the kernel: no teardown waits for one that spins.
  assert_says(kiln_stream_wait(world->stream, kLimit), KILN_STATUS_DEVICE_LOST,
              "in kernel \"spin\"");
  kiln_kernel_release(kernel);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_auto_says_why(void** state) {
  (void)state;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.cuda_library = "libcuda-which-is-nowhere.so.1";
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  assert_ok(kiln_runtime_create(&options, &runtime));
  assert_ok(kiln_runtime_open_device(runtime, "auto", &device));
  kiln_runtime_release(runtime);
  assert_string_equal(kiln_device_name(device), "soft");
  assert_non_null(strstr(kiln_device_note(device), "libcuda-which-is-nowhere"));
  assert_int_equal(kiln_device_info(device)->kind, KILN_DEVICE_KIND_SOFT);
  assert_int_equal(kiln_device_info(device)->compute_major, 9);
  uint64_t available = 0;
  assert_ok(kiln_device_query_free(device, &available));
  assert_true(available > 0);
  kiln_device_release(device);
}

static void test_too_much_memory(void** state) {
  world_t* world = *state;
  kiln_buffer_t* buffer = NULL;
  assert_says(
      kiln_buffer_create(world->device, (uint64_t)1 << 50, NULL, &buffer),
      KILN_STATUS_DEVICE_OUT_OF_MEMORY, "1125899906842624");
  assert_null(buffer);
}

// ---- Threads ----

// One thread's work on a device that all share. one-thread
typedef struct worker_t {
  world_t* world;
  uint32_t number;
  bool good;
} worker_t;

static kiln_status_t one_round(const worker_t* worker, kiln_kernel_t* kernel,
                               kiln_stream_t* stream, kiln_buffer_t* p) {
  kiln_argument_t arguments[] = {kiln_arg_buffer(p), kiln_arg_buffer(p),
                                 kiln_arg_u32(64)};
  kiln_launch_config_t config = kiln_launch_config_default();
  config.block[0] = 64;
  kiln_status_t status =
      kiln_buffer_fill_async(p, stream, 0, 256, worker->number, 4);
  if (kiln_status_is_ok(status)) {
    status = kiln_kernel_launch(kernel, stream, &config, arguments, 3);
  }
  if (kiln_status_is_ok(status)) status = kiln_stream_synchronize(stream);
  return status;
}

static void work_on_thread(void* user) {
  worker_t* worker = user;
  kiln_stream_t* stream = NULL;
  kiln_kernel_t* kernel = NULL;
  kiln_status_t status =
      kiln_stream_create(worker->world->device, NULL, &stream);
  if (kiln_status_is_ok(status)) {
    status = kiln_kernel_create(worker->world->module, "add", &kernel);
  }
  bool good = true;
  for (int i = 0; kiln_status_is_ok(status) && i < 20; i++) {
    kiln_buffer_t* p = NULL;
    uint32_t value = 0;
    status = kiln_buffer_create(worker->world->device, 256, NULL, &p);
    if (!kiln_status_is_ok(status)) break;
    status = one_round(worker, kernel, stream, p);
    if (kiln_status_is_ok(status)) status = kiln_buffer_read(p, 252, 4, &value);
    good = good && value == 2 * worker->number;
    kiln_buffer_release(p);
  }
  worker->good = good && kiln_status_is_ok(status);
  kiln_status_free(status);
  kiln_kernel_release(kernel);
  kiln_stream_release(stream);
}

static void test_threads(void** state) {
  world_t* world = *state;
  enum { THREADS = 4 };
  kilni_base_thread_t threads[THREADS] = {0};
  worker_t workers[THREADS];
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i].world = world;
    workers[i].number = i + 1;
    workers[i].good = false;
    assert_ok(kilni_base_thread_start(&threads[i], "work", work_on_thread,
                                      &workers[i]));
  }
  for (uint32_t i = 0; i < THREADS; i++) {
    kilni_base_thread_join(&threads[i]);
    assert_true(workers[i].good);
  }
}

// ---- Print ----

static char g_printed[1024];
static size_t g_printed_size;

static void take_print(const char* text, size_t size, void* user) {
  (void)user;
  if (g_printed_size + size >= sizeof(g_printed)) return;
  memcpy(g_printed + g_printed_size, text, size);
  g_printed_size += size;
}

static void test_print(void** state) {
  (void)state;
  static const char text[] = HEAD
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
      ".global .align 1 .b8 words[4] = {104, 105, 10, 0};\n"
      ".visible .entry say()\n{\n"
      "  .reg .b32 %r<2>;\n  .reg .b64 %rd<4>;\n"
      "  mov.u64 %rd1, words;\n"
      "  cvta.global.u64 %rd2, %rd1;\n"
      "  mov.u64 %rd3, 0;\n"
      "  {\n"
      "  .param .b64 a;\n  .param .b64 b;\n  .param .b32 r;\n"
      "  st.param.b64 [a], %rd2;\n"
      "  st.param.b64 [b], %rd3;\n"
      "  call.uni (r), vprintf, (a, b);\n"
      "  ld.param.b32 %r1, [r];\n"
      "  }\n"
      "  ret;\n}\n";
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.print = take_print;
  kiln_runtime_t* runtime = NULL;
  world_t world = {NULL, NULL, NULL};
  assert_ok(kiln_runtime_create(&options, &runtime));
  assert_ok(kiln_runtime_open_device(runtime, "soft", &world.device));
  kiln_runtime_release(runtime);
  assert_ok(
      kiln_module_load(world.device, view(text), NULL, NULL, &world.module));
  assert_ok(kiln_stream_create(world.device, NULL, &world.stream));
  kiln_kernel_t* kernel = kernel_of(&world, NULL);
  assert_ok(kiln_kernel_launch(kernel, world.stream, NULL, NULL, 0));
  assert_ok(kiln_stream_synchronize(world.stream));
  g_printed[g_printed_size] = 0;
  assert_string_equal(g_printed, "hi\n");
  kiln_kernel_release(kernel);
  kiln_stream_release(world.stream);
  kiln_module_release(world.module);
  kiln_device_release(world.device);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

// ---- Links ----

static void link_soft(kiln_cache_t* cache, uint32_t wanted, char text[4096]) {
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  kiln_linker_t* linker = NULL;
  kiln_link_t* link = NULL;
  kiln_code_t* code = NULL;
  kiln_code_t* linked = NULL;
  assert_null(kiln_runtime_create(NULL, &runtime));
  assert_null(kiln_runtime_open_device(runtime, "soft", &device));
  kiln_linker_options_t with = kiln_linker_options_default();
  with.device = device;
  assert_null(kiln_runtime_open_linker(runtime, &with, &linker));
  kiln_link_options_t options = kiln_link_options_default();
  options.backend = KILN_LINK_BACKEND_DRIVER;
  options.cache = cache;
  kiln_bytes_view_t bytes = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  assert_null(kiln_code_create(bytes, NULL, &code));
  assert_null(kiln_link_create(linker, &options, &link));
  assert_null(kiln_link_add(link, code));
  assert_null(kiln_link_finish(link, &linked));
  assert_int_equal(kiln_link_cache(link), wanted);
  assert_int_equal(kiln_code_format(linked), KILN_CODE_FORMAT_PTX);
  kiln_bytes_view_t made = kiln_code_bytes(linked);
  snprintf(text, 4096, "%.*s", (int)made.size, (const char*)made.data);
  kiln_code_release(linked);
  kiln_code_release(code);
  kiln_link_release(link);
  kiln_linker_release(linker);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
}

// The software device's linker is known by the file that it is in.
static void test_links_are_kept(void** state) {
  (void)state;
  kiln_cache_options_t options = kiln_cache_options_default();
  options.disk = KILN_SWITCH_OFF;
  kiln_cache_t* cache = NULL;
  char first[4096] = "";
  char second[4096] = "";
  assert_null(kiln_cache_create(&options, &cache));
  link_soft(cache, KILN_LINK_CACHE_MISS, first);
  link_soft(cache, KILN_LINK_CACHE_HIT, second);
  assert_non_null(strstr(first, ".entry add"));
  assert_string_equal(first, second);
  kiln_cache_release(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_vector_add),
      TEST(test_in_stream_order),
      TEST(test_kernels_for_clusters),
      TEST(test_much_shared_memory),
      TEST(test_wrong_arguments),
      TEST(test_modules_that_are_refused),
      TEST(test_static_shared_memory),
      TEST(test_the_only_kernel),
      TEST(test_a_fault),
      cmocka_unit_test(test_one_fault_one_text),
      TEST(test_a_time_limit),
      cmocka_unit_test(test_a_lost_device_is_not_opened_again),
      cmocka_unit_test(test_a_fault_is_of_the_process),
      cmocka_unit_test(test_a_limit_is_of_one_device),
      cmocka_unit_test(test_a_limit_spares_the_work_of_others),
      cmocka_unit_test(test_a_limit_ends_what_waits_for_it),
      TEST(test_a_forked_child),
      TEST(test_too_much_memory),
      TEST(test_threads),
      cmocka_unit_test(test_auto_says_why),
      cmocka_unit_test(test_links_are_kept),
      cmocka_unit_test(test_print),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
