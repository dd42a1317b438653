// SPDX-License-Identifier: Apache-2.0
//
// locate: the disk, as a context has seen it so far.
#include "locate/locate_disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"

enum { CHUNK_BYTES = 16384, FIRST_BUCKETS = 64 };

// ---- Memory ----

struct kilni_disk_chunk_t {
  struct kilni_disk_chunk_t* next;
  size_t size;  // of the block
  size_t used;
  size_t reserved;
};

void kilni_disk_init(kilni_disk_t* disk, kiln_allocator_t allocator) {
  memset(disk, 0, sizeof(*disk));
  disk->allocator = allocator;
}

void kilni_disk_deinit(kilni_disk_t* disk) {
  struct kilni_disk_chunk_t* chunk = disk->chunks;
  while (chunk != NULL) {
    struct kilni_disk_chunk_t* next = chunk->next;
    kilni_free(disk->allocator, chunk, chunk->size);
    chunk = next;
  }
  kilni_free_array(disk->allocator, disk->buckets, disk->bucket_count,
                   sizeof(kilni_disk_node_t*));
  kilni_disk_init(disk, disk->allocator);
}

kiln_status_t kilni_disk_alloc(kilni_disk_t* disk, size_t size,
                               void** out_ptr) {
  *out_ptr = NULL;
  const size_t head = sizeof(struct kilni_disk_chunk_t);
  if (size > SIZE_MAX / 4) return kilni_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  size = (size + 15) & ~(size_t)15;
  struct kilni_disk_chunk_t* chunk = disk->chunks;
  if (chunk == NULL || chunk->size - chunk->used < size) {
    size_t bytes = head + size < CHUNK_BYTES ? CHUNK_BYTES : head + size;
    void* block = NULL;
    KILNI_RETURN_IF_ERROR(kilni_alloc(disk->allocator, bytes, &block));
    chunk = block;
    chunk->size = bytes;
    chunk->used = head;
    chunk->next = disk->chunks;
    disk->chunks = chunk;
  }
  *out_ptr = (char*)chunk + chunk->used;
  chunk->used += size;
  return NULL;
}

kiln_status_t kilni_disk_text(kilni_disk_t* disk, kiln_string_view_t text,
                              const char** out_text) {
  *out_text = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_disk_alloc(disk, text.size + 1, &block));
  if (text.size > 0) memcpy(block, text.data, text.size);
  ((char*)block)[text.size] = 0;
  *out_text = block;
  return NULL;
}

// ---- Nodes ----

static uint32_t hash_of(kiln_string_view_t path) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < path.size; i++) {
    hash = (hash ^ (uint8_t)path.data[i]) * 16777619u;
  }
  return hash;
}

static kiln_status_t grow_table(kilni_disk_t* disk) {
  if (disk->node_count < disk->bucket_count) return NULL;
  size_t count = disk->bucket_count ? disk->bucket_count * 4 : FIRST_BUCKETS;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc_array(disk->allocator, count,
                                          sizeof(kilni_disk_node_t*), &block));
  kilni_disk_node_t** buckets = block;
  kilni_disk_node_t** old = disk->buckets;
  for (size_t i = 0; i < disk->bucket_count; i++) {
    kilni_disk_node_t* node = old[i];
    while (node != NULL) {
      kilni_disk_node_t* next = node->next;
      node->next = buckets[node->hash & (count - 1)];
      buckets[node->hash & (count - 1)] = node;
      node = next;
    }
  }
  kilni_free_array(disk->allocator, old, disk->bucket_count,
                   sizeof(kilni_disk_node_t*));
  disk->buckets = buckets;
  disk->bucket_count = count;
  return NULL;
}

static kiln_status_t node_of(kilni_disk_t* disk, kiln_string_view_t path,
                             kilni_disk_node_t** out_node) {
  *out_node = NULL;
  KILNI_RETURN_IF_ERROR(grow_table(disk));
  uint32_t hash = hash_of(path);
  kilni_disk_node_t** buckets = disk->buckets;
  kilni_disk_node_t** bucket = &buckets[hash & (disk->bucket_count - 1)];
  for (kilni_disk_node_t* node = *bucket; node != NULL; node = node->next) {
    if (node->hash == hash && node->length == path.size &&
        memcmp(node->path, path.data, path.size) == 0) {
      *out_node = node;
      return NULL;
    }
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_disk_alloc(
      disk, sizeof(kilni_disk_node_t) + path.size + 1, &block));
  kilni_disk_node_t* node = block;
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
  return NULL;
}

static void set_missing(kilni_disk_node_t* node) {
  node->known = true;
  node->kind = KILNI_FILE_NONE;
  node->error = ENOENT;
}

static void ask(kilni_disk_node_t* node) {
  if (node->known) return;
  kilni_file_look_t look = kilni_file_look(node->path);
  node->known = true;
  node->kind = look.kind;
  node->error = look.error;
}

// ---- Listing ----

// Names while they are read. one-thread
typedef struct names_t {
  kilni_disk_t* disk;
  void* items;  // const char*
  size_t count;
  size_t capacity;
  kiln_status_t status;
  bool too_many;
} names_t;

static bool add_name(const char* name, void* user) {
  names_t* names = user;
  if (names->count == KILNI_DISK_LIST_LIMIT) {
    names->too_many = true;
    return false;
  }
  names->status = kilni_grow(names->disk->allocator, names->count + 1,
                             sizeof(char*), &names->capacity, &names->items);
  if (!kiln_status_is_ok(names->status)) return false;
  const char** items = names->items;
  names->status =
      kilni_disk_text(names->disk, kilni_sv(name), &items[names->count]);
  if (!kiln_status_is_ok(names->status)) return false;
  names->count++;
  return true;
}

static int compare_names(const void* a, const void* b) {
  return strcmp(*(const char* const*)a, *(const char* const*)b);
}

static kiln_status_t list(kilni_disk_t* disk, kilni_disk_node_t* node) {
  if (node->listed || node->hopeless) return NULL;
  names_t names = {disk, NULL, 0, 0, NULL, false};
  int error = kilni_dir_scan(node->path, add_name, &names);
  kiln_status_t status = names.status;
  // What cannot be listed may still be entered.
  node->hopeless = error != 0 || names.too_many;
  void* block = NULL;
  if (kiln_status_is_ok(status) && !node->hopeless) {
    status = kilni_disk_alloc(disk, (names.count + 1) * sizeof(char*), &block);
  }
  if (block != NULL) {
    if (names.count > 0) {
      qsort(names.items, names.count, sizeof(char*), compare_names);
      memcpy(block, names.items, names.count * sizeof(char*));
    }
    node->names = block;
    node->name_count = (uint32_t)names.count;
    node->listed = true;
  }
  kilni_free_array(disk->allocator, names.items, names.capacity, sizeof(char*));
  if (error == ENOENT || error == ENOTDIR) set_missing(node);
  return status;
}

static bool names_hold(const kilni_disk_node_t* node, const char* name) {
  return bsearch(&name, node->names, node->name_count, sizeof(char*),
                 compare_names) != NULL;
}

// ---- Questions ----

static const char* last_part(const kilni_disk_node_t* node) {
  const char* slash = strrchr(node->path, '/');
  return slash ? slash + 1 : node->path;
}

static bool is_gone(const kilni_disk_node_t* node) {
  return node->known && node->kind != KILNI_FILE_DIR;
}

// True for a folder that is worth a question of its own before those in it are
// asked about: the root, and what lies in it ("nvidia" in site-packages), since
// most roots have nothing of what is looked for.
static bool is_gate(const kilni_disk_node_t* node, size_t root_length) {
  if (node->length <= root_length) return true;
  size_t above = (size_t)(last_part(node) - node->path);
  return above <= root_length + 1;
}

// What can be said of a folder from those above it, asking as little as
// possible. The stack is as deep as the path has parts.
static kiln_status_t conclude(kilni_disk_t* disk, kilni_disk_node_t* node,
                              size_t root_length, bool is_leaf) {
  if (is_gone(node)) return NULL;
  if (!node->known && node->length > root_length) {
    const char* last = last_part(node);
    size_t above = (size_t)(last - node->path);
    above -= above > 1 ? 1 : 0;
    if (above >= root_length && above < node->length && above > 0) {
      kilni_disk_node_t* parent = NULL;
      KILNI_RETURN_IF_ERROR(
          node_of(disk, kilni_sv_make(node->path, above), &parent));
      KILNI_RETURN_IF_ERROR(conclude(disk, parent, root_length, false));
      if (is_gone(parent) || (parent->listed && !names_hold(parent, last))) {
        set_missing(node);
        return NULL;
      }
    }
  }
  bool asks = node->suspect || (!is_leaf && is_gate(node, root_length));
  if (!node->known && asks) ask(node);
  if (!is_gone(node) && node->length > root_length &&
      node->misses >= KILNI_DISK_PATIENCE) {
    return list(disk, node);
  }
  return NULL;
}

// Remembers above a missing folder that something is missing there.
static kiln_status_t blame(kilni_disk_t* disk, const kilni_disk_node_t* node,
                           size_t root_length) {
  size_t above = (size_t)(last_part(node) - node->path);
  above -= above > 1 ? 1 : 0;
  if (above < root_length || above == 0 || node->length <= root_length) {
    return NULL;
  }
  kilni_disk_node_t* parent = NULL;
  KILNI_RETURN_IF_ERROR(
      node_of(disk, kilni_sv_make(node->path, above), &parent));
  parent->suspect = true;
  parent->misses++;
  return NULL;
}

kiln_status_t kilni_disk_dir(kilni_disk_t* disk, kiln_string_view_t path,
                             size_t root_length, kilni_disk_node_t** out_node) {
  KILNI_RETURN_IF_ERROR(node_of(disk, path, out_node));
  return conclude(disk, *out_node, root_length, true);
}

kiln_status_t kilni_disk_file(kilni_disk_t* disk, kilni_disk_node_t* dir,
                              kiln_string_view_t path, size_t root_length,
                              kilni_disk_node_t** out_node) {
  KILNI_RETURN_IF_ERROR(node_of(disk, path, out_node));
  kilni_disk_node_t* node = *out_node;
  if (node->known) return NULL;
  KILNI_RETURN_IF_ERROR(conclude(disk, dir, root_length, true));
  if (is_gone(dir)) {
    set_missing(node);
    return NULL;
  }
  // A name may have folders of its own ("cuda/std/version").
  const char* name = node->path + dir->length + 1;
  bool simple = strchr(name, '/') == NULL;
  if (dir->listed && simple && !names_hold(dir, name)) {
    set_missing(node);
    return NULL;
  }
  ask(node);
  if (node->kind != KILNI_FILE_NONE) return NULL;
  dir->misses++;
  if (dir->known) return NULL;
  ask(dir);
  return is_gone(dir) ? blame(disk, dir, root_length) : NULL;
}

kiln_status_t kilni_disk_look(kilni_disk_t* disk, const char* path,
                              kilni_disk_node_t** out_node) {
  KILNI_RETURN_IF_ERROR(node_of(disk, kilni_sv(path), out_node));
  ask(*out_node);
  return NULL;
}

static kiln_status_t resolve_whole(kilni_disk_t* disk,
                                   kilni_disk_node_t* node) {
  char* whole = NULL;
  kiln_status_t status = kilni_path_real(disk->allocator, node->path, &whole);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  status = kilni_disk_text(disk, kilni_sv(whole), &node->real);
  kilni_strfree(disk->allocator, whole);
  return status;
}

// By way of its folder's real path, which is asked once for all that lies in
// it; whole where the last part is a link itself.
static kiln_status_t resolve(kilni_disk_t* disk, kilni_disk_node_t* node) {
  const char* last = last_part(node);
  size_t above = (size_t)(last - node->path);
  bool odd = last[0] == 0 || strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
  char path[KILNI_DISK_PATH_LIMIT];
  if (above < 2 || odd || node->kind != KILNI_FILE_REGULAR) {
    return resolve_whole(disk, node);
  }
  kilni_disk_node_t* dir = NULL;
  KILNI_RETURN_IF_ERROR(
      node_of(disk, kilni_sv_make(node->path, above - 1), &dir));
  if (dir->real == NULL) KILNI_RETURN_IF_ERROR(resolve_whole(disk, dir));
  size_t size = strlen(dir->real);
  size_t name = strlen(last);
  if (size < 2 || size + name + 2 > sizeof(path)) {
    return resolve_whole(disk, node);
  }
  memcpy(path, dir->real, size);
  path[size] = '/';
  memcpy(path + size + 1, last, name + 1);
  if (kilni_link_is(path)) return resolve_whole(disk, node);
  return kilni_disk_text(disk, kilni_sv(path), &node->real);
}

kiln_status_t kilni_disk_real(kilni_disk_t* disk, const char* path,
                              const char** out_real) {
  *out_real = "";
  kilni_disk_node_t* node = NULL;
  KILNI_RETURN_IF_ERROR(node_of(disk, kilni_sv(path), &node));
  if (node->real == NULL) KILNI_RETURN_IF_ERROR(resolve(disk, node));
  *out_real = node->real;
  return NULL;
}

const char* kilni_disk_why(const kilni_disk_node_t* node, bool wants_folder,
                           size_t capacity, char* buffer) {
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
      return kilni_error_text(node->error, capacity, buffer);
  }
}
