// SPDX-License-Identifier: Apache-2.0
//
// cache: caches: options and environment, resolved once; the counts.
#include <string.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log_line.h"
#include "base/options.h"
#include "base/str.h"
#include "cache/cache.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

enum { DEFAULT_WAIT_MS = 60000 };
#define DEFAULT_MEMORY_BYTES (UINT64_C(128) << 20)
#define DEFAULT_MAX_AGE_S    (UINT64_C(90) * 24 * 3600)

// ---- The folder ----

static kiln_status_t not_absolute(const char* whose, const char* path) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "%s is \"%s\", which is not an absolute path", whose, path),
      "begin it with a slash");
}

// `path` with `below` added, without slashes between and after.
static kiln_status_t set_directory(kiln_cache_t* cache, const char* path,
                                   const char* below) {
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') length--;
  kilni_base_str_t text;
  kilni_base_str_init(&text, cache->allocator, SIZE_MAX - 1);
  kilni_base_str_add(&text, kilni_base_sv_make(path, length));
  if (below[0] != 0 && path[length - 1] != '/') {
    kilni_base_str_add_char(&text, '/');
  }
  kilni_base_str_add_cstr(&text, below);
  return kilni_base_str_take(&text, &cache->directory);
}

static kiln_status_t choose_directory(kiln_cache_t* cache, const char* option,
                                      const kilni_base_env_t* env) {
  if (option != NULL) {
    if (option[0] != '/') return not_absolute("the cache's folder", option);
    return set_directory(cache, option, "");
  }
  const char* own = kilni_base_env_text(env, KILNI_ENV_KILN_CACHE_DIR);
  if (own != NULL) {
    if (own[0] != '/') return not_absolute("KILN_CACHE_DIR", own);
    return set_directory(cache, own, "");
  }
  // A relative path in these two counts as none.
  const char* caches = kilni_base_env_text(env, KILNI_ENV_XDG_CACHE_HOME);
  if (caches != NULL && caches[0] == '/') {
    return set_directory(cache, caches, "kiln");
  }
  const char* home = kilni_base_env_text(env, KILNI_ENV_HOME);
  if (home != NULL && home[0] == '/') {
    cache->home_size = strlen(home);
    while (cache->home_size > 1 && home[cache->home_size - 1] == '/') {
      cache->home_size--;
    }
    return set_directory(cache, home, ".cache/kiln");
  }
  return kiln_ok();
}

// ---- Options ----

static kiln_status_t bad_switch(const char* name) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "kiln_cache_options_t has a bad `%s`", name),
      "it takes KILN_SWITCH_*; 0 is the default");
}

static kiln_status_t cache_create_take_options(
    kiln_cache_t* cache, const kiln_cache_options_t* options,
    const kilni_base_env_t* env) {
  if (options->memory > KILN_SWITCH_ON) return bad_switch("memory");
  if (options->disk > KILN_SWITCH_ON) return bad_switch("disk");
  bool on = true;
  KILNI_RETURN_IF_ERROR(kilni_base_env_switch(env, KILNI_ENV_KILN_CACHE, &on));
  uint64_t disk_bytes = 0;
  KILNI_RETURN_IF_ERROR(
      kilni_base_env_u64(env, KILNI_ENV_KILN_CACHE_MAX_BYTES, &disk_bytes));
  if (options->disk != KILN_SWITCH_DEFAULT) {
    on = options->disk == KILN_SWITCH_ON;
  }
  cache->disk_wanted = on;
  cache->disk_bytes = options->disk_bytes ? options->disk_bytes : disk_bytes;
  cache->max_age_s =
      options->max_age_s ? options->max_age_s : DEFAULT_MAX_AGE_S;
  cache->lock_wait_ms =
      options->lock_wait_ms ? options->lock_wait_ms : DEFAULT_WAIT_MS;
  cache->memory.limit_bytes =
      options->memory_bytes ? options->memory_bytes : DEFAULT_MEMORY_BYTES;
  if (options->memory == KILN_SWITCH_OFF) cache->memory.limit_bytes = 0;
  if (!on) return kiln_ok();
  return choose_directory(cache, options->directory, env);
}

// ---- Life ----

static void cache_create_destroy(kiln_cache_t* cache) {
  kiln_allocator_t allocator = cache->allocator;
  kilni_cache_memory_deinit(&cache->memory);
  kilni_cache_disk_close(cache);
  kilni_base_strfree(allocator, (char*)atomic_load(&cache->problem));
  kilni_base_strfree(allocator, cache->directory);
  if (cache->has_changed) kilni_base_cond_deinit(&cache->changed);
  if (cache->has_lock) kilni_base_mutex_deinit(&cache->lock);
  kilni_base_free(allocator, cache, sizeof(*cache));
}

static kiln_status_t create_fill(kiln_cache_t* cache,
                                 const kiln_cache_options_t* options,
                                 const kilni_base_env_t* env) {
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&cache->lock));
  cache->has_lock = true;
  KILNI_RETURN_IF_ERROR(kilni_base_cond_init(&cache->changed));
  cache->has_changed = true;
  if (env != NULL) return cache_create_take_options(cache, options, env);
  kilni_base_env_t own;
  KILNI_RETURN_IF_ERROR(kilni_base_env_init(&own, cache->allocator));
  kiln_status_t status = cache_create_take_options(cache, options, &own);
  kilni_base_env_deinit(&own);
  return status;
}

kiln_status_t kilni_cache_create(const kiln_cache_options_t* options,
                                 const kilni_base_env_t* env,
                                 kiln_cache_t** out_cache) {
  KILNI_CHECK_ARGUMENT(out_cache != NULL, "out_cache");
  *out_cache = NULL;
  kiln_cache_options_t how;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(options, "kiln_cache_options_t",
                                                sizeof(how), &how));
  if (how.log != NULL) {
    KILNI_CHECK_RESERVED(how.log->reserved, kiln_log_sink_t);
  }
  kiln_allocator_t allocator =
      how.allocator != NULL ? *how.allocator : kiln_allocator_libc();
  void* block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_cache_t), &block));
  kiln_cache_t* cache = block;
  atomic_init(&cache->references, 1);
  atomic_init(&cache->folder, -1);
  atomic_init(&cache->locks, -1);
  cache->allocator = allocator;
  cache->memory.allocator = allocator;
  if (how.log != NULL) cache->log = *how.log;
  cache->process_id = kilni_base_process_id();
  cache->calls = kilni_base_folder_calls_system();
  kiln_status_t status = create_fill(cache, &how, env);
  if (!kiln_status_is_ok(status)) {
    cache_create_destroy(cache);
    return status;
  }
  *out_cache = cache;
  return kiln_ok();
}

kiln_status_t kiln_cache_create(const kiln_cache_options_t* options,
                                kiln_cache_t** out_cache) {
  return kilni_cache_create(options, NULL, out_cache);
}

void kiln_cache_retain(kiln_cache_t* cache) {
  if (cache == NULL) return;
  atomic_fetch_add_explicit(&cache->references, 1, memory_order_relaxed);
}

void kiln_cache_release(kiln_cache_t* cache) {
  if (cache == NULL || cache->process_id != kilni_base_process_id()) return;
  if (atomic_fetch_sub_explicit(&cache->references, 1, memory_order_acq_rel) ==
      1) {
    cache_create_destroy(cache);
  }
}

kiln_status_t kilni_cache_check_fork(const kiln_cache_t* cache) {
  uint64_t here = kilni_base_process_id();
  if (here == cache->process_id) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "the cache was made in process %llu and is used in its "
                 "forked child %llu",
                 (unsigned long long)cache->process_id,
                 (unsigned long long)here),
      "create a cache in the child; it may use the same folder");
}

// ---- What is known of it ----

const char* kiln_cache_directory(const kiln_cache_t* cache) {
  if (cache == NULL || cache->directory == NULL) return "";
  return cache->directory;
}

const char* kiln_cache_disk_problem(const kiln_cache_t* cache) {
  if (cache == NULL) return "";
  const char* problem = (const char*)atomic_load(&cache->problem);
  return problem == NULL ? "" : problem;
}

void kilni_cache_note_problem(kiln_cache_t* cache, const char* text) {
  char* copy = NULL;
  uintptr_t none = 0;
  kiln_status_t status =
      kilni_base_strdup(cache->allocator, kilni_base_sv(text), &copy);
  if (!kiln_status_is_ok(status)) {
    // Reported nevertheless, but it may be reported again.
    kiln_status_free(status);
    KILNI_LOG(&cache->log, WARNING, "%s", text);
    return;
  }
  if (atomic_compare_exchange_strong(&cache->problem, &none, (uintptr_t)copy)) {
    KILNI_LOG(&cache->log, WARNING, "%s", text);
    return;
  }
  kilni_base_strfree(cache->allocator, copy);
  KILNI_LOG(&cache->log, DEBUG, "%s", text);
}

void kiln_cache_stats(kiln_cache_t* cache, kiln_cache_stats_t* out_stats) {
  memset(out_stats, 0, sizeof(*out_stats));
  if (cache == NULL || cache->process_id != kilni_base_process_id()) return;
  const kilni_cache_counts_t* counts = &cache->counts;
  out_stats->memory_hits = atomic_load(&counts->memory_hits);
  out_stats->disk_hits = atomic_load(&counts->disk_hits);
  out_stats->shared = atomic_load(&counts->shared);
  out_stats->misses = atomic_load(&counts->misses);
  out_stats->stale = atomic_load(&counts->stale);
  out_stats->made = atomic_load(&counts->made);
  out_stats->make_failures = atomic_load(&counts->make_failures);
  out_stats->lock_waits = atomic_load(&counts->lock_waits);
  out_stats->lock_timeouts = atomic_load(&counts->lock_timeouts);
  out_stats->lock_absent = atomic_load(&counts->lock_absent);
  out_stats->corrupt = atomic_load(&counts->corrupt);
  out_stats->foreign = atomic_load(&counts->foreign);
  out_stats->collisions = atomic_load(&counts->collisions);
  out_stats->read_failures = atomic_load(&counts->read_failures);
  out_stats->stored = atomic_load(&counts->stored);
  out_stats->store_failures = atomic_load(&counts->store_failures);
  out_stats->disk_evicted = atomic_load(&counts->disk_evicted);
  out_stats->disk_limit_bytes = cache->disk_bytes;
  kilni_base_mutex_lock(&cache->lock);
  out_stats->memory_evicted = cache->memory.evicted;
  out_stats->memory_entries = cache->memory.count;
  out_stats->memory_used_bytes = cache->memory.used_bytes;
  out_stats->memory_limit_bytes = cache->memory.limit_bytes;
  kilni_base_mutex_unlock(&cache->lock);
}
