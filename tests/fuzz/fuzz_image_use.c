// SPDX-License-Identifier: Apache-2.0
//
// image: fuzz target: any PTX that is read, for what its kernels do with their
// parameters and thread numbers. The text begins at byte 1 (ptx_mutate.c).
#include <stddef.h>
#include <stdint.h>

#include "kiln/image.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static void check_access(const kiln_image_access_t* access) {
  require(access != NULL);
  require(access->kind >= KILN_IMAGE_ACCESS_BITS &&
          access->kind <= KILN_IMAGE_ACCESS_FLOAT);
  require(access->bytes >= 1 && access->bytes <= 16);
  require((access->bytes & (access->bytes - 1)) == 0);
  require((access->pitch & (access->pitch - 1)) == 0);
  require(access->kind != KILN_IMAGE_ACCESS_FLOAT ||
          (access->bytes >= 2 && access->bytes <= 8));
}

static void check_threads(const kiln_image_threads_t* threads) {
  uint32_t places = threads->tid | threads->ctaid;
  require((places | threads->ntid | threads->nctaid) <= 7);
  require(threads->dimensions >= 1 && threads->dimensions <= 3);
  // What is not read does not count.
  require(threads->dimensions < 2 || places > 1);
  require(threads->dimensions < 3 || (places & 4) != 0);
  require(threads->dimensions == threads->tid_dimensions ||
          threads->dimensions == threads->ctaid_dimensions);
  require(threads->tid_dimensions == 1 || threads->tid > 1);
  require(threads->ctaid_dimensions == 1 || threads->ctaid > 1);
}

static void check_kernel(const kiln_image_t* image, uint32_t index) {
  kiln_image_use_t* use = NULL;
  kiln_status_t status = kiln_image_use_create(image, index, &use);
  require(kiln_status_is_ok(status) == (use != NULL));
  // Of bytes that are text alone; memory does not run out here.
  require(use != NULL || kiln_image_format(image) != KILN_CODE_FORMAT_PTX);
  kiln_status_free(status);
  if (use == NULL) return;
  check_threads(kiln_image_use_threads(use));
  uint32_t params = kiln_image_kernel(image, index)->param_count;
  for (uint32_t i = 0; i <= params; i++) {
    uint32_t count = kiln_image_use_access_count(use, i);
    require(i < params || count == 0);
    for (uint32_t k = 0; k < count; k++) {
      check_access(kiln_image_use_access(use, i, k));
    }
    require(kiln_image_use_access(use, i, count) == NULL);
  }
  kiln_image_use_release(use);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln_image_t* image = NULL;
  if (size == 0) return 0;
  kiln_bytes_view_t text = {data + 1, size - 1};
  kiln_status_t status = kiln_image_create(text, NULL, &image);
  require(kiln_status_is_ok(status) == (image != NULL));
  if (image != NULL) {
    for (uint32_t i = 0; i < kiln_image_kernel_count(image); i++) {
      check_kernel(image, i);
    }
  }
  kiln_status_free(status);
  kiln_image_release(image);
  return 0;
}
