// SPDX-License-Identifier: Apache-2.0
//
// cli: reports all missing parameters of a program at once, with a command that
// gives them.
#ifndef KILN_SRC_CLI_RUN_MISSING_H_
#define KILN_SRC_CLI_RUN_MISSING_H_

#include "cli/run_plan.h"
#include "cli/run_request.h"

// A parameter of the program or of the plan. thread-compatible
typedef struct kilni_cli_wanted_t {
  const char* name;
  uint32_t role;  // KILN_PROGRAM_ROLE_*
  uint32_t type;  // KILN_PROGRAM_TYPE_*
  bool is_counted;
} kilni_cli_wanted_t;

// All of them, and what determines their element counts. one-thread
typedef struct kilni_cli_missing_t {
  const kilni_cli_request_t* request;
  kilni_cli_wanted_t wanted[KILNI_CLI_MAX_PARAMS];
  kiln_program_size_t known[KILNI_CLI_MAX_PARAMS];  // by what is given
  uint32_t count;
  // Exactly one of these.
  const kiln_program_t* program;
  const kiln_library_plan_t* plan;
} kilni_cli_missing_t;

// INVALID_ARGUMENT if one is not given: the message names all, the fix is a
// command to copy.
bool kilni_cli_missing_check(const kilni_cli_missing_t* missing,
                             kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_MISSING_H_
