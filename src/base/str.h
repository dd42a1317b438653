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
kiln_string_view_t kilni_base_sv(const char* text);
kiln_string_view_t kilni_base_sv_make(const char* data, size_t size);
bool kilni_base_sv_equal(kiln_string_view_t a, kiln_string_view_t b);
bool kilni_base_sv_equal_cstr(kiln_string_view_t a, const char* b);
bool kilni_base_sv_starts_with(kiln_string_view_t text, const char* prefix);
bool kilni_base_sv_ends_with(kiln_string_view_t text, const char* suffix);
// Cuts off the part before the first `separator` and moves `*inout` past it;
// false once nothing is left. Parts may be empty, but a separator at the very
// end opens no empty last part.
bool kilni_base_sv_split(kiln_string_view_t* inout, char separator,
                         kiln_string_view_t* out_part);
// The whole of `text` as a decimal or 0x number; false, with 0, on anything
// else or on overflow.
bool kilni_base_sv_to_u64(kiln_string_view_t text, uint64_t* out_value);

// Writes the text so that a name within a message stays one line and moves no
// cursor: controls, ends of lines and marks of direction as "\x0a", "\u202e".
// At most `capacity` bytes with the NUL, and no part of a character; its
// length.
size_t kilni_base_show(const char* text, size_t capacity, char* out);

// For printf's "%.*s".
#define KILNI_SV(view) (int)(view).size, (view).data

// A string that grows. one-thread
//
// `init`, then any number of adds, then `take` or `deinit`. A failed allocation
// is recorded and returned by `status`, so that adds can be written without a
// check each; later adds do nothing. A builder that would grow over `limit`
// bytes fails the same way with LIMIT_EXCEEDED.
typedef struct kilni_base_str_t {
  kiln_allocator_t allocator;
  char* data;  // NUL-terminated; NULL while empty
  size_t size;
  size_t capacity;
  size_t limit;
  kiln_status_code_t failed;
} kilni_base_str_t;

void kilni_base_str_init(kilni_base_str_t* str, kiln_allocator_t allocator,
                         size_t limit);
void kilni_base_str_deinit(kilni_base_str_t* str);
void kilni_base_str_add(kilni_base_str_t* str, kiln_string_view_t text);
void kilni_base_str_add_cstr(kilni_base_str_t* str, const char* text);
void kilni_base_str_add_char(kilni_base_str_t* str, char c);
void kilni_base_str_addf(kilni_base_str_t* str, const char* format, ...)
    KILN_PRINTF(2, 3);
void kilni_base_str_addv(kilni_base_str_t* str, const char* format,
                         va_list args);
kiln_status_t kilni_base_str_status(const kilni_base_str_t* str);
const char* kilni_base_str_cstr(const kilni_base_str_t* str);  // "" while empty

// The text as a copy of exact size, which kilni_base_strfree frees; the builder
// is ended either way. Only for texts without NUL inside.
kiln_status_t kilni_base_str_take(kilni_base_str_t* str, char** out_text);

// A NUL-terminated copy of a text without NUL inside, freed by
// kilni_base_strfree.
kiln_status_t kilni_base_strdup(kiln_allocator_t allocator,
                                kiln_string_view_t text, char** out_text);
void kilni_base_strfree(kiln_allocator_t allocator, char* text);

#endif  // KILN_SRC_BASE_STR_H_
