// SPDX-License-Identifier: Apache-2.0
//
// compile: what the files of this room share. Not a door.
#ifndef KILN_SRC_COMPILE_COMPILE_INSIDE_H_
#define KILN_SRC_COMPILE_COMPILE_INSIDE_H_

#include <stdatomic.h>

#include "compile/compile.h"
#include "image/image.h"
#include "table/table.h"

enum {
  KILNI_COMPILE_MAX_OPTIONS = 4096,  // strings given to NVRTC
  KILNI_COMPILE_MAX_OPTION_BYTES = 1 << 20,
  KILNI_COMPILE_MAX_SOURCE_BYTES = 256 << 20,
  KILNI_COMPILE_ARCH_BYTES = 32,
};

struct kiln_compiler_t {
  const kiln_host_t* host;
  kilni_keep_t keep;
  atomic_uint references;
  uint32_t scope;
  kiln_nvrtc_table_t table;
  kilni_dynlib_t* library;  // NULL: the table is somebody else's
  bool traced;              // `table` is a trace wrapper of ours
  char* path;
  char* include_dir;   // "" where there is none
  char* include_dir2;  // libcu++'s, where it lies elsewhere; ""
  int* archs;          // ascending
  size_t arch_count;
};

struct kiln_compile_result_t {
  kiln_allocator_t allocator;
  kilni_keep_t keep;
  atomic_uint references;
  uint32_t format;
  char* log;
  kiln_code_t* code;  // NULL where compilation failed
  char arch[KILNI_COMPILE_ARCH_BYTES];
};

// An empty result that keeps what the compiler keeps.
kiln_status_t kilni_compile_result_create(const kiln_compiler_t* compiler,
                                          kiln_compile_result_t** out_result);

#endif  // KILN_SRC_COMPILE_COMPILE_INSIDE_H_
