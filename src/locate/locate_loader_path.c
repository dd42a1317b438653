// SPDX-License-Identifier: Apache-2.0
//
// locate: the folders that the system's loader searches before its cache.
//
// As in glibc for a dlopen by this library: DT_RPATH of the object that
// contains its code, of the objects that loaded that one, and of the program,
// unless the object has a DT_RUNPATH; LD_LIBRARY_PATH; that DT_RUNPATH alone.
// Of each folder the subfolders of glibc-hwcaps for this CPU come first. The
// subfolders that glibc before 2.37 had besides (tls, haswell, x86_64) are not
// looked into.
#include <stdio.h>
#include <string.h>

#include "base/cpu_features.h"
#include "base/dynlib.h"
#include "base/file.h"
#include "base/status_make.h"
#include "locate/locate_inside.h"
#include "locate/locate_ldcache.h"

enum { MAX_BRINGERS = 8 };

// A mapped object, as far as it affects the search. one-thread
typedef struct object_t {
  bool found;
  bool is_program;
  uint32_t index;  // in the order of the loader
  char soname[256];
  char origin[KILNI_DISK_PATH_LIMIT];  // its folder; "" where it has none
  char rpath[KILNI_DISK_PATH_LIMIT];   // "" where a RUNPATH is beside it
  char runpath[KILNI_DISK_PATH_LIMIT];
} object_t;

// ---- Tokens ----

// The values of tokens of a path; "" where unknown. one-thread
typedef struct tokens_t {
  const char* origin;
  char lib[64];
  bool has_platform;
} tokens_t;

static const char* platform(void);

static bool is_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

// How many bytes after a `$` are that token; 0: it is another one.
static size_t token_size(kiln_string_view_t rest, const char* name) {
  bool braced = rest.size > 0 && rest.data[0] == '{';
  size_t size = strlen(name);
  size_t start = braced ? 1 : 0;
  if (rest.size < start + size || memcmp(rest.data + start, name, size) != 0) {
    return 0;
  }
  size_t end = start + size;
  bool closed = end < rest.size && rest.data[end] == '}';
  if (braced) return closed ? end + 1 : 0;
  return end < rest.size && is_identifier(rest.data[end]) ? 0 : end;
}

// Replaces tokens; a `$` before anything else is a `$`. False where the text
// has an unknown one, or is too long.
static bool replace_tokens(kiln_string_view_t text, const tokens_t* tokens,
                           char out[KILNI_DISK_PATH_LIMIT]) {
  static const char* const names[] = {"ORIGIN", "LIB", "PLATFORM"};
  const char* const values[] = {tokens->origin, tokens->lib, ""};
  size_t used = 0;
  for (size_t at = 0; at < text.size;) {
    const char* value = NULL;
    size_t taken = 0;
    for (size_t i = 0; text.data[at] == '$' && i < 3 && taken == 0; i++) {
      taken = token_size(
          kilni_base_sv_make(text.data + at + 1, text.size - at - 1), names[i]);
      value = values[i];
      // The CPU is asked only by a text that wants to know.
      if (i == 2 && taken > 0 && tokens->has_platform) value = platform();
    }
    if (taken > 0 && value[0] == 0) return false;
    size_t size = taken > 0 ? strlen(value) : 1;
    if (used + size >= KILNI_DISK_PATH_LIMIT) return false;
    memcpy(out + used, taken > 0 ? value : text.data + at, size);
    used += size;
    at += 1 + taken;
  }
  out[used] = 0;
  return true;
}

// What $PLATFORM is to this machine's loader.
static const char* platform(void) {
#if defined(__x86_64__)
  uint32_t features = kilni_base_cpu_features();
  if ((features & KILNI_CPU_INTEL) != 0) {
    if ((features & KILNI_CPU_AVX512ER) != 0) return "xeon_phi";
    if ((features & KILNI_CPU_V3) != 0) return "haswell";
  }
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "";
#endif
}

// The build of the C library defined $LIB; its own folder shows it.
static bool on_c_library(const kilni_base_dynlib_mapped_t* mapped, void* user) {
  if (strcmp(mapped->soname, "libc.so.6") != 0) return true;
  const char* path = mapped->path;
  if (strncmp(path, "/usr/", 5) == 0) path += 4;
  const char* slash = strrchr(path, '/');
  size_t size = slash != NULL && slash > path ? (size_t)(slash - path - 1) : 0;
  tokens_t* tokens = user;
  if (path[0] == '/' && size < sizeof(tokens->lib) &&
      strncmp(path, "/lib", 4) == 0) {
    memcpy(tokens->lib, path + 1, size);
    tokens->lib[size] = 0;
  }
  return false;
}

static void find_tokens(const kiln_locate_t* locate, tokens_t* tokens) {
  memset(tokens, 0, sizeof(*tokens));
  tokens->origin = "";
  // Another system's loader is another.
  if (locate->is_mounted || !locate->is_native) return;
  tokens->has_platform = true;
  kilni_base_dynlib_each_mapped(on_c_library, tokens);
}

// ---- Folders ----

kiln_status_t kilni_locate_loader_add_folder(kiln_locate_t* locate,
                                             kilni_dispatch_place_t* place,
                                             const char* path,
                                             const char* via) {
  char text[KILNI_DISK_PATH_LIMIT];
  int size = snprintf(text, sizeof(text), "%s/glibc-hwcaps", path);
  if (path[0] != '/' || size < 0 || (size_t)size + 16 > sizeof(text)) {
    return kilni_locate_place_add(locate, place, path, via, KILNI_LAYOUT_FLAT);
  }
  uint32_t level = 0;
  kilni_locate_disk_node_t* node = NULL;
  if (locate->is_native) {
    KILNI_RETURN_IF_ERROR(kilni_locate_disk_look(&locate->disk, text, &node));
    // The CPU is asked last: few folders have any of these.
    if (node->kind == KILNI_FILE_DIR) level = kilni_locate_ldcache_cpu_level();
  }
  for (; level >= 2; level--) {
    snprintf(text + size, sizeof(text) - (size_t)size, "/x86-64-v%u",
             (unsigned)level);
    KILNI_RETURN_IF_ERROR(kilni_locate_disk_look(&locate->disk, text, &node));
    if (node->kind != KILNI_FILE_DIR) continue;
    KILNI_RETURN_IF_ERROR(
        kilni_locate_place_add(locate, place, text, via, KILNI_LAYOUT_FLAT));
  }
  return kilni_locate_place_add(locate, place, path, via, KILNI_LAYOUT_FLAT);
}

static kiln_status_t add_part(kiln_locate_t* locate,
                              kilni_dispatch_place_t* place,
                              const tokens_t* tokens, kiln_string_view_t part,
                              const char* via) {
  if (part.size == 0) {
    kilni_locate_trail_add(
        &place->notes, via,
        "an empty part is the working directory, which is never "
        "searched");
    return kiln_ok();
  }
  char path[KILNI_DISK_PATH_LIMIT];
  if (replace_tokens(part, tokens, path)) {
    return kilni_locate_loader_add_folder(locate, place, path, via);
  }
  if (part.size < sizeof(path)) {
    memcpy(path, part.data, part.size);
    path[part.size] = 0;
    kilni_locate_trail_add(&place->notes, path,
                           "has a token that only the loader "
                           "can replace");
  }
  return kiln_ok();
}

static kiln_status_t loader_path_add_parts(kiln_locate_t* locate,
                                           kilni_dispatch_place_t* place,
                                           const tokens_t* tokens,
                                           const char* text,
                                           const char* separators,
                                           const char* via) {
  while (text != NULL && text[0] != 0) {
    size_t size = strcspn(text, separators);
    KILNI_RETURN_IF_ERROR(
        add_part(locate, place, tokens, kilni_base_sv_make(text, size), via));
    text += size;
    if (text[0] == 0) break;
    text++;
    if (text[0] == 0) {  // an empty part at the end is one, too
      return add_part(locate, place, tokens, kilni_base_sv_make("", 0), via);
    }
  }
  return kiln_ok();
}

// ---- Objects ----

// Cuts the last part off; "" for what has none or is not absolute.
static void cut_to_folder(char* path) {
  char* slash = path[0] == '/' ? strrchr(path, '/') : NULL;
  if (slash == NULL) {
    path[0] = 0;
  } else {
    *slash = 0;
  }
}

static void take_object(const kilni_base_dynlib_mapped_t* mapped,
                        uint32_t index, object_t* out) {
  out->found = true;
  out->index = index;
  out->is_program = index == 0;
  const char* runpath = kilni_base_dynlib_mapped_runpath(mapped);
  const char* rpath =
      runpath[0] == 0 ? kilni_base_dynlib_mapped_rpath(mapped) : "";
  snprintf(out->soname, sizeof(out->soname), "%s", mapped->soname);
  snprintf(out->origin, sizeof(out->origin), "%s", mapped->path);
  snprintf(out->rpath, sizeof(out->rpath), "%s", rpath);
  snprintf(out->runpath, sizeof(out->runpath), "%s", runpath);
  if (out->is_program &&
      !kilni_base_link_read("/proc/self/exe", sizeof(out->origin),
                            out->origin)) {
    out->origin[0] = 0;
  }
  cut_to_folder(out->origin);
}

// A search among what is mapped. one-thread
typedef struct sought_t {
  const char* needs;  // the first that was linked with it; NULL: the program
  uint32_t before;    // in the loader's order
  uint32_t index;
  const void* address;  // or the one that contains it
  object_t* out;
} sought_t;

static bool loader_path_on_object(const kilni_base_dynlib_mapped_t* mapped,
                                  void* user) {
  sought_t* sought = user;
  uint32_t index = sought->index++;
  bool is = false;
  if (sought->address != NULL) {
    is = kilni_base_dynlib_mapped_holds(mapped, sought->address);
  } else if (sought->needs == NULL) {
    is = index == 0;
  } else if (index < sought->before) {
    const char* need;
    for (uint32_t i = 0;
         !is && (need = kilni_base_dynlib_mapped_need(mapped, i)) != NULL;
         i++) {
      is = strcmp(need, sought->needs) == 0;
    }
  }
  if (is) take_object(mapped, index, sought->out);
  return !is;
}

// Nothing yet; its texts are long, and only their first byte counts.
static void clear_object(object_t* object) {
  object->found = object->is_program = false;
  object->index = 0;
  object->soname[0] = object->origin[0] = 0;
  object->rpath[0] = object->runpath[0] = 0;
}

static void loader_path_find_object(const void* address, const char* needs,
                                    uint32_t before, object_t* out) {
  out->found = false;
  sought_t sought = {needs, before, 0, address, out};
  kilni_base_dynlib_each_mapped(loader_path_on_object, &sought);
}

// An address in the object that contains this library's code.
static const char kHere = 0;

// ---- All of them ----

// DT_RPATH of an object, of those that loaded it, and of the program. What
// opened an object that no other is linked with is unknown.
static kiln_status_t add_rpaths(kiln_locate_t* locate,
                                kilni_dispatch_place_t* place,
                                const tokens_t* machine,
                                const object_t* caller) {
  object_t object = *caller;
  tokens_t of_object = *machine;
  tokens_t* tokens = &of_object;
  for (int i = 0; i < MAX_BRINGERS && object.found; i++) {
    tokens->origin = object.origin;
    KILNI_RETURN_IF_ERROR(loader_path_add_parts(locate, place, tokens,
                                                object.rpath, ":", "RPATH"));
    if (object.is_program) return kiln_ok();
    char soname[sizeof(object.soname)];
    snprintf(soname, sizeof(soname), "%s", object.soname);
    loader_path_find_object(NULL, soname, object.index, &object);
  }
  loader_path_find_object(NULL, NULL, 0, &object);
  tokens->origin = object.origin;
  return object.found ? loader_path_add_parts(locate, place, tokens,
                                              object.rpath, ":", "RPATH")
                      : NULL;
}

static kiln_status_t loader_path_add_variable(kiln_locate_t* locate,
                                              kilni_dispatch_place_t* place,
                                              const tokens_t* machine) {
  const char* text = kilni_locate_place_env(locate, KILNI_ENV_LD_LIBRARY_PATH);
  if (text == NULL || text[0] == 0) return kiln_ok();
  // $ORIGIN in it is the program's.
  object_t program;
  clear_object(&program);
  loader_path_find_object(NULL, NULL, 0, &program);
  tokens_t tokens = *machine;
  tokens.origin = program.origin;
  return loader_path_add_parts(locate, place, &tokens, text, ":;",
                               "LD_LIBRARY_PATH");
}

static kiln_status_t fill_folders(kiln_locate_t* locate,
                                  kilni_dispatch_place_t* place) {
  tokens_t tokens;
  find_tokens(locate, &tokens);
  object_t caller;
  clear_object(&caller);
  if (!locate->is_mounted && !locate->secure) {
    loader_path_find_object(&kHere, NULL, 0, &caller);
  }
  if (caller.found && caller.runpath[0] == 0) {
    KILNI_RETURN_IF_ERROR(add_rpaths(locate, place, &tokens, &caller));
  }
  KILNI_RETURN_IF_ERROR(loader_path_add_variable(locate, place, &tokens));
  tokens.origin = caller.origin;
  return loader_path_add_parts(locate, place, &tokens, caller.runpath, ":",
                               "RUNPATH");
}

kiln_status_t kilni_locate_loader_folders(kiln_locate_t* locate,
                                          kilni_dispatch_place_t** out_place) {
  kilni_dispatch_place_t* place = &locate->places[KILN_LOCATE_SCOPE_LOADER];
  *out_place = place;
  if (place->ready) return kiln_ok();
  kilni_locate_trail_init(&place->notes, locate->allocator);
  place->ready = true;
  kiln_status_t status = fill_folders(locate, place);
  if (kiln_status_is_ok(status)) {
    status = kilni_locate_trail_status(&place->notes);
  }
  if (!kiln_status_is_ok(status)) kilni_locate_place_deinit(locate, place);
  return status;
}
