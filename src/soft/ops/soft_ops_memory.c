// SPDX-License-Identifier: Apache-2.0
//
// soft: plain loads and stores of one register. Compiled once for each lane
// set.
#include "soft/code/soft_function.h"
#include "soft/engine/soft_warp.h"
#include "soft/ops/soft_ops_memory.h"

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
  } else if (kind == KILNI_SOFT_ADDRESS_NEAR) {
    const uint32_t* narrow = KILNI_LANES_AT(const uint32_t, instr->a);
    KILNI_LANES_EACH(i) {
      out[i] = narrow[i] + instr->b;
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
KILNI_LANES_INLINE addresses_t address_each(const kilni_soft_warp_t* warp,
                                            const kilni_soft_instr_t* instr,
                                            uint64_t* space) {
  if (KILNI_SOFT_ADDRESS_KIND(instr->c) != KILNI_SOFT_ADDRESS_64) {
    made_addresses(warp, instr, space);
    return (addresses_t){space, 0};
  }
  uint64_t offset = (uint64_t)(int64_t)(int32_t)instr->b;
  return (addresses_t){KILNI_LANES_AT(const uint64_t, instr->a), offset};
}

// Loads eight lanes, all of which execute. Where the parts of a warp are rows
// of a tile, each of them is simple.
#if !defined(__AVX512F__)
#define GATHER_CHUNK(bytes, any)                                               \
  KILNI_LANES_INLINE void gather_chunk_##bytes(const uint64_t* addr,           \
                                               uint64_t delta, any* out) {     \
    const any* from =                                                          \
        (const any*)(const void*)ops_memory_host_of(addr[0], delta);           \
    shape_t shape = chunk_shape(addr, bytes);                                  \
    if (shape == SHAPE_NEXT) {                                                 \
      for (int i = 0; i < CHUNK; i++) out[i] = from[i];                        \
    } else if (shape == SHAPE_SAME) {                                          \
      any value = *from;                                                       \
      for (int i = 0; i < CHUNK; i++) out[i] = value;                          \
    } else {                                                                   \
      for (int i = 0; i < CHUNK; i++) {                                        \
        out[i] = *(const any*)(const void*)ops_memory_host_of(addr[i], delta); \
      }                                                                        \
    }                                                                          \
  }
GATHER_CHUNK(4, any32_t)
GATHER_CHUNK(8, any64_t)
#endif

// Loads spread addresses into `out`.
KILNI_LANES_INLINE void ops_memory_gather(const uint64_t* addr, uint32_t exec,
                                          uint64_t delta, uint32_t bytes,
                                          void* out) {
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
      gather_chunk_4(addr + i, delta, (any32_t*)out + i);
    }
    return;
  }
  if (bytes == 8 && exec == KILNI_SOFT_FULL_MASK) {
    for (int i = 0; i < KILNI_SOFT_LANES; i += CHUNK) {
      gather_chunk_8(addr + i, delta, (any64_t*)out + i);
    }
    return;
  }
#endif
  EACH_OF(exec, lane) {
    put_lane(out, lane, read_any(ops_memory_host_of(addr[lane], delta), bytes),
             bytes);
  }
}

#if defined(__AVX2__) && !defined(__AVX512F__)
// All ones in the lanes of vector `i` that execute.
KILNI_LANES_INLINE __m256i chosen32(uint32_t exec, int i) {
  __m256i bit = _mm256_load_si256((const __m256i*)kilni_soft_lanes_bit32 + i);
  __m256i all = _mm256_set1_epi32((int)exec);
  return _mm256_cmpeq_epi32(_mm256_and_si256(all, bit), bit);
}
KILNI_LANES_INLINE __m256i chosen64(uint32_t exec, int i) {
  __m256i bit = _mm256_load_si256((const __m256i*)kilni_soft_lanes_bit64 + i);
  __m256i all = _mm256_set1_epi64x((long long)exec);
  return _mm256_cmpeq_epi64(_mm256_and_si256(all, bit), bit);
}
#endif

// The addresses of an access whose base is the same for all lanes and whose
// index goes up by one: known without computing them. False if they differ, or
// if not every lane executes.
KILNI_LANES_INLINE bool in_row(const kilni_soft_warp_t* warp,
                               const kilni_soft_instr_t* instr, uint32_t exec,
                               uint32_t bytes, span_t* span) {
  uint32_t kind = KILNI_SOFT_ADDRESS_KIND(instr->c);
  if (kind < KILNI_SOFT_ADDRESS_S32 || exec != KILNI_SOFT_FULL_MASK ||
      !(instr->a & KILNI_SOFT_AREA_CONSTANT) ||
      1u << KILNI_SOFT_ADDRESS_SHIFT(instr->c) != bytes) {
    return false;
  }
  const uint32_t* index = KILNI_LANES_AT(const uint32_t, instr->c);
  uint32_t first = index[0];
  uint32_t differ = 0;
  KILNI_LANES_EACH(i) {
    differ |= index[i] ^ (first + i);
  }
  int64_t wide =
      kind == KILNI_SOFT_ADDRESS_S32 ? (int64_t)(int32_t)first : (int64_t)first;
  int64_t most = kind == KILNI_SOFT_ADDRESS_S32 ? INT32_MAX : UINT32_MAX;
  if (differ || wide > most - 31) return false;
  uint64_t offset = (uint64_t)(int64_t)(int32_t)instr->b;
  span->shape = SHAPE_NEXT;
  span->lo = KILNI_LANES_AT(const uint64_t, instr->a)[0] + offset +
             (uint64_t)wide * bytes;
  span->end = span->lo + 32ull * bytes;
  return (span->lo & (bytes - 1)) == 0;
}

// Loads contiguous memory into `out`, whichever lanes execute.
KILNI_LANES_INLINE void load_row(const uint8_t* host, uint32_t exec,
                                 uint32_t bytes, void* out) {
  if (exec == KILNI_SOFT_FULL_MASK && bytes == 1) {
    uint32_t* to = __builtin_assume_aligned(out, 64);
    KILNI_LANES_EACH(i) {
      to[i] = host[i];
    }
    return;
  }
  if (exec == KILNI_SOFT_FULL_MASK && bytes == 2) {
    const any16_t* from = (const any16_t*)(const void*)host;
    uint32_t* to = __builtin_assume_aligned(out, 64);
    KILNI_LANES_EACH(i) {
      to[i] = from[i].v;
    }
    return;
  }
#if defined(__AVX512F__)
  for (int i = 0; i < 2 && bytes == 4; i++) {
    _mm512_store_si512(
        (char*)out + 64 * i,
        _mm512_maskz_loadu_epi32((__mmask16)(exec >> (16 * i)), host + 64 * i));
  }
  for (int i = 0; i < 4 && bytes == 8; i++) {
    _mm512_store_si512(
        (char*)out + 64 * i,
        _mm512_maskz_loadu_epi64((__mmask8)(exec >> (8 * i)), host + 64 * i));
  }
  if (bytes >= 4) return;
#elif defined(__AVX2__)
  if (bytes == 4) {
    for (int i = 0; i < 4; i++) {
      __m256i want = chosen32(exec, i);
      _mm256_store_si256((__m256i*)out + i,
                         _mm256_maskload_epi32(
                             (const int*)(const void*)(host + 32 * i), want));
    }
    return;
  }
  if (bytes == 8) {
    for (int i = 0; i < 8; i++) {
      __m256i want = chosen64(exec, i);
      _mm256_store_si256(
          (__m256i*)out + i,
          _mm256_maskload_epi64((const long long*)(const void*)(host + 32 * i),
                                want));
    }
    return;
  }
#endif
  EACH_OF(exec, lane) {
    put_lane(out, lane, read_any(host + lane * bytes, bytes), bytes);
  }
}

// Stores lanes contiguously; memory of lanes that do not execute is not
// touched.
KILNI_LANES_INLINE void store_row(uint8_t* host, uint32_t exec, uint32_t bytes,
                                  const void* values) {
  if (exec == KILNI_SOFT_FULL_MASK) {
    const uint32_t* v = __builtin_assume_aligned(values, 64);
    if (bytes >= 4) {
      copy_chunks(host, values, 32 * bytes);
    } else if (bytes == 1) {
      KILNI_LANES_EACH(i) {
        host[i] = (uint8_t)v[i];
      }
    } else {
      any16_t* to = (any16_t*)(void*)host;
      KILNI_LANES_EACH(i) {
        to[i].v = (uint16_t)v[i];
      }
    }
    return;
  }
#if defined(__AVX512F__)
  for (int i = 0; i < 2 && bytes == 4; i++) {
    _mm512_mask_storeu_epi32(host + 64 * i, (__mmask16)(exec >> (16 * i)),
                             _mm512_load_si512((const char*)values + 64 * i));
  }
  for (int i = 0; i < 4 && bytes == 8; i++) {
    _mm512_mask_storeu_epi64(host + 64 * i, (__mmask8)(exec >> (8 * i)),
                             _mm512_load_si512((const char*)values + 64 * i));
  }
  if (bytes >= 4) return;
#elif defined(__AVX2__)
  if (bytes == 4) {
    for (int i = 0; i < 4; i++) {
      _mm256_maskstore_epi32((int*)(void*)(host + 32 * i), chosen32(exec, i),
                             _mm256_load_si256((const __m256i*)values + i));
    }
    return;
  }
  if (bytes == 8) {
    for (int i = 0; i < 8; i++) {
      _mm256_maskstore_epi64((long long*)(void*)(host + 32 * i),
                             chosen64(exec, i),
                             _mm256_load_si256((const __m256i*)values + i));
    }
    return;
  }
#endif
  EACH_OF(exec, lane) {
    write_any(host + lane * bytes, get_lane(values, lane, bytes), bytes);
  }
}

KILNI_LANES_INLINE const kilni_soft_instr_t* ops_memory_load(
    kilni_soft_warp_t* warp, const kilni_soft_instr_t* instr, uint32_t space,
    uint32_t bytes) {
  uint32_t exec = kilni_soft_exec(warp, instr);
  if (__builtin_expect(exec == 0, 0)) return instr + 1;
  kilni_soft_run_t* run = kilni_soft_run(warp);
  uint64_t made[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint64_t out[1][KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  addresses_t addresses = {NULL, 0};
  span_t span;
  void* d = kilni_soft_slot(warp, instr->d);
  uint32_t lane_bytes = bytes == 8 ? 8 : 4;
  if (!in_row(warp, instr, exec, bytes, &span) ||
      !ops_memory_find(run, instr, space, false, &addresses, &span)) {
    addresses = address_each(warp, instr, made);
    if (!ops_memory_look(&addresses, exec, bytes, &span) ||
        !ops_memory_find(run, instr, space, false, &addresses, &span)) {
      if (!ops_memory_load_lanes(run, instr, &addresses, exec, space, bytes, 1,
                                 out)) {
        return NULL;
      }
      kilni_soft_lanes_store(d, out, exec, lane_bytes);
      return instr + 1;
    }
  }
  if (span.shape == SHAPE_NEXT) {
    if (bytes >= 4 && exec == KILNI_SOFT_FULL_MASK) {
      copy_chunks(d, span.host, 32 * bytes);
      return instr + 1;
    }
    uint64_t before = (uint64_t)__builtin_ctz(exec) * bytes;
    load_row(span.host - before, exec, bytes, out);
  } else if (span.shape == SHAPE_SAME) {
    uint64_t value = read_any(span.host, bytes);
    KILNI_LANES_EACH(i) {
      put_lane(out, i, value, bytes);
    }
  } else {
    ops_memory_gather(addresses.lane, exec, span.delta, bytes, out);
  }
  kilni_soft_lanes_store(d, out, exec, lane_bytes);
  return instr + 1;
}

KILNI_LANES_INLINE void ops_memory_scatter(const uint64_t* addr, uint32_t exec,
                                           uint64_t delta, uint32_t bytes,
                                           const void* values) {
  if (exec == KILNI_SOFT_FULL_MASK) {
    for (uint32_t i = KILNI_SOFT_LANES; i--;) {
      uint32_t lane = i ^ kilni_soft_store_turn(bytes);
      // As below.
      // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
      write_any((uint8_t*)(uintptr_t)(addr[lane] + delta),
                get_lane(values, lane, bytes), bytes);
    }
    return;
  }
  EACH_STORED(exec, bytes, lane) {
    // `ops_memory_find` has filled in the addresses of all lanes in `exec`.
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
    write_any((uint8_t*)(uintptr_t)(addr[lane] + delta),
              get_lane(values, lane, bytes), bytes);
  }
}

KILNI_LANES_INLINE const kilni_soft_instr_t* ops_memory_store(
    kilni_soft_warp_t* warp, const kilni_soft_instr_t* instr, uint32_t space,
    uint32_t bytes) {
  uint32_t exec = kilni_soft_exec(warp, instr);
  if (__builtin_expect(exec == 0, 0)) return instr + 1;
  kilni_soft_run_t* run = kilni_soft_run(warp);
  uint64_t made[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  addresses_t addresses = {NULL, 0};
  span_t span;
  const void* values = kilni_soft_slot(warp, instr->d);
  if (!in_row(warp, instr, exec, bytes, &span) ||
      !ops_memory_find(run, instr, space, true, &addresses, &span)) {
    addresses = address_each(warp, instr, made);
    if (!ops_memory_look(&addresses, exec, bytes, &span) ||
        !ops_memory_find(run, instr, space, true, &addresses, &span)) {
      return ops_memory_store_lanes(run, instr, &addresses, exec, space, bytes,
                                    1, &values)
                 ? instr + 1
                 : NULL;
    }
  }
  if (span.shape == SHAPE_NEXT) {
    store_row(span.host - (uint64_t)__builtin_ctz(exec) * bytes, exec, bytes,
              values);
    return instr + 1;
  }
  uint32_t first = come_first(run, exec, bytes);
  if (span.shape == SHAPE_SAME) {
    // As if one lane came after another: the last in the order of EACH_STORED.
    uint32_t end = exec & ~first ? exec & ~first : first;
    uint32_t turn = kilni_soft_store_turn(bytes);
    uint32_t last =
        (uint32_t)__builtin_ctz(kilni_soft_turned(end, turn)) ^ turn;
    write_any(span.host, get_lane(values, last, bytes), bytes);
    return instr + 1;
  }
  EACH_PART(exec, first, part) {
    ops_memory_scatter(addresses.lane, part, span.delta, bytes, values);
  }
  return instr + 1;
}

#define SCALAR(name, space, bits)                                             \
  KILNI_SOFT_RACY KILNI_SOFT_HANDLER(ld_##name##_##bits) {                    \
    return ops_memory_load(warp, instr, KILNI_SOFT_SPACE_##space, bits / 8);  \
  }                                                                           \
  KILNI_SOFT_RACY KILNI_SOFT_HANDLER(st_##name##_##bits) {                    \
    return ops_memory_store(warp, instr, KILNI_SOFT_SPACE_##space, bits / 8); \
  }
#define SPACE(name, space) \
  SCALAR(name, space, 8)   \
  SCALAR(name, space, 16)  \
  SCALAR(name, space, 32)  \
  SCALAR(name, space, 64)

SPACE(global, GLOBAL)
SPACE(generic, GENERIC)
SPACE(shared, SHARED)
