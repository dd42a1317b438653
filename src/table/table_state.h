// SPDX-License-Identifier: Apache-2.0
//
// table: the module's one mutable global (src/GLOBALS): a thunk with the
// driver's own signature carries no user pointer.
#ifndef KILN_SRC_TABLE_TABLE_STATE_H_
#define KILN_SRC_TABLE_TABLE_STATE_H_

#include <stdatomic.h>

#include "table/cuda_table.h"
#include "table/nvjitlink_table.h"
#include "table/nvml_table.h"
#include "table/nvrtc_table.h"
#include "table/nvtx_table.h"
#include "table/nvvm_table.h"
#include "table/table_wrap.h"

// A live handle of the null provider. thread-compatible
typedef struct kilni_null_handle_t {
  uint64_t value;
  uint64_t bytes;  // of memory
  uint32_t kind;   // KILNI_HANDLE_*
  uint32_t reserved;
} kilni_null_handle_t;

enum { KILNI_NULL_STACK = 64, KILNI_NULL_CAPTURES = 64 };

// A stream that is captured. thread-compatible
typedef struct kilni_null_capture_t {
  kiln_cu_stream_t stream;
  uint64_t graph;  // 0: none
  uint64_t id;
  bool is_made;  // the graph, by the capture
} kilni_null_capture_t;

// References to a user object. thread-compatible
typedef struct kilni_null_object_t {
  uint64_t object;
  uint64_t graph;  // that has them; 0: the caller
  unsigned int count;
  kiln_cu_host_fn_t destroy;
  void* user;
} kilni_null_object_t;

// What the null provider keeps, under `busy`. thread-safe
typedef struct kilni_null_state_t {
  atomic_flag busy;
  kilni_null_handle_t* handles;
  size_t count;
  size_t capacity;
  uint64_t made;  // ever; the next handle comes from it
  uint64_t next_address;
  uint64_t bad_destroys;
  kiln_cu_context_t contexts[KILNI_NULL_STACK];  // the top is current
  uint32_t depth;
  kiln_cu_capture_mode_t capture_mode;
  kilni_null_capture_t captures[KILNI_NULL_CAPTURES];
  uint64_t captures_begun;
  kilni_null_object_t* objects;
  size_t objects_count;
  size_t objects_capacity;
} kilni_null_state_t;

// NVTX, once it has been opened. thread-safe by `phase`
typedef struct kilni_nvtx_state_t {
  atomic_uint phase;
  kiln_nvtx_entry_t entries[KILN_NVTX_CORE2_ENTRIES];
  kiln_nvtx_entry_t* places[KILN_NVTX_CORE2_ENTRIES];  // of those
  kiln_nvtx_table_t table;
} kilni_nvtx_state_t;

KILNI_WRAPPED(cuda);
KILNI_WRAPPED(nvrtc);
KILNI_WRAPPED(nvvm);
KILNI_WRAPPED(nvjitlink);
KILNI_WRAPPED(nvml);

// All of it. thread-safe
typedef struct kilni_table_state_t {
  kilni_table_cuda_wrapped_t cuda;
  kilni_table_nvrtc_wrapped_t nvrtc;
  kilni_table_nvvm_wrapped_t nvvm;
  kilni_table_nvjitlink_wrapped_t nvjitlink;
  kilni_table_nvml_wrapped_t nvml;
  kilni_null_state_t null;
  kilni_nvtx_state_t nvtx;
} kilni_table_state_t;

extern kilni_table_state_t kilni_table_state;

#endif  // KILN_SRC_TABLE_TABLE_STATE_H_
