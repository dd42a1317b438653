// SPDX-License-Identifier: Apache-2.0
//
// locate: the catalog's accessors.
//
// The tables are written by tools/gen_catalog.py. They contain offsets, not
// pointers: the loader has nothing to relocate, and the pages stay shared.
#include <string.h>

#include "kiln/locate_catalog.h"

// An item of a list: its text and the CUDA major it belongs to.
typedef struct item_t {
  uint16_t text;
  uint16_t major;
} item_t;

struct kiln_locate_entry_t {
  uint16_t name;
  uint16_t summary;
  uint16_t component;
  uint8_t kind;
  uint8_t class_value;
  uint16_t flags;
  uint16_t first[KILN_LOCATE_LIST_COUNT];
  uint8_t count[KILN_LOCATE_LIST_COUNT];
};

typedef struct flaw_t {
  uint16_t id, distribution, versions, file, what, mend;
} flaw_t;

// A file name of a kind and the row that has it, sorted by both.
typedef struct file_t {
  uint16_t text;
  uint8_t kind;
  uint8_t row;
} file_t;

// Defines kPool, kItems, kEntries, kFiles, kFlaws and kPast[kind], the index
// after the last row of a kind (of kind 0: 0).
#include "locate/locate_catalog_gen.inc"

enum {
  ENTRY_COUNT = sizeof(kEntries) / sizeof(kEntries[0]),
  FILE_COUNT = sizeof(kFiles) / sizeof(kFiles[0]),
  FLAW_COUNT = sizeof(kFlaws) / sizeof(kFlaws[0]),
  KIND_LAST = KILN_LOCATE_KIND_STUB,
};

_Static_assert(sizeof(kPool) <= UINT16_MAX, "offsets are 16 bits");
_Static_assert(ENTRY_COUNT <= UINT8_MAX, "rows of files are 8 bits");

static const char* pool_text(uint16_t offset) {
  return (const char*)&kPool + offset;
}

// As strcmp, with a view on the left.
static int view_compare(kiln_string_view_t view, const char* text) {
  size_t size = strlen(text);
  size_t common = view.size < size ? view.size : size;
  int order = common == 0 ? 0 : memcmp(view.data, text, common);
  if (order != 0) return order;
  return view.size < size ? -1 : view.size > size;
}

const char* kiln_locate_kind_name(uint32_t kind) {
  static const char kNames[][8] = {"?",       "lib",    "header", "static",
                                   "bitcode", "binary", "stub"};
  return kNames[kind <= KIND_LAST ? kind : 0];
}

const char* kiln_locate_class_name(uint32_t class_value) {
  static const char kNames[][8] = {"?", "ctk", "driver", "other"};
  return kNames[class_value <= KILN_LOCATE_CLASS_OTHER ? class_value : 0];
}

uint32_t kiln_locate_kind_parse(kiln_string_view_t word) {
  for (uint32_t kind = 1; kind <= KIND_LAST; kind++) {
    if (view_compare(word, kiln_locate_kind_name(kind)) == 0) return kind;
  }
  return view_compare(word, "bin") == 0 ? KILN_LOCATE_KIND_BINARY : 0;
}

uint32_t kiln_locate_entry_count(void) {
  return ENTRY_COUNT;
}

const kiln_locate_entry_t* kiln_locate_entry(uint32_t index) {
  return index < ENTRY_COUNT ? &kEntries[index] : NULL;
}

const kiln_locate_entry_t* kiln_locate_entry_find_view(
    uint32_t kind, kiln_string_view_t name) {
  if (kind == 0 || kind > KIND_LAST) return NULL;
  uint32_t low = kPast[kind - 1];
  uint32_t high = kPast[kind];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = view_compare(name, pool_text(kEntries[middle].name));
    if (order == 0) return &kEntries[middle];
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return NULL;
}

const kiln_locate_entry_t* kiln_locate_entry_find(uint32_t kind,
                                                  const char* name) {
  if (name == NULL) return NULL;
  kiln_string_view_t view = {name, strlen(name)};
  return kiln_locate_entry_find_view(kind, view);
}

const kiln_locate_entry_t* kiln_locate_entry_find_file(
    uint32_t kind, kiln_string_view_t file_name) {
  uint32_t low = 0;
  uint32_t high = FILE_COUNT;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const file_t* file = &kFiles[middle];
    int order = (kind > file->kind) - (kind < file->kind);
    if (order == 0) order = view_compare(file_name, pool_text(file->text));
    if (order == 0) return &kEntries[file->row];
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return NULL;
}

uint32_t kiln_locate_entry_index(const kiln_locate_entry_t* entry) {
  return entry == NULL ? 0 : (uint32_t)(entry - kEntries);
}

uint32_t kiln_locate_entry_kind(const kiln_locate_entry_t* entry) {
  return entry == NULL ? 0 : entry->kind;
}

uint32_t kiln_locate_entry_class(const kiln_locate_entry_t* entry) {
  return entry == NULL ? 0 : entry->class_value;
}

uint32_t kiln_locate_entry_flags(const kiln_locate_entry_t* entry) {
  return entry == NULL ? 0 : entry->flags;
}

const char* kiln_locate_entry_name(const kiln_locate_entry_t* entry) {
  return entry == NULL ? "" : pool_text(entry->name);
}

const char* kiln_locate_entry_summary(const kiln_locate_entry_t* entry) {
  return entry == NULL ? "" : pool_text(entry->summary);
}

const char* kiln_locate_entry_component(const kiln_locate_entry_t* entry) {
  return entry == NULL ? "" : pool_text(entry->component);
}

static const item_t* list_item(const kiln_locate_entry_t* entry, uint32_t list,
                               uint32_t index) {
  if (entry == NULL || list >= KILN_LOCATE_LIST_COUNT) return NULL;
  if (index >= entry->count[list]) return NULL;
  return &kItems[entry->first[list] + index];
}

uint32_t kiln_locate_entry_list_count(const kiln_locate_entry_t* entry,
                                      uint32_t list) {
  if (entry == NULL || list >= KILN_LOCATE_LIST_COUNT) return 0;
  return entry->count[list];
}

const char* kiln_locate_entry_list_text(const kiln_locate_entry_t* entry,
                                        uint32_t list, uint32_t index) {
  const item_t* item = list_item(entry, list, index);
  return item == NULL ? NULL : pool_text(item->text);
}

uint32_t kiln_locate_entry_list_major(const kiln_locate_entry_t* entry,
                                      uint32_t list, uint32_t index) {
  const item_t* item = list_item(entry, list, index);
  return item == NULL ? 0 : item->major;
}

const char* kiln_locate_list_name(uint32_t list) {
  static const char kNames[][20] = {"files",
                                    "wheel_dirs",
                                    "toolkit_dirs",
                                    "conda_dirs",
                                    "distribution_dirs",
                                    "hpc_sdk_dirs",
                                    "variables",
                                    "variable_dirs",
                                    "needs",
                                    "wants",
                                    "tags",
                                    "workarounds",
                                    "wheels",
                                    "packages"};
  return list < KILN_LOCATE_LIST_COUNT ? kNames[list] : "?";
}

uint32_t kiln_locate_flaw_count(void) {
  return FLAW_COUNT;
}

kiln_locate_flaw_t kiln_locate_flaw(uint32_t index) {
  kiln_locate_flaw_t flaw = {NULL, NULL, NULL, NULL, NULL, NULL};
  if (index >= FLAW_COUNT) return flaw;
  const flaw_t* row = &kFlaws[index];
  flaw.id = pool_text(row->id);
  flaw.distribution = pool_text(row->distribution);
  flaw.versions = pool_text(row->versions);
  flaw.file = pool_text(row->file);
  flaw.what = pool_text(row->what);
  flaw.mend = pool_text(row->mend);
  return flaw;
}
