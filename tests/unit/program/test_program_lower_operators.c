// SPDX-License-Identifier: Apache-2.0
//
// program: every operator at every type, lowered, on edges and random values,
// beside the evaluator. The lists are those of kiln/program_operators.h: an
// operator that is added there is tested here.
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program/ir/program_types.h"
#include "program_machine.h"

enum { COUNT = 1500 };

static void check(const char* text, uint64_t seed) {
  const uint64_t counts[] = {COUNT, COUNT, COUNT, COUNT};
  machine_check_way(text, counts, NULL, seed, 75, 0);
  machine_check_way(text, counts, NULL, seed + 1, 90,
                    KILN_PROGRAM_WITHOUT_STRENGTH);
}

static void unary(uint32_t op, uint32_t type) {
  uint32_t out = kilni_program_type_of_unary(op, type);
  if (out == 0) return;
  const char* spelling = kilni_program_unary_operators[op].spelling;
  const char* t = kilni_program_type_name(type);
  char text[512];
  snprintf(text, sizeof(text),
           "program p(x: in %s[], o: out %s[length(x)]) work length(x)\n"
           "{ let i = global_id.x; o[i] = %s(x[i]); }\n",
           t, kilni_program_type_name(out), spelling);
  check(text, 100 * op + type);
}

static void binary(uint32_t op, uint32_t left, uint32_t right) {
  uint32_t out = kilni_program_type_of_binary(op, left, right);
  if (out == 0) return;
  const char* spelling = kilni_program_binary_operators[op].spelling;
  bool called = isalpha((unsigned char)spelling[0]) != 0;
  char text[512];
  snprintf(text, sizeof(text),
           "program p(x: in %s[], y: in %s[], o: out %s[length(x)])\n"
           "  work length(x)\n"
           "{ let i = global_id.x; o[i] = %s(x[i] %s y[i]); }\n",
           kilni_program_type_name(left), kilni_program_type_name(right),
           kilni_program_type_name(out), called ? spelling : "",
           called ? "," : spelling);
  check(text, 10000 + 1000 * op + 20 * left + right);
}

static void test_unary(void** state) {
  (void)state;
  for (uint32_t op = 0; op < KILNI_UNARY_COUNT; op++) {
    for (uint32_t type = 1; type < KILNI_TYPE_COUNT; type++) unary(op, type);
  }
}

static void test_binary(void** state) {
  (void)state;
  for (uint32_t op = 0; op < KILNI_BINARY_COUNT; op++) {
    for (uint32_t type = 1; type < KILNI_TYPE_COUNT; type++) {
      if (!kilni_program_binary_is_shift(op)) {
        binary(op, type, type);
        continue;
      }
      binary(op, type, KILN_PROGRAM_TYPE_U32);
      binary(op, type, KILN_PROGRAM_TYPE_U8);
      binary(op, type, KILN_PROGRAM_TYPE_U64);
    }
  }
}

// f16 by way of f32, where rounding once gives another value: folded and not.
static void test_fma_of_halves(void** state) {
  (void)state;
  const uint64_t counts[] = {1, 3};
  machine_check(
      "program p(z: in u16[], o: out u16[]) work 1 block 32 {\n"
      "  let a = bitcast_f16(15392u16); let b = bitcast_f16(15376u16);\n"
      "  let none = z[0] & 0u16;\n"
      "  let x = bitcast_f16(bitcast_u16(a) | none);\n"
      "  o[0] = bitcast_u16(fma(a, b, bitcast_f16(1u16)));\n"
      "  o[1] = bitcast_u16(fma(x, b, bitcast_f16(1u16 | none)));\n"
      "  if o[0] != 15408u16 || o[1] != 15408u16 { trap(1, 1u64); }\n"
      "}\n",
      counts, NULL, 1);
}

static void test_casts(void** state) {
  (void)state;
  char text[512];
  for (uint32_t from = 1; from < KILNI_TYPE_COUNT; from++) {
    for (uint32_t to = 1; to < KILNI_TYPE_COUNT; to++) {
      bool bits =
          kilni_program_type_bytes(from) == kilni_program_type_bytes(to) &&
          from != KILN_PROGRAM_TYPE_BOOL && to != KILN_PROGRAM_TYPE_BOOL;
      for (uint32_t way = 0; way < (bits ? 2U : 1U); way++) {
        const char* t = kilni_program_type_name(to);
        snprintf(text, sizeof(text),
                 "program p(x: in %s[], o: out %s[length(x)]) work length(x)\n"
                 "{ let i = global_id.x; o[i] = %s%s(x[i]); }\n",
                 kilni_program_type_name(from), t, way == 0 ? "" : "bitcast_",
                 t);
        check(text, 777 + 20 * from + to);
      }
    }
  }
}

static void test_three_operands(void** state) {
  (void)state;
  char text[512];
  for (uint32_t type = 1; type < KILNI_TYPE_COUNT; type++) {
    const char* t = kilni_program_type_name(type);
    snprintf(text, sizeof(text),
             "program p(c: in bool[], x: in %s[], y: in %s[],\n"
             "          o: out %s[length(x)]) work length(x)\n"
             "{ let i = global_id.x; o[i] = select(c[i], x[i], y[i]); }\n",
             t, t, t);
    check(text, 50 + type);
    if (kilni_program_type_class(type) != KILNI_CLASS_FLOAT) continue;
    snprintf(text, sizeof(text),
             "program p(z: in %s[], x: in %s[], y: in %s[],\n"
             "          o: out %s[length(x)]) work length(x)\n"
             "{ let i = global_id.x; o[i] = fma(x[i], y[i], z[i]); }\n",
             t, t, t, t);
    check(text, 70 + type);
  }
}

// Divisors that are constants take other ways than those that are not.
static void test_constant_divisors(void** state) {
  (void)state;
  static const char* const kDivisors[] = {"1",  "2",  "3",   "5",   "7",  "8",
                                          "10", "11", "100", "125", "127"};
  char text[512];
  for (uint32_t type = 1; type < KILNI_TYPE_COUNT; type++) {
    if (!kilni_program_type_is_integer(type)) continue;
    const char* t = kilni_program_type_name(type);
    bool sign = kilni_program_type_class(type) == KILNI_CLASS_SIGNED;
    for (uint32_t d = 0; d < sizeof(kDivisors) / sizeof(kDivisors[0]); d++) {
      for (uint32_t negative = 0; negative < (sign ? 2U : 1U); negative++) {
        snprintf(text, sizeof(text),
                 "program p(x: in %s[], o: out %s[2 * length(x)])\n"
                 "  work length(x)\n"
                 "{ let i = global_id.x;\n"
                 "  o[2 * i] = x[i] / %s%s%s;\n"
                 "  o[2 * i + 1] = x[i] %% %s%s%s; }\n",
                 t, t, negative ? "-" : "", kDivisors[d], t,
                 negative ? "-" : "", kDivisors[d], t);
        const uint64_t counts[] = {COUNT, 2 * COUNT};
        machine_check_way(text, counts, NULL, 31 * d + type, 75, 0);
      }
    }
  }
}

static void test_wide_divisors(void** state) {
  (void)state;
  static const char* const kTexts[] = {"4294967295u32",
                                       "2147483648u32",
                                       "641u32",
                                       "4000000000u32",
                                       "18446744073709551615u64",
                                       "6148914691236517205u64",
                                       "9223372036854775809u64",
                                       "274177u64"};
  char text[512];
  for (uint32_t d = 0; d < sizeof(kTexts) / sizeof(kTexts[0]); d++) {
    const char* t = kTexts[d] + strlen(kTexts[d]) - 3;
    snprintf(text, sizeof(text),
             "program p(x: in %s[], o: out %s[2 * length(x)]) work length(x)\n"
             "{ let i = global_id.x; o[2 * i] = x[i] / %s;\n"
             "  o[2 * i + 1] = x[i] %% %s; }\n",
             t, t, kTexts[d], kTexts[d]);
    const uint64_t counts[] = {COUNT, 2 * COUNT};
    machine_check_way(text, counts, NULL, d, 75, 0);
  }
}

// ptxas 12.9 and 13.0 make one instruction of bfe.s32 and a cvt from u32, one
// that takes its operand as signed: u32(i8(x)) would become a negative float.
static void test_signs_are_not_extended_by_fields(void** state) {
  (void)state;
  char* ptx = machine_ptx(
      "program p(x: in u32[], o: out f64[length(x)], q: out f32[length(x)])\n"
      "  work length(x) { let i = global_id.x;\n"
      "  o[i] = f64(u32(i8(x[i]))); q[i] = f32(u32(i16(x[i]))); }",
      75, 0);
  assert_int_equal(machine_count(ptx, "bfe.s32"), 0);
  assert_true(machine_count(ptx, "cvt.s32.s8") > 0);
  free(ptx);
}

// The operand of that number, from 0, of the instruction at `line`; "" if it
// has no such one.
static void operand_of(const char* line, uint32_t which, char out[32]) {
  const char* end = line + strcspn(line, ";\n");
  const char* at = strchr(line, ' ');
  size_t size = 0;
  for (; at != NULL && at < end && which != 0; which--) {
    at = memchr(at, ',', (size_t)(end - at));
    if (at != NULL) at++;
  }
  if (at != NULL && at < end) {
    at += strspn(at, " ");
    size = strcspn(at, ",;\n");
    memcpy(out, at, size < 31 ? size : 31);
  }
  out[size < 31 ? size : 31] = '\0';
}

// Whether `name`, a register, is 0 - x or x * -1.
static bool is_minus(const char* ptx, const char* name) {
  char operand[32];
  for (const char* line = ptx; line != NULL; line = strchr(line, '\n')) {
    line += strspn(line, "\n\t ");
    const bool sub = strncmp(line, "sub.", 4) == 0;
    if (!sub && strncmp(line, "mul.lo.", 7) != 0) continue;
    operand_of(line, 0, operand);
    if (strcmp(operand, name) != 0) continue;
    operand_of(line, sub ? 1 : 2, operand);
    return sub ? strcmp(operand, "0") == 0
               : strcmp(operand, "-1") == 0 ||
                     strcmp(operand, "0xffffffff") == 0;
  }
  return false;
}

// How many a `min` or `max` of 32 bits has for its last operand that are; and
// how many of those there are at all.
static uint32_t minus_behind(const char* ptx, uint32_t* out_all) {
  static const char* const kNames[] = {"min.s32 ", "max.s32 ", "min.u32 ",
                                       "max.u32 "};
  uint32_t found = 0;
  char operand[32];
  *out_all = 0;
  for (const char* line = ptx; line != NULL; line = strchr(line, '\n')) {
    line += strspn(line, "\n\t ");
    for (uint32_t n = 0; n < sizeof(kNames) / sizeof(kNames[0]); n++) {
      if (strncmp(line, kNames[n], 8) != 0) continue;
      operand_of(line, 2, operand);
      found += is_minus(ptx, operand);
      (*out_all)++;
    }
  }
  return found;
}

enum { TEXT_BYTES = 512 };

// An expression of three elements.
static void write_of_three(char text[TEXT_BYTES], const char* type,
                           const char* body) {
  snprintf(text, TEXT_BYTES,
           "type T = %s;\n"
           "program p(x: in T[], y: in T[], z: in T[],\n"
           "          o: out T[length(x)]) work length(x)\n"
           "{ let i = global_id.x;\n"
           "  let a = x[i]; let b = y[i]; let c = z[i];\n"
           "  o[i] = %s; }\n",
           type, body);
}

static void check_no_minus(const char* body, uint32_t way) {
  static const uint64_t counts[] = {COUNT, COUNT, COUNT, COUNT};
  char text[TEXT_BYTES];
  uint32_t all = 0;
  write_of_three(text, way % 2 != 0 ? "i32" : "u32", body);
  const uint32_t sm = way / 2 != 0 ? 90 : 75;
  char* ptx = machine_ptx(text, sm, 0);
  assert_int_equal(minus_behind(ptx, &all), 0);
  assert_true(all != 0);
  // A comparison and what it chooses would be another `min` to ptxas.
  if (strstr(body, "select") != NULL) {
    assert_int_equal(machine_count(ptx, "selp"), 0);
  }
  free(ptx);
  machine_check_way(text, counts, NULL, way, sm, 0);
}

// ptxas 13.0 makes one instruction of max(a, max(b, -c)) on sm_90 and later,
// and leaves the minus away where the inner one's second operand has it. It
// makes a maximum of a selection of the greater one, too.
static void test_no_minus_is_last(void** state) {
  (void)state;
  static const char* const kBodies[] = {
      "max(a, max(b, -c))",
      "max(max(b, -c), a)",
      "min(a, min(b, -c))",
      "max(a, max(b, 0 - c))",
      "max(a, max(b, c * T(-1)))",
      "min(a, min(b, T(-1) * c))",
      "max(a - b, max(b - a, -c))",
      "max(a, max(-c, b))",
      "max(a, max(-b, -c))",
      "max(a, T(abs_diff(b, c)))",
      "max(a, max(a - b, b - a))",
      "max(a, max(b, T(i32(u32(-c)))))",
      "min(a, select(b < -c, b, -c))",
      "min(a, select(b <= -c, b, -c))",
      "min(a, select(-c > b, b, -c))",
      "max(a, select(-c < b, b, -c))",
      "max(a, select(b >= -c, b, -c))",
      "max(a, select(!(b < -c), b, -c))",
      "max(a, select(b > c * T(-1), b, c * T(-1)))",
      "min(a, T(select(u32(b) < u32(-c), i32(b), i32(-c))))",
  };
  for (uint32_t k = 0; k < sizeof(kBodies) / sizeof(kBodies[0]); k++) {
    for (uint32_t way = 0; way < 4; way++) check_no_minus(kBodies[k], way);
  }
}

// Forms that ptxas 13.0 gets wrong on sm_90 (found by live_program_diff nests),
// each with what stands for it: `with` is in the PTX, `without` is not.
static void test_forms_that_ptxas_gets_wrong(void** state) {
  (void)state;
  static const struct {
    const char* type;
    const char* body;
    const char* with;
    const char* without;
  } kCases[] = {
      // A difference whose first number is a high half of a product.
      {"i64", "T(mul_high(u32(a), u32(b))) - c", "not.b64", "sub.s64"},
      {"u64", "T(mul_high(u32(a), u32(b))) - c", "not.b64", "sub.u64"},
      {"i64", "sub_sat(T(mul_high(u32(a), u32(b))), c)", "not.b64", "sub.s64"},
      {"i64", "T(u64(mul_high(u32(a), u32(b)))) - c", "not.b64", "sub.s64"},
      {"u64", "T(mul_high(u32(a), u32(b))) - T(5)", "add.u64", "sub.u64"},
      {"u64", "c - T(mul_high(u32(a), u32(b)))", "sub.u64", "not.b64"},
      // Whether what is clamped is what it is clamped by.
      {"i32", "select(max(min(a, b), T(0)) == b, c, a)", "prmt.b32", "%h"},
      {"i32", "select(b != max(T(0), max(a, b)), c, a)", "prmt.b32", "%h"},
      {"i32", "select(max(min(a, b), T(0)) == c, c, a)", "max.s32", "prmt.b32"},
      {"i32", "select(max(max(a, T(0)), T(0)) == T(0), c, a)", "max.s32",
       "prmt.b32"},
      // A conversion of one of two constants.
      {"i32", "T(f64(u8(a != b)))", "selp.b32", "cvt.rzi"},
      {"u8", "T(f64(u8(a < b)) * 1.0f64) + T(f32(u8(a > c)))", "selp.b32",
       "cvt.rzi.u32.f32"},
  };
  static const uint64_t counts[] = {COUNT, COUNT, COUNT, COUNT};
  char text[TEXT_BYTES];
  for (uint32_t k = 0; k < sizeof(kCases) / sizeof(kCases[0]); k++) {
    write_of_three(text, kCases[k].type, kCases[k].body);
    char* ptx = machine_ptx(text, 90, 0);
    if (machine_count(ptx, kCases[k].with) == 0 ||
        machine_count(ptx, kCases[k].without) != 0) {
      fail_msg("%s, not %s, in\n%s", kCases[k].with, kCases[k].without, ptx);
    }
    free(ptx);
    machine_check_way(text, counts, NULL, k, 90, 0);
  }
}

// The same twice is the same once.
static void test_extremes_again(void** state) {
  (void)state;
  static const char* const kBodies[] = {
      "max(max(a, T(0)), T(0))", "max(T(0), max(T(0), a))", "max(b, max(a, b))",
      "min(min(a, b), a)",       "min(a, min(b, a))",
  };
  static const uint64_t counts[] = {COUNT, COUNT, COUNT};
  char text[512];
  for (uint32_t k = 0; k < sizeof(kBodies) / sizeof(kBodies[0]); k++) {
    snprintf(text, sizeof(text),
             "type T = i32;\n"
             "program p(x: in T[], y: in T[], o: out T[length(x)])\n"
             "  work length(x) block 32\n"
             "{ barrier; let i = global_id.x; let a = x[i]; let b = y[i];\n"
             "  o[i] = %s; }\n",
             kBodies[k]);
    char* ptx = machine_ptx(text, 90, 0);
    assert_int_equal(
        machine_count(ptx, "max.s32") + machine_count(ptx, "min.s32"), 1);
    free(ptx);
    machine_check_way(text, counts, NULL, k, 90, 0);
  }
}

int main(int argc, char** argv) {
  machine_collect(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unary),
      cmocka_unit_test(test_binary),
      cmocka_unit_test(test_casts),
      cmocka_unit_test(test_fma_of_halves),
      cmocka_unit_test(test_three_operands),
      cmocka_unit_test(test_constant_divisors),
      cmocka_unit_test(test_wide_divisors),
      cmocka_unit_test(test_signs_are_not_extended_by_fields),
      cmocka_unit_test(test_no_minus_is_last),
      cmocka_unit_test(test_forms_that_ptxas_gets_wrong),
      cmocka_unit_test(test_extremes_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
