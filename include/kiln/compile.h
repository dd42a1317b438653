// SPDX-License-Identifier: Apache-2.0
//
// compile: CUDA C++ by NVRTC and NVVM IR by libNVVM, to device code.
//
// Needs no GPU, no driver and no device: only the compiler's library, which is
// found by kiln_runtime_open_compiler.
#ifndef KILN_COMPILE_H_
#define KILN_COMPILE_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/cache.h"
#include "kiln/code.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// A compiler. thread-safe
//
// Reference-counted. Compilations from several threads run concurrently, up to
// the limit in its options; the others wait, first come, first served.
typedef struct kiln_compiler_t kiln_compiler_t;

// Kinds of compilers.
enum {
  KILN_COMPILER_KIND_DEFAULT = 0,  // NVRTC
  KILN_COMPILER_KIND_NVRTC = 1,    // CUDA C++
  KILN_COMPILER_KIND_NVVM = 2,     // NVVM IR, as text or bitcode
};

// Which compiler is opened, and how it works. thread-compatible
//
// Zero in any field is its default. Everything is copied.
typedef struct kiln_compiler_options_t {
  uint32_t struct_size;  // sizeof(kiln_compiler_options_t)
  uint32_t kind;         // KILN_COMPILER_KIND_*

  // The library: a file, or a name for the system loader. Default: what the
  // runtime's context finds (kiln_runtime_toolkit).
  const char* library;

  // KILN_SWITCH_*: the library is found and its version read from its file, but
  // it is loaded only when the first compilation needs it: never if everything
  // comes from a cache. That compilation then reports errors of loading. A name
  // without a folder is loaded at once. Default: off.
  uint32_t lazy;

  // The maximum number of concurrent compilations. Default: one for each core.
  uint32_t max_concurrent;

  // The approximate memory limit of all compilations of this compiler together.
  // The memory of each is estimated from its source; a single one always runs.
  // Default: no limit.
  uint64_t memory_bytes;
} kiln_compiler_options_t;

// All defaults. Since 0.1.
static inline kiln_compiler_options_t kiln_compiler_options_default(void) {
  kiln_compiler_options_t options = {
      (uint32_t)sizeof(options), 0, NULL, 0, 0, 0};
  return options;
}

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_compiler_retain(kiln_compiler_t* compiler);
KILN_API void kiln_compiler_release(kiln_compiler_t* compiler);

// KILN_COMPILER_KIND_*, never DEFAULT. Since 0.1.
KILN_API uint32_t kiln_compiler_kind(const kiln_compiler_t* compiler);

// The CUDA release of the library, 13000 is 13.0; 0 if unknown, which only
// happens with libNVVM. For a lazy compiler, the version in its file. Since
// 0.1.
KILN_API uint32_t kiln_compiler_version(const kiln_compiler_t* compiler);

// The NVVM IR that a libNVVM reads, 2000 is 2.0; 0 for NVRTC. Loads a lazy
// one. Since 0.1.
KILN_API uint32_t kiln_compiler_ir_version(kiln_compiler_t* compiler);

// The library file. Borrowed. Since 0.1.
KILN_API const char* kiln_compiler_path(const kiln_compiler_t* compiler);

// The folder of its headers, "" if there is none; for libNVVM the file of its
// device library. Borrowed. Since 0.1.
KILN_API const char* kiln_compiler_include_dir(const kiln_compiler_t* compiler);
KILN_API const char* kiln_compiler_device_library(
    const kiln_compiler_t* compiler);

// True if it can compile for compute capability `arch` (90 is 9.0). Loads a
// lazy one; false if it cannot be loaded, and if the library cannot report its
// architectures (libNVVM). Since 0.1.
KILN_API bool kiln_compiler_has_arch(kiln_compiler_t* compiler, uint32_t arch);

// True if its library is in the process. Since 0.1.
KILN_API bool kiln_compiler_is_loaded(const kiln_compiler_t* compiler);

// A file that is not on the disk. thread-compatible
typedef struct kiln_compile_file_t {
  const char* name;         // of a header as in #include, without quotes
  kiln_bytes_view_t bytes;  // of a header text without NUL
} kiln_compile_file_t;

// Polled, on the thread that compiles or on one of the compiler's: true ends
// the compilation with CANCELLED. Must not use the compiler.
typedef bool (*kiln_compile_cancelled_fn_t)(void* user);

// For `split_compile`: one thread for each core.
#define KILN_COMPILE_ALL_CORES UINT32_MAX

// How a source is compiled. thread-compatible
//
// Zero in any field is its default. Read during the call only. Fields with
// "since" require a newer NVRTC, and are UNSUPPORTED with an older one. A field
// without an equivalent in libNVVM is UNSUPPORTED there, except as noted with
// the field. All "switch" fields are KILN_SWITCH_*.
typedef struct kiln_compile_options_t {
  uint32_t struct_size;  // sizeof(kiln_compile_options_t)

  // KILN_CODE_FORMAT_*: PTX, CUBIN, LTOIR or RELOCATABLE; of libNVVM PTX or
  // LTOIR. Default: PTX.
  uint32_t output;

  // The name of the source in messages; #include "..." searches its folder
  // first. Default: "kernel.cu".
  const char* file_name;

  // "sm_90", "compute_80", "sm_90a". Default: compute capability 7.5 for PTX
  // and LTO-IR, which every later GPU can load (the compiler's oldest if it no
  // longer supports that); for a cubin there is no default, and it must be
  // given (INVALID_ARGUMENT). One newer than the compiler is lowered to its
  // newest, which kiln_compile_result_note reports; for machine code only
  // within one major, as it would not load otherwise (UNSUPPORTED). An
  // architecture in `options` takes precedence.
  const char* arch;

  // Options in the compiler's own syntax, one string each, passed after Kiln's
  // own, so that they win where the last one wins.
  const char* const* options;

  // Expressions to return mangled names for: "add<float>".
  const char* const* name_expressions;

  // Folders for #include, before the toolkit's.
  const char* const* include_dirs;

  // "NAME" or "NAME=VALUE".
  const char* const* defines;

  const char* const* undefines;      // --undefine-macro
  const char* const* pre_includes;   // --pre-include: headers to include first
  const char* const* ptxas_options;  // --ptxas-options
  const char* const* diag_error;     // --diag-error: numbers of messages
  const char* const* diag_suppress;  // --diag-suppress
  const char* const* diag_warn;      // --diag-warn

  const char* std;                // --std: "c++17"
  const char* optimization_info;  // --optimization-info: "inline"
  const char* time_file;          // --time: a table of times; since 12.1
  const char* time_trace_file;    // --fdevice-time-trace; since 12.8
  const char* ofast_compile;      // --Ofast-compile: "min"; since 12.8
  const char* random_seed;        // --frandom-seed; since 12.9
  const char* create_pch;         // --create-pch: a file; since 12.8
  const char* use_pch;            // --use-pch: a file; since 12.8
  const char* pch_dir;            // --pch-dir; since 12.8

  // Headers by name, before any file of that name. NVRTC only.
  const kiln_compile_file_t* headers;

  // More modules to link with the source. libNVVM only.
  const kiln_compile_file_t* modules;

  // Default: never cancelled. NVRTC polls while it compiles since 12.8; before,
  // and with libNVVM, it is polled between steps.
  kiln_compile_cancelled_fn_t cancelled;
  void* cancelled_user;

  // The cache for the result. Default: none.
  kiln_cache_t* cache;

  uint32_t option_count;
  uint32_t name_expression_count;
  uint32_t include_dir_count;
  uint32_t define_count;
  uint32_t undefine_count;
  uint32_t pre_include_count;
  uint32_t ptxas_option_count;
  uint32_t diag_error_count;
  uint32_t diag_suppress_count;
  uint32_t diag_warn_count;
  uint32_t header_count;
  uint32_t module_count;

  // Switch: the include folder of the compiler's toolkit after all others.
  // Default: on.
  uint32_t toolkit_include;

  // Switch: NVRTC's own cache (13 and later), for which it searches and queries
  // the driver. Default: off.
  uint32_t nvrtc_cache;

  // Switch: #include "..." searches the folder of the source first. Default:
  // on.
  uint32_t source_include;

  // Switch: list the headers, kiln_compile_result_header. Default: off.
  uint32_t list_headers;

  // Switch: a header that a cached result was made with is compared by its
  // contents, not by its size, times and inode. Default: off.
  uint32_t cache_verify;

  // Switches, named as in NVRTC. Those with a star apply to libNVVM too.
  uint32_t relocatable_device_code;  // on for RELOCATABLE, regardless of this
                                     // switch
  uint32_t extensible_whole_program;
  uint32_t debug;      // * --device-debug, -g
  uint32_t lineinfo;   // --generate-line-info
  uint32_t optimize;   // * --dopt=on; libNVVM: -opt=3, off -opt=0
  uint32_t ftz;        // *
  uint32_t prec_sqrt;  // *
  uint32_t prec_div;   // *
  uint32_t fma;        // * --fmad, -fma
  uint32_t use_fast_math;
  uint32_t extra_device_vectorization;
  uint32_t link_time_optimization;  // on for LTOIR, regardless of this switch
  uint32_t gen_opt_lto;
  uint32_t modify_stack_limit;
  uint32_t stack_protector;  // --device-stack-protector; since 12.8
  uint32_t builtin_move_forward;
  uint32_t builtin_initializer_list;
  uint32_t disable_warnings;
  uint32_t restrict_pointers;  // --restrict
  uint32_t default_device;     // --device-as-default-execution-space
  uint32_t int128;             // --device-int128
  uint32_t float128;           // --device-float128; since 12.8
  uint32_t error_numbers;      // --display-error-number, --no-display-...
  uint32_t brief_diagnostics;  // since 12.1
  uint32_t syntax_only;        // --fdevice-syntax-only: no code; since 12.4
  uint32_t minimal;            // since 12.4
  uint32_t pch;           // --pch: automatic precompiled headers; since 12.8
  uint32_t pch_verbose;   // since 12.8
  uint32_t pch_messages;  // since 12.8
  uint32_t pch_instantiate_templates;  // since 12.8
  uint32_t numba_debug;                // since 13.2

  // Switch, libNVVM only: its device library resolves what the modules lack.
  // Default: on if one was found.
  uint32_t device_library;

  uint32_t max_registers;  // --maxrregcount
  uint32_t split_compile;  // --split-compile: threads of one compilation
  uint32_t reserved;       // 0
} kiln_compile_options_t;

// All defaults. Since 0.1.
static inline kiln_compile_options_t kiln_compile_options_default(void) {
#if defined(__cplusplus)
  kiln_compile_options_t options = {};
#else
  kiln_compile_options_t options = {0};
#endif
  options.struct_size = (uint32_t)sizeof(options);
  return options;
}

// The result of a compilation. thread-safe
//
// Reference-counted; has copies of everything.
typedef struct kiln_compile_result_t kiln_compile_result_t;

// Compiles `source`: CUDA C++, or NVVM IR. `options` may be NULL.
//
// `*out_result` is set even if compilation failed, so that its log can be read;
// only INVALID_ARGUMENT, LIMIT_EXCEEDED, OUT_OF_MEMORY and INVALID_STATE leave
// it NULL.
//
//   COMPILE_FAILED    the source has errors (the first one is the message), or
//                     an option is unknown to the compiler
//   INVALID_ARGUMENT  an option out of its range, an invalid `arch`, a
//                     source with a NUL in it
//   LIMIT_EXCEEDED    more than 4,096 entries in a list, an option of more than
//                     1 MiB, a source of more than 256 MiB
//   UNSUPPORTED       an option or an architecture that this compiler lacks, by
//                     name, with the first version that has it
//   CANCELLED         `cancelled` returned true
//   and what kiln_runtime_open_compiler gives, of a lazy compiler
//
// With a cache a result is looked up by everything that can change it: source,
// names, options, defines, headers, architecture, and the compiler by version
// and identity, wherever it is. Included files are found by a scan of both
// sides of every condition, and each must be unchanged. A source with an
// #include or a __has_include that a macro computes, one that contains
// __DATE__, __TIME__ or __TIMESTAMP__ or may build them with ##, one with a
// trigraph for #, a backslash or ^, each itself or in what it includes, and
// options that write or read files of their own (--time, precompiled headers),
// are not cached. Such a macro is followed if its value can be determined.
//
// The caller owns `*out_result`. Does not change locale, context and
// environment of the caller. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_compiler_compile(
    kiln_compiler_t* compiler, kiln_string_view_t source,
    const kiln_compile_options_t* options, kiln_compile_result_t** out_result);

// Everything up to the compilation itself: a result without code, with the
// options that the compiler would get. Loads a lazy compiler. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_compiler_plan(
    kiln_compiler_t* compiler, const kiln_compile_options_t* options,
    kiln_compile_result_t** out_result);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_compile_result_retain(kiln_compile_result_t* result);
KILN_API void kiln_compile_result_release(kiln_compile_result_t* result);

// The compiler's log, warnings included; "" if empty. Borrowed. Since 0.1.
KILN_API const char* kiln_compile_result_log(
    const kiln_compile_result_t* result);

// The code, with its format, the arch it was compiled for and the lowered names
// of the name expressions, in order; NULL if compilation failed. Borrowed;
// retain it to keep it beyond the result. Since 0.1.
KILN_API kiln_code_t* kiln_compile_result_code(
    const kiln_compile_result_t* result);

// Deviations from the request, e.g. for an architecture newer than the
// compiler; "" if none. Borrowed. Since 0.1.
KILN_API const char* kiln_compile_result_note(
    const kiln_compile_result_t* result);

// The options passed to the compiler, in order. None if the result comes from a
// cache. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_compile_result_option_count(const kiln_compile_result_t* result);
KILN_API const char* kiln_compile_result_option(
    const kiln_compile_result_t* result, uint32_t index);

// The files that the source includes or may include, absolute, of both sides
// of every condition; only with a cache or `list_headers`. Borrowed; NULL out
// of range. Since 0.1.
KILN_API uint32_t
kiln_compile_result_header_count(const kiln_compile_result_t* result);
KILN_API const char* kiln_compile_result_header(
    const kiln_compile_result_t* result, uint32_t index);

// The outcome for a precompiled header.
enum {
  KILN_COMPILE_PCH_NONE = 0,           // not requested
  KILN_COMPILE_PCH_CREATED = 1,        // made, or used
  KILN_COMPILE_PCH_NOT_ATTEMPTED = 2,  // NVRTC found none useful
  KILN_COMPILE_PCH_FAILED = 3,         // compiled without
};
// KILN_COMPILE_PCH_*. Since 0.1.
KILN_API uint32_t kiln_compile_result_pch(const kiln_compile_result_t* result);

// The role of the cache.
enum {
  KILN_COMPILE_CACHE_NONE = 0,         // no cache
  KILN_COMPILE_CACHE_HIT = 1,          // found; nothing was compiled
  KILN_COMPILE_CACHE_MISS = 2,         // compiled and stored
  KILN_COMPILE_CACHE_UNCACHEABLE = 3,  // compiled, not stored
};
// KILN_COMPILE_CACHE_*, and why: "memory", "disk", "an included file has
// changed"; "" without a cache. Borrowed. Since 0.1.
KILN_API uint32_t
kiln_compile_result_cache(const kiln_compile_result_t* result);
KILN_API const char* kiln_compile_result_cache_reason(
    const kiln_compile_result_t* result);

// ---- Cache entries ----

// How an entry was made.
enum {
  KILN_COMPILE_ENTRY_COMPILED = 1,
  KILN_COMPILE_ENTRY_LINKED = 2,
};

// Description of a cache entry. thread-compatible
//
// Texts are borrowed from the entry and have no NUL; unknown ones are empty.
typedef struct kiln_compile_entry_t {
  uint32_t action;          // KILN_COMPILE_ENTRY_*
  uint32_t format;          // KILN_CODE_FORMAT_*
  uint32_t line;            // of the tool: 13000 is 13.0
  uint32_t input_count;     // of a link
  uint32_t file_count;      // searched while it was compiled
  uint32_t reserved;        // 0
  uint64_t source_bytes;    // of the source, or of a link's inputs
  kiln_string_view_t tool;  // "NVRTC", "libNVVM", "nvJitLink", "driver"
  kiln_string_view_t name;  // of the source: "saxpy.cu"
  kiln_string_view_t arch;  // "sm_90"
} kiln_compile_entry_t;

// Describes an entry; false if it was not made by a compilation or a link of
// this Kiln. Since 0.1.
KILN_API bool kiln_compile_entry_read(const kiln_cache_entry_t* entry,
                                      kiln_compile_entry_t* out_entry);

// True if every file that an entry was made with has the same contents, and
// those that were missing still are: files are read in full. Else
// `*out_changed`, borrowed from the entry, is the first that has changed; ""
// for an entry unknown to kiln_compile_entry_read. `allocator` may be NULL.
// Since 0.1.
KILN_API bool kiln_compile_entry_holds(const kiln_cache_entry_t* entry,
                                       const kiln_allocator_t* allocator,
                                       kiln_string_view_t* out_changed);

KILN_EXTERN_C_END

#endif  // KILN_COMPILE_H_
