// SPDX-License-Identifier: Apache-2.0
//
// cli: what each parameter of a kernel gets, and the launch's shape.
//
// Pure: facts about a kernel and the request in, a plan out.
#ifndef KILN_SRC_CLI_RUN_PLAN_H_
#define KILN_SRC_CLI_RUN_PLAN_H_

#include "cli/run_request.h"
#include "kiln/image.h"

#define KILNI_CLI_MAX_PARAMS 256

// What is known of a parameter. thread-safe
typedef struct kilni_cli_param_t {
  const char* name;  // "" without one
  uint32_t bytes;    // 0: not known
  uint32_t kind;     // KILN_PARAM_KIND_*
  const char* type;  // of a number of a program: "u32"; else NULL
} kilni_cli_param_t;

// What is known of the kernel. one-thread
typedef struct kilni_cli_kernel_t {
  const char* name;
  bool params_known;
  uint32_t param_count;
  kilni_cli_param_t params[KILNI_CLI_MAX_PARAMS];
  uint32_t required_block[3];
  uint32_t max_threads;  // of a block; 0: not known
  uint32_t dimensions;   // in which it counts; 0: not known
  // What it does with its parameters; NULL: not known. Borrowed.
  const kiln_image_use_t* use;
} kilni_cli_kernel_t;

// Threads of a block where nobody says it: 256, or as many whole warps as the
// kernel bounds it to.
uint32_t kilni_cli_default_block(uint32_t max_threads);

// One parameter's part. one-thread
typedef struct kilni_cli_slot_t {
  kilni_cli_binding_t* in;      // the buffer's first content; NULL: zeroes
  kilni_cli_binding_t* out;     // where it goes; NULL: nowhere
  kilni_cli_binding_t* expect;  // what it should hold; NULL: not said
  kilni_cli_binding_t* arg;     // else a scalar
  kilni_cli_shape_t shape;      // of the buffer
  kilni_cli_scalar_t scalar;
  const uint8_t* bytes;  // of a struct, in place of `scalar`; else NULL
  uint32_t byte_count;
} kilni_cli_slot_t;

// The whole launch. one-thread
typedef struct kilni_cli_plan_t {
  uint32_t count;
  kilni_cli_slot_t slots[KILNI_CLI_MAX_PARAMS];
  uint32_t grid[3];
  uint32_t block[3];
  bool grid_chosen;      // not given
  uint64_t grid_covers;  // elements that it was chosen for
} kilni_cli_plan_t;

// INVALID_ARGUMENT names the parameter and says what to write.
bool kilni_cli_plan_make(const kilni_cli_kernel_t* kernel,
                         kilni_cli_request_t* request, kilni_cli_plan_t* out,
                         kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_PLAN_H_
