// SPDX-License-Identifier: Apache-2.0
//
// library: runs of plans on the software device, and inputs for them.
#ifndef KILN_TESTS_UNIT_LIBRARY_LIBRARY_KIT_H_
#define KILN_TESTS_UNIT_LIBRARY_LIBRARY_KIT_H_

#include "dispatch_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(KILNI_SANITIZED)
enum { KIT_LESS = 10 };
#else
enum { KIT_LESS = 1 };
#endif

// What every entry is run with.
static const uint32_t kSizes[] = {
    0, 1, 31, 32, 33, 1023, 1024, 1025, 100003 / KIT_LESS};
enum { SIZES = sizeof(kSizes) / sizeof(kSizes[0]) };

static inline uint64_t kit_next(uint64_t* state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline void* kit_zeroes(uint64_t count, size_t bytes) {
  void* data = calloc((size_t)count + 1, bytes);
  assert_non_null(data);
  return data;
}

static inline kiln_library_plan_t* kit_plan(
    dispatch_kit_t* kit, const char* name,
    const kiln_library_options_t* options) {
  kiln_library_plan_t* plan = NULL;
  kiln_status_t status =
      kiln_library_plan_create(kit->dispatcher, name, options, &plan);
  if (status != NULL) fail_msg("%s: %s", name, kiln_status_message(status));
  return plan;
}

enum { KIT_ARGUMENTS = 8 };

// A buffer of a run. one-thread
typedef struct kit_argument_t {
  const void* data;  // that it starts with; NULL: 0xa5 everywhere
  void* out;         // what it holds afterwards; NULL: nobody asks
  uint64_t bytes;
} kit_argument_t;

// Runs a plan on buffers, with `scalars` behind them.
static inline void kit_run(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                           const kit_argument_t* arguments, uint32_t count,
                           const kiln_binding_t* scalars,
                           uint32_t scalar_count) {
  kiln_binding_t bindings[2 * KIT_ARGUMENTS];
  kiln_resident_t residents[KIT_ARGUMENTS];
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bytes = arguments[i].bytes;
    void* given = kit_zeroes(bytes, 1);
    memset(given, 0xa5, (size_t)bytes);
    if (arguments[i].data != NULL) {
      memcpy(given, arguments[i].data, (size_t)bytes);
    }
    residents[i] = dispatch_kit_resident(kit, bytes, given);
    bindings[i] = kiln_bind_resident(residents[i]);
    free(given);
  }
  for (uint32_t i = 0; i < scalar_count; i++) {
    bindings[count + i] = scalars[i];
  }
  kiln_status_t status =
      kiln_library_plan_run(plan, NULL, bindings, count + scalar_count);
  if (status != NULL) {
    char text[2048];
    kiln_status_format(status, sizeof(text), text, NULL);
    fail_msg("%s", text);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (arguments[i].out != NULL) {
      dispatch_kit_fetch(kit, residents[i], arguments[i].bytes,
                         arguments[i].out);
    }
    assert_null(kiln_resident_free(kit->dispatcher, residents[i]));
  }
}

#endif  // KILN_TESTS_UNIT_LIBRARY_LIBRARY_KIT_H_
