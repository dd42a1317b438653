// SPDX-License-Identifier: Apache-2.0
//
// support: small ELF files, made byte by byte.
#include "elf_make.h"

#include <stdlib.h>
#include <string.h>

enum { MODULE = 1 << 20, STRINGS_ROOM = 8192 };

// A file while it is made.
typedef struct making_t {
  const elf_plan_t* plan;
  elf_made_t made;
  char strings[STRINGS_ROOM];
  size_t strings_size;
  size_t note, rodata, verdef, verneed;
  size_t symbol_count;
} making_t;

static void put(making_t* making, size_t at, size_t bytes, uint64_t value) {
  for (size_t i = 0; i < bytes; i++) {
    making->made.data[at + i] = (uint8_t)(value >> (8 * i));
  }
}

// A word of the file's width at a place counted in such words.
static void put_word(making_t* making, size_t at, uint64_t value) {
  put(making, at, making->plan->narrow ? 4 : 8, value);
}

static size_t take(making_t* making, size_t size) {
  size_t at = (making->made.size + 15) & ~(size_t)15;
  making->made.size = at + size;
  if (making->made.size > MODULE) abort();
  return at;
}

static uint32_t add_string(making_t* making, const char* text) {
  size_t size = strlen(text) + 1;
  size_t at = making->strings_size;
  if (at + size > STRINGS_ROOM) abort();
  memcpy(making->strings + at, text, size);
  making->strings_size += size;
  return (uint32_t)at;
}

static void add_symbol(making_t* making, const char* name, bool defined) {
  bool narrow = making->plan->narrow;
  size_t size = narrow ? 16 : 24;
  size_t at = making->made.symbols + making->symbol_count++ * size;
  put(making, at, 4, add_string(making, name));
  if (narrow) {
    put(making, at + 4, 4, defined ? 0x1000 : 0);
    put(making, at + 14, 2, defined ? 7 : 0);
  } else {
    put(making, at + 6, 2, defined ? 7 : 0);
    put(making, at + 8, 8, defined ? 0x1000 : 0);
  }
}

// Undefined ones first: a GNU hash table begins behind them.
static void add_symbols(making_t* making) {
  const elf_plan_t* plan = making->plan;
  making->made.symbols = take(making, 33 * 24);
  making->symbol_count = 1;
  size_t undefined = 1;
  for (size_t i = 0; i < 16 && plan->undefined[i]; i++, undefined++) {
    add_symbol(making, plan->undefined[i], false);
  }
  for (size_t i = 0; i < 16 && plan->defined[i]; i++) {
    add_symbol(making, plan->defined[i], true);
  }
  making->made.hash = take(making, 256);
  size_t at = making->made.hash;
  if (!plan->gnu_hash) {
    put(making, at, 4, 1);
    put(making, at + 4, 4, making->symbol_count);
    return;
  }
  // One bucket with one chain that holds every defined symbol.
  size_t word = plan->narrow ? 4 : 8;
  bool any = making->symbol_count > undefined;
  put(making, at, 4, 1);
  put(making, at + 4, 4, undefined);
  put(making, at + 8, 4, 1);
  put(making, at + 16 + word, 4, any ? undefined : 0);
  for (size_t i = undefined; i < making->symbol_count; i++) {
    put(making, at + 16 + word + 4 + (i - undefined) * 4, 4,
        0x1234560 + (i + 1 == making->symbol_count));
  }
}

static void add_versions(making_t* making) {
  const elf_plan_t* plan = making->plan;
  if (plan->version) {
    making->verdef = take(making, 28);
    put(making, making->verdef, 2, 1);
    put(making, making->verdef + 6, 2, 1);
    put(making, making->verdef + 12, 4, 20);
    put(making, making->verdef + 20, 4, add_string(making, plan->version));
  }
  if (plan->needed_version) {
    making->verneed = take(making, 32);
    put(making, making->verneed, 2, 1);
    put(making, making->verneed + 2, 2, 1);
    put(making, making->verneed + 4, 4, add_string(making, plan->needed[0]));
    put(making, making->verneed + 8, 4, 16);
    put(making, making->verneed + 24, 4,
        add_string(making, plan->needed_version));
  }
}

static size_t add_entry(making_t* making, size_t at, uint64_t tag,
                        uint64_t value) {
  size_t word = making->plan->narrow ? 4 : 8;
  put_word(making, at, tag);
  put_word(making, at + word, value);
  return at + 2 * word;
}

static size_t add_text(making_t* making, size_t at, uint64_t tag,
                       const char* text) {
  return text ? add_entry(making, at, tag, add_string(making, text)) : at;
}

// The size of what is used of it.
static size_t add_dynamic(making_t* making) {
  const elf_plan_t* plan = making->plan;
  elf_made_t* made = &making->made;
  made->dynamic = take(making, 32 * 16);
  made->strings = take(making, STRINGS_ROOM);
  size_t at = made->dynamic;
  for (size_t i = 0; i < 8 && plan->needed[i]; i++) {
    at = add_text(making, at, 1, plan->needed[i]);
  }
  at = add_text(making, at, 14, plan->soname);
  at = add_text(making, at, 15, plan->rpath);
  at = add_text(making, at, 29, plan->runpath);
  at = add_entry(making, at, 5, made->strings);
  at = add_entry(making, at, 6, made->symbols);
  at = add_entry(making, at, 10, making->strings_size);
  at = add_entry(making, at, plan->gnu_hash ? 0x6ffffef5 : 4, made->hash);
  if (making->verdef) {
    at = add_entry(making, at, 0x6ffffffc, making->verdef);
    at = add_entry(making, at, 0x6ffffffd, 1);
  }
  if (making->verneed) {
    at = add_entry(making, at, 0x6ffffffe, making->verneed);
    at = add_entry(making, at, 0x6fffffff, 1);
  }
  at = add_entry(making, at, 0, 0);
  memcpy(made->data + made->strings, making->strings, STRINGS_ROOM);
  return at - made->dynamic;
}

static void add_note(making_t* making) {
  making->note = take(making, 36);
  put(making, making->note, 4, 4);
  put(making, making->note + 4, 4, 20);
  put(making, making->note + 8, 4, 3);
  memcpy(making->made.data + making->note + 12, "GNU", 4);
  memcpy(making->made.data + making->note + 16, making->plan->build_id, 20);
}

static void put_segment(making_t* making, size_t index, uint32_t type,
                        size_t offset, size_t size) {
  bool narrow = making->plan->narrow;
  size_t at = making->made.segments + index * (narrow ? 32 : 56);
  put(making, at, 4, type);
  if (narrow) {
    put(making, at + 4, 4, offset);
    put(making, at + 8, 4, offset);
    put(making, at + 16, 4, size);
  } else {
    put(making, at + 8, 8, offset);
    put(making, at + 16, 8, offset);
    put(making, at + 32, 8, size);
  }
}

static void put_section(making_t* making, size_t index, uint32_t name,
                        size_t offset, size_t size) {
  bool narrow = making->plan->narrow;
  size_t at = making->made.sections + index * (narrow ? 40 : 64);
  put(making, at, 4, name);
  put(making, at + 4, 4, 1);
  if (narrow) {
    put(making, at + 16, 4, offset);
    put(making, at + 20, 4, size);
  } else {
    put(making, at + 24, 8, offset);
    put(making, at + 32, 8, size);
  }
}

static void add_rodata(making_t* making) {
  const elf_plan_t* plan = making->plan;
  static const char names[] = "\0.rodata\0.shstrtab";
  size_t text = plan->rodata ? strlen(plan->rodata) + 1 : 0;
  size_t size = plan->rodata_offset + text;
  making->rodata = take(making, size);
  if (plan->rodata) {
    memcpy(making->made.data + making->rodata + plan->rodata_offset,
           plan->rodata, text);
  }
  size_t at = take(making, sizeof(names));
  memcpy(making->made.data + at, names, sizeof(names));
  making->made.sections = take(making, 3 * 64);
  put_section(making, 1, 1, making->rodata, size);
  put_section(making, 2, 9, at, sizeof(names));
}

static void put_header(making_t* making, size_t segments) {
  const elf_plan_t* plan = making->plan;
  uint8_t* data = making->made.data;
  bool narrow = plan->narrow;
  memcpy(data, "\177ELF", 4);
  data[4] = narrow ? 1 : 2;
  data[5] = data[6] = 1;
  put(making, 16, 2, 3);
  put(making, 18, 2, plan->machine ? plan->machine : 62);
  put(making, narrow ? 28 : 32, narrow ? 4 : 8, making->made.segments);
  put(making, narrow ? 32 : 40, narrow ? 4 : 8, making->made.sections);
  size_t at = narrow ? 42 : 54;
  put(making, at, 2, narrow ? 32 : 56);
  put(making, at + 2, 2, segments);
  put(making, at + 4, 2, narrow ? 40 : 64);
  put(making, at + 6, 2, 3);
  put(making, at + 8, 2, 2);
}

elf_made_t elf_make(const elf_plan_t* plan) {
  making_t* making = calloc(1, sizeof(*making));
  if (making == NULL) abort();
  making->plan = plan;
  making->made.data = calloc(1, MODULE);
  if (making->made.data == NULL) abort();
  take(making, 64);
  making->made.segments = take(making, 3 * 56);
  making->strings_size = 1;
  add_symbols(making);
  add_versions(making);
  size_t dynamic = add_dynamic(making);
  if (plan->has_build_id) add_note(making);
  add_rodata(making);
  put_segment(making, 0, 1, 0, making->made.size);
  put_segment(making, 1, 2, making->made.dynamic, dynamic);
  if (plan->has_build_id) put_segment(making, 2, 4, making->note, 36);
  put_header(making, plan->has_build_id ? 3 : 2);
  elf_made_t made = making->made;
  free(making);
  return made;
}
