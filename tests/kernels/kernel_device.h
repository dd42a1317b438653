// SPDX-License-Identifier: Apache-2.0
//
// tests: a device that runs the kernels, behind the driver's table.
#ifndef KILN_TESTS_KERNELS_KERNEL_DEVICE_H_
#define KILN_TESTS_KERNELS_KERNEL_DEVICE_H_

#include <stdatomic.h>

#include "base/host.h"
#include "table/cuda_table.h"
#include "kernel_reference.h"

enum { KERNEL_MESSAGE = 600, KERNEL_SKIPPED = 77 };

// How the software device is started. thread-compatible
typedef struct kernel_options_t {
  const char* lanes;
  uint64_t seed;
  uint32_t workers;
} kernel_options_t;

// one-thread
typedef struct kernel_device_t {
  bool soft;
  const char* name;
  kiln_host_t host;
  kilni_base_env_t env;
  kiln_cuda_table_t table;
  kilni_base_dynlib_t* library;
  kiln_cu_device_t device;
  kiln_cu_context_t context;
  atomic_int printed;  // lines, since the last run began
} kernel_device_t;

// A loaded PTX file. one-thread
typedef struct kernel_code_t {
  char* text;
  kiln_cu_module_t module;
  bool too_new;  // the driver is older than the compiler
} kernel_code_t;

// 0, 1 (broken) or KERNEL_SKIPPED (not on this machine); says why.
int kernel_device_open(kernel_device_t* device, bool soft,
                       const kernel_options_t* options);
void kernel_device_close(kernel_device_t* device);

// Loads `text`, which must stay. False with a message.
bool kernel_device_load(kernel_device_t* device, char* text, kernel_code_t* out,
                        char message[KERNEL_MESSAGE]);
void kernel_device_unload(kernel_device_t* device, kernel_code_t* code);

// Runs the case and fills what it got (allocated). False with a message.
bool kernel_device_run(kernel_device_t* device, const kernel_code_t* code,
                       kernel_case_t* c, char message[KERNEL_MESSAGE]);

#endif  // KILN_TESTS_KERNELS_KERNEL_DEVICE_H_
