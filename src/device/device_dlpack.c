// SPDX-License-Identifier: Apache-2.0
//
// device: buffers shown to other libraries, and theirs taken, as DLPack has it.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_inside.h"
#include "kiln/dlpack.h"

// What is given out: the tensor, with what it points at. thread-compatible
typedef struct shown_t {
  union {
    kiln_dlpack_t versioned;
    kiln_dlpack_legacy_t legacy;
  } as;
  kiln_allocator_t allocator;
  kiln_buffer_t* buffer;
  int64_t shape[KILN_DLPACK_RANK_MOST];
  int64_t strides[KILN_DLPACK_RANK_MOST];
} shown_t;

static void end_shown(shown_t* shown) {
  kiln_buffer_t* buffer = shown->buffer;
  kilni_base_free(shown->allocator, shown, sizeof(*shown));
  kiln_buffer_release(buffer);
}

static void end_versioned(kiln_dlpack_t* self) {
  end_shown(self->owner);
}

static void end_legacy(kiln_dlpack_legacy_t* self) {
  end_shown(self->owner);
}

// The bytes of `rank` dimensions; false for a shape or type without a size.
static bool dlpack_size_of(const int64_t* shape, uint32_t rank,
                           kiln_dlpack_type_t type, uint64_t* out_bytes) {
  uint64_t bits = (uint64_t)type.bits * type.lanes;
  if (bits == 0 || bits % 8 != 0) return false;
  uint64_t bytes = bits / 8;
  for (uint32_t i = 0; i < rank; i++) {
    if (shape[i] < 0) return false;
    uint64_t extent = (uint64_t)shape[i];
    if (extent != 0 && bytes > INT64_MAX / extent) return false;
    bytes *= extent;
  }
  *out_bytes = bytes;
  return true;
}

// ---- Showing ----

static kiln_status_t dlpack_device_of(const kiln_buffer_t* buffer,
                                      kiln_dlpack_device_t* out_device) {
  const kiln_device_t* whole = buffer->device->whole;
  kiln_dlpack_device_t device = {KILN_DLPACK_CPU, 0};
  if (whole->info.kind != KILN_DEVICE_KIND_SOFT) {
    static const int32_t types[] = {KILN_DLPACK_CUDA, KILN_DLPACK_CUDA_HOST,
                                    KILN_DLPACK_CUDA_MANAGED};
    device.type = types[buffer->kind];
    if (buffer->kind != KILN_MEMORY_PINNED) device.id = whole->handle;
  } else if (buffer->kind == KILN_MEMORY_DEVICE) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "memory of \"%s\" has addresses that no other library can "
                   "use",
                   buffer->device->name),
        "make the buffer with KILN_MEMORY_PINNED or KILN_MEMORY_MANAGED");
  }
  *out_device = device;
  return kiln_ok();
}

// Why a view has no size in bytes.
static kiln_status_t no_size(const kiln_dlpack_view_t* view) {
  const unsigned bits = (unsigned)view->type.bits * view->type.lanes;
  if (bits == 0 || bits % 8 != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a view of elements of %u bits", bits),
        "use elements of whole bytes: `bits` times `lanes`");
  }
  for (uint32_t i = 0; i < view->rank; i++) {
    if (view->shape[i] >= 0) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a view of %lld elements in dimension %u",
                   (long long)view->shape[i], (unsigned)i),
        "use sizes from 0 on");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "a view of more bytes than can be counted"),
      "use a shape that is inside the buffer");
}

static kiln_status_t read_view(const kiln_buffer_t* buffer,
                               const kiln_dlpack_view_t* view,
                               kiln_dlpack_view_t* given,
                               int64_t* inout_extent) {
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(view, "kiln_dlpack_view_t",
                                                sizeof(*given), given));
  if (view == NULL) *given = kiln_dlpack_view_default();
  if (given->type.bits == 0) given->type = kiln_dlpack_view_default().type;
  KILNI_CHECK_ARGUMENT(given->rank <= KILN_DLPACK_RANK_MOST, "view.rank");
  uint64_t bytes = 0;
  uint64_t left =
      given->offset <= buffer->size ? buffer->size - given->offset : 0;
  if (given->shape == NULL) {
    KILNI_CHECK_ARGUMENT_SAYS(given->rank <= 1, "view.shape",
                              "is NULL, of a view with a rank above 1",
                              "set it to the length of each dimension");
    uint64_t bits = (uint64_t)given->type.bits * given->type.lanes;
    if (bits >= 8) *inout_extent = (int64_t)(left / (bits / 8));
    given->shape = inout_extent;
    given->rank = 1;
  }
  if (!dlpack_size_of(given->shape, given->rank, given->type, &bytes)) {
    return no_size(given);
  }
  return kilni_device_buffer_check(buffer, NULL, given->offset, bytes,
                                   "a view");
}

static void dlpack_describe(const kiln_buffer_t* buffer,
                            const kiln_dlpack_view_t* view,
                            kiln_dlpack_device_t device, shown_t* shown,
                            kiln_dlpack_tensor_t* out_tensor) {
  int64_t stride = 1;
  for (uint32_t i = view->rank; i-- > 0;) {
    shown->shape[i] = view->shape[i];
    shown->strides[i] = stride;
    // Beside a dimension of 0 the others may be of any size.
    int64_t extent_here = view->shape[i] > 1 ? view->shape[i] : 1;
    if (stride <= INT64_MAX / extent_here) stride *= extent_here;
  }
  uint64_t data = device.type == KILN_DLPACK_CPU
                      ? (uint64_t)(uintptr_t)buffer->host
                      : buffer->address;
  if (data != 0) out_tensor->data = (void*)(uintptr_t)(data + view->offset);
  out_tensor->device = device;
  out_tensor->rank = (int32_t)view->rank;
  out_tensor->type = view->type;
  out_tensor->shape = shown->shape;
  out_tensor->strides = shown->strides;
}

// A block with the tensor of its form described; the rest of that is zero.
static kiln_status_t dlpack_show(kiln_buffer_t* buffer,
                                 const kiln_dlpack_view_t* view, bool legacy,
                                 bool* out_read_only, shown_t** out_shown) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  kiln_dlpack_view_t given;
  int64_t extent = 0;
  KILNI_RETURN_IF_ERROR(read_view(buffer, view, &given, &extent));
  *out_read_only = given.read_only != 0;
  if (legacy && *out_read_only) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "a view of memory of \"%s\" that must not be written, for "
                   "DLPack before version 1, which cannot express that",
                   buffer->device->name),
        "use kiln_dlpack_export");
  }
  kiln_dlpack_device_t device = {KILN_DLPACK_CPU, 0};
  KILNI_RETURN_IF_ERROR(dlpack_device_of(buffer, &device));
  void* block = NULL;
  kiln_allocator_t allocator = buffer->device->host->allocator;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(allocator, sizeof(shown_t), &block));
  shown_t* shown = block;
  shown->allocator = allocator;
  shown->buffer = buffer;
  kiln_buffer_retain(buffer);
  dlpack_describe(
      buffer, &given, device, shown,
      legacy ? &shown->as.legacy.tensor : &shown->as.versioned.tensor);
  *out_shown = shown;
  return kiln_ok();
}

kiln_status_t kiln_dlpack_export(kiln_buffer_t* buffer,
                                 const kiln_dlpack_view_t* view,
                                 kiln_dlpack_t** out_tensor) {
  KILNI_CHECK_ARGUMENT(out_tensor != NULL, "out_tensor");
  *out_tensor = NULL;
  shown_t* shown = NULL;
  bool read_only = false;
  KILNI_RETURN_IF_ERROR(dlpack_show(buffer, view, false, &read_only, &shown));
  kiln_dlpack_t* tensor = &shown->as.versioned;
  tensor->major = KILN_DLPACK_MAJOR;
  tensor->minor = KILN_DLPACK_MINOR;
  tensor->owner = shown;
  tensor->deleter = end_versioned;
  tensor->flags = read_only ? KILN_DLPACK_READ_ONLY : 0;
  *out_tensor = tensor;
  return kiln_ok();
}

kiln_status_t kiln_dlpack_export_legacy(kiln_buffer_t* buffer,
                                        const kiln_dlpack_view_t* view,
                                        kiln_dlpack_legacy_t** out_tensor) {
  KILNI_CHECK_ARGUMENT(out_tensor != NULL, "out_tensor");
  *out_tensor = NULL;
  shown_t* shown = NULL;
  bool read_only = false;
  KILNI_RETURN_IF_ERROR(dlpack_show(buffer, view, true, &read_only, &shown));
  kiln_dlpack_legacy_t* tensor = &shown->as.legacy;
  tensor->owner = shown;
  tensor->deleter = end_legacy;
  *out_tensor = tensor;
  return kiln_ok();
}

// ---- Taking ----

static void delete_versioned(void* user_data) {
  kiln_dlpack_t* tensor = user_data;
  if (tensor->deleter != NULL) tensor->deleter(tensor);
}

static void delete_legacy(void* user_data) {
  kiln_dlpack_legacy_t* tensor = user_data;
  if (tensor->deleter != NULL) tensor->deleter(tensor);
}

static kiln_status_t dlpack_check_place(const kiln_device_t* device,
                                        const kiln_dlpack_device_t* place) {
  switch (place->type) {
    case KILN_DLPACK_CPU:  // if the driver knows it
    case KILN_DLPACK_CUDA_HOST:
    case KILN_DLPACK_CUDA_MANAGED:
      return kiln_ok();
    case KILN_DLPACK_CUDA:
      if (device->info.kind == KILN_DEVICE_KIND_SOFT) break;
      if (place->id == device->whole->handle) return kiln_ok();
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "a tensor of device %d, not of \"%s\"",
                     (int)place->id, device->name),
          "open the device that owns it");
    default:
      break;
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "\"%s\" cannot use memory of DLPack's kind %d",
                 device->name, (int)place->type),
      "have the other library copy it to this device first");
}

// Whether the elements are contiguous, the last index the densest.
static bool is_compact(const kiln_dlpack_tensor_t* tensor) {
  int64_t stride = 1;
  for (int32_t i = tensor->rank; tensor->strides != NULL && i-- > 0;) {
    if (tensor->shape[i] == 1) continue;
    if (tensor->strides[i] != stride) return false;
    stride *= tensor->shape[i];
  }
  return true;
}

static kiln_status_t check_tensor(const kiln_dlpack_tensor_t* tensor,
                                  uint64_t* out_bytes) {
  KILNI_CHECK_ARGUMENT_SAYS(
      tensor->rank >= 0 && tensor->rank <= KILN_DLPACK_RANK_MOST &&
          (tensor->rank == 0 || tensor->shape != NULL),
      "tensor.shape", "is NULL, or its rank is out of its range",
      "pass a tensor of rank 0 to KILN_DLPACK_RANK_MOST, with its shape");
  if (dlpack_size_of(tensor->shape, (uint32_t)tensor->rank, tensor->type,
                     out_bytes) &&
      *out_bytes > 0 && is_compact(tensor)) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "a tensor whose elements are not contiguous whole bytes"),
      "have the other library copy it into compact form");
}

static kiln_status_t dlpack_take(kiln_device_t* device,
                                 const kiln_dlpack_tensor_t* tensor,
                                 const kiln_owner_t* owner,
                                 kiln_buffer_t** out_buffer) {
  uint64_t bytes = 0;
  KILNI_RETURN_IF_ERROR(check_tensor(tensor, &bytes));
  KILNI_RETURN_IF_ERROR(dlpack_check_place(device, &tensor->device));
  uint64_t address = (uint64_t)(uintptr_t)tensor->data;
  return kiln_buffer_adopt(device, address + tensor->byte_offset, bytes, owner,
                           out_buffer);
}

kiln_status_t kiln_dlpack_import(kiln_device_t* device, kiln_dlpack_t* tensor,
                                 kiln_buffer_t** out_buffer) {
  KILNI_CHECK_ARGUMENT(out_buffer != NULL, "out_buffer");
  *out_buffer = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(tensor != NULL, "tensor");
  if (tensor->major != KILN_DLPACK_MAJOR) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE, "a tensor of DLPack %u.%u",
                   (unsigned)tensor->major, (unsigned)tensor->minor),
        "ask the other library for version %d", (int)KILN_DLPACK_MAJOR);
  }
  kiln_owner_t owner = {delete_versioned, tensor};
  return dlpack_take(device, &tensor->tensor, &owner, out_buffer);
}

kiln_status_t kiln_dlpack_import_legacy(kiln_device_t* device,
                                        kiln_dlpack_legacy_t* tensor,
                                        kiln_buffer_t** out_buffer) {
  KILNI_CHECK_ARGUMENT(out_buffer != NULL, "out_buffer");
  *out_buffer = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(tensor != NULL, "tensor");
  kiln_owner_t owner = {delete_legacy, tensor};
  return dlpack_take(device, &tensor->tensor, &owner, out_buffer);
}
