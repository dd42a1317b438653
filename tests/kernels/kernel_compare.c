// SPDX-License-Identifier: Apache-2.0
//
// tests: whether two answers of a kernel are the same.
#include "kernel_compare.h"

#include <string.h>

static uint64_t bits_of(const kernel_param_t* param, const uint8_t* at) {
  uint64_t bits = 0;
  memcpy(&bits, at, param->width);
  return bits;
}

static bool is_nan(const kernel_param_t* param, uint64_t bits) {
  if (param->type[0] != 'f') return false;
  if (param->width == 4) return (bits & 0x7fffffff) > 0x7f800000;
  if (param->width == 2) return (bits & 0x7fff) > 0x7c00;
  return (bits & (UINT64_MAX >> 1)) > 0x7ff0000000000000ull;
}

// A number in whose order neighbours differ by one.
static int64_t place_of(const kernel_param_t* param, uint64_t bits) {
  uint64_t sign = (uint64_t)1 << (param->width * 8 - 1);
  if (param->type[0] != 'f' && param->type[0] != 'i') return (int64_t)bits;
  if (param->type[0] == 'i') return (int64_t)((bits ^ sign) - sign);
  return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

static uint64_t distance(const kernel_param_t* param, uint64_t a, uint64_t b) {
  if (is_nan(param, a) || is_nan(param, b)) return UINT64_MAX;
  int64_t left = place_of(param, a);
  int64_t right = place_of(param, b);
  return left > right ? (uint64_t)left - (uint64_t)right
                      : (uint64_t)right - (uint64_t)left;
}

kernel_apart_t kernel_compare(const kernel_param_t* param, const uint8_t* left,
                              const uint8_t* right) {
  kernel_apart_t apart = {0, 0, 0};
  for (size_t i = 0; i < param->count; i++) {
    uint64_t a = bits_of(param, left + i * param->width);
    uint64_t b = bits_of(param, right + i * param->width);
    if (a == b || (is_nan(param, a) && is_nan(param, b))) continue;
    if (apart.differing++ == 0) apart.first = i;
    uint64_t ulps = distance(param, a, b);
    if (ulps > apart.ulps) apart.ulps = ulps;
  }
  return apart;
}
