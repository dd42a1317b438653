// SPDX-License-Identifier: Apache-2.0
//
// table: the trace and the fault wrapper of the CUDA driver.
#define KILNI_LIBRARY       cuda
#define KILNI_LIBRARY_TRACE "table/cuda_trace_gen.inc"
#define KILNI_LIBRARY_FAULT "table/cuda_fault_gen.inc"
#include "table/cuda_table.h"
#include "table/wrap_library.inc"
