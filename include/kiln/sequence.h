// SPDX-License-Identifier: Apache-2.0
//
// dispatch: sequences: a list of work that is checked once and run often.
//
//   kiln_sequence_create(dispatcher, NULL, &sequence);
//   kiln_sequence_add_fill(sequence, &sums, 0, 4, NULL);
//   kiln_sequence_begin_loop(sequence, 100, NULL);
//   kiln_sequence_add_dispatch(sequence, step, bindings, 3, NULL, &number);
//   kiln_sequence_end_body(sequence);
//   kiln_sequence_finish(sequence);        // all that can be wrong, once
//   kiln_sequence_run(sequence, NULL, NULL);             // on a stream, or
//   kiln_sequence_instantiate(sequence, NULL, &replay);  // as a CUDA graph
//   kiln_replay_set_scalar(replay, number, 0, 7);
//   kiln_replay_run(replay, NULL, NULL);   // one call of the driver
//
// Steps are numbered from 0 in the order in which they were added; a loop and a
// fixpoint are steps, followed by the steps of their bodies.
//
// Order. On a stream the steps run one after another. A replay orders two steps
// if one writes memory that the other reads or writes, by the addresses and
// roles of their bindings, and lets others run concurrently. Accesses of a
// kernel outside its bindings are unknown: KILN_SEQUENCE_IN_LINE orders all of
// them.
//
// Places, which copies, fills and transfers take, are bindings: RESIDENT,
// BUFFER or POINTER, of which `bytes` 0 is the rest from `offset` on.
#ifndef KILN_SEQUENCE_H_
#define KILN_SEQUENCE_H_

#include "kiln/api.h"
#include "kiln/dispatch.h"
#include "kiln/graph.h"
#include "kiln/pipeline.h"
#include "kiln/resident.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// A recorded list of work. thread-safe once it is finished
//
// Reference-counted. Thread-compatible while it is recorded. Retains its
// dispatcher, pipelines and buffers.
typedef struct kiln_sequence_t kiln_sequence_t;

// How the steps of a replay are ordered.
enum {
  KILN_SEQUENCE_BY_ACCESS = 0,  // by what they read and write
  KILN_SEQUENCE_IN_LINE = 1,    // one after another
};

// How a sequence is made. thread-compatible
//
// Zero in any field is its default.
typedef struct kiln_sequence_options_t {
  uint32_t struct_size;  // sizeof(kiln_sequence_options_t)
  uint32_t order;        // KILN_SEQUENCE_*

  // Its name in messages and telemetry. Copied. Default: "sequence".
  const char* label;
} kiln_sequence_options_t;

// All defaults. Since 0.1.
static inline kiln_sequence_options_t kiln_sequence_options_default(void) {
  kiln_sequence_options_t options = {(uint32_t)sizeof(options), 0, NULL};
  return options;
}

// Makes a sequence without steps. `options` may be NULL. INVALID_ARGUMENT,
// INCOMPATIBLE, DEVICE_LOST, OUT_OF_MEMORY. The caller owns `*out_sequence`.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_create(
    kiln_dispatcher_t* dispatcher, const kiln_sequence_options_t* options,
    kiln_sequence_t** out_sequence);

// Adds or releases a reference. NULL is accepted. Replays live on; so does what
// running runs need. Since 0.1.
KILN_API void kiln_sequence_retain(kiln_sequence_t* sequence);
KILN_API void kiln_sequence_release(kiln_sequence_t* sequence);

// Borrowed. Since 0.1.
KILN_API kiln_dispatcher_t* kiln_sequence_dispatcher(
    const kiln_sequence_t* sequence);

// ---- Recording ----
//
// Each of these adds one step and, if `out_step` is not NULL, returns its
// number. Arguments are copied; kiln_sequence_finish checks them.
//
//   INVALID_STATE   the sequence is finished
//   LIMIT_EXCEEDED  more than 65,536 steps
//   INVALID_ARGUMENT, OUT_OF_MEMORY

// A dispatch. Bindings are those of a prepared one: no host memory; their
// objects must live until kiln_sequence_finish, which retains buffers and reads
// STATIC bytes. So are options: `iterations` is a loop. `overlap` on is the
// caller's guarantee as for a dispatch. In a replay it makes the edge from the
// previous step programmatic, if that is the only step that this one waits for,
// a dispatch, and in no body of a fixpoint; other edges are plain, and so are
// all of a driver before CUDA 12.3. In the body of a fixpoint it is
// UNSUPPORTED, by kiln_sequence_finish. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_add_dispatch(
    kiln_sequence_t* sequence, kiln_pipeline_t* pipeline,
    const kiln_binding_t* bindings, uint32_t binding_count,
    const kiln_dispatch_options_t* options, uint32_t* out_step);

// A dispatch with what `prepared` is bound to now. Later changes of that are
// not seen. Also what kiln_pipeline_prepare returns. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_add_prepared(
    kiln_sequence_t* sequence, kiln_prepared_t* prepared, uint32_t* out_step);

// Device to device. `bytes` of both are equal, or 0 of one: then it is the
// other's. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_sequence_add_copy(kiln_sequence_t* sequence, const kiln_binding_t* to,
                       const kiln_binding_t* from, uint32_t* out_step);

// Repeats the low `value_bytes` (1, 2 or 4) bytes of `value`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_add_fill(
    kiln_sequence_t* sequence, const kiln_binding_t* to, uint32_t value,
    uint32_t value_bytes, uint32_t* out_step);

// When the bytes of an upload are read.
enum {
  KILN_SEQUENCE_READ_BY_RUN = 0,  // by each run: the caller keeps them
  KILN_SEQUENCE_READ_NOW = 1,     // now, into pinned memory of the sequence
};

// Host to device. Memory that each run reads must stay until the last one has
// ended: pinned memory is best, and pageable memory is read by a run on a
// stream before kiln_sequence_run returns. `when` is KILN_SEQUENCE_READ_*; also
// DEVICE_OUT_OF_MEMORY (pinned memory). `bytes` of `to` must be given.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_sequence_add_upload(kiln_sequence_t* sequence, const kiln_binding_t* to,
                         const void* data, uint32_t when, uint32_t* out_step);

// Device to host: valid when the run has ended. `bytes` of `from` must be
// given. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_add_download(
    kiln_sequence_t* sequence, const kiln_binding_t* from, void* out_data,
    uint32_t* out_step);

// The steps up to kiln_sequence_end_body are run `count` times; 0 is
// INVALID_ARGUMENT. A replay has its nodes as often. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_begin_loop(
    kiln_sequence_t* sequence, uint32_t count, uint32_t* out_step);

// How a fixpoint runs. Results and the count of rounds do not depend on it, and
// no unnecessary round is run.
enum {
  // The best that works, in this order; kiln_sequence_step_t reports which one,
  // and why not a better one. An explicit one is UNSUPPORTED if unavailable,
  // and the message names what is missing.
  KILN_FIXPOINT_AUTO = 0,
  // One cooperative launch, whose blocks do all rounds and meet between them.
  // The body is one dispatch of a program, with the flag bound to a parameter
  // of its own: the program writes it (a store, atomic_store, _or, _max, _add
  // or _exchange without a use of the result) and does not read it. It has no
  // grid barrier, and no other output that has to be cleared before a round;
  // its pipeline was made without `overlapping`. Any work size will do: blocks
  // go through the work again and again.
  KILN_FIXPOINT_COOPERATIVE = 1,
  // A WHILE node of a graph, whatever the body is, but for a fixpoint inside
  // that polls. A driver of CUDA 12.3 or later.
  KILN_FIXPOINT_WHILE = 2,
  // The host starts each round when the previous one has reported, by a word in
  // pinned memory, that it changed something: kiln_sequence_run returns after
  // the report of the last round. Not in a replay.
  KILN_FIXPOINT_POLL = 3,
};

// Rounds until nothing changes. thread-compatible
//
// Before each round the flag is 0; the body writes something else if another
// one is needed. After the last one it is 0 if nothing changed in that round,
// else not 0. A round in which a thread trapped is the last one. All but `flag`
// and `limit` have defaults.
typedef struct kiln_fixpoint_options_t {
  uint32_t struct_size;  // sizeof(kiln_fixpoint_options_t)
  uint32_t strategy;     // KILN_FIXPOINT_*
  kiln_binding_t flag;   // a place of 4 bytes, at a multiple of 4
  uint32_t limit;        // rounds at most; above 0
  uint32_t reserved;     // 0
} kiln_fixpoint_options_t;

// No flag. Since 0.1.
static inline kiln_fixpoint_options_t kiln_fixpoint_options_default(void) {
  kiln_fixpoint_options_t options;
  memset(&options, 0, sizeof(options));
  options.struct_size = (uint32_t)sizeof(options);
  return options;
}

// The steps up to kiln_sequence_end_body are run until a round leaves the flag
// 0, or `limit` times: that is NOT_CONVERGED, reported by the pending, and all
// memory is as the last round left it. Bodies may not contain uploads or
// downloads. INVALID_ARGUMENT: no limit, no place of 4 bytes for the flag.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_begin_fixpoint(
    kiln_sequence_t* sequence, const kiln_fixpoint_options_t* options,
    uint32_t* out_step);

// The name of a step in messages, pictures and traces, in place of a dispatch's
// label or of what the step does. Copied. INVALID_ARGUMENT: no step of that
// number; INVALID_STATE, OUT_OF_MEMORY. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_set_label(
    kiln_sequence_t* sequence, uint32_t step, const char* label);

// Ends the body of the loop or fixpoint that was begun last. Also
// INVALID_STATE: there is none; and INVALID_ARGUMENT: it is empty. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_sequence_end_body(kiln_sequence_t* sequence);

// Checks everything, and makes what runs need. The message names step and
// parameter. On failure the sequence can only be released.
//
//   INVALID_STATE  a body that was not ended; finished before
//   UNSUPPORTED    host memory bound to a dispatch; a fixpoint's strategy,
//                  where it cannot be had
//   LIMIT_EXCEEDED bodies inside of each other, more than 16
//
// and the statuses of kiln_pipeline_prepare. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_sequence_finish(kiln_sequence_t* sequence);

// ---- Queries ----

// What a step does.
enum {
  KILN_STEP_DISPATCH = 0,
  KILN_STEP_COPY = 1,
  KILN_STEP_FILL = 2,
  KILN_STEP_UPLOAD = 3,
  KILN_STEP_DOWNLOAD = 4,
  KILN_STEP_LOOP = 5,
  KILN_STEP_FIXPOINT = 6,
};

// A step. thread-compatible
//
// Only the library fills one; fields may be appended in later versions.
typedef struct kiln_sequence_step_t {
  const char* label;          // of a dispatch; else what it does. Borrowed
  kiln_pipeline_t* pipeline;  // of a dispatch. Borrowed
  uint64_t bytes;             // of a copy, a fill, a transfer
  uint32_t kind;              // KILN_STEP_*
  uint32_t body;              // steps of its body, those inside of them too
  uint32_t count;             // rounds of a loop; the limit of a fixpoint
  uint32_t strategy;          // of a fixpoint, chosen: KILN_FIXPOINT_*
  const char* why;  // of a fixpoint by AUTO: why no better strategy; else NULL.
                    // Borrowed
} kiln_sequence_step_t;

// How many steps there are, and one of them; false, with all zero, out of
// range. Since 0.1.
KILN_API uint32_t kiln_sequence_step_count(const kiln_sequence_t* sequence);
KILN_API bool kiln_sequence_step(const kiln_sequence_t* sequence,
                                 uint32_t index,
                                 kiln_sequence_step_t* out_step);

// ---- Running on a stream ----

// Puts all steps on `stream` (NULL: the dispatcher's first), one after another,
// and returns; a fixpoint that polls is waited for. `out_pending` may be NULL;
// the pending reports a trap, with the label of the step, and a fixpoint that
// reached its limit (NOT_CONVERGED). Threads may run it at once, on streams
// between which they order what its steps share.
//
//   INVALID_STATE     not finished; a resident buffer was freed; the stream is
//                     captured, and there are transfers, a fixpoint by WHILE or
//                     POLL, or a pending
//   INVALID_ARGUMENT  a stream of another device
//   LAUNCH_FAILED, DEVICE_LOST, DRIVER_ERROR, DEVICE_OUT_OF_MEMORY,
//   OUT_OF_MEMORY
//
// If a call fails after putting some steps on the stream, it waits for them.
// The caller owns `*out_pending`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_sequence_run(kiln_sequence_t* sequence, kiln_stream_t* stream,
                  kiln_pending_t** out_pending);

// Reports whether a thread has trapped in a run since the last query:
// LAUNCH_FAILED with the step's label, tag, address, block and thread. Call it
// when the runs are done. `out_trap` and `out_step` may be NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_check(
    kiln_sequence_t* sequence, kiln_trap_t* out_trap, uint32_t* out_step);

// Rounds that a fixpoint has done in the run that ended last: for when it is
// done. INVALID_ARGUMENT: the step is not a fixpoint. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_rounds(
    kiln_sequence_t* sequence, uint32_t step, uint32_t* out_rounds);

// ---- Replays ----

// A sequence as a CUDA graph that is ready to run. thread-compatible
//
// Reference-counted. Retains its sequence. Its runs are ordered one after
// another, also on different streams, as CUDA orders launches of one executable
// graph: make one for each thread, or each stream, that is not to wait.
typedef struct kiln_replay_t kiln_replay_t;

// How a replay is made. thread-compatible
typedef struct kiln_replay_options_t {
  uint32_t struct_size;  // sizeof(kiln_replay_options_t)

  // KILN_SWITCH_*: take it to the device now, so that the first run does not.
  // Default: on.
  uint32_t upload;
} kiln_replay_options_t;

// All defaults. Since 0.1.
static inline kiln_replay_options_t kiln_replay_options_default(void) {
  kiln_replay_options_t options = {(uint32_t)sizeof(options), 0};
  return options;
}

// Makes a graph of a finished sequence, with bindings of its own. `options` may
// be NULL.
//
//   INVALID_STATE   not finished; a resident buffer was freed
//   LIMIT_EXCEEDED  more than 262,144 nodes: loops count as often as they run
//   UNSUPPORTED     a fixpoint that polls; what the driver has no node for
//   DEVICE_LOST, DRIVER_ERROR, DEVICE_OUT_OF_MEMORY, OUT_OF_MEMORY
//
// The caller owns `*out_replay`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_sequence_instantiate(
    kiln_sequence_t* sequence, const kiln_replay_options_t* options,
    kiln_replay_t** out_replay);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_replay_retain(kiln_replay_t* replay);
KILN_API void kiln_replay_release(kiln_replay_t* replay);

// Puts all of it on `stream` (NULL: the dispatcher's first) and returns.
// Without a pending it makes one call of the driver, allocates nothing, takes
// no lock, and does the same work however long the sequence is; unless
// something was changed, or a resident buffer freed, since the run before.
// `out_pending` as of kiln_sequence_run; of several concurrent runs each
// reports the events of all of them. Statuses as there; host memory of
// transfers may be touched when the run has ended. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_replay_run(
    kiln_replay_t* replay, kiln_stream_t* stream, kiln_pending_t** out_pending);

// Binds another buffer to a parameter of a dispatch, or sets another value, for
// later runs; running ones keep their bindings. Checked as by
// kiln_prepared_rebind; on failure nothing has changed. The next run updates
// the driver, once for all changes: each changed step, or, if the order or the
// number of operations changes, the whole graph, which costs as much as making
// it.
//
//   INVALID_ARGUMENT  no dispatch of that number
//
// and the statuses of kiln_prepared_rebind. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_replay_rebind(kiln_replay_t* replay, uint32_t step, uint32_t index,
                   const kiln_binding_t* binding);
KILN_API KILN_MUST_USE kiln_status_t kiln_replay_set_scalar(
    kiln_replay_t* replay, uint32_t step, uint32_t index, uint64_t bits);

// As kiln_sequence_check and kiln_sequence_rounds, of the replay's runs.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_replay_check(kiln_replay_t* replay,
                                                       kiln_trap_t* out_trap,
                                                       uint32_t* out_step);
KILN_API KILN_MUST_USE kiln_status_t kiln_replay_rounds(kiln_replay_t* replay,
                                                        uint32_t step,
                                                        uint32_t* out_rounds);

// What it was made of, to be looked at, drawn or traced (kiln/picture.h), until
// the replay changes. Nodes have the labels of their steps. Borrowed.
// Since 0.1.
KILN_API kiln_graph_t* kiln_replay_graph(const kiln_replay_t* replay);

KILN_EXTERN_C_END

#endif  // KILN_SEQUENCE_H_
