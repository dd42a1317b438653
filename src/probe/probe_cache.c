// SPDX-License-Identifier: Apache-2.0
//
// probe: the driver's own cache of compiled code, as its variables place it.
//
// Only looked at, and only so far: a cache with more entries than the limit is
// known to be at least so large.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "probe/probe_sheet.h"

enum {
  MAX_CACHE_ENTRIES = 8192,
  MAX_CACHE_DEPTH = 4,
  CACHE_PATH_BYTES = 4096,
};

// CUDA_CACHE_MAXSIZE, as section 5.2.2.3 of the CUDA Programming Guide (of
// 2025-12-15) has it: without it 1073741824 on desktops and servers and
// 268435456 on embedded platforms, and 4294967296 at most. No API reports the
// limit, so the fact relies on that section.
#define DEFAULT_LIMIT  (UINT64_C(1) << 30)
#define EMBEDDED_LIMIT (UINT64_C(256) << 20)

// One folder of the walk. one-thread
typedef struct walk_t {
  kiln_probe_cache_t* cache;
  uint32_t* entries;
  uint32_t depth;
  size_t length;
  char* path;  // CACHE_PATH_BYTES
} walk_t;

static void cache_walk(const walk_t* here);

static bool cache_visit(const char* name, void* user) {
  const walk_t* here = user;
  size_t size = strlen(name);
  if (++*here->entries > MAX_CACHE_ENTRIES) {
    here->cache->complete = 0;
    return false;
  }
  if (here->length + 1 + size + 1 > CACHE_PATH_BYTES) return true;
  here->path[here->length] = '/';
  memcpy(here->path + here->length + 1, name, size + 1);
  kilni_base_file_look_t look = kilni_base_file_look(here->path);
  // A link may lead back up: none belongs here.
  if (look.kind == KILNI_FILE_DIR && !kilni_base_link_is(here->path)) {
    walk_t below = *here;
    below.depth++;
    below.length = here->length + 1 + size;
    cache_walk(&below);
  } else if (look.kind == KILNI_FILE_REGULAR) {
    here->cache->files++;
    here->cache->bytes += look.size;
  }
  here->path[here->length] = 0;
  return *here->entries <= MAX_CACHE_ENTRIES;
}

static void cache_walk(const walk_t* here) {
  if (here->depth > MAX_CACHE_DEPTH) {
    here->cache->complete = 0;
    return;
  }
  walk_t copy = *here;
  if (kilni_base_dir_scan(here->path, cache_visit, &copy) != 0) {
    here->cache->complete = 0;
  }
}

static bool can_write(const kilni_base_file_look_t* look) {
  uint32_t user = kilni_base_file_user();
  if (user == 0) return true;
  if (look->owner == user) return (look->mode & 0200) != 0;
  // Whether the user is of the group is not asked: the cache is a user's own.
  return (look->mode & 0022) != 0;
}

bool kilni_probe_can_make(char* path) {
  for (;;) {
    kilni_base_file_look_t look =
        kilni_base_file_look(path[0] != 0 ? path : "/");
    if (look.kind == KILNI_FILE_DIR) return can_write(&look);
    if (look.kind != KILNI_FILE_NONE) return false;
    char* slash = strrchr(path, '/');
    if (slash == NULL) return false;
    *slash = 0;
  }
}

static bool is_embedded(const kilni_probe_source_t* source) {
  char path[CACHE_PATH_BYTES];
  int size = snprintf(path, sizeof(path), "%s/etc/nv_tegra_release",
                      source->system_root != NULL ? source->system_root : "");
  return size > 0 && (size_t)size < sizeof(path) &&
         kilni_base_file_exists(path);
}

static void cache_read_size(const kiln_probe_t* probe,
                            const kilni_probe_source_t* source,
                            kiln_probe_cache_t* cache) {
  uint64_t value = 0;
  cache->limit = is_embedded(source) ? EMBEDDED_LIMIT : DEFAULT_LIMIT;
  const char* text =
      kilni_base_env_text(probe->host->env, KILNI_ENV_CUDA_CACHE_MAXSIZE);
  if (text == NULL || !kilni_base_sv_to_u64(kilni_base_sv(text), &value)) {
    return;
  }
  cache->limit = value < KILNI_PROBE_GREATEST_JIT_LIMIT
                     ? value
                     : KILNI_PROBE_GREATEST_JIT_LIMIT;
}

kiln_status_t kilni_probe_collect_cache(kiln_probe_t* probe,
                                        const kilni_probe_source_t* source) {
  kiln_probe_cache_t* cache = &probe->cache;
  const kilni_base_env_t* env = probe->host->env;
  const char* disable = kilni_base_env_text(env, KILNI_ENV_CUDA_CACHE_DISABLE);
  const char* named = kilni_base_env_text(env, KILNI_ENV_CUDA_CACHE_PATH);
  const char* home = kilni_base_env_text(env, KILNI_ENV_HOME);
  char path[CACHE_PATH_BYTES];
  cache->path = "";
  cache->complete = 1;
  cache->disabled = disable != NULL && strcmp(disable, "1") == 0;
  cache_read_size(probe, source, cache);
  if (named != NULL && named[0] != 0) {
    KILNI_RETURN_IF_ERROR(kilni_probe_text(probe, named, &cache->path));
  } else if (home != NULL && home[0] != 0) {
    KILNI_RETURN_IF_ERROR(
        kilni_probe_textf(probe, &cache->path, "%s/.nv/ComputeCache", home));
  }
  size_t length = strlen(cache->path);
  if (length == 0 || cache->path[0] != '/' || length >= sizeof(path)) {
    return kiln_ok();
  }
  memcpy(path, cache->path, length + 1);
  cache->exists = kilni_base_file_look(path).kind == KILNI_FILE_DIR;
  cache->writable = kilni_probe_can_make(path);
  if (cache->exists == 0) return kiln_ok();
  uint32_t entries = 0;
  memcpy(path, cache->path, length + 1);
  walk_t top = {cache, &entries, 0, length, path};
  cache_walk(&top);
  return kiln_ok();
}
