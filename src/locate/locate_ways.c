// SPDX-License-Identifier: Apache-2.0
//
// locate: the methods of searching: by name, by root, by loader.
#include <stdio.h>
#include <string.h>

#include "base/name_distance.h"
#include "base/file.h"
#include "base/status_make.h"
#include "locate/locate.h"
#include "locate/locate_search.h"

enum { MAX_SLIPS = 2 };  // of a misspelled name

// ---- Folders of a root ----

// The list of folders for a layout; KILN_LOCATE_LIST_COUNT: none.
static uint32_t list_of(uint32_t layout) {
  switch (layout) {
    case KILNI_LAYOUT_WHEEL:
      return KILN_LOCATE_LIST_WHEEL_DIRS;
    case KILNI_LAYOUT_CONDA:
      return KILN_LOCATE_LIST_CONDA_DIRS;
    case KILNI_LAYOUT_TOOLKIT:
      return KILN_LOCATE_LIST_TOOLKIT_DIRS;
    case KILNI_LAYOUT_PRODUCT:
      return KILN_LOCATE_LIST_VARIABLE_DIRS;
    case KILNI_LAYOUT_DISTRIBUTION:
      return KILN_LOCATE_LIST_DISTRIBUTION_DIRS;
    case KILNI_LAYOUT_HPC_SDK:
      return KILN_LOCATE_LIST_HPC_SDK_DIRS;
    default:
      return KILN_LOCATE_LIST_COUNT;
  }
}

// Appends `dir` to the root in `search->path`, its tokens replaced. The length,
// or 0 where it does not fit.
static size_t put_folder(kilni_locate_search_t* search, const char* root,
                         const char* dir, const char* target) {
  size_t size = strlen(root);
  if (size == 1 && root[0] == '/') size = 0;
  const size_t space = sizeof(search->path) - 1;
  if (size + 1 >= space) return 0;
  memcpy(search->path, root, size);
  if (dir[0] != 0) search->path[size++] = '/';
  while (dir[0] != 0) {
    const char* text = NULL;
    if (dir[0] == '{') {
      text = dir[1] == 't' ? target : search->locate->multiarch;
    }
    if (text != NULL) {
      size_t length = strlen(text);
      if (size + length >= space) return 0;
      memcpy(search->path + size, text, length);
      size += length;
      dir = strchr(dir, '}') + 1;
      continue;
    }
    if (size + 1 >= space) return 0;
    search->path[size++] = *dir++;
  }
  if (size == 0) search->path[size++] = '/';
  search->path[size] = 0;
  return size;
}

// True if the root itself does not exist, which is reported once.
static kiln_status_t root_is_gone(kilni_locate_search_t* search,
                                  const char* root, bool* out_gone) {
  *out_gone = false;
  for (size_t i = 0; i < search->gone_count; i++) {
    if (strcmp(search->gone[i], root) == 0) *out_gone = true;
  }
  if (*out_gone) return kiln_ok();
  kilni_locate_disk_node_t* node = search->root;
  // Asked before each folder of a root.
  if (node == NULL || strcmp(node->path, root) != 0 ||
      (node->suspect && !node->known)) {
    KILNI_RETURN_IF_ERROR(kilni_locate_disk_dir(
        &search->locate->disk, kilni_base_sv(root), strlen(root), &node));
    search->root = node;
  }
  if (!node->known || node->kind == KILNI_FILE_DIR) return kiln_ok();
  *out_gone = true;
  char why[128];
  kilni_locate_trail_add(&search->trail, node->path,
                         kilni_locate_disk_why(node, true, sizeof(why), why));
  if (search->gone_count < KILNI_SEARCH_MAX_GONE) {
    search->gone[search->gone_count++] = node->path;
  }
  return kiln_ok();
}

// What a `*` in the last part matches. one-thread
typedef struct star_t {
  kilni_locate_search_t* search;
  kilni_locate_search_where_t* where;
  const char* above;
} star_t;

static kiln_status_t on_star(const char* name, void* user) {
  const star_t* star = user;
  kilni_locate_search_t* search = star->search;
  if (kilni_locate_search_is_done(search)) return kiln_ok();
  int size =
      snprintf(search->path, sizeof(search->path), "%s/%s", star->above, name);
  if (size < 0 || (size_t)size >= sizeof(search->path)) return kiln_ok();
  return kilni_locate_search_folder(search, star->where, (size_t)size);
}

// The folder in `search->path`, whose last part has a `*`.
static kiln_status_t try_star(kilni_locate_search_t* search,
                              kilni_locate_search_where_t* where) {
  char pattern[KILNI_DISK_PATH_LIMIT];
  memcpy(pattern, search->path, sizeof(pattern));
  char* slash = strrchr(pattern, '/');
  char* star = slash ? strchr(slash, '*') : NULL;
  if (star == NULL || slash == pattern) return kiln_ok();
  *slash = 0;
  *star = 0;
  star_t stars = {search, where, pattern};
  return kilni_locate_place_each_version(search->locate, pattern, slash + 1,
                                         star + 1, on_star, &stars);
}

// True if a folder without the target in its name contains what is searched
// for: of another machine's toolkit only the target folders do.
static bool suits_target(const kilni_locate_search_t* search, uint32_t layout,
                         const char* dir) {
  if (search->locate->is_native || layout == KILNI_LAYOUT_WHEEL) return true;
  uint32_t kind = kiln_locate_entry_kind(search->plan->entry);
  if (kind == KILN_LOCATE_KIND_BINARY || kind == KILN_LOCATE_KIND_BITCODE) {
    return true;
  }
  return strchr(dir, '{') != NULL;
}

static kiln_status_t try_dir(kilni_locate_search_t* search, uint32_t scope,
                             const kilni_locate_root_t* root, uint32_t layout,
                             uint32_t index) {
  const kiln_locate_entry_t* entry = search->plan->entry;
  uint32_t list = list_of(layout);
  const char* dir = kiln_locate_entry_list_text(entry, list, index);
  if (dir == NULL || !suits_target(search, layout, dir)) return kiln_ok();
  kilni_locate_search_where_t where = {
      root->path, root->via,
      "",         scope,
      layout,     kiln_locate_entry_list_major(entry, list, index),
      0,          strlen(root->path)};
  uint32_t major = search->plan->major;
  if (major != 0 && where.major != 0 && where.major != major) return kiln_ok();
  const char* targets[] = {search->locate->target, search->locate->target2};
  size_t count = strstr(dir, "{target}") != NULL && targets[1] != NULL ? 2 : 1;
  for (size_t i = 0; i < count && !kilni_locate_search_is_done(search); i++) {
    size_t size = put_folder(search, root->path, dir, targets[i]);
    if (size == 0) {
      kilni_locate_trail_add(&search->trail, root->path,
                             "its path is too long");
      continue;
    }
    // The folders of a distribution contain thousands of files.
    if (layout == KILNI_LAYOUT_DISTRIBUTION) where.listing = size;
    KILNI_RETURN_IF_ERROR(strchr(dir, '*') != NULL ? try_star(search, &where)
                                                   : kilni_locate_search_folder(
                                                         search, &where, size));
  }
  return kiln_ok();
}

static kiln_status_t try_layout(kilni_locate_search_t* search, uint32_t scope,
                                const kilni_locate_root_t* root,
                                uint32_t layout) {
  if (layout == KILNI_LAYOUT_FLAT) {
    size_t size = put_folder(search, root->path, "", "");
    if (size == 0) return kiln_ok();
    kilni_locate_search_where_t where = {root->path, root->via, "", scope,
                                         layout,     0,         0,  size};
    return kilni_locate_search_folder(search, &where, size);
  }
  uint32_t count =
      kiln_locate_entry_list_count(search->plan->entry, list_of(layout));
  for (uint32_t i = 0; i < count && !kilni_locate_search_is_done(search); i++) {
    bool gone = false;
    KILNI_RETURN_IF_ERROR(root_is_gone(search, root->path, &gone));
    if (gone) return kiln_ok();
    KILNI_RETURN_IF_ERROR(try_dir(search, scope, root, layout, i));
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_search_root(kilni_locate_search_t* search,
                                       uint32_t scope,
                                       const kilni_locate_root_t* root) {
  if (root->layout != KILNI_LAYOUT_ANY) {
    return try_layout(search, scope, root, root->layout);
  }
  static const uint8_t layouts[] = {KILNI_LAYOUT_TOOLKIT, KILNI_LAYOUT_CONDA,
                                    KILNI_LAYOUT_WHEEL, KILNI_LAYOUT_FLAT};
  for (size_t i = 0; i < sizeof(layouts); i++) {
    KILNI_RETURN_IF_ERROR(try_layout(search, scope, root, layouts[i]));
    if (kilni_locate_search_is_done(search)) return kiln_ok();
  }
  return kiln_ok();
}

// The folders outside, the roots inside: a CUDA 13 wheel of any root comes
// before a CUDA 12 wheel of the first one, as for cuda-pathfinder.
kiln_status_t kilni_locate_search_wheels(kilni_locate_search_t* search,
                                         const kilni_dispatch_place_t* place) {
  uint32_t count = kiln_locate_entry_list_count(search->plan->entry,
                                                KILN_LOCATE_LIST_WHEEL_DIRS);
  const kilni_locate_root_t* roots = place->roots;
  for (uint32_t i = 0; i < count; i++) {
    for (size_t j = 0; j < place->count; j++) {
      bool gone = false;
      KILNI_RETURN_IF_ERROR(root_is_gone(search, roots[j].path, &gone));
      if (gone) continue;
      KILNI_RETURN_IF_ERROR(try_dir(search, KILN_LOCATE_SCOPE_WHEEL, &roots[j],
                                    KILNI_LAYOUT_WHEEL, i));
      if (kilni_locate_search_is_done(search)) return kiln_ok();
    }
  }
  return kiln_ok();
}

// ---- Products ----

kiln_status_t kilni_locate_search_product(kilni_locate_search_t* search) {
  const kiln_locate_entry_t* entry = search->plan->entry;
  uint32_t count =
      kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_VARIABLES);
  for (uint32_t i = 0; i < count; i++) {
    const char* name =
        kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_VARIABLES, i);
    const char* value = kilni_base_env_text_by_name(&search->locate->env, name);
    if (value == NULL || value[0] == 0) {
      kilni_locate_trail_add(&search->trail, name, "not set");
      continue;
    }
    // Through a place of its own, for the same checks as everywhere.
    kilni_dispatch_place_t place;
    memset(&place, 0, sizeof(place));
    kilni_locate_trail_init(&place.notes, search->locate->allocator);
    place.ready = true;
    kiln_status_t status = kilni_locate_place_add(search->locate, &place, value,
                                                  name, KILNI_LAYOUT_PRODUCT);
    if (place.count > 0 && kiln_status_is_ok(status)) {
      status = kilni_locate_search_root(search, KILN_LOCATE_SCOPE_PRODUCT,
                                        place.roots);
    } else {
      kilni_locate_trail_add(&search->trail, value, "not absolute");
    }
    kilni_locate_place_deinit(search->locate, &place);
    KILNI_RETURN_IF_ERROR(status);
    if (kilni_locate_search_is_done(search)) return kiln_ok();
  }
  return kiln_ok();
}

// ---- The loader ----

static kiln_status_t take_named(kilni_locate_search_t* search, uint32_t scope,
                                uint32_t index, uint32_t major,
                                const char* path, const char* via) {
  kilni_locate_search_where_t where = {
      NULL,
      via,
      kiln_locate_entry_list_text(search->plan->entry, KILN_LOCATE_LIST_FILES,
                                  index),
      scope,
      KILNI_LAYOUT_ANY,
      major,
      0,
      0};
  return kilni_locate_search_take(search, &where, path, path);
}

kiln_status_t kilni_locate_search_loader(kilni_locate_search_t* search) {
  const kiln_locate_entry_t* entry = search->plan->entry;
  if (!search->locate->is_native) return kiln_ok();
  kilni_dispatch_place_t* place = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_loader_folders(search->locate, &place));
  kilni_locate_trail_append(&search->trail, &place->notes);
  uint32_t count = kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_FILES);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t major = 0;
    if (!kilni_locate_search_wants_file(search, i, 0, &major)) continue;
    const char* name =
        kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_FILES, i);
    const char* path = NULL;
    const char* via = "";
    KILNI_RETURN_IF_ERROR(kilni_locate_loader_find(
        search->locate, name, &search->trail, &path, &via));
    if (path == NULL) continue;
    KILNI_RETURN_IF_ERROR(
        take_named(search, KILN_LOCATE_SCOPE_LOADER, i, major, path, via));
    if (kilni_locate_search_is_done(search)) return kiln_ok();
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_search_loaded(kilni_locate_search_t* search) {
  const kiln_locate_entry_t* entry = search->plan->entry;
  uint32_t count = kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_FILES);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t major = 0;
    if (!kilni_locate_search_wants_file(search, i, 0, &major)) continue;
    const char* name =
        kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_FILES, i);
    const char* path = NULL;
    KILNI_RETURN_IF_ERROR(
        kilni_locate_loaded_find(search->locate, name, &path));
    if (path == NULL) {
      kilni_locate_trail_add(&search->trail, name, "not loaded");
      continue;
    }
    if (path[0] != '/') {
      kilni_locate_trail_add(&search->trail, path,
                             "loaded by a path that is not absolute");
      continue;
    }
    KILNI_RETURN_IF_ERROR(take_named(search, KILN_LOCATE_SCOPE_LOADED, i, major,
                                     path, "link map"));
    if (kilni_locate_search_is_done(search)) return kiln_ok();
  }
  return kiln_ok();
}

// ---- Overrides ----

void kilni_locate_override_name(const kiln_locate_entry_t* entry,
                                size_t capacity, char* out_name) {
  snprintf(out_name, capacity, "KILN_LOCATE_%s_%s",
           kiln_locate_kind_name(kiln_locate_entry_kind(entry)),
           kiln_locate_entry_name(entry));
  for (char* at = out_name; *at != 0; at++) {
    bool digit = *at >= '0' && *at <= '9';
    if (*at >= 'a' && *at <= 'z') {
      *at = (char)(*at - 'a' + 'A');
    } else if (!digit && !(*at >= 'A' && *at <= 'Z')) {
      *at = '_';
    }
  }
}

// What is named for a row, and by whom; NULL for nothing.
static const char* ways_named(const kiln_locate_t* locate,
                              const kiln_locate_entry_t* entry, size_t capacity,
                              char* out_by) {
  uint32_t kind = kiln_locate_entry_kind(entry);
  for (uint32_t i = 0; i < locate->override_count; i++) {
    const kiln_locate_override_t* item = &locate->overrides[i];
    if (item->kind != kind ||
        strcmp(item->name, kiln_locate_entry_name(entry)) != 0) {
      continue;
    }
    snprintf(out_by, capacity, "option");
    return item->path;
  }
  kilni_locate_override_name(entry, capacity, out_by);
  return kilni_base_env_member(&locate->env, out_by);
}

bool kilni_locate_override_is_set(const kiln_locate_t* locate,
                                  const kiln_locate_entry_t* entry) {
  char by[KILNI_OVERRIDE_NAME_BYTES];
  const char* value = ways_named(locate, entry, sizeof(by), by);
  return value != NULL && value[0] != 0 &&
         kilni_locate_scope_is_allowed(locate, KILN_LOCATE_SCOPE_OVERRIDE);
}

bool kilni_locate_is_named(const kiln_locate_t* locate, uint32_t kind,
                           const char* name) {
  const kiln_locate_entry_t* entry = kiln_locate_entry_find(kind, name);
  return entry != NULL && kilni_locate_override_is_set(locate, entry);
}

// "libnvrtc.so.13 or libnvrtc.so.12"
static void list_files(const kiln_locate_entry_t* entry,
                       kilni_base_str_t* text) {
  uint32_t count = kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_FILES);
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) kilni_base_str_add_cstr(text, i + 1 == count ? " or " : ", ");
    kilni_base_str_add_cstr(
        text, kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_FILES, i));
  }
}

static kiln_status_t wrong_override(const kilni_locate_search_t* search,
                                    const char* by, const char* value) {
  kilni_base_str_t files;
  kilni_base_str_init(&files, search->locate->allocator, 4096);
  list_files(search->plan->entry, &files);
  bool is_option = strcmp(by, "option") == 0;
  kiln_status_t status = KILNI_FAIL(
      NOT_FOUND,
      "%s%s names \"%s\" for %s \"%s\", which is neither that file "
      "nor a folder with %s",
      is_option ? "an " : "the variable ", by, value,
      kiln_locate_kind_name(kiln_locate_entry_kind(search->plan->entry)),
      kiln_locate_entry_name(search->plan->entry), kilni_base_str_cstr(&files));
  kilni_base_str_deinit(&files);
  const uint32_t* marks = search->trail.marks;
  for (size_t i = 0; i < search->trail.count && i < KILNI_ITEM_LISTED; i++) {
    const char* text = search->trail.text.data;
    status = KILNI_ANNOTATE(status, "tried \"%s\": %s", text + marks[2 * i],
                            text + marks[2 * i + 1]);
  }
  if (is_option) {
    return kilni_base_status_with_fix(status, "name an existing absolute path");
  }
  return kilni_base_status_with_fix(
      status, "set %s to an existing absolute path, or unset it", by);
}

// A file that is named by itself, whatever it is called.
static kiln_status_t take_override(kilni_locate_search_t* search,
                                   const char* file, const char* by) {
  kilni_locate_disk_t* disk = &search->locate->disk;
  const kiln_locate_entry_t* entry = search->plan->entry;
  kilni_locate_search_where_t where = {NULL, by, "", KILN_LOCATE_SCOPE_OVERRIDE,
                                       0,    0,  0,  0};
  const char* slash = strrchr(file, '/');
  where.file_name = slash + 1;
  // Of a header with a folder of its own the folder above that one is meant.
  const char* canonical =
      kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_FILES, 0);
  size_t size = (size_t)(slash - file);
  size_t length = canonical ? strlen(canonical) : 0;
  size_t whole = strlen(file);
  if (search->is_header && canonical != NULL && whole > length + 1 &&
      strcmp(file + whole - length, canonical) == 0 &&
      file[whole - length - 1] == '/') {
    size = whole - length - 1;
    where.file_name = canonical;
  }
  const char* dir = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_disk_text(
      disk, size > 0 ? kilni_base_sv_make(file, size) : kilni_base_sv("/"),
      &dir));
  uint32_t count = kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_FILES);
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(where.file_name, kiln_locate_entry_list_text(
                                    entry, KILN_LOCATE_LIST_FILES, i)) == 0) {
      where.major =
          kiln_locate_entry_list_major(entry, KILN_LOCATE_LIST_FILES, i);
    }
  }
  return kilni_locate_search_take(search, &where, file, dir);
}

static bool is_a_rows_name(const char* variable) {
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    char name[KILNI_OVERRIDE_NAME_BYTES];
    kilni_locate_override_name(kiln_locate_entry(i), sizeof(name), name);
    if (strcmp(name, variable) == 0) return true;
  }
  return false;
}

// An unknown variable that resembles this one is most likely meant to be it;
// ignoring it silently would hide the mistake.
static kiln_status_t warn_of_misspelled(kilni_locate_search_t* search,
                                        const char* right) {
  const kilni_base_env_t* env = &search->locate->env;
  kiln_string_view_t view;
  for (size_t i = 0; kilni_base_env_member_at(env, i, &view) != NULL; i++) {
    char name[KILNI_OVERRIDE_NAME_BYTES];
    if (view.size >= sizeof(name)) continue;
    memcpy(name, view.data, view.size);
    name[view.size] = 0;
    uint32_t far = kilni_base_name_distance(name, right);
    if (far == 0 || far > MAX_SLIPS || is_a_rows_name(name)) continue;
    char text[2 * KILNI_OVERRIDE_NAME_BYTES + 64];
    snprintf(text, sizeof(text),
             "the variable %s names no component; did you mean %s?", name,
             right);
    const char* copy = NULL;
    KILNI_RETURN_IF_ERROR(kilni_locate_disk_text(&search->locate->disk,
                                                 kilni_base_sv(text), &copy));
    kilni_locate_search_warn(search, copy);
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_search_override(kilni_locate_search_t* search) {
  char by[KILNI_OVERRIDE_NAME_BYTES];
  const char* value =
      ways_named(search->locate, search->plan->entry, sizeof(by), by);
  if (value == NULL || value[0] == 0) return warn_of_misspelled(search, by);
  kilni_locate_disk_t* disk = &search->locate->disk;
  const char* via = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_disk_text(disk, kilni_base_sv(by), &via));
  if (value[0] == '/') {
    kilni_locate_disk_node_t* node = NULL;
    KILNI_RETURN_IF_ERROR(kilni_locate_disk_look(disk, value, &node));
    if (node->kind == KILNI_FILE_REGULAR) {
      KILNI_RETURN_IF_ERROR(take_override(search, node->path, via));
    } else if (node->kind == KILNI_FILE_DIR) {
      kilni_locate_root_t flat = {node->path, via, KILNI_LAYOUT_FLAT, 0};
      kilni_locate_root_t any = {node->path, via, KILNI_LAYOUT_ANY, 0};
      KILNI_RETURN_IF_ERROR(
          kilni_locate_search_root(search, KILN_LOCATE_SCOPE_OVERRIDE, &flat));
      if (!kilni_locate_search_is_done(search)) {
        KILNI_RETURN_IF_ERROR(
            kilni_locate_search_root(search, KILN_LOCATE_SCOPE_OVERRIDE, &any));
      }
    }
  } else {
    kilni_locate_trail_add(&search->trail, value, "not absolute");
  }
  bool any = kilni_locate_search_is_done(search) || search->item_count > 0;
  return any ? kiln_ok() : wrong_override(search, by, value);
}
