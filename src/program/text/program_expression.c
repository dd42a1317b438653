// SPDX-License-Identifier: Apache-2.0
//
// program: reading text: expressions, and the types of literals without one.
//
// A literal without suffix, and what is made of such only, has no type until
// it meets an operand that has one or reaches the place it goes to. Until then
// its record has type NONE, and the number is read again from the text.
#include <string.h>

#include "base/str.h"
#include "program/ir/program_integers.h"
#include "program/ir/program_rules.h"
#include "program/ir/program_types.h"
#include "program/text/program_number.h"
#include "program/text/program_reader.h"

// In `extra` of a literal that has no type yet.
enum { UNTYPED_MINUS = 1, UNTYPED_FLOAT = 2 };

// How deep an expression is; one that is too deep is told once.
static uint32_t depth_of(kilni_program_reader_t* reader, uint32_t expr,
                         uint32_t at) {
  uint32_t operands[KILNI_IR_MAX_CALL], depth = 0;
  uint32_t count = kilni_program_ir_operands(reader->ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t below =
        kilni_program_reader_placed(reader, KILNI_IR_PROGRAM, operands[i]);
    if (below > depth) depth = below;
  }
  if (depth < KILNI_IR_MAX_DEPTH) return depth + 1;
  kilni_program_reader_error(reader, at, KILNI_RULE_DEPTH, NULL,
                             "an expression of more than %d levels",
                             KILNI_IR_MAX_DEPTH);
  reader->stopped = true;
  return depth;
}

uint32_t kilni_program_reader_add(kilni_program_reader_t* reader, uint32_t at,
                                  kilni_program_expr_record_t record) {
  uint32_t index = kilni_program_ir_add_expr(reader->ir, record);
  if (index == 0) {
    reader->stopped = true;
    return 0;
  }
  kilni_program_reader_place(reader, KILNI_IR_EXPR, index, at);
  kilni_program_reader_place(reader, KILNI_IR_PROGRAM, index,
                             depth_of(reader, index, at));
  return reader->stopped ? 0 : index;
}

uint64_t kilni_program_reader_literal(const kilni_program_reader_t* reader,
                                      uint32_t expr) {
  return kilni_program_ir_literal_bits(&reader->ir->exprs.items[expr]);
}

static kilni_program_expr_record_t* expr_at(
    const kilni_program_reader_t* reader, uint32_t expr) {
  return &reader->ir->exprs.items[expr];
}

// ---- Types of literals ----

static bool is_untyped(const kilni_program_reader_t* reader, uint32_t expr) {
  const kilni_program_expr_record_t* record = expr_at(reader, expr);
  if (record->type != KILN_PROGRAM_TYPE_NONE) return false;
  return record->op == KILNI_EXPR_LITERAL || record->op == KILNI_EXPR_UNARY ||
         record->op == KILNI_EXPR_BINARY || record->op == KILNI_EXPR_SELECT ||
         record->op == KILNI_EXPR_FMA;
}

// The operands that share the type of an expression: bits 0 to 2.
static uint32_t typed_operands(const kilni_program_expr_record_t* record) {
  switch (record->op) {
    case KILNI_EXPR_UNARY:
      return 1;
    case KILNI_EXPR_BINARY:
      return kilni_program_binary_is_shift(record->extra) ? 1 : 3;
    case KILNI_EXPR_SELECT:
      return 6;
    case KILNI_EXPR_FMA:
      return 7;
    default:
      return 0;
  }
}

// UNTYPED_* of all literals in it.
static uint32_t untyped_traits(const kilni_program_reader_t* reader,
                               uint32_t expr) {
  if (!is_untyped(reader, expr)) return 0;
  const kilni_program_expr_record_t* record = expr_at(reader, expr);
  if (record->op == KILNI_EXPR_LITERAL) return record->extra;
  uint32_t traits = record->op == KILNI_EXPR_FMA ? UNTYPED_FLOAT : 0;
  uint32_t which = typed_operands(record);
  if (which & 1) traits |= untyped_traits(reader, record->a);
  if (which & 2) traits |= untyped_traits(reader, record->b);
  if (which & 4) traits |= untyped_traits(reader, record->c);
  return traits;
}

// Reads the number of a literal as `type` and fills the record.
static bool type_literal(kilni_program_reader_t* reader, uint32_t expr,
                         uint32_t type) {
  kilni_program_expr_record_t* record = expr_at(reader, expr);
  uint32_t at = kilni_program_reader_placed(reader, KILNI_IR_EXPR, expr);
  bool minus = (record->extra & UNTYPED_MINUS) != 0;
  kilni_program_lexer_t lexer = reader->lexer;
  lexer.at = at;
  kilni_program_token_t token;
  if (minus) kilni_program_lexer_next(&lexer, &token);
  kilni_program_lexer_next(&lexer, &token);
  uint64_t bits = 0;
  kilni_program_number_result_t result = KILNI_NUMBER_NOT_WHOLE;
  if (kilni_program_type_is(type, KILNI_OPERANDS_NUMBER)) {
    result = kilni_program_number_read(token.text, type, minus, &bits);
  }
  if (result != KILNI_NUMBER_OK) {
    kilni_program_reader_error(
        reader, at, KILNI_RULE_LITERAL, NULL, "%s%.*s as %s", minus ? "-" : "",
        KILNI_SV(token.text), kilni_program_type_name(type));
    return false;
  }
  record->type = (uint8_t)type;
  record->extra = 0;
  record->a = (uint32_t)bits;
  record->b = (uint32_t)(bits >> 32);
  return true;
}

static bool give_type(kilni_program_reader_t* reader, uint32_t expr,
                      uint32_t type) {
  if (!is_untyped(reader, expr)) return true;
  kilni_program_expr_record_t record = *expr_at(reader, expr);
  if (record.op == KILNI_EXPR_LITERAL) {
    return type_literal(reader, expr, type);
  }
  uint32_t which = typed_operands(&record);
  expr_at(reader, expr)->type = (uint8_t)type;
  return ((which & 1) == 0 || give_type(reader, record.a, type)) &&
         ((which & 2) == 0 || give_type(reader, record.b, type)) &&
         ((which & 4) == 0 || give_type(reader, record.c, type));
}

uint32_t kilni_program_reader_settle(kilni_program_reader_t* reader,
                                     uint32_t expr, uint32_t type) {
  if (expr == 0 || !is_untyped(reader, expr)) return expr;
  if (type == KILN_PROGRAM_TYPE_NONE) {
    uint32_t traits = untyped_traits(reader, expr);
    type = KILN_PROGRAM_TYPE_U32;
    if (traits & UNTYPED_MINUS) type = KILN_PROGRAM_TYPE_I32;
    if (traits & UNTYPED_FLOAT) type = KILN_PROGRAM_TYPE_F32;
  }
  return give_type(reader, expr, type) ? expr : 0;
}

bool kilni_program_reader_has_point(kilni_program_reader_t* reader,
                                    uint32_t expr) {
  return expr != 0 && is_untyped(reader, expr) &&
         (untyped_traits(reader, expr) & UNTYPED_FLOAT) != 0;
}

uint32_t kilni_program_reader_typed(kilni_program_reader_t* reader,
                                    uint32_t type) {
  uint32_t expr = kilni_program_reader_expression(reader);
  return kilni_program_reader_settle(reader, expr, type);
}

uint32_t kilni_program_reader_constant(kilni_program_reader_t* reader,
                                       uint32_t type) {
  uint32_t at = reader->token.at;
  uint32_t expr = kilni_program_reader_typed(reader, type);
  uint64_t value;
  if (expr == 0) return 0;
  uint8_t own = expr_at(reader, expr)->type;
  if (!kilni_program_type_is_integer(own) ||
      !kilni_program_ir_evaluate(reader->ir, expr, NULL, &value)) {
    kilni_program_reader_error(reader, at, 0,
                               "use whole numbers and consts of such only",
                               "this is no whole number known beforehand");
    return 0;
  }
  if (expr_at(reader, expr)->op == KILNI_EXPR_LITERAL) return expr;
  kilni_program_expr_record_t record = {
      KILNI_EXPR_LITERAL, own, 0, (uint32_t)value, (uint32_t)(value >> 32), 0};
  return kilni_program_reader_add(reader, at, record);
}

// ---- Operators ----

// How tightly a sign binds; 0 for what is no operator.
typedef struct sign_row_t {
  uint32_t sign;
  uint8_t op;
  uint8_t level;
} sign_row_t;

static const sign_row_t kSigns[] = {
    {KILNI_SIGN1('*'), KILN_PROGRAM_BINARY_MUL, 5},
    {KILNI_SIGN1('/'), KILN_PROGRAM_BINARY_DIV, 5},
    {KILNI_SIGN1('%'), KILN_PROGRAM_BINARY_REM, 5},
    {KILNI_SIGN2('<', '<'), KILN_PROGRAM_BINARY_SHL, 5},
    {KILNI_SIGN2('>', '>'), KILN_PROGRAM_BINARY_SHR, 5},
    {KILNI_SIGN1('&'), KILN_PROGRAM_BINARY_BIT_AND, 5},
    {KILNI_SIGN1('+'), KILN_PROGRAM_BINARY_ADD, 4},
    {KILNI_SIGN1('-'), KILN_PROGRAM_BINARY_SUB, 4},
    {KILNI_SIGN1('|'), KILN_PROGRAM_BINARY_BIT_OR, 4},
    {KILNI_SIGN1('^'), KILN_PROGRAM_BINARY_BIT_XOR, 4},
    {KILNI_SIGN2('=', '='), KILN_PROGRAM_BINARY_EQ, 3},
    {KILNI_SIGN2('!', '='), KILN_PROGRAM_BINARY_NE, 3},
    {KILNI_SIGN1('<'), KILN_PROGRAM_BINARY_LT, 3},
    {KILNI_SIGN1('>'), KILN_PROGRAM_BINARY_GT, 3},
    {KILNI_SIGN2('<', '='), KILN_PROGRAM_BINARY_LE, 3},
    {KILNI_SIGN2('>', '='), KILN_PROGRAM_BINARY_GE, 3},
    {KILNI_SIGN2('&', '&'), KILN_PROGRAM_BINARY_AND, 2},
    {KILNI_SIGN2('|', '|'), KILN_PROGRAM_BINARY_OR, 1},
};

static const sign_row_t* row_of_sign(const kilni_program_reader_t* reader) {
  if (reader->token.kind != KILNI_TOKEN_SIGN) return NULL;
  for (size_t i = 0; i < sizeof(kSigns) / sizeof(kSigns[0]); i++) {
    if (kSigns[i].sign == reader->token.sign) return &kSigns[i];
  }
  return NULL;
}

bool kilni_program_reader_together(kilni_program_reader_t* reader,
                                   uint32_t* left, uint32_t* right) {
  if (*left == 0 || *right == 0) return false;
  bool free_left = is_untyped(reader, *left);
  bool free_right = is_untyped(reader, *right);
  if (free_left && !free_right) {
    *left = kilni_program_reader_settle(reader, *left,
                                        expr_at(reader, *right)->type);
  }
  if (free_right && !free_left) {
    *right = kilni_program_reader_settle(reader, *right,
                                         expr_at(reader, *left)->type);
  }
  return *left != 0 && *right != 0;
}

// Gives both literals the type that suits both.
static bool settle_both(kilni_program_reader_t* reader, uint32_t left,
                        uint32_t right) {
  uint32_t traits =
      untyped_traits(reader, left) | untyped_traits(reader, right);
  uint32_t type = KILN_PROGRAM_TYPE_U32;
  if (traits & UNTYPED_MINUS) type = KILN_PROGRAM_TYPE_I32;
  if (traits & UNTYPED_FLOAT) type = KILN_PROGRAM_TYPE_F32;
  return kilni_program_reader_settle(reader, left, type) != 0 &&
         kilni_program_reader_settle(reader, right, type) != 0;
}

uint32_t kilni_program_reader_binary(kilni_program_reader_t* reader,
                                     uint32_t at, uint32_t op, uint32_t left,
                                     uint32_t right) {
  if (left == 0 || right == 0) return 0;
  const kilni_program_operator_t* row = &kilni_program_binary_operators[op];
  if (kilni_program_binary_is_shift(op)) {
    right = kilni_program_reader_settle(reader, right, KILN_PROGRAM_TYPE_NONE);
    if (right == 0) return 0;
  } else {
    if (!kilni_program_reader_together(reader, &left, &right)) return 0;
    if (row->result != KILNI_RESULT_SAME && is_untyped(reader, left) &&
        !settle_both(reader, left, right)) {
      return 0;
    }
  }
  kilni_program_expr_record_t record = {
      KILNI_EXPR_BINARY,
      (uint8_t)kilni_program_operator_result(row, expr_at(reader, left)->type),
      (uint16_t)op,
      left,
      right,
      0};
  return kilni_program_reader_add(reader, at, record);
}

uint32_t kilni_program_reader_unary(kilni_program_reader_t* reader, uint32_t at,
                                    uint32_t op, uint32_t operand) {
  const kilni_program_operator_t* row = &kilni_program_unary_operators[op];
  // 1 is a u32, and what takes floats only takes it for one.
  uint32_t type = row->operands == KILNI_OPERANDS_FLOAT
                      ? KILN_PROGRAM_TYPE_F32
                      : KILN_PROGRAM_TYPE_NONE;
  if (row->result != KILNI_RESULT_SAME) {
    operand = kilni_program_reader_settle(reader, operand, type);
  }
  if (operand == 0) return 0;
  kilni_program_expr_record_t record = {
      KILNI_EXPR_UNARY,
      (uint8_t)kilni_program_operator_result(row,
                                             expr_at(reader, operand)->type),
      (uint16_t)op,
      operand,
      0,
      0};
  return kilni_program_reader_add(reader, at, record);
}

// ---- Operands ----

static uint32_t expression_read_number(kilni_program_reader_t* reader,
                                       bool minus, uint32_t at) {
  kilni_program_token_t token = reader->token;
  kilni_program_reader_next(reader);
  uint16_t traits = (uint16_t)((minus ? UNTYPED_MINUS : 0) |
                               (token.is_float ? UNTYPED_FLOAT : 0));
  kilni_program_expr_record_t record = {KILNI_EXPR_LITERAL, 0, traits, 0, 0, 0};
  uint32_t expr = kilni_program_reader_add(reader, at, record);
  if (expr != 0 && token.suffix != KILN_PROGRAM_TYPE_NONE) {
    return type_literal(reader, expr, token.suffix) ? expr : 0;
  }
  return expr;
}

static uint32_t expression_read_special(kilni_program_reader_t* reader,
                                        uint32_t at, bool minus) {
  const kilni_program_symbol_t* symbol =
      kilni_program_symbols_find(reader, reader->token.text);
  uint32_t type = symbol->index;
  uint64_t sign = UINT64_C(1) << (8 * kilni_program_type_bytes(type) - 1);
  uint64_t bits = symbol->kind == KILNI_SYMBOL_INFINITY
                      ? kilni_program_float_infinity(type) | (minus ? sign : 0)
                      : kilni_program_float_nan(type);
  kilni_program_reader_next(reader);
  kilni_program_expr_record_t record = {
      KILNI_EXPR_LITERAL, (uint8_t)type,          0,
      (uint32_t)bits,     (uint32_t)(bits >> 32), 0};
  return kilni_program_reader_add(reader, at, record);
}

static bool at_special(const kilni_program_reader_t* reader) {
  if (reader->token.kind != KILNI_TOKEN_NAME) return false;
  const kilni_program_symbol_t* symbol =
      kilni_program_symbols_find(reader, reader->token.text);
  return symbol != NULL && (symbol->kind == KILNI_SYMBOL_INFINITY ||
                            symbol->kind == KILNI_SYMBOL_NAN);
}

static uint32_t read_prefixed(kilni_program_reader_t* reader, uint32_t op);

static uint32_t read_primary(kilni_program_reader_t* reader) {
  uint32_t at = reader->token.at;
  if (reader->token.kind == KILNI_TOKEN_NUMBER) {
    return expression_read_number(reader, false, at);
  }
  if (at_special(reader)) return expression_read_special(reader, at, false);
  if (reader->token.kind == KILNI_TOKEN_NAME) {
    return kilni_program_reader_name(reader);
  }
  if (kilni_program_reader_take_sign(reader, '(')) {
    uint32_t expr = kilni_program_reader_expression(reader);
    return kilni_program_reader_need_sign(reader, ')') ? expr : 0;
  }
  if (kilni_program_reader_is_sign(reader, '-')) {
    return read_prefixed(reader, KILN_PROGRAM_UNARY_NEGATE);
  }
  if (kilni_program_reader_is_sign(reader, '~')) {
    return read_prefixed(reader, KILN_PROGRAM_UNARY_BIT_NOT);
  }
  if (kilni_program_reader_is_sign(reader, '!')) {
    return read_prefixed(reader, KILN_PROGRAM_UNARY_NOT);
  }
  kilni_program_reader_expected(reader, "a value",
                                kilni_program_hint_value(reader));
  return 0;
}

static uint32_t read_prefixed(kilni_program_reader_t* reader, uint32_t op) {
  uint32_t at = reader->token.at;
  if (!kilni_program_reader_enter(reader)) return 0;
  kilni_program_reader_next(reader);
  uint32_t expr;
  // A minus in front of a number is part of it.
  if (op == KILN_PROGRAM_UNARY_NEGATE &&
      reader->token.kind == KILNI_TOKEN_NUMBER) {
    expr = expression_read_number(reader, true, at);
  } else if (op == KILN_PROGRAM_UNARY_NEGATE && at_special(reader)) {
    expr = expression_read_special(reader, at, true);
  } else {
    expr = read_primary(reader);
    expr = expr == 0 ? 0 : kilni_program_reader_unary(reader, at, op, expr);
  }
  reader->depth--;
  return expr;
}

// Operators that bind at least as tightly as `level`.
static uint32_t read_level(kilni_program_reader_t* reader, uint32_t level) {
  if (!kilni_program_reader_enter(reader)) return 0;
  uint32_t left = read_primary(reader);
  while (!reader->panic && !reader->stopped) {
    const sign_row_t* row = row_of_sign(reader);
    if (row == NULL || row->level < level) break;
    uint32_t at = reader->token.at;
    kilni_program_reader_next(reader);
    uint32_t right = read_level(reader, row->level + 1);
    left = kilni_program_reader_binary(reader, at, row->op, left, right);
  }
  reader->depth--;
  return reader->panic ? 0 : left;
}

uint32_t kilni_program_reader_expression(kilni_program_reader_t* reader) {
  return read_level(reader, 1);
}
