// SPDX-License-Identifier: Apache-2.0
//
// soft: rows that load modules and find what is in them.
//
// The device reads PTX text. A cubin or fatbin is refused as a GPU refuses one
// for another architecture. Messages of the reader or the decoder go to the
// error log buffer that cuModuleLoadDataEx may receive.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "image/ptx.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "soft/driver/soft_jit.h"
#include "table/cuda_table.h"

enum {
  SM_MAJOR_MINOR = 90,
  // A text without a NUL in so many bytes is not PTX.
  TEXT_LIMIT = 256 << 20,
};

static const uint8_t kElf[4] = {0x7f, 'E', 'L', 'F'};
static const uint8_t kFatbin[4] = {0x50, 0xed, 0x55, 0xba};
static const uint8_t kFatbinWrapper[4] = {0xb1, 0x43, 0x62, 0x46};

// ---- Loading ----

// What a failure of the reader or the decoder is called. Ends `status`.
kiln_cu_result_t kilni_soft_read_result(kiln_status_t status, bool reading,
                                        char* message) {
  kiln_status_format(status, KILNI_SOFT_MESSAGE_BYTES, message, NULL);
  kiln_status_code_t code = kiln_status_code(status);
  kiln_status_free(status);
  switch (code) {
    case KILN_STATUS_OUT_OF_MEMORY:
    case KILN_STATUS_DEVICE_OUT_OF_MEMORY:
      return KILN_CU_ERROR_OUT_OF_MEMORY;
    case KILN_STATUS_UNSUPPORTED:
      return reading ? KILN_CU_ERROR_UNSUPPORTED_PTX_VERSION
                     : KILN_CU_ERROR_NOT_SUPPORTED;
    default:
      return KILN_CU_ERROR_INVALID_PTX;
  }
}

kiln_cu_result_t kilni_soft_check_target(const kilni_image_ptx_module_t* tree,
                                         char* message) {
  bool fits = tree->target_sm < SM_MAJOR_MINOR && tree->target_suffix == 0;
  if (tree->target_sm == SM_MAJOR_MINOR) fits = true;
  if (!fits) {
    snprintf(message, KILNI_SOFT_MESSAGE_BYTES,
             "the PTX is for %s and the software device is an sm_%d\n"
             "Fix: compile for compute_%d or lower",
             tree->target_text, SM_MAJOR_MINOR, SM_MAJOR_MINOR);
    return KILN_CU_ERROR_INVALID_PTX;
  }
  if (tree->address_size != 64) {
    snprintf(message, KILNI_SOFT_MESSAGE_BYTES,
             "the PTX has %u-bit addresses\nFix: compile for 64 bits",
             tree->address_size);
    return KILN_CU_ERROR_INVALID_PTX;
  }
  return KILN_CU_SUCCESS;
}

// The text's length, or the result for what is not a text.
static kiln_cu_result_t check_image(const void* image, size_t* out_size,
                                    char* message) {
  const char* text = image;
  // Compared byte by byte: the image may be shorter than any magic number.
  if (strncmp(text, (const char*)kElf, sizeof(kElf)) == 0 ||
      strncmp(text, (const char*)kFatbin, sizeof(kFatbin)) == 0 ||
      strncmp(text, (const char*)kFatbinWrapper, sizeof(kFatbinWrapper)) == 0) {
    snprintf(message, KILNI_SOFT_MESSAGE_BYTES,
             "the image is machine code and the software device runs PTX\n"
             "Fix: load the PTX text that it was made from");
    return KILN_CU_ERROR_NO_BINARY_FOR_GPU;
  }
  const char* end = memchr(text, 0, TEXT_LIMIT);
  *out_size = end != NULL ? (size_t)(end - text) : TEXT_LIMIT;
  if (*out_size == 0 || *out_size == TEXT_LIMIT) {
    snprintf(message, KILNI_SOFT_MESSAGE_BYTES, "the image is %s",
             *out_size == 0 ? "empty" : "longer than the limit of PTX texts");
    return KILN_CU_ERROR_INVALID_IMAGE;
  }
  return KILN_CU_SUCCESS;
}

// What an assembler refuses: more static shared memory than a kernel may have
// by itself. Beyond that it is dynamic, and asked for at the launch; code for
// one architecture and no later one may have all.
static kiln_cu_result_t module_check_shared(const kilni_soft_module_t* module,
                                            char* message) {
  bool all = module->tree->target_suffix == 'a';
  uint32_t most = all ? KILNI_SOFT_SHARED_MOST : KILNI_SOFT_SHARED_DEFAULT;
  uint32_t count = kilni_soft_code_entry_count(module->code);
  for (uint32_t i = 0; i < count; i++) {
    const kilni_soft_entry_t* entry = kilni_soft_code_entry(module->code, i);
    if (entry->static_shared_bytes <= most) continue;
    snprintf(
        message, KILNI_SOFT_MESSAGE_BYTES,
        "PTX line %u: the kernel \"%.256s\" has %u bytes of static shared "
        "memory, and %s allows %u\n"
        "Fix: make it smaller, or make it dynamic (`extern __shared__`) and "
        "give its size to the launch, up to %d bytes",
        (unsigned)entry->line, entry->name,
        (unsigned)entry->static_shared_bytes, module->tree->target_text,
        (unsigned)most, KILNI_SOFT_SHARED_MOST);
    return KILN_CU_ERROR_INVALID_PTX;
  }
  return KILN_CU_SUCCESS;
}

// Whether memory of `a` lasts as long as that of `b`, which the driver uses.
static bool lasts(kiln_allocator_t a, kiln_allocator_t b) {
  const kiln_allocator_t libc = kiln_allocator_libc();
  return (a.fn == b.fn && a.user == b.user) ||
         (a.fn == libc.fn && a.user == libc.user);
}

// The text's tree: the one that came with it, or one that is read now.
static kiln_status_t module_read_tree(const kilni_soft_driver_t* driver,
                                      const void* image, size_t size,
                                      kilni_image_ptx_module_t** out_tree) {
  const kiln_allocator_t allocator = driver->host.allocator;
  kilni_image_ptx_module_t* offered = kilni_soft_offered(image);
  if (offered != NULL &&
      lasts(kilni_image_ptx_module_allocator(offered), allocator)) {
    kilni_image_ptx_module_retain(offered);
    *out_tree = offered;
    return kiln_ok();
  }
  kiln_bytes_view_t text = {.data = image, .size = size};
  return kilni_image_ptx_module_create(text, "PTX", NULL, allocator, out_tree);
}

// Reads and decodes. Unlocked: this may take long.
static kiln_cu_result_t build(kilni_soft_driver_t* driver, const void* image,
                              kilni_soft_module_t* module, char* message) {
  size_t size;
  kiln_cu_result_t result = check_image(image, &size, message);
  if (result != KILN_CU_SUCCESS) return result;
  kiln_status_t status = module_read_tree(driver, image, size, &module->tree);
  if (!kiln_status_is_ok(status)) {
    return kilni_soft_read_result(status, true, message);
  }
  result = kilni_soft_check_target(module->tree, message);
  if (result != KILN_CU_SUCCESS) return result;
  status = kilni_soft_code_create(&driver->host, module->tree, driver->lanes,
                                  module->context->memory, &module->code);
  return kiln_status_is_ok(status)
             ? module_check_shared(module, message)
             : kilni_soft_read_result(status, false, message);
}

void kilni_soft_module_unhandle(kilni_soft_driver_t* driver,
                                kilni_soft_module_t* module) {
  kilni_soft_handle_remove(&driver->handles, module->handle);
  kilni_soft_handle_remove(&driver->handles, module->library);
  for (kilni_soft_kernel_t* k = module->kernels; k != NULL; k = k->next) {
    kilni_soft_handle_remove(&driver->handles, k->handle);
    kilni_soft_handle_remove(&driver->handles, k->of_library);
  }
}

void kilni_soft_module_dispose(kilni_soft_driver_t* driver,
                               kilni_soft_module_t* module) {
  while (module->kernels != NULL) {
    kilni_soft_kernel_t* kernel = module->kernels;
    module->kernels = kernel->next;
    kilni_base_free(driver->host.allocator, kernel, sizeof(*kernel));
  }
  kilni_soft_code_destroy(module->code);
  kilni_image_ptx_module_release(module->tree);
  kilni_base_free(driver->host.allocator, module, sizeof(*module));
}

// Registers a module that is built; locked on entry and on return.
static kiln_cu_result_t module_adopt(kilni_soft_driver_t* driver,
                                     kilni_soft_module_t* module) {
  kiln_cu_result_t result = kilni_soft_current_check(driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_result(kilni_soft_handle_add(
      &driver->handles, KILNI_SOFT_KIND_MODULE, module, &module->handle));
  if (result != KILN_CU_SUCCESS) return result;
  module->next = module->context->modules;
  module->context->modules = module;
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_module_load(kilni_soft_driver_t* driver,
                                        const void* image,
                                        const kilni_soft_jit_t* jit,
                                        kilni_soft_module_t** out_module) {
  uint64_t started_ns = kilni_base_time_ns();
  kilni_soft_module_t* module;
  kiln_cu_result_t result = kilni_soft_result(kilni_base_alloc(
      driver->host.allocator, sizeof(*module), (void**)&module));
  if (result == KILN_CU_SUCCESS) module->context = kilni_soft_current(driver);
  kilni_base_mutex_unlock(&driver->lock);
  char message[KILNI_SOFT_MESSAGE_BYTES] = "";
  if (result == KILN_CU_SUCCESS) {
    result = build(driver, image, module, message);
    kilni_soft_jit_put(jit, message, "", started_ns);
  }
  kilni_base_mutex_lock(&driver->lock);
  if (module == NULL) return result;
  if (result == KILN_CU_SUCCESS) result = module_adopt(driver, module);
  if (result == KILN_CU_SUCCESS) {
    *out_module = module;
  } else {
    kilni_soft_module_dispose(driver, module);
  }
  return result;
}

static kiln_cu_result_t row_load_ex(kiln_cu_module_t* out_module,
                                    const void* image, unsigned int count,
                                    kiln_cu_jit_option_t* options,
                                    void** values) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_jit_t jit;
  kilni_soft_module_t* module;
  result = kilni_soft_jit_read(count, options, values, &jit);
  if (out_module == NULL || image == NULL) result = KILN_CU_ERROR_INVALID_VALUE;
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_module_load(driver, image, &jit, &module);
  }
  if (result == KILN_CU_SUCCESS) {
    *out_module = (kiln_cu_module_t)(uintptr_t)module->handle;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t module_row_load(kiln_cu_module_t* module,
                                        const void* image) {
  return row_load_ex(module, image, 0, NULL, NULL);
}

// Enters a row that is about one module.
static kiln_cu_result_t enter_module(kilni_soft_needs_t needs,
                                     kiln_cu_module_t module, bool good,
                                     kilni_soft_driver_t** out_driver,
                                     kilni_soft_module_t** out_module) {
  void* found;
  kiln_cu_result_t result = kilni_soft_enter_object(
      needs, KILNI_SOFT_KIND_MODULE, module, good, out_driver, &found);
  *out_module = found;
  return result;
}

void kilni_soft_module_end(kilni_soft_driver_t* driver,
                           kilni_soft_module_t* module) {
  // First it can no longer be found, then its running work ends.
  kilni_soft_module_unhandle(driver, module);
  kilni_soft_module_t** link = &module->context->modules;
  while (*link != module) link = &(*link)->next;
  *link = module->next;
  kilni_soft_queue_drain(driver, module->context);
  kilni_soft_module_dispose(driver, module);
}

static kiln_cu_result_t module_row_unload(kiln_cu_module_t module) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* found;
  kiln_cu_result_t result =
      enter_module(KILNI_SOFT_NEEDS_CURRENT, module, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuModuleUnload");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  if (found->library != 0) {  // the library ends it
    return kilni_soft_leave(driver, KILN_CU_ERROR_NOT_PERMITTED);
  }
  const kilni_soft_context_t* context = found->context;
  kilni_soft_module_end(driver, found);
  return kilni_soft_leave(driver, kilni_soft_sticky(context));
}

// ---- Looking inside ----

static kiln_cu_result_t module_make_kernel(kilni_soft_driver_t* driver,
                                           kilni_soft_module_t* module,
                                           const kilni_soft_entry_t* entry,
                                           kilni_soft_kernel_t** out_kernel) {
  kilni_soft_kernel_t* kernel;
  kiln_status_t status = kilni_base_alloc(driver->host.allocator,
                                          sizeof(*kernel), (void**)&kernel);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  status = kilni_soft_handle_add(&driver->handles, KILNI_SOFT_KIND_FUNCTION,
                                 kernel, &kernel->handle);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(driver->host.allocator, kernel, sizeof(*kernel));
    return kilni_soft_result(status);
  }
  kernel->entry = entry;
  kernel->module = module;
  kernel->carveout = -1;
  kernel->max_dynamic_shared =
      KILNI_SOFT_SHARED_DEFAULT - (int)entry->static_shared_bytes;
  if (kernel->max_dynamic_shared < 0) kernel->max_dynamic_shared = 0;
  kernel->next = module->kernels;
  module->kernels = kernel;
  *out_kernel = kernel;
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_module_kernel(kilni_soft_driver_t* driver,
                                          kilni_soft_module_t* module,
                                          const kilni_soft_entry_t* entry,
                                          kilni_soft_kernel_t** out_kernel) {
  kilni_soft_kernel_t* kernel = module->kernels;
  while (kernel != NULL && kernel->entry != entry) kernel = kernel->next;
  *out_kernel = kernel;
  if (kernel != NULL) return KILN_CU_SUCCESS;
  return module_make_kernel(driver, module, entry, out_kernel);
}

static kiln_cu_result_t module_give_kernel(kilni_soft_driver_t* driver,
                                           kilni_soft_module_t* module,
                                           const kilni_soft_entry_t* entry,
                                           kiln_cu_function_t* out_function) {
  kilni_soft_kernel_t* kernel;
  kiln_cu_result_t result =
      kilni_soft_module_kernel(driver, module, entry, &kernel);
  if (result == KILN_CU_SUCCESS) {
    *out_function = (kiln_cu_function_t)(uintptr_t)kernel->handle;
  }
  return result;
}

static kiln_cu_result_t module_row_get_function(kiln_cu_function_t* function,
                                                kiln_cu_module_t module,
                                                const char* name) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* found;
  kiln_cu_result_t result =
      enter_module(KILNI_SOFT_NEEDS_HEALTHY, module,
                   function != NULL && name != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_entry_t* entry = kilni_soft_code_find(found->code, name);
  result = entry == NULL ? KILN_CU_ERROR_NOT_FOUND
                         : module_give_kernel(driver, found, entry, function);
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t module_row_get_global(kiln_cu_deviceptr_t* address,
                                              size_t* bytes,
                                              kiln_cu_module_t module,
                                              const char* name) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* found;
  kiln_cu_result_t result = enter_module(KILNI_SOFT_NEEDS_HEALTHY, module,
                                         name != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  uint64_t where;
  uint64_t size;
  if (kilni_soft_code_global(found->code, name, &where, &size)) {
    if (address != NULL) *address = where;
    if (bytes != NULL) *bytes = (size_t)size;
  } else {
    result = KILN_CU_ERROR_NOT_FOUND;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t module_row_count(unsigned int* count,
                                         kiln_cu_module_t module) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* found;
  kiln_cu_result_t result = enter_module(KILNI_SOFT_NEEDS_HEALTHY, module,
                                         count != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *count = kilni_soft_code_entry_count(found->code);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t module_row_enumerate(kiln_cu_function_t* functions,
                                             unsigned int count,
                                             kiln_cu_module_t module) {
  kilni_soft_driver_t* driver;
  kilni_soft_module_t* found;
  kiln_cu_result_t result =
      enter_module(KILNI_SOFT_NEEDS_HEALTHY, module,
                   functions != NULL && count > 0, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  uint32_t have = kilni_soft_code_entry_count(found->code);
  for (uint32_t i = 0; i < count && i < have && result == KILN_CU_SUCCESS;
       i++) {
    result = module_give_kernel(
        driver, found, kilni_soft_code_entry(found->code, i), &functions[i]);
  }
  return kilni_soft_leave(driver, result);
}

void kilni_soft_fill_module(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuModuleLoadData, module_row_load);
  KILNI_CUDA_SET(table, cuModuleLoadDataEx, row_load_ex);
  KILNI_CUDA_SET(table, cuModuleUnload, module_row_unload);
  KILNI_CUDA_SET(table, cuModuleGetFunction, module_row_get_function);
  KILNI_CUDA_SET(table, cuModuleGetGlobal, module_row_get_global);
  KILNI_CUDA_SET(table, cuModuleGetFunctionCount, module_row_count);
  KILNI_CUDA_SET(table, cuModuleEnumerateFunctions, module_row_enumerate);
}
