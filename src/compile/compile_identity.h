// SPDX-License-Identifier: Apache-2.0
//
// compile: which build of a library a file is, wherever it is.
#ifndef KILN_SRC_COMPILE_COMPILE_IDENTITY_H_
#define KILN_SRC_COMPILE_COMPILE_IDENTITY_H_

#include "kiln/allocator.h"
#include "kiln/status.h"

enum { KILNI_IDENTITY_BYTES = 192 };

// A text that two files share only if their contents are the same; "" where the
// file cannot be read. OUT_OF_MEMORY.
kiln_status_t kilni_compile_identity_of_file(
    kiln_allocator_t allocator, const char* path,
    char out_text[KILNI_IDENTITY_BYTES]);

#endif  // KILN_SRC_COMPILE_COMPILE_IDENTITY_H_
