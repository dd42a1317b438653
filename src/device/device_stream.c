// SPDX-License-Identifier: Apache-2.0
//
// device: streams.
#include "base/alloc.h"
#include "base/options.h"
#include "base/thread.h"
#include "device/device_inside.h"

// Between two looks at a stream with a time limit: short at first, for kernels
// that are nearly done.
enum { POLL_FIRST_NS = 20 * 1000, POLL_LAST_NS = 1000 * 1000 };

kiln_status_t kiln_stream_create(kiln_device_t* device,
                                 const kiln_stream_options_t* options,
                                 kiln_stream_t** out_stream) {
  KILNI_CHECK_ARGUMENT(out_stream != NULL, "out_stream");
  *out_stream = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_stream_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_options_read(options, "kiln_stream_options_t",
                                           sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.with_default_stream <= KILN_SWITCH_ON,
                       "options.with_default_stream");
  KILNI_RETURN_IF_ERROR(kilni_host_check_fork(device->host));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(device->host->allocator, sizeof(kiln_stream_t), &block));
  kiln_stream_t* stream = block;
  stream->device = device;
  kiln_device_retain(device);
  atomic_init(&stream->references, 1);
  unsigned int flags = given.with_default_stream == KILN_SWITCH_ON
                           ? KILN_CU_STREAM_DEFAULT
                           : KILN_CU_STREAM_NON_BLOCKING;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuStreamCreate, &stream->handle, flags);
  if (!kiln_status_is_ok(status)) {
    kiln_stream_release(stream);
    return status;
  }
  *out_stream = stream;
  return NULL;
}

void kiln_stream_retain(kiln_stream_t* stream) {
  if (stream == NULL) return;
  atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
}

void kiln_stream_release(kiln_stream_t* stream) {
  if (stream == NULL || kilni_device_is_forked(stream->device)) return;
  if (atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_device_t* device = stream->device;
  if (stream->handle != NULL) {
    KILNI_DEVICE_END(device, cuStreamDestroy, stream->handle);
  }
  kilni_free(device->host->allocator, stream, sizeof(*stream));
  kiln_device_release(device);
}

kiln_device_t* kiln_stream_device(const kiln_stream_t* stream) {
  return stream->device;
}

kiln_status_t kiln_stream_synchronize(kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, stream->device, cuStreamSynchronize,
                    stream->handle);
  return status;
}

kiln_status_t kiln_stream_query(kiln_stream_t* stream, bool* out_ready) {
  KILNI_CHECK_ARGUMENT(out_ready != NULL, "out_ready");
  *out_ready = false;
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, stream->device, cuStreamQuery, stream->handle);
  if (kiln_status_code(status) == KILN_STATUS_NOT_READY) return NULL;
  *out_ready = kiln_status_is_ok(status);
  return status;
}

static kiln_status_t limit_reached(kiln_device_t* device, uint64_t timeout_ns) {
  kilni_device_mark_lost(device);
  return kilni_status_with_fix(
      KILNI_FAIL(DEVICE_LOST,
                 "the work on \"%s\" was not done within its time limit of "
                 "%llu.%03llu s",
                 device->name, (unsigned long long)(timeout_ns / 1000000000u),
                 (unsigned long long)(timeout_ns / 1000000u % 1000u)),
      "raise the limit, or look for a loop without an end; a running kernel "
      "cannot be stopped, so this process should end");
}

kiln_status_t kiln_stream_wait(kiln_stream_t* stream, uint64_t timeout_ns) {
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  uint64_t start = kilni_time_ns();
  kilni_mutex_t mutex;
  kilni_cond_t never;
  KILNI_RETURN_IF_ERROR(kilni_mutex_init(&mutex));
  kiln_status_t status = kilni_cond_init(&never);
  if (!kiln_status_is_ok(status)) {
    kilni_mutex_deinit(&mutex);
    return status;
  }
  uint64_t pause = POLL_FIRST_NS;
  for (;;) {
    bool ready = false;
    status = kiln_stream_query(stream, &ready);
    if (ready || !kiln_status_is_ok(status)) break;
    uint64_t now = kilni_time_ns();
    if (now - start >= timeout_ns) {
      status = limit_reached(stream->device, timeout_ns);
      break;
    }
    uint64_t left = timeout_ns - (now - start);
    uint64_t until = now + (pause < left ? pause : left);
    kilni_mutex_lock(&mutex);
    while (kilni_cond_wait_until(&never, &mutex, until)) {
    }
    kilni_mutex_unlock(&mutex);
    if (pause < POLL_LAST_NS) pause *= 2;
  }
  kilni_cond_deinit(&never);
  kilni_mutex_deinit(&mutex);
  return status;
}

kiln_status_t kiln_stream_wait_event(kiln_stream_t* stream,
                                     kiln_event_t* event) {
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_CHECK_ARGUMENT(event != NULL, "event");
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_same(stream->device, event->device, "the event"));
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, stream->device, cuStreamWaitEvent, stream->handle,
                    event->handle, 0);
  return status;
}
