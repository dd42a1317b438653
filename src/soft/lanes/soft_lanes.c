// SPDX-License-Identifier: Apache-2.0
//
// soft: which lane set this CPU runs.
#include <string.h>

#include "base/cpu_features.h"
#include "soft/soft.h"
#include "soft/code/soft_engine.h"

const kilni_soft_lane_set_t* kilni_soft_lanes_choose(const char* name) {
  bool any = strcmp(name, "auto") == 0;
#if defined(__x86_64__)
  uint32_t features = kilni_base_cpu_features();
#if !defined(KILNI_SOFT_WITHOUT_AVX512)
  if ((any || strcmp(name, "avx512") == 0) && (features & KILNI_CPU_V4)) {
    return &kilni_soft_lanes_avx512;
  }
#endif
  if ((any || strcmp(name, "avx2") == 0) && (features & KILNI_CPU_V3)) {
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
