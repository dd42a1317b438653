// SPDX-License-Identifier: Apache-2.0
//
// tests: the match finder of an LZ compressor: for every position the longest
// earlier match in a window, the nearest of the longest; and a hash table of
// four-byte prefixes of which each bucket keeps the last position.
//
// other: 12.9 compute_75
//
// run: longest
// grid: 4 1 1
// block: 128 1 1
// also: 2 1 1 256 1 1
// also: 16 1 1 32 1 1
// buffer: raw in u8 512 bits 231
// buffer: lengths out u8 512
// buffer: distances out u8 512
// scalar: size i32 512
//
// run: last_seen
// grid: 2 1 1
// block: 128 1 1
// also: 1 1 1 64 1 1
// buffer: raw in u8 512 bits 232
// buffer: heads out u32 64
// scalar: size i32 512

// Two bits of each byte, so that there is something to find.
__device__ static int letter(const unsigned char* raw, int at) {
  return raw[at] & 3;
}

extern "C" __global__ void longest(const unsigned char* raw,
                                   unsigned char* lengths,
                                   unsigned char* distances, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  int best = 0;
  int from = 0;
  for (int back = 1; back <= 63 && back <= i; ++back) {
    int n = 0;
    while (n < 30 && i + n < size &&
           letter(raw, i + n) == letter(raw, i + n - back)) {
      ++n;
    }
    if (n > best) {
      best = n;
      from = back;
    }
  }
  lengths[i] = (unsigned char)best;
  distances[i] = (unsigned char)from;
}

extern "C" __global__ void last_seen(const unsigned char* raw, unsigned* heads,
                                     int size) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i + 4 <= size;
       i += gridDim.x * blockDim.x) {
    unsigned word = 0;
    for (int n = 0; n < 4; ++n) word = word << 8 | letter(raw, i + n);
    atomicMax(&heads[word * 2654435761u >> 26], i + 1u);
  }
}
