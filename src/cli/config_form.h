// SPDX-License-Identifier: Apache-2.0
//
// cli: a plan in the words of a build system.
#ifndef KILN_SRC_CLI_CONFIG_FORM_H_
#define KILN_SRC_CLI_CONFIG_FORM_H_

#include <jansson.h>

#include "cli/config_plan.h"

// How text is quoted.
typedef enum kilni_cli_config_quote_t {
  KILNI_CONFIG_SHELL,       // a word of a shell, unquoted if possible
  KILNI_CONFIG_MAKE,        // text of a makefile's variable
  KILNI_CONFIG_PC,          // text of a .pc file
  KILNI_CONFIG_CMAKE,       // inside "..."
  KILNI_CONFIG_CMAKE_LIST,  // the same, as an element of a list
} kilni_cli_config_quote_t;

// Adds `text`. INVALID_ARGUMENT if the form cannot express it: a newline in a
// makefile.
bool kilni_cli_config_quote(kilni_cli_buffer_t* out,
                            kilni_cli_config_quote_t how, const char* text,
                            kilni_cli_error_t* error);

// Adds words with spaces between, as a shell takes them.
bool kilni_cli_config_words_text(kilni_cli_buffer_t* out,
                                 const kilni_cli_words_t* words,
                                 kilni_cli_error_t* error);

// Adds the whole plan.
bool kilni_cli_config_shell_text(const kilni_cli_config_t* config,
                                 kilni_cli_buffer_t* out);
bool kilni_cli_config_make_text(const kilni_cli_config_t* config,
                                kilni_cli_buffer_t* out);
bool kilni_cli_config_pc_text(const kilni_cli_config_t* config,
                              kilni_cli_buffer_t* out);
bool kilni_cli_config_cmake_text(const kilni_cli_config_t* config,
                                 kilni_cli_buffer_t* out);
json_t* kilni_cli_config_json(const kilni_cli_config_t* config);

// The variables that may affect the search or the mode, null if unset.
json_t* kilni_cli_config_environment_json(const kilni_cli_config_t* config);

// The name of the variable with a component's path: "KILN_CUDA_LIB_NVJITLINK".
void kilni_cli_config_variable(const kilni_cli_config_piece_t* piece, char* out,
                               size_t capacity);

#endif  // KILN_SRC_CLI_CONFIG_FORM_H_
