// SPDX-License-Identifier: Apache-2.0
//
// soft: what lanes do together, barriers, calls and returns.
#include <string.h>

#include "soft/decode/soft_lower.h"

static void decode_warp_refuse_form(kilni_soft_lower_t* lower,
                                    const kilni_soft_source_t* source) {
  kilni_soft_refuse(lower, "%s", source->form->text);
}

// The place of one of `modifiers` in the form; KILNI_SOFT_NONE if none.
static uint32_t which_of(const kilni_image_ptx_form_t* form,
                         const uint16_t* modifiers, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (kilni_soft_form_has(form, modifiers[i])) return i;
  }
  return KILNI_SOFT_NONE;
}

static void decode_shfl(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source) {
  static const uint16_t modes[] = {KILNI_PTX_MOD_UP, KILNI_PTX_MOD_DOWN,
                                   KILNI_PTX_MOD_BFLY, KILNI_PTX_MOD_IDX};
  uint32_t mode = which_of(source->form, modes, 4);
  if (mode == KILNI_SOFT_NONE || source->count != 5 ||
      !kilni_soft_form_has(source->form, KILNI_PTX_MOD_SYNC)) {
    decode_warp_refuse_form(lower, source);
    return;
  }
  const kilni_image_ptx_operand_t* p;
  const kilni_image_ptx_operand_t* d =
      kilni_soft_split(lower, &source->operands[0], &p);
  uint32_t words[4];
  for (uint32_t i = 0; i < 4; i++) {
    words[i] = kilni_soft_use(lower, &source->operands[1 + i], false, 0);
  }
  uint32_t to = kilni_soft_def(lower, d, false);
  if (to == words[3]) {
    // The mask is read after its register is written.
    words[3] = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b32, words[3], to, 0);
  }
  uint32_t pred = p ? kilni_soft_def_pred(lower, p) : KILNI_SOFT_NONE;
  kilni_soft_low_t* low =
      kilni_soft_low_binary(lower, KILNI_SOFT_OP_shfl, to, words[0], words[1]);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_C, words[2], KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_AUX] = mode;
  low = kilni_soft_low(lower, KILNI_SOFT_OP_words);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_D, pred,
                      p ? KILNI_SOFT_ROLE_DEF_PRED : KILNI_SOFT_ROLE_RAW);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, words[3], KILNI_SOFT_ROLE_USE);
  kilni_soft_def_done(lower, d, to, false, false);
}

static void decode_vote(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source) {
  static const uint16_t modes[] = {KILNI_PTX_MOD_ALL, KILNI_PTX_MOD_ANY,
                                   KILNI_PTX_MOD_UNI, KILNI_PTX_MOD_BALLOT};
  uint32_t mode = which_of(source->form, modes, 4);
  if (mode == KILNI_SOFT_NONE || source->count != 3 ||
      !kilni_soft_form_has(source->form, KILNI_PTX_MOD_SYNC)) {
    decode_warp_refuse_form(lower, source);
    return;
  }
  bool ballot = mode == KILNI_SOFT_VOTE_BALLOT;
  uint32_t a = kilni_soft_use_pred(lower, &source->operands[1]);
  uint32_t mask = kilni_soft_use(lower, &source->operands[2], false, 0);
  uint32_t d = ballot ? kilni_soft_def(lower, &source->operands[0], false)
                      : kilni_soft_def_pred(lower, &source->operands[0]);
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_vote);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_D, d,
                      ballot ? KILNI_SOFT_ROLE_DEF : KILNI_SOFT_ROLE_DEF_PRED);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, a, KILNI_SOFT_ROLE_USE_PRED);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_B, mask, KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_AUX] = mode;
  if (ballot) {
    kilni_soft_def_done(lower, &source->operands[0], d, false, false);
  }
}

static void decode_match(kilni_soft_lower_t* lower,
                         const kilni_soft_source_t* source) {
  bool all = kilni_soft_form_has(source->form, KILNI_PTX_MOD_ALL);
  bool wide =
      kilni_image_ptx_type_bits(kilni_soft_form_type(source->form, 0)) == 64;
  if (source->count != 3) {
    decode_warp_refuse_form(lower, source);
    return;
  }
  const kilni_image_ptx_operand_t* p;
  const kilni_image_ptx_operand_t* d =
      kilni_soft_split(lower, &source->operands[0], &p);
  uint32_t a = kilni_soft_use(lower, &source->operands[1], wide, 0);
  uint32_t mask = kilni_soft_use(lower, &source->operands[2], false, 0);
  uint32_t to = kilni_soft_def(lower, d, false);
  uint32_t pred = p ? kilni_soft_def_pred(lower, p) : KILNI_SOFT_NONE;
  kilni_soft_low_t* low =
      kilni_soft_low_binary(lower, KILNI_SOFT_OP_match, to, a, mask);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_C, pred,
                      p ? KILNI_SOFT_ROLE_DEF_PRED : KILNI_SOFT_ROLE_RAW);
  low->word[KILNI_SOFT_WORD_AUX] = (all ? 1u : 0u) | (wide ? 2u : 0u);
  kilni_soft_def_done(lower, d, to, false, false);
}

static void decode_redux(kilni_soft_lower_t* lower,
                         const kilni_soft_source_t* source) {
  static const uint16_t actions[] = {KILNI_PTX_MOD_ADD, KILNI_PTX_MOD_MIN,
                                     KILNI_PTX_MOD_MAX, KILNI_PTX_MOD_AND,
                                     KILNI_PTX_MOD_OR,  KILNI_PTX_MOD_XOR};
  static const uint8_t codes[] = {KILNI_SOFT_ACTION_ADD, KILNI_SOFT_ACTION_MIN,
                                  KILNI_SOFT_ACTION_MAX, KILNI_SOFT_ACTION_AND,
                                  KILNI_SOFT_ACTION_OR,  KILNI_SOFT_ACTION_XOR};
  uint32_t at = which_of(source->form, actions, 6);
  uint32_t type = kilni_soft_form_type(source->form, 0);
  if (at == KILNI_SOFT_NONE || source->count != 3 ||
      kilni_image_ptx_type_class(type) == KILNI_PTX_CLASS_FLOAT ||
      kilni_image_ptx_type_bits(type) != 32) {
    decode_warp_refuse_form(lower, source);
    return;
  }
  uint32_t a = kilni_soft_use(lower, &source->operands[1], false, type);
  uint32_t mask = kilni_soft_use(lower, &source->operands[2], false, 0);
  uint32_t d = kilni_soft_def(lower, &source->operands[0], false);
  kilni_soft_low_t* low =
      kilni_soft_low_binary(lower, KILNI_SOFT_OP_redux, d, a, mask);
  bool is_signed = kilni_image_ptx_type_class(type) == KILNI_PTX_CLASS_SIGNED;
  low->word[KILNI_SOFT_WORD_AUX] = codes[at] | (is_signed ? 1u << 8 : 0u);
  kilni_soft_def_done(lower, &source->operands[0], d, false, false);
}

static void decode_elect(kilni_soft_lower_t* lower,
                         const kilni_soft_source_t* source) {
  if (source->count != 2 ||
      source->operands[0].kind != KILNI_PTX_OPERAND_PAIR) {
    decode_warp_refuse_form(lower, source);
    return;
  }
  const kilni_image_ptx_operand_t* p;
  const kilni_image_ptx_operand_t* d =
      kilni_soft_split(lower, &source->operands[0], &p);
  uint32_t mask = kilni_soft_use(lower, &source->operands[1], false, 0);
  uint32_t to = kilni_soft_def(lower, d, false);
  uint32_t pred = p ? kilni_soft_def_pred(lower, p) : KILNI_SOFT_NONE;
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_elect);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_D, to, KILNI_SOFT_ROLE_DEF);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_B, mask, KILNI_SOFT_ROLE_USE);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_C, pred,
                      p ? KILNI_SOFT_ROLE_DEF_PRED : KILNI_SOFT_ROLE_RAW);
  kilni_soft_def_done(lower, d, to, false, false);
}

void kilni_soft_decode_warp(kilni_soft_lower_t* lower,
                            const kilni_soft_source_t* source) {
  switch (source->ins->opcode) {
    case KILNI_PTX_OP_SHFL:
      decode_shfl(lower, source);
      return;
    case KILNI_PTX_OP_VOTE:
      decode_vote(lower, source);
      return;
    case KILNI_PTX_OP_MATCH:
      decode_match(lower, source);
      return;
    case KILNI_PTX_OP_REDUX:
      decode_redux(lower, source);
      return;
    case KILNI_PTX_OP_ELECT:
      decode_elect(lower, source);
      return;
    default:
      break;
  }
  uint32_t d = kilni_soft_def(lower, &source->operands[0], false);
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_activemask);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_D, d, KILNI_SOFT_ROLE_DEF);
  kilni_soft_def_done(lower, &source->operands[0], d, false, false);
}

static uint32_t barrier_action(const kilni_image_ptx_form_t* form) {
  if (kilni_soft_form_has(form, KILNI_PTX_MOD_CLUSTER)) return KILNI_SOFT_NONE;
  if (kilni_soft_form_has(form, KILNI_PTX_MOD_SYNC)) {
    return KILNI_SOFT_BARRIER_SYNC;
  }
  if (kilni_soft_form_has(form, KILNI_PTX_MOD_ARRIVE)) {
    return KILNI_SOFT_BARRIER_ARRIVE;
  }
  if (!kilni_soft_form_has(form, KILNI_PTX_MOD_RED)) return KILNI_SOFT_NONE;
  if (kilni_soft_form_has(form, KILNI_PTX_MOD_POPC)) {
    return KILNI_SOFT_BARRIER_POPC;
  }
  if (kilni_soft_form_has(form, KILNI_PTX_MOD_AND)) {
    return KILNI_SOFT_BARRIER_AND;
  }
  return kilni_soft_form_has(form, KILNI_PTX_MOD_OR) ? KILNI_SOFT_BARRIER_OR
                                                     : KILNI_SOFT_NONE;
}

void kilni_soft_decode_barrier(kilni_soft_lower_t* lower,
                               const kilni_soft_source_t* source) {
  const kilni_image_ptx_operand_t* operands = source->operands;
  uint32_t count = source->count;
  if (kilni_soft_form_has(source->form, KILNI_PTX_MOD_WARP)) {
    uint32_t mask = kilni_soft_use(lower, &operands[0], false, 0);
    kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_warp_sync);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_A, mask, KILNI_SOFT_ROLE_USE);
    return;
  }
  if (kilni_soft_form_has(source->form, KILNI_PTX_MOD_CLUSTER)) {
    bool waits = kilni_soft_form_has(source->form, KILNI_PTX_MOD_WAIT);
    if (count != 0) decode_warp_refuse_form(lower, source);
    kilni_soft_low(lower, KILNI_SOFT_OP_cluster_barrier)
        ->word[KILNI_SOFT_WORD_AUX] = waits;
    return;
  }
  uint32_t action = barrier_action(source->form);
  bool reduces = action != KILNI_SOFT_NONE && action >= KILNI_SOFT_BARRIER_AND;
  uint32_t least = reduces ? 3 : 1;
  if (action == KILNI_SOFT_BARRIER_ARRIVE) least = 2;
  if (action == KILNI_SOFT_NONE || count < least || count > (reduces ? 4 : 2)) {
    decode_warp_refuse_form(lower, source);
    return;
  }
  bool is_pred = reduces && action != KILNI_SOFT_BARRIER_POPC;
  const kilni_image_ptx_operand_t* number = &operands[reduces ? 1 : 0];
  bool has_count = count == (reduces ? 4u : 2u);
  uint32_t a = kilni_soft_use(lower, number, false, 0);
  uint32_t b = KILNI_SOFT_NONE;
  uint32_t c = 0;
  uint32_t d = 0;
  if (has_count) b = kilni_soft_use(lower, number + 1, false, 0);
  if (reduces) {
    c = kilni_soft_use_pred(lower, &operands[count - 1]);
    d = is_pred ? kilni_soft_def_pred(lower, &operands[0])
                : kilni_soft_def(lower, &operands[0], false);
  }
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_barrier);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, a, KILNI_SOFT_ROLE_USE);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_B, b,
                      has_count ? KILNI_SOFT_ROLE_USE : KILNI_SOFT_ROLE_RAW);
  if (reduces) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_C, c, KILNI_SOFT_ROLE_USE_PRED);
    kilni_soft_low_word(
        low, KILNI_SOFT_WORD_D, d,
        is_pred ? KILNI_SOFT_ROLE_DEF_PRED : KILNI_SOFT_ROLE_DEF);
  }
  low->word[KILNI_SOFT_WORD_AUX] = action;
}

// Adds what a call passes; `slot` is a vreg until it is written out.
static void decode_warp_add_pass(kilni_soft_lower_t* lower, uint32_t vreg,
                                 uint64_t bytes) {
  size_t at = lower->pass_count;
  if (!KILNI_SOFT_GROW(lower, passes, at + 1, pass_capacity)) return;
  lower->passes[at] = (kilni_soft_pass_t){vreg, (uint32_t)bytes};
  lower->pass_count++;
}

// A .param variable of the caller. The engine copies as many words as the
// callee's parameter has, so another size may not come through (ptxas: "Type of
// argument does not match formal parameter").
static void pass_variable(kilni_soft_lower_t* lower, uint32_t index,
                          const kilni_image_ptx_variable_t* formal) {
  const kilni_image_ptx_variable_t* actual = &lower->module->variables[index];
  if (formal && formal->unsized) {
    kilni_soft_refuse(lower, "a call with a variable number of arguments");
    return;
  }
  if (formal && formal->size_bytes != actual->size_bytes) {
    kilni_soft_refuse(lower,
                      "\"%s\" of %llu bytes in the place of \"%s\" of %llu",
                      actual->name, (unsigned long long)actual->size_bytes,
                      formal->name, (unsigned long long)formal->size_bytes);
    return;
  }
  decode_warp_add_pass(lower, kilni_soft_variable_words(lower, index),
                       actual->size_bytes);
}

// An argument or a result: a .param variable of the caller, or a register or
// number that gets words of its own.
static void pass_operand(kilni_soft_lower_t* lower,
                         const kilni_image_ptx_operand_t* operand,
                         const kilni_image_ptx_variable_t* formal,
                         bool is_result) {
  if (operand->kind == KILNI_PTX_OPERAND_VARIABLE &&
      lower->module->variables[operand->index].space == KILNI_PTX_SPACE_PARAM) {
    pass_variable(lower, operand->index, formal);
    return;
  }
  uint32_t bytes = formal ? (uint32_t)formal->size_bytes : 4;
  if (bytes != 4 && bytes != 8) {
    kilni_soft_refuse(lower, "a register passed as %u bytes", bytes);
    return;
  }
  uint32_t words = 0;
  for (uint32_t i = 0; i < bytes / 4; i++) {
    uint32_t vreg = kilni_soft_vreg_new(lower, KILNI_SOFT_CLASS_32, 32);
    if (!kiln_status_is_ok(lower->status)) return;
    lower->vregs[vreg].is_fixed = 1;
    lower->vregs[vreg].slot = lower->fixed_words++;
    if (i == 0) words = vreg;
  }
  decode_warp_add_pass(lower, words, bytes);
  if (is_result) return;
  uint32_t type = formal ? formal->type : 0;
  uint32_t value = kilni_soft_use(lower, operand, bytes == 8, type);
  if (bytes == 4) {
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b32, words, value, 0);
    return;
  }
  kilni_soft_low_t* low = kilni_soft_low_unary(
      lower, KILNI_SOFT_OP_unpack_b64_b32x2, words, value, 0);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_B, words + 1, KILNI_SOFT_ROLE_DEF);
}

// Results that went to registers leave their words after the call.
static void fetch_results(kilni_soft_lower_t* lower,
                          const kilni_image_ptx_operand_t* results,
                          uint32_t count, size_t first_pass) {
  if (!kiln_status_is_ok(lower->status)) return;
  for (uint32_t i = 0; i < count; i++) {
    if (results[i].kind != KILNI_PTX_OPERAND_REGISTER) continue;
    const kilni_soft_pass_t pass = lower->passes[first_pass + i];
    bool wide = pass.bytes == 8;
    uint32_t d = kilni_soft_def(lower, &results[i], wide);
    if (wide) {
      kilni_soft_low_binary(lower, KILNI_SOFT_OP_pack_b64_b32x2, d, pass.slot,
                            pass.slot + 1);
    } else {
      kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b32, d, pass.slot, 0);
    }
    kilni_soft_def_done(lower, &results[i], d, wide, false);
  }
}

// Formals of the callee: returns, then parameters. NULL where they are not
// known.
typedef struct formals_t {
  const kilni_image_ptx_variable_t* returns;
  const kilni_image_ptx_variable_t* params;
  uint32_t return_count;
  uint32_t param_count;
} formals_t;

// A module may have no variables at all.
static const kilni_image_ptx_variable_t* variables_at(
    const kilni_image_ptx_module_t* module, uint32_t first) {
  return module->variables ? &module->variables[first] : NULL;
}

static bool callee_formals(kilni_soft_lower_t* lower,
                           const kilni_soft_source_t* source, formals_t* out) {
  const kilni_image_ptx_module_t* module = lower->module;
  const kilni_image_ptx_operand_t* callee = &source->operands[1];
  if (callee->kind == KILNI_PTX_OPERAND_FUNCTION) {
    const kilni_image_ptx_function_t* f = &module->functions[callee->index];
    *out = (formals_t){variables_at(module, f->first_return),
                       variables_at(module, f->first_parameter),
                       f->return_count, f->parameter_count};
    return true;
  }
  if (source->operands[3].kind != KILNI_PTX_OPERAND_TABLE) return false;
  const kilni_image_ptx_table_t* t =
      &lower->source->tables[source->operands[3].index];
  if (t->kind == KILNI_PTX_TABLE_PROTOTYPE) {
    *out = (formals_t){variables_at(module, t->first_return),
                       variables_at(module, t->first_parameter),
                       t->return_count, t->parameter_count};
    return true;
  }
  if (t->kind != KILNI_PTX_TABLE_CALL_TARGETS || t->count == 0) return false;
  const kilni_image_ptx_function_t* f =
      &module->functions[module->entries[t->first]];
  *out = (formals_t){variables_at(module, f->first_return),
                     variables_at(module, f->first_parameter), f->return_count,
                     f->parameter_count};
  return true;
}

// Whether `f` is the device's function of that name, with one 64-bit parameter
// and `returns` such results.
static bool is_heap(const kilni_soft_lower_t* lower,
                    const kilni_image_ptx_function_t* f, const char* name,
                    uint32_t returns) {
  const kilni_image_ptx_variable_t* variables = lower->module->variables;
  return !f->is_defined && strcmp(f->name, name) == 0 &&
         f->return_count == returns && f->parameter_count == 1 &&
         variables[f->first_parameter].size_bytes == 8 &&
         (returns == 0 || variables[f->first_return].size_bytes == 8);
}

// cudaGraphSetConditional(handle, value): the device has it as a GPU's driver
// does, without a library.
static bool is_set_conditional(const kilni_soft_lower_t* lower,
                               const kilni_image_ptx_function_t* f) {
  const kilni_image_ptx_variable_t* variables = lower->module->variables;
  return !f->is_defined && strcmp(f->name, "cudaGraphSetConditional") == 0 &&
         f->return_count == 0 && f->parameter_count == 2 &&
         variables[f->first_parameter].size_bytes == 8 &&
         variables[f->first_parameter + 1].size_bytes == 4;
}

// The operation of a call; KILNI_SOFT_NONE after refusing it.
static uint32_t call_op(kilni_soft_lower_t* lower,
                        const kilni_image_ptx_operand_t* callee) {
  if (callee->kind == KILNI_PTX_OPERAND_REGISTER) {
    return KILNI_SOFT_OP_call_indirect;
  }
  const kilni_image_ptx_function_t* f =
      &lower->module->functions[callee->index];
  if (f->is_defined && !f->is_entry) return KILNI_SOFT_OP_call;
  if (!f->is_defined && strcmp(f->name, "vprintf") == 0) {
    return KILNI_SOFT_OP_vprintf;
  }
  if (!f->is_defined && strcmp(f->name, "__assertfail") == 0) {
    return KILNI_SOFT_OP_assertfail;
  }
  if (is_heap(lower, f, "malloc", 1)) return KILNI_SOFT_OP_malloc;
  if (is_heap(lower, f, "free", 0)) return KILNI_SOFT_OP_free;
  if (is_set_conditional(lower, f)) return KILNI_SOFT_OP_set_conditional;
  // What CUDA's own runtime for devices is called by.
  if (strncmp(f->name, "cuda", 4) == 0 || strncmp(f->name, "__cuda", 6) == 0) {
    kilni_soft_refuse(
        lower, "a call of \"%s\", which the device does not provide", f->name);
  } else {
    kilni_soft_refuse_undefined(lower, "function", f->name);
  }
  return KILNI_SOFT_NONE;
}

static void pass_list(kilni_soft_lower_t* lower,
                      const kilni_image_ptx_operand_t* list,
                      const kilni_image_ptx_variable_t* formals, uint32_t count,
                      bool is_result) {
  const kilni_image_ptx_operand_t* parts =
      kilni_image_ptx_operand_children(lower->module, list);
  for (uint32_t i = 0; i < list->count; i++) {
    pass_operand(lower, &parts[i], i < count ? &formals[i] : NULL, is_result);
  }
}

void kilni_soft_decode_call(kilni_soft_lower_t* lower,
                            const kilni_soft_source_t* source) {
  const kilni_image_ptx_operand_t* operands = source->operands;
  formals_t formals;
  uint32_t op = KILNI_SOFT_NONE;
  if (!callee_formals(lower, source, &formals)) {
    kilni_soft_refuse(lower, "an indirect call without a prototype");
    return;
  }
  op = call_op(lower, &operands[1]);
  if (op == KILNI_SOFT_NONE) return;
  if (operands[0].count != formals.return_count ||
      operands[2].count != formals.param_count) {
    kilni_soft_refuse(lower, "a call that does not fit its function");
    return;
  }
  size_t first = lower->pass_count;
  size_t at = lower->call_count;
  uint32_t pointer = 0;
  if (op == KILNI_SOFT_OP_call_indirect) {
    pointer = kilni_soft_use(lower, &operands[1], true, 0);
    lower->out->uses_functions = 1;
  }
  pass_list(lower, &operands[0], formals.returns, formals.return_count, true);
  pass_list(lower, &operands[2], formals.params, formals.param_count, false);
  if (!KILNI_SOFT_GROW(lower, calls, at + 1, call_capacity)) return;
  lower->calls[at] = (kilni_soft_call_t){
      op == KILNI_SOFT_OP_call ? operands[1].index : KILNI_SOFT_NONE,
      operands[0].count, operands[2].count, (uint32_t)first};
  lower->call_count++;
  kilni_soft_low_t* low = kilni_soft_low(lower, op);
  if (op == KILNI_SOFT_OP_call_indirect) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_A, pointer, KILNI_SOFT_ROLE_USE);
  }
  low->word[KILNI_SOFT_WORD_AUX] = (uint32_t)at;
  fetch_results(lower,
                kilni_image_ptx_operand_children(lower->module, &operands[0]),
                operands[0].count, first);
}

// A parameter that is a register of the function.
static bool is_register(const kilni_image_ptx_variable_t* variable) {
  return variable->space == KILNI_PTX_SPACE_REG;
}

void kilni_soft_decode_prologue(kilni_soft_lower_t* lower) {
  const kilni_image_ptx_function_t* source = lower->source;
  if (source->is_entry) return;
  for (uint32_t i = 0; i < source->return_count; i++) {
    kilni_soft_variable_words(lower, source->first_return + i);
  }
  for (uint32_t i = 0; i < source->parameter_count; i++) {
    uint32_t index = source->first_parameter + i;
    const kilni_image_ptx_variable_t* variable =
        &lower->module->variables[index];
    kilni_soft_variable_words(lower, index);
    kilni_soft_param_to_local(lower, index);
    if (!is_register(variable) || variable->register_index == KILNI_PTX_NONE) {
      continue;
    }
    kilni_image_ptx_operand_t d = {.kind = KILNI_PTX_OPERAND_REGISTER,
                                   .component = KILNI_PTX_WHOLE,
                                   .index = variable->register_index};
    uint32_t bytes = (uint32_t)variable->size_bytes;
    uint32_t from = kilni_soft_param_get(lower, index, 0, bytes);
    uint32_t word = kilni_soft_def(lower, &d, bytes == 8);
    kilni_soft_low_unary(
        lower, bytes == 8 ? KILNI_SOFT_OP_mov_b64 : KILNI_SOFT_OP_mov_b32, word,
        from, 0);
  }
}

void kilni_soft_decode_return(kilni_soft_lower_t* lower) {
  const kilni_image_ptx_function_t* source = lower->source;
  for (uint32_t i = 0; !source->is_entry && i < source->return_count; i++) {
    uint32_t index = source->first_return + i;
    const kilni_image_ptx_variable_t* variable =
        &lower->module->variables[index];
    if (!is_register(variable) || variable->register_index == KILNI_PTX_NONE) {
      continue;
    }
    kilni_image_ptx_operand_t value = {.kind = KILNI_PTX_OPERAND_REGISTER,
                                       .component = KILNI_PTX_WHOLE,
                                       .index = variable->register_index};
    uint32_t bytes = (uint32_t)variable->size_bytes;
    kilni_soft_param_put(lower, index, 0, bytes,
                         kilni_soft_use(lower, &value, bytes == 8, 0));
  }
  kilni_soft_low(lower, KILNI_SOFT_OP_ret)->kind = KILNI_SOFT_LOW_END;
}
