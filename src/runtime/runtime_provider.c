// SPDX-License-Identifier: Apache-2.0
//
// runtime: the two drivers: the GPU's and the software device.
//
// Each is started at most once for a runtime, under its lock, and stays until
// the runtime ends.
#include <string.h>

#include "base/log_line.h"
#include "base/status_make.h"
#include "runtime/runtime_inside.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

static void unwrap(kiln_runtime_t* runtime,
                   kilni_runtime_provider_t* provider) {
  if (provider->wrapped) {
    if (runtime->hooks.unwrap != NULL) {
      runtime->hooks.unwrap(runtime->hooks.user, &provider->wrapped_table);
    }
    provider->wrapped = false;
  }
  if (provider->traced) {
    kilni_table_cuda_trace_remove(&provider->traced_table);
    provider->traced = false;
  }
}

static kiln_status_t wrap(kiln_runtime_t* runtime,
                          kilni_runtime_provider_t* provider) {
  if (runtime->trace) {
    KILNI_RETURN_IF_ERROR(kilni_table_cuda_trace_install(
        &provider->table, runtime->host.log, &provider->traced_table));
    provider->traced = true;
    provider->table = provider->traced_table;
  }
  if (runtime->hooks.wrap != NULL) {
    provider->wrapped_table = provider->table;
    KILNI_RETURN_IF_ERROR(
        runtime->hooks.wrap(runtime->hooks.user, &provider->wrapped_table));
    provider->wrapped = true;
    provider->table = provider->wrapped_table;
  }
  return kiln_ok();
}

static kiln_status_t fill_cuda(kiln_runtime_t* runtime) {
  kilni_runtime_provider_t* provider = &runtime->cuda;
  if (runtime->hooks.cuda_table != NULL) {
    provider->table = *runtime->hooks.cuda_table;
    return kiln_ok();
  }
  return kilni_table_cuda_table_open(&runtime->host, runtime->cuda_library,
                                     &provider->table, &provider->library);
}

static kiln_status_t fill_soft(kiln_runtime_t* runtime) {
  kilni_soft_options_t options = {0};
  options.struct_size = sizeof(options);
  options.worker_count = runtime->soft_workers;
  options.seed = runtime->host.seed;
  options.device_count = runtime->soft_devices;
  options.lanes = runtime->soft_lanes;
  options.report = runtime->soft_report;
  options.order = runtime->soft_order;
  options.page_check = runtime->page_check ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  options.print = runtime->print;
  options.print_user = runtime->print_user;
  return kilni_soft_start(&runtime->soft_host, &options, &runtime->soft.table);
}

static void provider_empty(kilni_runtime_provider_t* provider) {
  bool lost = atomic_load(&provider->lost);
  // A lost device's driver may still have threads inside the library.
  if (provider->library != NULL && !lost) {
    kilni_base_dynlib_close(provider->library);
  }
  provider->library = NULL;
  memset(&provider->table, 0, sizeof(provider->table));
}

static kiln_status_t start_cuda(kiln_runtime_t* runtime) {
  KILNI_RETURN_IF_ERROR(fill_cuda(runtime));
  kiln_status_t status = wrap(runtime, &runtime->cuda);
  if (!kiln_status_is_ok(status)) {
    unwrap(runtime, &runtime->cuda);
    provider_empty(&runtime->cuda);
    return status;
  }
  runtime->cuda.started = true;
  KILNI_LOG(&runtime->host.log, INFO, "took the driver \"%s\"",
            runtime->cuda.table.origin ? runtime->cuda.table.origin : "");
  return kiln_ok();
}

static kiln_status_t start_soft(kiln_runtime_t* runtime) {
  KILNI_RETURN_IF_ERROR(fill_soft(runtime));
  kiln_status_t status = wrap(runtime, &runtime->soft);
  if (!kiln_status_is_ok(status)) {
    unwrap(runtime, &runtime->soft);
    kilni_soft_stop();
    provider_empty(&runtime->soft);
    return status;
  }
  runtime->soft.started = true;
  return kiln_ok();
}

static kiln_status_t start_once(kiln_runtime_t* runtime,
                                kilni_runtime_provider_t* provider,
                                kiln_status_t (*start)(kiln_runtime_t*)) {
  kilni_base_mutex_lock(&runtime->lock);
  kiln_status_t status = kiln_ok();
  if (!provider->peers.is_there) {
    status =
        kilni_device_peer_book_init(&provider->peers, runtime->host.allocator);
  }
  if (kiln_status_is_ok(status) && !provider->started) status = start(runtime);
  kilni_base_mutex_unlock(&runtime->lock);
  return status;
}

kiln_status_t kilni_runtime_start_cuda(kiln_runtime_t* runtime) {
  return start_once(runtime, &runtime->cuda, start_cuda);
}

kiln_status_t kilni_runtime_start_soft(kiln_runtime_t* runtime) {
  return start_once(runtime, &runtime->soft, start_soft);
}

void kilni_runtime_stop_providers(kiln_runtime_t* runtime) {
  kilni_device_peer_book_deinit(&runtime->cuda.peers);
  kilni_device_peer_book_deinit(&runtime->soft.peers);
  if (runtime->cuda.started) {
    unwrap(runtime, &runtime->cuda);
    provider_empty(&runtime->cuda);
  }
  if (runtime->soft.started) {
    unwrap(runtime, &runtime->soft);
    kilni_soft_stop();
    provider_empty(&runtime->soft);
  }
}
