// SPDX-License-Identifier: Apache-2.0
//
// support: runs a fuzz target over the files of its corpus, without libFuzzer.
//
// Arguments are files and folders (not descended into). What a fuzz run once
// found stays in the corpus, and so is tried by every compiler and sanitizer.
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static int replay_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return -1;
  uint8_t* data = NULL;
  size_t size = 0;
  size_t capacity = 0;
  size_t got;
  do {
    if (capacity - size < 4096) {
      capacity = capacity * 2 + 8192;
      data = realloc(data, capacity);
      if (data == NULL) exit(2);
    }
    got = fread(data + size, 1, capacity - size, file);
    size += got;
  } while (got > 0);
  fclose(file);
  // A block of exactly this size, so that a read behind its end is seen.
  uint8_t* exact = malloc(size ? size : 1);
  if (exact == NULL) exit(2);
  if (size > 0) memcpy(exact, data, size);
  free(data);
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
  return 1;
}

static int replay(const char* path) {
  DIR* folder = opendir(path);
  if (folder == NULL) return replay_file(path);
  int count = 0;
  const struct dirent* entry;
  while ((entry = readdir(folder)) != NULL) {
    if (entry->d_name[0] == '.') continue;
    char name[PATH_BYTES];
    snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
    int done = replay_file(name);
    if (done < 0) {
      fprintf(stderr, "%s cannot be read\n", name);
      count = -1;
      break;
    }
    count += done;
  }
  closedir(folder);
  return count;
}

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; i++) {
    int done = replay(argv[i]);
    if (done < 0) {
      fprintf(stderr, "%s cannot be read\n", argv[i]);
      return 1;
    }
    count += done;
  }
  printf("%d inputs replayed\n", count);
  return count > 0 ? 0 : 1;
}
