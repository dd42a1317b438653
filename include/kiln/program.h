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

KILN_EXTERN_C_END

#endif  // KILN_PROGRAM_H_
