// SPDX-License-Identifier: Apache-2.0
//
// cli: one file compiled as `kiln compile` does: through the cache.
//
// `kiln compile` writes the result, `kiln cache warm` only caches it.
#ifndef KILN_SRC_CLI_COMPILE_JOB_H_
#define KILN_SRC_CLI_COMPILE_JOB_H_

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "cli/cli_files.h"
#include "cli/source_options.h"
#include "kiln/runtime.h"

// The rows of the table for compilation options.
#define KILNI_CLI_COMPILE_OPTIONS                                             \
  {"output", "ptx|cubin|ltoir|relocatable",                                   \
   "The output format. Default: by the extension of the output, else ptx.",   \
   false, "ptx cubin ltoir relocatable"},                                     \
      {"arch", "ARCH",                                                        \
       "The architecture, such as sm_90 or compute_80. Required for machine " \
       "code; else compute_75, which every later GPU can load.",              \
       false, NULL},                                                          \
      {"define", "NAME[=VALUE]", "A macro.", true, NULL},                     \
      KILNI_CLI_SOURCE_OPTIONS

// One compilation. one-thread
typedef struct kilni_cli_compile_t {
  const kilni_cli_call_t* call;
  const char* file;
  bool is_ptx;    // linked, and not compiled
  uint32_t kind;  // KILN_COMPILER_KIND_* of what is compiled
  kilni_cli_buffer_t source;
  kilni_cli_source_t asked;
  kiln_compiler_t* compiler;
  kiln_compile_result_t* result;  // NULL for PTX
  kiln_code_t* code;              // what was made
  uint32_t cache;                 // KILN_COMPILE_CACHE_*
  char cache_reason[512];
} kilni_cli_compile_t;

// Reads the options, which the call's table has, and the file. `out` is the
// output's name, whose extension may determine the format; or NULL. Ended by
// deinit, also after a failure.
bool kilni_cli_compile_read(kilni_cli_compile_t* job,
                            const kilni_cli_call_t* call, const char* file,
                            const char* out, kilni_cli_error_t* error);

// Reports what was written, if the name does not imply it.
void kilni_cli_compile_note_name(const char* out, uint32_t format);

// True if one of the options above is given.
bool kilni_cli_compile_is_asked(const kilni_cli_call_t* call);

// Compiles, and shows the compiler's log on standard error. `cache` NULL:
// without.
bool kilni_cli_compile_make(kilni_cli_compile_t* job, kiln_runtime_t* runtime,
                            kiln_cache_t* cache, kilni_cli_error_t* error);

// The headers are known only after compilation: checks that no output is one of
// them. `result` may be NULL.
bool kilni_cli_compile_check_headers(const kiln_compile_result_t* result,
                                     const kilni_cli_files_t* files,
                                     kilni_cli_error_t* error);

void kilni_cli_compile_deinit(kilni_cli_compile_t* job);

#endif  // KILN_SRC_CLI_COMPILE_JOB_H_
