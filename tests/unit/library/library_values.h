// SPDX-License-Identifier: Apache-2.0
//
// library: arrays of any type of numbers, with all that is awkward in it, and
// how plain C joins and compares them.
#ifndef KILN_TESTS_UNIT_LIBRARY_LIBRARY_VALUES_H_
#define KILN_TESTS_UNIT_LIBRARY_LIBRARY_VALUES_H_

#include "library_typed.h"

// Every type of numbers.
static const uint32_t kNumberTypes[] = {
    KILN_PROGRAM_TYPE_U8,  KILN_PROGRAM_TYPE_I8,   KILN_PROGRAM_TYPE_U16,
    KILN_PROGRAM_TYPE_I16, KILN_PROGRAM_TYPE_U32,  KILN_PROGRAM_TYPE_I32,
    KILN_PROGRAM_TYPE_U64, KILN_PROGRAM_TYPE_I64,  KILN_PROGRAM_TYPE_F16,
    KILN_PROGRAM_TYPE_F32, KILN_PROGRAM_TYPE_BF16, KILN_PROGRAM_TYPE_F64};
enum { NUMBER_TYPES = sizeof(kNumberTypes) / sizeof(kNumberTypes[0]) };

// The types that scans and radix sorts take.
static const uint32_t kWideTypes[] = {
    KILN_PROGRAM_TYPE_U32, KILN_PROGRAM_TYPE_I32, KILN_PROGRAM_TYPE_U64,
    KILN_PROGRAM_TYPE_I64, KILN_PROGRAM_TYPE_F32, KILN_PROGRAM_TYPE_F64};
enum { WIDE_TYPES = sizeof(kWideTypes) / sizeof(kWideTypes[0]) };

// How elements follow each other. one-thread
typedef enum values_form_t {
  VALUES_ANY,      // any bits
  VALUES_AWKWARD,  // the ends of the type, zeroes, NaN, infinities
  VALUES_RISING,
  VALUES_FALLING,
  VALUES_EQUAL,
  VALUES_FEW,  // runs of few different ones
  VALUES_FORMS
} values_form_t;

static inline uint64_t values_mask(uint32_t type) {
  uint32_t bytes = program_type_bytes((uint8_t)type);
  return bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;
}

// One of the awkward values of a type.
static inline uint64_t values_awkward(uint32_t type, uint64_t pick) {
  static const double kFloats[] = {
      0,         -0.0,      1,        -1,       (double)NAN, (double)INFINITY,
      -INFINITY, 0x1p-1074, 0x1p-149, 0x1p-133, 0x1p-24,     -0x1p-149,
      65504,     -0x1p100,  0x1p1000, -60000};
  uint64_t top = UINT64_C(1) << (8 * program_type_bytes((uint8_t)type) - 1);
  if (program_type_is_float((uint8_t)type)) {
    uint64_t bits;
    if (pick % 17 == 16) return values_mask(type);  // a NaN with a sign
    memcpy(&bits, &kFloats[pick % 17], sizeof(bits));
    return program_cast(KILN_PROGRAM_TYPE_F64, (uint8_t)type, bits);
  }
  const uint64_t ends[] = {0, 1, UINT64_MAX, top, top - 1, top + 1};
  return ends[pick % 6] & values_mask(type);
}

static inline uint64_t values_at(uint32_t type, values_form_t form, uint64_t i,
                                 uint64_t count, uint64_t* seed) {
  uint64_t bits = kit_next(seed);
  bool is_float = program_type_is_float((uint8_t)type);
  double step = (double)i;
  if (form == VALUES_AWKWARD) return values_awkward(type, bits);
  if (form == VALUES_EQUAL) return values_awkward(type, 4 * count);
  if (form == VALUES_FEW) return values_awkward(type, bits % 3 + i / 7);
  if (form == VALUES_ANY) return bits & values_mask(type);
  if (form == VALUES_FALLING) step = (double)(count - i);
  if (!is_float) return (uint64_t)step & values_mask(type) >> 1;
  step = step * 0x1p-9 - 7;
  memcpy(&bits, &step, sizeof(bits));
  return program_cast(KILN_PROGRAM_TYPE_F64, (uint8_t)type, bits);
}

static inline void values_set(uint32_t type, void* data, uint64_t at,
                              uint64_t bits) {
  uint32_t bytes = program_type_bytes((uint8_t)type);
  memcpy((uint8_t*)data + at * bytes, &bits, bytes);
}

static inline void* values_make(uint32_t type, values_form_t form,
                                uint64_t count, uint64_t seed) {
  void* data = kit_zeroes(count, program_type_bytes((uint8_t)type));
  for (uint64_t i = 0; i < count; i++) {
    values_set(type, data, i, values_at(type, form, i, count, &seed));
  }
  return data;
}

// -1, 0 or 1, as C compares numbers; NaN is like everything.
static inline int values_compare(uint32_t type, uint64_t a, uint64_t b) {
  if (program_type_is_float((uint8_t)type)) {
    double x = program_number((uint8_t)type, a);
    double y = program_number((uint8_t)type, b);
    return (x > y) - (x < y);
  }
  uint64_t x = program_extend((uint8_t)type, a);
  uint64_t y = program_extend((uint8_t)type, b);
  if (!program_type_is_signed((uint8_t)type)) return (x > y) - (x < y);
  return ((int64_t)x > (int64_t)y) - ((int64_t)x < (int64_t)y);
}

static inline bool values_is_nan(uint32_t type, uint64_t bits) {
  return program_type_is_float((uint8_t)type) &&
         program_is_nan((uint8_t)type, bits);
}

// The one that stands in front by its bits: -0 in front of 0, NaN last.
static inline int values_order(uint32_t type, uint64_t a, uint64_t b) {
  bool p = values_is_nan(type, a), q = values_is_nan(type, b);
  if (p || q) return p - q;
  int order = values_compare(type, a, b);
  if (order != 0 || a == b) return order;
  return (a == 0) - (b == 0);  // a float's two zeroes
}

// What two elements come to; a NaN stays in sums, and loses otherwise.
static inline uint64_t values_join(uint32_t type, uint32_t operation,
                                   uint64_t a, uint64_t b) {
  if (operation == KILN_LIBRARY_ADD) {
    if (!program_type_is_float((uint8_t)type)) {
      return (a + b) & values_mask(type);
    }
    double sum =
        program_number((uint8_t)type, a) + program_number((uint8_t)type, b);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof(bits));
    return program_cast(KILN_PROGRAM_TYPE_F64, (uint8_t)type, bits);
  }
  if (values_is_nan(type, a)) return b;
  if (values_is_nan(type, b)) return a;
  bool first = values_order(type, a, b) < 0;
  return first == (operation == KILN_LIBRARY_MIN) ? a : b;
}

// The same bits, any NaN as any other; or, of sums, both zero.
static inline bool values_same(uint32_t type, uint64_t a, uint64_t b,
                               bool zeroes) {
  if (program_same((uint8_t)type, a, b)) return true;
  return zeroes && program_type_is_float((uint8_t)type) &&
         !values_is_nan(type, a) && !values_is_nan(type, b) &&
         values_compare(type, a, b) == 0;
}

// The least number above 0 of a type of floats.
static inline double values_least(uint32_t type) {
  return type == KILN_PROGRAM_TYPE_F16    ? 0x1p-24
         : type == KILN_PROGRAM_TYPE_BF16 ? 0x1p-133
         : type == KILN_PROGRAM_TYPE_F32  ? 0x1p-149
                                          : 0x1p-1074;
}

// Small whole numbers, seldom any but 0, so that sums of them are exact in
// every order and every type; by one seed in four they are times the least
// number that the type has. Where `awkward` one in 64 of those is an infinity
// or a NaN.
static inline void* values_exact(uint32_t type, uint64_t count, uint64_t seed,
                                 bool awkward) {
  if (!program_type_is_float((uint8_t)type)) {
    return values_make(type, awkward ? VALUES_AWKWARD : VALUES_ANY, count,
                       seed);
  }
  static const double kSpoilt[] = {(double)INFINITY, -INFINITY, (double)NAN};
  void* data = kit_zeroes(count, program_type_bytes((uint8_t)type));
  uint64_t one_in = count / 128 + 2;
  double unit = seed % 4 == 3 ? values_least(type) : 1;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t bits = kit_next(&seed);
    double value = 0;
    if (bits % one_in == 0) value = (bits >> 32 & 1) != 0 ? unit : -unit;
    if (awkward && bits % (one_in * 64) == 0) value = kSpoilt[(bits >> 40) % 3];
    typed_set(type, data, i, value);
  }
  return data;
}

#endif  // KILN_TESTS_UNIT_LIBRARY_LIBRARY_VALUES_H_
