// SPDX-License-Identifier: Apache-2.0
//
// soft: every arithmetic form, through its handler in every lane set of this
// CPU, against the reference: edge inputs and seeded ones, all lanes and some,
// destinations on top of their sources.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "soft/code/soft_engine.h"
#include "soft/decode/soft_forms.h"
#include "soft_reference.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum {
  SLOT = KILNI_SOFT_SLOT64_BYTES,
  SLOTS = 8,
  LANES = KILNI_SOFT_LANES,
  BATCHES = 40,
  PREDICATES = 8,
};

// A warp with a small frame. Slot k of the frame is at k * SLOT.
typedef struct bench_t {
  _Alignas(64) uint8_t frame[SLOTS * SLOT];
  _Alignas(64) uint8_t constants[SLOTS * SLOT];
  uint32_t pred[PREDICATES];
  kilni_soft_warp_t warp;
} bench_t;

static uint64_t next(uint64_t* seed) {
  *seed += 0x9e3779b97f4a7c15u;
  uint64_t z = *seed;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static const uint32_t edges_f32[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
    0x7fc00000, 0xffc12345, 0x7f800001, 0x7fffffff, 0x00000001, 0x80000001,
    0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff,
    0x3f000000, 0xbf000000, 0x3fc00000, 0x40200000, 0xc0200000, 0x3effffff,
    0x3f7fffff, 0x3f800001, 0x4b000000, 0x4b000001, 0xcb7fffff, 0x4effffff,
    0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5f000000,
    0xdf000000, 0x5f7fffff, 0x5f800000, 0x42fe0000, 0x43000000, 0xc3000000,
    0x43000001, 0xc3008000, 0x437f8000, 0x46ffff00, 0xc7000080, 0x477fff80,
    0x7e800000, 0x7e800001, 0x7f000000, 0x33800000, 0x33800001, 0x1f800000,
    0x40490fdb, 0xc2c80000, 0x497fffff, 0x49800000, 0x6f123456, 0x43160000,
};
static const uint64_t edges_f64[] = {
    0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000,
    0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
    0x7ff8000000000000, 0xfff8000000012345, 0x7ff0000000000001,
    0x7fffffffffffffff, 0x0000000000000001, 0x8000000000000001,
    0x000fffffffffffff, 0x800fffffffffffff, 0x0010000000000000,
    0x8010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
    0x3fe0000000000000, 0xbfe0000000000000, 0x3ff8000000000000,
    0x4004000000000000, 0xc004000000000000, 0x3fdfffffffffffff,
    0x3ff0000000000001, 0x3fefffffffffffff, 0x41dfffffffc00000,
    0x41e0000000000000, 0xc1e0000000000000, 0xc1e0000000200000,
    0x41efffffffe00000, 0x41f0000000000000, 0x43e0000000000000,
    0xc3e0000000000000, 0x43f0000000000000, 0x43efffffffffffff,
    0x4330000000000001, 0x4340000000000001, 0x405fc00000000000,
    0x4060000000000000, 0xc060000000000000, 0xc060100000000000,
    0x40dfffe000000000, 0x40efffe000000000, 0x47efffffe0000000,
    0x47efffffefffffff, 0x47effffff0000000, 0x47f0000000000000,
    0x3810000000000000, 0x380fffffffffffff, 0x36a0000000000000,
    0x3690000000000000, 0x3690000000000001, 0x3ff0000010000000,
    0x3ff0000030000000, 0x3ff0000010000001, 0xb6a0000000000000,
    0x3ca0000000000000, 0x1e60000000000000, 0x7fd0000000000001,
};
static const uint64_t edges_int[] = {
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    31,
    32,
    33,
    63,
    64,
    65,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x10000,
    0xffffff,
    0x800000,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x7fffffc0,
    0xfffffeff,
    0x100000000,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xffffffffffffffff,
    0xfffffffffffffffe,
    0xffffffff80000000,
    0xffffffff7fffffff,
    0xffffffffffff8000,
    0xffffffffffffff80,
    0xffffffffffffffe0,
    0x5555555555555555,
    0x0123456789abcdef,
    0x8000008000000001,
    0x7fffff4000000001,
    0x0020000000000001,
};

// An input of `type`: an edge, or seeded bits, of which small numbers and
// ordinary floats are a good part.
static uint64_t input(const char* type, uint64_t edge, uint64_t* seed) {
  uint64_t random = next(seed);
  bool seeded = edge == UINT64_MAX;
  if (strcmp(type, "f32") == 0) {
    if (!seeded) return edges_f32[edge % (sizeof(edges_f32) / 4)];
    if (random >> 62 == 0) return (uint32_t)random;
    uint32_t exponent = 96 + (uint32_t)(random >> 40) % 64;
    return ((uint32_t)random & 0x807fffffu) | exponent << 23;
  }
  if (strcmp(type, "f64") == 0) {
    if (!seeded) return edges_f64[edge % (sizeof(edges_f64) / 8)];
    if (random >> 62 == 0) return next(seed);
    uint64_t exponent = 960 + (random >> 40) % 128;
    return (next(seed) & 0x800fffffffffffffu) | exponent << 52;
  }
  if (strcmp(type, "pred") == 0) return random >> 20 & 1;
  uint64_t x = edges_int[edge % (sizeof(edges_int) / 8)];
  if (seeded) x = random >> (next(seed) % 64);
  if (type[1] == '6') return x;
  // 8 and 16 bits live in registers of 16 bits.
  return strcmp(type + 1, "32") == 0 ? (uint32_t)x : (uint16_t)x;
}

// One batch of one form: what goes in and what must come out.
typedef struct batch_t {
  soft_lane_in_t in[LANES];
  soft_lane_out_t out[LANES];
} batch_t;

static unsigned sources_of(const char* signature) {
  unsigned n = 0;
  for (const char* s = signature + 2; *s; s++) n += *s != 'i' && *s != '-';
  return n;
}

static const char* source_type(const char* form, const char* signature,
                               unsigned s) {
  char letter = signature[2 + s];
  if (letter == 'p') return "pred";
  const char* type = soft_reference_source_type(form, s);
  bool wide = strstr(type, "64") != NULL;
  if (wide == (letter == 'x') && strcmp(type, "pred") != 0) return type;
  return letter == 'x' ? "u64" : "u32";
}

static bool batch_fill(batch_t* batch, const char* form, const char* signature,
                       unsigned index, uint64_t* seed) {
  unsigned sources = sources_of(signature);
  for (unsigned i = 0; i < LANES; i++) {
    soft_lane_in_t* in = &batch->in[i];
    memset(in, 0, sizeof(*in));
    uint64_t at = index * (uint64_t)LANES + i;
    for (unsigned s = 0; s < sources; s++) {
      const char* type = source_type(form, signature, s);
      uint64_t count = sizeof(edges_f32) / 4;
      uint64_t edge = s == 0 ? at : s == 1 ? at / count + at : next(seed);
      if (index % 4 == 3 || (s > 0 && next(seed) % 8 == 0)) edge = UINT64_MAX;
      if (s == 1 && index % 4 == 2) edge = next(seed) >> 1;
      in->s[s] = input(type, edge, seed);
    }
    in->carry = (uint32_t)(next(seed) >> 13 & 1);
  }
  uint32_t immediate = (uint32_t)(next(seed) & 0xff);
  for (unsigned i = 0; i < LANES; i++) {
    batch->in[i].immediate = immediate;
    if (!soft_reference(form, &batch->in[i], &batch->out[i])) return false;
  }
  return true;
}

static void put(uint8_t* slot, unsigned lane, bool wide, uint64_t x) {
  uint32_t low = (uint32_t)x;
  if (wide) {
    memcpy(slot + 8 * lane, &x, 8);
  } else {
    memcpy(slot + 4 * lane, &low, 4);
  }
}

static uint64_t get(const uint8_t* slot, unsigned lane, bool wide) {
  uint64_t x = 0;
  memcpy(&x, slot + (wide ? 8 : 4) * lane, wide ? 8 : 4);
  return x;
}

// Puts the sources where `instr` finds them: slots 1 to 4 of the frame, the
// second source among the constants, predicates 2 to 5.
static void place(bench_t* bench, kilni_soft_instr_t* instr,
                  const batch_t* batch, const char* signature) {
  uint32_t* words[4] = {&instr->a, &instr->b, &instr->c, &instr->aux};
  for (unsigned s = 0; s < 4 && signature[2 + s]; s++) {
    char letter = signature[2 + s];
    if (letter == 'i') {
      instr->aux = batch->in[0].immediate;
    } else if (letter == 'p') {
      uint32_t mask = 0;
      for (unsigned i = 0; i < LANES; i++) {
        mask |= (uint32_t)(batch->in[i].s[s] & 1) << i;
      }
      // The second is read negated.
      bench->pred[2 + s] = s == 1 ? ~mask : mask;
      *words[s] = (2 + s) | (s == 1 ? KILNI_SOFT_PRED_NEGATED : 0);
    } else {
      uint32_t offset = (1 + s) * SLOT;
      uint8_t* area = s == 1 ? bench->constants : bench->frame;
      for (unsigned i = 0; i < LANES; i++) {
        put(area + offset, i, letter == 'x', batch->in[i].s[s]);
      }
      *words[s] = offset | (s == 1 ? KILNI_SOFT_AREA_CONSTANT : 0);
    }
  }
}

// What a handler left. Lanes it must not touch hold what was there before.
typedef struct result_t {
  uint64_t d[LANES];
  uint64_t before[LANES];
  uint32_t carry;
  uint32_t reserved;  // no padding: results are compared byte by byte
} result_t;

static void execute(kilni_soft_fn_t fn, kilni_soft_op_t op,
                    const batch_t* batch, uint32_t exec, bool on_source,
                    result_t* out) {
  const char* signature = kilni_soft_op_signature(op);
  static bench_t bench;
  for (size_t i = 0; i < sizeof(bench.frame); i++) {
    bench.frame[i] = (uint8_t)(i * 37 + 11);
  }
  memset(bench.pred, 0xff, sizeof(bench.pred));
  bench.warp.area[0] = bench.frame;
  bench.warp.area[1] = bench.constants;
  bench.warp.pred = bench.pred;
  bench.warp.carry = 0;
  for (unsigned i = 0; i < LANES; i++) {
    bench.warp.carry |= batch->in[i].carry << i;
  }
  uint32_t carry = bench.warp.carry;
  kilni_soft_instr_t instr = {.fn = fn, .op = (uint16_t)op};
  place(&bench, &instr, batch, signature);
  // Half of the mask comes from the group, half from a negated guard.
  bench.warp.mask = exec | 0x0000ffffu;
  bench.pred[1] = ~(exec | 0xffff0000u);
  instr.guard = 1 | 0x8000u;
  if (exec == KILNI_SOFT_FULL_MASK) {
    bench.warp.mask = exec;
    instr.guard = 0;
  }
  char d = signature[0];
  if (d == 'p') {
    instr.d = 6;
    bench.pred[6] = 0x0f0f3355u;
  } else if (on_source && strchr("wx", signature[2])) {
    instr.d = instr.a;
  }
  for (unsigned i = 0; i < LANES; i++) {
    out->before[i] = d == 'p' ? bench.pred[6] >> i & 1
                              : get(bench.frame + instr.d, i, d == 'x');
  }
  assert_ptr_equal(fn(&bench.warp, &instr), &instr + 1);
  for (unsigned i = 0; i < LANES; i++) {
    out->d[i] = d == 'p' ? bench.pred[6] >> i & 1
                         : get(bench.frame + instr.d, i, d == 'x');
  }
  out->carry = bench.warp.carry;
  assert_int_equal((bench.warp.carry ^ carry) & ~exec, 0);
  assert_int_equal(bench.pred[0], UINT32_MAX);
}

static void check(const char* form, const char* set, kilni_soft_op_t op,
                  const batch_t* batch, uint32_t exec, const result_t* r) {
  unsigned bits = kilni_soft_op_signature(op)[0] == 'x' ? 64 : 32;
  for (unsigned i = 0; i < LANES; i++) {
    const soft_lane_in_t* in = &batch->in[i];
    const soft_lane_out_t* want = &batch->out[i];
    bool on = exec >> i & 1;
    bool good = on ? soft_reference_agrees(want, r->d[i], bits)
                   : r->d[i] == r->before[i];
    if (on && want->has_carry) good &= (r->carry >> i & 1) == want->carry;
    if (good) continue;
    fail_msg(
        "%s %s lane %u %s: %llx %llx %llx %llx imm %x carry %u: got %llx "
        "carry %u, want %llx carry %u",
        set, form, i, on ? "on" : "off", (unsigned long long)in->s[0],
        (unsigned long long)in->s[1], (unsigned long long)in->s[2],
        (unsigned long long)in->s[3], in->immediate, in->carry,
        (unsigned long long)r->d[i], r->carry >> i & 1,
        (unsigned long long)(on ? want->d : r->before[i]), want->carry);
  }
}

static unsigned lane_sets(const kilni_soft_lane_set_t** sets) {
  static const char* const names[] = {"plain", "avx2", "avx512"};
  unsigned n = 0;
  for (unsigned i = 0; i < 3; i++) {
    sets[n] = kilni_soft_lanes_choose(names[i]);
    if (sets[n]) n++;
  }
  return n;
}

static unsigned control_word(void) {
#if defined(__SSE2__)
  return _mm_getcsr() & 0xffc0u;
#else
  return 0;
#endif
}

static void check_form(const char* form, kilni_soft_op_t op, uint64_t* seed) {
  const kilni_soft_lane_set_t* sets[3];
  unsigned count = lane_sets(sets);
  static batch_t batch;
  for (unsigned b = 0; b < BATCHES; b++) {
    assert_true(batch_fill(&batch, form, kilni_soft_op_signature(op), b, seed));
    uint32_t masks[3] = {KILNI_SOFT_FULL_MASK, (uint32_t)next(seed),
                         1u << (next(seed) & 31)};
    for (unsigned m = 0; m < 3; m++) {
      result_t first = {0};
      for (unsigned s = 0; s < count; s++) {
        result_t r = {0};
        unsigned word = control_word();
        execute(sets[s]->fn[op], op, &batch, masks[m], b % 2, &r);
        assert_int_equal(control_word(), word);
        check(form, sets[s]->name, op, &batch, masks[m], &r);
        if (s == 0) first = r;
        if (memcmp(&first, &r, sizeof(r)) != 0) {
          fail_msg("%s differs between %s and %s", form, sets[0]->name,
                   sets[s]->name);
        }
      }
    }
  }
}

static bool is_alu(kilni_soft_op_t op) {
  static const char* const ids[] = {
#define KILNI_SOFT_OP(id, family, signature, forms) #id,
#include "soft/code/soft_ops_alu.inc"
#undef KILNI_SOFT_OP
  };
  for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
    if (strcmp(kilni_soft_op_id(op), ids[i]) == 0) return true;
  }
  return false;
}

static void every_form_computes_what_the_reference_says(void** state) {
  (void)state;
  uint64_t seed = 1;
  unsigned forms = 0;
  kilni_soft_op_t op;
  for (size_t i = 0;; i++) {
    const char* form = kilni_soft_form_at(i, &op);
    if (!form) break;
    if (!is_alu(op)) continue;
    check_form(form, op, &seed);
    forms++;
  }
  assert_true(forms > 1000);
  print_message("%u forms\n", forms);
}

// The operations that no form names; the decoder makes them.
static void packing_moves_each_part(void** state) {
  (void)state;
  const kilni_soft_lane_set_t* sets[3];
  unsigned count = lane_sets(sets);
  for (unsigned s = 0; s < count; s++) {
    bench_t bench;
    memset(&bench, 0xa5, sizeof(bench));
    bench.pred[0] = UINT32_MAX;
    bench.warp = (kilni_soft_warp_t){.area = {bench.frame, bench.constants},
                                     .pred = bench.pred,
                                     .mask = 0x00ffff0fu};
    uint64_t x[LANES];
    uint64_t seed = 9;
    for (unsigned i = 0; i < LANES; i++) {
      x[i] = next(&seed);
      put(bench.frame + 5 * SLOT, i, true, x[i]);
    }
    // The first destination lies on the source.
    kilni_soft_instr_t part = {.d = 5 * SLOT, .a = 5 * SLOT, .b = 6 * SLOT};
    kilni_soft_instr_t pack = {.d = 0, .a = 5 * SLOT, .b = 6 * SLOT};
    sets[s]->fn[KILNI_SOFT_OP_unpack_b64_b32x2](&bench.warp, &part);
    for (unsigned i = 8; i < 24; i++) {
      assert_int_equal(get(bench.frame + 5 * SLOT, i, false), (uint32_t)x[i]);
      assert_int_equal(get(bench.frame + 6 * SLOT, i, false), x[i] >> 32);
    }
    sets[s]->fn[KILNI_SOFT_OP_pack_b64_b32x2](&bench.warp, &pack);
    for (unsigned i = 8; i < LANES; i++) {
      bool on = bench.warp.mask >> i & 1;
      assert_true(get(bench.frame, i, true) ==
                  (on ? x[i] : 0xa5a5a5a5a5a5a5a5u));
    }
  }
}

static void every_operation_has_a_handler_and_a_test(void** state) {
  (void)state;
  static bool tested[KILNI_SOFT_OP_COUNT];
  static const kilni_soft_op_t by_hand[] = {KILNI_SOFT_OP_pack_b64_b32x2,
                                            KILNI_SOFT_OP_unpack_b64_b32x2};
  for (unsigned i = 0; i < sizeof(by_hand) / sizeof(by_hand[0]); i++) {
    tested[by_hand[i]] = true;
  }
  kilni_soft_op_t op;
  for (size_t i = 0; kilni_soft_form_at(i, &op); i++) tested[op] = true;
  const kilni_soft_lane_set_t* sets[3];
  unsigned count = lane_sets(sets);
  for (unsigned o = 0; o < KILNI_SOFT_OP_COUNT; o++) {
    for (unsigned s = 0; s < count; s++) {
      if (!sets[s]->fn[o]) {
        fail_msg("%s has no handler in %s", kilni_soft_op_id(o), sets[s]->name);
      }
    }
    if (is_alu(o) && !tested[o]) {
      fail_msg("%s is not tested", kilni_soft_op_id(o));
    }
  }
}

// The engine's branch is replaced (--wrap), to see what it is handed.
static const kilni_soft_instr_t* branch_seen;
static uint32_t taken_seen;
const kilni_soft_instr_t* __wrap_kilni_soft_branch(
    kilni_soft_warp_t* warp, const kilni_soft_instr_t* branch, uint32_t taken);
const kilni_soft_instr_t* __wrap_kilni_soft_branch(
    kilni_soft_warp_t* warp, const kilni_soft_instr_t* branch, uint32_t taken) {
  (void)warp;
  branch_seen = branch;
  taken_seen = taken;
  return branch + 2;
}

static void check_fused(const kilni_soft_lane_set_t* set, const char* form,
                        kilni_soft_op_t op, bool negated, uint64_t* seed) {
  static batch_t batch;
  const char* signature = kilni_soft_op_signature(op);
  assert_true(
      batch_fill(&batch, form, signature, (unsigned)next(seed) % 64, seed));
  static bench_t bench;
  memset(bench.pred, 0xff, sizeof(bench.pred));
  bench.pred[6] = 0x12345678u;
  bench.warp = (kilni_soft_warp_t){.area = {bench.frame, bench.constants},
                                   .pred = bench.pred,
                                   .mask = (uint32_t)next(seed)};
  kilni_soft_instr_t pair[4] = {{.d = 6}, {.guard = 6}};
  if (negated) pair[1].guard |= 0x8000u;
  place(&bench, pair, &batch, signature);
  uint32_t want = 0;
  for (unsigned i = 0; i < LANES; i++) {
    want |= (uint32_t)(batch.out[i].d & 1) << i;
  }
  uint32_t mask = bench.warp.mask;
  assert_ptr_equal(set->compare_branch[op](&bench.warp, pair), pair + 3);
  assert_ptr_equal(branch_seen, pair + 1);
  assert_int_equal(taken_seen, (negated ? ~want : want) & mask);
  assert_int_equal(bench.pred[6], (want & mask) | (0x12345678u & ~mask));
}

static void fused_pairs_compare_and_branch(void** state) {
  (void)state;
  const kilni_soft_lane_set_t* sets[3];
  unsigned count = lane_sets(sets);
  uint64_t seed = 5;
  unsigned fused = 0;
  kilni_soft_op_t op;
  const char* form;
  for (size_t i = 0; (form = kilni_soft_form_at(i, &op)); i++) {
    if (!is_alu(op)) continue;
    bool compare = strcmp(kilni_soft_op_family(op), "compare") == 0;
    for (unsigned s = 0; s < count; s++) {
      if (!compare) assert_null(sets[s]->compare_branch[op]);
      if (!sets[s]->compare_branch[op]) continue;
      fused++;
      for (int k = 0; k < 8; k++) {
        check_fused(sets[s], form, op, k & 1, &seed);
      }
    }
  }
  assert_true(fused >= count * 60);
}

static void forms_are_found_whole_and_nothing_else(void** state) {
  (void)state;
  kilni_soft_op_t op, found;
  const char* before = "";
  const char* form;
  for (size_t i = 0; (form = kilni_soft_form_at(i, &op)); i++) {
    assert_true(strcmp(before, form) < 0);
    before = form;
    assert_true(kilni_soft_form_find(form, strlen(form), &found));
    assert_int_equal(found, op);
  }
  assert_int_equal(op, KILNI_SOFT_OP_COUNT);
  static const char* const unknown[] = {
      "", "add", "add.", "add.u3", "add.u322", "zzz", "add.f32x", "mul.u32"};
  for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
    assert_false(kilni_soft_form_find(unknown[i], strlen(unknown[i]), &found));
    assert_int_equal(found, KILNI_SOFT_OP_COUNT);
  }
  // Only `size` bytes count.
  assert_true(kilni_soft_form_find("add.f32x", 7, &found));
  assert_int_equal(found, KILNI_SOFT_OP_add_f32);
}

static void lane_sets_are_chosen_by_name(void** state) {
  (void)state;
  assert_ptr_equal(kilni_soft_lanes_choose("plain"), &kilni_soft_lanes_plain);
  assert_non_null(kilni_soft_lanes_choose("auto"));
  assert_null(kilni_soft_lanes_choose("mmx"));
  assert_null(kilni_soft_lanes_choose(""));
  const kilni_soft_lane_set_t* sets[3] = {NULL};
  unsigned count = lane_sets(sets);
  assert_ptr_equal(kilni_soft_lanes_choose("auto"), sets[count - 1]);
  for (unsigned s = 0; s < count; s++) {
    print_message("lane set %s: tested\n", sets[s]->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lane_sets_are_chosen_by_name),
      cmocka_unit_test(forms_are_found_whole_and_nothing_else),
      cmocka_unit_test(every_operation_has_a_handler_and_a_test),
      cmocka_unit_test(packing_moves_each_part),
      cmocka_unit_test(fused_pairs_compare_and_branch),
      cmocka_unit_test(every_form_computes_what_the_reference_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
