// SPDX-License-Identifier: Apache-2.0
//
// cache: what its tests share: a folder of their own, keys, makers that count.
#ifndef KILN_TESTS_UNIT_CACHE_CACHE_KIT_H_
#define KILN_TESTS_UNIT_CACHE_CACHE_KIT_H_

#include <stdatomic.h>

#include "base/env.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

enum { CACHE_KIT_PATH_BYTES = 512 };

// A folder for one test, and what was logged. one-thread
typedef struct cache_kit_t {
  char top[CACHE_KIT_PATH_BYTES];     // removed at the end
  char folder[CACHE_KIT_PATH_BYTES];  // of the cache, below it; not made
  atomic_int warnings;
  char first_warning[1024];
} cache_kit_t;

void cache_kit_init(cache_kit_t* kit);
void cache_kit_deinit(cache_kit_t* kit);

// Options with the kit's folder and log.
kiln_cache_options_t cache_kit_options(cache_kit_t* kit);
kiln_cache_t* cache_kit_create(cache_kit_t* kit);
// The same, with an environment that sets nothing but what `env` does.
void cache_kit_env(kilni_base_env_t* out_env);

void cache_kit_ok(kiln_status_t status);
// Expects `code`, and a cure unless the code is bare.
void cache_kit_fails(kiln_status_t status, kiln_status_code_t code);

kiln_cache_key_t cache_kit_key(const char* text);
kiln_bytes_view_t cache_kit_bytes(const char* text);

// A maker: says `text`, counts, may fail. thread-safe
typedef struct cache_maker_t {
  const char* text;
  atomic_int calls;
  kiln_status_code_t fails;  // OK: it does not
  uint32_t store;
} cache_maker_t;

kiln_status_t cache_maker_make(void* maker, kiln_cache_output_t* out);
kiln_cache_request_t cache_maker_request(cache_maker_t* maker, const char* key);
// Gets or makes, checks the payload, and says where it came from.
uint32_t cache_maker_from(cache_maker_t* maker, kiln_cache_t* cache,
                          const char* key);
kiln_cache_stats_t cache_kit_stats(kiln_cache_t* cache);

// Files of the cache's folder.
void cache_kit_path(const cache_kit_t* kit, const char* name,
                    char out_path[CACHE_KIT_PATH_BYTES]);
void cache_kit_entry_path(const cache_kit_t* kit, const char* key,
                          char out_path[CACHE_KIT_PATH_BYTES]);
void cache_kit_write(const char* path, const void* data, size_t size);
size_t cache_kit_read(const char* path, size_t capacity, void* data);
// Files whose names begin so; "" counts all.
int cache_kit_count(const cache_kit_t* kit, const char* prefix);
void cache_kit_set_age(const char* path, int64_t seconds);
int64_t cache_kit_age(const char* path);

#endif  // KILN_TESTS_UNIT_CACHE_CACHE_KIT_H_
