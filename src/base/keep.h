// SPDX-License-Identifier: Apache-2.0
//
// base: how an object of a lower module keeps one of a higher module alive.
//
// A compiler must not outlive its runtime, whose allocator and log it uses,
// but its module may not know what a runtime is.
#ifndef KILN_SRC_BASE_KEEP_H_
#define KILN_SRC_BASE_KEEP_H_

#include <stddef.h>

// What is retained, and how. All NULL retains nothing. thread-safe
typedef struct kilni_base_keep_t {
  void* object;
  void (*retain)(void* object);
  void (*release)(void* object);
} kilni_base_keep_t;

static inline void kilni_base_keep_retain(kilni_base_keep_t keep) {
  if (keep.retain != NULL) keep.retain(keep.object);
}

static inline void kilni_base_keep_release(kilni_base_keep_t keep) {
  if (keep.release != NULL) keep.release(keep.object);
}

#endif  // KILN_SRC_BASE_KEEP_H_
