// SPDX-License-Identifier: Apache-2.0
//
// base: names of C++ functions as their source has them.
#ifndef KILN_SRC_BASE_DEMANGLE_H_
#define KILN_SRC_BASE_DEMANGLE_H_

#include <stdbool.h>
#include <stddef.h>

// Writes the name and the parameters of the function that `mangled` stands for
// by the Itanium C++ ABI: "_Z5scalePfi" is "scale(float*, int)". What it
// returns is left out. For anything else, a function's local class, a lambda, a
// name that is no C++, it is false and `out_text` is a copy of the name. Cut
// off at `capacity`.
bool kilni_demangle(const char* mangled, char* out_text, size_t capacity);

#endif  // KILN_SRC_BASE_DEMANGLE_H_
