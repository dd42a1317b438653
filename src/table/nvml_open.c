// SPDX-License-Identifier: Apache-2.0
//
// table: NVML's library as a provider of its table, and the one question that
// is asked of it where nothing else is known.
//
// The library is the driver's, so the system loader finds it. It counts its
// users: a host program that uses it too is not disturbed.
#include <string.h>

#include "base/debug_assert.h"
#include "base/status_make.h"
#include "table/nvml_table.h"
#include "table/table_inside.h"

static const char kDefaultName[] = "libnvidia-ml.so.1";

static kiln_status_t nvml_open_fill(const kilni_base_dynlib_t* library,
                                    kiln_nvml_table_t* table) {
  kilni_table_nvml_table_init(table, "libnvidia-ml",
                              kilni_base_dynlib_path(library));
  kilni_table_rows_fill(kilni_table_nvml_row((kilni_nvml_row_id_t)0),
                        KILNI_NVML_ROW_COUNT, library, table, table->present);
  return kilni_table_nvml_table_check(table);
}

kiln_status_t kilni_table_nvml_table_open(const kiln_host_t* host,
                                          const char* library,
                                          kiln_nvml_table_t* out_table,
                                          kilni_base_dynlib_t** out_library) {
  memset(out_table, 0, sizeof(*out_table));
  *out_library = NULL;
  kilni_base_dynlib_t* opened = NULL;
  kiln_status_t status = kilni_base_dynlib_open(
      host->allocator, library != NULL ? library : kDefaultName, &opened);
  if (!kiln_status_is_ok(status)) {
    return kilni_base_status_with_fix(
        status,
        "install the NVIDIA driver, which NVML is a part of; in a container, "
        "let it have the driver's utilities "
        "(NVIDIA_DRIVER_CAPABILITIES=compute,utility)");
  }
  return kilni_table_settle(nvml_open_fill(opened, out_table), opened,
                            out_table, sizeof(*out_table), out_library);
}

// ---- The release ----

// "580.65.06": two or three numbers.
static bool nvml_open_is_release(const char* text) {
  size_t dots = 0;
  bool digit = false;
  for (const char* at = text; *at != 0; at++) {
    if (*at == '.') {
      if (!digit) return false;
      dots++;
      digit = false;
    } else if (*at >= '0' && *at <= '9') {
      digit = true;
    } else {
      return false;
    }
  }
  return digit && (dots == 1 || dots == 2);
}

bool kilni_table_nvml_release_read(const kiln_nvml_table_t* table,
                                   size_t capacity, char* out_text) {
  KILNI_ASSERT(capacity > 0);
  char text[KILN_NVML_VERSION_BYTES] = "";
  out_text[0] = 0;
  if (table->nvmlInit() != KILN_NVML_SUCCESS) return false;
  kiln_nvml_result_t result =
      table->nvmlSystemGetDriverVersion(text, (unsigned int)sizeof(text));
  (void)table->nvmlShutdown();
  text[sizeof(text) - 1] = 0;
  if (result != KILN_NVML_SUCCESS || !nvml_open_is_release(text) ||
      strlen(text) >= capacity) {
    return false;
  }
  memcpy(out_text, text, strlen(text) + 1);
  return true;
}

kiln_status_t kilni_table_nvml_release_ask(const kiln_host_t* host,
                                           const char* library, size_t capacity,
                                           char* out_text) {
  out_text[0] = 0;
  kiln_nvml_table_t table;
  kilni_base_dynlib_t* opened = NULL;
  kiln_status_t status =
      kilni_table_nvml_table_open(host, library, &table, &opened);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  if (opened == NULL) return kiln_ok();
  (void)kilni_table_nvml_release_read(&table, capacity, out_text);
  kilni_base_dynlib_close(opened);
  return kiln_ok();
}
