// SPDX-License-Identifier: Apache-2.0
//
// probe: every attribute of a device, its UUID and its address, as the driver
// reports them without a context.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "probe/probe_sheet.h"
#include "table/cuda_table.h"

// An attribute of the driver. thread-safe
typedef struct attribute_t {
  const char* name;
  const char* unit;
  uint32_t number;
  uint32_t since;
} attribute_t;

static const attribute_t kAttributes[] = {
#define KILNI_CUDA_ATTRIBUTE(name, number, since, unit) \
  {#name, unit, number, since},
#include "table/cuda_attributes.inc"
#undef KILNI_CUDA_ATTRIBUTE
};

uint32_t kiln_probe_attribute_count(void) {
  return KILNI_PROBE_ATTRIBUTES;
}

const char* kiln_probe_attribute_name(uint32_t index) {
  return index < KILNI_PROBE_ATTRIBUTES ? kAttributes[index].name : NULL;
}

const char* kiln_probe_attribute_unit(uint32_t index) {
  return index < KILNI_PROBE_ATTRIBUTES ? kAttributes[index].unit : NULL;
}

uint32_t kiln_probe_attribute_number(uint32_t index) {
  return index < KILNI_PROBE_ATTRIBUTES ? kAttributes[index].number : 0;
}

uint32_t kiln_probe_attribute_since(uint32_t index) {
  return index < KILNI_PROBE_ATTRIBUTES ? kAttributes[index].since : 0;
}

// The model of a part of a GPU identifies it as one; the driver's UUID does
// not.
static const char* attributes_word_of(const char* model) {
  return strstr(model, " MIG ") != NULL ? "MIG" : "GPU";
}

kiln_status_t kilni_probe_collect_attributes(kiln_probe_t* probe,
                                             const kiln_cuda_table_t* table,
                                             kiln_cu_device_t handle,
                                             kiln_probe_device_t* device) {
  kiln_cu_uuid_t uuid;
  char address[32] = "";
  char text[KILNI_UUID_BYTES];
  void* slot = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_probe_add(probe, &probe->told, &slot));
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(probe->host->allocator,
                                         sizeof(kilni_probe_told_t), &block));
  kilni_probe_told_t* told = block;
  *(kilni_probe_told_t**)slot = told;
  for (uint32_t i = 0; i < KILNI_PROBE_ATTRIBUTES; i++) {
    int value = 0;
    told->known[i] = table->cuDeviceGetAttribute(&value, kAttributes[i].number,
                                                 handle) == KILN_CU_SUCCESS;
    told->values[i] = told->known[i] ? value : 0;
  }
  device->attributes = told->values;
  device->known = told->known;
  if (table->cuDeviceGetUuid(&uuid, handle) == KILN_CU_SUCCESS) {
    kilni_table_cuda_uuid_text(&uuid, attributes_word_of(device->model), text);
    KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, text, &device->uuid));
  }
  if (table->cuDeviceGetPCIBusId(address, (int)sizeof(address), handle) ==
      KILN_CU_SUCCESS) {
    KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, address, &device->address));
  }
  return kiln_ok();
}
