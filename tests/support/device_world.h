// SPDX-License-Identifier: Apache-2.0
//
// support: an open device over the null provider, watched, and what fails on
// the way to one.
//
// A test begins a world, puts calls of its own into the table, opens a device
// and closes it again; the end asserts that every handle and every block is
// gone. The sweeps open a device of their own for each point that fails.
#ifndef KILN_TESTS_SUPPORT_DEVICE_WORLD_H_
#define KILN_TESTS_SUPPORT_DEVICE_WORLD_H_

#include "fault_alloc.h"
#include "kiln/kiln.h"
#include "table/cuda_table.h"

// A runtime and a device over a table. one-thread
typedef struct device_world_t {
  fault_alloc_t watch;
  kiln_allocator_t allocator;
  kiln_cuda_table_t table;  // the null provider's, for the test to change
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_stream_t* stream;  // NULL unless one was asked for
  const char* log_word;   // warnings with this word are counted
  uint32_t log_lines;
} device_world_t;

// A fresh null provider and a watching allocator.
void device_world_begin(device_world_t* world);
// Opens "cuda:0", "soft" and the like over the table as it is now.
void device_world_open(device_world_t* world, const char* name);
void device_world_open_stream(device_world_t* world, const char* name);
// Releases what was opened; the test may have taken it and left NULL.
void device_world_close(device_world_t* world);
// Fails the cmocka test if a handle or a block is left, or was ended twice.
void device_world_end(device_world_t* world);

// What is done with a device in a sweep. It must release everything it made,
// also when it fails, and asserts what out-parameters hold.
typedef kiln_status_t (*device_sweep_body_t)(kiln_device_t* device);

// Opens "cuda:0", runs the body and releases the device, with each call of the
// driver giving `result` in turn, once and from then on. Fails the cmocka test
// if there are not more than `least` of them.
void device_sweep_calls(device_sweep_body_t body, kiln_cu_result_t result,
                        uint64_t least);
// The same with each allocation failing.
void device_sweep_allocations(device_sweep_body_t body, uint64_t least);

#endif  // KILN_TESTS_SUPPORT_DEVICE_WORLD_H_
