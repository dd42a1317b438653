// SPDX-License-Identifier: Apache-2.0
//
// truth: runs entries on a device through the driver's table.
//
// A GPU and the software device take the very same path; only where the
// answers are written differs (memory of the host that the software device
// shares).
#ifndef KILN_TESTS_TRUTH_TRUTH_DEVICE_H_
#define KILN_TESTS_TRUTH_TRUTH_DEVICE_H_

#include "soft/soft.h"
#include "table/cuda_table.h"
#include "truth_form.h"

enum { TRUTH_BLOCKS = 512, TRUTH_ARRAYS = 160, TRUTH_BATCH = 64 };

// Which blocks of a layout are asked: all with stride 1, only the raw part
// with 0, otherwise the raw part and every stride-th.
typedef struct truth_wish_t {
  uint32_t stride;
  uint32_t phase;
} truth_wish_t;

typedef struct truth_plan_t {
  uint32_t blocks[TRUTH_BLOCKS];
  uint32_t count;
  uint32_t inputs;
} truth_plan_t;

void truth_plan_make(const truth_layout_t* layout, truth_wish_t wish,
                     truth_plan_t* out_plan);

// one-thread
typedef struct truth_array_t {
  truth_kind_t kind;
  truth_place_t place;
  truth_layout_t layout;
  kiln_cu_deviceptr_t address;
  void* pinned;
} truth_array_t;

// one-thread
typedef struct truth_device_t {
  kiln_cuda_table_t t;
  kiln_host_t host;
  kilni_base_env_t env;
  bool is_soft;
  truth_wish_t wish;
  kiln_cu_context_t context;
  kiln_cu_device_t device;
  kiln_cu_stream_t streams[2];
  void* answers[2];
  kiln_cu_deviceptr_t written[2];
  truth_array_t arrays[TRUTH_ARRAYS];
  uint32_t array_count;
  char name[64];
  char driver[64];
  char lanes[16];
} truth_device_t;

// 0, 77 where there is no such device, 1 with what is wrong printed. `lanes`
// is of the software device; NULL is its choice.
int truth_device_open(truth_device_t* device, bool is_soft, const char* lanes,
                      truth_wish_t wish);
void truth_device_close(truth_device_t* device);

// Receives the answers of one entry, its plan's blocks one behind another;
// NULL when the device refused the kernel, with the reason.
typedef void (*truth_take_t)(void* user, size_t entry, const truth_plan_t* plan,
                             const uint8_t* answers, const char* refusal);

// Runs the entries in which[]; false, with a message printed, if the device
// failed.
bool truth_device_run(truth_device_t* device, const truth_list_t* list,
                      const size_t* which, size_t count, truth_take_t take,
                      void* user);

// The input of `entry` that stands at `position` of the plan.
uint64_t truth_source(const truth_entry_t* entry, const truth_plan_t* plan,
                      uint32_t source, uint32_t position);

#endif  // KILN_TESTS_TRUTH_TRUTH_DEVICE_H_
