// SPDX-License-Identifier: Apache-2.0
//
// program: programs as text.
//
// Every literal is written with its type and every operand with just the
// parentheses that it needs, so that the text reads as the same records and
// prints as the same bytes.
#include <string.h>

#include "base/status_make.h"
#include "base/str.h"
#include "program/ir/program_object.h"
#include "program/ir/program_types.h"
#include "program/text/program_number.h"

enum { MAX_TEXT = 64 << 20, MAX_UNDERSCORES = 40 };

typedef struct printer_t {
  const kilni_program_ir_t* ir;
  uint32_t underscores;  // in front of the names of what has none
  kilni_base_str_t* text;
  uint32_t indent;
} printer_t;

// How tightly an expression binds.
enum {
  LEVEL_OR = 1,
  LEVEL_AND,
  LEVEL_COMPARE,
  LEVEL_SUM,
  LEVEL_PRODUCT,
  LEVEL_PREFIX,
  LEVEL_PRIMARY,
};

static void printer_add(const printer_t* printer, const char* text) {
  kilni_base_str_add_cstr(printer->text, text);
}

// What has no name is called _, a letter and its index. How many _ it begins
// with, so that it is not called like something that has a name.
static uint32_t free_underscores(const kilni_program_ir_t* ir) {
  uint64_t taken = 0;
  uint32_t count = 1;
  for (uint32_t at = 1; at < ir->names.count;) {
    const char* name = ir->names.items + at;
    size_t first = strspn(name, "_");
    if (first < 64 && name[first] != 0 && strchr("vbsf", name[first]) != NULL) {
      taken |= UINT64_C(1) << first;
    }
    at += (uint32_t)strlen(name) + 1;
  }
  while (count < MAX_UNDERSCORES && (taken >> count & 1) != 0) count++;
  return count;
}

// A record's name, or its kind's letter and its index.
static void printer_add_name(const printer_t* printer, uint32_t name, char kind,
                             uint32_t index) {
  if (name != 0) {
    printer_add(printer, kilni_program_ir_name(printer->ir, name));
  } else {
    for (uint32_t i = 0; i < printer->underscores; i++) {
      printer_add(printer, "_");
    }
    kilni_base_str_addf(printer->text, "%c%u", kind, index);
  }
}

static void printer_add_variable(const printer_t* printer, uint32_t index) {
  printer_add_name(printer, printer->ir->variables.items[index].name, 'v',
                   index);
}

static void printer_add_buffer(const printer_t* printer, uint32_t index) {
  printer_add_name(printer, printer->ir->buffers.items[index].name, 'b', index);
}

static void add_scalar(const printer_t* printer, uint32_t index) {
  printer_add_name(printer, printer->ir->scalars.items[index].name, 's', index);
}

static void add_function(const printer_t* printer, uint32_t index) {
  printer_add_name(printer, printer->ir->functions.items[index].name, 'f',
                   index);
}

// ---- Expressions ----

static bool printer_is_letter(char c) {
  return c >= 'a' && c <= 'z';
}

static uint32_t level_of_binary(uint32_t op) {
  switch (op) {
    case KILN_PROGRAM_BINARY_MUL:
    case KILN_PROGRAM_BINARY_DIV:
    case KILN_PROGRAM_BINARY_REM:
    case KILN_PROGRAM_BINARY_SHL:
    case KILN_PROGRAM_BINARY_SHR:
    case KILN_PROGRAM_BINARY_BIT_AND:
      return LEVEL_PRODUCT;
    case KILN_PROGRAM_BINARY_ADD:
    case KILN_PROGRAM_BINARY_SUB:
    case KILN_PROGRAM_BINARY_BIT_OR:
    case KILN_PROGRAM_BINARY_BIT_XOR:
      return LEVEL_SUM;
    case KILN_PROGRAM_BINARY_AND:
      return LEVEL_AND;
    case KILN_PROGRAM_BINARY_OR:
      return LEVEL_OR;
    case KILN_PROGRAM_BINARY_EQ:
    case KILN_PROGRAM_BINARY_NE:
    case KILN_PROGRAM_BINARY_LT:
    case KILN_PROGRAM_BINARY_GT:
    case KILN_PROGRAM_BINARY_LE:
    case KILN_PROGRAM_BINARY_GE:
      return LEVEL_COMPARE;
    default:
      return LEVEL_PRIMARY;
  }
}

static uint32_t printer_level_of(const kilni_program_expr_record_t* expr) {
  if (expr->op == KILNI_EXPR_BINARY) return level_of_binary(expr->extra);
  if (expr->op == KILNI_EXPR_UNARY &&
      !printer_is_letter(
          kilni_program_unary_operators[expr->extra].spelling[0])) {
    return LEVEL_PREFIX;
  }
  return LEVEL_PRIMARY;
}

static void print_expr(const printer_t* printer, uint32_t index,
                       uint32_t level);

// "(a, b, c)"
static void print_operands(const printer_t* printer, uint32_t a, uint32_t b,
                           uint32_t c) {
  printer_add(printer, "(");
  print_expr(printer, a, LEVEL_OR);
  if (b != 0) printer_add(printer, ", ");
  if (b != 0) print_expr(printer, b, LEVEL_OR);
  if (c != 0) printer_add(printer, ", ");
  if (c != 0) print_expr(printer, c, LEVEL_OR);
  printer_add(printer, ")");
}

static void print_literal(const printer_t* printer,
                          const kilni_program_expr_record_t* expr) {
  char number[KILNI_NUMBER_TEXT];
  kilni_program_number_write(expr->type, kilni_program_ir_literal_bits(expr),
                             number);
  printer_add(printer, number);
}

static void print_unary(const printer_t* printer,
                        const kilni_program_expr_record_t* expr) {
  printer_add(printer, kilni_program_unary_operators[expr->extra].spelling);
  const kilni_program_expr_record_t* operand =
      &printer->ir->exprs.items[expr->a];
  if (printer_level_of(expr) == LEVEL_PRIMARY) {
    print_operands(printer, expr->a, 0, 0);
  } else if (operand->op == KILNI_EXPR_LITERAL) {
    // A minus in front of a number would be taken for a part of it.
    print_operands(printer, expr->a, 0, 0);
  } else {
    print_expr(printer, expr->a, LEVEL_PREFIX);
  }
}

static void print_binary(const printer_t* printer,
                         const kilni_program_expr_record_t* expr) {
  uint32_t level = printer_level_of(expr);
  const char* spelling = kilni_program_binary_operators[expr->extra].spelling;
  if (level == LEVEL_PRIMARY) {
    printer_add(printer, spelling);
    print_operands(printer, expr->a, expr->b, 0);
    return;
  }
  print_expr(printer, expr->a, level);
  kilni_base_str_addf(printer->text, " %s ", spelling);
  print_expr(printer, expr->b, level + 1);
}

static void print_id(const printer_t* printer,
                     const kilni_program_expr_record_t* expr) {
  const kilni_program_id_t* id = &kilni_program_ids[expr->extra & 0xff];
  printer_add(printer, id->spelling);
  if (id->axes) {
    kilni_base_str_addf(printer->text, ".%c", "xyz"[expr->extra >> 8]);
  }
}

static void print_atomic(const printer_t* printer,
                         const kilni_program_expr_record_t* expr) {
  const uint32_t* operands = printer->ir->operands.items + expr->b;
  uint32_t ordering = KILNI_ATOMIC_ORDERING(expr->extra);
  uint32_t scope = KILNI_ATOMIC_SCOPE(expr->extra);
  printer_add(printer,
              kilni_program_atomics[KILNI_ATOMIC_OP(expr->extra)].spelling);
  printer_add(printer, "(");
  printer_add_buffer(printer, expr->a);
  printer_add(printer, "[");
  print_expr(printer, operands[0], LEVEL_OR);
  printer_add(printer, "]");
  for (uint32_t i = 1; i < expr->c; i++) {
    printer_add(printer, ", ");
    print_expr(printer, operands[i], LEVEL_OR);
  }
  uint32_t role = printer->ir->buffers.items[expr->a].role;
  bool own =
      role == KILN_PROGRAM_ROLE_SHARED || role == KILN_PROGRAM_ROLE_PRIVATE;
  uint32_t usual = own ? KILN_PROGRAM_SCOPE_BLOCK : KILN_PROGRAM_SCOPE_DEVICE;
  if (ordering != KILN_PROGRAM_ORDERING_RELAXED) {
    kilni_base_str_addf(printer->text, ", %s",
                        kilni_program_orderings[ordering]);
  }
  if (scope != usual) {
    kilni_base_str_addf(printer->text, ", %s", kilni_program_scopes[scope]);
  }
  printer_add(printer, ")");
}

static void print_call(const printer_t* printer,
                       const kilni_program_expr_record_t* expr) {
  const kilni_program_ir_t* ir = printer->ir;
  const kilni_program_function_record_t* called = &ir->functions.items[expr->a];
  add_function(printer, expr->a);
  printer_add(printer, "(");
  for (uint32_t i = 0; i < expr->c; i++) {
    uint32_t operand = ir->operands.items[expr->b + i];
    uint32_t parameter = ir->operands.items[called->parameters + i];
    if (i > 0) printer_add(printer, ", ");
    if ((parameter & KILNI_PARAMETER_BUFFER) != 0) {
      printer_add_buffer(printer, operand);
    } else {
      print_expr(printer, operand, LEVEL_OR);
    }
  }
  printer_add(printer, ")");
}

static void print_place(const printer_t* printer, uint32_t buffer,
                        uint32_t index) {
  printer_add_buffer(printer, buffer);
  printer_add(printer, "[");
  print_expr(printer, index, LEVEL_OR);
  printer_add(printer, "]");
}

static void print_record(const printer_t* printer,
                         const kilni_program_expr_record_t* expr) {
  switch (expr->op) {
    case KILNI_EXPR_LITERAL:
      print_literal(printer, expr);
      break;
    case KILNI_EXPR_VARIABLE:
      printer_add_variable(printer, expr->a);
      break;
    case KILNI_EXPR_SCALAR:
      add_scalar(printer, expr->a);
      break;
    case KILNI_EXPR_LENGTH:
      printer_add(printer, expr->type == KILN_PROGRAM_TYPE_U64 ? "length64("
                                                               : "length(");
      printer_add_buffer(printer, expr->a);
      printer_add(printer, ")");
      break;
    case KILNI_EXPR_ID:
      print_id(printer, expr);
      break;
    case KILNI_EXPR_LOAD:
      print_place(printer, expr->a, expr->b);
      break;
    case KILNI_EXPR_UNARY:
      print_unary(printer, expr);
      break;
    case KILNI_EXPR_BINARY:
      print_binary(printer, expr);
      break;
    case KILNI_EXPR_SELECT:
      printer_add(printer, "select");
      print_operands(printer, expr->a, expr->b, expr->c);
      break;
    case KILNI_EXPR_FMA:
      printer_add(printer, "fma");
      print_operands(printer, expr->a, expr->b, expr->c);
      break;
    case KILNI_EXPR_BITCAST:
      printer_add(printer, "bitcast_");  // fall through
    case KILNI_EXPR_CAST:
      printer_add(printer, kilni_program_type_name(expr->type));
      print_operands(printer, expr->a, 0, 0);
      break;
    case KILNI_EXPR_SUBGROUP:
      printer_add(printer, kilni_program_subgroups[expr->extra].spelling);
      print_operands(printer, expr->a, expr->b, 0);
      break;
    case KILNI_EXPR_ATOMIC:
      print_atomic(printer, expr);
      break;
    default:
      print_call(printer, expr);
      break;
  }
}

static void print_expr(const printer_t* printer, uint32_t index,
                       uint32_t level) {
  const kilni_program_expr_record_t* expr = &printer->ir->exprs.items[index];
  bool wrapped = printer_level_of(expr) < level;
  if (wrapped) printer_add(printer, "(");
  print_record(printer, expr);
  if (wrapped) printer_add(printer, ")");
}

// ---- Statements ----

static void printer_begin_line(const printer_t* printer) {
  for (uint32_t i = 0; i < printer->indent; i++) printer_add(printer, "  ");
}

static void print_list(printer_t* printer, uint32_t first);

static void print_body(printer_t* printer, uint32_t first) {
  printer_add(printer, "{\n");
  printer->indent++;
  print_list(printer, first);
  printer->indent--;
  printer_begin_line(printer);
  printer_add(printer, "}");
}

static void print_value(const printer_t* printer, const char* before,
                        uint32_t value) {
  printer_add(printer, before);
  print_expr(printer, value, LEVEL_OR);
}

static void print_if(printer_t* printer,
                     const kilni_program_statement_record_t* statement) {
  const kilni_program_statement_record_t* items = printer->ir->statements.items;
  for (;;) {
    print_value(printer, "if ", statement->a);
    printer_add(printer, " ");
    print_body(printer, statement->body);
    if (statement->other == 0) break;
    printer_add(printer, " else ");
    const kilni_program_statement_record_t* other = &items[statement->other];
    // An if alone in an else is an "else if".
    if (other->op != KILNI_STATEMENT_IF || other->next != 0) {
      print_body(printer, statement->other);
      break;
    }
    statement = other;
  }
  printer_add(printer, "\n");
}

static void print_for(printer_t* printer,
                      const kilni_program_statement_record_t* statement) {
  printer_add(printer, "for ");
  printer_add_variable(printer, statement->a);
  print_value(printer, " in ", statement->b);
  print_value(printer, "..", statement->c);
  if (statement->d != 0) print_value(printer, " step ", statement->d);
  if (statement->extra & KILNI_FOR_UNROLL) printer_add(printer, " unroll");
  printer_add(printer, " ");
  print_body(printer, statement->body);
  printer_add(printer, "\n");
}

static void printer_print_copy(
    const printer_t* printer,
    const kilni_program_statement_record_t* statement) {
  printer_add(printer, "async_copy(");
  printer_add_buffer(printer, statement->a & 0xffff);
  print_value(printer, ", ", statement->b);
  printer_add(printer, ", ");
  printer_add_buffer(printer, statement->a >> 16);
  print_value(printer, ", ", statement->c);
  print_value(printer, ", ", statement->d);
  kilni_base_str_addf(printer->text, ") tag %u", statement->extra);
}

static void print_matrix(const printer_t* printer,
                         const kilni_program_statement_record_t* statement) {
  printer_add(printer, "matrix_multiply_accumulate(");
  printer_add_buffer(printer, statement->a);
  printer_add(printer, ", ");
  printer_add_buffer(printer, statement->b);
  printer_add(printer, ", ");
  printer_add_buffer(printer, statement->c);
  printer_add(printer, ")");
}

// A statement of one line, without its ";".
static void printer_print_line(
    const printer_t* printer,
    const kilni_program_statement_record_t* statement) {
  switch (statement->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
      printer_add(printer,
                  statement->op == KILNI_STATEMENT_LET ? "let " : "var ");
      printer_add_variable(printer, statement->a);
      print_value(printer, " = ", statement->b);
      break;
    case KILNI_STATEMENT_ASSIGN:
      printer_add_variable(printer, statement->a);
      print_value(printer, " = ", statement->b);
      break;
    case KILNI_STATEMENT_STORE:
      print_place(printer, statement->a, statement->b);
      print_value(printer, " = ", statement->c);
      break;
    case KILNI_STATEMENT_EVALUATE:
      print_value(printer, "", statement->a);
      break;
    case KILNI_STATEMENT_BREAK:
      printer_add(printer, "break");
      break;
    case KILNI_STATEMENT_CONTINUE:
      printer_add(printer, "continue");
      break;
    case KILNI_STATEMENT_RETURN:
      printer_add(printer, "return");
      if (statement->a != 0) print_value(printer, " ", statement->a);
      break;
    case KILNI_STATEMENT_BARRIER:
      printer_add(printer, "barrier");
      break;
    case KILNI_STATEMENT_GRID_BARRIER:
      printer_add(printer, "grid_barrier");
      break;
    case KILNI_STATEMENT_SUBGROUP_BARRIER:
      printer_add(printer, "subgroup_barrier");
      break;
    case KILNI_STATEMENT_MATRIX:
      print_matrix(printer, statement);
      break;
    case KILNI_STATEMENT_ASYNC_COPY:
      printer_print_copy(printer, statement);
      break;
    case KILNI_STATEMENT_ASYNC_WAIT:
      kilni_base_str_addf(printer->text, "async_wait %u", statement->extra);
      break;
    default:
      printer_add(printer, "trap");
      print_operands(printer, statement->a, statement->b, 0);
      break;
  }
}

static void print_list(printer_t* printer, uint32_t first) {
  const kilni_program_statement_record_t* items = printer->ir->statements.items;
  for (uint32_t at = first; at != 0; at = items[at].next) {
    printer_begin_line(printer);
    switch (items[at].op) {
      case KILNI_STATEMENT_IF:
        print_if(printer, &items[at]);
        break;
      case KILNI_STATEMENT_FOR:
        print_for(printer, &items[at]);
        break;
      case KILNI_STATEMENT_WHILE:
        print_value(printer, "while ", items[at].a);
        printer_add(printer, " ");
        print_body(printer, items[at].body);
        printer_add(printer, "\n");
        break;
      default:
        printer_print_line(printer, &items[at]);
        printer_add(printer, ";\n");
        break;
    }
  }
}

// ---- Declarations ----

static void print_arrays(const printer_t* printer, uint32_t function) {
  const kilni_program_ir_t* ir = printer->ir;
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    const kilni_program_buffer_record_t* buffer = &ir->buffers.items[i];
    if (buffer->function != function ||
        buffer->role < KILN_PROGRAM_ROLE_SHARED) {
      continue;
    }
    kilni_base_str_addf(printer->text, "  %s ",
                        kilni_program_role_name(buffer->role));
    printer_add_buffer(printer, i);
    kilni_base_str_addf(printer->text, ": %s[",
                        kilni_program_type_name(buffer->type));
    print_expr(printer, buffer->count, LEVEL_OR);
    printer_add(printer, "];\n");
  }
}

static void print_parameter(const printer_t* printer, uint32_t parameter,
                            bool of_function) {
  const kilni_program_ir_t* ir = printer->ir;
  uint32_t index = parameter & ~KILNI_PARAMETER_BUFFER;
  if ((parameter & KILNI_PARAMETER_BUFFER) != 0) {
    const kilni_program_buffer_record_t* buffer = &ir->buffers.items[index];
    printer_add_buffer(printer, index);
    kilni_base_str_addf(printer->text, ": %s %s[",
                        kilni_program_role_name(buffer->role),
                        kilni_program_type_name(buffer->type));
    if (buffer->count != 0) print_expr(printer, buffer->count, LEVEL_OR);
    printer_add(printer, "]");
    return;
  }
  if (of_function) {
    printer_add_variable(printer, index);
  } else {
    add_scalar(printer, index);
  }
  uint32_t type = of_function ? ir->variables.items[index].type
                              : ir->scalars.items[index].type;
  kilni_base_str_addf(printer->text, ": %s", kilni_program_type_name(type));
}

static void print_parameters(const printer_t* printer, uint32_t first,
                             uint32_t count, bool of_function) {
  printer_add(printer, "(");
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) printer_add(printer, ", ");
    print_parameter(printer, printer->ir->operands.items[first + i],
                    of_function);
  }
  printer_add(printer, ")");
}

static void print_functions(printer_t* printer) {
  const kilni_program_ir_t* ir = printer->ir;
  for (uint32_t i = 1; i < ir->functions.count; i++) {
    const kilni_program_function_record_t* function = &ir->functions.items[i];
    printer_add(printer, "fn ");
    add_function(printer, i);
    print_parameters(printer, function->parameters, function->parameter_count,
                     true);
    if (function->type != KILN_PROGRAM_TYPE_NONE) {
      kilni_base_str_addf(printer->text, " -> %s",
                          kilni_program_type_name(function->type));
    }
    printer_add(printer, " {\n");
    print_arrays(printer, i);
    printer->indent = 1;
    print_list(printer, function->body);
    printer->indent = 0;
    printer_add(printer, "}\n\n");
  }
}

static void printer_print_work(const printer_t* printer) {
  const uint32_t* work = printer->ir->work;
  if (work[0] == 0) return;
  printer_add(printer, "\n  work ");
  if (work[1] == 0) {
    print_expr(printer, work[0], LEVEL_OR);
  } else {
    print_operands(printer, work[0], work[1], work[2]);
  }
}

static void printer_print_block(const printer_t* printer) {
  const uint32_t* block = printer->ir->block;
  if (block[0] == 0) return;
  if (block[2] > 1) {
    kilni_base_str_addf(printer->text, "\n  block (%u, %u, %u)", block[0],
                        block[1], block[2]);
  } else if (block[1] > 1) {
    kilni_base_str_addf(printer->text, "\n  block (%u, %u)", block[0],
                        block[1]);
  } else {
    kilni_base_str_addf(printer->text, "\n  block %u", block[0]);
  }
}

// Adds the text of a valid program.
static void printer_print_program(const kilni_program_ir_t* ir,
                                  kilni_base_str_t* text) {
  printer_t printer = {ir, free_underscores(ir), text, 0};
  print_functions(&printer);
  printer_add(&printer, "program ");
  printer_add(&printer, kilni_program_ir_name(ir, ir->name));
  print_parameters(&printer, ir->order, ir->order_count, false);
  printer_print_work(&printer);
  printer_print_block(&printer);
  printer_add(&printer, "\n{\n");
  print_arrays(&printer, 0);
  printer.indent = 1;
  print_list(&printer, ir->body);
  printer_add(&printer, "}\n");
}

kiln_status_t kiln_program_print(const kiln_program_t* program, size_t capacity,
                                 char* buffer, size_t* out_length) {
  if (out_length != NULL) *out_length = 0;
  KILNI_CHECK_ARGUMENT(program != NULL, "program");
  KILNI_CHECK_ARGUMENT(buffer != NULL || capacity == 0, "buffer");
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  kilni_base_str_t text;
  kilni_base_str_init(&text, ir->allocator, MAX_TEXT);
  printer_print_program(ir, &text);
  kiln_status_t status = kilni_base_str_status(&text);
  if (kiln_status_is_ok(status)) {
    kilni_program_hand_out(kilni_base_str_cstr(&text), text.size, capacity,
                           buffer, out_length);
  }
  kilni_base_str_deinit(&text);
  return status;
}
