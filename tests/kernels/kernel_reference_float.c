// SPDX-License-Identifier: Apache-2.0
//
// tests: references of the kernels about 16-bit floats and math functions.
// The functions are computed wider than they are wanted, then rounded once.
#include <math.h>
#include <string.h>

#include "kernel_reference.h"

// ---- half_math.cu, bf16_math.cu ----

// A format of 16 bits. thread-compatible
typedef struct format_t {
  int bits;  // of the fraction
  int bias;
} format_t;

static const format_t kHalf = {10, 15};
static const format_t kBfloat = {7, 127};

static double value_of(format_t f, uint16_t x) {
  int exponent = x >> f.bits & ((1 << (15 - f.bits)) - 1);
  int fraction = x & ((1 << f.bits) - 1);
  double size = exponent == 0 ? ldexp(fraction, 1 - f.bias - f.bits)
                              : ldexp(fraction + (1 << f.bits),
                                      exponent - f.bias - f.bits);
  return x & 0x8000 ? -size : size;
}

// Rounds exactly: 'n' to nearest even, 'z' towards zero, 'd' down, 'u' up.
static uint16_t round_to(format_t f, double x, char how) {
  uint32_t sign = signbit(x) ? 0x8000 : 0;
  int power = 0;
  if (x == 0) return (uint16_t)sign;
  (void)frexp(x, &power);
  power = power - 1 < 1 - f.bias ? 1 - f.bias : power - 1;
  double scaled = ldexp(x, f.bits - power);
  double whole = how == 'n'   ? nearbyint(scaled)
                 : how == 'z' ? trunc(scaled)
                 : how == 'd' ? floor(scaled)
                              : ceil(scaled);
  uint32_t size = (uint32_t)fabs(whole);
  if (size >> f.bits > 1) {
    size >>= 1;
    power++;
  }
  uint32_t infinite = (uint32_t)((1 << (15 - f.bits)) - 1) << f.bits;
  if (power > f.bias) {
    bool away = how == 'n' || (how == 'd' && sign) || (how == 'u' && !sign);
    return (uint16_t)(sign | (away ? infinite : infinite - 1));
  }
  // The leading bit of a normal number adds one to the exponent's field.
  uint32_t field = (uint32_t)(power + f.bias - 1) << f.bits;
  return (uint16_t)(sign | (size >> f.bits == 0 ? size : field + size));
}

static uint16_t half_number(uint32_t bits) {
  return (uint16_t)((bits & 0x83ff) | (12 + (bits >> 10 & 7)) << 10);
}

static uint16_t bfloat_number(uint32_t bits) {
  return (uint16_t)((bits & 0x807f) | (126 + (bits >> 7) % 3) << 7);
}

static uint16_t orders(double x, double y, double z) {
  return (uint16_t)((x < y) + 2 + 4 * (x >= y) + 8 * (y != z));
}

static void half_math(kernel_case_t* c) {
  const uint16_t* a = kernel_in(c, "a");
  const uint16_t* b = kernel_in(c, "b");
  const float* wide = kernel_in(c, "wide");
  uint16_t* o = kernel_out(c, "out");
  for (int i = 0; i < 128; i++, o += 20) {
    uint16_t bits = half_number(a[i]);
    double x = value_of(kHalf, bits);
    double y = value_of(kHalf, half_number(b[i]));
    double z = value_of(kHalf, half_number(a[i] ^ b[i] * 5u));
    double limited = x + y < 0 ? 0 : x + y > 1 ? 1 : x + y;
    float single = (float)x;
    uint32_t single_bits;
    memcpy(&single_bits, &single, 4);
    o[0] = round_to(kHalf, x + y, 'n');
    o[1] = round_to(kHalf, x - y, 'n');
    o[2] = round_to(kHalf, x * y, 'n');
    o[3] = round_to(kHalf, x * y + z, 'n');
    o[4] = round_to(kHalf, limited, 'n');
    o[5] = bits ^ 0x8000;
    o[6] = bits & 0x7fff;
    o[7] = round_to(kHalf, x < y ? x : y, 'n');
    o[8] = round_to(kHalf, x > y ? x : y, 'n');
    o[9] = orders(x, y, z);
    o[10] = round_to(kHalf, (double)wide[i], 'n');
    o[11] = round_to(kHalf, (double)wide[i], 'z');
    o[12] = round_to(kHalf, (double)wide[i], 'd');
    o[13] = round_to(kHalf, (double)wide[i], 'u');
    o[14] = (uint16_t)(int32_t)x;
    o[15] = (uint16_t)(int32_t)nearbyint(y);
    o[16] = (uint16_t)ceil(fabs(z));
    o[17] = round_to(kHalf, a[i] * 3.0, 'n');
    o[18] = o[10];
    o[19] = (uint16_t)(single_bits >> 13);
  }
}

// Two of a word: sum, product, x * y - x, the greater, difference.
static void pair_of(format_t f, uint16_t a, uint16_t b, uint16_t out[5]) {
  double x = value_of(f, a);
  double y = value_of(f, b);
  out[0] = round_to(f, x + y, 'n');
  out[1] = round_to(f, x * y, 'n');
  out[2] = round_to(f, x * y - x, 'n');
  out[3] = x > y ? a : b;
  out[4] = round_to(f, x - y, 'n');
}

static void half_pairs(kernel_case_t* c) {
  const uint32_t* a = kernel_in(c, "a");
  const uint32_t* b = kernel_in(c, "b");
  uint32_t* o = kernel_out(c, "out");
  for (int i = 0; i < 128; i++, o += 6) {
    uint16_t part[2][5];
    uint32_t greater = 0;
    for (int n = 0; n < 2; n++) {
      uint16_t x = half_number(a[i] >> 16 * n);
      uint16_t y = half_number(b[i] >> 16 * n);
      pair_of(kHalf, x, y, part[n]);
      if (value_of(kHalf, x) > value_of(kHalf, y)) greater |= 0x3c00u << 16 * n;
    }
    for (int k = 0; k < 4; k++) {
      o[k] = part[0][k] | (uint32_t)part[1][k] << 16;
    }
    o[4] = greater;
    o[5] = part[1][4] | (uint32_t)part[0][4] << 16;
  }
}

static void bf16_math(kernel_case_t* c) {
  const uint16_t* a = kernel_in(c, "a");
  const uint16_t* b = kernel_in(c, "b");
  const float* wide = kernel_in(c, "wide");
  uint16_t* o = kernel_out(c, "out");
  for (int i = 0; i < 128; i++, o += 12) {
    uint16_t bits = bfloat_number(a[i]);
    uint16_t other = bfloat_number(b[i]);
    double x = value_of(kBfloat, bits);
    double y = value_of(kBfloat, other);
    double z = value_of(kBfloat, bfloat_number(a[i] ^ b[i] * 5u));
    o[0] = round_to(kBfloat, x + y, 'n');
    o[1] = round_to(kBfloat, x - y, 'n');
    o[2] = round_to(kBfloat, x * y, 'n');
    o[3] = round_to(kBfloat, x * y + z, 'n');
    o[4] = bits ^ 0x8000;
    o[5] = round_to(kBfloat, x < y ? x : y, 'n');
    o[6] = round_to(kBfloat, x > y ? x : y, 'n');
    o[7] = orders(x, y, z);
    o[8] = round_to(kBfloat, (double)wide[i], 'n');
    o[9] = round_to(kBfloat, (double)wide[i], 'z');
    o[10] = (uint16_t)(int32_t)x;
    o[11] = other;
  }
}

static void bf16_pairs(kernel_case_t* c) {
  const uint32_t* a = kernel_in(c, "a");
  const uint32_t* b = kernel_in(c, "b");
  uint32_t* o = kernel_out(c, "out");
  for (int i = 0; i < 128; i++, o += 4) {
    uint16_t part[2][5];
    for (int n = 0; n < 2; n++) {
      uint16_t x = bfloat_number(a[i] >> 16 * n);
      uint16_t y = bfloat_number(b[i] >> 16 * n);
      pair_of(kBfloat, x, y, part[n]);
      part[n][3] = value_of(kBfloat, x) < value_of(kBfloat, y) ? x : y;
    }
    for (int k = 0; k < 4; k++) {
      o[k] = part[0][k] | (uint32_t)part[1][k] << 16;
    }
  }
}

// ---- slow_paths_f32.cu ----

static void slow_f32_of(uint32_t bits, float w, float* exact, float* f,
                        float* c) {
  uint32_t huge_bits = (bits & 0x807fffff) | (144 + (bits >> 23) % 109) << 23;
  float huge;
  memcpy(&huge, &huge_bits, 4);
  float positive = fabsf(w);
  exact[0] = fmodf(huge, w);
  exact[1] = remainderf(w, 0.7f);
  exact[2] = rintf(w) + truncf(w) + floorf(w) - ceilf(w);
  f[0] = (float)sin((double)huge);
  f[1] = (float)cos((double)huge);
  f[2] = (float)exp((double)fmodf(w, 80.0f));
  f[3] = (float)exp2((double)(fmodf(w, 100.0f) - 40.0f));
  f[5] = (float)log2((double)positive);
  f[6] = (float)log1p((double)(positive * 1e-3f));
  f[7] = (float)expm1((double)fmodf(w, 1.0f));
  f[8] = (float)erf((double)fmodf(w, 3.0f));
  c[0] = (float)tan((double)huge);
  c[1] = (float)pow((double)positive, (double)fmodf(w, 4.0f));
  c[2] = (float)tgamma((double)(fmodf(positive, 30.0f) + 0.5f));
  c[3] = (float)lgamma((double)(fmodf(positive, 90.0f) + 3.0f));
  c[4] = (float)erfc((double)fmodf(w, 8.0f));
}

static void slow_f32(kernel_case_t* c) {
  const uint32_t* bits = kernel_in(c, "bits");
  const float* wide = kernel_in(c, "wide");
  float* fine = kernel_out(c, "fine");
  for (uint32_t i = 0; i < 256; i++) {
    slow_f32_of(bits[i], wide[i], (float*)kernel_out(c, "exact") + i * 3,
                fine + i * 9, (float*)kernel_out(c, "coarse") + i * 5);
    uint32_t tiny = (bits[i] & 0x007fffff) >> (i & 15);
    fine[i * 9 + 4] = (float)log((tiny + 1.0) * 0x1p-149);
  }
}

// ---- slow_paths_f64.cu ----

static void slow_f64_of(uint64_t bits, double w, double* exact, double* f,
                        double* c) {
  uint64_t huge_bits = (bits & 0x800fffffffffffff) | (1055 + (bits >> 52) % 968)
                                                         << 52;
  double huge;
  memcpy(&huge, &huge_bits, 8);
  double positive = fabs(w);
  exact[0] = fmod(positive * 1e9, 0.7);
  exact[1] = remainder(w, 1.3);
  f[0] = (double)sinl((long double)huge);
  f[1] = (double)cosl((long double)huge);
  f[2] = (double)expl((long double)fmod(w, 600.0));
  f[3] = (double)exp2l((long double)fmod(w, 900.0));
  uint64_t tiny = (bits & 0xfffffffffffff) | 1;
  f[4] = (double)logl((long double)tiny * 0x1p-1074L);
  f[5] = (double)log2l((long double)positive);
  f[6] = (double)log1pl((long double)(positive * 1e-6));
  f[7] = (double)expm1l((long double)fmod(w, 1.0));
  c[0] = (double)tanl((long double)huge);
  c[1] = (double)powl((long double)positive, (long double)fmod(w, 30.0));
  c[2] = (double)tgammal((long double)(fmod(positive, 100.0) + 0.5));
  c[3] = (double)lgammal((long double)(fmod(positive, 500.0) + 3.0));
  c[4] = (double)erfcl((long double)fmod(w, 20.0));
}

static void slow_f64(kernel_case_t* c) {
  const uint64_t* bits = kernel_in(c, "bits");
  const double* wide = kernel_in(c, "wide");
  for (uint32_t i = 0; i < 256; i++) {
    slow_f64_of(bits[i], wide[i], (double*)kernel_out(c, "exact") + i * 2,
                (double*)kernel_out(c, "fine") + i * 8,
                (double*)kernel_out(c, "coarse") + i * 5);
  }
}

const kernel_reference_t kernel_references_float[] = {
    {"half_math.half_math", half_math, NULL},
    {"half_math.half_pairs", half_pairs, NULL},
    {"bf16_math.bf16_math", bf16_math, NULL},
    {"bf16_math.bf16_pairs", bf16_pairs, NULL},
    {"slow_paths_f32.slow_paths", slow_f32, NULL},
    {"slow_paths_f64.slow_paths", slow_f64, NULL},
    {NULL, NULL, NULL},
};
