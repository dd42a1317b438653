// SPDX-License-Identifier: Apache-2.0
//
// probe: the facts, one kind after the other.
//
// Asks the driver without making a context: nothing on a GPU is touched.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "locate/locate_facts.h"
#include "probe/probe_sheet.h"
#include "table/cuda_table.h"
#include "table/nvrtc_table.h"

enum { FACT_FILE_BYTES = 256 * 1024, VERSION_BYTES = 64, MEMBER_BYTES = 128 };

// ---- The driver ----

// The facts on disk about the library and the kernel module.
static kiln_status_t read_disk(kiln_probe_t* probe,
                               const kilni_probe_source_t* source,
                               const char* library) {
  kiln_probe_driver_t* driver = &probe->driver;
  kilni_locate_reader_t* reader = NULL;
  const kilni_locate_driver_t* facts = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_reader_create(
      probe->host->allocator, source->system_root, &reader));
  kiln_status_t status = kilni_locate_driver_read(reader, library, &facts);
  if (kiln_status_is_ok(status)) {
    status = kilni_probe_text(probe, facts->module_release, &driver->release);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_probe_text(probe, facts->real_path, &driver->real_path);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_probe_text(probe, facts->library_release,
                              &driver->library_release);
  }
  kilni_locate_reader_release(reader);
  return status;
}

// Where the kernel module does not report its release, NVML or the library
// does.
static kiln_status_t ask_release(kiln_probe_t* probe,
                                 const kilni_probe_source_t* source) {
  kiln_compat_driver_t said;
  if (source->toolkit == NULL || probe->driver.release[0] != 0) {
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(kiln_toolkit_driver(source->toolkit, &said));
  return kilni_probe_text(probe, said.release, &probe->driver.release);
}

static kiln_status_t collect_driver(kiln_probe_t* probe,
                                    const kilni_probe_source_t* source) {
  kiln_probe_driver_t* driver = &probe->driver;
  const kiln_cuda_table_t* table = source->table;
  driver->why = "";
  driver->path = "";
  const char* path = table != NULL ? table->origin : NULL;
  KILNI_RETURN_IF_ERROR(
      read_disk(probe, source, path != NULL && path[0] == '/' ? path : NULL));
  KILNI_RETURN_IF_ERROR(ask_release(probe, source));
  if (table == NULL) {
    return kilni_probe_text(probe, kiln_status_message(source->driver_status),
                            &driver->why);
  }
  driver->found = 1;
  KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, table->origin, &driver->path));
  int version = 0;
  if (table->cuDriverGetVersion(&version) == KILN_CU_SUCCESS) {
    driver->version = (uint32_t)version;
  }
  return kiln_ok();
}

// ---- GPUs ----

static uint32_t collect_ask(const kiln_cuda_table_t* table,
                            kiln_cu_device_attribute_t id,
                            kiln_cu_device_t device) {
  int value = 0;
  kiln_cu_result_t result = table->cuDeviceGetAttribute(&value, id, device);
  return result == KILN_CU_SUCCESS && value > 0 ? (uint32_t)value : 0;
}

static kiln_status_t collect_device(kiln_probe_t* probe,
                                    const kiln_cuda_table_t* table,
                                    int ordinal) {
  kiln_cu_device_t device = 0;
  char model[256] = "";
  size_t bytes = 0;
  kiln_status_t status = KILNI_CUDA_STATUS(
      table, table->cuDeviceGet(&device, ordinal), "cuDeviceGet");
  if (kiln_status_is_ok(status)) {
    status = KILNI_CUDA_STATUS(
        table, table->cuDeviceGetName(model, (int)sizeof(model) - 1, device),
        "cuDeviceGetName");
  }
  if (kiln_status_is_ok(status)) {
    status = KILNI_CUDA_STATUS(table, table->cuDeviceTotalMem(&bytes, device),
                               "cuDeviceTotalMem");
  }
  if (!kiln_status_is_ok(status)) {
    kiln_status_t noted = kilni_probe_add_problem(
        probe, "device-not-readable", KILN_PROBE_SEVERITY_WARNING,
        kiln_status_fix(status), "cuda:%d: %s", ordinal,
        kiln_status_message(status));
    kiln_status_free(status);
    return noted;
  }
  void* item = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->devices, &item));
  kiln_probe_device_t* found = item;
  char name[32];
  snprintf(name, sizeof(name), "cuda:%d", ordinal);
  found->name = "";
  found->model = "";
  found->compute_major = collect_ask(
      table, KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  found->compute_minor = collect_ask(
      table, KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  found->multiprocessors =
      collect_ask(table, KILN_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  found->memory_bytes = bytes;
  found->uuid = "";
  found->address = "";
  KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, name, &found->name));
  KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, model, &found->model));
  return kilni_probe_collect_attributes(probe, table, device, found);
}

static kiln_status_t collect_devices(kiln_probe_t* probe,
                                     const kilni_probe_source_t* source) {
  const kiln_cuda_table_t* table = source->table;
  if (table == NULL || !source->ask_devices) return kiln_ok();
  int count = 0;
  kiln_status_t status = KILNI_CUDA_STATUS(table, table->cuInit(0), "cuInit");
  if (kiln_status_is_ok(status)) {
    status = KILNI_CUDA_STATUS(table, table->cuDeviceGetCount(&count),
                               "cuDeviceGetCount");
  }
  if (!kiln_status_is_ok(status)) {
    kiln_status_native_t native = {0};
    bool none = kiln_status_native(status, &native) &&
                native.number == KILN_CU_ERROR_NO_DEVICE;
    kiln_status_t noted = kilni_probe_text(probe, kiln_status_message(status),
                                           &probe->driver.why);
    if (kiln_status_is_ok(noted)) {
      noted = kilni_probe_add_problem(
          probe, none ? "no-gpu" : "driver-not-working",
          KILN_PROBE_SEVERITY_WARNING, kiln_status_fix(status),
          "the CUDA driver does not start: %s", kiln_status_message(status));
    }
    kiln_status_free(status);
    return noted;
  }
  probe->driver.works = 1;
  for (int i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(collect_device(probe, table, i));
  }
  return kiln_ok();
}

// ---- Toolkits ----

// The text that follows `"key" : "` after `from`; NULL if it is missing.
static const char* json_text(const char* from, const char* key) {
  const char* found = from ? strstr(from, key) : NULL;
  if (found == NULL) return NULL;
  found = strchr(found + strlen(key), ':');
  if (found == NULL) return NULL;
  return strchr(found, '"');
}

// The "version" of "cuda" in a toolkit's version.json.
kiln_status_t kilni_probe_read_version(kiln_probe_t* probe, const char* root,
                                       char* version, size_t capacity) {
  version[0] = 0;
  kiln_allocator_t allocator = probe->host->allocator;
  kilni_base_str_t path;
  kilni_base_str_init(&path, allocator, 16384);
  kilni_base_str_addf(&path, "%s/version.json", root);
  kiln_status_t status = kilni_base_str_status(&path);
  uint8_t* data = NULL;
  size_t size = 0;
  if (kiln_status_is_ok(status)) {
    status = kilni_base_file_read(allocator, kilni_base_str_cstr(&path),
                                  FACT_FILE_BYTES, &data, &size);
  }
  kilni_base_str_deinit(&path);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return kiln_ok();
  }
  const char* cuda = strstr((const char*)data, "\"cuda\"");
  const char* text = json_text(cuda, "\"version\"");
  for (size_t i = 0; text != NULL && i + 1 < capacity; i++) {
    char c = text[i + 1];
    if (c != '.' && (c < '0' || c > '9')) break;
    version[i] = c;
    version[i + 1] = 0;
  }
  kilni_base_file_free(allocator, data, size);
  return kiln_ok();
}

// ---- Libraries ----

static kiln_status_t collect_add_library(kiln_probe_t* probe, const char* name,
                                         kiln_probe_library_t** out_library) {
  void* item = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->libraries, &item));
  *out_library = item;
  (*out_library)->name = name;
  (*out_library)->path = "";
  (*out_library)->scope = "";
  return kiln_ok();
}

static void fill_library(kiln_probe_library_t* library,
                         const kiln_probe_piece_t* piece) {
  library->piece = piece;
  library->tried = kiln_locate_item_tried(piece->located, 0);
  library->tried_count = kiln_locate_item_tried_count(piece->located);
  if (piece->copy_count == 0) return;
  library->found = 1;
  library->path = piece->copies[0].path;
  library->scope = piece->copies[0].scope;
  library->version = piece->copies[0].line;
}

// NVRTC has been opened, or could not be: that is more than a search knows.
static kiln_status_t collect_fill_nvrtc(kiln_probe_t* probe,
                                        const kilni_probe_source_t* source,
                                        kiln_probe_library_t* library) {
  library->found = source->nvrtc_path != NULL;
  if (source->nvrtc_path == NULL) return kiln_ok();
  library->version = source->nvrtc_version;
  library->scope = kiln_locate_scope_name(source->nvrtc_scope);
  return kilni_probe_text(probe, source->nvrtc_path, &library->path);
}

static kiln_status_t collect_libraries(kiln_probe_t* probe,
                                       const kilni_probe_source_t* source) {
  bool asked = source->nvrtc_path != NULL || source->nvrtc_status != NULL;
  kiln_probe_library_t* library = NULL;
  const kiln_probe_piece_t* pieces = probe->pieces.items;
  for (size_t i = 0; i < probe->pieces.count; i++) {
    if (kiln_locate_entry_kind(pieces[i].entry) != KILN_LOCATE_KIND_LIB) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(collect_add_library(probe, pieces[i].name, &library));
    if (pieces[i].located != NULL) fill_library(library, &pieces[i]);
    if (asked && strcmp(pieces[i].name, "nvrtc") == 0) {
      KILNI_RETURN_IF_ERROR(collect_fill_nvrtc(probe, source, library));
      asked = false;
    }
  }
  if (!asked) return kiln_ok();
  KILNI_RETURN_IF_ERROR(collect_add_library(probe, "nvrtc", &library));
  return collect_fill_nvrtc(probe, source, library);
}

// ---- Software device and environment ----

static kiln_status_t collect_soft(kiln_probe_t* probe,
                                  const kilni_probe_source_t* source) {
  probe->soft = source->soft;
  probe->soft.lanes = "";
  probe->soft.lanes_have = "";
  // A literal, of the software device's.
  probe->soft.wide = source->soft.wide ? source->soft.wide : "";
  KILNI_RETURN_IF_ERROR(
      kilni_probe_text(probe, source->soft.lanes, &probe->soft.lanes));
  return kilni_probe_text(probe, source->soft.lanes_have,
                          &probe->soft.lanes_have);
}

static kiln_status_t collect_add_variable(kiln_probe_t* probe,
                                          const kilni_base_env_row_t* row,
                                          const char* name, const char* value) {
  void* item = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->variables, &item));
  kiln_probe_variable_t* variable = item;
  variable->name = name;
  variable->type = row->type;
  variable->fallback = row->fallback;
  variable->module = row->module;
  variable->text = row->text;
  if (value == NULL) return kiln_ok();
  return kilni_probe_text(probe, value, &variable->value);
}

// The variables that are set of a family, after the family itself.
static kiln_status_t collect_add_members(kiln_probe_t* probe,
                                         const kilni_base_env_row_t* row) {
  const kilni_base_env_t* env = probe->host->env;
  kiln_string_view_t view;
  const char* value = NULL;
  for (size_t i = 0; (value = kilni_base_env_member_at(env, i, &view)); i++) {
    if (!kilni_base_sv_starts_with(view, row->name)) continue;
    char name[MEMBER_BYTES];
    const char* copy = NULL;
    snprintf(name, sizeof(name), "%.*s", KILNI_SV(view));
    KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, name, &copy));
    KILNI_RETURN_IF_ERROR(collect_add_variable(probe, row, copy, value));
  }
  return kiln_ok();
}

static kiln_status_t collect_variables(kiln_probe_t* probe) {
  for (int i = 0; i < KILNI_ENV_COUNT; i++) {
    const kilni_base_env_row_t* row =
        kilni_base_env_row((kilni_base_env_id_t)i);
    const char* value =
        kilni_probe_variable_text(probe, (kilni_base_env_id_t)i);
    KILNI_RETURN_IF_ERROR(collect_add_variable(probe, row, row->name, value));
    if (strcmp(row->type, "family") == 0 && !probe->hermetic) {
      KILNI_RETURN_IF_ERROR(collect_add_members(probe, row));
    }
  }
  return kiln_ok();
}

// What needs nothing to be open; what is open would be found before the rest.
static kiln_status_t search(kiln_probe_t* probe,
                            const kilni_probe_source_t* source) {
  KILNI_RETURN_IF_ERROR(kilni_probe_collect_system(probe, source));
  KILNI_RETURN_IF_ERROR(kilni_probe_collect_cache(probe, source));
  KILNI_RETURN_IF_ERROR(kilni_probe_collect_store(probe, source));
  KILNI_RETURN_IF_ERROR(kilni_probe_collect_pieces(probe, source));
  KILNI_RETURN_IF_ERROR(kilni_probe_collect_toolkits(probe));
  return collect_variables(probe);
}

static kiln_status_t ask_opened(kiln_probe_t* probe,
                                const kilni_probe_source_t* source) {
  KILNI_RETURN_IF_ERROR(collect_driver(probe, source));
  KILNI_RETURN_IF_ERROR(collect_devices(probe, source));
  KILNI_RETURN_IF_ERROR(collect_libraries(probe, source));
  KILNI_RETURN_IF_ERROR(collect_soft(probe, source));
  KILNI_RETURN_IF_ERROR(kilni_probe_check_pieces(probe, source));
  return kilni_probe_find_problems(probe, source);
}

kiln_status_t kilni_probe_create(const kilni_probe_source_t* source,
                                 kiln_probe_t** out_probe) {
  *out_probe = NULL;
  kiln_probe_t* probe = NULL;
  kilni_probe_source_t opened = *source;
  KILNI_RETURN_IF_ERROR(kilni_probe_sheet_create(source, &probe));
  kiln_status_t status = search(probe, &opened);
  if (kiln_status_is_ok(status) && opened.open != NULL) {
    status = opened.open(&opened, opened.open_user);
  }
  if (kiln_status_is_ok(status)) status = ask_opened(probe, &opened);
  if (!kiln_status_is_ok(status)) {
    kiln_probe_release(probe);
    return status;
  }
  *out_probe = probe;
  return kiln_ok();
}
