// SPDX-License-Identifier: Apache-2.0
//
// locate: trees that nobody would make by accident, and memory that runs out.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"
#include "fault_run.h"
#include "locate_world.h"

#define LIB  KILN_LOCATE_KIND_LIB
#define SITE "env/lib/python3.11/site-packages/"

enum { NOBODY = 65534 };

static void circles(void** state) {
  world_t* world = *state;
  world_link(world, SITE "nvidia/cu13/lib/libnvrtc.so.13", "libnvrtc.so.13");
  world_link(world, SITE "nvidia/cuda_nvrtc/lib", "../cuda_nvrtc/lib");
  world_link(world, "usr/local/cuda", "cuda");
  world_link(world, "kit/lib64", ".");
  world_put(world, "kit/libnvrtc.so.13");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_string_equal(kiln_locate_item_path(item),
                      world_path(world, "kit/lib64/libnvrtc.so.13"));
  assert_true(world_tried(
      item, world_path(world, SITE "nvidia/cu13/lib/libnvrtc.so.13"),
      "symbolic links"));
  kiln_locate_item_release(item);
}

static void what_cannot_be_read(void** state) {
  world_t* world = *state;
  world_put(world, SITE "nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, "kit/lib64/libnvrtc.so.12");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  assert_int_equal(chmod(world_path(world, SITE "nvidia"), 0), 0);
  // Root may read everything, so it becomes somebody else for a while.
  bool is_root = geteuid() == 0;
  assert_int_equal(chmod(world->root, 0755), 0);
  if (is_root) assert_int_equal(seteuid(NOBODY), 0);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/lib64/libnvrtc.so.12");
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_true(world_tried(
      item, world_path(world, SITE "nvidia/cu13/lib/libnvrtc.so.13"),
      "Permission denied"));
  kiln_locate_item_release(item);
  if (is_root) assert_int_equal(seteuid(0), 0);
  assert_int_equal(chmod(world_path(world, SITE "nvidia"), 0700), 0);
}

static void not_a_file(void** state) {
  world_t* world = *state;
  world_put(world, "kit/lib64/x");
  world_folder(world, "kit/lib64/libnvrtc.so.13");
  assert_int_equal(mkfifo(world_path(world, "kit/lib64/libnvrtc.so.12"), 0644),
                   0);
  world_link(world, "kit/lib/libnvrtc.so.13", "/nowhere/at/all");
  world_put(world, "usr/local/cuda");  // a file where a toolkit should be
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_false(kiln_locate_item_found(item));
  assert_true(world_tried(item, world_path(world, "kit/lib64/libnvrtc.so.13"),
                          "a folder"));
  assert_true(world_tried(item, world_path(world, "kit/lib64/libnvrtc.so.12"),
                          "neither"));
  assert_true(world_tried(item, world_path(world, "kit/lib/libnvrtc.so.13"),
                          "no such file"));
  assert_true(world_tried(item, world_path(world, "usr/local/cuda"), "a file"));
  kiln_locate_item_release(item);
}

static void names_with_newlines(void** state) {
  world_t* world = *state;
  world_put(world, "k\ni\tt\x01/lib64/libnvrtc.so.13");
  world_put(world, "usr/local/cuda-13\n.0/lib64/libnvrtc.so.12");
  world_set(world, KILNI_ENV_CUDA_PATH, "k\ni\tt\x01");
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_CUDA_PATH,
               "k\ni\tt\x01/lib64/libnvrtc.so.13");
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_CUDA_PATH, NULL));
  world_forget(world);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_SYSTEM,
               "usr/local/cuda-13\n.0/lib64/libnvrtc.so.12");
}

static void long_paths(void** state) {
  world_t* world = *state;
  size_t size = 20000;
  char* text = malloc(size + 1);
  memset(text, 'a', size);
  text[0] = '/';
  text[size] = 0;
  static const kilni_base_env_id_t ids[] = {
      KILNI_ENV_CUDA_PATH,       KILNI_ENV_CONDA_PREFIX, KILNI_ENV_VIRTUAL_ENV,
      KILNI_ENV_LD_LIBRARY_PATH, KILNI_ENV_PYTHONPATH,   KILNI_ENV_HOME};
  for (size_t length = size; length > 8000; length -= 1500) {
    text[length] = 0;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
      assert_null(kilni_base_env_set(&world->env, ids[i], text));
    }
    world_forget(world);
    world_expect(world, LIB, "nvrtc", 0, NULL);
    world_expect(world, KILN_LOCATE_KIND_HEADER, "cccl", 0, NULL);
  }
  free(text);
}

static void a_hundred_thousand_packages(void** state) {
  world_t* world = *state;
  world_put(world, SITE "nvidia/cu13/lib/libnvrtc.so.13");
  char site[512];
  snprintf(site, sizeof(site), "%s", world_path(world, SITE));
  for (int i = 0; i < 100000; i++) {
    char path[1024];
    snprintf(path, sizeof(path), "%spackage_%d", site, i);
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    assert_true(fd >= 0);
    close(fd);
  }
  // And more parts of one than a listing takes.
  for (int i = 0; i < 5000; i++) {
    char path[1024];
    snprintf(path, sizeof(path), "%snvidia/part_%d", site, i);
    assert_int_equal(mkdir(path, 0755), 0);
  }
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  uint64_t start = kilni_base_time_ns();
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    const kiln_locate_entry_t* entry = kiln_locate_entry(i);
    kiln_locate_item_t* item = world_find(world, kiln_locate_entry_kind(entry),
                                          kiln_locate_entry_name(entry));
    bool is_nvrtc = strcmp(kiln_locate_entry_name(entry), "nvrtc") == 0 &&
                    kiln_locate_entry_kind(entry) == LIB;
    assert_true(kiln_locate_item_found(item) == is_nvrtc);
    kiln_locate_item_release(item);
  }
  // Far more than it takes, and far less than one listing for each thing.
  assert_true(kilni_base_time_ns() - start < UINT64_C(5000000000));
}

// ---- Files that vanish ----

// Somebody else at work on the same tree. one-thread
typedef struct vandal_t {
  const world_t* world;
  char path[2][512];
  atomic_bool stop;
} vandal_t;

static void* vandalise(void* user) {
  vandal_t* vandal = user;
  while (!atomic_load(&vandal->stop)) {
    (void)rename(vandal->path[0], vandal->path[1]);
    (void)rename(vandal->path[1], vandal->path[0]);
  }
  return NULL;
}

static void files_that_vanish(void** state) {
  world_t* world = *state;
  world_put(world, SITE "nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, SITE "nvidia/cu13/lib/libcufft.so.12");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  static const char* const moved[] = {
      SITE "nvidia", SITE "nvidia/cu13/lib/libnvrtc.so.13", "env/lib"};
  for (size_t i = 0; i < 3; i++) {
    vandal_t vandal;
    vandal.world = world;
    atomic_init(&vandal.stop, false);
    snprintf(vandal.path[0], sizeof(vandal.path[0]), "%s",
             world_path(world, moved[i]));
    snprintf(vandal.path[1], sizeof(vandal.path[1]), "%s/moved", world->root);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, vandalise, &vandal), 0);
    for (int round = 0; round < 300; round++) {
      kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
      const char* path = kiln_locate_item_path(item);
      assert_true(path[0] == 0 || strstr(path, "libnvrtc.so.13") != NULL);
      kiln_locate_item_release(item);
      kiln_locate_item_release(world_find(world, LIB, "cufft"));
      kiln_locate_refresh(world->locate);
    }
    atomic_store(&vandal.stop, true);
    pthread_join(thread, NULL);
    (void)rename(vandal.path[1], vandal.path[0]);
  }
}

// ---- Memory ----

static kiln_status_t body(kiln_allocator_t allocator, void* user) {
  world_t* world = user;
  kiln_locate_options_t options = world->options;
  options.allocator = &allocator;
  options.records = KILN_SWITCH_ON;
  kiln_locate_t* locate = NULL;
  kiln_locate_item_t* item = NULL;
  kiln_locate_set_t* set = NULL;
  kiln_status_t status = kilni_locate_create(&options, &world->env, &locate);
  assert_int_equal(locate == NULL, !kiln_status_is_ok(status));
  if (kiln_status_is_ok(status)) {
    status = kiln_locate_find(locate, LIB, "nvrtc", &item);
    assert_int_equal(item == NULL, !kiln_status_is_ok(status));
  }
  kiln_locate_item_release(item);
  item = NULL;
  if (kiln_status_is_ok(status)) {
    status = kiln_locate_find(locate, KILN_LOCATE_KIND_HEADER, "cccl", &item);
    assert_int_equal(item == NULL, !kiln_status_is_ok(status));
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_locate_find_all(locate, LIB, "nvrtc", &set);
    assert_int_equal(set == NULL, !kiln_status_is_ok(status));
  }
  kiln_locate_set_release(set);
  set = NULL;
  const kiln_locate_want_t wants[] = {{LIB, 0, "nvrtc"}, {LIB, 0, "cufft"}};
  if (kiln_status_is_ok(status)) {
    status = kiln_locate_find_set(locate, wants, 2, &set);
    assert_int_equal(set == NULL, !kiln_status_is_ok(status));
  }
  kiln_locate_set_release(set);
  kiln_locate_item_release(item);
  kiln_locate_release(locate);
  return status;
}

static void memory_may_run_out(void** state) {
  world_t* world = *state;
  world_text(world, "env/pyvenv.cfg",
             "home = /usr/bin\ninclude-system-site-packages = true\n");
  world_put(world, SITE "nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  world_put(world, "usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  world_put(world, "usr/local/cuda-13.0/include/cccl/cuda/std/version");
  world_link(world, "usr/local/cuda", "cuda-13.0");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  world_set(world, KILNI_ENV_CUDA_HOME, "kat");
  assert_null(kilni_base_env_set_member(&world->env, "KILN_LOCATE_LIB_CUFILE",
                                        "/nowhere"));
  static const world_library_t rows[] = {
      {"libcudart.so.13", "usr/local/cuda/lib64/libcudart.so.13", 0, 0}};
  world_ldcache(world, rows, 1);
  world_put(world, "usr/local/cuda-13.0/lib64/libcudart.so.13");
  assert_true(fault_run_allocations(body, world, 0) > 30);
}

// ---- Threads ----

// One of many that ask the same. one-thread
typedef struct asker_t {
  kiln_locate_t* locate;
  kiln_locate_item_t* items[64];
  pthread_t thread;
} asker_t;

static void* ask(void* user) {
  asker_t* asker = user;
  for (uint32_t i = 0; i < 64; i++) {
    const kiln_locate_entry_t* entry = kiln_locate_entry(i);
    kiln_status_t status =
        kiln_locate_find(asker->locate, kiln_locate_entry_kind(entry),
                         kiln_locate_entry_name(entry), &asker->items[i]);
    if (!kiln_status_is_ok(status)) abort();
  }
  return NULL;
}

static void one_answer_for_all_threads(void** state) {
  world_t* world = *state;
  world_put(world, "kit/lib64/libcublas.so.13");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  asker_t askers[8];
  for (int i = 0; i < 8; i++) {
    askers[i].locate = world_locate(world);
    assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]),
                     0);
  }
  for (int i = 0; i < 8; i++) pthread_join(askers[i].thread, NULL);
  for (int i = 0; i < 8; i++) {
    for (int j = 0; j < 64; j++) {
      assert_ptr_equal(askers[i].items[j], askers[0].items[j]);
    }
  }
  // Items outlive a refresh, which may come at any time.
  kiln_locate_refresh(world->locate);
  for (int i = 0; i < 8; i++) {
    for (int j = 0; j < 64; j++) {
      assert_non_null(kiln_locate_item_entry(askers[i].items[j]));
      kiln_locate_item_release(askers[i].items[j]);
    }
  }
}

#define IN_A_WORLD(test) \
  cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_WORLD(circles),
      IN_A_WORLD(what_cannot_be_read),
      IN_A_WORLD(not_a_file),
      IN_A_WORLD(names_with_newlines),
      IN_A_WORLD(long_paths),
      IN_A_WORLD(a_hundred_thousand_packages),
      IN_A_WORLD(files_that_vanish),
      IN_A_WORLD(memory_may_run_out),
      IN_A_WORLD(one_answer_for_all_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
