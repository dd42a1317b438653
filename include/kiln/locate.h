// SPDX-License-Identifier: Apache-2.0
//
// locate: where the components of a CUDA toolkit are on this machine.
//
// Walks the disk and never opens a library: what it names exists; whether it
// works is checked when it is opened. The catalog (kiln/locate_catalog.h) lists
// what can be searched for; the search covers *scopes*, and inside a scope
// *roots*: folders managed by one package manager or one person.
#ifndef KILN_LOCATE_H_
#define KILN_LOCATE_H_

#include "kiln/allocator.h"
#include "kiln/locate_catalog.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// Where a thing was found.
enum {
  KILN_LOCATE_SCOPE_OVERRIDE = 1,      // named: an option or KILN_LOCATE_...
  KILN_LOCATE_SCOPE_ROOT = 2,          // a folder named in the options
  KILN_LOCATE_SCOPE_LOADED = 3,        // a library loaded in the process
  KILN_LOCATE_SCOPE_WHEEL = 4,         // a site-packages folder
  KILN_LOCATE_SCOPE_CONDA = 5,         // CONDA_PREFIX
  KILN_LOCATE_SCOPE_PRODUCT = 6,       // CUDNN_PATH, NCCL_HOME
  KILN_LOCATE_SCOPE_CUDA_PATH = 7,     // the variable
  KILN_LOCATE_SCOPE_CUDA_HOME = 8,     // the variable, where CUDA_PATH is unset
  KILN_LOCATE_SCOPE_LOADER = 9,        // where the system loader searches
  KILN_LOCATE_SCOPE_LOADER_ROOT = 10,  // the toolkit of the loader's cudart
  KILN_LOCATE_SCOPE_SYSTEM = 11,       // /usr/local/cuda*, /opt/cuda
  KILN_LOCATE_SCOPE_DISTRIBUTION = 12,  // packages of Debian, Fedora, ...
  KILN_LOCATE_SCOPE_HPC_SDK = 13,       // /opt/nvidia/hpc_sdk
  KILN_LOCATE_SCOPE_WSL = 14,           // /usr/lib/wsl/lib
};

// The bit of a scope in the masks of the options.
#define KILN_LOCATE_SCOPE_BIT(scope) (UINT32_C(1) << (scope))

// The word for a scope: "override", "root", "loaded", "wheel", "conda",
// "product", "CUDA_PATH", "CUDA_HOME", "loader", "loader-root", "system",
// "distribution", "hpc-sdk", "wsl"; "?" for an invalid value. Static. Since
// 0.1.
KILN_API const char* kiln_locate_scope_name(uint32_t scope);

// The scope for a word; 0 for an unknown word. Since 0.1.
KILN_API uint32_t kiln_locate_scope_parse(kiln_string_view_t word);

// An override: one item and its path. thread-compatible
typedef struct kiln_locate_override_t {
  uint32_t kind;      // KILN_LOCATE_KIND_*
  uint32_t reserved;  // 0
  const char* name;
  const char* path;  // absolute; a file, or the folder that contains it
} kiln_locate_override_t;

// The options of a search. thread-compatible
//
// Zero in any field is its default. Read during the call only.
typedef struct kiln_locate_options_t {
  uint32_t struct_size;  // sizeof(kiln_locate_options_t)

  // KILN_SWITCH_*: environment variables are ignored and, if `roots`, `sites`
  // or `pythons` name places and `require_scopes` is 0, only these places are
  // searched: what they lack is not found elsewhere. Libraries of the driver,
  // which are not part of a toolkit, are searched as usual. Default: off.
  uint32_t hermetic;

  // KILN_SWITCH_*: only files that no other user of this machine could have
  // written. Ignores variables, loaded libraries and RUNPATH; skips a file if
  // it or a folder above it is owned by neither root nor the caller, or is
  // writable by group or others; `path` is the resolved path. Default: off.
  uint32_t secure;

  // KILN_SWITCH_*: the scope `loaded`. Default: on, but off if `system_root` is
  // not "/".
  uint32_t loaded;

  // Masks of KILN_LOCATE_SCOPE_BIT. `require`: only these scopes are searched
  // (0: all). `prefer`: these come first, after `override`, in their usual
  // order. `forbid`: never searched; overrides the other two.
  uint32_t require_scopes;
  uint32_t prefer_scopes;
  uint32_t forbid_scopes;

  // The length of each list below.
  uint32_t root_count;
  uint32_t site_count;
  uint32_t python_count;
  uint32_t override_count;

  // KILN_SWITCH_*: a file in a site-packages folder counts only if the RECORD
  // of its package has its SHA-256. Reads the whole file. Default: off.
  uint32_t records;

  // Folders to search first: toolkits, prefixes, site-packages.
  const char* const* roots;

  // site-packages folders and Python programs (their folders are determined
  // without running them). If either list has an entry, the scope `wheel`
  // consists of these alone: the active environment is not searched.
  const char* const* sites;
  const char* const* pythons;

  // Take precedence over the variables KILN_LOCATE_...; an invalid one is an
  // error.
  const kiln_locate_override_t* overrides;

  // The root folder of the system, to search a mounted one. Default: "/".
  const char* system_root;

  // The target folder of the toolkit: "x86_64-linux", "sbsa-linux",
  // "aarch64-linux"; letters, digits, `_` and `-`, one `-` inside at least, 63
  // bytes at most. Default: this machine's.
  const char* target;

  // Default: kiln_allocator_libc(). Copied; must outlive the context.
  const kiln_allocator_t* allocator;
} kiln_locate_options_t;

// All defaults. Since 0.1.
static inline kiln_locate_options_t kiln_locate_options_default(void) {
  kiln_locate_options_t options = {(uint32_t)sizeof(options),
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   NULL,
                                   NULL,
                                   NULL,
                                   NULL,
                                   NULL,
                                   NULL,
                                   NULL};
  return options;
}

// A search configuration and its results. thread-safe
//
// Reference-counted. Each item is searched once; the answer stays until
// kiln_locate_refresh, for all threads; a search of one thread waits for that
// of another.
typedef struct kiln_locate_t kiln_locate_t;

// An item of the catalog, and the result of its search. thread-safe
//
// Reference-counted and immutable; has copies of everything. It does not retain
// its context.
typedef struct kiln_locate_item_t kiln_locate_item_t;

// A place that was searched without success. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_locate_tried_t {
  const char* path;
  const char* why;  // "no such folder"
} kiln_locate_tried_t;

// Creates a context; the environment is read now and never again. Does not
// access the disk. `options` may be NULL: all defaults.
//
//   INVALID_ARGUMENT  a path that is not absolute, a scope, a switch or a
//                     target that is invalid, more than 1024 entries in a list,
//                     an override of an item that is not in the catalog
//
// The caller owns `*out_locate`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_locate_create(
    const kiln_locate_options_t* options, kiln_locate_t** out_locate);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_locate_retain(kiln_locate_t* locate);
KILN_API void kiln_locate_release(kiln_locate_t* locate);

// Discards everything that was found, listed or read. Existing items do not
// change. Since 0.1.
KILN_API void kiln_locate_refresh(kiln_locate_t* locate);

// Searches for one item of the catalog.
//
// OK even if nothing is found: the item reports it. The order is
// cuda-pathfinder's, followed by the scopes it lacks:
//
//   libraries  override root loaded wheel conda loader product CUDA_PATH
//              (else CUDA_HOME) loader-root system distribution hpc-sdk
//   driver's   override loaded loader wsl distribution
//   others     override root wheel conda product CUDA_PATH (else CUDA_HOME)
//              loader-root system distribution hpc-sdk
//
// The working directory is never searched: relative paths in a variable are
// skipped, with a line in the search log.
//
//   INVALID_ARGUMENT  no such name in the catalog; the nearest are named
//   NOT_FOUND         an override that does not exist, with its variable; the
//                     search stops there
//
// The caller owns `*out_item`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_find(kiln_locate_t* locate, uint32_t kind, const char* name,
                 kiln_locate_item_t** out_item);

// The same in one root: that of `item`, e.g. the headers of the toolkit that a
// library belongs to. Searched again each time. INVALID_STATE if `item` was not
// found, and the errors of kiln_locate_find. The caller owns `*out_item`. Since
// 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_locate_find_beside(
    kiln_locate_t* locate, const kiln_locate_item_t* item, uint32_t kind,
    const char* name, kiln_locate_item_t** out_item);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_locate_item_retain(kiln_locate_item_t* item);
KILN_API void kiln_locate_item_release(kiln_locate_item_t* item);

// OK if it was found, else NOT_FOUND with the first places that were tried and
// how to get it. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_item_require(const kiln_locate_item_t* item);

// The row of the search, and whether it was found. Since 0.1.
KILN_API const kiln_locate_entry_t* kiln_locate_item_entry(
    const kiln_locate_item_t* item);
KILN_API bool kiln_locate_item_found(const kiln_locate_item_t* item);

// The file, or for a header the folder to pass to the compiler: as found (the
// name in packages and messages) and with all links resolved (its identity).
// `file` is the file itself, for a header too: the one that had to exist.
// Absolute, "" if not found. Borrowed. Since 0.1.
KILN_API const char* kiln_locate_item_path(const kiln_locate_item_t* item);
KILN_API const char* kiln_locate_item_real_path(const kiln_locate_item_t* item);
KILN_API const char* kiln_locate_item_file(const kiln_locate_item_t* item);

// The file name of the catalog that matched ("libnvrtc.so.13"), "" if not
// found, and the CUDA major in its name or folder, 0 if none. Borrowed. Since
// 0.1.
KILN_API const char* kiln_locate_item_file_name(const kiln_locate_item_t* item);
KILN_API uint32_t kiln_locate_item_major(const kiln_locate_item_t* item);

// Where it was found: KILN_LOCATE_SCOPE_* (0 if not found), the root inside the
// scope (the site-packages folder, the prefix, the toolkit), "" for none, and
// the source of the path ("LD_LIBRARY_PATH", "ld.so.cache", "CUDNN_PATH",
// "VIRTUAL_ENV", "KILN_LOCATE_LIB_NVRTC"), "" if the scope determines it.
// Borrowed. Since 0.1.
KILN_API uint32_t kiln_locate_item_scope(const kiln_locate_item_t* item);
KILN_API const char* kiln_locate_item_root(const kiln_locate_item_t* item);
KILN_API const char* kiln_locate_item_via(const kiln_locate_item_t* item);

enum { KILN_LOCATE_SHA256_BYTES = 32 };

// Size in bytes and SHA-256 of `file` as it is on the disk now, to compare with
// an earlier state or with a package's metadata. Reads the whole file every
// time. Both are zero on failure.
//
//   INVALID_STATE        the item was not found
//   NOT_FOUND            the file no longer exists
//   PERMISSION_DENIED, IO_ERROR, BAD_DATA  it cannot be read
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_item_sha256(const kiln_locate_item_t* item, uint64_t* out_size,
                        uint8_t out_sha256[KILN_LOCATE_SHA256_BYTES]);

// Notes for the user, one sentence each: for example, contradicting variables.
// Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_locate_item_warning_count(const kiln_locate_item_t* item);
KILN_API const char* kiln_locate_item_warning(const kiln_locate_item_t* item,
                                              uint32_t index);

// The places searched without success before it was found, in order. Borrowed;
// NULL out of range. Since 0.1.
KILN_API uint32_t kiln_locate_item_tried_count(const kiln_locate_item_t* item);
KILN_API const kiln_locate_tried_t* kiln_locate_item_tried(
    const kiln_locate_item_t* item, uint32_t index);

// One requested item of a set. thread-compatible
typedef struct kiln_locate_want_t {
  uint32_t kind;      // KILN_LOCATE_KIND_*
  uint32_t reserved;  // 0
  const char* name;   // its name in the catalog
} kiln_locate_want_t;

// Several items. thread-safe
//
// Reference-counted and immutable.
typedef struct kiln_locate_set_t kiln_locate_set_t;

// Every copy of an item in search order, first the one that kiln_locate_find
// returns; a file reachable by several paths once. If nothing is found, one
// item that reports it. Searched again each time. Errors as of
// kiln_locate_find. The caller owns `*out_set`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_find_all(kiln_locate_t* locate, uint32_t kind, const char* name,
                     kiln_locate_set_t** out_set);

// Searches all of `wants` in *one* root, and of one CUDA major: the first root
// that has them all, else the one with the largest number of them, with items
// not found for what is missing there. Nothing is taken from elsewhere, except
// overrides and the driver's libraries, which no toolkit contains. Scopes that
// consist of single folders (the loader's, CUDNN_PATH's) are not searched.
//
// `count` is 1 to 1024, else INVALID_ARGUMENT; the other errors are those of
// kiln_locate_find. OK even if something is missing: check
// kiln_locate_set_require. The caller owns `*out_set`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_find_set(kiln_locate_t* locate, const kiln_locate_want_t* wants,
                     uint32_t count, kiln_locate_set_t** out_set);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_locate_set_retain(kiln_locate_set_t* set);
KILN_API void kiln_locate_set_release(kiln_locate_set_t* set);

// OK if everything was found, else NOT_FOUND: what is missing, where, and
// which other roots lack what. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_set_require(const kiln_locate_set_t* set);

// The items, in the order of the wants; borrowed; NULL out of range. The number
// of items not found. The root of kiln_locate_find_set and its scope; "" and 0
// if no root has any of them and for kiln_locate_find_all. Since 0.1.
KILN_API uint32_t kiln_locate_set_count(const kiln_locate_set_t* set);
KILN_API kiln_locate_item_t* kiln_locate_set_item(const kiln_locate_set_t* set,
                                                  uint32_t index);
KILN_API uint32_t kiln_locate_set_missing_count(const kiln_locate_set_t* set);
KILN_API const char* kiln_locate_set_root(const kiln_locate_set_t* set);
KILN_API uint32_t kiln_locate_set_scope(const kiln_locate_set_t* set);

// The other roots that were considered, and what each lacks. Borrowed; NULL
// out of range. Since 0.1.
KILN_API uint32_t kiln_locate_set_tried_count(const kiln_locate_set_t* set);
KILN_API const kiln_locate_tried_t* kiln_locate_set_tried(
    const kiln_locate_set_t* set, uint32_t index);

KILN_EXTERN_C_END

#endif  // KILN_LOCATE_H_
