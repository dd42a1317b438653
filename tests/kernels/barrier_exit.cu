// SPDX-License-Identifier: Apache-2.0
//
// tests: barriers that threads of a block never reach since they have ended:
// those that are left go on, by the warp and within warps.
//
// other: 12.9 compute_70
//
// run: exits
// grid: 4 1 1
// block: 128 1 1
// also: 4 1 1 96 1 1
// also: 4 1 1 33 1 1
// buffer: out out u32 512
// scalar: row u32 128
extern "C" __global__ void exits(unsigned* out, unsigned row) {
  __shared__ unsigned turn[128];
  unsigned t = threadIdx.x;
  unsigned* mine = out + blockIdx.x * row;
  turn[t] = t * 3;
  __syncthreads();
  // Whole warps, then threads of every warp, end here.
  if (blockIdx.x == 1 && t >= 32) return;
  if (blockIdx.x == 2 && t % 32 > 20) return;
  if (blockIdx.x == 3 && t % 2 == 1) return;
  unsigned sum = 0;
  for (unsigned n = 0; n < 5; ++n) {
    sum += turn[t] + n;
    __syncthreads();
    turn[t] = sum;
    int left = __syncthreads_count(1);
    if (t == 0) turn[0] += left;
    __syncthreads();
    sum += turn[0];
  }
  mine[t] = sum;
}
