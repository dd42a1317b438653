// SPDX-License-Identifier: Apache-2.0
//
// compile: what an input says of itself, and what a log says first. Not a door.
#ifndef KILN_SRC_COMPILE_LINK_TEXT_H_
#define KILN_SRC_COMPILE_LINK_TEXT_H_

#include "base/str.h"

// The ISA version of PTX by its first directive, 90 is 9.0; 0 if it is not
// there.
uint32_t kilni_link_ptx_isa(kiln_bytes_view_t bytes);

// The first line of a log that speaks of an error, without "error : " before
// it, else the first that says anything; empty if none does.
kiln_string_view_t kilni_link_first_error(const char* log);

#endif  // KILN_SRC_COMPILE_LINK_TEXT_H_
