// SPDX-License-Identifier: Apache-2.0
//
// compile: the public header. What runtime/ opens a compiler with.
#ifndef KILN_SRC_COMPILE_COMPILE_H_
#define KILN_SRC_COMPILE_COMPILE_H_

#include "base/host.h"
#include "base/keep.h"
#include "compile/link_backend.h"
#include "kiln/compile.h"
#include "kiln/link.h"
#include "kiln/locate.h"
#include "kiln/toolkit.h"
#include "table/table.h"

// Which compiler is opened, and how. thread-compatible
typedef struct kilni_compile_compiler_wish_t {
  kiln_toolkit_t* toolkit;  // that finds, checks and loads it
  const char* library;      // a file, or a name for the loader; NULL: a search
  bool trace;               // log every call into it
  bool lazy;                // load it when it is needed
  uint32_t kind;            // KILN_COMPILER_KIND_*
  uint32_t max_concurrent;  // as in kiln_compiler_options_t
  uint64_t memory_bytes;
} kilni_compile_compiler_wish_t;

// Finds and opens a compiler: of several, the first that works. `host` and
// `keep` outlive or are kept by the compiler; they keep the toolkit too.
// `out_found`, if not NULL, receives every copy that the search met, also on
// failure; NULL where a library was named, and where the search itself failed.
kiln_status_t kilni_compile_compiler_open(
    const kiln_host_t* host, kilni_base_keep_t keep,
    const kilni_compile_compiler_wish_t* wish, kiln_locate_set_t** out_found,
    kiln_compiler_t** out_compiler);

// A compiler over a table that the caller has filled and that needs no library
// to stay open: the null provider, a wrapper. It has no include folder.
kiln_status_t kilni_compile_compiler_create(const kiln_host_t* host,
                                            kilni_base_keep_t keep,
                                            const kiln_nvrtc_table_t* table,
                                            kiln_compiler_t** out_compiler);

// The same over a table of libNVVM. It has no device library.
kiln_status_t kilni_compile_compiler_create_nvvm(
    const kiln_host_t* host, kilni_base_keep_t keep,
    const kiln_nvvm_table_t* table, kiln_compiler_t** out_compiler);

// How the search came to the library.
uint32_t kilni_compile_compiler_scope(const kiln_compiler_t* compiler);

// What there is to link with. thread-compatible
typedef struct kilni_compile_linker_wish_t {
  kiln_toolkit_t* toolkit;  // that finds, checks and loads nvJitLink
  const char* library;      // a file, or a name for the loader; NULL: a search
  const char* arch;         // the default architecture; NULL: none
  const kiln_compat_driver_t* driver;  // that will load; NULL: the device's,
                                       // else the one that the toolkit asks
  const kilni_compile_link_backend_t*
      device;                           // the driver's linker; NULL: no device
  kilni_base_keep_t device_keep;        // what that belongs to
  const char* device_library;           // the driver's file; NULL: the driver
                                        // cannot be identified
  bool trace;                           // log every call into nvJitLink
  bool is_soft;                         // the device is the software device
  const kiln_nvjitlink_table_t* table;  // instead of all copies: the null
                                        // provider, a wrapper; NULL
} kilni_compile_linker_wish_t;

// A linker; looks for nothing yet. `host` outlives it, `keep` is kept.
kiln_status_t kilni_compile_linker_create(
    const kiln_host_t* host, kilni_base_keep_t keep,
    const kilni_compile_linker_wish_t* wish, kiln_linker_t** out_linker);

#endif  // KILN_SRC_COMPILE_COMPILE_H_
