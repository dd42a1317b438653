// SPDX-License-Identifier: Apache-2.0
//
// device: kernels: found by name, with what they need and take.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "device/device_scope.h"

enum {
  MAX_PARAMS = 4096,      // asked of the driver
  LIST_LIMIT_BYTES = 900  // of names in one message
};

// ---- Not found ----

static const kilni_device_code_facts_t* kernel_facts_of(
    const kiln_module_t* module) {
  return &kilni_device_module_loaded(module)->facts;
}

// "a", "b", "c" and 4 more.
static void kernel_list_names(const kilni_device_code_facts_t* facts,
                              kilni_base_str_t* text) {
  for (size_t i = 0; i < facts->kernel_count; i++) {
    if (text->size > LIST_LIMIT_BYTES) {
      kilni_base_str_addf(text, " and %zu more", facts->kernel_count - i);
      return;
    }
    kilni_base_str_addf(text, "%s\"%s\"", i > 0 ? ", " : "",
                        facts->kernels[i].name);
  }
}

static kiln_status_t with_names(const kiln_module_t* module,
                                kiln_status_t status) {
  kilni_base_str_t names;
  kilni_base_str_init(&names, module->device->host->allocator, 16384);
  kernel_list_names(kernel_facts_of(module), &names);
  if (kernel_facts_of(module)->kernel_count > 0) {
    status = kilni_base_status_with_fix(status, "name one of %s",
                                        kilni_base_str_cstr(&names));
  } else if (kernel_facts_of(module)->is_listed) {
    status = kilni_base_status_with_fix(
        status,
        "the module has no kernel: mark one `.entry` (in CUDA C++ "
        "__global__)");
  } else {
    status = kilni_base_status_with_fix(
        status,
        "names of C++ kernels are mangled: declare it extern \"C\", or "
        "ask the compiler for its lowered name");
  }
  kilni_base_str_deinit(&names);
  return status;
}

static kiln_status_t not_found(const kiln_module_t* module, const char* name) {
  return with_names(
      module, KILNI_FAIL(NOT_FOUND, "no kernel \"%s\" in module \"%s\"", name,
                         module->name));
}

// The name to look for: the given one, or that of the only kernel.
static kiln_status_t choose_name(const kiln_module_t* module,
                                 const char** inout_name) {
  const kilni_device_code_facts_t* facts = kernel_facts_of(module);
  if (*inout_name != NULL) {
    if (facts->is_listed && kilni_device_code_facts_find(facts, *inout_name) ==
                                facts->kernel_count) {
      return not_found(module, *inout_name);
    }
    return kiln_ok();
  }
  if (facts->kernel_count == 1) {
    *inout_name = facts->kernels[0].name;
    return kiln_ok();
  }
  if (facts->kernel_count == 0 && facts->is_listed) {
    return with_names(
        module,
        KILNI_FAIL(NOT_FOUND, "no kernel in module \"%s\"", module->name));
  }
  return with_names(
      module,
      KILNI_FAIL(INVALID_ARGUMENT,
                 "module \"%s\" has %zu kernels that can be listed, and "
                 "none was named",
                 module->name, facts->kernel_count));
}

// ---- Facts ----

static kiln_status_t kernel_read_attribute(kiln_kernel_t* kernel,
                                           kiln_cu_function_attribute_t id,
                                           uint32_t* out_value) {
  int value = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, kernel->module->device, cuFuncGetAttribute, &value,
                    id, kernel->handle);
  *out_value = value > 0 ? (uint32_t)value : 0;
  return status;
}

static kiln_status_t kernel_read_attributes(kiln_kernel_t* kernel) {
  kiln_kernel_info_t* info = &kernel->info;
  KILNI_RETURN_IF_ERROR(kernel_read_attribute(
      kernel, KILN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
      &info->max_threads));
  KILNI_RETURN_IF_ERROR(
      kernel_read_attribute(kernel, KILN_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                            &info->static_shared_bytes));
  KILNI_RETURN_IF_ERROR(kernel_read_attribute(
      kernel, KILN_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &info->const_bytes));
  KILNI_RETURN_IF_ERROR(kernel_read_attribute(
      kernel, KILN_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &info->local_bytes));
  return kernel_read_attribute(kernel, KILN_CU_FUNC_ATTRIBUTE_NUM_REGS,
                               &info->registers);
}

// Queries the driver for one parameter; false after the last.
static kiln_status_t ask_param(kiln_kernel_t* kernel, size_t index,
                               kiln_kernel_param_t* out_param, bool* out_more) {
  size_t offset = 0;
  size_t bytes = 0;
  *out_more = false;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, kernel->module->device, cuFuncGetParamInfo,
                    kernel->handle, index, &offset, &bytes);
  if (kiln_status_code(status) == KILN_STATUS_INVALID_ARGUMENT) {
    kiln_status_free(status);  // the parameter does not exist
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(status);
  out_param->name = "";
  out_param->offset = (uint32_t)offset;
  out_param->bytes = (uint32_t)bytes;
  *out_more = true;
  return kiln_ok();
}

static kiln_status_t ask_params(kiln_kernel_t* kernel) {
  kiln_device_t* device = kernel->module->device;
  if (!kilni_table_cuda_has(device->table, KILNI_CUDA_ROW_cuFuncGetParamInfo)) {
    return kiln_ok();
  }
  uint32_t count = 0;
  kiln_kernel_param_t param;
  bool more = true;
  while (more && count < MAX_PARAMS) {
    memset(&param, 0, sizeof(param));
    KILNI_RETURN_IF_ERROR(ask_param(kernel, count, &param, &more));
    if (more) count++;
  }
  if (count > 0) {
    void* params = NULL;
    KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
        device->host->allocator, count, sizeof(kiln_kernel_param_t), &params));
    kernel->own_params = params;
    kernel->info.param_count = count;
  }
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(ask_param(kernel, i, &kernel->own_params[i], &more));
  }
  kernel->params = kernel->own_params;
  kernel->info.params_known = 1;
  return kiln_ok();
}

static kiln_status_t read_params(kiln_kernel_t* kernel) {
  const kilni_device_code_facts_t* facts = kernel_facts_of(kernel->module);
  size_t index = kilni_device_code_facts_find(facts, kernel->name);
  if (index < facts->kernel_count && facts->kernels[index].params_known) {
    const kilni_device_code_kernel_t* found = &facts->kernels[index];
    kernel->params = found->params;
    kernel->info.param_count = found->param_count;
    kernel->info.params_known = 1;
    memcpy(kernel->info.required_block, found->required_block,
           sizeof(found->required_block));
  } else {
    KILNI_RETURN_IF_ERROR(ask_params(kernel));
  }
  if (kernel->info.param_count > 0) {
    const kiln_kernel_param_t* last =
        &kernel->params[kernel->info.param_count - 1];
    kernel->info.param_bytes = last->offset + last->bytes;
  }
  return kiln_ok();
}

// Whether it runs in clusters: as its file states, or for foreign kernels and
// those of files with many, the driver. A grid that counts clusters may have
// any size.
static kiln_status_t read_clusters(kiln_kernel_t* kernel) {
  const kilni_device_code_facts_t* facts = kernel_facts_of(kernel->module);
  size_t index = kilni_device_code_facts_find(facts, kernel->name);
  if (index < facts->kernel_count && facts->kernels[index].params_known) {
    const kilni_device_code_kernel_t* found = &facts->kernels[index];
    const uint32_t* cluster = found->required_cluster;
    if (found->blocks_are_clusters) return kiln_ok();
    kernel->in_clusters = found->explicit_cluster || cluster[0] != 0;
    for (int i = 0; i < 3 && cluster[0] != 0; i++) {
      kernel->cluster[i] = cluster[i] != 0 ? cluster[i] : 1;
    }
    return kiln_ok();
  }
  uint32_t must = 0, width = 0;
  if (!kernel->module->device->info.cluster_launch) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kernel_read_attribute(
      kernel, KILN_CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &must));
  if (must == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kernel_read_attribute(
      kernel, KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &width));
  kernel->in_clusters = width == 0;
  return kiln_ok();
}

// ---- Making and ending ----

static kiln_status_t set_name(kiln_kernel_t* kernel, const char* name) {
  KILNI_RETURN_IF_ERROR(
      kilni_base_strdup(kernel->module->device->host->allocator,
                        kilni_base_sv(name), &kernel->name));
  kernel->info.name = kernel->name;
  return kiln_ok();
}

static kiln_status_t kernel_fill(kiln_kernel_t* kernel, const char* name) {
  kiln_module_t* module = kernel->module;
  KILNI_RETURN_IF_ERROR(set_name(kernel, name));
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, module->device, cuModuleGetFunction,
                    &kernel->handle, kilni_device_module_loaded(module)->handle,
                    name);
  if (kiln_status_code(status) == KILN_STATUS_NOT_FOUND) {
    kiln_status_free(status);
    return not_found(module, name);
  }
  KILNI_RETURN_IF_ERROR(status);
  KILNI_RETURN_IF_ERROR(kernel_read_attributes(kernel));
  KILNI_RETURN_IF_ERROR(read_clusters(kernel));
  return read_params(kernel);
}

// An empty one, which retains the module.
static kiln_status_t kernel_make(kiln_module_t* module,
                                 kiln_kernel_t** out_kernel) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(module->device->host->allocator,
                                         sizeof(kiln_kernel_t), &block));
  kiln_kernel_t* kernel = block;
  kernel->module = module;
  kiln_module_retain(module);
  atomic_init(&kernel->references, 1);
  atomic_init(&kernel->opted_in, false);
  atomic_init(&kernel->known, 0);
  *out_kernel = kernel;
  return kiln_ok();
}

kiln_status_t kiln_kernel_create(kiln_module_t* module, const char* name,
                                 kiln_kernel_t** out_kernel) {
  KILNI_CHECK_ARGUMENT(out_kernel != NULL, "out_kernel");
  *out_kernel = NULL;
  KILNI_CHECK_ARGUMENT(module != NULL, "module");
  const kilni_device_loaded_t* loaded;
  KILNI_RETURN_IF_ERROR(kilni_device_module_need(module, &loaded));
  name = kilni_device_module_lower(module, name);
  KILNI_RETURN_IF_ERROR(choose_name(module, &name));
  kiln_kernel_t* kernel = NULL;
  KILNI_RETURN_IF_ERROR(kernel_make(module, &kernel));
  kiln_status_t status = kernel_fill(kernel, name);
  if (!kiln_status_is_ok(status)) {
    kiln_kernel_release(kernel);
    return status;
  }
  *out_kernel = kernel;
  return kiln_ok();
}

// ---- Other people's ----

// What the driver reports of a CUkernel. one-thread
typedef struct adopted_t {
  kiln_cu_function_t function;
  kiln_cu_library_t library;  // NULL: a driver that does not report it
  kiln_cu_module_t module;
  const char* name;
} adopted_t;

static kiln_status_t ask_adopted(kiln_device_t* device, void* handle,
                                 adopted_t* out) {
  const kiln_cuda_table_t* table = device->table;
  kiln_cu_kernel_t kernel = handle;
  kiln_status_t status;
  memset(out, 0, sizeof(*out));
  out->name = "";
  KILNI_DEVICE_CALL(status, device, cuKernelGetFunction, &out->function,
                    kernel);
  KILNI_RETURN_IF_ERROR(status);
  KILNI_DEVICE_CALL(status, device, cuFuncGetModule, &out->module,
                    out->function);
  KILNI_RETURN_IF_ERROR(status);
  if (kilni_table_cuda_has(table, KILNI_CUDA_ROW_cuKernelGetName)) {
    KILNI_DEVICE_CALL(status, device, cuKernelGetName, &out->name, kernel);
    KILNI_RETURN_IF_ERROR(status);
  }
  if (kilni_table_cuda_has(table, KILNI_CUDA_ROW_cuKernelGetLibrary)) {
    KILNI_DEVICE_CALL(status, device, cuKernelGetLibrary, &out->library,
                      kernel);
  }
  return status;
}

static kiln_status_t fill_adopted(kiln_kernel_t* kernel,
                                  const adopted_t* said) {
  kernel->handle = said->function;
  KILNI_RETURN_IF_ERROR(set_name(kernel, said->name));
  KILNI_RETURN_IF_ERROR(kernel_read_attributes(kernel));
  KILNI_RETURN_IF_ERROR(read_clusters(kernel));
  return read_params(kernel);
}

kiln_status_t kiln_kernel_adopt(kiln_device_t* device, void* handle,
                                const kiln_owner_t* owner,
                                kiln_kernel_t** out_kernel) {
  KILNI_CHECK_ARGUMENT(out_kernel != NULL, "out_kernel");
  *out_kernel = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(handle != NULL, "handle");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  adopted_t said;
  KILNI_RETURN_IF_ERROR(ask_adopted(device, handle, &said));
  kiln_module_t* module = kilni_device_module_of_library(device, said.library);
  bool is_ours = module != NULL;
  if (!is_ours) {
    KILNI_RETURN_IF_ERROR(
        kilni_device_module_make_foreign(device, said.module, &module));
  }
  kiln_kernel_t* kernel = NULL;
  kiln_status_t status = kernel_make(module, &kernel);
  kiln_module_release(module);  // the kernel has it
  KILNI_RETURN_IF_ERROR(status);
  status = fill_adopted(kernel, &said);
  if (!kiln_status_is_ok(status)) {
    kiln_kernel_release(kernel);
    return status;
  }
  *out_kernel = kernel;
  if (owner == NULL) return kiln_ok();
  if (is_ours) {
    kilni_device_owner_release(*owner);
  } else {
    module->owner = *owner;
  }
  return kiln_ok();
}

void kiln_kernel_retain(kiln_kernel_t* kernel) {
  if (kernel == NULL) return;
  atomic_fetch_add_explicit(&kernel->references, 1, memory_order_relaxed);
}

void kiln_kernel_release(kiln_kernel_t* kernel) {
  if (kernel == NULL || kilni_device_is_forked(kernel->module->device)) return;
  if (atomic_fetch_sub_explicit(&kernel->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_module_t* module = kernel->module;
  kiln_allocator_t allocator = module->device->host->allocator;
  kilni_base_strfree(allocator, kernel->name);
  if (kernel->own_params != NULL) {
    kilni_base_free_array(allocator, kernel->own_params,
                          kernel->info.param_count,
                          sizeof(kiln_kernel_param_t));
  }
  kilni_base_free(allocator, kernel, sizeof(*kernel));
  kiln_module_release(module);
}

kiln_module_t* kiln_kernel_module(const kiln_kernel_t* kernel) {
  return kernel->module;
}

const char* kiln_kernel_name(const kiln_kernel_t* kernel) {
  return kernel->name;
}

void* kiln_kernel_handle(const kiln_kernel_t* kernel) {
  return kernel->handle;
}

const kiln_kernel_info_t* kiln_kernel_info(const kiln_kernel_t* kernel) {
  return &kernel->info;
}

const kiln_kernel_param_t* kiln_kernel_param(const kiln_kernel_t* kernel,
                                             uint32_t index) {
  if (index >= kernel->info.param_count) return NULL;
  return &kernel->params[index];
}
