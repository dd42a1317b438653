// SPDX-License-Identifier: Apache-2.0
//
// device: modules: device code loaded, with what the driver's compiler said.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/str.h"
#include "device/device_inside.h"

enum {
  LOG_BYTES = 16384,     // of each of the driver's two logs
  MAX_LISTED = 4096,     // kernels of a cubin that are listed
  LOG_LINE_BYTES = 512,  // of the log's first line in a message
};

struct kiln_load_log_t {
  kiln_allocator_t allocator;
  char* text;
};

const char* kiln_load_log_text(const kiln_load_log_t* log) {
  return log != NULL && log->text != NULL ? log->text : "";
}

void kiln_load_log_release(kiln_load_log_t* log) {
  if (log == NULL) return;
  kiln_allocator_t allocator = log->allocator;
  kilni_strfree(allocator, log->text);
  kilni_free(allocator, log, sizeof(*log));
}

// What one load needs beside the module. one-thread
typedef struct load_t {
  kiln_device_t* device;
  kiln_module_t* module;
  const char* name;
  char* logs;           // errors, then infos, LOG_BYTES each
  kiln_status_t doubt;  // of our own reader
} load_t;

static const char* error_text(const load_t* load) {
  return load->logs;
}
static const char* info_text(const load_t* load) {
  return load->logs + LOG_BYTES;
}

// ---- Errors ----

static kiln_status_t ptx_too_new(const load_t* load, kiln_status_t status) {
  const kilni_image_t* image = &load->module->image;
  uint32_t version = load->device->info.driver_version;
  return KILNI_ANNOTATE(
      status, "\"%s\" is PTX %u.%u and the driver of \"%s\" is CUDA %u.%u",
      load->name, (unsigned)image->version_major,
      (unsigned)image->version_minor, load->device->name,
      (unsigned)(version / 1000), (unsigned)(version % 1000 / 10));
}

static kiln_status_t load_failed(load_t* load, kiln_cu_result_t result) {
  kiln_status_t status =
      KILNI_DEVICE_CHECK(load->device, result, "cuModuleLoadDataEx");
  if (result == KILN_CU_ERROR_UNSUPPORTED_PTX_VERSION) {
    return ptx_too_new(load, status);
  }
  kiln_string_view_t rest = kilni_sv(error_text(load));
  kiln_string_view_t line;
  bool said = false;
  while (kilni_sv_split(&rest, '\n', &line)) {
    if (line.size == 0) continue;
    if (line.size > LOG_LINE_BYTES) line.size = LOG_LINE_BYTES;
    status = KILNI_ANNOTATE(status, "%.*s", KILNI_SV(line));
    said = true;
  }
  if (!said)
    status = KILNI_ANNOTATE(status, "while loading \"%s\"", load->name);
  // What our reader found names the line; a driver often does not.
  if (!kiln_status_is_ok(load->doubt)) {
    kiln_status_t first = load->doubt;
    load->doubt = NULL;
    status = kilni_status_join(first, status);
  }
  return status;
}

static kiln_status_t refuse_format(const kiln_device_t* device, uint32_t format,
                                   const char* name) {
  if (device->info.kind != KILN_DEVICE_KIND_SOFT) return NULL;
  if (format == KILNI_IMAGE_PTX) return NULL;
  return kilni_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "\"%s\" is a %s: the software device executes PTX only", name,
                 format == KILNI_IMAGE_CUBIN ? "cubin" : "fatbin"),
      "compile the source to PTX, or run it on a GPU (`--device cuda:0`)");
}

// ---- Loading ----

// Loads bytes that end with a NUL, which PTX needs.
static kiln_status_t load_text(load_t* load, const void* data) {
  kiln_cu_jit_option_t options[] = {
      KILN_CU_JIT_ERROR_LOG_BUFFER, KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
      KILN_CU_JIT_INFO_LOG_BUFFER, KILN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {load->logs, (void*)(uintptr_t)(LOG_BYTES - 1),
                    load->logs + LOG_BYTES, (void*)(uintptr_t)(LOG_BYTES - 1)};
  kiln_device_t* device = load->device;
  kilni_scope_t scope;
  KILNI_RETURN_IF_ERROR(
      kilni_scope_enter(&scope, device, KILNI_CUDA_ROW_cuModuleLoadDataEx));
  kiln_cu_result_t result = device->table->cuModuleLoadDataEx(
      &load->module->handle, data, 4, options, values);
  kiln_status_t status = NULL;
  if (result != KILN_CU_SUCCESS) status = load_failed(load, result);
  return kilni_scope_leave(&scope, status);
}

static kiln_status_t load_copy(load_t* load, kiln_bytes_view_t bytes) {
  kiln_allocator_t allocator = load->device->host->allocator;
  void* copy = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc(allocator, bytes.size + 1, &copy));
  memcpy(copy, bytes.data, bytes.size);
  kiln_status_t status = load_text(load, copy);
  kilni_free(allocator, copy, bytes.size + 1);
  return status;
}

// The names of a cubin's kernels, where the driver can list them (12.4). A
// module without such a list works as well.
static kiln_status_t list_functions(load_t* load,
                                    const kiln_cu_function_t* functions,
                                    unsigned int count) {
  for (unsigned int i = 0; i < count; i++) {
    const char* name = NULL;
    kiln_status_t status;
    KILNI_DEVICE_CALL(status, load->device, cuFuncGetName, &name, functions[i]);
    if (kiln_status_is_ok(status) && name != NULL) {
      status = kilni_image_add_name(&load->module->image, name);
    }
    KILNI_RETURN_IF_ERROR(status);
  }
  return NULL;
}

static kiln_status_t list_kernels(load_t* load) {
  kiln_device_t* device = load->device;
  const kiln_cuda_table_t* table = device->table;
  if (load->module->image.params_known ||
      !kilni_cuda_has(table, KILNI_CUDA_ROW_cuModuleGetFunctionCount) ||
      !kilni_cuda_has(table, KILNI_CUDA_ROW_cuModuleEnumerateFunctions) ||
      !kilni_cuda_has(table, KILNI_CUDA_ROW_cuFuncGetName)) {
    return NULL;
  }
  unsigned int count = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuModuleGetFunctionCount, &count,
                    load->module->handle);
  if (!kiln_status_is_ok(status) || count == 0) return status;
  if (count > MAX_LISTED) count = MAX_LISTED;
  void* functions = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc_array(
      device->host->allocator, count, sizeof(kiln_cu_function_t), &functions));
  KILNI_DEVICE_CALL(status, device, cuModuleEnumerateFunctions, functions,
                    count, load->module->handle);
  if (kiln_status_is_ok(status)) {
    status = list_functions(load, functions, count);
  }
  kilni_free_array(device->host->allocator, functions, count,
                   sizeof(kiln_cu_function_t));
  return status;
}

static kiln_status_t take_log(const load_t* load, kiln_load_log_t** out_log) {
  kiln_allocator_t allocator = load->device->host->allocator;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(allocator, sizeof(kiln_load_log_t), &block));
  kiln_load_log_t* log = block;
  log->allocator = allocator;
  kilni_str_t text;
  kilni_str_init(&text, allocator, 4 * LOG_BYTES);
  kilni_str_add_cstr(&text, error_text(load));
  if (text.size > 0 && text.data[text.size - 1] != '\n' &&
      info_text(load)[0] != 0) {
    kilni_str_add_char(&text, '\n');
  }
  kilni_str_add_cstr(&text, info_text(load));
  kiln_status_t status = kilni_str_take(&text, &log->text);
  if (!kiln_status_is_ok(status)) {
    kiln_load_log_release(log);
    return status;
  }
  *out_log = log;
  return NULL;
}

static kiln_status_t load_all(load_t* load, kiln_bytes_view_t bytes) {
  kiln_allocator_t allocator = load->device->host->allocator;
  kilni_image_t* image = &load->module->image;
  KILNI_RETURN_IF_ERROR(
      kilni_image_init(image, allocator, bytes, load->name, &load->doubt));
  KILNI_RETURN_IF_ERROR(refuse_format(load->device, image->format, load->name));
  KILNI_RETURN_IF_ERROR(load_copy(load, bytes));
  return list_kernels(load);
}

static kiln_status_t module_create(kiln_device_t* device, const char* name,
                                   kiln_module_t** out_module) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(device->host->allocator, sizeof(kiln_module_t), &block));
  kiln_module_t* module = block;
  module->device = device;
  kiln_device_retain(device);
  atomic_init(&module->references, 1);
  module->image.allocator = device->host->allocator;
  kiln_status_t status =
      kilni_strdup(device->host->allocator, kilni_sv(name), &module->name);
  if (!kiln_status_is_ok(status)) {
    kiln_module_release(module);
    return status;
  }
  *out_module = module;
  return NULL;
}

kiln_status_t kiln_module_load(kiln_device_t* device, kiln_bytes_view_t image,
                               const kiln_module_options_t* options,
                               kiln_load_log_t** out_log,
                               kiln_module_t** out_module) {
  if (out_log != NULL) *out_log = NULL;
  KILNI_CHECK_ARGUMENT(out_module != NULL, "out_module");
  *out_module = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(image.data != NULL || image.size == 0, "image");
  kiln_module_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_options_read(options, "kiln_module_options_t",
                                           sizeof(given), &given));
  KILNI_RETURN_IF_ERROR(kilni_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  load_t load = {device, NULL, given.name ? given.name : "the module", NULL,
                 NULL};
  KILNI_RETURN_IF_ERROR(
      module_create(device, given.name ? given.name : "", &load.module));
  void* logs = NULL;
  kiln_status_t status =
      kilni_alloc(device->host->allocator, 2 * LOG_BYTES, &logs);
  if (kiln_status_is_ok(status)) {
    load.logs = logs;
    status = load_all(&load, image);
    if (out_log != NULL &&
        kiln_status_code(status) != KILN_STATUS_OUT_OF_MEMORY) {
      status = kilni_status_join(status, take_log(&load, out_log));
    }
    kilni_free(device->host->allocator, logs, 2 * LOG_BYTES);
  }
  kiln_status_free(load.doubt);
  if (!kiln_status_is_ok(status)) {
    kiln_module_release(load.module);
    return status;
  }
  *out_module = load.module;
  return NULL;
}

void kiln_module_retain(kiln_module_t* module) {
  if (module == NULL) return;
  atomic_fetch_add_explicit(&module->references, 1, memory_order_relaxed);
}

void kiln_module_release(kiln_module_t* module) {
  if (module == NULL || kilni_device_is_forked(module->device)) return;
  if (atomic_fetch_sub_explicit(&module->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_device_t* device = module->device;
  kiln_allocator_t allocator = device->host->allocator;
  if (module->handle != NULL) {
    KILNI_DEVICE_END(device, cuModuleUnload, module->handle);
  }
  kilni_image_deinit(&module->image);
  kilni_strfree(allocator, module->name);
  kilni_free(allocator, module, sizeof(*module));
  kiln_device_release(device);
}

kiln_device_t* kiln_module_device(const kiln_module_t* module) {
  return module->device;
}

uint32_t kiln_module_kernel_count(const kiln_module_t* module) {
  return (uint32_t)module->image.kernel_count;
}

const char* kiln_module_kernel_name(const kiln_module_t* module,
                                    uint32_t index) {
  if (index >= module->image.kernel_count) return NULL;
  return module->image.kernels[index].name;
}

kiln_status_t kiln_module_global(kiln_module_t* module, const char* name,
                                 uint64_t* out_address, uint64_t* out_bytes) {
  KILNI_CHECK_ARGUMENT(out_address != NULL, "out_address");
  KILNI_CHECK_ARGUMENT(out_bytes != NULL, "out_bytes");
  *out_address = 0;
  *out_bytes = 0;
  KILNI_CHECK_ARGUMENT(module != NULL, "module");
  KILNI_CHECK_ARGUMENT(name != NULL, "name");
  kiln_cu_deviceptr_t address = 0;
  size_t bytes = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, module->device, cuModuleGetGlobal, &address, &bytes,
                    module->handle, name);
  if (kiln_status_code(status) == KILN_STATUS_NOT_FOUND) {
    kiln_status_free(status);
    return kilni_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "no variable \"%s\" in module \"%s\"", name,
                   module->name),
        "names of C++ variables are mangled; declare it extern \"C\", or ask "
        "the compiler for its lowered name");
  }
  if (kiln_status_is_ok(status)) {
    *out_address = address;
    *out_bytes = bytes;
  }
  return status;
}
