// SPDX-License-Identifier: Apache-2.0
//
// cli: compares the places that a user names for a toolkit with where it was
// found.
#define _POSIX_C_SOURCE 200809L
#include "cli/config_places.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli_report.h"
#include "kiln/locate.h"

#define BIT(scope) KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_##scope)

// The scopes searched after the two variables.
static const uint32_t kLater = BIT(LOADER) | BIT(LOADER_ROOT) | BIT(SYSTEM) |
                               BIT(DISTRIBUTION) | BIT(HPC_SDK);

// Whether a requested component came from one of these scopes.
static bool came_from(const kilni_cli_config_t* config, uint32_t scopes) {
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    const kilni_cli_config_piece_t* piece = kilni_cli_config_piece(config, i);
    uint32_t scope =
        kiln_locate_item_scope(kiln_toolkit_item_located(piece->item));
    if ((scopes & KILN_LOCATE_SCOPE_BIT(scope)) != 0) return true;
  }
  return false;
}

// The last folder that an option of the call names; NULL: none.
static const char* config_places_named(const kilni_cli_config_t* config,
                                       const char* option) {
  const char* path = NULL;
  for (size_t i = 0; i < config->call->given_count; i++) {
    const kilni_cli_given_t* given = &config->call->given[i];
    if (strcmp(given->option->name, option) == 0 &&
        !kilni_cli_option_is_bare(given)) {
      path = given->value;
    }
  }
  return path;
}

static bool config_places_check_options(const kilni_cli_config_t* config) {
  static const char* const kOptions[] = {"root", "site", "python"};
  // Scopes that the user names count like the folder.
  const kiln_locate_options_t* o = &config->where.options;
  uint32_t wanted = BIT(OVERRIDE) | BIT(ROOT) | BIT(WHEEL) | o->require_scopes |
                    o->prefer_scopes;
  if (kilni_cli_config_piece_count(config) == 0 || came_from(config, wanted)) {
    return true;
  }
  for (size_t i = 0; i < sizeof(kOptions) / sizeof(kOptions[0]); i++) {
    const char* path = config_places_named(config, kOptions[i]);
    if (path == NULL) continue;
    (void)kilni_cli_fail(
        config->error, KILN_STATUS_NOT_FOUND, NULL,
        "--%s names \"%s\", which lacks the requested components; \"%s\" has "
        "them",
        kOptions[i], path,
        kilni_cli_config_path(kilni_cli_config_piece(config, 0)));
    kilni_cli_error_fix(config->error,
                        "name a folder that has them, or omit --%s to search "
                        "the usual places",
                        kOptions[i]);
    return false;
  }
  return true;
}

// The variable in effect, NULL if none; its value in `*out_path`.
static const char* variable_of(const kilni_cli_config_t* config,
                               const char** out_path) {
  static const struct {
    const char* name;
    uint32_t scope;
  } kVariables[] = {{"CUDA_PATH", BIT(CUDA_PATH)},
                    {"CUDA_HOME", BIT(CUDA_HOME)}};
  const kiln_locate_options_t* o = &config->where.options;
  *out_path = NULL;
  if (o->hermetic == KILN_SWITCH_ON || o->secure == KILN_SWITCH_ON ||
      o->system_root != NULL) {
    return NULL;
  }
  for (size_t i = 0; i < sizeof(kVariables) / sizeof(kVariables[0]); i++) {
    const char* value = getenv(kVariables[i].name);
    if (value == NULL || value[0] == 0) continue;
    bool counts = (o->forbid_scopes & kVariables[i].scope) == 0 &&
                  (o->require_scopes == 0 ||
                   (o->require_scopes & kVariables[i].scope) != 0);
    // CUDA_PATH overrides CUDA_HOME.
    *out_path = value;
    return counts ? kVariables[i].name : NULL;
  }
  return NULL;
}

static bool config_places_is_folder(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool check_variable(const kilni_cli_config_t* config) {
  const char* path;
  const char* name = variable_of(config, &path);
  uint32_t later = kLater & ~config->where.options.prefer_scopes;
  if (name == NULL || !came_from(config, later)) return true;
  const char* found = kilni_cli_config_path(kilni_cli_config_piece(config, 0));
  if (config_places_is_folder(path)) {
    kilni_cli_note(
        "%s names \"%s\", which lacks the requested components; \"%s\" has it",
        name, path, found);
    return true;
  }
  (void)kilni_cli_fail(config->error, KILN_STATUS_NOT_FOUND, NULL,
                       "the variable %s names \"%s\", which is not a folder; "
                       "the requested components are at \"%s\"",
                       name, path, found);
  kilni_cli_error_fix(config->error,
                      "set %s to the folder of a toolkit, or unset it to "
                      "search the usual places",
                      name);
  return false;
}

bool kilni_cli_config_places_check(const kilni_cli_config_t* config) {
  return config_places_check_options(config) && check_variable(config);
}

void kilni_cli_config_places_explain(const kilni_cli_config_t* config) {
  const char* path;
  const char* name = variable_of(config, &path);
  if (name == NULL || config_places_is_folder(path)) return;
  kilni_cli_error_prefix(
      config->error, "the variable %s names \"%.200s\", which is not a folder",
      name, path);
  kilni_cli_error_fix(config->error,
                      "set %s to the folder of a toolkit, or unset it to "
                      "search the usual places",
                      name);
}
