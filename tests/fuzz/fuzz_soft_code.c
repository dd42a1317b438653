// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as PTX text for the software device: refused with a reason,
// or decoded. What a module leaves in device memory goes with it.
#include <string.h>

#include "base/thread.h"
#include "soft/code/soft_code.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void require(bool condition) {
  if (!condition) __builtin_trap();
}

// One device memory for all inputs: reserving addresses is slow.
static kilni_soft_memory_t* memory_of(const kiln_host_t* host) {
  static kilni_soft_memory_t* memory;
  if (memory == NULL) {
    kiln_status_t status = kilni_soft_memory_create(host, true, &memory);
    require(kiln_status_is_ok(status));
  }
  return memory;
}

static void check_entries(const kilni_soft_code_t* code) {
  uint32_t count = kilni_soft_code_entry_count(code);
  for (uint32_t i = 0; i < count; i++) {
    const kilni_soft_entry_t* entry = kilni_soft_code_entry(code, i);
    require(entry->name[0] != 0);
    require(kilni_soft_code_find(code, entry->name) != NULL);
    uint32_t end = 0;
    for (uint32_t p = 0; p < entry->param_count; p++) {
      require(entry->params[p].offset >= end);
      end = entry->params[p].offset + entry->params[p].bytes;
    }
    require(end == entry->param_bytes);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static kilni_base_env_t env;
  static kiln_host_t host;
  host.allocator = kiln_allocator_libc();
  host.env = &env;
  host.worker_count = 1;
  host.process_id = kilni_base_process_id();
  kilni_image_ptx_limits_t limits;
  memset(&limits, 0, sizeof(limits));
  limits.variable_bytes = 1 << 16;
  kilni_image_ptx_module_t* module;
  kiln_status_t status =
      kilni_image_ptx_module_create((kiln_bytes_view_t){data, size}, "fuzz",
                                    &limits, host.allocator, &module);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return 0;
  }
  kilni_soft_memory_t* memory = memory_of(&host);
  uint64_t used = kilni_soft_memory_used(memory);
  kilni_soft_code_t* code;
  status = kilni_soft_code_create(&host, module, &kilni_soft_lanes_plain,
                                  memory, &code);
  kilni_image_ptx_module_release(module);
  if (kiln_status_is_ok(status)) {
    check_entries(code);
  } else {
    require(code == NULL);
    require(kiln_status_code(status) != KILN_STATUS_INTERNAL);
    require(kiln_status_fix(status) != NULL ||
            kiln_status_code(status) == KILN_STATUS_DEVICE_OUT_OF_MEMORY);
  }
  kiln_status_free(status);
  kilni_soft_code_destroy(code);
  require(kilni_soft_memory_used(memory) == used);
  return 0;
}
