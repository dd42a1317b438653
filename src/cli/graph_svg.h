// SPDX-License-Identifier: Apache-2.0
//
// cli: DOT made into SVG by Graphviz.
#ifndef KILN_SRC_CLI_GRAPH_SVG_H_
#define KILN_SRC_CLI_GRAPH_SVG_H_

#include "cli/cli_buffer.h"

// UNSUPPORTED, naming the package, if the program `dot` is not on the PATH.
bool kilni_cli_svg_check(kilni_cli_error_t* error);

// Runs `dot -Tsvg` and adds what it writes to `out`.
bool kilni_cli_svg_make(const kilni_cli_buffer_t* dot, kilni_cli_buffer_t* out,
                        kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_GRAPH_SVG_H_
