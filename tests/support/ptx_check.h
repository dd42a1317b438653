// SPDX-License-Identifier: Apache-2.0
//
// support: is a PTX syntax tree what its header promises?
#ifndef KILN_TESTS_SUPPORT_PTX_CHECK_H_
#define KILN_TESTS_SUPPORT_PTX_CHECK_H_

#include "image/ptx.h"

// NULL if every index of the tree lies in its array, every name is a string
// and every count adds up; otherwise what does not. Static.
const char* ptx_check(const kilni_image_ptx_module_t* module);

#endif  // KILN_TESTS_SUPPORT_PTX_CHECK_H_
