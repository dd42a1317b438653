// SPDX-License-Identifier: Apache-2.0
//
// fuzz: a cache's key read back. Every field lies inside the bytes, behind the
// one before it, and the reading ends.
#include <stdint.h>
#include <stdlib.h>

#include "cache/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kilni_cache_key_reader_t reader = {{data, size}};
  kilni_cache_key_field_t field;
  const uint8_t* at = data;
  const uint8_t* end = data + size;
  while (kilni_cache_key_next(&reader, &field)) {
    const uint8_t* name = (const uint8_t*)field.name.data;
    const uint8_t* value = field.value.data;
    if (name < at || field.name.size > (size_t)(end - name) ||
        value < name + field.name.size ||
        field.value.size > (size_t)(end - value)) {
      abort();
    }
    at = value + field.value.size;
  }
  if (kilni_cache_key_next(&reader, &field)) abort();
  return 0;
}
