// SPDX-License-Identifier: Apache-2.0
//
// base: what is said of an argument that violates its contract, for each form
// that a condition has in the tree.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status_make.h"

// A condition of an argument, and what is said of it. thread-safe
typedef struct form_t {
  const char* name;
  const char* condition;
  const char* message;
  const char* fix;
} form_t;

static const form_t kForms[] = {
    {"device", "device != NULL", "`device` is NULL",
     "pass one that is not NULL"},
    {"out_device", "out_device != NULL", "`out_device` is NULL",
     "pass the address to write it to"},
    {"batch.inout_sizes", "given->inout_sizes != NULL",
     "`batch.inout_sizes` is NULL", "pass the address to write it to"},
    {"edges", "edges != NULL || count == 0",
     "`edges` is NULL, and `count` is not 0",
     "pass one that is not NULL, or 0 for `count`"},
    {"facts", "request->fact_count == 0 || request->facts != NULL",
     "`facts` is NULL, and `fact_count` is not 0",
     "pass one that is not NULL, or 0 for `fact_count`"},
    {"bytes", "bytes.data != NULL || bytes.size == 0",
     "`bytes` has a size, and its data is NULL",
     "pass the address of the bytes, or a size of 0"},
    {"data", "data != NULL || bytes == 0",
     "`data` is NULL, and `bytes` is not 0",
     "pass one that is not NULL, or 0 for `bytes`"},
    {"path", "path != NULL && path[0] != 0", "`path` is NULL or empty",
     "pass one of at least one character"},
    {"options.lazy", "given.lazy <= KILN_SWITCH_ON",
     "`options.lazy` is not a switch",
     "set it to KILN_SWITCH_DEFAULT, KILN_SWITCH_OFF or KILN_SWITCH_ON"},
    {"options.kind", "given->kind <= KILN_MEMORY_MANAGED",
     "`options.kind` is not one of its values",
     "set it to one of its values, of which KILN_MEMORY_MANAGED is the last"},
    {"access", "access == KILN_ACCESS_NONE || access == KILN_ACCESS_READ",
     "`access` is not one of its values",
     "set it to KILN_ACCESS_NONE or KILN_ACCESS_READ"},
    {"channels", "*channels == 1 || *channels == 2 || *channels == 4",
     "`channels` is not one of its values", "set it to 1, 2 or 4"},
    {"threads", "threads > 0 && threads <= INT32_MAX",
     "`threads` is out of range", "pass one from 1 to INT32_MAX"},
    {"advice", "advice >= KILN_FIRST && advice <= KILN_LAST",
     "`advice` is out of range", "pass one from KILN_FIRST to KILN_LAST"},
    {"limit", "limit <= INT32_MAX", "`limit` is too large",
     "pass one of at most INT32_MAX"},
    {"index", "index < trace->count", "`index` is too large",
     "pass one less than count"},
    {"width", "given->width > 0", "`width` is 0", "pass one of 1 or more"},
    {"address", "address != 0", "`address` is 0", "pass one of 1 or more"},
    {"fd", "fd >= 0", "`fd` is below 0", "pass one of 0 or more"},
    {"options.kind", "given->kind == 0", "`options.kind` is not 0",
     "leave it 0"},
    // What has none of these forms is said as it stands.
    {"size", "size % 16 == 0", "`size` violates its contract: size % 16 == 0",
     "pass one that satisfies it"},
    {"x", "!x", "`x` violates its contract: !x", "pass one that satisfies it"},
    {"x", "x == 1 || y == 2", "`x` violates its contract: x == 1 || y == 2",
     "pass one that satisfies it"},
    {"x", "x > 0 && y <= 2", "`x` violates its contract: x > 0 && y <= 2",
     "pass one that satisfies it"},
    {"x", "x != NULL && y[0] != 0",
     "`x` violates its contract: x != NULL && y[0] != 0",
     "pass one that satisfies it"},
    {"x", "x == 1 || x == 2 && x == 3",
     "`x` violates its contract: x == 1 || x == 2 && x == 3",
     "pass one that satisfies it"},
    {"x", "x == 1 || x == 2 || x == 3 || x == 4 || x == 5",
     "`x` violates its contract: x == 1 || x == 2 || x == 3 || x == 4 || x == "
     "5",
     "pass one that satisfies it"},
    {"x",
     "x_of_a_name_that_is_so_long_that_no_other_word_is_as_long_as_this > 0",
     "`x` violates its contract: "
     "x_of_a_name_that_is_so_long_that_no_other_word_is_as_long_as_this > 0",
     "pass one that satisfies it"},
    {"x", "x >", "`x` violates its contract: x >",
     "pass one that satisfies it"},
    {"x", "", "`x` violates its contract: ", "pass one that satisfies it"},
};

static void test_every_form(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(kForms) / sizeof(kForms[0]); i++) {
    const form_t* form = &kForms[i];
    kiln_status_t status = kilni_base_status_of_argument(
        "module", "file.c", 7, form->name, form->condition);
    int line = 0;
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
    assert_string_equal(kiln_status_message(status), form->message);
    assert_string_equal(kiln_status_fix(status), form->fix);
    assert_string_equal(kiln_status_origin(status), "module");
    assert_string_equal(kiln_status_source(status, &line), "file.c");
    assert_int_equal(line, 7);
    kiln_status_free(status);
  }
}

static kiln_status_t checked(const void* thing, uint32_t most) {
  KILNI_CHECK_ARGUMENT(thing != NULL, "thing");
  KILNI_CHECK_ARGUMENT_SAYS(most <= 3, "most", "is over 3", "pass 0 to 3");
  return kiln_ok();
}

static void test_the_macros(void** state) {
  (void)state;
  assert_null(checked(state, 3));
  kiln_status_t status = checked(NULL, 3);
  assert_string_equal(kiln_status_message(status), "`thing` is NULL");
  assert_string_equal(kiln_status_origin(status), "test");
  kiln_status_free(status);
  status = checked(state, 4);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_string_equal(kiln_status_message(status), "`most` is over 3");
  assert_string_equal(kiln_status_fix(status), "pass 0 to 3");
  kiln_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_form),
      cmocka_unit_test(test_the_macros),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
