// SPDX-License-Identifier: Apache-2.0
//
// soft: plain loads and stores of several registers side by side, and those of
// local memory and of kernel parameters. Compiled once for each lane set.
#include "soft/ops/soft_ops_memory.h"

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
    const uint8_t* host = host_of(span->lo, span->delta);
    for (uint32_t k = 0; k < count; k++) {
      uint64_t value = read_any(host + k * bytes, bytes);
      KILNI_LANES_EACH(i) {
        put_lane(out[k], i, value, bytes);
      }
    }
    return;
  }
  if (exec == KILNI_SOFT_FULL_MASK) {
    if (span->shape == SHAPE_NEXT &&
        load_rows(host_of(span->lo, span->delta), bytes, count, out)) {
      return;
    }
    if (bytes == 4) {
      gather_words(addr, span->delta, count, out);
      return;
    }
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
  } else {
    load_span(addr, exec, &span, bytes, count, out);
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
  if (span.shape == SHAPE_NEXT && exec == KILNI_SOFT_FULL_MASK &&
      store_rows((void*)(uintptr_t)(span.lo + (uint64_t)span.delta), bytes,
                 count, values)) {
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
