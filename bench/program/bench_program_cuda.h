// SPDX-License-Identifier: Apache-2.0
//
// bench: the kernels of bench_program in CUDA C++, in several ways of writing
// them: one element a thread, several, and as vectors of four.
#ifndef KILN_BENCH_PROGRAM_BENCH_PROGRAM_CUDA_H_
#define KILN_BENCH_PROGRAM_BENCH_PROGRAM_CUDA_H_

#include <stddef.h>
#include <stdint.h>

// One way to write a kernel. thread-safe
//
// It takes each buffer's address and length, then the scalars, as a lowered
// program does without its work sizes.
typedef struct cuda_way_t {
  const char* kernel;
  const char* name;
  uint32_t items;   // vectors or elements a thread; of transpose rows of one
  uint32_t vector;  // elements of a vector: 1 or 4
  uint32_t block_x;
  uint32_t block_y;
  uint32_t tile;  // side of what a block transposes; 0: does not
} cuda_way_t;

extern const cuda_way_t kCudaWays[];
extern const size_t kCudaWayCount;

// The first way of a kernel: as one would write it at first.
const cuda_way_t* cuda_way_plain(const char* kernel);

enum { CUDA_SOURCE_BYTES = 4096 };

// Its source: an entry `k`.
void cuda_way_source(const cuda_way_t* way, char out[CUDA_SOURCE_BYTES]);

// How many blocks it takes for `count` elements, of a matrix for transpose.
void cuda_way_grid(const cuda_way_t* way, uint64_t count, uint32_t width,
                   uint32_t height, uint32_t out_grid[3]);

#endif  // KILN_BENCH_PROGRAM_BENCH_PROGRAM_CUDA_H_
