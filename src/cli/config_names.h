// SPDX-License-Identifier: Apache-2.0
//
// cli: the components of `kiln config`. Pure: the catalog and a few rows of
// data.
#ifndef KILN_SRC_CLI_CONFIG_NAMES_H_
#define KILN_SRC_CLI_CONFIG_NAMES_H_

#include "cli/cli_pieces.h"

// What one operand names. thread-compatible
typedef struct kilni_cli_config_component_t {
  char name[KILNI_CLI_NAME_BYTES];  // "nvrtc", "headers", "cudart_static"
  kilni_cli_piece_t pieces[2];
  size_t piece_count;
  bool wants_runtime_headers;  // its own headers include the runtime's
} kilni_cli_config_component_t;

// Reads "nvrtc" (a library with its headers), "cudart_static", "headers",
// "cuda" (the driver, to link against), "nvcc", or "KIND:NAME" (that alone).
// With `prefer_static`, a library is its static one.
bool kilni_cli_config_component_read(kilni_cli_config_component_t* component,
                                     const char* text, bool prefer_static,
                                     kilni_cli_error_t* error);

// What a static library is linked with: names of static libraries, and flags
// that begin with "-". One string, separated by spaces; "" for nothing.
const char* kilni_cli_config_static_needs(const char* name);

#endif  // KILN_SRC_CLI_CONFIG_NAMES_H_
