// SPDX-License-Identifier: Apache-2.0
//
// locate: where the pieces of a CUDA toolkit are on this machine.
//
// Walks the disk and never opens a library: what it names exists, whether it
// works is for the one who opens it.
#ifndef KILN_LOCATE_H_
#define KILN_LOCATE_H_

#include "kiln/allocator.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// How a search is made. thread-compatible
//
// Zero in any field is its default. Read during the call only.
typedef struct kiln_locate_options_t {
  uint32_t struct_size;  // sizeof(kiln_locate_options_t)
  uint32_t reserved;     // 0

  // Default: kiln_allocator_libc(). Copied; must outlive the report.
  const kiln_allocator_t* allocator;

  // The library file to take: wrong is an error, not a reason to look
  // elsewhere. Default: the variable KILN_LIBNVRTC, else the search.
  const char* explicit_path;

  // The folder under which /usr/local and the system's library folders are
  // looked for, to search a mounted system. Default: "/".
  const char* system_root;
} kiln_locate_options_t;

// All defaults. Since 0.1.
static inline kiln_locate_options_t kiln_locate_options_default(void) {
  kiln_locate_options_t options = {(uint32_t)sizeof(options), 0, NULL, NULL,
                                   NULL};
  return options;
}

// Where a candidate was found.
enum {
  KILN_LOCATE_SCOPE_EXPLICIT = 1,   // given, or by KILN_LIBNVRTC
  KILN_LOCATE_SCOPE_CUDA_PATH = 2,  // the variable
  KILN_LOCATE_SCOPE_CUDA_HOME = 3,  // the variable
  KILN_LOCATE_SCOPE_LOADER = 4,     // a name for the system loader
  KILN_LOCATE_SCOPE_SYSTEM = 5,     // /usr/local/cuda*
  KILN_LOCATE_SCOPE_WHEEL = 6,      // wheels of the active environment
};

// The word for a scope: "explicit", "CUDA_PATH", "CUDA_HOME", "loader",
// "system", "wheel"; "?" for a value that is none. Static. Since 0.1.
KILN_API const char* kiln_locate_scope_name(uint32_t scope);

// A library that may be opened. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_locate_candidate_t {
  const char* path;         // a file; for scope LOADER a name without a folder
  const char* include_dir;  // of the same toolkit; "" where it has none
  uint32_t scope;           // KILN_LOCATE_SCOPE_*
  uint32_t reserved;
} kiln_locate_candidate_t;

// A place that was looked at and gave nothing. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_locate_tried_t {
  const char* path;
  const char* why;  // "no such folder"
} kiln_locate_tried_t;

// What a search found, and what it looked at in vain. thread-safe
//
// Reference-counted; holds copies of everything.
typedef struct kiln_locate_report_t kiln_locate_report_t;

// Searches NVRTC, in this order: `explicit_path`, KILN_LIBNVRTC, CUDA_PATH,
// CUDA_HOME, the names for the system loader, /usr/local/cuda and
// /usr/local/cuda-* (newest first), the wheels of the active virtual
// environment (VIRTUAL_ENV, then CONDA_PREFIX: nvidia/cu13/lib and
// nvidia/cuda_nvrtc/lib). The first two end the search.
//
// The report is made also where nothing is there. NOT_FOUND only for an
// explicit path that is no file; the report then says so too. OUT_OF_MEMORY
// and INVALID_ARGUMENT leave `*out_report` NULL. The caller owns it.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_locate_nvrtc(
    const kiln_locate_options_t* options, kiln_locate_report_t** out_report);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_locate_report_retain(kiln_locate_report_t* report);
KILN_API void kiln_locate_report_release(kiln_locate_report_t* report);

// The candidates, best first. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_locate_report_candidate_count(const kiln_locate_report_t* report);
KILN_API const kiln_locate_candidate_t* kiln_locate_report_candidate(
    const kiln_locate_report_t* report, uint32_t index);

// What was looked at in vain, in order. Borrowed; NULL out of range.
// Since 0.1.
KILN_API uint32_t
kiln_locate_report_tried_count(const kiln_locate_report_t* report);
KILN_API const kiln_locate_tried_t* kiln_locate_report_tried(
    const kiln_locate_report_t* report, uint32_t index);

KILN_EXTERN_C_END

#endif  // KILN_LOCATE_H_
