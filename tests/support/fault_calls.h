// SPDX-License-Identifier: Apache-2.0
//
// support: driver calls as points that can fail (fault_run.h).
//
// The body gets a table: the null provider behind a fault wrapper. Each run
// fails another of its calls; afterwards every handle must have been destroyed
// exactly once.
#ifndef KILN_TESTS_SUPPORT_FAULT_CALLS_H_
#define KILN_TESTS_SUPPORT_FAULT_CALLS_H_

#include "fault_run.h"
#include "table/cuda_table.h"

enum { FAULT_CALLS_MESSAGE_BYTES = 160 };

// A wrapped table and what the failing call gives. one-thread
typedef struct fault_calls_t {
  kiln_cuda_table_t table;
  kiln_cu_result_t result;
  bool check_null;  // the null provider is inside: ask it for leaks
  char message[FAULT_CALLS_MESSAGE_BYTES];
} fault_calls_t;

// Wraps `wrapped`; NULL is the null provider, whose handles are then watched.
// Fails the cmocka test when no place for a wrapper is free.
void fault_calls_init(fault_calls_t* calls, const kiln_cuda_table_t* wrapped,
                      kiln_cu_result_t result);
void fault_calls_deinit(fault_calls_t* calls);
fault_points_t fault_calls_points(fault_calls_t* calls);

// A test body for driver calls, with the table to use.
typedef kiln_status_t (*fault_calls_body_t)(const kiln_cuda_table_t* table,
                                            void* user);

// Runs `body` over the null provider with each of its calls failing in turn.
// Returns how many calls it makes.
uint64_t fault_run_calls(fault_calls_body_t body, void* user,
                         kiln_cu_result_t result, uint32_t flags);

#endif  // KILN_TESTS_SUPPORT_FAULT_CALLS_H_
