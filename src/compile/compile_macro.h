// SPDX-License-Identifier: Apache-2.0
//
// compile: what header an #include of a macro may mean.
//
// No preprocessor: no condition is decided and nothing is undefined, so every
// value that a name has anywhere may be its value here. What comes out is thus
// never too little, but may be too much.
#ifndef KILN_SRC_COMPILE_COMPILE_MACRO_H_
#define KILN_SRC_COMPILE_COMPILE_MACRO_H_

#include "base/str.h"
#include "compile/compile_scan.h"

struct kilni_compile_macro_t;

// Names and all their values. one-thread
typedef struct kilni_compile_macros_t {
  kiln_allocator_t allocator;
  kilni_base_str_t text;  // names and values, concatenated
  struct kilni_compile_macro_t* items;
  size_t count;
  size_t capacity;
  uint32_t* slots;  // of a table by name: index + 1 of its last value
  size_t slot_count;
} kilni_compile_macros_t;

void kilni_compile_macros_init(kilni_compile_macros_t* macros,
                               kiln_allocator_t allocator);
void kilni_compile_macros_deinit(kilni_compile_macros_t* macros);

// A value of a name; without data it is one that cannot be part of a header's
// name. One that is there already is not added again. LIMIT_EXCEEDED,
// OUT_OF_MEMORY.
kiln_status_t kilni_compile_macros_add(kilni_compile_macros_t* macros,
                                       kiln_string_view_t name,
                                       kiln_string_view_t value);

// True for a name that was added, with whatever value.
bool kilni_compile_macros_has(const kilni_compile_macros_t* macros,
                              kiln_string_view_t name);

// "NAME" or "NAME=VALUE", as options define it.
kiln_status_t kilni_compile_macros_add_option(kilni_compile_macros_t* macros,
                                              const char* define);

// Calls `fn` with each header, QUOTE or ANGLE, that `text` may mean, perhaps
// more than once; a failure of `fn` ends it. `*out_all` is false where there
// may be others: a name that only the compiler knows, a value that is too
// complicated, or more than a few hundred headers.
kiln_status_t kilni_compile_macros_expand(
    const kilni_compile_macros_t* macros, kiln_string_view_t text,
    kiln_status_t (*fn)(void* user, const kilni_compile_scan_found_t* found),
    void* user, bool* out_all);

#endif  // KILN_SRC_COMPILE_COMPILE_MACRO_H_
