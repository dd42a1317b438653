// SPDX-License-Identifier: Apache-2.0
//
// locate: the reader of facts, and the order in which they are read.
#include "locate/locate_facts.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "locate/locate_facts_inside.h"
#include "locate/locate_facts_parse.h"

// ---- The reader ----

kiln_status_t kilni_locate_reader_create(kiln_allocator_t allocator,
                                         const char* system_root,
                                         kilni_locate_reader_t** out_reader) {
  *out_reader = NULL;
  void* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kilni_locate_reader_t), &memory));
  kilni_locate_reader_t* reader = memory;
  atomic_init(&reader->references, 1);
  reader->allocator = allocator;
  reader->store.allocator = allocator;
  kiln_status_t status = kilni_base_mutex_init(&reader->mutex);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(allocator, reader, sizeof(*reader));
    return status;
  }
  kiln_string_view_t root = kilni_base_sv(system_root);
  while (root.size > 0 && root.data[root.size - 1] == '/') root.size--;
  status = kilni_locate_store_text(&reader->store, root, &reader->system_root);
  if (!kiln_status_is_ok(status)) {
    kilni_locate_reader_release(reader);
    return status;
  }
  *out_reader = reader;
  return kiln_ok();
}

void kilni_locate_reader_retain(kilni_locate_reader_t* reader) {
  if (reader == NULL) return;
  atomic_fetch_add_explicit(&reader->references, 1, memory_order_relaxed);
}

void kilni_locate_reader_release(kilni_locate_reader_t* reader) {
  if (reader == NULL || atomic_fetch_sub_explicit(&reader->references, 1,
                                                  memory_order_acq_rel) != 1) {
    return;
  }
  kilni_locate_facts_sites_deinit(reader);
  kilni_locate_facts_managers_deinit(reader);
  kilni_locate_store_deinit(&reader->store);
  kilni_base_mutex_deinit(&reader->mutex);
  kilni_base_free(reader->allocator, reader, sizeof(*reader));
}

// ---- One read ----

// The path with links resolved: through its folder, which many share.
static kiln_status_t facts_resolve(kilni_locate_reader_t* reader,
                                   const char* path, const char** out_real) {
  const char* folder = NULL;
  const char* slash = strrchr(path, '/');
  kiln_string_view_t above = kilni_base_sv_make(path, (size_t)(slash - path));
  if (above.size > 0) {
    KILNI_RETURN_IF_ERROR(
        kilni_locate_facts_real_folder(reader, above, &folder));
  }
  bool dots = strcmp(slash, "/.") == 0 || strcmp(slash, "/..") == 0;
  if (folder != NULL && slash[1] != 0 && !dots) {
    KILNI_RETURN_IF_ERROR(kilni_locate_facts_print(
        &reader->store, out_real, "%s%s",
        strcmp(folder, "/") == 0 ? "" : folder, slash));
    if (!kilni_base_link_is(*out_real)) return kiln_ok();
  }
  char* whole = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_path_real(reader->allocator, path, &whole));
  kiln_status_t status =
      kilni_locate_store_text(&reader->store, kilni_base_sv(whole), out_real);
  kilni_base_strfree(reader->allocator, whole);
  return status;
}

static kiln_status_t facts_take_paths(kilni_locate_facts_read_t* read) {
  const kilni_locate_facts_query_t* query = read->query;
  kilni_locate_facts_t* facts = read->facts;
  kilni_locate_store_t* store = &read->reader->store;
  facts->kind = query->kind;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, kilni_base_sv(query->path), &facts->path));
  const char* real = query->real_path;
  if (real == NULL || real[0] == 0) {
    KILNI_RETURN_IF_ERROR(facts_resolve(read->reader, facts->path, &real));
  }
  facts->real_path = facts->path;
  if (strcmp(real, facts->path) != 0) {
    KILNI_RETURN_IF_ERROR(
        kilni_locate_store_text(store, kilni_base_sv(real), &facts->real_path));
  }
  const char* slash = strrchr(facts->real_path, '/');
  const char* number = strstr(slash != NULL ? slash : facts->real_path, ".so.");
  if (number == NULL) return kiln_ok();
  kiln_string_view_t version =
      kilni_locate_version_at(kilni_base_sv(number + 4));
  // "libnvrtc.so.13" adds nothing to the name that was searched for.
  if (version.size == 0 || memchr(version.data, '.', version.size) == NULL) {
    return kiln_ok();
  }
  return kilni_locate_store_text(store, version, &facts->name_version);
}

// True if the file itself states its release.
static bool tells_itself(const kilni_locate_facts_t* facts) {
  return facts->symbol.line != 0 || facts->sibling.line != 0 ||
         facts->release.line != 0;
}

// True if the file or its owner already states its release, so that CHEAP need
// not look further.
static bool facts_is_told(const kilni_locate_facts_t* facts) {
  return tells_itself(facts) || facts->owner != NULL || facts->package != NULL;
}

static kiln_status_t read_parts(kilni_locate_facts_read_t* read) {
  kilni_locate_facts_t* facts = read->facts;
  bool all = read->depth >= KILNI_LOCATE_FACTS_LINE;
  KILNI_RETURN_IF_ERROR(facts_take_paths(read));
  kiln_status_t status = kilni_locate_facts_read_elf(read);
  // A file that vanished since it was found is an error: it has no facts.
  if (kiln_status_code(status) == KILN_STATUS_NOT_FOUND) return status;
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_absorb(read, facts->path, status));
  if (read->depth == KILNI_LOCATE_FACTS_LEAST && tells_itself(facts)) {
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_absorb(
      read, facts->path, kilni_locate_facts_read_owner(read)));
  if (all) {
    KILNI_RETURN_IF_ERROR(kilni_locate_facts_absorb(
        read, facts->path, kilni_locate_facts_read_pins(read)));
  }
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_absorb(
      read, facts->path, kilni_locate_facts_read_product(read)));
  if (!all && facts_is_told(facts)) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_absorb(
      read, facts->path, kilni_locate_facts_read_package(read)));
  if (!all && facts_is_told(facts)) return kiln_ok();
  return kilni_locate_facts_absorb(read, facts->path,
                                   kilni_locate_facts_read_folders(read));
}

// What was read before, deep enough; NULL if nothing was.
static const kilni_locate_facts_t* recall(
    const kilni_locate_reader_t* reader,
    const kilni_locate_facts_query_t* query, uint32_t depth) {
  uint64_t hash = kilni_locate_facts_hash(kilni_base_sv(query->path));
  for (const kilni_locate_facts_entry_t* entry = reader->entries; entry != NULL;
       entry = entry->next) {
    if (entry->hash == hash && entry->facts.depth >= depth &&
        entry->facts.kind == query->kind &&
        strcmp(entry->facts.path, query->path) == 0) {
      return &entry->facts;
    }
  }
  return NULL;
}

static kiln_status_t read_new(kilni_locate_reader_t* reader,
                              const kilni_locate_facts_query_t* query,
                              uint32_t depth,
                              const kilni_locate_facts_t** out_facts) {
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &reader->store, sizeof(kilni_locate_facts_entry_t), &memory));
  kilni_locate_facts_entry_t* entry = memory;
  memset(entry, 0, sizeof(*entry));
  kilni_locate_facts_read_t read;
  memset(&read, 0, sizeof(read));
  read.reader = reader;
  read.query = query;
  read.facts = &entry->facts;
  read.depth = depth;
  read.strangers = depth == KILNI_LOCATE_FACTS_VERIFY;
  read.before = recall(reader, query, KILNI_LOCATE_FACTS_LEAST);
  entry->facts.depth = depth;
  KILNI_RETURN_IF_ERROR(read_parts(&read));
  size_t count = entry->facts.problem_count;
  if (count > 0) {
    size_t size = count * sizeof(kilni_locate_problem_t);
    KILNI_RETURN_IF_ERROR(
        kilni_locate_store_alloc(&reader->store, size, &memory));
    memcpy(memory, read.problems, size);
    entry->facts.problems = memory;
  }
  entry->hash = kilni_locate_facts_hash(kilni_base_sv(entry->facts.path));
  entry->next = reader->entries;
  reader->entries = entry;
  *out_facts = &entry->facts;
  return kiln_ok();
}

kiln_status_t kilni_locate_facts_read(kilni_locate_reader_t* reader,
                                      const kilni_locate_facts_query_t* query,
                                      uint32_t depth,
                                      const kilni_locate_facts_t** out_facts) {
  *out_facts = NULL;
  KILNI_CHECK_ARGUMENT_SAYS(query->path != NULL && query->path[0] == '/',
                            "query->path", "is not an absolute path",
                            "pass one that begins with a slash");
  KILNI_CHECK_ARGUMENT_SAYS(
      depth >= KILNI_LOCATE_FACTS_LEAST && depth <= KILNI_LOCATE_FACTS_VERIFY,
      "depth", "is not a depth", "pass one of KILNI_LOCATE_FACTS_...");
  kilni_base_mutex_lock(&reader->mutex);
  *out_facts = recall(reader, query, depth);
  kiln_status_t status =
      *out_facts != NULL ? NULL : read_new(reader, query, depth, out_facts);
  kilni_base_mutex_unlock(&reader->mutex);
  return status;
}
