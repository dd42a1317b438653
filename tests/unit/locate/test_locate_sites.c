// SPDX-License-Identifier: Apache-2.0
//
// locate: which site-packages folders there are, without running Python.
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

#include "base/str.h"
#include "locate/locate_pyvenv.h"
#include "locate_world.h"

#define ENV "env/lib/python3.11/site-packages"

// Asserts the folders of the context, in order; NULL ends the list.
static void expect_sites(world_t* world, const char* const* names) {
  world_forget(world);
  for (uint32_t i = 0;; i++) {
    const char* path = NULL;
    assert_null(kilni_locate_site(world_locate(world), i, &path));
    if (names[i] == NULL) {
      if (path != NULL) fail_msg("one too many: %s", path);
      return;
    }
    if (path == NULL) fail_msg("%s is missing", names[i]);
    assert_string_equal(path, world_path(world, names[i]));
  }
}

#define EXPECT_SITES(world, ...) \
  expect_sites(world, (const char* const[]){__VA_ARGS__, NULL})
#define EXPECT_NONE(world) expect_sites(world, (const char* const[]){NULL})

// A virtual environment for Python 3.11 whose base lies in base/.
static void make_environment(world_t* world, bool system_sites) {
  char text[512];
  snprintf(text, sizeof(text),
           "home = %s\ninclude-system-site-packages = %s\n"
           "version = 3.11.7\nexecutable = /usr/bin/python3.11\n",
           world_path(world, "base/bin"), system_sites ? "true" : "false");
  world_text(world, "env/pyvenv.cfg", text);
  world_put(world, ENV "/x");
  world_put(world, "base/lib/python3.11/site-packages/x");
  world_put(world, "home/.local/lib/python3.11/site-packages/x");
  world_set(world, KILNI_ENV_HOME, "home");
}

static void an_environment_is_alone(void** state) {
  world_t* world = *state;
  make_environment(world, false);
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  EXPECT_SITES(world, ENV);
  kiln_locate_item_t* item = world_find(world, KILN_LOCATE_KIND_LIB, "nvrtc");
  kiln_locate_item_release(item);
}

static void an_environment_inherits(void** state) {
  world_t* world = *state;
  make_environment(world, true);
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  // Its own, then the user's, then the base's: as Python orders them.
  EXPECT_SITES(world, ENV, "home/.local/lib/python3.11/site-packages",
               "base/lib/python3.11/site-packages");
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_PYTHONNOUSERSITE, "1"));
  EXPECT_SITES(world, ENV, "base/lib/python3.11/site-packages");
}

static void what_is_there_decides(void** state) {
  world_t* world = *state;
  // No version in the file, and none of the usual names.
  world_text(world, "env/pyvenv.cfg", "home = /nowhere\n");
  world_put(world, "env/lib/pypy3.10/site-packages/x");
  world_put(world, "env/lib/python3.13t/site-packages/x");
  world_put(world, "env/lib/pythonx/y");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  EXPECT_SITES(world, "env/lib/python3.13t/site-packages",
               "env/lib/pypy3.10/site-packages");
  // A version in the file that is not there.
  world_text(world, "env/pyvenv.cfg", "version_info = 3.9.1.final.0\n");
  EXPECT_SITES(world, "env/lib/python3.13t/site-packages",
               "env/lib/pypy3.10/site-packages");
  // No file at all.
  world_remove(world, "env/pyvenv.cfg");
  EXPECT_SITES(world, "env/lib/python3.13t/site-packages",
               "env/lib/pypy3.10/site-packages");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "gone");
  EXPECT_NONE(world);
}

static void two_library_folders(void** state) {
  world_t* world = *state;
  make_environment(world, false);
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_link(world, "env/lib64", "lib");
  EXPECT_SITES(world, ENV);
  world_remove(world, "env/lib64");
  world_put(world, "env/lib64/python3.11/site-packages/x");
  EXPECT_SITES(world, ENV, "env/lib64/python3.11/site-packages");
}

static void a_conda_environment(void** state) {
  world_t* world = *state;
  make_environment(world, false);
  world_put(world, "conda/lib/python3.11/site-packages/x");
  world_set(world, KILNI_ENV_CONDA_PREFIX, "conda");
  EXPECT_SITES(world, "home/.local/lib/python3.11/site-packages",
               "conda/lib/python3.11/site-packages");
  // The active environment is one: the inner.
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  EXPECT_SITES(world, ENV);
}

static void the_systems_own(void** state) {
  world_t* world = *state;
  world_put(world, "usr/lib/python3.11/os.py");
  world_put(world, "usr/lib/python3/dist-packages/x");
  world_put(world, "usr/local/lib/python3.11/dist-packages/x");
  world_put(world, "home/.local/lib/python3.11/site-packages/x");
  world_set(world, KILNI_ENV_HOME, "home");
  // Debian's names.
  EXPECT_SITES(world, "home/.local/lib/python3.11/site-packages",
               "usr/local/lib/python3.11/dist-packages",
               "usr/lib/python3/dist-packages");
  // Everybody else's, newest first.
  world_remove(world, "usr/lib/python3");
  world_remove(world, "home");
  world_remove(world, "usr/local");
  world_put(world, "usr/lib/python3.11/site-packages/x");
  world_put(world, "usr/lib/python3.9/site-packages/x");
  world_put(world, "usr/lib64/python3.12/site-packages/x");
  world_put(world, "usr/lib/python3.12/x");
  EXPECT_SITES(world, "usr/lib64/python3.12/site-packages",
               "usr/lib/python3.11/site-packages",
               "usr/lib/python3.9/site-packages");
  // The one that is called python3, where that can be told.
  world_link(world, "usr/bin/python3", "python3.11");
  EXPECT_SITES(world, "usr/lib/python3.11/site-packages");
}

static void python_path_comes_last(void** state) {
  world_t* world = *state;
  make_environment(world, false);
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  char text[1024];
  snprintf(text, sizeof(text), "%s::relative:%s", world_path(world, "one"),
           world_path(world, "two/"));
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_PYTHONPATH, text));
  EXPECT_SITES(world, ENV, "one", "two");
}

static void named_sites_are_all(void** state) {
  world_t* world = *state;
  make_environment(world, false);
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_PYTHONPATH, "other");
  char one[256];
  snprintf(one, sizeof(one), "%s", world_path(world, "one/"));
  const char* sites[] = {one};
  world->options.sites = sites;
  world->options.site_count = 1;
  EXPECT_SITES(world, "one");
}

static void expect_python(world_t* world, const char* program,
                          const char* const* names) {
  char path[512];
  snprintf(path, sizeof(path), "%s", world_path(world, program));
  const char* pythons[] = {path};
  world->options.pythons = pythons;
  world->options.python_count = 1;
  expect_sites(world, names);
}

static void a_program_tells_its_folders(void** state) {
  world_t* world = *state;
  make_environment(world, true);
  world_put(world, "base/bin/python3.11");
  world_link(world, "base/bin/python3", "python3.11");
  world_link(world, "env/bin/python", world_path(world, "base/bin/python3.11"));
  world_link(world, "env/bin/python3", "python");
  world_link(world, "elsewhere/py", world_path(world, "base/bin/python3"));
  static const char* const environment[] = {
      ENV, "home/.local/lib/python3.11/site-packages",
      "base/lib/python3.11/site-packages", NULL};
  static const char* const base[] = {"home/.local/lib/python3.11/site-packages",
                                     "base/lib/python3.11/site-packages", NULL};
  // The environment's, although the program is the base's.
  expect_python(world, "env/bin/python", environment);
  expect_python(world, "env/bin/python3", environment);
  expect_python(world, "base/bin/python3.11", base);
  expect_python(world, "base/bin/python3", base);
  expect_python(world, "elsewhere/py", base);
}

static void a_program_that_is_none(void** state) {
  world_t* world = *state;
  world_folder(world, "bin");
  static const char* const names[] = {"bin/python", "bin"};
  for (size_t i = 0; i < 2; i++) {
    const char* program = world_path(world, names[i]);
    world->options.pythons = &program;
    world->options.python_count = 1;
    world_forget(world);
    kiln_locate_item_t* item = NULL;
    kiln_status_t status = kiln_locate_find(
        world_locate(world), KILN_LOCATE_KIND_LIB, "nvrtc", &item);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
    assert_non_null(strstr(kiln_status_message(status), program));
    assert_null(item);
    kiln_status_free(status);
  }
}

static void a_huge_file_is_passed_over(void** state) {
  world_t* world = *state;
  make_environment(world, true);
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  size_t size = 1 << 20;
  char* text = malloc(size);
  memset(text, '#', size);
  memcpy(text, "include-system-site-packages = true\n", 36);
  world_write(world, "env/pyvenv.cfg", text, size);
  free(text);
  EXPECT_SITES(world, ENV);
  kiln_locate_item_t* item = world_find(world, KILN_LOCATE_KIND_LIB, "nvrtc");
  assert_true(
      world_tried(item, world_path(world, "env/pyvenv.cfg"), "too large"));
  kiln_locate_item_release(item);
  // And a folder in its place.
  world_remove(world, "env/pyvenv.cfg");
  world_folder(world, "env/pyvenv.cfg");
  EXPECT_SITES(world, ENV);
}

static void parse(const char* text, kilni_locate_pyvenv_t* out_config) {
  kilni_locate_pyvenv_parse(kilni_base_sv(text), out_config);
}

static void the_reader(void** state) {
  (void)state;
  kilni_locate_pyvenv_t config;
  parse(
      "home = /usr/bin\nversion = 3.11.7\n"
      "include-system-site-packages = true\n",
      &config);
  assert_true(kilni_base_sv_equal_cstr(config.home, "/usr/bin"));
  assert_true(kilni_base_sv_equal_cstr(config.version, "3.11"));
  assert_true(config.system_sites);
  // virtualenv's key, spaces, case, Windows line ends, a value with "=".
  parse(
      "\r\n  HOME=/a=b  \r\nVersion_Info\t=\t3.9.18.final.0\r\n"
      "Include-System-Site-Packages =TRUE\r\nbase-prefix = /usr",
      &config);
  assert_true(kilni_base_sv_equal_cstr(config.home, "/a=b"));
  assert_true(kilni_base_sv_equal_cstr(config.version, "3.9"));
  assert_true(config.system_sites);
  // The last counts; other words than `true` are no.
  parse(
      "include-system-site-packages = true\n"
      "include-system-site-packages = yes\nhome = /a\nhome = /b",
      &config);
  assert_false(config.system_sites);
  assert_true(kilni_base_sv_equal_cstr(config.home, "/b"));
  static const char* const no_version[] = {"",
                                           "version",
                                           "version =",
                                           "version = 3",
                                           "version = .",
                                           "version = 3.",
                                           "version = x3.11",
                                           "version = 3.x",
                                           "= 3.11",
                                           "version = 33333.1",
                                           "version = 3.11111"};
  for (size_t i = 0; i < sizeof(no_version) / sizeof(no_version[0]); i++) {
    parse(no_version[i], &config);
    assert_int_equal(config.version.size, 0);
    assert_int_equal(config.home.size, 0);
    assert_false(config.system_sites);
  }
}

#define IN_A_WORLD(test) \
  cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_WORLD(an_environment_is_alone),
      IN_A_WORLD(an_environment_inherits),
      IN_A_WORLD(what_is_there_decides),
      IN_A_WORLD(two_library_folders),
      IN_A_WORLD(a_conda_environment),
      IN_A_WORLD(the_systems_own),
      IN_A_WORLD(python_path_comes_last),
      IN_A_WORLD(named_sites_are_all),
      IN_A_WORLD(a_program_tells_its_folders),
      IN_A_WORLD(a_program_that_is_none),
      IN_A_WORLD(a_huge_file_is_passed_over),
      cmocka_unit_test(the_reader),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
