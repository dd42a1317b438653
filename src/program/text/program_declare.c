// SPDX-License-Identifier: Apache-2.0
//
// program: reading text: what stands outside of bodies: consts, types,
// functions, the program's head.
#include <string.h>

#include "base/str.h"
#include "program/ir/program_integers.h"
#include "program/ir/program_report.h"
#include "program/ir/program_rules.h"
#include "program/ir/program_types.h"
#include "program/text/program_reader.h"

// ---- Consts and types ----

static const kiln_program_define_t* find_define(kilni_program_reader_t* reader,
                                                kiln_string_view_t name) {
  for (uint32_t i = 0; i < reader->define_count; i++) {
    if (kilni_base_sv_equal_cstr(name, reader->defines[i].name)) {
      reader->defines_used |= UINT64_C(1) << i;
      return &reader->defines[i];
    }
  }
  return NULL;
}

// The reader on the text of a define, and back.
typedef struct aside_t {
  kiln_string_view_t text;
  kilni_program_lexer_t lexer;
  kilni_program_token_t token;
} aside_t;

static void begin_define(kilni_program_reader_t* reader,
                         const kiln_program_define_t* define, aside_t* aside) {
  *aside = (aside_t){reader->text, reader->lexer, reader->token};
  reader->in_define = define->name;
  reader->text = kilni_base_sv(define->value);
  kilni_program_lexer_init(&reader->lexer, reader->text);
  kilni_program_reader_next(reader);
}

static void end_define(kilni_program_reader_t* reader, const aside_t* aside) {
  if (!reader->panic && reader->token.kind != KILNI_TOKEN_END) {
    kilni_program_reader_expected(reader, "one value",
                                  "give the define one value");
  }
  // What is wrong with it says nothing of the text around.
  reader->panic = false;
  reader->in_define = NULL;
  reader->text = aside->text;
  reader->lexer = aside->lexer;
  reader->token = aside->token;
}

// The value of a const as one literal, where it is a whole number: what is
// made of consts stays small.
static uint32_t declare_reduce(kilni_program_reader_t* reader, uint32_t at,
                               uint32_t expr) {
  uint64_t value;
  if (expr == 0 || reader->ir->exprs.items[expr].op == KILNI_EXPR_LITERAL ||
      !kilni_program_ir_evaluate(reader->ir, expr, NULL, &value)) {
    return expr;
  }
  kilni_program_expr_record_t record = {KILNI_EXPR_LITERAL,
                                        reader->ir->exprs.items[expr].type,
                                        0,
                                        (uint32_t)value,
                                        (uint32_t)(value >> 32),
                                        0};
  return kilni_program_reader_add(reader, at, record);
}

// "NAME = VALUE;"
static void read_const(kilni_program_reader_t* reader) {
  kiln_string_view_t name;
  bool named = kilni_program_reader_need_new_name(reader, "a constant", &name);
  kilni_program_reader_need_sign(reader, '=');
  uint32_t at = reader->token.at;
  uint32_t value = reader->panic ? 0
                                 : kilni_program_reader_typed(
                                       reader, KILN_PROGRAM_TYPE_NONE);
  kilni_program_reader_need_sign(reader, ';');
  if (!named) return;
  const kiln_program_define_t* define = find_define(reader, name);
  if (value != 0 && define != NULL) {
    uint32_t type = reader->ir->exprs.items[value].type;
    uint32_t first = reader->ir->exprs.count;
    aside_t aside;
    begin_define(reader, define, &aside);
    value = kilni_program_reader_typed(reader, type);
    if (value != 0 && reader->ir->exprs.items[value].type != type) {
      kilni_program_reader_error(reader, 0, KILNI_RULE_ASSIGN_TYPE, NULL,
                                 "\"%s\" is a %s", define->name,
                                 kilni_program_type_name(type));
    }
    value = declare_reduce(reader, 0, value);
    end_define(reader, &aside);
    // What the validator finds in it stands where the const does.
    for (; first < reader->ir->exprs.count; first++) {
      kilni_program_reader_place(reader, KILNI_IR_EXPR, first, at);
    }
  }
  value = declare_reduce(reader, at, value);
  kilni_program_symbols_add(
      reader, name, value != 0 ? KILNI_SYMBOL_CONST : KILNI_SYMBOL_BROKEN,
      value);
}

// "NAME = TYPE;"
static void declare_read_type(kilni_program_reader_t* reader) {
  kiln_string_view_t name;
  bool named = kilni_program_reader_need_new_name(reader, "a type", &name);
  kilni_program_reader_need_sign(reader, '=');
  uint32_t type = reader->panic ? 0 : kilni_program_reader_type(reader);
  kilni_program_reader_need_sign(reader, ';');
  if (!named) return;
  const kiln_program_define_t* define = find_define(reader, name);
  if (define != NULL) {
    aside_t aside;
    begin_define(reader, define, &aside);
    type = kilni_program_reader_type(reader);
    end_define(reader, &aside);
  }
  if (type == KILN_PROGRAM_TYPE_NONE) type = KILN_PROGRAM_TYPE_F32;
  kilni_program_symbols_add(reader, name, KILNI_SYMBOL_TYPE, type);
}

// ---- Parameters ----

static uint32_t role_word(kilni_program_reader_t* reader) {
  for (uint32_t role = KILN_PROGRAM_ROLE_IN; role <= KILN_PROGRAM_ROLE_RESIDENT;
       role++) {
    if (kilni_program_reader_take_word(reader, kilni_program_role_name(role))) {
      return role;
    }
  }
  return KILN_PROGRAM_ROLE_NONE;
}

// Parameters while they are read. A count may name what comes behind it, so
// it is read when all parameters are known.
typedef struct parameters_t {
  uint32_t items[KILNI_TEXT_MAX_PARAMETERS];
  kilni_program_lexer_t counts[KILNI_TEXT_MAX_PARAMETERS];  // behind the "["
  uint32_t count;
  uint32_t most;
} parameters_t;

static void skip_count(kilni_program_reader_t* reader) {
  uint32_t open = 1;
  while (reader->token.kind != KILNI_TOKEN_END) {
    if (kilni_program_reader_is_sign(reader, '[')) open++;
    if (kilni_program_reader_is_sign(reader, ']') && --open == 0) return;
    kilni_program_reader_next(reader);
  }
}

// "ROLE TYPE[COUNT]" behind the role.
static uint32_t declare_read_buffer(kilni_program_reader_t* reader,
                                    kiln_string_view_t name, uint32_t at,
                                    uint32_t line, uint32_t role,
                                    kilni_program_lexer_t* out_count) {
  uint32_t type = kilni_program_reader_type(reader);
  *out_count = reader->lexer;
  if (!reader->panic && !kilni_program_reader_is_sign(reader, '[')) {
    kilni_program_reader_expected(
        reader, "\"[\"", "the type of a buffer ends in []: x: in f32[]");
  }
  if (!kilni_program_reader_take_sign(reader, '[')) return 0;
  bool counted = !kilni_program_reader_is_sign(reader, ']');
  if (!counted) out_count->text.size = 0;
  if (counted) skip_count(reader);
  kilni_program_reader_need_sign(reader, ']');
  if (reader->panic || name.size == 0) return 0;
  kilni_program_buffer_record_t record = {
      kilni_program_ir_add_name(reader->ir, name.data, name.size),
      (uint8_t)type,
      (uint8_t)role,
      reader->function,
      0,
      line};
  uint32_t index = kilni_program_ir_add_buffer(reader->ir, record);
  kilni_program_reader_place(reader, KILNI_IR_BUFFER, index, at);
  kilni_program_symbols_add(reader, name, KILNI_SYMBOL_BUFFER, index);
  return index == 0 ? 0 : index | KILNI_PARAMETER_BUFFER;
}

// "TYPE": a scalar of the program, a variable of a function.
static uint32_t declare_read_scalar(kilni_program_reader_t* reader,
                                    kiln_string_view_t name, uint32_t at) {
  uint8_t type = (uint8_t)kilni_program_reader_type(reader);
  if (kilni_program_reader_is_sign(reader, '[')) {
    kilni_program_reader_expected(
        reader, "a role in front of the type of a buffer",
        "write in, out, inout, uniform or resident there");
  }
  if (reader->panic || name.size == 0) return 0;
  uint32_t text = kilni_program_ir_add_name(reader->ir, name.data, name.size);
  uint32_t index;
  if (reader->function != 0) {
    kilni_program_variable_record_t record = {
        text, type, KILNI_VARIABLE_PARAMETER, reader->function};
    index = kilni_program_ir_add_variable(reader->ir, record);
    kilni_program_reader_place(reader, KILNI_IR_VARIABLE, index, at);
    kilni_program_symbols_add(reader, name, KILNI_SYMBOL_VARIABLE, index);
  } else {
    kilni_program_scalar_record_t record = {text, type, {0, 0, 0}};
    index = kilni_program_ir_add_scalar(reader->ir, record);
    kilni_program_reader_place(reader, KILNI_IR_SCALAR, index, at);
    kilni_program_symbols_add(reader, name, KILNI_SYMBOL_SCALAR, index);
  }
  return index;
}

static void declare_read_parameter(kilni_program_reader_t* reader,
                                   parameters_t* parameters) {
  kiln_string_view_t name;
  uint32_t at = reader->token.at, line = reader->token.line;
  if (kilni_program_reader_is_sign(reader, ')')) {
    kilni_program_reader_expected(reader, "a parameter", "remove the comma");
  }
  kilni_program_reader_need_new_name(reader, "a parameter", &name);
  if (!kilni_program_reader_need_sign(reader, ':')) return;
  if (parameters->count == parameters->most) {
    kilni_program_reader_error(reader, at, KILNI_RULE_LIMIT, NULL,
                               "parameters, at most %u", parameters->most);
    reader->panic = true;
    return;
  }
  kilni_program_lexer_t count = reader->lexer;
  count.text.size = 0;
  uint32_t role = role_word(reader);
  uint32_t index =
      role != KILN_PROGRAM_ROLE_NONE
          ? declare_read_buffer(reader, name, at, line, role, &count)
          : declare_read_scalar(reader, name, at);
  if (index == 0) {
    if (name.size != 0) {
      kilni_program_symbols_add(reader, name, KILNI_SYMBOL_BROKEN, 0);
    }
    return;
  }
  parameters->counts[parameters->count] = count;
  parameters->items[parameters->count++] = index;
}

// The counts of buffers, now that all names are there.
static void declare_read_counts(kilni_program_reader_t* reader,
                                const parameters_t* parameters) {
  kilni_program_lexer_t lexer = reader->lexer;
  kilni_program_token_t token = reader->token;
  for (uint32_t i = 0; i < parameters->count && !reader->panic; i++) {
    if (parameters->counts[i].text.size == 0) continue;
    uint32_t buffer = parameters->items[i] & ~KILNI_PARAMETER_BUFFER;
    reader->lexer = parameters->counts[i];
    kilni_program_reader_next(reader);
    if (reader->function != 0) {
      kilni_program_reader_error(reader, reader->token.at, 0,
                                 "write [] and ask length()",
                                 "a buffer of a function has no count");
      continue;
    }
    uint32_t count = kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_NONE);
    if (!kilni_program_reader_is_sign(reader, ']')) {
      kilni_program_reader_need_sign(reader, ']');
    }
    reader->ir->buffers.items[buffer].count = count;
  }
  reader->lexer = lexer;
  reader->token = token;
}

static void declare_read_parameters(kilni_program_reader_t* reader,
                                    uint32_t most,
                                    parameters_t* out_parameters) {
  out_parameters->count = 0;
  out_parameters->most = most;
  if (!kilni_program_reader_need_sign(reader, '(')) return;
  if (kilni_program_reader_take_sign(reader, ')')) return;
  do {
    declare_read_parameter(reader, out_parameters);
  } while (kilni_program_reader_take_sign(reader, ','));
  kilni_program_reader_need_sign(reader, ')');
  declare_read_counts(reader, out_parameters);
}

// ---- Functions ----

// "NAME(PARAMETERS) [-> TYPE] { ... }"
static void read_function(kilni_program_reader_t* reader) {
  kiln_string_view_t name;
  uint32_t at = reader->token.at, line = reader->token.line;
  bool named = kilni_program_reader_need_new_name(reader, "a function", &name);
  kilni_program_function_record_t record = {0};
  record.line = line;
  record.name = kilni_program_ir_add_name(reader->ir, name.data, name.size);
  uint32_t index = kilni_program_ir_add_function(reader->ir, record);
  if (index == 0) {
    reader->stopped = true;
    return;
  }
  kilni_program_reader_place(reader, KILNI_IR_FUNCTION, index, at);
  size_t visible = reader->symbols.count;
  reader->function = (uint16_t)index;
  parameters_t parameters;
  declare_read_parameters(reader, KILNI_TEXT_MAX_LIST, &parameters);
  uint32_t type = KILN_PROGRAM_TYPE_NONE;
  if (kilni_program_reader_take_sign(reader, KILNI_SIGN2('-', '>'))) {
    type = kilni_program_reader_type(reader);
  }
  reader->result_type = (uint8_t)type;
  kilni_program_function_record_t* mine = &reader->ir->functions.items[index];
  mine->type = (uint8_t)type;
  mine->parameter_count = (uint16_t)parameters.count;
  mine->parameters = kilni_program_ir_add_operands(reader->ir, parameters.items,
                                                   parameters.count);
  // Known inside its own body, so that a recursion is told as one.
  if (named) {
    kilni_program_symbols_add(reader, name, KILNI_SYMBOL_FUNCTION, index);
  }
  uint32_t body = kilni_program_reader_body(reader, true);
  reader->ir->functions.items[index].body = body;
  kilni_program_symbols_cut(reader, visible);
  if (named) {
    kilni_program_symbols_add(reader, name, KILNI_SYMBOL_FUNCTION, index);
  }
  reader->function = 0;
  reader->result_type = KILN_PROGRAM_TYPE_NONE;
}

// ---- The program ----

// To what comes behind an expression that was not understood.
static void skip_axis(kilni_program_reader_t* reader) {
  while (reader->token.kind != KILNI_TOKEN_END &&
         !kilni_program_reader_is_word(reader, "block") &&
         !kilni_program_reader_is_sign(reader, '{')) {
    kilni_program_reader_next(reader);
  }
}

// One to three expressions: "N" or "(N, M)". What begins with a parenthesis
// may be either: "(a + b) * 2" is read again as one.
static uint32_t read_axes(kilni_program_reader_t* reader, bool constant,
                          uint32_t axes[3]) {
  kilni_program_lexer_t lexer = reader->lexer;
  kilni_program_token_t token = reader->token;
  uint32_t count = 0;
  if (kilni_program_reader_take_sign(reader, '(')) {
    do {
      if (count == 3) {
        kilni_program_reader_expected(reader, "\")\" behind three axes",
                                      "there are three at most");
        return 0;
      }
      axes[count++] =
          constant
              ? kilni_program_reader_constant(reader, KILN_PROGRAM_TYPE_U32)
              : kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_NONE);
    } while (kilni_program_reader_take_sign(reader, ','));
    if (!kilni_program_reader_need_sign(reader, ')')) return 0;
    // What is wrong in there is told once.
    if (count == 1 && axes[0] == 0) skip_axis(reader);
    if (count > 1 || kilni_program_reader_is_word(reader, "block") ||
        kilni_program_reader_is_sign(reader, '{')) {
      return count;
    }
    reader->lexer = lexer;
    reader->token = token;
  }
  axes[0] = constant
                ? kilni_program_reader_constant(reader, KILN_PROGRAM_TYPE_U32)
                : kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_NONE);
  return 1;
}

static void read_block(kilni_program_reader_t* reader) {
  uint32_t axes[3] = {0, 0, 0}, at = reader->token.at;
  uint32_t count = read_axes(reader, true, axes);
  for (uint32_t i = 0; i < 3; i++) {
    uint64_t size = 1;
    if (i < count && axes[i] != 0) {
      size = kilni_program_reader_literal(reader, axes[i]);
    }
    if (size == 0 || size > UINT32_MAX) {
      kilni_program_reader_error(reader, at, KILNI_RULE_BLOCK, NULL, "axis %c",
                                 "xyz"[i]);
      return;
    }
    reader->ir->block[i] = count == 0 ? 0 : (uint32_t)size;
  }
}

// "NAME(PARAMETERS) [work ...] [block ...] { ... }"
static void declare_read_program(kilni_program_reader_t* reader) {
  uint32_t at = reader->token.at;
  if (reader->ir->name != 0) {
    kilni_program_reader_error(reader, at, 0, "put it into a file of its own",
                               "a second program");
    reader->panic = true;
    return;
  }
  kiln_string_view_t name;
  kilni_program_reader_need_new_name(reader, "the program", &name);
  reader->ir->name =
      kilni_program_ir_add_name(reader->ir, name.data, name.size);
  kilni_program_reader_place(reader, KILNI_IR_SCALAR, 0, at);
  size_t visible = reader->symbols.count;
  parameters_t parameters;
  declare_read_parameters(reader, KILNI_TEXT_MAX_PARAMETERS, &parameters);
  reader->ir->order_count = parameters.count;
  reader->ir->order = kilni_program_ir_add_operands(
      reader->ir, parameters.items, parameters.count);
  if (kilni_program_reader_take_word(reader, "work")) {
    read_axes(reader, false, reader->ir->work);
  }
  if (kilni_program_reader_take_word(reader, "block")) read_block(reader);
  reader->ir->body = kilni_program_reader_body(reader, true);
  kilni_program_symbols_cut(reader, visible);
}

// ---- The file ----

static bool declare_is_ptx(const kilni_program_reader_t* reader) {
  static const char kFirst[] = ".version";
  uint32_t at = reader->token.at;
  return reader->text.size - at >= sizeof(kFirst) - 1 &&
         memcmp(reader->text.data + at, kFirst, sizeof(kFirst) - 1) == 0;
}

static void declare_read_declaration(kilni_program_reader_t* reader) {
  kilni_program_reader_begin(reader);
  if (kilni_program_reader_take_word(reader, "const")) {
    read_const(reader);
  } else if (kilni_program_reader_take_word(reader, "type")) {
    declare_read_type(reader);
  } else if (kilni_program_reader_take_word(reader, "fn")) {
    read_function(reader);
  } else if (kilni_program_reader_take_word(reader, "program")) {
    declare_read_program(reader);
  } else {
    const char* fix = declare_is_ptx(reader)
                          ? "this is PTX: name the file NAME.ptx"
                          : kilni_program_hint_file(reader->token.text);
    kilni_program_reader_expected(
        reader, "const, type, fn or program",
        fix != NULL ? fix : "put statements into the body of the program");
    kilni_program_reader_next(reader);
  }
}

// To the next declaration: what is in between belongs to a broken one.
static void recover(kilni_program_reader_t* reader) {
  if (!reader->panic) return;
  reader->panic = false;
  while (reader->token.kind != KILNI_TOKEN_END &&
         !kilni_program_reader_is_word(reader, "const") &&
         !kilni_program_reader_is_word(reader, "type") &&
         !kilni_program_reader_is_word(reader, "fn") &&
         !kilni_program_reader_is_word(reader, "program")) {
    kilni_program_reader_next(reader);
  }
}

void kilni_program_reader_file(kilni_program_reader_t* reader) {
  kilni_program_reader_next(reader);
  while (reader->token.kind != KILNI_TOKEN_END && !reader->stopped) {
    declare_read_declaration(reader);
    recover(reader);
  }
  if (reader->ir->name == 0 &&
      kilni_program_report_errors(reader->report) == 0) {
    kilni_program_reader_error(reader, reader->token.at, 0,
                               "write program name(...) { ... }",
                               "the text has no program");
  }
}
