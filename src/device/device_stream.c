// SPDX-License-Identifier: Apache-2.0
//
// device: streams: those it makes, the default ones, and other people's.
//
// A handle that exists once belongs to one object: the device's registry maps
// it back. Only a stream with a foreign owner is not entered, since the handle
// may later be adopted with another owner.
#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"

static kilni_base_registry_key_t stream_key_of(kiln_cu_stream_t handle) {
  kilni_base_registry_key_t key = {(uint64_t)(uintptr_t)handle,
                                   KILNI_REGISTERED_STREAM, 0};
  return key;
}

static bool is_default(kiln_cu_stream_t handle) {
  return handle == KILN_CU_STREAM_LEGACY || handle == KILN_CU_STREAM_PER_THREAD;
}

// An object without a handle.
static kiln_status_t stream_make(kiln_device_t* device, uint32_t kind,
                                 kiln_stream_t** out_stream) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_stream_t), &block));
  kiln_stream_t* stream = block;
  stream->device = device;
  kiln_device_retain(device);
  atomic_init(&stream->references, 1);
  stream->kind = kind;
  *out_stream = stream;
  return kiln_ok();
}

// ---- Made here ----

static kiln_status_t check_priority(kiln_device_t* device, int32_t priority) {
  if (priority == 0) return kiln_ok();
  int32_t least = 0;
  int32_t greatest = 0;
  KILNI_RETURN_IF_ERROR(kiln_device_priorities(device, &least, &greatest));
  if (priority >= greatest && priority <= least) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "a stream of priority %d; \"%s\" has %d (first) to %d (last)",
                 (int)priority, device->name, (int)greatest, (int)least),
      "use a priority from %d to %d", (int)greatest, (int)least);
}

// A part makes its streams by a row of their own where there is one: its
// context then needs not be current, which it may be for one thread only.
kiln_status_t kilni_device_stream_make(kiln_device_t* device,
                                       unsigned int flags, int32_t priority,
                                       kiln_cu_stream_t* out_stream) {
  kiln_status_t status;
  if (device->parent != NULL &&
      kilni_table_cuda_has(device->table,
                           KILNI_CUDA_ROW_cuGreenCtxStreamCreate)) {
    KILNI_DEVICE_CREATE(status, device, out_stream, cuGreenCtxStreamCreate,
                        device->green, flags, priority);
  } else if (priority == 0) {
    KILNI_DEVICE_CREATE(status, device, out_stream, cuStreamCreate, flags);
  } else {
    KILNI_DEVICE_CREATE(status, device, out_stream, cuStreamCreateWithPriority,
                        flags, priority);
  }
  return status;
}

static kiln_status_t check_blocking(const kiln_device_t* device,
                                    uint32_t with_default_stream) {
  if (device->parent == NULL || with_default_stream != KILN_SWITCH_ON) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "a stream ordered with the default stream, on \"%s\", which "
                 "is a part of a device",
                 device->name),
      "leave `with_default_stream` in kiln_stream_options_t as it is, and "
      "order streams by events");
}

kiln_status_t kiln_stream_create(kiln_device_t* device,
                                 const kiln_stream_options_t* options,
                                 kiln_stream_t** out_stream) {
  KILNI_CHECK_ARGUMENT(out_stream != NULL, "out_stream");
  *out_stream = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_stream_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kiln_stream_options_t", sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.with_default_stream <= KILN_SWITCH_ON,
                       "options.with_default_stream");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(check_blocking(device, given.with_default_stream));
  KILNI_RETURN_IF_ERROR(check_priority(device, given.priority));
  kiln_stream_t* stream = NULL;
  KILNI_RETURN_IF_ERROR(stream_make(device, KILN_STREAM_CREATED, &stream));
  stream->with_default_stream = given.with_default_stream == KILN_SWITCH_ON;
  stream->priority = given.priority;
  kiln_status_t status = kilni_device_stream_make(
      device,
      stream->with_default_stream ? KILN_CU_STREAM_DEFAULT
                                  : KILN_CU_STREAM_NON_BLOCKING,
      stream->priority, &stream->handle);
  if (!kiln_status_is_ok(status)) {
    kiln_stream_release(stream);
    return status;
  }
  kilni_base_registry_put(&device->registry, &stream->entry,
                          stream_key_of(stream->handle), stream,
                          &stream->references);
  *out_stream = stream;
  return kiln_ok();
}

kiln_status_t kilni_device_stream_make_captured(kiln_device_t* device,
                                                kiln_stream_t** out_stream) {
  *out_stream = NULL;
  kiln_stream_t* stream = NULL;
  KILNI_RETURN_IF_ERROR(stream_make(device, KILN_STREAM_CAPTURED, &stream));
  atomic_init(&stream->way, KILNI_WAY_IDLE);
  kiln_status_t status = kilni_device_stream_acquire(device, &stream->handle);
  if (!kiln_status_is_ok(status)) {
    kiln_stream_release(stream);
    return status;
  }
  kilni_base_registry_put(&device->registry, &stream->entry,
                          stream_key_of(stream->handle), stream,
                          &stream->references);
  *out_stream = stream;
  return kiln_ok();
}

void kilni_device_stream_set_idle(kiln_stream_t* stream, bool idle) {
  if (stream->kind != KILN_STREAM_CAPTURED) return;
  if (idle) {
    atomic_fetch_or(&stream->way, KILNI_WAY_IDLE);
  } else {
    atomic_fetch_and(&stream->way, ~(unsigned)KILNI_WAY_IDLE);
  }
}

// ---- Made elsewhere ----

// Returns the object, or the living one that already has its handle.
static void stream_enter(kiln_stream_t* stream, kiln_stream_t** out_stream) {
  kiln_stream_t* first = kilni_base_registry_add(
      &stream->device->registry, &stream->entry, stream_key_of(stream->handle),
      stream, &stream->references);
  if (first != NULL) kiln_stream_release(stream);
  *out_stream = first != NULL ? first : stream;
}

// A default stream takes the context that is current, so that calls on it make
// this device's so.
static kiln_status_t make_default(kiln_device_t* device,
                                  kiln_cu_stream_t handle,
                                  kiln_stream_t** out_stream) {
  bool legacy = handle == KILN_CU_STREAM_LEGACY;
  KILNI_RETURN_IF_ERROR(
      stream_make(device, legacy ? KILN_STREAM_LEGACY : KILN_STREAM_PER_THREAD,
                  out_stream));
  (*out_stream)->handle = handle;
  atomic_init(&(*out_stream)->way, KILNI_WAY_CURRENT);
  (*out_stream)->with_default_stream = true;
  return kiln_ok();
}

kiln_status_t kiln_stream_default(kiln_device_t* device, uint32_t which,
                                  kiln_stream_t** out_stream) {
  KILNI_CHECK_ARGUMENT(out_stream != NULL, "out_stream");
  *out_stream = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(
      which == KILN_STREAM_LEGACY || which == KILN_STREAM_PER_THREAD, "which");
  return kiln_stream_adopt(device,
                           which == KILN_STREAM_LEGACY
                               ? KILN_CU_STREAM_LEGACY
                               : KILN_CU_STREAM_PER_THREAD,
                           NULL, out_stream);
}

static kiln_status_t ask_context(kiln_device_t* device,
                                 kiln_cu_stream_t handle) {
  kiln_cu_context_t context = NULL;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuStreamGetCtx, handle, &context);
  if (!kiln_status_is_ok(status) || context == device->context) return status;
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "the stream %p belongs to the context %p, and \"%s\" uses the "
                 "context %p",
                 (void*)handle, (void*)context, device->name,
                 (void*)device->context),
      "adopt it on the device of its own context");
}

static kiln_status_t make_foreign(kiln_device_t* device,
                                  kiln_cu_stream_t handle,
                                  kiln_stream_t** out_stream) {
  KILNI_RETURN_IF_ERROR(ask_context(device, handle));
  unsigned int flags = 0;
  int priority = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuStreamGetFlags, handle, &flags);
  KILNI_RETURN_IF_ERROR(status);
  KILNI_DEVICE_CALL(status, device, cuStreamGetPriority, handle, &priority);
  KILNI_RETURN_IF_ERROR(status);
  KILNI_RETURN_IF_ERROR(stream_make(device, KILN_STREAM_FOREIGN, out_stream));
  (*out_stream)->handle = handle;
  (*out_stream)->priority = priority;
  (*out_stream)->with_default_stream =
      (flags & KILN_CU_STREAM_NON_BLOCKING) == 0;
  return kiln_ok();
}

kiln_status_t kiln_stream_adopt(kiln_device_t* device, void* handle,
                                const kiln_owner_t* owner,
                                kiln_stream_t** out_stream) {
  KILNI_CHECK_ARGUMENT(out_stream != NULL, "out_stream");
  *out_stream = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  bool owned = owner != NULL && owner->release != NULL;
  kiln_cu_stream_t stream = handle;
  if (stream == NULL) stream = KILN_CU_STREAM_LEGACY;
  kiln_stream_t* known =
      kilni_base_registry_find(&device->registry, stream_key_of(stream));
  if (known != NULL && (!owned || known->kind == KILN_STREAM_CREATED)) {
    *out_stream = known;
    if (owned) kilni_device_owner_release(*owner);
    return kiln_ok();
  }
  // Other code keeps that object's handle alive, for an unknown time.
  kiln_stream_release(known);
  kiln_stream_t* made = NULL;
  KILNI_RETURN_IF_ERROR(is_default(stream)
                            ? make_default(device, stream, &made)
                            : make_foreign(device, stream, &made));
  if (owned) {
    made->owner = *owner;
    *out_stream = made;
  } else {
    stream_enter(made, out_stream);
  }
  return kiln_ok();
}

// ---- Life ----

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
  if (stream->left != NULL) kilni_device_stream_drop_left(stream);
  kilni_base_registry_remove(&device->registry, &stream->entry);
  if (stream->kind == KILN_STREAM_CREATED && stream->handle != NULL) {
    KILNI_DEVICE_END(device, cuStreamDestroy, stream->handle);
  }
  if (stream->kind == KILN_STREAM_CAPTURED && stream->handle != NULL) {
    if (stream->spoiled || stream->abandoned) {
      kilni_device_stream_forget(device, stream->handle, !stream->abandoned);
    } else {
      kilni_device_stream_recycle(device, stream->handle);
    }
  }
  kiln_owner_t owner = stream->owner;
  kilni_base_free(device->host->allocator, stream, sizeof(*stream));
  kilni_device_owner_release(owner);
  kiln_device_release(device);
}

kiln_device_t* kiln_stream_device(const kiln_stream_t* stream) {
  return stream->device;
}

void* kiln_stream_handle(const kiln_stream_t* stream) {
  return stream->handle;
}

uint32_t kiln_stream_kind(const kiln_stream_t* stream) {
  return stream->kind;
}

int32_t kiln_stream_priority(const kiln_stream_t* stream) {
  return stream->priority;
}

bool kiln_stream_with_default(const kiln_stream_t* stream) {
  return stream->with_default_stream;
}
