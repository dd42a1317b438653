// SPDX-License-Identifier: Apache-2.0
//
// soft: two operations made one where the value between them is read nowhere
// else: addresses that are multiplied and added, sums of products (rounded
// twice all the same), and the sums that loads and stores add up themselves.
//
// What was combined still counts as what it was, and no combined operation but
// the access itself can fault, so a report names the same line. The value in
// between gets no slot.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "soft/decode/soft_lower.h"

// How far apart the two may be: what the first reads lives as long.
enum { WINDOW = 24 };

// Which source of the second operation is the value of the first.
enum { FIRST = 1, SECOND = 2, EITHER = 3 };

// The words of the result: the sources of the first and the other source of the
// second in this order, or that one first.
enum { FIRST_THEN_OTHER, OTHER_THEN_FIRST };

// thread-compatible
typedef struct rule_t {
  uint16_t second;
  uint16_t first;
  uint16_t both;
  uint8_t sources;  // of the first
  uint8_t at;
  uint8_t order;
} rule_t;

#define RULE(second, first, both, sources, at, order) \
  {KILNI_SOFT_OP_##second,                            \
   KILNI_SOFT_OP_##first,                             \
   KILNI_SOFT_OP_##both,                              \
   sources,                                           \
   at,                                                \
   order}

static const rule_t kRules[] = {
    RULE(add_b64, mul_wide_s32, mad_wide_s32, 2, EITHER, FIRST_THEN_OTHER),
    RULE(add_b64, mul_wide_u32, mad_wide_u32, 2, EITHER, FIRST_THEN_OTHER),
    RULE(add_b64, shl_b64, shl_add_b64, 2, EITHER, FIRST_THEN_OTHER),
    RULE(add_b64, mul_lo_b64, mad_lo_b64, 2, EITHER, FIRST_THEN_OTHER),
    RULE(add_b64, cvt_b64_s32, add_wide_s32, 1, EITHER, FIRST_THEN_OTHER),
    RULE(add_b64, cvt_b64_u32, add_wide_u32, 1, EITHER, FIRST_THEN_OTHER),
    RULE(add_b64, add_b64, add_add_b64, 2, EITHER, FIRST_THEN_OTHER),
    RULE(add_b32, shl_b32, shl_add_b32, 2, EITHER, FIRST_THEN_OTHER),
    RULE(add_b32, mul_lo_b32, mad_lo_b32, 2, EITHER, FIRST_THEN_OTHER),
    RULE(add_b32, add_b32, add_add_b32, 2, EITHER, FIRST_THEN_OTHER),
    RULE(add_f32, neg_f32, sub_f32, 1, EITHER, OTHER_THEN_FIRST),
    RULE(add_f32, mul_f32, mul_add_f32, 2, EITHER, FIRST_THEN_OTHER),
    RULE(add_f32, add_f32, add_add_f32, 2, EITHER, FIRST_THEN_OTHER),
    RULE(add_f32, sub_f32, diff_add_f32, 2, EITHER, FIRST_THEN_OTHER),
    RULE(sub_f32, mul_f32, mul_sub_f32, 2, FIRST, FIRST_THEN_OTHER),
    RULE(sub_f32, mul_f32, sub_mul_f32, 2, SECOND, FIRST_THEN_OTHER),
    RULE(mul_f32, mul_f32, mul_mul_f32, 2, EITHER, FIRST_THEN_OTHER),
    RULE(mul_f32, add_f32, add_mul_f32, 2, EITHER, FIRST_THEN_OTHER),
    RULE(mul_f32, sub_f32, diff_mul_f32, 2, EITHER, FIRST_THEN_OTHER),
};

enum { RULES = sizeof(kRules) / sizeof(kRules[0]) };

// one-thread
typedef struct combine_t {
  kilni_soft_lower_t* lower;
  uint32_t* uses;     // operations that read a register
  uint32_t* written;  // one more than the last operation that wrote it
  uint32_t first;     // operation of the block
} combine_t;

static void count_uses(combine_t* combine) {
  const kilni_soft_lower_t* lower = combine->lower;
  for (size_t i = 0; i < lower->low_count; i++) {
    const kilni_soft_low_t* low = &lower->lows[i];
    for (int w = 0; w < KILNI_SOFT_WORDS; w++) {
      if (low->role[w] != KILNI_SOFT_ROLE_USE &&
          low->role[w] != KILNI_SOFT_ROLE_BOTH) {
        continue;
      }
      if (low->word[w] & KILNI_SOFT_CONSTANT_WORD) continue;
      combine->uses[low->word[w]]++;
    }
  }
}

// The operation whose value word `w` of operation `at` is, if it is written
// and read nowhere else, and what it reads is still what it was; NULL if not.
static kilni_soft_low_t* source_of(const combine_t* combine, uint32_t at,
                                   int w) {
  const kilni_soft_lower_t* lower = combine->lower;
  const kilni_soft_low_t* low = &lower->lows[at];
  uint32_t word = low->word[w];
  if (low->role[w] != KILNI_SOFT_ROLE_USE) return NULL;
  if (word & KILNI_SOFT_CONSTANT_WORD) return NULL;
  const kilni_soft_vreg_t* vreg = &lower->vregs[word];
  if (vreg->is_fixed || vreg->defs != 1 || combine->uses[word] != 1) {
    return NULL;
  }
  uint32_t from = combine->written[word];
  if (from <= combine->first || at - (from - 1) > WINDOW) return NULL;
  kilni_soft_low_t* first = &lower->lows[from - 1];
  if (first->kind != KILNI_SOFT_LOW_PLAIN || first->guard != KILNI_SOFT_NONE ||
      first->role[KILNI_SOFT_WORD_D] != KILNI_SOFT_ROLE_DEF) {
    return NULL;
  }
  for (int s = KILNI_SOFT_WORD_A; s < KILNI_SOFT_WORDS; s++) {
    uint32_t read = first->word[s];
    if (first->role[s] == KILNI_SOFT_ROLE_RAW) continue;
    if (first->role[s] != KILNI_SOFT_ROLE_USE) return NULL;
    if (read & KILNI_SOFT_CONSTANT_WORD) continue;
    if (lower->vregs[read].is_fixed || combine->written[read] >= from) {
      return NULL;
    }
  }
  return first;
}

static void combine_drop(kilni_soft_low_t* low) {
  low->kind = KILNI_SOFT_LOW_NOTHING;
  memset(low->role, 0, sizeof(low->role));
}

static void combine_apply(kilni_soft_low_t* low, kilni_soft_low_t* first,
                          const rule_t* rule, uint32_t other) {
  uint32_t words[3];
  uint32_t count = 0;
  if (rule->order == OTHER_THEN_FIRST) words[count++] = other;
  for (uint32_t s = 0; s < rule->sources; s++) {
    words[count++] = first->word[KILNI_SOFT_WORD_A + s];
  }
  if (rule->order == FIRST_THEN_OTHER) words[count++] = other;
  low->op = rule->both;
  for (uint32_t s = 0; s < count; s++) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_A + s, words[s],
                        KILNI_SOFT_ROLE_USE);
  }
  combine_drop(first);
}

static bool try_rules(const combine_t* combine, uint32_t at) {
  kilni_soft_low_t* low = &combine->lower->lows[at];
  for (uint32_t r = 0; r < RULES; r++) {
    const rule_t* rule = &kRules[r];
    if (rule->second != low->op) continue;
    for (int side = FIRST; side <= SECOND; side++) {
      if (!(rule->at & side)) continue;
      int w = side == FIRST ? KILNI_SOFT_WORD_A : KILNI_SOFT_WORD_B;
      int o = side == FIRST ? KILNI_SOFT_WORD_B : KILNI_SOFT_WORD_A;
      kilni_soft_low_t* first = source_of(combine, at, w);
      if (!first || first->op != rule->first) continue;
      combine_apply(low, first, rule, low->word[o]);
      return true;
    }
  }
  return false;
}

// log2 of a constant of 1, 2, 4 or 8; KILNI_SOFT_NONE for anything else.
static uint32_t scale_of(const kilni_soft_lower_t* lower, uint32_t word) {
  if (!(word & KILNI_SOFT_CONSTANT_WORD)) return KILNI_SOFT_NONE;
  const kilni_soft_constant_t* constant =
      &lower->constants[word & ~KILNI_SOFT_CONSTANT_WORD];
  if (constant->kind != KILNI_SOFT_CONSTANT_VALUE) return KILNI_SOFT_NONE;
  for (uint32_t shift = 0; shift < 4; shift++) {
    if (constant->value == 1ull << shift) return shift;
  }
  return KILNI_SOFT_NONE;
}

// Makes the sum `first`, which is the address of the access `low`, a part of
// it.
static bool take_address(const combine_t* combine, kilni_soft_low_t* low,
                         kilni_soft_low_t* first) {
  uint32_t a = first->word[KILNI_SOFT_WORD_A];
  uint32_t b = first->word[KILNI_SOFT_WORD_B];
  uint32_t kind = KILNI_SOFT_ADDRESS_S32;
  uint32_t shift = 0;
  uint32_t base = b;
  switch (first->op) {
    case KILNI_SOFT_OP_add_b64:
      kind = KILNI_SOFT_ADDRESS_SUM;
      // A base that is the same for all lanes is worth having as the base.
      if (a & KILNI_SOFT_CONSTANT_WORD) {
        base = a;
        a = b;
      }
      break;
    case KILNI_SOFT_OP_add_wide_u32:
      kind = KILNI_SOFT_ADDRESS_U32;
      break;
    case KILNI_SOFT_OP_add_wide_s32:
      break;
    case KILNI_SOFT_OP_mad_wide_u32:
      kind = KILNI_SOFT_ADDRESS_U32;
      // fall through
    case KILNI_SOFT_OP_mad_wide_s32:
      shift = scale_of(combine->lower, b);
      base = first->word[KILNI_SOFT_WORD_C];
      if (shift == KILNI_SOFT_NONE) return false;
      break;
    default:
      return false;
  }
  low->address = KILNI_SOFT_ADDRESS_MAKE(kind, shift);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, base, KILNI_SOFT_ROLE_USE);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_C, a, KILNI_SOFT_ROLE_USE);
  combine_drop(first);
  return true;
}

static bool is_access(uint32_t op) {
  switch (op) {
#define SIZES(name)               \
  case KILNI_SOFT_OP_##name##_8:  \
  case KILNI_SOFT_OP_##name##_16: \
  case KILNI_SOFT_OP_##name##_32: \
  case KILNI_SOFT_OP_##name##_64:
    SIZES(ld_global)
    SIZES(ld_generic)
    SIZES(ld_shared)
    SIZES(st_global)
    SIZES(st_generic)
    SIZES(st_shared)
#undef SIZES
    return true;
    default:
      return false;
  }
}

static void combine_block(combine_t* combine,
                          const kilni_soft_flow_block_t* block) {
  kilni_soft_lower_t* lower = combine->lower;
  combine->first = block->first;
  for (uint32_t i = block->first; i < block->last; i++) {
    kilni_soft_low_t* low = &lower->lows[i];
    if (low->kind == KILNI_SOFT_LOW_PLAIN) {
      if (is_access(low->op)) {
        kilni_soft_low_t* first = NULL;
        if (low->address == KILNI_SOFT_ADDRESS_MAKE(KILNI_SOFT_ADDRESS_64, 0)) {
          first = source_of(combine, i, KILNI_SOFT_WORD_A);
        }
        if (first) take_address(combine, low, first);
      } else {
        try_rules(combine, i);
      }
    }
    for (int w = 0; w < KILNI_SOFT_WORDS; w++) {
      if (low->role[w] == KILNI_SOFT_ROLE_DEF ||
          low->role[w] == KILNI_SOFT_ROLE_BOTH) {
        combine->written[low->word[w]] = i + 1;
      }
    }
  }
}

kiln_status_t kilni_soft_combine(kilni_soft_lower_t* lower) {
  if (!lower->code->lanes->combines) return kiln_ok();
  size_t count = lower->vreg_count + 1;
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      lower->host->allocator, 2 * count, sizeof(uint32_t), &memory));
  combine_t combine = {
      .lower = lower, .uses = memory, .written = (uint32_t*)memory + count};
  count_uses(&combine);
  for (size_t b = 0; b < lower->block_count; b++) {
    combine_block(&combine, &lower->blocks[b]);
  }
  kilni_base_free_array(lower->host->allocator, memory, 2 * count,
                        sizeof(uint32_t));
  return kiln_ok();
}
