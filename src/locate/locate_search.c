// SPDX-License-Identifier: Apache-2.0
//
// locate: the search for one row of the catalog.
#include "base/alloc.h"
#include "base/file.h"
#include "locate/locate_search.h"

#include <stdio.h>
#include <string.h>

#include "base/status_make.h"

// ---- Finds ----

void kilni_locate_search_warn(kilni_locate_search_t* search,
                              const char* warning) {
  if (warning == NULL || search->warning_count == KILNI_ITEM_MAX_WARNINGS) {
    return;
  }
  search->warnings[search->warning_count++] = warning;
}

// A copy that was found before by another method.
static const char* met_before(const kilni_locate_search_t* search,
                              const char* real) {
  kiln_locate_item_t* const* items = search->items;
  for (size_t i = 0; i < search->item_count; i++) {
    if (strcmp(kiln_locate_item_real_path(items[i]), real) == 0) {
      return kiln_locate_item_path(items[i]);
    }
  }
  return NULL;
}

static kiln_status_t keep_item(kilni_locate_search_t* search,
                               kilni_locate_search_collect_t* collect);

static kiln_status_t search_add_item(kilni_locate_search_t* search) {
  kilni_locate_search_collect_t* all = search->collect;
  const char* other = met_before(search, search->found.real);
  if (other != NULL) {
    char why[KILNI_DISK_PATH_LIMIT + 32];
    snprintf(why, sizeof(why), "the same as \"%s\"", other);
    kilni_locate_trail_add(&search->trail, search->found.path, why);
    search->found.path = NULL;
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(keep_item(search, all));
  search->items = *all->items;
  search->item_count = *all->count;
  search->found.path = NULL;
  return kiln_ok();
}

// Where a file that was found elsewhere than in a root belongs.
static kiln_status_t search_root_of(kilni_locate_search_t* search) {
  kilni_locate_found_t* found = &search->found;
  kilni_locate_disk_t* disk = &search->locate->disk;
  static const char* const sites[] = {"/site-packages/", "/dist-packages/"};
  const char* spellings[] = {found->file, found->real};
  for (size_t i = 0; i < 4; i++) {
    const char* path = spellings[i / 2];
    const char* at = strstr(path, sites[i % 2]);
    if (at == NULL) continue;
    size_t size = (size_t)(at - path) + strlen(sites[i % 2]) - 1;
    found->layout = KILNI_LAYOUT_WHEEL;
    return kilni_locate_disk_text(disk, kilni_base_sv_make(path, size),
                                  &found->root);
  }
  KILNI_RETURN_IF_ERROR(
      kilni_locate_place_toolkit_of(search->locate, found->real, &found->root));
  found->layout = KILNI_LAYOUT_TOOLKIT;
  if (found->root[0] != 0) return kiln_ok();
  found->layout = KILNI_LAYOUT_DISTRIBUTION;
  const char* system_root = search->locate->system_root;
  found->root = system_root[0] != 0 ? system_root : "/";
  return kiln_ok();
}

static bool is_in_site(const kilni_locate_search_where_t* where,
                       const char* file) {
  return where->layout == KILNI_LAYOUT_WHEEL ||
         strstr(file, "/site-packages/") != NULL ||
         strstr(file, "/dist-packages/") != NULL;
}

// Takes a regular file, unless something is wrong with it.
kiln_status_t kilni_locate_search_take(kilni_locate_search_t* search,
                                       const kilni_locate_search_where_t* where,
                                       const char* file, const char* dir) {
  uint32_t flags = kiln_locate_entry_flags(search->plan->entry);
  if ((flags & KILN_LOCATE_FLAG_EXECUTABLE) != 0 &&
      !kilni_base_file_can_execute(file)) {
    kilni_locate_trail_add(&search->trail, file, "cannot be executed");
    return kiln_ok();
  }
  kilni_locate_disk_t* disk = &search->locate->disk;
  kilni_locate_found_t* found = &search->found;
  const char* real_file = "";
  KILNI_RETURN_IF_ERROR(kilni_locate_disk_real(disk, file, &real_file));
  if (search->locate->secure) {
    const char* why = NULL;
    KILNI_RETURN_IF_ERROR(
        kilni_locate_trust_check(search->locate, real_file, &why));
    if (why != NULL) {
      kilni_locate_trail_add(&search->trail, file, why);
      return kiln_ok();
    }
  }
  if (search->locate->records && is_in_site(where, file)) {
    const char* why = NULL;
    const char* site = where->layout == KILNI_LAYOUT_WHEEL ? where->root : NULL;
    KILNI_RETURN_IF_ERROR(
        kilni_locate_trust_record(search->locate, site, file, real_file, &why));
    if (why != NULL) {
      kilni_locate_trail_add(&search->trail, file, why);
      return kiln_ok();
    }
  }
  found->file = file;
  found->path = file;
  found->real = real_file;
  found->file_name = where->file_name;
  found->scope = where->scope;
  found->via = where->via;
  found->root = where->root;
  found->layout = where->layout;
  found->major = where->major;
  if (search->is_header) {
    found->path = dir;
    KILNI_RETURN_IF_ERROR(kilni_locate_disk_real(disk, dir, &found->real));
  }
  if (where->root == NULL) KILNI_RETURN_IF_ERROR(search_root_of(search));
  if (search->locate->secure) {
    found->path = found->real;
    found->file = real_file;
  }
  return search->collect != NULL ? search_add_item(search) : kiln_ok();
}

bool kilni_locate_search_is_done(const kilni_locate_search_t* search) {
  return search->found.path != NULL;
}

// ---- Files ----

bool kilni_locate_search_wants_file(const kilni_locate_search_t* search,
                                    uint32_t index, uint32_t dir_major,
                                    uint32_t* out_major) {
  uint32_t major = kiln_locate_entry_list_major(search->plan->entry,
                                                KILN_LOCATE_LIST_FILES, index);
  if (major != 0 && dir_major != 0 && major != dir_major) return false;
  *out_major = major != 0 ? major : dir_major;
  return search->plan->major == 0 || *out_major == 0 ||
         *out_major == search->plan->major;
}

static void search_note(kilni_locate_search_t* search,
                        const kilni_locate_disk_node_t* node,
                        bool wants_folder) {
  char why[128];
  kilni_locate_trail_add(
      &search->trail, node->path,
      kilni_locate_disk_why(node, wants_folder, sizeof(why), why));
}

static bool search_is_gone(const kilni_locate_disk_node_t* dir) {
  return dir->known && dir->kind != KILNI_FILE_DIR;
}

// One file name in the folder whose path fills `search->path` up to `size`.
static kiln_status_t try_file(kilni_locate_search_t* search,
                              const kilni_locate_search_where_t* where,
                              kilni_locate_disk_node_t* dir, size_t size) {
  size_t name = strlen(where->file_name);
  if (size + name + 2 > sizeof(search->path)) {
    kilni_locate_trail_add(&search->trail, dir->path, "its path is too long");
    return kiln_ok();
  }
  // The root of the file system ends in a slash already.
  size_t start = size == 1 ? 0 : size;
  search->path[start] = '/';
  memcpy(search->path + start + 1, where->file_name, name + 1);
  kilni_locate_disk_node_t* file = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_disk_file(&search->locate->disk, dir,
                             kilni_base_sv_make(search->path, start + 1 + name),
                             where->listing, &file));
  search->path[size] = 0;
  if (file->kind == KILNI_FILE_REGULAR) {
    return kilni_locate_search_take(search, where, file->path, dir->path);
  }
  if (!search_is_gone(dir)) search_note(search, file, false);
  return kiln_ok();
}

kiln_status_t kilni_locate_search_folder(
    kilni_locate_search_t* search, const kilni_locate_search_where_t* base,
    size_t size) {
  kilni_locate_search_where_t where = *base;
  kilni_locate_disk_node_t* dir = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_disk_dir(
      &search->locate->disk, kilni_base_sv_make(search->path, size),
      where.listing, &dir));
  const kiln_locate_entry_t* entry = search->plan->entry;
  uint32_t count = kiln_locate_entry_list_count(entry, KILN_LOCATE_LIST_FILES);
  for (uint32_t i = 0; i < count && !search_is_gone(dir); i++) {
    if (!kilni_locate_search_wants_file(search, i, base->major, &where.major)) {
      continue;
    }
    where.file_name =
        kiln_locate_entry_list_text(entry, KILN_LOCATE_LIST_FILES, i);
    KILNI_RETURN_IF_ERROR(try_file(search, &where, dir, size));
    if (kilni_locate_search_is_done(search)) return kiln_ok();
  }
  if (search_is_gone(dir)) search_note(search, dir, true);
  return kiln_ok();
}

// ---- The end ----

// Makes an item of what was found and puts it to the others.
static kiln_status_t keep_item(kilni_locate_search_t* search,
                               kilni_locate_search_collect_t* collect) {
  kiln_locate_item_t* item = NULL;
  kiln_allocator_t allocator = search->locate->allocator;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(allocator, *collect->count + 1,
                                        sizeof(item), collect->capacity,
                                        collect->items));
  KILNI_RETURN_IF_ERROR(kilni_locate_item_create(
      allocator, search->plan->entry, &search->found, search->warnings,
      search->warning_count, &search->trail, &item));
  ((kiln_locate_item_t**)*collect->items)[(*collect->count)++] = item;
  kilni_locate_trail_clear(&search->trail);
  return kiln_ok();
}

static void locate_search_search_init(kilni_locate_search_t* search,
                                      kiln_locate_t* locate,
                                      const kilni_locate_search_plan_t* plan) {
  search->locate = locate;
  search->plan = plan;
  search->is_header =
      kiln_locate_entry_kind(plan->entry) == KILN_LOCATE_KIND_HEADER;
  memset(&search->found, 0, sizeof(search->found));
  search->warning_count = 0;
  search->collect = NULL;
  search->items = NULL;
  search->item_count = 0;
  search->gone_count = 0;
  search->root = NULL;
  search->path[0] = 0;
  // Every search has a log, and most are as long as the previous one.
  search->trail = locate->spare;
  kilni_locate_trail_init(&locate->spare, locate->allocator);
}

static void locate_search_search_deinit(kilni_locate_search_t* search) {
  kilni_locate_trail_clear(&search->trail);
  search->locate->spare = search->trail;
}

static kiln_status_t run_scope(kilni_locate_search_t* search, uint32_t scope) {
  switch (scope) {
    case KILN_LOCATE_SCOPE_OVERRIDE:
      return kilni_locate_search_override(search);
    case KILN_LOCATE_SCOPE_LOADED:
      return kilni_locate_search_loaded(search);
    case KILN_LOCATE_SCOPE_PRODUCT:
      return kilni_locate_search_product(search);
    case KILN_LOCATE_SCOPE_LOADER:
      return kilni_locate_search_loader(search);
    default:
      break;
  }
  kilni_dispatch_place_t* place = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_place_get(search->locate, scope, &place));
  kilni_locate_trail_append(&search->trail, &place->notes);
  kilni_locate_search_warn(search, place->warning);
  if (scope == KILN_LOCATE_SCOPE_WHEEL) {
    return kilni_locate_search_wheels(search, place);
  }
  const kilni_locate_root_t* roots = place->roots;
  for (size_t i = 0; i < place->count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_locate_search_root(search, scope, &roots[i]));
    if (kilni_locate_search_is_done(search)) return kiln_ok();
  }
  return kiln_ok();
}

static kiln_status_t search_run(kilni_locate_search_t* search) {
  const kilni_locate_search_plan_t* plan = search->plan;
  if (plan->root != NULL) {
    kilni_locate_root_t root = {plan->root, plan->via, plan->layout, 0};
    return kilni_locate_search_root(search, plan->scope, &root);
  }
  uint8_t scopes[KILNI_SCOPE_COUNT];
  size_t count = kilni_locate_scope_order(search->locate, plan->entry, scopes);
  for (size_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(run_scope(search, scopes[i]));
    if (kilni_locate_search_is_done(search)) return kiln_ok();
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_search(kiln_locate_t* locate,
                                  const kilni_locate_search_plan_t* plan,
                                  kiln_locate_item_t** out_item) {
  *out_item = NULL;
  kilni_locate_search_t search;
  locate_search_search_init(&search, locate, plan);
  kiln_status_t status = search_run(&search);
  if (kiln_status_is_ok(status)) {
    status = kilni_locate_item_create(
        locate->allocator, plan->entry, &search.found, search.warnings,
        search.warning_count, &search.trail, out_item);
  }
  locate_search_search_deinit(&search);
  return status;
}

kiln_status_t kilni_locate_search_all(kiln_locate_t* locate,
                                      const kilni_locate_search_plan_t* plan,
                                      void** inout_items, size_t* inout_count,
                                      size_t* inout_capacity) {
  kilni_locate_search_t search;
  kilni_locate_search_collect_t collect = {inout_items, inout_count,
                                           inout_capacity};
  locate_search_search_init(&search, locate, plan);
  search.collect = &collect;
  kiln_status_t status = search_run(&search);
  if (kiln_status_is_ok(status)) {
    status = kilni_locate_trail_status(&search.trail);
  }
  if (kiln_status_is_ok(status) && *inout_count == 0) {
    status = keep_item(&search, &collect);
  }
  locate_search_search_deinit(&search);
  return status;
}
