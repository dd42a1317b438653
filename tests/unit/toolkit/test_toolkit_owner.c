// SPDX-License-Identifier: Apache-2.0
//
// toolkit: how many RECORDs of other people's distributions are read for a
// question about one piece.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>

#include "base/status_make.h"
#include "locate_world.h"
#include "toolkit/toolkit.h"

enum { STRANGERS = 300 };

// The library's calls, by the linker's --wrap.
int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...);

static int g_records;

int __wrap_open(const char* path, int flags, ...) {
  size_t size = strlen(path);
  g_records += size > 7 && strcmp(path + size - 7, "/RECORD") == 0;
  va_list rest;
  va_start(rest, flags);
  int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
  va_end(rest);
  return __real_open(path, flags, mode);
}

// A site with a library that says nothing of itself, and many distributions
// that have nothing to do with it.
static void put_site(world_t* world) {
  static const char* site;
  char name[128];
  char text[128];
  world_put(world, "env/site-packages/nvidia/cu13/lib/libcurand.so.10");
  for (int i = 0; i < STRANGERS; i++) {
    snprintf(name, sizeof(name),
             "env/site-packages/package_%d-1.0.dist-info/RECORD", i);
    snprintf(text, sizeof(text), "package_%d/__init__.py,,\n", i);
    world_text(world, name, text);
  }
  site = world_path(world, "env/site-packages");
  world->options.sites = &site;
  world->options.site_count = 1;
}

// Counts the RECORDs that a look at cuRAND reads.
static int count(world_t* world, uint32_t verify, uint32_t* out_line) {
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  kiln_toolkit_t* toolkit = NULL;
  options.locate = &world->options;
  options.verify = verify;
  assert_null(kilni_toolkit_create(&options, &world->env, &toolkit));
  g_records = 0;
  for (int turn = 0; turn < 2; turn++) {
    kiln_toolkit_item_t* item = NULL;
    assert_null(
        kiln_toolkit_resolve(toolkit, KILN_LOCATE_KIND_LIB, "curand", &item));
    *out_line = kiln_toolkit_item_line(item);
    kiln_toolkit_item_release(item);
  }
  kiln_toolkit_release(toolkit);
  return g_records;
}

static void test_strangers_are_not_asked(void** state) {
  world_t* world = *state;
  uint32_t line;
  put_site(world);
  assert_int_equal(count(world, KILN_SWITCH_DEFAULT, &line), 0);
  assert_int_equal(line, 0);
  assert_int_equal(count(world, KILN_SWITCH_OFF, &line), 0);
  // Its maker is: it says the line.
  world_text(world,
             "env/site-packages/nvidia_curand-10.4.0.35.dist-info/RECORD",
             "nvidia/cu13/lib/libcurand.so.10,,\n");
  assert_int_equal(count(world, KILN_SWITCH_DEFAULT, &line), 1);
  assert_int_equal(line, 13000);
}

static void test_a_full_look_asks_each_once(void** state) {
  world_t* world = *state;
  uint32_t line;
  put_site(world);
  assert_int_equal(count(world, KILN_SWITCH_ON, &line), STRANGERS);
}

// A stranger that has both the library and a header says the line by that; one
// that has the library alone does not.
static void test_a_header_is_worth_asking(void** state) {
  world_t* world = *state;
  uint32_t line;
  put_site(world);
  world_text(world, "env/site-packages/nvidia/cu13/include/cuda.h",
             "#define CUDA_VERSION 13020\n");
  world_text(world, "env/site-packages/package_7-1.0.dist-info/RECORD",
             "nvidia/cu13/lib/libcurand.so.10,,\n");
  assert_in_range(count(world, KILN_SWITCH_DEFAULT, &line), 1, STRANGERS);
  assert_int_equal(line, 0);
  world_text(world, "env/site-packages/package_7-1.0.dist-info/RECORD",
             "nvidia/cu13/lib/libcurand.so.10,,\n"
             "nvidia/cu13/include/cuda.h,,\n");
  assert_in_range(count(world, KILN_SWITCH_DEFAULT, &line), 1, STRANGERS);
  assert_int_equal(line, 13020);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_strangers_are_not_asked, world_setup,
                                      world_teardown),
      cmocka_unit_test_setup_teardown(test_a_full_look_asks_each_once,
                                      world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_a_header_is_worth_asking,
                                      world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
