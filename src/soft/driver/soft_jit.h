// SPDX-License-Identifier: Apache-2.0
//
// soft: the options of loads and links, and the logs that they ask for.
#ifndef KILN_SRC_SOFT_DRIVER_SOFT_JIT_H_
#define KILN_SRC_SOFT_DRIVER_SOFT_JIT_H_

#include "soft/driver/soft_driver.h"
#include "table/cuda_abi.h"

enum { KILNI_SOFT_MESSAGE_BYTES = 2048 };

// The log buffers of a load or a link, and where to store how much was written:
// in the caller's own list of values. thread-compatible
struct kilni_soft_jit_t {
  char* error;
  size_t error_space;
  void** error_size;
  char* info;
  size_t info_space;
  void** info_size;
  void** wall_time;
};

// INVALID_VALUE for an option that no driver has.
kiln_cu_result_t kilni_soft_jit_read(unsigned int count,
                                     const kiln_cu_jit_option_t* options,
                                     void** values, kilni_soft_jit_t* out_jit);
void kilni_soft_jit_put(const kilni_soft_jit_t* jit, const char* error,
                        const char* info, uint64_t started_ns);
// Writes over every byte of both buffers and over the values.
void kilni_soft_jit_scribble(const kilni_soft_jit_t* jit);

// What a failure of the reader or the decoder is called; the message has
// KILNI_SOFT_MESSAGE_BYTES. Ends `status`.
kiln_cu_result_t kilni_soft_read_result(kiln_status_t status, bool reading,
                                        char* message);
// Whether the device may run what is for this target.
kiln_cu_result_t kilni_soft_check_target(const kilni_image_ptx_module_t* tree,
                                         char* message);

#endif  // KILN_SRC_SOFT_DRIVER_SOFT_JIT_H_
