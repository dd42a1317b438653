// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of which kernel a name means.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/run_entry.h"

static const char WHERE[] = "--entry NAME";
enum { NONE = 99 };

static void entries_are_found(void** state) {
  (void)state;
  static const char* const NAMES[] = {"_Z5scalePfi", "_ZN2ns4addXEPf",
                                      "add",         "_Z3addPf",
                                      "_Z3mulPf",    "_Z3mulPd"};
  uint32_t at;
  kilni_cli_error_t error;
  assert_true(kilni_cli_entry_find(NAMES, 6, "scale", "f", WHERE, &at, &error));
  assert_int_equal(at, 0);
  assert_true(kilni_cli_entry_find(NAMES, 6, "addX", "f", WHERE, &at, &error));
  assert_int_equal(at, 1);
  assert_true(kilni_cli_entry_find(NAMES, 6, "add", "f", WHERE, &at, &error));
  assert_int_equal(at, 2);
  assert_true(
      kilni_cli_entry_find(NAMES, 6, "_Z3mulPd", "f", WHERE, &at, &error));
  assert_int_equal(at, 5);
  assert_false(kilni_cli_entry_find(NAMES, 6, "mul", "f", WHERE, &at, &error));
  assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
  assert_string_equal(error.fix,
                      "write --entry NAME with one of: 'mul(float*)', "
                      "'mul(double*)'");
  assert_false(kilni_cli_entry_find(NAMES, 6, "cale", "f", WHERE, &at, &error));
  assert_int_equal(error.code, KILN_STATUS_NOT_FOUND);
  assert_string_equal(error.fix,
                      "write --entry NAME with one of: scale, 'ns::addX', add, "
                      "'add(float*)', 'mul(float*)', 'mul(double*)'");
  assert_false(kilni_cli_entry_find(NAMES, 6, NULL, "f", WHERE, &at, &error));
  assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
  assert_true(kilni_cli_entry_find(NAMES, 1, NULL, "f", WHERE, &at, &error));
  assert_false(kilni_cli_entry_find(NAMES, 0, NULL, "f", WHERE, &at, &error));
  assert_int_equal(error.code, KILN_STATUS_NOT_FOUND);
}

// What is written as C++ has it, in whole or in part.
static void entries_are_found_by_their_names_in_cpp(void** state) {
  (void)state;
  static const char* const NAMES[] = {
      "_Z2tkIfEvPT_",  // tk<float>(float*)
      "_Z2tkIjEvPT_",  // tk<unsigned int>(unsigned int*)
      "_ZN2ns2tkIfEEvPT_",    "_ZN2ns5innerEPf", "_Z5innerPf",
      "_Z5innerPd",           "_Z3numILj4EEvPf", "_Z3numILj8EEvPf",
      "_ZN1a1b4onlyEPf",
      "_ZN2nsplERKNS_1VES2_",  // an operator, which is not read
  };
  static const struct {
    const char* entry;
    uint32_t index;
  } CASES[] = {
      {"tk<float>", 0},
      {"tk< float >", 0},
      {"tk<float>(float*)", 0},
      {"tk<unsigned>", 1},
      {"tk<unsigned int>", 1},
      {"ns::tk<float>", 2},
      {"ns::tk", 2},
      {"tk", NONE},
      {"ns::inner", 3},
      {"inner", NONE},
      {"inner(double*)", 5},
      {"inner (float *)", 4},
      {"num<4>", 6},
      {"num<8u>", 7},
      {"num", NONE},
      {"only", 8},
      {"b::only", 8},
      {"a::b::only", 8},
      {"::only", NONE},
      {"only(float*)", 8},
      {"only(int*)", NONE},
      {"nly", NONE},
      {"", NONE},
      {"_Z3numILj8EEvPf", 7},
  };
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
    uint32_t at = 0;
    kilni_cli_error_t error;
    bool ok = kilni_cli_entry_find(NAMES, 10, CASES[i].entry, "f", WHERE, &at,
                                   &error);
    if (ok != (CASES[i].index != NONE) || (ok && at != CASES[i].index)) {
      fail_msg("%s: %d, %u", CASES[i].entry, ok, at);
    }
  }
}

// Each name of a list means the kernel that it stands for.
static void what_is_listed_can_be_written(void** state) {
  (void)state;
  static const char* const NAMES[] = {
      "_Z2tkIfEvPT_",   "_ZN2ns2tkIfEEvPT_", "_Z5innerPf",
      "_Z5innerPd",     "_ZN2ns5innerEPf",   "_ZN12_GLOBAL__N_13hidEPKf",
      "_Z3lenILl4EEvPf"};
  kilni_cli_error_t error;
  uint32_t at, next = 0;
  assert_false(kilni_cli_entry_find(NAMES, 7, NULL, "f", WHERE, &at, &error));
  for (char* name = strchr(error.fix, '\''); name != NULL;
       name = strchr(name, '\'')) {
    char* end = strchr(++name, '\'');
    assert_non_null(end);
    *end = 0;
    assert_true(kilni_cli_entry_find(NAMES, 7, name, "f", WHERE, &at, &error) &&
                at == next);
    next++;
    name = end + 1;
  }
  assert_int_equal(next, 7);
}

// Where a file takes identifiers only.
static void a_graph_lists_what_it_can_read(void** state) {
  (void)state;
  static const char* const NAMES[] = {"_Z2tkIfEvPT_", "_Z5innerPf"};
  kilni_cli_error_t error;
  uint32_t at;
  assert_false(kilni_cli_entry_find(NAMES, 2, NULL, "f", "CODE.KERNEL(...)",
                                    &at, &error));
  assert_string_equal(
      error.fix, "write CODE.KERNEL(...) with one of: _Z2tkIfEvPT_, inner");
}

static void a_long_list_is_cut(void** state) {
  (void)state;
  const char* names[100];
  kilni_cli_error_t error;
  uint32_t at;
  for (int i = 0; i < 100; i++) names[i] = "_ZN9namespace9the_nameEPf";
  assert_false(kilni_cli_entry_find(names, 100, NULL, "f", WHERE, &at, &error));
  size_t size = strlen(error.fix);
  assert_true(size < sizeof(error.fix));
  assert_string_equal(error.fix + size - 5, ", ...");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entries_are_found),
      cmocka_unit_test(entries_are_found_by_their_names_in_cpp),
      cmocka_unit_test(what_is_listed_can_be_written),
      cmocka_unit_test(a_graph_lists_what_it_can_read),
      cmocka_unit_test(a_long_list_is_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
