// SPDX-License-Identifier: Apache-2.0
//
// device: the way into and out of every driver call.
//
// A call leaves the caller's current context as it was: it is asked first and
// switched only if it differs, and only for rows that need one.
#include <string.h>

#include "base/log_line.h"
#include "base/str.h"
#include "device/device_inside.h"

enum { FAULT_TEXT_BYTES = 2048, FAULT_MAX_LINES = 16 };

bool kilni_device_is_forked(const kiln_device_t* device) {
  return kilni_host_is_forked(device->host);
}

bool kilni_device_is_lost(const kiln_device_t* device) {
  return atomic_load_explicit(&device->lost, memory_order_acquire);
}

void kilni_device_mark_lost(kiln_device_t* device) {
  atomic_store_explicit(&device->lost, true, memory_order_release);
  if (device->lost_too != NULL) {
    atomic_store_explicit(device->lost_too, true, memory_order_release);
  }
}

kiln_status_t kilni_device_annotate_fault(const kiln_device_t* device,
                                          kiln_status_t status) {
  if (device->fault_text == NULL) return status;
  char text[FAULT_TEXT_BYTES];
  text[0] = 0;
  device->fault_text(text, sizeof(text));
  kiln_string_view_t rest = kilni_sv(text);
  kiln_string_view_t line;
  for (int i = 0; i < FAULT_MAX_LINES && kilni_sv_split(&rest, '\n', &line);
       i++) {
    if (line.size > 0) status = KILNI_ANNOTATE(status, "%.*s", KILNI_SV(line));
  }
  return status;
}

kiln_status_t kilni_device_lost_status(const kiln_device_t* device) {
  return kilni_status_with_fix(
      KILNI_FAIL(DEVICE_LOST,
                 "\"%s\" is lost to this process: an earlier kernel faulted on "
                 "it or ran over its time limit",
                 device->name),
      "end the process and look at the first error that named this device");
}

kiln_status_t kilni_device_check(kiln_device_t* device, kiln_cu_result_t result,
                                 const char* call, const char* file, int line) {
  if (result == KILN_CU_SUCCESS) return NULL;
  kiln_status_t status =
      kilni_cuda_status(device->table, result, call, KILNI_ROOM, file, line);
  if (!kilni_cuda_result_is_sticky(result)) return status;
  kilni_device_mark_lost(device);
  return kilni_device_annotate_fault(device, status);
}

kiln_status_t kilni_device_check_same(const kiln_device_t* device,
                                      const kiln_device_t* other,
                                      const char* what) {
  if (device == other) return NULL;
  if (device->table == other->table && device->context == other->context) {
    return NULL;
  }
  return kilni_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "%s is of \"%s\" and not of \"%s\"", what,
                 other->name, device->name),
      "make all objects of one operation on one device");
}

// Whether a row needs the device's context to be current. Our streams are
// never a default stream, so FROM_STREAM rows know theirs.
static bool needs_context(kilni_cuda_row_id_t row) {
  return kilni_cuda_row(row)->context == KILNI_CONTEXT_CURRENT;
}

static kiln_cu_result_t make_current(kilni_scope_t* scope) {
  const kiln_cuda_table_t* table = scope->device->table;
  kiln_cu_result_t result = table->cuCtxGetCurrent(&scope->previous);
  if (result != KILN_CU_SUCCESS) return result;
  if (scope->previous == scope->device->context) return KILN_CU_SUCCESS;
  result = table->cuCtxSetCurrent(scope->device->context);
  scope->switched = result == KILN_CU_SUCCESS;
  return result;
}

kiln_status_t kilni_scope_enter(kilni_scope_t* scope, kiln_device_t* device,
                                kilni_cuda_row_id_t row) {
  memset(scope, 0, sizeof(*scope));
  scope->device = device;
  KILNI_RETURN_IF_ERROR(kilni_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  if (!needs_context(row)) return NULL;
  return KILNI_DEVICE_CHECK(device, make_current(scope), "cuCtxSetCurrent");
}

kiln_status_t kilni_scope_leave(kilni_scope_t* scope, kiln_status_t status) {
  if (!scope->switched) return status;
  scope->switched = false;
  return kilni_status_join(
      status,
      KILNI_DEVICE_CHECK(scope->device,
                         scope->device->table->cuCtxSetCurrent(scope->previous),
                         "cuCtxSetCurrent"));
}

bool kilni_scope_enter_end(kilni_scope_t* scope, kiln_device_t* device,
                           kilni_cuda_row_id_t row) {
  memset(scope, 0, sizeof(*scope));
  scope->device = device;
  if (kilni_device_is_lost(device)) return false;
  if (needs_context(row)) (void)make_current(scope);
  return true;
}

void kilni_scope_leave_end(kilni_scope_t* scope, kiln_cu_result_t result,
                           const char* call) {
  kiln_device_t* device = scope->device;
  if (result != KILN_CU_SUCCESS && result != KILN_CU_ERROR_DEINITIALIZED) {
    // A destructor has nobody to tell but the log.
    const char* name = kilni_cuda_result_name(result);
    KILNI_LOG(&device->host->log, WARNING, "%s of \"%s\" gave %s", call,
              device->name, name ? name : "an unknown result");
    if (kilni_cuda_result_is_sticky(result)) kilni_device_mark_lost(device);
  }
  if (scope->switched) {
    (void)device->table->cuCtxSetCurrent(scope->previous);
  }
}
