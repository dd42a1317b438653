// SPDX-License-Identifier: Apache-2.0
//
// cache: bytes by key, in memory and on disk.
//
// Expensive results are made once: by one thread of one process at a time, for
// this process and for all later ones of this user. The cache does not
// interpret its contents: a key is bytes, an entry is bytes.
//
//   kiln_cache_t* cache = NULL;
//   kiln_cache_entry_t* entry = NULL;
//   kiln_status_t status = kiln_cache_create(NULL, &cache);
//   if (kiln_status_is_ok(status)) {
//     kiln_cache_request_t request = kiln_cache_request_default();
//     request.key = key;
//     request.make = compile;  // called only on a miss
//     request.user = &source;
//     status = kiln_cache_get_or_make(cache, &request, &entry, NULL);
//   }
//
// A cache is never the cause of a failure. A folder that cannot be used
// (missing and impossible to create, not owned by this user, writable by
// others, read-only, full, broken) costs one line of level WARNING in the log,
// and the cache continues in memory; kiln_cache_disk_problem says why. An entry
// that is corrupt, cut short or foreign is a miss, counted and logged once.
// Only incorrect calls, lack of memory and a failing `make` are errors.
//
// After fork, every call in the child on a cache of the parent is
// INVALID_STATE, and a release does nothing.
#ifndef KILN_CACHE_H_
#define KILN_CACHE_H_

#include "kiln/allocator.h"
#include "kiln/log.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// Limits. A key, metadata or payload above them is LIMIT_EXCEEDED when it is
// stored, and a file that claims more is corrupt.
#define KILN_CACHE_MAX_KEY_BYTES      (UINT64_C(256) << 20)
#define KILN_CACHE_MAX_METADATA_BYTES (UINT64_C(256) << 20)
#define KILN_CACHE_MAX_PAYLOAD_BYTES  (UINT64_C(2) << 30)

enum {
  KILN_CACHE_KIND_BYTES = 16,  // of a key's kind, with its NUL
  KILN_CACHE_NAME_BYTES = 33,  // of an entry's name, with its NUL
};

// For `lock_wait_ms`: do not wait for another maker.
#define KILN_CACHE_NO_WAIT UINT32_MAX
// For a budget or an age: no limit.
#define KILN_CACHE_UNLIMITED UINT64_MAX

// A cache. thread-safe
//
// Reference-counted. Several of one process, and any number of processes, may
// use one folder.
typedef struct kiln_cache_t kiln_cache_t;

// How a cache works. thread-compatible
//
// Zero in any field is its default. Everything is copied.
typedef struct kiln_cache_options_t {
  uint32_t struct_size;  // sizeof(kiln_cache_options_t)

  // KILN_SWITCH_*: keep entries in memory. Default: on.
  uint32_t memory;

  // KILN_SWITCH_*: keep entries on disk. Default: the variable KILN_CACHE,
  // else on.
  uint32_t disk;

  // How long a caller waits for another thread or process that is making the
  // entry, before it makes it itself; KILN_CACHE_NO_WAIT: not at all. A dead
  // maker is not waited for. Default: 60000.
  uint32_t lock_wait_ms;

  // An absolute path; created, with its parents and mode 0700, when the first
  // entry is made (HOME itself is not). Symbolic links are followed; their
  // targets must belong to this user and not be writable by others. Default:
  // the variable KILN_CACHE_DIR, else `kiln` in XDG_CACHE_HOME, else
  // `.cache/kiln` in HOME, else memory only.
  const char* directory;

  // Bytes of entries that are kept in memory; the least recently used one is
  // dropped first. One that a caller has retained stays readable. Default: 128
  // MiB.
  uint64_t memory_bytes;

  // Bytes of files to which the folder is trimmed: by kiln_cache_trim, and
  // automatically while entries are stored, at most every ten minutes or after
  // each sixteenth of the budget. Default: the variable KILN_CACHE_MAX_BYTES,
  // else 2 GiB.
  uint64_t disk_bytes;

  // Seconds without use after which trimming removes an entry. Default: 90
  // days.
  uint64_t max_age_s;

  // Default: kiln_allocator_libc(). Must outlive the cache and its entries.
  const kiln_allocator_t* allocator;

  // Default: none.
  const kiln_log_sink_t* log;
} kiln_cache_options_t;

// All defaults. Since 0.1.
static inline kiln_cache_options_t kiln_cache_options_default(void) {
  kiln_cache_options_t options = {
      (uint32_t)sizeof(options), 0, 0, 0, NULL, 0, 0, 0, NULL, NULL};
  return options;
}

// Creates a cache. `options` may be NULL. Reads the environment; does not
// access the disk.
//
//   INVALID_ARGUMENT  an option out of its range, a path that is not absolute,
//                     a variable with an invalid value (it is
//                     named)
//   INCOMPATIBLE      options of a newer Kiln that set an unknown field
//   OUT_OF_MEMORY
//
// The caller owns `*out_cache`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_cache_create(
    const kiln_cache_options_t* options, kiln_cache_t** out_cache);

// Adds or releases a reference. NULL is accepted. Entries outlive their cache.
// Since 0.1.
KILN_API void kiln_cache_retain(kiln_cache_t* cache);
KILN_API void kiln_cache_release(kiln_cache_t* cache);

// The folder, whether or not it exists; "" for memory only. Borrowed. Since
// 0.1.
KILN_API const char* kiln_cache_directory(const kiln_cache_t* cache);

// Why the disk is not used, or not for everything, one line; "" as long as no
// problem is known. The first reason stays. Borrowed. Since 0.1.
KILN_API const char* kiln_cache_disk_problem(const kiln_cache_t* cache);

// ---- Entries ----

// The key of an entry. thread-compatible
//
// Two keys are equal if all three parts are. The full `bytes` are stored with
// the entry and compared; a hash only locates it.
typedef struct kiln_cache_key_t {
  const char* kind;         // a word of [a-z0-9_-], 1 to 15 bytes: "cubin"
  uint32_t version;         // of the format of `bytes`; incremented by the
                            // maker
  uint32_t reserved;        // 0
  kiln_bytes_view_t bytes;  // everything that can change the result
} kiln_cache_key_t;

// An entry. thread-safe
//
// Reference-counted and immutable: the bytes are in memory, verified, and stay
// there until the last reference is released, whatever happens to the file or
// to the cache.
typedef struct kiln_cache_entry_t kiln_cache_entry_t;

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_cache_entry_retain(kiln_cache_entry_t* entry);
KILN_API void kiln_cache_entry_release(kiln_cache_entry_t* entry);

// The payload, aligned to 64 bytes; the metadata stored with it; the key's
// bytes. Borrowed from the entry; empty for NULL. Since 0.1.
KILN_API kiln_bytes_view_t
kiln_cache_entry_payload(const kiln_cache_entry_t* entry);
KILN_API kiln_bytes_view_t
kiln_cache_entry_metadata(const kiln_cache_entry_t* entry);
KILN_API kiln_bytes_view_t
kiln_cache_entry_key(const kiln_cache_entry_t* entry);

// The kind and the version of its key; "" and 0 for NULL. Since 0.1.
KILN_API const char* kiln_cache_entry_kind(const kiln_cache_entry_t* entry);
KILN_API uint32_t kiln_cache_entry_version(const kiln_cache_entry_t* entry);

// Its name, 32 hexadecimal digits, by which `list` shows it; "" for NULL.
// Since 0.1.
KILN_API const char* kiln_cache_entry_name(const kiln_cache_entry_t* entry);

// When it was made, in seconds since 1970; 0 for NULL. Since 0.1.
KILN_API uint64_t kiln_cache_entry_created(const kiln_cache_entry_t* entry);

// ---- Get, put, make ----

// Where an entry came from.
enum {
  KILN_CACHE_FROM_NOWHERE = 0,  // there is none
  KILN_CACHE_FROM_MEMORY = 1,
  KILN_CACHE_FROM_DISK = 2,
  KILN_CACHE_FROM_OTHER = 3,  // another thread made it while this one waited
  KILN_CACHE_FROM_MAKE = 4,   // this call made it
};

// Looks an entry up. A miss is OK with `*out_entry` NULL. The caller owns
// `*out_entry`. INVALID_ARGUMENT, INVALID_STATE, OUT_OF_MEMORY. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_cache_get(kiln_cache_t* cache, const kiln_cache_key_t* key,
               kiln_cache_entry_t** out_entry);

// Stores an entry, in place of one with the same key. `out_entry` may be NULL;
// else the caller owns `*out_entry`. A disk that accepts nothing is not an
// error. INVALID_ARGUMENT, INVALID_STATE, LIMIT_EXCEEDED, OUT_OF_MEMORY. Since
// 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_cache_put(kiln_cache_t* cache, const kiln_cache_key_t* key,
               kiln_bytes_view_t metadata, kiln_bytes_view_t payload,
               kiln_cache_entry_t** out_entry);

// Removes an entry, wherever it is kept. A missing entry is OK.
// INVALID_ARGUMENT, INVALID_STATE. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_cache_remove(kiln_cache_t* cache, const kiln_cache_key_t* key);

// The result of `make`. one-thread
//
// Borrowed until kiln_cache_get_or_make returns, which copies.
typedef struct kiln_cache_output_t {
  kiln_bytes_view_t payload;
  kiln_bytes_view_t metadata;
  uint32_t store;     // KILN_SWITCH_OFF: for this caller only, do not store it
  uint32_t reserved;  // 0
} kiln_cache_output_t;

// Makes a missing entry. `out` is zeroed. kiln_cache_get_or_make returns any
// status other than OK; nothing is stored then. The only lock of the cache in
// effect is the file lock of this key, for which others wait a bounded time:
// the cache may be used, also for other keys.
typedef kiln_status_t (*kiln_cache_make_fn_t)(void* user,
                                              kiln_cache_output_t* out);

// Whether an entry that was found is still valid; false makes it again, in its
// place. For dependencies outside the key, such as files that were read. May be
// called more than once, and may use the cache as `make` may.
typedef bool (*kiln_cache_check_fn_t)(void* user,
                                      const kiln_cache_entry_t* entry);

// Polled while another thread or process makes the entry: true ends the wait,
// and the call is CANCELLED. May use the cache as `make` may.
typedef bool (*kiln_cache_cancelled_fn_t)(void* user);

// A request. thread-compatible
typedef struct kiln_cache_request_t {
  uint32_t struct_size;                 // sizeof(kiln_cache_request_t)
  uint32_t lock_wait_ms;                // as the cache's option; 0: use that
  kiln_cache_key_t key;                 // must be set
  kiln_cache_make_fn_t make;            // must be set
  kiln_cache_check_fn_t check;          // NULL: every entry is valid
  void* user;                           // of all of them
  kiln_cache_cancelled_fn_t cancelled;  // NULL: waits are never cancelled
} kiln_cache_request_t;

// All defaults. Since 0.1.
static inline kiln_cache_request_t kiln_cache_request_default(void) {
  kiln_cache_request_t request = {(uint32_t)sizeof(request),
                                  0,
                                  {NULL, 0, 0, {NULL, 0}},
                                  NULL,
                                  NULL,
                                  NULL,
                                  NULL};
  return request;
}

// Returns the entry of a key, and makes it if there is none. Of all threads and
// processes that request one key at the same time, one makes it and the others
// wait for it, each at most `lock_wait_ms`; then each makes the entry too. The
// entry is also made by each if the file system has no locks, and by a call
// from inside `make` for the key being made. After a failed `make`, one of the
// waiting callers tries next.
//
// `out_from` (KILN_CACHE_FROM_*) may be NULL. The caller owns `*out_entry`.
// INVALID_ARGUMENT, INVALID_STATE, LIMIT_EXCEEDED, CANCELLED, OUT_OF_MEMORY,
// and whatever `make` returns. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_cache_get_or_make(kiln_cache_t* cache, const kiln_cache_request_t* request,
                       kiln_cache_entry_t** out_entry, uint32_t* out_from);

// ---- Maintenance ----

// Counters, and the contents of memory. thread-compatible
//
// Since the cache was created, by this cache alone.
typedef struct kiln_cache_stats_t {
  uint64_t memory_hits;
  uint64_t disk_hits;
  uint64_t shared;  // another thread made it while a caller waited
  uint64_t misses;
  uint64_t stale;  // found, but rejected by `check`
  uint64_t made;
  uint64_t make_failures;
  uint64_t lock_waits;     // another maker was at work
  uint64_t lock_timeouts;  // and was not done in time
  uint64_t lock_absent;    // locks do not work there
  uint64_t corrupt;        // files with invalid contents
  uint64_t foreign;        // of another owner, byte order or format
  uint64_t collisions;     // of another key
  uint64_t read_failures;
  uint64_t stored;          // files written
  uint64_t store_failures;  // files that could not be written
  uint64_t disk_evicted;
  uint64_t memory_evicted;
  uint64_t memory_entries;
  uint64_t memory_used_bytes;
  uint64_t memory_limit_bytes;
  uint64_t disk_limit_bytes;
  uint64_t reserved[10];  // 0
} kiln_cache_stats_t;

// Since 0.1.
KILN_API void kiln_cache_stats(kiln_cache_t* cache,
                               kiln_cache_stats_t* out_stats);

// The state of a file in the folder.
enum {
  KILN_CACHE_STATE_GOOD = 0,
  KILN_CACHE_STATE_CORRUPT = 1,  // invalid or truncated
  KILN_CACHE_STATE_FOREIGN = 2,  // of another owner, byte order or format
  KILN_CACHE_STATE_ERROR = 3,    // unreadable
};

// A file of the folder. thread-compatible
//
// Borrowed until the callback returns.
typedef struct kiln_cache_item_t {
  const char* name;  // 32 hexadecimal digits
  const char* kind;  // of its key; "" if unknown
  uint32_t version;  // of its key
  uint32_t state;    // KILN_CACHE_STATE_*
  const char* why;   // what is wrong with it; ""
  uint64_t key_bytes;
  uint64_t metadata_bytes;
  uint64_t payload_bytes;
  uint64_t file_bytes;
  uint64_t created_s;  // seconds since 1970
  uint64_t used_s;     // the same, to an hour
} kiln_cache_item_t;

// Called for one file; false ends the walk. May use the cache.
typedef bool (*kiln_cache_item_fn_t)(void* user, const kiln_cache_item_t* item);

// What a walk over the folder found and did. thread-compatible
typedef struct kiln_cache_report_t {
  uint64_t entries;  // that exist now
  uint64_t bytes;    // of their files
  uint64_t bad;      // entries that are not GOOD, removed or not
  uint64_t removed;  // entries
  uint64_t freed_bytes;
  uint64_t temporaries;  // left by dead writers, and removed
  uint64_t failures;     // files that could not be read or removed
  uint64_t reserved[5];  // 0
} kiln_cache_report_t;

// How deep kiln_cache_walk looks and what it does.
enum {
  KILN_CACHE_WALK_VERIFY = 1,  // read each file in full; else its header only
  KILN_CACHE_WALK_REPAIR = 2,  // remove what is CORRUPT
  // Open no file: entries and bytes of the report only, and `fn` is not called.
  // Alone.
  KILN_CACHE_WALK_COUNT = 4,
};

// Visits the entries on disk, in the order of their names. `fn` and
// `out_report` may be NULL. A missing folder has no entries. INVALID_STATE,
// OUT_OF_MEMORY; IO_ERROR or PERMISSION_DENIED if the folder cannot be used.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_cache_walk(kiln_cache_t* cache, uint32_t flags, kiln_cache_item_fn_t fn,
                void* user, kiln_cache_report_t* out_report);

// Gets an entry by the name that kiln_cache_walk shows; OK with NULL if it does
// not exist or is not GOOD. Does not count as a use. The caller owns
// `*out_entry`. INVALID_ARGUMENT, INVALID_STATE, OUT_OF_MEMORY. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_cache_get_named(
    kiln_cache_t* cache, const char* name, kiln_cache_entry_t** out_entry);

// Trims the folder to its limits: removes entries that are too old, then the
// least recently used ones until the rest fits, and files of dead writers.
// Errors as kiln_cache_walk; `out_report` may be NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_cache_trim(kiln_cache_t* cache, kiln_cache_report_t* out_report);

// Removes every entry, from memory too. Errors as kiln_cache_walk;
// `out_report` may be NULL. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_cache_clear(kiln_cache_t* cache, kiln_cache_report_t* out_report);

KILN_EXTERN_C_END

#endif  // KILN_CACHE_H_
