// SPDX-License-Identifier: Apache-2.0
//
// tests: recursion with arrays and several results a call: quicksort on local
// memory, Ackermann, and permutations found by going back.
//
// other: 12.9 compute_70
//
// run: recursion
// grid: 1 1 1
// block: 64 1 1
// also: 2 1 1 32 1 1
// buffer: in in u8 1024 bits 571
// buffer: sorted out u8 1024
// buffer: out out u32 128
__device__ __noinline__ void quick(unsigned char* v, int low, int high) {
  if (low >= high) return;
  unsigned char pivot = v[(low + high) / 2];
  int i = low;
  int j = high;
  while (i <= j) {
    while (v[i] < pivot) ++i;
    while (v[j] > pivot) --j;
    if (i <= j) {
      unsigned char t = v[i];
      v[i++] = v[j];
      v[j--] = t;
    }
  }
  quick(v, low, j);
  quick(v, i, high);
}

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

// Ways to seat `left` queens below those of the board.
__device__ __noinline__ unsigned queens(unsigned left, unsigned columns,
                                        unsigned up, unsigned down) {
  if (left == 0) return 1;
  unsigned ways = 0;
  for (unsigned free = ~(columns | up | down) & 31; free; free &= free - 1) {
    unsigned bit = free & 0 - free;
    ways += queens(left - 1, columns | bit, (up | bit) << 1, (down | bit) >> 1);
  }
  return ways;
}

extern "C" __global__ void recursion(const unsigned char* in,
                                     unsigned char* sorted, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned char mine[16];
  for (int n = 0; n < 16; ++n) mine[n] = in[i * 16 + n];
  quick(mine, 0, 15);
  for (int n = 0; n < 16; ++n) sorted[i * 16 + n] = mine[n];
  out[i * 2] = ackermann(i % 3, i % 4);
  out[i * 2 + 1] = queens(4, 1u << i % 5, 2u << i % 5, (1u << i % 5) >> 1);
}
