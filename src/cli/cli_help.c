// SPDX-License-Identifier: Apache-2.0
//
// cli: the command table as help and as pages.
#include <string.h>

#include "cli/cli_command.h"
#include "kiln/version.h"

#define WIDTH 78

const kilni_cli_command_t* const kilni_cli_commands[] = {
    &kilni_cli_command_run,        &kilni_cli_command_bench,
    &kilni_cli_command_graph,      &kilni_cli_command_compile,
    &kilni_cli_command_link,       &kilni_cli_command_find,
    &kilni_cli_command_check,      &kilni_cli_command_config,
    &kilni_cli_command_inspect,    &kilni_cli_command_lib,
    &kilni_cli_command_cache,      &kilni_cli_command_doctor,
    &kilni_cli_command_top,        &kilni_cli_command_help,
    &kilni_cli_command_completion,
};
const size_t kilni_cli_command_count =
    sizeof(kilni_cli_commands) / sizeof(kilni_cli_commands[0]);

// The meaning of each exit code, by its number.
static const char* const kExitCodes[] = {
    "done",
    "the work failed",
    "usage",
    "not found",
    "incompatible",
    "not enough is known to decide",
    "not supported here",
    "compile or link failed",
    "device error",
    "out of memory",
};
static const size_t kExitCodeCount = sizeof(kExitCodes) / sizeof(kExitCodes[0]);

const kilni_cli_command_t* kilni_cli_command_named(const char* name) {
  for (size_t i = 0; i < kilni_cli_command_count; i++) {
    if (strcmp(kilni_cli_commands[i]->name, name) == 0) {
      return kilni_cli_commands[i];
    }
  }
  return NULL;
}

// Prints `text` in lines of WIDTH, each line but the first indented. A newline
// in it ends a paragraph.
static void print_wrapped(FILE* out, const char* text, int indent, int at) {
  while (*text != 0) {
    if (*text == '\n') {
      (void)fprintf(out, "\n%*s", indent, "");
      at = indent;
      text++;
      continue;
    }
    int n = (int)strcspn(text, " \n");
    if (at + n > WIDTH && at > indent) {
      (void)fprintf(out, "\n%*s", indent, "");
      at = indent;
    }
    (void)fwrite(text, 1, (size_t)n, out);
    at += n;
    text += n;
    if (*text == ' ') {
      text++;
      if (at + 1 + (int)strcspn(text, " \n") <= WIDTH) {
        (void)fputc(' ', out);
        at++;
      } else {
        (void)fprintf(out, "\n%*s", indent, "");
        at = indent;
      }
    }
  }
  (void)fputc('\n', out);
}

static void print_usage(FILE* out, const kilni_cli_command_t* command) {
  (void)fprintf(out, "kiln %s", command->name);
  if (command->operands[0] != 0) (void)fprintf(out, " %s", command->operands);
  int indent = 5 + (int)strlen(command->name) + 1;
  int at = indent + (int)strlen(command->operands);
  for (size_t i = 0; i < command->option_count; i++) {
    const kilni_cli_option_t* o = &command->options[i];
    char word[96];
    int n = snprintf(word, sizeof(word), "[--%s%s%s]%s", o->name,
                     o->value == NULL ? "" : " ",
                     o->value == NULL ? "" : o->value, o->repeats ? "..." : "");
    if (at + 1 + n > WIDTH) {
      (void)fprintf(out, "\n%*s", indent, "");
      at = indent;
    }
    (void)fprintf(out, " %s", word);
    at += 1 + n;
  }
  (void)fputc('\n', out);
}

static void print_all(FILE* out) {
  (void)fprintf(out,
                "kiln %s, the CUDA host runtime for C\n\n"
                "Usage: kiln COMMAND [ARGUMENT]...\n\nCommands:\n",
                kiln_version_string());
  for (size_t i = 0; i < kilni_cli_command_count; i++) {
    (void)fprintf(out, "  %-12s%s\n", kilni_cli_commands[i]->name,
                  kilni_cli_commands[i]->summary);
  }
  (void)fprintf(
      out,
      "\n\"kiln COMMAND --help\" describes one; \"kiln --version\" prints the "
      "version.\n");
}

static void print_exit_codes(FILE* out) {
  char text[320] = "Exit codes:";
  size_t at = strlen(text);
  for (size_t i = 0; i < kExitCodeCount && at < sizeof(text); i++) {
    at += (size_t)snprintf(text + at, sizeof(text) - at, " %zu %s%s", i,
                           kExitCodes[i], i + 1 < kExitCodeCount ? "," : ".");
  }
  print_wrapped(out, text, 0, 0);
}

void kilni_cli_help_print(FILE* out, const kilni_cli_command_t* command) {
  if (command == NULL) {
    print_all(out);
    return;
  }
  print_usage(out, command);
  (void)fputc('\n', out);
  print_wrapped(out, command->summary, 0, 0);
  (void)fputc('\n', out);
  print_wrapped(out, command->text, 0, 0);
  if (command->option_count != 0) (void)fprintf(out, "\nOptions:\n");
  for (size_t i = 0; i < command->option_count; i++) {
    const kilni_cli_option_t* o = &command->options[i];
    int n = fprintf(out, "  --%s%s%s", o->name, o->value == NULL ? "" : " ",
                    o->value == NULL ? "" : o->value);
    if (n > 24) {
      (void)fprintf(out, "\n%*s", 26, "");
    } else {
      (void)fprintf(out, "%*s", 26 - n, "");
    }
    print_wrapped(out, o->help, 26, 26);
  }
  if (command->example != NULL) {
    (void)fprintf(out, "\nExample:\n  %s\n", command->example);
  }
  (void)fputc('\n', out);
  print_exit_codes(out);
}

// Text of a table cell, in which a bar would end the cell, even inside a code
// span.
static void print_cell(FILE* out, const char* text) {
  for (; *text != 0; text++) {
    if (*text == '|') (void)fputc('\\', out);
    (void)fputc(*text, out);
  }
}

static void markdown_all(FILE* out) {
  (void)fprintf(out,
                "```\nkiln COMMAND [ARGUMENT]...\nkiln [COMMAND] --help\n"
                "kiln --version\n```\n\nThe CUDA host runtime for C.\n\n"
                "| command | what it does |\n|---|---|\n");
  for (size_t i = 0; i < kilni_cli_command_count; i++) {
    (void)fprintf(out, "| [kiln %s](%s.md) | %s |\n",
                  kilni_cli_commands[i]->name, kilni_cli_commands[i]->name,
                  kilni_cli_commands[i]->summary);
  }
  (void)fprintf(out, "\n| exit code | when |\n|---|---|\n");
  for (size_t i = 0; i < kExitCodeCount; i++) {
    (void)fprintf(out, "| %zu | %s |\n", i, kExitCodes[i]);
  }
}

static void markdown_options(FILE* out, const kilni_cli_command_t* command) {
  if (command->option_count != 0) {
    (void)fprintf(out, "| option | what it does |\n|---|---|\n");
  }
  for (size_t i = 0; i < command->option_count; i++) {
    const kilni_cli_option_t* o = &command->options[i];
    (void)fprintf(out, "| `--%s%s", o->name, o->value == NULL ? "" : " ");
    print_cell(out, o->value == NULL ? "" : o->value);
    (void)fprintf(out, "`%s | ", o->repeats ? " (may be repeated)" : "");
    print_cell(out, o->help);
    (void)fprintf(out, " |\n");
  }
}

void kilni_cli_help_markdown(FILE* out, const kilni_cli_command_t* command) {
  if (command == NULL) {
    markdown_all(out);
    return;
  }
  (void)fprintf(out, "```\n");
  print_usage(out, command);
  (void)fprintf(out, "```\n\n");
  print_wrapped(out, command->summary, 0, 0);
  (void)fputc('\n', out);
  for (const char* s = command->text; *s != 0;) {
    size_t n = strcspn(s, "\n");
    char paragraph[1024];
    (void)snprintf(paragraph, sizeof(paragraph), "%.*s", (int)n, s);
    print_wrapped(out, paragraph, 0, 0);
    (void)fputc('\n', out);
    s += n;
    while (*s == '\n') s++;
  }
  markdown_options(out, command);
  if (command->example != NULL) {
    (void)fprintf(out, "\nExample:\n\n```\n%s\n```\n", command->example);
  }
}
