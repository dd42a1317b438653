// SPDX-License-Identifier: Apache-2.0
//
// soft: what the handlers of loads and stores share: a warp's addresses, one
// check for all of them, lanes to and from memory.
//
// The addresses of a warp are nearly always all the same, one after another,
// or close together in one allocation: then one check of the whole span is
// enough. Otherwise each lane asks for itself (soft_access.c).
//
// Words: KILNI_SOFT_MEM_* and KILNI_SOFT_ADDRESS_* in soft_function.h.
#ifndef KILN_SRC_SOFT_OPS_SOFT_OPS_MEMORY_H_
#define KILN_SRC_SOFT_OPS_SOFT_OPS_MEMORY_H_

#include "soft/code/soft_function.h"
#include "soft/engine/soft_state.h"
#include "soft/engine/soft_warp.h"
#include "soft/lanes/soft_lanes.h"

typedef struct __attribute__((packed, may_alias)) {
  uint16_t v;
} any16_t;
typedef struct __attribute__((packed, may_alias)) {
  uint32_t v;
} any32_t;
typedef struct __attribute__((packed, may_alias)) {
  uint64_t v;
} any64_t;
typedef uint32_t any128_t
    __attribute__((vector_size(16), may_alias, aligned(1)));
typedef uint64_t anypair_t
    __attribute__((vector_size(16), may_alias, aligned(1)));
typedef uint32_t any_chunk_t
    __attribute__((vector_size(KILNI_LANES_BYTES), may_alias, aligned(1)));

typedef enum shape_t { SHAPE_SAME, SHAPE_NEXT, SHAPE_SPREAD } shape_t;

// The addresses of a warp's access: those of lanes plus one common offset, so
// that a register of addresses is used directly.
typedef struct addresses_t {
  const uint64_t* lane;
  uint64_t offset;
} addresses_t;

// What the addresses of a warp's access have in common.
typedef struct span_t {
  uint64_t lo;
  uint64_t end;    // one past the last byte
  uint8_t* host;   // of `lo`
  uint64_t delta;  // of `addresses_t.lane` to the host's addresses
  shape_t shape;
} span_t;

static const uint64_t kLaneNumber[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

// Whether the addresses of all 32 lanes are `first` plus the lane's number
// times `size`, or all `first`; neither is SHAPE_SPREAD.
KILNI_LANES_INLINE shape_t shape_of_all(const uint64_t* addr, uint64_t size) {
  uint64_t first = addr[0];
#if defined(__AVX512F__)
  __m512i base = _mm512_set1_epi64((long long)first);
  __m512i step = _mm512_set1_epi64((long long)(8 * size));
  __m512i want = _mm512_add_epi64(
      base, _mm512_mullo_epi64(_mm512_load_si512(kLaneNumber),
                               _mm512_set1_epi64((long long)size)));
  __m512i next = _mm512_setzero_si512();
  __m512i same = next;
  for (int i = 0; i < 4; i++) {
    __m512i v = _mm512_load_si512(addr + 8 * i);
    next = _mm512_or_si512(next, _mm512_xor_si512(v, want));
    same = _mm512_or_si512(same, _mm512_xor_si512(v, base));
    want = _mm512_add_epi64(want, step);
  }
  bool is_next = _mm512_test_epi64_mask(next, next) == 0;
  bool is_same = _mm512_test_epi64_mask(same, same) == 0;
#elif defined(__AVX2__)
  long long n = (long long)size;
  __m256i base = _mm256_set1_epi64x((long long)first);
  __m256i step = _mm256_set1_epi64x(4 * n);
  __m256i want = _mm256_add_epi64(base, _mm256_set_epi64x(3 * n, 2 * n, n, 0));
  __m256i next = _mm256_setzero_si256();
  __m256i same = next;
  for (int i = 0; i < 8; i++) {
    __m256i v = _mm256_load_si256((const __m256i*)addr + i);
    next = _mm256_or_si256(next, _mm256_xor_si256(v, want));
    same = _mm256_or_si256(same, _mm256_xor_si256(v, base));
    want = _mm256_add_epi64(want, step);
  }
  bool is_next = _mm256_testz_si256(next, next);
  bool is_same = _mm256_testz_si256(same, same);
#else
  uint64_t next = 0;
  uint64_t same = 0;
  KILNI_LANES_EACH(i) {
    next |= addr[i] ^ (first + kLaneNumber[i] * size);
    same |= addr[i] ^ first;
  }
  bool is_next = next == 0;
  bool is_same = same == 0;
#endif
  return is_next ? SHAPE_NEXT : is_same ? SHAPE_SAME : SHAPE_SPREAD;
}

// The same for the lanes of `exec`, of which the first one is `lane`.
KILNI_LANES_INLINE shape_t shape_of_some(const uint64_t* addr, uint32_t exec,
                                         uint32_t lane, uint64_t size) {
  uint64_t start = addr[lane] - lane * size;
  uint64_t next = 0;
  uint64_t same = 0;
  uint64_t mask = exec;
  KILNI_LANES_EACH(i) {
    uint64_t chosen = mask & kilni_soft_lanes_bit64[i];
    uint64_t n = addr[i] ^ (start + kLaneNumber[i] * size);
    uint64_t s = addr[i] ^ addr[lane];
    next |= chosen ? n : 0;
    same |= chosen ? s : 0;
  }
  return next == 0 ? SHAPE_NEXT : same == 0 ? SHAPE_SAME : SHAPE_SPREAD;
}

// The minimum and the maximum distance of the addresses of `exec` from `first`,
// and the bits of all of them; false where one is too far for 31 bits, so that
// half as many vectors do.
KILNI_LANES_INLINE bool reach_of(const uint64_t* addr, uint32_t exec,
                                 uint64_t first, int64_t* out_lo,
                                 int64_t* out_hi, uint64_t* out_bits) {
  int32_t lo = 0;
  int32_t hi = 0;
  uint32_t bits = 0;
  uint64_t far = 0;
  int32_t near[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint64_t mask = exec;
  KILNI_LANES_EACH(i) {
    uint64_t d = addr[i] - first;
    d = mask & kilni_soft_lanes_bit64[i] ? d : 0;
    far |= (d + 0x40000000u) & ~(uint64_t)0x7fffffffu;
    near[i] = (int32_t)(uint32_t)d;
  }
  if (far) return false;
  KILNI_LANES_EACH(i) {
    lo = near[i] < lo ? near[i] : lo;
    hi = near[i] > hi ? near[i] : hi;
    bits |= (uint32_t)near[i];
  }
  *out_lo = lo;
  *out_hi = hi;
  *out_bits = bits;
  return true;
}

// Checks the addresses of `exec`; false if one is not a multiple of `size`, or
// if they are farther apart than an allocation is likely to be.
KILNI_LANES_INLINE bool ops_memory_look(const addresses_t* addresses,
                                        uint32_t exec, uint32_t size,
                                        span_t* span) {
  const uint64_t* addr = addresses->lane;
  uint32_t lane = (uint32_t)__builtin_ctz(exec);
  uint64_t first = addr[lane] + addresses->offset;
  span->shape = exec == KILNI_SOFT_FULL_MASK
                    ? shape_of_all(addr, size)
                    : shape_of_some(addr, exec, lane, size);
  span->lo = first;
  span->end = first + size;
  if (span->shape == SHAPE_NEXT) {
    uint32_t last = 31u - (uint32_t)__builtin_clz(exec);
    span->end += (uint64_t)(last - lane) * size;
  } else if (span->shape == SHAPE_SPREAD) {
    int64_t lo;
    int64_t hi;
    uint64_t bits;
    if (!reach_of(addr, exec, addr[lane], &lo, &hi, &bits)) return false;
    span->lo += (uint64_t)lo;
    span->end += (uint64_t)hi;
    first |= bits;
  }
  return (first & (size - 1)) == 0;
}

KILNI_LANES_INLINE void ops_memory_place(span_t* span,
                                         const addresses_t* addresses,
                                         uint64_t delta) {
  span->host = (uint8_t*)(uintptr_t)(span->lo + delta);
  span->delta = addresses->offset + delta;
}

KILNI_LANES_INLINE bool find_shared(const kilni_soft_run_t* run,
                                    const addresses_t* addresses, span_t* span,
                                    uint64_t window) {
  uint64_t bytes = run->grid->shared_bytes;
  if (span->lo < window || span->end < span->lo || span->end > window + bytes) {
    return false;
  }
  ops_memory_place(span, addresses,
                   (uint64_t)(uintptr_t)run->block->shared - window);
  return true;
}

// Sets the range of a site again; false if the span is not in one allocation.
static __attribute__((noinline)) bool ops_memory_find_range(
    kilni_soft_run_t* run, kilni_soft_range_t* range, const span_t* span,
    bool is_store) {
  kilni_soft_range_t found;
  if (!kilni_soft_memory_find(run->grid->memory, span->lo, &found)) {
    return false;
  }
  *range = found;
  return span->end > span->lo && span->end <= found.hi &&
         (!is_store || found.writable);
}

// Where the span's bytes are on the host; false: each lane must ask.
KILNI_LANES_INLINE bool ops_memory_find(kilni_soft_run_t* run,
                                        const kilni_soft_instr_t* instr,
                                        uint32_t space, bool is_store,
                                        const addresses_t* addresses,
                                        span_t* span) {
  if (space == KILNI_SOFT_SPACE_SHARED) {
    return find_shared(run, addresses, span, 0);
  }
  kilni_soft_range_t* range =
      &run->worker->ranges[instr->aux % KILNI_SOFT_RANGE_SITES];
  bool inside = span->lo >= range->lo && span->end <= range->hi &&
                span->lo < span->end && (!is_store || range->writable);
  if (__builtin_expect(!inside, 0)) {
    if (space == KILNI_SOFT_SPACE_GENERIC) {
      if (find_shared(run, addresses, span, KILNI_SOFT_SHARED_BASE)) {
        return true;
      }
      if (span->lo - KILNI_SOFT_LOCAL_BASE < KILNI_SOFT_LOCAL_BYTES) {
        return false;
      }
    }
    if (!ops_memory_find_range(run, range, span, is_store)) return false;
  }
  ops_memory_place(span, addresses, (uint64_t)range->delta);
  return true;
}

#define EACH_OF(exec, lane)                                 \
  for (uint32_t left_ = (exec), lane = 0;                   \
       left_ && (lane = (uint32_t)__builtin_ctz(left_), 1); \
       left_ &= left_ - 1)
// The lanes of a store of `bytes` as a GPU lets them go.
#define EACH_STORED(exec, bytes, lane)                                      \
  for (uint32_t turn_ = kilni_soft_store_turn(bytes),                       \
                left_ = kilni_soft_turned(exec, turn_), lane = 0;           \
       left_ && (lane = (31u - (uint32_t)__builtin_clz(left_)) ^ turn_, 1); \
       left_ ^= 1u << (lane ^ turn_))

KILNI_LANES_INLINE uint64_t read_any(const uint8_t* host, uint32_t bytes) {
  if (bytes == 1) return *host;
  if (bytes == 2) return ((const any16_t*)(const void*)host)->v;
  if (bytes == 4) return ((const any32_t*)(const void*)host)->v;
  return ((const any64_t*)(const void*)host)->v;
}

KILNI_LANES_INLINE void write_any(uint8_t* host, uint64_t value,
                                  uint32_t bytes) {
  if (bytes == 1) {
    *host = (uint8_t)value;
  } else if (bytes == 2) {
    ((any16_t*)(void*)host)->v = (uint16_t)value;
  } else if (bytes == 4) {
    ((any32_t*)(void*)host)->v = (uint32_t)value;
  } else {
    ((any64_t*)(void*)host)->v = value;
  }
}

KILNI_LANES_INLINE void put_lane(void* lanes, uint32_t lane, uint64_t value,
                                 uint32_t bytes) {
  if (bytes == 8) {
    ((uint64_t*)lanes)[lane] = value;
  } else {
    ((uint32_t*)lanes)[lane] = (uint32_t)value;
  }
}

KILNI_LANES_INLINE uint64_t get_lane(const void* lanes, uint32_t lane,
                                     uint32_t bytes) {
  return bytes == 8 ? ((const uint64_t*)lanes)[lane]
                    : ((const uint32_t*)lanes)[lane];
}

// One lane's elements, which are contiguous, in one access of all of them: a
// kernel that reads a value and its state by one load sees no half of a store.
// The access of 16 bytes is volatile, since a compiler may split one that is
// only taken apart.
KILNI_LANES_INLINE void ops_memory_read_lane(
    const uint8_t* host, uint32_t bytes, uint32_t count, uint32_t lane,
    uint64_t (*out)[KILNI_SOFT_LANES]) {
  const volatile void* from = host;
  if (bytes == 4 && count == 4) {
    any128_t v = *(const volatile any128_t*)from;
    for (uint32_t k = 0; k < 4; k++) put_lane(out[k], lane, v[k], 4);
    return;
  }
  if (bytes == 8 && count == 2) {
    anypair_t v = *(const volatile anypair_t*)from;
    for (uint32_t k = 0; k < 2; k++) put_lane(out[k], lane, v[k], 8);
    return;
  }
  uint64_t word = read_any(host, bytes * count);
  for (uint32_t k = 0; k < count; k++) {
    uint64_t value = word >> (8 * bytes * k);
    if (bytes == 1) value = (uint8_t)value;
    if (bytes == 2) value = (uint16_t)value;
    put_lane(out[k], lane, value, bytes);
  }
}

KILNI_LANES_INLINE void ops_memory_write_lane(uint8_t* host, uint32_t bytes,
                                              uint32_t count, uint32_t lane,
                                              const void* const* values) {
  volatile void* to = host;
  if (bytes == 4 && count == 4) {
    any128_t v = {(uint32_t)get_lane(values[0], lane, 4),
                  (uint32_t)get_lane(values[1], lane, 4),
                  (uint32_t)get_lane(values[2], lane, 4),
                  (uint32_t)get_lane(values[3], lane, 4)};
    *(volatile any128_t*)to = v;
    return;
  }
  if (bytes == 8 && count == 2) {
    anypair_t v = {get_lane(values[0], lane, 8), get_lane(values[1], lane, 8)};
    *(volatile anypair_t*)to = v;
    return;
  }
  uint64_t word = 0;
  for (uint32_t k = 0; k < count; k++) {
    uint64_t value = get_lane(values[k], lane, bytes);
    if (bytes == 1) value = (uint8_t)value;
    if (bytes == 2) value = (uint16_t)value;
    word |= value << (8 * bytes * k);
  }
  write_any(host, word, bytes * count);
}

KILNI_LANES_INLINE uint8_t* ops_memory_host_of(uint64_t address,
                                               uint64_t delta) {
  return (uint8_t*)(uintptr_t)(address + delta);
}

KILNI_LANES_INLINE void copy_chunks(void* to, const void* from,
                                    uint32_t bytes) {
  any_chunk_t* d = to;
  const any_chunk_t* s = from;
  for (uint32_t i = 0; i < bytes / KILNI_LANES_BYTES; i++) d[i] = s[i];
}

enum { CHUNK = 8 };

// What eight lanes' addresses have in common: rows of a tile make warps whose
// parts are simple where the whole is not.
KILNI_LANES_INLINE shape_t chunk_shape(const uint64_t* addr, uint64_t size) {
#if defined(__AVX2__)
  __m256i base = _mm256_set1_epi64x((long long)addr[0]);
  __m256i a = _mm256_sub_epi64(_mm256_load_si256((const __m256i*)addr), base);
  __m256i b =
      _mm256_sub_epi64(_mm256_load_si256((const __m256i*)addr + 1), base);
  if (_mm256_testz_si256(_mm256_or_si256(a, b), _mm256_or_si256(a, b))) {
    return SHAPE_SAME;
  }
  long long n = (long long)size;
  __m256i low = _mm256_set_epi64x(3 * n, 2 * n, n, 0);
  __m256i high = _mm256_set_epi64x(7 * n, 6 * n, 5 * n, 4 * n);
  a = _mm256_xor_si256(a, low);
  b = _mm256_xor_si256(b, high);
  bool next = _mm256_testz_si256(_mm256_or_si256(a, b), _mm256_or_si256(a, b));
#else
  uint64_t same = 0;
  uint64_t steps = 0;
  for (uint64_t i = 0; i < CHUNK; i++) {
    uint64_t d = addr[i] - addr[0];
    same |= d;
    steps |= d ^ (i * size);
  }
  if (same == 0) return SHAPE_SAME;
  bool next = steps == 0;
#endif
  return next ? SHAPE_NEXT : SHAPE_SPREAD;
}

// How far from its address the bytes are that lane 0 names in local memory, as
// host_of takes it, if the addresses of all of `exec` are their lanes' own;
// false if a lane must be translated. Each lane's memory is separate,
// `local_stride` after the previous one.
KILNI_LANES_INLINE bool find_local(const kilni_soft_run_t* run,
                                   const addresses_t* addresses, uint32_t exec,
                                   uint32_t space, uint32_t size,
                                   uint64_t* out_delta) {
  uint64_t window = 0;
  span_t span;
  if (space == KILNI_SOFT_SPACE_GENERIC) {
    window = KILNI_SOFT_LOCAL_BASE;
  } else if (space != KILNI_SOFT_SPACE_LOCAL) {
    return false;
  }
  if (!ops_memory_look(addresses, exec, size, &span) || span.lo < window ||
      span.end < span.lo || span.end > window + run->local_top) {
    return false;
  }
  *out_delta = (uintptr_t)run->local - window + addresses->offset;
  return true;
}

// Loads `count` values of every lane from its own local memory.
KILNI_LANES_INLINE void load_local(uint64_t delta, uint64_t stride,
                                   const uint64_t* addr, uint32_t exec,
                                   uint32_t bytes, uint32_t count,
                                   uint64_t (*out)[KILNI_SOFT_LANES]) {
  EACH_OF(exec, lane) {
    const uint8_t* from = ops_memory_host_of(addr[lane], delta + lane * stride);
    for (uint32_t k = 0; k < count; k++) {
      put_lane(out[k], lane, read_any(from + k * bytes, bytes), bytes);
    }
  }
}

KILNI_LANES_INLINE void store_local(uint64_t delta, uint64_t stride,
                                    const uint64_t* addr, uint32_t exec,
                                    uint32_t bytes, uint32_t count,
                                    const void* const* values) {
  EACH_OF(exec, lane) {
    uint8_t* to = ops_memory_host_of(addr[lane], delta + lane * stride);
    for (uint32_t k = 0; k < count; k++) {
      write_any(to + k * bytes, get_lane(values[k], lane, bytes), bytes);
    }
  }
}

// Calls `fn` with `bytes` and `count` as constants for those that are common.
#define BY_WIDTH(bytes, count, fn)      \
  do {                                  \
    if ((bytes) == 4 && (count) == 1) { \
      fn(4u, 1u);                       \
    } else if ((bytes) == 4) {          \
      if ((count) == 2) {               \
        fn(4u, 2u);                     \
      } else {                          \
        fn(4u, 4u);                     \
      }                                 \
    } else if ((bytes) == 8) {          \
      if ((count) == 1) {               \
        fn(8u, 1u);                     \
      } else {                          \
        fn(8u, 2u);                     \
      }                                 \
    } else {                            \
      fn(bytes, count);                 \
    }                                   \
  } while (0)

// Local memory, or every lane asks for itself; false after a fault.
static __attribute__((noinline)) KILNI_SOFT_RACY bool ops_memory_load_lanes(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
    const addresses_t* addresses, uint32_t exec, uint32_t space, uint32_t bytes,
    uint32_t count, uint64_t (*out)[KILNI_SOFT_LANES]) {
  const uint64_t* addr = addresses->lane;
  uint64_t own;
  if (find_local(run, addresses, exec, space, bytes * count, &own)) {
    uint64_t stride = run->local_stride;
#define LOAD_LOCAL(b, n) load_local(own, stride, addr, exec, b, n, out)
    BY_WIDTH(bytes, count, LOAD_LOCAL);
#undef LOAD_LOCAL
    return true;
  }
  EACH_OF(exec, lane) {
    const uint8_t* host =
        kilni_soft_access(run, instr, lane, space,
                          addr[lane] + addresses->offset, bytes * count, false);
    if (!host) return false;
    ops_memory_read_lane(host, bytes, count, lane, out);
  }
  return true;
}

// CUDA leaves unspecified whose value stays where several lanes store to one
// address; without a seed it is as on a GPU (kilni_soft_store_turn). A seed
// chooses the lanes that go before the others, of those that would go last.
KILNI_LANES_INLINE uint32_t come_first(kilni_soft_run_t* run, uint32_t exec,
                                       uint32_t bytes) {
  if (__builtin_expect(run->worker->random == 0, 1)) return exec;
  uint32_t lasts = ~(UINT32_MAX << (kilni_soft_random(run->worker) & 31u));
  uint32_t first =
      exec & kilni_soft_turned(lasts, kilni_soft_store_turn(bytes));
  return first ? first : exec;
}

// The lanes that come first, then the others.
#define EACH_PART(exec, first, part)                             \
  for (uint32_t part = (first), rest_ = (exec) & ~(first); part; \
       part = rest_, rest_ = 0)

static __attribute__((noinline)) KILNI_SOFT_RACY bool ops_memory_store_lanes(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
    const addresses_t* addresses, uint32_t exec, uint32_t space, uint32_t bytes,
    uint32_t count, const void* const* values) {
  const uint64_t* addr = addresses->lane;
  uint64_t own;
  if (find_local(run, addresses, exec, space, bytes * count, &own)) {
    uint64_t stride = run->local_stride;
#define STORE_LOCAL(b, n) store_local(own, stride, addr, exec, b, n, values)
    BY_WIDTH(bytes, count, STORE_LOCAL);
#undef STORE_LOCAL
    return true;
  }
  uint8_t* hosts[KILNI_SOFT_LANES];
  EACH_OF(exec, lane) {
    hosts[lane] =
        kilni_soft_access(run, instr, lane, space,
                          addr[lane] + addresses->offset, bytes * count, true);
    if (!hosts[lane]) return false;
  }
  uint32_t first = come_first(run, exec, bytes * count);
  EACH_PART(exec, first, part) {
    EACH_STORED(part, bytes * count, lane) {
      ops_memory_write_lane(hosts[lane], bytes, count, lane, values);
    }
  }
  return true;
}

#endif  // KILN_SRC_SOFT_OPS_SOFT_OPS_MEMORY_H_
