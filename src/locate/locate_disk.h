// SPDX-License-Identifier: Apache-2.0
//
// locate: the disk, as a context has seen it so far.
//
// Private to the module. Asks the system about a path once and remembers the
// answer, and draws conclusions: below a folder that is not there is nothing,
// and what a folder that was listed does not name is not in it. It lists a
// folder once several questions about it came to nothing, and never one that
// may be huge (a root). Serialised by its owner.
#ifndef KILN_SRC_LOCATE_LOCATE_DISK_H_
#define KILN_SRC_LOCATE_LOCATE_DISK_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"
#include "locate/locate_store.h"

enum {
  KILNI_DISK_PATH_LIMIT = 8192,  // bytes of a path with its NUL
  KILNI_DISK_LIST_LIMIT = 4096,  // names of a folder that is listed
  // Failed queries in a folder before it is listed, and one more for so many
  // bytes that the folder's size exceeds a small one: a name costs about half
  // as much as a query.
  KILNI_DISK_PATIENCE = 2,
  KILNI_DISK_SMALL_FOLDER = 4096,
  KILNI_DISK_BYTES_PER_MISS = 64,
  KILNI_DISK_FOLDER_BUCKETS = 64,  // a power of two
};

// A path. one-thread
typedef struct kilni_locate_disk_node_t {
  struct kilni_locate_disk_node_t* next;  // in its bucket
  struct kilni_locate_disk_node_t*
      above;  // its folder; NULL: not asked for yet
  // The same folder by the name that it was first met by; NULL: none.
  struct kilni_locate_disk_node_t* twin;
  const char* path;
  const char* real;  // with links resolved; NULL: not asked yet
  // Hashes of the names in it by themselves, if `listed`; 0: a free place. A
  // name that shares its hash with one is asked about like any other.
  uint32_t* names;
  uint32_t name_mask;
  uint32_t length;
  uint32_t hash;
  uint32_t kind;  // KILNI_FILE_*, if `known`
  int error;      // errno of it
  uint32_t misses;
  uint32_t patience;  // of them before it is listed; 0: not known yet
  bool known;
  bool listed;
  bool suspect;   // something in it is missing: look at it before others
  bool hopeless;  // cannot be listed, or is too long
} kilni_locate_disk_node_t;

// All paths. one-thread
typedef struct kilni_locate_disk_t {
  kiln_allocator_t allocator;
  kilni_locate_store_t store;  // of all that was seen
  void* buckets;               // kilni_locate_disk_node_t*
  size_t bucket_count;
  size_t node_count;
  struct kilni_locate_disk_folder_t* folders[KILNI_DISK_FOLDER_BUCKETS];
} kilni_locate_disk_t;

void kilni_locate_disk_init(kilni_locate_disk_t* disk,
                            kiln_allocator_t allocator);
void kilni_locate_disk_deinit(
    kilni_locate_disk_t* disk);  // as if nothing was seen

// A copy of a text that lives as long as what was seen.
kiln_status_t kilni_locate_disk_text(kilni_locate_disk_t* disk,
                                     kiln_string_view_t text,
                                     const char** out_text);

// A folder. `root_length` bytes of its path are the folder above which nothing
// is asked and which is not listed; the whole length forbids all listing. The
// answer is in `known` and `kind`: if not `known`, it may be there.
kiln_status_t kilni_locate_disk_dir(kilni_locate_disk_t* disk,
                                    kiln_string_view_t path, size_t root_length,
                                    kilni_locate_disk_node_t** out_node);

// A path in a folder that kilni_locate_disk_dir gave. Known when it returns.
kiln_status_t kilni_locate_disk_file(kilni_locate_disk_t* disk,
                                     kilni_locate_disk_node_t* dir,
                                     kiln_string_view_t path,
                                     size_t root_length,
                                     kilni_locate_disk_node_t** out_node);

// Any path. Known when it returns.
kiln_status_t kilni_locate_disk_look(kilni_locate_disk_t* disk,
                                     const char* path,
                                     kilni_locate_disk_node_t** out_node);

// The path with links resolved; "" if it leads nowhere.
kiln_status_t kilni_locate_disk_real(kilni_locate_disk_t* disk,
                                     const char* path, const char** out_real);

// Why a path is not the file or the folder that it should be: words for the
// search log, in `buffer` or static.
const char* kilni_locate_disk_why(const kilni_locate_disk_node_t* node,
                                  bool wants_folder, size_t capacity,
                                  char* buffer);

#endif  // KILN_SRC_LOCATE_LOCATE_DISK_H_
