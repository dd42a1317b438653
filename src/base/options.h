// SPDX-License-Identifier: Apache-2.0
//
// base: reading options structs of other versions of the library.
#ifndef KILN_SRC_BASE_OPTIONS_H_
#define KILN_SRC_BASE_OPTIONS_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

// Copies the caller's options into `out` (`size` bytes, our struct). NULL is
// all defaults. A struct_size from `first` on, the size that the struct had
// when it first came out, is extended with zeroes; a smaller one is
// INVALID_ARGUMENT, for it would cut a field in two. A larger one than ours is
// accepted only if its unknown tail is zero, else it is INCOMPATIBLE. On
// failure `out` has the defaults. `name` is the struct's name for the message.
kiln_status_t kilni_base_options_read_since(const void* options,
                                            const char* name, size_t first,
                                            size_t size, void* out);

// Copies a struct that has not grown since it came out. One that grows is read
// by the call above, with its first size.
kiln_status_t kilni_base_options_read(const void* options, const char* name,
                                      size_t size, void* out);

// What a struct_size that is too small is refused with.
kiln_status_t kilni_base_options_too_small(const char* name, uint32_t given,
                                           size_t first);

// Where a struct keeps space for later fields. thread-compatible
typedef struct kilni_base_reserved_t {
  size_t offset;
  size_t bytes;
} kilni_base_reserved_t;

// The same for a struct with space for later fields, which must be zero:
// INVALID_ARGUMENT otherwise, for what a later library may do differently by it
// would not be done.
kiln_status_t kilni_base_options_read_reserved(const void* options,
                                               const char* name, size_t size,
                                               kilni_base_reserved_t reserved,
                                               void* out);

// The only macro for reading a struct `type` that has a field `reserved`.
#define KILNI_OPTIONS_READ(options, type, out)                        \
  kilni_base_options_read_reserved(                                   \
      (options), #type, sizeof(type),                                 \
      (kilni_base_reserved_t){offsetof(type, reserved),               \
                              sizeof(((const type*)NULL)->reserved)}, \
      (out))

// What such a struct is refused with. `name` is the struct's.
kiln_status_t kilni_base_options_not_reserved(const char* name);

// The same check for a struct without a size, which is used as it is given:
// `field` is its field `reserved`.
#define KILNI_CHECK_RESERVED(field, type)                            \
  do {                                                               \
    if ((field) != 0) return kilni_base_options_not_reserved(#type); \
  } while (0)

#endif  // KILN_SRC_BASE_OPTIONS_H_
