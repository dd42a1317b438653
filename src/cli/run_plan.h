// SPDX-License-Identifier: Apache-2.0
//
// cli: the argument of each kernel parameter, and the shape of the launch.
//
// Pure: facts about a kernel and the request in, a plan out.
#ifndef KILN_SRC_CLI_RUN_PLAN_H_
#define KILN_SRC_CLI_RUN_PLAN_H_

#include "cli/run_fit.h"
#include "cli/run_request.h"

// One parameter's part. one-thread
typedef struct kilni_cli_slot_t {
  kilni_cli_binding_t* in;      // the buffer's first content; NULL: zeroes
  kilni_cli_binding_t* out;     // its output file; NULL: none
  kilni_cli_binding_t* expect;  // its expected contents; NULL: none
  kilni_cli_binding_t* arg;     // else a scalar
  kilni_cli_shape_t shape;      // of the buffer
  kilni_cli_scalar_t scalar;
  const uint8_t* bytes;  // of a struct, in place of `scalar`; else NULL
  uint32_t byte_count;
} kilni_cli_slot_t;

// The whole launch. one-thread
typedef struct kilni_cli_plan_t {
  uint32_t count;
  kilni_cli_slot_t slots[KILNI_CLI_MAX_PARAMS];  // beyond `count`: anything
  uint32_t grid[3];
  uint32_t block[3];
  bool grid_chosen;      // not given
  uint64_t grid_covers;  // elements that it was chosen for
} kilni_cli_plan_t;

// INVALID_ARGUMENT names the parameter and what to write.
bool kilni_cli_plan_make(const kilni_cli_kernel_t* kernel,
                         kilni_cli_request_t* request, kilni_cli_plan_t* out,
                         kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_PLAN_H_
