// SPDX-License-Identifier: Apache-2.0
//
// cli: kernels of CUDA C++ that are templates. Pure.
//
// A compiler makes code only of their instances, so that a kernel that is there
// to be read is not there to be run.
#ifndef KILN_SRC_CLI_RUN_TEMPLATE_H_
#define KILN_SRC_CLI_RUN_TEMPLATE_H_

#include "cli/run_entry.h"

// The first kernel of `source` that is a template, called as `entry` is, or
// with NULL any: an instance of it as the source would write it,
// "ns::scale<float, 1>". The source is read as far as this needs.
bool kilni_cli_template_find(const char* source, size_t size,
                             const char* entry_or_null,
                             char out[KILNI_CLI_ENTRY_SHOWN]);

// Where `error` is of kernels of the file of CUDA C++ that are not there, and
// the file has a template that can be meant: how to name an instance, after the
// words `where` ("--entry ") and between two of `quote`.
void kilni_cli_template_fix(const char* file, const char* entry_or_null,
                            const char* where, char quote,
                            kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_TEMPLATE_H_
