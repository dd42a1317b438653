// SPDX-License-Identifier: Apache-2.0
//
// fuzz: the include scan. What it reports lies inside the text, has no line
// break in it, and is the same the second time.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compile/compile_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// What was reported. one-thread
typedef struct sum_t {
  uint64_t hash;
  uint64_t count;
} sum_t;

static bool add(void* user, const kilni_scan_found_t* found) {
  sum_t* sum = user;
  if (found->kind < KILNI_SCAN_QUOTE || found->kind > KILNI_SCAN_COMPUTED ||
      found->name.size == 0) {
    abort();
  }
  for (size_t i = 0; i < found->name.size; i++) {
    if (found->name.data[i] == '\n') abort();
    sum->hash = sum->hash * 31 + (uint8_t)found->name.data[i];
  }
  sum->hash = sum->hash * 31 + found->kind;
  sum->count++;
  return sum->count < 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sum_t sums[2] = {{0, 0}, {0, 0}};
  kiln_string_view_t text = {(const char*)data, size};
  for (int i = 0; i < 2; i++) {
    if (kilni_scan_text(kiln_allocator_libc(), text, add, &sums[i]) != NULL) {
      abort();
    }
  }
  if (memcmp(&sums[0], &sums[1], sizeof(sum_t)) != 0) abort();
  return 0;
}
