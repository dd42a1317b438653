// SPDX-License-Identifier: Apache-2.0
//
// base: the library's version.
#ifndef KILN_VERSION_H_
#define KILN_VERSION_H_

#include "kiln/api.h"

KILN_EXTERN_C_BEGIN

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0
#define KILN_VERSION \
  (KILN_VERSION_MAJOR * 10000 + KILN_VERSION_MINOR * 100 + KILN_VERSION_PATCH)

// The version of the library that is loaded, as KILN_VERSION encodes it
// (10203 is 1.2.3). Since 0.1.
KILN_API int kiln_version(void);

// The same as text, e.g. "0.1.0". Static. Since 0.1.
KILN_API const char* kiln_version_string(void);

KILN_EXTERN_C_END

#endif  // KILN_VERSION_H_
