// SPDX-License-Identifier: Apache-2.0
//
// compile: what the files of this module share; private to it.
#ifndef KILN_SRC_COMPILE_COMPILE_INSIDE_H_
#define KILN_SRC_COMPILE_COMPILE_INSIDE_H_

#include <stdatomic.h>

#include "base/keep.h"
#include "base/thread.h"
#include "compile/compile_gate.h"
#include "compile/compile_line.h"
#include "kiln/locate.h"
#include "kiln/toolkit.h"
#include "table/nvrtc_table.h"
#include "table/nvvm_table.h"

enum {
  KILNI_COMPILE_MAX_OPTIONS = 4096,  // strings given to a compiler
  KILNI_COMPILE_MAX_OPTION_BYTES = 1 << 20,
  KILNI_COMPILE_MAX_SOURCE_BYTES = 256 << 20,
  KILNI_COMPILE_ARCH_BYTES = 32,
  KILNI_COMPILE_IDENTITY_BYTES = 256,
};

struct kiln_compiler_t {
  const kiln_host_t* host;
  kilni_base_keep_t keep;
  atomic_uint references;
  uint32_t kind;
  uint32_t scope;
  uint32_t file_line;  // the release that the file states; 0 unknown
  atomic_bool loaded;  // the fields down to `archs` are there
  kilni_base_mutex_t
      lock;  // of loading, and of the heap for precompiled headers
  bool has_lock;
  kiln_nvrtc_table_t table;
  kiln_nvvm_table_t nvvm;
  kilni_base_dynlib_t* library;  // NULL: the table is the caller's
  bool traced;                   // the table is a trace wrapper of ours
  int* archs;                    // ascending
  size_t arch_count;
  uint32_t ir_version;
  char* path;
  char* include_dir;     // "" where there is none
  char* include_dir2;    // libcu++'s, where it is elsewhere; ""
  bool has_cccl;         // libcu++'s headers are in one of them
  char* device_file;     // libNVVM's device library; ""
  uint8_t* device_code;  // what is in it
  size_t device_bytes;
  kilni_compile_gate_t gate;
  // Of one that is not loaded yet.
  kiln_toolkit_t* toolkit;  // `keep` keeps it
  kiln_locate_item_t* located;
  // What goes with it and is not checked against it yet. Owned.
  kiln_locate_item_t* unchecked[2];
  uint32_t unchecked_count;
  bool trace;
  // What took its place where it could not be loaded.
  _Atomic(kiln_compiler_t*) instead;
  // Identifies the compiler, wherever it is; "" where that is unknown.
  char identity[KILNI_COMPILE_IDENTITY_BYTES];
};

struct kiln_compile_result_t {
  kiln_allocator_t allocator;
  kilni_base_keep_t keep;
  atomic_uint references;
  uint32_t format;
  uint32_t pch;
  uint32_t cache;  // KILN_COMPILE_CACHE_*
  char* log;
  char* note;
  char* cache_reason;
  kilni_compile_line_t line;
  kilni_compile_line_t headers;
  kiln_code_t* code;  // NULL where compilation failed
  char arch[KILNI_COMPILE_ARCH_BYTES];
};

// An empty result that keeps what the compiler keeps.
kiln_status_t kilni_compile_result_create(const kiln_compiler_t* compiler,
                                          kiln_compile_result_t** out_result);

// ---- Loading ----

// "NVRTC" or "libNVVM".
const char* kilni_compile_compiler_word(const kiln_compiler_t* compiler);

// Identifies the compiler, wherever it is.
kiln_status_t kilni_compile_compiler_identify(kiln_compiler_t* compiler);

// Loads the library of one that is not. Under its lock.
kiln_status_t kilni_compile_compiler_load(kiln_compiler_t* compiler);

// Loads a compiler that is not; gives the one to use, which is another where
// this one does not work. Borrowed.
kiln_status_t kilni_compile_compiler_ready(kiln_compiler_t* compiler,
                                           kiln_compiler_t** out_ready);

// ---- The architecture ----

// The value of an architecture that is among the raw options; NULL if none.
const char* kilni_compile_raw_arch(const kiln_compile_options_t* options);

// Decides the architecture of the result, and notes what was changed.
kiln_status_t kilni_compile_arch(const kiln_compiler_t* compiler,
                                 const kiln_compile_options_t* options,
                                 kiln_compile_result_t* result);

// ---- Running ----

// A compilation. one-thread
typedef struct kilni_compile_job_t {
  kiln_compiler_t* compiler;
  kiln_string_view_t source;
  const kiln_compile_options_t* options;
  kiln_compile_result_t* result;
  const char* name;
  uint64_t header_bytes;  // of files that it includes; 0: not known
} kilni_compile_job_t;

bool kilni_compile_is_cancelled(const kiln_compile_options_t* options);
kiln_status_t kilni_compile_cancelled(const kilni_compile_job_t* job);

// One through each library: fills log, code, names of the result.
kiln_status_t kilni_compile_nvrtc(const kilni_compile_job_t* job);
kiln_status_t kilni_compile_nvvm(const kilni_compile_job_t* job);

// What was taken out of a program, as the code of the result.
kiln_status_t kilni_compile_take(const kilni_compile_job_t* job,
                                 kiln_bytes_view_t bytes,
                                 const kiln_code_name_t* names, uint32_t count);

// The status of a library that refused: the first error of its log, and of
// NVRTC (`job` not NULL) what to do about the commonest.
kiln_status_t kilni_compile_refused(kiln_status_t native, bool of_source,
                                    const char* log,
                                    const kilni_compile_job_t* job);

// The whole of one compilation after all checks: plan, gate, library.
kiln_status_t kilni_compile_run(const kilni_compile_job_t* job);

// The memory that it may take, for the compiler's budget.
uint64_t kilni_compile_estimate(const kilni_compile_job_t* job);

// Looks in the cache first.
kiln_status_t kilni_compile_cached(const kilni_compile_job_t* job);

#endif  // KILN_SRC_COMPILE_COMPILE_INSIDE_H_
