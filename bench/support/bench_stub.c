// SPDX-License-Identifier: Apache-2.0
//
// bench: rows of a driver that does nothing.
#include "bench_stub.h"

kiln_cu_result_t bench_stub_launch(kiln_cu_function_t function,
                                   unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x,
                                   unsigned int block_y, unsigned int block_z,
                                   unsigned int shared_bytes,
                                   kiln_cu_stream_t stream, void** params,
                                   void** extra) {
  (void)function;
  (void)grid_x;
  (void)grid_y;
  (void)grid_z;
  (void)block_x;
  (void)block_y;
  (void)block_z;
  (void)shared_bytes;
  (void)stream;
  (void)params;
  (void)extra;
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t bench_stub_launch_ex(const kiln_cu_launch_config_t* config,
                                      kiln_cu_function_t function,
                                      void** params, void** extra) {
  (void)config;
  (void)function;
  (void)params;
  (void)extra;
  return KILN_CU_SUCCESS;
}
