// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the steps of a sequence as units of a graph, and what each of them
// waits for. Loops are unrolled. Asks no device, makes no node.
#ifndef KILN_SRC_DISPATCH_SEQUENCE_LAYOUT_H_
#define KILN_SRC_DISPATCH_SEQUENCE_LAYOUT_H_

#include "dispatch/sequence_inside.h"

// A step, once, or a point where edges meet. thread-compatible
typedef struct kilni_dispatch_unit_t {
  uint32_t step;         // KILNI_NO_STEP: a point
  uint32_t first_after;  // in the layout's `after`
  uint32_t after_count;
  uint32_t first_node;  // in the nodes of the graph: clears, then the step's
  uint32_t clears;
  uint32_t idle;  // 1: it does nothing
} kilni_dispatch_unit_t;

// Sorted units. thread-compatible
typedef struct kilni_dispatch_layout_t {
  kilni_dispatch_unit_t* units;
  uint32_t* after;  // numbers of units
  size_t unit_capacity;
  size_t after_capacity;
  uint32_t unit_count;
  uint32_t after_count;
  uint32_t node_count;
  uint32_t reserved;
} kilni_dispatch_layout_t;

// Lays out the steps from `first` up to `behind`. LIMIT_EXCEEDED: more nodes
// than `most`. Deinit also after a failure; all zero is an empty one.
kiln_status_t kilni_dispatch_layout_init(
    kilni_dispatch_layout_t* layout, const kilni_dispatch_instance_t* instance,
    uint32_t first, uint32_t behind, uint32_t most);
void kilni_dispatch_layout_deinit(kilni_dispatch_layout_t* layout,
                                  kiln_allocator_t allocator);

// Whether graphs of both have the same nodes and edges.
bool kilni_dispatch_layout_is_same(const kilni_dispatch_layout_t* a,
                                   const kilni_dispatch_layout_t* b);

#endif  // KILN_SRC_DISPATCH_SEQUENCE_LAYOUT_H_
