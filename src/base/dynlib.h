// SPDX-License-Identifier: Apache-2.0
//
// base: shared libraries opened at run time.
#ifndef KILN_SRC_BASE_DYNLIB_H_
#define KILN_SRC_BASE_DYNLIB_H_

#include "kiln/allocator.h"
#include "kiln/status.h"

// An open library. thread-safe
typedef struct kilni_base_dynlib_t kilni_base_dynlib_t;

// Opens a file name (searched by the system loader) or a path. NOT_FOUND with
// the loader's own sentence where there is none.
// The code stays mapped until the process ends, also after close.
kiln_status_t kilni_base_dynlib_open(kiln_allocator_t allocator,
                                     const char* name,
                                     kilni_base_dynlib_t** out_library);

enum {
  // Later libraries find its symbols too.
  KILNI_DYNLIB_GLOBAL = 1u << 0,
  // Its own symbols before those of the process.
  KILNI_DYNLIB_DEEPBIND = 1u << 1,
};

// The same with KILNI_DYNLIB_* flags.
kiln_status_t kilni_base_dynlib_open_with(kiln_allocator_t allocator,
                                          const char* name, uint32_t flags,
                                          kilni_base_dynlib_t** out_library);
void kilni_base_dynlib_close(kilni_base_dynlib_t* library);

// The address of a symbol; NULL if it is not there.
void* kilni_base_dynlib_symbol(const kilni_base_dynlib_t* library,
                               const char* name);

// The file that the loader took, for messages; "" if it cannot be asked.
const char* kilni_base_dynlib_path(const kilni_base_dynlib_t* library);

// What the system's loader calls it, for other libraries' calls; of no use for
// a check of what it is.
void* kilni_base_dynlib_handle(const kilni_base_dynlib_t* library);

// ---- What is mapped already ----

// An object of this process, as the loader knows it. thread-compatible
//
// Borrowed during the call that hands it out.
typedef struct kilni_base_dynlib_mapped_t {
  const char* path;    // as the loader spells it; "" for the program itself
  const char* soname;  // "" if it has none
  const void* inside;
} kilni_base_dynlib_mapped_t;

// A library that the object was linked with, by its SONAME, in order from 0;
// NULL after the last.
const char* kilni_base_dynlib_mapped_need(
    const kilni_base_dynlib_mapped_t* mapped, uint32_t index);

// Where it has its libraries looked for, as it is written in the file: its
// DT_RUNPATH, or its older DT_RPATH; "" without.
const char* kilni_base_dynlib_mapped_runpath(
    const kilni_base_dynlib_mapped_t* mapped);
const char* kilni_base_dynlib_mapped_rpath(
    const kilni_base_dynlib_mapped_t* mapped);

// True if an address is in the object: of a function, in the object that
// contains its code.
bool kilni_base_dynlib_mapped_holds(const kilni_base_dynlib_mapped_t* mapped,
                                    const void* address);

// Calls `fn` for each object that is mapped into the process, in the order they
// came, the program first. Reads memory only: no file is touched and nothing is
// opened. `fn` runs under the loader's lock, so it opens nothing either;
// it returns false to stop.
typedef bool (*kilni_base_dynlib_mapped_fn_t)(
    const kilni_base_dynlib_mapped_t* mapped, void* user);
void kilni_base_dynlib_each_mapped(kilni_base_dynlib_mapped_fn_t fn,
                                   void* user);

#endif  // KILN_SRC_BASE_DYNLIB_H_
