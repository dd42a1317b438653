// SPDX-License-Identifier: Apache-2.0
//
// cli: defaults of the library's entries for what the command omits.
//
// The data is the library's (kiln_library_default); this reads its small
// language: contents of samples, extents, shapes.
#ifndef KILN_SRC_CLI_RUN_DEFAULTS_H_
#define KILN_SRC_CLI_RUN_DEFAULTS_H_

#include "cli/run_request.h"

// Gives --in FILE, --out FILE and --inout FILE the one parameter that they can
// mean: by the entry's table, or by the program where there is none.
bool kilni_cli_defaults_name(kilni_cli_request_t* request,
                             kilni_cli_error_t* error);

// Adds what is not given: numbers and, where no input is given at all, samples.
// Nothing if a parameter is given by its position, which may be the text's.
bool kilni_cli_defaults_take(kilni_cli_request_t* request,
                             kilni_cli_error_t* error);

// The shape of an output that goes with a sample, which the program does not
// define; `type` is the parameter's.
bool kilni_cli_defaults_space(const kilni_cli_request_t* request,
                              kilni_cli_binding_t* binding,
                              kilni_cli_type_t type, kilni_cli_error_t* error);

// The content of a sample; its type is in its spec.
bool kilni_cli_defaults_fill(const kilni_cli_request_t* request,
                             kilni_cli_binding_t* binding,
                             kilni_cli_error_t* error);

// Numbers that are extents of inputs, once these are read; reports the choice
// on standard error. INVALID_ARGUMENT if given values contradict the shapes of
// files, which would give a wrong result.
bool kilni_cli_defaults_settle(kilni_cli_request_t* request,
                               kilni_cli_error_t* error);

// Rank and extents of an output of `shape->dims[0]` elements, if the table has
// them and the count matches; else it is unchanged.
void kilni_cli_defaults_shape(const kilni_cli_request_t* request,
                              const char* parameter, kilni_cli_shape_t* shape);

#endif  // KILN_SRC_CLI_RUN_DEFAULTS_H_
