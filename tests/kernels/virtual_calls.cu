// SPDX-License-Identifier: Apache-2.0
//
// tests: virtual functions of objects in local memory,
// and calls through tables of pointers, with lanes that call different ones.
//
// nvrtc: --fmad=false
// other: 12.9 compute_75
//
// run: virtual_calls
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: in in i32 128 small 561
// buffer: out out i32 256
struct shape {
  int size;
  __device__ explicit shape(int s) : size(s) {}
  __device__ virtual int area() const = 0;
  __device__ virtual int grow(int by) { return size += by; }
};
struct square : shape {
  __device__ explicit square(int s) : shape(s) {}
  __device__ int area() const override { return size * size; }
};
struct strip : shape {
  int width;
  __device__ strip(int s, int w) : shape(s), width(w) {}
  __device__ int area() const override { return size * width; }
  __device__ int grow(int by) override { return width += by + shape::grow(1); }
};

__device__ __noinline__ int sum_of(shape* const* shapes, int count, int by) {
  int sum = 0;
  for (int n = 0; n < count; ++n) sum += shapes[n]->grow(by) * 3;
  for (int n = 0; n < count; ++n) sum += shapes[n]->area();
  return sum;
}

typedef int (*fold_t)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int sub(int a, int b) { return a - b; }
__device__ __noinline__ int mix(int a, int b) { return a * 31 ^ b; }
__constant__ fold_t folds[3] = {add, sub, mix};

extern "C" __global__ void virtual_calls(const int* in, int* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  square own(in[i]);
  strip other(in[i] / 2, (int)i);
  shape* all[3] = {&own, &other, &own};
  if (i % 3 == 1) all[0] = &other;
  out[i * 2] = sum_of(all, 3, (int)i % 5);
  int value = (int)i;
  for (int n = 0; n < 6; ++n) {
    fold_t fold = folds[(i + n * n) % 3];
    value = fold(value, in[i] + n);
  }
  out[i * 2 + 1] = value;
}
