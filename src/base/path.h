// SPDX-License-Identifier: Apache-2.0
//
// base: questions about paths that cost one walk along them, not many.
#ifndef KILN_SRC_BASE_PATH_H_
#define KILN_SRC_BASE_PATH_H_

#include "kiln/api.h"

// True if the absolute path leads somewhere and no part of it is a link: it is
// what it is resolved to, unless it has a part "." or "..". False also where
// the system has no such question (Linux before 5.6, some sandboxes).
bool kilni_base_path_has_no_link(const char* path);

enum { KILNI_PATH_MAX_NAMES = 32 };

// Which of at most KILNI_PATH_MAX_NAMES names in a folder exist and are not
// folders, links followed: a bit for each, the first one lowest.
uint32_t kilni_base_path_files_in(const char* folder, const char* const* names,
                                  uint32_t count);

#endif  // KILN_SRC_BASE_PATH_H_
