// SPDX-License-Identifier: Apache-2.0
//
// locate: which site-packages folders there are, without running Python.
//
// The rules are those of Python's own `site` module: where a program's prefix
// is, what a virtual environment inherits, and the order of the folders.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "locate/locate_inside.h"
#include "locate/locate_pyvenv.h"

enum { VERSION_BYTES = 32 };

// What is being worked out. one-thread
typedef struct sites_t {
  kiln_locate_t* locate;
  kilni_dispatch_place_t* place;
  const char* via;
  const char* prefix;              // whose versions are visited
  char python[2 * VERSION_BYTES];  // "python3.11"; "" where it is not known
  bool user_site;                  // the user's own folder counts
  bool found_version;
} sites_t;

// "a/b" in a buffer; "" where it does not fit.
static const char* sites_join(char out[KILNI_DISK_PATH_LIMIT], const char* a,
                              const char* b) {
  size_t a_size = strlen(a);
  size_t b_size = strlen(b);
  out[0] = 0;
  if (a_size + b_size + 2 > KILNI_DISK_PATH_LIMIT) return out;
  if (a_size == 1 && a[0] == '/') a_size = 0;
  memcpy(out, a, a_size);
  out[a_size] = '/';
  memcpy(out + a_size + 1, b, b_size + 1);
  return out;
}

// Adds a folder if it is there, and else a note.
static kiln_status_t add_if_there(sites_t* sites, const char* path,
                                  const char* via, bool* out_there) {
  kilni_locate_disk_node_t* node = NULL;
  if (out_there != NULL) *out_there = false;
  if (path[0] == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_locate_disk_look(&sites->locate->disk, path, &node));
  if (node->kind != KILNI_FILE_DIR) {
    char why[128];
    kilni_locate_trail_add(&sites->place->notes, path,
                           kilni_locate_disk_why(node, true, sizeof(why), why));
    return kiln_ok();
  }
  if (out_there != NULL) *out_there = true;
  return kilni_locate_place_add(sites->locate, sites->place, path, via,
                                KILNI_LAYOUT_WHEEL);
}

// The user's own folder for one Python.
static kiln_status_t add_user_site(sites_t* sites, const char* python) {
  const kiln_locate_t* locate = sites->locate;
  const char* home = kilni_locate_place_env(locate, KILNI_ENV_HOME);
  if (!sites->user_site || home == NULL || home[0] != '/' ||
      kilni_locate_place_env(locate, KILNI_ENV_PYTHONNOUSERSITE) != NULL) {
    return kiln_ok();
  }
  char path[KILNI_DISK_PATH_LIMIT];
  char above[KILNI_DISK_PATH_LIMIT];
  sites_join(path, home, ".local/lib");
  sites_join(above, path, python);
  return add_if_there(sites, sites_join(path, above, "site-packages"),
                      "user site", NULL);
}

// <prefix>/<lib>/<python>/<name>
static kiln_status_t sites_add_library(sites_t* sites, const char* prefix,
                                       const char* lib, const char* python,
                                       const char* name, bool* out_there) {
  char path[KILNI_DISK_PATH_LIMIT];
  char above[KILNI_DISK_PATH_LIMIT];
  sites_join(path, prefix, lib);
  sites_join(above, path, python);
  return add_if_there(sites, sites_join(path, above, name), sites->via,
                      out_there);
}

// The folders of one Python ("python3.11") below a prefix.
static kiln_status_t sites_add_version(sites_t* sites, const char* prefix,
                                       const char* python, bool* out_there) {
  bool there = false;
  KILNI_RETURN_IF_ERROR(
      sites_add_library(sites, prefix, "lib", python, "site-packages", &there));
  // lib64 is a folder of its own on some systems and a link to lib on others.
  char lib64[KILNI_DISK_PATH_LIMIT];
  bool is_link = kilni_base_link_is(sites_join(lib64, prefix, "lib64"));
  bool there_too = false;
  if (!is_link) {
    KILNI_RETURN_IF_ERROR(sites_add_library(sites, prefix, "lib64", python,
                                            "site-packages", &there_too));
  }
  if (out_there != NULL) *out_there |= there || there_too;
  return kiln_ok();
}

// Debian keeps what its packages install, and what the administrator does,
// apart, and under another name.
static kiln_status_t add_debian(sites_t* sites, const char* python) {
  const char* usr = NULL;
  const char* local = NULL;
  kiln_locate_t* locate = sites->locate;
  KILNI_RETURN_IF_ERROR(kilni_locate_place_below_system(locate, "/usr", &usr));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_place_below_system(locate, "/usr/local", &local));
  KILNI_RETURN_IF_ERROR(
      sites_add_library(sites, local, "lib", python, "dist-packages", NULL));
  KILNI_RETURN_IF_ERROR(
      sites_add_library(sites, usr, "lib", "python3", "dist-packages", NULL));
  return sites_add_library(sites, usr, "lib", python, "dist-packages", NULL);
}

static bool is_system_prefix(sites_t* sites, const char* prefix) {
  size_t root = strlen(sites->locate->system_root);
  return strncmp(prefix, sites->locate->system_root, root) == 0 &&
         strcmp(prefix + root, "/usr") == 0;
}

// One Python ("python3.11") that is not a virtual environment.
static kiln_status_t add_base_version(sites_t* sites, const char* prefix,
                                      const char* python) {
  KILNI_RETURN_IF_ERROR(add_user_site(sites, python));
  KILNI_RETURN_IF_ERROR(sites_add_version(sites, prefix, python, NULL));
  if (!is_system_prefix(sites, prefix)) return kiln_ok();
  return add_debian(sites, python);
}

static kiln_status_t on_base_version(const char* name, void* user) {
  sites_t* sites = user;
  sites->found_version = true;
  return add_base_version(sites, sites->prefix, name);
}

// "python3.11" where <prefix>/bin/python3 is a link to it.
static void read_default(const char* prefix, char out[2 * VERSION_BYTES]) {
  char path[KILNI_DISK_PATH_LIMIT];
  char target[KILNI_DISK_PATH_LIMIT];
  out[0] = 0;
  sites_join(path, prefix, "bin/python3");
  if (!kilni_base_link_read(path, sizeof(target), target)) return;
  const char* slash = strrchr(target, '/');
  const char* name = slash ? slash + 1 : target;
  if (strncmp(name, "python3.", 8) != 0 || strlen(name) > VERSION_BYTES) return;
  memcpy(out, name, strlen(name) + 1);
}

// A Python that is not a virtual environment, by its prefix: the known version,
// else that of `python3`, else every one in the prefix.
static kiln_status_t add_base(sites_t* sites, const char* prefix) {
  char python[2 * VERSION_BYTES];
  if (sites->python[0] == 0) {
    read_default(prefix, python);
    if (python[0] != 0) return add_base_version(sites, prefix, python);
  }
  if (sites->python[0] != 0) {
    return add_base_version(sites, prefix, sites->python);
  }
  char lib[KILNI_DISK_PATH_LIMIT];
  sites->prefix = prefix;
  sites->found_version = false;
  KILNI_RETURN_IF_ERROR(kilni_locate_place_each_version(
      sites->locate, sites_join(lib, prefix, "lib"), "python3.", "",
      on_base_version, sites));
  if (!sites->found_version) {
    kilni_locate_trail_add(&sites->place->notes, lib, "no python3.* folder");
  }
  return kiln_ok();
}

// ---- Virtual environments ----

static kiln_status_t on_environment_version(const char* name, void* user) {
  sites_t* sites = user;
  return sites_add_version(sites, sites->prefix, name, &sites->found_version);
}

// The folders of an environment; `sites->python` names it where possible.
static kiln_status_t add_environment(sites_t* sites, const char* prefix) {
  bool there = false;
  if (sites->python[0] != 0) {
    KILNI_RETURN_IF_ERROR(
        sites_add_version(sites, prefix, sites->python, &there));
  }
  if (there) return kiln_ok();
  // Another Python has other names: pypy3.10, python3.13t.
  char lib[KILNI_DISK_PATH_LIMIT];
  sites->prefix = prefix;
  sites->found_version = false;
  KILNI_RETURN_IF_ERROR(kilni_locate_place_each_version(
      sites->locate, sites_join(lib, prefix, "lib"), "py", "",
      on_environment_version, sites));
  if (!sites->found_version) {
    kilni_locate_trail_add(&sites->place->notes, lib,
                           "no folder of a Python with site-packages");
  }
  return kiln_ok();
}

// Remembers "python3.11" for the version "3.11".
static void set_version(sites_t* sites, kiln_string_view_t version) {
  sites->python[0] = 0;
  if (version.size == 0 || version.size > VERSION_BYTES) return;
  snprintf(sites->python, sizeof(sites->python), "python%.*s",
           KILNI_SV(version));
}

// What an environment inherits from the Python it was made with.
static kiln_status_t add_inherited(sites_t* sites, kiln_string_view_t home) {
  char prefix[KILNI_DISK_PATH_LIMIT];
  if (home.size == 0 || home.data[0] != '/' || home.size >= sizeof(prefix)) {
    return kiln_ok();
  }
  memcpy(prefix, home.data, home.size);
  prefix[home.size] = 0;
  char* slash = strrchr(prefix, '/');
  *slash = 0;
  // `home` is the folder of a program: its prefix is one up.
  return add_base(sites, slash == prefix ? "/" : prefix);
}

static kiln_status_t read_config(sites_t* sites, const char* path,
                                 uint8_t** out_data, size_t* out_size) {
  kiln_status_t status = kilni_base_file_read(
      sites->locate->allocator, path, KILNI_PYVENV_LIMIT, out_data, out_size);
  kiln_status_code_t code = kiln_status_code(status);
  if (code == KILN_STATUS_OK || code == KILN_STATUS_OUT_OF_MEMORY) {
    return status;
  }
  if (code != KILN_STATUS_NOT_FOUND) {
    kilni_locate_trail_add(&sites->place->notes, path,
                           code == KILN_STATUS_LIMIT_EXCEEDED
                               ? "too large for its purpose"
                               : "cannot be read");
  }
  kiln_status_free(status);
  return kiln_ok();
}

// A virtual environment, or whatever else is at `prefix`. `out_is_one` may be
// NULL.
static kiln_status_t add_prefix(sites_t* sites, const char* prefix,
                                bool only_environment, bool* out_is_one) {
  char path[KILNI_DISK_PATH_LIMIT];
  uint8_t* data = NULL;
  size_t size = 0;
  if (out_is_one != NULL) *out_is_one = false;
  KILNI_RETURN_IF_ERROR(
      read_config(sites, sites_join(path, prefix, "pyvenv.cfg"), &data, &size));
  if (data == NULL && only_environment) return kiln_ok();
  if (out_is_one != NULL) *out_is_one = data != NULL;
  kilni_locate_pyvenv_t config;
  kilni_locate_pyvenv_parse(kilni_base_sv_make((const char*)data, size),
                            &config);
  set_version(sites, config.version);
  kiln_status_t status = add_environment(sites, prefix);
  if (kiln_status_is_ok(status) && config.system_sites) {
    sites->user_site = true;
    status = add_inherited(sites, config.home);
  }
  if (data != NULL) kilni_base_file_free(sites->locate->allocator, data, size);
  return status;
}

// ---- Programs ----

// "3.11" of a program that is called "python3.11".
static void version_of_program(sites_t* sites, const char* real) {
  const char* name = strrchr(real, '/');
  name = name ? name + 1 : real;
  kiln_string_view_t version = {NULL, 0};
  if (strncmp(name, "python3.", 8) == 0) version = kilni_base_sv(name + 6);
  set_version(sites, version);
}

static bool sites_cut_last(char* path) {
  char* slash = strrchr(path, '/');
  if (slash == NULL || slash == path) return false;
  *slash = 0;
  return true;
}

static kiln_status_t add_python(sites_t* sites, const char* program) {
  kilni_locate_disk_node_t* node = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_disk_look(&sites->locate->disk, program, &node));
  if (node->kind != KILNI_FILE_REGULAR) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "the Python program \"%s\" does not exist",
                   program),
        "name a Python program by its absolute path");
  }
  // The mark of an environment is beside the program or one folder up, and the
  // program itself is a link that leads out of it.
  char prefix[KILNI_DISK_PATH_LIMIT];
  sites_join(prefix, program, "");
  // Two parts are cut off.
  // NOLINTNEXTLINE(misc-redundant-expression)
  if (!sites_cut_last(prefix) || !sites_cut_last(prefix)) return kiln_ok();
  bool is_one = false;
  char above[KILNI_DISK_PATH_LIMIT];
  memcpy(above, prefix, sizeof(above));
  KILNI_RETURN_IF_ERROR(add_prefix(sites, prefix, true, &is_one));
  if (is_one || !sites_cut_last(above)) return kiln_ok();
  KILNI_RETURN_IF_ERROR(add_prefix(sites, above, true, &is_one));
  if (is_one) return kiln_ok();
  const char* real = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_disk_real(&sites->locate->disk, program, &real));
  version_of_program(sites, real);
  sites_join(prefix, real, "");
  // Again two parts.
  // NOLINTNEXTLINE(misc-redundant-expression)
  if (!sites_cut_last(prefix) || !sites_cut_last(prefix)) return kiln_ok();
  sites->user_site = true;
  return add_base(sites, sites_cut_last(prefix) ? prefix : "/");
}

// ---- All of them ----

// Debian's and the user's own: without an active environment.
static kiln_status_t sites_add_system(sites_t* sites) {
  const char* prefixes[] = {"/usr/local", "/usr"};
  sites->via = "system Python";
  sites->user_site = true;
  for (size_t i = 0; i < 2; i++) {
    const char* prefix = NULL;
    KILNI_RETURN_IF_ERROR(
        kilni_locate_place_below_system(sites->locate, prefixes[i], &prefix));
    KILNI_RETURN_IF_ERROR(add_base(sites, prefix));
  }
  return kiln_ok();
}

static kiln_status_t add_active(sites_t* sites) {
  const kiln_locate_t* locate = sites->locate;
  const char* environment =
      kilni_locate_place_env(locate, KILNI_ENV_VIRTUAL_ENV);
  if (environment != NULL && environment[0] == '/') {
    sites->via = "VIRTUAL_ENV";
    return add_prefix(sites, environment, false, NULL);
  }
  kilni_locate_trail_add(&sites->place->notes,
                         environment != NULL ? environment : "VIRTUAL_ENV",
                         environment != NULL ? "not absolute" : "not set");
  const char* conda = kilni_locate_place_env(locate, KILNI_ENV_CONDA_PREFIX);
  if (conda != NULL && conda[0] == '/') {
    sites->via = "CONDA_PREFIX";
    sites->user_site = true;
    return add_base(sites, conda);
  }
  return sites_add_system(sites);
}

static kiln_status_t add_python_path(sites_t* sites) {
  const char* text =
      kilni_locate_place_env(sites->locate, KILNI_ENV_PYTHONPATH);
  kiln_string_view_t rest = kilni_base_sv(text);
  kiln_string_view_t part;
  while (kilni_base_sv_split(&rest, ':', &part)) {
    char path[KILNI_DISK_PATH_LIMIT];
    if (part.size >= sizeof(path)) continue;
    if (part.size > 0) memcpy(path, part.data, part.size);
    path[part.size] = 0;
    KILNI_RETURN_IF_ERROR(kilni_locate_place_add(
        sites->locate, sites->place, part.size > 0 ? path : "PYTHONPATH",
        "PYTHONPATH", KILNI_LAYOUT_WHEEL));
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_sites_fill(kiln_locate_t* locate,
                                      kilni_dispatch_place_t* place) {
  sites_t sites;
  memset(&sites, 0, sizeof(sites));
  sites.locate = locate;
  sites.place = place;
  sites.via = "";
  for (uint32_t i = 0; i < locate->site_count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_locate_place_add(
        locate, place, locate->sites[i], "", KILNI_LAYOUT_WHEEL));
  }
  for (uint32_t i = 0; i < locate->python_count; i++) {
    sites.user_site = false;
    KILNI_RETURN_IF_ERROR(add_python(&sites, locate->pythons[i]));
  }
  if (locate->site_count + locate->python_count > 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(add_active(&sites));
  return add_python_path(&sites);
}
