// SPDX-License-Identifier: Apache-2.0
//
// device: streams and events: the order of work on a device.
//
// Work put on a stream runs in the order in which it was put there; work of two
// streams runs in any order unless an event orders them.
//
// Of a stream that is captured (kiln/capture.h) every call below may also be
// INVALID_STATE: one that waits for it, asks it or an event recorded on it, or
// has it wait for an event recorded on a stream that is not, breaks the
// capture; one on the stream of a graph builder that does not capture, or of
// which a conditional body is captured, is refused and breaks nothing.
#ifndef KILN_STREAM_H_
#define KILN_STREAM_H_

#include "kiln/device.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// An order of work. thread-safe
//
// Reference-counted. Retains its device. The last release does not wait: work
// that is on the stream still runs.
typedef struct kiln_stream_t kiln_stream_t;

// A point in a stream. thread-safe
//
// Reference-counted. Retains its device.
typedef struct kiln_event_t kiln_event_t;

// How a stream is made. thread-compatible
typedef struct kiln_stream_options_t {
  uint32_t struct_size;  // sizeof(kiln_stream_options_t)

  // KILN_SWITCH_*: order this stream with the device's default stream, as CUDA
  // does unless told otherwise. Default: off.
  uint32_t with_default_stream;

  // Which stream goes first where the device has to choose: lower numbers
  // first, 0 last. A hint. Not one of kiln_device_priorities is
  // INVALID_ARGUMENT. Default: 0.
  int32_t priority;
} kiln_stream_options_t;

// All defaults. Since 0.1.
static inline kiln_stream_options_t kiln_stream_options_default(void) {
  kiln_stream_options_t options = {(uint32_t)sizeof(options), 0, 0};
  return options;
}

// Makes a stream. `options` may be NULL. INVALID_ARGUMENT (a priority that the
// device lacks), DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY. The caller owns
// `*out_stream`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_stream_create(kiln_device_t* device, const kiln_stream_options_t* options,
                   kiln_stream_t** out_stream);

// What a stream is.
enum {
  KILN_STREAM_CREATED = 0,     // by kiln_stream_create
  KILN_STREAM_LEGACY = 1,      // the default stream of all threads
  KILN_STREAM_PER_THREAD = 2,  // the default stream of each thread
  KILN_STREAM_FOREIGN = 3,     // foreign
  KILN_STREAM_CAPTURED = 4,    // a graph builder's own (kiln/capture.h)
};

// One of the device's default streams: `which` is KILN_STREAM_LEGACY or
// KILN_STREAM_PER_THREAD. The object belongs to this device whatever context
// is current where it is used; one of the latter means, in each call, the
// stream of the calling thread. Every other library of the process may use
// them too. DEVICE_LOST, OUT_OF_MEMORY. The caller owns `*out_stream`. Since
// 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_stream_default(
    kiln_device_t* device, uint32_t which, kiln_stream_t** out_stream);

// Wraps a driver's stream (CUstream, cudaStream_t): it is used as it is and
// never destroyed. NULL, and the driver's two constants, are default streams.
// `owner` may be NULL (kiln_owner_t).
//
// The same handle gives the same object, with a reference more, as long as
// that lives: of a stream that kiln_stream_create made this is the stream
// itself, which needs no owner, so that one is released before the call
// returns. A foreign stream with an owner is an object of its own.
//
//   INVALID_ARGUMENT  a stream of another context than the device's
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_stream`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_stream_adopt(kiln_device_t* device, void* handle,
                  const kiln_owner_t* owner, kiln_stream_t** out_stream);

// Adds or releases a reference. NULL is accepted. The last release may be made
// on any thread, whatever context is current there. Since 0.1.
KILN_API void kiln_stream_retain(kiln_stream_t* stream);
KILN_API void kiln_stream_release(kiln_stream_t* stream);

// The device it was made on. Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_stream_device(const kiln_stream_t* stream);

// The driver's handle (CUstream), for calls of a host program to the same
// driver. Valid as long as the stream lives. Borrowed. Since 0.1.
KILN_API void* kiln_stream_handle(const kiln_stream_t* stream);

// What it is: KILN_STREAM_*. Since 0.1.
KILN_API uint32_t kiln_stream_kind(const kiln_stream_t* stream);

// The priority it has; of a foreign stream what the driver reported when it was
// adopted, 0 of a default stream. Since 0.1.
KILN_API int32_t kiln_stream_priority(const kiln_stream_t* stream);

// Whether the stream is ordered with the legacy default stream. Since 0.1.
KILN_API bool kiln_stream_with_default(const kiln_stream_t* stream);

// Waits until all work on the stream is done. A fault of a kernel is
// DEVICE_LOST with the native error, and on the software device its report as
// annotations. DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_stream_synchronize(kiln_stream_t* stream);

// The same for at most `timeout_ns` nanoseconds; the stream is queried at least
// once, so 0 detects a completed stream. When they have passed the device is
// marked lost and the call is DEVICE_LOST. A GPU's kernel cannot be ended, so
// nothing that it may use is freed any more and the process should end. The
// software device stops what runs and skips what waits; opened anew it works.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_stream_wait(kiln_stream_t* stream,
                                                      uint64_t timeout_ns);

// Queries, without waiting, whether all work on the stream is done. Not done is
// OK with `*out_ready` false. Statuses as synchronize. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_stream_query(kiln_stream_t* stream,
                                                       bool* out_ready);

// Later work on the stream waits for what `event` has recorded by now; an event
// never recorded causes no wait. The event may be of another device of the same
// driver; INVALID_ARGUMENT for one of another driver. DEVICE_LOST,
// DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_stream_wait_event(kiln_stream_t* stream, kiln_event_t* event);

// Later work on the stream waits for all that is on `other` now, which may be a
// stream of another device of the same driver. Nothing for the stream itself.
// INVALID_ARGUMENT for one of another driver. DEVICE_LOST, DRIVER_ERROR. Since
// 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_stream_wait_stream(kiln_stream_t* stream, kiln_stream_t* other);

// What kiln_stream_call_host calls. thread-safe
typedef void (*kiln_host_fn_t)(void* user_data);

// Calls `fn(user_data)` on the host after all work now on the stream; later
// work on the stream waits until it has returned. DEVICE_LOST, DRIVER_ERROR.
//
//   * It runs on a thread of the driver's own, one at a time there: it should
//     be short, and must not wait for work on the device.
//   * It must call neither the driver nor any function of this library that
//     does, releases included: the driver refuses that or hangs. Pass objects
//     to release to another thread.
//   * It is not called if the device is lost before its turn. What `user_data`
//     points at must live until it was called. Should this call fail only
//     because the caller's context could not be put back, it is called too.
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_stream_call_host(
    kiln_stream_t* stream, kiln_host_fn_t fn, void* user_data);

// How an event is made. thread-compatible
typedef struct kiln_event_options_t {
  uint32_t struct_size;  // sizeof(kiln_event_options_t)
  uint32_t timing;       // KILN_SWITCH_*: takes the time. Default: off.

  // KILN_SWITCH_*: a thread that waits for it sleeps, and does not spin.
  // Default: off.
  uint32_t blocking;

  // KILN_SWITCH_*: another process may open it (kiln_event_export). Takes no
  // time: `timing` too is INVALID_ARGUMENT. UNSUPPORTED where the driver shares
  // no events, as the software device. Default: off.
  uint32_t interprocess;
} kiln_event_options_t;

// All defaults. Since 0.1.
static inline kiln_event_options_t kiln_event_options_default(void) {
  kiln_event_options_t options = {(uint32_t)sizeof(options), 0, 0, 0};
  return options;
}

// Makes an event. `options` may be NULL. INVALID_ARGUMENT and UNSUPPORTED as
// the options say, DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY. The caller owns
// `*out_event`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_event_create(kiln_device_t* device, const kiln_event_options_t* options,
                  kiln_event_t** out_event);

// Wraps a driver's event (CUevent, cudaEvent_t) of the device's context, which
// cannot be verified: it is used as it is and never destroyed. What it was made
// with is not known here. `owner` may be NULL (kiln_owner_t); the same handle
// returns the same object as with kiln_stream_adopt. INVALID_ARGUMENT for NULL.
// DEVICE_LOST, OUT_OF_MEMORY. The caller owns `*out_event`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_event_adopt(kiln_device_t* device,
                                                      void* handle,
                                                      const kiln_owner_t* owner,
                                                      kiln_event_t** out_event);

// An event for another process. thread-compatible
//
// Bytes that may be sent to it in any manner, on the same machine.
typedef struct kiln_event_export_t {
  uint8_t bytes[64];
} kiln_event_export_t;

// Exports the event to another process. It must have been made with
// `interprocess` (INVALID_STATE), and must live until the other has opened it.
// UNSUPPORTED (a driver that shares no events), DEVICE_LOST, DRIVER_ERROR.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_event_export(kiln_event_t* event, kiln_event_export_t* out_export);

// Opens an event of another process, on the same GPU: both may record it and
// wait for it. It must not be used after that process has released its own.
// UNSUPPORTED (a driver that shares no events), DEVICE_LOST, DRIVER_ERROR,
// OUT_OF_MEMORY. The caller owns `*out_event`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_event_import(kiln_device_t* device, const kiln_event_export_t* exported,
                  kiln_event_t** out_event);

// Adds or releases a reference. NULL is accepted. The last release may be made
// on any thread, whatever context is current there; streams that wait for the
// event go on waiting. Since 0.1.
KILN_API void kiln_event_retain(kiln_event_t* event);
KILN_API void kiln_event_release(kiln_event_t* event);

// The device it was made on. Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_event_device(const kiln_event_t* event);

// The driver's handle (CUevent). Valid as long as the event lives. Borrowed.
// Since 0.1.
KILN_API void* kiln_event_handle(const kiln_event_t* event);

// What it was made with: KILN_SWITCH_ON or KILN_SWITCH_OFF, KILN_SWITCH_DEFAULT
// where that is not known: of a foreign event, and of one of another process
// whether it is blocking. Since 0.1.
KILN_API uint32_t kiln_event_timing(const kiln_event_t* event);
KILN_API uint32_t kiln_event_blocking(const kiln_event_t* event);
KILN_API uint32_t kiln_event_interprocess(const kiln_event_t* event);

// Records the event after the work now on the stream. INVALID_ARGUMENT for a
// stream of another device. DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_event_record(kiln_event_t* event,
                                                       kiln_stream_t* stream);

// Queries, without waiting, whether the event has been reached; one never
// recorded has. Not reached is OK with `*out_ready` false. A fault of an
// earlier kernel is DEVICE_LOST. DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_event_query(kiln_event_t* event,
                                                      bool* out_ready);

// Waits until the event has been reached; not at all for one never recorded.
// Statuses as query. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_event_synchronize(kiln_event_t* event);

// Nanoseconds from `start` to `end`, in the driver's resolution (about half a
// microsecond); 0 where `end` came first.
//
//   INVALID_STATE     one was made without timing, or never recorded
//   INVALID_ARGUMENT  events of two devices; of a foreign one, of which only
//                     the driver knows, also what is INVALID_STATE of others
//   NOT_READY (bare)  one is not reached yet
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_event_elapsed(
    kiln_event_t* start, kiln_event_t* end, uint64_t* out_elapsed_ns);

KILN_EXTERN_C_END

#endif  // KILN_STREAM_H_
