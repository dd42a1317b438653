// SPDX-License-Identifier: Apache-2.0
//
// cli: components of a toolkit on the command line: how they are named, where
// they are searched, how they are shown. Shared by `find` and `check`.
#ifndef KILN_SRC_CLI_CLI_PIECES_H_
#define KILN_SRC_CLI_CLI_PIECES_H_

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "kiln/locate.h"

enum { KILNI_CLI_NAME_BYTES = 128, KILNI_CLI_MAX_PIECES = 4096 };

// A component as it was named. thread-compatible
typedef struct kilni_cli_piece_t {
  uint32_t kind;  // KILN_LOCATE_KIND_*
  char name[KILNI_CLI_NAME_BYTES];
} kilni_cli_piece_t;

// Where to search, as locate takes it. one-thread
//
// `options` points into the rest; do not move it.
typedef struct kilni_cli_where_t {
  kiln_locate_options_t options;
  kilni_cli_buffer_t paths;  // char*
  kilni_cli_buffer_t texts;  // absolute paths
} kilni_cli_where_t;

// The options that `find` and `check` have for it, for their tables; `config`
// has a --root of its own.
#define KILNI_CLI_WHERE_OPTIONS                                             \
  {"root", "DIR",                                                           \
   "Search this folder first: a toolkit, a prefix, a site-packages.", true, \
   "file"},                                                                 \
      KILNI_CLI_WHERE_BUT_ROOT
#define KILNI_CLI_WHERE_BUT_ROOT                                               \
  {"scope", "SCOPE", "Search this scope only; more than one: by commas.",      \
   true, KILNI_CLI_SCOPES},                                                    \
      {"require", "SCOPE", "The same as --scope.", true, KILNI_CLI_SCOPES},    \
      {"prefer", "SCOPE", "Search this scope before the others.", true,        \
       KILNI_CLI_SCOPES},                                                      \
      {"forbid", "SCOPE", "Never search this scope.", true, KILNI_CLI_SCOPES}, \
      {"site", "DIR",                                                          \
       "A site-packages folder, instead of the active "                        \
       "environment's.",                                                       \
       true, "file"},                                                          \
      {"python", "EXE",                                                        \
       "A Python program: its site-packages are used; it is not run.", true,   \
       "file"},                                                                \
      {"target", "TARGET", "The toolkit's target folder.", false,              \
       "x86_64-linux sbsa-linux aarch64-linux"},                               \
      {"secure", NULL,                                                         \
       "Accept only files that no other user of this machine could have "      \
       "written.",                                                             \
       false, NULL},                                                           \
      {"hermetic", NULL,                                                       \
       "Ignore all environment variables; with --root, --site or --python, "   \
       "and without --scope, search only these places.",                       \
       false, NULL},                                                           \
      {"records", NULL,                                                        \
       "Accept a file of a wheel only if it matches the wheel's RECORD.",      \
       false, NULL},                                                           \
  {                                                                            \
    "verify", NULL,                                                            \
        "Read all evidence of each version, not only what "                    \
        "is enough.",                                                          \
        false, NULL                                                            \
  }
#define KILNI_CLI_SCOPES                                                 \
  "override root loaded wheel conda product CUDA_PATH CUDA_HOME loader " \
  "loader-root system distribution hpc-sdk wsl"

bool kilni_cli_where_read(kilni_cli_where_t* where,
                          const kilni_cli_call_t* call,
                          kilni_cli_error_t* error);
void kilni_cli_where_deinit(kilni_cli_where_t* where);

// Reads "lib:nvrtc", or "nvrtc" with `kind` not 0, of `size` bytes.
bool kilni_cli_piece_read(kilni_cli_piece_t* piece, const char* text,
                          size_t size, uint32_t kind, kilni_cli_error_t* error);

// Writes "13.0"; "" for 0.
void kilni_cli_line_text(uint32_t line, char out[32]);

// The value of --mode: KILN_COMPAT_MODE_*, DEFAULT if not given.
bool kilni_cli_mode_read(const kilni_cli_call_t* call, uint32_t* out_mode,
                         kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CLI_PIECES_H_
