// SPDX-License-Identifier: Apache-2.0
//
// program: the public header. Modules above use programs as users do, and ask
// for what can be known of one before it is dispatched.
//
// The tables (program/ir/program_ir.h) are for the module itself and its tests.
#ifndef KILN_SRC_PROGRAM_PROGRAM_H_
#define KILN_SRC_PROGRAM_PROGRAM_H_

#include "kiln/program.h"

// What a number of a program is.
enum {
  KILNI_PROGRAM_NUMBER_NONE = 0,    // the program does not say it
  KILNI_PROGRAM_NUMBER_VALUE = 1,   // `value`
  KILNI_PROGRAM_NUMBER_LENGTH = 2,  // the length of parameter `of`
  KILNI_PROGRAM_NUMBER_SCALAR = 3,  // the unsigned parameter `of`
  KILNI_PROGRAM_NUMBER_OTHER = 4,   // kiln_program_sizes computes it
};

// A count or a work size. thread-compatible
typedef struct kilni_program_number_t {
  uint32_t kind;  // KILNI_PROGRAM_NUMBER_*
  uint32_t of;
  uint64_t value;
} kilni_program_number_t;

// The count of a parameter that is a buffer, and the work size along an axis,
// where they are no more than one of these.
kilni_program_number_t kilni_program_count(const kiln_program_t* program,
                                           uint32_t parameter);
kilni_program_number_t kilni_program_work(const kiln_program_t* program,
                                          uint32_t axis);

// Whether every launch is known to write every element of a parameter that is
// an OUT buffer, and to read none of them: then it need not be zero before.
// False where that is not known.
bool kilni_program_writes_all(const kiln_program_t* program,
                              uint32_t parameter);

// Whether the threads must read the same in a parameter that is never written:
// whether they come to what they do together hangs on it. Memory that the
// launch writes must then not be bound to it. OUT_OF_MEMORY.
kiln_status_t kilni_program_relies_on(const kiln_program_t* program,
                                      uint32_t parameter, bool* out_relies);

#endif  // KILN_SRC_PROGRAM_PROGRAM_H_
