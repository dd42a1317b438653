// SPDX-License-Identifier: Apache-2.0
//
// program: what can be known of a program before it is dispatched: numbers that
// are simple, and outputs that are written completely. Where something is not
// known the answer is the careful one.
#include "program/ir/program_object.h"
#include "program/ir/program_types.h"
#include "program/program.h"

enum { MAX_STEPS = 8 };

static kilni_program_number_t facts_number_of(uint32_t kind, uint32_t of,
                                              uint64_t value) {
  kilni_program_number_t number = {kind, of, value};
  return number;
}

static bool is_unsigned(uint32_t type) {
  return kilni_program_type_class(type) == KILNI_CLASS_UNSIGNED;
}

// Casts that change no value.
static uint32_t without_casts(const kilni_program_ir_t* ir, uint32_t expr) {
  const kilni_program_expr_record_t* record = &ir->exprs.items[expr];
  while (record->op == KILNI_EXPR_CAST && is_unsigned(record->type) &&
         is_unsigned(ir->exprs.items[record->a].type) &&
         kilni_program_type_bytes(record->type) >=
             kilni_program_type_bytes(ir->exprs.items[record->a].type)) {
    expr = record->a;
    record = &ir->exprs.items[expr];
  }
  return expr;
}

static uint32_t parameter_of_scalar(const kilni_program_ir_t* ir,
                                    uint32_t scalar) {
  for (uint32_t i = 0; i < ir->order_count; i++) {
    if (ir->operands.items[ir->order + i] == scalar) return i;
  }
  return ir->order_count;
}

static kilni_program_number_t facts_read_number(const kilni_program_ir_t* ir,
                                                uint32_t expr) {
  if (expr == 0) return facts_number_of(KILNI_PROGRAM_NUMBER_NONE, 0, 0);
  const kilni_program_expr_record_t* record =
      &ir->exprs.items[without_casts(ir, expr)];
  if (record->op == KILNI_EXPR_LITERAL && is_unsigned(record->type)) {
    return facts_number_of(KILNI_PROGRAM_NUMBER_VALUE, 0,
                           kilni_program_ir_literal_bits(record));
  }
  if (record->op == KILNI_EXPR_LENGTH) {
    uint32_t of = kilni_program_ir_parameter_of(ir, record->a);
    if (of < ir->order_count) {
      return facts_number_of(KILNI_PROGRAM_NUMBER_LENGTH, of, 0);
    }
  }
  if (record->op == KILNI_EXPR_SCALAR && is_unsigned(record->type)) {
    uint32_t of = parameter_of_scalar(ir, record->a);
    if (of < ir->order_count) {
      return facts_number_of(KILNI_PROGRAM_NUMBER_SCALAR, of, 0);
    }
  }
  return facts_number_of(KILNI_PROGRAM_NUMBER_OTHER, 0, 0);
}

// The buffer that a parameter is; 0 for a scalar.
static uint32_t buffer_of(const kilni_program_ir_t* ir, uint32_t parameter) {
  if (parameter >= ir->order_count) return 0;
  uint32_t record = ir->operands.items[ir->order + parameter];
  if ((record & KILNI_PARAMETER_BUFFER) == 0) return 0;
  return record & ~KILNI_PARAMETER_BUFFER;
}

kilni_program_number_t kilni_program_count(const kiln_program_t* program,
                                           uint32_t parameter) {
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  uint32_t buffer = buffer_of(ir, parameter);
  return facts_read_number(ir,
                           buffer == 0 ? 0 : ir->buffers.items[buffer].count);
}

kilni_program_number_t kilni_program_work(const kiln_program_t* program,
                                          uint32_t axis) {
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  return facts_read_number(ir, axis < 3 ? ir->work[axis] : 0);
}

// ---- Outputs that are written completely ----

// A length that is said by another number is that number.
static kilni_program_number_t facts_follow(const kilni_program_ir_t* ir,
                                           kilni_program_number_t number) {
  for (int i = 0; i < MAX_STEPS; i++) {
    if (number.kind != KILNI_PROGRAM_NUMBER_LENGTH) break;
    uint32_t count = ir->buffers.items[buffer_of(ir, number.of)].count;
    if (count == 0) break;
    kilni_program_number_t next = facts_read_number(ir, count);
    if (next.kind == KILNI_PROGRAM_NUMBER_OTHER) break;
    number = next;
  }
  return number;
}

// Whether there are as many work items as elements.
static bool covers(const kilni_program_ir_t* ir, uint32_t parameter) {
  if (ir->work[0] == 0 || ir->work[1] != 0 || ir->work[2] != 0) return false;
  kilni_program_number_t work =
      facts_follow(ir, facts_read_number(ir, ir->work[0]));
  kilni_program_number_t count = facts_follow(
      ir, facts_number_of(KILNI_PROGRAM_NUMBER_LENGTH, parameter, 0));
  return work.kind == count.kind && work.kind != KILNI_PROGRAM_NUMBER_OTHER &&
         work.of == count.of && work.value == count.value;
}

static bool facts_reads(const kilni_program_ir_t* ir, uint32_t expr,
                        uint32_t buffer) {
  const kilni_program_expr_record_t* record = &ir->exprs.items[expr];
  if ((record->op == KILNI_EXPR_LOAD || record->op == KILNI_EXPR_ATOMIC) &&
      record->a == buffer) {
    return true;
  }
  uint32_t operands[KILNI_IR_MAX_CALL];
  uint32_t count = kilni_program_ir_operands(ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (facts_reads(ir, operands[i], buffer)) return true;
  }
  return false;
}

// Whether anything reads the buffer, or may: functions that take buffers might.
// What stands in the tables and in no statement is nobody's.
static bool facts_is_read(const kilni_program_ir_t* ir, uint32_t buffer) {
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    const kilni_program_buffer_record_t* record = &ir->buffers.items[i];
    if (record->function != 0 && record->role != KILN_PROGRAM_ROLE_PRIVATE) {
      return true;
    }
  }
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    uint32_t exprs[3];
    uint32_t count =
        kilni_program_ir_statement_exprs(&ir->statements.items[i], exprs);
    for (uint32_t k = 0; k < count; k++) {
      if (exprs[k] != 0 && facts_reads(ir, exprs[k], buffer)) return true;
    }
  }
  return false;
}

// What may end a thread before its store, or move elements by itself.
static bool may_leave(const kilni_program_ir_t* ir) {
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    uint32_t op = ir->statements.items[i].op;
    if (op == KILNI_STATEMENT_RETURN || op == KILNI_STATEMENT_TRAP ||
        op == KILNI_STATEMENT_ASYNC_COPY) {
      return true;
    }
  }
  return false;
}

// Whether an index is global_id.x, as it is or under a name.
static bool is_own_index(const kilni_program_ir_t* ir, uint32_t expr) {
  const kilni_program_expr_record_t* record =
      &ir->exprs.items[without_casts(ir, expr)];
  if (record->op == KILNI_EXPR_VARIABLE &&
      ir->variables.items[record->a].kind == KILNI_VARIABLE_LET) {
    for (uint32_t i = 1; i < ir->statements.count; i++) {
      const kilni_program_statement_record_t* let = &ir->statements.items[i];
      if (let->op != KILNI_STATEMENT_LET || let->a != record->a) continue;
      record = &ir->exprs.items[without_casts(ir, let->b)];
      break;
    }
  }
  return record->op == KILNI_EXPR_ID &&
         record->extra == KILN_PROGRAM_ID_GLOBAL_ID;
}

bool kilni_program_writes_all(const kiln_program_t* program,
                              uint32_t parameter) {
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  uint32_t buffer = buffer_of(ir, parameter);
  if (buffer == 0 || ir->buffers.items[buffer].role != KILN_PROGRAM_ROLE_OUT ||
      !covers(ir, parameter) || facts_is_read(ir, buffer) || may_leave(ir)) {
    return false;
  }
  uint32_t at = ir->body;
  for (; at != 0; at = ir->statements.items[at].next) {
    const kilni_program_statement_record_t* store = &ir->statements.items[at];
    if (store->op == KILNI_STATEMENT_STORE && store->a == buffer &&
        is_own_index(ir, store->b)) {
      return true;
    }
  }
  return false;
}
