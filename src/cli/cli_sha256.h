// SPDX-License-Identifier: Apache-2.0
//
// cli: SHA-256 of files, for lock files and packages.
#ifndef KILN_SRC_CLI_CLI_SHA256_H_
#define KILN_SRC_CLI_CLI_SHA256_H_

#include "cli/cli_error.h"

enum { KILNI_CLI_SHA256_TEXT = 65 };  // 64 digits and a NUL

// A hash while it is made. thread-compatible
typedef struct kilni_cli_sha256_t {
  uint32_t state[8];
  uint64_t bytes;
  uint8_t block[64];
} kilni_cli_sha256_t;

void kilni_cli_sha256_init(kilni_cli_sha256_t* sha);
void kilni_cli_sha256_add(kilni_cli_sha256_t* sha, const void* data,
                          size_t size);
// Ends it; lower-case digits.
void kilni_cli_sha256_text(kilni_cli_sha256_t* sha,
                           char out[KILNI_CLI_SHA256_TEXT]);

// Of the file at `path`, and its size: NOT_FOUND, IO_ERROR.
bool kilni_cli_sha256_file(const char* path, char out[KILNI_CLI_SHA256_TEXT],
                           uint64_t* out_size, kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CLI_SHA256_H_
