// SPDX-License-Identifier: Apache-2.0
//
// tests: stream compaction by ballot: in order within a block's own part, and
// without order by one counter for all.
//
// other: 12.9 compute_75
//
// run: in_order
// grid: 4 1 1
// block: 256 1 1
// also: 4 1 1 128 1 1
// also: 4 1 1 32 1 1
// buffer: in in i32 1024 small 341
// buffer: out out i32 1024
// buffer: counts out u32 4
//
// run: any_order
// grid: 4 1 1
// block: 128 1 1
// also: 8 1 1 96 1 1
// buffer: in in i32 1000 bits 342
// buffer: out out i32 1000
// buffer: count inout u32 1 zero 0
// scalar: size u32 1000
// open: out the order in which warps reach the counter
#define FULL 0xffffffffu

// Block b keeps the positive ones of in[256 b ...] at out[256 b ...].
extern "C" __global__ void in_order(const int* in, int* out,
                                    unsigned* counts) {
  __shared__ unsigned sums[8];
  unsigned lane = threadIdx.x & 31;
  unsigned warp = threadIdx.x / 32;
  unsigned base = blockIdx.x * 256;
  unsigned kept = 0;
  for (unsigned at = 0; at < 256; at += blockDim.x) {
    int x = in[base + at + threadIdx.x];
    unsigned keep = __ballot_sync(FULL, x > 0);
    if (lane == 0) sums[warp] = __popc(keep);
    __syncthreads();
    unsigned before = kept;
    for (unsigned w = 0; w < blockDim.x / 32; ++w) {
      if (w < warp) before += sums[w];
      kept += sums[w];
    }
    if (x > 0) out[base + before + __popc(keep & ((1u << lane) - 1))] = x;
    __syncthreads();
  }
  if (threadIdx.x == 0) counts[blockIdx.x] = kept;
}

// Keeps multiples of three; one lane of a warp adds for all.
extern "C" __global__ void any_order(const int* in, int* out, unsigned* count,
                                     unsigned size) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size;
       i += gridDim.x * blockDim.x) {
    if (in[i] % 3 != 0) continue;
    unsigned together = __activemask();
    unsigned lane = threadIdx.x & 31;
    unsigned leader = __ffs(together) - 1;
    unsigned at = 0;
    if (lane == leader) at = atomicAdd(count, (unsigned)__popc(together));
    at = __shfl_sync(together, at, leader);
    out[at + __popc(together & ((1u << lane) - 1))] = in[i];
  }
}
