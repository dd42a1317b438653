// SPDX-License-Identifier: Apache-2.0
//
// dispatch: replays: a sequence as a graph that is ready to run.
//
// Changes are recorded, and applied in the driver by the next run: node by node
// where nodes and edges stay the same, else by building a new graph.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "dispatch/sequence_build.h"
#include "table/cuda_table.h"

struct kiln_replay_t {
  kiln_sequence_t* sequence;
  kiln_dispatcher_t* dispatcher;
  atomic_uint references;
  bool changed;         // a step is bound to other things than the executable
  bool anew;            // a new graph must be built, whatever the layout is
  bool behind_last;     // the executable is another one than ran last
  kiln_stream_t* last;  // that it ran on, retained; NULL: it never did
  kiln_graph_t* graph;
  kiln_graph_exec_t* exec;
  kiln_graph_node_t** nodes;
  bool* changes;  // of each step
  kilni_dispatch_layout_t layout;
  kilni_dispatch_instance_t instance;
};

// ---- The graph ----

// One that is being made. one-thread
typedef struct made_t {
  kilni_dispatch_layout_t layout;
  kiln_graph_node_t** nodes;
  kiln_graph_t* graph;
  kiln_graph_exec_t* exec;
} made_t;

static void end_graph(kiln_allocator_t allocator, made_t* made) {
  kiln_graph_exec_release(made->exec);
  kiln_graph_release(made->graph);
  kilni_base_free_array(allocator, made->nodes, made->layout.node_count,
                        sizeof(kiln_graph_node_t*));
  kilni_dispatch_layout_deinit(&made->layout, allocator);
}

// Everything but the layout, which is there.
static kiln_status_t sequence_replay_make_graph(kiln_replay_t* replay,
                                                kiln_stream_t* upload,
                                                made_t* made) {
  kiln_dispatcher_t* dispatcher = replay->dispatcher;
  kilni_dispatch_build_t build = {
      &replay->instance, dispatcher->allocator, 0,
      kilni_table_cuda_has(dispatcher->device->table,
                           KILNI_CUDA_ROW_cuGraphAddDependencies_v2)};
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(dispatcher->allocator, made->layout.node_count,
                             sizeof(kiln_graph_node_t*), &block));
  made->nodes = block;
  KILNI_RETURN_IF_ERROR(kiln_graph_create(dispatcher->device, &made->graph));
  KILNI_RETURN_IF_ERROR(kilni_dispatch_layout_build(&build, &made->layout,
                                                    made->graph, made->nodes));
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  options.upload = upload;
  return kiln_graph_exec_create(made->graph, &options, &made->exec);
}

static kiln_status_t sequence_replay_lay_out(kiln_replay_t* replay,
                                             kilni_dispatch_layout_t* layout) {
  return kilni_dispatch_layout_init(layout, &replay->instance, 0,
                                    replay->sequence->step_count,
                                    KILNI_SEQUENCE_NODES);
}

static void sequence_replay_take_graph(kiln_replay_t* replay, made_t* made) {
  replay->layout = made->layout;
  replay->nodes = made->nodes;
  replay->graph = made->graph;
  replay->exec = made->exec;
}

// ---- Making and ending ----

static void sequence_replay_destroy(kiln_replay_t* replay) {
  kiln_sequence_t* sequence = replay->sequence;
  kiln_allocator_t allocator = replay->dispatcher->allocator;
  made_t made = {replay->layout, replay->nodes, replay->graph, replay->exec};
  end_graph(allocator, &made);
  kilni_dispatch_instance_deinit(&replay->instance);
  kilni_base_free_array(allocator, replay->changes, sequence->step_count,
                        sizeof(bool));
  kiln_stream_release(replay->last);
  kilni_base_free(allocator, replay, sizeof(*replay));
  kiln_sequence_release(sequence);
}

static kiln_status_t sequence_replay_fill(kiln_replay_t* replay,
                                          uint32_t upload) {
  kiln_sequence_t* sequence = replay->sequence;
  kiln_dispatcher_t* dispatcher = replay->dispatcher;
  kiln_stream_t* stream = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      dispatcher->allocator, sequence->step_count, sizeof(bool), &block));
  replay->changes = block;
  KILNI_RETURN_IF_ERROR(kilni_dispatch_instance_init(&replay->instance,
                                                     sequence, &sequence->own));
  if (upload != KILN_SWITCH_OFF) {
    KILNI_RETURN_IF_ERROR(kilni_dispatch_own_stream(
        dispatcher, dispatcher->stream_count, &stream));
  }
  made_t made;
  memset(&made, 0, sizeof(made));
  kiln_status_t status = sequence_replay_lay_out(replay, &made.layout);
  if (kiln_status_is_ok(status)) {
    status = sequence_replay_make_graph(replay, stream, &made);
  }
  if (!kiln_status_is_ok(status)) {
    end_graph(dispatcher->allocator, &made);
    return status;
  }
  sequence_replay_take_graph(replay, &made);
  return kiln_ok();
}

kiln_status_t kiln_sequence_instantiate(kiln_sequence_t* sequence,
                                        const kiln_replay_options_t* options,
                                        kiln_replay_t** out_replay) {
  KILNI_CHECK_ARGUMENT(out_replay != NULL, "out_replay");
  *out_replay = NULL;
  KILNI_CHECK_ARGUMENT(sequence != NULL, "sequence");
  kiln_replay_options_t given = kiln_replay_options_default();
  if (options != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_base_options_read(
        options, "kiln_replay_options_t", sizeof(given), &given));
  }
  KILNI_CHECK_ARGUMENT(given.upload <= KILN_SWITCH_ON, "options.upload");
  KILNI_RETURN_IF_ERROR(kilni_dispatch_sequence_check_finished(sequence));
  kiln_dispatcher_t* dispatcher = sequence->dispatcher;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  if (kilni_device_is_lost(dispatcher->device)) {
    return kilni_device_lost_status(dispatcher->device);
  }
  KILNI_RETURN_IF_ERROR(kilni_dispatch_instance_check_freed(&sequence->own));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(dispatcher->allocator, sizeof(kiln_replay_t), &block));
  kiln_replay_t* replay = block;
  replay->sequence = sequence;
  replay->dispatcher = dispatcher;
  atomic_init(&replay->references, 1);
  kiln_sequence_retain(sequence);
  kiln_status_t status = sequence_replay_fill(replay, given.upload);
  if (!kiln_status_is_ok(status)) {
    sequence_replay_destroy(replay);
    return KILNI_ANNOTATE(status, "making a replay of \"%s\"", sequence->label);
  }
  *out_replay = replay;
  return kiln_ok();
}

void kiln_replay_retain(kiln_replay_t* replay) {
  if (replay == NULL) return;
  atomic_fetch_add_explicit(&replay->references, 1, memory_order_relaxed);
}

void kiln_replay_release(kiln_replay_t* replay) {
  if (replay == NULL || kilni_device_is_forked(replay->dispatcher->device)) {
    return;
  }
  if (atomic_fetch_sub_explicit(&replay->references, 1, memory_order_acq_rel) ==
      1) {
    sequence_replay_destroy(replay);
  }
}

// ---- Changes ----

static kiln_status_t make_anew(kiln_replay_t* replay, made_t* made) {
  KILNI_RETURN_IF_ERROR(sequence_replay_make_graph(replay, NULL, made));
  made_t before = {replay->layout, replay->nodes, replay->graph, replay->exec};
  sequence_replay_take_graph(replay, made);
  end_graph(replay->dispatcher->allocator, &before);
  memset(made, 0, sizeof(*made));
  replay->behind_last = replay->last != NULL;
  return kiln_ok();
}

static kiln_status_t set_nodes(kiln_replay_t* replay) {
  for (uint32_t i = 0; i < replay->layout.unit_count; i++) {
    const kilni_dispatch_unit_t* unit = &replay->layout.units[i];
    if (unit->step == KILNI_NO_STEP || !replay->changes[unit->step]) continue;
    KILNI_RETURN_IF_ERROR(kilni_dispatch_unit_set(&replay->instance, unit,
                                                  replay->exec, replay->nodes));
  }
  return kiln_ok();
}

// Fixpoints around steps that have changed are notified.
static kiln_status_t tell_fixpoints(kiln_replay_t* replay) {
  const kiln_sequence_t* sequence = replay->sequence;
  kilni_dispatch_instance_t* instance = &replay->instance;
  for (uint32_t i = 0; i < sequence->step_count; i++) {
    if (!replay->changes[i] || !sequence->steps[i].in_fixpoint) continue;
    for (uint32_t around = sequence->steps[i].parent; around != KILNI_NO_STEP;
         around = sequence->steps[around].parent) {
      if (instance->fixpoints[around] == NULL) continue;
      KILNI_RETURN_IF_ERROR(
          kilni_dispatch_fixpoint_changed(instance->fixpoints[around]));
    }
  }
  return kiln_ok();
}

static kiln_status_t tell_driver(kiln_replay_t* replay) {
  made_t made;
  memset(&made, 0, sizeof(made));
  kiln_status_t status = tell_fixpoints(replay);
  if (kiln_status_is_ok(status)) {
    status = sequence_replay_lay_out(replay, &made.layout);
  }
  if (kiln_status_is_ok(status)) {
    if (replay->anew ||
        !kilni_dispatch_layout_is_same(&made.layout, &replay->layout)) {
      status = make_anew(replay, &made);
    } else {
      status = set_nodes(replay);
    }
  }
  end_graph(replay->dispatcher->allocator, &made);
  if (!kiln_status_is_ok(status)) {
    // Some nodes may have been changed, and others not.
    replay->anew = true;
    return KILNI_ANNOTATE(status, "changing a replay of \"%s\"",
                          replay->sequence->label);
  }
  replay->changed = false;
  replay->anew = false;
  memset(replay->changes, 0, replay->sequence->step_count * sizeof(bool));
  return kiln_ok();
}

static kiln_status_t find_dispatch(const kiln_replay_t* replay, uint32_t step) {
  const kiln_sequence_t* sequence = replay->sequence;
  if (step < sequence->step_count && replay->instance.prepared[step] != NULL) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "step %u of \"%s\" is not a dispatch",
                 (unsigned)step, sequence->label),
      "name the step by the number that kiln_sequence_add_dispatch returned");
}

// The step is bound to something else now.
static void sequence_replay_note(kiln_replay_t* replay, uint32_t index) {
  replay->changed = true;
  replay->changes[index] = true;
  // A node inside a conditional node cannot be changed by itself.
  if (replay->sequence->steps[index].in_fixpoint) replay->anew = true;
}

// Whether fixpoints around the step accept it, before anything has changed.
static kiln_status_t sequence_replay_check_change(
    const kiln_replay_t* replay, uint32_t step, uint32_t index,
    const kiln_binding_t* binding) {
  const kiln_sequence_t* sequence = replay->sequence;
  if (binding == NULL) return kiln_ok();
  for (uint32_t i = sequence->steps[step].parent; i != KILNI_NO_STEP;
       i = sequence->steps[i].parent) {
    const kilni_dispatch_fixpoint_t* fixpoint = replay->instance.fixpoints[i];
    if (fixpoint == NULL) continue;
    KILNI_RETURN_IF_ERROR(
        kilni_dispatch_fixpoint_check_change(fixpoint, index, binding));
  }
  return kiln_ok();
}

static kiln_status_t sequence_replay_explain(const kiln_replay_t* replay,
                                             uint32_t step,
                                             kiln_status_t status) {
  char text[KILNI_STEP_TEXT];
  if (kiln_status_is_ok(status)) return kiln_ok();
  return KILNI_ANNOTATE(status, "%s",
                        kilni_dispatch_step_text(replay->sequence, step, text));
}

kiln_status_t kiln_replay_rebind(kiln_replay_t* replay, uint32_t step,
                                 uint32_t index,
                                 const kiln_binding_t* binding) {
  KILNI_CHECK_ARGUMENT(replay != NULL, "replay");
  KILNI_RETURN_IF_ERROR(find_dispatch(replay, step));
  kiln_status_t status =
      sequence_replay_check_change(replay, step, index, binding);
  if (kiln_status_is_ok(status)) {
    status =
        kiln_prepared_rebind(replay->instance.prepared[step], index, binding);
  }
  if (kiln_status_is_ok(status)) sequence_replay_note(replay, step);
  return sequence_replay_explain(replay, step, status);
}

kiln_status_t kiln_replay_set_scalar(kiln_replay_t* replay, uint32_t step,
                                     uint32_t index, uint64_t bits) {
  KILNI_CHECK_ARGUMENT(replay != NULL, "replay");
  KILNI_RETURN_IF_ERROR(find_dispatch(replay, step));
  kiln_status_t status =
      kiln_prepared_set_scalar(replay->instance.prepared[step], index, bits);
  if (kiln_status_is_ok(status)) sequence_replay_note(replay, step);
  return sequence_replay_explain(replay, step, status);
}

// ---- Runs ----

// The run is on another stream than the one before, or what streams there are
// has to be looked up again.
static kiln_status_t take_stream(kiln_replay_t* replay, kiln_stream_t* stream) {
  kiln_stream_t* before = replay->last;
  if (replay->behind_last && before != NULL && before != stream) {
    KILNI_RETURN_IF_ERROR(kiln_stream_wait_stream(stream, before));
  }
  replay->behind_last = false;
  kiln_stream_retain(stream);
  kiln_stream_release(before);
  replay->last = stream;
  return kiln_ok();
}

static kiln_status_t prepare_run(kiln_replay_t* replay, kiln_stream_t* given,
                                 kiln_stream_t** out_stream) {
  kiln_dispatcher_t* dispatcher = replay->dispatcher;
  bool freed =
      atomic_load_explicit(&dispatcher->residents.frees,
                           memory_order_relaxed) !=
      atomic_load_explicit(&replay->instance.frees, memory_order_relaxed);
  if (freed || given == NULL || given != replay->last) {
    KILNI_RETURN_IF_ERROR(kilni_dispatch_stream(dispatcher, given, out_stream));
  }
  if (freed) {
    KILNI_RETURN_IF_ERROR(
        kilni_dispatch_instance_check_freed(&replay->instance));
  }
  if (replay->changed) KILNI_RETURN_IF_ERROR(tell_driver(replay));
  if (*out_stream == replay->last && !replay->behind_last) return kiln_ok();
  return take_stream(replay, *out_stream);
}

static void sequence_replay_look(void* object,
                                 kilni_dispatch_pending_end_t* out_end) {
  kiln_replay_t* replay = object;
  kilni_dispatch_instance_look(&replay->instance, out_end);
}

static void sequence_replay_let_go(void* object) {
  kiln_replay_release(object);
}

static kiln_status_t sequence_replay_make_pending(
    kiln_replay_t* replay, kiln_pending_t** out_pending) {
  KILNI_RETURN_IF_ERROR(kilni_dispatch_pending_create(
      replay->dispatcher, replay->sequence->label, false, out_pending));
  kiln_replay_retain(replay);
  (*out_pending)->of.object = replay;
  (*out_pending)->of.look = sequence_replay_look;
  (*out_pending)->of.release = sequence_replay_let_go;
  return kiln_ok();
}

kiln_status_t kiln_replay_run(kiln_replay_t* replay, kiln_stream_t* stream,
                              kiln_pending_t** out_pending) {
  if (out_pending != NULL) *out_pending = NULL;
  KILNI_CHECK_ARGUMENT(replay != NULL, "replay");
  kiln_pending_t* pending = NULL;
  KILNI_RETURN_IF_ERROR(prepare_run(replay, stream, &stream));
  if (out_pending != NULL) {
    KILNI_RETURN_IF_ERROR(sequence_replay_make_pending(replay, &pending));
  }
  kiln_status_t status = kiln_graph_exec_launch(replay->exec, stream);
  if (pending != NULL && kiln_status_is_ok(status)) {
    status = kilni_dispatch_pending_finish(pending, stream);
    if (!kiln_status_is_ok(status)) {
      status = kilni_base_status_join(status, kiln_stream_synchronize(stream));
    }
  }
  if (!kiln_status_is_ok(status)) {
    kiln_pending_release(pending);
    return KILNI_ANNOTATE(status, "running a replay of \"%s\"",
                          replay->sequence->label);
  }
  kilni_dispatch_count(replay->dispatcher->counters, KILNI_COUNTER_REPLAY_RUNS,
                       1);
  if (out_pending != NULL) *out_pending = pending;
  return kiln_ok();
}

// ---- Questions ----

kiln_status_t kiln_replay_check(kiln_replay_t* replay, kiln_trap_t* out_trap,
                                uint32_t* out_step) {
  if (out_trap != NULL) memset(out_trap, 0, sizeof(*out_trap));
  if (out_step != NULL) *out_step = 0;
  KILNI_CHECK_ARGUMENT(replay != NULL, "replay");
  return kilni_dispatch_instance_check(&replay->instance, out_trap, out_step);
}

kiln_status_t kiln_replay_rounds(kiln_replay_t* replay, uint32_t step,
                                 uint32_t* out_rounds) {
  KILNI_CHECK_ARGUMENT(out_rounds != NULL, "out_rounds");
  *out_rounds = 0;
  KILNI_CHECK_ARGUMENT(replay != NULL, "replay");
  return kilni_dispatch_instance_rounds(&replay->instance, step, out_rounds);
}

kiln_graph_t* kiln_replay_graph(const kiln_replay_t* replay) {
  return replay->graph;
}
