// SPDX-License-Identifier: Apache-2.0
//
// tests: printf of every conversion, and assert.
//
// other: 12.9 compute_75
//
// run: print
// grid: 2 1 1
// block: 4 1 1
// buffer: in in i32 8 small 111
// buffer: out out i32 8
// prints: 14
//
// run: check
// grid: 1 1 1
// block: 32 1 1
// buffer: in in i32 32 index 0
// scalar: limit i32 32
//
// run: check
// grid: 1 1 1
// block: 32 1 1
// buffer: in in i32 32 index 0
// scalar: limit i32 31
// fails: CUDA_ERROR_ASSERT
extern "C" int printf(const char*, ...);
#include <assert.h>

extern "C" __global__ void print(const int* in, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = printf("thread %d of block %u: %5d|%-5d|%05d|%+d|%x|%#X|%o\n",
                  threadIdx.x, blockIdx.x, in[i], in[i], i, i, in[i], in[i], i);
  if (i == 3) {
    printf("%s has %c and %% and %lld, %llu\n", "text", 'x', -1234567890123LL,
           18446744073709551615ULL);
    printf("%f %10.3f %e %G %a\n", 1.5, -2.25 * in[i], 1e-10, 1e20, 0.75);
    printf("no arguments\n");
    printf("%p\n", (void*)0x1234);
    // A precision from an argument is not documented, and misread by driver 580.
    printf("%*d|%.2f|%hd|%ld|%lu\n", 7, 42, 3.14159, 70000, -5L, 99UL);
    printf("%s\n", "");
  }
}

extern "C" __global__ void check(const int* in, int limit) {
  assert(in[threadIdx.x] < limit);
}
