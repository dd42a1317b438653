// SPDX-License-Identifier: Apache-2.0
//
// base: how far two names are apart.
#ifndef KILN_SRC_BASE_NAME_DISTANCE_H_
#define KILN_SRC_BASE_NAME_DISTANCE_H_

#include <stdint.h>

// How many characters to change, add or drop to make one name of the other;
// case does not count. A large number for names of more than 64 characters.
uint32_t kilni_base_name_distance(const char* a, const char* b);

#endif  // KILN_SRC_BASE_NAME_DISTANCE_H_
