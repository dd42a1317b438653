// SPDX-License-Identifier: Apache-2.0
//
// compile: the options of one compilation as the compiler takes them.
#ifndef KILN_SRC_COMPILE_COMPILE_LINE_H_
#define KILN_SRC_COMPILE_COMPILE_LINE_H_

#include "kiln/allocator.h"
#include "kiln/compile.h"

// Texts. one-thread
typedef struct kilni_compile_line_t {
  kiln_allocator_t allocator;
  char** items;
  size_t count;
  size_t capacity;
} kilni_compile_line_t;

void kilni_compile_line_deinit(kilni_compile_line_t* line);
// Adds `prefix` and `text` as one.
kiln_status_t kilni_compile_line_add(kilni_compile_line_t* line,
                                     const char* prefix, const char* text);

// INVALID_ARGUMENT or LIMIT_EXCEEDED for a list, a switch or an output that is
// none.
kiln_status_t kilni_compile_check_options(
    const kiln_compile_options_t* options);

// Adds the typed options of compile_options.inc. `version` is that of NVRTC,
// which an option may be too new for; UINT32_MAX takes all.
kiln_status_t kilni_compile_line_add_nvrtc(
    kilni_compile_line_t* line, const kiln_compile_options_t* options,
    uint32_t version);

// The same for libNVVM: UNSUPPORTED names what it has no option for.
kiln_status_t kilni_compile_line_add_nvvm(
    kilni_compile_line_t* line, const kiln_compile_options_t* options);

#endif  // KILN_SRC_COMPILE_COMPILE_LINE_H_
