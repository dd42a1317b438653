// SPDX-License-Identifier: Apache-2.0
//
// bench: nanoseconds of each arithmetic handler in each lane set, over a warm
// frame with every lane executing, beside the plain lane set.
//
//   bench_handlers [--all | ID...]
//
// IDs are those of src/soft/code/soft_ops_alu.inc; without any, the hot ones.
// --all goes to standard error as `id set ns` lines, for finding slow ones.
#include <stdio.h>
#include <string.h>

#include "bench_report.h"
#include "soft/code/soft_engine.h"
#include "soft/decode/soft_forms.h"

enum { SLOTS = 8, RUNS = 9, BATCH = 4000 };

static const char* const kHot[] = {
    "mov_b32",          "mov_b64",        "add_b32",         "add_b64",
    "mul_lo_b32",       "mad_lo_b32",     "mul_wide_u32",    "mul_wide_s32",
    "mad_wide_s32",     "mul_hi_u32",     "mul_lo_b64",      "and_b32",
    "xor_b32",          "lop3_b32",       "shl_b32",         "shl_b64",
    "shr_u32",          "shr_s32",        "shf_l_wrap",      "min_s32",
    "div_u32",          "rem_u32",        "div_s32",         "div_u64",
    "add_cc_b32",       "addc_b32",       "popc_b32",        "clz_b32",
    "bfe_u32",          "prmt_b32",       "selp_b32",        "selp_b64",
    "setp_lt_s32",      "setp_ge_u32",    "setp_eq_b32",     "setp_lt_u64",
    "setp_gt_f32",      "setp_gt_f64",    "add_f32",         "mul_f32",
    "fma_f32",          "fma_ftz_f32",    "add_rz_f32",      "add_sat_f32",
    "min_f32",          "div_f32",        "sqrt_f32",        "rcp_approx_f32",
    "ex2_approx_f32",   "lg2_approx_f32", "sin_approx_f32",  "tanh_approx_f32",
    "rsqrt_approx_f32", "add_f64",        "mul_f64",         "fma_f64",
    "div_f64",          "cvt_rn_f32_s32", "cvt_rn_f32_u32",  "cvt_rzi_s32_f32",
    "cvt_rni_s32_f32",  "cvt_rn_f32_f64", "cvt_f64_f32",     "cvt_b64_s32",
    "cvt_b64_u32",      "cvt_b32_b64",    "cvt_rzi_s64_f64", "cvt_rn_f64_s64",
};

static _Alignas(64) uint8_t frame[SLOTS * KILNI_SOFT_SLOT64_BYTES];
static uint32_t predicates[8];

// Sources that are ordinary numbers both as integers and as floats.
static void warm(const char* signature) {
  for (unsigned slot = 0; slot < SLOTS; slot++) {
    char letter =
        slot > 0 && slot <= strlen(signature + 2) ? signature[1 + slot] : 'w';
    for (unsigned i = 0; i < KILNI_SOFT_LANES; i++) {
      uint8_t* at = frame + slot * KILNI_SOFT_SLOT64_BYTES;
      float x = 1.5f + (float)i * 0.37f + (float)slot;
      double y = x;
      if (letter == 'x') {
        memcpy(at + 8 * i, &y, 8);
      } else {
        memcpy(at + 4 * i, &x, 4);
      }
    }
  }
  memset(predicates, 0x5a, sizeof(predicates));
  predicates[0] = UINT32_MAX;
}

static double measure(kilni_soft_fn_t fn, kilni_soft_op_t op) {
  const char* signature = kilni_soft_op_signature(op);
  warm(signature);
  kilni_soft_warp_t warp = {
      .area = {frame, frame}, .pred = predicates, .mask = KILNI_SOFT_FULL_MASK};
  kilni_soft_instr_t instr = {.fn = fn, .op = (uint16_t)op, .aux = 0xe2};
  uint32_t* words[] = {&instr.a, &instr.b, &instr.c, &instr.aux};
  for (unsigned s = 0; s < 4 && signature[2] && signature[2 + s]; s++) {
    char letter = signature[2 + s];
    if (letter == 'p') *words[s] = 1 + s;
    if (letter == 'w' || letter == 'x') {
      *words[s] = (1 + s) * KILNI_SOFT_SLOT64_BYTES;
    }
  }
  instr.d = signature[0] == 'p' ? 6 : 6 * KILNI_SOFT_SLOT64_BYTES;
  double best = 1e30;
  for (int run = 0; run < RUNS; run++) {
    uint64_t start = bench_time_ns();
    for (int i = 0; i < BATCH; i++) fn(&warp, &instr);
    double ns = (double)(bench_time_ns() - start) / BATCH;
    if (ns < best) best = ns;
  }
  return best;
}

static int lane_sets(const kilni_soft_lane_set_t** sets) {
  static const char* const names[] = {"plain", "avx2", "avx512"};
  int count = 0;
  for (int i = 0; i < 3; i++) {
    sets[count] = kilni_soft_lanes_choose(names[i]);
    if (sets[count]) count++;
  }
  return count;
}

static void report(bench_report_t* out, kilni_soft_op_t op) {
  const kilni_soft_lane_set_t* sets[3];
  int count = lane_sets(sets);
  double plain = measure(sets[0]->fn[op], op);
  for (int s = 0; s < count; s++) {
    char name[BENCH_NAME_BYTES];
    snprintf(name, sizeof(name), "%s/%s", kilni_soft_op_id(op), sets[s]->name);
    double ns = s ? measure(sets[s]->fn[op], op) : plain;
    bench_report_less(out, name, "ns", ns, s ? "plain" : NULL, plain);
  }
}

static bool is_alu(unsigned op) {
  static const bool ops[KILNI_SOFT_OP_COUNT] = {
#define KILNI_SOFT_OP(id, family, signature, forms) \
  [KILNI_SOFT_OP_##id] = signature[0] != '*',
#include "soft/code/soft_ops_alu.inc"
#undef KILNI_SOFT_OP
  };
  return ops[op];
}

static void print_all(void) {
  const kilni_soft_lane_set_t* sets[3];
  int count = lane_sets(sets);
  for (unsigned op = 0; op < KILNI_SOFT_OP_COUNT; op++) {
    if (!is_alu(op)) continue;
    for (int s = 0; s < count; s++) {
      fprintf(stderr, "%s %s %.2f\n", kilni_soft_op_id(op), sets[s]->name,
              measure(sets[s]->fn[op], op));
    }
  }
}

int main(int argc, char** argv) {
  static bench_report_t out = {.device = "soft"};
  if (argc == 2 && strcmp(argv[1], "--all") == 0) {
    print_all();
    return 0;
  }
  const char* const* ids = argc > 1 ? (const char* const*)argv + 1 : kHot;
  int count = argc > 1 ? argc - 1 : (int)(sizeof(kHot) / sizeof(kHot[0]));
  for (int i = 0; i < count; i++) {
    unsigned op = 0;
    while (op < KILNI_SOFT_OP_COUNT &&
           (!is_alu(op) || strcmp(kilni_soft_op_id(op), ids[i]) != 0)) {
      op++;
    }
    if (op == KILNI_SOFT_OP_COUNT) {
      fprintf(stderr, "bench_handlers: no operation \"%s\"\n", ids[i]);
      return 2;
    }
    report(&out, op);
  }
  bench_report_print(&out);
  return 0;
}
