// SPDX-License-Identifier: Apache-2.0
//
// cli: which files a command reads and writes, so that no output replaces an
// input.
//
// Every command that writes files records here what it reads and writes, before
// it does either. Two names are one file if they lead to the same inode,
// through any links and spellings; of a file that does not exist yet, if they
// lead to the same name in the same folder.
#ifndef KILN_SRC_CLI_CLI_FILES_H_
#define KILN_SRC_CLI_CLI_FILES_H_

#include "cli/cli_buffer.h"

// Starts as all zero. one-thread
typedef struct kilni_cli_files_t {
  kilni_cli_buffer_t list;
} kilni_cli_files_t;

// Each records the file `path` under the description `what` ("the source",
// "--out y"), and fails with INVALID_ARGUMENT if an earlier record is of the
// same file and either is written. A file that is read to be changed, as by
// --inout, is an output. `path` must outlive `files`.
bool kilni_cli_files_add_input(kilni_cli_files_t* files, const char* path,
                               const char* what, kilni_cli_error_t* error);
bool kilni_cli_files_add_output(kilni_cli_files_t* files, const char* path,
                                const char* what, kilni_cli_error_t* error);

// The same for a file that was read meanwhile, which is not recorded.
bool kilni_cli_files_check_input(const kilni_cli_files_t* files,
                                 const char* path, const char* what,
                                 kilni_cli_error_t* error);

// Whether an output file exists already, and so may be an input.
bool kilni_cli_files_replaces(const kilni_cli_files_t* files);

void kilni_cli_files_deinit(kilni_cli_files_t* files);

// Whether a file name ends with `end` (".npy"), in either case, after at least
// one more character.
bool kilni_cli_name_ends(const char* path, const char* end);

#endif  // KILN_SRC_CLI_CLI_FILES_H_
