// SPDX-License-Identifier: Apache-2.0
//
// table: the binary interface of NVRTC, in our own declarations.
//
// As cuda_abi.h: compared with nvrtc.h by a test where that exists.
#ifndef KILN_SRC_TABLE_NVRTC_ABI_H_
#define KILN_SRC_TABLE_NVRTC_ABI_H_

#include <stddef.h>
#include <stdint.h>

// A program of NVRTC, owned by it. one-thread
typedef struct _nvrtcProgram* kiln_nvrtc_program_t;

// A result of NVRTC, in its own width. thread-safe
typedef unsigned int kiln_nvrtc_result_t;

// Called while a program is compiled; not 0 ends the compilation. thread-safe
typedef int (*kiln_nvrtc_flow_fn_t)(void* user, void* reserved);

// KILN_NVRTC_SUCCESS and KILN_NVRTC_ERROR_* (nvrtc_results.inc).
enum {
  KILN_NVRTC_SUCCESS = 0,
#define KILNI_NVRTC_RESULT(name, number, status, fix) \
  KILN_NVRTC_ERROR_##name = number,
#include "table/nvrtc_results.inc"
#undef KILNI_NVRTC_RESULT
};

#endif  // KILN_SRC_TABLE_NVRTC_ABI_H_
