// SPDX-License-Identifier: Apache-2.0
//
// locate: a search while it runs.
//
// Private to the module: locate_search.c and locate_ways.c share it.
#ifndef KILN_SRC_LOCATE_LOCATE_SEARCH_H_
#define KILN_SRC_LOCATE_LOCATE_SEARCH_H_

#include "locate/locate_inside.h"

enum { KILNI_SEARCH_MAX_GONE = 32 };

// Where every copy is put. one-thread
typedef struct kilni_locate_search_collect_t {
  void** items;  // kiln_locate_item_t*
  size_t* count;
  size_t* capacity;
} kilni_locate_search_collect_t;

// A search. one-thread
typedef struct kilni_locate_search_t {
  kiln_locate_t* locate;
  const kilni_locate_search_plan_t* plan;
  bool is_header;
  kilni_locate_found_t found;
  kilni_locate_trail_t trail;
  const char* warnings[KILNI_ITEM_MAX_WARNINGS];
  size_t warning_count;
  kilni_locate_search_collect_t*
      collect;  // NULL: the first find ends the search
  kiln_locate_item_t* const* items;
  size_t item_count;
  const char* gone[KILNI_SEARCH_MAX_GONE];  // roots that are not there
  size_t gone_count;
  kilni_locate_disk_node_t* root;  // that was asked about last; NULL: none yet
  char path[KILNI_DISK_PATH_LIMIT];
} kilni_locate_search_t;

// The place of a file that may be found. one-thread
typedef struct kilni_locate_search_where_t {
  const char* root;  // NULL: to be worked out from the file
  const char* via;
  const char* file_name;
  uint32_t scope;
  uint32_t layout;
  uint32_t major;
  uint32_t reserved;
  size_t listing;  // bytes of the path above which nothing is listed
} kilni_locate_search_where_t;

// Adds one sentence that lives as long as the disk; NULL is none.
void kilni_locate_search_warn(kilni_locate_search_t* search,
                              const char* warning);

bool kilni_locate_search_is_done(const kilni_locate_search_t* search);

// True if a file name may be in a folder of that major; `*out_major` follows
// from the two.
bool kilni_locate_search_wants_file(const kilni_locate_search_t* search,
                                    uint32_t index, uint32_t dir_major,
                                    uint32_t* out_major);

// Tries every file name in the folder whose path is the first `size` bytes of
// `search->path`, which are followed by a NUL.
kiln_status_t kilni_locate_search_folder(
    kilni_locate_search_t* search, const kilni_locate_search_where_t* where,
    size_t size);

// ---- The methods of searching (locate_ways.c) ----

kiln_status_t kilni_locate_search_override(kilni_locate_search_t* search);
kiln_status_t kilni_locate_search_loaded(kilni_locate_search_t* search);
kiln_status_t kilni_locate_search_product(kilni_locate_search_t* search);
kiln_status_t kilni_locate_search_loader(kilni_locate_search_t* search);
kiln_status_t kilni_locate_search_wheels(kilni_locate_search_t* search,
                                         const kilni_dispatch_place_t* place);
kiln_status_t kilni_locate_search_root(kilni_locate_search_t* search,
                                       uint32_t scope,
                                       const kilni_locate_root_t* root);

// A file that is known to be named: the loader's, or an override's.
kiln_status_t kilni_locate_search_take(kilni_locate_search_t* search,
                                       const kilni_locate_search_where_t* where,
                                       const char* file, const char* dir);

#endif  // KILN_SRC_LOCATE_LOCATE_SEARCH_H_
