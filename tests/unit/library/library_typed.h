// SPDX-License-Identifier: Apache-2.0
//
// library: arrays of any type of floats, as doubles.
#ifndef KILN_TESTS_UNIT_LIBRARY_LIBRARY_TYPED_H_
#define KILN_TESTS_UNIT_LIBRARY_LIBRARY_TYPED_H_

#include "evaluator_values.h"
#include "library_kit.h"

static inline uint64_t typed_bits(uint32_t type, const void* data,
                                  uint64_t at) {
  uint32_t bytes = program_type_bytes((uint8_t)type);
  uint64_t bits = 0;
  memcpy(&bits, (const uint8_t*)data + at * bytes, bytes);
  return bits;
}

static inline double typed_get(uint32_t type, const void* data, uint64_t at) {
  return program_number((uint8_t)type, typed_bits(type, data, at));
}

// Rounded to the type.
static inline void typed_set(uint32_t type, void* data, uint64_t at,
                             double value) {
  uint32_t bytes = program_type_bytes((uint8_t)type);
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  bits = program_cast(KILN_PROGRAM_TYPE_F64, (uint8_t)type, bits);
  memcpy((uint8_t*)data + at * bytes, &bits, bytes);
}

// Numbers from -1 to 1, or with all that is awkward among them.
static inline void* typed_numbers(uint32_t type, uint64_t count, uint64_t seed,
                                  bool awkward) {
  static const double kAwkward[] = {
      0,        -0.0,      1,       -1,       (double)NAN, (double)INFINITY,
      0x1p-149, -0x1p-140, 0x1p-24, 0x1p-133, 60000,       -0x1p100};
  void* data = kit_zeroes(count, program_type_bytes((uint8_t)type));
  for (uint64_t i = 0; i < count; i++) {
    uint64_t bits = kit_next(&seed);
    double value = (double)(int64_t)bits * 0x1p-63;
    if (awkward && bits % 29 == 0) value = kAwkward[(bits >> 8) % 12];
    typed_set(type, data, i, value);
  }
  return data;
}

#endif  // KILN_TESTS_UNIT_LIBRARY_LIBRARY_TYPED_H_
