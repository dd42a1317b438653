// SPDX-License-Identifier: Apache-2.0
//
// tests: math functions where they take their long way: sines of arguments up
// to 2^126 (Payne and Hanek), powers and logarithms next to subnormals, gamma,
// error function; remainders, which are exact.
//
// nvrtc: --fmad=false
// other: 12.9 compute_70
//
// run: slow_paths
// grid: 4 1 1
// block: 64 1 1
// also: 2 1 1 128 1 1
// buffer: bits in u32 256 bits 781
// buffer: wide in f32 256 wide 782
// buffer: exact out f32 768
// buffer: fine out f32 2304
// buffer: coarse out f32 1280
// approx: fine 2 CUDA promises sinf, cosf, expf, exp2f, logf, log2f, log1pf, expm1f and erff to 2 ulp
// approx: coarse 11 CUDA promises tanf, powf, lgammaf and erfcf to 4 to 8 ulp, tgammaf to 11
extern "C" __global__ void slow_paths(const unsigned* bits, const float* wide,
                                      float* exact, float* fine,
                                      float* coarse) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  // 2^17 to 2^126: beyond what a reduction by pi/2 in three parts can do.
  unsigned power = 144 + (bits[i] >> 23) % 109;
  float huge = __uint_as_float((bits[i] & 0x807fffffu) | power << 23);
  // 2^-140 to 2^-108, in part subnormal.
  float tiny = __uint_as_float((bits[i] & 0x007fffffu) >> (i & 15));
  float w = wide[i];
  float positive = fabsf(w);
  exact[i * 3] = fmodf(huge, w);
  exact[i * 3 + 1] = remainderf(w, 0.7f);
  exact[i * 3 + 2] = rintf(w) + truncf(w) + floorf(w) - ceilf(w);
  float* f = fine + i * 9;
  f[0] = sinf(huge);
  f[1] = cosf(huge);
  f[2] = expf(fmodf(w, 80.0f));
  f[3] = exp2f(fmodf(w, 100.0f) - 40.0f);
  f[4] = logf(tiny + 1e-45f);
  f[5] = log2f(positive);
  f[6] = log1pf(positive * 1e-3f);
  f[7] = expm1f(fmodf(w, 1.0f));
  f[8] = erff(fmodf(w, 3.0f));
  float* c = coarse + i * 5;
  c[0] = tanf(huge);
  c[1] = powf(positive, fmodf(w, 4.0f));
  c[2] = tgammaf(fmodf(positive, 30.0f) + 0.5f);
  c[3] = lgammaf(fmodf(positive, 90.0f) + 3.0f);
  c[4] = erfcf(fmodf(w, 8.0f));
}
