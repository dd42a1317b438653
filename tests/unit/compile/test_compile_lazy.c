// SPDX-License-Identifier: Apache-2.0
//
// compile: a result out of a cache on the disk, with no compiler in the
// process. Runs itself once to fill the cache. Without an NVRTC, skipped.
#define _XOPEN_SOURCE 700
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kiln/runtime.h"

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
