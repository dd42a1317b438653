// SPDX-License-Identifier: Apache-2.0
//
// soft: a function's instructions, one after another, as operations.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "soft/decode/soft_lower.h"
#include "soft/decode/soft_tally.h"

bool kilni_soft_form_has(const kilni_image_ptx_form_t* form,
                         uint32_t modifier) {
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    if (form->modifiers[i] == modifier) return true;
  }
  return false;
}

// The type modifier `number`, counted from the first; KILNI_SOFT_NONE counts
// from the last.
uint32_t kilni_soft_form_type(const kilni_image_ptx_form_t* form,
                              uint32_t number) {
  uint32_t last = KILNI_PTX_TYPE_NONE;
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    if (!kilni_image_ptx_modifier_is_type(form->modifiers[i])) continue;
    last = form->modifiers[i];
    if (number-- == 0) return last;
  }
  return number >= 0x80000000u ? last : (uint32_t)KILNI_PTX_TYPE_NONE;
}

static void decode_nothing(kilni_soft_lower_t* lower) {
  kilni_soft_low(lower, 0)->kind = KILNI_SOFT_LOW_NOTHING;
}

static void decode_branch(kilni_soft_lower_t* lower,
                          const kilni_soft_source_t* source) {
  const kilni_image_ptx_operand_t* to = &source->operands[0];
  // The reader has counted the operands.
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
  if (to->kind != KILNI_PTX_OPERAND_LABEL) {
    kilni_soft_refuse(lower, "a branch to something that is not a label");
    return;
  }
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_bra);
  low->kind = KILNI_SOFT_LOW_BRANCH;
  // A label's instruction; resolve_targets makes an operation of it.
  low->target = lower->source->labels[to->index].instruction;
}

static void decode_table_branch(kilni_soft_lower_t* lower,
                                const kilni_soft_source_t* source) {
  uint32_t index = kilni_soft_use(lower, &source->operands[0], false, 0);
  // The reader has counted the operands.
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
  if (source->operands[1].kind != KILNI_PTX_OPERAND_TABLE) {
    kilni_soft_refuse(lower, "brx.idx without a table");
    return;
  }
  const kilni_image_ptx_table_t* table =
      &lower->source->tables[source->operands[1].index];
  size_t first = lower->target_count;
  if (!KILNI_SOFT_GROW(lower, targets, first + table->count, target_capacity)) {
    return;
  }
  for (uint32_t i = 0; i < table->count; i++) {
    uint32_t label = lower->module->entries[table->first + i];
    lower->targets[lower->target_count++] =
        lower->source->labels[label].instruction;
  }
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_brx);
  low->kind = KILNI_SOFT_LOW_TABLE;
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, index, KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_B] = (uint32_t)first;
  low->word[KILNI_SOFT_WORD_C] = table->count;
}

static void decode_end(kilni_soft_lower_t* lower, uint32_t op) {
  kilni_soft_low(lower, op)->kind = KILNI_SOFT_LOW_END;
}

static void decode_nanosleep(kilni_soft_lower_t* lower,
                             const kilni_soft_source_t* source) {
  (void)kilni_soft_use(lower, &source->operands[0], false, 0);
  kilni_soft_low(lower, KILNI_SOFT_OP_nanosleep);
}

static void decode_fence(kilni_soft_lower_t* lower,
                         const kilni_soft_source_t* source) {
  bool proxy = kilni_soft_form_has(source->form, KILNI_PTX_MOD_PROXY);
  for (uint32_t i = 0; i < source->form->modifier_count; i++) {
    switch (source->form->modifiers[i]) {
      case KILNI_PTX_MOD_CTA:
      case KILNI_PTX_MOD_GL:
      case KILNI_PTX_MOD_SYS:
      case KILNI_PTX_MOD_GPU:
      case KILNI_PTX_MOD_CLUSTER:
      case KILNI_PTX_MOD_SC:
      case KILNI_PTX_MOD_ACQ_REL:
      case KILNI_PTX_MOD_ACQUIRE:
      case KILNI_PTX_MOD_RELEASE:
      case KILNI_PTX_MOD_PROXY:
      case KILNI_PTX_MOD_MBARRIER_INIT:
        continue;
      case KILNI_PTX_MOD_ALIAS:
      case KILNI_PTX_MOD_ASYNC:
      case KILNI_PTX_MOD_GLOBAL:
      case KILNI_PTX_MOD_SHARED_CTA:
      case KILNI_PTX_MOD_SHARED_CLUSTER:
        if (proxy) continue;
        kilni_soft_refuse(lower, "%s", source->form->text);
        return;
      default:
        kilni_soft_refuse(lower, "%s", source->form->text);
        return;
    }
  }
  kilni_soft_low(lower, KILNI_SOFT_OP_fence);
}

// Of the opcodes that begin with v, all but the vote.
static bool decode_is_video(const kilni_soft_source_t* source) {
  uint32_t opcode = source->ins->opcode;
  if (opcode == KILNI_PTX_OP_CVT) {
    return kilni_soft_form_has(source->form, KILNI_PTX_MOD_PACK);
  }
  return opcode != KILNI_PTX_OP_VOTE &&
         kilni_image_ptx_opcode_text(opcode)[0] == 'v';
}

static void decode_by_opcode(kilni_soft_lower_t* lower,
                             const kilni_soft_source_t* source) {
  if (kilni_soft_form_is_half(source->form)) {
    kilni_soft_decode_half(lower, source);
    return;
  }
  if (decode_is_video(source)) {
    kilni_soft_decode_video(lower, source);
    return;
  }
  switch (source->ins->opcode) {
    case KILNI_PTX_OP_BRA:
      decode_branch(lower, source);
      return;
    case KILNI_PTX_OP_BRX:
      decode_table_branch(lower, source);
      return;
    case KILNI_PTX_OP_RET:
      kilni_soft_decode_return(lower);
      return;
    case KILNI_PTX_OP_EXIT:
      decode_end(lower, KILNI_SOFT_OP_exit);
      return;
    case KILNI_PTX_OP_TRAP:
      decode_end(lower, KILNI_SOFT_OP_trap);
      return;
    case KILNI_PTX_OP_BRKPT:
      decode_end(lower, KILNI_SOFT_OP_brkpt);
      return;
    case KILNI_PTX_OP_CALL:
      kilni_soft_decode_call(lower, source);
      return;
    case KILNI_PTX_OP_LD:
    case KILNI_PTX_OP_LDU:
    case KILNI_PTX_OP_ST:
      kilni_soft_decode_memory(lower, source);
      return;
    case KILNI_PTX_OP_ATOM:
    case KILNI_PTX_OP_RED:
      kilni_soft_decode_atomic(lower, source);
      return;
    case KILNI_PTX_OP_MOV:
      kilni_soft_decode_move(lower, source);
      return;
    case KILNI_PTX_OP_CVTA:
    case KILNI_PTX_OP_ISSPACEP:
      kilni_soft_decode_cvta(lower, source);
      return;
    case KILNI_PTX_OP_SETP:
    case KILNI_PTX_OP_SET:
      kilni_soft_decode_compare(lower, source);
      return;
    case KILNI_PTX_OP_SHFL:
    case KILNI_PTX_OP_VOTE:
    case KILNI_PTX_OP_MATCH:
    case KILNI_PTX_OP_REDUX:
    case KILNI_PTX_OP_ACTIVEMASK:
    case KILNI_PTX_OP_ELECT:
      kilni_soft_decode_warp(lower, source);
      return;
    case KILNI_PTX_OP_BAR:
    case KILNI_PTX_OP_BARRIER:
      kilni_soft_decode_barrier(lower, source);
      return;
    case KILNI_PTX_OP_MEMBAR:
    case KILNI_PTX_OP_FENCE:
      decode_fence(lower, source);
      return;
    case KILNI_PTX_OP_NANOSLEEP:
      decode_nanosleep(lower, source);
      return;
    case KILNI_PTX_OP_PREFETCH:
    case KILNI_PTX_OP_PREFETCHU:
    case KILNI_PTX_OP_PMEVENT:
    case KILNI_PTX_OP_DISCARD:
    case KILNI_PTX_OP_APPLYPRIORITY:
    case KILNI_PTX_OP_SETMAXNREG:
      decode_nothing(lower);
      return;
    case KILNI_PTX_OP_GRIDDEPCONTROL:
      kilni_soft_low(lower,
                     kilni_soft_form_has(source->form, KILNI_PTX_MOD_WAIT)
                         ? KILNI_SOFT_OP_wait_ahead
                         : KILNI_SOFT_OP_let_follow);
      return;
    case KILNI_PTX_OP_CP:
    case KILNI_PTX_OP_MBARRIER:
      kilni_soft_decode_async(lower, source);
      return;
    case KILNI_PTX_OP_CREATEPOLICY:
    case KILNI_PTX_OP_GETCTARANK:
    case KILNI_PTX_OP_MAPA:
    case KILNI_PTX_OP_LOP3:
      kilni_soft_decode_other(lower, source);
      return;
    case KILNI_PTX_OP_MMA:
    case KILNI_PTX_OP_WMMA:
    case KILNI_PTX_OP_LDMATRIX:
    case KILNI_PTX_OP_STMATRIX:
    case KILNI_PTX_OP_MOVMATRIX:
      kilni_soft_decode_matrix(lower, source);
      return;
    default:
      kilni_soft_decode_table(lower, source);
  }
}

// Whether a guard on `opcode` becomes a branch around it: what ends or parks
// lanes must not be half executed.
static bool needs_branch(uint32_t opcode) {
  switch (opcode) {
    case KILNI_PTX_OP_RET:
    case KILNI_PTX_OP_EXIT:
    case KILNI_PTX_OP_TRAP:
    case KILNI_PTX_OP_BRKPT:
    case KILNI_PTX_OP_CALL:
    case KILNI_PTX_OP_BRX:
    case KILNI_PTX_OP_SHFL:
    case KILNI_PTX_OP_VOTE:
    case KILNI_PTX_OP_MATCH:
    case KILNI_PTX_OP_REDUX:
    case KILNI_PTX_OP_ELECT:
    case KILNI_PTX_OP_BAR:
    case KILNI_PTX_OP_BARRIER:
    case KILNI_PTX_OP_GRIDDEPCONTROL:
    case KILNI_PTX_OP_MMA:
    case KILNI_PTX_OP_WMMA:
    case KILNI_PTX_OP_LDMATRIX:
    case KILNI_PTX_OP_STMATRIX:
    case KILNI_PTX_OP_MOVMATRIX:
      return true;
    default:
      return false;
  }
}

// Targets are PTX instructions until the end of lowering, save those of the
// branches around a guarded instruction, which are operations already.
#define TARGET_IS_LOW 0x80000000u

static void decode_guarded(kilni_soft_lower_t* lower,
                           const kilni_soft_source_t* source) {
  kilni_soft_low_t* skip = kilni_soft_low(lower, KILNI_SOFT_OP_bra);
  size_t at = lower->low_count - 1;
  skip->kind = KILNI_SOFT_LOW_BRANCH;
  skip->guard ^= KILNI_SOFT_PRED_NEGATED;
  lower->guard = KILNI_SOFT_NONE;
  size_t first = lower->low_count;
  decode_by_opcode(lower, source);
  if (!kiln_status_is_ok(lower->status)) return;
  if (first < lower->low_count) lower->lows[first].counts = 1;
  kilni_soft_tally_name(lower, first);
  lower->lows[at].target = (uint32_t)lower->low_count | TARGET_IS_LOW;
  lower->count_low = KILNI_SOFT_NONE;
}

// Counts the lanes that execute a guarded instruction, several at once where
// they have the same guard.
static void count_guarded(kilni_soft_lower_t* lower) {
  if (lower->count_low != KILNI_SOFT_NONE &&
      lower->count_guard == lower->guard) {
    lower->lows[lower->count_low].word[KILNI_SOFT_WORD_AUX]++;
    return;
  }
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_count);
  low->word[KILNI_SOFT_WORD_AUX] = 1;
  lower->count_low = (uint32_t)lower->low_count - 1;
  lower->count_guard = lower->guard;
}

// Forgets the running count if one of the operations from `first` on writes
// its predicate.
static void decode_check_count(kilni_soft_lower_t* lower, size_t first) {
  uint32_t pred = lower->count_guard & ~KILNI_SOFT_PRED_NEGATED;
  for (size_t i = first; i < lower->low_count; i++) {
    for (int w = 0; w < KILNI_SOFT_WORDS; w++) {
      if (lower->lows[i].role[w] == KILNI_SOFT_ROLE_DEF_PRED &&
          lower->lows[i].word[w] == pred) {
        lower->count_low = KILNI_SOFT_NONE;
      }
    }
  }
}

static void decode_instruction(kilni_soft_lower_t* lower,
                               const kilni_image_ptx_instruction_t* ins) {
  kilni_soft_source_t source = {
      .ins = ins,
      .form = kilni_image_ptx_instruction_form(lower->module, ins),
      .operands = kilni_image_ptx_instruction_operands(lower->module, ins),
      .count = ins->operand_count};
  lower->line = ins->line;
  lower->guard = KILNI_SOFT_NONE;
  if (ins->guard != KILNI_PTX_GUARD_NONE) {
    lower->guard = lower->register_vregs[ins->guard_register];
    if (ins->guard == KILNI_PTX_GUARD_FALSE) {
      lower->guard |= KILNI_SOFT_PRED_NEGATED;
    }
    if (needs_branch(ins->opcode)) {
      decode_guarded(lower, &source);
      return;
    }
    if (ins->opcode != KILNI_PTX_OP_BRA) count_guarded(lower);
  }
  size_t first = lower->low_count;
  uint32_t refused = lower->refused_count;
  decode_by_opcode(lower, &source);
  if (lower->refused_count > refused) lower->refused_count = refused + 1;
  if (!kiln_status_is_ok(lower->status)) return;
  if (first == lower->low_count) decode_nothing(lower);
  kilni_soft_tally_name(lower, first);
  if (ins->guard == KILNI_PTX_GUARD_NONE || ins->opcode == KILNI_PTX_OP_BRA) {
    lower->lows[first].counts = 1;
  } else {
    lower->lows[first].guarded = 1;
  }
  if (lower->lows[lower->low_count - 1].kind != KILNI_SOFT_LOW_PLAIN) {
    lower->count_low = KILNI_SOFT_NONE;
  } else if (lower->count_low != KILNI_SOFT_NONE) {
    decode_check_count(lower, first);
  }
}

static kiln_status_t make_registers(kilni_soft_lower_t* lower) {
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      lower->host->allocator, (size_t)lower->source->register_count + 1,
      sizeof(uint32_t), &memory));
  lower->register_vregs = memory;
  kilni_soft_vreg_new(lower, KILNI_SOFT_CLASS_PRED, 1);  // always true
  for (uint32_t i = 0; i < lower->source->register_count; i++) {
    const kilni_image_ptx_register_t* reg = &lower->source->registers[i];
    uint32_t bits = kilni_image_ptx_type_bits(reg->type);
    uint32_t class_ = KILNI_SOFT_CLASS_32;
    if (reg->type == KILNI_PTX_TYPE_PRED) class_ = KILNI_SOFT_CLASS_PRED;
    if (bits >= 64) class_ = KILNI_SOFT_CLASS_64;
    bool is_128 = bits == 128 && reg->vector <= 1;
    if ((bits > 64 && !is_128) || bits == 0) {
      lower->line = reg->line;
      kilni_soft_refuse(lower, "a register of %u bits", bits);
    }
    lower->register_vregs[i] = (uint32_t)lower->vreg_count;
    for (uint32_t k = 0; k < reg->vector || k == 0; k++) {
      kilni_soft_vreg_new(lower, class_, is_128 ? 64 : bits);
    }
    if (is_128) kilni_soft_vreg_new(lower, class_, 64);
  }
  kiln_status_t status = lower->status;
  lower->status = kiln_ok();
  return status;
}

static void note_address(kilni_soft_lower_t* lower,
                         const kilni_image_ptx_operand_t* operand) {
  const kilni_image_ptx_function_t* source = lower->source;
  if (operand->kind == KILNI_PTX_OPERAND_VARIABLE &&
      operand->index - source->first_parameter < source->parameter_count) {
    lower->param_places[operand->index] = 0;
  }
}

// Which of a function's parameters have their address taken: those must be in
// memory. An entry's are anyway.
static void find_addresses(kilni_soft_lower_t* lower) {
  const kilni_image_ptx_function_t* source = lower->source;
  if (source->is_entry) return;
  for (uint32_t i = 0; i < source->instruction_count; i++) {
    const kilni_image_ptx_instruction_t* ins = &source->instructions[i];
    const kilni_image_ptx_operand_t* operands =
        kilni_image_ptx_instruction_operands(lower->module, ins);
    if (ins->opcode == KILNI_PTX_OP_CALL) continue;
    for (uint32_t k = 0; k < ins->operand_count; k++) {
      note_address(lower, &operands[k]);
    }
  }
}

// The place of a variable after the `*inout_at` bytes that are taken.
static kiln_status_t place_local(const kilni_image_ptx_variable_t* variable,
                                 uint64_t* inout_at, uint32_t* out_place) {
  uint64_t align = variable->align ? variable->align : 1;
  uint64_t at = (*inout_at + align - 1) & ~(align - 1);
  *out_place = (uint32_t)at;
  *inout_at = at + variable->size_bytes;
  if (*inout_at <= KILNI_SOFT_LOCAL_BYTES / 64) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "line %u: local memory above %llu bytes",
                 variable->line,
                 (unsigned long long)(KILNI_SOFT_LOCAL_BYTES / 64)),
      "keep large arrays in global memory");
}

// Places of the function's .local variables and of parameters whose address is
// taken; the words of parameters get theirs when they are first used.
static kiln_status_t make_variables(kilni_soft_lower_t* lower) {
  void* memory;
  size_t count = (size_t)lower->module->variable_count + 1;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(lower->host->allocator, count,
                                               sizeof(uint32_t), &memory));
  lower->variable_words = memory;
  memset(lower->variable_words, 0xff, count * sizeof(uint32_t));
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(lower->host->allocator, count,
                                               sizeof(uint32_t), &memory));
  lower->param_places = memory;
  memset(lower->param_places, 0xff, count * sizeof(uint32_t));
  find_addresses(lower);
  uint64_t at = 0;
  for (uint32_t i = 0; i < lower->source->variable_count; i++) {
    uint32_t index = lower->source->first_variable + i;
    const kilni_image_ptx_variable_t* variable =
        &lower->module->variables[index];
    if (variable->space != KILNI_PTX_SPACE_LOCAL) continue;
    KILNI_RETURN_IF_ERROR(
        place_local(variable, &at, &lower->variable_words[index]));
  }
  for (uint32_t i = 0; i < lower->source->parameter_count; i++) {
    uint32_t index = lower->source->first_parameter + i;
    if (lower->param_places[index] == KILNI_SOFT_NONE) continue;
    // Whole words are copied there.
    at = (at + 3) & ~(uint64_t)3;
    KILNI_RETURN_IF_ERROR(place_local(&lower->module->variables[index], &at,
                                      &lower->param_places[index]));
    at = (at + 3) & ~(uint64_t)3;
  }
  // Module-scope .local variables are refused where they are used.
  lower->out->local_bytes = (uint32_t)at;
  return kiln_ok();
}

static void resolve_targets(kilni_soft_lower_t* lower,
                            const uint32_t* low_of_instruction) {
  for (size_t i = 0; i < lower->low_count; i++) {
    kilni_soft_low_t* low = &lower->lows[i];
    if (low->kind != KILNI_SOFT_LOW_BRANCH) continue;
    low->target = low->target & TARGET_IS_LOW ? low->target & ~TARGET_IS_LOW
                                              : low_of_instruction[low->target];
  }
  for (size_t i = 0; i < lower->target_count; i++) {
    lower->targets[i] = low_of_instruction[lower->targets[i]];
  }
}

static void decode_body(kilni_soft_lower_t* lower, uint32_t* low_of) {
  const kilni_image_ptx_function_t* source = lower->source;
  for (uint32_t i = 0; i < source->label_count; i++) {
    low_of[source->labels[i].instruction] = 1;
  }
  lower->count_low = KILNI_SOFT_NONE;
  lower->guard = KILNI_SOFT_NONE;
  lower->line = source->line;
  kilni_soft_decode_prologue(lower);
  for (uint32_t i = 0; i < source->instruction_count; i++) {
    if (low_of[i]) lower->count_low = KILNI_SOFT_NONE;
    low_of[i] = (uint32_t)lower->low_count;
    decode_instruction(lower, &source->instructions[i]);
    if (!kiln_status_is_ok(lower->status)) return;
  }
  low_of[source->instruction_count] = (uint32_t)lower->low_count;
  lower->guard = KILNI_SOFT_NONE;
  kilni_soft_decode_return(lower);  // control that falls off the end
  if (kiln_status_is_ok(lower->status)) resolve_targets(lower, low_of);
}

kiln_status_t kilni_soft_decode_function(kilni_soft_lower_t* lower) {
  KILNI_RETURN_IF_ERROR(make_registers(lower));
  KILNI_RETURN_IF_ERROR(make_variables(lower));
  size_t count = (size_t)lower->source->instruction_count + 1;
  void* low_of;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(lower->host->allocator, count,
                                               sizeof(uint32_t), &low_of));
  decode_body(lower, low_of);
  kilni_base_free_array(lower->host->allocator, low_of, count,
                        sizeof(uint32_t));
  return lower->status;
}
