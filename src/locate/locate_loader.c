// SPDX-License-Identifier: Apache-2.0
//
// locate: where the system's loader would look, and what it has loaded.
//
// The loader itself is never asked: it would load. Its order is glibc's:
// DT_RPATH, LD_LIBRARY_PATH and DT_RUNPATH (locate_loader_path.c), ld.so.cache,
// the folders that are built in. A library for another machine is passed over,
// as there; any other file ends the search, also one that cannot be loaded.
#include <stdio.h>
#include <string.h>

#include "base/dynlib.h"
#include "base/elf.h"
#include "base/file.h"
#include "base/status_make.h"
#include "locate/locate_inside.h"
#include "locate/locate_ldcache.h"

static const char kCache[] = "ld.so.cache";

// ---- The cache ----

void kilni_locate_loader_deinit(kiln_locate_t* locate) {
  kilni_locate_loader_t* loader = &locate->loader;
  if (loader->data != NULL) {
    kilni_base_file_free(locate->allocator, loader->data, loader->size);
  }
  kilni_locate_place_deinit(locate, &loader->defaults);
  memset(loader, 0, sizeof(*loader));
}

static kiln_status_t read_cache(kiln_locate_t* locate) {
  kilni_locate_loader_t* loader = &locate->loader;
  if (loader->ready) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_locate_place_below_system(
      locate, "/etc/ld.so.cache", &loader->path));
  kiln_status_t status =
      kilni_base_file_read(locate->allocator, loader->path, KILNI_LDCACHE_LIMIT,
                           &loader->data, &loader->size);
  switch (kiln_status_code(status)) {
    case KILN_STATUS_OK:
      break;
    case KILN_STATUS_OUT_OF_MEMORY:
      return status;
    case KILN_STATUS_NOT_FOUND:
      loader->why = "no such file";
      break;
    case KILN_STATUS_LIMIT_EXCEEDED:
      loader->why = "too large for its purpose";
      break;
    default:
      loader->why = "cannot be read";
      break;
  }
  kiln_status_free(status);
  loader->ready = true;
  return kiln_ok();
}

static void loader_note(kilni_locate_trail_t* trail, const char* path,
                        const char* why) {
  if (trail != NULL) kilni_locate_trail_add(trail, path, why);
}

// The path that the cache has for a name, below the system's root.
static kiln_status_t look_in_cache(kiln_locate_t* locate, const char* name,
                                   kilni_locate_trail_t* trail,
                                   const char** out_path) {
  *out_path = NULL;
  KILNI_RETURN_IF_ERROR(read_cache(locate));
  kilni_locate_loader_t* loader = &locate->loader;
  kilni_locate_ldcache_t cache;
  const char* why = loader->why;
  if (why != NULL ||
      !kilni_locate_ldcache_open(loader->data, loader->size, &cache, &why)) {
    loader_note(trail, loader->path, why);
    return kiln_ok();
  }
  bool x86 = strncmp(locate->target, "x86_64", 6) == 0;
  kiln_string_view_t path = kilni_locate_ldcache_find(
      &cache, name, x86 ? KILNI_LDCACHE_X86_64 : KILNI_LDCACHE_AARCH64,
      locate->is_native ? KILNI_LDCACHE_LEVEL_ASK : 0);
  char text[256];
  if (path.size == 0 || path.data[0] != '/') {
    snprintf(text, sizeof(text), "does not name %s", name);
    loader_note(trail, loader->path, text);
    return kiln_ok();
  }
  return kilni_locate_place_below_system(locate, path.data, out_path);
}

// ---- Finding ----

static kiln_status_t loader_is_file(kiln_locate_t* locate, const char* path,
                                    kilni_locate_trail_t* trail, bool* out_is) {
  kilni_locate_disk_node_t* node = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_disk_look(&locate->disk, path, &node));
  *out_is = node->kind == KILNI_FILE_REGULAR;
  char why[128];
  if (!*out_is) {
    loader_note(trail, path,
                kilni_locate_disk_why(node, false, sizeof(why), why));
  }
  return kiln_ok();
}

// `folder`/`name`, where it is a file.
static kiln_status_t in_folder(kiln_locate_t* locate, const char* folder,
                               const char* name, kilni_locate_trail_t* trail,
                               const char** out_path) {
  *out_path = NULL;
  char path[KILNI_DISK_PATH_LIMIT];
  size_t folder_size = strlen(folder);
  size_t size = folder_size + 1 + strlen(name);
  if (size >= sizeof(path)) return kiln_ok();
  memcpy(path, folder, folder_size);
  path[folder_size] = '/';
  memcpy(path + folder_size + 1, name, strlen(name) + 1);
  kilni_locate_disk_node_t* dir = NULL;
  kilni_locate_disk_node_t* file = NULL;
  kiln_string_view_t dir_view = kilni_base_sv_make(path, folder_size);
  // Every library is looked for in each of these: they may be listed, unlike
  // other roots.
  size_t root = folder_size - 1;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_disk_dir(&locate->disk, dir_view, root, &dir));
  bool was_gone = dir->known && dir->kind != KILNI_FILE_DIR;
  if (!was_gone) {
    KILNI_RETURN_IF_ERROR(kilni_locate_disk_file(
        &locate->disk, dir, kilni_base_sv_make(path, size), root, &file));
    if (file->kind == KILNI_FILE_REGULAR) {
      *out_path = file->path;
      return kiln_ok();
    }
  }
  bool gone = dir->known && dir->kind != KILNI_FILE_DIR;
  char why[128];
  loader_note(trail, gone ? dir->path : file->path,
              kilni_locate_disk_why(gone ? dir : file, gone, sizeof(why), why));
  return kiln_ok();
}

// True for a library of another word size or machine.
static bool is_foreign(const kiln_locate_t* locate, const char* path) {
  uint8_t head[20];
  size_t size = 0;
  kilni_base_window_t window;
  kiln_status_t status = kilni_base_window_open(path, &window);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_window_read_some(&window, 0, sizeof(head), head, &size);
    kilni_base_window_close(&window);
  }
  bool is_elf = kiln_status_is_ok(status) && size == sizeof(head) &&
                memcmp(head, "\177ELF", 4) == 0;
  kiln_status_free(status);
  if (!is_elf) return false;
  bool x86 = strncmp(locate->target, "x86_64", 6) == 0;
  uint32_t machine = (uint32_t)head[18] | (uint32_t)head[19] << 8;
  return head[4] != 2 ||
         machine != (x86 ? KILNI_ELF_X86_64 : KILNI_ELF_AARCH64);
}

// `folder`/`name`, where it is a file that the loader would not pass over.
static kiln_status_t fitting_in_folder(kiln_locate_t* locate,
                                       const char* folder, const char* name,
                                       kilni_locate_trail_t* trail,
                                       const char** out_path) {
  KILNI_RETURN_IF_ERROR(in_folder(locate, folder, name, trail, out_path));
  if (*out_path == NULL || !is_foreign(locate, *out_path)) return kiln_ok();
  loader_note(trail, *out_path, "a library for another machine");
  *out_path = NULL;
  return kiln_ok();
}

static kiln_status_t add_defaults(kiln_locate_t* locate) {
  kilni_locate_loader_t* loader = &locate->loader;
  const char* lib = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_place_below_system(locate, "/lib", &lib));
  static const char* const starts[] = {"/lib", "/usr/lib"};
  // Where / and /usr are one, the second spelling is enough.
  for (size_t i = kilni_base_link_is(lib) ? 1 : 0; i < 2; i++) {
    char text[256];
    const char* folders[3] = {NULL, NULL, NULL};
    snprintf(text, sizeof(text), "%s/%s", starts[i], locate->multiarch);
    KILNI_RETURN_IF_ERROR(
        kilni_locate_place_below_system(locate, text, &folders[0]));
    snprintf(text, sizeof(text), "%s64", starts[i]);
    KILNI_RETURN_IF_ERROR(
        kilni_locate_place_below_system(locate, text, &folders[1]));
    KILNI_RETURN_IF_ERROR(
        kilni_locate_place_below_system(locate, starts[i], &folders[2]));
    for (size_t k = 0; k < 3; k++) {
      KILNI_RETURN_IF_ERROR(kilni_locate_loader_add_folder(
          locate, &loader->defaults, folders[k], "default folders"));
    }
  }
  return kiln_ok();
}

static kiln_status_t fill_defaults(kiln_locate_t* locate) {
  kilni_dispatch_place_t* place = &locate->loader.defaults;
  if (place->ready) return kiln_ok();
  kilni_locate_trail_init(&place->notes, locate->allocator);
  place->ready = true;
  kiln_status_t status = add_defaults(locate);
  if (!kiln_status_is_ok(status)) kilni_locate_place_deinit(locate, place);
  return status;
}

static kiln_status_t in_place(kiln_locate_t* locate,
                              const kilni_dispatch_place_t* place,
                              const char* name, kilni_locate_trail_t* trail,
                              const char** out_path, const char** out_via) {
  const kilni_locate_root_t* roots = place->roots;
  for (size_t i = 0; i < place->count; i++) {
    KILNI_RETURN_IF_ERROR(
        fitting_in_folder(locate, roots[i].path, name, trail, out_path));
    if (*out_path == NULL) continue;
    *out_via = roots[i].via;
    return kiln_ok();
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_loader_find(kiln_locate_t* locate, const char* name,
                                       kilni_locate_trail_t* trail,
                                       const char** out_path,
                                       const char** out_via) {
  *out_path = NULL;
  *out_via = "";
  kilni_dispatch_place_t* place = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_loader_folders(locate, &place));
  KILNI_RETURN_IF_ERROR(
      in_place(locate, place, name, trail, out_path, out_via));
  if (*out_path != NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(look_in_cache(locate, name, trail, out_path));
  if (*out_path != NULL) {
    bool is = false;
    KILNI_RETURN_IF_ERROR(loader_is_file(locate, *out_path, trail, &is));
    *out_via = kCache;
    if (is) return kiln_ok();
  }
  *out_path = NULL;
  *out_via = "";
  KILNI_RETURN_IF_ERROR(fill_defaults(locate));
  return in_place(locate, &locate->loader.defaults, name, trail, out_path,
                  out_via);
}

// ---- What is loaded ----

// A name that is looked for among what is mapped. one-thread
typedef struct mapped_t {
  const char* name;
  char path[KILNI_DISK_PATH_LIMIT];
} mapped_t;

static bool loader_on_mapped(const kilni_base_dynlib_mapped_t* mapped,
                             void* user) {
  mapped_t* wanted = user;
  const char* slash = strrchr(mapped->path, '/');
  const char* file = slash ? slash + 1 : mapped->path;
  if (strcmp(file, wanted->name) != 0 &&
      strcmp(mapped->soname, wanted->name) != 0) {
    return true;
  }
  if (mapped->path[0] == 0 || strlen(mapped->path) >= sizeof(wanted->path)) {
    return true;
  }
  strcpy(wanted->path, mapped->path);
  return false;
}

kiln_status_t kilni_locate_loaded_find(kiln_locate_t* locate, const char* name,
                                       const char** out_path) {
  *out_path = NULL;
  mapped_t wanted;
  wanted.name = name;
  wanted.path[0] = 0;
  kilni_base_dynlib_each_mapped(loader_on_mapped, &wanted);
  if (wanted.path[0] == 0) return kiln_ok();
  return kilni_locate_disk_text(&locate->disk, kilni_base_sv(wanted.path),
                                out_path);
}
