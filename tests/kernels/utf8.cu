// SPDX-License-Identifier: Apache-2.0
//
// tests: which bytes are part of well-formed UTF-8: each thread judges the
// sequence that begins at its byte; early exits at many depths.
//
// other: 12.9 compute_70
//
// run: utf8
// grid: 8 1 1
// block: 256 1 1
// also: 16 1 1 128 1 1
// also: 64 1 1 32 1 1
// buffer: raw in u8 2048 bits 251
// buffer: lengths out u8 2048
// buffer: counts inout u32 5 zero 0
// scalar: size u32 2048

// Random bytes are seldom well formed; these are more often.
__device__ static unsigned byte_at(const unsigned char* raw, unsigned i,
                                   unsigned size) {
  if (i >= size) return 0x100;
  unsigned c = raw[i];
  return i % 4 == 0 ? c : c % 8 < 6 ? 0x80 | (c >> 2) : c;
}

// Bytes of the sequence that begins at i; 0 if none does.
__device__ static unsigned length_at(const unsigned char* raw, unsigned i,
                                     unsigned size) {
  unsigned c = byte_at(raw, i, size);
  if (c < 0x80) return 1;
  if (c < 0xc2 || c > 0xf4) return 0;
  unsigned d = byte_at(raw, i + 1, size);
  if ((d & 0x1c0) != 0x80) return 0;
  if (c < 0xe0) return 2;
  if (c == 0xe0 && d < 0xa0) return 0;
  if (c == 0xed && d > 0x9f) return 0;
  if ((byte_at(raw, i + 2, size) & 0x1c0) != 0x80) return 0;
  if (c < 0xf0) return 3;
  if (c == 0xf0 && d < 0x90) return 0;
  if (c == 0xf4 && d > 0x8f) return 0;
  return (byte_at(raw, i + 3, size) & 0x1c0) == 0x80 ? 4 : 0;
}

extern "C" __global__ void utf8(const unsigned char* raw,
                                unsigned char* lengths, unsigned* counts,
                                unsigned size) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  unsigned length = length_at(raw, i, size);
  lengths[i] = (unsigned char)length;
  atomicAdd(&counts[length], 1u);
}
