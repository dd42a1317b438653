// SPDX-License-Identifier: Apache-2.0
//
// soft: copies to shared memory, and mbarriers.
//
// An mbarrier is 8 bytes of shared memory, which one worker's warps touch one
// after another. Its number is ours: arrivals still missing in this phase (20
// bits), arrivals of every phase (20), bytes still missing (21, signed), the
// phase's parity. The state that an arrival returns is that number before it.
#include "soft/code/soft_async.h"
#include "soft/code/soft_engine.h"
#include "soft/code/soft_function.h"
#include "soft/engine/soft_grid.h"
#include "soft/engine/soft_warp.h"

#include <string.h>

enum { COUNT_BITS = 20, TX_BITS = 21 };
#define COUNT_MOST ((1u << COUNT_BITS) - 1u)
#define TX_MOST    ((1 << (TX_BITS - 1)) - 1)

// An mbarrier taken apart. one-thread
typedef struct phase_t {
  uint32_t pending;
  uint32_t expected;
  int32_t tx;
  uint32_t parity;
} phase_t;

static phase_t async_unpack(uint64_t word) {
  uint32_t tx = (uint32_t)(word >> (2 * COUNT_BITS)) & ((1u << TX_BITS) - 1u);
  uint32_t sign = 1u << (TX_BITS - 1);
  return (phase_t){(uint32_t)word & COUNT_MOST,
                   (uint32_t)(word >> COUNT_BITS) & COUNT_MOST,
                   (int32_t)(tx ^ sign) - (int32_t)sign,
                   (uint32_t)(word >> (2 * COUNT_BITS + TX_BITS)) & 1u};
}

static uint64_t async_pack(const phase_t* p) {
  uint64_t tx = (uint32_t)p->tx & ((1u << TX_BITS) - 1u);
  return (uint64_t)(p->pending & COUNT_MOST) |
         (uint64_t)(p->expected & COUNT_MOST) << COUNT_BITS |
         tx << (2 * COUNT_BITS) |
         (uint64_t)p->parity << (2 * COUNT_BITS + TX_BITS);
}

static void async_complete(phase_t* p) {
  if (p->pending || p->tx) return;
  p->pending = p->expected;
  p->parity ^= 1u;
}

// False where PTX leaves the operation undefined.
static bool async_arrive(phase_t* p, uint32_t count, bool drops) {
  if (count == 0 || count > p->pending) return false;
  if (drops) {
    if (count > p->expected) return false;
    p->expected -= count;
  }
  p->pending -= count;
  async_complete(p);
  return true;
}

static bool expect(phase_t* p, uint32_t bytes) {
  if (bytes > (uint32_t)TX_MOST || p->tx + (int32_t)bytes > TX_MOST) {
    return false;
  }
  p->tx += (int32_t)bytes;
  return true;
}

// Applies an action that changes the object; false where it cannot.
static bool async_change(uint32_t flags, phase_t* p, uint32_t value) {
  uint32_t action = KILNI_SOFT_MBARRIER_ACTION(flags);
  bool drops = action == KILNI_SOFT_MBARRIER_ARRIVE_DROP;
  switch (action) {
    case KILNI_SOFT_MBARRIER_INIT:
      *p = (phase_t){value, value, 0, 0};
      return value > 0 && value <= COUNT_MOST;
    case KILNI_SOFT_MBARRIER_INVAL:
      *p = (phase_t){0, 0, 0, 0};
      return true;
    case KILNI_SOFT_MBARRIER_EXPECT_TX:
      return expect(p, value);
    case KILNI_SOFT_MBARRIER_COMPLETE_TX:
      if (value > (uint32_t)TX_MOST || p->tx - (int32_t)value < -TX_MOST) {
        return false;
      }
      p->tx -= (int32_t)value;
      async_complete(p);
      return true;
    case KILNI_SOFT_MBARRIER_COPIES:
      return async_arrive(p, 1, false);
    default:
      if (flags & KILNI_SOFT_MBARRIER_WITH_TX) {
        return expect(p, value) && async_arrive(p, 1, drops);
      }
      return async_arrive(p, flags & KILNI_SOFT_MBARRIER_HAS_VALUE ? value : 1,
                          drops);
  }
}

static bool is_test(uint32_t action) {
  return action == KILNI_SOFT_MBARRIER_TEST ||
         action == KILNI_SOFT_MBARRIER_TEST_PARITY;
}

// One lane; false after a fault.
static KILNI_SOFT_RACY bool one_lane(kilni_soft_run_t* run,
                                     const kilni_soft_instr_t* instr,
                                     uint32_t lane) {
  kilni_soft_warp_t* warp = &run->warp;
  uint32_t flags = instr->aux;
  uint32_t action = KILNI_SOFT_MBARRIER_ACTION(flags);
  uint64_t value = 0;
  bool wide = action == KILNI_SOFT_MBARRIER_TEST ||
              action == KILNI_SOFT_MBARRIER_PENDING;
  if (flags & KILNI_SOFT_MBARRIER_HAS_VALUE) {
    const void* slot = kilni_soft_slot(warp, instr->b);
    value =
        wide ? ((const uint64_t*)slot)[lane] : ((const uint32_t*)slot)[lane];
  }
  if (action == KILNI_SOFT_MBARRIER_PENDING) {
    if (flags & KILNI_SOFT_MBARRIER_HAS_RESULT) {
      ((uint32_t*)kilni_soft_slot(warp, instr->d))[lane] =
          async_unpack(value).pending;
    }
    return true;
  }
  uint64_t* object = kilni_soft_access_watched(
      run, instr, lane,
      flags & KILNI_SOFT_MBARRIER_GENERIC ? KILNI_SOFT_SPACE_GENERIC
                                          : KILNI_SOFT_SPACE_SHARED,
      ((const uint64_t*)kilni_soft_slot(warp, instr->a))[lane], 8, true);
  if (!object) return false;
  uint64_t before = *object;
  phase_t p = async_unpack(before);
  if (is_test(action)) {
    uint32_t old = action == KILNI_SOFT_MBARRIER_TEST
                       ? async_unpack(value).parity
                       : (uint32_t)value & 1u;
    if (flags & KILNI_SOFT_MBARRIER_HAS_RESULT) {
      kilni_soft_set_pred(warp, instr->d, 1u << lane,
                          p.parity != old ? UINT32_MAX : 0);
    }
    return true;
  }
  if (!async_change(flags, &p, (uint32_t)value)) {
    kilni_soft_fault_instr(run, instr, KILN_FAULT_CAUSE_MBARRIER, lane);
    return false;
  }
  *object = async_pack(&p);
  if (flags & KILNI_SOFT_MBARRIER_HAS_RESULT) {
    ((uint64_t*)kilni_soft_slot(warp, instr->d))[lane] = before;
  }
  return true;
}

const kilni_soft_instr_t* kilni_soft_mbarrier(kilni_soft_run_t* run,
                                              const kilni_soft_instr_t* instr) {
  uint32_t exec = kilni_soft_exec(&run->warp, instr);
  kilni_soft_spin(run);
  for (uint32_t m = exec; m; m &= m - 1) {
    if (!one_lane(run, instr, (uint32_t)__builtin_ctz(m))) return NULL;
  }
  // A thread that tries yields its turn at the next branch backward.
  if (instr->aux & KILNI_SOFT_MBARRIER_TRY) run->warp.budget = 1;
  return instr + 1;
}

static KILNI_SOFT_RACY void async_copy_bytes(uint8_t* to, const uint8_t* from,
                                             uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++) to[i] = from[i];
}

const kilni_soft_instr_t* kilni_soft_copy_async(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  kilni_soft_warp_t* warp = &run->warp;
  uint32_t bytes = KILNI_SOFT_COPY_BYTES(instr->aux);
  const uint64_t* to = kilni_soft_slot(warp, instr->a);
  const uint64_t* from = kilni_soft_slot(warp, instr->b);
  uint32_t ignore = 0;
  if (instr->aux & KILNI_SOFT_COPY_HAS_IGNORE) {
    ignore = kilni_soft_pred(warp, instr->d);
  }
  for (uint32_t m = kilni_soft_exec(warp, instr); m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    uint32_t size = bytes;
    if (instr->aux & KILNI_SOFT_COPY_HAS_SIZE) {
      size = ((const uint32_t*)kilni_soft_slot(warp, instr->c))[lane];
      if (size > bytes) size = bytes;
    }
    if (ignore >> lane & 1u) size = 0;
    uint8_t* target = kilni_soft_access_watched(
        run, instr, lane, KILNI_SOFT_SPACE_SHARED, to[lane], bytes, true);
    if (!target) return NULL;
    memset(target, 0, bytes);
    if (size == bytes) {
      const uint8_t* source = kilni_soft_access_watched(
          run, instr, lane, KILNI_SOFT_SPACE_GLOBAL, from[lane], bytes, false);
      if (!source) return NULL;
      async_copy_bytes(target, source, bytes);
      continue;
    }
    for (uint32_t i = 0; i < size; i++) {
      const uint8_t* source = kilni_soft_access_watched(
          run, instr, lane, KILNI_SOFT_SPACE_GLOBAL, from[lane] + i, 1, false);
      if (!source) return NULL;
      async_copy_bytes(target + i, source, 1);
    }
  }
  return instr + 1;
}
