// SPDX-License-Identifier: Apache-2.0
//
// dispatch: what a dispatcher keeps, before a clean and behind it: trap pages,
// callers' streams, and what the device keeps for its own use.
#include <semaphore.h>

#include "dispatch/dispatch_inside.h"
#include "table/cuda_table.h"
#include "dispatch_kit.h"

static kiln_dispatcher_counts_t counts_of(dispatch_kit_t* kit) {
  kiln_dispatcher_counts_t counts;
  kiln_dispatcher_counts(kit->dispatcher, &counts);
  return counts;
}

// ---- Trap pages ----

typedef struct traps_t {
  kiln_pipeline_t* pipeline;
  kiln_resident_t x, y;
} traps_t;

static kiln_pending_t* dispatch(traps_t* traps) {
  kiln_pending_t* pending = NULL;
  kiln_binding_t bindings[] = {kiln_bind_resident(traps->x),
                               kiln_bind_resident(traps->y)};
  assert_null(kiln_pipeline_dispatch(traps->pipeline, NULL, bindings, 2, NULL,
                                     &pending));
  return pending;
}

// Pages go when no record of them is in use, and only then.
static void test_trap_pages(void** state) {
  (void)state;
  enum { MANY = KILNI_TRAP_RECORDS + 6 };
  const uint32_t kZeroes[4] = {0};
  dispatch_kit_t kit;
  kiln_pending_t* pending[MANY];
  dispatch_kit_open(&kit);
  assert_int_equal(counts_of(&kit).trap_pages, 0);
  traps_t traps = {dispatch_kit_pipeline(&kit, kTrapping, NULL),
                   dispatch_kit_resident(&kit, 16, kZeroes),
                   dispatch_kit_resident(&kit, 16, kZeroes)};
  assert_int_equal(counts_of(&kit).trap_pages, 0);
  for (int i = 0; i < MANY; i++) pending[i] = dispatch(&traps);
  assert_int_equal(counts_of(&kit).trap_pages, 2);
  assert_null(kiln_dispatcher_clean(kit.dispatcher));
  assert_int_equal(counts_of(&kit).trap_pages, 2);
  // The last one's is of the second page; then of none.
  for (int i = 0; i < MANY - 1; i++) kiln_pending_release(pending[i]);
  assert_int_equal(counts_of(&kit).trap_pages, 2);
  assert_null(kiln_dispatcher_clean(kit.dispatcher));
  assert_int_equal(counts_of(&kit).trap_pages, 1);
  assert_null(kiln_pending_wait(pending[MANY - 1], KILN_PENDING_FOREVER));
  kiln_pending_release(pending[MANY - 1]);
  assert_null(kiln_dispatcher_clean(kit.dispatcher));
  assert_int_equal(counts_of(&kit).trap_pages, 0);
  // One that is released while it runs is found by the clean.
  kiln_pending_release(dispatch(&traps));
  assert_int_equal(counts_of(&kit).trap_pages, 1);
  assert_null(kiln_dispatcher_clean(kit.dispatcher));
  assert_int_equal(counts_of(&kit).trap_pages, 0);
  kiln_pipeline_release(traps.pipeline);
  dispatch_kit_close(&kit);
}

// A record is found again after its page has gone and another one has come.
static void test_traps_behind(void** state) {
  (void)state;
  const uint32_t kSeven[4] = {1, 7, 2, 3};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  traps_t traps = {dispatch_kit_pipeline(&kit, kTrapping, NULL),
                   dispatch_kit_resident(&kit, 16, kSeven),
                   dispatch_kit_resident(&kit, 16, kSeven)};
  for (int i = 0; i < 3; i++) {
    kiln_trap_t trap;
    kiln_pending_t* pending = dispatch(&traps);
    assert_says(kiln_pending_wait(pending, KILN_PENDING_FOREVER),
                KILN_STATUS_LAUNCH_FAILED, "trapped with tag 3");
    assert_null(kiln_dispatcher_clean(kit.dispatcher));
    assert_true(kiln_pending_trap(pending, &trap));
    assert_int_equal(trap.address, 1);
    kiln_pending_release(pending);
    assert_null(kiln_dispatcher_clean(kit.dispatcher));
    assert_int_equal(counts_of(&kit).trap_pages, 0);
  }
  kiln_pipeline_release(traps.pipeline);
  dispatch_kit_close(&kit);
}

// ---- Many that nobody waits for ----

static struct {
  kiln_cuda_table_t under;
  uint32_t queries;
} g_asked;

static kiln_cu_result_t count_query(kiln_cu_event_t event) {
  g_asked.queries++;
  return g_asked.under.cuEventQuery(event);
}

static kiln_status_t watch_queries(void* user, kiln_cuda_table_t* inout_table) {
  (void)user;
  g_asked.under = *inout_table;
  KILNI_CUDA_SET(inout_table, cuEventQuery, count_query);
  return kiln_ok();
}

static void wait_for_gate(void* user) {
  sem_t* gate = user;
  while (sem_wait(gate) != 0) {
  }
}

// However many are under way, a dispatch asks after a few of them; a clean
// finds all.
static void test_many_traps(void** state) {
  (void)state;
  enum { MANY = 200 };
  const uint32_t kZeroes[4] = {0};
  dispatch_kit_t kit;
  sem_t gate;
  kiln_stream_t* own = NULL;
  dispatch_kit_open_wrapped(&kit, NULL, NULL, 0, watch_queries);
  assert_int_equal(sem_init(&gate, 0, 0), 0);
  traps_t traps = {dispatch_kit_pipeline(&kit, kTrapping, NULL),
                   dispatch_kit_resident(&kit, 16, kZeroes),
                   dispatch_kit_resident(&kit, 16, kZeroes)};
  assert_null(kiln_dispatcher_stream(kit.dispatcher, 0, &own));
  assert_null(kiln_stream_call_host(own, wait_for_gate, &gate));
  g_asked.queries = 0;
  for (int i = 0; i < MANY; i++) kiln_pending_release(dispatch(&traps));
  assert_int_equal(counts_of(&kit).pendings, MANY);
  assert_true(g_asked.queries <= 8 * MANY);
  assert_int_equal(sem_post(&gate), 0);
  assert_null(kiln_dispatcher_clean(kit.dispatcher));
  assert_int_equal(counts_of(&kit).pendings, 0);
  assert_int_equal(counts_of(&kit).trap_pages, 0);
  kiln_pipeline_release(traps.pipeline);
  sem_destroy(&gate);
  dispatch_kit_close(&kit);
}

// ---- Callers' streams ----

// A clean lets go of streams without waiting for them (a driver that is given
// back pinned memory does wait: there is none here); prepared dispatches go on.
static void test_streams(void** state) {
  (void)state;
  enum { N = 64 };
  uint32_t got[N];
  sem_t gate;
  dispatch_kit_t kit;
  kiln_stream_t* stream = NULL;
  kiln_prepared_t* prepared = NULL;
  dispatch_kit_open(&kit);
  assert_int_equal(sem_init(&gate, 0, 0), 0);
  kiln_pipeline_t* step = dispatch_kit_pipeline(&kit, kStep, NULL);
  kiln_resident_t r = dispatch_kit_resident(&kit, sizeof(got), NULL);
  kiln_resident_t copy = dispatch_kit_resident(&kit, sizeof(got), NULL);
  kiln_resident_range_t all = {0, 0};
  assert_null(kiln_resident_fill(kit.dispatcher, NULL, r, all, 0, 4));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  kiln_binding_t binding = kiln_bind_resident(r);
  assert_null(kiln_pipeline_prepare(step, &binding, 1, NULL, &prepared));
  assert_null(kiln_stream_create(kit.device, NULL, &stream));
  assert_null(kiln_prepared_run(prepared, stream));
  assert_int_equal(atomic_load(&stream->references), 2);
  assert_null(kiln_stream_call_host(stream, wait_for_gate, &gate));
  assert_null(kiln_prepared_run(prepared, stream));
  assert_null(kiln_dispatcher_clean(kit.dispatcher));
  assert_int_equal(atomic_load(&stream->references), 1);
  // Behind the gate, which is behind the clean.
  kiln_buffer_t* buffer = NULL;
  kiln_buffer_t* target = NULL;
  assert_null(kilni_dispatch_resident_get(kit.dispatcher, r, &buffer));
  assert_null(kilni_dispatch_resident_get(kit.dispatcher, copy, &target));
  assert_null(
      kiln_buffer_copy_async(target, stream, 0, buffer, 0, sizeof(got)));
  kiln_buffer_release(buffer);
  kiln_buffer_release(target);
  assert_null(kiln_prepared_run(prepared, stream));
  assert_int_equal(atomic_load(&stream->references), 2);
  assert_int_equal(sem_post(&gate), 0);
  assert_null(kiln_stream_synchronize(stream));
  dispatch_kit_fetch(&kit, copy, sizeof(got), got);
  for (uint32_t i = 0; i < N; i++) assert_int_equal(got[i], 3);
  dispatch_kit_fetch(&kit, r, sizeof(got), got);
  for (uint32_t i = 0; i < N; i++) assert_int_equal(got[i], 7);
  kiln_prepared_release(prepared);
  assert_null(kiln_resident_free(kit.dispatcher, r));
  assert_null(kiln_dispatcher_clean(kit.dispatcher));
  kiln_stream_release(stream);
  kiln_pipeline_release(step);
  sem_destroy(&gate);
  dispatch_kit_close(&kit);
}

// ---- The device's own ----

static void test_device(void** state) {
  (void)state;
  enum { N = 16 };
  dispatch_kit_t kit;
  kiln_stream_t* streams[2] = {NULL, NULL};
  kiln_sequence_t* sequence = NULL;
  kiln_replay_t* replay = NULL;
  dispatch_kit_open(&kit);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 2; i++) {
      assert_null(kiln_stream_create(kit.device, NULL, &streams[i]));
    }
    assert_null(kiln_stream_wait_stream(streams[0], streams[1]));
    // Blocks come and go with graphs.
    kiln_resident_t r = dispatch_kit_resident(&kit, N, NULL);
    kiln_binding_t place = kiln_bind_resident(r);
    assert_null(kiln_sequence_create(kit.dispatcher, NULL, &sequence));
    assert_null(kiln_sequence_add_fill(sequence, &place, 0, 4, NULL));
    assert_null(kiln_sequence_finish(sequence));
    assert_null(kiln_sequence_instantiate(sequence, NULL, &replay));
    assert_null(kiln_replay_run(replay, NULL, NULL));
    kiln_replay_release(replay);
    kiln_sequence_release(sequence);
    assert_null(kiln_resident_free(kit.dispatcher, r));
    for (int i = 0; i < 2; i++) kiln_stream_release(streams[i]);
    dispatch_kit_settle(&kit);
    assert_true(kilni_device_pools_counts(kit.device, KILNI_POOL_EVENTS).kept >
                0);
    assert_true(kit.device->pools.spare_count > 0);
    assert_null(kiln_dispatcher_clean(kit.dispatcher));
    for (uint32_t pool = 0; pool < KILNI_POOL_COUNT; pool++) {
      assert_int_equal(kilni_device_pools_counts(kit.device, pool).kept, 0);
      assert_int_equal(kilni_device_pools_counts(kit.device, pool).in_use, 0);
    }
    assert_int_equal(kit.device->pools.spare_count, 0);
  }
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_trap_pages), cmocka_unit_test(test_traps_behind),
      cmocka_unit_test(test_many_traps), cmocka_unit_test(test_streams),
      cmocka_unit_test(test_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
