// SPDX-License-Identifier: Apache-2.0
//
// test: programs run by the evaluator and by a device, and compared.
//
// A case is one program with its inputs and what the evaluator says comes out.
// Cases are run on a device a whole batch at a time: one module with an entry
// for each. A failing one is made smaller by shrinking its text.
#ifndef KILN_TESTS_SUPPORT_PROGRAM_RUNNER_H_
#define KILN_TESTS_SUPPORT_PROGRAM_RUNNER_H_

#include "kiln/kiln.h"
#include "kiln/program.h"
#include "kiln/program_code.h"
#include "program_evaluator.h"

enum { PROGRAM_REASON_BYTES = 1024, PROGRAM_RUNTIME_COUNT = 50 };

// one-thread
typedef struct program_case_t {
  uint64_t seed;  // of its inputs
  kiln_program_t* program;
  kiln_program_code_t* code;
  const kilni_program_ir_t* ir;
  program_world_t world;  // buffers: as the evaluator left them
  // Where each buffer lies in the inputs and in the device's memory, which
  // both are `bytes` long; behind the buffers what the kernel keeps there.
  uint64_t offsets[PROGRAM_BUFFERS_MAX];
  uint64_t bytes;
  uint64_t trap_offset;
  uint64_t grid_offset;
  uint8_t* inputs;
  uint8_t* outputs;  // the evaluator's
  // What runs in the place of `code`, as `code` is run: PTX or a cubin with
  // its entry and parameters. Borrowed; NULL: `code`.
  const uint8_t* image;
  size_t image_size;
  char reason[PROGRAM_REASON_BYTES];
} program_case_t;

// What to do with a case.
typedef struct program_run_options_t {
  uint32_t sm;  // of the code
  uint32_t newest_isa;
  uint32_t without;   // KILN_PROGRAM_WITHOUT_*
  uint32_t elements;  // of buffers without a count; 0: PROGRAM_RUNTIME_COUNT
  bool edges;         // inputs are the ends of types, each pair of them
  bool spread;        // few elements: ends far from each other, random ones
} program_run_options_t;

// Reads, evaluates and lowers a program. False: not valid, or the evaluator or
// ptx_defined found fault with it; `reason` says what.
bool program_case_open(program_case_t* c, const char* text, uint64_t seed,
                       const program_run_options_t* options);
void program_case_close(program_case_t* c);

// Seconds, summed.
typedef struct program_times_t {
  double load;  // a module: the driver compiles it
  double run;
} program_times_t;

// Runs `count` cases on a device, as one module (of a case with an image of
// its own: that; there is no other case then). A result that is not the
// evaluator's is in the case's `reason`, which is "" where all is well. False:
// the module could not be loaded or run: `out_error`. `times`, if not NULL,
// grows.
bool program_batch_run(kiln_device_t* device, kiln_stream_t* stream,
                       program_case_t* cases, uint32_t count,
                       char out_error[PROGRAM_REASON_BYTES],
                       program_times_t* times);

// One program from text to comparison: 0 the same, 1 different, 2 not to be
// run (not valid). `reason` as above.
int program_try(kiln_device_t* device, kiln_stream_t* stream, const char* text,
                uint64_t seed, const program_run_options_t* options,
                char reason[PROGRAM_REASON_BYTES]);

// Makes a text smaller as long as `fails` holds for it: drops lines and whole
// bodies, puts literals and operands in the place of expressions. `text` is
// changed in place.
typedef bool (*program_fails_t)(void* user, const char* text);
void program_shrink(char* text, program_fails_t fails, void* user);

// Prints what a program runs on.
void program_case_print(const program_case_t* c);

#endif  // KILN_TESTS_SUPPORT_PROGRAM_RUNNER_H_
