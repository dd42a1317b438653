// SPDX-License-Identifier: Apache-2.0
//
// locate: tests: a made-up system in a folder of its own.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "locate_world.h"

int world_setup(void** state) {
  world_t* world = calloc(1, sizeof(*world));
  snprintf(world->root, sizeof(world->root), "/tmp/kiln-locate-XXXXXX");
  if (mkdtemp(world->root) == NULL) return 1;
  world->env.allocator = kiln_allocator_libc();
  world->options = kiln_locate_options_default();
  world->options.system_root = world->root;
  *state = world;
  return 0;
}

static int remove_one(const char* path, const struct stat* info, int flag,
                      struct FTW* place) {
  (void)info;
  (void)place;
  if (flag == FTW_DNR) chmod(path, 0700);
  return remove(path);
}

int world_teardown(void** state) {
  world_t* world = *state;
  kiln_locate_release(world->locate);
  kilni_base_env_deinit(&world->env);
  int result = nftw(world->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  free(world);
  return result;
}

const char* world_path(const world_t* world, const char* name) {
  static char path[8][WORLD_PATH_BYTES];
  static int turn;
  char* text = path[turn++ % 8];
  snprintf(text, WORLD_PATH_BYTES, "%s/%s", world->root, name);
  return text;
}

// Makes the folders above a path of the world.
static void make_above(const world_t* world, const char* path) {
  char text[WORLD_PATH_BYTES];
  snprintf(text, sizeof(text), "%s", path);
  for (char* at = text + strlen(world->root) + 1; *at != 0; at++) {
    if (*at != '/') continue;
    *at = 0;
    mkdir(text, 0755);
    *at = '/';
  }
}

void world_write(const world_t* world, const char* name, const void* data,
                 size_t size) {
  const char* path = world_path(world, name);
  make_above(world, path);
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  if (size > 0) assert_int_equal(fwrite(data, 1, size, file), size);
  fclose(file);
}

void world_text(const world_t* world, const char* name, const char* text) {
  world_write(world, name, text, strlen(text));
}

void world_put(const world_t* world, const char* name) {
  world_write(world, name, "", 0);
}

void world_folder(const world_t* world, const char* name) {
  const char* path = world_path(world, name);
  make_above(world, path);
  assert_int_equal(mkdir(path, 0755), 0);
}

void world_link(const world_t* world, const char* name, const char* target) {
  const char* path = world_path(world, name);
  make_above(world, path);
  assert_int_equal(symlink(target, path), 0);
}

void world_remove(const world_t* world, const char* name) {
  assert_int_equal(
      nftw(world_path(world, name), remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void put_u32(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (8 * i));
}

// The form that glibc writes since 2.33: head, rows, texts, and an extension
// with the names of the CPU levels 2 to 4.
uint8_t* world_ldcache_bytes(const world_t* world, const world_library_t* rows,
                             size_t count, size_t* out_size) {
  size_t space = 48 + count * 24 + 8 + 16 + 12 + 64;
  for (size_t i = 0; i < count; i++) {
    space += strlen(rows[i].name) + WORLD_PATH_BYTES + 2;
  }
  uint8_t* data = calloc(1, space);
  size_t at = 48 + count * 24;
  memcpy(data, "glibc-ld.so.cache1.1", 20);
  put_u32(data + 20, (uint32_t)count);
  data[28] = 2;  // little endian
  for (size_t i = 0; i < count; i++) {
    uint8_t* row = data + 48 + i * 24;
    const char* path = rows[i].path;
    put_u32(row, rows[i].flags ? rows[i].flags : 0x0303);
    put_u32(row + 4, (uint32_t)at);
    at += (size_t)sprintf((char*)data + at, "%s", rows[i].name) + 1;
    put_u32(row + 8, (uint32_t)at);
    at += (size_t)sprintf((char*)data + at, "%s%s", path[0] == '/' ? "" : "/",
                          path) +
          1;
    if (rows[i].level == 0) continue;
    put_u32(row + 16, rows[i].level - 2);
    put_u32(row + 20, 1u << 30);  // bit 62: an index
  }
  (void)world;
  uint32_t names[3];
  for (uint32_t i = 0; i < 3; i++) {
    names[i] = (uint32_t)at;
    at += (size_t)sprintf((char*)data + at, "x86-64-v%u", i + 2) + 1;
  }
  at = (at + 3) & ~(size_t)3;
  put_u32(data + 32, (uint32_t)at);
  put_u32(data + at, 0xeaa42174u);
  put_u32(data + at + 4, 1);
  put_u32(data + at + 8, 1);
  put_u32(data + at + 16, (uint32_t)at + 24);
  put_u32(data + at + 20, 12);
  for (size_t i = 0; i < 3; i++) put_u32(data + at + 24 + i * 4, names[i]);
  *out_size = at + 36;
  return data;
}

void world_ldcache(const world_t* world, const world_library_t* rows,
                   size_t count) {
  size_t size = 0;
  uint8_t* data = world_ldcache_bytes(world, rows, count, &size);
  world_write(world, "etc/ld.so.cache", data, size);
  free(data);
}

void world_set(world_t* world, kilni_base_env_id_t id, const char* name) {
  assert_null(kilni_base_env_set(&world->env, id, world_path(world, name)));
}

kiln_locate_t* world_locate(world_t* world) {
  if (world->locate == NULL) {
    assert_null(
        kilni_locate_create(&world->options, &world->env, &world->locate));
  }
  assert_non_null(world->locate);
  return world->locate;
}

void world_forget(world_t* world) {
  kiln_locate_release(world->locate);
  world->locate = NULL;
}

kiln_locate_item_t* world_find(world_t* world, uint32_t kind,
                               const char* name) {
  kiln_locate_item_t* item = NULL;
  kiln_status_t status =
      kiln_locate_find(world_locate(world), kind, name, &item);
  if (!kiln_status_is_ok(status)) {
    char text[2048];
    kiln_status_format(status, sizeof(text), text, NULL);
    kiln_status_free(status);
    fail_msg("%s", text);
  }
  assert_non_null(item);
  return item;
}

void world_expect(world_t* world, uint32_t kind, const char* name,
                  uint32_t scope, const char* path) {
  kiln_locate_item_t* item = world_find(world, kind, name);
  assert_string_equal(kiln_locate_item_path(item),
                      path ? world_path(world, path) : "");
  assert_string_equal(kiln_locate_scope_name(kiln_locate_item_scope(item)),
                      kiln_locate_scope_name(path ? scope : 0));
  assert_true(kiln_locate_item_found(item) == (path != NULL));
  kiln_locate_item_release(item);
}

bool world_tried(const kiln_locate_item_t* item, const char* path,
                 const char* why) {
  for (uint32_t i = 0; i < kiln_locate_item_tried_count(item); i++) {
    const kiln_locate_tried_t* tried = kiln_locate_item_tried(item, i);
    if (strcmp(tried->path, path) == 0 && strstr(tried->why, why)) return true;
  }
  return false;
}
