// SPDX-License-Identifier: Apache-2.0
//
// runtime: what is opened from it: devices by label, the compiler, the facts.
#include <stdio.h>
#include <string.h>

#include "base/dynlib.h"
#include "base/status_make.h"
#include "base/str.h"
#include "compile/compile.h"
#include "device/device.h"
#include "probe/probe.h"
#include "base/options.h"
#include "runtime/runtime_inside.h"
#include "soft/soft.h"
#include "table/cuda_table.h"
#include "table/nvrtc_table.h"

enum { NOTE_BYTES = 1024, MAX_ORDINAL = 4095, OWN_PATH_BYTES = 4096 };

// ---- Devices ----

static kiln_status_t open_cuda(kiln_runtime_t* runtime, uint32_t ordinal,
                               kiln_device_t** out_device) {
  KILNI_RETURN_IF_ERROR(kilni_runtime_start_cuda(runtime));
  char name[32];
  snprintf(name, sizeof(name), "cuda:%u", (unsigned)ordinal);
  kilni_device_source_t source = {0};
  source.host = &runtime->host;
  source.keep = kilni_runtime_keep(runtime);
  source.table = &runtime->cuda.table;
  source.name = name;
  source.kind = KILN_DEVICE_KIND_CUDA;
  source.ordinal = ordinal;
  source.lost = &runtime->cuda.lost;
  source.peers = &runtime->cuda.peers;
  return kilni_device_open(&source, out_device);
}

static kiln_status_t open_soft(kiln_runtime_t* runtime, uint32_t ordinal,
                               const char* note, kiln_device_t** out_device) {
  KILNI_RETURN_IF_ERROR(kilni_runtime_start_soft(runtime));
  char name[32] = "soft";
  if (ordinal != 0) snprintf(name, sizeof(name), "soft:%u", (unsigned)ordinal);
  kilni_device_source_t source = {0};
  source.host = &runtime->host;
  source.keep = kilni_runtime_keep(runtime);
  source.table = &runtime->soft.table;
  source.name = name;
  source.note = note;
  source.kind = KILN_DEVICE_KIND_SOFT;
  source.ordinal = ordinal;
  source.fault = kilni_soft_fault_of;
  source.name_node = kilni_soft_name_node;
  source.act_for = kilni_soft_act_for;
  source.offer = kilni_soft_offer;
  source.give_up = kilni_soft_give_up;
  source.executed = kilni_soft_executed;
  source.lost = &runtime->soft.lost;
  source.peers = &runtime->soft.peers;
  return kilni_device_open(&source, out_device);
}

// One line on why the GPU was not taken.
static void write_note(kiln_status_t status, char* note, size_t capacity) {
  kiln_status_native_t native;
  if (kiln_status_native(status, &native)) {
    snprintf(note, capacity, "cuda:0 does not work: %s (%s)",
             kiln_status_message(status), native.name);
  } else {
    snprintf(note, capacity, "cuda:0 does not work: %s",
             kiln_status_message(status));
  }
}

static kiln_status_t open_auto(kiln_runtime_t* runtime,
                               kiln_device_t** out_device) {
  kiln_status_t gpu = open_cuda(runtime, 0, out_device);
  kiln_status_code_t code = kiln_status_code(gpu);
  if (code == KILN_STATUS_OK || code == KILN_STATUS_OUT_OF_MEMORY) return gpu;
  char note[NOTE_BYTES];
  write_note(gpu, note, sizeof(note));
  kiln_status_free(gpu);
  kiln_status_t status = open_soft(runtime, 0, note, out_device);
  if (kiln_status_is_ok(status)) return kiln_ok();
  return KILNI_ANNOTATE(status, "%s", note);
}

// ---- A GPU by its name ----

// What of a label is a UUID: "GPU-" or "MIG-" and hexadecimal digits.
static bool is_uuid(const char* label) {
  if (strncmp(label, "GPU-", 4) != 0 && strncmp(label, "MIG-", 4) != 0) {
    return false;
  }
  for (const char* at = label + 4; *at != 0; at++) {
    if (strchr("0123456789abcdefABCDEF-", *at) == NULL) return false;
  }
  return label[4] != 0;
}

static bool read_hex(const char** inout_at, uint32_t* out_value) {
  static const char digits[] = "0123456789abcdef";
  const char* at = *inout_at;
  uint64_t value = 0;
  for (; *at != 0 && value <= UINT32_MAX; at++) {
    char c = *at >= 'A' && *at <= 'F' ? (char)(*at - 'A' + 'a') : *at;
    const char* found = strchr(digits, c);
    if (found == NULL) break;
    value = value * 16 + (uint64_t)(found - digits);
  }
  if (at == *inout_at || value > UINT32_MAX) return false;
  *inout_at = at;
  *out_value = (uint32_t)value;
  return true;
}

// "[domain:]bus:device[.0]" as three numbers.
static bool open_read_address(const char* text, uint32_t out_address[3]) {
  uint32_t part[3] = {0, 0, 0};
  uint32_t function = 0;
  uint32_t count = 0;
  while (count < 3 && read_hex(&text, &part[count])) {
    count++;
    if (*text != ':') break;
    text++;
  }
  if (count < 2) return false;
  if (*text == '.') {
    text++;
    if (!read_hex(&text, &function)) return false;
  }
  if (*text != 0 || function != 0) return false;
  out_address[0] = count == 3 ? part[0] : 0;
  out_address[1] = part[count - 2];
  out_address[2] = part[count - 1];
  return true;
}

// "GPU-" also precedes a part of a GPU: only the digits are compared.
static bool begins_so(const char* uuid, const char* label) {
  size_t i = 4;
  for (; label[i] != 0; i++) {
    char c = label[i] >= 'A' && label[i] <= 'F' ? (char)(label[i] - 'A' + 'a')
                                                : label[i];
    if (uuid[i] != c) return false;
  }
  return true;
}

static bool open_is_named(const kiln_cuda_table_t* table,
                          kiln_cu_device_t device, const char* label) {
  uint32_t wanted[3];
  uint32_t has[3];
  char address[32] = "";
  kiln_cu_uuid_t uuid;
  char text[KILNI_UUID_BYTES];
  if (is_uuid(label)) {
    if (table->cuDeviceGetUuid(&uuid, device) != KILN_CU_SUCCESS) return false;
    kilni_table_cuda_uuid_text(&uuid, "GPU", text);
    return begins_so(text, label);
  }
  return open_read_address(label, wanted) &&
         table->cuDeviceGetPCIBusId(address, (int)sizeof(address), device) ==
             KILN_CU_SUCCESS &&
         open_read_address(address, has) &&
         memcmp(wanted, has, sizeof(has)) == 0;
}

static kiln_status_t find_named(kiln_runtime_t* runtime, const char* label,
                                uint32_t* out_ordinal) {
  KILNI_RETURN_IF_ERROR(kilni_runtime_start_cuda(runtime));
  const kiln_cuda_table_t* table = &runtime->cuda.table;
  int count = 0;
  uint32_t found = 0;
  KILNI_RETURN_IF_ERROR(KILNI_CUDA_STATUS(table, table->cuInit(0), "cuInit"));
  KILNI_RETURN_IF_ERROR(KILNI_CUDA_STATUS(
      table, table->cuDeviceGetCount(&count), "cuDeviceGetCount"));
  for (int i = 0; i < count; i++) {
    kiln_cu_device_t device = 0;
    if (table->cuDeviceGet(&device, i) != KILN_CU_SUCCESS ||
        !open_is_named(table, device, label)) {
      continue;
    }
    if (found++ == 0) *out_ordinal = (uint32_t)i;
  }
  if (found == 1) return kiln_ok();
  return kilni_base_status_with_fix(
      found == 0 ? KILNI_FAIL(NOT_FOUND,
                              "no GPU is called \"%s\": the driver shows %d",
                              label, count)
                 : KILNI_FAIL(INVALID_ARGUMENT, "%u GPUs begin with \"%s\"",
                              (unsigned)found, label),
      "take a name from `kiln doctor`; CUDA_VISIBLE_DEVICES decides which GPUs "
      "are shown");
}

// The N of "cuda:N" or "soft:N".
static bool read_ordinal(const char* label, const char* prefix,
                         uint32_t* out_ordinal) {
  size_t length = strlen(prefix);
  if (strncmp(label, prefix, length) != 0) return false;
  const char* digits = label + length;
  uint64_t value = 0;
  if (digits[0] < '0' || digits[0] > '9' ||
      !kilni_base_sv_to_u64(kilni_base_sv(digits), &value) ||
      value > MAX_ORDINAL) {
    return false;
  }
  *out_ordinal = (uint32_t)value;
  return true;
}

kiln_status_t kiln_runtime_open_device(kiln_runtime_t* runtime,
                                       const char* label,
                                       kiln_device_t** out_device) {
  KILNI_CHECK_ARGUMENT(out_device != NULL, "out_device");
  *out_device = NULL;
  KILNI_CHECK_ARGUMENT(runtime != NULL, "runtime");
  KILNI_CHECK_ARGUMENT(label != NULL, "label");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(&runtime->host));
  uint32_t ordinal = 0;
  if (strcmp(label, "auto") == 0) return open_auto(runtime, out_device);
  if (strcmp(label, "soft") == 0 || read_ordinal(label, "soft:", &ordinal)) {
    return open_soft(runtime, ordinal, NULL, out_device);
  }
  if (read_ordinal(label, "cuda:", &ordinal)) {
    return open_cuda(runtime, ordinal, out_device);
  }
  uint32_t address[3];
  if (is_uuid(label) || open_read_address(label, address)) {
    KILNI_RETURN_IF_ERROR(find_named(runtime, label, &ordinal));
    return open_cuda(runtime, ordinal, out_device);
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "no device is called \"%s\"", label),
      "use auto, soft, or cuda:N with the GPU's number, e.g. cuda:0, a UUID "
      "(GPU-...) or an address (0000:3b:00.0)");
}

// ---- The compiler ----

kiln_status_t kiln_runtime_open_compiler(kiln_runtime_t* runtime,
                                         const kiln_compiler_options_t* options,
                                         kiln_compiler_t** out_compiler) {
  KILNI_CHECK_ARGUMENT(out_compiler != NULL, "out_compiler");
  *out_compiler = NULL;
  KILNI_CHECK_ARGUMENT(runtime != NULL, "runtime");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(&runtime->host));
  kiln_compiler_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kiln_compiler_options_t", sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.kind <= KILN_COMPILER_KIND_NVVM, "options.kind");
  KILNI_CHECK_ARGUMENT(given.lazy <= KILN_SWITCH_ON, "options.lazy");
  kilni_compile_compiler_wish_t wish = {.toolkit = runtime->toolkit,
                                        .library = given.library,
                                        .trace = runtime->trace,
                                        .lazy = given.lazy == KILN_SWITCH_ON,
                                        .kind = given.kind,
                                        .max_concurrent = given.max_concurrent,
                                        .memory_bytes = given.memory_bytes};
  return kilni_compile_compiler_open(
      &runtime->host, kilni_runtime_keep(runtime), &wish, NULL, out_compiler);
}

// ---- The linker ----

static void retain_device(void* device) {
  kiln_device_retain(device);
}
static void release_device(void* device) {
  kiln_device_release(device);
}

// The file that this library's code is in: its own, or the program's. A path
// that is not absolute may name another file by now, and is none.
typedef struct own_file_t {
  const void* inside;
  char path[OWN_PATH_BYTES];
} own_file_t;

static const char kOwnPlace;

static bool take_own_file(const kilni_base_dynlib_mapped_t* mapped,
                          void* user) {
  own_file_t* own = user;
  if (!kilni_base_dynlib_mapped_holds(mapped, own->inside)) return true;
  const char* path = mapped->path[0] != 0 ? mapped->path : "/proc/self/exe";
  if (path[0] == '/' && strlen(path) < sizeof(own->path)) {
    memcpy(own->path, path, strlen(path) + 1);
  }
  return false;
}

kiln_status_t kiln_runtime_open_linker(kiln_runtime_t* runtime,
                                       const kiln_linker_options_t* options,
                                       kiln_linker_t** out_linker) {
  KILNI_CHECK_ARGUMENT(out_linker != NULL, "out_linker");
  *out_linker = NULL;
  KILNI_CHECK_ARGUMENT(runtime != NULL, "runtime");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(&runtime->host));
  kiln_linker_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_linker_options_t, &given));
  kiln_compat_driver_t driver;
  kilni_compile_linker_wish_t wish = {0};
  wish.toolkit = runtime->toolkit;
  wish.library = given.nvjitlink;
  wish.trace = runtime->trace;
  if (given.driver != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_base_options_read(
        given.driver, "kiln_compat_driver_t", sizeof(driver), &driver));
    wish.driver = &driver;
  }
  if (given.device == NULL) {
    return kilni_compile_linker_create(
        &runtime->host, kilni_runtime_keep(runtime), &wish, out_linker);
  }
  const kiln_device_info_t* info = kiln_device_info(given.device);
  char arch[32];
  snprintf(arch, sizeof(arch), "sm_%u%u", (unsigned)info->compute_major,
           (unsigned)info->compute_minor);
  wish.arch = arch;
  wish.is_soft = info->kind == KILN_DEVICE_KIND_SOFT;
  own_file_t own = {&kOwnPlace, ""};
  if (wish.is_soft) {
    // The software device's linker is as new as the file that it is in.
    kilni_base_dynlib_each_mapped(take_own_file, &own);
    if (own.path[0] != 0) wish.device_library = own.path;
  } else if (runtime->cuda.library != NULL) {
    wish.device_library = kilni_base_dynlib_path(runtime->cuda.library);
  }
  kilni_compile_link_backend_t backend;
  kilni_device_link_backend(given.device, &backend);
  wish.device = &backend;
  wish.device_keep =
      (kilni_base_keep_t){given.device, retain_device, release_device};
  return kilni_compile_linker_create(
      &runtime->host, kilni_runtime_keep(runtime), &wish, out_linker);
}

kiln_status_t kiln_runtime_open_dispatcher(
    kiln_runtime_t* runtime, kiln_device_t* device,
    const kiln_dispatcher_options_t* options,
    kiln_dispatcher_t** out_dispatcher) {
  KILNI_CHECK_ARGUMENT(out_dispatcher != NULL, "out_dispatcher");
  *out_dispatcher = NULL;
  KILNI_CHECK_ARGUMENT(runtime != NULL, "runtime");
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_dispatcher_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_dispatcher_options_t, &given));
  kiln_linker_t* linker = NULL;
  if (given.cache == NULL && given.linker == NULL) {
    kiln_linker_options_t how = kiln_linker_options_default();
    how.device = device;
    KILNI_RETURN_IF_ERROR(kiln_runtime_open_linker(runtime, &how, &linker));
    given.cache = runtime->cache;
    given.linker = linker;
  }
  // It is ours now, whatever size the caller's was.
  given.struct_size = (uint32_t)sizeof(given);
  kiln_status_t status = kiln_dispatcher_create(device, &given, out_dispatcher);
  kiln_linker_release(linker);
  return status;
}

// ---- The facts ----

static void lanes_have(char* text, size_t capacity) {
  static const char* const sets[] = {"plain", "avx2", "avx512"};
  size_t at = 0;
  text[0] = 0;
  for (size_t i = 0; i < 3; i++) {
    if (kilni_soft_lanes_would(sets[i]) == NULL) continue;
    int wrote =
        snprintf(text + at, capacity - at, "%s%s", at ? " " : "", sets[i]);
    if (wrote > 0) at += (size_t)wrote;
  }
}

// What the runtime opens for the facts; released once they are collected.
// one-thread
typedef struct opened_t {
  kiln_runtime_t* runtime;
  const kiln_probe_options_t* options;
  kiln_compiler_t* compiler;
  kiln_status_t driver;
  kiln_status_t nvrtc;
} opened_t;

static kiln_status_t open_for_probe(kilni_probe_source_t* source, void* user) {
  opened_t* opened = user;
  kiln_runtime_t* runtime = opened->runtime;
  opened->driver = kilni_runtime_start_cuda(runtime);
  source->driver_status = opened->driver;
  if (kiln_status_code(opened->driver) == KILN_STATUS_OUT_OF_MEMORY) {
    return opened->driver;  // a bare code
  }
  if (kiln_status_is_ok(opened->driver)) source->table = &runtime->cuda.table;
  kilni_compile_compiler_wish_t wish = {
      .toolkit = runtime->toolkit,
      .library = opened->options->nvrtc_library,
      .trace = runtime->trace};
  opened->nvrtc =
      kilni_compile_compiler_open(&runtime->host, kilni_runtime_keep(runtime),
                                  &wish, NULL, &opened->compiler);
  source->nvrtc_status = opened->nvrtc;
  if (kiln_status_code(opened->nvrtc) == KILN_STATUS_OUT_OF_MEMORY) {
    return opened->nvrtc;
  }
  if (opened->compiler == NULL) return kiln_ok();
  source->nvrtc_path = kiln_compiler_path(opened->compiler);
  source->nvrtc_version = kiln_compiler_version(opened->compiler);
  source->nvrtc_scope = kilni_compile_compiler_scope(opened->compiler);
  return kiln_ok();
}

kiln_status_t kiln_runtime_probe(kiln_runtime_t* runtime,
                                 const kiln_probe_options_t* options,
                                 kiln_probe_t** out_probe) {
  KILNI_CHECK_ARGUMENT(out_probe != NULL, "out_probe");
  *out_probe = NULL;
  KILNI_CHECK_ARGUMENT(runtime != NULL, "runtime");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(&runtime->host));
  kiln_probe_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(options, "kiln_probe_options_t",
                                                sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.devices <= KILN_SWITCH_ON, "options.devices");
  char have[64];
  lanes_have(have, sizeof(have));
  opened_t opened = {.runtime = runtime, .options = &given};
  kilni_probe_source_t source = {0};
  source.host = &runtime->host;
  source.keep = kilni_runtime_keep(runtime);
  source.ask_devices = given.devices != KILN_SWITCH_OFF;
  const char* lanes = kilni_soft_lanes_would(runtime->soft_lanes);
  source.open = open_for_probe;
  source.open_user = &opened;
  source.toolkit = runtime->toolkit;
  source.cache = runtime->cache;
  source.each_mapped = kilni_base_dynlib_each_mapped;
  source.soft.lanes = lanes ? lanes : "";
  source.soft.lanes_have = have;
  source.soft.wide = kilni_soft_wide_would();
  source.soft.workers = runtime->soft_workers;
  source.soft.page_check = runtime->page_check;
  source.soft.seed = runtime->host.seed;
  source.soft_lanes_wanted = runtime->soft_lanes;
  kiln_status_t status = kilni_probe_create(&source, out_probe);
  kiln_compiler_release(opened.compiler);
  kiln_status_free(opened.nvrtc);
  kiln_status_free(opened.driver);
  return status;
}

kiln_status_t kiln_runtime_watch(kiln_runtime_t* runtime,
                                 const kiln_watch_options_t* options,
                                 kiln_watch_t** out_watch) {
  KILNI_CHECK_ARGUMENT(out_watch != NULL, "out_watch");
  *out_watch = NULL;
  KILNI_CHECK_ARGUMENT(runtime != NULL, "runtime");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(&runtime->host));
  kiln_watch_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(options, "kiln_watch_options_t",
                                                sizeof(given), &given));
  kilni_probe_watch_source_t source = {
      .host = &runtime->host,
      .keep = kilni_runtime_keep(runtime),
      .path = kilni_base_env_text(&runtime->env, KILNI_ENV_KILN_LIBNVML),
      .table = runtime->hooks.nvml_table};
  return kilni_probe_watch_create(&source, &given, out_watch);
}
