// SPDX-License-Identifier: Apache-2.0
//
// install: a program of a stranger, built against the installed library.
#include <stdio.h>
#include <string.h>

#include <kiln/status.h>
#include <kiln/version.h>

int main(void) {
  if (kiln_version() != KILN_VERSION) return 1;
  if (strcmp(kiln_status_code_name(KILN_STATUS_END), "END") != 0) return 2;
  puts(kiln_version_string());
  return 0;
}
