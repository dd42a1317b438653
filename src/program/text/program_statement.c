// SPDX-License-Identifier: Apache-2.0
//
// program: reading text: statements and bodies.
#include <stdio.h>

#include "program/ir/program_rules.h"
#include "program/ir/program_types.h"
#include "program/text/program_reader.h"

// A list of statements while it is read.
typedef struct chain_t {
  uint32_t first;
  uint32_t last;
} chain_t;

static uint32_t statement_add(kilni_program_reader_t* reader, uint32_t at,
                              uint32_t line,
                              kilni_program_statement_record_t record) {
  record.line = line;
  uint32_t index = kilni_program_ir_add_statement(reader->ir, record);
  if (index == 0) reader->stopped = true;
  kilni_program_reader_place(reader, KILNI_IR_STATEMENT, index, at);
  return index;
}

static void statement_append(kilni_program_reader_t* reader, chain_t* chain,
                             uint32_t index) {
  if (index == 0) return;
  if (chain->first == 0) {
    chain->first = index;
  } else {
    reader->ir->statements.items[chain->last].next = index;
  }
  chain->last = index;
}

static uint8_t statement_type_at(const kilni_program_reader_t* reader,
                                 uint32_t expr) {
  return reader->ir->exprs.items[expr].type;
}

// ---- Variables ----

// Declares a variable whose name is known, visible from here.
static uint32_t statement_declare(kilni_program_reader_t* reader,
                                  kiln_string_view_t name, uint32_t at,
                                  uint32_t type, uint32_t kind) {
  kilni_program_variable_record_t record = {
      kilni_program_ir_add_name(reader->ir, name.data, name.size),
      (uint8_t)type, (uint8_t)kind, reader->function};
  uint32_t index = kilni_program_ir_add_variable(reader->ir, record);
  kilni_program_reader_place(reader, KILNI_IR_VARIABLE, index, at);
  kilni_program_symbols_add(reader, name, KILNI_SYMBOL_VARIABLE, index);
  return index;
}

// "NAME [: TYPE] = VALUE ;"
static kilni_program_statement_record_t statement_read_declaration(
    kilni_program_reader_t* reader, bool is_var) {
  kilni_program_statement_record_t record = {0};
  kiln_string_view_t name;
  uint32_t at = reader->token.at, type = KILN_PROGRAM_TYPE_NONE;
  bool named = kilni_program_reader_need_new_name(reader, "a variable", &name);
  if (kilni_program_reader_take_sign(reader, ':')) {
    type = kilni_program_reader_type(reader);
  }
  uint32_t value = 0, value_at = 0;
  if (kilni_program_reader_need_sign(reader, '=')) {
    value_at = reader->token.at;
    value = kilni_program_reader_typed(reader, type);
  }
  kilni_program_reader_need_sign(reader, ';');
  if (value != 0 &&
      statement_type_at(reader, value) == KILN_PROGRAM_TYPE_NONE) {
    kilni_program_reader_error(reader, value_at, KILNI_RULE_NO_VALUE, NULL,
                               "the right side of a %s",
                               is_var ? "var" : "let");
    value = 0;
  }
  if (!named) return record;
  if (value == 0) {
    kilni_program_symbols_add(reader, name, KILNI_SYMBOL_BROKEN, 0);
    return record;
  }
  if (type == KILN_PROGRAM_TYPE_NONE) type = statement_type_at(reader, value);
  record.op = is_var ? KILNI_STATEMENT_VAR : KILNI_STATEMENT_LET;
  record.b = value;
  record.a = statement_declare(
      reader, name, at, type, is_var ? KILNI_VARIABLE_VAR : KILNI_VARIABLE_LET);
  return record;
}

// ---- Assignments and calls ----

// The operator of "+=" and its like at the next token; -1 where there is none.
static int compound_operator(const kilni_program_reader_t* reader) {
  static const struct {
    uint32_t sign;
    int op;
  } kSigns[] = {
      {KILNI_SIGN2('+', '='), KILN_PROGRAM_BINARY_ADD},
      {KILNI_SIGN2('-', '='), KILN_PROGRAM_BINARY_SUB},
      {KILNI_SIGN2('*', '='), KILN_PROGRAM_BINARY_MUL},
      {KILNI_SIGN2('/', '='), KILN_PROGRAM_BINARY_DIV},
      {KILNI_SIGN2('%', '='), KILN_PROGRAM_BINARY_REM},
      {KILNI_SIGN2('&', '='), KILN_PROGRAM_BINARY_BIT_AND},
      {KILNI_SIGN2('|', '='), KILN_PROGRAM_BINARY_BIT_OR},
      {KILNI_SIGN2('^', '='), KILN_PROGRAM_BINARY_BIT_XOR},
      {KILNI_SIGN3('<', '<', '='), KILN_PROGRAM_BINARY_SHL},
      {KILNI_SIGN3('>', '>', '='), KILN_PROGRAM_BINARY_SHR},
  };
  for (size_t i = 0; i < sizeof(kSigns) / sizeof(kSigns[0]); i++) {
    if (kilni_program_reader_is_sign(reader, kSigns[i].sign)) {
      return kSigns[i].op;
    }
  }
  return -1;
}

// "= VALUE" or "+= VALUE", where `target` reads what is written.
static uint32_t statement_read_value(kilni_program_reader_t* reader,
                                     uint32_t target) {
  uint8_t type = statement_type_at(reader, target);
  int op = compound_operator(reader);
  if (op >= 0) {
    uint32_t at = reader->token.at;
    kilni_program_reader_next(reader);
    uint32_t right = kilni_program_reader_expression(reader);
    if (kilni_program_binary_is_shift((uint32_t)op)) {
      type = KILN_PROGRAM_TYPE_NONE;
    }
    right = kilni_program_reader_settle(reader, right, type);
    return kilni_program_reader_binary(reader, at, (uint32_t)op, target, right);
  }
  if (!kilni_program_reader_take_sign(reader, '=')) {
    const char* fix = "write x = ...; or return ...;";
    if (kilni_program_reader_is_sign(reader, '+')) fix = "write x += 1;";
    if (kilni_program_reader_is_sign(reader, '-')) fix = "write x -= 1;";
    kilni_program_reader_expected(reader, "\"=\"", fix);
    return 0;
  }
  return kilni_program_reader_typed(reader, type);
}

// A statement that begins with a name: an assignment, a store or a call.
static kilni_program_statement_record_t read_named(
    kilni_program_reader_t* reader) {
  kilni_program_statement_record_t record = {0};
  uint32_t target = kilni_program_reader_name(reader);
  kilni_program_expr_record_t left = {0};
  if (target != 0) left = reader->ir->exprs.items[target];
  bool is_place = left.op == KILNI_EXPR_VARIABLE ||
                  left.op == KILNI_EXPR_LOAD || left.op == KILNI_EXPR_SCALAR;
  if (target == 0 || !is_place) {
    // A broken target may still be assigned to.
    if (target == 0 && !reader->panic &&
        (compound_operator(reader) >= 0 ||
         kilni_program_reader_is_sign(reader, '='))) {
      kilni_program_reader_next(reader);
      kilni_program_reader_expression(reader);
    }
    if (target == 0) {
      // It was told what is wrong; what is left is no second mistake.
      if (!kilni_program_reader_take_sign(reader, ';')) reader->panic = true;
      return record;
    }
    kilni_program_reader_need_sign(reader, ';');
    record.op = KILNI_STATEMENT_EVALUATE;
    record.a =
        kilni_program_reader_settle(reader, target, KILN_PROGRAM_TYPE_NONE);
    return record;
  }
  uint32_t at = kilni_program_reader_placed(reader, KILNI_IR_EXPR, target);
  uint32_t value = statement_read_value(reader, target);
  kilni_program_reader_need_sign(reader, ';');
  if (value == 0) return record;
  if (left.op == KILNI_EXPR_SCALAR) {
    kilni_program_reader_error(reader, at, KILNI_RULE_ASSIGN, NULL,
                               "this is a parameter of the program");
    return record;
  }
  record.op = left.op == KILNI_EXPR_VARIABLE ? KILNI_STATEMENT_ASSIGN
                                             : KILNI_STATEMENT_STORE;
  record.a = left.a;
  record.b = left.op == KILNI_EXPR_VARIABLE ? value : left.b;
  record.c = left.op == KILNI_EXPR_VARIABLE ? 0 : value;
  return record;
}

// ---- Control flow ----

static kilni_program_statement_record_t read_if(kilni_program_reader_t* reader);

static uint32_t read_else(kilni_program_reader_t* reader) {
  if (!kilni_program_reader_take_word(reader, "else")) return 0;
  uint32_t at = reader->token.at, line = reader->token.line;
  if (!kilni_program_reader_take_word(reader, "if")) {
    return kilni_program_reader_body(reader, false);
  }
  if (!kilni_program_reader_nest(reader)) return 0;
  kilni_program_statement_record_t record = read_if(reader);
  reader->nesting--;
  return record.op == 0 ? 0 : statement_add(reader, at, line, record);
}

static kilni_program_statement_record_t read_if(
    kilni_program_reader_t* reader) {
  kilni_program_statement_record_t record = {0};
  record.a = kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_NONE);
  record.body = kilni_program_reader_body(reader, false);
  record.other = read_else(reader);
  if (record.a != 0) record.op = KILNI_STATEMENT_IF;
  return record;
}

static kilni_program_statement_record_t read_while(
    kilni_program_reader_t* reader) {
  kilni_program_statement_record_t record = {0};
  record.a = kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_NONE);
  record.body = kilni_program_reader_body(reader, false);
  if (record.a != 0) record.op = KILNI_STATEMENT_WHILE;
  return record;
}

// "FROM .. TO [step N] [unroll]"
static void statement_read_range(kilni_program_reader_t* reader,
                                 kilni_program_statement_record_t* record) {
  record->b = kilni_program_reader_expression(reader);
  kilni_program_reader_need_sign(reader, KILNI_SIGN2('.', '.'));
  record->c = kilni_program_reader_expression(reader);
  if (!kilni_program_reader_together(reader, &record->b, &record->c)) return;
  record->b =
      kilni_program_reader_settle(reader, record->b, KILN_PROGRAM_TYPE_NONE);
  record->c = kilni_program_reader_settle(
      reader, record->c,
      record->b == 0 ? 0 : statement_type_at(reader, record->b));
  if (kilni_program_reader_take_word(reader, "step") && record->b != 0) {
    uint32_t type =
        kilni_program_type_unsigned(statement_type_at(reader, record->b));
    record->d = kilni_program_reader_constant(reader, type);
    if (record->d == 0) record->b = 0;
  }
  if (kilni_program_reader_take_word(reader, "unroll")) {
    record->extra = KILNI_FOR_UNROLL;
  }
}

static kilni_program_statement_record_t read_for(
    kilni_program_reader_t* reader) {
  kilni_program_statement_record_t record = {0};
  kiln_string_view_t name;
  uint32_t at = reader->token.at;
  if (kilni_program_reader_is_sign(reader, '(')) {
    kilni_program_reader_expected(reader, "a name for the counter",
                                  "write for k in 0..n { ... }");
  }
  bool named = kilni_program_reader_need_new_name(reader, "the counter", &name);
  if (!reader->panic && !kilni_program_reader_take_word(reader, "in")) {
    kilni_program_reader_expected(reader, "\"in\"",
                                  "write for k in 0..n { ... }");
  }
  if (!reader->panic) statement_read_range(reader, &record);
  size_t visible = reader->symbols.count;
  bool whole = named && record.b != 0 && record.c != 0;
  if (whole) {
    record.a =
        statement_declare(reader, name, at, statement_type_at(reader, record.b),
                          KILNI_VARIABLE_COUNTER);
  } else if (named) {
    kilni_program_symbols_add(reader, name, KILNI_SYMBOL_BROKEN, 0);
  }
  record.body = kilni_program_reader_body(reader, false);
  kilni_program_symbols_cut(reader, visible);
  if (whole) record.op = KILNI_STATEMENT_FOR;
  return record;
}

static kilni_program_statement_record_t read_return(
    kilni_program_reader_t* reader) {
  kilni_program_statement_record_t record = {0};
  bool whole = true;
  if (!kilni_program_reader_is_sign(reader, ';')) {
    record.a = kilni_program_reader_typed(reader, reader->result_type);
    whole = record.a != 0;
  }
  kilni_program_reader_need_sign(reader, ';');
  if (whole) record.op = KILNI_STATEMENT_RETURN;
  return record;
}

// ---- Statements of one word ----

static kilni_program_statement_record_t statement_read_plain(
    kilni_program_reader_t* reader, uint8_t op) {
  kilni_program_statement_record_t record = {0};
  kilni_program_reader_need_sign(reader, ';');
  record.op = op;
  return record;
}

// A tag of async copies: a constant below 65,536.
static bool read_tag(kilni_program_reader_t* reader, uint16_t* out_tag) {
  *out_tag = 0;
  uint32_t at = reader->token.at;
  uint32_t expr = kilni_program_reader_constant(reader, KILN_PROGRAM_TYPE_U32);
  if (expr == 0) return false;
  uint64_t tag = kilni_program_reader_literal(reader, expr);
  if (tag > UINT16_MAX) {
    kilni_program_reader_error(reader, at, KILNI_RULE_COPY, NULL,
                               "a tag above 65535");
    return false;
  }
  *out_tag = (uint16_t)tag;
  return true;
}

// "(TO, INDEX, FROM, INDEX, COUNT) tag N;"
static kilni_program_statement_record_t statement_read_copy(
    kilni_program_reader_t* reader) {
  kilni_program_statement_record_t record = {0};
  kilni_program_reader_need_sign(reader, '(');
  uint32_t to = kilni_program_reader_buffer(reader);
  kilni_program_reader_need_sign(reader, ',');
  record.b = kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_NONE);
  kilni_program_reader_need_sign(reader, ',');
  uint32_t from = kilni_program_reader_buffer(reader);
  kilni_program_reader_need_sign(reader, ',');
  record.c = kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_NONE);
  kilni_program_reader_need_sign(reader, ',');
  record.d = kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_NONE);
  kilni_program_reader_need_sign(reader, ')');
  bool tagged = true;
  if (kilni_program_reader_take_word(reader, "tag")) {
    tagged = read_tag(reader, &record.extra);
  }
  kilni_program_reader_need_sign(reader, ';');
  record.a = to | from << 16;
  if (tagged && to != 0 && from != 0 && record.b != 0 && record.c != 0 &&
      record.d != 0) {
    record.op = KILNI_STATEMENT_ASYNC_COPY;
  }
  return record;
}

static kilni_program_statement_record_t statement_read_wait(
    kilni_program_reader_t* reader) {
  kilni_program_statement_record_t record = {0};
  bool tagged = kilni_program_reader_is_sign(reader, ';') ||
                read_tag(reader, &record.extra);
  kilni_program_reader_need_sign(reader, ';');
  if (tagged) record.op = KILNI_STATEMENT_ASYNC_WAIT;
  return record;
}

// "(TAG, ADDRESS);"
static kilni_program_statement_record_t read_trap(
    kilni_program_reader_t* reader) {
  kilni_program_statement_record_t record = {0};
  kilni_program_reader_need_sign(reader, '(');
  record.a = kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_U32);
  kilni_program_reader_need_sign(reader, ',');
  record.b = kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_U64);
  kilni_program_reader_need_sign(reader, ')');
  kilni_program_reader_need_sign(reader, ';');
  if (record.a != 0 && record.b != 0) record.op = KILNI_STATEMENT_TRAP;
  return record;
}

// "(D, A, B);"
static kilni_program_statement_record_t read_matrix(
    kilni_program_reader_t* reader) {
  kilni_program_statement_record_t record = {0};
  kilni_program_reader_need_sign(reader, '(');
  record.a = kilni_program_reader_buffer(reader);
  kilni_program_reader_need_sign(reader, ',');
  record.b = kilni_program_reader_buffer(reader);
  kilni_program_reader_need_sign(reader, ',');
  record.c = kilni_program_reader_buffer(reader);
  kilni_program_reader_need_sign(reader, ')');
  kilni_program_reader_need_sign(reader, ';');
  if (record.a != 0 && record.b != 0 && record.c != 0) {
    record.op = KILNI_STATEMENT_MATRIX;
  }
  return record;
}

// ---- Any statement ----

static void read_array(kilni_program_reader_t* reader, uint8_t role);

// A word that begins something, and no statement.
static kilni_program_statement_record_t misplaced(
    kilni_program_reader_t* reader, uint32_t keyword) {
  kilni_program_statement_record_t record = {0};
  const char* fix = "declarations stand outside of bodies; inside write let";
  bool array =
      keyword == KILNI_KEYWORD_SHARED || keyword == KILNI_KEYWORD_PRIVATE;
  if (array) fix = "arrays stand at the head of a body, before statements";
  if (keyword == KILNI_KEYWORD_ELSE) {
    fix = "an else stands right behind the } of its if";
  }
  kilni_program_reader_expected(reader, "a statement", fix);
  kilni_program_reader_next(reader);
  if (array) {  // which it would be elsewhere
    reader->panic = false;
    read_array(reader, keyword == KILNI_KEYWORD_SHARED
                           ? KILN_PROGRAM_ROLE_SHARED
                           : KILN_PROGRAM_ROLE_PRIVATE);
  }
  return record;
}

static kilni_program_statement_record_t read_keyword(
    kilni_program_reader_t* reader, uint32_t keyword) {
  switch (keyword) {
    case KILNI_KEYWORD_LET:
      return statement_read_declaration(reader, false);
    case KILNI_KEYWORD_VAR:
      return statement_read_declaration(reader, true);
    case KILNI_KEYWORD_IF:
      return read_if(reader);
    case KILNI_KEYWORD_FOR:
      return read_for(reader);
    case KILNI_KEYWORD_WHILE:
      return read_while(reader);
    case KILNI_KEYWORD_BREAK:
      return statement_read_plain(reader, KILNI_STATEMENT_BREAK);
    case KILNI_KEYWORD_CONTINUE:
      return statement_read_plain(reader, KILNI_STATEMENT_CONTINUE);
    case KILNI_KEYWORD_RETURN:
      return read_return(reader);
    case KILNI_KEYWORD_BARRIER:
      return statement_read_plain(reader, KILNI_STATEMENT_BARRIER);
    case KILNI_KEYWORD_GRID_BARRIER:
      return statement_read_plain(reader, KILNI_STATEMENT_GRID_BARRIER);
    case KILNI_KEYWORD_SUBGROUP_BARRIER:
      return statement_read_plain(reader, KILNI_STATEMENT_SUBGROUP_BARRIER);
    case KILNI_KEYWORD_MATRIX:
      return read_matrix(reader);
    case KILNI_KEYWORD_ASYNC_COPY:
      return statement_read_copy(reader);
    case KILNI_KEYWORD_ASYNC_WAIT:
      return statement_read_wait(reader);
    default:
      return read_trap(reader);
  }
}

static uint32_t program_statement_read_statement(
    kilni_program_reader_t* reader) {
  kilni_program_reader_begin(reader);
  uint32_t at = reader->token.at, line = reader->token.line;
  const kilni_program_symbol_t* symbol =
      reader->token.kind == KILNI_TOKEN_NAME
          ? kilni_program_symbols_find(reader, reader->token.text)
          : NULL;
  kilni_program_statement_record_t record = {0};
  if (symbol != NULL && symbol->kind == KILNI_SYMBOL_KEYWORD) {
    uint32_t keyword = symbol->index;
    if (keyword <= KILNI_KEYWORD_PRIVATE || keyword == KILNI_KEYWORD_ELSE) {
      record = misplaced(reader, keyword);
    } else {
      kilni_program_reader_next(reader);
      record = read_keyword(reader, keyword);
    }
  } else if (reader->token.kind == KILNI_TOKEN_NAME) {
    record = read_named(reader);
  } else {
    kilni_program_reader_expected(reader, "a statement or \"}\"",
                                  kilni_program_hint_statement(reader));
    // Braces are closed as they were opened.
    if (!kilni_program_reader_is_sign(reader, '{')) {
      kilni_program_reader_next(reader);
    }
  }
  if (record.op == 0 || reader->panic) return 0;
  return statement_add(reader, at, line, record);
}

// ---- Bodies ----

// "shared NAME: TYPE[COUNT];" behind the word.
static void read_array(kilni_program_reader_t* reader, uint8_t role) {
  kiln_string_view_t name;
  uint32_t at = reader->token.at, line = reader->token.line;
  bool named = kilni_program_reader_need_new_name(reader, "an array", &name);
  kilni_program_reader_need_sign(reader, ':');
  uint32_t type = reader->panic ? 0 : kilni_program_reader_type(reader),
           count = 0;
  if (kilni_program_reader_need_sign(reader, '[')) {
    count = kilni_program_reader_constant(reader, KILN_PROGRAM_TYPE_U32);
  }
  kilni_program_reader_need_sign(reader, ']');
  kilni_program_reader_need_sign(reader, ';');
  if (!named) return;
  if (count == 0 || type == KILN_PROGRAM_TYPE_NONE) {
    kilni_program_symbols_add(reader, name, KILNI_SYMBOL_BROKEN, 0);
    return;
  }
  kilni_program_buffer_record_t record = {
      kilni_program_ir_add_name(reader->ir, name.data, name.size),
      (uint8_t)type,
      role,
      reader->function,
      count,
      line};
  uint32_t index = kilni_program_ir_add_buffer(reader->ir, record);
  kilni_program_reader_place(reader, KILNI_IR_BUFFER, index, at);
  kilni_program_symbols_add(reader, name, KILNI_SYMBOL_BUFFER, index);
}

static void read_arrays(kilni_program_reader_t* reader) {
  while (!reader->stopped) {
    kilni_program_reader_begin(reader);
    if (kilni_program_reader_take_word(reader, "shared")) {
      read_array(reader, KILN_PROGRAM_ROLE_SHARED);
    } else if (kilni_program_reader_take_word(reader, "private")) {
      read_array(reader, KILN_PROGRAM_ROLE_PRIVATE);
    } else {
      return;
    }
    kilni_program_reader_recover(reader);
  }
}

uint32_t kilni_program_reader_body(kilni_program_reader_t* reader,
                                   bool arrays) {
  chain_t chain = {0, 0};
  const uint32_t line = reader->token.line;
  if (!kilni_program_reader_need_sign(reader, '{')) return 0;
  if (!kilni_program_reader_nest(reader)) return 0;
  size_t visible = reader->symbols.count;
  if (arrays) read_arrays(reader);
  while (!reader->stopped && !kilni_program_reader_is_sign(reader, '}') &&
         reader->token.kind != KILNI_TOKEN_END) {
    statement_append(reader, &chain, program_statement_read_statement(reader));
    kilni_program_reader_recover(reader);
  }
  kilni_program_symbols_cut(reader, visible);
  reader->nesting--;
  if (reader->token.kind == KILNI_TOKEN_END && !reader->panic) {
    char fix[60];
    snprintf(fix, sizeof(fix), "close the body that is opened in line %u",
             line);
    kilni_program_reader_expected(reader, "\"}\"", fix);
  }
  kilni_program_reader_need_sign(reader, '}');
  return chain.first;
}
