// SPDX-License-Identifier: Apache-2.0
//
// compile: the first error of a log; private to the module.
#ifndef KILN_SRC_COMPILE_LINK_TEXT_H_
#define KILN_SRC_COMPILE_LINK_TEXT_H_

#include "kiln/api.h"

// The first line of a log that reports an error, without "error : " before it,
// else the first line with text; empty if there is none.
kiln_string_view_t kilni_compile_link_first_error(const char* log);

// The first line of a log that is an error's own, "error   : ..."; empty if
// there is none. A linker that writes one and reports success has failed.
kiln_string_view_t kilni_compile_link_reported_error(const char* log);

// The Fix for the error in a line of a log; NULL: the line contains it.
const char* kilni_compile_link_fix_of(kiln_string_view_t line);

#endif  // KILN_SRC_COMPILE_LINK_TEXT_H_
