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

// ---- Defaults ----

static const char* role_of(const kiln_library_default_t* row) {
  return row->role == KILN_PROGRAM_ROLE_NONE
             ? "arg"
             : kiln_program_role_name(row->role);
}

static bool is_output(const kiln_library_default_t* row) {
  return row->role == KILN_PROGRAM_ROLE_OUT ||
         row->role == KILN_PROGRAM_ROLE_INOUT;
}

static json_t* defaults_json(const char* name) {
  kiln_library_default_t row;
  json_t* rows = json_array();
  for (uint32_t i = 0; kiln_library_default(name, i, &row); i++) {
    (void)json_array_append_new(
        rows, json_pack("{s:s,s:s,s:b,s:s,s:s}", "parameter", row.parameter,
                        "role", role_of(&row), "sample", (int)row.is_sample,
                        "shape", row.shape, "value", row.value));
  }
  return rows;
}

// A command that runs the entry with its defaults alone. An output that starts
// as a sample has no file name in the table.
static void cmd_lib_write_command(const char* name, kilni_cli_buffer_t* out,
                                  kilni_cli_error_t* error) {
  kiln_library_default_t row;
  char word[192];
  uint32_t outputs = 0;
  for (uint32_t i = 0; kiln_library_default(name, i, &row); i++) {
    outputs += is_output(&row);
  }
  (void)snprintf(word, sizeof(word), "kiln run lib:%s", name);
  (void)kilni_cli_buffer_add(out, word, strlen(word), error);
  for (uint32_t i = 0; kiln_library_default(name, i, &row); i++) {
    if (!is_output(&row)) continue;
    bool is_both = row.role == KILN_PROGRAM_ROLE_INOUT;
    (void)snprintf(word, sizeof(word), " --out %s%s%s%s",
                   outputs > 1 ? row.parameter : "", outputs > 1 ? "=" : "",
                   is_both ? row.parameter : row.value, is_both ? ".npy" : "");
    (void)kilni_cli_buffer_add(out, word, strlen(word), error);
  }
}

// The defaults of an entry, in the words of lib/defaults.txt.
static bool cmd_lib_tell(const kilni_cli_call_t* call, const char* name,
                         kilni_cli_error_t* error) {
  kiln_library_entry_t entry;
  kiln_library_default_t row;
  kilni_cli_buffer_t command = {0};
  if (call->operand_count > 1) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "leave it out",
                          "\"kiln lib %s\" takes no argument \"%s\"", name,
                          call->operands[1]);
  }
  if (!kilni_cli_library_find(name, &entry, error)) return false;
  cmd_lib_write_command(name, &command, error);
  const char* text = entry.part_of == NULL ? (const char*)command.data : "";
  bool ok;
  if (call->json) {
    ok = kilni_cli_json_write(
        call->results,
        json_pack("{s:s,s:s,s:s*,s:o,s:s}", "name", entry.name, "summary",
                  entry.summary, "part_of", entry.part_of, "defaults",
                  defaults_json(name), "command", text),
        error);
  } else {
    (void)fprintf(call->results, "%s: %s\n", entry.name, entry.summary);
    for (uint32_t i = 0; kiln_library_default(name, i, &row); i++) {
      bool shaped = row.shape[0] != 0;
      // Every input is one, as its content shows.
      bool is_sample =
          row.is_sample != 0 && (row.role == KILN_PROGRAM_ROLE_NONE ||
                                 row.role == KILN_PROGRAM_ROLE_OUT);
      (void)fprintf(call->results, "  %s%s %s%s%s%s%s%s\n",
                    is_sample ? "sample " : "", role_of(&row), row.parameter,
                    shaped ? " [" : "", row.shape, shaped ? "]" : "",
                    row.value[0] != 0 ? " = " : "", row.value);
    }
    if (text[0] != 0) (void)fprintf(call->results, "%s\n", text);
    ok = kilni_cli_results_flush(call->results, error);
  }
  kilni_cli_buffer_deinit(&command);
  return ok;
}

static bool cmd_lib_list(const kilni_cli_call_t* call,
                         kilni_cli_error_t* error) {
  if (call->operand_count > 1) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "leave it out",
                          "\"kiln lib list\" takes no argument \"%s\"",
                          call->operands[1]);
  }
  kiln_library_entry_t entry;
  if (call->json) {
    json_t* entries = json_array();
    for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
      (void)json_array_append_new(
          entries,
          json_pack("{s:s,s:s,s:I,s:s*,s:o}", "name", entry.name, "summary",
                    entry.summary, "bytes", (json_int_t)entry.text.size,
                    "part_of", entry.part_of, "defaults",
                    defaults_json(entry.name)));
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

static bool cmd_lib_show(const kilni_cli_call_t* call,
                         kilni_cli_error_t* error) {
  if (call->operand_count < 2) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "name an entry that kiln lib list shows",
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
  if (strcmp(word, "list") == 0) return cmd_lib_list(call, error);
  if (strcmp(word, "show") == 0) return cmd_lib_show(call, error);
  if (cmd_lib_tell(call, word, error)) return true;
  const char* near = kilni_cli_nearest(word, kWords, 2);
  if (error->code == KILN_STATUS_NOT_FOUND && near != NULL) {
    kilni_cli_error_fix(error, "did you mean \"kiln lib %s\"?", near);
  }
  return false;
}

static const kilni_cli_option_t kOptions[] = {
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_lib = {
    "lib",
    "list|show NAME|NAME",
    "List and show the programs that come with Kiln.",
    "list names them, with a sentence about each; an entry that is only a "
    "part of another is listed only by --json. show NAME writes the source "
    "text, a file that kiln run takes (.kiln): to read, or as a starting "
    "point for your own. NAME alone lists the defaults of kiln run lib:NAME: "
    "numbers, a sample of each input, shapes of outputs, and a complete "
    "command.\nThey are built into the command: lib:NAME in place of a file "
    "runs, measures, inspects or compiles one from any folder, with --define "
    "for its consts and types. One that has several launches or memory of its "
    "own runs as a whole, with the parameters that its page in docs/library "
    "lists; the options on the page are then given by --define: T, V, "
    "OPERATION, EXCLUSIVE, DESCENDING, SYMMETRIC, REST, BINS, SEGMENT, "
    "ROUNDS, ORDER.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    1,
    2,
    "library",
    "kiln lib mandelbrot",
    run_lib,
};
