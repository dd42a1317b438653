// SPDX-License-Identifier: Apache-2.0
//
// table: the trace and the fault wrapper of NVML.
#define KILNI_LIBRARY       nvml
#define KILNI_LIBRARY_TRACE "table/nvml_trace_gen.inc"
#define KILNI_LIBRARY_FAULT "table/nvml_fault_gen.inc"
#include "table/nvml_table.h"
#include "table/wrap_library.inc"
