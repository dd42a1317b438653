// SPDX-License-Identifier: Apache-2.0
//
// program: kernels that repeat their program until a round changes nothing, on
// the software device, beside a loop of the reference evaluator.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program/ir/program_object.h"
#include "program/ir/program_types.h"
#include "program_kit.h"
#include "program_machine.h"
#include "says.h"

enum { MANY_ROUNDS = 10000 };

static uint32_t next(uint32_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

// ---- Worlds ----

typedef struct task_t {
  kiln_program_t* program;
  const kilni_program_ir_t* ir;
  uint32_t flag;  // the parameter
  program_world_t want, have;
} task_t;

// Buffers and scalars in their order; the flag is called `changed`.
static void begin(task_t* t, const char* text) {
  memset(t, 0, sizeof(*t));
  t->program = kit_parse(text);
  t->ir = kilni_program_ir(t->program);
  assert_true(kiln_program_find_parameter(t->program, "changed", &t->flag));
}

static uint32_t buffer_named(const task_t* t, const char* name) {
  for (uint32_t i = 1; i < t->ir->buffers.count; i++) {
    const char* is = kilni_program_ir_name(t->ir, t->ir->buffers.items[i].name);
    if (strcmp(is, name) == 0) return i;
  }
  fail_msg("no %s", name);
  return 0;
}

static uint32_t* give(task_t* t, const char* name, uint64_t count) {
  uint32_t i = buffer_named(t, name);
  uint32_t bytes = kilni_program_type_bytes(t->ir->buffers.items[i].type);
  t->want.buffers[i].count = t->have.buffers[i].count = count;
  t->want.buffers[i].data = calloc(count + 2, bytes);
  // The task has both, and frees them.
  // NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
  t->have.buffers[i].data = calloc(count + 2, bytes);
  assert_non_null(t->have.buffers[i].data);
  return t->want.buffers[i].data;
}

static void end(task_t* t) {
  for (uint32_t i = 0; i < PROGRAM_BUFFERS_MAX; i++) {
    free(t->want.buffers[i].data);
    free(t->have.buffers[i].data);
  }
  kiln_program_release(t->program);
}

static void copy_buffers(const task_t* t, const program_world_t* from,
                         program_world_t* to) {
  for (uint32_t i = 1; i < t->ir->buffers.count; i++) {
    if (from->buffers[i].data == NULL) continue;
    memcpy(to->buffers[i].data, from->buffers[i].data,
           from->buffers[i].count *
               kilni_program_type_bytes(t->ir->buffers.items[i].type));
  }
}

// Round by round, by the evaluator.
static kiln_program_rounds_t evaluate(task_t* t, uint32_t limit) {
  kiln_program_rounds_t out = {0, 0};
  uint32_t* flag = t->want.buffers[buffer_named(t, "changed")].data;
  while (out.end == 0) {
    *flag = 0;
    assert_null(program_evaluate(t->ir, &t->want));
    out.rounds++;
    if (t->want.trap.set != 0) {
      out.end = KILN_PROGRAM_ROUNDS_TRAPPED;
    } else if (*flag == 0) {
      out.end = KILN_PROGRAM_ROUNDS_SETTLED;
    } else if (out.rounds == limit) {
      out.end = KILN_PROGRAM_ROUNDS_LIMIT;
    }
  }
  *flag = *flag != 0;
  return out;
}

static void compare(const task_t* t) {
  for (uint32_t i = 1; i < t->ir->buffers.count; i++) {
    if (t->want.buffers[i].data == NULL) continue;
    assert_memory_equal(
        t->have.buffers[i].data, t->want.buffers[i].data,
        t->want.buffers[i].count *
            kilni_program_type_bytes(t->ir->buffers.items[i].type));
  }
}

// Runs what `want` holds now in every way there is and as `blocks` blocks.
// `same_rounds`: how many there are does not depend on who comes first.
static void check(task_t* t, uint32_t limit, bool same_rounds) {
  static const uint32_t kBlocks[] = {1, 2, 3, 7};
  if (machine_collects()) {
    machine_collect_rounds(t->program, t->flag);
    return;
  }
  copy_buffers(t, &t->want, &t->have);
  memcpy(t->have.scalars, t->want.scalars, sizeof(t->have.scalars));
  program_world_t start;
  memcpy(&start, &t->have, sizeof(start));
  // What the world was: it is run many times.
  void* kept[PROGRAM_BUFFERS_MAX] = {NULL};
  for (uint32_t i = 1; i < t->ir->buffers.count; i++) {
    if (t->have.buffers[i].data == NULL) continue;
    uint64_t bytes = t->have.buffers[i].count *
                     kilni_program_type_bytes(t->ir->buffers.items[i].type);
    kept[i] = malloc(bytes + 1);
    assert_non_null(kept[i]);
    memcpy(kept[i], t->have.buffers[i].data, bytes);
  }
  kiln_program_rounds_t want = evaluate(t, limit);
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.rounds = t->flag + 1;
  soft_kit_way_t way;
  for (uint32_t w = 0; soft_kit_way(w, &way); w++) {
    machine_rounds_t rounds = {kBlocks[w % 4], limit, w, {0, 0}};
    options.sm = w % 2 == 0 ? 75 : 90;
    for (uint32_t i = 1; i < t->ir->buffers.count; i++) {
      if (kept[i] == NULL) continue;
      memcpy(t->have.buffers[i].data, kept[i],
             t->have.buffers[i].count *
                 kilni_program_type_bytes(t->ir->buffers.items[i].type));
    }
    memset(&t->have.trap, 0, sizeof(t->have.trap));
    machine_run_rounds(t->ir, &options, &t->have, &rounds);
    assert_int_equal(rounds.end.end, want.end);
    if (same_rounds) assert_int_equal(rounds.end.rounds, want.rounds);
    if (want.end == KILN_PROGRAM_ROUNDS_TRAPPED) {
      assert_int_equal(t->have.trap.tag, t->want.trap.tag);
    } else {
      compare(t);
    }
  }
  for (uint32_t i = 0; i < PROGRAM_BUFFERS_MAX; i++) free(kept[i]);
}

// ---- Programs ----

// Labels go along edges, from one half of `label` to the other: each round
// reads what the one before wrote, so that rounds can be counted.
static const char kLabels[] =
    "program labels(from: in u32[], edges: in u32[],\n"
    "    label: inout u32[2 * length(age)], age: inout u32[],\n"
    "    changed: inout u32[1])\n"
    "  work length(age) block 64\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  let n = length(age);\n"
    "  let now = age[i] & 1;\n"
    "  age[i] = age[i] + 1;\n"
    "  let mine = label[now * n + i];\n"
    "  var least = mine;\n"
    "  for k in from[i]..from[i + 1] {\n"
    "    least = min(least, label[now * n + edges[k]]);\n"
    "  }\n"
    "  label[(1 - now) * n + i] = least;\n"
    "  if least == mine { return; }\n"
    "  changed[0] = 1;\n"
    "}\n";

// A graph of `n` points; each has an edge to the next one with some luck, and
// some others, both ways.
static void make_graph(task_t* t, uint32_t n, uint32_t seed) {
  uint32_t* degree = calloc(n + 2, sizeof(*degree));
  uint32_t count = 0, capacity = 4 * n + 8;
  uint32_t(*pairs)[2] = calloc(capacity, sizeof(*pairs));
  assert_non_null(degree);
  assert_non_null(pairs);
  for (uint32_t i = 0; i + 1 < n; i++) {
    uint32_t to = next(&seed) % 8 == 0 ? next(&seed) % n : i + 1;
    if (next(&seed) % 16 == 0) continue;
    pairs[count][0] = i, pairs[count++][1] = to;
    pairs[count][0] = to, pairs[count++][1] = i;
  }
  for (uint32_t k = 0; k < count; k++) degree[pairs[k][0] + 1]++;
  uint32_t* from = give(t, "from", n + 1);
  for (uint32_t i = 0; i < n; i++) from[i + 1] = from[i] + degree[i + 1];
  memset(degree, 0, (n + 1) * sizeof(*degree));
  uint32_t* edges = give(t, "edges", count);
  for (uint32_t k = 0; k < count; k++) {
    uint32_t at = pairs[k][0];
    edges[from[at] + degree[at]++] = pairs[k][1];
  }
  free(degree);
  free(pairs);
}

static void test_labels(void** state) {
  (void)state;
  static const uint32_t kSizes[] = {1, 64, 65, 150};
  for (size_t s = 0; s < sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint32_t n = kSizes[s];
    task_t t;
    begin(&t, kLabels);
    make_graph(&t, n, 77 + n);
    uint32_t* label = give(&t, "label", 2 * n);
    for (uint32_t i = 0; i < n; i++) label[i] = (i * 7919) % n;
    give(&t, "age", n);
    give(&t, "changed", 1)[0] = 5;
    check(&t, MANY_ROUNDS, true);
    end(&t);
  }
}

// What the limit cuts off, at each limit up to what it takes.
static void test_limit(void** state) {
  (void)state;
  for (uint32_t limit = 1; limit <= 12; limit += 3) {
    task_t t;
    begin(&t, kLabels);
    uint32_t n = 10;
    uint32_t* from = give(&t, "from", n + 1);
    uint32_t* edges = give(&t, "edges", n);
    for (uint32_t i = 0; i < n; i++) {
      from[i + 1] = i + 1;
      edges[i] = i == 0 ? 0 : i - 1;
    }
    uint32_t* label = give(&t, "label", 2 * n);
    for (uint32_t i = 0; i < n; i++) label[i] = i;
    give(&t, "age", n);
    give(&t, "changed", 1);
    check(&t, limit, true);
    end(&t);
  }
}

// Labels in place: who comes first decides how many rounds there are, and
// nothing else.
static void test_in_place(void** state) {
  (void)state;
  task_t t;
  begin(&t,
        "program reach(from: in u32[], edges: in u32[], label: inout u32[],\n"
        "    changed: out u32[1])\n"
        "  work length(label)\n"
        "{\n"
        "  let i = global_id.x;\n"
        "  for k in from[i]..from[i + 1] {\n"
        "    let least = atomic_load(label[i]);\n"
        "    let old = atomic_min(label[edges[k]], least);\n"
        "    if least < old { atomic_or(changed[0], 2); }\n"
        "  }\n"
        "}\n");
  uint32_t n = 600;
  make_graph(&t, n, 99);
  uint32_t* label = give(&t, "label", n);
  for (uint32_t i = 0; i < n; i++) label[i] = (i * 7919) % n;
  give(&t, "changed", 1);
  check(&t, MANY_ROUNDS, false);
  end(&t);
}

// Two dimensions and a block that is no power of two; the closure of a relation
// by squaring, from one matrix to the other and back.
static void test_closure(void** state) {
  (void)state;
  static const uint32_t kSizes[] = {3, 13};
  for (size_t s = 0; s < sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint32_t n = kSizes[s], seed = 5 + n;
    task_t t;
    begin(&t,
          "program closure(r: inout u32[2 * length(age)], age: inout u32[],\n"
          "    changed: inout u32[1], n: u32)\n"
          "  work (n, n) block (6, 5)\n"
          "{\n"
          "  let at = global_id.y * n + global_id.x;\n"
          "  let size = length(age);\n"
          "  let now = (age[at] & 1) * size;\n"
          "  let then = size - now;\n"
          "  age[at] += 1;\n"
          "  var has = r[now + at];\n"
          "  for k in 0..n {\n"
          "    has = has | (r[now + global_id.y * n + k] &\n"
          "      r[now + k * n + global_id.x]);\n"
          "  }\n"
          "  r[then + at] = has;\n"
          "  if has != r[now + at] { changed[0] = 1; }\n"
          "}\n");
    t.want.scalars[1] = n;
    uint32_t* r = give(&t, "r", 2 * n * n);
    for (uint32_t i = 0; i + 1 < n; i++) {
      r[i * n + i + 1] = 1;
      r[i * n + next(&seed) % n] = next(&seed) % 5 == 0;
    }
    give(&t, "age", n * n);
    give(&t, "changed", 1);
    check(&t, MANY_ROUNDS, true);
    end(&t);
  }
}

// Sand that topples: shared memory, barriers, and threads that return before
// them.
static void test_sandpile(void** state) {
  (void)state;
  static const uint32_t kSizes[] = {5, 16};
  for (size_t s = 0; s < sizeof(kSizes) / sizeof(kSizes[0]); s++) {
    uint32_t n = kSizes[s];
    task_t t;
    begin(&t,
          "program topple(sand: inout u32[2 * length(age)],\n"
          "    age: inout u32[], changed: inout u32[1], n: u32)\n"
          "  work (n, n) block (8, 8)\n"
          "{\n"
          "  shared tile: u32[100];\n"
          "  shared fell: u32[1];\n"
          "  let size = length(age);\n"
          "  let x = global_id.x;\n"
          "  let y = global_id.y;\n"
          "  let at = y * n + x;\n"
          "  let now = (age[at] & 1) * size;\n"
          "  age[at] += 1;\n"
          "  let mine = sand[now + at];\n"
          "  let tx = local_id.x + 1;\n"
          "  let ty = local_id.y + 1;\n"
          "  tile[ty * 10 + tx] = mine / 4;\n"
          "  if local_id.x == 0 && x > 0 {\n"
          "    tile[ty * 10] = sand[now + at - 1] / 4;\n"
          "  }\n"
          "  if local_id.x == 7 && x + 1 < n {\n"
          "    tile[ty * 10 + 9] = sand[now + at + 1] / 4;\n"
          "  }\n"
          "  if local_id.y == 0 && y > 0 {\n"
          "    tile[tx] = sand[now + at - n] / 4;\n"
          "  }\n"
          "  if local_id.y == 7 && y + 1 < n {\n"
          "    tile[90 + tx] = sand[now + at + n] / 4;\n"
          "  }\n"
          "  barrier;\n"
          "  let more = tile[ty * 10 + tx - 1] + tile[ty * 10 + tx + 1] +\n"
          "    tile[ty * 10 - 10 + tx] + tile[ty * 10 + 10 + tx];\n"
          "  sand[size - now + at] = mine % 4 + more;\n"
          "  if mine < 4 { return; }\n"
          "  atomic_add(fell[0], 1);\n"
          "  barrier;\n"
          "  if fell[0] != 0 { atomic_max(changed[0], 1); }\n"
          "}\n");
    t.want.scalars[1] = n;
    uint32_t* sand = give(&t, "sand", 2 * n * n);
    for (uint32_t i = 0; i < n * n; i++) sand[i] = (i * 31) % 9;
    give(&t, "age", n * n);
    give(&t, "changed", 1);
    check(&t, MANY_ROUNDS, true);
    end(&t);
  }
}

// Subgroups and threads that have returned; three dimensions.
static void test_lanes(void** state) {
  (void)state;
  task_t t;
  begin(&t,
        "program lanes(x: inout u32[], changed: inout u32[1], n: u32)\n"
        "  work (n, 5, 3) block (32, 2, 1)\n"
        "{\n"
        "  let at = (global_id.z * 5 + global_id.y) * n + global_id.x;\n"
        "  if x[at] % 8 == 3 { return; }\n"
        "  let sum = reduce_add(x[at] & 1);\n"
        "  if x[at] >= 40 { return; }\n"
        "  x[at] = x[at] + 1 + (sum & 0);\n"
        "  changed[0] = sum + 1;\n"
        "}\n");
  uint32_t n = 45;
  t.want.scalars[1] = n;
  uint32_t* x = give(&t, "x", n * 15);
  for (uint32_t i = 0; i < n * 15; i++) x[i] = (i * 13) % 50;
  give(&t, "changed", 1);
  check(&t, MANY_ROUNDS, true);
  end(&t);
}

// Copies of the block, also one that nobody waits for; and threads that return
// while they are under way.
static void test_copies(void** state) {
  (void)state;
  task_t t;
  begin(&t,
        "program copies(x: inout u32[], changed: inout u32[1])\n"
        "  work length(x) block 64\n"
        "{\n"
        "  shared s: u32[64];\n"
        "  shared unused: u32[64];\n"
        "  let i = global_id.x;\n"
        "  async_copy(s, 0, x, block_id.x * 64, 64) tag 1;\n"
        "  async_copy(unused, 0, x, 0, 64) tag 2;\n"
        "  if i % 7 == 3 { return; }\n"
        "  async_wait 1;\n"
        "  let v = s[local_id.x];\n"
        "  if v > 0 { x[i] = v - 1; changed[0] = 1; }\n"
        "}\n");
  uint32_t n = 333;
  uint32_t* x = give(&t, "x", n);
  for (uint32_t i = 0; i < n; i++) x[i] = (i * 5) % 11;
  give(&t, "changed", 1);
  check(&t, MANY_ROUNDS, true);
  end(&t);
}

// One thread in one round traps; nobody waits for it, and no round follows.
static void test_trap(void** state) {
  (void)state;
  static const char* const kBefore[] = {"", "barrier;"};
  for (uint32_t k = 0; k < 2; k++) {
    char text[1024];
    snprintf(text, sizeof(text),
             "program falls(x: inout u32[], changed: inout u32[1])\n"
             "  work length(x) block 96\n"
             "{\n"
             "  let i = global_id.x;\n"
             "  x[i] += 1;\n"
             "  if i == 500 && x[i] == 7 { trap(9, u64(i)); }\n"
             "  %s\n"
             "  changed[0] = 1;\n"
             "}\n",
             kBefore[k]);
    task_t t;
    begin(&t, text);
    give(&t, "x", 1000);
    give(&t, "changed", 1);
    check(&t, MANY_ROUNDS, true);
    end(&t);
  }
}

// A flag that is taken back in the round that raised it, so that no thread can
// keep it to itself; and a trap beside it.
static void test_withdrawn(void** state) {
  (void)state;
  static const char* const kBefore[] = {
      "", "if i == 130 && v == 2 { trap(4, u64(v)); }"};
  for (uint32_t k = 0; k < 2; k++) {
    char text[1024];
    snprintf(text, sizeof(text),
             "program back(x: inout u32[], changed: inout u32[1])\n"
             "  work length(x) block 64\n"
             "{\n"
             "  let i = global_id.x;\n"
             "  let v = x[i];\n"
             "  %s\n"
             "  changed[0] = 1;\n"
             "  barrier;\n"
             "  if v > 0 { x[i] = v - 1; }\n"
             "  if v == 0 { changed[0] = 0; }\n"
             "}\n",
             kBefore[k]);
    task_t t;
    begin(&t, text);
    uint32_t* x = give(&t, "x", 200);
    for (uint32_t i = 0; i < 200; i++) x[i] = 5;
    give(&t, "changed", 1);
    check(&t, 100, true);
    end(&t);
  }
}

// Nothing to do is done in one round; and each round is one.
static void test_nothing(void** state) {
  (void)state;
  task_t t;
  begin(&t,
        "program idle(x: inout u32[], changed: inout u32[1])\n"
        "  work length(x)\n"
        "{ if x[global_id.x] != 0 { changed[0] = 1; } }\n");
  give(&t, "x", 0);
  give(&t, "changed", 1)[0] = 3;
  check(&t, 5, true);
  end(&t);
}

static void test_refused(void** state) {
  (void)state;
  static const struct {
    const char* body;
    kiln_status_code_t code;
    const char* says;
  } kCases[] = {
      {"if changed[0] == 0 { x[0] = 1; }", KILN_STATUS_UNSUPPORTED, "reads"},
      {"let old = atomic_add(changed[0], 1); x[0] = old;",
       KILN_STATUS_UNSUPPORTED, "reads"},
      {"atomic_and(changed[0], 1);", KILN_STATUS_UNSUPPORTED, "reads"},
      {"grid_barrier; changed[0] = 1;", KILN_STATUS_UNSUPPORTED, "barrier"},
  };
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    char text[512];
    snprintf(text, sizeof(text),
             "program p(x: inout u32[], y: in u32[], changed: inout u32[1])\n"
             "  work length(x)\n{ %s }\n",
             kCases[i].body);
    kiln_program_t* program = kit_parse(text);
    kiln_program_lower_options_t options = kiln_program_lower_options_default();
    options.rounds = 3;
    kiln_program_code_t* code;
    kiln_status_t status = kiln_program_lower(program, &options, &code);
    assert_int_equal(kiln_status_code(status), kCases[i].code);
    assert_non_null(strstr(kiln_status_message(status), kCases[i].says));
    kiln_status_free(status);
    // A buffer that is only read, and no parameter.
    for (uint32_t rounds = 2; rounds < 6; rounds += 2) {
      options.rounds = rounds;
      status = kiln_program_lower(program, &options, &code);
      assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
      kiln_status_free(status);
    }
    kiln_program_release(program);
  }
}

// The order of parameters, and what a launch takes.
static void test_launch(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse(kLabels);
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.rounds = 5;
  options.elements = 4;
  kiln_program_code_t* code;
  assert_true(kiln_status_is_ok(kiln_program_lower(program, &options, &code)));
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  assert_int_equal(launch.cooperative, 1);
  assert_int_equal(launch.elements, 1);
  uint32_t seen = 0;
  kiln_program_parameter_t p;
  for (uint32_t i = 0; kiln_program_code_parameter(code, i, &p); i++) {
    if (p.kind >= KILN_PROGRAM_PARAMETER_MEET) seen |= 1U << p.kind;
  }
  assert_int_equal(seen, 7U << KILN_PROGRAM_PARAMETER_MEET);
  // What no round writes is read by the way for that, and nothing else.
  const char* text = kiln_program_code_text(code).data;
  assert_int_equal(machine_count(text, "ld.global.nc"), 3);
  // One barrier a round for a block by itself, another one for several.
  assert_int_equal(machine_count(text, ".shared"), 0);
  assert_int_equal(machine_count(text, "bar."), 2);
  kiln_program_code_release(code);
  kiln_program_release(program);
}

int main(int argc, char** argv) {
  machine_collect(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_labels),   cmocka_unit_test(test_limit),
      cmocka_unit_test(test_in_place), cmocka_unit_test(test_closure),
      cmocka_unit_test(test_sandpile), cmocka_unit_test(test_lanes),
      cmocka_unit_test(test_copies),   cmocka_unit_test(test_trap),
      cmocka_unit_test(test_nothing),  cmocka_unit_test(test_refused),
      cmocka_unit_test(test_launch),   cmocka_unit_test(test_withdrawn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
