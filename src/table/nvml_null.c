// SPDX-License-Identifier: Apache-2.0
//
// table: NVML's null provider: one GPU on which nothing happens. Its sessions
// are counted with the handles of the driver's null provider.
#include <stdio.h>
#include <string.h>

#include "table/cuda_table.h"
#include "table/nvml_table.h"
#include "table/table_inside.h"

#define NULL_RELEASE "580.65.06"
#define NULL_ADDRESS "00000000:01:00.0"
#define NULL_UUID    "GPU-00000000-0000-0000-0000-000000000000"

enum { NULL_CUDA = 13000, NULL_MAJOR = 7, NULL_MINOR = 5 };

// A session's, and the GPU's.
enum { NULL_SESSION = 1, NULL_DEVICE = 0x1000 };

static const unsigned long long kNullBytes = UINT64_C(1) << 30;

// ---- Sessions ----

static bool null_is_open(void) {
  return kilni_table_cuda_null_live(KILNI_HANDLE_SESSION) != 0;
}

static kiln_nvml_result_t null_nvmlInit(void) {
  uint64_t session = NULL_SESSION;
  return kilni_table_null_create(KILNI_HANDLE_SESSION, 0, &session)
             ? KILN_NVML_SUCCESS
             : KILN_NVML_ERROR_MEMORY;
}

static kiln_nvml_result_t null_nvmlShutdown(void) {
  uint64_t bytes = 0;
  return kilni_table_null_take(KILNI_HANDLE_SESSION, NULL_SESSION, &bytes)
             ? KILN_NVML_SUCCESS
             : KILN_NVML_ERROR_UNINITIALIZED;
}

static const char* null_nvmlErrorString(kiln_nvml_result_t result) {
  const char* name = kilni_table_nvml_result_name(result);
  return name != NULL ? name : "Unknown Error";
}

// ---- The system ----

static kiln_nvml_result_t nvml_null_say(const char* said, char* text,
                                        unsigned int space) {
  if (!null_is_open()) return KILN_NVML_ERROR_UNINITIALIZED;
  if (text == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  if (strlen(said) >= space) return KILN_NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(text, said, strlen(said) + 1);
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t null_nvmlSystemGetDriverVersion(char* text,
                                                          unsigned int space) {
  return nvml_null_say(NULL_RELEASE, text, space);
}

static kiln_nvml_result_t null_nvmlSystemGetNVMLVersion(char* text,
                                                        unsigned int space) {
  return nvml_null_say("13." NULL_RELEASE, text, space);
}

static kiln_nvml_result_t null_nvmlSystemGetCudaDriverVersion(int* version) {
  // A driver reports this without a session too.
  if (version == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  *version = NULL_CUDA;
  return KILN_NVML_SUCCESS;
}

// ---- The GPU ----

static kiln_nvml_device_t null_device(void) {
  return (kiln_nvml_device_t)(uintptr_t)NULL_DEVICE;
}

static bool null_is_device(kiln_nvml_device_t device) {
  return device == null_device();
}

// What precedes an answer about a device.
static kiln_nvml_result_t nvml_null_judge(kiln_nvml_device_t device) {
  if (!null_is_open()) return KILN_NVML_ERROR_UNINITIALIZED;
  return null_is_device(device) ? KILN_NVML_SUCCESS
                                : KILN_NVML_ERROR_INVALID_ARGUMENT;
}

static kiln_nvml_result_t null_nvmlDeviceGetCount(unsigned int* count) {
  if (!null_is_open()) return KILN_NVML_ERROR_UNINITIALIZED;
  if (count == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  *count = 1;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t null_nvmlDeviceGetHandleByIndex(
    unsigned int index, kiln_nvml_device_t* device) {
  if (!null_is_open()) return KILN_NVML_ERROR_UNINITIALIZED;
  if (index != 0 || device == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  *device = null_device();
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t by_text(const char* text, const char* known,
                                  kiln_nvml_device_t* device) {
  if (!null_is_open()) return KILN_NVML_ERROR_UNINITIALIZED;
  if (text == NULL || device == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  if (strcmp(text, known) != 0) return KILN_NVML_ERROR_NOT_FOUND;
  *device = null_device();
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t null_nvmlDeviceGetHandleByUUID(
    const char* uuid, kiln_nvml_device_t* device) {
  return by_text(uuid, NULL_UUID, device);
}

static kiln_nvml_result_t null_nvmlDeviceGetHandleByPciBusId(
    const char* address, kiln_nvml_device_t* device) {
  return by_text(address, NULL_ADDRESS, device);
}

static kiln_nvml_result_t null_nvmlDeviceGetName(kiln_nvml_device_t device,
                                                 char* text,
                                                 unsigned int space) {
  kiln_nvml_result_t result = nvml_null_judge(device);
  return result == KILN_NVML_SUCCESS ? nvml_null_say("null", text, space)
                                     : result;
}

static kiln_nvml_result_t null_nvmlDeviceGetUUID(kiln_nvml_device_t device,
                                                 char* text,
                                                 unsigned int space) {
  kiln_nvml_result_t result = nvml_null_judge(device);
  return result == KILN_NVML_SUCCESS ? nvml_null_say(NULL_UUID, text, space)
                                     : result;
}

static kiln_nvml_result_t null_nvmlDeviceGetPciInfo(kiln_nvml_device_t device,
                                                    kiln_nvml_pci_t* pci) {
  kiln_nvml_result_t result = nvml_null_judge(device);
  if (result != KILN_NVML_SUCCESS) return result;
  if (pci == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  memset(pci, 0, sizeof(*pci));
  pci->bus = 1;
  snprintf(pci->address, sizeof(pci->address), "%s", NULL_ADDRESS);
  snprintf(pci->legacy_address, sizeof(pci->legacy_address), "%s",
           &NULL_ADDRESS[4]);
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t null_nvmlDeviceGetCudaComputeCapability(
    kiln_nvml_device_t device, int* major, int* minor) {
  kiln_nvml_result_t result = nvml_null_judge(device);
  if (result != KILN_NVML_SUCCESS) return result;
  if (major == NULL || minor == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  *major = NULL_MAJOR;
  *minor = NULL_MINOR;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t null_nvmlDeviceGetMemoryInfo(
    kiln_nvml_device_t device, kiln_nvml_memory_t* memory) {
  kiln_nvml_result_t result = nvml_null_judge(device);
  if (result != KILN_NVML_SUCCESS) return result;
  if (memory == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  memory->total = kNullBytes;
  memory->free = kNullBytes;
  memory->used = 0;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t null_nvmlDeviceGetMemoryInfo_v2(
    kiln_nvml_device_t device, kiln_nvml_memory_v2_t* memory) {
  kiln_nvml_result_t result = nvml_null_judge(device);
  if (result != KILN_NVML_SUCCESS) return result;
  if (memory == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != KILN_NVML_MEMORY_V2) {
    return KILN_NVML_ERROR_FUNCTION_NOT_FOUND;  // as driver 580
  }
  memory->total = kNullBytes;
  memory->free = kNullBytes;
  memory->reserved = 0;
  memory->used = 0;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t null_nvmlDeviceGetTemperatureV(
    kiln_nvml_device_t device, kiln_nvml_temperature_t* temperature) {
  kiln_nvml_result_t result = nvml_null_judge(device);
  if (result != KILN_NVML_SUCCESS) return result;
  if (temperature == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  if (temperature->version != KILN_NVML_TEMPERATURE_V1) {
    return KILN_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  temperature->celsius = 0;
  return KILN_NVML_SUCCESS;
}

// ---- Lists: there is nothing on them ----

static kiln_nvml_result_t nvml_null_empty(kiln_nvml_device_t device,
                                          unsigned int* count) {
  kiln_nvml_result_t result = nvml_null_judge(device);
  if (result != KILN_NVML_SUCCESS) return result;
  if (count == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return KILN_NVML_SUCCESS;
}

#define NULL_PROCESSES(kind)                                            \
  static kiln_nvml_result_t null_nvmlDeviceGet##kind##RunningProcesses( \
      kiln_nvml_device_t device, unsigned int* count,                   \
      kiln_nvml_process_t* processes) {                                 \
    (void)processes;                                                    \
    return nvml_null_empty(device, count);                              \
  }
NULL_PROCESSES(Compute)
NULL_PROCESSES(Graphics)
NULL_PROCESSES(MPSCompute)
#undef NULL_PROCESSES

static kiln_nvml_result_t null_nvmlDeviceGetProcessUtilization(
    kiln_nvml_device_t device, kiln_nvml_process_sample_t* samples,
    unsigned int* count, unsigned long long since) {
  (void)samples;
  (void)since;
  return nvml_null_empty(device, count);
}

static kiln_nvml_result_t null_nvmlDeviceGetNvLinkState(
    kiln_nvml_device_t device, unsigned int link, unsigned int* active) {
  (void)link;
  (void)active;
  kiln_nvml_result_t result = nvml_null_judge(device);
  return result == KILN_NVML_SUCCESS ? KILN_NVML_ERROR_NOT_SUPPORTED : result;
}

static kiln_nvml_result_t null_nvmlDeviceGetFieldValues(
    kiln_nvml_device_t device, int count, kiln_nvml_field_t* fields) {
  kiln_nvml_result_t result = nvml_null_judge(device);
  if (result != KILN_NVML_SUCCESS) return result;
  if (count < 1 || fields == NULL) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < count; i++) {
    fields[i].result = KILN_NVML_ERROR_NOT_SUPPORTED;
  }
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t null_nvmlDeviceGetMigDeviceHandleByIndex(
    kiln_nvml_device_t device, unsigned int index, kiln_nvml_device_t* mig) {
  (void)index;
  (void)mig;
  kiln_nvml_result_t result = nvml_null_judge(device);
  return result == KILN_NVML_SUCCESS ? KILN_NVML_ERROR_NOT_FOUND : result;
}

static kiln_nvml_result_t null_nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
    kiln_nvml_device_t mig, kiln_nvml_device_t* device) {
  (void)device;
  kiln_nvml_result_t result = nvml_null_judge(mig);
  return result == KILN_NVML_SUCCESS ? KILN_NVML_ERROR_INVALID_ARGUMENT
                                     : result;
}

#include "table/nvml_null_gen.inc"

void kilni_table_nvml_table_null(kiln_nvml_table_t* out_table) {
  kilni_table_nvml_table_init(out_table, "null", "built in");
  fill_null(out_table);
}
