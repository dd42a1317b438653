// SPDX-License-Identifier: Apache-2.0
//
// device: events with a driver's books kept: what they are made with, foreign
// ones, those of other processes, the times between two.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device_inside.h"
#include "table/cuda_table.h"
#include "device_world.h"
#include "driver_books.h"
#include "says.h"

// A null driver with two devices.
typedef device_world_t world_t;

static unsigned int made_with;

static kiln_cu_result_t (*create_under)(kiln_cu_event_t* event,
                                        unsigned int flags);

static kiln_cu_result_t note_flags(kiln_cu_event_t* event, unsigned int flags) {
  made_with = flags;
  return create_under(event, flags);
}

static int setup(void** state) {
  static world_t world;
  device_world_begin(&world);
  driver_books_open(&world.table);
  create_under = world.table.cuEventCreate;
  world.table.cuEventCreate = note_flags;
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  device_world_close(*state);
  assert_null(driver_books_current());
  driver_books_close();
  device_world_end(*state);
  return 0;
}

static void test_what_it_is_made_with(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  for (unsigned bits = 0; bits < 8; bits++) {
    kiln_event_options_t options = kiln_event_options_default();
    if (bits & 1) options.timing = KILN_SWITCH_ON;
    if (bits & 2) options.blocking = KILN_SWITCH_ON;
    if (bits & 4) options.interprocess = KILN_SWITCH_ON;
    kiln_event_t* event = NULL;
    kiln_status_t status = kiln_event_create(world->device, &options, &event);
    if ((bits & 5) == 5) {
      assert_says(status, KILN_STATUS_INVALID_ARGUMENT, "cannot record times");
      assert_null(event);
      continue;
    }
    assert_null(status);
    const uint32_t off_on[] = {KILN_SWITCH_OFF, KILN_SWITCH_ON};
    assert_int_equal(kiln_event_timing(event), off_on[bits & 1]);
    assert_int_equal(kiln_event_blocking(event), off_on[(bits >> 1) & 1]);
    assert_int_equal(kiln_event_interprocess(event), off_on[bits >> 2]);
    assert_int_equal(made_with & KILN_CU_EVENT_DISABLE_TIMING,
                     bits & 1 ? 0 : KILN_CU_EVENT_DISABLE_TIMING);
    assert_int_equal(made_with & KILN_CU_EVENT_BLOCKING_SYNC,
                     bits & 2 ? KILN_CU_EVENT_BLOCKING_SYNC : 0);
    assert_int_equal(made_with & KILN_CU_EVENT_INTERPROCESS,
                     bits & 4 ? KILN_CU_EVENT_INTERPROCESS : 0);
    kiln_event_release(event);
  }
}

static void test_between_processes(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_event_options_t options = kiln_event_options_default();
  options.interprocess = KILN_SWITCH_ON;
  kiln_event_t* event = NULL;
  kiln_event_t* opened = NULL;
  kiln_event_t* plain = NULL;
  kiln_event_export_t exported;
  memset(&exported, 1, sizeof(exported));
  assert_null(kiln_event_create(world->device, &options, &event));
  assert_null(kiln_event_create(world->device, NULL, &plain));
  assert_says(kiln_event_export(plain, &exported), KILN_STATUS_INVALID_STATE,
              "not made for other processes");
  assert_int_equal(exported.bytes[0], 0);
  assert_null(kiln_event_export(event, &exported));
  assert_null(kiln_event_import(world->device, &exported, &opened));
  assert_int_equal(kiln_event_timing(opened), KILN_SWITCH_OFF);
  assert_int_equal(kiln_event_interprocess(opened), KILN_SWITCH_ON);
  assert_int_equal(kiln_event_blocking(opened), KILN_SWITCH_DEFAULT);
  assert_null(kiln_event_record(opened, world->stream));
  assert_null(kiln_stream_wait_event(world->stream, opened));
  uint64_t elapsed = 0;
  assert_says(kiln_event_elapsed(opened, opened, &elapsed),
              KILN_STATUS_INVALID_STATE, "without timing");
  kiln_event_release(opened);
  kiln_event_release(event);
  kiln_event_release(plain);
  assert_int_equal(driver_books_counts().ended[KILNI_HANDLE_EVENT], 3);
}

// A driver that shares no events, as the software device.
static void test_no_events_between_processes(void** state) {
  world_t* world = *state;
  kilni_table_cuda_mark(&world->table, KILNI_CUDA_ROW_cuIpcGetEventHandle,
                        false);
  kilni_table_cuda_mark(&world->table, KILNI_CUDA_ROW_cuIpcOpenEventHandle,
                        false);
  device_world_open_stream(world, "cuda:0");
  kiln_event_options_t options = kiln_event_options_default();
  options.interprocess = KILN_SWITCH_ON;
  kiln_event_t* event = NULL;
  kiln_event_export_t exported = {{0}};
  assert_says(kiln_event_create(world->device, &options, &event),
              KILN_STATUS_UNSUPPORTED, "events shared between processes");
  assert_null(event);
  assert_says(kiln_event_import(world->device, &exported, &event),
              KILN_STATUS_UNSUPPORTED, "events shared between processes");
  assert_null(event);
}

static void count_release(void* user) {
  ++*(int*)user;
}

static void test_foreign_events(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_cu_event_t raw = NULL;
  world->table.cuCtxSetCurrent(kiln_device_context(world->device));
  assert_int_equal(world->table.cuEventCreate(&raw, 0), 0);
  world->table.cuCtxSetCurrent(NULL);
  int released = 0;
  kiln_owner_t owner = {count_release, &released};
  kiln_event_t* borrowed = NULL;
  kiln_event_t* again = NULL;
  kiln_event_t* owned = NULL;
  assert_null(kiln_event_adopt(world->device, raw, NULL, &borrowed));
  assert_null(kiln_event_adopt(world->device, raw, NULL, &again));
  assert_ptr_equal(again, borrowed);
  kiln_event_release(again);
  assert_null(kiln_event_adopt(world->device, raw, &owner, &owned));
  assert_ptr_not_equal(owned, borrowed);
  assert_ptr_equal(kiln_event_handle(owned), raw);
  assert_int_equal(kiln_event_timing(owned), KILN_SWITCH_DEFAULT);
  assert_int_equal(kiln_event_blocking(owned), KILN_SWITCH_DEFAULT);
  assert_int_equal(kiln_event_interprocess(owned), KILN_SWITCH_DEFAULT);
  // Only the driver knows whether it can be timed.
  uint64_t elapsed = 1;
  assert_null(kiln_event_record(owned, world->stream));
  assert_null(kiln_event_elapsed(owned, borrowed, &elapsed));
  kiln_event_release(borrowed);
  assert_int_equal(released, 0);
  kiln_event_release(owned);
  assert_int_equal(released, 1);
  assert_int_equal(driver_books_counts().ended[KILNI_HANDLE_EVENT], 0);
  assert_int_equal(world->table.cuEventDestroy(raw), 0);
  // Ours is itself, and needs no owner.
  assert_null(kiln_event_create(world->device, NULL, &borrowed));
  assert_null(kiln_event_adopt(world->device, kiln_event_handle(borrowed),
                               &owner, &again));
  assert_ptr_equal(again, borrowed);
  assert_int_equal(released, 2);
  kiln_event_release(again);
  kiln_event_release(borrowed);
  kiln_status_t status =
      kiln_event_adopt(world->device, NULL, &owner, &borrowed);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  assert_null(borrowed);
  assert_int_equal(released, 2);
}

static kiln_cu_result_t not_ready(float* milliseconds, kiln_cu_event_t start,
                                  kiln_cu_event_t end) {
  (void)milliseconds;
  (void)start;
  (void)end;
  return KILN_CU_ERROR_NOT_READY;
}

static void test_three_ways_to_have_no_time(void** state) {
  world_t* world = *state;
  world->table.cuEventElapsedTime = not_ready;
  device_world_open_stream(world, "cuda:0");
  kiln_event_options_t timed = kiln_event_options_default();
  timed.timing = KILN_SWITCH_ON;
  kiln_event_t* start = NULL;
  kiln_event_t* plain = NULL;
  uint64_t elapsed = 1;
  assert_null(kiln_event_create(world->device, &timed, &start));
  assert_null(kiln_event_create(world->device, NULL, &plain));
  assert_says(kiln_event_elapsed(start, plain, &elapsed),
              KILN_STATUS_INVALID_STATE, "never recorded");
  assert_null(kiln_event_record(start, world->stream));
  assert_says(kiln_event_elapsed(start, plain, &elapsed),
              KILN_STATUS_INVALID_STATE, "without timing");
  kiln_status_t status = kiln_event_elapsed(start, start, &elapsed);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_READY);
  assert_int_equal(elapsed, 0);
  kiln_status_free(status);
  kiln_event_release(start);
  kiln_event_release(plain);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_what_it_is_made_with),        TEST(test_between_processes),
      TEST(test_no_events_between_processes), TEST(test_foreign_events),
      TEST(test_three_ways_to_have_no_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
