// SPDX-License-Identifier: Apache-2.0
//
// dispatch: sequences are run on streams: one step after the other.
#include <string.h>

#include "base/status_make.h"
#include "dispatch/sequence_inside.h"

// ---- Steps ----

static kiln_status_t put_copy(const kilni_dispatch_step_t* step,
                              kiln_stream_t* stream) {
  if (step->to.buffer == NULL || step->to.bytes == 0) return kiln_ok();
  return kiln_buffer_copy_async(step->to.buffer, stream, step->to.offset,
                                step->from.buffer, step->from.offset,
                                step->to.bytes);
}

static kiln_status_t put_fill(const kilni_dispatch_step_t* step,
                              kiln_stream_t* stream) {
  if (step->to.buffer == NULL || step->to.bytes == 0) return kiln_ok();
  return kiln_buffer_fill_async(step->to.buffer, stream, step->to.offset,
                                step->to.bytes, step->value, step->value_bytes);
}

static kiln_status_t put_upload(kiln_dispatcher_t* dispatcher,
                                const kilni_dispatch_step_t* step,
                                kiln_stream_t* stream) {
  if (step->pinned != NULL) {
    return kiln_buffer_copy_async(step->to.buffer, stream, step->to.offset,
                                  step->pinned, 0, step->to.bytes);
  }
  return kilni_dispatch_staging_upload(dispatcher->staging, stream,
                                       step->to.buffer, step->to.offset,
                                       step->to.bytes, step->in);
}

static kiln_status_t put_one(kilni_dispatch_instance_t* instance,
                             uint32_t index, kiln_stream_t* stream) {
  const kiln_sequence_t* sequence = instance->sequence;
  const kilni_dispatch_step_t* step = &sequence->steps[index];
  switch (step->kind) {
    case KILN_STEP_DISPATCH:
      return kilni_dispatch_prepared_put(instance->prepared[index], stream);
    case KILN_STEP_COPY:
      return put_copy(step, stream);
    case KILN_STEP_FILL:
      return put_fill(step, stream);
    case KILN_STEP_UPLOAD:
      return put_upload(sequence->dispatcher, step, stream);
    case KILN_STEP_DOWNLOAD:
      return kilni_dispatch_staging_download(
          sequence->dispatcher->staging, stream, step->from.buffer,
          step->from.offset, step->from.bytes, step->out, false);
    default:
      return kilni_dispatch_fixpoint_put(instance->fixpoints[index], stream);
  }
}

kiln_status_t kilni_dispatch_steps_put(kilni_dispatch_instance_t* instance,
                                       uint32_t first, uint32_t behind,
                                       kiln_stream_t* stream) {
  const kiln_sequence_t* sequence = instance->sequence;
  for (uint32_t i = first; i < behind; i += 1 + sequence->steps[i].body) {
    const kilni_dispatch_step_t* step = &sequence->steps[i];
    if (step->kind == KILN_STEP_LOOP) {
      for (uint32_t round = 0; round < step->count; round++) {
        KILNI_RETURN_IF_ERROR(kilni_dispatch_steps_put(
            instance, i + 1, i + 1 + step->body, stream));
      }
      continue;
    }
    kiln_status_t status = put_one(instance, i, stream);
    if (kiln_status_is_ok(status)) continue;
    char text[KILNI_STEP_TEXT];
    return KILNI_ANNOTATE(status, "%s",
                          kilni_dispatch_step_text(sequence, i, text));
  }
  return kiln_ok();
}

// ---- Runs ----

kiln_status_t kilni_dispatch_sequence_check_finished(
    const kiln_sequence_t* sequence) {
  if (atomic_load(&sequence->finished)) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE, "\"%s\" is not finished", sequence->label),
      "call kiln_sequence_finish, and check its status");
}

static kiln_status_t sequence_run_check_capture(const kiln_sequence_t* sequence,
                                                kiln_stream_t* stream,
                                                bool wants_pending) {
  bool captured = false;
  if (!wants_pending && !sequence->has_transfers &&
      !sequence->refuses_capture) {
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(kilni_device_stream_ask_capture(stream, &captured));
  if (!captured) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "host memory, a pending or a fixpoint by WHILE or POLL "
                 "(\"%s\") on a stream that is being captured",
                 sequence->label),
      "make a replay of it (kiln_sequence_instantiate)");
}

static void sequence_run_look(void* object,
                              kilni_dispatch_pending_end_t* out_end) {
  kiln_sequence_t* sequence = object;
  kilni_dispatch_instance_look(&sequence->own, out_end);
}

static void sequence_run_let_go(void* object) {
  kiln_sequence_release(object);
}

void kilni_dispatch_instance_look(kilni_dispatch_instance_t* instance,
                                  kilni_dispatch_pending_end_t* out_end) {
  uint32_t step = 0;
  if (kilni_dispatch_instance_find_trap(instance, &out_end->trap, &step)) {
    out_end->state = KILNI_PENDING_TRAPPED;
    out_end->label = kilni_dispatch_step_label(instance->sequence, step);
  } else if (kilni_dispatch_instance_find_limit(instance, &out_end->rounds,
                                                &step)) {
    const char* label = instance->sequence->steps[step].label;
    out_end->state = KILNI_PENDING_UNCONVERGED;
    if (label != NULL) out_end->label = label;
  }
}

static kiln_status_t put_all(kiln_sequence_t* sequence, kiln_stream_t* stream) {
  bool shares = sequence->has_grids || sequence->has_fixpoints;
  if (shares) kilni_base_mutex_lock(&sequence->lock);
  kiln_status_t status =
      kilni_dispatch_steps_put(&sequence->own, 0, sequence->step_count, stream);
  if (shares) kilni_base_mutex_unlock(&sequence->lock);
  return status;
}

kiln_status_t kiln_sequence_run(kiln_sequence_t* sequence,
                                kiln_stream_t* stream,
                                kiln_pending_t** out_pending) {
  if (out_pending != NULL) *out_pending = NULL;
  KILNI_CHECK_ARGUMENT(sequence != NULL, "sequence");
  KILNI_RETURN_IF_ERROR(kilni_dispatch_sequence_check_finished(sequence));
  kiln_dispatcher_t* dispatcher = sequence->dispatcher;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  if (kilni_device_is_lost(dispatcher->device)) {
    return kilni_device_lost_status(dispatcher->device);
  }
  KILNI_RETURN_IF_ERROR(kilni_dispatch_stream(dispatcher, stream, &stream));
  KILNI_RETURN_IF_ERROR(kilni_dispatch_instance_check_freed(&sequence->own));
  KILNI_RETURN_IF_ERROR(
      sequence_run_check_capture(sequence, stream, out_pending != NULL));
  kiln_pending_t* pending = NULL;
  if (out_pending != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_dispatch_pending_create(
        dispatcher, sequence->label, false, &pending));
    kiln_sequence_retain(sequence);
    pending->of.object = sequence;
    pending->of.look = sequence_run_look;
    pending->of.release = sequence_run_let_go;
  }
  kiln_status_t status = put_all(sequence, stream);
  if (kiln_status_is_ok(status) && pending != NULL) {
    status = kilni_dispatch_pending_finish(pending, stream);
  }
  if (!kiln_status_is_ok(status)) {
    // What is already on the stream cannot be known.
    status = kilni_base_status_join(status, kiln_stream_synchronize(stream));
    kiln_pending_release(pending);
    return KILNI_ANNOTATE(status, "running \"%s\"", sequence->label);
  }
  kilni_dispatch_count(dispatcher->counters, KILNI_COUNTER_SEQUENCE_RUNS, 1);
  if (out_pending != NULL) *out_pending = pending;
  return kiln_ok();
}

// ---- How runs ended ----

static kiln_status_t sequence_run_check_device(
    const kiln_dispatcher_t* dispatcher) {
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  if (!kilni_device_is_lost(dispatcher->device)) return kiln_ok();
  return kilni_device_lost_status(dispatcher->device);
}

kiln_status_t kiln_sequence_check(kiln_sequence_t* sequence,
                                  kiln_trap_t* out_trap, uint32_t* out_step) {
  if (out_trap != NULL) memset(out_trap, 0, sizeof(*out_trap));
  if (out_step != NULL) *out_step = 0;
  KILNI_CHECK_ARGUMENT(sequence != NULL, "sequence");
  KILNI_RETURN_IF_ERROR(sequence_run_check_device(sequence->dispatcher));
  KILNI_RETURN_IF_ERROR(kilni_dispatch_sequence_check_finished(sequence));
  kilni_base_mutex_lock(&sequence->lock);
  kiln_status_t status =
      kilni_dispatch_instance_check(&sequence->own, out_trap, out_step);
  kilni_base_mutex_unlock(&sequence->lock);
  return status;
}

kiln_status_t kiln_sequence_rounds(kiln_sequence_t* sequence, uint32_t step,
                                   uint32_t* out_rounds) {
  KILNI_CHECK_ARGUMENT(out_rounds != NULL, "out_rounds");
  *out_rounds = 0;
  KILNI_CHECK_ARGUMENT(sequence != NULL, "sequence");
  KILNI_RETURN_IF_ERROR(kilni_dispatch_sequence_check_finished(sequence));
  return kilni_dispatch_instance_rounds(&sequence->own, step, out_rounds);
}
