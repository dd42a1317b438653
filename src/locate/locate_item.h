// SPDX-License-Identifier: Apache-2.0
//
// locate: items and search logs while they are written.
//
// Private to the module: its files share it.
#ifndef KILN_SRC_LOCATE_LOCATE_ITEM_H_
#define KILN_SRC_LOCATE_LOCATE_ITEM_H_

#include "base/str.h"
#include "kiln/locate.h"

enum {
  KILNI_TRAIL_MAX_LINES = 8192,
  KILNI_TRAIL_MAX_BYTES = 4 << 20,
  KILNI_ITEM_MAX_WARNINGS = 8,
  KILNI_ITEM_LISTED = 12  // tried places that an error names
};

// How the folders of a root are laid out.
enum {
  KILNI_LAYOUT_ANY = 0,  // whatever it turns out to be
  KILNI_LAYOUT_FLAT = 1,
  KILNI_LAYOUT_WHEEL = 2,
  KILNI_LAYOUT_CONDA = 3,
  KILNI_LAYOUT_TOOLKIT = 4,
  KILNI_LAYOUT_PRODUCT = 5,
  KILNI_LAYOUT_DISTRIBUTION = 6,
  KILNI_LAYOUT_HPC_SDK = 7
};

// What was tried, in order. one-thread
//
// Adds beyond a limit are counted and dropped; a failed allocation is recorded
// and returned in the status.
typedef struct kilni_locate_trail_t {
  kiln_allocator_t allocator;
  kilni_base_str_t text;
  void* marks;  // uint32_t: where a path starts, where its reason does
  size_t count;
  size_t capacity;
  size_t dropped;
  kiln_status_t status;
} kilni_locate_trail_t;

void kilni_locate_trail_init(kilni_locate_trail_t* trail,
                             kiln_allocator_t allocator);
void kilni_locate_trail_deinit(kilni_locate_trail_t* trail);
void kilni_locate_trail_clear(kilni_locate_trail_t* trail);  // keeps its memory
void kilni_locate_trail_add(kilni_locate_trail_t* trail, const char* path,
                            const char* why);
void kilni_locate_trail_append(kilni_locate_trail_t* trail,
                               const kilni_locate_trail_t* lines);
// Bare, or OK.
kiln_status_t kilni_locate_trail_status(const kilni_locate_trail_t* trail);

// What an item will report; texts are borrowed. one-thread
typedef struct kilni_locate_found_t {
  const char* path;  // NULL: nothing was found
  const char* real;
  const char* file;
  const char* file_name;
  const char* root;
  const char* via;
  uint32_t scope;
  uint32_t major;
  uint32_t layout;  // KILNI_LAYOUT_* of `root`
  uint32_t reserved;
} kilni_locate_found_t;

struct kiln_locate_item_t;

kiln_status_t kilni_locate_item_create(kiln_allocator_t allocator,
                                       const kiln_locate_entry_t* entry,
                                       const kilni_locate_found_t* found,
                                       const char* const* warnings,
                                       size_t warning_count,
                                       const kilni_locate_trail_t* trail,
                                       kiln_locate_item_t** out_item);

// KILNI_LAYOUT_* of its root.
uint32_t kilni_locate_item_layout(const kiln_locate_item_t* item);

// The lines of a search log, concatenated into `block`, which has
// kilni_locate_trail_bytes bytes.
size_t kilni_locate_trail_bytes(const kilni_locate_trail_t* trail);
kiln_locate_tried_t* kilni_locate_trail_copy(const kilni_locate_trail_t* trail,
                                             void* block);

#endif  // KILN_SRC_LOCATE_LOCATE_ITEM_H_
