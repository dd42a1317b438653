// SPDX-License-Identifier: Apache-2.0
//
// program: reading the canonical form, from anybody.
//
// Indices are checked where they are read, nesting is bounded, the validator
// sees the result, and what it would be written as is compared with what was
// read: no two strings of bytes are the same program.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "program/ir/program_canonical.h"
#include "program/ir/program_check.h"
#include "program/ir/program_object.h"
#include "program/ir/program_rules.h"
#include "program/ir/program_types.h"

typedef struct from_bytes_t {
  kilni_program_ir_t ir;
  kiln_bytes_view_t bytes;
  size_t at;
  const char* broken;  // what was wrong first; NULL: nothing
  size_t broken_at;
  uint32_t depth;
  uint16_t function;   // whose body is read; 0: the program's
  uint32_t functions;  // whole so far
  // Records of the body's buffers and variables by their numbers.
  uint32_t* buffers;
  size_t buffer_count;
  size_t buffer_capacity;
  uint32_t* variables;
  size_t variable_count;
  size_t variable_capacity;
} from_bytes_t;

// ---- Bytes ----

static void read_canonical_fail(from_bytes_t* reader, const char* why) {
  if (reader->broken != NULL) return;
  reader->broken = why;
  reader->broken_at = reader->at;
}

static bool is_broken(const from_bytes_t* reader) {
  return reader->broken != NULL || reader->ir.failed != KILN_STATUS_OK;
}

static uint8_t take_byte(from_bytes_t* reader) {
  if (is_broken(reader)) return 0;
  if (reader->at == reader->bytes.size) {
    read_canonical_fail(reader, "the bytes break off");
    return 0;
  }
  return reader->bytes.data[reader->at++];
}

// A number below `limit`; 0 for others, which break the reading.
static uint64_t read_canonical_take_number(from_bytes_t* reader, uint64_t limit,
                                           const char* what) {
  uint64_t value = 0;
  for (uint32_t shift = 0; shift < 64; shift += 7) {
    uint8_t byte = take_byte(reader);
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) {
      if (value < limit || limit == 0) return value;
      break;
    }
  }
  read_canonical_fail(reader, what);
  return 0;
}

static uint32_t take_below(from_bytes_t* reader, size_t limit,
                           const char* what) {
  // A limit of 0 would mean none.
  if (limit == 0) read_canonical_fail(reader, what);
  return (uint32_t)read_canonical_take_number(reader, limit == 0 ? 1 : limit,
                                              what);
}

static uint8_t take_type(from_bytes_t* reader, bool or_none) {
  uint8_t type = take_byte(reader);
  if (type >= KILNI_TYPE_COUNT || (type == 0 && !or_none)) {
    read_canonical_fail(reader, "no type");
    return 0;
  }
  return type;
}

static uint32_t read_canonical_take_name(from_bytes_t* reader) {
  uint32_t size = take_below(reader, KILNI_IR_MAX_NAME + 1, "a name too long");
  if (is_broken(reader)) return 0;
  if (size == 0 || size > reader->bytes.size - reader->at) {
    read_canonical_fail(reader, "no name");
    return 0;
  }
  const char* text = (const char*)reader->bytes.data + reader->at;
  if (memchr(text, 0, size) != NULL) {
    read_canonical_fail(reader, "a NUL in a name");
    return 0;
  }
  reader->at += size;
  return kilni_program_ir_add_name(&reader->ir, text, size);
}

// ---- Numbers of records ----

static void read_canonical_push(from_bytes_t* reader, uint32_t** items,
                                size_t* count, size_t* capacity,
                                uint32_t record) {
  void* grown = *items;
  kiln_status_t status = kilni_base_grow(reader->ir.allocator, *count + 1,
                                         sizeof(**items), capacity, &grown);
  *items = grown;
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    reader->ir.failed = KILN_STATUS_OUT_OF_MEMORY;
    return;
  }
  (*items)[(*count)++] = record;
}

static uint32_t read_canonical_add_variable(from_bytes_t* reader, uint8_t type,
                                            uint8_t kind) {
  kilni_program_variable_record_t record = {0, type, kind, reader->function};
  uint32_t index = kilni_program_ir_add_variable(&reader->ir, record);
  read_canonical_push(reader, &reader->variables, &reader->variable_count,
                      &reader->variable_capacity, index);
  return index;
}

static uint32_t read_canonical_add_buffer(
    from_bytes_t* reader, kilni_program_buffer_record_t record) {
  record.function = reader->function;
  uint32_t index = kilni_program_ir_add_buffer(&reader->ir, record);
  read_canonical_push(reader, &reader->buffers, &reader->buffer_count,
                      &reader->buffer_capacity, index);
  return index;
}

static uint32_t take_buffer(from_bytes_t* reader) {
  uint32_t number = take_below(reader, reader->buffer_count, "no such buffer");
  return is_broken(reader) ? 0 : reader->buffers[number];
}

static uint32_t take_variable(from_bytes_t* reader) {
  uint32_t number =
      take_below(reader, reader->variable_count, "no such variable");
  return is_broken(reader) ? 0 : reader->variables[number];
}

// ---- Expressions ----

static uint32_t take_expr(from_bytes_t* reader);

static uint8_t read_canonical_type_at(const from_bytes_t* reader,
                                      uint32_t expr) {
  return reader->ir.exprs.items[expr].type;
}

static void take_literal(from_bytes_t* reader,
                         kilni_program_expr_record_t* record) {
  record->type = take_type(reader, false);
  uint64_t bits = read_canonical_take_number(reader, 0, "a number too large");
  uint32_t bytes = kilni_program_type_bytes(record->type);
  uint64_t most = record->type == KILN_PROGRAM_TYPE_BOOL
                      ? 1
                      : UINT64_MAX >> (64 - 8 * (bytes == 0 ? 8 : bytes));
  if (bits > most ||
      kilni_program_float_canonical(record->type, bits) != bits) {
    read_canonical_fail(reader, "a literal that its type has not");
  }
  record->a = (uint32_t)bits;
  record->b = (uint32_t)(bits >> 32);
}

static void take_id(from_bytes_t* reader, kilni_program_expr_record_t* record) {
  uint32_t extra = take_below(reader, 0x10000, "no such id");
  uint32_t id = extra & 0xff, axis = extra >> 8;
  if (id >= KILNI_ID_COUNT || axis > (kilni_program_ids[id].axes ? 2U : 0U)) {
    read_canonical_fail(reader, "no such id");
  }
  record->type = KILN_PROGRAM_TYPE_U32;
  record->extra = (uint16_t)extra;
}

static void take_operator(from_bytes_t* reader,
                          kilni_program_expr_record_t* record) {
  bool unary = record->op == KILNI_EXPR_UNARY;
  record->extra = take_byte(reader);
  if (record->extra >= (unary ? KILNI_UNARY_COUNT : KILNI_BINARY_COUNT)) {
    read_canonical_fail(reader, "no such operator");
    return;
  }
  record->a = take_expr(reader);
  if (!unary) record->b = take_expr(reader);
  if (is_broken(reader)) return;
  uint32_t left = read_canonical_type_at(reader, record->a);
  record->type =
      (uint8_t)(unary ? kilni_program_type_of_unary(record->extra, left)
                      : kilni_program_type_of_binary(
                            record->extra, left,
                            read_canonical_type_at(reader, record->b)));
  if (record->type == KILN_PROGRAM_TYPE_NONE) {
    read_canonical_fail(reader, "operands that the operator does not take");
  }
}

static void take_subgroup(from_bytes_t* reader,
                          kilni_program_expr_record_t* record) {
  record->extra = take_byte(reader);
  if (record->extra >= KILNI_SUBGROUP_COUNT) {
    read_canonical_fail(reader, "no such subgroup operation");
    return;
  }
  record->a = take_expr(reader);
  if (kilni_program_subgroups[record->extra].lane) {
    record->b = take_expr(reader);
  }
  if (is_broken(reader)) return;
  record->type = (uint8_t)kilni_program_type_of_subgroup(
      record->extra, read_canonical_type_at(reader, record->a));
  if (record->type == KILN_PROGRAM_TYPE_NONE) {
    read_canonical_fail(reader, "an operand that the operation does not take");
  }
}

static void take_atomic(from_bytes_t* reader,
                        kilni_program_expr_record_t* record) {
  record->extra = (uint16_t)take_below(reader, 0x10000, "no such atomic");
  uint32_t op = KILNI_ATOMIC_OP(record->extra);
  if (op >= KILNI_ATOMIC_COUNT ||
      KILNI_ATOMIC_ORDERING(record->extra) >= KILNI_ORDERING_COUNT ||
      KILNI_ATOMIC_SCOPE(record->extra) >= KILNI_SCOPE_COUNT) {
    read_canonical_fail(reader, "no such atomic");
    return;
  }
  record->a = take_buffer(reader);
  uint32_t operands[3];
  record->c = 1 + kilni_program_atomic_values(op);
  for (uint32_t i = 0; i < record->c; i++) operands[i] = take_expr(reader);
  if (is_broken(reader)) return;
  record->b = kilni_program_ir_add_operands(&reader->ir, operands, record->c);
  if (kilni_program_atomic_has_result(op)) {
    record->type = reader->ir.buffers.items[record->a].type;
  }
}

static void take_call(from_bytes_t* reader,
                      kilni_program_expr_record_t* record) {
  uint32_t number = take_below(reader, reader->functions, "no such function");
  if (is_broken(reader)) return;
  kilni_program_function_record_t called =
      reader->ir.functions.items[number + 1];
  uint32_t operands[KILNI_IR_MAX_CALL];
  for (uint32_t i = 0; i < called.parameter_count; i++) {
    uint32_t parameter = reader->ir.operands.items[called.parameters + i];
    operands[i] = (parameter & KILNI_PARAMETER_BUFFER) != 0
                      ? take_buffer(reader)
                      : take_expr(reader);
    if (is_broken(reader)) return;
  }
  record->a = number + 1;
  record->b = kilni_program_ir_add_operands(&reader->ir, operands,
                                            called.parameter_count);
  record->c = called.parameter_count;
  record->type = called.type;
}

static void take_three(from_bytes_t* reader,
                       kilni_program_expr_record_t* record) {
  record->a = take_expr(reader);
  record->b = take_expr(reader);
  record->c = take_expr(reader);
  if (!is_broken(reader)) {
    record->type = read_canonical_type_at(reader, record->b);
  }
}

static void take_record(from_bytes_t* reader,
                        kilni_program_expr_record_t* record) {
  switch (record->op) {
    case KILNI_EXPR_LITERAL:
      take_literal(reader, record);
      break;
    case KILNI_EXPR_VARIABLE:
      record->a = take_variable(reader);
      if (!is_broken(reader)) {
        record->type = reader->ir.variables.items[record->a].type;
      }
      break;
    case KILNI_EXPR_SCALAR:
      record->a = 1 + take_below(reader,
                                 reader->ir.scalars.count == 0
                                     ? 0
                                     : reader->ir.scalars.count - 1,
                                 "no such scalar");
      if (!is_broken(reader)) {
        record->type = reader->ir.scalars.items[record->a].type;
      }
      break;
    case KILNI_EXPR_LENGTH:
      record->type = take_type(reader, false);
      if (record->type != KILN_PROGRAM_TYPE_U32 &&
          record->type != KILN_PROGRAM_TYPE_U64) {
        read_canonical_fail(reader, "a length of another type");
      }
      record->a = take_buffer(reader);
      break;
    case KILNI_EXPR_ID:
      take_id(reader, record);
      break;
    case KILNI_EXPR_LOAD:
      record->a = take_buffer(reader);
      record->b = take_expr(reader);
      if (!is_broken(reader)) {
        record->type = reader->ir.buffers.items[record->a].type;
      }
      break;
    case KILNI_EXPR_UNARY:
    case KILNI_EXPR_BINARY:
      take_operator(reader, record);
      break;
    case KILNI_EXPR_SELECT:
    case KILNI_EXPR_FMA:
      take_three(reader, record);
      break;
    case KILNI_EXPR_CAST:
    case KILNI_EXPR_BITCAST:
      record->type = take_type(reader, false);
      record->a = take_expr(reader);
      break;
    case KILNI_EXPR_SUBGROUP:
      take_subgroup(reader, record);
      break;
    case KILNI_EXPR_ATOMIC:
      take_atomic(reader, record);
      break;
    case KILNI_EXPR_CALL:
      take_call(reader, record);
      break;
    default:
      read_canonical_fail(reader, "no such expression");
      break;
  }
}

static uint32_t take_expr_of(from_bytes_t* reader, uint8_t op) {
  kilni_program_expr_record_t record = {op, 0, 0, 0, 0, 0};
  if (reader->depth == KILNI_IR_MAX_DEPTH) {
    read_canonical_fail(reader, "an expression of too many levels");
    return 0;
  }
  reader->depth++;
  take_record(reader, &record);
  reader->depth--;
  return is_broken(reader) ? 0 : kilni_program_ir_add_expr(&reader->ir, record);
}

static uint32_t take_expr(from_bytes_t* reader) {
  uint8_t op = take_byte(reader);
  return is_broken(reader) ? 0 : take_expr_of(reader, op);
}

static uint32_t take_optional(from_bytes_t* reader) {
  uint8_t op = take_byte(reader);
  if (is_broken(reader) || op == KILNI_CANONICAL_END) return 0;
  return take_expr_of(reader, op);
}

// ---- Statements ----

static uint32_t read_canonical_take_list(from_bytes_t* reader,
                                         uint32_t nesting);

static void take_for(from_bytes_t* reader,
                     kilni_program_statement_record_t* record,
                     uint32_t nesting) {
  record->extra =
      (uint16_t)take_below(reader, KILNI_FOR_UNROLL + 1, "no such loop");
  record->b = take_expr(reader);
  record->c = take_expr(reader);
  record->d = take_optional(reader);
  if (is_broken(reader)) return;
  record->a = read_canonical_add_variable(
      reader, read_canonical_type_at(reader, record->b),
      KILNI_VARIABLE_COUNTER);
  record->body = read_canonical_take_list(reader, nesting);
}

static void read_canonical_take_copy(from_bytes_t* reader,
                                     kilni_program_statement_record_t* record) {
  uint32_t to = take_buffer(reader);
  record->a = to | take_buffer(reader) << 16;
  record->extra = (uint16_t)take_below(reader, 0x10000, "a tag too large");
  record->b = take_expr(reader);
  record->c = take_expr(reader);
  record->d = take_expr(reader);
}

static void take_fields(from_bytes_t* reader,
                        kilni_program_statement_record_t* record,
                        uint32_t nesting) {
  switch (record->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
      record->b = take_expr(reader);
      if (is_broken(reader)) return;
      record->a = read_canonical_add_variable(
          reader, read_canonical_type_at(reader, record->b),
          record->op == KILNI_STATEMENT_LET ? KILNI_VARIABLE_LET
                                            : KILNI_VARIABLE_VAR);
      break;
    case KILNI_STATEMENT_ASSIGN:
      record->a = take_variable(reader);
      record->b = take_expr(reader);
      break;
    case KILNI_STATEMENT_STORE:
      record->a = take_buffer(reader);
      record->b = take_expr(reader);
      record->c = take_expr(reader);
      break;
    case KILNI_STATEMENT_EVALUATE:
      record->a = take_expr(reader);
      break;
    case KILNI_STATEMENT_IF:
      record->a = take_expr(reader);
      record->body = read_canonical_take_list(reader, nesting);
      record->other = read_canonical_take_list(reader, nesting);
      break;
    case KILNI_STATEMENT_FOR:
      take_for(reader, record, nesting);
      break;
    case KILNI_STATEMENT_WHILE:
      record->a = take_expr(reader);
      record->body = read_canonical_take_list(reader, nesting);
      break;
    case KILNI_STATEMENT_RETURN:
      record->a = take_optional(reader);
      break;
    case KILNI_STATEMENT_ASYNC_COPY:
      read_canonical_take_copy(reader, record);
      break;
    case KILNI_STATEMENT_ASYNC_WAIT:
      record->extra = (uint16_t)take_below(reader, 0x10000, "a tag too large");
      break;
    case KILNI_STATEMENT_TRAP:
      record->a = take_expr(reader);
      record->b = take_expr(reader);
      break;
    case KILNI_STATEMENT_MATRIX:
      record->a = take_buffer(reader);
      record->b = take_buffer(reader);
      record->c = take_buffer(reader);
      break;
    default:
      break;
  }
}

static uint32_t read_canonical_take_list(from_bytes_t* reader,
                                         uint32_t nesting) {
  uint32_t first = 0, last = 0;
  if (nesting == KILNI_IR_MAX_NESTING) {
    read_canonical_fail(reader, "statements of too many levels");
    return 0;
  }
  for (;;) {
    uint8_t op = take_byte(reader);
    if (is_broken(reader) || op == KILNI_CANONICAL_END) return first;
    if (op >= KILNI_STATEMENT_COUNT) {
      read_canonical_fail(reader, "no such statement");
      return 0;
    }
    kilni_program_statement_record_t record;
    memset(&record, 0, sizeof(record));
    record.op = op;
    take_fields(reader, &record, nesting + 1);
    if (is_broken(reader)) return 0;
    uint32_t index = kilni_program_ir_add_statement(&reader->ir, record);
    if (index == 0) return 0;
    if (first == 0) {
      first = index;
    } else {
      reader->ir.statements.items[last].next = index;
    }
    last = index;
  }
}

// ---- Declarations ----

static void take_arrays(from_bytes_t* reader) {
  for (;;) {
    uint8_t role = take_byte(reader);
    if (is_broken(reader) || role == KILNI_CANONICAL_END) return;
    if (role != KILN_PROGRAM_ROLE_SHARED && role != KILN_PROGRAM_ROLE_PRIVATE) {
      read_canonical_fail(reader, "no array");
      return;
    }
    kilni_program_buffer_record_t record = {
        0, take_type(reader, false), role, 0, 0, 0};
    record.count = take_expr(reader);
    if (is_broken(reader)) return;
    read_canonical_add_buffer(reader, record);
  }
}

// A parameter: its role, NONE for a value, and its type.
static uint8_t take_parameter(from_bytes_t* reader, uint8_t* out_type) {
  uint8_t role = take_byte(reader);
  if (role > KILN_PROGRAM_ROLE_RESIDENT) read_canonical_fail(reader, "no role");
  *out_type = take_type(reader, false);
  return role;
}

static void take_function(from_bytes_t* reader) {
  kilni_program_function_record_t record;
  memset(&record, 0, sizeof(record));
  record.type = take_type(reader, true);
  uint32_t count =
      take_below(reader, KILNI_IR_MAX_CALL + 1, "too many parameters");
  uint32_t index = kilni_program_ir_add_function(&reader->ir, record);
  reader->function = (uint16_t)index;
  reader->buffer_count = reader->variable_count = 0;
  uint32_t parameters[KILNI_IR_MAX_CALL];
  for (uint32_t i = 0; i < count && !is_broken(reader); i++) {
    uint8_t type, role = take_parameter(reader, &type);
    if (is_broken(reader)) return;
    kilni_program_buffer_record_t buffer = {0, type, role, 0, 0, 0};
    parameters[i] = role == KILN_PROGRAM_ROLE_NONE
                        ? read_canonical_add_variable(reader, type,
                                                      KILNI_VARIABLE_PARAMETER)
                        : read_canonical_add_buffer(reader, buffer) |
                              KILNI_PARAMETER_BUFFER;
  }
  if (is_broken(reader)) return;
  uint32_t first =
      kilni_program_ir_add_operands(&reader->ir, parameters, count);
  reader->ir.functions.items[index].parameters = first;
  reader->ir.functions.items[index].parameter_count = (uint16_t)count;
  take_arrays(reader);
  uint32_t body = read_canonical_take_list(reader, 0);
  reader->ir.functions.items[index].body = body;
  reader->functions = index;
  reader->function = 0;
}

static void read_canonical_take_parameters(from_bytes_t* reader) {
  uint32_t order[KILNI_IR_MAX_PARAMETERS];
  uint32_t count =
      take_below(reader, KILNI_IR_MAX_PARAMETERS + 1, "too many parameters");
  for (uint32_t i = 0; i < count && !is_broken(reader); i++) {
    uint8_t type, role = take_parameter(reader, &type);
    uint32_t name = read_canonical_take_name(reader);
    if (is_broken(reader)) return;
    if (role == KILN_PROGRAM_ROLE_NONE) {
      kilni_program_scalar_record_t scalar = {name, type, {0, 0, 0}};
      order[i] = kilni_program_ir_add_scalar(&reader->ir, scalar);
    } else {
      kilni_program_buffer_record_t buffer = {name, type, role, 0, 0, 0};
      order[i] =
          read_canonical_add_buffer(reader, buffer) | KILNI_PARAMETER_BUFFER;
    }
  }
  if (is_broken(reader)) return;
  reader->ir.order = kilni_program_ir_add_operands(&reader->ir, order, count);
  reader->ir.order_count = count;
  for (uint32_t i = 0; i < count; i++) {
    if ((order[i] & KILNI_PARAMETER_BUFFER) == 0) continue;
    uint32_t expr = take_optional(reader);
    if (is_broken(reader)) return;
    reader->ir.buffers.items[order[i] & ~KILNI_PARAMETER_BUFFER].count = expr;
  }
}

// The numbers of the program's own buffers, which the functions' took over.
static void restore_buffers(from_bytes_t* reader) {
  reader->buffer_count = reader->variable_count = 0;
  for (uint32_t i = 0; i < reader->ir.order_count; i++) {
    uint32_t parameter = reader->ir.operands.items[reader->ir.order + i];
    if ((parameter & KILNI_PARAMETER_BUFFER) == 0) continue;
    read_canonical_push(reader, &reader->buffers, &reader->buffer_count,
                        &reader->buffer_capacity,
                        parameter & ~KILNI_PARAMETER_BUFFER);
  }
}

// A text has the first axes, and so has what is read here.
static void read_canonical_take_work(from_bytes_t* reader) {
  uint32_t* work = reader->ir.work;
  for (int i = 0; i < 3; i++) {
    work[i] = take_optional(reader);
    if (i > 0 && work[i] != 0 && work[i - 1] == 0) {
      read_canonical_fail(reader, "a work size behind an axis without one");
    }
  }
}

static void take_program(from_bytes_t* reader) {
  static const char kMagic[] = KILNI_CANONICAL_MAGIC;
  for (size_t i = 0; kMagic[i] != 0; i++) {
    if (take_byte(reader) != (uint8_t)kMagic[i]) {
      read_canonical_fail(reader, "no program");
    }
  }
  if (take_byte(reader) != KILNI_CANONICAL_VERSION) {
    read_canonical_fail(reader, "a version that this library does not read");
  }
  if (take_byte(reader) != KILNI_CANONICAL_MEANING) {
    read_canonical_fail(
        reader, "of a version of the language that means something else");
  }
  reader->ir.name = read_canonical_take_name(reader);
  read_canonical_take_parameters(reader);
  read_canonical_take_work(reader);
  for (int i = 0; i < 3; i++) {
    reader->ir.block[i] = take_below(reader, 1025, "a block too large");
  }
  uint32_t functions =
      take_below(reader, KILNI_IR_MAX_FUNCTIONS, "too many functions");
  for (uint32_t i = 0; i < functions && !is_broken(reader); i++) {
    take_function(reader);
  }
  if (is_broken(reader)) return;
  restore_buffers(reader);
  take_arrays(reader);
  reader->ir.body = read_canonical_take_list(reader, 0);
  if (!is_broken(reader) && reader->at != reader->bytes.size) {
    read_canonical_fail(reader, "more bytes behind the program");
  }
}

// ---- The public call ----

static kiln_status_t bad_bytes(const char* why, size_t at) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA, "a program's canonical form, byte %zu: %s", at, why),
      "write it again with kiln_program_canonical");
}

// Keeps the first problem as a status.
static void keep_problem(const kilni_program_problem_t* problem, void* user) {
  kiln_status_t* status = user;
  if (problem->is_note || !kiln_status_is_ok(*status)) return;
  *status = kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA, "a program's canonical form: %s: %s [P%03u]",
                 kilni_program_rule_message(problem->rule), problem->detail,
                 problem->rule),
      "%s", problem->fix);
}

static kiln_status_t read_canonical_compare(const from_bytes_t* reader) {
  kilni_base_str_t again;
  kilni_base_str_init(&again, reader->ir.allocator, KILNI_CANONICAL_MAX_BYTES);
  kiln_status_t status = kilni_program_ir_write_canonical(&reader->ir, &again);
  if (kiln_status_is_ok(status)) {
    size_t at = 0;
    while (at < again.size && at < reader->bytes.size &&
           (uint8_t)again.data[at] == reader->bytes.data[at]) {
      at++;
    }
    if (at != again.size || at != reader->bytes.size) {
      status = bad_bytes("not the canonical form of what it says", at);
    }
  }
  kilni_base_str_deinit(&again);
  return status;
}

static kiln_status_t read_canonical_read(from_bytes_t* reader) {
  take_program(reader);
  KILNI_RETURN_IF_ERROR(kilni_program_ir_status(&reader->ir));
  if (reader->broken != NULL) {
    return bad_bytes(reader->broken, reader->broken_at);
  }
  kiln_status_t problem = kiln_ok();
  kiln_status_t status =
      kilni_program_ir_check(&reader->ir, true, keep_problem, &problem);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(problem);
    return status;
  }
  KILNI_RETURN_IF_ERROR(problem);
  return read_canonical_compare(reader);
}

kiln_status_t kiln_program_read_canonical(kiln_bytes_view_t bytes,
                                          const kiln_allocator_t* allocator,
                                          kiln_program_t** out_program) {
  KILNI_CHECK_ARGUMENT(out_program != NULL, "out_program");
  *out_program = NULL;
  KILNI_CHECK_ARGUMENT(bytes.data != NULL || bytes.size == 0, "bytes");
  if (bytes.size > KILNI_CANONICAL_MAX_BYTES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED,
                   "a program's canonical form of %zu bytes; the limit is %d",
                   bytes.size, KILNI_CANONICAL_MAX_BYTES),
        "divide it into several programs");
  }
  from_bytes_t reader;
  memset(&reader, 0, sizeof(reader));
  reader.bytes = bytes;
  kilni_program_ir_init(&reader.ir,
                        allocator != NULL ? *allocator : kiln_allocator_libc());
  kiln_allocator_t mine = reader.ir.allocator;
  kiln_status_t status = read_canonical_read(&reader);
  kilni_base_free_array(mine, reader.buffers, reader.buffer_capacity,
                        sizeof(uint32_t));
  kilni_base_free_array(mine, reader.variables, reader.variable_capacity,
                        sizeof(uint32_t));
  if (!kiln_status_is_ok(status)) {
    kilni_program_ir_deinit(&reader.ir);
    return status;
  }
  return kilni_program_create(&reader.ir, out_program);
}
