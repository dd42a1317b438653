// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of SHA-256, with the standard's own examples.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli_sha256.h"

static void expect(const char* text, size_t times, size_t step,
                   const char* digest) {
  char got[KILNI_CLI_SHA256_TEXT];
  kilni_cli_sha256_t sha;
  size_t size = strlen(text);
  kilni_cli_sha256_init(&sha);
  for (size_t i = 0; i < times; ++i)
    for (size_t at = 0; at < size; at += step)
      kilni_cli_sha256_add(&sha, text + at,
                           size - at < step ? size - at : step);
  kilni_cli_sha256_text(&sha, got);
  assert_string_equal(got, digest);
}

static void known_answers(void** state) {
  (void)state;
  expect("", 1, 1,
         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect("abc", 1, 3,
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, 56,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  expect("a", 1000000, 1,
         "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_of_any_size(void** state) {
  (void)state;
  static const char TEXT[] =
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  for (size_t step = 1; step < 57; ++step)
    expect(TEXT, 1, step,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_file_that_is_not_there(void** state) {
  (void)state;
  char got[KILNI_CLI_SHA256_TEXT];
  uint64_t size = 1;
  kilni_cli_error_t error;
  assert_false(kilni_cli_sha256_file("/nowhere/at/all", got, &size, &error));
  assert_int_equal(error.code, KILN_STATUS_NOT_FOUND);
  assert_int_equal(size, 0);
  assert_string_equal(got, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_answers),
      cmocka_unit_test(pieces_of_any_size),
      cmocka_unit_test(a_file_that_is_not_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
