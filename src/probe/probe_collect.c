// SPDX-License-Identifier: Apache-2.0
//
// probe: the facts, one kind after the other.
//
// Asks the driver without making a context: nothing on a GPU is touched.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "probe/probe_sheet.h"

enum { FACT_FILE_BYTES = 256 * 1024, VERSION_BYTES = 64, MEMBER_BYTES = 128 };

// ---- The driver ----

// The first word like "580.159.04" of the kernel module's own line.
static void find_release(const char* text, char* release, size_t capacity) {
  kiln_string_view_t rest = kilni_sv(text);
  kiln_string_view_t word;
  release[0] = 0;
  while (kilni_sv_split(&rest, ' ', &word)) {
    size_t dots = 0;
    size_t good = 0;
    for (size_t i = 0; i < word.size; i++) {
      dots += word.data[i] == '.';
      good +=
          word.data[i] == '.' || (word.data[i] >= '0' && word.data[i] <= '9');
    }
    if (dots >= 1 && good == word.size && word.size < capacity) {
      memcpy(release, word.data, word.size);
      release[word.size] = 0;
      return;
    }
  }
}

static kiln_status_t read_release(kiln_probe_t* probe) {
  char release[VERSION_BYTES] = "";
  uint8_t* data = NULL;
  size_t size = 0;
  kiln_status_t status =
      kilni_file_read(probe->host->allocator, "/proc/driver/nvidia/version",
                      FACT_FILE_BYTES, &data, &size);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  if (kiln_status_is_ok(status)) {
    find_release((const char*)data, release, sizeof(release));
    kilni_file_free(probe->host->allocator, data, size);
  }
  kiln_status_free(status);
  return kilni_probe_text(probe, release, &probe->driver.release);
}

static kiln_status_t collect_driver(kiln_probe_t* probe,
                                    const kilni_probe_source_t* source) {
  kiln_probe_driver_t* driver = &probe->driver;
  const kiln_cuda_table_t* table = source->table;
  driver->why = "";
  driver->path = "";
  KILNI_RETURN_IF_ERROR(read_release(probe));
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
  return NULL;
}

// ---- GPUs ----

static uint32_t ask(const kiln_cuda_table_t* table,
                    kiln_cu_device_attribute_t id, kiln_cu_device_t device) {
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
  found->compute_major =
      ask(table, KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  found->compute_minor =
      ask(table, KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  found->multiprocessors =
      ask(table, KILN_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  found->memory_bytes = bytes;
  KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, name, &found->name));
  return kilni_probe_text(probe, model, &found->model);
}

static kiln_status_t collect_devices(kiln_probe_t* probe,
                                     const kilni_probe_source_t* source) {
  const kiln_cuda_table_t* table = source->table;
  if (table == NULL || !source->ask_devices) return NULL;
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
  return NULL;
}

// ---- Toolkits ----

// The text behind `"key" : "` after `from`; NULL if it is not there.
static const char* json_text(const char* from, const char* key) {
  const char* found = from ? strstr(from, key) : NULL;
  if (found == NULL) return NULL;
  found = strchr(found + strlen(key), ':');
  if (found == NULL) return NULL;
  return strchr(found, '"');
}

// The "version" of "cuda" in a toolkit's version.json.
static kiln_status_t read_version(kiln_probe_t* probe, const char* root,
                                  char* version, size_t capacity) {
  version[0] = 0;
  kiln_allocator_t allocator = probe->host->allocator;
  kilni_str_t path;
  kilni_str_init(&path, allocator, 16384);
  kilni_str_addf(&path, "%s/version.json", root);
  kiln_status_t status = kilni_str_status(&path);
  uint8_t* data = NULL;
  size_t size = 0;
  if (kiln_status_is_ok(status)) {
    status = kilni_file_read(allocator, kilni_str_cstr(&path), FACT_FILE_BYTES,
                             &data, &size);
  }
  kilni_str_deinit(&path);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return NULL;
  }
  const char* cuda = strstr((const char*)data, "\"cuda\"");
  const char* text = json_text(cuda, "\"version\"");
  for (size_t i = 0; text != NULL && i + 1 < capacity; i++) {
    char c = text[i + 1];
    if (c != '.' && (c < '0' || c > '9')) break;
    version[i] = c;
    version[i + 1] = 0;
  }
  kilni_file_free(allocator, data, size);
  return NULL;
}

// The root of the toolkit that a library file lies in, as a length of `path`;
// 0 if that has too few folders.
static size_t root_length(const char* path) {
  size_t length = strlen(path);
  for (int parts = 0; parts < 2; parts++) {
    while (length > 0 && path[length - 1] != '/') length--;
    if (length == 0) return 0;
    length--;
  }
  static const char* const targets[] = {"/targets/x86_64-linux",
                                        "/targets/sbsa-linux"};
  for (size_t i = 0; i < 2; i++) {
    size_t tail = strlen(targets[i]);
    if (length > tail && memcmp(path + length - tail, targets[i], tail) == 0) {
      return length - tail;
    }
  }
  return length;
}

static bool has_toolkit(const kiln_probe_t* probe, const char* root,
                        size_t length) {
  const kiln_probe_toolkit_t* toolkits = probe->toolkits.items;
  for (size_t i = 0; i < probe->toolkits.count; i++) {
    if (strlen(toolkits[i].root) == length &&
        memcmp(toolkits[i].root, root, length) == 0) {
      return true;
    }
  }
  return false;
}

// "root/name" if that is a file, else "".
static kiln_status_t file_below(kiln_allocator_t allocator, const char* root,
                                const char* name, char** out_path) {
  kilni_str_t path;
  kilni_str_init(&path, allocator, FACT_FILE_BYTES);
  kilni_str_add_cstr(&path, root);
  kilni_str_add_cstr(&path, name);
  bool there = kiln_status_is_ok(kilni_str_status(&path)) &&
               kilni_file_exists(path.data);
  if (there) return kilni_str_take(&path, out_path);
  kiln_status_t status = kilni_str_status(&path);
  kilni_str_deinit(&path);
  if (!kiln_status_is_ok(status)) return status;
  return kilni_strdup(allocator, kilni_sv(""), out_path);
}

static kiln_status_t fill_toolkit(kiln_probe_t* probe, const char* root,
                                  const char* include_dir, uint32_t scope) {
  char version[VERSION_BYTES];
  KILNI_RETURN_IF_ERROR(read_version(probe, root, version, sizeof(version)));
  void* item = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->toolkits, &item));
  kiln_probe_toolkit_t* toolkit = item;
  toolkit->root = "";
  toolkit->include_dir = "";
  toolkit->version = "";
  toolkit->scope = kiln_locate_scope_name(scope);
  KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, root, &toolkit->root));
  KILNI_RETURN_IF_ERROR(
      kilni_probe_text(probe, include_dir, &toolkit->include_dir));
  return kilni_probe_text(probe, version, &toolkit->version);
}

// The toolkit that a copy of NVRTC belongs to, if it is one: it has headers.
static kiln_status_t add_toolkit(kiln_probe_t* probe,
                                 const kiln_locate_item_t* item) {
  const char* path = kiln_locate_item_real_path(item);
  uint32_t scope = kiln_locate_item_scope(item);
  size_t length = root_length(path);
  if (scope == KILN_LOCATE_SCOPE_WHEEL || length == 0 ||
      has_toolkit(probe, path, length)) {
    return NULL;
  }
  kiln_allocator_t allocator = probe->host->allocator;
  char* root = NULL;
  char* mark = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_strdup(allocator, kilni_sv_make(path, length), &root));
  kiln_status_t status = file_below(allocator, root, "/include/cuda.h", &mark);
  if (kiln_status_is_ok(status) && mark[0] != 0) {
    size_t whole = strlen(mark);
    mark[whole - strlen("/cuda.h")] = 0;
    status = fill_toolkit(probe, root, mark, scope);
    mark[whole - strlen("/cuda.h")] = '/';  // it is freed with its length
  }
  kilni_strfree(allocator, mark);
  kilni_strfree(allocator, root);
  return status;
}

// ---- Libraries ----

static kiln_status_t collect_tried(kiln_probe_t* probe,
                                   const kiln_locate_item_t* item) {
  uint32_t count = kiln_locate_item_tried_count(item);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_locate_tried_t* from = kiln_locate_item_tried(item, i);
    void* added = NULL;
    KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->tried, &added));
    kiln_locate_tried_t* tried = added;
    tried->path = "";
    tried->why = "";
    KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, from->path, &tried->path));
    KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, from->why, &tried->why));
  }
  return NULL;
}

static kiln_status_t collect_copies(kiln_probe_t* probe,
                                    const kiln_locate_set_t* found) {
  if (found == NULL) return NULL;
  uint32_t count = kiln_locate_set_count(found);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_locate_item_t* item = kiln_locate_set_item(found, i);
    if (i == 0) KILNI_RETURN_IF_ERROR(collect_tried(probe, item));
    if (kiln_locate_item_found(item)) {
      KILNI_RETURN_IF_ERROR(add_toolkit(probe, item));
    }
  }
  return NULL;
}

static kiln_status_t collect_nvrtc(kiln_probe_t* probe,
                                   const kilni_probe_source_t* source) {
  KILNI_RETURN_IF_ERROR(collect_copies(probe, source->nvrtc_found));
  void* item = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->libraries, &item));
  kiln_probe_library_t* library = item;
  library->name = "nvrtc";
  library->path = "";
  library->scope = "";
  library->tried = probe->tried.items;
  library->tried_count = (uint32_t)probe->tried.count;
  if (source->nvrtc_path == NULL) return NULL;
  library->found = 1;
  library->version = source->nvrtc_version;
  library->scope = kiln_locate_scope_name(source->nvrtc_scope);
  return kilni_probe_text(probe, source->nvrtc_path, &library->path);
}

// ---- Software device and environment ----

static kiln_status_t collect_soft(kiln_probe_t* probe,
                                  const kilni_probe_source_t* source) {
  probe->soft = source->soft;
  probe->soft.lanes = "";
  probe->soft.lanes_have = "";
  KILNI_RETURN_IF_ERROR(
      kilni_probe_text(probe, source->soft.lanes, &probe->soft.lanes));
  return kilni_probe_text(probe, source->soft.lanes_have,
                          &probe->soft.lanes_have);
}

static kiln_status_t add_variable(kiln_probe_t* probe,
                                  const kilni_env_row_t* row, const char* name,
                                  const char* value) {
  void* item = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->variables, &item));
  kiln_probe_variable_t* variable = item;
  variable->name = name;
  variable->type = row->type;
  variable->fallback = row->fallback;
  variable->room = row->room;
  variable->text = row->text;
  if (value == NULL) return NULL;
  return kilni_probe_text(probe, value, &variable->value);
}

// The variables that are set of a family, behind the family itself.
static kiln_status_t add_members(kiln_probe_t* probe,
                                 const kilni_env_row_t* row) {
  const kilni_env_t* env = probe->host->env;
  kiln_string_view_t view;
  const char* value = NULL;
  for (size_t i = 0; (value = kilni_env_member_at(env, i, &view)); i++) {
    if (!kilni_sv_starts_with(view, row->name)) continue;
    char name[MEMBER_BYTES];
    const char* copy = NULL;
    snprintf(name, sizeof(name), "%.*s", KILNI_SV(view));
    KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, name, &copy));
    KILNI_RETURN_IF_ERROR(add_variable(probe, row, copy, value));
  }
  return NULL;
}

static kiln_status_t collect_variables(kiln_probe_t* probe) {
  for (int i = 0; i < KILNI_ENV_COUNT; i++) {
    const kilni_env_row_t* row = kilni_env_row((kilni_env_id_t)i);
    const char* value = kilni_env_text(probe->host->env, (kilni_env_id_t)i);
    KILNI_RETURN_IF_ERROR(add_variable(probe, row, row->name, value));
    if (strcmp(row->type, "family") == 0) {
      KILNI_RETURN_IF_ERROR(add_members(probe, row));
    }
  }
  return NULL;
}

static kiln_status_t collect(kiln_probe_t* probe,
                             const kilni_probe_source_t* source) {
  KILNI_RETURN_IF_ERROR(collect_driver(probe, source));
  KILNI_RETURN_IF_ERROR(collect_devices(probe, source));
  KILNI_RETURN_IF_ERROR(collect_nvrtc(probe, source));
  KILNI_RETURN_IF_ERROR(collect_soft(probe, source));
  KILNI_RETURN_IF_ERROR(collect_variables(probe));
  return kilni_probe_find_problems(probe, source);
}

kiln_status_t kilni_probe_create(const kilni_probe_source_t* source,
                                 kiln_probe_t** out_probe) {
  *out_probe = NULL;
  kiln_probe_t* probe = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_sheet_create(source, &probe));
  kiln_status_t status = collect(probe, source);
  if (!kiln_status_is_ok(status)) {
    kiln_probe_release(probe);
    return status;
  }
  *out_probe = probe;
  return NULL;
}
