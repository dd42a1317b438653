// SPDX-License-Identifier: Apache-2.0
//
// program: the validator: which threads come where together.
//
// Every value and every place in the control flow has a level: the same for
// all threads of the grid, of the block, of the subgroup, or of one thread
// only. A level is the highest of those it depends on. So the bodies are walked
// once to note who depends on whom; then the levels are handed on, the highest
// first, so that each is found once, however long the chain is. Another walk
// tells what needs company where there is none.
//
// Threads that have returned from the program are waited for by nobody, so a
// return there makes nothing behind it divergent; one from a function does, for
// all of the function.
#include <string.h>

#include "base/alloc.h"
#include "base/debug_assert.h"
#include "base/status_make.h"
#include "program/ir/program_checker.h"
#include "program/ir/program_object.h"
#include "program/program.h"

enum { LEVEL_GRID, LEVEL_BLOCK, LEVEL_SUBGROUP, LEVEL_THREAD };

// Who hands its level on to whom.
typedef struct edge_t {
  uint32_t to;
  uint32_t next;  // of the same one; 0: none
} edge_t;

// What has a level is a cell; cell 0 is the same for all of the grid.
typedef struct levels_t {
  const kilni_program_ir_t* ir;
  kilni_program_checker_t* checker;  // that is told; NULL: only `divergent`
  kiln_status_t status;
  bool tell;
  bool divergent;      // something lacks company
  uint32_t function;   // that is walked; 0: the program's body
  uint32_t loop;       // around the statement: the cell of its inside
  uint32_t cells;      //
  uint32_t exprs;      // first cell of each kind: by expression
  uint32_t variables;  // by variable
  uint32_t mutables;   // by buffer: THREAD where a parameter is written
  uint32_t bodies;     // by function: where it is called, and left early
  uint32_t results;    // by function
  uint32_t insides;    // by statement: what it holds
  uint8_t* level;      // by cell
  uint8_t* seen;       // by expression
  uint32_t* first;     // by cell: an edge; 0: none
  uint32_t* stack;     // of cells
  edge_t* edges;       // from 1 on
  size_t edge_count;
  size_t edge_space;
} levels_t;

static uint8_t check_uniform_join(uint8_t a, uint8_t b) {
  return a > b ? a : b;
}

static void at_least(levels_t* levels, uint32_t cell, uint8_t level) {
  levels->level[cell] = check_uniform_join(levels->level[cell], level);
}

// `to` is at least what `from` is.
static void check_uniform_follow(levels_t* levels, uint32_t to, uint32_t from) {
  if (from == 0 || from == to || !kiln_status_is_ok(levels->status)) return;
  void* edges = levels->edges;
  levels->status =
      kilni_base_grow(levels->ir->allocator, levels->edge_count + 1,
                      sizeof(edge_t), &levels->edge_space, &edges);
  levels->edges = edges;
  if (!kiln_status_is_ok(levels->status)) return;
  edge_t edge = {to, levels->first[from]};
  levels->edges[levels->edge_count] = edge;
  levels->first[from] = (uint32_t)levels->edge_count++;
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

// What is written nowhere in the program, so that every load at one index gives
// one value, unless a parameter of a function turns out to be another buffer.
static bool is_constant_memory(const levels_t* levels, uint32_t buffer) {
  const kilni_program_buffer_record_t* record =
      &levels->ir->buffers.items[buffer];
  return record->role == KILN_PROGRAM_ROLE_IN ||
         record->role == KILN_PROGRAM_ROLE_UNIFORM;
}

static void follow_memory(levels_t* levels, uint32_t cell, uint32_t buffer) {
  if (is_constant_memory(levels, buffer)) {
    check_uniform_follow(levels, cell, levels->mutables + buffer);
  } else {
    at_least(levels, cell, LEVEL_THREAD);
  }
}

static uint32_t check_uniform_see_expr(levels_t* levels, uint32_t expr);

static void see_operands(levels_t* levels, uint32_t expr, bool follows) {
  uint32_t operands[KILNI_IR_MAX_CALL];
  uint32_t count = kilni_program_ir_operands(levels->ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t cell = check_uniform_see_expr(levels, operands[i]);
    if (follows) check_uniform_follow(levels, levels->exprs + expr, cell);
  }
}

static uint8_t level_of_subgroup(uint32_t op) {
  bool scattered = op == KILN_PROGRAM_SUBGROUP_SHUFFLE ||
                   op >= KILN_PROGRAM_SUBGROUP_SCAN_ADD;
  return scattered ? LEVEL_THREAD : LEVEL_SUBGROUP;
}

// Hands the levels of the operands to the function's parameters.
static void check_uniform_see_call(levels_t* levels,
                                   const kilni_program_expr_record_t* record) {
  const kilni_program_ir_t* ir = levels->ir;
  const kilni_program_function_record_t* called =
      &ir->functions.items[record->a];
  for (uint32_t i = 0; i < record->c; i++) {
    uint32_t parameter = ir->operands.items[called->parameters + i];
    uint32_t given = ir->operands.items[record->b + i];
    uint32_t buffer = parameter & ~KILNI_PARAMETER_BUFFER;
    if (parameter != buffer) {
      follow_memory(levels, levels->mutables + buffer, given);
    } else {
      check_uniform_follow(levels, levels->variables + parameter,
                           check_uniform_see_expr(levels, given));
    }
  }
}

// The cell of an expression, whose dependencies are noted once.
static uint32_t check_uniform_see_expr(levels_t* levels, uint32_t expr) {
  const kilni_program_expr_record_t* record = &levels->ir->exprs.items[expr];
  uint32_t cell = levels->exprs + expr;
  if (levels->seen[expr] != 0) return cell;
  levels->seen[expr] = 1;
  switch (record->op) {
    case KILNI_EXPR_VARIABLE:
      check_uniform_follow(levels, cell, levels->variables + record->a);
      break;
    case KILNI_EXPR_ID:
      at_least(levels, cell, level_of_id(record->extra & 0xff));
      break;
    case KILNI_EXPR_LOAD:
      check_uniform_follow(levels, cell,
                           check_uniform_see_expr(levels, record->b));
      follow_memory(levels, cell, record->a);
      break;
    case KILNI_EXPR_SUBGROUP:
      see_operands(levels, expr, false);
      at_least(levels, cell, level_of_subgroup(record->extra));
      break;
    case KILNI_EXPR_ATOMIC:
      see_operands(levels, expr, false);
      at_least(levels, cell, LEVEL_THREAD);
      break;
    case KILNI_EXPR_CALL:
      check_uniform_see_call(levels, record);
      check_uniform_follow(levels, cell, levels->results + record->a);
      break;
    default:
      see_operands(levels, expr, true);
      break;
  }
  return cell;
}

// ---- Statements ----

static void check_uniform_need(levels_t* levels, uint32_t at, uint32_t rule,
                               uint8_t level, uint8_t most) {
  static const char* const kWho[] = {"", "each block by itself",
                                     "each subgroup by itself",
                                     "each thread by itself"};
  if (!levels->tell || level <= most) return;
  levels->divergent = true;
  if (levels->checker == NULL) return;
  kilni_program_checker_tell(levels->checker, rule, KILNI_IR_STATEMENT, at,
                             "%s", kWho[level]);
}

// The right side of a statement, which may have an effect.
static uint32_t see_right(levels_t* levels, uint32_t at, uint32_t expr,
                          uint32_t control) {
  const kilni_program_expr_record_t* record = &levels->ir->exprs.items[expr];
  if (record->op == KILNI_EXPR_SUBGROUP) {
    check_uniform_need(levels, at, KILNI_RULE_DIVERGENT_SUBGROUP,
                       levels->level[control], LEVEL_SUBGROUP);
  }
  if (levels->tell) return 0;
  if (record->op == KILNI_EXPR_CALL) {
    check_uniform_follow(levels, levels->bodies + record->a, control);
  }
  return check_uniform_see_expr(levels, expr);
}

static void check_uniform_see_list(levels_t* levels, uint32_t first,
                                   uint32_t control);

static void check_uniform_see_loop(levels_t* levels, uint32_t at,
                                   uint32_t control) {
  const kilni_program_statement_record_t* loop =
      &levels->ir->statements.items[at];
  uint32_t outer = levels->loop;
  uint32_t inside = levels->insides + at;
  if (!levels->tell) {
    check_uniform_follow(levels, inside, control);
    if (loop->op == KILNI_STATEMENT_WHILE) {
      check_uniform_follow(levels, inside,
                           check_uniform_see_expr(levels, loop->a));
    } else {
      check_uniform_follow(levels, inside,
                           check_uniform_see_expr(levels, loop->b));
      check_uniform_follow(levels, inside,
                           check_uniform_see_expr(levels, loop->c));
      check_uniform_follow(levels, levels->variables + loop->a, inside);
    }
  }
  levels->loop = inside;
  check_uniform_see_list(levels, loop->body, inside);
  levels->loop = outer;
}

static void see_if(levels_t* levels, uint32_t at, uint32_t control) {
  const kilni_program_statement_record_t* statement =
      &levels->ir->statements.items[at];
  uint32_t inside = levels->insides + at;
  if (!levels->tell) {
    check_uniform_follow(levels, inside, control);
    check_uniform_follow(levels, inside,
                         check_uniform_see_expr(levels, statement->a));
  }
  check_uniform_see_list(levels, statement->body, inside);
  check_uniform_see_list(levels, statement->other, inside);
}

static void check_uniform_see_copy(levels_t* levels, uint32_t at,
                                   uint32_t control) {
  const kilni_program_statement_record_t* copy =
      &levels->ir->statements.items[at];
  uint8_t level = levels->level[control];
  if (copy->op == KILNI_STATEMENT_ASYNC_COPY) {
    const uint32_t exprs[] = {copy->b, copy->c, copy->d};
    for (int i = 0; i < 3; i++) {
      if (!levels->tell) (void)check_uniform_see_expr(levels, exprs[i]);
      level =
          check_uniform_join(level, levels->level[levels->exprs + exprs[i]]);
    }
  }
  check_uniform_need(levels, at, KILNI_RULE_DIVERGENT_COPY, level, LEVEL_BLOCK);
}

static void see_return(levels_t* levels, uint32_t value, uint32_t control) {
  if (levels->function == 0 || levels->tell) return;
  if (value != 0) {
    uint32_t result = levels->results + levels->function;
    check_uniform_follow(levels, result, control);
    check_uniform_follow(levels, result, check_uniform_see_expr(levels, value));
  }
  check_uniform_follow(levels, levels->bodies + levels->function, control);
}

// Two expressions of which nothing follows but what calls in them are given.
static void see_both(levels_t* levels, uint32_t a, uint32_t b) {
  if (levels->tell) return;
  (void)check_uniform_see_expr(levels, a);
  (void)check_uniform_see_expr(levels, b);
}

static void see_assignment(levels_t* levels, uint32_t at, uint32_t control) {
  const kilni_program_statement_record_t* statement =
      &levels->ir->statements.items[at];
  uint32_t variable = levels->variables + statement->a;
  uint32_t value = see_right(levels, at, statement->b, control);
  if (levels->tell) return;
  check_uniform_follow(levels, variable, control);
  check_uniform_follow(levels, variable, value);
}

static void check_uniform_see_statement(levels_t* levels, uint32_t at,
                                        uint32_t control) {
  const kilni_program_statement_record_t* statement =
      &levels->ir->statements.items[at];
  uint8_t level = levels->level[control];
  switch (statement->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
    case KILNI_STATEMENT_ASSIGN:
      see_assignment(levels, at, control);
      break;
    case KILNI_STATEMENT_STORE:
      see_both(levels, statement->b, statement->c);
      break;
    case KILNI_STATEMENT_EVALUATE:
      (void)see_right(levels, at, statement->a, control);
      break;
    case KILNI_STATEMENT_IF:
      see_if(levels, at, control);
      break;
    case KILNI_STATEMENT_FOR:
    case KILNI_STATEMENT_WHILE:
      check_uniform_see_loop(levels, at, control);
      break;
    case KILNI_STATEMENT_BREAK:
    case KILNI_STATEMENT_CONTINUE:
      if (!levels->tell) check_uniform_follow(levels, levels->loop, control);
      break;
    case KILNI_STATEMENT_RETURN:
      see_return(levels, statement->a, control);
      break;
    case KILNI_STATEMENT_BARRIER:
      check_uniform_need(levels, at, KILNI_RULE_DIVERGENT_BARRIER, level,
                         LEVEL_BLOCK);
      break;
    case KILNI_STATEMENT_GRID_BARRIER:
      check_uniform_need(levels, at, KILNI_RULE_DIVERGENT_GRID, level,
                         LEVEL_GRID);
      break;
    case KILNI_STATEMENT_SUBGROUP_BARRIER:
    case KILNI_STATEMENT_MATRIX:
      check_uniform_need(levels, at, KILNI_RULE_DIVERGENT_SUBGROUP, level,
                         LEVEL_SUBGROUP);
      break;
    case KILNI_STATEMENT_ASYNC_COPY:
    case KILNI_STATEMENT_ASYNC_WAIT:
      check_uniform_see_copy(levels, at, control);
      break;
    case KILNI_STATEMENT_TRAP:
      see_both(levels, statement->a, statement->b);
      break;
    default:
      break;
  }
}

static void check_uniform_see_list(levels_t* levels, uint32_t first,
                                   uint32_t control) {
  const kilni_program_statement_record_t* items = levels->ir->statements.items;
  for (uint32_t at = first; at != 0; at = items[at].next) {
    check_uniform_see_statement(levels, at, control);
  }
}

static void check_uniform_walk(levels_t* levels, bool tell) {
  const kilni_program_ir_t* ir = levels->ir;
  levels->tell = tell;
  levels->loop = 0;
  for (uint32_t i = 1; i < ir->functions.count; i++) {
    levels->function = i;
    check_uniform_see_list(levels, ir->functions.items[i].body,
                           levels->bodies + i);
  }
  levels->function = 0;
  check_uniform_see_list(levels, ir->body, 0);
}

// ---- Levels ----

// All that depends on what has the level, and has less.
static void hand_on(levels_t* levels, uint8_t level) {
  uint32_t count = 0;
  for (uint32_t i = 1; i < levels->cells; i++) {
    if (levels->level[i] == level) levels->stack[count++] = i;
  }
  while (count > 0) {
    uint32_t edge = levels->first[levels->stack[--count]];
    for (; edge != 0; edge = levels->edges[edge].next) {
      KILNI_ASSERT(levels->edges != NULL);  // there is this one
      uint32_t to = levels->edges[edge].to;
      if (levels->level[to] >= level) continue;
      levels->level[to] = level;
      levels->stack[count++] = to;
    }
  }
}

static void solve(levels_t* levels) {
  for (uint8_t level = LEVEL_THREAD; level > LEVEL_GRID; level--) {
    hand_on(levels, level);
  }
}

// ---- The tables ----

static kiln_status_t levels_init(levels_t* levels,
                                 const kilni_program_ir_t* ir) {
  memset(levels, 0, sizeof(*levels));
  levels->ir = ir;
  levels->edge_count = 1;
  levels->exprs = 1;
  levels->variables = levels->exprs + (uint32_t)ir->exprs.count + 1;
  levels->mutables = levels->variables + (uint32_t)ir->variables.count + 1;
  levels->bodies = levels->mutables + (uint32_t)ir->buffers.count + 1;
  levels->results = levels->bodies + (uint32_t)ir->functions.count + 1;
  levels->insides = levels->results + (uint32_t)ir->functions.count + 1;
  levels->cells = levels->insides + (uint32_t)ir->statements.count + 1;
  size_t cells = levels->cells;
  size_t size = cells * (2 * sizeof(uint32_t) + 1) + ir->exprs.count + 1;
  void* block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(ir->allocator, size, &block));
  levels->first = block;
  levels->stack = levels->first + cells;
  levels->level = (uint8_t*)(levels->stack + cells);
  levels->seen = levels->level + cells;
  return kiln_ok();
}

static void levels_deinit(levels_t* levels) {
  kiln_allocator_t allocator = levels->ir->allocator;
  size_t cells = levels->cells;
  size_t size =
      cells * (2 * sizeof(uint32_t) + 1) + levels->ir->exprs.count + 1;
  kilni_base_free_array(allocator, levels->edges, levels->edge_space,
                        sizeof(edge_t));
  kilni_base_free(allocator, levels->first, size);
}

kiln_status_t kilni_program_check_uniform(kilni_program_checker_t* checker) {
  levels_t levels;
  KILNI_RETURN_IF_ERROR(levels_init(&levels, checker->ir));
  levels.checker = checker;
  check_uniform_walk(&levels, false);
  if (kiln_status_is_ok(levels.status)) {
    solve(&levels);
    check_uniform_walk(&levels, true);
  }
  levels_deinit(&levels);
  return levels.status;
}

// A buffer more that is written only raises levels, and raises those that
// depend on it, so each is judged by itself.
kiln_status_t kilni_program_relies_on(const kiln_program_t* program,
                                      uint32_t parameter, bool* out_relies) {
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  uint32_t operand = ir->operands.items[ir->order + parameter];
  *out_relies = false;
  if ((operand & KILNI_PARAMETER_BUFFER) == 0) return kiln_ok();
  levels_t levels;
  KILNI_RETURN_IF_ERROR(levels_init(&levels, ir));
  uint32_t buffer = operand & ~KILNI_PARAMETER_BUFFER;
  if (is_constant_memory(&levels, buffer)) {
    check_uniform_walk(&levels, false);
    at_least(&levels, levels.mutables + buffer, LEVEL_THREAD);
    solve(&levels);
    check_uniform_walk(&levels, true);
  }
  levels_deinit(&levels);
  *out_relies = levels.divergent;
  return levels.status;
}
