// SPDX-License-Identifier: Apache-2.0
//
// soft: what the instructions that count a block count, by class: for the
// breakdown that a launch may be asked for (soft_profile.c).
//
// The tallies are beside the code and are read only then.
#include "base/alloc.h"
#include "base/status_make.h"
#include "kiln/soft.h"
#include "soft/decode/soft_lower.h"
#include "soft/decode/soft_tally.h"

#define KILNI_SOFT_FAMILY(family, class_) \
  FAMILY_##family = KILN_SOFT_CLASS_##class_,
#define KILNI_SOFT_APART(id, class_)
enum {
#include "soft/code/soft_class.inc"
};
#undef KILNI_SOFT_APART
#undef KILNI_SOFT_FAMILY

static const uint8_t kFamilyClass[] = {
#define KILNI_SOFT_OP(id, family, signature, forms) \
  [KILNI_SOFT_OP_##id] = FAMILY_##family,
#include "soft/code/soft_ops_alu.inc"
#include "soft/code/soft_ops_core.inc"
#undef KILNI_SOFT_OP
};

// The class of an operation.
static uint32_t tally_class_of(uint32_t op) {
  switch (op) {
#define KILNI_SOFT_FAMILY(family, class_)
#define KILNI_SOFT_APART(id, class_) \
  case KILNI_SOFT_OP_##id:           \
    return KILN_SOFT_CLASS_##class_;
#include "soft/code/soft_class.inc"
#undef KILNI_SOFT_APART
#undef KILNI_SOFT_FAMILY
    default:
      return kFamilyClass[op];
  }
}

void kilni_soft_tally_name(kilni_soft_lower_t* lower, size_t first) {
  if (first >= lower->low_count) return;
  kilni_soft_low_t* low = &lower->lows[first];
  low->class_ = (uint8_t)tally_class_of(low->op);
  // Addresses and parts of registers are made before what they are for.
  for (size_t i = first;
       i < lower->low_count && low->class_ == KILN_SOFT_CLASS_MOVE; i++) {
    low->class_ = (uint8_t)tally_class_of(lower->lows[i].op);
  }
}

kiln_status_t kilni_soft_tally_init(kilni_soft_lower_t* lower,
                                    size_t instructions,
                                    kilni_soft_tallies_t* out_tallies) {
  kiln_allocator_t allocator = lower->host->allocator;
  void* memory;
  // At most one of each operation, and one more of each guarded one.
  *out_tallies = (kilni_soft_tallies_t){.capacity = 2 * lower->low_count + 1};
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, out_tallies->capacity, sizeof(kilni_soft_tally_t), &memory));
  out_tallies->all = memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, instructions,
                                               sizeof(uint32_t), &memory));
  lower->out->tally_ends = memory;
  return kiln_ok();
}

void kilni_soft_tally_deinit(kilni_soft_lower_t* lower,
                             kilni_soft_tallies_t* tallies) {
  kilni_base_free_array(lower->host->allocator, tallies->all, tallies->capacity,
                        sizeof(kilni_soft_tally_t));
}

void kilni_soft_tally_add(kilni_soft_tallies_t* tallies, uint32_t class_,
                          uint32_t count) {
  if (count == 0) return;
  for (uint32_t i = tallies->open; i < tallies->count; i++) {
    if (tallies->all[i].class_ != class_) continue;
    tallies->all[i].count += count;
    return;
  }
  if (tallies->count == tallies->capacity) return;  // cannot be
  tallies->all[tallies->count++] = (kilni_soft_tally_t){class_, count};
}

// What `count` counts follows it, under its guard.
void kilni_soft_tally_guarded(kilni_soft_tallies_t* tallies,
                              const kilni_soft_lower_t* lower, uint32_t at,
                              uint32_t last) {
  const kilni_soft_low_t* count = &lower->lows[at];
  uint32_t left = count->word[KILNI_SOFT_WORD_AUX];
  for (uint32_t i = at + 1; i < last && left; i++) {
    const kilni_soft_low_t* low = &lower->lows[i];
    if (!low->guarded || low->guard != count->guard) continue;
    kilni_soft_tally_add(tallies, low->class_, 1);
    left--;
  }
  kilni_soft_tally_add(tallies, KILN_SOFT_CLASS_MOVE, left);
}
