// SPDX-License-Identifier: Apache-2.0
//
// library: elements moved on what people have: the endings of a text in their
// order, lines from anywhere, a graph by another numbering, a picture's shades;
// beside plain C.
#include "csr_graph.h"
#include "library_real.h"

// y[i] = x[places[i]], or y[places[i]] = x[i]. All of them have a place.
static void move(dispatch_kit_t* kit, const char* name, uint32_t type,
                 const void* x, uint64_t x_count, const uint32_t* places,
                 uint64_t count, void* y) {
  uint64_t bytes = program_type_bytes((uint8_t)type);
  const kit_argument_t arguments[] = {{x, NULL, x_count * bytes},
                                      {places, NULL, count * 4},
                                      {NULL, y, count * bytes}};
  kiln_library_plan_t* plan = real_plan(kit, name, type, 0);
  kit_run(kit, plan, arguments, 3, NULL, 0);
  kiln_library_plan_release(plan);
}

// Running sums of `count` numbers.
static void add_up(dispatch_kit_t* kit, bool exclusive, const uint32_t* x,
                   uint32_t count, uint32_t* y) {
  kiln_library_options_t options = kiln_library_options_default();
  options.count = count;
  options.exclusive = exclusive ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  const kit_argument_t arguments[] = {{x, NULL, count * UINT64_C(4)},
                                      {NULL, y, count * UINT64_C(4)}};
  kiln_library_plan_t* plan = kit_plan(kit, "scan", &options);
  kit_run(kit, plan, arguments, 2, NULL, 0);
  kiln_library_plan_release(plan);
}

// Keys with the places that they stood at, in their order.
static void sort_places(dispatch_kit_t* kit, const char* name, uint32_t type,
                        const void* keys, uint32_t count, uint32_t* places) {
  uint64_t bytes = (uint64_t)count * program_type_bytes((uint8_t)type);
  uint32_t* numbers = kit_zeroes(count, 4);
  void* sorted = kit_zeroes(count, 8);
  for (uint32_t i = 0; i < count; i++) numbers[i] = i;
  kiln_library_options_t options = kiln_library_options_default();
  options.type = type;
  options.value_type = KILN_PROGRAM_TYPE_U32;
  options.count = count;
  const kit_argument_t arguments[] = {{keys, NULL, bytes},
                                      {numbers, NULL, count * UINT64_C(4)},
                                      {NULL, sorted, bytes},
                                      {NULL, places, count * UINT64_C(4)}};
  kiln_library_plan_t* plan = kit_plan(kit, name, &options);
  kit_run(kit, plan, arguments, 4, NULL, 0);
  kiln_library_plan_release(plan);
  free(numbers);
  free(sorted);
}

// ---- A text ----

// Where the endings of a text stand in the order of their first 8 bytes, equal
// ones as they stood: by both sorts, and by looking at neighbours.
static uint32_t* order_endings(real_text_t* t, uint32_t count) {
  uint64_t* keys = kit_zeroes(count, 8);
  uint32_t* by[2] = {kit_zeroes(count, 4), kit_zeroes(count, 4)};
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < 8; k++) {
      keys[i] = keys[i] << 8 | (i + k < count ? t->bytes[i + k] : 0);
    }
  }
  sort_places(&t->kit, "sort", KILN_PROGRAM_TYPE_U64, keys, count, by[0]);
  sort_places(&t->kit, "merge_sort", KILN_PROGRAM_TYPE_U64, keys, count, by[1]);
  assert_memory_equal(by[0], by[1], count * sizeof(uint32_t));
  for (uint32_t i = 1; i < count; i++) {
    uint32_t a = by[0][i - 1], b = by[0][i];
    assert_true(keys[a] < keys[b] || (keys[a] == keys[b] && a < b));
  }
  free(keys);
  free(by[1]);
  return by[0];
}

// The bytes in front of the endings in order, which is what makes a text small
// (Burrows and Wheeler, 1994), and back again.
static void test_endings(void** state) {
  (void)state;
  real_text_t t;
  real_text_open(&t);
  uint32_t count = 40000 / KIT_LESS;
  assert_true(t.count > count);
  uint32_t* order = order_endings(&t, count);
  uint8_t* moved = kit_zeroes(count, 1);
  uint8_t* back = kit_zeroes(count, 1);
  move(&t.kit, "gather", KILN_PROGRAM_TYPE_U8, t.bytes, count, order, count,
       moved);
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(moved[i], t.bytes[order[i]]);
    assert_true(i == 0 || moved[i - 1] <= moved[i]);
  }
  move(&t.kit, "scatter", KILN_PROGRAM_TYPE_U8, moved, count, order, count,
       back);
  assert_memory_equal(back, t.bytes, count);
  for (uint32_t i = 0; i < count; i++) {
    order[i] = (order[i] + count - 1) % count;
  }
  move(&t.kit, "gather", KILN_PROGRAM_TYPE_U8, t.bytes, count, order, count,
       moved);
  uint32_t alike = 0, were = 0;
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(moved[i], t.bytes[order[i]]);
    if (i == 0) continue;
    alike += moved[i] == moved[i - 1];
    were += t.bytes[i] == t.bytes[i - 1];
  }
  assert_true(alike > 2 * were);
  free(order);
  free(moved);
  free(back);
  real_text_close(&t);
}

// Where lines begin, by how long they are; and by how long all up to them are.
// Then the lines in the order of their lengths, one behind the other.
static void test_lines(void** state) {
  (void)state;
  real_text_t t;
  real_text_open(&t);
  uint32_t n = t.line_count;
  uint32_t* lengths = kit_zeroes(n, 4);
  uint32_t* sums = kit_zeroes(n, 4);
  uint32_t* order = kit_zeroes(n, 4);
  uint32_t* from = kit_zeroes(t.count, 4);
  uint8_t* moved = kit_zeroes(t.count, 1);
  for (uint32_t k = 0; k < n; k++) lengths[k] = t.lines[k + 1] - t.lines[k];
  add_up(&t.kit, true, lengths, n, sums);
  assert_memory_equal(sums, t.lines, n * sizeof(uint32_t));
  add_up(&t.kit, false, lengths, n, sums);
  assert_memory_equal(sums, t.lines + 1, n * sizeof(uint32_t));
  sort_places(&t.kit, "sort", KILN_PROGRAM_TYPE_U32, lengths, n, order);
  uint32_t at = 0;
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t i = 0; i < lengths[order[k]]; i++) {
      from[at++] = t.lines[order[k]] + i;
    }
  }
  assert_int_equal(at, t.count);
  move(&t.kit, "gather", KILN_PROGRAM_TYPE_U8, t.bytes, t.count, from, t.count,
       moved);
  for (uint32_t k = 0, to = 0; k < n; to += lengths[order[k++]]) {
    assert_memory_equal(moved + to, t.bytes + t.lines[order[k]],
                        lengths[order[k]]);
  }
  free(lengths);
  free(sums);
  free(order);
  free(from);
  free(moved);
  real_text_close(&t);
}

// Letters, and what is none from the end on.
static void test_partition(void** state) {
  (void)state;
  real_text_t t;
  real_text_open(&t);
  uint8_t* keep = kit_zeroes(t.count, 1);
  uint8_t* have = kit_zeroes(t.count, 1);
  uint32_t told = 0, front = 0, behind = 0;
  for (uint32_t i = 0; i < t.count; i++) {
    keep[i] = (t.bytes[i] | 32) >= 'a' && (t.bytes[i] | 32) <= 'z';
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U8;
  options.count = t.count;
  options.rest = KILN_SWITCH_ON;
  kiln_library_plan_t* plan = kit_plan(&t.kit, "compact", &options);
  const kit_argument_t arguments[] = {{t.bytes, NULL, t.count},
                                      {keep, NULL, t.count},
                                      {NULL, have, t.count},
                                      {NULL, &told, 4}};
  kit_run(&t.kit, plan, arguments, 4, NULL, 0);
  kiln_library_plan_release(plan);
  for (uint32_t i = 0; i < t.count; i++) {
    uint32_t at = keep[i] != 0 ? front++ : t.count - 1 - behind++;
    assert_int_equal(have[at], t.bytes[i]);
  }
  assert_int_equal(told, front);
  free(keep);
  free(have);
  real_text_close(&t);
}

// ---- A graph ----

// Letters that follow each other in a text: vertices are pairs of letters.
static void make_graph(const real_text_t* t, csr_graph_t* graph) {
  enum { LETTERS = 27, PAIRS = LETTERS * LETTERS };
  graph->count = PAIRS;
  graph->starts = kit_zeroes(PAIRS + 1, 4);
  graph->columns = kit_zeroes(t->count, 4);
  uint32_t* vertices = kit_zeroes(t->count, 4);
  uint32_t* places = kit_zeroes(PAIRS, 4);
  for (uint32_t i = 0, pair = 0; i < t->count; i++) {
    uint32_t letter = (t->bytes[i] | 32u) - 'a';
    pair = (pair * LETTERS + (letter < 26 ? letter : 26)) % PAIRS;
    vertices[i] = pair;
    if (i > 0) graph->starts[vertices[i - 1] + 1]++;
  }
  for (uint32_t v = 0; v < PAIRS; v++) {
    graph->starts[v + 1] += graph->starts[v];
    places[v] = graph->starts[v];
  }
  for (uint32_t i = 1; i < t->count; i++) {
    graph->columns[places[vertices[i - 1]]++] = vertices[i];
  }
  graph->edges = graph->starts[PAIRS];
  free(vertices);
  free(places);
}

// The same graph by other numbers of its vertices, those with few edges first:
// what a sort, gathers, scatters and a scan make of it.
static void renumber(dispatch_kit_t* kit, const csr_graph_t* graph,
                     csr_graph_t* out, uint32_t* numbers) {
  enum { U32 = KILN_PROGRAM_TYPE_U32 };
  uint32_t n = graph->count, edges = graph->edges;
  uint32_t* degrees = kit_zeroes(n + 1, 4);
  uint32_t* fewer = kit_zeroes(n + 1, 4);
  uint32_t* order = kit_zeroes(n, 4);
  uint32_t* counted = kit_zeroes(n, 4);
  uint32_t* named = kit_zeroes(edges, 4);
  uint32_t* places = kit_zeroes(edges, 4);
  out->count = n;
  out->edges = edges;
  out->starts = kit_zeroes(n + 1, 4);
  out->columns = kit_zeroes(edges, 4);
  for (uint32_t v = 0; v < n; v++) {
    degrees[v] = graph->starts[v + 1] - graph->starts[v];
    counted[v] = v;
  }
  sort_places(kit, "sort", U32, degrees, n, order);
  move(kit, "gather", U32, degrees, n, order, n, fewer);
  add_up(kit, true, fewer, n + 1, out->starts);
  // The new number of the vertex that was `order[i]` is i.
  move(kit, "scatter", U32, counted, n, order, n, numbers);
  move(kit, "gather", U32, numbers, n, graph->columns, edges, named);
  for (uint32_t v = 0; v < n; v++) {
    for (uint32_t e = 0; e < degrees[v]; e++) {
      places[graph->starts[v] + e] = out->starts[numbers[v]] + e;
    }
  }
  move(kit, "scatter", U32, named, edges, places, edges, out->columns);
  free(degrees);
  free(fewer);
  free(order);
  free(counted);
  free(named);
  free(places);
}

static void test_graph(void** state) {
  (void)state;
  real_text_t t;
  real_text_open(&t);
  csr_graph_t graph, other;
  make_graph(&t, &graph);
  uint32_t n = graph.count;
  uint32_t* numbers = kit_zeroes(n, 4);
  uint32_t* levels = kit_zeroes(n, 4);
  uint32_t* again = kit_zeroes(n, 4);
  uint32_t* queue = kit_zeroes(n, 4);
  renumber(&t.kit, &graph, &other, numbers);
  for (uint32_t v = 0; v < n; v++) {
    const uint32_t* old = graph.columns + graph.starts[v];
    const uint32_t* new = other.columns + other.starts[numbers[v]];
    uint32_t degree = graph.starts[v + 1] - graph.starts[v];
    assert_int_equal(other.starts[numbers[v] + 1] - other.starts[numbers[v]],
                     degree);
    for (uint32_t e = 0; e < degree; e++) {
      assert_int_equal(new[e], numbers[old[e]]);
    }
  }
  // As far from each other as before.
  uint32_t source = graph.columns[0];
  csr_levels(&graph, &source, 1, levels, queue);
  source = numbers[source];
  csr_levels(&other, &source, 1, again, queue);
  for (uint32_t v = 0; v < n; v++) {
    assert_int_equal(again[numbers[v]], levels[v]);
  }
  csr_free(&graph);
  csr_free(&other);
  free(numbers);
  free(levels);
  free(again);
  free(queue);
  real_text_close(&t);
}

// ---- A picture ----

// A picture whose shades are used alike: a histogram, its running sums, and a
// table of them by which each pixel is looked up. And in colours by another
// table, which lacks the lightest.
static void test_shades(void** state) {
  (void)state;
  enum { SHADES = 256, COLOURS = 128 };
  real_picture_t p;
  real_picture_open(&p);
  uint32_t n = p.w * p.h, counts[SHADES], sums[SHADES], colours[COLOURS];
  uint32_t* shades = kit_zeroes(n, 4);
  uint32_t* have = kit_zeroes(n, 4);
  for (uint32_t i = 0; i < n; i++) shades[i] = p.gray[i];
  kiln_library_plan_t* plan = real_plan(&p.kit, "histogram", 0, 0);
  const kit_argument_t often[] = {{p.gray, NULL, n},
                                  {NULL, counts, sizeof(counts)}};
  kit_run(&p.kit, plan, often, 2, NULL, 0);
  kiln_library_plan_release(plan);
  add_up(&p.kit, false, counts, SHADES, sums);
  assert_int_equal(sums[SHADES - 1], n);
  move(&p.kit, "gather", KILN_PROGRAM_TYPE_U32, sums, SHADES, shades, n, have);
  uint32_t upto[SHADES] = {0}, bare = 0;
  for (uint32_t i = 0; i < n; i++) upto[p.gray[i]]++;
  for (uint32_t s = 1; s < SHADES; s++) upto[s] += upto[s - 1];
  for (uint32_t i = 0; i < n; i++) assert_int_equal(have[i], upto[p.gray[i]]);
  for (uint32_t c = 0; c < COLOURS; c++) colours[c] = c << 16 | (255 - c);
  move(&p.kit, "gather", KILN_PROGRAM_TYPE_U32, colours, COLOURS, shades, n,
       have);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t shade = p.gray[i];
    assert_int_equal(have[i], shade < COLOURS ? colours[shade] : 0);
    bare += shade >= COLOURS;
  }
  assert_true(bare > 0 && bare < n);
  free(shades);
  free(have);
  real_picture_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_endings),   cmocka_unit_test(test_lines),
      cmocka_unit_test(test_partition), cmocka_unit_test(test_graph),
      cmocka_unit_test(test_shades),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
