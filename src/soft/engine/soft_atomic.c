// SPDX-License-Identifier: Apache-2.0
//
// soft: atomics, volatile and ordered accesses, lane after lane: C11 atomics of
// the width of the access on the host address. That of a vector is the width of
// all its elements: others see all of it or nothing (soft_wide.h).
#include <string.h>

#include "soft/engine/soft_state.h"
#include "soft/memory/soft_wide.h"

static uint64_t load_atomic(void* host, uint32_t bytes, memory_order order) {
  switch (bytes) {
    case 1:
      return atomic_load_explicit((_Atomic uint8_t*)host, order);
    case 2:
      return atomic_load_explicit((_Atomic uint16_t*)host, order);
    case 4:
      return atomic_load_explicit((_Atomic uint32_t*)host, order);
    default:
      return atomic_load_explicit((_Atomic uint64_t*)host, order);
  }
}

static void store_atomic(void* host, uint64_t value, uint32_t bytes,
                         memory_order order) {
  switch (bytes) {
    case 1:
      atomic_store_explicit((_Atomic uint8_t*)host, (uint8_t)value, order);
      return;
    case 2:
      atomic_store_explicit((_Atomic uint16_t*)host, (uint16_t)value, order);
      return;
    case 4:
      atomic_store_explicit((_Atomic uint32_t*)host, (uint32_t)value, order);
      return;
    default:
      atomic_store_explicit((_Atomic uint64_t*)host, value, order);
  }
}

// If the value at `host` is `*inout_old`, `value` goes there; otherwise
// `*inout_old` becomes what is there.
static bool swap_atomic(void* host, uint64_t* inout_old, uint64_t value,
                        uint32_t bytes) {
  if (bytes == 2) {
    uint16_t old = (uint16_t)*inout_old;
    bool done = atomic_compare_exchange_strong((_Atomic uint16_t*)host, &old,
                                               (uint16_t)value);
    *inout_old = old;
    return done;
  }
  if (bytes == 4) {
    uint32_t old = (uint32_t)*inout_old;
    bool done = atomic_compare_exchange_strong((_Atomic uint32_t*)host, &old,
                                               (uint32_t)value);
    *inout_old = old;
    return done;
  }
  return atomic_compare_exchange_strong((_Atomic uint64_t*)host, inout_old,
                                        value);
}

// What is around an access of 16 bytes, which is ordered by itself only as
// relaxed. For the thread sanitizer see kilni_soft_fence.
static void order_around(kilni_soft_grid_t* grid, memory_order order) {
  if (order == memory_order_relaxed) return;
#if defined(KILNI_SOFT_TSAN)
  atomic_exchange(&grid->fence_word, 1u);
#else
  (void)grid;
  atomic_thread_fence(memory_order_acq_rel);
#endif
}

// Up to 16 bytes: the words of `value` are the lower and the upper 8.
static void load_whole(kilni_soft_grid_t* grid, void* host, uint32_t bytes,
                       memory_order order, uint64_t value[2]) {
  if (bytes < 16) {
    value[0] = load_atomic(host, bytes, order);
    return;
  }
  kilni_soft_wide_load(grid->wide_locks, host, value);
  order_around(grid, order);
}

static void store_whole(kilni_soft_grid_t* grid, void* host,
                        const uint64_t value[2], uint32_t bytes,
                        memory_order order) {
  if (bytes < 16) {
    store_atomic(host, value[0], bytes, order);
    return;
  }
  order_around(grid, order);
  kilni_soft_wide_store(grid->wide_locks, host, value);
}

static uint64_t lane_value(const kilni_soft_warp_t* warp, uint32_t word,
                           uint32_t lane, uint32_t bytes) {
  const void* slot = kilni_soft_slot(warp, word);
  return bytes == 8 ? ((const uint64_t*)slot)[lane]
                    : ((const uint32_t*)slot)[lane];
}

static void set_lane(const kilni_soft_warp_t* warp, uint32_t word,
                     uint32_t lane, uint32_t bytes, uint64_t value) {
  void* slot = kilni_soft_slot(warp, word);
  if (bytes == 8) {
    ((uint64_t*)slot)[lane] = value;
  } else {
    ((uint32_t*)slot)[lane] = (uint32_t)value;
  }
}

// Where a lane's access goes; NULL after reporting a fault. An atomic of a
// vector is one of each element: the first is aligned to the whole of it.
static void* lane_host(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                       uint32_t lane, bool is_store) {
  uint32_t space = KILNI_SOFT_MEM_SPACE(instr->aux);
  uint32_t bytes = KILNI_SOFT_MEM_BYTES(instr->aux);
  uint32_t whole = KILNI_SOFT_MEM_COUNT(instr->aux) * bytes;
  uint64_t address = lane_value(&run->warp, instr->a, lane, 8);
  if (whole > bytes && (address & (whole - 1))) {
    kilni_soft_fault_access(run, instr, KILNI_SOFT_FAULT_MISALIGNED, lane,
                            space, address, whole, is_store);
    return NULL;
  }
  if (instr->op != KILNI_SOFT_OP_atom) bytes = whole;
  return kilni_soft_access(run, instr, lane, space, address, bytes, is_store);
}

static memory_order host_order(uint32_t order) {
  switch (order) {
    case KILNI_SOFT_ORDER_ACQUIRE:
      return memory_order_acquire;
    case KILNI_SOFT_ORDER_RELEASE:
      return memory_order_release;
    case KILNI_SOFT_ORDER_SC:
      return memory_order_seq_cst;
    default:
      return memory_order_relaxed;
  }
}

// The next of the lanes in `*inout_left`: in ascending order, or in one that
// the seed chooses, since CUDA leaves it open.
static uint32_t next_lane(kilni_soft_run_t* run, uint32_t* inout_left) {
  uint32_t left = *inout_left;
  uint32_t lane = (uint32_t)__builtin_ctz(left);
  if (run->worker->random) {
    uint32_t turn = kilni_soft_random(run->worker) & 31u;
    uint32_t turned = left >> turn | left << (31u & (0u - turn));
    lane = ((uint32_t)__builtin_ctz(turned) + turn) & 31u;
  }
  *inout_left = left & ~(1u << lane);
  return lane;
}

// The slots of the elements: of one in the instruction itself, of several in
// the following word instruction.
static void element_words(const kilni_soft_instr_t* instr, bool is_store,
                          uint32_t words[4]) {
  const kilni_soft_instr_t* behind = instr + 1;
  if (KILNI_SOFT_MEM_COUNT(instr->aux) == 1) {
    words[0] = is_store ? instr->b : instr->d;
    return;
  }
  words[0] = behind->d;
  words[1] = behind->a;
  words[2] = behind->b;
  words[3] = behind->c;
}

// The elements of a lane, side by side, and back.
static void atomic_gather(const kilni_soft_warp_t* warp, const uint32_t* words,
                          uint32_t count, uint32_t bytes, uint32_t lane,
                          uint64_t value[2]) {
  uint32_t bits = 8 * bytes;
  uint64_t mask = bytes == 8 ? UINT64_MAX : (1ull << bits) - 1;
  value[0] = value[1] = 0;
  for (uint32_t k = 0; k < count; k++) {
    uint64_t element = lane_value(warp, words[k], lane, bytes) & mask;
    value[k * bits / 64 & 1u] |= element << (k * bits % 64);
  }
}

static void atomic_scatter(const kilni_soft_warp_t* warp, const uint32_t* words,
                           uint32_t count, uint32_t bytes, uint32_t lane,
                           const uint64_t value[2]) {
  uint32_t bits = 8 * bytes;
  uint64_t mask = bytes == 8 ? UINT64_MAX : (1ull << bits) - 1;
  for (uint32_t k = 0; k < count; k++) {
    set_lane(warp, words[k], lane, bytes,
             value[k * bits / 64 & 1u] >> (k * bits % 64) & mask);
  }
}

// The next lane of a store of `bytes`, as on a GPU or as the seed chooses.
static uint32_t next_store(kilni_soft_run_t* run, uint32_t* inout_left,
                           uint32_t bytes) {
  if (run->worker->random) return next_lane(run, inout_left);
  uint32_t turn = kilni_soft_store_turn(bytes);
  uint32_t left = kilni_soft_turned(*inout_left, turn);
  uint32_t lane = (31u - (uint32_t)__builtin_clz(left)) ^ turn;
  *inout_left &= ~(1u << lane);
  return lane;
}

static const kilni_soft_instr_t* access_sync(kilni_soft_run_t* run,
                                             const kilni_soft_instr_t* instr,
                                             bool is_store) {
  kilni_soft_warp_t* warp = &run->warp;
  uint32_t exec = kilni_soft_exec(warp, instr);
  uint32_t bytes = KILNI_SOFT_MEM_BYTES(instr->aux);
  uint32_t count = KILNI_SOFT_MEM_COUNT(instr->aux);
  memory_order order = host_order(KILNI_SOFT_MEM_ORDER(instr->aux));
  uint32_t words[4] = {0, 0, 0, 0};
  void* host[KILNI_SOFT_LANES];
  kilni_soft_spin(run);
  element_words(instr, is_store, words);
  // The first lane with a wrong address is reported.
  for (uint32_t m = exec; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    host[lane] = lane_host(run, instr, lane, is_store);
    if (!host[lane]) return NULL;
  }
  for (uint32_t m = exec; m;) {
    uint64_t value[2];
    uint32_t lane =
        is_store ? next_store(run, &m, count * bytes) : next_lane(run, &m);
    if (is_store) {
      atomic_gather(warp, words, count, bytes, lane, value);
      store_whole(run->grid, host[lane], value, count * bytes, order);
    } else {
      load_whole(run->grid, host[lane], count * bytes, order, value);
      atomic_scatter(warp, words, count, bytes, lane, value);
    }
  }
  return instr + (count > 1 ? 2 : 1);
}

const kilni_soft_instr_t* kilni_soft_load_sync(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  return access_sync(run, instr, false);
}

const kilni_soft_instr_t* kilni_soft_store_sync(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  return access_sync(run, instr, true);
}

static uint32_t flushed(uint32_t x) {
  return x & 0x7f800000u ? x : x & 0x80000000u;
}

#define QUIET64 0x0008000000000000u

static bool is_nan64(uint64_t x) {
  return (x & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

// The units beside global memory add otherwise than the cores, which add in
// shared memory: f32 is flushed, and a NaN goes through an f64 sum with all its
// bits, the later one first. In shared memory it becomes quiet, the earlier one
// first; which one a host's addition takes is its compiler's choice.
static uint64_t add_float(uint64_t old, uint64_t value, uint32_t bytes,
                          bool flushes) {
  if (bytes == 4) {
    uint32_t x = flushes ? flushed((uint32_t)old) : (uint32_t)old;
    uint32_t y = flushes ? flushed((uint32_t)value) : (uint32_t)value;
    float a;
    float b;
    memcpy(&a, &x, 4);
    memcpy(&b, &y, 4);
    a += b;
    memcpy(&x, &a, 4);
    if (a != a) x = 0x7fffffffu;
    return flushes ? flushed(x) : x;
  }
  if (flushes && is_nan64(value)) return value;
  if (flushes && is_nan64(old)) return old;
  if (is_nan64(old)) return old | QUIET64;
  if (is_nan64(value)) return value | QUIET64;
  double a;
  double b;
  memcpy(&a, &old, 8);
  memcpy(&b, &value, 8);
  a += b;
  memcpy(&old, &a, 8);
  return old;
}

// f16 and bf16, one or two of them, through f64 and with one rounding.
static uint64_t combine_half(uint32_t flags, uint64_t old, uint64_t b) {
  uint32_t number = KILNI_SOFT_MEM_NUMBER(flags);
  bool bf16 =
      number == KILNI_SOFT_NUMBER_BF16 || number == KILNI_SOFT_NUMBER_BF16X2;
  uint32_t action = KILNI_SOFT_MEM_ACTION(flags);
  uint64_t result = 0;
  for (uint32_t at = 0; at < KILNI_SOFT_MEM_BYTES(flags) * 8; at += 16) {
    uint16_t x = (uint16_t)(old >> at);
    uint16_t y = (uint16_t)(b >> at);
    result |= (uint64_t)kilni_soft_half_combine(bf16, action, x, y) << at;
  }
  return result;
}

static bool is_less(uint64_t a, uint64_t b, uint32_t bytes, bool is_signed) {
  if (!is_signed) return a < b;
  if (bytes == 4) return (int32_t)(uint32_t)a < (int32_t)(uint32_t)b;
  return (int64_t)a < (int64_t)b;
}

// What an atomic leaves in memory.
static uint64_t combine(uint32_t flags, uint64_t old, uint64_t b,
                        bool flushes) {
  uint32_t bytes = KILNI_SOFT_MEM_BYTES(flags);
  uint32_t number = KILNI_SOFT_MEM_NUMBER(flags);
  if (number >= KILNI_SOFT_NUMBER_F16) return combine_half(flags, old, b);
  bool less = is_less(old, b, bytes, number == KILNI_SOFT_NUMBER_SIGNED);
  switch (KILNI_SOFT_MEM_ACTION(flags)) {
    case KILNI_SOFT_ACTION_ADD:
      return number == KILNI_SOFT_NUMBER_FLOAT
                 ? add_float(old, b, bytes, flushes)
                 : old + b;
    case KILNI_SOFT_ACTION_MIN:
      return less ? old : b;
    case KILNI_SOFT_ACTION_MAX:
      return less ? b : old;
    case KILNI_SOFT_ACTION_INC:
      return old >= b ? 0 : old + 1;
    case KILNI_SOFT_ACTION_DEC:
      return old == 0 || old > b ? b : old - 1;
    case KILNI_SOFT_ACTION_AND:
      return old & b;
    case KILNI_SOFT_ACTION_OR:
      return old | b;
    case KILNI_SOFT_ACTION_XOR:
      return old ^ b;
    default:
      return b;
  }
}

static uint64_t atomic_act(void* host, uint32_t flags, uint64_t b, uint64_t c,
                           bool flushes) {
  uint32_t bytes = KILNI_SOFT_MEM_BYTES(flags);
  if (KILNI_SOFT_MEM_ACTION(flags) == KILNI_SOFT_ACTION_CAS) {
    uint64_t old = b;
    swap_atomic(host, &old, c, bytes);
    return old;
  }
  uint64_t old = load_atomic(host, bytes, memory_order_relaxed);
  while (!swap_atomic(host, &old, combine(flags, old, b, flushes), bytes)) {
  }
  return old;
}

static bool atomic_is_shared(const kilni_soft_run_t* run, const void* host) {
  const uint8_t* at = host;
  const uint8_t* shared = run->block->shared;
  return at >= shared && at < shared + run->grid->shared_bytes;
}

// Words: as of atom, of the lower halves; in a word instruction the result's
// and the values' upper halves.
const kilni_soft_instr_t* kilni_soft_atomic_128(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  kilni_soft_warp_t* warp = &run->warp;
  const kilni_soft_instr_t* upper = instr + 1;
  bool cas = KILNI_SOFT_MEM_ACTION(instr->aux) == KILNI_SOFT_ACTION_CAS;
  kilni_soft_spin(run);
  for (uint32_t m = kilni_soft_exec(warp, instr); m;) {
    uint32_t lane = next_lane(run, &m);
    uint64_t* host =
        kilni_soft_access(run, instr, lane, KILNI_SOFT_MEM_SPACE(instr->aux),
                          lane_value(warp, instr->a, lane, 8), 16, true);
    if (!host) return NULL;
    uint64_t b[2] = {lane_value(warp, instr->b, lane, 8),
                     lane_value(warp, upper->b, lane, 8)};
    uint64_t value[2] = {b[0], b[1]};
    uint64_t old[2] = {b[0], b[1]};
    if (cas) {
      value[0] = lane_value(warp, instr->c, lane, 8);
      value[1] = lane_value(warp, upper->c, lane, 8);
      kilni_soft_wide_swap(run->grid->wide_locks, host, old, value);
    } else {
      while (!kilni_soft_wide_swap(run->grid->wide_locks, host, old, value)) {
      }
    }
    set_lane(warp, instr->d, lane, 8, old[0]);
    set_lane(warp, upper->d, lane, 8, old[1]);
  }
  return instr + 2;
}

const kilni_soft_instr_t* kilni_soft_atomic(kilni_soft_run_t* run,
                                            const kilni_soft_instr_t* instr) {
  kilni_soft_warp_t* warp = &run->warp;
  uint32_t bytes = KILNI_SOFT_MEM_BYTES(instr->aux);
  bool cas = KILNI_SOFT_MEM_ACTION(instr->aux) == KILNI_SOFT_ACTION_CAS;
  uint64_t mask = bytes == 8 ? UINT64_MAX : (1ull << (8 * bytes)) - 1;
  kilni_soft_spin(run);
  for (uint32_t m = kilni_soft_exec(warp, instr); m;) {
    uint32_t lane = next_lane(run, &m);
    void* host = lane_host(run, instr, lane, true);
    if (!host) return NULL;
    uint64_t b = lane_value(warp, instr->b, lane, bytes) & mask;
    uint64_t c = cas ? lane_value(warp, instr->c, lane, bytes) & mask : 0;
    uint64_t old =
        atomic_act(host, instr->aux, b, c, !atomic_is_shared(run, host));
    if (!(instr->aux & KILNI_SOFT_MEM_NO_RESULT)) {
      set_lane(warp, instr->d, lane, bytes, old);
    }
  }
  return instr + 1;
}

// The thread sanitizer does not understand fences: in its builds one word
// orders everything.
void kilni_soft_fence(kilni_soft_grid_t* grid) {
#if defined(KILNI_SOFT_TSAN)
  atomic_exchange(&grid->fence_word, 1u);
#else
  (void)grid;
  atomic_thread_fence(memory_order_seq_cst);
#endif
}
