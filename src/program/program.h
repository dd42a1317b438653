// SPDX-License-Identifier: Apache-2.0
//
// program: the room's door. Rooms above use programs as everybody does.
//
// The tables (program/ir/program_ir.h) are for the room itself and its tests.
#ifndef KILN_SRC_PROGRAM_PROGRAM_H_
#define KILN_SRC_PROGRAM_PROGRAM_H_

#include "kiln/program.h"

#endif  // KILN_SRC_PROGRAM_PROGRAM_H_
