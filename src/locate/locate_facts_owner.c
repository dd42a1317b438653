// SPDX-License-Identifier: Apache-2.0
//
// locate: which installed distribution a file belongs to.
//
// By the RECORD of a *.dist-info, in both spellings of the path. The records
// are read in the order of their likelihood: those that the catalog names for
// the file, those whose name is in the path, NVIDIA's, and all others where the
// read is of everything, or a header needs an owner. Each is read once and
// indexed by the hash of its paths. An egg-info without a RECORD owns nothing.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "kiln/locate_catalog.h"
#include "locate/locate_facts_inside.h"
#include "locate/locate_facts_parse.h"

enum { RANK_NAMED, RANK_IN_PATH, RANK_NVIDIA, RANK_OTHER, RANK_COUNT };

// For what follows the path of a dist-info.
enum { PATH_SPACE = 32 };

static const char kDistInfo[] = ".dist-info";

// ---- site-packages ----

bool kilni_locate_facts_site_of(const char* path,
                                kiln_string_view_t* out_site) {
  static const char* const names[] = {"/site-packages/", "/dist-packages/"};
  const char* end = NULL;
  for (size_t i = 0; i < 2; i++) {
    for (const char* at = path; (at = strstr(at, names[i])) != NULL; at++) {
      const char* here = at + strlen(names[i]) - 1;
      if (end == NULL || here > end) end = here;
    }
  }
  if (end == NULL) return false;
  *out_site = kilni_base_sv_make(path, (size_t)(end - path));
  return true;
}

static kiln_status_t resolve_site(kilni_locate_reader_t* reader,
                                  kilni_locate_facts_site_t* site) {
  const char* real;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_real_folder(reader, kilni_base_sv(site->path), &real));
  if (real != NULL) site->real_path = real;
  return kiln_ok();
}

kiln_status_t kilni_locate_facts_site(kilni_locate_reader_t* reader,
                                      kiln_string_view_t path, bool is_real,
                                      kilni_locate_facts_site_t** out_site) {
  *out_site = NULL;
  while (path.size > 1 && path.data[path.size - 1] == '/') path.size--;
  for (kilni_locate_facts_site_t* site = reader->sites; site;
       site = site->next) {
    if (kilni_base_sv_equal_cstr(path, site->path)) {
      *out_site = site;
      return kiln_ok();
    }
  }
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &reader->store, sizeof(kilni_locate_facts_site_t), &memory));
  kilni_locate_facts_site_t* site = memory;
  memset(site, 0, sizeof(*site));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(&reader->store, path, &site->path));
  site->real_path = site->path;
  if (!is_real) KILNI_RETURN_IF_ERROR(resolve_site(reader, site));
  site->next = reader->sites;
  reader->sites = site;
  *out_site = site;
  return kiln_ok();
}

void kilni_locate_facts_sites_deinit(kilni_locate_reader_t* reader) {
  for (kilni_locate_facts_site_t* site = reader->sites; site;
       site = site->next) {
    for (kilni_locate_facts_dist_t* dist = site->dists; dist;
         dist = dist->next) {
      kilni_base_free(reader->allocator, dist->text, dist->capacity);
      kilni_base_free_array(reader->allocator, dist->rows, dist->row_capacity,
                            sizeof(uint32_t));
    }
  }
}

// ---- Distributions ----

// Adds the distribution whose folder has that name; `*out_dist` NULL for a name
// that is not one.
static kiln_status_t add_dist(kilni_locate_reader_t* reader,
                              kilni_locate_facts_site_t* site,
                              const char* folder,
                              kilni_locate_facts_dist_t** out_dist) {
  *out_dist = NULL;
  kiln_string_view_t name = kilni_base_sv(folder);
  if (!kilni_base_sv_ends_with(name, kDistInfo)) return kiln_ok();
  name.size -= sizeof(kDistInfo) - 1;
  size_t dash = name.size;
  while (dash > 0 && name.data[dash - 1] != '-') dash--;
  if (dash < 2 || dash == name.size) return kiln_ok();
  char normal[KILNI_PARSE_MAX_NAME];
  if (kilni_locate_name_normalise(kilni_base_sv_make(name.data, dash - 1),
                                  sizeof(normal), normal) == 0) {
    return kiln_ok();
  }
  // A site-packages has hundreds, of most of which only the name is needed:
  // each is one block, and its paths are made when they are needed.
  size_t whole = strlen(folder) + 1;
  size_t normal_size = strlen(normal) + 1;
  size_t version_size = name.size - dash;
  // A name that is too long for a path has no owner.
  if (strlen(site->path) + whole + PATH_SPACE > KILNI_FACTS_MAX_PATH) {
    return kiln_ok();
  }
  void* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_alloc(&reader->store,
                               sizeof(kilni_locate_facts_dist_t) + whole +
                                   normal_size + version_size + 1,
                               &memory));
  kilni_locate_facts_dist_t* dist = memory;
  char* text = (char*)(dist + 1);
  dist->site = site;
  dist->folder = memcpy(text, folder, whole);
  dist->name = memcpy(text + whole, normal, normal_size);
  text += whole + normal_size;
  dist->version = memcpy(text, name.data + dash, version_size);
  dist->next = site->dists;
  site->dists = dist;
  *out_dist = dist;
  return kiln_ok();
}

kiln_status_t kilni_locate_facts_dist_path(
    kilni_locate_reader_t* reader, const kilni_locate_facts_dist_t* dist,
    const char* name, const char** out_path) {
  return kilni_locate_facts_print(&reader->store, out_path, "%s/%s/%s",
                                  dist->site->path, dist->folder, name);
}

// A listing while it is made.
typedef struct listing_t {
  kilni_locate_reader_t* reader;
  kilni_locate_facts_site_t* site;
  kilni_locate_facts_dist_t* guessed;  // those that are known already
  kiln_status_t status;
  uint32_t count;
  uint32_t limit;
} listing_t;

static bool facts_owner_is_known(const listing_t* listing, const char* folder) {
  for (const kilni_locate_facts_dist_t* dist = listing->guessed; dist != NULL;
       dist = dist->next) {
    if (strcmp(dist->folder, folder) == 0) return true;
  }
  return false;
}

static bool on_entry(const char* name, void* user) {
  listing_t* listing = user;
  if (++listing->count > listing->limit) return false;
  if (!kilni_base_sv_ends_with(kilni_base_sv(name), kDistInfo)) return true;
  if (facts_owner_is_known(listing, name)) return true;
  kilni_locate_facts_dist_t* dist;
  listing->status = add_dist(listing->reader, listing->site, name, &dist);
  return kiln_status_is_ok(listing->status);
}

// Keeps of the list those whose RECORD was read: the listing finds the others
// again, and it compares with few.
static kilni_locate_facts_dist_t* take_read(kilni_locate_facts_site_t* site) {
  kilni_locate_facts_dist_t* kept = NULL;
  for (kilni_locate_facts_dist_t* dist = site->dists; dist != NULL;) {
    kilni_locate_facts_dist_t* next = dist->next;
    if (dist->is_read) {
      dist->next = kept;
      kept = dist;
    }
    dist = next;
  }
  site->dists = NULL;
  return kept;
}

static void facts_owner_put_back(kilni_locate_facts_site_t* site,
                                 kilni_locate_facts_dist_t* kept) {
  while (kept != NULL) {
    kilni_locate_facts_dist_t* next = kept->next;
    kept->next = site->dists;
    site->dists = kept;
    kept = next;
  }
}

kiln_status_t kilni_locate_facts_list(kilni_locate_reader_t* reader,
                                      kilni_locate_facts_site_t* site,
                                      bool is_cheap) {
  if (site->is_listed || (is_cheap && site->is_large)) return kiln_ok();
  listing_t listing = {
      reader,
      site,
      take_read(site),
      NULL,
      0,
      is_cheap ? KILNI_FACTS_CHEAP_ENTRIES : KILNI_FACTS_MAX_SITE_ENTRIES};
  kiln_status_t status = kilni_base_dir_visit(site->path, on_entry, &listing);
  facts_owner_put_back(site, listing.guessed);
  status = kilni_base_status_join(listing.status, status);
  bool is_cut = listing.count > listing.limit;
  // A missing site-packages has no distributions, which is not a problem.
  if (kiln_status_code(status) == KILN_STATUS_NOT_FOUND) {
    kiln_status_free(status);
    status = kiln_ok();
  }
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  site->is_large = is_cheap && is_cut;
  site->is_listed = !site->is_large;
  if (is_cut && !is_cheap) site->problem = "it has too many entries to list";
  if (kiln_status_is_ok(status)) return kiln_ok();
  kiln_status_t kept = kilni_locate_store_text(
      &reader->store, kilni_base_sv(kiln_status_message(status)),
      &site->problem);
  kiln_status_free(status);
  return kept;
}

// ---- RECORD ----

// Rows whose path has doubled quotes are omitted from the index: no library's
// name has any.
static kiln_status_t index_record(kilni_locate_reader_t* reader,
                                  kilni_locate_facts_dist_t* dist) {
  const char* begin = (const char*)dist->text;
  size_t lines = 1;
  for (size_t i = 0; i < dist->size; i++) lines += begin[i] == '\n';
  size_t capacity = 16;
  while (capacity < 2 * lines) capacity *= 2;
  void* rows;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(reader->allocator, capacity,
                                               sizeof(uint32_t), &rows));
  dist->rows = rows;
  dist->row_capacity = capacity;
  kiln_string_view_t rest = kilni_base_sv_make(begin, dist->size);
  size_t broken = 0;
  // At most `lines` rows, so that a free place is always left.
  for (size_t i = 0; i < lines; i++) {
    size_t offset = (size_t)(rest.data - begin);
    kilni_locate_record_row_t row;
    if (!kilni_locate_record_next(&rest, &row)) break;
    broken += row.is_broken;
    if (row.is_broken || row.is_doubled) continue;
    size_t at = (size_t)kilni_locate_facts_hash(row.path) & (capacity - 1);
    while (dist->rows[at] != 0) at = (at + 1) & (capacity - 1);
    dist->rows[at] = (uint32_t)offset + 1;
  }
  if (broken == 0) return kiln_ok();
  return kilni_locate_facts_print(&reader->store, &dist->problem,
                                  "%zu of its lines are not rows of a RECORD",
                                  broken);
}

// Reads and indexes a RECORD, once. One that cannot be read owns nothing, and
// its problem gives the reason.
static kiln_status_t load_record(kilni_locate_reader_t* reader,
                                 kilni_locate_facts_dist_t* dist) {
  if (dist->is_read) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_dist_path(reader, dist, "RECORD", &dist->record));
  size_t limit = KILNI_FACTS_MAX_RECORDS - reader->record_bytes;
  if (limit > KILNI_FACTS_MAX_RECORD) limit = KILNI_FACTS_MAX_RECORD;
  kiln_status_t status =
      kilni_locate_facts_front(reader->allocator, dist->record, limit,
                               &dist->text, &dist->size, &dist->capacity);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  dist->is_read = true;
  if (kiln_status_is_ok(status)) {
    reader->record_bytes += dist->size;
    KILNI_RETURN_IF_ERROR(index_record(reader, dist));
    if (dist->size == limit) dist->problem = "it is too long to read whole";
    return kiln_ok();
  }
  kiln_status_t kept = kilni_locate_store_text(
      &reader->store, kilni_base_sv(kiln_status_message(status)),
      &dist->problem);
  kiln_status_free(status);
  return kept;
}

// The row of that path; false if there is none.
static bool facts_owner_find_row(const kilni_locate_facts_dist_t* dist,
                                 kiln_string_view_t path,
                                 kilni_locate_record_row_t* out_row) {
  if (dist->rows == NULL) return false;
  size_t mask = dist->row_capacity - 1;
  for (size_t at = (size_t)kilni_locate_facts_hash(path) & mask;
       dist->rows[at] != 0; at = (at + 1) & mask) {
    size_t offset = dist->rows[at] - 1;
    kiln_string_view_t rest = kilni_base_sv_make(
        (const char*)dist->text + offset, dist->size - offset);
    if (kilni_locate_record_next(&rest, out_row) &&
        kilni_base_sv_equal(out_row->path, path)) {
      return true;
    }
  }
  return false;
}

// ---- Which records to ask ----

// A file as the rows of one site-packages may name it.
typedef struct spelling_t {
  char* text;  // relative to the site-packages; freed by kilni_base_strfree
  bool is_real;
  // Its first two parts, normalised as names of distributions are.
  char first[KILNI_PARSE_MAX_NAME];
  char second[KILNI_PARSE_MAX_NAME];
  size_t second_size;
} spelling_t;

enum { MAX_SPELLINGS = 4, MAX_UP = 5 };

typedef struct search_t {
  kilni_locate_facts_read_t* read;
  kilni_locate_facts_site_t* site;
  const kiln_locate_entry_t* entry;  // of the catalog; NULL: none
  spelling_t spellings[MAX_SPELLINGS];
  size_t count;
  kilni_locate_facts_dist_t* dist;  // that owns it; NULL: none yet
  kilni_locate_record_row_t row;
  bool by_real_path;
} search_t;

// "nvidia/cu13" of "nvidia//./cu13/": redundant parts are dropped.
static void facts_owner_add_parts(kilni_base_str_t* out,
                                  kiln_string_view_t path) {
  kiln_string_view_t part;
  while (kilni_base_sv_split(&path, '/', &part)) {
    if (part.size == 0 || kilni_base_sv_equal_cstr(part, ".")) continue;
    if (out->size > 0) kilni_base_str_add_char(out, '/');
    kilni_base_str_add(out, part);
  }
}

// The place where two paths diverge: after the last common `/`.
static size_t common_folders(const char* a, const char* b) {
  size_t common = 0;
  for (size_t i = 0; a[i] != 0 && a[i] == b[i]; i++) {
    if (a[i] == '/') common = i + 1;
  }
  return common;
}

// The path relative to a site-packages: "nvidia/x.so"; "../../../bin/x" for
// what a wheel puts beside it, where `may_climb`. Empty where it is neither.
static void add_relative(kilni_base_str_t* out, const char* path,
                         const char* site, bool may_climb) {
  const char* below;
  if (kilni_locate_facts_below(path, site, &below)) {
    facts_owner_add_parts(out, kilni_base_sv(below));
    return;
  }
  size_t common = common_folders(path, site);
  if (!may_climb || common < 2) return;
  size_t up = 1;
  for (const char* at = site + common; *at != 0; at++) up += *at == '/';
  if (up > MAX_UP) return;
  for (size_t i = 0; i < up; i++) {
    if (out->size > 0) kilni_base_str_add_char(out, '/');
    kilni_base_str_add_cstr(out, "..");
  }
  facts_owner_add_parts(out, kilni_base_sv(path + common));
}

static void name_parts(spelling_t* spelling) {
  kiln_string_view_t rest = kilni_base_sv(spelling->text);
  kiln_string_view_t part;
  spelling->first[0] = spelling->second[0] = 0;
  spelling->second_size = 0;
  if (!kilni_base_sv_split(&rest, '/', &part)) return;
  kilni_locate_name_normalise(part, sizeof(spelling->first), spelling->first);
  if (!kilni_base_sv_split(&rest, '/', &part)) return;
  spelling->second_size = kilni_locate_name_normalise(
      part, sizeof(spelling->second), spelling->second);
}

static kiln_status_t add_spelling(search_t* search, const char* path,
                                  const char* site, bool is_real) {
  kiln_allocator_t allocator = search->read->reader->allocator;
  kilni_base_str_t text;
  kilni_base_str_init(&text, allocator, KILNI_FACTS_MAX_PATH);
  add_relative(&text, path, site,
               search->read->query->kind == KILN_LOCATE_KIND_BINARY);
  bool is_new = text.size > 0;
  for (size_t i = 0; i < search->count; i++) {
    is_new = is_new &&
             strcmp(search->spellings[i].text, kilni_base_str_cstr(&text)) != 0;
  }
  if (!is_new) {
    kiln_status_t status = kilni_base_str_status(&text);
    kilni_base_str_deinit(&text);
    return status;
  }
  spelling_t* spelling = &search->spellings[search->count];
  KILNI_RETURN_IF_ERROR(kilni_base_str_take(&text, &spelling->text));
  spelling->is_real = is_real;
  name_parts(spelling);
  search->count++;
  return kiln_ok();
}

static kiln_status_t add_spellings(search_t* search, const char* path,
                                   const char* real) {
  const char* site = search->site->path;
  const char* real_site = search->site->real_path;
  KILNI_RETURN_IF_ERROR(add_spelling(search, path, site, false));
  KILNI_RETURN_IF_ERROR(add_spelling(search, path, real_site, false));
  if (real == NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(add_spelling(search, real, site, true));
  return add_spelling(search, real, real_site, true);
}

static void facts_owner_search_init(search_t* search,
                                    kilni_locate_facts_read_t* read) {
  search->read = read;
  search->site = NULL;
  search->entry = NULL;
  search->count = 0;
  search->dist = NULL;
  search->by_real_path = false;
}

static void facts_owner_search_deinit(search_t* search) {
  for (size_t i = 0; i < search->count; i++) {
    kilni_base_strfree(search->read->reader->allocator,
                       search->spellings[i].text);
  }
}

// True if the path names the distribution: "torch/lib/x" that of torch,
// "nvidia/cuda_nvrtc/lib/x" that of nvidia-cuda-nvrtc-cu12.
static bool is_in_path(const search_t* search, const char* name) {
  for (size_t i = 0; i < search->count; i++) {
    const spelling_t* spelling = &search->spellings[i];
    if (strcmp(spelling->first, name) == 0) return true;
    if (strncmp(name, "nvidia-", 7) != 0 ||
        strcmp(spelling->first, "nvidia") != 0) {
      continue;
    }
    size_t size = spelling->second_size;
    const char* tail = name + 7;
    if (size > 0 && strncmp(tail, spelling->second, size) == 0 &&
        (tail[size] == 0 || strncmp(tail + size, "-cu", 3) == 0)) {
      return true;
    }
  }
  return false;
}

static uint32_t facts_owner_rank_of(const search_t* search,
                                    const kilni_locate_facts_dist_t* dist) {
  uint32_t count =
      kiln_locate_entry_list_count(search->entry, KILN_LOCATE_LIST_WHEELS);
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(dist->name, kiln_locate_entry_list_text(
                               search->entry, KILN_LOCATE_LIST_WHEELS, i)) ==
        0) {
      return RANK_NAMED;
    }
  }
  if (is_in_path(search, dist->name)) return RANK_IN_PATH;
  bool is_nvidia = strncmp(dist->name, "nvidia-", 7) == 0 ||
                   strncmp(dist->name, "cuda-", 5) == 0;
  return is_nvidia ? RANK_NVIDIA : RANK_OTHER;
}

// Asks one distribution.
static kiln_status_t ask_dist(search_t* search,
                              kilni_locate_facts_dist_t* dist) {
  KILNI_RETURN_IF_ERROR(load_record(search->read->reader, dist));
  if (dist->problem != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_locate_facts_problem(search->read, dist->record, dist->problem));
  }
  for (size_t i = 0; i < search->count; i++) {
    if (!facts_owner_find_row(dist, kilni_base_sv(search->spellings[i].text),
                              &search->row)) {
      continue;
    }
    search->dist = dist;
    search->by_real_path = search->spellings[i].is_real;
    return kiln_ok();
  }
  return kiln_ok();
}

// Asks all distributions that are known, in the order of their ranks.
static kiln_status_t ask_known(search_t* search, uint32_t last_rank) {
  kilni_locate_facts_dist_t* first = search->site->dists;
  for (kilni_locate_facts_dist_t* dist = first; dist != NULL;
       dist = dist->next) {
    dist->rank = facts_owner_rank_of(search, dist);
  }
  for (uint32_t rank = 0; rank <= last_rank; rank++) {
    for (kilni_locate_facts_dist_t* dist = first; dist != NULL;
         dist = dist->next) {
      if (dist->rank != rank) continue;
      KILNI_RETURN_IF_ERROR(ask_dist(search, dist));
      if (search->dist != NULL) return kiln_ok();
    }
  }
  return kiln_ok();
}

// A distribution's folder has its version in its name, and what the file states
// of itself is a good guess: a correct one saves listing the site-packages.
static kiln_status_t ask_guess(search_t* search, const char* name,
                               const char* version) {
  kilni_locate_reader_t* reader = search->read->reader;
  kilni_base_str_t folder;
  kilni_base_str_init(&folder, reader->allocator, KILNI_PARSE_MAX_NAME);
  for (const char* at = name; *at != 0; at++) {
    kilni_base_str_add_char(&folder, *at == '-' ? '_' : *at);
  }
  kilni_base_str_addf(&folder, "-%s%s", version, kDistInfo);
  kilni_locate_facts_dist_t* dist = NULL;
  kiln_status_t status = kilni_base_str_status(&folder);
  if (kiln_status_is_ok(status)) {
    kilni_base_str_t path;
    kilni_base_str_init(&path, reader->allocator, KILNI_FACTS_MAX_PATH);
    kilni_base_str_addf(&path, "%s/%s/RECORD", search->site->path,
                        kilni_base_str_cstr(&folder));
    status = kilni_base_str_status(&path);
    if (kiln_status_is_ok(status) &&
        kilni_base_file_exists(kilni_base_str_cstr(&path))) {
      status =
          add_dist(reader, search->site, kilni_base_str_cstr(&folder), &dist);
    }
    kilni_base_str_deinit(&path);
  }
  kilni_base_str_deinit(&folder);
  KILNI_RETURN_IF_ERROR(status);
  return dist != NULL ? ask_dist(search, dist) : kiln_ok();
}

static kiln_status_t ask_guesses(search_t* search) {
  const char* version = search->read->facts->release_version;
  if (version == NULL) version = search->read->facts->name_version;
  if (version == NULL || search->site->is_listed) return kiln_ok();
  uint32_t count =
      kiln_locate_entry_list_count(search->entry, KILN_LOCATE_LIST_WHEELS);
  for (uint32_t i = 0; i < count && search->dist == NULL; i++) {
    KILNI_RETURN_IF_ERROR(ask_guess(
        search,
        kiln_locate_entry_list_text(search->entry, KILN_LOCATE_LIST_WHEELS, i),
        version));
  }
  return kiln_ok();
}

static kiln_status_t ask_site(search_t* search) {
  kilni_locate_facts_read_t* read = search->read;
  const kilni_locate_facts_t* facts = read->facts;
  bool all = read->depth >= KILNI_LOCATE_FACTS_LINE;
  KILNI_RETURN_IF_ERROR(ask_known(search, RANK_NAMED));
  if (search->dist != NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(ask_guesses(search));
  if (search->dist != NULL) return kiln_ok();
  bool is_told = facts->symbol.line != 0 || facts->sibling.line != 0 ||
                 facts->release.line != 0;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_list(read->reader, search->site, !all && is_told));
  if (search->site->problem != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_locate_facts_problem(read, search->site->path,
                                                     search->site->problem));
  }
  return ask_known(search, read->strangers ? RANK_OTHER : RANK_NVIDIA);
}

static kiln_status_t search_site(search_t* search, kiln_string_view_t site,
                                 const char* path, const char* real) {
  if (site.size == 0) return kiln_ok();
  search->count = 0;
  // A path that is its own resolution has no link in it, nor has its
  // site-packages.
  const kilni_locate_facts_t* facts = search->read->facts;
  bool is_real = facts->path == facts->real_path && path == facts->path &&
                 strncmp(path, site.data, site.size) == 0 &&
                 path[site.size] == '/';
  KILNI_RETURN_IF_ERROR(kilni_locate_facts_site(search->read->reader, site,
                                                is_real, &search->site));
  kiln_status_t status = add_spellings(search, path, real);
  if (kiln_status_is_ok(status) && search->count > 0) status = ask_site(search);
  facts_owner_search_deinit(search);
  return status;
}

// The site-packages that a path names itself come first, then those that are
// given.
static kiln_status_t search_sites(search_t* search, const char* path,
                                  const char* real) {
  const kilni_locate_facts_query_t* query = search->read->query;
  kiln_string_view_t first = kilni_base_sv("");
  kiln_string_view_t second = kilni_base_sv("");
  if (kilni_locate_facts_site_of(path, &first)) {
    KILNI_RETURN_IF_ERROR(search_site(search, first, path, real));
  }
  if (search->dist == NULL && real != NULL &&
      kilni_locate_facts_site_of(real, &second) &&
      !kilni_base_sv_equal(first, second)) {
    KILNI_RETURN_IF_ERROR(search_site(search, second, path, real));
  }
  for (uint32_t i = 0; i < query->site_count && search->dist == NULL; i++) {
    kiln_string_view_t site = kilni_base_sv(query->sites[i]);
    if (kilni_base_sv_equal(site, first) || kilni_base_sv_equal(site, second)) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(search_site(search, site, path, real));
  }
  return kiln_ok();
}

kiln_status_t kilni_locate_facts_owner_of(
    kilni_locate_facts_read_t* read, const char* path,
    const kilni_locate_facts_dist_t** out_dist) {
  search_t search;
  facts_owner_search_init(&search, read);
  kiln_status_t status = search_sites(&search, path, NULL);
  *out_dist = kiln_status_is_ok(status) ? search.dist : NULL;
  return status;
}

// ---- The owner ----

// The first line of a small file of the dist-info, or all of it.
static kiln_status_t read_small(kilni_locate_reader_t* reader,
                                const kilni_locate_facts_dist_t* dist,
                                const char* name, bool first_line,
                                const char** out_text) {
  const char* path;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_facts_dist_path(reader, dist, name, &path));
  uint8_t* data;
  size_t size;
  size_t capacity;
  kiln_status_t status = kilni_locate_facts_front(reader->allocator, path,
                                                  KILNI_FACTS_MAX_METADATA,
                                                  &data, &size, &capacity);
  if (!kiln_status_is_ok(status)) {
    if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
    // Neither has to be there.
    kiln_status_free(status);
    return kiln_ok();
  }
  kiln_string_view_t text = kilni_base_sv_make((const char*)data, size);
  kiln_string_view_t line;
  if (first_line && kilni_base_sv_split(&text, '\n', &line)) text = line;
  while (text.size > 0 && (unsigned char)text.data[text.size - 1] <= ' ') {
    text.size--;
  }
  status = kilni_locate_store_text(&reader->store, text, out_text);
  kilni_base_free(reader->allocator, data, capacity);
  return status;
}

static kiln_status_t read_details(kilni_locate_facts_read_t* read,
                                  kilni_locate_facts_dist_t* dist) {
  if (read->depth != KILNI_LOCATE_FACTS_VERIFY || dist->is_detailed) {
    return kiln_ok();
  }
  dist->is_detailed = true;
  KILNI_RETURN_IF_ERROR(
      read_small(read->reader, dist, "INSTALLER", true, &dist->installer));
  return read_small(read->reader, dist, "direct_url.json", false,
                    &dist->direct_url);
}

static kiln_status_t take_owner(search_t* search) {
  kilni_locate_facts_read_t* read = search->read;
  kilni_locate_store_t* store = &read->reader->store;
  kilni_locate_facts_dist_t* dist = search->dist;
  KILNI_RETURN_IF_ERROR(read_details(read, dist));
  void* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_alloc(store, sizeof(kilni_locate_owner_t), &memory));
  kilni_locate_owner_t* owner = memory;
  memset(owner, 0, sizeof(*owner));
  owner->name = dist->name;
  owner->version = dist->version;
  owner->record = dist->record;
  owner->installer = dist->installer;
  owner->direct_url = dist->direct_url;
  owner->by_real_path = search->by_real_path;
  if (!kilni_base_sv_to_u64(search->row.size, &owner->size)) owner->size = 0;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, search->row.path, &owner->row));
  if (kilni_base_sv_starts_with(search->row.hash, "sha256=")) {
    KILNI_RETURN_IF_ERROR(
        kilni_locate_store_text(store,
                                kilni_base_sv_make(search->row.hash.data + 7,
                                                   search->row.hash.size - 7),
                                &owner->sha256));
  }
  read->facts->owner = owner;
  return kiln_ok();
}

kiln_status_t kilni_locate_facts_read_owner(kilni_locate_facts_read_t* read) {
  const kilni_locate_facts_t* facts = read->facts;
  search_t search;
  facts_owner_search_init(&search, read);
  if (read->query->name != NULL) {
    search.entry = kiln_locate_entry_find(read->query->kind, read->query->name);
  }
  KILNI_RETURN_IF_ERROR(
      search_sites(&search, facts->path,
                   facts->real_path != facts->path ? facts->real_path : NULL));
  if (search.dist == NULL) return kiln_ok();
  return take_owner(&search);
}
