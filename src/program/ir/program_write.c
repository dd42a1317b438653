// SPDX-License-Identifier: Apache-2.0
//
// program: writing the canonical form.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "cache/cache.h"
#include "program/ir/program_canonical.h"
#include "program/ir/program_object.h"

typedef struct writer_t {
  const kilni_program_ir_t* ir;
  kilni_base_str_t* out;
  // The number of each record where it is written, by its index.
  uint32_t* variables;
  uint32_t* buffers;
  uint32_t* functions;  // + 1; 0: not written yet
  uint32_t* called;     // functions in the order in which they are written
  uint32_t called_count;
  uint32_t variable_count;  // of the body that is written
} writer_t;

static void add_byte(writer_t* writer, uint32_t byte) {
  kilni_base_str_add_char(writer->out, (char)(unsigned char)byte);
}

static void write_add_number(writer_t* writer, uint64_t value) {
  for (; value >= 128; value >>= 7) add_byte(writer, (value & 127) | 128);
  add_byte(writer, (uint32_t)value);
}

static void write_add_name(writer_t* writer, uint32_t name) {
  kiln_string_view_t text =
      kilni_base_sv(kilni_program_ir_name(writer->ir, name));
  write_add_number(writer, text.size);
  kilni_base_str_add(writer->out, text);
}

// ---- Expressions ----

static void write_expr(writer_t* writer, uint32_t expr);

static void write_call(writer_t* writer,
                       const kilni_program_expr_record_t* record) {
  const kilni_program_ir_t* ir = writer->ir;
  const kilni_program_function_record_t* called =
      &ir->functions.items[record->a];
  write_add_number(writer, writer->functions[record->a] - 1);
  for (uint32_t i = 0; i < record->c; i++) {
    uint32_t parameter = ir->operands.items[called->parameters + i];
    uint32_t given = ir->operands.items[record->b + i];
    if ((parameter & KILNI_PARAMETER_BUFFER) != 0) {
      write_add_number(writer, writer->buffers[given]);
    } else {
      write_expr(writer, given);
    }
  }
}

static void write_expr(writer_t* writer, uint32_t expr) {
  const kilni_program_ir_t* ir = writer->ir;
  const kilni_program_expr_record_t* record = &ir->exprs.items[expr];
  add_byte(writer, record->op);
  switch (record->op) {
    case KILNI_EXPR_LITERAL:
      add_byte(writer, record->type);
      write_add_number(writer, kilni_program_ir_literal_bits(record));
      return;
    case KILNI_EXPR_VARIABLE:
      write_add_number(writer, writer->variables[record->a]);
      return;
    case KILNI_EXPR_SCALAR:
      write_add_number(writer, record->a - 1);
      return;
    case KILNI_EXPR_LENGTH:
      add_byte(writer, record->type);
      write_add_number(writer, writer->buffers[record->a]);
      return;
    case KILNI_EXPR_ID:
      write_add_number(writer, record->extra);
      return;
    case KILNI_EXPR_LOAD:
      write_add_number(writer, writer->buffers[record->a]);
      break;
    case KILNI_EXPR_CAST:
    case KILNI_EXPR_BITCAST:
      add_byte(writer, record->type);
      break;
    case KILNI_EXPR_ATOMIC:
      write_add_number(writer, record->extra);
      write_add_number(writer, writer->buffers[record->a]);
      break;
    case KILNI_EXPR_CALL:
      write_call(writer, record);
      return;
    case KILNI_EXPR_UNARY:
    case KILNI_EXPR_BINARY:
    case KILNI_EXPR_SUBGROUP:
      add_byte(writer, record->extra);
      break;
    default:
      break;
  }
  uint32_t operands[KILNI_IR_MAX_CALL];
  uint32_t count = kilni_program_ir_operands(ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) write_expr(writer, operands[i]);
}

// An expression or nothing.
static void write_optional(writer_t* writer, uint32_t expr) {
  if (expr == 0) {
    add_byte(writer, KILNI_CANONICAL_END);
  } else {
    write_expr(writer, expr);
  }
}

// ---- Statements ----

static void write_list(writer_t* writer, uint32_t first);

static void write_statement(writer_t* writer,
                            const kilni_program_statement_record_t* statement) {
  add_byte(writer, statement->op);
  switch (statement->op) {
    case KILNI_STATEMENT_ASSIGN:
      write_add_number(writer, writer->variables[statement->a]);
      break;
    case KILNI_STATEMENT_STORE:
      write_add_number(writer, writer->buffers[statement->a]);
      break;
    case KILNI_STATEMENT_RETURN:
      write_optional(writer, statement->a);
      return;
    case KILNI_STATEMENT_FOR:
      write_add_number(writer, statement->extra);
      break;
    case KILNI_STATEMENT_ASYNC_COPY:
      write_add_number(writer, writer->buffers[statement->a & 0xffff]);
      write_add_number(writer, writer->buffers[statement->a >> 16]);
      write_add_number(writer, statement->extra);
      break;
    case KILNI_STATEMENT_ASYNC_WAIT:
      write_add_number(writer, statement->extra);
      break;
    case KILNI_STATEMENT_MATRIX:
      write_add_number(writer, writer->buffers[statement->a]);
      write_add_number(writer, writer->buffers[statement->b]);
      write_add_number(writer, writer->buffers[statement->c]);
      break;
    default:
      break;
  }
  uint32_t exprs[3];
  uint32_t count = kilni_program_ir_statement_exprs(statement, exprs);
  for (uint32_t i = 0; i < count; i++) write_expr(writer, exprs[i]);
  switch (statement->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
      writer->variables[statement->a] = writer->variable_count++;
      break;
    case KILNI_STATEMENT_FOR:
      write_optional(writer, statement->d);
      writer->variables[statement->a] = writer->variable_count++;
      write_list(writer, statement->body);
      break;
    case KILNI_STATEMENT_WHILE:
      write_list(writer, statement->body);
      break;
    case KILNI_STATEMENT_IF:
      write_list(writer, statement->body);
      write_list(writer, statement->other);
      break;
    default:
      break;
  }
}

static void write_list(writer_t* writer, uint32_t first) {
  const kilni_program_statement_record_t* items = writer->ir->statements.items;
  for (uint32_t at = first; at != 0; at = items[at].next) {
    write_statement(writer, &items[at]);
  }
  add_byte(writer, KILNI_CANONICAL_END);
}

// ---- Declarations ----

// Arrays of a body, numbered behind its parameters.
static void write_arrays(writer_t* writer, uint32_t function, uint32_t number) {
  const kilni_program_ir_t* ir = writer->ir;
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    const kilni_program_buffer_record_t* buffer = &ir->buffers.items[i];
    if (buffer->function != function ||
        buffer->role < KILN_PROGRAM_ROLE_SHARED) {
      continue;
    }
    writer->buffers[i] = number++;
    add_byte(writer, buffer->role);
    add_byte(writer, buffer->type);
    write_expr(writer, buffer->count);
  }
  add_byte(writer, KILNI_CANONICAL_END);
}

static void write_function(writer_t* writer, uint32_t index) {
  const kilni_program_ir_t* ir = writer->ir;
  const kilni_program_function_record_t* function = &ir->functions.items[index];
  add_byte(writer, function->type);
  write_add_number(writer, function->parameter_count);
  uint32_t buffers = 0;
  writer->variable_count = 0;
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    uint32_t parameter = ir->operands.items[function->parameters + i];
    uint32_t record = parameter & ~KILNI_PARAMETER_BUFFER;
    if ((parameter & KILNI_PARAMETER_BUFFER) != 0) {
      writer->buffers[record] = buffers++;
      add_byte(writer, ir->buffers.items[record].role);
      add_byte(writer, ir->buffers.items[record].type);
    } else {
      writer->variables[record] = writer->variable_count++;
      add_byte(writer, KILN_PROGRAM_ROLE_NONE);
      add_byte(writer, ir->variables.items[record].type);
    }
  }
  write_arrays(writer, index, buffers);
  write_list(writer, function->body);
}

static void write_find_calls(writer_t* writer, uint32_t first);

static void find_calls_of(writer_t* writer, uint32_t expr) {
  const kilni_program_ir_t* ir = writer->ir;
  uint32_t operands[KILNI_IR_MAX_CALL];
  uint32_t count = kilni_program_ir_operands(ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) find_calls_of(writer, operands[i]);
  const kilni_program_expr_record_t* record = &ir->exprs.items[expr];
  if (record->op != KILNI_EXPR_CALL || writer->functions[record->a] != 0) {
    return;
  }
  write_find_calls(writer, ir->functions.items[record->a].body);
  writer->called[writer->called_count++] = record->a;
  writer->functions[record->a] = writer->called_count;
}

static void write_find_calls(writer_t* writer, uint32_t first) {
  const kilni_program_statement_record_t* items = writer->ir->statements.items;
  for (uint32_t at = first; at != 0; at = items[at].next) {
    uint32_t exprs[3];
    uint32_t count = kilni_program_ir_statement_exprs(&items[at], exprs);
    for (uint32_t i = 0; i < count; i++) find_calls_of(writer, exprs[i]);
    write_find_calls(writer, items[at].body);
    write_find_calls(writer, items[at].other);
  }
}

static void write_parameters(writer_t* writer, uint32_t* out_buffers) {
  const kilni_program_ir_t* ir = writer->ir;
  write_add_number(writer, ir->order_count);
  uint32_t buffers = 0;
  for (uint32_t i = 0; i < ir->order_count; i++) {
    uint32_t parameter = ir->operands.items[ir->order + i];
    uint32_t record = parameter & ~KILNI_PARAMETER_BUFFER;
    bool is_buffer = (parameter & KILNI_PARAMETER_BUFFER) != 0;
    add_byte(writer, is_buffer ? ir->buffers.items[record].role : 0);
    add_byte(writer, is_buffer ? ir->buffers.items[record].type
                               : ir->scalars.items[record].type);
    write_add_name(writer, is_buffer ? ir->buffers.items[record].name
                                     : ir->scalars.items[record].name);
    if (is_buffer) writer->buffers[record] = buffers++;
  }
  for (uint32_t i = 0; i < ir->order_count; i++) {
    uint32_t parameter = ir->operands.items[ir->order + i];
    if ((parameter & KILNI_PARAMETER_BUFFER) == 0) continue;
    write_optional(
        writer, ir->buffers.items[parameter & ~KILNI_PARAMETER_BUFFER].count);
  }
  *out_buffers = buffers;
}

static void write_program(writer_t* writer) {
  const kilni_program_ir_t* ir = writer->ir;
  kilni_base_str_add_cstr(writer->out, KILNI_CANONICAL_MAGIC);
  add_byte(writer, KILNI_CANONICAL_VERSION);
  add_byte(writer, KILNI_CANONICAL_MEANING);
  write_add_name(writer, ir->name);
  uint32_t buffers;
  write_parameters(writer, &buffers);
  for (int i = 0; i < 3; i++) write_optional(writer, ir->work[i]);
  for (int i = 0; i < 3; i++) write_add_number(writer, ir->block[i]);
  write_find_calls(writer, ir->body);
  write_add_number(writer, writer->called_count);
  for (uint32_t i = 0; i < writer->called_count; i++) {
    write_function(writer, writer->called[i]);
  }
  writer->variable_count = 0;
  write_arrays(writer, 0, buffers);
  write_list(writer, ir->body);
}

kiln_status_t kilni_program_ir_write_canonical(const kilni_program_ir_t* ir,
                                               kilni_base_str_t* out) {
  size_t count = (size_t)ir->variables.count + ir->buffers.count +
                 2 * (size_t)ir->functions.count + 4;
  void* block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(ir->allocator, count, sizeof(uint32_t), &block));
  writer_t writer;
  memset(&writer, 0, sizeof(writer));
  writer.ir = ir;
  writer.out = out;
  writer.variables = block;
  writer.buffers = writer.variables + ir->variables.count + 1;
  writer.functions = writer.buffers + ir->buffers.count + 1;
  writer.called = writer.functions + ir->functions.count + 1;
  write_program(&writer);
  kilni_base_free_array(ir->allocator, block, count, sizeof(uint32_t));
  return kilni_base_str_status(out);
}

// ---- The public calls ----

kiln_status_t kiln_program_canonical(const kiln_program_t* program,
                                     size_t capacity, uint8_t* buffer,
                                     size_t* out_size) {
  if (out_size != NULL) *out_size = 0;
  KILNI_CHECK_ARGUMENT(program != NULL, "program");
  KILNI_CHECK_ARGUMENT(buffer != NULL || capacity == 0, "buffer");
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  kilni_base_str_t bytes;
  kilni_base_str_init(&bytes, ir->allocator, KILNI_CANONICAL_MAX_BYTES);
  kiln_status_t status = kilni_program_ir_write_canonical(ir, &bytes);
  if (kiln_status_is_ok(status)) {
    if (out_size != NULL) *out_size = bytes.size;
    size_t fits = bytes.size < capacity ? bytes.size : capacity;
    if (fits != 0) memcpy(buffer, bytes.data, fits);
  }
  kilni_base_str_deinit(&bytes);
  return status;
}

kiln_status_t kiln_program_hash(const kiln_program_t* program,
                                char out_text[KILN_PROGRAM_HASH_BYTES]) {
  KILNI_CHECK_ARGUMENT(out_text != NULL, "out_text");
  out_text[0] = 0;
  KILNI_CHECK_ARGUMENT(program != NULL, "program");
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  kilni_base_str_t bytes;
  kilni_base_str_init(&bytes, ir->allocator, KILNI_CANONICAL_MAX_BYTES);
  kiln_status_t status = kilni_program_ir_write_canonical(ir, &bytes);
  if (kiln_status_is_ok(status)) {
    kiln_bytes_view_t view = {(const uint8_t*)bytes.data, bytes.size};
    kilni_cache_digest(view, out_text);
  }
  kilni_base_str_deinit(&bytes);
  return status;
}
