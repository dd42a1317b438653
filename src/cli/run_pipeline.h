// SPDX-License-Identifier: Apache-2.0
//
// cli: a plan as a pipeline with resident buffers.
//
// The code is made by run_code.h, with its limits and its reports about the
// cache; from there on it is a kernel with a description, whatever the file
// was.
#ifndef KILN_SRC_CLI_RUN_PIPELINE_H_
#define KILN_SRC_CLI_RUN_PIPELINE_H_

#include "cli/run_session.h"

// Makes the session's dispatcher, with telemetry if requested.
bool kilni_cli_dispatcher_open(kilni_cli_session_t* session,
                               kilni_cli_error_t* error);

// Makes a resident buffer for each slot that is one, with its content.
bool kilni_cli_residents_make(kilni_cli_session_t* session,
                              const kilni_cli_plan_t* plan,
                              kilni_cli_error_t* error);
void kilni_cli_residents_free(kilni_cli_session_t* session);

// Makes the pipeline of the session's kernel.
bool kilni_cli_pipeline_make(kilni_cli_session_t* session,
                             const kilni_cli_plan_t* plan,
                             kilni_cli_error_t* error);

// One binding for each slot of the plan except structs, which the pipeline has;
// returns the count.
uint32_t kilni_cli_pipeline_bindings(const kilni_cli_session_t* session,
                                     const kilni_cli_plan_t* plan,
                                     kiln_binding_t* out_bindings);

// Work and grid of a dispatch; false where there is no work.
bool kilni_cli_pipeline_options(const kilni_cli_session_t* session,
                                const kilni_cli_plan_t* plan,
                                kiln_dispatch_options_t* out_options);

// Appends the counters as text, with the device as a label.
bool kilni_cli_telemetry_text(const kilni_cli_session_t* session,
                              kilni_cli_telemetry_t format,
                              kilni_cli_buffer_t* out,
                              kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_PIPELINE_H_
