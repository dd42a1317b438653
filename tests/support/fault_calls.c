// SPDX-License-Identifier: Apache-2.0
//
// support: driver calls as points that can fail.
#include "fault_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void fault_calls_init(fault_calls_t* calls, const kiln_cuda_table_t* wrapped,
                      kiln_cu_result_t result) {
  memset(calls, 0, sizeof(*calls));
  calls->result = result;
  calls->check_null = wrapped == NULL;
  kiln_cuda_table_t null;
  if (wrapped == NULL) {
    kilni_table_cuda_null_reset();
    kilni_table_cuda_table_null(&null);
    wrapped = &null;
  }
  kiln_status_t status = kilni_table_cuda_fault_install(wrapped, &calls->table);
  assert_true(kiln_status_is_ok(status));
}

void fault_calls_deinit(fault_calls_t* calls) {
  kilni_table_cuda_fault_remove(&calls->table);
  if (calls->check_null) kilni_table_cuda_null_reset();
}

static void arm(void* user, uint64_t nth, bool from_on) {
  fault_calls_t* calls = user;
  // What an earlier run left is that run's problem.
  if (calls->check_null) kilni_table_cuda_null_reset();
  kilni_table_cuda_fault_arm(&calls->table, nth,
                             from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE,
                             calls->result);
}

static uint64_t disarm(void* user) {
  fault_calls_t* calls = user;
  return kilni_table_cuda_fault_disarm(&calls->table);
}

static const char* problem(void* user) {
  fault_calls_t* calls = user;
  if (!calls->check_null) return NULL;
  const uint64_t live = kilni_table_cuda_null_live(KILNI_HANDLE_NONE);
  const uint64_t bad = kilni_table_cuda_null_bad_destroys();
  if (live == 0 && bad == 0) return NULL;
  const char* hit = kilni_table_cuda_fault_hit(&calls->table);
  snprintf(calls->message, sizeof(calls->message),
           "%llu handles were not destroyed, %llu destroys had no handle (the "
           "first call that failed: %s)",
           (unsigned long long)live, (unsigned long long)bad,
           hit != NULL ? hit : "none");
  return calls->message;
}

fault_points_t fault_calls_points(fault_calls_t* calls) {
  return (fault_points_t){"driver call", arm, disarm, problem, calls};
}

// What call_body needs. one-thread
typedef struct bound_t {
  fault_calls_body_t body;
  const kiln_cuda_table_t* table;
  void* user;
} bound_t;

static kiln_status_t call_body(void* user) {
  bound_t* bound = user;
  return bound->body(bound->table, bound->user);
}

uint64_t fault_run_calls(fault_calls_body_t body, void* user,
                         kiln_cu_result_t result, uint32_t flags) {
  fault_calls_t calls;
  fault_calls_init(&calls, NULL, result);
  const fault_points_t points = fault_calls_points(&calls);
  bound_t bound = {body, &calls.table, user};
  char text[1024];
  uint64_t count = 0;
  const char* wrong = fault_run_problem(&points, call_body, &bound, flags, text,
                                        sizeof(text), &count);
  fault_calls_deinit(&calls);
  if (wrong != NULL) fail_msg("%s", wrong);
  return count;
}
