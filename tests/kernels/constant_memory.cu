// SPDX-License-Identifier: Apache-2.0
//
// tests: variables of the module that the host sets by name before the run:
// constant memory that all lanes read at one place or each at its own, and a
// variable in global memory that is read and written.
//
// nvrtc: --fmad=false
// other: 12.9 compute_75
//
// run: filter
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// constant: weights f32 9 unit 491
// constant: order u8 64 bits 492
// constant: offset i64 1 small 493
// buffer: in in f32 136 wide 494
// buffer: out out f32 128
// buffer: picked out i64 128
//
// run: tally
// grid: 4 1 1
// block: 32 1 1
// also: 2 1 1 64 1 1
// constant: counters u32 4 small 495
// buffer: out out u32 4
// buffer: turn inout u32 1 zero 0
__constant__ float weights[9];
__constant__ unsigned char order[64];
__constant__ long long offset;
__device__ unsigned counters[4];

extern "C" __global__ void filter(const float* in, float* out,
                                  long long* picked) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 9; ++k) sum += weights[k] * in[i + k];
  out[i] = sum;
  picked[i] = order[(i * 7) & 63] + offset;
}

// The last block to count reads what all have added.
extern "C" __global__ void tally(unsigned* out, unsigned* turn) {
  __shared__ unsigned mine;
  atomicAdd(&counters[threadIdx.x & 3], 1u);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) mine = atomicAdd(turn, 1u);
  __syncthreads();
  if (mine == gridDim.x - 1 && threadIdx.x < 4) {
    out[threadIdx.x] = atomicAdd(&counters[threadIdx.x], 0u);
  }
}
