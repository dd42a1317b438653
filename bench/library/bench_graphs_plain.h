// SPDX-License-Identifier: Apache-2.0
//
// bench: what the library's entries on graphs do, in plain C on one core.
#ifndef KILN_BENCH_LIBRARY_BENCH_GRAPHS_PLAIN_H_
#define KILN_BENCH_LIBRARY_BENCH_GRAPHS_PLAIN_H_

#include "csr_graph.h"

// What they are given, and where they put it. one-thread
typedef struct plain_graph_t {
  const csr_graph_t* graph;
  const float* values;
  const float* x;
  float* y;
  uint32_t* levels;
  uint32_t* queue;
} plain_graph_t;

typedef void (*plain_graph_run_t)(const plain_graph_t* p);

void plain_spmv(const plain_graph_t* p);
void plain_bfs(const plain_graph_t* p);  // from vertex 0, by a queue

void plain_components(const plain_graph_t* p);

#endif  // KILN_BENCH_LIBRARY_BENCH_GRAPHS_PLAIN_H_
