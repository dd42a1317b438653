// SPDX-License-Identifier: Apache-2.0
//
// dispatch: a fixpoint from inside, for the files of its strategies.
#ifndef KILN_SRC_DISPATCH_SEQUENCE_FIXPOINT_H_
#define KILN_SRC_DISPATCH_SEQUENCE_FIXPOINT_H_

#include "dispatch/sequence_inside.h"

enum {
  KILNI_FIXPOINT_WHY = 256,
  // Of the device memory that is a fixpoint's own: where blocks meet, or the
  // count of rounds; then the addresses of trap records.
  KILNI_FIXPOINT_STATE = 64,
  // In a line of pinned memory, after the trap record.
  KILNI_FIXPOINT_TOLD = 48,
};

// How the rounds of a fixpoint are done. thread-compatible
//
// What one launch needs is `launch`; what a WHILE node needs is `begin` before
// it and `round` at the end of its body; what the host needs is `round`.
struct kilni_dispatch_fixpoint_t {
  kilni_dispatch_instance_t* instance;
  kiln_dispatcher_t* dispatcher;
  uint32_t step;
  uint32_t strategy;
  uint32_t limit;
  uint32_t flag;              // COOPERATIVE: which parameter it is
  kiln_program_code_t* code;  // COOPERATIVE
  kiln_launch_t* launch;
  kiln_launch_t* begin;
  kiln_launch_t* round;
  kiln_graph_exec_t* exec;  // WHILE: for runs on streams; made by the first one
  kiln_stream_t* last;      // that a run was put on; retained
  kiln_buffer_t* state;     // device memory
  uint32_t trap_count;      // WHILE: records that the rounds look at
  kilni_dispatch_trap_record_t* record;  // pinned memory
  char why[KILNI_FIXPOINT_WHY];  // no better strategy; "": there is none
};

// Where the device reports how the rounds ended, and its report.
static inline uint64_t kilni_dispatch_fixpoint_told(
    const kilni_dispatch_fixpoint_t* fixpoint) {
  return fixpoint->record->address + KILNI_FIXPOINT_TOLD;
}
kiln_program_rounds_t* kilni_dispatch_fixpoint_host(
    const kilni_dispatch_fixpoint_t* fixpoint);

static inline const kilni_dispatch_step_t* kilni_dispatch_fixpoint_step(
    const kilni_dispatch_fixpoint_t* fixpoint) {
  return &fixpoint->instance->sequence->steps[fixpoint->step];
}

// The same fixpoint of the sequence itself, whose code a replay uses; NULL if
// there is none or it runs by another method.
const kilni_dispatch_fixpoint_t* kilni_dispatch_fixpoint_first(
    const kilni_dispatch_fixpoint_t* fixpoint);

// `KILNI_FIXPOINT_STATE` zeroes of device memory, followed by `more` bytes.
kiln_status_t kilni_dispatch_fixpoint_state(kilni_dispatch_fixpoint_t* fixpoint,
                                            const void* more, uint64_t bytes);
// Runs on streams share that: one after the other.
kiln_status_t kilni_dispatch_fixpoint_order(kilni_dispatch_fixpoint_t* fixpoint,
                                            kiln_stream_t* stream);

// ---- The strategies ----
//
// Each makes what it needs, or reports why it cannot; after UNSUPPORTED and
// LIMIT_EXCEEDED the next one is tried. What a failed one has made is released
// with the fixpoint.

kiln_status_t kilni_dispatch_fixpoint_make_cooperative(
    kilni_dispatch_fixpoint_t* fixpoint);
kiln_status_t kilni_dispatch_fixpoint_check_cooperative(
    const kilni_dispatch_fixpoint_t* fixpoint, uint32_t index,
    const kiln_binding_t* binding);
// Gives the launch what its step is bound to.
kiln_status_t kilni_dispatch_fixpoint_bind_cooperative(
    kilni_dispatch_fixpoint_t* fixpoint);

kiln_status_t kilni_dispatch_fixpoint_make_while(
    kilni_dispatch_fixpoint_t* fixpoint);
kiln_status_t kilni_dispatch_fixpoint_build_while(
    kilni_dispatch_fixpoint_t* fixpoint, kilni_dispatch_build_t* build,
    kiln_graph_t* graph, kiln_graph_node_t* const* after, uint32_t after_count,
    kiln_graph_node_t** out_last);
kiln_status_t kilni_dispatch_fixpoint_put_while(
    kilni_dispatch_fixpoint_t* fixpoint, kiln_stream_t* stream);

kiln_status_t kilni_dispatch_fixpoint_make_poll(
    kilni_dispatch_fixpoint_t* fixpoint);
kiln_status_t kilni_dispatch_fixpoint_put_poll(
    kilni_dispatch_fixpoint_t* fixpoint, kiln_stream_t* stream);

// ---- Their code (sequence_fixpoint_code.c) ----

enum {
  KILNI_FIXPOINT_BEGIN = 0,  // handle, flag, state
  KILNI_FIXPOINT_ROUND = 1,  // handle, flag, state, told, traps, trap count,
                             // limit
  KILNI_FIXPOINT_TELL = 2,   // flag, told, round, whether another may follow
};

// A launch of one thread.
kiln_status_t kilni_dispatch_fixpoint_kernel(kiln_dispatcher_t* dispatcher,
                                             uint32_t which,
                                             kiln_launch_t** out_launch);

#endif  // KILN_SRC_DISPATCH_SEQUENCE_FIXPOINT_H_
