// SPDX-License-Identifier: Apache-2.0
//
// support: may a kernel read a register that has not been written? On a GPU it
// then reads what happens to lie there; the software device has 0 in it, so
// that no result shows it.
#ifndef KILN_TESTS_SUPPORT_PTX_DEFINED_H_
#define KILN_TESTS_SUPPORT_PTX_DEFINED_H_

#include "image/ptx.h"

enum { PTX_DEFINED_BYTES = 256 };

// NULL if in each function of the module every way from its start to a read of
// a register has a write of it; otherwise `out`, with the first read in the
// text that has none. What stands under a guard writes for those that read
// under the same guard with the same value, or behind a branch on it, and for
// all where the other value writes too; of the guards of one register's writes
// the first in the text is looked at.
//
// Every branch that is not known to go one way may go both. Not seen: what
// memory holds, the carry flag, which components of a vector register are
// written, and what a callee leaves in its return registers.
const char* ptx_defined(const kilni_image_ptx_module_t* module,
                        char out[PTX_DEFINED_BYTES]);

// The same of a text; one that the reader refuses is said to be so.
const char* ptx_defined_text(kiln_string_view_t text,
                             char out[PTX_DEFINED_BYTES]);

#endif  // KILN_TESTS_SUPPORT_PTX_DEFINED_H_
