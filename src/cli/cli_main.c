// SPDX-License-Identifier: Apache-2.0
//
// cli: the command `kiln`.
#define _XOPEN_SOURCE 700
#if defined(__linux__)
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "cli/cli_report.h"
#include "cli/cli_variables.h"
#include "kiln/version.h"

extern char** environ;

enum { HEAP_KEPT_BYTES = 16 << 20, HEAP_STEP_BYTES = 1 << 20, MOST_NOTES = 8 };

// A misspelt variable has no effect, and nothing else would report it. One that
// resembles none of Kiln's often belongs to another program: only the doctor
// names it.
static void note_variables(bool all) {
  char name[KILNI_CLI_VARIABLE_BYTES], space[KILNI_CLI_VARIABLE_BYTES];
  size_t notes = 0;
  for (char** at = environ; at != NULL && *at != NULL; at++) {
    const char* equals = strchr(*at, '=');
    size_t size = equals != NULL ? (size_t)(equals - *at) : 0;
    if (size == 0 || size >= sizeof(name)) continue;
    memcpy(name, *at, size);
    name[size] = 0;
    const char* meant = kilni_cli_variable_meant(name, space);
    bool is_unknown =
        meant == NULL && all && kilni_cli_variable_is_nobodys(name);
    if (meant == NULL && !is_unknown) continue;
    if (++notes > MOST_NOTES) return;
    if (is_unknown) {
      kilni_cli_note("Kiln does not read the variable %s", name);
      continue;
    }
    bool is_family = meant[strlen(meant) - 1] == '_';
    kilni_cli_note("warning: the variable %s has no effect; did you mean %s%s?",
                   name, meant, is_family ? "..." : "");
  }
}

static bool fail_command(const char* name, kilni_cli_error_t* error) {
  const char* names[32];
  for (size_t i = 0; i < kilni_cli_command_count && i < 32; i++) {
    names[i] = kilni_cli_commands[i]->name;
  }
  const char* near = kilni_cli_nearest(name, names, kilni_cli_command_count);
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                       "write \"kiln --help\" for the commands",
                       "there is no command \"%s\"", name);
  if (near != NULL) {
    kilni_cli_error_fix(
        error, "write \"kiln %s\"; \"kiln --help\" lists the commands", near);
  }
  return false;
}

static bool run_command(const kilni_cli_command_t* command, int argc,
                        char** argv, kilni_cli_error_t* error) {
  kilni_cli_buffer_t given = {0}, operands = {0};
  kilni_cli_call_t call;
  size_t space = (size_t)argc;
  bool ok = kilni_cli_buffer_resize(&given, space * sizeof(kilni_cli_given_t),
                                    error) &&
            kilni_cli_buffer_resize(&operands, space * sizeof(char*), error) &&
            kilni_cli_parse(command, argc, argv, (kilni_cli_given_t*)given.data,
                            (const char**)operands.data, &call, error);
  if (ok) {
    call.results = stdout;
    if (kilni_cli_option_value(&call, "help") != NULL) {
      kilni_cli_help_print(stdout, command);
    } else {
      ok = command->run(&call, error);
    }
  }
  kilni_cli_buffer_deinit(&given);
  kilni_cli_buffer_deinit(&operands);
  return ok && kilni_cli_results_flush(stdout, error);
}

static bool run_main(int argc, char** argv, kilni_cli_error_t* error) {
  if (argc < 2) {
    kilni_cli_help_print(stderr, NULL);
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write \"kiln run FILE\", for example",
                          "there is no command");
  }
  if (strcmp(argv[1], "--help") == 0) {
    kilni_cli_help_print(stdout, NULL);
    return kilni_cli_results_flush(stdout, error);
  }
  if (strcmp(argv[1], "--version") == 0) {
    (void)printf("kiln %s\n", kiln_version_string());
    return kilni_cli_results_flush(stdout, error);
  }
  const kilni_cli_command_t* command = kilni_cli_command_named(argv[1]);
  if (command == NULL) return fail_command(argv[1], error);
  note_variables(strcmp(argv[1], "doctor") == 0);
  return run_command(command, argc - 1, argv + 1, error);
}

// The process is short-lived: freed memory is soon reused, and memory returned
// to the system would cost new pages.
static void keep_heap(void) {
#if defined(M_TRIM_THRESHOLD) && defined(M_TOP_PAD)
  (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT_BYTES);
  (void)mallopt(M_TOP_PAD, HEAP_STEP_BYTES);
#endif
}

int main(int argc, char** argv) {
  kilni_cli_error_t error;
  keep_heap();
  // A full disk and a closed pipe are errors of write(), so that partial output
  // can be removed.
  (void)signal(SIGXFSZ, SIG_IGN);
  (void)signal(SIGPIPE, SIG_IGN);
  if (run_main(argc, argv, &error)) return EXIT_SUCCESS;
  bool json = false;  // even if the arguments could not be parsed
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strcmp(argv[i], "--json") == 0) json = true;
  }
  return kilni_cli_error_report(stdout, json, &error);
}
