// SPDX-License-Identifier: Apache-2.0
//
// locate: which package of conda or dpkg a file belongs to.
//
// For files that no RECORD has. Only packages whose names show that they are of
// CUDA are read: another's version would be meaningless. Those whose names
// contain the component's come first. Each record is read once.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "locate/locate_facts_inside.h"
#include "locate/locate_facts_parse.h"
#include "locate/locate_package_parse.h"

static const char kDpkgInfo[] = "/var/lib/dpkg/info";
static const char kDpkgStatus[] = "/var/lib/dpkg/status";

// What a manager has written down below one root.
struct kilni_locate_facts_manager_t {
  const char* root;    // a conda prefix; the system's root
  const char* folder;  // where its records are; NULL: it keeps none here
  uint32_t kind;       // KILNI_PACKAGE_*
  kilni_locate_facts_package_t* packages;  // those of CUDA
  const char* problem;                     // of listing them
  uint8_t* status;                         // dpkg's; NULL until read
  size_t status_size;
  size_t status_capacity;
  bool status_is_read;
  struct kilni_locate_facts_manager_t* next;
};

// A package whose name shows that it is of CUDA.
struct kilni_locate_facts_package_t {
  const char* name;    // the record's, without its ending; in lower case
  const char* record;  // path
  uint8_t* text;
  size_t size;
  size_t capacity;
  bool is_read;
  const char* problem;
  kilni_locate_package_t* says;  // NULL until it owned something
  struct kilni_locate_facts_package_t* next;
};

typedef struct kilni_locate_facts_manager_t manager_t;
typedef struct kilni_locate_facts_package_t package_t;

// ---- Listing ----

static bool facts_package_is_of_cuda(const char* name) {
  static const char* const starts[] = {
      "cuda",   "libcu",   "libnv", "libnpp",   "nvidia",   "libaccinj",
      "nccl",   "libnccl", "cudnn", "cutensor", "cutlass",  "gds",
      "nsight", "nvtx",    "nvcc",  "cccl",     "libmathdx"};
  for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
    if (strncmp(name, starts[i], strlen(starts[i])) == 0) return true;
  }
  return false;
}

static void facts_package_lower(char* text) {
  for (; *text != 0; text++) {
    if (*text >= 'A' && *text <= 'Z') *text = (char)(*text - 'A' + 'a');
  }
}

// A listing while it is made.
typedef struct listing_t {
  kilni_locate_reader_t* reader;
  manager_t* manager;
  kiln_status_t status;
  uint32_t count;
} listing_t;

static kiln_status_t facts_package_add_package(listing_t* listing,
                                               const char* file,
                                               size_t name_size) {
  kilni_locate_store_t* store = &listing->reader->store;
  void* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_alloc(store, sizeof(package_t), &memory));
  package_t* package = memory;
  memset(package, 0, sizeof(*package));
  char name[KILNI_PARSE_MAX_NAME];
  memcpy(name, file, name_size);
  name[name_size] = 0;
  facts_package_lower(name);
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, kilni_base_sv(name), &package->name));
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_print(
      store, &package->record, "%s/%s", listing->manager->folder, file));
  package->next = listing->manager->packages;
  listing->manager->packages = package;
  return kiln_ok();
}

static bool on_record(const char* name, void* user) {
  listing_t* listing = user;
  const char* ending =
      listing->manager->kind == KILNI_PACKAGE_CONDA ? ".json" : ".list";
  if (++listing->count > KILNI_FACTS_MAX_PACKAGES) return false;
  kiln_string_view_t text = kilni_base_sv(name);
  if (!kilni_base_sv_ends_with(text, ending) ||
      !facts_package_is_of_cuda(name)) {
    return true;
  }
  size_t size = text.size - strlen(ending);
  if (size >= KILNI_PARSE_MAX_NAME) return true;
  listing->status = facts_package_add_package(listing, name, size);
  return kiln_status_is_ok(listing->status);
}

static kiln_status_t list_packages(kilni_locate_reader_t* reader,
                                   manager_t* manager) {
  listing_t listing = {reader, manager, NULL, 0};
  kiln_status_t status =
      kilni_base_dir_visit(manager->folder, on_record, &listing);
  status = kilni_base_status_join(listing.status, status);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  if (listing.count > KILNI_FACTS_MAX_PACKAGES) {
    manager->problem = "it has too many entries to list";
  }
  if (kiln_status_is_ok(status)) return kiln_ok();
  kiln_status_t kept = kilni_locate_store_text(
      &reader->store, kilni_base_sv(kiln_status_message(status)),
      &manager->problem);
  kiln_status_free(status);
  return kept;
}

// The manager of that root, made and listed where it is new; one without a
// folder where it keeps no records there.
static kiln_status_t manager_of(kilni_locate_reader_t* reader, uint32_t kind,
                                kiln_string_view_t root,
                                manager_t** out_manager) {
  *out_manager = NULL;
  for (manager_t* at = reader->managers; at != NULL; at = at->next) {
    if (at->kind == kind && kilni_base_sv_equal_cstr(root, at->root)) {
      *out_manager = at;
      return kiln_ok();
    }
  }
  kilni_locate_store_t* store = &reader->store;
  void* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_alloc(store, sizeof(manager_t), &memory));
  manager_t* manager = memory;
  memset(manager, 0, sizeof(*manager));
  manager->kind = kind;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_text(store, root, &manager->root));
  const char* folder;
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_print(
      store, &folder, "%s%s", manager->root,
      kind == KILNI_PACKAGE_CONDA ? "/conda-meta" : kDpkgInfo));
  if (kilni_base_dir_exists(folder)) {
    manager->folder = folder;
    KILNI_RETURN_IF_ERROR(list_packages(reader, manager));
  }
  manager->next = reader->managers;
  reader->managers = manager;
  *out_manager = manager;
  return kiln_ok();
}

void kilni_locate_facts_managers_deinit(kilni_locate_reader_t* reader) {
  for (manager_t* at = reader->managers; at != NULL; at = at->next) {
    kilni_base_free(reader->allocator, at->status, at->status_capacity);
    for (package_t* one = at->packages; one != NULL; one = one->next) {
      kilni_base_free(reader->allocator, one->text, one->capacity);
    }
  }
}

// ---- Asking one package ----

// Reads a file of a manager within what the reader has left for them. What
// cannot be read is a problem in words.
static kiln_status_t facts_package_read_text(kilni_locate_reader_t* reader,
                                             const char* path, size_t limit,
                                             uint8_t** out_text,
                                             size_t* out_size,
                                             size_t* out_capacity,
                                             const char** out_problem) {
  size_t left = KILNI_FACTS_MAX_PACKAGE_BYTES - reader->package_bytes;
  if (limit > left) limit = left;
  kiln_status_t status = kilni_locate_facts_front(
      reader->allocator, path, limit, out_text, out_size, out_capacity);
  if (kiln_status_is_ok(status)) {
    reader->package_bytes += *out_capacity;
    if (*out_size == limit) *out_problem = "it is too large to read whole";
    return kiln_ok();
  }
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_t kept = kilni_locate_store_text(
      &reader->store, kilni_base_sv(kiln_status_message(status)), out_problem);
  kiln_status_free(status);
  return kept;
}

enum { MAX_PATHS = 4 };

// One search for an owner.
typedef struct search_t {
  kilni_locate_facts_read_t* read;
  manager_t* manager;
  kiln_string_view_t paths[MAX_PATHS];  // as the manager would write them
  size_t count;
  const kilni_locate_package_t* found;
} search_t;

// The facts about a package, in the store.
static kiln_status_t facts_package_tell(search_t* search, package_t* package,
                                        kiln_string_view_t name,
                                        kiln_string_view_t version,
                                        kilni_locate_package_t** out_says) {
  kilni_locate_store_t* store = &search->read->reader->store;
  void* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_alloc(store, sizeof(kilni_locate_package_t), &memory));
  kilni_locate_package_t* says = memory;
  memset(says, 0, sizeof(*says));
  says->manager = search->manager->kind;
  says->record = package->record;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_text(store, name, &says->name));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, version, &says->version));
  says->source = says->source_version = says->toolkit = "";
  *out_says = package->says = says;
  return kiln_ok();
}

static kiln_status_t ask_conda(search_t* search, package_t* package) {
  kilni_locate_store_t* store = &search->read->reader->store;
  kilni_locate_conda_record_t record;
  kiln_string_view_t text =
      kilni_base_sv_make((const char*)package->text, package->size);
  if (!kilni_locate_conda_read(text, search->paths, search->count, &record)) {
    package->problem = "it is not a record of a conda package";
    return kiln_ok();
  }
  if (record.owned == SIZE_MAX) return kiln_ok();
  search->found = package->says;
  if (search->found != NULL) return kiln_ok();
  kilni_locate_package_t* says;
  KILNI_RETURN_IF_ERROR(
      facts_package_tell(search, package, record.name, record.version, &says));
  kiln_status_t status =
      kilni_locate_store_text(store, record.toolkit, &says->toolkit);
  search->found = says;
  return status;
}

static kiln_status_t load_status(kilni_locate_reader_t* reader,
                                 manager_t* manager) {
  if (manager->status_is_read) return kiln_ok();
  const char* path;
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_print(&reader->store, &path, "%s%s",
                                                 manager->root, kDpkgStatus));
  KILNI_RETURN_IF_ERROR(facts_package_read_text(
      reader, path, KILNI_FACTS_MAX_DPKG_STATUS, &manager->status,
      &manager->status_size, &manager->status_capacity, &manager->problem));
  manager->status_is_read = true;
  return kiln_ok();
}

static kiln_status_t ask_dpkg(search_t* search, package_t* package) {
  kiln_string_view_t list =
      kilni_base_sv_make((const char*)package->text, package->size);
  bool has = false;
  for (size_t i = 0; i < search->count && !has; i++) {
    has = kilni_locate_dpkg_list_has(list, search->paths[i]);
  }
  if (!has) return kiln_ok();
  search->found = package->says;
  if (search->found != NULL) return kiln_ok();
  kilni_locate_reader_t* reader = search->read->reader;
  KILNI_RETURN_IF_ERROR(load_status(reader, search->manager));
  // The list of a package that can be installed for two architectures names its
  // own.
  kiln_string_view_t architecture = kilni_base_sv(package->name);
  kiln_string_view_t name;
  if (!kilni_base_sv_split(&architecture, ':', &name)) return kiln_ok();
  kilni_locate_dpkg_package_t said;
  if (!kilni_locate_dpkg_status_find(
          kilni_base_sv_make((const char*)search->manager->status,
                             search->manager->status_size),
          name, architecture, &said)) {
    package->problem = "dpkg's status does not list the package";
    return kiln_ok();
  }
  kilni_locate_package_t* says;
  KILNI_RETURN_IF_ERROR(
      facts_package_tell(search, package, name, said.version, &says));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(&reader->store, said.source, &says->source));
  KILNI_RETURN_IF_ERROR(kilni_locate_store_text(
      &reader->store, said.source_version, &says->source_version));
  search->found = says;
  return kiln_ok();
}

static kiln_status_t facts_package_ask(search_t* search, package_t* package) {
  kilni_locate_facts_read_t* read = search->read;
  if (!package->is_read) {
    size_t limit = KILNI_FACTS_MAX_PACKAGE_RECORD;
    KILNI_RETURN_IF_ERROR(facts_package_read_text(
        read->reader, package->record, limit, &package->text, &package->size,
        &package->capacity, &package->problem));
    package->is_read = true;
  }
  if (package->problem == NULL) {
    bool conda = search->manager->kind == KILNI_PACKAGE_CONDA;
    KILNI_RETURN_IF_ERROR(conda ? ask_conda(search, package)
                                : ask_dpkg(search, package));
  }
  if (package->problem == NULL) return kiln_ok();
  return kilni_locate_facts_problem(read, package->record, package->problem);
}

// Those with the component's name in theirs, then the others.
static kiln_status_t facts_package_ask_all(search_t* search) {
  manager_t* manager = search->manager;
  if (manager->problem != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_locate_facts_problem(
        search->read, manager->folder, manager->problem));
  }
  char piece[KILNI_PARSE_MAX_NAME] = "";
  const char* name = search->read->query->name;
  if (name != NULL && strlen(name) < sizeof(piece)) {
    strcpy(piece, name);
    facts_package_lower(piece);
  }
  for (int named = 1; named >= 0; named--) {
    for (package_t* package = manager->packages;
         package != NULL && search->found == NULL; package = package->next) {
      bool has_name = piece[0] != 0 && strstr(package->name, piece) != NULL;
      if (has_name != (named == 1)) continue;
      KILNI_RETURN_IF_ERROR(facts_package_ask(search, package));
    }
  }
  return kiln_ok();
}

// ---- conda ----

static void facts_package_add_path(search_t* search, kiln_string_view_t path) {
  for (size_t i = 0; i < search->count; i++) {
    if (kilni_base_sv_equal(search->paths[i], path)) return;
  }
  if (search->count < MAX_PATHS && path.size > 0) {
    search->paths[search->count++] = path;
  }
}

// Asks the nearest conda prefix above a path.
static kiln_status_t search_conda(search_t* search, const char* path) {
  kiln_string_view_t folder = kilni_base_sv(path);
  for (int i = 0; i < KILNI_FACTS_MAX_CLIMB; i++) {
    const char* slash = NULL;
    for (size_t at = folder.size; at > 0 && slash == NULL; at--) {
      if (folder.data[at - 1] == '/') slash = folder.data + at - 1;
    }
    if (slash == NULL || slash == folder.data) return kiln_ok();
    folder.size = (size_t)(slash - folder.data);
    KILNI_RETURN_IF_ERROR(manager_of(search->read->reader, KILNI_PACKAGE_CONDA,
                                     folder, &search->manager));
    if (search->manager->folder == NULL) continue;
    search->count = 0;
    facts_package_add_path(search, kilni_base_sv(path + folder.size + 1));
    return facts_package_ask_all(search);
  }
  return kiln_ok();
}

// ---- dpkg ----

// The path as a package of the system would have it: below the system's root,
// and where /lib is a link to /usr/lib in the other spelling as well.
static void add_system_path(search_t* search, const char* path) {
  static const char* const parts[] = {"/usr/", "/opt/", "/lib", "/bin/"};
  const char* root = search->read->reader->system_root;
  size_t size = strlen(root);
  if (strncmp(path, root, size) != 0) return;
  const char* below = path + size;
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    if (strncmp(below, parts[i], strlen(parts[i])) != 0) continue;
    facts_package_add_path(search, kilni_base_sv(below));
    if (i == 0) facts_package_add_path(search, kilni_base_sv(below + 4));
  }
}

static kiln_status_t search_dpkg(search_t* search, const char* path,
                                 const char* real) {
  kilni_locate_reader_t* reader = search->read->reader;
  search->count = 0;
  add_system_path(search, path);
  add_system_path(search, real);
  if (search->count == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(manager_of(reader, KILNI_PACKAGE_DPKG,
                                   kilni_base_sv(reader->system_root),
                                   &search->manager));
  return search->manager->folder != NULL ? facts_package_ask_all(search)
                                         : kiln_ok();
}

// ---- The owner ----

kiln_status_t kilni_locate_facts_dpkg_of(
    kilni_locate_facts_read_t* read, const char* path, const char* real,
    const kilni_locate_package_t** out_package) {
  search_t search = {.read = read};
  kiln_status_t status = search_dpkg(&search, path, real);
  *out_package = kiln_status_is_ok(status) ? search.found : NULL;
  return status;
}

kiln_status_t kilni_locate_facts_read_package(kilni_locate_facts_read_t* read) {
  kilni_locate_facts_t* facts = read->facts;
  if (facts->owner != NULL || facts->package != NULL) return kiln_ok();
  search_t search = {.read = read};
  KILNI_RETURN_IF_ERROR(search_conda(&search, facts->path));
  if (search.found == NULL && facts->real_path != facts->path) {
    KILNI_RETURN_IF_ERROR(search_conda(&search, facts->real_path));
  }
  if (search.found == NULL && read->depth >= KILNI_LOCATE_FACTS_LINE) {
    KILNI_RETURN_IF_ERROR(search_dpkg(&search, facts->path, facts->real_path));
  }
  facts->package = search.found;
  return kiln_ok();
}
