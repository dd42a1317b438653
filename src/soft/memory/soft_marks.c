// SPDX-License-Identifier: Apache-2.0
//
// soft: which bytes of a stretch of addresses were ever written.
#include "soft/memory/soft_marks.h"

// The bytes from `at` that are in one word of marks, at most `left`.
static uint64_t piece(uint64_t at, uint64_t left) {
  uint64_t space = 64 - at % 64;
  return left < space ? left : space;
}

static uint64_t marks_bits_of(uint64_t at, uint64_t count) {
  uint64_t low = count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1;
  return low << at % 64;
}

// The part of [*address, *address + *bytes) that has marks, as offsets; false
// if there is none.
static bool clip(const kilni_soft_marks_t* marks, uint64_t* address,
                 uint64_t* bytes) {
  uint64_t at = *address - marks->base;
  if (at >= marks->bytes) return false;
  if (*bytes > marks->bytes - at) *bytes = marks->bytes - at;
  *address = at;
  return *bytes > 0;
}

static uint64_t word_at(const kilni_soft_marks_t* marks, uint64_t at) {
  return atomic_load_explicit(&marks->words[at / 64], memory_order_relaxed);
}

static void marks_put(const kilni_soft_marks_t* marks, uint64_t at,
                      uint64_t bits, uint64_t value) {
  _Atomic uint64_t* word = &marks->words[at / 64];
  uint64_t now = atomic_load_explicit(word, memory_order_relaxed);
  if ((now & bits) == value) return;
  uint64_t set = value;
  uint64_t unset = bits & ~value;
  if (set) atomic_fetch_or_explicit(word, set, memory_order_relaxed);
  if (unset) atomic_fetch_and_explicit(word, ~unset, memory_order_relaxed);
}

void kilni_soft_marks_set(const kilni_soft_marks_t* marks, uint64_t address,
                          uint64_t bytes) {
  if (!clip(marks, &address, &bytes)) return;
  while (bytes > 0) {
    uint64_t count = piece(address, bytes);
    uint64_t bits = marks_bits_of(address, count);
    marks_put(marks, address, bits, bits);
    address += count;
    bytes -= count;
  }
}

void kilni_soft_marks_clear(const kilni_soft_marks_t* marks, uint64_t address,
                            uint64_t bytes) {
  if (!clip(marks, &address, &bytes)) return;
  while (bytes > 0) {
    uint64_t count = piece(address, bytes);
    marks_put(marks, address, marks_bits_of(address, count), 0);
    address += count;
    bytes -= count;
  }
}

bool kilni_soft_marks_all(const kilni_soft_marks_t* marks, uint64_t address,
                          uint64_t bytes, uint64_t* out_first) {
  uint64_t at = address;
  if (!clip(marks, &at, &bytes)) return true;
  while (bytes > 0) {
    uint64_t count = piece(at, bytes);
    uint64_t missing = marks_bits_of(at, count) & ~word_at(marks, at);
    if (missing) {
      *out_first =
          marks->base + at / 64 * 64 + (uint64_t)__builtin_ctzll(missing);
      return false;
    }
    at += count;
    bytes -= count;
  }
  return true;
}

void kilni_soft_marks_copy(const kilni_soft_marks_t* marks, uint64_t to,
                           uint64_t from, uint64_t bytes) {
  uint64_t source = from;
  uint64_t inside = bytes;
  if (!clip(marks, &source, &inside) || inside < bytes) {
    kilni_soft_marks_set(marks, to, bytes);
    return;
  }
  if (!clip(marks, &to, &bytes)) return;
  while (bytes > 0) {
    uint64_t count = piece(source, piece(to, bytes));
    uint64_t value = word_at(marks, source) >> source % 64 << to % 64;
    uint64_t bits = marks_bits_of(to, count);
    marks_put(marks, to, bits, value & bits);
    source += count;
    to += count;
    bytes -= count;
  }
}
