// SPDX-License-Identifier: Apache-2.0
//
// probe: the facts while they are collected; private to the module.
#ifndef KILN_SRC_PROBE_PROBE_SHEET_H_
#define KILN_SRC_PROBE_PROBE_SHEET_H_

#include <stdatomic.h>

#include "probe/probe.h"
#include "table/cuda_abi.h"
#include "table/table.h"

enum { KILNI_PROBE_MAX_ENTRIES = 65536, KILNI_PROBE_TEXT_BYTES = 64 << 10 };

// An array that grows. one-thread
typedef struct kilni_probe_list_t {
  void* items;
  size_t count;
  size_t capacity;
  size_t item_bytes;
} kilni_probe_list_t;

// A root as it is spelt, and the toolkit that it is. thread-compatible
typedef struct kilni_probe_root_t {
  const char* path;
  uint64_t device;
  uint64_t inode;
  size_t toolkit;
} kilni_probe_root_t;

// How software is installed here.
typedef enum kilni_probe_packages_t {
  KILNI_PROBE_PACKAGES_UNKNOWN = 0,
  KILNI_PROBE_PACKAGES_APT,
  KILNI_PROBE_PACKAGES_DNF,
  KILNI_PROBE_PACKAGES_ZYPPER,
  KILNI_PROBE_PACKAGES_PACMAN,
} kilni_probe_packages_t;

enum {
#define KILNI_CUDA_ATTRIBUTE(name, number, since, unit) \
  KILNI_PROBE_ATTRIBUTE_##name,
#include "table/cuda_attributes.inc"
#undef KILNI_CUDA_ATTRIBUTE
  KILNI_PROBE_ATTRIBUTES
};

// What a driver reported of a device. one-thread
typedef struct kilni_probe_told_t {
  int32_t values[KILNI_PROBE_ATTRIBUTES];
  uint8_t known[KILNI_PROBE_ATTRIBUTES];
} kilni_probe_told_t;

struct kiln_probe_t {
  const kiln_host_t* host;
  kilni_base_keep_t keep;
  atomic_uint references;
  kilni_probe_list_t texts;  // char*: every string of the facts
  kilni_probe_list_t devices;
  kilni_probe_list_t told;  // kilni_probe_told_t*: one for each device
  kilni_probe_list_t toolkits;
  kilni_probe_list_t libraries;
  kilni_probe_list_t variables;
  kilni_probe_list_t problems;
  kilni_probe_list_t pieces;
  kilni_probe_list_t roots;    // kilni_probe_root_t
  kilni_probe_list_t copies;   // of all components, concatenated
  kilni_probe_list_t items;    // kiln_toolkit_item_t*, kept
  kilni_probe_list_t located;  // kiln_locate_item_t*, kept
  kiln_compat_report_t* report;
  kiln_probe_system_t system;
  kiln_probe_cache_t cache;
  kiln_probe_store_t store;
  bool has_store;
  kilni_probe_packages_t packages;
  bool hermetic;  // the search heeds no variable
  kiln_probe_driver_t driver;
  kiln_probe_soft_t soft;
};

kiln_status_t kilni_probe_sheet_create(const kilni_probe_source_t* source,
                                       kiln_probe_t** out_probe);

// A zeroed item at the end of a list.
kiln_status_t kilni_probe_add(kiln_probe_t* probe, kilni_probe_list_t* list,
                              void** out_item);
// A copy of `text` (NULL is "") that lives as long as the facts.
kiln_status_t kilni_probe_text(kiln_probe_t* probe, const char* text,
                               const char** out_text);

// A variable as it counts for these facts: NULL where it is not set, or is one
// of the search and the search is hermetic. The user's folder and the system
// loader's path count always: the driver and the loader heed them.
const char* kilni_probe_variable_text(const kiln_probe_t* probe,
                                      kilni_base_env_id_t id);

// A text made as by printf.
kiln_status_t kilni_probe_textf(kiln_probe_t* probe, const char** out_text,
                                const char* format, ...) KILN_PRINTF(3, 4);

// Facts of the disk (probe_system.c, probe_cache.c).
kiln_status_t kilni_probe_collect_system(kiln_probe_t* probe,
                                         const kilni_probe_source_t* source);
kiln_status_t kilni_probe_collect_cache(kiln_probe_t* probe,
                                        const kilni_probe_source_t* source);

// The maximum of CUDA_CACHE_MAXSIZE (probe_cache.c explains it).
#define KILNI_PROBE_GREATEST_JIT_LIMIT (UINT64_C(4) << 30)

// True if the user may write into a folder or make it: into the nearest at or
// above `path` that is there. Shortens `path`.
bool kilni_probe_can_make(char* path);

// Kiln's own cache (probe_store.c).
kiln_status_t kilni_probe_collect_store(kiln_probe_t* probe,
                                        const kilni_probe_source_t* source);
kiln_status_t kilni_probe_doubt_store(kiln_probe_t* probe);

// Components, toolkits and their compatibility (probe_pieces.c,
// probe_toolkits.c).
kiln_status_t kilni_probe_collect_pieces(kiln_probe_t* probe,
                                         const kilni_probe_source_t* source);
// How what is taken fits together and to the driver.
kiln_status_t kilni_probe_check_pieces(kiln_probe_t* probe,
                                       const kilni_probe_source_t* source);
kiln_status_t kilni_probe_collect_toolkits(kiln_probe_t* probe);
// The toolkit that a root is, by how it is spelt; SIZE_MAX: none.
size_t kilni_probe_toolkit_of(const kiln_probe_t* probe, const char* root);
// The version in a root's version.json; "" without (probe_collect.c).
kiln_status_t kilni_probe_read_version(kiln_probe_t* probe, const char* root,
                                       char* version, size_t capacity);
// The component of that kind and name, or NULL; the copy that is taken, or
// NULL.
const kiln_probe_piece_t* kilni_probe_piece_find(const kiln_probe_t* probe,
                                                 uint32_t kind,
                                                 const char* name);
const kiln_probe_copy_t* kilni_probe_copy_taken(const kiln_probe_t* probe,
                                                uint32_t kind,
                                                const char* name);

// Problems (probe_problem.c and the files after it).
kiln_status_t kilni_probe_doubt_driver(kiln_probe_t* probe,
                                       const kilni_probe_source_t* source);
kiln_status_t kilni_probe_doubt_pieces(kiln_probe_t* probe,
                                       const kilni_probe_source_t* source);
kiln_status_t kilni_probe_doubt_folders(kiln_probe_t* probe);
kiln_status_t kilni_probe_doubt_fit(kiln_probe_t* probe);
kiln_status_t kilni_probe_add_problem(kiln_probe_t* probe, const char* id,
                                      uint32_t severity, const char* fix,
                                      const char* format, ...)
    KILN_PRINTF(5, 6);
// A path as one word of a shell, for a fix that is pasted: itself where nothing
// in it is special, else quoted in `out_word`. Cut to `capacity`, 4 at least.
const char* kilni_probe_shell_word(const char* path, size_t capacity,
                                   char* out_word);
kiln_status_t kilni_probe_find_problems(kiln_probe_t* probe,
                                        const kilni_probe_source_t* source);

// What the driver reports of a device besides its name: probe_attributes.c.
kiln_status_t kilni_probe_collect_attributes(kiln_probe_t* probe,
                                             const kiln_cuda_table_t* table,
                                             kiln_cu_device_t handle,
                                             kiln_probe_device_t* device);

#endif  // KILN_SRC_PROBE_PROBE_SHEET_H_
