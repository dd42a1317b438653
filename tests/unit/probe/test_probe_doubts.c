// SPDX-License-Identifier: Apache-2.0
//
// probe: problems, each over a made-up machine that has it and one that has
// not.
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

#include "../locate/locate_world.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "elf_make.h"
#include "probe/probe.h"
#include "table/cuda_table.h"
#include "toolkit/toolkit.h"

#define OSRELEASE "proc/sys/kernel/osrelease"
#define MODULE    "proc/driver/nvidia/version"

static kiln_host_t g_host;
static kiln_cuda_table_t g_table;
static kilni_probe_source_t g_source;
static uint32_t g_verify;
static const char* g_driver;  // as --driver takes it
static const char* g_roots[2];
static const kiln_compat_use_t* g_use;  // that a program declared

static int setup(void** state) {
  if (world_setup(state) != 0) return 1;
  world_t* world = *state;
  memset(&g_host, 0, sizeof(g_host));
  memset(&g_source, 0, sizeof(g_source));
  g_host.allocator = kiln_allocator_libc();
  g_host.env = &world->env;
  g_host.process_id = kilni_base_process_id();
  g_source.host = &g_host;
  g_source.system_root = world->root;
  g_source.driver_status = kilni_base_status_with_fix(
      KILNI_FAIL(NOT_FOUND, "there is no driver"), "install one");
  g_source.soft.lanes = "plain";
  g_source.soft.lanes_have = "plain";
  g_driver = "none";
  g_use = NULL;
  g_verify = KILN_SWITCH_DEFAULT;
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&g_table);
  world_folder(world, "home");
  world_set(world, KILNI_ENV_HOME, "home");
  g_roots[0] = "a";
  g_roots[1] = "b";
  return 0;
}

static int teardown(void** state) {
  kiln_status_free(g_source.driver_status);
  g_source.driver_status = NULL;
  return world_teardown(state);
}

// The folders a and b are searched.
static void use_roots(world_t* world) {
  static char paths[2][WORLD_PATH_BYTES];
  static const char* roots[2];
  for (int i = 0; i < 2; i++) {
    snprintf(paths[i], sizeof(paths[i]), "%s", world_path(world, g_roots[i]));
    roots[i] = paths[i];
  }
  world->options.roots = roots;
  world->options.root_count = 2;
}

static void kit(world_t* world, const char* name, const char* version) {
  char path[256];
  char text[256];
  snprintf(path, sizeof(path), "%s/version.json", name);
  snprintf(text, sizeof(text), "{\"cuda\":{\"version\":\"%s\"}}", version);
  world_text(world, path, text);
}

// The driver's library at a path of the world.
static void use_driver(const world_t* world, const char* path) {
  static char origin[WORLD_PATH_BYTES];
  world_put(world, path);
  snprintf(origin, sizeof(origin), "%s", world_path(world, path));
  g_table.origin = origin;
  g_source.table = &g_table;
}

static kiln_status_t make(const world_t* world, kiln_allocator_t allocator,
                          kiln_probe_t** out_probe) {
  kiln_compat_driver_t driver;
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &world->options;
  options.allocator = &allocator;
  options.driver = &driver;
  options.verify = g_verify;
  *out_probe = NULL;
  KILNI_RETURN_IF_ERROR(kiln_compat_driver_parse(g_driver, &driver));
  KILNI_RETURN_IF_ERROR(
      kilni_toolkit_create(&options, &world->env, &g_source.toolkit));
  kiln_status_t status = kiln_ok();
  if (g_use != NULL) status = kiln_toolkit_use_declare(g_source.toolkit, g_use);
  if (kiln_status_is_ok(status)) {
    status = kilni_probe_create(&g_source, out_probe);
  }
  kiln_toolkit_release(g_source.toolkit);
  g_source.toolkit = NULL;
  return status;
}

// The severity of a problem, 0 without it; what is common to all is asserted.
static uint32_t severity(const world_t* world, const char* id) {
  kiln_probe_t* probe = NULL;
  uint32_t found = 0;
  uint32_t last = KILN_PROBE_SEVERITY_ERROR;
  assert_null(make(world, kiln_allocator_libc(), &probe));
  for (uint32_t i = 0; i < kiln_probe_problem_count(probe); i++) {
    const kiln_probe_problem_t* problem = kiln_probe_problem(probe, i);
    assert_true(problem->message[0] != 0);
    assert_null(strchr(problem->message, '\n'));
    assert_true(problem->fix[0] != 0);
    assert_null(strchr(problem->fix, '\n'));
    assert_true(problem->severity <= last);  // the worst first
    last = problem->severity;
    if (strcmp(problem->id, id) == 0 && found == 0) found = problem->severity;
  }
  kiln_probe_release(probe);
  return found;
}

// True if a problem has those words in its fix.
static bool fix_says(const world_t* world, const char* id, const char* words) {
  kiln_probe_t* probe = NULL;
  bool found = false;
  assert_null(make(world, kiln_allocator_libc(), &probe));
  for (uint32_t i = 0; i < kiln_probe_problem_count(probe); i++) {
    const kiln_probe_problem_t* problem = kiln_probe_problem(probe, i);
    found = found || (strcmp(problem->id, id) == 0 &&
                      strstr(problem->fix, words) != NULL);
  }
  kiln_probe_release(probe);
  return found;
}

#define EXPECT_NONE(id) assert_int_equal(severity(world, id), 0)
#define EXPECT(id, level) \
  assert_int_equal(severity(world, id), KILN_PROBE_SEVERITY_##level)

static void test_wsl(void** state) {
  world_t* world = *state;
  EXPECT_NONE("wsl-driver-missing");
  world_text(world, OSRELEASE, "5.15.1-microsoft-standard-WSL2\n");
  EXPECT("wsl-driver-missing", WARNING);
  use_driver(world, "usr/lib/wsl/lib/libcuda.so.1");
  EXPECT_NONE("wsl-driver-missing");
  EXPECT_NONE("wsl-linux-driver");
  use_driver(world, "usr/lib/x86_64-linux-gnu/libcuda.so.1");
  EXPECT("wsl-linux-driver", ERROR);
}

// Nothing was opened: what the loader would take is what is judged.
static void test_wsl_by_search(void** state) {
  world_t* world = *state;
  world_text(world, OSRELEASE, "5.15.1-microsoft-standard-WSL2\n");
  world_put(world, "usr/lib/wsl/lib/libcuda.so.1");
  world_put(world, "usr/lib/x86_64-linux-gnu/libcuda.so.1");
  const world_library_t wsl = {"libcuda.so.1", "usr/lib/wsl/lib/libcuda.so.1",
                               0, 0};
  const world_library_t linux_own = {
      "libcuda.so.1", "usr/lib/x86_64-linux-gnu/libcuda.so.1", 0, 0};
  world_ldcache(world, &wsl, 1);
  EXPECT_NONE("wsl-linux-driver");
  EXPECT_NONE("wsl-driver-missing");
  world_ldcache(world, &linux_own, 1);
  EXPECT("wsl-linux-driver", ERROR);
  // The same two libraries on a plain Linux are nobody's fault.
  world_remove(world, "usr/lib/wsl/lib/libcuda.so.1");
  assert_int_equal(rmdir(world_path(world, "usr/lib/wsl/lib")), 0);
  world_text(world, OSRELEASE, "6.1.0-13-amd64\n");
  EXPECT_NONE("wsl-linux-driver");
}

static void test_stubs(void** state) {
  world_t* world = *state;
  world_folder(world, "kit/lib64/stubs");
  world_set(world, KILNI_ENV_LD_LIBRARY_PATH, "kit/lib64/stubs");
  EXPECT_NONE("stub-on-loader-path");
  world_put(world, "kit/lib64/stubs/libcuda.so");
  EXPECT("stub-on-loader-path", WARNING);
  world_put(world, "kit/lib64/stubs/libcuda.so.1");
  EXPECT("stub-on-loader-path", ERROR);
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_LD_LIBRARY_PATH, NULL));
  EXPECT_NONE("stub-on-loader-path");
  use_driver(world, "kit/lib64/stubs/libcuda.so.1");
  EXPECT("stub-on-loader-path", ERROR);
}

static void test_releases(void** state) {
  world_t* world = *state;
  world_text(world, MODULE,
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  x\n");
  use_driver(world, "usr/lib/libcuda.so.580.65.06");
  EXPECT_NONE("driver-parts-differ");
  use_driver(world, "usr/lib/libcuda.so.575.57.08");
  EXPECT("driver-parts-differ", ERROR);
  EXPECT_NONE("compat-in-use");
  use_driver(world, "kit/compat/libcuda.so.590.10.01");
  EXPECT("compat-in-use", NOTE);
  EXPECT_NONE("driver-parts-differ");
  EXPECT_NONE("compat-older-than-driver");
  use_driver(world, "kit/compat/libcuda.so.570.10.01");
  EXPECT("compat-older-than-driver", ERROR);
}

static void test_compat_that_is_not_used(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "13.2.0");
  world_put(world, "a/lib64/libcudart.so.13");
  use_driver(world, "usr/lib/libcuda.so.580.65.06");  // CUDA 13.0
  EXPECT_NONE("compat-not-in-use");
  world_put(world, "a/compat/libcuda.so.1");
  EXPECT("compat-not-in-use", NOTE);
}

static const char* g_mapped[2];

static void each_mapped(kilni_base_dynlib_mapped_fn_t fn, void* user) {
  for (int i = 0; i < 2; i++) {
    kilni_base_dynlib_mapped_t mapped = {g_mapped[i], "libcudart.so.13", NULL};
    if (!fn(&mapped, user)) return;
  }
}

static void each_mapped_once(kilni_base_dynlib_mapped_fn_t fn, void* user) {
  kilni_base_dynlib_mapped_t mapped = {g_mapped[0], "libcudart.so.13", NULL};
  (void)fn(&mapped, user);
}

static void test_loaded_twice(void** state) {
  world_t* world = *state;
  g_mapped[0] = "/one/libcudart.so.13";
  g_mapped[1] = "/two/libcudart.so.13";
  g_source.each_mapped = each_mapped_once;
  EXPECT_NONE("loaded-twice");
  g_source.each_mapped = each_mapped;
  EXPECT("loaded-twice", WARNING);
}

static void test_an_override_that_leads_nowhere(void** state) {
  world_t* world = *state;
  world_put(world, "x/libcudart.so.13");
  assert_null(
      kilni_base_env_set_member(&world->env, "KILN_LOCATE_LIB_CUDART",
                                world_path(world, "x/libcudart.so.13")));
  EXPECT_NONE("override-wrong");
  assert_null(kilni_base_env_set_member(&world->env, "KILN_LOCATE_LIB_CUDART",
                                        world_path(world, "nowhere.so")));
  EXPECT("override-wrong", ERROR);
}

static void test_a_search_that_fails(void** state) {
  world_t* world = *state;
  const char* python = world_path(world, "nowhere/python");
  EXPECT_NONE("search-failed");
  world->options.pythons = &python;
  world->options.python_count = 1;
  EXPECT("search-failed", ERROR);
  EXPECT_NONE("override-wrong");
  kiln_probe_t* probe = NULL;
  uint32_t told = 0;
  assert_null(make(world, kiln_allocator_libc(), &probe));
  for (uint32_t i = 0; i < kiln_probe_problem_count(probe); i++) {
    told += strcmp(kiln_probe_problem(probe, i)->id, "search-failed") == 0;
  }
  assert_int_equal(told, 1);  // and not once for each piece
  assert_true(kiln_probe_piece(probe, 0)->why[0] != 0);
  kiln_probe_release(probe);
}

static void test_builtins(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "13.0.1");
  EXPECT_NONE("nvrtc-builtins-missing");
  world_put(world, "a/lib64/libnvrtc.so.13");
  EXPECT("nvrtc-builtins-missing", ERROR);
  world_put(world, "a/lib64/libnvrtc-builtins.so.13.0");
  EXPECT_NONE("nvrtc-builtins-missing");
}

// A wheel is put right by the interpreter that it belongs to.
static void test_builtins_of_a_wheel(void** state) {
  world_t* world = *state;
  static const char library[] =
      "env/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13";
  static const char info[] =
      "env/lib/python3.12/site-packages/nvidia_cuda_nvrtc-13.1.115.dist-info";
  char path[WORLD_PATH_BYTES], site[WORLD_PATH_BYTES];
  snprintf(site, sizeof(site), "%s",
           world_path(world, "env/lib/python3.12/site-packages"));
  const char* sites[] = {site};
  world->options.sites = sites;
  world->options.site_count = 1;
  world_put(world, library);
  snprintf(path, sizeof(path), "%s/RECORD", info);
  world_text(world, path, "nvidia/cu13/lib/libnvrtc.so.13,,\n");
  snprintf(path, sizeof(path), "%s/METADATA", info);
  world_text(world, path,
             "Metadata-Version: 2.1\nName: nvidia-cuda-nvrtc\n"
             "Version: 13.1.115\n");
  EXPECT("nvrtc-builtins-missing", ERROR);
  assert_true(fix_says(world, "nvrtc-builtins-missing",
                       "python3 -m pip install --force-reinstall"));
  assert_false(fix_says(world, "nvrtc-builtins-missing", "env/bin/python3"));
  world_put(world, "env/bin/python3");
  assert_true(fix_says(world, "nvrtc-builtins-missing",
                       "env/bin/python3 -m pip install --force-reinstall "
                       "nvidia-cuda-nvrtc"));
}

// Puts what the wheel of NVRTC has into `site`.
static void put_nvrtc_wheel(const world_t* world, const char* version) {
  char path[256], metadata[256];
  world_put(world, "site/nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, "site/nvidia/cu13/lib/libnvrtc-builtins.so.13.0");
  snprintf(path, sizeof(path), "site/nvidia_cuda_nvrtc-%s.dist-info/RECORD",
           version);
  world_text(world, path, "nvidia/cu13/lib/libnvrtc.so.13,,\n");
  snprintf(metadata, sizeof(metadata),
           "Metadata-Version: 2.1\nName: nvidia-cuda-nvrtc\nVersion: %s\n",
           version);
  snprintf(path, sizeof(path), "site/nvidia_cuda_nvrtc-%s.dist-info/METADATA",
           version);
  world_text(world, path, metadata);
}

static void test_flawed_wheels(void** state) {
  world_t* world = *state;
  char site[WORLD_PATH_BYTES];
  snprintf(site, sizeof(site), "%s", world_path(world, "site"));
  const char* sites[] = {site};
  world->options.sites = sites;
  world->options.site_count = 1;
  put_nvrtc_wheel(world, "13.1.115");
  EXPECT_NONE("wheel-flawed");
  world_remove(world, "site/nvidia_cuda_nvrtc-13.1.115.dist-info/RECORD");
  world_remove(world, "site/nvidia_cuda_nvrtc-13.1.115.dist-info/METADATA");
  put_nvrtc_wheel(world, "13.0.88");
  EXPECT("wheel-flawed", NOTE);
  assert_true(fix_says(world, "wheel-flawed", "libnvrtc-builtins.so.13.0"));
  // Of a copy that is hidden nothing is said.
  use_roots(world);
  world_put(world, "a/lib64/libnvrtc.so.13");
  EXPECT_NONE("wheel-flawed");
}

static void test_variables(void** state) {
  world_t* world = *state;
  world_folder(world, "one");
  world_folder(world, "two");
  world_link(world, "again", "one");
  world_set(world, KILNI_ENV_CUDA_PATH, "one");
  world_set(world, KILNI_ENV_CUDA_HOME, "again");
  EXPECT_NONE("cuda-path-missing");
  EXPECT_NONE("cuda-home-missing");
  EXPECT_NONE("cuda-path-and-home-differ");
  world_set(world, KILNI_ENV_CUDA_HOME, "two");
  EXPECT("cuda-path-and-home-differ", WARNING);
  world_set(world, KILNI_ENV_CUDA_HOME, "nowhere");
  EXPECT("cuda-home-missing", WARNING);
  EXPECT_NONE("cuda-path-missing");
  world_set(world, KILNI_ENV_CUDA_PATH, "nowhere");
  EXPECT("cuda-path-missing", WARNING);
}

// What the search does not heed is not reported as read, and is no problem.
static void test_hermetic(void** state) {
  world_t* world = *state;
  world_set(world, KILNI_ENV_CUDA_PATH, "nowhere");
  world_set(world, KILNI_ENV_CUDA_HOME, "elsewhere");
  assert_null(kilni_base_env_set_member(&world->env, "KILN_LOCATE_LIB_CUDART",
                                        world_path(world, "nowhere.so")));
  EXPECT("cuda-path-missing", WARNING);
  world->options.hermetic = KILN_SWITCH_ON;
  EXPECT_NONE("cuda-path-missing");
  EXPECT_NONE("cuda-home-missing");
  EXPECT_NONE("cuda-path-and-home-differ");
  EXPECT_NONE("override-wrong");
  kiln_probe_t* probe = NULL;
  assert_null(make(world, kiln_allocator_libc(), &probe));
  for (uint32_t i = 0; i < kiln_probe_variable_count(probe); i++) {
    const kiln_probe_variable_t* variable = kiln_probe_variable(probe, i);
    bool counts = strcmp(variable->name, "HOME") == 0;  // the driver's cache
    assert_int_equal(variable->value != NULL, counts);
  }
  kiln_probe_release(probe);
}

static void test_copies(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "13.0.1");
  kit(world, "b", "13.0.2");
  world_put(world, "a/lib64/libcudart.so.13");
  EXPECT_NONE("copies");
  world_put(world, "b/lib64/libcudart.so.13");
  EXPECT("copies", NOTE);
  EXPECT_NONE("copies-of-two-lines");
  kit(world, "b", "13.2.0");
  EXPECT("copies-of-two-lines", WARNING);
  // A line that nobody knows is no second line.
  world_remove(world, "b/version.json");
  EXPECT_NONE("copies-of-two-lines");
  EXPECT("copies", NOTE);
}

static void test_mixed(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "12.9.1");
  kit(world, "b", "12.9.1");
  world_text(world, "a/include/cuda.h", "#define CUDA_VERSION 12090\n");
  world_put(world, "a/include/cuda_runtime.h");
  world_put(world, "b/bin/nvcc");
  assert_int_equal(chmod(world_path(world, "b/bin/nvcc"), 0755), 0);
  EXPECT_NONE("mixed-headers");
  kit(world, "b", "13.0.1");
  EXPECT("mixed-headers", WARNING);
}

static void test_mixed_libraries(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "13.2.0");
  kit(world, "b", "13.2.0");
  world_put(world, "a/lib64/libcublas.so.13");
  world_put(world, "b/lib64/libcudart.so.13");
  EXPECT_NONE("mixed-component");
  kit(world, "b", "13.0.1");
  EXPECT("mixed-component", WARNING);
}

static void test_mixed_companions(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "13.0.1");
  kit(world, "b", "13.0.1");
  world_text(world, "a/include/cuda.h", "#define CUDA_VERSION 13000\n");
  world_put(world, "b/bin/nvcc");
  assert_int_equal(chmod(world_path(world, "b/bin/nvcc"), 0755), 0);
  EXPECT_NONE("mixed-companions");
  kit(world, "b", "13.2.0");
  EXPECT("mixed-companions", WARNING);
}

static void test_evidence(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "13.0.1");
  world_put(world, "a/lib64/libcudart.so.13");
  world_text(world, "a/include/cuda.h", "#define CUDA_VERSION 13000\n");
  g_verify = KILN_SWITCH_ON;
  EXPECT_NONE("evidence-contradicts");
  kit(world, "a", "13.2.0");
  EXPECT("evidence-contradicts", NOTE);
}

static void test_linker(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "13.2.0");
  kit(world, "b", "13.2.0");
  world_put(world, "a/lib64/libnvrtc.so.13");
  world_put(world, "b/lib64/libnvJitLink.so.13");
  EXPECT_NONE("linker-too-old");
  kit(world, "b", "13.0.1");
  assert_int_not_equal(severity(world, "linker-too-old"), 0);
}

static void test_nvvm(void** state) {
  world_t* world = *state;
  kiln_compat_use_t use = kiln_compat_use_default();
  use.producer = "nvvm";
  use.consumer = "nvJitLink";
  use.artifact = KILN_COMPAT_ARTIFACT_NVVM;
  use_roots(world);
  kit(world, "a", "13.2.0");
  kit(world, "b", "13.2.0");
  world_put(world, "a/nvvm/lib64/libnvvm.so.4");
  world_put(world, "b/lib64/libnvJitLink.so.13");
  g_use = &use;
  EXPECT_NONE("mixed-nvvm");
  kit(world, "b", "13.0.1");  // both read NVVM IR 2.0
  EXPECT_NONE("mixed-nvvm");
  kit(world, "b", "13.90.0");  // nobody knows what that reads
  EXPECT("mixed-nvvm", WARNING);
  // Nobody said that NVVM IR goes there: it is nobody's problem.
  g_use = NULL;
  EXPECT_NONE("mixed-nvvm");
}

static void test_needed_symbols(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "13.2.0");
  kit(world, "b", "13.2.0");
  elf_plan_t plan = {.soname = "libcusparse.so.12",
                     .needed = {"libnvJitLink.so.13"},
                     .undefined = {"__nvJitLinkCreate_13_2"}};
  elf_made_t made = elf_make(&plan);
  world_write(world, "a/lib64/libcusparse.so.12", made.data, made.size);
  free(made.data);
  world_put(world, "b/lib64/libnvJitLink.so.13");
  EXPECT_NONE("needed-symbol-missing");
  kit(world, "b", "13.0.1");
  EXPECT("needed-symbol-missing", WARNING);
}

static void test_an_old_driver(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "13.0.1");
  world_put(world, "a/lib64/libcudart.so.13");
  g_driver = "13.0,580.65.06";
  EXPECT_NONE("driver-too-old");
  g_driver = "12.2,535.54.03";
  EXPECT("driver-too-old", WARNING);
  world_put(world, "a/lib64/libnvrtc.so.13");
  world_put(world, "a/lib64/libnvJitLink.so.13");
  EXPECT("ptx-newer-than-driver", NOTE);
  EXPECT("cubin-newer-than-driver", NOTE);
  g_driver = "13.0,580.65.06";
  EXPECT_NONE("ptx-newer-than-driver");
  EXPECT_NONE("cubin-newer-than-driver");
}

static void test_folders(void** state) {
  world_t* world = *state;
  use_roots(world);
  world_put(world, "a/lib64/libcudart.so.13");
  world_folder(world, "closed");
  world_set(world, KILNI_ENV_LD_LIBRARY_PATH, "closed");
  EXPECT_NONE("folder-world-writable");
  EXPECT_NONE("folder-unreadable");
  assert_int_equal(chmod(world_path(world, "a/lib64"), 0777), 0);
  EXPECT("folder-world-writable", WARNING);
  // The fix is pasted into a shell, whatever the folder is called.
  assert_true(fix_says(world, "folder-world-writable", "o-w /"));
  world_folder(world, "it's; $mine");
  assert_int_equal(chmod(world_path(world, "it's; $mine"), 0777), 0);
  world_set(world, KILNI_ENV_LD_LIBRARY_PATH, "it's; $mine");
  assert_true(fix_says(world, "folder-world-writable", "/it'\\''s; $mine'"));
  world_set(world, KILNI_ENV_LD_LIBRARY_PATH, "closed");
  assert_int_equal(chmod(world->root, 0755), 0);
  assert_int_equal(chmod(world_path(world, "closed"), 0), 0);
  // The superuser may read everything.
  bool super = geteuid() == 0;
  if (super) assert_int_equal(seteuid(65534), 0);
  uint32_t found = severity(world, "folder-unreadable");
  if (super) assert_int_equal(seteuid(0), 0);
  assert_int_equal(found, KILN_PROBE_SEVERITY_WARNING);
}

static void test_loader_path(void** state) {
  world_t* world = *state;
  static const char* const bad[] = {"/one:", ":/one", "/one::/two", "one"};
  EXPECT_NONE("loader-path-relative");
  assert_null(
      kilni_base_env_set(&world->env, KILNI_ENV_LD_LIBRARY_PATH, "/a:/b"));
  EXPECT_NONE("loader-path-relative");
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    assert_null(
        kilni_base_env_set(&world->env, KILNI_ENV_LD_LIBRARY_PATH, bad[i]));
    EXPECT("loader-path-relative", NOTE);
  }
}

static void test_cache(void** state) {
  world_t* world = *state;
  world_write(world, "home/.nv/ComputeCache/1/2/x", "12345678", 8);
  EXPECT_NONE("jit-cache-off");
  EXPECT_NONE("jit-cache-not-writable");
  EXPECT_NONE("jit-cache-full");
  kiln_probe_t* probe = NULL;
  assert_null(make(world, kiln_allocator_libc(), &probe));
  assert_int_equal(kiln_probe_cache(probe)->bytes, 8);
  assert_int_equal(kiln_probe_cache(probe)->files, 1);
  assert_int_equal(kiln_probe_cache(probe)->complete, 1);
  assert_int_equal(kiln_probe_cache(probe)->limit, 1 << 30);
  kiln_probe_release(probe);
  world_put(world, "etc/nv_tegra_release");
  assert_null(make(world, kiln_allocator_libc(), &probe));
  assert_int_equal(kiln_probe_cache(probe)->limit, 256 << 20);
  kiln_probe_release(probe);
  assert_null(
      kilni_base_env_set(&world->env, KILNI_ENV_CUDA_CACHE_MAXSIZE, "8"));
  EXPECT("jit-cache-full", NOTE);
  assert_true(fix_says(world, "jit-cache-full", "CUDA_CACHE_MAXSIZE="));
  assert_null(
      kilni_base_env_set(&world->env, KILNI_ENV_CUDA_CACHE_DISABLE, "1"));
  EXPECT("jit-cache-off", NOTE);
  assert_null(
      kilni_base_env_set(&world->env, KILNI_ENV_CUDA_CACHE_DISABLE, NULL));
  // A file stands where the folder should.
  world_put(world, "file");
  world_set(world, KILNI_ENV_CUDA_CACHE_PATH, "file/cache");
  EXPECT("jit-cache-not-writable", WARNING);
}

// ---- The facts themselves ----

static void test_a_toolkit(void** state) {
  world_t* world = *state;
  use_roots(world);
  kit(world, "a", "13.0.1");
  world_put(world, "a/lib64/libcudart.so.13");
  world_put(world, "a/lib64/libnvrtc.so.13");
  world_text(world, "a/include/cuda.h", "#define CUDA_VERSION 13000\n");
  world_put(world, "a/include/cuda_runtime.h");
  world_text(world, "etc/os-release", "ID=debian\nPRETTY_NAME=\"Deb 12\"\n");
  world_text(world, OSRELEASE, "6.1.0\n");
  kiln_probe_t* probe = NULL;
  assert_null(make(world, kiln_allocator_libc(), &probe));
  assert_string_equal(kiln_probe_system(probe)->name, "Deb 12");
  assert_string_equal(kiln_probe_system(probe)->kernel, "6.1.0");
  assert_int_equal(kiln_probe_system(probe)->is_wsl, 0);
  assert_int_equal(kiln_probe_toolkit_count(probe), 1);
  const kiln_probe_toolkit_t* toolkit = kiln_probe_toolkit(probe, 0);
  assert_string_equal(toolkit->root, world_path(world, "a"));
  assert_string_equal(toolkit->version, "13.0.1");
  assert_string_equal(toolkit->scope, "root");
  assert_string_equal(toolkit->include_dir, world_path(world, "a/include"));
  assert_int_equal(toolkit->line, 13000);
  assert_non_null(strstr(toolkit->has, "headers"));
  assert_non_null(strstr(toolkit->has, "nvrtc"));
  assert_null(strstr(toolkit->has, "nvcc"));
  assert_int_equal(kiln_probe_piece_count(probe), kiln_locate_entry_count());
  for (uint32_t i = 0; i < kiln_probe_library_count(probe); i++) {
    const kiln_probe_library_t* library = kiln_probe_library(probe, i);
    bool there = strcmp(library->name, "nvrtc") == 0 ||
                 strcmp(library->name, "cudart") == 0;
    assert_int_equal(library->found, there);
    assert_int_equal(library->piece->copy_count, there);
    assert_int_equal(library->version, there ? 13000 : 0);
    if (!there) assert_int_equal(library->path[0], 0);
  }
  assert_non_null(kiln_probe_report(probe));
  kiln_probe_release(probe);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_wsl),
      TEST(test_wsl_by_search),
      TEST(test_stubs),
      TEST(test_releases),
      TEST(test_compat_that_is_not_used),
      TEST(test_loaded_twice),
      TEST(test_an_override_that_leads_nowhere),
      TEST(test_a_search_that_fails),
      TEST(test_builtins),
      TEST(test_builtins_of_a_wheel),
      TEST(test_flawed_wheels),
      TEST(test_variables),
      TEST(test_hermetic),
      TEST(test_copies),
      TEST(test_mixed),
      TEST(test_mixed_libraries),
      TEST(test_mixed_companions),
      TEST(test_evidence),
      TEST(test_linker),
      TEST(test_nvvm),
      TEST(test_needed_symbols),
      TEST(test_an_old_driver),
      TEST(test_folders),
      TEST(test_loader_path),
      TEST(test_cache),
      TEST(test_a_toolkit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
