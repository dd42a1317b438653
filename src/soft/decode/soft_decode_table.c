// SPDX-License-Identifier: Apache-2.0
//
// soft: instructions that the table of forms knows, compares, moves and
// conversions of addresses.
#include <stdio.h>
#include <string.h>

#include "soft/decode/soft_forms.h"
#include "soft/decode/soft_lower.h"

static void decode_table_refuse_form(kilni_soft_lower_t* lower,
                                     const kilni_soft_source_t* source) {
  kilni_soft_refuse(lower, "%s", source->form->text);
}

// Fills the source words of `low`; false if the operands do not fit.
static bool fill_sources(kilni_soft_lower_t* lower, const char* letters,
                         const kilni_image_ptx_operand_t* operands,
                         uint32_t count, uint32_t type, uint32_t* words,
                         uint8_t* roles) {
  uint32_t at = 0;
  for (; letters[at] && letters[at] != '-'; at++) {
    if (at >= 4 || at >= count) return false;
    const kilni_image_ptx_operand_t* operand = &operands[at];
    switch (letters[at]) {
      case 'w':
      case 'x':
        words[at] = kilni_soft_use(lower, operand, letters[at] == 'x', type);
        roles[at] = KILNI_SOFT_ROLE_USE;
        break;
      case 'p':
        words[at] = kilni_soft_use_pred(lower, operand);
        roles[at] = KILNI_SOFT_ROLE_USE_PRED;
        break;
      case 'i':
        if (operand->kind != KILNI_PTX_OPERAND_IMMEDIATE) return false;
        words[at] = (uint32_t)operand->value;
        roles[at] = KILNI_SOFT_ROLE_RAW;
        break;
      default:
        return false;
    }
  }
  return at == count;
}

// A destination narrower than its register is extended by its type's sign.
static void extend_narrow(kilni_soft_lower_t* lower,
                          const kilni_soft_source_t* source, uint32_t word) {
  uint32_t type = kilni_soft_form_type(source->form, 0);
  uint32_t bits = kilni_image_ptx_type_bits(type);
  uint32_t have = kilni_soft_register_bits(lower, &source->operands[0]);
  if (source->ins->opcode != KILNI_PTX_OP_CVT || bits >= 32 || have <= bits ||
      kilni_image_ptx_type_class(type) != KILNI_PTX_CLASS_SIGNED) {
    return;
  }
  uint32_t keep = have > 32 ? 32 : have;
  kilni_soft_low_unary(lower, KILNI_SOFT_OP_extract, word, word,
                       bits << 8 | 1u << 16 | keep << 24);
}

void kilni_soft_def_finish(kilni_soft_lower_t* lower,
                           const kilni_soft_source_t* source, uint32_t word,
                           bool wide) {
  if (!wide) extend_narrow(lower, source, word);
  uint32_t to = kilni_soft_form_type(source->form, 0);
  kilni_soft_def_done(lower, &source->operands[0], word, wide,
                      kilni_image_ptx_type_class(to) == KILNI_PTX_CLASS_SIGNED);
}

// The operation `op` with the operands of `source`.
static bool decode_op(kilni_soft_lower_t* lower,
                      const kilni_soft_source_t* source, uint32_t op) {
  const char* signature = kilni_soft_op_signature((kilni_soft_op_t)op);
  const char* letters = strchr(signature, ':');
  uint32_t words[4] = {0, 0, 0, 0};
  uint8_t roles[4] = {0, 0, 0, 0};
  if (!letters || source->count == 0) return false;
  uint32_t skip = signature[0] == '-' ? 0 : 1;
  uint32_t type = kilni_soft_form_type(source->form, KILNI_SOFT_NONE);
  if (!fill_sources(lower, letters + 1, source->operands + skip,
                    source->count - skip, type, words, roles)) {
    return false;
  }
  bool wide = signature[0] == 'x';
  uint32_t d = 0;
  if (signature[0] == 'p') {
    d = kilni_soft_def_pred(lower, &source->operands[0]);
  } else if (skip) {
    d = kilni_soft_def(lower, &source->operands[0], wide);
  }
  kilni_soft_low_t* low = kilni_soft_low(lower, op);
  for (uint32_t i = 0; i < 4; i++) {
    if (roles[i] == KILNI_SOFT_ROLE_RAW && words[i]) {
      low->word[KILNI_SOFT_WORD_AUX] = words[i];
    } else if (roles[i] != KILNI_SOFT_ROLE_RAW) {
      kilni_soft_low_word(low, KILNI_SOFT_WORD_A + i, words[i], roles[i]);
    }
  }
  if (skip) {
    kilni_soft_low_word(
        low, KILNI_SOFT_WORD_D, d,
        signature[0] == 'p' ? KILNI_SOFT_ROLE_DEF_PRED : KILNI_SOFT_ROLE_DEF);
  }
  if (skip && signature[0] != 'p') {
    kilni_soft_def_finish(lower, source, d, wide);
  }
  return true;
}

void kilni_soft_decode_table(kilni_soft_lower_t* lower,
                             const kilni_soft_source_t* source) {
  const char* text = source->form->text;
  kilni_soft_op_t op;
  if (!kilni_soft_form_find(text, strlen(text), &op) ||
      kilni_soft_op_signature(op)[0] == '*' || !decode_op(lower, source, op)) {
    decode_table_refuse_form(lower, source);
  }
}

// The text of `setp` that compares as `form` does, without what the decoder
// does itself: the boolean operation, and the result type of `set`.
static bool compare_text(const kilni_image_ptx_form_t* form, char* text,
                         size_t capacity, uint32_t* out_boolean) {
  size_t size = (size_t)snprintf(text, capacity, "setp");
  bool seen_type = form->opcode == KILNI_PTX_OP_SETP;
  *out_boolean = KILNI_PTX_MOD_NONE;
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    uint32_t m = form->modifiers[i];
    if (m == KILNI_PTX_MOD_AND || m == KILNI_PTX_MOD_OR ||
        m == KILNI_PTX_MOD_XOR) {
      *out_boolean = m;
      continue;
    }
    if (!seen_type && kilni_image_ptx_modifier_is_type(m)) {
      seen_type = true;
      continue;
    }
    size += (size_t)snprintf(text + size, capacity - size, ".%s",
                             kilni_image_ptx_modifier_text(m));
    if (size >= capacity) return false;
  }
  return true;
}

static uint32_t pred_temp(kilni_soft_lower_t* lower, uint32_t op, uint32_t a,
                          uint32_t b) {
  uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_PRED);
  kilni_soft_low_t* low = kilni_soft_low(lower, op);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_D, t, KILNI_SOFT_ROLE_DEF_PRED);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, a, KILNI_SOFT_ROLE_USE_PRED);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_B, b, KILNI_SOFT_ROLE_USE_PRED);
  return t;
}

static void pred_move(kilni_soft_lower_t* lower, uint32_t d, uint32_t a) {
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_mov_pred);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_D, d, KILNI_SOFT_ROLE_DEF_PRED);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, a, KILNI_SOFT_ROLE_USE_PRED);
}

static uint32_t boolean_op(uint32_t modifier) {
  if (modifier == KILNI_PTX_MOD_AND) return KILNI_SOFT_OP_and_pred;
  if (modifier == KILNI_PTX_MOD_OR) return KILNI_SOFT_OP_or_pred;
  return KILNI_SOFT_OP_xor_pred;
}

uint32_t kilni_soft_boolean(kilni_soft_lower_t* lower, uint32_t modifier,
                            uint32_t a, uint32_t b) {
  return pred_temp(lower, boolean_op(modifier), a, b);
}

void kilni_soft_write_preds(kilni_soft_lower_t* lower,
                            const kilni_image_ptx_operand_t* d, uint32_t yes,
                            uint32_t no) {
  const kilni_image_ptx_operand_t* p = d;
  const kilni_image_ptx_operand_t* q = NULL;
  if (d->kind == KILNI_PTX_OPERAND_PAIR) {
    p = kilni_image_ptx_operand_children(lower->module, d);
    q = p + 1;
  }
  if (p->kind != KILNI_PTX_OPERAND_SINK) {
    pred_move(lower, kilni_soft_def_pred(lower, p), yes);
  }
  if (q && q->kind != KILNI_PTX_OPERAND_SINK) {
    pred_move(lower, kilni_soft_def_pred(lower, q), no);
  }
}

void kilni_soft_write_compare(kilni_soft_lower_t* lower,
                              const kilni_image_ptx_operand_t* d, uint32_t t,
                              uint32_t boolean, uint32_t c) {
  uint32_t yes = t;
  uint32_t no = t | KILNI_SOFT_PRED_NEGATED;
  if (boolean != KILNI_PTX_MOD_NONE) {
    yes = kilni_soft_boolean(lower, boolean, t, c);
    if (d->kind == KILNI_PTX_OPERAND_PAIR) {
      no = kilni_soft_boolean(lower, boolean, t | KILNI_SOFT_PRED_NEGATED, c);
    }
  }
  kilni_soft_write_preds(lower, d, yes, no);
}

// set: all ones or 1.0 where the compare is true.
static void decode_table_write_set(kilni_soft_lower_t* lower,
                                   const kilni_soft_source_t* source,
                                   uint32_t t) {
  uint32_t type = kilni_soft_form_type(source->form, 0);
  uint32_t one = type == KILNI_PTX_TYPE_F32 ? 0x3f800000u : 0xffffffffu;
  if (type == KILNI_PTX_TYPE_F16) one = 0x3c00u;
  if (type == KILNI_PTX_TYPE_BF16) one = 0x3f80u;
  if (kilni_image_ptx_type_bits(type) != 32 && one == 0xffffffffu) {
    decode_table_refuse_form(lower, source);
    return;
  }
  uint32_t d = kilni_soft_def(lower, &source->operands[0], false);
  kilni_soft_low_t* low = kilni_soft_low_binary(
      lower, KILNI_SOFT_OP_selp_b32, d, kilni_soft_value(lower, one, false),
      kilni_soft_value(lower, 0, false));
  kilni_soft_low_word(low, KILNI_SOFT_WORD_C, t, KILNI_SOFT_ROLE_USE_PRED);
  kilni_soft_def_done(lower, &source->operands[0], d, false, false);
}

void kilni_soft_decode_compare(kilni_soft_lower_t* lower,
                               const kilni_soft_source_t* source) {
  char text[128];
  uint32_t boolean;
  kilni_soft_op_t op;
  bool is_set = source->ins->opcode == KILNI_PTX_OP_SET;
  uint32_t to = kilni_soft_form_type(source->form, 0);
  bool half = to == KILNI_PTX_TYPE_F16 || to == KILNI_PTX_TYPE_BF16;
  if (is_set && source->count == 3 && !half) {
    kilni_soft_decode_table(lower, source);
    return;
  }
  if (!compare_text(source->form, text, sizeof(text), &boolean) ||
      !kilni_soft_form_find(text, strlen(text), &op) ||
      kilni_soft_op_signature(op)[0] != 'p') {
    decode_table_refuse_form(lower, source);
    return;
  }
  const kilni_image_ptx_operand_t* d = &source->operands[0];
  if (!is_set && boolean == KILNI_PTX_MOD_NONE &&
      d->kind != KILNI_PTX_OPERAND_PAIR) {
    if (!decode_op(lower, source, op)) decode_table_refuse_form(lower, source);
    return;
  }
  uint32_t want = boolean == KILNI_PTX_MOD_NONE ? 3 : 4;
  if (source->count != want) {
    decode_table_refuse_form(lower, source);
    return;
  }
  bool wide = kilni_soft_op_signature(op)[2] == 'x';
  uint32_t type = kilni_soft_form_type(source->form, KILNI_SOFT_NONE);
  uint32_t a = kilni_soft_use(lower, &source->operands[1], wide, type);
  uint32_t b = kilni_soft_use(lower, &source->operands[2], wide, type);
  uint32_t c = 0;
  if (want == 4) c = kilni_soft_use_pred(lower, &source->operands[3]);
  uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_PRED);
  kilni_soft_low_t* low = kilni_soft_low_binary(lower, op, t, a, b);
  low->role[KILNI_SOFT_WORD_D] = KILNI_SOFT_ROLE_DEF_PRED;
  if (!is_set) {
    kilni_soft_write_compare(lower, d, t, boolean, c);
    return;
  }
  if (boolean != KILNI_PTX_MOD_NONE) {
    t = pred_temp(lower, boolean_op(boolean), t, c);
  }
  decode_table_write_set(lower, source, t);
}

// mov of {a, b, ...} into one register.
static void move_pack(kilni_soft_lower_t* lower,
                      const kilni_soft_source_t* source, uint32_t bits) {
  const kilni_image_ptx_operand_t* vector = &source->operands[1];
  const kilni_image_ptx_operand_t* part =
      kilni_image_ptx_operand_children(lower->module, vector);
  uint32_t count = vector->count;
  uint32_t each = count ? bits / count : 0;
  uint32_t words[4];
  if (count != 2 && count != 4) {
    decode_table_refuse_form(lower, source);
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    words[i] = kilni_soft_use(lower, &part[i], false, 0);
  }
  if (each == 8 || each == 16) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t at = i * each % 32;
      if (at == 0) {
        out = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
        kilni_soft_low_unary(lower, KILNI_SOFT_OP_extract, out, words[i],
                             each << 8 | 32u << 24);
      } else {
        kilni_soft_low_t* low = kilni_soft_low_unary(
            lower, KILNI_SOFT_OP_insert, out, words[i], at | each << 8);
        low->role[KILNI_SOFT_WORD_D] = KILNI_SOFT_ROLE_BOTH;
      }
      words[i * each / 32] = out;
    }
  }
  bool wide = bits == 64;
  uint32_t d = kilni_soft_def(lower, &source->operands[0], wide);
  if (wide) {
    kilni_soft_low_binary(lower, KILNI_SOFT_OP_pack_b64_b32x2, d, words[0],
                          words[1]);
  } else {
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b32, d, words[0], 0);
  }
  kilni_soft_def_done(lower, &source->operands[0], d, wide, false);
}

// Where a half of 64 bits is written: its register, or nowhere that lasts.
static uint32_t decode_table_half_of(kilni_soft_lower_t* lower,
                                     const kilni_image_ptx_operand_t* part) {
  if (part == NULL || part->kind == KILNI_PTX_OPERAND_SINK) {
    return kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
  }
  return kilni_soft_def(lower, part, false);
}

// mov of one register into {a, b, ...}.
static void move_unpack(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source, uint32_t bits) {
  const kilni_image_ptx_operand_t* vector = &source->operands[0];
  const kilni_image_ptx_operand_t* part =
      kilni_image_ptx_operand_children(lower->module, vector);
  uint32_t count = vector->count;
  uint32_t each = count ? bits / count : 0;
  uint32_t words[2];
  if ((count != 2 && count != 4) || each < 8) {
    decode_table_refuse_form(lower, source);
    return;
  }
  bool wide = bits == 64;
  words[0] = kilni_soft_use(lower, &source->operands[1], wide, 0);
  if (wide) {
    // Halves go straight to where they belong.
    bool halves = each == 32;
    uint32_t lo = decode_table_half_of(lower, halves ? &part[0] : NULL);
    uint32_t hi = decode_table_half_of(lower, halves ? &part[1] : NULL);
    kilni_soft_low_t* low = kilni_soft_low_unary(
        lower, KILNI_SOFT_OP_unpack_b64_b32x2, lo, words[0], 0);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_B, hi, KILNI_SOFT_ROLE_DEF);
    words[0] = lo;
    words[1] = hi;
    for (uint32_t i = 0; halves && i < 2; i++) {
      if (part[i].kind == KILNI_PTX_OPERAND_SINK) continue;
      kilni_soft_def_done(lower, &part[i], words[i], false, false);
    }
    if (halves) return;
  } else {
    // The source may be one of the destinations.
    uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b32, t, words[0], 0);
    words[0] = t;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (part[i].kind == KILNI_PTX_OPERAND_SINK) continue;
    uint32_t d = kilni_soft_def(lower, &part[i], false);
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_extract, d, words[i * each / 32],
                         i * each % 32 | each << 8 | 32u << 24);
    kilni_soft_def_done(lower, &part[i], d, false, false);
  }
}

// The 64-bit halves of an operand of mov.b128.
static bool halves_of(const kilni_soft_lower_t* lower,
                      const kilni_image_ptx_operand_t* operand,
                      kilni_image_ptx_operand_t out_halves[2]) {
  if (operand->kind != KILNI_PTX_OPERAND_VECTOR) {
    return kilni_soft_halves(lower, operand, out_halves);
  }
  if (operand->count != 2) return false;
  const kilni_image_ptx_operand_t* parts =
      kilni_image_ptx_operand_children(lower->module, operand);
  out_halves[0] = parts[0];
  out_halves[1] = parts[1];
  return true;
}

// Both halves are read before one is written.
static void move_128(kilni_soft_lower_t* lower,
                     const kilni_soft_source_t* source) {
  kilni_image_ptx_operand_t d[2];
  kilni_image_ptx_operand_t a[2];
  uint32_t words[2];
  if (!halves_of(lower, &source->operands[0], d) ||
      !halves_of(lower, &source->operands[1], a)) {
    decode_table_refuse_form(lower, source);
    return;
  }
  for (uint32_t i = 0; i < 2; i++) {
    words[i] = kilni_soft_temp(lower, KILNI_SOFT_CLASS_64);
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b64, words[i],
                         kilni_soft_use(lower, &a[i], true, 0), 0);
  }
  for (uint32_t i = 0; i < 2; i++) {
    if (d[i].kind == KILNI_PTX_OPERAND_SINK) continue;
    uint32_t to = kilni_soft_def(lower, &d[i], true);
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b64, to, words[i], 0);
    kilni_soft_def_done(lower, &d[i], to, true, false);
  }
}

// mov of vectors of the same shape: all are read before one is written.
static void move_vector(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source, uint32_t bits) {
  const kilni_image_ptx_operand_t* to = &source->operands[0];
  const kilni_image_ptx_operand_t* from = &source->operands[1];
  uint32_t words[4];
  if (to->kind != KILNI_PTX_OPERAND_VECTOR || from->kind != to->kind ||
      from->count != to->count || to->count > 4 || bits < 16 || bits > 64) {
    decode_table_refuse_form(lower, source);
    return;
  }
  const kilni_image_ptx_operand_t* d =
      kilni_image_ptx_operand_children(lower->module, to);
  const kilni_image_ptx_operand_t* a =
      kilni_image_ptx_operand_children(lower->module, from);
  bool wide = bits == 64;
  uint32_t op = wide ? KILNI_SOFT_OP_mov_b64 : KILNI_SOFT_OP_mov_b32;
  uint32_t type = kilni_soft_form_type(source->form, 0);
  for (uint32_t i = 0; i < to->count; i++) {
    words[i] = kilni_soft_temp(
        lower, wide ? KILNI_SOFT_CLASS_64 : KILNI_SOFT_CLASS_32);
    kilni_soft_low_unary(lower, op, words[i],
                         kilni_soft_use(lower, &a[i], wide, type), 0);
  }
  for (uint32_t i = 0; i < to->count; i++) {
    if (d[i].kind == KILNI_PTX_OPERAND_SINK) continue;
    uint32_t word = kilni_soft_def(lower, &d[i], wide);
    kilni_soft_low_unary(lower, op, word, words[i], 0);
    kilni_soft_def_done(lower, &d[i], word, wide, false);
  }
}

void kilni_soft_decode_move(kilni_soft_lower_t* lower,
                            const kilni_soft_source_t* source) {
  const kilni_image_ptx_operand_t* d = &source->operands[0];
  const kilni_image_ptx_operand_t* a = &source->operands[1];
  uint32_t bits =
      kilni_image_ptx_type_bits(kilni_soft_form_type(source->form, 0));
  bool vector = kilni_soft_form_has(source->form, KILNI_PTX_MOD_V2) ||
                kilni_soft_form_has(source->form, KILNI_PTX_MOD_V4);
  if (source->count == 2 && vector) {
    move_vector(lower, source, bits);
  } else if (source->count == 2 && bits == 128) {
    move_128(lower, source);
  } else if (source->count != 2 || bits > 64) {
    decode_table_refuse_form(lower, source);
  } else if (d->kind == KILNI_PTX_OPERAND_VECTOR) {
    move_unpack(lower, source, bits);
  } else if (a->kind == KILNI_PTX_OPERAND_VECTOR) {
    move_pack(lower, source, bits);
  } else if (a->kind == KILNI_PTX_OPERAND_SPECIAL && bits >= 32) {
    uint32_t word = kilni_soft_def(lower, d, bits == 64);
    kilni_soft_special(lower, a, word, bits == 64);
    kilni_soft_def_done(lower, d, word, bits == 64, false);
  } else {
    kilni_soft_decode_table(lower, source);
  }
}

static uint32_t decode_table_space_of(const kilni_image_ptx_form_t* form) {
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    switch (form->modifiers[i]) {
      case KILNI_PTX_MOD_GLOBAL:
        return KILNI_SOFT_SPACE_GLOBAL;
      case KILNI_PTX_MOD_CONST:
        return KILNI_SOFT_SPACE_CONST;
      case KILNI_PTX_MOD_SHARED:
      case KILNI_PTX_MOD_SHARED_CTA:
      case KILNI_PTX_MOD_SHARED_CLUSTER:
        return KILNI_SOFT_SPACE_SHARED;
      case KILNI_PTX_MOD_LOCAL:
        return KILNI_SOFT_SPACE_LOCAL;
      case KILNI_PTX_MOD_PARAM:
      case KILNI_PTX_MOD_PARAM_ENTRY:
        return KILNI_SOFT_SPACE_PARAM;
      default:
        break;
    }
  }
  return KILNI_SOFT_SPACE_GENERIC;
}

void kilni_soft_decode_cvta(kilni_soft_lower_t* lower,
                            const kilni_soft_source_t* source) {
  uint32_t space = decode_table_space_of(source->form);
  const kilni_image_ptx_operand_t* a = &source->operands[1];
  bool narrow = kilni_soft_form_type(source->form, 0) == KILNI_PTX_TYPE_U32;
  if (space == KILNI_SOFT_SPACE_GENERIC || source->count != 2 || narrow) {
    decode_table_refuse_form(lower, source);
    return;
  }
  bool leave = kilni_soft_form_has(source->form, KILNI_PTX_MOD_TO);
  if (source->ins->opcode == KILNI_PTX_OP_ISSPACEP) {
    uint32_t word = kilni_soft_use(lower, a, true, 0);
    kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_isspacep);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_D,
                        kilni_soft_def_pred(lower, &source->operands[0]),
                        KILNI_SOFT_ROLE_DEF_PRED);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_A, word, KILNI_SOFT_ROLE_USE);
    low->word[KILNI_SOFT_WORD_AUX] = space;
    return;
  }
  uint32_t d = kilni_soft_def(lower, &source->operands[0], true);
  bool done = false;
  uint32_t word;
  if (a->kind == KILNI_PTX_OPERAND_VARIABLE && !leave) {
    word = kilni_soft_variable_address(lower, a->index, a->value, true);
    done = true;
  } else {
    word = kilni_soft_use(lower, a, true, 0);
  }
  if (done || space == KILNI_SOFT_SPACE_GLOBAL ||
      space == KILNI_SOFT_SPACE_CONST) {
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b64, d, word, 0);
  } else {
    kilni_soft_low_t* low =
        kilni_soft_low_unary(lower, KILNI_SOFT_OP_add_window, d, word, space);
    low->word[KILNI_SOFT_WORD_B] = leave;
  }
  kilni_soft_def_done(lower, &source->operands[0], d, true, false);
}
