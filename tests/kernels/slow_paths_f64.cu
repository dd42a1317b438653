// SPDX-License-Identifier: Apache-2.0
//
// tests: math functions in f64 where they take their long way: sines of
// arguments up to 2^1000, powers, gamma, error function; exact remainders.
//
// nvrtc: --fmad=false
// other: 13.5 compute_80
//
// run: slow_paths
// grid: 4 1 1
// block: 64 1 1
// also: 8 1 1 32 1 1
// buffer: bits in u64 256 bits 791
// buffer: wide in f64 256 wide 792
// buffer: exact out f64 512
// buffer: fine out f64 2048
// buffer: coarse out f64 1280
// approx: fine 2 CUDA promises sin, cos, exp, exp2, log, log2, log1p and expm1 to 2 ulp
// approx: coarse 10 CUDA promises tan, pow, tgamma, lgamma and erfc to 2 to 10 ulp
extern "C" __global__ void slow_paths(const unsigned long long* bits,
                                      const double* wide, double* exact,
                                      double* fine, double* coarse) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long power = 1023 + 32 + (bits[i] >> 52) % 968;
  double huge = __longlong_as_double(
      (long long)((bits[i] & 0x800fffffffffffffull) | power << 52));
  double tiny =
      __longlong_as_double((long long)((bits[i] & 0xfffffffffffffull) | 1));
  double w = wide[i];
  double positive = fabs(w);
  exact[i * 2] = fmod(positive * 1e9, 0.7);
  exact[i * 2 + 1] = remainder(w, 1.3);
  double* f = fine + i * 8;
  f[0] = sin(huge);
  f[1] = cos(huge);
  f[2] = exp(fmod(w, 600.0));
  f[3] = exp2(fmod(w, 900.0));
  f[4] = log(tiny);
  f[5] = log2(positive);
  f[6] = log1p(positive * 1e-6);
  f[7] = expm1(fmod(w, 1.0));
  double* c = coarse + i * 5;
  c[0] = tan(huge);
  c[1] = pow(positive, fmod(w, 30.0));
  c[2] = tgamma(fmod(positive, 100.0) + 0.5);
  c[3] = lgamma(fmod(positive, 500.0) + 3.0);
  c[4] = erfc(fmod(w, 20.0));
}
