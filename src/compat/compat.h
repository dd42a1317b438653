// SPDX-License-Identifier: Apache-2.0
//
// compat: the public header. The module is pure functions, and all of them are
// public.
#ifndef KILN_SRC_COMPAT_COMPAT_H_
#define KILN_SRC_COMPAT_COMPAT_H_

#include "kiln/compat.h"

#endif  // KILN_SRC_COMPAT_COMPAT_H_
