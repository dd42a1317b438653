// SPDX-License-Identifier: Apache-2.0
//
// test: programs of operators in operators: f(x, g(y, h(z))) and the like.
#ifndef KILN_TESTS_SUPPORT_PROGRAM_NESTS_H_
#define KILN_TESTS_SUPPORT_PROGRAM_NESTS_H_

#include <stdint.h>

enum {
  PROGRAM_NEST_BYTES = 32768,
  PROGRAM_NEST_EXPRESSIONS = 150,  // in a program, at most
  PROGRAM_NEST_ELEMENTS = 160,     // that each is of
};

// Code generators join two or three operators where they find them together.
// Each program has many expressions that do not know of each other, each with
// a `z` of its own, so that nothing has a second use that would keep it apart.
// All f, g and h at 32 bits; a part of them, evenly taken, at other types, and
// of a g of each other type.
//
// How many there are; a few of them, as those that have a number below, are
// evenly taken too.
uint32_t program_nest_count(void);

// How many expressions all have together.
uint64_t program_nest_expressions(void);

// One of them. `text` has space for PROGRAM_NEST_BYTES.
void program_nest_text(uint32_t nest, const char* name, char* text);

#endif  // KILN_TESTS_SUPPORT_PROGRAM_NESTS_H_
