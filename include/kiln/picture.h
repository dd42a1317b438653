// SPDX-License-Identifier: Apache-2.0
//
// graph: graphs as pictures: DOT for Graphviz, and traces of timed runs.
#ifndef KILN_PICTURE_H_
#define KILN_PICTURE_H_

#include "kiln/graph.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// Receives text, in one or several calls. False: stop, and the call that writes
// is IO_ERROR. Must not call Kiln.
typedef bool (*kiln_write_fn_t)(const char* text, size_t size, void* user_data);

// ---- DOT ----

// The options of a picture. thread-compatible
typedef struct kiln_graph_draw_options_t {
  uint32_t struct_size;  // sizeof(kiln_graph_draw_options_t)
  uint32_t brief;        // KILN_SWITCH_*: names and kinds of nodes only
  const char* title;     // above the picture; NULL: none
} kiln_graph_draw_options_t;

// All defaults. Since 0.1.
static inline kiln_graph_draw_options_t kiln_graph_draw_options_default(void) {
  kiln_graph_draw_options_t options = {(uint32_t)sizeof(options), 0, NULL};
  return options;
}

// Writes the graph in DOT, the language of Graphviz: each node with its name
// and kind; kernels with name, grid, block and shared bytes; copies and fills
// with their bytes; edges with port and type if these are not the default;
// nested nodes inside a frame. No addresses and no handles, and nodes in the
// order of their addition: the same graph gives the same text.
//
// Names are written so that Graphviz shows them as they are; invalid UTF-8, and
// control characters, as '?'. `options` may be NULL.
//
//   INVALID_STATE   a graph that is being captured, or whose node was removed
//   LIMIT_EXCEEDED  more than 64 MiB of text, or graphs more than 64 deep
//   IO_ERROR        `write` returned false
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_draw(kiln_graph_t* graph, const kiln_graph_draw_options_t* options,
                kiln_write_fn_t write, void* user_data);

// The same to a file, which is written completely or not at all. Other
// statuses: NOT_FOUND, PERMISSION_DENIED, IO_ERROR name the path. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_draw_file(
    kiln_graph_t* graph, const kiln_graph_draw_options_t* options,
    const char* path);

// The contents of the driver's own dump; the driver's bits. Drivers ignore or
// refuse unknown bits.
enum {
  KILN_GRAPH_DUMP_VERBOSE = 1 << 0,  // as if all were given
  KILN_GRAPH_DUMP_RUNTIME_TYPES = 1 << 1,
  KILN_GRAPH_DUMP_KERNELS = 1 << 2,
  KILN_GRAPH_DUMP_COPIES = 1 << 3,
  KILN_GRAPH_DUMP_FILLS = 1 << 4,
  KILN_GRAPH_DUMP_HOSTS = 1 << 5,
  KILN_GRAPH_DUMP_EVENTS = 1 << 6,
  KILN_GRAPH_DUMP_SIGNAL_SEMAPHORES = 1 << 7,
  KILN_GRAPH_DUMP_WAIT_SEMAPHORES = 1 << 8,
  KILN_GRAPH_DUMP_KERNEL_ATTRIBUTES = 1 << 9,
  KILN_GRAPH_DUMP_HANDLES = 1 << 10,
  KILN_GRAPH_DUMP_ALLOCATIONS = 1 << 11,
  KILN_GRAPH_DUMP_FREES = 1 << 12,
  KILN_GRAPH_DUMP_MEMORY_OPS = 1 << 13,
  KILN_GRAPH_DUMP_TOPOLOGY = 1 << 14,
  KILN_GRAPH_DUMP_CONDITIONALS = 1 << 15,  // CUDA 12.3
};

// Lets the driver write the graph to a file, in its own form of DOT, with
// addresses and handles. The file is written completely or not at all: the
// driver writes to a temporary file, which is then renamed.
//
//   INVALID_ARGUMENT  unknown flags
//   UNSUPPORTED       a driver without it
//   INVALID_STATE, NOT_FOUND, PERMISSION_DENIED, IO_ERROR, DEVICE_LOST,
//   DRIVER_ERROR, OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_dump_file(kiln_graph_t* graph,
                                                          uint32_t flags,
                                                          const char* path);

// ---- Traces ----

// A graph that is timed node by node. thread-compatible
//
// Reference-counted. Retains its device and what its graph retains. Drivers do
// not time the nodes of an executable. So a trace has a graph of its own, in
// which an event is recorded after every node and another one before it, after
// the records of all its dependencies. Nodes that no edge orders still run
// concurrently. Differences from the graph itself:
//
//   * there are up to three times as many nodes, and each edge costs two
//     records: a launch takes longer than one of the graph itself, which
//     kiln_graph_trace_elapsed shows;
//   * a slice begins when the node may begin, and so includes the time in which
//     it waits for multiprocessors, on the software device for workers, that
//     others use;
//   * times are as fine as the driver's events, about half a microsecond.
//
// EMPTY nodes are not timed; conditional nodes are, as a whole; nodes inside
// child nodes are, those inside conditional ones are not, since drivers allow
// no records there. If a node has an incoming programmatic edge (see
// kiln_graph_edge_t), its start is unknown.
typedef struct kiln_graph_trace_t kiln_graph_trace_t;

// How a trace is made. thread-compatible
typedef struct kiln_graph_trace_options_t {
  uint32_t struct_size;  // sizeof(kiln_graph_trace_options_t)

  // KILN_SWITCH_*: the records are added to the graph itself, permanently,
  // instead of to a clone: for graphs that allocate memory, which cannot be
  // cloned. Default: off.
  uint32_t in_place;

  // KILN_SWITCH_*: a run frees what the previous run allocated and did not
  // free, as in kiln_graph_exec_options_t. Default: off.
  uint32_t free_on_launch;
  uint32_t reserved;
} kiln_graph_trace_options_t;

// All defaults. Since 0.1.
static inline kiln_graph_trace_options_t kiln_graph_trace_options_default(
    void) {
  kiln_graph_trace_options_t options = {(uint32_t)sizeof(options), 0, 0, 0};
  return options;
}

// One node of a trace. thread-compatible
//
// Only the library makes one; fields may be appended in later versions. Texts
// are borrowed from the trace.
typedef struct kiln_graph_slice_t {
  const char* name;    // with those of the enclosing nodes: "a/b"
  const char* kernel;  // "" of other nodes
  uint32_t kind;       // KILN_GRAPH_*
  uint32_t depth;      // number of enclosing nodes
  uint32_t lane;       // the lowest free one when it began
  // 0: only its end is known, which `start_ns` is, and `elapsed_ns` is 0.
  uint32_t is_start_known;
  uint64_t start_ns;  // from the launch's beginning
  uint64_t elapsed_ns;
} kiln_graph_slice_t;

// Makes a trace of the graph as it is now. `options` may be NULL. Unnamed nodes
// are identified by kind and number.
//
//   INVALID_STATE   a graph that is being captured, a view
//   UNSUPPORTED     a graph that cannot be cloned; a driver without records in
//                   graphs
//   LIMIT_EXCEEDED  graphs more than 64 deep
//   DEVICE_LOST, DRIVER_ERROR, DEVICE_OUT_OF_MEMORY, OUT_OF_MEMORY
//
// The caller owns `*out_trace`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_trace_create(
    kiln_graph_t* graph, const kiln_graph_trace_options_t* options,
    kiln_graph_trace_t** out_trace);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_graph_trace_retain(kiln_graph_trace_t* trace);
KILN_API void kiln_graph_trace_release(kiln_graph_trace_t* trace);

// Puts one timed run on a stream and returns. Statuses of
// kiln_graph_exec_launch. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_trace_launch(kiln_graph_trace_t* trace, kiln_stream_t* stream);

// Reads the times of the last run, which must have ended (NOT_READY, bare).
// INVALID_STATE: nothing was launched, or the last launch failed. DEVICE_LOST,
// DRIVER_ERROR. The times of the previous run are then discarded, even on
// failure. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_trace_read(kiln_graph_trace_t* trace);

// The number of timed nodes, and one of them, in the order of the graph's
// nodes; nested ones come later. Before a read the times are 0.
// INVALID_ARGUMENT: no such slice. Since 0.1.
KILN_API uint32_t kiln_graph_trace_count(const kiln_graph_trace_t* trace);
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_trace_slice(const kiln_graph_trace_t* trace, uint32_t index,
                       kiln_graph_slice_t* out_slice);

// From the launch to its end on the stream, including the records. 0 before a
// read. Since 0.1.
KILN_API uint64_t kiln_graph_trace_elapsed(const kiln_graph_trace_t* trace);

// Writes the run that was read last as trace events in JSON, which Perfetto
// (ui.perfetto.dev) and chrome://tracing show: the stream as one track, on
// which the launch is a slice, and below it lanes with a slice for each node.
// Drivers do not report on which of their internal streams a node ran;
// overlapping nodes are on different lanes, as few as possible. INVALID_STATE:
// nothing was read. LIMIT_EXCEEDED: more than 64 MiB. IO_ERROR, OUT_OF_MEMORY.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_trace_write(
    kiln_graph_trace_t* trace, kiln_write_fn_t write, void* user_data);

// The same to a file, which is written completely or not at all. Other statuses
// as of kiln_graph_draw_file. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_trace_write_file(kiln_graph_trace_t* trace, const char* path);

KILN_EXTERN_C_END

#endif  // KILN_PICTURE_H_
