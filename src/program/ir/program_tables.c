// SPDX-License-Identifier: Apache-2.0
//
// program: the tables of a program: making, growing, copying, ending.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "program/ir/program_ir.h"
#include "program/ir/program_types.h"

// The tables: X(field, most records).
#define TABLES(X)                        \
  X(exprs, KILNI_IR_MAX_EXPRS)           \
  X(statements, KILNI_IR_MAX_STATEMENTS) \
  X(variables, KILNI_IR_MAX_VARIABLES)   \
  X(buffers, KILNI_IR_MAX_BUFFERS)       \
  X(scalars, KILNI_IR_MAX_SCALARS)       \
  X(functions, KILNI_IR_MAX_FUNCTIONS)   \
  X(operands, KILNI_IR_MAX_OPERANDS)     \
  X(names, KILNI_IR_MAX_NAME_BYTES)

enum { FIRST_CAPACITY = 16 };

void kilni_program_ir_init(kilni_program_ir_t* ir, kiln_allocator_t allocator) {
  memset(ir, 0, sizeof(*ir));
  ir->allocator = allocator;
}

void kilni_program_ir_deinit(kilni_program_ir_t* ir) {
#define FREE(field, most)                                                   \
  kilni_base_free_array(ir->allocator, ir->field.items, ir->field.capacity, \
                        sizeof(ir->field.items[0]));
  if (ir->allocator.fn != NULL) {
    TABLES(FREE)
  }
#undef FREE
  memset(ir, 0, sizeof(*ir));
}

kiln_status_t kilni_program_ir_status(const kilni_program_ir_t* ir) {
  if (ir->failed == KILN_STATUS_OK) return kiln_ok();
  if (ir->failed != KILN_STATUS_LIMIT_EXCEEDED) {
    return kilni_base_status_bare(ir->failed);
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "the program is too large"),
      "divide it into several programs");
}

// Where the next `count` records of a table go; its new count by the caller.
static bool tables_make_space(kilni_program_ir_t* ir, void** items,
                              uint32_t used, uint32_t* capacity, uint32_t count,
                              uint32_t most, size_t size) {
  if (ir->failed != KILN_STATUS_OK) return false;
  // The unused record comes with the first one.
  uint64_t wanted = (uint64_t)(used == 0 ? 1 : used) + count;
  if (wanted > most) {
    ir->failed = KILN_STATUS_LIMIT_EXCEEDED;
    return false;
  }
  if (wanted <= *capacity) return true;
  size_t now = *capacity;
  if (wanted < FIRST_CAPACITY) wanted = FIRST_CAPACITY;
  kiln_status_t status =
      kilni_base_grow(ir->allocator, (size_t)wanted, size, &now, items);
  if (!kiln_status_is_ok(status)) {
    ir->failed = kiln_status_code(status);
    kiln_status_free(status);
    return false;
  }
  *capacity = (uint32_t)now;
  return true;
}

// Space for `count` more in `ir->field`; false on failure.
#define SPACE(ir, field, count_, most)                                    \
  (tables_make_space((ir), (void**)&(ir)->field.items, (ir)->field.count, \
                     &(ir)->field.capacity, (count_), (most),             \
                     sizeof((ir)->field.items[0])) &&                     \
   ((ir)->field.count += (ir)->field.count == 0 ? 1 : 0, true))

#define ADD(name, field, type, most)                                          \
  uint32_t kilni_program_ir_add_##name(kilni_program_ir_t* ir, type record) { \
    if (!SPACE(ir, field, 1, most)) return 0;                                 \
    ir->field.items[ir->field.count] = record;                                \
    return ir->field.count++;                                                 \
  }
ADD(expr, exprs, kilni_program_expr_record_t, KILNI_IR_MAX_EXPRS)
ADD(statement, statements, kilni_program_statement_record_t,
    KILNI_IR_MAX_STATEMENTS)
ADD(variable, variables, kilni_program_variable_record_t,
    KILNI_IR_MAX_VARIABLES)
ADD(buffer, buffers, kilni_program_buffer_record_t, KILNI_IR_MAX_BUFFERS)
ADD(scalar, scalars, kilni_program_scalar_record_t, KILNI_IR_MAX_SCALARS)
ADD(function, functions, kilni_program_function_record_t,
    KILNI_IR_MAX_FUNCTIONS)

uint32_t kilni_program_ir_add_operands(kilni_program_ir_t* ir,
                                       const uint32_t* operands,
                                       uint32_t count) {
  if (!SPACE(ir, operands, count, KILNI_IR_MAX_OPERANDS)) return 0;
  uint32_t first = ir->operands.count;
  if (count != 0) {
    memcpy(ir->operands.items + first, operands, count * sizeof(*operands));
  }
  ir->operands.count += count;
  return first;
}

uint32_t kilni_program_ir_add_name(kilni_program_ir_t* ir, const char* name,
                                   size_t size) {
  if (size == 0) return 0;
  if (size >= KILNI_IR_MAX_NAME_BYTES) {
    if (ir->failed == KILN_STATUS_OK) ir->failed = KILN_STATUS_LIMIT_EXCEEDED;
    return 0;
  }
  if (!SPACE(ir, names, (uint32_t)size + 1, KILNI_IR_MAX_NAME_BYTES)) return 0;
  uint32_t first = ir->names.count;
  memcpy(ir->names.items + first, name, size);
  ir->names.items[first + size] = 0;
  ir->names.count += (uint32_t)size + 1;
  return first;
}

const char* kilni_program_ir_name(const kilni_program_ir_t* ir, uint32_t name) {
  return name == 0 ? "" : ir->names.items + name;
}

uint32_t kilni_program_ir_add_literal(kilni_program_ir_t* ir, uint8_t type,
                                      uint64_t bits) {
  uint32_t bytes = kilni_program_type_bytes(type);
  if (bytes < 8) bits &= (UINT64_C(1) << (8 * bytes)) - 1;
  if (type == KILN_PROGRAM_TYPE_BOOL) bits = bits != 0;
  bits = kilni_program_float_canonical(type, bits);
  kilni_program_expr_record_t record = {
      KILNI_EXPR_LITERAL, type, 0, (uint32_t)bits, (uint32_t)(bits >> 32), 0};
  return kilni_program_ir_add_expr(ir, record);
}

uint32_t kilni_program_ir_operands(const kilni_program_ir_t* ir, uint32_t expr,
                                   uint32_t out_operands[KILNI_IR_MAX_CALL]) {
  const kilni_program_expr_record_t* record = &ir->exprs.items[expr];
  uint32_t which = 0, count = 0;
  switch (record->op) {
    case KILNI_EXPR_LOAD:
      which = 2;
      break;
    case KILNI_EXPR_UNARY:
    case KILNI_EXPR_CAST:
    case KILNI_EXPR_BITCAST:
      which = 1;
      break;
    case KILNI_EXPR_BINARY:
      which = 3;
      break;
    case KILNI_EXPR_SELECT:
    case KILNI_EXPR_FMA:
      which = 7;
      break;
    case KILNI_EXPR_SUBGROUP:
      which = record->b != 0 ? 3 : 1;
      break;
    case KILNI_EXPR_ATOMIC:
      for (; count < record->c; count++) {
        out_operands[count] = ir->operands.items[record->b + count];
      }
      return count;
    case KILNI_EXPR_CALL:
      break;
    default:
      return 0;
  }
  if (which & 1) out_operands[count++] = record->a;
  if (which & 2) out_operands[count++] = record->b;
  if (which & 4) out_operands[count++] = record->c;
  if (record->op != KILNI_EXPR_CALL) return count;
  const kilni_program_function_record_t* called =
      &ir->functions.items[record->a];
  for (uint32_t i = 0; i < record->c && i < called->parameter_count; i++) {
    uint32_t parameter = ir->operands.items[called->parameters + i];
    if ((parameter & KILNI_PARAMETER_BUFFER) != 0) continue;
    out_operands[count++] = ir->operands.items[record->b + i];
  }
  return count;
}

uint32_t kilni_program_ir_statement_exprs(
    const kilni_program_statement_record_t* statement, uint32_t out_exprs[3]) {
  uint32_t which = 0, count = 0;
  switch (statement->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
    case KILNI_STATEMENT_ASSIGN:
      which = 2;
      break;
    case KILNI_STATEMENT_STORE:
    case KILNI_STATEMENT_FOR:
      which = 6;
      break;
    case KILNI_STATEMENT_EVALUATE:
    case KILNI_STATEMENT_IF:
    case KILNI_STATEMENT_WHILE:
      which = 1;
      break;
    case KILNI_STATEMENT_RETURN:
      which = statement->a != 0 ? 1 : 0;
      break;
    case KILNI_STATEMENT_ASYNC_COPY:
      which = 14;
      break;
    case KILNI_STATEMENT_TRAP:
      which = 3;
      break;
    default:
      break;
  }
  if (which & 1) out_exprs[count++] = statement->a;
  if (which & 2) out_exprs[count++] = statement->b;
  if (which & 4) out_exprs[count++] = statement->c;
  if (which & 8) out_exprs[count++] = statement->d;
  return count;
}

uint32_t kilni_program_ir_parameter_of(const kilni_program_ir_t* ir,
                                       uint32_t buffer) {
  uint32_t at = 0;
  while (at < ir->order_count && ir->operands.items[ir->order + at] !=
                                     (buffer | KILNI_PARAMETER_BUFFER)) {
    at++;
  }
  return at;
}

kiln_status_t kilni_program_ir_copy(const kilni_program_ir_t* from,
                                    kiln_allocator_t allocator,
                                    kilni_program_ir_t* out_ir) {
  kilni_program_ir_t copy = *from;
  copy.allocator = allocator;
  kiln_status_t status = kiln_ok();
#define COPY(field, most)                                                  \
  copy.field.items = NULL;                                                 \
  copy.field.capacity = 0;                                                 \
  if (kiln_status_is_ok(status) && from->field.count != 0) {               \
    void* block;                                                           \
    status = kilni_base_alloc_array(allocator, from->field.count,          \
                                    sizeof(from->field.items[0]), &block); \
    if (kiln_status_is_ok(status)) {                                       \
      copy.field.items = block;                                            \
      copy.field.capacity = from->field.count;                             \
      memcpy(block, from->field.items,                                     \
             from->field.count * sizeof(from->field.items[0]));            \
    }                                                                      \
  }
  TABLES(COPY)
#undef COPY
  if (!kiln_status_is_ok(status)) kilni_program_ir_deinit(&copy);
  *out_ir = copy;
  return status;
}
