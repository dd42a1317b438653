// SPDX-License-Identifier: Apache-2.0
//
// graph: the public header. What is not public and others may ask.
#ifndef KILN_SRC_GRAPH_GRAPH_H_
#define KILN_SRC_GRAPH_GRAPH_H_

#include "kiln/capture.h"
#include "kiln/graph.h"

// What a graph retains. thread-compatible
typedef struct kilni_graph_counts_t {
  uint32_t nodes;     // objects, of removed nodes too
  uint32_t sealed;    // segments that executables or clones may share
  uint32_t live;      // bundles of owners in use, in all segments
  uint32_t segments;  // made ever
} kilni_graph_counts_t;

kilni_graph_counts_t kilni_graph_counts(const kiln_graph_t* graph);

#endif  // KILN_SRC_GRAPH_GRAPH_H_
