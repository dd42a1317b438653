// SPDX-License-Identifier: Apache-2.0
//
// program: what shape code gets: vectors of a thread's elements, shared arrays
// that are not zeroed, branches without a jump; and where it must not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program_kit.h"
#include "program_machine.h"
#include "says.h"

static kiln_program_launch_t launch_of(const char* text, uint32_t elements,
                                       uint32_t without) {
  kiln_program_t* program = kit_parse(text);
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.elements = elements;
  options.without = without;
  kiln_program_code_t* code;
  kiln_status_t status = kiln_program_lower(program, &options, &code);
  if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  kiln_program_code_release(code);
  kiln_program_release(program);
  return launch;
}

// ---- Vectors ----

// Works of all sorts: whole blocks, tails, less than a vector, nothing; with
// addresses that are multiples of a vector and that are not.
static void check_works(const char* text, uint32_t elements) {
  static const uint64_t kCounts[] = {1024, 999, 5, 3};
  const uint64_t scalars[] = {7, 7, 7};
  // For ptxas, two kernels of each will do.
  size_t ways = machine_collects() ? 1 : sizeof(kCounts) / sizeof(kCounts[0]);
  for (size_t i = 0; i < ways; i++) {
    const uint64_t counts[] = {kCounts[i], kCounts[i], kCounts[i]};
    for (uint32_t offset = 0; offset < 2; offset++) {
      machine_shape(offset, elements);
      machine_check_way(text, counts, scalars, i + 1, 75 + 15 * offset, 0);
    }
  }
  machine_shape(0, 0);
}

static void test_vectors(void** state) {
  (void)state;
  static const struct {
    const char* type;
    const char* name;  // in memory
    uint32_t lanes;
    uint32_t elements;
  } kTypes[] = {
      {"u8", "u8", 4, 16},  {"i8", "s8", 4, 16},  {"u16", "u16", 4, 8},
      {"i16", "s16", 4, 8}, {"f16", "b16", 4, 8}, {"bf16", "u16", 4, 8},
      {"u32", "u32", 4, 4}, {"i32", "u32", 4, 4}, {"f32", "f32", 4, 4},
      {"u64", "u64", 2, 2}, {"i64", "u64", 2, 2}, {"f64", "f64", 2, 2},
  };
  for (size_t i = 0; i < sizeof(kTypes) / sizeof(kTypes[0]); i++) {
    char text[512], load[64], store[64], plain[64];
    snprintf(text, sizeof(text),
             "program p(x: in %s[], y: inout %s[length(x)])\n"
             "  work length(x) block 64 { let i = global_id.x;\n"
             "  y[i] = x[i] + y[i]; }",
             kTypes[i].type, kTypes[i].type);
    snprintf(load, sizeof(load), "ld.global.nc.v%u.%s", kTypes[i].lanes,
             kTypes[i].name);
    snprintf(plain, sizeof(plain), "ld.global.v%u.%s", kTypes[i].lanes,
             kTypes[i].name);
    snprintf(store, sizeof(store), "st.global.v%u.%s", kTypes[i].lanes,
             kTypes[i].name);
    uint32_t each = kTypes[i].elements / kTypes[i].lanes;
    assert_int_equal(machine_forms(text, 75, 0, load), each);
    assert_int_equal(machine_forms(text, 75, 0, plain), each);
    assert_int_equal(machine_forms(text, 75, 0, store), each);
    uint32_t off = KILN_PROGRAM_WITHOUT_VECTORS;
    assert_int_equal(machine_forms(text, 75, off, load), 0);
    assert_int_equal(machine_forms(text, 75, off, store), 0);
    assert_int_equal(launch_of(text, 0, 0).elements, kTypes[i].elements);
    assert_int_equal(launch_of(text, 0, off).elements, 1);
    check_works(text, 0);
  }
}

static void test_bools(void** state) {
  (void)state;
  const char* text =
      "program p(x: in bool[], y: out bool[length(x)], n: u32)\n"
      "  work length(x) block 32 { y[global_id.x] = !x[global_id.x]; }";
  assert_int_equal(machine_forms(text, 75, 0, "ld.global.nc.v4.u8"), 4);
  check_works(text, 0);
}

static void test_elements(void** state) {
  (void)state;
  const char* text =
      "program p(x: in f32[], y: out f32[length(x)], n: u32)\n"
      "  work length(x) block 64 { let i = global_id.x;\n"
      "  let a = x[i]; if a > 1.0 { y[i + n] = 5.0; } else { y[i] = a; } }";
  // One buffer is read at the thread's own index: that is enough.
  for (uint32_t elements = 1; elements <= 16; elements *= 2) {
    assert_int_equal(launch_of(text, elements, 0).elements, elements);
  }
  const char* sum =
      "program p(x: in f32[], z: in f64[length(x)], y: out f32[length(x)])\n"
      "  work length(x) block 64 { let i = global_id.x;\n"
      "  y[i] = x[i] * 2.0 + f32(z[i]) + f32(global_id.x + work_size.x); }";
  for (uint32_t elements = 1; elements <= 16; elements *= 2) {
    check_works(sum, elements);
  }
  // The widest element decides for all.
  assert_int_equal(machine_forms(sum, 75, 0, "ld.global.nc.v2.f32"), 1);
  assert_int_equal(machine_forms(sum, 75, 0, "ld.global.nc.v2.f64"), 1);
  kiln_program_t* program = kit_parse(sum);
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.elements = 3;
  kiln_program_code_t* code;
  assert_says(kiln_program_lower(program, &options, &code),
              KILN_STATUS_INVALID_ARGUMENT, "3 elements");
  options.elements = 32;
  assert_says(kiln_program_lower(program, &options, &code),
              KILN_STATUS_INVALID_ARGUMENT, "32 elements");
  kiln_program_release(program);
}

// The grid covers the work, with whole blocks of whole threads.
static void test_grid(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse(
      "program p(x: in f32[], y: out f32[length(x)])\n"
      "  work length(x) block 64 { y[global_id.x] = x[global_id.x]; }");
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.elements = 8;
  kiln_program_code_t* code;
  assert_true(kiln_status_is_ok(kiln_program_lower(program, &options, &code)));
  static const uint64_t kWorks[][2] = {
      {0, 0}, {1, 1}, {512, 1}, {513, 2}, {UINT32_MAX, 8388608}};
  for (size_t i = 0; i < sizeof(kWorks) / sizeof(kWorks[0]); i++) {
    const uint64_t work[3] = {kWorks[i][0], 1, 1};
    uint32_t grid[3];
    kiln_program_code_grid(code, work, grid);
    assert_int_equal(grid[0], kWorks[i][1]);
    assert_int_equal(grid[1], 1);
    assert_int_equal(grid[2], 1);
  }
  kiln_program_code_release(code);
  kiln_program_release(program);
}

#define HEAD                                                  \
  "program p(x: in u32[], y: inout u32[length(x)], n: u32)\n" \
  "  work length(x) block 64 { "

// Programs whose threads could tell, and buffers whose elements are not their
// own thread's.
static void test_no_vectors(void** state) {
  (void)state;
  static const char* const kAlone[] = {
      HEAD "let i = global_id.x; if x[i] > n { return; } y[i] = 1; }",
      HEAD "let i = global_id.x; y[i] = x[i] + local_id.x; }",
      HEAD "let i = global_id.x; y[i] = x[i] + block_count.x; }",
      HEAD "let i = global_id.x; y[i] = x[i] + lane; }",
      HEAD "let i = global_id.x; atomic_add(y[i], x[i]); }",
      HEAD "let i = global_id.x; let s = reduce_add(x[i]); y[i] = s; }",
      HEAD "let i = global_id.x; y[i] = x[i]; barrier; }",
      HEAD "let i = global_id.x; for k in 0..n { y[i] = y[i] + x[i]; } }",
      HEAD "let i = global_id.x; if x[i] == 0 { trap(1, 2u64); } y[i] = 1; }",
      HEAD "shared s: u32[8]; let i = global_id.x; y[i] = x[i] + s[1]; }",
      "program p(x: in u32[], y: inout u32[length(x)], n: u32)\n"
      "  work length(x) block 96 { let i = global_id.x; y[i] = x[i]; }",
      "program p(x: in u32[], y: inout u32[length(x)], n: u32)\n"
      "  work (length(x), 2) block 64 { let i = global_id.x; y[i] = x[i]; }",
      "program p(x: in u32[], y: inout u32[length(x)], n: u32)\n"
      "  work length(x) block 64 { let i = global_id.x; y[i + 1] = x[i ^ 1]; }",
  };
  for (size_t i = 0; i < sizeof(kAlone) / sizeof(kAlone[0]); i++) {
    assert_int_equal(launch_of(kAlone[i], 0, 0).elements, 1);
    assert_int_equal(launch_of(kAlone[i], 4, 0).elements, 1);
  }
  // Several elements a thread, but not of y.
  static const char* const kOthers[] = {
      HEAD "let i = global_id.x; y[i] = x[i]; y[i] = y[i] + n; }",
      HEAD "let i = global_id.x; y[i] = x[i] + y[(i + 1) & 0]; }",
      HEAD "let i = global_id.x; if x[i] > n { y[i] = n; } }",
  };
  for (size_t i = 0; i < sizeof(kOthers) / sizeof(kOthers[0]); i++) {
    assert_int_equal(launch_of(kOthers[i], 0, 0).elements, 4);
    assert_int_equal(machine_forms(kOthers[i], 75, 0, "ld.global.nc.v4.u32"),
                     1);
    assert_int_equal(machine_forms(kOthers[i], 75, 0, "ld.global.v4.u32"), 0);
    // Four stores, each behind a condition of its own, where all hold.
    assert_int_equal(machine_forms(kOthers[i], 75, 0, "st.global.v4.u32"),
                     i == 2);
  }
  check_works(kOthers[0], 0);
  check_works(kOthers[2], 0);
}

// Loads and stores of one element see each other in order.
static void test_order(void** state) {
  (void)state;
  const char* text = HEAD
      "let i = global_id.x; let a = y[i]; y[i] = a * 3 + x[i];\n"
      "  let b = y[i]; if b > n { let c = y[i]; x2[i] = c ^ a; } else\n"
      "  { x2[i] = b + 1; } }";
  char with[512];
  snprintf(
      with, sizeof(with),
      "program p(x: in u32[], y: inout u32[length(x)],\n"
      "    x2: out u32[length(x)], n: u32)\n  work length(x) block 64 { %s",
      strchr(text, '{') + 2);
  assert_int_equal(machine_forms(with, 75, 0, "st.global.v4.u32"), 1);
  check_works(with, 0);
  // A function in between, and private memory of each element's own.
  check_works(
      "fn f(a: u32, n: u32) -> u32 { if a > n { return a - n; } return n; }\n"
      "program p(x: in u32[], y: inout u32[length(x)], n: u32)\n"
      "  work length(x) block 64 { private v: u32[4]; let i = global_id.x;\n"
      "  v[x[i] & 3] = f(x[i], n); v[1] = v[1] + 1; y[i] = v[0] + v[1] * 3; }",
      0);
}

// ---- Consecutive accesses ----

#define FOUR(body)                                                       \
  "program p(x: in f32[], y: inout f32[length(x)], n: u32)\n"            \
  "  work length(x) block 64 { private v: f32[4]; let t = local_id.x;\n" \
  "  let i = block_id.x * 64 + t; " body " }"

#define TAKE(at) "let a = " at "; for c in 0..4 unroll { v[c] = x[a + c]; }\n"
#define GIVE(at) \
  "let b = " at "; for c in 0..4 unroll { y[b + c] = v[c] * 2.0; }\n"

static void test_groups(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint32_t loads;
    uint32_t stores;
  } kCases[] = {
      {FOUR(TAKE("i * 4") GIVE("i * 4")), 1, 1},
      {FOUR(TAKE("i * 4 + n") GIVE("(i + 8) * 4")), 1, 1},
      {FOUR(TAKE("i * 4 + 4") "y[i] = v[0] + v[1] + v[2] + v[3];"), 1, 0},
      {FOUR(TAKE(
           "t * n * 4") "let b = i * 4; for c in 0..4 unroll\n"
                        "  { if b + c < n * 100 { y[b + c] = v[3 - c]; } }"),
       1, 1},
      // Used in between, not one behind the other, not of the same buffer, or
      // with something in between that could be seen.
      {FOUR("let a = i * 4; for c in 0..4 unroll\n"
            "  { y[a + c] = x[a + c] * y[a + c]; }"),
       0, 0},
      {FOUR("let a = i * 4; v[0] = x[a]; v[1] = x[a + 1]; v[2] = x[a + 3];\n"
            "  v[3] = x[a + 2]; y[i] = v[0] - v[1] * v[2] + v[3];"),
       0, 0},
      {FOUR("let a = i * 4; v[0] = x[a]; v[1] = x[a + 1]; v[2] = y[a + 2];\n"
            "  v[3] = x[a + 3]; y[a] = v[0] - v[1] * v[2] + v[3];"),
       0, 0},
      {FOUR("let a = i * 4; y[a] = 1.0; y[a + 1] = 2.0;\n"
            "  if n > 9 { return; } y[a + 2] = 3.0; y[a + 3] = 4.0;"),
       0, 0},
      {FOUR("let a = i * 4; y[a] = 1.0; y[a + 1] = 2.0;\n"
            "  atomic_add(y[a + 1], 3.0); y[a + 2] = 3.0; y[a + 3] = 4.0;"),
       0, 0},
      {FOUR("let a = i * 4; y[a] = 1.0; y[a + 1] = 2.0;\n"
            "  y[a + 2] = y[a + 1] + 3.0; y[a + 3] = 4.0;"),
       0, 0},
  };
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    const char* text = kCases[i].text;
    uint32_t off = KILN_PROGRAM_WITHOUT_VECTORS;
    if (machine_forms(text, 75, 0, "ld.global.nc.v4.f32") != kCases[i].loads ||
        machine_forms(text, 75, 0, "st.global.v4.f32") != kCases[i].stores) {
      fail_msg("other vectors: %s", text);
    }
    assert_int_equal(machine_forms(text, 75, off, "ld.global.nc.v4.f32"), 0);
    assert_int_equal(machine_forms(text, 75, off, "st.global.v4.f32"), 0);
    check_works(text, 0);
  }
}

// Two of 4 bytes, where the version for addresses that are multiples of 8 needs
// no test for them; and four, where more come behind two.
#define TWO(head, body)                                                       \
  "program p(x: in f32[], y: inout f32[length(x)], n: u32)\n"                 \
  "  work length(x) / 2 block 64 { private v: f32[8]; let i = global_id.x;\n" \
  "  " head " if 40 < length(x) && a < length(x) - 40 {" body " } }"

static void test_pairs(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint32_t loads[2];  // of 2 and of 4
    uint32_t stores[2];
  } kCases[] = {
      {TWO("let a = i * 2;",
           "for c in 0..2 unroll { v[c] = x[a + c]; }\n"
           "  for c in 0..2 unroll { v[c + 2] = x[a + 32 + c]; }\n"
           "  for c in 0..2 unroll { y[a + c] = v[c] - v[c + 2]; }"),
       {2, 0},
       {1, 0}},
      // Four at a multiple of two, and of four.
      {TWO("let a = i * 6;",
           "for c in 0..4 unroll { v[c] = x[a + c]; }\n"
           "  for c in 0..4 unroll { y[a + c] = v[3 - c] - v[c]; }"),
       {2, 0},
       {2, 0}},
      {TWO("let a = i * 8;",
           "for c in 0..6 unroll { v[c] = x[a + c]; }\n"
           "  for c in 0..6 unroll { y[a + c] = v[5 - c] - v[c]; }"),
       {1, 1},
       {1, 1}},
      // What is computed from two does not keep the next two away.
      {TWO("let a = i * 4;",
           "let s = x[a] * x[a + 1]; let t = x[a + 2] - x[a + 3];\n"
           "  y[a] = s * 2.0; y[a + 1] = t + s;\n"
           "  y[a + 2] = s; y[a + 3] = t;"),
       {0, 1},
       {0, 1}},
      // But what is seen of them does: two pairs.
      {TWO("let a = i * 8;",
           "y[a + 6] = x[a] + x[a + 1]; let t = x[a + 2] - x[a + 3];\n"
           "  y[a] = t; y[a + 1] = t * t; atomic_add(y[a + 5], 1.0);\n"
           "  y[a + 2] = t; y[a + 3] = t;"),
       {2, 0},
       {2, 0}},
      // An odd one first, one that may be odd, and a guard for the second.
      {TWO("let a = i * 2 + 1;",
           "for c in 0..2 unroll { v[c] = x[a + c]; }\n"
           "  for c in 0..2 unroll { y[a + c] = v[c] - v[1 - c]; }"),
       {0, 0},
       {0, 0}},
      {TWO("let a = i * (n * 2 + 3);",
           "for c in 0..2 unroll { v[c] = x[a + c]; }\n"
           "  for c in 0..2 unroll { y[a + c] = v[c] - v[1 - c]; }"),
       {0, 0},
       {0, 0}},
      {TWO("let a = i * 2;",
           "v[0] = x[a + 64]; v[1] = x[a + 65];\n"
           "  y[a] = v[0]; if n > 3 { y[a + 1] = v[1]; }"),
       {0, 0},
       {0, 0}},
      // A condition of both.
      {TWO("let a = i * 2;",
           "v[0] = x[a]; v[1] = x[a + 1];\n"
           "  if n > 3 { y[a] = v[1]; y[a + 1] = v[0]; }"),
       {1, 0},
       {1, 0}},
  };
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    const char* text = kCases[i].text;
    if (machine_forms(text, 75, 0, "ld.global.nc.v2.f32") !=
            kCases[i].loads[0] ||
        machine_forms(text, 75, 0, "ld.global.nc.v4.f32") !=
            kCases[i].loads[1] ||
        machine_forms(text, 75, 0, "st.global.v2.f32") != kCases[i].stores[0] ||
        machine_forms(text, 75, 0, "st.global.v4.f32") != kCases[i].stores[1]) {
      fail_msg("other vectors: %s", text);
    }
    check_works(text, 0);
  }
}

// What a conversion or a sum makes of loads stands behind them; what is written
// again, or seen, keeps them apart.
static void test_followers(void** state) {
  (void)state;
  static const struct {
    const char* body;
    uint32_t loads;
  } kCases[] = {
      {"let s = f32(x[a]) + f32(x[a + 1]) * f32(x[a + 2]) - f32(x[a + 3]);\n"
       "  y[i] = s;",
       1},
      {"var s: f32 = 0; for c in 0..4 unroll { s += f32(x[a + c]); }\n"
       "  y[i] = s;",
       1},
      {"var s: f32 = 0; for c in 0..4 unroll {\n"
       "  s = max(s, abs(f32(x[a + c]))); if s > 9.0 { s = 1.0; } }\n"
       "  y[i] = s;",
       1},
      {"var s: f32 = 0; for c in 0..4 unroll { s += f32(x[a + c]);\n"
       "  y[i] = s; }",
       0},
      {"var s: f32 = 0; for c in 0..4 unroll { s += f32(x[a + c]);\n"
       "  if s > 3.0 { for k in 0..n { s = s * 0.5; } } } y[i] = s;",
       0},
  };
  static const char* const kTypes[][2] = {{"f16", "ld.global.nc.v4.b16"},
                                          {"bf16", "ld.global.nc.v4.u16"},
                                          {"f32", "ld.global.nc.v4.f32"}};
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    for (size_t k = 0; k < sizeof(kTypes) / sizeof(kTypes[0]); k++) {
      char text[768];
      snprintf(
          text, sizeof(text),
          "program p(x: in %s[], y: out f32[length(x)], n: u32)\n"
          "  work length(x) block 64 { let i = block_id.x * 64 + local_id.x;\n"
          "  let a = i * 4; %s }",
          kTypes[k][0], kCases[i].body);
      if (machine_forms(text, 75, 0, kTypes[k][1]) != kCases[i].loads) {
        fail_msg("other loads: %s", text);
      }
      check_works(text, 0);
    }
  }
}

// Bytes, which are words put together again: how many loads of 1, 2 and 4 words
// and how many fields of them are left. Each body is there twice: with vectors,
// and without.
#define BYTES(body)                                                        \
  "program p(x: in u8[], y: out u32[length(x)]) work length(x) block 64\n" \
  "{ private v: u8[16]; let i = global_id.x; let a = i * 16;\n" body " }"
#define LOAD_BYTES(n) "for c in 0.." n " unroll { v[c] = x[a + c]; }\n"
#define WORD(a, b, c, d)                                                \
  "u32(v[" a "]) | u32(v[" b "]) << 8 | u32(v[" c "]) << 16 | u32(v[" d \
  "]) << 24"

static void test_words_of_bytes(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint32_t loads[3];  // of 1, 2 and 4 words
    uint32_t fields;
  } kCases[] = {
      {BYTES(LOAD_BYTES("4") "y[i] = " WORD("0", "1", "2", "3") ";"),
       {1, 0, 0},
       0},
      {BYTES(LOAD_BYTES("8") "y[i] = " WORD("4", "5", "6", "7") ";"),
       {0, 1, 0},
       0},
      {BYTES(LOAD_BYTES("16") "y[i] = (" WORD(
           "8", "9", "10", "11") ") ^ (" WORD("12", "13", "14", "15") ");"),
       {0, 0, 1},
       0},
      // Seven: a word and three bytes. In another order, and with a gap.
      {BYTES(LOAD_BYTES("7") "y[i] = " WORD("3", "4", "5", "6") ";"),
       {1, 0, 0},
       1},
      {BYTES(LOAD_BYTES("4") "y[i] = " WORD("3", "2", "1", "0") ";"),
       {1, 0, 0},
       4},
      {BYTES(LOAD_BYTES("4") "y[i] = u32(v[1]) << 8 | u32(v[2]) << 16;"),
       {1, 0, 0},
       1},
      {BYTES(LOAD_BYTES("4") "y[i] = u32(v[0]) << 4 | u32(v[1]) << 8;"),
       {1, 0, 0},
       2},
      {BYTES(LOAD_BYTES("4") "y[i] = u32(v[0]) | u32(v[2]) << 8;"),
       {1, 0, 0},
       2},
  };
  // What the loop's end writes is not what it began with.
  check_works(BYTES(LOAD_BYTES("4") "for k in 0..3 {\n"
                                    "  y[i * 3 + k] = " WORD(
                                        "0", "1", "2",
                                        "3") ";\n"
                                             "  for c in 0..4 unroll { v[c] = "
                                             "x[(a + 4) * k + c]; } }"),
              0);
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    static const char* const kLoads[] = {
        "ld.global.nc.u32", "ld.global.nc.v2.u32", "ld.global.nc.v4.u32"};
    const char* text = kCases[i].text;
    for (int k = 0; k < 3; k++) {
      if (machine_forms(text, 75, 0, kLoads[k]) != kCases[i].loads[k]) {
        fail_msg("not %u %s: %s", kCases[i].loads[k], kLoads[k], text);
      }
    }
    if (machine_forms(text, 75, 0, "bfe.u32") != kCases[i].fields) {
      fail_msg("not %u fields: %s", kCases[i].fields, text);
    }
    check_works(text, 0);
  }
}

#define STEP(REST)                                     \
  "program p(x: in u32[], y: out u32[length(x)])\n"    \
  "  work length(x) block 32 { let i = global_id.x;\n" \
  "  let a = x[i]; let b = x[i ^ 1];\n" REST " barrier; }"

// A byte of a word below another number, as automata step: one instruction.
static void test_bytes_below(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint32_t moved;
  } kCases[] = {
      {STEP("y[i] = b << 8 | a & 255;"), 1},
      {STEP("y[i] = b << 8 | a >> 8 & 255;"), 1},
      {STEP("y[i] = a >> 16 & 255 | b << 8;"), 1},
      {STEP("y[i] = b << 8 | a >> 24;"), 1},
      {STEP("y[i] = b << 8 | a >> 4 & 255;"), 1},
      {STEP("y[i] = b << 8 | a & 127;"), 0},
      {STEP("y[i] = b << 9 | a & 255;"), 0},
      {STEP("y[i] = b << 8 | a >> 23;"), 0},
      {STEP("y[i] = b << 8 ^ a & 255;"), 0},
      // What a loop carries, and what either side of a branch is.
      {STEP("var s = b; for k in 0..a % 5 { s = s << 8 | a >> 8 & 255;\n"
            "  s = (s ^ a) << 8 | s & 255; } y[i] = s;"),
       2},
      {STEP("var s = b; if a % 3 == 1 { s = x[a % length(x)]; s += 5; s *= s;\n"
            "  s ^= 7; s += b; } y[i] = s << 8 | s >> 16 & 255;"),
       1},
  };
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    const char* text = kCases[i].text;
    if (machine_forms(text, 75, 0, "prmt.b32") != kCases[i].moved) {
      fail_msg("not %u: %s", kCases[i].moved, text);
    }
    check_works(text, 1);
  }
}

// A lane that is cut to five bits is not: a shuffle looks at no others.
static void test_cut_lanes(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint32_t cuts;
  } kCases[] = {
      {STEP("let v = shuffle(a, b & 31); y[i] = v;"), 0},
      {STEP("let v = shuffle(a, b % 32); y[i] = v;"), 0},
      {STEP("let v = shuffle(a, b & 15); y[i] = v;"), 1},
      {STEP("let c = b & 31; let v = shuffle(a, c); y[i] = v + c;"), 1},
      {STEP("var c = b & 31; for k in 0..3 { let v = shuffle(c, c & 31);\n"
            "  c = v + k; } y[i] = c;"),
       1},
  };
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    const char* text = kCases[i].text;
    if (machine_forms(text, 75, 0, "and.b32") != kCases[i].cuts) {
      fail_msg("not %u: %s", kCases[i].cuts, text);
    }
    check_works(text, 1);
  }
}

// What is known to be inside because a constant less is: loads that ask
// nothing, and those that have to.
static void test_known_inside(void** state) {
  (void)state;
  static const struct {
    const char* condition;
    uint32_t tests;  // of x[a], x[a + 7] and x[a + 16]
  } kCases[] = {
      {"16 < length(x) && a < length(x) - 16", 0},
      {"15 < length(x) && a < length(x) - 16", 0},
      {"length(x) > 100 && length(x) - 16 > a", 0},
      {"14 < length(x) && a < length(x) - 16", 3},
      {"a < length(x) - 16", 3},
      {"16 < length(x) && a < length(x) - 7", 1},
      {"16 < length(x) && a + 1 < length(x) - 16", 3},
  };
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    char text[512];
    snprintf(text, sizeof(text),
             "program p(x: in u32[], y: out u32[length(x)]) work length(x)\n"
             "  block 64 { let a = global_id.x * 5 - 9; var s = 0;\n"
             "  if %s { s = x[a] ^ x[a + 7]; s += x[a + 16]; s *= 3;\n"
             "    s ^= 5; s += 77; }\n"
             "  y[global_id.x ^ 1] = s; }",
             kCases[i].condition);
    uint32_t off = KILN_PROGRAM_WITHOUT_RANGES;
    uint32_t tests = machine_forms(text, 75, 0, "setp.lt.u32");
    uint32_t all = machine_forms(text, 75, off, "setp.lt.u32");
    if (all - tests != 3 - kCases[i].tests) {
      fail_msg("%u tests less of %u: %s", all - tests, all, text);
    }
    check_works(text, 0);
  }
}

// The widths of other types.
static void test_group_types(void** state) {
  (void)state;
  static const struct {
    const char* type;
    const char* load;
    const char* store;
    uint32_t loads;
    uint32_t stores;
  } kTypes[] = {
      {"u8", "ld.global.nc.u32", "st.global.v4.u8", 1, 1},
      {"u8", "ld.global.nc.v4.u8", "st.global.v4.u8", 0, 1},
      {"i16", "ld.global.nc.v4.s16", "st.global.v4.s16", 1, 0},
      {"i16", "ld.global.nc.v4.s16", "st.global.v4.u16", 1, 0},
      {"u64", "ld.global.nc.v2.u64", "st.global.v2.u64", 2, 2},
      {"f64", "ld.global.nc.v2.f64", "st.global.v2.f64", 2, 2},
      {"i32", "ld.global.nc.v4.u32", "st.global.v4.u32", 1, 1},
      {"f16", "ld.global.nc.v4.b16", "st.global.v4.b16", 1, 1},
      {"bf16", "ld.global.nc.v4.u16", "st.global.v4.u16", 1, 1},
  };
  for (size_t i = 0; i < sizeof(kTypes) / sizeof(kTypes[0]); i++) {
    char text[512];
    const char* type = kTypes[i].type;
    snprintf(text, sizeof(text),
             "program p(x: in %s[], y: inout %s[length(x)], n: u32)\n"
             "  work length(x) block 64 { private v: %s[4]; let a =\n"
             "  (block_id.x * 64 + local_id.x) * 4; for c in 0..4 unroll {\n"
             "  v[c] = x[a + c]; } y[a] = v[1]; y[a + 1] = v[0];\n"
             "  y[a + 2] = v[3]; y[a + 3] = v[2]; }",
             type, type, type);
    if (machine_forms(text, 75, 0, kTypes[i].load) != kTypes[i].loads) {
      fail_msg("%s: other loads", type);
    }
    if (kTypes[i].stores != 0) {
      assert_int_equal(machine_forms(text, 75, 0, kTypes[i].store),
                       kTypes[i].stores);
    }
    check_works(text, 0);
  }
}

// In shared memory: what is a multiple of a vector by the way it is made, is in
// range, and has nothing with an effect in between.
#define SHARED(body)                                               \
  "program p(x: in f32[], y: inout f32[length(x)], n: u32)\n"      \
  "  work length(x) block 64 {\n"                                  \
  "  shared s: f32[320]; shared t: u64[128]; private v: f32[4];\n" \
  "  let l = local_index; let i = global_id.x;\n"                  \
  "  for c in 0..4 { s[l + c * 64] = x[i] + f32(c); }\n"           \
  "  barrier;\n" body "  y[i] = v[0] - v[1] * v[2] + v[3]; }"

static void test_shared_groups(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint32_t loads;
    uint32_t stores;
  } kCases[] = {
      {SHARED("for c in 0..4 unroll { v[c] = s[(l ^ 63) * 4 + c]; }"), 1, 0},
      {SHARED("let a = (l & 31) * 8 + 64;\n"
              "for c in 0..4 unroll { v[c] = s[a + c]; }\n"
              "for c in 0..4 unroll { v[c] += s[a + 4 + c]; }"),
       2, 0},
      {SHARED("for c in 0..4 unroll { s[l * 4 + c] = x[i] * f32(c); }\n"
              "barrier; v[0] = s[l]; v[3] = s[l ^ 5];"),
       0, 1},
      // At no multiple, or with something in between that could be seen.
      {SHARED("for c in 0..4 unroll { v[c] = s[l * 4 + 2 + c]; }"), 0, 0},
      {SHARED("for c in 0..4 unroll { v[c] = s[l * 3 + c]; }"), 0, 0},
      {SHARED("let a = l * 4; v[0] = s[a]; v[1] = s[a + 1]; s[a + 2] = 7.0;\n"
              "  v[2] = s[a + 2]; v[3] = s[a + 3];"),
       0, 0},
      {SHARED("let a = l * 4; v[0] = s[a]; v[1] = s[a + 1]; barrier;\n"
              "  v[2] = s[a + 2]; v[3] = s[a + 3];"),
       0, 0},
      {SHARED("let a = l * 4; s[a] = 1.0; s[a + 1] = 2.0; v[1] = s[a];\n"
              "  s[a + 2] = 3.0; s[a + 3] = 4.0;"),
       0, 0},
      // Where a condition only selects what was loaded.
      {SHARED("let a = l * 4; if x[i] > 0.5 { v[0] = s[a]; v[1] = s[a + 1];\n"
              "  v[2] = s[a + 2]; v[3] = s[a + 3]; }"),
       1, 0},
      // Of a branch of its own.
      {SHARED("if x[i] > 0.5 {\n"
              "  for c in 0..4 unroll { v[c] = s[l * 4 + c]; } }"),
       1, 0},
  };
  uint32_t off = KILN_PROGRAM_WITHOUT_VECTORS;
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    const char* text = kCases[i].text;
    if (machine_forms(text, 75, 0, "ld.shared.v4.f32") != kCases[i].loads ||
        machine_forms(text, 75, 0, "st.shared.v4.f32") != kCases[i].stores) {
      fail_msg("other vectors: %s", text);
    }
    assert_int_equal(machine_forms(text, 75, off, "ld.shared.v4.f32"), 0);
    assert_int_equal(machine_forms(text, 75, off, "st.shared.v4.f32"), 0);
    check_works(text, 0);
  }
  static const char kWide[] = SHARED(
      "for c in 0..2 unroll { t[l * 2 + c] = u64(l * c); }\n"
      "  barrier; let a = (l ^ 63) * 2;\n"
      "  for c in 0..2 unroll { v[c] = f32(t[a + c]); }");
  assert_int_equal(machine_forms(kWide, 75, 0, "st.shared.v2.u64"), 1);
  check_works(kWide, 0);
}

// ---- Shared arrays ----

static uint32_t zeroed(const char* text) {
  return launch_of(text, 0, 0).zeroed_shared_bytes;
}

static void check_block(const char* text) {
  const uint64_t counts[] = {1024, 1024};
  const uint64_t scalars[] = {3, 3};
  machine_check(text, counts, scalars, 5);
}

#define FULL(body)                                                    \
  "program p(x: in u32[], y: out u32[1024], n: u32)\n"                \
  "  work 1024 block 128 { shared s: u32[128]; let t = local_id.x;\n" \
  "  let i = global_id.x; " body " }"

static void test_covered(void** state) {
  (void)state;
  static const char* const kGood[] = {
      FULL("s[t] = x[i]; barrier; y[i] = s[127 - t]; "),
      FULL("s[(t * 5) & 127] = x[i]; barrier; y[i] = s[x[i] & 127];"),
      FULL("if t < 64 { s[2 * t] = x[i]; s[2 * t + 1] = n; } barrier;\n"
           "  y[i] = s[t];"),
      FULL("if t % 4 == 0 { s[t] = x[i]; } barrier; y[i] = s[t - t % 4];"),
      FULL("for k in 0..n { s[t] = x[i] + k; barrier; y[i] = s[t ^ 1];\n"
           "  barrier; }"),
      FULL("let p = reduce_add(x[i]); if lane == 0 { s[subgroup] = p; }\n"
           "  barrier; if t == 0 { y[i] = s[0] + s[1] + s[2] + s[3]; }"),
      FULL("s[t] = x[i]; barrier; y[i] = s[t + 100];"),
  };
  for (size_t i = 0; i < sizeof(kGood) / sizeof(kGood[0]); i++) {
    if (zeroed(kGood[i]) != 0) fail_msg("is zeroed: %s", kGood[i]);
    assert_int_equal(machine_forms(kGood[i], 75, 0, "st.shared.v4.u32"), 0);
    assert_int_equal(machine_forms(kGood[i], 75, KILN_PROGRAM_WITHOUT_COVERING,
                                   "st.shared.v4.u32"),
                     1);
    check_block(kGood[i]);
  }
}

static void test_not_covered(void** state) {
  (void)state;
  static const char* const kBad[] = {
      // Not written, not by all, not all of it, not by known threads.
      FULL("barrier; y[i] = s[t];"),
      FULL("if t < 127 { s[t] = x[i]; } barrier; y[i] = s[t];"),
      FULL("s[t | 1] = x[i] & 0; barrier; y[i] = s[t];"),
      FULL("if x[i] > n { s[t] = x[i]; } barrier; y[i] = s[t];"),
      FULL("s[x[i] & 0 | t & 63] = 1; barrier; y[i] = s[t];"),
      // No barrier, or one that comes too late or that not all pass.
      FULL("s[t] = 1; y[i] = s[t];"),
      FULL("y[i] = s[t]; barrier; s[t] = 1;"),
      FULL("for k in 0..n { y[i] = s[t]; barrier; s[t] = 1; barrier; }"),
      FULL("for k in 0..n { s[t] = 1; barrier; } y[i] = s[t];"),
      FULL("if n > 5 { s[t] = 1; barrier; } y[i] = s[t];"),
      FULL("if n > 2 { s[t] = 4; } barrier; y[i] = s[t];"),
      // A counter is known at the loop's beginning only.
      FULL("if t < 64 { s[t] = 1; } barrier; var q = 0;\n"
           "for k in 0..n { q += s[t % 64 + k * 64]; } y[i] = q;"),
      // What reads in other ways.
      FULL("if t < 64 { atomic_add(s[t], 1); } barrier; y[i] = s[t] & 0;"),
  };
  for (size_t i = 0; i < sizeof(kBad) / sizeof(kBad[0]); i++) {
    if (zeroed(kBad[i]) != 512) fail_msg("is not zeroed: %s", kBad[i]);
    check_block(kBad[i]);
  }
  // Threads without work do not write.
  const char* part =
      "program p(x: in u32[], y: out u32[length(x)], n: u32)\n"
      "  work length(x) block 128 { shared s: u32[128]; let i = global_id.x;\n"
      "  s[local_id.x] = x[i]; barrier; y[i] = s[127 - local_id.x]; }";
  assert_int_equal(zeroed(part), 512);
  const uint64_t counts[] = {1000, 1000};
  const uint64_t scalars[] = {3};
  machine_check(part, counts, scalars, 5);
}

// Two arrays, of which one pays; as many rounds of zeroing as it takes.
static void test_one_pays(void** state) {
  (void)state;
  const char* text =
      "program p(x: in u32[], y: out u32[1024], n: u32)\n"
      "  work 1024 block 64 { shared a: u32[64]; shared b: u8[5000];\n"
      "  shared c: u16[300]; let t = local_id.x; let i = global_id.x;\n"
      "  a[t] = x[i]; c[t] = u16(x[i]); barrier;\n"
      "  y[i] = a[63 - t] + u32(b[x[i] % 5000]) + u32(c[x[i] % 300]); }";
  assert_int_equal(zeroed(text), 5600);
  kiln_program_t* program = kit_parse(text);
  kiln_program_code_t* code;
  assert_true(kiln_status_is_ok(kiln_program_lower(program, NULL, &code)));
  assert_string_equal(kiln_program_code_zeroed(code, 0), "b");
  assert_string_equal(kiln_program_code_zeroed(code, 1), "c");
  assert_null(kiln_program_code_zeroed(code, 2));
  assert_null(kiln_program_code_zeroed(code, 7));
  kiln_program_code_release(code);
  // They have names also where the program has none for them.
  uint8_t bytes[4096];
  size_t size;
  assert_null(kiln_program_canonical(program, sizeof(bytes), bytes, &size));
  assert_true(size <= sizeof(bytes));
  kiln_program_release(program);
  assert_null(kiln_program_read_canonical((kiln_bytes_view_t){bytes, size},
                                          NULL, &program));
  assert_null(kiln_program_lower(program, NULL, &code));
  assert_string_equal(kiln_program_code_zeroed(code, 0), "_b4");
  assert_string_equal(kiln_program_code_zeroed(code, 1), "_b5");
  assert_null(kiln_program_code_zeroed(code, 2));
  kiln_program_code_release(code);
  kiln_program_release(program);
  check_block(text);
}

// ---- Branches ----

static void test_predicates(void** state) {
  (void)state;
  static const char* const kTexts[] = {
      FULL("var v = x[i]; if v > n { v = v - n; y[i] = v; } y[i] = y[i] ^ v;"),
      FULL("var v = x[i]; if v > n { v = 1; } else { v = v * 3; } y[i] = v;"),
      FULL("if i < length(x) - 5 { y[i] = x[i + 5]; }"),
      FULL("var v = 1; if t < 3 { let a = s[t + 126]; v = a + s[t]; }\n"
           "  y[i] = v;"),
      FULL("if x[i] > n { y[i] = 1; y[i] = y[i] + x[i]; }"),
  };
  for (size_t i = 0; i < sizeof(kTexts) / sizeof(kTexts[0]); i++) {
    uint32_t off = KILN_PROGRAM_WITHOUT_PREDICATES;
    assert_int_equal(machine_forms(kTexts[i], 75, 0, "bra"), 0);
    assert_true(machine_forms(kTexts[i], 75, off, "bra") != 0);
    check_block(kTexts[i]);
  }
  // Too much, or what must not be done in vain, is jumped over.
  static const char* const kJumps[] = {
      FULL("if x[i] > n { y[i] = x[i] / n; }"),
      FULL("if x[i] > n { atomic_add(y[i], 1); }"),
      FULL("if x[i] > n { if x[i] > 2 * n { y[i] = 1; } }"),
      FULL("if x[i] > n { y[i] = u32(sin(f32(n))); }"),
  };
  for (size_t i = 0; i < sizeof(kJumps) / sizeof(kJumps[0]); i++) {
    assert_true(machine_forms(kJumps[i], 75, 0, "bra") != 0);
    check_block(kJumps[i]);
  }
  // A private array that is kept in registers.
  check_block(FULL("if x[i] > n { y[i] = 1; } y[i] = y[i] + 1;"));
  check_block(
      "program p(x: in u32[], y: out u32[1024], n: u32)\n"
      "  work 1024 block 64 { private v: u32[3]; let i = global_id.x;\n"
      "  v[0] = 7; if x[i] > n { v[0] = x[i]; v[1] = 2; }\n"
      "  y[i] = v[0] + v[1] * 100; }");
}

int main(int argc, char** argv) {
  machine_collect(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vectors),
      cmocka_unit_test(test_bools),
      cmocka_unit_test(test_elements),
      cmocka_unit_test(test_grid),
      cmocka_unit_test(test_no_vectors),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_covered),
      cmocka_unit_test(test_not_covered),
      cmocka_unit_test(test_one_pays),
      cmocka_unit_test(test_predicates),
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_shared_groups),
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_followers),
      cmocka_unit_test(test_group_types),
      cmocka_unit_test(test_words_of_bytes),
      cmocka_unit_test(test_bytes_below),
      cmocka_unit_test(test_cut_lanes),
      cmocka_unit_test(test_known_inside),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
