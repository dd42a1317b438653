// SPDX-License-Identifier: Apache-2.0
//
// table: NVRTC's library as a provider of its table.
//
// NVRTC has one name for each function and no versions. Which file is taken is
// decided elsewhere.
#include <string.h>

#include "base/status_make.h"
#include "table/nvrtc_table.h"
#include "table/table_inside.h"

static kilni_tool_t nvrtc_open_tool_of(const kiln_nvrtc_table_t* table) {
  kilni_tool_t tool = {"NVRTC", "12.0", "nvidia-cuda-nvrtc", NULL, 0, 0};
  if (table == NULL) return tool;
  tool.origin = table->origin;
  tool.major = (int)table->major;
  tool.minor = (int)table->minor;
  return tool;
}

kiln_status_t kilni_table_nvrtc_need(const kiln_nvrtc_table_t* table,
                                     kilni_nvrtc_row_id_t row) {
  if (kilni_table_nvrtc_has(table, row)) return kiln_ok();
  const kilni_tool_t tool = nvrtc_open_tool_of(table);
  return kilni_table_tool_need(&tool, kilni_table_nvrtc_row(row));
}

static kiln_status_t nvrtc_open_fill(const kilni_base_dynlib_t* library,
                                     kiln_nvrtc_table_t* table) {
  const kilni_table_row_t* rows =
      kilni_table_nvrtc_row((kilni_nvrtc_row_id_t)0);
  kilni_table_nvrtc_table_init(table, "libnvrtc",
                               kilni_base_dynlib_path(library));
  kilni_table_rows_fill(rows, KILNI_NVRTC_ROW_COUNT, library, table,
                        table->present);
  if (!kilni_table_nvrtc_has(table, KILNI_NVRTC_ROW_nvrtcVersion)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE, "\"%s\" is not an NVRTC library",
                   table->origin),
        "name the file libnvrtc.so.12 or libnvrtc.so.13 of a CUDA toolkit, or "
        "leave KILN_LOCATE_LIB_NVRTC unset");
  }
  KILNI_RETURN_IF_ERROR(KILNI_NVRTC_STATUS(
      table, table->nvrtcVersion(&table->major, &table->minor),
      "nvrtcVersion"));
  const kilni_rows_t all = {rows, table->present, KILNI_NVRTC_ROW_COUNT};
  const kilni_tool_t tool = nvrtc_open_tool_of(table);
  return kilni_table_tool_check(&tool, &all);
}

kiln_status_t kilni_table_nvrtc_table_open(const kiln_host_t* host,
                                           const char* library,
                                           kiln_nvrtc_table_t* out_table,
                                           kilni_base_dynlib_t** out_library) {
  memset(out_table, 0, sizeof(*out_table));
  *out_library = NULL;
  const kilni_tool_t tool = nvrtc_open_tool_of(NULL);
  kilni_base_dynlib_t* opened = NULL;
  KILNI_RETURN_IF_ERROR(kilni_table_tool_open(host, library, &tool, &opened));
  return kilni_table_settle(nvrtc_open_fill(opened, out_table), opened,
                            out_table, sizeof(*out_table), out_library);
}
