// SPDX-License-Identifier: Apache-2.0
//
// locate: the facts about a toolkit in the folders above a file.
//
// The walk goes up from the file that links lead to and ends at the root of its
// scope, at a site-packages, or, where neither is known, where a toolkit's own
// tree must end. So the prefix's cuda.h does not describe a wheel inside a
// conda prefix, nor that of /usr/local anything.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "locate/locate_facts_inside.h"
#include "locate/locate_facts_parse.h"

enum { FIRST_PIECE = 24 << 10 };

// A folder while it is looked at.
typedef struct looking_t {
  kilni_locate_reader_t* reader;
  kilni_locate_facts_folder_t* folder;
} looking_t;

// ---- Files ----

static kiln_status_t facts_folder_note(looking_t* looking, const char* path,
                                       const char* why) {
  kilni_locate_facts_folder_t* folder = looking->folder;
  if (folder->problem != NULL) return kiln_ok();
  kilni_locate_store_t* store = &looking->reader->store;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_text(store, kilni_base_sv(path),
                                                &folder->problem_path));
  return kilni_locate_store_text(store, kilni_base_sv(why), &folder->problem);
}

// The front of a file; `*out_data` NULL, with the reason noted, where it is
// there and cannot be read.
static kiln_status_t read_front(looking_t* looking, const char* path,
                                size_t limit, uint8_t** out_data,
                                size_t* out_size, size_t* out_capacity) {
  *out_data = NULL;
  *out_size = *out_capacity = 0;
  kiln_status_t status =
      kilni_locate_facts_front_if(looking->reader->allocator, path, limit,
                                  out_data, out_size, out_capacity);
  kiln_status_code_t code = kiln_status_code(status);
  if (code == KILN_STATUS_OK || code == KILN_STATUS_OUT_OF_MEMORY) {
    return status;
  }
  kiln_status_t noted =
      facts_folder_note(looking, path, kiln_status_message(status));
  kiln_status_free(status);
  return noted;
}

// The release that a macro of a header gives. The macro is near the top: a
// small part is read first, and never more than the limit.
static kiln_status_t read_define(looking_t* looking, const char* path,
                                 const char* name,
                                 kilni_locate_line_t* out_line) {
  static const size_t limits[] = {FIRST_PIECE, KILNI_FACTS_MAX_CUDA_H};
  for (size_t i = 0; i < 2; i++) {
    uint8_t* data;
    size_t size;
    size_t capacity;
    KILNI_RETURN_IF_ERROR(
        read_front(looking, path, limits[i], &data, &size, &capacity));
    if (data == NULL) return kiln_ok();
    kiln_string_view_t text = kilni_base_sv_make((const char*)data, size);
    // A line that is cut in two is not a line.
    bool is_cut = size == limits[i];
    while (is_cut && text.size > 0 && text.data[text.size - 1] != '\n') {
      text.size--;
    }
    uint64_t value;
    bool found = kilni_locate_define_find(text, name, &value);
    kilni_base_free(looking->reader->allocator, data, capacity);
    if (found) {
      char digits[24];
      snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
      return kilni_locate_facts_line(&looking->reader->store,
                                     kilni_locate_line_of_number(value),
                                     kilni_base_sv(digits), path, out_line);
    }
    if (!is_cut) break;
  }
  return facts_folder_note(looking, path,
                           "it does not define the toolkit's version");
}

static kiln_status_t read_json(looking_t* looking, const char* path) {
  uint8_t* data;
  size_t size;
  size_t capacity;
  KILNI_RETURN_IF_ERROR(read_front(looking, path, KILNI_FACTS_MAX_VERSION_FILE,
                                   &data, &size, &capacity));
  if (data == NULL) return kiln_ok();
  kiln_string_view_t version;
  kiln_string_view_t text = kilni_base_sv_make((const char*)data, size);
  kiln_status_t status;
  if (kilni_locate_json_find(text, "cuda", "version", &version) &&
      kilni_locate_line_of_version(version) != 0) {
    status = kilni_locate_facts_line(
        &looking->reader->store, kilni_locate_line_of_version(version), version,
        path, &looking->folder->version_json);
  } else {
    status = facts_folder_note(looking, path,
                               "it does not state the version of \"cuda\"");
  }
  kilni_base_free(looking->reader->allocator, data, capacity);
  return status;
}

// "CUDA Version 10.2.89"
static kiln_status_t read_txt(looking_t* looking, const char* path) {
  uint8_t* data;
  size_t size;
  size_t capacity;
  KILNI_RETURN_IF_ERROR(read_front(looking, path, KILNI_FACTS_MAX_VERSION_FILE,
                                   &data, &size, &capacity));
  if (data == NULL) return kiln_ok();
  kiln_string_view_t rest = kilni_base_sv_make((const char*)data, size);
  kiln_string_view_t line;
  kiln_status_t status = kiln_ok();
  static const char words[] = "CUDA Version ";
  while (kiln_status_is_ok(status) && kilni_base_sv_split(&rest, '\n', &line)) {
    if (!kilni_base_sv_starts_with(line, words)) continue;
    line = kilni_locate_version_at(kilni_base_sv_make(
        line.data + sizeof(words) - 1, line.size - (sizeof(words) - 1)));
    status = kilni_locate_facts_line(&looking->reader->store,
                                     kilni_locate_line_of_version(line), line,
                                     path, &looking->folder->version_txt);
    break;
  }
  kilni_base_free(looking->reader->allocator, data, capacity);
  return status;
}

// ---- One folder ----

// The headers of one include folder. Its cuda.h may be the one that was read
// already, reached through a link.
static kiln_status_t look_at_include(looking_t* looking, const char* include,
                                     kilni_locate_line_t* out_header,
                                     kilni_locate_line_t* out_runtime) {
  kilni_locate_store_t* store = &looking->reader->store;
  const char* path;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_print(store, &path, "%s/cuda.h", include));
  KILNI_RETURN_IF_ERROR(read_define(looking, path, "CUDA_VERSION", out_header));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_print(store, &path, "%s/cuda_runtime_api.h", include));
  return read_define(looking, path, "CUDART_VERSION", out_runtime);
}

// The target folders of a toolkit.
typedef struct targets_t {
  const char* names[KILNI_FACTS_MAX_TARGETS];
  size_t count;
  kilni_locate_store_t* store;
  kiln_status_t status;
} targets_t;

static bool on_target(const char* name, void* user) {
  targets_t* targets = user;
  if (targets->count == KILNI_FACTS_MAX_TARGETS) return false;
  targets->status = kilni_locate_store_text(targets->store, kilni_base_sv(name),
                                            &targets->names[targets->count]);
  if (!kiln_status_is_ok(targets->status)) return false;
  targets->count++;
  return true;
}

static int facts_folder_compare_names(const void* a, const void* b) {
  return strcmp(*(const char* const*)a, *(const char* const*)b);
}

static kiln_status_t list_targets(looking_t* looking, targets_t* targets) {
  memset(targets, 0, sizeof(*targets));
  targets->store = &looking->reader->store;
  const char* path;
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_print(
      targets->store, &path, "%s/targets", looking->folder->path));
  if (!kilni_base_dir_exists(path)) return kiln_ok();  // most folders have none
  kiln_status_t status = kilni_base_dir_visit(path, on_target, targets);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  qsort(targets->names, targets->count, sizeof(char*),
        facts_folder_compare_names);
  return targets->status;
}

// True if both paths lead to one file.
static kiln_status_t is_same_file(looking_t* looking, const char* a,
                                  const char* b, bool* out_same) {
  *out_same = false;
  kiln_allocator_t allocator = looking->reader->allocator;
  char* real[2] = {NULL, NULL};
  const char* paths[2] = {a, b};
  kiln_status_t status = kiln_ok();
  for (size_t i = 0; i < 2 && kiln_status_is_ok(status); i++) {
    status = kilni_base_path_real(allocator, paths[i], &real[i]);
    if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) break;
    kiln_status_free(status);
    status = kiln_ok();
  }
  *out_same =
      real[0] != NULL && real[1] != NULL && strcmp(real[0], real[1]) == 0;
  kilni_base_strfree(allocator, real[0]);
  kilni_base_strfree(allocator, real[1]);
  return status;
}

// What a second header of the same folder states: the same, or the folder
// counts as silent.
static void merge(kilni_locate_line_t* first, const kilni_locate_line_t* second,
                  bool* inout_differ) {
  if (second->line == 0) return;
  if (first->line == 0) {
    *first = *second;
  } else if (first->line != second->line) {
    *inout_differ = true;
  }
}

static kiln_status_t look_at_targets(looking_t* looking) {
  kilni_locate_facts_folder_t* folder = looking->folder;
  kilni_locate_store_t* store = &looking->reader->store;
  targets_t targets;
  KILNI_RETURN_IF_ERROR(list_targets(looking, &targets));
  bool differ = false;
  bool runtimes_differ = false;
  for (size_t i = 0; i < targets.count; i++) {
    const char* include;
    const char* path;
    KILNI_RETURN_IF_ERROR(
        kilni_locate_facts_print(store, &include, "%s/targets/%s/include",
                                 folder->path, targets.names[i]));
    KILNI_RETURN_IF_ERROR(
        kilni_locate_facts_print(store, &path, "%s/cuda.h", include));
    bool same = false;
    if (folder->header.line != 0) {
      KILNI_RETURN_IF_ERROR(
          is_same_file(looking, path, folder->header.path, &same));
    }
    if (same) continue;
    kilni_locate_line_t header = {0, NULL, NULL};
    kilni_locate_line_t runtime = {0, NULL, NULL};
    KILNI_RETURN_IF_ERROR(look_at_include(looking, include, &header, &runtime));
    merge(&folder->header, &header, &differ);
    merge(&folder->runtime, &runtime, &runtimes_differ);
  }
  if (runtimes_differ) memset(&folder->runtime, 0, sizeof(folder->runtime));
  if (!differ) return kiln_ok();
  memset(&folder->header, 0, sizeof(folder->header));
  return facts_folder_note(looking, folder->path,
                           "its targets have headers of two releases");
}

static kiln_status_t facts_folder_look_at(looking_t* looking) {
  kilni_locate_facts_folder_t* folder = looking->folder;
  kilni_locate_store_t* store = &looking->reader->store;
  const char* path;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_print(store, &path, "%s/include", folder->path));
  KILNI_RETURN_IF_ERROR(
      look_at_include(looking, path, &folder->header, &folder->runtime));
  KILNI_RETURN_IF_ERROR(look_at_targets(looking));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_print(store, &path, "%s/version.json", folder->path));
  KILNI_RETURN_IF_ERROR(read_json(looking, path));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_print(store, &path, "%s/version.txt", folder->path));
  return read_txt(looking, path);
}

// What a folder states, read once.
static kiln_status_t facts_folder_folder_of(
    kilni_locate_reader_t* reader, kiln_string_view_t path,
    kilni_locate_facts_folder_t** out_folder) {
  *out_folder = NULL;
  for (kilni_locate_facts_folder_t* at = reader->folders; at; at = at->next) {
    if (kilni_base_sv_equal_cstr(path, at->path)) {
      *out_folder = at;
      return kiln_ok();
    }
  }
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &reader->store, sizeof(kilni_locate_facts_folder_t), &memory));
  looking_t looking = {reader, memory};
  memset(memory, 0, sizeof(kilni_locate_facts_folder_t));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(&reader->store, path, &looking.folder->path));
  KILNI_RETURN_IF_ERROR(facts_folder_look_at(&looking));
  looking.folder->next = reader->folders;
  reader->folders = looking.folder;
  *out_folder = looking.folder;
  return kiln_ok();
}

// ---- The walk ----

static bool is_below_or_at(kiln_string_view_t folder, const char* base) {
  size_t size = strlen(base);
  return folder.size >= size && memcmp(folder.data, base, size) == 0 &&
         (folder.size == size || folder.data[size] == '/');
}

// Folders that contain toolkits but are not toolkits, below the system's root.
static bool is_beyond_toolkits(const kilni_locate_reader_t* reader,
                               kiln_string_view_t folder) {
  static const char* const names[] = {"",     "/usr/local", "/opt", "/home",
                                      "/mnt", "/tmp",       "/var", "/srv"};
  size_t root = strlen(reader->system_root);
  if (folder.size < root ||
      memcmp(folder.data, reader->system_root, root) != 0) {
    return folder.size < 2;
  }
  kiln_string_view_t rest =
      kilni_base_sv_make(folder.data + root, folder.size - root);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (kilni_base_sv_equal_cstr(rest, names[i])) return true;
  }
  return false;
}

static void facts_folder_cut_last(kiln_string_view_t* folder) {
  while (folder->size > 0 && folder->data[folder->size - 1] != '/') {
    folder->size--;
  }
  while (folder->size > 0 && folder->data[folder->size - 1] == '/') {
    folder->size--;
  }
}

// The borders of one walk; "" where there is none.
typedef struct borders_t {
  kiln_string_view_t site;  // not looked at itself
  const char* prefix;       // the last that is
} borders_t;

static kiln_status_t find_borders(const kilni_locate_facts_read_t* read,
                                  borders_t* borders) {
  borders->prefix = NULL;
  borders->site = kilni_base_sv("");
  const char* real = read->facts->real_path;
  if (!kilni_locate_facts_site_of(real, &borders->site)) {
    for (uint32_t i = 0; i < read->query->site_count; i++) {
      kiln_string_view_t site = kilni_base_sv(read->query->sites[i]);
      while (site.size > 1 && site.data[site.size - 1] == '/') site.size--;
      if (site.size > 0 && strncmp(real, site.data, site.size) == 0 &&
          real[site.size] == '/') {
        borders->site = kilni_base_sv_make(real, site.size);
      }
    }
  }
  if (read->query->prefix == NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_real_folder(
      read->reader, kilni_base_sv(read->query->prefix), &borders->prefix));
  if (borders->prefix != NULL &&
      !is_below_or_at(kilni_base_sv(real), borders->prefix)) {
    borders->prefix = NULL;
  }
  return kiln_ok();
}

static kiln_status_t take_folder(kilni_locate_facts_read_t* read,
                                 const kilni_locate_facts_folder_t* folder) {
  kilni_locate_facts_t* facts = read->facts;
  bool says = folder->header.line != 0 || folder->version_json.line != 0 ||
              folder->version_txt.line != 0;
  if (says && facts->root == NULL) facts->root = folder->path;
  if (facts->header.line == 0) facts->header = folder->header;
  if (facts->runtime.line == 0) facts->runtime = folder->runtime;
  if (facts->version_json.line == 0) facts->version_json = folder->version_json;
  if (facts->version_txt.line == 0) facts->version_txt = folder->version_txt;
  if (folder->problem == NULL) return kiln_ok();
  return kilni_locate_facts_problem(read, folder->problem_path,
                                    folder->problem);
}

// Goes one folder up; false where that is beyond the borders.
static bool climb(const kilni_locate_facts_read_t* read,
                  const borders_t* borders, kiln_string_view_t* folder,
                  bool* out_is_prefix) {
  facts_folder_cut_last(folder);
  if (folder->size == 0 || folder->size <= borders->site.size) return false;
  *out_is_prefix = borders->prefix != NULL &&
                   kilni_base_sv_equal_cstr(*folder, borders->prefix);
  return *out_is_prefix || !is_beyond_toolkits(read->reader, *folder);
}

static kiln_status_t facts_folder_walk(kilni_locate_facts_read_t* read,
                                       const borders_t* borders) {
  kiln_string_view_t folder = kilni_base_sv(read->facts->real_path);
  for (int i = 0; i < KILNI_FACTS_MAX_CLIMB; i++) {
    bool is_prefix = false;
    if (!climb(read, borders, &folder, &is_prefix)) return kiln_ok();
    kilni_locate_facts_folder_t* found;
    KILNI_RETURN_IF_ERROR(facts_folder_folder_of(read->reader, folder, &found));
    KILNI_RETURN_IF_ERROR(take_folder(read, found));
    // The nearest root is the file's own.
    if (is_prefix || read->facts->root != NULL) return kiln_ok();
  }
  return kiln_ok();
}

// The folders of headers of one that is climbed to.
static kiln_status_t visit_includes(kilni_locate_facts_read_t* read,
                                    kiln_string_view_t folder,
                                    kiln_status_t (*visit)(kiln_string_view_t,
                                                           void*, bool*),
                                    void* user, bool* out_found) {
  static const char* const places[] = {
      "include", "targets/x86_64-linux/include", "targets/sbsa-linux/include",
      "targets/aarch64-linux/include"};
  size_t count = sizeof(places) / sizeof(places[0]);
  for (size_t i = 0; i < count && !*out_found; i++) {
    const char* path;
    KILNI_RETURN_IF_ERROR(kilni_locate_facts_print(
        &read->reader->store, &path, "%.*s/%s", KILNI_SV(folder), places[i]));
    KILNI_RETURN_IF_ERROR(visit(kilni_base_sv(path), user, out_found));
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_facts_each_include(
    kilni_locate_facts_read_t* read,
    kiln_status_t (*visit)(kiln_string_view_t folder, void* user,
                           bool* out_found),
    void* user) {
  borders_t borders;
  bool found = false;
  KILNI_RETURN_IF_ERROR(find_borders(read, &borders));
  kiln_string_view_t folder = kilni_base_sv(read->facts->real_path);
  for (int i = 0; i < KILNI_FACTS_MAX_CLIMB && !found; i++) {
    bool is_last = false;
    if (!climb(read, &borders, &folder, &is_last)) return kiln_ok();
    KILNI_RETURN_IF_ERROR(visit_includes(read, folder, visit, user, &found));
    if (is_last) return kiln_ok();
  }
  return kiln_ok();
}

// ---- The owner of a header ----

// A conda prefix has a package for each component: a header in the same prefix
// need not be of the same release.
static kiln_status_t is_conda(const kilni_locate_facts_read_t* read,
                              bool* out_is) {
  *out_is = false;
  kilni_locate_facts_folder_t* root;
  KILNI_RETURN_IF_ERROR(facts_folder_folder_of(
      read->reader, kilni_base_sv(read->facts->root), &root));
  if (!root->knows_conda) {
    const char* path;
    KILNI_RETURN_IF_ERROR(kilni_locate_facts_print(
        &read->reader->store, &path, "%s/conda-meta", root->path));
    root->is_conda = kilni_base_dir_exists(path);
    root->knows_conda = true;
  }
  *out_is = root->is_conda;
  return kiln_ok();
}

// In a distribution's /usr each component has a package of its own, all made
// from one source.
static kiln_status_t compare_packages(kilni_locate_facts_read_t* read) {
  kilni_locate_facts_t* facts = read->facts;
  const char* header = facts->header.path;
  const kilni_locate_package_t* its = NULL;
  if (facts->package == NULL) {
    KILNI_RETURN_IF_ERROR(kilni_locate_facts_dpkg_of(
        read, facts->path, facts->real_path, &facts->package));
  }
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_dpkg_of(read, header, header, &its));
  const kilni_locate_package_t* own = facts->package;
  if (own == NULL && its == NULL) return kiln_ok();
  facts->header_same_owner =
      own != NULL && its != NULL && strcmp(own->source, its->source) == 0 &&
      strcmp(own->source_version, its->source_version) == 0;
  if (its != NULL) facts->header_owner = its->name;
  return kiln_ok();
}

// True if the walk ended in a distribution's own folder.
static bool is_in_usr(const kilni_locate_facts_read_t* read) {
  const char* root = read->facts->root;
  size_t size = strlen(read->reader->system_root);
  return root != NULL && strncmp(root, read->reader->system_root, size) == 0 &&
         strcmp(root + size, "/usr") == 0;
}

static kiln_status_t compare_owners(kilni_locate_facts_read_t* read) {
  kilni_locate_facts_t* facts = read->facts;
  if (facts->header.line == 0) return kiln_ok();
  if (read->depth == KILNI_LOCATE_FACTS_LINE && facts->owner == NULL) {
    read->strangers = true;
    KILNI_RETURN_IF_ERROR(kilni_locate_facts_read_owner(read));
  }
  const kilni_locate_facts_dist_t* dist;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_owner_of(read, facts->header.path, &dist));
  if (dist != NULL) {
    facts->header_owner = dist->name;
    facts->header_same_owner =
        facts->owner != NULL && facts->owner->record == dist->record;
    return kiln_ok();
  }
  kiln_string_view_t site;
  if (facts->owner != NULL ||
      kilni_locate_facts_site_of(facts->real_path, &site)) {
    return kiln_ok();
  }
  bool conda;
  KILNI_RETURN_IF_ERROR(is_conda(read, &conda));
  facts->header_same_owner = !conda;
  return !conda && is_in_usr(read) ? compare_packages(read) : kiln_ok();
}

kiln_status_t kilni_locate_facts_read_folders(kilni_locate_facts_read_t* read) {
  borders_t borders;
  KILNI_RETURN_IF_ERROR(find_borders(read, &borders));
  KILNI_RETURN_IF_ERROR(facts_folder_walk(read, &borders));
  read->facts->walked = true;
  return compare_owners(read);
}
