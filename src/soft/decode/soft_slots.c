// SPDX-License-Identifier: Apache-2.0
//
// soft: places for virtual registers, shared by those that never live at the
// same time.
//
// A lane's part of a slot is written by that lane alone (every write goes
// through the mask), so what counts is the liveness of one thread: lanes that
// wait elsewhere keep their values. Registers live from their first to their
// last mention in the new block order, stretched over every block that they
// live through.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "soft/decode/soft_lower.h"

enum { LIVE_BYTES_MAX = 512 << 20 };

// Where a register lives: positions 2i (reads) and 2i + 1 (writes) of
// operation i in the new order. one-thread
typedef struct interval_t {
  uint32_t start;
  uint32_t end;
  uint32_t vreg;
} interval_t;

// one-thread
typedef struct slots_t {
  kilni_soft_lower_t* lower;
  interval_t* intervals;  // of each vreg; start > end: never mentioned
  uint32_t* number;       // of a register that crosses blocks, or NONE
  uint32_t* crossing;     // the registers with a number
  uint32_t crossing_count;
  size_t words;       // of a set
  uint64_t* live_in;  // of each place
  uint64_t* live_out;
  uint32_t* start;  // of each place: its first position / 2
} slots_t;

// The register that word `w` mentions; NONE where it mentions none that needs
// a place.
static uint32_t mentioned(const kilni_soft_lower_t* lower,
                          const kilni_soft_low_t* low, int w) {
  uint32_t word = low->word[w];
  switch (low->role[w]) {
    case KILNI_SOFT_ROLE_USE:
      if (word & KILNI_SOFT_CONSTANT_WORD) return KILNI_SOFT_NONE;
      break;
    case KILNI_SOFT_ROLE_DEF:
    case KILNI_SOFT_ROLE_BOTH:
      break;
    case KILNI_SOFT_ROLE_USE_PRED:
    case KILNI_SOFT_ROLE_DEF_PRED:
      word &= ~KILNI_SOFT_PRED_NEGATED;
      break;
    default:
      return KILNI_SOFT_NONE;
  }
  if (word == 0 || lower->vregs[word].is_fixed) return KILNI_SOFT_NONE;
  return word;
}

static uint32_t guard_vreg(const kilni_soft_low_t* low) {
  if (low->guard == KILNI_SOFT_NONE) return KILNI_SOFT_NONE;
  return low->guard & ~KILNI_SOFT_PRED_NEGATED;
}

static bool slots_reads(const kilni_soft_low_t* low, int w) {
  return low->role[w] == KILNI_SOFT_ROLE_USE ||
         low->role[w] == KILNI_SOFT_ROLE_BOTH ||
         low->role[w] == KILNI_SOFT_ROLE_USE_PRED;
}

// A write that leaves nothing of the old value. Under a guard it is not one,
// except for temporaries, which are only read under the same guard.
static bool kills(const kilni_soft_lower_t* lower, const kilni_soft_low_t* low,
                  int w) {
  if (low->role[w] != KILNI_SOFT_ROLE_DEF &&
      low->role[w] != KILNI_SOFT_ROLE_DEF_PRED) {
    return false;
  }
  return low->guard == KILNI_SOFT_NONE || lower->vregs[low->word[w]].is_temp;
}

static bool writes(const kilni_soft_low_t* low, int w) {
  return low->role[w] == KILNI_SOFT_ROLE_DEF ||
         low->role[w] == KILNI_SOFT_ROLE_DEF_PRED ||
         low->role[w] == KILNI_SOFT_ROLE_BOTH;
}

static void slots_touch(slots_t* slots, uint32_t vreg, uint32_t position) {
  interval_t* interval = &slots->intervals[vreg];
  if (position < interval->start) interval->start = position;
  if (position > interval->end) interval->end = position;
}

static void touch_operation(slots_t* slots, const kilni_soft_low_t* low,
                            uint32_t at) {
  uint32_t guard = guard_vreg(low);
  if (guard != KILNI_SOFT_NONE) slots_touch(slots, guard, 2 * at);
  for (int w = 0; w < KILNI_SOFT_WORDS; w++) {
    uint32_t vreg = mentioned(slots->lower, low, w);
    if (vreg == KILNI_SOFT_NONE) continue;
    if (slots_reads(low, w)) slots_touch(slots, vreg, 2 * at);
    if (writes(low, w)) slots_touch(slots, vreg, 2 * at + 1);
  }
}

// First mentions, and which registers are read in a block that has not written
// them before: only those can live across blocks.
static void slots_scan(slots_t* slots, uint32_t* killed_in) {
  kilni_soft_lower_t* lower = slots->lower;
  uint32_t at = 0;
  for (uint32_t p = 0; p < lower->order_count; p++) {
    const kilni_soft_flow_block_t* block = &lower->blocks[lower->order[p]];
    slots->start[p] = at;
    for (uint32_t i = block->first; i < block->last; i++, at++) {
      const kilni_soft_low_t* low = &lower->lows[i];
      touch_operation(slots, low, at);
      uint32_t guard = guard_vreg(low);
      for (int w = -1; w < KILNI_SOFT_WORDS; w++) {
        uint32_t vreg = w < 0 ? guard : mentioned(lower, low, w);
        if (vreg == KILNI_SOFT_NONE || (w >= 0 && kills(lower, low, w))) {
          continue;
        }
        if (killed_in[vreg] == p + 1) continue;
        if (slots->number[vreg] != KILNI_SOFT_NONE) continue;
        slots->number[vreg] = slots->crossing_count;
        slots->crossing[slots->crossing_count++] = vreg;
      }
      for (int w = 0; w < KILNI_SOFT_WORDS; w++) {
        uint32_t vreg = mentioned(lower, low, w);
        if (vreg != KILNI_SOFT_NONE && kills(lower, low, w)) {
          killed_in[vreg] = p + 1;
        }
      }
    }
  }
  slots->start[lower->order_count] = at;
}

static void set_bit(uint64_t* set, uint32_t bit) {
  set[bit / 64] |= 1ull << (bit % 64);
}
static void clear_bit(uint64_t* set, uint32_t bit) {
  set[bit / 64] &= ~(1ull << (bit % 64));
}

// live_in of a place from its live_out, by walking its operations back.
static bool walk_back(slots_t* slots, uint32_t p, uint64_t* set) {
  const kilni_soft_lower_t* lower = slots->lower;
  const kilni_soft_flow_block_t* block = &lower->blocks[lower->order[p]];
  memcpy(set, slots->live_out + p * slots->words, slots->words * 8);
  for (uint32_t i = block->last; i-- > block->first;) {
    const kilni_soft_low_t* low = &lower->lows[i];
    for (int w = 0; w < KILNI_SOFT_WORDS; w++) {
      uint32_t vreg = mentioned(lower, low, w);
      if (vreg == KILNI_SOFT_NONE || !kills(lower, low, w)) continue;
      if (slots->number[vreg] != KILNI_SOFT_NONE) {
        clear_bit(set, slots->number[vreg]);
      }
    }
    for (int w = -1; w < KILNI_SOFT_WORDS; w++) {
      uint32_t vreg = w < 0 ? guard_vreg(low) : mentioned(lower, low, w);
      if (vreg == KILNI_SOFT_NONE || (w >= 0 && kills(lower, low, w))) continue;
      if (slots->number[vreg] != KILNI_SOFT_NONE) {
        set_bit(set, slots->number[vreg]);
      }
    }
  }
  uint64_t* in = slots->live_in + p * slots->words;
  if (memcmp(in, set, slots->words * 8) == 0) return false;
  memcpy(in, set, slots->words * 8);
  return true;
}

static void join_successor(slots_t* slots, uint32_t p, uint32_t block) {
  if (block == KILNI_SOFT_NONE) return;
  uint32_t s = slots->lower->blocks[block].place;
  uint64_t* out = slots->live_out + p * slots->words;
  const uint64_t* in = slots->live_in + s * slots->words;
  for (size_t i = 0; i < slots->words; i++) out[i] |= in[i];
}

static void join_successors(slots_t* slots, uint32_t p) {
  const kilni_soft_lower_t* lower = slots->lower;
  const kilni_soft_flow_block_t* block = &lower->blocks[lower->order[p]];
  const kilni_soft_low_t* low = &lower->lows[block->last - 1];
  join_successor(slots, p, block->branch);
  join_successor(slots, p, block->fall);
  if (low->kind != KILNI_SOFT_LOW_TABLE) return;
  for (uint32_t i = 0; i < low->word[KILNI_SOFT_WORD_C]; i++) {
    join_successor(slots, p, lower->targets[low->word[KILNI_SOFT_WORD_B] + i]);
  }
}

static void flow(slots_t* slots, uint64_t* set) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t p = (uint32_t)slots->lower->order_count; p-- > 0;) {
      join_successors(slots, p);
      if (walk_back(slots, p, set)) again = true;
    }
  }
}

static void stretch(slots_t* slots) {
  for (uint32_t p = 0; p < slots->lower->order_count; p++) {
    for (uint32_t n = 0; n < slots->crossing_count; n++) {
      size_t at = p * slots->words + n / 64;
      uint64_t bit = 1ull << (n % 64);
      uint32_t vreg = slots->crossing[n];
      if (slots->live_in[at] & bit) {
        slots_touch(slots, vreg, 2 * slots->start[p]);
      }
      if (slots->live_out[at] & bit) {
        slots_touch(slots, vreg, 2 * slots->start[p + 1] - 1);
      }
    }
  }
}

static kiln_status_t liveness(slots_t* slots) {
  kilni_soft_lower_t* lower = slots->lower;
  kiln_allocator_t allocator = lower->host->allocator;
  slots->words = (slots->crossing_count + 63) / 64;
  size_t places = lower->order_count;
  size_t count = (places * 2 + 1) * slots->words + 1;
  if (count * 8 > LIVE_BYTES_MAX) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED,
                   "function \"%s\" has too many registers and blocks: %u "
                   "registers live across %zu blocks",
                   lower->source->name, slots->crossing_count, places),
        "split the function");
  }
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, count, 8, &memory));
  slots->live_in = memory;
  slots->live_out = slots->live_in + places * slots->words;
  if (slots->words) {
    flow(slots, slots->live_out + places * slots->words);
    stretch(slots);
  }
  kilni_base_free_array(allocator, memory, count, 8);
  return kiln_ok();
}

static int by_start(const void* a, const void* b) {
  const interval_t* x = a;
  const interval_t* y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return (x->vreg > y->vreg) - (x->vreg < y->vreg);
}

// A heap of slots in use, by when they become free. one-thread
typedef struct busy_t {
  uint64_t* items;  // end << 32 | slot
  uint32_t count;
  uint32_t slots;
} busy_t;

static void busy_push(busy_t* busy, uint64_t item) {
  uint32_t i = busy->count++;
  while (i && busy->items[(i - 1) / 2] > item) {
    busy->items[i] = busy->items[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  busy->items[i] = item;
}

static uint64_t busy_pop(busy_t* busy) {
  uint64_t first = busy->items[0];
  uint64_t item = busy->items[--busy->count];
  uint32_t i = 0;
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= busy->count) break;
    if (child + 1 < busy->count &&
        busy->items[child + 1] < busy->items[child]) {
      child++;
    }
    if (busy->items[child] >= item) break;
    busy->items[i] = busy->items[child];
    i = child;
  }
  busy->items[i] = item;
  return first;
}

static void give_slots(slots_t* slots, busy_t busy[3]) {
  kilni_soft_lower_t* lower = slots->lower;
  size_t count = lower->vreg_count;
  qsort(slots->intervals, count, sizeof(interval_t), by_start);
  for (size_t i = 0; i < count; i++) {
    const interval_t* interval = &slots->intervals[i];
    if (interval->start > interval->end) break;  // the rest is not mentioned
    kilni_soft_vreg_t* vreg = &lower->vregs[interval->vreg];
    busy_t* b = &busy[vreg->class_];
    if (b->count && (b->items[0] >> 32) < interval->start) {
      vreg->slot = (uint32_t)busy_pop(b);
    } else {
      vreg->slot = b->slots++;
    }
    busy_push(b, (uint64_t)interval->end << 32 | vreg->slot);
  }
  kilni_soft_function_t* out = lower->out;
  out->wide_begin = busy[0].slots * (uint32_t)KILNI_SOFT_SLOT32_BYTES;
  out->wide_end =
      out->wide_begin + busy[1].slots * (uint32_t)KILNI_SOFT_SLOT64_BYTES;
  out->frame_bytes =
      out->wide_end + lower->fixed_words * (uint32_t)KILNI_SOFT_SLOT32_BYTES;
  out->pred_count = busy[2].slots + 1;
  out->register_count = busy[0].slots + 2 * busy[1].slots;
}

static kiln_status_t slots_run(slots_t* slots, uint32_t* words,
                               uint64_t* items) {
  kilni_soft_lower_t* lower = slots->lower;
  size_t count = lower->vreg_count;
  slots->number = words;
  slots->crossing = words + count;
  slots->start = words + 3 * count;
  memset(slots->number, 0xff, count * sizeof(uint32_t));
  for (uint32_t i = 0; i < count; i++) {
    slots->intervals[i] = (interval_t){UINT32_MAX, 0, i};
  }
  slots_scan(slots, words + 2 * count);
  KILNI_RETURN_IF_ERROR(liveness(slots));
  busy_t busy[3] = {
      {.items = items}, {.items = items + count}, {.items = items + 2 * count}};
  give_slots(slots, busy);
  if (lower->out->pred_count > 0x7fff ||
      (uint64_t)lower->out->register_count * KILNI_SOFT_SLOT32_BYTES >
          (64u << 20)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "function \"%s\" needs %u registers at once",
                   lower->source->name, lower->out->register_count),
        "split the function");
  }
  return kiln_ok();
}

kiln_status_t kilni_soft_slots(kilni_soft_lower_t* lower) {
  kiln_allocator_t allocator = lower->host->allocator;
  size_t count = lower->vreg_count;
  size_t word_count = 3 * count + lower->order_count + 1;
  slots_t slots = {.lower = lower};
  void* intervals = NULL;
  void* words = NULL;
  void* items = NULL;
  kiln_status_t status =
      kilni_base_alloc_array(allocator, count, sizeof(interval_t), &intervals);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(allocator, word_count, 4, &words);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(allocator, 3 * count, 8, &items);
  }
  if (kiln_status_is_ok(status)) {
    slots.intervals = intervals;
    status = slots_run(&slots, words, items);
  }
  kilni_base_free_array(allocator, items, 3 * count, 8);
  kilni_base_free_array(allocator, words, word_count, 4);
  kilni_base_free_array(allocator, intervals, count, sizeof(interval_t));
  return status;
}
