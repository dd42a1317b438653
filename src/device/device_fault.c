// SPDX-License-Identifier: Apache-2.0
//
// device: what a kernel did wrong, where the driver knows it: in statuses, as a
// record, as text.
//
// A status reports what the kernel did, and the call that met the fault only in
// its last line: which call that is depends on timing.
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "base/status_make.h"
#include "base/str.h"
#include "device/device_scope.h"
#include "kiln/fault.h"

enum { MESSAGE_BYTES = 1024, NOTES_BYTES = 4096, FIX_BYTES = 512 };

// False where there is none, or the driver does not know.
static bool find_fault(const kiln_device_t* device, kiln_fault_t* out_fault) {
  const kiln_device_t* whole = device->whole;
  *out_fault = kiln_fault_default();
  if (device->fault == NULL || kilni_device_is_forked(device)) return false;
  if (atomic_load_explicit(&whole->place_state, memory_order_acquire) ==
      KILNI_PLACE_KNOWN) {
    *out_fault = whole->place;
    if (out_fault->kind != KILN_FAULT_NONE) return true;
  }
  device->fault((uint32_t)device->handle, out_fault);
  return out_fault->kind != KILN_FAULT_NONE;
}

static kiln_status_t annotate_lines(kiln_status_t status, const char* text) {
  kiln_string_view_t rest = kilni_base_sv(text);
  kiln_string_view_t line;
  while (kilni_base_sv_split(&rest, '\n', &line)) {
    if (line.size > 0) status = KILNI_ANNOTATE(status, "%.*s", KILNI_SV(line));
  }
  return status;
}

kiln_status_t kilni_device_tell_fault(const kiln_device_t* device,
                                      kiln_status_t status, const char* call) {
  kiln_fault_t fault;
  if (device->fault == NULL) return status;
  if (!find_fault(device, &fault)) {
    return kilni_base_status_with_fix(
        status, "look at the first error that named this device");
  }
  char text[MESSAGE_BYTES];
  char notes[NOTES_BYTES];
  char fix[FIX_BYTES];
  kiln_status_native_t native = {0};
  kiln_fault_message(&fault, sizeof(text), text, NULL);
  kiln_fault_notes(&fault, sizeof(notes), notes, NULL);
  kiln_fault_fix(&fault, sizeof(fix), fix, NULL);
  kiln_status_t told = KILNI_FAIL(DEVICE_LOST, "%s", text);
  if (kiln_status_native(status, &native)) {
    told = kilni_base_status_with_native(told, native.domain, native.number,
                                         native.name);
  }
  kiln_status_free(status);
  told = annotate_lines(told, notes);
  told = KILNI_ANNOTATE(
      told,
      device->info.kind == KILN_DEVICE_KIND_SOFT
          ? "\"%s\" is lost to this process, until every runtime that has "
            "opened a software device is released; \"%s\" met it"
          : "\"%s\" is lost to this process; \"%s\" met it",
      device->name, call);
  return kilni_base_status_with_fix(told, "%s", fix);
}

kiln_status_t kilni_device_end_of_time(kiln_device_t* device,
                                       kiln_status_t status, const char* fix) {
  const char* next = kilni_device_give_up(device);
  kiln_fault_t fault;
  if (!find_fault(device, &fault)) {
    return kilni_base_status_with_fix(status, "%s; %s", fix, next);
  }
  char notes[NOTES_BYTES];
  char own[FIX_BYTES];
  kiln_fault_notes(&fault, sizeof(notes), notes, NULL);
  kiln_fault_fix(&fault, sizeof(own), own, NULL);
  return kilni_base_status_with_fix(annotate_lines(status, notes), "%s; %s",
                                    own, next);
}

kiln_status_t kiln_device_fault(const kiln_device_t* device,
                                kiln_fault_t* out_fault) {
  KILNI_CHECK_ARGUMENT(out_fault != NULL, "out_fault");
  kiln_fault_t fault;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(out_fault, "kiln_fault_t",
                                                sizeof(fault), &fault));
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  uint32_t size = out_fault->struct_size;
  if (size > sizeof(fault)) size = (uint32_t)sizeof(fault);
  (void)find_fault(device, &fault);
  fault.struct_size = out_fault->struct_size;
  memcpy(out_fault, &fault, size);
  return kiln_ok();
}

void kiln_device_fault_text(const kiln_device_t* device, size_t capacity,
                            char* buffer, size_t* out_length) {
  char text[MESSAGE_BYTES + NOTES_BYTES] = "";
  kiln_fault_t fault;
  size_t length = 0;
  if (find_fault(device, &fault)) {
    kiln_fault_message(&fault, MESSAGE_BYTES, text, NULL);
    length = strlen(text);
    text[length++] = '\n';
    kiln_fault_notes(&fault, sizeof(text) - length, text + length, NULL);
    length += strlen(text + length);
  }
  if (out_length != NULL) *out_length = length;
  if (capacity == 0) return;
  size_t copied = length < capacity ? length : capacity - 1;
  memcpy(buffer, text, copied);
  buffer[copied] = 0;
}
