// SPDX-License-Identifier: Apache-2.0
//
// program: programs from text and back, where nothing may go wrong.
#ifndef KILN_TESTS_UNIT_PROGRAM_PROGRAM_KIT_H_
#define KILN_TESTS_UNIT_PROGRAM_PROGRAM_KIT_H_

#include "kiln/program.h"

// A program with everything that the language has.
extern const char kit_everything[];

// A valid program of `text`; the test fails with its report otherwise.
kiln_program_t* kit_parse(const char* text);

// Its text, for free().
char* kit_print(const kiln_program_t* program);

#endif  // KILN_TESTS_UNIT_PROGRAM_PROGRAM_KIT_H_
