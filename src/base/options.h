// SPDX-License-Identifier: Apache-2.0
//
// base: reading options structs of other versions of the library.
#ifndef KILN_SRC_BASE_OPTIONS_H_
#define KILN_SRC_BASE_OPTIONS_H_

#include "kiln/status.h"

// Copies the caller's options into `out` (`size` bytes, our struct). NULL is
// all defaults. A smaller struct_size is extended with zeroes; a larger one is
// accepted only if its unknown tail is zero, else it is INCOMPATIBLE. 0, or one
// smaller than the size field itself, is INVALID_ARGUMENT. On failure `out`
// holds the defaults. `name` is the struct's name for the message.
kiln_status_t kilni_options_read(const void* options, const char* name,
                                 size_t size, void* out);

#endif  // KILN_SRC_BASE_OPTIONS_H_
