// SPDX-License-Identifier: Apache-2.0
//
// soft: rows of libraries and their kernels.
//
// A library is of the context in which it was loaded: a module with a second
// handle, and a kernel is a function with one. Both end with the context.
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "soft/driver/soft_jit.h"
#include "table/cuda_table.h"

enum { FILE_LIMIT = 256 << 20 };

static kiln_cu_result_t enter_library(kiln_cu_library_t library, bool good,
                                      kilni_soft_driver_t** out_driver,
                                      kilni_soft_module_t** out_module) {
  void* found;
  kiln_cu_result_t result =
      kilni_soft_enter_object(KILNI_SOFT_NEEDS_HEALTHY, KILNI_SOFT_KIND_LIBRARY,
                              library, good, out_driver, &found);
  *out_module = found;
  return result;
}

static kiln_cu_result_t library_enter_kernel(kiln_cu_kernel_t kernel, bool good,
                                             kilni_soft_driver_t** out_driver,
                                             kilni_soft_kernel_t** out_kernel) {
  void* found;
  kiln_cu_result_t result =
      kilni_soft_enter_object(KILNI_SOFT_NEEDS_HEALTHY, KILNI_SOFT_KIND_KERNEL,
                              kernel, good, out_driver, &found);
  *out_kernel = found;
  return result;
}

// ---- Libraries ----

static kiln_cu_result_t library_row_load(
    kiln_cu_library_t* library, const void* code, kiln_cu_jit_option_t* options,
    void** values, unsigned int count,
    kiln_cu_library_option_t* library_options, void** library_values,
    unsigned int library_count) {
  (void)library_values;
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_jit_t jit;
  kilni_soft_module_t* module = NULL;
  result = kilni_soft_jit_read(count, options, values, &jit);
  if (library == NULL || code == NULL ||
      (library_count > 0 && library_options == NULL)) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  }
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_module_load(driver, code, &jit, &module);
  }
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_result(kilni_soft_handle_add(
        &driver->handles, KILNI_SOFT_KIND_LIBRARY, module, &module->library));
    if (result == KILN_CU_SUCCESS) {
      *library = (kiln_cu_library_t)(uintptr_t)module->library;
    } else {
      kilni_soft_module_end(driver, module);
    }
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_load_file(kiln_cu_library_t* library,
                                      const char* path,
                                      kiln_cu_jit_option_t* options,
                                      void** values, unsigned int count,
                                      kiln_cu_library_option_t* library_options,
                                      void** library_values,
                                      unsigned int library_count) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kiln_allocator_t allocator = driver->host.allocator;
  kilni_soft_leave(driver, result);
  if (path == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  uint8_t* data = NULL;
  size_t size = 0;
  result = kilni_soft_file_read(allocator, path, FILE_LIMIT, &data, &size);
  if (result != KILN_CU_SUCCESS) return result;
  result = library_row_load(library, data, options, values, count,
                            library_options, library_values, library_count);
  kilni_base_file_free(allocator, data, size);
  return result;
}

static kiln_cu_result_t library_row_unload(kiln_cu_library_t library) {
  kilni_soft_driver_t* driver;
  void* found;
  kiln_cu_result_t result =
      kilni_soft_enter_object(KILNI_SOFT_NEEDS_CURRENT, KILNI_SOFT_KIND_LIBRARY,
                              library, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuLibraryUnload");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  kilni_soft_module_t* module = found;
  const kilni_soft_context_t* context = module->context;
  kilni_soft_module_end(driver, module);
  return kilni_soft_leave(driver, kilni_soft_sticky(context));
}

static kiln_cu_result_t library_row_get_module(kiln_cu_module_t* module,
                                               kiln_cu_library_t library) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* found;
  kiln_cu_result_t result =
      enter_library(library, module != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *module = (kiln_cu_module_t)(uintptr_t)found->handle;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t library_give_kernel(kilni_soft_driver_t* driver,
                                            kilni_soft_module_t* module,
                                            const kilni_soft_entry_t* entry,
                                            kiln_cu_kernel_t* out_kernel) {
  kilni_soft_kernel_t* kernel;
  kiln_cu_result_t result =
      kilni_soft_module_kernel(driver, module, entry, &kernel);
  if (result == KILN_CU_SUCCESS && kernel->of_library == 0) {
    result = kilni_soft_result(kilni_soft_handle_add(
        &driver->handles, KILNI_SOFT_KIND_KERNEL, kernel, &kernel->of_library));
  }
  if (result == KILN_CU_SUCCESS) {
    *out_kernel = (kiln_cu_kernel_t)(uintptr_t)kernel->of_library;
  }
  return result;
}

static kiln_cu_result_t library_row_get_kernel(kiln_cu_kernel_t* kernel,
                                               kiln_cu_library_t library,
                                               const char* name) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* module;
  kiln_cu_result_t result =
      enter_library(library, kernel != NULL && name != NULL, &driver, &module);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_entry_t* entry = kilni_soft_code_find(module->code, name);
  result = entry == NULL ? KILN_CU_ERROR_NOT_FOUND
                         : library_give_kernel(driver, module, entry, kernel);
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t library_row_get_global(kiln_cu_deviceptr_t* address,
                                               size_t* bytes,
                                               kiln_cu_library_t library,
                                               const char* name) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* module;
  kiln_cu_result_t result =
      enter_library(library, name != NULL, &driver, &module);
  if (result != KILN_CU_SUCCESS) return result;
  uint64_t where;
  uint64_t size;
  if (kilni_soft_code_global(module->code, name, &where, &size)) {
    if (address != NULL) *address = where;
    if (bytes != NULL) *bytes = (size_t)size;
  } else {
    result = KILN_CU_ERROR_NOT_FOUND;
  }
  return kilni_soft_leave(driver, result);
}

// Managed memory is device memory here.
static kiln_cu_result_t row_get_managed(kiln_cu_deviceptr_t* address,
                                        size_t* bytes,
                                        kiln_cu_library_t library,
                                        const char* name) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* module;
  kiln_cu_result_t result =
      enter_library(library, name != NULL, &driver, &module);
  if (result != KILN_CU_SUCCESS) return result;
  uint32_t index =
      kilni_image_ptx_variable_find(module->tree, kilni_base_sv(name));
  bool managed =
      index != KILNI_PTX_NONE && module->tree->variables[index].managed;
  kilni_soft_leave(driver, KILN_CU_SUCCESS);
  return managed ? library_row_get_global(address, bytes, library, name)
                 : KILN_CU_ERROR_NOT_FOUND;
}

static kiln_cu_result_t library_row_count(unsigned int* count,
                                          kiln_cu_library_t library) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* module;
  kiln_cu_result_t result =
      enter_library(library, count != NULL, &driver, &module);
  if (result != KILN_CU_SUCCESS) return result;
  *count = kilni_soft_code_entry_count(module->code);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t library_row_enumerate(kiln_cu_kernel_t* kernels,
                                              unsigned int count,
                                              kiln_cu_library_t library) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* module;
  kiln_cu_result_t result =
      enter_library(library, kernels != NULL && count > 0, &driver, &module);
  if (result != KILN_CU_SUCCESS) return result;
  uint32_t have = kilni_soft_code_entry_count(module->code);
  for (uint32_t i = 0; i < count && i < have && result == KILN_CU_SUCCESS;
       i++) {
    result = library_give_kernel(
        driver, module, kilni_soft_code_entry(module->code, i), &kernels[i]);
  }
  return kilni_soft_leave(driver, result);
}

// ---- Kernels ----

static kiln_cu_result_t library_row_get_function(kiln_cu_function_t* function,
                                                 kiln_cu_kernel_t kernel) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* found;
  kiln_cu_result_t result =
      library_enter_kernel(kernel, function != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *function = (kiln_cu_function_t)(uintptr_t)found->handle;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_get_library(kiln_cu_library_t* library,
                                        kiln_cu_kernel_t kernel) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* found;
  kiln_cu_result_t result =
      library_enter_kernel(kernel, library != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *library = (kiln_cu_library_t)(uintptr_t)found->module->library;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t library_row_get_attribute(
    int* value, kiln_cu_function_attribute_t attribute, kiln_cu_kernel_t kernel,
    kiln_cu_device_t device) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* found;
  kiln_cu_result_t result =
      library_enter_kernel(kernel, value != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = device == 0 ? kilni_soft_kernel_read(found, attribute, value)
                       : KILN_CU_ERROR_INVALID_DEVICE;
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t library_row_set_attribute(
    kiln_cu_function_attribute_t attribute, int value, kiln_cu_kernel_t kernel,
    kiln_cu_device_t device) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* found;
  kiln_cu_result_t result = library_enter_kernel(kernel, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = device == 0 ? kilni_soft_kernel_set(found, attribute, value)
                       : KILN_CU_ERROR_INVALID_DEVICE;
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t library_row_get_name(const char** name,
                                             kiln_cu_kernel_t kernel) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* found;
  kiln_cu_result_t result =
      library_enter_kernel(kernel, name != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *name = found->entry->name;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t library_row_param_info(kiln_cu_kernel_t kernel,
                                               size_t index, size_t* offset,
                                               size_t* bytes) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* found;
  kiln_cu_result_t result =
      library_enter_kernel(kernel, offset != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_kernel_param(found, index, offset, bytes);
  return kilni_soft_leave(driver, result);
}

void kilni_soft_fill_library(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuLibraryLoadData, library_row_load);
  KILNI_CUDA_SET(table, cuLibraryLoadFromFile, row_load_file);
  KILNI_CUDA_SET(table, cuLibraryUnload, library_row_unload);
  KILNI_CUDA_SET(table, cuLibraryGetKernel, library_row_get_kernel);
  KILNI_CUDA_SET(table, cuLibraryGetModule, library_row_get_module);
  KILNI_CUDA_SET(table, cuLibraryGetGlobal, library_row_get_global);
  KILNI_CUDA_SET(table, cuLibraryGetManaged, row_get_managed);
  KILNI_CUDA_SET(table, cuLibraryGetKernelCount, library_row_count);
  KILNI_CUDA_SET(table, cuLibraryEnumerateKernels, library_row_enumerate);
  KILNI_CUDA_SET(table, cuKernelGetFunction, library_row_get_function);
  KILNI_CUDA_SET(table, cuKernelGetLibrary, row_get_library);
  KILNI_CUDA_SET(table, cuKernelGetAttribute, library_row_get_attribute);
  KILNI_CUDA_SET(table, cuKernelSetAttribute, library_row_set_attribute);
  KILNI_CUDA_SET(table, cuKernelGetName, library_row_get_name);
  KILNI_CUDA_SET(table, cuKernelGetParamInfo, library_row_param_info);
}
