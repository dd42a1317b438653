// SPDX-License-Identifier: Apache-2.0
//
// truth: the inputs that every form is asked with.
//
// An input is a pure function of what kind of operand it is for, the operand's
// place and a counter, in integer arithmetic only, so that a GPU's answers can
// be asked again on any machine. A change of what it returns is a new
// TRUTH_GENERATOR, and everything has to be recorded anew.
#ifndef KILN_TESTS_TRUTH_TRUTH_INPUT_H_
#define KILN_TESTS_TRUTH_TRUTH_INPUT_H_

#include <stdint.h>

enum {
  TRUTH_GENERATOR = 1,
  TRUTH_EDGES = 128,        // of each kind
  TRUTH_RAW = 256,          // indices in front of the pairs of edges
  TRUTH_PAIRS = 128 * 128,  // indices that are all pairs of edges
};

// What an operand is. Its width is that of the register that holds it.
typedef enum truth_kind_t {
  TRUTH_NONE,
  TRUTH_PRED,  // 0 or 1, a byte
  TRUTH_U16,   // an integer
  TRUTH_U32,
  TRUTH_U64,
  TRUTH_SHIFT,  // 32 bits: a count, a position, a length
  TRUTH_F16,
  TRUTH_BF16,
  TRUTH_F32,
  TRUTH_F64,
  TRUTH_U16X2,
  TRUTH_F16X2,
  TRUTH_BF16X2,
  TRUTH_KINDS
} truth_kind_t;

// The operand's place: the only one, or one of up to four.
typedef enum truth_place_t {
  TRUTH_ONLY,
  TRUTH_FIRST,
  TRUTH_SECOND,
  TRUTH_THIRD,
  TRUTH_FOURTH,
  TRUTH_PLACES
} truth_place_t;

// Bytes of a kind in memory: 1, 2, 4 or 8.
uint32_t truth_kind_bytes(truth_kind_t kind);

// The only operand of 16 bits goes through all 65,536 values.
uint64_t truth_input(truth_kind_t kind, truth_place_t place, uint32_t index);

#endif  // KILN_TESTS_TRUTH_TRUTH_INPUT_H_
