// SPDX-License-Identifier: Apache-2.0
//
// tests: a radix sort of keys and values in a block, stable, four bits a pass:
// counts of each warp by match, a scan over warps, a scatter in shared memory.
//
// other: 12.9 compute_70
//
// run: radix_sort
// grid: 2 1 1
// block: 256 1 1
// also: 2 1 1 512 1 1
// buffer: keys inout u32 1024 bits 301
// buffer: values inout u32 1024 index 0
// scalar: size u32 512
#define FULL 0xffffffffu
#define MOST 512
#define DIGITS 16

// Each block sorts `size` keys; every thread has one or two of them, those
// that lie `blockDim.x` apart, and goes over them in order.
extern "C" __global__ void radix_sort(unsigned* keys, unsigned* values,
                                      unsigned size) {
  __shared__ unsigned key[2][MOST];
  __shared__ unsigned value[2][MOST];
  __shared__ unsigned count[DIGITS * (MOST / 32)];
  unsigned t = threadIdx.x;
  unsigned lane = t & 31;
  unsigned rows = size / 32;
  for (unsigned i = t; i < size; i += blockDim.x) {
    key[0][i] = keys[blockIdx.x * size + i];
    value[0][i] = values[blockIdx.x * size + i];
  }
  for (unsigned pass = 0; pass < 8; ++pass) {
    unsigned* from = key[pass & 1];
    unsigned* to = key[~pass & 1];
    for (unsigned i = t; i < DIGITS * rows; i += blockDim.x) count[i] = 0;
    __syncthreads();
    for (unsigned i = t; i < size; i += blockDim.x) {
      unsigned digit = from[i] >> (4 * pass) & 15;
      unsigned same = __match_any_sync(FULL, digit);
      if ((same & ((1u << lane) - 1)) == 0) {
        count[digit * rows + i / 32] = __popc(same);
      }
    }
    __syncthreads();
    // One warp scans the counts: all rows of digit 0, then of digit 1, ...
    if (t < 32) {
      unsigned sum = 0;
      for (unsigned i = t; i < DIGITS * rows; i += 32) {
        unsigned own = count[i];
        unsigned up = own;
        for (unsigned d = 1; d < 32; d *= 2) {
          unsigned other = __shfl_up_sync(FULL, up, d);
          if (lane >= d) up += other;
        }
        count[i] = sum + up - own;
        sum += __shfl_sync(FULL, up, 31);
      }
    }
    __syncthreads();
    for (unsigned i = t; i < size; i += blockDim.x) {
      unsigned digit = from[i] >> (4 * pass) & 15;
      unsigned same = __match_any_sync(FULL, digit);
      unsigned at = count[digit * rows + i / 32] +
                    __popc(same & ((1u << lane) - 1));
      to[at] = from[i];
      value[~pass & 1][at] = value[pass & 1][i];
    }
    __syncthreads();
  }
  for (unsigned i = t; i < size; i += blockDim.x) {
    keys[blockIdx.x * size + i] = key[0][i];
    values[blockIdx.x * size + i] = value[0][i];
  }
}
