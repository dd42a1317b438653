// SPDX-License-Identifier: Apache-2.0
//
// soft: operands of PTX as words of an operation: registers of the right
// width, constants, special registers, addresses.
#include <string.h>

#include "soft/decode/soft_lower.h"

static bool operand_is_wide(const kilni_soft_lower_t* lower, uint32_t vreg) {
  return lower->vregs[vreg].class_ == KILNI_SOFT_CLASS_64;
}

static uint32_t vreg_of(const kilni_soft_lower_t* lower,
                        const kilni_image_ptx_operand_t* operand) {
  uint32_t component =
      operand->component == KILNI_PTX_WHOLE ? 0 : operand->component;
  return lower->register_vregs[operand->index] + component;
}

uint32_t kilni_soft_register_bits(const kilni_soft_lower_t* lower,
                                  const kilni_image_ptx_operand_t* operand) {
  if (operand->kind != KILNI_PTX_OPERAND_REGISTER) return 0;
  return lower->vregs[vreg_of(lower, operand)].bits;
}

const kilni_image_ptx_operand_t* kilni_soft_split(
    const kilni_soft_lower_t* lower, const kilni_image_ptx_operand_t* operand,
    const kilni_image_ptx_operand_t** out_second) {
  *out_second = NULL;
  if (operand->kind != KILNI_PTX_OPERAND_PAIR) return operand;
  const kilni_image_ptx_operand_t* parts =
      kilni_image_ptx_operand_children(lower->module, operand);
  if (parts[1].kind != KILNI_PTX_OPERAND_SINK) *out_second = &parts[1];
  return parts;
}

bool kilni_soft_halves(const kilni_soft_lower_t* lower,
                       const kilni_image_ptx_operand_t* operand,
                       kilni_image_ptx_operand_t out_halves[2]) {
  out_halves[0] = *operand;
  out_halves[1] = *operand;
  if (operand->kind == KILNI_PTX_OPERAND_SINK) return true;
  if (operand->kind != KILNI_PTX_OPERAND_REGISTER ||
      operand->component != KILNI_PTX_WHOLE ||
      lower->source->registers[operand->index].type != KILNI_PTX_TYPE_B128) {
    return false;
  }
  out_halves[0].component = 0;
  out_halves[1].component = 1;
  return true;
}

// An immediate as the bits of `type`.
static uint64_t immediate_bits(const kilni_image_ptx_operand_t* operand,
                               uint32_t type) {
  uint64_t value = operand->value;
  bool is_float = kilni_image_ptx_type_class(type) == KILNI_PTX_CLASS_FLOAT;
  uint32_t bits = kilni_image_ptx_type_bits(type);
  if (operand->immediate == KILNI_PTX_IMMEDIATE_F64 && is_float && bits == 32) {
    double wide;
    memcpy(&wide, &value, 8);
    float narrow = (float)wide;
    uint32_t out;
    memcpy(&out, &narrow, 4);
    return out;
  }
  if (operand->immediate == KILNI_PTX_IMMEDIATE_F32 && is_float && bits == 64) {
    uint32_t in = (uint32_t)value;
    float narrow;
    memcpy(&narrow, &in, 4);
    double wide = narrow;
    memcpy(&value, &wide, 8);
    return value;
  }
  if (bits == 16 || bits == 8) value &= (1u << bits) - 1u;
  return value;
}

static uint32_t local_address(kilni_soft_lower_t* lower, uint32_t place,
                              bool generic) {
  uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_64);
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_local_address);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_D, t, KILNI_SOFT_ROLE_DEF);
  low->word[KILNI_SOFT_WORD_B] = generic;
  low->word[KILNI_SOFT_WORD_AUX] = place;
  return t;
}

uint32_t kilni_soft_variable_address(kilni_soft_lower_t* lower, uint32_t index,
                                     uint64_t offset, bool generic) {
  const kilni_image_ptx_variable_t* variable = &lower->module->variables[index];
  if (variable->space == KILNI_PTX_SPACE_SHARED) {
    kilni_soft_note_shared(lower, index);
    kilni_soft_constant_t constant = {.value = offset,
                                      .index = index,
                                      .kind = KILNI_SOFT_CONSTANT_SHARED,
                                      .wide = 1,
                                      .generic = generic};
    return kilni_soft_constant(lower, &constant);
  }
  // A function's parameter is copied to local memory, as PTX specifies.
  uint32_t place = lower->param_places[index];
  if (variable->space == KILNI_PTX_SPACE_PARAM && place != KILNI_SOFT_NONE) {
    return local_address(lower, place + (uint32_t)offset, generic);
  }
  if (variable->space == KILNI_PTX_SPACE_LOCAL) {
    if (lower->variable_words[index] == KILNI_SOFT_NONE) {
      kilni_soft_refuse(lower, "local variable \"%s\" outside a function",
                        variable->name);
      return kilni_soft_value(lower, 0, true);
    }
    return local_address(lower, lower->variable_words[index] + (uint32_t)offset,
                         generic);
  }
  if (variable->space == KILNI_PTX_SPACE_PARAM) {
    if (!lower->source->is_entry ||
        lower->param_offsets[index] == KILNI_SOFT_NONE) {
      kilni_soft_refuse(lower, "the address of parameter \"%s\" is taken",
                        variable->name);
      return kilni_soft_value(lower, 0, true);
    }
    return kilni_soft_value(lower,
                            lower->param_offsets[index] + offset +
                                (generic ? KILNI_SOFT_PARAM_BASE : 0),
                            true);
  }
  const kilni_soft_symbol_t* symbol = &lower->code->symbols[index];
  if (!symbol->address) {
    kilni_soft_refuse_undefined(lower, "variable", variable->name);
  }
  return kilni_soft_value(lower, symbol->address + offset, true);
}

typedef struct special_t {
  uint16_t sreg;
  uint16_t engine;
} special_t;

static const special_t kSpecials[] = {
    {KILNI_PTX_SREG_TID, KILNI_SOFT_SREG_TID_X},
    {KILNI_PTX_SREG_CTAID, KILNI_SOFT_SREG_CTAID_X},
    {KILNI_PTX_SREG_CLUSTERID, KILNI_SOFT_SREG_CTAID_X},
    {KILNI_PTX_SREG_LANEID, KILNI_SOFT_SREG_LANEID},
    {KILNI_PTX_SREG_WARPID, KILNI_SOFT_SREG_WARPID},
    {KILNI_PTX_SREG_SMID, KILNI_SOFT_SREG_SMID},
    {KILNI_PTX_SREG_LANEMASK_EQ, KILNI_SOFT_SREG_LANEMASK_EQ},
    {KILNI_PTX_SREG_LANEMASK_LE, KILNI_SOFT_SREG_LANEMASK_LE},
    {KILNI_PTX_SREG_LANEMASK_LT, KILNI_SOFT_SREG_LANEMASK_LT},
    {KILNI_PTX_SREG_LANEMASK_GE, KILNI_SOFT_SREG_LANEMASK_GE},
    {KILNI_PTX_SREG_LANEMASK_GT, KILNI_SOFT_SREG_LANEMASK_GT},
    {KILNI_PTX_SREG_CLOCK, KILNI_SOFT_SREG_CLOCK},
    {KILNI_PTX_SREG_CLOCK_HI, KILNI_SOFT_SREG_CLOCK_HI},
    {KILNI_PTX_SREG_CLOCK64, KILNI_SOFT_SREG_CLOCK64},
    {KILNI_PTX_SREG_GLOBALTIMER, KILNI_SOFT_SREG_GLOBALTIMER},
    {KILNI_PTX_SREG_GLOBALTIMER_LO, KILNI_SOFT_SREG_GLOBALTIMER_LO},
    {KILNI_PTX_SREG_GLOBALTIMER_HI, KILNI_SOFT_SREG_GLOBALTIMER_HI},
};

enum { DEVICE_WARPS = 64, DEVICE_SMS = 132 };

// Special registers that a launch makes constant; false for the others.
static bool special_constant(const kilni_image_ptx_operand_t* operand,
                             kilni_soft_constant_t* out) {
  uint32_t c = operand->component == KILNI_PTX_WHOLE ? 0 : operand->component;
  *out = (kilni_soft_constant_t){.kind = KILNI_SOFT_CONSTANT_VALUE};
  switch (operand->index) {
    case KILNI_PTX_SREG_NTID:
    case KILNI_PTX_SREG_NCTAID:
    case KILNI_PTX_SREG_NCLUSTERID:
      out->index = c;
      out->kind = operand->index == KILNI_PTX_SREG_NTID
                      ? KILNI_SOFT_CONSTANT_NTID
                      : KILNI_SOFT_CONSTANT_NCTAID;
      if (c == 3) *out = (kilni_soft_constant_t){.value = 0};
      return true;
    case KILNI_PTX_SREG_TID:
    case KILNI_PTX_SREG_CTAID:
    case KILNI_PTX_SREG_CLUSTERID:
      return c == 3;
    // Every block is a cluster by itself.
    case KILNI_PTX_SREG_CLUSTER_CTAID:
    case KILNI_PTX_SREG_CLUSTER_CTARANK:
    case KILNI_PTX_SREG_PM:
    case KILNI_PTX_SREG_PM_64:
    case KILNI_PTX_SREG_CURRENT_GRAPH_EXEC:
      return true;
    case KILNI_PTX_SREG_CLUSTER_NCTAID:
      out->value = c == 3 ? 0 : 1;
      return true;
    case KILNI_PTX_SREG_CLUSTER_NCTARANK:
      out->value = 1;
      return true;
    case KILNI_PTX_SREG_ENVREG:
      // 1 and 2 are the workspace of a cooperative grid, the upper half first.
      if (operand->value == 1 || operand->value == 2) {
        out->kind = KILNI_SOFT_CONSTANT_WORKSPACE;
        out->index = operand->value == 1;
      }
      return true;
    case KILNI_PTX_SREG_NWARPID:
      out->value = DEVICE_WARPS;
      return true;
    case KILNI_PTX_SREG_NSMID:
      out->value = DEVICE_SMS;
      return true;
    case KILNI_PTX_SREG_GRIDID:
      out->value = 1;
      return true;
    case KILNI_PTX_SREG_RESERVED_SMEM_OFFSET_BEGIN:
    case KILNI_PTX_SREG_RESERVED_SMEM_OFFSET_END:
    case KILNI_PTX_SREG_RESERVED_SMEM_OFFSET:
      out->kind = KILNI_SOFT_CONSTANT_RESERVED;
      out->value = KILNI_SOFT_RESERVED_AT;
      if (operand->index == KILNI_PTX_SREG_RESERVED_SMEM_OFFSET_END) {
        out->value += KILNI_SOFT_RESERVED_BYTES;
      } else if (operand->index == KILNI_PTX_SREG_RESERVED_SMEM_OFFSET &&
                 operand->value == 1) {
        out->value += KILNI_SOFT_RESERVED_SECOND;
      }
      return true;
    case KILNI_PTX_SREG_RESERVED_SMEM_OFFSET_CAP:
      out->value = KILNI_SOFT_RESERVED_BYTES;
      return true;
    case KILNI_PTX_SREG_DYNAMIC_SMEM_SIZE:
      out->kind = KILNI_SOFT_CONSTANT_DYNAMIC_BYTES;
      return true;
    case KILNI_PTX_SREG_TOTAL_SMEM_SIZE:
    case KILNI_PTX_SREG_AGGR_SMEM_SIZE:
      out->kind = KILNI_SOFT_CONSTANT_TOTAL_BYTES;
      return true;
    default:
      return false;
  }
}

void kilni_soft_special(kilni_soft_lower_t* lower,
                        const kilni_image_ptx_operand_t* operand, uint32_t d,
                        bool wide) {
  kilni_soft_constant_t constant;
  if (special_constant(operand, &constant)) {
    constant.wide = wide;
    kilni_soft_low_unary(lower,
                         wide ? KILNI_SOFT_OP_mov_b64 : KILNI_SOFT_OP_mov_b32,
                         d, kilni_soft_constant(lower, &constant), 0);
    return;
  }
  for (size_t i = 0; i < sizeof(kSpecials) / sizeof(kSpecials[0]); i++) {
    if (kSpecials[i].sreg != operand->index) continue;
    uint32_t engine = kSpecials[i].engine;
    if (kilni_image_ptx_sreg_components(operand->index) == 4) {
      engine += operand->component;
    }
    bool own = kilni_image_ptx_type_bits(
                   kilni_image_ptx_sreg_type(operand->index)) == 64;
    uint32_t to = own == wide
                      ? d
                      : kilni_soft_temp(lower, own ? KILNI_SOFT_CLASS_64
                                                   : KILNI_SOFT_CLASS_32);
    kilni_soft_low_t* low = kilni_soft_low(
        lower, own ? KILNI_SOFT_OP_sreg64 : KILNI_SOFT_OP_sreg32);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_D, to, KILNI_SOFT_ROLE_DEF);
    low->word[KILNI_SOFT_WORD_AUX] = engine;
    if (own != wide) {
      kilni_soft_low_unary(
          lower, wide ? KILNI_SOFT_OP_wide_u32 : KILNI_SOFT_OP_low_b32, d, to,
          0);
    }
    return;
  }
  kilni_soft_refuse(lower, "special register %%%s",
                    kilni_image_ptx_sreg_text(operand->index));
}

static uint32_t converted(kilni_soft_lower_t* lower, uint32_t op,
                          uint32_t class_, uint32_t word) {
  uint32_t t = kilni_soft_temp(lower, class_);
  kilni_soft_low_unary(lower, op, t, word, 0);
  return t;
}

// A word of one width as the other.
static uint32_t as_width(kilni_soft_lower_t* lower, uint32_t word,
                         bool has_wide, bool wide, uint32_t type) {
  if (has_wide == wide) return word;
  if (!wide) {
    return converted(lower, KILNI_SOFT_OP_low_b32, KILNI_SOFT_CLASS_32, word);
  }
  bool is_signed = kilni_image_ptx_type_class(type) == KILNI_PTX_CLASS_SIGNED;
  return converted(lower,
                   is_signed ? KILNI_SOFT_OP_wide_s32 : KILNI_SOFT_OP_wide_u32,
                   KILNI_SOFT_CLASS_64, word);
}

uint32_t kilni_soft_use(kilni_soft_lower_t* lower,
                        const kilni_image_ptx_operand_t* operand, bool wide,
                        uint32_t type) {
  uint32_t class_ = wide ? KILNI_SOFT_CLASS_64 : KILNI_SOFT_CLASS_32;
  switch (operand->kind) {
    case KILNI_PTX_OPERAND_REGISTER: {
      uint32_t vreg = vreg_of(lower, operand);
      if (operand->negated ||
          lower->vregs[vreg].class_ == KILNI_SOFT_CLASS_PRED) {
        kilni_soft_refuse(lower, "a predicate where a number is expected");
        return kilni_soft_value(lower, 0, wide);
      }
      return as_width(lower, vreg, operand_is_wide(lower, vreg), wide, type);
    }
    case KILNI_PTX_OPERAND_IMMEDIATE:
      return kilni_soft_value(lower, immediate_bits(operand, type), wide);
    case KILNI_PTX_OPERAND_SPECIAL: {
      uint32_t t = kilni_soft_temp(lower, class_);
      kilni_soft_special(lower, operand, t, wide);
      return t;
    }
    case KILNI_PTX_OPERAND_VARIABLE:
      return as_width(lower,
                      kilni_soft_variable_address(lower, operand->index,
                                                  operand->value, false),
                      true, wide, 0);
    case KILNI_PTX_OPERAND_FUNCTION:
      return kilni_soft_value(
          lower,
          KILNI_SOFT_FUNCTION_BASE +
              (uint64_t)operand->index * KILNI_SOFT_FUNCTION_STRIDE,
          wide);
    default:
      kilni_soft_refuse(lower, "an operand of this kind");
      return kilni_soft_value(lower, 0, wide);
  }
}

uint32_t kilni_soft_use_pred(kilni_soft_lower_t* lower,
                             const kilni_image_ptx_operand_t* operand) {
  if (operand->kind == KILNI_PTX_OPERAND_IMMEDIATE) {
    return operand->value ? 0u : KILNI_SOFT_PRED_NEGATED;
  }
  if (operand->kind == KILNI_PTX_OPERAND_SPECIAL &&
      operand->index == KILNI_PTX_SREG_IS_EXPLICIT_CLUSTER) {
    return KILNI_SOFT_PRED_NEGATED;
  }
  if (operand->kind == KILNI_PTX_OPERAND_REGISTER) {
    uint32_t vreg = vreg_of(lower, operand);
    if (lower->vregs[vreg].class_ == KILNI_SOFT_CLASS_PRED) {
      return vreg | (operand->negated ? KILNI_SOFT_PRED_NEGATED : 0u);
    }
  }
  kilni_soft_refuse(lower, "an operand that is not a predicate");
  return 0;
}

uint32_t kilni_soft_def_pred(kilni_soft_lower_t* lower,
                             const kilni_image_ptx_operand_t* operand) {
  if (operand->kind == KILNI_PTX_OPERAND_REGISTER) {
    uint32_t vreg = vreg_of(lower, operand);
    if (lower->vregs[vreg].class_ == KILNI_SOFT_CLASS_PRED) return vreg;
  } else if (operand->kind == KILNI_PTX_OPERAND_SINK) {
    return kilni_soft_temp(lower, KILNI_SOFT_CLASS_PRED);
  }
  kilni_soft_refuse(lower, "a destination that is not a predicate");
  return kilni_soft_temp(lower, KILNI_SOFT_CLASS_PRED);
}

uint32_t kilni_soft_def(kilni_soft_lower_t* lower,
                        const kilni_image_ptx_operand_t* operand, bool wide) {
  uint32_t class_ = wide ? KILNI_SOFT_CLASS_64 : KILNI_SOFT_CLASS_32;
  if (operand->kind == KILNI_PTX_OPERAND_REGISTER) {
    uint32_t vreg = vreg_of(lower, operand);
    if (lower->vregs[vreg].class_ == class_) return vreg;
    if (lower->vregs[vreg].class_ == KILNI_SOFT_CLASS_PRED) {
      kilni_soft_refuse(lower, "a predicate as the destination of a number");
    }
  } else if (operand->kind != KILNI_PTX_OPERAND_SINK) {
    kilni_soft_refuse(lower, "a destination of this kind");
  }
  return kilni_soft_temp(lower, class_);
}

void kilni_soft_def_done(kilni_soft_lower_t* lower,
                         const kilni_image_ptx_operand_t* operand,
                         uint32_t word, bool wide, bool is_signed) {
  if (operand->kind != KILNI_PTX_OPERAND_REGISTER) return;
  uint32_t vreg = vreg_of(lower, operand);
  if (vreg == word || lower->vregs[vreg].class_ == KILNI_SOFT_CLASS_PRED) {
    return;
  }
  uint32_t op = KILNI_SOFT_OP_low_b32;
  if (!wide) {
    op = is_signed ? KILNI_SOFT_OP_wide_s32 : KILNI_SOFT_OP_wide_u32;
  }
  kilni_soft_low_unary(lower, op, vreg, word, 0);
}
