// SPDX-License-Identifier: Apache-2.0
//
// program: the validator: its frame, and the size of expressions.
#include "program/ir/program_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "program/ir/program_checker.h"

enum { DETAIL_BYTES = 256 };

static void check_tell(kilni_program_checker_t* checker,
                       kilni_program_problem_t problem, const char* format,
                       va_list args) {
  char detail[DETAIL_BYTES];
  vsnprintf(detail, sizeof(detail), format, args);
  problem.detail = detail;
  problem.fix = checker->fix[0] != 0 ? checker->fix
                                     : kilni_program_rule_fix(problem.rule);
  if (!problem.is_note) checker->errors++;
  checker->tell(&problem, checker->user);
  checker->fix[0] = 0;
}

void kilni_program_checker_fix(kilni_program_checker_t* checker,
                               const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(checker->fix, sizeof(checker->fix), format, args);
  va_end(args);
}

void kilni_program_checker_tell(kilni_program_checker_t* checker, uint32_t rule,
                                uint32_t kind, uint32_t index,
                                const char* format, ...) {
  va_list args;
  va_start(args, format);
  kilni_program_problem_t problem = {rule, false, kind, index, NULL, NULL};
  check_tell(checker, problem, format, args);
  va_end(args);
}

void kilni_program_checker_note(kilni_program_checker_t* checker, uint32_t rule,
                                uint32_t kind, uint32_t index,
                                const char* format, ...) {
  va_list args;
  va_start(args, format);
  kilni_program_problem_t problem = {rule, true, kind, index, NULL, NULL};
  check_tell(checker, problem, format, args);
  va_end(args);
}

// How many nodes each expression has as a tree: one that is used twice counts
// twice, since it is evaluated twice. No operand comes behind its user.
static bool measure(kilni_program_checker_t* checker) {
  const kilni_program_ir_t* ir = checker->ir;
  for (uint32_t i = 1; i < ir->exprs.count; i++) {
    uint32_t operands[KILNI_IR_MAX_CALL];
    uint32_t count = kilni_program_ir_operands(ir, i, operands);
    uint64_t size = 1;
    for (uint32_t k = 0; k < count; k++) size += checker->sizes[operands[k]];
    if (size > KILNI_IR_MAX_TREE) {
      kilni_program_checker_tell(checker, KILNI_RULE_SIZE, KILNI_IR_EXPR, i,
                                 "more than %d parts", KILNI_IR_MAX_TREE);
      return false;
    }
    checker->sizes[i] = (uint32_t)size;
  }
  uint64_t all = 0;
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    uint32_t exprs[3];
    uint32_t count =
        kilni_program_ir_statement_exprs(&ir->statements.items[i], exprs);
    for (uint32_t k = 0; k < count; k++) all += checker->sizes[exprs[k]];
    if (all > KILNI_IR_MAX_TREE) {
      kilni_program_checker_tell(checker, KILNI_RULE_SIZE, KILNI_IR_STATEMENT,
                                 i, "more than %d parts in all",
                                 KILNI_IR_MAX_TREE);
      return false;
    }
  }
  return true;
}

static kiln_status_t check_run(kilni_program_checker_t* checker) {
  if (!measure(checker)) return kiln_ok();
  bool calls = kilni_program_check_calls(checker);
  kilni_program_check_head(checker);
  kilni_program_check_bodies(checker);
  // What is not well-formed says nothing about who comes where together.
  if (!calls || checker->errors != 0) return kiln_ok();
  return kilni_program_check_uniform(checker);
}

static kiln_status_t check_allocate(kilni_program_checker_t* checker) {
  const kilni_program_ir_t* ir = checker->ir;
  kiln_allocator_t allocator = ir->allocator;
  size_t names = (size_t)ir->variables.count + ir->buffers.count +
                 ir->scalars.count + ir->functions.count + 2;
  void* block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, (size_t)ir->exprs.count + 1, &block));
  checker->typed = block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, (size_t)ir->exprs.count + 1, sizeof(uint32_t), &block));
  checker->sizes = block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, (size_t)ir->variables.count + 1, &block));
  checker->visible = block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, (size_t)ir->functions.count + 1, &block));
  checker->depths = block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, names, sizeof(kilni_program_visible_name_t), &block));
  checker->seen = block;
  checker->seen_count = 1;
  return kiln_ok();
}

kiln_status_t kilni_program_ir_check(kilni_program_ir_t* ir, bool names,
                                     kilni_program_problem_fn_t tell_fn,
                                     void* user) {
  kilni_program_checker_t checker;
  memset(&checker, 0, sizeof(checker));
  checker.ir = ir;
  checker.tell = tell_fn;
  checker.user = user;
  checker.names = names;
  kiln_allocator_t allocator = ir->allocator;
  size_t name_count = (size_t)ir->variables.count + ir->buffers.count +
                      ir->scalars.count + ir->functions.count + 2;
  kiln_status_t status = check_allocate(&checker);
  if (kiln_status_is_ok(status)) status = check_run(&checker);
  kilni_base_free(allocator, checker.typed, (size_t)ir->exprs.count + 1);
  kilni_base_free_array(allocator, checker.sizes, (size_t)ir->exprs.count + 1,
                        sizeof(uint32_t));
  kilni_base_free(allocator, checker.visible, (size_t)ir->variables.count + 1);
  kilni_base_free(allocator, checker.depths, (size_t)ir->functions.count + 1);
  kilni_base_free_array(allocator, checker.seen, name_count,
                        sizeof(kilni_program_visible_name_t));
  return status;
}
