// SPDX-License-Identifier: Apache-2.0
//
// table: the binary interface of libNVVM, in our own declarations.
//
// As cuda_abi.h: compared with nvvm.h by a test where that exists.
#ifndef KILN_SRC_TABLE_NVVM_ABI_H_
#define KILN_SRC_TABLE_NVVM_ABI_H_

#include <stddef.h>
#include <stdint.h>

// A program of libNVVM, owned by it. one-thread
typedef struct _nvvmProgram* kiln_nvvm_program_t;

// A result of libNVVM, in its own width. thread-safe
typedef unsigned int kiln_nvvm_result_t;

// KILN_NVVM_SUCCESS and KILN_NVVM_ERROR_* (nvvm_results.inc).
enum {
  KILN_NVVM_SUCCESS = 0,
#define KILNI_NVVM_RESULT(name, number, status, fix) \
  KILN_NVVM_ERROR_##name = number,
#include "table/nvvm_results.inc"
#undef KILNI_NVVM_RESULT
};

#endif  // KILN_SRC_TABLE_NVVM_ABI_H_
