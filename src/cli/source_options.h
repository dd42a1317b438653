// SPDX-License-Identifier: Apache-2.0
//
// cli: how a source is compiled, as options say it.
//
// The same options for every command that compiles: `kiln compile`, `kiln run`
// and `kiln cache warm`.
#ifndef KILN_SRC_CLI_SOURCE_OPTIONS_H_
#define KILN_SRC_CLI_SOURCE_OPTIONS_H_

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "kiln/compile.h"

enum { KILNI_CLI_SOURCE_LIST_MAX = 1024 };

// The rows of the table that every one of these commands has; --arch and
// --define, which mean something to other code as well, each has for itself.
#define KILNI_CLI_SOURCE_OPTIONS                                               \
  {"include", "DIR", "A folder for #include.", true, "file"},                  \
      {"pre-include", "FILE", "A header that goes first.", true, "file"},      \
      {"std", "DIALECT", "The language, such as c++17.", false,                \
       "c++11 c++14 c++17 c++20"},                                             \
      {"name", "EXPRESSION",                                                   \
       "An expression, such as 'add<float>', that is compiled though nothing " \
       "in the source uses it.",                                               \
       true, NULL},                                                            \
      {"lineinfo", NULL, "Keep line numbers in the code.", false, NULL},       \
      {"debug", NULL, "Make code for a debugger.", false, NULL}, {             \
    "option", "TEXT",                                                          \
        "An option as the compiler takes it: --option=--ftz=true.", true, NULL \
  }

// What was asked for. one-thread
typedef struct kilni_cli_source_t {
  kiln_compile_options_t options;  // its lists are in `words`
  kilni_cli_buffer_t words;
} kilni_cli_source_t;

// Reads what of the options above, of --arch and of --define is given.
// `expression` is one more for --name, or NULL. Ended by deinit, also after a
// failure; the texts are borrowed from the call.
bool kilni_cli_source_read(kilni_cli_source_t* out,
                           const kilni_cli_call_t* call, const char* expression,
                           kilni_cli_error_t* error);

// The first of these options that is given, --define left out; NULL: none.
const char* kilni_cli_source_asked(const kilni_cli_call_t* call);

// Copies into `out`, which has space for all, what the call gives besides these
// options and --define; returns how many that are.
size_t kilni_cli_source_without(const kilni_cli_call_t* call,
                                kilni_cli_given_t* out);

void kilni_cli_source_deinit(kilni_cli_source_t* source);

#endif  // KILN_SRC_CLI_SOURCE_OPTIONS_H_
