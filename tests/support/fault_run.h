// SPDX-License-Identifier: Apache-2.0
//
// support: runs a test body again and again, failing another point each time.
//
// A point is something that can fail: an allocation, a driver call. The body
// runs once to count its points; then once for each point with that point
// failing, and once more with it and every later one failing. Each run must
// return a status other than OK when its point failed, OK when it did not, and
// leave the kind of point clean (nothing leaked, nothing freed twice). What
// out-parameters hold after a failure is for the body to assert.
//
// At most FAULT_RUN_POINTS points are tried, spread evenly and with the first
// and the last, unless the environment sets KILN_FAULT_ALL=1 (tests only).
#ifndef KILN_TESTS_SUPPORT_FAULT_RUN_H_
#define KILN_TESTS_SUPPORT_FAULT_RUN_H_

#include "fault_alloc.h"
#include "kiln/status.h"

enum { FAULT_RUN_POINTS = 64 };

// A kind of point. thread-compatible
typedef struct fault_points_t {
  const char* name;  // "allocation"
  // From here on, count points on this thread and fail the n-th, 1 being the
  // first, and all later ones if `from_on`; 0 only counts.
  void (*arm)(void* user, uint64_t nth, bool from_on);
  // Stop, and say how many points were met.
  uint64_t (*disarm)(void* user);
  // NULL when clean, otherwise what is wrong. Called after disarm. May be NULL.
  const char* (*problem)(void* user);
  void* user;
} fault_points_t;

// A test body. It must release everything it made, also when it fails.
typedef kiln_status_t (*fault_body_t)(void* user);

// A test body for allocation points, with the allocator to use.
typedef kiln_status_t (*fault_alloc_body_t)(kiln_allocator_t allocator,
                                            void* user);

enum {
  // A failed point may also be survived: the body may return OK.
  FAULT_RUN_MAY_PASS = 1
};

// Runs `body` as told above; fails the cmocka test, naming the point, when a
// run breaks the rules. Returns how many points the body has.
uint64_t fault_run(const fault_points_t* points, fault_body_t body, void* user,
                   uint32_t flags);

// The same over allocations of a fresh watching allocator.
uint64_t fault_run_allocations(fault_alloc_body_t body, void* user,
                               uint32_t flags);

// Runs the body once with a fresh watching allocator, which it must leave
// clean: for the points of another kind. Its status.
kiln_status_t fault_run_watched(fault_alloc_body_t body, void* user);

// The points of a watching allocator, for a caller that combines kinds.
fault_points_t fault_alloc_points(fault_alloc_t* watch);

// NULL if the run kept the rules, otherwise what broke them, in `text`. The
// part of fault_run that can be tested; `out_points` as its result.
const char* fault_run_problem(const fault_points_t* points, fault_body_t body,
                              void* user, uint32_t flags, char* text,
                              size_t text_size, uint64_t* out_points);

#endif  // KILN_TESTS_SUPPORT_FAULT_RUN_H_
