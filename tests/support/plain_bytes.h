// SPDX-License-Identifier: Apache-2.0
//
// tests: what the library's programs on bytes make, in plain C on one core: the
// loops that one would write. The benches take them as their baseline.
#ifndef KILN_TESTS_SUPPORT_PLAIN_BYTES_H_
#define KILN_TESTS_SUPPORT_PLAIN_BYTES_H_

#include <stddef.h>
#include <stdint.h>

// The BLAKE3 hash of `count` bytes, as eight words, the first byte lowest.
void plain_bytes_blake3(const uint8_t* text, size_t count, uint32_t hash[8]);

// Where each token of a JSON text begins, as lib/json_index.kiln says; how many
// there are. `open` becomes 1 if a string has no end, else 0.
uint32_t plain_bytes_json(const uint8_t* text, size_t count, uint32_t* places,
                          uint32_t* open);

// Fills `text` with JSON as a program prints it: records of all kinds of
// values, some in each other. The last one is cut off.
void plain_bytes_write_json(uint8_t* text, size_t count, uint64_t seed);

// Bytes to look for. thread-compatible
typedef struct plain_bytes_pattern_t {
  const void* bytes;
  size_t size;
} plain_bytes_pattern_t;

// All places of patterns, as lib/aho_corasick.kiln says, by comparing all of
// them at every place; how many there are. The first `most` are told.
uint32_t plain_bytes_match(const uint8_t* text, size_t count,
                           const plain_bytes_pattern_t* patterns,
                           uint32_t pattern_count, uint32_t* places,
                           uint32_t* which, uint32_t most);

// The automaton of patterns, as tables. thread-compatible
typedef struct plain_bytes_tables_t {
  const uint8_t* kinds;
  const uint32_t* next;
  const uint32_t* ends;
  const uint32_t* patterns;
  uint32_t classes;
  uint32_t quiet;
} plain_bytes_tables_t;

// The same by the automaton, with space for all.
uint32_t plain_bytes_scan(const uint8_t* text, size_t count,
                          const plain_bytes_tables_t* tables, uint32_t* places,
                          uint32_t* which);

// Makes an LZ4 block of `count` bytes, by the nearest match of those four
// bytes; how long it is. It has space for plain_bytes_lz4_most(count).
size_t plain_bytes_lz4_pack(const uint8_t* text, size_t count, uint8_t* packed);
static inline size_t plain_bytes_lz4_most(size_t count) {
  return count + count / 255 + 16;
}

// What an LZ4 block was made of: how many of `space` bytes are written. `error`
// becomes 0, or 1 and the place of the first sequence that cannot be.
size_t plain_bytes_lz4_unpack(const uint8_t* packed, size_t size, uint8_t* text,
                              size_t space, size_t* error);

#endif  // KILN_TESTS_SUPPORT_PLAIN_BYTES_H_
