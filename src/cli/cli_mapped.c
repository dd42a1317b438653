// SPDX-License-Identifier: Apache-2.0
//
// cli: which of CUDA's libraries are in the process, by its memory map.
#include "cli/cli_mapped.h"

#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 4400 };

static bool mapped_is_of_cuda(const char* path) {
  static const char* const STARTS[] = {"libcuda", "libnv", "libcudart"};
  const char* slash = strrchr(path, '/');
  const char* name = slash != NULL ? slash + 1 : path;
  for (size_t i = 0; i < sizeof(STARTS) / sizeof(STARTS[0]); i++) {
    if (strncmp(name, STARTS[i], strlen(STARTS[i])) == 0) return true;
  }
  return false;
}

void kilni_cli_mapped_each(void (*fn)(const char* path, void* user),
                           void* user) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[LINE_BYTES];
  char last[LINE_BYTES] = "";
  if (maps == NULL) return;
  while (fgets(line, sizeof(line), maps) != NULL) {
    char* path = strchr(line, '/');
    if (path == NULL) continue;
    path[strcspn(path, "\n")] = 0;
    // The mappings of one library are adjacent.
    if (strcmp(path, last) == 0 || !mapped_is_of_cuda(path)) continue;
    memcpy(last, path, strlen(path) + 1);
    fn(path, user);
  }
  (void)fclose(maps);
}
