// SPDX-License-Identifier: Apache-2.0
//
// tests: atomics of floats: sums that are exact in any order, exchanges, and
// what compare-and-swap makes of the rest: a maximum, a product, 16-bit words.
//
// nvrtc: --fmad=false
// other: 12.9 compute_75
//
// run: sums
// grid: 4 1 1
// block: 64 1 1
// also: 2 1 1 128 1 1
// buffer: in in i32 256 small 741
// buffer: singles inout f32 8 small 742
// buffer: doubles inout f64 8 small 743
//
// run: swaps
// grid: 4 1 1
// block: 64 1 1
// also: 8 1 1 32 1 1
// buffer: in in f32 256 wide 744
// buffer: most inout f32 2 zero 0
// buffer: product inout f64 1 index 0
// buffer: halves inout u16 8 zero 0
extern "C" __global__ void sums(const int* in, float* f, double* d) {
  __shared__ float part;
  __shared__ double part_wide;
  if (threadIdx.x == 0) {
    part = 0;
    part_wide = 0;
  }
  __syncthreads();
  int x = in[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&f[0], (float)x);
  atomicAdd_system(&f[1], (float)x * 0.5f);
  atomicAdd(&d[0], (double)x);
  atomicAdd_system(&d[1], (double)x * 0.25);
  atomicAdd_block(&part, (float)(x & 15));
  atomicAdd(&part_wide, (double)(x & 31));
  atomicExch(&f[3], 2.5f);
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&f[2], part);
    atomicAdd(&d[2], part_wide);
  }
}

__device__ static float max_of(float* at, float x) {
  unsigned* word = (unsigned*)at;
  unsigned seen = *(volatile unsigned*)word;
  while (__uint_as_float(seen) < x) {
    unsigned was = atomicCAS(word, seen, __float_as_uint(x));
    if (was == seen) break;
    seen = was;
  }
  return __uint_as_float(seen);
}

extern "C" __global__ void swaps(const float* in, float* most, double* product,
                                 unsigned short* halves) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  max_of(&most[0], x);
  // Of numbers above zero the bits are in order.
  atomicMax((int*)&most[1], __float_as_int(fabsf(x)));
  // Powers of two: exact in any order. The buffer begins with 0.
  unsigned long long* word = (unsigned long long*)product;
  unsigned long long seen = *(volatile unsigned long long*)word;
  unsigned long long was;
  do {
    was = seen;
    double old = was == 0 ? 1.0 : __longlong_as_double((long long)was);
    double next = old * (i & 1 ? 0.5 : i % 16 == 0 ? 4.0 : 2.0);
    seen = atomicCAS(word, was,
                     (unsigned long long)__double_as_longlong(next));
  } while (seen != was);
  unsigned short old = ((volatile unsigned short*)halves)[i & 7];
  unsigned short found;
  do {
    found = old;
    old = atomicCAS(&halves[i & 7], found, (unsigned short)(found + i));
  } while (old != found);
}
