// SPDX-License-Identifier: Apache-2.0
//
// program: reading text: names and what they stand for.
#include "base/alloc.h"
#include "base/str.h"
#include "program/text/program_reader.h"

typedef struct word_t {
  const char* spelling;
  uint16_t kind;
  uint16_t index;
} word_t;

// A spelling of signs is none of the words.
#define KEYWORD(NAME, spelling) \
  {spelling, KILNI_SYMBOL_KEYWORD, KILNI_KEYWORD_##NAME},
#define UNARY(NAME, spelling, ...) \
  {spelling, KILNI_SYMBOL_UNARY, KILN_PROGRAM_UNARY_##NAME},
#define BINARY(NAME, spelling, ...) \
  {spelling, KILNI_SYMBOL_BINARY, KILN_PROGRAM_BINARY_##NAME},
#define ATOMIC(NAME, spelling, ...) \
  {spelling, KILNI_SYMBOL_ATOMIC, KILN_PROGRAM_ATOMIC_##NAME},
#define SUBGROUP(NAME, spelling, ...) \
  {spelling, KILNI_SYMBOL_SUBGROUP, KILN_PROGRAM_SUBGROUP_##NAME},
#define ID(NAME, spelling, ...) \
  {spelling, KILNI_SYMBOL_ID, KILN_PROGRAM_ID_##NAME},
#define TYPE(NAME, spelling, bytes, class_)                     \
  {spelling, KILNI_SYMBOL_TYPE_WORD, KILN_PROGRAM_TYPE_##NAME}, \
      {"bitcast_" spelling, KILNI_SYMBOL_BITCAST, KILN_PROGRAM_TYPE_##NAME},
#define FLOAT(NAME, spelling)                                         \
  {"inf_" spelling, KILNI_SYMBOL_INFINITY, KILN_PROGRAM_TYPE_##NAME}, \
      {"nan_" spelling, KILNI_SYMBOL_NAN, KILN_PROGRAM_TYPE_##NAME},
static const word_t kWords[] = {
    // clang-format off
    KILNI_KEYWORDS(KEYWORD)
    KILN_PROGRAM_TYPES(TYPE)
    KILN_PROGRAM_UNARY_OPERATORS(UNARY)
    KILN_PROGRAM_BINARY_OPERATORS(BINARY)
    KILN_PROGRAM_ATOMICS(ATOMIC)
    KILN_PROGRAM_SUBGROUPS(SUBGROUP)
    KILN_PROGRAM_IDS(ID)
    FLOAT(F16, "f16") FLOAT(BF16, "bf16") FLOAT(F32, "f32") FLOAT(F64, "f64")
    // clang-format on
    {"false", KILNI_SYMBOL_BOOL, 0},
    {"true", KILNI_SYMBOL_BOOL, 1},
    {"select", KILNI_SYMBOL_SELECT, 0},
    {"fma", KILNI_SYMBOL_FMA, 0},
    {"length", KILNI_SYMBOL_LENGTH, KILN_PROGRAM_TYPE_U32},
    {"length64", KILNI_SYMBOL_LENGTH, KILN_PROGRAM_TYPE_U64},
};

static uint32_t symbols_hash_of(kiln_string_view_t name) {
  uint32_t hash = 2166136261U;
  for (size_t i = 0; i < name.size; i++) {
    hash = (hash ^ (unsigned char)name.data[i]) * 16777619U;
  }
  return hash;
}

static bool symbols_is_letter(char c) {
  return c >= 'a' && c <= 'z';
}

kiln_status_t kilni_program_symbols_init(kilni_program_reader_t* reader) {
  // Index 0 is the end of a bucket's chain.
  kilni_program_symbols_add(reader, (kiln_string_view_t){NULL, 0}, 0, 0);
  for (size_t i = 0; i < sizeof(kWords) / sizeof(kWords[0]); i++) {
    if (!symbols_is_letter(kWords[i].spelling[0])) continue;
    kilni_program_symbols_add(reader, kilni_base_sv(kWords[i].spelling),
                              kWords[i].kind, kWords[i].index);
  }
  return kilni_program_ir_status(reader->ir);
}

void kilni_program_symbols_deinit(kilni_program_reader_t* reader) {
  kilni_base_free_array(reader->allocator, reader->symbols.items,
                        reader->symbols.capacity,
                        sizeof(kilni_program_symbol_t));
}

bool kilni_program_symbol_is_word(uint32_t kind) {
  return kind >= KILNI_SYMBOL_KEYWORD;
}

const kilni_program_symbol_t* kilni_program_symbols_find(
    const kilni_program_reader_t* reader, kiln_string_view_t name) {
  const kilni_program_symbols_t* symbols = &reader->symbols;
  uint32_t hash = symbols_hash_of(name);
  uint32_t at = symbols->buckets[hash % KILNI_SYMBOL_BUCKETS];
  for (; at != 0; at = symbols->items[at].next) {
    const kilni_program_symbol_t* symbol = &symbols->items[at];
    if (symbol->hash == hash && kilni_base_sv_equal(symbol->name, name)) {
      return symbol;
    }
  }
  return NULL;
}

void kilni_program_symbols_add(kilni_program_reader_t* reader,
                               kiln_string_view_t name, uint32_t kind,
                               uint32_t index) {
  kilni_program_symbols_t* symbols = &reader->symbols;
  void* items = symbols->items;
  kiln_status_t status = kilni_base_grow(reader->allocator, symbols->count + 1,
                                         sizeof(kilni_program_symbol_t),
                                         &symbols->capacity, &items);
  symbols->items = items;
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    reader->ir->failed = KILN_STATUS_OUT_OF_MEMORY;
    reader->stopped = true;
    return;
  }
  uint32_t hash = symbols_hash_of(name);
  uint32_t* bucket = &symbols->buckets[hash % KILNI_SYMBOL_BUCKETS];
  kilni_program_symbol_t symbol = {name, hash, *bucket, kind, index};
  *bucket = (uint32_t)symbols->count;
  symbols->items[symbols->count++] = symbol;
}

void kilni_program_symbols_cut(kilni_program_reader_t* reader, size_t count) {
  kilni_program_symbols_t* symbols = &reader->symbols;
  while (symbols->count > count) {
    const kilni_program_symbol_t* last = &symbols->items[--symbols->count];
    symbols->buckets[last->hash % KILNI_SYMBOL_BUCKETS] = last->next;
  }
}
