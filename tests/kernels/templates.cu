// SPDX-License-Identifier: Apache-2.0
//
// tests: kernels made from templates, which are found by lowered names: over a
// type, over a number, over an operation, and one in a namespace.
//
// other: 13.5 compute_80
//
// run: total<int>
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// buffer: in in i32 128 small 511
// buffer: out inout i32 1 small 512
//
// run: total<unsigned long long>
// grid: 2 1 1
// block: 64 1 1
// buffer: in in u64 128 bits 513
// buffer: out inout u64 1 bits 514
//
// run: shapes::stride<7, 3>
// grid: 1 1 1
// block: 32 1 1
// also: 2 1 1 16 1 1
// buffer: in in u32 256 bits 515
// buffer: out out u32 32
//
// run: apply<shapes::larger, short>
// grid: 1 1 1
// block: 96 1 1
// also: 3 1 1 32 1 1
// buffer: in in i16 97 bits 516
// buffer: out out i16 96
template <typename T>
__global__ void total(const T* in, T* out) {
  atomicAdd(out, in[blockIdx.x * blockDim.x + threadIdx.x]);
}

namespace shapes {
struct larger {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

template <int Step, int Times>
__global__ void stride(const unsigned* in, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = 0;
#pragma unroll
  for (int n = 0; n < Times; ++n) sum = sum * Step + in[i * Step + n];
  out[i] = sum;
}
}  // namespace shapes

template <typename Op, typename T>
__global__ void apply(const T* in, T* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = Op()(in[i], in[i + 1]);
}
