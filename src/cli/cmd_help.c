// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln help` and `kiln completion`.
#include "cli/cli_command.h"

static bool run_help(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  const kilni_cli_command_t* command = NULL;
  if (call->operand_count != 0) {
    command = kilni_cli_command_named(call->operands[0]);
    if (command == NULL) {
      return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                            "write \"kiln help\" for the commands",
                            "there is no command \"%s\"", call->operands[0]);
    }
  }
  if (kilni_cli_option_value(call, "markdown") != NULL) {
    kilni_cli_help_markdown(call->results, command);
  } else {
    kilni_cli_help_print(call->results, command);
  }
  return true;
}

static bool run_completion(const kilni_cli_call_t* call,
                           kilni_cli_error_t* error) {
  return kilni_cli_completion_print(call->results, call->operands[0]) ||
         kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                        "write \"kiln completion bash\", zsh or fish",
                        "there is no completion for the shell \"%s\"",
                        call->operands[0]);
}

static const kilni_cli_option_t kHelpOptions[] = {
    {"markdown", NULL, "Print the generated part of the page in docs/cli.",
     false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_help = {
    "help",
    "[COMMAND]",
    "List the commands, or explain one.",
    "Without COMMAND it lists the commands.",
    kHelpOptions,
    sizeof(kHelpOptions) / sizeof(kHelpOptions[0]),
    0,
    1,
    "command",
    "kiln help run",
    run_help,
};

static const kilni_cli_option_t kCompletionOptions[] = {
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_completion = {
    "completion",
    "SHELL",
    "Print a completion script for a shell.",
    "SHELL is bash, zsh or fish. An installed kiln has all three where the "
    "shells look for them; otherwise: `source <(kiln completion bash)` in "
    "~/.bashrc, `kiln completion zsh > DIR/_kiln` with DIR on fpath before "
    "compinit, `kiln completion fish > ~/.config/fish/completions/kiln.fish`.",
    kCompletionOptions,
    sizeof(kCompletionOptions) / sizeof(kCompletionOptions[0]),
    1,
    1,
    "bash zsh fish",
    "source <(kiln completion bash)",
    run_completion,
};
