// SPDX-License-Identifier: Apache-2.0
//
// cli: numpy's .npy format. Pure: bytes in, array out, and back.
#ifndef KILN_SRC_CLI_CLI_NPY_H_
#define KILN_SRC_CLI_CLI_NPY_H_

#include "cli/cli_array.h"

// Maximum header size; numpy's own headers are a hundred bytes or so.
#define KILNI_CLI_NPY_MAX_HEADER 65536

// Reads versions 1 to 3, C order, little-endian numbers and truth values.
bool kilni_cli_npy_read(const uint8_t* data, size_t size,
                        kilni_cli_array_t* out, kilni_cli_error_t* error);

// Appends version 1.0. UNSUPPORTED for a type that numpy has no name for.
bool kilni_cli_npy_write(const kilni_cli_array_t* array,
                         kilni_cli_buffer_t* out, kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CLI_NPY_H_
