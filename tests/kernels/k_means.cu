// SPDX-License-Identifier: Apache-2.0
//
// tests: a step of k-means: each point to the nearest of eight centres, sums
// by atomics in shared memory, and the new centres by the last block to end,
// which a counter and a fence tell.
//
// other: 12.9 compute_70
//
// run: k_means
// grid: 4 1 1
// block: 128 1 1
// also: 8 1 1 64 1 1
// also: 2 1 1 96 1 1
// buffer: points in i32 1024 small 421
// buffer: centres inout i32 16 small 422
// buffer: nearest out u8 512
// buffer: sums inout i32 24 zero 0
// buffer: done inout u32 1 zero 0
// scalar: count u32 512
#define K 8

extern "C" __global__ void k_means(const int2* points, int2* centres,
                                   unsigned char* nearest, int* sums,
                                   unsigned* done, unsigned count) {
  __shared__ int local[K][3];
  __shared__ int2 old[K];
  __shared__ bool last;
  for (unsigned k = threadIdx.x; k < K; k += blockDim.x) {
    local[k][0] = local[k][1] = local[k][2] = 0;
    old[k] = centres[k];
  }
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    int2 p = points[i];
    int best = 0;
    int least = 0x7fffffff;
    for (int k = 0; k < K; ++k) {
      int dx = p.x - old[k].x;
      int dy = p.y - old[k].y;
      int distance = dx * dx + dy * dy;
      if (distance < least) {
        least = distance;
        best = k;
      }
    }
    nearest[i] = (unsigned char)best;
    atomicAdd(&local[best][0], p.x);
    atomicAdd(&local[best][1], p.y);
    atomicAdd(&local[best][2], 1);
  }
  __syncthreads();
  for (unsigned k = threadIdx.x; k < 3 * K; k += blockDim.x) {
    atomicAdd(&sums[k], local[k / 3][k % 3]);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (unsigned k = threadIdx.x; k < K; k += blockDim.x) {
    volatile int* sum = sums + k * 3;
    if (sum[2] > 0) {
      centres[k] = make_int2(sum[0] / sum[2], sum[1] / sum[2]);
    }
  }
}
