// SPDX-License-Identifier: Apache-2.0
//
// cli: completion scripts for shells, from the same table as the parser.
#include <string.h>

#include "cli/cli_command.h"
#include "kiln/library.h"

// ---- What the shells share ----

static const char* operands_of(const kilni_cli_command_t* command) {
  return command->operand_completion == NULL ? "file"
                                             : command->operand_completion;
}

static void print_commands(FILE* out, const char* between) {
  for (size_t i = 0; i < kilni_cli_command_count; i++) {
    (void)fprintf(out, "%s%s", i == 0 ? "" : between,
                  kilni_cli_commands[i]->name);
  }
}

static bool complete_is_file(const char* completion) {
  return strcmp(completion, "file") == 0;
}

// A file of code, or lib:NAME in its place.
static bool is_program(const char* completion) {
  return strcmp(completion, "program") == 0;
}

// The entries of the library, each after `prefix`.
static void print_entries(FILE* out, const char* prefix) {
  kiln_library_entry_t entry;
  const char* between = "";
  for (uint32_t i = 0; kiln_library_entry(i, &entry); i++) {
    if (entry.part_of != NULL) continue;
    (void)fprintf(out, "%s%s%s", between, prefix, entry.name);
    between = " ";
  }
}

// The words of a completion that is a list, with a backslash before a colon
// where the shell reads those.
static void print_words(FILE* out, const char* completion, bool colons) {
  if (strcmp(completion, "command") == 0) {
    print_commands(out, " ");
    return;
  }
  if (strcmp(completion, "library") == 0) {
    (void)fprintf(out, "list show ");
    print_entries(out, "");
    return;
  }
  for (; *completion != 0; completion++) {
    if (*completion == ':' && colons) (void)fputc('\\', out);
    (void)fputc(*completion, out);
  }
}

// True of the one option that has a short name, -o.
static bool has_short(const kilni_cli_option_t* option) {
  return strcmp(option->name, "out-file") == 0;
}

// `text` inside single quotes, up to its first full stop; `special` characters
// get a backslash. A quote becomes `quote`.
static void print_quoted(FILE* out, const char* text, const char* special,
                         const char* quote) {
  size_t size = strcspn(text, ".\n");
  while (text[size] == '.' && text[size + 1] != ' ' && text[size + 1] != 0) {
    size += 1 + strcspn(text + size + 1, ".\n");
  }
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '\'') {
      (void)fputs(quote, out);
      continue;
    }
    if (strchr(special, text[i]) != NULL) (void)fputc('\\', out);
    (void)fputc(text[i], out);
  }
}

// ---- bash ----

static void print_bash_words(FILE* out, const char* completion) {
  if (complete_is_file(completion)) {
    (void)fprintf(out, "COMPREPLY=($(compgen -f -- \"$cur\"))");
    return;
  }
  if (is_program(completion)) {
    (void)fprintf(out, "_kiln_programs");
    return;
  }
  (void)fprintf(out, "COMPREPLY=($(compgen -W \"");
  print_words(out, completion, false);
  (void)fprintf(out, "\" -- \"$cur\"))");
}

static void print_bash_command(FILE* out, const kilni_cli_command_t* c) {
  (void)fprintf(out, "    %s)\n      case \"$prev\" in\n", c->name);
  for (size_t i = 0; i < c->option_count; i++) {
    const kilni_cli_option_t* o = &c->options[i];
    if (o->value == NULL) continue;
    (void)fprintf(out, "        %s--%s) ", has_short(o) ? "-o|" : "", o->name);
    if (o->completion != NULL) {
      print_bash_words(out, o->completion);
      (void)fprintf(out, "; ");
    }
    (void)fprintf(out, "return;;\n");
  }
  (void)fprintf(out,
                "      esac\n      if [[ $cur == -* ]]; then\n"
                "        COMPREPLY=($(compgen -W \"");
  for (size_t i = 0; i < c->option_count; i++) {
    (void)fprintf(out, "%s--%s", i == 0 ? "" : " ", c->options[i].name);
  }
  (void)fprintf(out, "\" -- \"$cur\"))\n      else\n        ");
  print_bash_words(out, operands_of(c));
  (void)fprintf(out, "\n      fi;;\n");
}

// bash takes words apart at colons, unless COMP_WORDBREAKS has none: what is
// completed after "lib:" is the name alone then.
static void print_bash_programs(FILE* out) {
  (void)fprintf(out, "_kiln_programs() {\n  local names=\"");
  print_entries(out, "");
  (void)fprintf(
      out,
      "\"\n  if [[ $cur == : && $prev == lib ]]; then\n"
      "    COMPREPLY=($names)\n"
      "  elif [[ $prev == : && ${COMP_WORDS[COMP_CWORD-2]} == lib ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$names\" -- \"$cur\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$cur\")\n"
      "      $(compgen -W \"$(printf 'lib:%%s ' $names)\" -- \"$cur\"))\n"
      "  fi\n}\n");
}

static void print_bash(FILE* out) {
  (void)fprintf(out,
                "# bash completion for kiln, made by \"kiln completion "
                "bash\"\n");
  print_bash_programs(out);
  (void)fprintf(out,
                "_kiln() {\n  local cur prev\n"
                "  cur=${COMP_WORDS[COMP_CWORD]}\n"
                "  prev=${COMP_WORDS[COMP_CWORD-1]}\n  COMPREPLY=()\n"
                "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                "    COMPREPLY=($(compgen -W \"");
  print_commands(out, " ");
  (void)fprintf(out,
                " --help --version\" -- \"$cur\"))\n    return\n  fi\n"
                "  case \"${COMP_WORDS[1]}\" in\n");
  for (size_t i = 0; i < kilni_cli_command_count; i++) {
    print_bash_command(out, kilni_cli_commands[i]);
  }
  (void)fprintf(out, "  esac\n}\ncomplete -F _kiln kiln\n");
}

// ---- zsh ----

static void print_zsh_action(FILE* out, const char* completion) {
  if (completion == NULL) {
    (void)fputc(' ', out);
  } else if (complete_is_file(completion)) {
    (void)fputs("_files", out);
  } else if (is_program(completion)) {
    (void)fputs("_kiln_programs", out);
  } else {
    (void)fputc('(', out);
    print_words(out, completion, true);
    (void)fputc(')', out);
  }
}

// One option as _arguments wants it: '*--root=[help]:DIR:_files'.
static void print_zsh_option(FILE* out, const kilni_cli_option_t* o,
                             const char* name) {
  bool optional = o->value != NULL && o->value[0] == '[';
  const char* join = "";
  if (o->value != NULL) join = optional ? "=-" : "=";
  if (name[1] != '-') join = "+";
  (void)fprintf(out, " \\\n        '%s%s%s[", o->repeats ? "*" : "", name,
                join);
  print_quoted(out, o->help, "[]\\", "'\\''");
  (void)fputc(']', out);
  if (o->value != NULL) {
    (void)fputs(optional ? "::" : ":", out);
    print_quoted(out, o->value, ":[]\\", "'\\''");
    (void)fputc(':', out);
    print_zsh_action(out, o->completion);
  }
  (void)fputc('\'', out);
}

static void print_zsh_command(FILE* out, const kilni_cli_command_t* c) {
  (void)fprintf(out, "    %s)\n      _arguments", c->name);
  for (size_t i = 0; i < c->option_count; i++) {
    char name[80];
    (void)snprintf(name, sizeof(name), "--%s", c->options[i].name);
    print_zsh_option(out, &c->options[i], name);
    if (has_short(&c->options[i])) print_zsh_option(out, &c->options[i], "-o");
  }
  if (c->most_operands != 0) {
    (void)fprintf(out, " \\\n        '*:%s:",
                  complete_is_file(operands_of(c)) || is_program(operands_of(c))
                      ? "file"
                      : "word");
    print_zsh_action(out, operands_of(c));
    (void)fputc('\'', out);
  }
  (void)fprintf(out, ";;\n");
}

static void print_zsh(FILE* out) {
  (void)fprintf(out,
                "#compdef kiln\n"
                "# zsh completion for kiln, made by \"kiln completion zsh\"\n"
                "_kiln_programs() {\n  local -a library\n  library=(");
  print_entries(out, "lib:");
  (void)fprintf(out,
                ")\n  _alternative 'files:file:_files' "
                "'library:program of the library:compadd -a library'\n}\n"
                "_kiln() {\n  local -a commands\n  commands=(");
  for (size_t i = 0; i < kilni_cli_command_count; i++) {
    (void)fprintf(out, "\n    '%s:", kilni_cli_commands[i]->name);
    print_quoted(out, kilni_cli_commands[i]->summary, "\\", "'\\''");
    (void)fputc('\'', out);
  }
  (void)fprintf(out,
                ")\n  if (( CURRENT == 2 )); then\n"
                "    _describe command commands\n"
                "    compadd -- --help --version\n    return\n  fi\n"
                "  local name=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
                "  case $name in\n");
  for (size_t i = 0; i < kilni_cli_command_count; i++) {
    print_zsh_command(out, kilni_cli_commands[i]);
  }
  // Found on fpath it is called; sourced it registers itself.
  (void)fprintf(out,
                "  esac\n}\nif [[ $funcstack[1] == _kiln ]]; then\n"
                "  _kiln \"$@\"\nelse\n  compdef _kiln kiln\nfi\n");
}

// ---- fish ----

static void print_fish_values(FILE* out, const char* completion) {
  if (completion == NULL) {
    (void)fputs(" -x", out);
  } else if (complete_is_file(completion)) {
    (void)fputs(" -r -F", out);
  } else {
    (void)fputs(" -x -a '", out);
    print_words(out, completion, false);
    (void)fputc('\'', out);
  }
}

static void print_fish_command(FILE* out, const kilni_cli_command_t* c) {
  for (size_t i = 0; i < c->option_count; i++) {
    const kilni_cli_option_t* o = &c->options[i];
    bool optional = o->value != NULL && o->value[0] == '[';
    (void)fprintf(out, "complete -c kiln -n '__kiln_in %s' -l %s%s", c->name,
                  o->name, has_short(o) ? " -s o" : "");
    if (o->value != NULL && !optional) print_fish_values(out, o->completion);
    (void)fputs(" -d '", out);
    print_quoted(out, o->help, "\\", "\\'");
    (void)fputs("'\n", out);
  }
  if (is_program(operands_of(c))) {
    (void)fprintf(out, "complete -c kiln -n '__kiln_in %s' -a '", c->name);
    print_entries(out, "lib:");
    (void)fputs("'\n", out);
  } else if (c->most_operands == 0 || !complete_is_file(operands_of(c))) {
    (void)fprintf(out, "complete -c kiln -n '__kiln_in %s' -f", c->name);
    if (c->most_operands != 0) {
      (void)fputs(" -a '", out);
      print_words(out, operands_of(c), false);
      (void)fputc('\'', out);
    }
    (void)fputc('\n', out);
  }
}

static void print_fish(FILE* out) {
  (void)fprintf(
      out,
      "# fish completion for kiln, made by \"kiln completion fish\"\n"
      "function __kiln_in\n  set -l words (commandline -opc)\n"
      "  test (count $words) -gt 1; and test $words[2] = $argv[1]\nend\n"
      "function __kiln_bare\n  test (count (commandline -opc)) -eq 1\nend\n"
      "complete -c kiln -n __kiln_bare -f -l help -d 'Print the help'\n"
      "complete -c kiln -n __kiln_bare -f -l version -d 'Print the version'\n");
  for (size_t i = 0; i < kilni_cli_command_count; i++) {
    (void)fprintf(out, "complete -c kiln -n __kiln_bare -f -a %s -d '",
                  kilni_cli_commands[i]->name);
    print_quoted(out, kilni_cli_commands[i]->summary, "\\", "\\'");
    (void)fputs("'\n", out);
  }
  for (size_t i = 0; i < kilni_cli_command_count; i++) {
    print_fish_command(out, kilni_cli_commands[i]);
  }
}

bool kilni_cli_completion_print(FILE* out, const char* shell) {
  static const struct {
    const char* shell;
    void (*print)(FILE* out);
  } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
  for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
    if (strcmp(shell, shells[i].shell) == 0) {
      shells[i].print(out);
      return true;
    }
  }
  return false;
}
