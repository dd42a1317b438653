// SPDX-License-Identifier: Apache-2.0
//
// tests: a deep cut of the Mandelbrot set in f64, counts of steps as they are;
// a warp leaves when all its points have.
//
// nvrtc: --fmad=false
// other: 12.9 compute_70
//
// run: mandelbrot_double
// grid: 4 6 1
// block: 16 8 1
// also: 2 48 1 32 1 1
// buffer: out out u16 3072
// scalar: width i32 64
// scalar: height i32 48
// scalar: steps i32 500
extern "C" __global__ void mandelbrot_double(unsigned short* out, int width,
                                             int height, int steps) {
  int px = blockIdx.x * blockDim.x + threadIdx.x;
  int py = blockIdx.y * blockDim.y + threadIdx.y;
  double cx = -0.743643887 + 1e-7 * (px - width / 2);
  double cy = 0.131825904 + 1e-7 * (py - height / 2);
  double x = 0;
  double y = 0;
  int n = 0;
  for (; n < steps; ++n) {
    double xx = x * x;
    double yy = y * y;
    if (xx + yy > 4.0) break;
    y = 2.0 * x * y + cy;
    x = xx - yy + cx;
  }
  out[py * width + px] = (unsigned short)n;
}
