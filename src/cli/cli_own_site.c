// SPDX-License-Identifier: Apache-2.0
//
// cli: the Python environment that the command was installed into.
//
// An isolated build has the wheels of build-system.requires in an environment
// that no variable names: pip's overlay has no pyvenv.cfg, and VIRTUAL_ENV is
// still that of the outer environment. But the command is called from there.
#define _XOPEN_SOURCE 700
#include "cli/cli_own_site.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096

static bool own_site_is_folder(const char* folder, const char* name) {
  char path[PATH_BYTES];
  struct stat info;
  int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
  return n > 0 && (size_t)n < sizeof(path) && stat(path, &info) == 0 &&
         S_ISDIR(info.st_mode);
}

// True if a folder of `folder` begins with `start` and ends with `end`; its
// name in `out`.
static bool has_entry(const char* folder, const char* start, const char* end,
                      char* out, size_t capacity) {
  DIR* dir = opendir(folder);
  bool found = false;
  if (dir == NULL) return false;
  for (struct dirent* e = readdir(dir); e != NULL && !found; e = readdir(dir)) {
    size_t size = strlen(e->d_name);
    found = size >= strlen(start) + strlen(end) && size < capacity &&
            strncmp(e->d_name, start, strlen(start)) == 0 &&
            strcmp(e->d_name + size - strlen(end), end) == 0;
    if (found) memcpy(out, e->d_name, size + 1);
  }
  (void)closedir(dir);
  return found;
}

// True for a file of any kind in `folder`.
static bool has_file(const char* folder, const char* name) {
  char path[PATH_BYTES];
  struct stat info;
  int n = snprintf(path, sizeof(path), "%s/%s", folder, name);
  return n > 0 && (size_t)n < sizeof(path) && lstat(path, &info) == 0;
}

// Whether `folder` is what the variable names, with `name` in it if that is
// not NULL.
static bool own_site_is_named(const char* folder, const char* variable,
                              const char* name) {
  char path[PATH_BYTES];
  struct stat a, b;
  const char* value = getenv(variable);
  if (value == NULL || value[0] == 0) return false;
  int n = snprintf(path, sizeof(path), "%s%s%s", value, name == NULL ? "" : "/",
                   name == NULL ? "" : name);
  return n > 0 && (size_t)n < sizeof(path) && stat(path, &a) == 0 &&
         stat(folder, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Whether this is an isolated build and `prefix` its environment: a frontend
// calls the backend, and the command is in an environment that is neither the
// active one nor that of a Python installation. An overlay has no interpreter;
// nor has the user's site.
static bool is_isolated(const char* prefix) {
  const char* hook = getenv("_PYPROJECT_HOOKS_BUILD_BACKEND");
  if (hook == NULL) hook = getenv("PEP517_BUILD_BACKEND");
  if (hook == NULL || own_site_is_named(prefix, "VIRTUAL_ENV", NULL) ||
      own_site_is_named(prefix, "CONDA_PREFIX", NULL) ||
      own_site_is_named(prefix, "HOME", ".local")) {
    return false;
  }
  return has_file(prefix, "pyvenv.cfg") ||
         (!has_file(prefix, "bin/python3") && !has_file(prefix, "bin/python"));
}

// The folders that the program at `program` (PREFIX/bin/kiln) was installed
// into as a wheel. False if it was not.
static bool folders_of(const char* program, char prefix[PATH_BYTES], char* site,
                       size_t capacity) {
  char lib[PATH_BYTES], python[256], info[256];
  const char* slash = strrchr(program, '/');
  size_t size = slash == NULL ? 0 : (size_t)(slash - program);
  if (size < 5 || memcmp(program + size - 4, "/bin", 4) != 0) return false;
  (void)snprintf(prefix, PATH_BYTES, "%.*s", (int)(size - 4), program);
  int n = snprintf(lib, sizeof(lib), "%.*s/lib", (int)(size - 4), program);
  if (n < 0 || (size_t)n >= sizeof(lib)) return false;
  if (!has_entry(lib, "python3", "", python, sizeof(python))) return false;
  n = snprintf(site, capacity, "%s/%s/site-packages", lib, python);
  return n > 0 && (size_t)n < capacity &&
         has_entry(site, "kiln_cuda-", ".dist-info", info, sizeof(info));
}

bool kilni_cli_own_site(char* out, size_t capacity, bool* out_isolated) {
  char program[PATH_BYTES], prefix[PATH_BYTES];
  ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
  *out_isolated = false;
  if (size <= 0) return false;
  program[size] = 0;
  if (!folders_of(program, prefix, out, capacity)) return false;
  *out_isolated = is_isolated(prefix);
  return *out_isolated || own_site_is_folder(out, "nvidia");
}
