// SPDX-License-Identifier: Apache-2.0
//
// tests: recursion, calls through pointers, structs as arguments and results.
//
// nvrtc: --fmad=false
// other: 12.9 compute_75
//
// run: recurse
// grid: 2 1 1
// block: 48 1 1
// buffer: out out u32 192
//
// run: pointers
// grid: 2 1 1
// block: 64 1 1
// buffer: in in i32 128 small 61
// buffer: out out i32 256
// buffer: reals out f64 128
struct pair {
  int first;
  double second;
};

__device__ __noinline__ unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ unsigned odd(unsigned n);
__device__ __noinline__ unsigned even(unsigned n) {
  return n == 0 ? 1 : odd(n - 1) * 3 + 1;
}
__device__ __noinline__ unsigned odd(unsigned n) {
  return n == 0 ? 0 : even(n - 1) * 5 + 2;
}

extern "C" __global__ void recurse(unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i * 2] = fibonacci(threadIdx.x % 13);
  out[i * 2 + 1] = even(i % 9) - odd(i % 17);
}

__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int flip(int x) { return ~x; }
__device__ __noinline__ int same(int x) { return x; }

typedef int (*step_t)(int);
__device__ step_t steps[4] = {twice, square, flip, same};

__device__ __noinline__ pair make_pair(int a, double b) {
  pair p;
  p.first = a + 1;
  p.second = b * 0.5;
  return p;
}

__device__ __noinline__ double use_pair(pair p, char tag) {
  return p.second + p.first * tag;
}

extern "C" __global__ void pointers(const int* in, int* out, double* reals) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  int x = in[i];
  step_t step = steps[(x ^ (int)i) & 3];
  out[i * 2] = step(x);
  step_t chosen = x > 0 ? (step_t)square : (step_t)flip;
  out[i * 2 + 1] = chosen(step(x) & 0xff);
  reals[i] = use_pair(make_pair(x, (double)i), (char)(i & 63));
}
