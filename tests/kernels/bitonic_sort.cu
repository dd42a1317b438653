// SPDX-License-Identifier: Apache-2.0
//
// tests: a bitonic sort of signed numbers in shared memory, and one of 32
// floats a warp by shuffles alone.
//
// other: 12.9 compute_75
//
// run: bitonic
// grid: 2 1 1
// block: 256 1 1
// also: 2 1 1 64 1 1
// also: 2 1 1 100 1 1
// buffer: data inout i32 512 bits 311
//
// run: bitonic_warp
// grid: 2 1 1
// block: 128 1 1
// also: 8 1 1 32 1 1
// buffer: data inout f32 256 wide 312
#define SIZE 256

extern "C" __global__ void bitonic(int* data) {
  __shared__ int s[SIZE];
  int* mine = data + blockIdx.x * SIZE;
  for (int i = threadIdx.x; i < SIZE; i += blockDim.x) s[i] = mine[i];
  for (int k = 2; k <= SIZE; k *= 2) {
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < SIZE; i += blockDim.x) {
        int other = i ^ j;
        if (other <= i) continue;
        bool up = (i & k) == 0;
        if ((s[i] > s[other]) == up) {
          int t = s[i];
          s[i] = s[other];
          s[other] = t;
        }
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < SIZE; i += blockDim.x) mine[i] = s[i];
}

extern "C" __global__ void bitonic_warp(float* data) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane = threadIdx.x & 31;
  float x = data[i];
  for (unsigned k = 2; k <= 32; k *= 2) {
    for (unsigned j = k / 2; j > 0; j /= 2) {
      float y = __shfl_xor_sync(0xffffffffu, x, j);
      bool low = ((lane & j) == 0) == ((lane & k) == 0);
      x = low ? fminf(x, y) : fmaxf(x, y);
    }
  }
  data[i] = x;
}
