// SPDX-License-Identifier: Apache-2.0
//
// program: the room's door: a program's tables for the rooms above, and how
// one is made of tables.
#ifndef KILN_SRC_PROGRAM_PROGRAM_H_
#define KILN_SRC_PROGRAM_PROGRAM_H_

#include "kiln/program.h"
#include "program/ir/program_ir.h"
#include "program/ir/program_types.h"

#endif  // KILN_SRC_PROGRAM_PROGRAM_H_
