// SPDX-License-Identifier: Apache-2.0
//
// cli: a search log without repetitions.
//
// A search may reach the same path several times (CUDA_HOME names a folder that
// the loader's cache led to before), and logs it each time. A reader wants each
// line once.
#ifndef KILN_SRC_CLI_CLI_TRAIL_H_
#define KILN_SRC_CLI_CLI_TRAIL_H_

#include "cli/cli_buffer.h"
#include "kiln/locate.h"

// The lines of a search log that were shown. one-thread
typedef struct kilni_cli_trail_t {
  const kiln_locate_tried_t* tried;
  uint32_t count;
  uint32_t at;
  kilni_cli_buffer_t seen;  // 1 + the index of a line by its hash; 0: free
} kilni_cli_trail_t;

// Begins with the first line; `tried` is borrowed until deinit.
void kilni_cli_trail_init(kilni_cli_trail_t* trail,
                          const kiln_locate_tried_t* tried, uint32_t count);

// The next line that was not given before; NULL at the end.
const kiln_locate_tried_t* kilni_cli_trail_next(kilni_cli_trail_t* trail);

void kilni_cli_trail_deinit(kilni_cli_trail_t* trail);

#endif  // KILN_SRC_CLI_CLI_TRAIL_H_
