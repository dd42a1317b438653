// SPDX-License-Identifier: Apache-2.0
//
// device: streams and the way into a driver call, with a driver's books kept:
// identity, foreign and default streams, order, contexts, captures, pools.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device_inside.h"
#include "device_world.h"
#include "driver_books.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"
#include "says.h"

// A null driver with two devices. one-thread
typedef struct world_t {
  device_world_t in;
  kiln_device_t* device;
  kiln_device_t* other;
} world_t;

static kiln_cu_context_t foreign(void) {
  return (kiln_cu_context_t)(uintptr_t)0xf04e1600;
}

static kiln_device_t* open_on(const kiln_cuda_table_t* table,
                              const kiln_allocator_t* allocator,
                              const char* name) {
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = allocator;
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = table;
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  assert_null(kilni_runtime_create_with(&options, &hooks, &runtime));
  assert_null(kiln_runtime_open_device(runtime, name, &device));
  kiln_runtime_release(runtime);
  return device;
}

static int setup(void** state) {
  static world_t world;
  device_world_begin(&world.in);
  driver_books_open(&world.in.table);
  device_world_open(&world.in, "cuda:0");
  world.device = world.in.device;
  world.in.device = NULL;
  assert_null(
      kiln_runtime_open_device(world.in.runtime, "cuda:1", &world.other));
  device_world_close(&world.in);
  assert_ptr_not_equal(kiln_device_context(world.device),
                       kiln_device_context(world.other));
  // What a host program has made current for itself.
  world.in.table.cuCtxSetCurrent(foreign());
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  world_t* world = *state;
  assert_ptr_equal(driver_books_current(), foreign());
  assert_int_equal(driver_books_mode(), KILN_CU_STREAM_CAPTURE_MODE_GLOBAL);
  kiln_device_release(world->other);
  kiln_device_release(world->device);
  assert_ptr_equal(driver_books_current(), foreign());
  driver_books_close();
  device_world_end(&world->in);
  return 0;
}

static kiln_stream_t* make_stream(kiln_device_t* device) {
  kiln_stream_t* stream = NULL;
  assert_null(kiln_stream_create(device, NULL, &stream));
  return stream;
}

// ---- Priorities ----

static void test_priorities(void** state) {
  world_t* world = *state;
  int32_t least = 9;
  int32_t greatest = 9;
  assert_null(kiln_device_priorities(world->device, &least, &greatest));
  assert_int_equal(least, 0);
  assert_int_equal(greatest, -5);
  kiln_stream_options_t options = kiln_stream_options_default();
  kiln_stream_t* stream = NULL;
  const int32_t good[] = {0, -1, -5};
  for (int i = 0; i < 3; i++) {
    options.priority = good[i];
    assert_null(kiln_stream_create(world->device, &options, &stream));
    assert_int_equal(kiln_stream_priority(stream), good[i]);
    assert_false(kiln_stream_with_default(stream));
    assert_int_equal(kiln_stream_kind(stream), KILN_STREAM_CREATED);
    kiln_stream_release(stream);
  }
  const int32_t bad[] = {1, -6, INT32_MAX, INT32_MIN};
  for (int i = 0; i < 4; i++) {
    options.priority = bad[i];
    assert_says(kiln_stream_create(world->device, &options, &stream),
                KILN_STATUS_INVALID_ARGUMENT, "-5 (first) to 0 (last)");
    assert_null(stream);
  }
  options.priority = -2;
  options.with_default_stream = KILN_SWITCH_ON;
  assert_null(kiln_stream_create(world->device, &options, &stream));
  assert_true(kiln_stream_with_default(stream));
  kiln_stream_release(stream);
}

// ---- Identity ----

static void test_one_handle_one_object(void** state) {
  world_t* world = *state;
  kiln_stream_t* stream = make_stream(world->device);
  kiln_stream_t* again = NULL;
  assert_null(kiln_stream_adopt(world->device, kiln_stream_handle(stream), NULL,
                                &again));
  assert_ptr_equal(again, stream);
  kiln_stream_release(stream);
  // The adopted one keeps the stream alive: it is the stream.
  assert_int_equal(driver_books_counts().ended[KILNI_HANDLE_STREAM], 0);
  assert_null(kiln_stream_synchronize(again));
  kiln_stream_release(again);
  assert_int_equal(driver_books_counts().ended[KILNI_HANDLE_STREAM], 1);
}

static void test_default_streams(void** state) {
  world_t* world = *state;
  kiln_stream_t* legacy = NULL;
  kiln_stream_t* same[3] = {NULL, NULL, NULL};
  kiln_stream_t* thread = NULL;
  kiln_stream_t* of_other = NULL;
  assert_null(kiln_stream_default(world->device, KILN_STREAM_LEGACY, &legacy));
  assert_int_equal(kiln_stream_kind(legacy), KILN_STREAM_LEGACY);
  assert_true(kiln_stream_with_default(legacy));
  assert_null(kiln_stream_default(world->device, KILN_STREAM_LEGACY, &same[0]));
  assert_null(kiln_stream_adopt(world->device, NULL, NULL, &same[1]));
  assert_null(
      kiln_stream_adopt(world->device, KILN_CU_STREAM_LEGACY, NULL, &same[2]));
  for (int i = 0; i < 3; i++) assert_ptr_equal(same[i], legacy);
  assert_null(
      kiln_stream_default(world->device, KILN_STREAM_PER_THREAD, &thread));
  assert_ptr_not_equal(thread, legacy);
  assert_ptr_equal(kiln_stream_handle(thread), KILN_CU_STREAM_PER_THREAD);
  assert_null(kiln_stream_default(world->other, KILN_STREAM_LEGACY, &of_other));
  assert_ptr_not_equal(of_other, legacy);
  // Its context is the device's, whatever the caller has made current.
  kiln_cu_context_t ours = kiln_device_context(world->device);
  kiln_stream_t* const both[] = {legacy, thread};
  for (int i = 0; i < 2; i++) {
    bool ready = false;
    assert_null(kiln_stream_synchronize(both[i]));
    assert_ptr_equal(driver_books_token_context(), ours);
    assert_null(kiln_stream_query(both[i], &ready));
    assert_true(ready);
    assert_ptr_equal(driver_books_token_context(), ours);
    kiln_buffer_options_t options = kiln_buffer_options_default();
    options.stream = both[i];
    kiln_buffer_t* buffer = NULL;
    assert_null(kiln_buffer_create(world->device, 64, &options, &buffer));
    assert_null(kiln_buffer_fill_async(buffer, both[i], 0, 64, 1, 1));
    assert_ptr_equal(driver_books_token_context(), ours);
    assert_null(kiln_stream_synchronize(of_other));
    assert_ptr_equal(driver_books_token_context(),
                     kiln_device_context(world->other));
    kiln_buffer_release(buffer);
    assert_ptr_equal(driver_books_token_context(), ours);
    assert_ptr_equal(driver_books_current(), foreign());
  }
  kiln_status_t status = kiln_stream_default(world->device, 7, &same[0]);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  assert_null(same[0]);
  for (int i = 0; i < 4; i++) kiln_stream_release(legacy);
  kiln_stream_release(thread);
  kiln_stream_release(of_other);
}

// A driver that gives out the same handle again and again.
static kiln_cu_result_t same_stream(kiln_cu_stream_t* stream,
                                    unsigned int flags) {
  (void)flags;
  *stream = (kiln_cu_stream_t)(uintptr_t)0x5a5a00;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t forget_stream(kiln_cu_stream_t stream) {
  (void)stream;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t context_of_cuda0(kiln_cu_stream_t stream,
                                         kiln_cu_context_t* context) {
  (void)stream;
  *context = (kiln_cu_context_t)(uintptr_t)0xc0de00;
  return KILN_CU_SUCCESS;
}

static void test_a_handle_that_comes_again(void** state) {
  world_t* world = *state;
  kiln_cuda_table_t table = world->in.table;
  table.cuStreamCreate = same_stream;
  table.cuStreamDestroy = forget_stream;
  table.cuStreamGetCtx = context_of_cuda0;
  kiln_device_t* device = open_on(&table, &world->in.allocator, "cuda:0");
  kiln_stream_t* borrowed = NULL;
  assert_null(
      kiln_stream_adopt(device, (void*)(uintptr_t)0x5a5a00, NULL, &borrowed));
  assert_int_equal(kiln_stream_kind(borrowed), KILN_STREAM_FOREIGN);
  // The host program has destroyed it and forgotten to let go, and the driver
  // makes another with the same handle.
  kiln_stream_t* made = make_stream(device);
  assert_ptr_not_equal(made, borrowed);
  kiln_stream_t* met = NULL;
  assert_null(kiln_stream_adopt(device, kiln_stream_handle(made), NULL, &met));
  assert_ptr_equal(met, made);
  kiln_stream_release(borrowed);
  kiln_stream_release(met);
  assert_null(kiln_stream_adopt(device, kiln_stream_handle(made), NULL, &met));
  assert_ptr_equal(met, made);
  kiln_stream_release(met);
  kiln_stream_release(made);
  made = make_stream(device);
  kiln_stream_release(made);
  assert_int_equal(kilni_base_registry_count(&device->registry), 0);
  kiln_device_release(device);
}

// ---- Foreign streams ----

// Somebody who keeps a stream alive. one-thread
typedef struct keeper_t {
  world_t* world;
  kiln_cu_stream_t stream;
  int released;
} keeper_t;

static void release_keeper(void* user) {
  keeper_t* keeper = user;
  keeper->released++;
  // The handle is not used any more, and no lock is held.
  if (keeper->stream != NULL) {
    assert_int_equal(keeper->world->in.table.cuStreamDestroy(keeper->stream),
                     0);
  }
  kiln_stream_t* stream = NULL;
  assert_null(
      kiln_stream_default(keeper->world->device, KILN_STREAM_LEGACY, &stream));
  kiln_stream_release(stream);
}

static kiln_cu_stream_t raw_stream(world_t* world, kiln_device_t* device) {
  kiln_cu_stream_t stream = NULL;
  world->in.table.cuCtxSetCurrent(kiln_device_context(device));
  assert_int_equal(world->in.table.cuStreamCreate(&stream, 0), 0);
  world->in.table.cuCtxSetCurrent(foreign());
  return stream;
}

static void test_a_stream_with_an_owner(void** state) {
  world_t* world = *state;
  keeper_t keeper = {world, raw_stream(world, world->device), 0};
  kiln_owner_t owner = {release_keeper, &keeper};
  kiln_stream_t* first = NULL;
  kiln_stream_t* second = NULL;
  assert_null(kiln_stream_adopt(world->device, keeper.stream, &owner, &first));
  assert_int_equal(kiln_stream_kind(first), KILN_STREAM_FOREIGN);
  assert_ptr_equal(kiln_stream_handle(first), keeper.stream);
  assert_true(kiln_stream_with_default(first));
  // It is nobody's to meet: this one's life is the caller's affair.
  assert_null(kiln_stream_adopt(world->device, keeper.stream, NULL, &second));
  assert_ptr_not_equal(second, first);
  kiln_stream_release(second);
  assert_null(kiln_stream_synchronize(first));
  kiln_stream_retain(first);
  kiln_stream_release(first);
  assert_int_equal(keeper.released, 0);
  kiln_stream_release(first);
  assert_int_equal(keeper.released, 1);
}

// A buffer is freed on its stream: the owner goes behind that.
static void test_an_owner_goes_last(void** state) {
  world_t* world = *state;
  keeper_t keeper = {world, raw_stream(world, world->device), 0};
  kiln_owner_t owner = {release_keeper, &keeper};
  kiln_stream_t* stream = NULL;
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_stream_adopt(world->device, keeper.stream, &owner, &stream));
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.stream = stream;
  assert_null(kiln_buffer_create(world->device, 64, &options, &buffer));
  kiln_stream_release(stream);
  assert_int_equal(keeper.released, 0);
  kiln_buffer_release(buffer);
  assert_int_equal(keeper.released, 1);
}

static void test_a_borrowed_stream(void** state) {
  world_t* world = *state;
  kiln_cu_stream_t raw = raw_stream(world, world->device);
  keeper_t keeper = {world, NULL, 0};
  kiln_owner_t owner = {release_keeper, &keeper};
  kiln_owner_t nobody = {NULL, NULL};
  kiln_stream_t* stream = NULL;
  kiln_stream_t* again = NULL;
  assert_null(kiln_stream_adopt(world->device, raw, NULL, &stream));
  assert_null(kiln_stream_adopt(world->device, raw, &nobody, &again));
  assert_ptr_equal(again, stream);
  kiln_stream_release(again);
  // An owner makes another object, which does not hang on this one's life.
  assert_null(kiln_stream_adopt(world->device, raw, &owner, &again));
  assert_ptr_not_equal(again, stream);
  kiln_stream_release(stream);
  assert_null(kiln_stream_synchronize(again));
  kiln_stream_release(again);
  assert_int_equal(keeper.released, 1);
  assert_int_equal(driver_books_counts().ended[KILNI_HANDLE_STREAM], 0);
  assert_int_equal(world->in.table.cuStreamDestroy(raw), 0);
  // Ours needs no owner.
  stream = make_stream(world->device);
  assert_null(kiln_stream_adopt(world->device, kiln_stream_handle(stream),
                                &owner, &again));
  assert_ptr_equal(again, stream);
  assert_int_equal(keeper.released, 2);
  kiln_stream_release(again);
  kiln_stream_release(stream);
}

static void test_a_stream_of_another_context(void** state) {
  world_t* world = *state;
  keeper_t keeper = {world, raw_stream(world, world->other), 0};
  kiln_owner_t owner = {release_keeper, &keeper};
  kiln_stream_t* stream = NULL;
  assert_says(kiln_stream_adopt(world->device, keeper.stream, &owner, &stream),
              KILN_STATUS_INVALID_ARGUMENT, "belongs to the context");
  assert_null(stream);
  assert_int_equal(keeper.released, 0);
  assert_null(kiln_stream_adopt(world->other, keeper.stream, &owner, &stream));
  kiln_stream_release(stream);
  assert_int_equal(keeper.released, 1);
}

// ---- A foreign context ----

static kiln_cu_context_t host_context(void) {
  return (kiln_cu_context_t)(uintptr_t)0x40570000;
}

static kiln_cu_result_t on_another_gpu(kiln_cu_device_t* device) {
  *device = 1;
  return KILN_CU_SUCCESS;
}

static void count_told(void* user) {
  ++*(int*)user;
}

// What is made on it is made in it, whatever is current; it ends with the host
// program, who is told behind the last stream.
static void test_a_foreign_context(void** state) {
  world_t* world = *state;
  int told = 0;
  const kiln_owner_t owner = {count_told, &told};
  kiln_device_t* guest = NULL;
  kiln_buffer_t* buffer = NULL;
  kiln_buffer_t* other = NULL;
  kiln_cu_context_t context = NULL;
  assert_null(kiln_device_adopt(world->device, host_context(), &owner, &guest));
  assert_ptr_equal(kiln_device_context(guest), host_context());
  assert_string_equal(kiln_device_name(guest), "cuda:0/foreign");
  assert_null(kiln_device_parent(guest));
  kiln_stream_t* stream = make_stream(guest);
  world->in.table.cuStreamGetCtx(kiln_stream_handle(stream), &context);
  assert_ptr_equal(context, host_context());
  kiln_stream_t* own = make_stream(world->device);
  assert_null(kiln_stream_wait_stream(stream, own));
  assert_null(kiln_stream_wait_stream(own, stream));
  // Memory is of one context.
  assert_null(kiln_buffer_create(guest, 64, NULL, &buffer));
  assert_null(kiln_buffer_create(world->device, 64, NULL, &other));
  assert_null(kiln_buffer_fill_async(buffer, stream, 0, 64, 0, 1));
  assert_says(kiln_buffer_fill_async(other, stream, 0, 64, 0, 1),
              KILN_STATUS_INVALID_ARGUMENT, "cuda:0/foreign");
  kiln_device_release(guest);
  kiln_buffer_release(buffer);
  kiln_buffer_release(other);
  kiln_stream_release(own);
  assert_int_equal(told, 0);
  kiln_stream_release(stream);
  assert_int_equal(told, 1);
}

static void test_contexts_that_are_not_taken(void** state) {
  world_t* world = *state;
  int told = 0;
  const kiln_owner_t owner = {count_told, &told};
  kiln_device_t* guest = world->device;
  // The device's own context is the device.
  assert_null(kiln_device_adopt(
      world->device, kiln_device_context(world->device), &owner, &guest));
  assert_ptr_equal(guest, world->device);
  assert_int_equal(told, 1);
  kiln_device_release(guest);
  kiln_status_t status = kiln_device_adopt(world->device, NULL, &owner, &guest);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_null(guest);
  kiln_status_free(status);
  // One that cannot be made current.
  driver_books_fail_switch(1);
  status = kiln_device_adopt(world->device, host_context(), &owner, &guest);
  assert_false(kiln_status_is_ok(status));
  assert_null(guest);
  kiln_status_free(status);
  assert_int_equal(told, 1);
}

static void test_a_context_of_another_gpu(void** state) {
  world_t* world = *state;
  kiln_cuda_table_t table = world->in.table;
  kiln_device_t* guest = NULL;
  KILNI_CUDA_SET(&table, cuCtxGetDevice, on_another_gpu);
  kiln_device_t* device = open_on(&table, &world->in.allocator, "cuda:0");
  assert_says(kiln_device_adopt(device, host_context(), NULL, &guest),
              KILN_STATUS_INVALID_ARGUMENT, "belongs to GPU 1");
  assert_null(guest);
  kiln_device_release(device);
}

// ---- An older driver ----

static kiln_cu_result_t unknown_attribute(int* value,
                                          kiln_cu_device_attribute_t attribute,
                                          kiln_cu_device_t device) {
  (void)device;
  *value = 7;
  return attribute == KILN_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
             ? KILN_CU_ERROR_INVALID_VALUE
             : KILN_CU_SUCCESS;
}

// What it does not know, the device does not have.
static void test_an_older_driver(void** state) {
  world_t* world = *state;
  kiln_cuda_table_t table = world->in.table;
  table.cuDeviceGetAttribute = unknown_attribute;
  kiln_device_t* device = open_on(&table, &world->in.allocator, "cuda:0");
  assert_int_equal(kiln_device_info(device)->warp_size, 7);
  assert_int_equal(kiln_device_info(device)->memory_pools, 0);
  kiln_device_release(device);
}

// ---- Order ----

static void test_streams_wait_for_streams(void** state) {
  world_t* world = *state;
  kiln_stream_t* a = make_stream(world->device);
  kiln_stream_t* b = make_stream(world->device);
  kiln_stream_t* far = make_stream(world->other);
  kiln_stream_t* legacy = NULL;
  assert_null(kiln_stream_default(world->other, KILN_STREAM_LEGACY, &legacy));
  for (int i = 0; i < 10; i++) {
    assert_null(kiln_stream_wait_stream(a, b));
    assert_null(kiln_stream_wait_stream(a, far));
    assert_null(kiln_stream_wait_stream(a, legacy));
    assert_null(kiln_stream_wait_stream(legacy, b));
    assert_null(kiln_stream_wait_stream(a, a));
  }
  // One event on each device did for all; the books saw to its context.
  kilni_device_pool_counts_t near_one =
      kilni_device_pools_counts(world->device, KILNI_POOL_EVENTS);
  kilni_device_pool_counts_t far_one =
      kilni_device_pools_counts(world->other, KILNI_POOL_EVENTS);
  assert_int_equal(near_one.made, 1);
  assert_int_equal(near_one.kept, 1);
  assert_int_equal(near_one.in_use, 0);
  assert_int_equal(far_one.made, 1);
  assert_int_equal(far_one.peak, 1);
  assert_int_equal(driver_books_counts().made[KILNI_HANDLE_EVENT], 2);
  kiln_event_t* event = NULL;
  assert_null(kiln_event_create(world->other, NULL, &event));
  assert_null(kiln_event_record(event, far));
  assert_null(kiln_stream_wait_event(a, event));
  kiln_event_release(event);
  kiln_stream_release(a);
  kiln_stream_release(b);
  kiln_stream_release(far);
  kiln_stream_release(legacy);
}

static void test_other_drivers_are_apart(void** state) {
  world_t* world = *state;
  kiln_cuda_table_t table = world->in.table;
  kiln_device_t* device = open_on(&table, &world->in.allocator, "cuda:0");
  kiln_stream_t* near_one = make_stream(world->device);
  kiln_stream_t* far = make_stream(device);
  kiln_event_t* event = NULL;
  assert_null(kiln_event_create(device, NULL, &event));
  assert_says(kiln_stream_wait_stream(near_one, far),
              KILN_STATUS_INVALID_ARGUMENT, "a different driver");
  assert_says(kiln_stream_wait_event(near_one, event),
              KILN_STATUS_INVALID_ARGUMENT, "a different driver");
  kiln_event_release(event);
  kiln_stream_release(near_one);
  kiln_stream_release(far);
  kiln_device_release(device);
}

static kiln_cu_result_t copied_across(kiln_cu_deviceptr_t to,
                                      kiln_cu_context_t to_context,
                                      kiln_cu_deviceptr_t from,
                                      kiln_cu_context_t from_context,
                                      size_t bytes) {
  (void)to;
  (void)to_context;
  (void)from;
  (void)from_context;
  (void)bytes;
  return KILN_CU_ERROR_ILLEGAL_ADDRESS;
}

static kiln_cu_result_t waited_across(kiln_cu_stream_t stream,
                                      kiln_cu_event_t event,
                                      unsigned int flags) {
  (void)stream;
  (void)event;
  (void)flags;
  return KILN_CU_ERROR_ILLEGAL_ADDRESS;
}

static kiln_cu_result_t enabled_across(kiln_cu_context_t context,
                                       unsigned int flags) {
  (void)context;
  (void)flags;
  return KILN_CU_ERROR_ILLEGAL_ADDRESS;
}

// A driver gives the error of a lost context to who names that context in a
// call on another one. So it is not asked, and the other device is not lost.
static void test_a_lost_device_beside_another(void** state) {
  world_t* world = *state;
  kiln_cuda_table_t table = world->in.table;
  table.cuMemcpyPeer = copied_across;
  table.cuStreamWaitEvent = waited_across;
  table.cuCtxEnablePeerAccess = enabled_across;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = &world->in.allocator;
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &table;
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device[2] = {NULL, NULL};
  kiln_buffer_t* buffer[2] = {NULL, NULL};
  kiln_event_t* event = NULL;
  kiln_peer_t* access = NULL;
  assert_null(kilni_runtime_create_with(&options, &hooks, &runtime));
  assert_null(kiln_runtime_open_device(runtime, "cuda:0", &device[0]));
  assert_null(kiln_runtime_open_device(runtime, "cuda:1", &device[1]));
  for (int i = 0; i < 2; i++) {
    assert_null(kiln_buffer_create(device[i], 64, NULL, &buffer[i]));
  }
  kiln_stream_t* stream = make_stream(device[0]);
  assert_null(kiln_event_create(device[1], NULL, &event));
  kilni_device_mark_lost(device[1]);
  const kiln_status_code_t lost = KILN_STATUS_DEVICE_LOST;
  const char* const named = "\"cuda:1\" is lost";
  assert_says(kiln_buffer_copy(buffer[0], 0, buffer[1], 0, 64), lost, named);
  assert_says(kiln_buffer_copy(buffer[1], 0, buffer[0], 0, 64), lost, named);
  assert_says(kiln_stream_wait_event(stream, event), lost, named);
  assert_says(kiln_peer_create(device[0], device[1], &access), lost, named);
  assert_null(access);
  assert_null(kiln_device_synchronize(device[0]));
  // Found again, so that the books close.
  atomic_store(&device[1]->lost, false);
  atomic_store(device[1]->lost_too, false);
  kiln_event_release(event);
  kiln_stream_release(stream);
  for (int i = 0; i < 2; i++) {
    kiln_buffer_release(buffer[i]);
    kiln_device_release(device[i]);
  }
  kiln_runtime_release(runtime);
}

static void count_up(void* user) {
  ++*(int*)user;
}

static void test_host_functions(void** state) {
  world_t* world = *state;
  kiln_stream_t* stream = make_stream(world->device);
  int count = 0;
  assert_null(kiln_stream_call_host(stream, count_up, &count));
  assert_null(kiln_stream_synchronize(stream));
  assert_int_equal(count, 1);
  kiln_status_t status = kiln_stream_call_host(stream, NULL, &count);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  kiln_stream_release(stream);
}

// ---- Contexts and captures ----

static void test_a_context_that_cannot_be_put_back(void** state) {
  world_t* world = *state;
  kiln_cu_context_t ours = kiln_device_context(world->device);
  kiln_stream_t* stream = NULL;
  kiln_event_t* event = NULL;
  kiln_buffer_t* buffer = NULL;
  uint64_t made = world->in.watch.live_blocks;
  for (int i = 0; i < 3; i++) {
    driver_books_fail_switch(2);  // the way back
    kiln_status_t status =
        i == 0   ? kiln_stream_create(world->device, NULL, &stream)
        : i == 1 ? kiln_event_create(world->device, NULL, &event)
                 : kiln_buffer_create(world->device, 64, NULL, &buffer);
    assert_says(status, KILN_STATUS_INVALID_STATE,
                i == 0   ? "what cuStreamCreate had made has been destroyed"
                : i == 1 ? "what cuEventCreate had made has been destroyed"
                         : "what cuMemAlloc had made has been destroyed");
    // What could not be put back is not tried again, and nothing is left.
    assert_ptr_equal(driver_books_current(), ours);
    world->in.table.cuCtxSetCurrent(foreign());
    assert_int_equal(world->in.watch.live_blocks, made);
  }
  assert_null(stream);
  assert_null(event);
  assert_null(buffer);
  driver_books_counts_t counts = driver_books_counts();
  assert_int_equal(counts.made[KILNI_HANDLE_STREAM], 1);
  assert_int_equal(counts.ended[KILNI_HANDLE_STREAM], 1);
  assert_int_equal(counts.ended[KILNI_HANDLE_EVENT], 1);
  assert_int_equal(counts.ended[KILNI_HANDLE_MEMORY], 1);
}

static kiln_cu_result_t no_stream(kiln_cu_stream_t* stream,
                                  unsigned int flags) {
  (void)flags;
  *stream = (kiln_cu_stream_t)(uintptr_t)0xbad;  // what a failed call leaves
  return KILN_CU_ERROR_OUT_OF_MEMORY;
}

// The operation's own error wins, and what a failed call wrote is no handle.
static void test_both_ways_fail(void** state) {
  world_t* world = *state;
  kiln_cuda_table_t table = world->in.table;
  table.cuStreamCreate = no_stream;
  kiln_device_t* device = open_on(&table, &world->in.allocator, "cuda:0");
  kiln_stream_t* stream = NULL;
  driver_books_fail_switch(2);
  kiln_status_t status = kiln_stream_create(device, NULL, &stream);
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_DEVICE_OUT_OF_MEMORY);
  assert_non_null(strstr(text, "the caller's context was not restored"));
  assert_null(strstr(text, "has been destroyed"));
  kiln_status_free(status);
  assert_null(stream);
  world->in.table.cuCtxSetCurrent(foreign());
  kiln_device_release(device);
}

// Rows that captures forbid are called in the relaxed mode (the books count
// any other as wrong), and rows that they allow pay for no exchange.
static void test_the_capture_mode(void** state) {
  world_t* world = *state;
  kiln_stream_t* stream = make_stream(world->device);
  kiln_event_t* event = NULL;
  assert_null(kiln_event_create(world->device, NULL, &event));
  uint64_t before = driver_books_counts().exchanges;
  assert_null(kiln_event_record(event, stream));
  assert_null(kiln_stream_wait_event(stream, event));
  assert_null(kiln_stream_wait_stream(stream, stream));
  assert_int_equal(driver_books_counts().exchanges, before);
  assert_null(kiln_stream_synchronize(stream));
  assert_int_equal(driver_books_counts().exchanges, before + 2);
  assert_null(kiln_event_synchronize(event));
  assert_int_equal(driver_books_counts().exchanges, before + 4);
  // A caller who is relaxed already stays so, and is asked once.
  kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_RELAXED;
  world->in.table.cuThreadExchangeStreamCaptureMode(&mode);
  before = driver_books_counts().exchanges;
  assert_null(kiln_stream_synchronize(stream));
  assert_int_equal(driver_books_counts().exchanges, before + 1);
  assert_int_equal(driver_books_mode(), KILN_CU_STREAM_CAPTURE_MODE_RELAXED);
  mode = KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  world->in.table.cuThreadExchangeStreamCaptureMode(&mode);
  assert_null(kiln_device_synchronize(world->device));
  assert_int_equal(driver_books_mode(),
                   KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  world->in.table.cuThreadExchangeStreamCaptureMode(&mode);
  kiln_event_release(event);
  kiln_stream_release(stream);
}

static void test_a_mode_that_does_not_change(void** state) {
  world_t* world = *state;
  kiln_stream_t* stream = make_stream(world->device);
  kiln_buffer_t* buffer = NULL;
  driver_books_fail_exchange(1);
  assert_says(kiln_stream_synchronize(stream), KILN_STATUS_INVALID_STATE,
              "cuThreadExchangeStreamCaptureMode");
  driver_books_fail_exchange(2);
  assert_says(kiln_stream_synchronize(stream), KILN_STATUS_INVALID_STATE,
              "it stays relaxed");
  kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  world->in.table.cuThreadExchangeStreamCaptureMode(&mode);
  driver_books_fail_exchange(2);
  assert_says(kiln_buffer_create(world->device, 64, NULL, &buffer),
              KILN_STATUS_INVALID_STATE, "had made has been destroyed");
  assert_null(buffer);
  // The context went back all the same.
  assert_ptr_equal(driver_books_current(), foreign());
  mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  world->in.table.cuThreadExchangeStreamCaptureMode(&mode);
  assert_int_equal(driver_books_counts().ended[KILNI_HANDLE_MEMORY], 1);
  kiln_stream_release(stream);
}

static kiln_cu_result_t never_ready(kiln_cu_stream_t stream) {
  (void)stream;
  return KILN_CU_ERROR_NOT_READY;
}

// That a stream is not ready is no error, and hides none.
static void test_not_ready_hides_nothing(void** state) {
  world_t* world = *state;
  kiln_cuda_table_t table = world->in.table;
  table.cuStreamQuery = never_ready;
  kiln_device_t* device = open_on(&table, &world->in.allocator, "cuda:0");
  kiln_stream_t* stream = make_stream(device);
  bool ready = true;
  assert_null(kiln_stream_query(stream, &ready));
  assert_false(ready);
  driver_books_fail_exchange(2);
  assert_says(kiln_stream_query(stream, &ready), KILN_STATUS_INVALID_STATE,
              "it stays relaxed");
  kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  world->in.table.cuThreadExchangeStreamCaptureMode(&mode);
  kiln_stream_release(stream);
  kiln_device_release(device);
}

// Released by a thread with another context, or none, current.
static void release_elsewhere(void* user) {
  void** what = user;
  world_t* world = what[0];
  world->in.table.cuCtxSetCurrent(what[4]);
  kiln_event_release(what[1]);
  kiln_buffer_release(what[2]);
  kiln_stream_release(what[3]);
  if (driver_books_current() != what[4]) what[0] = NULL;
  if (driver_books_mode() != KILN_CU_STREAM_CAPTURE_MODE_GLOBAL) what[0] = NULL;
}

static void test_release_on_another_thread(void** state) {
  world_t* world = *state;
  void* const current[] = {NULL, foreign(), kiln_device_context(world->other),
                           kiln_device_context(world->device)};
  for (int i = 0; i < 8; i++) {
    kiln_event_t* event = NULL;
    kiln_buffer_t* buffer = NULL;
    kiln_stream_t* stream = make_stream(world->device);
    kiln_buffer_options_t options = kiln_buffer_options_default();
    if (i % 2) options.stream = stream;
    assert_null(kiln_event_create(world->device, NULL, &event));
    assert_null(kiln_buffer_create(world->device, 64, &options, &buffer));
    void* what[] = {world, event, buffer, stream, current[i / 2]};
    kilni_base_thread_t thread;
    assert_null(
        kilni_base_thread_start(&thread, "release", release_elsewhere, what));
    kilni_base_thread_join(&thread);
    assert_ptr_equal(what[0], world);
  }
  assert_int_equal(driver_books_counts().live, 2);  // the contexts
}

// ---- Pools ----

static void test_pools_are_bounded(void** state) {
  world_t* world = *state;
  enum { MANY = KILNI_POOL_KEPT + 8 };
  kiln_cu_event_t events[MANY];
  kiln_cu_stream_t streams[MANY];
  for (int timing = 0; timing < 2; timing++) {
    uint32_t pool = timing ? KILNI_POOL_TIMED_EVENTS : KILNI_POOL_EVENTS;
    for (int i = 0; i < MANY; i++) {
      assert_null(
          kilni_device_event_acquire(world->device, timing != 0, &events[i]));
    }
    kilni_device_pool_counts_t counts =
        kilni_device_pools_counts(world->device, pool);
    assert_int_equal(counts.in_use, MANY);
    assert_int_equal(counts.made, MANY);
    for (int i = 0; i < MANY; i++) {
      kilni_device_event_recycle(world->device, timing != 0, events[i]);
    }
    counts = kilni_device_pools_counts(world->device, pool);
    assert_int_equal(counts.in_use, 0);
    assert_int_equal(counts.kept, KILNI_POOL_KEPT);
    assert_int_equal(counts.peak, MANY);
  }
  assert_int_equal(driver_books_counts().ended[KILNI_HANDLE_EVENT], 16);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < MANY; i++) {
      assert_null(kilni_device_stream_acquire(world->device, &streams[i]));
    }
    for (int i = 0; i < MANY; i++) {
      kilni_device_stream_recycle(world->device, streams[i]);
    }
  }
  kilni_device_pool_counts_t counts =
      kilni_device_pools_counts(world->device, KILNI_POOL_STREAMS);
  assert_int_equal(counts.made, MANY + 8);
  assert_int_equal(counts.kept, KILNI_POOL_KEPT);
  assert_int_equal(counts.peak, MANY);
}

static void test_a_pool_whose_driver_fails(void** state) {
  world_t* world = *state;
  kiln_cu_event_t event = NULL;
  kiln_cu_stream_t stream = NULL;
  driver_books_fail_switch(2);
  assert_says(kilni_device_event_acquire(world->device, false, &event),
              KILN_STATUS_INVALID_STATE, "has been destroyed");
  world->in.table.cuCtxSetCurrent(foreign());
  driver_books_fail_switch(1);
  assert_says(kilni_device_stream_acquire(world->device, &stream),
              KILN_STATUS_INVALID_STATE, "cuCtxSetCurrent");
  assert_null(event);
  assert_null(stream);
  assert_int_equal(
      kilni_device_pools_counts(world->device, KILNI_POOL_EVENTS).made, 0);
  assert_int_equal(
      kilni_device_pools_counts(world->device, KILNI_POOL_STREAMS).in_use, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_priorities),
      TEST(test_one_handle_one_object),
      TEST(test_default_streams),
      TEST(test_a_handle_that_comes_again),
      TEST(test_a_stream_with_an_owner),
      TEST(test_an_owner_goes_last),
      TEST(test_a_borrowed_stream),
      TEST(test_a_stream_of_another_context),
      TEST(test_a_foreign_context),
      TEST(test_contexts_that_are_not_taken),
      TEST(test_a_context_of_another_gpu),
      TEST(test_an_older_driver),
      TEST(test_streams_wait_for_streams),
      TEST(test_other_drivers_are_apart),
      TEST(test_a_lost_device_beside_another),
      TEST(test_host_functions),
      TEST(test_a_context_that_cannot_be_put_back),
      TEST(test_both_ways_fail),
      TEST(test_the_capture_mode),
      TEST(test_a_mode_that_does_not_change),
      TEST(test_not_ready_hides_nothing),
      TEST(test_release_on_another_thread),
      TEST(test_pools_are_bounded),
      TEST(test_a_pool_whose_driver_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
