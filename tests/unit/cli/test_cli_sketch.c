// SPDX-License-Identifier: Apache-2.0
//
// cli: graph files: what is read, and where errors point.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/graph_sketch.h"

static const char HEAD[] =
    "code scale = \"scale.ptx\"\n"
    "buffer x : f32[4]\n"
    "buffer y : f32[4] in \"y.npy\" out \"s.npy\"\n";

static bool read_text(kilni_cli_sketch_t* sketch, const char* text,
                      kilni_cli_error_t* error) {
  memset(error, 0, sizeof(*error));
  return kilni_cli_sketch_init(sketch, "g.kgraph", text, strlen(text), error);
}

static void reads(kilni_cli_sketch_t* sketch, const char* text) {
  kilni_cli_error_t error;
  if (read_text(sketch, text, &error)) return;
  print_error("%s\n%s\n", error.message, error.trail);
  fail();
}

// The text behind HEAD fails in line `line` of it at `column`, with `says` in
// the message and the caret under that column.
static void fails_at(const char* text, unsigned line, unsigned column,
                     const char* says) {
  char all[4096];
  char place[64];
  kilni_cli_sketch_t sketch;
  kilni_cli_error_t error;
  (void)snprintf(all, sizeof(all), "%s%s", HEAD, text);
  assert_false(read_text(&sketch, all, &error));
  kilni_cli_sketch_deinit(&sketch);
  (void)snprintf(place, sizeof(place), "g.kgraph:%u:%u: ", line + 3, column);
  if (strncmp(error.message, place, strlen(place)) != 0 ||
      strstr(error.message, says) == NULL) {
    print_error("%s\n", error.message);
  }
  assert_int_equal(strncmp(error.message, place, strlen(place)), 0);
  assert_non_null(strstr(error.message, says));
  assert_true(error.fix[0] != 0);
  const char* caret = strrchr(error.trail, '\n');
  assert_non_null(caret);
  assert_int_equal(strlen(caret + 1), 2 + column);
  assert_int_equal(caret[strlen(caret) - 1], '^');
}

static void test_whole(void** state) {
  (void)state;
  kilni_cli_sketch_t s;
  char all[4096];
  (void)snprintf(
      all, sizeof(all), "%s%s", HEAD,
      "condition go = 3\n"
      "kernel k = scale.scale(len(x), 2.5f32, x, y, go) block 32,2 grid 7\n"
      "copy c = y[1..3] <- x[0..2]\n"
      "fill f = x <- 1f32\n"
      "while w = go {\n"
      "  kernel set = scale(go)\n"
      "  empty e\n"
      "  set -> e\n"
      "}\n"
      "f, c -> k -> w  # all of them\n");
  reads(&s, all);
  assert_int_equal(s.code_count, 1);
  assert_string_equal(s.codes[0].file.text, "scale.ptx");
  assert_int_equal(s.buffer_count, 2);
  assert_string_equal(s.buffers[1].in.text, "y.npy");
  assert_string_equal(s.buffers[1].out.text, "s.npy");
  assert_int_equal(s.buffers[1].shape.count, 4);
  assert_int_equal(s.condition_count, 1);
  assert_true(s.conditions[0].has_first);
  assert_int_equal(s.conditions[0].first, 3);
  assert_int_equal(s.conditions[0].user, 3);
  assert_int_equal(s.node_count, 6);
  assert_int_equal(s.scope_count, 2);
  const kilni_cli_graph_node_t* k = &s.nodes[0];
  assert_int_equal(k->kind, KILNI_CLI_GRAPH_KERNEL);
  assert_string_equal(k->entry.text, "scale");
  assert_int_equal(k->argument_count, 5);
  assert_int_equal(s.arguments[0].kind, KILNI_CLI_ARGUMENT_LENGTH);
  assert_int_equal(s.arguments[1].kind, KILNI_CLI_ARGUMENT_SCALAR);
  assert_int_equal(s.arguments[1].scalar.bytes, 4);
  assert_int_equal(s.arguments[3].kind, KILNI_CLI_ARGUMENT_BUFFER);
  assert_int_equal(s.arguments[3].index, 1);
  assert_int_equal(s.arguments[4].kind, KILNI_CLI_ARGUMENT_CONDITION);
  assert_true(k->has_grid && k->has_block);
  assert_int_equal(k->grid[0], 7);
  assert_int_equal(k->grid[1], 1);
  assert_int_equal(k->block[1], 2);
  assert_int_equal(s.nodes[1].to.first, 1);
  assert_int_equal(s.nodes[1].to.end, 3);
  assert_int_equal(s.nodes[3].body, 1);
  assert_int_equal(s.nodes[3].body_count, 1);
  assert_int_equal(s.nodes[4].scope, 1);
  assert_int_equal(s.nodes[4].entry.line, 0);
  assert_int_equal(s.edge_count, 4);
  assert_int_equal(s.edges[1].from, 2);
  assert_int_equal(s.edges[1].to, 0);
  kilni_cli_sketch_deinit(&s);
}

static void test_bodies(void** state) {
  (void)state;
  kilni_cli_sketch_t s;
  reads(&s,
        "condition a\ncondition b\n"
        "if i = a { empty x } else { empty x\nempty y }\n"
        "switch w = b { } { } {\n}\n"
        "graph g { empty x }\nchild p = g\nchild q = g\n");
  assert_int_equal(s.nodes[0].body_count, 2);
  assert_int_equal(s.scopes[s.nodes[0].body].next, 2);
  assert_int_equal(s.nodes[4].body_count, 3);
  assert_true(s.scopes[6].is_named);
  assert_int_equal(s.nodes[6].body, s.nodes[7].body);
  assert_int_equal(s.scopes[0].nodes, 2 + 3 + 2 + 2);
  kilni_cli_sketch_deinit(&s);
  // Words that begin no statement go on with the line before.
  reads(&s,
        "condition a\ncode c = \"c.ptx\"\n"
        "buffer b : f32[1]\n   in \"x\"\n\n  # and\n  out \"y\"\n"
        "if i = a {\n}\nelse {\n}\n"
        "kernel k = c(b)\n  grid 2\n  block 32 shared 4\nempty e\nk ->\n e");
  assert_string_equal(s.buffers[0].out.text, "y");
  assert_int_equal(s.nodes[0].body_count, 2);
  assert_int_equal(s.nodes[1].grid[0], 2);
  assert_int_equal(s.nodes[1].shared_bytes, 4);
  kilni_cli_sketch_deinit(&s);
  reads(&s, "");
  assert_int_equal(s.node_count, 0);
  kilni_cli_sketch_deinit(&s);
}

static void test_words(void** state) {
  (void)state;
  fails_at("kernel k scale", 1, 10, "expected `=`, not `scale`");
  fails_at("copy c = x <- ", 1, 15, "expected a buffer, not the end");
  fails_at("empty", 1, 6, "expected a name for the node, not the end");
  fails_at("empt e", 1, 1, "`empt` is not a statement");
  fails_at("empty e f", 1, 9, "expected the end of the line");
  fails_at("empty kernel", 1, 7, "is a reserved word");
  fails_at("  7", 1, 3, "expected a statement");
  fails_at("empty e\n}", 2, 1, "expected a statement");
  fails_at("empty e ;", 1, 9, "unexpected character");
  fails_at("code c = \"x", 1, 10, "does not end");
  fails_at("code c = \"\"", 1, 10, "expected a file's name");
  fails_at("buffer b : f31[2]", 1, 12, "is not a type");
  fails_at("buffer b : f32[0]", 1, 16, "is not a number from 1");
  fails_at("buffer b : f32[17179869184]", 1, 12, "");
  fails_at("buffer b : f32", 1, 8, "the size of the buffer");
  fails_at("buffer b in \"a\" in \"b\"", 1, 17, "no second file");
  fails_at("kernel k = scale(2)", 1, 18, "");
  fails_at("kernel k = scale(x y)", 1, 20, "expected `,`");
  fails_at("kernel k = scale(z)", 1, 18, "there is no \"z\"");
  fails_at("kernel k = scale(scale)", 1, 18, "not something that a kernel");
  fails_at("kernel k = scale() grid 1 grid 2", 1, 27, "each of these once");
  fails_at("kernel k = scale() grid 0", 1, 25, "is not a number from 1");
  fails_at("copy c = x[2..2] <- y", 1, 15, "is not a number from 3");
  fails_at("copy c = x[2,2] <- y", 1, 13, "expected `..`");
  fails_at("condition c = 4294967296\nwhile w = c { }", 1, 15, "is not");
  // A character of two bytes is one column.
  fails_at("code c = \"\xc3\xa9\" \"", 1, 14, "does not end");
}

static void test_names(void** state) {
  (void)state;
  fails_at("kernel k = scal(x)", 1, 12, "there is no code file \"scal\"");
  fails_at("kernel k = x(x)", 1, 12, "is a buffer, not a code file");
  fails_at("empty e\nempty e", 2, 7, "is taken in line 4");
  fails_at("empty x", 1, 7, "is taken in line 2");
  fails_at("empty a\na -> b", 2, 6, "there is no node \"b\"");
  fails_at("empty a\nempty b\na -> b -> a", 3, 11, "closes a cycle");
  fails_at("empty a\na -> a", 2, 6, "to itself");
  fails_at("empty a\nempty b\na -> b\na -> b", 4, 6,
           "was already drawn in line 6");
  fails_at("condition c\nif i = c {\nempty a\n}\nempty b\nb -> a", 6, 6,
           "there is no node \"a\"");
  fails_at("condition c\nempty b\nif i = c {\nempty a\nb -> a }", 5, 1,
           "is in other braces");
}

static void test_rules(void** state) {
  (void)state;
  fails_at("condition c", 1, 11, "no node in these braces uses");
  fails_at("condition c\nif a = c { }\nif b = c { }", 3, 8,
           "has a node already");
  fails_at("condition c\nwhile a = c {\nif b = c { }\n}", 3, 8,
           "is of other braces");
  fails_at("graph g {\ncondition c\nif a = c { }\n}", 3, 4,
           "inside a named graph");
  fails_at("graph g { child c = g }", 1, 21, "there is no graph \"g\"");
  fails_at("graph g {\nallocate m : f32[1]\n}", 2, 10, "inside another node");
  fails_at("graph g {\nbuffer b : f32[1]\n}", 2, 1, "inside braces");
  fails_at("empty e\nfree f = e", 2, 10, "allocates nothing");
  fails_at("graph g {\ngraph h { }\n}", 2, 1, "inside braces");
  fails_at("condition c\nwhile i = c { }\n\n# no\nelse { }", 5, 1,
           "expected the end of the line, not `else`");
}

// Like fails_at, and the Fix says `fix`.
static void fix_is(const char* text, unsigned line, unsigned column,
                   const char* says, const char* fix) {
  char all[4096];
  kilni_cli_sketch_t sketch;
  kilni_cli_error_t error;
  fails_at(text, line, column, says);
  (void)snprintf(all, sizeof(all), "%s%s", HEAD, text);
  assert_false(read_text(&sketch, all, &error));
  kilni_cli_sketch_deinit(&sketch);
  assert_string_equal(error.fix, fix);
}

// Edges lead from what allocates to every use, and from there to what frees.
static void test_memory(void** state) {
  (void)state;
  static const char* const GOOD[] = {
      "allocate m : f32[4]\nkernel k = scale(x, m)\nm -> k",
      "allocate m : f32[4]\nfree f = m\nm -> f",
      "allocate m : f32[4]\nfree f = m\nkernel k = scale(m, m)\nempty e\n"
      "kernel l = scale(m)\nm -> e -> k, l -> f",
      "condition c\nallocate m : f32[4]\nif i = c { empty z } else {\n"
      "condition d\nwhile w = d {\nempty e\nkernel k = scale(m)\n}\n}\n"
      "free f = m\nm -> i -> f"};
  for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
    char all[4096];
    kilni_cli_sketch_t sketch;
    (void)snprintf(all, sizeof(all), "%s%s", HEAD, GOOD[i]);
    reads(&sketch, all);
    kilni_cli_sketch_deinit(&sketch);
  }
  fix_is("allocate m : f32[4]\nkernel k = scale(x, m)\nempty e\nm -> e", 2, 21,
         "\"k\" uses \"m\", which need not be allocated before it",
         "draw an edge: m -> k");
  fix_is("allocate m : f32[4]\nkernel k = scale(m)\nk -> m", 2, 18,
         "\"k\" uses \"m\", which is allocated after it",
         "remove the edges by which \"k\" comes before \"m\", and draw m -> k");
  fix_is("allocate m : f32[4]\nfree f = m\nkernel k = scale(m)\nm -> f, k", 3,
         18, "\"k\" uses \"m\" and need not have ended when \"f\" frees it",
         "draw an edge: k -> f");
  fix_is(
      "allocate m : f32[4]\nfree f = m\nkernel k = scale(m)\nempty e\n"
      "m -> f -> e -> k",
      3, 18, "\"k\" uses \"m\" after \"f\" frees it",
      "remove the edges by which \"f\" comes before \"k\", and draw k -> f");
  fix_is(
      "condition c\nallocate m : f32[4]\nif i = c { empty z } else {\n"
      "condition d\nwhile w = d {\nempty e\nkernel k = scale(m)\n}\n}\n"
      "free f = m\nm -> i, f",
      7, 18, "\"k\" uses \"m\" and need not have ended",
      "draw an edge: i -> f");
}

// 2 to the power of 20 nodes, in 20 lines.
static void test_growth(void** state) {
  (void)state;
  char text[4096];
  size_t size = (size_t)snprintf(text, sizeof(text), "graph g0 { empty e }\n");
  for (int i = 1; i <= 20; i++) {
    size += (size_t)snprintf(text + size, sizeof(text) - size,
                             "graph g%d {\nchild a = g%d\nchild b = g%d\n}\n",
                             i, i - 1, i - 1);
  }
  kilni_cli_sketch_t sketch;
  kilni_cli_error_t error;
  assert_false(read_text(&sketch, text, &error));
  assert_int_equal(error.code, KILN_STATUS_LIMIT_EXCEEDED);
  assert_non_null(strstr(error.message, "65536 nodes"));
  kilni_cli_sketch_deinit(&sketch);
  // Braces in braces.
  size = 0;
  for (int i = 0; i < 20; i++) {
    size += (size_t)snprintf(text + size, sizeof(text) - size,
                             "condition c\nif i = c {\n");
  }
  assert_false(read_text(&sketch, text, &error));
  kilni_cli_sketch_deinit(&sketch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_whole),  cmocka_unit_test(test_bodies),
      cmocka_unit_test(test_words),  cmocka_unit_test(test_names),
      cmocka_unit_test(test_rules),  cmocka_unit_test(test_memory),
      cmocka_unit_test(test_growth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
