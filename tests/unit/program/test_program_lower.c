// SPDX-License-Identifier: Apache-2.0
//
// program: lowered programs do what the evaluator says, on the software
// device: statements, accesses, threads that come together.
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

#define COUNTS(...)    \
  (const uint64_t[]) { \
    __VA_ARGS__        \
  }

static void test_saxpy(void** state) {
  (void)state;
  const uint64_t scalars[] = {0x40490fdb};
  machine_check(
      "program saxpy(a: f32, x: in f32[], y: inout f32[length(x)])\n"
      "  work length(x)\n"
      "{ let i = global_id.x; y[i] = fma(a, x[i], y[i]); }\n",
      COUNTS(1000, 1000), scalars, 1);
}

// ---- Accesses out of range, at every type and kind of index ----

static void test_out_of_range(void** state) {
  (void)state;
  char text[1024];
  static const char* const kIndex[] = {"u32", "i32", "u64", "i64", "i8", "u16"};
  for (uint32_t type = 1; type < KILNI_TYPE_COUNT; type++) {
    const char* t = kilni_program_type_name(type);
    const char* j = kIndex[type % 6];
    snprintf(text, sizeof(text),
             "program p(x: in %s[], k: in %s[], o: out %s[],\n"
             "          q: inout %s[17])\n"
             "  work length(k)\n"
             "{\n"
             "  shared s: %s[9];\n"
             "  private v: %s[7];\n"
             "  let i = global_id.x;\n"
             "  o[i] = x[k[i]];\n"
             "  s[local_id.x] = x[i];\n"
             "  barrier;\n"
             "  v[k[i]] = x[i + 1];\n"
             "  v[3] = x[i + 2];\n"
             "  v[7] = x[i];\n"
             "  o[i + 300] = s[k[i]];\n"
             "  o[i + 600] = v[k[i]];\n"
             "  o[i + 900] = s[9];\n"
             "  o[i + 1200] = v[3];\n"
             "  o[i + 1500] = v[7];\n"
             "  if i < 5 { q[i * 100 - 100] = x[i]; q[16 + i] = x[i]; }\n"
             "}\n",
             t, j, t, t, t, t);
    machine_check(text, COUNTS(40, 300, 1700, 17), NULL, type);
  }
}

// ---- Control flow ----

static void test_branches(void** state) {
  (void)state;
  machine_check(
      "program p(x: in i32[], o: out i32[length(x)]) work length(x)\n"
      "{\n"
      "  let i = global_id.x;\n"
      "  var a = x[i];\n"
      "  var b = 7i32;\n"
      "  if a < 0 { a = -a; b = a; } else if a == 0 { b = 1; }\n"
      "  else { a = a + b; }\n"
      "  if a % 2 == 0 { let t = a; a = b; b = t; }\n"
      "  o[i] = a * 3 + b;\n"
      "}\n",
      COUNTS(500, 500), NULL, 1);
}

static void test_loops(void** state) {
  (void)state;
  machine_check(
      "program p(x: in u32[], o: out u32[length(x)], n: u32) work length(x)\n"
      "{\n"
      "  let i = global_id.x;\n"
      "  var a = 0; var b = 1; var c = 2;\n"
      "  for k in 0..n {\n"
      "    let t = a; a = b; b = c; c = t + x[k] + i * 17 + n / 3;\n"
      "    if k == i { continue; }\n"
      "    if c % 19 == 3 { break; }\n"
      "    a += k;\n"
      "  }\n"
      "  for k in 3u8..250u8 step 50u8 { b += u32(k); }\n"
      "  for k in -120i8..120i8 step 100u8 { c += u32(k); }\n"
      "  for k in 0i64..5i64 { c += u32(k) * a; }\n"
      "  for k in 9..3 { c = 0; }\n"
      "  var j = i;\n"
      "  while j != 0 {\n"
      "    j /= 2;\n"
      "    if j == 3 { a += 5; continue; }\n"
      "    var z = j;\n"
      "    while z > 10 { z -= 7; if z == 11 { break; } b ^= z; }\n"
      "    c += z;\n"
      "  }\n"
      "  o[i] = a ^ b * 31 ^ c * 1001;\n"
      "}\n",
      COUNTS(300, 300), COUNTS(23), 3);
}

static void test_unrolled(void** state) {
  (void)state;
  machine_check(
      "program p(x: in f32[], o: out f32[length(x)]) work length(x)\n"
      "{\n"
      "  private v: f32[8];\n"
      "  let i = global_id.x;\n"
      "  for k in 0..8 unroll { v[k] = x[i + k]; }\n"
      "  for k in 0..7 unroll { v[k] = v[k] * v[k + 1]; }\n"
      "  var s = 0.0;\n"
      "  for k in 0..8 unroll { s += v[k]; }\n"
      "  o[i] = s;\n"
      "}\n",
      COUNTS(300, 300), NULL, 3);
}

static void test_functions(void** state) {
  (void)state;
  machine_check(
      "fn twice(x: u32) -> u32 { return x * 2; }\n"
      "fn find(v: in u32[], what: u32) -> u32 {\n"
      "  for k in 0..length(v) { if v[k] % 64 == what { return k; } }\n"
      "  if what == 3 { return 1000; } else { return twice(what) + 2000; }\n"
      "}\n"
      "fn put(v: out u32[], at: u32, x: u32) {\n"
      "  if x == 5 { return; }\n"
      "  v[at] = x;\n"
      "}\n"
      "fn sum(v: inout u32[], n: u32) -> u32 {\n"
      "  private a: u32[4];\n"
      "  for k in 0..n { a[k % 5] += v[k]; }\n"
      "  var s = 0; for k in 0..4 { s = s * 3 + a[k]; }\n"
      "  return s;\n"
      "}\n"
      "program p(x: in u32[], o: out u32[3 * length(x)]) work length(x)\n"
      "{\n"
      "  private w: u32[20];\n"
      "  let i = global_id.x;\n"
      "  put(o, i, find(x, i % 64));\n"
      "  for k in 0..20 { put(w, k, x[i + k]); }\n"
      "  let a = sum(w, 20);\n"
      "  let b = sum(w, i % 20);\n"
      "  o[i + length(x)] = a;\n"
      "  o[i + 2 * length(x)] = b;\n"
      "}\n",
      COUNTS(100, 300), NULL, 3);
}

static void test_early_return(void** state) {
  (void)state;
  // One thread in three returns; the others meet at barriers.
  machine_check(
      "program p(x: in u32[], o: out u32[length(x)]) work length(x) block 50\n"
      "{\n"
      "  shared s: u32[50];\n"
      "  let i = global_id.x; let l = local_id.x;\n"
      "  if x[i] % 3 == 0 { o[i] = 9; return; }\n"
      "  s[l] = x[i];\n"
      "  barrier;\n"
      "  o[i] = s[49 - l] + s[(l + 1) % 50];\n"
      "  barrier;\n"
      "  s[l] = o[i];\n"
      "  barrier;\n"
      "  o[i] = s[49 - l];\n"
      "}\n",
      COUNTS(333, 333), NULL, 5);
}

// What is declared for the threads that have not returned is of its type in the
// others too (machine_lower sees that it is written): a u16's 16 bits keep an
// index in range, which nothing checks then. They go along to the sum.
static void test_declared_by_some(void** state) {
  (void)state;
  static const char* const kBodies[] = {
      "let old = atomic_add(c[i], 1); let s = reduce_add(x[i]);\n",
      "var old = atomic_exchange(c[i], 65535); let s = reduce_add(x[i]);\n",
      "let old = atomic_max(c[i], u16(i)); barrier; let s = x[i];\n",
      "var old = c[i]; if x[i] % 5 == 0 { old = atomic_or(c[i], 9); }\n"
      "let s = reduce_add(x[i]);\n",
      "var s = 0; var old = 0u16; for k in 0..3 {\n"
      "  let was = atomic_add(c[i], u16(k)); old = was;\n"
      "  let sum = reduce_add(v[was / 13108] + x[i]); s += sum; }\n",
  };
  for (uint32_t n = 0; n < sizeof(kBodies) / sizeof(kBodies[0]); n++) {
    char text[1024];
    snprintf(text, sizeof(text),
             "program p(x: in u32[], c: inout u16[length(x)],\n"
             "    o: out u32[length(x)]) work length(x) block 64\n"
             "{\n"
             "  private v: u32[5];\n"
             "  let i = global_id.x;\n"
             "  for k in 0..5 { v[k] = k; }\n"
             "  if x[i] %% 3 == 0 { return; }\n"
             "  %s"
             "  v[old / 13108] += s;\n"
             "  let all = reduce_add(v[old / 13108]);\n"
             "  o[i] = all;\n"
             "}\n",
             kBodies[n]);
    machine_check(text, COUNTS(333, 333, 333), NULL, n);
  }
}

static void test_dimensions(void** state) {
  (void)state;
  machine_check(
      "program p(o: out u32[w * h * 3], w: u32, h: u32) work (w, h, 3)\n"
      "  block (5, 4, 2)\n"
      "{\n"
      "  let at = (global_id.z * h + global_id.y) * w + global_id.x;\n"
      "  o[at] = local_index + block_id.x * 1000 + block_id.y * 100000\n"
      "    + lane * 7 + subgroup * 31 + work_size.y + block_size.z\n"
      "    + block_count.x + local_id.y;\n"
      "}\n",
      COUNTS(17 * 9 * 3), COUNTS(17, 9), 5);
}

// ---- Lanes ----

static void lanes(const char* op, uint32_t type, uint32_t block,
                  const char* leave) {
  char text[1024];
  const char* t = kilni_program_type_name(type);
  snprintf(text, sizeof(text),
           "program p(x: in %s[], k: in u32[], o: out %s[length(x)])\n"
           "  work length(x) block %u\n"
           "{\n"
           "  let i = global_id.x;\n"
           "  %s\n"
           "  let a = %s;\n"
           "  o[i] = a;\n"
           "}\n",
           t, strstr(op, "ballot") != NULL ? "u32" : t, block, leave, op);
  const uint64_t counts[] = {3 * 32 + 9, 3 * 32 + 9, 3 * 32 + 9};
  machine_check_way(text, counts, NULL, block + type, 75, 0);
  machine_check_way(text, counts, NULL, block + type, 90, 0);
}

static void test_lanes(void** state) {
  (void)state;
  static const uint32_t kBlocks[] = {32, 64, 20, 45};
  static const char* const kLeave[] = {"", "if k[i] % 4 == 1 { return; }"};
  char op[64];
  for (uint32_t n = 0; n < 8; n++) {
    for (uint32_t type = 1; type < KILNI_TYPE_COUNT; type++) {
      for (uint32_t s = 0; s < KILNI_SUBGROUP_COUNT; s++) {
        if (kilni_program_type_of_subgroup(s, type) == 0) continue;
        if (s == KILN_PROGRAM_SUBGROUP_BROADCAST) {
          snprintf(op, sizeof(op), "broadcast(x[i], k[block_id.x] %% 40)");
        } else {
          snprintf(op, sizeof(op), "%s(x[i]%s)",
                   kilni_program_subgroups[s].spelling,
                   kilni_program_subgroups[s].lane ? ", k[i] % 40" : "");
        }
        lanes(op, type, kBlocks[n % 4], kLeave[n / 4]);
      }
    }
  }
}

// Threads that have returned go along with loops, whose ends the others know.
static void test_lanes_in_loops(void** state) {
  (void)state;
  machine_check(
      "program p(x: in u32[], n: u32, o: out u32[length(x)])\n"
      "  work length(x) block 64\n"
      "{\n"
      "  let i = global_id.x;\n"
      "  var s = 0;\n"
      "  if x[i] % 5 == 0 { o[i] = 77; return; }\n"
      "  for k in 0..n {\n"
      "    let t = reduce_add(x[i] + k);\n"
      "    s += t;\n"
      "    var q = i % 3;\n"
      "    while q != 0 { q -= 1; s += 1; }\n"
      "    if n == 4 { let u = reduce_max(s); s = u; barrier; }\n"
      "    let all = ballot(s % 2 == 0);\n"
      "    s ^= all;\n"
      "  }\n"
      "  o[i] = s;\n"
      "}\n",
      COUNTS(200, 200), COUNTS(4), 8);
}

// ---- Atomics ----

static void atomic(const char* space, uint32_t op, uint32_t type) {
  char text[1024], call[128];
  const char* t = kilni_program_type_name(type);
  const char* spelling = kilni_program_atomics[op].spelling;
  static const char* const kOrders[] = {"", ", acquire", ", release, block",
                                        ", acq_rel, system", ", seq_cst"};
  const char* order = kOrders[op % 5];
  if (op == KILN_PROGRAM_ATOMIC_LOAD) order = ", acquire";
  if (op == KILN_PROGRAM_ATOMIC_STORE) order = ", release";
  if (space[0] == 's' && op > 1) order = op % 2 != 0 ? ", seq_cst" : "";
  // Each element is one thread's own, so that there is one result; small ones
  // share their words.
  const char* value = op == KILN_PROGRAM_ATOMIC_LOAD ? ""
                      : op == KILN_PROGRAM_ATOMIC_COMPARE_EXCHANGE
                          ? ", y[i], y[i + 1]"
                          : ", y[i]";
  snprintf(call, sizeof(call), "%s(%s[i]%s%s)", spelling, space, value, order);
  bool result = op != KILN_PROGRAM_ATOMIC_STORE;
  snprintf(text, sizeof(text),
           "program p(g: inout %s[], y: in %s[], o: out %s[], r: out %s[])\n"
           "  work 64 block 64\n"
           "{\n"
           "  shared s: %s[40];\n"
           "  let i = global_id.x;\n"
           "  s[i] = g[i];\n"
           "  barrier;\n"
           "  %s%s;\n"
           "  barrier;\n"
           "  o[i] = %s;\n"
           "  r[i] = s[i];\n"
           "}\n",
           t, t, t, t, t, result ? "let old = " : "", call,
           result ? "old" : "y[i]");
  const uint64_t counts[] = {37, 65, 64, 64};
  machine_check_way(text, counts, NULL, 100 * op + type, 75, 0);
}

static void test_atomics(void** state) {
  (void)state;
  for (uint32_t op = 0; op < KILNI_ATOMIC_COUNT; op++) {
    for (uint32_t type = 1; type < KILNI_TYPE_COUNT; type++) {
      if (!kilni_program_type_is(type, kilni_program_atomics[op].operands)) {
        continue;
      }
      atomic("g", op, type);
      atomic("s", op, type);
    }
  }
}

static void test_histogram(void** state) {
  (void)state;
  machine_check(
      "program p(x: in u8[], h: inout u32[64], n: inout u16[3], b: inout "
      "i8[5])\n"
      "  work length(x)\n"
      "{\n"
      "  let i = global_id.x;\n"
      "  atomic_add(h[x[i]], 1);\n"
      "  atomic_add(n[i % 4], 1);\n"
      "  atomic_max(b[i % 5], i8(x[i]));\n"
      "}\n",
      COUNTS(1000, 64, 3, 5), NULL, 4);
}

// ---- The block and the grid ----

// What is in front of a buffer or behind it reads as 0 and is not written; what
// is in range is copied all the same. A count that is negative is none, and one
// that is far too large ends with the buffer.
static void test_async_copy_edges(void** state) {
  (void)state;
  const uint64_t counts[] = {200, 200};
  const uint64_t scalars[] = {5};
  static const char* const kCopies[] = {
      "async_copy(s, 0, x, i32(block_id.x) * 48 - 3, 48);",
      "async_copy(s, -5, x, block_id.x * 48, 40);",
      "async_copy(s, 40, x, 0i64 - 7, 40);",
      "async_copy(s, 0, x, 0, 3 - i32(n));",
      "async_copy(s, 0, x, 0, i64(n) - 6);",
      "async_copy(s, n, x, 3, n - 6);",
      "async_copy(s, 0, x, 0, 0u64 - 1);",
      "async_copy(s, 0u64 - 1 - u64(n), x, 0, 1u64 << 60u32);",
  };
  for (size_t i = 0; i < sizeof(kCopies) / sizeof(kCopies[0]); i++) {
    for (int narrow = 0; narrow < 2; narrow++) {
      char text[800];
      snprintf(text, sizeof(text),
               "type T = %s;"
               "program p(x: in T[], o: out T[length(x)], n: u32)\n"
               "  work (length(x) + 47) / 48 * 48 block 48 {\n"
               "  shared s: T[64];\n"
               "  s[local_id.x] = T(local_id.x); barrier;\n"
               "  %s async_wait;\n"
               "  o[global_id.x] = s[local_id.x]; }",
               narrow ? "u16" : "u32", kCopies[i]);
      machine_check(text, counts, scalars, i);
    }
  }
  // The other way round, from shared memory.
  machine_check(
      "program p(x: in u32[], o: out u32[length(x)], n: u32)\n"
      "  work 48 block 48 { shared s: u32[64];\n"
      "  s[local_id.x] = local_id.x + 7; barrier;\n"
      "  async_copy(o, -3, s, -2, n - 6) tag 1; async_wait 1; }",
      counts, scalars, 9);
}

static void test_async_copy(void** state) {
  (void)state;
  char text[1024];
  static const char* const kTypes[] = {"u8", "f16", "f32", "i64", "bool"};
  static const char* const kLeave[] = {"", "if x[i] == x[0] { return; }"};
  for (uint32_t n = 0; n < 10; n++) {
    const char* t = kTypes[n % 5];
    snprintf(text, sizeof(text),
             "program p(x: in %s[], o: inout %s[2 * length(x)])\n"
             "  work length(x) block 48\n"
             "{\n"
             "  shared s: %s[50];\n"
             "  let i = global_id.x;\n"
             "  %s\n"
             "  async_copy(s, 1, x, block_id.x * 48, 48) tag 1;\n"
             "  async_copy(s, 49, x, 0, 7) tag 1;\n"
             "  async_wait 1;\n"
             "  o[i] = s[49 - local_id.x];\n"
             "  barrier;\n"
             "  async_copy(o, length(x) + block_id.x * 48, s, 2, 48) tag 2;\n"
             "  async_wait 2;\n"
             "}\n",
             t, t, t, kLeave[n / 5]);
    machine_check(text, COUNTS(200, 400), NULL, n);
  }
}

// A wait leaves alone what began behind the last copy with its tag.
static void test_async_copies_beside(void** state) {
  (void)state;
  static const struct {
    const char* body;
    const char* waits;  // in the order of the text; "a": for all
  } kCases[] = {
      {"async_copy(a, 0, x, 0, 8) tag 1; async_wait 1;", "a"},
      {"async_copy(a, 0, x, 0, 8) tag 1; async_copy(b, 0, x, 8, 8) tag 2;"
       " async_wait 1; async_wait 2;",
       "1a"},
      // The later one's wait is one for the earlier one, too.
      {"async_copy(a, 0, x, 0, 8) tag 1; async_copy(b, 0, x, 8, 8) tag 2;"
       " async_wait 2; async_wait 1;",
       "a"},
      {"async_copy(a, 0, x, 0, 8) tag 1; async_copy(b, 0, x, 8, 8) tag 1;"
       " async_wait 1;",
       "a"},
      // One way has a copy behind it, the other has none.
      {"async_copy(a, 0, x, 0, 8) tag 1;"
       " if n > 3 { async_copy(b, 0, x, 8, 8) tag 2; }"
       " async_wait 1; async_wait 2;",
       "a"},
      // Two buffers by turns.
      {"async_copy(a, 0, x, 0, 8) tag 0;"
       " for k in 0..n {"
       "   async_copy(b, 0, x, k * 16 + 8, 8) tag 1;"
       "   async_wait 0; s += a[local_index % 8]; barrier;"
       "   async_copy(a, 0, x, k * 16 + 16, 8) tag 0;"
       "   async_wait 1; s += b[local_index % 8]; barrier;"
       " } async_wait 0;",
       "11a"},
      // The wait stands before the copy that it is for.
      {"for k in 0..n {"
       "   async_wait 1; s += a[local_index % 8]; barrier;"
       "   async_copy(a, 0, x, k * 8, 8) tag 1;"
       " } async_wait 1;",
       "aa"},
      // A loop is left with another number of copies under way.
      {"async_copy(a, 0, x, 0, 8) tag 1;"
       " for k in 0..n {"
       "   if k == 2 { break; }"
       "   async_copy(b, 0, x, 8, 8) tag 2; barrier;"
       " } async_wait 1; async_wait 2;",
       "a"},
      // A function may be left before its wait.
      {"async_copy(a, 0, x, 0, 8) tag 1; some(n); async_wait 1;", "aa"},
      {"async_copy(a, 0, x, 0, 8) tag 1; async_copy(b, 0, x, 8, 8) tag 2;"
       " some(n); async_wait 2;",
       "1a"},
      // Nothing goes on that this waits for.
      {"async_wait 3;", ""},
  };
  for (uint32_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    char text[2048], waits[16] = "";
    snprintf(text, sizeof(text),
             "fn some(n: u32) { if n > 1 { return; } async_wait 1; }\n"
             "program p(x: in f32[], o: inout f32[length(x)])\n"
             "  work length(x) block 64\n"
             "{\n"
             "  shared a: f32[8]; shared b: f32[8];\n"
             "  let n = length(x) / 40; var s = 0.0;\n"
             "  async_copy(a, 0, o, 0, 0) tag 7;\n"
             "  %s\n"
             "  o[global_id.x] = s;\n"
             "}\n",
             kCases[i].body);
    char* ptx = machine_ptx(text, 80, 0);
    const char* at = ptx;
    for (uint32_t k = 0; (at = strstr(at, "cp.async.wait_")) != NULL; at++) {
      waits[k++] = at[14];
      if (at[14] == 'g') waits[k - 1] = at[20];
    }
    assert_string_equal(waits, kCases[i].waits);
    free(ptx);
    machine_check(text, COUNTS(200, 200), NULL, i);
  }
}

// Behind a loop that waits for memory, and behind each branch and loop around
// it, those who went in together wait for each other; nobody waits for one who
// leaves by another way. Who they are comes of votes: by who is active only
// where it is not known who stays (`unknown`).
static void test_driven_apart(void** state) {
  (void)state;
  static const struct {
    const char* body;
    uint32_t meetings;
    uint32_t votes;
    uint32_t unknown;
  } kCases[] = {
      {"atomic_min(f[i], x[i]);", 1, 0, 0},
      {"atomic_add(u[i % 4], i);", 0, 0, 0},
      {"if x[i] > 0.5 { atomic_min(f[i % 4], x[i]); }", 2, 1, 0},
      {"if length(x) > 9 { atomic_min(f[i % 4], x[i]); }", 2, 0, 0},
      {"if x[i] > 0.5 { atomic_add(u[i % 4], i); }", 0, 0, 0},
      {"if x[i] > 0.5 { atomic_min(f[0], x[i]); }"
       " else { atomic_min(f[1], x[i]); }",
       3, 2, 0},
      {"for k in 0..i % 4 { atomic_add(u[k], i); }", 0, 0, 0},
      {"for k in 0..i % 4 { atomic_min(f[k], x[i]); }", 2, 1, 0},
      {"var k = i; while k > 3 { k = k / 2; atomic_add(u[k % 4], 1); }", 1, 0,
       0},
      {"for k in 0..i % 9 { if x[k] > 0.9 { break; } atomic_or(u[k % 4], i); }",
       1, 0, 0},
      {"for k in 0..i % 9 {"
       " if x[k] > 0.9 { break; } atomic_min(f[k % 4], x[i]); }",
       2, 2, 0},
      {"for k in 0..i % 9 {"
       " if x[k] > 0.9 { continue; } atomic_min(f[k % 4], x[i]); }",
       2, 2, 0},
      {"for k in 0..i % 9 {"
       " if x[k] > 0.9 { continue; } if x[k] < 0.1 { break; }"
       " atomic_min(f[k % 4], x[i]); }",
       2, 0, 1},
      {"for k in 0..i % 9 {"
       " if x[k] > 0.6 { if x[k] > 0.9 { break; } u[i % 4] = 1; }"
       " atomic_min(f[k % 4], x[i]); }",
       2, 0, 1},
      // The break leaves its if, not the loop's statement.
      {"for k in 0..4 { if x[i] > 0.5 { atomic_max(f[k], x[i]); break; } }", 2,
       2, 0},
      {"if x[i] > 0.5 { atomic_min(f[i % 4], x[i]); return; }", 2, 1, 0},
      {"if x[i] > 0.5 { some(f, x[i]); }", 3, 3, 0},
      {"let s = reduce_add(i);"
       " if x[i] > 0.5 { atomic_min(f[s % 4], x[i]); }",
       2, 2, 0},
      // A thread that has ended goes to the end of the outermost statement.
      {"let s = reduce_add(i); var k = i % 5; while k > 0 { k = k - 1;"
       " for m in 0..i % 3 { if x[i] > 2.0 { return; } }"
       " atomic_min(f[s % 4], x[i]); }",
       2, 1, 1},
      {"let s = reduce_add(i); if x[i] < 0.8 { for m in 0..i % 3 {"
       " if x[i] < 0.1 { return; } atomic_max(f[m], x[i]); }"
       " atomic_min(f[s % 4], x[i]); }",
       3, 4, 1},
  };
  for (uint32_t n = 0; n < sizeof kCases / sizeof *kCases; n++) {
    char text[1024];
    snprintf(text, sizeof(text),
             "fn some(v: inout f32[], x: f32) {\n"
             "  if x > 0.7 { return; }\n"
             "  if x < 0.6 { atomic_min(v[1], x); }\n"
             "}\n"
             "program p(x: in f32[], f: inout f32[4], u: inout u32[4])\n"
             "  work length(x)\n"
             "{ let i = global_id.x; %s }\n",
             kCases[n].body);
    char* ptx = machine_ptx(text, 80, 0);
    const uint32_t found[3] = {machine_count(ptx, "bar.warp.sync"),
                               machine_count(ptx, "vote.sync.ballot"),
                               machine_count(ptx, "activemask")};
    if (found[0] != kCases[n].meetings || found[1] != kCases[n].votes ||
        found[2] != kCases[n].unknown) {
      fail_msg("%u, %u, %u in\n%s", found[0], found[1], found[2], ptx);
    }
    free(ptx);
    machine_check(text, COUNTS(300, 4, 4), NULL, n);
  }
}

// Bits that are one of two constants are no halves to ptxas, but integers: it
// must not see that they are (a bool's, out of memory that may not be there).
static void test_bits_of_halves(void** state) {
  (void)state;
  static const char text[] =
      "program p(b: inout bool[126])\n"
      "  work 42 block 64\n"
      "{\n"
      "  let i = global_id.x * 3 + 2;\n"
      "  let was = b[i];\n"
      "  barrier;\n"
      "  b[u64(i)] = f16(true) <= bitcast_f16(u16(was));\n"
      "}\n";
  char* ptx = machine_ptx(text, 90, 0);
  const char* at = strstr(ptx, "cvt.f32.f16");
  assert_non_null(at);
  const char* hidden = strstr(ptx, "prmt.b32");
  assert_non_null(hidden);
  assert_true(hidden < at);
  free(ptx);
  machine_check(text, COUNTS(126), NULL, 7);
}

// ptxas 13.0 leaves an `abs` of a selection of -0 and 12 away: the sign is
// taken off as a bit.
static void test_abs_of_zero(void** state) {
  (void)state;
  static const char kTypes[][4] = {"f32", "f64", "f16"};
  for (size_t i = 0; i < sizeof(kTypes) / sizeof(kTypes[0]); i++) {
    char text[256];
    snprintf(text, sizeof(text),
             "program p(x: in u32[], o: out %s[length(x)]) work length(x)\n"
             "{\n"
             "  let i = global_id.x;\n"
             "  o[i] = abs(select(x[i] %% 2 == 0, -0.0%s, 12.0%s));\n"
             "}\n",
             kTypes[i], kTypes[i], kTypes[i]);
    char* ptx = machine_ptx(text, 90, 0);
    assert_null(strstr(ptx, "abs."));
    free(ptx);
    machine_check(text, COUNTS(126, 126), NULL, 7);
  }
}

static void test_grid_barrier(void** state) {
  (void)state;
  machine_check(
      "program p(x: inout u32[], t: inout u32[length(x)])\n"
      "  work length(x) block 32\n"
      "{\n"
      "  let i = global_id.x;\n"
      "  let n = length(x);\n"
      "  if i >= 64 && i < 128 { return; }\n"
      "  if t[i] % 8 == 0 { t[i] = 5; return; }\n"
      "  for k in 0..5 {\n"
      "    t[i] = x[(i + 37) % n] + k;\n"
      "    grid_barrier;\n"
      "    x[i] = t[n - 1 - i] * 3;\n"
      "    grid_barrier;\n"
      "  }\n"
      "}\n",
      COUNTS(250, 250), NULL, 4);
  // Blocks leave in front of what is in no loop or branch.
  machine_check(
      "program p(x: inout u32[]) work length(x) block 8\n"
      "{\n"
      "  let i = global_id.x;\n"
      "  if i > 5 { return; }\n"
      "  grid_barrier;\n"
      "  x[i] = 5;\n"
      "}\n",
      COUNTS(17), NULL, 4);
  // A block leaves in front of what others make for themselves, and what it
  // needs too: where the counts are, and how many others there are.
  static const char* const kBehind[] = {
      "for k in 0..3 { grid_barrier; x[i] += k; barrier; }",
      "x[i] = u32(u64(block_count.x) * u64(block_count.y) *"
      " u64(block_count.z) - 1);",
  };
  for (uint32_t n = 0; n < sizeof(kBehind) / sizeof(kBehind[0]); n++) {
    char text[512];
    snprintf(text, sizeof(text),
             "program p(x: inout u32[]) work length(x) block 32\n"
             "{\n"
             "  let i = global_id.x;\n"
             "  if i >= 32 && i < 64 { return; }\n"
             "  grid_barrier;\n"
             "  %s\n"
             "}\n",
             kBehind[n]);
    machine_check(text, COUNTS(150), NULL, n);
  }
}

// Words that are put together of bytes, which a loop carries.
static void test_bytes_of_loops(void** state) {
  (void)state;
  machine_check(
      "program p(x: in u8[], o: out u32[length(x)])\n"
      "  work (length(x) + 63) / 64 block 32\n"
      "{\n"
      "  private next: u8[16];\n"
      "  private words: u32[4];\n"
      "  let at = global_id.x * 16;\n"
      "  for k in 0..16 unroll { next[k] = x[at + k]; }\n"
      "  for turn in 0..3 {\n"
      "    for c in 0..4 unroll {\n"
      "      words[c] = u32(next[c * 4]) | u32(next[c * 4 + 1]) << 8 |\n"
      "        u32(next[c * 4 + 2]) << 16 | u32(next[c * 4 + 3]) << 24;\n"
      "    }\n"
      "    for k in 0..16 unroll {\n"
      "      next[k] = x[at + (turn + 1) * work_size.x * 16 + k];\n"
      "    }\n"
      "    for c in 0..4 unroll {\n"
      "      o[(turn * work_size.x + global_id.x) * 4 + c] = words[c];\n"
      "    }\n"
      "  }\n"
      "}\n",
      COUNTS(3000, 3000), NULL, 4);
}

// Halves of words that a loop carries are those of this round.
static void test_matrix_of_loops(void** state) {
  (void)state;
  static const char kTypes[][5] = {"f16", "bf16"};
  for (size_t i = 0; i < sizeof(kTypes) / sizeof(kTypes[0]); i++) {
    char text[1024];
    snprintf(
        text, sizeof(text),
        "type T = %s;\n"
        "program p(x: in u32[], o: out f32[128]) work 32 block 32\n"
        "{\n"
        "  private d: f32[4];\n"
        "  private a: T[8];\n"
        "  private b: T[4];\n"
        "  private w: u32[4];\n"
        "  for k in 0..4 unroll { w[k] = x[lane * 4 + k]; }\n"
        "  for turn in 1..4 {\n"
        "    for k in 0..8 unroll {\n"
        "      a[k] = bitcast_T(u16(w[k / 2] >> (k %% 2 * 16)));\n"
        "    }\n"
        "    for k in 0..4 unroll { b[k] = a[k] * 0.5; }\n"
        "    matrix_multiply_accumulate(d, a, b);\n"
        "    for k in 0..4 unroll { w[k] = x[turn * 128 + lane * 4 + k]; }\n"
        "  }\n"
        "  for k in 0..4 unroll { o[lane * 4 + k] = d[k]; }\n"
        "}\n",
        kTypes[i]);
    machine_check(text, COUNTS(512, 128), NULL, 5);
  }
}

// Also where the last subgroup is a part of one, and behind returns.
static void test_subgroup_barrier(void** state) {
  (void)state;
  static const uint32_t kCounts[] = {250, 144, 33};
  for (int i = 0; i < 3; i++) {
    machine_check(
        "program p(x: inout u32[], n: u32) work length(x) block 48\n"
        "{\n"
        "  shared s: u32[48];\n"
        "  let i = global_id.x;\n"
        "  if i % 11 == 3 { return; }\n"
        "  s[local_index] = x[i];\n"
        "  for k in 0..5 {\n"
        "    subgroup_barrier;\n"
        "    let other = s[local_index ^ (1 << k)];\n"
        "    subgroup_barrier;\n"
        "    s[local_index] = other * 3 + k;\n"
        "  }\n"
        "  if n == 4 && subgroup == 1 { subgroup_barrier; }\n"
        "  x[i] = s[local_index];\n"
        "}\n",
        COUNTS(kCounts[i]), (const uint64_t[]){4}, 4);
  }
}

// Parts of a from halves and from words, loops, blocks that end in a part of a
// subgroup, threads that have returned.
static void test_matrices(void** state) {
  (void)state;
  static const char* const kTypes[] = {"f16", "bf16"};
  static const uint32_t kBlocks[] = {32, 48, 96, 20};
  char text[1600];
  for (uint32_t i = 0; i < 8; i++) {
    const char* t = kTypes[i % 2];
    snprintf(text, sizeof(text),
             "program p(x: in %s[], w: in u32[], o: out f32[])\n"
             "  work length(o) / 4 block %u\n"
             "{\n"
             "  private d: f32[4]; private a: %s[8]; private b: %s[4];\n"
             "  let i = global_id.x;\n"
             "  if i %% 13 == 5 { return; }\n"
             "  for k in 0..8 unroll { a[k] = x[i * 8 + k]; }\n"
             "  for k in 0..2 unroll {\n"
             "    b[k * 2] = bitcast_%s(u16(w[i * 2 + k]));\n"
             "    b[k * 2 + 1] = bitcast_%s(u16(w[i * 2 + k] >> 16));\n"
             "  }\n"
             "  for k in 0..3 {\n"
             "    matrix_multiply_accumulate(d, a, b);\n"
             "    a[k] = a[k + 2] * 0.5;\n"
             "  }\n"
             "  for k in 0..4 { o[i * 4 + k] = d[k]; }\n"
             "}\n",
             t, kBlocks[i / 2], t, t, t, t);
    machine_check(text, COUNTS(2000, 500, 1000), NULL, i);
    if (machine_collects()) machine_collect_fast(text);
  }
}

// Arrays in memory, in a function, and more than one product of the same.
static void test_matrices_in_memory(void** state) {
  (void)state;
  machine_check(
      "fn dot(x: in f16[], i: u32, n: u32) -> f32 {\n"
      "  private d: f32[4]; private a: f16[8]; private b: f16[4];\n"
      "  for k in 0..n { a[k] = x[i + k]; b[k % 4] = x[i + k * 3]; }\n"
      "  d[n % 5] = 1.0;\n"
      "  matrix_multiply_accumulate(d, a, b);\n"
      "  return d[n % 4];\n"
      "}\n"
      "program p(x: in f16[], o: out f32[], n: u32) work length(o)\n"
      "{\n"
      "  private d: f32[4]; private a: bf16[8]; private b: bf16[4];\n"
      "  let i = global_id.x;\n"
      "  let first = dot(x, i, n);\n"
      "  if n == 7 {\n"
      "    for k in 0..n { a[k + 1] = bf16(x[i + k]); b[k] = bf16(x[k]); }\n"
      "    matrix_multiply_accumulate(d, a, b);\n"
      "  }\n"
      "  let second = dot(x, i + 1, n - 2);\n"
      "  o[i] = first + second * 2.0 + d[3];\n"
      "}\n",
      COUNTS(700, 600), (const uint64_t[]){7}, 4);
}

static void test_trap(void** state) {
  (void)state;
  machine_check(
      "program p(x: inout u32[]) work length(x) block 32\n"
      "{\n"
      "  shared s: u32[32];\n"
      "  let i = global_id.x;\n"
      "  if i == 45 { trap(7, 1234567890123u64); }\n"
      "  s[local_id.x] = i;\n"
      "  barrier;\n"
      "  x[i] = s[31 - local_id.x];\n"
      "}\n",
      COUNTS(100), NULL, 4);
}

int main(int argc, char** argv) {
  machine_collect(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_saxpy),
      cmocka_unit_test(test_out_of_range),
      cmocka_unit_test(test_branches),
      cmocka_unit_test(test_loops),
      cmocka_unit_test(test_unrolled),
      cmocka_unit_test(test_functions),
      cmocka_unit_test(test_early_return),
      cmocka_unit_test(test_declared_by_some),
      cmocka_unit_test(test_dimensions),
      cmocka_unit_test(test_lanes),
      cmocka_unit_test(test_lanes_in_loops),
      cmocka_unit_test(test_atomics),
      cmocka_unit_test(test_histogram),
      cmocka_unit_test(test_async_copy),
      cmocka_unit_test(test_async_copy_edges),
      cmocka_unit_test(test_async_copies_beside),
      cmocka_unit_test(test_driven_apart),
      cmocka_unit_test(test_bits_of_halves),
      cmocka_unit_test(test_abs_of_zero),
      cmocka_unit_test(test_grid_barrier),
      cmocka_unit_test(test_bytes_of_loops),
      cmocka_unit_test(test_matrix_of_loops),
      cmocka_unit_test(test_subgroup_barrier),
      cmocka_unit_test(test_matrices),
      cmocka_unit_test(test_matrices_in_memory),
      cmocka_unit_test(test_trap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
