// SPDX-License-Identifier: Apache-2.0
//
// cli: an entry of the library as its plan: all its launches, with memory of
// their own, in place of the single program of that name.
#ifndef KILN_SRC_CLI_RUN_LIBRARY_H_
#define KILN_SRC_CLI_RUN_LIBRARY_H_

#include "cli/run_session.h"

// Reads the request's program, a file or lib:NAME, with its --define values.
// Determines whether the request is for a plan: lib:NAME without some parameter
// of the program NAME, or with an option that no text has. Then
// `request->whole` is true, the program is the unchanged text, and --define is
// read as the plan's options.
bool kilni_cli_library_read(kilni_cli_request_t* request,
                            const kilni_cli_call_t* call,
                            kilni_cli_error_t* error);

// Whether --define NAME is an option of plans only, which no text has.
bool kilni_cli_library_is_own(const char* name, size_t size);

// For lib:NAME: whether its plan accepts the definitions that it uses, by the
// plan's own check. True for a file and for a part of an entry.
bool kilni_cli_library_check(const char* file, const kilni_cli_call_t* call,
                             kilni_cli_error_t* error);

// For a request with all parameters of the program and with --define of
// something that a plan also has: it is for the plan if that takes the same
// parameters. The session is open.
bool kilni_cli_library_decide(kilni_cli_session_t* session,
                              kilni_cli_error_t* error);

// Reads the inputs, makes the plan, which the caller owns, and its buffers.
bool kilni_cli_library_prepare(kilni_cli_session_t* session,
                               kilni_cli_plan_t* plan,
                               kiln_library_plan_t** out_entry,
                               kilni_cli_error_t* error);

// One run, and waits for it, no longer than --time-limit; it may still run
// then, and `session->leave_at_once` is true.
bool kilni_cli_library_wait(kilni_cli_session_t* session,
                            kiln_library_plan_t* entry,
                            const kiln_binding_t* bindings, uint32_t count,
                            kilni_cli_error_t* error);

// All of it: prepares, runs and waits.
bool kilni_cli_library_run(kilni_cli_session_t* session, kilni_cli_plan_t* plan,
                           kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_LIBRARY_H_
