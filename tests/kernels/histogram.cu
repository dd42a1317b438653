// SPDX-License-Identifier: Apache-2.0
//
// tests: a histogram: by atomics in shared memory, merged by atomics in global
// memory; and one of packed 16-bit counters a warp without atomics.
//
// other: 12.9 compute_70
//
// run: histogram
// grid: 4 1 1
// block: 256 1 1
// also: 7 1 1 96 1 1
// also: 1 1 1 1024 1 1
// buffer: in in u8 8192 bits 351
// buffer: bins inout u32 256 zero 0
// scalar: size u32 8192
//
// run: by_lane
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: in in u32 1024 bits 352
// buffer: bins inout u32 16 zero 0
extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins,
                                     unsigned size) {
  __shared__ unsigned local[256];
  for (unsigned b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size;
       i += gridDim.x * blockDim.x) {
    atomicAdd(&local[in[i] * in[i] >> 8], 1u);
  }
  __syncthreads();
  for (unsigned b = threadIdx.x; b < 256; b += blockDim.x) {
    if (local[b] != 0) atomicAdd(&bins[b], local[b]);
  }
}

// Eight words a thread into sixteen bins, two to a register.
extern "C" __global__ void by_lane(const unsigned* in, unsigned* bins) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned packed[8];
#pragma unroll
  for (int b = 0; b < 8; ++b) packed[b] = 0;
  for (int n = 0; n < 8; ++n) {
    unsigned bin = in[i * 8 + n] & 15;
#pragma unroll
    for (int b = 0; b < 8; ++b) {
      packed[b] += (bin / 2 == b) << (16 * (bin & 1));
    }
  }
#pragma unroll
  for (int b = 0; b < 8; ++b) {
    unsigned sum = packed[b];
    for (int d = 16; d > 0; d /= 2) {
      sum = __vadd2(sum, __shfl_xor_sync(0xffffffffu, sum, d));
    }
    if ((threadIdx.x & 31) == 0) {
      atomicAdd(&bins[b * 2], sum & 0xffff);
      atomicAdd(&bins[b * 2 + 1], sum >> 16);
    }
  }
}
