// SPDX-License-Identifier: Apache-2.0
//
// base: a library for the test to open that needs another's symbol and does
// not say so.
__attribute__((visibility("default"))) int kiln_test_ask(void);
int kiln_test_answer(void);
int kiln_test_ask(void) {
  return kiln_test_answer();
}
