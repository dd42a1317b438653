// SPDX-License-Identifier: Apache-2.0
//
// program: the validator: expressions.
#include "program/ir/program_checker.h"
#include "program/ir/program_integers.h"
#include "program/ir/program_types.h"

static const kilni_program_expr_record_t* record_of(
    const kilni_program_checker_t* checker, uint32_t expr) {
  return &checker->ir->exprs.items[expr];
}

static uint32_t check_expr_type_of(const kilni_program_checker_t* checker,
                                   uint32_t expr) {
  return checker->ir->exprs.items[expr].type;
}

static const char* name_of_type(const kilni_program_checker_t* checker,
                                uint32_t expr) {
  return kilni_program_type_name(check_expr_type_of(checker, expr));
}

bool kilni_program_expr_has_effect(const kilni_program_ir_t* ir,
                                   uint32_t expr) {
  const kilni_program_expr_record_t* record = &ir->exprs.items[expr];
  if (record->op == KILNI_EXPR_CALL) {
    return !ir->functions.items[record->a].pure;
  }
  return record->op == KILNI_EXPR_ATOMIC || record->op == KILNI_EXPR_SUBGROUP;
}

// ---- Rules of one record, wherever it is used ----

// What to do about an operand that an operator does not take.
static void fix_operand(kilni_program_checker_t* checker, uint32_t wanted,
                        uint32_t type) {
  bool is_float = kilni_program_type_class(type) == KILNI_CLASS_FLOAT;
  if (type == KILN_PROGRAM_TYPE_BOOL) {
    kilni_program_checker_fix(checker, "cast it: u32(x), f32(x)");
  } else if (wanted == KILNI_OPERANDS_BOOL) {
    kilni_program_checker_fix(checker, "compare: x != 0, or x == 0 for !x");
  } else if (wanted == KILNI_OPERANDS_FLOAT) {
    kilni_program_checker_fix(checker, "cast the operand: f32(x)");
  } else if (wanted == KILNI_OPERANDS_INTEGER && is_float) {
    kilni_program_checker_fix(checker, "cast the operand: u32(x), i32(x)");
  }
}

// What to do about two operands of types that differ.
static void fix_operands(kilni_program_checker_t* checker, uint32_t op,
                         uint32_t left, uint32_t right) {
  uint32_t takes = kilni_program_binary_operators[op].operands;
  const char* one = kilni_program_type_name(left);
  const char* other = kilni_program_type_name(right);
  if (kilni_program_binary_is_shift(op)) {
    kilni_program_checker_fix(
        checker, kilni_program_type_is_integer(left)
                     ? "the count of a shift is unsigned: u32(x)"
                     : "shifts are of integers: u32(x), bitcast_u32(x)");
  } else if (takes == KILNI_OPERANDS_BOOL) {
    kilni_program_checker_fix(checker, "compare: x != 0");
  } else if (kilni_program_type_is(left, takes) &&
             kilni_program_type_is(right, takes)) {
    kilni_program_checker_fix(checker, "cast one of them: %s(x), %s(x)", one,
                              other);
  } else {
    kilni_program_checker_fix(checker, "cast one of them: %s(x)",
                              kilni_program_type_is(left, takes) ? one : other);
  }
}

static void check_unary(kilni_program_checker_t* checker, uint32_t expr,
                        const kilni_program_expr_record_t* record) {
  const kilni_program_operator_t* row =
      &kilni_program_unary_operators[record->extra];
  uint32_t operand = check_expr_type_of(checker, record->a);
  if (kilni_program_type_of_unary(record->extra, operand) == record->type) {
    return;
  }
  fix_operand(checker, row->operands, operand);
  kilni_program_checker_tell(checker, KILNI_RULE_OPERAND, KILNI_IR_EXPR, expr,
                             "%s takes %s, not %s", row->spelling,
                             kilni_program_operands_name(row->operands),
                             kilni_program_type_name(operand));
}

static void check_binary(kilni_program_checker_t* checker, uint32_t expr,
                         const kilni_program_expr_record_t* record) {
  const kilni_program_operator_t* row =
      &kilni_program_binary_operators[record->extra];
  uint32_t left = check_expr_type_of(checker, record->a);
  uint32_t right = check_expr_type_of(checker, record->b);
  if (kilni_program_type_of_binary(record->extra, left, right) ==
      record->type) {
    return;
  }
  if (left == right && !kilni_program_binary_is_shift(record->extra)) {
    fix_operand(checker, row->operands, left);
    if (record->extra == KILN_PROGRAM_BINARY_BIT_XOR &&
        kilni_program_type_class(left) == KILNI_CLASS_FLOAT) {
      kilni_program_checker_fix(checker,
                                "a power is pow(x, y); ^ is exclusive or");
    }
    kilni_program_checker_tell(checker, KILNI_RULE_OPERAND, KILNI_IR_EXPR, expr,
                               "%s takes %s, not %s", row->spelling,
                               kilni_program_operands_name(row->operands),
                               kilni_program_type_name(left));
    return;
  }
  fix_operands(checker, record->extra, left, right);
  kilni_program_checker_tell(checker, KILNI_RULE_OPERANDS, KILNI_IR_EXPR, expr,
                             "%s of %s and %s", row->spelling,
                             kilni_program_type_name(left),
                             kilni_program_type_name(right));
}

static void check_select(kilni_program_checker_t* checker, uint32_t expr,
                         const kilni_program_expr_record_t* record) {
  if (check_expr_type_of(checker, record->a) != KILN_PROGRAM_TYPE_BOOL) {
    kilni_program_checker_tell(checker, KILNI_RULE_CONDITION, KILNI_IR_EXPR,
                               expr, "%s", name_of_type(checker, record->a));
  }
  if (check_expr_type_of(checker, record->b) !=
      check_expr_type_of(checker, record->c)) {
    kilni_program_checker_tell(checker, KILNI_RULE_SELECT, KILNI_IR_EXPR, expr,
                               "%s and %s", name_of_type(checker, record->b),
                               name_of_type(checker, record->c));
  }
}

static void check_fma(kilni_program_checker_t* checker, uint32_t expr,
                      const kilni_program_expr_record_t* record) {
  uint32_t type = check_expr_type_of(checker, record->a);
  if (kilni_program_type_class(type) == KILNI_CLASS_FLOAT &&
      check_expr_type_of(checker, record->b) == type &&
      check_expr_type_of(checker, record->c) == type) {
    return;
  }
  kilni_program_checker_tell(checker, KILNI_RULE_FMA, KILNI_IR_EXPR, expr,
                             "%s, %s and %s", kilni_program_type_name(type),
                             name_of_type(checker, record->b),
                             name_of_type(checker, record->c));
}

static void check_bitcast(kilni_program_checker_t* checker, uint32_t expr,
                          const kilni_program_expr_record_t* record) {
  uint32_t from = check_expr_type_of(checker, record->a);
  if (kilni_program_type_bytes(from) ==
          kilni_program_type_bytes(record->type) &&
      from != KILN_PROGRAM_TYPE_BOOL &&
      record->type != KILN_PROGRAM_TYPE_BOOL) {
    return;
  }
  kilni_program_checker_tell(
      checker, KILNI_RULE_CAST, KILNI_IR_EXPR, expr, "the bits of %s as %s",
      kilni_program_type_name(from), kilni_program_type_name(record->type));
}

static void check_subgroup(kilni_program_checker_t* checker, uint32_t expr,
                           const kilni_program_expr_record_t* record) {
  const kilni_program_operator_t* row = &kilni_program_subgroups[record->extra];
  uint32_t type = check_expr_type_of(checker, record->a);
  if (kilni_program_type_of_subgroup(record->extra, type) != record->type) {
    kilni_program_checker_tell(checker, KILNI_RULE_SUBGROUP, KILNI_IR_EXPR,
                               expr, "%s takes %s, not %s", row->spelling,
                               kilni_program_operands_name(row->operands),
                               kilni_program_type_name(type));
  }
  if (row->lane &&
      check_expr_type_of(checker, record->b) != KILN_PROGRAM_TYPE_U32) {
    kilni_program_checker_tell(checker, KILNI_RULE_SUBGROUP, KILNI_IR_EXPR,
                               expr, "the lane is a %s",
                               name_of_type(checker, record->b));
  }
}

void kilni_program_check_index(kilni_program_checker_t* checker,
                               uint32_t buffer, uint32_t index) {
  const kilni_program_buffer_record_t* record =
      &checker->ir->buffers.items[buffer];
  if (!kilni_program_type_is_integer(check_expr_type_of(checker, index))) {
    kilni_program_checker_tell(checker, KILNI_RULE_INDEX, KILNI_IR_EXPR, index,
                               "%s", name_of_type(checker, index));
    return;
  }
  uint64_t at, count;
  if (record_of(checker, index)->op != KILNI_EXPR_LITERAL ||
      !kilni_program_ir_evaluate(checker->ir, index, NULL, &at)) {
    return;
  }
  int64_t number =
      kilni_program_integer_signed(check_expr_type_of(checker, index), at);
  if (number < 0 && record->count == 0 &&
      kilni_program_type_class(check_expr_type_of(checker, index)) ==
          KILNI_CLASS_SIGNED) {
    kilni_program_checker_note(checker, KILNI_RULE_OUT_OF_RANGE, KILNI_IR_EXPR,
                               index, "\"%s\" has no element %lld",
                               kilni_program_ir_name(checker->ir, record->name),
                               (long long)number);
    return;
  }
  if (record->count == 0 ||
      !kilni_program_ir_evaluate(checker->ir, record->count, NULL, &count)) {
    return;
  }
  at = (uint64_t)number;
  if (at < count) return;
  kilni_program_checker_note(checker, KILNI_RULE_OUT_OF_RANGE, KILNI_IR_EXPR,
                             index, "\"%s\" has %llu elements",
                             kilni_program_ir_name(checker->ir, record->name),
                             (unsigned long long)count);
}

static void check_order(kilni_program_checker_t* checker, uint32_t expr,
                        const kilni_program_expr_record_t* record) {
  uint32_t op = KILNI_ATOMIC_OP(record->extra);
  uint32_t ordering = KILNI_ATOMIC_ORDERING(record->extra);
  uint32_t scope = KILNI_ATOMIC_SCOPE(record->extra);
  bool release = ordering == KILN_PROGRAM_ORDERING_RELEASE ||
                 ordering == KILN_PROGRAM_ORDERING_ACQ_REL;
  bool acquire = ordering == KILN_PROGRAM_ORDERING_ACQUIRE ||
                 ordering == KILN_PROGRAM_ORDERING_ACQ_REL;
  const char* spelling = kilni_program_atomics[op].spelling;
  if ((op == KILN_PROGRAM_ATOMIC_LOAD && release) ||
      (op == KILN_PROGRAM_ATOMIC_STORE && acquire)) {
    kilni_program_checker_tell(checker, KILNI_RULE_ATOMIC_ORDER, KILNI_IR_EXPR,
                               expr, "%s with %s", spelling,
                               kilni_program_orderings[ordering]);
  }
  if (checker->ir->buffers.items[record->a].role == KILN_PROGRAM_ROLE_SHARED &&
      scope != KILN_PROGRAM_SCOPE_BLOCK) {
    kilni_program_checker_tell(checker, KILNI_RULE_ATOMIC_ORDER, KILNI_IR_EXPR,
                               expr, "scope %s for a shared buffer",
                               kilni_program_scopes[scope]);
  }
}

static void check_atomic(kilni_program_checker_t* checker, uint32_t expr,
                         const kilni_program_expr_record_t* record) {
  const kilni_program_ir_t* ir = checker->ir;
  const kilni_program_buffer_record_t* buffer = &ir->buffers.items[record->a];
  const uint32_t* operands = ir->operands.items + record->b;
  uint32_t op = KILNI_ATOMIC_OP(record->extra);
  if (!kilni_program_type_is(buffer->type,
                             kilni_program_atomics[op].operands)) {
    kilni_program_checker_tell(
        checker, KILNI_RULE_ATOMIC, KILNI_IR_EXPR, expr, "%s takes %s, not %s",
        kilni_program_atomics[op].spelling,
        kilni_program_operands_name(kilni_program_atomics[op].operands),
        kilni_program_type_name(buffer->type));
  }
  for (uint32_t i = 1; i < record->c; i++) {
    if (check_expr_type_of(checker, operands[i]) == buffer->type) continue;
    kilni_program_checker_tell(checker, KILNI_RULE_ATOMIC, KILNI_IR_EXPR, expr,
                               "a value of %s for elements of %s",
                               name_of_type(checker, operands[i]),
                               kilni_program_type_name(buffer->type));
  }
  bool reads = op == KILN_PROGRAM_ATOMIC_LOAD &&
               buffer->role != KILN_PROGRAM_ROLE_PRIVATE;
  bool writes = buffer->role == KILN_PROGRAM_ROLE_OUT ||
                buffer->role == KILN_PROGRAM_ROLE_INOUT ||
                buffer->role == KILN_PROGRAM_ROLE_RESIDENT ||
                buffer->role == KILN_PROGRAM_ROLE_SHARED;
  if (!reads && !writes) {
    kilni_program_checker_tell(checker, KILNI_RULE_ATOMIC_ROLE, KILNI_IR_EXPR,
                               expr, "\"%s\" is %s",
                               kilni_program_ir_name(ir, buffer->name),
                               kilni_program_role_name(buffer->role));
  }
  check_order(checker, expr, record);
  kilni_program_check_index(checker, record->a, operands[0]);
}

// Whether a buffer may stand for a parameter of a function.
static void check_buffer_operand(kilni_program_checker_t* checker,
                                 uint32_t expr, uint32_t given,
                                 uint32_t parameter) {
  const kilni_program_ir_t* ir = checker->ir;
  const kilni_program_buffer_record_t* mine = &ir->buffers.items[given];
  const kilni_program_buffer_record_t* wants = &ir->buffers.items[parameter];
  if (mine->type != wants->type) {
    kilni_program_checker_tell(checker, KILNI_RULE_CALL, KILNI_IR_EXPR, expr,
                               "\"%s\" has elements of %s, \"%s\" of %s",
                               kilni_program_ir_name(ir, mine->name),
                               kilni_program_type_name(mine->type),
                               kilni_program_ir_name(ir, wants->name),
                               kilni_program_type_name(wants->type));
  }
  bool read_only = mine->role == KILN_PROGRAM_ROLE_IN ||
                   mine->role == KILN_PROGRAM_ROLE_UNIFORM;
  if (read_only && wants->role != KILN_PROGRAM_ROLE_IN) {
    kilni_program_checker_tell(checker, KILNI_RULE_CALL_BUFFER, KILNI_IR_EXPR,
                               expr, "\"%s\" is %s, \"%s\" is %s",
                               kilni_program_ir_name(ir, mine->name),
                               kilni_program_role_name(mine->role),
                               kilni_program_ir_name(ir, wants->name),
                               kilni_program_role_name(wants->role));
  }
}

static void check_expr_check_call(kilni_program_checker_t* checker,
                                  uint32_t expr,
                                  const kilni_program_expr_record_t* record) {
  const kilni_program_ir_t* ir = checker->ir;
  const kilni_program_function_record_t* called =
      &ir->functions.items[record->a];
  if (record->c != called->parameter_count) {
    kilni_program_checker_tell(checker, KILNI_RULE_CALL, KILNI_IR_EXPR, expr,
                               "%u operands for %u parameters", record->c,
                               called->parameter_count);
    return;
  }
  for (uint32_t i = 0; i < record->c; i++) {
    uint32_t parameter = ir->operands.items[called->parameters + i];
    uint32_t given = ir->operands.items[record->b + i];
    if ((parameter & KILNI_PARAMETER_BUFFER) != 0) {
      check_buffer_operand(checker, expr, given,
                           parameter & ~KILNI_PARAMETER_BUFFER);
    } else if (check_expr_type_of(checker, given) !=
               ir->variables.items[parameter].type) {
      kilni_program_checker_fix(
          checker, "cast it: %s(x)",
          kilni_program_type_name(ir->variables.items[parameter].type));
      kilni_program_checker_tell(
          checker, KILNI_RULE_CALL, KILNI_IR_EXPR, expr,
          "operand %u is a %s, the parameter a %s", i + 1,
          name_of_type(checker, given),
          kilni_program_type_name(ir->variables.items[parameter].type));
    }
  }
}

static void check_record(kilni_program_checker_t* checker, uint32_t expr,
                         const kilni_program_expr_record_t* record) {
  switch (record->op) {
    case KILNI_EXPR_LOAD:
      kilni_program_check_index(checker, record->a, record->b);
      break;
    case KILNI_EXPR_UNARY:
      check_unary(checker, expr, record);
      break;
    case KILNI_EXPR_BINARY:
      check_binary(checker, expr, record);
      break;
    case KILNI_EXPR_SELECT:
      check_select(checker, expr, record);
      break;
    case KILNI_EXPR_FMA:
      check_fma(checker, expr, record);
      break;
    case KILNI_EXPR_BITCAST:
      check_bitcast(checker, expr, record);
      break;
    case KILNI_EXPR_SUBGROUP:
      check_subgroup(checker, expr, record);
      break;
    case KILNI_EXPR_ATOMIC:
      check_atomic(checker, expr, record);
      break;
    case KILNI_EXPR_CALL:
      check_expr_check_call(checker, expr, record);
      break;
    default:
      break;
  }
}

// ---- Rules of the place where it is used ----

static void not_visible(kilni_program_checker_t* checker, uint32_t expr,
                        uint32_t name) {
  kilni_program_checker_tell(checker, KILNI_RULE_NOT_VISIBLE, KILNI_IR_EXPR,
                             expr, "\"%s\"",
                             kilni_program_ir_name(checker->ir, name));
}

static void check_buffer_place(kilni_program_checker_t* checker, uint32_t expr,
                               uint32_t buffer) {
  const kilni_program_buffer_record_t* record =
      &checker->ir->buffers.items[buffer];
  if (record->function != checker->function) {
    not_visible(checker, expr, record->name);
  }
}

static void check_expr_check_place(kilni_program_checker_t* checker,
                                   uint32_t expr,
                                   const kilni_program_expr_record_t* record) {
  const kilni_program_ir_t* ir = checker->ir;
  switch (record->op) {
    case KILNI_EXPR_VARIABLE:
      if (!checker->visible[record->a]) {
        not_visible(checker, expr, ir->variables.items[record->a].name);
      }
      break;
    case KILNI_EXPR_SCALAR:
      if (checker->function != 0) {
        not_visible(checker, expr, ir->scalars.items[record->a].name);
      }
      break;
    case KILNI_EXPR_LENGTH:
    case KILNI_EXPR_LOAD:
    case KILNI_EXPR_ATOMIC:
      check_buffer_place(checker, expr, record->a);
      break;
    case KILNI_EXPR_CALL: {
      const kilni_program_function_record_t* called =
          &ir->functions.items[record->a];
      for (uint32_t i = 0; i < record->c && i < called->parameter_count; i++) {
        uint32_t parameter = ir->operands.items[called->parameters + i];
        if ((parameter & KILNI_PARAMETER_BUFFER) != 0) {
          check_buffer_place(checker, expr, ir->operands.items[record->b + i]);
        }
      }
      break;
    }
    default:
      break;
  }
}

static void check_expr(kilni_program_checker_t* checker, uint32_t expr,
                       bool whole);

// An operand must have a value, and no effect of its own.
static void check_expr_check_operand(kilni_program_checker_t* checker,
                                     uint32_t expr) {
  uint32_t errors = checker->errors;
  check_expr(checker, expr, false);
  if (errors == checker->errors &&
      check_expr_type_of(checker, expr) == KILN_PROGRAM_TYPE_NONE) {
    kilni_program_checker_tell(checker, KILNI_RULE_NO_VALUE, KILNI_IR_EXPR,
                               expr, "it is an operand");
  }
}

static void check_expr(kilni_program_checker_t* checker, uint32_t expr,
                       bool whole) {
  const kilni_program_expr_record_t* record = record_of(checker, expr);
  uint32_t operands[KILNI_IR_MAX_CALL];
  uint32_t errors = checker->errors;
  uint32_t count = kilni_program_ir_operands(checker->ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) {
    check_expr_check_operand(checker, operands[i]);
  }
  check_expr_check_place(checker, expr, record);
  if (!whole && kilni_program_expr_has_effect(checker->ir, expr)) {
    kilni_program_checker_tell(checker, KILNI_RULE_EFFECT, KILNI_IR_EXPR, expr,
                               "its order among others would not be known");
  }
  // One problem is enough: what is made of it has others only by it.
  if (errors == checker->errors && !checker->typed[expr]) {
    checker->typed[expr] = 1;
    check_record(checker, expr, record);
  }
}

uint32_t kilni_program_check_value(kilni_program_checker_t* checker,
                                   uint32_t expr, bool whole) {
  uint32_t errors = checker->errors;
  check_expr(checker, expr, whole);
  if (errors != checker->errors) return KILN_PROGRAM_TYPE_NONE;
  if (check_expr_type_of(checker, expr) == KILN_PROGRAM_TYPE_NONE && !whole) {
    kilni_program_checker_tell(checker, KILNI_RULE_NO_VALUE, KILNI_IR_EXPR,
                               expr, "a value is wanted here");
  }
  return check_expr_type_of(checker, expr);
}
