// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln lib`: the programs that come with Kiln, listed and shown.
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli/cli_command.h"
#include "cli/cli_program.h"
#include "cli/cli_report.h"
#include "kiln/library.h"

static bool list(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  if (call->operand_count > 1) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "leave it out",
                          "\"kiln lib list\" has no place for \"%s\"",
                          call->operands[1]);
  }
  kiln_library_entry_t entry;
  if (call->json) {
    json_t* entries = json_array();
    for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
      (void)json_array_append_new(
          entries,
          json_pack("{s:s,s:s,s:I,s:s*}", "name", entry.name, "summary",
                    entry.summary, "bytes", (json_int_t)entry.text.size,
                    "part_of", entry.part_of));
    }
    return kilni_cli_json_write(call->results,
                                json_pack("{s:o}", "entries", entries), error);
  }
  for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
    if (entry.part_of == NULL) {
      (void)fprintf(call->results, "%-13s  %s\n", entry.name, entry.summary);
    }
  }
  return kilni_cli_results_flush(call->results, error);
}

static bool show(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  if (call->operand_count < 2) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "name one of those that kiln lib list lists",
                          "\"kiln lib show\" needs NAME");
  }
  kiln_library_entry_t entry;
  if (!kilni_cli_library_find(call->operands[1], &entry, error)) return false;
  if (call->json) {
    return kilni_cli_json_write(
        call->results,
        json_pack("{s:s,s:s,s:s}", "name", entry.name, "summary", entry.summary,
                  "text", entry.text.data),
        error);
  }
  (void)fwrite(entry.text.data, 1, entry.text.size, call->results);
  return kilni_cli_results_flush(call->results, error);
}

static bool run_lib(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  static const char* const kWords[] = {"list", "show"};
  const char* word = call->operands[0];
  if (strcmp(word, "list") == 0) return list(call, error);
  if (strcmp(word, "show") == 0) return show(call, error);
  const char* near = kilni_cli_nearest(word, kWords, 2);
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "use list or show",
                       "the library cannot \"%s\"", word);
  if (near != NULL) {
    kilni_cli_error_fix(error, "did you mean \"kiln lib %s\"?", near);
  }
  return false;
}

static const kilni_cli_option_t OPTIONS[] = {
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_lib = {
    "lib",
    "list|show [NAME]",
    "List and show the programs that come with Kiln.",
    "list names them, with a sentence about each; what is only a part of "
    "another "
    "one is in --json alone. show NAME writes the text of one, which is a file "
    "such as kiln run takes (.kiln): to be read, or as a beginning for one of "
    "your own.\n"
    "They are inside the command: lib:NAME in place of a file runs, measures, "
    "inspects or compiles one from any folder, with --define for its consts "
    "and types. "
    "One that has several launches or memory of its own is run whole, with the "
    "parameters of its page in docs/library, which are all that it wants; the "
    "options of the page are given by --define then: T, V, OPERATION, "
    "EXCLUSIVE, DESCENDING, SYMMETRIC, REST, BINS, SEGMENT, ROUNDS, ORDER.",
    OPTIONS,
    sizeof(OPTIONS) / sizeof(OPTIONS[0]),
    1,
    2,
    "library",
    "kiln lib show scan",
    run_lib,
};
