// SPDX-License-Identifier: Apache-2.0
//
// program: programs from text and back, where nothing may go wrong.
#include "program_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"

const char kit_everything[] =
    "// a comment\n"
    "const TILE = 16u32; // to the end\n"
    "const AREA = TILE * TILE;\n"
    "const HALF = 0.5;\n"
    "type T = f32;\n"
    "fn square(x: f32) -> f32 { return x * x; }\n"
    "fn sum(v: in f32[], n: u32) -> f32 {\n"
    "  private acc: f32[4];\n"
    "  var s = 0.0;\n"
    "  for k in 0..n { s += v[k]; acc[k & 3] = s; }\n"
    "  return s;\n"
    "}\n"
    "fn mark(v: inout u32[], i: u32) { v[i] = 1; }\n"
    "program everything(a: f32, x: in T[], y: inout f32[length(x)], n: u32,\n"
    "    h: inout u32[n * 2], c: uniform f16[8], r: resident i64[],\n"
    "    o: out bool[length(r) + 1])\n"
    "  work (length(x), (n + 1) / 2)\n"
    "  block (TILE, 16)\n"
    "{\n"
    "  shared tile: f32[AREA];\n"
    "  private acc: u8[8];\n"
    "  private d: f32[4]; private m: f16[8]; private v: f16[4];\n"
    "  let i = global_id.x;\n"
    "  var s = HALF;\n"
    "  var t: f16 = 1.5;\n"
    "  var big: i64 = -9223372036854775808;\n"
    "  y[i] = fma(a, x[i], y[i]);\n"
    "  s += y[i];\n"
    "  acc[lane] <<= 3;\n"
    "  if i < n { s = -s; } else if i == n { s = s - -1.0; } else { s *= 2; }\n"
    "  for k in 0..n step 2 unroll { if k > 7 { break; } continue; }\n"
    "  for k in -3..i32(n) { big += i64(k); }\n"
    "  while s < inf_f32 && !is_nan(s) { s = s * 2.0 + 1; }\n"
    "  barrier; grid_barrier; subgroup_barrier;\n"
    "  matrix_multiply_accumulate(d, m, v);\n"
    "  async_copy(tile, 0, x, block_id.x * 256, 256) tag 1; async_wait 1;\n"
    "  let old = atomic_add(y[i], 1.0);\n"
    "  atomic_store(h[i], 7, release, system);\n"
    "  atomic_max(tile[lane], old, acq_rel);\n"
    "  let was = atomic_compare_exchange(h[i], 0, 5u32, device);\n"
    "  let votes = ballot(i < n);\n"
    "  let near = shuffle(s, lane + 1);\n"
    "  let total = scan_add(was);\n"
    "  mark(h, i);\n"
    "  o[0] = bool(votes) || (total & 1) == 0;\n"
    "  t = f16(near) + f16(sum(x, n)) * 0x1.8p-1 - c[0];\n"
    "  r[i] = select(i % 2 == 0, big, bitcast_i64(2.5f64)) >> 3u8;\n"
    "  h[i] = min(popcount(big), rotate_left(h[0], 5)) | ~i ^ i << 2 & 15;\n"
    "  y[i] = square(sqrt(a)) - (a - (s - f32(t)));\n"
    "  h[1] = u32(length64(x)) + work_size.y + subgroup;\n"
    "  if i > n { trap(3, 0x1f); }\n"
    "  return;\n"
    "}\n";

kiln_program_t* kit_parse(const char* text) {
  kiln_program_t* program;
  kiln_program_report_t* report;
  kiln_status_t status =
      kiln_program_parse(kilni_base_sv(text), NULL, &report, &program);
  if (!kiln_status_is_ok(status)) {
    fail_msg("%s\n%s", kiln_status_message(status),
             kiln_program_report_text(report));
  }
  kiln_program_report_release(report);
  return program;
}

char* kit_print(const kiln_program_t* program) {
  size_t length;
  kiln_status_t status = kiln_program_print(program, 0, NULL, &length);
  assert_true(kiln_status_is_ok(status));
  char* text = malloc(length + 1);
  assert_non_null(text);
  status = kiln_program_print(program, length + 1, text, NULL);
  assert_true(kiln_status_is_ok(status));
  return text;
}
