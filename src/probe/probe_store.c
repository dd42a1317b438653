// SPDX-License-Identifier: Apache-2.0
//
// probe: Kiln's own cache of what it compiled and linked.
//
// Counted by names and sizes: no entry is opened.
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "probe/probe_sheet.h"

// The check creates and writes nothing, so owner and mode decide whether it
// could.
static kiln_status_t judge_place(kiln_probe_t* probe,
                                 kiln_probe_store_t* store) {
  char path[4096];
  size_t length = strlen(store->path);
  if (length == 0 || length >= sizeof(path) || store->problem[0] != 0) {
    return kiln_ok();
  }
  memcpy(path, store->path, length + 1);
  if (kilni_probe_can_make(path)) return kiln_ok();
  return kilni_probe_textf(probe, &store->problem,
                           "the cache folder \"%s\" cannot be written",
                           store->path);
}

kiln_status_t kilni_probe_collect_store(kiln_probe_t* probe,
                                        const kilni_probe_source_t* source) {
  kiln_probe_store_t* store = &probe->store;
  kiln_cache_report_t report;
  kiln_cache_stats_t stats;
  store->path = "";
  store->problem = "";
  if (source->cache == NULL) return kiln_ok();
  probe->has_store = true;
  kiln_status_t status = kiln_cache_walk(source->cache, KILN_CACHE_WALK_COUNT,
                                         NULL, NULL, &report);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  // The reason that prevents its use is a fact, reported as `problem`.
  kiln_status_free(status);
  kiln_cache_stats(source->cache, &stats);
  store->bytes = report.bytes;
  store->entries = report.entries;
  store->limit = stats.disk_limit_bytes;
  KILNI_RETURN_IF_ERROR(kilni_probe_text(
      probe, kiln_cache_directory(source->cache), &store->path));
  KILNI_RETURN_IF_ERROR(kilni_probe_text(
      probe, kiln_cache_disk_problem(source->cache), &store->problem));
  store->switched = store->path[0] != 0 || store->problem[0] != 0;
  store->exists = store->path[0] != 0 &&
                  kilni_base_file_look(store->path).kind == KILNI_FILE_DIR;
  return judge_place(probe, store);
}

kiln_status_t kilni_probe_doubt_store(kiln_probe_t* probe) {
  const kiln_probe_store_t* store = &probe->store;
  if (!probe->has_store || store->problem[0] == 0) return kiln_ok();
  const char* fix = "set KILN_CACHE_DIR to a folder of your own, with mode 700";
  return kilni_probe_add_problem(
      probe, "cache-not-used", KILN_PROBE_SEVERITY_WARNING, fix,
      "compiled code is not kept for the next start: %s", store->problem);
}

const kiln_probe_store_t* kiln_probe_store(const kiln_probe_t* probe) {
  return probe->has_store ? &probe->store : NULL;
}
