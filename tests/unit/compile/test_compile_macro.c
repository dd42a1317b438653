// SPDX-License-Identifier: Apache-2.0
//
// compile: what an #include of a macro may mean.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/status_make.h"
#include "compile/compile_macro.h"
#include "fault_alloc.h"

// What was expanded: "<a.h> "b.h"". one-thread
typedef struct list_t {
  char text[2048];
  uint32_t count;
} list_t;

static kiln_status_t note(void* user, const kilni_compile_scan_found_t* found) {
  list_t* list = user;
  bool quote = found->kind == KILNI_SCAN_QUOTE;
  size_t used = strlen(list->text);
  snprintf(list->text + used, sizeof(list->text) - used, "%s%s%.*s%s",
           used ? " " : "", quote ? "\"" : "<", (int)found->name.size,
           found->name.data, quote ? "\"" : ">");
  list->count++;
  return kiln_ok();
}

// Defines lines of "NAME value", and gives back whether all is known.
static bool expand(const char* defines, const char* text, list_t* list) {
  kilni_compile_macros_t macros;
  bool all = false;
  memset(list, 0, sizeof(*list));
  kilni_compile_macros_init(&macros, kiln_allocator_libc());
  kiln_string_view_t rest = kilni_base_sv(defines);
  kiln_string_view_t line;
  while (kilni_base_sv_split(&rest, '\n', &line)) {
    const char* blank = memchr(line.data, ' ', line.size);
    if (blank == NULL) continue;
    kiln_string_view_t name = {line.data, (size_t)(blank - line.data)};
    kiln_string_view_t value = {blank + 1, line.size - name.size - 1};
    if (!kilni_compile_scan_is_plain(value)) value.data = NULL;
    assert_null(kilni_compile_macros_add(&macros, name, value));
  }
  assert_null(kilni_compile_macros_expand(&macros, kilni_base_sv(text), note,
                                          list, &all));
  kilni_compile_macros_deinit(&macros);
  return all;
}

static void every_value_counts(void** state) {
  (void)state;
  static const struct {
    const char* defines;
    const char* text;
    const char* found;
  } rows[] = {
      {"A <a.h>", "A", "<a.h>"},
      {"A \"a b.h\"", "A", "\"a b.h\""},
      {"A <a.h>\nA \"b.h\"\nA <a.h>", "A", "\"b.h\" <a.h>"},
      {"A B\nB C\nC <c.h>", "A", "<c.h>"},
      // As CUB does it: a name inside of a header's name.
      {"H <R/d/copy.h>\nR t/s/N\nN cpp\nN omp", "H",
       "<R/d/copy.h> <t/s/N/d/copy.h> <t/s/omp/d/copy.h> <t/s/cpp/d/copy.h>"},
      // Inside quotes nothing is a name.
      {"A \"B.h\"\nB x", "A", "\"B.h\""},
      // A name stands for itself inside of its own value.
      {"a <a.h>", "a", "<a.h>"},
      {"A <B>\nB A/B", "A", "<B> <A/B>"},
      // Digits in front are no name.
      {"A <64x/1x.h>\nx y", "A", "<64x/1x.h>"},
      // What is no header's name is a mistake that the compiler finds.
      {"A a.h\nB <a", "A", ""},
      {"A ", "A", ""},
      {"", "none", ""},
      {"", "<a.h>", "<a.h>"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    list_t list;
    if (!expand(rows[i].defines, rows[i].text, &list) ||
        strcmp(list.text, rows[i].found) != 0) {
      print_error("row %u: %s\n", (unsigned)i, list.text);
      fail();
    }
  }
}

static void what_is_not_known_is_said(void** state) {
  (void)state;
  static const struct {
    const char* defines;
    const char* text;
  } rows[] = {
      {"", "__FILE__"},          // the compiler's
      {"A <x/__y.h>", "A"},      // may be
      {"A <linux/a.h>", "A"},    // is, in some modes
      {"A a b", "A"},            // not plain
      {"A <B.h>\nB f(x)", "A"},  // not plain further in
      {"A <a.h>", "A B"},        // the text itself
      {"A <a.h>", "STR(A)"},     // a macro with arguments
      {"A <B>\nB a#b", "A"},     //
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    list_t list;
    if (expand(rows[i].defines, rows[i].text, &list)) {
      print_error("row %u: %s\n", (unsigned)i, list.text);
      fail();
    }
  }
}

static void too_many_come_to_an_end(void** state) {
  (void)state;
  list_t list;
  // Eight names of five values each: 6^8 headers.
  kilni_base_str_t text;
  kilni_base_str_init(&text, kiln_allocator_libc(), 1 << 16);
  for (char name = 'A'; name <= 'H'; name++) {
    for (char value = 'a'; value <= 'e'; value++) {
      kilni_base_str_addf(&text, "%c %c%c\n", name, value, name);
    }
  }
  assert_false(expand(kilni_base_str_cstr(&text), "<A/B/C/D/E/F/G/H>", &list));
  assert_in_range(list.count, 1, 512);
  kilni_base_str_deinit(&text);
  // A value of a value of a value ... without end is cut at a depth.
  kilni_base_str_init(&text, kiln_allocator_libc(), 1 << 16);
  for (int i = 0; i < 400; i++) {
    kilni_base_str_addf(&text, "n%d n%d\n", i, i + 1);
  }
  assert_false(expand(kilni_base_str_cstr(&text), "n0", &list));
  kilni_base_str_deinit(&text);
}

static void options_define_too(void** state) {
  (void)state;
  static const char* const options[] = {"A=<a.h>", "B",  "C(x)=<c.h>",
                                        "D=",      "=x", "A=a b"};
  kilni_compile_macros_t macros;
  kilni_compile_macros_init(&macros, kiln_allocator_libc());
  list_t list = {"", 0};
  bool all = false;
  for (size_t i = 0; i < 5; i++) {
    assert_null(kilni_compile_macros_add_option(&macros, options[i]));
  }
  assert_int_equal(macros.count, 3);
  assert_null(kilni_compile_macros_expand(&macros, kilni_base_sv("A"), note,
                                          &list, &all));
  assert_true(all);
  assert_string_equal(list.text, "<a.h>");
  assert_null(kilni_compile_macros_expand(&macros, kilni_base_sv("<B/D/x.h>"),
                                          note, &list, &all));
  assert_non_null(strstr(list.text, "<1//x.h>"));
  assert_null(kilni_compile_macros_add_option(&macros, options[5]));
  assert_null(kilni_compile_macros_expand(&macros, kilni_base_sv("A"), note,
                                          &list, &all));
  assert_false(all);
  kilni_compile_macros_deinit(&macros);
}

static kiln_status_t refuse(void* user,
                            const kilni_compile_scan_found_t* found) {
  (void)user, (void)found;
  return KILNI_FAIL(LIMIT_EXCEEDED, "enough");
}

static void a_failure_ends_it(void** state) {
  (void)state;
  kilni_compile_macros_t macros;
  bool all = true;
  kilni_compile_macros_init(&macros, kiln_allocator_libc());
  assert_null(kilni_compile_macros_add(&macros, kilni_base_sv("A"),
                                       kilni_base_sv("<a.h>")));
  kiln_status_t status = kilni_compile_macros_expand(
      &macros, kilni_base_sv("A"), refuse, NULL, &all);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  kiln_status_free(status);
  kilni_compile_macros_deinit(&macros);
}

// Memory that runs out is an error, and nothing is left behind.
static void no_memory(void** state) {
  (void)state;
  fault_alloc_t watch;
  fault_alloc_init(&watch);
  for (uint64_t at = 1;; at++) {
    kilni_compile_macros_t macros;
    kiln_status_t status = kiln_ok();
    char name[16];
    fault_alloc_arm(&watch, at, false);
    kilni_compile_macros_init(&macros, fault_alloc_allocator(&watch));
    for (int i = 0; i < 2000 && kiln_status_is_ok(status); i++) {
      snprintf(name, sizeof(name), "n%d", i);
      status = kilni_compile_macros_add(&macros, kilni_base_sv(name),
                                        kilni_base_sv("v"));
    }
    kilni_compile_macros_deinit(&macros);
    bool ok = kiln_status_is_ok(status);
    assert_true(ok || kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY);
    kiln_status_free(status);
    (void)fault_alloc_disarm(&watch);
    fault_alloc_assert_clean(&watch);
    if (ok) break;
  }
}

// More values than can all be tried: nobody knows what the name stands for, and
// a hundred thousand of them are no slower each than one.
static void a_name_with_very_many_values(void** state) {
  (void)state;
  kilni_compile_macros_t macros;
  list_t list = {0};
  bool all = true;
  kilni_compile_macros_init(&macros, kiln_allocator_libc());
  for (int i = 0; i < 100000; i++) {
    char value[32];
    (void)snprintf(value, sizeof(value), "<a%d.h>", i);
    assert_null(kilni_compile_macros_add(&macros, kilni_base_sv("MANY"),
                                         kilni_base_sv(value)));
  }
  assert_true(macros.count < 1000);
  assert_null(kilni_compile_macros_expand(&macros, kilni_base_sv("MANY"), note,
                                          &list, &all));
  assert_false(all);
  kilni_compile_macros_deinit(&macros);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_value_counts),
      cmocka_unit_test(what_is_not_known_is_said),
      cmocka_unit_test(too_many_come_to_an_end),
      cmocka_unit_test(a_name_with_very_many_values),
      cmocka_unit_test(options_define_too),
      cmocka_unit_test(a_failure_ends_it),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
