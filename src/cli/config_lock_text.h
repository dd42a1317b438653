// SPDX-License-Identifier: Apache-2.0
//
// cli: lock files as text: reading and comparing. Pure: no disk.
#ifndef KILN_SRC_CLI_CONFIG_LOCK_TEXT_H_
#define KILN_SRC_CLI_CONFIG_LOCK_TEXT_H_

#include <jansson.h>

#include "cli/cli_error.h"

enum {
  KILNI_CONFIG_LOCK_FORMAT = 1,
  KILNI_CONFIG_LOCK_MAX_BYTES = 16 << 20,
  KILNI_CONFIG_LOCK_MAX_ITEMS = 4096,
  KILNI_CONFIG_LOCK_MAX_COMPONENTS = 256,
};

// Reads a lock file, called `name` in messages. The result has every key that
// later code reads, each with its type. The caller owns `*out_lock`.
// INVALID_ARGUMENT: it is not a lock file, or damaged; UNSUPPORTED: it is of
// another format.
bool kilni_cli_config_lock_parse(const char* text, size_t size,
                                 const char* name, json_t** out_lock,
                                 kilni_cli_error_t* error);

// The differences between two lists of items: [{"item","what","locked","now"}].
// The caller owns it; NULL without memory.
json_t* kilni_cli_config_lock_differences(const json_t* locked,
                                          const json_t* now);

// Which variables have other values:
// [{"name","locked","now"}]. The caller owns it; NULL without memory.
json_t* kilni_cli_config_lock_variables(const json_t* locked,
                                        const json_t* now);

#endif  // KILN_SRC_CLI_CONFIG_LOCK_TEXT_H_
