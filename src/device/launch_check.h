// SPDX-License-Identifier: Apache-2.0
//
// device: what launches that are made once and those that are prepared share:
// the checks. A public header for modules that make launches into something
// else.
#ifndef KILN_SRC_DEVICE_LAUNCH_CHECK_H_
#define KILN_SRC_DEVICE_LAUNCH_CHECK_H_

#include <string.h>

#include "device/device_inside.h"
#include "kiln/launch.h"
#include "table/cuda_types_gen.h"

enum {
  KILNI_MAX_ARGUMENTS = 4096,
  KILNI_LAUNCH_ATTRIBUTES = 16,  // more than there are
};

// What a driver is given besides shape and arguments. one-thread
typedef struct kilni_device_launch_how_t {
  uint32_t count;
  bool cooperative;
  // Of a cooperative launch: blocks of a multiprocessor, at once.
  uint32_t resident;
  uint32_t cluster[3];        // 0: none
  uint32_t preferred[3];      // 0: none
  kiln_event_t* recorded[2];  // events that it records; borrowed
  kiln_cu_launch_attribute_t list[KILNI_LAUNCH_ATTRIBUTES];
} kilni_device_launch_how_t;

// What an argument was: of a number or an address, its kind and bytes.
enum { KILNI_GIVEN_NOTHING = 0, KILNI_GIVEN_OTHER = 1 };

// One kernel in one shape with its arguments (device_prepared.c).
//
// What a run reads comes first and is contiguous: after a driver's call, which
// exceeds the nearest cache, each line is fetched again.
struct kiln_launch_t {
  kiln_device_t* device;  // of the kernel
  // Why it cannot take the short path, all of it in one load.
  union {
    struct {
      uint32_t missing;     // arguments without a value
      uint32_t attributes;  // that the driver is given: how.count
    };
    uint64_t detour;
  };
  kilni_device_alive_t alive;
  kilni_cuLaunchKernel_fn_t call;  // of the device's table
  uint64_t number;                 // of this launch among all of its device
  uint64_t version;                // of `buffers`
  kiln_cu_kernel_node_t node;      // shape and arguments; for graphs too
  kiln_kernel_t* kernel;
  atomic_uint references;
  uint32_t reserved;
  size_t buffer_space;
  // What was given for each argument, where it was a buffer; borrowed. As many
  // as `count`, or those of kiln_launch_set_all.
  kiln_buffer_t** buffers;
  uint32_t count;       // of parameters that are known
  uint32_t space;       // bytes of `packed`
  size_t packed_bytes;  // in use, of a kernel without a description
  void** values;        // one for each parameter, into `packed`
  uint8_t* packed;      //
  // For each argument with a value what it was, so that another of the same
  // kind and size needs no check: KILNI_GIVEN_*.
  uint64_t* given;
  void** params;  // what the driver is given: `values`, or NULL
  void** extra;   // or this list
  void* extra_list[5];
  kilni_device_launch_how_t how;
  kiln_cu_launch_config_t config;  // without a stream
};

// One word for kind and bytes; never one of KILNI_GIVEN_*.
static inline uint64_t kilni_device_argument_shape(
    const kiln_argument_t* argument) {
  return (uint64_t)argument->bytes << 32 | argument->kind;
}

// The short path of kiln_launch_set: true if it was a number or an address, as
// the last one was, which had been checked. No buffer is recorded for it.
static inline bool kilni_device_launch_set_shortly(
    kiln_launch_t* launch, uint32_t index, const kiln_argument_t* argument) {
  if (launch == NULL || index >= launch->count ||
      launch->given[index] != kilni_device_argument_shape(argument)) {
    return false;
  }
  if (argument->bytes == sizeof(uint64_t)) {
    memcpy(launch->values[index], &argument->value, sizeof(uint64_t));
  } else {
    memcpy(launch->values[index], &argument->value, sizeof(uint32_t));
  }
  return true;
}

// OK if every argument has a value.
kiln_status_t kilni_device_launch_check_given(const kiln_launch_t* launch);

// ---- device_check.c ----

// LIMIT_EXCEEDED with the name of the value, the value, and the limit of
// `whose`.
kiln_status_t kilni_device_launch_over(const kiln_kernel_t* kernel,
                                       const char* what, uint64_t value,
                                       uint64_t limit, const char* whose);

// Puts 1 for 0 and compares with the limits of device and kernel.
kiln_status_t kilni_device_launch_check_shape(
    const kiln_kernel_t* kernel, kiln_launch_config_t* inout_config);

// Compares the shared memory with the device's, and asks the driver once for
// more than a block has by default.
kiln_status_t kilni_device_launch_need_shared(
    kiln_kernel_t* kernel, const kiln_launch_config_t* config);

// How many bytes of arguments a kernel takes at most.
uint64_t kilni_device_launch_argument_limit(const kiln_device_t* device);

// Checks one argument against its parameter, if that is known. `*out_at` is
// where its bytes are; an address of a buffer is put into `*scratch`.
kiln_status_t kilni_device_argument_read(const kiln_kernel_t* kernel,
                                         uint32_t index,
                                         const kiln_argument_t* argument,
                                         uint64_t* scratch,
                                         const void** out_at);

// The number of arguments, where that is known.
kiln_status_t kilni_device_argument_check_count(const kiln_kernel_t* kernel,
                                                uint32_t count);

// Where an argument of so many bytes goes behind `at` bytes of others, of a
// kernel without a description: by its size.
static inline size_t kilni_device_argument_align(size_t at, size_t bytes) {
  size_t align = 1;
  while (align < 8 && bytes % (align * 2) == 0) align *= 2;
  return (at + align - 1) / align * align;
}

// ---- device_attributes.c ----

// Checks the attributes and turns them into the driver's; none for NULL. The
// shape must have been checked.
kiln_status_t kilni_device_launch_how(kiln_kernel_t* kernel,
                                      const kiln_launch_config_t* config,
                                      kilni_device_launch_how_t* out_how);

// Checks the grid against a checked `how`.
kiln_status_t kilni_device_launch_check_grid(
    const kiln_kernel_t* kernel, const kilni_device_launch_how_t* how,
    const uint32_t grid[3]);

// The blocks of a cooperative launch against the multiprocessors of `device`,
// of which the stream is: a part has fewer than the device of the kernel.
kiln_status_t kilni_device_launch_check_resident(
    const kiln_kernel_t* kernel, const kilni_device_launch_how_t* how,
    const kiln_device_t* device, uint64_t blocks);

// What lets a launch start before the preceding kernel has ended.
static inline kiln_cu_launch_attribute_t kilni_device_launch_early(void) {
  kiln_cu_launch_attribute_t attribute;
  memset(&attribute, 0, sizeof(attribute));
  attribute.id = KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmatic_serialization = 1;
  return attribute;
}

// kiln_launch_run of a launch without attributes, with that one: for a caller
// that knows that the kernel waits, and what precedes it on the stream.
kiln_status_t kilni_device_launch_run_early(kiln_launch_t* launch,
                                            kiln_stream_t* stream);

// The events of the launch are recorded now.
void kilni_device_launch_mark_recorded(const kilni_device_launch_how_t* how);

#endif  // KILN_SRC_DEVICE_LAUNCH_CHECK_H_
