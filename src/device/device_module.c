// SPDX-License-Identifier: Apache-2.0
//
// device: modules: device code loaded, with the log of the driver's compiler.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "base/str.h"
#include "device/device_scope.h"

enum {
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
  kilni_base_strfree(allocator, log->text);
  kilni_base_free(allocator, log, sizeof(*log));
}

// What one load needs beside the module. one-thread
typedef struct load_t {
  kiln_device_t* device;
  kilni_device_loaded_t* loaded;
  const char* name;
  kiln_status_t doubt;  // of our own reader
  kiln_code_t* code;    // that is loaded; NULL: bytes that nobody keeps
  kiln_code_t* described_by;
} load_t;

static const char* error_text(const load_t* load) {
  return load->loaded->logs;
}
static const char* info_text(const load_t* load) {
  return load->loaded->logs + KILNI_LOAD_LOG_BYTES;
}

// ---- Errors ----

// The driver's log gives the cause first; that a call failed is a note to it.
static kiln_status_t led_by(kiln_status_t status, const char* name,
                            kiln_string_view_t line) {
  kiln_status_native_t native;
  kiln_status_t led =
      kilni_base_status_make(kiln_status_code(status), KILNI_MODULE, __FILE__,
                             __LINE__, "\"%s\": %.*s", name, KILNI_SV(line));
  if (kiln_status_native(status, &native)) {
    led = kilni_base_status_with_native(led, native.domain, native.number,
                                        native.name);
  }
  led = KILNI_ANNOTATE(led, "%s", kiln_status_message(status));
  const char* fix = kiln_status_fix(status);
  if (fix != NULL) led = kilni_base_status_with_fix(led, "%s", fix);
  kiln_status_free(status);
  return led;
}

static kiln_status_t ptx_too_new(const load_t* load, kiln_status_t status) {
  uint32_t isa = load->loaded->facts.ptx_isa;
  uint32_t version = load->device->info.driver_version;
  char text[256];
  (void)snprintf(text, sizeof(text),
                 "it is PTX %u.%u and the driver of \"%s\" is for CUDA %u.%u",
                 (unsigned)(isa / 10), (unsigned)(isa % 10), load->device->name,
                 (unsigned)(version / 1000), (unsigned)(version % 1000 / 10));
  return led_by(status, load->name, kilni_base_sv(text));
}

static kiln_status_t load_failed(load_t* load, kiln_cu_result_t result,
                                 const char* call) {
  kiln_status_t status = KILNI_DEVICE_CHECK(load->device, result, call);
  if (result == KILN_CU_ERROR_UNSUPPORTED_PTX_VERSION) {
    return ptx_too_new(load, status);
  }
  kiln_string_view_t rest = kilni_base_sv(error_text(load));
  kiln_string_view_t line;
  bool said = false;
  while (kilni_base_sv_split(&rest, '\n', &line)) {
    if (line.size == 0) continue;
    if (line.size > LOG_LINE_BYTES) line.size = LOG_LINE_BYTES;
    if (kilni_device_driver_log_is_fix(line)) continue;
    status = said ? KILNI_ANNOTATE(status, "%.*s", KILNI_SV(line))
                  : led_by(status, load->name, line);
    said = true;
  }
  status = kilni_device_driver_log_fix(status, error_text(load));
  if (!said) {
    status = KILNI_ANNOTATE(status, "while loading \"%s\"", load->name);
  }
  // What our reader found names the line; a driver often does not.
  if (!kiln_status_is_ok(load->doubt)) {
    kiln_status_t first = load->doubt;
    load->doubt = NULL;
    status = kilni_base_status_join(first, status);
  }
  return status;
}

static kiln_status_t refuse_format(const kiln_device_t* device, uint32_t format,
                                   const char* name) {
  if (device->info.kind != KILN_DEVICE_KIND_SOFT) return kiln_ok();
  if (format == KILN_CODE_FORMAT_PTX) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "\"%s\" is a %s: the software device executes PTX only", name,
                 kiln_code_format_name(format)),
      "compile the source to PTX, or run it on a GPU (`--device cuda:0`)");
}

// ---- Loading ----

static void module_fill_options(kilni_device_loaded_t* loaded) {
  static const kiln_cu_jit_option_t kOptions[KILNI_LOAD_OPTIONS] = {
      KILN_CU_JIT_ERROR_LOG_BUFFER, KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
      KILN_CU_JIT_INFO_LOG_BUFFER, KILN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  memcpy(loaded->options, kOptions, sizeof(kOptions));
  loaded->values[0] = loaded->logs;
  loaded->values[1] = (void*)(uintptr_t)(KILNI_LOAD_LOG_BYTES - 1);
  loaded->values[2] = loaded->logs + KILNI_LOAD_LOG_BYTES;
  loaded->values[3] = (void*)(uintptr_t)(KILNI_LOAD_LOG_BYTES - 1);
}

// What was read of the text goes with it to a driver that takes it.
static void module_offer(const load_t* load, const void* data) {
  const kilni_device_code_facts_t* facts = &load->loaded->facts;
  if (load->device->offer == NULL || facts->tree == NULL) return;
  load->device->offer(data, facts->tree);
}

static void module_end_offer(const load_t* load) {
  if (load->device->offer != NULL) load->device->offer(NULL, NULL);
  kilni_device_code_facts_drop_tree(&load->loaded->facts);
}

// Loads bytes that end with a NUL, which PTX needs.
static kiln_status_t load_text(load_t* load, const void* data) {
  kiln_device_t* device = load->device;
  kilni_device_loaded_t* loaded = load->loaded;
  kilni_device_scope_t scope;
  KILNI_RETURN_IF_ERROR(kilni_device_scope_enter(
      &scope, device, KILNI_CUDA_ROW_cuModuleLoadDataEx));
  module_offer(load, data);
  kiln_cu_result_t result = device->table->cuModuleLoadDataEx(
      &loaded->handle, data, KILNI_LOAD_OPTIONS, loaded->options,
      loaded->values);
  module_end_offer(load);
  kiln_status_t status = kiln_ok();
  if (result != KILN_CU_SUCCESS) {
    loaded->handle = NULL;  // what a failed call wrote is none
    status = load_failed(load, result, "cuModuleLoadDataEx");
  }
  return kilni_device_scope_leave(&scope, status);
}

// The same as a library, where the driver has them.
static kiln_status_t load_library(load_t* load, const void* data) {
  kiln_device_t* device = load->device;
  kilni_device_loaded_t* loaded = load->loaded;
  const kiln_cuda_table_t* table = device->table;
  if (!kilni_table_cuda_has(table, KILNI_CUDA_ROW_cuLibraryLoadData) ||
      !kilni_table_cuda_has(table, KILNI_CUDA_ROW_cuLibraryGetModule)) {
    return load_text(load, data);
  }
  kilni_device_scope_t scope;
  KILNI_RETURN_IF_ERROR(kilni_device_scope_enter(
      &scope, device, KILNI_CUDA_ROW_cuLibraryLoadData));
  const char* call = "cuLibraryLoadData";
  module_offer(load, data);
  kiln_cu_result_t result = table->cuLibraryLoadData(
      &loaded->library, data, loaded->options, loaded->values,
      KILNI_LOAD_OPTIONS, NULL, NULL, 0);
  module_end_offer(load);
  if (result != KILN_CU_SUCCESS) {
    loaded->library = NULL;  // what a failed call wrote is none
  } else {
    call = "cuLibraryGetModule";
    result = table->cuLibraryGetModule(&loaded->handle, loaded->library);
  }
  kiln_status_t status = kiln_ok();
  if (result != KILN_CU_SUCCESS) status = load_failed(load, result, call);
  return kilni_device_scope_leave(&scope, status);
}

static kiln_status_t load_copy(load_t* load, kiln_bytes_view_t bytes) {
  // Behind the last byte of code lies a NUL.
  if (load->code != NULL) return load_text(load, bytes.data);
  kiln_allocator_t allocator = load->device->host->allocator;
  void* copy = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(allocator, bytes.size + 1, &copy));
  memcpy(copy, bytes.data, bytes.size);
  kiln_status_t status = load_text(load, copy);
  kilni_base_free(allocator, copy, bytes.size + 1);
  return status;
}

// The names of a cubin's kernels, where the driver can list them (12.4). A
// module without such a list works as well.
static kiln_status_t list_functions(load_t* load,
                                    const kiln_cu_function_t* functions,
                                    unsigned int count) {
  kilni_device_code_facts_t* facts = &load->loaded->facts;
  // Those that PTX describes are there already.
  const bool any = facts->kernel_count > 0;
  for (unsigned int i = 0; i < count; i++) {
    const char* name = NULL;
    kiln_status_t status;
    KILNI_DEVICE_CALL(status, load->device, cuFuncGetName, &name, functions[i]);
    KILNI_RETURN_IF_ERROR(status);
    if (name == NULL || (any && kilni_device_code_facts_find(facts, name) <
                                    facts->kernel_count)) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(kilni_device_code_facts_add(facts, name));
  }
  return kiln_ok();
}

static kiln_status_t list_kernels(load_t* load) {
  kiln_device_t* device = load->device;
  const kiln_cuda_table_t* table = device->table;
  if (load->loaded->facts.is_listed ||
      !kilni_table_cuda_has(table, KILNI_CUDA_ROW_cuModuleGetFunctionCount) ||
      !kilni_table_cuda_has(table, KILNI_CUDA_ROW_cuModuleEnumerateFunctions) ||
      !kilni_table_cuda_has(table, KILNI_CUDA_ROW_cuFuncGetName)) {
    return kiln_ok();
  }
  unsigned int count = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuModuleGetFunctionCount, &count,
                    load->loaded->handle);
  if (!kiln_status_is_ok(status) || count == 0) return status;
  bool all = count <= MAX_LISTED;
  if (!all) count = MAX_LISTED;
  void* functions = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      device->host->allocator, count, sizeof(kiln_cu_function_t), &functions));
  KILNI_DEVICE_CALL(status, device, cuModuleEnumerateFunctions, functions,
                    count, load->loaded->handle);
  if (kiln_status_is_ok(status)) {
    status = list_functions(load, functions, count);
    load->loaded->facts.is_listed = all && kiln_status_is_ok(status);
  }
  kilni_base_free_array(device->host->allocator, functions, count,
                        sizeof(kiln_cu_function_t));
  return status;
}

static kiln_status_t module_take_log(const load_t* load,
                                     kiln_load_log_t** out_log) {
  kiln_allocator_t allocator = load->device->host->allocator;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_load_log_t), &block));
  kiln_load_log_t* log = block;
  log->allocator = allocator;
  kilni_base_str_t text;
  kilni_base_str_init(&text, allocator, 4 * KILNI_LOAD_LOG_BYTES);
  kilni_base_str_add_cstr(&text, error_text(load));
  if (text.size > 0 && text.data[text.size - 1] != '\n' &&
      info_text(load)[0] != 0) {
    kilni_base_str_add_char(&text, '\n');
  }
  kilni_base_str_add_cstr(&text, info_text(load));
  kiln_status_t status = kilni_base_str_take(&text, &log->text);
  if (!kiln_status_is_ok(status)) {
    kiln_load_log_release(log);
    return status;
  }
  *out_log = log;
  return kiln_ok();
}

static kiln_status_t module_read_image(load_t* load, kiln_bytes_view_t bytes) {
  kiln_allocator_t allocator = load->device->host->allocator;
  kilni_device_code_facts_t* facts = &load->loaded->facts;
  // A driver that takes what was read keeps it anyway.
  bool keeps = load->device->offer != NULL;
  kilni_device_code_source_t source = {bytes, load->name, load->code, keeps};
  KILNI_RETURN_IF_ERROR(
      kilni_device_code_facts_init(facts, allocator, &source, &load->doubt));
  if (!keeps) kilni_device_code_facts_drop_tree(facts);
  if (load->described_by != NULL) {
    kilni_device_code_source_t ptx = {kiln_code_bytes(load->described_by),
                                      load->name, load->described_by, false};
    KILNI_RETURN_IF_ERROR(kilni_device_code_facts_describe(facts, &ptx));
  }
  return refuse_format(load->device, facts->format, load->name);
}

// Unloads, then frees what the driver may have written into until then.
static void loaded_free(kiln_device_t* device, kilni_device_loaded_t* loaded) {
  kiln_allocator_t allocator = device->host->allocator;
  kilni_base_registry_remove(&device->registry, &loaded->entry);
  if (loaded->foreign) {
    // The code that loaded it unloads it.
  } else if (loaded->library != NULL) {
    KILNI_DEVICE_END(device, cuLibraryUnload, loaded->library);
  } else if (loaded->handle != NULL) {
    KILNI_DEVICE_END(device, cuModuleUnload, loaded->handle);
  }
  kilni_device_code_facts_deinit(&loaded->facts);
  if (loaded->logs != NULL) {
    kilni_base_free(allocator, loaded->logs, 2 * KILNI_LOAD_LOG_BYTES);
  }
  kilni_base_free(allocator, loaded, sizeof(*loaded));
}

static kiln_status_t loaded_create(kiln_device_t* device,
                                   kilni_device_loaded_t** out_loaded) {
  kiln_allocator_t allocator = device->host->allocator;
  void* block = NULL;
  void* logs = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kilni_device_loaded_t), &block));
  kiln_status_t status =
      kilni_base_alloc(allocator, 2 * KILNI_LOAD_LOG_BYTES, &logs);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(allocator, block, sizeof(kilni_device_loaded_t));
    return status;
  }
  *out_loaded = block;
  (*out_loaded)->facts.allocator = allocator;
  (*out_loaded)->logs = logs;
  module_fill_options(*out_loaded);
  return kiln_ok();
}

static kiln_status_t module_create(kiln_device_t* device, const char* name,
                                   kiln_module_t** out_module) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_module_t), &block));
  kiln_module_t* module = block;
  module->device = device;
  kiln_device_retain(device);
  atomic_init(&module->references, 1);
  atomic_init(&module->loaded, NULL);
  kiln_status_t status = kilni_base_strdup(device->host->allocator,
                                           kilni_base_sv(name), &module->name);
  if (!kiln_status_is_ok(status)) {
    kiln_module_release(module);
    return status;
  }
  *out_module = module;
  return kiln_ok();
}

// Loads `image` for `module`; `*out_loaded` belongs to the caller.
static kiln_status_t load_eagerly(load_t* load, kiln_bytes_view_t image,
                                  kiln_load_log_t** out_log) {
  KILNI_RETURN_IF_ERROR(loaded_create(load->device, &load->loaded));
  kiln_status_t status = module_read_image(load, image);
  if (kiln_status_is_ok(status)) status = load_copy(load, image);
  if (kiln_status_is_ok(status)) status = list_kernels(load);
  if (out_log != NULL &&
      kiln_status_code(status) != KILN_STATUS_OUT_OF_MEMORY) {
    status = kilni_base_status_join(status, module_take_log(load, out_log));
  }
  return status;
}

static kiln_status_t check_describing(const kiln_code_t* code) {
  if (code == NULL || kiln_code_format(code) == KILN_CODE_FORMAT_PTX) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" describes a module and is not PTX",
                 kiln_code_name(code)),
      "give the PTX that the module's code was made from, or NULL");
}

// The code that describes a module, where the module is that code.
static kiln_code_t* module_is_of(kiln_code_t* described_by,
                                 kiln_bytes_view_t image) {
  kiln_bytes_view_t bytes = kiln_code_bytes(described_by);
  bool is_same = image.data != NULL && bytes.data == image.data &&
                 bytes.size == image.size;
  return is_same ? described_by : NULL;
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
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_module_options_t, &given));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  kiln_module_t* module = NULL;
  KILNI_RETURN_IF_ERROR(check_describing(given.described_by));
  KILNI_RETURN_IF_ERROR(
      module_create(device, given.name ? given.name : "", &module));
  kiln_code_t* code = module_is_of(given.described_by, image);
  load_t load = {device, NULL, given.name ? given.name : "the module",
                 NULL,   code, given.described_by};
  kiln_status_t status = load_eagerly(&load, image, out_log);
  kiln_status_free(load.doubt);
  atomic_store_explicit(&module->loaded, load.loaded, memory_order_release);
  if (!kiln_status_is_ok(status)) {
    kiln_module_release(module);
    return status;
  }
  *out_module = module;
  return kiln_ok();
}

// ---- Modules from code ----

static kiln_status_t module_check_format(const kiln_code_t* code) {
  uint32_t format = kiln_code_format(code);
  if (format == KILN_CODE_FORMAT_PTX || format == KILN_CODE_FORMAT_CUBIN ||
      format == KILN_CODE_FORMAT_FATBIN) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "\"%s\" is %s, which is not loaded but linked",
                 kiln_code_name(code), kiln_code_format_name(format)),
      "link it first (kiln_link_create, `kiln link`), and load the result");
}

kiln_status_t kiln_module_create(kiln_device_t* device, kiln_code_t* code,
                                 const kiln_module_options_t* options,
                                 kiln_module_t** out_module) {
  KILNI_CHECK_ARGUMENT(out_module != NULL, "out_module");
  *out_module = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(code != NULL, "code");
  kiln_module_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_module_options_t, &given));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(module_check_format(code));
  KILNI_RETURN_IF_ERROR(check_describing(given.described_by));
  const char* name = given.name != NULL ? given.name : kiln_code_name(code);
  KILNI_RETURN_IF_ERROR(module_create(device, name, out_module));
  kiln_code_retain(code);
  kiln_code_retain(given.described_by);
  (*out_module)->code = code;
  (*out_module)->described_by = given.described_by;
  return kiln_ok();
}

const kilni_device_loaded_t* kilni_device_module_loaded(
    const kiln_module_t* module) {
  return atomic_load_explicit(&module->loaded, memory_order_acquire);
}

bool kiln_module_is_loaded(const kiln_module_t* module) {
  return kilni_device_module_loaded(module) != NULL;
}

static kilni_base_registry_key_t library_key(kiln_cu_library_t library) {
  return (kilni_base_registry_key_t){(uint64_t)(uintptr_t)library,
                                     KILNI_REGISTERED_LIBRARY, 0};
}

static void register_library(kiln_module_t* module,
                             kilni_device_loaded_t* loaded) {
  if (loaded->library == NULL) return;
  kilni_base_registry_put(&module->device->registry, &loaded->entry,
                          library_key(loaded->library), module,
                          &module->references);
}

// No lock: of two threads that load at once, the second one's is thrown away,
// so that a log sink may use the module that is being loaded.
static kiln_status_t load_lazily(kiln_module_t* module) {
  kiln_device_t* device = module->device;
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  load_t load = {device, NULL,         module->name,
                 NULL,   module->code, module->described_by};
  KILNI_RETURN_IF_ERROR(loaded_create(device, &load.loaded));
  // A NUL follows the last byte of code, as PTX needs it.
  kiln_bytes_view_t bytes = kiln_code_bytes(module->code);
  kiln_status_t status = module_read_image(&load, bytes);
  if (kiln_status_is_ok(status)) status = load_library(&load, bytes.data);
  if (kiln_status_is_ok(status)) status = list_kernels(&load);
  kiln_status_free(load.doubt);
  if (kiln_status_is_ok(status)) register_library(module, load.loaded);
  kilni_device_loaded_t* none = NULL;
  if (!kiln_status_is_ok(status) ||
      !atomic_compare_exchange_strong_explicit(
          &module->loaded, &none, load.loaded, memory_order_acq_rel,
          memory_order_acquire)) {
    loaded_free(device, load.loaded);
  }
  return status;
}

kiln_status_t kilni_device_module_need(
    kiln_module_t* module, const kilni_device_loaded_t** out_loaded) {
  *out_loaded = kilni_device_module_loaded(module);
  if (*out_loaded != NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(module->device->host));
  KILNI_RETURN_IF_ERROR(load_lazily(module));
  *out_loaded = kilni_device_module_loaded(module);
  return kiln_ok();
}

kiln_status_t kiln_module_ready(kiln_module_t* module) {
  KILNI_CHECK_ARGUMENT(module != NULL, "module");
  const kilni_device_loaded_t* loaded;
  return kilni_device_module_need(module, &loaded);
}

const char* kilni_device_module_lower(const kiln_module_t* module,
                                      const char* name) {
  if (module->code == NULL || name == NULL) return name;
  const char* lowered = kiln_code_lowered_name(module->code, name);
  return lowered != NULL ? lowered : name;
}

// ---- Other people's ----

kiln_module_t* kilni_device_module_of_library(kiln_device_t* device,
                                              kiln_cu_library_t library) {
  if (library == NULL) return NULL;
  return kilni_base_registry_find(&device->registry, library_key(library));
}

kiln_status_t kilni_device_module_make_foreign(kiln_device_t* device,
                                               kiln_cu_module_t handle,
                                               kiln_module_t** out_module) {
  kiln_allocator_t allocator = device->host->allocator;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      module_create(device, "another library's module", out_module));
  kiln_status_t status =
      kilni_base_alloc(allocator, sizeof(kilni_device_loaded_t), &block);
  if (!kiln_status_is_ok(status)) {
    kiln_module_release(*out_module);
    *out_module = NULL;
    return status;
  }
  kilni_device_loaded_t* loaded = block;
  loaded->foreign = true;
  loaded->handle = handle;
  loaded->facts.allocator = allocator;
  atomic_store_explicit(&(*out_module)->loaded, loaded, memory_order_release);
  return kiln_ok();
}

// ---- Both ----

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
  kilni_device_loaded_t* loaded =
      atomic_load_explicit(&module->loaded, memory_order_acquire);
  if (loaded != NULL) loaded_free(device, loaded);
  kiln_code_release(module->code);
  kiln_code_release(module->described_by);
  kilni_base_strfree(allocator, module->name);
  kiln_owner_t owner = module->owner;
  kilni_base_free(allocator, module, sizeof(*module));
  kilni_device_owner_release(owner);
  kiln_device_release(device);
}

void* kiln_module_handle(const kiln_module_t* module) {
  const kilni_device_loaded_t* loaded = kilni_device_module_loaded(module);
  return loaded != NULL ? loaded->handle : NULL;
}

void* kiln_module_library(const kiln_module_t* module) {
  const kilni_device_loaded_t* loaded = kilni_device_module_loaded(module);
  return loaded != NULL ? loaded->library : NULL;
}

kiln_device_t* kiln_module_device(const kiln_module_t* module) {
  return module->device;
}

uint32_t kiln_module_kernel_count(const kiln_module_t* module) {
  const kilni_device_loaded_t* loaded = kilni_device_module_loaded(module);
  return loaded != NULL ? (uint32_t)loaded->facts.kernel_count : 0;
}

const char* kiln_module_kernel_name(const kiln_module_t* module,
                                    uint32_t index) {
  if (index >= kiln_module_kernel_count(module)) return NULL;
  return kilni_device_module_loaded(module)->facts.kernels[index].name;
}

kiln_status_t kiln_module_global(kiln_module_t* module, const char* name,
                                 uint64_t* out_address, uint64_t* out_bytes) {
  KILNI_CHECK_ARGUMENT(out_address != NULL, "out_address");
  KILNI_CHECK_ARGUMENT(out_bytes != NULL, "out_bytes");
  *out_address = 0;
  *out_bytes = 0;
  KILNI_CHECK_ARGUMENT(module != NULL, "module");
  KILNI_CHECK_ARGUMENT(name != NULL, "name");
  const kilni_device_loaded_t* loaded;
  KILNI_RETURN_IF_ERROR(kilni_device_module_need(module, &loaded));
  kiln_cu_deviceptr_t address = 0;
  size_t bytes = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, module->device, cuModuleGetGlobal, &address, &bytes,
                    loaded->handle, kilni_device_module_lower(module, name));
  if (kiln_status_code(status) == KILN_STATUS_NOT_FOUND) {
    kiln_status_free(status);
    return kilni_base_status_with_fix(
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
