// SPDX-License-Identifier: Apache-2.0
//
// soft: plain loads and stores of several registers side by side, and those of
// local memory and of kernel parameters. Compiled once for each lane set.
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

#if defined(__AVX2__)
KILNI_LANES_INLINE __m128i row_of(const uint64_t* addr, uint64_t delta) {
  return _mm_loadu_si128((const void*)host_of(*addr, delta));
}

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

// Loads four words of each of 32 lanes, wherever they are.
KILNI_LANES_INLINE void gather_quads(const uint64_t* addr, uint64_t delta,
                                     uint64_t (*out)[KILNI_SOFT_LANES]) {
  for (uint32_t i = 0; i < KILNI_SOFT_LANES; i += CHUNK) {
    const uint64_t* at = addr + i;
    quad_t q;
    for (uint32_t k = 0; k < 4; k++) {
      q.v[k] = two_rows(row_of(at + k, delta), row_of(at + k + 4, delta));
    }
    q = turn_quad(q);
    for (uint32_t k = 0; k < 4; k++) put8(out[k], i / CHUNK, q.v[k]);
  }
}

// The same the other way, lane after lane: of those that store to one place
// the last one's words stay.
KILNI_LANES_INLINE void scatter_quads(const uint64_t* addr, uint64_t delta,
                                      const void* const* values) {
  for (uint32_t i = 0; i < KILNI_SOFT_LANES; i += CHUNK) {
    quad_t q;
    for (uint32_t k = 0; k < 4; k++) {
      q.v[k] = _mm256_load_si256((const __m256i*)values[k] + i / CHUNK);
    }
    q = turn_quad(q);
    for (uint32_t k = 0; k < CHUNK; k++) {
      void* to = (void*)(uintptr_t)(addr[i + k] + delta);
      __m128i row = k < 4 ? _mm256_castsi256_si128(q.v[k])
                          : _mm256_extracti128_si256(q.v[k - 4], 1);
      _mm_storeu_si128(to, row);
    }
  }
}

// Two words of 8 bytes of each lane.
KILNI_LANES_INLINE void gather_wide(const uint64_t* addr, uint64_t delta,
                                    uint64_t (*out)[KILNI_SOFT_LANES]) {
  for (uint32_t i = 0; i < KILNI_SOFT_LANES; i += 4) {
    const uint64_t* at = addr + i;
    __m256i a = two_rows(row_of(at, delta), row_of(at + 2, delta));
    __m256i b = two_rows(row_of(at + 1, delta), row_of(at + 3, delta));
    put8(out[0], i / 4, _mm256_unpacklo_epi64(a, b));
    put8(out[1], i / 4, _mm256_unpackhi_epi64(a, b));
  }
}
#endif

// Loads words of every lane, wherever they are; false where there is no path
// for so many of that size.
KILNI_LANES_INLINE bool gather_words(const uint64_t* addr, uint64_t delta,
                                     uint32_t bytes, uint32_t count,
                                     uint64_t (*out)[KILNI_SOFT_LANES]) {
#if defined(__AVX2__)
  if (bytes == 4 && count == 4) {
    gather_quads(addr, delta, out);
    return true;
  }
  if (bytes == 8 && count == 2) {
    gather_wide(addr, delta, out);
    return true;
  }
#endif
  if (bytes != 4) return false;
  for (uint32_t i = 0; i < KILNI_SOFT_LANES; i++) {
    for (uint32_t k = 0; k < count; k++) {
      ((uint32_t*)(void*)out[k])[i] =
          (uint32_t)read_any(host_of(addr[i], delta) + 4 * k, 4);
    }
  }
  return true;
}

// Words of the lanes of a warp that lie one after another, `count` of a lane,
// into registers.
#define UNZIP(type, any)                                             \
  KILNI_LANES_INLINE void unzip_##type(const void* host, uint32_t n, \
                                       uint64_t(*out)[32]) {         \
    const any* from = host;                                          \
    for (uint32_t k = 0; k < n; k++) {                               \
      void* slot = out[k];                                           \
      type* to = __builtin_assume_aligned(slot, 64);                 \
      KILNI_LANES_EACH(i) {                                          \
        to[i] = from[i * n + k].v;                                   \
      }                                                              \
    }                                                                \
  }
UNZIP(uint32_t, any32_t)
UNZIP(uint64_t, any64_t)

// The same the other way.
#define ZIP(type, any)                                            \
  KILNI_LANES_INLINE void zip_##type(void* host, uint32_t n,      \
                                     const void* const* values) { \
    any* to = host;                                               \
    const type* v[4];                                             \
    for (uint32_t k = 0; k < 4; k++) {                            \
      v[k] = __builtin_assume_aligned(values[k < n ? k : 0], 64); \
    }                                                             \
    for (uint32_t i = 0; i < (uint32_t)KILNI_SOFT_LANES; i++) {   \
      for (uint32_t k = 0; k < n; k++) to[i * n + k].v = v[k][i]; \
    }                                                             \
  }
ZIP(uint32_t, any32_t)
ZIP(uint64_t, any64_t)

// Everything lies one after another and every lane executes; false where that
// has no path of its own.
KILNI_LANES_INLINE bool load_rows(const void* host, uint32_t bytes,
                                  uint32_t count,
                                  uint64_t (*out)[KILNI_SOFT_LANES]) {
  if (bytes == 4 && count == 4) {
    unzip_uint32_t(host, 4, out);
  } else if (bytes == 4 && count == 2) {
    unzip_uint32_t(host, 2, out);
  } else if (bytes == 8 && count == 2) {
    unzip_uint64_t(host, 2, out);
  } else {
    return false;
  }
  return true;
}

KILNI_LANES_INLINE bool store_rows(void* host, uint32_t bytes, uint32_t count,
                                   const void* const* values) {
  if (bytes == 4 && count == 4) {
    zip_uint32_t(host, 4, values);
  } else if (bytes == 4 && count == 2) {
    zip_uint32_t(host, 2, values);
  } else if (bytes == 8 && count == 2) {
    zip_uint64_t(host, 2, values);
  } else {
    return false;
  }
  return true;
}

KILNI_LANES_INLINE void words_of(const kilni_soft_warp_t* warp,
                                 const kilni_soft_instr_t* instr,
                                 void* words[4]) {
  words[0] = kilni_soft_slot(warp, instr->d);
  words[1] = kilni_soft_slot(warp, instr->a);
  words[2] = kilni_soft_slot(warp, instr->b);
  words[3] = kilni_soft_slot(warp, instr->c);
}

// Loads what `span` says, which is all in one place.
KILNI_LANES_INLINE void load_span(const uint64_t* addr, uint32_t exec,
                                  const span_t* span, uint32_t bytes,
                                  uint32_t count,
                                  uint64_t (*out)[KILNI_SOFT_LANES]) {
  if (span->shape == SHAPE_SAME) {
    const uint8_t* host = span->host;
    for (uint32_t k = 0; k < count; k++) {
      uint64_t value = read_any(host + k * bytes, bytes);
      KILNI_LANES_EACH(i) {
        put_lane(out[k], i, value, bytes);
      }
    }
    return;
  }
  if (exec == KILNI_SOFT_FULL_MASK) {
    if (span->shape == SHAPE_NEXT && load_rows(span->host, bytes, count, out)) {
      return;
    }
    if (gather_words(addr, span->delta, bytes, count, out)) return;
  }
  EACH_OF(exec, lane) {
    const uint8_t* host = host_of(addr[lane], span->delta);
    for (uint32_t k = 0; k < count; k++) {
      put_lane(out[k], lane, read_any(host + k * bytes, bytes), bytes);
    }
  }
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
  words_of(warp, instr + 1, d);
  if (space == KILNI_SOFT_SPACE_LOCAL || space == KILNI_SOFT_SPACE_PARAM ||
      !look(&addresses, exec, bytes * count, &span) ||
      !find(run, instr, space, false, &addresses, &span)) {
    if (!load_lanes(run, instr, &addresses, exec, space, bytes, count, out)) {
      return NULL;
    }
  } else {
    load_span(addresses.lane, exec, &span, bytes, count, out);
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
  uint64_t made[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  span_t span;
  void* words[4];
  addresses_t addresses = vector_addresses(warp, instr, made);
  words_of(warp, instr + 1, words);
  const void* values[4] = {words[0], words[1], words[2], words[3]};
  if (space == KILNI_SOFT_SPACE_LOCAL || space == KILNI_SOFT_SPACE_PARAM ||
      !look(&addresses, exec, bytes * count, &span) ||
      !find(run, instr, space, true, &addresses, &span)) {
    if (!store_lanes(run, instr, &addresses, exec, space, bytes, count,
                     values)) {
      return NULL;
    }
    return instr + 2;
  }
  if (span.shape == SHAPE_NEXT && exec == KILNI_SOFT_FULL_MASK &&
      store_rows(span.host, bytes, count, values)) {
    return instr + 2;
  }
  uint32_t first = come_first(run, exec);
#if defined(__AVX2__)
  if (first == KILNI_SOFT_FULL_MASK && bytes == 4 && count == 4) {
    scatter_quads(addresses.lane, span.delta, values);
    return instr + 2;
  }
#endif
  EACH_PART(exec, first, part) {
    EACH_OF(part, lane) {
      uint8_t* host = host_of(addresses.lane[lane], span.delta);
      for (uint32_t k = 0; k < count; k++) {
        write_any(host + k * bytes, get_lane(values[k], lane, bytes), bytes);
      }
    }
  }
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
