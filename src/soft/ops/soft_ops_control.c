// SPDX-License-Identifier: Apache-2.0
//
// soft: control flow, special registers, addresses of spaces, packing of
// registers. Compiled once for each lane set.
#include "base/thread.h"
#include "soft/code/soft_function.h"
#include "soft/engine/soft_state.h"
#include "soft/engine/soft_warp.h"
#include "soft/lanes/soft_lanes.h"

// `aux`: instructions of the block before that nothing has counted yet.
KILNI_SOFT_HANDLER(join) {
  kilni_soft_run_t* run = kilni_soft_run(warp);
  run->steps += instr->aux;
  if ((uintptr_t)(instr + 1) < (uintptr_t)run->limit) return instr + 1;
  return kilni_soft_jump(run, instr + 1);
}

// `aux`: how many instructions under this guard follow.
KILNI_SOFT_HANDLER(count) {
  warp->executed +=
      (uint64_t)instr->aux * kilni_soft_popcount(kilni_soft_exec(warp, instr));
  return instr + 1;
}

KILNI_SOFT_HANDLER(bra) {
  return kilni_soft_branch(warp, instr, kilni_soft_exec(warp, instr));
}

// `a`, the index; `b` and `c`, the first of the function's targets and how
// many there are.
KILNI_SOFT_HANDLER(brx) {
  kilni_soft_run_t* run = kilni_soft_run(warp);
  const uint32_t* index = KILNI_LANES_AT(uint32_t, instr->a);
  const kilni_soft_function_t* function = run->frame->function;
  const kilni_soft_instr_t* targets[KILNI_SOFT_LANES];
  KILNI_LANES_EACH(i) {
    targets[i] = NULL;
    if (!(warp->mask >> i & 1u)) continue;
    if (index[i] >= instr->c) {
      return kilni_soft_fault_instr(run, instr, KILN_FAULT_CAUSE_BRANCH, i);
    }
    targets[i] = function->code + function->targets[instr->b + index[i]];
  }
  return kilni_soft_scatter(run, instr, targets);
}

KILNI_SOFT_HANDLER(ret) {
  return kilni_soft_return(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(exit) {
  kilni_soft_run_t* run = kilni_soft_run(warp);
  run->steps += instr->aux;
  return kilni_soft_end_lanes(run);
}

KILNI_SOFT_HANDLER(trap) {
  return kilni_soft_fault(kilni_soft_run(warp), instr, KILNI_SOFT_FAULT_TRAP,
                          (uint32_t)__builtin_ctz(warp->mask));
}

KILNI_SOFT_HANDLER(brkpt) {
  return kilni_soft_fault(kilni_soft_run(warp), instr, KILNI_SOFT_FAULT_TRAP,
                          (uint32_t)__builtin_ctz(warp->mask));
}

KILNI_SOFT_HANDLER(fence) {
  kilni_soft_run_t* run = kilni_soft_run(warp);
  kilni_soft_spin(run);
  kilni_soft_fence(run->grid);
  return instr + 1;
}

KILNI_SOFT_HANDLER(nanosleep) {
  kilni_soft_run_t* run = kilni_soft_run(warp);
  kilni_soft_spin(run);
  warp->budget = 1;  // the next backward branch gives the turn away
  return instr + 1;
}

// Waits for the kernel in front on the stream, where this one began before its
// end.
KILNI_SOFT_HANDLER(wait_ahead) {
  return kilni_soft_wait_ahead(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(let_follow) {
  return kilni_soft_let_follow(kilni_soft_run(warp), instr);
}

// Thread indices of all lanes, one coordinate.
KILNI_LANES_INLINE void thread_index(const kilni_soft_run_t* run, uint32_t axis,
                                     uint32_t* out) {
  const uint32_t* size = run->grid->launch.block;
  uint32_t t[3];
  uint32_t first = run->index * (uint32_t)KILNI_SOFT_LANES;
  t[0] = first % size[0];
  t[1] = first / size[0] % size[1];
  t[2] = first / size[0] / size[1];
  if (t[0] + KILNI_SOFT_LANES <= size[0]) {  // one row
    uint32_t step = axis == 0;
    KILNI_LANES_EACH(i) {
      out[i] = t[axis] + i * step;
    }
    return;
  }
  KILNI_LANES_EACH(i) {
    out[i] = t[axis];
    if (++t[0] < size[0]) continue;
    t[0] = 0;
    if (++t[1] < size[1]) continue;
    t[1] = 0;
    t[2]++;
  }
}

static uint32_t lane_mask(uint32_t which, uint32_t lane) {
  uint32_t bit = 1u << lane;
  switch (which) {
    case KILNI_SOFT_SREG_LANEMASK_EQ:
      return bit;
    case KILNI_SOFT_SREG_LANEMASK_LE:
      return bit | (bit - 1);
    case KILNI_SOFT_SREG_LANEMASK_LT:
      return bit - 1;
    case KILNI_SOFT_SREG_LANEMASK_GE:
      return ~(bit - 1);
    default:
      return ~(bit | (bit - 1));
  }
}

static uint64_t device_clock(const kilni_soft_run_t* run) {
  return kilni_base_time_ns() - run->grid->start_ns;
}

static uint32_t warp_value(const kilni_soft_run_t* run, uint32_t which) {
  switch (which) {
    case KILNI_SOFT_SREG_CTAID_X:
    case KILNI_SOFT_SREG_CTAID_Y:
    case KILNI_SOFT_SREG_CTAID_Z:
      return run->block->index[which - KILNI_SOFT_SREG_CTAID_X];
    case KILNI_SOFT_SREG_WARPID:
      return run->index;
    case KILNI_SOFT_SREG_SMID:
      return run->worker->number;
    case KILNI_SOFT_SREG_CLOCK:
      return (uint32_t)device_clock(run);
    case KILNI_SOFT_SREG_CLOCK_HI:
      return (uint32_t)(device_clock(run) >> 32);
    case KILNI_SOFT_SREG_GLOBALTIMER_LO:
      return (uint32_t)kilni_base_time_ns();
    default:
      return (uint32_t)(kilni_base_time_ns() >> 32);
  }
}

// `aux`: kilni_soft_sreg_t.
KILNI_SOFT_HANDLER(sreg32) {
  kilni_soft_run_t* run = kilni_soft_run(warp);
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint32_t which = instr->aux;
  if (which <= KILNI_SOFT_SREG_TID_Z) {
    thread_index(run, which, r);
  } else if (which == KILNI_SOFT_SREG_LANEID) {
    KILNI_LANES_EACH(i) {
      r[i] = i;
    }
  } else if (which >= KILNI_SOFT_SREG_LANEMASK_EQ &&
             which <= KILNI_SOFT_SREG_LANEMASK_GT) {
    KILNI_LANES_EACH(i) {
      r[i] = lane_mask(which, i);
    }
  } else {
    uint32_t value = warp_value(run, which);
    KILNI_LANES_EACH(i) {
      r[i] = value;
    }
  }
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r,
                           kilni_soft_exec(warp, instr));
  return instr + 1;
}

KILNI_SOFT_HANDLER(sreg64) {
  uint64_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint64_t value = instr->aux == KILNI_SOFT_SREG_CLOCK64
                       ? device_clock(kilni_soft_run(warp))
                       : kilni_base_time_ns();
  KILNI_LANES_EACH(i) {
    r[i] = value;
  }
  kilni_soft_lanes_store64(KILNI_LANES_AT(uint64_t, instr->d), r,
                           kilni_soft_exec(warp, instr));
  return instr + 1;
}

// `aux`: offset in the function's local memory; `b`: 1 for a generic address.
KILNI_SOFT_HANDLER(local_address) {
  uint64_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint64_t value =
      (uint64_t)kilni_soft_run(warp)->frame->local_base + instr->aux;
  if (instr->b) value += KILNI_SOFT_LOCAL_BASE;
  KILNI_LANES_EACH(i) {
    r[i] = value;
  }
  kilni_soft_lanes_store64(KILNI_LANES_AT(uint64_t, instr->d), r,
                           kilni_soft_exec(warp, instr));
  return instr + 1;
}

static const uint64_t kWindowBase[] = {
    [KILNI_SOFT_SPACE_GENERIC] = 0,
    [KILNI_SOFT_SPACE_GLOBAL] = 0,
    [KILNI_SOFT_SPACE_CONST] = 0,
    [KILNI_SOFT_SPACE_SHARED] = KILNI_SOFT_SHARED_BASE,
    [KILNI_SOFT_SPACE_LOCAL] = KILNI_SOFT_LOCAL_BASE,
    [KILNI_SOFT_SPACE_PARAM] = KILNI_SOFT_PARAM_BASE,
};

#define WIDE(id, TD, TA, prepare, expr)                               \
  KILNI_SOFT_HANDLER(id) {                                            \
    const TA* pa = KILNI_LANES_AT(TA, instr->a);                      \
    prepare;                                                          \
    TD r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                       \
    KILNI_LANES_EACH(i) {                                             \
      TA a = pa[i];                                                   \
      r[i] = (TD)(expr);                                              \
    }                                                                 \
    kilni_soft_lanes_store(KILNI_LANES_AT(TD, instr->d), r,           \
                           kilni_soft_exec(warp, instr), sizeof(TD)); \
    return instr + 1;                                                 \
  }

// `aux`: kilni_soft_space_t; `b`: 1 to leave the window.
WIDE(add_window, uint64_t, uint64_t,
     uint64_t base = instr->b ? 0 - kWindowBase[instr->aux]
                              : kWindowBase[instr->aux],
     a + base)
// `aux`: a signed number of bytes.
WIDE(add_offset, uint64_t, uint64_t,
     uint64_t offset = (uint64_t)(int64_t)(int32_t)instr->aux, a + offset)
WIDE(low_b32, uint32_t, uint64_t, (void)0, a)
WIDE(wide_u32, uint64_t, uint32_t, (void)0, a)
WIDE(wide_s32, uint64_t, int32_t, (void)0, (int64_t)a)

// `aux`: first bit, bits, whether to extend the sign, bits of the register.
#define FIELD_SHIFT(aux)  ((aux) & 31u)
#define FIELD_BITS(aux)   ((aux) >> 8 & 63u)
#define FIELD_SIGNED(aux) ((aux) >> 16 & 1u)
#define FIELD_KEEP(aux)   ((aux) >> 24 & 63u)
KILNI_LANES_INLINE uint32_t low_bits(uint32_t bits) {
  return bits >= 32 ? 0xffffffffu : (1u << bits) - 1u;
}
WIDE(extract, uint32_t, uint32_t, uint32_t shift = FIELD_SHIFT(instr->aux);
     uint32_t mask = low_bits(FIELD_BITS(instr->aux));
     uint32_t keep = low_bits(FIELD_KEEP(instr->aux));
     uint32_t sign = FIELD_SIGNED(instr->aux) ? mask ^ (mask >> 1) : 0,
     ((((a >> shift) & mask) ^ sign) - sign) & keep)

// The low bits of `a` go into a field of `d`.
KILNI_SOFT_HANDLER(insert) {
  const uint32_t* pa = KILNI_LANES_AT(uint32_t, instr->a);
  uint32_t* pd = KILNI_LANES_AT(uint32_t, instr->d);
  uint32_t shift = FIELD_SHIFT(instr->aux);
  uint32_t mask = low_bits(FIELD_BITS(instr->aux)) << shift;
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    r[i] = (pd[i] & ~mask) | ((pa[i] << shift) & mask);
  }
  kilni_soft_lanes_store32(pd, r, kilni_soft_exec(warp, instr));
  return instr + 1;
}

// `aux`: kilni_soft_space_t.
KILNI_SOFT_HANDLER(isspacep) {
  const uint64_t* a = KILNI_LANES_AT(uint64_t, instr->a);
  kilni_soft_run_t* run = kilni_soft_run(warp);
  uint32_t exec = kilni_soft_exec(warp, instr);
  uint32_t yes = 0;
  KILNI_LANES_EACH(i) {
    bool shared = a[i] - KILNI_SOFT_SHARED_BASE < KILNI_SOFT_SHARED_BYTES;
    bool local = a[i] - KILNI_SOFT_LOCAL_BASE < KILNI_SOFT_LOCAL_BYTES;
    bool param = a[i] - KILNI_SOFT_PARAM_BASE < KILNI_SOFT_PARAM_BYTES;
    bool is = false;
    kilni_soft_range_t range;
    switch (instr->aux) {
      case KILNI_SOFT_SPACE_SHARED:
        is = shared;
        break;
      case KILNI_SOFT_SPACE_LOCAL:
        is = local;
        break;
      case KILNI_SOFT_SPACE_PARAM:
        is = param;
        break;
      case KILNI_SOFT_SPACE_CONST:
        is = kilni_soft_memory_find(run->grid->memory, a[i], &range) &&
             !range.writable;
        break;
      default:
        is = !shared && !local && !param;
    }
    if (is) yes |= 1u << i;
  }
  kilni_soft_set_pred(warp, instr->d, exec, yes);
  return instr + 1;
}
