// SPDX-License-Identifier: Apache-2.0
//
// library: the public header. Modules above use entries as everybody does.
#ifndef KILN_SRC_LIBRARY_LIBRARY_H_
#define KILN_SRC_LIBRARY_LIBRARY_H_

#include "kiln/library.h"

#endif  // KILN_SRC_LIBRARY_LIBRARY_H_
