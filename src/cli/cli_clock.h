// SPDX-License-Identifier: Apache-2.0
//
// cli: a monotonic clock.
#ifndef KILN_SRC_CLI_CLI_CLOCK_H_
#define KILN_SRC_CLI_CLI_CLOCK_H_

#include <stdint.h>

// Monotonic nanoseconds.
uint64_t kilni_cli_now_ns(void);

#endif  // KILN_SRC_CLI_CLI_CLOCK_H_
