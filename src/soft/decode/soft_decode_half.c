// SPDX-License-Identifier: Apache-2.0
//
// soft: instructions on small floats and on pairs of 16-bit numbers.
//
// What has no operation of its own is made of several: a compare of halves
// widens both and compares f32, a conversion to an integer widens first. All
// of these are exact up to their last step.
#include <stdio.h>
#include <string.h>

#include "soft/code/soft_half.h"
#include "soft/decode/soft_forms.h"
#include "soft/decode/soft_lower.h"

static uint32_t decode_half_format_of(uint32_t type) {
  switch (type) {
    case KILNI_PTX_TYPE_F16:
    case KILNI_PTX_TYPE_F16X2:
      return KILNI_SOFT_HALF_F16;
    case KILNI_PTX_TYPE_BF16:
    case KILNI_PTX_TYPE_BF16X2:
      return KILNI_SOFT_HALF_BF16;
    case KILNI_PTX_TYPE_TF32:
      return KILNI_SOFT_HALF_TF32;
    case KILNI_PTX_TYPE_E4M3X2:
      return KILNI_SOFT_HALF_E4M3;
    case KILNI_PTX_TYPE_E5M2X2:
      return KILNI_SOFT_HALF_E5M2;
    default:
      return KILNI_SOFT_NONE;
  }
}

static bool is_small(uint32_t type) {
  return decode_half_format_of(type) != KILNI_SOFT_NONE;
}

static bool decode_half_is_pair(uint32_t type) {
  return kilni_image_ptx_type_class(type) == KILNI_PTX_CLASS_PACKED;
}

static bool is_int_pair(uint32_t type) {
  return type == KILNI_PTX_TYPE_U16X2 || type == KILNI_PTX_TYPE_S16X2;
}

bool kilni_soft_form_is_half(const kilni_image_ptx_form_t* form) {
  switch (form->opcode) {
    case KILNI_PTX_OP_ADD:
    case KILNI_PTX_OP_SUB:
    case KILNI_PTX_OP_MUL:
    case KILNI_PTX_OP_FMA:
    case KILNI_PTX_OP_NEG:
    case KILNI_PTX_OP_ABS:
    case KILNI_PTX_OP_MIN:
    case KILNI_PTX_OP_MAX:
    case KILNI_PTX_OP_EX2:
    case KILNI_PTX_OP_TANH:
    case KILNI_PTX_OP_SETP:
    case KILNI_PTX_OP_SET:
    case KILNI_PTX_OP_CVT:
      break;
    default:
      return false;
  }
  uint32_t first = kilni_soft_form_type(form, 0);
  uint32_t last = kilni_soft_form_type(form, KILNI_SOFT_NONE);
  // The result of a compare does not choose the instruction.
  if (form->opcode == KILNI_PTX_OP_SET) return is_small(last);
  return is_small(first) || is_small(last) || is_int_pair(first);
}

// The flags that modifiers name, the type's format and whether it is a pair.
static uint32_t decode_half_read_flags(const kilni_image_ptx_form_t* form,
                                       uint32_t type) {
  static const struct {
    uint16_t modifier;
    uint32_t flag;
  } rows[] = {
      {KILNI_PTX_MOD_FTZ, KILNI_SOFT_HALF_FTZ},
      {KILNI_PTX_MOD_SAT, KILNI_SOFT_HALF_SAT},
      {KILNI_PTX_MOD_RELU, KILNI_SOFT_HALF_RELU},
      {KILNI_PTX_MOD_SATFINITE, KILNI_SOFT_HALF_SATFINITE},
      {KILNI_PTX_MOD_NAN_RESULT, KILNI_SOFT_HALF_NAN},
      {KILNI_PTX_MOD_XORSIGN, KILNI_SOFT_HALF_XORSIGN},
      {KILNI_PTX_MOD_RZ, KILNI_SOFT_HALF_RZ << 4},
      {KILNI_PTX_MOD_RM, KILNI_SOFT_HALF_RM << 4},
      {KILNI_PTX_MOD_RP, KILNI_SOFT_HALF_RP << 4},
      {KILNI_PTX_MOD_RNA, KILNI_SOFT_HALF_RNA << 4},
  };
  uint32_t flags = is_small(type) ? decode_half_format_of(type) : 0;
  if (decode_half_is_pair(type)) flags |= KILNI_SOFT_HALF_PAIR;
  if (type == KILNI_PTX_TYPE_S16X2) flags |= KILNI_SOFT_HALF_SIGNED;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (kilni_soft_form_has(form, rows[i].modifier)) flags |= rows[i].flag;
  }
  return flags;
}

static uint32_t decode_half_action_of(uint32_t opcode) {
  switch (opcode) {
    case KILNI_PTX_OP_ADD:
      return KILNI_SOFT_HALF_ADD;
    case KILNI_PTX_OP_SUB:
      return KILNI_SOFT_HALF_SUB;
    case KILNI_PTX_OP_MUL:
      return KILNI_SOFT_HALF_MUL;
    case KILNI_PTX_OP_FMA:
      return KILNI_SOFT_HALF_FMA;
    case KILNI_PTX_OP_NEG:
      return KILNI_SOFT_HALF_NEG;
    case KILNI_PTX_OP_ABS:
      return KILNI_SOFT_HALF_ABS;
    case KILNI_PTX_OP_MIN:
      return KILNI_SOFT_HALF_MIN;
    case KILNI_PTX_OP_MAX:
      return KILNI_SOFT_HALF_MAX;
    case KILNI_PTX_OP_EX2:
      return KILNI_SOFT_HALF_EX2;
    default:
      return KILNI_SOFT_HALF_TANH;
  }
}

// The NaN for elements out of bounds, of f16 and bf16 alike, as on an H200: one
// of either sign among the factors makes +0 of the sum, whatever else is in it.
// (PTX leaves open which NaN that is.)
enum { OUT_OF_BOUNDS = 0x7ff7 };

// All bits of each half of a word where neither factor is out of bounds there.
static uint32_t in_bounds(kilni_soft_lower_t* lower, uint32_t a, uint32_t b) {
  uint32_t both = KILNI_SOFT_NONE;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
    uint32_t nan = OUT_OF_BOUNDS | (uint32_t)OUT_OF_BOUNDS << 16;
    kilni_soft_low_binary(lower, KILNI_SOFT_OP_xor_b32, t, i ? b : a,
                          kilni_soft_value(lower, nan, false));
    kilni_soft_low_binary(lower, KILNI_SOFT_OP_and_b32, t, t,
                          kilni_soft_value(lower, 0x7fff7fffu, false));
    // The upper bit of a half is now that of any other.
    kilni_soft_low_binary(lower, KILNI_SOFT_OP_add_b32, t, t,
                          kilni_soft_value(lower, 0x7fff7fffu, false));
    if (i == 0) {
      both = t;
    } else {
      kilni_soft_low_binary(lower, KILNI_SOFT_OP_and_b32, both, both, t);
    }
  }
  kilni_soft_low_binary(lower, KILNI_SOFT_OP_and_b32, both, both,
                        kilni_soft_value(lower, 0x80008000u, false));
  kilni_soft_low_binary(lower, KILNI_SOFT_OP_shr_u32, both, both,
                        kilni_soft_value(lower, 15, false));
  kilni_soft_low_binary(lower, KILNI_SOFT_OP_mul_lo_b32, both, both,
                        kilni_soft_value(lower, 0xffffu, false));
  return both;
}

static void decode_math(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source, uint32_t op) {
  uint32_t type = kilni_soft_form_type(source->form, 0);
  uint32_t words[3] = {0};
  for (uint32_t i = 0; i < 3; i++) {
    words[i] = words[0];
    if (i + 1 < source->count) {
      words[i] = kilni_soft_use(lower, &source->operands[i + 1], false, type);
    }
  }
  bool oob = kilni_soft_form_has(source->form, KILNI_PTX_MOD_OOB);
  uint32_t kept = oob ? in_bounds(lower, words[0], words[1]) : 0;
  uint32_t d = kilni_soft_def(lower, &source->operands[0], false);
  uint32_t t = oob ? kilni_soft_temp(lower, KILNI_SOFT_CLASS_32) : d;
  kilni_soft_low_t* low =
      kilni_soft_low_binary(lower, op, t, words[0], words[1]);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_C, words[2], KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_AUX] = decode_half_read_flags(source->form, type) |
                                   decode_half_action_of(source->ins->opcode)
                                       << 8;
  if (oob) kilni_soft_low_binary(lower, KILNI_SOFT_OP_and_b32, d, t, kept);
  kilni_soft_def_done(lower, &source->operands[0], d, false, false);
}

// ---- Conversions ----

// The number in `word` from bit `shift` upward, as f32 in a new register.
static uint32_t widened(kilni_soft_lower_t* lower, uint32_t word,
                        uint32_t format, uint32_t shift, uint32_t flags) {
  uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
  kilni_soft_low_unary(lower, KILNI_SOFT_OP_half_widen, t, word,
                       format | flags | shift << 24);
  return t;
}

static const char* int_rounding(const kilni_image_ptx_form_t* form) {
  static const uint16_t rows[] = {KILNI_PTX_MOD_RNI, KILNI_PTX_MOD_RZI,
                                  KILNI_PTX_MOD_RMI, KILNI_PTX_MOD_RPI};
  static const char* const texts[] = {".rni", ".rzi", ".rmi", ".rpi"};
  for (uint32_t i = 0; i < 4; i++) {
    if (kilni_soft_form_has(form, rows[i])) return texts[i];
  }
  return "";
}

// The operation of a form that is put together here.
static uint32_t decode_half_op_of(kilni_soft_lower_t* lower, const char* text) {
  kilni_soft_op_t op;
  if (kilni_soft_form_find(text, strlen(text), &op)) return op;
  kilni_soft_refuse(lower, "%s", text);
  return KILNI_SOFT_OP_mov_b32;
}

// To f32, f64 or an integer, through f32.
static void from_small(kilni_soft_lower_t* lower,
                       const kilni_soft_source_t* source, uint32_t to,
                       uint32_t from, uint32_t word) {
  char text[64];
  bool ftz = kilni_soft_form_has(source->form, KILNI_PTX_MOD_FTZ);
  bool sat = kilni_soft_form_has(source->form, KILNI_PTX_MOD_SAT);
  bool bf16 = from == KILNI_PTX_TYPE_BF16;
  uint32_t flags = 0;
  // The bits of a bf16 are moved, not converted, when nothing else is required;
  // a NaN keeps its bits when converted to f64.
  if (bf16 && to == KILNI_PTX_TYPE_F32) {
    flags = ftz ? KILNI_SOFT_HALF_FTZ : KILNI_SOFT_HALF_KEEP;
  } else if (to == KILNI_PTX_TYPE_F64) {
    flags = KILNI_SOFT_HALF_KEEP;
  }
  uint32_t format = decode_half_format_of(from);
  bool wide = kilni_image_ptx_type_bits(to) == 64;
  if (to == KILNI_PTX_TYPE_F32 && !sat) {
    uint32_t d = kilni_soft_def(lower, &source->operands[0], false);
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_half_widen, d, word,
                         format | flags);
    kilni_soft_def_finish(lower, source, d, false);
    return;
  }
  word = widened(lower, word, format, 0, flags);
  snprintf(text, sizeof(text), "cvt%s%s.%s.f32", int_rounding(source->form),
           sat ? ".sat" : "", kilni_image_ptx_modifier_text(to));
  uint32_t d = kilni_soft_def(lower, &source->operands[0], wide);
  kilni_soft_low_unary(lower, decode_half_op_of(lower, text), d, word, 0);
  kilni_soft_def_finish(lower, source, d, wide);
}

// An integer as f64.
static uint32_t int_as_f64(kilni_soft_lower_t* lower, uint32_t from,
                           uint32_t word) {
  uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_64);
  if (kilni_image_ptx_type_bits(from) == 64) {
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_half_from_int, t, word,
                         from == KILNI_PTX_TYPE_S64);
    return t;
  }
  char text[64];
  snprintf(text, sizeof(text), "cvt.rn.f64.%s",
           kilni_image_ptx_modifier_text(from));
  kilni_soft_low_unary(lower, decode_half_op_of(lower, text), t, word, 0);
  return t;
}

// What goes into a small format: a register of f32, or of f64.
static uint32_t narrow_source(kilni_soft_lower_t* lower,
                              const kilni_soft_source_t* source, uint32_t from,
                              uint32_t word, bool* out_wide) {
  char text[64];
  *out_wide = false;
  if (from == KILNI_PTX_TYPE_F32) return word;
  if (is_small(from)) {
    word = widened(lower, word, decode_half_format_of(from), 0, 0);
    const char* rounding = int_rounding(source->form);
    if (!rounding[0]) return word;
    uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
    snprintf(text, sizeof(text), "cvt%s.f32.f32", rounding);
    kilni_soft_low_unary(lower, decode_half_op_of(lower, text), t, word, 0);
    return t;
  }
  *out_wide = true;
  if (from == KILNI_PTX_TYPE_F64) return word;
  return int_as_f64(lower, from, word);
}

static void to_small(kilni_soft_lower_t* lower,
                     const kilni_soft_source_t* source, uint32_t to,
                     uint32_t from) {
  uint32_t flags = decode_half_read_flags(source->form, to);
  bool wide = kilni_image_ptx_type_bits(from) == 64;
  uint32_t a = kilni_soft_use(lower, &source->operands[1], wide, from);
  uint32_t b;
  if (decode_half_is_pair(from)) {
    // Pairs of one format to pairs of another.
    uint32_t upper = kilni_image_ptx_type_bits(from) / 2;
    b = widened(lower, a, decode_half_format_of(from), 0, 0);
    a = widened(lower, a, decode_half_format_of(from), upper, 0);
  } else if (source->count == 3) {
    b = kilni_soft_use(lower, &source->operands[2], false, from);
  } else {
    a = narrow_source(lower, source, from, a, &wide);
    b = a;
  }
  uint32_t d = kilni_soft_def(lower, &source->operands[0], false);
  if (wide) {
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_half_narrow_f64, d, a, flags);
  } else {
    kilni_soft_low_t* low =
        kilni_soft_low_binary(lower, KILNI_SOFT_OP_half_narrow_f32, d, a, b);
    low->word[KILNI_SOFT_WORD_AUX] = flags;
  }
  kilni_soft_def_done(lower, &source->operands[0], d, false, false);
}

static bool decode_convert(kilni_soft_lower_t* lower,
                           const kilni_soft_source_t* source) {
  uint32_t to = kilni_soft_form_type(source->form, 0);
  uint32_t from = kilni_soft_form_type(source->form, 1);
  bool two = decode_half_is_pair(to) && !decode_half_is_pair(from);
  if (source->count != (two ? 3u : 2u)) return false;
  if (is_small(to)) {
    to_small(lower, source, to, from);
    return true;
  }
  uint32_t word = kilni_soft_use(lower, &source->operands[1], false, from);
  from_small(lower, source, to, from, word);
  return true;
}

// ---- Compares ----

// The form without the boolean operation, which the decoder does itself.
static bool plain_text(const kilni_image_ptx_form_t* form, char* text,
                       size_t capacity, uint32_t* out_boolean) {
  size_t size = (size_t)snprintf(text, capacity, "%s",
                                 kilni_image_ptx_opcode_text(form->opcode));
  *out_boolean = KILNI_PTX_MOD_NONE;
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    uint32_t m = form->modifiers[i];
    if (m == KILNI_PTX_MOD_AND || m == KILNI_PTX_MOD_OR ||
        m == KILNI_PTX_MOD_XOR) {
      *out_boolean = m;
      continue;
    }
    size += (size_t)snprintf(text + size, capacity - size, ".%s",
                             kilni_image_ptx_modifier_text(m));
    if (size >= capacity) return false;
  }
  return true;
}

// One half of a compare. one-thread
typedef struct compare_t {
  uint32_t op;
  uint32_t format;
  uint32_t flags;
  uint32_t a;
  uint32_t b;
} compare_t;

static uint32_t compare_half(kilni_soft_lower_t* lower, const compare_t* c,
                             uint32_t shift) {
  uint32_t a = widened(lower, c->a, c->format, shift, c->flags);
  uint32_t b = widened(lower, c->b, c->format, shift, c->flags);
  uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_PRED);
  kilni_soft_low_t* low = kilni_soft_low_binary(lower, c->op, t, a, b);
  low->role[KILNI_SOFT_WORD_D] = KILNI_SOFT_ROLE_DEF_PRED;
  return t;
}

// `one` where `t`, or zero.
static void decode_half_choose(kilni_soft_lower_t* lower, uint32_t d,
                               uint32_t one, uint32_t t) {
  kilni_soft_low_t* low = kilni_soft_low_binary(
      lower, KILNI_SOFT_OP_selp_b32, d, kilni_soft_value(lower, one, false),
      kilni_soft_value(lower, 0, false));
  kilni_soft_low_word(low, KILNI_SOFT_WORD_C, t, KILNI_SOFT_ROLE_USE_PRED);
}

// The value of true in one number, or in half of a pair.
static uint32_t decode_half_one_of(uint32_t to, bool pair) {
  uint32_t format = decode_half_format_of(to);
  if (format == KILNI_SOFT_HALF_F16) return 0x3c00u;
  if (format == KILNI_SOFT_HALF_BF16) return 0x3f80u;
  return pair || kilni_image_ptx_type_bits(to) == 16 ? 0xffffu : 0xffffffffu;
}

static void decode_half_write_set(kilni_soft_lower_t* lower,
                                  const kilni_soft_source_t* source,
                                  const uint32_t* t, bool pair) {
  uint32_t to = kilni_soft_form_type(source->form, 0);
  uint32_t one = decode_half_one_of(to, pair);
  uint32_t d = kilni_soft_def(lower, &source->operands[0], false);
  if (!pair) {
    decode_half_choose(lower, d, one, t[0]);
  } else {
    uint32_t low = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
    uint32_t high = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
    decode_half_choose(lower, low, one, t[0]);
    decode_half_choose(lower, high, one << 16, t[1]);
    kilni_soft_low_binary(lower, KILNI_SOFT_OP_or_b32, d, low, high);
  }
  kilni_soft_def_done(lower, &source->operands[0], d, false, false);
}

static uint32_t math_operands(uint32_t opcode) {
  switch (opcode) {
    case KILNI_PTX_OP_FMA:
      return 4;
    case KILNI_PTX_OP_ADD:
    case KILNI_PTX_OP_SUB:
    case KILNI_PTX_OP_MUL:
    case KILNI_PTX_OP_MIN:
    case KILNI_PTX_OP_MAX:
      return 3;
    default:
      return 2;
  }
}

static bool read_compare(kilni_soft_lower_t* lower,
                         const kilni_soft_source_t* source, bool has_boolean,
                         compare_t* out) {
  char text[64];
  uint32_t type = kilni_soft_form_type(source->form, KILNI_SOFT_NONE);
  if (source->count != (has_boolean ? 4u : 3u)) return false;
  // One compare gives one predicate.
  if (source->operands[0].kind == KILNI_PTX_OPERAND_PAIR &&
      (type == KILNI_PTX_TYPE_F16 || type == KILNI_PTX_TYPE_BF16)) {
    return false;
  }
  snprintf(text, sizeof(text), "setp.%s.f32",
           kilni_image_ptx_modifier_text(source->form->modifiers[0]));
  out->op = decode_half_op_of(lower, text);
  out->format = decode_half_format_of(type);
  out->flags = kilni_soft_form_has(source->form, KILNI_PTX_MOD_FTZ)
                   ? KILNI_SOFT_HALF_FTZ
                   : 0;
  out->a = kilni_soft_use(lower, &source->operands[1], false, type);
  out->b = kilni_soft_use(lower, &source->operands[2], false, type);
  return true;
}

static bool decode_compare(kilni_soft_lower_t* lower,
                           const kilni_soft_source_t* source,
                           uint32_t boolean) {
  compare_t compare;
  bool has_boolean = boolean != KILNI_PTX_MOD_NONE;
  bool pair =
      decode_half_is_pair(kilni_soft_form_type(source->form, KILNI_SOFT_NONE));
  bool is_set = source->ins->opcode == KILNI_PTX_OP_SET;
  if (!read_compare(lower, source, has_boolean, &compare)) return false;
  const kilni_image_ptx_operand_t* d = &source->operands[0];
  uint32_t c = 0;
  if (has_boolean) c = kilni_soft_use_pred(lower, &source->operands[3]);
  uint32_t t[2] = {0, 0};
  t[0] = compare_half(lower, &compare, 0);
  if (pair) t[1] = compare_half(lower, &compare, 16);
  if (!is_set && !pair) {
    kilni_soft_write_compare(lower, d, t[0], boolean, c);
    return true;
  }
  for (uint32_t i = 0; has_boolean && i < (pair ? 2u : 1u); i++) {
    t[i] = kilni_soft_boolean(lower, boolean, t[i], c);
  }
  if (is_set) {
    decode_half_write_set(lower, source, t, pair);
    return true;
  }
  kilni_soft_write_preds(lower, d, t[0], t[1]);
  return true;
}

void kilni_soft_decode_half(kilni_soft_lower_t* lower,
                            const kilni_soft_source_t* source) {
  char text[128];
  uint32_t boolean;
  kilni_soft_op_t op;
  bool good = plain_text(source->form, text, sizeof(text), &boolean) &&
              kilni_soft_form_find(text, strlen(text), &op);
  if (good) {
    switch (source->ins->opcode) {
      case KILNI_PTX_OP_CVT:
        good = boolean == KILNI_PTX_MOD_NONE && decode_convert(lower, source);
        break;
      case KILNI_PTX_OP_SETP:
      case KILNI_PTX_OP_SET:
        good = decode_compare(lower, source, boolean);
        break;
      default:
        good = source->count == math_operands(source->ins->opcode);
        if (good) decode_math(lower, source, op);
    }
  }
  if (!good) kilni_soft_refuse(lower, "%s", source->form->text);
}
