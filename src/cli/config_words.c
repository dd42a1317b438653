// SPDX-License-Identifier: Apache-2.0
//
// cli: folders and flags of a plan.
#define _POSIX_C_SOURCE 200809L
#include "cli/config_words.h"
#include "kiln/locate.h"
#include "kiln/locate_catalog.h"
#include "kiln/toolkit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 8192

static bool fail_long(kilni_cli_config_t* config, const char* path) {
  return kilni_cli_fail(config->error, KILN_STATUS_LIMIT_EXCEEDED,
                        "move the toolkit to a shorter path",
                        "the path \"%.200s...\" is too long", path);
}

bool kilni_cli_config_folder(const kilni_cli_config_piece_t* piece, char* out,
                             size_t capacity) {
  const char* path = kilni_cli_config_path(piece);
  size_t size = strlen(path);
  if (kilni_cli_config_kind(piece) != KILN_LOCATE_KIND_HEADER) {
    const char* slash = strrchr(path, '/');
    if (slash != NULL) size = slash == path ? 1 : (size_t)(slash - path);
  }
  if (size >= capacity) return false;
  memcpy(out, path, size);
  out[size] = 0;
  return true;
}

// True for folders that every compiler searches: naming them would change
// their order.
static bool is_usual_include(const kilni_cli_config_t* config,
                             const char* folder) {
  const char* sysroot = config->where.options.system_root;
  size_t size = sysroot == NULL ? 0 : strlen(sysroot);
  while (size != 0 && sysroot[size - 1] == '/') size--;
  if (size != 0 && strncmp(folder, sysroot, size) == 0) folder += size;
  return strcmp(folder, "/usr/include") == 0 ||
         strcmp(folder, "/usr/local/include") == 0;
}

static bool is_linked(const kilni_cli_config_piece_t* piece) {
  uint32_t kind = kilni_cli_config_kind(piece);
  return piece->role != KILNI_CONFIG_NEEDED &&
         (kind == KILN_LOCATE_KIND_LIB || kind == KILN_LOCATE_KIND_STATIC ||
          kind == KILN_LOCATE_KIND_STUB);
}

// True for folders that the system's loader searches by default.
static bool is_loaders(const kilni_cli_config_piece_t* piece,
                       const char* folder) {
  static const char* const usual[] = {"/lib/", "/lib64/", "/usr/lib/",
                                      "/usr/lib64/"};
  uint32_t scope =
      kiln_locate_item_scope(kiln_toolkit_item_located(piece->item));
  if (scope == KILN_LOCATE_SCOPE_DISTRIBUTION ||
      kiln_locate_entry_class(kilni_cli_config_entry(piece)) ==
          KILN_LOCATE_CLASS_DRIVER) {
    return true;
  }
  for (size_t i = 0; i < 4; i++) {
    size_t size = strlen(usual[i]);
    const char* rest = folder + size;
    if (strncmp(folder, usual[i], size - 1) != 0) continue;
    if (folder[size - 1] == 0) return true;
    // A triple's folder, but no folder further down.
    if (folder[size - 1] == '/' && strchr(rest, '/') == NULL &&
        strstr(rest, "-linux-gnu") != NULL) {
      return true;
    }
  }
  return false;
}

// ---- Folders ----

static bool config_words_add_folders(kilni_cli_config_t* config,
                                     const kilni_cli_config_piece_t* piece) {
  char folder[PATH_BYTES];
  uint32_t kind = kilni_cli_config_kind(piece);
  kilni_cli_error_t* error = config->error;
  if (!kilni_cli_config_folder(piece, folder, sizeof(folder))) {
    return fail_long(config, kilni_cli_config_path(piece));
  }
  if (kind == KILN_LOCATE_KIND_HEADER) {
    return is_usual_include(config, folder) ||
           kilni_cli_words_add_once(&config->includes, folder, error);
  }
  if (piece->role == KILNI_CONFIG_NEEDED) {
    return kilni_cli_words_add_once(&config->rpath_links, folder, error);
  }
  if (!is_linked(piece)) return true;
  if (!kilni_cli_words_add_once(&config->library_dirs, folder, error)) {
    return false;
  }
  return kind != KILN_LOCATE_KIND_LIB || is_loaders(piece, folder) ||
         kilni_cli_words_add_once(&config->rpaths, folder, error);
}

// ---- Links ----

static bool exists(const char* folder, const char* name) {
  char path[PATH_BYTES];
  int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
  return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

// True if the linker would meet `name` in a folder before `folder`.
static bool is_shadowed(const kilni_cli_config_t* config, const char* folder,
                        const char* name) {
  const char* at = NULL;
  while ((at = kilni_cli_words_next(&config->library_dirs, at)) != NULL) {
    if (strcmp(at, folder) == 0) return false;
    if (exists(at, name)) return true;
  }
  return false;
}

// True if `name` in `folder` leads to the file at `path`, and not to one of
// another version.
static bool config_words_leads_to(const char* folder, const char* name,
                                  const char* path) {
  char link[PATH_BYTES];
  struct stat a, b;
  int n = snprintf(link, sizeof(link), "%s/%s", folder, name);
  return n > 0 && (size_t)n < sizeof(link) && stat(link, &a) == 0 &&
         stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// The word that links a file: by its short name where the folder has a link for
// development, else by its file name, which is all that wheels have; by its
// path if another folder comes first.
static bool add_link(kilni_cli_config_t* config,
                     const kilni_cli_config_piece_t* piece) {
  char folder[PATH_BYTES], dev[512], word[PATH_BYTES];
  const char* path = kilni_cli_config_path(piece);
  if (!kilni_cli_config_folder(piece, folder, sizeof(folder))) {
    return fail_long(config, path);
  }
  const char* file = strrchr(path, '/') + 1;
  const char* suffix = strstr(file, ".so");
  bool is_short = strncmp(file, "lib", 3) == 0 && suffix != NULL &&
                  (size_t)(suffix - file) + 4 < sizeof(dev);
  if (is_short) {
    (void)snprintf(dev, sizeof(dev), "%.*s.so", (int)(suffix - file), file);
    is_short = config_words_leads_to(folder, dev, path);
  }
  if (is_shadowed(config, folder, is_short ? dev : file)) {
    return kilni_cli_words_add(&config->links, path, config->error);
  }
  int n = is_short ? snprintf(word, sizeof(word), "-l%.*s",
                              (int)(suffix - file) - 3, file + 3)
                   : snprintf(word, sizeof(word), "-l:%s", file);
  if (n < 0 || (size_t)n >= sizeof(word)) return fail_long(config, path);
  return kilni_cli_words_add_once(&config->links, word, config->error);
}

// The flags among the needs of static libraries.
static bool config_words_add_system(kilni_cli_config_t* config,
                                    const char* needs) {
  for (;;) {
    char word[64];
    needs += strspn(needs, " ");
    size_t size = strcspn(needs, " ");
    if (size == 0) return true;
    (void)snprintf(word, sizeof(word), "%.*s", (int)size, needs);
    needs += size;
    if (word[0] == '-' &&
        !kilni_cli_words_add_once(&config->links, word, config->error)) {
      return false;
    }
  }
}

static size_t count_static(const kilni_cli_config_t* config) {
  size_t count = 0;
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    if (kilni_cli_config_kind(kilni_cli_config_piece(config, i)) ==
        KILN_LOCATE_KIND_STATIC) {
      count++;
    }
  }
  return count;
}

// Static libraries first, as a group if there are several, then the shared
// ones, then the system's.
static bool add_links(kilni_cli_config_t* config) {
  size_t statics = count_static(config);
  kilni_cli_error_t* error = config->error;
  for (int pass = 0; pass < 3; pass++) {
    bool group = pass == 0 && statics > 1;
    if (group &&
        !kilni_cli_words_add(&config->links, "-Wl,--start-group", error)) {
      return false;
    }
    for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
      const kilni_cli_config_piece_t* piece = kilni_cli_config_piece(config, i);
      bool is_static = kilni_cli_config_kind(piece) == KILN_LOCATE_KIND_STATIC;
      const char* name = kiln_locate_entry_name(kilni_cli_config_entry(piece));
      if (!is_linked(piece) || is_static == (pass == 1)) continue;
      if (!(pass == 2 ? config_words_add_system(
                            config, kilni_cli_config_static_needs(name))
                      : add_link(config, piece))) {
        return false;
      }
    }
    if (group &&
        !kilni_cli_words_add(&config->links, "-Wl,--end-group", error)) {
      return false;
    }
  }
  return true;
}

// ---- Flags ----

static bool add_flag(kilni_cli_config_t* config, kilni_cli_words_t* words,
                     const char* before, const char* folder) {
  char word[PATH_BYTES + 32];
  int n = snprintf(word, sizeof(word), "%s%s", before, folder);
  if (n < 0 || (size_t)n >= sizeof(word)) return fail_long(config, folder);
  return kilni_cli_words_add(words, word, config->error);
}

// A comma would end the folder in -Wl.
static bool add_linker_flag(kilni_cli_config_t* config, const char* flag,
                            const char* folder) {
  char before[64];
  if (strchr(folder, ',') == NULL) {
    (void)snprintf(before, sizeof(before), "-Wl,%s,", flag);
    return add_flag(config, &config->libs, before, folder);
  }
  return kilni_cli_words_add(&config->libs, "-Xlinker", config->error) &&
         kilni_cli_words_add(&config->libs, flag, config->error) &&
         kilni_cli_words_add(&config->libs, "-Xlinker", config->error) &&
         kilni_cli_words_add(&config->libs, folder, config->error);
}

static bool add_flags(kilni_cli_config_t* config) {
  const char* at = NULL;
  while ((at = kilni_cli_words_next(&config->includes, at)) != NULL) {
    if (!add_flag(config, &config->cflags, "-I", at)) return false;
  }
  while ((at = kilni_cli_words_next(&config->library_dirs, at)) != NULL) {
    if (!add_flag(config, &config->libs, "-L", at)) return false;
  }
  bool rpath = kilni_cli_option_value(config->call, "rpath") != NULL;
  while (rpath && (at = kilni_cli_words_next(&config->rpaths, at)) != NULL) {
    if (!add_linker_flag(config, "-rpath", at)) return false;
  }
  at = NULL;
  while ((at = kilni_cli_words_next(&config->rpath_links, at)) != NULL) {
    if (!add_linker_flag(config, "-rpath-link", at)) return false;
  }
  while ((at = kilni_cli_words_next(&config->links, at)) != NULL) {
    if (!kilni_cli_words_add(&config->libs, at, config->error)) return false;
  }
  return true;
}

// ---- Root and version ----

// The toolkit that contains a component: for a wheel the folder of its package,
// since site-packages is not a toolkit.
static bool config_words_root_of(const kilni_cli_config_piece_t* piece,
                                 char* out, size_t capacity) {
  kiln_locate_item_t* located = kiln_toolkit_item_located(piece->item);
  const char* root = kiln_locate_item_root(located);
  const char* path = kiln_locate_item_path(located);
  size_t size = strlen(root);
  const char* usr = strstr(path, "/usr/");
  if (kiln_locate_item_scope(located) == KILN_LOCATE_SCOPE_DISTRIBUTION) {
    size = usr == NULL ? 0 : (size_t)(usr - path) + 4;
  } else if (size > 1 && strncmp(path, root, size) == 0 &&
             strncmp(path + size, "/nvidia/", 8) == 0) {
    size += 8 + strcspn(path + size + 8, "/");
  } else {
    path = root;
  }
  if (size == 0 || size >= capacity) return false;
  memcpy(out, path, size);
  out[size] = 0;
  return true;
}

static void find_root(kilni_cli_config_t* config) {
  char root[sizeof(config->root)];
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    const kilni_cli_config_piece_t* piece = kilni_cli_config_piece(config, i);
    if (piece->role != KILNI_CONFIG_ASKED) continue;
    if (kiln_locate_entry_class(kilni_cli_config_entry(piece)) ==
        KILN_LOCATE_CLASS_DRIVER) {
      continue;
    }
    if (!config_words_root_of(piece, root, sizeof(root)) ||
        (config->root[0] != 0 && strcmp(root, config->root) != 0)) {
      config->root[0] = 0;
      return;
    }
    memcpy(config->root, root, sizeof(root));
  }
}

static void find_version(kilni_cli_config_t* config) {
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
      const kilni_cli_config_piece_t* piece = kilni_cli_config_piece(config, i);
      uint32_t line = kiln_toolkit_item_line(piece->item);
      char text[32];
      if (line == 0 || (pass == 0 && piece->role != KILNI_CONFIG_ASKED)) {
        continue;
      }
      kilni_cli_line_text(line, text);
      (void)snprintf(config->version, sizeof(config->version), "%s", text);
      return;
    }
  }
}

bool kilni_cli_config_words_fill(kilni_cli_config_t* config) {
  for (size_t i = 0; i < kilni_cli_config_piece_count(config); i++) {
    if (!config_words_add_folders(config, kilni_cli_config_piece(config, i))) {
      return false;
    }
  }
  find_root(config);
  find_version(config);
  return add_links(config) && add_flags(config);
}
