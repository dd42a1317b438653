// SPDX-License-Identifier: Apache-2.0
//
// bench: what the library's entries on graphs do, in plain C on one core: the
// loop that one would write.
#include "bench_graphs_plain.h"

void plain_spmv(const plain_graph_t* p) {
  const uint32_t* starts = p->graph->starts;
  for (uint32_t r = 0; r < p->graph->count; r++) {
    float sum = 0;
    for (uint32_t e = starts[r]; e < starts[r + 1]; e++) {
      sum += p->values[e] * p->x[p->graph->columns[e]];
    }
    p->y[r] = sum;
  }
}

void plain_bfs(const plain_graph_t* p) {
  const uint32_t source = 0;
  csr_levels(p->graph, &source, 1, p->levels, p->queue);
}

void plain_components(const plain_graph_t* p) {
  p->queue[0] = csr_components(p->graph, p->levels);
}
