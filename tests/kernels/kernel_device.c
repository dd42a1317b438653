// SPDX-License-Identifier: Apache-2.0
//
// tests: runs a kernel through the driver's table, on either provider.
#include "kernel_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "soft_fault_story.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

static void count_lines(const char* text, size_t size, void* user) {
  kernel_device_t* device = user;  // several workers print at once
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '\n') atomic_fetch_add(&device->printed, 1);
  }
}

static kiln_status_t start(kernel_device_t* device,
                           const kernel_options_t* options) {
  kiln_status_t status =
      kilni_base_env_init(&device->env, device->host.allocator);
  if (!kiln_status_is_ok(status)) return status;
  if (!device->soft) {
    return kilni_table_cuda_table_open(&device->host, NULL, &device->table,
                                       &device->library);
  }
  kilni_soft_options_t soft = {.struct_size = sizeof(soft),
                               .seed = options->seed,
                               .worker_count = options->workers,
                               .lanes = options->lanes,
                               .print = count_lines,
                               .print_user = device};
  return kilni_soft_start(&device->host, &soft, &device->table);
}

static const char* result_name(kiln_cu_result_t result) {
  const char* name = kilni_table_cuda_result_name(result);
  return name != NULL ? name : "an unknown result";
}

static int open_context(kernel_device_t* device) {
  const kiln_cuda_table_t* cu = &device->table;
  kiln_cu_result_t result = cu->cuInit(0);
  int count = 0;
  if (result == KILN_CU_SUCCESS) result = cu->cuDeviceGetCount(&count);
  if (result != KILN_CU_SUCCESS || count == 0) {
    printf("skipped: %s has no device here: %s\n", device->name,
           result_name(result));
    return KERNEL_SKIPPED;
  }
  result = cu->cuDeviceGet(&device->device, 0);
  if (result == KILN_CU_SUCCESS) {
    result = cu->cuDevicePrimaryCtxRetain(&device->context, device->device);
  }
  if (result == KILN_CU_SUCCESS) result = cu->cuCtxSetCurrent(device->context);
  if (result == KILN_CU_SUCCESS) return 0;
  printf("not ok %s: no context: %s\n", device->name, result_name(result));
  return 1;
}

int kernel_device_open(kernel_device_t* device, bool soft,
                       const kernel_options_t* options) {
  *device = (kernel_device_t){.soft = soft, .name = soft ? "soft" : "cuda:0"};
  device->host = (kiln_host_t){.allocator = kiln_allocator_libc(),
                               .env = &device->env,
                               .worker_count = kilni_base_core_count(),
                               .process_id = kilni_base_process_id()};
  if (soft && options->lanes != NULL &&
      kilni_soft_lanes_would(options->lanes) == NULL) {
    printf("skipped: this CPU has no %s\n", options->lanes);
    return KERNEL_SKIPPED;
  }
  kiln_status_t status = start(device, options);
  if (kiln_status_is_ok(status)) return open_context(device);
  bool absent = kiln_status_code(status) == KILN_STATUS_NOT_FOUND;
  printf("%s %s: %s\n", absent ? "skipped:" : "not ok", device->name,
         kiln_status_message(status));
  kiln_status_free(status);
  return absent ? KERNEL_SKIPPED : 1;
}

void kernel_device_close(kernel_device_t* device) {
  if (device->context != NULL) {
    device->table.cuCtxSetCurrent(NULL);
    device->table.cuDevicePrimaryCtxRelease(device->device);
    device->context = NULL;
  }
  if (device->soft) kilni_soft_stop();
  kilni_base_dynlib_close(device->library);
  kilni_base_env_deinit(&device->env);
}

bool kernel_device_load(kernel_device_t* device, char* text, kernel_code_t* out,
                        char message[KERNEL_MESSAGE]) {
  kiln_cu_jit_option_t options[] = {KILN_CU_JIT_ERROR_LOG_BUFFER,
                                    KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  char log[400] = "";
  void* values[] = {log, (void*)(uintptr_t)sizeof(log)};
  *out = (kernel_code_t){.text = text};
  kiln_cu_result_t result =
      device->table.cuModuleLoadDataEx(&out->module, text, 2, options, values);
  if (result == KILN_CU_SUCCESS) return true;
  out->too_new = result == KILN_CU_ERROR_UNSUPPORTED_PTX_VERSION;
  log[strcspn(log, "\n")] = '\0';
  snprintf(message, KERNEL_MESSAGE, "%s does not load it: %s %s", device->name,
           result_name(result), log);
  return false;
}

void kernel_device_unload(kernel_device_t* device, kernel_code_t* code) {
  if (code->module != NULL) device->table.cuModuleUnload(code->module);
  code->module = NULL;
}

// A C++ name's lowered one, which the head of the PTX file says.
static const char* lowered(const char* text, const char* entry, char out[256]) {
  char head[KERNEL_NAME + 32];
  snprintf(head, sizeof(head), "// entry: %s is ", entry);
  const char* found = strstr(text, head);
  if (found == NULL) return entry;
  found += strlen(head);
  size_t length = strcspn(found, "\n");
  snprintf(out, 256, "%.*s", (int)(length < 255 ? length : 255), found);
  return out;
}

// The memory and parameters of one run. one-thread
typedef struct arguments_t {
  kiln_cu_deviceptr_t buffers[KERNEL_PARAMS];
  void* params[KERNEL_PARAMS];
  int count;
} arguments_t;

static size_t size_of(const kernel_case_t* c, int i) {
  return c->run->params[i].count * c->run->params[i].width;
}

static kiln_cu_result_t give_one(kernel_device_t* device,
                                 const kernel_code_t* code, kernel_case_t* c,
                                 int i, arguments_t* arguments) {
  const kiln_cuda_table_t* cu = &device->table;
  const kernel_param_t* param = &c->run->params[i];
  kiln_cu_deviceptr_t at = 0;
  kiln_cu_result_t result;
  if (param->role == KERNEL_VALUE) {
    arguments->params[arguments->count++] = c->made[i];
    return KILN_CU_SUCCESS;
  }
  if (param->role == KERNEL_CONSTANT) {
    size_t bytes = 0;
    result = cu->cuModuleGetGlobal(&at, &bytes, code->module, param->name);
    if (result == KILN_CU_SUCCESS && bytes != size_of(c, i)) {
      result = KILN_CU_ERROR_INVALID_VALUE;
    }
  } else {
    result = cu->cuMemAlloc(&arguments->buffers[i], size_of(c, i));
    at = arguments->buffers[i];
    arguments->params[arguments->count++] = &arguments->buffers[i];
  }
  if (result != KILN_CU_SUCCESS) return result;
  return cu->cuMemcpyHtoD(at, c->made[i], size_of(c, i));
}

static kiln_cu_result_t launch(kernel_device_t* device,
                               const kernel_code_t* code,
                               const kernel_case_t* c, arguments_t* arguments) {
  const kiln_cuda_table_t* cu = &device->table;
  char name[256];
  kiln_cu_function_t function = NULL;
  kiln_cu_result_t result = cu->cuModuleGetFunction(
      &function, code->module, lowered(code->text, c->run->entry, name));
  if (result != KILN_CU_SUCCESS) return result;
  const uint32_t* grid = c->shape->grid;
  const uint32_t* block = c->shape->block;
  if (c->run->shared > 48 << 10) {
    result = cu->cuFuncSetAttribute(
        function, KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        (int)c->run->shared);
  }
  if (result != KILN_CU_SUCCESS) return result;
  if (c->run->cooperative) {
    result = cu->cuLaunchCooperativeKernel(
        function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
        c->run->shared, NULL, arguments->params);
  } else {
    result = cu->cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0],
                                block[1], block[2], c->run->shared, NULL,
                                arguments->params, NULL);
  }
  return result != KILN_CU_SUCCESS ? result : cu->cuCtxSynchronize();
}

static kiln_cu_result_t take(kernel_device_t* device, kernel_case_t* c,
                             const arguments_t* arguments) {
  for (int i = 0; i < c->run->param_count; i++) {
    kernel_role_t role = c->run->params[i].role;
    if (role != KERNEL_OUT && role != KERNEL_INOUT) continue;
    c->got[i] = malloc(size_of(c, i));
    kiln_cu_result_t result = device->table.cuMemcpyDtoH(
        c->got[i], arguments->buffers[i], size_of(c, i));
    if (result != KILN_CU_SUCCESS) return result;
  }
  return KILN_CU_SUCCESS;
}

bool kernel_device_run(kernel_device_t* device, const kernel_code_t* code,
                       kernel_case_t* c, char message[KERNEL_MESSAGE]) {
  arguments_t arguments = {.count = 0};
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  const char* what = "gives it no memory";
  device->printed = 0;
  for (int i = 0; i < c->run->param_count; i++) {
    if (result == KILN_CU_SUCCESS) {
      result = give_one(device, code, c, i, &arguments);
    }
  }
  if (result == KILN_CU_SUCCESS) {
    what = "does not run it";
    result = launch(device, code, c, &arguments);
  }
  if (result == KILN_CU_SUCCESS) result = take(device, c, &arguments);
  for (int i = 0; i < c->run->param_count; i++) {
    if (arguments.buffers[i] != 0) {
      device->table.cuMemFree(arguments.buffers[i]);
    }
  }
  if (result == KILN_CU_SUCCESS) return true;
  char fault[300] = "";
  if (device->soft) soft_fault_story(fault, sizeof(fault));
  snprintf(message, KERNEL_MESSAGE, "%s %s: %s %s", device->name, what,
           result_name(result), fault);
  return false;
}
