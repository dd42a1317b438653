// SPDX-License-Identifier: Apache-2.0
//
// support: an allocator that watches and fails.
#define _POSIX_C_SOURCE 200809L
#include "fault_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NEW_BYTE = 0xA5, FREED_BYTE = 0x5A };

typedef struct fault_block_t {
  struct fault_block_t* next;
  void* ptr;
  size_t size;
  size_t align;
} fault_block_t;

void fault_alloc_init(fault_alloc_t* watch) {
  memset(watch, 0, sizeof(*watch));
  pthread_mutex_init(&watch->lock, NULL);
}

static fault_block_t** find(fault_alloc_t* watch, const void* ptr) {
  size_t bucket = ((uintptr_t)ptr >> 4) * 2654435761u % FAULT_ALLOC_BUCKETS;
  fault_block_t** at = &watch->buckets[bucket];
  while (*at != NULL && (*at)->ptr != ptr) at = &(*at)->next;
  return at;
}

static void misuse(fault_alloc_t* watch, const char* format, ...)
    KILN_PRINTF(2, 3);
static void misuse(fault_alloc_t* watch, const char* format, ...) {
  va_list args;
  va_start(args, format);
  if (watch->misuses++ == 0) {
    vsnprintf(watch->first_misuse, sizeof(watch->first_misuse), format, args);
  }
  va_end(args);
}

// Counts a point; true if it is one to fail.
static bool point(fault_alloc_t* watch) {
  if (!watch->armed || !pthread_equal(watch->thread, pthread_self())) {
    return false;
  }
  watch->met++;
  if (watch->nth == 0) return false;
  return watch->from_on ? watch->met >= watch->nth : watch->met == watch->nth;
}

static void* block_new(fault_alloc_t* watch, size_t size, size_t align) {
  fault_block_t* block = malloc(sizeof(*block));
  if (block == NULL) return NULL;
  if (align < sizeof(void*)) align = sizeof(void*);
  block->ptr = NULL;
  if (posix_memalign(&block->ptr, align, size) != 0) {
    free(block);
    return NULL;
  }
  memset(block->ptr, NEW_BYTE, size);
  block->size = size;
  block->align = align;
  fault_block_t** at = find(watch, block->ptr);
  block->next = *at;
  *at = block;
  watch->live_blocks++;
  watch->live_bytes += size;
  watch->total_blocks++;
  return block->ptr;
}

static void block_end(fault_alloc_t* watch, fault_block_t** at) {
  fault_block_t* block = *at;
  *at = block->next;
  watch->live_blocks--;
  watch->live_bytes -= block->size;
  memset(block->ptr, FREED_BYTE, block->size);
  free(block->ptr);
  free(block);
}

// The block of `ptr`, after its size and alignment are compared.
static fault_block_t** checked(fault_alloc_t* watch, void* ptr, size_t size,
                               size_t align) {
  fault_block_t** at = find(watch, ptr);
  if (*at == NULL) {
    misuse(watch, "a block of %zu bytes is freed or grown that is not live",
           size);
    return NULL;
  }
  if (align < sizeof(void*)) align = sizeof(void*);
  if ((*at)->size != size) {
    misuse(watch, "a block of %zu bytes is given back as %zu bytes",
           (*at)->size, size);
  }
  if ((*at)->align != align) {
    misuse(watch, "a block aligned to %zu is given back as aligned to %zu",
           (*at)->align, align);
  }
  return at;
}

static void* watch_locked(fault_alloc_t* watch, void* ptr, size_t old_size,
                          size_t new_size, size_t align) {
  if (align == 0 || (align & (align - 1)) != 0 || align > 4096) {
    misuse(watch, "an alignment of %zu is asked for", align);
    return NULL;
  }
  fault_block_t** old = NULL;
  if (ptr != NULL) {
    old = checked(watch, ptr, old_size, align);
    if (old == NULL) return NULL;
  }
  if (new_size == 0) {
    if (old == NULL) {
      misuse(watch, "a block of no bytes is asked for");
    } else {
      block_end(watch, old);
    }
    return NULL;
  }
  if (point(watch)) return NULL;
  void* fresh = block_new(watch, new_size, align);
  if (fresh == NULL || old == NULL) return fresh;
  old = find(watch, ptr);
  size_t kept = (*old)->size < new_size ? (*old)->size : new_size;
  memcpy(fresh, ptr, kept);
  block_end(watch, old);
  return fresh;
}

static void* watch_fn(void* ptr, size_t old_size, size_t new_size, size_t align,
                      void* user) {
  fault_alloc_t* watch = user;
  pthread_mutex_lock(&watch->lock);
  void* result = watch_locked(watch, ptr, old_size, new_size, align);
  pthread_mutex_unlock(&watch->lock);
  return result;
}

kiln_allocator_t fault_alloc_allocator(fault_alloc_t* watch) {
  return (kiln_allocator_t){watch_fn, watch};
}

void fault_alloc_arm(fault_alloc_t* watch, uint64_t nth, bool from_on) {
  pthread_mutex_lock(&watch->lock);
  watch->armed = true;
  watch->thread = pthread_self();
  watch->nth = nth;
  watch->from_on = from_on;
  watch->met = 0;
  pthread_mutex_unlock(&watch->lock);
}

uint64_t fault_alloc_disarm(fault_alloc_t* watch) {
  pthread_mutex_lock(&watch->lock);
  watch->armed = false;
  uint64_t met = watch->met;
  pthread_mutex_unlock(&watch->lock);
  return met;
}

const char* fault_alloc_problem(fault_alloc_t* watch) {
  pthread_mutex_lock(&watch->lock);
  if (watch->live_blocks != 0) {
    misuse(watch, "%llu blocks with %llu bytes are not freed",
           (unsigned long long)watch->live_blocks,
           (unsigned long long)watch->live_bytes);
  }
  const char* problem = watch->misuses ? watch->first_misuse : NULL;
  pthread_mutex_unlock(&watch->lock);
  return problem;
}

void fault_alloc_assert_clean(fault_alloc_t* watch) {
  const char* problem = fault_alloc_problem(watch);
  if (problem != NULL) fail_msg("allocator: %s", problem);
}

void fault_alloc_deinit(fault_alloc_t* watch) {
  for (size_t i = 0; i < FAULT_ALLOC_BUCKETS; i++) {
    while (watch->buckets[i] != NULL) block_end(watch, &watch->buckets[i]);
  }
  pthread_mutex_destroy(&watch->lock);
}
