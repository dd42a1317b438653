// SPDX-License-Identifier: Apache-2.0
//
// soft: which bytes of a stretch of addresses were ever written, one bit each.
//
// Made only where reads of uninitialised memory are to be reported; nothing
// else pays for it. Threads may mark and query at the same time.
#ifndef KILN_SRC_SOFT_MEMORY_SOFT_MARKS_H_
#define KILN_SRC_SOFT_MEMORY_SOFT_MARKS_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Marks of [base, base + bytes); addresses outside count as written.
// thread-safe
typedef struct kilni_soft_marks_t {
  _Atomic uint64_t* words;
  uint64_t base;  // a multiple of 64
  uint64_t bytes;
} kilni_soft_marks_t;

// Of `words` for that many bytes.
#define KILNI_SOFT_MARKS_SIZE(bytes) (((bytes) + 63) / 64 * 8)

void kilni_soft_marks_set(const kilni_soft_marks_t* marks, uint64_t address,
                          uint64_t bytes);
void kilni_soft_marks_clear(const kilni_soft_marks_t* marks, uint64_t address,
                            uint64_t bytes);
// True if all of it was written; otherwise `*out_first` is the first byte that
// was not.
bool kilni_soft_marks_all(const kilni_soft_marks_t* marks, uint64_t address,
                          uint64_t bytes, uint64_t* out_first);
// Bytes at `to` are as written as those at `from`.
void kilni_soft_marks_copy(const kilni_soft_marks_t* marks, uint64_t to,
                           uint64_t from, uint64_t bytes);

#endif  // KILN_SRC_SOFT_MEMORY_SOFT_MARKS_H_
