// SPDX-License-Identifier: Apache-2.0
//
// compile: what a log says first; private to the module.
#ifndef KILN_SRC_COMPILE_LINK_TEXT_H_
#define KILN_SRC_COMPILE_LINK_TEXT_H_

#include "kiln/api.h"

// The first line of a log that speaks of an error, without "error : " before
// it, else the first that says anything; empty if none does.
kiln_string_view_t kilni_compile_link_first_error(const char* log);

// The first line of a log that is an error's own, "error   : ..."; empty if
// there is none. A linker that writes one and reports success has failed.
kiln_string_view_t kilni_compile_link_reported_error(const char* log);

// What to do about the error in a line of a log; NULL: the line says it.
const char* kilni_compile_link_fix_of(kiln_string_view_t line);

#endif  // KILN_SRC_COMPILE_LINK_TEXT_H_
