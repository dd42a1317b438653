// SPDX-License-Identifier: Apache-2.0
//
// cli: a monotonic clock.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli_clock.h"

#include <time.h>

uint64_t kilni_cli_now_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
