// SPDX-License-Identifier: Apache-2.0
//
// image: what the cubins beside it were compiled from.
struct P { double a; int b[5]; };
__device__ int counter = 3;
__device__ float table[100];
__constant__ float weights[16];
__device__ __noinline__ int deep(int n) { return n < 2 ? n : deep(n-1) + deep(n-2); }
extern "C" __global__ void plain(float* x, int n, char c, P p) {
  int i = threadIdx.x; if (i < n) x[i] = x[i] * 2 + c + p.a + p.b[i&3];
}
extern "C" __global__ void __launch_bounds__(128, 2) shared(float* x) {
  __shared__ float s[64]; __shared__ double t[9];
  s[threadIdx.x & 63] = x[threadIdx.x]; t[threadIdx.x % 9] = 1; __syncthreads();
  x[threadIdx.x] = s[63 - (threadIdx.x & 63)] + t[3] + weights[threadIdx.x & 15] + table[threadIdx.x % 100];
}
extern "C" __global__ void stack(int* x) { int a[40]; for (int i = 0; i < 40; i++) a[i] = x[i]; x[0] = a[x[1] % 40] + deep(x[2]) + counter; }
extern "C" __global__ void empty() {}
template <class T> __global__ void tmpl(T* p) { *p = T(4); }
template __global__ void tmpl<int>(int*);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void __block_size__((32,2,1)) req(int* x) { x[0] = 1; }
extern "C" __global__ void __cluster_dims__(2,1,1) clus(int* x) { x[0] = 1; }
#endif
