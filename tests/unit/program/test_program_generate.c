// SPDX-License-Identifier: Apache-2.0
//
// program: what generated programs cover, and that a failing one is made small
// enough to be read.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "evaluator_values.h"
#include "program/ir/program_object.h"
#include "program/ir/program_types.h"
#include "program_generate.h"
#include "program_kit.h"
#include "program_runner.h"

// A sanitizer makes each run many times slower; what comes up less often is
// looked for without one.
#if defined(KILNI_SANITIZED)
enum { PROGRAMS = 240, SHRUNK = 2, WHOLE = 0 };
#else
enum { PROGRAMS = 1500, SHRUNK = 12, WHOLE = 1 };
#endif
enum { STATEMENTS_MOST = 10 };

static const uint32_t WITH[] = {0, PROGRAM_WITH_MATH, PROGRAM_WITH_TRAP,
                                PROGRAM_WITH_MATH | PROGRAM_WITH_GRID_BARRIER};

// How often each thing came up. one-thread
typedef struct seen_t {
  uint32_t unary[KILNI_UNARY_COUNT][KILNI_TYPE_COUNT];
  uint32_t binary[KILNI_BINARY_COUNT][KILNI_TYPE_COUNT];
  uint32_t casts[KILNI_TYPE_COUNT][KILNI_TYPE_COUNT];
  uint32_t bitcasts[KILNI_TYPE_COUNT];
  uint32_t atomics[KILNI_ATOMIC_COUNT];
  uint32_t atomic_types[KILNI_TYPE_COUNT];
  uint32_t subgroups[KILNI_SUBGROUP_COUNT];
  uint32_t ids[KILNI_ID_COUNT];
  uint32_t exprs[KILNI_EXPR_CALL + 1];
  uint32_t statements[KILNI_STATEMENT_COUNT];
  uint32_t roles[KILN_PROGRAM_ROLE_PRIVATE + 1];
  uint32_t early_returns;
  uint32_t functions;
} seen_t;

static uint8_t type_of(const kilni_program_ir_t* ir, uint32_t expr) {
  return ir->exprs.items[expr].type;
}

static void see_expr(seen_t* seen, const kilni_program_ir_t* ir, uint32_t at) {
  const kilni_program_expr_record_t* e = &ir->exprs.items[at];
  seen->exprs[e->op]++;
  switch (e->op) {
    case KILNI_EXPR_UNARY:
      seen->unary[e->extra][type_of(ir, e->a)]++;
      break;
    case KILNI_EXPR_BINARY:
      seen->binary[e->extra][type_of(ir, e->a)]++;
      break;
    case KILNI_EXPR_CAST:
      seen->casts[type_of(ir, e->a)][e->type]++;
      break;
    case KILNI_EXPR_BITCAST:
      seen->bitcasts[e->type]++;
      break;
    case KILNI_EXPR_ATOMIC:
      seen->atomics[KILNI_ATOMIC_OP(e->extra)]++;
      seen->atomic_types[ir->buffers.items[e->a].type]++;
      break;
    case KILNI_EXPR_SUBGROUP:
      seen->subgroups[e->extra]++;
      break;
    case KILNI_EXPR_ID:
      seen->ids[e->extra & 0xffU]++;
      break;
    default:
      break;
  }
}

// A return of the program that is not its last statement.
static void see_list(seen_t* seen, const kilni_program_ir_t* ir, uint32_t at,
                     bool inner) {
  for (; at != 0U; at = ir->statements.items[at].next) {
    const kilni_program_statement_record_t* s = &ir->statements.items[at];
    if (s->op == KILNI_STATEMENT_RETURN && (inner || s->next != 0U)) {
      seen->early_returns++;
    }
    see_list(seen, ir, s->body, true);
    see_list(seen, ir, s->other, true);
  }
}

static void see(seen_t* seen, const kilni_program_ir_t* ir) {
  for (uint32_t i = 1; i < ir->exprs.count; i++) see_expr(seen, ir, i);
  for (uint32_t i = 1; i < ir->statements.count; i++) {
    seen->statements[ir->statements.items[i].op]++;
  }
  for (uint32_t i = 1; i < ir->buffers.count; i++) {
    seen->roles[ir->buffers.items[i].role]++;
  }
  seen->functions += ir->functions.count > 1U;
  see_list(seen, ir, ir->body, false);
}

static uint32_t missing;

static void need(uint32_t count, const char* what, const char* of) {
  if (count != 0U) return;
  print_message("never generated: %s %s\n", what, of);
  missing++;
}

static void need_operators(const seen_t* seen) {
  for (uint32_t op = 0; op < (uint32_t)KILNI_UNARY_COUNT; op++) {
    for (uint32_t t = 1; t < (uint32_t)KILNI_TYPE_COUNT; t++) {
      if (kilni_program_type_of_unary(op, t) == 0U) continue;
      need(seen->unary[op][t], kilni_program_unary_operators[op].spelling,
           kilni_program_type_name(t));
    }
  }
  for (uint32_t op = 0; op < (uint32_t)KILNI_BINARY_COUNT; op++) {
    for (uint32_t t = 1; t < (uint32_t)KILNI_TYPE_COUNT; t++) {
      const uint32_t right = kilni_program_binary_is_shift(op)
                                 ? (uint32_t)KILN_PROGRAM_TYPE_U32
                                 : t;
      if (kilni_program_type_of_binary(op, t, right) == 0U) continue;
      need(seen->binary[op][t], kilni_program_binary_operators[op].spelling,
           kilni_program_type_name(t));
    }
  }
  for (uint32_t t = 1; t < (uint32_t)KILNI_TYPE_COUNT; t++) {
    for (uint32_t to = 1; to < (uint32_t)KILNI_TYPE_COUNT; to++) {
      if (t != to) {
        need(seen->casts[t][to], "a cast from", kilni_program_type_name(t));
      }
    }
  }
  for (uint32_t op = 0; op < (uint32_t)KILNI_SUBGROUP_COUNT; op++) {
    need(seen->subgroups[op], kilni_program_subgroups[op].spelling, "");
  }
}

static void need_the_rest(const seen_t* seen) {
  static const char* const kinds[] = {"expression", "statement", "role",
                                      "id",         "atomic",    "bitcast"};
  char number[16];
#define NEED_ALL(kind, table, first, count)                \
  for (uint32_t i = (first); i < (uint32_t)(count); i++) { \
    snprintf(number, sizeof number, "%u", i);              \
    need(seen->table[i], kinds[kind], number);             \
  }
  NEED_ALL(0, exprs, KILNI_EXPR_LITERAL, KILNI_EXPR_CALL + 1)
  NEED_ALL(1, statements, KILNI_STATEMENT_LET, KILNI_STATEMENT_COUNT)
  NEED_ALL(2, roles, KILN_PROGRAM_ROLE_IN, KILN_PROGRAM_ROLE_PRIVATE + 1)
  NEED_ALL(3, ids, 0, KILNI_ID_COUNT)
  NEED_ALL(4, atomics, 0, KILNI_ATOMIC_COUNT)
#undef NEED_ALL
  need(seen->early_returns, "an early return", "");
  need(seen->functions, "a function", "");
}

// The canonical form read back has the same canonical form.
static void comes_back(const kiln_program_t* program) {
  static uint8_t bytes[1 << 18], again[1 << 18];
  size_t size = 0, size_again = 0;
  kiln_program_t* copy = NULL;
  kiln_status_t status =
      kiln_program_canonical(program, sizeof bytes, bytes, &size);
  assert_true(kiln_status_is_ok(status) && size <= sizeof bytes);
  const kiln_bytes_view_t view = {bytes, size};
  status = kiln_program_read_canonical(view, NULL, &copy);
  if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
  status = kiln_program_canonical(copy, sizeof again, again, &size_again);
  assert_true(kiln_status_is_ok(status));
  assert_int_equal(size, size_again);
  assert_memory_equal(bytes, again, size);
  kiln_program_release(copy);
}

static void every_operator_type_and_statement_comes_up(void** state) {
  (void)state;
  static char text[PROGRAM_TEXT_BYTES];
  static seen_t seen;
  missing = 0;
  for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
    program_generate(seed, WITH[seed % 4U], "p", text);
    kiln_program_t* program = kit_parse(text);
    see(&seen, kilni_program_ir(program));
    comes_back(program);
    kiln_program_release(program);
  }
  need_the_rest(&seen);
  if (WHOLE) need_operators(&seen);
  assert_int_equal(missing, 0);
}

static const program_run_options_t PLAIN = {.sm = 75};

// What can only be seen when they run: accesses out of range, blocks and
// subgroups that are not full, more blocks than one.
static void runs_go_out_of_range_and_over_many_blocks(void** state) {
  (void)state;
  static char text[PROGRAM_TEXT_BYTES];
  static program_case_t c;
  uint32_t outside = 0, blocks = 0, ragged = 0, dimensions = 0;
  for (uint64_t seed = 0; seed < PROGRAMS / 15; seed++) {
    program_generate(seed, WITH[seed % 4U], "p", text);
    if (!program_case_open(&c, text, seed, &PLAIN)) fail_msg("%s", c.reason);
    outside += c.world.outside != 0U;
    dimensions += c.world.work[1] > 1U;
    bool several = false, part = false;
    for (uint32_t k = 0; k < 3U; k++) {
      several = several || c.world.work[k] > c.world.block[k];
      part = part || c.world.work[k] % c.world.block[k] != 0U;
    }
    blocks += several;
    ragged += part;
    program_case_close(&c);
  }
  assert_true(outside != 0U);
  assert_true(blocks != 0U);
  assert_true(ragged != 0U);
  assert_true(dimensions != 0U);
}

// -- a planted bug ----------------------------------------------------------

// An evaluator that takes one operator for another. thread-compatible
typedef struct bug_t {
  uint32_t op;
  uint32_t taken_for;
  uint64_t seed;
} bug_t;

static const bug_t BUGS[] = {
    {KILN_PROGRAM_BINARY_MAX, KILN_PROGRAM_BINARY_MIN, 0},
    {KILN_PROGRAM_BINARY_SUB, KILN_PROGRAM_BINARY_ADD, 0},
    {KILN_PROGRAM_BINARY_BIT_XOR, KILN_PROGRAM_BINARY_BIT_OR, 0},
};

static bool differs(const program_case_t* c, const uint8_t* got) {
  for (uint32_t b = 1; b < c->ir->buffers.count; b++) {
    const kilni_program_buffer_record_t* buffer = &c->ir->buffers.items[b];
    if (buffer->function != 0U || buffer->role >= KILN_PROGRAM_ROLE_SHARED) {
      continue;
    }
    const uint32_t size = program_type_bytes(buffer->type);
    for (uint64_t i = 0; i < c->world.buffers[b].count; i++) {
      uint64_t want = 0, have = 0;
      memcpy(&want, c->outputs + c->offsets[b] + i * size, size);
      memcpy(&have, got + c->offsets[b] + i * size, size);
      if (!program_same(buffer->type, want, have)) return true;
    }
  }
  return false;
}

static bool shows_the_bug(void* user, const char* text) {
  static program_case_t c;
  const bug_t* bug = user;
  bool shows = false;
  if (program_case_open(&c, text, bug->seed, &PLAIN)) {
    kilni_program_expr_record_t* exprs = c.ir->exprs.items;
    for (uint32_t i = 1; i < c.ir->exprs.count; i++) {
      if (exprs[i].op == KILNI_EXPR_BINARY && exprs[i].extra == bug->op) {
        exprs[i].extra = (uint16_t)bug->taken_for;
      }
    }
    uint8_t* got = malloc(c.bytes);
    assert_non_null(got);
    memcpy(got, c.inputs, c.bytes);
    program_world_t world = c.world;
    for (uint32_t b = 1; b < c.ir->buffers.count; b++) {
      if (world.buffers[b].data != NULL) {
        world.buffers[b].data = got + c.offsets[b];
      }
    }
    shows = program_evaluate(c.ir, &world) == NULL && world.trap.set == 0U &&
            c.world.trap.set == 0U && differs(&c, got);
    free(got);
  }
  program_case_close(&c);
  return shows;
}

static uint32_t statements_of(const char* text) {
  kiln_program_t* program = kit_parse(text);
  const uint32_t count = kilni_program_ir(program)->statements.count - 1U;
  kiln_program_release(program);
  return count;
}

static void a_planted_bug_is_shrunk_to_a_few_statements(void** state) {
  (void)state;
  static char text[PROGRAM_TEXT_BYTES];
  uint32_t found = 0, before = 0, after = 0, most = 0;
  for (uint64_t seed = 0; found < SHRUNK; seed++) {
    bug_t bug = BUGS[seed % 3U];
    assert_true(seed < 20U * SHRUNK);
    bug.seed = seed;
    program_generate(seed, 0, "p", text);
    if (!shows_the_bug(&bug, text)) continue;
    found++;
    before += statements_of(text);
    program_shrink(text, shows_the_bug, &bug);
    assert_true(shows_the_bug(&bug, text));
    const uint32_t left = statements_of(text);
    after += left;
    if (left > most) most = left;
    if (left > (uint32_t)STATEMENTS_MOST) {
      fail_msg("%u statements are left:\n%s", left, text);
    }
  }
  print_message("%u bugs: %u statements before, %u after, %u at most\n", found,
                before, after, most);
  assert_true(before > 5U * after);
}

// Who does not wait for a copy, or for another one, is told of it: the second
// program reads what its wait leaves under way.
static void a_copy_that_is_not_waited_for_is_a_race(void** state) {
  (void)state;
  static program_case_t c;
  static const char* const waits[] = {"async_wait 2;", "barrier;",
                                      "async_wait 1;", "async_wait 3;"};
  for (uint32_t i = 0; i < 4U; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "program p(x: in u32[], y: out u32[64]) work 64 block 64 {\n"
             "  shared a: u32[64]; shared b: u32[64];\n"
             "  async_copy(a, 0, x, 0, 64) tag 1;\n"
             "  async_copy(b, 0, x, 1, 64) tag 2;\n"
             "  %s\n"
             "  y[local_index] = b[local_index];\n"
             "}\n",
             waits[i]);
    const bool right = program_case_open(&c, text, 1, &PLAIN);
    if (i == 0U && !right) fail_msg("%s", c.reason);
    if (i != 0U) {
      assert_false(right);
      assert_non_null(strstr(c.reason, "a race"));
    }
    program_case_close(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_operator_type_and_statement_comes_up),
      cmocka_unit_test(runs_go_out_of_range_and_over_many_blocks),
      cmocka_unit_test(a_copy_that_is_not_waited_for_is_a_race),
      cmocka_unit_test(a_planted_bug_is_shrunk_to_a_few_statements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
