// SPDX-License-Identifier: Apache-2.0
//
// image: names of kernels as C++ writes them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/code.h"

// The words are those of c++filt, without the return type, and with the
// brackets of C++11 ("V<int>>").
static const struct {
  const char* mangled;
  const char* name;
  const char* parameters;
} NAMES[] = {
    {"_Z2gov", "go", "()"},
    {"_ZL4stati", "stat", "(int)"},
    {"_ZN2ns5innerEPfi", "ns::inner", "(float*, int)"},
    {"_ZN12_GLOBAL__N_13hidEPNS_1HEPVKi", "(anonymous namespace)::hid",
     "((anonymous namespace)::H*, int const volatile*)"},
    {"_Z5plainPKfRfyRKN2ns1PEPS3_", "plain",
     "(float const*, float&, unsigned long long, ns::P const&, ns::P*)"},
    {"_ZN2ns2tkIfEEvPT_PKS1_i", "ns::tk<float>", "(float*, float const*, int)"},
    {"_ZN2ns2tkINS_1PEEEvPT_PKS2_i", "ns::tk<ns::P>",
     "(ns::P*, ns::P const*, int)"},
    {"_ZN2ns2nnILj4ELb1EEEvNS_1PE", "ns::nn<4u, true>", "(ns::P)"},
    {"_ZN2ns2emILNS_1ME1EEEvNS_1VIfLi3EEEPNS2_INS_1PELin4EEE",
     "ns::em<(ns::M)1>", "(ns::V<float, 3>, ns::V<ns::P, -4>*)"},
    {"_Z3litILc65ELln3ELm7EEvv", "lit<(char)65, -3l, 7ul>", "()"},
    {"_Z4packIJEEvDpT_", "pack<>", "()"},
    {"_Z4packIJifEEvDpT_", "pack<int, float>", "(int, float)"},
    {"_ZN2ns1CIiE2stEPiS1_", "ns::C<int>::st", "(int*, ns::C<int>)"},
    {"_Z3depI2HTENT_4typeES2_", "dep<HT>", "(HT::type)"},
    {"_Z4selfIfEvT_N2ns1VIS0_Li2EEEPS3_PS0_", "self<float>",
     "(float, ns::V<float, 2>, ns::V<float, 2>*, float*)"},
    {"_Z4selfIN2ns1VIiLi1EEEEvT_NS1_IS3_Li2EEEPS4_PS3_", "self<ns::V<int, 1>>",
     "(ns::V<int, 1>, ns::V<ns::V<int, 1>, 2>, ns::V<ns::V<int, 1>, 2>*, "
     "ns::V<int, 1>*)"},
    {"_Z3addP6__halfPK13__nv_bfloat16", "add",
     "(__half*, __nv_bfloat16 const*)"},
    {"_Z1fSt4pairIifE", "f", "(std::pair<int, float>)"},
    {"_ZN2ns5valueE", "ns::value", ""},
};

static void names_are_as_cpp_writes_them(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
    char got[2048], all[2048];
    (void)snprintf(all, sizeof(all), "%s%s", NAMES[i].name,
                   NAMES[i].parameters);
    assert_true(kiln_code_demangle(NAMES[i].mangled, KILN_SWITCH_DEFAULT,
                                   sizeof(got), got));
    assert_string_equal(got, all);
    assert_true(kiln_code_demangle(NAMES[i].mangled, KILN_SWITCH_OFF,
                                   sizeof(got), got));
    assert_string_equal(got, NAMES[i].name);
  }
}

static void what_is_not_read_is_refused(void** state) {
  (void)state;
  static const char* const BAD[] = {
      "",
      "scale",
      "_Z",
      "_Z3ad",
      "_Z3addQ",
      "_Z0add",
      "_Z99999999999999999999add",
      "_Z2fpIXadL_Z2ffiEEEvv",    // an expression
      "_Z3fnpPFviERA4_i",         // a type of functions
      "_Z5pack2IiJfEEvT_DpPT0_",  // a pattern of a pack
      "_ZZ4mainvENKUlvE_clEv",    // a local name
      "_ZN2nspl1EE",              // an operator
      "_ZN3fooC1Ei",              // a constructor
      "_ZN2ns2tkIfEEvPT_PKS1_i.cold",
      "_Z1fT_",       // no template
      "_Z1fIiEvT0_",  // has no second argument
      "_Z1fS_",       // nothing to refer to
      "_Z1fS9999999999_",
      "_ZN2ns5inner",
      "_Z3a-bv",
      "_Z1fILi3Evv",
  };
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    char got[64] = "before";
    if (kiln_code_demangle(BAD[i], 0, sizeof(got), got)) {
      fail_msg("\"%s\" was read as \"%s\"", BAD[i], got);
    }
    assert_string_equal(got, "");
  }
  char got[8];
  assert_false(kiln_code_demangle(NULL, 0, sizeof(got), got));
}

static void a_result_fits_or_is_none(void** state) {
  (void)state;
  char got[12];
  memset(got, 'x', sizeof(got));
  assert_true(kiln_code_demangle("_Z3addPi", 0, 10, got));
  assert_string_equal(got, "add(int*)");
  assert_false(kiln_code_demangle("_Z3addPi", 0, 9, got));
  assert_string_equal(got, "");
  assert_false(kiln_code_demangle("_Z3addPi", 0, 0, got));
}

// A name that refers to itself again and again would grow without end.
static void what_grows_is_refused(void** state) {
  (void)state;
  char name[256] = "_Z1f1VIiiE", got[4096];
  size_t used = strlen(name);
  for (int i = 0; i < 20; i++) {
    char part[16];
    (void)snprintf(part, sizeof(part), "S_IS%c_S%c_E", (char)('0' + i % 10),
                   (char)('0' + i % 10));
    memcpy(name + used, part, strlen(part) + 1);
    used += strlen(part);
  }
  assert_false(kiln_code_demangle(name, 0, sizeof(got), got));
  // 2048 bytes are enough for all that is read.
  char wide[8192] = "_Z1f", all[8192];
  for (size_t i = 0; i < 2000; i++) {
    wide[4 + i] = 'f';
    wide[5 + i] = 0;
    if (!kiln_code_demangle(wide, KILN_SWITCH_OFF, sizeof(got), got)) {
      assert_false(kiln_code_demangle(wide, 0, sizeof(all), all));
      break;
    }
    assert_true(kiln_code_demangle(wide, 0, 2048, all));
    assert_true(i < 1000);
  }
  char deep[512] = "_Z1f";
  memset(deep + 4, 'P', 400);
  deep[404] = 'i';
  deep[405] = 0;
  assert_false(kiln_code_demangle(deep, 0, sizeof(got), got));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_as_cpp_writes_them),
      cmocka_unit_test(what_is_not_read_is_refused),
      cmocka_unit_test(a_result_fits_or_is_none),
      cmocka_unit_test(what_grows_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
