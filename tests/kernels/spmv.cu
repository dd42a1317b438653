// SPDX-License-Identifier: Apache-2.0
//
// tests: a sparse matrix in rows (CSR) times a vector: a warp a row with a sum
// by shuffles, and a thread a row. Small whole numbers: exact in any order.
//
// other: 12.9 compute_75
//
// run: by_warp
// grid: 8 1 1
// block: 128 1 1
// also: 4 1 1 256 1 1
// also: 3 1 1 32 1 1
// buffer: lengths in u8 64 bits 391
// buffer: columns in u32 4096 bits 392
// buffer: values in f32 4096 small 393
// buffer: x in f32 128 small 394
// buffer: y out f32 64
//
// run: by_thread
// grid: 1 1 1
// block: 64 1 1
// also: 2 1 1 32 1 1
// buffer: lengths in u8 64 bits 395
// buffer: columns in u32 4096 bits 396
// buffer: values in f64 4096 small 397
// buffer: x in f64 128 small 398
// buffer: y out f64 64
#define ROWS 64

// Row r has lengths[r] % 64 entries; they begin where those before it end.
__device__ static void find_starts(const unsigned char* lengths,
                                   unsigned* starts) {
  if (threadIdx.x == 0) {
    starts[0] = 0;
    for (int r = 0; r < ROWS; ++r) starts[r + 1] = starts[r] + lengths[r] % 64;
  }
  __syncthreads();
}

extern "C" __global__ void by_warp(const unsigned char* lengths,
                                   const unsigned* columns,
                                   const float* values, const float* x,
                                   float* y) {
  __shared__ unsigned starts[ROWS + 1];
  find_starts(lengths, starts);
  unsigned lane = threadIdx.x & 31;
  unsigned warps = gridDim.x * blockDim.x / 32;
  for (unsigned r = (blockIdx.x * blockDim.x + threadIdx.x) / 32; r < ROWS;
       r += warps) {
    float sum = 0;
    for (unsigned e = starts[r] + lane; e < starts[r + 1]; e += 32) {
      sum += values[e] * x[columns[e] & 127];
    }
    for (int d = 16; d > 0; d /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, d);
    }
    if (lane == 0) y[r] = sum;
  }
}

extern "C" __global__ void by_thread(const unsigned char* lengths,
                                     const unsigned* columns,
                                     const double* values, const double* x,
                                     double* y) {
  __shared__ unsigned starts[ROWS + 1];
  find_starts(lengths, starts);
  unsigned r = blockIdx.x * blockDim.x + threadIdx.x;
  double sum = 0;
  for (unsigned e = starts[r]; e < starts[r + 1]; ++e) {
    sum = fma(values[e], x[columns[e] & 127], sum);
  }
  y[r] = sum;
}
