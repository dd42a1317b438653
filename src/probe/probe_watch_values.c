// SPDX-License-Identifier: Apache-2.0
//
// probe: what a watch asks of one device: values, processes, links.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kiln/watch.h"
#include "probe/watch_inside.h"
#include "table/nvml_table.h"

// ---- Names ----

static const struct {
  const char* name;
  const char* unit;
} kMetrics[KILN_WATCH_METRICS] = {
    [KILN_WATCH_MEMORY_TOTAL] = {"memory_total", "bytes"},
    [KILN_WATCH_MEMORY_USED] = {"memory_used", "bytes"},
    [KILN_WATCH_MEMORY_FREE] = {"memory_free", "bytes"},
    [KILN_WATCH_MEMORY_RESERVED] = {"memory_reserved", "bytes"},
    [KILN_WATCH_BAR1_TOTAL] = {"bar1_total", "bytes"},
    [KILN_WATCH_BAR1_USED] = {"bar1_used", "bytes"},
    [KILN_WATCH_UTILIZATION] = {"utilization", "percent"},
    [KILN_WATCH_MEMORY_UTILIZATION] = {"memory_utilization", "percent"},
    [KILN_WATCH_ENCODER] = {"encoder", "percent"},
    [KILN_WATCH_DECODER] = {"decoder", "percent"},
    [KILN_WATCH_TEMPERATURE] = {"temperature", "celsius"},
    [KILN_WATCH_TEMPERATURE_SLOWDOWN] = {"temperature_slowdown", "celsius"},
    [KILN_WATCH_TEMPERATURE_SHUTDOWN] = {"temperature_shutdown", "celsius"},
    [KILN_WATCH_POWER] = {"power", "milliwatts"},
    [KILN_WATCH_POWER_LIMIT] = {"power_limit", "milliwatts"},
    [KILN_WATCH_ENERGY] = {"energy", "millijoules"},
    [KILN_WATCH_FAN] = {"fan", "percent"},
    [KILN_WATCH_CLOCK_GRAPHICS] = {"clock_graphics", "megahertz"},
    [KILN_WATCH_CLOCK_SM] = {"clock_sm", "megahertz"},
    [KILN_WATCH_CLOCK_MEMORY] = {"clock_memory", "megahertz"},
    [KILN_WATCH_CLOCK_VIDEO] = {"clock_video", "megahertz"},
    [KILN_WATCH_CLOCK_GRAPHICS_MAX] = {"clock_graphics_max", "megahertz"},
    [KILN_WATCH_CLOCK_SM_MAX] = {"clock_sm_max", "megahertz"},
    [KILN_WATCH_CLOCK_MEMORY_MAX] = {"clock_memory_max", "megahertz"},
    [KILN_WATCH_CLOCK_VIDEO_MAX] = {"clock_video_max", "megahertz"},
    [KILN_WATCH_THROTTLE] = {"throttle", "bits"},
    [KILN_WATCH_PERFORMANCE_STATE] = {"performance_state", "number"},
    [KILN_WATCH_PERSISTENCE] = {"persistence", "switch"},
    [KILN_WATCH_COMPUTE_MODE] = {"compute_mode", "number"},
    [KILN_WATCH_ECC] = {"ecc", "switch"},
    [KILN_WATCH_ECC_CORRECTED] = {"ecc_corrected", "errors"},
    [KILN_WATCH_ECC_UNCORRECTED] = {"ecc_uncorrected", "errors"},
    [KILN_WATCH_REMAPPED_ROWS] = {"remapped_rows", "rows"},
    [KILN_WATCH_PCIE_GENERATION] = {"pcie_generation", "number"},
    [KILN_WATCH_PCIE_LANES] = {"pcie_lanes", "lanes"},
    [KILN_WATCH_PCIE_GENERATION_MAX] = {"pcie_generation_max", "number"},
    [KILN_WATCH_PCIE_LANES_MAX] = {"pcie_lanes_max", "lanes"},
    [KILN_WATCH_PCIE_SENT] = {"pcie_sent", "kilobytes a second"},
    [KILN_WATCH_PCIE_RECEIVED] = {"pcie_received", "kilobytes a second"},
    [KILN_WATCH_NVLINKS] = {"nvlinks", "links"},
    [KILN_WATCH_NUMA_NODE] = {"numa_node", "number"},
    [KILN_WATCH_COMPUTE_MAJOR] = {"compute_major", "number"},
    [KILN_WATCH_COMPUTE_MINOR] = {"compute_minor", "number"},
    [KILN_WATCH_MIG] = {"mig", "switch"},
    [KILN_WATCH_MULTIPROCESSORS] = {"multiprocessors", "number"},
};
_Static_assert(KILN_WATCH_METRICS <= 64, "one bit for each metric");

const char* kiln_watch_metric_name(uint32_t metric) {
  return metric < KILN_WATCH_METRICS ? kMetrics[metric].name : NULL;
}

const char* kiln_watch_metric_unit(uint32_t metric) {
  return metric < KILN_WATCH_METRICS ? kMetrics[metric].unit : NULL;
}

static const struct {
  uint64_t bit;
  const char* word;
} kReasons[] = {
    {KILN_NVML_CLOCKS_GPU_IDLE, "idle"},
    {KILN_NVML_CLOCKS_APPLICATION_SETTING, "setting"},
    {KILN_NVML_CLOCKS_SW_POWER_CAP, "power-cap"},
    {KILN_NVML_CLOCKS_HW_SLOWDOWN, "hardware"},
    {KILN_NVML_CLOCKS_SYNC_BOOST, "sync-boost"},
    {KILN_NVML_CLOCKS_SW_THERMAL_SLOWDOWN, "thermal"},
    {KILN_NVML_CLOCKS_HW_THERMAL_SLOWDOWN, "hardware-thermal"},
    {KILN_NVML_CLOCKS_HW_POWER_BRAKE_SLOWDOWN, "power-brake"},
    {KILN_NVML_CLOCKS_DISPLAY_SETTING, "display"},
};

const char* kiln_watch_throttle_text(kiln_watch_t* watch, int64_t throttle) {
  size_t at = 0;
  watch->throttle[0] = 0;
  for (size_t i = 0; i < sizeof(kReasons) / sizeof(kReasons[0]); i++) {
    if (((uint64_t)throttle & kReasons[i].bit) == 0) continue;
    int wrote = snprintf(watch->throttle + at, sizeof(watch->throttle) - at,
                         "%s%s", at > 0 ? ", " : "", kReasons[i].word);
    if (wrote > 0 && (size_t)wrote < sizeof(watch->throttle) - at) {
      at += (size_t)wrote;
    }
  }
  return watch->throttle;
}

// ---- Values ----

static void watch_values_say(kilni_probe_watched_t* device, uint32_t metric,
                             int64_t value) {
  device->values[metric] = value;
  device->known |= UINT64_C(1) << metric;
}

static void say_bytes(kilni_probe_watched_t* device, uint32_t metric,
                      unsigned long long value) {
  if (value <= INT64_MAX) watch_values_say(device, metric, (int64_t)value);
}

// What gives one number.
#define ASK(metric, row, ...)                                         \
  do {                                                                \
    unsigned int value_ = 0;                                          \
    if (t->row(__VA_ARGS__, &value_) == KILN_NVML_SUCCESS &&          \
        value_ != KILN_NVML_NOT_AVAILABLE_32) {                       \
      watch_values_say(device, KILN_WATCH_##metric, (int64_t)value_); \
    }                                                                 \
  } while (0)
#define ASK_LONG(metric, row, ...)                           \
  do {                                                       \
    unsigned long long value_ = 0;                           \
    if (t->row(__VA_ARGS__, &value_) == KILN_NVML_SUCCESS) { \
      say_bytes(device, KILN_WATCH_##metric, value_);        \
    }                                                        \
  } while (0)

static void ask_memory(const kiln_nvml_table_t* t,
                       kilni_probe_watched_t* device) {
  kiln_nvml_memory_v2_t newer;
  kiln_nvml_memory_t memory;
  kiln_nvml_bar1_t bar1;
  memset(&newer, 0, sizeof(newer));
  newer.version = KILN_NVML_MEMORY_V2;
  if (t->nvmlDeviceGetMemoryInfo_v2(device->handle, &newer) ==
      KILN_NVML_SUCCESS) {
    say_bytes(device, KILN_WATCH_MEMORY_TOTAL, newer.total);
    say_bytes(device, KILN_WATCH_MEMORY_USED, newer.used);
    say_bytes(device, KILN_WATCH_MEMORY_FREE, newer.free);
    say_bytes(device, KILN_WATCH_MEMORY_RESERVED, newer.reserved);
  } else if (t->nvmlDeviceGetMemoryInfo(device->handle, &memory) ==
             KILN_NVML_SUCCESS) {
    say_bytes(device, KILN_WATCH_MEMORY_TOTAL, memory.total);
    say_bytes(device, KILN_WATCH_MEMORY_USED, memory.used);
    say_bytes(device, KILN_WATCH_MEMORY_FREE, memory.free);
  }
  if (t->nvmlDeviceGetBAR1MemoryInfo(device->handle, &bar1) ==
      KILN_NVML_SUCCESS) {
    say_bytes(device, KILN_WATCH_BAR1_TOTAL, bar1.total);
    say_bytes(device, KILN_WATCH_BAR1_USED, bar1.used);
  }
}

static void ask_work(const kiln_nvml_table_t* t,
                     kilni_probe_watched_t* device) {
  kiln_nvml_utilization_t percent;
  unsigned int used = 0;
  unsigned int period = 0;
  if (t->nvmlDeviceGetUtilizationRates(device->handle, &percent) ==
      KILN_NVML_SUCCESS) {
    watch_values_say(device, KILN_WATCH_UTILIZATION, percent.gpu);
    watch_values_say(device, KILN_WATCH_MEMORY_UTILIZATION, percent.memory);
  }
  if (t->nvmlDeviceGetEncoderUtilization(device->handle, &used, &period) ==
      KILN_NVML_SUCCESS) {
    watch_values_say(device, KILN_WATCH_ENCODER, used);
  }
  if (t->nvmlDeviceGetDecoderUtilization(device->handle, &used, &period) ==
      KILN_NVML_SUCCESS) {
    watch_values_say(device, KILN_WATCH_DECODER, used);
  }
}

static void ask_heat(const kiln_nvml_table_t* t,
                     kilni_probe_watched_t* device) {
  kiln_nvml_temperature_t now;
  kiln_nvml_device_t d = device->handle;
  memset(&now, 0, sizeof(now));
  now.version = KILN_NVML_TEMPERATURE_V1;
  now.sensor = KILN_NVML_TEMPERATURE_GPU;
  if (t->nvmlDeviceGetTemperatureV(d, &now) == KILN_NVML_SUCCESS) {
    watch_values_say(device, KILN_WATCH_TEMPERATURE, now.celsius);
  } else {
    ASK(TEMPERATURE, nvmlDeviceGetTemperature, d, KILN_NVML_TEMPERATURE_GPU);
  }
  ASK(TEMPERATURE_SLOWDOWN, nvmlDeviceGetTemperatureThreshold, d,
      KILN_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN);
  ASK(TEMPERATURE_SHUTDOWN, nvmlDeviceGetTemperatureThreshold, d,
      KILN_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN);
  ASK(POWER, nvmlDeviceGetPowerUsage, d);
  ASK(POWER_LIMIT, nvmlDeviceGetEnforcedPowerLimit, d);
  ASK_LONG(ENERGY, nvmlDeviceGetTotalEnergyConsumption, d);
  ASK(FAN, nvmlDeviceGetFanSpeed, d);
}

static void ask_clocks(const kiln_nvml_table_t* t,
                       kilni_probe_watched_t* device) {
  kiln_nvml_device_t d = device->handle;
  ASK(CLOCK_GRAPHICS, nvmlDeviceGetClockInfo, d, KILN_NVML_CLOCK_GRAPHICS);
  ASK(CLOCK_SM, nvmlDeviceGetClockInfo, d, KILN_NVML_CLOCK_SM);
  ASK(CLOCK_MEMORY, nvmlDeviceGetClockInfo, d, KILN_NVML_CLOCK_MEM);
  ASK(CLOCK_VIDEO, nvmlDeviceGetClockInfo, d, KILN_NVML_CLOCK_VIDEO);
  ASK(CLOCK_GRAPHICS_MAX, nvmlDeviceGetMaxClockInfo, d,
      KILN_NVML_CLOCK_GRAPHICS);
  ASK(CLOCK_SM_MAX, nvmlDeviceGetMaxClockInfo, d, KILN_NVML_CLOCK_SM);
  ASK(CLOCK_MEMORY_MAX, nvmlDeviceGetMaxClockInfo, d, KILN_NVML_CLOCK_MEM);
  ASK(CLOCK_VIDEO_MAX, nvmlDeviceGetMaxClockInfo, d, KILN_NVML_CLOCK_VIDEO);
  ASK_LONG(THROTTLE, nvmlDeviceGetCurrentClocksThrottleReasons, d);
}

static void ask_state(const kiln_nvml_table_t* t,
                      kilni_probe_watched_t* device) {
  kiln_nvml_device_t d = device->handle;
  unsigned int pair[4] = {0, 0, 0, 0};
  int major = 0;
  int minor = 0;
  ASK(PERFORMANCE_STATE, nvmlDeviceGetPerformanceState, d);
  ASK(PERSISTENCE, nvmlDeviceGetPersistenceMode, d);
  ASK(COMPUTE_MODE, nvmlDeviceGetComputeMode, d);
  ASK(NUMA_NODE, nvmlDeviceGetNumaNodeId, d);
  if (t->nvmlDeviceGetEccMode(d, &pair[0], &pair[1]) == KILN_NVML_SUCCESS) {
    watch_values_say(device, KILN_WATCH_ECC, pair[0]);
  }
  ASK_LONG(ECC_CORRECTED, nvmlDeviceGetTotalEccErrors, d,
           KILN_NVML_MEMORY_ERROR_TYPE_CORRECTED, KILN_NVML_VOLATILE_ECC);
  ASK_LONG(ECC_UNCORRECTED, nvmlDeviceGetTotalEccErrors, d,
           KILN_NVML_MEMORY_ERROR_TYPE_UNCORRECTED, KILN_NVML_VOLATILE_ECC);
  if (t->nvmlDeviceGetRemappedRows(d, &pair[0], &pair[1], &pair[2], &pair[3]) ==
      KILN_NVML_SUCCESS) {
    watch_values_say(device, KILN_WATCH_REMAPPED_ROWS, pair[1]);
  }
  if (t->nvmlDeviceGetCudaComputeCapability(d, &major, &minor) ==
      KILN_NVML_SUCCESS) {
    watch_values_say(device, KILN_WATCH_COMPUTE_MAJOR, major);
    watch_values_say(device, KILN_WATCH_COMPUTE_MINOR, minor);
  }
  if (t->nvmlDeviceGetMigMode(d, &pair[0], &pair[1]) == KILN_NVML_SUCCESS) {
    watch_values_say(device, KILN_WATCH_MIG, pair[0]);
  }
}

static void ask_bus(const kiln_watch_t* watch, kilni_probe_watched_t* device) {
  const kiln_nvml_table_t* t = &watch->table;
  kiln_nvml_device_t d = device->handle;
  ASK(PCIE_GENERATION, nvmlDeviceGetCurrPcieLinkGeneration, d);
  ASK(PCIE_LANES, nvmlDeviceGetCurrPcieLinkWidth, d);
  ASK(PCIE_GENERATION_MAX, nvmlDeviceGetMaxPcieLinkGeneration, d);
  ASK(PCIE_LANES_MAX, nvmlDeviceGetMaxPcieLinkWidth, d);
  if (!watch->pcie_traffic) return;
  ASK(PCIE_SENT, nvmlDeviceGetPcieThroughput, d, KILN_NVML_PCIE_UTIL_TX_BYTES);
  ASK(PCIE_RECEIVED, nvmlDeviceGetPcieThroughput, d,
      KILN_NVML_PCIE_UTIL_RX_BYTES);
}

static void ask_share(const kiln_nvml_table_t* t,
                      kilni_probe_watched_t* device) {
  kiln_nvml_attributes_t has;
  memset(&has, 0, sizeof(has));
  if (t->nvmlDeviceGetAttributes(device->handle, &has) == KILN_NVML_SUCCESS) {
    watch_values_say(device, KILN_WATCH_MULTIPROCESSORS, has.multiprocessors);
  }
}

// ---- Links ----

static uint32_t watch_values_leads_to(unsigned int type) {
  switch (type) {
    case KILN_NVML_NVLINK_DEVICE_TYPE_GPU:
      return KILN_WATCH_LINK_GPU;
    case KILN_NVML_NVLINK_DEVICE_TYPE_SWITCH:
      return KILN_WATCH_LINK_SWITCH;
    case KILN_NVML_NVLINK_DEVICE_TYPE_CPU:
      return KILN_WATCH_LINK_CPU;
    default:
      return KILN_WATCH_LINK_UNKNOWN;
  }
}

static void ask_link(const kiln_nvml_table_t* t, kilni_probe_watched_t* device,
                     unsigned int index) {
  kiln_nvml_device_t d = device->handle;
  kiln_watch_link_t* link = &device->links[index];
  kiln_nvml_pci_t pci;
  unsigned int value = 0;
  if (t->nvmlDeviceGetNvLinkVersion(d, index, &value) == KILN_NVML_SUCCESS) {
    link->version = value;
  }
  if (t->nvmlDeviceGetNvLinkCapability(d, index,
                                       KILN_NVML_NVLINK_CAP_P2P_SUPPORTED,
                                       &value) == KILN_NVML_SUCCESS) {
    link->peer = value != 0;
  }
  if (t->nvmlDeviceGetNvLinkRemoteDeviceType(d, index, &value) ==
      KILN_NVML_SUCCESS) {
    link->leads_to = watch_values_leads_to(value);
  }
  memset(&pci, 0, sizeof(pci));
  if (t->nvmlDeviceGetNvLinkRemotePciInfo(d, index, &pci) ==
      KILN_NVML_SUCCESS) {
    snprintf(device->remotes[index], sizeof(device->remotes[index]), "%.31s",
             pci.address);
  }
}

static void ask_links(const kiln_nvml_table_t* t,
                      kilni_probe_watched_t* device) {
  uint32_t active = 0;
  device->facts.link_count = 0;
  for (unsigned int i = 0; i < KILN_NVML_NVLINK_MAX_LINKS; i++) {
    unsigned int state = 0;
    if (t->nvmlDeviceGetNvLinkState(device->handle, i, &state) !=
        KILN_NVML_SUCCESS) {
      break;
    }
    memset(&device->links[i], 0, sizeof(device->links[i]));
    device->remotes[i][0] = 0;
    device->links[i].remote = device->remotes[i];
    device->links[i].active = state != 0;
    if (state != 0) ask_link(t, device, i);
    active += state != 0;
    device->facts.link_count = i + 1;
  }
  watch_values_say(device, KILN_WATCH_NVLINKS, active);
}

// ---- Processes ----

static void add_processes(kilni_probe_watched_t* device,
                          const kiln_nvml_process_t* list, unsigned int count,
                          uint32_t kind) {
  for (unsigned int i = 0; i < count; i++) {
    uint32_t at = 0;
    while (at < device->facts.process_count &&
           (device->processes[at].pid != list[i].pid ||
            device->processes[at].gpu_instance != list[i].gpu_instance)) {
      at++;
    }
    kiln_watch_process_t* process = &device->processes[at];
    if (at == device->facts.process_count) {
      if (at == KILNI_WATCH_MAX_PROCESSES) return;
      memset(process, 0, sizeof(*process));
      process->pid = list[i].pid;
      process->used_bytes = list[i].used_bytes;
      process->gpu_instance = list[i].gpu_instance;
      process->percent = -1;
      device->facts.process_count++;
    }
    process->kinds |= kind;
  }
}

// Of each process the newest sample counts; the list may be in any order.
static void add_shares(const kiln_nvml_table_t* t,
                       kilni_probe_watched_t* device) {
  kiln_nvml_process_sample_t samples[KILNI_WATCH_MAX_PROCESSES];
  unsigned long long newest[KILNI_WATCH_MAX_PROCESSES];
  unsigned int count = KILNI_WATCH_MAX_PROCESSES;
  if (device->facts.process_count == 0 ||
      t->nvmlDeviceGetProcessUtilization(device->handle, samples, &count, 0) !=
          KILN_NVML_SUCCESS) {
    return;
  }
  memset(newest, 0, sizeof(newest));
  for (unsigned int i = 0; i < count && i < KILNI_WATCH_MAX_PROCESSES; i++) {
    for (uint32_t k = 0; k < device->facts.process_count; k++) {
      kiln_watch_process_t* process = &device->processes[k];
      if (process->pid != samples[i].pid || samples[i].timestamp < newest[k] ||
          samples[i].sm > 100) {
        continue;
      }
      newest[k] = samples[i].timestamp;
      process->percent = (int32_t)samples[i].sm;
    }
  }
}

typedef kiln_nvml_result_t (*list_fn_t)(kiln_nvml_device_t device,
                                        unsigned int* count,
                                        kiln_nvml_process_t* processes);

static void ask_processes(const kiln_nvml_table_t* t,
                          kilni_probe_watched_t* device) {
  static const uint32_t kKinds[] = {KILN_WATCH_PROCESS_COMPUTE,
                                    KILN_WATCH_PROCESS_GRAPHICS,
                                    KILN_WATCH_PROCESS_MPS};
  const list_fn_t lists[] = {t->nvmlDeviceGetComputeRunningProcesses,
                             t->nvmlDeviceGetGraphicsRunningProcesses,
                             t->nvmlDeviceGetMPSComputeRunningProcesses};
  kiln_nvml_process_t list[KILNI_WATCH_MAX_PROCESSES];
  device->facts.process_count = 0;
  for (int i = 0; i < 3; i++) {
    unsigned int count = KILNI_WATCH_MAX_PROCESSES;
    if (lists[i](device->handle, &count, list) != KILN_NVML_SUCCESS) continue;
    if (count > KILNI_WATCH_MAX_PROCESSES) count = KILNI_WATCH_MAX_PROCESSES;
    add_processes(device, list, count, kKinds[i]);
  }
  for (uint32_t i = 0; i < device->facts.process_count; i++) {
    char* name = device->names[i];
    if (t->nvmlSystemGetProcessName(device->processes[i].pid, name,
                                    KILNI_WATCH_TEXT_BYTES) !=
        KILN_NVML_SUCCESS) {
      name[0] = 0;
    }
    device->processes[i].name = name;
  }
  add_shares(t, device);
}

void kilni_probe_watch_ask(kiln_watch_t* watch, kilni_probe_watched_t* device) {
  const kiln_nvml_table_t* t = &watch->table;
  device->known = 0;
  ask_memory(t, device);
  ask_processes(t, device);
  if (device->is_mig) {
    ask_share(t, device);
    return;
  }
  ask_work(t, device);
  ask_heat(t, device);
  ask_clocks(t, device);
  ask_state(t, device);
  ask_bus(watch, device);
  ask_links(t, device);
}
