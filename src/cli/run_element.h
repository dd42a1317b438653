// SPDX-License-Identifier: Apache-2.0
//
// cli: which elements a kernel takes through a pointer, by its name in C++ and
// by what its PTX does with them. Pure.
#ifndef KILN_SRC_CLI_RUN_ELEMENT_H_
#define KILN_SRC_CLI_RUN_ELEMENT_H_

#include "cli/cli_array.h"
#include "kiln/image.h"

// Whether data of `type` are what parameter `index` of `kernel` points to, as
// its name in the code says. Where the name says nothing, as of extern "C",
// and of pointers to structs and void, all data are; u8 are bytes, which suit
// any pointer. If not, `out_pointee` is what C++ calls it, "float const", and
// `out_type` the type of such elements.
bool kilni_cli_element_fits(const char* kernel, uint32_t index,
                            kilni_cli_type_t type, char out_pointee[64],
                            kilni_cli_type_t* out_type);

// Whether data of `type` may be what the kernel reads and writes by parameter
// `index`: false only if they contradict every access that `use` knows of it.
// If not, `out_what` says what the kernel takes its elements for, and
// `out_type` is a type that fits.
bool kilni_cli_access_fits(const kiln_image_use_t* use_or_null, uint32_t index,
                           kilni_cli_type_t type, char out_what[64],
                           kilni_cli_type_t* out_type);

// The type of a number that the kernel takes by value, as far as its name says
// it; NONE for anything else.
kilni_cli_type_t kilni_cli_value_type(const char* kernel, uint32_t index);

#endif  // KILN_SRC_CLI_RUN_ELEMENT_H_
