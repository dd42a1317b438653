// SPDX-License-Identifier: Apache-2.0
//
// tests: Batcher's sorting network of sixteen numbers in registers, unrolled:
// selections without a branch, vector loads and stores.
//
// other: 12.9 compute_70
//
// run: network
// grid: 1 1 1
// block: 64 1 1
// also: 2 1 1 32 1 1
// also: 1 1 1 128 1 1
// buffer: data inout i16 1024 bits 321
// scalar: sets i32 64
#define N 16

__device__ static void order(int& a, int& b) {
  int low = min(a, b);
  b = max(a, b);
  a = low;
}

extern "C" __global__ void network(short4* data, int sets) {
  int set = blockIdx.x * blockDim.x + threadIdx.x;
  if (set >= sets) return;
  int v[N];
#pragma unroll
  for (int i = 0; i < N / 4; ++i) {
    short4 four = data[set * 4 + i];
    v[i * 4] = four.x;
    v[i * 4 + 1] = four.y;
    v[i * 4 + 2] = four.z;
    v[i * 4 + 3] = four.w;
  }
#pragma unroll
  for (int p = 1; p < N; p *= 2) {
#pragma unroll
    for (int k = p; k >= 1; k /= 2) {
#pragma unroll
      for (int j = k % p; j + k < N; j += 2 * k) {
#pragma unroll
        for (int i = 0; i < k; ++i) {
          if (i + j + k < N && (i + j) / (2 * p) == (i + j + k) / (2 * p)) {
            order(v[i + j], v[i + j + k]);
          }
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < N / 4; ++i) {
    data[set * 4 + i] = make_short4(v[i * 4], v[i * 4 + 1], v[i * 4 + 2],
                                    v[i * 4 + 3]);
  }
}
