// SPDX-License-Identifier: Apache-2.0
//
// locate: a search context from inside.
//
// Private to the module: its files share it. Everything below `disk` in the
// context is what has been found out so far; it is filled under `lock`, and
// kiln_locate_refresh drops it.
#ifndef KILN_SRC_LOCATE_LOCATE_INSIDE_H_
#define KILN_SRC_LOCATE_LOCATE_INSIDE_H_

#include <stdatomic.h>

#include "base/env.h"
#include "base/thread.h"
#include "locate/locate_disk.h"
#include "locate/locate_facts.h"
#include "locate/locate_item.h"

enum {
  KILNI_SCOPE_COUNT = 15,
  KILNI_PLACE_MAX_ROOTS = 256,
  KILNI_PYVENV_LIMIT = 64 << 10,   // bytes of a pyvenv.cfg
  KILNI_LDCACHE_LIMIT = 64 << 20,  // bytes of an ld.so.cache
};

// A folder that one scope searches. one-thread
typedef struct kilni_locate_root_t {
  const char* path;
  const char* via;
  uint32_t layout;  // KILNI_LAYOUT_*
  uint32_t reserved;
} kilni_locate_root_t;

// The folders of a scope, once they are known. one-thread
typedef struct kilni_dispatch_place_t {
  bool ready;
  void* roots;  // kilni_locate_root_t
  size_t count;
  size_t capacity;
  kilni_locate_trail_t notes;  // what was looked at to know them
  const char* warning;         // one sentence, or NULL
} kilni_dispatch_place_t;

// The system's ld.so.cache, read when it is first needed. one-thread
typedef struct kilni_locate_loader_t {
  bool ready;
  uint8_t* data;
  size_t size;
  const char* why;  // the cache cannot be used: why; else NULL
  const char* path;
  kilni_dispatch_place_t defaults;  // the folders that are built into it
} kilni_locate_loader_t;

struct kiln_locate_t {
  atomic_uint references;
  bool secure;
  bool hermetic;
  bool records;  // files of packages are compared with their RECORD
  bool use_loaded;
  bool is_mounted;  // the system is not this process's own
  bool is_native;   // the target is this machine's
  uint32_t require;
  uint32_t named;  // where no scope is required: all that are looked at; 0: no
                   // folder is named that would be all
  uint32_t prefer;
  uint32_t forbid;
  kiln_allocator_t allocator;
  kilni_base_env_t env;
  char* system_root;  // "" for "/": "/usr" is appended to it
  char* target;
  const char* target2;  // another that is searched after it, or NULL
  char* multiarch;
  char** roots;
  char** sites;
  char** pythons;
  kiln_locate_override_t* overrides;
  uint32_t root_count;
  uint32_t site_count;
  uint32_t python_count;
  uint32_t override_count;
  kilni_base_mutex_t lock;

  kilni_locate_disk_t disk;
  kilni_locate_trail_t spare;  // memory for the log of the next search
  kilni_dispatch_place_t places[KILNI_SCOPE_COUNT];
  kilni_locate_loader_t loader;
  kilni_locate_reader_t* reader;  // made when a RECORD is first needed
  kiln_locate_item_t** finds;     // one for each row of the catalog
};

// ---- Scopes (locate_scope.c) ----

bool kilni_locate_scope_is_allowed(const kiln_locate_t* locate, uint32_t scope);
// The scopes to look at for a row, in order; their count.
size_t kilni_locate_scope_order(const kiln_locate_t* locate,
                                const kiln_locate_entry_t* entry,
                                uint8_t out_scopes[KILNI_SCOPE_COUNT]);

// ---- Places (locate_place.c, locate_sites.c) ----

// The roots of a scope; worked out once.
kiln_status_t kilni_locate_place_get(kiln_locate_t* locate, uint32_t scope,
                                     kilni_dispatch_place_t** out_place);
void kilni_locate_place_deinit(kiln_locate_t* locate,
                               kilni_dispatch_place_t* place);
// Adds a root, unless it is there by this spelling.
kiln_status_t kilni_locate_place_add(kiln_locate_t* locate,
                                     kilni_dispatch_place_t* place,
                                     const char* path, const char* via,
                                     uint32_t layout);
// Fills the roots of the scope `wheel`.
kiln_status_t kilni_locate_sites_fill(kiln_locate_t* locate,
                                      kilni_dispatch_place_t* place);
// The toolkit that a library at this real path belongs to, by the rule
// <root>/lib64, <root>/lib, <root>/targets/<target>/lib[64]; "" if it is
// elsewhere. Lives as long as the disk.
kiln_status_t kilni_locate_place_toolkit_of(kiln_locate_t* locate,
                                            const char* real,
                                            const char** out_root);
// "/usr/x" below the system's root. Lives as long as the disk.
kiln_status_t kilni_locate_place_below_system(kiln_locate_t* locate,
                                              const char* path,
                                              const char** out_path);
// The value of a variable; NULL where it is unset or variables are ignored.
const char* kilni_locate_place_env(const kiln_locate_t* locate,
                                   kilni_base_env_id_t id);

// Names of a folder that start with `prefix`, highest version first, at most
// KILNI_PLACE_MAX_ROOTS; called for each. Absence is not a failure.
typedef kiln_status_t (*kilni_locate_name_fn_t)(const char* name, void* user);
kiln_status_t kilni_locate_place_each_version(
    kiln_locate_t* locate, const char* dir, const char* prefix,
    const char* suffix, kilni_locate_name_fn_t fn, void* user);

// ---- The system loader (locate_loader.c, locate_loader_path.c) ----

// Adds a folder that the loader searches, after those of its subfolders that
// the loader searches first: glibc-hwcaps/* for this CPU.
kiln_status_t kilni_locate_loader_add_folder(kiln_locate_t* locate,
                                             kilni_dispatch_place_t* place,
                                             const char* path, const char* via);
// The file that the loader would take for a name, as far as the disk shows it;
// `*out_path` NULL if it would find none. `trail` may be NULL.
kiln_status_t kilni_locate_loader_find(kiln_locate_t* locate, const char* name,
                                       kilni_locate_trail_t* trail,
                                       const char** out_path,
                                       const char** out_via);
void kilni_locate_loader_deinit(kiln_locate_t* locate);
// The folders that come before the cache, with what was passed over.
kiln_status_t kilni_locate_loader_folders(kiln_locate_t* locate,
                                          kilni_dispatch_place_t** out_place);

// The path of a mapped object that is called `name`, by its file or its
// SONAME; NULL if there is none. Lives as long as the disk.
kiln_status_t kilni_locate_loaded_find(kiln_locate_t* locate, const char* name,
                                       const char** out_path);

// ---- Trust (locate_trust.c) ----

// NULL in `*out_why` if only root and the caller could have put the file there;
// else the reason. `path` has no links.
kiln_status_t kilni_locate_trust_check(kiln_locate_t* locate, const char* path,
                                       const char** out_why);

// NULL in `*out_why` if the RECORD of the package that the file belongs to has
// the hash of its contents; else the reason. `site` is the folder of wheels
// that was searched, whatever it is called; NULL: none but what the path names.
kiln_status_t kilni_locate_trust_record(kiln_locate_t* locate, const char* site,
                                        const char* path, const char* real,
                                        const char** out_why);

// ---- Search (locate_search.c) ----

// How a row is searched. thread-compatible
typedef struct kilni_locate_search_plan_t {
  const kiln_locate_entry_t* entry;
  uint32_t major;  // only what belongs to this CUDA major; 0: any
  // Only this root, of this scope and layout; NULL: every scope.
  const char* root;
  const char* via;
  uint32_t scope;
  uint32_t layout;
} kilni_locate_search_plan_t;

// Searches; the lock is held. The caller owns `*out_item`.
kiln_status_t kilni_locate_search(kiln_locate_t* locate,
                                  const kilni_locate_search_plan_t* plan,
                                  kiln_locate_item_t** out_item);
// The same, for every copy; `*inout_items` (of kiln_locate_item_t*) grows.
kiln_status_t kilni_locate_search_all(kiln_locate_t* locate,
                                      const kilni_locate_search_plan_t* plan,
                                      void** inout_items, size_t* inout_count,
                                      size_t* inout_capacity);

// True if something is named for a row: nothing else counts for it.
bool kilni_locate_override_is_set(const kiln_locate_t* locate,
                                  const kiln_locate_entry_t* entry);

// The row of that kind and name, or INVALID_ARGUMENT with the nearest names.
kiln_status_t kilni_locate_search_entry(uint32_t kind, const char* name,
                                        const kiln_locate_entry_t** out_entry);

#endif  // KILN_SRC_LOCATE_LOCATE_INSIDE_H_
