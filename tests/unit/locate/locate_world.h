// SPDX-License-Identifier: Apache-2.0
//
// locate: tests: a made-up system in a folder of its own.
#ifndef KILN_TESTS_UNIT_LOCATE_LOCATE_WORLD_H_
#define KILN_TESTS_UNIT_LOCATE_LOCATE_WORLD_H_

#include "locate/locate.h"

enum { WORLD_PATH_BYTES = 4096 };

// A system whose root is `root`, with nothing on its disk and nothing in its
// environment. one-thread
typedef struct world_t {
  char root[256];
  kilni_base_env_t env;
  kiln_locate_options_t options;  // system_root is the world's
  kiln_locate_t* locate;          // made on first use
} world_t;

int world_setup(void** state);
int world_teardown(void** state);

// A path in the world; one of a few static buffers.
const char* world_path(const world_t* world, const char* name);
// An empty file, one with bytes in it, a folder, a link; and what is above it.
void world_put(const world_t* world, const char* name);
void world_write(const world_t* world, const char* name, const void* data,
                 size_t size);
void world_text(const world_t* world, const char* name, const char* text);
void world_folder(const world_t* world, const char* name);
void world_link(const world_t* world, const char* name, const char* target);
void world_remove(const world_t* world, const char* name);

// A row of an ld.so.cache. thread-compatible
typedef struct world_library_t {
  const char* name;
  const char* path;  // in the world, or absolute and then as it is
  uint32_t flags;    // 0: a 64-bit x86 library
  uint32_t level;    // 2 to 4: for x86-64-v2 to v4; 0: for any
} world_library_t;

// Writes etc/ld.so.cache, whose rows must be in its order, greatest first; or
// only makes its bytes, which the caller frees.
void world_ldcache(const world_t* world, const world_library_t* rows,
                   size_t count);
uint8_t* world_ldcache_bytes(const world_t* world, const world_library_t* rows,
                             size_t count, size_t* out_size);

// A variable that names a path in the world.
void world_set(world_t* world, kilni_base_env_id_t id, const char* name);

// The context, made with `options` and `env` as they are by then; and without
// what it has found so far.
kiln_locate_t* world_locate(world_t* world);
void world_forget(world_t* world);

// Finds; the test fails if that fails. The world owns nothing.
kiln_locate_item_t* world_find(world_t* world, uint32_t kind, const char* name);

// Finds, and asserts that it is at `path` (NULL: nowhere) and of `scope`.
void world_expect(world_t* world, uint32_t kind, const char* name,
                  uint32_t scope, const char* path);

// True if the trail has a line with that path and words in its reason.
bool world_tried(const kiln_locate_item_t* item, const char* path,
                 const char* why);

#endif  // KILN_TESTS_UNIT_LOCATE_LOCATE_WORLD_H_
