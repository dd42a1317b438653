// SPDX-License-Identifier: Apache-2.0
//
// support: an NVML with one GPU that tells a little: for `kiln top`. Its names
// hold what a terminal would obey.
#include <stdio.h>

#include "table/nvml_table.h"

#define FAKE_EXPORT __attribute__((visibility("default"), used))
#define FAKE(name, ...)                             \
  FAKE_EXPORT kiln_nvml_result_t name(__VA_ARGS__); \
  FAKE_EXPORT kiln_nvml_result_t name(__VA_ARGS__)

FAKE(nvmlInit_v2, void) {
  return KILN_NVML_SUCCESS;
}

FAKE(nvmlShutdown, void) {
  return KILN_NVML_SUCCESS;
}

FAKE_EXPORT const char* nvmlErrorString(kiln_nvml_result_t result);
FAKE_EXPORT const char* nvmlErrorString(kiln_nvml_result_t result) {
  return result == KILN_NVML_SUCCESS ? "Success" : "Other";
}

FAKE(nvmlSystemGetDriverVersion, char* text, unsigned int space) {
  snprintf(text, space, "580.65.06");
  return KILN_NVML_SUCCESS;
}

FAKE(nvmlSystemGetProcessName, unsigned int pid, char* text,
     unsigned int space) {
  snprintf(text, space, "work-%u \033[2J", pid);
  return KILN_NVML_SUCCESS;
}

FAKE(nvmlDeviceGetCount_v2, unsigned int* count) {
  *count = 1;
  return KILN_NVML_SUCCESS;
}

FAKE(nvmlDeviceGetHandleByIndex_v2, unsigned int index,
     kiln_nvml_device_t* device) {
  *device = (kiln_nvml_device_t)(uintptr_t)(index + 1);
  return KILN_NVML_SUCCESS;
}

FAKE(nvmlDeviceGetName, kiln_nvml_device_t device, char* text,
     unsigned int space) {
  (void)device;
  snprintf(text, space, "Fake \033[31mGPU");
  return KILN_NVML_SUCCESS;
}

FAKE(nvmlDeviceGetUUID, kiln_nvml_device_t device, char* text,
     unsigned int space) {
  (void)device;
  snprintf(text, space, "GPU-fa4e");
  return KILN_NVML_SUCCESS;
}

FAKE(nvmlDeviceGetMemoryInfo, kiln_nvml_device_t device,
     kiln_nvml_memory_t* memory) {
  (void)device;
  memory->total = UINT64_C(4) << 30;
  memory->used = UINT64_C(1) << 30;
  memory->free = UINT64_C(3) << 30;
  return KILN_NVML_SUCCESS;
}

FAKE(nvmlDeviceGetTemperature, kiln_nvml_device_t device, unsigned int sensor,
     unsigned int* celsius) {
  (void)device;
  (void)sensor;
  *celsius = 41;
  return KILN_NVML_SUCCESS;
}

FAKE(nvmlDeviceGetPowerUsage, kiln_nvml_device_t device,
     unsigned int* milliwatts) {
  (void)device;
  *milliwatts = 123600;
  return KILN_NVML_SUCCESS;
}

FAKE(nvmlDeviceGetComputeRunningProcesses_v3, kiln_nvml_device_t device,
     unsigned int* count, kiln_nvml_process_t* processes) {
  (void)device;
  *count = 1;
  processes->pid = 4711;
  processes->used_bytes = UINT64_C(1) << 29;
  processes->gpu_instance = KILN_NVML_NOT_AVAILABLE_32;
  processes->compute_instance = KILN_NVML_NOT_AVAILABLE_32;
  return KILN_NVML_SUCCESS;
}
