// SPDX-License-Identifier: Apache-2.0
//
// tests: hashes of strings of many lengths: FNV-1a by the byte, a murmur of 32
// bits, and one of four 64-bit lanes in the manner of xxHash.
//
// other: 12.9 compute_70
//
// run: fnv
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// buffer: text in u8 256 bits 221
// buffer: out out u64 128
//
// run: murmur
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: text in u8 256 bits 222
// buffer: out out u32 128
//
// run: lanes
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 128 1 1
// buffer: text in u64 128 bits 223
// buffer: out out u64 128

// String i has i bytes from text[i] on.
extern "C" __global__ void fnv(const unsigned char* text,
                               unsigned long long* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long h = 0xcbf29ce484222325ull;
  for (unsigned n = 0; n < i; ++n) h = (h ^ text[i + n]) * 0x100000001b3ull;
  out[i] = h;
}

__device__ static unsigned left(unsigned x, int n) {
  return __funnelshift_l(x, x, n);
}

extern "C" __global__ void murmur(const unsigned char* text, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned char* at = text + i;
  unsigned h = i * 17;
  unsigned n = 0;
  for (; n + 4 <= i; n += 4) {
    unsigned w = at[n] | at[n + 1] << 8 | at[n + 2] << 16 |
                 (unsigned)at[n + 3] << 24;
    h = left(h ^ left(w * 0xcc9e2d51, 15) * 0x1b873593, 13) * 5 + 0xe6546b64;
  }
  unsigned w = 0;
  switch (i & 3) {
    case 3: w ^= at[n + 2] << 16;
    case 2: w ^= at[n + 1] << 8;
    case 1: w ^= at[n]; h ^= left(w * 0xcc9e2d51, 15) * 0x1b873593;
  }
  h ^= i;
  h = (h ^ h >> 16) * 0x85ebca6b;
  h = (h ^ h >> 13) * 0xc2b2ae35;
  out[i] = h ^ h >> 16;
}

// Thread i takes the 16 words from text[i] on, round the end.
extern "C" __global__ void lanes(const unsigned long long* text,
                                 unsigned long long* out) {
  const unsigned long long p = 0x9e3779b185ebca87ull;
  const unsigned long long q = 0xc2b2ae3d27d4eb4full;
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long v[4] = {p + q, q, 0, 0 - p};
  for (int n = 0; n < 16; ++n) {
    unsigned long long x = v[n & 3] + text[(i + n) & 127] * q;
    v[n & 3] = (x << 31 | x >> 33) * p;
  }
  unsigned long long h = 0;
  for (int n = 0; n < 4; ++n) {
    h += v[n] << (1 + 6 * n) | v[n] >> (63 - 6 * n);
    h = (h ^ __umul64hi(v[n], p)) * q;
  }
  out[i] = h ^ h >> 32;
}
