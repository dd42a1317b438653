// SPDX-License-Identifier: Apache-2.0
//
// cli: arguments, taken apart by argp.
//
// argp is configured not to print or exit. It always accepts abbreviations of
// long options, so every argument is first compared with the table in full;
// argp then sees only valid arguments.
#include <argp.h>
#include <errno.h>
#include <string.h>

#include "cli/cli_command.h"

#define MAX_OPTIONS 64
#define FIRST_KEY   1000  // above every character
#define FILE_KEY    'o'   // the one short option, of OUT_FILE
#define OUT_FILE    "out-file"

// What argp's callback fills. one-thread
typedef struct parse_t {
  kilni_cli_call_t* call;
  kilni_cli_given_t* given;
  const char** operands;
  size_t file_index;  // of the option that -o abbreviates
} parse_t;

size_t kilni_cli_edits(const char* a, const char* b) {
  size_t row[64];
  size_t n = strlen(b);
  if (n >= 63 || strlen(a) >= 63) return 99;
  for (size_t j = 0; j <= n; j++) row[j] = j;
  for (size_t i = 1; a[i - 1] != 0; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= n; j++) {
      size_t best = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[n];
}

const char* kilni_cli_nearest(const char* text, const char* const* words,
                              size_t count) {
  const char* nearest = NULL;
  size_t best = strlen(text) / 3 + 1;
  for (size_t i = 0; i < count; i++) {
    size_t d = kilni_cli_edits(text, words[i]);
    bool begins =
        strlen(text) >= 2 && strncmp(words[i], text, strlen(text)) == 0;
    if (begins) d = 1;
    if (d > best || (d == best && nearest != NULL)) continue;
    best = d;
    nearest = words[i];
  }
  return nearest;
}

static bool fail_usage(const kilni_cli_command_t* command,
                       kilni_cli_error_t* error) {
  kilni_cli_error_fix(error, "write \"kiln %s --help\" for how to use it",
                      command->name);
  return false;
}

static bool parse_fail_unknown(const kilni_cli_command_t* command,
                               const char* text, size_t size,
                               kilni_cli_error_t* error) {
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "\"kiln %s\" has no option \"%.*s\"", command->name,
                       (int)(size > 200 ? 200 : size), text);
  if (size < 3 || size > 62 || text[1] != '-') {
    return fail_usage(command, error);
  }
  const char* names[MAX_OPTIONS];
  for (size_t i = 0; i < command->option_count; i++) {
    names[i] = command->options[i].name;
  }
  char word[64];
  memcpy(word, text + 2, size - 2);
  word[size - 2] = 0;
  const char* near = kilni_cli_nearest(word, names, command->option_count);
  if (near == NULL) return fail_usage(command, error);
  kilni_cli_error_fix(
      error, "write --%s; options are written in full, see \"kiln %s --help\"",
      near, command->name);
  return false;
}

static const kilni_cli_option_t* option_find(const kilni_cli_command_t* command,
                                             const char* name, size_t size) {
  for (size_t i = 0; i < command->option_count; i++) {
    if (strlen(command->options[i].name) == size &&
        memcmp(command->options[i].name, name, size) == 0) {
      return &command->options[i];
    }
  }
  return NULL;
}

static bool parse_check_arguments(const kilni_cli_command_t* command, int argc,
                                  char** argv, kilni_cli_error_t* error) {
  for (int i = 1; i < argc; i++) {
    const char* text = argv[i];
    if (strcmp(text, "--") == 0) return true;
    if (text[0] != '-' || text[1] == 0) continue;
    size_t size = strcspn(text, "=");
    const kilni_cli_option_t* option =
        text[1] == '-' ? option_find(command, text + 2, size - 2) : NULL;
    if (strcmp(text, "-o") == 0) {
      option = option_find(command, OUT_FILE, strlen(OUT_FILE));
    }
    if (option == NULL) return parse_fail_unknown(command, text, size, error);
    bool attached = text[size] == '=';
    if (option->value == NULL && attached) {
      (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                           "the option --%s takes no value", option->name);
      return fail_usage(command, error);
    }
    if (option->value == NULL || attached || option->value[0] == '[') continue;
    if (++i == argc) {
      (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                           "the option --%s needs a value: --%s %s",
                           option->name, option->name, option->value);
      return fail_usage(command, error);
    }
  }
  return true;
}

// True if `arg` is the value of the option before it, whose value is optional.
static bool takes_next(const kilni_cli_call_t* call, const char* arg,
                       const struct argp_state* state) {
  if (call->given_count == 0 || (arg[0] != '/' && arg[0] != '.')) return false;
  const kilni_cli_given_t* last = &call->given[call->given_count - 1];
  const char* before = state->next < 2 ? "" : state->argv[state->next - 2];
  return kilni_cli_option_is_bare(last) && before[0] == '-' &&
         strcmp(before + 2, last->option->name) == 0;
}

static error_t on_argument(int key, char* arg, struct argp_state* state) {
  parse_t* parse = state->input;
  kilni_cli_call_t* call = parse->call;
  if (key == ARGP_KEY_ARG) {
    if (takes_next(call, arg, state)) {
      parse->given[call->given_count - 1].value = arg;
      return 0;
    }
    parse->operands[call->operand_count++] = arg;
    return 0;
  }
  size_t index = key == FILE_KEY ? parse->file_index : (size_t)key - FIRST_KEY;
  if ((key < FIRST_KEY && key != FILE_KEY) ||
      index >= call->command->option_count) {
    return ARGP_ERR_UNKNOWN;
  }
  const kilni_cli_option_t* option = &call->command->options[index];
  parse->given[call->given_count].option = option;
  parse->given[call->given_count].value = arg == NULL ? "" : arg;
  call->given_count++;
  return 0;
}

static bool parse_check_call(const kilni_cli_call_t* call,
                             kilni_cli_error_t* error) {
  const kilni_cli_command_t* command = call->command;
  for (size_t i = 0; i < call->given_count; i++) {
    for (size_t j = 0; j < i; j++) {
      if (call->given[i].option == call->given[j].option &&
          !call->given[i].option->repeats &&
          call->given[i].option->value != NULL) {
        (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                             "the option --%s is given twice",
                             call->given[i].option->name);
        return fail_usage(command, error);
      }
    }
  }
  if (kilni_cli_option_value(call, "help") != NULL) return true;
  if (call->operand_count < command->least_operands) {
    (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "\"kiln %s\" needs %s", command->name,
                         command->operands);
    return fail_usage(command, error);
  }
  if (call->operand_count > command->most_operands) {
    (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "\"kiln %s\" takes no argument \"%s\"", command->name,
                         call->operands[command->most_operands]);
    return fail_usage(command, error);
  }
  return true;
}

bool kilni_cli_parse(const kilni_cli_command_t* command, int argc, char** argv,
                     kilni_cli_given_t* given, const char** operands,
                     kilni_cli_call_t* out, kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  out->command = command;
  out->given = given;
  out->operands = operands;
  if (!parse_check_arguments(command, argc, argv, error)) return false;
  struct argp_option options[MAX_OPTIONS + 1] = {0};
  size_t file_index = command->option_count;
  for (size_t i = 0; i < command->option_count && i < MAX_OPTIONS; i++) {
    options[i].name = command->options[i].name;
    options[i].key = FIRST_KEY + (int)i;
    if (strcmp(options[i].name, OUT_FILE) == 0) {
      options[i].key = FILE_KEY;
      file_index = i;
    }
    const char* value = command->options[i].value;
    options[i].arg = value;
    if (value != NULL && value[0] == '[') {
      options[i].flags = OPTION_ARG_OPTIONAL;
    }
  }
  struct argp argp = {0};
  argp.options = options;
  argp.parser = on_argument;
  parse_t parse = {out, given, operands, file_index};
  error_t rc = argp_parse(
      &argp, argc, argv,
      ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_IN_ORDER, NULL, &parse);
  if (rc == ENOMEM) {
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "not enough memory to read the arguments");
  }
  if (rc != 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                          "the arguments could not be parsed: %s",
                          strerror(rc));
  }
  out->json = kilni_cli_option_value(out, "json") != NULL;
  return parse_check_call(out, error);
}

bool kilni_cli_option_is_bare(const kilni_cli_given_t* given) {
  const char* value = given->option->value;
  return value != NULL && value[0] == '[' && given->value[0] == 0;
}

const char* kilni_cli_option_value(const kilni_cli_call_t* call,
                                   const char* name) {
  for (size_t i = call->given_count; i-- > 0;) {
    if (strcmp(call->given[i].option->name, name) == 0) {
      return call->given[i].value;
    }
  }
  return NULL;
}
