// SPDX-License-Identifier: Apache-2.0
//
// program: the builder: statements and blocks.
#include <string.h>

#include "base/status_make.h"
#include "program/ir/program_building.h"
#include "program/ir/program_rules.h"
#include "program/ir/program_types.h"

// ---- Lists ----

// Where the first statement of an open block is kept.
static uint32_t* head_of(kiln_program_builder_t* builder,
                         const kilni_program_open_block_t* block) {
  if (block->statement == 0) {
    return builder->function != 0
               ? &builder->ir.functions.items[builder->function].body
               : &builder->ir.body;
  }
  kilni_program_statement_record_t* owner =
      &builder->ir.statements.items[block->statement];
  return block->is_other ? &owner->other : &owner->body;
}

static uint32_t builder_statement_add(kiln_program_builder_t* builder,
                                      kilni_program_statement_record_t record) {
  if (!kilni_program_builder_works(builder)) return 0;
  uint32_t index = kilni_program_ir_add_statement(&builder->ir, record);
  if (index == 0) return 0;
  kilni_program_open_block_t* block =
      &builder->blocks[builder->block_count - 1];
  if (block->last == 0) {
    *head_of(builder, block) = index;
  } else {
    builder->ir.statements.items[block->last].next = index;
  }
  block->last = index;
  return index;
}

static void open_block(kiln_program_builder_t* builder, uint32_t statement,
                       bool is_other) {
  if (statement == 0) return;
  if (builder->block_count == KILNI_IR_MAX_NESTING) {
    kilni_program_builder_fail(
        builder, kilni_base_status_with_fix(
                     KILNI_FAIL(LIMIT_EXCEEDED, "blocks of more than %d levels",
                                KILNI_IR_MAX_NESTING),
                     "%s", kilni_program_rule_fix(KILNI_RULE_DEPTH)));
    return;
  }
  builder->blocks[builder->block_count++] =
      (kilni_program_open_block_t){statement, 0, is_other};
}

static kilni_program_statement_record_t builder_statement_statement(
    uint8_t op) {
  kilni_program_statement_record_t record;
  memset(&record, 0, sizeof(record));
  record.op = op;
  return record;
}

// ---- Variables ----

static kiln_expr_t builder_statement_declare(kiln_program_builder_t* builder,
                                             const char* name, uint8_t type,
                                             uint8_t kind,
                                             uint32_t* out_variable) {
  kilni_program_variable_record_t variable = {
      kilni_program_builder_name(builder, name), type, kind, builder->function};
  *out_variable = kilni_program_ir_add_variable(&builder->ir, variable);
  kilni_program_expr_record_t record = {KILNI_EXPR_VARIABLE, type, 0,
                                        *out_variable,       0,    0};
  return kilni_program_builder_add(builder, record);
}

static kiln_expr_t builder_statement_add_variable(
    kiln_program_builder_t* builder, const char* name, kiln_expr_t value,
    bool is_var) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_expr(builder, value)) {
    return 0;
  }
  kilni_program_statement_record_t record = builder_statement_statement(
      is_var ? KILNI_STATEMENT_VAR : KILNI_STATEMENT_LET);
  record.b = value;
  kiln_expr_t read = builder_statement_declare(
      builder, name, builder->ir.exprs.items[value].type,
      is_var ? KILNI_VARIABLE_VAR : KILNI_VARIABLE_LET, &record.a);
  return builder_statement_add(builder, record) != 0 ? read : 0;
}

kiln_expr_t kiln_program_builder_let(kiln_program_builder_t* builder,
                                     const char* name, kiln_expr_t value) {
  return builder_statement_add_variable(builder, name, value, false);
}

kiln_expr_t kiln_program_builder_var(kiln_program_builder_t* builder,
                                     const char* name, kiln_expr_t value) {
  return builder_statement_add_variable(builder, name, value, true);
}

void kiln_program_builder_assign(kiln_program_builder_t* builder,
                                 kiln_expr_t variable, kiln_expr_t value) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_expr(builder, variable) ||
      !kilni_program_builder_has_expr(builder, value)) {
    return;
  }
  const kilni_program_expr_record_t* target =
      &builder->ir.exprs.items[variable];
  if (target->op != KILNI_EXPR_VARIABLE) {
    kilni_program_builder_fail(
        builder, kilni_base_status_with_fix(
                     KILNI_FAIL(INVALID_ARGUMENT,
                                "expression %u is assigned to and no variable",
                                variable),
                     "assign to what kiln_program_builder_var gave"));
    return;
  }
  kilni_program_statement_record_t record =
      builder_statement_statement(KILNI_STATEMENT_ASSIGN);
  record.a = target->a;
  record.b = value;
  builder_statement_add(builder, record);
}

// ---- Plain statements ----

void kiln_program_builder_store(kiln_program_builder_t* builder,
                                uint32_t buffer, kiln_expr_t index,
                                kiln_expr_t value) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_buffer(builder, buffer) ||
      !kilni_program_builder_has_expr(builder, index) ||
      !kilni_program_builder_has_expr(builder, value)) {
    return;
  }
  kilni_program_statement_record_t record =
      builder_statement_statement(KILNI_STATEMENT_STORE);
  record.a = buffer;
  record.b = index;
  record.c = value;
  builder_statement_add(builder, record);
}

static uint32_t builder_statement_add_with(kiln_program_builder_t* builder,
                                           uint8_t op, kiln_expr_t value) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_expr(builder, value)) {
    return 0;
  }
  kilni_program_statement_record_t record = builder_statement_statement(op);
  record.a = value;
  return builder_statement_add(builder, record);
}

void kiln_program_builder_evaluate(kiln_program_builder_t* builder,
                                   kiln_expr_t value) {
  builder_statement_add_with(builder, KILNI_STATEMENT_EVALUATE, value);
}

void kiln_program_builder_break(kiln_program_builder_t* builder) {
  builder_statement_add(builder,
                        builder_statement_statement(KILNI_STATEMENT_BREAK));
}

void kiln_program_builder_continue(kiln_program_builder_t* builder) {
  builder_statement_add(builder,
                        builder_statement_statement(KILNI_STATEMENT_CONTINUE));
}

void kiln_program_builder_return(kiln_program_builder_t* builder,
                                 kiln_expr_t value) {
  if (value == 0) {
    builder_statement_add(builder,
                          builder_statement_statement(KILNI_STATEMENT_RETURN));
  } else {
    builder_statement_add_with(builder, KILNI_STATEMENT_RETURN, value);
  }
}

void kiln_program_builder_barrier(kiln_program_builder_t* builder) {
  builder_statement_add(builder,
                        builder_statement_statement(KILNI_STATEMENT_BARRIER));
}

void kiln_program_builder_grid_barrier(kiln_program_builder_t* builder) {
  builder_statement_add(
      builder, builder_statement_statement(KILNI_STATEMENT_GRID_BARRIER));
}

void kiln_program_builder_subgroup_barrier(kiln_program_builder_t* builder) {
  builder_statement_add(
      builder, builder_statement_statement(KILNI_STATEMENT_SUBGROUP_BARRIER));
}

void kiln_program_builder_matrix(kiln_program_builder_t* builder, uint32_t d,
                                 uint32_t a, uint32_t b) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_buffer(builder, d) ||
      !kilni_program_builder_has_buffer(builder, a) ||
      !kilni_program_builder_has_buffer(builder, b)) {
    return;
  }
  kilni_program_statement_record_t record =
      builder_statement_statement(KILNI_STATEMENT_MATRIX);
  record.a = d;
  record.b = a;
  record.c = b;
  builder_statement_add(builder, record);
}

static bool has_tag(kiln_program_builder_t* builder, uint32_t tag) {
  if (tag <= UINT16_MAX) return true;
  kilni_program_builder_fail(
      builder, kilni_base_status_with_fix(
                   KILNI_FAIL(INVALID_ARGUMENT, "tag %u of a copy", tag),
                   "use one up to 65535"));
  return false;
}

void kiln_program_builder_copy(kiln_program_builder_t* builder,
                               const kiln_program_copy_t* copy) {
  if (!kilni_program_builder_works(builder) || !has_tag(builder, copy->tag) ||
      !kilni_program_builder_has_buffer(builder, copy->to) ||
      !kilni_program_builder_has_buffer(builder, copy->from) ||
      !kilni_program_builder_has_expr(builder, copy->to_index) ||
      !kilni_program_builder_has_expr(builder, copy->from_index) ||
      !kilni_program_builder_has_expr(builder, copy->count)) {
    return;
  }
  kilni_program_statement_record_t record =
      builder_statement_statement(KILNI_STATEMENT_ASYNC_COPY);
  record.extra = (uint16_t)copy->tag;
  record.a = copy->to | copy->from << 16;
  record.b = copy->to_index;
  record.c = copy->from_index;
  record.d = copy->count;
  builder_statement_add(builder, record);
}

void kiln_program_builder_wait(kiln_program_builder_t* builder, uint32_t tag) {
  if (!kilni_program_builder_works(builder) || !has_tag(builder, tag)) return;
  kilni_program_statement_record_t record =
      builder_statement_statement(KILNI_STATEMENT_ASYNC_WAIT);
  record.extra = (uint16_t)tag;
  builder_statement_add(builder, record);
}

void kiln_program_builder_trap(kiln_program_builder_t* builder, kiln_expr_t tag,
                               kiln_expr_t address) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_expr(builder, tag) ||
      !kilni_program_builder_has_expr(builder, address)) {
    return;
  }
  kilni_program_statement_record_t record =
      builder_statement_statement(KILNI_STATEMENT_TRAP);
  record.a = tag;
  record.b = address;
  builder_statement_add(builder, record);
}

// ---- Blocks ----

void kiln_program_builder_begin_if(kiln_program_builder_t* builder,
                                   kiln_expr_t condition) {
  open_block(builder,
             builder_statement_add_with(builder, KILNI_STATEMENT_IF, condition),
             false);
}

void kiln_program_builder_begin_while(kiln_program_builder_t* builder,
                                      kiln_expr_t condition) {
  open_block(
      builder,
      builder_statement_add_with(builder, KILNI_STATEMENT_WHILE, condition),
      false);
}

// A step that its counter's type does not have would be another one.
static bool has_step(kiln_program_builder_t* builder, uint8_t type,
                     uint64_t step) {
  uint32_t bits = 8 * kilni_program_type_bytes(type);
  if (bits == 0 || step <= UINT64_MAX >> (64 - bits)) return true;
  kilni_program_builder_fail(
      builder,
      kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT,
                     "a step of %llu for a counter of type %s",
                     (unsigned long long)step, kilni_program_type_name(type)),
          "cast the bounds to a wider type"));
  return false;
}

kiln_expr_t kiln_program_builder_begin_for(kiln_program_builder_t* builder,
                                           const char* name, kiln_expr_t from,
                                           kiln_expr_t to, uint64_t step,
                                           bool unroll) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_expr(builder, from) ||
      !kilni_program_builder_has_expr(builder, to)) {
    return 0;
  }
  uint8_t type = builder->ir.exprs.items[from].type;
  if (!has_step(builder, type, step)) return 0;
  kilni_program_statement_record_t record =
      builder_statement_statement(KILNI_STATEMENT_FOR);
  record.b = from;
  record.c = to;
  record.extra = unroll ? KILNI_FOR_UNROLL : 0;
  if (step != 0) {
    record.d = kiln_program_builder_literal(
        builder, kilni_program_type_unsigned(type), step);
  }
  kiln_expr_t read = builder_statement_declare(
      builder, name, type, KILNI_VARIABLE_COUNTER, &record.a);
  uint32_t index = builder_statement_add(builder, record);
  open_block(builder, index, false);
  return index != 0 ? read : 0;
}

// The block of a statement that is open last; NULL, remembered, without one.
static kilni_program_open_block_t* last_block(kiln_program_builder_t* builder) {
  if (!kilni_program_builder_works(builder)) return NULL;
  kilni_program_open_block_t* block =
      &builder->blocks[builder->block_count - 1];
  if (block->statement != 0) return block;
  kilni_program_builder_fail(
      builder,
      kilni_base_status_with_fix(KILNI_FAIL(INVALID_STATE,
                                            "the end of a block where none is "
                                            "begun"),
                                 "end each block once, the last begun first"));
  return NULL;
}

void kiln_program_builder_begin_else(kiln_program_builder_t* builder) {
  kilni_program_open_block_t* block = last_block(builder);
  if (block == NULL) return;
  uint8_t op = builder->ir.statements.items[block->statement].op;
  if (op != KILNI_STATEMENT_IF || block->is_other) {
    kilni_program_builder_fail(
        builder, kilni_base_status_with_fix(
                     KILNI_FAIL(INVALID_STATE, "an else without if"),
                     "begin it inside the block of an if"));
    return;
  }
  block->is_other = true;
  block->last = 0;
}

void kiln_program_builder_end(kiln_program_builder_t* builder) {
  if (last_block(builder) != NULL) builder->block_count--;
}
