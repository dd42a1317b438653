// SPDX-License-Identifier: Apache-2.0
//
// cli: whether data and the shape of a launch fit a kernel.
//
// Shared by `kiln run`, `kiln bench` and `kiln graph`, so that each refuses
// what the others do. Pure: facts about a kernel in, an answer out.
#ifndef KILN_SRC_CLI_RUN_FIT_H_
#define KILN_SRC_CLI_RUN_FIT_H_

#include "cli/cli_array.h"
#include "cli/cli_literal.h"
#include "kiln/image.h"

#define KILNI_CLI_MAX_PARAMS 256

// The facts about a parameter. thread-safe
typedef struct kilni_cli_param_t {
  const char* name;  // "" without one
  uint32_t bytes;    // 0: unknown
  uint32_t kind;     // KILN_PARAM_KIND_*
  const char* type;  // of a number of a program: "u32"; else NULL
} kilni_cli_param_t;

// The facts about the kernel. one-thread
typedef struct kilni_cli_kernel_t {
  const char* name;
  bool params_known;
  uint32_t param_count;
  kilni_cli_param_t params[KILNI_CLI_MAX_PARAMS];
  uint32_t required_block[3];
  uint32_t max_threads;        // of a block; 0: unknown
  uint32_t thread_dimensions;  // in which it counts threads; 0: unknown
  uint32_t block_dimensions;   // in which it counts blocks; 0: unknown
  // What it does with its parameters; NULL: unknown. Borrowed.
  const kiln_image_use_t* use;
} kilni_cli_kernel_t;

// "2 ("n")", of a message.
void kilni_cli_param_words(const kilni_cli_kernel_t* kernel, uint32_t index,
                           char out[256]);

// Whether a buffer of this shape may be what parameter `index` points to, by
// the kernel's name in C++, else by what its PTX does. INVALID_ARGUMENT.
//
// `is_bytes`: its u8 are raw bytes of any type, as those of a file of raw
// bytes, and not numbers of one byte.
bool kilni_cli_fit_data(const kilni_cli_kernel_t* kernel, uint32_t index,
                        const kilni_cli_shape_t* shape, bool is_bytes,
                        kilni_cli_error_t* error);

// Whether a number of two bytes has the half type that the kernel takes, if its
// name includes it; bits that are not a float fit either.
bool kilni_cli_fit_half(const kilni_cli_kernel_t* kernel, uint32_t index,
                        kilni_cli_type_t given);

// The given shape of a launch. thread-compatible
typedef struct kilni_cli_asked_t {
  const uint32_t* grid;   // NULL: not given
  const uint32_t* block;  // NULL: not given
  uint64_t longest;       // elements of the longest buffer
  const char* dashes;     // the prefix of `grid` and `block` in messages
} kilni_cli_asked_t;

// The shape of a launch: as given, else the block that the kernel requires and
// the minimum grid that covers the longest buffer. INVALID_ARGUMENT if the
// kernel counts in more dimensions than that determines.
bool kilni_cli_fit_launch(const kilni_cli_kernel_t* kernel,
                          const kilni_cli_asked_t* asked, uint32_t out_grid[3],
                          uint32_t out_block[3], kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_FIT_H_
