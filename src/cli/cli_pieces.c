// SPDX-License-Identifier: Apache-2.0
//
// cli: components of a toolkit on the command line.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli_pieces.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_own_site.h"
#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/locate_catalog.h"

#define PATH_BYTES 8192

// ---- Folders ----

// A place that the user names must exist: else the answer would silently come
// from another one.
static bool pieces_check_place(const char* option, const char* path,
                               kilni_cli_error_t* error) {
  struct stat info;
  bool wants_folder = strcmp(option, "python") != 0;
  bool there = stat(path, &info) == 0;
  // One without search permission is of no use either.
  if (!there || (S_ISDIR(info.st_mode) && access(path, X_OK) != 0)) {
    return kilni_cli_fail(
        error,
        errno == EACCES ? KILN_STATUS_PERMISSION_DENIED : KILN_STATUS_NOT_FOUND,
        errno == EACCES ? "ask its owner, or name another one"
                        : "check the spelling of the path, or omit the option "
                          "to search the usual places",
        "--%s names \"%s\", which cannot be read: %s", option, path,
        strerror(errno));
  }
  if (S_ISDIR(info.st_mode) == wants_folder) return true;
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        wants_folder ? "name the folder that contains it"
                                     : "name the program in it: DIR/bin/python",
                        "--%s names \"%s\", which is not a %s", option, path,
                        wants_folder ? "folder" : "program");
}

// Adds a path, made absolute by the working directory that the user sees: the
// library takes only absolute paths.
static bool pieces_add_path(kilni_cli_where_t* where, const char* option,
                            const char* path, kilni_cli_error_t* error) {
  char here[PATH_BYTES];
  if (path[0] == 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "name a path, or omit the option",
                          "the option --%s needs a path", option);
  }
  if (path[0] != '/') {
    if (getcwd(here, sizeof(here)) == NULL) {
      return kilni_cli_fail(error, KILN_STATUS_IO_ERROR,
                            "give an absolute path",
                            "the path of the working directory is unknown");
    }
    if (!kilni_cli_buffer_add(&where->texts, here, strlen(here), error) ||
        !kilni_cli_buffer_add(&where->texts, "/", 1, error)) {
      return false;
    }
  }
  return kilni_cli_buffer_add(&where->texts, path, strlen(path) + 1, error);
}

// Adds the values of an option; their count in `*count`.
static bool add_paths(kilni_cli_where_t* where, const kilni_cli_call_t* call,
                      const char* option, uint32_t* count,
                      kilni_cli_error_t* error) {
  for (size_t i = 0; i < call->given_count; i++) {
    if (strcmp(call->given[i].option->name, option) != 0) continue;
    if (kilni_cli_option_is_bare(&call->given[i])) continue;
    const char* path = call->given[i].value;
    // Below --sysroot the library knows better where that is.
    if (path[0] != 0 && kilni_cli_option_value(call, "sysroot") == NULL &&
        !pieces_check_place(option, path, error)) {
      return false;
    }
    if (!pieces_add_path(where, option, path, error)) return false;
    ++*count;
  }
  return true;
}

static bool point_at_paths(kilni_cli_where_t* where, size_t sysroot_count,
                           kilni_cli_error_t* error) {
  kiln_locate_options_t* o = &where->options;
  size_t count =
      o->root_count + o->site_count + o->python_count + sysroot_count;
  if (count == 0) return true;
  if (!kilni_cli_buffer_resize(&where->paths, count * sizeof(char*), error)) {
    return false;
  }
  const char** paths = (const char**)(void*)where->paths.data;
  const char* at = (const char*)where->texts.data;
  for (size_t i = 0; i < count; i++) {
    paths[i] = at;
    at += strlen(at) + 1;
  }
  o->roots = paths;
  o->sites = paths + o->root_count;
  o->pythons = paths + o->root_count + o->site_count;
  if (sysroot_count != 0) o->system_root = paths[count - 1];
  return true;
}

// The last --sysroot, an option of some commands only.
static bool add_sysroot(kilni_cli_where_t* where, const kilni_cli_call_t* call,
                        size_t* out_count, kilni_cli_error_t* error) {
  const char* path = kilni_cli_option_value(call, "sysroot");
  *out_count = path != NULL ? 1 : 0;
  if (path == NULL) return true;
  return (path[0] == 0 || pieces_check_place("sysroot", path, error)) &&
         pieces_add_path(where, "sysroot", path, error);
}

// Without --site and --python the wheels are those that the command was
// installed beside, if any. In an isolated build there are no others, and outer
// environments, active or conda's, do not belong to the build.
static bool add_own_site(kilni_cli_where_t* where, kilni_cli_error_t* error) {
  char site[PATH_BYTES];
  bool isolated = false;
  kiln_locate_options_t* o = &where->options;
  if (o->site_count != 0 || o->python_count != 0 ||
      o->hermetic == KILN_SWITCH_ON || o->secure == KILN_SWITCH_ON ||
      !kilni_cli_own_site(site, sizeof(site), &isolated)) {
    return true;
  }
  uint32_t conda = KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_CONDA);
  if (isolated && ((o->require_scopes | o->prefer_scopes) & conda) == 0) {
    o->forbid_scopes |= conda;
  }
  o->site_count++;
  return pieces_add_path(where, "site", site, error);
}

// ---- Scopes ----

static bool fail_scope(const char* text, size_t size,
                       kilni_cli_error_t* error) {
  const char* words[32];
  size_t count = 0;
  for (uint32_t i = 1; i < 32; i++) {
    const char* word = kiln_locate_scope_name(i);
    if (word[0] != '?') words[count++] = word;
  }
  char given[64];
  (void)snprintf(given, sizeof(given), "%.*s", (int)(size > 60 ? 60 : size),
                 text);
  const char* near = kilni_cli_nearest(given, words, count);
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                       "write one of the scopes: " KILNI_CLI_SCOPES,
                       "there is no scope \"%s\"", given);
  if (near != NULL) {
    kilni_cli_error_fix(
        error, "write \"%s\"; the scopes are: " KILNI_CLI_SCOPES, near);
  }
  return false;
}

static bool add_scopes(const kilni_cli_call_t* call, const char* option,
                       uint32_t* mask, kilni_cli_error_t* error) {
  for (size_t i = 0; i < call->given_count; i++) {
    if (strcmp(call->given[i].option->name, option) != 0) continue;
    const char* text = call->given[i].value;
    for (;;) {
      size_t size = strcspn(text, ",");
      kiln_string_view_t word = {text, size};
      uint32_t scope = kiln_locate_scope_parse(word);
      if (scope == 0) return fail_scope(text, size, error);
      *mask |= KILN_LOCATE_SCOPE_BIT(scope);
      if (text[size] == 0) break;
      text += size + 1;
    }
  }
  return true;
}

bool kilni_cli_where_read(kilni_cli_where_t* where,
                          const kilni_cli_call_t* call,
                          kilni_cli_error_t* error) {
  size_t sysroot_count = 0;
  memset(where, 0, sizeof(*where));
  kiln_locate_options_t* o = &where->options;
  *o = kiln_locate_options_default();
  o->target = kilni_cli_option_value(call, "target");
  if (kilni_cli_option_value(call, "secure") != NULL) {
    o->secure = KILN_SWITCH_ON;
  }
  if (kilni_cli_option_value(call, "hermetic") != NULL) {
    o->hermetic = KILN_SWITCH_ON;
  }
  if (kilni_cli_option_value(call, "records") != NULL) {
    o->records = KILN_SWITCH_ON;
  }
  bool ok = add_scopes(call, "scope", &o->require_scopes, error) &&
            add_scopes(call, "require", &o->require_scopes, error) &&
            add_scopes(call, "prefer", &o->prefer_scopes, error) &&
            add_scopes(call, "forbid", &o->forbid_scopes, error) &&
            add_paths(where, call, "root", &o->root_count, error) &&
            add_paths(where, call, "site", &o->site_count, error) &&
            add_paths(where, call, "python", &o->python_count, error) &&
            add_own_site(where, error) &&
            add_sysroot(where, call, &sysroot_count, error) &&
            point_at_paths(where, sysroot_count, error);
  return ok;
}

void kilni_cli_where_deinit(kilni_cli_where_t* where) {
  kilni_cli_buffer_deinit(&where->paths);
  kilni_cli_buffer_deinit(&where->texts);
}

// ---- Names ----

bool kilni_cli_piece_read(kilni_cli_piece_t* piece, const char* text,
                          size_t size, uint32_t kind,
                          kilni_cli_error_t* error) {
  const char* colon = memchr(text, ':', size);
  const char* name = text;
  if (colon != NULL) {
    kiln_string_view_t word = {text, (size_t)(colon - text)};
    kind = kiln_locate_kind_parse(word);
    name = colon + 1;
  }
  size_t length = size - (size_t)(name - text);
  if (kind == 0) {
    return kilni_cli_fail(
        error, KILN_STATUS_INVALID_ARGUMENT,
        "write KIND:NAME, e.g. lib:nvrtc; the kinds are lib, header, static, "
        "bitcode, binary and stub",
        "\"%.*s\" has no kind", (int)(size > 200 ? 200 : size), text);
  }
  if (length == 0 || length >= sizeof(piece->name)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "use a name that \"kiln find --all\" lists",
                          "\"%.*s\" has a name that is not in the catalog",
                          (int)(size > 200 ? 200 : size), text);
  }
  piece->kind = kind;
  memcpy(piece->name, name, length);
  piece->name[length] = 0;
  return true;
}

void kilni_cli_line_text(uint32_t line, char out[32]) {
  out[0] = 0;
  if (line == 0) return;
  (void)snprintf(out, 32, "%" PRIu32 ".%" PRIu32, kiln_compat_line_major(line),
                 kiln_compat_line_minor(line));
}

bool kilni_cli_mode_read(const kilni_cli_call_t* call, uint32_t* out_mode,
                         kilni_cli_error_t* error) {
  const char* text = kilni_cli_option_value(call, "mode");
  *out_mode = KILN_COMPAT_MODE_DEFAULT;
  if (text == NULL) return true;
  const char* word = strcmp(text, "best-effort") == 0 ? "best_effort" : text;
  for (uint32_t i = KILN_COMPAT_MODE_OFF; i <= KILN_COMPAT_MODE_STRICT; i++) {
    if (strcmp(word, kiln_compat_mode_word(i)) == 0) *out_mode = i;
  }
  return *out_mode != KILN_COMPAT_MODE_DEFAULT ||
         kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "write strict, best-effort, warn or off",
                        "there is no mode \"%s\"", text);
}
