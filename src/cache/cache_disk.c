// SPDX-License-Identifier: Apache-2.0
//
// cache: entries in files: one folder, one file for each entry.
//
//   <32 hexadecimal digits>.kiln1   an entry, named by the hash of its key; the
//                                   1 is the format's number
//   tmp-...                         an entry that is being written
//   locks                           empty; byte locks of keys that are made
//
// An entry is written to a file without a name, which is then given one; where
// the file system has no such files, or the name is taken, to a temporary name
// that is renamed. In both cases a reader sees all of it or nothing, and a
// writer that is killed leaves at most a temporary file: it holds a lock on
// that for as long as it lives, so that tidying recognises abandoned ones.
//
// Nothing is synced to the disk. A process that is killed loses nothing by
// that; a machine that loses power may leave files that are cut short or full
// of zeroes, which reading finds out by length and hash.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

enum {
  ERROR_BYTES = 256,
  PROBLEM_BYTES = 2048,
  TEMPORARY_TRIES = 100,
  MARK_AFTER_S = 3600,
};
static const uint64_t kNsPerS = 1000000000;

// ---- What goes wrong ----

void kilni_cache_disk_trouble(kiln_cache_t* cache, int error,
                              const char* what) {
  char text[ERROR_BYTES];
  char problem[PROBLEM_BYTES];
  kilni_base_error_text(error < 0 ? -error : error, sizeof(text), text);
  snprintf(problem, sizeof(problem),
           "the cache folder \"%s\" cannot be %s (%s): results are kept in "
           "memory only",
           cache->directory, what, text);
  kilni_cache_note_problem(cache, problem);
}

static void disk_refuse(kiln_cache_t* cache, const char* why) {
  char problem[PROBLEM_BYTES];
  snprintf(problem, sizeof(problem),
           "the cache folder \"%s\" is not used: %s; results are kept in "
           "memory only",
           cache->directory, why);
  kilni_cache_note_problem(cache, problem);
}

// ---- The folder ----

// 0, or minus an errno.
static int can_be_used(kiln_cache_t* cache, int folder) {
  kilni_base_file_look_t look;
  int code = cache->calls.look(cache->calls.user, folder, &look);
  if (code < 0) {
    kilni_cache_disk_trouble(cache, code, "looked at");
    return code;
  }
  if (look.owner != kilni_base_file_user()) {
    disk_refuse(cache, "it belongs to another user");
    return -EPERM;
  }
  if ((look.mode & 022) != 0) {
    disk_refuse(cache, "others may write in it (chmod 700 fixes that)");
    return -EPERM;
  }
  return 0;
}

static bool disk_open_folder(kiln_cache_t* cache, bool make) {
  const kilni_base_folder_calls_t* calls = &cache->calls;
  int folder;
  int code = kilni_base_folder_open(
      calls, cache->directory, make ? cache->home_size : SIZE_MAX, &folder);
  if (code == -ENOENT && !make) return false;
  if (code < 0) {
    kilni_cache_disk_trouble(cache, code, "opened");
  } else {
    code = can_be_used(cache, folder);
    int none = -1;
    if (code == 0 &&
        atomic_compare_exchange_strong(&cache->folder, &none, folder)) {
      return true;
    }
    calls->close(calls->user, folder);
  }
  if (code < 0) atomic_store(&cache->folder_refused, -code);
  return code == 0;
}

bool kilni_cache_disk_open(kiln_cache_t* cache, bool make) {
  if (!cache->disk_wanted) return false;
  if (atomic_load(&cache->folder) >= 0) return true;
  if (atomic_load(&cache->folder_refused) != 0) return false;
  if (cache->directory != NULL) return disk_open_folder(cache, make);
  atomic_store(&cache->folder_refused, ENOENT);
  kilni_cache_note_problem(
      cache,
      "there is no folder for the cache (none of KILN_CACHE_DIR, "
      "XDG_CACHE_HOME and HOME is set): results are kept in memory only");
  return false;
}

kiln_status_t kilni_cache_disk_error(const kiln_cache_t* cache) {
  int error = atomic_load(&cache->folder_refused);
  if (error == 0 || error == ENOENT) return kiln_ok();
  const char* problem = kiln_cache_disk_problem(cache);
  if (problem[0] == 0) problem = "the cache folder cannot be used";
  const char* fix = "name another folder with KILN_CACHE_DIR";
  if (error == EPERM || error == EACCES || error == EROFS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(PERMISSION_DENIED, "%s", problem), "%s", fix);
  }
  return kilni_base_status_with_fix(KILNI_FAIL(IO_ERROR, "%s", problem), "%s",
                                    fix);
}

void kilni_cache_disk_close(kiln_cache_t* cache) {
  int locks = atomic_exchange(&cache->locks, -1);
  int folder = atomic_exchange(&cache->folder, -1);
  if (locks >= 0) cache->calls.close(cache->calls.user, locks);
  if (folder >= 0) cache->calls.close(cache->calls.user, folder);
}

// ---- Names ----

void kilni_cache_file_name(const kilni_cache_hash_t* hash,
                           char out_name[KILNI_CACHE_FILE_BYTES]) {
  kilni_cache_hash_text(hash, out_name);
  memcpy(out_name + KILN_CACHE_NAME_BYTES - 1, KILNI_CACHE_SUFFIX,
         sizeof(KILNI_CACHE_SUFFIX));
}

static void temporary_name(kiln_cache_t* cache, size_t capacity,
                           char* out_name) {
  uint32_t number = (uint32_t)atomic_fetch_add(&cache->temporaries, 1);
  snprintf(out_name, capacity, KILNI_CACHE_TEMPORARY "%llu-%llx-%u",
           (unsigned long long)kilni_base_process_id(),
           (unsigned long long)kilni_base_date_ns(), number);
}

// ---- Reading ----

static void disk_bad(kilni_cache_read_t* read, uint32_t state,
                     const char* why) {
  read->state = state;
  read->why = why;
}

static void failed(kilni_cache_read_t* read, int error) {
  read->state = KILN_CACHE_STATE_ERROR;
  read->error = -error;
  read->why = error == -ENOENT ? "it does not exist" : "it cannot be read";
}

static kiln_status_t disk_read_image(kiln_cache_t* cache, int file,
                                     const uint8_t* head,
                                     kilni_cache_read_t* read) {
  kiln_cache_entry_t* entry;
  KILNI_RETURN_IF_ERROR(
      kilni_cache_entry_create(cache->allocator, &read->layout, &entry));
  size_t rest = read->layout.total - KILNI_CACHE_HEAD_BYTES;
  memcpy(entry->image, head, KILNI_CACHE_HEAD_BYTES);
  int64_t got =
      kilni_base_folder_read(&cache->calls, file, KILNI_CACHE_HEAD_BYTES, rest,
                             entry->image + KILNI_CACHE_HEAD_BYTES);
  if (got < 0) {
    failed(read, (int)got);
  } else if ((uint64_t)got < rest) {
    disk_bad(read, KILN_CACHE_STATE_CORRUPT, "it is cut short");
  } else {
    read->state =
        kilni_cache_image_check(entry->image, &read->layout, &read->why);
  }
  if (read->state == KILN_CACHE_STATE_GOOD) {
    atomic_store(&entry->marked_s, read->look.modified_ns / (int64_t)kNsPerS);
    read->entry = entry;
  } else {
    kiln_cache_entry_release(entry);
  }
  return kiln_ok();
}

static kiln_status_t disk_read_open(kiln_cache_t* cache, int file,
                                    const char* name, bool whole,
                                    kilni_cache_read_t* read) {
  uint8_t head[KILNI_CACHE_HEAD_BYTES];
  char hash[KILN_CACHE_NAME_BYTES];
  int code = cache->calls.look(cache->calls.user, file, &read->look);
  if (code < 0) {
    failed(read, code);
    return kiln_ok();
  }
  if (read->look.kind != KILNI_FILE_REGULAR) {
    disk_bad(read, KILN_CACHE_STATE_FOREIGN, "it is not a regular file");
    return kiln_ok();
  }
  if (read->look.owner != kilni_base_file_user()) {
    disk_bad(read, KILN_CACHE_STATE_FOREIGN, "it belongs to another user");
    return kiln_ok();
  }
  int64_t got =
      kilni_base_folder_read(&cache->calls, file, 0, sizeof(head), head);
  if (got < 0) {
    failed(read, (int)got);
    return kiln_ok();
  }
  read->state = kilni_cache_head_read(head, (size_t)got, read->look.size,
                                      &read->layout, &read->why);
  if (read->state != KILN_CACHE_STATE_GOOD) return kiln_ok();
  kilni_cache_hash_text(&read->layout.key_hash, hash);
  if (strncmp(name, hash, sizeof(hash) - 1) != 0) {
    disk_bad(read, KILN_CACHE_STATE_CORRUPT,
             "it has the name of a different entry");
    return kiln_ok();
  }
  return whole ? disk_read_image(cache, file, head, read) : kiln_ok();
}

kiln_status_t kilni_cache_disk_read(kiln_cache_t* cache, const char* name,
                                    bool whole, bool mark,
                                    kilni_cache_read_t* out_read) {
  memset(out_read, 0, sizeof(*out_read));
  out_read->why = "";
  int file = kilni_base_folder_open_file(
      &cache->calls, atomic_load(&cache->folder), name, KILNI_OPEN_READ);
  if (file == -ELOOP) {
    disk_bad(out_read, KILN_CACHE_STATE_FOREIGN, "it is a link");
    return kiln_ok();
  }
  if (file < 0) {
    failed(out_read, file);
    return kiln_ok();
  }
  kiln_status_t status = disk_read_open(cache, file, name, whole, out_read);
  int64_t now = (int64_t)(kilni_base_date_ns() / kNsPerS);
  if (mark && out_read->entry != NULL &&
      now - atomic_load(&out_read->entry->marked_s) > MARK_AFTER_S) {
    // By the open file: its name may be another's by now.
    (void)cache->calls.touch(cache->calls.user, file);
    atomic_store(&out_read->entry->marked_s, now);
  }
  cache->calls.close(cache->calls.user, file);
  return status;
}

bool kilni_cache_disk_remove_bad(kiln_cache_t* cache, const char* name,
                                 const kilni_cache_read_t* read) {
  kilni_base_file_look_t now;
  int folder = atomic_load(&cache->folder);
  int code = cache->calls.look_at(cache->calls.user, folder, name, &now);
  // Only the file that was read: a good one may have replaced it by now.
  if (code < 0 || now.inode != read->look.inode ||
      now.device != read->look.device) {
    return false;
  }
  return cache->calls.remove(cache->calls.user, folder, name) >= 0;
}

static void report_bad(kiln_cache_t* cache, const char* name,
                       const kilni_cache_read_t* read) {
  bool corrupt = read->state == KILN_CACHE_STATE_CORRUPT;
  atomic_fetch_add(corrupt ? &cache->counts.corrupt : &cache->counts.foreign,
                   1);
  kiln_log_level_t level = atomic_exchange(&cache->warned_bad, true)
                               ? KILN_LOG_DEBUG
                               : KILN_LOG_WARNING;
  kilni_base_log_line(&cache->log, level, KILNI_MODULE,
                      "the cache entry \"%s/%s\" is not used: %s",
                      cache->directory, name, read->why);
  if (corrupt) (void)kilni_cache_disk_remove_bad(cache, name, read);
}

kiln_status_t kilni_cache_disk_get(kiln_cache_t* cache,
                                   const kilni_cache_hash_t* hash,
                                   const kiln_cache_key_t* key,
                                   kiln_cache_entry_t** out_entry) {
  char name[KILNI_CACHE_FILE_BYTES];
  kilni_cache_read_t read;
  *out_entry = NULL;
  kilni_cache_file_name(hash, name);
  KILNI_RETURN_IF_ERROR(kilni_cache_disk_read(cache, name, true, true, &read));
  if (read.state == KILN_CACHE_STATE_ERROR) {
    if (read.error == ENOENT) return kiln_ok();
    atomic_fetch_add(&cache->counts.read_failures, 1);
    kilni_cache_disk_trouble(cache, read.error, "read");
    return kiln_ok();
  }
  if (read.entry == NULL) {
    report_bad(cache, name, &read);
    return kiln_ok();
  }
  if (!kilni_cache_entry_has_key(read.entry, hash, key)) {
    atomic_fetch_add(&cache->counts.collisions, 1);
    kiln_cache_entry_release(read.entry);
    return kiln_ok();
  }
  *out_entry = read.entry;
  return kiln_ok();
}

void kilni_cache_disk_mark(kiln_cache_t* cache, kiln_cache_entry_t* entry) {
  int folder = atomic_load(&cache->folder);
  int64_t marked = atomic_load(&entry->marked_s);
  if (folder < 0 || marked == 0) return;
  int64_t now = (int64_t)(kilni_base_date_ns() / kNsPerS);
  if (now - marked <= MARK_AFTER_S ||
      !atomic_compare_exchange_strong(&entry->marked_s, &marked, now)) {
    return;
  }
  char name[KILNI_CACHE_FILE_BYTES];
  kilni_cache_file_name(&entry->hash, name);
  (void)cache->calls.touch_at(cache->calls.user, folder, name);
}

// ---- Writing ----

static int lock_file(kiln_cache_t* cache, int file) {
  int code;
  do {
    code = cache->calls.lock(cache->calls.user, file, 0, KILNI_LOCK_TRY);
  } while (code == -EINTR);
  return kilni_base_folder_has_no_locks(code) ? 0 : code;
}

// A temporary file that tidying will not treat as abandoned.
static int open_temporary(kiln_cache_t* cache, int folder, size_t capacity,
                          char* out_name) {
  const kilni_base_folder_calls_t* calls = &cache->calls;
  for (int i = 0; i < TEMPORARY_TRIES; i++) {
    temporary_name(cache, capacity, out_name);
    int file =
        kilni_base_folder_open_file(calls, folder, out_name, KILNI_OPEN_NEW);
    if (file == -EEXIST) continue;
    if (file < 0) return file;
    kilni_base_file_look_t look;
    int code = lock_file(cache, file);
    // Between its creation and its lock, tidying may have removed it.
    if (code == 0) code = calls->look(calls->user, file, &look);
    if (code == 0 && look.links > 0) return file;
    if (code != 0 && code != -EAGAIN) {
      (void)calls->remove(calls->user, folder, out_name);
    }
    calls->close(calls->user, file);
    if (code != 0 && code != -EAGAIN) return code;
  }
  return -EEXIST;
}

static int rename_into(kiln_cache_t* cache, int folder, const char* temporary,
                       const char* name) {
  const kilni_base_folder_calls_t* calls = &cache->calls;
  int code = calls->rename(calls->user, folder, temporary, name);
  if (code < 0) (void)calls->remove(calls->user, folder, temporary);
  return code < 0 ? code : 0;
}

static int publish_named(kiln_cache_t* cache, int folder, const char* name,
                         const kiln_cache_entry_t* entry) {
  char temporary[KILNI_CACHE_FILE_BYTES * 2];
  int file = open_temporary(cache, folder, sizeof(temporary), temporary);
  if (file < 0) return file;
  int code = kilni_base_folder_write(&cache->calls, file, 0,
                                     entry->layout.total, entry->image);
  if (code < 0) {
    (void)cache->calls.remove(cache->calls.user, folder, temporary);
  } else {
    code = rename_into(cache, folder, temporary, name);
  }
  cache->calls.close(cache->calls.user, file);
  return code;
}

// Gives a file without a name the name of an entry, in place of what has it.
static int name_file(kiln_cache_t* cache, int file, int folder,
                     const char* name) {
  const kilni_base_folder_calls_t* calls = &cache->calls;
  char temporary[KILNI_CACHE_FILE_BYTES * 2];
  int code = calls->link(calls->user, file, folder, name);
  if (code != -EEXIST) return code;
  code = lock_file(cache, file);
  if (code != 0) return code;
  temporary_name(cache, sizeof(temporary), temporary);
  code = calls->link(calls->user, file, folder, temporary);
  return code < 0 ? code : rename_into(cache, folder, temporary, name);
}

// 1 if it must be done with a name.
static int publish_unnamed(kiln_cache_t* cache, int folder, const char* name,
                           const kiln_cache_entry_t* entry) {
  const kilni_base_folder_calls_t* calls = &cache->calls;
  if (atomic_load(&cache->needs_names)) return 1;
  int file = kilni_base_folder_open_file(calls, folder, "", KILNI_OPEN_UNNAMED);
  if (file < 0) {
    // File systems report in various ways that they lack such files.
    atomic_store(&cache->needs_names, true);
    return 1;
  }
  int code = kilni_base_folder_write(calls, file, 0, entry->layout.total,
                                     entry->image);
  if (code == 0 && name_file(cache, file, folder, name) < 0) {
    atomic_store(&cache->needs_names, true);
    code = 1;
  }
  calls->close(calls->user, file);
  return code;
}

void kilni_cache_disk_put(kiln_cache_t* cache, kiln_cache_entry_t* entry) {
  char name[KILNI_CACHE_FILE_BYTES];
  if (!kilni_cache_disk_open(cache, true) ||
      entry->layout.total > cache->disk_bytes) {
    return;
  }
  int folder = atomic_load(&cache->folder);
  kilni_cache_file_name(&entry->hash, name);
  int code = publish_unnamed(cache, folder, name, entry);
  if (code == 1) code = publish_named(cache, folder, name, entry);
  if (code < 0) {
    atomic_fetch_add(&cache->counts.store_failures, 1);
    kilni_cache_disk_trouble(cache, code, "written");
    return;
  }
  atomic_store(&entry->marked_s, (int64_t)(kilni_base_date_ns() / kNsPerS));
  atomic_fetch_add(&cache->counts.stored, 1);
  kilni_cache_tidy_after(cache, entry->layout.total);
}

void kilni_cache_disk_remove(kiln_cache_t* cache,
                             const kilni_cache_hash_t* hash) {
  char name[KILNI_CACHE_FILE_BYTES];
  kilni_cache_file_name(hash, name);
  int code =
      cache->calls.remove(cache->calls.user, atomic_load(&cache->folder), name);
  if (code < 0 && code != -ENOENT) {
    kilni_cache_disk_trouble(cache, code, "written");
  }
}

// ---- Locks ----

// The file of locks, or less than 0.
static int locks_of(kiln_cache_t* cache) {
  int locks = atomic_load(&cache->locks);
  if (locks != -1) return locks;
  int file =
      kilni_base_folder_open_file(&cache->calls, atomic_load(&cache->folder),
                                  KILNI_CACHE_LOCKS, KILNI_OPEN_LOCK);
  if (file < 0) return file;
  if (atomic_compare_exchange_strong(&cache->locks, &locks, file)) return file;
  cache->calls.close(cache->calls.user, file);
  return locks;
}

uint32_t kilni_cache_lock_at(kiln_cache_t* cache, uint64_t offset) {
  int locks = locks_of(cache);
  int code = locks;
  while (locks >= 0) {
    code = cache->calls.lock(cache->calls.user, locks, offset, KILNI_LOCK_TRY);
    if (code != -EINTR) break;
  }
  if (code == -EAGAIN) return KILNI_CACHE_LOCK_BUSY;
  if (code >= 0) return KILNI_CACHE_LOCK_HELD;
  atomic_fetch_add(&cache->counts.lock_absent, 1);
  return KILNI_CACHE_LOCK_ABSENT;
}

void kilni_cache_unlock_at(kiln_cache_t* cache, uint64_t offset) {
  int locks = atomic_load(&cache->locks);
  int code = locks >= 0 ? -EINTR : 0;
  while (code == -EINTR) {
    code =
        cache->calls.lock(cache->calls.user, locks, offset, KILNI_LOCK_RELEASE);
  }
}

static uint64_t lock_offset(const kilni_cache_hash_t* hash) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value = value << 8 | hash->bytes[i];
  return value >> 2;
}

uint32_t kilni_cache_lock_try(kiln_cache_t* cache,
                              const kilni_cache_hash_t* hash) {
  return kilni_cache_lock_at(cache, lock_offset(hash));
}

void kilni_cache_lock_release(kiln_cache_t* cache,
                              const kilni_cache_hash_t* hash) {
  kilni_cache_unlock_at(cache, lock_offset(hash));
}
