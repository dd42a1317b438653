// SPDX-License-Identifier: Apache-2.0
//
// tests: running minimum and maximum over a block, Hillis and Steele's way in
// shared memory, of 64-bit integers and of floats with signed zeros.
//
// other: 12.9 compute_75
//
// run: extremes
// grid: 3 1 1
// block: 128 1 1
// also: 6 1 1 64 1 1
// also: 2 1 1 192 1 1
// buffer: in in i64 384 bits 371
// buffer: low out i64 384
// buffer: high out i64 384
//
// run: float_extremes
// grid: 3 1 1
// block: 96 1 1
// also: 9 1 1 32 1 1
// buffer: in in f32 288 wide 372
// buffer: low out f32 288
// buffer: high out f32 288
extern "C" __global__ void extremes(const long long* in, long long* low,
                                    long long* high) {
  __shared__ long long small[2][192];
  __shared__ long long large[2][192];
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned t = threadIdx.x;
  small[0][t] = large[0][t] = in[i];
  int now = 0;
  __syncthreads();
  for (unsigned d = 1; d < blockDim.x; d *= 2) {
    unsigned from = t >= d ? t - d : t;
    small[1 - now][t] = min(small[now][t], small[now][from]);
    large[1 - now][t] = max(large[now][t], large[now][from]);
    now = 1 - now;
    __syncthreads();
  }
  low[i] = small[now][t];
  high[i] = large[now][t];
}

// The same within each warp.
extern "C" __global__ void float_extremes(const float* in, float* low,
                                          float* high) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane = threadIdx.x & 31;
  float x = i % 7 == 3 ? 0.0f : i % 7 == 5 ? -0.0f : in[i];
  float small = x;
  float large = x;
  for (unsigned d = 1; d < 32; d *= 2) {
    float s = __shfl_up_sync(0xffffffffu, small, d);
    float l = __shfl_up_sync(0xffffffffu, large, d);
    if (lane >= d) {
      small = fminf(small, s);
      large = fmaxf(large, l);
    }
  }
  low[i] = small;
  high[i] = large;
}
