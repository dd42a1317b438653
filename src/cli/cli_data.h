// SPDX-License-Identifier: Apache-2.0
//
// cli: data files by extension.
#ifndef KILN_SRC_CLI_CLI_DATA_H_
#define KILN_SRC_CLI_CLI_DATA_H_

#include "cli/cli_array.h"
#include "cli/cli_literal.h"

// .npy, .pgm, .ppm and .png by the name's end, in either case; anything else
// is raw bytes.
typedef enum kilni_cli_format_t {
  KILNI_CLI_FORMAT_RAW = 0,
  KILNI_CLI_FORMAT_NPY,
  KILNI_CLI_FORMAT_PGM,
  KILNI_CLI_FORMAT_PPM,
  KILNI_CLI_FORMAT_PNG
} kilni_cli_format_t;

kilni_cli_format_t kilni_cli_format_of(const char* path);

// Reads the file `path`. `spec` gives element type and shape of raw bytes
// (u8 where it gives none); on a file that has its own it must agree.
bool kilni_cli_data_read(const char* path, const kilni_cli_spec_t* spec,
                         kilni_cli_array_t* out, kilni_cli_error_t* error);

// INVALID_ARGUMENT if an array of this shape cannot be written to `path`.
bool kilni_cli_data_check(const char* path, const kilni_cli_shape_t* shape,
                          kilni_cli_error_t* error);

// Appends the contents for the file `path`.
bool kilni_cli_data_encode(const char* path, const kilni_cli_array_t* array,
                           kilni_cli_buffer_t* out, kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CLI_DATA_H_
