// SPDX-License-Identifier: Apache-2.0
//
// soft: plain loads and stores of several registers side by side, and those of
// local memory and of kernel parameters. Compiled once for each lane set.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "soft/code/soft_function.h"
#include "soft/engine/soft_warp.h"
#include "soft/ops/soft_ops_memory.h"

// Addresses of accesses of several registers.
KILNI_LANES_INLINE addresses_t vector_addresses(const kilni_soft_warp_t* warp,
                                                const kilni_soft_instr_t* instr,
                                                uint64_t* space) {
  uint64_t offset = (uint64_t)(int64_t)(int32_t)instr->b;
  if (instr->c & KILNI_SOFT_MEM_BASE32) {
    const uint32_t* base = KILNI_LANES_AT(uint32_t, instr->a);
    if (instr->c & KILNI_SOFT_MEM_NEAR) {
      KILNI_LANES_EACH(i) {
        space[i] = base[i] + instr->b;
      }
      return (addresses_t){space, 0};
    }
    KILNI_LANES_EACH(i) {
      space[i] = base[i];
    }
    return (addresses_t){space, offset};
  }
  return (addresses_t){KILNI_LANES_AT(const uint64_t, instr->a), offset};
}

#if defined(__SSE2__)
// Where the 16 bytes of lane `i` are; without addresses one lane's after the
// other's, from `delta` on.
KILNI_LANES_INLINE uint8_t* place16(const uint64_t* addr, uint64_t delta,
                                    uint32_t i) {
  return ops_memory_host_of(addr ? addr[i] : 16ull * i, delta);
}

KILNI_LANES_INLINE __m128i ops_vector_row_of(const uint64_t* addr,
                                             uint64_t delta, uint32_t i) {
  return _mm_loadu_si128((const void*)place16(addr, delta, i));
}

KILNI_LANES_INLINE void put_row(const uint64_t* addr, uint64_t delta,
                                uint32_t i, __m128i row) {
  _mm_storeu_si128((void*)place16(addr, delta, i), row);
}
#endif

#if defined(__AVX2__)
KILNI_LANES_INLINE __m256i two_rows(__m128i low, __m128i high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

KILNI_LANES_INLINE void put8(void* slot, uint32_t i, __m256i v) {
  _mm256_store_si256((__m256i*)slot + i, v);
}

// Four words of eight lanes: rows of 16 bytes become columns, or back.
typedef struct quad_t {
  __m256i v[4];
} quad_t;

KILNI_LANES_INLINE quad_t turn_quad(quad_t q) {
  __m256i a = _mm256_unpacklo_epi32(q.v[0], q.v[1]);
  __m256i b = _mm256_unpackhi_epi32(q.v[0], q.v[1]);
  __m256i c = _mm256_unpacklo_epi32(q.v[2], q.v[3]);
  __m256i d = _mm256_unpackhi_epi32(q.v[2], q.v[3]);
  return (quad_t){{_mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c),
                   _mm256_unpacklo_epi64(b, d), _mm256_unpackhi_epi64(b, d)}};
}

// Loads four words of each of 32 lanes, a lane's in one move.
KILNI_LANES_INLINE void gather_quads(const uint64_t* addr, uint64_t delta,
                                     uint64_t (*out)[KILNI_SOFT_LANES]) {
  for (uint32_t i = 0; i < KILNI_SOFT_LANES; i += CHUNK) {
    quad_t q;
    for (uint32_t k = 0; k < 4; k++) {
      q.v[k] = two_rows(ops_vector_row_of(addr, delta, i + k),
                        ops_vector_row_of(addr, delta, i + k + 4));
    }
    q = turn_quad(q);
    for (uint32_t k = 0; k < 4; k++) put8(out[k], i / CHUNK, q.v[k]);
  }
}

// The reverse, in the order of EACH_STORED: eight lanes after eight, each from
// the highest lane down.
KILNI_LANES_INLINE void scatter_quads(const uint64_t* addr, uint64_t delta,
                                      const void* const* values) {
  for (uint32_t end = KILNI_SOFT_LANES; end; end -= CHUNK) {
    uint32_t i = (end - CHUNK) ^ kilni_soft_store_turn(16);
    quad_t q;
    for (uint32_t k = 0; k < 4; k++) {
      q.v[k] = _mm256_load_si256((const __m256i*)values[k] + i / CHUNK);
    }
    q = turn_quad(q);
    for (uint32_t k = 4; k--;) {
      put_row(addr, delta, i + k + 4, _mm256_extracti128_si256(q.v[k], 1));
    }
    for (uint32_t k = 4; k--;) {
      put_row(addr, delta, i + k, _mm256_castsi256_si128(q.v[k]));
    }
  }
}

// Two words of 8 bytes of each lane.
KILNI_LANES_INLINE void gather_wide(const uint64_t* addr, uint64_t delta,
                                    uint64_t (*out)[KILNI_SOFT_LANES]) {
  for (uint32_t i = 0; i < KILNI_SOFT_LANES; i += 4) {
    __m256i a = two_rows(ops_vector_row_of(addr, delta, i),
                         ops_vector_row_of(addr, delta, i + 2));
    __m256i b = two_rows(ops_vector_row_of(addr, delta, i + 1),
                         ops_vector_row_of(addr, delta, i + 3));
    put8(out[0], i / 4, _mm256_unpacklo_epi64(a, b));
    put8(out[1], i / 4, _mm256_unpackhi_epi64(a, b));
  }
}

KILNI_LANES_INLINE void scatter_wide(const uint64_t* addr, uint64_t delta,
                                     const void* const* values) {
  for (uint32_t end = KILNI_SOFT_LANES; end; end -= 4) {
    uint32_t i = (end - 4) ^ kilni_soft_store_turn(16);
    __m256i low = _mm256_load_si256((const __m256i*)values[0] + i / 4);
    __m256i high = _mm256_load_si256((const __m256i*)values[1] + i / 4);
    __m256i a = _mm256_unpacklo_epi64(low, high);
    __m256i b = _mm256_unpackhi_epi64(low, high);
    put_row(addr, delta, i + 3, _mm256_extracti128_si256(b, 1));
    put_row(addr, delta, i + 2, _mm256_extracti128_si256(a, 1));
    put_row(addr, delta, i + 1, _mm256_castsi256_si128(b));
    put_row(addr, delta, i, _mm256_castsi256_si128(a));
  }
}
#elif defined(__SSE2__)
// Four words of four lanes: rows of 16 bytes become columns, or back.
typedef struct quad_t {
  __m128i v[4];
} quad_t;

KILNI_LANES_INLINE quad_t turn_quad(quad_t q) {
  __m128i a = _mm_unpacklo_epi32(q.v[0], q.v[1]);
  __m128i b = _mm_unpackhi_epi32(q.v[0], q.v[1]);
  __m128i c = _mm_unpacklo_epi32(q.v[2], q.v[3]);
  __m128i d = _mm_unpackhi_epi32(q.v[2], q.v[3]);
  return (quad_t){{_mm_unpacklo_epi64(a, c), _mm_unpackhi_epi64(a, c),
                   _mm_unpacklo_epi64(b, d), _mm_unpackhi_epi64(b, d)}};
}

// The same as with AVX2, four lanes at a time.
KILNI_LANES_INLINE void gather_quads(const uint64_t* addr, uint64_t delta,
                                     uint64_t (*out)[KILNI_SOFT_LANES]) {
  for (uint32_t i = 0; i < KILNI_SOFT_LANES; i += 4) {
    quad_t q;
    for (uint32_t k = 0; k < 4; k++)
      q.v[k] = ops_vector_row_of(addr, delta, i + k);
    q = turn_quad(q);
    for (uint32_t k = 0; k < 4; k++) {
      _mm_store_si128((__m128i*)out[k] + i / 4, q.v[k]);
    }
  }
}

KILNI_LANES_INLINE void scatter_quads(const uint64_t* addr, uint64_t delta,
                                      const void* const* values) {
  for (uint32_t end = KILNI_SOFT_LANES; end; end -= 4) {
    uint32_t i = (end - 4) ^ kilni_soft_store_turn(16);
    quad_t q;
    for (uint32_t k = 0; k < 4; k++) {
      q.v[k] = _mm_load_si128((const __m128i*)values[k] + i / 4);
    }
    q = turn_quad(q);
    for (uint32_t k = 4; k--;) put_row(addr, delta, i + k, q.v[k]);
  }
}

KILNI_LANES_INLINE void gather_wide(const uint64_t* addr, uint64_t delta,
                                    uint64_t (*out)[KILNI_SOFT_LANES]) {
  for (uint32_t i = 0; i < KILNI_SOFT_LANES; i += 2) {
    __m128i a = ops_vector_row_of(addr, delta, i);
    __m128i b = ops_vector_row_of(addr, delta, i + 1);
    _mm_store_si128((__m128i*)out[0] + i / 2, _mm_unpacklo_epi64(a, b));
    _mm_store_si128((__m128i*)out[1] + i / 2, _mm_unpackhi_epi64(a, b));
  }
}

KILNI_LANES_INLINE void scatter_wide(const uint64_t* addr, uint64_t delta,
                                     const void* const* values) {
  for (uint32_t end = KILNI_SOFT_LANES; end; end -= 2) {
    uint32_t i = (end - 2) ^ kilni_soft_store_turn(16);
    __m128i low = _mm_load_si128((const __m128i*)values[0] + i / 2);
    __m128i high = _mm_load_si128((const __m128i*)values[1] + i / 2);
    put_row(addr, delta, i + 1, _mm_unpackhi_epi64(low, high));
    put_row(addr, delta, i, _mm_unpacklo_epi64(low, high));
  }
}
#endif

// Loads words of every lane, wherever they are; false where there is no path
// for so many of that size.
KILNI_LANES_INLINE bool gather_words(const uint64_t* addr, uint64_t delta,
                                     uint32_t bytes, uint32_t count,
                                     uint64_t (*out)[KILNI_SOFT_LANES]) {
#if defined(__SSE2__)
  if (bytes == 4 && count == 4) {
    gather_quads(addr, delta, out);
    return true;
  }
  if (bytes == 8 && count == 2) {
    gather_wide(addr, delta, out);
    return true;
  }
#endif
  if (bytes != 4 || count != 2) return false;
  for (uint32_t i = 0; i < KILNI_SOFT_LANES; i++) {
    ops_memory_read_lane(ops_memory_host_of(addr[i], delta), 4, 2, i, out);
  }
  return true;
}

// Contiguous pairs of words into registers, and back: 8 bytes of a lane at
// once.
KILNI_LANES_INLINE void unzip_pairs(const void* host,
                                    uint64_t (*out)[KILNI_SOFT_LANES]) {
  const any64_t* from = host;
  uint32_t* low = __builtin_assume_aligned((void*)out[0], 64);
  uint32_t* high = __builtin_assume_aligned((void*)out[1], 64);
  KILNI_LANES_EACH(i) {
    uint64_t v = from[i].v;
    low[i] = (uint32_t)v;
    high[i] = (uint32_t)(v >> 32);
  }
}

KILNI_LANES_INLINE void zip_pairs(void* host, const void* const* values) {
  any64_t* to = host;
  const uint32_t* low = __builtin_assume_aligned(values[0], 64);
  const uint32_t* high = __builtin_assume_aligned(values[1], 64);
  KILNI_LANES_EACH(i) {
    to[i].v = (uint64_t)high[i] << 32 | low[i];
  }
}

// Everything is contiguous and every lane executes; false where that has no
// path of its own.
KILNI_LANES_INLINE bool load_rows(void* host, uint32_t bytes, uint32_t count,
                                  uint64_t (*out)[KILNI_SOFT_LANES]) {
  if (bytes == 4 && count == 2) {
    unzip_pairs(host, out);
    return true;
  }
#if defined(__SSE2__)
  if (bytes * count == 16 && bytes >= 4) {
    uint64_t at = (uint64_t)(uintptr_t)host;
    if (bytes == 4) gather_quads(NULL, at, out);
    if (bytes == 8) gather_wide(NULL, at, out);
    return true;
  }
#endif
  return false;
}

KILNI_LANES_INLINE bool store_rows(void* host, uint32_t bytes, uint32_t count,
                                   const void* const* values) {
  if (bytes == 4 && count == 2) {
    zip_pairs(host, values);
    return true;
  }
#if defined(__SSE2__)
  if (bytes * count == 16 && bytes >= 4) {
    uint64_t at = (uint64_t)(uintptr_t)host;
    if (bytes == 4) scatter_quads(NULL, at, values);
    if (bytes == 8) scatter_wide(NULL, at, values);
    return true;
  }
#endif
  return false;
}

KILNI_LANES_INLINE void ops_vector_words_of(const kilni_soft_warp_t* warp,
                                            const kilni_soft_instr_t* instr,
                                            void* words[4]) {
  words[0] = kilni_soft_slot(warp, instr->d);
  words[1] = kilni_soft_slot(warp, instr->a);
  words[2] = kilni_soft_slot(warp, instr->b);
  words[3] = kilni_soft_slot(warp, instr->c);
}

// The words at one address, for every lane.
KILNI_LANES_INLINE void load_same(const uint8_t* host, uint32_t bytes,
                                  uint32_t count,
                                  uint64_t (*out)[KILNI_SOFT_LANES]) {
  ops_memory_read_lane(host, bytes, count, 0, out);
  for (uint32_t k = 0; k < count; k++) {
    uint64_t value = get_lane(out[k], 0, bytes);
    KILNI_LANES_EACH(i) {
      put_lane(out[k], i, value, bytes);
    }
  }
}

// Loads what `span` covers, which is contiguous.
KILNI_LANES_INLINE void load_span(const uint64_t* addr, uint32_t exec,
                                  const span_t* span, uint32_t bytes,
                                  uint32_t count,
                                  uint64_t (*out)[KILNI_SOFT_LANES]) {
  if (span->shape == SHAPE_SAME) {
#define LOAD_ONE(b, n) load_same(span->host, b, n, out)
    BY_WIDTH(bytes, count, LOAD_ONE);
#undef LOAD_ONE
    return;
  }
  if (exec == KILNI_SOFT_FULL_MASK) {
    if (span->shape == SHAPE_NEXT && load_rows(span->host, bytes, count, out)) {
      return;
    }
    if (gather_words(addr, span->delta, bytes, count, out)) return;
  }
#define LOAD_EACH(b, n)                                                     \
  EACH_OF(exec, lane) {                                                     \
    ops_memory_read_lane(ops_memory_host_of(addr[lane], span->delta), b, n, \
                         lane, out);                                        \
  }
  BY_WIDTH(bytes, count, LOAD_EACH);
#undef LOAD_EACH
}

static KILNI_SOFT_RACY const kilni_soft_instr_t* load_vector(
    kilni_soft_warp_t* warp, const kilni_soft_instr_t* instr, uint32_t space) {
  uint32_t exec = kilni_soft_exec(warp, instr);
  if (exec == 0) return instr + 2;
  kilni_soft_run_t* run = kilni_soft_run(warp);
  uint32_t bytes = KILNI_SOFT_MEM_BYTES(instr->c);
  uint32_t count = KILNI_SOFT_MEM_COUNT(instr->c);
  uint64_t made[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint64_t out[4][KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  span_t span;
  void* d[4];
  addresses_t addresses = vector_addresses(warp, instr, made);
  ops_vector_words_of(warp, instr + 1, d);
  if (space == KILNI_SOFT_SPACE_LOCAL || space == KILNI_SOFT_SPACE_PARAM ||
      !ops_memory_look(&addresses, exec, bytes * count, &span) ||
      !ops_memory_find(run, instr, space, false, &addresses, &span)) {
    if (!ops_memory_load_lanes(run, instr, &addresses, exec, space, bytes,
                               count, out)) {
      return NULL;
    }
  } else {
    load_span(addresses.lane, exec, &span, bytes, count, out);
  }
  for (uint32_t k = 0; k < count; k++) {
    kilni_soft_lanes_store(d[k], out[k], exec, bytes == 8 ? 8 : 4);
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
  uint64_t made[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  span_t span;
  void* words[4];
  addresses_t addresses = vector_addresses(warp, instr, made);
  ops_vector_words_of(warp, instr + 1, words);
  const void* values[4] = {words[0], words[1], words[2], words[3]};
  if (space == KILNI_SOFT_SPACE_LOCAL || space == KILNI_SOFT_SPACE_PARAM ||
      !ops_memory_look(&addresses, exec, bytes * count, &span) ||
      !ops_memory_find(run, instr, space, true, &addresses, &span)) {
    if (!ops_memory_store_lanes(run, instr, &addresses, exec, space, bytes,
                                count, values)) {
      return NULL;
    }
    return instr + 2;
  }
  if (span.shape == SHAPE_NEXT && exec == KILNI_SOFT_FULL_MASK &&
      store_rows(span.host, bytes, count, values)) {
    return instr + 2;
  }
  uint32_t first = come_first(run, exec, bytes * count);
#if defined(__SSE2__)
  if (first == KILNI_SOFT_FULL_MASK && bytes * count == 16 && bytes >= 4) {
    if (bytes == 4) scatter_quads(addresses.lane, span.delta, values);
    if (bytes == 8) scatter_wide(addresses.lane, span.delta, values);
    return instr + 2;
  }
#endif
#define STORE_EACH(b, n)                                                  \
  EACH_STORED(part, (b) * (n), lane) {                                    \
    ops_memory_write_lane(                                                \
        ops_memory_host_of(addresses.lane[lane], span.delta), b, n, lane, \
        values);                                                          \
  }
  EACH_PART(exec, first, part) {
    BY_WIDTH(bytes, count, STORE_EACH);
  }
#undef STORE_EACH
  return instr + 2;
}

#define SPACE(name, space)                                      \
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
