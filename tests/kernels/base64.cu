// SPDX-License-Identifier: Apache-2.0
//
// tests: base64, there and back: bytes to characters with a branch for the
// padding, characters to bytes without one.
//
// other: 13.5 compute_80
//
// run: encode
// grid: 2 1 1
// block: 64 1 1
// also: 1 1 1 160 1 1
// buffer: in in u8 301 bits 241
// buffer: out out u8 404
// scalar: size u32 301
//
// run: decode
// grid: 3 1 1
// block: 32 1 1
// also: 1 1 1 96 1 1
// buffer: in in u8 384 bits 242
// buffer: out out u8 288
__device__ static unsigned char letter(unsigned six) {
  const char* all =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return all[six & 63];
}

extern "C" __global__ void encode(const unsigned char* in, unsigned char* out,
                                  unsigned size) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 3 >= size) return;
  unsigned left = size - i * 3;
  unsigned w = in[i * 3] << 16;
  if (left > 1) w |= in[i * 3 + 1] << 8;
  if (left > 2) w |= in[i * 3 + 2];
  unsigned char* o = out + i * 4;
  o[0] = letter(w >> 18);
  o[1] = letter(w >> 12);
  o[2] = left > 1 ? letter(w >> 6) : '=';
  o[3] = left > 2 ? letter(w) : '=';
}

// Of a character its six bits, by arithmetic on ranges.
__device__ static int six_of(int c) {
  int v = -1;
  v += (c >= 'A' && c <= 'Z') * (c - 'A' + 1);
  v += (c >= 'a' && c <= 'z') * (c - 'a' + 27);
  v += (c >= '0' && c <= '9') * (c - '0' + 53);
  v += (c == '+') * 63;
  v += (c == '/') * 64;
  return v;
}

// The input is made of letters here: any byte stands for one.
extern "C" __global__ void decode(const unsigned char* in,
                                  unsigned char* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned w = 0;
  for (int n = 0; n < 4; ++n) w = w << 6 | six_of(letter(in[i * 4 + n]));
  out[i * 3] = w >> 16;
  out[i * 3 + 1] = w >> 8;
  out[i * 3 + 2] = w;
}
