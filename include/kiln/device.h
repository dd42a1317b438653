// SPDX-License-Identifier: Apache-2.0
//
// device: an open device: a GPU through its driver, or the software device.
//
// Devices are opened by kiln_runtime_open_device. Objects made on one work the
// same way on every kind of device. On a GPU a device uses the primary context,
// shared with the CUDA runtime and other libraries of the process; no call
// changes the caller's current context.
//
// Three statuses have one meaning wherever the headers of this module list them
// without comment: DEVICE_LOST, this process can no longer use the device (see
// kiln_device_t); DRIVER_ERROR, the driver failed, and kiln_status_native has
// its result; OUT_OF_MEMORY, of the host. A NULL that is not allowed is
// INVALID_ARGUMENT, in calls that return a status, and so is a value outside
// those that an argument or a field may have. After a fork, calls that would
// need the driver are INVALID_STATE in the child, and a release leaves the
// driver's objects to the parent.
#ifndef KILN_DEVICE_H_
#define KILN_DEVICE_H_

#include "kiln/api.h"
#include "kiln/fault.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// The owner of a foreign handle. thread-compatible
//
// A host program's own stream or event is used as it is: an `_adopt` function
// wraps the bare handle. `release(user_data)` is called exactly once, by the
// thread that gives back the last reference, without any lock of the library
// and after the last use of the handle. It may be NULL, and so may a pointer to
// an owner: the caller then keeps the handle alive as long as the object lives.
// A failed `_adopt` takes nothing.
typedef struct kiln_owner_t {
  void (*release)(void* user_data);
  void* user_data;
} kiln_owner_t;

// An open device. thread-safe
//
// Reference-counted; buffers, streams, events and modules retain theirs.
//
// Once a kernel has faulted, or a time limit was reached, the device is lost:
// every further call that would use it is DEVICE_LOST, releases free host
// resources, and memory that the device may still use is not freed. A fault
// affects every object for the same GPU or software device, including those of
// other runtimes; a time limit affects only this object. The software device
// then ends the work of this object's streams, and its work on a default
// stream; work of others continues. If another object's work waits by an event
// or a graph for the ended work, a time limit affects every object, like a
// fault. kiln_runtime_open_device documents when a device becomes usable again.
typedef struct kiln_device_t kiln_device_t;

// Adds or releases a reference. NULL is accepted. The last release does not
// wait; the objects that retain the device keep it open. Since 0.1.
KILN_API void kiln_device_retain(kiln_device_t* device);
KILN_API void kiln_device_release(kiln_device_t* device);

// Its name: "cuda:0", "soft", "cuda:0/2" for a part (kiln/green.h). Borrowed.
// Since 0.1.
KILN_API const char* kiln_device_name(const kiln_device_t* device);

// Why "auto" did not select the GPU, as one line; "" if not applicable.
// Borrowed. Since 0.1.
KILN_API const char* kiln_device_note(const kiln_device_t* device);

// Values of kiln_device_info_t.kind.
enum { KILN_DEVICE_KIND_CUDA = 1, KILN_DEVICE_KIND_SOFT = 2 };

// Properties of a device. Filled when it is opened. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_device_info_t {
  const char* model;               // "NVIDIA H200"
  uint32_t kind;                   // KILN_DEVICE_KIND_*
  uint32_t ordinal;                // the driver's number
  uint32_t driver_version;         // CUDA version of the driver, 13000 is 13.0
  uint32_t compute_major;          // 9 of compute capability 9.0
  uint32_t compute_minor;          // 0 of it
  uint32_t multiprocessors;        //
  uint32_t warp_size;              // threads
  uint32_t max_threads_per_block;  //
  uint32_t max_block[3];           // threads
  uint32_t max_grid[3];            // blocks
  uint32_t shared_bytes;           // of a block, without opting in
  uint32_t shared_optin_bytes;     // of a block, at most
  uint32_t memory_pools;           // 1: allocations may be stream-ordered
  uint32_t reserved;
  uint64_t memory_bytes;  // device memory in all
  // What launches with attributes need: kiln/launch.h.
  uint32_t cooperative_launch;  // 1: there are
  uint32_t cluster_launch;      // 1: there are
  uint32_t sync_domains;        // memory synchronization domains
  uint32_t window_bytes;        // of an access policy window, at most
} kiln_device_info_t;

// The properties of the device. Does not query the driver. Borrowed. Since 0.1.
KILN_API const kiln_device_info_t* kiln_device_info(
    const kiln_device_t* device);

// Queries an attribute by the driver's number (CU_DEVICE_ATTRIBUTE_*; names and
// units: kiln_probe_attribute_name). 0, and OK, if the driver does not know it.
// DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_device_attribute(
    kiln_device_t* device, uint32_t attribute, int32_t* out_value);

// Queries how many bytes of device memory are free now. DEVICE_LOST,
// DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_device_query_free(kiln_device_t* device, uint64_t* out_free_bytes);

// Waits until all work of the device's context is done, including that of other
// libraries. A fault of a kernel is DEVICE_LOST. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_device_synchronize(kiln_device_t* device);

// What a kernel did wrong that ended the device or, for one that was abandoned
// at a time limit (kiln_stream_wait), where it was: kind, kernel, source and
// PTX line, thread, block, memory. A fault is reported by all objects over the
// device's context, a time limit by the one that it ended. The kind is
// KILN_FAULT_NONE without a fault, and on a GPU, which does not report it.
// `out_fault` begins with _default. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_device_fault(const kiln_device_t* device, kiln_fault_t* out_fault);

// The same as text, several lines; empty without a fault. At most `capacity`
// bytes with the NUL; `out_length`, if not NULL, receives the whole length
// without it. Since 0.1.
KILN_API void kiln_device_fault_text(const kiln_device_t* device,
                                     size_t capacity, char* buffer,
                                     size_t* out_length);

// Thread-instructions executed so far: one PTX instruction executed by one
// thread is one. Counts kernels that have ended, of the whole process. Only
// the software device counts them; UNSUPPORTED on a GPU. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_device_executed(const kiln_device_t* device, uint64_t* out_instructions);

// The driver's handle (CUcontext) of the context that the device is used in,
// for calls of a host program to the same driver. Valid as long as the device
// is open; it is not made current on any thread. Borrowed. Since 0.1.
KILN_API void* kiln_device_context(const kiln_device_t* device);

// A host program's own context (CUcontext, of cuCtxCreate) as a device: objects
// made on it are made in that context, which is used as it is and never
// destroyed here. `device` identifies the driver and GPU, and is not retained.
//
// Its name is that of `device` followed by "/foreign". Contexts have memory,
// code and faults of their own: buffers, kernels and events of one cannot be
// used with streams of another, except by copies between devices. For the
// context that `device` itself uses, the result is `device`, retained, and the
// owner is released at once. Otherwise each call makes a new device.
//
//   INVALID_ARGUMENT  `context` is NULL, of another GPU, or none
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_device`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_device_adopt(kiln_device_t* device, void* context,
                  const kiln_owner_t* owner, kiln_device_t** out_device);

// The range of stream priorities: from `*out_greatest`, which is the lower
// number (-5), to `*out_least` (0). Both are 0 where a device has no
// priorities. DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_device_priorities(
    kiln_device_t* device, int32_t* out_least, int32_t* out_greatest);

KILN_EXTERN_C_END

#endif  // KILN_DEVICE_H_
