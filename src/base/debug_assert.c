// SPDX-License-Identifier: Apache-2.0
//
// base: what a failed assert prints before it stops the process.
//
// It is compiled into every build, but only builds for debugging call it: no
// other part of the library writes to standard error or ends its process.
#include "base/debug_assert.h"

#include <stdio.h>
#include <unistd.h>

enum { TEXT_BYTES = 512 };

void kilni_base_assert_failed(const char* file, int line,
                              const char* condition) {
  char text[TEXT_BYTES];
  int length = snprintf(text, sizeof(text), "%s:%d: assert failed: %s\n", file,
                        line, condition);
  if (length >= (int)sizeof(text)) {
    length = (int)sizeof(text) - 1;
    text[length - 1] = '\n';
  }
  // The process ends in any case; a failure here cannot be reported.
  ssize_t written = write(STDERR_FILENO, text, (size_t)length);
  (void)written;
  __builtin_trap();
}
