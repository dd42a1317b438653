// SPDX-License-Identifier: Apache-2.0
//
// program: the validator: statements and bodies.
#include "program/ir/program_checker.h"
#include "program/ir/program_types.h"

// How a list of statements ends.
typedef enum way_t {
  WAY_ON,     // goes on behind it, perhaps
  WAY_LEFT,   // a loop is left or continued
  WAY_ENDED,  // the function or the thread is
} way_t;

static way_t check_statement_check_list(kilni_program_checker_t* checker,
                                        uint32_t first);

static void check_statement_tell(kilni_program_checker_t* checker,
                                 uint32_t rule, uint32_t statement,
                                 uint32_t want, uint32_t got) {
  if (rule != KILNI_RULE_RETURN && want == KILN_PROGRAM_TYPE_BOOL) {
    kilni_program_checker_fix(checker, "compare: x != 0");
  } else if (rule == KILNI_RULE_ASSIGN_TYPE || rule == KILNI_RULE_STORE_TYPE) {
    kilni_program_checker_fix(checker, "cast it: %s(x)",
                              kilni_program_type_name(want));
  }
  kilni_program_checker_tell(
      checker, rule, KILNI_IR_STATEMENT, statement, "%s wanted, this is %s",
      kilni_program_type_name(want), kilni_program_type_name(got));
}

static const kilni_program_statement_record_t* statement_at(
    const kilni_program_checker_t* checker, uint32_t statement) {
  return &checker->ir->statements.items[statement];
}

// ---- Variables ----

static void check_declaration(kilni_program_checker_t* checker, uint32_t at) {
  const kilni_program_statement_record_t* statement = statement_at(checker, at);
  const kilni_program_variable_record_t* variable =
      &checker->ir->variables.items[statement->a];
  uint32_t type = kilni_program_check_value(checker, statement->b, true);
  kilni_program_check_name(checker, variable->name, KILNI_IR_VARIABLE,
                           statement->a);
  checker->visible[statement->a] = 1;
  if (type == KILN_PROGRAM_TYPE_NONE) {
    if (checker->errors == 0) {
      kilni_program_checker_tell(
          checker, KILNI_RULE_NO_VALUE, KILNI_IR_STATEMENT, at,
          "\"%s\" needs one",
          kilni_program_ir_name(checker->ir, variable->name));
    }
  } else if (type != variable->type) {
    check_statement_tell(checker, KILNI_RULE_ASSIGN_TYPE, at, variable->type,
                         type);
  }
}

static void check_assign(kilni_program_checker_t* checker, uint32_t at) {
  const kilni_program_statement_record_t* statement = statement_at(checker, at);
  const kilni_program_variable_record_t* variable =
      &checker->ir->variables.items[statement->a];
  const char* name = kilni_program_ir_name(checker->ir, variable->name);
  uint32_t type = kilni_program_check_value(checker, statement->b, true);
  if (!checker->visible[statement->a]) {
    kilni_program_checker_tell(checker, KILNI_RULE_NOT_VISIBLE,
                               KILNI_IR_STATEMENT, at, "\"%s\"", name);
  } else if (variable->kind != KILNI_VARIABLE_VAR) {
    static const char* const kKinds[] = {"", "let", "var", "counter",
                                         "parameter"};
    kilni_program_checker_tell(checker, KILNI_RULE_ASSIGN, KILNI_IR_STATEMENT,
                               at, "\"%s\" is a %s", name,
                               kKinds[variable->kind]);
  } else if (type != KILN_PROGRAM_TYPE_NONE && type != variable->type) {
    check_statement_tell(checker, KILNI_RULE_ASSIGN_TYPE, at, variable->type,
                         type);
  }
}

// ---- Buffers ----

static bool is_writable(uint32_t role) {
  return role == KILN_PROGRAM_ROLE_OUT || role == KILN_PROGRAM_ROLE_INOUT ||
         role == KILN_PROGRAM_ROLE_RESIDENT ||
         role == KILN_PROGRAM_ROLE_SHARED || role == KILN_PROGRAM_ROLE_PRIVATE;
}

static bool is_visible(kilni_program_checker_t* checker, uint32_t at,
                       uint32_t buffer) {
  const kilni_program_buffer_record_t* record =
      &checker->ir->buffers.items[buffer];
  if (record->function == checker->function) return true;
  kilni_program_checker_tell(checker, KILNI_RULE_NOT_VISIBLE,
                             KILNI_IR_STATEMENT, at, "\"%s\"",
                             kilni_program_ir_name(checker->ir, record->name));
  return false;
}

// An index or a count.
static void check_integer(kilni_program_checker_t* checker, uint32_t expr) {
  uint32_t type = kilni_program_check_value(checker, expr, false);
  if (type == KILN_PROGRAM_TYPE_NONE || kilni_program_type_is_integer(type)) {
    return;
  }
  kilni_program_checker_tell(checker, KILNI_RULE_INDEX, KILNI_IR_EXPR, expr,
                             "%s", kilni_program_type_name(type));
}

static void check_store(kilni_program_checker_t* checker, uint32_t at) {
  const kilni_program_statement_record_t* statement = statement_at(checker, at);
  const kilni_program_buffer_record_t* buffer =
      &checker->ir->buffers.items[statement->a];
  if (!is_visible(checker, at, statement->a)) return;
  if (kilni_program_check_value(checker, statement->b, false) != 0) {
    kilni_program_check_index(checker, statement->a, statement->b);
  }
  uint32_t type = kilni_program_check_value(checker, statement->c, false);
  if (!is_writable(buffer->role)) {
    kilni_program_checker_tell(checker, KILNI_RULE_STORE_ROLE,
                               KILNI_IR_STATEMENT, at, "\"%s\" is %s",
                               kilni_program_ir_name(checker->ir, buffer->name),
                               kilni_program_role_name(buffer->role));
  }
  if (type != KILN_PROGRAM_TYPE_NONE && type != buffer->type) {
    check_statement_tell(checker, KILNI_RULE_STORE_TYPE, at, buffer->type,
                         type);
  }
}

static void check_statement_check_copy(kilni_program_checker_t* checker,
                                       uint32_t at) {
  const kilni_program_statement_record_t* statement = statement_at(checker, at);
  uint32_t to = statement->a & 0xffff, from = statement->a >> 16;
  if (!is_visible(checker, at, to) || !is_visible(checker, at, from)) return;
  check_integer(checker, statement->b);
  check_integer(checker, statement->c);
  check_integer(checker, statement->d);
  const kilni_program_buffer_record_t* target = &checker->ir->buffers.items[to];
  const kilni_program_buffer_record_t* source =
      &checker->ir->buffers.items[from];
  bool to_shared = target->role == KILN_PROGRAM_ROLE_SHARED;
  bool from_shared = source->role == KILN_PROGRAM_ROLE_SHARED;
  if (to_shared == from_shared || target->type != source->type ||
      target->role == KILN_PROGRAM_ROLE_PRIVATE ||
      source->role == KILN_PROGRAM_ROLE_PRIVATE) {
    kilni_program_checker_tell(checker, KILNI_RULE_COPY, KILNI_IR_STATEMENT, at,
                               "from %s %s to %s %s",
                               kilni_program_role_name(source->role),
                               kilni_program_type_name(source->type),
                               kilni_program_role_name(target->role),
                               kilni_program_type_name(target->type));
  }
  if (!is_writable(target->role)) {
    kilni_program_checker_tell(checker, KILNI_RULE_STORE_ROLE,
                               KILNI_IR_STATEMENT, at, "\"%s\" is %s",
                               kilni_program_ir_name(checker->ir, target->name),
                               kilni_program_role_name(target->role));
  }
}

// A private array of that type and count.
static bool is_fragment(const kilni_program_checker_t* checker, uint32_t buffer,
                        uint32_t type, uint32_t elements) {
  const kilni_program_ir_t* ir = checker->ir;
  const kilni_program_buffer_record_t* record = &ir->buffers.items[buffer];
  const kilni_program_expr_record_t* count = &ir->exprs.items[record->count];
  return record->role == KILN_PROGRAM_ROLE_PRIVATE && record->type == type &&
         count->op == KILNI_EXPR_LITERAL &&
         kilni_program_ir_literal_bits(count) == elements;
}

static void check_matrix(kilni_program_checker_t* checker, uint32_t at) {
  kilni_program_statement_record_t s = *statement_at(checker, at);
  if (!is_visible(checker, at, s.a) || !is_visible(checker, at, s.b) ||
      !is_visible(checker, at, s.c)) {
    return;
  }
  uint32_t type = checker->ir->buffers.items[s.b].type;
  bool small = type == KILN_PROGRAM_TYPE_F16 || type == KILN_PROGRAM_TYPE_BF16;
  const char* which = NULL;
  if (!is_fragment(checker, s.a, KILN_PROGRAM_TYPE_F32, KILNI_MATRIX_D)) {
    which = "the first one";
  } else if (!small || !is_fragment(checker, s.b, type, KILNI_MATRIX_A)) {
    which = "the second one";
  } else if (!is_fragment(checker, s.c, type, KILNI_MATRIX_B)) {
    which = "the third one";
  }
  if (which == NULL) return;
  kilni_program_checker_tell(checker, KILNI_RULE_MATRIX, KILNI_IR_STATEMENT, at,
                             "%s", which);
}

// ---- Control flow ----

static void check_condition(kilni_program_checker_t* checker, uint32_t expr) {
  uint32_t type = kilni_program_check_value(checker, expr, false);
  if (type == KILN_PROGRAM_TYPE_NONE || type == KILN_PROGRAM_TYPE_BOOL) return;
  kilni_program_checker_tell(checker, KILNI_RULE_CONDITION, KILNI_IR_EXPR, expr,
                             "a %s", kilni_program_type_name(type));
}

static way_t check_if(kilni_program_checker_t* checker, uint32_t at) {
  check_condition(checker, statement_at(checker, at)->a);
  way_t then =
      check_statement_check_list(checker, statement_at(checker, at)->body);
  way_t other =
      check_statement_check_list(checker, statement_at(checker, at)->other);
  if (then == WAY_ON || other == WAY_ON) return WAY_ON;
  return then == WAY_ENDED && other == WAY_ENDED ? WAY_ENDED : WAY_LEFT;
}

static void check_for(kilni_program_checker_t* checker, uint32_t at) {
  kilni_program_statement_record_t loop = *statement_at(checker, at);
  const kilni_program_ir_t* ir = checker->ir;
  uint32_t from = kilni_program_check_value(checker, loop.b, false);
  uint32_t to = kilni_program_check_value(checker, loop.c, false);
  uint32_t counter = ir->variables.items[loop.a].type;
  if (from != 0 && to != 0 &&
      (from != to || from != counter || !kilni_program_type_is_integer(from))) {
    kilni_program_checker_tell(checker, KILNI_RULE_RANGE, KILNI_IR_STATEMENT,
                               at, "%s to %s", kilni_program_type_name(from),
                               kilni_program_type_name(to));
  }
  const kilni_program_expr_record_t* step = &ir->exprs.items[loop.d];
  if (loop.d != 0 && (step->op != KILNI_EXPR_LITERAL ||
                      kilni_program_ir_literal_bits(step) == 0 ||
                      step->type != kilni_program_type_unsigned(counter))) {
    kilni_program_checker_tell(checker, KILNI_RULE_STEP, KILNI_IR_STATEMENT, at,
                               "of type %s",
                               kilni_program_type_name(step->type));
  }
  uint32_t seen = checker->seen_count;
  kilni_program_check_name(checker, ir->variables.items[loop.a].name,
                           KILNI_IR_VARIABLE, loop.a);
  checker->visible[loop.a] = 1;
  checker->loops++;
  check_statement_check_list(checker, loop.body);
  checker->loops--;
  checker->visible[loop.a] = 0;
  kilni_program_check_names_cut(checker, seen);
}

static way_t check_while(kilni_program_checker_t* checker, uint32_t at) {
  check_condition(checker, statement_at(checker, at)->a);
  checker->loops++;
  check_statement_check_list(checker, statement_at(checker, at)->body);
  checker->loops--;
  return WAY_ON;
}

static void check_return(kilni_program_checker_t* checker, uint32_t at) {
  uint32_t value = statement_at(checker, at)->a;
  uint32_t want = checker->function == 0
                      ? KILN_PROGRAM_TYPE_NONE
                      : checker->ir->functions.items[checker->function].type;
  uint32_t errors = checker->errors;
  uint32_t type = value == 0 ? KILN_PROGRAM_TYPE_NONE
                             : kilni_program_check_value(checker, value, false);
  if (errors == checker->errors && type != want) {
    check_statement_tell(checker, KILNI_RULE_RETURN, at, want, type);
  }
}

static way_t check_leave(kilni_program_checker_t* checker, uint32_t at) {
  if (checker->loops == 0) {
    bool is_break = statement_at(checker, at)->op == KILNI_STATEMENT_BREAK;
    kilni_program_checker_tell(checker, KILNI_RULE_LOOP, KILNI_IR_STATEMENT, at,
                               "%s", is_break ? "break" : "continue");
  }
  return WAY_LEFT;
}

// ---- Others ----

static void check_evaluate(kilni_program_checker_t* checker, uint32_t at) {
  uint32_t expr = statement_at(checker, at)->a;
  uint32_t errors = checker->errors;
  kilni_program_check_value(checker, expr, true);
  if (errors == checker->errors &&
      !kilni_program_expr_has_effect(checker->ir, expr)) {
    kilni_program_checker_tell(checker, KILNI_RULE_NO_EFFECT,
                               KILNI_IR_STATEMENT, at, "nobody uses the value");
  }
}

static void check_trap(kilni_program_checker_t* checker, uint32_t at) {
  const kilni_program_statement_record_t* statement = statement_at(checker, at);
  uint32_t tag = kilni_program_check_value(checker, statement->a, false);
  uint32_t address = kilni_program_check_value(checker, statement->b, false);
  if (tag != 0 && tag != KILN_PROGRAM_TYPE_U32) {
    check_statement_tell(checker, KILNI_RULE_TRAP, at, KILN_PROGRAM_TYPE_U32,
                         tag);
  }
  if (address != 0 && address != KILN_PROGRAM_TYPE_U64) {
    check_statement_tell(checker, KILNI_RULE_TRAP, at, KILN_PROGRAM_TYPE_U64,
                         address);
  }
}

static way_t check_statement(kilni_program_checker_t* checker, uint32_t at) {
  switch (statement_at(checker, at)->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
      check_declaration(checker, at);
      break;
    case KILNI_STATEMENT_ASSIGN:
      check_assign(checker, at);
      break;
    case KILNI_STATEMENT_STORE:
      check_store(checker, at);
      break;
    case KILNI_STATEMENT_EVALUATE:
      check_evaluate(checker, at);
      break;
    case KILNI_STATEMENT_IF:
      return check_if(checker, at);
    case KILNI_STATEMENT_FOR:
      check_for(checker, at);
      break;
    case KILNI_STATEMENT_WHILE:
      return check_while(checker, at);
    case KILNI_STATEMENT_BREAK:
    case KILNI_STATEMENT_CONTINUE:
      return check_leave(checker, at);
    case KILNI_STATEMENT_RETURN:
      check_return(checker, at);
      return WAY_ENDED;
    case KILNI_STATEMENT_ASYNC_COPY:
      check_statement_check_copy(checker, at);
      break;
    case KILNI_STATEMENT_MATRIX:
      check_matrix(checker, at);
      break;
    case KILNI_STATEMENT_TRAP:
      check_trap(checker, at);
      return WAY_ENDED;
    default:
      break;
  }
  return WAY_ON;
}

static way_t check_statement_check_list(kilni_program_checker_t* checker,
                                        uint32_t first) {
  const kilni_program_ir_t* ir = checker->ir;
  uint32_t seen = checker->seen_count;
  way_t way = WAY_ON;
  bool told = false;
  for (uint32_t at = first; at != 0; at = ir->statements.items[at].next) {
    if (way != WAY_ON && !told) {
      kilni_program_checker_tell(checker, KILNI_RULE_UNREACHABLE,
                                 KILNI_IR_STATEMENT, at,
                                 "what is in front of it always leaves");
      told = true;
    }
    way_t mine = check_statement(checker, at);
    if (way == WAY_ON) way = mine;
  }
  for (uint32_t at = first; at != 0; at = ir->statements.items[at].next) {
    const kilni_program_statement_record_t* statement =
        &ir->statements.items[at];
    if (statement->op == KILNI_STATEMENT_LET ||
        statement->op == KILNI_STATEMENT_VAR) {
      checker->visible[statement->a] = 0;
    }
  }
  kilni_program_check_names_cut(checker, seen);
  return way;
}

// ---- Bodies ----

static void check_arrays(kilni_program_checker_t* checker) {
  const kilni_program_ir_t* ir = checker->ir;
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    const kilni_program_buffer_record_t* buffer = &ir->buffers.items[i];
    if (buffer->function != checker->function ||
        buffer->role < KILN_PROGRAM_ROLE_SHARED) {
      continue;
    }
    kilni_program_check_name(checker, buffer->name, KILNI_IR_BUFFER, i);
  }
}

static void check_function(kilni_program_checker_t* checker, uint32_t index) {
  const kilni_program_ir_t* ir = checker->ir;
  const kilni_program_function_record_t* function = &ir->functions.items[index];
  checker->function = (uint16_t)index;
  kilni_program_check_name(checker, function->name, KILNI_IR_FUNCTION, index);
  uint32_t seen = checker->seen_count;
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    uint32_t parameter = ir->operands.items[function->parameters + i];
    uint32_t record = parameter & ~KILNI_PARAMETER_BUFFER;
    if ((parameter & KILNI_PARAMETER_BUFFER) != 0) {
      kilni_program_check_name(checker, ir->buffers.items[record].name,
                               KILNI_IR_BUFFER, record);
    } else {
      kilni_program_check_name(checker, ir->variables.items[record].name,
                               KILNI_IR_VARIABLE, record);
      checker->visible[record] = 1;
    }
  }
  check_arrays(checker);
  way_t way = check_statement_check_list(checker, function->body);
  if (function->type != KILN_PROGRAM_TYPE_NONE && way != WAY_ENDED) {
    kilni_program_checker_tell(checker, KILNI_RULE_NO_RETURN, KILNI_IR_FUNCTION,
                               index, "\"%s\"",
                               kilni_program_ir_name(ir, function->name));
  }
  kilni_program_check_names_cut(checker, seen);
}

void kilni_program_check_bodies(kilni_program_checker_t* checker) {
  const kilni_program_ir_t* ir = checker->ir;
  for (uint32_t i = 1; i < ir->functions.count; i++) {
    check_function(checker, i);
  }
  checker->function = 0;
  for (uint32_t i = 0; i < ir->order_count; i++) {
    uint32_t parameter = ir->operands.items[ir->order + i];
    uint32_t record = parameter & ~KILNI_PARAMETER_BUFFER;
    bool is_buffer = (parameter & KILNI_PARAMETER_BUFFER) != 0;
    kilni_program_check_name(checker,
                             is_buffer ? ir->buffers.items[record].name
                                       : ir->scalars.items[record].name,
                             is_buffer ? KILNI_IR_BUFFER : KILNI_IR_SCALAR,
                             record);
  }
  check_arrays(checker);
  check_statement_check_list(checker, ir->body);
}
