// SPDX-License-Identifier: Apache-2.0
//
// bench: rows of a driver that does nothing, and not even count.
#ifndef KILN_BENCH_SUPPORT_BENCH_STUB_H_
#define KILN_BENCH_SUPPORT_BENCH_STUB_H_

#include "table/cuda_abi.h"

// cuLaunchKernel.
kiln_cu_result_t bench_stub_launch(kiln_cu_function_t function,
                                   unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x,
                                   unsigned int block_y, unsigned int block_z,
                                   unsigned int shared_bytes,
                                   kiln_cu_stream_t stream, void** params,
                                   void** extra);
// cuLaunchKernelEx.
kiln_cu_result_t bench_stub_launch_ex(const kiln_cu_launch_config_t* config,
                                      kiln_cu_function_t function,
                                      void** params, void** extra);

#endif  // KILN_BENCH_SUPPORT_BENCH_STUB_H_
