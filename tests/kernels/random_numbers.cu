// SPDX-License-Identifier: Apache-2.0
//
// tests: random numbers: Philox 4x32-10, whose state is a counter, and
// xorshift128, whose state is carried along.
//
// other: 12.9 compute_75
//
// run: philox
// grid: 2 1 1
// block: 128 1 1
// also: 4 1 1 64 1 1
// buffer: key in u32 2 bits 281
// buffer: out out u32 1024
//
// run: xorshift
// grid: 1 1 1
// block: 96 1 1
// also: 3 1 1 32 1 1
// buffer: seeds in u32 384 bits 282
// buffer: out out u32 384
// scalar: steps u32 50
extern "C" __global__ void philox(const unsigned* key, uint4* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 c = make_uint4(i, i ^ 0x5555, 7, ~i);
  unsigned k0 = key[0];
  unsigned k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    unsigned high0 = __umulhi(0xd2511f53u, c.x);
    unsigned low0 = 0xd2511f53u * c.x;
    unsigned high1 = __umulhi(0xcd9e8d57u, c.z);
    unsigned low1 = 0xcd9e8d57u * c.z;
    c = make_uint4(high1 ^ c.y ^ k0, low1, high0 ^ c.w ^ k1, low0);
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  out[i] = c;
}

extern "C" __global__ void xorshift(const uint4* seeds, uint4* out,
                                    unsigned steps) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 s = seeds[i];
  for (unsigned n = 0; n < steps; ++n) {
    unsigned t = s.x ^ s.x << 11;
    s = make_uint4(s.y, s.z, s.w, s.w ^ s.w >> 19 ^ t ^ t >> 8);
  }
  out[i] = s;
}
