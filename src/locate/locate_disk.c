// SPDX-License-Identifier: Apache-2.0
//
// locate: the disk, as a context has seen it so far.
#include "base/file.h"
#include "base/str.h"
#include "locate/locate_disk.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/path.h"
#include "base/status_make.h"

enum {
  FIRST_BUCKETS = 64,
  MAX_CHAIN = 64,  // folders of a path that are resolved one by one
  LONG_CHAIN = 3   // from here on, one question for all of them comes first
};

// ---- Memory ----

void kilni_locate_disk_init(kilni_locate_disk_t* disk,
                            kiln_allocator_t allocator) {
  memset(disk, 0, sizeof(*disk));
  disk->allocator = allocator;
  disk->store.allocator = allocator;
}

void kilni_locate_disk_deinit(kilni_locate_disk_t* disk) {
  kilni_locate_store_deinit(&disk->store);
  kilni_base_free_array(disk->allocator, disk->buckets, disk->bucket_count,
                        sizeof(kilni_locate_disk_node_t*));
  kilni_locate_disk_init(disk, disk->allocator);
}

kiln_status_t kilni_locate_disk_text(kilni_locate_disk_t* disk,
                                     kiln_string_view_t text,
                                     const char** out_text) {
  return kilni_locate_store_text(&disk->store, text, out_text);
}

// ---- Nodes ----

// Eight bytes at a time: paths are long, and hashed at every question.
static uint32_t disk_hash_of(kiln_string_view_t path) {
  const uint64_t factor = 0xff51afd7ed558ccdu;
  uint64_t hash = 0x9e3779b97f4a7c15u ^ path.size;
  size_t at = 0;
  for (; path.size - at >= 8; at += 8) {
    uint64_t word;
    memcpy(&word, path.data + at, 8);
    hash = (hash ^ word) * factor;
    hash ^= hash >> 32;
  }
  uint64_t rest = 0;
  if (path.size > at) memcpy(&rest, path.data + at, path.size - at);
  hash = (hash ^ rest) * factor;
  return (uint32_t)(hash ^ (hash >> 32));
}

static kiln_status_t grow_table(kilni_locate_disk_t* disk) {
  if (disk->node_count < disk->bucket_count) return kiln_ok();
  size_t count = disk->bucket_count ? disk->bucket_count * 4 : FIRST_BUCKETS;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      disk->allocator, count, sizeof(kilni_locate_disk_node_t*), &block));
  kilni_locate_disk_node_t** buckets = block;
  kilni_locate_disk_node_t** old = disk->buckets;
  for (size_t i = 0; i < disk->bucket_count; i++) {
    kilni_locate_disk_node_t* node = old[i];
    while (node != NULL) {
      kilni_locate_disk_node_t* next = node->next;
      node->next = buckets[node->hash & (count - 1)];
      buckets[node->hash & (count - 1)] = node;
      node = next;
    }
  }
  kilni_base_free_array(disk->allocator, old, disk->bucket_count,
                        sizeof(kilni_locate_disk_node_t*));
  disk->buckets = buckets;
  disk->bucket_count = count;
  return kiln_ok();
}

static kiln_status_t node_of(kilni_locate_disk_t* disk, kiln_string_view_t path,
                             kilni_locate_disk_node_t** out_node) {
  *out_node = NULL;
  KILNI_RETURN_IF_ERROR(grow_table(disk));
  uint32_t hash = disk_hash_of(path);
  kilni_locate_disk_node_t** buckets = disk->buckets;
  kilni_locate_disk_node_t** bucket = &buckets[hash & (disk->bucket_count - 1)];
  for (kilni_locate_disk_node_t* node = *bucket; node != NULL;
       node = node->next) {
    if (node->hash == hash && node->length == path.size &&
        memcmp(node->path, path.data, path.size) == 0) {
      *out_node = node;
      return kiln_ok();
    }
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &disk->store, sizeof(kilni_locate_disk_node_t) + path.size + 1, &block));
  kilni_locate_disk_node_t* node = block;
  char* text = (char*)(node + 1);
  memcpy(text, path.data, path.size);
  text[path.size] = 0;
  node->path = text;
  node->length = (uint32_t)path.size;
  node->hash = hash;
  node->next = *bucket;
  *bucket = node;
  disk->node_count++;
  *out_node = node;
  return kiln_ok();
}

// The length of the path of a path's folder.
static kiln_status_t node_above(kilni_locate_disk_t* disk,
                                kilni_locate_disk_node_t* node, size_t length,
                                kilni_locate_disk_node_t** out_above) {
  *out_above = node->above;
  if (node->above != NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      node_of(disk, kilni_base_sv_make(node->path, length), out_above));
  node->above = *out_above;
  return kiln_ok();
}

static void set_missing(kilni_locate_disk_node_t* node) {
  node->known = true;
  node->kind = KILNI_FILE_NONE;
  node->error = ENOENT;
}

// A folder, whatever it is called. one-thread
struct kilni_locate_disk_folder_t {
  struct kilni_locate_disk_folder_t* next;
  kilni_locate_disk_node_t* node;  // the first that led there
  uint64_t device;
  uint64_t inode;
  int64_t modified_ns;
};

// Links lead to one folder by many names: an answer for one of them is true of
// all.
static kiln_status_t find_twin(kilni_locate_disk_t* disk,
                               kilni_locate_disk_node_t* node,
                               const kilni_base_file_look_t* look) {
  if (look->inode == 0) return kiln_ok();
  struct kilni_locate_disk_folder_t** bucket =
      &disk->folders[look->inode & (KILNI_DISK_FOLDER_BUCKETS - 1)];
  for (struct kilni_locate_disk_folder_t* it = *bucket; it != NULL;
       it = it->next) {
    if (it->inode == look->inode && it->device == look->device &&
        it->modified_ns == look->modified_ns) {
      node->twin = it->node;
      return kiln_ok();
    }
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &disk->store, sizeof(struct kilni_locate_disk_folder_t), &block));
  struct kilni_locate_disk_folder_t* folder = block;
  folder->next = *bucket;
  folder->node = node;
  folder->device = look->device;
  folder->inode = look->inode;
  folder->modified_ns = look->modified_ns;
  *bucket = folder;
  return kiln_ok();
}

static kiln_status_t disk_ask(kilni_locate_disk_t* disk,
                              kilni_locate_disk_node_t* node) {
  if (node->known) return kiln_ok();
  kilni_base_file_look_t look = kilni_base_file_look(node->path);
  node->known = true;
  node->kind = look.kind;
  node->error = look.error;
  if (look.kind != KILNI_FILE_DIR) return kiln_ok();
  if (look.size > KILNI_DISK_SMALL_FOLDER) {
    uint64_t more =
        (look.size - KILNI_DISK_SMALL_FOLDER) / KILNI_DISK_BYTES_PER_MISS;
    node->patience =
        KILNI_DISK_PATIENCE +
        (more < KILNI_DISK_LIST_LIMIT ? (uint32_t)more : KILNI_DISK_LIST_LIMIT);
  }
  return find_twin(disk, node, &look);
}

static bool is_worth_listing(const kilni_locate_disk_node_t* node) {
  return node->misses >=
         (node->patience != 0 ? node->patience : KILNI_DISK_PATIENCE);
}

// ---- Listing ----

// Names while they are read. one-thread
typedef struct names_t {
  kilni_locate_disk_t* disk;
  void* items;  // uint32_t, hashes
  size_t count;
  size_t capacity;
  kiln_status_t status;
  bool too_many;
} names_t;

static uint32_t hash_of_name(const char* name) {
  uint32_t hash = disk_hash_of(kilni_base_sv(name));
  return hash != 0 ? hash : 1;
}

static bool disk_add_name(const char* name, void* user) {
  names_t* names = user;
  if (names->count == KILNI_DISK_LIST_LIMIT) {
    names->too_many = true;
    return false;
  }
  names->status =
      kilni_base_grow(names->disk->allocator, names->count + 1,
                      sizeof(uint32_t), &names->capacity, &names->items);
  if (!kiln_status_is_ok(names->status)) return false;
  ((uint32_t*)names->items)[names->count++] = hash_of_name(name);
  return true;
}

// At most half full, so that a search for what is not there ends.
static kiln_status_t keep_names(kilni_locate_disk_t* disk,
                                kilni_locate_disk_node_t* node,
                                const names_t* names) {
  uint32_t capacity = 4;
  while (capacity < 2 * names->count) capacity *= 2;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &disk->store, capacity * sizeof(uint32_t), &block));
  uint32_t* table = block;
  const uint32_t* hashes = names->items;
  for (size_t i = 0; i < names->count; i++) {
    uint32_t at = hashes[i] & (capacity - 1);
    while (table[at] != 0) at = (at + 1) & (capacity - 1);
    table[at] = hashes[i];
  }
  node->names = table;
  node->name_mask = capacity - 1;
  node->listed = true;
  return kiln_ok();
}

static void share_list(kilni_locate_disk_node_t* to,
                       const kilni_locate_disk_node_t* from) {
  to->names = from->names;
  to->name_mask = from->name_mask;
  to->listed = from->listed;
  to->hopeless = from->hopeless;
}

static kiln_status_t disk_list(kilni_locate_disk_t* disk,
                               kilni_locate_disk_node_t* node) {
  if (node->twin != NULL && !node->listed) share_list(node, node->twin);
  if (node->listed || node->hopeless) return kiln_ok();
  names_t names = {disk, NULL, 0, 0, NULL, false};
  int error = kilni_base_dir_scan(node->path, disk_add_name, &names);
  kiln_status_t status = names.status;
  // What cannot be listed may still be entered.
  node->hopeless = error != 0 || names.too_many;
  if (kiln_status_is_ok(status) && !node->hopeless) {
    status = keep_names(disk, node, &names);
  }
  kilni_base_free_array(disk->allocator, names.items, names.capacity,
                        sizeof(uint32_t));
  if (error == ENOENT || error == ENOTDIR) set_missing(node);
  if (node->twin != NULL) share_list(node->twin, node);
  return status;
}

static bool names_hold(const kilni_locate_disk_node_t* node, const char* name) {
  uint32_t hash = hash_of_name(name);
  for (uint32_t at = hash & node->name_mask; node->names[at] != 0;
       at = (at + 1) & node->name_mask) {
    if (node->names[at] == hash) return true;
  }
  return false;
}

// ---- Questions ----

static const char* last_part(const kilni_locate_disk_node_t* node) {
  const char* slash = strrchr(node->path, '/');
  return slash ? slash + 1 : node->path;
}

static bool disk_is_gone(const kilni_locate_disk_node_t* node) {
  return node->known && node->kind != KILNI_FILE_DIR;
}

// True for a folder that is worth a query of its own before its entries are
// queried: the root, and its entries ("nvidia" in site-packages), since most
// roots have nothing that is searched for.
static bool is_gate(const kilni_locate_disk_node_t* node, size_t root_length) {
  if (node->length <= root_length) return true;
  size_t above = (size_t)(last_part(node) - node->path);
  return above <= root_length + 1;
}

// What is known of a folder from those above it, with as few queries as
// possible. The stack is as deep as the path has parts.
static kiln_status_t disk_conclude(kilni_locate_disk_t* disk,
                                   kilni_locate_disk_node_t* node,
                                   size_t root_length, bool is_leaf) {
  if (disk_is_gone(node)) return kiln_ok();
  if (!node->known && node->length > root_length) {
    const char* last = last_part(node);
    size_t above = (size_t)(last - node->path);
    above -= above > 1 ? 1 : 0;
    if (above >= root_length && above < node->length && above > 0) {
      kilni_locate_disk_node_t* parent = NULL;
      KILNI_RETURN_IF_ERROR(node_above(disk, node, above, &parent));
      KILNI_RETURN_IF_ERROR(disk_conclude(disk, parent, root_length, false));
      if (disk_is_gone(parent) ||
          (parent->listed && !names_hold(parent, last))) {
        set_missing(node);
        return kiln_ok();
      }
    }
  }
  bool asks = node->suspect || (!is_leaf && is_gate(node, root_length));
  if (!node->known && asks) KILNI_RETURN_IF_ERROR(disk_ask(disk, node));
  if (disk_is_gone(node) || node->length <= root_length) return kiln_ok();
  bool is_shared = node->twin != NULL && node->twin->listed;
  return is_shared || is_worth_listing(node) ? disk_list(disk, node)
                                             : kiln_ok();
}

// Remembers above a missing folder that something is missing there.
static kiln_status_t blame(kilni_locate_disk_t* disk,
                           kilni_locate_disk_node_t* node, size_t root_length) {
  size_t above = (size_t)(last_part(node) - node->path);
  above -= above > 1 ? 1 : 0;
  if (above < root_length || above == 0 || node->length <= root_length) {
    return kiln_ok();
  }
  kilni_locate_disk_node_t* parent = NULL;
  KILNI_RETURN_IF_ERROR(node_above(disk, node, above, &parent));
  parent->suspect = true;
  parent->misses++;
  return kiln_ok();
}

kiln_status_t kilni_locate_disk_dir(kilni_locate_disk_t* disk,
                                    kiln_string_view_t path, size_t root_length,
                                    kilni_locate_disk_node_t** out_node) {
  KILNI_RETURN_IF_ERROR(node_of(disk, path, out_node));
  return disk_conclude(disk, *out_node, root_length, true);
}

// A path in a folder: the answer that the folder's twin has for that name, if
// it has one.
static kiln_status_t ask_in(kilni_locate_disk_t* disk,
                            const kilni_locate_disk_node_t* dir,
                            kilni_locate_disk_node_t* node) {
  char path[KILNI_DISK_PATH_LIMIT];
  const kilni_locate_disk_node_t* twin = dir->twin;
  size_t rest = node->length - dir->length;
  // The root of the file system ends in a slash already.
  if (twin == NULL || dir->length == 1 || twin->length == 1 ||
      twin->length + rest >= sizeof(path)) {
    return disk_ask(disk, node);
  }
  memcpy(path, twin->path, twin->length);
  memcpy(path + twin->length, node->path + dir->length, rest);
  kilni_locate_disk_node_t* other = NULL;
  KILNI_RETURN_IF_ERROR(
      node_of(disk, kilni_base_sv_make(path, twin->length + rest), &other));
  KILNI_RETURN_IF_ERROR(disk_ask(disk, other));
  node->known = true;
  node->kind = other->kind;
  node->error = other->error;
  node->patience = other->patience;
  return kiln_ok();
}

kiln_status_t kilni_locate_disk_file(kilni_locate_disk_t* disk,
                                     kilni_locate_disk_node_t* dir,
                                     kiln_string_view_t path,
                                     size_t root_length,
                                     kilni_locate_disk_node_t** out_node) {
  KILNI_RETURN_IF_ERROR(node_of(disk, path, out_node));
  kilni_locate_disk_node_t* node = *out_node;
  if (node->known) return kiln_ok();
  KILNI_RETURN_IF_ERROR(disk_conclude(disk, dir, root_length, true));
  if (disk_is_gone(dir)) {
    set_missing(node);
    return kiln_ok();
  }
  // A name may have folders of its own ("cuda/std/version").
  const char* name = node->path + dir->length + 1;
  bool simple = strchr(name, '/') == NULL;
  if (dir->listed && simple && !names_hold(dir, name)) {
    set_missing(node);
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(ask_in(disk, dir, node));
  if (node->kind != KILNI_FILE_NONE) return kiln_ok();
  dir->misses++;
  if (dir->known) return kiln_ok();
  KILNI_RETURN_IF_ERROR(disk_ask(disk, dir));
  return disk_is_gone(dir) ? blame(disk, dir, root_length) : kiln_ok();
}

kiln_status_t kilni_locate_disk_look(kilni_locate_disk_t* disk,
                                     const char* path,
                                     kilni_locate_disk_node_t** out_node) {
  KILNI_RETURN_IF_ERROR(node_of(disk, kilni_base_sv(path), out_node));
  return disk_ask(disk, *out_node);
}

static kiln_status_t resolve_whole(kilni_locate_disk_t* disk,
                                   kilni_locate_disk_node_t* node) {
  char* whole = NULL;
  kiln_status_t status =
      kilni_base_path_real(disk->allocator, node->path, &whole);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  status = kilni_locate_disk_text(disk, kilni_base_sv(whole), &node->real);
  kilni_base_strfree(disk->allocator, whole);
  return status;
}

// True for a path whose parts are all names.
static bool disk_is_plain(const kilni_locate_disk_node_t* node) {
  const char* at = node->path;
  if (at[0] != '/') return false;
  while (at[0] == '/') {
    at++;
    size_t size = strcspn(at, "/");
    bool dots = at[0] == '.' && (size == 1 || (size == 2 && at[1] == '.'));
    if (size == 0 || dots) return false;
    at += size;
  }
  return true;
}

// The last part of a path after the real path of its folder: a query for that
// part alone, unless it is a link.
static kiln_status_t resolve_last(kilni_locate_disk_t* disk,
                                  kilni_locate_disk_node_t* node,
                                  const char* above) {
  char path[KILNI_DISK_PATH_LIMIT];
  const char* last = last_part(node);
  size_t size = strlen(above);
  size_t name = strlen(last);
  if (size == 0 || size + name + 2 > sizeof(path)) {
    return resolve_whole(disk, node);
  }
  if (size == 1) size = 0;
  memcpy(path, above, size);
  path[size] = '/';
  memcpy(path + size + 1, last, name + 1);
  if (kilni_base_link_is(path)) return resolve_whole(disk, node);
  return kilni_locate_disk_text(disk, kilni_base_sv_make(path, size + 1 + name),
                                &node->real);
}

// A chain of folders below `above`, the lowest first, none of which is a link:
// true if one query shows that, and then they are resolved.
static kiln_status_t resolve_plain(kilni_locate_disk_t* disk,
                                   kilni_locate_disk_node_t* const* chain,
                                   size_t count, const char* above,
                                   bool* out_plain) {
  char path[KILNI_DISK_PATH_LIMIT];
  const kilni_locate_disk_node_t* top = chain[count - 1];
  size_t start = (size_t)(last_part(top) - top->path) - 1;
  size_t size = strlen(above);
  if (size == 1) size = 0;
  *out_plain = false;
  if (size + chain[0]->length - start >= sizeof(path)) return kiln_ok();
  memcpy(path, above, size);
  memcpy(path + size, chain[0]->path + start, chain[0]->length - start + 1);
  if (!kilni_base_path_has_no_link(path)) return kiln_ok();
  bool same = strcmp(path, chain[0]->path) == 0;
  for (size_t i = 0; i < count; i++) {
    kilni_locate_disk_node_t* node = chain[i];
    node->real = node->path;
    if (same) continue;
    KILNI_RETURN_IF_ERROR(kilni_locate_disk_text(
        disk, kilni_base_sv_make(path, size + node->length - start),
        &node->real));
  }
  *out_plain = true;
  return kiln_ok();
}

// Through the folders above, each of which is queried once for everything below
// it. The folders of an existing file exist.
static kiln_status_t disk_resolve(kilni_locate_disk_t* disk,
                                  kilni_locate_disk_node_t* node) {
  bool there = node->known && (node->kind == KILNI_FILE_REGULAR ||
                               node->kind == KILNI_FILE_DIR);
  if (!there || !disk_is_plain(node)) return resolve_whole(disk, node);
  kilni_locate_disk_node_t* chain[MAX_CHAIN];
  size_t count = 0;
  const char* above = "/";
  chain[count++] = node;
  for (;;) {
    const kilni_locate_disk_node_t* first = chain[count - 1];
    size_t size = (size_t)(last_part(first) - first->path);
    if (size < 2) break;
    if (count == MAX_CHAIN) return resolve_whole(disk, node);
    kilni_locate_disk_node_t* dir = NULL;
    KILNI_RETURN_IF_ERROR(
        node_of(disk, kilni_base_sv_make(node->path, size - 1), &dir));
    if (dir->real != NULL) {
      above = dir->real;
      break;
    }
    chain[count++] = dir;
  }
  bool plain = false;
  if (count >= LONG_CHAIN && above[0] != 0) {
    KILNI_RETURN_IF_ERROR(resolve_plain(disk, chain, count, above, &plain));
  }
  while (count > 0 && !plain) {
    kilni_locate_disk_node_t* next = chain[--count];
    KILNI_RETURN_IF_ERROR(resolve_last(disk, next, above));
    above = next->real;
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_disk_real(kilni_locate_disk_t* disk,
                                     const char* path, const char** out_real) {
  *out_real = "";
  kilni_locate_disk_node_t* node = NULL;
  KILNI_RETURN_IF_ERROR(node_of(disk, kilni_base_sv(path), &node));
  if (node->real == NULL) KILNI_RETURN_IF_ERROR(disk_resolve(disk, node));
  *out_real = node->real;
  return kiln_ok();
}

const char* kilni_locate_disk_why(const kilni_locate_disk_node_t* node,
                                  bool wants_folder, size_t capacity,
                                  char* buffer) {
  switch (node->kind) {
    case KILNI_FILE_NONE:
      return wants_folder ? "no such folder" : "no such file";
    case KILNI_FILE_DIR:
      return "a folder, not a file";
    case KILNI_FILE_REGULAR:
      return wants_folder ? "a file, not a folder" : "a file";
    case KILNI_FILE_OTHER:
      return "neither a file nor a folder";
    default:
      return kilni_base_error_text(node->error, capacity, buffer);
  }
}
