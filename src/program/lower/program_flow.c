// SPDX-License-Identifier: Apache-2.0
//
// program: expressions and statements, and where control flow meets.
//
// Where all threads of a block or a subgroup come together later on, threads
// that have returned go along (`together`), hold what does not count, and are
// left out of every decision (agree); what they may not do stands in
// if_live. Everywhere else a thread that returns ends.
#include <string.h>

#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"
#include "program/math/program_math.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

// ---- Expressions ----

static kilni_program_value_t literal(kilni_program_lowering_t* w,
                                     const kilni_program_expr_record_t* e) {
  kilni_program_value_t x =
      kilni_program_const(w, e->type, kilni_program_ir_literal_bits(e));
  if ((w->off & KILN_PROGRAM_WITHOUT_FOLDING) == 0) return x;
  return kilni_program_in_register(w, x);
}

// A function of `ir`, the program or the library, in place. `operands` has the
// buffers, and may be NULL where there are none.
static kilni_program_value_t call_of(kilni_program_lowering_t* w,
                                     const kilni_program_ir_t* ir,
                                     uint32_t number,
                                     const kilni_program_value_t* values,
                                     const uint32_t* operands);

static kilni_program_value_t flow_call(kilni_program_lowering_t* w,
                                       const kilni_program_expr_record_t* e) {
  const kilni_program_ir_t* ir = w->ir;
  const uint32_t* operands = ir->operands.items + e->b;
  const uint32_t* parameters =
      ir->operands.items + ir->functions.items[e->a].parameters;
  kilni_program_value_t* values =
      kilni_program_arena_get(&w->arena, (e->c + 1) * sizeof(*values));
  if (values == NULL) return 0;
  for (uint32_t i = 0; i < e->c; i++) {
    bool buffer = (parameters[i] & KILNI_PARAMETER_BUFFER) != 0;
    values[i] = buffer ? 0 : kilni_program_expr(w, operands[i]);
  }
  return call_of(w, ir, e->a, values, operands);
}

// The library's functions are of floats; most operators are not.
static uint32_t library_unary(uint32_t op, uint8_t type) {
  if (kilni_program_type_class(type) != KILNI_CLASS_FLOAT) return 0;
  return kilni_program_math_unary(op, type);
}

static uint32_t library_binary(uint32_t op, uint8_t type) {
  if (kilni_program_type_class(type) != KILNI_CLASS_FLOAT) return 0;
  return kilni_program_math_binary(op, type);
}

// An operator that the library has a function for.
static kilni_program_value_t library_call(kilni_program_lowering_t* w,
                                          uint32_t function,
                                          kilni_program_value_t x,
                                          kilni_program_value_t y) {
  if (w->library_memo == NULL) {
    uint32_t count = w->library.exprs.count;
    w->library_memo =
        kilni_program_arena_get(&w->arena, count * sizeof(uint64_t));
    if (w->library_memo == NULL) return 0;
    memset(w->library_memo, 0, count * sizeof(uint64_t));
  }
  uint8_t type = kilni_program_value_type(w, x);
  uint8_t computed = kilni_program_type_computed(type);
  kilni_program_value_t values[2] = {kilni_program_cast(w, computed, x), 0};
  if (y != 0) values[1] = kilni_program_cast(w, computed, y);
  kilni_program_value_t out = call_of(w, &w->library, function, values, NULL);
  return kilni_program_cast(w, type, out);
}

// What the hardware approximates, where the budget allows it; 0 otherwise.
static kilni_program_value_t flow_fast(kilni_program_lowering_t* w,
                                       kilni_program_math_fast_t what,
                                       kilni_program_value_t x,
                                       kilni_program_value_t y) {
  static const char* const kNames[] = {
      [KILNI_MATH_FAST_RCP] = "rcp.approx.f32",
      [KILNI_MATH_FAST_RSQRT] = "rsqrt.approx.f32",
      [KILNI_MATH_FAST_SQRT] = "sqrt.approx.f32",
      [KILNI_MATH_FAST_EX2] = "ex2.approx.f32",
      [KILNI_MATH_FAST_EXP] = "ex2.approx.f32",
      [KILNI_MATH_FAST_LG2] = "lg2.approx.f32",
      [KILNI_MATH_FAST_LOG] = "lg2.approx.f32",
      [KILNI_MATH_FAST_SIN] = "sin.approx.f32",
      [KILNI_MATH_FAST_COS] = "cos.approx.f32",
      [KILNI_MATH_FAST_TANH] = "tanh.approx.f32",
      [KILNI_MATH_FAST_DIV] = "div.full.f32",
  };
  if (what == KILNI_MATH_FAST_NONE) return 0;
  if (what == KILNI_MATH_FAST_TANH) {
    if (w->sm < 75) return 0;
    if (w->need_sm < 75) w->need_sm = 75;
    if (w->need_isa < 70) w->need_isa = 70;
  }
  uint32_t log2_e = 0x3fb8aa3b, ln_2 = 0x3f317218;
  if (what == KILNI_MATH_FAST_EXP) {
    x = KILNI_BIN(MUL, x, kilni_program_const(w, T(F32), log2_e));
  }
  kilni_program_value_t out =
      kilni_program_pure(w, kNames[what], T(F32), x, y, 0);
  if (what == KILNI_MATH_FAST_LOG) {
    out = KILNI_BIN(MUL, out, kilni_program_const(w, T(F32), ln_2));
  }
  return out;
}

static kilni_program_value_t flow_unary(kilni_program_lowering_t* w,
                                        uint32_t op, kilni_program_value_t x) {
  if (w->max_ulp != 0 && w->ir == w->program) {
    kilni_program_value_t out =
        flow_fast(w,
                  kilni_program_math_fast_unary(
                      op, kilni_program_value_type(w, x), w->max_ulp),
                  x, 0);
    if (out != 0) return out;
  }
  uint8_t computed =
      kilni_program_type_computed(kilni_program_value_type(w, x));
  uint32_t function = library_unary(op, computed);
  if (function != 0) return library_call(w, function, x, 0);
  return kilni_program_unary(w, op, x);
}

static kilni_program_value_t flow_binary(kilni_program_lowering_t* w,
                                         uint32_t op, kilni_program_value_t x,
                                         kilni_program_value_t y) {
  if (w->max_ulp != 0 && w->ir == w->program) {
    kilni_program_value_t out =
        flow_fast(w,
                  kilni_program_math_fast_binary(
                      op, kilni_program_value_type(w, x), w->max_ulp),
                  x, y);
    if (out != 0) return out;
  }
  uint8_t computed =
      kilni_program_type_computed(kilni_program_value_type(w, x));
  uint32_t function = library_binary(op, computed);
  if (function != 0) return library_call(w, function, x, y);
  return kilni_program_binary(w, op, x, y);
}

static kilni_program_value_t flow_evaluate(
    kilni_program_lowering_t* w, const kilni_program_expr_record_t* e) {
  kilni_program_value_t a, b, c;
  switch (e->op) {
    case KILNI_EXPR_LITERAL:
      return literal(w, e);
    case KILNI_EXPR_VARIABLE:
      return w->bindings[w->variable_base + e->a];
    case KILNI_EXPR_SCALAR:
      return w->scalars[e->a];
    case KILNI_EXPR_LENGTH:
      return kilni_program_length(w, kilni_program_place(w, e->a), e->type);
    case KILNI_EXPR_ID:
      return kilni_program_id(w, e->extra & 0xffU, e->extra >> 8);
    case KILNI_EXPR_LOAD:
      b = kilni_program_expr(w, e->b);
      return kilni_program_load(w, e->a, b);
    case KILNI_EXPR_UNARY:
      a = kilni_program_expr(w, e->a);
      return flow_unary(w, e->extra, a);
    case KILNI_EXPR_BINARY:
      a = kilni_program_expr(w, e->a);
      b = kilni_program_expr(w, e->b);
      return flow_binary(w, e->extra, a, b);
    case KILNI_EXPR_SELECT:
    case KILNI_EXPR_FMA:
      a = kilni_program_expr(w, e->a);
      b = kilni_program_expr(w, e->b);
      c = kilni_program_expr(w, e->c);
      return e->op == KILNI_EXPR_FMA ? kilni_program_fma(w, a, b, c)
                                     : kilni_program_select(w, a, b, c);
    case KILNI_EXPR_CAST:
      return kilni_program_cast(w, e->type, kilni_program_expr(w, e->a));
    case KILNI_EXPR_BITCAST:
      return kilni_program_bitcast(w, e->type, kilni_program_expr(w, e->a));
    case KILNI_EXPR_SUBGROUP:
      return kilni_program_subgroup(w, e);
    case KILNI_EXPR_ATOMIC:
      return kilni_program_atomic(w, e);
    case KILNI_EXPR_CALL:
      return flow_call(w, e);
    default:
      kilni_program_lower_fail(w, KILN_STATUS_INTERNAL,
                               "has an unknown expression", "");
      return 0;
  }
}

kilni_program_value_t kilni_program_expr(kilni_program_lowering_t* w,
                                         uint32_t expr) {
  if (w->failed != KILN_STATUS_OK) return kilni_program_u32(w, 0);
  uint64_t* memo = (w->ir == w->program ? w->memo : w->library_memo) + expr;
  // A value that this statement has already come to.
  if (*memo >> 32 == w->stamp) return (kilni_program_value_t)*memo;
  kilni_program_value_t value = flow_evaluate(w, &w->ir->exprs.items[expr]);
  *memo = (uint64_t)w->stamp << 32 | value;
  return value;
}

// ---- Where control flow meets ----

// Variables that are written on several ways, and the registers in which they
// meet.
typedef struct meeting_t {
  uint32_t count;
  uint32_t* variables;
  kilni_program_value_t* registers;
} meeting_t;

// Registers in the open region for those variables of the lists that have a
// value, or for all of them.
static meeting_t flow_meet(kilni_program_lowering_t* w, const uint32_t* lists,
                           uint32_t count) {
  meeting_t out = {0, NULL, NULL};
  uint32_t all = kilni_program_assigned(w, lists, count, &out.variables);
  if (all == 0) return out;
  out.registers =
      kilni_program_arena_get(&w->arena, all * sizeof(kilni_program_value_t));
  if (out.registers == NULL) return out;
  for (uint32_t i = 0; i < all; i++) {
    uint32_t variable = out.variables[i];
    kilni_program_value_t now = w->bindings[variable];
    if (now == 0) continue;
    out.variables[out.count] = variable;
    out.registers[out.count++] =
        kilni_program_register(w, kilni_program_value_type(w, now));
  }
  return out;
}

static bool is_register_of(const uint32_t count,
                           const kilni_program_value_t* registers,
                           kilni_program_value_t value) {
  for (uint32_t i = 0; i < count; i++) {
    if (registers[i] == value) return true;
  }
  return false;
}

// Writes what the variables hold now to the registers, all at once.
static void flow_write_all(kilni_program_lowering_t* w, uint32_t count,
                           const uint32_t* variables,
                           const kilni_program_value_t* registers) {
  if (count == 0) return;
  kilni_program_value_t* from =
      kilni_program_arena_get(&w->arena, count * sizeof(*from));
  if (from == NULL) return;
  for (uint32_t i = 0; i < count; i++) {
    from[i] = w->bindings[variables[i]];
    if (from[i] == registers[i] || from[i] == 0) {
      from[i] = 0;
    } else if (is_register_of(count, registers, from[i])) {
      kilni_program_value_t copy =
          kilni_program_register(w, kilni_program_value_type(w, from[i]));
      kilni_program_move(w, copy, from[i]);
      from[i] = copy;
    }
  }
  for (uint32_t i = 0; i < count; i++) {
    kilni_program_move(w, registers[i], from[i]);
  }
}

static void flow_bind_all(kilni_program_lowering_t* w, const meeting_t* meeting,
                          const kilni_program_value_t* registers) {
  for (uint32_t i = 0; i < meeting->count; i++) {
    kilni_program_bind(w, meeting->variables[i], registers[i]);
  }
}

// ---- Facts ----

// `c` holds in the open region, or its opposite.
static void learn(kilni_program_lowering_t* w, kilni_program_value_t c,
                  bool holds, uint32_t depth) {
  uint32_t define = kilni_program_value_of(w, c)->define;
  if (define == 0 || depth > 8) return;
  kilni_program_instruction_t i = w->instructions.items[define];
  if (i.define != 0) return;  // a meeting
  if (holds && strcmp(i.name, "and.pred") == 0) {
    learn(w, i.operand[1], true, depth + 1);
    learn(w, i.operand[2], true, depth + 1);
    return;
  }
  if (!holds && strcmp(i.name, "or.pred") == 0) {
    learn(w, i.operand[1], false, depth + 1);
    learn(w, i.operand[2], false, depth + 1);
    return;
  }
  if (strcmp(i.name, "not.pred") == 0) {
    learn(w, i.operand[1], !holds, depth + 1);
    return;
  }
  bool less = strncmp(i.name, "setp.lt.", 8) == 0;
  bool more = strncmp(i.name, "setp.gt.", 8) == 0;
  bool not_less = strncmp(i.name, "setp.ge.", 8) == 0;
  bool not_more = strncmp(i.name, "setp.le.", 8) == 0;
  kilni_program_value_t a = i.operand[1], b = i.operand[2];
  bool forth = holds ? less : not_less, back = holds ? more : not_more;
  if (back) {
    kilni_program_value_t swap = a;
    a = b, b = swap;
  }
  if (!forth && !back) return;
  uint8_t type = kilni_program_value_type(w, a);
  if (!kilni_program_type_is_integer(type)) return;
  if (kilni_program_type_class(type) == KILNI_CLASS_SIGNED &&
      (kilni_program_value_of(w, a)->most == UINT64_MAX ||
       kilni_program_value_of(w, b)->most == UINT64_MAX)) {
    return;
  }
  kilni_program_fact_add(w, a, b);
}

// ---- Returned threads ----

// A test of threads that may have returned: `c` of those that have not.
static kilni_program_value_t agree(kilni_program_lowering_t* w,
                                   kilni_program_value_t c, uint32_t level) {
  if (!w->keeps_live || level == KILNI_LEVEL_NONE) return c;
  kilni_program_value_t counts = kilni_program_fresh(
      w, "and.pred", T(BOOL), w->live,
      kilni_program_value_is_const(w, c) ? kilni_program_in_register(w, c) : c);
  if (level == KILNI_LEVEL_LANES) {
    kilni_program_value_t operands[2] = {counts, kilni_program_lanes(w)};
    return kilni_program_pin_value(w, "vote.sync.any.pred", T(BOOL), 2,
                                   operands, 0);
  }
  kilni_program_value_t operands[2] = {kilni_program_u32(w, 0), counts};
  return kilni_program_pin_value(w, "bar.red.or.pred", T(BOOL), 2, operands, 0);
}

void kilni_program_return(kilni_program_lowering_t* w) {
  if (w->keeps_live) {
    kilni_program_move(w, w->live, kilni_program_bool(w, false));
    if (!w->together) kilni_program_branch(w, w->leave, 0);
  } else if (w->rounds.flag != 0) {
    kilni_program_branch(w, w->end, 0);
  } else {
    kilni_program_pin_text(w, "ret");
  }
  w->dead = 1;
}

static void flow_statement(kilni_program_lowering_t* w, uint32_t index);

// Runs a statement for those threads that have not returned.
static void if_live(kilni_program_lowering_t* w, uint32_t index) {
  const kilni_program_statement_record_t* s = &w->ir->statements.items[index];
  bool declares = s->op == KILNI_STATEMENT_LET || s->op == KILNI_STATEMENT_VAR;
  uint32_t end = kilni_program_label(w), leave = w->leave;
  // One statement as a list: what it assigns meets behind it. What it declares
  // is 0 in those that do not count: it must be of its type all the same, where
  // its bound is what keeps an access in range.
  uint32_t lists[2] = {s->body, s->other};
  meeting_t meeting = flow_meet(w, lists, 2);
  kilni_program_value_t declared = 0;
  uint32_t variable = w->variable_base + s->a;
  bool assigns = declares || s->op == KILNI_STATEMENT_ASSIGN;
  if (assigns) {
    declared = kilni_program_register(w, w->ir->variables.items[s->a].type);
    kilni_program_value_t before =
        declares
            ? kilni_program_const(w, kilni_program_value_type(w, declared), 0)
            : w->bindings[variable];
    kilni_program_move(w, declared, before);
  }
  for (uint32_t i = 0; i < meeting.count; i++) {
    kilni_program_move(w, meeting.registers[i],
                       w->bindings[meeting.variables[i]]);
  }
  const kilni_program_value_t here = w->here;
  const kilni_program_value_t live_here = kilni_program_here_live(w, index);
  kilni_program_branch(w, end, w->live | KILNI_NOT);
  uint32_t mark = w->changes.count;
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  w->together = 0;
  w->here = live_here;
  w->leave = end;
  flow_statement(w, index);
  if (!w->dead) {
    flow_write_all(w, meeting.count, meeting.variables, meeting.registers);
    if (assigns) kilni_program_move(w, declared, w->bindings[variable]);
  }
  kilni_program_region_end(w);
  w->dead = 0;
  w->together = 1;
  w->here = here;
  w->leave = leave;
  kilni_program_unbind(w, mark);
  kilni_program_place_label(w, end);
  flow_bind_all(w, &meeting, meeting.registers);
  if (assigns) kilni_program_bind(w, variable, declared);
  w->epoch++;
}

// ---- Branches ----

static void branch(kilni_program_lowering_t* w, kilni_program_value_t c,
                   bool holds, uint32_t list, const meeting_t* meeting) {
  uint32_t mark = w->changes.count;
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  w->regions.items[w->region].condition = holds ? c : c | KILNI_NOT;
  if (!w->together) learn(w, c, holds, 0);
  kilni_program_list(w, list);
  if (!w->dead) {
    flow_write_all(w, meeting->count, meeting->variables, meeting->registers);
  }
  kilni_program_region_end(w);
  kilni_program_unbind(w, mark);
}

// Who comes together in a statement: nobody in those of strict math.
static uint8_t flow_level_of(const kilni_program_lowering_t* w,
                             uint32_t index) {
  return w->ir == w->program ? w->levels[index] : KILNI_LEVEL_NONE;
}

// ---- Branches without a jump ----

// What an `if` may come to that is written as predicated instructions.
enum { MOST_PREDICATED = 40, MOST_STATEMENTS = 4 };

// Takes what an expression comes to off `*left`; false if it is too much, or
// something else than simple instructions.
static bool flow_is_simple(const kilni_program_lowering_t* w, uint32_t expr,
                           uint32_t* left) {
  const kilni_program_ir_t* ir = w->ir;
  const kilni_program_expr_record_t* e = &ir->exprs.items[expr];
  uint32_t operands[KILNI_IR_MAX_CALL];
  if (e->op == KILNI_EXPR_CALL || e->op == KILNI_EXPR_ATOMIC ||
      e->op == KILNI_EXPR_SUBGROUP || *left == 0) {
    return false;
  }
  --*left;
  uint8_t type = kilni_program_type_computed(e->type);
  if (e->op == KILNI_EXPR_UNARY &&
      (library_unary(e->extra, type) || e->extra >= KILN_PROGRAM_UNARY_SQRT)) {
    return false;
  }
  if (e->op == KILNI_EXPR_BINARY &&
      (library_binary(e->extra, type) || e->extra == KILN_PROGRAM_BINARY_DIV ||
       e->extra == KILN_PROGRAM_BINARY_REM)) {
    return false;
  }
  uint32_t count = kilni_program_ir_operands(ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!flow_is_simple(w, operands[i], left)) return false;
  }
  return true;
}

static bool is_simple_list(const kilni_program_lowering_t* w, uint32_t list,
                           uint32_t* left) {
  uint32_t statements = 0;
  for (uint32_t i = list; i != 0; i = w->ir->statements.items[i].next) {
    const kilni_program_statement_record_t* s = &w->ir->statements.items[i];
    uint32_t exprs[3];
    if (s->op != KILNI_STATEMENT_LET && s->op != KILNI_STATEMENT_VAR &&
        s->op != KILNI_STATEMENT_ASSIGN && s->op != KILNI_STATEMENT_STORE) {
      return false;
    }
    if (++statements > MOST_STATEMENTS) return false;
    uint32_t count = kilni_program_ir_statement_exprs(s, exprs);
    for (uint32_t k = 0; k < count; k++) {
      if (!flow_is_simple(w, exprs[k], left)) return false;
    }
  }
  return true;
}

// One side, where `c` is true or false: everything is computed, memory is
// touched only where the side is taken, and variables select what they have.
static void predicated(kilni_program_lowering_t* w, kilni_program_value_t c,
                       bool holds, uint32_t list) {
  if (list == 0) return;
  uint32_t* variables = NULL;
  uint32_t count = kilni_program_assigned(w, &list, 1, &variables);
  uint32_t facts = w->facts.count, mark = w->changes.count;
  w->predicate = holds ? c : kilni_program_unary(w, KILN_PROGRAM_UNARY_NOT, c);
  learn(w, c, holds, 0);
  kilni_program_list(w, list);
  w->facts.count = facts;
  kilni_program_value_t* after =
      kilni_program_arena_get(&w->arena, (count + 1) * sizeof(*after));
  for (uint32_t i = 0; after != NULL && i < count; i++) {
    after[i] = w->bindings[variables[i]];
  }
  w->predicate = 0;
  kilni_program_unbind(w, mark);
  for (uint32_t i = 0; after != NULL && i < count; i++) {
    kilni_program_value_t before = w->bindings[variables[i]];
    if (before == 0 || before == after[i]) continue;
    kilni_program_value_t value =
        holds ? kilni_program_select(w, c, after[i], before)
              : kilni_program_select(w, c, before, after[i]);
    kilni_program_bind(w, variables[i], value);
  }
}

static bool lower_predicated(kilni_program_lowering_t* w,
                             kilni_program_value_t c,
                             const kilni_program_statement_record_t* s) {
  uint32_t left = MOST_PREDICATED, body = s->body, other = s->other;
  if (w->together || w->predicate != 0 ||
      (w->off & KILN_PROGRAM_WITHOUT_PREDICATES) != 0 ||
      !is_simple_list(w, body, &left) || !is_simple_list(w, other, &left)) {
    return false;
  }
  predicated(w, c, true, body);
  predicated(w, c, false, other);
  return true;
}

static void lower_if(kilni_program_lowering_t* w, uint32_t index) {
  const kilni_program_statement_record_t* s = &w->ir->statements.items[index];
  kilni_program_value_t c = kilni_program_expr(w, s->a);
  uint32_t body = s->body, other = s->other;
  if (kilni_program_value_is_const(w, c)) {
    kilni_program_list(w,
                       kilni_program_value_of(w, c)->bits != 0 ? body : other);
    return;
  }
  if (lower_predicated(w, c, s)) return;
  kilni_program_value_t learned = c;
  if (w->together &&
      (kilni_program_value_of(w, c)->flags & KILNI_VALUE_UNIFORM) == 0) {
    c = agree(w, c, flow_level_of(w, index));
  }
  uint32_t lists[2] = {body, other};
  meeting_t meeting = flow_meet(w, lists, 2);
  bool has_else = other != 0 || meeting.count != 0;
  uint32_t end = kilni_program_label(w),
           otherwise = has_else ? kilni_program_label(w) : end;
  const kilni_program_here_t here = kilni_program_here_if(w, c, index);
  w->here = here.body;
  kilni_program_branch(w, otherwise, c | KILNI_NOT);
  branch(w, learned, true, body, &meeting);
  bool then_dead = w->dead != 0;
  w->dead = 0;
  if (has_else) {
    kilni_program_branch(w, end, 0);
    kilni_program_place_label(w, otherwise);
    w->here = here.other;
    branch(w, learned, false, other, &meeting);
  }
  w->here = here.behind;
  bool else_dead = w->dead != 0;
  kilni_program_place_label(w, end);
  flow_bind_all(w, &meeting, meeting.registers);
  w->dead = then_dead && else_dead;
  if (!w->together && then_dead != else_dead) {
    learn(w, learned, else_dead, 0);
  }
}

// ---- Loops ----

// Begins the region of a loop: its variables meet in registers at its head.
static meeting_t loop_begin(kilni_program_lowering_t* w, uint32_t list,
                            kilni_device_scope_t* scope) {
  uint32_t outer = w->region;
  kilni_program_region_begin(w, KILNI_REGION_LOOP);
  meeting_t meeting = flow_meet(w, &list, 1);
  uint32_t inner = w->region;
  w->region = outer;
  for (uint32_t i = 0; i < meeting.count; i++) {
    kilni_program_move(w, meeting.registers[i],
                       w->bindings[meeting.variables[i]]);
  }
  w->region = inner;
  flow_bind_all(w, &meeting, meeting.registers);
  memset(scope, 0, sizeof(*scope));
  scope->outer = w->scope;
  scope->leave = kilni_program_label(w);
  scope->again = kilni_program_label(w);
  scope->meet_count = meeting.count;
  scope->variables = meeting.variables;
  scope->meetings = meeting.registers;
  w->scope = scope;
  return meeting;
}

static void loop_body(kilni_program_lowering_t* w, uint32_t list,
                      const meeting_t* meeting, kilni_program_value_t counter,
                      kilni_program_value_t to) {
  const kilni_program_value_t here = w->here;
  kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  if (counter != 0 && !w->together) {
    uint8_t type = kilni_program_value_type(w, counter);
    if (kilni_program_type_class(type) == KILNI_CLASS_UNSIGNED ||
        kilni_program_value_of(w, counter)->most != UINT64_MAX) {
      kilni_program_fact_add(w, counter, to);
    }
  }
  uint32_t mark = w->changes.count;
  kilni_program_list(w, list);
  if (!w->dead) {
    flow_write_all(w, meeting->count, meeting->variables, meeting->registers);
    kilni_program_here_again(w, here, list);
  }
  w->dead = 0;
  kilni_program_region_end(w);
  kilni_program_unbind(w, mark);
}

// Ends the region; the variables have the values they left the loop with.
static void loop_end(kilni_program_lowering_t* w, kilni_device_scope_t* scope,
                     const meeting_t* meeting, uint32_t mark) {
  kilni_program_region_end(w);
  w->scope = scope->outer;
  kilni_program_unbind(w, mark);
  kilni_program_place_label(w, scope->leave);
  for (uint32_t i = 0; i < meeting->count; i++) {
    uint8_t type = kilni_program_value_type(w, meeting->registers[i]);
    kilni_program_value_t after = kilni_program_register(w, type);
    kilni_program_move(w, after, meeting->registers[i]);
    kilni_program_bind(w, meeting->variables[i], after);
  }
  w->epoch++;
}

// A mask that is found anew in each round is the loop's.
static void move_into_loop(kilni_program_lowering_t* w,
                           kilni_program_value_t outer_here) {
  if (w->here == 0 || w->here == outer_here) return;
  w->values.items[w->here].region = w->region;
}

static void lower_while(kilni_program_lowering_t* w, uint32_t index) {
  const kilni_program_statement_record_t* s = &w->ir->statements.items[index];
  uint32_t condition = s->a, body = s->body;
  kilni_device_scope_t scope;
  uint32_t mark = w->changes.count;
  const kilni_program_value_t outer_here = w->here;
  w->here = kilni_program_here_loop(w, body);
  meeting_t meeting = loop_begin(w, body, &scope);
  move_into_loop(w, outer_here);
  kilni_program_place_label(w, scope.again);
  kilni_program_value_t c = kilni_program_expr(w, condition);
  kilni_program_value_t learned = c;
  // Also where `c` is the same in all: nobody may be left.
  if (w->together) c = agree(w, c, flow_level_of(w, index));
  if (!kilni_program_value_is_const(w, c)) {
    kilni_program_here_round(w, c);
    kilni_program_branch(w, scope.leave, c | KILNI_NOT);
  } else if (kilni_program_value_of(w, c)->bits == 0) {
    kilni_program_branch(w, scope.leave, 0);
  }
  if (!w->together) learn(w, learned, true, 0);
  loop_body(w, body, &meeting, 0, 0);
  kilni_program_branch(w, scope.again, 0);
  loop_end(w, &scope, &meeting, mark);
  w->here = outer_here;
}

// Whether a list leaves or goes on with the loop it is the body of.
static bool jumps(const kilni_program_ir_t* ir, uint32_t list) {
  const kilni_program_statement_record_t* all = ir->statements.items;
  for (uint32_t i = list; i != 0; i = all[i].next) {
    if (all[i].op == KILNI_STATEMENT_BREAK ||
        all[i].op == KILNI_STATEMENT_CONTINUE) {
      return true;
    }
    if (all[i].op == KILNI_STATEMENT_IF &&
        (jumps(ir, all[i].body) || jumps(ir, all[i].other))) {
      return true;
    }
  }
  return false;
}

enum { MAX_UNROLL = 64 };

typedef struct for_t {
  uint32_t variable;
  uint32_t body;
  kilni_program_value_t from, to;
  uint64_t step;
  uint8_t type;
} for_t;

// How often a loop runs whose bounds are known; UINT64_MAX: not known.
static uint64_t trips_of(kilni_program_lowering_t* w, const for_t* loop) {
  if (!kilni_program_value_is_const(w, loop->from) ||
      !kilni_program_value_is_const(w, loop->to)) {
    return UINT64_MAX;
  }
  uint64_t less = 0, a = kilni_program_value_of(w, loop->from)->bits;
  uint64_t b = kilni_program_value_of(w, loop->to)->bits;
  kilni_program_fold_binary(KILN_PROGRAM_BINARY_LT, loop->type, a, b, false,
                            &less);
  if (less == 0) return 0;
  uint64_t span = b - a;
  kilni_program_fold_binary(KILN_PROGRAM_BINARY_SUB, loop->type, b, a, false,
                            &span);
  return (span - 1) / loop->step + 1;
}

static void unroll(kilni_program_lowering_t* w, const for_t* loop,
                   uint64_t trips) {
  uint64_t at = kilni_program_value_of(w, loop->from)->bits;
  for (uint64_t i = 0; i < trips && !w->dead; i++) {
    kilni_program_bind(w, loop->variable,
                       kilni_program_const(w, loop->type, at));
    kilni_program_list(w, loop->body);
    at += loop->step;
  }
}

// What is known of a counter.
static void describe_counter(kilni_program_lowering_t* w,
                             kilni_program_value_t counter, const for_t* loop) {
  kilni_program_value_record_t* record = &w->values.items[counter];
  const kilni_program_value_record_t* from =
      kilni_program_value_of(w, loop->from);
  const kilni_program_value_record_t* to = kilni_program_value_of(w, loop->to);
  if ((from->flags & to->flags & KILNI_VALUE_UNIFORM) != 0) {
    record->flags |= KILNI_VALUE_UNIFORM;
  }
  if ((w->off & KILN_PROGRAM_WITHOUT_RANGES) != 0) return;
  bool known = kilni_program_type_class(loop->type) == KILNI_CLASS_UNSIGNED ||
               (from->most != UINT64_MAX && to->most != UINT64_MAX);
  if (known && to->most != 0 && to->most - 1 < record->most) {
    record->most = to->most - 1;
  }
}

static void loop_for(kilni_program_lowering_t* w, const for_t* loop,
                     uint32_t level) {
  kilni_device_scope_t scope;
  uint32_t mark = w->changes.count;
  uint8_t type = loop->type;
  kilni_program_value_t counter = kilni_program_register(w, type), more = 0;
  kilni_program_move(w, counter, loop->from);
  if (loop->step != 1) {
    more = kilni_program_register(w, T(BOOL));
    kilni_program_move(w, more, KILNI_BIN(LT, loop->from, loop->to));
  }
  const kilni_program_value_t outer_here = w->here;
  w->here = kilni_program_here_loop(w, loop->body);
  meeting_t meeting = loop_begin(w, loop->body, &scope);
  move_into_loop(w, outer_here);
  w->values.items[counter].region = w->region;
  if (more != 0) w->values.items[more].region = w->region;
  describe_counter(w, counter, loop);
  kilni_program_bind(w, loop->variable, counter);
  uint32_t head = kilni_program_label(w);
  kilni_program_place_label(w, head);
  kilni_program_value_t c = more != 0 ? more : KILNI_BIN(LT, counter, loop->to);
  if (w->together &&
      (kilni_program_value_of(w, counter)->flags & KILNI_VALUE_UNIFORM) == 0) {
    c = agree(w, c, level);
  }
  kilni_program_here_round(w, c);
  kilni_program_branch(w, scope.leave, c | KILNI_NOT);
  loop_body(w, loop->body, &meeting, counter, loop->to);
  kilni_program_place_label(w, scope.again);
  // The next value is computed like any other small integer would be, but it
  // needs no wrapping: it is used only where it is below the end.
  uint8_t computed = kilni_program_type_computed(type);
  if (more != 0) {
    uint8_t plain = (uint8_t)kilni_program_type_unsigned(computed);
    kilni_program_value_t a = kilni_program_cast(w, computed, loop->to);
    kilni_program_value_t b = kilni_program_cast(w, computed, counter);
    kilni_program_value_t rest = KILNI_BIN(SUB, kilni_program_cast(w, plain, a),
                                           kilni_program_cast(w, plain, b));
    uint64_t top = kilni_program_type_most(plain);
    kilni_program_value_t step =
        kilni_program_const(w, plain, loop->step > top ? top : loop->step);
    kilni_program_value_t again = KILNI_BIN(GT, rest, step);
    kilni_program_move(w, more, again);
  }
  const char* add =
      kilni_program_type_bytes(computed) == 8 ? "add.u64" : "add.u32";
  kilni_program_value_t next = kilni_program_fresh(
      w, add, type, counter, kilni_program_const(w, computed, loop->step));
  kilni_program_move(w, counter, next);
  kilni_program_branch(w, head, 0);
  loop_end(w, &scope, &meeting, mark);
  w->here = outer_here;
}

static void lower_for(kilni_program_lowering_t* w, uint32_t index) {
  const kilni_program_statement_record_t* s = &w->ir->statements.items[index];
  for_t loop;
  loop.variable = w->variable_base + s->a;
  loop.body = s->body;
  loop.from = kilni_program_expr(w, s->b);
  loop.to = kilni_program_expr(w, s->c);
  loop.type = kilni_program_value_type(w, loop.from);
  loop.step =
      s->d == 0 ? 1 : kilni_program_ir_literal_bits(&w->ir->exprs.items[s->d]);
  if (loop.step == 0) loop.step = 1;
  uint64_t trips = trips_of(w, &loop);
  if (trips == 0) return;
  bool asked = (s->extra & KILNI_FOR_UNROLL) != 0 &&
               (w->off & KILN_PROGRAM_WITHOUT_UNROLLING) == 0;
  if (asked && trips <= MAX_UNROLL && !jumps(w->ir, loop.body)) {
    unroll(w, &loop, trips);
    return;
  }
  loop_for(w, &loop, flow_level_of(w, index));
}

static void leave_loop(kilni_program_lowering_t* w, bool again) {
  kilni_device_scope_t* scope = w->scope;
  while (scope != NULL && scope->is_function) scope = scope->outer;
  if (scope == NULL) return;
  flow_write_all(w, scope->meet_count, scope->variables, scope->meetings);
  kilni_program_branch(w, again ? scope->again : scope->leave, 0);
  w->dead = 1;
}

// ---- Functions ----

enum { MAX_CALLS = 64 };

static void leave_function(kilni_program_lowering_t* w,
                           kilni_program_value_t value) {
  kilni_device_scope_t* scope = w->scope;
  while (scope != NULL && !scope->is_function) scope = scope->outer;
  if (scope == NULL) {
    kilni_program_return(w);
    return;
  }
  if (scope->meet_count == 0) {  // its only return, at its end
    scope->result = value;
  } else {
    kilni_program_move(w, scope->result, value);
    kilni_program_branch(w, scope->leave, 0);
    scope->left = 1;
  }
  w->dead = 1;
}

// Binds the parameters; what they stood for before is put into `before`.
static void bind_parameters(kilni_program_lowering_t* w,
                            const kilni_program_ir_t* ir,
                            const kilni_program_function_record_t* function,
                            const kilni_program_value_t* values,
                            const uint32_t* operands, uint32_t* before) {
  const uint32_t* parameters = ir->operands.items + function->parameters;
  uint32_t* actual = before + function->parameter_count;
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    if ((parameters[i] & KILNI_PARAMETER_BUFFER) == 0) continue;
    uint32_t outer = operands[i] & ~KILNI_PARAMETER_BUFFER;
    actual[i] = w->places[outer].same;
  }
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    uint32_t parameter = parameters[i] & ~KILNI_PARAMETER_BUFFER;
    if ((parameters[i] & KILNI_PARAMETER_BUFFER) == 0) {
      kilni_program_bind(w, w->variable_base + parameter, values[i]);
    } else {
      before[i] = w->places[parameter].same;
      w->places[parameter].same = actual[i];
    }
  }
}

static void unbind_parameters(kilni_program_lowering_t* w,
                              const kilni_program_ir_t* ir,
                              const kilni_program_function_record_t* function,
                              const uint32_t* before) {
  const uint32_t* parameters = ir->operands.items + function->parameters;
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    if ((parameters[i] & KILNI_PARAMETER_BUFFER) == 0) continue;
    w->places[parameters[i] & ~KILNI_PARAMETER_BUFFER].same = before[i];
  }
}

static kilni_program_value_t call_body(
    kilni_program_lowering_t* w, uint32_t number,
    const kilni_program_function_record_t* function) {
  bool simple = w->ir != w->program || w->function_returns[number] <= 1;
  kilni_device_scope_t scope;
  memset(&scope, 0, sizeof(scope));
  scope.outer = w->scope;
  scope.is_function = 1;
  if (!simple) {
    scope.meet_count = 1;
    scope.leave = kilni_program_label(w);
    if (function->type != 0) {
      scope.result = kilni_program_register(w, function->type);
    }
    kilni_program_region_begin(w, KILNI_REGION_BRANCH);
  }
  w->scope = &scope;
  const kilni_program_value_t here = w->here;
  if (w->ir == w->program) kilni_program_private_clear(w, number);
  kilni_program_list(w, function->body);
  w->here = here;
  if (!simple) {
    kilni_program_region_end(w);
    kilni_program_place_label(w, scope.leave);
  }
  w->scope = scope.outer;
  // Code behind a thread's end is code all the same.
  w->dead = 0;
  w->epoch++;
  if (scope.result == 0 && function->type != 0) {
    return kilni_program_const(w, function->type, 0);
  }
  return scope.result;
}

static kilni_program_value_t call_of(kilni_program_lowering_t* w,
                                     const kilni_program_ir_t* ir,
                                     uint32_t number,
                                     const kilni_program_value_t* values,
                                     const uint32_t* operands) {
  const kilni_program_function_record_t* function =
      &ir->functions.items[number];
  if (w->call_depth >= MAX_CALLS) {
    kilni_program_lower_fail(w, KILN_STATUS_LIMIT_EXCEEDED,
                             "calls functions more than 64 deep", "");
    return 0;
  }
  uint32_t* before = kilni_program_arena_get(
      &w->arena, (2U * function->parameter_count + 1) * sizeof(*before));
  if (before == NULL) return 0;
  const kilni_program_ir_t* outer_ir = w->ir;
  uint32_t outer_base = w->variable_base;
  w->ir = ir;
  w->variable_base = ir == w->program ? 0 : w->library_base;
  w->call_depth++;
  bind_parameters(w, ir, function, values, operands, before);
  kilni_program_value_t result = call_body(w, number, function);
  unbind_parameters(w, ir, function, before);
  w->call_depth--;
  w->ir = outer_ir;
  w->variable_base = outer_base;
  w->stamp++;
  return result;
}

// ---- Statements ----

// What threads that have returned must not do, or could not end.
static bool needs_live(const kilni_program_lowering_t* w, uint32_t index) {
  const kilni_program_statement_record_t* s = &w->ir->statements.items[index];
  if (w->ir != w->program || w->levels[index] != KILNI_LEVEL_NONE) return false;
  switch (s->op) {
    case KILNI_STATEMENT_IF:
    case KILNI_STATEMENT_FOR:
    case KILNI_STATEMENT_WHILE:
    case KILNI_STATEMENT_TRAP:
    case KILNI_STATEMENT_EVALUATE:
      return true;
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
    case KILNI_STATEMENT_ASSIGN:
      return kilni_program_expr_waits_for_live(w, s->b);
    case KILNI_STATEMENT_STORE:
      return w->calls[s->b] || w->calls[s->c];
    default:
      return false;
  }
}

static void flow_statement(kilni_program_lowering_t* w, uint32_t index) {
  const kilni_program_statement_record_t* s = &w->ir->statements.items[index];
  kilni_program_value_t a, b;
  switch (s->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
    case KILNI_STATEMENT_ASSIGN:
      b = kilni_program_expr(w, s->b);
      kilni_program_bind(w, w->variable_base + s->a, b);
      break;
    case KILNI_STATEMENT_STORE:
      a = kilni_program_expr(w, s->b);
      b = kilni_program_expr(w, s->c);
      kilni_program_store(w, s->a, a, b, w->together ? w->live : 0);
      break;
    case KILNI_STATEMENT_EVALUATE:
      kilni_program_expr(w, s->a);
      break;
    case KILNI_STATEMENT_IF:
      lower_if(w, index);
      break;
    case KILNI_STATEMENT_FOR:
      lower_for(w, index);
      break;
    case KILNI_STATEMENT_WHILE:
      lower_while(w, index);
      break;
    case KILNI_STATEMENT_BREAK:
      leave_loop(w, false);
      break;
    case KILNI_STATEMENT_CONTINUE:
      leave_loop(w, true);
      break;
    case KILNI_STATEMENT_RETURN:
      leave_function(w, s->a != 0 ? kilni_program_expr(w, s->a) : 0);
      break;
    case KILNI_STATEMENT_BARRIER:
      kilni_program_barrier(w);
      break;
    case KILNI_STATEMENT_SUBGROUP_BARRIER:
      kilni_program_subgroup_barrier(w);
      break;
    case KILNI_STATEMENT_MATRIX:
      kilni_program_matrix(w, s);
      break;
    case KILNI_STATEMENT_GRID_BARRIER:
      kilni_program_grid_barrier(w);
      break;
    case KILNI_STATEMENT_ASYNC_COPY:
      kilni_program_async_copy(w, s);
      break;
    case KILNI_STATEMENT_ASYNC_WAIT:
      kilni_program_async_wait(w, index);
      break;
    case KILNI_STATEMENT_TRAP:
      a = kilni_program_expr(w, s->a);
      b = kilni_program_expr(w, s->b);
      kilni_program_trap(w, a, b);
      break;
    default:
      kilni_program_lower_fail(w, KILN_STATUS_INTERNAL,
                               "has an unknown statement", "");
      break;
  }
}

void kilni_program_list(kilni_program_lowering_t* w, uint32_t first) {
  const kilni_program_statement_record_t* all = w->ir->statements.items;
  for (uint32_t i = first; i != 0 && !w->dead; i = all[i].next) {
    if (w->failed != KILN_STATUS_OK) return;
    w->stamp++;
    if (w->together && needs_live(w, i)) {
      kilni_program_value_t group = kilni_program_statement_apart(w, i);
      if_live(w, i);
      kilni_program_meet_again(w, group);
    } else if (all[i].body != 0 || all[i].other != 0) {
      kilni_program_value_t group = kilni_program_statement_apart(w, i);
      flow_statement(w, i);
      kilni_program_meet_again(w, group);
    } else {
      flow_statement(w, i);
    }
    kilni_program_here_behind(w, i);
  }
}
