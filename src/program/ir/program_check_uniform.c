// SPDX-License-Identifier: Apache-2.0
//
// program: the validator: which threads come where together.
//
// Every value and every place in the control flow has a level: the same for
// all threads of the grid, of the block, of the subgroup, or of one thread
// only. Levels only rise, so the bodies are walked until nothing changes; then
// they are walked once more, and what needs company where there is none is
// told. Threads that have returned from the program are waited for by nobody,
// so a return there makes nothing behind it divergent; one from a function
// does, for what is left of the function.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "program/ir/program_checker.h"

enum { LEVEL_GRID, LEVEL_BLOCK, LEVEL_SUBGROUP, LEVEL_THREAD };

// After so many walks everything that still changes is a thread's own.
enum { MAX_WALKS = 48 };

typedef struct levels_t {
  kilni_checker_t* checker;
  const kilni_ir_t* ir;
  uint8_t* variables;  // by variable
  uint8_t* mutables;   // by buffer: a parameter that somebody writes
  uint8_t* entries;    // by function: where it is called
  uint8_t* results;    // by function
  uint8_t* exits;      // by function: where it returns early
  uint8_t* loops;      // by statement: where its loop is left
  uint32_t function;   // that is walked
  uint32_t loop;       // around the statement; 0: none
  bool changed;
  bool tell;
} levels_t;

static uint8_t join(uint8_t a, uint8_t b) {
  return a > b ? a : b;
}

static void raise(levels_t* levels, uint8_t* level, uint8_t to) {
  if (*level >= to) return;
  *level = to;
  levels->changed = true;
}

// ---- Values ----

static uint8_t level_of_id(uint32_t id) {
  switch (id) {
    case KILN_PROGRAM_ID_BLOCK_SIZE:
    case KILN_PROGRAM_ID_BLOCK_COUNT:
    case KILN_PROGRAM_ID_WORK_SIZE:
      return LEVEL_GRID;
    case KILN_PROGRAM_ID_BLOCK_ID:
      return LEVEL_BLOCK;
    case KILN_PROGRAM_ID_SUBGROUP:
      return LEVEL_SUBGROUP;
    default:
      return LEVEL_THREAD;
  }
}

// True where every load at one index gives one value.
static bool is_constant_memory(const levels_t* levels, uint32_t buffer) {
  const kilni_buffer_record_t* record = &levels->ir->buffers.items[buffer];
  return (record->role == KILN_PROGRAM_ROLE_IN ||
          record->role == KILN_PROGRAM_ROLE_UNIFORM) &&
         !levels->mutables[buffer];
}

static uint8_t level_of(levels_t* levels, uint32_t expr);

static uint8_t level_of_operands(levels_t* levels, uint32_t expr) {
  uint32_t operands[KILNI_IR_MAX_CALL];
  uint32_t count = kilni_ir_operands(levels->ir, expr, operands);
  uint8_t level = LEVEL_GRID;
  for (uint32_t i = 0; i < count; i++) {
    level = join(level, level_of(levels, operands[i]));
  }
  return level;
}

static uint8_t level_of_subgroup(levels_t* levels, uint32_t expr) {
  level_of_operands(levels, expr);
  uint32_t op = levels->ir->exprs.items[expr].extra;
  bool scattered = op == KILN_PROGRAM_SUBGROUP_SHUFFLE ||
                   op >= KILN_PROGRAM_SUBGROUP_SCAN_ADD;
  return scattered ? LEVEL_THREAD : LEVEL_SUBGROUP;
}

// Hands the levels of the operands to the function's parameters.
static uint8_t level_of_call(levels_t* levels, uint32_t expr) {
  const kilni_ir_t* ir = levels->ir;
  const kilni_expr_record_t* record = &ir->exprs.items[expr];
  const kilni_function_record_t* called = &ir->functions.items[record->a];
  for (uint32_t i = 0; i < record->c; i++) {
    uint32_t parameter = ir->operands.items[called->parameters + i];
    uint32_t given = ir->operands.items[record->b + i];
    if ((parameter & KILNI_PARAMETER_BUFFER) == 0) {
      raise(levels, &levels->variables[parameter], level_of(levels, given));
    } else if (!is_constant_memory(levels, given)) {
      raise(levels, &levels->mutables[parameter & ~KILNI_PARAMETER_BUFFER], 1);
    }
  }
  return levels->results[record->a];
}

static uint8_t level_of(levels_t* levels, uint32_t expr) {
  const kilni_expr_record_t* record = &levels->ir->exprs.items[expr];
  switch (record->op) {
    case KILNI_EXPR_VARIABLE:
      return levels->variables[record->a];
    case KILNI_EXPR_ID:
      return level_of_id(record->extra & 0xff);
    case KILNI_EXPR_LOAD: {
      uint8_t level = level_of(levels, record->b);
      return is_constant_memory(levels, record->a) ? level : LEVEL_THREAD;
    }
    case KILNI_EXPR_SUBGROUP:
      return level_of_subgroup(levels, expr);
    case KILNI_EXPR_ATOMIC:
      level_of_operands(levels, expr);
      return LEVEL_THREAD;
    case KILNI_EXPR_CALL:
      return level_of_call(levels, expr);
    default:
      return level_of_operands(levels, expr);
  }
}

// ---- Statements ----

static void need(levels_t* levels, uint32_t at, uint32_t rule, uint8_t level,
                 uint8_t most) {
  static const char* const kWho[] = {"", "each block by itself",
                                     "each subgroup by itself",
                                     "each thread by itself"};
  if (!levels->tell || level <= most) return;
  kilni_checker_tell(levels->checker, rule, KILNI_IR_STATEMENT, at, "%s",
                     kWho[level]);
}

// The right side of a statement, which may have an effect.
static uint8_t level_of_right(levels_t* levels, uint32_t at, uint32_t expr,
                              uint8_t control) {
  const kilni_expr_record_t* record = &levels->ir->exprs.items[expr];
  if (record->op == KILNI_EXPR_SUBGROUP) {
    need(levels, at, KILNI_RULE_DIVERGENT_SUBGROUP, control, LEVEL_SUBGROUP);
  }
  if (record->op == KILNI_EXPR_CALL) {
    raise(levels, &levels->entries[record->a], control);
  }
  return level_of(levels, expr);
}

static void see_list(levels_t* levels, uint32_t first, uint8_t control);

static void see_loop(levels_t* levels, uint32_t at, uint8_t control) {
  const kilni_statement_record_t* loop = &levels->ir->statements.items[at];
  uint32_t outer = levels->loop;
  levels->loop = at;
  uint8_t inside = join(control, levels->loops[at]);
  if (loop->op == KILNI_STATEMENT_WHILE) {
    inside = join(inside, level_of(levels, loop->a));
  } else {
    uint8_t from = level_of(levels, loop->b);
    inside = join(inside, join(from, level_of(levels, loop->c)));
    raise(levels, &levels->variables[loop->a], inside);
  }
  see_list(levels, loop->body, inside);
  levels->loop = outer;
}

static void see_copy(levels_t* levels, uint32_t at, uint8_t control) {
  const kilni_statement_record_t* copy = &levels->ir->statements.items[at];
  uint8_t level = control;
  if (copy->op == KILNI_STATEMENT_ASYNC_COPY) {
    level = join(level, level_of(levels, copy->b));
    level = join(level, level_of(levels, copy->c));
    level = join(level, level_of(levels, copy->d));
  }
  need(levels, at, KILNI_RULE_DIVERGENT_COPY, level, LEVEL_BLOCK);
}

static void see_return(levels_t* levels, uint32_t value, uint8_t control) {
  if (levels->function == 0) return;
  if (value != 0) {
    raise(levels, &levels->results[levels->function],
          join(control, level_of(levels, value)));
  }
  raise(levels, &levels->exits[levels->function], control);
}

static void see_statement(levels_t* levels, uint32_t at, uint8_t control) {
  const kilni_statement_record_t* statement = &levels->ir->statements.items[at];
  switch (statement->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
    case KILNI_STATEMENT_ASSIGN:
      raise(levels, &levels->variables[statement->a],
            join(control, level_of_right(levels, at, statement->b, control)));
      break;
    case KILNI_STATEMENT_STORE:
      level_of(levels, statement->b);
      level_of(levels, statement->c);
      break;
    case KILNI_STATEMENT_EVALUATE:
      level_of_right(levels, at, statement->a, control);
      break;
    case KILNI_STATEMENT_IF: {
      uint8_t inside = join(control, level_of(levels, statement->a));
      see_list(levels, statement->body, inside);
      see_list(levels, statement->other, inside);
      break;
    }
    case KILNI_STATEMENT_FOR:
    case KILNI_STATEMENT_WHILE:
      see_loop(levels, at, control);
      break;
    case KILNI_STATEMENT_BREAK:
    case KILNI_STATEMENT_CONTINUE:
      raise(levels, &levels->loops[levels->loop], control);
      break;
    case KILNI_STATEMENT_RETURN:
      see_return(levels, statement->a, control);
      break;
    case KILNI_STATEMENT_BARRIER:
      need(levels, at, KILNI_RULE_DIVERGENT_BARRIER, control, LEVEL_BLOCK);
      break;
    case KILNI_STATEMENT_GRID_BARRIER:
      need(levels, at, KILNI_RULE_DIVERGENT_GRID, control, LEVEL_GRID);
      break;
    case KILNI_STATEMENT_SUBGROUP_BARRIER:
    case KILNI_STATEMENT_MATRIX:
      need(levels, at, KILNI_RULE_DIVERGENT_SUBGROUP, control, LEVEL_SUBGROUP);
      break;
    case KILNI_STATEMENT_ASYNC_COPY:
    case KILNI_STATEMENT_ASYNC_WAIT:
      see_copy(levels, at, control);
      break;
    case KILNI_STATEMENT_TRAP:
      level_of(levels, statement->a);
      level_of(levels, statement->b);
      break;
    default:
      break;
  }
}

static void see_list(levels_t* levels, uint32_t first, uint8_t control) {
  const kilni_statement_record_t* items = levels->ir->statements.items;
  for (uint32_t at = first; at != 0; at = items[at].next) {
    see_statement(levels, at, control);
  }
}

static void walk(levels_t* levels) {
  const kilni_ir_t* ir = levels->ir;
  levels->loop = 0;
  for (uint32_t i = 1; i < ir->functions.count; i++) {
    levels->function = i;
    see_list(levels, ir->functions.items[i].body,
             join(levels->entries[i], levels->exits[i]));
  }
  levels->function = 0;
  see_list(levels, ir->body, LEVEL_GRID);
}

// ---- The tables ----

kiln_status_t kilni_check_uniform(kilni_checker_t* checker) {
  const kilni_ir_t* ir = checker->ir;
  levels_t levels;
  memset(&levels, 0, sizeof(levels));
  levels.checker = checker;
  levels.ir = ir;
  size_t functions = (size_t)ir->functions.count + 1;
  size_t size = (size_t)ir->variables.count + ir->buffers.count +
                3 * functions + ir->statements.count + 3;
  void* block;
  KILNI_RETURN_IF_ERROR(kilni_alloc(ir->allocator, size, &block));
  levels.variables = block;
  levels.mutables = levels.variables + ir->variables.count + 1;
  levels.entries = levels.mutables + ir->buffers.count + 1;
  levels.results = levels.entries + functions;
  levels.exits = levels.results + functions;
  levels.loops = levels.exits + functions;
  levels.changed = true;
  for (int i = 0; i < MAX_WALKS && levels.changed; i++) {
    levels.changed = false;
    walk(&levels);
  }
  if (levels.changed) memset(block, LEVEL_THREAD, size);
  levels.tell = true;
  walk(&levels);
  kilni_free(ir->allocator, block, size);
  return kiln_ok();
}
