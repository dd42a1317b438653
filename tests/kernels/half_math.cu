// SPDX-License-Identifier: Apache-2.0
//
// tests: half precision: sums, products, fused multiply-adds, comparisons and
// every rounding of a conversion, alone and in pairs.
//
// other: 12.9 compute_70
//
// run: half_math
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: a in u16 128 bits 761
// buffer: b in u16 128 bits 762
// buffer: wide in f32 128 wide 763
// buffer: out out u16 2560
//
// run: half_pairs
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// buffer: a in u32 128 bits 764
// buffer: b in u32 128 bits 765
// buffer: out out u32 768
#include <cuda_fp16.h>

// Numbers from 2^-3 to below 2^5, so that nothing overflows.
__device__ static __half number(unsigned bits) {
  return __ushort_as_half((unsigned short)((bits & 0x83ff) |
                                           (12 + (bits >> 10 & 7)) << 10));
}

extern "C" __global__ void half_math(const unsigned short* a,
                                     const unsigned short* b,
                                     const float* wide, unsigned short* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  __half x = number(a[i]);
  __half y = number(b[i]);
  __half z = number(a[i] ^ b[i] * 5u);
  float w = wide[i];
  unsigned short* o = out + i * 20;
  o[0] = __half_as_ushort(__hadd(x, y));
  o[1] = __half_as_ushort(__hsub(x, y));
  o[2] = __half_as_ushort(__hmul(x, y));
  o[3] = __half_as_ushort(__hfma(x, y, z));
  o[4] = __half_as_ushort(__hadd_sat(x, y));
  o[5] = __half_as_ushort(__hneg(x));
  o[6] = __half_as_ushort(__habs(x));
  o[7] = __half_as_ushort(__hmin(x, y));
  o[8] = __half_as_ushort(__hmax(x, y));
  o[9] = __hlt(x, y) + 2 * __heq(x, x) + 4 * __hge(x, y) + 8 * __hne(y, z);
  o[10] = __half_as_ushort(__float2half_rn(w));
  o[11] = __half_as_ushort(__float2half_rz(w));
  o[12] = __half_as_ushort(__float2half_rd(w));
  o[13] = __half_as_ushort(__float2half_ru(w));
  o[14] = (unsigned short)__half2int_rz(x);
  o[15] = (unsigned short)__half2short_rn(y);
  o[16] = (unsigned short)__half2uint_ru(__habs(z));
  o[17] = __half_as_ushort(__int2half_rn((int)a[i] * 3));
  o[18] = __half_as_ushort(__double2half((double)w));
  o[19] = (unsigned short)(__float_as_uint(__half2float(x)) >> 13);
}

extern "C" __global__ void half_pairs(const unsigned* a, const unsigned* b,
                                      __half2* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  __half2 x = __halves2half2(number(a[i]), number(a[i] >> 16));
  __half2 y = __halves2half2(number(b[i]), number(b[i] >> 16));
  __half2* o = out + i * 6;
  o[0] = __hadd2(x, y);
  o[1] = __hmul2(x, y);
  o[2] = __hfma2(x, y, __hneg2(x));
  o[3] = __hmax2(x, y);
  o[4] = __hgt2(x, y);
  o[5] = __lowhigh2highlow(__hsub2(x, y));
}
