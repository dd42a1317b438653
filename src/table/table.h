// SPDX-License-Identifier: Apache-2.0
//
// table: the driver tables. The CUDA driver, NVRTC, libNVVM, nvJitLink and NVML
// as structs of entry points.
//
// Everything above this module is written once against kiln_cuda_table_t and
// calls `table->cuMemAlloc(...)`. The provider of the table is the only
// difference between a GPU and no GPU: libcuda (here), the software device
// (soft/), the null provider (here), and the wrappers trace and fault around
// any of them. This module opens the library that it is given and never
// searches for one.
//
// The rows and their columns are the files *_rows.inc. A table is filled once
// and only read afterwards.
//
// This header names the tables, for code that passes one on, and documents what
// their rows and wrappers have in common. Code that calls through a table
// includes its own header: cuda_table.h, nvrtc_table.h, nvvm_table.h,
// nvjitlink_table.h, nvml_table.h, nvtx_table.h. Only that code is recompiled
// when a row is added.
#ifndef KILN_SRC_TABLE_TABLE_H_
#define KILN_SRC_TABLE_TABLE_H_

#include <stdint.h>

// ---- Tables ----

typedef struct kiln_cuda_table_t kiln_cuda_table_t;
typedef struct kiln_nvrtc_table_t kiln_nvrtc_table_t;
typedef struct kiln_nvvm_table_t kiln_nvvm_table_t;
typedef struct kiln_nvjitlink_table_t kiln_nvjitlink_table_t;
typedef struct kiln_nvml_table_t kiln_nvml_table_t;
typedef struct kiln_nvtx_table_t kiln_nvtx_table_t;

// ---- Rows ----

enum { KILNI_NEED_REQUIRED = 0, KILNI_NEED_OPTIONAL = 1 };

enum {
  KILNI_CONTEXT_NONE = 0,         // works without a current context
  KILNI_CONTEXT_FROM_STREAM = 1,  // takes its stream's
  KILNI_CONTEXT_CURRENT = 2,      // needs a current one
};

enum { KILNI_CAPTURE_SAFE = 0, KILNI_CAPTURE_UNSAFE = 1 };

enum {
  KILNI_EFFECT_QUERY = 0,
  KILNI_EFFECT_CREATE = 1,
  KILNI_EFFECT_DESTROY = 2,
  KILNI_EFFECT_ACT = 3,
};

enum {
  KILNI_HANDLE_NONE = 0,
  KILNI_HANDLE_PRIMARY_CONTEXT = 1,
  KILNI_HANDLE_MEMORY = 2,
  KILNI_HANDLE_HOST_MEMORY = 3,
  KILNI_HANDLE_HOST_REGISTRATION = 4,
  KILNI_HANDLE_STREAM = 5,
  KILNI_HANDLE_EVENT = 6,
  KILNI_HANDLE_MODULE = 7,
  KILNI_HANDLE_PROGRAM = 8,
  KILNI_HANDLE_SESSION = 9,  // of NVML, which counts its users
  KILNI_HANDLE_LINK = 10,
  KILNI_HANDLE_LIBRARY = 11,
  KILNI_HANDLE_MEMORY_POOL = 12,
  KILNI_HANDLE_ADDRESSES = 13,  // reserved
  KILNI_HANDLE_PHYSICAL = 14,   // memory to be mapped there
  KILNI_HANDLE_MAPPING = 15,
  KILNI_HANDLE_GREEN_CONTEXT = 16,
  KILNI_HANDLE_ARRAY = 17,
  KILNI_HANDLE_TEXTURE = 18,
  KILNI_HANDLE_SURFACE = 19,
  KILNI_HANDLE_OPENED_MEMORY = 20,  // of another process, by cuIpcOpenMemHandle
  KILNI_HANDLE_MIPMAPPED_ARRAY = 21,
  KILNI_HANDLE_GRAPH = 22,
  KILNI_HANDLE_GRAPH_EXEC = 23,
  KILNI_HANDLE_USER_OBJECT = 24,  // a reference to one
  KILNI_HANDLE_SEMAPHORE = 25,
  KILNI_HANDLE_COUNT = 26,
};

// The columns of one row. thread-safe
typedef struct kilni_table_row_t {
  const char* name;     // "cuMemAlloc"
  const char* symbol;   // "cuMemAlloc_v2"
  const char* feature;  // of an optional row: what is missing without it
  uint32_t version;     // 3020 is CUDA 3.2
  uint8_t need;         // KILNI_NEED_*
  uint8_t context;      // KILNI_CONTEXT_*
  uint8_t capture;      // KILNI_CAPTURE_*
  uint8_t effect;       // KILNI_EFFECT_*
  uint8_t handle;       // KILNI_HANDLE_*: what it creates or destroys
  uint8_t reserved;
  uint16_t place;  // of its entry point in the table, in bytes
} kilni_table_row_t;

// ---- Wrappers ----
//
// A thunk with the driver's own signature carries no user pointer. What each
// wrapper wraps is therefore the one mutable global of this module, with
// KILNI_WRAP_SLOTS places for each kind of wrapper, so that the driver and the
// software device can both be wrapped. Install wrappers before the first call
// through the table and remove them after the last.
//
// Every library's table has the same ones; what is stated here of the driver's
// applies to all. `result` of a fault is in the library's own numbers.
enum { KILNI_WRAP_SLOTS = 2 };

// What a fault wrapper fails: the chosen call, or it and every later one.
enum { KILNI_FAULT_ONCE = 0, KILNI_FAULT_FROM = 1 };

#endif  // KILN_SRC_TABLE_TABLE_H_
