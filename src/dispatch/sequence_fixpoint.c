// SPDX-License-Identifier: Apache-2.0
//
// dispatch: fixpoints: rounds until one changes nothing.
//
// The host looks at the flag behind each round.
#include <string.h>

#include "dispatch/sequence_inside.h"

struct kilni_fixpoint_t {
  kilni_instance_t* instance;
  uint32_t step;
  uint32_t strategy;
  kilni_fixpoint_end_t end;
};

static kiln_status_t cannot(const char* what, const char* fix) {
  return kilni_status_with_fix(KILNI_FAIL(UNSUPPORTED, "%s", what), "%s", fix);
}

kiln_status_t kilni_fixpoint_create(kilni_instance_t* instance, uint32_t step,
                                    kilni_fixpoint_t** out_fixpoint) {
  kiln_allocator_t allocator = instance->sequence->dispatcher->allocator;
  const kilni_step_t* what = &instance->sequence->steps[step];
  *out_fixpoint = NULL;
  if (what->strategy == KILN_FIXPOINT_COOPERATIVE) {
    return cannot("a fixpoint in one cooperative launch",
                  "let KILN_FIXPOINT_AUTO choose");
  }
  if (what->strategy == KILN_FIXPOINT_WHILE) {
    return cannot("a fixpoint by a WHILE node",
                  "let KILN_FIXPOINT_AUTO choose");
  }
  if (instance->is_replay) {
    return cannot("a fixpoint that polls, in a replay",
                  "run the sequence on a stream");
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(allocator, sizeof(kilni_fixpoint_t), &block));
  kilni_fixpoint_t* fixpoint = block;
  fixpoint->instance = instance;
  fixpoint->step = step;
  fixpoint->strategy = KILN_FIXPOINT_POLL;
  *out_fixpoint = fixpoint;
  return NULL;
}

void kilni_fixpoint_destroy(kilni_fixpoint_t* fixpoint) {
  if (fixpoint == NULL) return;
  kilni_free(fixpoint->instance->sequence->dispatcher->allocator, fixpoint,
             sizeof(*fixpoint));
}

uint32_t kilni_fixpoint_strategy(const kilni_fixpoint_t* fixpoint) {
  return fixpoint->strategy;
}

kiln_status_t kilni_fixpoint_put(kilni_fixpoint_t* fixpoint,
                                 kiln_stream_t* stream) {
  const kilni_step_t* step =
      &fixpoint->instance->sequence->steps[fixpoint->step];
  uint32_t first = fixpoint->step + 1;
  uint32_t flag = 1;
  fixpoint->end.rounds = 0;
  while (flag != 0 && fixpoint->end.rounds < step->count) {
    KILNI_RETURN_IF_ERROR(kiln_buffer_fill_async(step->to.buffer, stream,
                                                 step->to.offset, 4, 0, 4));
    KILNI_RETURN_IF_ERROR(
        kilni_steps_put(fixpoint->instance, first, first + step->body, stream));
    KILNI_RETURN_IF_ERROR(kiln_buffer_read_async(
        step->to.buffer, stream, step->to.offset, sizeof(flag), &flag));
    KILNI_RETURN_IF_ERROR(kiln_stream_synchronize(stream));
    fixpoint->end.rounds++;
  }
  fixpoint->end.reached_limit = flag != 0;
  return NULL;
}

kiln_status_t kilni_fixpoint_build(kilni_fixpoint_t* fixpoint,
                                   kilni_build_t* build, kiln_graph_t* graph,
                                   kiln_graph_node_t* const* after,
                                   uint32_t after_count,
                                   kiln_graph_node_t** out_last) {
  (void)fixpoint;
  (void)build;
  (void)graph;
  (void)after;
  (void)after_count;
  *out_last = NULL;
  return cannot("a fixpoint that polls, in a replay",
                "run the sequence on a stream");
}

kiln_status_t kilni_fixpoint_changed(kilni_fixpoint_t* fixpoint) {
  (void)fixpoint;
  return NULL;
}

void kilni_fixpoint_end(kilni_fixpoint_t* fixpoint, kilni_fixpoint_end_t* out) {
  *out = fixpoint->end;
}
