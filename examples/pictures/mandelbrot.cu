// SPDX-License-Identifier: Apache-2.0
//
// examples: a picture from nothing: the Mandelbrot set in colour.
//
//   0 color  out  u8[h,w,3]
//   1 width
//   2 height
//   3 limit  steps at most
//
// Every float operation is a rounded one of its own (no fused multiply-add),
// so that every device gives the same bytes.
extern "C" __global__ void mandelbrot(unsigned char *color, int width,
                                      int height, int limit) {
  int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= height) return;
  float step = __fdiv_rn(3.0f, (float)width);
  float cr = __fadd_rn(-2.2f, __fmul_rn((float)x, step));
  float ci = __fmul_rn((float)(y - height / 2), step);
  float zr = 0.0f;
  float zi = 0.0f;
  int n = 0;
  for (; n < limit; ++n) {
    float rr = __fmul_rn(zr, zr);
    float ii = __fmul_rn(zi, zi);
    if (__fadd_rn(rr, ii) > 4.0f) break;
    zi = __fadd_rn(__fmul_rn(__fadd_rn(zr, zr), zi), ci);
    zr = __fadd_rn(__fadd_rn(rr, -ii), cr);
  }
  unsigned char *pixel = color + 3 * ((long long)y * width + x);
  bool inside = n == limit;
  pixel[0] = (unsigned char)(inside ? 0 : (n * 9) & 255);
  pixel[1] = (unsigned char)(inside ? 0 : (n * 5 + 60) & 255);
  pixel[2] = (unsigned char)(inside ? 0 : (n * 3 + 120) & 255);
}
