// SPDX-License-Identifier: Apache-2.0
//
// base: tests of the asserts of debug builds.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/debug_assert.h"

static int evaluated;

static int count(int value) {
  evaluated++;
  return value;
}

static void test_a_true_condition_goes_on(void** state) {
  (void)state;
  assert_int_equal(count(1), 1);
  evaluated = 0;
  KILNI_ASSERT(count(1) == 1);
#ifdef KILNI_DEBUG
  assert_int_equal(evaluated, 1);
#else
  assert_int_equal(evaluated, 0);
#endif
}

static void test_it_is_one_expression(void** state) {
  (void)state;
  int reached = 0;
  if (reached == 0) KILNI_ASSERT(reached == 0);
  for (int i = 0; i < 2; KILNI_ASSERT(i < 2), i++) reached++;
  assert_int_equal(reached, 2);
}

// What a child that fails an assert at `line` writes; true if it died of it.
static bool dies(char* out_text, size_t capacity, int* out_line) {
  int pipes[2];
  assert_int_equal(pipe(pipes), 0);
  *out_line = __LINE__ + 8;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(pipes[1], STDERR_FILENO);
    close(pipes[0]);
    // cmocka's handler would go on with the parent's tests here.
    signal(SIGILL, SIG_DFL);
    KILNI_ASSERT(count(1) == 2);
    _exit(0);
  }
  close(pipes[1]);
  size_t length = 0;
  ssize_t got = 0;
  while (length + 1 < capacity &&
         (got = read(pipes[0], out_text + length, capacity - 1 - length)) > 0) {
    length += (size_t)got;
  }
  out_text[length] = '\0';
  close(pipes[0]);
  int ended = 0;
  assert_int_equal(waitpid(child, &ended, 0), child);
  return !WIFEXITED(ended) || WEXITSTATUS(ended) != 0;
}

static void test_a_false_one_says_where_and_stops(void** state) {
  (void)state;
  char text[4096];
  int line = 0;
  bool died = dies(text, sizeof(text), &line);
#ifdef KILNI_DEBUG
  char expected[256];
  snprintf(expected, sizeof(expected),
           "test_debug_assert.c:%d: assert failed:"
           " count(1) == 2\n",
           line);
  assert_true(died);
  assert_non_null(strstr(text, expected));
#else
  assert_false(died);
  assert_string_equal(text, "");
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_true_condition_goes_on),
      cmocka_unit_test(test_it_is_one_expression),
      cmocka_unit_test(test_a_false_one_says_where_and_stops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
