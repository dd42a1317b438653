// SPDX-License-Identifier: Apache-2.0
//
// image: packed bytes to plain ones, through the libraries that this build has.
//
// The one file that includes LZ4's and Zstandard's headers. Both write into the
// space that they are given and not past it.
#include "base/status_make.h"
#include "image/image_unpack.h"
#include "kiln/image.h"
#include "kiln/status.h"

#if defined(KILNI_HAS_LZ4)
#include <lz4.h>
#endif
#if defined(KILNI_HAS_ZSTD)
#include <zstd.h>
#include <zstd_errors.h>
#endif

bool kilni_image_unpack_knows(uint32_t packing) {
  switch (packing) {
    case KILN_IMAGE_PACKING_NONE:
      return true;
#if defined(KILNI_HAS_LZ4)
    case KILN_IMAGE_PACKING_LZ4:
      return true;
#endif
#if defined(KILNI_HAS_ZSTD)
    case KILN_IMAGE_PACKING_ZSTD:
      return true;
#endif
    default:
      return false;
  }
}

#if defined(KILNI_HAS_LZ4)
static kiln_status_t unpack_lz4(const kilni_image_part_t* packed, uint8_t* out,
                                size_t size) {
  if (packed->size <= LZ4_MAX_INPUT_SIZE && size <= LZ4_MAX_INPUT_SIZE) {
    int got = LZ4_decompress_safe((const char*)packed->data, (char*)out,
                                  (int)packed->size, (int)size);
    if (got >= 0 && (size_t)got == size) return kiln_ok();
  }
  return kilni_image_bad(packed, 0, "%llu bytes of LZ4 that are not %zu",
                         (unsigned long long)packed->size, size);
}
#endif

#if defined(KILNI_HAS_ZSTD)
static kiln_status_t unpack_zstd(const kilni_image_part_t* packed, uint8_t* out,
                                 size_t size) {
  size_t got = ZSTD_decompress(out, size, packed->data, (size_t)packed->size);
  if (!ZSTD_isError(got) && got == size) return kiln_ok();
  if (ZSTD_isError(got) &&
      ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  return kilni_image_bad(packed, 0, "%llu bytes of Zstandard that are not %zu",
                         (unsigned long long)packed->size, size);
}
#endif

kiln_status_t kilni_image_unpack_check(const kilni_image_part_t* packed,
                                       uint32_t packing, uint64_t size) {
  // A byte of LZ4 expands to at most 255.
  enum { LZ4_MOST = 255 };
  bool fits = true;
  if (packing == KILN_IMAGE_PACKING_LZ4) {
    fits = size / LZ4_MOST <= packed->size;
  }
#if defined(KILNI_HAS_ZSTD)
  if (packing == KILN_IMAGE_PACKING_ZSTD) {
    unsigned long long told =
        ZSTD_getFrameContentSize(packed->data, (size_t)packed->size);
    fits = told == ZSTD_CONTENTSIZE_UNKNOWN || told == size;
  }
#endif
  if (fits) return kiln_ok();
  return kilni_image_bad(packed, 0, "%llu bytes of %s that cannot become %llu",
                         (unsigned long long)packed->size,
                         kiln_image_packing_name(packing),
                         (unsigned long long)size);
}

kiln_status_t kilni_image_unpack(const kilni_image_part_t* packed,
                                 uint32_t packing, uint8_t* out, size_t size) {
#if defined(KILNI_HAS_LZ4)
  if (packing == KILN_IMAGE_PACKING_LZ4) return unpack_lz4(packed, out, size);
#endif
#if defined(KILNI_HAS_ZSTD)
  if (packing == KILN_IMAGE_PACKING_ZSTD) {
    return unpack_zstd(packed, out, size);
  }
#endif
  (void)out;
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "%s: %s packing of %zu bytes is not read",
                 packed->name, kiln_image_packing_name(packing), size),
      "build Kiln with that library (KILN_UNPACK), or compile with "
      "--compress-mode=none");
}
