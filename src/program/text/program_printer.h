// SPDX-License-Identifier: Apache-2.0
//
// program: programs as text.
#ifndef KILN_SRC_PROGRAM_TEXT_PROGRAM_PRINTER_H_
#define KILN_SRC_PROGRAM_TEXT_PROGRAM_PRINTER_H_

#include "base/str.h"
#include "program/ir/program_ir.h"

// Adds the text of a valid program.
void kilni_ir_print(const kilni_ir_t* ir, kilni_str_t* text);

#endif  // KILN_SRC_PROGRAM_TEXT_PROGRAM_PRINTER_H_
