// SPDX-License-Identifier: Apache-2.0
//
// bench: a runtime with a device, over a driver or over a table that does
// nothing, with allocations counted; and the driver's own table below it.
#ifndef KILN_BENCH_SUPPORT_BENCH_STAGE_H_
#define KILN_BENCH_SUPPORT_BENCH_STAGE_H_

#include "kiln/device.h"
#include "kiln/runtime.h"
#include "table/cuda_table.h"

enum { BENCH_SKIPPED = 77 };  // exit code where there is no such device

// Where a benchmark takes place. one-thread
typedef struct bench_stage_t {
  kiln_cuda_table_t stub;  // the null table; rows may be set before open
  kiln_cuda_table_t raw;   // below every wrapper
  kiln_allocator_t allocator;
  uint64_t allocations;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
} bench_stage_t;

// Fills in the stub. Once, and before open.
void bench_stage_init(bench_stage_t* stage);
// Opens the device with that name; NULL: one over the stub. Its context is then
// current, as users of the driver's own calls have it. False where there is
// none, with a line on standard output.
bool bench_stage_open(bench_stage_t* stage, const char* device);
void bench_stage_close(bench_stage_t* stage);

#endif  // KILN_BENCH_SUPPORT_BENCH_STAGE_H_
