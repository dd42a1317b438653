// SPDX-License-Identifier: Apache-2.0
//
// graph: graphs by capture: what is put on a stream becomes nodes.
//
//   kiln_graph_builder_create -> begin -> work on kiln_graph_builder_stream
//   -> end -> kiln_graph_builder_exec, or kiln_graph_builder_graph
//
// The caller keeps kernels and buffers that captured work uses alive until the
// last launch of the resulting graph has ended: the driver stores addresses,
// and capture adds no cost to launches on a stream. Data given to
// kiln_graph_builder_call_host is retained, as is everything that the nodes of
// an embedded graph use.
#ifndef KILN_CAPTURE_H_
#define KILN_CAPTURE_H_

#include "kiln/graph.h"

KILN_EXTERN_C_BEGIN

// A graph that is being captured. thread-compatible
//
// Reference-counted. Retains its device and its stream.
typedef struct kiln_graph_builder_t kiln_graph_builder_t;

// Kinds of builders.
enum {
  KILN_GRAPH_BUILDER_PRIMARY = 0,  // by kiln_graph_builder_create
  KILN_GRAPH_BUILDER_FORKED = 1,   // by kiln_graph_builder_split
  KILN_GRAPH_BUILDER_BODY = 2,     // of a conditional node
};

// States of a builder.
enum {
  KILN_GRAPH_BUILDER_NOT_STARTED = 0,
  KILN_GRAPH_BUILDER_CAPTURING = 1,
  KILN_GRAPH_BUILDER_ENDED = 2,
  KILN_GRAPH_BUILDER_CLOSED = 3,
  KILN_GRAPH_BUILDER_INVALIDATED = 4,  // the driver discarded the graph
};

// What calls that are not allowed during a capture (cuMemAlloc, waiting for a
// stream) do to it. Calls of this library avoid them, except those that wait
// for or query a captured stream itself, or an event recorded on it: these are
// INVALID_STATE and invalidate its capture in any mode.
enum {
  KILN_GRAPH_CAPTURE_RELAXED = 0,       // nothing
  KILN_GRAPH_CAPTURE_THREAD_LOCAL = 1,  // those of this thread end it
  KILN_GRAPH_CAPTURE_GLOBAL = 2,        // those of every thread
};

// How a builder is made. thread-compatible
typedef struct kiln_graph_builder_options_t {
  uint32_t struct_size;   // sizeof(kiln_graph_builder_options_t)
  uint32_t reserved;      // 0
  kiln_stream_t* stream;  // to capture on. Default: one of its own
} kiln_graph_builder_options_t;

// All defaults. Since 0.1.
static inline kiln_graph_builder_options_t kiln_graph_builder_options_default(
    void) {
  kiln_graph_builder_options_t options = {(uint32_t)sizeof(options), 0, NULL};
  return options;
}

// Makes a builder that has not begun. A stream of its own accepts work only
// while it captures: before and after, everything put on it is INVALID_STATE; a
// stream of the caller's runs such work as usual. `options` may be NULL.
// INVALID_ARGUMENT: the legacy default stream cannot be captured, a stream of
// another device. DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY. The caller owns
// `*out_builder`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_builder_create(
    kiln_device_t* device, const kiln_graph_builder_options_t* options,
    kiln_graph_builder_t** out_builder);

// Adds or releases a reference. NULL is accepted. The last one closes it, from
// any thread. If only the thread that began the capture may end it, and that is
// another one, the next use of the stream on that thread (kiln_stream_query is
// enough) ends the capture before it proceeds; on every other thread it is
// INVALID_STATE until then. A stream of the builder's own without other
// references is released with it. Since 0.1.
KILN_API void kiln_graph_builder_retain(kiln_graph_builder_t* builder);
KILN_API void kiln_graph_builder_release(kiln_graph_builder_t* builder);

// Closes it: an active capture is ended and its graph discarded; the stream is
// then free. Unjoined work of a forked builder makes the primary's end fail. A
// builder that is closed already is OK. Every other use of a closed builder
// except kind, state, must_join, device and release is INVALID_STATE.
// INVALID_STATE: another thread began the capture, in a thread-bound mode, or
// on its own default stream; it continues, and must be ended or closed there.
// DRIVER_ERROR: it is closed nevertheless. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_builder_close(kiln_graph_builder_t* builder);

// KILN_GRAPH_BUILDER_PRIMARY, ...; KILN_GRAPH_BUILDER_NOT_STARTED, ...; whether
// it must be joined (it is forked); also valid for a closed one. A forked
// builder that was neither joined nor closed is ENDED or INVALIDATED as the
// capture is that it was a part of. Since 0.1.
KILN_API uint32_t kiln_graph_builder_kind(const kiln_graph_builder_t* builder);
KILN_API uint32_t kiln_graph_builder_state(const kiln_graph_builder_t* builder);
KILN_API bool kiln_graph_builder_must_join(const kiln_graph_builder_t* builder);

// Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_graph_builder_device(
    const kiln_graph_builder_t* builder);

// The stream whose work becomes nodes. While a conditional body is captured,
// calls of this library that use the stream of the builder that captured its
// node are INVALID_STATE (except for a per-thread default stream, which differs
// between threads): work after the node is added when the body's builder has
// ended. INVALID_STATE: closed. Borrowed. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_builder_stream(
    const kiln_graph_builder_t* builder, kiln_stream_t** out_stream);

// Queries the driver whether it is capturing now. INVALID_STATE: closed, or a
// capture that was invalidated (end it, or close it). DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_builder_is_building(
    kiln_graph_builder_t* builder, bool* out_building);

// Begins the capture; `mode` is KILN_GRAPH_CAPTURE_*. INVALID_STATE: it has
// begun before, or the stream is already being captured. INVALID_ARGUMENT,
// DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_builder_begin(kiln_graph_builder_t* builder, uint32_t mode);

// Ends the capture. INVALID_STATE: it is not capturing, or is forked (join ends
// those), or a conditional body inside it is being captured. A capture that was
// invalidated, or whose forks were not joined (the message counts them), is
// INVALID_STATE with the driver's result, and its graph is lost: the builder is
// then INVALIDATED and its stream free. It continues capturing if the driver
// does, as when another thread began it in a thread-bound mode (INVALID_STATE
// too). DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_builder_end(kiln_graph_builder_t* builder);

// The captured graph, which outlives the builder; for a body also before it
// begins, so that it can be filled by hand as well or instead. INVALID_STATE:
// before begin, while capturing, forked, invalidated, closed. OUT_OF_MEMORY.
// The caller owns `*out_graph`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_builder_graph(
    kiln_graph_builder_t* builder, kiln_graph_t** out_graph);

// Makes an executable of an ended capture, as kiln_graph_exec_create; any
// number of times. INVALID_STATE: not ended, invalidated, closed; a body runs
// as part of its graph. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_builder_exec(
    kiln_graph_builder_t* builder, const kiln_graph_exec_options_t* options,
    kiln_graph_exec_t** out_exec);

// Splits into `count` concurrent branches: the builder itself and `count` - 1
// forked ones, on streams of their own, which begin after the work captured so
// far. INVALID_ARGUMENT: fewer than 2 or more than 256. INVALID_STATE: not
// capturing. DRIVER_ERROR, OUT_OF_MEMORY; forks that were made by then are
// closed. The caller owns the builders at `out_forks`. INVALID_STATE, for this
// call and the ones below: a conditional body that this builder captured is
// captured now. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_builder_split(kiln_graph_builder_t* builder, uint32_t count,
                         kiln_graph_builder_t** out_forks);

// Joins builders of one capture: work that the first one that is not forked
// (else the first one) captures from now on waits for all of them. The others
// are closed, even if the driver refuses; they must still be released. Nothing
// is closed for INVALID_ARGUMENT (fewer than 2, or one twice, or several that
// are not forked, or of several captures) and INVALID_STATE (one is closed or
// not capturing). DRIVER_ERROR. `out_root` may be NULL; borrowed. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_builder_join(kiln_graph_builder_t* const* builders, uint32_t count,
                        kiln_graph_builder_t** out_root);

// As kiln_graph_add_condition, for the graph that is being captured; also while
// a body of it is. INVALID_STATE: not capturing. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_builder_add_condition(
    kiln_graph_builder_t* builder, const uint32_t* first,
    kiln_graph_condition_t* out_condition);

// Captures a conditional node after the work captured so far, and returns a
// builder for each of its bodies, which have not begun. INVALID_STATE: not
// capturing. UNSUPPORTED: before CUDA 12.3, and 12.8 for an IF of two bodies
// and SWITCH. Others as kiln_graph_add. The caller owns the builders at
// `out_bodies`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_builder_add_conditional(
    kiln_graph_builder_t* builder, const kiln_graph_conditional_t* conditional,
    kiln_graph_builder_t** out_bodies);

// Captures a graph as one node: it is cloned, and may then change or be
// released. INVALID_STATE: not capturing. Others as kiln_graph_add. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_graph_builder_embed(kiln_graph_builder_t* builder, kiln_graph_t* child);

// Captures a call of a host function, which is retained as kiln_graph_host_t
// describes. INVALID_STATE: not capturing. INVALID_ARGUMENT, DRIVER_ERROR,
// OUT_OF_MEMORY. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_graph_builder_call_host(
    kiln_graph_builder_t* builder, const kiln_graph_host_t* host);

KILN_EXTERN_C_END

#endif  // KILN_CAPTURE_H_
