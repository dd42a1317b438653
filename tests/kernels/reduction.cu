// SPDX-License-Identifier: Apache-2.0
//
// tests: shared memory and barriers: tree reductions of three types, and the
// barriers that count and vote.
//
// nvrtc: --fmad=false
// other: 12.9 compute_70
//
// run: reduce
// grid: 4 1 1
// block: 256 1 1
// buffer: in in i32 1024 bits 21
// buffer: values in f32 1024 unit 22
// buffer: sums out i32 4
// buffer: tops out f32 4
// buffer: totals out f64 4
//
// run: vote_barriers
// grid: 2 1 1
// block: 160 1 1
// buffer: in in i32 320 small 23
// buffer: out out i32 8
extern "C" __global__ void reduce(const int* in, const float* values, int* sums,
                                  float* tops, double* totals) {
  __shared__ int s[256];
  __shared__ float f[256];
  __shared__ double d[256];
  unsigned t = threadIdx.x;
  unsigned i = blockIdx.x * blockDim.x + t;
  s[t] = in[i];
  f[t] = values[i];
  d[t] = (double)values[i] * 0.5;
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    if (t < step) {
      s[t] += s[t + step];
      f[t] = fmaxf(f[t], f[t + step]);
      d[t] += d[t + step];
    }
    __syncthreads();
  }
  if (t == 0) {
    sums[blockIdx.x] = s[0];
    tops[blockIdx.x] = f[0];
    totals[blockIdx.x] = d[0];
  }
}

extern "C" __global__ void vote_barriers(const int* in, int* out) {
  int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  int count = __syncthreads_count(value > 10);
  int all = __syncthreads_and(value > -101);
  int any = __syncthreads_or(value == 100);
  int none = __syncthreads_or(value > 1000);
  if (threadIdx.x == 33) {
    int* o = out + blockIdx.x * 4;
    o[0] = count;
    o[1] = all != 0;
    o[2] = any != 0;
    o[3] = none != 0;
  }
}
