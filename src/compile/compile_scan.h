// SPDX-License-Identifier: Apache-2.0
//
// compile: what a source includes, or may include.
//
// Not a preprocessor: both sides of every condition count, and compile_macro.h
// expands macros. So it never finds too little, but may find too much.
#ifndef KILN_SRC_COMPILE_COMPILE_SCAN_H_
#define KILN_SRC_COMPILE_COMPILE_SCAN_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"

enum {
  KILNI_SCAN_QUOTE = 1,     // #include "name"
  KILNI_SCAN_ANGLE = 2,     // #include <name>
  KILNI_SCAN_COMPUTED = 3,  // #include NAME
  KILNI_SCAN_DEFINE = 4,    // #define NAME value, without arguments
  KILNI_SCAN_TIME = 5,      // __DATE__, __TIME__, __TIMESTAMP__, by its name
  KILNI_SCAN_PIECE = 6,     // a word that is a part of such a name, or of
                            // __has_include
  KILNI_SCAN_PASTE = 7,     // ##, which pastes tokens: once for each text
  // ??=, ??/ or ??', which an old dialect takes for #, \ and ^, so that the
  // text reads otherwise there: once of a text.
  KILNI_SCAN_TRIGRAPH = 8,
  // A macro that passes its argument to __has_include. Where a condition calls
  // it with "name" or <name>, that is found as if it were included.
  KILNI_SCAN_ASKER = 9,
  KILNI_SCAN_ASKS = 10,  // a __has_include that may ask for anything
  // A name that is used, but for what #ifdef and the like ask for, and for the
  // calls in conditions that are found otherwise.
  KILNI_SCAN_WORD = 11,
};

// Something that is included or asked for. thread-compatible
typedef struct kilni_compile_scan_found_t {
  uint32_t kind;  // KILNI_SCAN_*
  bool next;      // #include_next: the first that is found is not the one
  uint32_t line;  // of a computed one, from 1
  kiln_string_view_t name;  // of a computed one its text
  // What is computed, or defined, where that can be part of a header's name:
  // plain text without blanks. Else without data.
  kiln_string_view_t value;
} kilni_compile_scan_found_t;

// Takes one; false ends the scan.
typedef bool (*kilni_compile_scan_fn_t)(
    void* user, const kilni_compile_scan_found_t* found);

// True for the characters of a name, except digits.
bool kilni_compile_scan_is_word(char c);

// True for a macro that expands to a time: each compilation has its own.
bool kilni_compile_scan_is_time(kiln_string_view_t word);

enum { KILNI_SCAN_NAMES = 4 };

// Which tokens of the names of times and of __has_include were met. one-thread
typedef struct kilni_compile_scan_pieces_t {
  // The last of the names is __has_include.
  uint16_t at[KILNI_SCAN_NAMES]
             [16];  // bit j of [i][b]: characters b to j, of name i
} kilni_compile_scan_pieces_t;

// Adds a token; also where its letters occur in several places. `weak`, or
// NULL, takes common ones, such as T and __, or "include".
void kilni_compile_scan_add_piece(kilni_compile_scan_pieces_t* strong,
                                  kilni_compile_scan_pieces_t* weak,
                                  kiln_string_view_t word);

// The name that two sets of tokens make together, NULL if there is none.
const char* kilni_compile_scan_whole(const kilni_compile_scan_pieces_t* strong,
                                     const kilni_compile_scan_pieces_t* weak);

// True for text that may be a part of a header's name, or all of it: nothing
// but names, digits and the like, without blanks; or one text in quotes.
bool kilni_compile_scan_is_plain(kiln_string_view_t text);

// Calls `fn` for each, in order. Comments, literals (raw ones too), continued
// lines and digraphs are seen as such. OUT_OF_MEMORY; LIMIT_EXCEEDED for a text
// with very many unterminated raw strings.
kiln_status_t kilni_compile_scan_text(kiln_allocator_t allocator,
                                      kiln_string_view_t text,
                                      kilni_compile_scan_fn_t fn, void* user);

#endif  // KILN_SRC_COMPILE_COMPILE_SCAN_H_
