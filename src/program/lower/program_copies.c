// SPDX-License-Identifier: Apache-2.0
//
// program: how many copies may still be under way behind an async_wait.
//
// Each async_copy that is made of cp.async is a group of its own, and groups
// end in the order in which they began: a wait for a tag leaves those alone
// that began behind the last copy with that tag. How many these are at least,
// on every way to the wait, is found here once for each wait, before anything
// is lowered; waiting for more than that is never wrong, and is what happens
// where a program is too large to be looked through.
#include <string.h>

#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

enum {
  TAGS = 16,     // told apart
  NONE = 255,    // no copy with this tag is under way
  MOST = 7,      // as many names as there are for the instruction
  STEPS = 4096,  // statements looked at, loops over and over
};

// How many groups began behind the last one with each tag.
typedef struct since_t {
  uint8_t of[TAGS];
} since_t;

// What is known where a list is left by another way than its end.
typedef struct ways_t {
  since_t out;    // break
  since_t again;  // continue
} ways_t;

typedef struct walk_t {
  kilni_program_lowering_t* w;
  uint16_t tags[TAGS];
  uint32_t tag_count;
  uint32_t steps;
  since_t* left;  // return of the function that is looked at; NULL: program
  bool lost;
} walk_t;

static since_t copies_nothing(void) {
  since_t since;
  memset(since.of, NONE, sizeof since.of);
  return since;
}

static void copies_meet(since_t* a, const since_t* b) {
  for (uint32_t i = 0; i < TAGS; i++) {
    if (b->of[i] < a->of[i]) a->of[i] = b->of[i];
  }
}

bool kilni_program_copy_is_group(const kilni_program_lowering_t* w,
                                 const kilni_program_statement_record_t* s) {
  const kilni_program_buffer_record_t* to =
      &w->program->buffers.items[s->a & 0xffff];
  return w->sm >= 80 && to->role == KILN_PROGRAM_ROLE_SHARED &&
         kilni_program_type_bytes(to->type) >= 4;
}

static uint32_t tag_of(walk_t* walk, uint16_t tag) {
  uint32_t i = 0;
  while (i < walk->tag_count && walk->tags[i] != tag) i++;
  if (i == TAGS) {
    walk->lost = true;
    return 0;
  }
  if (i == walk->tag_count) walk->tags[walk->tag_count++] = tag;
  return i;
}

static void copies_see_copy(walk_t* walk,
                            const kilni_program_statement_record_t* s,
                            since_t* since) {
  if (!kilni_program_copy_is_group(walk->w, s)) return;
  for (uint32_t i = 0; i < TAGS; i++) {
    if (since->of[i] < MOST) since->of[i]++;
  }
  since->of[tag_of(walk, s->extra)] = 0;
}

static void see_wait(walk_t* walk, uint32_t at, uint16_t tag, since_t* since) {
  uint8_t* leaves = &walk->w->leaves[at];
  uint8_t mine = since->of[tag_of(walk, tag)];
  if (mine < *leaves) *leaves = mine;
  // What began before it has ended with it.
  for (uint32_t i = 0; i < TAGS && mine != NONE; i++) {
    if (since->of[i] >= mine) since->of[i] = NONE;
  }
}

static void copies_see_list(walk_t* walk, uint32_t list, since_t* since,
                            ways_t* ways);

static void copies_see_loop(walk_t* walk, uint32_t body, since_t* since) {
  ways_t inner = {copies_nothing(), copies_nothing()};
  since_t before = *since, after;
  do {
    before = *since;
    after = before;
    copies_see_list(walk, body, &after, &inner);
    copies_meet(since, &after);
    copies_meet(since, &inner.again);
  } while (memcmp(&before, since, sizeof before) != 0 && !walk->lost);
  copies_meet(since, &inner.out);
}

// Functions in which threads meet are called by a statement of their own.
static void copies_see_call(walk_t* walk, uint32_t expr, since_t* since) {
  const kilni_program_ir_t* ir = walk->w->program;
  const kilni_program_expr_record_t* e = &ir->exprs.items[expr];
  ways_t ways = {copies_nothing(), copies_nothing()};
  if (e->op != KILNI_EXPR_CALL || walk->lost) return;
  if (walk->w->function_levels[e->a] == KILNI_LEVEL_NONE) return;
  since_t left = copies_nothing();
  since_t* outer = walk->left;
  walk->left = &left;
  copies_see_list(walk, ir->functions.items[e->a].body, since, &ways);
  walk->left = outer;
  copies_meet(since, &left);
}

// Ways that are left (return, break) are taken to go on as well: what is
// known becomes less by that and stays true.
static void copies_see_statement(walk_t* walk, uint32_t at, since_t* since,
                                 ways_t* ways) {
  const kilni_program_statement_record_t* s =
      &walk->w->program->statements.items[at];
  since_t other = *since;
  switch (s->op) {
    case KILNI_STATEMENT_ASYNC_COPY:
      copies_see_copy(walk, s, since);
      break;
    case KILNI_STATEMENT_ASYNC_WAIT:
      see_wait(walk, at, s->extra, since);
      break;
    case KILNI_STATEMENT_LET:
    case KILNI_STATEMENT_VAR:
    case KILNI_STATEMENT_ASSIGN:
      copies_see_call(walk, s->b, since);
      break;
    case KILNI_STATEMENT_EVALUATE:
      copies_see_call(walk, s->a, since);
      break;
    case KILNI_STATEMENT_IF:
      copies_see_list(walk, s->body, since, ways);
      copies_see_list(walk, s->other, &other, ways);
      copies_meet(since, &other);
      break;
    case KILNI_STATEMENT_FOR:
    case KILNI_STATEMENT_WHILE:
      copies_see_loop(walk, s->body, since);
      break;
    case KILNI_STATEMENT_BREAK:
      copies_meet(&ways->out, since);
      break;
    case KILNI_STATEMENT_CONTINUE:
      copies_meet(&ways->again, since);
      break;
    case KILNI_STATEMENT_RETURN:
      // Who returns from the program goes along until its end.
      if (walk->left != NULL) copies_meet(walk->left, since);
      break;
    default:
      break;
  }
}

static void copies_see_list(walk_t* walk, uint32_t list, since_t* since,
                            ways_t* ways) {
  const kilni_program_statement_record_t* all =
      walk->w->program->statements.items;
  for (uint32_t i = list; i != 0 && !walk->lost; i = all[i].next) {
    if (walk->w->levels[i] == KILNI_LEVEL_NONE &&
        all[i].op != KILNI_STATEMENT_BREAK &&
        all[i].op != KILNI_STATEMENT_CONTINUE &&
        all[i].op != KILNI_STATEMENT_RETURN) {
      continue;
    }
    walk->lost = walk->lost || ++walk->steps > STEPS;
    copies_see_statement(walk, i, since, ways);
  }
}

void kilni_program_copies_survey(kilni_program_lowering_t* w) {
  const kilni_program_ir_t* ir = w->program;
  bool any = false;
  for (uint32_t i = 1; i < ir->statements.count && !any; i++) {
    const kilni_program_statement_record_t* s = &ir->statements.items[i];
    any = s->op == KILNI_STATEMENT_ASYNC_COPY &&
          kilni_program_copy_is_group(w, s);
  }
  if (!any) return;
  w->leaves = kilni_program_arena_get(&w->arena, ir->statements.count);
  if (w->leaves == NULL) {
    kilni_program_lower_fail(w, KILN_STATUS_OUT_OF_MEMORY, "", "");
    return;
  }
  memset(w->leaves, NONE, ir->statements.count);
  walk_t walk = {.w = w};
  since_t since = copies_nothing();
  ways_t ways = {copies_nothing(), copies_nothing()};
  copies_see_list(&walk, ir->body, &since, &ways);
  if (walk.lost) memset(w->leaves, 0, ir->statements.count);
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    if (w->leaves[i] != 0 && w->leaves[i] != NONE) w->copy_groups = 1;
  }
}

const char* kilni_program_copies_wait(const kilni_program_lowering_t* w,
                                      uint32_t statement) {
  static const char* const kWaits[MOST + 1] = {
      "cp.async.wait_all",     "cp.async.wait_group 1", "cp.async.wait_group 2",
      "cp.async.wait_group 3", "cp.async.wait_group 4", "cp.async.wait_group 5",
      "cp.async.wait_group 6", "cp.async.wait_group 7"};
  if (w->leaves == NULL || w->leaves[statement] == NONE) return NULL;
  return kWaits[w->leaves[statement]];
}
