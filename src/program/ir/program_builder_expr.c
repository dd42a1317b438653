// SPDX-License-Identifier: Apache-2.0
//
// program: the builder: values.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "program/ir/program_building.h"
#include "program/ir/program_rules.h"
#include "program/ir/program_types.h"

static uint8_t builder_expr_type_at(const kiln_program_builder_t* builder,
                                    kiln_expr_t expr) {
  return builder->ir.exprs.items[expr].type;
}

// Remembers how deep an expression is; false where that is too deep.
static bool keep_depth(kiln_program_builder_t* builder, kiln_expr_t expr) {
  uint32_t operands[KILNI_IR_MAX_CALL], depth = 0;
  uint32_t count = kilni_program_ir_operands(&builder->ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (builder->depths[operands[i]] > depth) {
      depth = builder->depths[operands[i]];
    }
  }
  void* items = builder->depths;
  kiln_status_t status =
      kilni_base_grow(builder->ir.allocator, (size_t)expr + 1, sizeof(uint16_t),
                      &builder->depth_capacity, &items);
  builder->depths = items;
  if (!kiln_status_is_ok(status)) {
    kilni_program_builder_fail(builder, status);
    return false;
  }
  if (depth == KILNI_IR_MAX_DEPTH) {
    kilni_program_builder_fail(
        builder,
        kilni_base_status_with_fix(
            KILNI_FAIL(LIMIT_EXCEEDED, "an expression of more than %d levels",
                       KILNI_IR_MAX_DEPTH),
            "%s", kilni_program_rule_fix(KILNI_RULE_DEPTH)));
    return false;
  }
  builder->depths[expr] = (uint16_t)(depth + 1);
  return true;
}

kiln_expr_t kilni_program_builder_add(kiln_program_builder_t* builder,
                                      kilni_program_expr_record_t record) {
  if (!kilni_program_builder_works(builder)) return 0;
  uint32_t index = kilni_program_ir_add_expr(&builder->ir, record);
  return index != 0 && keep_depth(builder, index) ? index : 0;
}

static bool has_operator(kiln_program_builder_t* builder, uint32_t op,
                         uint32_t count) {
  if (op < count) return true;
  kilni_program_builder_fail(
      builder,
      kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "operator %u: there is none", op),
          "use the constants of kiln/program.h"));
  return false;
}

// ---- Numbers ----

kiln_expr_t kiln_program_builder_literal(kiln_program_builder_t* builder,
                                         uint32_t type, uint64_t bits) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_type(builder, type)) {
    return 0;
  }
  uint32_t index =
      kilni_program_ir_add_literal(&builder->ir, (uint8_t)type, bits);
  return index != 0 && keep_depth(builder, index) ? index : 0;
}

kiln_expr_t kiln_program_builder_u32(kiln_program_builder_t* builder,
                                     uint32_t value) {
  return kiln_program_builder_literal(builder, KILN_PROGRAM_TYPE_U32, value);
}

kiln_expr_t kiln_program_builder_i32(kiln_program_builder_t* builder,
                                     int32_t value) {
  return kiln_program_builder_literal(builder, KILN_PROGRAM_TYPE_I32,
                                      (uint32_t)value);
}

kiln_expr_t kiln_program_builder_f32(kiln_program_builder_t* builder,
                                     float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return kiln_program_builder_literal(builder, KILN_PROGRAM_TYPE_F32, bits);
}

kiln_expr_t kiln_program_builder_f64(kiln_program_builder_t* builder,
                                     double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return kiln_program_builder_literal(builder, KILN_PROGRAM_TYPE_F64, bits);
}

kiln_expr_t kiln_program_builder_bool(kiln_program_builder_t* builder,
                                      bool value) {
  return kiln_program_builder_literal(builder, KILN_PROGRAM_TYPE_BOOL, value);
}

// ---- What a thread knows ----

static kiln_expr_t add_length(kiln_program_builder_t* builder, uint32_t buffer,
                              uint8_t type) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_buffer(builder, buffer)) {
    return 0;
  }
  kilni_program_expr_record_t record = {
      KILNI_EXPR_LENGTH, type, 0, buffer, 0, 0};
  return kilni_program_builder_add(builder, record);
}

kiln_expr_t kiln_program_builder_length(kiln_program_builder_t* builder,
                                        uint32_t buffer) {
  return add_length(builder, buffer, KILN_PROGRAM_TYPE_U32);
}

kiln_expr_t kiln_program_builder_length64(kiln_program_builder_t* builder,
                                          uint32_t buffer) {
  return add_length(builder, buffer, KILN_PROGRAM_TYPE_U64);
}

kiln_expr_t kiln_program_builder_id(kiln_program_builder_t* builder,
                                    uint32_t id, uint32_t axis) {
  if (!kilni_program_builder_works(builder) ||
      !has_operator(builder, id, KILNI_ID_COUNT) ||
      !has_operator(builder, axis, kilni_program_ids[id].axes ? 3 : 1)) {
    return 0;
  }
  kilni_program_expr_record_t record = {KILNI_EXPR_ID,
                                        KILN_PROGRAM_TYPE_U32,
                                        (uint16_t)(id | axis << 8),
                                        0,
                                        0,
                                        0};
  return kilni_program_builder_add(builder, record);
}

kiln_expr_t kiln_program_builder_load(kiln_program_builder_t* builder,
                                      uint32_t buffer, kiln_expr_t index) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_buffer(builder, buffer) ||
      !kilni_program_builder_has_expr(builder, index)) {
    return 0;
  }
  kilni_program_expr_record_t record = {KILNI_EXPR_LOAD,
                                        builder->ir.buffers.items[buffer].type,
                                        0,
                                        buffer,
                                        index,
                                        0};
  return kilni_program_builder_add(builder, record);
}

// ---- Operators ----

kiln_expr_t kiln_program_builder_unary(kiln_program_builder_t* builder,
                                       uint32_t op, kiln_expr_t x) {
  if (!kilni_program_builder_works(builder) ||
      !has_operator(builder, op, KILNI_UNARY_COUNT) ||
      !kilni_program_builder_has_expr(builder, x)) {
    return 0;
  }
  kilni_program_expr_record_t record = {
      KILNI_EXPR_UNARY,
      (uint8_t)kilni_program_operator_result(&kilni_program_unary_operators[op],
                                             builder_expr_type_at(builder, x)),
      (uint16_t)op,
      x,
      0,
      0};
  return kilni_program_builder_add(builder, record);
}

kiln_expr_t kiln_program_builder_binary(kiln_program_builder_t* builder,
                                        uint32_t op, kiln_expr_t x,
                                        kiln_expr_t y) {
  if (!kilni_program_builder_works(builder) ||
      !has_operator(builder, op, KILNI_BINARY_COUNT) ||
      !kilni_program_builder_has_expr(builder, x) ||
      !kilni_program_builder_has_expr(builder, y)) {
    return 0;
  }
  kilni_program_expr_record_t record = {KILNI_EXPR_BINARY,
                                        (uint8_t)kilni_program_operator_result(
                                            &kilni_program_binary_operators[op],
                                            builder_expr_type_at(builder, x)),
                                        (uint16_t)op,
                                        x,
                                        y,
                                        0};
  return kilni_program_builder_add(builder, record);
}

static kiln_expr_t add_three(kiln_program_builder_t* builder, uint8_t op,
                             kiln_expr_t x, kiln_expr_t y, kiln_expr_t z) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_expr(builder, x) ||
      !kilni_program_builder_has_expr(builder, y) ||
      !kilni_program_builder_has_expr(builder, z)) {
    return 0;
  }
  kilni_program_expr_record_t record = {
      op, builder_expr_type_at(builder, y), 0, x, y, z};
  return kilni_program_builder_add(builder, record);
}

kiln_expr_t kiln_program_builder_select(kiln_program_builder_t* builder,
                                        kiln_expr_t condition, kiln_expr_t yes,
                                        kiln_expr_t no) {
  return add_three(builder, KILNI_EXPR_SELECT, condition, yes, no);
}

kiln_expr_t kiln_program_builder_fma(kiln_program_builder_t* builder,
                                     kiln_expr_t x, kiln_expr_t y,
                                     kiln_expr_t z) {
  return add_three(builder, KILNI_EXPR_FMA, x, y, z);
}

static kiln_expr_t add_cast(kiln_program_builder_t* builder, uint8_t op,
                            uint32_t type, kiln_expr_t x) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_type(builder, type) ||
      !kilni_program_builder_has_expr(builder, x)) {
    return 0;
  }
  kilni_program_expr_record_t record = {op, (uint8_t)type, 0, x, 0, 0};
  return kilni_program_builder_add(builder, record);
}

kiln_expr_t kiln_program_builder_cast(kiln_program_builder_t* builder,
                                      uint32_t type, kiln_expr_t x) {
  return add_cast(builder, KILNI_EXPR_CAST, type, x);
}

kiln_expr_t kiln_program_builder_bitcast(kiln_program_builder_t* builder,
                                         uint32_t type, kiln_expr_t x) {
  return add_cast(builder, KILNI_EXPR_BITCAST, type, x);
}

// ---- Effects ----

kiln_expr_t kiln_program_builder_subgroup(kiln_program_builder_t* builder,
                                          uint32_t op, kiln_expr_t x,
                                          kiln_expr_t lane) {
  if (!kilni_program_builder_works(builder) ||
      !has_operator(builder, op, KILNI_SUBGROUP_COUNT) ||
      !kilni_program_builder_has_expr(builder, x)) {
    return 0;
  }
  const kilni_program_operator_t* row = &kilni_program_subgroups[op];
  if (row->lane ? !kilni_program_builder_has_expr(builder, lane)
                : !has_operator(builder, lane, 1)) {
    return 0;
  }
  kilni_program_expr_record_t record = {
      KILNI_EXPR_SUBGROUP,
      (uint8_t)kilni_program_operator_result(row,
                                             builder_expr_type_at(builder, x)),
      (uint16_t)op,
      x,
      lane,
      0};
  return kilni_program_builder_add(builder, record);
}

kiln_expr_t kiln_program_builder_atomic(kiln_program_builder_t* builder,
                                        const kiln_program_atomic_t* atomic) {
  if (!kilni_program_builder_works(builder) ||
      !has_operator(builder, atomic->op, KILNI_ATOMIC_COUNT) ||
      !has_operator(builder, atomic->ordering, KILNI_ORDERING_COUNT) ||
      !has_operator(builder, atomic->scope, KILNI_SCOPE_COUNT) ||
      !kilni_program_builder_has_buffer(builder, atomic->buffer)) {
    return 0;
  }
  uint32_t operands[3] = {atomic->index, 0, 0}, count = 1;
  uint32_t values = kilni_program_atomic_values(atomic->op);
  if (values == 2) operands[count++] = atomic->expected;
  if (values >= 1) operands[count++] = atomic->value;
  for (uint32_t i = 0; i < count; i++) {
    if (!kilni_program_builder_has_expr(builder, operands[i])) return 0;
  }
  kilni_program_expr_record_t record = {
      KILNI_EXPR_ATOMIC,
      kilni_program_atomic_has_result(atomic->op)
          ? builder->ir.buffers.items[atomic->buffer].type
          : (uint8_t)KILN_PROGRAM_TYPE_NONE,
      KILNI_ATOMIC(atomic->op, atomic->ordering, atomic->scope),
      atomic->buffer,
      kilni_program_ir_add_operands(&builder->ir, operands, count),
      count};
  return kilni_program_builder_add(builder, record);
}

kiln_expr_t kiln_program_builder_call(kiln_program_builder_t* builder,
                                      uint32_t function,
                                      const uint32_t* operands,
                                      uint32_t count) {
  if (!kilni_program_builder_works(builder)) return 0;
  // A function that is not ended yet has no parameters that are known.
  if (function == 0 || function >= builder->ir.functions.count ||
      function == builder->function ||
      count != builder->ir.functions.items[function].parameter_count) {
    kilni_program_builder_fail(
        builder, kilni_base_status_with_fix(
                     KILNI_FAIL(INVALID_ARGUMENT,
                                "a call of function %u with %u operands",
                                function, count),
                     "call a function that is ended, with its parameters"));
    return 0;
  }
  kilni_program_function_record_t called =
      builder->ir.functions.items[function];
  for (uint32_t i = 0; i < count; i++) {
    uint32_t parameter = builder->ir.operands.items[called.parameters + i];
    bool is_buffer = (parameter & KILNI_PARAMETER_BUFFER) != 0;
    if (is_buffer ? !kilni_program_builder_has_buffer(builder, operands[i])
                  : !kilni_program_builder_has_expr(builder, operands[i])) {
      return 0;
    }
  }
  kilni_program_expr_record_t record = {
      KILNI_EXPR_CALL,
      called.type,
      0,
      function,
      kilni_program_ir_add_operands(&builder->ir, operands, count),
      count};
  return kilni_program_builder_add(builder, record);
}
