// SPDX-License-Identifier: Apache-2.0
//
// cli: bytes that the command owns.
#ifndef KILN_SRC_CLI_CLI_BUFFER_H_
#define KILN_SRC_CLI_CLI_BUFFER_H_

#include "cli/cli_error.h"

// Bytes that grow. one-thread
//
// Zero is the empty buffer. There is always a NUL after `data[size - 1]`.
typedef struct kilni_cli_buffer_t {
  uint8_t* data;
  size_t size;
  size_t capacity;
} kilni_cli_buffer_t;

void kilni_cli_buffer_deinit(kilni_cli_buffer_t* buffer);

// Makes the size `size`; new bytes are zero.
bool kilni_cli_buffer_resize(kilni_cli_buffer_t* buffer, size_t size,
                             kilni_cli_error_t* error);

// Adds bytes, or text.
bool kilni_cli_buffer_add(kilni_cli_buffer_t* buffer, const void* data,
                          size_t size, kilni_cli_error_t* error);

// Adds the whole of the file at `path`, which may be a pipe: NOT_FOUND,
// PERMISSION_DENIED, IO_ERROR, LIMIT_EXCEEDED above `limit` bytes.
bool kilni_cli_buffer_read(kilni_cli_buffer_t* buffer, const char* path,
                           size_t limit, kilni_cli_error_t* error);

// The same, but BAD_DATA for an empty file.
bool kilni_cli_buffer_read_some(kilni_cli_buffer_t* buffer, const char* path,
                                size_t limit, kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CLI_BUFFER_H_
