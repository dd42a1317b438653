// SPDX-License-Identifier: Apache-2.0
//
// tests: integers wider than registers: division and remainder of 64 bits,
// signed and not, and products, sums, shifts and division of 128 bits.
//
// nvrtc: --device-int128
// other: 12.9 compute_70
//
// run: wide_division
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// buffer: a in u64 128 bits 591
// buffer: b in u64 128 bits 592
// buffer: out out u64 512
//
// run: int128
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: a in u64 128 bits 593
// buffer: b in u64 128 bits 594
// buffer: out out u64 1536
typedef unsigned __int128 u128;

extern "C" __global__ void wide_division(const unsigned long long* a,
                                         const unsigned long long* b,
                                         unsigned long long* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long x = a[i];
  unsigned long long y = (b[i] >> (b[i] & 63)) | 1;
  long long sx = (long long)x;
  long long sy = i & 1 ? -(long long)(y >> 1 | 1) : (long long)(y >> 1 | 1);
  out[i * 4] = x / y;
  out[i * 4 + 1] = x % y;
  out[i * 4 + 2] = (unsigned long long)(sx / sy);
  out[i * 4 + 3] = (unsigned long long)(sx % sy);
}

__device__ static void put(unsigned long long* o, u128 x) {
  o[0] = (unsigned long long)x;
  o[1] = (unsigned long long)(x >> 64);
}

extern "C" __global__ void int128(const unsigned long long* a,
                                  const unsigned long long* b,
                                  unsigned long long* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long* o = out + i * 12;
  u128 x = (u128)a[i] << 64 | b[i];
  u128 y = (u128)b[127 - i] << 64 | a[127 - i];
  put(o, x + y);
  put(o + 2, x * y);
  put(o + 4, x >> (i & 127) ^ y << (i * 3 & 127));
  y = y >> (b[i] & 127) | 1;
  put(o + 6, x / y);
  put(o + 8, x % y);
  put(o + 10, (u128)((__int128)x / (__int128)(y >> 1 | 1)));
}
