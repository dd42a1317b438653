// SPDX-License-Identifier: Apache-2.0
//
// tests: single precision math. `exact` holds what is defined to the last bit;
// `near` what goes through an approximation of the hardware.
//
// nvrtc: --fmad=false
// other: 12.9 compute_70
//
// run: math_f32
// grid: 4 1 1
// block: 64 1 1
// buffer: a in f32 256 wide 81
// buffer: b in f32 256 wide 82
// buffer: exact out f32 4096
// buffer: near out f32 2048
// approx: near 2
extern "C" __global__ void math_f32(const float* a, const float* b,
                                    float* exact, float* near) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = a[i];
  float y = b[i];
  float* e = exact + i * 16;
  e[0] = x / y;
  e[1] = sqrtf(fabsf(x));
  e[2] = 1.0f / x;
  e[3] = sinf(x);
  e[4] = cosf(x);
  e[5] = fmaf(x, y, 1.0f);
  e[6] = floorf(x) + ceilf(y);
  e[7] = rintf(x) - truncf(y);
  e[8] = roundf(x);
  e[9] = fminf(x, y);
  e[10] = fmaxf(x, copysignf(y, x));
  e[11] = fmodf(x, y);
  e[12] = ldexpf(x, (int)(i & 7) - 3);
  e[13] = __fadd_rz(x, y);
  e[14] = __fmul_ru(x, y);
  e[15] = __fdiv_rd(x, y);
  float* n = near + i * 8;
  n[0] = expf(x * 0.01f);
  n[1] = logf(fabsf(x));
  n[2] = powf(fabsf(x), 1.5f);
  n[3] = rsqrtf(fabsf(y));
  n[4] = tanhf(x);
  n[5] = atan2f(y, x);
  n[6] = exp2f(y * 0.01f);
  n[7] = cbrtf(x);
}
