// SPDX-License-Identifier: Apache-2.0
//
// device: batches of copies, hints about managed memory: what the driver is
// handed, what is refused, and what happens where the driver lacks them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device_world.h"
#include "says.h"

enum { BYTES = 4096, MANY = 100 };

// What the calls that are watched here were given.
static struct {
  kiln_cuda_table_t under;
  kiln_cu_capture_status_t captured;
  uint32_t batches;
  uint32_t copies;  // one by one
  uint32_t waits;
  size_t count;
  kiln_cu_deviceptr_t to[MANY];
  kiln_cu_deviceptr_t from[MANY];
  size_t sizes[MANY];
  kiln_cu_copy_attributes_t attributes;
  kiln_cu_mem_location_t location;
  kiln_cu_mem_advice_t advice;
} seen;

static kiln_cu_result_t seen_batch(kiln_cu_deviceptr_t* to,
                                   kiln_cu_deviceptr_t* from, size_t* sizes,
                                   size_t count,
                                   kiln_cu_copy_attributes_t* attributes,
                                   size_t* first, size_t attribute_count,
                                   kiln_cu_stream_t stream) {
  kiln_cu_context_t current = NULL;
  (void)stream;
  // As a driver of CUDA 13.0 has it, whatever the stream.
  assert_int_equal(seen.under.cuCtxGetCurrent(&current), KILN_CU_SUCCESS);
  if (current == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  assert_true(count <= MANY);
  assert_int_equal(attribute_count, 1);
  assert_int_equal(first[0], 0);
  seen.batches++;
  seen.count = count;
  memcpy(seen.to, to, count * sizeof(*to));
  memcpy(seen.from, from, count * sizeof(*from));
  memcpy(seen.sizes, sizes, count * sizeof(*sizes));
  seen.attributes = attributes[0];
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t seen_copy(kiln_cu_deviceptr_t to,
                                  kiln_cu_deviceptr_t from, size_t bytes,
                                  kiln_cu_stream_t stream) {
  seen.copies++;
  return seen.under.cuMemcpyDtoDAsync(to, from, bytes, stream);
}

static kiln_cu_result_t seen_wait(kiln_cu_stream_t stream) {
  seen.waits++;
  return seen.under.cuStreamSynchronize(stream);
}

static kiln_cu_result_t seen_is_capturing(kiln_cu_stream_t stream,
                                          kiln_cu_capture_status_t* status) {
  (void)stream;
  *status = seen.captured;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t seen_prefetch(kiln_cu_deviceptr_t address, size_t bytes,
                                      kiln_cu_mem_location_t location,
                                      unsigned int flags,
                                      kiln_cu_stream_t stream) {
  (void)address;
  (void)bytes;
  (void)stream;
  assert_int_equal(flags, 0);
  seen.location = location;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t seen_advise(kiln_cu_deviceptr_t address, size_t bytes,
                                    kiln_cu_mem_advice_t advice,
                                    kiln_cu_mem_location_t location) {
  (void)address;
  (void)bytes;
  seen.advice = advice;
  seen.location = location;
  return KILN_CU_SUCCESS;
}

// A device over a watched null provider, with two buffers. one-thread
typedef struct batch_world_t {
  device_world_t base;
  kiln_buffer_t* a;
  kiln_buffer_t* b;
} batch_world_t;

static int set_up(void** state) {
  static batch_world_t world;
  memset(&seen, 0, sizeof(seen));
  memset(&world, 0, sizeof(world));
  device_world_begin(&world.base);
  kiln_cuda_table_t* t = &world.base.table;
  seen.under = *t;
  KILNI_CUDA_SET(t, cuMemcpyBatchAsync, seen_batch);
  KILNI_CUDA_SET(t, cuMemcpyDtoDAsync, seen_copy);
  KILNI_CUDA_SET(t, cuStreamSynchronize, seen_wait);
  KILNI_CUDA_SET(t, cuStreamIsCapturing, seen_is_capturing);
  KILNI_CUDA_SET(t, cuMemPrefetchAsync, seen_prefetch);
  KILNI_CUDA_SET(t, cuMemAdvise, seen_advise);
  *state = &world;
  return 0;
}

static int tear_down(void** state) {
  batch_world_t* world = *state;
  kiln_buffer_release(world->a);
  kiln_buffer_release(world->b);
  device_world_close(&world->base);
  device_world_end(&world->base);
  return 0;
}

static void open_world(batch_world_t* world, const char* name, uint32_t kind) {
  device_world_open_stream(&world->base, name);
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.kind = kind;
  assert_null(
      kiln_buffer_create(world->base.device, BYTES, &options, &world->a));
  assert_null(
      kiln_buffer_create(world->base.device, BYTES, &options, &world->b));
}

// ---- Batches ----

static void test_what_the_driver_is_handed(void** state) {
  batch_world_t* world = *state;
  open_world(world, "cuda:0", KILN_MEMORY_DEVICE);
  const kiln_copy_t copies[] = {{world->b, 8, world->a, 16, 100},
                                {world->b, 0, world->a, 0, 0},
                                {world->a, 512, world->b, 256, 64}};
  assert_null(kiln_copy_batch(world->base.stream, copies, 3, NULL));
  assert_int_equal(seen.batches, 1);
  assert_int_equal(seen.copies, 0);
  assert_int_equal(seen.count, 2);
  assert_int_equal(seen.to[0], kiln_buffer_address(world->b) + 8);
  assert_int_equal(seen.from[0], kiln_buffer_address(world->a) + 16);
  assert_int_equal(seen.sizes[0], 100);
  assert_int_equal(seen.to[1], kiln_buffer_address(world->a) + 512);
  assert_int_equal(seen.sizes[1], 64);
  assert_int_equal(seen.attributes.order, KILN_CU_COPY_ORDER_STREAM);
  assert_int_equal(seen.attributes.flags, 0);
  // None, or none with bytes: no call.
  assert_null(kiln_copy_batch(world->base.stream, NULL, 0, NULL));
  assert_null(kiln_copy_batch(world->base.stream, &copies[1], 1, NULL));
  assert_int_equal(seen.batches, 1);
  kiln_copy_options_t options = kiln_copy_options_default();
  options.source_order = KILN_COPY_ANY_TIME;
  assert_null(kiln_copy_batch(world->base.stream, copies, 1, &options));
  assert_int_equal(seen.attributes.order, KILN_CU_COPY_ORDER_ANY);
  options.source_order = KILN_COPY_DURING_CALL;
  assert_null(kiln_copy_batch(world->base.stream, copies, 1, &options));
  assert_int_equal(seen.attributes.order, KILN_CU_COPY_ORDER_DURING_CALL);
  // More than are kept on the stack.
  kiln_copy_t many[MANY];
  for (int i = 0; i < MANY; i++) {
    many[i] = (kiln_copy_t){world->b, (uint64_t)i * 4, world->a, 0, 4};
  }
  assert_null(kiln_copy_batch(world->base.stream, many, MANY, NULL));
  assert_int_equal(seen.count, MANY);
  assert_int_equal(seen.to[99], kiln_buffer_address(world->b) + 396);
}

static void test_a_driver_without_batches(void** state) {
  batch_world_t* world = *state;
  kilni_table_cuda_mark(&world->base.table, KILNI_CUDA_ROW_cuMemcpyBatchAsync,
                        false);
  open_world(world, "cuda:0", KILN_MEMORY_DEVICE);
  const kiln_copy_t copies[] = {{world->b, 8, world->a, 16, 100},
                                {world->b, 0, world->a, 0, 0},
                                {world->a, 512, world->b, 256, 64}};
  assert_null(kiln_copy_batch(world->base.stream, copies, 3, NULL));
  assert_int_equal(seen.copies, 2);
  assert_int_equal(seen.batches, 0);
  assert_int_equal(seen.waits, 0);
  kiln_copy_options_t options = kiln_copy_options_default();
  options.source_order = KILN_COPY_DURING_CALL;
  assert_null(kiln_copy_batch(world->base.stream, copies, 1, &options));
  assert_int_equal(seen.waits, 1);
}

// A part's context may be current for one thread alone, and copies on its
// streams may come from any: none that the driver wants a current one for.
static void test_on_a_part(void** state) {
  batch_world_t* world = *state;
  open_world(world, "cuda:0", KILN_MEMORY_DEVICE);
  kiln_device_t* part = NULL;
  kiln_stream_t* stream = NULL;
  assert_null(kiln_device_split(world->base.device, NULL, 1, &part, NULL));
  assert_null(kiln_stream_create(part, NULL, &stream));
  const kiln_copy_t copies[] = {{world->b, 8, world->a, 16, 100},
                                {world->a, 512, world->b, 256, 64}};
  assert_null(kiln_copy_batch(stream, copies, 2, NULL));
  assert_int_equal(seen.batches, 0);
  assert_int_equal(seen.copies, 2);
  kiln_stream_release(stream);
  kiln_device_release(part);
}

// The same with and without the driver's batches.
static void refusals(batch_world_t* world) {
  const kiln_status_code_t bad = KILN_STATUS_INVALID_ARGUMENT;
  const kiln_copy_t copies[] = {{world->b, 0, world->a, 0, 64},
                                {world->b, 0, world->a, BYTES, 64}};
  const kiln_copy_t itself = {world->a, 0, world->a, 32, 64};
  kiln_stream_t* stream = world->base.stream;
  kiln_stream_t* legacy = NULL;
  assert_null(
      kiln_stream_default(world->base.device, KILN_STREAM_LEGACY, &legacy));
  assert_says(kiln_copy_batch(legacy, copies, 1, NULL), bad,
              "the legacy default stream");
  kiln_stream_release(legacy);
  assert_says(kiln_copy_batch(stream, copies, 2, NULL),
              KILN_STATUS_OUT_OF_RANGE, "copy 1 of a batch");
  assert_says(kiln_copy_batch(stream, &itself, 1, NULL), bad,
              "overlaps itself");
  seen.captured = KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE;
  assert_says(kiln_copy_batch(stream, copies, 1, NULL),
              KILN_STATUS_INVALID_STATE, "being captured");
  seen.captured = KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  assert_int_equal(seen.batches + seen.copies, 0);
}

static void test_what_is_refused(void** state) {
  open_world(*state, "cuda:0", KILN_MEMORY_DEVICE);
  refusals(*state);
}

static void test_what_is_refused_without_batches(void** state) {
  batch_world_t* world = *state;
  kilni_table_cuda_mark(&world->base.table, KILNI_CUDA_ROW_cuMemcpyBatchAsync,
                        false);
  open_world(world, "cuda:0", KILN_MEMORY_DEVICE);
  refusals(world);
}

static void test_on_the_software_device(void** state) {
  batch_world_t* world = *state;
  open_world(world, "soft", KILN_MEMORY_DEVICE);
  uint32_t words[4] = {0, 0, 0, 0};
  assert_null(kiln_buffer_fill(world->a, 0, BYTES, 7, 4));
  assert_null(kiln_buffer_fill(world->b, 0, BYTES, 8, 4));
  const kiln_copy_t copies[] = {{world->b, 0, world->a, 0, 4},
                                {world->b, 8, world->a, 4, 4}};
  for (uint32_t order = 0; order <= KILN_COPY_ANY_TIME; order++) {
    kiln_copy_options_t options = kiln_copy_options_default();
    options.source_order = order;
    assert_null(kiln_copy_batch(world->base.stream, copies, 2, &options));
  }
  assert_null(kiln_stream_synchronize(world->base.stream));
  assert_null(kiln_buffer_read(world->b, 0, sizeof(words), words));
  const uint32_t wanted[4] = {7, 8, 7, 8};
  assert_memory_equal(words, wanted, sizeof(words));
}

// ---- Managed memory ----

static void test_hints(void** state) {
  batch_world_t* world = *state;
  open_world(world, "cuda:0", KILN_MEMORY_MANAGED);
  kiln_stream_t* stream = world->base.stream;
  kiln_device_t* device = world->base.device;
  assert_null(kiln_managed_prefetch(world->a, stream, 0, 64, device));
  assert_int_equal(seen.location.type, KILN_CU_MEM_LOCATION_TYPE_DEVICE);
  assert_int_equal(seen.location.id, 0);
  assert_null(kiln_managed_prefetch(world->a, stream, 0, 64, NULL));
  assert_int_equal(seen.location.type, KILN_CU_MEM_LOCATION_TYPE_HOST);
  static const kiln_cu_mem_advice_t said[][2] = {{2, 1}, {4, 3}, {6, 5}};
  for (uint32_t advice = 1; advice <= 3; advice++) {
    for (int on = 0; on < 2; on++) {
      assert_null(
          kiln_managed_advise(world->a, 0, 64, advice, on != 0, device));
      assert_int_equal(seen.advice, said[advice - 1][on]);
    }
  }
  assert_says(kiln_managed_prefetch(world->a, stream, BYTES, 64, NULL),
              KILN_STATUS_OUT_OF_RANGE, "a hint");
}

static void test_hints_about_other_memory(void** state) {
  batch_world_t* world = *state;
  open_world(world, "cuda:0", KILN_MEMORY_DEVICE);
  kiln_managed_info_t info;
  assert_says(kiln_managed_prefetch(world->a, world->base.stream, 0, 64, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "not managed");
  assert_says(kiln_managed_query(world->a, 0, 64, &info),
              KILN_STATUS_INVALID_ARGUMENT, "not managed");
}

static void test_a_driver_without_hints(void** state) {
  batch_world_t* world = *state;
  kiln_cuda_table_t* t = &world->base.table;
  kilni_table_cuda_mark(t, KILNI_CUDA_ROW_cuMemPrefetchAsync, false);
  kilni_table_cuda_mark(t, KILNI_CUDA_ROW_cuMemAdvise, false);
  kilni_table_cuda_mark(t, KILNI_CUDA_ROW_cuMemDiscardBatchAsync, false);
  kilni_table_cuda_mark(t, KILNI_CUDA_ROW_cuMemDiscardAndPrefetchBatchAsync,
                        false);
  open_world(world, "cuda:0", KILN_MEMORY_MANAGED);
  kiln_stream_t* stream = world->base.stream;
  const kiln_status_code_t lacks = KILN_STATUS_UNSUPPORTED;
  assert_says(kiln_managed_prefetch(world->a, stream, 0, 64, NULL), lacks,
              "hints about managed memory");
  assert_says(
      kiln_managed_advise(world->a, 0, 64, KILN_ADVICE_PREFERRED, true, NULL),
      lacks, "hints about managed memory");
  assert_says(kiln_managed_discard(world->a, stream, 0, 64), lacks,
              "the discarding of managed memory");
  assert_says(kiln_managed_discard_prefetch(world->a, stream, 0, 64, NULL),
              lacks, "the discarding of managed memory");
}

static void test_what_was_said(void** state) {
  batch_world_t* world = *state;
  open_world(world, "soft", KILN_MEMORY_MANAGED);
  kiln_stream_t* stream = world->base.stream;
  kiln_device_t* device = world->base.device;
  kiln_managed_info_t info;
  assert_null(kiln_managed_query(world->a, 0, BYTES, &info));
  assert_int_equal(info.read_mostly, 0);
  assert_int_equal(info.preferred, KILN_MANAGED_NOWHERE);
  assert_int_equal(info.prefetched, KILN_MANAGED_NOWHERE);
  assert_null(kiln_managed_advise(world->a, 0, BYTES, KILN_ADVICE_READ_MOSTLY,
                                  true, NULL));
  assert_null(kiln_managed_advise(world->a, 0, BYTES, KILN_ADVICE_PREFERRED,
                                  true, device));
  assert_null(kiln_managed_prefetch(world->a, stream, 0, BYTES, NULL));
  assert_null(kiln_managed_query(world->a, 0, BYTES, &info));
  assert_int_equal(info.read_mostly, 1);
  assert_int_equal(info.preferred, 0);
  assert_int_equal(info.prefetched, KILN_MANAGED_HOST);
  // A prefetch changes no byte; discarded bytes are others afterwards.
  uint8_t* bytes = kiln_buffer_host(world->a);
  memset(bytes, 5, BYTES);
  assert_null(kiln_managed_prefetch(world->a, stream, 0, BYTES, device));
  assert_null(kiln_stream_synchronize(stream));
  assert_int_equal(bytes[64], 5);
  assert_null(kiln_managed_discard(world->a, stream, 64, 64));
  assert_null(kiln_managed_discard_prefetch(world->a, stream, 128, 64, NULL));
  assert_null(kiln_stream_synchronize(stream));
  assert_int_equal(bytes[63], 5);
  assert_int_not_equal(bytes[64], 5);
  assert_int_not_equal(bytes[191], 5);
  assert_int_equal(bytes[192], 5);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(test_what_the_driver_is_handed),
      CASE(test_a_driver_without_batches),
      CASE(test_on_a_part),
      CASE(test_what_is_refused),
      CASE(test_what_is_refused_without_batches),
      CASE(test_on_the_software_device),
      CASE(test_hints),
      CASE(test_hints_about_other_memory),
      CASE(test_a_driver_without_hints),
      CASE(test_what_was_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
