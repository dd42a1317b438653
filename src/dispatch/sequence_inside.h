// SPDX-License-Identifier: Apache-2.0
//
// dispatch: what the files about sequences share.
//
// A sequence is an array of steps that does not change once it is finished; the
// steps of a body follow their loop or fixpoint. What runs is an instance: the
// prepared dispatches of the steps, with bindings of their own. The sequence
// has one for runs on streams, and each replay has one.
//
// A fixpoint is given its step and does the rest itself: the functions that put
// the body on a stream (kilni_dispatch_steps_put) and into a graph
// (kilni_dispatch_steps_build) are declared here, and called by
// sequence_fixpoint.c alone.
#ifndef KILN_SRC_DISPATCH_SEQUENCE_INSIDE_H_
#define KILN_SRC_DISPATCH_SEQUENCE_INSIDE_H_

#include "dispatch/prepared_inside.h"
#include "kiln/graph.h"
#include "kiln/sequence.h"

enum {
  KILNI_SEQUENCE_STEPS = 65536,
  KILNI_SEQUENCE_NODES = 262144,
  KILNI_SEQUENCE_DEPTH = 16,
};

// No step.
#define KILNI_NO_STEP UINT32_MAX

// Bytes of device memory that a step names. thread-compatible
typedef struct kilni_dispatch_span_t {
  kiln_buffer_t* buffer;     // retained; NULL: no bytes
  kiln_resident_t resident;  // 0: none
  uint64_t offset;           // in the buffer
  uint64_t address;
  uint64_t bytes;
} kilni_dispatch_span_t;

// A dispatch as it was recorded; gone when the sequence is finished.
// one-thread
typedef struct kilni_dispatch_recorded_t {
  kiln_pipeline_t* pipeline;  // retained
  kiln_dispatch_options_t options;
  char* label;
  uint32_t count;
  kiln_binding_t bindings[];
} kilni_dispatch_recorded_t;

// A step. Unchanged once the sequence is finished. thread-compatible
typedef struct kilni_dispatch_step_t {
  uint32_t kind;    // KILN_STEP_*
  uint32_t body;    // steps after this one that are inside it
  uint32_t parent;  // the loop or fixpoint around it, or KILNI_NO_STEP
  uint32_t count;   // rounds of a loop; the limit of a fixpoint
  bool in_fixpoint;

  char* label;  // NULL: a dispatch's own, or what it does
  kilni_dispatch_recorded_t* recorded;  // of a dispatch, until it is finished
  kiln_prepared_t* given;               // the same, of one that came prepared
  kiln_binding_t places[2];             // to, from; of a fixpoint its flag
  kilni_dispatch_span_t to;             // of a fixpoint its flag
  kilni_dispatch_span_t from;
  const void* in;         // of an upload
  void* out;              // of a download
  kiln_buffer_t* pinned;  // of an upload: what was read when it was recorded
  uint32_t value;         // of a fill
  uint32_t value_bytes;
  uint32_t strategy;  // of a fixpoint: what was asked for
} kilni_dispatch_step_t;

// How a fixpoint runs; what it has of its own. thread-compatible
typedef struct kilni_dispatch_fixpoint_t kilni_dispatch_fixpoint_t;

// What runs. thread-compatible
typedef struct kilni_dispatch_instance_t {
  kiln_sequence_t* sequence;              // borrowed
  kiln_prepared_t** prepared;             // of each step; NULL: no dispatch
  kilni_dispatch_fixpoint_t** fixpoints;  // of each step; NULL: no fixpoint
  bool is_replay;
  atomic_uint frees;  // of the table, when all was seen to be there
} kilni_dispatch_instance_t;

struct kiln_sequence_t {
  kiln_dispatcher_t* dispatcher;
  atomic_uint references;
  atomic_bool finished;
  bool failed;
  bool has_lock;
  bool has_transfers;  // a step copies from the host or to it
  bool has_fixpoints;
  bool refuses_capture;  // one of them polls, or is a graph of its own
  bool has_grids;        // a dispatch has a grid barrier
  uint32_t order;        // KILN_SEQUENCE_*
  uint32_t step_count;   //
  uint32_t open;         // the body that is recorded, or KILNI_NO_STEP
  uint32_t depth;
  kilni_dispatch_step_t* steps;
  size_t step_capacity;
  char* label;
  kilni_base_mutex_t lock;  // of runs that share what the blocks count in
  kilni_dispatch_instance_t own;
};

// ---- Bodies ----

// Puts the steps from `first` up to `behind` on `stream`, one after the other.
// Of a fixpoint's body: its step + 1, and step + 1 + body.
kiln_status_t kilni_dispatch_steps_put(kilni_dispatch_instance_t* instance,
                                       uint32_t first, uint32_t behind,
                                       kiln_stream_t* stream);

// A graph that is being made of an instance. one-thread
typedef struct kilni_dispatch_build_t kilni_dispatch_build_t;

// Adds nodes for the same steps to `graph`, which has none yet: the body of a
// conditional node. Nodes at the end wait for nothing more: a caller that adds
// others after all of them gives `out_ends`, and a capacity of at least 1; if
// there are more ends than that, an empty node joins them. `out_count` is 0 if
// nothing was added. Both may be NULL.
kiln_status_t kilni_dispatch_steps_build(kilni_dispatch_build_t* build,
                                         kiln_graph_t* graph, uint32_t first,
                                         uint32_t behind,
                                         kiln_graph_node_t** out_ends,
                                         uint32_t capacity,
                                         uint32_t* out_count);

// ---- Fixpoints (sequence_fixpoint.c) ----

// What a fixpoint came to in the run that ended last. thread-compatible
typedef struct kilni_dispatch_fixpoint_end_t {
  uint32_t rounds;
  bool reached_limit;
} kilni_dispatch_fixpoint_end_t;

// Checks the fixpoint of `step`, chooses how it runs, and makes what it needs;
// the prepared dispatches of its body are in `instance`, and fixpoints inside
// of it have been made. `instance->is_replay`: POLL is UNSUPPORTED.
kiln_status_t kilni_dispatch_fixpoint_create(
    kilni_dispatch_instance_t* instance, uint32_t step,
    kilni_dispatch_fixpoint_t** out_fixpoint);
// Runs may be in progress. NULL is accepted.
void kilni_dispatch_fixpoint_destroy(kilni_dispatch_fixpoint_t* fixpoint);
// KILN_FIXPOINT_*, never AUTO.
uint32_t kilni_dispatch_fixpoint_strategy(
    const kilni_dispatch_fixpoint_t* fixpoint);
// Why no better one; NULL: it is the best, or was asked for. Borrowed.
const char* kilni_dispatch_fixpoint_why(
    const kilni_dispatch_fixpoint_t* fixpoint);
// Puts all rounds on `stream`.
kiln_status_t kilni_dispatch_fixpoint_put(kilni_dispatch_fixpoint_t* fixpoint,
                                          kiln_stream_t* stream);
// Adds nodes to `graph` that do all rounds, after the `after_count` nodes at
// `after`; `*out_last` is the one after all of them.
kiln_status_t kilni_dispatch_fixpoint_build(kilni_dispatch_fixpoint_t* fixpoint,
                                            kilni_dispatch_build_t* build,
                                            kiln_graph_t* graph,
                                            kiln_graph_node_t* const* after,
                                            uint32_t after_count,
                                            kiln_graph_node_t** out_last);
// Whether the dispatch of its body could be given that binding, with all others
// as they are: the settings of the dispatch itself are not checked.
kiln_status_t kilni_dispatch_fixpoint_check_change(
    const kilni_dispatch_fixpoint_t* fixpoint, uint32_t index,
    const kiln_binding_t* binding);
// A dispatch of its body was given other bindings: the graph is then made
// anew, by kilni_dispatch_fixpoint_build.
kiln_status_t kilni_dispatch_fixpoint_changed(
    kilni_dispatch_fixpoint_t* fixpoint);
// For when the run has ended.
void kilni_dispatch_fixpoint_end(kilni_dispatch_fixpoint_t* fixpoint,
                                 kilni_dispatch_fixpoint_end_t* out);

// ---- What files share ----

// "step 3 (dispatch "saxpy")", for messages.
#define KILNI_STEP_TEXT 128
const char* kilni_dispatch_step_text(const kiln_sequence_t* sequence,
                                     uint32_t step, char text[KILNI_STEP_TEXT]);
// Of a dispatch its prepared one's; else what it does.
const char* kilni_dispatch_step_label(const kiln_sequence_t* sequence,
                                      uint32_t step);

void kilni_dispatch_recorded_free(kiln_allocator_t allocator,
                                  kilni_dispatch_recorded_t* recorded);

kiln_status_t kilni_dispatch_sequence_check_finished(
    const kiln_sequence_t* sequence);

// Makes the prepared dispatches and fixpoints of an instance, from those of
// `from`, or, NULL, from what was recorded. Deinit also after a failure.
kiln_status_t kilni_dispatch_instance_init(
    kilni_dispatch_instance_t* instance, kiln_sequence_t* sequence,
    const kilni_dispatch_instance_t* from);
void kilni_dispatch_instance_deinit(kilni_dispatch_instance_t* instance);
// INVALID_STATE if a resident buffer of a step was freed; cheap if none was.
kiln_status_t kilni_dispatch_instance_check_freed(
    kilni_dispatch_instance_t* instance);
// Reports the first trap of a step since the last call, and forgets all of
// them. Both may be NULL.
kiln_status_t kilni_dispatch_instance_check(kilni_dispatch_instance_t* instance,
                                            kiln_trap_t* out_trap,
                                            uint32_t* out_step);
// The same without forgetting, and without a text.
bool kilni_dispatch_instance_find_trap(kilni_dispatch_instance_t* instance,
                                       kiln_trap_t* out_trap,
                                       uint32_t* out_step);
// Whether a fixpoint has reached its limit, after how many rounds.
bool kilni_dispatch_instance_find_limit(kilni_dispatch_instance_t* instance,
                                        uint32_t* out_rounds,
                                        uint32_t* out_step);
// Both, for a pending.
void kilni_dispatch_instance_look(kilni_dispatch_instance_t* instance,
                                  kilni_dispatch_pending_end_t* out_end);
kiln_status_t kilni_dispatch_instance_rounds(
    kilni_dispatch_instance_t* instance, uint32_t step, uint32_t* out_rounds);

#endif  // KILN_SRC_DISPATCH_SEQUENCE_INSIDE_H_
