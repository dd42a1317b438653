// SPDX-License-Identifier: Apache-2.0
//
// cli: output files, all of them whole or none of them.
#ifndef KILN_SRC_CLI_CLI_OUTPUT_H_
#define KILN_SRC_CLI_CLI_OUTPUT_H_

#include "cli/cli_buffer.h"

// One file to be written. one-thread
typedef struct kilni_cli_output_t {
  const char* path;
  kilni_cli_buffer_t content;
  char* temporary;  // set while a temporary file exists
  char* target;     // `path` with links followed
  kilni_cli_buffer_t names;
} kilni_cli_output_t;

// Writes all files. First each goes to a temporary file in its own folder and
// is synced; then devices and pipes, which cannot be replaced, are written
// through; only then are the temporary files renamed. When anything fails, no
// temporary file is left and no file is changed, but for a device that had
// taken its bytes and for a rename that failed behind others.
bool kilni_cli_outputs_write(kilni_cli_output_t* outputs, size_t count,
                             kilni_cli_error_t* error);

// Fails early where kilni_cli_outputs_write could not succeed: the folder is
// missing or may not be written, or the path is a folder.
bool kilni_cli_output_check(const char* path, kilni_cli_error_t* error);

void kilni_cli_outputs_deinit(kilni_cli_output_t* outputs, size_t count);

#endif  // KILN_SRC_CLI_CLI_OUTPUT_H_
