// SPDX-License-Identifier: Apache-2.0
//
// base: an ELF file while it is read.
//
// Shared by elf.c, elf_symbols.c and elf_text.c; no other file looks inside.
#ifndef KILN_SRC_BASE_ELF_INSIDE_H_
#define KILN_SRC_BASE_ELF_INSIDE_H_

#include "base/elf.h"
#include "base/file.h"

// The types of program headers that are looked at.
enum { KILNI_ELF_PT_LOAD = 1, KILNI_ELF_PT_DYNAMIC = 2, KILNI_ELF_PT_NOTE = 4 };

enum {
  KILNI_ELF_PIECE_BYTES = 12 << 10,
  KILNI_ELF_PIECE_BEFORE = 4 << 10,  // of it, before the requested bytes
  KILNI_ELF_PIECE_SMALL = 4 << 10    // what is read in blocks at most
};

// One program header.
typedef struct kilni_base_elf_segment_t {
  uint32_t type;
  uint64_t offset;
  uint64_t address;
  uint64_t size;  // in the file
} kilni_base_elf_segment_t;

// The block of the file that was read last: names that are read one by one are
// near each other.
typedef struct kilni_base_elf_piece_t {
  uint64_t offset;
  size_t size;
  uint8_t data[KILNI_ELF_PIECE_BYTES];
} kilni_base_elf_piece_t;

struct kilni_base_elf_t {
  kiln_allocator_t allocator;
  kilni_base_window_t window;
  char* name;
  uint8_t* head;
  size_t head_size;
  kilni_base_elf_piece_t* piece;
  uint32_t machine;
  bool wide;  // 64 bits
  bool is_dynamic;
  uint64_t section_offset;
  uint32_t section_size;
  uint32_t section_count;
  uint32_t section_names;
  kilni_base_elf_segment_t* segments;
  uint32_t segment_count;
  // Addresses, as .dynamic gives them; 0 where it does not.
  uint64_t strings;
  uint64_t strings_size;
  uint64_t symbols;
  uint64_t hash;
  uint64_t gnu_hash;
  uint64_t defined_versions;
  uint64_t defined_version_count;
  uint64_t needed_versions;
  uint64_t needed_version_count;
  char* soname;
  char* rpath;
  char* runpath;
  char** needed;
  size_t needed_count;
  size_t needed_capacity;
};

static inline uint16_t kilni_base_elf_get16(const uint8_t* at) {
  return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t kilni_base_elf_get32(const uint8_t* at) {
  return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
         (uint32_t)at[3] << 24;
}

static inline uint64_t kilni_base_elf_get64(const uint8_t* at) {
  return at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
         (uint64_t)at[3] << 24 | (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 |
         (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}

// A word of the file's own width.
static inline uint64_t kilni_base_elf_get_word(const kilni_base_elf_t* elf,
                                               const uint8_t* at) {
  return elf->wide ? kilni_base_elf_get64(at) : kilni_base_elf_get32(at);
}

// Errors that name the file.
kiln_status_t kilni_base_elf_broken(const kilni_base_elf_t* elf,
                                    const char* what);
kiln_status_t kilni_base_elf_too_many(const kilni_base_elf_t* elf,
                                      const char* what, uint64_t count,
                                      uint64_t limit);

// `size` bytes at a place in the file, or at an address of a loaded segment;
// BAD_DATA where the file has not all of them.
kiln_status_t kilni_base_elf_fetch(const kilni_base_elf_t* elf, uint64_t offset,
                                   size_t size, void* out);
kiln_status_t kilni_base_elf_fetch_address(const kilni_base_elf_t* elf,
                                           uint64_t address, size_t size,
                                           void* out);
// The text at `offset` of .dynstr, as a copy that kilni_base_strfree frees.
kiln_status_t kilni_base_elf_fetch_text(const kilni_base_elf_t* elf,
                                        uint64_t offset, char** out_text);

#endif  // KILN_SRC_BASE_ELF_INSIDE_H_
