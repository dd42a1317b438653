// SPDX-License-Identifier: Apache-2.0
//
// device: pools and buffers between processes, over the null provider, whose
// calls are watched; two processes on a GPU are tests/live/live_shared.c.
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "device_world.h"

// What was asked of the driver. one-thread, but for the counts
static struct {
  kiln_cuda_table_t under;
  atomic_int opened;  // pointers of pools
  atomic_int freed;
  int closed;  // of cuIpcCloseMemHandle
  int fd;      // last given out
  kiln_cu_mem_handle_type_t types;
} seen;

static kiln_cu_result_t see_create(kiln_cu_mempool_t* pool,
                                   const kiln_cu_mempool_props_t* props) {
  seen.types = props->handle_types;
  return seen.under.cuMemPoolCreate(pool, props);
}

static kiln_cu_result_t see_export(void* shared, kiln_cu_mempool_t pool,
                                   kiln_cu_mem_handle_type_t type,
                                   unsigned long long flags) {
  (void)pool;
  assert_int_equal(type, 1);
  assert_int_equal(flags, 0);
  seen.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  memcpy(shared, &seen.fd, sizeof(int));
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t see_import(kiln_cu_deviceptr_t* address,
                                   kiln_cu_mempool_t pool,
                                   kiln_cu_mempool_export_t* shared) {
  atomic_fetch_add(&seen.opened, 1);
  return seen.under.cuMemPoolImportPointer(address, pool, shared);
}

static kiln_cu_result_t see_free(kiln_cu_deviceptr_t address,
                                 kiln_cu_stream_t stream) {
  atomic_fetch_add(&seen.freed, 1);
  return seen.under.cuMemFreeAsync(address, stream);
}

static kiln_cu_result_t see_close(kiln_cu_deviceptr_t address) {
  seen.closed++;
  return seen.under.cuIpcCloseMemHandle(address);
}

typedef device_world_t world_t;

static int setup(void** state) {
  static world_t world;
  device_world_begin(&world);
  memset(&seen, 0, sizeof(seen));
  seen.under = world.table;
  KILNI_CUDA_SET(&world.table, cuMemPoolCreate, see_create);
  KILNI_CUDA_SET(&world.table, cuMemPoolExportToShareableHandle, see_export);
  KILNI_CUDA_SET(&world.table, cuMemPoolImportPointer, see_import);
  KILNI_CUDA_SET(&world.table, cuMemFreeAsync, see_free);
  KILNI_CUDA_SET(&world.table, cuIpcCloseMemHandle, see_close);
  device_world_open_stream(&world, "cuda:0");
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  device_world_close(*state);
  device_world_end(*state);
  return 0;
}

static void refused(kiln_status_t status, kiln_status_code_t code) {
  assert_int_equal(kiln_status_code(status), code);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static kiln_pool_t* shared_pool(world_t* world) {
  kiln_pool_t* pool = NULL;
  kiln_pool_options_t options = kiln_pool_options_default();
  options.interprocess = KILN_SWITCH_ON;
  assert_null(kiln_pool_create(world->device, &options, &pool));
  return pool;
}

static kiln_buffer_options_t on(world_t* world, kiln_pool_t* pool) {
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.pool = pool;
  options.stream = world->stream;
  return options;
}

// ---- Giving ----

static void test_export_of_a_pool(void** state) {
  world_t* world = *state;
  kiln_pool_t* own = NULL;
  kiln_pool_t* pool = shared_pool(world);
  assert_int_equal(seen.types, 1);
  int fd = 0;
  assert_null(kiln_pool_export(pool, &fd));
  assert_int_equal(fd, seen.fd);
  assert_int_equal(close(fd), 0);  // the caller's, and open until now
  assert_null(kiln_pool_create(world->device, NULL, &own));
  assert_int_equal(seen.types, 0);
  refused(kiln_pool_export(own, &fd), KILN_STATUS_INVALID_STATE);
  assert_int_equal(fd, -1);
  kiln_pool_release(own);
  kiln_pool_release(pool);
}

static void test_export_of_buffers(void** state) {
  world_t* world = *state;
  kiln_pool_t* pool = shared_pool(world);
  kiln_buffer_options_t options = on(world, pool);
  kiln_buffer_export_t exported;
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_buffer_create(world->device, 300, &options, &buffer));
  assert_null(kiln_buffer_export(buffer, &exported));
  assert_int_equal(exported.of_pool, 1);
  assert_int_equal(exported.size, 300);
  kiln_buffer_release(buffer);
  assert_null(kiln_buffer_create(world->device, 400, NULL, &buffer));
  assert_null(kiln_buffer_export(buffer, &exported));
  assert_int_equal(exported.of_pool, 0);
  assert_int_equal(exported.size, 400);
  kiln_buffer_release(buffer);
  // The device's own pool, the host's memory, nothing at all.
  options.pool = NULL;
  assert_null(kiln_buffer_create(world->device, 64, &options, &buffer));
  refused(kiln_buffer_export(buffer, &exported), KILN_STATUS_INVALID_STATE);
  assert_int_equal(exported.size, 0);
  kiln_buffer_release(buffer);
  options.stream = NULL;
  options.kind = KILN_MEMORY_PINNED;
  assert_null(kiln_buffer_create(world->device, 64, &options, &buffer));
  refused(kiln_buffer_export(buffer, &exported), KILN_STATUS_INVALID_STATE);
  kiln_buffer_release(buffer);
  assert_null(kiln_buffer_create(world->device, 0, NULL, &buffer));
  refused(kiln_buffer_export(buffer, &exported), KILN_STATUS_INVALID_STATE);
  kiln_buffer_release(buffer);
  kiln_pool_release(pool);
}

// ---- Taking ----

static void test_same_buffer_same_object(void** state) {
  world_t* world = *state;
  kiln_buffer_export_t exported = {{1}, 256, 1, 0};
  kiln_buffer_export_t other = {{2}, 512, 1, 0};
  kiln_pool_t* pool = NULL;
  kiln_buffer_t* a = NULL;
  kiln_buffer_t* b = NULL;
  kiln_buffer_t* c = NULL;
  assert_null(kiln_pool_import(world->device, 0, &pool));
  kiln_buffer_options_t options = on(world, pool);
  assert_null(kiln_buffer_import(world->device, &exported, &options, &a));
  assert_null(kiln_buffer_import(world->device, &exported, &options, &b));
  assert_null(kiln_buffer_import(world->device, &other, &options, &c));
  assert_ptr_equal(a, b);
  assert_ptr_not_equal(a, c);
  assert_int_equal(kiln_buffer_size(a), 256);
  assert_int_equal(kiln_buffer_size(c), 512);
  assert_int_equal(seen.opened, 2);
  kiln_pool_release(pool);  // its buffers hold it
  kiln_buffer_release(a);
  assert_int_equal(seen.freed, 0);
  kiln_buffer_release(b);
  assert_int_equal(seen.freed, 1);
  // It is let go of, so it is opened anew.
  options.pool = pool;
  assert_null(kiln_buffer_import(world->device, &exported, &options, &a));
  assert_int_equal(seen.opened, 3);
  kiln_buffer_release(c);
  kiln_buffer_release(a);
  assert_int_equal(seen.freed, 3);
}

static void test_plain_memory(void** state) {
  world_t* world = *state;
  kiln_buffer_export_t exported = {{9}, 128, 0, 0};
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_buffer_import(world->device, &exported, NULL, &buffer));
  assert_int_equal(kiln_buffer_size(buffer), 128);
  kiln_buffer_export_t again;
  refused(kiln_buffer_export(buffer, &again), KILN_STATUS_INVALID_STATE);
  kiln_buffer_release(buffer);
  assert_int_equal(seen.closed, 1);
}

static void test_what_is_refused(void** state) {
  world_t* world = *state;
  kiln_buffer_export_t exported = {{1}, 256, 1, 0};
  kiln_buffer_t* buffer = NULL;
  kiln_pool_t* own = shared_pool(world);
  kiln_pool_t* theirs = NULL;
  kiln_transient_t* store = NULL;
  int fd = 0;
  assert_null(kiln_pool_import(world->device, 0, &theirs));
  kiln_buffer_options_t options = on(world, own);
  refused(kiln_buffer_import(world->device, &exported, &options, &buffer),
          KILN_STATUS_INVALID_ARGUMENT);
  refused(kiln_buffer_import(world->device, &exported, NULL, &buffer),
          KILN_STATUS_INVALID_ARGUMENT);
  options.pool = theirs;
  refused(kiln_buffer_create(world->device, 64, &options, &buffer),
          KILN_STATUS_INVALID_STATE);
  kiln_transient_options_t transient = kiln_transient_options_default();
  transient.pool = theirs;
  refused(kiln_transient_create(world->stream, &transient, &store),
          KILN_STATUS_INVALID_ARGUMENT);
  refused(kiln_pool_export(theirs, &fd), KILN_STATUS_INVALID_STATE);
  exported.of_pool = 0;
  refused(kiln_buffer_import(world->device, &exported, &options, &buffer),
          KILN_STATUS_INVALID_ARGUMENT);
  assert_null(buffer);
  kiln_pool_options_t pinned = kiln_pool_options_default();
  pinned.interprocess = KILN_SWITCH_ON;
  pinned.kind = KILN_MEMORY_PINNED;
  kiln_pool_t* none = NULL;
  refused(kiln_pool_create(world->device, &pinned, &none),
          KILN_STATUS_INVALID_ARGUMENT);
  kiln_pool_release(theirs);
  kiln_pool_release(own);
}

static void test_a_driver_without(void** state) {
  world_t* world = *state;
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* soft = NULL;
  kiln_pool_t* pool = NULL;
  kiln_buffer_t* buffer = NULL;
  kiln_buffer_export_t exported = {{1}, 256, 0, 0};
  (void)world;
  assert_null(kiln_runtime_create(NULL, &runtime));
  assert_null(kiln_runtime_open_device(runtime, "soft", &soft));
  kiln_pool_options_t options = kiln_pool_options_default();
  options.interprocess = KILN_SWITCH_ON;
  refused(kiln_pool_create(soft, &options, &pool), KILN_STATUS_UNSUPPORTED);
  refused(kiln_pool_import(soft, 0, &pool), KILN_STATUS_UNSUPPORTED);
  refused(kiln_buffer_import(soft, &exported, NULL, &buffer),
          KILN_STATUS_UNSUPPORTED);
  assert_null(kiln_buffer_create(soft, 64, NULL, &buffer));
  refused(kiln_buffer_export(buffer, &exported), KILN_STATUS_UNSUPPORTED);
  kiln_buffer_release(buffer);
  kiln_device_release(soft);
  kiln_runtime_release(runtime);
}

// ---- Several threads ----

enum { THREADS = 3, TURNS = 400 };

// one-thread
typedef struct opener_t {
  world_t* world;
  kiln_pool_t* pool;
  atomic_int* wrong;
} opener_t;

static void open_and_let_go(void* user) {
  opener_t* opener = user;
  kiln_buffer_export_t exported = {{7}, 256, 1, 0};
  kiln_buffer_options_t options = on(opener->world, opener->pool);
  for (int i = 0; i < TURNS; i++) {
    kiln_buffer_t* buffer = NULL;
    kiln_status_t status =
        kiln_buffer_import(opener->world->device, &exported, &options, &buffer);
    if (!kiln_status_is_ok(status) || kiln_buffer_address(buffer) == 0) {
      atomic_fetch_add(opener->wrong, 1);
    }
    // Never two of them open at once.
    if (atomic_load(&seen.opened) - atomic_load(&seen.freed) > 1) {
      atomic_fetch_add(opener->wrong, 1);
    }
    kiln_status_free(status);
    kiln_buffer_release(buffer);
  }
}

static void test_threads(void** state) {
  world_t* world = *state;
  kiln_pool_t* pool = NULL;
  atomic_int wrong = 0;
  kilni_base_thread_t threads[THREADS];
  assert_null(kiln_pool_import(world->device, 0, &pool));
  opener_t opener = {world, pool, &wrong};
  for (int i = 0; i < THREADS; i++) {
    assert_null(
        kilni_base_thread_start(&threads[i], "open", open_and_let_go, &opener));
  }
  for (int i = 0; i < THREADS; i++) kilni_base_thread_join(&threads[i]);
  kiln_pool_release(pool);
  assert_int_equal(wrong, 0);
  assert_int_equal(seen.opened, seen.freed);
  assert_true(seen.opened > 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_export_of_a_pool),
      TEST(test_export_of_buffers),
      TEST(test_same_buffer_same_object),
      TEST(test_plain_memory),
      TEST(test_what_is_refused),
      TEST(test_a_driver_without),
      TEST(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
