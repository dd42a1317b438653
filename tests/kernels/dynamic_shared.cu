// SPDX-License-Identifier: Apache-2.0
//
// tests: dynamic shared memory: a tiled transpose and a tiled matrix product.
//
// nvrtc: --fmad=false
// other: 13.5 compute_80
//
// run: transpose
// grid: 3 2 1
// block: 16 16 1
// shared: 1088
// buffer: in in u32 1280 bits 101
// buffer: out out u32 1280
// scalar: width i32 40
// scalar: height i32 32
//
// run: matmul
// grid: 2 2 1
// block: 16 16 1
// shared: 2048
// buffer: a in f32 1024 unit 102
// buffer: b in f32 1024 unit 103
// buffer: c out f32 1024
// scalar: n i32 32
extern __shared__ unsigned char memory[];

extern "C" __global__ void transpose(const unsigned* in, unsigned* out,
                                     int width, int height) {
  unsigned* tile = (unsigned*)memory;
  int x = blockIdx.x * 16 + threadIdx.x;
  int y = blockIdx.y * 16 + threadIdx.y;
  if (x < width && y < height) {
    tile[threadIdx.y * 17 + threadIdx.x] = in[y * width + x];
  }
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  if (x < height && y < width) {
    out[y * height + x] = tile[threadIdx.x * 17 + threadIdx.y];
  }
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c,
                                  int n) {
  float* ta = (float*)memory;
  float* tb = ta + 256;
  int row = blockIdx.y * 16 + threadIdx.y;
  int column = blockIdx.x * 16 + threadIdx.x;
  int t = threadIdx.y * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[t] = a[row * n + k + threadIdx.x];
    tb[t] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; ++j) {
      sum += ta[threadIdx.y * 16 + j] * tb[j * 16 + threadIdx.x];
    }
    __syncthreads();
  }
  c[row * n + column] = sum;
}
