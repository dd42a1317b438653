// SPDX-License-Identifier: Apache-2.0
//
// table: the trace and the fault wrapper of libNVVM.
#define KILNI_LIBRARY       nvvm
#define KILNI_LIBRARY_TRACE "table/nvvm_trace_gen.inc"
#define KILNI_LIBRARY_FAULT "table/nvvm_fault_gen.inc"
#include "table/nvvm_table.h"
#include "table/wrap_library.inc"
