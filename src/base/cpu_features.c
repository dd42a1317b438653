// SPDX-License-Identifier: Apache-2.0
//
// base: which instructions this machine's CPU has.
#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>

enum {
  XCR0_AVX = 0x06,     // SSE and AVX registers are saved
  XCR0_AVX512 = 0xe6,  // and those of AVX-512
  LEAF_EXTENDED = 7,
};

static const unsigned kLeafAmd = 0x80000001u;
enum {
  INTEL = 0x756e6547,  // "Genu"
  AMD = 0x68747541,    // "Auth"
  HYGON = 0x6f677948,  // "Hygo", AMD's cores
  AVX512ER = 1 << 27,
};

// What the system saves of the registers; needs OSXSAVE.
__attribute__((target("xsave"))) static uint64_t saved_registers(void) {
  return __builtin_ia32_xgetbv(0);
}

static bool cpu_features_has_all(unsigned bits, unsigned wanted) {
  return (bits & wanted) == wanted;
}

uint32_t kilni_base_cpu_features(void) {
  unsigned a = 0, b = 0, c1 = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c1, &d)) return 0;
  unsigned ca = 0;
  if (!__get_cpuid(kLeafAmd, &a, &b, &ca, &d)) return 0;
  if (!cpu_features_has_all(c1, bit_CMPXCHG16B | bit_POPCNT | bit_SSE3 |
                                    bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2) ||
      !cpu_features_has_all(ca, bit_LAHF_LM)) {
    return 0;
  }
  uint32_t features = KILNI_CPU_V2;
  unsigned vendor = 0, unused = 0;
  if (__get_cpuid(0, &a, &vendor, &unused, &d) && vendor == INTEL) {
    features |= KILNI_CPU_INTEL;
  }
  bool says_whole = vendor == INTEL || vendor == AMD || vendor == HYGON;
  if (says_whole && cpu_features_has_all(c1, bit_AVX)) {
    features |= KILNI_CPU_WHOLE16;
  }
  unsigned b7 = 0, c7 = 0;
  if (!cpu_features_has_all(
          c1, bit_OSXSAVE | bit_AVX | bit_F16C | bit_FMA | bit_MOVBE) ||
      !cpu_features_has_all(ca, bit_LZCNT) ||
      !__get_cpuid_count(LEAF_EXTENDED, 0, &a, &b7, &c7, &d) ||
      !cpu_features_has_all(b7, bit_AVX2 | bit_BMI | bit_BMI2)) {
    return features;
  }
  uint64_t saved = saved_registers();
  if ((saved & XCR0_AVX) != XCR0_AVX) return features;
  features |= KILNI_CPU_V3;
  if ((saved & XCR0_AVX512) == XCR0_AVX512 &&
      cpu_features_has_all(b7, AVX512ER)) {
    features |= KILNI_CPU_AVX512ER;
  }
  if ((saved & XCR0_AVX512) == XCR0_AVX512 &&
      cpu_features_has_all(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512CD |
                                   bit_AVX512DQ | bit_AVX512VL)) {
    features |= KILNI_CPU_V4;
  }
  return features;
}

#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

static const unsigned long kHwcapUscat = 1ul << 25;

uint32_t kilni_base_cpu_features(void) {
  return getauxval(AT_HWCAP) & kHwcapUscat ? KILNI_CPU_WHOLE16 : 0;
}

#else

uint32_t kilni_base_cpu_features(void) {
  return 0;
}

#endif
