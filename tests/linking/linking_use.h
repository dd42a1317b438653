// SPDX-License-Identifier: Apache-2.0
//
// tests: what is done with the results of links, and with lists of libraries.
#ifndef KILN_TESTS_LINKING_LINKING_USE_H_
#define KILN_TESTS_LINKING_LINKING_USE_H_

#include "kiln/kiln.h"

// Prints and frees a failure.
bool linking_ok(kiln_status_t status, const char* what);

// Whether the kernel "k" of PTX gives 2 * i + 40 on the software device.
bool linking_runs(kiln_runtime_t* runtime, const kiln_code_t* code);

// Whether machine code has the kernel "k".
bool linking_has_kernel(const kiln_code_t* code);

// The paths in a variable, with colons between them, at most `most`; one that
// is NULL, for the machine's own, where it is not set.
size_t linking_split(const char* variable, char* copy, size_t space,
                     const char** out, size_t most);

#endif  // KILN_TESTS_LINKING_LINKING_USE_H_
