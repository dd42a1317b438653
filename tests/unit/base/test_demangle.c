// SPDX-License-Identifier: Apache-2.0
//
// base: names of C++ functions, beside what c++filt makes of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// After the above, which it needs.
#include <cmocka.h>

#include <string.h>

#include "base/demangle.h"

typedef struct row_t {
  const char* mangled;
  const char* name;  // NULL: no function that is known
} row_t;

static const row_t kRows[] = {
    {"_Z5scalePfi", "scale(float*, int)"},
    {"_Z3fooPKfPfj", "foo(float const*, float*, unsigned int)"},
    {"_ZL4gonev", "gone()"},
    {"_ZN2ns5innerEPd", "ns::inner(double*)"},
    {"_ZN2ns1a1bEmy", "ns::a::b(unsigned long, unsigned long long)"},
    {"_Z2tkIfEvPT_i", "tk<float>(float*, int)"},
    {"_Z2tkIfLi4ELb1EEvPT_S1_", "tk<float, 4, true>(float*, float*)"},
    {"_Z3addIfEvPKT_S2_PS0_i",
     "add<float>(float const*, float const*, float*, int)"},
    {"_Z1gN2ns3vecIfEES1_", "g(ns::vec<float>, ns::vec<float>)"},
    {"_Z1hRKN2ns3vecIfLj3EEEPS1_",
     "h(ns::vec<float, 3u> const&, ns::vec<float, 3u>*)"},
    {"_Z1k6float4S_PS_", "k(float4, float4, float4*)"},
    {"_Z1kP6__halfS0_", "k(__half*, __half*)"},
    {"_ZN46_GLOBAL__N__0c0d_1_x_cu_1ab_12345678_1234567891fEi",
     "(anonymous namespace)::f(int)"},
    {"_ZN12_GLOBAL__N_11fEi", "(anonymous namespace)::f(int)"},
    {"_Z1fPKcz", "f(char const*, ...)"},
    {"_Z1fPVi", "f(int volatile*)"},
    {"_Z1fPKPf", "f(float* const*)"},
    {"_Z1pIJfiEEvDpT_", "p<float, int>(float, int)"},
    {"_Z1eIL2ns5color1EEvv", NULL},
    {"_Z1eILN2ns5colorE2EEvv", "e<(ns::color)2>()"},
    {"_Z1nILin7EEvv", "n<-7>()"},
    {"_ZN5outer5innerIiE4moveEPS1_",
     "outer::inner<int>::move(outer::inner<int>*)"},
    {"_ZNSt6vectorIiE4pushEi", "std::vector<int>::push(int)"},
    {"_Z1sSt4pairIifE", "s(std::pair<int, float>)"},
    {"scale", NULL},
    {"", NULL},
    {"_Z", NULL},
    {"_Z5scal", NULL},
    {"_Z5scale", "scale"},
    {"_Z99999999999999999999x", NULL},
    {"_Z1fS_", NULL},
    {"_Z1fT_", NULL},
    {"_Z1fIiE", "f<int>"},
    {"_Z1fPFviE", NULL},
    {"_ZZ1fvE1gv", NULL},
    {"_ZN1aIiEUlvE_clEv", NULL},
};

static void test_rows(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    char text[256];
    bool known =
        kilni_base_demangle(kRows[i].mangled, true, sizeof(text), text);
    const char* expected = kRows[i].name != NULL ? kRows[i].name : "";
    assert_string_equal(text, expected);
    assert_int_equal(known, kRows[i].name != NULL);
  }
}

// Every prefix, and every byte changed, is a name or none, and no crash.
static void test_damaged(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    char name[128];
    char text[64];
    size_t size = strlen(kRows[i].mangled);
    for (size_t cut = 0; cut <= size; cut++) {
      memcpy(name, kRows[i].mangled, cut);
      name[cut] = 0;
      (void)kilni_base_demangle(name, true, sizeof(text), text);
      assert_true(strlen(text) < sizeof(text));
    }
    for (size_t at = 0; at < size; at++) {
      memcpy(name, kRows[i].mangled, size + 1);
      for (int c = '0'; c <= 'z'; c++) {
        name[at] = (char)c;
        (void)kilni_base_demangle(name, true, sizeof(text), text);
      }
    }
  }
}

static void test_deep(void** state) {
  (void)state;
  char name[600] = "_Z1f";
  char text[64];
  memset(name + 4, 'P', 500);
  memcpy(name + 504, "i", 2);
  assert_false(kilni_base_demangle(name, true, sizeof(text), text));
  assert_false(kilni_base_demangle("_Z1fi", true, 0, text));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),
      cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_deep),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
