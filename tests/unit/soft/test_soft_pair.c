// SPDX-License-Identifier: Apache-2.0
//
// soft: two operations that the decoder makes one compute, count and fault
// like the two. Every kernel runs as it is decoded and once more with nothing
// combined; where a pair must not be combined, it is not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "soft/code/soft_code_inside.h"
#include "soft_kit.h"

enum { BLOCKS = 24, BLOCK = 96, THREADS = BLOCKS * BLOCK, TEXT = 8192 };

static soft_kit_t kit;
static kilni_soft_lane_set_t apart;  // the kit's lane set, nothing combined
static uint64_t in[3][THREADS];
static uint64_t together_out[THREADS];
static uint64_t apart_out[THREADS];

// A thread reads three 64-bit values (rd10 to rd12, their low halves r10 to
// r12 and f10 to f12), runs `body` where the mask of its block says so, and
// writes rd21, r21 and f21 mixed.
static const char head[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, "
    ".param .u64 out)\n{\n"
    ".reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n"
    ".reg .f32 %f<40>;\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
    "mad.lo.s32 %r4, %r1, %r2, %r3;\ncvt.u64.u32 %rd1, %r4;\n"
    "shl.b64 %rd2, %rd1, 3;\n"
    "ld.param.u64 %rd3, [a];\nadd.s64 %rd3, %rd3, %rd2;\n"
    "ld.param.u64 %rd4, [b];\nadd.s64 %rd4, %rd4, %rd2;\n"
    "ld.param.u64 %rd5, [c];\nadd.s64 %rd5, %rd5, %rd2;\n"
    "ld.param.u64 %rd6, [out];\nadd.s64 %rd6, %rd6, %rd2;\n"
    "ld.global.u64 %rd10, [%rd3];\nld.global.u64 %rd11, [%rd4];\n"
    "ld.global.u64 %rd12, [%rd5];\n"
    "cvt.u32.u64 %r10, %rd10;\ncvt.u32.u64 %r11, %rd11;\n"
    "cvt.u32.u64 %r12, %rd12;\nmov.b32 %f10, %r10;\nmov.b32 %f11, %r11;\n"
    "mov.b32 %f12, %r12;\n"
    "mov.u64 %rd21, 7;\nmov.u32 %r21, 8;\nmov.f32 %f21, 0f3F000000;\n"
    // Whole warps, every third lane not, one lane only.
    "rem.u32 %r5, %r1, 3;\nrem.u32 %r6, %r3, 3;\n"
    "setp.eq.u32 %p1, %r5, 1;\nsetp.eq.u32 %p2, %r6, 1;\n"
    "and.pred %p3, %p1, %p2;\n@%p3 bra DONE;\n"
    "setp.eq.u32 %p1, %r5, 2;\nsetp.ne.u32 %p2, %r3, 40;\n"
    "and.pred %p3, %p1, %p2;\n@%p3 bra DONE;\n";
static const char tail[] =
    "DONE:\nmov.b32 %r30, %f21;\nshl.b32 %r31, %r21, 7;\n"
    "xor.b32 %r32, %r31, %r30;\ncvt.u64.u32 %rd30, %r32;\n"
    "xor.b64 %rd31, %rd21, %rd30;\nst.global.u64 [%rd6], %rd31;\nret;\n}\n";

static uint64_t next(uint64_t* seed) {
  *seed += 0x9e3779b97f4a7c15u;
  uint64_t z = *seed;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Random bits, numbers of edges, and floats of like sizes, whose products and
// sums round differently once and twice.
static void fill_inputs(void) {
  static const uint32_t edges[] = {
      0,          1,          31,         32,         33,
      63,         64,         0xffff,     0x7fffffff, 0x80000000,
      0xffffffff, 2,          0x7f800000, 0xff800000, 0x7fc12345,
      0x00000001, 0x80000001, 0x3f800001, 0xbf7fffff, 0x7f7fffff};
  enum { EDGES = sizeof(edges) / sizeof(edges[0]) };
  uint64_t seed = 3;
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < THREADS; i++) {
      uint64_t r = next(&seed);
      uint32_t low = (uint32_t)r;
      if (r >> 62 == 0) low = edges[(r >> 32) % EDGES];
      if (r >> 62 == 1) low = (low & 0x80ffffffu) | 0x3f000000u;
      if (r >> 62 == 2) low %= 70;
      in[k][i] = (r & 0xffffffff00000000u) | low;
    }
  }
}

// Runs the loaded module; returns the fault.
static kilni_soft_fault_kind_t run(uint64_t* out) {
  uint64_t params[4];
  for (int k = 0; k < 3; k++) {
    params[k] = soft_kit_buffer(&kit, in[k], sizeof(in[k]));
  }
  params[3] = soft_kit_buffer(&kit, NULL, sizeof(together_out));
  const uint32_t grid[3] = {BLOCKS, 1, 1};
  const uint32_t block[3] = {BLOCK, 1, 1};
  kilni_soft_fault_kind_t kind =
      soft_kit_launch(&kit, "k", grid, block, 0, params, sizeof(params));
  soft_kit_read(&kit, params[3], out, sizeof(together_out));
  return kind;
}

static uint32_t count_ops(uint32_t op) {
  const kilni_soft_function_t* f = &kit.code->functions[0];
  uint32_t count = 0;
  for (uint32_t i = 0; i < f->instr_count; i++) count += f->code[i].op == op;
  return count;
}

static void load(const char* body, bool combined) {
  static char text[TEXT];
  snprintf(text, sizeof(text), "%s%s%s", head, body, tail);
  const kilni_soft_lane_set_t* lanes = kit.lanes;
  if (!combined) {
    apart = *lanes;
    apart.combines = 0;
    kit.lanes = &apart;
  }
  soft_kit_load(&kit, text);
  kit.lanes = lanes;
}

// Both ways, same bytes, same count of thread-instructions.
static void check_same(const char* body) {
  load(body, false);
  if (run(apart_out) != KILNI_SOFT_FAULT_NONE) fail_msg("%s", kit.report);
  uint64_t executed = kit.executed;
  load(body, true);
  if (run(together_out) != KILNI_SOFT_FAULT_NONE) {
    fail_msg("%s", kit.report);
  }
  if (kit.executed != executed) {
    fail_msg("%s: %llu thread-instructions instead of %llu", body,
             (unsigned long long)kit.executed, (unsigned long long)executed);
  }
  for (int i = 0; i < THREADS; i++) {
    if (together_out[i] == apart_out[i]) continue;
    fail_msg("%s lanes, thread %d: 0x%llx instead of 0x%llx of\n%s",
             kit.lanes->name, i, (unsigned long long)together_out[i],
             (unsigned long long)apart_out[i], body);
  }
}

// A pair and what must come of it.
typedef struct pair_t {
  const char* body;
  kilni_soft_op_t op;
} pair_t;

#define W(op1, op2, both)                                     \
  {op1 " %rd20, %r10, %r11;\n" op2 " %rd21, %rd10, %rd20;\n", \
   KILNI_SOFT_OP_##both}
#define R(op1, op2, both) \
  {op1 " %r20, %r10, %r11;\n" op2 " %r21, %r20, %r12;\n", KILNI_SOFT_OP_##both}
#define F(op1, op2, both) \
  {op1 " %f20, %f10, %f11;\n" op2 " %f21, %f20, %f12;\n", KILNI_SOFT_OP_##both}
#define G(op1, op2, both) \
  {op1 " %f20, %f10, %f11;\n" op2 " %f21, %f12, %f20;\n", KILNI_SOFT_OP_##both}

static const pair_t pairs[] = {
    W("mul.wide.s32", "add.s64", mad_wide_s32),
    W("mul.wide.u32", "add.u64", mad_wide_u32),
    {"shl.b64 %rd20, %rd11, %r12;\nadd.s64 %rd21, %rd20, %rd10;\n",
     KILNI_SOFT_OP_shl_add_b64},
    {"mul.lo.s64 %rd20, %rd11, %rd12;\nadd.s64 %rd21, %rd20, %rd10;\n",
     KILNI_SOFT_OP_mad_lo_b64},
    {"add.s64 %rd20, %rd11, %rd12;\nadd.s64 %rd21, %rd10, %rd20;\n",
     KILNI_SOFT_OP_add_add_b64},
    {"cvt.s64.s32 %rd20, %r12;\nadd.s64 %rd21, %rd20, %rd10;\n",
     KILNI_SOFT_OP_add_wide_s32},
    {"cvt.u64.u32 %rd20, %r12;\nadd.s64 %rd21, %rd10, %rd20;\n",
     KILNI_SOFT_OP_add_wide_u32},
    R("shl.b32", "add.s32", shl_add_b32),
    R("mul.lo.s32", "add.u32", mad_lo_b32),
    R("add.s32", "add.s32", add_add_b32),
    F("mul.f32", "add.f32", mul_add_f32),
    G("mul.rn.f32", "add.rn.f32", mul_add_f32),
    F("mul.f32", "sub.f32", mul_sub_f32),
    G("mul.f32", "sub.f32", sub_mul_f32),
    F("mul.f32", "mul.f32", mul_mul_f32),
    F("add.f32", "add.f32", add_add_f32),
    F("add.f32", "mul.f32", add_mul_f32),
    G("sub.f32", "add.f32", diff_add_f32),
    G("sub.f32", "mul.f32", diff_mul_f32),
    {"neg.f32 %f20, %f11;\nadd.f32 %f21, %f10, %f20;\n", KILNI_SOFT_OP_sub_f32},
    // The second under a guard, others in between, and an own source as the
    // destination.
    {"setp.lt.s32 %p4, %r10, %r11;\nmul.wide.s32 %rd20, %r10, %r11;\n"
     "xor.b32 %r21, %r12, %r11;\n@%p4 add.s64 %rd21, %rd20, %rd10;\n",
     KILNI_SOFT_OP_mad_wide_s32},
    {"mul.wide.u32 %rd20, %r10, %r11;\nadd.s64 %rd10, %rd20, %rd10;\n"
     "mov.u64 %rd21, %rd10;\n",
     KILNI_SOFT_OP_mad_wide_u32},
};

static void pairs_compute_what_the_two_compute(void** state) {
  (void)state;
  fill_inputs();
  SOFT_KIT_EVERY_WAY(&kit) {
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
      load(pairs[i].body, false);
      uint32_t before = count_ops(pairs[i].op);
      load(pairs[i].body, true);
      if (count_ops(pairs[i].op) != before + 1) {
        fail_msg("not combined:\n%s", pairs[i].body);
      }
      check_same(pairs[i].body);
    }
  }
}

// The value in between is read again; a source changes; the first is guarded;
// the second stands behind a label.
static const pair_t strangers[] = {
    {"mul.f32 %f20, %f10, %f11;\nadd.f32 %f21, %f20, %f12;\n"
     "mov.b32 %r21, %f20;\n",
     KILNI_SOFT_OP_mul_add_f32},
    {"mul.f32 %f20, %f10, %f11;\nadd.f32 %f21, %f20, %f20;\n",
     KILNI_SOFT_OP_mul_add_f32},
    {"mul.wide.s32 %rd20, %r10, %r11;\nadd.s32 %r10, %r12, 5;\n"
     "add.s64 %rd21, %rd20, %rd10;\n",
     KILNI_SOFT_OP_mad_wide_s32},
    {"setp.lt.s32 %p4, %r10, %r11;\n@%p4 shl.b32 %r20, %r10, %r11;\n"
     "@%p4 add.s32 %r21, %r20, %r12;\n",
     KILNI_SOFT_OP_shl_add_b32},
    {"setp.lt.s32 %p4, %r10, %r11;\nshl.b32 %r20, %r10, 3;\n"
     "@%p4 bra MID;\nxor.b32 %r12, %r12, 99;\nMID:\n"
     "add.s32 %r21, %r20, %r12;\n",
     KILNI_SOFT_OP_shl_add_b32},
    {"shl.b32 %r20, %r10, 3;\nmov.u32 %r20, %r11;\n"
     "add.s32 %r21, %r20, %r12;\n",
     KILNI_SOFT_OP_shl_add_b32},
};

static void what_is_no_pair_stays_two(void** state) {
  (void)state;
  fill_inputs();
  SOFT_KIT_EVERY_WAY(&kit) {
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
      check_same(strangers[i].body);
      assert_int_equal(count_ops(strangers[i].op), 0);
    }
  }
}

static const char* const compares[] = {
    "eq.s32", "ne.u32", "lt.s32",  "le.s32",  "gt.s32",  "ge.s32",
    "lt.u32", "le.u32", "gt.u32",  "ge.u32",  "lt.f32",  "le.f32",
    "gt.f32", "ge.f32", "ltu.f32", "leu.f32", "gtu.f32", "geu.f32",
};

// A sum, its compare and the branch behind it run as one handler.
static void sums_compare_and_branch(void** state) {
  (void)state;
  fill_inputs();
  char body[512];
  SOFT_KIT_EVERY_WAY(&kit) {
    for (size_t i = 0; i < sizeof(compares) / sizeof(compares[0]); i++) {
      bool is_float = strchr(compares[i], 'f') != NULL;
      const char* r = is_float ? "f" : "r";
      for (int negated = 0; negated < 2; negated++) {
        snprintf(body, sizeof(body),
                 "add.%s %%%s21, %%%s10, %%%s11;\n"
                 "setp.%s %%p4, %%%s21, %%%s12;\n@%s%%p4 bra MID;\n"
                 "xor.b64 %%rd21, %%rd11, %%rd12;\nMID:\n"
                 "selp.b32 %%r22, 1, 2, %%p4;\nmul.wide.u32 %%rd22, %%r22, "
                 "77;\nxor.b64 %%rd21, %%rd21, %%rd22;\n",
                 is_float ? "f32" : "s32", r, r, r, compares[i], r, r,
                 negated ? "!" : "");
        check_same(body);
        const kilni_soft_function_t* f = &kit.code->functions[0];
        uint32_t fused = 0;
        for (uint32_t k = 0; k + 1 < f->instr_count; k++) {
          kilni_soft_fn_t fn = kit.lanes->sum_branch[f->code[k + 1].op];
          fused += fn && f->code[k].fn == fn;
        }
        if (fused != 1) fail_msg("%u fused of\n%s", fused, body);
      }
    }
  }
}

// An access that adds its own address reports what it did before.
static const char* const faults[] = {
    "mul.wide.s32 %rd20, %r3, 8;\nadd.s64 %rd22, %rd6, %rd20;\n"
    "st.global.u64 [%rd22+1048576], %rd21;\n",
    "mul.wide.u32 %rd20, %r3, 4;\nadd.s64 %rd22, %rd6, %rd20;\n"
    "ld.global.u64 %rd21, [%rd22];\n",
    "cvt.s64.s32 %rd20, %r10;\nadd.s64 %rd22, %rd20, %rd6;\n"
    "ld.u8 %r21, [%rd22+16777216];\n",
    "add.s64 %rd22, %rd11, %rd6;\nst.shared.u32 [%rd22], %r10;\n",
};

static void faults_tell_the_same(void** state) {
  (void)state;
  fill_inputs();
  soft_kit_way_t way;
  for (uint32_t w = 0; soft_kit_way(w, &way); w++) {
    if (way.workers != 1) continue;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
      kilni_soft_fault_t apart_fault;
      char apart_report[sizeof(kit.report)];
      soft_kit_open(&kit, &way);
      load(faults[i], false);
      assert_int_not_equal(run(apart_out), KILNI_SOFT_FAULT_NONE);
      apart_fault = kit.fault;
      memcpy(apart_report, kit.report, sizeof(apart_report));
      soft_kit_close(&kit);
      // The same addresses come again in a fresh memory.
      soft_kit_open(&kit, &way);
      load(faults[i], true);
      assert_int_not_equal(run(together_out), KILNI_SOFT_FAULT_NONE);
      assert_string_equal(kit.report, apart_report);
      assert_int_equal(kit.fault.line, apart_fault.line);
      assert_true(kit.fault.address == apart_fault.address);
      soft_kit_close(&kit);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pairs_compute_what_the_two_compute),
      cmocka_unit_test(what_is_no_pair_stays_two),
      cmocka_unit_test(sums_compare_and_branch),
      cmocka_unit_test(faults_tell_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
