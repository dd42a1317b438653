// SPDX-License-Identifier: Apache-2.0
//
// cli: options for compiling a source.
//
// The same options for every command that compiles: `kiln compile`, `kiln run`
// and `kiln cache warm`.
#ifndef KILN_SRC_CLI_SOURCE_OPTIONS_H_
#define KILN_SRC_CLI_SOURCE_OPTIONS_H_

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "kiln/compile.h"

enum { KILNI_CLI_SOURCE_LIST_MAX = 1024 };

// The rows of the table that all these commands share; each has its own --arch
// and --define, which apply to other code as well.
#define KILNI_CLI_SOURCE_OPTIONS                                              \
  {"include", "DIR", "A folder for #include.", true, "file"},                 \
      {"pre-include", "FILE", "A header to include first.", true, "file"},    \
      {"std", "DIALECT", "The language, such as c++17.", false,               \
       "c++11 c++14 c++17 c++20"},                                            \
      {"name", "EXPRESSION",                                                  \
       "An expression, such as 'add<float>', to compile even if the source "  \
       "does not use it.",                                                    \
       true, NULL},                                                           \
      {"lineinfo", NULL, "Keep line numbers in the code.", false, NULL},      \
      {"debug", NULL, "Make code for a debugger.", false, NULL}, {            \
    "option", "TEXT",                                                         \
        "An option in the compiler's own syntax: --option=--ftz=true.", true, \
        NULL                                                                  \
  }

// The requested options. one-thread
typedef struct kilni_cli_source_t {
  kiln_compile_options_t options;  // its lists are in `words`
  kilni_cli_buffer_t words;
} kilni_cli_source_t;

// Reads the options above, --arch and --define, as far as given. `expression`
// is one more for --name, or NULL. Ended by deinit, also after a failure; the
// texts are borrowed from the call.
bool kilni_cli_source_read(kilni_cli_source_t* out,
                           const kilni_cli_call_t* call, const char* expression,
                           kilni_cli_error_t* error);

// The first of these options that is given, except --define; NULL: none.
const char* kilni_cli_source_asked(const kilni_cli_call_t* call);

// Copies into `out`, which has space for all, the given options other than
// these and --define; returns their count.
size_t kilni_cli_source_without(const kilni_cli_call_t* call,
                                kilni_cli_given_t* out);

void kilni_cli_source_deinit(kilni_cli_source_t* source);

#endif  // KILN_SRC_CLI_SOURCE_OPTIONS_H_
