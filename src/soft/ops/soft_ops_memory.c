// SPDX-License-Identifier: Apache-2.0
//
// soft: plain loads and stores. Compiled once for each lane set.
//
// The addresses of a warp are nearly always all the same, one after another,
// or close together in one allocation: then one check of the whole span is
// enough. Otherwise each lane asks for itself (soft_access.c).
//
// Words: KILNI_SOFT_MEM_* in soft_function.h.
#include "soft/lanes/soft_lanes.h"
#include "soft/engine/soft_state.h"

typedef struct __attribute__((packed, may_alias)) {
  uint16_t v;
} any16_t;
typedef struct __attribute__((packed, may_alias)) {
  uint32_t v;
} any32_t;
typedef struct __attribute__((packed, may_alias)) {
  uint64_t v;
} any64_t;
typedef uint32_t any_chunk_t
    __attribute__((vector_size(KILNI_LANES_BYTES), may_alias, aligned(1)));

typedef enum shape_t { SHAPE_SAME, SHAPE_NEXT, SHAPE_SPREAD } shape_t;

// What the addresses of a warp's access have in common.
typedef struct span_t {
  uint64_t lo;
  uint64_t end;  // one behind the last byte
  int64_t delta;
  shape_t shape;
} span_t;

static const uint64_t lane_number[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

// Addresses of accesses of several registers.
KILNI_LANES_INLINE void addresses(const kilni_soft_warp_t* warp,
                                  const kilni_soft_instr_t* instr,
                                  uint64_t* out) {
  uint64_t offset = (uint64_t)(int64_t)(int32_t)instr->b;
  if (instr->c & KILNI_SOFT_MEM_BASE32) {
    const uint32_t* base = KILNI_LANES_AT(uint32_t, instr->a);
    KILNI_LANES_EACH(i) {
      out[i] = base[i] + offset;
    }
  } else {
    const uint64_t* base = KILNI_LANES_AT(uint64_t, instr->a);
    KILNI_LANES_EACH(i) {
      out[i] = base[i] + offset;
    }
  }
}

// Addresses of accesses of one register that are not a 64-bit register's.
static __attribute__((noinline)) void made_addresses(
    const kilni_soft_warp_t* warp, const kilni_soft_instr_t* instr,
    uint64_t* restrict out) {
  uint64_t offset = (uint64_t)(int64_t)(int32_t)instr->b;
  uint32_t shift = KILNI_SOFT_ADDRESS_SHIFT(instr->c);
  uint32_t kind = KILNI_SOFT_ADDRESS_KIND(instr->c);
  const uint64_t* base = KILNI_LANES_AT(const uint64_t, instr->a);
  if (kind == KILNI_SOFT_ADDRESS_32) {
    const uint32_t* narrow = KILNI_LANES_AT(const uint32_t, instr->a);
    KILNI_LANES_EACH(i) {
      out[i] = narrow[i] + offset;
    }
  } else if (kind == KILNI_SOFT_ADDRESS_SUM) {
    const uint64_t* index = KILNI_LANES_AT(const uint64_t, instr->c);
    KILNI_LANES_EACH(i) {
      out[i] = base[i] + index[i] + offset;
    }
  } else if (kind == KILNI_SOFT_ADDRESS_S32) {
    const int32_t* index = KILNI_LANES_AT(const int32_t, instr->c);
    KILNI_LANES_EACH(i) {
      out[i] = base[i] + ((uint64_t)(int64_t)index[i] << shift) + offset;
    }
  } else {
    const uint32_t* index = KILNI_LANES_AT(const uint32_t, instr->c);
    KILNI_LANES_EACH(i) {
      out[i] = base[i] + ((uint64_t)index[i] << shift) + offset;
    }
  }
}

// Addresses of accesses of one register.
KILNI_LANES_INLINE void address_each(const kilni_soft_warp_t* warp,
                                     const kilni_soft_instr_t* instr,
                                     uint64_t* out) {
  if (KILNI_SOFT_ADDRESS_KIND(instr->c) != KILNI_SOFT_ADDRESS_64) {
    made_addresses(warp, instr, out);
    return;
  }
  uint64_t offset = (uint64_t)(int64_t)(int32_t)instr->b;
  const uint64_t* base = KILNI_LANES_AT(const uint64_t, instr->a);
  KILNI_LANES_EACH(i) {
    out[i] = base[i] + offset;
  }
}

#if defined(__AVX512F__)
KILNI_LANES_INLINE uint32_t equal_lanes(const uint64_t* addr, __m512i first,
                                        __m512i step) {
  uint32_t mask = 0;
  __m512i want = first;
  for (int i = 0; i < 4; i++) {
    __m512i v = _mm512_load_si512(addr + 8 * i);
    mask |= (uint32_t)_mm512_cmpeq_epi64_mask(v, want) << (8 * i);
    want = _mm512_add_epi64(want, step);
  }
  return mask;
}
#endif

// Whether every lane of `exec` lies at `first` plus its number times `size`.
KILNI_LANES_INLINE bool in_steps(const uint64_t* addr, uint32_t exec,
                                 uint64_t first, uint64_t size) {
#if defined(__AVX512F__)
  __m512i start = _mm512_set1_epi64((long long)first);
  __m512i number = _mm512_load_si512(lane_number);
  start = _mm512_add_epi64(
      start, _mm512_mullo_epi64(number, _mm512_set1_epi64((long long)size)));
  __m512i step = _mm512_set1_epi64((long long)(8 * size));
  return (exec & ~equal_lanes(addr, start, step)) == 0;
#else
  uint64_t differ = 0;
  if (exec == KILNI_SOFT_FULL_MASK) {
    KILNI_LANES_EACH(i) {
      differ |= addr[i] ^ (first + lane_number[i] * size);
    }
  } else {
    uint64_t mask = exec;
    KILNI_LANES_EACH(i) {
      uint64_t d = addr[i] ^ (first + lane_number[i] * size);
      differ |= mask & kilni_lanes_bit64[i] ? d : 0;
    }
  }
  return differ == 0;
#endif
}

KILNI_LANES_INLINE bool same_address(const uint64_t* addr, uint32_t exec,
                                     uint64_t first) {
  return in_steps(addr, exec, first, 0);
}

// Looks at the addresses of `exec`; false if one is no multiple of `align`.
KILNI_LANES_INLINE bool look(const uint64_t* addr, uint32_t exec, uint32_t size,
                             span_t* span) {
  uint32_t lane = (uint32_t)__builtin_ctz(exec);
  uint64_t first = addr[lane];
  uint64_t start = first - (uint64_t)lane * size;
  if (in_steps(addr, exec, start, size)) {
    uint32_t last = 31u - (uint32_t)__builtin_clz(exec);
    span->shape = SHAPE_NEXT;
    span->lo = first;
    span->end = start + ((uint64_t)last + 1) * size;
    return (first & (size - 1)) == 0;
  }
  if (same_address(addr, exec, first)) {
    span->shape = SHAPE_SAME;
    span->lo = first;
    span->end = first + size;
    return (first & (size - 1)) == 0;
  }
  int64_t lo = 0;
  int64_t hi = 0;
  uint64_t all = 0;
  uint64_t mask = exec;
  KILNI_LANES_EACH(i) {
    int64_t d = (int64_t)(addr[i] - first);
    d = mask & kilni_lanes_bit64[i] ? d : 0;
    lo = d < lo ? d : lo;
    hi = d > hi ? d : hi;
    all |= (uint64_t)d;
  }
  span->shape = SHAPE_SPREAD;
  span->lo = first + (uint64_t)lo;
  span->end = first + (uint64_t)hi + size;
  return ((all | first) & (size - 1)) == 0;
}

KILNI_LANES_INLINE bool find_shared(const kilni_soft_run_t* run, span_t* span,
                                    uint64_t window) {
  uint64_t bytes = run->grid->shared_bytes;
  if (span->lo < window || span->end < span->lo || span->end > window + bytes) {
    return false;
  }
  span->delta = (int64_t)((uint64_t)(uintptr_t)run->block->shared - window);
  return true;
}

// The range of a site anew; false if the span is not in one allocation.
static __attribute__((noinline)) bool find_range(kilni_soft_run_t* run,
                                                 kilni_soft_range_t* range,
                                                 const span_t* span,
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
KILNI_LANES_INLINE bool find(kilni_soft_run_t* run,
                             const kilni_soft_instr_t* instr, uint32_t space,
                             bool is_store, span_t* span) {
  if (space == KILNI_SOFT_SPACE_SHARED) return find_shared(run, span, 0);
  kilni_soft_range_t* range =
      &run->worker->ranges[instr->aux % KILNI_SOFT_RANGE_SITES];
  bool inside = span->lo >= range->lo && span->end <= range->hi &&
                span->lo < span->end && (!is_store || range->writable);
  if (__builtin_expect(!inside, 0)) {
    if (space == KILNI_SOFT_SPACE_GENERIC &&
        find_shared(run, span, KILNI_SOFT_SHARED_BASE)) {
      return true;
    }
    if (!find_range(run, range, span, is_store)) return false;
  }
  span->delta = range->delta;
  return true;
}

#define EACH_OF(exec, lane)                                 \
  for (uint32_t left_ = (exec), lane = 0;                   \
       left_ && (lane = (uint32_t)__builtin_ctz(left_), 1); \
       left_ &= left_ - 1)

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

KILNI_LANES_INLINE const uint8_t* host_of(uint64_t address, int64_t delta) {
  return (const uint8_t*)(uintptr_t)(address + (uint64_t)delta);
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

// Loads eight lanes of 4 bytes, all of which execute.
KILNI_LANES_INLINE void gather_chunk(const uint64_t* addr, int64_t delta,
                                     uint32_t* out) {
  shape_t shape = chunk_shape(addr, 4);
  if (shape == SHAPE_NEXT) {
    const any32_t* from = (const any32_t*)(const void*)host_of(addr[0], delta);
    for (int i = 0; i < CHUNK; i++) out[i] = from[i].v;
  } else if (shape == SHAPE_SAME) {
    uint32_t value = (uint32_t)read_any(host_of(addr[0], delta), 4);
    for (int i = 0; i < CHUNK; i++) out[i] = value;
  } else {
    for (int i = 0; i < CHUNK; i++) {
      out[i] = (uint32_t)read_any(host_of(addr[i], delta), 4);
    }
  }
}

// Loads spread addresses into `out`.
KILNI_LANES_INLINE void gather(const uint64_t* addr, uint32_t exec,
                               int64_t delta, uint32_t bytes, void* out) {
#if defined(__AVX512F__)
  if (bytes == 4) {
    for (int i = 0; i < 4; i++) {
      __m256i zero = _mm256_setzero_si256();
      __m512i at = _mm512_add_epi64(_mm512_load_si512(addr + 8 * i),
                                    _mm512_set1_epi64((long long)delta));
      __m256i v = _mm512_mask_i64gather_epi32(zero, (__mmask8)(exec >> (8 * i)),
                                              at, NULL, 1);
      _mm256_store_si256((__m256i*)out + i, v);
    }
    return;
  }
  if (bytes == 8) {
    for (int i = 0; i < 4; i++) {
      __m512i at = _mm512_add_epi64(_mm512_load_si512(addr + 8 * i),
                                    _mm512_set1_epi64((long long)delta));
      __m512i v = _mm512_mask_i64gather_epi64(
          _mm512_setzero_si512(), (__mmask8)(exec >> (8 * i)), at, NULL, 1);
      _mm512_store_si512((uint64_t*)out + 8 * i, v);
    }
    return;
  }
#else
  if (bytes == 4 && exec == KILNI_SOFT_FULL_MASK) {
    for (int i = 0; i < KILNI_SOFT_LANES; i += CHUNK) {
      gather_chunk(addr + i, delta, (uint32_t*)out + i);
    }
    return;
  }
#endif
  EACH_OF(exec, lane) {
    put_lane(out, lane, read_any(host_of(addr[lane], delta), bytes), bytes);
  }
}

// Loads `count` values of 4 bytes for every lane.
KILNI_LANES_INLINE void gather_words(const uint64_t* addr, int64_t delta,
                                     uint32_t count,
                                     uint64_t (*out)[KILNI_SOFT_LANES]) {
  for (uint32_t i = 0; i < KILNI_SOFT_LANES; i += CHUNK) {
    bool same = chunk_shape(addr + i, 4) == SHAPE_SAME;
    for (uint32_t k = 0; k < count; k++) {
      uint32_t* to = (uint32_t*)(void*)out[k] + i;
      if (same) {
        uint32_t value = (uint32_t)read_any(host_of(addr[i], delta) + 4 * k, 4);
        for (int j = 0; j < CHUNK; j++) to[j] = value;
        continue;
      }
      for (int j = 0; j < CHUNK; j++) {
        to[j] = (uint32_t)read_any(
            host_of(addr[i + (uint32_t)j], delta) + 4 * k, 4);
      }
    }
  }
}

// Every lane asks for itself; false after a fault.
static __attribute__((noinline)) KILNI_SOFT_RACY bool load_lanes(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
    const uint64_t* addr, uint32_t exec, uint32_t space, uint32_t bytes,
    uint32_t count, uint64_t (*out)[KILNI_SOFT_LANES]) {
  EACH_OF(exec, lane) {
    const uint8_t* host = kilni_soft_access(run, instr, lane, space, addr[lane],
                                            bytes * count, false);
    if (!host) return false;
    for (uint32_t k = 0; k < count; k++) {
      put_lane(out[k], lane, read_any(host + k * bytes, bytes), bytes);
    }
  }
  return true;
}

static __attribute__((noinline)) KILNI_SOFT_RACY bool store_lanes(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
    const uint64_t* addr, uint32_t exec, uint32_t space, uint32_t bytes,
    uint32_t count, const void* const* values) {
  EACH_OF(exec, lane) {
    uint8_t* host = kilni_soft_access(run, instr, lane, space, addr[lane],
                                      bytes * count, true);
    if (!host) return false;
    for (uint32_t k = 0; k < count; k++) {
      write_any(host + k * bytes, get_lane(values[k], lane, bytes), bytes);
    }
  }
  return true;
}

KILNI_LANES_INLINE const kilni_soft_instr_t* load(
    kilni_soft_warp_t* warp, const kilni_soft_instr_t* instr, uint32_t space,
    uint32_t bytes) {
  uint32_t exec = kilni_soft_exec(warp, instr);
  if (__builtin_expect(exec == 0, 0)) return instr + 1;
  kilni_soft_run_t* run = kilni_soft_run(warp);
  uint64_t addr[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint64_t out[1][KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  span_t span;
  address_each(warp, instr, addr);
  void* d = kilni_soft_slot(warp, instr->d);
  uint32_t lane_bytes = bytes == 8 ? 8 : 4;
  if (!look(addr, exec, bytes, &span) ||
      !find(run, instr, space, false, &span)) {
    if (!load_lanes(run, instr, addr, exec, space, bytes, 1, out)) return NULL;
    kilni_lanes_store(d, out, exec, lane_bytes);
    return instr + 1;
  }
  if (span.shape == SHAPE_NEXT && bytes >= 4 && exec == KILNI_SOFT_FULL_MASK) {
    copy_chunks(d, host_of(span.lo, span.delta), 32 * bytes);
    return instr + 1;
  }
  if (span.shape == SHAPE_SAME) {
    uint64_t value = read_any(host_of(span.lo, span.delta), bytes);
    KILNI_LANES_EACH(i) {
      put_lane(out, i, value, bytes);
    }
  } else {
    gather(addr, exec, span.delta, bytes, out);
  }
  kilni_lanes_store(d, out, exec, lane_bytes);
  return instr + 1;
}

KILNI_LANES_INLINE void scatter(const uint64_t* addr, uint32_t exec,
                                int64_t delta, uint32_t bytes,
                                const void* values) {
  EACH_OF(exec, lane) {
    write_any((uint8_t*)(uintptr_t)(addr[lane] + (uint64_t)delta),
              get_lane(values, lane, bytes), bytes);
  }
}

KILNI_LANES_INLINE const kilni_soft_instr_t* store(
    kilni_soft_warp_t* warp, const kilni_soft_instr_t* instr, uint32_t space,
    uint32_t bytes) {
  uint32_t exec = kilni_soft_exec(warp, instr);
  if (__builtin_expect(exec == 0, 0)) return instr + 1;
  kilni_soft_run_t* run = kilni_soft_run(warp);
  uint64_t addr[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  span_t span;
  address_each(warp, instr, addr);
  const void* values = kilni_soft_slot(warp, instr->d);
  if (!look(addr, exec, bytes, &span) ||
      !find(run, instr, space, true, &span)) {
    if (!store_lanes(run, instr, addr, exec, space, bytes, 1, &values)) {
      return NULL;
    }
    return instr + 1;
  }
  if (span.shape == SHAPE_NEXT && bytes >= 4 && exec == KILNI_SOFT_FULL_MASK) {
    copy_chunks((void*)(uintptr_t)(span.lo + (uint64_t)span.delta), values,
                32 * bytes);
    return instr + 1;
  }
  scatter(addr, exec, span.delta, bytes, values);
  return instr + 1;
}

KILNI_LANES_INLINE void words_of(const kilni_soft_warp_t* warp,
                                 const kilni_soft_instr_t* instr,
                                 void* words[4]) {
  words[0] = kilni_soft_slot(warp, instr->d);
  words[1] = kilni_soft_slot(warp, instr->a);
  words[2] = kilni_soft_slot(warp, instr->b);
  words[3] = kilni_soft_slot(warp, instr->c);
}

// Several registers of a lane side by side in memory, or local memory.
static KILNI_SOFT_RACY const kilni_soft_instr_t* load_vector(
    kilni_soft_warp_t* warp, const kilni_soft_instr_t* instr, uint32_t space) {
  uint32_t exec = kilni_soft_exec(warp, instr);
  if (exec == 0) return instr + 2;
  kilni_soft_run_t* run = kilni_soft_run(warp);
  uint32_t bytes = KILNI_SOFT_MEM_BYTES(instr->c);
  uint32_t count = KILNI_SOFT_MEM_COUNT(instr->c);
  uint64_t addr[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint64_t out[4][KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  span_t span;
  void* d[4];
  addresses(warp, instr, addr);
  words_of(warp, instr + 1, d);
  if (space == KILNI_SOFT_SPACE_LOCAL || space == KILNI_SOFT_SPACE_PARAM ||
      !look(addr, exec, bytes * count, &span) ||
      !find(run, instr, space, false, &span)) {
    if (!load_lanes(run, instr, addr, exec, space, bytes, count, out)) {
      return NULL;
    }
  } else if (bytes == 4 && exec == KILNI_SOFT_FULL_MASK) {
    gather_words(addr, span.delta, count, out);
  } else {
    EACH_OF(exec, lane) {
      const uint8_t* host = host_of(addr[lane], span.delta);
      for (uint32_t k = 0; k < count; k++) {
        put_lane(out[k], lane, read_any(host + k * bytes, bytes), bytes);
      }
    }
  }
  for (uint32_t k = 0; k < count; k++) {
    kilni_lanes_store(d[k], out[k], exec, bytes == 8 ? 8 : 4);
  }
  return instr + 2;
}

static KILNI_SOFT_RACY const kilni_soft_instr_t* store_vector(
    kilni_soft_warp_t* warp, const kilni_soft_instr_t* instr, uint32_t space) {
  uint32_t exec = kilni_soft_exec(warp, instr);
  if (exec == 0) return instr + 2;
  kilni_soft_run_t* run = kilni_soft_run(warp);
  uint32_t bytes = KILNI_SOFT_MEM_BYTES(instr->c);
  uint32_t count = KILNI_SOFT_MEM_COUNT(instr->c);
  uint64_t addr[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  span_t span;
  void* words[4];
  addresses(warp, instr, addr);
  words_of(warp, instr + 1, words);
  const void* values[4] = {words[0], words[1], words[2], words[3]};
  if (space == KILNI_SOFT_SPACE_LOCAL || space == KILNI_SOFT_SPACE_PARAM ||
      !look(addr, exec, bytes * count, &span) ||
      !find(run, instr, space, true, &span)) {
    if (!store_lanes(run, instr, addr, exec, space, bytes, count, values)) {
      return NULL;
    }
    return instr + 2;
  }
  EACH_OF(exec, lane) {
    uint8_t* host = (uint8_t*)(uintptr_t)(addr[lane] + (uint64_t)span.delta);
    for (uint32_t k = 0; k < count; k++) {
      write_any(host + k * bytes, get_lane(values[k], lane, bytes), bytes);
    }
  }
  return instr + 2;
}

#define SCALAR(name, space, bits)                                  \
  KILNI_SOFT_RACY KILNI_SOFT_HANDLER(ld_##name##_##bits) {         \
    return load(warp, instr, KILNI_SOFT_SPACE_##space, bits / 8);  \
  }                                                                \
  KILNI_SOFT_RACY KILNI_SOFT_HANDLER(st_##name##_##bits) {         \
    return store(warp, instr, KILNI_SOFT_SPACE_##space, bits / 8); \
  }
#define SPACE(name, space)                                      \
  SCALAR(name, space, 8)                                        \
  SCALAR(name, space, 16)                                       \
  SCALAR(name, space, 32)                                       \
  SCALAR(name, space, 64)                                       \
  KILNI_SOFT_HANDLER(ld_##name##_v) {                           \
    return load_vector(warp, instr, KILNI_SOFT_SPACE_##space);  \
  }                                                             \
  KILNI_SOFT_HANDLER(st_##name##_v) {                           \
    return store_vector(warp, instr, KILNI_SOFT_SPACE_##space); \
  }

SPACE(global, GLOBAL)
SPACE(generic, GENERIC)
SPACE(shared, SHARED)

KILNI_SOFT_HANDLER(ld_private) {
  return load_vector(warp, instr, KILNI_SOFT_MEM_SPACE(instr->c));
}

KILNI_SOFT_HANDLER(st_private) {
  return store_vector(warp, instr, KILNI_SOFT_MEM_SPACE(instr->c));
}

KILNI_SOFT_HANDLER(words) {
  (void)warp;
  return instr + 1;  // belongs to the instruction before, and is not run
}
