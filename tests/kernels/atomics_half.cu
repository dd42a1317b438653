// SPDX-License-Identifier: Apache-2.0
//
// tests: atomics of 16-bit floats, alone and in pairs: small whole numbers, so
// that sums are exact in any order.
//
// other: 13.5 compute_80
//
// run: half_sums
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: in in u8 128 bits 751
// buffer: halves inout u16 8 zero 0
//
// run: bf16_sums
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// buffer: in in u8 128 bits 752
// buffer: bfloats inout u16 8 zero 0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half_sums(const unsigned char* in, __half* h) {
  __shared__ __half2 part;
  if (threadIdx.x == 0) part = __float2half2_rn(0.0f);
  __syncthreads();
  int x = in[blockIdx.x * blockDim.x + threadIdx.x] & 15;
  atomicAdd(&h[0], __int2half_rn(x));
  atomicAdd(&h[1], __int2half_rn(-x));
  atomicAdd((__half2*)&h[2], __floats2half2_rn((float)x, 1.0f));
  atomicAdd(&part, __floats2half2_rn(1.0f, (float)(x & 3)));
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd((__half2*)&h[4], part);
}

extern "C" __global__ void bf16_sums(const unsigned char* in,
                                     __nv_bfloat16* h) {
  int x = in[blockIdx.x * blockDim.x + threadIdx.x] & 1;
  atomicAdd(&h[0], __float2bfloat16((float)x));
  atomicAdd(&h[1], __float2bfloat16((float)-x));
  atomicAdd((__nv_bfloat162*)&h[2], __floats2bfloat162_rn((float)x, 1.0f));
}
