// SPDX-License-Identifier: Apache-2.0
//
// soft: integer division and remainder. Compiled once for each lane set.
//
// Division by zero gives all ones, for the remainder too: PTX leaves it
// unspecified. The smallest number divided by -1 is itself, with remainder 0.
#include "soft/lanes/soft_lanes.h"

// The quotient of 32 bits, anything for b == 0. With wide vectors through f64:
// the nearest f64 to a / b is never beyond an integer that a / b is below, for
// they are at least 1 / b apart and the rounding moves it by less than 2^-20 /
// b. Adding 2^52 puts the nearest integer into the low bits; one less where
// that went up.
KILNI_LANES_INLINE uint32_t quotient(uint32_t a, uint32_t b) {
#if defined(__AVX2__)
  double q = (double)a / (double)(b ? b : 1u);
  double sum = q + 0x1p52;
  union {
    double value;
    uint64_t bits;
  } u = {sum};
  uint64_t up = sum - 0x1p52 > q ? 1u : 0u;
  return (uint32_t)(u.bits - up);
#else
  return a / (b ? b : 1u);
#endif
}
KILNI_LANES_INLINE uint32_t div_u(uint32_t a, uint32_t b) {
  return b ? quotient(a, b) : UINT32_MAX;
}
KILNI_LANES_INLINE uint32_t rem_u(uint32_t a, uint32_t b) {
  return b ? a - quotient(a, b) * b : UINT32_MAX;
}
// x where `sign` is 0, -x where it is all ones.
KILNI_LANES_INLINE uint32_t negated(uint32_t x, uint32_t sign) {
  return (x ^ sign) - sign;
}
KILNI_LANES_INLINE uint32_t div_s(int32_t a, int32_t b) {
  uint32_t sign_a = (uint32_t)(a >> 31);
  uint32_t sign_b = (uint32_t)(b >> 31);
  uint32_t q =
      quotient(negated((uint32_t)a, sign_a), negated((uint32_t)b, sign_b));
  return b ? negated(q, sign_a ^ sign_b) : UINT32_MAX;
}
KILNI_LANES_INLINE uint32_t rem_s(int32_t a, int32_t b) {
  return b ? (uint32_t)a - div_s(a, b) * (uint32_t)b : UINT32_MAX;
}
KILNI_LANES_INLINE uint64_t div_ul(uint64_t a, uint64_t b) {
  return b ? a / b : UINT64_MAX;
}
KILNI_LANES_INLINE uint64_t rem_ul(uint64_t a, uint64_t b) {
  return b ? a % b : UINT64_MAX;
}
KILNI_LANES_INLINE uint64_t div_sl(int64_t a, int64_t b) {
  if (b == 0) return UINT64_MAX;
  return b == -1 ? 0u - (uint64_t)a : (uint64_t)(a / b);
}
KILNI_LANES_INLINE uint64_t rem_sl(int64_t a, int64_t b) {
  if (b == 0) return UINT64_MAX;
  return b == -1 ? 0u : (uint64_t)(a % b);
}

#define TWO(id, T, expr) KILNI_LANES_BINARY(id, T, T, T, expr)
#define LOW16(x)         ((uint32_t)(x) & 0xffffu)

TWO(div_u16, uint32_t, LOW16(div_u(LOW16(a), LOW16(b))))
TWO(rem_u16, uint32_t, LOW16(rem_u(LOW16(a), LOW16(b))))
TWO(div_s16, uint32_t, LOW16(div_s((int16_t)a, (int16_t)b)))
TWO(rem_s16, uint32_t, LOW16(rem_s((int16_t)a, (int16_t)b)))
TWO(div_u32, uint32_t, div_u(a, b))
TWO(rem_u32, uint32_t, rem_u(a, b))
TWO(div_s32, uint32_t, div_s((int32_t)a, (int32_t)b))
TWO(rem_s32, uint32_t, rem_s((int32_t)a, (int32_t)b))
TWO(div_u64, uint64_t, div_ul(a, b))
TWO(rem_u64, uint64_t, rem_ul(a, b))
TWO(div_s64, uint64_t, div_sl((int64_t)a, (int64_t)b))
TWO(rem_s64, uint64_t, rem_sl((int64_t)a, (int64_t)b))
