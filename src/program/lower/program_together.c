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
#include <string.h>

#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

enum {
  YIELDS = 1,   // a loop that waits for memory
  ATOMICS = 2,  // any atomic operation
  BREAKS = 4,   // leaves the innermost loop, or begins its next round
  RETURNS = 8,  // leaves the function
  ENDS = 16,    // ends the thread
};

static uint8_t traits_of_value(const kilni_lowering_t* w, uint32_t expr) {
  const kilni_expr_record_t* e = &w->program->exprs.items[expr];
  if (e->op == KILNI_EXPR_CALL) return w->function_traits[e->a];
  if (e->op != KILNI_EXPR_ATOMIC) return 0;
  return kilni_atomic_waits(w->program, e) ? YIELDS | ATOMICS : ATOMICS;
}

static uint8_t traits_of_list(kilni_lowering_t* w, uint32_t list);

static uint8_t traits_of(kilni_lowering_t* w, uint32_t index) {
  const kilni_statement_record_t* s = &w->program->statements.items[index];
  uint8_t traits = 0;
  switch (s->op) {
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
    case KILNI_STATEMENT_ASSIGN:
      return traits_of_value(w, s->b);
    case KILNI_STATEMENT_EVALUATE:
      return traits_of_value(w, s->a);
    case KILNI_STATEMENT_IF:
      traits = traits_of_list(w, s->body);
      return (uint8_t)(traits | traits_of_list(w, s->other));
    case KILNI_STATEMENT_FOR:
    case KILNI_STATEMENT_WHILE:
      traits = traits_of_list(w, s->body);
      // Its rounds are not counted.
      if ((s->op == KILNI_STATEMENT_WHILE || (traits & BREAKS) != 0) &&
          (traits & ATOMICS) != 0) {
        traits |= YIELDS;
      }
      return (uint8_t)(traits & ~BREAKS);
    case KILNI_STATEMENT_BREAK:
    case KILNI_STATEMENT_CONTINUE:
      return BREAKS;
    case KILNI_STATEMENT_RETURN:
      return RETURNS;
    case KILNI_STATEMENT_TRAP:
      return ENDS;
    default:
      return 0;
  }
}

static uint8_t traits_of_list(kilni_lowering_t* w, uint32_t list) {
  uint8_t traits = 0;
  const kilni_statement_record_t* all = w->program->statements.items;
  for (uint32_t i = list; i != 0; i = all[i].next) {
    w->traits[i] = traits_of(w, i);
    traits |= w->traits[i];
  }
  return traits;
}

void kilni_together_survey(kilni_lowering_t* w) {
  const kilni_ir_t* ir = w->program;
  bool any = false, changed = true;
  for (uint32_t i = 1; i < ir->exprs.count && !any; i++) {
    any = ir->exprs.items[i].op == KILNI_EXPR_ATOMIC;
  }
  if (!any) return;
  w->traits = kilni_arena_get(&w->arena, ir->statements.count);
  w->function_traits = kilni_arena_get(&w->arena, ir->functions.count + 1U);
  if (w->traits == NULL || w->function_traits == NULL) {
    kilni_lower_fail(w, KILN_STATUS_OUT_OF_MEMORY, "", "");
    return;
  }
  memset(w->traits, 0, ir->statements.count);
  memset(w->function_traits, 0, ir->functions.count + 1U);
  // A function may be called by one that stands in front of it.
  while (changed) {
    changed = false;
    for (uint32_t f = 1; f < ir->functions.count; f++) {
      uint8_t traits = traits_of_list(w, ir->functions.items[f].body);
      traits &= (uint8_t)~RETURNS;
      changed = changed || traits != w->function_traits[f];
      w->function_traits[f] = traits;
    }
  }
  traits_of_list(w, ir->body);
}

kilni_value_t kilni_apart(kilni_lowering_t* w) {
  if (w->need_isa < 62) w->need_isa = 62;
  return kilni_pin_value(w, "activemask.b32", T(U32), 0, NULL, 0);
}

// Who leaves a statement by another way than its end does not come to the wait;
// who has ended is not waited for.
kilni_value_t kilni_statement_apart(kilni_lowering_t* w, uint32_t index) {
  if (w->traits == NULL || w->ir != w->program) return 0;
  const uint8_t traits = w->traits[index];
  bool stays = !w->keeps_live || w->together;
  if (w->rounds.flag != 0) stays = false;
  if ((traits & YIELDS) == 0 || (traits & BREAKS) != 0) return 0;
  if ((traits & (RETURNS | ENDS)) != 0 && !stays) return 0;
  if ((traits & RETURNS) != 0 && w->call_depth != 0) return 0;
  return kilni_apart(w);
}

void kilni_meet_again(kilni_lowering_t* w, kilni_value_t group) {
  if (group == 0 || w->dead) return;
  kilni_pin(w, "bar.warp.sync", KILNI_FORM_PLAIN, KILNI_INSTRUCTION_PINNED, 1,
            &group, 0, 0);
}
