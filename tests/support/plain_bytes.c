// SPDX-License-Identifier: Apache-2.0
//
// tests: the library's programs on bytes, in plain C.
#include "plain_bytes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// ---- BLAKE3 ----

enum { START = 1, END = 2, PARENT = 4, ROOT = 8, CHUNK = 1024, BLOCK = 64 };

static const uint32_t kInitial[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u,
                                     0xa54ff53au, 0x510e527fu, 0x9b05688cu,
                                     0x1f83d9abu, 0x5be0cd19u};

static uint32_t turned(uint32_t x, int by) {
  return x >> by | x << (32 - by);
}

static void mix(uint32_t* v, int a, int b, int c, int d, uint32_t x,
                uint32_t y) {
  v[a] += v[b] + x;
  v[d] = turned(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = turned(v[b] ^ v[c], 12);
  v[a] += v[b] + y;
  v[d] = turned(v[d] ^ v[a], 8);
  v[c] += v[d];
  v[b] = turned(v[b] ^ v[c], 7);
}

static void compress(uint32_t value[8], const uint32_t words[16],
                     uint32_t number, uint32_t bytes, uint32_t flags) {
  static const uint8_t kMoved[16] = {2, 6,  3,  10, 7, 0,  4,  13,
                                     1, 11, 12, 5,  9, 14, 15, 8};
  uint32_t v[16], m[16], next[16];
  memcpy(v, value, 32);
  memcpy(v + 8, kInitial, 16);
  v[12] = number;
  v[13] = 0;
  v[14] = bytes;
  v[15] = flags;
  memcpy(m, words, sizeof(m));
  for (int turn = 0; turn < 7; turn++) {
    mix(v, 0, 4, 8, 12, m[0], m[1]);
    mix(v, 1, 5, 9, 13, m[2], m[3]);
    mix(v, 2, 6, 10, 14, m[4], m[5]);
    mix(v, 3, 7, 11, 15, m[6], m[7]);
    mix(v, 0, 5, 10, 15, m[8], m[9]);
    mix(v, 1, 6, 11, 12, m[10], m[11]);
    mix(v, 2, 7, 8, 13, m[12], m[13]);
    mix(v, 3, 4, 9, 14, m[14], m[15]);
    for (int k = 0; k < 16; k++) next[k] = m[kMoved[k]];
    memcpy(m, next, sizeof(m));
  }
  for (int k = 0; k < 8; k++) value[k] = v[k] ^ v[k + 8];
}

static void hash_chunk(const uint8_t* text, size_t count, uint32_t number,
                       uint32_t root, uint32_t value[8]) {
  memcpy(value, kInitial, 32);
  size_t at = 0;
  do {
    uint32_t bytes = (uint32_t)(count - at < BLOCK ? count - at : BLOCK);
    uint8_t block[BLOCK] = {0};
    if (bytes != 0) memcpy(block, text + at, bytes);
    uint32_t words[16];
    for (int k = 0; k < 16; k++) {
      words[k] = (uint32_t)block[4 * k] | (uint32_t)block[4 * k + 1] << 8 |
                 (uint32_t)block[4 * k + 2] << 16 |
                 (uint32_t)block[4 * k + 3] << 24;
    }
    uint32_t flags =
        (at == 0 ? START : 0) | (at + bytes == count ? END | root : 0);
    compress(value, words, number, bytes, flags);
    at += BLOCK;
  } while (at < count);
}

static void join(uint32_t left[8], const uint32_t right[8], uint32_t root) {
  uint32_t words[16];
  memcpy(words, left, 32);
  memcpy(words + 8, right, 32);
  memcpy(left, kInitial, 32);
  compress(left, words, 0, BLOCK, PARENT | root);
}

// Subtrees that are complete are joined as soon as there are two of a size; the
// others at the end, from the right.
void plain_bytes_blake3(const uint8_t* text, size_t count, uint32_t hash[8]) {
  uint32_t stack[40][8];
  uint32_t depth = 0, number = 0;
  while (count > CHUNK) {
    hash_chunk(text, CHUNK, number++, 0, stack[depth]);
    for (uint32_t n = number; n % 2 == 0; n /= 2) {
      // The last join of all is the root's, and there is more text.
      join(stack[depth - 1], stack[depth], 0);
      depth--;
    }
    depth++;
    text += CHUNK;
    count -= CHUNK;
  }
  hash_chunk(text, count, number, depth == 0 ? ROOT : 0, stack[depth]);
  while (depth > 0) {
    join(stack[depth - 1], stack[depth], depth == 1 ? ROOT : 0);
    depth--;
  }
  memcpy(hash, stack[0], 32);
}

// ---- JSON ----

static bool is_mark(uint8_t c) {
  return c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ',';
}

uint32_t plain_bytes_json(const uint8_t* text, size_t count, uint32_t* places,
                          uint32_t* open) {
  uint32_t found = 0;
  bool in_string = false, escapes = false, was_plain = false;
  for (size_t i = 0; i < count; i++) {
    uint8_t c = text[i];
    bool is_escaped = escapes;
    bool is_plain = c > ' ' && c != '"' && !is_mark(c);
    escapes = c == '\\' && !is_escaped;
    if (!in_string && (c == '"' || is_mark(c) || (is_plain && !was_plain))) {
      places[found++] = (uint32_t)i;
    }
    if (c == '"' && !is_escaped) in_string = !in_string;
    was_plain = is_plain;
  }
  *open = in_string ? 1 : 0;
  return found;
}

void plain_bytes_write_json(uint8_t* text, size_t count, uint64_t seed) {
  static const char* const kValues[] = {
      "true",
      "false",
      "null",
      "-12.5e+3",
      "0",
      "\"\"",
      "\"a\"",
      "\"\\\"\\\\\"",
      "\"{[:,]}\"",
      "\"\\u00e9\\n\"",
      "[]",
      "{}",
      "[1,2 , 3]",
      "{\"k\" : [{}]}",
      "\"\\\\\\\\\"",
      "\"a sentence, as there are in texts; it is longer than a word\""};
  size_t at = 0;
  if (at < count) text[at++] = '[';
  while (at < count) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    char record[128];
    size_t size = (size_t)snprintf(record, sizeof(record), "%s{\"key%u\": %s}",
                                   at > 1 ? ",\n  " : "",
                                   (unsigned)(seed >> 44), kValues[seed >> 60]);
    if (size > count - at) size = count - at;
    memcpy(text + at, record, size);
    at += size;
  }
}

// ---- Patterns ----

enum { MOST_PATTERNS = 1024 };

// The longest first; of equal ones the first.
static void sort_patterns(const plain_bytes_pattern_t* patterns, uint32_t count,
                          uint32_t* order) {
  for (uint32_t k = 0; k < count; k++) {
    uint32_t at = k;
    while (at > 0 && patterns[order[at - 1]].size < patterns[k].size) {
      order[at] = order[at - 1];
      at--;
    }
    order[at] = k;
  }
}

uint32_t plain_bytes_match(const uint8_t* text, size_t count,
                           const plain_bytes_pattern_t* patterns,
                           uint32_t pattern_count, uint32_t* places,
                           uint32_t* which, uint32_t most) {
  uint32_t order[MOST_PATTERNS], found = 0;
  if (pattern_count > MOST_PATTERNS) return UINT32_MAX;
  sort_patterns(patterns, pattern_count, order);
  for (size_t end = 1; end <= count; end++) {
    for (uint32_t i = 0; i < pattern_count; i++) {
      const plain_bytes_pattern_t* p = &patterns[order[i]];
      const uint8_t* bytes = p->bytes;
      if (p->size > end || bytes[p->size - 1] != text[end - 1] ||
          memcmp(bytes, text + end - p->size, p->size) != 0) {
        continue;
      }
      if (found < most) {
        places[found] = (uint32_t)(end - p->size);
        which[found] = order[i];
      }
      found++;
    }
  }
  return found;
}

uint32_t plain_bytes_scan(const uint8_t* text, size_t count,
                          const plain_bytes_tables_t* tables, uint32_t* places,
                          uint32_t* which) {
  const plain_bytes_tables_t t = *tables;
  uint32_t here = 0, found = 0;
  for (size_t i = 0; i < count; i++) {
    here = t.next[here * t.classes + t.kinds[text[i]]];
    if (here < t.quiet) continue;
    uint32_t last = t.ends[here - t.quiet + 1];
    for (uint32_t e = t.ends[here - t.quiet]; e < last; e++) {
      places[found] = (uint32_t)i + 1 - t.patterns[2 * e + 1];
      which[found++] = t.patterns[2 * e];
    }
  }
  return found;
}

// ---- LZ4 ----

enum { LZ4_LEAST = 4, LZ4_TAIL = 5, LZ4_QUIET = 12, LZ4_BITS = 13 };

static uint32_t four_bytes(const uint8_t* at) {
  uint32_t word;
  memcpy(&word, at, 4);
  return word;
}

// What a length has beyond the 15 of its token.
static uint8_t* put_length(uint8_t* to, size_t length) {
  if (length < 15) return to;
  for (length -= 15; length >= 255; length -= 255) *to++ = 255;
  *to++ = (uint8_t)length;
  return to;
}

// `match` 0: the last sequence, which has none.
static uint8_t* put_sequence(uint8_t* to, const uint8_t* fresh, size_t count,
                             size_t back, size_t match) {
  size_t old = match != 0 ? match - LZ4_LEAST : 0;
  *to++ = (uint8_t)((count < 15 ? count : 15) << 4 | (old < 15 ? old : 15));
  to = put_length(to, count);
  if (count != 0) memcpy(to, fresh, count);
  to += count;
  if (match == 0) return to;
  *to++ = (uint8_t)back;
  *to++ = (uint8_t)(back >> 8);
  return put_length(to, old);
}

size_t plain_bytes_lz4_pack(const uint8_t* text, size_t count,
                            uint8_t* packed) {
  uint32_t seen[1 << LZ4_BITS];
  memset(seen, 0xff, sizeof(seen));
  uint8_t* to = packed;
  size_t done = 0, at = 0;
  while (at + LZ4_QUIET < count) {
    uint32_t word = four_bytes(text + at);
    uint32_t* last = &seen[word * 2654435761u >> (32 - LZ4_BITS)];
    size_t before = *last;
    *last = (uint32_t)at;
    if (before == UINT32_MAX || at - before > 65535 ||
        four_bytes(text + before) != word) {
      at++;
      continue;
    }
    size_t match = LZ4_LEAST;
    while (at + match + LZ4_TAIL < count &&
           text[before + match] == text[at + match]) {
      match++;
    }
    to = put_sequence(to, text + done, at - done, at - before, match);
    done = at += match;
  }
  return (size_t)(put_sequence(to, text + done, count - done, 0, 0) - packed);
}

// A length of 15 goes on; false if the block ends in it.
static bool get_length(const uint8_t* packed, size_t size, size_t* inout_at,
                       size_t* inout_length) {
  if (*inout_length != 15) return true;
  while (*inout_at < size) {
    uint8_t more = packed[(*inout_at)++];
    *inout_length += more;
    if (more != 255) return true;
  }
  return false;
}

size_t plain_bytes_lz4_unpack(const uint8_t* packed, size_t size, uint8_t* text,
                              size_t space, size_t* error) {
  size_t at = 0, made = 0;
  *error = 0;
  for (;;) {
    size_t begin = at;
    *error = begin + 1;
    if (at >= size) return made;
    uint8_t token = packed[at++];
    size_t fresh = token >> 4, match = token & 15;
    if (!get_length(packed, size, &at, &fresh) || fresh > size - at ||
        fresh > space - made) {
      return made;
    }
    if (fresh != 0) memcpy(text + made, packed + at, fresh);
    at += fresh;
    made += fresh;
    if (at == size) break;
    if (size - at < 2) return made;
    size_t back = (size_t)packed[at] | (size_t)packed[at + 1] << 8;
    at += 2;
    if (!get_length(packed, size, &at, &match)) return made;
    match += LZ4_LEAST;
    if (back == 0 || back > made || match > space - made) return made;
    for (size_t i = 0; i < match; i++, made++) text[made] = text[made - back];
  }
  *error = 0;
  return made;
}
