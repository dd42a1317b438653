// SPDX-License-Identifier: Apache-2.0
//
// probe: problems of the driver's files: the wrong one of two, a stand-in, a
// package for forward compatibility, parts of two releases.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dynlib.h"
#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "probe/probe_sheet.h"

enum { PATH_BYTES = 4096, MAX_LOADED = 256 };

static const char* doubt_driver_root_of(const kilni_probe_source_t* source) {
  return source->system_root != NULL ? source->system_root : "";
}

// The driver's library: the one that was opened, else the one that was found.
static const char* library_path(const kiln_probe_t* probe) {
  const kiln_probe_driver_t* driver = &probe->driver;
  if (driver->real_path[0] != 0) return driver->real_path;
  if (driver->path[0] != 0) return driver->path;
  const kiln_probe_copy_t* copy =
      kilni_probe_copy_taken(probe, KILN_LOCATE_KIND_LIB, "cuda");
  return copy != NULL ? copy->real_path : "";
}

static kiln_status_t about_wsl(kiln_probe_t* probe,
                               const kilni_probe_source_t* source) {
  if (probe->system.is_wsl == 0) return kiln_ok();
  char right[PATH_BYTES];
  snprintf(right, sizeof(right), "%s/usr/lib/wsl/lib/libcuda.so.1",
           doubt_driver_root_of(source));
  const char* path = library_path(probe);
  if (!kilni_base_file_exists(right)) {
    return kilni_probe_add_problem(
        probe, "wsl-driver-missing", KILN_PROBE_SEVERITY_WARNING,
        "install NVIDIA's driver in Windows, then run \"wsl --update\" and "
        "\"wsl --shutdown\" there",
        "this is WSL, and Windows has installed no driver in /usr/lib/wsl/lib");
  }
  if (path[0] == 0 || strstr(path, "/wsl/") != NULL) return kiln_ok();
  return kilni_probe_add_problem(
      probe, "wsl-linux-driver", KILN_PROBE_SEVERITY_ERROR,
      probe->packages == KILNI_PROBE_PACKAGES_APT
          ? "sudo apt remove --purge 'libnvidia-compute-*' 'nvidia-driver-*'"
          : "remove the Linux driver's packages; WSL uses the driver of "
            "Windows",
      "this is WSL, and its driver \"%s\" is hidden by a driver for Linux, "
      "\"%s\", which cannot work here",
      right, path);
}

// ---- Stand-ins ----

static bool is_stub_folder(kiln_string_view_t folder) {
  while (folder.size > 0 && folder.data[folder.size - 1] == '/') folder.size--;
  return kilni_base_sv_ends_with(folder, "/stubs");
}

static kiln_status_t about_stubs(kiln_probe_t* probe) {
  kiln_string_view_t rest = kilni_base_sv(
      kilni_base_env_text(probe->host->env, KILNI_ENV_LD_LIBRARY_PATH));
  kiln_string_view_t folder;
  while (kilni_base_sv_split(&rest, ':', &folder)) {
    char path[PATH_BYTES];
    if (!is_stub_folder(folder) || folder.size + 32 > sizeof(path)) continue;
    snprintf(path, sizeof(path), "%.*s/libcuda.so.1", KILNI_SV(folder));
    bool taken = kilni_base_file_exists(path);
    path[strlen(path) - 2] = 0;
    if (!taken && !kilni_base_file_exists(path)) continue;
    return kilni_probe_add_problem(
        probe, "stub-on-loader-path",
        taken ? KILN_PROBE_SEVERITY_ERROR : KILN_PROBE_SEVERITY_WARNING,
        "take the folder out of LD_LIBRARY_PATH; it is for the linker only "
        "(-L)",
        "LD_LIBRARY_PATH contains \"%.*s\", a toolkit's stand-ins for the "
        "driver, which do nothing",
        KILNI_SV(folder));
  }
  const char* path = library_path(probe);
  if (strstr(path, "/stubs/") == NULL) return kiln_ok();
  return kilni_probe_add_problem(
      probe, "stub-on-loader-path", KILN_PROBE_SEVERITY_ERROR,
      "remove that folder from the loader's configuration (/etc/ld.so.conf.d) "
      "and run \"sudo ldconfig\"",
      "the loader's libcuda is a toolkit's stand-in, \"%s\", which does "
      "nothing",
      path);
}

// ---- Releases ----

static kiln_status_t about_compat(kiln_probe_t* probe) {
  const kiln_probe_driver_t* driver = &probe->driver;
  if (strstr(library_path(probe), "/compat/") == NULL) return kiln_ok();
  uint32_t module = kiln_compat_driver_branch(driver->release);
  uint32_t library = kiln_compat_driver_branch(driver->library_release);
  if (module != 0 && library != 0 && library < module) {
    return kilni_probe_add_problem(
        probe, "compat-older-than-driver", KILN_PROBE_SEVERITY_ERROR,
        "take the folder out of LD_LIBRARY_PATH, or remove the package "
        "cuda-compat",
        "the forward compatibility library \"%s\" is older (%s) than the "
        "driver itself (%s)",
        library_path(probe), driver->library_release, driver->release);
  }
  return kilni_probe_add_problem(
      probe, "compat-in-use", KILN_PROBE_SEVERITY_NOTE,
      "nothing on a data center GPU; on another take the folder out of "
      "LD_LIBRARY_PATH and update the driver",
      "libcuda comes from a forward compatibility package, \"%s\": it needs a "
      "data center GPU",
      library_path(probe));
}

static kiln_status_t about_releases(kiln_probe_t* probe) {
  const kiln_probe_driver_t* driver = &probe->driver;
  if (driver->release[0] == 0 || driver->library_release[0] == 0 ||
      strcmp(driver->release, driver->library_release) == 0 ||
      strstr(library_path(probe), "/compat/") != NULL) {
    return kiln_ok();
  }
  return kilni_probe_add_problem(
      probe, "driver-parts-differ", KILN_PROBE_SEVERITY_ERROR,
      "reboot, or reload the kernel module (in a container: restart it); the "
      "driver was updated while it ran",
      "the driver's library is of release %s, its kernel module of %s",
      driver->library_release, driver->release);
}

// A compat folder that would help and is not used.
static kiln_status_t about_unused_compat(kiln_probe_t* probe) {
  uint32_t driver = probe->driver.version;
  const kiln_probe_toolkit_t* toolkits = probe->toolkits.items;
  if (driver == 0 || strstr(library_path(probe), "/compat/") != NULL) {
    return kiln_ok();
  }
  for (size_t i = 0; i < probe->toolkits.count; i++) {
    char path[PATH_BYTES];
    char word[PATH_BYTES];
    char fix[PATH_BYTES + 256];
    if (toolkits[i].line <= driver) continue;
    snprintf(path, sizeof(path), "%s/compat", toolkits[i].root);
    if (!kilni_base_dir_exists(path)) continue;
    snprintf(fix, sizeof(fix),
             "on a data center GPU: export LD_LIBRARY_PATH=%s; else update "
             "the driver",
             kilni_probe_shell_word(path, sizeof(word), word));
    return kilni_probe_add_problem(
        probe, "compat-not-in-use", KILN_PROBE_SEVERITY_NOTE, fix,
        "the toolkit %s is newer than the driver's CUDA %u.%u, and the forward "
        "compatibility library beside it is not used",
        toolkits[i].root, (unsigned)kiln_compat_line_major(driver),
        (unsigned)kiln_compat_line_minor(driver));
  }
  return kiln_ok();
}

// ---- Two of one in this process ----

// What is mapped and in the catalog. one-thread
typedef struct loaded_t {
  const kiln_locate_entry_t* entries[MAX_LOADED];
  char paths[MAX_LOADED][256];
  uint32_t count;
  uint32_t one;  // of two copies
  uint32_t two;
  bool found;
} loaded_t;

static bool see_mapped(const kilni_base_dynlib_mapped_t* mapped, void* user) {
  loaded_t* loaded = user;
  const char* slash = strrchr(mapped->path, '/');
  const kiln_locate_entry_t* entry = kiln_locate_entry_find_file(
      KILN_LOCATE_KIND_LIB,
      kilni_base_sv(mapped->soname[0] != 0
                        ? mapped->soname
                        : (slash ? slash + 1 : mapped->path)));
  if (entry == NULL || loaded->count == MAX_LOADED) return true;
  uint32_t at = loaded->count;
  loaded->entries[at] = entry;
  snprintf(loaded->paths[at], sizeof(loaded->paths[at]), "%s", mapped->path);
  for (uint32_t i = 0; i < at && !loaded->found; i++) {
    if (loaded->entries[i] != entry) continue;
    loaded->found = true;
    loaded->one = i;
    loaded->two = at;
  }
  loaded->count++;
  return true;
}

static kiln_status_t about_loaded(kiln_probe_t* probe,
                                  const kilni_probe_source_t* source) {
  if (source->each_mapped == NULL) return kiln_ok();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(probe->host->allocator, sizeof(loaded_t), &block));
  loaded_t* loaded = block;
  source->each_mapped(see_mapped, loaded);
  kiln_status_t status = kiln_ok();
  if (loaded->found) {
    status = kilni_probe_add_problem(
        probe, "loaded-twice", KILN_PROBE_SEVERITY_WARNING,
        "find out with LD_DEBUG=libs what loads them, and take one of them off "
        "LD_LIBRARY_PATH or out of the environment",
        "two copies of %s are in this process, \"%s\" and \"%s\"",
        kiln_locate_entry_name(loaded->entries[loaded->one]),
        loaded->paths[loaded->one], loaded->paths[loaded->two]);
  }
  kilni_base_free(probe->host->allocator, loaded, sizeof(*loaded));
  return status;
}

kiln_status_t kilni_probe_doubt_driver(kiln_probe_t* probe,
                                       const kilni_probe_source_t* source) {
  KILNI_RETURN_IF_ERROR(about_wsl(probe, source));
  KILNI_RETURN_IF_ERROR(about_stubs(probe));
  KILNI_RETURN_IF_ERROR(about_compat(probe));
  KILNI_RETURN_IF_ERROR(about_releases(probe));
  KILNI_RETURN_IF_ERROR(about_unused_compat(probe));
  return about_loaded(probe, source);
}
