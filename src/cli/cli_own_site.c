// SPDX-License-Identifier: Apache-2.0
//
// cli: the Python environment that the command was installed into.
//
// An isolated build has the wheels of build-system.requires in an environment
// that no variable names: pip's overlay has no pyvenv.cfg, and VIRTUAL_ENV is
// still that of the environment outside. But the command is called from there.
#define _XOPEN_SOURCE 700
#include "cli/cli_own_site.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096

static bool is_folder(const char* folder, const char* name) {
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

// Writes the site-packages folder that the program at `program`
// (PREFIX/bin/kiln) was installed into as a wheel, if NVIDIA's wheels are there
// too. False where it was not, or they are not.
static bool site_of(const char* program, char* out, size_t capacity) {
  char lib[PATH_BYTES], python[256], info[256];
  const char* slash = strrchr(program, '/');
  size_t size = slash == NULL ? 0 : (size_t)(slash - program);
  if (size < 5 || memcmp(program + size - 4, "/bin", 4) != 0) return false;
  int n = snprintf(lib, sizeof(lib), "%.*s/lib", (int)(size - 4), program);
  if (n < 0 || (size_t)n >= sizeof(lib)) return false;
  if (!has_entry(lib, "python3", "", python, sizeof(python))) return false;
  n = snprintf(out, capacity, "%s/%s/site-packages", lib, python);
  return n > 0 && (size_t)n < capacity &&
         has_entry(out, "kiln_cuda-", ".dist-info", info, sizeof(info)) &&
         is_folder(out, "nvidia");
}

bool kilni_cli_own_site(char* out, size_t capacity) {
  char program[PATH_BYTES];
  ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
  if (size <= 0) return false;
  program[size] = 0;
  return site_of(program, out, capacity);
}
