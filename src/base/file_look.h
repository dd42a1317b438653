// SPDX-License-Identifier: Apache-2.0
//
// base: what the system reports of a file, in our terms. For the files of base
// that call the system.
#ifndef KILN_SRC_BASE_FILE_LOOK_H_
#define KILN_SRC_BASE_FILE_LOOK_H_

#include "base/file.h"

struct stat;

// Fills every field.
void kilni_base_file_look_fill(const struct stat* info,
                               kilni_base_file_look_t* out_look);

#endif  // KILN_SRC_BASE_FILE_LOOK_H_
