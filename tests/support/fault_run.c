// SPDX-License-Identifier: Apache-2.0
//
// support: runs a test body again and again, failing another point each time.
#include "fault_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool every_point(void) {
  const char* all = getenv("KILN_FAULT_ALL");
  return all != NULL && strcmp(all, "1") == 0;
}

// One run. True if it kept the rules.
static bool run_once(const fault_points_t* points, fault_body_t body,
                     void* user, uint32_t flags, uint64_t nth, bool from_on,
                     char* text, size_t text_size, uint64_t* out_met) {
  points->arm(points->user, nth, from_on);
  kiln_status_t status = body(user);
  *out_met = points->disarm(points->user);
  bool ok = kiln_status_is_ok(status);
  char said[512];
  kiln_status_format(status, sizeof(said), said, NULL);
  kiln_status_free(status);

  bool reached = nth != 0 && *out_met >= nth;
  bool may_pass = (flags & FAULT_RUN_MAY_PASS) != 0;
  const char* mode = from_on ? " and all later ones" : "";
  if (!reached && !ok) {
    snprintf(text, text_size, "no %s failed, and yet the body says: %s",
             points->name, said);
    return false;
  }
  if (reached && ok && !may_pass) {
    snprintf(text, text_size, "%s %llu%s failed, and the body says OK",
             points->name, (unsigned long long)nth, mode);
    return false;
  }
  const char* wrong = points->problem ? points->problem(points->user) : NULL;
  if (wrong != NULL) {
    snprintf(text, text_size, "after %s %llu%s failed: %s", points->name,
             (unsigned long long)nth, mode, wrong);
    return false;
  }
  return true;
}

const char* fault_run_problem(const fault_points_t* points, fault_body_t body,
                              void* user, uint32_t flags, char* text,
                              size_t text_size, uint64_t* out_points) {
  uint64_t met;
  *out_points = 0;
  if (!run_once(points, body, user, flags, 0, false, text, text_size, &met)) {
    return text;
  }
  *out_points = met;
  uint64_t total = met;
  bool all = every_point() || total <= FAULT_RUN_POINTS;
  for (int from_on = 0; from_on < 2; from_on++) {
    uint64_t nth = 1;
    for (uint64_t i = 0;; i++) {
      nth = all ? i + 1 : 1 + i * (total - 1) / (FAULT_RUN_POINTS - 1);
      if (!run_once(points, body, user, flags, nth, from_on != 0, text,
                    text_size, &met)) {
        return text;
      }
      // The body passed without reaching the point, or the spread is done.
      if (met < nth || (!all && nth >= total)) break;
    }
  }
  return NULL;
}

uint64_t fault_run(const fault_points_t* points, fault_body_t body, void* user,
                   uint32_t flags) {
  char text[1024];
  uint64_t count;
  const char* problem =
      fault_run_problem(points, body, user, flags, text, sizeof(text), &count);
  if (problem != NULL) fail_msg("%s", problem);
  return count;
}

static void alloc_arm(void* user, uint64_t nth, bool from_on) {
  fault_alloc_arm(user, nth, from_on);
}

static uint64_t alloc_disarm(void* user) {
  return fault_alloc_disarm(user);
}

static const char* alloc_problem(void* user) {
  return fault_alloc_problem(user);
}

fault_points_t fault_alloc_points(fault_alloc_t* watch) {
  return (fault_points_t){"allocation", alloc_arm, alloc_disarm, alloc_problem,
                          watch};
}

typedef struct alloc_body_t {
  fault_alloc_body_t body;
  kiln_allocator_t allocator;
  void* user;
} alloc_body_t;

static kiln_status_t call_alloc_body(void* user) {
  alloc_body_t* call = user;
  return call->body(call->allocator, call->user);
}

uint64_t fault_run_allocations(fault_alloc_body_t body, void* user,
                               uint32_t flags) {
  // Static would be shared between tests and too large a frame is a risk
  // under sanitizers, so it comes from the heap.
  fault_alloc_t* watch = malloc(sizeof(*watch));
  assert_non_null(watch);
  fault_alloc_init(watch);
  fault_points_t points = fault_alloc_points(watch);
  alloc_body_t call = {body, fault_alloc_allocator(watch), user};
  char text[1024];
  uint64_t count;
  const char* problem = fault_run_problem(&points, call_alloc_body, &call,
                                          flags, text, sizeof(text), &count);
  fault_alloc_deinit(watch);
  free(watch);
  if (problem != NULL) fail_msg("%s", problem);
  return count;
}

kiln_status_t fault_run_watched(fault_alloc_body_t body, void* user) {
  fault_alloc_t* watch = malloc(sizeof(*watch));
  assert_non_null(watch);
  fault_alloc_init(watch);
  kiln_status_t status = body(fault_alloc_allocator(watch), user);
  fault_alloc_assert_clean(watch);
  fault_alloc_deinit(watch);
  free(watch);
  return status;
}
