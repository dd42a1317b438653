// SPDX-License-Identifier: Apache-2.0
//
// cli: sizes and ages as people write and read them.
//
// Pure, and not part of the library.
#ifndef KILN_SRC_CLI_CACHE_TEXT_H_
#define KILN_SRC_CLI_CACHE_TEXT_H_

#include "cli/cli_error.h"

enum { KILNI_CLI_CACHE_TEXT_BYTES = 32 };

// "3.4 MiB", "812 B".
void kilni_cli_size_text(uint64_t bytes, char out[KILNI_CLI_CACHE_TEXT_BYTES]);

// "just now", "5 min ago", "3 d ago" of a count of seconds.
void kilni_cli_age_text(uint64_t seconds, char out[KILNI_CLI_CACHE_TEXT_BYTES]);

// "500M", "2G", "1048576": bytes; K, M, G and T are powers of 1024. `option` is
// named by the error.
bool kilni_cli_size_parse(const char* option, const char* text,
                          uint64_t* out_bytes, kilni_cli_error_t* error);

// "90s", "30m", "12h", "7d", "2w": seconds, at least one.
bool kilni_cli_age_parse(const char* option, const char* text,
                         uint64_t* out_seconds, kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CACHE_TEXT_H_
