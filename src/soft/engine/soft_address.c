// SPDX-License-Identifier: Apache-2.0
//
// soft: where the lanes of an instruction access memory.
#include "soft/code/soft_engine.h"
#include "soft/code/soft_function.h"
#include "soft/engine/soft_address.h"

static uint64_t lane_word(const kilni_soft_warp_t* warp, uint32_t word,
                          uint32_t lane, bool wide) {
  const void* slot = kilni_soft_slot(warp, word);
  return wide ? ((const uint64_t*)slot)[lane] : ((const uint32_t*)slot)[lane];
}

// The address of one lane of an access of one register.
static uint64_t lane_address(const kilni_soft_warp_t* warp,
                             const kilni_soft_instr_t* instr, uint32_t lane) {
  uint32_t kind = KILNI_SOFT_ADDRESS_KIND(instr->c);
  uint32_t shift = KILNI_SOFT_ADDRESS_SHIFT(instr->c);
  uint64_t offset = (uint64_t)(int64_t)(int32_t)instr->b;
  bool narrow =
      kind == KILNI_SOFT_ADDRESS_32 || kind == KILNI_SOFT_ADDRESS_NEAR;
  uint64_t base = lane_word(warp, instr->a, lane, !narrow) + offset;
  switch (kind) {
    case KILNI_SOFT_ADDRESS_NEAR:
      return (uint32_t)base;
    case KILNI_SOFT_ADDRESS_SUM:
      return base + lane_word(warp, instr->c, lane, true);
    case KILNI_SOFT_ADDRESS_S32: {
      uint32_t index = (uint32_t)lane_word(warp, instr->c, lane, false);
      return base + ((uint64_t)(int64_t)(int32_t)index << shift);
    }
    case KILNI_SOFT_ADDRESS_U32:
      return base + (lane_word(warp, instr->c, lane, false) << shift);
    default:
      return base;
  }
}

// What the operation of a one-register access defines; false for others.
static bool scalar_access(uint32_t op, kilni_soft_address_t* access) {
  switch (op) {
#define SIZED(name, space_, bits)              \
  case KILNI_SOFT_OP_##name##_##bits:          \
    access->space = KILNI_SOFT_SPACE_##space_; \
    access->bytes = bits / 8;                  \
    return true;
#define SIZES(name, space_) \
  SIZED(name, space_, 8)    \
  SIZED(name, space_, 16)   \
  SIZED(name, space_, 32)   \
  SIZED(name, space_, 64)
    SIZES(ld_global, GLOBAL)
    SIZES(st_global, GLOBAL)
    SIZES(ld_generic, GENERIC)
    SIZES(st_generic, GENERIC)
    SIZES(ld_shared, SHARED)
    SIZES(st_shared, SHARED)
#undef SIZES
#undef SIZED
    default:
      return false;
  }
}

bool kilni_soft_address_find(const kilni_soft_warp_t* warp,
                             const kilni_soft_instr_t* instr, uint32_t exec,
                             kilni_soft_address_t* access) {
  uint32_t words = instr->c;
  bool sync = false;
  if (scalar_access(instr->op, access)) {
    for (uint32_t m = exec; m; m &= m - 1) {
      uint32_t lane = (uint32_t)__builtin_ctz(m);
      access->lane[lane] = lane_address(warp, instr, lane);
    }
    return true;
  }
  switch (instr->op) {
    case KILNI_SOFT_OP_ld_sync:
    case KILNI_SOFT_OP_st_sync:
    case KILNI_SOFT_OP_atom:
    case KILNI_SOFT_OP_atom_b128:
      sync = true;
      words = instr->aux;
      break;
    case KILNI_SOFT_OP_ld_global_v:
    case KILNI_SOFT_OP_ld_generic_v:
    case KILNI_SOFT_OP_ld_shared_v:
    case KILNI_SOFT_OP_ld_private:
    case KILNI_SOFT_OP_st_global_v:
    case KILNI_SOFT_OP_st_generic_v:
    case KILNI_SOFT_OP_st_shared_v:
    case KILNI_SOFT_OP_st_private:
      break;
    default:
      return false;
  }
  bool wide = sync || !(words & KILNI_SOFT_MEM_BASE32);
  uint64_t offset = sync ? 0 : (uint64_t)(int64_t)(int32_t)instr->b;
  bool ordered =
      instr->op == KILNI_SOFT_OP_ld_sync || instr->op == KILNI_SOFT_OP_st_sync;
  uint32_t count = sync && !ordered ? 1 : KILNI_SOFT_MEM_COUNT(words);
  uint64_t mask =
      !sync && words & KILNI_SOFT_MEM_NEAR ? UINT32_MAX : UINT64_MAX;
  access->space = KILNI_SOFT_MEM_SPACE(words);
  access->bytes = KILNI_SOFT_MEM_BYTES(words) * count;
  for (uint32_t m = exec; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    access->lane[lane] =
        (lane_word(warp, instr->a, lane, wide) + offset) & mask;
  }
  return true;
}
