// SPDX-License-Identifier: Apache-2.0
//
// soft: lop3 with a predicate, what a cluster of one block answers by itself,
// policies of caches.
#include "soft/decode/soft_lower.h"

static void decode_other_refuse_form(kilni_soft_lower_t* lower,
                                     const kilni_soft_source_t* source) {
  kilni_soft_refuse(lower, "%s", source->form->text);
}

static void decode_lop3(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source) {
  const kilni_image_ptx_operand_t* operands = source->operands;
  uint32_t boolean = KILNI_PTX_MOD_NONE;
  if (kilni_soft_form_has(source->form, KILNI_PTX_MOD_AND)) {
    boolean = KILNI_PTX_MOD_AND;
  }
  if (kilni_soft_form_has(source->form, KILNI_PTX_MOD_OR)) {
    boolean = KILNI_PTX_MOD_OR;
  }
  if (boolean == KILNI_PTX_MOD_NONE) {
    kilni_soft_decode_table(lower, source);
    return;
  }
  if (source->count != 6 || operands[0].kind != KILNI_PTX_OPERAND_PAIR ||
      operands[4].kind != KILNI_PTX_OPERAND_IMMEDIATE) {
    decode_other_refuse_form(lower, source);
    return;
  }
  const kilni_image_ptx_operand_t* p;
  const kilni_image_ptx_operand_t* d =
      kilni_soft_split(lower, &operands[0], &p);
  uint32_t words[3];
  for (uint32_t i = 0; i < 3; i++) {
    words[i] = kilni_soft_use(lower, &operands[1 + i], false, 0);
  }
  uint32_t q = kilni_soft_use_pred(lower, &operands[5]);
  uint32_t r = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
  kilni_soft_low_t* low = kilni_soft_low_binary(lower, KILNI_SOFT_OP_lop3_b32,
                                                r, words[0], words[1]);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_C, words[2], KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_AUX] = (uint32_t)operands[4].value;
  if (p) {
    uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_PRED);
    low = kilni_soft_low_binary(lower, KILNI_SOFT_OP_setp_ne_b32, t, r,
                                kilni_soft_value(lower, 0, false));
    low->role[KILNI_SOFT_WORD_D] = KILNI_SOFT_ROLE_DEF_PRED;
    t = kilni_soft_boolean(lower, boolean, t, q);
    kilni_soft_write_preds(lower, p, t, t);
  }
  if (d->kind == KILNI_PTX_OPERAND_SINK) return;
  uint32_t to = kilni_soft_def(lower, d, false);
  kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b32, to, r, 0);
  kilni_soft_def_done(lower, d, to, false, false);
}

// d becomes `word`.
static void assign(kilni_soft_lower_t* lower, const kilni_soft_source_t* source,
                   uint32_t word, bool wide) {
  uint32_t d = kilni_soft_def(lower, &source->operands[0], wide);
  kilni_soft_low_unary(
      lower, wide ? KILNI_SOFT_OP_mov_b64 : KILNI_SOFT_OP_mov_b32, d, word, 0);
  kilni_soft_def_done(lower, &source->operands[0], d, wide, false);
}

void kilni_soft_decode_other(kilni_soft_lower_t* lower,
                             const kilni_soft_source_t* source) {
  uint32_t type = kilni_soft_form_type(source->form, 0);
  bool wide = kilni_image_ptx_type_bits(type) == 64;
  switch (source->ins->opcode) {
    case KILNI_PTX_OP_LOP3:
      decode_lop3(lower, source);
      return;
    case KILNI_PTX_OP_CREATEPOLICY:
      // A policy is a hint: any number will do.
      assign(lower, source, kilni_soft_value(lower, 0, true), true);
      return;
    case KILNI_PTX_OP_GETCTARANK:
      // The only block of a cluster is its first.
      assign(lower, source, kilni_soft_value(lower, 0, false), false);
      return;
    case KILNI_PTX_OP_MAPA:
      assign(lower, source,
             kilni_soft_use(lower, &source->operands[1], wide, 0), wide);
      return;
    default:
      decode_other_refuse_form(lower, source);
  }
}
