// SPDX-License-Identifier: Apache-2.0
//
// soft: loads and stores of every width and space, by addresses of every shape
// and any set of lanes, against bytes moved one lane after another here: what
// a whole warp does at once is what its lanes would do, faults included.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "soft_kit.h"

enum {
  LANES = 32,
  POOL = 4096,         // bytes of global or shared memory
  OWN = POOL / LANES,  // bytes of local memory of a lane
  REGISTERS = 4,       // of a lane
  PARAMS = 5
};

typedef struct space_t {
  const char* name;
  const char* suffix;  // of ld and st
  const char* base;    // a register with its first byte
  uint32_t bytes;      // that a lane may name
} space_t;

// The pool is copied into shared or local memory first and back at the end.
static const space_t spaces[] = {
    {"global", ".global", "%rd3", POOL},  {"generic", "", "%rd3", POOL},
    {"shared", ".shared", "%rd12", POOL}, {"generic shared", "", "%rd13", POOL},
    {"local", ".local", "%rd14", OWN},    {"generic local", "", "%rd15", OWN},
};
enum { SPACES = sizeof(spaces) / sizeof(spaces[0]) };

// An access: the bytes of a register, how many there are, how the address is
// made.
typedef struct access_t {
  const space_t* space;
  uint32_t bytes;
  uint32_t count;
  bool is_store;
  int index;  // 0: a register; 1, 2: a signed or unsigned index and a base
} access_t;

static soft_kit_t kit;
static uint8_t pool[POOL];
static uint64_t offsets[LANES];
static uint32_t flags[LANES];
static uint64_t values[LANES][REGISTERS];

static uint64_t next(uint64_t* seed) {
  *seed += 0x9e3779b97f4a7c15u;
  uint64_t z = *seed;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static const char head[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".shared .align 16 .b8 mem[4096];\n"
    ".visible .entry k(.param .u64 pool, .param .u64 offs, .param .u64 flags, "
    ".param .u64 vals, .param .u64 mid)\n{\n"
    ".local .align 16 .b8 own[128];\n"
    ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n"
    ".reg .b64 %rd<60>;\n"
    "ld.param.u64 %rd3, [pool];\nld.param.u64 %rd4, [offs];\n"
    "ld.param.u64 %rd5, [flags];\nld.param.u64 %rd6, [vals];\n"
    "ld.param.u64 %rd7, [mid];\nmov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %rd8, %r1, 8;\nadd.s64 %rd9, %rd4, %rd8;\n"
    "ld.global.u64 %rd10, [%rd9];\nmul.wide.u32 %rd16, %r1, 4;\n"
    "add.s64 %rd17, %rd5, %rd16;\nld.global.u32 %r2, [%rd17];\n"
    "setp.ne.u32 %p1, %r2, 0;\nmul.wide.u32 %rd18, %r1, 32;\n"
    "add.s64 %rd11, %rd6, %rd18;\n"
    "mov.u64 %rd12, mem;\ncvta.shared.u64 %rd13, %rd12;\n"
    "mov.u64 %rd14, own;\ncvta.local.u64 %rd15, %rd14;\n"
    // Each lane takes 128 bytes of the pool into both.
    "mul.wide.u32 %rd19, %r1, 128;\nadd.s64 %rd20, %rd3, %rd19;\n"
    "mov.u32 %r3, 0;\nmov.u64 %rd21, %rd14;\nadd.s64 %rd22, %rd12, %rd19;\n"
    "IN:\nld.global.u32 %r4, [%rd20];\nst.local.u32 [%rd21], %r4;\n"
    "st.shared.u32 [%rd22], %r4;\nadd.s64 %rd20, %rd20, 4;\n"
    "add.s64 %rd21, %rd21, 4;\nadd.s64 %rd22, %rd22, 4;\n"
    "add.u32 %r3, %r3, 4;\nsetp.lt.u32 %p2, %r3, 128;\n@%p2 bra IN;\n"
    "bar.sync 0;\n"
    "ld.global.u64 %rd40, [%rd11];\nld.global.u64 %rd41, [%rd11+8];\n"
    "ld.global.u64 %rd42, [%rd11+16];\nld.global.u64 %rd43, [%rd11+24];\n"
    "cvt.u32.u64 %r30, %rd40;\ncvt.u32.u64 %r31, %rd41;\n"
    "cvt.u32.u64 %r32, %rd42;\ncvt.u32.u64 %r33, %rd43;\n"
    "cvt.u16.u64 %h0, %rd40;\ncvt.u16.u64 %h1, %rd41;\n"
    "cvt.u16.u64 %h2, %rd42;\ncvt.u16.u64 %h3, %rd43;\n";

// What was loaded goes to the values; memory goes back to the pool.
static const char from_16[] =
    "cvt.u64.u16 %rd40, %h0;\ncvt.u64.u16 %rd41, %h1;\n"
    "cvt.u64.u16 %rd42, %h2;\ncvt.u64.u16 %rd43, %h3;\n";
static const char from_32[] =
    "cvt.u64.u32 %rd40, %r30;\ncvt.u64.u32 %rd41, %r31;\n"
    "cvt.u64.u32 %rd42, %r32;\ncvt.u64.u32 %rd43, %r33;\n";
static const char tail[] =
    "st.global.u64 [%rd11], %rd40;\nst.global.u64 [%rd11+8], %rd41;\n"
    "st.global.u64 [%rd11+16], %rd42;\nst.global.u64 [%rd11+24], %rd43;\n"
    "bar.sync 0;\n";
static const char* register_of(uint32_t bytes) {
  return bytes == 8 ? "%rd4" : bytes == 4 ? "%r3" : "%h";
}

// The text of a kernel that makes one access.
static void load(const access_t* a) {
  static char text[16384];
  char list[64] = "", place[160], tail_back[512] = "";
  for (uint32_t k = 0; k < a->count; k++) {
    size_t used = strlen(list);
    snprintf(list + used, sizeof(list) - used, "%s%s%u", k ? ", " : "",
             register_of(a->bytes), k);
  }
  if (a->index) {
    // The index counts elements from the middle, or from the first byte.
    snprintf(place, sizeof(place),
             "shr.s64 %%rd50, %%rd10, %d;\ncvt.u32.u64 %%r20, %%rd50;\n"
             "mul.wide.%s32 %%rd51, %%r20, %u;\nadd.s64 %%rd52, %%rd%d, "
             "%%rd51;\n",
             __builtin_ctz(a->bytes), a->index == 1 ? "s" : "u", a->bytes,
             a->index == 1 ? 7 : 3);
  } else {
    snprintf(place, sizeof(place), "add.s64 %%rd52, %s, %%rd10;\n",
             a->space->base);
  }
  bool shared = strstr(a->space->name, "shared") != NULL;
  bool local = strstr(a->space->name, "local") != NULL;
  if (shared || local) {
    int at = shared ? 23 : 24;
    snprintf(tail_back, sizeof(tail_back),
             "add.s64 %%rd23, %%rd12, %%rd19;\nmov.u64 %%rd24, %%rd14;\n"
             "mov.u32 %%r3, 0;\nadd.s64 %%rd20, %%rd3, %%rd19;\n"
             "OUT:\nld.%s.u32 %%r4, [%%rd%d];\nst.global.u32 [%%rd20], %%r4;\n"
             "add.s64 %%rd20, %%rd20, 4;\nadd.s64 %%rd%d, %%rd%d, 4;\n"
             "add.u32 %%r3, %%r3, 4;\nsetp.lt.u32 %%p2, %%r3, 128;\n"
             "@%%p2 bra OUT;\n",
             shared ? "shared" : "local", at, at, at);
  }
  char vector[16] = "", braces[2][2] = {"", ""};
  if (a->count > 1) {
    snprintf(vector, sizeof(vector), ".v%u", a->count);
    braces[0][0] = '{';
    braces[1][0] = '}';
  }
  char access[256];
  if (a->is_store) {
    snprintf(access, sizeof(access), "@%%p1 st%s%s.b%u [%%rd52], %s%s%s;\n",
             a->space->suffix, vector, a->bytes * 8, braces[0], list,
             braces[1]);
  } else {
    snprintf(access, sizeof(access), "@%%p1 ld%s%s.b%u %s%s%s, [%%rd52];\n",
             a->space->suffix, vector, a->bytes * 8, braces[0], list,
             braces[1]);
  }
  const char* from = a->bytes == 8 ? "" : a->bytes == 4 ? from_32 : from_16;
  snprintf(text, sizeof(text), "%s%s%s%s%s%sret;\n}\n", head, place, access,
           from, tail, tail_back);
  soft_kit_load(&kit, text);
}

// Runs it on copies of the arrays; results come back into them.
static kilni_soft_fault_kind_t run(void) {
  uint64_t params[PARAMS] = {soft_kit_buffer(&kit, pool, sizeof(pool)),
                             soft_kit_buffer(&kit, offsets, sizeof(offsets)),
                             soft_kit_buffer(&kit, flags, sizeof(flags)),
                             soft_kit_buffer(&kit, values, sizeof(values)), 0};
  params[4] = params[0] + POOL / 2;
  const uint32_t one[3] = {1, 1, 1};
  const uint32_t block[3] = {LANES, 1, 1};
  kilni_soft_fault_kind_t kind =
      soft_kit_launch(&kit, "k", one, block, 0, params, sizeof(params));
  soft_kit_read(&kit, params[0], pool, sizeof(pool));
  soft_kit_read(&kit, params[3], values, sizeof(values));
  for (int i = 0; i < PARAMS - 1; i++) {
    assert_true(kiln_status_is_ok(kilni_soft_memory_free(
        kit.memory, params[i], KILNI_SOFT_ALLOC_DEVICE)));
  }
  return kind;
}

static uint64_t cut(uint64_t value, uint32_t bytes) {
  return bytes == 8 ? value : value & ((1ull << (8 * bytes)) - 1);
}

// The same lane after lane: 128 bytes of them at a time, and of those down to
// the lowest, whose store remains.
static void expect(const access_t* a, uint8_t* memory,
                   uint64_t (*regs)[REGISTERS]) {
  bool local = a->space->bytes == OWN;
  uint32_t width = a->bytes * a->count;
  uint32_t group = width <= 4 ? 32 : width <= 8 ? 16 : 8;
  for (uint32_t i = 0; i < LANES; i++) {
    uint32_t lane = i / group * group + (group - 1 - i % group);
    for (uint32_t k = 0; k < REGISTERS && a->bytes < 8; k++) {
      regs[lane][k] = cut(regs[lane][k], a->bytes == 4 ? 4 : 2);
    }
    if (!flags[lane]) continue;
    uint64_t at = offsets[lane] + (a->index == 1 ? POOL / 2 : 0);
    uint8_t* from = memory + (local ? lane * OWN : 0) + at;
    for (uint32_t k = 0; k < a->count; k++) {
      if (a->is_store) {
        memcpy(from + k * a->bytes, &regs[lane][k], a->bytes);
      } else {
        regs[lane][k] = 0;
        memcpy(&regs[lane][k], from + k * a->bytes, a->bytes);
      }
    }
  }
}

enum { SHAPES = 8, MASKS = 7 };

// Offsets of a shape, each a multiple of `size` inside `bytes`.
static void fill_offsets(int shape, uint32_t size, uint32_t bytes,
                         uint64_t* seed) {
  uint32_t places = bytes / size;
  uint32_t start = (uint32_t)next(seed) % places;
  for (uint32_t i = 0; i < LANES; i++) {
    uint32_t at = start;
    if (shape == 0) at = places >= LANES ? start % (places - 31) + i : i;
    if (shape == 2) at = start + 2 * i;
    if (shape == 3) at = start + 31 - i;
    if (shape == 4) at = (uint32_t)next(seed);
    if (shape == 5) at = start + i / 8 * 16 + i % 8;
    if (shape == 6) at = start + i / 8;
    if (shape == 7) at = start + i + (i == 17);
    offsets[i] = (uint64_t)(at % places) * size;
  }
}

static void fill_flags(int mask, uint64_t* seed) {
  static const uint32_t masks[MASKS] = {0xffffffff, 0x0000ffff, 0xfffffff0,
                                        0x55555555, 0x00010000, 0x80000001,
                                        0};
  uint32_t bits = mask == MASKS - 1 ? (uint32_t)next(seed) : masks[mask];
  for (uint32_t i = 0; i < LANES; i++) flags[i] = bits >> i & 1;
}

static void check(const access_t* a, int shape, int mask, uint64_t* seed) {
  static uint8_t want_pool[POOL];
  static uint64_t want[LANES][REGISTERS];
  for (int i = 0; i < POOL; i++) pool[i] = (uint8_t)next(seed);
  for (int i = 0; i < LANES; i++) {
    for (int k = 0; k < REGISTERS; k++) values[i][k] = next(seed);
  }
  fill_offsets(shape, a->bytes * a->count, a->space->bytes, seed);
  if (a->index == 1) {
    for (int i = 0; i < LANES; i++) offsets[i] -= POOL / 2;
  }
  fill_flags(mask, seed);
  memcpy(want_pool, pool, sizeof(pool));
  memcpy(want, values, sizeof(values));
  expect(a, want_pool, want);
  if (run() != KILNI_SOFT_FAULT_NONE) fail_msg("%s", kit.report);
  if (memcmp(want_pool, pool, sizeof(pool)) == 0 &&
      memcmp(want, values, sizeof(values)) == 0) {
    return;
  }
  fail_msg("%s: %s of %u x %u bytes, %s, index %d, shape %d, mask %d",
           kit.lanes->name, a->is_store ? "store" : "load", a->count, a->bytes,
           a->space->name, a->index, shape, mask);
}

// Calls `fn` for every access.
static void each_access(void (*fn)(const access_t*, uint64_t*)) {
  uint64_t seed = 17;
  for (int s = 0; s < SPACES; s++) {
    for (uint32_t bytes = 1; bytes <= 8; bytes *= 2) {
      for (uint32_t count = 1; count <= 4; count *= 2) {
        for (int k = 0; k < 2 * 3; k++) {
          access_t a = {&spaces[s], bytes, count, (k & 1) != 0, k / 2};
          bool indexed = spaces[s].base == spaces[0].base && count == 1;
          if (bytes * count > 16 || (a.index && !indexed)) continue;
          load(&a);
          fn(&a, &seed);
        }
      }
    }
  }
}

static void all_shapes(const access_t* a, uint64_t* seed) {
  for (int shape = 0; shape < SHAPES; shape++) {
    for (int mask = 0; mask < MASKS; mask++) check(a, shape, mask, seed);
  }
}

static void a_warp_moves_what_its_lanes_would(void** state) {
  (void)state;
  soft_kit_way_t way;
  for (uint32_t w = 0; soft_kit_way(w, &way); w++) {
    if (way.workers != 1) continue;
    soft_kit_open(&kit, &way);
    each_access(all_shapes);
    soft_kit_close(&kit);
  }
}

// One lane's address is out of bounds or not aligned: it is the one reported.
static void one_bad(const access_t* a, uint64_t* seed) {
  if (a->index) return;
  uint32_t size = a->bytes * a->count;
  for (int k = 0; k < 4; k++) {
    bool misaligned = k & 1;
    if (misaligned && size == 1) continue;
    uint32_t lane = (uint32_t)next(seed) % LANES;
    fill_offsets((int)(next(seed) % SHAPES), size, a->space->bytes, seed);
    fill_flags(0, seed);
    if (k & 2) flags[(lane + 7) % LANES] = 0;
    offsets[lane] =
        misaligned ? offsets[lane] + size / 2 : (uint64_t)a->space->bytes + 64;
    kilni_soft_fault_kind_t kind = run();
    assert_int_equal(kind, misaligned ? KILNI_SOFT_FAULT_MISALIGNED
                                      : KILNI_SOFT_FAULT_ILLEGAL_ADDRESS);
    assert_int_equal(kit.fault.thread[0], lane);
    assert_int_equal(kit.fault.bytes, size);
    assert_int_equal(kit.fault.is_store, a->is_store);
    if (kit.fault.line == 0) fail_msg("%s", kit.report);
  }
}

static void a_bad_lane_is_the_one_reported(void** state) {
  (void)state;
  soft_kit_way_t way;
  for (uint32_t w = 0; soft_kit_way(w, &way); w++) {
    if (way.workers != 1) continue;
    soft_kit_open(&kit, &way);
    each_access(one_bad);
    soft_kit_close(&kit);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_warp_moves_what_its_lanes_would),
      cmocka_unit_test(a_bad_lane_is_the_one_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
