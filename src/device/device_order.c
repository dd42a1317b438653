// SPDX-License-Identifier: Apache-2.0
//
// device: what waits for a stream, and what a stream waits for.
#include "base/status_make.h"
#include "base/thread.h"
#include "device/device_scope.h"

// Between two looks at work with a time limit: short at first, for kernels that
// are nearly done.
enum { FIRST_PAUSE_NS = 20 * 1000, LAST_PAUSE_NS = 1000 * 1000 };

kiln_status_t kiln_stream_synchronize(kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuStreamSynchronize, stream->handle);
  return status;
}

kiln_status_t kiln_stream_query(kiln_stream_t* stream, bool* out_ready) {
  KILNI_CHECK_ARGUMENT(out_ready != NULL, "out_ready");
  *out_ready = false;
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuStreamQuery, stream->handle);
  if (kiln_status_code(status) == KILN_STATUS_NOT_READY) return kiln_ok();
  *out_ready = kiln_status_is_ok(status);
  return status;
}

static kiln_status_t limit_reached(kiln_device_t* device, uint64_t timeout_ns) {
  // As many digits as it takes: a limit may be of microseconds.
  int digits = 3;
  uint64_t unit = 1000000u;
  while (timeout_ns % unit != 0) {
    unit /= 1000u;
    digits += 3;
  }
  return kilni_device_end_of_time(
      device,
      KILNI_FAIL(DEVICE_LOST,
                 "the work on \"%s\" did not finish within its time limit of "
                 "%llu.%0*llu s",
                 device->name, (unsigned long long)(timeout_ns / 1000000000u),
                 digits, (unsigned long long)(timeout_ns % 1000000000u / unit)),
      "raise the limit, or look for an infinite loop");
}

kiln_status_t kilni_device_ask_until_ready(const kilni_device_ask_t* ask,
                                           bool* out_ready) {
  *out_ready = false;
  kilni_base_mutex_t mutex;
  kilni_base_cond_t never;
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&mutex));
  kiln_status_t status = kilni_base_cond_init(&never);
  if (!kiln_status_is_ok(status)) {
    kilni_base_mutex_deinit(&mutex);
    return status;
  }
  uint64_t pause = ask->first_pause_ns;
  for (;;) {
    status = ask->ask(ask->user, out_ready);
    if (*out_ready || !kiln_status_is_ok(status)) break;
    uint64_t now = kilni_base_time_ns();
    if (now - ask->began_ns >= ask->timeout_ns) break;
    uint64_t left = ask->timeout_ns - (now - ask->began_ns);
    uint64_t until = now + (pause < left ? pause : left);
    kilni_base_mutex_lock(&mutex);
    while (kilni_base_cond_wait_until(&never, &mutex, until)) {
    }
    kilni_base_mutex_unlock(&mutex);
    pause = pause * 2 < LAST_PAUSE_NS ? pause * 2 : LAST_PAUSE_NS;
  }
  kilni_base_cond_deinit(&never);
  kilni_base_mutex_deinit(&mutex);
  return status;
}

static kiln_status_t ask_stream(void* user, bool* out_ready) {
  return kiln_stream_query(user, out_ready);
}

kiln_status_t kiln_stream_wait(kiln_stream_t* stream, uint64_t timeout_ns) {
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  kilni_device_ask_t ask = {ask_stream, stream, kilni_base_time_ns(),
                            timeout_ns, FIRST_PAUSE_NS};
  bool ready = false;
  KILNI_RETURN_IF_ERROR(kilni_device_ask_until_ready(&ask, &ready));
  return ready ? kiln_ok() : limit_reached(stream->device, timeout_ns);
}

kiln_status_t kiln_stream_wait_event(kiln_stream_t* stream,
                                     kiln_event_t* event) {
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_CHECK_ARGUMENT(event != NULL, "event");
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_driver(stream->device, event->device, "the event"));
  if (event->device != stream->device) {
    KILNI_RETURN_IF_ERROR(kilni_device_check_not_lost(event->device));
  }
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuStreamWaitEvent, stream->handle,
                    event->handle, 0);
  return status;
}

kiln_status_t kiln_stream_wait_stream(kiln_stream_t* stream,
                                      kiln_stream_t* other) {
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_CHECK_ARGUMENT(other != NULL, "other");
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_driver(stream->device, other->device, "`other`"));
  if (stream == other) return kiln_ok();
  // An event is recorded in its own context only: the other stream's.
  kiln_cu_event_t event;
  KILNI_RETURN_IF_ERROR(
      kilni_device_event_acquire(other->device, false, &event));
  kiln_status_t status;
  KILNI_STREAM_CALL(status, other, cuEventRecord, event, other->handle);
  if (kiln_status_is_ok(status)) {
    KILNI_STREAM_CALL(status, stream, cuStreamWaitEvent, stream->handle, event,
                      0);
  }
  kilni_device_event_recycle(other->device, false, event);
  return status;
}

kiln_status_t kiln_stream_call_host(kiln_stream_t* stream, kiln_host_fn_t fn,
                                    void* user_data) {
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_CHECK_ARGUMENT(fn != NULL, "fn");
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuLaunchHostFunc, stream->handle, fn,
                    user_data);
  return status;
}
