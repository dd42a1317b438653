// SPDX-License-Identifier: Apache-2.0
//
// cache: looking at every entry on disk, one after the other.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/status_make.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

static const int64_t kNsPerS = 1000000000;

// A walk. one-thread
typedef struct walk_t {
  kilni_cache_listing_t listing;
  uint32_t flags;
  kiln_cache_item_fn_t fn;
  void* user;
} walk_t;

static int walk_compare_names(const void* a, const void* b) {
  const kilni_cache_listed_t* x = a;
  const kilni_cache_listed_t* y = b;
  return strcmp(x->name, y->name);
}

static kiln_status_t read_listed(walk_t* walk, const char* name,
                                 kilni_cache_read_t* read) {
  kiln_cache_t* cache = walk->listing.cache;
  const char* suffix = name + KILN_CACHE_NAME_BYTES - 1;
  bool whole = (walk->flags & KILN_CACHE_WALK_VERIFY) != 0;
  KILNI_RETURN_IF_ERROR(kilni_cache_disk_read(cache, name, whole, false, read));
  kiln_cache_entry_release(read->entry);
  read->entry = NULL;
  if (strcmp(suffix, KILNI_CACHE_SUFFIX) != 0 &&
      read->state != KILN_CACHE_STATE_ERROR) {
    read->state = KILN_CACHE_STATE_FOREIGN;
    read->why = "it has the format of another version of Kiln";
  }
  return kiln_ok();
}

static bool walk_show(walk_t* walk, const char* name,
                      const kilni_cache_read_t* read) {
  char shown[KILN_CACHE_NAME_BYTES];
  kiln_cache_item_t item;
  if (walk->fn == NULL) return true;
  memset(&item, 0, sizeof(item));
  memcpy(shown, name, KILN_CACHE_NAME_BYTES - 1);
  shown[KILN_CACHE_NAME_BYTES - 1] = 0;
  item.name = shown;
  item.kind = read->layout.kind;
  item.version = read->layout.version;
  item.state = read->state;
  item.why = read->why;
  item.key_bytes = read->layout.key_bytes;
  item.metadata_bytes = read->layout.metadata_bytes;
  item.payload_bytes = read->layout.payload_bytes;
  item.file_bytes = read->look.size;
  item.created_s = read->layout.created_s;
  item.used_s = (uint64_t)(read->look.modified_ns / kNsPerS);
  return walk->fn(walk->user, &item);
}

static kiln_status_t walk_visit(walk_t* walk, kilni_cache_listed_t* listed,
                                bool* out_goes_on) {
  kiln_cache_t* cache = walk->listing.cache;
  kiln_cache_report_t* report = &walk->listing.report;
  kilni_cache_read_t read;
  *out_goes_on = true;
  KILNI_RETURN_IF_ERROR(read_listed(walk, listed->name, &read));
  if (read.state == KILN_CACHE_STATE_ERROR) {
    if (read.error == ENOENT) return kiln_ok();
    report->failures++;
  }
  report->entries++;
  report->bytes += read.look.size;
  listed->bytes = read.look.size;
  if (read.state != KILN_CACHE_STATE_GOOD) report->bad++;
  *out_goes_on = walk_show(walk, listed->name, &read);
  if (read.state == KILN_CACHE_STATE_CORRUPT &&
      (walk->flags & KILN_CACHE_WALK_REPAIR) != 0 &&
      kilni_cache_disk_remove_bad(cache, listed->name, &read)) {
    report->entries--;
    report->bytes -= listed->bytes;
    report->removed++;
    report->freed_bytes += listed->bytes;
  }
  return kiln_ok();
}

kiln_status_t kiln_cache_walk(kiln_cache_t* cache, uint32_t flags,
                              kiln_cache_item_fn_t fn, void* user,
                              kiln_cache_report_t* out_report) {
  const uint32_t known = KILN_CACHE_WALK_VERIFY | KILN_CACHE_WALK_REPAIR;
  const bool counts = flags == KILN_CACHE_WALK_COUNT;
  if (out_report != NULL) memset(out_report, 0, sizeof(*out_report));
  KILNI_CHECK_ARGUMENT(cache != NULL, "cache");
  KILNI_CHECK_ARGUMENT_SAYS(
      counts || (flags & ~known) == 0, "flags", "has unknown bits",
      "use KILN_CACHE_WALK_COUNT, or KILN_CACHE_WALK_VERIFY and "
      "KILN_CACHE_WALK_REPAIR");
  KILNI_RETURN_IF_ERROR(kilni_cache_check_fork(cache));
  walk_t walk = {.flags = flags, .fn = fn, .user = user};
  bool cleans = (flags & KILN_CACHE_WALK_REPAIR) != 0;
  kiln_status_t status = kilni_cache_list(cache, cleans, &walk.listing);
  if (kiln_status_is_ok(status) && walk.listing.count > 0) {
    qsort(walk.listing.items, walk.listing.count, sizeof(*walk.listing.items),
          walk_compare_names);
  }
  if (counts) kilni_cache_listing_look(&walk.listing);
  bool goes_on = !counts;
  for (size_t i = 0;
       i < walk.listing.count && goes_on && kiln_status_is_ok(status); i++) {
    status = walk_visit(&walk, &walk.listing.items[i], &goes_on);
  }
  if (out_report != NULL) *out_report = walk.listing.report;
  kilni_cache_listing_deinit(&walk.listing);
  return status;
}

kiln_status_t kiln_cache_get_named(kiln_cache_t* cache, const char* name,
                                   kiln_cache_entry_t** out_entry) {
  KILNI_CHECK_ARGUMENT(out_entry != NULL, "out_entry");
  *out_entry = NULL;
  KILNI_CHECK_ARGUMENT(cache != NULL, "cache");
  KILNI_CHECK_ARGUMENT(name != NULL, "name");
  KILNI_RETURN_IF_ERROR(kilni_cache_check_fork(cache));
  char file[KILNI_CACHE_FILE_BYTES];
  size_t digits = strspn(name, "0123456789abcdef");
  if (digits != KILN_CACHE_NAME_BYTES - 1 || name[digits] != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" is not the name of a cache entry",
                   name),
        "give the 32 hexadecimal digits that the list of entries shows");
  }
  memcpy(file, name, digits);
  memcpy(file + digits, KILNI_CACHE_SUFFIX, sizeof(KILNI_CACHE_SUFFIX));
  if (!kilni_cache_disk_open(cache, false)) return kiln_ok();
  kilni_cache_read_t read;
  KILNI_RETURN_IF_ERROR(kilni_cache_disk_read(cache, file, true, false, &read));
  *out_entry = read.entry;
  return kiln_ok();
}
