// SPDX-License-Identifier: Apache-2.0
//
// tests: graphs as CSR, the same ones every time: a chain, a grid with holes as
// roads have them, and one with few hubs and many small vertices (R-MAT). And
// breadth-first searches of them in plain C.
#ifndef KILN_TESTS_SUPPORT_CSR_GRAPH_H_
#define KILN_TESTS_SUPPORT_CSR_GRAPH_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  CSR_CHAIN = 0,  // v and v + 1, of which every second number is far away
  CSR_GRID = 1,   // of four neighbours, a sixth of the edges missing
  CSR_RMAT = 2,   // eight edges a vertex; twins and loops stay
  CSR_FORMS = 3,
};

static const char* const kCsrForms[] = {"chain", "grid", "rmat"};

#define CSR_UNREACHED UINT32_MAX

// starts[v] to starts[v + 1] are the edges of v in columns. one-thread
typedef struct csr_graph_t {
  uint32_t count;    // of vertices
  uint32_t edges;    // of numbers in columns
  uint32_t* starts;  // count + 1
  uint32_t* columns;
} csr_graph_t;

static inline uint64_t csr_next(uint64_t* state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline void* csr_space(uint64_t count, uint64_t bytes) {
  void* data = calloc((size_t)count + 1, (size_t)bytes);
  if (data == NULL) abort();
  return data;
}

// Both ends of an edge of an R-MAT graph: each bit of them falls into one of
// four fields, by the odds of the Graph500.
static inline void csr_rmat_edge(uint32_t count, uint64_t* seed,
                                 uint32_t* out_ends) {
  uint64_t row = 0, column = 0;
  for (uint64_t size = 1; size < count; size *= 2) {
    uint32_t odds = (uint32_t)(csr_next(seed) >> 40) % 100;
    row = row * 2 + (odds >= 76);
    column = column * 2 + ((odds >= 57 && odds < 76) || odds >= 95);
  }
  out_ends[0] = (uint32_t)(row % count);
  out_ends[1] = (uint32_t)(column % count);
}

// Both ends of edge e; false where there is none.
static inline bool csr_edge(uint32_t form, uint32_t count, uint32_t width,
                            uint64_t e, uint64_t* seed, uint32_t* out_ends) {
  if (form == CSR_RMAT) {
    csr_rmat_edge(count, seed, out_ends);
    return true;
  }
  if (form == CSR_CHAIN) {
    // Even places are in order, odd ones from the end on.
    for (uint32_t i = 0; i < 2; i++) {
      uint32_t at = (uint32_t)e + i;
      out_ends[i] = at % 2 == 0 ? at / 2 : count - 1 - at / 2;
    }
    return e + 1 < count;
  }
  uint32_t v = (uint32_t)(e / 2);
  bool is_down = e % 2 == 1;
  out_ends[0] = v;
  out_ends[1] = is_down ? v + width : v + 1;
  bool is_hole = csr_next(seed) % 6 == 0;
  return !is_hole && out_ends[1] < count &&
         (is_down || out_ends[1] % width != 0);
}

// Made by two walks over the same edges: they are counted, then placed. With
// `both` each is there both ways.
static inline void csr_make(csr_graph_t* graph, uint32_t form, uint32_t count,
                            bool both) {
  uint32_t width = 1;
  while ((uint64_t)width * width < count) width++;
  uint64_t edges = form == CSR_RMAT    ? (uint64_t)count * 8
                   : form == CSR_CHAIN ? (uint64_t)count
                                       : (uint64_t)count * 2;
  graph->count = count;
  graph->starts = (uint32_t*)csr_space((uint64_t)count + 1, 4);
  graph->columns = NULL;
  uint32_t* places = (uint32_t*)csr_space((uint64_t)count + 1, 4);
  for (uint32_t walk = 0; walk < 2; walk++) {
    uint64_t seed = 77;
    for (uint64_t e = 0; e < edges; e++) {
      uint32_t ends[2];
      if (!csr_edge(form, count, width, e, &seed, ends)) continue;
      for (uint32_t i = 0; i < (both ? 2u : 1u); i++) {
        uint32_t v = ends[i];
        if (walk == 0) graph->starts[v + 1]++;
        if (walk == 1) graph->columns[places[v]++] = ends[1 - i];
      }
    }
    if (walk == 1) break;
    for (uint32_t v = 0; v < count; v++) {
      graph->starts[v + 1] += graph->starts[v];
    }
    memcpy(places, graph->starts, ((size_t)count + 1) * 4);
    graph->edges = graph->starts[count];
    graph->columns = (uint32_t*)csr_space(graph->edges, 4);
  }
  free(places);
}

// Edges to vertices that are none, and starts that fall, so that one vertex has
// no edges and the next one has a few of others.
static inline void csr_spoil(csr_graph_t* graph) {
  for (uint32_t e = 3; e < graph->edges; e += 97) {
    graph->columns[e] = e % 2 == 0 ? graph->count + e : UINT32_MAX - e;
  }
  for (uint32_t v = 50; v + 1 < graph->count; v += 101) {
    uint32_t start = graph->starts[v];
    graph->starts[v + 1] = start > 7 ? start - 7 : 0;
  }
}

static inline void csr_free(csr_graph_t* graph) {
  free(graph->starts);
  free(graph->columns);
}

// The same graph without edges to vertices that are none, each vertex with
// edges of its own.
static inline void csr_mend(const csr_graph_t* graph, csr_graph_t* out) {
  uint64_t space = 0;
  for (uint32_t v = 0; v < graph->count; v++) {
    if (graph->starts[v] >= graph->starts[v + 1]) continue;
    space += graph->starts[v + 1] - graph->starts[v];
  }
  out->count = graph->count;
  out->edges = 0;
  out->starts = (uint32_t*)csr_space((uint64_t)graph->count + 1, 4);
  out->columns = (uint32_t*)csr_space(space, 4);
  for (uint32_t v = 0; v < graph->count; v++) {
    for (uint32_t e = graph->starts[v]; e < graph->starts[v + 1]; e++) {
      if (graph->columns[e] >= graph->count) continue;
      out->columns[out->edges++] = graph->columns[e];
    }
    out->starts[v + 1] = out->edges;
  }
}

// Levels by a queue; `queue` has space for all vertices.
static inline void csr_levels(const csr_graph_t* graph, const uint32_t* sources,
                              uint32_t source_count, uint32_t* levels,
                              uint32_t* queue) {
  uint32_t begin = 0, end = 0;
  memset(levels, 0xff, (size_t)graph->count * 4);
  for (uint32_t i = 0; i < source_count; i++) {
    uint32_t v = sources[i];
    if (v >= graph->count || levels[v] == 0) continue;
    levels[v] = 0;
    queue[end++] = v;
  }
  while (begin < end) {
    uint32_t v = queue[begin++];
    for (uint32_t e = graph->starts[v]; e < graph->starts[v + 1]; e++) {
      uint32_t to = graph->columns[e];
      if (levels[to] != CSR_UNREACHED) continue;
      levels[to] = levels[v] + 1;
      queue[end++] = to;
    }
  }
}

// The smallest vertex of each one's component, whatever way edges go, and how
// many components there are: trees by halving their paths.
static inline uint32_t csr_components(const csr_graph_t* graph,
                                      uint32_t* labels) {
  uint32_t count = 0;
  for (uint32_t v = 0; v < graph->count; v++) labels[v] = v;
  for (uint32_t v = 0; v < graph->count; v++) {
    for (uint32_t e = graph->starts[v]; e < graph->starts[v + 1]; e++) {
      uint32_t a = v, b = graph->columns[e];
      while (labels[a] != a) a = labels[a] = labels[labels[a]];
      while (labels[b] != b) b = labels[b] = labels[labels[b]];
      if (a < b) labels[b] = a;
      if (b < a) labels[a] = b;
    }
  }
  for (uint32_t v = 0; v < graph->count; v++) {
    labels[v] = labels[labels[v]];
    count += labels[v] == v;
  }
  return count;
}

#endif  // KILN_TESTS_SUPPORT_CSR_GRAPH_H_
