// SPDX-License-Identifier: Apache-2.0
//
// compat: versions and specifiers by the examples of their specification.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/compat.h"

static bool admits(const char* spec, const char* version, uint32_t pre) {
  bool out = false;
  kiln_status_t status = kiln_compat_spec_admits(spec, version, pre, &out);
  assert_true(kiln_status_is_ok(status));
  return out;
}

#define YES(spec, version) assert_true(admits(spec, version, KILN_SWITCH_ON))
#define NO(spec, version)  assert_false(admits(spec, version, KILN_SWITCH_ON))

static void expect(kiln_status_t status, kiln_status_code_t code) {
  assert_int_equal(kiln_status_code(status), code);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

// ---- Versions ----

static void normal_forms(void** state) {
  (void)state;
  static const char* const rows[][2] = {
      {"1.1RC1", "1.1rc1"},      {"00", "0"},
      {"09000", "9000"},         {"1.0+foo0100", "1.0+foo0100"},
      {"1.1.a1", "1.1a1"},       {"1.1-a1", "1.1a1"},
      {"1.0a.1", "1.0a1"},       {"1.1alpha1", "1.1a1"},
      {"1.1beta2", "1.1b2"},     {"1.1c3", "1.1rc3"},
      {"1.1pre3", "1.1rc3"},     {"1.1preview3", "1.1rc3"},
      {"1.2a", "1.2a0"},         {"1.2-post2", "1.2.post2"},
      {"1.2post2", "1.2.post2"}, {"1.2.post-2", "1.2.post2"},
      {"1.0-r4", "1.0.post4"},   {"1.0-rev4", "1.0.post4"},
      {"1.2.post", "1.2.post0"}, {"1.0-1", "1.0.post1"},
      {"1.2-dev2", "1.2.dev2"},  {"1.2dev2", "1.2.dev2"},
      {"1.2.dev", "1.2.dev0"},   {"1.0+ubuntu-1", "1.0+ubuntu.1"},
      {"v1.0", "1.0"},           {" 1.0\n", "1.0"},
      {"0!1.0", "1.0"},          {"1!2.0", "1!2.0"},
      {"13.0.3.0", "13.0.3.0"},  {"1.0a1.post2.dev3", "1.0a1.post2.dev3"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char text[64];
    size_t length = 0;
    kiln_status_t status =
        kiln_compat_version_normalize(rows[i][0], sizeof(text), text, &length);
    assert_true(kiln_status_is_ok(status));
    assert_string_equal(text, rows[i][1]);
    assert_int_equal(length, strlen(text));
  }
}

static void normal_form_is_cut_and_counted(void** state) {
  (void)state;
  char text[4] = "xyz";
  size_t length = 0;
  assert_true(kiln_status_is_ok(
      kiln_compat_version_normalize("1.2.3", sizeof(text), text, &length)));
  assert_string_equal(text, "1.2");
  assert_int_equal(length, 5);
  assert_true(kiln_status_is_ok(
      kiln_compat_version_normalize("1.2.3", 0, NULL, &length)));
  assert_int_equal(length, 5);
}

// The specification's lists, each in rising order.
static void order(void** state) {
  (void)state;
  static const char* const rising[] = {"1.dev0",
                                       "1.0.dev456",
                                       "1.0a1",
                                       "1.0a2.dev456",
                                       "1.0a12.dev456",
                                       "1.0a12",
                                       "1.0b1.dev456",
                                       "1.0b2",
                                       "1.0b2.post345.dev456",
                                       "1.0b2.post345",
                                       "1.0rc1.dev456",
                                       "1.0rc1",
                                       "1.0",
                                       "1.0+abc.5",
                                       "1.0+abc.7",
                                       "1.0+5",
                                       "1.0.post456.dev34",
                                       "1.0.post456",
                                       "1.0.15",
                                       "1.1.dev1",
                                       "2012.4",
                                       "2012.7",
                                       "2012.10",
                                       "2013.1",
                                       "1!1.0",
                                       "1!1.1"};
  size_t count = sizeof(rising) / sizeof(rising[0]);
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < count; j++) {
      int32_t out = 7;
      assert_true(kiln_status_is_ok(
          kiln_compat_version_compare(rising[i], rising[j], &out)));
      assert_int_equal(out, (i > j) - (i < j));
    }
  }
}

static void equal_spellings(void** state) {
  (void)state;
  static const char* const rows[][2] = {
      {"13.0.3.0", "13.0.3"},
      {"1.1", "1.1.0"},
      {"1.0a1", "1.0.alpha01"},
      {"v1.0", "1"},
      {"1.0+A.1", "1.0+a-01"},
      {"1.0-1", "1.0.post1"},
      {"100000000000000000000000", "0100000000000000000000000"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    int32_t out = 7;
    assert_true(kiln_status_is_ok(
        kiln_compat_version_compare(rows[i][0], rows[i][1], &out)));
    assert_int_equal(out, 0);
  }
}

static void no_versions(void** state) {
  (void)state;
  static const char* const rows[] = {
      "",    " ",      "abc",   "1..0", "1.",    "1.0+", "1.0+a.",
      "+1",  "1.0a1a", "1!",    "!1",   "1.0.*", "1 .0", "-1",
      "vv1", "1.0ax",  "1.0++", "1.0-", "1_0",   "\xff"};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    expect(kiln_compat_version_check(rows[i]), KILN_STATUS_INVALID_ARGUMENT);
  }
  kiln_status_t status = kiln_compat_version_check("13.0x");
  assert_non_null(strstr(kiln_status_message(status), "byte 4"));
  kiln_status_free(status);
  assert_true(kiln_status_is_ok(kiln_compat_version_check("1.0a-")));
}

static void limits(void** state) {
  (void)state;
  char* text = calloc(1, KILN_COMPAT_MAX_SPEC_BYTES + 2);
  assert_non_null(text);
  memset(text, '1', KILN_COMPAT_MAX_VERSION_BYTES);
  assert_true(kiln_status_is_ok(kiln_compat_version_check(text)));
  text[KILN_COMPAT_MAX_VERSION_BYTES] = '1';
  expect(kiln_compat_version_check(text), KILN_STATUS_LIMIT_EXCEEDED);
  memset(text, ',', KILN_COMPAT_MAX_SPEC_BYTES + 1);
  expect(kiln_compat_spec_check(text), KILN_STATUS_LIMIT_EXCEEDED);
  bool out = true;
  expect(kiln_compat_spec_admits(text, "1", 0, &out),
         KILN_STATUS_LIMIT_EXCEEDED);
  assert_false(out);
  free(text);
}

// ---- Specifiers ----

static void compatible_release(void** state) {
  (void)state;
  YES("~=2.2", "2.2");
  YES("~=2.2", "2.10");
  NO("~=2.2", "3.0");
  NO("~=2.2", "2.1");
  YES("~=1.4.5", "1.4.9");
  NO("~=1.4.5", "1.5");
  YES("~=2.2.post3", "2.2.post3");
  NO("~=2.2.post3", "2.2");
  YES("~=2.2.post3", "2.3");
  YES("~=1.4.5a4", "1.4.5a5");
  NO("~=1.4.5a4", "1.5");
  YES("~=2.2.0", "2.2.9");
  NO("~=2.2.0", "2.3");
  YES("~=1!2.2", "1!2.3");
  NO("~=1!2.2", "2.3");
}

static void matching(void** state) {
  (void)state;
  YES("==1.1", "1.1.0");
  NO("==1.1", "1.1.post1");
  NO("==1.1.post1", "1.1");
  YES("==1.1.post1", "1.1.post1");
  YES("==1.1.*", "1.1.post1");
  NO("==1.1", "1.1a1");
  YES("==1.1a1", "1.1a1");
  YES("==1.1.*", "1.1a1");
  YES("==1.1.*", "1.1.0.3");
  NO("==1.1.*", "1.10");
  YES("==1.1", "1.1+local");
  NO("==1.1+local", "1.1");
  YES("==1.1+local", "1.1.0+LOCAL");
  YES("==1.0.*", "1");
  NO("!=1.1", "1.1.0");
  YES("!=1.1", "1.1.post1");
  NO("!=1.1.*", "1.1.post1");
  YES("!=1.1.*", "1.2");
  YES("== 1!2.*", "1!2.9");
}

static void ordered(void** state) {
  (void)state;
  YES("<=1.7", "1.7+local");
  YES(">=1.7", "1.7");
  YES(">1.7", "1.7.1");
  NO(">1.7", "1.7.0.post1");
  YES(">1.7.post2", "1.7.1");
  NO(">1.7.post2", "1.7.0");
  YES(">1.7.post2", "1.7.0.post3");
  NO(">1.7", "1.7+local");
  NO("<1.7", "1.7rc1");
  YES("<1.7rc2", "1.7rc1");
  YES("<1.7", "1.6.9");
  YES(">=1.2,<2,!=1.5", "1.4");
  NO(">=1.2,<2,!=1.5", "1.5");
  YES("", "1");
  YES(" , >=1 , ", "1");
}

static void arbitrary(void** state) {
  (void)state;
  YES("===1.0", "1.0");
  NO("===1.0", "1.0.0");
  YES("===1.0+DowngrAde", "1.0+downgrade");
  YES("===foobar", "foobar");
  NO("===foobar", "foobaz");
  NO("===foobar,>=1", "foobar");
}

static void prereleases(void** state) {
  (void)state;
  assert_false(admits(">=1.0", "1.1a1", KILN_SWITCH_DEFAULT));
  assert_true(admits(">=1.0", "1.1a1", KILN_SWITCH_ON));
  assert_true(admits(">=1.0a1", "1.1a1", KILN_SWITCH_DEFAULT));
  assert_false(admits(">=1.0a1", "1.1a1", KILN_SWITCH_OFF));
  assert_true(admits("==1.1.dev3", "1.1.dev3", KILN_SWITCH_DEFAULT));
  assert_false(admits("!=1.0a1", "1.1a1", KILN_SWITCH_DEFAULT));
  assert_true(admits(">=1.0", "1.1.post1", KILN_SWITCH_OFF));
}

static void no_specifiers(void** state) {
  (void)state;
  static const char* const rows[] = {
      "",     " , ",     "13.2",   "=13",    "~=12", "> =1",      ">=1.*",
      "<1.*", "~=1.2.*", ">=1+a",  "==",     ">=",   "==1.0a1.*", ">=1,13",
      "=>1",  "==1.*.2", "===a b", "===a;b", "~=1",  "== 1 2"};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    expect(kiln_compat_spec_check(rows[i]), KILN_STATUS_INVALID_ARGUMENT);
  }
  kiln_status_t status = kiln_compat_spec_check(">=1,13");
  assert_non_null(strstr(kiln_status_message(status), "\"13\" in \">=1,13\""));
  kiln_status_free(status);
}

// How users' constraints read: what was found is `major.minor`.
static void constraints_on_lines(void** state) {
  (void)state;
  static const uint32_t lines[] = {12000, 12080, 12090, 13000, 13020};
  static const struct {
    const char* spec;
    const char* admitted;
  } rows[] = {
      {"==12.9", "00100"},   {">=12.9,<13", "00100"}, {"~=12.8", "01100"},
      {"==12.*", "11100"},   {"!=12.8", "10111"},     {"<12.9", "11000"},
      {">12.9", "00011"},    {"==12", "10000"},       {"==12.9.0", "00100"},
      {"==12.9.1", "00000"}, {">12.8.1", "00111"},    {">=12.9rc1", "00111"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    for (size_t j = 0; j < 5; j++) {
      bool out = false;
      assert_true(kiln_status_is_ok(
          kiln_compat_spec_admits_line(rows[i].spec, lines[j], &out)));
      assert_int_equal(out, rows[i].admitted[j] == '1');
    }
  }
}

// ---- Lines ----

static void lines(void** state) {
  (void)state;
  uint32_t line = 7;
  assert_true(kiln_compat_line_parse("13.2.78", &line));
  assert_int_equal(line, 13020);
  assert_true(kiln_compat_line_parse("13", &line));
  assert_int_equal(line, 13000);
  assert_true(kiln_compat_line_parse("12.10", &line));
  assert_int_equal(line, 12100);
  static const char* const bad[] = {"",     "x",     "13.",   ".1",  "13.x",
                                    "1000", "1.100", "13.2 ", "0.0", "-1"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    line = 7;
    assert_false(kiln_compat_line_parse(bad[i], &line));
    assert_int_equal(line, 0);
  }
}

static void encoded_lines(void** state) {
  (void)state;
  uint32_t line = 7;
  assert_true(kiln_compat_line_decode("13020", &line));
  assert_int_equal(line, 13020);
  assert_true(kiln_compat_line_decode("12091", &line));
  assert_int_equal(line, 12090);
  static const char* const bad[] = {"13.2", "-1", "", "13020 ", "9999999"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    assert_false(kiln_compat_line_decode(bad[i], &line));
    assert_int_equal(line, 0);
  }
}

static void ptx_isa(void** state) {
  (void)state;
  assert_int_equal(kiln_compat_line_ptx_isa(12090), 88);
  assert_int_equal(kiln_compat_line_ptx_isa(13000), 90);
  assert_int_equal(kiln_compat_line_ptx_isa(13050), 95);
  assert_int_equal(kiln_compat_line_ptx_isa(12050),
                   kiln_compat_line_ptx_isa(12060));
  assert_int_equal(kiln_compat_line_ptx_isa(99000), 0);
}

static void nvvm_ir(void** state) {
  (void)state;
  assert_int_equal(kiln_compat_line_nvvm_ir(11080), 1009);
  assert_int_equal(kiln_compat_line_nvvm_ir(12000), 2000);
  assert_int_equal(kiln_compat_line_nvvm_ir(13050), 2000);
  assert_int_equal(kiln_compat_line_nvvm_ir(11070), 0);
  assert_int_equal(kiln_compat_line_nvvm_ir(13060), 0);
  assert_int_equal(kiln_compat_line_nvvm_ir(0), 0);
}

static void drivers(void** state) {
  (void)state;
  kiln_compat_driver_t driver;
  assert_true(
      kiln_status_is_ok(kiln_compat_driver_parse("13.0,580.65.06", &driver)));
  assert_int_equal(driver.state, KILN_COMPAT_DRIVER_KNOWN);
  assert_int_equal(driver.line, 13000);
  assert_int_equal(driver.branch, 580);
  assert_string_equal(driver.release, "580.65.06");
  assert_true(kiln_status_is_ok(kiln_compat_driver_parse("none", &driver)));
  assert_int_equal(driver.state, KILN_COMPAT_DRIVER_NONE);
  assert_true(kiln_status_is_ok(kiln_compat_driver_parse("unknown", &driver)));
  assert_int_equal(driver.state, KILN_COMPAT_DRIVER_UNKNOWN);
  static const char* const bad[] = {"",       "13",       "13.0,",
                                    "13.0,x", "x,580",    "13.0,580.1.2.3",
                                    "None",   "13.0,580."};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    expect(kiln_compat_driver_parse(bad[i], &driver),
           KILN_STATUS_INVALID_ARGUMENT);
    assert_int_equal(driver.state, KILN_COMPAT_DRIVER_UNKNOWN);
  }
  assert_int_equal(kiln_compat_driver_branch("535"), 535);
  assert_int_equal(kiln_compat_driver_branch("535.54"), 535);
  assert_int_equal(kiln_compat_driver_branch("535.54.03"), 535);
  assert_int_equal(kiln_compat_driver_branch("535.a"), 0);
  assert_int_equal(kiln_compat_driver_branch(NULL), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(normal_forms),
      cmocka_unit_test(normal_form_is_cut_and_counted),
      cmocka_unit_test(order),
      cmocka_unit_test(equal_spellings),
      cmocka_unit_test(no_versions),
      cmocka_unit_test(limits),
      cmocka_unit_test(compatible_release),
      cmocka_unit_test(matching),
      cmocka_unit_test(ordered),
      cmocka_unit_test(arbitrary),
      cmocka_unit_test(prereleases),
      cmocka_unit_test(no_specifiers),
      cmocka_unit_test(constraints_on_lines),
      cmocka_unit_test(lines),
      cmocka_unit_test(encoded_lines),
      cmocka_unit_test(ptx_isa),
      cmocka_unit_test(nvvm_ir),
      cmocka_unit_test(drivers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
