// SPDX-License-Identifier: Apache-2.0
//
// cli: sub-commands as data.
//
// The parser, --help, the pages in docs/cli/ and shell completion all come from
// these rows, so that none can contradict another.
#ifndef KILN_SRC_CLI_CLI_COMMAND_H_
#define KILN_SRC_CLI_CLI_COMMAND_H_

#include <stdio.h>

#include "cli/cli_error.h"

// One option. thread-safe
typedef struct kilni_cli_option_t {
  const char* name;  // long name without the dashes; only out-file has a short
                     // one, -o
  // Its value; NULL: none. A value in brackets is optional: it is taken after
  // "=", or as the next word if that begins with "/" or ".".
  const char* value;
  const char* help;  // one sentence
  bool repeats;      // may be given more than once
  // What a shell completes: "file", "program" (a file, or lib:NAME), "command",
  // "library" (what kiln lib takes), or words separated by spaces; or NULL.
  const char* completion;
} kilni_cli_option_t;

// An option as it was given. thread-safe
typedef struct kilni_cli_given_t {
  const kilni_cli_option_t* option;
  const char* value;
} kilni_cli_given_t;

struct kilni_cli_command_t;

// One call of a sub-command, taken apart. one-thread
typedef struct kilni_cli_call_t {
  const struct kilni_cli_command_t* command;
  const kilni_cli_given_t* given;
  size_t given_count;
  const char* const* operands;
  size_t operand_count;
  bool json;
  FILE* results;  // standard output, whatever descriptor 1 is by now
} kilni_cli_call_t;

// One sub-command. thread-safe
typedef struct kilni_cli_command_t {
  const char* name;
  const char* operands;  // "FILE"
  const char* summary;   // one sentence
  const char* text;      // paragraphs
  const kilni_cli_option_t* options;
  size_t option_count;
  size_t least_operands;
  size_t most_operands;
  const char* operand_completion;  // as an option's
  const char* example;
  bool (*run)(const kilni_cli_call_t* call, kilni_cli_error_t* error);
} kilni_cli_command_t;

// The table, in the order of the help.
extern const kilni_cli_command_t* const kilni_cli_commands[];
extern const size_t kilni_cli_command_count;

extern const kilni_cli_command_t kilni_cli_command_bench;
extern const kilni_cli_command_t kilni_cli_command_run;
extern const kilni_cli_command_t kilni_cli_command_compile;
extern const kilni_cli_command_t kilni_cli_command_cache;
extern const kilni_cli_command_t kilni_cli_command_find;
extern const kilni_cli_command_t kilni_cli_command_check;
extern const kilni_cli_command_t kilni_cli_command_config;
extern const kilni_cli_command_t kilni_cli_command_lib;
extern const kilni_cli_command_t kilni_cli_command_link;
extern const kilni_cli_command_t kilni_cli_command_inspect;
extern const kilni_cli_command_t kilni_cli_command_doctor;
extern const kilni_cli_command_t kilni_cli_command_graph;
extern const kilni_cli_command_t kilni_cli_command_top;
extern const kilni_cli_command_t kilni_cli_command_help;
extern const kilni_cli_command_t kilni_cli_command_completion;

// The command of that name, or NULL.
const kilni_cli_command_t* kilni_cli_command_named(const char* name);

// Takes `argv` apart, which starts with the sub-command's name. `given` and
// `operands` have space for `argc` entries each. A usage error is
// INVALID_ARGUMENT.
bool kilni_cli_parse(const kilni_cli_command_t* command, int argc, char** argv,
                     kilni_cli_given_t* given, const char** operands,
                     kilni_cli_call_t* out, kilni_cli_error_t* error);

// The value of the last option `name`, or NULL. For a switch, "" if given.
const char* kilni_cli_option_value(const kilni_cli_call_t* call,
                                   const char* name);

// True for an option whose value was omitted.
bool kilni_cli_option_is_bare(const kilni_cli_given_t* given);

// The edit distance of `a` and `b` (insertions, deletions, substitutions); 99
// for words of 63 letters and more.
size_t kilni_cli_edits(const char* a, const char* b);

// The word of `words` nearest to `text`, or NULL.
const char* kilni_cli_nearest(const char* text, const char* const* words,
                              size_t count);

// Text of --help: of the whole command (`command` NULL) or of one.
void kilni_cli_help_print(FILE* out, const kilni_cli_command_t* command);
// The same as the generated part of docs/cli/NAME.md, or of kiln.md.
void kilni_cli_help_markdown(FILE* out, const kilni_cli_command_t* command);
// A completion script for "bash", "zsh" or "fish"; false for any other.
bool kilni_cli_completion_print(FILE* out, const char* shell);

#endif  // KILN_SRC_CLI_CLI_COMMAND_H_
