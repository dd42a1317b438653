// SPDX-License-Identifier: Apache-2.0
//
// tests: the edit distance of two words by diagonals, three of them in shared
// memory, a barrier for each: a wavefront of dynamic programming.
//
// other: 12.9 compute_70
//
// run: levenshtein
// grid: 16 1 1
// block: 64 1 1
// also: 16 1 1 32 1 1
// also: 16 1 1 49 1 1
// buffer: raw in u8 1024 bits 271
// buffer: out out u32 16
#define LONGEST 64

// Block b compares raw[32 b ...] of 20 + b % 13 letters with raw[32 b + 7 ...]
// of 32 letters; two bits are a letter.
extern "C" __global__ void levenshtein(const unsigned char* raw,
                                       unsigned* out) {
  __shared__ int cells[3][LONGEST + 1];
  const unsigned char* a = raw + blockIdx.x * 32;
  const unsigned char* b = raw + blockIdx.x * 32 + 7;
  int n = 20 + blockIdx.x % 13;
  int m = 32;
  for (int d = 0; d <= n + m; ++d) {
    int* now = cells[d % 3];
    const int* last = cells[(d + 2) % 3];
    const int* before = cells[(d + 1) % 3];
    int low = max(0, d - m);
    int high = min(d, n);
    for (int i = low + (int)threadIdx.x; i <= high; i += blockDim.x) {
      int j = d - i;
      int value = i + j;
      if (i > 0 && j > 0) {
        int change = (a[i - 1] & 3) != (b[j - 1] & 3);
        value = min(before[i - 1] + change, min(last[i - 1], last[i]) + 1);
      }
      now[i] = value;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = cells[(n + m) % 3][n];
}
