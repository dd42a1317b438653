// SPDX-License-Identifier: Apache-2.0
//
// cache: what its tests share: a folder of their own, keys, makers that count.
#define _XOPEN_SOURCE 700
#include "cache_kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/status_make.h"
#include "cache/cache.h"
#include "kiln/cache.h"
#include "kiln/log.h"

// ---- The folder ----

void cache_kit_init(cache_kit_t* kit) {
  const char* tmp = getenv("TMPDIR");
  memset(kit, 0, sizeof(*kit));
  snprintf(kit->top, sizeof(kit->top), "%s/kiln-cache-XXXXXX",
           tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
  assert_non_null(mkdtemp(kit->top));
  snprintf(kit->folder, sizeof(kit->folder), "%.400s/own", kit->top);
}

static int remove_one(const char* path, const struct stat* info, int kind,
                      struct FTW* place) {
  (void)info;
  (void)kind;
  (void)place;
  return remove(path);
}

void cache_kit_deinit(cache_kit_t* kit) {
  assert_int_equal(nftw(kit->top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void on_log(kiln_log_level_t level, const char* space, const char* line,
                   void* user) {
  cache_kit_t* kit = user;
  if (level != KILN_LOG_WARNING) return;
  if (atomic_fetch_add(&kit->warnings, 1) == 0) {
    snprintf(kit->first_warning, sizeof(kit->first_warning), "%s: %s", space,
             line);
  }
}

kiln_cache_options_t cache_kit_options(cache_kit_t* kit) {
  static kiln_log_sink_t sink;
  sink.fn = on_log;
  sink.user = kit;
  sink.max_level = KILN_LOG_TRACE;
  kiln_cache_options_t options = kiln_cache_options_default();
  options.directory = kit->folder;
  options.disk = KILN_SWITCH_ON;
  options.log = &sink;
  return options;
}

void cache_kit_env(kilni_base_env_t* out_env) {
  memset(out_env, 0, sizeof(*out_env));
  out_env->allocator = kiln_allocator_libc();
}

kiln_cache_t* cache_kit_create(cache_kit_t* kit) {
  kiln_cache_options_t options = cache_kit_options(kit);
  kilni_base_env_t env;
  kiln_cache_t* cache = NULL;
  cache_kit_env(&env);
  cache_kit_ok(kilni_cache_create(&options, &env, &cache));
  return cache;
}

// ---- Statuses, keys, makers ----

void cache_kit_ok(kiln_status_t status) {
  if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
}

void cache_kit_fails(kiln_status_t status, kiln_status_code_t code) {
  assert_string_equal(kiln_status_code_name(kiln_status_code(status)),
                      kiln_status_code_name(code));
  kiln_status_free(status);
}

kiln_bytes_view_t cache_kit_bytes(const char* text) {
  kiln_bytes_view_t view = {(const uint8_t*)text, strlen(text)};
  return view;
}

kiln_cache_key_t cache_kit_key(const char* text) {
  kiln_cache_key_t key = {"test", 1, 0, cache_kit_bytes(text)};
  return key;
}

kiln_status_t cache_maker_make(void* user, kiln_cache_output_t* out) {
  cache_maker_t* maker = user;
  atomic_fetch_add(&maker->calls, 1);
  if (maker->fails != KILN_STATUS_OK) {
    return kilni_base_status_bare(maker->fails);
  }
  out->payload = cache_kit_bytes(maker->text);
  out->metadata = cache_kit_bytes("about it");
  out->store = maker->store;
  return kiln_ok();
}

kiln_cache_request_t cache_maker_request(cache_maker_t* maker,
                                         const char* key) {
  kiln_cache_request_t request = kiln_cache_request_default();
  request.key = cache_kit_key(key);
  request.make = cache_maker_make;
  request.user = maker;
  return request;
}

uint32_t cache_maker_from(cache_maker_t* maker, kiln_cache_t* cache,
                          const char* key) {
  kiln_cache_request_t request = cache_maker_request(maker, key);
  kiln_cache_entry_t* entry = NULL;
  uint32_t from = 99;
  cache_kit_ok(kiln_cache_get_or_make(cache, &request, &entry, &from));
  kiln_bytes_view_t payload = kiln_cache_entry_payload(entry);
  assert_int_equal(payload.size, strlen(maker->text));
  assert_memory_equal(payload.data, maker->text, payload.size);
  kiln_cache_entry_release(entry);
  return from;
}

kiln_cache_stats_t cache_kit_stats(kiln_cache_t* cache) {
  kiln_cache_stats_t stats;
  kiln_cache_stats(cache, &stats);
  return stats;
}

// ---- Files ----

void cache_kit_path(const cache_kit_t* kit, const char* name,
                    char out_path[CACHE_KIT_PATH_BYTES]) {
  snprintf(out_path, CACHE_KIT_PATH_BYTES, "%.400s/%s", kit->folder, name);
}

void cache_kit_entry_path(const cache_kit_t* kit, const char* key,
                          char out_path[CACHE_KIT_PATH_BYTES]) {
  char name[KILNI_CACHE_FILE_BYTES];
  kiln_cache_key_t whole = cache_kit_key(key);
  kilni_cache_hash_t hash = kilni_cache_key_hash(&whole);
  kilni_cache_file_name(&hash, name);
  cache_kit_path(kit, name, out_path);
}

void cache_kit_write(const char* path, const void* data, size_t size) {
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

size_t cache_kit_read(const char* path, size_t capacity, void* data) {
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(data, 1, capacity, file);
  assert_int_equal(fclose(file), 0);
  return size;
}

int cache_kit_count(const cache_kit_t* kit, const char* prefix) {
  DIR* list = opendir(kit->folder);
  const struct dirent* entry;
  int count = 0;
  if (list == NULL) return 0;
  while ((entry = readdir(list)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
      continue;
    }
    if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) count++;
  }
  closedir(list);
  return count;
}

void cache_kit_set_age(const char* path, int64_t seconds) {
  struct timespec times[2];
  assert_int_equal(clock_gettime(CLOCK_REALTIME, &times[0]), 0);
  times[0].tv_sec -= (time_t)seconds;
  times[1] = times[0];
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

int64_t cache_kit_age(const char* path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  // Not time(): its clock may still be in the second before this one's.
  struct timespec now;
  assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
  return (int64_t)now.tv_sec - (int64_t)info.st_mtime;
}
