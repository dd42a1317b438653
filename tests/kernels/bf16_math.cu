// SPDX-License-Identifier: Apache-2.0
//
// tests: bfloat16: sums, products, fused multiply-adds, comparisons and
// conversions, alone and in pairs.
//
// other: 13.5 compute_80
//
// run: bf16_math
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: a in u16 128 bits 771
// buffer: b in u16 128 bits 772
// buffer: wide in f32 128 wide 773
// buffer: out out u16 1536
//
// run: bf16_pairs
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// buffer: a in u32 128 bits 774
// buffer: b in u32 128 bits 775
// buffer: out out u32 512
#include <cuda_bf16.h>

// Numbers from 1/2 to below 4.
__device__ static __nv_bfloat16 number(unsigned bits) {
  return __ushort_as_bfloat16(
      (unsigned short)((bits & 0x807f) | (126 + (bits >> 7) % 3) << 7));
}

extern "C" __global__ void bf16_math(const unsigned short* a,
                                     const unsigned short* b,
                                     const float* wide, unsigned short* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  __nv_bfloat16 x = number(a[i]);
  __nv_bfloat16 y = number(b[i]);
  __nv_bfloat16 z = number(a[i] ^ b[i] * 5u);
  float w = wide[i];
  unsigned short* o = out + i * 12;
  o[0] = __bfloat16_as_ushort(__hadd(x, y));
  o[1] = __bfloat16_as_ushort(__hsub(x, y));
  o[2] = __bfloat16_as_ushort(__hmul(x, y));
  o[3] = __bfloat16_as_ushort(__hfma(x, y, z));
  o[4] = __bfloat16_as_ushort(__hneg(x));
  o[5] = __bfloat16_as_ushort(__hmin(x, y));
  o[6] = __bfloat16_as_ushort(__hmax(x, y));
  o[7] = __hlt(x, y) + 2 * __heq(x, x) + 4 * __hge(x, y) + 8 * __hne(y, z);
  o[8] = __bfloat16_as_ushort(__float2bfloat16_rn(w));
  o[9] = __bfloat16_as_ushort(__float2bfloat16_rz(w));
  o[10] = (unsigned short)__bfloat162int_rz(x);
  o[11] = (unsigned short)(__float_as_uint(__bfloat162float(y)) >> 16);
}

extern "C" __global__ void bf16_pairs(const unsigned* a, const unsigned* b,
                                      __nv_bfloat162* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  __nv_bfloat162 x = __halves2bfloat162(number(a[i]), number(a[i] >> 16));
  __nv_bfloat162 y = __halves2bfloat162(number(b[i]), number(b[i] >> 16));
  __nv_bfloat162* o = out + i * 4;
  o[0] = __hadd2(x, y);
  o[1] = __hmul2(x, y);
  o[2] = __hfma2(x, y, __hneg2(x));
  o[3] = __hmin2(x, y);
}
