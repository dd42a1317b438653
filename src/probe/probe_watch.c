// SPDX-License-Identifier: Apache-2.0
//
// probe: a watch on the GPUs: a session of NVML and the list of its devices.
//
// What NVML does not report is unknown, whatever the reason: a virtual GPU, an
// old driver and a missing permission answer alike, and none of them hides the
// rest.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/keep.h"
#include "base/status_make.h"
#include "kiln/watch.h"
#include "probe/probe.h"
#include "probe/watch_inside.h"
#include "table/nvml_table.h"

// ---- The list ----

static void name_device(kiln_watch_t* watch, kilni_probe_watched_t* device) {
  const kiln_nvml_table_t* t = &watch->table;
  kiln_nvml_pci_t pci;
  device->facts.model = device->model;
  device->facts.uuid = device->uuid;
  device->facts.address = device->address;
  if (t->nvmlDeviceGetName(device->handle, device->model,
                           KILN_NVML_NAME_BYTES) != KILN_NVML_SUCCESS) {
    device->model[0] = 0;
  }
  if (t->nvmlDeviceGetUUID(device->handle, device->uuid,
                           KILN_NVML_UUID_BYTES) != KILN_NVML_SUCCESS) {
    device->uuid[0] = 0;
  }
  memset(&pci, 0, sizeof(pci));
  if (!device->is_mig &&
      t->nvmlDeviceGetPciInfo(device->handle, &pci) == KILN_NVML_SUCCESS) {
    snprintf(device->address, sizeof(device->address), "%.31s", pci.address);
  }
}

static kiln_status_t watch_add(kiln_watch_t* watch, kiln_nvml_device_t handle,
                               uint32_t index, uint32_t parent) {
  if (watch->count == KILNI_WATCH_MAX_DEVICES) return kiln_ok();
  if (watch->count == watch->capacity) {
    void* grown = NULL;
    uint32_t capacity = watch->capacity == 0 ? 4 : watch->capacity * 2;
    KILNI_RETURN_IF_ERROR(
        kilni_base_alloc_array(watch->host->allocator, capacity,
                               sizeof(kilni_probe_watched_t), &grown));
    if (watch->count > 0) {
      memcpy(grown, watch->devices,
             watch->count * sizeof(kilni_probe_watched_t));
    }
    kilni_base_free_array(watch->host->allocator, watch->devices,
                          watch->capacity, sizeof(kilni_probe_watched_t));
    watch->devices = grown;
    watch->capacity = capacity;
  }
  kilni_probe_watched_t* device = &watch->devices[watch->count++];
  memset(device, 0, sizeof(*device));
  device->handle = handle;
  device->is_mig = parent != KILN_WATCH_NO_PARENT;
  device->facts.index = index;
  device->facts.parent = parent;
  return kiln_ok();
}

// The MIG devices of a GPU follow it. Their numbers may have gaps.
static kiln_status_t add_migs(kiln_watch_t* watch, kiln_nvml_device_t gpu,
                              uint32_t parent) {
  const kiln_nvml_table_t* t = &watch->table;
  unsigned int now = 0;
  unsigned int pending = 0;
  unsigned int most = 0;
  if (t->nvmlDeviceGetMigMode(gpu, &now, &pending) != KILN_NVML_SUCCESS ||
      now == 0 ||
      t->nvmlDeviceGetMaxMigDeviceCount(gpu, &most) != KILN_NVML_SUCCESS) {
    return kiln_ok();
  }
  for (unsigned int i = 0; i < most && i < KILNI_WATCH_MAX_DEVICES; i++) {
    kiln_nvml_device_t mig = NULL;
    if (t->nvmlDeviceGetMigDeviceHandleByIndex(gpu, i, &mig) !=
        KILN_NVML_SUCCESS) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(watch_add(watch, mig, i, parent));
    kiln_watch_device_t* facts = &watch->devices[watch->count - 1].facts;
    (void)t->nvmlDeviceGetGpuInstanceId(mig, &facts->gpu_instance);
    (void)t->nvmlDeviceGetComputeInstanceId(mig, &facts->compute_instance);
  }
  return kiln_ok();
}

static kiln_status_t list_devices(kiln_watch_t* watch) {
  const kiln_nvml_table_t* t = &watch->table;
  unsigned int count = 0;
  watch->count = 0;
  kiln_nvml_result_t result = t->nvmlDeviceGetCount(&count);
  if (result != KILN_NVML_SUCCESS) {
    watch->why = KILNI_NVML_STATUS(t, result, "nvmlDeviceGetCount");
    return kiln_ok();
  }
  for (unsigned int i = 0; i < count; i++) {
    kiln_nvml_device_t handle = NULL;
    // A GPU that has fallen off its bus does not hide the others.
    if (t->nvmlDeviceGetHandleByIndex(i, &handle) != KILN_NVML_SUCCESS) {
      continue;
    }
    uint32_t at = watch->count;
    KILNI_RETURN_IF_ERROR(watch_add(watch, handle, i, KILN_WATCH_NO_PARENT));
    KILNI_RETURN_IF_ERROR(add_migs(watch, handle, at));
  }
  if (watch->count == 0) {
    watch->why = kilni_base_status_with_fix(
        count == 0
            ? KILNI_FAIL(NOT_FOUND, "NVML shows no GPU")
            : KILNI_FAIL(DRIVER_ERROR,
                         "none of the %u GPUs of this machine answers", count),
        "check that `nvidia-smi` lists a GPU, and that this process may open "
        "/dev/nvidia*");
  }
  return kiln_ok();
}

// ---- Making and ending ----

static void read_versions(kiln_watch_t* watch) {
  const kiln_nvml_table_t* t = &watch->table;
  int version = 0;
  if (t->nvmlSystemGetDriverVersion(watch->release, sizeof(watch->release)) !=
      KILN_NVML_SUCCESS) {
    watch->release[0] = 0;
  }
  if (t->nvmlSystemGetCudaDriverVersion(&version) == KILN_NVML_SUCCESS &&
      version > 0) {
    watch->driver_version = (uint32_t)version;
  }
}

static kiln_status_t watch_begin(kiln_watch_t* watch,
                                 const kilni_probe_watch_source_t* source) {
  if (source->table != NULL) {
    watch->table = *source->table;
  } else {
    watch->why = kilni_table_nvml_table_open(watch->host, source->path,
                                             &watch->table, &watch->library);
    if (kiln_status_code(watch->why) == KILN_STATUS_OUT_OF_MEMORY) {
      kiln_status_t status = watch->why;
      watch->why = NULL;
      return status;
    }
    if (!kiln_status_is_ok(watch->why)) return kiln_ok();
  }
  kiln_nvml_result_t result = watch->table.nvmlInit();
  if (result != KILN_NVML_SUCCESS) {
    watch->why = KILNI_NVML_STATUS(&watch->table, result, "nvmlInit");
    return kiln_ok();
  }
  watch->in_session = true;
  read_versions(watch);
  return kiln_watch_sample(watch);
}

kiln_status_t kilni_probe_watch_create(const kilni_probe_watch_source_t* source,
                                       const kiln_watch_options_t* options,
                                       kiln_watch_t** out_watch) {
  *out_watch = NULL;
  KILNI_CHECK_ARGUMENT(options->pcie_traffic <= KILN_SWITCH_ON,
                       "options.pcie_traffic");
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(source->host->allocator, sizeof(kiln_watch_t), &block));
  kiln_watch_t* watch = block;
  watch->host = source->host;
  watch->keep = source->keep;
  kilni_base_keep_retain(watch->keep);
  watch->pcie_traffic = options->pcie_traffic == KILN_SWITCH_ON;
  kiln_status_t status = watch_begin(watch, source);
  if (!kiln_status_is_ok(status)) {
    kiln_watch_close(watch);
    return status;
  }
  *out_watch = watch;
  return kiln_ok();
}

void kiln_watch_close(kiln_watch_t* watch) {
  if (watch == NULL || kilni_base_host_is_forked(watch->host)) return;
  if (watch->in_session) (void)watch->table.nvmlShutdown();
  if (watch->library != NULL) kilni_base_dynlib_close(watch->library);
  kiln_status_free(watch->why);
  kiln_allocator_t allocator = watch->host->allocator;
  kilni_base_free_array(allocator, watch->devices, watch->capacity,
                        sizeof(kilni_probe_watched_t));
  kilni_base_keep_t keep = watch->keep;
  kilni_base_free(allocator, watch, sizeof(*watch));
  kilni_base_keep_release(keep);
}

kiln_status_t kiln_watch_sample(kiln_watch_t* watch) {
  KILNI_CHECK_ARGUMENT(watch != NULL, "watch");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(watch->host));
  if (!watch->in_session) return kiln_ok();
  kiln_status_free(watch->why);
  watch->why = NULL;
  KILNI_RETURN_IF_ERROR(list_devices(watch));
  for (uint32_t i = 0; i < watch->count; i++) {
    name_device(watch, &watch->devices[i]);
    kilni_probe_watch_ask(watch, &watch->devices[i]);
  }
  return kiln_ok();
}

// ---- What it lends ----

const char* kiln_watch_why(const kiln_watch_t* watch) {
  return watch->why == NULL ? "" : kiln_status_message(watch->why);
}

const char* kiln_watch_fix(const kiln_watch_t* watch) {
  const char* fix = watch->why == NULL ? NULL : kiln_status_fix(watch->why);
  return fix == NULL ? "" : fix;
}

const char* kiln_watch_release(const kiln_watch_t* watch) {
  return watch->release;
}

uint32_t kiln_watch_driver_version(const kiln_watch_t* watch) {
  return watch->driver_version;
}

uint32_t kiln_watch_device_count(const kiln_watch_t* watch) {
  return watch->count;
}

const kiln_watch_device_t* kiln_watch_device(const kiln_watch_t* watch,
                                             uint32_t device) {
  return device < watch->count ? &watch->devices[device].facts : NULL;
}

bool kiln_watch_value(const kiln_watch_t* watch, uint32_t device,
                      uint32_t metric, int64_t* out_value) {
  *out_value = 0;
  if (device >= watch->count || metric >= KILN_WATCH_METRICS) return false;
  const kilni_probe_watched_t* asked = &watch->devices[device];
  *out_value = asked->values[metric];
  return (asked->known >> metric & 1) != 0;
}

const kiln_watch_process_t* kiln_watch_process(const kiln_watch_t* watch,
                                               uint32_t device,
                                               uint32_t index) {
  if (device >= watch->count) return NULL;
  const kilni_probe_watched_t* asked = &watch->devices[device];
  return index < asked->facts.process_count ? &asked->processes[index] : NULL;
}

const kiln_watch_link_t* kiln_watch_link(const kiln_watch_t* watch,
                                         uint32_t device, uint32_t index) {
  if (device >= watch->count) return NULL;
  const kilni_probe_watched_t* asked = &watch->devices[device];
  return index < asked->facts.link_count ? &asked->links[index] : NULL;
}

// ---- Between two ----

static uint32_t watch_path_of(unsigned int level) {
  switch (level) {
    case KILN_NVML_TOPOLOGY_INTERNAL:
      return KILN_WATCH_PATH_BOARD;
    case KILN_NVML_TOPOLOGY_SINGLE:
      return KILN_WATCH_PATH_SWITCH;
    case KILN_NVML_TOPOLOGY_MULTIPLE:
      return KILN_WATCH_PATH_SWITCHES;
    case KILN_NVML_TOPOLOGY_HOSTBRIDGE:
      return KILN_WATCH_PATH_BRIDGE;
    case KILN_NVML_TOPOLOGY_NODE:
      return KILN_WATCH_PATH_NODE;
    case KILN_NVML_TOPOLOGY_SYSTEM:
      return KILN_WATCH_PATH_SYSTEM;
    default:
      return KILN_WATCH_PATH_UNKNOWN;
  }
}

uint32_t kiln_watch_path(kiln_watch_t* watch, uint32_t device, uint32_t other,
                         int32_t* out_peer) {
  *out_peer = -1;
  if (device >= watch->count || other >= watch->count || device == other) {
    return KILN_WATCH_PATH_UNKNOWN;
  }
  const kiln_nvml_table_t* t = &watch->table;
  kiln_nvml_device_t a = watch->devices[device].handle;
  kiln_nvml_device_t b = watch->devices[other].handle;
  unsigned int level = 0;
  unsigned int status = 0;
  if (t->nvmlDeviceGetP2PStatus(a, b, KILN_NVML_P2P_CAPS_READ, &status) ==
      KILN_NVML_SUCCESS) {
    *out_peer = status == KILN_NVML_P2P_STATUS_OK;
  }
  return t->nvmlDeviceGetTopologyCommonAncestor(a, b, &level) ==
                 KILN_NVML_SUCCESS
             ? watch_path_of(level)
             : KILN_WATCH_PATH_UNKNOWN;
}

const char* kiln_watch_path_name(uint32_t path) {
  static const char* const kNames[] = {"?",      "board", "switch", "switches",
                                       "bridge", "node",  "system"};
  return path < sizeof(kNames) / sizeof(kNames[0]) ? kNames[path] : "?";
}

const char* kiln_watch_link_name(uint32_t leads_to) {
  static const char* const kNames[] = {"?", "gpu", "switch", "cpu"};
  return leads_to < sizeof(kNames) / sizeof(kNames[0]) ? kNames[leads_to] : "?";
}
