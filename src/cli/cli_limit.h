// SPDX-License-Identifier: Apache-2.0
//
// cli: a step that may take too long.
#ifndef KILN_SRC_CLI_CLI_LIMIT_H_
#define KILN_SRC_CLI_CLI_LIMIT_H_

#include "kiln/api.h"

// Does `work` and comes back when it is done: true; or when `limit_ns` (0:
// none) has passed: false. Then `work` goes on by itself, with all that `user`
// leads to: free none of it and leave the process.
//
// Without a thread for it, `work` is done here and the limit is not kept.
bool kilni_cli_limit_run(uint64_t limit_ns, void (*work)(void* user),
                         void* user);

#endif  // KILN_SRC_CLI_CLI_LIMIT_H_
