// SPDX-License-Identifier: Apache-2.0
//
// table: the binary interface of nvJitLink, in our own declarations.
//
// As cuda_abi.h: compared with nvJitLink.h by a test where that exists.
#ifndef KILN_SRC_TABLE_NVJITLINK_ABI_H_
#define KILN_SRC_TABLE_NVJITLINK_ABI_H_

#include <stddef.h>
#include <stdint.h>

// A link of nvJitLink, owned by it. one-thread
typedef struct nvJitLink* kiln_nvjitlink_handle_t;

// A result and a kind of input of nvJitLink, in their own width. thread-safe
typedef unsigned int kiln_nvjitlink_result_t;
typedef unsigned int kiln_nvjitlink_input_t;

// KILN_NVJITLINK_SUCCESS and KILN_NVJITLINK_ERROR_* (nvjitlink_results.inc).
enum {
  KILN_NVJITLINK_SUCCESS = 0,
#define KILNI_NVJITLINK_RESULT(name, number, status, fix) \
  KILN_NVJITLINK_ERROR_##name = number,
#include "table/nvjitlink_results.inc"
#undef KILNI_NVJITLINK_RESULT
};

enum {
  KILN_NVJITLINK_INPUT_NONE = 0,
  KILN_NVJITLINK_INPUT_CUBIN = 1,
  KILN_NVJITLINK_INPUT_PTX = 2,
  KILN_NVJITLINK_INPUT_LTOIR = 3,
  KILN_NVJITLINK_INPUT_FATBIN = 4,
  KILN_NVJITLINK_INPUT_OBJECT = 5,
  KILN_NVJITLINK_INPUT_LIBRARY = 6,
  KILN_NVJITLINK_INPUT_INDEX = 7,
  KILN_NVJITLINK_INPUT_ANY = 10,
};

#endif  // KILN_SRC_TABLE_NVJITLINK_ABI_H_
