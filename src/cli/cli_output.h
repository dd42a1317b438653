// SPDX-License-Identifier: Apache-2.0
//
// cli: output files, all of them whole or none of them.
#ifndef KILN_SRC_CLI_CLI_OUTPUT_H_
#define KILN_SRC_CLI_CLI_OUTPUT_H_

#include "cli/cli_buffer.h"
#include "cli/cli_leave.h"

// The system's limit (PATH_MAX).
enum { KILNI_CLI_PATH_BYTES = 4096 };

// One file to be written. one-thread
typedef struct kilni_cli_output_t {
  const char* path;
  kilni_cli_buffer_t content;
  char* temporary;  // set while a temporary file exists
  char* target;     // `path` with links followed
  kilni_cli_buffer_t names;
  kilni_cli_leaving_t leaving;  // of the temporary file
} kilni_cli_output_t;

// Writes all files. First each goes to a temporary file in its own folder; then
// devices and pipes, which cannot be replaced, are written through; only then
// are the temporary files renamed. If anything fails, or a signal ends the
// command, no temporary file is left and no file is changed, except for a
// device that has taken its bytes and for a rename that failed after others.
bool kilni_cli_outputs_write(kilni_cli_output_t* outputs, size_t count,
                             kilni_cli_error_t* error);

// The file that a path refers to, links followed, even if the last target does
// not exist yet. False with errno for a path that cannot be resolved.
bool kilni_cli_output_target(const char* path,
                             char out_target[KILNI_CLI_PATH_BYTES]);

// The folder of `path`; false for a path that is empty or too long.
bool kilni_cli_output_folder(const char* path,
                             char out_folder[KILNI_CLI_PATH_BYTES]);

// Fails early if kilni_cli_outputs_write could not succeed: the folder is
// missing or not writable, or the path is a folder.
bool kilni_cli_output_check(const char* path, kilni_cli_error_t* error);

void kilni_cli_outputs_deinit(kilni_cli_output_t* outputs, size_t count);

#endif  // KILN_SRC_CLI_CLI_OUTPUT_H_
