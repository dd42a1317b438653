// SPDX-License-Identifier: Apache-2.0
//
// soft: mma, wmma, ldmatrix, stmatrix and movmatrix.
#include <string.h>

#include "soft/code/soft_matrix.h"
#include "soft/decode/soft_forms.h"
#include "soft/decode/soft_lower.h"

enum { REGISTERS_MOST = 24 };

static bool decode_matrix_has(const kilni_soft_source_t* source,
                              uint32_t modifier) {
  return kilni_soft_form_has(source->form, modifier);
}

static uint32_t type_code(uint32_t type) {
  switch (type) {
    case KILNI_PTX_TYPE_F16:
      return KILNI_SOFT_MATRIX_F16;
    case KILNI_PTX_TYPE_BF16:
      return KILNI_SOFT_MATRIX_BF16;
    case KILNI_PTX_TYPE_TF32:
      return KILNI_SOFT_MATRIX_TF32;
    case KILNI_PTX_TYPE_F64:
      return KILNI_SOFT_MATRIX_F64;
    case KILNI_PTX_TYPE_S8:
      return KILNI_SOFT_MATRIX_S8;
    case KILNI_PTX_TYPE_U8:
      return KILNI_SOFT_MATRIX_U8;
    case KILNI_PTX_TYPE_S32:
      return KILNI_SOFT_MATRIX_S32;
    case KILNI_PTX_TYPE_E4M3:
      return KILNI_SOFT_MATRIX_E4M3;
    case KILNI_PTX_TYPE_E5M2:
      return KILNI_SOFT_MATRIX_E5M2;
    default:
      return KILNI_SOFT_MATRIX_F32;
  }
}

static uint32_t decode_matrix_shape_of(const kilni_soft_source_t* source) {
  static const uint16_t rows[KILNI_SOFT_MATRIX_SHAPE_COUNT] = {
#define SHAPE(m, n, k) KILNI_PTX_MOD_M##m##N##n##K##k,
      KILNI_SOFT_MATRIX_SHAPES(SHAPE)
#undef SHAPE
  };
  for (uint32_t i = 0; i < KILNI_SOFT_MATRIX_SHAPE_COUNT; i++) {
    if (decode_matrix_has(source, rows[i])) return i;
  }
  return KILNI_SOFT_NONE;
}

static uint32_t decode_matrix_space_of(const kilni_soft_source_t* source) {
  if (decode_matrix_has(source, KILNI_PTX_MOD_SHARED) ||
      decode_matrix_has(source, KILNI_PTX_MOD_SHARED_CTA)) {
    return KILNI_SOFT_SPACE_SHARED;
  }
  return decode_matrix_has(source, KILNI_PTX_MOD_GLOBAL)
             ? KILNI_SOFT_SPACE_GLOBAL
             : KILNI_SOFT_SPACE_GENERIC;
}

// Registers of an operand: a vector's, or the only one.
static const kilni_image_ptx_operand_t* parts_of(
    const kilni_soft_lower_t* lower, const kilni_image_ptx_operand_t* operand,
    uint32_t* out_count) {
  *out_count = 1;
  if (operand->kind != KILNI_PTX_OPERAND_VECTOR) return operand;
  *out_count = operand->count;
  return kilni_image_ptx_operand_children(lower->module, operand);
}

// Registers that an operation reads or writes, before they become words.
// one-thread
typedef struct list_t {
  uint32_t word[REGISTERS_MOST];
  uint32_t count;
} list_t;

static bool add_uses(kilni_soft_lower_t* lower,
                     const kilni_image_ptx_operand_t* operand,
                     const kilni_soft_fragment_t* f, list_t* list) {
  uint32_t count;
  const kilni_image_ptx_operand_t* parts = parts_of(lower, operand, &count);
  if (count != f->registers || list->count + count > REGISTERS_MOST) {
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    list->word[list->count++] =
        kilni_soft_use(lower, &parts[i], f->bits == 64, 0);
  }
  return true;
}

static void emit_words(kilni_soft_lower_t* lower, const list_t* list,
                       uint32_t role) {
  kilni_soft_low_t* low = NULL;
  for (uint32_t i = 0; i < list->count; i++) {
    if (i % 4 == 0) low = kilni_soft_low(lower, KILNI_SOFT_OP_words);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_D + i % 4, list->word[i], role);
  }
}

// The word instructions of the results, and what is left to do for them.
static bool emit_results(kilni_soft_lower_t* lower,
                         const kilni_image_ptx_operand_t* operand,
                         uint32_t registers, bool wide) {
  uint32_t count;
  list_t list = {.count = 0};
  const kilni_image_ptx_operand_t* parts = parts_of(lower, operand, &count);
  if (count != registers || count > REGISTERS_MOST) return false;
  for (uint32_t i = 0; i < count; i++) {
    list.word[list.count++] = kilni_soft_def(lower, &parts[i], wide);
  }
  emit_words(lower, &list, KILNI_SOFT_ROLE_DEF);
  for (uint32_t i = 0; i < count; i++) {
    kilni_soft_def_done(lower, &parts[i], list.word[i], wide, false);
  }
  return true;
}

// The types of d, a, b and c. wmma of f16 names those of d and c alone.
static uint32_t types_of(const kilni_soft_source_t* source, uint32_t shape,
                         bool opaque) {
  uint32_t t[4];
  uint32_t count = 0;
  for (uint32_t i = 0; i < source->form->modifier_count && count < 4; i++) {
    uint32_t m = source->form->modifiers[i];
    if (kilni_image_ptx_modifier_is_type(m)) t[count++] = type_code(m);
  }
  if (opaque && count == 2) {
    return KILNI_SOFT_MATRIX_MAKE(shape, KILNI_SOFT_MATRIX_F16,
                                  KILNI_SOFT_MATRIX_F16, t[1], t[0]);
  }
  if (count != 4) return KILNI_SOFT_NONE;
  return KILNI_SOFT_MATRIX_MAKE(shape, t[1], t[2], t[3], t[0]);
}

// d, a, b, c
static bool decode_mma(kilni_soft_lower_t* lower,
                       const kilni_soft_source_t* source, bool opaque) {
  uint32_t shape = decode_matrix_shape_of(source);
  if (shape == KILNI_SOFT_NONE || source->count != 4) return false;
  uint32_t aux = types_of(source, shape, opaque);
  if (aux == KILNI_SOFT_NONE) return false;
  list_t list = {.count = 0};
  for (uint32_t w = 0; w < 3; w++) {
    kilni_soft_fragment_t f =
        kilni_soft_fragment(shape, w, KILNI_SOFT_MATRIX_TYPE(aux, w), opaque);
    if (!add_uses(lower, &source->operands[1 + w], &f, &list)) return false;
  }
  kilni_soft_fragment_t f = kilni_soft_fragment(
      shape, KILNI_SOFT_MATRIX_D,
      KILNI_SOFT_MATRIX_TYPE(aux, KILNI_SOFT_MATRIX_D), opaque);
  if (opaque) aux |= KILNI_SOFT_MATRIX_OPAQUE;
  if (decode_matrix_has(source, KILNI_PTX_MOD_SATFINITE)) {
    aux |= KILNI_SOFT_MATRIX_SATFINITE;
  }
  kilni_soft_low(lower, KILNI_SOFT_OP_mma)->word[KILNI_SOFT_WORD_AUX] = aux;
  emit_words(lower, &list, KILNI_SOFT_ROLE_USE);
  return emit_results(lower, &source->operands[0], f.registers, f.bits == 64);
}

// wmma.load: registers, [p]{, stride}; wmma.store: [p], registers{, stride}.
static bool decode_wmma_memory(kilni_soft_lower_t* lower,
                               const kilni_soft_source_t* source, bool loads) {
  uint32_t which = KILNI_SOFT_MATRIX_D;
  if (decode_matrix_has(source, KILNI_PTX_MOD_A)) which = KILNI_SOFT_MATRIX_A;
  if (decode_matrix_has(source, KILNI_PTX_MOD_B)) which = KILNI_SOFT_MATRIX_B;
  if (decode_matrix_has(source, KILNI_PTX_MOD_C)) which = KILNI_SOFT_MATRIX_C;
  uint32_t shape = decode_matrix_shape_of(source);
  if (shape == KILNI_SOFT_NONE || source->count < 2) return false;
  uint32_t type =
      type_code(kilni_soft_form_type(source->form, KILNI_SOFT_NONE));
  kilni_soft_fragment_t f = kilni_soft_fragment(shape, which, type, 1);
  uint32_t space = decode_matrix_space_of(source);
  uint32_t aux = KILNI_SOFT_MATRIX_MAKE(shape, type, which, 0, 0) |
                 KILNI_SOFT_MATRIX_OPAQUE | space << 24;
  if (decode_matrix_has(source, KILNI_PTX_MOD_COL)) {
    aux |= KILNI_SOFT_MATRIX_BY_COLUMN;
  }
  uint32_t base;
  const kilni_image_ptx_operand_t* operands = source->operands;
  if (!kilni_soft_address(lower, &operands[loads ? 1 : 0], space, &base)) {
    return true;  // refused already
  }
  uint32_t stride = 0;
  if (source->count == 3) {
    stride = kilni_soft_use(lower, &operands[2], false, 0);
    aux |= KILNI_SOFT_MATRIX_HAS_STRIDE;
  }
  list_t list = {.count = 0};
  if (!loads && !add_uses(lower, &operands[1], &f, &list)) return false;
  kilni_soft_low_t* low = kilni_soft_low(
      lower, loads ? KILNI_SOFT_OP_wmma_load : KILNI_SOFT_OP_wmma_store);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, base, KILNI_SOFT_ROLE_USE);
  if (source->count == 3) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_B, stride, KILNI_SOFT_ROLE_USE);
  }
  low->word[KILNI_SOFT_WORD_AUX] = aux;
  if (!loads) {
    emit_words(lower, &list, KILNI_SOFT_ROLE_USE);
    return true;
  }
  return emit_results(lower, &operands[0], f.registers, f.bits == 64);
}

// ldmatrix: registers, [p]; stmatrix: [p], registers.
static bool decode_rows(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source, bool loads) {
  uint32_t count = 1;
  if (decode_matrix_has(source, KILNI_PTX_MOD_X2)) count = 2;
  if (decode_matrix_has(source, KILNI_PTX_MOD_X4)) count = 4;
  const kilni_image_ptx_operand_t* operands = source->operands;
  uint32_t base;
  if (source->count != 2) return false;
  if (!kilni_soft_address(lower, &operands[loads ? 1 : 0],
                          KILNI_SOFT_SPACE_SHARED, &base)) {
    return true;
  }
  kilni_soft_fragment_t f = {.registers = count, .bits = 32};
  list_t list = {.count = 0};
  if (!loads && !add_uses(lower, &operands[1], &f, &list)) return false;
  kilni_soft_low_t* low = kilni_soft_low(
      lower, loads ? KILNI_SOFT_OP_ldmatrix : KILNI_SOFT_OP_stmatrix);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, base, KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_AUX] =
      count | (uint32_t)KILNI_SOFT_SPACE_SHARED << 24 |
      (decode_matrix_has(source, KILNI_PTX_MOD_TRANS) ? KILNI_SOFT_MATRIX_TRANS
                                                      : 0u);
  if (!loads) {
    emit_words(lower, &list, KILNI_SOFT_ROLE_USE);
    return true;
  }
  return emit_results(lower, &operands[0], count, false);
}

static bool decode_turn(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source) {
  if (source->count != 2) return false;
  uint32_t a = kilni_soft_use(lower, &source->operands[1], false, 0);
  uint32_t d = kilni_soft_def(lower, &source->operands[0], false);
  kilni_soft_low_unary(lower, KILNI_SOFT_OP_movmatrix, d, a, 0);
  kilni_soft_def_done(lower, &source->operands[0], d, false, false);
  return true;
}

void kilni_soft_decode_matrix(kilni_soft_lower_t* lower,
                              const kilni_soft_source_t* source) {
  const char* text = source->form->text;
  kilni_soft_op_t op;
  bool good = kilni_soft_form_find(text, strlen(text), &op);
  if (good) {
    switch (op) {
      case KILNI_SOFT_OP_mma:
        good =
            decode_mma(lower, source, source->ins->opcode == KILNI_PTX_OP_WMMA);
        break;
      case KILNI_SOFT_OP_wmma_load:
      case KILNI_SOFT_OP_wmma_store:
        good = decode_wmma_memory(lower, source, op == KILNI_SOFT_OP_wmma_load);
        break;
      case KILNI_SOFT_OP_ldmatrix:
      case KILNI_SOFT_OP_stmatrix:
        good = decode_rows(lower, source, op == KILNI_SOFT_OP_ldmatrix);
        break;
      default:
        good = decode_turn(lower, source);
    }
  }
  if (!good) kilni_soft_refuse(lower, "%s", text);
}
