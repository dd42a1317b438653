// SPDX-License-Identifier: Apache-2.0
//
// program: threads of a subgroup are brought together again behind what may
// have driven them apart.
//
// Behind a branch the threads of a warp meet again by themselves, but not
// always: out of a loop that waits for memory (a compare-and-exchange until
// nobody comes between) ptxas lets those go on that are through with it
// (YIELD), so that nobody waits for ever. It takes them to have met all the
// same, and keeps what is one for all of them, such as the address of shared
// memory, in a register of the whole warp; who comes late finds another value
// there (ptxas 13.0, sm_90: an illegal instruction, or a wrong address). So
// those who went into such a statement together wait for each other behind it.
//
// Who they are is kept count of (`here`): all lanes at first, at a branch or a
// loop's round those of them that go there, as they vote. Who happens to be
// active does not do: ptxas takes the mask of a bar.warp.sync from one lane for
// all that come to it at once, so that two groups that each had found itself
// alone, and have met on the way, wait for each other's masks for ever. Only
// where lanes leave by a jump (a round that ends early, a function left in its
// middle) is it not known who stays; there it is who is active after all.
#include <string.h>

#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

enum {
  YIELDS = 1,    // a loop that waits for memory
  ATOMICS = 2,   // any atomic operation
  BREAKS = 4,    // leaves the innermost loop
  RETURNS = 8,   // leaves the function
  ENDS = 16,     // ends the thread
  GOES_ON = 32,  // begins the innermost loop's next round
  JUMPS = BREAKS | GOES_ON,
};

// What an expression does itself, and by the functions it calls. Operands stand
// in front of what they are operands of.
static uint8_t traits_of_expr(const kilni_program_lowering_t* w,
                              uint32_t expr) {
  const kilni_program_ir_t* ir = w->program;
  const kilni_program_expr_record_t* e = &ir->exprs.items[expr];
  uint32_t operands[KILNI_IR_MAX_CALL];
  uint8_t traits = 0;
  if (e->op == KILNI_EXPR_CALL) traits = w->function_traits[e->a];
  if (e->op == KILNI_EXPR_ATOMIC) {
    traits = kilni_program_atomic_waits(ir, e) ? YIELDS | ATOMICS : ATOMICS;
  }
  const uint32_t count = kilni_program_ir_operands(ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) traits |= w->expr_traits[operands[i]];
  return traits;
}

static uint8_t traits_of_values(const kilni_program_lowering_t* w,
                                const kilni_program_statement_record_t* s) {
  uint32_t exprs[3];
  uint8_t traits = 0;
  const uint32_t count = kilni_program_ir_statement_exprs(s, exprs);
  for (uint32_t i = 0; i < count; i++) traits |= w->expr_traits[exprs[i]];
  return traits;
}

static uint8_t traits_of_list(kilni_program_lowering_t* w, uint32_t list);

static uint8_t traits_of(kilni_program_lowering_t* w, uint32_t index) {
  const kilni_program_statement_record_t* s =
      &w->program->statements.items[index];
  uint8_t traits = traits_of_values(w, s);
  switch (s->op) {
    case KILNI_STATEMENT_IF:
      traits |= traits_of_list(w, s->body);
      return (uint8_t)(traits | traits_of_list(w, s->other));
    case KILNI_STATEMENT_FOR:
    case KILNI_STATEMENT_WHILE:
      traits |= traits_of_list(w, s->body);
      // Its rounds are not counted.
      if ((s->op == KILNI_STATEMENT_WHILE || (traits & JUMPS) != 0) &&
          (traits & ATOMICS) != 0) {
        traits |= YIELDS;
      }
      return (uint8_t)(traits & ~JUMPS);
    case KILNI_STATEMENT_BREAK:
      return BREAKS;
    case KILNI_STATEMENT_CONTINUE:
      return GOES_ON;
    case KILNI_STATEMENT_RETURN:
      return traits | RETURNS;
    case KILNI_STATEMENT_TRAP:
      return traits | ENDS;
    default:
      return traits;
  }
}

static uint8_t traits_of_list(kilni_program_lowering_t* w, uint32_t list) {
  uint8_t traits = 0;
  const kilni_program_statement_record_t* all = w->program->statements.items;
  for (uint32_t i = list; i != 0; i = all[i].next) {
    w->traits[i] = traits_of(w, i);
    traits |= w->traits[i];
  }
  return traits;
}

void kilni_program_together_survey(kilni_program_lowering_t* w) {
  const kilni_program_ir_t* ir = w->program;
  bool any = false, changed = true;
  for (uint32_t i = 1; i < ir->exprs.count && !any; i++) {
    any = ir->exprs.items[i].op == KILNI_EXPR_ATOMIC;
  }
  if (!any) return;
  w->traits = kilni_program_arena_get(&w->arena, ir->statements.count);
  w->expr_traits = kilni_program_arena_get(&w->arena, ir->exprs.count);
  w->function_traits =
      kilni_program_arena_get(&w->arena, ir->functions.count + 1U);
  if (w->traits == NULL || w->expr_traits == NULL ||
      w->function_traits == NULL) {
    kilni_program_lower_fail(w, KILN_STATUS_OUT_OF_MEMORY, "", "");
    return;
  }
  memset(w->traits, 0, ir->statements.count);
  memset(w->expr_traits, 0, ir->exprs.count);
  memset(w->function_traits, 0, ir->functions.count + 1U);
  // A function may be called by one that stands in front of it.
  while (changed) {
    changed = false;
    for (uint32_t i = 1; i < ir->exprs.count; i++) {
      const uint8_t traits = traits_of_expr(w, i);
      changed = changed || traits != w->expr_traits[i];
      w->expr_traits[i] = traits;
    }
    for (uint32_t f = 1; f < ir->functions.count; f++) {
      uint8_t traits = traits_of_list(w, ir->functions.items[f].body);
      traits &= (uint8_t)~RETURNS;
      changed = changed || traits != w->function_traits[f];
      w->function_traits[f] = traits;
    }
  }
  traits_of_list(w, ir->body);
}

void kilni_program_here_begin(kilni_program_lowering_t* w, bool ends) {
  // Between rounds those that have ended go their own way; of more elements
  // than one those that have them all do.
  const bool apart = w->rounds.flag != 0 && ends && !w->keeps_live;
  if (w->traits == NULL || apart || w->elements.count > 1) return;
  w->here = kilni_program_lanes(w);
}

static kilni_program_value_t together_ballot(kilni_program_lowering_t* w,
                                             kilni_program_value_t c) {
  const kilni_program_value_t operands[2] = {c, w->here};
  return kilni_program_pin_value(w, "vote.sync.ballot.b32", T(U32), 2, operands,
                                 0);
}

static bool together_is_uniform(const kilni_program_lowering_t* w,
                                kilni_program_value_t c) {
  return (kilni_program_value_of(w, c)->flags & KILNI_VALUE_UNIFORM) != 0;
}

// What leaves a list by a jump, with the lanes that do not still to come. A
// thread that ends for good is not waited for (PTX ISA, vote.sync: "all
// non-exited threads corresponding to membermask").
static uint8_t jumps_of(const kilni_program_lowering_t* w) {
  const bool stays = w->keeps_live || w->rounds.flag != 0;
  uint8_t jumps = JUMPS;
  if (stays || w->call_depth != 0) jumps |= RETURNS;
  if (stays) jumps |= ENDS;
  return jumps;
}

static uint8_t list_traits(const kilni_program_lowering_t* w, uint32_t list) {
  const kilni_program_statement_record_t* all = w->program->statements.items;
  uint8_t traits = 0;
  for (uint32_t i = list; i != 0; i = all[i].next) traits |= w->traits[i];
  return traits;
}

static bool may_drive_apart(const kilni_program_lowering_t* w, uint32_t list) {
  if (w->traits == NULL || w->ir != w->program) return false;
  return (list_traits(w, list) & YIELDS) != 0;
}

static bool leaves(const kilni_program_lowering_t* w, uint32_t list) {
  return (list_traits(w, list) & jumps_of(w)) != 0;
}

static bool is_jump(const kilni_program_statement_record_t* s) {
  return s->op == KILNI_STATEMENT_BREAK || s->op == KILNI_STATEMENT_CONTINUE ||
         s->op == KILNI_STATEMENT_RETURN || s->op == KILNI_STATEMENT_TRAP;
}

// Whether nobody comes to a list's end.
static bool all_leave(const kilni_program_lowering_t* w, uint32_t list) {
  const kilni_program_statement_record_t* all = w->program->statements.items;
  bool leave = false;
  for (uint32_t i = list; i != 0; i = all[i].next) leave = is_jump(&all[i]);
  return leave;
}

// Whether those who leave a branch do so with all who took their side of it.
static bool is_clear(const kilni_program_lowering_t* w,
                     const kilni_program_statement_record_t* s) {
  const bool some = leaves(w, s->body), others = leaves(w, s->other);
  if (some && others) return false;
  return (!some || all_leave(w, s->body)) &&
         (!others || all_leave(w, s->other));
}

static kilni_program_value_t where(kilni_program_lowering_t* w,
                                   kilni_program_value_t c, bool holds) {
  if (together_is_uniform(w, c)) return w->here;
  return together_ballot(
      w, holds ? c : kilni_program_unary(w, KILN_PROGRAM_UNARY_NOT, c));
}

kilni_program_here_t kilni_program_here_if(kilni_program_lowering_t* w,
                                           kilni_program_value_t c,
                                           uint32_t index) {
  const kilni_program_statement_record_t* s = &w->ir->statements.items[index];
  kilni_program_here_t here = {w->here, w->here, w->here};
  // Where all go along, decisions are made for all.
  if (w->here == 0 || w->together || w->ir != w->program) return here;
  bool some = leaves(w, s->body), others = leaves(w, s->other);
  here.body = here.other = 0;
  if (!is_clear(w, s)) some = others = false, here.behind = 0;
  if (others || may_drive_apart(w, s->body)) here.body = where(w, c, true);
  if (some || may_drive_apart(w, s->other)) here.other = where(w, c, false);
  if (some) here.behind = here.other;
  if (others) here.behind = here.body;
  return here;
}

void kilni_program_here_behind(kilni_program_lowering_t* w, uint32_t index) {
  if (w->here == 0 || w->together || w->ir != w->program) return;
  // Of a branch it has been found in front of it.
  if (w->program->statements.items[index].op == KILNI_STATEMENT_IF) return;
  if ((w->traits[index] & jumps_of(w)) != 0) w->here = 0;
}

kilni_program_value_t kilni_program_here_live(kilni_program_lowering_t* w,
                                              uint32_t index) {
  if (w->here == 0 || w->ir != w->program) return 0;
  if ((w->traits[index] & YIELDS) == 0) return 0;
  return together_ballot(w, w->live);
}

// Whether it is known at a loop's head who comes there: all that came last, if
// none leaves the loop; else those who are at the body's end.
static bool is_tracked(const kilni_program_lowering_t* w, uint32_t list) {
  const kilni_program_statement_record_t* all = w->program->statements.items;
  const uint8_t jumps = list_traits(w, list) & jumps_of(w);
  if ((jumps & GOES_ON) != 0) return jumps == GOES_ON;
  for (uint32_t i = list; i != 0; i = all[i].next) {
    if ((w->traits[i] & jumps_of(w)) == 0 || is_jump(&all[i])) continue;
    if (all[i].op != KILNI_STATEMENT_IF || !is_clear(w, &all[i])) return false;
  }
  return true;
}

kilni_program_value_t kilni_program_here_loop(kilni_program_lowering_t* w,
                                              uint32_t list) {
  if (w->here == 0 || !may_drive_apart(w, list)) return 0;
  if (w->together) return w->here;
  if (!is_tracked(w, list)) return 0;
  kilni_program_value_t here = kilni_program_register(w, T(U32));
  kilni_program_move(w, here, w->here);
  return here;
}

void kilni_program_here_round(kilni_program_lowering_t* w,
                              kilni_program_value_t c) {
  if (w->here == 0 || w->together || together_is_uniform(w, c)) return;
  kilni_program_move(w, w->here, together_ballot(w, c));
}

void kilni_program_here_again(kilni_program_lowering_t* w,
                              kilni_program_value_t here, uint32_t list) {
  if (here == 0 || w->here == 0 || w->here == here) return;
  if ((list_traits(w, list) & GOES_ON) == 0) {
    kilni_program_move(w, here, w->here);
  }
}

// Those who come here together, for kilni_program_meet_again.
kilni_program_value_t kilni_program_apart(kilni_program_lowering_t* w) {
  if (w->here != 0) return w->here;
  if (w->need_isa < 62) w->need_isa = 62;
  return kilni_program_pin_value(w, "activemask.b32", T(U32), 0, NULL, 0);
}

// Who leaves a statement by another way than its end does not come to the wait;
// who has ended is not waited for.
kilni_program_value_t kilni_program_statement_apart(kilni_program_lowering_t* w,
                                                    uint32_t index) {
  if (w->traits == NULL || w->ir != w->program) return 0;
  const uint8_t traits = w->traits[index];
  bool stays = !w->keeps_live || w->together;
  if (w->rounds.flag != 0) stays = false;
  if ((traits & YIELDS) == 0 || (traits & JUMPS) != 0) return 0;
  if ((traits & (RETURNS | ENDS)) != 0 && !stays) return 0;
  if ((traits & RETURNS) != 0 && w->call_depth != 0) return 0;
  return kilni_program_apart(w);
}

void kilni_program_meet_again(kilni_program_lowering_t* w,
                              kilni_program_value_t group) {
  if (group == 0 || w->dead) return;
  kilni_program_pin(w, "bar.warp.sync", KILNI_FORM_PLAIN,
                    KILNI_INSTRUCTION_PINNED, 1, &group, 0, 0);
}
