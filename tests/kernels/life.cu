// SPDX-License-Identifier: Apache-2.0
//
// tests: the Game of Life on a torus: by the cell, many generations in shared
// memory; and by the bit, a row of 32 cells a lane, with neighbours by shuffle.
//
// other: 12.9 compute_75
//
// run: cells
// grid: 2 1 1
// block: 32 8 1
// also: 2 1 1 16 16 1
// also: 2 1 1 100 1 1
// buffer: board inout u8 2048 bits 411
// scalar: steps i32 12
//
// run: bits
// grid: 4 1 1
// block: 32 1 1
// also: 2 1 1 64 1 1
// also: 1 1 1 128 1 1
// buffer: rows inout u32 128 bits 412
// scalar: steps i32 25
#define N 32

extern "C" __global__ void cells(unsigned char* board, int steps) {
  __shared__ unsigned char now[2][N * N];
  unsigned char* mine = board + blockIdx.x * N * N;
  int t = threadIdx.y * blockDim.x + threadIdx.x;
  int threads = blockDim.x * blockDim.y;
  for (int i = t; i < N * N; i += threads) now[0][i] = mine[i] & 1;
  for (int s = 0; s < steps; ++s) {
    __syncthreads();
    for (int i = t; i < N * N; i += threads) {
      int x = i % N;
      int y = i / N;
      int sum = 0;
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
          sum += now[s & 1][(y + dy & N - 1) * N + (x + dx & N - 1)];
        }
      }
      // The cell itself is in the sum.
      bool alive = now[s & 1][i];
      now[~s & 1][i] = sum == 3 || (alive && sum == 4);
    }
  }
  __syncthreads();
  for (int i = t; i < N * N; i += threads) mine[i] = now[steps & 1][i];
}

// Adds a row and its two turns into sums of two bits each.
__device__ static void add_row(unsigned row, unsigned& low, unsigned& high,
                               bool itself) {
  unsigned l = row << 1 | row >> 31;
  unsigned r = row >> 1 | row << 31;
  unsigned m = itself ? row : 0;
  low = l ^ r ^ m;
  high = (l & r) | (l & m) | (r & m);
}

extern "C" __global__ void bits(unsigned* rows, int steps) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane = threadIdx.x & 31;
  unsigned row = rows[i];
  for (int s = 0; s < steps; ++s) {
    unsigned up = __shfl_sync(0xffffffffu, row, lane - 1 & 31);
    unsigned down = __shfl_sync(0xffffffffu, row, lane + 1 & 31);
    unsigned l0, h0, l1, h1, l2, h2;
    add_row(up, l0, h0, true);
    add_row(row, l1, h1, false);
    add_row(down, l2, h2, true);
    unsigned ones = l0 ^ l1 ^ l2;
    unsigned carry = (l0 & l1) | (l0 & l2) | (l1 & l2);
    // Twos: carry + h0 + h1 + h2; exactly one of them for 2 or 3 neighbours.
    unsigned odd = carry ^ h0 ^ h1 ^ h2;
    unsigned many = (carry & h0) | (h1 & h2) | ((carry ^ h0) & (h1 ^ h2));
    row = odd & ~many & (ones | row);
  }
  rows[i] = row;
}
