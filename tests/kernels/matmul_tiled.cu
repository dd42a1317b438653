// SPDX-License-Identifier: Apache-2.0
//
// tests: a matrix product with tiles in shared memory and four by four results
// a thread in registers; vector loads and fused multiply-adds in a fixed order.
//
// nvrtc: --fmad=false
// other: 12.9 compute_75
//
// run: matmul
// grid: 2 2 1
// block: 8 8 1
// buffer: a in f32 4096 unit 431
// buffer: b in f32 4096 wide 432
// buffer: c out f32 4096
// scalar: n i32 64
//
// run: matmul_f64
// grid: 4 4 1
// block: 16 16 1
// also: 8 8 1 8 8 1
// buffer: a in f64 4096 wide 433
// buffer: b in f64 4096 unit 434
// buffer: c out f64 4096
// scalar: n i32 64

// A block of 8 by 8 threads makes 32 by 32 results.
extern "C" __global__ void matmul(const float* a, const float* b, float* c,
                                  int n) {
  __shared__ float left[8][32];
  __shared__ float4 right[8][8];
  int tx = threadIdx.x;
  int ty = threadIdx.y;
  int row = blockIdx.y * 32;
  int column = blockIdx.x * 32;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 8) {
    for (int i = 0; i < 4; ++i) {
      left[tx][ty * 4 + i] = a[(row + ty * 4 + i) * n + k + tx];
    }
    right[ty][tx] = *(const float4*)&b[(k + ty) * n + column + tx * 4];
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 8; ++kk) {
      float4 r = right[kk][tx];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float l = left[kk][ty * 4 + i];
        sum[i][0] = __fmaf_rn(l, r.x, sum[i][0]);
        sum[i][1] = __fmaf_rn(l, r.y, sum[i][1]);
        sum[i][2] = __fmaf_rn(l, r.z, sum[i][2]);
        sum[i][3] = __fmaf_rn(l, r.w, sum[i][3]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    *(float4*)&c[(row + ty * 4 + i) * n + column + tx * 4] =
        make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
  }
}

extern "C" __global__ void matmul_f64(const double* a, const double* b,
                                      double* c, int n) {
  __shared__ double left[16][17];
  __shared__ double right[16][16];
  int side = blockDim.x;
  int tx = threadIdx.x;
  int ty = threadIdx.y;
  int row = blockIdx.y * side + ty;
  int column = blockIdx.x * side + tx;
  double sum = 0;
  for (int k = 0; k < n; k += side) {
    left[ty][tx] = a[row * n + k + tx];
    right[ty][tx] = b[(k + ty) * n + column];
    __syncthreads();
    for (int kk = 0; kk < side; ++kk) {
      sum = fma(left[ty][kk], right[kk][tx], sum);
    }
    __syncthreads();
  }
  c[row * n + column] = sum;
}
