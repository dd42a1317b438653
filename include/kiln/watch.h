// SPDX-License-Identifier: Apache-2.0
//
// probe: what the machine's GPUs do now: memory, clocks, power, processes,
// links, as reported by NVML. `kiln top` shows it.
//
// Nothing on a GPU is touched and no context is made. GPUs are numbered as NVML
// does, in the order of their addresses, regardless of CUDA_VISIBLE_DEVICES.
#ifndef KILN_WATCH_H_
#define KILN_WATCH_H_

#include "kiln/api.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// A watch on the machine's GPUs. one-thread
//
// Made by kiln_runtime_watch; owned by its creator. Borrowed results are valid
// until the next sample.
typedef struct kiln_watch_t kiln_watch_t;

// What is watched. thread-compatible
typedef struct kiln_watch_options_t {
  uint32_t struct_size;  // sizeof(kiln_watch_options_t)

  // KILN_SWITCH_*: ask for the traffic over PCIe, for which NVML counts for 40
  // milliseconds at each GPU. Default: off.
  uint32_t pcie_traffic;
} kiln_watch_options_t;

// All defaults. Since 0.1.
static inline kiln_watch_options_t kiln_watch_options_default(void) {
  kiln_watch_options_t options = {(uint32_t)sizeof(options), 0};
  return options;
}

// Closes NVML. NULL is accepted. Since 0.1.
KILN_API void kiln_watch_close(kiln_watch_t* watch);

// Takes a new sample. What a GPU no longer reports is unknown; this is not an
// error. INVALID_STATE after a fork. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_watch_sample(kiln_watch_t* watch);

// Why there are no devices, and how to fix it; "" if there are. Borrowed. Since
// 0.1.
KILN_API const char* kiln_watch_why(const kiln_watch_t* watch);
KILN_API const char* kiln_watch_fix(const kiln_watch_t* watch);

// Release of the driver ("580.159.04") and CUDA version (13000 is 13.0); "" and
// 0 where they are not known. Borrowed. Since 0.1.
KILN_API const char* kiln_watch_release(const kiln_watch_t* watch);
KILN_API uint32_t kiln_watch_driver_version(const kiln_watch_t* watch);

#define KILN_WATCH_NO_PARENT UINT32_MAX

// A GPU, or a MIG device, listed after its GPU. thread-compatible
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_watch_device_t {
  const char* model;          // "NVIDIA H200"; "" if not known
  const char* uuid;           // "GPU-...", "MIG-..."; "" if not known
  const char* address;        // "00000000:3B:00.0"; "" of a MIG device
  uint32_t index;             // NVML's number; of a MIG device that in its GPU
  uint32_t parent;            // of a MIG device: its GPU in this list
  uint32_t gpu_instance;      // of a MIG device
  uint32_t compute_instance;  // of a MIG device
  uint32_t process_count;
  uint32_t link_count;  // of NVLink, active or not
} kiln_watch_device_t;

// Borrowed; NULL for an index out of range. Since 0.1.
KILN_API uint32_t kiln_watch_device_count(const kiln_watch_t* watch);
KILN_API const kiln_watch_device_t* kiln_watch_device(const kiln_watch_t* watch,
                                                      uint32_t device);

// What is known of a device, each with a name and a unit.
enum {
  KILN_WATCH_MEMORY_TOTAL = 0,
  KILN_WATCH_MEMORY_USED,      // by processes
  KILN_WATCH_MEMORY_FREE,      //
  KILN_WATCH_MEMORY_RESERVED,  // by the driver
  KILN_WATCH_BAR1_TOTAL,       // of what the host can address
  KILN_WATCH_BAR1_USED,
  KILN_WATCH_UTILIZATION,         // time in which a kernel ran
  KILN_WATCH_MEMORY_UTILIZATION,  // time in which memory was used
  KILN_WATCH_ENCODER,
  KILN_WATCH_DECODER,
  KILN_WATCH_TEMPERATURE,
  KILN_WATCH_TEMPERATURE_SLOWDOWN,  // clocks are reduced above this
  KILN_WATCH_TEMPERATURE_SHUTDOWN,
  KILN_WATCH_POWER,
  KILN_WATCH_POWER_LIMIT,
  KILN_WATCH_ENERGY,  // since the driver was loaded
  KILN_WATCH_FAN,
  KILN_WATCH_CLOCK_GRAPHICS,
  KILN_WATCH_CLOCK_SM,
  KILN_WATCH_CLOCK_MEMORY,
  KILN_WATCH_CLOCK_VIDEO,
  KILN_WATCH_CLOCK_GRAPHICS_MAX,
  KILN_WATCH_CLOCK_SM_MAX,
  KILN_WATCH_CLOCK_MEMORY_MAX,
  KILN_WATCH_CLOCK_VIDEO_MAX,
  KILN_WATCH_THROTTLE,           // bits; kiln_watch_throttle_text
  KILN_WATCH_PERFORMANCE_STATE,  // 0 is the fastest
  KILN_WATCH_PERSISTENCE,        // 1: the driver stays loaded
  KILN_WATCH_COMPUTE_MODE,   // 0 shared, 2 prohibited, 3 one process at a time
  KILN_WATCH_ECC,            // 1: on
  KILN_WATCH_ECC_CORRECTED,  // errors since the driver was loaded
  KILN_WATCH_ECC_UNCORRECTED,
  KILN_WATCH_REMAPPED_ROWS,  // of memory, for errors that were not corrected
  KILN_WATCH_PCIE_GENERATION,
  KILN_WATCH_PCIE_LANES,
  KILN_WATCH_PCIE_GENERATION_MAX,
  KILN_WATCH_PCIE_LANES_MAX,
  KILN_WATCH_PCIE_SENT,      // by the GPU
  KILN_WATCH_PCIE_RECEIVED,  //
  KILN_WATCH_NVLINKS,        // active ones
  KILN_WATCH_NUMA_NODE,
  KILN_WATCH_COMPUTE_MAJOR,
  KILN_WATCH_COMPUTE_MINOR,
  KILN_WATCH_MIG,              // 1: the GPU is divided
  KILN_WATCH_MULTIPROCESSORS,  // of a MIG device
  KILN_WATCH_METRICS
};

// "memory_total" and "bytes"; NULL for an invalid number. Static. Since 0.1.
KILN_API const char* kiln_watch_metric_name(uint32_t metric);
KILN_API const char* kiln_watch_metric_unit(uint32_t metric);

// False if the device does not report it. Since 0.1.
KILN_API bool kiln_watch_value(const kiln_watch_t* watch, uint32_t device,
                               uint32_t metric, int64_t* out_value);

// Why clocks are lower than they might be, as words: "power-cap, thermal"; ""
// for none. Borrowed until the next call. Since 0.1.
KILN_API const char* kiln_watch_throttle_text(kiln_watch_t* watch,
                                              int64_t throttle);

// What a process does on a GPU; bits.
enum {
  KILN_WATCH_PROCESS_COMPUTE = 1,
  KILN_WATCH_PROCESS_GRAPHICS = 2,
  KILN_WATCH_PROCESS_MPS = 4,  // through the multi-process service
};

// A process on a GPU. thread-compatible
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_watch_process_t {
  const char* name;       // as reported by NVML; ""
  uint32_t pid;           // as the driver sees it: in a container another one
  uint32_t kinds;         // KILN_WATCH_PROCESS_*
  uint64_t used_bytes;    // UINT64_MAX if not known
  int32_t percent;        // of multiprocessors' time; -1 if not known
  uint32_t gpu_instance;  // with MIG; 0xffffffff without
} kiln_watch_process_t;

// Borrowed; NULL for an index out of range. At most 256 of each device.
// Since 0.1.
KILN_API const kiln_watch_process_t* kiln_watch_process(
    const kiln_watch_t* watch, uint32_t device, uint32_t index);

// What is at the other end of a link.
enum {
  KILN_WATCH_LINK_UNKNOWN = 0,
  KILN_WATCH_LINK_GPU = 1,
  KILN_WATCH_LINK_SWITCH = 2,
  KILN_WATCH_LINK_CPU = 3,
};

// A link of NVLink. thread-compatible
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_watch_link_t {
  const char* remote;  // address of the other end; ""
  uint32_t active;     // 1: it is in use
  uint32_t version;    // of NVLink; 0 if not known
  uint32_t leads_to;   // KILN_WATCH_LINK_*
  uint32_t peer;       // 1: GPUs reach each other's memory over it
} kiln_watch_link_t;

// Borrowed; NULL for an index out of range. Since 0.1.
KILN_API const kiln_watch_link_t* kiln_watch_link(const kiln_watch_t* watch,
                                                  uint32_t device,
                                                  uint32_t index);

// The distance between two GPUs of the list.
enum {
  KILN_WATCH_PATH_UNKNOWN = 0,
  KILN_WATCH_PATH_BOARD = 1,     // on one board
  KILN_WATCH_PATH_SWITCH = 2,    // below one PCIe switch
  KILN_WATCH_PATH_SWITCHES = 3,  // below several
  KILN_WATCH_PATH_BRIDGE = 4,    // below one host bridge
  KILN_WATCH_PATH_NODE = 5,      // of one NUMA node
  KILN_WATCH_PATH_SYSTEM = 6,    // of several
};

// Between two devices. `*out_peer` is 1 where each can read the other's memory,
// 0 where not, -1 if unknown. Since 0.1.
KILN_API uint32_t kiln_watch_path(kiln_watch_t* watch, uint32_t device,
                                  uint32_t other, int32_t* out_peer);

// "switch" and so on; "?" for an invalid value. Static. Since 0.1.
KILN_API const char* kiln_watch_path_name(uint32_t path);
KILN_API const char* kiln_watch_link_name(uint32_t leads_to);

KILN_EXTERN_C_END

#endif  // KILN_WATCH_H_
