// SPDX-License-Identifier: Apache-2.0
//
// locate: readers of the texts that facts come from.
//
// Pure: no files. Each takes any bytes, with or without a final newline, and
// gives views into them. What breaks a format's rules is left out and counted.
#ifndef KILN_SRC_LOCATE_LOCATE_FACTS_PARSE_H_
#define KILN_SRC_LOCATE_LOCATE_FACTS_PARSE_H_

#include "kiln/api.h"

enum {
  KILNI_PARSE_MAX_PATH = 16384,  // bytes of a path in a RECORD
  KILNI_PARSE_MAX_NESTING = 64,  // of a JSON text
  KILNI_PARSE_MAX_NAME = 256,    // bytes of a distribution's name
  KILNI_PARSE_MAX_MAJOR = 4000,  // of a line
  KILNI_PARSE_MAX_MINOR = 99
};

// ---- Versions ----

// The line of CUDA_VERSION's number: 13020 is 13020, 12091 is 12090. 0 for a
// number that is none.
uint32_t kilni_locate_line_of_number(uint64_t number);

// The same from text: decimal digits and nothing else; 0 otherwise.
uint32_t kilni_locate_line_of_digits(kiln_string_view_t text);

// The line at the start of "13.5", "13.5.37" or "13.5, V13.5.37"; 0 where the
// text does not begin with two numbers.
uint32_t kilni_locate_line_of_version(kiln_string_view_t text);

// The line at the end of "__nvJitLinkCreate_13_5"; 0 without one.
uint32_t kilni_locate_line_of_symbol(kiln_string_view_t name);

// The leading run of digits and dots, without a dot at its end: "580.95.05".
kiln_string_view_t kilni_locate_version_at(kiln_string_view_t text);

// ---- C headers ----

// The number of the first `#define NAME NUMBER` line of a header; false where
// there is none. Bytes that are not UTF-8 are accepted.
bool kilni_locate_define_find(kiln_string_view_t text, const char* name,
                              uint64_t* out_value);

// ---- RECORD ----

// One row: "nvidia/cu13/lib/x.so,sha256=abc,123". thread-compatible
typedef struct kilni_locate_record_row_t {
  kiln_string_view_t path;  // without its quotes; doubled ones are still there
  kiln_string_view_t hash;  // "sha256=..."; "" without
  kiln_string_view_t size;
  bool is_doubled;  // the path has doubled quotes
  bool is_broken;   // it is not a row; the other fields are undefined
} kilni_locate_record_row_t;

// Cuts a row off the front of `inout`; false at its end.
bool kilni_locate_record_next(kiln_string_view_t* inout,
                              kilni_locate_record_row_t* out_row);

// The path of a row with doubled quotes undone, into `capacity` bytes without a
// NUL; the length, or SIZE_MAX if it does not fit.
size_t kilni_locate_record_path(const kilni_locate_record_row_t* row,
                                size_t capacity, char* out_path);

// ---- METADATA ----

// One header field. thread-compatible
typedef struct kilni_locate_metadata_field_t {
  kiln_string_view_t name;
  kiln_string_view_t value;  // trimmed; of a folded field all its lines
} kilni_locate_metadata_field_t;

// Cuts a field off the front of `inout`; false at the empty line that ends the
// header, or at the end. Lines that are not fields are skipped and counted in
// `inout_broken`, which may be NULL.
bool kilni_locate_metadata_next(kiln_string_view_t* inout,
                                kilni_locate_metadata_field_t* out_field,
                                size_t* inout_broken);
bool kilni_locate_metadata_is(const kilni_locate_metadata_field_t* field,
                              const char* name);

// A requirement: "nvidia-nvjitlink<14,>=13.0.88; extra == 'x'".
// thread-compatible
typedef struct kilni_locate_requirement_t {
  kiln_string_view_t name;
  kiln_string_view_t specifier;  // "" without
  kiln_string_view_t marker;     // "" without
} kilni_locate_requirement_t;

// False for a text that is none. A requirement by address has no specifier.
bool kilni_locate_requirement_read(kiln_string_view_t text,
                                   kilni_locate_requirement_t* out_requirement);

// A distribution's name as PEP 503 has it: lower case, each run of `-`, `_` and
// `.` one `-`. Cut at `capacity` - 1; the length.
size_t kilni_locate_name_normalise(kiln_string_view_t name, size_t capacity,
                                   char* out_name);

// ---- JSON ----

// Each cuts its part off the front of `inout`, after blanks; false where
// something else is next. A character; a string, with its escapes as they are;
// any one value.
bool kilni_locate_json_cut(kiln_string_view_t* inout, char wanted);
bool kilni_locate_json_string(kiln_string_view_t* inout,
                              kiln_string_view_t* out_text);
bool kilni_locate_json_skip(kiln_string_view_t* inout);

// The text of the string at `outer`.`inner` of an object of objects, escapes as
// they are; false where the text has none or is not JSON up to there.
bool kilni_locate_json_find(kiln_string_view_t text, const char* outer,
                            const char* inner, kiln_string_view_t* out_text);

#endif  // KILN_SRC_LOCATE_LOCATE_FACTS_PARSE_H_
