// SPDX-License-Identifier: Apache-2.0
//
// soft: the process state of the software driver, and nothing else: which
// driver is running, and each thread's current contexts.
//
// A row has the driver's own signature and so no user pointer; this is the one
// file of the module with mutable globals (src/GLOBALS names them).
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_global.h"
#include "soft/driver/soft_graph.h"
#include "soft/soft.h"
#include "table/cuda_abi.h"

// The functions themselves, not their declarations for an analyzer.
#undef kilni_soft_enter_object
#undef kilni_soft_leave
#undef kilni_soft_result

#define BEING_TAKEN UINT64_MAX

// The software driver of this process. thread-safe
static struct {
  kilni_base_mutex_t lock;  // of start and stop
  _Atomic(kilni_soft_driver_t*) driver;
  // The process that owns all this: 0 none yet, BEING_TAKEN while a child takes
  // it.
  _Atomic uint64_t process_id;
  uint32_t users;
  _Atomic uint32_t epoch;    // counts starts
  _Atomic uint64_t threads;  // that were ever numbered
} kilni_soft_global = {.lock = {PTHREAD_MUTEX_INITIALIZER}};

// What the driver knows of one thread. one-thread
static _Thread_local struct {
  uint64_t number;  // of all threads ever; 0: not asked for yet
  uint32_t epoch;   // of the driver that the rest belongs to
  uint32_t depth;
  uint32_t in_callback;
  uint64_t acts_for;
  const void* offered_text;  // NULL: none
  kilni_image_ptx_module_t* offered_tree;
  kiln_cu_capture_mode_t capture_mode;
  uint64_t thread_streams[KILNI_SOFT_DEVICES_MOST];
  uint64_t stack[KILNI_SOFT_STACK_LIMIT];
} kilni_soft_thread;

// In a child the lock may be a lost thread's, and the driver has no threads:
// both are left as they are, and the child begins with none.
static void take_over(void) {
  static const kilni_base_mutex_t kFresh = {PTHREAD_MUTEX_INITIALIZER};
  memcpy(&kilni_soft_global.lock, &kFresh, sizeof(kFresh));
  atomic_store(&kilni_soft_global.driver, NULL);
  kilni_soft_global.users = 0;
  kilni_soft_thread.in_callback = 0;
}

void kilni_soft_global_begin(void) {
  uint64_t here = kilni_base_process_id();
  uint64_t owner = atomic_load(&kilni_soft_global.process_id);
  while (owner != here) {
    if (owner != BEING_TAKEN &&
        atomic_compare_exchange_strong(&kilni_soft_global.process_id, &owner,
                                       BEING_TAKEN)) {
      if (owner != 0) take_over();
      atomic_store(&kilni_soft_global.process_id, here);
      return;
    }
    // Another thread of the child takes it: that is a few stores.
    owner = atomic_load(&kilni_soft_global.process_id);
  }
}

void kilni_soft_global_lock(void) {
  kilni_base_mutex_lock(&kilni_soft_global.lock);
}

void kilni_soft_global_unlock(void) {
  kilni_base_mutex_unlock(&kilni_soft_global.lock);
}

kilni_soft_driver_t* kilni_soft_global_driver(void) {
  return atomic_load(&kilni_soft_global.driver);
}

uint32_t kilni_soft_global_next_epoch(void) {
  return atomic_fetch_add(&kilni_soft_global.epoch, 1) + 1;
}

bool kilni_soft_global_is_forked(void) {
  return atomic_load(&kilni_soft_global.driver) != NULL &&
         atomic_load(&kilni_soft_global.process_id) != kilni_base_process_id();
}

void kilni_soft_global_set(kilni_soft_driver_t* driver) {
  atomic_store(&kilni_soft_global.driver, driver);
}

void kilni_soft_act_for(uint64_t owner) {
  kilni_soft_thread.acts_for = owner;
}

uint64_t kilni_soft_acts_for(void) {
  return kilni_soft_thread.acts_for;
}

void kilni_soft_offer(const void* text, kilni_image_ptx_module_t* tree) {
  kilni_soft_thread.offered_text = text;
  kilni_soft_thread.offered_tree = tree;
}

kilni_image_ptx_module_t* kilni_soft_offered(const void* text) {
  return kilni_soft_thread.offered_text == text ? kilni_soft_thread.offered_tree
                                                : NULL;
}

uint32_t* kilni_soft_global_users(void) {
  return &kilni_soft_global.users;
}

// A thread's stack from before the driver was stopped and started is empty.
static void refresh_thread(void) {
  uint32_t epoch = atomic_load(&kilni_soft_global.epoch);
  if (kilni_soft_thread.epoch == epoch) return;
  kilni_soft_thread.epoch = epoch;
  kilni_soft_thread.depth = 0;
  kilni_soft_thread.capture_mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  for (uint32_t i = 0; i < KILNI_SOFT_DEVICES_MOST; i++) {
    kilni_soft_thread.thread_streams[i] = 0;
  }
}

kiln_cu_capture_mode_t kilni_soft_capture_exchange(
    kiln_cu_capture_mode_t mode) {
  refresh_thread();
  kiln_cu_capture_mode_t before = kilni_soft_thread.capture_mode;
  kilni_soft_thread.capture_mode = mode;
  return before;
}

kiln_cu_capture_mode_t kilni_soft_capture_mode(void) {
  refresh_thread();
  return kilni_soft_thread.capture_mode;
}

uint64_t kilni_soft_thread_number(void) {
  if (kilni_soft_thread.number == 0) {
    kilni_soft_thread.number =
        atomic_fetch_add(&kilni_soft_global.threads, 1) + 1;
  }
  return kilni_soft_thread.number;
}

uint64_t kilni_soft_current_get(void) {
  refresh_thread();
  if (kilni_soft_thread.depth == 0) return 0;
  return kilni_soft_thread.stack[kilni_soft_thread.depth - 1];
}

void kilni_soft_current_set(uint64_t handle) {
  refresh_thread();
  if (handle == 0) {
    if (kilni_soft_thread.depth > 0) kilni_soft_thread.depth--;
    return;
  }
  if (kilni_soft_thread.depth == 0) kilni_soft_thread.depth = 1;
  kilni_soft_thread.stack[kilni_soft_thread.depth - 1] = handle;
}

bool kilni_soft_current_push(uint64_t handle) {
  refresh_thread();
  if (kilni_soft_thread.depth == KILNI_SOFT_STACK_LIMIT) return false;
  kilni_soft_thread.stack[kilni_soft_thread.depth++] = handle;
  return true;
}

uint64_t kilni_soft_current_pop(void) {
  uint64_t handle = kilni_soft_current_get();
  if (handle != 0) kilni_soft_thread.depth--;
  return handle;
}

uint64_t kilni_soft_thread_stream_get(uint32_t device) {
  refresh_thread();
  return kilni_soft_thread.thread_streams[device];
}

void kilni_soft_thread_stream_set(uint32_t device, uint64_t handle) {
  kilni_soft_thread.thread_streams[device] = handle;
}

void kilni_soft_callback_begin(void) {
  kilni_soft_thread.in_callback++;
}

void kilni_soft_callback_end(void) {
  kilni_soft_thread.in_callback--;
}

kiln_cu_result_t kilni_soft_current_check(kilni_soft_driver_t* driver) {
  if (kilni_soft_current_get() == 0) return KILN_CU_ERROR_INVALID_CONTEXT;
  return kilni_soft_current(driver) != NULL
             ? KILN_CU_SUCCESS
             : KILN_CU_ERROR_CONTEXT_IS_DESTROYED;
}

kilni_soft_context_t* kilni_soft_current(kilni_soft_driver_t* driver) {
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_CONTEXT,
                               kilni_soft_current_get());
}

kiln_cu_result_t kilni_soft_sticky(const kilni_soft_context_t* context) {
  return context->sticky;
}

bool kilni_soft_is_device(const kilni_soft_driver_t* driver, int64_t device) {
  return device >= 0 && device < (int64_t)driver->device_count;
}

kiln_cu_result_t kilni_soft_enter(kilni_soft_needs_t needs,
                                  kilni_soft_driver_t** out_driver) {
  kilni_soft_driver_t* driver = atomic_load(&kilni_soft_global.driver);
  *out_driver = driver;
  if (driver == NULL || kilni_base_host_is_forked(&driver->host)) {
    // A forked child has neither workers nor memory.
    return KILN_CU_ERROR_NOT_INITIALIZED;
  }
  if (kilni_soft_thread.in_callback != 0) return KILN_CU_ERROR_NOT_PERMITTED;
  kilni_base_mutex_lock(&driver->lock);
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  if (needs >= KILNI_SOFT_NEEDS_START && !driver->started) {
    result = KILN_CU_ERROR_NOT_INITIALIZED;
  } else if (needs >= KILNI_SOFT_NEEDS_CURRENT) {
    result = kilni_soft_current_check(driver);
  }
  if (result == KILN_CU_SUCCESS && needs == KILNI_SOFT_NEEDS_HEALTHY) {
    result = kilni_soft_sticky(kilni_soft_current(driver));
  }
  if (result != KILN_CU_SUCCESS) kilni_base_mutex_unlock(&driver->lock);
  return result;
}

kiln_cu_result_t kilni_soft_enter_object(kilni_soft_needs_t needs,
                                         kilni_soft_kind_t kind,
                                         const void* handle, bool good,
                                         kilni_soft_driver_t** out_driver,
                                         void** out_object) {
  *out_object = NULL;
  kiln_cu_result_t result = kilni_soft_enter(needs, out_driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (!good) return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_VALUE);
  *out_object =
      kilni_soft_handle_get(&(*out_driver)->handles, kind, (uintptr_t)handle);
  if (*out_object != NULL) return KILN_CU_SUCCESS;
  return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_HANDLE);
}

kiln_cu_result_t kilni_soft_enter_stream(kiln_cu_stream_t handle, bool issues,
                                         kilni_soft_driver_t** out_driver,
                                         kilni_soft_stream_t** out_stream) {
  *out_stream = NULL;
  kiln_cu_result_t result =
      kilni_soft_enter(KILNI_SOFT_NEEDS_START, out_driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (issues) kilni_soft_queue_space(*out_driver);
  result = kilni_soft_stream_resolve(*out_driver, handle, out_stream);
  if (result == KILN_CU_SUCCESS) return result;
  return kilni_soft_leave(*out_driver, result);
}

void kilni_soft_tell(kilni_soft_driver_t* driver, const char* format, ...) {
  size_t used = strlen(driver->story);
  if (used > 0 && used + 1 < sizeof(driver->story)) {
    driver->story[used++] = '\n';
  }
  va_list list;
  va_start(list, format);
  (void)vsnprintf(driver->story + used, sizeof(driver->story) - used, format,
                  list);
  va_end(list);
}

kiln_cu_result_t kilni_soft_need_current(void) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_CURRENT, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

kiln_cu_result_t kilni_soft_leave(kilni_soft_driver_t* driver,
                                  kiln_cu_result_t result) {
  char story[KILNI_SOFT_STORY_BYTES];
  bool tells = driver->story[0] != '\0';
  if (driver->ending != NULL) kilni_soft_objects_end(driver);
  if (tells) {
    memcpy(story, driver->story, sizeof(story));
    driver->story[0] = '\0';
  }
  kilni_base_mutex_unlock(&driver->lock);
  if (tells) KILNI_LOG(&driver->host.log, WARNING, "%s", story);
  return result;
}

kiln_cu_result_t kilni_soft_result(kiln_status_t status) {
  kiln_status_code_t code = kiln_status_code(status);
  kiln_status_free(status);
  switch (code) {
    case KILN_STATUS_OK:
      return KILN_CU_SUCCESS;
    case KILN_STATUS_OUT_OF_MEMORY:
    case KILN_STATUS_DEVICE_OUT_OF_MEMORY:
    case KILN_STATUS_LIMIT_EXCEEDED:
      return KILN_CU_ERROR_OUT_OF_MEMORY;
    case KILN_STATUS_UNSUPPORTED:
      return KILN_CU_ERROR_NOT_SUPPORTED;
    case KILN_STATUS_NOT_FOUND:
      return KILN_CU_ERROR_NOT_FOUND;
    case KILN_STATUS_INVALID_ARGUMENT:
    case KILN_STATUS_OUT_OF_RANGE:
      return KILN_CU_ERROR_INVALID_VALUE;
    default:
      return KILN_CU_ERROR_UNKNOWN;
  }
}
