// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of kernels that are templates.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/run_template.h"

static void assert_instance(const char* source, const char* entry,
                            const char* instance) {
  char text[KILNI_CLI_ENTRY_SHOWN] = "";
  bool found = kilni_cli_template_find(source, strlen(source), entry, text);
  if (found != (instance != NULL) || (found && strcmp(text, instance) != 0)) {
    fail_msg("%s: \"%s\"", source, text);
  }
}

static void kernels_that_are_templates_are_found(void** state) {
  (void)state;
  static const char ONE[] =
      "template <typename T> __global__ void scale(T* x, T a) { x[0] *= a; }";
  assert_instance(ONE, NULL, "scale<float>");
  assert_instance(ONE, "scale", "scale<float>");
  assert_instance(ONE, "ns::scale<int>", "scale<float>");
  assert_instance(ONE, "other", NULL);
  assert_instance(
      "template<class A, int N, typename B = A, typename... C>\n"
      "__launch_bounds__(256, (2)) __global__ void\n"
      "// template <typename X> __global__ void no(\n"
      "many(A* a) {}",
      NULL, "many<float, 1>");
  assert_instance(
      "template <typename T> struct S { T x; };\n"
      "template <template <typename> class C, bool b> __global__ void k(S<T> s)"
      " {}",
      NULL, "k<1, 1>");
}

static void namespaces_are_part_of_the_name(void** state) {
  (void)state;
  assert_instance(
      "using namespace std;\nnamespace a::b { struct s { int x; };\n"
      "namespace { int y; }\nnamespace c { template <int N> __global__ void "
      "k() {} } }",
      NULL, "a::b::c::k<1>");
  assert_instance(
      "namespace a { void f() { if (1) { } } }\n"
      "template <int N> __global__ void k() {}",
      NULL, "k<1>");
}

static void others_are_none(void** state) {
  (void)state;
  static const char* const NONE[] = {
      "",
      "template",
      "template <",
      "template <typename T",
      "template <typename T> __device__ void f(T x) {} __global__ void k() {}",
      "template <typename T> struct S {}; __global__ void k(S<int> s) {}",
      "#define T template <typename T> __global__ void k( \\\n template <int",
      "/* template <typename T> __global__ void k() */",
      "/* template <typename T> __global__ void k()",
      "\"template <typename T> __global__ void k()\"",
      "template <typename T> __launch_bounds__(",
      "template __global__ void k<int>(int* x);",
  };
  for (size_t i = 0; i < sizeof(NONE) / sizeof(NONE[0]); i++) {
    assert_instance(NONE[i], NULL, NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_that_are_templates_are_found),
      cmocka_unit_test(namespaces_are_part_of_the_name),
      cmocka_unit_test(others_are_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
