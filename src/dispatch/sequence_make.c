// SPDX-License-Identifier: Apache-2.0
//
// dispatch: sequences are recorded.
//
// Arguments are copied, and no device is queried: sequence_finish.c does that.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "base/str.h"
#include "dispatch/sequence_inside.h"

static const char kLabel[] = "sequence";

// ---- Making and ending ----

void kilni_dispatch_recorded_free(kiln_allocator_t allocator,
                                  kilni_dispatch_recorded_t* recorded) {
  if (recorded == NULL) return;
  kiln_pipeline_release(recorded->pipeline);
  kilni_base_strfree(allocator, recorded->label);
  kilni_base_free(allocator, recorded,
                  sizeof(*recorded) + recorded->count * sizeof(kiln_binding_t));
}

static void sequence_make_destroy(kiln_sequence_t* sequence) {
  kiln_dispatcher_t* dispatcher = sequence->dispatcher;
  kiln_allocator_t allocator = dispatcher->allocator;
  kilni_dispatch_instance_deinit(&sequence->own);
  for (uint32_t i = 0; i < sequence->step_count; i++) {
    kilni_dispatch_step_t* step = &sequence->steps[i];
    kilni_dispatch_recorded_free(allocator, step->recorded);
    kiln_prepared_release(step->given);
    kilni_base_strfree(allocator, step->label);
    kilni_dispatch_binding_let_go(dispatcher, &step->places[0],
                                  step->to.buffer);
    kilni_dispatch_binding_let_go(dispatcher, &step->places[1],
                                  step->from.buffer);
    kiln_buffer_release(step->pinned);
  }
  kilni_base_free_array(allocator, sequence->steps, sequence->step_capacity,
                        sizeof(kilni_dispatch_step_t));
  kilni_base_strfree(allocator, sequence->label);
  if (sequence->has_lock) kilni_base_mutex_deinit(&sequence->lock);
  kilni_base_free(allocator, sequence, sizeof(*sequence));
  kiln_dispatcher_release(dispatcher);
}

static kiln_status_t sequence_make_fill(kiln_sequence_t* sequence,
                                        const char* label) {
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&sequence->lock));
  sequence->has_lock = true;
  return kilni_base_strdup(sequence->dispatcher->allocator,
                           kilni_base_sv(label), &sequence->label);
}

kiln_status_t kiln_sequence_create(kiln_dispatcher_t* dispatcher,
                                   const kiln_sequence_options_t* options,
                                   kiln_sequence_t** out_sequence) {
  KILNI_CHECK_ARGUMENT(out_sequence != NULL, "out_sequence");
  *out_sequence = NULL;
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  kiln_sequence_options_t given = kiln_sequence_options_default();
  if (options != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_base_options_read(
        options, "kiln_sequence_options_t", sizeof(given), &given));
  }
  KILNI_CHECK_ARGUMENT(given.order <= KILN_SEQUENCE_IN_LINE, "options.order");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  if (kilni_device_is_lost(dispatcher->device)) {
    return kilni_device_lost_status(dispatcher->device);
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(dispatcher->allocator, sizeof(kiln_sequence_t), &block));
  kiln_sequence_t* sequence = block;
  sequence->dispatcher = dispatcher;
  sequence->order = given.order;
  sequence->open = KILNI_NO_STEP;
  atomic_init(&sequence->references, 1);
  atomic_init(&sequence->finished, false);
  kiln_dispatcher_retain(dispatcher);
  kiln_status_t status =
      sequence_make_fill(sequence, given.label != NULL ? given.label : kLabel);
  if (!kiln_status_is_ok(status)) {
    sequence_make_destroy(sequence);
    return status;
  }
  *out_sequence = sequence;
  return kiln_ok();
}

void kiln_sequence_retain(kiln_sequence_t* sequence) {
  if (sequence == NULL) return;
  atomic_fetch_add_explicit(&sequence->references, 1, memory_order_relaxed);
}

void kiln_sequence_release(kiln_sequence_t* sequence) {
  if (sequence == NULL ||
      kilni_device_is_forked(sequence->dispatcher->device)) {
    return;
  }
  if (atomic_fetch_sub_explicit(&sequence->references, 1,
                                memory_order_acq_rel) == 1) {
    sequence_make_destroy(sequence);
  }
}

kiln_dispatcher_t* kiln_sequence_dispatcher(const kiln_sequence_t* sequence) {
  return sequence->dispatcher;
}

// ---- Steps ----

static kiln_status_t sequence_make_check_open(const kiln_sequence_t* sequence) {
  KILNI_CHECK_ARGUMENT(sequence != NULL, "sequence");
  if (!atomic_load(&sequence->finished) && !sequence->failed) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE, "\"%s\" %s", sequence->label,
                 sequence->failed ? "could not be finished" : "is finished"),
      "record another sequence");
}

static kiln_status_t sequence_make_refuse(const kiln_sequence_t* sequence,
                                          const char* what, const char* fix) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "%s in \"%s\"", what, sequence->label), "%s",
      fix);
}

static kiln_status_t sequence_make_add(kiln_sequence_t* sequence, uint32_t kind,
                                       kilni_dispatch_step_t** out_step,
                                       uint32_t* out_index) {
  KILNI_RETURN_IF_ERROR(sequence_make_check_open(sequence));
  if (sequence->step_count == KILNI_SEQUENCE_STEPS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "\"%s\" has %d steps already",
                   sequence->label, (int)KILNI_SEQUENCE_STEPS),
        "put repeated steps into a loop, or make two sequences");
  }
  void* steps = sequence->steps;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(
      sequence->dispatcher->allocator, (size_t)sequence->step_count + 1,
      sizeof(kilni_dispatch_step_t), &sequence->step_capacity, &steps));
  sequence->steps = steps;
  kilni_dispatch_step_t* step = &sequence->steps[sequence->step_count];
  memset(step, 0, sizeof(*step));
  step->kind = kind;
  step->parent = sequence->open;
  if (out_index != NULL) *out_index = sequence->step_count;
  if (step->parent != KILNI_NO_STEP) {
    const kilni_dispatch_step_t* around = &sequence->steps[step->parent];
    step->in_fixpoint =
        around->in_fixpoint || around->kind == KILN_STEP_FIXPOINT;
  }
  *out_step = step;
  sequence->step_count++;
  return kiln_ok();
}

static kiln_status_t sequence_make_record(
    kiln_sequence_t* sequence, kiln_pipeline_t* pipeline,
    const kiln_binding_t* bindings, uint32_t count,
    const kiln_dispatch_options_t* options,
    kilni_dispatch_recorded_t** out_recorded) {
  kiln_allocator_t allocator = sequence->dispatcher->allocator;
  kiln_dispatch_options_t given = kiln_dispatch_options_default();
  if (options != NULL) {
    KILNI_RETURN_IF_ERROR(
        KILNI_OPTIONS_READ(options, kiln_dispatch_options_t, &given));
  }
  given.struct_size = (uint32_t)sizeof(given);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      allocator,
      sizeof(kilni_dispatch_recorded_t) + count * sizeof(kiln_binding_t),
      &block));
  kilni_dispatch_recorded_t* recorded = block;
  recorded->options = given;
  recorded->count = count;
  if (count > 0) {
    memcpy(recorded->bindings, bindings, count * sizeof(*bindings));
  }
  if (given.label != NULL) {
    kiln_status_t status = kilni_base_strdup(
        allocator, kilni_base_sv(given.label), &recorded->label);
    if (!kiln_status_is_ok(status)) {
      kilni_dispatch_recorded_free(allocator, recorded);
      return status;
    }
    recorded->options.label = recorded->label;
  }
  recorded->pipeline = pipeline;
  kiln_pipeline_retain(pipeline);
  *out_recorded = recorded;
  return kiln_ok();
}

static kiln_status_t check_own(const kiln_sequence_t* sequence,
                               const kiln_dispatcher_t* other,
                               const char* label) {
  if (sequence->dispatcher == other) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "\"%s\" is of another dispatcher than "
                 "\"%s\"",
                 label, sequence->label),
      "make the pipeline with the sequence's dispatcher");
}

kiln_status_t kiln_sequence_add_dispatch(kiln_sequence_t* sequence,
                                         kiln_pipeline_t* pipeline,
                                         const kiln_binding_t* bindings,
                                         uint32_t binding_count,
                                         const kiln_dispatch_options_t* options,
                                         uint32_t* out_step) {
  if (out_step != NULL) *out_step = 0;
  KILNI_RETURN_IF_ERROR(sequence_make_check_open(sequence));
  KILNI_CHECK_ARGUMENT(pipeline != NULL, "pipeline");
  KILNI_CHECK_ARGUMENT(bindings != NULL || binding_count == 0, "bindings");
  KILNI_RETURN_IF_ERROR(
      check_own(sequence, pipeline->dispatcher, pipeline->label));
  if (binding_count > KILNI_PIPELINE_PARAMETERS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "%u bindings for \"%s\"",
                   (unsigned)binding_count, pipeline->label),
        "give one binding for each parameter");
  }
  kilni_dispatch_recorded_t* recorded = NULL;
  kilni_dispatch_step_t* step = NULL;
  KILNI_RETURN_IF_ERROR(sequence_make_record(
      sequence, pipeline, bindings, binding_count, options, &recorded));
  kiln_status_t status =
      sequence_make_add(sequence, KILN_STEP_DISPATCH, &step, out_step);
  if (!kiln_status_is_ok(status)) {
    kilni_dispatch_recorded_free(sequence->dispatcher->allocator, recorded);
    return status;
  }
  step->recorded = recorded;
  return kiln_ok();
}

kiln_status_t kiln_sequence_add_prepared(kiln_sequence_t* sequence,
                                         kiln_prepared_t* prepared,
                                         uint32_t* out_step) {
  if (out_step != NULL) *out_step = 0;
  KILNI_RETURN_IF_ERROR(sequence_make_check_open(sequence));
  KILNI_CHECK_ARGUMENT(prepared != NULL, "prepared");
  KILNI_RETURN_IF_ERROR(
      check_own(sequence, prepared->dispatcher, prepared->pipeline->label));
  kiln_prepared_t* given = NULL;
  kilni_dispatch_step_t* step = NULL;
  KILNI_RETURN_IF_ERROR(kilni_dispatch_prepared_clone(prepared, false, &given));
  kiln_status_t status =
      sequence_make_add(sequence, KILN_STEP_DISPATCH, &step, out_step);
  if (!kiln_status_is_ok(status)) {
    kiln_prepared_release(given);
    return status;
  }
  step->given = given;
  return kiln_ok();
}

// ---- Memory ----

kiln_status_t kiln_sequence_add_copy(kiln_sequence_t* sequence,
                                     const kiln_binding_t* to,
                                     const kiln_binding_t* from,
                                     uint32_t* out_step) {
  kilni_dispatch_step_t* step = NULL;
  if (out_step != NULL) *out_step = 0;
  KILNI_CHECK_ARGUMENT(to != NULL, "to");
  KILNI_CHECK_ARGUMENT(from != NULL, "from");
  KILNI_RETURN_IF_ERROR(
      sequence_make_add(sequence, KILN_STEP_COPY, &step, out_step));
  step->places[0] = *to;
  step->places[1] = *from;
  return kiln_ok();
}

kiln_status_t kiln_sequence_add_fill(kiln_sequence_t* sequence,
                                     const kiln_binding_t* to, uint32_t value,
                                     uint32_t value_bytes, uint32_t* out_step) {
  kilni_dispatch_step_t* step = NULL;
  if (out_step != NULL) *out_step = 0;
  KILNI_CHECK_ARGUMENT(to != NULL, "to");
  KILNI_CHECK_ARGUMENT(value_bytes == 1 || value_bytes == 2 || value_bytes == 4,
                       "value_bytes");
  KILNI_RETURN_IF_ERROR(
      sequence_make_add(sequence, KILN_STEP_FILL, &step, out_step));
  step->places[0] = *to;
  step->value = value;
  step->value_bytes = value_bytes;
  return kiln_ok();
}

static kiln_status_t check_transfer(const kiln_sequence_t* sequence,
                                    const char* what) {
  KILNI_RETURN_IF_ERROR(sequence_make_check_open(sequence));
  for (uint32_t i = sequence->open; i != KILNI_NO_STEP;
       i = sequence->steps[i].parent) {
    if (sequence->steps[i].kind != KILN_STEP_FIXPOINT) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "%s in the body of a fixpoint of \"%s\" (step %u)", what,
                   sequence->label, (unsigned)i),
        "copy before the fixpoint, or after it");
  }
  return kiln_ok();
}

static kiln_status_t sequence_make_read_now(kiln_sequence_t* sequence,
                                            const void* data, uint64_t bytes,
                                            kiln_buffer_t** out_pinned) {
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.kind = KILN_MEMORY_PINNED;
  KILNI_RETURN_IF_ERROR(kiln_buffer_create(sequence->dispatcher->device, bytes,
                                           &options, out_pinned));
  memcpy(kiln_buffer_host(*out_pinned), data, (size_t)bytes);
  return kiln_ok();
}

kiln_status_t kiln_sequence_add_upload(kiln_sequence_t* sequence,
                                       const kiln_binding_t* to,
                                       const void* data, uint32_t when,
                                       uint32_t* out_step) {
  kilni_dispatch_step_t* step = NULL;
  kiln_buffer_t* pinned = NULL;
  if (out_step != NULL) *out_step = 0;
  KILNI_RETURN_IF_ERROR(check_transfer(sequence, "an upload"));
  KILNI_CHECK_ARGUMENT(to != NULL, "to");
  KILNI_CHECK_ARGUMENT(data != NULL, "data");
  if (to->bytes == 0) {
    return sequence_make_refuse(sequence,
                                "an upload of an unknown number of bytes",
                                "name a range of the buffer, with its bytes");
  }
  KILNI_CHECK_ARGUMENT(when <= KILN_SEQUENCE_READ_NOW, "when");
  if (when == KILN_SEQUENCE_READ_NOW) {
    KILNI_RETURN_IF_ERROR(
        sequence_make_read_now(sequence, data, to->bytes, &pinned));
  }
  kiln_status_t status =
      sequence_make_add(sequence, KILN_STEP_UPLOAD, &step, out_step);
  if (!kiln_status_is_ok(status)) {
    kiln_buffer_release(pinned);
    return status;
  }
  step->places[0] = *to;
  step->in = data;
  step->pinned = pinned;
  return kiln_ok();
}

kiln_status_t kiln_sequence_add_download(kiln_sequence_t* sequence,
                                         const kiln_binding_t* from,
                                         void* out_data, uint32_t* out_step) {
  kilni_dispatch_step_t* step = NULL;
  if (out_step != NULL) *out_step = 0;
  KILNI_RETURN_IF_ERROR(check_transfer(sequence, "a download"));
  KILNI_CHECK_ARGUMENT(from != NULL, "from");
  KILNI_CHECK_ARGUMENT(out_data != NULL, "out_data");
  if (from->bytes == 0) {
    return sequence_make_refuse(sequence,
                                "a download of an unknown number of bytes",
                                "name a range of the buffer, with its bytes");
  }
  KILNI_RETURN_IF_ERROR(
      sequence_make_add(sequence, KILN_STEP_DOWNLOAD, &step, out_step));
  step->places[1] = *from;
  step->out = out_data;
  return kiln_ok();
}

// ---- Bodies ----

static kiln_status_t sequence_make_begin(kiln_sequence_t* sequence,
                                         uint32_t kind,
                                         kilni_dispatch_step_t** out_step,
                                         uint32_t* out_index) {
  uint32_t index = 0;
  KILNI_RETURN_IF_ERROR(sequence_make_check_open(sequence));
  if (sequence->depth == KILNI_SEQUENCE_DEPTH) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "bodies nested %d deep in \"%s\"",
                   (int)KILNI_SEQUENCE_DEPTH + 1, sequence->label),
        "use fewer loops: two nested loops that only repeat can be one");
  }
  KILNI_RETURN_IF_ERROR(sequence_make_add(sequence, kind, out_step, &index));
  sequence->open = index;
  sequence->depth++;
  if (out_index != NULL) *out_index = index;
  return kiln_ok();
}

kiln_status_t kiln_sequence_begin_loop(kiln_sequence_t* sequence,
                                       uint32_t count, uint32_t* out_step) {
  kilni_dispatch_step_t* step = NULL;
  if (out_step != NULL) *out_step = 0;
  KILNI_RETURN_IF_ERROR(sequence_make_check_open(sequence));
  if (count == 0) {
    return sequence_make_refuse(sequence, "a loop of no rounds",
                                "give the number of rounds");
  }
  KILNI_RETURN_IF_ERROR(
      sequence_make_begin(sequence, KILN_STEP_LOOP, &step, out_step));
  step->count = count;
  return kiln_ok();
}

kiln_status_t kiln_sequence_begin_fixpoint(
    kiln_sequence_t* sequence, const kiln_fixpoint_options_t* options,
    uint32_t* out_step) {
  kilni_dispatch_step_t* step = NULL;
  kiln_fixpoint_options_t given;
  if (out_step != NULL) *out_step = 0;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_fixpoint_options_t, &given));
  KILNI_CHECK_ARGUMENT(given.strategy <= KILN_FIXPOINT_POLL,
                       "options.strategy");
  KILNI_RETURN_IF_ERROR(sequence_make_check_open(sequence));
  if (given.limit == 0) {
    return sequence_make_refuse(sequence, "a fixpoint without a limit",
                                "give the maximum number of rounds (`limit`)");
  }
  KILNI_RETURN_IF_ERROR(
      sequence_make_begin(sequence, KILN_STEP_FIXPOINT, &step, out_step));
  step->strategy = given.strategy;
  step->count = given.limit;
  step->places[0] = given.flag;
  return kiln_ok();
}

kiln_status_t kiln_sequence_end_body(kiln_sequence_t* sequence) {
  KILNI_RETURN_IF_ERROR(sequence_make_check_open(sequence));
  uint32_t index = sequence->open;
  if (index == KILNI_NO_STEP) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "no loop or fixpoint of \"%s\" is open",
                   sequence->label),
        "begin one first; each is ended once");
  }
  kilni_dispatch_step_t* step = &sequence->steps[index];
  step->body = sequence->step_count - index - 1;
  if (step->body == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "the body of step %u of \"%s\" is empty",
                   (unsigned)index, sequence->label),
        "add the steps to repeat before its end");
  }
  sequence->open = step->parent;
  sequence->depth--;
  return kiln_ok();
}

kiln_status_t kiln_sequence_set_label(kiln_sequence_t* sequence, uint32_t step,
                                      const char* label) {
  KILNI_RETURN_IF_ERROR(sequence_make_check_open(sequence));
  KILNI_CHECK_ARGUMENT(label != NULL, "label");
  if (step >= sequence->step_count) {
    return sequence_make_refuse(sequence, "a label for no step",
                                "label a step that was added, by its number");
  }
  char* copy = NULL;
  kiln_allocator_t allocator = sequence->dispatcher->allocator;
  KILNI_RETURN_IF_ERROR(
      kilni_base_strdup(allocator, kilni_base_sv(label), &copy));
  kilni_base_strfree(allocator, sequence->steps[step].label);
  sequence->steps[step].label = copy;
  return kiln_ok();
}

// ---- Questions ----

const char* kilni_dispatch_step_label(const kiln_sequence_t* sequence,
                                      uint32_t index) {
  static const char* const kWords[] = {"dispatch", "copy", "fill",    "upload",
                                       "download", "loop", "fixpoint"};
  const kilni_dispatch_step_t* step = &sequence->steps[index];
  if (step->label != NULL) return step->label;
  if (step->kind != KILN_STEP_DISPATCH) return kWords[step->kind];
  const kilni_dispatch_recorded_t* recorded = step->recorded;
  if (recorded != NULL) {
    return recorded->label != NULL ? recorded->label
                                   : recorded->pipeline->label;
  }
  const kiln_prepared_t* prepared =
      step->given != NULL ? step->given : sequence->own.prepared[index];
  return prepared->label != NULL ? prepared->label : prepared->pipeline->label;
}

const char* kilni_dispatch_step_text(const kiln_sequence_t* sequence,
                                     uint32_t index,
                                     char text[KILNI_STEP_TEXT]) {
  if (sequence->steps[index].kind == KILN_STEP_DISPATCH ||
      sequence->steps[index].label != NULL) {
    (void)snprintf(text, KILNI_STEP_TEXT, "step %u of \"%.40s\" (\"%.40s\")",
                   (unsigned)index, sequence->label,
                   kilni_dispatch_step_label(sequence, index));
  } else {
    (void)snprintf(text, KILNI_STEP_TEXT, "step %u of \"%.40s\" (%s)",
                   (unsigned)index, sequence->label,
                   kilni_dispatch_step_label(sequence, index));
  }
  return text;
}

uint32_t kiln_sequence_step_count(const kiln_sequence_t* sequence) {
  return sequence == NULL ? 0 : sequence->step_count;
}

bool kiln_sequence_step(const kiln_sequence_t* sequence, uint32_t index,
                        kiln_sequence_step_t* out_step) {
  memset(out_step, 0, sizeof(*out_step));
  if (sequence == NULL || index >= sequence->step_count) return false;
  const kilni_dispatch_step_t* step = &sequence->steps[index];
  out_step->label = kilni_dispatch_step_label(sequence, index);
  out_step->kind = step->kind;
  out_step->body = step->body;
  out_step->count = step->count;
  if (step->kind == KILN_STEP_DISPATCH) {
    const kiln_prepared_t* prepared =
        step->given != NULL || sequence->own.prepared == NULL
            ? step->given
            : sequence->own.prepared[index];
    out_step->pipeline =
        // What was not recorded was given, or is prepared here.
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
        step->recorded != NULL ? step->recorded->pipeline : prepared->pipeline;
  } else if (step->kind == KILN_STEP_DOWNLOAD) {
    out_step->bytes = step->from.bytes;
  } else {
    out_step->bytes = step->to.bytes;
  }
  if (step->kind == KILN_STEP_FIXPOINT) {
    out_step->strategy =
        atomic_load(&sequence->finished)
            ? kilni_dispatch_fixpoint_strategy(sequence->own.fixpoints[index])
            : step->strategy;
    if (atomic_load(&sequence->finished)) {
      out_step->why =
          kilni_dispatch_fixpoint_why(sequence->own.fixpoints[index]);
    }
  }
  return true;
}
