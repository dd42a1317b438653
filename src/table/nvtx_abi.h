// SPDX-License-Identifier: Apache-2.0
//
// table: our own declarations of NVTX 3, and of the interface by which a
// profiler provides its entry points.
//
// A profiler names a library in NVTX_INJECTION64_PATH. That has a function
// InitializeInjectionNvtx2, which is given a function that returns tables by
// number; one of those gives the place of a module's entry points, and the
// profiler writes its own there.
#ifndef KILN_SRC_TABLE_NVTX_ABI_H_
#define KILN_SRC_TABLE_NVTX_ABI_H_

#include <stddef.h>
#include <stdint.h>

typedef struct kiln_nvtx_domain_s* kiln_nvtx_domain_t;

enum {
  KILN_NVTX_VERSION = 3,
  KILN_NVTX_MESSAGE_ASCII = 1,
  KILN_NVTX_TABLE_CALLBACKS = 1,
  KILN_NVTX_TABLE_VERSION = 3,
  KILN_NVTX_MODULE_CORE2 = 5,
  KILN_NVTX_CORE2_ENTRIES = 16,  // numbers from 0 on; 0 is none
};

// The name of a range, and fields that Kiln does not use. thread-compatible
typedef struct kiln_nvtx_attributes_t {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  int32_t message_type;
  int32_t padding;
  const char* message;
} kiln_nvtx_attributes_t;

_Static_assert(sizeof(kiln_nvtx_attributes_t) == 48 &&
                   offsetof(kiln_nvtx_attributes_t, message) == 40,
               "as NVTX has it");

typedef void (*kiln_nvtx_entry_t)(void);
typedef kiln_nvtx_entry_t** kiln_nvtx_entries_t;

// Table number 1. thread-safe
typedef struct kiln_nvtx_callbacks_t {
  size_t size;
  int (*entries_of)(int module, kiln_nvtx_entries_t* out_entries,
                    unsigned int* out_count);
} kiln_nvtx_callbacks_t;

// Table number 3. thread-safe
typedef struct kiln_nvtx_version_t {
  size_t size;
  uint32_t version;
  uint32_t reserved;
  void (*tell)(uint32_t version_of_profiler);
} kiln_nvtx_version_t;

typedef const void* (*kiln_nvtx_give_table_t)(uint32_t number);
typedef int (*kiln_nvtx_inject_t)(kiln_nvtx_give_table_t give);

#endif  // KILN_SRC_TABLE_NVTX_ABI_H_
