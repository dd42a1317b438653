// SPDX-License-Identifier: Apache-2.0
//
// tests: loads and stores of vectors: 16 bytes at once, two 64-bit words,
// chars and shorts by four, read-only and streaming; and copies that ask for
// no alignment.
//
// other: 12.9 compute_70
//
// run: vectors
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: floats inout f32 512 wide 481
// buffer: pairs inout u32 256 bits 482
// buffer: longs inout u64 256 bits 483
// buffer: bytes inout u8 512 bits 484
// buffer: shorts inout i16 512 bits 485
//
// run: unaligned
// grid: 1 1 1
// block: 64 1 1
// also: 2 1 1 32 1 1
// buffer: in in u8 1024 bits 486
// buffer: out out u8 1024
extern "C" __global__ void vectors(float4* floats, uint2* pairs,
                                   ulonglong2* longs, uchar4* bytes,
                                   short4* shorts) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 f = floats[i];
  floats[i] = make_float4(f.w, -f.z, f.y, f.x);
  uint2 p = __ldcs(&pairs[i]);
  __stcs(&pairs[i], make_uint2(p.y, p.x + i));
  ulonglong2 l = __ldcg(&longs[i]);
  longs[i] = make_ulonglong2(l.x ^ l.y, l.x & l.y);
  uchar4 b = bytes[i];
  bytes[i] = make_uchar4(b.x + b.y, b.y - b.z, b.z * b.w, ~b.x);
  short4 s = shorts[i];
  shorts[i] = make_short4(s.w >> 1, s.z - s.x, s.x ^ s.y, -s.y);
}

// Thread i moves eleven bytes from 13 i + 1 to 16 i + 3.
extern "C" __global__ void unaligned(const unsigned char* in,
                                     unsigned char* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned char mine[11];
  memcpy(mine, in + 13 * i + 1, 11);
  for (int n = 0; n < 11; ++n) mine[n] ^= n;
  memcpy(out + 16 * i + 3, mine, 11);
  // A word whose address is a multiple of four is still loaded as one.
  unsigned word = __ldg((const unsigned*)in + i);
  memcpy(out + 16 * i, &word, 3);
}
