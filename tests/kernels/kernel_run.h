// SPDX-License-Identifier: Apache-2.0
//
// tests: what the comments at the head of a kernel say, as data.
//
// The words are in tests/kernels/README.md. Nothing here knows a device.
#ifndef KILN_TESTS_KERNELS_KERNEL_RUN_H_
#define KILN_TESTS_KERNELS_KERNEL_RUN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  KERNEL_RUNS = 12,
  KERNEL_PARAMS = 16,
  KERNEL_SHAPES = 8,
  KERNEL_NAME = 64,
  KERNEL_REASON = 240
};

typedef enum kernel_role_t {
  KERNEL_IN,
  KERNEL_INOUT,
  KERNEL_OUT,
  KERNEL_VALUE,    // a number or a struct, by value
  KERNEL_CONSTANT  // a variable of the module, set by its name
} kernel_role_t;

// A parameter, or a variable that is set before the run. thread-compatible
typedef struct kernel_param_t {
  char name[KERNEL_NAME];
  kernel_role_t role;
  char type[4];
  uint32_t width;  // bytes of an element
  size_t count;
  char generator[12];
  uint64_t seed;
  char number[32];  // of a scalar, as written
  int64_t ulps;     // how far devices may be apart; 0: equal
  bool open;        // CUDA leaves it open: not compared
  char reason[KERNEL_REASON];
} kernel_param_t;

// How a kernel is started. thread-compatible
typedef struct kernel_shape_t {
  uint32_t grid[3];
  uint32_t block[3];
} kernel_shape_t;

// A `run` line and what belongs to it. thread-compatible
typedef struct kernel_run_t {
  char file[KERNEL_NAME];
  char entry[KERNEL_NAME];
  int number;
  int shape_count;
  int param_count;
  int prints;  // lines; -1: not said
  bool cooperative;
  bool fails;
  uint32_t shared;
  kernel_shape_t shapes[KERNEL_SHAPES];
  kernel_param_t params[KERNEL_PARAMS];
} kernel_run_t;

// A .cu. thread-compatible
typedef struct kernel_file_t {
  char name[KERNEL_NAME];
  char awaits[KERNEL_REASON];  // what the software device has not; or empty
  int run_count;
  kernel_run_t runs[KERNEL_RUNS];
} kernel_file_t;

// Reads tests/kernels/NAME.cu. False, with a line on standard output, if it
// cannot be read or a line of it is not understood.
bool kernel_file_read(const char* tree, const char* name, kernel_file_t* out);

// The bytes that a parameter has before the run; to be freed.
uint8_t* kernel_param_make(const kernel_param_t* param);

// `r` of element `i` of seed `seed` (README.md, "Generators").
uint64_t kernel_random(uint64_t seed, uint64_t i);

#endif  // KILN_TESTS_KERNELS_KERNEL_RUN_H_
