// SPDX-License-Identifier: Apache-2.0
//
// base: strings. Views borrow; a builder owns and grows.
#ifndef KILN_SRC_BASE_STR_H_
#define KILN_SRC_BASE_STR_H_

#include <stdarg.h>

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"

// A view of a NUL-terminated string; NULL gives the empty view.
kiln_string_view_t kilni_sv(const char* text);
kiln_string_view_t kilni_sv_make(const char* data, size_t size);
bool kilni_sv_equal(kiln_string_view_t a, kiln_string_view_t b);
bool kilni_sv_equal_cstr(kiln_string_view_t a, const char* b);
bool kilni_sv_starts_with(kiln_string_view_t text, const char* prefix);
bool kilni_sv_ends_with(kiln_string_view_t text, const char* suffix);
// Cuts off the part before the first `separator` and moves `*inout` behind it;
// false once nothing is left.
bool kilni_sv_split(kiln_string_view_t* inout, char separator,
                    kiln_string_view_t* out_part);
// Whole decimal or 0x number; false on anything else or on overflow.
bool kilni_sv_to_u64(kiln_string_view_t text, uint64_t* out_value);

// For printf's "%.*s".
#define KILNI_SV(view) (int)(view).size, (view).data

// A string that grows. one-thread
//
// `init`, then any number of adds, then `take` or `deinit`. A failed
// allocation is remembered and reported by `status`, so that adds can be
// written without a check each. A builder larger than `limit` fails the same
// way with LIMIT_EXCEEDED.
typedef struct kilni_str_t {
  kiln_allocator_t allocator;
  char* data;  // NUL-terminated; NULL while empty
  size_t size;
  size_t capacity;
  size_t limit;
  kiln_status_code_t failed;
} kilni_str_t;

void kilni_str_init(kilni_str_t* str, kiln_allocator_t allocator, size_t limit);
void kilni_str_deinit(kilni_str_t* str);
void kilni_str_add(kilni_str_t* str, kiln_string_view_t text);
void kilni_str_add_cstr(kilni_str_t* str, const char* text);
void kilni_str_add_char(kilni_str_t* str, char c);
void kilni_str_addf(kilni_str_t* str, const char* format, ...)
    KILN_PRINTF(2, 3);
void kilni_str_addv(kilni_str_t* str, const char* format, va_list args);
kiln_status_t kilni_str_status(const kilni_str_t* str);
const char* kilni_str_cstr(const kilni_str_t* str);  // "" while empty

// A NUL-terminated copy; freed with kilni_free(allocator, s, strlen(s) + 1).
kiln_status_t kilni_strdup(kiln_allocator_t allocator, kiln_string_view_t text,
                           char** out_text);
void kilni_strfree(kiln_allocator_t allocator, char* text);

#endif  // KILN_SRC_BASE_STR_H_
