// SPDX-License-Identifier: Apache-2.0
//
// table: the binary interface of NVML, in our own declarations.
//
// As cuda_abi.h: compared with nvml.h by a test where that exists. Its enums
// are plain numbers here, of the same width.
#ifndef KILN_SRC_TABLE_NVML_ABI_H_
#define KILN_SRC_TABLE_NVML_ABI_H_

#include <stddef.h>
#include <stdint.h>

// A GPU, or a MIG device of one. thread-safe
typedef struct nvmlDevice_st* kiln_nvml_device_t;

// A result of NVML, in its own width. thread-safe
typedef unsigned int kiln_nvml_result_t;

// KILN_NVML_SUCCESS and KILN_NVML_ERROR_* (nvml_results.inc).
enum {
  KILN_NVML_SUCCESS = 0,
#define KILNI_NVML_RESULT(name, number, status, fix) \
  KILN_NVML_ERROR_##name = number,
#include "table/nvml_results.inc"
#undef KILNI_NVML_RESULT
};

// How much space its texts need at most, NUL included.
enum {
  KILN_NVML_VERSION_BYTES = 80,
  KILN_NVML_NAME_BYTES = 96,
  KILN_NVML_UUID_BYTES = 96,
};

// Sensors, limits, clocks, modes and the like, as NVML numbers them.
enum {
  KILN_NVML_TEMPERATURE_GPU = 0,
  KILN_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0,
  KILN_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1,
  KILN_NVML_CLOCK_GRAPHICS = 0,
  KILN_NVML_CLOCK_SM = 1,
  KILN_NVML_CLOCK_MEM = 2,
  KILN_NVML_CLOCK_VIDEO = 3,
  KILN_NVML_PCIE_UTIL_TX_BYTES = 0,
  KILN_NVML_PCIE_UTIL_RX_BYTES = 1,
  KILN_NVML_NVLINK_CAP_P2P_SUPPORTED = 0,
  KILN_NVML_NVLINK_MAX_LINKS = 18,  // of CUDA 12; 36 in the newest header
  KILN_NVML_NVLINK_DEVICE_TYPE_GPU = 0,
  KILN_NVML_NVLINK_DEVICE_TYPE_CPU = 1,
  KILN_NVML_NVLINK_DEVICE_TYPE_SWITCH = 2,
  KILN_NVML_P2P_CAPS_READ = 0,
  KILN_NVML_P2P_STATUS_OK = 0,
  KILN_NVML_TOPOLOGY_INTERNAL = 0,
  KILN_NVML_TOPOLOGY_SINGLE = 10,
  KILN_NVML_TOPOLOGY_MULTIPLE = 20,
  KILN_NVML_TOPOLOGY_HOSTBRIDGE = 30,
  KILN_NVML_TOPOLOGY_NODE = 40,
  KILN_NVML_TOPOLOGY_SYSTEM = 50,
  KILN_NVML_MEMORY_ERROR_TYPE_CORRECTED = 0,
  KILN_NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1,
  KILN_NVML_VOLATILE_ECC = 0,
  KILN_NVML_AGGREGATE_ECC = 1,
  KILN_NVML_COMPUTEMODE_DEFAULT = 0,
  KILN_NVML_COMPUTEMODE_PROHIBITED = 2,
  KILN_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
};

// Why clocks are lower than they might be; bits.
#define KILN_NVML_CLOCKS_GPU_IDLE                UINT64_C(0x1)
#define KILN_NVML_CLOCKS_APPLICATION_SETTING     UINT64_C(0x2)
#define KILN_NVML_CLOCKS_SW_POWER_CAP            UINT64_C(0x4)
#define KILN_NVML_CLOCKS_HW_SLOWDOWN             UINT64_C(0x8)
#define KILN_NVML_CLOCKS_SYNC_BOOST              UINT64_C(0x10)
#define KILN_NVML_CLOCKS_SW_THERMAL_SLOWDOWN     UINT64_C(0x20)
#define KILN_NVML_CLOCKS_HW_THERMAL_SLOWDOWN     UINT64_C(0x40)
#define KILN_NVML_CLOCKS_HW_POWER_BRAKE_SLOWDOWN UINT64_C(0x80)
#define KILN_NVML_CLOCKS_DISPLAY_SETTING         UINT64_C(0x100)

// A number of bytes or percent that is unknown. 64 and 32 bits.
#define KILN_NVML_NOT_AVAILABLE    UINT64_MAX
#define KILN_NVML_NOT_AVAILABLE_32 UINT32_MAX

// A PCI address. thread-compatible
typedef struct kiln_nvml_pci_t {
  char legacy_address[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int device_id;  // with the maker's in the lower half
  unsigned int subsystem_id;
  char address[32];  // "00000000:3B:00.0"
} kiln_nvml_pci_t;

// Memory in bytes; what the system keeps for itself is used. thread-compatible
typedef struct kiln_nvml_memory_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
} kiln_nvml_memory_t;

// The same, and what the system keeps for itself. thread-compatible
typedef struct kiln_nvml_memory_v2_t {
  unsigned int version;  // KILN_NVML_MEMORY_V2, set by the caller
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
} kiln_nvml_memory_v2_t;

// A temperature. thread-compatible
typedef struct kiln_nvml_temperature_t {
  unsigned int version;  // KILN_NVML_TEMPERATURE_V1, set by the caller
  unsigned int sensor;   // KILN_NVML_TEMPERATURE_GPU, set by the caller
  int celsius;
} kiln_nvml_temperature_t;

// The version in a struct that carries it: size and number.
#define KILN_NVML_STRUCT_VERSION(type, number) \
  ((unsigned int)sizeof(type) | ((unsigned int)(number) << 24))
#define KILN_NVML_MEMORY_V2 KILN_NVML_STRUCT_VERSION(kiln_nvml_memory_v2_t, 2)
#define KILN_NVML_TEMPERATURE_V1 \
  KILN_NVML_STRUCT_VERSION(kiln_nvml_temperature_t, 1)

// Memory that the host can address, in bytes. thread-compatible
typedef struct kiln_nvml_bar1_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
} kiln_nvml_bar1_t;

// Percent of the last sample's time. thread-compatible
typedef struct kiln_nvml_utilization_t {
  unsigned int gpu;     // a kernel ran
  unsigned int memory;  // memory was read or written
} kiln_nvml_utilization_t;

// A process that uses a GPU. thread-compatible
typedef struct kiln_nvml_process_t {
  unsigned int pid;
  unsigned long long used_bytes;  // KILN_NVML_NOT_AVAILABLE
  unsigned int gpu_instance;      // KILN_NVML_NOT_AVAILABLE_32 without MIG
  unsigned int compute_instance;
} kiln_nvml_process_t;

// What a process used of a GPU, in percent. thread-compatible
typedef struct kiln_nvml_process_sample_t {
  unsigned int pid;
  unsigned long long timestamp;  // microseconds since 1970
  unsigned int sm;
  unsigned int memory;
  unsigned int encoder;
  unsigned int decoder;
} kiln_nvml_process_sample_t;

// What a MIG device has. thread-compatible
typedef struct kiln_nvml_attributes_t {
  unsigned int multiprocessors;
  unsigned int copy_engines;
  unsigned int decoders;
  unsigned int encoders;
  unsigned int jpeg_engines;
  unsigned int optical_flow_engines;
  unsigned int gpu_slices;
  unsigned int compute_slices;
  unsigned long long memory_mib;
} kiln_nvml_attributes_t;

// A single value, asked for by number. thread-compatible
typedef struct kiln_nvml_field_t {
  unsigned int field;   // set by the caller
  unsigned int scope;   // set by the caller: a link, for instance
  long long timestamp;  // microseconds since 1970
  long long latency;    // microseconds
  unsigned int type;    // which member of `value` has it
  kiln_nvml_result_t result;
  union {
    double real;             // type 0
    unsigned int u32;        // type 1
    unsigned long u_long;    // type 2
    unsigned long long u64;  // type 3
    long long s64;           // type 4
    int s32;                 // type 5
    unsigned short u16;      // type 6
  } value;
} kiln_nvml_field_t;

#endif  // KILN_SRC_TABLE_NVML_ABI_H_
