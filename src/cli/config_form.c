// SPDX-License-Identifier: Apache-2.0
//
// cli: a plan in the words of a shell, of make and of scripts.
#include "cli/config_form.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_piece_report.h"
#include "kiln/version.h"

// One variable of the shell and make forms. thread-compatible
typedef struct variable_t {
  const char* name;
  const kilni_cli_words_t* words;  // or
  const char* text;
} variable_t;

void kilni_cli_config_variable(const kilni_cli_config_piece_t* piece, char* out,
                               size_t capacity) {
  (void)snprintf(out, capacity, "KILN_CUDA_%s_%s",
                 kiln_locate_kind_name(kilni_cli_config_kind(piece)),
                 kiln_locate_entry_name(kilni_cli_config_entry(piece)));
  for (; *out != 0; out++) {
    if (*out == '+') {
      *out = 'X';
    } else if (isalnum((unsigned char)*out)) {
      *out = (char)toupper((unsigned char)*out);
    } else {
      *out = '_';
    }
  }
}

static bool config_form_add(kilni_cli_buffer_t* out, const char* text,
                            kilni_cli_error_t* error) {
  return kilni_cli_buffer_add(out, text, strlen(text), error);
}

// NAME='...' for a shell, NAME := ... for make. The words of a list are quoted
// for the shell that runs the compiler, in both.
static bool config_form_add_variable(const kilni_cli_config_t* config,
                                     bool make, const variable_t* v,
                                     kilni_cli_buffer_t* out) {
  kilni_cli_buffer_t value = {0};
  kilni_cli_error_t* e = config->error;
  bool ok = true;
  if (v->words != NULL) {
    ok = kilni_cli_config_words_text(&value, v->words, e);
  } else if (make && v->text[0] != 0) {
    ok = kilni_cli_config_quote(&value, KILNI_CONFIG_SHELL, v->text, e);
  } else {
    ok = config_form_add(&value, v->text, e);
  }
  const char* text = value.size == 0 ? "" : (const char*)value.data;
  ok = ok && config_form_add(out, v->name, e) &&
       config_form_add(out, make ? " := " : "=", e) &&
       kilni_cli_config_quote(
           out, make ? KILNI_CONFIG_MAKE : KILNI_CONFIG_SHELL, text, e) &&
       config_form_add(out, "\n", e);
  kilni_cli_buffer_deinit(&value);
  return ok;
}

static bool config_form_add_variables(const kilni_cli_config_t* config,
                                      bool make, kilni_cli_buffer_t* out) {
  const variable_t variables[] = {
      {"KILN_CUDA_VERSION", NULL, config->version},
      {"KILN_CUDA_ROOT", NULL, config->root},
      {"KILN_CUDA_INCLUDE_DIRS", &config->includes, NULL},
      {"KILN_CUDA_LIBRARY_DIRS", &config->library_dirs, NULL},
      {"KILN_CUDA_RPATH_DIRS", &config->rpaths, NULL},
      {"KILN_CUDA_CFLAGS", &config->cflags, NULL},
      {"KILN_CUDA_LIBS", &config->libs, NULL},
  };
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
    if (!config_form_add_variable(config, make, &variables[i], out)) {
      return false;
    }
  }
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    const kilni_cli_config_piece_t* piece = kilni_cli_config_piece(config, i);
    char name[256];
    if (piece->role == KILNI_CONFIG_NEEDED ||
        !kilni_cli_config_is_first(config, i)) {
      continue;
    }
    kilni_cli_config_variable(piece, name, sizeof(name));
    variable_t v = {name, NULL, kilni_cli_config_path(piece)};
    if (!config_form_add_variable(config, make, &v, out)) return false;
  }
  return true;
}

bool kilni_cli_config_shell_text(const kilni_cli_config_t* config,
                                 kilni_cli_buffer_t* out) {
  return config_form_add_variables(config, false, out);
}

bool kilni_cli_config_make_text(const kilni_cli_config_t* config,
                                kilni_cli_buffer_t* out) {
  return config_form_add(out, "KILN_CUDA_HASH := \\#\n", config->error) &&
         config_form_add_variables(config, true, out);
}

// ---- pkg-config ----

bool kilni_cli_config_pc_text(const kilni_cli_config_t* config,
                              kilni_cli_buffer_t* out) {
  const kilni_cli_words_t* lists[] = {&config->cflags, &config->libs};
  static const char* const names[] = {"Cflags: ", "Libs: "};
  kilni_cli_error_t* e = config->error;
  bool ok = config_form_add(out, "Name: CUDA", e);
  for (size_t i = 0; ok && i < kilni_cli_config_component_count(config); i++) {
    ok = config_form_add(out, " ", e) &&
         config_form_add(out, kilni_cli_config_component(config, i)->name, e);
  }
  ok = ok &&
       config_form_add(out,
                       "\nDescription: Components of a CUDA toolkit, by "
                       "kiln ",
                       e) &&
       config_form_add(out, kiln_version_string(), e) &&
       config_form_add(out, "\nVersion: ", e) &&
       config_form_add(out, config->version[0] == 0 ? "0" : config->version,
                       e) &&
       config_form_add(out, "\n", e);
  for (size_t i = 0; ok && i < 2; i++) {
    kilni_cli_buffer_t text = {0};
    ok = config_form_add(out, names[i], e) &&
         kilni_cli_config_words_text(&text, lists[i], e) &&
         kilni_cli_config_quote(out, KILNI_CONFIG_PC,
                                text.size == 0 ? "" : (const char*)text.data,
                                e) &&
         config_form_add(out, "\n", e);
    kilni_cli_buffer_deinit(&text);
  }
  return ok;
}

// ---- JSON ----

static json_t* config_form_words_json(const kilni_cli_words_t* words) {
  json_t* list = json_array();
  const char* at = NULL;
  while ((at = kilni_cli_words_next(words, at)) != NULL) {
    (void)json_array_append_new(list, kilni_cli_text_json(at));
  }
  return list;
}

static json_t* config_form_components_json(const kilni_cli_config_t* config) {
  json_t* list = json_array();
  for (size_t i = 0; i < kilni_cli_config_component_count(config); i++) {
    (void)json_array_append_new(
        list, kilni_cli_text_json(kilni_cli_config_component(config, i)->name));
  }
  return list;
}

json_t* kilni_cli_config_environment_json(const kilni_cli_config_t* config) {
  json_t* object = json_object();
  uint32_t count = kiln_toolkit_variable_count(config->toolkit);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_toolkit_variable_t* v =
        kiln_toolkit_variable(config->toolkit, i);
    (void)json_object_set_new(object, v->name, kilni_cli_text_json(v->value));
  }
  return object;
}

json_t* kilni_cli_config_json(const kilni_cli_config_t* config) {
  json_t* items = json_array();
  json_t* findings = json_array();
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    (void)json_array_append_new(
        items, kilni_cli_item_json(kilni_cli_config_piece(config, i)->item));
  }
  uint32_t count = kiln_compat_report_finding_count(config->report);
  for (uint32_t i = 0; i < count; i++) {
    (void)json_array_append_new(
        findings,
        kilni_cli_finding_json(kiln_compat_report_finding(config->report, i)));
  }
  return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "kiln",
                   kiln_version_string(), "version",
                   kilni_cli_text_json(config->version), "root",
                   kilni_cli_text_json(config->root), "components",
                   config_form_components_json(config), "include_dirs",
                   config_form_words_json(&config->includes), "library_dirs",
                   config_form_words_json(&config->library_dirs), "rpath_dirs",
                   config_form_words_json(&config->rpaths), "cflags",
                   config_form_words_json(&config->cflags), "libs",
                   config_form_words_json(&config->libs), "environment",
                   kilni_cli_config_environment_json(config), "items", items,
                   "findings", findings);
}
