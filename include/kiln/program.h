// SPDX-License-Identifier: Apache-2.0
//
// program: a kernel in Kiln's own language: built, read, printed, lowered.
//
// A program is one kernel with declared buffers. It needs no compiler: it is
// lowered straight to PTX, which every driver can load. Its meaning is total
// and the same on every device (docs/reference/program-semantics.md).
#ifndef KILN_PROGRAM_H_
#define KILN_PROGRAM_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/program_operators.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// A validated program. thread-safe
//
// Reference-counted and never changed.
typedef struct kiln_program_t kiln_program_t;

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_program_retain(kiln_program_t* program);
KILN_API void kiln_program_release(kiln_program_t* program);

// KILN_PROGRAM_TYPE_*: the type of a value or an element. 0 is none.
#define KILN_PROGRAM_TYPE_ENUM(NAME, spelling, bytes, class_) \
  KILN_PROGRAM_TYPE_##NAME,
enum { KILN_PROGRAM_TYPE_NONE, KILN_PROGRAM_TYPES(KILN_PROGRAM_TYPE_ENUM) };

// KILN_PROGRAM_UNARY_*, _BINARY_*, _ATOMIC_*, _ORDERING_*, _SCOPE_*,
// _SUBGROUP_*, _ID_*: the operators (kiln/program_operators.h).
#define KILN_PROGRAM_UNARY_ENUM(NAME, ...) KILN_PROGRAM_UNARY_##NAME,
enum { KILN_PROGRAM_UNARY_OPERATORS(KILN_PROGRAM_UNARY_ENUM) };
#define KILN_PROGRAM_BINARY_ENUM(NAME, ...) KILN_PROGRAM_BINARY_##NAME,
enum { KILN_PROGRAM_BINARY_OPERATORS(KILN_PROGRAM_BINARY_ENUM) };
#define KILN_PROGRAM_ATOMIC_ENUM(NAME, ...) KILN_PROGRAM_ATOMIC_##NAME,
enum { KILN_PROGRAM_ATOMICS(KILN_PROGRAM_ATOMIC_ENUM) };
#define KILN_PROGRAM_ORDERING_ENUM(NAME, ...) KILN_PROGRAM_ORDERING_##NAME,
enum { KILN_PROGRAM_ORDERINGS(KILN_PROGRAM_ORDERING_ENUM) };
#define KILN_PROGRAM_SCOPE_ENUM(NAME, ...) KILN_PROGRAM_SCOPE_##NAME,
enum { KILN_PROGRAM_SCOPES(KILN_PROGRAM_SCOPE_ENUM) };
#define KILN_PROGRAM_SUBGROUP_ENUM(NAME, ...) KILN_PROGRAM_SUBGROUP_##NAME,
enum { KILN_PROGRAM_SUBGROUPS(KILN_PROGRAM_SUBGROUP_ENUM) };
#define KILN_PROGRAM_ID_ENUM(NAME, ...) KILN_PROGRAM_ID_##NAME,
enum { KILN_PROGRAM_IDS(KILN_PROGRAM_ID_ENUM) };

// What a buffer is for.
enum {
  KILN_PROGRAM_ROLE_NONE = 0,
  KILN_PROGRAM_ROLE_IN = 1,        // read
  KILN_PROGRAM_ROLE_OUT = 2,       // written; starts at zero
  KILN_PROGRAM_ROLE_INOUT = 3,     // read and written
  KILN_PROGRAM_ROLE_UNIFORM = 4,   // read, small, the same for all threads
  KILN_PROGRAM_ROLE_RESIDENT = 5,  // read and written, stays on the device
  KILN_PROGRAM_ROLE_SHARED = 6,    // the block's own; starts at zero
  KILN_PROGRAM_ROLE_PRIVATE = 7,   // the thread's own; starts at zero
};

// ---- What was found ----

// What reading or building a program found. thread-safe
//
// Reference-counted and never changed. Problems stand in the order in which
// they were found, at most KILN_PROGRAM_MAX_PROBLEMS of them.
typedef struct kiln_program_report_t kiln_program_report_t;

enum { KILN_PROGRAM_MAX_PROBLEMS = 20 };

// One problem. thread-compatible
//
// Borrowed from its report. Strings are never NULL.
typedef struct kiln_program_problem_t {
  uint32_t rule;        // 12 is P012 (docs/reference/program-rules.md); 0: the
                        // text is not of the language
  uint32_t is_note;     // 1: worth knowing, and the program is valid
  uint32_t line;        // from 1; 0 for a built program
  uint32_t column;      // from 1, in bytes
  const char* message;  // what is wrong, one line
  const char* fix;      // what to do, one line
  const char* source;   // the line it stands in
} kiln_program_problem_t;

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_program_report_retain(kiln_program_report_t* report);
KILN_API void kiln_program_report_release(kiln_program_report_t* report);

// How many problems, and one of them; false, with all zero, out of range.
// Since 0.1.
KILN_API uint32_t
kiln_program_report_count(const kiln_program_report_t* report);
KILN_API bool kiln_program_report_problem(const kiln_program_report_t* report,
                                          uint32_t index,
                                          kiln_program_problem_t* out_problem);

// All of them as compilers write them: file, line, column, the line with a
// caret below, and a `Fix:` line. "" where there is none. Borrowed. Since 0.1.
KILN_API const char* kiln_program_report_text(
    const kiln_program_report_t* report);

// ---- Text ----

// A value for a `const` or a type for a `type` of a text. thread-compatible
typedef struct kiln_program_define_t {
  const char* name;
  const char* value;  // "32", "1.5f16"; of a `type`: "f16"
} kiln_program_define_t;

// How a text is read. thread-compatible
//
// Zero in any field is its default. Read during the call only.
typedef struct kiln_program_parse_options_t {
  uint32_t struct_size;  // sizeof(kiln_program_parse_options_t)
  uint32_t define_count;

  // What messages call the text. Default: "program.kiln".
  const char* file_name;

  // Each takes the place of what the text says for that name.
  const kiln_program_define_t* defines;

  const kiln_allocator_t* allocator;  // Default: the C library's.
} kiln_program_parse_options_t;

// All defaults. Since 0.1.
static inline kiln_program_parse_options_t kiln_program_parse_options_default(
    void) {
  kiln_program_parse_options_t options = {(uint32_t)sizeof(options), 0, NULL,
                                          NULL, NULL};
  return options;
}

// Reads a program from its text form (docs/reference/program-text.md).
// `options` and `out_report` may be NULL. A report is also there where the
// program is valid; then it holds notes, if anything.
//
//   COMPILE_FAILED    the text is no valid program; the status is the first
//                     problem, `*out_report` holds all
//   NOT_FOUND         a define for a name that the text does not declare
//   INVALID_ARGUMENT  a define without name or value
//   LIMIT_EXCEEDED    more than 4 MiB of text, or a program too large
//   OUT_OF_MEMORY
//
// The caller owns `*out_program` and `*out_report`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_program_parse(
    kiln_string_view_t text, const kiln_program_parse_options_t* options,
    kiln_program_report_t** out_report, kiln_program_t** out_program);

// Writes the program as text that reads as the same program: printing that
// one gives the same bytes. At most `capacity` bytes with the terminating NUL
// (nothing at all when it is 0; `buffer` may then be NULL). `out_length`, if
// not NULL, receives the length without NUL that the whole text has.
//
//   OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_program_print(const kiln_program_t* program, size_t capacity, char* buffer,
                   size_t* out_length);

KILN_EXTERN_C_END

#endif  // KILN_PROGRAM_H_
