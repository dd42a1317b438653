// SPDX-License-Identifier: Apache-2.0
//
// cache: what its files share.
#ifndef KILN_SRC_CACHE_CACHE_INSIDE_H_
#define KILN_SRC_CACHE_CACHE_INSIDE_H_

#include <stdatomic.h>

#include "base/folder.h"
#include "base/thread.h"
#include "kiln/cache.h"
#include "kiln/log.h"

// ---- Hashes (cache_hash.c) ----

// 128 bits, the same bytes on every machine.
typedef struct kilni_cache_hash_t {
  uint8_t bytes[16];
} kilni_cache_hash_t;

kilni_cache_hash_t kilni_cache_hash(const void* data, size_t size);
// Of all three parts of a key.
kilni_cache_hash_t kilni_cache_key_hash(const kiln_cache_key_t* key);
void kilni_cache_hash_text(const kilni_cache_hash_t* hash,
                           char out_text[KILN_CACHE_NAME_BYTES]);

// ---- The format (cache_format.c) ----
//
// One block of bytes, the same in memory and on disk: head, key, metadata,
// payload, and the hash of all before it.

enum { KILNI_CACHE_HEAD_BYTES = 112, KILNI_CACHE_PAYLOAD_ALIGN = 64 };

// The places of the parts of an image. thread-compatible
typedef struct kilni_cache_layout_t {
  size_t key_at, key_bytes;
  size_t metadata_at, metadata_bytes;
  size_t payload_at, payload_bytes;
  size_t hash_at;
  size_t total;
  uint64_t created_s;
  uint32_t version;
  kilni_cache_hash_t key_hash;
  char kind[KILN_CACHE_KIND_BYTES];
} kilni_cache_layout_t;

// LIMIT_EXCEEDED for parts that are too long.
kiln_status_t kilni_cache_layout_make(const kiln_cache_key_t* key,
                                      kiln_bytes_view_t metadata,
                                      kiln_bytes_view_t payload,
                                      uint64_t created_s,
                                      kilni_cache_layout_t* out_layout);
// Writes an image of `layout->total` bytes, zeroed before.
void kilni_cache_image_write(const kilni_cache_layout_t* layout,
                             const kiln_cache_key_t* key,
                             kiln_bytes_view_t metadata,
                             kiln_bytes_view_t payload, uint8_t* image);

// Reads a head of a file of `file_bytes`: KILN_CACHE_STATE_*, and for other
// than GOOD why. `size` is what of the file is there.
uint32_t kilni_cache_head_read(const uint8_t* head, size_t size,
                               uint64_t file_bytes,
                               kilni_cache_layout_t* out_layout,
                               const char** out_why);
// Checks a whole image whose header has been read.
uint32_t kilni_cache_image_check(const uint8_t* image,
                                 const kilni_cache_layout_t* layout,
                                 const char** out_why);

// ---- Entries (cache_entry.c) ----

struct kiln_cache_entry_t {
  atomic_uint_fast32_t references;
  kiln_allocator_t allocator;
  uint64_t process_id;
  kilni_cache_layout_t layout;
  kilni_cache_hash_t hash;  // of the key
  char name[KILN_CACHE_NAME_BYTES];
  uint8_t* image;  // aligned to KILNI_CACHE_PAYLOAD_ALIGN
  // Of the memory that holds it, under its lock.
  kiln_cache_entry_t* chain;
  kiln_cache_entry_t* older;
  kiln_cache_entry_t* newer;
  // When the file was last marked as used, in seconds; 0: never by us.
  atomic_int_fast64_t marked_s;
};

// An entry with space for an image of `layout`, still zero.
kiln_status_t kilni_cache_entry_create(kiln_allocator_t allocator,
                                       const kilni_cache_layout_t* layout,
                                       kiln_cache_entry_t** out_entry);
bool kilni_cache_entry_has_key(const kiln_cache_entry_t* entry,
                               const kilni_cache_hash_t* hash,
                               const kiln_cache_key_t* key);

// ---- Memory (cache_memory.c) ----

// Entries by key, the least recently used evicted first. Under the lock of its
// user.
typedef struct kilni_cache_memory_t {
  kiln_allocator_t allocator;
  uint64_t limit_bytes;  // 0: keeps nothing
  uint64_t used_bytes;
  uint64_t count;
  uint64_t evicted;
  kiln_cache_entry_t** buckets;
  size_t bucket_count;  // a power of two, or 0
  kiln_cache_entry_t* newest;
  kiln_cache_entry_t* oldest;
} kilni_cache_memory_t;

// A new reference, or NULL.
kiln_cache_entry_t* kilni_cache_memory_get(kilni_cache_memory_t* memory,
                                           const kilni_cache_hash_t* hash,
                                           const kiln_cache_key_t* key);
// Keeps a reference to `entry`, in place of one of its key. Evicted entries are
// returned as a list along `chain`, for release without the lock. Where there
// is no memory for the table nothing is kept.
kiln_cache_entry_t* kilni_cache_memory_put(kilni_cache_memory_t* memory,
                                           kiln_cache_entry_t* entry);
// The one of that key, or NULL; the caller takes its reference.
kiln_cache_entry_t* kilni_cache_memory_take(kilni_cache_memory_t* memory,
                                            const kilni_cache_hash_t* hash,
                                            const kiln_cache_key_t* key);
// All, as a list along `chain`.
kiln_cache_entry_t* kilni_cache_memory_take_all(kilni_cache_memory_t* memory);
void kilni_cache_memory_deinit(kilni_cache_memory_t* memory);
// Releases a list along `chain`.
void kilni_cache_release_list(kiln_cache_entry_t* list);

// ---- The cache ----

// What is counted, in the order of kiln_cache_stats_t.
typedef struct kilni_cache_counts_t {
  atomic_uint_fast64_t memory_hits, disk_hits, shared, misses, stale, made,
      make_failures, lock_waits, lock_timeouts, lock_absent, corrupt, foreign,
      collisions, read_failures, stored, store_failures, disk_evicted;
} kilni_cache_counts_t;

// One key that is being made by a thread of this process.
typedef struct kilni_cache_flight_t {
  kilni_cache_hash_t hash;
  const kiln_cache_key_t* key;
  uint64_t thread;
  uint32_t users;  // those that make it and those that wait for it
  bool done;
  bool alone;                 // what it made is for its own caller
  kiln_cache_entry_t* entry;  // NULL if it came to nothing, or is not shared
  struct kilni_cache_flight_t* next;
} kilni_cache_flight_t;

struct kiln_cache_t {
  atomic_uint_fast32_t references;
  kiln_allocator_t allocator;
  kiln_log_sink_t log;
  uint64_t process_id;
  uint32_t lock_wait_ms;
  bool disk_wanted;
  uint64_t disk_bytes;
  uint64_t max_age_s;
  char* directory;   // NULL: none
  size_t home_size;  // the part of `directory` that must be there; 0: none
  bool has_lock, has_changed;
  kilni_base_mutex_t lock;    // of all below, but for the atomics
  kilni_base_cond_t changed;  // a flight is done
  kilni_cache_memory_t memory;
  kilni_cache_flight_t* flights;
  kilni_cache_counts_t counts;
  atomic_bool warned_bad;    // of a file that is not GOOD
  atomic_uintptr_t problem;  // char*; of the disk, the first
  // The folder, once it is open; -1 before.
  kilni_base_folder_calls_t calls;
  atomic_int folder;
  atomic_int locks;           // the file of locks; -1: not open
  atomic_int folder_refused;  // an errno; 0: not so
  atomic_uint_fast64_t stored_since_tidy;
  atomic_uint_fast32_t temporaries;  // a part of their names
  atomic_bool needs_names;           // a file cannot be written without one
};

kiln_status_t kilni_cache_check_fork(const kiln_cache_t* cache);
kiln_status_t kilni_cache_check_key(const kiln_cache_key_t* key);
bool kilni_cache_kind_is_good(const char* kind);
// Reports what is wrong with the disk: the first time as a warning.
void kilni_cache_note_problem(kiln_cache_t* cache, const char* text);

// ---- The disk (cache_disk.c) ----

#define KILNI_CACHE_SUFFIX    ".kiln1"
#define KILNI_CACHE_TEMPORARY "tmp-"
#define KILNI_CACHE_LOCKS     "locks"
enum {
  KILNI_CACHE_FILE_BYTES = KILN_CACHE_NAME_BYTES + 6,  // of a name, with NUL
};
void kilni_cache_file_name(const kilni_cache_hash_t* hash,
                           char out_name[KILNI_CACHE_FILE_BYTES]);

// Opens the folder if that has not been done; `make` makes it. False if there
// is none to be used. Out of memory is none too.
bool kilni_cache_disk_open(kiln_cache_t* cache, bool make);
void kilni_cache_disk_close(kiln_cache_t* cache);
// Why it is not used, as an error; OK if it is not there or not wanted.
kiln_status_t kilni_cache_disk_error(const kiln_cache_t* cache);
// Notes what is wrong with the disk: one warning.
void kilni_cache_disk_trouble(kiln_cache_t* cache, int error, const char* what);

// The entry of a key; NULL on a miss, whatever the reason. OUT_OF_MEMORY.
kiln_status_t kilni_cache_disk_get(kiln_cache_t* cache,
                                   const kilni_cache_hash_t* hash,
                                   const kiln_cache_key_t* key,
                                   kiln_cache_entry_t** out_entry);
// One file that was read. thread-compatible
typedef struct kilni_cache_read_t {
  uint32_t state;
  int error;  // where `state` is ERROR
  const char* why;
  kilni_base_file_look_t look;
  kilni_cache_layout_t layout;  // as far as the header states
  kiln_cache_entry_t* entry;    // GOOD and whole; the caller's
} kilni_cache_read_t;
// Reads a file of the folder, whole or its head; `mark`: this is a use of it.
kiln_status_t kilni_cache_disk_read(kiln_cache_t* cache, const char* name,
                                    bool whole, bool mark,
                                    kilni_cache_read_t* out_read);
// Removes it, if it still is the file that was read.
bool kilni_cache_disk_remove_bad(kiln_cache_t* cache, const char* name,
                                 const kilni_cache_read_t* read);

// Stores an entry. A failure is logged, not returned.
void kilni_cache_disk_put(kiln_cache_t* cache, kiln_cache_entry_t* entry);
void kilni_cache_disk_remove(kiln_cache_t* cache,
                             const kilni_cache_hash_t* hash);
// Marks the file as used, if the last mark is older than an hour.
void kilni_cache_disk_mark(kiln_cache_t* cache, kiln_cache_entry_t* entry);

// The lock of a key between processes.
enum {
  KILNI_CACHE_LOCK_HELD = 1,    // by us now
  KILNI_CACHE_LOCK_BUSY = 2,    // by another
  KILNI_CACHE_LOCK_ABSENT = 3,  // there are none
};
uint32_t kilni_cache_lock_at(kiln_cache_t* cache, uint64_t offset);
void kilni_cache_unlock_at(kiln_cache_t* cache, uint64_t offset);
uint32_t kilni_cache_lock_try(kiln_cache_t* cache,
                              const kilni_cache_hash_t* hash);
void kilni_cache_lock_release(kiln_cache_t* cache,
                              const kilni_cache_hash_t* hash);

// ---- Tidying (cache_tidy.c) ----

enum { KILNI_CACHE_LISTED_BYTES = 48 };

// A file that is an entry by its name. thread-compatible
typedef struct kilni_cache_listed_t {
  char name[KILNI_CACHE_LISTED_BYTES];
  uint64_t bytes;
  int64_t used_ns;
} kilni_cache_listed_t;

// The entries of a folder. one-thread
typedef struct kilni_cache_listing_t {
  kiln_cache_t* cache;
  bool cleans;
  kiln_status_t status;
  kilni_cache_listed_t* items;
  size_t count;
  size_t capacity;
  kiln_cache_report_t report;
} kilni_cache_listing_t;

// Names only, in no order; `cleans` removes temporary files that are left
// over. To be ended also when it fails.
kiln_status_t kilni_cache_list(kiln_cache_t* cache, bool cleans,
                               kilni_cache_listing_t* out_listing);
void kilni_cache_listing_deinit(kilni_cache_listing_t* listing);
// Adds sizes and times; what is gone by now drops out.
void kilni_cache_listing_look(kilni_cache_listing_t* listing);

// After a file of `bytes` was stored: tidies the folder now and then.
void kilni_cache_tidy_after(kiln_cache_t* cache, uint64_t bytes);

#endif  // KILN_SRC_CACHE_CACHE_INSIDE_H_
