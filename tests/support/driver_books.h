// SPDX-License-Identifier: Apache-2.0
//
// support: a driver's books: who made what in which context, and who ended it.
//
// A wrapper around the null provider or the software device that keeps account
// of streams, events, memory, access and contexts from any number of threads,
// and counts as wrong what a driver may not forgive: a handle that is ended
// twice or used after its end, an event recorded on another context's stream, a
// call that needs a context without one, a call that is not allowed under
// capture outside of the relaxed mode.
//
// Over the null provider it adds what that lacks: a current context and a
// capture mode for each thread, a second device, priorities.
#ifndef KILN_TESTS_SUPPORT_DRIVER_BOOKS_H_
#define KILN_TESTS_SUPPORT_DRIVER_BOOKS_H_

#include <stdbool.h>

#include "table/cuda_abi.h"
#include "table/table.h"

// What is counted. thread-compatible
typedef struct driver_books_counts_t {
  uint64_t made[KILNI_HANDLE_COUNT];
  uint64_t ended[KILNI_HANDLE_COUNT];
  uint64_t live;
  uint64_t wrong;
  uint64_t exchanges;  // of the capture mode
  const char* first_wrong;
} driver_books_counts_t;

// Opens the books over a filled table, which then leads through them. One set
// of books in a process.
void driver_books_open(kiln_cuda_table_t* inout_table);
// Ends them; fails the cmocka test if anything was wrong, or lives still.
void driver_books_close(void);
driver_books_counts_t driver_books_counts(void);

// The calling thread's, as a host program would see them.
kiln_cu_context_t driver_books_current(void);
kiln_cu_capture_mode_t driver_books_mode(void);
// The context that was current in the last call on a default stream.
kiln_cu_context_t driver_books_token_context(void);

// Whether a call without a context, or outside of the relaxed mode, is wrong;
// not so where switches are made to fail: a destructor goes on all the same.
void driver_books_forgive(bool forgives);

// Makes calls of cuCtxSetCurrent and of cuThreadExchangeStreamCaptureMode fail
// on this thread: the `nth` from now on, 1 being the next; 0 none.
void driver_books_fail_switch(uint32_t nth);
void driver_books_fail_exchange(uint32_t nth);
// What calls "made to fail" give.
void driver_books_fail_with(kiln_cu_result_t result);

#endif  // KILN_TESTS_SUPPORT_DRIVER_BOOKS_H_
