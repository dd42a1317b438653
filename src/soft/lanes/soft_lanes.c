// SPDX-License-Identifier: Apache-2.0
//
// soft: which lane set this CPU runs.
#include <string.h>

#include "soft/soft.h"
#include "soft/code/soft_engine.h"

#if defined(__x86_64__)
#include <cpuid.h>

// What the compiler's own check has no name for in every version.
static bool has_f16c_and_lzcnt(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_F16C)) return false;
  return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c & bit_LZCNT);
}

static bool has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt") && has_f16c_and_lzcnt();
}

static bool has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
}
#endif

const kilni_soft_lane_set_t* kilni_soft_lanes_choose(const char* name) {
  bool any = strcmp(name, "auto") == 0;
#if defined(__x86_64__)
  if ((any || strcmp(name, "avx512") == 0) && has_avx512()) {
    return &kilni_soft_lanes_avx512;
  }
  if ((any || strcmp(name, "avx2") == 0) && has_avx2()) {
    return &kilni_soft_lanes_avx2;
  }
#endif
  if (any || strcmp(name, "plain") == 0) return &kilni_soft_lanes_plain;
  return NULL;
}

const char* kilni_soft_lanes_would(const char* lanes) {
  const kilni_soft_lane_set_t* set = kilni_soft_lanes_choose(lanes);
  return set ? set->name : NULL;
}
