// SPDX-License-Identifier: Apache-2.0
//
// locate: the order of the scopes, for each kind of thing.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "locate_world.h"

#define LIB    KILN_LOCATE_KIND_LIB
#define HEADER KILN_LOCATE_KIND_HEADER
#define STATIC KILN_LOCATE_KIND_STATIC
#define BITC   KILN_LOCATE_KIND_BITCODE
#define BINARY KILN_LOCATE_KIND_BINARY
#define SITE   "env/lib/python3.11/site-packages/"

static void an_empty_machine(void** state) {
  world_t* world = *state;
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_false(kiln_locate_item_found(item));
  assert_string_equal(kiln_locate_item_path(item), "");
  assert_int_equal(kiln_locate_item_scope(item), 0);
  assert_true(world_tried(item, "CUDA_PATH", "not set"));
  assert_true(world_tried(item, "CUDA_HOME", "not set"));
  assert_true(world_tried(item, "VIRTUAL_ENV", "not set"));
  assert_true(world_tried(item, "CONDA_PREFIX", "not set"));
  assert_true(
      world_tried(item, world_path(world, "etc/ld.so.cache"), "no such file"));
  assert_true(
      world_tried(item, world_path(world, "usr/local/cuda"), "no such folder"));
  kiln_status_t status = kiln_locate_item_require(item);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_non_null(strstr(kiln_status_fix(status), "KILN_LOCATE_LIB_NVRTC"));
  kiln_status_free(status);
  kiln_locate_item_release(item);
}

static void the_order_for_a_library(void** state) {
  world_t* world = *state;
  world_put(world, SITE "nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, "conda/lib/libnvrtc.so.13");
  world_put(world, "usr/lib64/libnvrtc.so.13");
  world_put(world, "kit/lib64/libnvrtc.so.12");
  world_put(world, "home/lib/libnvrtc.so.12");
  world_put(world, "usr/local/cuda-12.9/lib64/libnvrtc.so.12");
  world_put(world, "usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  world_put(world, "opt/cuda/lib64/libnvrtc.so.13");
  world_put(world,
            "opt/nvidia/hpc_sdk/Linux_x86_64/25.1/cuda/lib64/libnvrtc.so.12");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CONDA_PREFIX, "conda");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  world_set(world, KILNI_ENV_CUDA_HOME, "home");
  static const struct {
    uint32_t scope;
    const char* path;
    const char* gone;
  } rows[] = {
      {KILN_LOCATE_SCOPE_WHEEL, SITE "nvidia/cu13/lib/libnvrtc.so.13", "env"},
      {KILN_LOCATE_SCOPE_CONDA, "conda/lib/libnvrtc.so.13", "conda"},
      {KILN_LOCATE_SCOPE_LOADER, "usr/lib64/libnvrtc.so.13", "usr/lib64"},
      {KILN_LOCATE_SCOPE_CUDA_PATH, "kit/lib64/libnvrtc.so.12", "kit"},
      // CUDA_HOME does not count behind CUDA_PATH, even if that is empty.
      {KILN_LOCATE_SCOPE_SYSTEM, "usr/local/cuda-13.0/lib64/libnvrtc.so.13",
       "usr/local/cuda-13.0"},
      {KILN_LOCATE_SCOPE_SYSTEM, "usr/local/cuda-12.9/lib64/libnvrtc.so.12",
       "usr/local/cuda-12.9"},
      {KILN_LOCATE_SCOPE_SYSTEM, "opt/cuda/lib64/libnvrtc.so.13", "opt/cuda"},
      {KILN_LOCATE_SCOPE_HPC_SDK,
       "opt/nvidia/hpc_sdk/Linux_x86_64/25.1/cuda/lib64/libnvrtc.so.12",
       "opt/nvidia"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    world_expect(world, LIB, "nvrtc", rows[i].scope, rows[i].path);
    world_remove(world, rows[i].gone);
    kiln_locate_refresh(world->locate);
  }
  world_expect(world, LIB, "nvrtc", 0, NULL);
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_CUDA_PATH, NULL));
  world_forget(world);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_CUDA_HOME,
               "home/lib/libnvrtc.so.12");
}

static void the_order_for_what_is_no_library(void** state) {
  world_t* world = *state;
  world_put(world, SITE "nvidia/cu13/include/cuda_runtime.h");
  world_put(world, SITE "nvidia/cu13/lib/libcudadevrt.a");
  world_put(world, SITE "nvidia/cu13/nvvm/libdevice/libdevice.10.bc");
  world_put(world, "conda/targets/x86_64-linux/include/cuda_runtime.h");
  world_put(world, "conda/lib/libcudadevrt.a");
  world_put(world, "conda/nvvm/libdevice/libdevice.10.bc");
  world_put(world, "kit/include/cuda_runtime.h");
  world_put(world, "kit/lib64/libcudadevrt.a");
  world_put(world, "kit/nvvm/libdevice/libdevice.10.bc");
  world_put(world, "usr/local/cuda/include/cuda_runtime.h");
  world_put(world, "usr/local/cuda/lib64/libcudadevrt.a");
  world_put(world, "usr/local/cuda/nvvm/libdevice/libdevice.10.bc");
  world_put(world, "usr/include/cuda_runtime.h");
  world_put(world, "usr/lib/x86_64-linux-gnu/libcudadevrt.a");
  world_put(world, "usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CONDA_PREFIX, "conda");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  static const struct {
    uint32_t scope;
    const char* header;
    const char* library;
    const char* bitcode;
    const char* gone;
  } rows[] = {
      {KILN_LOCATE_SCOPE_WHEEL, SITE "nvidia/cu13/include",
       SITE "nvidia/cu13/lib/libcudadevrt.a",
       SITE "nvidia/cu13/nvvm/libdevice/libdevice.10.bc", "env"},
      {KILN_LOCATE_SCOPE_CONDA, "conda/targets/x86_64-linux/include",
       "conda/lib/libcudadevrt.a", "conda/nvvm/libdevice/libdevice.10.bc",
       "conda"},
      {KILN_LOCATE_SCOPE_CUDA_PATH, "kit/include", "kit/lib64/libcudadevrt.a",
       "kit/nvvm/libdevice/libdevice.10.bc", "kit"},
      {KILN_LOCATE_SCOPE_SYSTEM, "usr/local/cuda/include",
       "usr/local/cuda/lib64/libcudadevrt.a",
       "usr/local/cuda/nvvm/libdevice/libdevice.10.bc", "usr/local/cuda"},
      {KILN_LOCATE_SCOPE_DISTRIBUTION, "usr/include",
       "usr/lib/x86_64-linux-gnu/libcudadevrt.a",
       "usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc", "usr"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    world_expect(world, HEADER, "cudart", rows[i].scope, rows[i].header);
    world_expect(world, STATIC, "cudadevrt", rows[i].scope, rows[i].library);
    world_expect(world, BITC, "device", rows[i].scope, rows[i].bitcode);
    world_remove(world, rows[i].gone);
    kiln_locate_refresh(world->locate);
  }
  world_expect(world, HEADER, "cudart", 0, NULL);
  world_expect(world, STATIC, "cudadevrt", 0, NULL);
  world_expect(world, BITC, "device", 0, NULL);
}

static void a_program_must_be_one(void** state) {
  world_t* world = *state;
  world_put(world, SITE "nvidia/cu13/bin/nvcc");  // mode 0644
  world_put(world, "kit/bin/nvcc");
  assert_int_equal(chmod(world_path(world, "kit/bin/nvcc"), 0755), 0);
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CUDA_HOME, "kit");
  kiln_locate_item_t* item = world_find(world, BINARY, "nvcc");
  assert_string_equal(kiln_locate_item_path(item),
                      world_path(world, "kit/bin/nvcc"));
  assert_true(world_tried(item, world_path(world, SITE "nvidia/cu13/bin/nvcc"),
                          "cannot be executed"));
  kiln_locate_item_release(item);
}

static void the_drivers_libraries(void** state) {
  world_t* world = *state;
  // Nothing that a package manager of Python or conda put there counts.
  world_put(world, SITE "nvidia/cu13/lib/libcuda.so.1");
  world_put(world, "conda/lib/libcuda.so.1");
  world_put(world, "kit/lib64/libcuda.so.1");
  world_put(world, "usr/lib/wsl/lib/libcuda.so.1");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CONDA_PREFIX, "conda");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  world_expect(world, LIB, "cuda", KILN_LOCATE_SCOPE_WSL,
               "usr/lib/wsl/lib/libcuda.so.1");
  world_put(world, "usr/lib/x86_64-linux-gnu/libcuda.so.1");
  world_expect(world, LIB, "cuda", KILN_LOCATE_SCOPE_WSL,
               "usr/lib/wsl/lib/libcuda.so.1");  // until it is refreshed
  kiln_locate_refresh(world->locate);
  world_expect(world, LIB, "cuda", KILN_LOCATE_SCOPE_LOADER,
               "usr/lib/x86_64-linux-gnu/libcuda.so.1");
}

static void products_have_variables(void** state) {
  world_t* world = *state;
  world_put(world, "dnn/lib/libcudnn.so.9");
  world_put(world, "dnn/include/cudnn.h");
  world_put(world, "ccl/build/lib/libnccl.so.2");
  world_put(world, "kit/lib64/libcudnn.so.9");
  world_set(world, KILNI_ENV_CUDNN_PATH, "dnn");
  world_set(world, KILNI_ENV_NCCL_HOME, "ccl");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  world_expect(world, LIB, "cudnn", KILN_LOCATE_SCOPE_PRODUCT,
               "dnn/lib/libcudnn.so.9");
  world_expect(world, HEADER, "cudnn", KILN_LOCATE_SCOPE_PRODUCT,
               "dnn/include");
  world_expect(world, LIB, "nccl", KILN_LOCATE_SCOPE_PRODUCT,
               "ccl/build/lib/libnccl.so.2");
  kiln_locate_item_t* item = world_find(world, LIB, "cudnn");
  assert_string_equal(kiln_locate_item_via(item), "CUDNN_PATH");
  kiln_locate_item_release(item);
  // The loader comes before for a library and not for a header, as it does
  // for cuda-pathfinder.
  world_put(world, "usr/lib64/libcudnn.so.9");
  world_put(world, "usr/include/cudnn.h");
  kiln_locate_refresh(world->locate);
  world_expect(world, LIB, "cudnn", KILN_LOCATE_SCOPE_LOADER,
               "usr/lib64/libcudnn.so.9");
  world_expect(world, HEADER, "cudnn", KILN_LOCATE_SCOPE_PRODUCT,
               "dnn/include");
}

// Two ways may lead to one folder: the message names it once.
static void what_is_told_is_told_once(void** state) {
  world_t* world = *state;
  world_folder(world, "home");
  world_set(world, KILNI_ENV_HOME, "home");
  world_link(world, "usr/bin/python3", "python3.11");
  world_link(world, "usr/local/bin/python3", "python3.11");
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  uint32_t times = 0;
  for (uint32_t i = 0; i < kiln_locate_item_tried_count(item); i++) {
    const char* path = kiln_locate_item_tried(item, i)->path;
    times += strstr(path, "home/.local") != NULL;
  }
  assert_int_equal(times, 2);
  kiln_status_t status = kiln_locate_item_require(item);
  char text[8192];
  kiln_status_format(status, sizeof(text), text, NULL);
  const char* site = world_path(
      world, "home/.local/lib/python3.11/site-packages\": no such folder");
  const char* first = strstr(text, site);
  assert_non_null(first);
  assert_null(strstr(first + 1, site));
  kiln_status_free(status);
  kiln_locate_item_release(item);
}

static void majors_are_preferred_newest_first(void** state) {
  world_t* world = *state;
  world_put(world, "env/lib/python3.11/site-packages/x");
  world_put(world, "env/lib64/python3.11/site-packages/x");
  // The folders are the outer loop: CUDA 13 of the second root is before
  // CUDA 12 of the first.
  world_put(world, SITE "nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  world_put(world,
            "env/lib64/python3.11/site-packages/nvidia/cu13/lib/"
            "libnvrtc.so.13");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_int_equal(kiln_locate_item_major(item), 13);
  assert_string_equal(kiln_locate_item_file_name(item), "libnvrtc.so.13");
  assert_string_equal(kiln_locate_item_root(item),
                      world_path(world, "env/lib64/python3.11/site-packages"));
  kiln_locate_item_release(item);
}

// Wheels of cuSPARSELt up to 0.6.3, which PyTorch asked for by that number,
// have a folder of their own beside nvidia/.
static void a_wheel_with_an_older_layout(void** state) {
  world_t* world = *state;
  world_put(world, SITE "cusparselt/lib/libcusparseLt.so.0");
  world_put(world, SITE "cusparselt/include/cusparseLt.h");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_expect(world, LIB, "cusparseLt", KILN_LOCATE_SCOPE_WHEEL,
               SITE "cusparselt/lib/libcusparseLt.so.0");
  world_expect(world, HEADER, "cusparseLt", KILN_LOCATE_SCOPE_WHEEL,
               SITE "cusparselt/include");
  // A newer wheel comes first.
  world_put(world, SITE "nvidia/cusparselt/lib/libcusparseLt.so.0");
  kiln_locate_refresh(world->locate);
  world_expect(world, LIB, "cusparseLt", KILN_LOCATE_SCOPE_WHEEL,
               SITE "nvidia/cusparselt/lib/libcusparseLt.so.0");
}

static void two_variables(void** state) {
  world_t* world = *state;
  world_put(world, "a/lib64/libnvrtc.so.13");
  world_put(world, "b/lib64/libcufft.so.12");
  world_link(world, "c", "a");
  world_set(world, KILNI_ENV_CUDA_PATH, "a");
  static const struct {
    const char* home;
    uint32_t warnings;
  } rows[] = {{"b", 1}, {"a", 0},       {"a/", 0},   {"a/../a", 0},
              {"c", 0}, {"nowhere", 1}, {"./a//", 0}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    world_set(world, KILNI_ENV_CUDA_HOME, rows[i].home);
    world_forget(world);
    kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
    assert_int_equal(kiln_locate_item_warning_count(item), rows[i].warnings);
    if (rows[i].warnings > 0) {
      const char* text = kiln_locate_item_warning(item, 0);
      assert_non_null(strstr(text, world_path(world, rows[i].home)));
      assert_non_null(strstr(text, "CUDA_PATH takes precedence"));
      assert_null(kiln_locate_item_warning(item, 1));
    }
    kiln_locate_item_release(item);
    // What CUDA_PATH lacks is not taken from CUDA_HOME.
    world_expect(world, LIB, "cufft", 0, NULL);
  }
  // Empty is unset.
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_CUDA_PATH, ""));
  world_set(world, KILNI_ENV_CUDA_HOME, "b");
  world_forget(world);
  world_expect(world, LIB, "cufft", KILN_LOCATE_SCOPE_CUDA_HOME,
               "b/lib64/libcufft.so.12");
}

static void the_working_directory_is_never_searched(void** state) {
  world_t* world = *state;
  world_put(world, "here/lib64/libnvrtc.so.13");
  world_put(world, "here/libnvrtc.so.13");
  world_put(world,
            "here/lib/python3.11/site-packages/nvidia/cu13/lib/"
            "libnvrtc.so.13");
  world_put(world, "here/bin/nvcc");
  assert_int_equal(chmod(world_path(world, "here/bin/nvcc"), 0755), 0);
  char before[4096];
  assert_non_null(getcwd(before, sizeof(before)));
  assert_int_equal(chdir(world_path(world, "here")), 0);
  static const kilni_base_env_id_t ids[] = {
      KILNI_ENV_CUDA_PATH,       KILNI_ENV_CUDA_HOME,
      KILNI_ENV_CONDA_PREFIX,    KILNI_ENV_CUDNN_PATH,
      KILNI_ENV_LD_LIBRARY_PATH, KILNI_ENV_PYTHONPATH,
      KILNI_ENV_VIRTUAL_ENV,     KILNI_ENV_HOME};
  static const char* const values[] = {".", "", "lib64", "./", ":", "::.:"};
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
    for (size_t j = 0; j < sizeof(ids) / sizeof(ids[0]); j++) {
      assert_null(kilni_base_env_set(&world->env, ids[j], values[i]));
    }
    world_forget(world);
    world_expect(world, LIB, "nvrtc", 0, NULL);
    world_expect(world, BINARY, "nvcc", 0, NULL);
  }
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_true(world_tried(item, "LD_LIBRARY_PATH", "working directory"));
  assert_true(world_tried(item, "::.:", "not absolute"));
  kiln_locate_item_release(item);
  assert_int_equal(chdir(before), 0);
}

static void a_root_is_looked_at_first(void** state) {
  world_t* world = *state;
  world_put(world, "kit/lib64/libnvrtc.so.13");
  world_put(world, "kit/include/nvrtc.h");
  world_put(world, "site/nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, "odd[13]/targets/x86_64-linux/lib/libnvrtc.so.13");
  world_put(world, "flat/libnvrtc.so.12");
  world_put(world, "env/x");
  world_put(world, SITE "nvidia/cu13/lib/libnvrtc.so.13");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  static const char* const roots[] = {"kit", "site", "odd[13]", "flat"};
  static const char* const paths[] = {
      "kit/lib64/libnvrtc.so.13", "site/nvidia/cu13/lib/libnvrtc.so.13",
      "odd[13]/targets/x86_64-linux/lib/libnvrtc.so.13", "flat/libnvrtc.so.12"};
  for (size_t i = 0; i < 4; i++) {
    const char* root = world_path(world, roots[i]);
    world->options.roots = &root;
    world->options.root_count = 1;
    world_forget(world);
    world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_ROOT, paths[i]);
  }
}

static void policies(void** state) {
  world_t* world = *state;
  world_put(world, SITE "nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, "conda/lib/libnvrtc.so.13");
  world_put(world, "kit/lib64/libnvrtc.so.13");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CONDA_PREFIX, "conda");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  uint32_t wheel = KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_WHEEL);
  uint32_t conda = KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_CONDA);
  uint32_t path = KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_CUDA_PATH);
  world->options.prefer_scopes = path;
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/lib64/libnvrtc.so.13");
  world->options.prefer_scopes = path | conda;  // in their usual order
  world_forget(world);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_CONDA,
               "conda/lib/libnvrtc.so.13");
  world->options.prefer_scopes = 0;
  world->options.forbid_scopes = wheel | conda;
  world_forget(world);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/lib64/libnvrtc.so.13");
  world->options.forbid_scopes = 0;
  world->options.require_scopes = conda;
  world_forget(world);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_CONDA,
               "conda/lib/libnvrtc.so.13");
  world_expect(world, LIB, "cufft", 0, NULL);
  world->options.forbid_scopes = conda;  // wins over require
  world_forget(world);
  world_expect(world, LIB, "nvrtc", 0, NULL);
}

static void without_the_environment(void** state) {
  world_t* world = *state;
  world_put(world, "conda/lib/libnvrtc.so.13");
  world_put(world, "kit/lib64/libnvrtc.so.13");
  world_put(world, "usr/local/cuda/lib64/libnvrtc.so.13");
  world_set(world, KILNI_ENV_CONDA_PREFIX, "conda");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  assert_null(kilni_base_env_set_member(&world->env, "KILN_LOCATE_LIB_NVRTC",
                                        "/nowhere"));
  world->options.hermetic = KILN_SWITCH_ON;
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_SYSTEM,
               "usr/local/cuda/lib64/libnvrtc.so.13");
}

// Without variables, folders that are named are all that counts: what they lack
// is not found elsewhere.
static void hermetic_keeps_to_its_places(void** state) {
  world_t* world = *state;
  char root[WORLD_PATH_BYTES], site[WORLD_PATH_BYTES];
  const char* const roots[] = {root};
  const char* const sites[] = {site};
  snprintf(root, sizeof(root), "%s", world_path(world, "mine"));
  snprintf(site, sizeof(site), "%s", world_path(world, "site-packages"));
  world_put(world, "mine/lib64/libnvrtc.so.13");
  world_put(world, "site-packages/nvidia/cublas/lib/libcublas.so.12");
  world_put(world, "usr/local/cuda/lib64/libnvrtc.so.13");
  world_put(world, "usr/local/cuda/lib64/libcublas.so.13");
  world_put(world, "usr/local/cuda/lib64/libcufft.so.12");
  world_put(world, "usr/local/cuda/bin/nvcc");
  world_put(world, "usr/lib/x86_64-linux-gnu/libcuda.so.1");
  world->options.hermetic = KILN_SWITCH_ON;
  world->options.roots = roots;
  world->options.root_count = 1;
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_ROOT,
               "mine/lib64/libnvrtc.so.13");
  world_expect(world, LIB, "cufft", 0, NULL);
  world_expect(world, KILN_LOCATE_KIND_BINARY, "nvcc", 0, NULL);
  // A driver is no part of a toolkit: it is where the system has it.
  world_expect(world, LIB, "cuda", KILN_LOCATE_SCOPE_LOADER,
               "usr/lib/x86_64-linux-gnu/libcuda.so.1");
  world->options.sites = sites;
  world->options.site_count = 1;
  world_forget(world);
  world_expect(world, LIB, "cublas", KILN_LOCATE_SCOPE_WHEEL,
               "site-packages/nvidia/cublas/lib/libcublas.so.12");
  world_expect(world, LIB, "cufft", 0, NULL);
  world->options.root_count = 0;
  world_forget(world);
  world_expect(world, LIB, "nvrtc", 0, NULL);
  // Scopes that are named, and variables, have it as before.
  world->options.require_scopes =
      KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_SYSTEM);
  world_forget(world);
  world_expect(world, LIB, "cufft", KILN_LOCATE_SCOPE_SYSTEM,
               "usr/local/cuda/lib64/libcufft.so.12");
  world->options.require_scopes = 0;
  world->options.hermetic = KILN_SWITCH_OFF;
  world_forget(world);
  world_expect(world, LIB, "cufft", KILN_LOCATE_SCOPE_SYSTEM,
               "usr/local/cuda/lib64/libcufft.so.12");
}

static void both_spellings(void** state) {
  world_t* world = *state;
  world_put(world,
            "usr/local/cuda-13.0/targets/x86_64-linux/lib/"
            "libnvrtc.so.13.0.88");
  world_link(world,
             "usr/local/cuda-13.0/targets/x86_64-linux/lib/"
             "libnvrtc.so.13",
             "libnvrtc.so.13.0.88");
  world_link(world, "usr/local/cuda-13.0/lib64", "targets/x86_64-linux/lib");
  world_link(world, "usr/local/cuda", "cuda-13.0");
  world_put(world, "usr/local/cuda-13.0/include/nvrtc.h");
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  char* real = NULL;
  assert_null(kilni_base_path_real(
      kiln_allocator_libc(),
      world_path(world, "usr/local/cuda/lib64/libnvrtc.so.13"), &real));
  assert_string_equal(kiln_locate_item_path(item),
                      world_path(world, "usr/local/cuda/lib64/libnvrtc.so.13"));
  assert_string_equal(kiln_locate_item_real_path(item), real);
  assert_non_null(strstr(real, "libnvrtc.so.13.0.88"));
  kilni_base_strfree(kiln_allocator_libc(), real);
  assert_string_equal(kiln_locate_item_root(item),
                      world_path(world, "usr/local/cuda"));
  // Beside it: the headers of the same toolkit, by the same spelling.
  kiln_locate_item_t* header = NULL;
  assert_null(
      kiln_locate_find_beside(world->locate, item, HEADER, "nvrtc", &header));
  assert_string_equal(kiln_locate_item_path(header),
                      world_path(world, "usr/local/cuda/include"));
  assert_string_equal(kiln_locate_item_file(header),
                      world_path(world, "usr/local/cuda/include/nvrtc.h"));
  kiln_locate_item_release(header);
  // Nothing is taken from elsewhere.
  world_put(world, "opt/cuda/include/cufft.h");
  assert_null(
      kiln_locate_find_beside(world->locate, item, HEADER, "cufft", &header));
  assert_false(kiln_locate_item_found(header));
  kiln_locate_item_t* none = NULL;
  kiln_status_t status =
      kiln_locate_find_beside(world->locate, header, HEADER, "nvrtc", &none);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_STATE);
  assert_null(none);
  kiln_status_free(status);
  kiln_locate_item_release(item);
  kiln_locate_item_release(header);
}

static void another_machines_target(void** state) {
  world_t* world = *state;
  world_put(world, "kit/lib64/libcudart.so.13");
  world_put(world, "kit/targets/sbsa-linux/lib/libcudart.so.13");
  world_put(world, "kit/targets/aarch64-linux/lib/libcudart.so.13");
  world_put(world, "kit/targets/sbsa-linux/include/cuda_runtime.h");
  world_put(world, "kit/include/cuda_runtime.h");
  world_put(world, "kit/bin/nvcc");
  assert_int_equal(chmod(world_path(world, "kit/bin/nvcc"), 0755), 0);
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  world->options.target = "sbsa-linux";
  world_expect(world, LIB, "cudart", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/targets/sbsa-linux/lib/libcudart.so.13");
  world_expect(world, HEADER, "cudart", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/targets/sbsa-linux/include");
  // The compiler runs here, whatever it compiles for.
  world_expect(world, BINARY, "nvcc", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/bin/nvcc");
  world->options.target = "aarch64-linux";
  world_forget(world);
  world_expect(world, LIB, "cudart", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/targets/aarch64-linux/lib/libcudart.so.13");
}

static void folders_with_versions_in_their_names(void** state) {
  world_t* world = *state;
  world_put(world, "usr/include/nvshmem_12/nvshmem.h");
  world_put(world, "usr/include/nvshmem_9/nvshmem.h");
  world_expect(world, HEADER, "nvshmem", KILN_LOCATE_SCOPE_DISTRIBUTION,
               "usr/include/nvshmem_12");
}

static void every_copy(void** state) {
  world_t* world = *state;
  world_put(world, SITE "nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, SITE "nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  world_put(world, "usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  world_link(world, "usr/local/cuda", "cuda-13.0");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CUDA_HOME, "usr/local/cuda-13.0");
  kiln_locate_set_t* set = NULL;
  assert_null(kiln_locate_find_all(world_locate(world), LIB, "nvrtc", &set));
  assert_int_equal(kiln_locate_set_count(set), 3);
  static const char* const paths[] = {
      SITE "nvidia/cu13/lib/libnvrtc.so.13",
      SITE "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
      "usr/local/cuda-13.0/lib64/libnvrtc.so.13"};
  for (uint32_t i = 0; i < 3; i++) {
    assert_string_equal(kiln_locate_item_path(kiln_locate_set_item(set, i)),
                        world_path(world, paths[i]));
  }
  assert_null(kiln_locate_set_item(set, 3));
  kiln_locate_set_release(set);
  assert_null(kiln_locate_find_all(world->locate, LIB, "cufft", &set));
  assert_int_equal(kiln_locate_set_count(set), 1);
  assert_int_equal(kiln_locate_set_missing_count(set), 1);
  kiln_locate_set_release(set);
}

static void an_answer_stays(void** state) {
  world_t* world = *state;
  world_put(world, "kit/lib64/libnvrtc.so.13");
  world_expect(world, LIB, "nvrtc", 0, NULL);
  // Neither the environment nor the disk is asked again.
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  world_expect(world, LIB, "nvrtc", 0, NULL);
  world_put(world, "usr/local/cuda/lib64/libnvrtc.so.12");
  world_expect(world, LIB, "nvrtc", 0, NULL);
  kiln_locate_item_t* first = world_find(world, LIB, "nvrtc");
  kiln_locate_item_t* again = world_find(world, LIB, "nvrtc");
  assert_ptr_equal(first, again);
  kiln_locate_item_release(first);
  kiln_locate_item_release(again);
  // The disk is, after a refresh; the environment belongs to the context.
  kiln_locate_refresh(world->locate);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_SYSTEM,
               "usr/local/cuda/lib64/libnvrtc.so.12");
  world_forget(world);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/lib64/libnvrtc.so.13");
}

static void every_folder_of_a_root(void** state) {
  world_t* world = *state;
  // The first folder is there and has it not.
  world_put(world, "conda/lib/other.a");
  world_put(world, "conda/targets/x86_64-linux/lib/libcudadevrt.a");
  world_put(world, "kit/lib64/other.so");
  world_put(world, "kit/lib/libcufft.so.12");
  world_put(world, "kit/nvvm/lib64/libnvvm.so.4");
  world_set(world, KILNI_ENV_CONDA_PREFIX, "conda");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  world_expect(world, STATIC, "cudadevrt", KILN_LOCATE_SCOPE_CONDA,
               "conda/targets/x86_64-linux/lib/libcudadevrt.a");
  world_expect(world, LIB, "cufft", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/lib/libcufft.so.12");
  world_expect(world, LIB, "nvvm", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/nvvm/lib64/libnvvm.so.4");
}

static void names_that_are_none(void** state) {
  world_t* world = *state;
  static const struct {
    uint32_t kind;
    const char* name;
    const char* fix;
  } rows[] = {{LIB, "nvrct", "\"nvrtc\""},
              {LIB, "libnvrtc.so.13", "\"nvrtc\""},
              {LIB, "nvjitlink", "\"nvJitLink\""},
              {HEADER, "nvJitLink", "\"nvjitlink\""},
              {LIB, "ptxas", "binary \"ptxas\""},
              {LIB, "quite something else", "--all"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_locate_item_t* item = NULL;
    kiln_status_t status = kiln_locate_find(world_locate(world), rows[i].kind,
                                            rows[i].name, &item);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
    assert_null(item);
    if (strstr(kiln_status_fix(status), rows[i].fix) == NULL) {
      fail_msg("%s: %s", rows[i].name, kiln_status_fix(status));
    }
    kiln_status_free(status);
  }
  kiln_locate_item_t* item = NULL;
  kiln_status_t status = kiln_locate_find(world->locate, 99, "nvrtc", &item);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
}

static void options_that_are_wrong(void** state) {
  world_t* world = *state;
  const char* relative = "kit";
  const kiln_locate_override_t unknown = {LIB, 0, "nvrct", "/x"};
  const kiln_locate_override_t no_path = {LIB, 0, "nvrtc", "x"};
  for (int i = 0; i < 12; i++) {
    kiln_locate_options_t options = kiln_locate_options_default();
    switch (i) {
      case 0:
        options.roots = &relative;
        options.root_count = 1;
        break;
      case 1:
        options.sites = &relative;
        options.site_count = 1;
        break;
      case 2:
        options.pythons = &relative;
        options.python_count = 1;
        break;
      case 3:
        options.system_root = relative;
        break;
      case 4:
        options.secure = 3;
        break;
      case 5:
        options.forbid_scopes = UINT32_C(1) << 31;
        break;
      case 6:
        options.root_count = 1;
        break;
      case 7:
        options.overrides = &unknown;
        options.override_count = 1;
        break;
      case 8:
        options.target = "sbsa";
        break;
      case 9:
        options.target = "../-x";
        break;
      case 10:
        options.target = "";
        break;
      default:
        options.overrides = &no_path;
        options.override_count = 1;
        break;
    }
    kiln_locate_t* locate = NULL;
    kiln_status_t status = kilni_locate_create(&options, &world->env, &locate);
    if (kiln_status_code(status) != KILN_STATUS_INVALID_ARGUMENT) {
      fail_msg("case %d is accepted", i);
    }
    assert_null(locate);
    kiln_status_free(status);
  }
}

static void the_public_door(void** state) {
  (void)state;
  kiln_locate_t* locate = NULL;
  assert_null(kiln_locate_create(NULL, &locate));
  kiln_locate_retain(locate);
  kiln_locate_release(locate);
  kiln_locate_item_t* item = NULL;
  assert_null(kiln_locate_find(locate, LIB, "nvrtc", &item));
  kiln_locate_item_t* again = NULL;
  assert_null(kiln_locate_find(locate, LIB, "nvrtc", &again));
  assert_ptr_equal(item, again);
  kiln_locate_item_release(again);
  kiln_locate_release(locate);
  // An item outlives its context.
  assert_string_equal(kiln_locate_entry_name(kiln_locate_item_entry(item)),
                      "nvrtc");
  kiln_locate_item_release(item);
  kiln_locate_item_release(NULL);
  kiln_locate_release(NULL);
  kiln_locate_set_release(NULL);
  kiln_locate_refresh(NULL);
  for (uint32_t i = 1; i < 15; i++) {
    const char* word = kiln_locate_scope_name(i);
    kiln_string_view_t view = {word, strlen(word)};
    assert_int_equal(kiln_locate_scope_parse(view), i);
  }
  assert_string_equal(kiln_locate_scope_name(0), "?");
  assert_string_equal(kiln_locate_scope_name(15), "?");
  assert_int_equal(kiln_locate_scope_parse((kiln_string_view_t){"wheels", 6}),
                   0);
}

#define IN_A_WORLD(test) \
  cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_WORLD(an_empty_machine),
      IN_A_WORLD(the_order_for_a_library),
      IN_A_WORLD(the_order_for_what_is_no_library),
      IN_A_WORLD(a_program_must_be_one),
      IN_A_WORLD(the_drivers_libraries),
      IN_A_WORLD(products_have_variables),
      IN_A_WORLD(what_is_told_is_told_once),
      IN_A_WORLD(majors_are_preferred_newest_first),
      IN_A_WORLD(a_wheel_with_an_older_layout),
      IN_A_WORLD(two_variables),
      IN_A_WORLD(the_working_directory_is_never_searched),
      IN_A_WORLD(a_root_is_looked_at_first),
      IN_A_WORLD(policies),
      IN_A_WORLD(without_the_environment),
      IN_A_WORLD(hermetic_keeps_to_its_places),
      IN_A_WORLD(both_spellings),
      IN_A_WORLD(another_machines_target),
      IN_A_WORLD(folders_with_versions_in_their_names),
      IN_A_WORLD(every_copy),
      IN_A_WORLD(an_answer_stays),
      IN_A_WORLD(every_folder_of_a_root),
      IN_A_WORLD(names_that_are_none),
      IN_A_WORLD(options_that_are_wrong),
      IN_A_WORLD(the_public_door),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
