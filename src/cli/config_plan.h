// SPDX-License-Identifier: Apache-2.0
//
// cli: what a build needs from a CUDA toolkit, found and checked.
//
// A toolkit here may be virtual: wheels give a build several folders of headers
// and of libraries. Everything is taken from one place and one CUDA major
// version, or the plan fails and reports what is missing where.
#ifndef KILN_SRC_CLI_CONFIG_PLAN_H_
#define KILN_SRC_CLI_CONFIG_PLAN_H_

#include "cli/cli_words.h"
#include "cli/config_names.h"
#include "kiln/compat.h"
#include "kiln/locate_catalog.h"
#include "kiln/toolkit.h"

// Why a component is in a plan.
typedef enum kilni_cli_config_role_t {
  KILNI_CONFIG_ASKED,   // named by the user
  KILNI_CONFIG_LINKED,  // a static library needs it, or headers include it
  KILNI_CONFIG_NEEDED,  // a shared library needs it: the linker must see it
} kilni_cli_config_role_t;

// A component of the plan. thread-compatible
typedef struct kilni_cli_config_piece_t {
  kiln_toolkit_item_t* item;
  size_t component;  // which one it belongs to
  kilni_cli_config_role_t role;
} kilni_cli_config_piece_t;

// The plan. one-thread
typedef struct kilni_cli_config_t {
  const kilni_cli_call_t* call;
  kilni_cli_error_t* error;
  bool prefer_static;
  kilni_cli_where_t where;
  kiln_toolkit_t* toolkit;
  kiln_compat_report_t* report;
  kilni_cli_buffer_t components;  // kilni_cli_config_component_t
  kilni_cli_buffer_t pieces;      // kilni_cli_config_piece_t

  kilni_cli_words_t includes;
  kilni_cli_words_t library_dirs;
  kilni_cli_words_t rpaths;       // folders of shared libraries at run time
  kilni_cli_words_t rpath_links;  // folders of the libraries that those need
  kilni_cli_words_t links;        // "-lnvrtc", "-l:libnvrtc.so.13", "/a/b.a"
  kilni_cli_words_t cflags;
  kilni_cli_words_t libs;
  char root[4096];   // "" if there is no single folder
  char version[64];  // "13.0", "" if unknown
} kilni_cli_config_t;

size_t kilni_cli_config_component_count(const kilni_cli_config_t* config);
const kilni_cli_config_component_t* kilni_cli_config_component(
    const kilni_cli_config_t* config, size_t index);
size_t kilni_cli_config_piece_count(const kilni_cli_config_t* config);
const kilni_cli_config_piece_t* kilni_cli_config_piece(
    const kilni_cli_config_t* config, size_t index);

// Row, kind and path of a component.
const kiln_locate_entry_t* kilni_cli_config_entry(
    const kilni_cli_config_piece_t* piece);
uint32_t kilni_cli_config_kind(const kilni_cli_config_piece_t* piece);
const char* kilni_cli_config_path(const kilni_cli_config_piece_t* piece);

// True for the first component of its row; a library that two operands need
// occurs twice.
bool kilni_cli_config_is_first(const kilni_cli_config_t* config, size_t index);

// Finds everything, checks that it fits, and fills the lists.
bool kilni_cli_config_make(kilni_cli_config_t* config);
void kilni_cli_config_deinit(kilni_cli_config_t* config);

#endif  // KILN_SRC_CLI_CONFIG_PLAN_H_
