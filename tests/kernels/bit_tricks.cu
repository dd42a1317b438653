// SPDX-License-Identifier: Apache-2.0
//
// tests: intrinsics on bits: reversal, counts, first and last set bits, byte
// permutations, funnel shifts, dot products of bytes and shorts, sums of
// differences, SIMD within a word, and the n-th set bit.
//
// other: 12.9 compute_70
//
// run: bit_tricks
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// buffer: a in u32 128 edge 501
// buffer: b in u32 128 bits 502
// buffer: out out u32 4096
//
// run: bit_tricks_64
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: a in u64 128 edge 503
// buffer: b in u64 128 bits 504
// buffer: out out u64 1024
extern "C" __global__ void bit_tricks(const unsigned* a, const unsigned* b,
                                      unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned x = a[i];
  unsigned y = b[i];
  unsigned* o = out + i * 32;
  o[0] = __brev(x);
  o[1] = __ffs(x);
  o[2] = __popc(x ^ y);
  o[3] = __clz(x);
  o[4] = __byte_perm(x, y, y >> 8);
  o[5] = __funnelshift_l(x, y, i);
  o[6] = __funnelshift_r(x, y, i);
  o[7] = __funnelshift_lc(x, y, i);
  o[8] = __funnelshift_rc(x, y, i);
  o[9] = __dp4a(x, y, i);
  o[10] = __dp4a((int)x, (int)y, -(int)i);
  o[11] = __dp2a_lo((int)x, (int)y, (int)i);
  o[12] = __dp2a_hi(x, y, i);
  o[13] = __sad((int)x, (int)y, i);
  o[14] = __usad(x, y, i);
  o[15] = __mulhi((int)x, (int)y);
  o[16] = __umulhi(x, y);
  o[17] = __mul24((int)x, (int)y);
  o[18] = __umul24(x, y);
  o[19] = __hadd((int)x, (int)y);
  o[20] = __rhadd((int)x, (int)y);
  o[21] = __uhadd(x, y);
  o[22] = __urhadd(x, y);
  o[23] = __fns(x, i & 31, (int)(y % 7) - 3);
  o[24] = x & 0 - x;
  o[25] = x & x - 1;
  o[26] = (x & y) | (~x & i);
  o[27] = x ^ y ^ i;
  o[28] = x >> (y & 31) | y << (i & 31);
  o[29] = (int)x >> (y & 31);
  o[30] = (x >> 5 & 0x1ff) << 7 | (y & 0x7f);
  o[31] = (unsigned)(signed char)(y >> 8) + (unsigned)(short)x;
}

extern "C" __global__ void bit_tricks_64(const unsigned long long* a,
                                         const unsigned long long* b,
                                         unsigned long long* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long x = a[i];
  unsigned long long y = b[i];
  unsigned long long* o = out + i * 8;
  o[0] = __brevll(x);
  o[1] = __ffsll((long long)x);
  o[2] = __popcll(x ^ y);
  o[3] = __clzll((long long)x);
  o[4] = __umul64hi(x, y);
  o[5] = (unsigned long long)__mul64hi((long long)x, (long long)y);
  o[6] = x << (i & 63) | y >> (63 - (i & 63));
  o[7] = (unsigned long long)((long long)x >> (i & 63));
}
