// SPDX-License-Identifier: Apache-2.0
//
// cli: PNG pictures, through libpng. Bytes in, array out, and back.
#ifndef KILN_SRC_CLI_CLI_PNG_H_
#define KILN_SRC_CLI_CLI_PNG_H_

#include "cli/cli_array.h"

// Reads gray, gray with alpha, RGB, RGBA and palettes into u8[h,w] or
// u8[h,w,c]. 16 bits a sample are UNSUPPORTED.
bool kilni_cli_png_read(const uint8_t* data, size_t size,
                        kilni_cli_array_t* out, kilni_cli_error_t* error);

// Appends an 8-bit picture of u8[h,w] or u8[h,w,c], `c` from 1 to 4.
bool kilni_cli_png_write(const kilni_cli_array_t* array,
                         kilni_cli_buffer_t* out, kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CLI_PNG_H_
