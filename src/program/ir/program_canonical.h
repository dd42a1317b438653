// SPDX-License-Identifier: Apache-2.0
//
// program: the canonical form's bytes.
//
//   magic "KILNPROG", version 2, meaning 1 (one byte each)
//   name of the program; parameters; counts; work; block
//   functions that are called, each behind those that it calls
//   arrays and body of the program
//
// Numbers are LEB128 of 64 bits in their shortest form, names a length and
// bytes. Expressions are trees from the root: an operation, then its operands.
// Variables, buffers, scalars and functions are numbered from 0 where they
// come up, those of a function by themselves.
//
// The version says how the bytes are read. The meaning says what they compute:
// it rises when a program that was valid before gives other results, so that it
// has another hash and nothing that was kept under the old one is taken for it.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_CANONICAL_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_CANONICAL_H_

#include "base/str.h"
#include "program/ir/program_ir.h"

#define KILNI_CANONICAL_MAGIC "KILNPROG"
enum {
  KILNI_CANONICAL_VERSION = 2,
  KILNI_CANONICAL_MEANING = 1,
  KILNI_CANONICAL_MAX_BYTES = 16 << 20,
};

// What is in a body beside the operations of expressions and statements.
enum { KILNI_CANONICAL_END = 0 };

// Adds the canonical form of a valid program.
kiln_status_t kilni_program_ir_write_canonical(const kilni_program_ir_t* ir,
                                               kilni_base_str_t* out);

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_CANONICAL_H_
