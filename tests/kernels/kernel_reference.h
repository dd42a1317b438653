// SPDX-License-Identifier: Apache-2.0
//
// tests: what the kernels must answer, computed in plain C.
//
// A reference knows nothing of threads: it computes what the kernel is for in
// the plainest way. Files named kernel_reference_*.c hold them by subject.
#ifndef KILN_TESTS_KERNELS_KERNEL_REFERENCE_H_
#define KILN_TESTS_KERNELS_KERNEL_REFERENCE_H_

#include "kernel_run.h"

// One run in one shape: inputs, what is wanted of the outputs (which starts as
// what they hold before the run), and what a device gave. thread-compatible
typedef struct kernel_case_t {
  const kernel_run_t* run;
  const kernel_shape_t* shape;
  uint8_t* made[KERNEL_PARAMS];
  uint8_t* wanted[KERNEL_PARAMS];
  uint8_t* got[KERNEL_PARAMS];
} kernel_case_t;

// The data of a parameter by name, each for its role; ends the program if the
// kernel has no such parameter.
const void* kernel_in(const kernel_case_t* c, const char* name);
void* kernel_out(const kernel_case_t* c, const char* name);
const void* kernel_got(const kernel_case_t* c, const char* name);
size_t kernel_count(const kernel_case_t* c, const char* name);
uint32_t kernel_u32(const kernel_case_t* c, const char* name);

// Of the shape.
uint32_t kernel_blocks(const kernel_case_t* c);
uint32_t kernel_block_size(const kernel_case_t* c);

// `compute` fills what is wanted. Where CUDA leaves a choice `judge` looks at
// what a device gave; it returns NULL, or what is wrong. thread-safe
typedef struct kernel_reference_t {
  const char* name;  // file.entry
  void (*compute)(kernel_case_t* c);
  const char* (*judge)(const kernel_case_t* c);
} kernel_reference_t;

// The reference of a run; NULL if it has none.
const kernel_reference_t* kernel_reference_find(const kernel_run_t* run);

// Each ends with a NULL name.
extern const kernel_reference_t kernel_references_data[];
extern const kernel_reference_t kernel_references_float[];
extern const kernel_reference_t kernel_references_groups[];
extern const kernel_reference_t kernel_references_hash[];
extern const kernel_reference_t kernel_references_machine[];
extern const kernel_reference_t kernel_references_sort[];

#endif  // KILN_TESTS_KERNELS_KERNEL_REFERENCE_H_
