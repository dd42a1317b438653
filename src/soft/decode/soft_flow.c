// SPDX-License-Identifier: Apache-2.0
//
// soft: constants that registers always are, basic blocks, and their order.
//
// The order makes lanes reconverge early: blocks are in topological order, and
// all blocks of a loop are contiguous, disregarding the loop's own back edges,
// inner loops likewise. Running the lowest address first then never leaves a
// loop while lanes are in it, and never passes a point where diverged lanes
// reconverge (docs/internals/soft.md).
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "soft/decode/soft_lower.h"

// --- Constants ---------------------------------------------------------------

static void count_defs(kilni_soft_lower_t* lower) {
  for (size_t i = 0; i < lower->low_count; i++) {
    const kilni_soft_low_t* low = &lower->lows[i];
    for (int w = 0; w < KILNI_SOFT_WORDS; w++) {
      if (low->role[w] == KILNI_SOFT_ROLE_DEF) {
        lower->vregs[low->word[w]].defs++;
      }
      if (low->role[w] == KILNI_SOFT_ROLE_BOTH) {
        lower->vregs[low->word[w]].defs += 2;
      }
    }
  }
}

static uint32_t constant_of(const kilni_soft_lower_t* lower, uint32_t word) {
  if (word & KILNI_SOFT_CONSTANT_WORD) return word;
  return lower->vregs[word].constant;
}

// A register that is written once, with a constant, is that constant. Reading
// it before is undefined, so no order needs to be known.
static bool find_constants(kilni_soft_lower_t* lower) {
  bool found = false;
  for (size_t i = 0; i < lower->low_count; i++) {
    kilni_soft_low_t* low = &lower->lows[i];
    if ((low->op != KILNI_SOFT_OP_mov_b32 &&
         low->op != KILNI_SOFT_OP_mov_b64) ||
        low->kind != KILNI_SOFT_LOW_PLAIN || low->guard != KILNI_SOFT_NONE) {
      continue;
    }
    kilni_soft_vreg_t* d = &lower->vregs[low->word[KILNI_SOFT_WORD_D]];
    uint32_t constant = constant_of(lower, low->word[KILNI_SOFT_WORD_A]);
    if (constant == KILNI_SOFT_NONE || d->defs != 1 || d->is_fixed) continue;
    d->constant = constant;
    low->kind = KILNI_SOFT_LOW_NOTHING;
    memset(low->role, 0, sizeof(low->role));
    found = true;
  }
  return found;
}

static void use_constants(kilni_soft_lower_t* lower) {
  for (size_t i = 0; i < lower->low_count; i++) {
    kilni_soft_low_t* low = &lower->lows[i];
    for (int w = 0; w < KILNI_SOFT_WORDS; w++) {
      if (low->role[w] != KILNI_SOFT_ROLE_USE) continue;
      uint32_t constant = constant_of(lower, low->word[w]);
      if (constant != KILNI_SOFT_NONE) low->word[w] = constant;
    }
  }
}

// --- Blocks ------------------------------------------------------------------

static bool ends_block(const kilni_soft_low_t* low) {
  return low->kind == KILNI_SOFT_LOW_BRANCH ||
         low->kind == KILNI_SOFT_LOW_TABLE || low->kind == KILNI_SOFT_LOW_END;
}

// Marks the operations that open a block; `opens` has one more than there are.
static void find_leaders(const kilni_soft_lower_t* lower, uint32_t* opens) {
  opens[0] = 1;
  for (size_t i = 0; i < lower->low_count; i++) {
    const kilni_soft_low_t* low = &lower->lows[i];
    if (!ends_block(low)) continue;
    opens[i + 1] = 1;
    if (low->kind == KILNI_SOFT_LOW_BRANCH) opens[low->target] = 1;
  }
  for (size_t i = 0; i < lower->target_count; i++) opens[lower->targets[i]] = 1;
}

static void make_blocks(kilni_soft_lower_t* lower, uint32_t* block_of) {
  uint32_t count = 0;
  for (size_t i = 0; i < lower->low_count; i++) count += block_of[i];
  if (!KILNI_SOFT_GROW(lower, blocks, count, block_capacity)) return;
  lower->block_count = count;
  uint32_t at = 0;
  for (uint32_t i = 0; i < lower->low_count; i++) {
    if (block_of[i]) {
      lower->blocks[at] = (kilni_soft_flow_block_t){.first = i,
                                                    .branch = KILNI_SOFT_NONE,
                                                    .fall = KILNI_SOFT_NONE,
                                                    .place = KILNI_SOFT_NONE};
      at++;
    }
    block_of[i] = at - 1;
    lower->blocks[at - 1].last = i + 1;
  }
  for (uint32_t b = 0; b < count; b++) {
    kilni_soft_flow_block_t* block = &lower->blocks[b];
    kilni_soft_low_t* low = &lower->lows[block->last - 1];
    if (low->kind == KILNI_SOFT_LOW_BRANCH) {
      low->target = block_of[low->target];
      block->branch = low->target;
      lower->blocks[low->target].jumped = 1;
    }
    bool falls =
        low->kind != KILNI_SOFT_LOW_END && low->kind != KILNI_SOFT_LOW_TABLE &&
        (low->kind != KILNI_SOFT_LOW_BRANCH || low->guard != KILNI_SOFT_NONE);
    if (falls && b + 1 < count) block->fall = b + 1;
  }
  for (size_t i = 0; i < lower->target_count; i++) {
    lower->targets[i] = block_of[lower->targets[i]];
    lower->blocks[lower->targets[i]].jumped = 1;
  }
}

// --- Order -------------------------------------------------------------------

// A region whose blocks are to be ordered. one-thread
typedef struct region_t {
  uint32_t header;
  uint32_t first;  // places [first, last)
  uint32_t last;
} region_t;

// Work space of the ordering: one entry a block. one-thread
typedef struct order_t {
  kilni_soft_lower_t* lower;
  uint32_t* region;   // the region that a block is in
  uint32_t* number;   // of the search, 0: not seen
  uint32_t* low;      // Tarjan's
  uint32_t* next;     // successor to look at next
  uint32_t* path;     // the search's stack
  uint32_t* stack;    // of the open components
  region_t* regions;  // still to do
  uint32_t region_count;
  uint32_t region_ids;
  uint32_t counter;
} order_t;

static uint32_t successor_count(const kilni_soft_lower_t* lower, uint32_t b) {
  const kilni_soft_low_t* low = &lower->lows[lower->blocks[b].last - 1];
  return low->kind == KILNI_SOFT_LOW_TABLE ? low->word[KILNI_SOFT_WORD_C] : 2;
}

// Successors with the farthest first, so that the nearest is left for last
// and comes first in the order. NONE: there is none with this number.
static uint32_t successor(const kilni_soft_lower_t* lower, uint32_t b,
                          uint32_t at) {
  const kilni_soft_flow_block_t* block = &lower->blocks[b];
  const kilni_soft_low_t* low = &lower->lows[block->last - 1];
  if (low->kind == KILNI_SOFT_LOW_TABLE) {
    uint32_t count = low->word[KILNI_SOFT_WORD_C];
    return lower->targets[low->word[KILNI_SOFT_WORD_B] + count - 1 - at];
  }
  return at == 0 ? block->branch : block->fall;
}

// Takes the component of `b` off the stack and gives it its places.
static void close_component(order_t* order, uint32_t b, uint32_t top,
                            uint32_t at, uint32_t* inout_place) {
  uint32_t size = top - at;
  *inout_place -= size;
  if (size == 1) {
    order->lower->order[*inout_place] = b;
    order->region[b] = KILNI_SOFT_NONE;
    return;
  }
  uint32_t id = order->region_ids++;
  for (uint32_t i = at; i < top; i++) order->region[order->stack[i]] = id;
  order->regions[order->region_count++] =
      (region_t){b, *inout_place, *inout_place + size};
}

// Orders the blocks that are reached from `header` inside its region, edges
// back to the header left out.
static uint32_t order_region(order_t* order, uint32_t header, uint32_t last) {
  const kilni_soft_lower_t* lower = order->lower;
  uint32_t id = order->region[header];
  uint32_t base = order->counter;
  uint32_t place = last;
  uint32_t depth = 0;
  uint32_t top = 0;
  order->path[depth++] = header;
  order->number[header] = order->low[header] = ++order->counter;
  order->next[header] = 0;
  order->stack[top++] = header;
  while (depth) {
    uint32_t b = order->path[depth - 1];
    if (order->next[b] < successor_count(lower, b)) {
      uint32_t s = successor(lower, b, order->next[b]++);
      if (s == KILNI_SOFT_NONE || s == header || order->region[s] != id) {
        continue;
      }
      if (order->number[s] <= base) {
        order->number[s] = order->low[s] = ++order->counter;
        order->next[s] = 0;
        order->path[depth++] = s;
        order->stack[top++] = s;
      } else if (order->number[s] < order->low[b]) {
        order->low[b] = order->number[s];
      }
      continue;
    }
    depth--;
    if (order->low[b] == order->number[b]) {
      uint32_t at = top;
      do {
        at--;
      } while (order->stack[at] != b);
      close_component(order, b, top, at, &place);
      top = at;
    }
    if (depth && order->low[b] < order->low[order->path[depth - 1]]) {
      order->low[order->path[depth - 1]] = order->low[b];
    }
  }
  return place;
}

static kiln_status_t order_blocks(order_t* order) {
  kilni_soft_lower_t* lower = order->lower;
  uint32_t count = (uint32_t)lower->block_count;
  if (!KILNI_SOFT_GROW(lower, order, count, order_capacity)) {
    return lower->status;
  }
  order->region_ids = 1;
  uint32_t first = order_region(order, 0, count);
  while (order->region_count) {
    region_t region = order->regions[--order->region_count];
    order_region(order, region.header, region.last);
  }
  // Unreachable blocks got no place: they go to the end.
  lower->order_count = count - first;
  memmove(lower->order, lower->order + first,
          lower->order_count * sizeof(uint32_t));
  for (uint32_t i = 0; i < lower->order_count; i++) {
    lower->blocks[lower->order[i]].place = i;
  }
  return kiln_ok();
}

static kiln_status_t flow_choose_order(kilni_soft_lower_t* lower) {
  kiln_allocator_t allocator = lower->host->allocator;
  size_t count = lower->block_count + 1;
  void* words;
  void* regions;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, count * 6, sizeof(uint32_t), &words));
  kiln_status_t status =
      kilni_base_alloc_array(allocator, count, sizeof(region_t), &regions);
  if (kiln_status_is_ok(status)) {
    uint32_t* w = words;
    order_t order = {.lower = lower,
                     .region = w,
                     .number = w + count,
                     .low = w + 2 * count,
                     .next = w + 3 * count,
                     .path = w + 4 * count,
                     .stack = w + 5 * count,
                     .regions = regions};
    status = order_blocks(&order);
  }
  kilni_base_free_array(allocator, regions, count, sizeof(region_t));
  kilni_base_free_array(allocator, words, count * 6, sizeof(uint32_t));
  return status;
}

kiln_status_t kilni_soft_flow(kilni_soft_lower_t* lower) {
  count_defs(lower);
  for (int pass = 0; pass < 4 && find_constants(lower); pass++) {
  }
  use_constants(lower);
  size_t count = lower->low_count + 1;
  void* block_of;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(lower->host->allocator, count,
                                               sizeof(uint32_t), &block_of));
  find_leaders(lower, block_of);
  make_blocks(lower, block_of);
  kilni_base_free_array(lower->host->allocator, block_of, count,
                        sizeof(uint32_t));
  KILNI_RETURN_IF_ERROR(lower->status);
  return flow_choose_order(lower);
}
