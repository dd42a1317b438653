// SPDX-License-Identifier: Apache-2.0
//
// cli: facts about a loaded kernel, for the checks before it runs.
#ifndef KILN_SRC_CLI_RUN_FACTS_H_
#define KILN_SRC_CLI_RUN_FACTS_H_

#include "cli/run_code.h"
#include "cli/run_fit.h"

// Fills `out`, which borrows from `kernel`: the facts of the module, and the
// kernel's memory accesses from the PTX that was loaded or made on the way.
// Without readable PTX, as for a cubin, `*out_use` is NULL. The caller owns it.
// LIMIT_EXCEEDED for too many parameters.
bool kilni_cli_facts_make(kiln_kernel_t* kernel, kilni_cli_code_t* code,
                          kilni_cli_kernel_t* out, kiln_image_use_t** out_use,
                          kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_RUN_FACTS_H_
