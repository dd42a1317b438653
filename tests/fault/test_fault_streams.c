// SPDX-License-Identifier: Apache-2.0
//
// fault: streams of every kind, events and the order among them, with each
// allocation and each driver call failing in turn.
//
// A driver's books are kept below the failing calls: afterwards every handle
// was ended once, foreign ones by nobody, every owner was told once or never,
// and the thread's context and capture mode are what they were, unless the
// call that failed was the one that puts them back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver_books.h"
#include "fault_run.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

// What a run goes over, and what is to fail in it. one-thread
typedef struct path_t {
  bool soft;
  kiln_allocator_t allocator;
  kiln_allocator_t own;
  kiln_cuda_table_t null_table;
  kiln_cuda_table_t table;   // with faults
  kiln_cuda_table_t beside;  // a host program's own way to the driver
  bool count_calls;
  bool wrapped;
  uint64_t nth;
  bool from_on;
  kiln_cu_result_t result;
  uint64_t met;
  uint64_t runs;
  // A host program's.
  kiln_cu_stream_t raw_stream;
  kiln_cu_event_t raw_event;
  int owned;  // owners that adopting has taken
  int told;   // and that were released
  bool work_passed;
  bool hit_in_work;
} path_t;

static kiln_cu_context_t callers(void) {
  return (kiln_cu_context_t)(uintptr_t)0xf04e1600;
}

static bool is_hit(const path_t* path) {
  return path->wrapped && kilni_table_cuda_fault_hit(&path->table) != NULL;
}

static void told(void* user) {
  ((path_t*)user)->told++;
}

static void nothing(void* user) {
  (void)user;
}

// Every out-parameter is there exactly when its call worked.
#define MADE(object, call)                                          \
  do {                                                              \
    status = (call);                                                \
    assert_int_equal((object) == NULL, !kiln_status_is_ok(status)); \
    if (!kiln_status_is_ok(status)) goto end;                       \
  } while (0)
#define DONE(call)                            \
  do {                                        \
    status = (call);                          \
    if (!kiln_status_is_ok(status)) goto end; \
  } while (0)

// What a run makes. one-thread
typedef struct made_t {
  kiln_stream_t* first;
  kiln_stream_t* legacy;
  kiln_stream_t* borrowed;
  kiln_stream_t* owned;
  kiln_stream_t* again;
  kiln_event_t* plain;
  kiln_event_t* timed;
  kiln_event_t* foreign;
  kiln_event_t* shared;
  kiln_event_t* opened;
  kiln_buffer_t* buffer;
} made_t;

static kiln_status_t make_streams(path_t* path, kiln_device_t* device,
                                  made_t* m) {
  kiln_status_t status;
  int32_t least = 0;
  int32_t greatest = 0;
  kiln_owner_t owner = {told, path};
  kiln_stream_options_t options = kiln_stream_options_default();
  options.priority = -1;
  DONE(kiln_device_priorities(device, &least, &greatest));
  MADE(m->first, kiln_stream_create(device, &options, &m->first));
  MADE(m->legacy, kiln_stream_default(device, KILN_STREAM_LEGACY, &m->legacy));
  MADE(m->borrowed,
       kiln_stream_adopt(device, path->raw_stream, NULL, &m->borrowed));
  MADE(m->owned,
       kiln_stream_adopt(device, path->raw_stream, &owner, &m->owned));
  path->owned++;
  MADE(m->again, kiln_stream_adopt(device, kiln_stream_handle(m->first), NULL,
                                   &m->again));
end:
  return status;
}

static kiln_status_t make_events(path_t* path, kiln_device_t* device,
                                 made_t* m) {
  kiln_status_t status;
  kiln_owner_t owner = {told, path};
  kiln_event_options_t options = kiln_event_options_default();
  MADE(m->plain, kiln_event_create(device, NULL, &m->plain));
  options.timing = KILN_SWITCH_ON;
  options.blocking = KILN_SWITCH_ON;
  MADE(m->timed, kiln_event_create(device, &options, &m->timed));
  MADE(m->foreign,
       kiln_event_adopt(device, path->raw_event, &owner, &m->foreign));
  path->owned++;
  if (!path->soft) {
    kiln_event_export_t exported;
    options = kiln_event_options_default();
    options.interprocess = KILN_SWITCH_ON;
    MADE(m->shared, kiln_event_create(device, &options, &m->shared));
    DONE(kiln_event_export(m->shared, &exported));
    MADE(m->opened, kiln_event_import(device, &exported, &m->opened));
  }
end:
  return status;
}

static kiln_status_t put_in_order(kiln_device_t* device, made_t* m) {
  kiln_status_t status;
  bool ready = false;
  uint64_t elapsed = 0;
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.stream = m->legacy;
  MADE(m->buffer, kiln_buffer_create(device, 256, &options, &m->buffer));
  DONE(kiln_buffer_fill_async(m->buffer, m->legacy, 0, 256, 1, 1));
  DONE(kiln_event_record(m->timed, m->legacy));
  DONE(kiln_stream_wait_event(m->first, m->timed));
  DONE(kiln_event_record(m->foreign, m->owned));
  DONE(kiln_stream_wait_stream(m->borrowed, m->first));
  DONE(kiln_stream_wait_stream(m->first, m->legacy));
  DONE(kiln_stream_call_host(m->first, nothing, NULL));
  DONE(kiln_stream_query(m->first, &ready));
  DONE(kiln_stream_synchronize(m->first));
  DONE(kiln_stream_synchronize(m->legacy));
  DONE(kiln_event_query(m->timed, &ready));
  DONE(kiln_event_synchronize(m->timed));
  DONE(kiln_event_elapsed(m->timed, m->timed, &elapsed));
end:
  return status;
}

static void release_all(made_t* m) {
  kiln_buffer_release(m->buffer);
  kiln_event_release(m->opened);
  kiln_event_release(m->shared);
  kiln_event_release(m->foreign);
  kiln_event_release(m->timed);
  kiln_event_release(m->plain);
  kiln_stream_release(m->again);
  kiln_stream_release(m->owned);
  kiln_stream_release(m->borrowed);
  kiln_stream_release(m->legacy);
  kiln_stream_release(m->first);
}

// What a host program has made for itself, by a way of its own.
static void host_begin(path_t* path, kiln_device_t* device) {
  const kiln_cuda_table_t* t = &path->beside;
  t->cuCtxSetCurrent(kiln_device_context(device));
  assert_int_equal(t->cuStreamCreate(&path->raw_stream, 1), 0);
  assert_int_equal(t->cuEventCreate(&path->raw_event, 0), 0);
  t->cuCtxSetCurrent(path->soft ? NULL : callers());
}

static void host_end(path_t* path, bool lost) {
  const kiln_cuda_table_t* t = &path->beside;
  kiln_cu_result_t first = t->cuStreamDestroy(path->raw_stream);
  kiln_cu_result_t second = t->cuEventDestroy(path->raw_event);
  if (lost) return;
  assert_int_equal(first, 0);
  assert_int_equal(second, 0);
}

static void check_caller(const path_t* path) {
  const kiln_cu_context_t current = path->soft ? NULL : callers();
  const char* hit =
      path->wrapped ? kilni_table_cuda_fault_hit(&path->table) : NULL;
  bool restores =
      hit != NULL && (path->from_on || strcmp(hit, "cuCtxSetCurrent") == 0 ||
                      strcmp(hit, "cuThreadExchangeStreamCaptureMode") == 0);
  if (restores) return;
  assert_ptr_equal(driver_books_current(), current);
  assert_int_equal(driver_books_mode(), KILN_CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static kiln_status_t work(path_t* path, kiln_device_t* device) {
  made_t m;
  memset(&m, 0, sizeof(m));
  kiln_status_t status = make_streams(path, device, &m);
  if (kiln_status_is_ok(status)) status = make_events(path, device, &m);
  if (kiln_status_is_ok(status)) status = put_in_order(device, &m);
  path->work_passed = kiln_status_is_ok(status);
  path->hit_in_work = is_hit(path);
  release_all(&m);
  check_caller(path);
  return status;
}

static kiln_status_t wrap(void* user, kiln_cuda_table_t* inout_table) {
  path_t* path = user;
  driver_books_open(inout_table);
  driver_books_forgive(path->count_calls);
  path->beside = *inout_table;
  if (!path->count_calls) return kiln_ok();
  kiln_status_t status =
      kilni_table_cuda_fault_install(inout_table, inout_table);
  if (!kiln_status_is_ok(status)) return status;
  path->table = *inout_table;
  path->wrapped = true;
  kilni_table_cuda_fault_arm(
      &path->table, path->nth,
      path->from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE, path->result);
  return kiln_ok();
}

static void unwrap(void* user, const kiln_cuda_table_t* table) {
  path_t* path = user;
  bool lost =
      path->count_calls && path->result == KILN_CU_ERROR_ILLEGAL_ADDRESS;
  driver_books_counts_t counts = driver_books_counts();
  if (counts.wrong != 0) fail_msg("wrong: %s", counts.first_wrong);
  // What a lost device holds is left alone.
  if (!lost) assert_int_equal(counts.live, 0);
  if (!path->wrapped) return;
  path->met += kilni_table_cuda_fault_disarm(table);
  kilni_table_cuda_fault_remove(table);
  path->wrapped = false;
}

static kiln_status_t run_path(path_t* path) {
  kilni_runtime_hooks_t hooks = {0};
  hooks.wrap = wrap;
  hooks.unwrap = unwrap;
  hooks.user = path;
  hooks.cuda_table = &path->null_table;
  hooks.soft_allocator = &path->own;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = &path->allocator;
  options.soft_workers = 1;
  options.soft_lanes = "plain";
  path->owned = path->told = 0;
  path->work_passed = path->hit_in_work = false;
  path->runs++;
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  kiln_status_t status = kilni_runtime_create_with(&options, &hooks, &runtime);
  if (!kiln_status_is_ok(status)) return status;
  status = kiln_runtime_open_device(runtime, path->soft ? "soft" : "cuda:0",
                                    &device);
  assert_int_equal(device == NULL, !kiln_status_is_ok(status));
  kiln_runtime_release(runtime);
  if (!kiln_status_is_ok(status)) return status;
  host_begin(path, device);
  status = work(path, device);
  assert_int_equal(path->told, path->owned);
  host_end(path, path->result == KILN_CU_ERROR_ILLEGAL_ADDRESS);
  kiln_device_release(device);
  // A call that failed while there was work to do shows in the status.
  assert_false(path->work_passed && path->hit_in_work);
  return status;
}

// ---- Allocations ----

static kiln_status_t allocation_body(kiln_allocator_t allocator, void* user) {
  path_t* path = user;
  path->allocator = allocator;
  return run_path(path);
}

static path_t make_path(bool soft) {
  path_t path;
  memset(&path, 0, sizeof(path));
  path.soft = soft;
  path.own = kiln_allocator_libc();
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&path.null_table);
  return path;
}

static void test_allocations(void** state) {
  (void)state;
  for (int soft = 0; soft < 2; soft++) {
    path_t path = make_path(soft != 0);
    uint64_t count = fault_run_allocations(allocation_body, &path, 0);
    print_message("%s: %llu allocations, %llu runs\n", soft ? "soft" : "null",
                  (unsigned long long)count, (unsigned long long)path.runs);
    assert_true(count > 10);
  }
}

// ---- Driver calls ----

static void arm_calls(void* user, uint64_t nth, bool from_on) {
  path_t* path = user;
  path->nth = nth;
  path->from_on = from_on;
  path->met = 0;
}

static uint64_t disarm_calls(void* user) {
  return ((path_t*)user)->met;
}

static kiln_status_t call_body(void* user) {
  return fault_run_watched(allocation_body, user);
}

static void sweep(bool soft, kiln_cu_result_t result) {
  path_t path = make_path(soft);
  path.count_calls = true;
  path.result = result;
  fault_points_t points = {"driver call", arm_calls, disarm_calls, NULL, &path};
  // A failed destroy is reported by nobody, so a run may pass; run_path sees
  // to it that one whose work was hit does not.
  uint64_t count = fault_run(&points, call_body, &path, FAULT_RUN_MAY_PASS);
  print_message("%s, result %u: %llu driver calls, %llu runs\n",
                soft ? "soft" : "null", (unsigned)result,
                (unsigned long long)count, (unsigned long long)path.runs);
  assert_true(count > 80);
  kilni_table_cuda_null_reset();
}

static void test_null_calls(void** state) {
  (void)state;
  sweep(false, KILN_CU_ERROR_OUT_OF_MEMORY);
  sweep(false, KILN_CU_ERROR_DEINITIALIZED);
  sweep(false, KILN_CU_ERROR_ILLEGAL_ADDRESS);
}

static void test_soft_calls(void** state) {
  (void)state;
  sweep(true, KILN_CU_ERROR_OUT_OF_MEMORY);
  sweep(true, KILN_CU_ERROR_ILLEGAL_ADDRESS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_allocations),
      cmocka_unit_test(test_null_calls),
      cmocka_unit_test(test_soft_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
