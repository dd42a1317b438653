// SPDX-License-Identifier: Apache-2.0
//
// device: launches with attributes, and launches that are prepared once.
//
// kiln_kernel_launch checks everything each time. A prepared launch checks its
// shape, its attributes and each argument when they are set, and runs any
// number of times for little more than the cost of the driver's call.
#ifndef KILN_LAUNCH_H_
#define KILN_LAUNCH_H_

#include "kiln/api.h"
#include "kiln/module.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// ---- Attributes ----

// Fields for which zero is a value: they take effect if their bit is in
// `given`. Any other bit is INCOMPATIBLE.
enum {
  KILN_LAUNCH_GIVEN_PRIORITY = 1,
  KILN_LAUNCH_GIVEN_CARVEOUT = 2,
  KILN_LAUNCH_GIVEN_SYNC_MAP = 4,
};

// How the blocks of a cluster are distributed over multiprocessors.
enum {
  KILN_CLUSTER_POLICY_DEFAULT = 0,
  KILN_CLUSTER_POLICY_SPREAD = 1,
  KILN_CLUSTER_POLICY_BALANCE = 2,
};

// Whether a cluster may be larger than every GPU of its generation supports.
enum {
  KILN_CLUSTER_SIZE_DEFAULT = 0,   // as set for the kernel
  KILN_CLUSTER_SIZE_PORTABLE = 1,  // at most 8 blocks
  KILN_CLUSTER_SIZE_ANY = 2,       // at most 16 blocks
};

// The domain in which the kernel's memory barriers order. Barriers of one
// domain do not wait for work in another; between domains only those of the
// whole system order.
enum {
  KILN_SYNC_DOMAIN_UNSAID = 0,  // the stream's
  KILN_SYNC_DOMAIN_DEFAULT = 1,
  KILN_SYNC_DOMAIN_REMOTE = 2,
};

// How the second-level cache treats a line.
enum {
  KILN_CACHE_ACCESS_NORMAL = 0,
  KILN_CACHE_ACCESS_STREAMING = 1,   // evicted first
  KILN_CACHE_ACCESS_PERSISTING = 2,  // likely to stay
};

// How much shared memory a block may request.
enum {
  KILN_SHARED_MODE_DEFAULT = 0,   // as set for the kernel
  KILN_SHARED_MODE_PORTABLE = 1,  // available to every block
  KILN_SHARED_MODE_OPTIN = 2,     // the maximum of the device
  KILN_SHARED_MODE_OVERSIZED = 3,
  KILN_SHARED_MODE_PREFER_OVERSIZED = 4,
};

// How a kernel is launched. thread-compatible
//
// Zero in any field is its default: the attribute is not used. Each field
// documents the CUDA version of the driver that introduced it (INCOMPATIBLE
// before) and what the device must support (UNSUPPORTED without); both are
// checked before the driver is called.
//
// Two attributes of the driver are omitted, because they do not belong to a
// launch: the synchronization policy (of a stream) and the device-updatable
// node (of a graph; a driver refuses it outside a capture).
typedef struct kiln_launch_attributes_t {
  uint32_t struct_size;  // sizeof(kiln_launch_attributes_t)
  uint32_t given;        // KILN_LAUNCH_GIVEN_* bits

  // KILN_SWITCH_*: all blocks run at once, so that they may wait for each
  // other. CUDA 11.8; a device with cooperative launches; no more blocks than
  // fit on it at once.
  uint32_t cooperative;

  // KILN_SWITCH_*: the kernel may start before its predecessor in the stream
  // ends, and waits itself (griddepcontrol.wait). CUDA 11.8, compute capability
  // 9.0.
  uint32_t overlap;

  // Blocks that are scheduled together; 0 is 1, and all 0: no cluster. Each
  // divides the grid, which counts blocks, not clusters. CUDA 11.8, a device
  // with clusters.
  uint32_t cluster[3];

  uint32_t cluster_policy;  // KILN_CLUSTER_POLICY_*. CUDA 11.8, clusters

  // A larger cluster to use if it fits: multiples of `cluster` that divide the
  // grid, the same in z. CUDA 12.8, clusters.
  uint32_t preferred_cluster[3];

  // KILN_CLUSTER_SIZE_*. An attribute of the launch since CUDA 13.2; before
  // that KILN_CLUSTER_SIZE_ANY is set for the kernel, permanently.
  uint32_t cluster_size;

  uint32_t sync_domain;  // KILN_SYNC_DOMAIN_*. CUDA 12.0, several domains

  // The number of each of the two domains, below the device's count; with
  // KILN_LAUNCH_GIVEN_SYNC_MAP. CUDA 12.0.
  uint32_t sync_map_default;
  uint32_t sync_map_remote;

  // Percent of a multiprocessor's fast memory that is shared memory, as a hint;
  // with KILN_LAUNCH_GIVEN_CARVEOUT. CUDA 12.5.
  uint32_t carveout;

  // Of the blocks of this launch, in the range of kiln_device_priorities; with
  // KILN_LAUNCH_GIVEN_PRIORITY. CUDA 11.8. Default: the stream's.
  int32_t priority;

  uint32_t shared_mode;  // KILN_SHARED_MODE_*. CUDA 13.2

  // KILN_SWITCH_*: a hint that blocks use NVLink evenly. CUDA 13.0.
  uint32_t nvlink_centric;

  // KILN_SWITCH_*: each block triggers `programmatic_event` as it starts.
  uint32_t trigger_at_start;

  // A window of addresses with its own second-level cache policy, up to the
  // device's limit; 0 bytes: none. Of the lines in the window, a share of
  // `window_ratio` (0 to 1) is treated by `window_hit`, the others by
  // `window_miss` (KILN_CACHE_ACCESS_*, which must not be PERSISTING). CUDA
  // 11.8.
  uint64_t window_address;
  uint64_t window_bytes;
  float window_ratio;
  uint32_t window_hit;
  uint32_t window_miss;
  uint32_t reserved;  // 0

  // Recorded when all blocks have triggered it
  // (griddepcontrol.launch_dependents or `trigger_at_start`). Without timing,
  // not for other processes. CUDA 11.8, compute capability 9.0.
  kiln_event_t* programmatic_event;

  // Recorded when all blocks have started, as a hint. Without timing, not for
  // other processes. CUDA 12.3.
  kiln_event_t* completion_event;
} kiln_launch_attributes_t;

// All defaults. Since 0.1.
static inline kiln_launch_attributes_t kiln_launch_attributes_default(void) {
  kiln_launch_attributes_t attributes = {(uint32_t)sizeof(attributes),
                                         0,
                                         0,
                                         0,
                                         {0, 0, 0},
                                         0,
                                         {0, 0, 0},
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0.0f,
                                         0,
                                         0,
                                         0,
                                         NULL,
                                         NULL};
  return attributes;
}

// ---- Prepared launches ----

// One kernel in one shape with its arguments. thread-compatible
//
// Reference-counted. Retains its kernel and the events of its attributes.
// Threads may run it at once while none changes it.
typedef struct kiln_launch_t kiln_launch_t;

// Prepares a launch: the shape and the attributes are checked (the refusals of
// kiln_kernel_launch), more shared memory is requested if needed, and memory
// for the arguments is allocated, which have no values yet. `config` may be
// NULL: one block of one thread. Also OUT_OF_MEMORY. The caller owns
// `*out_launch`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_launch_create(kiln_kernel_t* kernel, const kiln_launch_config_t* config,
                   kiln_launch_t** out_launch);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_launch_retain(kiln_launch_t* launch);
KILN_API void kiln_launch_release(kiln_launch_t* launch);

// The kernel that it runs. Borrowed. Since 0.1.
KILN_API kiln_kernel_t* kiln_launch_kernel(const kiln_launch_t* launch);

// Sets one argument, which is checked and copied: the data of kiln_arg_bytes
// need not stay valid. For a buffer the address is copied, so the buffer must
// live until the last run has ended. Allocates nothing.
//
//   INVALID_ARGUMENT  no such parameter, another size, an integer for a float
//                     or vice versa, NULL: index and name of the
//                     parameter are in the message
//   INSUFFICIENT_METADATA  neither the file nor the driver has the
//                     parameters; kiln_launch_set_all accepts any
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_launch_set(kiln_launch_t* launch,
                                                     uint32_t index,
                                                     kiln_argument_t argument);

// Sets all of them. INVALID_ARGUMENT too if their number differs from the
// kernel's; the arguments before the wrong one are then set. LIMIT_EXCEEDED and
// OUT_OF_MEMORY: for a kernel with unknown parameters. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_launch_set_all(kiln_launch_t* launch, const kiln_argument_t* arguments,
                    uint32_t argument_count);

// Changes the number of blocks; 0 is 1. Checked like the first one, without
// calling the driver. LIMIT_EXCEEDED, INVALID_ARGUMENT. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_launch_set_grid(kiln_launch_t* launch,
                                                          uint32_t x,
                                                          uint32_t y,
                                                          uint32_t z);

// Puts the launch on a stream of its device and returns. Allocates nothing,
// takes no lock, and makes one call to the driver.
//
//   INVALID_STATE     an argument was never set (which), or a fork
//   INVALID_ARGUMENT  a stream of another device
//   LAUNCH_FAILED     the driver refused
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_launch_run(kiln_launch_t* launch,
                                                     kiln_stream_t* stream);

KILN_EXTERN_C_END

#endif  // KILN_LAUNCH_H_
