// SPDX-License-Identifier: Apache-2.0
//
// tests: where the source tree lies.
//
// The tree that the test was built from, or KILN_TEST_TREE where the build was
// carried to another machine (tools/live sets it).
#ifndef KILN_TESTS_SUPPORT_TEST_TREE_H_
#define KILN_TESTS_SUPPORT_TEST_TREE_H_

#include <stdio.h>
#include <stdlib.h>

#ifndef KILN_SOURCE_DIR
#error "test_tree.h is for programs made by kiln_test()"
#endif

static inline const char* test_tree(void) {
  const char* tree = getenv("KILN_TEST_TREE");
  return tree ? tree : KILN_SOURCE_DIR;
}

// The path of `file` of the tree, in `out`.
static inline const char* test_tree_path(char* out, size_t capacity,
                                         const char* file) {
  snprintf(out, capacity, "%s/%s", test_tree(), file);
  return out;
}

#endif  // KILN_TESTS_SUPPORT_TEST_TREE_H_
