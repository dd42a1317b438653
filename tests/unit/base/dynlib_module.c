// SPDX-License-Identifier: Apache-2.0
//
// base: a small library for the test to open.
__attribute__((visibility("default"))) int kiln_test_answer(void);
int kiln_test_answer(void) {
  return 42;
}
