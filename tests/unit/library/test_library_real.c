// SPDX-License-Identifier: Apache-2.0
//
// library: entries on what people have: texts and a picture of this tree, and
// the graphs that are in them, beside plain C.
#include "csr_graph.h"
#include "library_real.h"

static void test_lines(void** state) {
  (void)state;
  real_text_t t;
  real_text_open(&t);
  uint32_t* starts = kit_zeroes(t.count, 4);
  uint32_t told = 0, left = 1;
  kiln_library_plan_t* plan = real_plan(&t.kit, "lines", 0, t.count);
  const kit_argument_t arguments[] = {{t.bytes, NULL, t.count},
                                      {NULL, starts, t.count * UINT64_C(4)},
                                      {NULL, &told, 4}};
  kit_run(&t.kit, plan, arguments, 3, NULL, 0);
  assert_int_equal(told, t.line_count);
  assert_memory_equal(starts, t.lines, t.line_count * sizeof(uint32_t));
  kiln_library_plan_release(plan);
  // All of it is UTF-8; cut within a character it is not, from there on.
  plan = real_plan(&t.kit, "utf8", 0, 0);
  const kit_argument_t whole[] = {{t.bytes, NULL, t.count}, {NULL, &left, 4}};
  kit_run(&t.kit, plan, whole, 2, NULL, 0);
  assert_int_equal(left, 0);
  uint32_t at = 0;
  while (at < t.count && t.bytes[at] < 0x80) at++;
  assert_true(at < t.count);
  for (uint32_t cut = 0; cut < 2; cut++) {
    const kit_argument_t part[] = {{t.bytes, NULL, at + cut}, {NULL, &left, 4}};
    kit_run(&t.kit, plan, part, 2, NULL, 0);
    assert_int_equal(left, cut);
  }
  kiln_library_plan_release(plan);
  free(starts);
  real_text_close(&t);
}

// UTF-8 of every size that CI has: characters of two bytes, then one too many.
static void test_utf8_sizes(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = real_plan(&kit, "utf8", 0, 0);
  uint8_t* text = kit_zeroes(kSizes[SIZES - 1], 1);
  for (uint32_t s = 0; s < SIZES; s++) {
    uint32_t count = kSizes[s], left = 7;
    for (uint32_t i = 0; i < count; i++) text[i] = i % 2 == 0 ? 0xc3 : 0xa9;
    const kit_argument_t arguments[] = {{text, NULL, count}, {NULL, &left, 4}};
    kit_run(&kit, plan, arguments, 2, NULL, 0);
    assert_int_equal(left, count % 2);
    memset(text, 'a', count);
    if (count > 0) text[count / 2] = 0x80;
    kit_run(&kit, plan, arguments, 2, NULL, 0);
    assert_int_equal(left, count - count / 2);
  }
  free(text);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

static void test_checksum(void** state) {
  (void)state;
  static const char* const kFiles[] = {"README.md", "examples/pictures/cat.png",
                                       "docs/reference/catalog.md",
                                       "lib/sort.kiln"};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = real_plan(&kit, "crc32", 0, 0);
  uint8_t* data = kit_zeroes(1 << 20, 1);
  for (uint32_t f = 0; f < 4; f++) {
    uint32_t count = real_file(kFiles[f], data, 1 << 20), have = 0;
    uint32_t want = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
      want ^= data[i];
      for (int k = 0; k < 8; k++) {
        want = want >> 1 ^ ((want & 1) != 0 ? UINT32_C(0xedb88320) : 0);
      }
    }
    const kit_argument_t arguments[] = {{data, NULL, count}, {NULL, &have, 4}};
    kit_run(&kit, plan, arguments, 2, NULL, 0);
    assert_int_equal(have, ~want);
  }
  free(data);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// How long lines are, by their starts, and where in its line each byte stands,
// by heads; the longest of them.
static void test_lengths(void** state) {
  (void)state;
  real_text_t t;
  real_text_open(&t);
  uint32_t* columns = kit_zeroes(t.count, 4);
  uint32_t* ones = kit_zeroes(t.count, 4);
  uint32_t* lengths = kit_zeroes(t.line_count, 4);
  uint32_t longest = 0, want = 0;
  for (uint32_t i = 0; i < t.count; i++) ones[i] = 1;
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U32;
  options.count = t.count;
  kiln_library_plan_t* plan = kit_plan(&t.kit, "scan_segments", &options);
  const kit_argument_t of_scan[] = {{ones, NULL, t.count * UINT64_C(4)},
                                    {t.heads, NULL, t.count},
                                    {NULL, columns, t.count * UINT64_C(4)}};
  kit_run(&t.kit, plan, of_scan, 3, NULL, 0);
  kiln_library_plan_release(plan);
  options.count = 0;
  options.operation = KILN_LIBRARY_MAX;
  plan = kit_plan(&t.kit, "segments", &options);
  const kit_argument_t of_lines[] = {
      {columns, NULL, t.count * UINT64_C(4)},
      {t.lines, NULL, (t.line_count + 1) * UINT64_C(4)},
      {NULL, lengths, t.line_count * UINT64_C(4)}};
  kit_run(&t.kit, plan, of_lines, 3, NULL, 0);
  kiln_library_plan_release(plan);
  options.count = t.line_count;
  plan = kit_plan(&t.kit, "fold", &options);
  const kit_argument_t of_all[] = {{lengths, NULL, t.line_count * UINT64_C(4)},
                                   {NULL, &longest, 4}};
  kit_run(&t.kit, plan, of_all, 2, NULL, 0);
  kiln_library_plan_release(plan);
  for (uint32_t k = 0; k < t.line_count; k++) {
    uint32_t length = t.lines[k + 1] - t.lines[k];
    assert_int_equal(lengths[k], length);
    if (length > want) want = length;
    for (uint32_t i = 0; i < length; i++) {
      assert_int_equal(columns[t.lines[k] + i], i + 1);
    }
  }
  assert_int_equal(longest, want);
  free(columns);
  free(ones);
  free(lengths);
  real_text_close(&t);
}

// The letters of a text, its runs of equal bytes, and how often each occurs.
static void test_letters(void** state) {
  (void)state;
  real_text_t t;
  real_text_open(&t);
  uint8_t* keep = kit_zeroes(t.count, 1);
  uint8_t* have = kit_zeroes(t.count, 1);
  uint32_t* lengths = kit_zeroes(t.count, 4);
  uint32_t counts[256], want[256] = {0}, told = 0, letters = 0, at = 0;
  for (uint32_t i = 0; i < t.count; i++) {
    keep[i] = (t.bytes[i] | 32) >= 'a' && (t.bytes[i] | 32) <= 'z';
    want[t.bytes[i]]++;
  }
  kiln_library_plan_t* plan =
      real_plan(&t.kit, "compact", KILN_PROGRAM_TYPE_U8, t.count);
  const kit_argument_t kept[] = {{t.bytes, NULL, t.count},
                                 {keep, NULL, t.count},
                                 {NULL, have, t.count},
                                 {NULL, &told, 4}};
  kit_run(&t.kit, plan, kept, 4, NULL, 0);
  for (uint32_t i = 0; i < t.count; i++) {
    if (keep[i] != 0) assert_int_equal(have[letters++], t.bytes[i]);
  }
  assert_int_equal(told, letters);
  kiln_library_plan_release(plan);
  plan = real_plan(&t.kit, "runs", KILN_PROGRAM_TYPE_U8, t.count);
  const kit_argument_t runs[] = {{t.bytes, NULL, t.count},
                                 {NULL, have, t.count},
                                 {NULL, lengths, t.count * UINT64_C(4)},
                                 {NULL, &told, 4}};
  kit_run(&t.kit, plan, runs, 4, NULL, 0);
  for (uint32_t k = 0; k < told; k++) {
    for (uint32_t i = 0; i < lengths[k]; i++, at++) {
      assert_int_equal(have[k], t.bytes[at]);
    }
    assert_true(k == 0 || have[k] != have[k - 1]);
  }
  assert_int_equal(at, t.count);
  kiln_library_plan_release(plan);
  plan = real_plan(&t.kit, "histogram", 0, 0);
  const kit_argument_t often[] = {{t.bytes, NULL, t.count},
                                  {NULL, counts, sizeof(counts)}};
  kit_run(&t.kit, plan, often, 2, NULL, 0);
  assert_memory_equal(counts, want, sizeof(want));
  kiln_library_plan_release(plan);
  free(keep);
  free(have);
  free(lengths);
  real_text_close(&t);
}

// ---- The words of a text ----

// Words in the order of the alphabet by both sorts; the different ones, and
// which one each word is: by a search of plain C.
static uint32_t sort_words(real_text_t* t, const uint64_t* keys, uint32_t count,
                           uint64_t* words) {
  uint64_t* by[2] = {kit_zeroes(count, 8), kit_zeroes(count, 8)};
  uint32_t* starts = kit_zeroes(count, 4);
  uint32_t told = 0;
  for (uint32_t way = 0; way < 2; way++) {
    kiln_library_plan_t* plan =
        real_plan(&t->kit, way == 0 ? "sort" : "merge_sort",
                  KILN_PROGRAM_TYPE_U64, count);
    const kit_argument_t arguments[] = {{keys, NULL, count * UINT64_C(8)},
                                        {NULL, by[way], count * UINT64_C(8)}};
    kit_run(&t->kit, plan, arguments, 2, NULL, 0);
    kiln_library_plan_release(plan);
  }
  assert_memory_equal(by[0], by[1], count * sizeof(uint64_t));
  kiln_library_plan_t* plan =
      real_plan(&t->kit, "unique", KILN_PROGRAM_TYPE_U64, count);
  const kit_argument_t arguments[] = {{by[0], NULL, count * UINT64_C(8)},
                                      {NULL, words, count * UINT64_C(8)},
                                      {NULL, starts, count * UINT64_C(4)},
                                      {NULL, &told, 4}};
  kit_run(&t->kit, plan, arguments, 4, NULL, 0);
  kiln_library_plan_release(plan);
  for (uint32_t k = 1; k < told; k++) assert_true(words[k - 1] < words[k]);
  free(by[0]);
  free(by[1]);
  free(starts);
  return told;
}

static uint32_t find_word(const uint64_t* words, uint32_t count, uint64_t key) {
  uint32_t from = 0, to = count;
  while (to - from > 1) {
    uint32_t middle = (from + to) / 2;
    if (words[middle] <= key) from = middle;
    if (words[middle] > key) to = middle;
  }
  assert_true(words[from] == key);
  return from;
}

// The graph of words that follow each other: `ends` are pairs.
static void graph_of(csr_graph_t* graph, uint32_t vertices,
                     const uint32_t* ends, uint32_t edges) {
  graph->count = vertices;
  graph->edges = edges;
  graph->starts = kit_zeroes(vertices + 1, 4);
  graph->columns = kit_zeroes(edges, 4);
  uint32_t* places = kit_zeroes(vertices + 1, 4);
  for (uint32_t e = 0; e < edges; e++) graph->starts[ends[2 * e] + 1]++;
  for (uint32_t v = 0; v < vertices; v++) {
    graph->starts[v + 1] += graph->starts[v];
    places[v] = graph->starts[v];
  }
  for (uint32_t e = 0; e < edges; e++) {
    graph->columns[places[ends[2 * e]]++] = ends[2 * e + 1];
  }
  free(places);
}

// Levels from one vertex, components, and a product by the graph's matrix.
static void check_graph(dispatch_kit_t* kit, const csr_graph_t* graph,
                        bool both) {
  uint32_t n = graph->count, source = n / 2, told = 0;
  uint64_t edges = graph->edges * UINT64_C(4), all = n * UINT64_C(4);
  uint32_t* want = kit_zeroes(n, 4);
  uint32_t* have = kit_zeroes(n, 4);
  uint32_t* queue = kit_zeroes(n, 4);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = n + UINT64_C(1);
  options.symmetric = both ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  kit_argument_t arguments[] = {{graph->starts, NULL, all + 4},
                                {graph->columns, NULL, edges},
                                {&source, NULL, 4},
                                {NULL, have, all},
                                {NULL, NULL, 0}};
  kiln_library_plan_t* plan = kit_plan(kit, "bfs", &options);
  kit_run(kit, plan, arguments, 4, NULL, 0);
  kiln_library_plan_release(plan);
  csr_levels(graph, &source, 1, want, queue);
  assert_memory_equal(have, want, n * sizeof(uint32_t));
  plan = kit_plan(kit, "components", &options);
  arguments[2] = arguments[3];
  arguments[3] = (kit_argument_t){NULL, &told, 4};
  kit_run(kit, plan, arguments, 4, NULL, 0);
  kiln_library_plan_release(plan);
  assert_int_equal(told, csr_components(graph, want));
  assert_memory_equal(have, want, n * sizeof(uint32_t));
  // How many edges a vertex has, times 1: exact.
  float* values = kit_zeroes(graph->edges, 4);
  float* x = kit_zeroes(n, 4);
  float* y = kit_zeroes(n, 4);
  for (uint32_t e = 0; e < graph->edges; e++) values[e] = 1;
  for (uint32_t v = 0; v < n; v++) x[v] = (float)(v % 9);
  plan = real_plan(kit, "spmv", 0, n + UINT64_C(1) + graph->edges);
  arguments[2] = (kit_argument_t){values, NULL, edges};
  arguments[3] = (kit_argument_t){x, NULL, all};
  arguments[4] = (kit_argument_t){NULL, y, all};
  kit_run(kit, plan, arguments, 5, NULL, 0);
  kiln_library_plan_release(plan);
  for (uint32_t v = 0; v < n; v++) {
    float sum = 0;
    for (uint32_t e = graph->starts[v]; e < graph->starts[v + 1]; e++) {
      sum += x[graph->columns[e]];
    }
    assert_true(y[v] == sum);
  }
  free(values);
  free(x);
  free(y);
  free(want);
  free(have);
  free(queue);
}

static void test_words(void** state) {
  (void)state;
  real_text_t t;
  real_text_open(&t);
  uint64_t* keys = kit_zeroes(t.count, 8);
  uint64_t* words = kit_zeroes(t.count, 8);
  uint32_t count = real_words(&t, keys);
  assert_true(count > 5000);
  uint32_t different = sort_words(&t, keys, count, words);
  assert_true(different > 500 && different < count / 2);
  uint32_t* ends = kit_zeroes(2 * count, 4);
  for (uint32_t e = 0; e + 1 < count; e++) {
    ends[2 * e] = find_word(words, different, keys[e]);
    ends[2 * e + 1] = find_word(words, different, keys[e + 1]);
  }
  csr_graph_t graph;
  graph_of(&graph, different, ends, count - 1);
  check_graph(&t.kit, &graph, false);
  csr_free(&graph);
  free(ends);
  free(keys);
  free(words);
  real_text_close(&t);
}

// ---- A picture ----

// Edges between neighbours that are almost as light, both ways: its parts are
// what a bucket of paint fills.
static void test_fill(void** state) {
  (void)state;
  real_picture_t p;
  real_picture_open(&p);
  uint32_t n = p.w * p.h / KIT_LESS, edges = 0;
  uint32_t* ends = kit_zeroes(n * UINT64_C(8), 4);
  for (uint32_t v = 0; v < n; v++) {
    for (uint32_t way = 0; way < 2; way++) {
      uint32_t to = way == 0 ? v + 1 : v + p.w;
      if (to >= n || (way == 0 && to % p.w == 0)) continue;
      if (abs(p.gray[v] - p.gray[to]) > 2) continue;
      ends[edges * 2] = ends[edges * 2 + 3] = v;
      ends[edges * 2 + 1] = ends[edges * 2 + 2] = to;
      edges += 2;
    }
  }
  csr_graph_t graph;
  graph_of(&graph, n, ends, edges);
  assert_true(edges > n / 2);
  check_graph(&p.kit, &graph, true);
  check_graph(&p.kit, &graph, false);
  csr_free(&graph);
  free(ends);
  real_picture_close(&p);
}

// Turned and turned back; its shades, and its pixels by them.
static void test_shades(void** state) {
  (void)state;
  real_picture_t p;
  real_picture_open(&p);
  uint32_t n = p.w * p.h, counts[256], at = 0;
  uint8_t* turned = kit_zeroes(n, 1);
  uint8_t* back = kit_zeroes(n, 1);
  kiln_library_plan_t* plan =
      real_plan(&p.kit, "transpose", KILN_PROGRAM_TYPE_U8, 0);
  const kit_argument_t there[] = {{p.gray, NULL, n}, {NULL, turned, n}};
  const kit_argument_t again[] = {{turned, NULL, n}, {NULL, back, n}};
  const kiln_binding_t sides[] = {kiln_bind_u32(p.w), kiln_bind_u32(p.h),
                                  kiln_bind_u32(p.w)};
  kit_run(&p.kit, plan, there, 2, sides, 2);
  for (uint32_t i = 0; i < n; i++) {
    assert_int_equal(turned[i % p.w * p.h + i / p.w], p.gray[i]);
  }
  kit_run(&p.kit, plan, again, 2, sides + 1, 2);
  assert_memory_equal(back, p.gray, n);
  kiln_library_plan_release(plan);
  plan = real_plan(&p.kit, "histogram", 0, 0);
  const kit_argument_t often[] = {{p.gray, NULL, n},
                                  {NULL, counts, sizeof(counts)}};
  kit_run(&p.kit, plan, often, 2, NULL, 0);
  kiln_library_plan_release(plan);
  plan = real_plan(&p.kit, "merge_sort", KILN_PROGRAM_TYPE_U8, n);
  const kit_argument_t sorted[] = {{p.gray, NULL, n}, {NULL, back, n}};
  kit_run(&p.kit, plan, sorted, 2, NULL, 0);
  kiln_library_plan_release(plan);
  for (uint32_t shade = 0; shade < 256; shade++) {
    for (uint32_t i = 0; i < counts[shade]; i++) {
      assert_int_equal(back[at++], shade);
    }
  }
  assert_int_equal(at, n);
  free(turned);
  free(back);
  real_picture_close(&p);
}

// The edges of a picture: the filter of Sobel, whose sums are exact.
static void test_edges(void** state) {
  (void)state;
  static const float kSobel[] = {-1, 0, 1, -2, 0, 2, -1, 0, 1};
  real_picture_t p;
  real_picture_open(&p);
  uint64_t n = (uint64_t)p.w * p.h;
  float* y = kit_zeroes(n, 4);
  kiln_library_plan_t* plan = real_plan(&p.kit, "convolution", 0, 0);
  const kit_argument_t arguments[] = {{p.floats, NULL, n * 4},
                                      {kSobel, NULL, sizeof(kSobel)},
                                      {NULL, y, n * 4}};
  const kiln_binding_t scalars[] = {kiln_bind_u32(p.w), kiln_bind_u32(p.h),
                                    kiln_bind_u32(1),   kiln_bind_u32(1),
                                    kiln_bind_u32(3),   kiln_bind_u32(3)};
  kit_run(&p.kit, plan, arguments, 3, scalars, 6);
  for (uint32_t i = 0; i < n; i++) {
    float sum = 0;
    for (uint32_t k = 0; k < 9; k++) {
      uint32_t row = i / p.w + k / 3 - 1, column = i % p.w + k % 3 - 1;
      if (row >= p.h || column >= p.w) continue;
      sum += kSobel[k] * (float)p.gray[row * p.w + column];
    }
    assert_true(y[i] == sum);
  }
  kiln_library_plan_release(plan);
  free(y);
  real_picture_close(&p);
}

// There and back: what is left is what it was, but for the last bits. And how
// light it is altogether, which is its first number.
static void test_waves(void** state) {
  (void)state;
  enum { SIZE = 1 << 16 };
  real_picture_t p;
  real_picture_open(&p);
  float* x = kit_zeroes(2 * SIZE, 4);
  float* y = kit_zeroes(2 * SIZE, 4);
  double sum = 0;
  for (uint32_t i = 0; i < SIZE; i++) {
    x[2 * i] = p.floats[i];
    sum += (double)p.floats[i];
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.segment = SIZE;
  options.count = 2 * SIZE;
  kiln_library_plan_t* plan = kit_plan(&p.kit, "fft", &options);
  for (uint32_t way = 0; way < 2; way++) {
    const kit_argument_t arguments[] = {{way == 0 ? x : y, NULL, 2 * SIZE * 4},
                                        {NULL, y, 2 * SIZE * 4}};
    const kiln_binding_t inverse = kiln_bind_u32(way);
    kit_run(&p.kit, plan, arguments, 2, &inverse, 1);
    if (way == 0) assert_true(fabs((double)y[0] - sum) < 1e-5 * sum);
  }
  for (uint32_t i = 0; i < 2 * SIZE; i++) {
    assert_true(fabsf(x[i] - y[i]) < 1e-2f);
  }
  kiln_library_plan_release(plan);
  free(x);
  free(y);
  real_picture_close(&p);
}

// How alike rows are, each beside each, after layer norm: 1 with itself.
static void test_alike(void** state) {
  (void)state;
  real_picture_t p;
  real_picture_open(&p);
  uint64_t n = (uint64_t)p.w * p.h, side = p.h;
  float* ones = kit_zeroes(p.w, 4);
  float* none = kit_zeroes(p.w, 4);
  float* y = kit_zeroes(n, 4);
  float* turned = kit_zeroes(n, 4);
  float* alike = kit_zeroes(side * side, 4);
  for (uint32_t j = 0; j < p.w; j++) ones[j] = 1;
  const kiln_binding_t scalars[] = {kiln_bind_u32(p.w), kiln_bind_f32(1e-6f)};
  const kiln_binding_t sides[] = {kiln_bind_u32(p.w), kiln_bind_u32(p.h)};
  const kiln_binding_t shape[] = {kiln_bind_u32(p.h), kiln_bind_u32(p.h),
                                  kiln_bind_u32(p.w)};
  const kit_argument_t norm[] = {{p.floats, NULL, n * 4},
                                 {ones, NULL, p.w * UINT64_C(4)},
                                 {none, NULL, p.w * UINT64_C(4)},
                                 {NULL, y, n * 4}};
  const kit_argument_t turn[] = {{y, NULL, n * 4}, {NULL, turned, n * 4}};
  const kit_argument_t product[] = {
      {y, NULL, n * 4}, {turned, NULL, n * 4}, {NULL, alike, side * side * 4}};
  kiln_library_plan_t* plan = real_plan(&p.kit, "normalize", 0, 0);
  kit_run(&p.kit, plan, norm, 4, scalars, 2);
  kiln_library_plan_release(plan);
  plan = real_plan(&p.kit, "transpose", 0, 0);
  kit_run(&p.kit, plan, turn, 2, sides, 2);
  kiln_library_plan_release(plan);
  plan = real_plan(&p.kit, "matmul", 0, 0);
  kit_run(&p.kit, plan, product, 3, shape, 3);
  kiln_library_plan_release(plan);
  for (uint32_t i = 0; i < p.h; i++) {
    double mean = 0, sum = 0;
    for (uint32_t k = 0; k < p.w; k++) {
      mean += (double)p.floats[i * p.w + k] / p.w;
      // With the row below.
      sum += (double)y[i * p.w + k] * (double)y[(i + 1) % p.h * p.w + k];
    }
    double same = (double)alike[i * side + i] / p.w;
    double next = (double)alike[i * side + (i + 1) % p.h];
    assert_true(fabs(same - 1) < 1e-4);
    assert_true(fabs(next - sum) < 1e-3 * p.w);
    double first = (double)p.floats[i * p.w] - mean;
    assert_true(first * (double)y[i * p.w] >= -1e-3);
  }
  free(ones);
  free(none);
  free(y);
  free(turned);
  free(alike);
  real_picture_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lines),   cmocka_unit_test(test_utf8_sizes),
      cmocka_unit_test(test_lengths), cmocka_unit_test(test_checksum),
      cmocka_unit_test(test_letters), cmocka_unit_test(test_words),
      cmocka_unit_test(test_fill),    cmocka_unit_test(test_shades),
      cmocka_unit_test(test_edges),   cmocka_unit_test(test_waves),
      cmocka_unit_test(test_alike),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
