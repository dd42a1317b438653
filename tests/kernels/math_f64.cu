// SPDX-License-Identifier: Apache-2.0
//
// tests: double precision math. `exact` holds what is defined to the last bit;
// `near` what goes through an approximation of the hardware.
//
// nvrtc: --fmad=false
// other: 13.5 compute_80
//
// run: math_f64
// grid: 4 1 1
// block: 64 1 1
// buffer: a in f64 256 wide 91
// buffer: b in f64 256 wide 92
// buffer: exact out f64 4096
// buffer: near out f64 2048
// approx: near 2
extern "C" __global__ void math_f64(const double* a, const double* b,
                                    double* exact, double* near) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  double x = a[i];
  double y = b[i];
  double* e = exact + i * 16;
  e[0] = x / y;
  e[1] = sqrt(fabs(x));
  e[2] = 1.0 / x;
  e[3] = sin(x);
  e[4] = cos(x);
  e[5] = fma(x, y, -1.0);
  e[6] = floor(x) + ceil(y);
  e[7] = rint(x) - trunc(y);
  e[8] = exp(x * 0.001);
  e[9] = fmin(x, y);
  e[10] = fmax(x, copysign(y, x));
  e[11] = (double)(float)x + (double)(long long)y;
  e[12] = (double)(unsigned)fabs(y) * 0.1;
  e[13] = __dadd_rd(x, y);
  e[14] = __dmul_rz(x, y);
  e[15] = __ddiv_ru(x, y);
  double* n = near + i * 8;
  n[0] = log(fabs(x));
  n[1] = pow(fabs(x), 1.75);
  n[2] = rsqrt(fabs(y));
  n[3] = tanh(x);
  n[4] = atan2(y, x);
  n[5] = log2(fabs(y));
  n[6] = cbrt(x);
  n[7] = fmod(x, y);
}
