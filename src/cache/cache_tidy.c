// SPDX-License-Identifier: Apache-2.0
//
// cache: keeping the folder within its limits.
//
// Removing an entry only removes a name: a reader that has opened it keeps its
// bytes. So entries are removed without checking for users, and without a lock;
// one that was stored again in the meantime is at worst made once more. Entries
// of other formats count, too: nothing else would remove them.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

enum {
  TIDY_EVERY_S = 600,
  TIDY_PARTS = 16,   // of the budget, after which it is due earlier
  MARGIN_PARTS = 8,  // of the budget, that is freed beyond it
  LEFT_OVER_AFTER_S = 3600,
};
static const uint64_t kNsPerS = 1000000000;
// No key's lock is there: they have two bits less than a hash of 64.
#define TIDY_LOCK (UINT64_C(1) << 62)

// ---- Names ----

static bool is_entry(const char* name) {
  static const char kStem[] = ".kiln";
  size_t digits = strspn(name, "0123456789abcdef");
  if (digits != KILN_CACHE_NAME_BYTES - 1) return false;
  const char* rest = name + digits;
  if (strncmp(rest, kStem, sizeof(kStem) - 1) != 0) return false;
  rest += sizeof(kStem) - 1;
  size_t number = strspn(rest, "0123456789");
  return number > 0 && rest[number] == 0 &&
         strlen(name) < KILNI_CACHE_LISTED_BYTES;
}

static bool is_temporary(const char* name) {
  return strncmp(name, KILNI_CACHE_TEMPORARY,
                 sizeof(KILNI_CACHE_TEMPORARY) - 1) == 0;
}

// ---- What is left over ----

// Whether it is no longer being written: its writer would hold its lock. Where
// there are no locks, its age decides.
static bool is_left_over(kiln_cache_t* cache, int file) {
  const kilni_base_folder_calls_t* calls = &cache->calls;
  kilni_base_file_look_t look;
  int code = calls->lock(calls->user, file, 0, KILNI_LOCK_TRY);
  if (code >= 0) return true;
  if (!kilni_base_folder_has_no_locks(code)) return false;
  if (calls->look(calls->user, file, &look) < 0) return false;
  int64_t now = (int64_t)kilni_base_date_ns();
  return now - look.modified_ns > LEFT_OVER_AFTER_S * (int64_t)kNsPerS;
}

static void remove_left_over(kilni_cache_listing_t* listing, const char* name) {
  kiln_cache_t* cache = listing->cache;
  const kilni_base_folder_calls_t* calls = &cache->calls;
  int folder = atomic_load(&cache->folder);
  int file = kilni_base_folder_open_file(calls, folder, name, KILNI_OPEN_WRITE);
  if (file == -ENOENT) return;
  if (file < 0) {
    listing->report.failures++;
    return;
  }
  // The lock is held until the name is gone, so that a writer that has only
  // just created it notices.
  if (is_left_over(cache, file)) {
    if (calls->remove(calls->user, folder, name) >= 0) {
      listing->report.temporaries++;
    } else {
      listing->report.failures++;
    }
  }
  calls->close(calls->user, file);
}

// ---- Listing ----

static bool tidy_add_name(const char* name, void* user) {
  kilni_cache_listing_t* listing = user;
  if (is_temporary(name)) {
    if (listing->cleans) remove_left_over(listing, name);
    return true;
  }
  if (!is_entry(name)) return true;
  void* items = listing->items;
  listing->status =
      kilni_base_grow(listing->cache->allocator, listing->count + 1,
                      sizeof(*listing->items), &listing->capacity, &items);
  if (!kiln_status_is_ok(listing->status)) return false;
  listing->items = items;
  kilni_cache_listed_t* item = &listing->items[listing->count++];
  memset(item, 0, sizeof(*item));
  memcpy(item->name, name, strlen(name) + 1);
  return true;
}

kiln_status_t kilni_cache_list(kiln_cache_t* cache, bool cleans,
                               kilni_cache_listing_t* out_listing) {
  memset(out_listing, 0, sizeof(*out_listing));
  out_listing->cache = cache;
  out_listing->cleans = cleans;
  if (!kilni_cache_disk_open(cache, false)) {
    return kilni_cache_disk_error(cache);
  }
  const kilni_base_folder_calls_t* calls = &cache->calls;
  int code = calls->list(calls->user, atomic_load(&cache->folder),
                         tidy_add_name, out_listing);
  if (!kiln_status_is_ok(out_listing->status)) return out_listing->status;
  if (code >= 0) return kiln_ok();
  kilni_cache_disk_trouble(cache, code, "listed");
  return kilni_base_status_with_fix(
      KILNI_FAIL(IO_ERROR, "the cache folder \"%s\" cannot be listed",
                 cache->directory),
      "check the folder and its disk");
}

void kilni_cache_listing_deinit(kilni_cache_listing_t* listing) {
  kilni_base_free_array(listing->cache->allocator, listing->items,
                        listing->capacity, sizeof(*listing->items));
  listing->items = NULL;
}

void kilni_cache_listing_look(kilni_cache_listing_t* listing) {
  const kilni_base_folder_calls_t* calls = &listing->cache->calls;
  int folder = atomic_load(&listing->cache->folder);
  size_t kept = 0;
  for (size_t i = 0; i < listing->count; i++) {
    kilni_cache_listed_t item = listing->items[i];
    kilni_base_file_look_t look;
    int code = calls->look_at(calls->user, folder, item.name, &look);
    if (code == -ENOENT) continue;
    if (code < 0) {
      listing->report.failures++;
      continue;
    }
    item.bytes = look.size;
    item.used_ns = look.modified_ns;
    listing->report.entries++;
    listing->report.bytes += look.size;
    listing->items[kept++] = item;
  }
  listing->count = kept;
}

static int compare_use(const void* a, const void* b) {
  const kilni_cache_listed_t* x = a;
  const kilni_cache_listed_t* y = b;
  if (x->used_ns != y->used_ns) return x->used_ns < y->used_ns ? -1 : 1;
  return strcmp(x->name, y->name);
}

static void remove_listed(kilni_cache_listing_t* listing,
                          const kilni_cache_listed_t* item) {
  kiln_cache_t* cache = listing->cache;
  int code = cache->calls.remove(cache->calls.user, atomic_load(&cache->folder),
                                 item->name);
  if (code < 0 && code != -ENOENT) {
    listing->report.failures++;
    return;
  }
  listing->report.entries--;
  listing->report.bytes -= item->bytes;
  listing->report.removed++;
  listing->report.freed_bytes += item->bytes;
}

// ---- Trimming ----

static void evict(kilni_cache_listing_t* listing) {
  kiln_cache_t* cache = listing->cache;
  uint64_t limit = cache->disk_bytes;
  int64_t now = (int64_t)kilni_base_date_ns();
  bool over = listing->report.bytes > limit;
  uint64_t target = over ? limit - limit / MARGIN_PARTS : limit;
  for (size_t i = 0; i < listing->count; i++) {
    const kilni_cache_listed_t* item = &listing->items[i];
    uint64_t age_s =
        item->used_ns < now ? (uint64_t)(now - item->used_ns) / kNsPerS : 0;
    bool old = age_s > cache->max_age_s;
    if (!old && listing->report.bytes <= target) break;
    remove_listed(listing, item);
  }
  atomic_fetch_add(&cache->counts.disk_evicted, listing->report.removed);
}

static kiln_status_t tidy_trim(kiln_cache_t* cache,
                               kiln_cache_report_t* out_report) {
  kilni_cache_listing_t listing;
  kiln_status_t status = kilni_cache_list(cache, true, &listing);
  if (kiln_status_is_ok(status) && listing.count > 0) {
    kilni_cache_listing_look(&listing);
    qsort(listing.items, listing.count, sizeof(*listing.items), compare_use);
    evict(&listing);
  }
  if (out_report != NULL) *out_report = listing.report;
  kilni_cache_listing_deinit(&listing);
  return status;
}

// Its time is when the folder was last tidied, by whomever.
static bool is_due(kiln_cache_t* cache) {
  const kilni_base_folder_calls_t* calls = &cache->calls;
  int locks = atomic_load(&cache->locks);
  kilni_base_file_look_t look;
  if (atomic_load(&cache->stored_since_tidy) > cache->disk_bytes / TIDY_PARTS) {
    return true;
  }
  if (locks < 0 || calls->look(calls->user, locks, &look) < 0) return false;
  int64_t now = (int64_t)kilni_base_date_ns();
  return now - look.modified_ns > TIDY_EVERY_S * (int64_t)kNsPerS;
}

void kilni_cache_tidy_after(kiln_cache_t* cache, uint64_t bytes) {
  atomic_fetch_add(&cache->stored_since_tidy, bytes);
  if (!is_due(cache)) return;
  uint32_t lock = kilni_cache_lock_at(cache, TIDY_LOCK);
  if (lock == KILNI_CACHE_LOCK_BUSY) return;
  atomic_store(&cache->stored_since_tidy, 0);
  int locks = atomic_load(&cache->locks);
  if (locks >= 0) (void)cache->calls.touch(cache->calls.user, locks);
  // No caller waits for it, so nothing is returned: problems of the disk are
  // logged.
  kiln_status_free(tidy_trim(cache, NULL));
  if (lock == KILNI_CACHE_LOCK_HELD) kilni_cache_unlock_at(cache, TIDY_LOCK);
}

kiln_status_t kiln_cache_trim(kiln_cache_t* cache,
                              kiln_cache_report_t* out_report) {
  if (out_report != NULL) memset(out_report, 0, sizeof(*out_report));
  KILNI_CHECK_ARGUMENT(cache != NULL, "cache");
  KILNI_RETURN_IF_ERROR(kilni_cache_check_fork(cache));
  return tidy_trim(cache, out_report);
}

kiln_status_t kiln_cache_clear(kiln_cache_t* cache,
                               kiln_cache_report_t* out_report) {
  if (out_report != NULL) memset(out_report, 0, sizeof(*out_report));
  KILNI_CHECK_ARGUMENT(cache != NULL, "cache");
  KILNI_RETURN_IF_ERROR(kilni_cache_check_fork(cache));
  kilni_base_mutex_lock(&cache->lock);
  kiln_cache_entry_t* gone = kilni_cache_memory_take_all(&cache->memory);
  kilni_base_mutex_unlock(&cache->lock);
  kilni_cache_release_list(gone);
  kilni_cache_listing_t listing;
  kiln_status_t status = kilni_cache_list(cache, true, &listing);
  if (kiln_status_is_ok(status)) {
    kilni_cache_listing_look(&listing);
    for (size_t i = 0; i < listing.count; i++) {
      remove_listed(&listing, &listing.items[i]);
    }
  }
  if (out_report != NULL) *out_report = listing.report;
  kilni_cache_listing_deinit(&listing);
  return status;
}
