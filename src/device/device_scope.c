// SPDX-License-Identifier: Apache-2.0
//
// device: entering and leaving every driver call.
//
// A call leaves the caller's current context as it was: it is asked first and
// switched only if it differs, and only for rows that need one. A call that is
// not allowed while some stream of the process is captured is made in the
// relaxed capture mode of its thread, so that it neither fails nor ends a
// capture that others are making.
#include <string.h>

#include "base/log_line.h"
#include "base/status_make.h"
#include "base/str.h"
#include "device/device_scope.h"
#include "kiln/fault.h"

// The function itself, not its declaration for an analyzer.
#undef kilni_device_lost_status

bool kilni_device_is_forked(const kiln_device_t* device) {
  return kilni_base_host_is_forked(device->host);
}

bool kilni_device_is_lost(const kiln_device_t* device) {
  return atomic_load_explicit(&device->whole->lost, memory_order_acquire);
}

kilni_device_alive_t kilni_device_alive(const kiln_device_t* device) {
  static const uint64_t kNobodyTells = 0;
  const volatile uint64_t* mark = device->host->fork_mark;
  kilni_device_alive_t alive = {mark != NULL ? mark : &kNobodyTells,
                                &device->whole->lost};
  return alive;
}

void kilni_device_mark_lost(kiln_device_t* device) {
  device = device->whole;
  atomic_store_explicit(&device->lost, true, memory_order_release);
  if (device->lost_too != NULL) {
    atomic_store_explicit(device->lost_too, true, memory_order_release);
  }
  kilni_device_late_t* late =
      atomic_load_explicit(&device->late, memory_order_acquire);
  if (late != NULL) kilni_device_late_lose(late);
}

// The owner of the work: all objects over a context, of all runtimes.
static uint64_t owner_of(const kiln_device_t* device) {
  return (uint64_t)(uintptr_t)device->whole;
}

const char* kilni_device_give_up(kiln_device_t* device) {
  kilni_device_mark_lost(device);
  if (device->give_up == NULL) {
    return "work that runs can only be ended with the process";
  }
  kiln_fault_t place = kiln_fault_default();
  device->give_up((uint32_t)device->handle, owner_of(device), &place);
  kiln_device_t* whole = device->whole;
  unsigned int none = KILNI_PLACE_NONE;
  if (atomic_compare_exchange_strong(&whole->place_state, &none,
                                     KILNI_PLACE_WRITING)) {
    whole->place = place;
    atomic_store_explicit(&whole->place_state, KILNI_PLACE_KNOWN,
                          memory_order_release);
  }
  return "what ran was stopped: open the device anew";
}

// A software device recovers, a GPU does not: after its time limit at once,
// after a fault when no code in the process has it open any more.
static kiln_status_t lost_soft_status(const kiln_device_t* device) {
  kiln_fault_t fault = kiln_fault_default();
  device->fault((uint32_t)device->handle, &fault);
  if (fault.kind == KILN_FAULT_NONE) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(DEVICE_LOST,
                   "\"%s\" is lost to this process: a kernel ran over its time "
                   "limit",
                   device->name),
        "open the device anew, or end the process; what was made on the lost "
        "device is lost with it");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(DEVICE_LOST, "\"%s\" is lost to this process: %s",
                 device->name,
                 fault.kind == KILN_FAULT_HOST_MEMORY
                     ? "the host had no memory left for an earlier kernel"
                     : "an earlier kernel faulted on it"),
      "end the process, or release every runtime that has opened a software "
      "device, with all that was opened from it, and open it in a new one; the "
      "first error that named this device gives the cause");
}

kiln_status_t kilni_device_lost_status(const kiln_device_t* device) {
  if (device->fault != NULL && device->info.kind == KILN_DEVICE_KIND_SOFT &&
      !kilni_device_is_forked(device)) {
    return lost_soft_status(device);
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(DEVICE_LOST,
                 "\"%s\" is lost to this process: an earlier kernel faulted on "
                 "it or ran over its time limit",
                 device->name),
      "end the process and look at the first error that named this device");
}

kiln_status_t kilni_device_check_not_lost(const kiln_device_t* device) {
  return kilni_device_is_lost(device) ? kilni_device_lost_status(device)
                                      : kiln_ok();
}

kiln_status_t kilni_device_check(kiln_device_t* device, kiln_cu_result_t result,
                                 const char* call, const char* file, int line) {
  if (result == KILN_CU_SUCCESS) return kiln_ok();
  kiln_status_t status = kilni_table_cuda_status(device->table, result, call,
                                                 KILNI_MODULE, file, line);
  if (result == KILN_CU_ERROR_OUT_OF_MEMORY &&
      device->info.kind == KILN_DEVICE_KIND_SOFT) {
    return kilni_base_status_with_fix(
        status,
        "free device memory, use smaller buffers, or give this process more "
        "memory: the software device has half of the memory that is available "
        "to the process");
  }
  if (!kilni_table_cuda_result_is_sticky(result)) return status;
  kilni_device_mark_lost(device);
  return kilni_device_tell_fault(device, status, call);
}

// Asks what no stream and no capture has a part in.
static bool is_context_lost(const kiln_device_t* device) {
  const kiln_cuda_table_t* table = device->table;
  kiln_cu_context_t previous = NULL;
  size_t available = 0;
  size_t total = 0;
  if (table->cuCtxGetCurrent(&previous) != KILN_CU_SUCCESS) return false;
  kiln_cu_result_t result = table->cuCtxSetCurrent(device->whole->context);
  if (result == KILN_CU_SUCCESS) {
    result = table->cuMemGetInfo(&available, &total);
    (void)table->cuCtxSetCurrent(previous);
  }
  return kilni_table_cuda_result_is_sticky(result);
}

kiln_status_t kilni_device_check_across(kiln_device_t* device,
                                        kiln_device_t* other,
                                        kiln_cu_result_t result,
                                        const char* call, const char* file,
                                        int line) {
  if (kilni_table_cuda_result_is_sticky(result) && is_context_lost(other)) {
    if (!is_context_lost(device)) device = other;
    kilni_device_mark_lost(other);
  }
  return kilni_device_check(device, result, call, file, line);
}

kiln_status_t kilni_device_check_driver(const kiln_device_t* device,
                                        const kiln_device_t* other,
                                        const char* what) {
  if (device->table == other->table) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "%s is of \"%s\", which has a different driver than \"%s\"",
                 what, other->name, device->name),
      "use objects of devices that one runtime has opened through one driver");
}

kiln_status_t kilni_device_check_same(const kiln_device_t* device,
                                      const kiln_device_t* other,
                                      const char* what) {
  if (device == other) return kiln_ok();
  if (device->table == other->table && device->context == other->context) {
    // A time limit ends one of several objects over a context.
    KILNI_RETURN_IF_ERROR(kilni_device_check_not_lost(device));
    return kilni_device_check_not_lost(other);
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "%s is of \"%s\", not of \"%s\"", what,
                 other->name, device->name),
      "make all objects of one operation on one device");
}

kiln_status_t kilni_device_check_memory(const kiln_device_t* device,
                                        const kiln_device_t* other,
                                        const char* what) {
  if (device->whole == other->whole) return kiln_ok();
  return kilni_device_check_same(device->whole, other->whole, what);
}

// ---- Into a call ----

static kiln_cu_result_t make_current(kilni_device_scope_t* scope) {
  const kiln_cuda_table_t* table = scope->device->table;
  if (scope->device->act_for != NULL) {
    scope->device->act_for(owner_of(scope->device));
  }
  kiln_cu_result_t result = table->cuCtxGetCurrent(&scope->previous);
  if (result != KILN_CU_SUCCESS) return result;
  if (scope->previous == scope->device->context) return KILN_CU_SUCCESS;
  result = table->cuCtxSetCurrent(scope->device->context);
  scope->switched = result == KILN_CU_SUCCESS;
  return result;
}

static kiln_cu_result_t make_relaxed(kilni_device_scope_t* scope) {
  const kiln_cuda_table_t* table = scope->device->table;
  scope->mode = KILN_CU_STREAM_CAPTURE_MODE_RELAXED;
  kiln_cu_result_t result =
      table->cuThreadExchangeStreamCaptureMode(&scope->mode);
  scope->relaxed = result == KILN_CU_SUCCESS &&
                   scope->mode != KILN_CU_STREAM_CAPTURE_MODE_RELAXED;
  return result;
}

static kiln_status_t idle(void) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "the stream of a graph builder that is not capturing takes no "
                 "work"),
      "put work on it between kiln_graph_builder_begin and _end, or use "
      "another stream");
}

static kiln_status_t left(void) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "the stream is still captured: the last release of its graph "
                 "builder was not on the thread that began the capture, and "
                 "the driver lets no other thread end it"),
      "use the stream once on the thread that began the capture "
      "(kiln_stream_query suffices), which ends it, or make another stream; "
      "close graph builders on the thread that began them");
}

static kiln_status_t body(void) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "the stream of a graph builder takes no work while a "
                 "conditional body of it is captured"),
      "end the body's builder first (kiln_graph_builder_end), or put the work "
      "on the stream of the body");
}

static kiln_status_t scope_refuse(uint32_t way) {
  if ((way & KILNI_WAY_LEFT) != 0) return left();
  return (way & KILNI_WAY_IDLE) != 0 ? idle() : body();
}

static kiln_status_t scope_prepare(kilni_device_scope_t* scope, uint32_t way) {
  kiln_device_t* device = scope->device;
  if ((way & (KILNI_WAY_IDLE | KILNI_WAY_LEFT | KILNI_WAY_BODY)) != 0) {
    return scope_refuse(way);
  }
  if ((way & KILNI_WAY_CURRENT) != 0) {
    KILNI_RETURN_IF_ERROR(
        KILNI_DEVICE_CHECK(device, make_current(scope), "cuCtxSetCurrent"));
  }
  if ((way & KILNI_WAY_RELAXED) == 0) return kiln_ok();
  kiln_status_t status = KILNI_DEVICE_CHECK(
      device, make_relaxed(scope), "cuThreadExchangeStreamCaptureMode");
  if (kiln_status_is_ok(status)) return kiln_ok();
  return kilni_device_scope_leave(scope, status);
}

kiln_status_t kilni_device_scope_begin(kilni_device_scope_t* scope,
                                       kiln_device_t* device, uint32_t way) {
  scope->device = device;
  scope->switched = false;
  scope->relaxed = false;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  return way == 0 ? kiln_ok() : scope_prepare(scope, way);
}

static uint32_t way_of(kilni_cuda_row_id_t row) {
  const kilni_table_row_t* columns = kilni_table_cuda_row(row);
  uint32_t way = 0;
  if (columns->context == KILNI_CONTEXT_CURRENT) way |= KILNI_WAY_CURRENT;
  if (columns->capture == KILNI_CAPTURE_UNSAFE) way |= KILNI_WAY_RELAXED;
  return way;
}

kiln_status_t kilni_device_scope_enter(kilni_device_scope_t* scope,
                                       kiln_device_t* device,
                                       kilni_cuda_row_id_t row) {
  return kilni_device_scope_begin(scope, device, way_of(row));
}

// ---- And out of it ----

static kiln_cu_result_t put_mode_back(kilni_device_scope_t* scope) {
  if (!scope->relaxed) return KILN_CU_SUCCESS;
  scope->relaxed = false;
  kiln_cu_capture_mode_t mode = scope->mode;
  return scope->device->table->cuThreadExchangeStreamCaptureMode(&mode);
}

static kiln_cu_result_t put_context_back(kilni_device_scope_t* scope) {
  if (!scope->switched) return KILN_CU_SUCCESS;
  scope->switched = false;
  return scope->device->table->cuCtxSetCurrent(scope->previous);
}

// Not tried again: what fails here (a context that was destroyed meanwhile, a
// driver that ends, a sticky error) fails again.
static kiln_status_t scope_put_back(kilni_device_scope_t* scope,
                                    kiln_status_t status) {
  kiln_device_t* device = scope->device;
  kiln_status_t failed = KILNI_DEVICE_CHECK(
      device, put_mode_back(scope), "cuThreadExchangeStreamCaptureMode");
  if (!kiln_status_is_ok(failed)) {
    status = KILNI_ANNOTATE(
        kilni_base_status_join(status, failed),
        "the thread's capture mode was not restored: it stays relaxed");
  }
  failed =
      KILNI_DEVICE_CHECK(device, put_context_back(scope), "cuCtxSetCurrent");
  if (!kiln_status_is_ok(failed)) {
    status = KILNI_ANNOTATE(
        kilni_base_status_join(status, failed),
        "the caller's context was not restored: that of \"%s\" stays current",
        device->name);
  }
  return status;
}

kiln_status_t kilni_device_scope_leave(kilni_device_scope_t* scope,
                                       kiln_status_t status) {
  if (!scope->switched && !scope->relaxed) return status;
  if (kiln_status_code(status) != KILN_STATUS_NOT_READY) {
    return scope_put_back(scope, status);
  }
  // An answer and no error: it must not hide one.
  kiln_status_t failed = scope_put_back(scope, NULL);
  if (kiln_status_is_ok(failed)) return status;
  kiln_status_free(status);
  return failed;
}

kiln_status_t kilni_device_scope_leave_made(kilni_device_scope_t* scope,
                                            kiln_status_t status,
                                            const char* call) {
  if (!kiln_status_is_ok(status)) {
    return kilni_device_scope_leave(scope, status);
  }
  status = kilni_device_scope_leave(scope, NULL);
  if (kiln_status_is_ok(status) || kilni_device_is_lost(scope->device)) {
    return status;
  }
  return KILNI_ANNOTATE(status, "what %s had made has been destroyed", call);
}

// ---- The same in a destructor ----

bool kilni_device_scope_begin_end(kilni_device_scope_t* scope,
                                  kiln_device_t* device, uint32_t way) {
  memset(scope, 0, sizeof(*scope));
  scope->device = device;
  if (kilni_device_is_lost(device)) return false;
  if ((way & KILNI_WAY_CURRENT) != 0) (void)make_current(scope);
  if ((way & KILNI_WAY_RELAXED) != 0) (void)make_relaxed(scope);
  return true;
}

// A destructor can report to the log only.
static void scope_tell(kiln_device_t* device, kiln_cu_result_t result,
                       const char* call, const char* doing) {
  if (result == KILN_CU_SUCCESS || result == KILN_CU_ERROR_DEINITIALIZED) {
    return;
  }
  const char* name = kilni_table_cuda_result_name(result);
  KILNI_LOG(&device->host->log, WARNING, "%s of \"%s\"%s gave %s", call,
            device->name, doing, name ? name : "an unknown result");
  if (kilni_table_cuda_result_is_sticky(result)) kilni_device_mark_lost(device);
}

void kilni_device_scope_leave_end(kilni_device_scope_t* scope,
                                  kiln_cu_result_t result, const char* call) {
  kiln_device_t* device = scope->device;
  scope_tell(device, result, call, "");
  scope_tell(device, put_mode_back(scope), "cuThreadExchangeStreamCaptureMode",
             " after a destructor");
  scope_tell(device, put_context_back(scope), "cuCtxSetCurrent",
             " after a destructor");
}

void kilni_device_wait_end(kiln_device_t* device) {
  kilni_device_scope_t scope;
  if (!kilni_device_scope_begin_end(&scope, device,
                                    KILNI_WAY_cuCtxSynchronize)) {
    return;
  }
  kilni_device_scope_leave_end(&scope, device->table->cuCtxSynchronize(),
                               "cuCtxSynchronize");
}
