// SPDX-License-Identifier: Apache-2.0
//
// cli: which elements a kernel takes through a pointer, by its name in C++ and
// by what its PTX does with them. Pure.
#ifndef KILN_SRC_CLI_RUN_ELEMENT_H_
#define KILN_SRC_CLI_RUN_ELEMENT_H_

#include "cli/cli_array.h"
#include "kiln/image.h"

// Bytes of a text that says what elements are, or of which types they may be.
#define KILNI_CLI_TAKEN_TEXT 64

// Whether data of one type may stand where elements of another are meant. The
// sign of an integer does not matter, and a half may be kept as its bits; so
// may anything as its bytes, which u8 are if `is_bytes`, and not numbers.
bool kilni_cli_type_suits(kilni_cli_type_t type, bool is_bytes,
                          kilni_cli_type_t element);

// Whether data of `type` are what parameter `index` of `kernel` points to, as
// its name in the code says. Where the name says nothing, as of extern "C",
// and of pointers to structs and void, all data are. If not, `out_pointee` is
// what C++ calls it, "float const". `out_type` is the type of such elements;
// NONE where the name says nothing.
bool kilni_cli_element_fits(const char* kernel, uint32_t index,
                            kilni_cli_type_t type, bool is_bytes,
                            char out_pointee[KILNI_CLI_TAKEN_TEXT],
                            kilni_cli_type_t* out_type);

// The same of a vector of CUDA's, "float4", where the kernel computes with what
// it points to as its name says. What it only moves may be of anything.
bool kilni_cli_vector_fits(const char* kernel, uint32_t index,
                           const kiln_image_use_t* use_or_null,
                           kilni_cli_type_t type, bool is_bytes,
                           char out_pointee[KILNI_CLI_TAKEN_TEXT],
                           kilni_cli_type_t* out_type);

// Whether data of `type` may be what the kernel reads and writes by parameter
// `index`: false only if they contradict every access that `use` knows of it.
// If not, `out_what` says what the kernel takes its elements for, and
// `out_types` which types fit: "f32", or "i32, u32 or f32" where what it does
// says nothing but how wide they are.
bool kilni_cli_access_fits(const kiln_image_use_t* use_or_null, uint32_t index,
                           kilni_cli_type_t type, bool is_bytes,
                           char out_what[KILNI_CLI_TAKEN_TEXT],
                           char out_types[KILNI_CLI_TAKEN_TEXT]);

// Whether a number of `type` may be the member at `offset` of the struct that
// the kernel takes by value as parameter `index`: false only if it contradicts
// every way in which the kernel reads a place in it. If not, the texts are
// those of kilni_cli_access_fits.
bool kilni_cli_member_fits(const kiln_image_use_t* use_or_null, uint32_t index,
                           uint32_t offset, kilni_cli_type_t type,
                           char out_what[KILNI_CLI_TAKEN_TEXT],
                           char out_types[KILNI_CLI_TAKEN_TEXT]);

// Whether the parameter is a pointer, as the kernel's name in C++ or what its
// PTX does with it says; false where neither says anything.
bool kilni_cli_is_pointer(const char* kernel, uint32_t index,
                          const kiln_image_use_t* use_or_null);

// The type of a number that the kernel takes by value, as far as its name says
// it; NONE for anything else.
kilni_cli_type_t kilni_cli_value_type(const char* kernel, uint32_t index);

#endif  // KILN_SRC_CLI_RUN_ELEMENT_H_
