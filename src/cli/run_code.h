// SPDX-License-Identifier: Apache-2.0
//
// cli: makes a file loadable by a device: compiled and linked if necessary, or
// taken from the cache.
//
// `kiln run` loads it, `kiln cache warm` only caches it.
#ifndef KILN_SRC_CLI_RUN_CODE_H_
#define KILN_SRC_CLI_RUN_CODE_H_

#include "cli/run_request.h"
#include "kiln/image.h"
#include "kiln/program_code.h"
#include "kiln/runtime.h"

// What the steps took. A step that was not done took no time. thread-compatible
typedef struct kilni_cli_code_times_t {
  uint64_t lower_ns;  // from source or program to PTX
  uint64_t link_ns;   // from PTX to machine code, or to find it in the cache
  uint64_t load_ns;   // on the device
} kilni_cli_code_times_t;

// One file being made. one-thread
//
// A GPU gets machine code where there is a cache: PTX is linked to a cubin once
// and not compiled by the driver at every start. The software device gets PTX.
typedef struct kilni_cli_code_t {
  // Set by the caller.
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_cache_t* cache;  // NULL: none
  const char* file;
  kilni_cli_code_kind_t kind;
  uint64_t time_limit_ns;  // of each step; 0: none
  // How a source is compiled; NULL: as it is. Borrowed: if `left` is set, it
  // must stay alive.
  const kiln_compile_options_t* asked;
  const kiln_program_t* program;   // of KILNI_CLI_CODE_PROGRAM
  uint32_t max_ulp;                // of its functions; 0: strict
  const kilni_cli_files_t* files;  // what is written; NULL: nothing

  // Filled in.
  kiln_code_t* text;       // the file itself, or what a compiler made of it
  kiln_code_t* code;       // what the device loads; may be `text`
  uint32_t compile_cache;  // KILN_COMPILE_CACHE_*
  uint32_t link_cache;     // KILN_LINK_CACHE_*
  char compile_reason[512];
  const char* link_reason;       // static
  kiln_program_code_t* lowered;  // of a program
  kiln_image_t* image;           // of its PTX, once asked for; may be NULL
  bool is_image_tried;           // it was asked for
  kilni_cli_code_times_t times;
  bool left;  // a step still runs: nothing can be closed
} kilni_cli_code_t;

// Makes `text` and `code`. Ended by deinit, also after a failure.
bool kilni_cli_code_make(kilni_cli_code_t* code, kilni_cli_error_t* error);

// Makes it and loads it; relevant messages of the loader go to standard error.
// As machine code if the driver is too old for the compiler's PTX.
bool kilni_cli_module_load(kilni_cli_code_t* code, kiln_module_t** out_module,
                           kilni_cli_error_t* error);

// What its PTX says of itself, read once for all kernels and the load; NULL
// where there is none, or a text that only a GPU's driver can read. Borrowed.
const kiln_image_t* kilni_cli_code_image(kilni_cli_code_t* code);

void kilni_cli_code_deinit(kilni_cli_code_t* code);

#endif  // KILN_SRC_CLI_RUN_CODE_H_
