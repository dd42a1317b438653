// SPDX-License-Identifier: Apache-2.0
//
// cli: which elements a kernel of CUDA C++ takes through a pointer. Pure.
#ifndef KILN_SRC_CLI_RUN_ELEMENT_H_
#define KILN_SRC_CLI_RUN_ELEMENT_H_

#include "cli/cli_array.h"

// Whether data of `type` are what parameter `index` of `kernel` points to, as
// its name in the code says. Where the name says nothing, as of extern "C",
// and of pointers to structs and void, all data are; u8 are bytes, which suit
// any pointer. If not, `out_pointee` is what C++ calls it, "float const", and
// `out_type` the type of such elements.
bool kilni_cli_element_fits(const char* kernel, uint32_t index,
                            kilni_cli_type_t type, char out_pointee[64],
                            kilni_cli_type_t* out_type);

// The type of a number that the kernel takes by value, as far as its name says
// it; NONE for anything else.
kilni_cli_type_t kilni_cli_value_type(const char* kernel, uint32_t index);

#endif  // KILN_SRC_CLI_RUN_ELEMENT_H_
