// SPDX-License-Identifier: Apache-2.0
//
// tests: sums that begin anew at each flag: in a warp by shuffles and flags,
// over a block by pairs of (flag, sum) in shared memory.
//
// other: 13.5 compute_80
//
// run: segmented
// grid: 2 1 1
// block: 256 1 1
// also: 4 1 1 128 1 1
// buffer: in in i32 512 small 361
// buffer: flags in u8 512 bits 362
// buffer: out out i32 512
#define FULL 0xffffffffu

struct part {
  int sum;
  unsigned flag;
};

__device__ static part join(part left, part right) {
  part p;
  p.sum = right.flag ? right.sum : left.sum + right.sum;
  p.flag = left.flag | right.flag;
  return p;
}

// A flag is a byte below 40.
extern "C" __global__ void segmented(const int* in, const unsigned char* flags,
                                     int* out) {
  __shared__ part parts[8];
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane = threadIdx.x & 31;
  unsigned warp = threadIdx.x / 32;
  part mine = {in[i], flags[i] < 40};
  for (unsigned d = 1; d < 32; d *= 2) {
    part left;
    left.sum = __shfl_up_sync(FULL, mine.sum, d);
    left.flag = __shfl_up_sync(FULL, mine.flag, d);
    if (lane >= d) mine = join(left, mine);
  }
  if (lane == 31) parts[warp] = mine;
  __syncthreads();
  part before = {0, 0};
  for (unsigned w = 0; w < warp; ++w) before = join(before, parts[w]);
  out[i] = join(before, mine).sum;
}
