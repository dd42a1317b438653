// SPDX-License-Identifier: Apache-2.0
//
// soft: what lanes of a warp do together when they come to it apart: by other
// masks at one place, or at other places with one mask.
//
// PTX lets the lanes of a mask wait for each other at any shuffle, vote, match
// or reduction of the same qualifiers and the same mask, as threads of a GPU
// of compute capability 7.0 or later do. Those that meet at one instruction
// become one group and run it (soft_warp.c). Those that meet at several keep
// their own: the operation is run once, by its own handler, over sources that
// are gathered from each group's registers, and its results are handed back.
#include <string.h>

#include "soft/code/soft_engine.h"
#include "soft/code/soft_function.h"
#include "soft/engine/soft_warp.h"

enum {
  PRED_SOURCE = 1,  // of the scratch frame
  PRED_RESULT = 2,
  PREDS = 3,
  SLOT_D = 0,  // slots of the scratch frame, each as wide as the widest
  SLOT_A = KILNI_SOFT_SLOT64_BYTES,
  SLOT_B = 2 * KILNI_SOFT_SLOT64_BYTES,
  SLOT_C = 3 * KILNI_SOFT_SLOT64_BYTES,
  SLOT_MASK = 4 * KILNI_SOFT_SLOT64_BYTES,
  SCRATCH_BYTES = 5 * KILNI_SOFT_SLOT64_BYTES
};

// The words of a collective: its sources, its mask and its results. one-thread
typedef struct words_t {
  uint32_t a, b, c, mask, source, d, result;  // KILNI_SOFT_NONE: none
  uint32_t wide;                              // `a` is of 64 bits
  uint32_t size;                              // instructions
} words_t;

static words_t collect_words_of(const kilni_soft_instr_t* instr) {
  words_t w = {KILNI_SOFT_NONE,
               KILNI_SOFT_NONE,
               KILNI_SOFT_NONE,
               instr->b,
               KILNI_SOFT_NONE,
               instr->d,
               KILNI_SOFT_NONE,
               0,
               1};
  switch (instr->op) {
    case KILNI_SOFT_OP_shfl:
      w.a = instr->a;
      w.b = instr->b;
      w.c = instr->c;
      w.mask = instr[1].a;
      w.result = instr[1].d;
      w.size = 2;
      return w;
    case KILNI_SOFT_OP_vote:
      w.source = instr->a;
      if (instr->aux != KILNI_SOFT_VOTE_BALLOT) {
        w.d = KILNI_SOFT_NONE;
        w.result = instr->d;
      }
      return w;
    case KILNI_SOFT_OP_match:
      w.a = instr->a;
      w.wide = instr->aux & 2u;
      w.result = instr->c;
      return w;
    case KILNI_SOFT_OP_elect:
      w.result = instr->c;
      return w;
    default:
      w.a = instr->a;
      return w;
  }
}

static void* collect_slot_of(const kilni_soft_frame_t* frame, uint32_t word) {
  uint8_t* area =
      word & KILNI_SOFT_AREA_CONSTANT ? frame->constants : frame->slots;
  return area + (word & ~63u);
}

static void copy_lanes(uint8_t* to, const uint8_t* from, uint32_t mask,
                       uint32_t bytes) {
  for (; mask; mask &= mask - 1) {
    size_t at = (size_t)bytes * (unsigned)__builtin_ctz(mask);
    memcpy(to + at, from + at, bytes);
  }
}

static void take_slot(uint8_t* scratch, const kilni_soft_group_t* g,
                      uint32_t word, uint32_t bytes) {
  if (word == KILNI_SOFT_NONE) return;
  copy_lanes(scratch, collect_slot_of(g->frame, word), g->mask, bytes);
}

// The sources of one group's lanes into the scratch frame.
static void collect_take(uint8_t* scratch, uint32_t* pred,
                         const kilni_soft_group_t* g) {
  words_t w = collect_words_of(g->pc);
  take_slot(scratch + SLOT_A, g, w.a, w.wide ? 8 : 4);
  take_slot(scratch + SLOT_B, g, w.b, 4);
  take_slot(scratch + SLOT_C, g, w.c, 4);
  take_slot(scratch + SLOT_MASK, g, w.mask, 4);
  if (w.source == KILNI_SOFT_NONE) return;
  uint32_t value = g->frame->pred[w.source & ~KILNI_SOFT_PRED_NEGATED] ^
                   (0u - (w.source >> 31));
  pred[PRED_SOURCE] = (pred[PRED_SOURCE] & ~g->mask) | (value & g->mask);
}

// The results to one group's lanes, which then go on.
static void collect_give(const uint8_t* scratch, const uint32_t* pred,
                         kilni_soft_group_t* g) {
  words_t w = collect_words_of(g->pc);
  if (w.d != KILNI_SOFT_NONE) {
    copy_lanes(collect_slot_of(g->frame, w.d), scratch + SLOT_D, g->mask, 4);
  }
  if (w.result != KILNI_SOFT_NONE) {
    uint32_t* p = &g->frame->pred[w.result];
    *p = (*p & ~g->mask) | (pred[PRED_RESULT] & g->mask);
  }
  g->state = KILNI_SOFT_READY;
  g->pc += w.size;
}

// The instruction of `like` over the scratch frame.
static void make_instr(const kilni_soft_instr_t* like,
                       kilni_soft_instr_t out[2]) {
  words_t w = collect_words_of(like);
  memset(out, 0, 2 * sizeof(*out));
  out[0].fn = like->fn;
  out[0].op = like->op;
  out[0].aux = like->aux;
  out[0].d = w.d == KILNI_SOFT_NONE ? PRED_RESULT : SLOT_D;
  out[0].a = w.a == KILNI_SOFT_NONE ? PRED_SOURCE : SLOT_A;
  out[0].b = SLOT_MASK;
  out[0].c = PRED_RESULT;
  if (like->op != KILNI_SOFT_OP_shfl) return;
  out[0].b = SLOT_B;
  out[0].c = SLOT_C;
  out[1].d = PRED_RESULT;
  out[1].a = SLOT_MASK;
}

// Same operation, same qualifiers, same mask.
static bool collect_fits(const kilni_soft_group_t* a,
                         const kilni_soft_group_t* b) {
  return b->state == KILNI_SOFT_COLLECTING && a->want == b->want &&
         a->pc->op == b->pc->op && a->pc->aux == b->pc->aux;
}

// Operations on matrices are of one instruction alone, as .aligned requires.
static bool meets_apart(uint32_t op) {
  switch (op) {
    case KILNI_SOFT_OP_shfl:
    case KILNI_SOFT_OP_vote:
    case KILNI_SOFT_OP_match:
    case KILNI_SOFT_OP_redux:
    case KILNI_SOFT_OP_elect:
      return true;
    default:
      return false;
  }
}

bool kilni_soft_collect_apart(kilni_soft_run_t* run, uint32_t index) {
  const kilni_soft_group_t like = run->groups[index];
  if (!meets_apart(like.pc->op)) return false;
  uint32_t there = 0;
  for (uint32_t i = 0; i < run->group_count; i++) {
    if (collect_fits(&like, &run->groups[i])) there |= run->groups[i].mask;
  }
  if (like.want & run->alive & ~there) return false;
  _Alignas(64) uint8_t scratch[SCRATCH_BYTES];
  uint32_t pred[PREDS] = {KILNI_SOFT_FULL_MASK, 0, 0};
  kilni_soft_instr_t instr[2];
  memset(scratch, 0, sizeof(scratch));
  make_instr(like.pc, instr);
  for (uint32_t i = 0; i < run->group_count; i++) {
    if (collect_fits(&like, &run->groups[i])) {
      collect_take(scratch, pred, &run->groups[i]);
    }
  }
  kilni_soft_warp_t saved = run->warp;
  run->warp.area[0] = scratch;
  run->warp.area[1] = scratch;
  run->warp.pred = pred;
  run->warp.mask = there;
  instr->fn(&run->warp, instr);
  run->warp = saved;
  for (uint32_t i = 0; i < run->group_count; i++) {
    if (collect_fits(&like, &run->groups[i])) {
      collect_give(scratch, pred, &run->groups[i]);
    }
  }
  return true;
}

uint32_t kilni_soft_same_lanes(const kilni_soft_warp_t* warp, uint32_t word) {
  if (word & KILNI_SOFT_AREA_CONSTANT) return warp->mask;
  const uint32_t* values = kilni_soft_slot(warp, word);
  uint32_t first = values[__builtin_ctz(warp->mask)];
  uint32_t same = 0;
  for (uint32_t m = warp->mask; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    if (values[lane] == first) same |= 1u << lane;
  }
  return same;
}

void kilni_soft_part(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                     uint32_t same) {
  if (same == run->warp.mask) return;
  kilni_soft_flush(run);
  kilni_soft_group_t* rest = &run->groups[run->group_count++];
  *rest = run->groups[run->current];
  rest->pc = instr;
  rest->mask = run->warp.mask & ~same;
  rest->state = KILNI_SOFT_READY;
  run->groups[run->current].mask = same;
  run->warp.mask = same;
}
