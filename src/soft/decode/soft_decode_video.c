// SPDX-License-Identifier: Apache-2.0
//
// soft: the video instructions, on one number, or on two or four in a word,
// and cvt.pack.
#include <string.h>

#include "soft/code/soft_video.h"
#include "soft/decode/soft_forms.h"
#include "soft/decode/soft_lower.h"

static bool decode_video_has(const kilni_soft_source_t* source,
                             uint32_t modifier) {
  return kilni_soft_form_has(source->form, modifier);
}

static bool decode_video_is_signed(const kilni_soft_source_t* source,
                                   uint32_t number) {
  return kilni_soft_form_type(source->form, number) == KILNI_PTX_TYPE_S32;
}

static uint32_t compare_action(const kilni_soft_source_t* source) {
  static const struct {
    uint16_t modifier;
    uint16_t action;
  } rows[] = {
      {KILNI_PTX_MOD_EQ, KILNI_SOFT_VIDEO_EQ},
      {KILNI_PTX_MOD_NE, KILNI_SOFT_VIDEO_NE},
      {KILNI_PTX_MOD_LT, KILNI_SOFT_VIDEO_LT},
      {KILNI_PTX_MOD_LE, KILNI_SOFT_VIDEO_LE},
      {KILNI_PTX_MOD_GT, KILNI_SOFT_VIDEO_GT},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (decode_video_has(source, rows[i].modifier)) return rows[i].action;
  }
  return KILNI_SOFT_VIDEO_GE;
}

static uint32_t decode_video_action_of(const kilni_soft_source_t* source) {
  switch (source->form->opcode) {
    case KILNI_PTX_OP_VADD:
    case KILNI_PTX_OP_VADD2:
    case KILNI_PTX_OP_VADD4:
      return KILNI_SOFT_VIDEO_ADD;
    case KILNI_PTX_OP_VSUB:
    case KILNI_PTX_OP_VSUB2:
    case KILNI_PTX_OP_VSUB4:
      return KILNI_SOFT_VIDEO_SUB;
    case KILNI_PTX_OP_VABSDIFF:
    case KILNI_PTX_OP_VABSDIFF2:
    case KILNI_PTX_OP_VABSDIFF4:
      return KILNI_SOFT_VIDEO_ABSDIFF;
    case KILNI_PTX_OP_VMIN:
    case KILNI_PTX_OP_VMIN2:
    case KILNI_PTX_OP_VMIN4:
      return KILNI_SOFT_VIDEO_MIN;
    case KILNI_PTX_OP_VMAX:
    case KILNI_PTX_OP_VMAX2:
    case KILNI_PTX_OP_VMAX4:
      return KILNI_SOFT_VIDEO_MAX;
    case KILNI_PTX_OP_VAVRG2:
    case KILNI_PTX_OP_VAVRG4:
      return KILNI_SOFT_VIDEO_AVRG;
    case KILNI_PTX_OP_VSET:
    case KILNI_PTX_OP_VSET2:
    case KILNI_PTX_OP_VSET4:
      return compare_action(source);
    case KILNI_PTX_OP_VSHL:
      return KILNI_SOFT_VIDEO_SHL;
    case KILNI_PTX_OP_VSHR:
      return KILNI_SOFT_VIDEO_SHR;
    default:
      return KILNI_SOFT_VIDEO_PACK;
  }
}

// The types in the form: a compare has none for d.
static uint32_t type_flags(const kilni_soft_source_t* source, uint32_t action) {
  uint32_t first =
      action >= KILNI_SOFT_VIDEO_EQ && action <= KILNI_SOFT_VIDEO_GE ? 0 : 1;
  uint32_t flags = action;
  if (first == 1 && decode_video_is_signed(source, 0)) {
    flags |= KILNI_SOFT_VIDEO_SIGNED_D;
  }
  if (decode_video_is_signed(source, first)) flags |= KILNI_SOFT_VIDEO_SIGNED_A;
  if (decode_video_is_signed(source, first + 1)) {
    flags |= KILNI_SOFT_VIDEO_SIGNED_B;
  }
  if (decode_video_has(source, KILNI_PTX_MOD_SAT)) {
    flags |= KILNI_SOFT_VIDEO_SAT;
  }
  if (decode_video_has(source, KILNI_PTX_MOD_ADD)) {
    flags |= KILNI_SOFT_VIDEO_SUM;
  }
  return flags;
}

// The sources of an operation as words; a third that is not there reads as the
// first.
static void use_sources(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source, uint32_t words[3]) {
  const kilni_image_ptx_operand_t* operands = source->operands;
  words[0] = kilni_soft_use(lower, &operands[1], false, 0);
  words[1] = kilni_soft_use(lower, &operands[2], false, 0);
  words[2] = source->count > 3 ? kilni_soft_use(lower, &operands[3], false, 0)
                               : words[0];
}

static void decode_video_emit(kilni_soft_lower_t* lower,
                              const kilni_soft_source_t* source, uint32_t op,
                              const uint32_t words[3], uint32_t aux) {
  uint32_t d = kilni_soft_def(lower, &source->operands[0], false);
  kilni_soft_low_t* low =
      kilni_soft_low_binary(lower, op, d, words[0], words[1]);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_C, words[2], KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_AUX] = aux;
  kilni_soft_def_done(lower, &source->operands[0], d, false, false);
}

static bool decode_pack(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source) {
  uint32_t type = kilni_soft_form_type(source->form, 0);
  uint32_t words[3];
  if (source->count != (kilni_image_ptx_type_bits(type) == 16 ? 3u : 4u)) {
    return false;
  }
  use_sources(lower, source, words);
  decode_video_emit(
      lower, source, KILNI_SOFT_OP_video, words,
      KILNI_SOFT_VIDEO_PACK | kilni_image_ptx_type_bits(type) << 4 |
          (kilni_image_ptx_type_class(type) == KILNI_PTX_CLASS_SIGNED
               ? KILNI_SOFT_VIDEO_SIGNED_D
               : 0u));
  return true;
}

// ---- Two or four numbers ----

// The parts that the selector of a destination leaves out, a bit each.
static bool has_several(const kilni_image_ptx_operand_t* operand,
                        uint32_t count) {
  return operand->selector ==
         (count == 4 ? KILNI_PTX_SELECT_BYTES : KILNI_PTX_SELECT_HALVES);
}

static bool parts_left(const kilni_image_ptx_operand_t* d, uint32_t count,
                       uint32_t* out_left) {
  uint32_t all = count == 4 ? 15u : 3u;
  uint32_t first = count == 4 ? KILNI_PTX_SELECT_B0 : KILNI_PTX_SELECT_H0;
  *out_left = 0;
  if (d->selector == KILNI_PTX_SELECT_NONE) return true;
  if (!has_several(d, count)) {
    if (d->selector < first || d->selector >= first + count) return false;
    *out_left = all & ~(1u << (d->selector - first));
    return true;
  }
  // From the greatest down, none twice.
  uint32_t digits = (uint32_t)d->value & 0xffffu;
  uint32_t least = digits & 15u;
  uint32_t taken = 1u << least;
  for (digits >>= 4; digits; digits >>= 4) {
    if ((digits & 15u) <= least) return false;
    least = digits & 15u;
    taken |= 1u << least;
  }
  *out_left = all & ~taken;
  return taken <= all && (taken & (taken - 1)) != 0;
}

// The bytes of the pair b, a that make a source, as prmt names them.
static bool selector_bytes(const kilni_image_ptx_operand_t* operand,
                           uint32_t count, uint32_t* out_bytes) {
  if (!has_several(operand, count) || operand->value >> 16 != count) {
    return false;
  }
  uint32_t digits = (uint32_t)operand->value & 0xffffu;
  if (count == 4) {
    *out_bytes = digits;
    return true;
  }
  uint32_t low = 2 * (digits & 15u);
  uint32_t high = 2 * (digits >> 4 & 15u);
  *out_bytes = low | (low + 1) << 4 | high << 8 | (high + 1) << 12;
  return true;
}

static bool select_parts(kilni_soft_lower_t* lower,
                         const kilni_image_ptx_operand_t* operand,
                         uint32_t count, const uint32_t words[3],
                         uint32_t* inout_word) {
  uint32_t bytes;
  if (operand->selector == KILNI_PTX_SELECT_NONE) return true;
  if (!selector_bytes(operand, count, &bytes)) return false;
  uint32_t to = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
  kilni_soft_low_t* low = kilni_soft_low_binary(lower, KILNI_SOFT_OP_prmt_b32,
                                                to, words[0], words[1]);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_C,
                      kilni_soft_value(lower, bytes, false),
                      KILNI_SOFT_ROLE_USE);
  *inout_word = to;
  return true;
}

static bool decode_parts(kilni_soft_lower_t* lower,
                         const kilni_soft_source_t* source) {
  const kilni_image_ptx_operand_t* operands = source->operands;
  const char* text = kilni_image_ptx_opcode_text(source->form->opcode);
  uint32_t count = text[strlen(text) - 1] == '4' ? 4 : 2;
  uint32_t words[3];
  uint32_t left;
  if (source->count != 4 || !parts_left(&operands[0], count, &left) ||
      operands[3].selector != KILNI_PTX_SELECT_NONE) {
    return false;
  }
  use_sources(lower, source, words);
  uint32_t parts[3] = {words[0], words[1], words[2]};
  for (uint32_t i = 0; i < 2; i++) {
    if (!select_parts(lower, &operands[1 + i], count, words, &parts[i])) {
      return false;
    }
  }
  decode_video_emit(lower, source, KILNI_SOFT_OP_video, parts,
                    type_flags(source, decode_video_action_of(source)) |
                        32 / count << 4 | left << 14);
  return true;
}

// ---- One number ----

static bool one_part(const kilni_image_ptx_operand_t* operand, uint32_t at,
                     uint32_t* inout_aux) {
  if (operand->selector > KILNI_PTX_SELECT_H1) return false;
  *inout_aux |= (uint32_t)operand->selector << at;
  return true;
}

static bool decode_one(kilni_soft_lower_t* lower,
                       const kilni_soft_source_t* source) {
  const kilni_image_ptx_operand_t* operands = source->operands;
  uint32_t aux = type_flags(source, decode_video_action_of(source));
  if (decode_video_has(source, KILNI_PTX_MOD_MIN)) {
    aux |= KILNI_SOFT_VIDEO_LEAST;
  }
  if (decode_video_has(source, KILNI_PTX_MOD_MAX)) aux |= KILNI_SOFT_VIDEO_MOST;
  if (decode_video_has(source, KILNI_PTX_MOD_WRAP)) {
    aux |= KILNI_SOFT_VIDEO_WRAP;
  }
  uint32_t with = aux & (KILNI_SOFT_VIDEO_SUM | KILNI_SOFT_VIDEO_LEAST |
                         KILNI_SOFT_VIDEO_MOST);
  bool merges = operands[0].selector != KILNI_PTX_SELECT_NONE;
  uint32_t words[3];
  if ((with && merges) || ((with || merges) && source->count != 4) ||
      !one_part(&operands[0], KILNI_SOFT_VIDEO_PARTS_D, &aux) ||
      !one_part(&operands[1], KILNI_SOFT_VIDEO_PARTS_A, &aux) ||
      !one_part(&operands[2], KILNI_SOFT_VIDEO_PARTS_B, &aux) ||
      (source->count == 4 && operands[3].selector != KILNI_PTX_SELECT_NONE)) {
    return false;
  }
  for (uint32_t i = 0; i < source->count; i++) {
    if (operands[i].negated) return false;
  }
  use_sources(lower, source, words);
  decode_video_emit(lower, source, KILNI_SOFT_OP_video_one, words, aux);
  return true;
}

// Either the product or c may be negated, or one be added.
static bool decode_mad(kilni_soft_lower_t* lower,
                       const kilni_soft_source_t* source) {
  const kilni_image_ptx_operand_t* operands = source->operands;
  uint32_t aux = type_flags(source, KILNI_SOFT_VIDEO_ADD);
  bool minus = operands[1].negated != operands[2].negated;
  bool minus_c = operands[3].negated;
  bool plus_one = decode_video_has(source, KILNI_PTX_MOD_PO);
  bool any = operands[1].negated || operands[2].negated || minus_c;
  uint32_t words[3];
  if (source->count != 4 || (plus_one && any) || (minus && minus_c) ||
      operands[0].selector != KILNI_PTX_SELECT_NONE ||
      operands[3].selector != KILNI_PTX_SELECT_NONE ||
      !one_part(&operands[1], KILNI_SOFT_VIDEO_PARTS_A, &aux) ||
      !one_part(&operands[2], KILNI_SOFT_VIDEO_PARTS_B, &aux)) {
    return false;
  }
  // The sum is signed if anything in it is; the type of d does not matter.
  aux &= ~KILNI_SOFT_VIDEO_SIGNED_D;
  if (minus || minus_c ||
      aux & (KILNI_SOFT_VIDEO_SIGNED_A | KILNI_SOFT_VIDEO_SIGNED_B)) {
    aux |= KILNI_SOFT_VIDEO_SIGNED_D;
  }
  if (minus) aux |= KILNI_SOFT_VIDEO_MINUS_PRODUCT;
  if (minus_c) aux |= KILNI_SOFT_VIDEO_MINUS_C;
  if (plus_one) aux |= KILNI_SOFT_VIDEO_PLUS_ONE;
  if (decode_video_has(source, KILNI_PTX_MOD_SHR7)) {
    aux |= KILNI_SOFT_VIDEO_SHR7;
  }
  if (decode_video_has(source, KILNI_PTX_MOD_SHR15)) {
    aux |= KILNI_SOFT_VIDEO_SHR15;
  }
  for (uint32_t i = 0; i < 3; i++) {
    kilni_image_ptx_operand_t plain = operands[1 + i];
    plain.negated = 0;
    words[i] = kilni_soft_use(lower, &plain, false, 0);
  }
  decode_video_emit(lower, source, KILNI_SOFT_OP_video_mad, words, aux);
  return true;
}

void kilni_soft_decode_video(kilni_soft_lower_t* lower,
                             const kilni_soft_source_t* source) {
  const char* text = source->form->text;
  kilni_soft_op_t op;
  bool good = kilni_soft_form_find(text, strlen(text), &op);
  if (good && source->ins->opcode == KILNI_PTX_OP_CVT) {
    good = decode_pack(lower, source);
  } else if (good && op == KILNI_SOFT_OP_video) {
    good = decode_parts(lower, source);
  } else if (good && op == KILNI_SOFT_OP_video_one) {
    good = decode_one(lower, source);
  } else if (good) {
    good = op == KILNI_SOFT_OP_video_mad && decode_mad(lower, source);
  }
  if (!good) kilni_soft_refuse(lower, "%s", text);
}
