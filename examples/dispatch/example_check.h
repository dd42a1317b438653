// SPDX-License-Identifier: Apache-2.0
//
// examples: an error ends the program, with its text and its exit code.
#ifndef KILN_EXAMPLES_DISPATCH_EXAMPLE_CHECK_H_
#define KILN_EXAMPLES_DISPATCH_EXAMPLE_CHECK_H_

#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check(kiln_status_t status) {
  static char message[4096];
  if (kiln_status_is_ok(status)) return;
  kiln_status_format(status, sizeof(message), message, NULL);
  fprintf(stderr, "%s\n", message);
  exit(kiln_status_code_exit(kiln_status_code(status)));
}

#endif  // KILN_EXAMPLES_DISPATCH_EXAMPLE_CHECK_H_
