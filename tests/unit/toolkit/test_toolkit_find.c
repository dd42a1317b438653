// SPDX-License-Identifier: Apache-2.0
//
// toolkit: finds that are checked and remembered, uses, modes, the driver: the
// guard-rail cases that need files.
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

#include "base/status_make.h"
#include "elf_make.h"
#include "locate_world.h"
#include "toolkit/toolkit.h"

// ---- A context ----

static char g_log[16384];

static void on_log(kiln_log_level_t level, const char* space, const char* line,
                   void* user) {
  (void)space;
  (void)user;
  if (level != KILN_LOG_WARNING) return;
  size_t at = strlen(g_log);
  snprintf(g_log + at, sizeof(g_log) - at, "%s\n", line);
}

// How a context is made. one-thread
typedef struct made_t {
  uint32_t mode;
  const char* ctk_version;
  const char* driver;  // for kiln_compat_driver_parse; NULL asks
  const char* cuda_library;
} made_t;

static kiln_status_t try_make(world_t* world, made_t made,
                              kiln_toolkit_t** out_toolkit) {
  static kiln_log_sink_t sink = {on_log, NULL, 0, 0};
  kiln_compat_driver_t driver;
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &world->options;
  options.mode = made.mode;
  options.ctk_version = made.ctk_version;
  options.cuda_library = made.cuda_library;
  options.log = &sink;
  if (made.driver != NULL) {
    assert_null(kiln_compat_driver_parse(made.driver, &driver));
    options.driver = &driver;
  }
  g_log[0] = 0;
  return kilni_toolkit_create(&options, &world->env, out_toolkit);
}

static kiln_toolkit_t* make(world_t* world, made_t made) {
  kiln_toolkit_t* toolkit = NULL;
  assert_null(try_make(world, made, &toolkit));
  return toolkit;
}

static kiln_toolkit_t* strict(world_t* world) {
  return make(world, (made_t){KILN_COMPAT_MODE_STRICT, NULL, "13.5", NULL});
}

// Finds; what came of it.
static kiln_status_code_t find(kiln_toolkit_t* toolkit, uint32_t kind,
                               const char* name) {
  kiln_toolkit_item_t* item = NULL;
  kiln_status_t status = kiln_toolkit_find(toolkit, kind, name, &item);
  assert_int_equal(kiln_status_is_ok(status), item != NULL);
  kiln_status_code_t code = kiln_status_code(status);
  if (code != KILN_STATUS_OK) assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  kiln_toolkit_item_release(item);
  return code;
}

static uint32_t line_of(kiln_toolkit_t* toolkit, uint32_t kind,
                        const char* name) {
  kiln_toolkit_item_t* item = NULL;
  assert_null(kiln_toolkit_resolve(toolkit, kind, name, &item));
  uint32_t line = kiln_toolkit_item_line(item);
  kiln_toolkit_item_release(item);
  return line;
}

enum {
  LIB = KILN_LOCATE_KIND_LIB,
  HEADER = KILN_LOCATE_KIND_HEADER,
  STATIC = KILN_LOCATE_KIND_STATIC,
  BITCODE = KILN_LOCATE_KIND_BITCODE,
  BINARY = KILN_LOCATE_KIND_BINARY,
};

// A toolkit that CUDA_HOME names, with a cuda.h.
static void put_toolkit(world_t* world, const char* version) {
  char text[64];
  snprintf(text, sizeof(text), "#define CUDA_VERSION %s\n", version);
  world_text(world, "kit/include/cuda.h", text);
  world_put(world, "kit/include/cuda_runtime.h");
  world_put(world, "kit/lib64/libnvrtc.so.13");
  world_put(world, "kit/lib64/libcublas.so.13");
  world_put(world, "kit/lib64/libcudadevrt.a");
  world_put(world, "kit/nvvm/libdevice/libdevice.10.bc");
  world_text(world, "kit/bin/nvcc", "#!/bin/sh\n");
  assert_int_equal(chmod(world_path(world, "kit/bin/nvcc"), 0755), 0);
  world_set(world, KILNI_ENV_CUDA_HOME, "kit");
}

// The NVRTC of a wheel of another line than the toolkit.
static void put_wheel(world_t* world, const char* version) {
  static const char* site;
  char name[128];
  world_put(world, "site/nvidia/cu13/lib/libnvrtc.so.13");
  snprintf(name, sizeof(name), "site/nvidia_cuda_nvrtc-%s.dist-info/RECORD",
           version);
  world_text(world, name, "nvidia/cu13/lib/libnvrtc.so.13,,\n");
  site = world_path(world, "site");
  world->options.sites = &site;
  world->options.site_count = 1;
}

// ---- Guard-rail cases with files ----

static void a_tree_without_a_version(void** state) {  // case 10
  world_t* world = *state;
  world_put(world, "kit/lib64/libcublas.so.13");
  world_set(world, KILNI_ENV_CUDA_HOME, "kit");
  kiln_toolkit_t* toolkit = strict(world);
  kiln_toolkit_item_t* item = NULL;
  kiln_status_t status = kiln_toolkit_find(toolkit, LIB, "cublas", &item);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INSUFFICIENT_METADATA);
  assert_null(item);
  assert_non_null(strstr(kiln_status_fix(status), "cuda.h"));
  kiln_status_free(status);
  kiln_toolkit_release(toolkit);
  toolkit =
      make(world, (made_t){KILN_COMPAT_MODE_BEST_EFFORT, NULL, "13.5", NULL});
  assert_int_equal(find(toolkit, LIB, "cublas"), KILN_STATUS_OK);
  kiln_toolkit_release(toolkit);
}

static void a_header_tells_all_kinds(void** state) {  // cases 11, 19, 21
  world_t* world = *state;
  put_toolkit(world, "13020");
  kiln_toolkit_t* toolkit = make(
      world, (made_t){KILN_COMPAT_MODE_STRICT, NULL, "13.0,580.65.06", NULL});
  assert_int_equal(line_of(toolkit, LIB, "nvrtc"), 13020);
  assert_int_equal(line_of(toolkit, HEADER, "cudart"), 13020);
  assert_int_equal(line_of(toolkit, STATIC, "cudadevrt"), 13020);
  assert_int_equal(line_of(toolkit, BITCODE, "device"), 13020);
  assert_int_equal(line_of(toolkit, BINARY, "nvcc"), 13020);
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  assert_int_equal(find(toolkit, HEADER, "cudart"), KILN_STATUS_OK);
  assert_int_equal(find(toolkit, STATIC, "cudadevrt"), KILN_STATUS_OK);
  assert_int_equal(find(toolkit, BITCODE, "device"), KILN_STATUS_OK);
  assert_int_equal(find(toolkit, BINARY, "nvcc"), KILN_STATUS_OK);
  kiln_toolkit_release(toolkit);
}

static void a_wheel_and_headers_of_another_line(void** state) {
  world_t* world = *state;  // the case that the guard rails were made for
  put_toolkit(world, "13000");
  put_wheel(world, "13.2.78");
  kiln_toolkit_t* toolkit = strict(world);
  assert_int_equal(line_of(toolkit, LIB, "nvrtc"), 13020);
  assert_int_equal(line_of(toolkit, HEADER, "cudart"), 13000);
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  kiln_toolkit_item_t* item = NULL;
  kiln_status_t status = kiln_toolkit_find(toolkit, HEADER, "cudart", &item);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  assert_non_null(strstr(kiln_status_message(status), "nvrtc"));
  assert_non_null(strstr(kiln_status_message(status), "cudart"));
  kiln_status_free(status);
  // The other way round it is the other that is refused, by the same rule.
  kiln_toolkit_reset(toolkit);
  assert_int_equal(find(toolkit, HEADER, "cudart"), KILN_STATUS_OK);
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_INCOMPATIBLE);
  // A refused piece is not in use: another may be found in peace.
  assert_int_equal(find(toolkit, LIB, "cublas"), KILN_STATUS_OK);
  kiln_toolkit_release(toolkit);
  // `warn` says it once, however often both are found.
  toolkit = make(world, (made_t){KILN_COMPAT_MODE_WARN, NULL, "13.5", NULL});
  for (int i = 0; i < 3; i++) {
    assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
    assert_int_equal(find(toolkit, HEADER, "cudart"), KILN_STATUS_OK);
  }
  const char* said = strstr(g_log, "cudart");
  assert_non_null(said);
  assert_null(strchr(strchr(g_log, '\n') + 1, '\n'));
  kiln_toolkit_release(toolkit);
}

static void what_is_allowed(void** state) {  // cases 16, 17, 18
  world_t* world = *state;
  put_toolkit(world, "12090");
  kiln_toolkit_t* toolkit = make(
      world, (made_t){KILN_COMPAT_MODE_STRICT, ">=12.9,<13", "13.0", NULL});
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  kiln_toolkit_release(toolkit);
  toolkit =
      make(world, (made_t){KILN_COMPAT_MODE_STRICT, "<12.9", "13.0", NULL});
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_INCOMPATIBLE);
  kiln_toolkit_release(toolkit);
  kiln_status_t status = try_make(
      world, (made_t){KILN_COMPAT_MODE_OFF, "13.2", "13.0", NULL}, &toolkit);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_null(toolkit);
  kiln_status_free(status);
}

static void pins_of_the_meta_wheel(void** state) {  // case 15
  world_t* world = *state;
  put_wheel(world, "13.2.78");
  world_text(world, "site/cuda_toolkit-13.2.1.dist-info/RECORD", "");
  world_text(world, "site/cuda_toolkit-13.2.1.dist-info/METADATA",
             "Name: cuda-toolkit\nVersion: 13.2.1\n"
             "Requires-Dist: nvidia-cuda-nvrtc==13.2.78.*; extra == 'nvrtc'\n");
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &world->options;
  options.verify = KILN_SWITCH_ON;
  kiln_toolkit_t* toolkit = NULL;
  assert_null(kilni_toolkit_create(&options, &world->env, &toolkit));
  kiln_toolkit_item_t* item = NULL;
  assert_null(kiln_toolkit_resolve(toolkit, LIB, "nvrtc", &item));
  assert_int_equal(kiln_toolkit_item_line(item), 13020);
  assert_string_equal(kiln_toolkit_item_release_text(item), "13.2.78");
  bool pin = false;
  for (uint32_t i = 0; i < kiln_toolkit_item_evidence_count(item); i++) {
    const kiln_compat_evidence_t* e = kiln_toolkit_item_evidence(item, i);
    if (e->source != KILN_COMPAT_SOURCE_EXACT_PIN) continue;
    pin = true;
    assert_string_equal(
        e->text, "cuda-toolkit 13.2.1 requires nvidia-cuda-nvrtc==13.2.78.*");
  }
  assert_true(pin);
  assert_null(
      kiln_toolkit_item_evidence(item, kiln_toolkit_item_evidence_count(item)));
  kiln_toolkit_item_release(item);
  kiln_toolkit_release(toolkit);
}

static void no_more_than_tells_the_line(void** state) {
  world_t* world = *state;
  put_wheel(world, "13.2.78");
  elf_plan_t plan = {.soname = "libnvrtc.so.13"};
  elf_made_t made = elf_make(&plan);
  world_write(world, "site/nvidia/cu13/lib/libnvrtc.so.13", made.data,
              made.size);
  free(made.data);
  world_put(world, "site/nvidia/cu13/lib/libnvrtc-builtins.so.13.2");
  for (uint32_t i = KILN_SWITCH_DEFAULT; i <= KILN_SWITCH_OFF; i++) {
    kiln_toolkit_options_t options = kiln_toolkit_options_default();
    options.locate = &world->options;
    options.mode = KILN_COMPAT_MODE_OFF;
    options.verify = i;
    kiln_toolkit_t* toolkit = NULL;
    assert_null(kilni_toolkit_create(&options, &world->env, &toolkit));
    kiln_toolkit_item_t* item = NULL;
    assert_null(kiln_toolkit_resolve(toolkit, LIB, "nvrtc", &item));
    assert_int_equal(kiln_toolkit_item_line(item), 13020);
    const bool off = i == KILN_SWITCH_OFF;
    assert_string_equal(kiln_toolkit_item_release_text(item),
                        off ? "" : "13.2.78");
    assert_int_equal(kiln_toolkit_item_evidence_count(item), off ? 1 : 2);
    kiln_toolkit_item_release(item);
    kiln_toolkit_release(toolkit);
  }
}

static void what_is_not_there_is_not_checked(void** state) {  // case 27
  world_t* world = *state;
  kiln_toolkit_t* toolkit = strict(world);
  kiln_toolkit_item_t* item = NULL;
  assert_null(kiln_toolkit_find(toolkit, HEADER, "nvrtc", &item));
  assert_false(kiln_locate_item_found(kiln_toolkit_item_located(item)));
  assert_int_equal(kiln_toolkit_item_line(item), 0);
  kiln_toolkit_item_release(item);
  kiln_toolkit_release(toolkit);
}

static void the_same_again(void** state) {  // case 28
  world_t* world = *state;
  put_toolkit(world, "13000");
  kiln_toolkit_t* toolkit = strict(world);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  }
  kiln_compat_report_t* report = NULL;
  assert_null(kiln_toolkit_check(toolkit, NULL, 0, NULL, 0, &report));
  assert_int_equal(kiln_compat_report_verdict(report),
                   KILN_COMPAT_VERDICT_COMPATIBLE);
  kiln_compat_report_release(report);
  kiln_toolkit_release(toolkit);
}

// ---- Products with a number of their own ----

static void releases_and_what_tells_them(void** state) {
  world_t* world = *state;
  put_toolkit(world, "13000");
  put_wheel(world, "13.0.88");
  world_put(world, "kit/lib64/libcudnn.so.9");
  world_put(world, "kit/lib64/libnccl.so.2");
  world_text(world, "kit/include/cudnn_version.h",
             "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 19\n"
             "#define CUDNN_PATCHLEVEL 0\n");
  static const struct {
    const char* name;
    const char* release;
    const char* source;
    const char* evidence;  // how it ends
  } rows[] = {
      {"cudnn", "9.19.0", "header", "kit/include/cudnn_version.h"},
      {"nvrtc", "13.0.88", "wheel", "nvidia-cuda-nvrtc"},
      {"nccl", "", "", ""},
  };
  kiln_toolkit_t* toolkit = strict(world);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_toolkit_item_t* item = NULL;
    assert_null(kiln_toolkit_resolve(toolkit, LIB, rows[i].name, &item));
    const char* evidence = kiln_toolkit_item_release_evidence(item);
    size_t size = strlen(rows[i].evidence);
    assert_string_equal(kiln_toolkit_item_release_text(item), rows[i].release);
    assert_string_equal(kiln_toolkit_item_release_source(item), rows[i].source);
    assert_true(strlen(evidence) >= size);
    assert_string_equal(evidence + strlen(evidence) - size, rows[i].evidence);
    assert_string_equal(kiln_toolkit_item_fact(item)->release, rows[i].release);
    kiln_toolkit_item_release(item);
  }
  kiln_toolkit_release(toolkit);
}

// ---- Uses ----

static kiln_status_code_t declare(kiln_toolkit_t* toolkit, const char* producer,
                                  const char* consumer, uint32_t artifact) {
  kiln_compat_use_t use = kiln_compat_use_default();
  use.producer = producer;
  use.consumer = consumer;
  use.artifact = artifact;
  kiln_status_t status = kiln_toolkit_use_declare(toolkit, &use);
  kiln_status_code_t code = kiln_status_code(status);
  kiln_status_free(status);
  return code;
}

static void a_declared_use(void** state) {  // cases 4, 5, 8
  world_t* world = *state;
  // NVRTC 13.2 of a wheel, nvJitLink 13.0 of a toolkit.
  put_toolkit(world, "13000");
  put_wheel(world, "13.2.78");
  world_put(world, "kit/lib64/libnvJitLink.so.13");
  uint32_t ltoir = KILN_COMPAT_ARTIFACT_LTOIR;
  kiln_toolkit_t* toolkit = strict(world);
  // Declared first: the second piece is refused.
  assert_int_equal(declare(toolkit, "nvrtc", "nvJitLink", ltoir),
                   KILN_STATUS_OK);
  assert_int_equal(declare(toolkit, "nvrtc", "nvJitLink", ltoir),
                   KILN_STATUS_OK);
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  assert_int_equal(find(toolkit, LIB, "nvJitLink"), KILN_STATUS_INCOMPATIBLE);
  // Declared last: the use is refused, and not remembered.
  kiln_toolkit_reset(toolkit);
  assert_int_equal(find(toolkit, LIB, "nvJitLink"), KILN_STATUS_OK);
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  assert_int_equal(declare(toolkit, "nvrtc", "nvJitLink", ltoir),
                   KILN_STATUS_INCOMPATIBLE);
  kiln_compat_report_t* report = NULL;
  assert_null(kiln_toolkit_check(toolkit, NULL, 0, NULL, 0, &report));
  assert_int_equal(kiln_compat_report_verdict(report),
                   KILN_COMPAT_VERDICT_COMPATIBLE);
  kiln_compat_report_release(report);
  // The other way nobody takes it, and no rule has a word on it.
  assert_int_equal(declare(toolkit, "nvJitLink", "nvrtc", ltoir),
                   KILN_STATUS_INSUFFICIENT_METADATA);
  assert_int_equal(declare(toolkit, "nvrtc", "nvJitLink", 9),
                   KILN_STATUS_INVALID_ARGUMENT);
  assert_int_equal(declare(toolkit, "nvrtcc", "nvJitLink", ltoir),
                   KILN_STATUS_INVALID_ARGUMENT);
  assert_int_equal(declare(toolkit, "nvrtc", NULL, ltoir),
                   KILN_STATUS_INVALID_ARGUMENT);
  kiln_toolkit_release(toolkit);
}

// ---- The driver ----

static uint32_t driver_state(world_t* world, const char* library,
                             uint32_t* out_line) {
  kiln_toolkit_t* toolkit =
      make(world, (made_t){KILN_COMPAT_MODE_STRICT, NULL, NULL, library});
  kiln_compat_driver_t driver;
  assert_null(kiln_toolkit_driver(toolkit, &driver));
  if (driver.state != KILN_COMPAT_DRIVER_KNOWN) {
    assert_non_null(driver.evidence);
  }
  *out_line = driver.line;
  uint32_t state = driver.state;
  kiln_toolkit_reset(toolkit);
  assert_null(kiln_toolkit_driver(toolkit, &driver));
  assert_int_equal(driver.state, state);
  kiln_toolkit_release(toolkit);
  return state;
}

static void what_the_driver_says(void** state) {  // cases 22, 23
  world_t* world = *state;
  uint32_t line = 0;
  assert_int_equal(driver_state(world, "/nowhere/libcuda.so.1", &line),
                   KILN_COMPAT_DRIVER_NONE);
  assert_int_equal(driver_state(world, "libm.so.6", &line),
                   KILN_COMPAT_DRIVER_UNKNOWN);
  assert_int_equal(line, 0);
  assert_int_equal(driver_state(world, TEST_LIBCUDA, &line),
                   KILN_COMPAT_DRIVER_KNOWN);
  assert_int_equal(line, 13000);
}

static void a_driver_that_is_missing_or_fails(void** state) {  // case 23
  world_t* world = *state;
  put_toolkit(world, "13000");
  // None: a build host, on which nothing runs.
  kiln_toolkit_t* toolkit = make(
      world,
      (made_t){KILN_COMPAT_MODE_STRICT, NULL, NULL, "/nowhere/libcuda.so.1"});
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  kiln_toolkit_release(toolkit);
  // One that cannot be asked: not enough is known.
  toolkit =
      make(world, (made_t){KILN_COMPAT_MODE_STRICT, NULL, NULL, "libm.so.6"});
  assert_int_equal(find(toolkit, LIB, "nvrtc"),
                   KILN_STATUS_INSUFFICIENT_METADATA);
  kiln_toolkit_release(toolkit);
  toolkit = make(
      world, (made_t){KILN_COMPAT_MODE_BEST_EFFORT, NULL, NULL, "libm.so.6"});
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  kiln_toolkit_release(toolkit);
}

static void a_driver_that_is_too_old(void** state) {  // cases 9, 24, 25, 29
  world_t* world = *state;
  put_toolkit(world, "12090");
  kiln_toolkit_t* toolkit = make(
      world, (made_t){KILN_COMPAT_MODE_STRICT, NULL, "12.0,525.60.13", NULL});
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  kiln_toolkit_release(toolkit);
  toolkit = make(
      world, (made_t){KILN_COMPAT_MODE_STRICT, NULL, "12.0,520.30.01", NULL});
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_INCOMPATIBLE);
  kiln_toolkit_release(toolkit);
  // The override relaxes this rule, and is remembered as any find.
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_KILN_COMPAT,
                                 "strict,forward_compat"));
  toolkit = make(world, (made_t){0, NULL, "12.0,520.30.01", NULL});
  assert_int_equal(kiln_toolkit_mode(toolkit), KILN_COMPAT_MODE_STRICT);
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  kiln_toolkit_release(toolkit);
}

// ---- Modes ----

static uint32_t mode_of(world_t* world, const char* kiln,
                        const char* pathfinder) {
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_KILN_COMPAT, kiln));
  assert_null(kilni_base_env_set(
      &world->env, KILNI_ENV_CUDA_PATHFINDER_COMPATIBILITY_GUARD_RAILS,
      pathfinder));
  kiln_toolkit_t* toolkit = NULL;
  kiln_status_t status =
      try_make(world, (made_t){0, NULL, "none", NULL}, &toolkit);
  if (!kiln_status_is_ok(status)) {
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
    assert_null(toolkit);
    kiln_status_free(status);
    return 99;
  }
  uint32_t mode = kiln_toolkit_mode(toolkit);
  kiln_toolkit_release(toolkit);
  return mode;
}

static void modes_from_variables(void** state) {
  world_t* world = *state;
  assert_int_equal(mode_of(world, NULL, NULL), KILN_COMPAT_MODE_WARN);
  assert_int_equal(mode_of(world, "", ""), KILN_COMPAT_MODE_WARN);
  assert_int_equal(mode_of(world, "off", NULL), KILN_COMPAT_MODE_OFF);
  assert_int_equal(mode_of(world, NULL, "best_effort"),
                   KILN_COMPAT_MODE_BEST_EFFORT);
  assert_int_equal(mode_of(world, "strict", "off"), KILN_COMPAT_MODE_STRICT);
  // A value that is none is an error in every mode, also an overridden one.
  assert_int_equal(mode_of(world, "loud", NULL), 99);
  assert_int_equal(mode_of(world, NULL, "warn"), 99);
  assert_int_equal(mode_of(world, "off", "loud"), 99);
  assert_null(kilni_base_env_set(
      &world->env, KILNI_ENV_CUDA_PATHFINDER_DRIVER_COMPATIBILITY, "perhaps"));
  assert_int_equal(mode_of(world, "off", NULL), 99);
}

static void off_checks_nothing(void** state) {
  world_t* world = *state;
  put_toolkit(world, "13000");
  put_wheel(world, "13.2.78");
  kiln_toolkit_t* toolkit =
      make(world, (made_t){KILN_COMPAT_MODE_OFF, "<12", "12.0", NULL});
  assert_int_equal(find(toolkit, LIB, "nvrtc"), KILN_STATUS_OK);
  assert_int_equal(find(toolkit, HEADER, "cudart"), KILN_STATUS_OK);
  assert_string_equal(g_log, "");
  kiln_toolkit_release(toolkit);
}

static void bad_options(void** state) {
  world_t* world = *state;
  kiln_toolkit_t* toolkit = NULL;
  kiln_status_t status =
      try_make(world, (made_t){9, NULL, "none", NULL}, &toolkit);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  kiln_toolkit_item_t* item = NULL;
  status = kiln_toolkit_find(NULL, LIB, "nvrtc", &item);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  toolkit = strict(world);
  assert_int_equal(find(toolkit, LIB, "nvrct"), KILN_STATUS_INVALID_ARGUMENT);
  status = kiln_toolkit_find(toolkit, LIB, NULL, &item);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_null(item);
  kiln_status_free(status);
  assert_non_null(kiln_toolkit_locate(toolkit));
  kiln_toolkit_retain(toolkit);
  kiln_toolkit_release(toolkit);
  kiln_toolkit_release(toolkit);
  kiln_toolkit_release(NULL);
  kiln_toolkit_item_release(NULL);
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_tree_without_a_version),
      TEST(a_header_tells_all_kinds),
      TEST(a_wheel_and_headers_of_another_line),
      TEST(what_is_allowed),
      TEST(pins_of_the_meta_wheel),
      TEST(no_more_than_tells_the_line),
      TEST(what_is_not_there_is_not_checked),
      TEST(the_same_again),
      TEST(releases_and_what_tells_them),
      TEST(a_declared_use),
      TEST(what_the_driver_says),
      TEST(a_driver_that_is_missing_or_fails),
      TEST(a_driver_that_is_too_old),
      TEST(modes_from_variables),
      TEST(off_checks_nothing),
      TEST(bad_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
