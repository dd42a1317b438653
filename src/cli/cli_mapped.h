// SPDX-License-Identifier: Apache-2.0
//
// cli: which of CUDA's libraries are in the process.
#ifndef KILN_SRC_CLI_CLI_MAPPED_H_
#define KILN_SRC_CLI_CLI_MAPPED_H_

#include "kiln/api.h"

// Calls `fn` for each library of CUDA or of its driver that is mapped into the
// process, once each, with its path; for none if the system does not report
// them.
void kilni_cli_mapped_each(void (*fn)(const char* path, void* user),
                           void* user);

#endif  // KILN_SRC_CLI_CLI_MAPPED_H_
