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

// What half a unit in the last place of a number near 1 is; 0 of f32, which
// everything is computed in.
static inline double typed_half_unit(uint32_t type) {
  return type == KILN_PROGRAM_TYPE_F16    ? 0x1p-11
         : type == KILN_PROGRAM_TYPE_BF16 ? 0x1p-8
                                          : 0;
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

// A chain of fused multiply-adds, in f64 and in f32. one-thread
typedef struct typed_sum_t {
  double exact;
  float sum;
} typed_sum_t;

static inline void typed_add(typed_sum_t* chain, double a, double b) {
  chain->exact = fma(a, b, chain->exact);
  chain->sum = fmaf((float)a, (float)b, chain->sum);
}

// Bits of it, rounded to the type once: of f64 that in f64, else that in f32.
static inline uint64_t typed_sum_bits(uint32_t type, const typed_sum_t* chain) {
  uint64_t bits = 0;
  if (type == KILN_PROGRAM_TYPE_F64) {
    memcpy(&bits, &chain->exact, sizeof(chain->exact));
    return bits;
  }
  memcpy(&bits, &chain->sum, sizeof(chain->sum));
  return program_cast(KILN_PROGRAM_TYPE_F32, (uint8_t)type, bits);
}

// Element `at` of an array has the bits `want`, any NaN being like another.
// `where` says what it is.
static inline void typed_expect(uint32_t type, const void* data, uint64_t at,
                                uint64_t want, const char* where) {
  uint64_t have = typed_bits(type, data, at);
  if (program_same((uint8_t)type, have, want)) return;
  fail_msg("%s, %s: is %llx, should be %llx", kiln_program_type_name(type),
           where, (unsigned long long)have, (unsigned long long)want);
}

// What is done with a plan of a type.
typedef void (*typed_run_t)(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                            uint32_t type);

// With a plan for each type of floats; for f32 one that does not say it.
static inline void typed_each(dispatch_kit_t* kit, const char* entry,
                              typed_run_t run) {
  static const uint32_t kTypes[] = {
      0, KILN_PROGRAM_TYPE_F16, KILN_PROGRAM_TYPE_BF16, KILN_PROGRAM_TYPE_F64};
  for (uint32_t t = 0; t < 4; t++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.type = kTypes[t];
    kiln_library_plan_t* plan = kit_plan(kit, entry, &options);
    run(kit, plan, t == 0 ? KILN_PROGRAM_TYPE_F32 : kTypes[t]);
    kiln_library_plan_release(plan);
  }
}

#endif  // KILN_TESTS_UNIT_LIBRARY_LIBRARY_TYPED_H_
