// SPDX-License-Identifier: Apache-2.0
//
// examples: x = a * x.
extern "C" __global__ void scale(float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = a * x[i];
}
