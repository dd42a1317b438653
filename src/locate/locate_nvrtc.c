// SPDX-License-Identifier: Apache-2.0
//
// locate: the search for NVRTC.
//
// Reads folder entries and file names only; never opens a library (table/
// does) and never decides whether a version fits.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "locate/locate.h"
#include "locate/locate_report.h"

enum { PATH_LIMIT = 16384, MAX_FOLDERS = 256 };

// Names that the system loader is asked for: the majors that are supported.
static const char* const kLoaderNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

// Where a toolkit keeps its libraries, below its root.
static const char* const kLibDirs[] = {
    "lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};

// Where the wheels keep theirs, below site-packages, and their headers.
static const char* const kWheels[][2] = {
    {"nvidia/cu13/lib", "nvidia/cu13/include"},
    {"nvidia/cuda_nvrtc/lib", "nvidia/cuda_runtime/include"}};

// ---- Paths ----

// "a/b", or "a/b/c" with three parts; freed by kilni_strfree.
static kiln_status_t join(kiln_allocator_t allocator, const char* a,
                          const char* b, const char* c, char** out_path) {
  kilni_str_t path;
  kilni_str_init(&path, allocator, PATH_LIMIT);
  kilni_str_add_cstr(&path, a);
  const char* parts[] = {b, c};
  for (size_t i = 0; i < 2 && parts[i] != NULL; i++) {
    if (path.size == 0 || path.data[path.size - 1] != '/') {
      kilni_str_add_char(&path, '/');
    }
    kilni_str_add_cstr(&path, parts[i]);
  }
  return kilni_str_take(&path, out_path);
}

// True if `dir` holds the headers that device code includes. (The folder of
// the NVRTC wheel holds only NVRTC's own.)
static kiln_status_t holds_headers(kiln_allocator_t allocator, const char* dir,
                                   bool* out_holds) {
  *out_holds = false;
  static const char* const marks[] = {"cuda_fp16.h", "cuda_runtime.h"};
  for (size_t i = 0; !*out_holds && i < 2; i++) {
    char* path = NULL;
    KILNI_RETURN_IF_ERROR(join(allocator, dir, marks[i], NULL, &path));
    *out_holds = kilni_file_exists(path);
    kilni_strfree(allocator, path);
  }
  return NULL;
}

// `base`/`rest` if it holds headers, else "".
static kiln_status_t include_below(kiln_allocator_t allocator, const char* base,
                                   const char* rest, char** out_dir) {
  *out_dir = NULL;
  char* dir = NULL;
  KILNI_RETURN_IF_ERROR(join(allocator, base, rest, NULL, &dir));
  bool holds = false;
  kiln_status_t status = holds_headers(allocator, dir, &holds);
  if (kiln_status_is_ok(status) && holds) {
    *out_dir = dir;
    return NULL;
  }
  kilni_strfree(allocator, dir);
  if (!kiln_status_is_ok(status)) return status;
  return kilni_strdup(allocator, kilni_sv(""), out_dir);
}

// Cuts the last part off a path; false if there is no folder left.
static bool cut_last(char* path) {
  char* slash = strrchr(path, '/');
  if (slash == NULL || slash == path) return false;
  *slash = 0;
  return true;
}

kiln_status_t kilni_locate_include_dir(kiln_allocator_t allocator,
                                       const char* path, char** out_dir) {
  *out_dir = NULL;
  char* real = NULL;
  kiln_status_t status = kilni_path_real(allocator, path, &real);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  if (real == NULL) return kilni_strdup(allocator, kilni_sv(""), out_dir);
  // <root>/lib/x, <root>/lib64/x and <root>/lib/<triple>/x; a wheel's headers
  // lie beside it.
  static const char* const places[] = {"include", "cuda_runtime/include"};
  char* folder = real;
  size_t length = strlen(real);
  bool found = false;
  status = NULL;
  (void)cut_last(folder);
  for (int up = 0; !found && kiln_status_is_ok(status) && up < 2; up++) {
    if (!cut_last(folder)) break;
    for (size_t i = 0; !found && kiln_status_is_ok(status) && i < 2; i++) {
      kilni_strfree(allocator, *out_dir);
      status = include_below(allocator, folder, places[i], out_dir);
      found = kiln_status_is_ok(status) && (*out_dir)[0] != 0;
    }
  }
  // Cut marks are undone so that the copy is freed with its own length.
  for (size_t i = 0; i < length; i++) {
    if (real[i] == 0) real[i] = '/';
  }
  kilni_strfree(allocator, real);
  if (!kiln_status_is_ok(status) || *out_dir != NULL) return status;
  return kilni_strdup(allocator, kilni_sv(""), out_dir);
}

// ---- Names with versions ----

// The first number of a version text, e.g. 13 of "13.0"; -1 if there is none.
static long version_number(const char* text, const char** out_rest) {
  if (*text < '0' || *text > '9') return -1;
  char* end = NULL;
  long value = strtol(text, &end, 10);
  *out_rest = end;
  return value;
}

// Compares "12.9" with "13.0" by their numbers; a text without any is least.
static int compare_versions(const char* a, const char* b) {
  for (;;) {
    const char* a_rest = a;
    const char* b_rest = b;
    long x = version_number(a, &a_rest);
    long y = version_number(b, &b_rest);
    if (x != y) return x < y ? -1 : 1;
    if (x < 0) return 0;
    a = a_rest + (*a_rest == '.');
    b = b_rest + (*b_rest == '.');
  }
}

// What collects names of a folder. one-thread
typedef struct names_t {
  kiln_allocator_t allocator;
  const char* prefix;
  char* items[MAX_FOLDERS];
  size_t count;
  kiln_status_t status;
} names_t;

static bool collect(const char* name, void* user) {
  names_t* names = user;
  size_t prefix = strlen(names->prefix);
  if (strncmp(name, names->prefix, prefix) != 0) return true;
  if (names->count == MAX_FOLDERS) return false;
  char* copy = NULL;
  names->status = kilni_strdup(names->allocator, kilni_sv(name), &copy);
  if (!kiln_status_is_ok(names->status)) return false;
  // Newest first, by insertion: there are few.
  size_t at = names->count;
  while (at > 0 &&
         compare_versions(names->items[at - 1] + prefix, copy + prefix) < 0) {
    names->items[at] = names->items[at - 1];
    at--;
  }
  names->items[at] = copy;
  names->count++;
  return true;
}

static void names_deinit(names_t* names) {
  for (size_t i = 0; i < names->count; i++) {
    kilni_strfree(names->allocator, names->items[i]);
  }
  names->count = 0;
}

// The entries of `dir` that start with `prefix`, newest version first; none
// where the folder cannot be read.
static kiln_status_t names_init(names_t* names, kiln_allocator_t allocator,
                                const char* dir, const char* prefix) {
  memset(names, 0, sizeof(*names));
  names->allocator = allocator;
  names->prefix = prefix;
  kiln_status_t status = kilni_dir_each(allocator, dir, collect, names);
  if (kiln_status_code(status) != KILN_STATUS_OUT_OF_MEMORY) {
    kiln_status_free(status);
    status = names->status;
  }
  if (!kiln_status_is_ok(status)) names_deinit(names);
  return status;
}

// "13.0" of "libnvrtc.so.13.0"; "" of "libnvrtc.so".
static const char* version_of(const char* name) {
  const char* rest = name + strlen("libnvrtc.so");
  return rest + (*rest == '.');
}

// True for "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.13.0.88".
static bool is_library_name(const char* name) {
  const char* rest = name + strlen("libnvrtc.so");
  for (; *rest != 0; rest++) {
    if (*rest != '.' && (*rest < '0' || *rest > '9')) return false;
  }
  return true;
}

// ---- The places ----

// Adds the newest libnvrtc of one folder; `*out_found` false if there is none.
static kiln_status_t add_from_folder(kiln_locate_report_t* report,
                                     uint32_t scope, const char* dir,
                                     const char* include_dir, bool* out_found) {
  *out_found = false;
  kiln_allocator_t allocator = kilni_locate_report_allocator(report);
  names_t names;
  KILNI_RETURN_IF_ERROR(names_init(&names, allocator, dir, "libnvrtc.so"));
  kiln_status_t status = NULL;
  const char* best = NULL;
  for (size_t i = 0; i < names.count; i++) {
    // The newest, and of equal names the one with a version, which the loader
    // would take too.
    if (!is_library_name(names.items[i])) continue;
    if (best == NULL ||
        compare_versions(version_of(best), version_of(names.items[i])) < 0) {
      best = names.items[i];
    }
  }
  if (best != NULL) {
    char* path = NULL;
    status = join(allocator, dir, best, NULL, &path);
    if (kiln_status_is_ok(status)) {
      status = kilni_locate_report_add(report, scope, path, include_dir);
      kilni_strfree(allocator, path);
    }
    *out_found = kiln_status_is_ok(status);
  }
  names_deinit(&names);
  return status;
}

static kiln_status_t search_root(kiln_locate_report_t* report, uint32_t scope,
                                 const char* root) {
  if (!kilni_dir_exists(root)) {
    return kilni_locate_report_reject(report, root, "no such folder");
  }
  kiln_allocator_t allocator = kilni_locate_report_allocator(report);
  char* include_dir = NULL;
  KILNI_RETURN_IF_ERROR(
      include_below(allocator, root, "include", &include_dir));
  kiln_status_t status = NULL;
  bool found = false;
  for (size_t i = 0; i < sizeof(kLibDirs) / sizeof(kLibDirs[0]); i++) {
    char* dir = NULL;
    status = join(allocator, root, kLibDirs[i], NULL, &dir);
    if (!kiln_status_is_ok(status)) break;
    if (kilni_dir_exists(dir)) {
      status = add_from_folder(report, scope, dir, include_dir, &found);
    }
    kilni_strfree(allocator, dir);
    if (found || !kiln_status_is_ok(status)) break;
  }
  kilni_strfree(allocator, include_dir);
  if (found || !kiln_status_is_ok(status)) return status;
  return kilni_locate_report_reject(
      report, root, "no libnvrtc.so in its lib64, lib or targets/*/lib");
}

static kiln_status_t search_variable(kiln_locate_report_t* report,
                                     const kilni_env_t* env, kilni_env_id_t id,
                                     uint32_t scope) {
  const char* root = kilni_env_text(env, id);
  if (root == NULL) {
    return kilni_locate_report_reject(report, kilni_env_row(id)->name,
                                      "the variable is not set");
  }
  return search_root(report, scope, root);
}

static kiln_status_t search_loader(kiln_locate_report_t* report) {
  for (size_t i = 0; i < sizeof(kLoaderNames) / sizeof(kLoaderNames[0]); i++) {
    KILNI_RETURN_IF_ERROR(kilni_locate_report_add(
        report, KILN_LOCATE_SCOPE_LOADER, kLoaderNames[i], NULL));
  }
  return NULL;
}

static kiln_status_t search_system(kiln_locate_report_t* report,
                                   const char* system_root) {
  kiln_allocator_t allocator = kilni_locate_report_allocator(report);
  char* local = NULL;
  KILNI_RETURN_IF_ERROR(
      join(allocator, system_root, "usr/local", NULL, &local));
  char* plain = NULL;
  kiln_status_t status = join(allocator, local, "cuda", NULL, &plain);
  if (kiln_status_is_ok(status)) {
    status = search_root(report, KILN_LOCATE_SCOPE_SYSTEM, plain);
    kilni_strfree(allocator, plain);
  }
  names_t names = {0};
  if (kiln_status_is_ok(status)) {
    status = names_init(&names, allocator, local, "cuda-");
  }
  for (size_t i = 0; kiln_status_is_ok(status) && i < names.count; i++) {
    char* root = NULL;
    status = join(allocator, local, names.items[i], NULL, &root);
    if (!kiln_status_is_ok(status)) break;
    status = search_root(report, KILN_LOCATE_SCOPE_SYSTEM, root);
    kilni_strfree(allocator, root);
  }
  names_deinit(&names);
  kilni_strfree(allocator, local);
  return status;
}

static kiln_status_t search_site(kiln_locate_report_t* report,
                                 const char* site) {
  kiln_allocator_t allocator = kilni_locate_report_allocator(report);
  for (size_t i = 0; i < sizeof(kWheels) / sizeof(kWheels[0]); i++) {
    char* dir = NULL;
    KILNI_RETURN_IF_ERROR(join(allocator, site, kWheels[i][0], NULL, &dir));
    kiln_status_t status = NULL;
    bool found = false;
    if (kilni_dir_exists(dir)) {
      char* include_dir = NULL;
      status = include_below(allocator, site, kWheels[i][1], &include_dir);
      if (kiln_status_is_ok(status)) {
        status = add_from_folder(report, KILN_LOCATE_SCOPE_WHEEL, dir,
                                 include_dir, &found);
      }
      kilni_strfree(allocator, include_dir);
    }
    if (kiln_status_is_ok(status) && !found) {
      status = kilni_locate_report_reject(report, dir, "no libnvrtc.so there");
    }
    kilni_strfree(allocator, dir);
    KILNI_RETURN_IF_ERROR(status);
  }
  return NULL;
}

static kiln_status_t search_wheels(kiln_locate_report_t* report,
                                   const kilni_env_t* env, kilni_env_id_t id) {
  const char* root = kilni_env_text(env, id);
  if (root == NULL) {
    return kilni_locate_report_reject(report, kilni_env_row(id)->name,
                                      "the variable is not set");
  }
  kiln_allocator_t allocator = kilni_locate_report_allocator(report);
  char* lib = NULL;
  KILNI_RETURN_IF_ERROR(join(allocator, root, "lib", NULL, &lib));
  names_t names;
  kiln_status_t status = names_init(&names, allocator, lib, "python3.");
  if (kiln_status_is_ok(status) && names.count == 0) {
    status = kilni_locate_report_reject(report, lib, "no python3.* folder");
  }
  for (size_t i = 0; kiln_status_is_ok(status) && i < names.count; i++) {
    char* site = NULL;
    status = join(allocator, lib, names.items[i], "site-packages", &site);
    if (!kiln_status_is_ok(status)) break;
    status = search_site(report, site);
    kilni_strfree(allocator, site);
  }
  names_deinit(&names);
  kilni_strfree(allocator, lib);
  return status;
}

// ---- The search ----

// A library that was named: it, or an error. A name without a folder is the
// loader's business.
static kiln_status_t take_named(kiln_locate_report_t* report, const char* path,
                                const char* said_by) {
  if (strchr(path, '/') == NULL) {
    return kilni_locate_report_add(report, KILN_LOCATE_SCOPE_EXPLICIT, path,
                                   NULL);
  }
  if (!kilni_file_exists(path)) {
    KILNI_RETURN_IF_ERROR(
        kilni_locate_report_reject(report, path, "no such file"));
    return kilni_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "no file \"%s\", which %s names", path, said_by),
        "correct it, or leave it out to have NVRTC searched for");
  }
  kiln_allocator_t allocator = kilni_locate_report_allocator(report);
  char* include_dir = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_include_dir(allocator, path, &include_dir));
  kiln_status_t status = kilni_locate_report_add(
      report, KILN_LOCATE_SCOPE_EXPLICIT, path, include_dir);
  kilni_strfree(allocator, include_dir);
  return status;
}

static kiln_status_t search(kiln_locate_report_t* report,
                            const kilni_env_t* env, const char* explicit_path,
                            const char* system_root) {
  if (explicit_path != NULL) {
    return take_named(report, explicit_path, "the caller");
  }
  const char* named = kilni_env_text(env, KILNI_ENV_KILN_LIBNVRTC);
  if (named != NULL) return take_named(report, named, "KILN_LIBNVRTC");
  KILNI_RETURN_IF_ERROR(search_variable(report, env, KILNI_ENV_CUDA_PATH,
                                        KILN_LOCATE_SCOPE_CUDA_PATH));
  KILNI_RETURN_IF_ERROR(search_variable(report, env, KILNI_ENV_CUDA_HOME,
                                        KILN_LOCATE_SCOPE_CUDA_HOME));
  KILNI_RETURN_IF_ERROR(search_loader(report));
  KILNI_RETURN_IF_ERROR(search_system(report, system_root));
  KILNI_RETURN_IF_ERROR(search_wheels(report, env, KILNI_ENV_VIRTUAL_ENV));
  return search_wheels(report, env, KILNI_ENV_CONDA_PREFIX);
}

kiln_status_t kilni_locate_nvrtc(kiln_allocator_t allocator,
                                 const kilni_env_t* env,
                                 const char* explicit_path,
                                 const char* system_root,
                                 kiln_locate_report_t** out_report) {
  KILNI_RETURN_IF_ERROR(kilni_locate_report_create(allocator, out_report));
  kiln_status_t status =
      search(*out_report, env, explicit_path, system_root ? system_root : "/");
  kiln_status_code_t code = kiln_status_code(status);
  if (code != KILN_STATUS_OK && code != KILN_STATUS_NOT_FOUND) {
    kiln_locate_report_release(*out_report);
    *out_report = NULL;
  }
  return status;
}
