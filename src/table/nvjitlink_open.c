// SPDX-License-Identifier: Apache-2.0
//
// table: nvJitLink's library as a provider of its table.
//
// nvJitLink has names with a version in them, which its header chooses, and
// from 12.3 on the same without one, which are taken here.
#include <string.h>

#include "base/status_make.h"
#include "table/nvjitlink_table.h"
#include "table/table_inside.h"

static kilni_tool_t nvjitlink_open_tool_of(
    const kiln_nvjitlink_table_t* table) {
  kilni_tool_t tool = {"nvJitLink", "12.3", "nvidia-nvjitlink", NULL, 0, 0};
  if (table == NULL) return tool;
  tool.origin = table->origin;
  tool.major = (int)table->major;
  tool.minor = (int)table->minor;
  return tool;
}

kiln_status_t kilni_table_nvjitlink_need(const kiln_nvjitlink_table_t* table,
                                         kilni_nvjitlink_row_id_t row) {
  if (kilni_table_nvjitlink_has(table, row)) return kiln_ok();
  const kilni_tool_t tool = nvjitlink_open_tool_of(table);
  return kilni_table_tool_need(&tool, kilni_table_nvjitlink_row(row));
}

static kiln_status_t nvjitlink_open_fill(const kilni_base_dynlib_t* library,
                                         kiln_nvjitlink_table_t* table) {
  const kilni_table_row_t* rows =
      kilni_table_nvjitlink_row((kilni_nvjitlink_row_id_t)0);
  kilni_table_nvjitlink_table_init(table, "libnvJitLink",
                                   kilni_base_dynlib_path(library));
  kilni_table_rows_fill(rows, KILNI_NVJITLINK_ROW_COUNT, library, table,
                        table->present);
  if (!kilni_table_nvjitlink_has(table, KILNI_NVJITLINK_ROW_nvJitLinkVersion)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE,
                   "\"%s\" is not an nvJitLink of CUDA 12.3 or newer",
                   table->origin),
        "name the file libnvJitLink.so.12 or libnvJitLink.so.13 of CUDA 12.3 "
        "or newer, or leave KILN_LOCATE_LIB_NVJITLINK unset");
  }
  KILNI_RETURN_IF_ERROR(KILNI_NVJITLINK_STATUS(
      table, table->nvJitLinkVersion(&table->major, &table->minor),
      "nvJitLinkVersion"));
  const kilni_rows_t all = {rows, table->present, KILNI_NVJITLINK_ROW_COUNT};
  const kilni_tool_t tool = nvjitlink_open_tool_of(table);
  return kilni_table_tool_check(&tool, &all);
}

kiln_status_t kilni_table_nvjitlink_table_open(
    const kiln_host_t* host, const char* library,
    kiln_nvjitlink_table_t* out_table, kilni_base_dynlib_t** out_library) {
  memset(out_table, 0, sizeof(*out_table));
  *out_library = NULL;
  const kilni_tool_t tool = nvjitlink_open_tool_of(NULL);
  kilni_base_dynlib_t* opened = NULL;
  KILNI_RETURN_IF_ERROR(kilni_table_tool_open(host, library, &tool, &opened));
  return kilni_table_settle(nvjitlink_open_fill(opened, out_table), opened,
                            out_table, sizeof(*out_table), out_library);
}
