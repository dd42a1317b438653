// SPDX-License-Identifier: Apache-2.0
//
// tests: the Mandelbrot set as a grey picture; divergent loops over floats.
//
// nvrtc: --fmad=false
// other: 12.9 compute_75
//
// run: mandelbrot
// grid: 8 12 1
// block: 16 8 1
// buffer: out out u8 12288
// scalar: width i32 128
// scalar: height i32 96
// scalar: steps i32 200
extern "C" __global__ void mandelbrot(unsigned char* out, int width, int height,
                                      int steps) {
  int px = blockIdx.x * blockDim.x + threadIdx.x;
  int py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height) return;
  float cx = -2.2f + 3.2f * ((float)px + 0.5f) / (float)width;
  float cy = -1.2f + 2.4f * ((float)py + 0.5f) / (float)height;
  float x = 0;
  float y = 0;
  int n = 0;
  while (n < steps) {
    float xx = x * x;
    float yy = y * y;
    if (xx + yy > 4.0f) break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
    ++n;
  }
  out[py * width + px] = (unsigned char)(255 - n * 255 / steps);
}
