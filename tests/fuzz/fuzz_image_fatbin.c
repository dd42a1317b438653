// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as a fatbin, packed or not: an error with a cure, or an image
// that holds what it promises.
#include <stdlib.h>
#include <string.h>

#include "image_check.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Its own beginning, so that no time goes into other formats; a copy that
  // is gone when the image is looked at would be seen by the sanitizer.
  static const uint8_t kMagic[8] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
  if (size < sizeof(kMagic)) return 0;
  uint8_t* copy = malloc(size);
  if (copy == NULL) return 0;
  memcpy(copy, data, size);
  memcpy(copy, kMagic, sizeof(kMagic));
  kiln_bytes_view_t bytes = {copy, size};
  const char* wrong = image_check_bytes(bytes);
  free(copy);
  if (wrong != NULL) __builtin_trap();
  return 0;
}
