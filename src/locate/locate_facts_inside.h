// SPDX-License-Identifier: Apache-2.0
//
// locate: what the files that read facts share.
//
// Everything a reader returns lives in its store, which only grows and is freed
// as a whole; the lock of the reader is held during each read.
#ifndef KILN_SRC_LOCATE_LOCATE_FACTS_INSIDE_H_
#define KILN_SRC_LOCATE_LOCATE_FACTS_INSIDE_H_

#include <stdatomic.h>

#include "base/thread.h"
#include "locate/locate_facts.h"
#include "locate/locate_store.h"

enum { KILNI_FACTS_MAX_PATH = 16384 };

// One installed distribution of a site-packages.
typedef struct kilni_locate_facts_dist_t {
  const struct kilni_locate_facts_site_t* site;
  const char* folder;   // name of its dist-info
  const char* name;     // normalised
  const char* version;  // as the folder's name has it
  const char* record;   // path of RECORD; NULL until it was asked
  uint32_t rank;        // what it promises to the file that is sought
  uint8_t* text;        // of RECORD; NULL until read
  size_t size;
  size_t capacity;
  uint32_t* rows;       // offset + 1 of rows by the hash of their path; 0: free
  size_t row_capacity;  // a power of two
  bool is_read;
  bool is_detailed;  // METADATA and its kin were read
  const char* installer;
  const char* direct_url;
  const char* problem;  // of its RECORD; NULL: none
  struct kilni_locate_facts_dist_t* next;
} kilni_locate_facts_dist_t;

// One site-packages.
typedef struct kilni_locate_facts_site_t {
  const char* path;
  const char* real_path;
  kilni_locate_facts_dist_t* dists;  // those that are known
  bool is_listed;                    // then all are
  bool is_large;                     // CHEAP listed the front of it and gave up
  bool has_pins;                     // `pins` were read
  const char* problem;               // of listing it
  kilni_locate_pin_t* pins;
  uint32_t pin_count;
  struct kilni_locate_facts_site_t* next;
} kilni_locate_facts_site_t;

// A folder's path with links resolved, as it was asked for.
typedef struct kilni_locate_facts_real_t {
  uint64_t hash;
  const char* path;
  const char* real;  // NULL: it leads nowhere
  struct kilni_locate_facts_real_t* next;
} kilni_locate_facts_real_t;

// What one folder states of a toolkit.
typedef struct kilni_locate_facts_folder_t {
  const char* path;
  kilni_locate_line_t header;
  kilni_locate_line_t runtime;
  kilni_locate_line_t version_json;
  kilni_locate_line_t version_txt;
  const char* problem_path;
  const char* problem;
  bool knows_conda;  // then `is_conda` is whether it is a conda prefix
  bool is_conda;
  struct kilni_locate_facts_folder_t* next;
} kilni_locate_facts_folder_t;

// A product's header that was sought.
typedef struct kilni_locate_facts_header_t {
  const char* path;
  const char* version;  // "9.19.0"; NULL: missing, or not stated
  struct kilni_locate_facts_header_t* next;
} kilni_locate_facts_header_t;

typedef struct kilni_locate_facts_manager_t kilni_locate_facts_manager_t;
typedef struct kilni_locate_facts_package_t kilni_locate_facts_package_t;

// Facts that were read.
typedef struct kilni_locate_facts_entry_t {
  uint64_t hash;
  kilni_locate_facts_t facts;
  struct kilni_locate_facts_entry_t* next;
} kilni_locate_facts_entry_t;

struct kilni_locate_reader_t {
  _Atomic uint32_t references;
  kiln_allocator_t allocator;
  kilni_base_mutex_t mutex;
  kilni_locate_store_t store;
  const char* system_root;  // without "/" at its end: "" for "/"
  kilni_locate_facts_site_t* sites;
  kilni_locate_facts_folder_t* folders;
  kilni_locate_facts_header_t* headers;
  kilni_locate_facts_real_t* reals;
  kilni_locate_facts_entry_t* entries;
  kilni_locate_driver_t* driver;
  kilni_locate_facts_manager_t* managers;
  size_t record_bytes;   // of all RECORDs that were read
  size_t package_bytes;  // of all records of packages
};

// One read while it is made.
typedef struct kilni_locate_facts_read_t {
  kilni_locate_reader_t* reader;
  const kilni_locate_facts_query_t* query;
  kilni_locate_facts_t* facts;
  const kilni_locate_facts_t* before;  // of the same file, CHEAP; or NULL
  uint32_t depth;
  bool strangers;  // all distributions are asked
  kilni_locate_problem_t problems[KILNI_FACTS_MAX_PROBLEMS];
} kilni_locate_facts_read_t;

// ---- Into the store (locate_facts_store.c) ----

// printf into the store; LIMIT_EXCEEDED above KILNI_FACTS_MAX_PATH bytes.
kiln_status_t kilni_locate_facts_print(kilni_locate_store_t* store,
                                       const char** out_text,
                                       const char* format, ...)
    KILN_PRINTF(3, 4);

// Adds a problem to the facts.
kiln_status_t kilni_locate_facts_problem(kilni_locate_facts_read_t* read,
                                         const char* path, const char* why);
// Ends a status as a problem with `path`. Bare OUT_OF_MEMORY is given back.
kiln_status_t kilni_locate_facts_absorb(kilni_locate_facts_read_t* read,
                                        const char* path, kiln_status_t status);

// Fills a line; text and path are copied.
kiln_status_t kilni_locate_facts_line(kilni_locate_store_t* store,
                                      uint32_t line, kiln_string_view_t text,
                                      const char* path,
                                      kilni_locate_line_t* out_line);

// Reads at most `limit` bytes from the front of an ordinary file. The block is
// freed by kilni_base_free with `*out_capacity`.
kiln_status_t kilni_locate_facts_front(kiln_allocator_t allocator,
                                       const char* path, size_t limit,
                                       uint8_t** out_data, size_t* out_size,
                                       size_t* out_capacity);

// The same of a file that need not be there: then `*out_data` is NULL.
kiln_status_t kilni_locate_facts_front_if(kiln_allocator_t allocator,
                                          const char* path, size_t limit,
                                          uint8_t** out_data, size_t* out_size,
                                          size_t* out_capacity);

uint64_t kilni_locate_facts_hash(kiln_string_view_t text);

// A folder's path with links resolved; NULL if it leads nowhere. Asked once.
kiln_status_t kilni_locate_facts_real_folder(kilni_locate_reader_t* reader,
                                             kiln_string_view_t path,
                                             const char** out_real);

// The text after the folder `base` of a path below it; false otherwise.
bool kilni_locate_facts_below(const char* path, const char* base,
                              const char** out);

// ---- Parts ----

kiln_status_t kilni_locate_facts_read_elf(kilni_locate_facts_read_t* read);
kiln_status_t kilni_locate_facts_read_owner(kilni_locate_facts_read_t* read);
// The package, unless there is an owner or it is known; dpkg's for VERIFY.
kiln_status_t kilni_locate_facts_read_package(kilni_locate_facts_read_t* read);
kiln_status_t kilni_locate_facts_read_pins(kilni_locate_facts_read_t* read);
kiln_status_t kilni_locate_facts_read_folders(kilni_locate_facts_read_t* read);
// The number in a product's own header; nothing for what is not a product.
kiln_status_t kilni_locate_facts_read_product(kilni_locate_facts_read_t* read);
// Calls `visit` with each folder of headers that could be of the file, the
// nearest first, until it sets `*out_found`.
kiln_status_t kilni_locate_facts_each_include(
    kilni_locate_facts_read_t* read,
    kiln_status_t (*visit)(kiln_string_view_t folder, void* user,
                           bool* out_found),
    void* user);

// The known site-packages of that path, made where it is new. `is_real`: the
// caller knows that no part of the path is a link.
kiln_status_t kilni_locate_facts_site(kilni_locate_reader_t* reader,
                                      kiln_string_view_t path, bool is_real,
                                      kilni_locate_facts_site_t** out_site);
// The folder of a path that is a site-packages or dist-packages; false if none
// of its parts is.
bool kilni_locate_facts_site_of(const char* path, kiln_string_view_t* out_site);
// Lists the distributions of a site-packages, once; with `is_cheap` the start
// of it.
kiln_status_t kilni_locate_facts_list(kilni_locate_reader_t* reader,
                                      kilni_locate_facts_site_t* site,
                                      bool is_cheap);
// The distribution of the same site-packages that owns `path`; NULL: none.
kiln_status_t kilni_locate_facts_owner_of(
    kilni_locate_facts_read_t* read, const char* path,
    const kilni_locate_facts_dist_t** out_dist);
// The package of dpkg that owns a file in either spelling; NULL: none.
kiln_status_t kilni_locate_facts_dpkg_of(
    kilni_locate_facts_read_t* read, const char* path, const char* real,
    const kilni_locate_package_t** out_package);
// The path of a file in its dist-info.
kiln_status_t kilni_locate_facts_dist_path(
    kilni_locate_reader_t* reader, const kilni_locate_facts_dist_t* dist,
    const char* name, const char** out_path);
// Frees what of packages is not in the store.
void kilni_locate_facts_managers_deinit(kilni_locate_reader_t* reader);
// Frees what the site-packages have outside the store.
void kilni_locate_facts_sites_deinit(kilni_locate_reader_t* reader);

#endif  // KILN_SRC_LOCATE_LOCATE_FACTS_INSIDE_H_
