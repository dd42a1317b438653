// SPDX-License-Identifier: Apache-2.0
//
// locate: the readers of versions, headers, RECORD, METADATA and JSON.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "locate/locate_facts_parse.h"

// ---- Versions ----

static void test_lines_of_numbers(void** state) {
  (void)state;
  assert_int_equal(kilni_locate_line_of_number(13020), 13020);
  assert_int_equal(kilni_locate_line_of_number(12090), 12090);
  assert_int_equal(kilni_locate_line_of_number(13025), 13020);  // not a patch
  assert_int_equal(kilni_locate_line_of_number(0), 0);
  assert_int_equal(kilni_locate_line_of_number(999), 0);
  assert_int_equal(kilni_locate_line_of_number(UINT64_MAX), 0);
  assert_int_equal(kilni_locate_line_of_digits(kilni_base_sv("13020")), 13020);
  static const char* const none[] = {
      "", "13.2", "-1", "-13020", "13020 ", " 13020", "13020u", "4294967296"};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
    assert_int_equal(kilni_locate_line_of_digits(kilni_base_sv(none[i])), 0);
  }
}

static void test_lines_of_texts(void** state) {
  (void)state;
  assert_int_equal(
      kilni_locate_line_of_version(kilni_base_sv("13.5, V13.5.37")), 13050);
  assert_int_equal(kilni_locate_line_of_version(kilni_base_sv("13.0.1")),
                   13000);
  assert_int_equal(kilni_locate_line_of_version(kilni_base_sv("9.2")), 9020);
  assert_int_equal(kilni_locate_line_of_version(kilni_base_sv("13")), 0);
  assert_int_equal(kilni_locate_line_of_version(kilni_base_sv("13.")), 0);
  assert_int_equal(kilni_locate_line_of_version(kilni_base_sv(".5")), 0);
  assert_int_equal(kilni_locate_line_of_version(kilni_base_sv("13.100")), 0);
  assert_int_equal(kilni_locate_line_of_version(kilni_base_sv("99999999999.1")),
                   0);
  static const struct {
    const char* name;
    uint32_t line;
  } symbols[] = {{"__nvJitLinkCreate_13_5", 13050},
                 {"__nvJitLinkCreate_12_0", 12000},
                 {"__nvJitLinkAPI", 0},
                 {"__nvJitLinkCreate_13", 0},
                 {"_13_5", 13050},
                 {"13_5", 0},
                 {"x__5", 0},
                 {"x_13_", 0},
                 {"", 0},
                 {"x_99999999999999999999_1", 0}};
  for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
    assert_int_equal(
        kilni_locate_line_of_symbol(kilni_base_sv(symbols[i].name)),
        symbols[i].line);
  }
  assert_true(kilni_base_sv_equal_cstr(
      kilni_locate_version_at(kilni_base_sv("580.159.04  Wed")), "580.159.04"));
  assert_true(kilni_base_sv_equal_cstr(
      kilni_locate_version_at(kilni_base_sv("13.")), "13"));
  assert_true(kilni_base_sv_equal_cstr(
      kilni_locate_version_at(kilni_base_sv("x")), ""));
}

// ---- Headers ----

static uint64_t define(const char* text) {
  uint64_t value = 77;
  bool found =
      kilni_locate_define_find(kilni_base_sv(text), "CUDA_VERSION", &value);
  assert_true(found || value == 0);
  return value;
}

static void test_defines(void** state) {
  (void)state;
  assert_int_equal(define("#define CUDA_VERSION 13020"), 13020);
  assert_int_equal(define("x\n #\t define \tCUDA_VERSION\t12090 /* c */\n"),
                   12090);
  assert_int_equal(define("#define CUDA_VERSION 12090// c\r\n"), 12090);
  assert_int_equal(define("\xff\xfe\n#define CUDA_VERSION 12090\n\xff"), 12090);
  // The first that is one.
  assert_int_equal(define("#define CUDA_VERSION x\n#define CUDA_VERSION 11\n"
                          "#define CUDA_VERSION 12\n"),
                   11);
  static const char* const none[] = {"",
                                     "#define CUDA_VERSION",
                                     "#define CUDA_VERSION ",
                                     "#define CUDA_VERSION 12090u",
                                     "#define CUDA_VERSION_2 12090",
                                     "#define CUDA_VERSION(x) 1",
                                     "#defineCUDA_VERSION 1",
                                     "# undef CUDA_VERSION 1",
                                     "//#define CUDA_VERSION 1",
                                     "#define CUDA_VERSION -1",
                                     "#define CUDA_VERSION 99999999999",
                                     "#define XCUDA_VERSION 12090"};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
    assert_int_equal(define(none[i]), 0);
  }
}

// ---- RECORD ----

static void test_records(void** state) {
  (void)state;
  // What pip writes: CR LF, rows without a hash, scripts outside; and quotes.
  kiln_string_view_t text = kilni_base_sv(
      "nvidia/cu13/lib/libx.so.13,sha256=ab-_c,123\r\n"
      "x.dist-info/RECORD,,\r\n"
      "\n"
      "../../../bin/x,sha256=q,5\n"
      "\"a,b\nc.h\",sha256=z,1\n"
      "\"say \"\"hi\"\"\",,\n"
      "last,,9");
  static const char* const expected[][3] = {
      {"nvidia/cu13/lib/libx.so.13", "sha256=ab-_c", "123"},
      {"x.dist-info/RECORD", "", ""},
      {"../../../bin/x", "sha256=q", "5"},
      {"a,b\nc.h", "sha256=z", "1"},
      {"say \"hi\"", "", ""},
      {"last", "", "9"}};
  kilni_locate_record_row_t row;
  for (size_t i = 0; i < 6; i++) {
    assert_true(kilni_locate_record_next(&text, &row));
    assert_false(row.is_broken);
    char path[64];
    size_t size = kilni_locate_record_path(&row, sizeof(path), path);
    assert_int_equal(size, strlen(expected[i][0]));
    assert_memory_equal(path, expected[i][0], size);
    assert_true(kilni_base_sv_equal_cstr(row.hash, expected[i][1]));
    assert_true(kilni_base_sv_equal_cstr(row.size, expected[i][2]));
  }
  assert_false(kilni_locate_record_next(&text, &row));
}

// A broken row costs that row, and the next is read.
static void test_broken_records(void** state) {
  (void)state;
  static const char* const broken[] = {
      "alone",        "one,comma",    "a,b,c,d", ",sha256=x,1",
      "\"no end,x,1", "\"end\"x,y,1", "\"\"",    "\"a\",1"};
  for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
    char all[64];
    size_t size = strlen(broken[i]);
    memcpy(all, broken[i], size);
    memcpy(all + size, "\ngood,,1\n", 10);
    kiln_string_view_t text = kilni_base_sv(all);
    kilni_locate_record_row_t row;
    assert_true(kilni_locate_record_next(&text, &row));
    assert_true(row.is_broken);
    assert_true(kilni_locate_record_next(&text, &row));
    assert_false(row.is_broken);
    assert_true(kilni_base_sv_equal_cstr(row.path, "good"));
    assert_false(kilni_locate_record_next(&text, &row));
  }
  kilni_locate_record_row_t row;
  kiln_string_view_t text = kilni_base_sv("\"a\"\"b\",,\n");
  assert_true(kilni_locate_record_next(&text, &row));
  char small[2];
  assert_true(kilni_locate_record_path(&row, sizeof(small), small) == SIZE_MAX);
  text = kilni_base_sv(NULL);
  assert_false(kilni_locate_record_next(&text, &row));
}

// ---- METADATA ----

static void test_metadata(void** state) {
  (void)state;
  kiln_string_view_t text = kilni_base_sv(
      "Metadata-Version: 2.4\r\n"
      "no field here\n"
      "VERSION:13.0.3.0\n"
      "License: one\n two\n\tthree\n"
      "\n"
      "Version: of the description\n");
  kilni_locate_metadata_field_t field;
  size_t broken = 0;
  assert_true(kilni_locate_metadata_next(&text, &field, &broken));
  assert_true(kilni_locate_metadata_is(&field, "metadata-version"));
  assert_true(kilni_base_sv_equal_cstr(field.value, "2.4"));
  assert_true(kilni_locate_metadata_next(&text, &field, &broken));
  assert_true(kilni_locate_metadata_is(&field, "Version"));
  assert_false(kilni_locate_metadata_is(&field, "Versio"));
  assert_true(kilni_base_sv_equal_cstr(field.value, "13.0.3.0"));
  assert_true(kilni_locate_metadata_next(&text, &field, &broken));
  assert_true(kilni_base_sv_equal_cstr(field.value, "one\n two\n\tthree"));
  assert_false(kilni_locate_metadata_next(&text, &field, &broken));
  assert_int_equal(broken, 1);
  assert_false(kilni_locate_metadata_next(&text, &field, NULL));
}

static void test_requirements(void** state) {
  (void)state;
  static const char* const cases[][4] = {
      {"nvidia-nvjitlink<14,>=13.0.88; extra == 'all'", "nvidia-nvjitlink",
       "<14,>=13.0.88", "extra == 'all'"},
      {"nvidia-nvjitlink == 13.2.78.*; extra == 'nvjitlink'",
       "nvidia-nvjitlink", "== 13.2.78.*", "extra == 'nvjitlink'"},
      {"nvidia-cublas==13.1.0.3.*; (platform_machine == 'x86_64') and "
       "extra == 'x'",
       "nvidia-cublas", "==13.1.0.3.*",
       "(platform_machine == 'x86_64') and extra == 'x'"},
      {"old (>=1,<2)", "old", ">=1,<2", ""},
      {"with[extra,more]>=1", "with", ">=1", ""},
      {"bare", "bare", "", ""},
      {"at @ https://x.invalid/a;b ; extra == 'y'", "at", "",
       "b ; extra == 'y'"},
      {" blank ~= 1.0 ", "blank", "~= 1.0", ""}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    kilni_locate_requirement_t requirement;
    assert_true(kilni_locate_requirement_read(kilni_base_sv(cases[i][0]),
                                              &requirement));
    assert_true(kilni_base_sv_equal_cstr(requirement.name, cases[i][1]));
    assert_true(kilni_base_sv_equal_cstr(requirement.specifier, cases[i][2]));
    assert_true(kilni_base_sv_equal_cstr(requirement.marker, cases[i][3]));
  }
  static const char* const none[] = {"",       "==1", "-x==1", "x- ==1",
                                     "x[y==1", "x y", "x 1.0", "x,y"};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
    kilni_locate_requirement_t requirement;
    assert_false(
        kilni_locate_requirement_read(kilni_base_sv(none[i]), &requirement));
  }
  char name[8];
  assert_int_equal(
      kilni_locate_name_normalise(kilni_base_sv("A._-b"), sizeof(name), name),
      3);
  assert_string_equal(name, "a-b");
  assert_int_equal(kilni_locate_name_normalise(kilni_base_sv("abcdefghij"),
                                               sizeof(name), name),
                   7);
  assert_string_equal(name, "abcdefg");
}

// ---- JSON ----

static void test_json(void** state) {
  (void)state;
  static const char* const good[] = {
      "{\"cuda\":{\"name\":\"CUDA SDK\",\"version\":\"13.0.1\"}}",
      (" {\n \"a\" : [1, {\"b\":\"}\"}, null], \"n\":-1.5e3,\"t\":true,\n"
       "\"cuda\" : { \"x\":{}, \"version\" : \"13.0.1\" } , \"z\":0}"),
      "{\"q\\\"\":\"\\\\\",\"cuda\":{\"version\":\"13.0.1\"",
  };
  kiln_string_view_t text;
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    assert_true(kilni_locate_json_find(kilni_base_sv(good[i]), "cuda",
                                       "version", &text));
    assert_true(kilni_base_sv_equal_cstr(text, "13.0.1"));
  }
  static const char* const none[] = {"",
                                     "[]",
                                     "{}",
                                     "{\"cuda\"}",
                                     "{\"cuda\":\"13.0\"}",
                                     "{\"cuda\":{\"version\":13}}",
                                     "{\"cuda\":{\"versio\":\"1\"}}",
                                     "{\"x\":{\"cuda\":{\"version\":\"1\"}}}",
                                     "{\"x\":,\"cuda\":{\"version\":\"1\"}}",
                                     "{\"x\":]],\"cuda\":{\"version\":\"1\"}}",
                                     "{\"cuda\":{\"version\":\"1",
                                     "{\"cuda\":{\"version\":\"1\n\"}}"};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
    assert_false(kilni_locate_json_find(kilni_base_sv(none[i]), "cuda",
                                        "version", &text));
  }
  // Deeper than any version file.
  char deep[1024];
  memcpy(deep, "{\"x\":", 5);
  memset(deep + 5, '[', 200);
  memset(deep + 205, ']', 200);
  strcpy(deep + 405, ",\"cuda\":{\"version\":\"1\"}}");
  assert_false(
      kilni_locate_json_find(kilni_base_sv(deep), "cuda", "version", &text));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lines_of_numbers),
      cmocka_unit_test(test_lines_of_texts),
      cmocka_unit_test(test_defines),
      cmocka_unit_test(test_records),
      cmocka_unit_test(test_broken_records),
      cmocka_unit_test(test_metadata),
      cmocka_unit_test(test_requirements),
      cmocka_unit_test(test_json),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
