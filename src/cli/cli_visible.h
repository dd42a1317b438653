// SPDX-License-Identifier: Apache-2.0
//
// cli: makes a single GPU visible to this process.
//
// Starting the driver costs time for each visible GPU, so the command, which
// needs one, selects it before the driver starts. `cuda:N` is entry N of the
// user's own CUDA_VISIBLE_DEVICES.
#ifndef KILN_SRC_CLI_CLI_VISIBLE_H_
#define KILN_SRC_CLI_CLI_VISIBLE_H_

#include "cli/cli_error.h"

#define KILNI_CLI_VISIBLE_MAX 128

// Writes the value that shows only GPU `ordinal` of those that the user's value
// `visible` (NULL: not set) shows. Entries are ordinals, GPU-... and MIG-...
// names; any other entry ends the list, as it does for the driver. NOT_FOUND if
// the list has no such entry. Pure.
bool kilni_cli_visible_compose(const char* visible, uint32_t ordinal,
                               char out[KILNI_CLI_VISIBLE_MAX],
                               kilni_cli_error_t* error);

// Does it for this process. To be called before any thread and the driver.
bool kilni_cli_visible_apply(uint32_t ordinal, kilni_cli_error_t* error);

// Rewrites NO_DEVICE, which the driver returns if none of the visible GPUs
// exists, in terms of the user's request, cuda:`ordinal`. Leaves every other
// error unchanged.
void kilni_cli_visible_explain(uint32_t ordinal, kilni_cli_error_t* error);

// "cuda:N" or "cuda": true, with N (0 without one).
bool kilni_cli_cuda_name_parse(const char* name, uint32_t* out_ordinal);

#endif  // KILN_SRC_CLI_CLI_VISIBLE_H_
