// SPDX-License-Identifier: Apache-2.0
//
// examples: edges of a gray picture by Sobel's operator, dark on white.
//
//   0 gray   in   u8[h,w]
//   1 edges  out  u8[h,w]
//   2 width
//   3 height
//
// The length of the gradient is an integer square root, found bit by bit.
static __device__ unsigned root(unsigned value) {
  unsigned result = 0;
  for (unsigned bit = 1u << 20; bit != 0; bit >>= 2) {
    if (value >= result + bit) {
      value -= result + bit;
      result = (result >> 1) + bit;
    } else {
      result >>= 1;
    }
  }
  return result;
}

static __device__ int clamp(int value, int most) {
  return value < 0 ? 0 : value > most ? most : value;
}

extern "C" __global__ void sobel(const unsigned char *gray,
                                 unsigned char *edges, int width,
                                 int height) {
  int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= height) return;
  int p[3][3];
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i)
      p[j][i] = gray[clamp(y + j - 1, height - 1) * width +
                     clamp(x + i - 1, width - 1)];
  int gx = p[0][2] + 2 * p[1][2] + p[2][2] - p[0][0] - 2 * p[1][0] - p[2][0];
  int gy = p[2][0] + 2 * p[2][1] + p[2][2] - p[0][0] - 2 * p[0][1] - p[0][2];
  unsigned length = root((unsigned)(gx * gx + gy * gy));
  edges[y * width + x] = (unsigned char)(length > 255 ? 0 : 255 - length);
}
