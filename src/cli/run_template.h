// SPDX-License-Identifier: Apache-2.0
//
// cli: kernels of CUDA C++ that are templates. Pure.
//
// A compiler makes code only for their instances, so a kernel in the source
// need not exist in the code.
#ifndef KILN_SRC_CLI_RUN_TEMPLATE_H_
#define KILN_SRC_CLI_RUN_TEMPLATE_H_

#include "cli/run_entry.h"

// The first kernel of `source` that is a template, named `entry`, or with NULL
// any: an instance of it as written in source, "ns::scale<float, 1>". The
// source is read as far as needed.
bool kilni_cli_template_find(const char* source, size_t size,
                             const char* entry_or_null,
                             char out[KILNI_CLI_ENTRY_SHOWN]);

// If `error` is about missing kernels of a CUDA C++ file, and the file has a
// matching template: adds how to name an instance, after the words `where`
// ("--entry ") and between two `quote` characters.
void kilni_cli_template_fix(const char* file, const char* entry_or_null,
                            const char* where, char quote,
                            kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_TEMPLATE_H_
