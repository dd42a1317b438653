// SPDX-License-Identifier: Apache-2.0
//
// image: the sections and symbols of a 64-bit ELF file in memory.
//
// For code files, whose every byte is at hand. base/elf.h reads the facts in a
// library on disk.
#ifndef KILN_SRC_IMAGE_IMAGE_ELF_H_
#define KILN_SRC_IMAGE_IMAGE_ELF_H_

#include "image/image_inside.h"
#include "kiln/status.h"

// ELF's own constants.
enum {
  KILNI_IMAGE_ELF_REL = 1,
  KILNI_IMAGE_ELF_MACHINE_CUDA = 190,
  KILNI_IMAGE_SECTION_NULL = 0,
  KILNI_IMAGE_SECTION_SYMTAB = 2,
  KILNI_IMAGE_SECTION_STRTAB = 3,
  KILNI_IMAGE_SECTION_NOTE = 7,
  KILNI_IMAGE_SECTION_NOBITS = 8,
  KILNI_IMAGE_SYMBOL_BYTES = 24,
  KILNI_IMAGE_ELF_KIND_BYTES = 80,
};

// An ELF file whose header and table of sections are in place.
// thread-compatible
typedef struct kilni_image_elf_t {
  kilni_image_part_t part;
  kilni_image_part_t names;  // of the sections
  uint64_t table;            // where the section headers begin
  uint32_t stride;
  uint32_t count;
  uint32_t type;
  uint32_t machine;
  uint32_t flags;
  uint32_t version;
  uint32_t os_abi;
  uint32_t abi_version;
} kilni_image_elf_t;

// A section. Its bytes are there where `in_file`. thread-compatible
typedef struct kilni_image_section_t {
  const char* name;  // in the file; ends with a NUL
  uint64_t flags;
  uint64_t offset;
  uint64_t size;
  uint32_t type;
  uint32_t link;
  uint32_t info;
  uint32_t index;
} kilni_image_section_t;

// A symbol. thread-compatible
typedef struct kilni_image_elf_symbol_t {
  const char* name;
  uint64_t value;
  uint64_t size;
  uint32_t section;
  uint8_t type;
  uint8_t binding;
  uint8_t other;
  uint8_t reserved;
} kilni_image_elf_symbol_t;

// The symbols of a file. thread-compatible
typedef struct kilni_image_symtab_t {
  kilni_image_part_t entries;
  kilni_image_part_t names;
  uint64_t count;
} kilni_image_symtab_t;

// Whether an ELF file begins here whose header is not that of a 64-bit,
// little-endian one.
bool kilni_image_elf_is_foreign(const kilni_image_part_t* part);

// Describes the header of an ELF file: "32 bits, little-endian, machine 3
// (i386)". The part has its first 6 bytes.
void kilni_image_elf_kind(const kilni_image_part_t* part,
                          char out_text[KILNI_IMAGE_ELF_KIND_BYTES]);

// BAD_DATA; UNSUPPORTED for what is not 64 bits wide and little-endian;
// LIMIT_EXCEEDED.
kiln_status_t kilni_image_elf_open(const kilni_image_part_t* part,
                                   kilni_image_elf_t* out_elf);

// The section at `index`, which must be below `count`.
kiln_status_t kilni_image_elf_section(const kilni_image_elf_t* elf,
                                      uint32_t index,
                                      kilni_image_section_t* out_section);

// Its bytes; BAD_DATA where they are not all in the file.
kiln_status_t kilni_image_elf_bytes(const kilni_image_elf_t* elf,
                                    const kilni_image_section_t* section,
                                    kilni_image_part_t* out_part);

// The text at `offset` of `names`, which ends in there; BAD_DATA blames byte
// `blame` of `part`.
kiln_status_t kilni_image_elf_text(const kilni_image_part_t* names,
                                   uint64_t offset,
                                   const kilni_image_part_t* part,
                                   uint64_t blame, const char** out_text);

// The symbols of a section of type SYMTAB.
kiln_status_t kilni_image_elf_symtab(const kilni_image_elf_t* elf,
                                     const kilni_image_section_t* section,
                                     kilni_image_symtab_t* out_symtab);

// The symbol at `index`, which must be below `count`.
kiln_status_t kilni_image_elf_symbol(const kilni_image_symtab_t* symtab,
                                     uint64_t index,
                                     kilni_image_elf_symbol_t* out_symbol);

#endif  // KILN_SRC_IMAGE_IMAGE_ELF_H_
