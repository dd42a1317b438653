// SPDX-License-Identifier: Apache-2.0
//
// program: the validator: whether tables are a program of the language.
//
// It trusts the tables' shape (indices in range, operands before what is made
// of them, lists without circles, nesting within KILNI_IR_MAX_NESTING), which
// the parser, the builder and the canonical reader see to, and nothing else.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_CHECK_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_CHECK_H_

#include "program/ir/program_ir.h"

// What is told of a problem: which rule, about which record.
typedef struct kilni_program_problem_t {
  uint32_t rule;
  bool is_note;
  uint32_t kind;  // KILNI_IR_*
  uint32_t index;
  const char* detail;  // lives during the call
  const char* fix;     // the same
} kilni_program_problem_t;

typedef void (*kilni_program_problem_fn_t)(
    const kilni_program_problem_t* problem, void* user);

// Checks every rule and tells each problem; fills in which functions are pure.
// Names are looked at only where `names`: the parser has done that. OK also
// where there are problems; OUT_OF_MEMORY.
kiln_status_t kilni_program_ir_check(kilni_program_ir_t* ir, bool names,
                                     kilni_program_problem_fn_t tell,
                                     void* user);

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_CHECK_H_
