// SPDX-License-Identifier: Apache-2.0
//
// live: the library's entries on graphs and sparse matrices at full size,
// beside plain C.
//
//   live_library_graphs              2^26 edges on cuda:0; 77 without a GPU
//   live_library_graphs soft 14      2^14 on the software device
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csr_graph.h"
#include "kiln/kiln.h"
#include "live_check.h"

static kiln_dispatcher_t* dispatcher;

typedef struct argument_t {
  const void* data;  // NULL: nothing yet
  void* out;         // NULL: nobody asks
  uint64_t bytes;
} argument_t;

// Two runs of one plan on the same buffers. Tells the rounds of the last one.
static uint32_t run(const char* name, const kiln_library_options_t* options,
                    const argument_t* arguments, uint32_t count) {
  kiln_library_plan_t* plan = NULL;
  kiln_resident_t residents[8];
  kiln_binding_t bindings[8];
  uint32_t rounds = 0;
  if (!OK(kiln_library_plan_create(dispatcher, name, options, &plan))) return 0;
  for (uint32_t i = 0; i < count; i++) {
    OK(kiln_resident_allocate(dispatcher, arguments[i].bytes, &residents[i]));
    if (arguments[i].data != NULL) {
      OK(kiln_resident_upload(dispatcher, NULL, residents[i], 0,
                              arguments[i].bytes, arguments[i].data));
    }
    bindings[i] = kiln_bind_resident(residents[i]);
  }
  for (int again = 0; again < 2; again++) {
    kiln_pending_t* pending = NULL;
    if (OK(kiln_library_plan_begin(plan, NULL, bindings, count, &pending))) {
      OK(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    }
    kiln_pending_release(pending);
  }
  OK(kiln_library_plan_rounds(plan, &rounds));
  for (uint32_t i = 0; i < count; i++) {
    if (arguments[i].out != NULL) {
      OK(kiln_resident_download(dispatcher, NULL, residents[i], 0,
                                arguments[i].bytes, arguments[i].out));
    }
    OK(kiln_resident_free(dispatcher, residents[i]));
  }
  kiln_library_plan_release(plan);
  return rounds;
}

static void judge(const char* what, const char* form, const void* have,
                  const void* want, uint64_t count, uint64_t rounds) {
  const uint32_t* a = have;
  const uint32_t* b = want;
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < count; i++) wrong += a[i] != b[i];
  printf("%s, %s of %llu: %llu wrong, %llu rounds\n", what, form,
         (unsigned long long)count, (unsigned long long)wrong,
         (unsigned long long)rounds);
  IS(wrong == 0);
}

// From one vertex and from many; both ways of going about it.
static void search(const csr_graph_t* graph, const char* form) {
  enum { MANY = 1000 };
  uint64_t bytes = (uint64_t)graph->count * 4;
  uint32_t sources[MANY];
  uint64_t seed = 3;
  for (uint32_t i = 0; i < MANY; i++) {
    sources[i] = (uint32_t)(csr_next(&seed) % graph->count);
  }
  // The hub of an R-MAT graph: others may have no edges.
  sources[0] = 0;
  uint32_t* want = csr_space(graph->count, 4);
  uint32_t* have = csr_space(graph->count, 4);
  uint32_t* queue = csr_space(graph->count, 4);
  for (uint32_t way = 0; way < 4; way++) {
    uint32_t many = way < 2 ? 1 : MANY;
    kiln_library_options_t options = kiln_library_options_default();
    options.count = (uint64_t)graph->count + 1;
    options.symmetric = way % 2 == 0 ? KILN_SWITCH_OFF : KILN_SWITCH_ON;
    csr_levels(graph, sources, many, want, queue);
    const argument_t arguments[] = {
        {graph->starts, NULL, bytes + 4},
        {graph->columns, NULL, (uint64_t)graph->edges * 4},
        {sources, NULL, many * UINT64_C(4)},
        {NULL, have, bytes}};
    memset(have, 0xa5, (size_t)bytes);
    uint32_t rounds = run("bfs", &options, arguments, 4);
    judge(way % 2 == 0 ? "bfs" : "bfs, symmetric", form, have, want,
          graph->count, rounds);
  }
  free(want);
  free(have);
  free(queue);
}

static void label(const csr_graph_t* graph, const char* form) {
  uint64_t bytes = (uint64_t)graph->count * 4;
  uint32_t* want = csr_space(graph->count, 4);
  uint32_t* have = csr_space(graph->count, 4);
  uint32_t count = csr_components(graph, want), told = 0;
  for (uint32_t way = 0; way < 2; way++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.count = (uint64_t)graph->count + 1;
    options.symmetric = way == 0 ? KILN_SWITCH_OFF : KILN_SWITCH_ON;
    const argument_t arguments[] = {
        {graph->starts, NULL, bytes + 4},
        {graph->columns, NULL, (uint64_t)graph->edges * 4},
        {NULL, have, bytes},
        {NULL, &told, 4}};
    uint32_t rounds = run("components", &options, arguments, 4);
    judge(way == 0 ? "components" : "components, symmetric", form, have, want,
          graph->count, rounds);
    IS(told == count);
  }
  free(want);
  free(have);
}

// Whole numbers, whose sums are exact.
static void multiply(const csr_graph_t* graph, const char* form) {
  uint64_t rows = graph->count;
  float* values = csr_space(graph->edges, 4);
  float* x = csr_space(rows, 4);
  float* want = csr_space(rows, 4);
  float* have = csr_space(rows, 4);
  for (uint32_t e = 0; e < graph->edges; e++) {
    values[e] = (float)(e % 5) - 2.0f;
  }
  for (uint32_t i = 0; i < rows; i++) x[i] = (float)(i % 7) - 3.0f;
  for (uint32_t r = 0; r < rows; r++) {
    float sum = 0;
    for (uint32_t e = graph->starts[r]; e < graph->starts[r + 1]; e++) {
      sum += values[e] * x[graph->columns[e]];
    }
    want[r] = sum + 0.0f;
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.count = rows + graph->edges + 1;
  const argument_t arguments[] = {
      {graph->starts, NULL, (rows + 1) * 4},
      {graph->columns, NULL, (uint64_t)graph->edges * 4},
      {values, NULL, (uint64_t)graph->edges * 4},
      {x, NULL, rows * 4},
      {NULL, have, rows * 4}};
  run("spmv", &options, arguments, 5);
  // A -0 is a 0 here.
  for (uint32_t r = 0; r < rows; r++) have[r] += 0.0f;
  judge("spmv", form, have, want, rows, 0);
  free(values);
  free(x);
  free(want);
  free(have);
}

// Vertices of each form: about 2^log edges, but a chain's rounds are its
// vertices.
static void run_all(uint32_t log) {
  static const uint32_t kLess[] = {9, 2, 4};
  for (uint32_t form = 0; form < CSR_FORMS; form++) {
    csr_graph_t graph;
    csr_make(&graph, form, 1u << (log - kLess[form]), true);
    search(&graph, kCsrForms[form]);
    label(&graph, kCsrForms[form]);
    multiply(&graph, kCsrForms[form]);
    csr_free(&graph);
  }
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  uint32_t log = argc > 2 ? (uint32_t)atoi(argv[2]) % 30 : 26;
  if (log < 12) log = 12;
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* opened = NULL;
  if (!OK(kiln_runtime_create(NULL, &runtime))) return 1;
  kiln_status_t status = kiln_runtime_open_device(runtime, device, &opened);
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(runtime);
    return 77;
  }
  if (OK(kiln_dispatcher_create(opened, NULL, &dispatcher))) run_all(log);
  kiln_dispatcher_release(dispatcher);
  kiln_device_release(opened);
  kiln_runtime_release(runtime);
  printf("%d failures\n", atomic_load(&failures));
  return atomic_load(&failures) == 0 ? 0 : 1;
}
