// SPDX-License-Identifier: Apache-2.0
//
// table: nvJitLink's library as a provider of its table.
//
// nvJitLink has names with a version in them, which its header chooses, and
// from 12.3 on the same without one, which are taken here.
#include <string.h>

#include "table/table.h"
#include "table/table_inside.h"

// A row's place in the table. thread-safe
typedef struct place_t {
  size_t offset;
} place_t;

static const place_t places[] = {
#define KILNI_NVJITLINK_ROW(name, ...) {offsetof(kiln_nvjitlink_table_t, name)},
#include "table/nvjitlink_rows.inc"
#undef KILNI_NVJITLINK_ROW
};

static kiln_status_t fill(const kilni_dynlib_t* library,
                          kiln_nvjitlink_table_t* table) {
  kilni_nvjitlink_table_init(table, "libnvJitLink", kilni_dynlib_path(library));
  for (unsigned row = 0; row < KILNI_NVJITLINK_ROW_COUNT; ++row) {
    const kilni_nvjitlink_row_id_t id = (kilni_nvjitlink_row_id_t)row;
    void* address =
        kilni_dynlib_symbol(library, kilni_nvjitlink_row(id)->symbol);
    if (address == NULL) continue;
    memcpy((char*)table + places[row].offset, &address, sizeof(address));
    kilni_nvjitlink_mark(table, id, true);
  }
  if (!kilni_nvjitlink_has(table, KILNI_NVJITLINK_ROW_nvJitLinkVersion)) {
    return kilni_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE, "\"%s\" is no nvJitLink of CUDA 12.3 or newer",
                   table->origin),
        "name the file libnvJitLink.so.12 or libnvJitLink.so.13 of CUDA 12.3 "
        "or newer, e.g. from `pip install nvidia-nvjitlink`");
  }
  KILNI_RETURN_IF_ERROR(KILNI_NVJITLINK_STATUS(
      table, table->nvJitLinkVersion(&table->major, &table->minor),
      "nvJitLinkVersion"));
  return kilni_nvjitlink_table_check(table);
}

kiln_status_t kilni_nvjitlink_table_open(const kiln_host_t* host,
                                         const char* library,
                                         kiln_nvjitlink_table_t* out_table,
                                         kilni_dynlib_t** out_library) {
  memset(out_table, 0, sizeof(*out_table));
  *out_library = NULL;
  kilni_dynlib_t* opened = NULL;
  kiln_status_t status = kilni_dynlib_open(host->allocator, library, &opened);
  if (!kiln_status_is_ok(status)) {
    return kilni_status_with_fix(
        status,
        "name an existing nvJitLink library, or install one, e.g. `pip install "
        "nvidia-nvjitlink`");
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
