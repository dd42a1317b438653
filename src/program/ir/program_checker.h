// SPDX-License-Identifier: Apache-2.0
//
// program: the state that the files of the validator share during one check.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_CHECKER_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_CHECKER_H_

#include "program/ir/program_check.h"
#include "program/ir/program_rules.h"

enum { KILNI_NAME_BUCKETS = 256 };

// A name that is visible.
typedef struct kilni_program_visible_name_t {
  const char* name;
  uint32_t next;
} kilni_program_visible_name_t;

typedef struct kilni_program_checker_t {
  kilni_program_ir_t* ir;
  kilni_program_problem_fn_t tell;
  void* user;
  uint32_t errors;
  bool names;

  uint8_t* typed;     // by expression: its own rules were checked
  uint32_t* sizes;    // by expression: nodes as a tree, saturating
  uint8_t* visible;   // by variable
  uint8_t* depths;    // by function: of the calls in it
  uint16_t function;  // whose body is walked; 0: the program's
  uint32_t loops;     // around the statement
  char fix[80];       // of the next problem; "": the rule's

  kilni_program_visible_name_t* seen;
  uint32_t seen_count;
  uint32_t buckets[KILNI_NAME_BUCKETS];
} kilni_program_checker_t;

void kilni_program_checker_tell(kilni_program_checker_t* checker, uint32_t rule,
                                uint32_t kind, uint32_t index,
                                const char* format, ...) KILN_PRINTF(5, 6);
void kilni_program_checker_note(kilni_program_checker_t* checker, uint32_t rule,
                                uint32_t kind, uint32_t index,
                                const char* format, ...) KILN_PRINTF(5, 6);

// What to do about the problem that is told next, where the rule's own words
// are too general.
void kilni_program_checker_fix(kilni_program_checker_t* checker,
                               const char* format, ...) KILN_PRINTF(2, 3);

// program_check_expr.c: an expression where it is used. `whole` where it is
// the whole right side of a statement and may have an effect. Its type, NONE
// after a problem.
uint32_t kilni_program_check_value(kilni_program_checker_t* checker,
                                   uint32_t expr, bool whole);
// An index into a buffer, which was checked as a value.
void kilni_program_check_index(kilni_program_checker_t* checker,
                               uint32_t buffer, uint32_t index);
// True for an atomic, a subgroup operation, a call of what is not pure.
bool kilni_program_expr_has_effect(const kilni_program_ir_t* ir, uint32_t expr);

// program_check_statement.c: the bodies.
void kilni_program_check_bodies(kilni_program_checker_t* checker);

// program_check_head.c: parameters, counts, arrays, work, block.
void kilni_program_check_head(kilni_program_checker_t* checker);
// Which functions call which; fills in `pure`. False after a recursion.
bool kilni_program_check_calls(kilni_program_checker_t* checker);
// Names: their form; then one that becomes visible, and back to `count`.
void kilni_program_check_name(kilni_program_checker_t* checker, uint32_t name,
                              uint32_t kind, uint32_t index);
void kilni_program_check_names_cut(kilni_program_checker_t* checker,
                                   uint32_t count);

// program_check_uniform.c: what must be done by threads together.
kiln_status_t kilni_program_check_uniform(kilni_program_checker_t* checker);

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_CHECKER_H_
