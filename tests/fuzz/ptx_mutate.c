// SPDX-License-Identifier: Apache-2.0
//
// fuzz: changes a PTX text by statements and words, so that most of what comes
// out is still PTX and reaches what runs it.
//
// For libFuzzer alone: targets whose text begins at byte 1, behind a byte of
// choices, are linked with it. One change in four is libFuzzer's own.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size,
                                 const uint8_t* second, size_t second_size,
                                 uint8_t* out, size_t max_size, unsigned seed);
// Absent where a corpus is only replayed.
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size,
                                              size_t max_size);

enum { PIECES_MOST = 1024, PIECE_BYTES = 256 };

// A part of a text. one-thread
typedef struct piece_t {
  size_t start;
  size_t end;
} piece_t;

// What is changed, and the parts of it that were found. one-thread
typedef struct text_t {
  uint8_t* data;
  size_t size;
  size_t most;
  uint64_t random;
  uint32_t count;
  piece_t pieces[PIECES_MOST];
} text_t;

static uint32_t draw(text_t* text, uint32_t below) {
  text->random = text->random * 6364136223846793005u + 1442695040888963407u;
  return below ? (uint32_t)((text->random >> 33) % below) : 0;
}

static void add_piece(text_t* text, size_t start, size_t end) {
  if (text->count < PIECES_MOST && end - start <= PIECE_BYTES) {
    text->pieces[text->count++] = (piece_t){start, end};
  }
}

// What ends with ';' behind the first brace.
static void find_statements(text_t* text) {
  text->count = 0;
  size_t at = 1;
  while (at < text->size && text->data[at] != '{') at++;
  size_t start = ++at;
  for (; at < text->size; at++) {
    uint8_t c = text->data[at];
    if (c == ';') add_piece(text, start, at + 1);
    if (c == ';' || c == '{' || c == '}' || c == ':') start = at + 1;
  }
}

static bool is_word(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         (c >= 'A' && c <= 'Z') || c == '_';
}

// Words behind `mark` ("%": registers, ".": modifiers), or numbers for 0.
static void find_words(text_t* text, char mark) {
  text->count = 0;
  for (size_t at = 1; at < text->size;) {
    if (!is_word(text->data[at])) {
      at++;
      continue;
    }
    size_t start = at;
    while (at < text->size && is_word(text->data[at])) at++;
    uint8_t before = text->data[start - 1];
    uint8_t first = text->data[start];
    bool fits = mark ? before == (uint8_t)mark
                     : first >= '0' && first <= '9' && before != '.';
    if (fits) add_piece(text, start, at);
  }
}

// Puts `bytes` of `with` in the place of a part; nothing if it has no space.
static void splice(text_t* text, piece_t at, const uint8_t* with,
                   size_t bytes) {
  size_t rest = text->size - at.end;
  if (at.start + bytes + rest > text->most) return;
  memmove(text->data + at.start + bytes, text->data + at.end, rest);
  memcpy(text->data + at.start, with, bytes);
  text->size = at.start + bytes + rest;
}

static size_t copy_piece(const text_t* text, piece_t piece, uint8_t* out) {
  memcpy(out, text->data + piece.start, piece.end - piece.start);
  return piece.end - piece.start;
}

static void change_statement(text_t* text) {
  uint8_t copy[PIECE_BYTES];
  find_statements(text);
  if (text->count == 0) return;
  piece_t from = text->pieces[draw(text, text->count)];
  piece_t to = text->pieces[draw(text, text->count)];
  size_t bytes = copy_piece(text, from, copy);
  switch (draw(text, 3)) {
    case 0:
      splice(text, from, copy, 0);
      return;
    case 1:  // before another
      to.end = to.start;
      splice(text, to, copy, bytes);
      return;
    default:  // instead of another
      splice(text, to, copy, bytes);
  }
}

static bool is_letter(uint8_t c) {
  return c < '0' || c > '9';
}

// Whether both words have the same letters in front of their numbers.
static bool are_alike(const text_t* text, piece_t a, piece_t b) {
  size_t i = 0;
  while (a.start + i < a.end && is_letter(text->data[a.start + i])) {
    if (b.start + i >= b.end ||
        text->data[a.start + i] != text->data[b.start + i]) {
      return false;
    }
    i++;
  }
  return b.start + i < b.end && !is_letter(text->data[b.start + i]);
}

// One word becomes another of the text, a register one of its kind.
static void change_word(text_t* text, char mark) {
  uint8_t copy[PIECE_BYTES];
  find_words(text, mark);
  if (text->count == 0) return;
  piece_t at = text->pieces[draw(text, text->count)];
  for (uint32_t tries = 0; tries < 16; tries++) {
    piece_t other = text->pieces[draw(text, text->count)];
    if (mark == '%' && !are_alike(text, at, other)) continue;
    splice(text, at, copy, copy_piece(text, other, copy));
    return;
  }
}

static void change_number(text_t* text) {
  static const char* const numbers[] = {
      "0",  "1",  "2",  "3",          "4",    "8",     "15",
      "16", "31", "32", "0xffffffff", "-1",   "64",    "255",
      "63", "33", "7",  "0x80000000", "1024", "65536", "0x7fffffff"};
  find_words(text, 0);
  if (text->count == 0) return;
  piece_t at = text->pieces[draw(text, text->count)];
  const char* with = numbers[draw(text, sizeof(numbers) / sizeof(numbers[0]))];
  splice(text, at, (const uint8_t*)with, strlen(with));
}

static void change_type(text_t* text) {
  static const char* const types[] = {
      "u32", "s32", "b32", "f32",    "u64",    "s64",     "b64",    "f64",
      "u16", "s16", "b16", "u8",     "s8",     "f16",     "f16x2",  "bf16",
      "and", "or",  "xor", "add",    "min",    "max",     "exch",   "cas",
      "lt",  "ge",  "eq",  "global", "shared", "local",   "rn",     "rz",
      "sat", "ftz", "lo",  "hi",     "wide",   "relaxed", "acquire"};
  find_words(text, '.');
  if (text->count == 0) return;
  piece_t at = text->pieces[draw(text, text->count)];
  const char* with = types[draw(text, sizeof(types) / sizeof(types[0]))];
  splice(text, at, (const uint8_t*)with, strlen(with));
}

static void change(text_t* text) {
  switch (draw(text, 8)) {
    case 0:
    case 1:
    case 2:
      change_statement(text);
      return;
    case 3:
    case 4:
      change_word(text, '%');
      return;
    case 5:
      change_number(text);
      return;
    case 6:
      change_word(text, '.');
      return;
    default:
      change_type(text);
  }
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                               unsigned seed) {
  static text_t text;
  text.data = data;
  text.size = size;
  text.most = max_size;
  text.random = seed;
  if (size < 2 || draw(&text, 4) == 0) {
    return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, max_size) : size;
  }
  if (draw(&text, 4) == 0) data[0] = (uint8_t)draw(&text, 256);
  uint32_t changes = 1 + draw(&text, 3);
  for (uint32_t i = 0; i < changes; i++) change(&text);
  return text.size;
}

// The first text with a statement of the second.
size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size,
                                 const uint8_t* second, size_t second_size,
                                 uint8_t* out, size_t max_size, unsigned seed) {
  static text_t text;
  uint8_t copy[PIECE_BYTES];
  if (first_size > max_size || second_size > max_size) return 0;
  memcpy(out, second, second_size);
  text.data = out;
  text.size = second_size;
  text.most = max_size;
  text.random = seed;
  find_statements(&text);
  size_t bytes = 0;
  if (text.count > 0) {
    bytes = copy_piece(&text, text.pieces[draw(&text, text.count)], copy);
  }
  memcpy(out, first, first_size);
  text.size = first_size;
  find_statements(&text);
  if (text.count > 0) {
    piece_t to = text.pieces[draw(&text, text.count)];
    to.end = to.start;
    splice(&text, to, copy, bytes);
  }
  return text.size;
}
