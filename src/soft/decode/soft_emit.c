// SPDX-License-Identifier: Apache-2.0
//
// soft: writing the decoded function: sorted blocks, joins where control falls
// into a block that others jump to, words as the engine reads them.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "kiln/soft.h"
#include "soft/decode/soft_lower.h"
#include "soft/decode/soft_tally.h"

// one-thread
typedef struct emit_t {
  kilni_soft_lower_t* lower;
  kilni_soft_function_t* out;
  const kilni_soft_lane_set_t* lanes;
  uint32_t* starts;     // of each place: where branches to it go
  size_t out_capacity;  // instructions
  uint32_t running;     // PTX instructions of the block, not yet counted
  kilni_soft_tallies_t tallies;  // the same by class
} emit_t;

static uint32_t slot_offset(const emit_t* emit, uint32_t word) {
  if (word & KILNI_SOFT_CONSTANT_WORD) {
    return emit->lower->constants[word & ~KILNI_SOFT_CONSTANT_WORD].offset |
           KILNI_SOFT_AREA_CONSTANT;
  }
  const kilni_soft_vreg_t* vreg = &emit->lower->vregs[word];
  uint32_t slot = vreg->slot == KILNI_SOFT_NONE ? 0 : vreg->slot;
  if (vreg->is_fixed) {
    return emit->out->wide_end + slot * (uint32_t)KILNI_SOFT_SLOT32_BYTES;
  }
  if (vreg->class_ == KILNI_SOFT_CLASS_64) {
    return emit->out->wide_begin + slot * (uint32_t)KILNI_SOFT_SLOT64_BYTES;
  }
  return slot * (uint32_t)KILNI_SOFT_SLOT32_BYTES;
}

static uint32_t pred_index(const emit_t* emit, uint32_t word) {
  uint32_t negated = word & KILNI_SOFT_PRED_NEGATED;
  uint32_t vreg = word & ~KILNI_SOFT_PRED_NEGATED;
  if (vreg == 0) return negated;
  uint32_t slot = emit->lower->vregs[vreg].slot;
  return negated | (slot == KILNI_SOFT_NONE ? 0 : slot + 1);
}

static uint32_t emit_word_of(const emit_t* emit, const kilni_soft_low_t* low,
                             int w) {
  switch (low->role[w]) {
    case KILNI_SOFT_ROLE_USE:
    case KILNI_SOFT_ROLE_DEF:
    case KILNI_SOFT_ROLE_BOTH:
      return slot_offset(emit, low->word[w]);
    case KILNI_SOFT_ROLE_USE_PRED:
    case KILNI_SOFT_ROLE_DEF_PRED:
      return pred_index(emit, low->word[w]);
    default:
      return low->word[w];
  }
}

static kilni_soft_instr_t* emit_add(emit_t* emit, uint32_t op, uint32_t guard,
                                    uint32_t line) {
  kilni_soft_function_t* out = emit->out;
  if (out->instr_count == emit->out_capacity) return NULL;  // cannot be
  kilni_soft_instr_t* instr = &out->code[out->instr_count];
  out->tally_ends[out->instr_count] = emit->tallies.open;
  out->lines[out->instr_count++] = line;
  instr->fn = emit->lanes->fn[op];
  instr->op = (uint16_t)op;
  if (guard != KILNI_SOFT_NONE) {
    uint32_t index = pred_index(emit, guard);
    instr->guard = (uint16_t)((index & 0x7fffu) |
                              (index & KILNI_SOFT_PRED_NEGATED ? 0x8000u : 0));
  }
  return instr;
}

// What the instruction that was added last counts: all that nothing has yet.
static uint32_t take_running(emit_t* emit) {
  uint32_t running = emit->running;
  emit->running = 0;
  emit->tallies.open = emit->tallies.count;
  emit->out->tally_ends[emit->out->instr_count - 1] = emit->tallies.open;
  return running;
}

// Until `patch`, the target of a branch is a block.
static void add_branch(emit_t* emit, uint32_t block, uint32_t guard,
                       uint32_t line) {
  kilni_soft_instr_t* instr = emit_add(emit, KILNI_SOFT_OP_bra, guard, line);
  instr->d = block;
  instr->aux = take_running(emit);
}

static void add_plain(emit_t* emit, const kilni_soft_low_t* low) {
  kilni_soft_instr_t* instr = emit_add(emit, low->op, low->guard, low->line);
  instr->d = emit_word_of(emit, low, KILNI_SOFT_WORD_D);
  instr->a = emit_word_of(emit, low, KILNI_SOFT_WORD_A);
  instr->b = emit_word_of(emit, low, KILNI_SOFT_WORD_B);
  instr->c = emit_word_of(emit, low, KILNI_SOFT_WORD_C) | low->address;
  instr->aux = emit_word_of(emit, low, KILNI_SOFT_WORD_AUX);
  switch (low->op) {
    case KILNI_SOFT_OP_call:
    case KILNI_SOFT_OP_call_indirect:
    case KILNI_SOFT_OP_vprintf:
    case KILNI_SOFT_OP_assertfail:
    case KILNI_SOFT_OP_malloc:
    case KILNI_SOFT_OP_free:
    case KILNI_SOFT_OP_set_conditional:
      instr->b = take_running(emit);
      return;
    case KILNI_SOFT_OP_ret:
    case KILNI_SOFT_OP_exit:
    case KILNI_SOFT_OP_brx:
      instr->aux = take_running(emit);
      return;
    default:
      return;
  }
}

// `count` counts at once what is under its guard, and nothing of the block.
static void add_count(emit_t* emit, uint32_t at, uint32_t last) {
  kilni_soft_tallies_t* tallies = &emit->tallies;
  uint32_t open = tallies->open;
  uint32_t count = tallies->count;
  kilni_soft_tally_t kept[KILN_SOFT_CLASS_COUNT];
  memcpy(kept, tallies->all + open, (count - open) * sizeof(*kept));
  tallies->count = open;
  kilni_soft_tally_guarded(tallies, emit->lower, at, last);
  uint32_t running = emit->running;
  add_plain(emit, &emit->lower->lows[at]);
  take_running(emit);
  emit->running = running;
  for (uint32_t i = 0; i < count - open; i++) {
    kilni_soft_tally_add(tallies, kept[i].class_, kept[i].count);
  }
}

// The end of a block: branches to what does not follow it.
static void add_end(emit_t* emit, const kilni_soft_flow_block_t* block,
                    uint32_t next) {
  const kilni_soft_low_t* low = &emit->lower->lows[block->last - 1];
  if (low->kind == KILNI_SOFT_LOW_BRANCH) {
    if (low->guard == KILNI_SOFT_NONE) {
      // A jump to what follows is only counted.
      if (block->branch != next) {
        add_branch(emit, block->branch, KILNI_SOFT_NONE, low->line);
      }
      return;
    }
    if (block->branch == next && block->fall != next) {
      add_branch(emit, block->fall, low->guard ^ KILNI_SOFT_PRED_NEGATED,
                 low->line);
      return;
    }
    add_branch(emit, block->branch, low->guard, low->line);
  }
  if (block->fall != KILNI_SOFT_NONE && block->fall != next) {
    add_branch(emit, block->fall, KILNI_SOFT_NONE, low->line);
  }
}

// Whether something other than falling into block `b` leads to it.
static void mark_jumped(emit_t* emit) {
  kilni_soft_lower_t* lower = emit->lower;
  for (size_t b = 0; b < lower->block_count; b++) {
    lower->blocks[b].jumped = 0;
  }
  for (size_t i = 0; i < lower->order_count; i++) {
    const kilni_soft_flow_block_t* block = &lower->blocks[lower->order[i]];
    uint32_t next =
        i + 1 < lower->order_count ? lower->order[i + 1] : KILNI_SOFT_NONE;
    if (block->branch != KILNI_SOFT_NONE && block->branch != next) {
      lower->blocks[block->branch].jumped = 1;
    }
    if (block->fall != KILNI_SOFT_NONE && block->fall != next) {
      lower->blocks[block->fall].jumped = 1;
    }
  }
  for (size_t i = 0; i < lower->target_count; i++) {
    lower->blocks[lower->targets[i]].jumped = 1;
  }
}

// The sum that the fused handler of a compare has before it.
static uint32_t emit_sum_of(uint32_t compare) {
  switch (compare) {
    case KILNI_SOFT_OP_setp_lt_f32:
    case KILNI_SOFT_OP_setp_le_f32:
    case KILNI_SOFT_OP_setp_gt_f32:
    case KILNI_SOFT_OP_setp_ge_f32:
    case KILNI_SOFT_OP_setp_ltu_f32:
    case KILNI_SOFT_OP_setp_leu_f32:
    case KILNI_SOFT_OP_setp_gtu_f32:
    case KILNI_SOFT_OP_setp_geu_f32:
      return KILNI_SOFT_OP_add_f32;
    default:
      return KILNI_SOFT_OP_add_b32;
  }
}

// Fuses a compare with the following branch where there is a handler for both,
// and with the preceding sum where there is one for the three. The instructions
// stay where they are: the first one's handler runs them.
static void fuse(emit_t* emit) {
  kilni_soft_function_t* out = emit->out;
  for (uint32_t i = 0; i + 1 < out->instr_count; i++) {
    kilni_soft_instr_t* instr = &out->code[i];
    const kilni_soft_instr_t* branch = instr + 1;
    kilni_soft_fn_t both = emit->lanes->compare_branch[instr->op];
    if (!both || instr->guard || branch->op != KILNI_SOFT_OP_bra) continue;
    if ((branch->guard & 0x7fffu) != instr->d || !branch->guard) continue;
    instr->fn = both;
    kilni_soft_fn_t three = emit->lanes->sum_branch[instr->op];
    if (!three || i == 0 || !emit->lanes->combines) continue;
    kilni_soft_instr_t* sum = instr - 1;
    if (sum->op == emit_sum_of(instr->op) && !sum->guard &&
        sum->d == instr->a) {
      sum->fn = three;
    }
  }
}

static void patch(emit_t* emit) {
  const kilni_soft_lower_t* lower = emit->lower;
  kilni_soft_function_t* out = emit->out;
  for (uint32_t i = 0; i < out->instr_count; i++) {
    kilni_soft_instr_t* instr = &out->code[i];
    if (instr->op != KILNI_SOFT_OP_bra) continue;
    uint32_t target = emit->starts[lower->blocks[instr->d].place];
    instr->d = target - i;
  }
  for (size_t i = 0; i < lower->target_count; i++) {
    // A table of an unreachable brx may name unreachable blocks.
    uint32_t place = lower->blocks[lower->targets[i]].place;
    out->targets[i] = place == KILNI_SOFT_NONE ? 0 : emit->starts[place];
  }
}

static void emit_blocks(emit_t* emit) {
  kilni_soft_lower_t* lower = emit->lower;
  bool falls = false;
  for (uint32_t p = 0; p < lower->order_count; p++) {
    const kilni_soft_flow_block_t* block = &lower->blocks[lower->order[p]];
    uint32_t next =
        p + 1 < lower->order_count ? lower->order[p + 1] : KILNI_SOFT_NONE;
    if (block->jumped && falls) {
      kilni_soft_instr_t* join =
          emit_add(emit, KILNI_SOFT_OP_join, KILNI_SOFT_NONE,
                   lower->lows[block->first].line);
      join->aux = take_running(emit);
    }
    if (block->jumped) {
      emit->running = 0;
      emit->tallies.count = emit->tallies.open;
    }
    emit->starts[p] = emit->out->instr_count;
    for (uint32_t i = block->first; i < block->last; i++) {
      const kilni_soft_low_t* low = &lower->lows[i];
      emit->running += low->counts;
      kilni_soft_tally_add(&emit->tallies, low->class_, low->counts);
      if (low->kind == KILNI_SOFT_LOW_NOTHING ||
          low->kind == KILNI_SOFT_LOW_BRANCH) {
        continue;
      }
      if (low->op == KILNI_SOFT_OP_count) {
        add_count(emit, i, block->last);
      } else {
        add_plain(emit, low);
      }
    }
    add_end(emit, block, next);
    falls = block->fall == next || block->branch == next;
  }
}

// What blocks may become at most: each operation, a join and two branches.
static size_t capacity_of(const kilni_soft_lower_t* lower) {
  return lower->low_count + 3 * lower->order_count + 1;
}

static kiln_status_t copy_array(kilni_soft_lower_t* lower, const void* from,
                                size_t count, size_t size, void* out_to) {
  void* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(lower->host->allocator, count, size, &memory));
  if (count) memcpy(memory, from, count * size);
  memcpy(out_to, &memory, sizeof(memory));
  return kiln_ok();
}

static void place_constants(kilni_soft_lower_t* lower) {
  uint32_t at = 0;
  for (size_t i = 0; i < lower->constant_count; i++) {
    lower->constants[i].offset = at;
    at += lower->constants[i].wide ? (uint32_t)KILNI_SOFT_SLOT64_BYTES
                                   : (uint32_t)KILNI_SOFT_SLOT32_BYTES;
  }
  lower->out->constant_bytes = at;
}

static kiln_status_t copy_lists(emit_t* emit) {
  kilni_soft_lower_t* lower = emit->lower;
  kilni_soft_function_t* out = emit->out;
  for (size_t i = 0; i < lower->pass_count; i++) {
    lower->passes[i].slot = slot_offset(emit, lower->passes[i].slot);
  }
  KILNI_RETURN_IF_ERROR(copy_array(lower, lower->constants,
                                   lower->constant_count,
                                   sizeof(*lower->constants), &out->constants));
  out->constant_count = (uint32_t)lower->constant_count;
  KILNI_RETURN_IF_ERROR(copy_array(lower, lower->calls, lower->call_count,
                                   sizeof(*lower->calls), &out->calls));
  out->call_count = (uint32_t)lower->call_count;
  KILNI_RETURN_IF_ERROR(copy_array(lower, lower->passes, lower->pass_count,
                                   sizeof(*lower->passes), &out->passes));
  out->pass_count = (uint32_t)lower->pass_count;
  KILNI_RETURN_IF_ERROR(copy_array(lower, lower->targets, lower->target_count,
                                   sizeof(*lower->targets), &out->targets));
  out->target_count = (uint32_t)lower->target_count;
  KILNI_RETURN_IF_ERROR(copy_array(lower, lower->shared, lower->shared_count,
                                   sizeof(*lower->shared), &out->shared));
  out->shared_count = (uint32_t)lower->shared_count;
  return kiln_ok();
}

// Where a caller puts the parameters and finds the results of this function.
static kiln_status_t list_formals(emit_t* emit) {
  kilni_soft_lower_t* lower = emit->lower;
  kilni_soft_function_t* out = emit->out;
  const kilni_image_ptx_function_t* source = lower->source;
  if (source->is_entry) return kiln_ok();
  uint32_t count = source->return_count + source->parameter_count;
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      lower->host->allocator, count, sizeof(kilni_soft_pass_t), &memory));
  out->formals = memory;
  out->formal_returns = source->return_count;
  out->formal_params = source->parameter_count;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t index = i < source->return_count
                         ? source->first_return + i
                         : source->first_parameter + i - source->return_count;
    out->formals[i].slot = slot_offset(emit, lower->variable_words[index]);
    out->formals[i].bytes =
        (uint32_t)lower->module->variables[index].size_bytes;
  }
  return kiln_ok();
}

static kiln_status_t emit_make_code(emit_t* emit) {
  kilni_soft_lower_t* lower = emit->lower;
  kilni_soft_function_t* out = emit->out;
  void* memory;
  emit->out_capacity = capacity_of(lower);
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(lower->host->allocator, emit->out_capacity,
                             sizeof(kilni_soft_instr_t), &memory));
  out->code = memory;
  out->code_capacity = (uint32_t)emit->out_capacity;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      lower->host->allocator, emit->out_capacity, sizeof(uint32_t), &memory));
  out->lines = memory;
  KILNI_RETURN_IF_ERROR(
      kilni_soft_tally_init(lower, emit->out_capacity, &emit->tallies));
  mark_jumped(emit);
  emit_blocks(emit);
  patch(emit);
  fuse(emit);
  out->tally_count = emit->tallies.count;
  return copy_array(lower, emit->tallies.all, emit->tallies.count,
                    sizeof(kilni_soft_tally_t), &out->tallies);
}

kiln_status_t kilni_soft_emit(kilni_soft_lower_t* lower) {
  emit_t emit = {
      .lower = lower, .out = lower->out, .lanes = lower->code->lanes};
  place_constants(lower);
  KILNI_RETURN_IF_ERROR(copy_lists(&emit));
  KILNI_RETURN_IF_ERROR(list_formals(&emit));
  void* starts;
  size_t count = lower->order_count + 1;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(lower->host->allocator, count,
                                               sizeof(uint32_t), &starts));
  emit.starts = starts;
  kiln_status_t status = emit_make_code(&emit);
  kilni_soft_tally_deinit(lower, &emit.tallies);
  kilni_base_free_array(lower->host->allocator, starts, count,
                        sizeof(uint32_t));
  return status;
}

void kilni_soft_function_deinit(kiln_allocator_t allocator,
                                kilni_soft_function_t* function) {
  kilni_base_free_array(allocator, function->code, function->code_capacity,
                        sizeof(*function->code));
  kilni_base_free_array(allocator, function->lines, function->code_capacity,
                        sizeof(*function->lines));
  kilni_base_free_array(allocator, function->tally_ends,
                        function->code_capacity, sizeof(*function->tally_ends));
  kilni_base_free_array(allocator, function->tallies, function->tally_count,
                        sizeof(*function->tallies));
  kilni_base_free_array(allocator, function->constants,
                        function->constant_count, sizeof(*function->constants));
  kilni_base_free_array(allocator, function->calls, function->call_count,
                        sizeof(*function->calls));
  kilni_base_free_array(allocator, function->passes, function->pass_count,
                        sizeof(*function->passes));
  kilni_base_free_array(allocator, function->targets, function->target_count,
                        sizeof(*function->targets));
  kilni_base_free_array(allocator, function->shared, function->shared_count,
                        sizeof(*function->shared));
  kilni_base_free_array(
      allocator, function->formals,
      (size_t)function->formal_returns + function->formal_params,
      sizeof(*function->formals));
}
