// SPDX-License-Identifier: Apache-2.0
//
// device: streams and events: the order of work on a device.
//
// Work put on a stream runs in the order in which it was put there; work of
// two streams runs in any order unless an event stands between.
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
} kiln_stream_options_t;

// All defaults. Since 0.1.
static inline kiln_stream_options_t kiln_stream_options_default(void) {
  kiln_stream_options_t options = {(uint32_t)sizeof(options), 0};
  return options;
}

// Makes a stream. `options` may be NULL. DEVICE_LOST, DRIVER_ERROR,
// OUT_OF_MEMORY. The caller owns `*out_stream`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_stream_create(kiln_device_t* device, const kiln_stream_options_t* options,
                   kiln_stream_t** out_stream);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_stream_retain(kiln_stream_t* stream);
KILN_API void kiln_stream_release(kiln_stream_t* stream);

// Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_stream_device(const kiln_stream_t* stream);

// Waits until all work on the stream is done. A fault of a kernel is
// DEVICE_LOST with the native error, and on the software device its report as
// annotations. DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_stream_synchronize(kiln_stream_t* stream);

// The same for at most `timeout_ns` nanoseconds; the stream is asked once at
// least, so 0 tells a stream that is done. When they have passed the device is
// marked lost and the call is DEVICE_LOST: a running kernel cannot be ended, so
// nothing that it may use is freed any more and the process should end. Since
// 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_stream_wait(kiln_stream_t* stream,
                                                      uint64_t timeout_ns);

// Asks, without waiting, whether all work on the stream is done. Not done is
// OK with `*out_ready` false. Statuses as synchronize. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_stream_query(kiln_stream_t* stream,
                                                       bool* out_ready);

// Later work on the stream waits for what `event` has recorded by now; an
// event never recorded is no wait. INVALID_ARGUMENT for one of another device.
// DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_stream_wait_event(kiln_stream_t* stream, kiln_event_t* event);

// How an event is made. thread-compatible
typedef struct kiln_event_options_t {
  uint32_t struct_size;  // sizeof(kiln_event_options_t)
  uint32_t timing;       // KILN_SWITCH_*: takes the time. Default: off.
} kiln_event_options_t;

// All defaults. Since 0.1.
static inline kiln_event_options_t kiln_event_options_default(void) {
  kiln_event_options_t options = {(uint32_t)sizeof(options), 0};
  return options;
}

// Makes an event. `options` may be NULL. DEVICE_LOST, DRIVER_ERROR,
// OUT_OF_MEMORY. The caller owns `*out_event`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_event_create(kiln_device_t* device, const kiln_event_options_t* options,
                  kiln_event_t** out_event);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_event_retain(kiln_event_t* event);
KILN_API void kiln_event_release(kiln_event_t* event);

// Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_event_device(const kiln_event_t* event);

// Sets the event behind the work that is on the stream now. INVALID_ARGUMENT
// for a stream of another device. DEVICE_LOST, DRIVER_ERROR. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_event_record(kiln_event_t* event,
                                                       kiln_stream_t* stream);

// Asks, without waiting, whether the event has been reached; one never
// recorded has. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_event_query(kiln_event_t* event,
                                                      bool* out_ready);

// Waits until the event has been reached. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_event_synchronize(kiln_event_t* event);

// Nanoseconds from `start` to `end`, as fine as the driver tells (about half a
// microsecond). Both must be of one device, made with timing, recorded
// (INVALID_STATE) and reached (NOT_READY, bare). 0 where `end` came first.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_event_elapsed(
    kiln_event_t* start, kiln_event_t* end, uint64_t* out_elapsed_ns);

KILN_EXTERN_C_END

#endif  // KILN_STREAM_H_
