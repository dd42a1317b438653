// SPDX-License-Identifier: Apache-2.0
//
// test: a program for each row of the tables of operators, at each type.
#ifndef KILN_TESTS_SUPPORT_PROGRAM_ROWS_H_
#define KILN_TESTS_SUPPORT_PROGRAM_ROWS_H_

#include <stdint.h>

enum { PROGRAM_ROW_BYTES = 512 };

// How many there are, and one of them: unary and binary operators, casts,
// bitcasts, select, fma, atomics and subgroup operations. `text` has space for
// PROGRAM_ROW_BYTES.
uint32_t program_row_count(void);
void program_row_text(uint32_t row, const char* name, char* text);

#endif  // KILN_TESTS_SUPPORT_PROGRAM_ROWS_H_
