// SPDX-License-Identifier: Apache-2.0
//
// tests: what a block of each kernel here takes of the host's memory.
//
//   kernel_memory [--check]
//
// Writes docs/reference/soft-memory.md, or compares it. The blocks are the
// largest that are legal: .reqntid, .maxntid, or 1,024 threads. Exit 1 if the
// page is another, or a kernel is over the bound.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host.h"
#include "base/thread.h"
#include "soft/engine/soft_grid.h"

enum { MAX_FILES = 400, NAME_BYTES = 128, PAGE_BYTES = 1 << 20 };
enum { BOUND = 1 << 20 };  // of the state of a block

static const char page_head[] =
    "# Memory of kernels on the software device\n\n"
    "<!-- made by: kernel_memory; it has the test kernels_memory -->\n\n"
    "What a block takes of the host, for every kernel of `tests/kernels` at "
    "its\nlargest legal block (`.reqntid`, `.maxntid`, or 1,024 threads). "
    "*State* is warps,\ntheir groups of lanes and their registers after slots "
    "were shared, with a frame for\none call of each function that it "
    "reaches. *Local* and *shared* memory are what the\nkernel itself asks "
    "for: local memory with what calls pass, which a GPU keeps there\ntoo, "
    "and without dynamic shared memory. A worker holds one block, and more "
    "only\nwhile all that it holds wait for others. There is no fixed cap; a "
    "test keeps the\nstate of these under 1 MiB. `other` is what a second "
    "compiler made.\n\n"
    "| kernel | PTX | threads | state, KiB | local, KiB | shared, KiB |\n"
    "|---|---|--:|--:|--:|--:|\n";

// one-thread
typedef struct page_t {
  char* text;
  size_t size;
  uint64_t most;
  char most_name[2 * NAME_BYTES];
  int kernels;
  int over;
  kiln_host_t host;
} page_t;

static void check(kiln_status_t status, const char* what) {
  if (kiln_status_is_ok(status)) return;
  char text[1024];
  kiln_status_format(status, sizeof(text), text, NULL);
  printf("%s: %s\n", what, text);
  exit(1);
}

static double kib(uint64_t bytes) {
  return (double)bytes / 1024.0;
}

// Parameters are all zero: nothing runs.
static void measure(page_t* page, kilni_soft_memory_t* memory,
                    const kilni_soft_entry_t* entry, const char* file,
                    const char* which) {
  static const uint8_t zeroes[1 << 16];
  kilni_soft_launch_t launch = {.entry = entry,
                                .grid = {1, 1, 1},
                                .block = {entry->max_threads, 1, 1},
                                .params = zeroes};
  if (entry->required_block[0] != 0) {
    memcpy(launch.block, entry->required_block, sizeof(launch.block));
  }
  kilni_soft_grid_t* grid;
  kilni_soft_footprint_t bytes;
  check(kilni_soft_grid_create(&page->host, memory, &launch, &grid), file);
  kilni_soft_grid_footprint(grid, &bytes);
  kilni_soft_grid_destroy(grid);
  page->kernels++;
  if (bytes.state >= BOUND) {
    printf("%s of %s: %.1f KiB of state\n", entry->name, file,
           kib(bytes.state));
    page->over++;
  }
  if (bytes.state > page->most) {
    page->most = bytes.state;
    snprintf(page->most_name, sizeof(page->most_name), "%s of %s", entry->name,
             file);
  }
  int wrote = snprintf(page->text + page->size, PAGE_BYTES - page->size,
                       "| %s, `%s` | %s | %u | %.1f | %.1f | %.1f |\n", file,
                       entry->name, which,
                       launch.block[0] * launch.block[1] * launch.block[2],
                       kib(bytes.state), kib(bytes.local), kib(bytes.shared));
  if (wrote > 0) page->size += (size_t)wrote;
}

static void measure_file(page_t* page, const char* name, const char* suffix,
                         const char* which) {
  char path[1024];
  uint8_t* text;
  size_t size;
  kilni_image_ptx_module_t* module;
  kilni_soft_memory_t* memory;
  kilni_soft_code_t* code;
  snprintf(path, sizeof(path), "%s/tests/kernels/%s.cu%s.ptx", KILN_SOURCE_DIR,
           name, suffix);
  check(kilni_base_file_read(page->host.allocator, path, 1 << 24, &text, &size),
        path);
  check(kilni_image_ptx_module_create((kiln_bytes_view_t){text, size}, path,
                                      NULL, page->host.allocator, &module),
        path);
  kilni_base_file_free(page->host.allocator, text, size);
  check(kilni_soft_memory_create(&page->host, true, &memory), path);
  // Of the lane set that every machine has: the code is the same for all.
  kiln_status_t status = kilni_soft_code_create(
      &page->host, module, kilni_soft_lanes_choose("plain"), memory, &code);
  kilni_image_ptx_module_release(module);
  if (kiln_status_code(status) == KILN_STATUS_UNSUPPORTED) {
    int wrote = snprintf(page->text + page->size, PAGE_BYTES - page->size,
                         "| %s | %s | is not executed | | | |\n", name, which);
    if (wrote > 0) page->size += (size_t)wrote;
    kiln_status_free(status);
  } else {
    check(status, path);
    for (uint32_t i = 0; i < kilni_soft_code_entry_count(code); i++) {
      measure(page, memory, kilni_soft_code_entry(code, i), name, which);
    }
    kilni_soft_code_destroy(code);
  }
  kilni_soft_memory_destroy(memory);
}

static int by_name(const void* a, const void* b) {
  return strcmp(a, b);
}

static int list_files(char names[MAX_FILES][NAME_BYTES]) {
  DIR* folder = opendir(KILN_SOURCE_DIR "/tests/kernels");
  const struct dirent* entry;
  int count = 0;
  while (folder != NULL && (entry = readdir(folder)) != NULL) {
    size_t length = strlen(entry->d_name);
    if (length < 4 || length >= NAME_BYTES || count == MAX_FILES ||
        strcmp(entry->d_name + length - 3, ".cu") != 0) {
      continue;
    }
    snprintf(names[count++], NAME_BYTES, "%.*s", (int)(length - 3),
             entry->d_name);
  }
  if (folder != NULL) closedir(folder);
  qsort(names, (size_t)count, NAME_BYTES, by_name);
  return count;
}

// Writes the page, or compares it.
static int finish(const page_t* page, bool compare) {
  static char old[PAGE_BYTES];
  const char* path = KILN_SOURCE_DIR "/docs/reference/soft-memory.md";
  FILE* file = fopen(path, compare ? "rb" : "wb");
  if (file == NULL) {
    printf("%s: cannot be opened\n", path);
    return 1;
  }
  bool same = true;
  if (compare) {
    size_t size = fread(old, 1, sizeof(old), file);
    same = size == page->size && memcmp(old, page->text, size) == 0;
  } else {
    same = fwrite(page->text, 1, page->size, file) == page->size;
  }
  if (fclose(file) != 0 || !same) {
    printf("%s: not what is so; run kernel_memory\n", path);
    return 1;
  }
  return page->over != 0;
}

int main(int argc, char** argv) {
  static char names[MAX_FILES][NAME_BYTES];
  static char text[PAGE_BYTES];
  kilni_base_env_t env;
  page_t page = {.text = text};
  check(kilni_base_env_init(&env, kiln_allocator_libc()), "environment");
  page.host.allocator = kiln_allocator_libc();
  page.host.env = &env;
  page.host.worker_count = 1;
  page.host.process_id = kilni_base_process_id();
  page.size = sizeof(page_head) - 1;
  memcpy(text, page_head, page.size);
  int count = list_files(names);
  for (int i = 0; i < count; i++) {
    measure_file(&page, names[i], "", "first");
    measure_file(&page, names[i], ".other", "other");
  }
  printf("%d kernels, at most %.1f KiB of state: %s\n", page.kernels,
         kib(page.most), page.most_name);
  kilni_base_env_deinit(&env);
  if (page.kernels == 0) return 1;
  return finish(&page, argc > 1 && strcmp(argv[1], "--check") == 0);
}
