// SPDX-License-Identifier: Apache-2.0
//
// locate: the secure mode: only what nobody else could have put there.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "locate_world.h"

#define LIB KILN_LOCATE_KIND_LIB
#define KIT "usr/local/cuda/lib64/libnvrtc.so.13"

// A world in the build's folder: below /tmp, which everybody can write, nothing
// is trusted.
static int setup(void** state) {
  if (world_setup(state) != 0) return 1;
  world_t* world = *state;
  if (rmdir(world->root) != 0) return 1;
  snprintf(world->root, sizeof(world->root), "%s/kiln-trust-XXXXXX",
           KILN_TEST_BUILD_DIR);
  return mkdtemp(world->root) == NULL;
}

// True if the folders above the tests belong to whom they should.
static bool can_be_trusted(world_t* world) {
  world_put(world, KIT);
  world->options.secure = KILN_SWITCH_ON;
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  bool found = kiln_locate_item_found(item);
  kiln_locate_item_release(item);
  return found;
}

static void what_others_can_write(void** state) {
  world_t* world = *state;
  if (!can_be_trusted(world)) {
    print_message("the build folder lies where others can write\n");
    skip();
  }
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_SYSTEM, KIT);
  static const struct {
    const char* path;
    mode_t mode;
    const char* why;
  } rows[] = {{KIT, 0666, "can be written by others"},
              {KIT, 0664, "can be written by others"},
              {"usr/local/cuda/lib64", 0777, "folder that others can write"},
              {"usr/local", 01777, "folder that others can write"},
              {"usr", 0775, "folder that others can write"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const char* path = world_path(world, rows[i].path);
    assert_int_equal(chmod(path, rows[i].mode), 0);
    world_forget(world);
    kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
    assert_false(kiln_locate_item_found(item));
    assert_true(world_tried(item, world_path(world, KIT), rows[i].why));
    kiln_locate_item_release(item);
    // Nobody asked, nobody minds.
    world->options.secure = KILN_SWITCH_OFF;
    world_forget(world);
    world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_SYSTEM, KIT);
    world->options.secure = KILN_SWITCH_ON;
    assert_int_equal(chmod(path, 0755), 0);
  }
}

static void what_belongs_to_others(void** state) {
  world_t* world = *state;
  if (getuid() != 0 || !can_be_trusted(world)) {
    print_message("only root can give files away\n");
    skip();
  }
  assert_int_equal(chown(world_path(world, KIT), 12345, 0), 0);
  world_forget(world);
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_false(kiln_locate_item_found(item));
  assert_true(
      world_tried(item, world_path(world, KIT), "belongs to another user"));
  kiln_locate_item_release(item);
  assert_int_equal(chown(world_path(world, KIT), 0, 0), 0);
  assert_int_equal(chown(world_path(world, "usr/local/cuda"), 12345, 0), 0);
  world_forget(world);
  item = world_find(world, LIB, "nvrtc");
  assert_true(world_tried(item, world_path(world, KIT), "another user"));
  kiln_locate_item_release(item);
}

static void links_are_followed_first(void** state) {
  world_t* world = *state;
  if (!can_be_trusted(world)) {
    print_message("the build folder lies where others can write\n");
    skip();
  }
  // A fine name for a file in a bad place.
  world_put(world, "bad/libnvrtc.so.13");
  assert_int_equal(chmod(world_path(world, "bad"), 0777), 0);
  world_remove(world, KIT);
  world_link(world, KIT, "../../../../bad/libnvrtc.so.13");
  world_forget(world);
  world_expect(world, LIB, "nvrtc", 0, NULL);
  // And what is found has no link in its path that could be turned.
  assert_int_equal(chmod(world_path(world, "bad"), 0755), 0);
  world_forget(world);
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  char* real = NULL;
  assert_null(kilni_base_path_real(
      kiln_allocator_libc(), world_path(world, "bad/libnvrtc.so.13"), &real));
  assert_string_equal(kiln_locate_item_path(item), real);
  kilni_base_strfree(kiln_allocator_libc(), real);
  kiln_locate_item_release(item);
}

static void no_variable_counts(void** state) {
  world_t* world = *state;
  if (!can_be_trusted(world)) {
    print_message("the build folder lies where others can write\n");
    skip();
  }
  world_remove(world, KIT);
  world_put(world, "kit/lib64/libnvrtc.so.13");
  world_put(world,
            "kit/lib/python3.11/site-packages/nvidia/cu13/lib/"
            "libnvrtc.so.13");
  static const kilni_base_env_id_t ids[] = {
      KILNI_ENV_CUDA_PATH, KILNI_ENV_CUDA_HOME, KILNI_ENV_CONDA_PREFIX,
      KILNI_ENV_VIRTUAL_ENV, KILNI_ENV_HOME};
  for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
    world_set(world, ids[i], "kit");
  }
  world_set(world, KILNI_ENV_LD_LIBRARY_PATH, "kit/lib64");
  world_set(world, KILNI_ENV_PYTHONPATH, "kit/lib/python3.11/site-packages");
  assert_null(kilni_base_env_set_member(&world->env, "KILN_LOCATE_LIB_NVRTC",
                                        world_path(world, "kit/lib64")));
  world_forget(world);
  world_expect(world, LIB, "nvrtc", 0, NULL);
  // What the caller names does.
  const char* root = world_path(world, "kit");
  world->options.roots = &root;
  world->options.root_count = 1;
  world_forget(world);
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_int_equal(kiln_locate_item_scope(item), KILN_LOCATE_SCOPE_ROOT);
  kiln_locate_item_release(item);
}

// ---- RECORD ----

#define SITE          "env/lib/python3.11/site-packages/"
#define FILE_OF_WHEEL SITE "nvidia/cu13/lib/libnvrtc.so.13"

// What RECORD says of the file in the wheel; NULL: it says nothing.
static void write_record(world_t* world, const char* hash) {
  char text[512];
  snprintf(text, sizeof(text),
           "nvidia_cuda_nvrtc-13.0.88.dist-info/RECORD,,\n%s%s%s",
           hash ? "nvidia/cu13/lib/libnvrtc.so.13," : "", hash ? hash : "",
           hash ? ",3\n" : "");
  world_text(world, SITE "nvidia_cuda_nvrtc-13.0.88.dist-info/RECORD", text);
  world_text(world, SITE "nvidia_cuda_nvrtc-13.0.88.dist-info/METADATA",
             "Metadata-Version: 2.1\nName: nvidia-cuda-nvrtc\n"
             "Version: 13.0.88\n");
}

static void files_are_what_their_record_says(void** state) {
  world_t* world = *state;
  static const struct {
    const char* hash;
    const char* why;  // NULL: it is taken
  } rows[] = {{"sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0", NULL},
              {"sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa1",
               "does not match its RECORD"},
              {"", "no SHA-256"},
              {NULL, "no RECORD names it"}};
  world_text(world, FILE_OF_WHEEL, "abc");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world->options.records = KILN_SWITCH_ON;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    write_record(world, rows[i].hash);
    world_forget(world);
    kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
    assert_true(kiln_locate_item_found(item) == (rows[i].why == NULL));
    if (rows[i].why != NULL &&
        !world_tried(item, world_path(world, FILE_OF_WHEEL), rows[i].why)) {
      fail_msg("row %zu", i);
    }
    kiln_locate_item_release(item);
  }
  // A later search looks at the disk again.
  write_record(world, rows[0].hash);
  kiln_locate_refresh(world->locate);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_WHEEL, FILE_OF_WHEEL);
  world_text(world, FILE_OF_WHEEL, "abd");
  kiln_locate_refresh(world->locate);
  world_expect(world, LIB, "nvrtc", 0, NULL);
  // Other places have no RECORD, and need none.
  world_put(world, KIT);
  kiln_locate_refresh(world->locate);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_SYSTEM, KIT);
}

// `pip install --target DIR` makes a folder of wheels by any name.
static void a_record_in_a_folder_of_any_name(void** state) {
  world_t* world = *state;
  char site[WORLD_PATH_BYTES];
  snprintf(site, sizeof(site), "%s", world_path(world, "wheels"));
  const char* sites[] = {site};
  world->options.sites = sites;
  world->options.site_count = 1;
  world->options.records = KILN_SWITCH_ON;
  world_text(world, "wheels/nvidia/cu13/lib/libnvrtc.so.13", "abc");
  world_text(world, "wheels/nvidia_cuda_nvrtc-13.0.88.dist-info/RECORD",
             "nvidia/cu13/lib/libnvrtc.so.13,"
             "sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n");
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_WHEEL,
               "wheels/nvidia/cu13/lib/libnvrtc.so.13");
}

// A wheel of any name may own what it owns.
static void a_record_of_any_name(void** state) {
  world_t* world = *state;
  world_text(world, SITE "cutensor/lib/libcutensor.so.2", "abc");
  world_text(world, SITE "somebody_elses-1.0.dist-info/RECORD",
             "cutensor/lib/libcutensor.so.2,"
             "sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\n");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world->options.records = KILN_SWITCH_ON;
  world_expect(world, LIB, "cutensor", KILN_LOCATE_SCOPE_WHEEL,
               SITE "cutensor/lib/libcutensor.so.2");
}

static void the_sha256_of_what_was_found(void** state) {
  world_t* world = *state;
  // Of "abc", by FIPS 180-4.
  static const uint8_t wanted[KILN_LOCATE_SHA256_BYTES] = {
      0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
      0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
      0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
  static const uint8_t nothing[KILN_LOCATE_SHA256_BYTES] = {0};
  uint8_t got[KILN_LOCATE_SHA256_BYTES];
  uint64_t size = 9;
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  kiln_status_t status = kiln_locate_item_sha256(item, &size, got);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_STATE);
  kiln_status_free(status);
  assert_int_equal(size, 0);
  assert_memory_equal(got, nothing, sizeof(got));
  kiln_locate_item_release(item);

  world_text(world, KIT, "abc");
  world_forget(world);
  item = world_find(world, LIB, "nvrtc");
  assert_null(kiln_locate_item_sha256(item, &size, got));
  assert_int_equal(size, 3);
  assert_memory_equal(got, wanted, sizeof(got));
  // It is read each time: the item is of then, the digest of now.
  world_text(world, KIT, "abcd");
  assert_null(kiln_locate_item_sha256(item, &size, got));
  assert_int_equal(size, 4);
  assert_memory_not_equal(got, wanted, sizeof(got));
  assert_int_equal(remove(kiln_locate_item_file(item)), 0);
  status = kiln_locate_item_sha256(item, &size, got);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
  assert_int_equal(size, 0);
  kiln_locate_item_release(item);
  status = kiln_locate_item_sha256(NULL, &size, got);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
}

#define IN_A_WORLD(test) \
  cmocka_unit_test_setup_teardown(test, setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_WORLD(what_others_can_write),
      IN_A_WORLD(what_belongs_to_others),
      IN_A_WORLD(links_are_followed_first),
      IN_A_WORLD(no_variable_counts),
      IN_A_WORLD(files_are_what_their_record_says),
      IN_A_WORLD(a_record_in_a_folder_of_any_name),
      IN_A_WORLD(a_record_of_any_name),
      IN_A_WORLD(the_sha256_of_what_was_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
