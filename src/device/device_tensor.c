// SPDX-License-Identifier: Apache-2.0
//
// device: tensor maps, checked field by field: a driver says INVALID_VALUE to
// whatever is wrong with one.
#include <string.h>

#include "base/options.h"
#include "device/device_inside.h"

enum { MOST_BOX = 256, MOST_STEP = 8, CHUNK = 16 };

static const uint64_t most_size = UINT64_C(1) << 32;
static const uint64_t most_stride = UINT64_C(1) << 40;
static const uint8_t kBytes[] = {0, 1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

static bool is_float(uint32_t type) {
  return type >= KILN_TENSOR_F16;
}

static kiln_status_t wrong(const char* field, uint32_t index, uint64_t value,
                           const char* may_be) {
  return kilni_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "%s[%u] of a tensor map is %llu", field,
                 (unsigned)index, (unsigned long long)value),
      "it may be %s", may_be);
}

static kiln_status_t check_words(const kiln_tensor_options_t* given) {
  KILNI_CHECK_ARGUMENT(
      given->type >= KILN_TENSOR_U8 && given->type <= KILN_TENSOR_TF32_FTZ,
      "options.type");
  KILNI_CHECK_ARGUMENT(given->interleave == 0 || given->interleave == 16 ||
                           given->interleave == 32,
                       "options.interleave");
  KILNI_CHECK_ARGUMENT(
      given->rank >= (given->interleave != 0 ? 3u : 1u) && given->rank <= 5,
      "options.rank");
  KILNI_CHECK_ARGUMENT(given->swizzle <= KILN_TENSOR_SWIZZLE_128,
                       "options.swizzle");
  KILNI_CHECK_ARGUMENT(
      given->interleave != 32 || given->swizzle == KILN_TENSOR_SWIZZLE_32,
      "options.swizzle");
  KILNI_CHECK_ARGUMENT(given->fetch_bytes == 0 || given->fetch_bytes == 64 ||
                           given->fetch_bytes == 128 ||
                           given->fetch_bytes == 256,
                       "options.fetch_bytes");
  KILNI_CHECK_ARGUMENT(
      given->nan_fill <= KILN_SWITCH_OFF ||
          (given->nan_fill == KILN_SWITCH_ON && is_float(given->type)),
      "options.nan_fill");
  KILNI_CHECK_ARGUMENT(given->reserved == 0, "options.reserved");
  return NULL;
}

static kiln_status_t check_memory(const kiln_tensor_options_t* given) {
  const bool wide = given->interleave == 32;
  const uint64_t step = wide ? 32 : 16;
  const char* multiples = wide ? "a multiple of 32" : "a multiple of 16";
  if (given->address == 0 || given->address % step != 0) {
    return wrong("address", 0, given->address, multiples);
  }
  for (uint32_t i = 0; i < given->rank; i++) {
    if (given->sizes[i] == 0 || given->sizes[i] > most_size) {
      return wrong("sizes", i, given->sizes[i], "1 to 2^32");
    }
  }
  for (uint32_t i = 0; i + 1 < given->rank; i++) {
    if (given->strides[i] % step != 0) {
      return wrong("strides", i, given->strides[i], multiples);
    }
    if (given->strides[i] == 0 || given->strides[i] >= most_stride) {
      return wrong("strides", i, given->strides[i], "below 2^40, and not 0");
    }
  }
  return NULL;
}

static kiln_status_t check_box(kiln_tensor_options_t* given) {
  for (uint32_t i = 0; i < given->rank; i++) {
    if (given->box[i] == 0 || given->box[i] > MOST_BOX) {
      return wrong("box", i, given->box[i], "1 to 256");
    }
    if (given->steps[i] == 0) given->steps[i] = 1;
    if (given->steps[i] > MOST_STEP) {
      return wrong("steps", i, given->steps[i], "1 to 8");
    }
  }
  if (given->interleave != 0) return NULL;
  const uint32_t row = given->box[0] * kBytes[given->type];
  if (row % CHUNK != 0) {
    return wrong("box", 0, given->box[0], "a multiple of 16 bytes");
  }
  if (given->swizzle != 0 && row > ((uint32_t)CHUNK << given->swizzle)) {
    return wrong("box", 0, given->box[0],
                 "at most as many bytes as the swizzle has");
  }
  return NULL;
}

static kiln_status_t check_device(kiln_device_t* device) {
  KILNI_RETURN_IF_ERROR(kilni_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(
      kilni_cuda_need(device->table, KILNI_CUDA_ROW_cuTensorMapEncodeTiled));
  int can = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDeviceGetAttribute, &can,
                    KILN_CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
                    device->handle);
  if (!kiln_status_is_ok(status) || can) return status;
  return kilni_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "\"%s\" has no tensor maps", device->name),
      "use a GPU of compute capability 9.0 or later, or plain copies");
}

kiln_status_t kiln_tensor_map_encode(kiln_device_t* device,
                                     const kiln_tensor_options_t* options,
                                     kiln_tensor_map_t* out_map) {
  KILNI_CHECK_ARGUMENT(out_map != NULL, "out_map");
  memset(out_map, 0, sizeof(*out_map));
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(options != NULL, "options");
  kiln_tensor_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_options_read(options, "kiln_tensor_options_t",
                                           sizeof(given), &given));
  KILNI_RETURN_IF_ERROR(check_words(&given));
  KILNI_RETURN_IF_ERROR(check_memory(&given));
  KILNI_RETURN_IF_ERROR(check_box(&given));
  KILNI_RETURN_IF_ERROR(check_device(device));
  // 0, 64, 128 and 256 are the driver's 0 to 3.
  const uint32_t fetch = given.fetch_bytes == 256 ? 3 : given.fetch_bytes / 64;
  kiln_cu_tensor_map_t map;
  memset(&map, 0, sizeof(map));
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuTensorMapEncodeTiled, &map,
                    given.type - 1, given.rank, (void*)(uintptr_t)given.address,
                    given.sizes, given.strides, given.box, given.steps,
                    given.interleave / 16, given.swizzle, fetch,
                    given.nan_fill == KILN_SWITCH_ON ? 1 : 0);
  if (kiln_status_is_ok(status)) memcpy(out_map, &map, sizeof(*out_map));
  return status;
}
