// SPDX-License-Identifier: Apache-2.0
//
// runtime: the public header for tests: a runtime over other drivers than the
// machine's.
#ifndef KILN_SRC_RUNTIME_RUNTIME_H_
#define KILN_SRC_RUNTIME_RUNTIME_H_

#include "kiln/runtime.h"
#include "table/table.h"

// What is put in the place of the machine's. Zero in any field changes nothing.
// Everything must outlive the runtime. thread-compatible
typedef struct kilni_runtime_hooks_t {
  // Taken for "cuda:N" in place of the driver library.
  const kiln_cuda_table_t* cuda_table;
  // Called when a provider has filled its table, to wrap it, and when the
  // provider is taken down.
  kiln_status_t (*wrap)(void* user, kiln_cuda_table_t* inout_table);
  void (*unwrap)(void* user, const kiln_cuda_table_t* table);
  void* user;
  // The software device's own memory, as a driver's is its own: so that a test
  // that counts allocations does not count those.
  const kiln_allocator_t* soft_allocator;
  // Taken for a watch in place of NVML's library.
  const kiln_nvml_table_t* nvml_table;
} kilni_runtime_hooks_t;

kiln_status_t kilni_runtime_create_with(const kiln_runtime_options_t* options,
                                        const kilni_runtime_hooks_t* hooks,
                                        kiln_runtime_t** out_runtime);

#endif  // KILN_SRC_RUNTIME_RUNTIME_H_
