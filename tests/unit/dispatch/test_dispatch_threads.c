// SPDX-License-Identifier: Apache-2.0
//
// dispatch: eight threads on one dispatcher: each path, with the threads' own
// streams and with the dispatcher's.
#define _POSIX_C_SOURCE 200809L
#include "dispatch_crowd.h"

enum { THREADS = 8, ROUNDS = 6, WORDS = 257, LANES = 3 };

// What they share. thread-safe
typedef struct crowd_t {
  dispatch_kit_t kit;
  kiln_pipeline_t* step;
  kiln_pipeline_t* four;
  kiln_pipeline_t* trapping;
  kiln_resident_t constant;  // one word that all read
  atomic_uint wrong;
} crowd_t;

static void by_host(crowd_t* crowd, uint32_t first, kiln_stream_t* stream) {
  uint32_t x[WORDS];
  kiln_pending_t* pending = NULL;
  for (uint32_t i = 0; i < WORDS; i++) x[i] = first + i;
  kiln_binding_t binding = kiln_bind_host_inout(x, sizeof(x));
  OKAY(
      kiln_pipeline_dispatch(crowd->step, stream, &binding, 1, NULL, &pending));
  OKAY(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
  for (uint32_t i = 0; i < WORDS; i++) NEED(x[i] == (first + i) * 2 + 1);
}

static void by_resident(crowd_t* crowd, uint32_t first, kiln_stream_t* stream) {
  kiln_dispatcher_t* dispatcher = crowd->kit.dispatcher;
  uint32_t x[WORDS], z[WORDS];
  kiln_resident_t r[3];
  for (uint32_t i = 0; i < WORDS; i++) x[i] = first + i;
  for (int i = 0; i < 3; i++) {
    OKAY(kiln_resident_allocate(dispatcher, sizeof(x), &r[i]));
    OKAY(kiln_resident_upload(dispatcher, stream, r[i], 0, sizeof(x), x));
  }
  kiln_binding_t bindings[] = {
      kiln_bind_resident(r[0]), kiln_bind_resident(r[1]),
      kiln_bind_resident(crowd->constant), kiln_bind_resident(r[2])};
  kiln_prepared_t* prepared = NULL;
  OKAY(kiln_pipeline_prepare(crowd->four, bindings, 4, NULL, &prepared));
  OKAY(kiln_prepared_run(prepared, stream));
  OKAY(kiln_pipeline_dispatch(crowd->four, stream, bindings, 4, NULL, NULL));
  OKAY(kiln_resident_download(dispatcher, stream, r[2], 0, sizeof(z), z));
  for (uint32_t i = 0; i < WORDS; i++) NEED(z[i] == (first + i) * 4);
  kiln_prepared_release(prepared);
  for (int i = 0; i < 3; i++) OKAY(kiln_resident_free(dispatcher, r[i]));
}

// What is static is each prepared dispatch's own.
static void by_static(crowd_t* crowd, uint32_t first, kiln_stream_t* stream) {
  kiln_dispatcher_t* dispatcher = crowd->kit.dispatcher;
  uint32_t x[WORDS], z[WORDS];
  kiln_resident_t r[2];
  kiln_prepared_t* prepared = NULL;
  uint32_t factor = first % 7 + 2;
  for (uint32_t i = 0; i < WORDS; i++) x[i] = first + i;
  for (int i = 0; i < 2; i++) {
    OKAY(kiln_resident_allocate(dispatcher, sizeof(x), &r[i]));
  }
  OKAY(kiln_resident_upload(dispatcher, stream, r[0], 0, sizeof(x), x));
  kiln_binding_t bindings[] = {
      kiln_bind_static(x, sizeof(x)), kiln_bind_resident(r[0]),
      kiln_bind_static(&factor, 4), kiln_bind_resident(r[1])};
  OKAY(kiln_pipeline_prepare(crowd->four, bindings, 4, NULL, &prepared));
  memset(x, 0, sizeof(x));
  factor = 0;
  for (int i = 0; i < 3; i++) OKAY(kiln_prepared_run(prepared, stream));
  OKAY(kiln_resident_download(dispatcher, stream, r[1], 0, sizeof(z), z));
  for (uint32_t i = 0; i < WORDS; i++) {
    NEED(z[i] == (first + i) * (first % 7 + 3));
  }
  kiln_prepared_release(prepared);
  for (int i = 0; i < 2; i++) OKAY(kiln_resident_free(dispatcher, r[i]));
}

static void by_batch(crowd_t* crowd, uint32_t first, kiln_stream_t* stream) {
  uint32_t x[LANES][WORDS];
  kiln_binding_t bindings[LANES];
  kiln_pending_t* pending = NULL;
  for (uint32_t k = 0; k < LANES; k++) {
    for (uint32_t i = 0; i < WORDS; i++) x[k][i] = first + k * 7 + i;
    bindings[k] = kiln_bind_host_inout(x[k], sizeof(x[k]));
  }
  kiln_dispatch_batch_t batch = kiln_dispatch_batch_default();
  batch.binding_count = 1;
  batch.bindings = bindings;
  batch.count = LANES;
  OKAY(kiln_pipeline_dispatch_batch(crowd->step, stream, &batch, NULL,
                                    &pending));
  OKAY(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
  for (uint32_t k = 0; k < LANES; k++) {
    for (uint32_t i = 0; i < WORDS; i++) {
      NEED(x[k][i] == (first + k * 7 + i) * 2 + 1);
    }
  }
}

static void by_trap(crowd_t* crowd, uint32_t number, kiln_stream_t* stream) {
  uint32_t x[WORDS], y[WORDS];
  kiln_pending_t* pending = NULL;
  kiln_trap_t trap;
  for (uint32_t i = 0; i < WORDS; i++) x[i] = 100;
  if (number % 2 == 0) x[number + 1] = 7;
  kiln_binding_t bindings[] = {kiln_bind_host_in(x, sizeof(x)),
                               kiln_bind_host_out(y, sizeof(y))};
  OKAY(kiln_pipeline_dispatch(crowd->trapping, stream, bindings, 2, NULL,
                              &pending));
  kiln_status_t status = kiln_pending_wait(pending, KILN_PENDING_FOREVER);
  NEED((kiln_status_code(status) == KILN_STATUS_LAUNCH_FAILED) ==
       (number % 2 == 0));
  kiln_status_free(status);
  NEED(kiln_pending_trap(pending, &trap) == (number % 2 == 0));
  NEED(trap.address == (number % 2 == 0 ? number + 1 : 0));
  kiln_pending_release(pending);
}

static void work(void* shared, uint32_t number) {
  crowd_t* crowd = shared;
  kiln_stream_t* mine = NULL;
  OKAY(kiln_stream_create(crowd->kit.device, NULL, &mine));
  for (uint32_t round = 0; round < ROUNDS; round++) {
    kiln_stream_t* stream = (round + number) % 2 == 0 ? NULL : mine;
    uint32_t first = number * 1000 + round;
    by_host(crowd, first, stream);
    by_resident(crowd, first, stream);
    by_static(crowd, first, stream);
    by_batch(crowd, first, stream);
    by_trap(crowd, number + round, stream);
  }
  kiln_stream_release(mine);
}

static void test_crowd(void** state) {
  (void)state;
  static crowd_t crowd;
  memset(&crowd, 0, sizeof(crowd));
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  options.telemetry = KILN_SWITCH_ON;
  options.staging_bytes = 3 << 12;
  options.staging_chunk_bytes = 1 << 12;
  dispatch_kit_open_with(&crowd.kit, &options);
  crowd.step = dispatch_kit_pipeline(&crowd.kit, kStep, NULL);
  crowd.four = dispatch_kit_pipeline(&crowd.kit, kFour, NULL);
  crowd.trapping = dispatch_kit_pipeline(&crowd.kit, kTrapping, NULL);
  uint32_t three = 3;
  crowd.constant = dispatch_kit_resident(&crowd.kit, sizeof(three), &three);
  assert_null(kiln_dispatcher_synchronize(crowd.kit.dispatcher));
  crowd_run(&crowd, THREADS, work);
  assert_int_equal(atomic_load(&crowd.wrong), 0);
  assert_null(kiln_resident_free(crowd.kit.dispatcher, crowd.constant));
  kiln_dispatcher_counts_t counts;
  kiln_dispatcher_counts(crowd.kit.dispatcher, &counts);
  assert_int_equal(counts.residents, 0);
  assert_int_equal(counts.resident_bytes, 0);
  assert_int_equal(counts.pipelines, 3);
  kiln_pipeline_release(crowd.step);
  kiln_pipeline_release(crowd.four);
  kiln_pipeline_release(crowd.trapping);
  dispatch_kit_close(&crowd.kit);
}

// Warm-up from threads that have no context, all at once.
static void warm(void* shared, uint32_t number) {
  crowd_t* crowd = shared;
  (void)number;
  OKAY(kiln_dispatcher_warm(crowd->kit.dispatcher));
}

static void test_warm(void** state) {
  (void)state;
  static crowd_t crowd;
  memset(&crowd, 0, sizeof(crowd));
  dispatch_kit_open(&crowd.kit);
  crowd_run(&crowd, THREADS, warm);
  assert_int_equal(atomic_load(&crowd.wrong), 0);
  kiln_dispatcher_counts_t counts;
  kiln_dispatcher_counts(crowd.kit.dispatcher, &counts);
  assert_int_equal(counts.streams, 4);
  assert_int_equal(counts.staging_bytes, 32 << 20);
  assert_null(kiln_dispatcher_clean(crowd.kit.dispatcher));
  kiln_dispatcher_counts(crowd.kit.dispatcher, &counts);
  assert_int_equal(counts.staging_bytes, 0);
  assert_int_equal(counts.transient_bytes, 0);
  // What was cleaned away is made again.
  assert_null(kiln_dispatcher_warm(crowd.kit.dispatcher));
  dispatch_kit_close(&crowd.kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_crowd),
      cmocka_unit_test(test_warm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
