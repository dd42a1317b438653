// SPDX-License-Identifier: Apache-2.0
//
// table: libNVVM's library as a provider of its table.
//
// libNVVM has one name for each function and no versions. Its own version is
// not the toolkit's.
#include <string.h>

#include "table/table.h"
#include "table/table_inside.h"

// A row's place in the table. thread-safe
typedef struct place_t {
  size_t offset;
} place_t;

static const place_t places[] = {
#define KILNI_NVVM_ROW(name, ...) {offsetof(kiln_nvvm_table_t, name)},
#include "table/nvvm_rows.inc"
#undef KILNI_NVVM_ROW
};

static kiln_status_t fill(const kilni_dynlib_t* library,
                          kiln_nvvm_table_t* table) {
  kilni_nvvm_table_init(table, "libnvvm", kilni_dynlib_path(library));
  for (unsigned row = 0; row < KILNI_NVVM_ROW_COUNT; ++row) {
    const kilni_nvvm_row_id_t id = (kilni_nvvm_row_id_t)row;
    void* address = kilni_dynlib_symbol(library, kilni_nvvm_row(id)->symbol);
    if (address == NULL) continue;
    memcpy((char*)table + places[row].offset, &address, sizeof(address));
    kilni_nvvm_mark(table, id, true);
  }
  if (!kilni_nvvm_has(table, KILNI_NVVM_ROW_nvvmVersion)) {
    return kilni_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE, "\"%s\" is not a libNVVM", table->origin),
        "name the file libnvvm.so.4 of a CUDA toolkit, e.g. from `pip install "
        "nvidia-nvvm`");
  }
  KILNI_RETURN_IF_ERROR(KILNI_NVVM_STATUS(
      table, table->nvvmVersion(&table->major, &table->minor), "nvvmVersion"));
  return kilni_nvvm_table_check(table);
}

kiln_status_t kilni_nvvm_table_open(const kiln_host_t* host,
                                    const char* library,
                                    kiln_nvvm_table_t* out_table,
                                    kilni_dynlib_t** out_library) {
  memset(out_table, 0, sizeof(*out_table));
  *out_library = NULL;
  kilni_dynlib_t* opened = NULL;
  kiln_status_t status = kilni_dynlib_open(host->allocator, library, &opened);
  if (!kiln_status_is_ok(status)) {
    return kilni_status_with_fix(
        status,
        "name an existing libNVVM, or install one, e.g. `pip install "
        "nvidia-nvvm`");
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
