// SPDX-License-Identifier: Apache-2.0
//
// compile: a result out of a cache on the disk, with no compiler in the
// process, no header read and no second compiler looked for. Runs itself once
// to fill the cache. Without an NVRTC, skipped.
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kiln/runtime.h"

// What the library asks, by the linker's --wrap.
int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...);
DIR* __real_opendir(const char* path);
DIR* __wrap_opendir(const char* path);

static int g_headers_read;
static int g_last_place;  // how often the last of all places was listed

int __wrap_open(const char* path, int flags, ...) {
  size_t size = strlen(path);
  g_headers_read += size > 2 && strcmp(path + size - 2, ".h") == 0;
  va_list rest;
  va_start(rest, flags);
  int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
  va_end(rest);
  return __real_open(path, flags, mode);
}

DIR* __wrap_opendir(const char* path) {
  g_last_place += strstr(path, "/hpc_sdk/") != NULL;
  return __real_opendir(path);
}

// How often a name stands in the process's memory map.
static int mapped(const char* name) {
  char line[4096];
  int count = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
    if (strstr(line, name) != NULL) count++;
  }
  if (maps != NULL) (void)fclose(maps);
  return count;
}

static int fail(const char* what, kiln_status_t status) {
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  printf("%s: %s\n", what, text);
  bool absent = kiln_status_code(status) == KILN_STATUS_NOT_FOUND;
  kiln_status_free(status);
  return absent ? 77 : 1;
}

static const char kSource[] =
    "#include <cuda_fp16.h>\n"
    "__global__ void k(__half* x) { x[0] = __float2half(1); }\n";

static int compile(kiln_compiler_t* compiler, kiln_cache_t* cache,
                   uint32_t wanted) {
  kiln_compile_options_t options = kiln_compile_options_default();
  kiln_compile_result_t* result = NULL;
  options.cache = cache;
  kiln_string_view_t source = {kSource, sizeof(kSource) - 1};
  kiln_status_t status =
      kiln_compiler_compile(compiler, source, &options, &result);
  if (!kiln_status_is_ok(status)) return fail("compile", status);
  uint32_t got = kiln_compile_result_cache(result);
  bool hit = got == KILN_COMPILE_CACHE_HIT;
  int problems = 0;
  if (got != wanted) {
    printf("the cache said %u: %s\n", (unsigned)got,
           kiln_compile_result_cache_reason(result));
    problems++;
  }
  static const char* const libraries[] = {"libnvrtc", "libnvJitLink", "libnvvm",
                                          "libcuda.so",
                                          "libnvidia-ptxjitcompiler"};
  for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
    if (!hit || mapped(libraries[i]) == 0) continue;
    printf("%s is mapped\n", libraries[i]);
    problems++;
  }
  if (kiln_compiler_is_loaded(compiler) == hit) {
    printf("loaded: %d\n", (int)!hit);
    problems++;
  }
  if (!hit && mapped("libnvrtc") == 0) problems++;
  if (hit == (g_headers_read != 0)) {
    printf("%d headers were read\n", g_headers_read);
    problems++;
  }
  if (g_last_place != 0 &&
      strstr(kiln_compiler_path(compiler), "/hpc_sdk/") == NULL) {
    printf("more copies were looked for than the first\n");
    problems++;
  }
  kiln_compile_result_release(result);
  return problems;
}

static int run(const char* folder, uint32_t wanted) {
  kiln_runtime_t* runtime = NULL;
  kiln_compiler_t* compiler = NULL;
  kiln_cache_t* cache = NULL;
  kiln_cache_options_t where = kiln_cache_options_default();
  where.directory = folder;
  where.disk = KILN_SWITCH_ON;
  kiln_compiler_options_t how = kiln_compiler_options_default();
  how.lazy = KILN_SWITCH_ON;
  kiln_status_t status = kiln_runtime_create(NULL, &runtime);
  if (kiln_status_is_ok(status)) status = kiln_cache_create(&where, &cache);
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_open_compiler(runtime, &how, &compiler);
  }
  int problems = kiln_status_is_ok(status) ? compile(compiler, cache, wanted)
                                           : fail("open", status);
  kiln_compiler_release(compiler);
  kiln_cache_release(cache);
  kiln_runtime_release(runtime);
  return problems;
}

int main(int argc, char** argv) {
  if (argc == 3) {
    return run(argv[2], (uint32_t)strtoul(argv[1], NULL, 10));
  }
  char folder[] = "/tmp/kiln-lazy-XXXXXX";
  char line[4096];
  if (mkdtemp(folder) == NULL) return 1;
  snprintf(line, sizeof(line), "'%s' %d '%s'", argv[0],
           (int)KILN_COMPILE_CACHE_MISS, folder);
  int first = system(line);
  int code = first > 255 ? first / 256 : first;
  if (code == 0) code = run(folder, KILN_COMPILE_CACHE_HIT);
  if (code == 77) printf("skipped: no NVRTC\n");
  snprintf(line, sizeof(line), "rm -rf '%s'", folder);
  if (system(line) != 0) return 1;
  return code;
}
