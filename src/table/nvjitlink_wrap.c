// SPDX-License-Identifier: Apache-2.0
//
// table: the trace and the fault wrapper of nvJitLink.
#define KILNI_LIBRARY       nvjitlink
#define KILNI_LIBRARY_TRACE "table/nvjitlink_trace_gen.inc"
#define KILNI_LIBRARY_FAULT "table/nvjitlink_fault_gen.inc"
#include "table/nvjitlink_table.h"
#include "table/wrap_library.inc"
