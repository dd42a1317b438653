// SPDX-License-Identifier: Apache-2.0
//
// table: NVTX: a profiler's library, or the toolkit's, as provider of ranges.
//
// A profiler writes its entry points to a place that we give it, through
// functions without a user pointer; so the table is this module's one global.
// It is filled once in a process, and stays.
#include <string.h>

#include "base/dynlib.h"
#include "base/log_line.h"
#include "base/thread.h"
#include "table/nvtx_table.h"
#include "table/table_state.h"

enum { NOTHING, OPENING, OPEN, ABSENT };
#define WAIT_NS    100000u
#define PATIENCE   10000000000u
#define NAME_EXACT "InitializeInjectionNvtx2"

static kilni_nvtx_state_t* state(void) {
  return &kilni_table_state.nvtx;
}

// ---- What a profiler asks ----

static int entries_of(int module, kiln_nvtx_entries_t* out_entries,
                      unsigned int* out_count) {
  if (module != KILN_NVTX_MODULE_CORE2) return 0;
  *out_entries = state()->places;
  *out_count = KILN_NVTX_CORE2_ENTRIES;
  return 1;
}

static void hear_version(uint32_t version) {
  (void)version;
}

static const void* give_table(uint32_t number) {
  static const kiln_nvtx_callbacks_t kCallbacks = {
      sizeof(kiln_nvtx_callbacks_t), entries_of};
  static const kiln_nvtx_version_t kVersion = {
      sizeof(kiln_nvtx_version_t), KILN_NVTX_VERSION, 0, hear_version};
  if (number == KILN_NVTX_TABLE_CALLBACKS) return &kCallbacks;
  return number == KILN_NVTX_TABLE_VERSION ? &kVersion : NULL;
}

// ---- Filling the table ----

static void nvtx_open_take(kiln_nvtx_table_t* table,
                           const kilni_base_dynlib_t* library, bool injected) {
  void* address = NULL;
#define KILNI_NVTX_ROW(name, number, result, params)                  \
  if (injected) {                                                     \
    memcpy(&table->name, &state()->entries[number], sizeof(address)); \
  } else {                                                            \
    address = kilni_base_dynlib_symbol(library, #name);               \
    memcpy(&table->name, &address, sizeof(address));                  \
  }
#include "table/nvtx_rows.inc"
#undef KILNI_NVTX_ROW
}

static bool nvtx_open_is_whole(const kiln_nvtx_table_t* table) {
#define KILNI_NVTX_ROW(name, number, result, params) \
  if (table->name == NULL) return false;
#include "table/nvtx_rows.inc"
#undef KILNI_NVTX_ROW
  return true;
}

static bool open_as(const kiln_host_t* host, const char* name,
                    bool is_injected) {
  kilni_base_dynlib_t* library = NULL;
  kiln_nvtx_table_t* table = &state()->table;
  kiln_status_t status =
      kilni_base_dynlib_open(host->allocator, name, &library);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return false;
  }
  if (is_injected) {
    kiln_nvtx_inject_t inject = NULL;
    void* address = kilni_base_dynlib_symbol(library, NAME_EXACT);
    memcpy(&inject, &address, sizeof(inject));
    if (inject != NULL && inject(give_table) != 0) {
      nvtx_open_take(table, library, true);
    }
  } else {
    nvtx_open_take(table, library, false);
  }
  // Its code stays mapped.
  kilni_base_dynlib_close(library);
  if (!nvtx_open_is_whole(table)) return false;
  table->domain = table->nvtxDomainCreateA("kiln");
  return true;
}

static bool open_any(const kiln_host_t* host, bool wanted) {
  const char* injected =
      kilni_base_env_text(host->env, KILNI_ENV_NVTX_INJECTION64_PATH);
  for (uint32_t i = 0; i < KILN_NVTX_CORE2_ENTRIES; i++) {
    state()->places[i] = &state()->entries[i];
  }
  if (injected != NULL && injected[0] != 0) {
    if (open_as(host, injected, true)) return true;
    KILNI_LOG(&host->log, WARNING,
              "no ranges for a profiler: \"%s\" of NVTX_INJECTION64_PATH "
              "cannot be opened, or accepts none",
              injected);
  }
  return wanted && open_as(host, "libnvToolsExt.so.1", false);
}

// Another thread is opening it: that ends soon.
static void wait_for_other(void) {
  kilni_base_mutex_t mutex;
  kilni_base_cond_t never;
  uint64_t began = kilni_base_time_ns();
  if (!kiln_status_is_ok(kilni_base_mutex_init(&mutex))) return;
  if (kiln_status_is_ok(kilni_base_cond_init(&never))) {
    while (atomic_load(&state()->phase) == OPENING &&
           kilni_base_time_ns() - began < PATIENCE) {
      kilni_base_mutex_lock(&mutex);
      uint64_t until = kilni_base_time_ns() + WAIT_NS;
      while (kilni_base_cond_wait_until(&never, &mutex, until)) {
      }
      kilni_base_mutex_unlock(&mutex);
    }
    kilni_base_cond_deinit(&never);
  }
  kilni_base_mutex_deinit(&mutex);
}

const kiln_nvtx_table_t* kilni_table_nvtx_table_open(const kiln_host_t* host,
                                                     bool wanted) {
  const char* injected =
      kilni_base_env_text(host->env, KILNI_ENV_NVTX_INJECTION64_PATH);
  if (!wanted && (injected == NULL || injected[0] == 0)) return NULL;
  unsigned int phase = NOTHING;
  if (atomic_compare_exchange_strong(&state()->phase, &phase, OPENING)) {
    phase = open_any(host, wanted) ? OPEN : ABSENT;
    // Without a toolkit's library it is not known yet: query again then.
    atomic_store(&state()->phase, phase == ABSENT ? NOTHING : phase);
  } else if (phase == OPENING) {
    wait_for_other();
    phase = atomic_load(&state()->phase);
  }
  return phase == OPEN ? &state()->table : NULL;
}
