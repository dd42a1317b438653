// SPDX-License-Identifier: Apache-2.0
//
// soft: from the text of an instruction's form ("mad.lo.s32") to its
// operation, and what the decoder must know of an operation.
#ifndef KILN_SRC_SOFT_DECODE_SOFT_FORMS_H_
#define KILN_SRC_SOFT_DECODE_SOFT_FORMS_H_

#include <stdbool.h>
#include <stddef.h>

#include "soft/code/soft_engine.h"

// A form is the opcode with its modifiers, without blanks or operands. False
// when the engine does not execute it.
bool kilni_soft_form_find(const char* text, size_t size,
                          kilni_soft_op_t* out_op);

// All forms, sorted: for tests and listings. NULL past the end.
const char* kilni_soft_form_at(size_t index, kilni_soft_op_t* out_op);

// Columns of the operation lists (soft_engine.h).
const char* kilni_soft_op_id(kilni_soft_op_t op);
const char* kilni_soft_op_family(kilni_soft_op_t op);
const char* kilni_soft_op_signature(kilni_soft_op_t op);

#endif  // KILN_SRC_SOFT_DECODE_SOFT_FORMS_H_
