// SPDX-License-Identifier: Apache-2.0
//
// compile: CUDA C++ source to PTX or cubin, by NVRTC.
//
// Needs no GPU, no driver and no device: only NVRTC, which is found by
// kiln_runtime_open_compiler.
#ifndef KILN_COMPILE_H_
#define KILN_COMPILE_H_

#include "kiln/api.h"
#include "kiln/code.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// An open NVRTC. thread-safe
//
// Reference-counted. Compilations from several threads run side by side.
typedef struct kiln_compiler_t kiln_compiler_t;

// Which NVRTC is opened. thread-compatible
typedef struct kiln_compiler_options_t {
  uint32_t struct_size;  // sizeof(kiln_compiler_options_t)
  uint32_t reserved;     // 0

  // The library: a file, or a name for the system loader. Default: what the
  // runtime's context finds (kiln_runtime_toolkit).
  const char* library;
} kiln_compiler_options_t;

// All defaults. Since 0.1.
static inline kiln_compiler_options_t kiln_compiler_options_default(void) {
  kiln_compiler_options_t options = {(uint32_t)sizeof(options), 0, NULL};
  return options;
}

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_compiler_retain(kiln_compiler_t* compiler);
KILN_API void kiln_compiler_release(kiln_compiler_t* compiler);

// NVRTC's version, 13000 is 13.0. Since 0.1.
KILN_API uint32_t kiln_compiler_version(const kiln_compiler_t* compiler);

// The library file. Borrowed. Since 0.1.
KILN_API const char* kiln_compiler_path(const kiln_compiler_t* compiler);

// The folder of the headers that go with it, "" where there is none. Borrowed.
// Since 0.1.
KILN_API const char* kiln_compiler_include_dir(const kiln_compiler_t* compiler);

// True if it can compile for compute capability `arch` (90 is 9.0). Since 0.1.
KILN_API bool kiln_compiler_has_arch(const kiln_compiler_t* compiler,
                                     uint32_t arch);

// How a source is compiled. thread-compatible
//
// Zero in any field is its default. Read during the call only.
typedef struct kiln_compile_options_t {
  uint32_t struct_size;  // sizeof(kiln_compile_options_t)
  uint32_t output;       // KILN_CODE_FORMAT_*. Default: PTX.

  // What messages call the source. Default: "kernel.cu".
  const char* file_name;

  // "sm_90", "compute_80", "sm_90a". Default: compute capability 7.5 for PTX,
  // which every later GPU can load (the compiler's oldest where it has left
  // that behind); for a cubin there is none, and it must be given
  // (INVALID_ARGUMENT).
  const char* arch;

  // Options as NVRTC takes them, one string each, put behind Kiln's own, so
  // that they win where NVRTC lets the last one win.
  const char* const* options;

  // Expressions whose mangled names are wanted: "add<float>".
  const char* const* name_expressions;

  // Folders for #include, in front of the toolkit's.
  const char* const* include_dirs;

  // "NAME" or "NAME=VALUE".
  const char* const* defines;

  uint32_t option_count;
  uint32_t name_expression_count;
  uint32_t include_dir_count;
  uint32_t define_count;

  // KILN_SWITCH_*: the include folder of the compiler's toolkit behind all
  // others. Default: on.
  uint32_t toolkit_include;

  // KILN_SWITCH_*: NVRTC's own cache (13 and later), for which it looks for
  // the driver and asks it. Default: off.
  uint32_t nvrtc_cache;
} kiln_compile_options_t;

// All defaults. Since 0.1.
static inline kiln_compile_options_t kiln_compile_options_default(void) {
  kiln_compile_options_t options = {(uint32_t)sizeof(options),
                                    0,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0};
  return options;
}

// What a compilation gave. thread-safe
//
// Reference-counted; holds copies of everything.
typedef struct kiln_compile_result_t kiln_compile_result_t;

// Compiles `source`. `options` may be NULL.
//
// `*out_result` is made also when compilation failed, so that its log can be
// read; only INVALID_ARGUMENT, LIMIT_EXCEEDED, OUT_OF_MEMORY and INVALID_STATE
// leave it NULL.
//
//   COMPILE_FAILED    the source has errors (the first one is the message), or
//                     an option is none of NVRTC's
//   INVALID_ARGUMENT  an option out of its range, source with a NUL in it
//   LIMIT_EXCEEDED    more than 4,096 entries in a list, an option of more than
//                     1 MiB, a source of more than 256 MiB
//   UNSUPPORTED       a feature that this NVRTC lacks, by name
//
// The caller owns `*out_result`. Leaves locale, context and environment of the
// caller as they were. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_compiler_compile(
    kiln_compiler_t* compiler, kiln_string_view_t source,
    const kiln_compile_options_t* options, kiln_compile_result_t** out_result);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_compile_result_retain(kiln_compile_result_t* result);
KILN_API void kiln_compile_result_release(kiln_compile_result_t* result);

// Everything the compiler said, warnings included; "" if nothing. Borrowed.
// Since 0.1.
KILN_API const char* kiln_compile_result_log(
    const kiln_compile_result_t* result);

// The code, with its format, the arch it was compiled for and the lowered names
// of the name expressions, in their order; NULL where compilation failed.
// Borrowed; retain it to keep it beyond the result. Since 0.1.
KILN_API kiln_code_t* kiln_compile_result_code(
    const kiln_compile_result_t* result);

KILN_EXTERN_C_END

#endif  // KILN_COMPILE_H_
