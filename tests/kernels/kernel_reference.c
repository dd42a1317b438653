// SPDX-License-Identifier: Apache-2.0
//
// tests: finds references, and gives them their data by name.
#include "kernel_reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int index_of(const kernel_case_t* c, const char* name) {
  for (int i = 0; i < c->run->param_count; i++) {
    if (strcmp(c->run->params[i].name, name) == 0) return i;
  }
  printf("not ok %s: has no parameter \"%s\"\n", c->run->file, name);
  exit(1);
}

const void* kernel_in(const kernel_case_t* c, const char* name) {
  return c->made[index_of(c, name)];
}

void* kernel_out(const kernel_case_t* c, const char* name) {
  return c->wanted[index_of(c, name)];
}

const void* kernel_got(const kernel_case_t* c, const char* name) {
  return c->got[index_of(c, name)];
}

size_t kernel_count(const kernel_case_t* c, const char* name) {
  return c->run->params[index_of(c, name)].count;
}

uint32_t kernel_u32(const kernel_case_t* c, const char* name) {
  uint32_t value;
  memcpy(&value, kernel_in(c, name), sizeof(value));
  return value;
}

uint32_t kernel_blocks(const kernel_case_t* c) {
  const uint32_t* g = c->shape->grid;
  return g[0] * g[1] * g[2];
}

uint32_t kernel_block_size(const kernel_case_t* c) {
  const uint32_t* b = c->shape->block;
  return b[0] * b[1] * b[2];
}

const kernel_reference_t* kernel_reference_find(const kernel_run_t* run) {
  static const kernel_reference_t* const kAll[] = {
      kernel_references_data,    kernel_references_float,
      kernel_references_groups,  kernel_references_hash,
      kernel_references_machine, kernel_references_sort,
  };
  char name[2 * KERNEL_NAME + 2];
  snprintf(name, sizeof(name), "%s.%s", run->file, run->entry);
  for (size_t i = 0; i < sizeof(kAll) / sizeof(*kAll); i++) {
    for (const kernel_reference_t* r = kAll[i]; r->name != NULL; r++) {
      if (strcmp(r->name, name) == 0) return r;
    }
  }
  return NULL;
}
