// SPDX-License-Identifier: Apache-2.0
//
// base: which instructions this machine's CPU has.
//
// Queried only on demand. The compiler's own check is not a substitute: it runs
// in a constructor, before main and in every process, and where the CPU is a
// virtual one each of its queries costs microseconds.
#ifndef KILN_SRC_BASE_CPU_FEATURES_H_
#define KILN_SRC_BASE_CPU_FEATURES_H_

#include "kiln/api.h"

// Sets of instructions that the CPU has and the system saves the registers of.
enum {
  KILNI_CPU_V2 = 1,         // x86-64-v2
  KILNI_CPU_V3 = 2,         // x86-64-v3: AVX2, FMA, BMI, F16C, LZCNT
  KILNI_CPU_V4 = 4,         // x86-64-v4: AVX-512 F, BW, CD, DQ, VL
  KILNI_CPU_INTEL = 8,      // made by Intel
  KILNI_CPU_AVX512ER = 16,  // of the Xeon Phi
  // An aligned move of 16 bytes is atomic, as its manufacturer guarantees:
  // x86-64 with AVX by Intel and AMD, aarch64 with LSE2.
  KILNI_CPU_WHOLE16 = 32,
};

// Bits KILNI_CPU_*; 0 on other machines than x86-64 and aarch64.
uint32_t kilni_base_cpu_features(void);

#endif  // KILN_SRC_BASE_CPU_FEATURES_H_
