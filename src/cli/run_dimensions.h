// SPDX-License-Identifier: Apache-2.0
//
// cli: in how many dimensions a kernel counts. Pure.
#ifndef KILN_SRC_CLI_RUN_DIMENSIONS_H_
#define KILN_SRC_CLI_RUN_DIMENSIONS_H_

#include <stdint.h>

#include "kiln/api.h"

// 3, 2 or 1: the last dimension in which the kernel `entry` of a PTX text, or
// any function beside it, reads where its thread or its block is. The text is
// taken to be right: a device has loaded it.
uint32_t kilni_cli_dimensions_of(kiln_bytes_view_t text, const char* entry);

#endif  // KILN_SRC_CLI_RUN_DIMENSIONS_H_
