// SPDX-License-Identifier: Apache-2.0
//
// program: the object around a program's tables.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_OBJECT_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_OBJECT_H_

#include "kiln/program.h"
#include "program/ir/program_ir.h"

// A program of `ir`, which is moved and left empty, also on failure. It must
// be valid (kilni_program_ir_check).
kiln_status_t kilni_program_create(kilni_program_ir_t* ir,
                                   kiln_program_t** out_program);

// Its tables. Borrowed.
const kilni_program_ir_t* kilni_program_ir(const kiln_program_t* program);

// Copies a text of `size` bytes as far as `capacity` goes, with a NUL behind.
void kilni_program_hand_out(const char* text, size_t size, size_t capacity,
                            char* buffer, size_t* out_length);

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_OBJECT_H_
