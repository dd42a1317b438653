// SPDX-License-Identifier: Apache-2.0
//
// dispatch: fixpoints: rounds until one changes nothing. Which strategy does
// them, and what all of them have.
//
// However they are done: the flag is zero when a round begins, the rounds are
// counted, the body is run neither less nor more often than it has to be, and a
// round in which a thread trapped is the last one.
#include "base/alloc.h"
#include "base/status_make.h"
#include "dispatch/sequence_fixpoint.h"

#include <stdio.h>
#include <string.h>

#include "dispatch/sequence_build.h"

kiln_program_rounds_t* kilni_dispatch_fixpoint_host(
    const kilni_dispatch_fixpoint_t* fixpoint) {
  return (void*)((char*)(void*)fixpoint->record->host + KILNI_FIXPOINT_TOLD);
}

const kilni_dispatch_fixpoint_t* kilni_dispatch_fixpoint_first(
    const kilni_dispatch_fixpoint_t* fixpoint) {
  const kilni_dispatch_instance_t* own = &fixpoint->instance->sequence->own;
  const kilni_dispatch_fixpoint_t* first =
      own == fixpoint->instance ? NULL : own->fixpoints[fixpoint->step];
  if (first == NULL || first->strategy != fixpoint->strategy) return NULL;
  return first;
}

kiln_status_t kilni_dispatch_fixpoint_state(kilni_dispatch_fixpoint_t* fixpoint,
                                            const void* more, uint64_t bytes) {
  kiln_dispatcher_t* dispatcher = fixpoint->dispatcher;
  kiln_stream_t* stream = NULL;
  KILNI_RETURN_IF_ERROR(kilni_dispatch_memory_allocate(
      dispatcher, KILNI_FIXPOINT_STATE + bytes, &fixpoint->state));
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_own_stream(dispatcher, dispatcher->stream_count, &stream));
  kiln_status_t status = kilni_dispatch_clear(
      stream, kiln_buffer_address(fixpoint->state), KILNI_FIXPOINT_STATE);
  if (kiln_status_is_ok(status) && bytes > 0) {
    status = kilni_dispatch_staging_upload(dispatcher->staging, stream,
                                           fixpoint->state,
                                           KILNI_FIXPOINT_STATE, bytes, more);
  }
  status = kilni_base_status_join(status, kiln_stream_synchronize(stream));
  if (kiln_status_is_ok(status)) return kiln_ok();
  // After work that may be in progress: in the order of its stream, which the
  // stream of frees does not wait for.
  kiln_buffer_release(fixpoint->state);
  fixpoint->state = NULL;
  return status;
}

kiln_status_t kilni_dispatch_fixpoint_order(kilni_dispatch_fixpoint_t* fixpoint,
                                            kiln_stream_t* stream) {
  if (fixpoint->last == stream) return kiln_ok();
  if (fixpoint->last != NULL) {
    KILNI_RETURN_IF_ERROR(kiln_stream_wait_stream(stream, fixpoint->last));
  }
  kiln_stream_retain(stream);
  kiln_stream_release(fixpoint->last);
  fixpoint->last = stream;
  return kiln_ok();
}

// ---- Choosing ----

// Releases what a strategy has made, after the runs that may use it.
static void sequence_fixpoint_forget(kilni_dispatch_fixpoint_t* fixpoint) {
  kiln_graph_exec_release(fixpoint->exec);
  kiln_launch_release(fixpoint->launch);
  kiln_launch_release(fixpoint->begin);
  kiln_launch_release(fixpoint->round);
  kiln_program_code_release(fixpoint->code);
  kiln_status_free(
      kilni_dispatch_memory_let_go(fixpoint->dispatcher, fixpoint->state));
  fixpoint->exec = NULL;
  fixpoint->launch = fixpoint->begin = fixpoint->round = NULL;
  fixpoint->code = NULL;
  fixpoint->state = NULL;
}

static kiln_status_t sequence_fixpoint_make(kilni_dispatch_fixpoint_t* fixpoint,
                                            uint32_t strategy) {
  fixpoint->strategy = strategy;
  if (strategy == KILN_FIXPOINT_COOPERATIVE) {
    return kilni_dispatch_fixpoint_make_cooperative(fixpoint);
  }
  if (strategy == KILN_FIXPOINT_WHILE) {
    return kilni_dispatch_fixpoint_make_while(fixpoint);
  }
  return kilni_dispatch_fixpoint_make_poll(fixpoint);
}

static const char* sequence_fixpoint_name_of(uint32_t strategy) {
  return strategy == KILN_FIXPOINT_COOPERATIVE ? "COOPERATIVE"
         : strategy == KILN_FIXPOINT_WHILE     ? "WHILE"
                                               : "POLL";
}

static bool is_refusal(kiln_status_t status) {
  kiln_status_code_t code = kiln_status_code(status);
  return code == KILN_STATUS_UNSUPPORTED ||
         code == KILN_STATUS_LIMIT_EXCEEDED ||
         code == KILN_STATUS_INVALID_ARGUMENT;
}

// Remembers why a better one cannot be.
static void sequence_fixpoint_note(kilni_dispatch_fixpoint_t* fixpoint,
                                   kiln_status_t status) {
  size_t length = strlen(fixpoint->why);
  (void)snprintf(fixpoint->why + length, sizeof(fixpoint->why) - length,
                 "%s%s: %s", length == 0 ? "" : "; ",
                 sequence_fixpoint_name_of(fixpoint->strategy),
                 kiln_status_message(status));
}

static kiln_status_t sequence_fixpoint_choose(
    kilni_dispatch_fixpoint_t* fixpoint, uint32_t wanted) {
  if (wanted != KILN_FIXPOINT_AUTO) {
    kiln_status_t status = sequence_fixpoint_make(fixpoint, wanted);
    return KILNI_ANNOTATE(status, "a fixpoint by %s",
                          sequence_fixpoint_name_of(wanted));
  }
  for (uint32_t strategy = KILN_FIXPOINT_COOPERATIVE;; strategy++) {
    kiln_status_t status = sequence_fixpoint_make(fixpoint, strategy);
    if (strategy == KILN_FIXPOINT_POLL || !is_refusal(status)) return status;
    sequence_fixpoint_note(fixpoint, status);
    kiln_status_free(status);
    sequence_fixpoint_forget(fixpoint);
  }
}

// ---- Making and ending ----

kiln_status_t kilni_dispatch_fixpoint_create(
    kilni_dispatch_instance_t* instance, uint32_t step,
    kilni_dispatch_fixpoint_t** out_fixpoint) {
  kiln_dispatcher_t* dispatcher = instance->sequence->dispatcher;
  const kilni_dispatch_step_t* what = &instance->sequence->steps[step];
  void* block = NULL;
  *out_fixpoint = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      dispatcher->allocator, sizeof(kilni_dispatch_fixpoint_t), &block));
  kilni_dispatch_fixpoint_t* fixpoint = block;
  fixpoint->instance = instance;
  fixpoint->dispatcher = dispatcher;
  fixpoint->step = step;
  fixpoint->limit = what->count;
  kiln_status_t status =
      kilni_dispatch_trap_take(dispatcher, &fixpoint->record);
  if (kiln_status_is_ok(status)) {
    memset(kilni_dispatch_fixpoint_host(fixpoint), 0,
           sizeof(kiln_program_rounds_t));
    status = sequence_fixpoint_choose(fixpoint, what->strategy);
  }
  if (!kiln_status_is_ok(status)) {
    kilni_dispatch_fixpoint_destroy(fixpoint);
    return status;
  }
  *out_fixpoint = fixpoint;
  return kiln_ok();
}

void kilni_dispatch_fixpoint_destroy(kilni_dispatch_fixpoint_t* fixpoint) {
  if (fixpoint == NULL) return;
  sequence_fixpoint_forget(fixpoint);
  if (fixpoint->record != NULL) {
    kilni_dispatch_trap_retire(fixpoint->dispatcher, fixpoint->record);
  }
  kiln_stream_release(fixpoint->last);
  kilni_base_free(fixpoint->dispatcher->allocator, fixpoint, sizeof(*fixpoint));
}

uint32_t kilni_dispatch_fixpoint_strategy(
    const kilni_dispatch_fixpoint_t* fixpoint) {
  return fixpoint->strategy;
}

const char* kilni_dispatch_fixpoint_why(
    const kilni_dispatch_fixpoint_t* fixpoint) {
  return fixpoint->why[0] != 0 ? fixpoint->why : NULL;
}

// ---- Runs ----

kiln_status_t kilni_dispatch_fixpoint_put(kilni_dispatch_fixpoint_t* fixpoint,
                                          kiln_stream_t* stream) {
  switch (fixpoint->strategy) {
    case KILN_FIXPOINT_COOPERATIVE:
      KILNI_RETURN_IF_ERROR(kilni_dispatch_fixpoint_order(fixpoint, stream));
      return kiln_launch_run(fixpoint->launch, stream);
    case KILN_FIXPOINT_WHILE:
      return kilni_dispatch_fixpoint_put_while(fixpoint, stream);
    default:
      return kilni_dispatch_fixpoint_put_poll(fixpoint, stream);
  }
}

kiln_status_t kilni_dispatch_fixpoint_build(kilni_dispatch_fixpoint_t* fixpoint,
                                            kilni_dispatch_build_t* build,
                                            kiln_graph_t* graph,
                                            kiln_graph_node_t* const* after,
                                            uint32_t after_count,
                                            kiln_graph_node_t** out_last) {
  *out_last = NULL;
  if (fixpoint->strategy == KILN_FIXPOINT_WHILE) {
    return kilni_dispatch_fixpoint_build_while(fixpoint, build, graph, after,
                                               after_count, out_last);
  }
  kiln_graph_work_t work = kiln_graph_work_launch(fixpoint->launch);
  KILNI_RETURN_IF_ERROR(
      kiln_graph_add(graph, after, after_count, &work, out_last));
  build->nodes++;
  return kiln_graph_node_set_name(*out_last, "fixpoint");
}

kiln_status_t kilni_dispatch_fixpoint_check_change(
    const kilni_dispatch_fixpoint_t* fixpoint, uint32_t index,
    const kiln_binding_t* binding) {
  if (fixpoint->strategy != KILN_FIXPOINT_COOPERATIVE) return kiln_ok();
  return kilni_dispatch_fixpoint_check_cooperative(fixpoint, index, binding);
}

kiln_status_t kilni_dispatch_fixpoint_changed(
    kilni_dispatch_fixpoint_t* fixpoint) {
  if (fixpoint->strategy != KILN_FIXPOINT_COOPERATIVE) return kiln_ok();
  return kilni_dispatch_fixpoint_bind_cooperative(fixpoint);
}

void kilni_dispatch_fixpoint_end(kilni_dispatch_fixpoint_t* fixpoint,
                                 kilni_dispatch_fixpoint_end_t* out) {
  const kiln_program_rounds_t* host = kilni_dispatch_fixpoint_host(fixpoint);
  out->rounds = __atomic_load_n(&host->rounds, __ATOMIC_RELAXED);
  out->reached_limit = __atomic_load_n(&host->end, __ATOMIC_RELAXED) ==
                       KILN_PROGRAM_ROUNDS_LIMIT;
}
