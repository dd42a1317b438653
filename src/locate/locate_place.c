// SPDX-License-Identifier: Apache-2.0
//
// locate: the roots of each scope: which folders there are to search.
//
// Nothing is worked out before its scope is reached.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"
#include "locate/locate_inside.h"

// ---- Paths ----

const char* kilni_locate_place_env(const kiln_locate_t* locate,
                                   kilni_base_env_id_t id) {
  const char* value = kilni_base_env_text(&locate->env, id);
  return value != NULL && value[0] != 0 ? value : NULL;
}

// A folder's path without slashes at its end.
static kiln_string_view_t trim_slashes(const char* path) {
  kiln_string_view_t view = kilni_base_sv(path);
  while (view.size > 1 && view.data[view.size - 1] == '/') view.size--;
  return view;
}

kiln_status_t kilni_locate_place_below_system(kiln_locate_t* locate,
                                              const char* path,
                                              const char** out_path) {
  char buffer[KILNI_DISK_PATH_LIMIT];
  size_t root = strlen(locate->system_root);
  size_t rest = strlen(path);
  *out_path = "";
  if (root + rest >= sizeof(buffer)) return kiln_ok();
  memcpy(buffer, locate->system_root, root);
  memcpy(buffer + root, path, rest);
  return kilni_locate_disk_text(
      &locate->disk, kilni_base_sv_make(buffer, root + rest), out_path);
}

kiln_status_t kilni_locate_place_add(kiln_locate_t* locate,
                                     kilni_dispatch_place_t* place,
                                     const char* path, const char* via,
                                     uint32_t layout) {
  if (path[0] != '/') {
    kilni_locate_trail_add(
        &place->notes, path,
        "not absolute: the working directory is never searched");
    return kiln_ok();
  }
  if (place->count == KILNI_PLACE_MAX_ROOTS) {
    kilni_locate_trail_add(&place->notes, path, "more folders than the limit");
    return kiln_ok();
  }
  kiln_string_view_t view = trim_slashes(path);
  const kilni_locate_root_t* roots = place->roots;
  for (size_t i = 0; i < place->count; i++) {
    if (kilni_base_sv_equal_cstr(view, roots[i].path)) return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(kilni_base_grow(locate->allocator, place->count + 1,
                                        sizeof(kilni_locate_root_t),
                                        &place->capacity, &place->roots));
  const char* copy = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_disk_text(&locate->disk, view, &copy));
  kilni_locate_root_t* root =
      (kilni_locate_root_t*)place->roots + place->count++;
  root->path = copy;
  root->via = via;
  root->layout = layout;
  return kiln_ok();
}

void kilni_locate_place_deinit(kiln_locate_t* locate,
                               kilni_dispatch_place_t* place) {
  if (place->ready) kilni_locate_trail_deinit(&place->notes);
  kilni_base_free_array(locate->allocator, place->roots, place->capacity,
                        sizeof(kilni_locate_root_t));
  memset(place, 0, sizeof(*place));
}

// ---- Versions in names ----

// Compares "12.9" with "13.0": numbers as numbers, the rest as bytes.
static int compare_versions(const char* a, const char* b) {
  while (*a != 0 || *b != 0) {
    bool a_digit = *a >= '0' && *a <= '9';
    bool b_digit = *b >= '0' && *b <= '9';
    if (a_digit && b_digit) {
      char* a_end = NULL;
      char* b_end = NULL;
      unsigned long x = strtoul(a, &a_end, 10);
      unsigned long y = strtoul(b, &b_end, 10);
      if (x != y) return x < y ? -1 : 1;
      a = a_end;
      b = b_end;
    } else {
      if (*a != *b) return (uint8_t)*a < (uint8_t)*b ? -1 : 1;
      a++;
      b++;
    }
  }
  return 0;
}

// Names while they are collected. one-thread
typedef struct names_t {
  kiln_locate_t* locate;
  const char* prefix;
  const char* suffix;
  const char* items[KILNI_PLACE_MAX_ROOTS];
  size_t count;
  kiln_status_t status;
} names_t;

static bool place_collect(const char* name, void* user) {
  names_t* names = user;
  kiln_string_view_t view = kilni_base_sv(name);
  if (!kilni_base_sv_starts_with(view, names->prefix) ||
      !kilni_base_sv_ends_with(view, names->suffix) ||
      view.size < strlen(names->prefix) + strlen(names->suffix)) {
    return true;
  }
  if (names->count == KILNI_PLACE_MAX_ROOTS) return false;
  const char* copy = NULL;
  names->status = kilni_locate_disk_text(&names->locate->disk, view, &copy);
  if (!kiln_status_is_ok(names->status)) return false;
  size_t at = names->count++;
  while (at > 0 && compare_versions(names->items[at - 1], copy) < 0) {
    names->items[at] = names->items[at - 1];
    at--;
  }
  names->items[at] = copy;
  return true;
}

kiln_status_t kilni_locate_place_each_version(
    kiln_locate_t* locate, const char* dir, const char* prefix,
    const char* suffix, kilni_locate_name_fn_t fn, void* user) {
  names_t names;
  memset(&names, 0, sizeof(names));
  names.locate = locate;
  names.prefix = prefix;
  names.suffix = suffix;
  (void)kilni_base_dir_scan(dir, place_collect, &names);
  kiln_status_t status = names.status;
  for (size_t i = 0; i < names.count && kiln_status_is_ok(status); i++) {
    status = fn(names.items[i], user);
  }
  return status;
}

// ---- Variables ----

// Two spellings of one path: "a//b/./c/../d" is "a/b/d". Cut to the buffer.
static void place_normalise(const char* path, size_t capacity, char* out) {
  size_t size = 0;
  kiln_string_view_t rest = kilni_base_sv(path);
  kiln_string_view_t part;
  while (kilni_base_sv_split(&rest, '/', &part)) {
    if (part.size == 0 || kilni_base_sv_equal_cstr(part, ".")) continue;
    if (kilni_base_sv_equal_cstr(part, "..")) {
      while (size > 0 && out[size - 1] != '/') size--;
      if (size > 0) size--;
      continue;
    }
    if (size + part.size + 2 > capacity) break;
    out[size++] = '/';
    memcpy(out + size, part.data, part.size);
    size += part.size;
  }
  out[size] = 0;
}

static bool place_same_folder(const char* a, const char* b) {
  char a_text[KILNI_DISK_PATH_LIMIT];
  char b_text[KILNI_DISK_PATH_LIMIT];
  place_normalise(a, sizeof(a_text), a_text);
  place_normalise(b, sizeof(b_text), b_text);
  if (strcmp(a_text, b_text) == 0) return true;
  kilni_base_file_look_t x = kilni_base_file_look(a);
  kilni_base_file_look_t y = kilni_base_file_look(b);
  return x.kind == KILNI_FILE_DIR && y.kind == KILNI_FILE_DIR &&
         x.device == y.device && x.inode == y.inode;
}

static kiln_status_t warn_of_two(kiln_locate_t* locate,
                                 kilni_dispatch_place_t* place,
                                 const char* path, const char* home) {
  kilni_base_str_t text;
  kilni_base_str_init(&text, locate->allocator, 4 * KILNI_DISK_PATH_LIMIT);
  kilni_base_str_addf(
      &text,
      "CUDA_PATH is \"%s\" and CUDA_HOME is \"%s\"; CUDA_PATH takes precedence",
      path, home);
  kiln_status_t status = kilni_base_str_status(&text);
  if (kiln_status_is_ok(status)) {
    status = kilni_locate_disk_text(&locate->disk,
                                    kilni_base_sv(kilni_base_str_cstr(&text)),
                                    &place->warning);
  }
  kilni_base_str_deinit(&text);
  return status;
}

static kiln_status_t fill_cuda_path(kiln_locate_t* locate,
                                    kilni_dispatch_place_t* place) {
  const char* path = kilni_locate_place_env(locate, KILNI_ENV_CUDA_PATH);
  const char* home = kilni_locate_place_env(locate, KILNI_ENV_CUDA_HOME);
  if (path == NULL) {
    kilni_locate_trail_add(&place->notes, "CUDA_PATH", "not set");
    return kiln_ok();
  }
  if (home != NULL && !place_same_folder(path, home)) {
    KILNI_RETURN_IF_ERROR(warn_of_two(locate, place, path, home));
  }
  return kilni_locate_place_add(locate, place, path, "CUDA_PATH",
                                KILNI_LAYOUT_TOOLKIT);
}

static kiln_status_t fill_cuda_home(kiln_locate_t* locate,
                                    kilni_dispatch_place_t* place) {
  const char* home = kilni_locate_place_env(locate, KILNI_ENV_CUDA_HOME);
  if (kilni_locate_place_env(locate, KILNI_ENV_CUDA_PATH) != NULL) {
    if (home != NULL) {
      kilni_locate_trail_add(&place->notes, "CUDA_HOME",
                             "ignored, since CUDA_PATH is set");
    }
    return kiln_ok();
  }
  if (home == NULL) {
    kilni_locate_trail_add(&place->notes, "CUDA_HOME", "not set");
    return kiln_ok();
  }
  return kilni_locate_place_add(locate, place, home, "CUDA_HOME",
                                KILNI_LAYOUT_TOOLKIT);
}

static kiln_status_t fill_conda(kiln_locate_t* locate,
                                kilni_dispatch_place_t* place) {
  const char* prefix = kilni_locate_place_env(locate, KILNI_ENV_CONDA_PREFIX);
  if (prefix == NULL) {
    kilni_locate_trail_add(&place->notes, "CONDA_PREFIX", "not set");
    return kiln_ok();
  }
  return kilni_locate_place_add(locate, place, prefix, "CONDA_PREFIX",
                                KILNI_LAYOUT_CONDA);
}

// ---- The loader's toolkit ----

kiln_status_t kilni_locate_place_toolkit_of(kiln_locate_t* locate,
                                            const char* real,
                                            const char** out_root) {
  *out_root = "";
  const char* parts[5];  // slashes, the last one first
  size_t count = 0;
  for (const char* at = real + strlen(real); at > real && count < 5;) {
    at--;
    if (*at == '/') parts[count++] = at;
  }
  if (count < 2 || real[0] != '/') return kiln_ok();
  kiln_string_view_t folder =
      kilni_base_sv_make(parts[1] + 1, (size_t)(parts[0] - parts[1] - 1));
  if (!kilni_base_sv_equal_cstr(folder, "lib64") &&
      !kilni_base_sv_equal_cstr(folder, "lib")) {
    return kiln_ok();
  }
  const char* end = parts[1];
  if (count >= 4) {
    kiln_string_view_t above =
        kilni_base_sv_make(parts[3] + 1, (size_t)(parts[2] - parts[3] - 1));
    if (kilni_base_sv_equal_cstr(above, "targets")) end = parts[3];
  }
  if (end == real) return kiln_ok();
  return kilni_locate_disk_text(
      &locate->disk, kilni_base_sv_make(real, (size_t)(end - real)), out_root);
}

static kiln_status_t fill_loader_root(kiln_locate_t* locate,
                                      kilni_dispatch_place_t* place) {
  const kiln_locate_entry_t* cudart =
      kiln_locate_entry_find(KILN_LOCATE_KIND_LIB, "cudart");
  uint32_t count = kiln_locate_entry_list_count(cudart, KILN_LOCATE_LIST_FILES);
  for (uint32_t i = 0; i < count; i++) {
    const char* name =
        kiln_locate_entry_list_text(cudart, KILN_LOCATE_LIST_FILES, i);
    const char* path = NULL;
    const char* via = "";
    KILNI_RETURN_IF_ERROR(
        kilni_locate_loader_find(locate, name, NULL, &path, &via));
    if (path == NULL) {
      kilni_locate_trail_add(&place->notes, name,
                             "not found by the system loader");
      continue;
    }
    // Resolved: a link in /usr/local/lib is not a toolkit at /usr/local.
    const char* real = "";
    const char* root = "";
    KILNI_RETURN_IF_ERROR(kilni_locate_disk_real(&locate->disk, path, &real));
    KILNI_RETURN_IF_ERROR(kilni_locate_place_toolkit_of(locate, real, &root));
    if (root[0] == 0) {
      kilni_locate_trail_add(&place->notes, path, "is not in a toolkit");
      continue;
    }
    return kilni_locate_place_add(locate, place, root, via,
                                  KILNI_LAYOUT_TOOLKIT);
  }
  return kiln_ok();
}

// ---- The system ----

// What a folder's names are added to. one-thread
typedef struct adding_t {
  kiln_locate_t* locate;
  kilni_dispatch_place_t* place;
  const char* above;
  uint32_t layout;
} adding_t;

static kiln_status_t place_add_version(const char* name, void* user) {
  const adding_t* adding = user;
  // Beside its versions the HPC SDK has a folder for each year.
  if (adding->layout == KILNI_LAYOUT_HPC_SDK && strchr(name, '.') == NULL) {
    return kiln_ok();
  }
  char path[KILNI_DISK_PATH_LIMIT];
  size_t above = strlen(adding->above);
  size_t size = strlen(name);
  if (above + size + 2 > sizeof(path)) return kiln_ok();
  memcpy(path, adding->above, above);
  path[above] = '/';
  memcpy(path + above + 1, name, size + 1);
  return kilni_locate_place_add(adding->locate, adding->place, path, "",
                                adding->layout);
}

static kiln_status_t fill_system(kiln_locate_t* locate,
                                 kilni_dispatch_place_t* place) {
  const char* path = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_place_below_system(locate, "/usr/local/cuda", &path));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_place_add(locate, place, path, "", KILNI_LAYOUT_TOOLKIT));
  adding_t adding = {locate, place, NULL, KILNI_LAYOUT_TOOLKIT};
  KILNI_RETURN_IF_ERROR(
      kilni_locate_place_below_system(locate, "/usr/local", &adding.above));
  KILNI_RETURN_IF_ERROR(kilni_locate_place_each_version(
      locate, adding.above, "cuda-", "", place_add_version, &adding));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_place_below_system(locate, "/opt/cuda", &path));
  return kilni_locate_place_add(locate, place, path, "", KILNI_LAYOUT_TOOLKIT);
}

static kiln_status_t fill_hpc_sdk(kiln_locate_t* locate,
                                  kilni_dispatch_place_t* place) {
  bool arm = strncmp(locate->target, "x86_64", 6) != 0;
  adding_t adding = {locate, place, NULL, KILNI_LAYOUT_HPC_SDK};
  KILNI_RETURN_IF_ERROR(
      kilni_locate_place_below_system(locate,
                                      arm ? "/opt/nvidia/hpc_sdk/Linux_aarch64"
                                          : "/opt/nvidia/hpc_sdk/Linux_x86_64",
                                      &adding.above));
  KILNI_RETURN_IF_ERROR(kilni_locate_place_each_version(
      locate, adding.above, "2", "", place_add_version, &adding));
  if (place->count == 0) {
    kilni_locate_trail_add(&place->notes, adding.above,
                           "no version is installed");
  }
  return kiln_ok();
}

static kiln_status_t fill_fixed(kiln_locate_t* locate,
                                kilni_dispatch_place_t* place, const char* path,
                                uint32_t layout) {
  const char* whole = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_place_below_system(locate, path, &whole));
  return kilni_locate_place_add(locate, place, whole[0] ? whole : "/", "",
                                layout);
}

static kiln_status_t fill_roots(kiln_locate_t* locate,
                                kilni_dispatch_place_t* place) {
  for (uint32_t i = 0; i < locate->root_count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_locate_place_add(
        locate, place, locate->roots[i], "", KILNI_LAYOUT_ANY));
  }
  return kiln_ok();
}

static kiln_status_t place_fill(kiln_locate_t* locate, uint32_t scope,
                                kilni_dispatch_place_t* place) {
  switch (scope) {
    case KILN_LOCATE_SCOPE_ROOT:
      return fill_roots(locate, place);
    case KILN_LOCATE_SCOPE_WHEEL:
      return kilni_locate_sites_fill(locate, place);
    case KILN_LOCATE_SCOPE_CONDA:
      return fill_conda(locate, place);
    case KILN_LOCATE_SCOPE_CUDA_PATH:
      return fill_cuda_path(locate, place);
    case KILN_LOCATE_SCOPE_CUDA_HOME:
      return fill_cuda_home(locate, place);
    case KILN_LOCATE_SCOPE_LOADER_ROOT:
      return fill_loader_root(locate, place);
    case KILN_LOCATE_SCOPE_SYSTEM:
      return fill_system(locate, place);
    case KILN_LOCATE_SCOPE_DISTRIBUTION:
      return fill_fixed(locate, place, "", KILNI_LAYOUT_DISTRIBUTION);
    case KILN_LOCATE_SCOPE_HPC_SDK:
      return fill_hpc_sdk(locate, place);
    case KILN_LOCATE_SCOPE_WSL:
      return fill_fixed(locate, place, "/usr/lib/wsl/lib", KILNI_LAYOUT_FLAT);
    default:
      return kiln_ok();
  }
}

kiln_status_t kilni_locate_place_get(kiln_locate_t* locate, uint32_t scope,
                                     kilni_dispatch_place_t** out_place) {
  kilni_dispatch_place_t* place = &locate->places[scope];
  *out_place = place;
  if (place->ready) return kiln_ok();
  kilni_locate_trail_init(&place->notes, locate->allocator);
  place->ready = true;
  kiln_status_t status = place_fill(locate, scope, place);
  if (kiln_status_is_ok(status)) {
    status = kilni_locate_trail_status(&place->notes);
  }
  // Half of the roots are worse than none: they would be taken for all.
  if (!kiln_status_is_ok(status)) kilni_locate_place_deinit(locate, place);
  return status;
}
