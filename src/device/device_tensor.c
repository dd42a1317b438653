// SPDX-License-Identifier: Apache-2.0
//
// device: tensor maps, checked field by field: a driver returns INVALID_VALUE
// for every error in one.
#include <string.h>

#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"

enum {
  MOST_BOX = 256,
  MOST_STEP = 8,
  MOST_PIXELS = 1024,
  CHUNK = 16,
  PACKED_BOX = 128,  // of types with gaps in shared memory
};

static const uint64_t kMostSize = UINT64_C(1) << 32;
static const uint64_t kMostStride = UINT64_C(1) << 40;
// Bits of an element in shared memory.
static const uint8_t kBits[] = {0,  8,  16, 32, 32, 64, 64, 16, 32,
                                64, 16, 32, 32, 32, 4,  8,  8};

static bool tensor_is_packed(uint32_t type) {
  return type >= KILN_TENSOR_U4;
}

// With gaps in shared memory.
static bool is_spread(uint32_t type) {
  return type >= KILN_TENSOR_U4_IN_16;
}

static bool tensor_is_float(uint32_t type) {
  return type >= KILN_TENSOR_F16 && !tensor_is_packed(type);
}

static kiln_status_t wrong(const char* field, uint32_t index, int64_t value,
                           const char* may_be) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "%s[%u] of a tensor map is %lld", field,
                 (unsigned)index, (long long)value),
      "it may be %s", may_be);
}

// What a type with gaps goes with.
static bool swizzle_goes(const kiln_tensor_options_t* given) {
  if (!is_spread(given->type)) return true;
  switch (given->swizzle) {
    case KILN_TENSOR_SWIZZLE_NONE:
    case KILN_TENSOR_SWIZZLE_128:
    case KILN_TENSOR_SWIZZLE_128_BY_32:
      return true;
    case KILN_TENSOR_SWIZZLE_128_BY_64:
      return given->type == KILN_TENSOR_U6_IN_16;
    default:
      return false;
  }
}

static kiln_status_t check_words(const kiln_tensor_options_t* given,
                                 uint32_t least_rank) {
  KILNI_CHECK_ARGUMENT(
      given->type >= KILN_TENSOR_U8 && given->type <= KILN_TENSOR_U6_IN_16,
      "options.type");
  KILNI_CHECK_ARGUMENT(given->interleave == 0 || given->interleave == 16 ||
                           given->interleave == 32,
                       "options.interleave");
  KILNI_CHECK_ARGUMENT_SAYS(
      given->interleave == 0 || given->type != KILN_TENSOR_U6_IN_16,
      "options.interleave", "is set, of a type of 6 bits",
      "leave it 0, or use another type");
  if (given->interleave != 0) least_rank = 3;
  KILNI_CHECK_ARGUMENT_SAYS(
      given->rank >= least_rank && given->rank <= 5, "options.rank",
      "is out of its range",
      "set it to 1 to 5, with `interleave` and for columns to 3 to 5");
  KILNI_CHECK_ARGUMENT_SAYS(
      given->swizzle <= KILN_TENSOR_SWIZZLE_128_BY_64 && swizzle_goes(given),
      "options.swizzle", "is not a swizzle for that type",
      "use a KILN_TENSOR_SWIZZLE_... that the header lists for the type");
  KILNI_CHECK_ARGUMENT_SAYS(
      given->interleave != 32 || given->swizzle == KILN_TENSOR_SWIZZLE_32,
      "options.swizzle", "does not go with an interleave of 32",
      "set it to KILN_TENSOR_SWIZZLE_32");
  KILNI_CHECK_ARGUMENT(given->fetch_bytes == 0 || given->fetch_bytes == 64 ||
                           given->fetch_bytes == 128 ||
                           given->fetch_bytes == 256,
                       "options.fetch_bytes");
  KILNI_CHECK_ARGUMENT_SAYS(
      given->nan_fill <= KILN_SWITCH_OFF ||
          (given->nan_fill == KILN_SWITCH_ON && tensor_is_float(given->type)),
      "options.nan_fill", "is on for a type without NaN, or is not a switch",
      "leave it off, or use a floating-point type");
  return kiln_ok();
}

static kiln_status_t tensor_check_memory(const kiln_tensor_options_t* given) {
  const bool wide = given->interleave == 32 || is_spread(given->type);
  const uint64_t step = wide ? 32 : 16;
  const char* multiples = wide ? "a multiple of 32" : "a multiple of 16";
  if (given->address == 0 || given->address % step != 0) {
    return wrong("address", 0, (int64_t)given->address, multiples);
  }
  for (uint32_t i = 0; i < given->rank; i++) {
    if (given->sizes[i] == 0 || given->sizes[i] > kMostSize) {
      return wrong("sizes", i, (int64_t)given->sizes[i], "1 to 2^32");
    }
  }
  const uint64_t pack = is_spread(given->type)          ? PACKED_BOX
                        : tensor_is_packed(given->type) ? 2
                                                        : 1;
  if (given->sizes[0] % pack != 0) {
    return wrong("sizes", 0, (int64_t)given->sizes[0],
                 pack == 2 ? "a multiple of 2" : "a multiple of 128");
  }
  for (uint32_t i = 0; i + 1 < given->rank; i++) {
    if (given->strides[i] % step != 0) {
      return wrong("strides", i, (int64_t)given->strides[i], multiples);
    }
    if (given->strides[i] == 0 || given->strides[i] >= kMostStride) {
      return wrong("strides", i, (int64_t)given->strides[i],
                   "below 2^40, and not 0");
    }
  }
  return kiln_ok();
}

static kiln_status_t check_steps(kiln_tensor_options_t* given) {
  for (uint32_t i = 0; i < given->rank; i++) {
    if (given->steps[i] == 0) given->steps[i] = 1;
    if (given->steps[i] > MOST_STEP) {
      return wrong("steps", i, given->steps[i], "1 to 8");
    }
  }
  return kiln_ok();
}

// The innermost row of a copy, which `field` specifies.
static kiln_status_t tensor_check_row(const kiln_tensor_options_t* given,
                                      const char* field, uint32_t elements,
                                      bool in_chunks) {
  if (is_spread(given->type) && elements != PACKED_BOX) {
    return wrong(field, 0, elements, "128 with this type");
  }
  if (given->interleave != 0) return kiln_ok();
  const uint32_t bits = elements * kBits[given->type];
  if (in_chunks && bits % (CHUNK * 8) != 0) {
    return wrong(field, 0, elements, "a multiple of 16 bytes");
  }
  const uint32_t span = given->swizzle > KILN_TENSOR_SWIZZLE_128
                            ? KILN_TENSOR_SWIZZLE_128
                            : given->swizzle;
  if (span != 0 && bits > ((uint32_t)CHUNK * 8 << span)) {
    return wrong(field, 0, elements,
                 "at most as many bytes as the swizzle has");
  }
  return kiln_ok();
}

static kiln_status_t check_box(const kiln_tensor_options_t* given) {
  for (uint32_t i = 0; i < given->rank; i++) {
    if (given->box[i] == 0 || given->box[i] > MOST_BOX) {
      return wrong("box", i, given->box[i], "1 to 256");
    }
  }
  return tensor_check_row(given, "box", given->box[0], true);
}

// ---- Columns ----

static kiln_status_t check_corners(const kiln_tensor_options_t* given,
                                   const kiln_tensor_columns_t* columns) {
  static const int32_t most[] = {32767, 127, 15};
  static const char* const ranges[] = {"-32768 to 32767", "-128 to 127",
                                       "-16 to 15"};
  const bool wide = columns->mode != KILN_TENSOR_COLUMNS;
  const uint32_t count = wide ? 1 : given->rank - 2;
  for (uint32_t i = 0; i < count; i++) {
    const int32_t lower = columns->lower[i];
    const int32_t upper = columns->upper[i];
    const int32_t limit = most[count - 1];
    if (lower < -limit - 1 || lower > limit) {
      return wrong("lower", i, lower, ranges[count - 1]);
    }
    if (upper < -limit - 1 || upper > limit) {
      return wrong("upper", i, upper, ranges[count - 1]);
    }
    if ((int64_t)given->sizes[i + 1] + upper <= lower) {
      return wrong("upper", i, upper, "such that a pixel is in the box");
    }
  }
  return kiln_ok();
}

static kiln_status_t check_columns(const kiln_tensor_options_t* given,
                                   const kiln_tensor_columns_t* columns) {
  KILNI_CHECK_ARGUMENT(columns->mode <= KILN_TENSOR_COLUMNS_WIDE_128,
                       "columns.mode");
  KILNI_CHECK_ARGUMENT_SAYS(
      columns->mode == KILN_TENSOR_COLUMNS ||
          given->swizzle == KILN_TENSOR_SWIZZLE_64 ||
          given->swizzle == KILN_TENSOR_SWIZZLE_128 ||
          given->swizzle == KILN_TENSOR_SWIZZLE_128_BY_32,
      "options.swizzle", "does not go with wide columns",
      "set it to KILN_TENSOR_SWIZZLE_64, KILN_TENSOR_SWIZZLE_128 or "
      "KILN_TENSOR_SWIZZLE_128_BY_32");
  if (columns->channels == 0 || columns->channels > MOST_BOX) {
    return wrong("channels", 0, columns->channels, "1 to 256");
  }
  if (columns->mode != KILN_TENSOR_COLUMNS_WIDE_128 &&
      (columns->pixels == 0 || columns->pixels > MOST_PIXELS)) {
    return wrong("pixels", 0, columns->pixels, "1 to 1024");
  }
  KILNI_RETURN_IF_ERROR(check_corners(given, columns));
  return tensor_check_row(given, "channels", columns->channels, false);
}

// ---- The device ----

static kiln_status_t tensor_check_device(kiln_device_t* device, bool newer) {
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      device->table, KILNI_CUDA_ROW_cuTensorMapEncodeTiled));
  int can = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDeviceGetAttribute, &can,
                    KILN_CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
                    device->handle);
  if (!kiln_status_is_ok(status)) return status;
  if (!can) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "\"%s\" has no tensor maps", device->name),
        "use a GPU of compute capability 9.0 or later, or plain copies");
  }
  if (!newer) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      device->table, KILNI_CUDA_ROW_cuTensorMapEncodeIm2colWide));
  if (device->info.compute_major >= 10) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "a tensor map of a packed type, of wide columns or with other "
                 "chunks than 16 bytes, and \"%s\" is of compute capability "
                 "%u.%u",
                 device->name, (unsigned)device->info.compute_major,
                 (unsigned)device->info.compute_minor),
      "use a GPU of compute capability 10.0 or later");
}

static bool tensor_is_newer(const kiln_tensor_options_t* given) {
  return tensor_is_packed(given->type) ||
         given->swizzle > KILN_TENSOR_SWIZZLE_128;
}

static kiln_status_t tensor_read_options(const kiln_tensor_options_t* options,
                                         uint32_t least_rank,
                                         kiln_tensor_options_t* given) {
  KILNI_CHECK_ARGUMENT(options != NULL, "options");
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_tensor_options_t, given));
  KILNI_RETURN_IF_ERROR(check_words(given, least_rank));
  KILNI_RETURN_IF_ERROR(tensor_check_memory(given));
  return check_steps(given);
}

// 0, 64, 128 and 256 are the driver's 0 to 3.
static uint32_t fetch_of(const kiln_tensor_options_t* given) {
  return given->fetch_bytes == 256 ? 3 : given->fetch_bytes / 64;
}

static unsigned int tensor_fill_of(const kiln_tensor_options_t* given) {
  return given->nan_fill == KILN_SWITCH_ON ? 1 : 0;
}

kiln_status_t kiln_tensor_map_encode(kiln_device_t* device,
                                     const kiln_tensor_options_t* options,
                                     kiln_tensor_map_t* out_map) {
  KILNI_CHECK_ARGUMENT(out_map != NULL, "out_map");
  memset(out_map, 0, sizeof(*out_map));
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_tensor_options_t given;
  KILNI_RETURN_IF_ERROR(tensor_read_options(options, 1, &given));
  KILNI_RETURN_IF_ERROR(check_box(&given));
  KILNI_RETURN_IF_ERROR(tensor_check_device(device, tensor_is_newer(&given)));
  kiln_cu_tensor_map_t map;
  memset(&map, 0, sizeof(map));
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuTensorMapEncodeTiled, &map,
                    given.type - 1, given.rank, (void*)(uintptr_t)given.address,
                    given.sizes, given.strides, given.box, given.steps,
                    given.interleave / 16, given.swizzle, fetch_of(&given),
                    tensor_fill_of(&given));
  if (kiln_status_is_ok(status)) memcpy(out_map, &map, sizeof(*out_map));
  return status;
}

kiln_status_t kiln_tensor_map_encode_columns(
    kiln_device_t* device, const kiln_tensor_options_t* options,
    const kiln_tensor_columns_t* columns, kiln_tensor_map_t* out_map) {
  KILNI_CHECK_ARGUMENT(out_map != NULL, "out_map");
  memset(out_map, 0, sizeof(*out_map));
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(columns != NULL, "columns");
  kiln_tensor_options_t given;
  kiln_tensor_columns_t along;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      columns, "kiln_tensor_columns_t", sizeof(along), &along));
  KILNI_RETURN_IF_ERROR(tensor_read_options(options, 3, &given));
  KILNI_RETURN_IF_ERROR(check_columns(&given, &along));
  const bool wide = along.mode != KILN_TENSOR_COLUMNS;
  KILNI_RETURN_IF_ERROR(
      tensor_check_device(device, wide || tensor_is_newer(&given)));
  kiln_cu_tensor_map_t map;
  memset(&map, 0, sizeof(map));
  kiln_status_t status;
  if (wide) {
    KILNI_DEVICE_CALL(
        status, device, cuTensorMapEncodeIm2colWide, &map, given.type - 1,
        given.rank, (void*)(uintptr_t)given.address, given.sizes, given.strides,
        along.lower[0], along.upper[0], along.channels, along.pixels,
        given.steps, given.interleave / 16, along.mode - 1, given.swizzle,
        fetch_of(&given), tensor_fill_of(&given));
  } else {
    KILNI_DEVICE_CALL(status, device, cuTensorMapEncodeIm2col, &map,
                      given.type - 1, given.rank,
                      (void*)(uintptr_t)given.address, given.sizes,
                      given.strides, along.lower, along.upper, along.channels,
                      along.pixels, given.steps, given.interleave / 16,
                      given.swizzle, fetch_of(&given), tensor_fill_of(&given));
  }
  if (kiln_status_is_ok(status)) memcpy(out_map, &map, sizeof(*out_map));
  return status;
}
