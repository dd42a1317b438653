// SPDX-License-Identifier: Apache-2.0
//
// base: names of kernels as C++ writes them.
#ifndef KILN_SRC_BASE_DEMANGLE_H_
#define KILN_SRC_BASE_DEMANGLE_H_

#include <stdbool.h>
#include <stddef.h>

// Writes what `name` means by the Itanium C++ ABI into `out`, of `capacity`
// bytes with the NUL: "scale(float*, int)" of "_Z5scalePfi", or "scale" without
// its parameters. False, with "" in `out`, for a name that is not mangled, has
// something in it that is not read, or does not fit.
bool kilni_base_demangle(const char* name, bool with_parameters,
                         size_t capacity, char* out);

#endif  // KILN_SRC_BASE_DEMANGLE_H_
