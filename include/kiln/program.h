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

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_program_retain(kiln_program_t* program);
KILN_API void kiln_program_release(kiln_program_t* program);

// KILN_PROGRAM_TYPE_*: the type of a value or an element. 0: none.
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
// Reference-counted and never changed. Problems are in the order in which they
// were found, at most KILN_PROGRAM_MAX_PROBLEMS of them, errors before notes
// where there are more.
typedef struct kiln_program_report_t kiln_program_report_t;

enum { KILN_PROGRAM_MAX_PROBLEMS = 20 };

// One problem. thread-compatible
//
// Borrowed from its report. Strings are never NULL.
typedef struct kiln_program_problem_t {
  uint32_t rule;        // 12 is P012 (docs/reference/program-rules.md); 0: a
                        // syntax error
  uint32_t is_note;     // 1: worth knowing, and the program is valid
  uint32_t line;        // from 1; 0 for a built program
  uint32_t column;      // from 1, in bytes
  const char* message;  // what is wrong, one line
  const char* fix;      // what to do, one line
  const char* source;   // the line it is in; of a long one 160 bytes around the
                        // place
} kiln_program_problem_t;

// Adds or releases a reference. NULL is accepted. Since 0.1.
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

  // The name in messages of the text. Default: "program.kiln".
  const char* file_name;

  // Each replaces the text's own value for that name.
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
// `options` and `out_report` may be NULL. A report is made even if the program
// is valid; then it contains only notes, if any.
//
//   COMPILE_FAILED    the text is not a valid program; the status is the first
//                     problem, `*out_report` holds all
//   NOT_FOUND         a define for a name that the text does not declare
//   INVALID_ARGUMENT  a define without name or value, or two of one name
//   LIMIT_EXCEEDED    more than 4 MiB of text, more than 64 defines, or a
//                     program too large
//   INVALID_ARGUMENT, INCOMPATIBLE  options
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
//   LIMIT_EXCEEDED  more than 64 MiB
//   OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_program_print(const kiln_program_t* program, size_t capacity, char* buffer,
                   size_t* out_length);

// ---- Canonical form ----

// Bytes that identify a program: two programs have equal ones exactly if they
// differ only in comments, layout, and the names of variables, arrays and
// functions. The names of the program and its parameters count.

enum { KILN_PROGRAM_HASH_BYTES = 33 };  // 32 digits and a NUL

// Writes the canonical form as kiln_program_print writes the text, but without
// a NUL. The version of the language's semantics is in it: a program that gives
// other results by a later library has another form, and another hash.
//
//   LIMIT_EXCEEDED  more than 16 MiB
//   OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_program_canonical(const kiln_program_t* program, size_t capacity,
                       uint8_t* buffer, size_t* out_size);

// Reads a program back. Unnamed objects are called _ and a number.
//
//   BAD_DATA        not the canonical form of a program, or one of
//                   another version; the message says at which byte
//   LIMIT_EXCEEDED  more than 16 MiB, or a program too large
//   OUT_OF_MEMORY
//
// The caller owns `*out_program`. `allocator` may be NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_program_read_canonical(
    kiln_bytes_view_t bytes, const kiln_allocator_t* allocator,
    kiln_program_t** out_program);

// The 128-bit hash of the canonical form, as hexadecimal digits. It is for
// lookup; to be certain, compare the bytes. LIMIT_EXCEEDED and OUT_OF_MEMORY as
// there. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_program_hash(
    const kiln_program_t* program, char out_text[KILN_PROGRAM_HASH_BYTES]);

// ---- Parameters of a program ----

// A parameter. thread-compatible
//
// Borrowed from its program.
typedef struct kiln_program_parameter_info_t {
  const char* name;
  uint32_t type;        // KILN_PROGRAM_TYPE_*, of the value or one element
  uint32_t type_bytes;  // of a value or one element
  uint32_t role;        // KILN_PROGRAM_ROLE_*; NONE for a scalar
  uint32_t is_counted;  // 1: the program says how many elements it has
} kiln_program_parameter_info_t;

// Its name. Borrowed. Since 0.1.
KILN_API const char* kiln_program_name(const kiln_program_t* program);

// Its parameters in the order of their declaration; false, with all zero, out
// of range. Since 0.1.
KILN_API uint32_t kiln_program_parameter_count(const kiln_program_t* program);
KILN_API bool kiln_program_parameter(
    const kiln_program_t* program, uint32_t index,
    kiln_program_parameter_info_t* out_parameter);

// The parameter of that name; false, with 0, if there is none. Since 0.1.
KILN_API bool kiln_program_find_parameter(const kiln_program_t* program,
                                          const char* name,
                                          uint32_t* out_index);

// How many dimensions its work size has: 1 to 3; 0 if the launch gives it.
// Since 0.1.
KILN_API uint32_t kiln_program_work_dimensions(const kiln_program_t* program);

// The threads of a block; all zero if the program does not specify it. Since
// 0.1.
KILN_API void kiln_program_block(const kiln_program_t* program,
                                 uint32_t out_block[3]);

// "f32"; "" for an invalid type. Static. Since 0.1.
KILN_API const char* kiln_program_type_name(uint32_t type);

// KILN_PROGRAM_TYPE_* of "f32"; NONE for an unknown name. Since 0.1.
KILN_API uint32_t kiln_program_type_find(const char* name);

// "inout"; "" for NONE. Static. Since 0.1.
KILN_API const char* kiln_program_role_name(uint32_t role);

#define KILN_PROGRAM_COUNT_UNKNOWN UINT64_MAX

// The values of a parameter in one launch. thread-compatible
typedef struct kiln_program_size_t {
  uint64_t count;  // of a buffer: elements, or KILN_PROGRAM_COUNT_UNKNOWN
  uint64_t bits;   // of a scalar: its value's bits, the rest zero
} kiln_program_size_t;

// Computes the counts that the program derives from the others, and the work
// size. `inout_sizes` has one for each parameter. `out_work` has 1 in
// unspecified axes, and 0 in all if the launch gives them.
//
//   INVALID_ARGUMENT  a count that is neither given nor declared, or one that
//                     is given and declared as something else
//   OUT_OF_RANGE      a count or work size too large or negative: work of more
//                     than 2^32 - 1 along an axis, more elements than that in a
//                     buffer whose length() is used, bytes over 2^63; or
//                     one made of a sum, a difference, a product or a shift to
//                     the left that wraps around
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_program_sizes(const kiln_program_t* program,
                   kiln_program_size_t* inout_sizes, uint64_t out_work[3]);

KILN_EXTERN_C_END

#endif  // KILN_PROGRAM_H_
