// SPDX-License-Identifier: Apache-2.0
//
// program: reading text: names and calls in expressions.
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "program/ir/program_rules.h"
#include "program/ir/program_types.h"
#include "program/text/program_reader.h"

static const char kTypeFix[] =
    "write one of u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 bool";

// The operands of a call while they are read.
typedef struct list_t {
  uint32_t items[KILNI_TEXT_MAX_LIST];
  uint32_t count;
  bool broken;
} list_t;

static uint8_t words_type_at(const kilni_program_reader_t* reader,
                             uint32_t expr) {
  return reader->ir->exprs.items[expr].type;
}

// ---- Names ----

// What the next token, a name, stands for; NULL after an error. It is taken.
static const kilni_program_symbol_t* words_read_known(
    kilni_program_reader_t* reader) {
  kiln_string_view_t name = reader->token.text;
  uint32_t at = reader->token.at;
  kilni_program_reader_next(reader);
  // A record that there was no space for is not there to be looked at.
  if (reader->ir->failed != KILN_STATUS_OK) {
    reader->stopped = true;
    return NULL;
  }
  const kilni_program_symbol_t* symbol =
      kilni_program_symbols_find(reader, name);
  if (symbol == NULL) {
    char near[120];
    kilni_program_reader_error(reader, at, KILNI_RULE_NAME_UNKNOWN,
                               kilni_program_hint_name(reader, name, near),
                               "\"%.*s\"", KILNI_SV(name));
  }
  return symbol;
}

uint32_t kilni_program_reader_type(kilni_program_reader_t* reader) {
  const kilni_program_symbol_t* symbol =
      reader->token.kind == KILNI_TOKEN_NAME
          ? kilni_program_symbols_find(reader, reader->token.text)
          : NULL;
  if (symbol == NULL || (symbol->kind != KILNI_SYMBOL_TYPE &&
                         symbol->kind != KILNI_SYMBOL_TYPE_WORD)) {
    const char* fix = kilni_program_hint_type(reader->token.text);
    kilni_program_reader_expected(reader, "a type",
                                  fix != NULL ? fix : kTypeFix);
    return KILN_PROGRAM_TYPE_NONE;
  }
  kilni_program_reader_next(reader);
  return symbol->index;
}

uint32_t kilni_program_reader_buffer(kilni_program_reader_t* reader) {
  if (reader->panic) return 0;
  if (reader->token.kind != KILNI_TOKEN_NAME) {
    kilni_program_reader_expected(reader, "the name of a buffer",
                                  "name a parameter with [], or an array");
    return 0;
  }
  uint32_t at = reader->token.at;
  kiln_string_view_t name = reader->token.text;
  const kilni_program_symbol_t* symbol = words_read_known(reader);
  if (symbol == NULL || symbol->kind == KILNI_SYMBOL_BROKEN) return 0;
  if (symbol->kind != KILNI_SYMBOL_BUFFER) {
    kilni_program_reader_error(reader, at, KILNI_RULE_NAME_KIND, NULL,
                               "\"%.*s\" is not a buffer", KILNI_SV(name));
    return 0;
  }
  return symbol->index;
}

// "[ index ]"; 0 after an error.
static uint32_t words_read_index(kilni_program_reader_t* reader) {
  if (!kilni_program_reader_need_sign(reader, '[')) return 0;
  uint32_t index = kilni_program_reader_typed(reader, KILN_PROGRAM_TYPE_NONE);
  return kilni_program_reader_need_sign(reader, ']') ? index : 0;
}

// ---- Calls ----

// "( a, b )", each of them settled by nobody yet.
static void words_read_list(kilni_program_reader_t* reader, list_t* out_list) {
  memset(out_list, 0, sizeof(*out_list));
  out_list->broken = !kilni_program_reader_need_sign(reader, '(');
  if (out_list->broken || kilni_program_reader_take_sign(reader, ')')) return;
  do {
    if (out_list->count == KILNI_TEXT_MAX_LIST) {
      kilni_program_reader_error(reader, reader->token.at, KILNI_RULE_LIMIT,
                                 NULL, "operands of a call, at most %d",
                                 KILNI_TEXT_MAX_LIST);
      reader->panic = true;
      break;
    }
    uint32_t expr = kilni_program_reader_expression(reader);
    if (expr == 0) out_list->broken = true;
    out_list->items[out_list->count++] = expr;
  } while (kilni_program_reader_take_sign(reader, ','));
  if (!kilni_program_reader_need_sign(reader, ')')) out_list->broken = true;
}

static bool has_count(kilni_program_reader_t* reader, uint32_t at,
                      const list_t* list, const char* name, uint32_t count) {
  static const char* const kForms[] = {"", "x", "x, y", "x, y, z"};
  if (list->broken) return false;
  if (list->count == count) return true;
  char fix[80];
  if (count == 2 && list->count > 2) {
    snprintf(fix, sizeof(fix), "write %s(x, %s(y, z)), or two operands", name,
             name);
  } else {
    snprintf(fix, sizeof(fix), "write %s(%s)", name, kForms[count]);
  }
  kilni_program_reader_error(reader, at, 0, fix,
                             "%s takes %u operand%s, not %u", name, count,
                             count == 1 ? "" : "s", list->count);
  return false;
}

static uint32_t call_unary(kilni_program_reader_t* reader, uint32_t at,
                           uint32_t op) {
  list_t list;
  words_read_list(reader, &list);
  if (!has_count(reader, at, &list, kilni_program_unary_operators[op].spelling,
                 1)) {
    return 0;
  }
  return kilni_program_reader_unary(reader, at, op, list.items[0]);
}

static uint32_t call_binary(kilni_program_reader_t* reader, uint32_t at,
                            uint32_t op) {
  list_t list;
  words_read_list(reader, &list);
  if (!has_count(reader, at, &list, kilni_program_binary_operators[op].spelling,
                 2)) {
    return 0;
  }
  return kilni_program_reader_binary(reader, at, op, list.items[0],
                                     list.items[1]);
}

static uint32_t call_three(kilni_program_reader_t* reader, uint32_t at,
                           bool fma) {
  list_t list;
  words_read_list(reader, &list);
  if (!has_count(reader, at, &list, fma ? "fma" : "select", 3)) return 0;
  uint32_t* x = list.items;
  // Each pair twice: a type goes from any of them to all.
  for (int i = 0; i < 2; i++) {
    if (fma && (!kilni_program_reader_together(reader, &x[0], &x[1]))) return 0;
    if (!kilni_program_reader_together(reader, &x[1], &x[2])) return 0;
  }
  if (fma && !kilni_program_reader_together(reader, &x[0], &x[1])) return 0;
  if (!fma) {
    x[0] = kilni_program_reader_settle(reader, x[0], KILN_PROGRAM_TYPE_NONE);
  }
  if (x[0] == 0) return 0;
  kilni_program_expr_record_t record = {
      fma ? KILNI_EXPR_FMA : KILNI_EXPR_SELECT,
      words_type_at(reader, x[1]),
      0,
      x[0],
      x[1],
      x[2]};
  return kilni_program_reader_add(reader, at, record);
}

static uint32_t call_cast(kilni_program_reader_t* reader, uint32_t at,
                          uint32_t type, bool bits) {
  list_t list;
  if (!kilni_program_reader_is_sign(reader, '(')) {
    bool array = kilni_program_reader_is_sign(reader, '[');
    kilni_program_reader_expected(
        reader, "\"(\"",
        array ? "an array stands at the head of a body: private t: f32[4];"
              : "a cast is written f32(x)");
    return 0;
  }
  words_read_list(reader, &list);
  if (!has_count(reader, at, &list, kilni_program_type_name(type), 1)) return 0;
  static const uint8_t kUnsigned[] = {0,
                                      KILN_PROGRAM_TYPE_U8,
                                      KILN_PROGRAM_TYPE_U16,
                                      0,
                                      KILN_PROGRAM_TYPE_U32,
                                      0,
                                      0,
                                      0,
                                      KILN_PROGRAM_TYPE_U64};
  bool is_bits = bits && !kilni_program_reader_has_point(reader, list.items[0]);
  uint32_t own = is_bits && kilni_program_type_class(type) == KILNI_CLASS_FLOAT
                     ? kUnsigned[kilni_program_type_bytes(type)]
                     : KILN_PROGRAM_TYPE_NONE;
  uint32_t value = kilni_program_reader_settle(reader, list.items[0], own);
  if (value == 0) return 0;
  kilni_program_expr_record_t record = {
      bits ? KILNI_EXPR_BITCAST : KILNI_EXPR_CAST,
      (uint8_t)type,
      0,
      value,
      0,
      0};
  return kilni_program_reader_add(reader, at, record);
}

static uint32_t call_length(kilni_program_reader_t* reader, uint32_t at,
                            uint32_t type) {
  if (!kilni_program_reader_need_sign(reader, '(')) return 0;
  uint32_t buffer = kilni_program_reader_buffer(reader);
  if (!kilni_program_reader_need_sign(reader, ')') || buffer == 0) return 0;
  kilni_program_expr_record_t record = {
      KILNI_EXPR_LENGTH, (uint8_t)type, 0, buffer, 0, 0};
  return kilni_program_reader_add(reader, at, record);
}

static uint32_t call_subgroup(kilni_program_reader_t* reader, uint32_t at,
                              uint32_t op) {
  list_t list;
  words_read_list(reader, &list);
  const kilni_program_operator_t* row = &kilni_program_subgroups[op];
  if (!has_count(reader, at, &list, row->spelling, row->lane ? 2 : 1)) return 0;
  uint32_t value = kilni_program_reader_settle(reader, list.items[0],
                                               KILN_PROGRAM_TYPE_NONE);
  uint32_t lane = 0;
  if (row->lane) {
    lane = kilni_program_reader_settle(reader, list.items[1],
                                       KILN_PROGRAM_TYPE_U32);
    if (lane == 0) return 0;
  }
  if (value == 0) return 0;
  uint8_t type = row->result == KILNI_RESULT_U32 ? KILN_PROGRAM_TYPE_U32
                                                 : words_type_at(reader, value);
  kilni_program_expr_record_t record = {
      KILNI_EXPR_SUBGROUP, type, (uint16_t)op, value, lane, 0};
  return kilni_program_reader_add(reader, at, record);
}

static uint32_t take_one_of(kilni_program_reader_t* reader,
                            const char* const* words, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (kilni_program_reader_take_word(reader, words[i])) return i;
  }
  return UINT32_MAX;
}

// ", release, device": both may be left out.
static bool words_read_order(kilni_program_reader_t* reader,
                             uint32_t* inout_ordering, uint32_t* inout_scope) {
  if (!kilni_program_reader_take_sign(reader, ',')) return true;
  uint32_t found =
      take_one_of(reader, kilni_program_orderings, KILNI_ORDERING_COUNT);
  if (found != UINT32_MAX) {
    *inout_ordering = found;
    if (!kilni_program_reader_take_sign(reader, ',')) return true;
  }
  found = take_one_of(reader, kilni_program_scopes, KILNI_SCOPE_COUNT);
  if (found != UINT32_MAX) {
    *inout_scope = found;
    return true;
  }
  kilni_program_reader_expected(
      reader, "an ordering or a scope",
      "write relaxed, acquire, release, acq_rel or seq_cst, "
      "then block, device or system");
  return false;
}

static uint32_t call_atomic(kilni_program_reader_t* reader, uint32_t at,
                            uint32_t op) {
  if (!kilni_program_reader_need_sign(reader, '(')) return 0;
  uint32_t buffer = kilni_program_reader_buffer(reader);
  uint32_t operands[3] = {words_read_index(reader), 0, 0}, count = 1;
  uint8_t type = KILN_PROGRAM_TYPE_NONE;
  bool own = false;
  if (buffer != 0) {
    const kilni_program_buffer_record_t* record =
        &reader->ir->buffers.items[buffer];
    type = record->type;
    own = record->role == KILN_PROGRAM_ROLE_SHARED ||
          record->role == KILN_PROGRAM_ROLE_PRIVATE;
  }
  bool whole = buffer != 0 && operands[0] != 0;
  for (uint32_t i = 0; i < kilni_program_atomic_values(op); i++) {
    if (!kilni_program_reader_need_sign(reader, ',')) return 0;
    operands[count] = kilni_program_reader_typed(reader, type);
    whole = whole && operands[count++] != 0;
  }
  uint32_t ordering = KILN_PROGRAM_ORDERING_RELAXED;
  uint32_t scope = own ? KILN_PROGRAM_SCOPE_BLOCK : KILN_PROGRAM_SCOPE_DEVICE;
  if (!words_read_order(reader, &ordering, &scope)) return 0;
  if (!kilni_program_reader_need_sign(reader, ')') || !whole) return 0;
  kilni_program_expr_record_t expr = {
      KILNI_EXPR_ATOMIC,
      kilni_program_atomic_has_result(op) ? type
                                          : (uint8_t)KILN_PROGRAM_TYPE_NONE,
      KILNI_ATOMIC(op, ordering, scope),
      buffer,
      kilni_program_ir_add_operands(reader->ir, operands, count),
      count};
  return kilni_program_reader_add(reader, at, expr);
}

// One operand for a parameter: a value, or a buffer by its name.
static uint32_t words_read_argument(kilni_program_reader_t* reader,
                                    uint32_t parameter) {
  if ((parameter & KILNI_PARAMETER_BUFFER) != 0) {
    uint32_t buffer = kilni_program_reader_buffer(reader);
    if (buffer != 0 && kilni_program_reader_is_sign(reader, '[')) {
      kilni_program_reader_expected(reader, "a buffer",
                                    "hand it over whole: f(x)");
    }
    return buffer;
  }
  return kilni_program_reader_typed(
      reader, reader->ir->variables.items[parameter].type);
}

static uint32_t call_function(kilni_program_reader_t* reader, uint32_t at,
                              kiln_string_view_t name, uint32_t function) {
  kilni_program_function_record_t record =
      reader->ir->functions.items[function];
  uint32_t operands[KILNI_TEXT_MAX_LIST];
  bool whole = kilni_program_reader_need_sign(reader, '(');
  for (uint32_t i = 0; i < record.parameter_count && !reader->panic; i++) {
    if (kilni_program_reader_is_sign(reader, ')') ||
        (i > 0 && !kilni_program_reader_take_sign(reader, ','))) {
      kilni_program_reader_error(reader, reader->token.at, KILNI_RULE_CALL,
                                 NULL, "\"%.*s\" has %u parameters",
                                 KILNI_SV(name), record.parameter_count);
      reader->panic = true;
      return 0;
    }
    operands[i] = words_read_argument(
        reader, reader->ir->operands.items[record.parameters + i]);
    whole = whole && operands[i] != 0;
  }
  if (kilni_program_reader_is_sign(reader, ',')) {
    kilni_program_reader_error(reader, reader->token.at, KILNI_RULE_CALL, NULL,
                               "\"%.*s\" has %u parameters", KILNI_SV(name),
                               record.parameter_count);
    reader->panic = true;
  }
  if (!kilni_program_reader_need_sign(reader, ')') || !whole) return 0;
  kilni_program_expr_record_t expr = {
      KILNI_EXPR_CALL,
      record.type,
      0,
      function,
      kilni_program_ir_add_operands(reader->ir, operands,
                                    record.parameter_count),
      record.parameter_count};
  return kilni_program_reader_add(reader, at, expr);
}

// ---- Everything that begins with a name ----

static uint32_t read_id(kilni_program_reader_t* reader, uint32_t at,
                        uint32_t id) {
  uint32_t axis = 0;
  if (kilni_program_ids[id].axes) {
    static const char* const kAxes[] = {"x", "y", "z"};
    if (!kilni_program_reader_need_sign(reader, '.')) return 0;
    axis = take_one_of(reader, kAxes, 3);
    if (axis == UINT32_MAX) {
      kilni_program_reader_expected(reader, "x, y or z", "name one axis");
      return 0;
    }
  }
  kilni_program_expr_record_t record = {KILNI_EXPR_ID,
                                        KILN_PROGRAM_TYPE_U32,
                                        (uint16_t)(id | axis << 8),
                                        0,
                                        0,
                                        0};
  return kilni_program_reader_add(reader, at, record);
}

static uint32_t read_load(kilni_program_reader_t* reader, uint32_t at,
                          uint32_t buffer) {
  uint32_t index = words_read_index(reader);
  if (index == 0) return 0;
  kilni_program_expr_record_t record = {KILNI_EXPR_LOAD,
                                        reader->ir->buffers.items[buffer].type,
                                        0,
                                        buffer,
                                        index,
                                        0};
  return kilni_program_reader_add(reader, at, record);
}

static uint32_t words_read_variable(kilni_program_reader_t* reader, uint32_t at,
                                    uint8_t op, uint32_t index) {
  uint8_t type = op == KILNI_EXPR_VARIABLE
                     ? reader->ir->variables.items[index].type
                     : reader->ir->scalars.items[index].type;
  kilni_program_expr_record_t record = {op, type, 0, index, 0, 0};
  return kilni_program_reader_add(reader, at, record);
}

static uint32_t read_bool(kilni_program_reader_t* reader, uint32_t at,
                          uint32_t value) {
  kilni_program_expr_record_t record = {
      KILNI_EXPR_LITERAL, KILN_PROGRAM_TYPE_BOOL, 0, value, 0, 0};
  return kilni_program_reader_add(reader, at, record);
}

static uint32_t words_read_word(kilni_program_reader_t* reader, uint32_t at,
                                kiln_string_view_t name,
                                kilni_program_symbol_t symbol) {
  uint32_t index = symbol.index;
  switch (symbol.kind) {
    case KILNI_SYMBOL_TYPE:
    case KILNI_SYMBOL_TYPE_WORD:
      return call_cast(reader, at, index, false);
    case KILNI_SYMBOL_BITCAST:
      return call_cast(reader, at, index, true);
    case KILNI_SYMBOL_UNARY:
      return call_unary(reader, at, index);
    case KILNI_SYMBOL_BINARY:
      return call_binary(reader, at, index);
    case KILNI_SYMBOL_ATOMIC:
      return call_atomic(reader, at, index);
    case KILNI_SYMBOL_SUBGROUP:
      return call_subgroup(reader, at, index);
    case KILNI_SYMBOL_ID:
      return read_id(reader, at, index);
    case KILNI_SYMBOL_BOOL:
      return read_bool(reader, at, index);
    case KILNI_SYMBOL_SELECT:
      return call_three(reader, at, false);
    case KILNI_SYMBOL_FMA:
      return call_three(reader, at, true);
    case KILNI_SYMBOL_LENGTH:
      return call_length(reader, at, index);
    default:
      break;
  }
  kilni_program_reader_error(reader, at, KILNI_RULE_NAME_KIND,
                             kilni_program_hint_word(name),
                             "\"%.*s\" is no value", KILNI_SV(name));
  reader->panic = true;
  return 0;
}

// "bitcast_T", where T is a type of the text: 0 for any other name.
static uint32_t bitcast_of(const kilni_program_reader_t* reader,
                           kiln_string_view_t name) {
  static const char kHead[] = "bitcast_";
  const size_t size = sizeof(kHead) - 1;
  if (name.size <= size || memcmp(name.data, kHead, size) != 0) return 0;
  kiln_string_view_t rest = {name.data + size, name.size - size};
  const kilni_program_symbol_t* symbol =
      kilni_program_symbols_find(reader, rest);
  return symbol != NULL && symbol->kind == KILNI_SYMBOL_TYPE ? symbol->index
                                                             : 0;
}

// What stands behind a name that means nothing: a member, operands, an index.
// Operands are as unknown as what takes them.
static void skip_unknown(kilni_program_reader_t* reader) {
  while (kilni_program_reader_take_sign(reader, '.')) {
    if (reader->token.kind == KILNI_TOKEN_NAME) {
      kilni_program_reader_next(reader);
    }
  }
  uint32_t open = kilni_program_reader_take_sign(reader, '(') ? 1 : 0;
  while (open != 0 && reader->token.kind != KILNI_TOKEN_END &&
         !kilni_program_reader_is_sign(reader, ';') &&
         !kilni_program_reader_is_sign(reader, '{')) {
    if (kilni_program_reader_is_sign(reader, '(')) open++;
    if (kilni_program_reader_is_sign(reader, ')')) open--;
    kilni_program_reader_next(reader);
  }
  if (kilni_program_reader_is_sign(reader, '[')) words_read_index(reader);
}

uint32_t kilni_program_reader_name(kilni_program_reader_t* reader) {
  uint32_t at = reader->token.at;
  kiln_string_view_t name = reader->token.text;
  uint32_t type = bitcast_of(reader, name);
  if (type != 0 && kilni_program_symbols_find(reader, name) == NULL) {
    kilni_program_reader_next(reader);
    return call_cast(reader, at, type, true);
  }
  const kilni_program_symbol_t* found = words_read_known(reader);
  if (found == NULL) {
    skip_unknown(reader);
    return 0;
  }
  kilni_program_symbol_t symbol = *found;
  switch (symbol.kind) {
    case KILNI_SYMBOL_VARIABLE:
      return words_read_variable(reader, at, KILNI_EXPR_VARIABLE, symbol.index);
    case KILNI_SYMBOL_SCALAR:
      return words_read_variable(reader, at, KILNI_EXPR_SCALAR, symbol.index);
    case KILNI_SYMBOL_CONST:
      return symbol.index;
    case KILNI_SYMBOL_BUFFER:
      return read_load(reader, at, symbol.index);
    case KILNI_SYMBOL_FUNCTION:
      return call_function(reader, at, name, symbol.index);
    case KILNI_SYMBOL_BROKEN:
      if (kilni_program_reader_is_sign(reader, '[')) words_read_index(reader);
      return 0;
    default:
      return words_read_word(reader, at, name, symbol);
  }
}
