// SPDX-License-Identifier: Apache-2.0
//
// tests: loops that lanes leave by break, continue and return at different
// times, a switch, and loops inside one another.
//
// other: 12.9 compute_70
//
// run: diverge
// grid: 5 1 1
// block: 96 1 1
// buffer: in in i32 480 bits 11
// buffer: out out i32 480
// scalar: n i32 450
//
// run: nested
// grid: 3 1 1
// block: 32 4 1
// buffer: out out u32 384
// scalar: limit u32 23
extern "C" __global__ void diverge(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int x = in[i] & 0xffff;
  int steps = 0;
  int odd = 0;
  while (x != 1) {
    if (steps > 200) break;
    ++steps;
    if (x <= 0) {
      out[i] = -steps;
      return;
    }
    if (x % 2 == 0) {
      x /= 2;
      continue;
    }
    ++odd;
    x = 3 * x + 1;
  }
  switch (steps % 7) {
    case 0: odd += 100; break;
    case 1: odd *= 3;  // falls through
    case 2: odd -= 7; break;
    case 3:
      if (odd & 1) return;
      odd = ~odd;
      break;
    case 5: odd = steps << 3; break;
    default: odd ^= steps;
  }
  out[i] = odd * 1000 + steps;
}

extern "C" __global__ void nested(unsigned* out, unsigned limit) {
  unsigned lane = threadIdx.x + threadIdx.y * blockDim.x;
  unsigned i = blockIdx.x * blockDim.x * blockDim.y + lane;
  unsigned sum = 0;
  for (unsigned a = 0; a < lane % 11 + 1; ++a) {
    for (unsigned b = 0;; ++b) {
      if (b > limit) goto done;
      if (((a * 7 + b * 3 + lane) & 15) == 0) break;
      if ((b & 3) == (lane & 3)) continue;
      do {
        sum = sum * 31 + b + a;
      } while ((sum & 7) > (lane & 7));
    }
  }
done:
  out[i] = sum;
}
