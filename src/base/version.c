// SPDX-License-Identifier: Apache-2.0
//
// base: the library's version.
#include "kiln/version.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

int kiln_version(void) {
  return KILN_VERSION;
}

const char* kiln_version_string(void) {
  return TEXT(KILN_VERSION_MAJOR) "." TEXT(KILN_VERSION_MINOR) "." TEXT(
      KILN_VERSION_PATCH);
}
