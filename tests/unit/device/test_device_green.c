// SPDX-License-Identifier: Apache-2.0
//
// device: parts of a device: what a split tells and refuses, whose streams are
// whose, what parts share, and that all ends in every order. Over the null
// provider, which has four multiprocessors and makes parts of even numbers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device_world.h"
#include "says.h"

// What the driver was asked. one-thread
static struct {
  kiln_cuda_table_t under;
  kiln_cu_green_context_t stream_of;
  unsigned int stream_flags;
  unsigned int split_flags;
  kiln_cu_context_t created_in;  // current while cuStreamCreate was called
  uint32_t of_context;           // calls of cuGreenCtxGetDevResource
  bool faults;                   // the next wait does
  bool falls_short;              // a split makes one part less than asked for
} seen;

static kiln_cu_result_t seen_stream(kiln_cu_stream_t* stream,
                                    kiln_cu_green_context_t green,
                                    unsigned int flags, int priority) {
  seen.stream_of = green;
  seen.stream_flags = flags;
  return seen.under.cuGreenCtxStreamCreate(stream, green, flags, priority);
}

static kiln_cu_result_t seen_create(kiln_cu_stream_t* stream,
                                    unsigned int flags) {
  seen.under.cuCtxGetCurrent(&seen.created_in);
  return seen.under.cuStreamCreate(stream, flags);
}

static kiln_cu_result_t seen_split(kiln_cu_dev_resource_t* groups,
                                   unsigned int* count,
                                   const kiln_cu_dev_resource_t* input,
                                   kiln_cu_dev_resource_t* rest,
                                   unsigned int flags, unsigned int least) {
  seen.split_flags = flags;
  kiln_cu_result_t result = seen.under.cuDevSmResourceSplitByCount(
      groups, count, input, rest, flags, least);
  if (seen.falls_short && groups != NULL) --*count;
  return result;
}

static kiln_cu_result_t seen_resource(kiln_cu_green_context_t green,
                                      kiln_cu_dev_resource_t* resource,
                                      kiln_cu_resource_kind_t kind) {
  seen.of_context++;
  return seen.under.cuGreenCtxGetDevResource(green, resource, kind);
}

static kiln_cu_result_t seen_wait(void) {
  return seen.faults ? KILN_CU_ERROR_ILLEGAL_ADDRESS
                     : seen.under.cuCtxSynchronize();
}

typedef device_world_t world_t;

static int setup(void** state) {
  static world_t world;
  device_world_begin(&world);
  world.log_word = "left in place";
  memset(&seen, 0, sizeof(seen));
  seen.under = world.table;
  KILNI_CUDA_SET(&world.table, cuGreenCtxStreamCreate, seen_stream);
  KILNI_CUDA_SET(&world.table, cuStreamCreate, seen_create);
  KILNI_CUDA_SET(&world.table, cuCtxSynchronize, seen_wait);
  KILNI_CUDA_SET(&world.table, cuDevSmResourceSplitByCount, seen_split);
  KILNI_CUDA_SET(&world.table, cuGreenCtxGetDevResource, seen_resource);
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  device_world_end(*state);
  return 0;
}

static void assert_refused(kiln_status_t status) {
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
}

static uint64_t parts_alive(void) {
  return kilni_table_cuda_null_live(KILNI_HANDLE_GREEN_CONTEXT);
}

// Asking makes nothing.
static void test_what_a_split_gives(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_split_options_t options = kiln_split_options_default();
  kiln_split_t split;
  assert_null(kiln_device_query_split(world->device, NULL, &split));
  assert_int_equal(split.parts, 2);
  assert_int_equal(split.multiprocessors, 2);
  assert_int_equal(split.rest, 0);
  assert_int_equal(split.all, 4);
  assert_int_equal(seen.split_flags, 0);
  options.multiprocessors = 3;
  assert_null(kiln_device_query_split(world->device, &options, &split));
  assert_int_equal(split.parts, 1);
  assert_int_equal(split.multiprocessors, 4);
  options.single = KILN_SWITCH_ON;
  assert_null(kiln_device_query_split(world->device, &options, &split));
  assert_int_equal(split.multiprocessors, 3);
  assert_int_equal(split.rest, 1);
  assert_int_equal(seen.split_flags,
                   KILN_CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING);
  options.single = KILN_SWITCH_OFF;
  options.large_clusters = KILN_SWITCH_ON;
  assert_null(kiln_device_query_split(world->device, &options, &split));
  assert_int_equal(seen.split_flags,
                   KILN_CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE);
  options.single = KILN_SWITCH_ON;
  assert_refused(kiln_device_query_split(world->device, &options, &split));
  assert_int_equal(parts_alive(), 0);
  device_world_close(world);
}

static void test_too_much(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_split_options_t options = kiln_split_options_default();
  kiln_split_t split;
  kiln_device_t* parts[3] = {world->device, world->device, world->device};
  kiln_device_t* rest = world->device;
  options.multiprocessors = 5;
  assert_says(kiln_device_query_split(world->device, &options, &split),
              KILN_STATUS_OUT_OF_RANGE, "5 multiprocessors");
  assert_int_equal(split.all, 0);
  assert_says(kiln_device_split(world->device, NULL, 3, parts, &rest),
              KILN_STATUS_OUT_OF_RANGE, "can be split into 2");
  assert_true(parts[0] == NULL && parts[2] == NULL && rest == NULL);
  assert_refused(kiln_device_split(world->device, NULL, 0, parts, &rest));
  assert_refused(kiln_device_split(world->device, NULL, 257, parts, &rest));
  assert_int_equal(parts_alive(), 0);
  device_world_close(world);
}

// A driver that makes fewer than it told: nothing is made of those.
static void test_too_few(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_device_t* parts[2] = {NULL, NULL};
  kiln_device_t* rest = NULL;
  kiln_split_t split;
  seen.falls_short = true;
  const kiln_status_code_t failed = KILN_STATUS_DRIVER_ERROR;
  assert_says(kiln_device_query_split(world->device, NULL, &split), failed,
              "into 1 parts, not into the 2");
  assert_int_equal(split.parts, 0);
  assert_says(kiln_device_split(world->device, NULL, 2, parts, &rest), failed,
              "into 1 parts, not into the 2");
  assert_null(parts[0]);
  assert_null(rest);
  assert_int_equal(parts_alive(), 0);
  device_world_close(world);
}

static void test_a_part_is_a_device(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_split_options_t options = kiln_split_options_default();
  kiln_device_t* part = NULL;
  kiln_device_t* rest = NULL;
  options.multiprocessors = 3;
  options.single = KILN_SWITCH_ON;
  assert_null(kiln_device_parent(world->device));
  assert_null(kiln_device_split(world->device, &options, 1, &part, &rest));
  assert_string_equal(kiln_device_name(part), "cuda:0/0");
  assert_string_equal(kiln_device_name(rest), "cuda:0/rest");
  assert_int_equal(kiln_device_info(part)->multiprocessors, 3);
  assert_int_equal(kiln_device_info(rest)->multiprocessors, 1);
  assert_int_equal(kiln_device_info(world->device)->multiprocessors, 4);
  assert_string_equal(kiln_device_info(part)->model,
                      kiln_device_info(world->device)->model);
  assert_ptr_equal(kiln_device_parent(part), world->device);
  assert_ptr_not_equal(kiln_device_context(part), kiln_device_context(rest));
  assert_ptr_not_equal(kiln_device_context(part),
                       kiln_device_context(world->device));
  // Nothing is left of a split into all there is.
  kiln_device_release(part);
  kiln_device_release(rest);
  kiln_device_t* parts[2];
  assert_null(kiln_device_split(world->device, NULL, 2, parts, &rest));
  assert_null(rest);
  assert_string_equal(kiln_device_name(parts[1]), "cuda:0/1");
  // A part of a part is cut out of what that has.
  kiln_device_t* less = NULL;
  assert_null(kiln_device_split(parts[1], &options, 1, &less, NULL));
  assert_int_equal(seen.of_context, 1);
  assert_string_equal(kiln_device_name(less), "cuda:0/1/0");
  assert_int_equal(parts_alive(), 3);
  // Each keeps what it was made of.
  kiln_device_release(parts[0]);
  kiln_device_release(parts[1]);
  assert_int_equal(parts_alive(), 2);
  device_world_close(world);
  assert_int_equal(parts_alive(), 2);
  kiln_device_release(less);
  assert_int_equal(parts_alive(), 0);
}

static void test_streams(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_device_t* parts[2];
  kiln_stream_t* stream = NULL;
  kiln_stream_t* other = NULL;
  assert_null(kiln_device_split(world->device, NULL, 2, parts, NULL));
  assert_null(kiln_stream_create(parts[0], NULL, &stream));
  // The context is the green handle's neighbour: see the null provider.
  assert_ptr_equal((char*)seen.stream_of + 1,
                   (char*)kiln_device_context(parts[0]));
  assert_int_equal(seen.stream_flags, KILN_CU_STREAM_NON_BLOCKING);
  assert_null(seen.created_in);
  assert_null(kiln_stream_create(parts[1], NULL, &other));
  assert_ptr_equal((char*)seen.stream_of + 1,
                   (char*)kiln_device_context(parts[1]));
  // One waits for the other through an event of that one's part.
  assert_null(kiln_stream_wait_stream(stream, other));
  kiln_stream_options_t options = kiln_stream_options_default();
  options.with_default_stream = KILN_SWITCH_ON;
  kiln_stream_t* refused = stream;
  assert_says(kiln_stream_create(parts[0], &options, &refused),
              KILN_STATUS_INVALID_ARGUMENT, "part of a device");
  assert_null(refused);
  kiln_device_release(parts[0]);
  kiln_device_release(parts[1]);
  device_world_close(world);
  assert_int_equal(parts_alive(), 2);
  kiln_stream_release(other);
  kiln_stream_release(stream);
}

// A driver of 12.4 makes a stream in the context that is current.
static void test_streams_of_an_older_driver(void** state) {
  world_t* world = *state;
  kilni_table_cuda_mark(&world->table, KILNI_CUDA_ROW_cuGreenCtxStreamCreate,
                        false);
  device_world_open(world, "cuda:0");
  kiln_device_t* part = NULL;
  kiln_stream_t* stream = NULL;
  kiln_cu_context_t current = NULL;
  assert_null(kiln_device_split(world->device, NULL, 1, &part, NULL));
  assert_null(kiln_stream_create(part, NULL, &stream));
  assert_ptr_equal(seen.created_in, kiln_device_context(part));
  world->table.cuCtxGetCurrent(&current);
  assert_null(current);
  kiln_stream_release(stream);
  kiln_device_release(part);
  device_world_close(world);
}

// Memory and streams of different parts go together; events do not.
static void test_what_parts_share(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_device_t* parts[2];
  kiln_stream_t* stream = NULL;
  kiln_buffer_t* whole = NULL;
  kiln_buffer_t* own = NULL;
  kiln_event_t* event = NULL;
  assert_null(kiln_device_split(world->device, NULL, 2, parts, NULL));
  assert_null(kiln_stream_create(parts[0], NULL, &stream));
  assert_null(kiln_buffer_create(world->device, 64, NULL, &whole));
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.stream = stream;
  assert_null(kiln_buffer_create(parts[1], 64, &options, &own));
  assert_null(kiln_buffer_fill_async(whole, stream, 0, 64, 0, 1));
  assert_null(kiln_buffer_copy_async(own, stream, 0, whole, 0, 64));
  assert_null(kiln_event_create(parts[1], NULL, &event));
  assert_says(kiln_event_record(event, stream), KILN_STATUS_INVALID_ARGUMENT,
              "cuda:0/1");
  kiln_event_release(event);
  assert_null(kiln_event_create(parts[0], NULL, &event));
  assert_null(kiln_event_record(event, stream));
  kiln_event_release(event);
  kiln_device_release(parts[0]);
  kiln_device_release(parts[1]);
  device_world_close(world);
  kiln_buffer_release(whole);
  kiln_stream_release(stream);
  kiln_buffer_release(own);
}

// What would leave the caller a dangling current context leaks it instead.
static void test_released_while_current(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_device_t* part = NULL;
  kiln_cu_context_t current = NULL;
  assert_null(kiln_device_split(world->device, NULL, 1, &part, NULL));
  kiln_cu_context_t context = kiln_device_context(part);
  world->table.cuCtxSetCurrent(context);
  kiln_device_release(part);
  assert_int_equal(world->log_lines, 1);
  assert_int_equal(parts_alive(), 1);
  world->table.cuCtxGetCurrent(&current);
  assert_ptr_equal(current, context);
  world->table.cuCtxSetCurrent(NULL);
  world->table.cuGreenCtxDestroy(
      (kiln_cu_green_context_t)(void*)((char*)context - 1));
  device_world_close(world);
}

// A fault in one part ends the context that all of them are of.
static void test_lost_together(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_device_t* parts[2];
  kiln_stream_t* stream = NULL;
  assert_null(kiln_device_split(world->device, NULL, 2, parts, NULL));
  seen.faults = true;
  kiln_status_t status = kiln_device_synchronize(parts[0]);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_DEVICE_LOST);
  kiln_status_free(status);
  kiln_device_t* const devices[] = {world->device, parts[0], parts[1]};
  for (int i = 0; i < 3; i++) {
    assert_says(kiln_stream_create(devices[i], NULL, &stream),
                KILN_STATUS_DEVICE_LOST, "is lost");
  }
  kiln_device_release(parts[0]);
  kiln_device_release(parts[1]);
  device_world_close(world);
  // What a kernel may still use is left alone.
  assert_int_equal(parts_alive(), 2);
  kilni_table_cuda_null_reset();
}

static void test_the_software_device_has_none(void** state) {
  world_t* world = *state;
  device_world_open(world, "soft");
  kiln_split_t split;
  assert_says(kiln_device_query_split(world->device, NULL, &split),
              KILN_STATUS_UNSUPPORTED, "green contexts");
  kiln_device_t* part = world->device;
  assert_says(kiln_device_split(world->device, NULL, 1, &part, NULL),
              KILN_STATUS_UNSUPPORTED, "green contexts");
  assert_null(part);
  device_world_close(world);
}

// ---- Faults ----

static kiln_status_t sweep_parts(kiln_device_t* device) {
  kiln_split_options_t options = kiln_split_options_default();
  kiln_split_t split;
  kiln_device_t* part = device;
  kiln_device_t* rest = device;
  kiln_stream_t* stream = NULL;
  options.multiprocessors = 3;
  options.single = KILN_SWITCH_ON;
  kiln_status_t status = kiln_device_query_split(device, &options, &split);
  assert_int_equal(split.parts, status == NULL ? 1 : 0);
  if (status != NULL) return status;
  status = kiln_device_split(device, &options, 1, &part, &rest);
  assert_true((status == NULL) == (part != NULL));
  assert_true((status == NULL) == (rest != NULL));
  if (status == NULL) status = kiln_stream_create(part, NULL, &stream);
  if (status == NULL) status = kiln_device_synchronize(part);
  // Where the caller's context was not put back, the caller does so: a part
  // that is current when it is released would stay.
  kiln_cuda_table_t raw;
  kilni_table_cuda_table_null(&raw);
  raw.cuCtxSetCurrent(NULL);
  kiln_device_release(part);
  kiln_stream_release(stream);
  kiln_device_release(rest);
  return status;
}

static void test_every_call_fails(void** state) {
  (void)state;
  device_sweep_calls(sweep_parts, KILN_CU_ERROR_INVALID_VALUE, 40);
}

static void test_every_allocation_fails(void** state) {
  (void)state;
  device_sweep_allocations(sweep_parts, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_what_a_split_gives),
      TEST(test_too_much),
      TEST(test_too_few),
      TEST(test_a_part_is_a_device),
      TEST(test_streams),
      TEST(test_streams_of_an_older_driver),
      TEST(test_what_parts_share),
      TEST(test_released_while_current),
      TEST(test_lost_together),
      TEST(test_the_software_device_has_none),
      cmocka_unit_test(test_every_call_fails),
      cmocka_unit_test(test_every_allocation_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
