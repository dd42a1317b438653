// SPDX-License-Identifier: Apache-2.0
//
// tests: SHA-256 of many short messages, one a thread: rotations, a table in
// constant memory, a schedule in local memory, padding by the byte.
//
// other: 12.9 compute_70
//
// run: sha256
// grid: 3 1 1
// block: 64 1 1
// also: 1 1 1 32 1 1
// also: 2 1 1 96 1 1
// buffer: text in u8 512 bits 201
// buffer: digests out u32 1536
// scalar: messages u32 192
__constant__ unsigned k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ static unsigned turn(unsigned x, int n) {
  return x >> n | x << (32 - n);
}

// Byte `at` of the padded message of `length` bytes.
__device__ static unsigned padded(const unsigned char* text, unsigned length,
                                  unsigned at, unsigned total) {
  if (at < length) return text[at];
  if (at == length) return 0x80;
  unsigned back = total - 1 - at;
  return back < 4 ? (length * 8) >> (8 * back) & 0xff : 0;
}

__device__ static void block_step(unsigned* h, const unsigned* first) {
  unsigned w[64];
  for (int t = 0; t < 16; ++t) w[t] = first[t];
  for (int t = 16; t < 64; ++t) {
    unsigned a = w[t - 15];
    unsigned b = w[t - 2];
    w[t] = w[t - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[t - 7] +
           (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
  }
  unsigned s[8];
  for (int i = 0; i < 8; ++i) s[i] = h[i];
  for (int t = 0; t < 64; ++t) {
    unsigned e = s[4];
    unsigned a = s[0];
    unsigned one = s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                   ((e & s[5]) ^ (~e & s[6])) + k[t] + w[t];
    unsigned two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                   ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    for (int i = 7; i > 0; --i) s[i] = s[i - 1];
    s[4] += one;
    s[0] = one + two;
  }
  for (int i = 0; i < 8; ++i) h[i] += s[i];
}

// Message m is the `m` bytes from text[m] on.
extern "C" __global__ void sha256(const unsigned char* text, unsigned* digests,
                                  unsigned messages) {
  unsigned step = gridDim.x * blockDim.x;
  for (unsigned m = blockIdx.x * blockDim.x + threadIdx.x; m < messages;
       m += step) {
    unsigned h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned total = (m + 9 + 63) / 64 * 64;
    for (unsigned at = 0; at < total; at += 64) {
      unsigned w[16];
      for (unsigned i = 0; i < 64; i += 4) {
        w[i / 4] = padded(text + m, m, at + i, total) << 24 |
                   padded(text + m, m, at + i + 1, total) << 16 |
                   padded(text + m, m, at + i + 2, total) << 8 |
                   padded(text + m, m, at + i + 3, total);
      }
      block_step(h, w);
    }
    for (int i = 0; i < 8; ++i) digests[m * 8 + i] = h[i];
  }
}
