// SPDX-License-Identifier: Apache-2.0
//
// library: rounds of a plan: steps that are done until nothing changes, as a
// fixpoint of a sequence.
#include <string.h>

#include "base/status_make.h"
#include "kiln/dispatch.h"
#include "kiln/library.h"
#include "kiln/pipeline.h"
#include "kiln/sequence.h"
#include "library/library_inside.h"

// The fixpoint is the first step of its sequence.
enum { FIXPOINT = 0 };

// ---- Making ----

void kilni_library_begin_rounds(kilni_library_make_t* make, uint32_t flag,
                                uint32_t limit) {
  kilni_library_rounds_t* rounds = &make->plan->rounds;
  rounds->first = make->plan->step_count;
  rounds->flag = flag;
  rounds->limit = make->options.rounds != 0 ? make->options.rounds : limit;
}

void kilni_library_end_rounds(kilni_library_make_t* make) {
  kilni_library_rounds_t* rounds = &make->plan->rounds;
  rounds->count = make->plan->step_count - rounds->first;
}

static kiln_status_t record_step(const kiln_library_plan_t* plan,
                                 const kilni_library_step_t* step,
                                 const kiln_binding_t* bindings,
                                 kiln_sequence_t* sequence) {
  kiln_binding_t bound[KILNI_LIBRARY_PLACES];
  KILNI_RETURN_IF_ERROR(kilni_library_bind(plan, step, bindings, bound));
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  options.clear_outputs = step->clears;
  return kiln_sequence_add_dispatch(sequence, step->pipeline, bound,
                                    step->place_count, &options, NULL);
}

static kiln_status_t rounds_record(const kiln_library_plan_t* plan,
                                   const kiln_binding_t* bindings,
                                   kiln_sequence_t* sequence) {
  const kilni_library_rounds_t* rounds = &plan->rounds;
  kiln_fixpoint_options_t options = kiln_fixpoint_options_default();
  options.flag = kiln_bind_buffer_range(plan->memories[rounds->flag], 0, 4);
  options.limit = rounds->limit;
  KILNI_RETURN_IF_ERROR(kiln_sequence_begin_fixpoint(sequence, &options, NULL));
  for (uint32_t i = rounds->first; i < plan->step_count; i++) {
    KILNI_RETURN_IF_ERROR(
        record_step(plan, &plan->steps[i], bindings, sequence));
    if (i + 1 == rounds->first + rounds->count) {
      KILNI_RETURN_IF_ERROR(kiln_sequence_end_body(sequence));
    }
  }
  return kiln_sequence_finish(sequence);
}

static bool rounds_is_same(const kiln_binding_t* a, const kiln_binding_t* b) {
  return a->kind == b->kind && a->type == b->type &&
         a->value.bits == b->value.bits && a->offset == b->offset &&
         a->bytes == b->bytes;
}

// The binding of a run that a place is about; false where there is none.
static bool rounds_is_given(const kilni_library_place_t* place,
                            uint32_t* out_index) {
  *out_index = place->kind == KILNI_PLACE_ALIKE ? 0 : place->index;
  return place->kind == KILNI_PLACE_GIVEN || place->kind == KILNI_PLACE_WORDS ||
         place->kind == KILNI_PLACE_ALIKE;
}

// True where no step from the body on is bound to anything else than before.
static bool is_for(const kiln_library_plan_t* plan,
                   const kiln_binding_t* bindings) {
  const kilni_library_rounds_t* rounds = &plan->rounds;
  if (rounds->sequence == NULL) return false;
  for (uint32_t i = rounds->first; i < plan->step_count; i++) {
    const kilni_library_step_t* step = &plan->steps[i];
    for (uint32_t k = 0; k < step->place_count; k++) {
      uint32_t at = 0;
      if (rounds_is_given(&step->places[k], &at) &&
          !rounds_is_same(&bindings[at], &rounds->bindings[at])) {
        return false;
      }
    }
  }
  return true;
}

static kiln_status_t make_sequence(kiln_library_plan_t* plan,
                                   const kiln_binding_t* bindings) {
  kilni_library_rounds_t* rounds = &plan->rounds;
  kiln_sequence_options_t options = kiln_sequence_options_default();
  options.label = plan->name;
  kiln_sequence_t* sequence = NULL;
  KILNI_RETURN_IF_ERROR(
      kiln_sequence_create(plan->dispatcher, &options, &sequence));
  kiln_status_t status = rounds_record(plan, bindings, sequence);
  if (!kiln_status_is_ok(status)) {
    kiln_sequence_release(sequence);
    return status;
  }
  kiln_sequence_release(rounds->sequence);
  rounds->sequence = sequence;
  memcpy(rounds->bindings, bindings, plan->parameter_count * sizeof(*bindings));
  return kiln_ok();
}

// ---- Running ----

kiln_status_t kilni_library_run_rounds(kiln_library_plan_t* plan,
                                       kiln_stream_t* stream,
                                       const kiln_binding_t* bindings,
                                       kiln_pending_t** out_pending) {
  if (!is_for(plan, bindings)) {
    KILNI_RETURN_IF_ERROR(make_sequence(plan, bindings));
  }
  return kiln_sequence_run(plan->rounds.sequence, stream, out_pending);
}

kiln_status_t kiln_library_plan_rounds(const kiln_library_plan_t* plan,
                                       uint32_t* out_rounds) {
  KILNI_CHECK_ARGUMENT(out_rounds != NULL, "out_rounds");
  *out_rounds = 0;
  KILNI_CHECK_ARGUMENT(plan != NULL, "plan");
  if (plan->rounds.sequence == NULL) return kiln_ok();
  return kiln_sequence_rounds(plan->rounds.sequence, FIXPOINT, out_rounds);
}
