// SPDX-License-Identifier: Apache-2.0
//
// cli: an entry of the library as its plan: all its launches, with memory of
// their own, in place of the one program that bears its name.
#ifndef KILN_SRC_CLI_RUN_LIBRARY_H_
#define KILN_SRC_CLI_RUN_LIBRARY_H_

#include "cli/run_session.h"

// Finds out whether the request is for a plan: lib:NAME without some parameter
// of the program NAME. Then `request->whole` is true, and --define is read as
// the plan's options.
bool kilni_cli_library_options(kilni_cli_request_t* request,
                               const kilni_cli_call_t* call,
                               kilni_cli_error_t* error);

// Reads the inputs, makes the plan, runs it and waits for it.
bool kilni_cli_library_run(kilni_cli_session_t* session, kilni_cli_plan_t* plan,
                           kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_LIBRARY_H_
