// SPDX-License-Identifier: Apache-2.0
//
// table: libNVVM's library as a provider of its table.
//
// libNVVM has one name for each function and no versions. Its own version is
// not the toolkit's.
#include <string.h>

#include "base/status_make.h"
#include "table/nvvm_table.h"
#include "table/table_inside.h"

static kilni_tool_t nvvm_open_tool_of(const kiln_nvvm_table_t* table) {
  kilni_tool_t tool = {"libNVVM", "12.0", "nvidia-nvvm", NULL, 0, 0};
  if (table == NULL) return tool;
  tool.origin = table->origin;
  tool.major = (int)table->major;
  tool.minor = (int)table->minor;
  return tool;
}

kiln_status_t kilni_table_nvvm_need(const kiln_nvvm_table_t* table,
                                    kilni_nvvm_row_id_t row) {
  if (kilni_table_nvvm_has(table, row)) return kiln_ok();
  const kilni_tool_t tool = nvvm_open_tool_of(table);
  return kilni_table_tool_need(&tool, kilni_table_nvvm_row(row));
}

static kiln_status_t nvvm_open_fill(const kilni_base_dynlib_t* library,
                                    kiln_nvvm_table_t* table) {
  const kilni_table_row_t* rows = kilni_table_nvvm_row((kilni_nvvm_row_id_t)0);
  kilni_table_nvvm_table_init(table, "libnvvm",
                              kilni_base_dynlib_path(library));
  kilni_table_rows_fill(rows, KILNI_NVVM_ROW_COUNT, library, table,
                        table->present);
  if (!kilni_table_nvvm_has(table, KILNI_NVVM_ROW_nvvmVersion)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE, "\"%s\" is not a libNVVM", table->origin),
        "name the file libnvvm.so.4 of a CUDA toolkit, or leave "
        "KILN_LOCATE_LIB_NVVM unset");
  }
  KILNI_RETURN_IF_ERROR(KILNI_NVVM_STATUS(
      table, table->nvvmVersion(&table->major, &table->minor), "nvvmVersion"));
  const kilni_rows_t all = {rows, table->present, KILNI_NVVM_ROW_COUNT};
  const kilni_tool_t tool = nvvm_open_tool_of(table);
  return kilni_table_tool_check(&tool, &all);
}

kiln_status_t kilni_table_nvvm_table_open(const kiln_host_t* host,
                                          const char* library,
                                          kiln_nvvm_table_t* out_table,
                                          kilni_base_dynlib_t** out_library) {
  memset(out_table, 0, sizeof(*out_table));
  *out_library = NULL;
  const kilni_tool_t tool = nvvm_open_tool_of(NULL);
  kilni_base_dynlib_t* opened = NULL;
  KILNI_RETURN_IF_ERROR(kilni_table_tool_open(host, library, &tool, &opened));
  return kilni_table_settle(nvvm_open_fill(opened, out_table), opened,
                            out_table, sizeof(*out_table), out_library);
}
