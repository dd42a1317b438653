// SPDX-License-Identifier: Apache-2.0
//
// tests: loops that lanes leave one by one, by break, return and goto, out of
// two loops at once; Euclid, Collatz and a search with a sentinel.
//
// other: 12.9 compute_75
//
// run: loops
// grid: 2 1 1
// block: 96 1 1
// also: 6 1 1 32 1 1
// buffer: a in u32 192 bits 531
// buffer: b in u32 192 bits 532
// buffer: out out u32 768
//
// run: search
// grid: 1 1 1
// block: 128 1 1
// also: 4 1 1 32 1 1
// buffer: grid in u8 1024 bits 533
// buffer: out out i32 128
extern "C" __global__ void loops(const unsigned* a, const unsigned* b,
                                 unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned x = a[i] >> 4;
  unsigned y = b[i] >> 8;
  unsigned turns = 0;
  while (y != 0) {
    unsigned r = x % y;
    x = y;
    y = r;
    ++turns;
  }
  out[i * 4] = x;
  out[i * 4 + 1] = turns;
  unsigned n = (a[i] & 0xfff) + 1;
  unsigned steps = 0;
  do {
    if (n == 1) break;
    if (steps == 150) {
      out[i * 4 + 2] = 0xffff;
      return;
    }
    n = n & 1 ? 3 * n + 1 : n / 2;
    ++steps;
  } while (true);
  out[i * 4 + 2] = steps;
  if (i % 3 == 0) return;
  out[i * 4 + 3] = steps * 2 + turns;
}

// The first (row, column) of a 32 by 32 grid, from row i / 4 on, whose byte
// is a multiple of i + 2.
extern "C" __global__ void search(const unsigned char* grid, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int row = i / 4;
  int column = 0;
  for (; row < 32; ++row) {
    for (column = 0; column < 32; ++column) {
      unsigned char x = grid[row * 32 + column];
      if (x == 255) continue;
      if (x > 0 && x % (i + 2) == 0) goto found;
      if (x == 0 && row > i / 4 + 2) {
        out[i] = -2;
        return;
      }
    }
  }
  out[i] = -1;
  return;
found:
  out[i] = row * 32 + column;
}
