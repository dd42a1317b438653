// SPDX-License-Identifier: Apache-2.0
//
// soft: rows about the primary context and each thread's current one.
//
// Each device has one context, its primary one: no row makes another. The last
// release ends all that was made in it, and with it a sticky error.
#include <string.h>

#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

static const unsigned int kKnownFlags = KILN_CU_CTX_SCHED_MASK |
                                        KILN_CU_CTX_MAP_HOST |
                                        KILN_CU_CTX_LMEM_RESIZE_TO_MAX;

static kiln_cu_context_t as_context(uint64_t handle) {
  return (kiln_cu_context_t)(uintptr_t)handle;
}

static bool is_live(kilni_soft_driver_t* driver, kiln_cu_context_t context) {
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_CONTEXT,
                               (uintptr_t)context) != NULL;
}

// ---- The primary context ----

static kiln_cu_result_t context_begin_primary(kilni_soft_driver_t* driver,
                                              kilni_soft_context_t* primary) {
  kiln_status_t status = kilni_soft_handle_add(
      &driver->handles, KILNI_SOFT_KIND_CONTEXT, primary, &primary->handle);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  primary->sticky = KILN_CU_SUCCESS;
  driver->faults[primary->device].kind = KILN_FAULT_NONE;
  primary->stack_bytes = KILNI_SOFT_STACK_DEFAULT;
  primary->printf_bytes = KILNI_SOFT_PRINTF_DEFAULT;
  primary->legacy.context = primary;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t context_row_retain(kiln_cu_context_t* context,
                                           kiln_cu_device_t device) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (!kilni_soft_is_device(driver, device)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_DEVICE);
  }
  kilni_soft_context_t* primary = &driver->contexts[device];
  if (context == NULL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if (primary->handle == 0) {
    result = context_begin_primary(driver, primary);
  }
  if (result == KILN_CU_SUCCESS) {
    primary->users++;
    *context = as_context(primary->handle);
  }
  return kilni_soft_leave(driver, result);
}

// No context has access to the memory of one that ends, nor it to others'.
static void end_access(kilni_soft_driver_t* driver,
                       const kilni_soft_context_t* context) {
  for (uint32_t i = 0; i < driver->device_count; i++) {
    kilni_soft_memory_set_peer(context->memory, i, false);
    kilni_soft_memory_set_peer(driver->contexts[i].memory, context->device,
                               false);
  }
}

void kilni_soft_context_clear(kilni_soft_driver_t* driver,
                              kilni_soft_context_t* context) {
  while (context->events != NULL) {
    kilni_soft_event_dispose(driver, context->events);
  }
  while (context->streams != NULL) {
    kilni_soft_stream_dispose(driver, context->streams);
  }
  kilni_soft_links_clear(driver, context);
  while (context->modules != NULL) {
    kilni_soft_module_t* module = context->modules;
    context->modules = module->next;
    kilni_soft_module_unhandle(driver, module);
    kilni_soft_module_dispose(driver, module);
  }
  kilni_soft_alloc_t gone;
  while (kilni_soft_memory_clear_one(context->memory, &gone)) {
    kilni_soft_pool_give(driver, &gone);
  }
  kilni_soft_graphs_forget(driver, context);
  end_access(driver, context);
  kilni_soft_handle_remove(&driver->handles, context->handle);
  kilni_soft_context_t kept = {.device = context->device,
                               .memory = context->memory,
                               .flags = context->flags,
                               .default_pool = context->default_pool};
  *context = kept;
}

static kiln_cu_result_t context_row_release(kiln_cu_device_t device) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (!kilni_soft_is_device(driver, device)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_DEVICE);
  }
  kilni_soft_context_t* primary = &driver->contexts[device];
  if (primary->users == 0) {
    result = KILN_CU_ERROR_INVALID_CONTEXT;
  } else if (--primary->users == 0) {
    // Work of others may use what ends here.
    kilni_soft_queue_drain(driver, NULL);
    // Another thread may have retained it while this one waited: then it
    // lives on.
    if (primary->users == 0) kilni_soft_context_clear(driver, primary);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_state(kiln_cu_device_t device, unsigned int* flags,
                                  int* active) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (!kilni_soft_is_device(driver, device)) {
    result = KILN_CU_ERROR_INVALID_DEVICE;
  } else if (flags == NULL || active == NULL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else {
    *flags = driver->contexts[device].flags;
    *active = driver->contexts[device].users != 0;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_set_flags(kiln_cu_device_t device,
                                      unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  unsigned int schedule = flags & KILN_CU_CTX_SCHED_MASK;
  bool one = (schedule & (schedule - 1)) == 0;
  if (!kilni_soft_is_device(driver, device)) {
    result = KILN_CU_ERROR_INVALID_DEVICE;
  } else if ((flags & ~kKnownFlags) != 0 || !one) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else {
    driver->contexts[device].flags = flags;
  }
  return kilni_soft_leave(driver, result);
}

// ---- The current context ----

static kiln_cu_result_t row_get_current(kiln_cu_context_t* context) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (context == NULL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else {
    *context = as_context(kilni_soft_current_get());
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_set_current(kiln_cu_context_t context) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (context != NULL && !is_live(driver, context)) {
    result = KILN_CU_ERROR_INVALID_CONTEXT;
  } else {
    kilni_soft_current_set((uintptr_t)context);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_push(kiln_cu_context_t context) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (!is_live(driver, context)) {
    result = KILN_CU_ERROR_INVALID_CONTEXT;
  } else if (!kilni_soft_current_push((uintptr_t)context)) {
    result = KILN_CU_ERROR_OUT_OF_MEMORY;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_pop(kiln_cu_context_t* context) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  uint64_t handle = kilni_soft_current_pop();
  if (handle == 0) {
    result = KILN_CU_ERROR_INVALID_CONTEXT;
  } else if (context != NULL) {
    *context = as_context(handle);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_get_device(kiln_cu_device_t* device) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_CURRENT, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (device == NULL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else {
    *device = (kiln_cu_device_t)kilni_soft_current(driver)->device;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t context_row_synchronize(void) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuCtxSynchronize");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  kilni_soft_context_t* context = kilni_soft_current(driver);
  kilni_soft_queue_drain(driver, context);
  kilni_soft_pools_settle(driver);
  return kilni_soft_leave(driver, kilni_soft_sticky(context));
}

static kiln_cu_result_t row_get_limit(size_t* value, kiln_cu_limit_t limit) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_context_t* context = kilni_soft_current(driver);
  if (value == NULL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if (limit == KILN_CU_LIMIT_STACK_SIZE) {
    *value = context->stack_bytes;
  } else if (limit == KILN_CU_LIMIT_PRINTF_FIFO_SIZE) {
    *value = context->printf_bytes;
  } else if (limit == KILN_CU_LIMIT_MALLOC_HEAP_SIZE) {
    *value = (size_t)kilni_soft_heap_limit(context->memory);
  } else {
    result = KILN_CU_ERROR_UNSUPPORTED_LIMIT;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_set_limit(kiln_cu_limit_t limit, size_t value) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuCtxSetLimit");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  kilni_soft_context_t* context = kilni_soft_current(driver);
  if (limit == KILN_CU_LIMIT_STACK_SIZE) {
    if (value > KILNI_SOFT_STACK_MOST) {
      result = KILN_CU_ERROR_INVALID_VALUE;
    } else {
      context->stack_bytes = (value + 15) & ~(size_t)15;
    }
  } else if (limit == KILN_CU_LIMIT_PRINTF_FIFO_SIZE) {
    // What kernels print is handed on at once; the size is only remembered.
    context->printf_bytes = value;
  } else if (limit == KILN_CU_LIMIT_MALLOC_HEAP_SIZE) {
    if (value > kilni_soft_memory_total(context->memory)) {
      result = KILN_CU_ERROR_INVALID_VALUE;
    } else {
      kilni_soft_heap_set_limit(context->memory, value);
    }
  } else {
    result = KILN_CU_ERROR_UNSUPPORTED_LIMIT;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_api_version(kiln_cu_context_t context,
                                        unsigned int* version) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (context == NULL) {
    result = kilni_soft_current_check(driver);
  } else if (!is_live(driver, context)) {
    result = KILN_CU_ERROR_INVALID_CONTEXT;
  }
  if (result == KILN_CU_SUCCESS && version == NULL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  }
  // Every driver since CUDA 3.2 returns 3020 for a context.
  if (result == KILN_CU_SUCCESS) *version = 3020;
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_priority_range(int* least, int* greatest) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_CURRENT, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (least != NULL) *least = KILNI_SOFT_PRIORITY_LEAST;
  if (greatest != NULL) *greatest = KILNI_SOFT_PRIORITY_GREATEST;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

void kilni_soft_fill_context(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuDevicePrimaryCtxRetain, context_row_retain);
  KILNI_CUDA_SET(table, cuDevicePrimaryCtxRelease, context_row_release);
  KILNI_CUDA_SET(table, cuDevicePrimaryCtxGetState, row_state);
  KILNI_CUDA_SET(table, cuDevicePrimaryCtxSetFlags, row_set_flags);
  KILNI_CUDA_SET(table, cuCtxGetCurrent, row_get_current);
  KILNI_CUDA_SET(table, cuCtxSetCurrent, row_set_current);
  KILNI_CUDA_SET(table, cuCtxPushCurrent, row_push);
  KILNI_CUDA_SET(table, cuCtxPopCurrent, row_pop);
  KILNI_CUDA_SET(table, cuCtxGetDevice, row_get_device);
  KILNI_CUDA_SET(table, cuCtxSynchronize, context_row_synchronize);
  KILNI_CUDA_SET(table, cuCtxGetLimit, row_get_limit);
  KILNI_CUDA_SET(table, cuCtxSetLimit, row_set_limit);
  KILNI_CUDA_SET(table, cuCtxGetApiVersion, row_api_version);
  KILNI_CUDA_SET(table, cuCtxGetStreamPriorityRange, row_priority_range);
}
