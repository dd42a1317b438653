// SPDX-License-Identifier: Apache-2.0
//
// test: programs from seeds: valid, and with one meaning each.
//
// Every operator, type and statement comes up, indices out of range, early
// returns, barriers in uniform flow, several blocks. What threads share they
// touch in turns: an element is written by its own thread, or read by all,
// with a barrier between; or it is touched by atomics whose order does not
// matter and whose old value nobody looks at.
#ifndef KILN_TESTS_SUPPORT_PROGRAM_GENERATE_H_
#define KILN_TESTS_SUPPORT_PROGRAM_GENERATE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRAM_TEXT_BYTES = 65536 };

// What may come up beside the rest.
enum {
  PROGRAM_WITH_GRID_BARRIER = 1,  // needs a cooperative launch
  PROGRAM_WITH_TRAP = 2,          // in a few
  PROGRAM_WITH_MATH = 4,          // exp and its like
};

// Writes a program's text, at most PROGRAM_TEXT_BYTES with its NUL. Its name is
// `name`. The same seed and switches give the same text.
void program_generate(uint64_t seed, uint32_t with, const char* name,
                      char* out_text);

// A number of a seed (splitmix64).
uint64_t program_random(uint64_t* seed);

// A value of a type for an input buffer or scalar: small numbers, the ends of
// the type, NaNs and infinities, any bits.
uint64_t program_random_value(uint64_t* seed, uint8_t type);

// Where a type ends and around zero: number `which` below PROGRAM_EDGES.
enum { PROGRAM_EDGES = 40 };
uint64_t program_edge_value(uint8_t type, uint32_t which);

#endif  // KILN_TESTS_SUPPORT_PROGRAM_GENERATE_H_
