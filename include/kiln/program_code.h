// SPDX-License-Identifier: Apache-2.0
//
// program: a program as PTX.
//
// Lowering needs no compiler, no driver and no device, and takes microseconds.
// The text loads with every driver that knows its PTX version; the kernel's
// parameters are described with it.
#ifndef KILN_PROGRAM_CODE_H_
#define KILN_PROGRAM_CODE_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/program.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// A lowered program. thread-safe
//
// Reference-counted and never changed.
typedef struct kiln_program_code_t kiln_program_code_t;

// Parts of the lowering to skip, individually: to find out which of them
// matters, and for users who must avoid one. They do not affect the meaning of
// a program.
enum {
  KILN_PROGRAM_WITHOUT_FOLDING = 1,   // constants are computed at run time
  KILN_PROGRAM_WITHOUT_SHARING = 2,   // equal expressions, each by itself
  KILN_PROGRAM_WITHOUT_HOISTING = 4,  // nothing moves out of a loop
  KILN_PROGRAM_WITHOUT_STRENGTH = 8,  // constant divisors are divided by
  KILN_PROGRAM_WITHOUT_RANGES = 16,   // every access is checked
  KILN_PROGRAM_WITHOUT_UNROLLING = 32,
  KILN_PROGRAM_WITHOUT_DROPPING = 64,  // unused code is written
  KILN_PROGRAM_WITHOUT_SCALARS = 128,  // private arrays stay in memory
  // No ld.global.nc, and no load moved over a store to another buffer: for
  // buffers that overlap, one of them written.
  KILN_PROGRAM_WITHOUT_READ_ONLY = 256,
  KILN_PROGRAM_WITHOUT_VECTORS = 512,  // one element a thread
  // Every shared array is zeroed, even if everything that is read was written.
  KILN_PROGRAM_WITHOUT_COVERING = 1024,
  KILN_PROGRAM_WITHOUT_PREDICATES = 2048,  // every `if` jumps
};

// How a program is lowered. thread-compatible
//
// Zero in any field is its default.
typedef struct kiln_program_lower_options_t {
  uint32_t struct_size;  // sizeof(kiln_program_lower_options_t)

  // The architecture that the code is for, as 75 or 90. Default: 75. The text
  // names the lowest one that has what it uses.
  uint32_t sm;

  // The newest PTX version that the driver loads, as 78 for 7.8. Default: any.
  // The text names the lowest one that has what it uses.
  uint32_t newest_isa;

  // The error that f32 functions may have, in ULP; 0: strict, below 1 ULP and
  // the same bits on every device. From 32 on a matrix_multiply_accumulate may
  // be what tensor cores make of it: in ULP of the sum of its absolute values.
  uint32_t max_ulp;

  uint32_t without;  // KILN_PROGRAM_WITHOUT_*

  // How many elements a thread does, where a program lets one do several: 1,
  // 2, 4, 8 or 16. Default: as many as suits the program.
  uint32_t elements;

  const kiln_allocator_t* allocator;  // Default: the C library's.

  // 1 + the index of a parameter: code that repeats the program, round by
  // round, until a round leaves that buffer's one element, a u32, at zero, or
  // the limit of rounds is reached. Blocks go through the work again and again
  // and wait for each other after each round; the launch is a cooperative one,
  // of as many blocks as run at once, along axis 0, and no more than the work
  // has. The element is zero when a round begins. Each thread does one element
  // of the work at a time. Default: code that runs the program once.
  uint32_t rounds;

  // KILN_SWITCH_*: every thread waits (griddepcontrol.wait) before its first
  // access to global memory and before its end, and lets later work on the
  // stream start then, so that launches of the code may overlap earlier work
  // (kiln_launch_attributes_t.overlap). No ld.global.nc: earlier work may still
  // write. sm_90, PTX 7.8; UNSUPPORTED below. Default: off.
  uint32_t waits;
} kiln_program_lower_options_t;

// All defaults. Since 0.1.
static inline kiln_program_lower_options_t kiln_program_lower_options_default(
    void) {
  kiln_program_lower_options_t options = {
      (uint32_t)sizeof(options), 0, 0, 0, 0, 0, NULL, 0, 0};
  return options;
}

// Kinds of kernel parameters.
enum {
  KILN_PROGRAM_PARAMETER_NONE = 0,
  KILN_PROGRAM_PARAMETER_ADDRESS = 1,  // u64: of the index-th buffer
  KILN_PROGRAM_PARAMETER_LENGTH = 2,   // u64: how many elements it has
  KILN_PROGRAM_PARAMETER_SCALAR = 3,   // the index-th scalar
  KILN_PROGRAM_PARAMETER_WORK = 4,     // u32: the work size of axis `index`
  // u64: the address of a kiln_program_trap_t in memory that host and device
  // share, zero before the launch.
  KILN_PROGRAM_PARAMETER_TRAP = 5,
  // u64: the address of 24 bytes of device memory for the grid barrier, zero
  // before the launch and zero again after it.
  KILN_PROGRAM_PARAMETER_GRID = 6,
  // Of code that repeats its program. u64: the address of 32 bytes of device
  // memory in which blocks meet, zero before the launch and zero again after
  // it.
  KILN_PROGRAM_PARAMETER_MEET = 7,
  // u64: the address of a kiln_program_rounds_t in memory that host and device
  // share, which the launch writes.
  KILN_PROGRAM_PARAMETER_ROUNDS = 8,
  KILN_PROGRAM_PARAMETER_LIMIT = 9,  // u32: of rounds; at least 1
};

// One parameter of the kernel, in their order. thread-compatible
typedef struct kiln_program_parameter_t {
  uint32_t kind;      // KILN_PROGRAM_PARAMETER_*
  uint32_t index;     // of a buffer or scalar: in the order of declaration,
                      // counted by kind, from 0; of a work size: its axis
  uint32_t type;      // KILN_PROGRAM_TYPE_*
  uint32_t reserved;  // 0
} kiln_program_parameter_t;

// What the first thread that trapped wrote. thread-compatible
typedef struct kiln_program_trap_t {
  uint32_t set;  // 1: there was one
  uint32_t tag;
  uint64_t address;
  uint32_t block[3];
  uint32_t thread[3];
} kiln_program_trap_t;

// How rounds ended.
enum {
  KILN_PROGRAM_ROUNDS_SETTLED = 1,  // the last one changed nothing
  KILN_PROGRAM_ROUNDS_LIMIT = 2,    // the last one allowed changed something
  KILN_PROGRAM_ROUNDS_TRAPPED = 3,  // a thread trapped in the last one
};

// The result of code that repeats its program. thread-compatible
typedef struct kiln_program_rounds_t {
  uint32_t rounds;  // that were done, the last one too
  uint32_t end;     // KILN_PROGRAM_ROUNDS_*
} kiln_program_rounds_t;

// The launch requirements of the code. thread-compatible
typedef struct kiln_program_launch_t {
  uint32_t block[3];              // threads
  uint32_t sm;                    // the minimum architecture
  uint32_t isa;                   // the PTX version of the text
  uint32_t cooperative;           // 1: all blocks must run at once
  uint32_t static_shared_bytes;   // part of the code
  uint32_t dynamic_shared_bytes;  // to be requested at the launch
  uint32_t zeroed_shared_bytes;   // of arrays zeroed at the start of blocks
  uint32_t private_bytes;         // of arrays in a thread's own memory
  uint32_t elements;  // of the work along axis 0 that each thread does
  uint32_t waits;     // 1: every thread waits for earlier work
} kiln_program_launch_t;

// Lowers a program. `options` may be NULL.
//
//   UNSUPPORTED     the program needs a newer architecture or PTX version, or
//                   uses what is not lowered yet; with `rounds`: it has a grid
//                   barrier, or reads its flag; the message names it
//   LIMIT_EXCEEDED  more instructions than 1048576 once functions are put in
//                   place, more parameters than a kernel may have (4096
//                   bytes), or more than 227 KiB of shared memory
//   INVALID_ARGUMENT, INCOMPATIBLE  options
//   OUT_OF_MEMORY
//
// The caller owns `*out_code`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_program_lower(
    const kiln_program_t* program, const kiln_program_lower_options_t* options,
    kiln_program_code_t** out_code);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_program_code_retain(kiln_program_code_t* code);
KILN_API void kiln_program_code_release(kiln_program_code_t* code);

// The PTX text, followed by a NUL that is not counted. Borrowed. Since 0.1.
KILN_API kiln_string_view_t
kiln_program_code_text(const kiln_program_code_t* code);

// The kernel's name. Borrowed. Since 0.1.
KILN_API const char* kiln_program_code_entry(const kiln_program_code_t* code);

// How it is launched. Since 0.1.
KILN_API void kiln_program_code_launch(const kiln_program_code_t* code,
                                       kiln_program_launch_t* out_launch);

// The name of the index-th shared array that is zeroed at the start of blocks,
// because not all of its elements that are read are proved to be written before
// by threads of the block, with a barrier in between; NULL past the last one.
// One without a name is called _b and a number. Borrowed. Since 0.1.
KILN_API const char* kiln_program_code_zeroed(const kiln_program_code_t* code,
                                              uint32_t index);

// How many blocks do a work of that size: what the grid is. 0 along an axis
// without work: then there is nothing to launch. `work` as returned by
// kiln_program_sizes: at most 2^32 - 1 along an axis. How many blocks a device
// takes along y and z (65535) is checked by the launch. Since 0.1.
KILN_API void kiln_program_code_grid(const kiln_program_code_t* code,
                                     const uint64_t work[3],
                                     uint32_t out_grid[3]);

// How many parameters the kernel has, and one of them; false, with all zero,
// out of range. Since 0.1.
KILN_API uint32_t
kiln_program_code_parameter_count(const kiln_program_code_t* code);
KILN_API bool kiln_program_code_parameter(
    const kiln_program_code_t* code, uint32_t index,
    kiln_program_parameter_t* out_parameter);

KILN_EXTERN_C_END

#endif  // KILN_PROGRAM_CODE_H_
