// SPDX-License-Identifier: Apache-2.0
//
// base: reading options structs of other versions of the library.
#include "base/options.h"

#include <stdint.h>
#include <string.h>

#include "base/status_make.h"

static bool options_is_zero(const uint8_t* data, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (data[i] != 0) return false;
  }
  return true;
}

kiln_status_t kilni_base_options_too_small(const char* name, uint32_t given,
                                           size_t first) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "`struct_size` of \"%s\" is %u, and no version of it has "
                 "fewer than %zu bytes",
                 name, (unsigned)given, first),
      "set it to sizeof(%s), or start from the struct's _default() function",
      name);
}

kiln_status_t kilni_base_options_read_since(const void* options,
                                            const char* name, size_t first,
                                            size_t size, void* out) {
  uint32_t struct_size = (uint32_t)size;
  memset(out, 0, size);
  memcpy(out, &struct_size, sizeof(struct_size));
  if (options == NULL) return kiln_ok();

  uint32_t given;
  memcpy(&given, options, sizeof(given));
  if (given < first) return kilni_base_options_too_small(name, given, first);
  const uint8_t* bytes = options;
  if (given > size && !options_is_zero(bytes + size, given - size)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INCOMPATIBLE,
                   "\"%s\" has %u bytes and sets a field after the %zu that "
                   "this library knows",
                   name, (unsigned)given, size),
        "use a libkiln at least as new as the headers, or leave the newer "
        "fields zero");
  }
  memcpy(out, options, given < size ? given : size);
  memcpy(out, &struct_size, sizeof(struct_size));
  return kiln_ok();
}

kiln_status_t kilni_base_options_read(const void* options, const char* name,
                                      size_t size, void* out) {
  return kilni_base_options_read_since(options, name, size, size, out);
}

kiln_status_t kilni_base_options_not_reserved(const char* name) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "`reserved` of \"%s\" is not zero", name),
      "set every unused field to 0, or start from the struct's _default() "
      "function");
}

kiln_status_t kilni_base_options_read_reserved(const void* options,
                                               const char* name, size_t size,
                                               kilni_base_reserved_t reserved,
                                               void* out) {
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(options, name, size, out));
  if (options_is_zero((const uint8_t*)out + reserved.offset, reserved.bytes)) {
    return kiln_ok();
  }
  (void)kilni_base_options_read(NULL, name, size, out);
  return kilni_base_options_not_reserved(name);
}
