// SPDX-License-Identifier: Apache-2.0
//
// tests: reductions by shuffles: of doubles and 64-bit integers, of pairs (the
// place of the maximum), of parts of a warp with a width and with a mask.
//
// nvrtc: --fmad=false
// other: 12.9 compute_70
//
// run: reductions
// grid: 2 1 1
// block: 64 1 1
// also: 4 1 1 32 1 1
// also: 1 1 1 128 1 1
// buffer: reals in f64 128 wide 631
// buffer: longs in i64 128 bits 632
// buffer: sums out f64 128
// buffer: out out i64 512
#define FULL 0xffffffffu

extern "C" __global__ void reductions(const double* reals,
                                      const long long* longs, double* sums,
                                      long long* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned lane = threadIdx.x & 31;
  // Sums by halves have one order, so every bit of them is defined.
  double sum = reals[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(FULL, sum, d);
  sums[i] = sum;
  long long best = longs[i];
  int place = (int)lane;
  for (int d = 16; d > 0; d /= 2) {
    long long other = __shfl_down_sync(FULL, best, d);
    int at = __shfl_down_sync(FULL, place, d);
    if (lane + d < 32 && other > best) {
      best = other;
      place = at;
    }
  }
  out[i * 4] = __shfl_sync(FULL, best, 0);
  out[i * 4 + 1] = __shfl_sync(FULL, place, 0);
  long long eights = longs[i];
  for (int d = 4; d > 0; d /= 2) eights ^= __shfl_xor_sync(FULL, eights, d, 8);
  out[i * 4 + 2] = eights;
  // The first 11 lanes among themselves, the others among themselves.
  unsigned mask = lane < 11 ? 0x7ffu : ~0x7ffu;
  unsigned first = lane < 11 ? 0 : 11;
  unsigned count = lane < 11 ? 11 : 21;
  long long part = 0;
  for (unsigned n = 0; n < count; ++n) {
    part += __shfl_sync(mask, longs[i] >> 8, first + (lane - first + n) % count);
  }
  out[i * 4 + 3] = part;
}
