// SPDX-License-Identifier: Apache-2.0
//
// cli: paths with any byte in them, in the words of shell, make and CMake.
#include <string.h>

#include "cli/config_form.h"

static bool config_quote_add(kilni_cli_buffer_t* out, const char* text,
                             kilni_cli_error_t* error) {
  return kilni_cli_buffer_add(out, text, strlen(text), error);
}

static bool quote_shell(kilni_cli_buffer_t* out, const char* text,
                        kilni_cli_error_t* error) {
  static const char safe[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_@%+=:,./-";
  if (text[0] != 0 && strspn(text, safe) == strlen(text)) {
    return config_quote_add(out, text, error);
  }
  bool ok = config_quote_add(out, "'", error);
  for (; ok && *text != 0; text++) {
    ok = *text == '\'' ? config_quote_add(out, "'\\''", error)
                       : kilni_cli_buffer_add(out, text, 1, error);
  }
  return ok && config_quote_add(out, "'", error);
}

// "#" begins a comment anywhere, and its escape depends on the backslashes
// before it: a variable expands to it.
static bool quote_make(kilni_cli_buffer_t* out, const char* text,
                       const char* hash, kilni_cli_error_t* error) {
  bool ok = true;
  if (strpbrk(text, "\r\n") != NULL) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "use --shell, --cmake or --json, or move it",
                          "this form cannot express a path with a newline");
  }
  for (; ok && *text != 0; text++) {
    if (*text == '$') {
      ok = config_quote_add(out, "$$", error);
    } else if (*text == '#') {
      ok = config_quote_add(out, hash, error);
    } else {
      ok = kilni_cli_buffer_add(out, text, 1, error);
    }
  }
  return ok;
}

static bool quote_cmake(kilni_cli_buffer_t* out, const char* text, bool list,
                        kilni_cli_error_t* error) {
  bool ok = true;
  for (; ok && *text != 0; text++) {
    bool escaped = strchr("\\\"$", *text) != NULL || (*text == ';' && list);
    ok = (!escaped || config_quote_add(out, "\\", error)) &&
         kilni_cli_buffer_add(out, text, 1, error);
  }
  return ok;
}

bool kilni_cli_config_quote(kilni_cli_buffer_t* out,
                            kilni_cli_config_quote_t how, const char* text,
                            kilni_cli_error_t* error) {
  switch (how) {
    case KILNI_CONFIG_SHELL:
      return quote_shell(out, text, error);
    case KILNI_CONFIG_MAKE:
      return quote_make(out, text, "$(KILN_CUDA_HASH)", error);
    case KILNI_CONFIG_PC:
      return quote_make(out, text, "\\#", error);
    case KILNI_CONFIG_CMAKE:
      return quote_cmake(out, text, false, error);
    case KILNI_CONFIG_CMAKE_LIST:
      return quote_cmake(out, text, true, error);
  }
  return false;
}

bool kilni_cli_config_words_text(kilni_cli_buffer_t* out,
                                 const kilni_cli_words_t* words,
                                 kilni_cli_error_t* error) {
  const char* at = NULL;
  bool first = true;
  while ((at = kilni_cli_words_next(words, at)) != NULL) {
    if (!(first || config_quote_add(out, " ", error)) ||
        !kilni_cli_config_quote(out, KILNI_CONFIG_SHELL, at, error)) {
      return false;
    }
    first = false;
  }
  return true;
}
