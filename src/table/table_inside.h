// SPDX-License-Identifier: Apache-2.0
//
// table: what the files of this module share, but for its state
// (table_state.h).
#ifndef KILN_SRC_TABLE_TABLE_INSIDE_H_
#define KILN_SRC_TABLE_TABLE_INSIDE_H_

#include "base/dynlib.h"
#include "base/host.h"
#include "table/table.h"

// INCOMPATIBLE naming every REQUIRED row that an NVML lacks.
kiln_status_t kilni_table_nvml_table_check(const kiln_nvml_table_t* table);

// Takes every row's entry point out of a library, as far as that has it.
void kilni_table_rows_fill(const kilni_table_row_t* rows, uint32_t count,
                           const kilni_base_dynlib_t* library, void* table,
                           uint64_t* present);

// What an open comes to, by the status that filling the table gave: the library
// is handed over, or closed again and the table cleared.
kiln_status_t kilni_table_settle(kiln_status_t filled,
                                 kilni_base_dynlib_t* opened, void* table,
                                 size_t bytes,
                                 kilni_base_dynlib_t** out_library);

// ---- Compilers and linkers of the toolkit ----

// The rows of one table, and which of them are there. thread-compatible
typedef struct kilni_rows_t {
  const kilni_table_row_t* rows;
  const uint64_t* present;
  uint32_t count;
} kilni_rows_t;

// One such library, for messages. thread-compatible
typedef struct kilni_tool_t {
  const char* title;    // "NVRTC"
  const char* least;    // the oldest CUDA that is taken: "12.0"
  const char* package;  // of pip: "nvidia-cuda-nvrtc"
  const char* origin;   // the file
  int major;            // its own version
  int minor;
} kilni_tool_t;

// Opens the file that the caller has found. NOT_FOUND with a Fix.
kiln_status_t kilni_table_tool_open(const kiln_host_t* host,
                                    const char* library,
                                    const kilni_tool_t* tool,
                                    kilni_base_dynlib_t** out_library);
// INCOMPATIBLE naming every REQUIRED row that it lacks.
kiln_status_t kilni_table_tool_check(const kilni_tool_t* tool,
                                     const kilni_rows_t* rows);
// UNSUPPORTED: it lacks the row of a feature.
kiln_status_t kilni_table_tool_need(const kilni_tool_t* tool,
                                    const kilni_table_row_t* row);

// ---- Null providers ----

// cuda_null.c: the handles of the null providers of all libraries. Adds a live
// one; `*inout_value` 0 asks for a new number. False without memory.
bool kilni_table_null_create(uint32_t kind, uint64_t bytes,
                             uint64_t* inout_value);
// Removes a live one; `*out_bytes` is the value given when it was added. False,
// and counted, if it is not live.
bool kilni_table_null_take(uint32_t kind, uint64_t value, uint64_t* out_bytes);

#endif  // KILN_SRC_TABLE_TABLE_INSIDE_H_
