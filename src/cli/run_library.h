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

// Whether --define NAME is an option of plans alone, which no text has.
bool kilni_cli_library_is_own(const char* name, size_t size);

// For a request with all parameters of the program and with --define of what a
// plan has, too: it is for the plan if that takes the same parameters. The
// session is open.
bool kilni_cli_library_decide(kilni_cli_session_t* session,
                              kilni_cli_error_t* error);

// Reads the inputs, makes the plan, runs it and waits for it.
bool kilni_cli_library_run(kilni_cli_session_t* session, kilni_cli_plan_t* plan,
                           kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_LIBRARY_H_
