// SPDX-License-Identifier: Apache-2.0
//
// tests: CRC-32 of slices of a text, with a table that each block makes in
// shared memory, and one by the bit without a table.
//
// other: 12.9 compute_75
//
// run: crc_table
// grid: 2 1 1
// block: 128 1 1
// also: 1 1 1 256 1 1
// also: 3 1 1 32 1 1
// buffer: text in u8 4096 bits 211
// buffer: sums out u32 160
// scalar: slices u32 160
//
// run: crc_bits
// grid: 5 1 1
// block: 32 1 1
// also: 1 1 1 160 1 1
// buffer: text in u8 4096 bits 212
// buffer: sums out u32 160
// scalar: slices u32 160

// Slice s has 25 bytes from 25 s on; the last bytes of the text are unused.
extern "C" __global__ void crc_table(const unsigned char* text, unsigned* sums,
                                     unsigned slices) {
  __shared__ unsigned table[256];
  for (unsigned n = threadIdx.x; n < 256; n += blockDim.x) {
    unsigned c = n;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
    table[n] = c;
  }
  __syncthreads();
  for (unsigned s = blockIdx.x * blockDim.x + threadIdx.x; s < slices;
       s += gridDim.x * blockDim.x) {
    unsigned crc = ~0u;
    for (int i = 0; i < 25; ++i) {
      crc = table[(crc ^ text[s * 25 + i]) & 0xff] ^ crc >> 8;
    }
    sums[s] = ~crc;
  }
}

extern "C" __global__ void crc_bits(const unsigned char* text, unsigned* sums,
                                    unsigned slices) {
  unsigned s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= slices) return;
  unsigned crc = ~0u;
  for (int i = 0; i < 25; ++i) {
    crc ^= text[s * 25 + i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xedb88320 & -(crc & 1));
  }
  sums[s] = ~crc;
}
