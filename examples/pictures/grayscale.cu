// SPDX-License-Identifier: Apache-2.0
//
// examples: colour to gray, one thread a pixel.
//
//   0 color  in   u8[h,w,3]
//   1 gray   out  u8[h,w]
//   2 count  h * w
//
// The weights are those of ITU-R BT.601 in 256ths. Integers only, so that
// every device gives the same bytes.
extern "C" __global__ void grayscale(const unsigned char *color,
                                     unsigned char *gray,
                                     unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned r = color[3 * i];
  unsigned g = color[3 * i + 1];
  unsigned b = color[3 * i + 2];
  gray[i] = (unsigned char)((77 * r + 150 * g + 29 * b + 128) >> 8);
}
