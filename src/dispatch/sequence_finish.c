// SPDX-License-Identifier: Apache-2.0
//
// dispatch: sequences are checked, and instances of them made: what runs.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "dispatch/sequence_inside.h"

// ---- Places ----

static kiln_status_t out_of_place(const kiln_binding_t* place, uint64_t size) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE, "%llu bytes at %llu of a buffer of %llu",
                 (unsigned long long)place->bytes,
                 (unsigned long long)place->offset, (unsigned long long)size),
      "name bytes inside the buffer");
}

// A pointer's memory belongs to other code; the driver reports what it is.
static kiln_status_t find_pointer(kiln_device_t* device,
                                  const kiln_binding_t* place,
                                  kilni_dispatch_span_t* out_span) {
  out_span->address = place->value.address;
  out_span->bytes = place->bytes;
  if (place->bytes == 0) return kiln_ok();
  return kiln_buffer_adopt(device, place->value.address, place->bytes, NULL,
                           &out_span->buffer);
}

// Finds what a place refers to.
static kiln_status_t find_span(kiln_dispatcher_t* dispatcher,
                               const kiln_binding_t* place,
                               kilni_dispatch_span_t* out_span) {
  kilni_dispatch_span_t span;
  uint64_t size = 0;
  memset(&span, 0, sizeof(span));
  memset(out_span, 0, sizeof(*out_span));
  if (place->kind == KILN_BINDING_POINTER) {
    return find_pointer(dispatcher->device, place, out_span);
  }
  if (place->kind == KILN_BINDING_RESIDENT) {
    kilni_dispatch_resident_view_t view = {0, 0};
    KILNI_RETURN_IF_ERROR(
        kilni_dispatch_resident_look(dispatcher, place->value.resident, &view));
    size = view.bytes;
  } else if (place->kind == KILN_BINDING_BUFFER) {
    KILNI_CHECK_ARGUMENT(place->value.buffer != NULL, "buffer");
    if (place->value.buffer->device != dispatcher->device) {
      KILNI_RETURN_IF_ERROR(kilni_device_check_memory(
          dispatcher->device, place->value.buffer->device, "the buffer"));
    }
    size = kiln_buffer_size(place->value.buffer);
  } else {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "not a place in device memory"),
        "name one with kiln_bind_resident, kiln_bind_buffer or "
        "kiln_bind_pointer");
  }
  if (place->offset > size || place->bytes > size - place->offset) {
    return out_of_place(place, size);
  }
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_binding_keep(dispatcher, place, &span.buffer));
  if (place->kind == KILN_BINDING_RESIDENT) {
    span.resident = place->value.resident;
  }
  span.offset = place->offset;
  span.bytes = place->bytes == 0 ? size - place->offset : place->bytes;
  if (span.buffer != NULL) {
    span.address = kiln_buffer_address(span.buffer) + span.offset;
  }
  *out_span = span;
  return kiln_ok();
}

static kiln_status_t check_sizes(kilni_dispatch_step_t* step) {
  if (step->places[0].bytes == 0 && step->from.bytes <= step->to.bytes) {
    step->to.bytes = step->from.bytes;
  }
  if (step->places[1].bytes == 0 && step->to.bytes <= step->from.bytes) {
    step->from.bytes = step->to.bytes;
  }
  if (step->to.bytes != step->from.bytes) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "%llu bytes are copied to %llu",
                   (unsigned long long)step->from.bytes,
                   (unsigned long long)step->to.bytes),
        "give `bytes` of one of them, or the same of both");
  }
  uint64_t a = step->to.address;
  uint64_t b = step->from.address;
  if (step->to.bytes == 0 || a >= b + step->from.bytes ||
      b >= a + step->to.bytes) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "memory is copied over itself"),
      "copy through another buffer");
}

static kiln_status_t sequence_finish_check_values(
    const kilni_dispatch_step_t* step) {
  if (step->to.bytes % step->value_bytes == 0 &&
      step->to.address % step->value_bytes == 0) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "%llu bytes at %llu are not whole values of %u bytes",
                 (unsigned long long)step->to.bytes,
                 (unsigned long long)step->to.offset,
                 (unsigned)step->value_bytes),
      "begin and end at multiples of `value_bytes`");
}

static kiln_status_t sequence_finish_check_flag(
    const kilni_dispatch_step_t* step) {
  if (step->to.bytes == 4 && step->to.address % 4 == 0) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "a flag of %llu bytes at 0x%llx",
                 (unsigned long long)step->to.bytes,
                 (unsigned long long)step->to.address),
      "name 4 bytes at a multiple of 4");
}

static kiln_status_t find_places(kiln_sequence_t* sequence,
                                 kilni_dispatch_step_t* step) {
  kiln_dispatcher_t* dispatcher = sequence->dispatcher;
  if (step->places[0].kind != KILN_BINDING_NONE ||
      step->kind == KILN_STEP_FIXPOINT) {
    KILNI_RETURN_IF_ERROR(find_span(dispatcher, &step->places[0], &step->to));
  }
  if (step->places[1].kind != KILN_BINDING_NONE) {
    KILNI_RETURN_IF_ERROR(find_span(dispatcher, &step->places[1], &step->from));
  }
  switch (step->kind) {
    case KILN_STEP_COPY:
      return check_sizes(step);
    case KILN_STEP_FILL:
      return sequence_finish_check_values(step);
    case KILN_STEP_FIXPOINT:
      return sequence_finish_check_flag(step);
    default:
      return kiln_ok();
  }
}

// ---- Instances ----

// A round is preceded by another round, or by unknown work.
static kiln_status_t check_overlap(const kilni_dispatch_step_t* step) {
  const kiln_dispatch_options_t* options =
      step->given != NULL ? &step->given->options : &step->recorded->options;
  if (!step->in_fixpoint || options->overlap != KILN_SWITCH_ON) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "`overlap` in the body of a fixpoint"),
      "omit `overlap` there");
}

// The prepared dispatch of a step: from another instance, or from what was
// recorded, which goes then.
static kiln_status_t make_prepared(kiln_sequence_t* sequence, uint32_t index,
                                   const kilni_dispatch_instance_t* from,
                                   kiln_prepared_t** out_prepared) {
  kilni_dispatch_step_t* step = &sequence->steps[index];
  if (from != NULL) {
    return kilni_dispatch_prepared_clone(from->prepared[index], true,
                                         out_prepared);
  }
  KILNI_RETURN_IF_ERROR(check_overlap(step));
  if (step->given != NULL) {
    *out_prepared = step->given;
    step->given = NULL;
    return kiln_ok();
  }
  kilni_dispatch_recorded_t* recorded = step->recorded;
  return kiln_pipeline_prepare(recorded->pipeline, recorded->bindings,
                               recorded->count, &recorded->options,
                               out_prepared);
}

static kiln_status_t sequence_finish_make_step(
    kilni_dispatch_instance_t* instance, uint32_t index,
    const kilni_dispatch_instance_t* from) {
  kiln_sequence_t* sequence = instance->sequence;
  kilni_dispatch_step_t* step = &sequence->steps[index];
  kiln_status_t status = kiln_ok();
  if (step->kind == KILN_STEP_DISPATCH) {
    status = make_prepared(sequence, index, from, &instance->prepared[index]);
  }
  if (from == NULL && kiln_status_is_ok(status)) {
    status = find_places(sequence, step);
  }
  if (kiln_status_is_ok(status)) return kiln_ok();
  char text[KILNI_STEP_TEXT];
  return KILNI_ANNOTATE(status, "%s",
                        kilni_dispatch_step_text(sequence, index, text));
}

static kiln_status_t make_fixpoint(kilni_dispatch_instance_t* instance,
                                   uint32_t index) {
  kiln_status_t status = kilni_dispatch_fixpoint_create(
      instance, index, &instance->fixpoints[index]);
  if (kiln_status_is_ok(status)) return kiln_ok();
  char text[KILNI_STEP_TEXT];
  return KILNI_ANNOTATE(
      status, "%s", kilni_dispatch_step_text(instance->sequence, index, text));
}

kiln_status_t kilni_dispatch_instance_init(
    kilni_dispatch_instance_t* instance, kiln_sequence_t* sequence,
    const kilni_dispatch_instance_t* from) {
  kiln_allocator_t allocator = sequence->dispatcher->allocator;
  uint32_t count = sequence->step_count;
  void* block = NULL;
  memset(instance, 0, sizeof(*instance));
  instance->sequence = sequence;
  instance->is_replay = from != NULL;
  atomic_init(&instance->frees,
              atomic_load(&sequence->dispatcher->residents.frees));
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, count, sizeof(kiln_prepared_t*), &block));
  instance->prepared = block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, count, sizeof(kilni_dispatch_fixpoint_t*), &block));
  instance->fixpoints = block;
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(sequence_finish_make_step(instance, i, from));
  }
  // Those inside first.
  for (uint32_t i = count; i-- > 0;) {
    if (sequence->steps[i].kind != KILN_STEP_FIXPOINT) continue;
    KILNI_RETURN_IF_ERROR(make_fixpoint(instance, i));
  }
  return kiln_ok();
}

void kilni_dispatch_instance_deinit(kilni_dispatch_instance_t* instance) {
  kiln_sequence_t* sequence = instance->sequence;
  if (sequence == NULL) return;
  kiln_allocator_t allocator = sequence->dispatcher->allocator;
  uint32_t count = sequence->step_count;
  for (uint32_t i = 0; instance->fixpoints != NULL && i < count; i++) {
    kilni_dispatch_fixpoint_destroy(instance->fixpoints[i]);
  }
  for (uint32_t i = 0; instance->prepared != NULL && i < count; i++) {
    kiln_prepared_release(instance->prepared[i]);
  }
  kilni_base_free_array(allocator, instance->fixpoints, count,
                        sizeof(kilni_dispatch_fixpoint_t*));
  kilni_base_free_array(allocator, instance->prepared, count,
                        sizeof(kiln_prepared_t*));
  memset(instance, 0, sizeof(*instance));
}

// ---- Finishing ----

static void look_over(kiln_sequence_t* sequence) {
  for (uint32_t i = 0; i < sequence->step_count; i++) {
    kilni_dispatch_step_t* step = &sequence->steps[i];
    const kiln_prepared_t* prepared = sequence->own.prepared[i];
    kilni_dispatch_recorded_free(sequence->dispatcher->allocator,
                                 step->recorded);
    step->recorded = NULL;
    if (prepared != NULL && prepared->grid != NULL) sequence->has_grids = true;
    if (step->kind == KILN_STEP_UPLOAD || step->kind == KILN_STEP_DOWNLOAD) {
      sequence->has_transfers = true;
    }
    if (step->kind == KILN_STEP_FIXPOINT) sequence->has_fixpoints = true;
    // A WHILE node is in a graph of its own, which is launched: a capture
    // cannot contain that, and an attempt invalidates it.
    if (step->kind == KILN_STEP_FIXPOINT &&
        kilni_dispatch_fixpoint_strategy(sequence->own.fixpoints[i]) !=
            KILN_FIXPOINT_COOPERATIVE) {
      sequence->refuses_capture = true;
    }
  }
}

// What to do about a step cannot be done to one that is recorded.
static kiln_status_t record_anew(kiln_status_t status) {
  const char* fix = kiln_status_fix(status);
  char text[1024];
  if (fix == NULL) return status;
  (void)snprintf(text, sizeof(text), "%s", fix);
  return kilni_base_status_with_fix(status,
                                    "%s; then record the sequence again", text);
}

kiln_status_t kiln_sequence_finish(kiln_sequence_t* sequence) {
  KILNI_CHECK_ARGUMENT(sequence != NULL, "sequence");
  if (atomic_load(&sequence->finished) || sequence->failed) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "\"%s\" %s", sequence->label,
                   sequence->failed ? "could not be finished before"
                                    : "was finished before"),
        "%s",
        sequence->failed ? "record it again, without the error reported then"
                         : "finish a sequence only once");
  }
  if (sequence->open != KILNI_NO_STEP) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the body of step %u of \"%s\" is open",
                   (unsigned)sequence->open, sequence->label),
        "end it with kiln_sequence_end_body");
  }
  kiln_device_t* device = sequence->dispatcher->device;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  kiln_status_t status =
      kilni_dispatch_instance_init(&sequence->own, sequence, NULL);
  if (!kiln_status_is_ok(status)) {
    sequence->failed = true;
    return record_anew(status);
  }
  look_over(sequence);
  atomic_store(&sequence->finished, true);
  return kiln_ok();
}

// ---- How runs end ----

kiln_status_t kilni_dispatch_instance_check_freed(
    kilni_dispatch_instance_t* instance) {
  kiln_sequence_t* sequence = instance->sequence;
  kiln_dispatcher_t* dispatcher = sequence->dispatcher;
  char text[KILNI_STEP_TEXT];
  uint32_t frees = atomic_load(&dispatcher->residents.frees);
  if (frees == atomic_load(&instance->frees)) return kiln_ok();
  for (uint32_t i = 0; i < sequence->step_count; i++) {
    const kilni_dispatch_step_t* step = &sequence->steps[i];
    const kiln_resident_t* names[] = {&step->to.resident, &step->from.resident};
    kiln_status_t status = kiln_ok();
    if (instance->prepared[i] != NULL) {
      status = kilni_dispatch_prepared_check_freed(instance->prepared[i]);
    }
    for (int j = 0; j < 2 && kiln_status_is_ok(status); j++) {
      kilni_dispatch_resident_view_t view = {0, 0};
      if (names[j]->id == 0) continue;
      status = kilni_dispatch_resident_look(dispatcher, *names[j], &view);
      if (kiln_status_is_ok(status)) continue;
      kiln_status_free(status);
      status = kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_STATE, "its resident buffer was freed"),
          "free it after the last run, or record another sequence");
    }
    if (kiln_status_is_ok(status)) continue;
    return KILNI_ANNOTATE(status, "%s",
                          kilni_dispatch_step_text(sequence, i, text));
  }
  atomic_store(&instance->frees, frees);
  return kiln_ok();
}

kiln_status_t kilni_dispatch_rounds_status(const char* label, uint32_t rounds) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(NOT_CONVERGED,
                 "\"%s\": a fixpoint had not ended after %u rounds", label,
                 (unsigned)rounds),
      "allow more rounds (`limit`), or check whether the body ever leaves the "
      "flag 0");
}

bool kilni_dispatch_instance_find_trap(kilni_dispatch_instance_t* instance,
                                       kiln_trap_t* out_trap,
                                       uint32_t* out_step) {
  const kiln_sequence_t* sequence = instance->sequence;
  for (uint32_t i = 0; i < sequence->step_count; i++) {
    const kiln_prepared_t* prepared = instance->prepared[i];
    if (prepared == NULL || prepared->record == NULL) continue;
    if (!kilni_dispatch_trap_is_set(prepared->record)) continue;
    kilni_dispatch_trap_read(prepared->record->host, out_trap);
    *out_step = i;
    return true;
  }
  return false;
}

bool kilni_dispatch_instance_find_limit(kilni_dispatch_instance_t* instance,
                                        uint32_t* out_rounds,
                                        uint32_t* out_step) {
  const kiln_sequence_t* sequence = instance->sequence;
  if (!sequence->has_fixpoints) return false;
  for (uint32_t i = 0; i < sequence->step_count; i++) {
    kilni_dispatch_fixpoint_end_t end = {0, false};
    if (instance->fixpoints[i] == NULL) continue;
    kilni_dispatch_fixpoint_end(instance->fixpoints[i], &end);
    if (!end.reached_limit) continue;
    *out_rounds = end.rounds;
    *out_step = i;
    return true;
  }
  return false;
}

kiln_status_t kilni_dispatch_instance_check(kilni_dispatch_instance_t* instance,
                                            kiln_trap_t* out_trap,
                                            uint32_t* out_step) {
  const kiln_sequence_t* sequence = instance->sequence;
  char text[KILNI_STEP_TEXT];
  kiln_status_t first = kiln_ok();
  for (uint32_t i = 0; i < sequence->step_count; i++) {
    kiln_trap_t trap;
    if (instance->prepared[i] == NULL) continue;
    kiln_status_t status = kiln_prepared_check(instance->prepared[i], &trap);
    if (kiln_status_is_ok(status)) continue;
    if (!kiln_status_is_ok(first)) {
      kiln_status_free(status);
      continue;
    }
    if (out_trap != NULL) *out_trap = trap;
    if (out_step != NULL) *out_step = i;
    first = KILNI_ANNOTATE(status, "%s",
                           kilni_dispatch_step_text(sequence, i, text));
  }
  return first;
}

kiln_status_t kilni_dispatch_instance_rounds(
    kilni_dispatch_instance_t* instance, uint32_t step, uint32_t* out_rounds) {
  const kiln_sequence_t* sequence = instance->sequence;
  if (step >= sequence->step_count || instance->fixpoints[step] == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "step %u of \"%s\" is not a fixpoint",
                   (unsigned)step, sequence->label),
        "pass the number that kiln_sequence_begin_fixpoint returned");
  }
  kilni_dispatch_fixpoint_end_t end = {0, false};
  kilni_dispatch_fixpoint_end(instance->fixpoints[step], &end);
  *out_rounds = end.rounds;
  return kiln_ok();
}
