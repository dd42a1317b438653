// SPDX-License-Identifier: Apache-2.0
//
// table: NVTX's entry points.
#ifndef KILN_SRC_TABLE_NVTX_TABLE_H_
#define KILN_SRC_TABLE_NVTX_TABLE_H_

#include "base/host.h"
#include "table/nvtx_abi.h"
#include "table/table.h"

// Where ranges are reported to a profiler. thread-safe
//
// Whole or not there: no entry is NULL.
struct kiln_nvtx_table_t {
  kiln_nvtx_domain_t domain;  // Kiln's own
#define KILNI_NVTX_ROW(name, number, result, params) result(*name) params;
#include "table/nvtx_rows.inc"
#undef KILNI_NVTX_ROW
};

// The process's table: of the library that a profiler names in
// NVTX_INJECTION64_PATH, or else, if `wanted`, of libnvToolsExt.so.1. NULL
// where there is none. Opened once in a process, and never closed.
const kiln_nvtx_table_t* kilni_table_nvtx_table_open(const kiln_host_t* host,
                                                     bool wanted);

#endif  // KILN_SRC_TABLE_NVTX_TABLE_H_
