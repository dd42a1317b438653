// SPDX-License-Identifier: Apache-2.0
//
// base: shared libraries opened at run time.
#ifndef KILN_SRC_BASE_DYNLIB_H_
#define KILN_SRC_BASE_DYNLIB_H_

#include "kiln/allocator.h"
#include "kiln/status.h"

// An open library. thread-safe
typedef struct kilni_dynlib_t kilni_dynlib_t;

// Opens a file name (searched by the system loader) or a path. NOT_FOUND with
// the loader's own sentence where there is none.
// The code stays mapped until the process ends, also after close.
kiln_status_t kilni_dynlib_open(kiln_allocator_t allocator, const char* name,
                                kilni_dynlib_t** out_library);
void kilni_dynlib_close(kilni_dynlib_t* library);

// The address of a symbol; NULL if it is not there.
void* kilni_dynlib_symbol(const kilni_dynlib_t* library, const char* name);

// The file that the loader took, for messages; "" if it cannot be asked.
const char* kilni_dynlib_path(const kilni_dynlib_t* library);

#endif  // KILN_SRC_BASE_DYNLIB_H_
