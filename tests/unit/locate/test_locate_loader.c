// SPDX-License-Identifier: Apache-2.0
//
// locate: where the system's loader would look, and the toolkit it leads to.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "locate/locate_ldcache.h"
#include "locate_world.h"

#define LIB KILN_LOCATE_KIND_LIB

static void expect_via(world_t* world, const char* path, const char* via) {
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_string_equal(kiln_locate_item_path(item), world_path(world, path));
  assert_int_equal(kiln_locate_item_scope(item), KILN_LOCATE_SCOPE_LOADER);
  assert_string_equal(kiln_locate_item_via(item), via);
  kiln_locate_item_release(item);
}

static void the_loaders_order(void** state) {
  world_t* world = *state;
  world_put(world, "one/libnvrtc.so.12");
  world_put(world, "two/libnvrtc.so.13");
  world_put(world, "three/libnvrtc.so.13");
  world_put(world, "usr/lib64/libnvrtc.so.13");
  static const world_library_t rows[] = {
      {"libnvrtc.so.13", "three/libnvrtc.so.13", 0, 0}};
  world_ldcache(world, rows, 1);
  char text[1024];
  snprintf(text, sizeof(text), "%s:%s;%s", world_path(world, "gone"),
           world_path(world, "one"), world_path(world, "two"));
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_LD_LIBRARY_PATH, text));
  // Each name is looked for everywhere before the next is.
  expect_via(world, "two/libnvrtc.so.13", "LD_LIBRARY_PATH");
  world_remove(world, "two");
  kiln_locate_refresh(world->locate);
  expect_via(world, "three/libnvrtc.so.13", "ld.so.cache");
  world_remove(world, "three");  // the cache is out of date
  kiln_locate_refresh(world->locate);
  expect_via(world, "usr/lib64/libnvrtc.so.13", "default folders");
  world_remove(world, "usr");
  kiln_locate_refresh(world->locate);
  expect_via(world, "one/libnvrtc.so.12", "LD_LIBRARY_PATH");
}

static void parts_that_are_passed_over(void** state) {
  world_t* world = *state;
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_LD_LIBRARY_PATH,
                                 "lib:/x/$LIB:/y/${PLATFORM}:"));
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_true(world_tried(item, "lib", "not absolute"));
  assert_true(world_tried(item, "/x/$LIB", "token"));
  assert_true(world_tried(item, "/y/${PLATFORM}", "token"));
  assert_true(world_tried(item, "LD_LIBRARY_PATH", "working directory"));
  kiln_locate_item_release(item);
}

static void the_programs_own_folder(void** state) {
  world_t* world = *state;
  char exe[4096];
  ssize_t size = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
  assert_true(size > 0);
  exe[size] = 0;
  *strrchr(exe, '/') = 0;
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_LD_LIBRARY_PATH,
                                 "$ORIGIN/no:${ORIGIN}/../none"));
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  char path[5000];
  snprintf(path, sizeof(path), "%s/no", exe);
  assert_true(world_tried(item, path, "no such folder"));
  snprintf(path, sizeof(path), "%s/../none", exe);
  assert_true(world_tried(item, path, "no such folder"));
  kiln_locate_item_release(item);
}

// ---- The toolkit of the loader's cudart ----

static void expect_root(world_t* world, const char* cudart, const char* root) {
  world_put(world, cudart);
  const world_library_t row = {"libcudart.so.13", cudart, 0, 0};
  world_ldcache(world, &row, 1);
  world_forget(world);
  kiln_locate_item_t* item =
      world_find(world, KILN_LOCATE_KIND_BITCODE, "device");
  if (root == NULL) {
    assert_false(kiln_locate_item_found(item));
  } else {
    char* real = NULL;
    assert_null(kilni_base_path_real(kiln_allocator_libc(),
                                     world_path(world, root), &real));
    assert_int_equal(kiln_locate_item_scope(item),
                     KILN_LOCATE_SCOPE_LOADER_ROOT);
    assert_string_equal(kiln_locate_item_root(item), real);
    kilni_base_strfree(kiln_allocator_libc(), real);
  }
  kiln_locate_item_release(item);
}

static void the_root_of_a_toolkit(void** state) {
  world_t* world = *state;
  world_put(world, "kit/nvvm/libdevice/libdevice.10.bc");
  expect_root(world, "kit/lib64/libcudart.so.13", "kit");
  expect_root(world, "kit/lib/libcudart.so.13", "kit");
  expect_root(world, "kit/targets/x86_64-linux/lib/libcudart.so.13", "kit");
  expect_root(world, "kit/targets/x86_64-linux/lib64/libcudart.so.13", "kit");
  expect_root(world, "kit/x86_64-linux-gnu/libcudart.so.13", NULL);
  expect_root(world, "kit/libcudart.so.13", NULL);
}

static void a_link_is_no_toolkit(void** state) {
  world_t* world = *state;
  // The loader's spelling is a link beside other programs' files.
  world_put(world, "opt/kit/lib64/libcudart.so.13");
  world_put(world, "opt/kit/include/nvrtc.h");
  world_put(world, "usr/local/include/nvrtc.h");
  world_link(world, "usr/local/lib/libcudart.so.13",
             world_path(world, "opt/kit/lib64/libcudart.so.13"));
  static const world_library_t rows[] = {
      {"libcudart.so.13", "usr/local/lib/libcudart.so.13", 0, 0}};
  world_ldcache(world, rows, 1);
  kiln_locate_item_t* item =
      world_find(world, KILN_LOCATE_KIND_HEADER, "nvrtc");
  assert_int_equal(kiln_locate_item_scope(item), KILN_LOCATE_SCOPE_LOADER_ROOT);
  assert_non_null(strstr(kiln_locate_item_path(item), "opt/kit/include"));
  kiln_locate_item_release(item);
}

static void every_kind_has_the_fallback(void** state) {
  world_t* world = *state;
  world_put(world, "kit/lib64/libcudart.so.13");
  world_put(world, "kit/lib64/libcudadevrt.a");
  world_put(world, "kit/lib64/libcufft.so.12");
  world_put(world, "kit/extras/CUPTI/lib64/libcupti.so.13");
  world_put(world, "kit/nvvm/lib64/libnvvm.so.4");
  world_put(world, "kit/include/cuda_runtime.h");
  static const world_library_t rows[] = {
      {"libcudart.so.13", "kit/lib64/libcudart.so.13", 0, 0}};
  world_ldcache(world, rows, 1);
  static const struct {
    uint32_t kind;
    const char* name;
  } wants[] = {{KILN_LOCATE_KIND_STATIC, "cudadevrt"},
               {LIB, "cufft"},
               {LIB, "cupti"},
               {LIB, "nvvm"},
               {KILN_LOCATE_KIND_HEADER, "cudart"}};
  for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
    kiln_locate_item_t* item = world_find(world, wants[i].kind, wants[i].name);
    assert_int_equal(kiln_locate_item_scope(item),
                     KILN_LOCATE_SCOPE_LOADER_ROOT);
    kiln_locate_item_release(item);
  }
  // CUDA_PATH comes before it.
  world_put(world, "other/include/cuda_runtime.h");
  world_set(world, KILNI_ENV_CUDA_PATH, "other");
  world_forget(world);
  world_expect(world, KILN_LOCATE_KIND_HEADER, "cudart",
               KILN_LOCATE_SCOPE_CUDA_PATH, "other/include");
}

// ---- The cache ----

static kiln_string_view_t look(const uint8_t* data, size_t size,
                               const char* name, uint32_t level) {
  kilni_locate_ldcache_t cache;
  const char* why = NULL;
  assert_true(kilni_locate_ldcache_open(data, size, &cache, &why));
  return kilni_locate_ldcache_find(&cache, name, KILNI_LDCACHE_X86_64, level);
}

static void names_in_the_cache(void** state) {
  world_t* world = *state;
  // Digits count as numbers, and are greater than other characters.
  static const world_library_t rows[] = {
      {"libz.so.10", "/z10", 0, 0},     {"libz.so.9", "/z9", 0, 0},
      {"libz.so", "/z", 0, 0},          {"libx.so.1", "/x4", 0, 4},
      {"libx.so.1", "/x3", 0, 3},       {"libx.so.1", "/x", 0, 0},
      {"libx.so.1", "/x32", 0x0003, 0}, {"liba2.so", "/a2", 0, 0},
      {"liba.so", "/a", 0, 0}};
  size_t size = 0;
  uint8_t* data = world_ldcache_bytes(world, rows, 9, &size);
  static const struct {
    const char* name;
    uint32_t level;
    const char* path;
  } wants[] = {{"libz.so.10", 0, "/z10"},
               {"libz.so.9", 0, "/z9"},
               {"libz.so", 0, "/z"},
               {"libz.so.09", 0, ""},
               {"libz.so.1", 0, ""},
               {"libx.so.1", 0, "/x"},
               {"libx.so.1", 2, "/x"},
               {"libx.so.1", 3, "/x3"},
               {"libx.so.1", 4, "/x4"},
               {"liba2.so", 0, "/a2"},
               {"liba.so", 0, "/a"},
               {"", 0, ""},
               {"zzz", 0, ""}};
  for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
    kiln_string_view_t path = look(data, size, wants[i].name, wants[i].level);
    if (!kilni_base_sv_equal_cstr(path, wants[i].path)) {
      fail_msg("%s at level %u is \"%.*s\"", wants[i].name,
               (unsigned)wants[i].level, KILNI_SV(path));
    }
  }
  // The same behind a cache of the old form with two rows.
  size_t head = 16 + 2 * 12;
  uint8_t* both = calloc(1, head + size);
  memcpy(both, "ld.so-1.7.0", 11);
  both[12] = 2;
  memcpy(both + head, data, size);
  assert_true(
      kilni_base_sv_equal_cstr(look(both, head + size, "libz.so.9", 0), "/z9"));
  free(both);
  free(data);
}

static void caches_that_are_none(void** state) {
  world_t* world = *state;
  static const world_library_t rows[] = {{"liba.so", "/a", 0, 0}};
  size_t size = 0;
  uint8_t* data = world_ldcache_bytes(world, rows, 1, &size);
  kilni_locate_ldcache_t cache;
  const char* why = NULL;
  // Cut off anywhere, it is refused or has nothing wrong to say.
  for (size_t cut = 0; cut < size; cut++) {
    uint8_t* part = malloc(cut + 1);
    memcpy(part, data, cut);
    if (kilni_locate_ldcache_open(part, cut, &cache, &why)) {
      kiln_string_view_t path =
          kilni_locate_ldcache_find(&cache, "liba.so", KILNI_LDCACHE_X86_64, 4);
      assert_true(path.size == 0 || kilni_base_sv_equal_cstr(path, "/a"));
    } else {
      assert_non_null(why);
    }
    free(part);
  }
  data[28] = 3;
  assert_false(kilni_locate_ldcache_open(data, size, &cache, &why));
  assert_non_null(strstr(why, "byte order"));
  data[28] = 2;
  data[23] = 0x7f;
  assert_false(kilni_locate_ldcache_open(data, size, &cache, &why));
  assert_non_null(strstr(why, "cut off"));
  memcpy(data, "ELF", 3);
  assert_false(kilni_locate_ldcache_open(data, size, &cache, &why));
  free(data);
  // What is wrong with it is in the trail.
  world_text(world, "etc/ld.so.cache", "this is no cache");
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_true(
      world_tried(item, world_path(world, "etc/ld.so.cache"), "not a cache"));
  kiln_locate_item_release(item);
}

// Every name of this machine's own cache is found in it.
static void this_machines_cache(void** state) {
  (void)state;
  uint8_t* data = NULL;
  size_t size = 0;
  kiln_status_t status = kilni_base_file_read(
      kiln_allocator_libc(), "/etc/ld.so.cache", 64 << 20, &data, &size);
  kilni_locate_ldcache_t cache;
  const char* why = NULL;
  if (!kiln_status_is_ok(status) ||
      !kilni_locate_ldcache_open(data, size, &cache, &why)) {
    kiln_status_free(status);
    print_message("this machine has no ld.so.cache that can be read\n");
    skip();
    return;
  }
  uint32_t known = 0;
  for (uint32_t i = 0; i < cache.count; i++) {
    const uint8_t* row = cache.base + 48 + (size_t)i * 24;
    uint32_t flags, name, path;
    memcpy(&flags, row, 4);
    memcpy(&name, row + 4, 4);
    memcpy(&path, row + 8, 4);
    uint64_t hwcap;
    memcpy(&hwcap, row + 16, 8);
    if (hwcap != 0) continue;
    kiln_string_view_t found = kilni_locate_ldcache_find(
        &cache, (const char*)cache.base + name, flags, 0);
    if (found.size == 0) fail_msg("%s", (const char*)cache.base + name);
    known++;
  }
  assert_true(known > 0 || cache.count == 0);
  kilni_base_file_free(kiln_allocator_libc(), data, size);
}

// ---- What is loaded ----

static void a_loaded_library_comes_first(void** state) {
  world_t* world = *state;
  // A library of ours under a name of the catalog.
  uint8_t* data = NULL;
  size_t size = 0;
  assert_null(kilni_base_file_read(kiln_allocator_libc(), KILN_LOCATE_MODULE,
                                   64 << 20, &data, &size));
  world_write(world, "process/libcufile.so.0", data, size);
  kilni_base_file_free(kiln_allocator_libc(), data, size);
  world_put(world,
            "env/lib/python3.11/site-packages/nvidia/cu13/lib/"
            "libcufile.so.0");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world->options.loaded = KILN_SWITCH_ON;
  world_expect(world, LIB, "cufile", KILN_LOCATE_SCOPE_WHEEL,
               "env/lib/python3.11/site-packages/nvidia/cu13/lib/"
               "libcufile.so.0");
  void* handle = dlopen(world_path(world, "process/libcufile.so.0"),
                        RTLD_NOW | RTLD_LOCAL);
  assert_non_null(handle);
  kiln_locate_refresh(world->locate);
  world_expect(world, LIB, "cufile", KILN_LOCATE_SCOPE_LOADED,
               "process/libcufile.so.0");
  world->options.loaded = KILN_SWITCH_DEFAULT;  // a mounted system
  world_forget(world);
  world_expect(world, LIB, "cufile", KILN_LOCATE_SCOPE_WHEEL,
               "env/lib/python3.11/site-packages/nvidia/cu13/lib/"
               "libcufile.so.0");
  dlclose(handle);
}

#define IN_A_WORLD(test) \
  cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_WORLD(the_loaders_order),
      IN_A_WORLD(parts_that_are_passed_over),
      IN_A_WORLD(the_programs_own_folder),
      IN_A_WORLD(the_root_of_a_toolkit),
      IN_A_WORLD(a_link_is_no_toolkit),
      IN_A_WORLD(every_kind_has_the_fallback),
      IN_A_WORLD(names_in_the_cache),
      IN_A_WORLD(caches_that_are_none),
      cmocka_unit_test(this_machines_cache),
      IN_A_WORLD(a_loaded_library_comes_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
