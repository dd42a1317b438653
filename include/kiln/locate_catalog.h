// SPDX-License-Identifier: Apache-2.0
//
// locate: the catalog of items to search for and their usual places.
//
// Constant data: nothing here touches a disk, allocates or fails. The search
// itself is in kiln/locate.h. `docs/reference/catalog.md` shows every row.
#ifndef KILN_LOCATE_CATALOG_H_
#define KILN_LOCATE_CATALOG_H_

#include "kiln/api.h"

KILN_EXTERN_C_BEGIN

// Kinds of rows.
enum {
  KILN_LOCATE_KIND_LIB = 1,      // a shared library
  KILN_LOCATE_KIND_HEADER = 2,   // a folder of headers
  KILN_LOCATE_KIND_STATIC = 3,   // a static library
  KILN_LOCATE_KIND_BITCODE = 4,  // a library of NVVM bitcode
  KILN_LOCATE_KIND_BINARY = 5,   // a program, or a file programs read
  KILN_LOCATE_KIND_STUB = 6,     // a library to link against, never to load
};

// The version that a row follows.
enum {
  KILN_LOCATE_CLASS_CTK = 1,     // the CUDA toolkit's
  KILN_LOCATE_CLASS_DRIVER = 2,  // the display driver's
  KILN_LOCATE_CLASS_OTHER = 3,   // its own
};

// Properties of a row; bits.
enum {
  // To be loaded with its own symbols before those of the process
  // (RTLD_DEEPBIND).
  KILN_LOCATE_FLAG_DEEPBIND = 1u << 0,
  // Works on Tegra only.
  KILN_LOCATE_FLAG_TEGRA = 1u << 1,
  // Must be an executable file.
  KILN_LOCATE_FLAG_EXECUTABLE = 1u << 2,
  // cuda-pathfinder 1.9 knows this name and kind.
  KILN_LOCATE_FLAG_PATHFINDER = 1u << 3,
};

// The lists of a row.
//
// Folders are relative, without "/" at either end. In them `{target}` is a
// toolkit's target folder (x86_64-linux, sbsa-linux, aarch64-linux) and
// `{multiarch}` for the system's triple (x86_64-linux-gnu); a `*` in the last
// part for any run of characters. Order is order of preference.
enum {
  // File names. For a header: the one that must exist, which may be in a
  // subfolder ("cuda/std/version").
  KILN_LOCATE_LIST_FILES = 0,
  // Below site-packages.
  KILN_LOCATE_LIST_WHEEL_DIRS = 1,
  // Below a toolkit's root (CUDA_PATH, /usr/local/cuda-13.0).
  KILN_LOCATE_LIST_TOOLKIT_DIRS = 2,
  // Below a conda prefix.
  KILN_LOCATE_LIST_CONDA_DIRS = 3,
  // Below the system's root: where distributions' packages put it.
  KILN_LOCATE_LIST_DISTRIBUTION_DIRS = 4,
  // Below one version of the HPC SDK (hpc_sdk/Linux_x86_64/25.1).
  KILN_LOCATE_LIST_HPC_SDK_DIRS = 5,
  // Environment variables that name a product's root, and the folders below.
  KILN_LOCATE_LIST_VARIABLES = 6,
  KILN_LOCATE_LIST_VARIABLE_DIRS = 7,
  // Libraries (names of kind LIB) to load before, in order: those that its
  // builds require (a file's own DT_NEEDED takes precedence), and those that it
  // opens itself when it needs them.
  KILN_LOCATE_LIST_NEEDS = 8,
  KILN_LOCATE_LIST_WANTS = 9,
  // Rows that share a tag must be of one toolkit line.
  KILN_LOCATE_LIST_TAGS = 10,
  // Words for known problems on loading that have a fix:
  //   nvrtc-builtins  some builds have no RUNPATH: load the sibling
  //                   libnvrtc-builtins.so.M.m of the same folder
  //   librt           needs librt.so.1 in the global scope before glibc 2.34
  KILN_LOCATE_LIST_WORKAROUNDS = 11,
  // Python distributions that own it, by normalised name.
  KILN_LOCATE_LIST_WHEELS = 12,
  // Packages of Debian that own it, if the name is unique.
  KILN_LOCATE_LIST_PACKAGES = 13,
  KILN_LOCATE_LIST_COUNT = 14,
};

// A row of the catalog. thread-safe
//
// Static: it lives as long as the library, and rows can be compared by address.
typedef struct kiln_locate_entry_t kiln_locate_entry_t;

// The words "lib", "header", "static", "bitcode", "binary", "stub" for a kind
// and "ctk", "driver", "other" for a class; "?" for an invalid value. Static.
// Since 0.1.
KILN_API const char* kiln_locate_kind_name(uint32_t kind);
KILN_API const char* kiln_locate_class_name(uint32_t class_value);

// The kind for a word, "bin" for binary too; 0 for an unknown word. Since 0.1.
KILN_API uint32_t kiln_locate_kind_parse(kiln_string_view_t word);

// The rows, sorted by kind and then by name as bytes. NULL out of range.
// Since 0.1.
KILN_API uint32_t kiln_locate_entry_count(void);
KILN_API const kiln_locate_entry_t* kiln_locate_entry(uint32_t index);

// The row of that name, NULL if there is none. Names are exact: the library is
// `nvJitLink`, the header set `nvjitlink`. Since 0.1.
KILN_API const kiln_locate_entry_t* kiln_locate_entry_find(uint32_t kind,
                                                           const char* name);
KILN_API const kiln_locate_entry_t* kiln_locate_entry_find_view(
    uint32_t kind, kiln_string_view_t name);

// The row of that kind that has `file_name` among its files ("libnvrtc.so.13");
// NULL if there is none. Since 0.1.
KILN_API const kiln_locate_entry_t* kiln_locate_entry_find_file(
    uint32_t kind, kiln_string_view_t file_name);

// The fields of a row. Every call accepts NULL and then returns 0 or "".
// `component` names the group of libraries that link with each other, "" for
// none; `index` is the row's place, for tables beside the catalog. Since 0.1.
KILN_API uint32_t kiln_locate_entry_index(const kiln_locate_entry_t* entry);
KILN_API uint32_t kiln_locate_entry_kind(const kiln_locate_entry_t* entry);
KILN_API uint32_t kiln_locate_entry_class(const kiln_locate_entry_t* entry);
KILN_API uint32_t kiln_locate_entry_flags(const kiln_locate_entry_t* entry);
KILN_API const char* kiln_locate_entry_name(const kiln_locate_entry_t* entry);
KILN_API const char* kiln_locate_entry_summary(
    const kiln_locate_entry_t* entry);
KILN_API const char* kiln_locate_entry_component(
    const kiln_locate_entry_t* entry);

// A list of a row: its length, an item's text (NULL out of range), and the CUDA
// major that the item belongs to (0: any, or unknown). Since 0.1.
KILN_API uint32_t kiln_locate_entry_list_count(const kiln_locate_entry_t* entry,
                                               uint32_t list);
KILN_API const char* kiln_locate_entry_list_text(
    const kiln_locate_entry_t* entry, uint32_t list, uint32_t index);
KILN_API uint32_t kiln_locate_entry_list_major(const kiln_locate_entry_t* entry,
                                               uint32_t list, uint32_t index);

// The word for a list ("files", "wheel_dirs"); "?" for none. Since 0.1.
KILN_API const char* kiln_locate_list_name(uint32_t list);

// A published wheel that is known to be broken. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_locate_flaw_t {
  const char* id;            // stable word: "nvrtc-13.0-runpath"
  const char* distribution;  // normalised name
  const char* versions;      // PEP 440: "==13.0.*"
  const char* file;          // the file's name; "" for the whole wheel
  const char* what;          // one sentence
  const char* mend;          // one sentence
} kiln_locate_flaw_t;

// The known-broken wheels; all NULL out of range. Since 0.1.
KILN_API uint32_t kiln_locate_flaw_count(void);
KILN_API kiln_locate_flaw_t kiln_locate_flaw(uint32_t index);

KILN_EXTERN_C_END

#endif  // KILN_LOCATE_CATALOG_H_
