// SPDX-License-Identifier: Apache-2.0
//
// test: a program run the slow and obvious way: what it means, by definition.
//
// Reads the IR's tables and steps every thread of every block, one at a time.
// The lowering, the software device and GPUs are held to what this says.
#ifndef KILN_TESTS_SUPPORT_PROGRAM_EVALUATOR_H_
#define KILN_TESTS_SUPPORT_PROGRAM_EVALUATOR_H_

#include <stdbool.h>
#include <stdint.h>

#include "program/ir/program_ir.h"

enum { PROGRAM_BUFFERS_MAX = 64, PROGRAM_SCALARS_MAX = 64 };

// What a trap leaves behind.
typedef struct program_trap_t {
  uint32_t set;
  uint32_t tag;
  uint64_t address;
  uint32_t block[3];
  uint32_t thread[3];
} program_trap_t;

// What a program runs on. one-thread
typedef struct program_world_t {
  // By the buffer's index in the IR. `data` has count elements, a bool is a
  // byte. Shared and private ones are the evaluator's own.
  struct {
    void* data;
    uint64_t count;
  } buffers[PROGRAM_BUFFERS_MAX];
  uint64_t scalars[PROGRAM_SCALARS_MAX];  // bits, by index in the IR
  uint32_t work[3];                       // 0: what the program says, or 1
  uint32_t block[3];  // 0: what the program says, or the default
  // The last thread of the last block first: what comes out differently is a
  // race, and means nothing.
  bool backwards;
  uint64_t step_limit;  // statements in all; 0: 100 million
  program_trap_t trap;  // the first thread's that trapped
  uint64_t steps;       // taken
  uint64_t outside;     // accesses whose index was out of range
} program_world_t;

// Runs it. NULL, or what is wrong with the program: a reason in words.
const char* program_evaluate(const kilni_program_ir_t* ir,
                             program_world_t* world);

// Fills in the work size and the block that a run would have, from the
// program, the lengths and the scalars.
const char* program_evaluate_sizes(const kilni_program_ir_t* ir,
                                   program_world_t* world);

// The value of an expression of lengths, scalars and literals: a count.
uint64_t program_evaluate_count(const kilni_program_ir_t* ir,
                                const program_world_t* world, uint32_t expr);

// A strict function of math, by the library's program.
uint64_t program_strict_unary(uint32_t op, uint8_t type, uint64_t x);
uint64_t program_strict_binary(uint32_t op, uint8_t type, uint64_t x,
                               uint64_t y);

#endif  // KILN_TESTS_SUPPORT_PROGRAM_EVALUATOR_H_
