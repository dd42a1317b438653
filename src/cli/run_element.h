// SPDX-License-Identifier: Apache-2.0
//
// cli: which elements a kernel takes through a pointer, by its name in C++ and
// by what its PTX does with them. Pure.
#ifndef KILN_SRC_CLI_RUN_ELEMENT_H_
#define KILN_SRC_CLI_RUN_ELEMENT_H_

#include "cli/cli_array.h"
#include "kiln/image.h"

// Size of a text that describes elements, or lists their possible types.
#define KILNI_CLI_TAKEN_TEXT 64

// Whether data of one type is accepted for elements of another. The sign of an
// integer does not matter, and a half may be kept as its bits; so may anything
// as raw bytes, which u8 are if `is_bytes`.
bool kilni_cli_type_suits(kilni_cli_type_t type, bool is_bytes,
                          kilni_cli_type_t element);

// Whether data of `type` are what parameter `index` of `kernel` points to, by
// its name in the code. If the name does not include types, as with extern "C",
// and for pointers to structs and void, all data fits. If not, `out_pointee` is
// the C++ name, "float const". `out_type` is the type of such elements; NONE if
// the name does not tell it.
bool kilni_cli_element_fits(const char* kernel, uint32_t index,
                            kilni_cli_type_t type, bool is_bytes,
                            char out_pointee[KILNI_CLI_TAKEN_TEXT],
                            kilni_cli_type_t* out_type);

// The same for one of CUDA's vectors, "float4", if the kernel computes with
// elements of its named type. Data that it only moves may have any type.
bool kilni_cli_vector_fits(const char* kernel, uint32_t index,
                           const kiln_image_use_t* use_or_null,
                           kilni_cli_type_t type, bool is_bytes,
                           char out_pointee[KILNI_CLI_TAKEN_TEXT],
                           kilni_cli_type_t* out_type);

// Whether data of `type` may be what the kernel reads and writes through
// parameter `index`: false only if they contradict every access that `use`
// knows of it. If not, `out_what` describes how the kernel uses the elements,
// and `out_types` which types fit: "f32", or "i32, u32 or f32" if its accesses
// imply only their width.
bool kilni_cli_access_fits(const kiln_image_use_t* use_or_null, uint32_t index,
                           kilni_cli_type_t type, bool is_bytes,
                           char out_what[KILNI_CLI_TAKEN_TEXT],
                           char out_types[KILNI_CLI_TAKEN_TEXT]);

// Whether a number of `type` may be the member at `offset` of the struct that
// the kernel takes by value as parameter `index`: false only if it contradicts
// every load of that place. If not, the texts are those of
// kilni_cli_access_fits.
bool kilni_cli_member_fits(const kiln_image_use_t* use_or_null, uint32_t index,
                           uint32_t offset, kilni_cli_type_t type,
                           char out_what[KILNI_CLI_TAKEN_TEXT],
                           char out_types[KILNI_CLI_TAKEN_TEXT]);

// Whether the parameter is a pointer, by the kernel's name in C++ or its use in
// the PTX; false if neither shows it.
bool kilni_cli_is_pointer(const char* kernel, uint32_t index,
                          const kiln_image_use_t* use_or_null);

// The type of a number that the kernel takes by value, if its name includes it;
// NONE for anything else.
kilni_cli_type_t kilni_cli_value_type(const char* kernel, uint32_t index);

#endif  // KILN_SRC_CLI_RUN_ELEMENT_H_
