// SPDX-License-Identifier: Apache-2.0
//
// device: access between two devices, and copies between them: what is counted,
// what is left to others, what is refused. On three software devices, whose
// calls stand in a driver's books. tests/live/live_peers.c is what kernels see.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "driver_books.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"
#include "says.h"

enum { BYTES = 4096, THREADS = 4, ROUNDS = 50 };

// A runtime with three devices. one-thread
typedef struct world_t {
  kiln_cuda_table_t cu;  // beside Kiln: a host program's
  kiln_runtime_t* runtime;
  kiln_device_t* device[3];
  kiln_module_t* bad;
  kiln_stream_t* on;
} world_t;

static kiln_status_t wrap(void* user, kiln_cuda_table_t* inout_table) {
  driver_books_open(inout_table);
  ((world_t*)user)->cu = *inout_table;
  return kiln_ok();
}

static void unwrap(void* user, const kiln_cuda_table_t* table) {
  (void)user;
  (void)table;
}

static void assert_ok(kiln_status_t status) {
  if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
}

static int set_up(void** state) {
  static world_t world;
  memset(&world, 0, sizeof(world));
  kilni_runtime_hooks_t hooks = {0};
  hooks.wrap = wrap;
  hooks.unwrap = unwrap;
  hooks.user = &world;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.soft_workers = 2;
  options.soft_devices = 3;
  assert_ok(kilni_runtime_create_with(&options, &hooks, &world.runtime));
  static const char* const labels[] = {"soft", "soft:1", "soft:2"};
  for (int i = 0; i < 3; i++) {
    assert_ok(
        kiln_runtime_open_device(world.runtime, labels[i], &world.device[i]));
  }
  *state = &world;
  return 0;
}

static int tear_down(void** state) {
  world_t* world = *state;
  for (int i = 0; i < 3; i++) kiln_device_release(world->device[i]);
  driver_books_close();
  kiln_runtime_release(world->runtime);
  return 0;
}

// Handles of a lost device are left alone, so that its books stay open.
static int tear_down_lost(void** state) {
  world_t* world = *state;
  kiln_stream_release(world->on);
  kiln_module_release(world->bad);
  for (int i = 0; i < 3; i++) kiln_device_release(world->device[i]);
  kiln_runtime_release(world->runtime);
  return 0;
}

static uint64_t given(void) {
  return driver_books_counts().made[KILNI_HANDLE_NONE];
}
static uint64_t taken_back(void) {
  return driver_books_counts().ended[KILNI_HANDLE_NONE];
}

// ---- Access ----

static void test_what_there_is(void** state) {
  world_t* world = *state;
  kiln_peer_info_t info;
  assert_ok(kiln_peer_query(world->device[0], world->device[1], &info));
  assert_int_equal(info.access, 1);
  assert_int_equal(info.atomics, 1);
  assert_int_equal(info.some_atomics, 0);
  assert_int_equal(info.arrays, 0);
  assert_int_equal(info.rank, 0);
  assert_int_equal(given(), 0);
}

// However often a device is open, its context has access once.
static void test_access_is_counted(void** state) {
  world_t* world = *state;
  kiln_device_t* again = NULL;
  kiln_peer_t* first = NULL;
  kiln_peer_t* second = NULL;
  kiln_peer_t* back = NULL;
  assert_ok(kiln_runtime_open_device(world->runtime, "soft:0", &again));
  assert_ok(kiln_peer_create(world->device[0], world->device[1], &first));
  assert_int_equal(given(), 1);
  assert_ok(kiln_peer_create(again, world->device[1], &second));
  assert_int_equal(given(), 1);
  assert_ptr_equal(kiln_peer_device(second), again);
  assert_ptr_equal(kiln_peer_other(second), world->device[1]);
  assert_ok(kiln_peer_create(world->device[1], world->device[0], &back));
  assert_int_equal(given(), 2);
  kiln_peer_release(first);
  assert_int_equal(taken_back(), 0);
  // It keeps its devices.
  kiln_device_release(again);
  kiln_peer_retain(second);
  kiln_peer_release(second);
  assert_int_equal(taken_back(), 0);
  kiln_peer_release(second);
  assert_int_equal(taken_back(), 1);
  assert_ok(kiln_peer_create(world->device[0], world->device[1], &first));
  assert_int_equal(given(), 3);
  kiln_peer_release(back);
  kiln_peer_release(first);
  assert_int_equal(taken_back(), 3);
  kiln_peer_release(NULL);
  kiln_peer_retain(NULL);
}

// What a host program has enabled stays as it is.
static void test_somebody_elses(void** state) {
  world_t* world = *state;
  kiln_cu_context_t context = kiln_device_context(world->device[0]);
  kiln_cu_context_t peer = kiln_device_context(world->device[1]);
  assert_int_equal(world->cu.cuCtxSetCurrent(context), 0);
  assert_int_equal(world->cu.cuCtxEnablePeerAccess(peer, 0), 0);
  kiln_peer_t* access = NULL;
  assert_ok(kiln_peer_create(world->device[0], world->device[1], &access));
  assert_int_equal(given(), 1);
  kiln_peer_release(access);
  assert_int_equal(taken_back(), 0);
  assert_int_equal(world->cu.cuCtxDisablePeerAccess(peer), 0);
  assert_int_equal(world->cu.cuCtxSetCurrent(NULL), 0);
}

static void test_what_is_refused(void** state) {
  world_t* world = *state;
  const kiln_status_code_t bad = KILN_STATUS_INVALID_ARGUMENT;
  kiln_device_t* again = NULL;
  kiln_peer_t* access = NULL;
  kiln_peer_info_t info;
  assert_ok(kiln_runtime_open_device(world->runtime, "soft", &again));
  assert_says(kiln_peer_create(world->device[0], again, &access), bad,
              "are one device");
  assert_null(access);
  assert_says(kiln_peer_query(again, again, &info), bad, "are one device");
  kiln_device_release(again);
  assert_null(access);
  // Devices of two runtimes have two tables.
  kiln_runtime_t* other = NULL;
  kiln_device_t* foreign = NULL;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.soft_workers = 2;
  assert_ok(kiln_runtime_create(&options, &other));
  assert_ok(kiln_runtime_open_device(other, "soft:1", &foreign));
  assert_says(kiln_peer_create(world->device[0], foreign, &access), bad,
              "a different driver");
  kiln_device_release(foreign);
  kiln_runtime_release(other);
}

// One of the threads. one-thread
typedef struct player_t {
  world_t* world;
  kilni_base_thread_t thread;
  int failures;
} player_t;

static void play(void* user) {
  player_t* player = user;
  for (int i = 0; i < ROUNDS; i++) {
    kiln_peer_t* access = NULL;
    kiln_status_t status = kiln_peer_create(
        player->world->device[0], player->world->device[1 + i % 2], &access);
    if (!kiln_status_is_ok(status)) player->failures++;
    kiln_status_free(status);
    kiln_peer_release(access);
  }
}

// The books say whether it was ever enabled twice, or taken back twice.
static void test_threads(void** state) {
  player_t players[THREADS];
  memset(players, 0, sizeof(players));
  for (int i = 0; i < THREADS; i++) {
    players[i].world = *state;
    assert_ok(
        kilni_base_thread_start(&players[i].thread, "peer", play, &players[i]));
  }
  for (int i = 0; i < THREADS; i++) {
    kilni_base_thread_join(&players[i].thread);
    assert_int_equal(players[i].failures, 0);
  }
  assert_true(given() >= 2);
  assert_int_equal(given(), taken_back());
}

// ---- Copies ----

static void assert_holds(kiln_buffer_t* buffer, uint32_t wanted) {
  uint32_t value = 0;
  assert_ok(kiln_buffer_read(buffer, 64, sizeof(value), &value));
  assert_int_equal(value, wanted);
}

static void test_copies(void** state) {
  world_t* world = *state;
  kiln_buffer_t* buffer[2] = {NULL, NULL};
  kiln_stream_t* stream[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; i++) {
    assert_ok(kiln_stream_create(world->device[i], NULL, &stream[i]));
    if (i == 2) break;
    assert_ok(kiln_buffer_create(world->device[i], BYTES, NULL, &buffer[i]));
    assert_ok(kiln_buffer_fill(buffer[i], 0, BYTES, 5u + (uint32_t)i, 4));
  }
  assert_ok(kiln_buffer_copy(buffer[1], 64, buffer[0], 0, 64));
  assert_holds(buffer[1], 5);
  // On a stream of either, and in its order.
  for (int i = 0; i < 2; i++) {
    uint32_t value = 20u + (uint32_t)i;
    assert_ok(kiln_buffer_fill(buffer[0], 0, BYTES, value, 4));
    assert_ok(
        kiln_buffer_copy_async(buffer[1], stream[i], 64, buffer[0], 0, 64));
    assert_ok(kiln_stream_synchronize(stream[i]));
    assert_holds(buffer[1], value);
  }
  assert_int_equal(given(), 0);
  const kiln_status_code_t bad = KILN_STATUS_INVALID_ARGUMENT;
  assert_says(kiln_buffer_copy_async(buffer[1], stream[2], 0, buffer[0], 0, 64),
              bad, "the stream is of");
  assert_says(kiln_buffer_copy(buffer[1], BYTES, buffer[0], 0, 64),
              KILN_STATUS_OUT_OF_RANGE, "a copy to the range");
  assert_says(kiln_buffer_copy(buffer[1], 0, buffer[0], BYTES, 64),
              KILN_STATUS_OUT_OF_RANGE, "a copy from the range");
  for (int i = 0; i < 3; i++) kiln_stream_release(stream[i]);
  for (int i = 0; i < 2; i++) kiln_buffer_release(buffer[i]);
}

// Host memory goes with every device.
static void test_copies_of_host_memory(void** state) {
  world_t* world = *state;
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.kind = KILN_MEMORY_PINNED;
  kiln_buffer_t* host = NULL;
  kiln_buffer_t* far = NULL;
  assert_ok(kiln_buffer_create(world->device[0], BYTES, &options, &host));
  assert_ok(kiln_buffer_create(world->device[1], BYTES, NULL, &far));
  assert_ok(kiln_buffer_fill(host, 0, BYTES, 9, 4));
  assert_ok(kiln_buffer_copy(far, 0, host, 0, BYTES));
  assert_holds(far, 9);
  assert_ok(kiln_buffer_fill(far, 0, BYTES, 10, 4));
  assert_ok(kiln_buffer_copy(host, 0, far, 0, BYTES));
  assert_holds(host, 10);
  kiln_buffer_release(host);
  kiln_buffer_release(far);
}

// A kernel of the first device faults, and no call has met that yet.
static void let_fault(world_t* world) {
  static const char kPtx[] =
      ".version 7.8\n.target sm_70\n.address_size 64\n"
      ".visible .entry bad() {\n.reg .b64 %d<2>;\nmov.u64 %d1, 16;\n"
      "st.global.u32 [%d1], 1;\nret;\n}\n";
  kiln_bytes_view_t view = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  kiln_kernel_t* kernel = NULL;
  kiln_device_t* device = world->device[0];
  assert_ok(kiln_module_load(device, view, NULL, NULL, &world->bad));
  assert_ok(kiln_kernel_create(world->bad, "bad", &kernel));
  assert_ok(kiln_stream_create(device, NULL, &world->on));
  assert_ok(kiln_kernel_launch(kernel, world->on, NULL, NULL, 0));
  kiln_kernel_release(kernel);
  kiln_fault_t fault = kiln_fault_default();
  while (fault.kind == KILN_FAULT_NONE) {
    assert_ok(kiln_device_fault(device, &fault));
  }
}

// `way` 0 to 3: a copy to or from the lost device, at once or on a stream of
// the other's.
static void copy_of_the_lost(world_t* world, int way) {
  kiln_buffer_t* lost = NULL;
  kiln_buffer_t* good = NULL;
  kiln_stream_t* stream = NULL;
  assert_ok(kiln_buffer_create(world->device[0], BYTES, NULL, &lost));
  assert_ok(kiln_buffer_create(world->device[1], BYTES, NULL, &good));
  assert_ok(kiln_stream_create(world->device[1], NULL, &stream));
  let_fault(world);
  kiln_buffer_t* to = way % 2 == 0 ? good : lost;
  kiln_buffer_t* from = way % 2 == 0 ? lost : good;
  kiln_status_t status =
      way < 2 ? kiln_buffer_copy(to, 0, from, 0, 64)
              : kiln_buffer_copy_async(to, stream, 0, from, 0, 64);
  assert_says(status, KILN_STATUS_DEVICE_LOST, "in kernel \"bad\"");
  // The other is as it was.
  kiln_fault_t fault = kiln_fault_default();
  assert_ok(kiln_device_fault(world->device[1], &fault));
  assert_int_equal(fault.kind, KILN_FAULT_NONE);
  assert_ok(kiln_buffer_fill_async(good, stream, 0, BYTES, 11, 4));
  assert_ok(kiln_stream_synchronize(stream));
  assert_holds(good, 11);
  assert_says(kiln_buffer_fill(lost, 0, BYTES, 11, 4), KILN_STATUS_DEVICE_LOST,
              "is lost");
  kiln_stream_release(stream);
  kiln_buffer_release(lost);
  kiln_buffer_release(good);
}

static void test_copy_from_the_lost(void** state) {
  copy_of_the_lost(*state, 0);
}

static void test_copy_to_the_lost(void** state) {
  copy_of_the_lost(*state, 1);
}

static void test_async_copy_from_the_lost(void** state) {
  copy_of_the_lost(*state, 2);
}

static void test_async_copy_to_the_lost(void** state) {
  copy_of_the_lost(*state, 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define LOST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_lost)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(test_what_there_is),
      CASE(test_access_is_counted),
      CASE(test_somebody_elses),
      CASE(test_what_is_refused),
      CASE(test_threads),
      CASE(test_copies),
      CASE(test_copies_of_host_memory),
      LOST(test_copy_from_the_lost),
      LOST(test_copy_to_the_lost),
      LOST(test_async_copy_from_the_lost),
      LOST(test_async_copy_to_the_lost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
