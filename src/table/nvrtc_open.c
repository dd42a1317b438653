// SPDX-License-Identifier: Apache-2.0
//
// table: NVRTC's library as a provider of its table.
//
// NVRTC has one name for each function and no versions. Which file is taken is
// decided elsewhere.
#include <string.h>

#include "table/table.h"
#include "table/table_inside.h"

// A row's place in the table. thread-safe
typedef struct place_t {
  size_t offset;
} place_t;

static const place_t places[] = {
#define KILNI_NVRTC_ROW(name, ...) {offsetof(kiln_nvrtc_table_t, name)},
#include "table/nvrtc_rows.inc"
#undef KILNI_NVRTC_ROW
};

static kiln_status_t fill(const kilni_dynlib_t* library,
                          kiln_nvrtc_table_t* table) {
  kilni_nvrtc_table_init(table, "libnvrtc", kilni_dynlib_path(library));
  for (unsigned row = 0; row < KILNI_NVRTC_ROW_COUNT; ++row) {
    const kilni_nvrtc_row_id_t id = (kilni_nvrtc_row_id_t)row;
    void* address = kilni_dynlib_symbol(library, kilni_nvrtc_row(id)->symbol);
    if (address == NULL) continue;
    memcpy((char*)table + places[row].offset, &address, sizeof(address));
    kilni_nvrtc_mark(table, id, true);
  }
  if (!kilni_nvrtc_has(table, KILNI_NVRTC_ROW_nvrtcVersion)) {
    return kilni_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE, "\"%s\" is not an NVRTC library",
                   table->origin),
        "name the file libnvrtc.so.12 or libnvrtc.so.13 of a CUDA toolkit, or "
        "leave KILN_LOCATE_LIB_NVRTC unset");
  }
  KILNI_RETURN_IF_ERROR(KILNI_NVRTC_STATUS(
      table, table->nvrtcVersion(&table->major, &table->minor),
      "nvrtcVersion"));
  return kilni_nvrtc_table_check(table);
}

kiln_status_t kilni_nvrtc_table_open(const kiln_host_t* host,
                                     const char* library,
                                     kiln_nvrtc_table_t* out_table,
                                     kilni_dynlib_t** out_library) {
  memset(out_table, 0, sizeof(*out_table));
  *out_library = NULL;
  kilni_dynlib_t* opened = NULL;
  kiln_status_t status = kilni_dynlib_open(host->allocator, library, &opened);
  if (!kiln_status_is_ok(status)) {
    return kilni_status_with_fix(
        status,
        "name an existing NVRTC library, or install one, e.g. `pip install "
        "nvidia-cuda-nvrtc`");
  }
  status = fill(opened, out_table);
  if (!kiln_status_is_ok(status)) {
    memset(out_table, 0, sizeof(*out_table));
    kilni_dynlib_close(opened);
    return status;
  }
  *out_library = opened;
  return NULL;
}
