// SPDX-License-Identifier: Apache-2.0
//
// program: what is known of a program before it is lowered: what meets where,
// which buffers are written, which variables change.
#include <string.h>

#include "program/lower/program_lowering.h"

// ---- Expressions ----

static uint32_t level_of_expr(const kilni_program_lowering_t* w,
                              uint32_t expr) {
  const kilni_program_expr_record_t* e = &w->program->exprs.items[expr];
  if (e->op == KILNI_EXPR_SUBGROUP) return KILNI_LEVEL_LANES;
  if (e->op == KILNI_EXPR_CALL) return w->function_levels[e->a];
  return KILNI_LEVEL_NONE;
}

bool kilni_program_expr_waits_for_live(const kilni_program_lowering_t* w,
                                       uint32_t expr) {
  const kilni_program_expr_record_t* e = &w->program->exprs.items[expr];
  return e->op == KILNI_EXPR_ATOMIC || e->op == KILNI_EXPR_SUBGROUP ||
         w->calls[expr] != 0;
}

static bool calls_in(const kilni_program_lowering_t* w,
                     const kilni_program_expr_record_t* e) {
  const uint8_t* calls = w->calls;
  switch (e->op) {
    case KILNI_EXPR_CALL:
      return true;
    case KILNI_EXPR_LOAD:
    case KILNI_EXPR_SUBGROUP:
      return calls[e->op == KILNI_EXPR_LOAD ? e->b : e->a] || calls[e->b];
    case KILNI_EXPR_UNARY:
    case KILNI_EXPR_CAST:
    case KILNI_EXPR_BITCAST:
      return calls[e->a] != 0;
    case KILNI_EXPR_BINARY:
      return calls[e->a] || calls[e->b];
    case KILNI_EXPR_SELECT:
    case KILNI_EXPR_FMA:
      return calls[e->a] || calls[e->b] || calls[e->c];
    default:
      return false;
  }
}

static void survey_find_calls(kilni_program_lowering_t* w) {
  const kilni_program_ir_t* ir = w->program;
  bool changed = ir->functions.count > 1;
  while (changed) {
    changed = false;
    for (uint32_t i = 1; i < ir->exprs.count; i++) {
      if (w->calls[i] == 0 && calls_in(w, &ir->exprs.items[i])) {
        w->calls[i] = 1;
        changed = true;
      }
    }
  }
}

// ---- Which buffers are written ----

static void find_written(kilni_program_lowering_t* w) {
  const kilni_program_ir_t* ir = w->program;
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    const kilni_program_statement_record_t* s = &ir->statements.items[i];
    if (s->op == KILNI_STATEMENT_STORE) w->places[s->a].written = 1;
    if (s->op == KILNI_STATEMENT_MATRIX) w->places[s->a].written = 1;
    if (s->op == KILNI_STATEMENT_ASYNC_COPY) {
      w->places[s->a & 0xffff].written = 1;
    }
  }
  bool changed = true;
  while (changed) {
    changed = false;
    for (uint32_t i = 1; i < ir->exprs.count; i++) {
      const kilni_program_expr_record_t* e = &ir->exprs.items[i];
      if (e->op == KILNI_EXPR_ATOMIC) w->places[e->a].written = 1;
      if (e->op != KILNI_EXPR_CALL) continue;
      uint32_t first = ir->functions.items[e->a].parameters;
      for (uint32_t k = 0; k < e->c; k++) {
        uint32_t inner = ir->operands.items[first + k];
        uint32_t outer = ir->operands.items[e->b + k];
        if ((inner & KILNI_PARAMETER_BUFFER) == 0) continue;
        inner &= ~KILNI_PARAMETER_BUFFER, outer &= ~KILNI_PARAMETER_BUFFER;
        if (w->places[inner].written && !w->places[outer].written) {
          w->places[outer].written = 1;
          changed = true;
        }
      }
    }
  }
}

// ---- What meets where ----

static uint32_t most(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

// Statements that leave a loop or a function in which threads meet decide who
// meets there.
static bool raise_leaving(kilni_program_lowering_t* w, uint32_t list,
                          bool returns, uint8_t level) {
  bool any = false;
  const kilni_program_statement_record_t* all = w->program->statements.items;
  for (uint32_t i = list; i != 0; i = all[i].next) {
    bool leaves = false;
    switch (all[i].op) {
      case KILNI_STATEMENT_BREAK:
      case KILNI_STATEMENT_CONTINUE:
        leaves = !returns;
        break;
      case KILNI_STATEMENT_RETURN:
        leaves = returns;
        break;
      case KILNI_STATEMENT_FOR:
      case KILNI_STATEMENT_WHILE:
        leaves = returns && raise_leaving(w, all[i].body, true, level);
        break;
      case KILNI_STATEMENT_IF:
        leaves = raise_leaving(w, all[i].body, returns, level);
        leaves = raise_leaving(w, all[i].other, returns, level) || leaves;
        break;
      default:
        break;
    }
    if (leaves && w->levels[i] < level) w->levels[i] = level;
    any = any || leaves;
  }
  return any;
}

static uint32_t level_of_list(kilni_program_lowering_t* w, uint32_t list,
                              kilni_program_survey_t* survey) {
  uint32_t level = KILNI_LEVEL_NONE;
  const kilni_program_statement_record_t* all = w->program->statements.items;
  for (uint32_t i = list; i != 0; i = all[i].next) {
    uint32_t own = KILNI_LEVEL_NONE;
    switch (all[i].op) {
      case KILNI_STATEMENT_LET:
      case KILNI_STATEMENT_VAR:
      case KILNI_STATEMENT_ASSIGN:
        own = level_of_expr(w, all[i].b);
        break;
      case KILNI_STATEMENT_EVALUATE:
        own = level_of_expr(w, all[i].a);
        break;
      case KILNI_STATEMENT_IF:
        own = most(level_of_list(w, all[i].body, survey),
                   level_of_list(w, all[i].other, survey));
        break;
      case KILNI_STATEMENT_FOR:
      case KILNI_STATEMENT_WHILE:
        own = level_of_list(w, all[i].body, survey);
        if (own != 0) raise_leaving(w, all[i].body, false, (uint8_t)own);
        break;
      case KILNI_STATEMENT_RETURN:
        survey->returns = 1;
        break;
      case KILNI_STATEMENT_SUBGROUP_BARRIER:
      case KILNI_STATEMENT_MATRIX:
        own = KILNI_LEVEL_LANES;
        break;
      case KILNI_STATEMENT_GRID_BARRIER:
      case KILNI_STATEMENT_BARRIER:
      case KILNI_STATEMENT_ASYNC_COPY:
      case KILNI_STATEMENT_ASYNC_WAIT:
        own = KILNI_LEVEL_BLOCK;
        break;
      default:
        break;
    }
    w->levels[i] = (uint8_t)most(own, w->levels[i]);
    level = most(level, own);
  }
  return level;
}

// How many returns a list has, inner ones counted twice.
static uint32_t count_returns(const kilni_program_ir_t* ir, uint32_t list,
                              bool outermost) {
  uint32_t count = 0;
  const kilni_program_statement_record_t* all = ir->statements.items;
  for (uint32_t i = list; i != 0; i = all[i].next) {
    if (all[i].op == KILNI_STATEMENT_RETURN) {
      count += outermost && all[i].next == 0 ? 1 : 2;
    } else {
      count += count_returns(ir, all[i].body, false);
      count += count_returns(ir, all[i].other, false);
    }
  }
  return count;
}

static void find_levels(kilni_program_lowering_t* w,
                        kilni_program_survey_t* survey) {
  const kilni_program_ir_t* ir = w->program;
  bool changed = true;
  kilni_program_survey_t inner = {0};
  while (changed) {
    changed = false;
    for (uint32_t f = 1; f < ir->functions.count; f++) {
      const kilni_program_function_record_t* function = &ir->functions.items[f];
      uint32_t returns = count_returns(ir, function->body, true);
      w->function_returns[f] = (uint8_t)(returns > 2 ? 2 : returns);
      uint32_t level = level_of_list(w, function->body, &inner);
      if (level != 0) {
        raise_leaving(w, function->body, true, (uint8_t)level);
      }
      if (level != w->function_levels[f]) {
        w->function_levels[f] = (uint8_t)level;
        changed = true;
      }
    }
  }
  survey->level = (uint8_t)level_of_list(w, ir->body, survey);
}

kilni_program_survey_t kilni_program_survey(kilni_program_lowering_t* w) {
  kilni_program_survey_t survey = {0};
  const kilni_program_ir_t* ir = w->program;
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    switch (ir->statements.items[i].op) {
      case KILNI_STATEMENT_BARRIER:
        survey.barriers = 1;
        break;
      case KILNI_STATEMENT_GRID_BARRIER:
        survey.grid = 1;
        break;
      case KILNI_STATEMENT_ASYNC_COPY:
      case KILNI_STATEMENT_ASYNC_WAIT:
        survey.copies = 1;
        break;
      case KILNI_STATEMENT_TRAP:
        survey.traps = 1;
        break;
      case KILNI_STATEMENT_MATRIX:
        survey.lanes = 1;
        break;
      default:
        break;
    }
  }
  for (uint32_t i = 1; i < ir->exprs.count; i++) {
    const kilni_program_expr_record_t* e = &ir->exprs.items[i];
    if (e->op == KILNI_EXPR_SUBGROUP) survey.lanes = 1;
    if (e->op == KILNI_EXPR_LENGTH && e->type == KILN_PROGRAM_TYPE_U32) {
      w->places[e->a].length32 = 1;
    }
  }
  survey_find_calls(w);
  find_written(w);
  find_levels(w, &survey);
  return survey;
}

// ---- Which variables change ----

typedef struct assigned_t {
  kilni_program_lowering_t* w;
  uint32_t* items;
  uint32_t count;
  uint32_t capacity;
} assigned_t;

static void survey_add(assigned_t* to, uint32_t variable) {
  kilni_program_lowering_t* w = to->w;
  if (w->marks[variable] == w->mark) return;
  w->marks[variable] = w->mark;
  if (!kilni_program_arena_grow(&w->arena, (void**)&to->items, &to->capacity,
                                to->count + 1, sizeof(*to->items))) {
    kilni_program_lower_fail(w, KILN_STATUS_OUT_OF_MEMORY, "", "");
    return;
  }
  to->items[to->count++] = variable;
}

static void survey_add_buffer(assigned_t* to, uint32_t buffer) {
  kilni_dispatch_place_t* place = kilni_program_place(to->w, buffer);
  if (place->first == 0 || place->first == UINT32_MAX) return;
  for (uint64_t i = 0; i < place->count; i++) {
    survey_add(to, place->first + (uint32_t)i);
  }
}

static void add_expr(assigned_t* to, uint32_t expr) {
  const kilni_program_ir_t* ir = to->w->ir;
  const kilni_program_expr_record_t* e = &ir->exprs.items[expr];
  if (e->op == KILNI_EXPR_ATOMIC) survey_add_buffer(to, e->a);
  if (e->op != KILNI_EXPR_CALL) return;
  uint32_t first = ir->functions.items[e->a].parameters;
  for (uint32_t k = 0; k < e->c; k++) {
    uint32_t inner = ir->operands.items[first + k];
    uint32_t outer = ir->operands.items[e->b + k];
    if ((inner & KILNI_PARAMETER_BUFFER) != 0) {
      survey_add_buffer(to, outer & ~KILNI_PARAMETER_BUFFER);
    }
  }
}

static void survey_add_list(assigned_t* to, uint32_t list) {
  kilni_program_lowering_t* w = to->w;
  const kilni_program_statement_record_t* all = w->ir->statements.items;
  for (uint32_t i = list; i != 0; i = all[i].next) {
    switch (all[i].op) {
      case KILNI_STATEMENT_LET:
      case KILNI_STATEMENT_VAR:
        // Not to be seen outside of the list.
        w->marks[w->variable_base + all[i].a] = w->mark;
        add_expr(to, all[i].b);
        break;
      case KILNI_STATEMENT_ASSIGN:
        survey_add(to, w->variable_base + all[i].a);
        add_expr(to, all[i].b);
        break;
      case KILNI_STATEMENT_EVALUATE:
        add_expr(to, all[i].a);
        break;
      case KILNI_STATEMENT_STORE:
      case KILNI_STATEMENT_MATRIX:
        survey_add_buffer(to, all[i].a);
        break;
      default:
        survey_add_list(to, all[i].body);
        survey_add_list(to, all[i].other);
        break;
    }
  }
}

uint32_t kilni_program_assigned(kilni_program_lowering_t* w,
                                const uint32_t* lists, uint32_t count,
                                uint32_t** out) {
  assigned_t to = {w, NULL, 0, 0};
  w->mark++;
  for (uint32_t i = 0; i < count; i++) survey_add_list(&to, lists[i]);
  *out = to.items;
  return to.count;
}
