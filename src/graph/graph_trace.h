// SPDX-License-Identifier: Apache-2.0
//
// graph: a trace and its slices; private to the module.
#ifndef KILN_SRC_GRAPH_GRAPH_TRACE_H_
#define KILN_SRC_GRAPH_GRAPH_TRACE_H_

#include "graph/graph_inside.h"
#include "kiln/graph.h"
#include "kiln/picture.h"

enum { KILNI_TRACE_MAX_NAME = 64 << 10 };
#define KILNI_TRACE_NONE UINT32_MAX

// A node that is timed. thread-compatible
typedef struct kilni_graph_slice_t {
  char* name;
  char* kernel;         // NULL: none
  kiln_event_t* start;  // NULL: not known
  kiln_event_t* end;
  kiln_graph_node_t* start_record;  // while the trace is made
  kiln_graph_node_t* end_record;    //
  uint32_t kind;
  uint32_t depth;
  uint32_t lane;
  uint32_t reserved;
  uint64_t start_ns;
  uint64_t end_ns;
} kilni_graph_slice_t;

struct kiln_graph_trace_t {
  kiln_allocator_t allocator;
  kiln_device_t* device;
  atomic_uint references;
  uint32_t lanes;
  kiln_graph_exec_t* exec;
  kiln_event_t* begin;  // on the stream, before the launch and after it
  kiln_event_t* done;   //
  kilni_graph_slice_t* slices;
  uint32_t count;
  uint32_t space;
  uint64_t elapsed_ns;
  bool is_launched;
  bool is_read;
};

#endif  // KILN_SRC_GRAPH_GRAPH_TRACE_H_
