// SPDX-License-Identifier: Apache-2.0
//
// tests: shuffles in all four directions, at widths 32, 16 and 8, on 32 and 64
// bits, and by a part of a warp in divergent code.
//
// nvrtc: --fmad=false
// other: 13.5 compute_80
//
// run: shuffle
// grid: 2 1 1
// block: 64 1 1
// buffer: in in u32 128 bits 31
// buffer: out out u32 1280
//
// run: scan
// grid: 2 1 1
// block: 96 1 1
// buffer: in in f32 192 small 32
// buffer: wide in u64 192 bits 33
// buffer: out out f32 192
// buffer: folds out u64 192
#define FULL 0xffffffffu

extern "C" __global__ void shuffle(const unsigned* in, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane = threadIdx.x & 31;
  unsigned x = in[i];
  unsigned* o = out + i * 10;
  o[0] = __shfl_sync(FULL, x, 5);
  o[1] = __shfl_sync(FULL, x, lane * 7);
  o[2] = __shfl_up_sync(FULL, x, 3);
  o[3] = __shfl_down_sync(FULL, x, 4);
  o[4] = __shfl_xor_sync(FULL, x, 17);
  o[5] = __shfl_up_sync(FULL, x, 2, 8);
  o[6] = __shfl_down_sync(FULL, x, 5, 16);
  o[7] = __shfl_xor_sync(FULL, x, 9, 8);
  o[8] = __shfl_sync(FULL, x, 13, 8);
  if (lane & 1) {
    o[9] = __shfl_down_sync(0xaaaaaaaau, x, 2);
  } else {
    o[9] = ~__shfl_up_sync(0x55555555u, x, 2);
  }
}

extern "C" __global__ void scan(const float* in, const unsigned long long* wide,
                                float* out, unsigned long long* folds) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane = threadIdx.x & 31;
  float x = in[i];
  for (unsigned step = 1; step < 32; step *= 2) {
    float y = __shfl_up_sync(FULL, x, step);
    if (lane >= step) x += y;
  }
  out[i] = x;
  unsigned long long w = wide[i];
  for (int step = 16; step > 0; step /= 2) w ^= __shfl_xor_sync(FULL, w, step) * 3;
  folds[i] = w;
}
