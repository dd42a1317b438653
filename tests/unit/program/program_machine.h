// SPDX-License-Identifier: Apache-2.0
//
// program: a program lowered and run on the software device, beside what the
// reference evaluator says of it.
#ifndef KILN_TESTS_UNIT_PROGRAM_PROGRAM_MACHINE_H_
#define KILN_TESTS_UNIT_PROGRAM_PROGRAM_MACHINE_H_

#include "kiln/program_code.h"
#include "program/ir/program_ir.h"
#include "program_evaluator.h"
#include "soft_kit.h"

enum { MACHINE_LAST_PASS = KILN_PROGRAM_WITHOUT_PREDICATES };

// What a program is lowered to; the test fails where it is refused, or where
// its kernel may read a register that is not written (ptx_defined.h).
kiln_program_code_t* machine_lower(const kiln_program_t* program,
                                   const kiln_program_lower_options_t* options);

// What is lowered, and with which options, is run on the world's buffers.
void machine_run(const kilni_program_ir_t* ir,
                 const kiln_program_lower_options_t* options,
                 program_world_t* world);

// How a kernel that repeats its program is launched, and what it came to.
typedef struct machine_rounds_t {
  uint32_t blocks;
  uint32_t limit;
  uint32_t way;  // of soft_kit_way
  kiln_program_rounds_t end;
} machine_rounds_t;

// The same with options->rounds, in one launch.
void machine_run_rounds(const kilni_program_ir_t* ir,
                        const kiln_program_lower_options_t* options,
                        program_world_t* world, machine_rounds_t* rounds);

// A program text on buffers of those element counts (in the order of the
// program's buffer parameters), filled from `seed`; evaluated and run on the
// software device, lowered for sm_75 and for sm_90 and without each of the
// optimiser's passes. Fails the test at the first element that differs.
void machine_check(const char* text, const uint64_t* counts,
                   const uint64_t* scalars, uint64_t seed);

// The same for one way.
void machine_check_way(const char* text, const uint64_t* counts,
                       const uint64_t* scalars, uint64_t seed, uint32_t sm,
                       uint32_t without);

// With the arguments "collect FOLDER" nothing is run: the PTX of each way goes
// into files in that folder, for check_program_ptxas.py.
void machine_collect(int argc, char** argv);
bool machine_collects(void);
// One that repeats a program with this flag.
void machine_collect_rounds(const kiln_program_t* program, uint32_t flag);

// The same of a text with an unlimited budget.
void machine_collect_fast(const char* text);

// For what runs behind it: how many elements further on than a multiple of 256
// bytes all buffers begin, and how many elements a thread shall do. 0, 0: as it
// is at first.
void machine_shape(uint32_t offset, uint32_t elements);

// How often an instruction ("ld.global.nc.v4.f32") stands in what a text is
// lowered to, as the PTX reader sees it.
uint32_t machine_forms(const char* text, uint32_t sm, uint32_t without,
                       const char* form);

// The PTX of a text, for free().
char* machine_ptx(const char* text, uint32_t sm, uint32_t without);

// How often a word stands in a text.
uint32_t machine_count(const char* text, const char* word);

#endif  // KILN_TESTS_UNIT_PROGRAM_PROGRAM_MACHINE_H_
