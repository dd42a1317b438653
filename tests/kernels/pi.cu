// SPDX-License-Identifier: Apache-2.0
//
// tests: pi by throwing points: integers only, so that the counts are exact in
// any order; a warp adds before it goes to memory.
//
// other: 13.5 compute_80
//
// run: pi
// grid: 4 1 1
// block: 128 1 1
// also: 8 1 1 64 1 1
// also: 2 1 1 256 1 1
// buffer: hits inout u64 1 zero 0
// scalar: throws u32 100
extern "C" __global__ void pi(unsigned long long* hits, unsigned throws) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long state = i * 2ull + 1;
  unsigned inside = 0;
  for (unsigned n = 0; n < throws; ++n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    unsigned long long x = state >> 48;
    unsigned long long y = state >> 32 & 0xffff;
    inside += x * x + y * y < 1ull << 32;
  }
  for (int d = 16; d > 0; d /= 2) {
    inside += __shfl_down_sync(0xffffffffu, inside, d);
  }
  if ((threadIdx.x & 31) == 0) atomicAdd(hits, (unsigned long long)inside);
}
