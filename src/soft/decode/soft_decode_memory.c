// SPDX-License-Identifier: Apache-2.0
//
// soft: loads, stores, atomics and parameters.
#include <string.h>

#include "soft/decode/soft_lower.h"

// The modifiers of a memory instruction. one-thread
typedef struct access_t {
  uint32_t space;
  uint32_t type;
  uint32_t bytes;
  uint32_t count;  // registers
  uint32_t order;
  uint32_t number;  // kilni_soft_number_t, of atomics
  bool sync;        // volatile or ordered
  bool is_128;      // .b128: two registers of 64 bits
  bool bad;
} access_t;

static void read_space(access_t* access, uint32_t modifier) {
  switch (modifier) {
    case KILNI_PTX_MOD_GLOBAL:
      access->space = KILNI_SOFT_SPACE_GLOBAL;
      return;
    case KILNI_PTX_MOD_CONST:
      access->space = KILNI_SOFT_SPACE_CONST;
      return;
    case KILNI_PTX_MOD_SHARED:
    case KILNI_PTX_MOD_SHARED_CTA:
    case KILNI_PTX_MOD_SHARED_CLUSTER:  // a cluster is one block
      access->space = KILNI_SOFT_SPACE_SHARED;
      return;
    case KILNI_PTX_MOD_LOCAL:
      access->space = KILNI_SOFT_SPACE_LOCAL;
      return;
    case KILNI_PTX_MOD_PARAM:
    case KILNI_PTX_MOD_PARAM_ENTRY:
    case KILNI_PTX_MOD_PARAM_FUNC:
      access->space = KILNI_SOFT_SPACE_PARAM;
      return;
    default:
      access->bad = true;
  }
}

static void read_modifier(access_t* access, uint32_t modifier) {
  switch (modifier) {
    case KILNI_PTX_MOD_V2:
      access->count = 2;
      return;
    case KILNI_PTX_MOD_V4:
      access->count = 4;
      return;
    case KILNI_PTX_MOD_VOLATILE:
    case KILNI_PTX_MOD_RELAXED:
    case KILNI_PTX_MOD_CV:
    case KILNI_PTX_MOD_MMIO:
      access->sync = true;
      return;
    case KILNI_PTX_MOD_ACQUIRE:
      access->sync = true;
      access->order = KILNI_SOFT_ORDER_ACQUIRE;
      return;
    case KILNI_PTX_MOD_RELEASE:
      access->sync = true;
      access->order = KILNI_SOFT_ORDER_RELEASE;
      return;
    case KILNI_PTX_MOD_ACQ_REL:
      access->order = KILNI_SOFT_ORDER_ACQ_REL;
      return;
    case KILNI_PTX_MOD_WEAK:
    case KILNI_PTX_MOD_CTA:
    case KILNI_PTX_MOD_CLUSTER:
    case KILNI_PTX_MOD_GPU:
    case KILNI_PTX_MOD_SYS:
    case KILNI_PTX_MOD_CA:
    case KILNI_PTX_MOD_CG:
    case KILNI_PTX_MOD_CS:
    case KILNI_PTX_MOD_LU:
    case KILNI_PTX_MOD_WB:
    case KILNI_PTX_MOD_WT:
    case KILNI_PTX_MOD_NC:
    case KILNI_PTX_MOD_L1_EVICT_FIRST:
    case KILNI_PTX_MOD_L1_EVICT_LAST:
    case KILNI_PTX_MOD_L1_EVICT_NORMAL:
    case KILNI_PTX_MOD_L1_EVICT_UNCHANGED:
    case KILNI_PTX_MOD_L1_NO_ALLOCATE:
    case KILNI_PTX_MOD_L2_64B:
    case KILNI_PTX_MOD_L2_128B:
    case KILNI_PTX_MOD_L2_256B:
    case KILNI_PTX_MOD_L2_CACHE_HINT:
    case KILNI_PTX_MOD_L2_EVICT_FIRST:
    case KILNI_PTX_MOD_L2_EVICT_LAST:
    case KILNI_PTX_MOD_L2_EVICT_NORMAL:
    case KILNI_PTX_MOD_UNIFIED:
      return;
    default:
      read_space(access, modifier);
  }
}

static bool read_access(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source, access_t* access) {
  *access = (access_t){.count = 1};
  for (uint32_t i = 0; i < source->form->modifier_count; i++) {
    uint32_t m = source->form->modifiers[i];
    if (kilni_image_ptx_modifier_is_type(m)) {
      access->type = m;
    } else {
      read_modifier(access, m);
    }
  }
  if (access->type == KILNI_PTX_TYPE_B128 && access->count == 1) {
    access->is_128 = true;
    access->type = KILNI_PTX_TYPE_B64;
    access->count = 2;
  }
  // A parameter whose address is taken is at that address.
  for (uint32_t i = 0; i < source->count; i++) {
    const kilni_image_ptx_operand_t* operand = &source->operands[i];
    if (operand->kind == KILNI_PTX_OPERAND_ADDRESS &&
        operand->base == KILNI_PTX_BASE_VARIABLE &&
        lower->param_places[operand->index] != KILNI_SOFT_NONE) {
      access->space = KILNI_SOFT_SPACE_LOCAL;
    }
  }
  // Local memory is visible to one thread only, and no access is omitted.
  if (access->space == KILNI_SOFT_SPACE_LOCAL) access->sync = false;
  access->bytes = kilni_image_ptx_type_bytes(access->type);
  uint32_t bits = kilni_image_ptx_type_bits(access->type);
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64) access->bad = true;
  if (access->count * access->bytes > 16) access->bad = true;
  if (access->bad) kilni_soft_refuse(lower, "%s", source->form->text);
  return !access->bad;
}

uint32_t kilni_soft_variable_words(kilni_soft_lower_t* lower,
                                   uint32_t variable) {
  uint32_t* words = &lower->variable_words[variable];
  if (*words != KILNI_SOFT_NONE) return *words;
  uint64_t count = (lower->module->variables[variable].size_bytes + 3) / 4;
  if (count > 1u << 16) {
    kilni_soft_refuse(lower, "a parameter of more than 262144 bytes");
    count = 1;
  }
  *words = (uint32_t)lower->vreg_count;
  for (uint64_t i = 0; i < count || i == 0; i++) {
    uint32_t vreg = kilni_soft_vreg_new(lower, KILNI_SOFT_CLASS_32, 32);
    if (!kiln_status_is_ok(lower->status)) return 0;
    lower->vregs[vreg].is_fixed = 1;
    lower->vregs[vreg].slot = lower->fixed_words++;
  }
  return *words;
}

// Whether `bytes` at `offset` are inside a parameter, each in its place.
static bool param_fits(kilni_soft_lower_t* lower, uint32_t variable,
                       uint64_t offset, uint32_t bytes) {
  const kilni_image_ptx_variable_t* v = &lower->module->variables[variable];
  if (offset % bytes == 0 && offset <= v->size_bytes &&
      bytes <= v->size_bytes - offset) {
    return true;
  }
  kilni_soft_refuse(lower, "%u bytes at offset %llu of parameter \"%s\"", bytes,
                    (unsigned long long)offset, v->name);
  return false;
}

void kilni_soft_param_put(kilni_soft_lower_t* lower, uint32_t variable,
                          uint64_t offset, uint32_t bytes, uint32_t value) {
  if (!param_fits(lower, variable, offset, bytes)) return;
  uint32_t word =
      kilni_soft_variable_words(lower, variable) + (uint32_t)(offset / 4);
  if (bytes == 4) {
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b32, word, value, 0);
  } else if (bytes == 8) {
    kilni_soft_low_t* low = kilni_soft_low_unary(
        lower, KILNI_SOFT_OP_unpack_b64_b32x2, word, value, 0);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_B, word + 1, KILNI_SOFT_ROLE_DEF);
  } else {
    kilni_soft_low_t* low =
        kilni_soft_low_unary(lower, KILNI_SOFT_OP_insert, word, value,
                             (uint32_t)(offset % 4 * 8) | bytes * 8 << 8);
    low->role[KILNI_SOFT_WORD_D] = KILNI_SOFT_ROLE_BOTH;
  }
}

uint32_t kilni_soft_param_get(kilni_soft_lower_t* lower, uint32_t variable,
                              uint64_t offset, uint32_t bytes) {
  if (!param_fits(lower, variable, offset, bytes)) {
    return kilni_soft_value(lower, 0, bytes == 8);
  }
  uint32_t word =
      kilni_soft_variable_words(lower, variable) + (uint32_t)(offset / 4);
  if (bytes == 4) return word;
  uint32_t t = kilni_soft_temp(
      lower, bytes == 8 ? KILNI_SOFT_CLASS_64 : KILNI_SOFT_CLASS_32);
  if (bytes == 8) {
    kilni_soft_low_binary(lower, KILNI_SOFT_OP_pack_b64_b32x2, t, word,
                          word + 1);
  } else {
    kilni_soft_low_unary(
        lower, KILNI_SOFT_OP_extract, t, word,
        (uint32_t)(offset % 4 * 8) | bytes * 8 << 8 | 32u << 24);
  }
  return t;
}

// Whether a loaded value must be stretched to its register's width by sign.
static bool stretches(const kilni_soft_lower_t* lower, const access_t* access,
                      const kilni_image_ptx_operand_t* d) {
  return kilni_image_ptx_type_class(access->type) == KILNI_PTX_CLASS_SIGNED &&
         access->bytes < 4 &&
         kilni_soft_register_bits(lower, d) > access->bytes * 8;
}

// Gives the loaded `word` to the operand `d`.
static void finish_load(kilni_soft_lower_t* lower, const access_t* access,
                        const kilni_image_ptx_operand_t* d, uint32_t word) {
  bool is_signed =
      kilni_image_ptx_type_class(access->type) == KILNI_PTX_CLASS_SIGNED;
  if (stretches(lower, access, d)) {
    uint32_t keep = kilni_soft_register_bits(lower, d);
    if (keep > 32) keep = 32;
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_extract, word, word,
                         access->bytes * 8 << 8 | 1u << 16 | keep << 24);
  }
  kilni_soft_def_done(lower, d, word, access->bytes == 8, is_signed);
}

static const kilni_image_ptx_operand_t* elements(
    const kilni_soft_lower_t* lower, const kilni_image_ptx_operand_t* operand,
    uint32_t* out_count) {
  if (operand->kind != KILNI_PTX_OPERAND_VECTOR) {
    *out_count = 1;
    return operand;
  }
  *out_count = operand->count;
  return kilni_image_ptx_operand_children(lower->module, operand);
}

// ld.param of a kernel parameter at a known place: a constant.
static void load_entry_param(kilni_soft_lower_t* lower, const access_t* access,
                             const kilni_image_ptx_operand_t* d,
                             uint64_t offset) {
  uint32_t bits = kilni_soft_register_bits(lower, d);
  if (d->kind == KILNI_PTX_OPERAND_SINK) return;
  bool wide = bits == 64;
  kilni_soft_constant_t constant = {
      .value = offset,
      .kind = KILNI_SOFT_CONSTANT_PARAM,
      .wide = wide,
      .bytes = (uint8_t)access->bytes,
      .is_signed =
          kilni_image_ptx_type_class(access->type) == KILNI_PTX_CLASS_SIGNED,
      .to_bytes = (uint8_t)((bits + 7) / 8)};
  kilni_soft_low_unary(
      lower, wide ? KILNI_SOFT_OP_mov_b64 : KILNI_SOFT_OP_mov_b32,
      kilni_soft_def(lower, d, wide), kilni_soft_constant(lower, &constant), 0);
}

static void load_param(kilni_soft_lower_t* lower, const access_t* access,
                       const kilni_image_ptx_operand_t* d, uint32_t count,
                       const kilni_image_ptx_operand_t* address) {
  uint32_t variable = address->index;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t offset = address->value + (uint64_t)i * access->bytes;
    if (lower->param_offsets[variable] != KILNI_SOFT_NONE &&
        lower->source->is_entry) {
      if (!param_fits(lower, variable, offset, access->bytes)) return;
      load_entry_param(lower, access, &d[i],
                       lower->param_offsets[variable] + offset);
      continue;
    }
    bool wide = access->bytes == 8;
    uint32_t from =
        kilni_soft_param_get(lower, variable, offset, access->bytes);
    uint32_t word = kilni_soft_def(lower, &d[i], wide);
    kilni_soft_low_unary(lower,
                         wide ? KILNI_SOFT_OP_mov_b64 : KILNI_SOFT_OP_mov_b32,
                         word, from, 0);
    finish_load(lower, access, &d[i], word);
  }
}

static void store_param(kilni_soft_lower_t* lower, const access_t* access,
                        const kilni_image_ptx_operand_t* values, uint32_t count,
                        const kilni_image_ptx_operand_t* address) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t word =
        kilni_soft_use(lower, &values[i], access->bytes == 8, access->type);
    kilni_soft_param_put(lower, address->index,
                         address->value + (uint64_t)i * access->bytes,
                         access->bytes, word);
  }
}

// Whether 32 bits span the space, so that sums of addresses of 32 bits wrap.
static bool decode_memory_is_near(uint32_t space) {
  return space == KILNI_SOFT_SPACE_SHARED || space == KILNI_SOFT_SPACE_LOCAL ||
         space == KILNI_SOFT_SPACE_PARAM || space == KILNI_SOFT_SPACE_CONST;
}

// The sum of a register of 32 bits and `offset`, which wraps, in 64 bits.
static uint32_t near_sum(kilni_soft_lower_t* lower, uint32_t base,
                         uint32_t offset) {
  uint32_t sum = base;
  if (offset) {
    sum = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
    kilni_soft_low_binary(lower, KILNI_SOFT_OP_add_b32, sum, base,
                          kilni_soft_value(lower, offset, false));
  }
  uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_64);
  kilni_soft_low_unary(lower, KILNI_SOFT_OP_wide_u32, t, sum, 0);
  return t;
}

// Where the constants of the module begin and how far they reach; false if they
// are too far apart for 32 bits.
static bool constants_span(const kilni_soft_code_t* code, uint64_t* out_lo) {
  uint64_t lo = UINT64_MAX;
  uint64_t end = 0;
  for (uint32_t i = 0; i < code->symbol_count; i++) {
    const kilni_soft_symbol_t* symbol = &code->symbols[i];
    if (!symbol->is_constant || !symbol->address) continue;
    if (symbol->address < lo) lo = symbol->address;
    if (symbol->address + symbol->bytes > end) {
      end = symbol->address + symbol->bytes;
    }
  }
  *out_lo = lo;
  return end > lo && end - lo <= UINT32_MAX;
}

// A GPU's constants are in a window that 32 bits span. Ours are anywhere in
// device memory, and a 32-bit register has the lower half of an address there:
// the full address is that of the first constant plus the wrapped distance from
// it.
static uint32_t near_constant(kilni_soft_lower_t* lower, uint32_t base,
                              uint32_t offset) {
  uint64_t lo;
  if (!constants_span(lower->code, &lo)) {
    kilni_soft_refuse(lower,
                      "a constant at an address of 32 bits, in a module whose "
                      "constants are 4 GiB apart or that has none");
    return base;
  }
  uint32_t distance = near_sum(lower, base, offset - (uint32_t)lo);
  uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_64);
  kilni_soft_low_binary(lower, KILNI_SOFT_OP_add_b64, t, distance,
                        kilni_soft_value(lower, lo, true));
  return t;
}

// An address in the words of an access. one-thread
typedef struct place_t {
  uint32_t base;
  uint32_t flags;
  int32_t offset;
} place_t;

static bool decode_memory_read_address(kilni_soft_lower_t* lower,
                                       const kilni_image_ptx_operand_t* address,
                                       uint32_t space, place_t* out) {
  *out = (place_t){0, 0, 0};
  if (address->kind != KILNI_PTX_OPERAND_ADDRESS || address->count) {
    kilni_soft_refuse(lower, "an address of this kind");
    return false;
  }
  int64_t offset = (int64_t)address->value;
  if (address->base == KILNI_PTX_BASE_VARIABLE) {
    out->base =
        kilni_soft_variable_address(lower, address->index, address->value,
                                    space == KILNI_SOFT_SPACE_GENERIC);
    return true;
  }
  if (address->base == KILNI_PTX_BASE_NONE) {
    out->base = kilni_soft_value(lower, address->value, true);
    return true;
  }
  if (address->base != KILNI_PTX_BASE_REGISTER || offset != (int32_t)offset) {
    kilni_soft_refuse(lower, "an address of this kind");
    return false;
  }
  out->base = lower->register_vregs[address->index] +
              (address->component == KILNI_PTX_WHOLE ? 0 : address->component);
  out->offset = (int32_t)offset;
  uint32_t class_ = lower->vregs[out->base].class_;
  if (class_ == KILNI_SOFT_CLASS_PRED) {
    kilni_soft_refuse(lower, "a predicate as an address");
    return false;
  }
  if (class_ != KILNI_SOFT_CLASS_32) return true;
  if (space == KILNI_SOFT_SPACE_CONST) {
    out->base = near_constant(lower, out->base, (uint32_t)out->offset);
    out->offset = 0;
    return true;
  }
  out->flags = KILNI_SOFT_MEM_BASE32;
  if (decode_memory_is_near(space)) out->flags |= KILNI_SOFT_MEM_NEAR;
  return true;
}

bool kilni_soft_address(kilni_soft_lower_t* lower,
                        const kilni_image_ptx_operand_t* address,
                        uint32_t space, uint32_t* out_word) {
  place_t place;
  if (!decode_memory_read_address(lower, address, space, &place)) return false;
  if (place.flags & KILNI_SOFT_MEM_NEAR) {
    *out_word = near_sum(lower, place.base, (uint32_t)place.offset);
    return true;
  }
  if (place.flags & KILNI_SOFT_MEM_BASE32) {
    uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_64);
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_wide_u32, t, place.base, 0);
    place.base = t;
  }
  if (place.offset) {
    uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_64);
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_add_offset, t, place.base,
                         (uint32_t)place.offset);
    place.base = t;
  }
  *out_word = place.base;
  return true;
}

static uint32_t scalar_op(const access_t* access, bool is_store) {
  static const uint16_t ops[2][3][4] = {
      {{KILNI_SOFT_OP_ld_global_8, KILNI_SOFT_OP_ld_global_16,
        KILNI_SOFT_OP_ld_global_32, KILNI_SOFT_OP_ld_global_64},
       {KILNI_SOFT_OP_ld_generic_8, KILNI_SOFT_OP_ld_generic_16,
        KILNI_SOFT_OP_ld_generic_32, KILNI_SOFT_OP_ld_generic_64},
       {KILNI_SOFT_OP_ld_shared_8, KILNI_SOFT_OP_ld_shared_16,
        KILNI_SOFT_OP_ld_shared_32, KILNI_SOFT_OP_ld_shared_64}},
      {{KILNI_SOFT_OP_st_global_8, KILNI_SOFT_OP_st_global_16,
        KILNI_SOFT_OP_st_global_32, KILNI_SOFT_OP_st_global_64},
       {KILNI_SOFT_OP_st_generic_8, KILNI_SOFT_OP_st_generic_16,
        KILNI_SOFT_OP_st_generic_32, KILNI_SOFT_OP_st_generic_64},
       {KILNI_SOFT_OP_st_shared_8, KILNI_SOFT_OP_st_shared_16,
        KILNI_SOFT_OP_st_shared_32, KILNI_SOFT_OP_st_shared_64}}};
  uint32_t size = (uint32_t)__builtin_ctz(access->bytes);
  uint32_t space = 0;
  if (access->space == KILNI_SOFT_SPACE_GENERIC) space = 1;
  if (access->space == KILNI_SOFT_SPACE_SHARED) space = 2;
  return ops[is_store][space][size];
}

static uint32_t vector_op(const access_t* access, bool is_store) {
  switch (access->space) {
    case KILNI_SOFT_SPACE_GENERIC:
      return is_store ? KILNI_SOFT_OP_st_generic_v : KILNI_SOFT_OP_ld_generic_v;
    case KILNI_SOFT_SPACE_SHARED:
      return is_store ? KILNI_SOFT_OP_st_shared_v : KILNI_SOFT_OP_ld_shared_v;
    case KILNI_SOFT_SPACE_LOCAL:
    case KILNI_SOFT_SPACE_PARAM:
      return is_store ? KILNI_SOFT_OP_st_private : KILNI_SOFT_OP_ld_private;
    default:
      return is_store ? KILNI_SOFT_OP_st_global_v : KILNI_SOFT_OP_ld_global_v;
  }
}

static kilni_soft_low_t* low_access(kilni_soft_lower_t* lower, uint32_t op,
                                    const access_t* access,
                                    const place_t* place, uint32_t count) {
  kilni_soft_low_t* low = kilni_soft_low(lower, op);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, place->base, KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_B] = (uint32_t)place->offset;
  low->word[KILNI_SOFT_WORD_C] =
      place->flags | KILNI_SOFT_MEM_MAKE(count, access->bytes, access->space);
  low->word[KILNI_SOFT_WORD_AUX] = lower->code->site_count++;
  return low;
}

static void emit_access(kilni_soft_lower_t* lower, const access_t* access,
                        const place_t* place, const uint32_t* words,
                        uint32_t count, bool is_store) {
  uint32_t role = is_store ? KILNI_SOFT_ROLE_USE : KILNI_SOFT_ROLE_DEF;
  uint32_t op = vector_op(access, is_store);
  bool is_private =
      op == KILNI_SOFT_OP_ld_private || op == KILNI_SOFT_OP_st_private;
  if (count == 1 && !is_private) {
    kilni_soft_low_t* low =
        low_access(lower, scalar_op(access, is_store), access, place, 1);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_D, words[0], role);
    low->word[KILNI_SOFT_WORD_C] = 0;
    uint32_t kind = KILNI_SOFT_ADDRESS_64;
    if (place->flags & KILNI_SOFT_MEM_BASE32) kind = KILNI_SOFT_ADDRESS_32;
    if (place->flags & KILNI_SOFT_MEM_NEAR) kind = KILNI_SOFT_ADDRESS_NEAR;
    low->address = KILNI_SOFT_ADDRESS_MAKE(kind, 0);
    return;
  }
  low_access(lower, op, access, place, count);
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_words);
  for (uint32_t i = 0; i < count; i++) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_D + i, words[i], role);
  }
}

void kilni_soft_param_to_local(kilni_soft_lower_t* lower, uint32_t variable) {
  if (lower->param_places[variable] == KILNI_SOFT_NONE) return;
  const access_t access = {.space = KILNI_SOFT_SPACE_LOCAL,
                           .type = KILNI_PTX_TYPE_B32,
                           .bytes = 4,
                           .count = 1};
  uint64_t bytes = lower->module->variables[variable].size_bytes;
  uint32_t first = kilni_soft_variable_words(lower, variable);
  place_t place = {.base =
                       kilni_soft_variable_address(lower, variable, 0, false)};
  for (uint32_t i = 0; i < (bytes + 3) / 4; i++) {
    uint32_t word = first + i;
    place.offset = (int32_t)(4 * i);
    emit_access(lower, &access, &place, &word, 1, true);
  }
}

// The address of element `i`.
static uint32_t element_address(kilni_soft_lower_t* lower, uint32_t base,
                                uint32_t offset) {
  if (offset == 0) return base;
  uint32_t t = kilni_soft_temp(lower, KILNI_SOFT_CLASS_64);
  kilni_soft_low_unary(lower, KILNI_SOFT_OP_add_offset, t, base, offset);
  return t;
}

static uint32_t sync_flags(const access_t* access, uint32_t count) {
  return KILNI_SOFT_MEM_MAKE(count, access->bytes, access->space) |
         access->order << 16;
}

// The elements of an ordered access, which is one: with several the words are
// in the next instruction.
static void sync_words(kilni_soft_lower_t* lower, kilni_soft_low_t* low,
                       const uint32_t* words, uint32_t count, uint32_t at,
                       uint32_t role) {
  if (count == 1) {
    kilni_soft_low_word(low, at, words[0], role);
    return;
  }
  low = kilni_soft_low(lower, KILNI_SOFT_OP_words);
  for (uint32_t i = 0; i < count; i++) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_D + i, words[i], role);
  }
}

static void load_sync(kilni_soft_lower_t* lower, const access_t* access,
                      const kilni_image_ptx_operand_t* d, uint32_t count,
                      const kilni_image_ptx_operand_t* address) {
  uint32_t base;
  uint32_t words[4] = {0, 0, 0, 0};
  if (!kilni_soft_address(lower, address, access->space, &base)) return;
  for (uint32_t i = 0; i < count; i++) {
    words[i] = kilni_soft_def(lower, &d[i], access->bytes == 8);
  }
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_ld_sync);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, base, KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_AUX] = sync_flags(access, count);
  sync_words(lower, low, words, count, KILNI_SOFT_WORD_D, KILNI_SOFT_ROLE_DEF);
  for (uint32_t i = 0; i < count; i++) {
    finish_load(lower, access, &d[i], words[i]);
  }
}

static void store_sync(kilni_soft_lower_t* lower, const access_t* access,
                       const kilni_image_ptx_operand_t* values, uint32_t count,
                       const kilni_image_ptx_operand_t* address) {
  uint32_t base;
  uint32_t words[4] = {0, 0, 0, 0};
  if (!kilni_soft_address(lower, address, access->space, &base)) return;
  for (uint32_t i = 0; i < count; i++) {
    words[i] =
        kilni_soft_use(lower, &values[i], access->bytes == 8, access->type);
  }
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_st_sync);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, base, KILNI_SOFT_ROLE_USE);
  low->word[KILNI_SOFT_WORD_AUX] = sync_flags(access, count);
  sync_words(lower, low, words, count, KILNI_SOFT_WORD_B, KILNI_SOFT_ROLE_USE);
}

static void decode_load(kilni_soft_lower_t* lower, const access_t* access,
                        const kilni_image_ptx_operand_t* d, uint32_t count,
                        const kilni_image_ptx_operand_t* address) {
  if (access->space == KILNI_SOFT_SPACE_PARAM &&
      address->base == KILNI_PTX_BASE_VARIABLE) {
    load_param(lower, access, d, count, address);
    return;
  }
  if (access->sync) {
    load_sync(lower, access, d, count, address);
    return;
  }
  place_t place;
  uint32_t words[4] = {0, 0, 0, 0};
  if (!decode_memory_read_address(lower, address, access->space, &place)) {
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    words[i] = kilni_soft_def(lower, &d[i], access->bytes == 8);
  }
  emit_access(lower, access, &place, words, count, false);
  for (uint32_t i = 0; i < count; i++) {
    finish_load(lower, access, &d[i], words[i]);
  }
}

static void decode_store(kilni_soft_lower_t* lower, const access_t* access,
                         const kilni_image_ptx_operand_t* values,
                         uint32_t count,
                         const kilni_image_ptx_operand_t* address) {
  if (access->space == KILNI_SOFT_SPACE_PARAM) {
    if (address->base != KILNI_PTX_BASE_VARIABLE || lower->source->is_entry) {
      bool own = address->base == KILNI_PTX_BASE_VARIABLE &&
                 lower->param_offsets[address->index] == KILNI_SOFT_NONE;
      if (!own) {
        kilni_soft_refuse(lower, "a store to a kernel parameter");
        return;
      }
    }
    store_param(lower, access, values, count, address);
    return;
  }
  if (access->sync) {
    store_sync(lower, access, values, count, address);
    return;
  }
  place_t place;
  uint32_t words[4] = {0, 0, 0, 0};
  if (!decode_memory_read_address(lower, address, access->space, &place)) {
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    words[i] =
        kilni_soft_use(lower, &values[i], access->bytes == 8, access->type);
  }
  emit_access(lower, access, &place, words, count, true);
}

// The number of operands without the policy of a cache hint.
static uint32_t operand_count(const kilni_soft_source_t* source) {
  bool hint = kilni_soft_form_has(source->form, KILNI_PTX_MOD_L2_CACHE_HINT);
  return source->count - (hint ? 1u : 0u);
}

void kilni_soft_decode_memory(kilni_soft_lower_t* lower,
                              const kilni_soft_source_t* source) {
  access_t access;
  kilni_image_ptx_operand_t halves[2];
  if (!read_access(lower, source, &access)) return;
  bool is_store = source->ins->opcode == KILNI_PTX_OP_ST;
  const kilni_image_ptx_operand_t* address =
      &source->operands[is_store ? 0 : 1];
  const kilni_image_ptx_operand_t* data = &source->operands[is_store ? 1 : 0];
  uint32_t count;
  if (access.is_128) {
    if (!kilni_soft_halves(lower, data, halves)) {
      kilni_soft_refuse(lower, "%s", source->form->text);
      return;
    }
    data = halves;
    count = 2;
  } else {
    data = elements(lower, data, &count);
  }
  if (operand_count(source) != 2 || count != access.count ||
      address->kind != KILNI_PTX_OPERAND_ADDRESS ||
      (is_store && access.space == KILNI_SOFT_SPACE_CONST)) {
    kilni_soft_refuse(lower, "%s", source->form->text);
    return;
  }
  if (is_store) {
    decode_store(lower, &access, data, count, address);
  } else {
    decode_load(lower, &access, data, count, address);
  }
}

// The action of an atomic; false if it has none or it does not fit its type.
static bool read_action(const kilni_image_ptx_form_t* form,
                        const access_t* access, uint32_t* out_action) {
  static const struct {
    uint16_t modifier;
    uint16_t action;
  } actions[] = {
      {KILNI_PTX_MOD_ADD, KILNI_SOFT_ACTION_ADD},
      {KILNI_PTX_MOD_MIN, KILNI_SOFT_ACTION_MIN},
      {KILNI_PTX_MOD_MAX, KILNI_SOFT_ACTION_MAX},
      {KILNI_PTX_MOD_INC, KILNI_SOFT_ACTION_INC},
      {KILNI_PTX_MOD_DEC, KILNI_SOFT_ACTION_DEC},
      {KILNI_PTX_MOD_AND, KILNI_SOFT_ACTION_AND},
      {KILNI_PTX_MOD_OR, KILNI_SOFT_ACTION_OR},
      {KILNI_PTX_MOD_XOR, KILNI_SOFT_ACTION_XOR},
      {KILNI_PTX_MOD_EXCH, KILNI_SOFT_ACTION_EXCH},
      {KILNI_PTX_MOD_CAS, KILNI_SOFT_ACTION_CAS},
  };
  uint32_t class_ = kilni_image_ptx_type_class(access->type);
  uint32_t bits = kilni_image_ptx_type_bits(access->type);
  for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
    if (!kilni_soft_form_has(form, actions[i].modifier)) continue;
    uint32_t action = actions[i].action;
    *out_action = action;
    bool swaps =
        action == KILNI_SOFT_ACTION_EXCH || action == KILNI_SOFT_ACTION_CAS;
    bool extreme =
        action == KILNI_SOFT_ACTION_MIN || action == KILNI_SOFT_ACTION_MAX;
    if (access->is_128) return swaps;
    if (access->number >= KILNI_SOFT_NUMBER_F16) {
      return action == KILNI_SOFT_ACTION_ADD || (extreme && access->count > 1);
    }
    if (bits == 16) return action == KILNI_SOFT_ACTION_CAS;
    if (bits != 32 && bits != 64) return false;
    return class_ != KILNI_PTX_CLASS_FLOAT || action == KILNI_SOFT_ACTION_ADD;
  }
  return false;
}

static uint32_t decode_memory_number_of(uint32_t type) {
  switch (type) {
    case KILNI_PTX_TYPE_F16:
      return KILNI_SOFT_NUMBER_F16;
    case KILNI_PTX_TYPE_BF16:
      return KILNI_SOFT_NUMBER_BF16;
    case KILNI_PTX_TYPE_F16X2:
      return KILNI_SOFT_NUMBER_F16X2;
    case KILNI_PTX_TYPE_BF16X2:
      return KILNI_SOFT_NUMBER_BF16X2;
    default:
      break;
  }
  switch (kilni_image_ptx_type_class(type)) {
    case KILNI_PTX_CLASS_SIGNED:
      return KILNI_SOFT_NUMBER_SIGNED;
    case KILNI_PTX_CLASS_FLOAT:
      return KILNI_SOFT_NUMBER_FLOAT;
    default:
      return KILNI_SOFT_NUMBER_UNSIGNED;
  }
}

// The modifiers that do not name the action.
static bool read_atomic(const kilni_soft_source_t* source, access_t* access) {
  *access = (access_t){.count = 1};
  for (uint32_t i = 0; i < source->form->modifier_count; i++) {
    uint32_t m = source->form->modifiers[i];
    switch (m) {
      case KILNI_PTX_MOD_ADD:
      case KILNI_PTX_MOD_MIN:
      case KILNI_PTX_MOD_MAX:
      case KILNI_PTX_MOD_INC:
      case KILNI_PTX_MOD_DEC:
      case KILNI_PTX_MOD_AND:
      case KILNI_PTX_MOD_OR:
      case KILNI_PTX_MOD_XOR:
      case KILNI_PTX_MOD_EXCH:
      case KILNI_PTX_MOD_CAS:
      case KILNI_PTX_MOD_NOFTZ:
        break;
      default:
        if (kilni_image_ptx_modifier_is_type(m)) {
          access->type = m;
        } else {
          read_modifier(access, m);
        }
    }
  }
  access->is_128 = access->type == KILNI_PTX_TYPE_B128;
  access->bytes = kilni_image_ptx_type_bytes(access->type);
  access->number = decode_memory_number_of(access->type);
  bool vector = access->count > 1;
  bool far = access->space == KILNI_SOFT_SPACE_GENERIC ||
             access->space == KILNI_SOFT_SPACE_GLOBAL;
  if (vector && !(far && access->number >= KILNI_SOFT_NUMBER_FLOAT &&
                  access->bytes * access->count <= 16)) {
    return false;
  }
  return !access->bad && (far || access->space == KILNI_SOFT_SPACE_SHARED);
}

// What an atomic is made of. one-thread
typedef struct atomic_t {
  access_t access;
  uint32_t action;
  bool has_result;
} atomic_t;

static uint32_t atomic_flags(const atomic_t* atomic) {
  return KILNI_SOFT_MEM_MAKE(0, atomic->access.bytes & 15u,
                             atomic->access.space) |
         atomic->access.order << 16 | atomic->action << 20 |
         atomic->access.number << 25 |
         (atomic->has_result ? 0u : KILNI_SOFT_MEM_NO_RESULT);
}

// One atomic of one register.
static void emit_atomic(kilni_soft_lower_t* lower, const atomic_t* atomic,
                        uint32_t d, uint32_t base, uint32_t b, uint32_t c) {
  kilni_soft_low_t* low = kilni_soft_low(lower, KILNI_SOFT_OP_atom);
  if (atomic->has_result) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_D, d, KILNI_SOFT_ROLE_DEF);
  }
  kilni_soft_low_word(low, KILNI_SOFT_WORD_A, base, KILNI_SOFT_ROLE_USE);
  kilni_soft_low_word(low, KILNI_SOFT_WORD_B, b, KILNI_SOFT_ROLE_USE);
  if (atomic->action == KILNI_SOFT_ACTION_CAS) {
    kilni_soft_low_word(low, KILNI_SOFT_WORD_C, c, KILNI_SOFT_ROLE_USE);
  }
  low->word[KILNI_SOFT_WORD_AUX] = atomic_flags(atomic) | atomic->access.count
                                                              << 4;
}

// A vector is as many atomics. Results are written when all are done.
static void emit_vector(kilni_soft_lower_t* lower, const atomic_t* atomic,
                        const kilni_image_ptx_operand_t* d, uint32_t base,
                        const kilni_image_ptx_operand_t* b) {
  uint32_t results[4] = {0, 0, 0, 0};
  uint32_t count = atomic->access.count;
  atomic_t one = *atomic;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t at = element_address(lower, base, i * atomic->access.bytes);
    uint32_t value = kilni_soft_use(lower, &b[i], false, atomic->access.type);
    results[i] = kilni_soft_temp(lower, KILNI_SOFT_CLASS_32);
    one.access.count = i == 0 ? count : 1;
    emit_atomic(lower, &one, results[i], at, value, 0);
  }
  for (uint32_t i = 0; d && i < count; i++) {
    if (d[i].kind == KILNI_PTX_OPERAND_SINK) continue;
    uint32_t word = kilni_soft_def(lower, &d[i], false);
    kilni_soft_low_unary(lower, KILNI_SOFT_OP_mov_b32, word, results[i], 0);
    kilni_soft_def_done(lower, &d[i], word, false, false);
  }
}

// Two words of 64 bits: `d` and, in a word instruction, the upper halves.
static void emit_128(kilni_soft_lower_t* lower,
                     const kilni_soft_source_t* source, const atomic_t* atomic,
                     uint32_t base, const kilni_image_ptx_operand_t* values) {
  kilni_image_ptx_operand_t d[2];
  kilni_image_ptx_operand_t b[2];
  kilni_image_ptx_operand_t c[2];
  bool cas = atomic->action == KILNI_SOFT_ACTION_CAS;
  bool good = kilni_soft_halves(lower, &source->operands[0], d) &&
              kilni_soft_halves(lower, &values[0], b);
  if (good && cas) good = kilni_soft_halves(lower, &values[1], c);
  if (!good || !atomic->has_result) {
    kilni_soft_refuse(lower, "%s", source->form->text);
    return;
  }
  uint32_t words[3][2];
  for (uint32_t i = 0; i < 2; i++) {
    words[0][i] = kilni_soft_def(lower, &d[i], true);
    words[1][i] = kilni_soft_use(lower, &b[i], true, 0);
    words[2][i] = cas ? kilni_soft_use(lower, &c[i], true, 0) : words[1][i];
  }
  for (uint32_t i = 0; i < 2; i++) {
    kilni_soft_low_t* low = kilni_soft_low(
        lower, i == 0 ? KILNI_SOFT_OP_atom_b128 : KILNI_SOFT_OP_words);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_D, words[0][i],
                        KILNI_SOFT_ROLE_DEF);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_A, i == 0 ? base : words[1][0],
                        KILNI_SOFT_ROLE_USE);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_B, words[1][i],
                        KILNI_SOFT_ROLE_USE);
    kilni_soft_low_word(low, KILNI_SOFT_WORD_C, words[2][i],
                        KILNI_SOFT_ROLE_USE);
    if (i == 0) low->word[KILNI_SOFT_WORD_AUX] = atomic_flags(atomic);
  }
}

static void emit_scalar(kilni_soft_lower_t* lower,
                        const kilni_soft_source_t* source,
                        const atomic_t* atomic, uint32_t base,
                        const kilni_image_ptx_operand_t* values) {
  bool wide = atomic->access.bytes == 8;
  uint32_t type = atomic->access.type;
  uint32_t b = kilni_soft_use(lower, &values[0], wide, type);
  uint32_t c = 0;
  if (atomic->action == KILNI_SOFT_ACTION_CAS) {
    c = kilni_soft_use(lower, &values[1], wide, type);
  }
  uint32_t d = 0;
  if (atomic->has_result) d = kilni_soft_def(lower, &source->operands[0], wide);
  emit_atomic(lower, atomic, d, base, b, c);
  if (atomic->has_result) {
    kilni_soft_def_done(lower, &source->operands[0], d, wide, false);
  }
}

void kilni_soft_decode_atomic(kilni_soft_lower_t* lower,
                              const kilni_soft_source_t* source) {
  atomic_t atomic = {.has_result = source->ins->opcode == KILNI_PTX_OP_ATOM};
  uint32_t first = atomic.has_result ? 1 : 0;
  bool ok = read_atomic(source, &atomic.access) &&
            read_action(source->form, &atomic.access, &atomic.action);
  uint32_t values = atomic.action == KILNI_SOFT_ACTION_CAS ? 2 : 1;
  if (!ok || operand_count(source) != first + 1 + values) {
    kilni_soft_refuse(lower, "%s", source->form->text);
    return;
  }
  const kilni_image_ptx_operand_t* operands = source->operands + first;
  uint32_t base;
  if (!kilni_soft_address(lower, &operands[0], atomic.access.space, &base)) {
    return;
  }
  if (atomic.access.is_128) {
    emit_128(lower, source, &atomic, base, &operands[1]);
    return;
  }
  if (atomic.access.count == 1) {
    emit_scalar(lower, source, &atomic, base, &operands[1]);
    return;
  }
  uint32_t count;
  const kilni_image_ptx_operand_t* b = elements(lower, &operands[1], &count);
  bool fits = count == atomic.access.count;
  const kilni_image_ptx_operand_t* d = NULL;
  if (fits && atomic.has_result &&
      source->operands[0].kind != KILNI_PTX_OPERAND_SINK) {
    d = elements(lower, &source->operands[0], &count);
    fits = count == atomic.access.count;
  }
  if (!fits) {
    kilni_soft_refuse(lower, "%s", source->form->text);
    return;
  }
  emit_vector(lower, &atomic, d, base, b);
}
