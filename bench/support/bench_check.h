// SPDX-License-Identifier: Apache-2.0
//
// bench: what a benchmark takes for granted: it ends the program where that is
// not so. And an allocator that counts.
#ifndef KILN_BENCH_SUPPORT_BENCH_CHECK_H_
#define KILN_BENCH_SUPPORT_BENCH_CHECK_H_

#include <stdbool.h>
#include <stdint.h>

#include "kiln/allocator.h"
#include "kiln/status.h"

// Exit code 1 with `what` on standard error unless `good`.
void bench_need(bool good, const char* what);
#ifdef __clang_analyzer__  // which reads one file at a time
#define bench_need(good, what)           \
  do {                                   \
    bool good_ = (good);                 \
    bench_need(good_, what);             \
    if (!good_) __builtin_unreachable(); \
  } while (0)
#endif
// The same with the status's text unless it is OK. Ends it.
void bench_expect(kiln_status_t status);

// That of the C library, which adds one to `*calls` at each use.
kiln_allocator_t bench_counting_allocator(uint64_t* calls);

#endif  // KILN_BENCH_SUPPORT_BENCH_CHECK_H_
