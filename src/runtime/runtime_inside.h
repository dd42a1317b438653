// SPDX-License-Identifier: Apache-2.0
//
// runtime: what the files of this module share; private to it.
#ifndef KILN_SRC_RUNTIME_RUNTIME_INSIDE_H_
#define KILN_SRC_RUNTIME_RUNTIME_INSIDE_H_

#include <stdatomic.h>

#include "base/host.h"
#include "base/keep.h"
#include "base/thread.h"
#include "device/device.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

// A driver, once it has been started. Under the runtime's lock while it is
// started, const afterwards. one-thread
typedef struct kilni_runtime_provider_t {
  bool started;
  bool is_soft;
  bool traced;
  bool wrapped;
  atomic_bool lost;  // a device of it: the library must stay loaded
  kilni_device_peer_book_t peers;
  kiln_cuda_table_t table;
  kiln_cuda_table_t traced_table;   // what kilni_table_cuda_trace_remove wants
  kiln_cuda_table_t wrapped_table;  // what hooks.unwrap wants
  kilni_base_dynlib_t* library;     // of the driver; NULL for the others
} kilni_runtime_provider_t;

struct kiln_runtime_t {
  kiln_host_t host;
  kiln_host_t soft_host;
  kilni_base_env_t env;
  kilni_runtime_hooks_t hooks;
  atomic_uint references;
  kilni_base_mutex_t lock;  // guards the starting of providers
  bool has_lock;
  bool trace;
  bool page_check;
  uint32_t soft_workers;
  uint32_t soft_devices;  // 0: the variable's, else 1
  char* soft_lanes;
  char* soft_report;  // NULL: the variable's
  char* soft_order;   // NULL: the variable's
  char* cuda_library;
  kiln_print_fn_t print;
  void* print_user;
  kiln_toolkit_t* toolkit;  // the process's context of finds and loads
  kiln_cache_t* cache;
  kilni_runtime_provider_t cuda;
  kilni_runtime_provider_t soft;
};

// How objects opened from the runtime retain it.
kilni_base_keep_t kilni_runtime_keep(kiln_runtime_t* runtime);

// Starts the provider unless it has been; its table is then valid.
kiln_status_t kilni_runtime_start_cuda(kiln_runtime_t* runtime);
kiln_status_t kilni_runtime_start_soft(kiln_runtime_t* runtime);
void kilni_runtime_stop_providers(kiln_runtime_t* runtime);

#endif  // KILN_SRC_RUNTIME_RUNTIME_INSIDE_H_
