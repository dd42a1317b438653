// SPDX-License-Identifier: Apache-2.0
//
// table: the trace and the fault wrapper of NVRTC.
#define KILNI_LIBRARY       nvrtc
#define KILNI_LIBRARY_TRACE "table/nvrtc_trace_gen.inc"
#define KILNI_LIBRARY_FAULT "table/nvrtc_fault_gen.inc"
#include "table/nvrtc_table.h"
#include "table/wrap_library.inc"
