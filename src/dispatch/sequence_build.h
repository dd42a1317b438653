// SPDX-License-Identifier: Apache-2.0
//
// dispatch: units of a layout become nodes of a graph.
#ifndef KILN_SRC_DISPATCH_SEQUENCE_BUILD_H_
#define KILN_SRC_DISPATCH_SEQUENCE_BUILD_H_

#include "dispatch/sequence_layout.h"

// one-thread
struct kilni_dispatch_build_t {
  kilni_dispatch_instance_t* instance;
  kiln_allocator_t allocator;
  uint32_t nodes;  // so far, in all graphs
  bool early;      // where `overlap` was asked for, edges are programmatic
};

// Adds the nodes of `layout` to `graph`, which has none: `nodes` gets one for
// each, at the index that its units give.
kiln_status_t kilni_dispatch_layout_build(kilni_dispatch_build_t* build,
                                          const kilni_dispatch_layout_t* layout,
                                          kiln_graph_t* graph,
                                          kiln_graph_node_t** nodes);

// Gives the nodes of one unit of an executable what its step does by now.
kiln_status_t kilni_dispatch_unit_set(const kilni_dispatch_instance_t* instance,
                                      const kilni_dispatch_unit_t* unit,
                                      kiln_graph_exec_t* exec,
                                      kiln_graph_node_t* const* nodes);

#endif  // KILN_SRC_DISPATCH_SEQUENCE_BUILD_H_
