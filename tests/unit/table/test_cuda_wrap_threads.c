// SPDX-License-Identifier: Apache-2.0
//
// table: tests of wrappers and the null provider used from several threads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdatomic.h>

#include "base/thread.h"
#include "table/cuda_table.h"

enum { THREADS = 4, ROUNDS = 2000 };

static kiln_cuda_table_t table;

// Asserts stay on the main thread: workers count what went wrong.
static atomic_uint wrong;
static atomic_uint lines;

static void count_line(kiln_log_level_t level, const char* space,
                       const char* line, void* user) {
  (void)level;
  (void)space;
  (void)user;
  if (strstr(line, "= CUDA_SUCCESS") == NULL) atomic_fetch_add(&wrong, 1);
  atomic_fetch_add(&lines, 1);
}

static void make_and_end(void* user) {
  (void)user;
  for (int i = 0; i < ROUNDS; i++) {
    kiln_cu_event_t event = NULL;
    if (table.cuEventCreate(&event, 0) != KILN_CU_SUCCESS ||
        table.cuEventDestroy(event) != KILN_CU_SUCCESS) {
      atomic_fetch_add(&wrong, 1);
    }
  }
}

static void run_threads(void) {
  kilni_base_thread_t threads[THREADS];
  atomic_store(&wrong, 0);
  for (int i = 0; i < THREADS; i++) {
    kiln_status_t status =
        kilni_base_thread_start(&threads[i], "table", make_and_end, NULL);
    assert_true(kiln_status_is_ok(status));
  }
  for (int i = 0; i < THREADS; i++) kilni_base_thread_join(&threads[i]);
}

static void faults_stay_on_the_thread_that_armed_them(void** state) {
  (void)state;
  kiln_cuda_table_t null;
  kilni_table_cuda_table_null(&null);
  assert_true(kiln_status_is_ok(kilni_table_cuda_fault_install(&null, &table)));
  kilni_table_cuda_fault_arm(&table, 1, KILNI_FAULT_FROM,
                             KILN_CU_ERROR_UNKNOWN);
  run_threads();
  assert_int_equal(atomic_load(&wrong), 0);
  assert_int_equal(table.cuInit(0), KILN_CU_ERROR_UNKNOWN);
  assert_int_equal(kilni_table_cuda_fault_disarm(&table), 1);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  kilni_table_cuda_fault_remove(&table);
}

static void threads_may_trace_at_once(void** state) {
  (void)state;
  const kiln_log_sink_t sink = {count_line, NULL, KILN_LOG_TRACE, 0};
  kilni_table_cuda_table_null(&table);
  assert_true(
      kiln_status_is_ok(kilni_table_cuda_trace_install(&table, sink, &table)));
  atomic_store(&lines, 0);
  run_threads();
  assert_int_equal(atomic_load(&wrong), 0);
  assert_int_equal(atomic_load(&lines), 2 * THREADS * ROUNDS);
  kilni_table_cuda_trace_remove(&table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(faults_stay_on_the_thread_that_armed_them),
      cmocka_unit_test(threads_may_trace_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
