// SPDX-License-Identifier: Apache-2.0
//
// cli: what a program defines about its own run: types, lengths, work size.
#ifndef KILN_SRC_CLI_RUN_PROGRAM_H_
#define KILN_SRC_CLI_RUN_PROGRAM_H_

#include "cli/run_plan.h"
#include "cli/run_request.h"
#include "kiln/program.h"
#include "kiln/program_code.h"

// Whether a parameter of that role may be given this way: what is only read
// cannot be an output.
bool kilni_cli_program_check_role(const kilni_cli_binding_t* b, uint32_t role,
                                  const char* name, kilni_cli_error_t* error);

// Whether no launch option is given that a program determines itself.
bool kilni_cli_program_launch(const kilni_cli_request_t* request,
                              kilni_cli_error_t* error);

// Gives raw input files the element types that the program declares: before
// they are read.
bool kilni_cli_program_types(kilni_cli_request_t* request,
                             kilni_cli_error_t* error);

// Replaces the fix of an error: the file of `b` is of another type than that of
// the program's parameter `name`.
void kilni_cli_program_fix_type(const kilni_cli_request_t* r,
                                const kilni_cli_binding_t* b, const char* name,
                                uint32_t type, kilni_cli_error_t* error);

// The same with that --define, to be added or written; NULL: there is none.
void kilni_cli_program_fix_define(const kilni_cli_request_t* r,
                                  const kilni_cli_binding_t* binding,
                                  const char* verb, const char* define,
                                  const char* name, uint32_t type,
                                  kilni_cli_error_t* error);

// Computes, once inputs are read, the lengths of outputs without one, and the
// work size.
bool kilni_cli_program_sizes(kilni_cli_request_t* request,
                             kilni_cli_error_t* error);

// The facts about the kernel, from its program.
void kilni_cli_program_facts(const kiln_program_t* program,
                             const kiln_program_code_t* code,
                             kilni_cli_kernel_t* out_facts);

// The launch's shape by the program's work size.
bool kilni_cli_program_shape(kilni_cli_request_t* request,
                             const kiln_program_code_t* code,
                             kilni_cli_plan_t* plan, kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_PROGRAM_H_
