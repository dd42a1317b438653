// SPDX-License-Identifier: Apache-2.0
//
// locate: where the pieces of a CUDA toolkit are on this machine.
//
// Walks the disk and never opens a library: what it names exists, whether it
// works is for the one who opens it. What can be looked for is the catalog
// (kiln/locate_catalog.h); where it is looked for are *scopes*, and inside a
// scope *roots*: folders that one package manager or one person filled.
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
  KILN_LOCATE_SCOPE_LOADED = 3,        // a library that is in the process
  KILN_LOCATE_SCOPE_WHEEL = 4,         // a site-packages folder
  KILN_LOCATE_SCOPE_CONDA = 5,         // CONDA_PREFIX
  KILN_LOCATE_SCOPE_PRODUCT = 6,       // CUDNN_PATH, NCCL_HOME
  KILN_LOCATE_SCOPE_CUDA_PATH = 7,     // the variable
  KILN_LOCATE_SCOPE_CUDA_HOME = 8,     // the variable, where CUDA_PATH is unset
  KILN_LOCATE_SCOPE_LOADER = 9,        // where the system loader would look
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
// "distribution", "hpc-sdk", "wsl"; "?" for a value that is none. Static.
// Since 0.1.
KILN_API const char* kiln_locate_scope_name(uint32_t scope);

// The scope for a word; 0 for a word that is none. Since 0.1.
KILN_API uint32_t kiln_locate_scope_parse(kiln_string_view_t word);

// One thing to take from one place. thread-compatible
typedef struct kiln_locate_override_t {
  uint32_t kind;      // KILN_LOCATE_KIND_*
  uint32_t reserved;  // 0
  const char* name;
  const char* path;  // absolute; a file, or the folder it lies in
} kiln_locate_override_t;

// How a search is made. thread-compatible
//
// Zero in any field is its default. Read during the call only.
typedef struct kiln_locate_options_t {
  uint32_t struct_size;  // sizeof(kiln_locate_options_t)

  // KILN_SWITCH_*: no environment variable counts and, if `roots`, `sites` or
  // `pythons` name places and `require_scopes` none, nothing but these places:
  // what they lack is not found elsewhere. Libraries of the driver, which are
  // in no toolkit, are looked for as ever. Default: off.
  uint32_t hermetic;

  // KILN_SWITCH_*: only what nobody else on this machine could have put there.
  // No variable counts, nothing of the process (loaded libraries, RUNPATH)
  // either; a file or a folder above it that neither root nor the caller owns,
  // or that group or others may write, is passed over; `path` is the resolved
  // path. Default: off.
  uint32_t secure;

  // KILN_SWITCH_*: the scope `loaded`. Default: on, but off where
  // `system_root` is another than "/".
  uint32_t loaded;

  // Masks of KILN_LOCATE_SCOPE_BIT. `require`: no other scope is looked at
  // (0: all are). `prefer`: these come first, after `override`, in their usual
  // order. `forbid`: never looked at; wins over the other two.
  uint32_t require_scopes;
  uint32_t prefer_scopes;
  uint32_t forbid_scopes;

  // How many there are of each list below.
  uint32_t root_count;
  uint32_t site_count;
  uint32_t python_count;
  uint32_t override_count;

  // KILN_SWITCH_*: a file in a site-packages folder counts only if the RECORD
  // of its package has the SHA-256 of what it holds. Reads the whole file.
  // Default: off.
  uint32_t records;

  // Folders that are looked at first: toolkits, prefixes, site-packages.
  const char* const* roots;

  // site-packages folders and Python programs (whose folders are worked out
  // without running them). If there is one of either, they are all of the
  // scope `wheel`: the active environment is not looked at.
  const char* const* sites;
  const char* const* pythons;

  // Stronger than the variables KILN_LOCATE_...; a wrong one is an error.
  const kiln_locate_override_t* overrides;

  // The folder under which the system lies, to search a mounted one.
  // Default: "/".
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

// A way of searching and all it has found. thread-safe
//
// Reference-counted. Every thing is searched once; the answer stays until
// kiln_locate_refresh, however often and from however many threads it is
// asked for; a search of one thread waits for that of another.
typedef struct kiln_locate_t kiln_locate_t;

// What was looked for, and what came of it. thread-safe
//
// Reference-counted and immutable; holds copies of everything. It does not
// keep its context.
typedef struct kiln_locate_item_t kiln_locate_item_t;

// A place that was looked at and gave nothing. thread-safe
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_locate_tried_t {
  const char* path;
  const char* why;  // "no such folder"
} kiln_locate_tried_t;

// Makes a context; the environment is read now and never again. Touches no
// disk. `options` may be NULL: all defaults.
//
//   INVALID_ARGUMENT  a path that is not absolute, a scope, a switch or a
//                     target that is none, more than 1024 entries in a list, an
//                     override of a thing that is not in the catalog
//
// The caller owns `*out_locate`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_locate_create(
    const kiln_locate_options_t* options, kiln_locate_t** out_locate);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_locate_retain(kiln_locate_t* locate);
KILN_API void kiln_locate_release(kiln_locate_t* locate);

// Forgets everything that was found, listed or read. Items that were handed
// out stay as they are. Since 0.1.
KILN_API void kiln_locate_refresh(kiln_locate_t* locate);

// Searches one thing of the catalog.
//
// OK also where nothing is there: the item says so. The order, which is
// cuda-pathfinder's with the scopes it lacks behind:
//
//   libraries  override root loaded wheel conda loader product CUDA_PATH
//              (else CUDA_HOME) loader-root system distribution hpc-sdk
//   driver's   override loaded loader wsl distribution
//   others     override root wheel conda product CUDA_PATH (else CUDA_HOME)
//              loader-root system distribution hpc-sdk
//
// The working directory is searched in no mode: what is not absolute in a
// variable is passed over, with a line in the trail.
//
//   INVALID_ARGUMENT  no such name in the catalog; the nearest are named
//   NOT_FOUND         an override that leads nowhere, with its variable; the
//                     search does not go on behind one
//
// The caller owns `*out_item`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_find(kiln_locate_t* locate, uint32_t kind, const char* name,
                 kiln_locate_item_t** out_item);

// The same in one root: that of `item`, e.g. the headers of the toolkit that a
// library belongs to. Searched anew each time. INVALID_STATE where `item` was
// not found, and the errors of kiln_locate_find. The caller owns `*out_item`.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_locate_find_beside(
    kiln_locate_t* locate, const kiln_locate_item_t* item, uint32_t kind,
    const char* name, kiln_locate_item_t** out_item);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_locate_item_retain(kiln_locate_item_t* item);
KILN_API void kiln_locate_item_release(kiln_locate_item_t* item);

// OK if it was found, else NOT_FOUND with the first of what was tried and how
// to get it. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_item_require(const kiln_locate_item_t* item);

// What was looked for, and whether it is there. Since 0.1.
KILN_API const kiln_locate_entry_t* kiln_locate_item_entry(
    const kiln_locate_item_t* item);
KILN_API bool kiln_locate_item_found(const kiln_locate_item_t* item);

// The file, or of a header the folder to give to the compiler: as it was found
// (what packages and messages call it) and with all links resolved (what it
// is). `file` is the file itself, of a header too: that which had to be there.
// Absolute, "" where it was not found. Borrowed. Since 0.1.
KILN_API const char* kiln_locate_item_path(const kiln_locate_item_t* item);
KILN_API const char* kiln_locate_item_real_path(const kiln_locate_item_t* item);
KILN_API const char* kiln_locate_item_file(const kiln_locate_item_t* item);

// The file name of the catalog that matched ("libnvrtc.so.13"), "" where it was
// not found, and the CUDA major that its name or folder tells, 0 where they
// tell none. Borrowed. Since 0.1.
KILN_API const char* kiln_locate_item_file_name(const kiln_locate_item_t* item);
KILN_API uint32_t kiln_locate_item_major(const kiln_locate_item_t* item);

// Where it was found: KILN_LOCATE_SCOPE_* (0 where it was not), the root
// inside the scope (the site-packages folder, the prefix, the toolkit), "" for
// what belongs to none, and which way led there ("LD_LIBRARY_PATH",
// "ld.so.cache", "CUDNN_PATH", "VIRTUAL_ENV", "KILN_LOCATE_LIB_NVRTC"), ""
// where the scope says it all. Borrowed. Since 0.1.
KILN_API uint32_t kiln_locate_item_scope(const kiln_locate_item_t* item);
KILN_API const char* kiln_locate_item_root(const kiln_locate_item_t* item);
KILN_API const char* kiln_locate_item_via(const kiln_locate_item_t* item);

enum { KILN_LOCATE_SHA256_BYTES = 32 };

// Size in bytes and SHA-256 of `file` as it is on the disk now, to hold it
// against what was there before or what a package says of it. Reads all of it,
// every time. Both are zero on failure.
//
//   INVALID_STATE        the item was not found
//   NOT_FOUND            the file is not there any more
//   PERMISSION_DENIED, IO_ERROR, BAD_DATA  it cannot be read
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_item_sha256(const kiln_locate_item_t* item, uint64_t* out_size,
                        uint8_t out_sha256[KILN_LOCATE_SHA256_BYTES]);

// What the user should know, one sentence each: two variables that
// contradict each other. Borrowed; NULL out of range. Since 0.1.
KILN_API uint32_t
kiln_locate_item_warning_count(const kiln_locate_item_t* item);
KILN_API const char* kiln_locate_item_warning(const kiln_locate_item_t* item,
                                              uint32_t index);

// What was looked at in vain before it was found, in order. Borrowed; NULL
// out of range. Since 0.1.
KILN_API uint32_t kiln_locate_item_tried_count(const kiln_locate_item_t* item);
KILN_API const kiln_locate_tried_t* kiln_locate_item_tried(
    const kiln_locate_item_t* item, uint32_t index);

// One thing that a set shall hold. thread-compatible
typedef struct kiln_locate_want_t {
  uint32_t kind;      // KILN_LOCATE_KIND_*
  uint32_t reserved;  // 0
  const char* name;   // as the catalog has it
} kiln_locate_want_t;

// Several items. thread-safe
//
// Reference-counted and immutable.
typedef struct kiln_locate_set_t kiln_locate_set_t;

// Every copy of a thing that the search would meet, first the one that
// kiln_locate_find gives; a file that several ways lead to once. Of nothing
// found, one item that says so. Searched anew each time. Errors as of
// kiln_locate_find. The caller owns `*out_set`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_find_all(kiln_locate_t* locate, uint32_t kind, const char* name,
                     kiln_locate_set_t** out_set);

// Searches all of `wants` in *one* root, and of one CUDA major: the first root
// that has them all, else the one that has most, with items not found for what
// is missing there. Nothing is taken from elsewhere, but for what overrides
// name and the driver's libraries, which no toolkit has. What several scopes
// have in one folder only (the loader's, CUDNN_PATH's) is not looked at.
//
// `count` is 1 to 1024, else INVALID_ARGUMENT; the other errors are those of
// kiln_locate_find. OK also where something is missing:
// kiln_locate_set_require tells. The caller owns `*out_set`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_find_set(kiln_locate_t* locate, const kiln_locate_want_t* wants,
                     uint32_t count, kiln_locate_set_t** out_set);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_locate_set_retain(kiln_locate_set_t* set);
KILN_API void kiln_locate_set_release(kiln_locate_set_t* set);

// OK if everything was found, else NOT_FOUND: what is missing, where, and
// which other roots lack what. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_locate_set_require(const kiln_locate_set_t* set);

// The items, in the order of the wants; borrowed; NULL out of range. How many
// of them were not found. The root of kiln_locate_find_set and its scope; ""
// and 0 where no root has any of it and for kiln_locate_find_all. Since 0.1.
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
