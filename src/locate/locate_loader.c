// SPDX-License-Identifier: Apache-2.0
//
// locate: where the system's loader would look, and what it has loaded.
//
// The loader itself is never asked: it would load. Its order is glibc's:
// DT_RPATH of the program, LD_LIBRARY_PATH, DT_RUNPATH, ld.so.cache, the
// folders that are built in.
#include <stdio.h>
#include <string.h>

#include "base/dynlib.h"
#include "base/status_make.h"
#include "locate/locate_inside.h"
#include "locate/locate_ldcache.h"

static const char kCache[] = "ld.so.cache";

// ---- Folders that texts name ----

// The program's own path is $ORIGIN's.
static bool origin_of_program(char out[KILNI_DISK_PATH_LIMIT]) {
  if (!kilni_link_read("/proc/self/exe", KILNI_DISK_PATH_LIMIT, out)) {
    return false;
  }
  char* slash = strrchr(out, '/');
  if (slash == NULL) return false;
  *slash = 0;
  return true;
}

static kiln_status_t add_folder(kiln_locate_t* locate, kilni_place_t* place,
                                kiln_string_view_t text, const char* via) {
  char path[KILNI_DISK_PATH_LIMIT];
  static const char* const tokens[] = {"$ORIGIN", "${ORIGIN}"};
  size_t start = 0;
  path[0] = 0;
  if (text.size == 0) {
    kilni_trail_add(&place->notes, via,
                    "an empty part is the working directory, which is never "
                    "searched");
    return NULL;
  }
  for (size_t i = 0; i < 2; i++) {
    if (start > 0 || !kilni_sv_starts_with(text, tokens[i])) continue;
    start = strlen(tokens[i]);
    if (!origin_of_program(path)) return NULL;
  }
  size_t used = strlen(path);
  size_t rest = text.size - start;
  if (used + rest >= sizeof(path)) return NULL;
  memcpy(path + used, text.data + start, rest);
  path[used + rest] = 0;
  if (strchr(path, '$') != NULL) {
    kilni_trail_add(&place->notes, path,
                    "has a token that only the loader "
                    "can replace");
    return NULL;
  }
  return kilni_place_add(locate, place, path, via, KILNI_LAYOUT_FLAT);
}

static kiln_status_t add_folders(kiln_locate_t* locate, kilni_place_t* place,
                                 const char* text, const char* separators,
                                 const char* via) {
  while (text != NULL && text[0] != 0) {
    size_t size = strcspn(text, separators);
    KILNI_RETURN_IF_ERROR(
        add_folder(locate, place, kilni_sv_make(text, size), via));
    text += size;
    if (text[0] == 0) break;
    text++;
    if (text[0] == 0) {  // an empty part at the end is one, too
      return add_folder(locate, place, kilni_sv_make("", 0), via);
    }
  }
  return NULL;
}

// What the program says for itself. one-thread
typedef struct program_t {
  char rpath[KILNI_DISK_PATH_LIMIT];
  char runpath[KILNI_DISK_PATH_LIMIT];
} program_t;

static bool read_program(const kilni_dynlib_mapped_t* mapped, void* user) {
  program_t* program = user;
  const char* rpath = kilni_dynlib_mapped_rpath(mapped);
  const char* runpath = kilni_dynlib_mapped_runpath(mapped);
  snprintf(program->rpath, sizeof(program->rpath), "%s", rpath);
  snprintf(program->runpath, sizeof(program->runpath), "%s", runpath);
  return false;  // the program comes first
}

static kiln_status_t fill_folders(kiln_locate_t* locate, kilni_place_t* place) {
  program_t program = {"", ""};
  if (!locate->is_mounted && !locate->secure) {
    kilni_dynlib_each_mapped(read_program, &program);
  }
  if (program.runpath[0] == 0) {
    KILNI_RETURN_IF_ERROR(
        add_folders(locate, place, program.rpath, ":", "RPATH"));
  }
  KILNI_RETURN_IF_ERROR(add_folders(
      locate, place, kilni_place_env(locate, KILNI_ENV_LD_LIBRARY_PATH), ":;",
      "LD_LIBRARY_PATH"));
  return add_folders(locate, place, program.runpath, ":", "RUNPATH");
}

kiln_status_t kilni_loader_folders(kiln_locate_t* locate,
                                   kilni_place_t** out_place) {
  kilni_place_t* place = &locate->places[KILN_LOCATE_SCOPE_LOADER];
  *out_place = place;
  if (place->ready) return NULL;
  kilni_trail_init(&place->notes, locate->allocator);
  place->ready = true;
  kiln_status_t status = fill_folders(locate, place);
  if (kiln_status_is_ok(status)) status = kilni_trail_status(&place->notes);
  if (!kiln_status_is_ok(status)) kilni_place_deinit(locate, place);
  return status;
}

// ---- The cache ----

void kilni_loader_deinit(kiln_locate_t* locate) {
  kilni_loader_t* loader = &locate->loader;
  if (loader->data != NULL) {
    kilni_file_free(locate->allocator, loader->data, loader->size);
  }
  memset(loader, 0, sizeof(*loader));
}

static kiln_status_t read_cache(kiln_locate_t* locate) {
  kilni_loader_t* loader = &locate->loader;
  if (loader->ready) return NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_place_below_system(locate, "/etc/ld.so.cache", &loader->path));
  kiln_status_t status =
      kilni_file_read(locate->allocator, loader->path, KILNI_LDCACHE_LIMIT,
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
      loader->why = "too large for what it should be";
      break;
    default:
      loader->why = "cannot be read";
      break;
  }
  kiln_status_free(status);
  loader->ready = true;
  return NULL;
}

static void note(kilni_trail_t* trail, const char* path, const char* why) {
  if (trail != NULL) kilni_trail_add(trail, path, why);
}

// The path that the cache has for a name, below the system's root.
static kiln_status_t look_in_cache(kiln_locate_t* locate, const char* name,
                                   kilni_trail_t* trail,
                                   const char** out_path) {
  *out_path = NULL;
  KILNI_RETURN_IF_ERROR(read_cache(locate));
  kilni_loader_t* loader = &locate->loader;
  kilni_ldcache_t cache;
  const char* why = loader->why;
  if (why != NULL ||
      !kilni_ldcache_open(loader->data, loader->size, &cache, &why)) {
    note(trail, loader->path, why);
    return NULL;
  }
  bool x86 = strncmp(locate->target, "x86_64", 6) == 0;
  kiln_string_view_t path = kilni_ldcache_find(
      &cache, name, x86 ? KILNI_LDCACHE_X86_64 : KILNI_LDCACHE_AARCH64,
      locate->is_native ? kilni_ldcache_cpu_level() : 0);
  char text[256];
  if (path.size == 0 || path.data[0] != '/') {
    snprintf(text, sizeof(text), "does not name %s", name);
    note(trail, loader->path, text);
    return NULL;
  }
  return kilni_place_below_system(locate, path.data, out_path);
}

// ---- Finding ----

static kiln_status_t is_file(kiln_locate_t* locate, const char* path,
                             kilni_trail_t* trail, bool* out_is) {
  kilni_disk_node_t* node = NULL;
  KILNI_RETURN_IF_ERROR(kilni_disk_look(&locate->disk, path, &node));
  *out_is = node->kind == KILNI_FILE_REGULAR;
  char why[128];
  if (!*out_is) {
    note(trail, path, kilni_disk_why(node, false, sizeof(why), why));
  }
  return NULL;
}

// `folder`/`name`, where it is a file.
static kiln_status_t in_folder(kiln_locate_t* locate, const char* folder,
                               const char* name, kilni_trail_t* trail,
                               const char** out_path) {
  *out_path = NULL;
  char path[KILNI_DISK_PATH_LIMIT];
  size_t folder_size = strlen(folder);
  size_t size = folder_size + 1 + strlen(name);
  if (size >= sizeof(path)) return NULL;
  memcpy(path, folder, folder_size);
  path[folder_size] = '/';
  memcpy(path + folder_size + 1, name, strlen(name) + 1);
  kilni_disk_node_t* dir = NULL;
  kilni_disk_node_t* file = NULL;
  kiln_string_view_t dir_view = kilni_sv_make(path, folder_size);
  KILNI_RETURN_IF_ERROR(
      kilni_disk_dir(&locate->disk, dir_view, folder_size, &dir));
  bool was_gone = dir->known && dir->kind != KILNI_FILE_DIR;
  if (!was_gone) {
    KILNI_RETURN_IF_ERROR(kilni_disk_file(
        &locate->disk, dir, kilni_sv_make(path, size), folder_size, &file));
    if (file->kind == KILNI_FILE_REGULAR) {
      *out_path = file->path;
      return NULL;
    }
  }
  bool gone = dir->known && dir->kind != KILNI_FILE_DIR;
  char why[128];
  note(trail, gone ? dir->path : file->path,
       kilni_disk_why(gone ? dir : file, gone, sizeof(why), why));
  return NULL;
}

static kiln_status_t in_default_folders(kiln_locate_t* locate, const char* name,
                                        kilni_trail_t* trail,
                                        const char** out_path) {
  // Where / and /usr are one, the second spelling is enough.
  kilni_loader_t* loader = &locate->loader;
  *out_path = NULL;
  if (!loader->knows_merged) {
    const char* lib = NULL;
    KILNI_RETURN_IF_ERROR(kilni_place_below_system(locate, "/lib", &lib));
    loader->merged = kilni_link_is(lib);
    loader->knows_merged = true;
  }
  static const char* const formats[] = {
      "/lib/%s", "/lib64", "/lib", "/usr/lib/%s", "/usr/lib64", "/usr/lib"};
  for (size_t i = loader->merged ? 3 : 0; *out_path == NULL && i < 6; i++) {
    char text[256];
    const char* folder = NULL;
    if (i % 3 == 0) {
      snprintf(text, sizeof(text), i == 0 ? "/lib/%s" : "/usr/lib/%s",
               locate->multiarch);
    } else {
      snprintf(text, sizeof(text), "%s", formats[i]);
    }
    KILNI_RETURN_IF_ERROR(kilni_place_below_system(locate, text, &folder));
    KILNI_RETURN_IF_ERROR(in_folder(locate, folder, name, trail, out_path));
  }
  return NULL;
}

kiln_status_t kilni_loader_find(kiln_locate_t* locate, const char* name,
                                kilni_trail_t* trail, const char** out_path,
                                const char** out_via) {
  *out_path = NULL;
  *out_via = "";
  kilni_place_t* place = NULL;
  KILNI_RETURN_IF_ERROR(kilni_loader_folders(locate, &place));
  const kilni_root_t* roots = place->roots;
  for (size_t i = 0; i < place->count; i++) {
    KILNI_RETURN_IF_ERROR(
        in_folder(locate, roots[i].path, name, trail, out_path));
    if (*out_path == NULL) continue;
    *out_via = roots[i].via;
    return NULL;
  }
  KILNI_RETURN_IF_ERROR(look_in_cache(locate, name, trail, out_path));
  if (*out_path != NULL) {
    bool is = false;
    KILNI_RETURN_IF_ERROR(is_file(locate, *out_path, trail, &is));
    *out_via = kCache;
    if (is) return NULL;
  }
  *out_via = "default folders";
  KILNI_RETURN_IF_ERROR(in_default_folders(locate, name, trail, out_path));
  if (*out_path == NULL) *out_via = "";
  return NULL;
}

// ---- What is loaded ----

// A name that is looked for among what is mapped. one-thread
typedef struct mapped_t {
  const char* name;
  char path[KILNI_DISK_PATH_LIMIT];
} mapped_t;

static bool on_mapped(const kilni_dynlib_mapped_t* mapped, void* user) {
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

kiln_status_t kilni_loaded_find(kiln_locate_t* locate, const char* name,
                                const char** out_path) {
  *out_path = NULL;
  mapped_t wanted;
  wanted.name = name;
  wanted.path[0] = 0;
  kilni_dynlib_each_mapped(on_mapped, &wanted);
  if (wanted.path[0] == 0) return NULL;
  return kilni_disk_text(&locate->disk, kilni_sv(wanted.path), out_path);
}
