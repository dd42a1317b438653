// SPDX-License-Identifier: Apache-2.0
//
// image: the sections and symbols of a 64-bit ELF file in memory.
#include <stdio.h>
#include <string.h>

#include "base/elf.h"
#include "base/status_make.h"
#include "image/image_elf.h"
#include "kiln/status.h"

enum {
  HEADER_BYTES = 64,
  SECTION_BYTES = 64,
  CLASS_AT = 4,
  DATA_AT = 5,
  CLASS_32 = 1,
  CLASS_64 = 2,
  LITTLE_ENDIAN_DATA = 1,
  BIG_ENDIAN_DATA = 2,
  INDEX_ELSEWHERE = 0xffff,  // in sh_link of section 0
};

// ---- The header ----

static const char* elf_machine_name(uint32_t machine) {
  switch (machine) {
    case 3:
      return " (i386)";
    case 40:
      return " (ARM)";
    case KILNI_ELF_X86_64:
      return " (x86-64)";
    case KILNI_ELF_AARCH64:
      return " (AArch64)";
    case KILNI_IMAGE_ELF_MACHINE_CUDA:
      return " (CUDA)";
    default:
      return "";
  }
}

bool kilni_image_elf_is_foreign(const kilni_image_part_t* part) {
  return part->size > DATA_AT && memcmp(part->data, "\177ELF", 4) == 0 &&
         (part->data[CLASS_AT] != CLASS_64 ||
          part->data[DATA_AT] != LITTLE_ENDIAN_DATA);
}

void kilni_image_elf_kind(const kilni_image_part_t* part,
                          char out_text[KILNI_IMAGE_ELF_KIND_BYTES]) {
  enum { MACHINE_AT = 18, WORD_BYTES = 24 };
  char width[WORD_BYTES];
  char order[WORD_BYTES];
  uint32_t class = part->data[CLASS_AT];
  uint32_t data = part->data[DATA_AT];
  bool is_big = data == BIG_ENDIAN_DATA;
  if (class == CLASS_32 || class == CLASS_64) {
    (void)snprintf(width, sizeof(width), "%d bits",
                   class == CLASS_64 ? 64 : 32);
  } else {
    (void)snprintf(width, sizeof(width), "class %u", class);
  }
  if (is_big || data == LITTLE_ENDIAN_DATA) {
    (void)snprintf(order, sizeof(order), "%s-endian",
                   is_big ? "big" : "little");
  } else {
    (void)snprintf(order, sizeof(order), "byte order %u", data);
  }
  if (!kilni_image_part_has(part, MACHINE_AT, 2)) {
    (void)snprintf(out_text, KILNI_IMAGE_ELF_KIND_BYTES, "%s, %s", width,
                   order);
    return;
  }
  const uint8_t* at = part->data + MACHINE_AT;
  uint32_t machine =
      is_big ? (uint32_t)at[0] << 8 | at[1] : kilni_image_u16(at);
  (void)snprintf(out_text, KILNI_IMAGE_ELF_KIND_BYTES, "%s, %s, machine %u%s",
                 width, order, machine, elf_machine_name(machine));
}

// ---- The file ----

static kiln_status_t check_ident(const kilni_image_part_t* part) {
  if (part->size < HEADER_BYTES) {
    return kilni_image_bad(part, part->size,
                           "the file ends within its ELF header");
  }
  if (memcmp(part->data, "\177ELF", 4) != 0) {
    return kilni_image_bad(part, 0, "an ELF file does not begin here");
  }
  if (kilni_image_elf_is_foreign(part)) {
    char kind[KILNI_IMAGE_ELF_KIND_BYTES];
    kilni_image_elf_kind(part, kind);
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "%s: an ELF file of another kind than 64 bits, "
                   "little-endian: its header states %s",
                   part->name, kind),
        "compile for a 64-bit machine; CUDA 9 was the last release to make "
        "others");
  }
  return kiln_ok();
}

// Counts that do not fit the header are in section 0.
static kiln_status_t elf_read_counts(kilni_image_elf_t* elf,
                                     uint32_t* out_names) {
  const kilni_image_part_t* part = &elf->part;
  elf->table = kilni_image_u64(part->data + 40);
  elf->stride = kilni_image_u16(part->data + 58);
  uint64_t count = kilni_image_u16(part->data + 60);
  *out_names = kilni_image_u16(part->data + 62);
  if (elf->table == 0) return kiln_ok();
  if (elf->stride < SECTION_BYTES) {
    return kilni_image_bad(part, 58, "section headers of %u bytes",
                           elf->stride);
  }
  if (!kilni_image_part_has(part, elf->table, SECTION_BYTES)) {
    return kilni_image_bad(part, 40, "no section headers at byte %llu",
                           (unsigned long long)elf->table);
  }
  const uint8_t* first = part->data + elf->table;
  if (count == 0) count = kilni_image_u64(first + 32);
  if (*out_names == INDEX_ELSEWHERE) *out_names = kilni_image_u32(first + 40);
  if (count > KILNI_IMAGE_MAX_SECTIONS) {
    return kilni_image_over(part->name, "sections", KILNI_IMAGE_MAX_SECTIONS);
  }
  elf->count = (uint32_t)count;
  if (!kilni_image_part_has(part, elf->table, count * elf->stride)) {
    return kilni_image_bad(part, 60, "the file ends within its %u sections",
                           elf->count);
  }
  return kiln_ok();
}

kiln_status_t kilni_image_elf_open(const kilni_image_part_t* part,
                                   kilni_image_elf_t* out_elf) {
  memset(out_elf, 0, sizeof(*out_elf));
  KILNI_RETURN_IF_ERROR(check_ident(part));
  kilni_image_elf_t* elf = out_elf;
  elf->part = *part;
  elf->os_abi = part->data[7];
  elf->abi_version = part->data[8];
  elf->type = kilni_image_u16(part->data + 16);
  elf->machine = kilni_image_u16(part->data + 18);
  elf->version = kilni_image_u32(part->data + 20);
  elf->flags = kilni_image_u32(part->data + 48);
  uint32_t names = 0;
  KILNI_RETURN_IF_ERROR(elf_read_counts(elf, &names));
  if (elf->count == 0) return kiln_ok();
  if (names >= elf->count) {
    return kilni_image_bad(part, 62,
                           "section %u of %u was to contain the names", names,
                           elf->count);
  }
  kilni_image_section_t section = {0};
  const uint8_t* header =
      part->data + elf->table + (uint64_t)names * elf->stride;
  section.name = ".shstrtab";
  section.type = kilni_image_u32(header + 4);
  section.offset = kilni_image_u64(header + 24);
  section.size = kilni_image_u64(header + 32);
  section.index = names;
  return kilni_image_elf_bytes(elf, &section, &elf->names);
}

kiln_status_t kilni_image_elf_text(const kilni_image_part_t* names,
                                   uint64_t offset,
                                   const kilni_image_part_t* part,
                                   uint64_t blame, const char** out_text) {
  *out_text = "";
  if (offset >= names->size ||
      memchr(names->data + offset, 0, (size_t)(names->size - offset)) == NULL) {
    return kilni_image_bad(part, blame, "a name at %llu of %llu bytes of names",
                           (unsigned long long)offset,
                           (unsigned long long)names->size);
  }
  *out_text = (const char*)names->data + offset;
  return kiln_ok();
}

kiln_status_t kilni_image_elf_section(const kilni_image_elf_t* elf,
                                      uint32_t index,
                                      kilni_image_section_t* out_section) {
  uint64_t at = elf->table + (uint64_t)index * elf->stride;
  const uint8_t* header = elf->part.data + at;
  kilni_image_section_t* section = out_section;
  memset(section, 0, sizeof(*section));
  section->index = index;
  section->name = "";
  section->type = kilni_image_u32(header + 4);
  section->flags = kilni_image_u64(header + 8);
  section->offset = kilni_image_u64(header + 24);
  section->size = kilni_image_u64(header + 32);
  section->link = kilni_image_u32(header + 40);
  section->info = kilni_image_u32(header + 44);
  if (section->type == KILNI_IMAGE_SECTION_NULL) return kiln_ok();
  return kilni_image_elf_text(&elf->names, kilni_image_u32(header), &elf->part,
                              at, &section->name);
}

kiln_status_t kilni_image_elf_bytes(const kilni_image_elf_t* elf,
                                    const kilni_image_section_t* section,
                                    kilni_image_part_t* out_part) {
  memset(out_part, 0, sizeof(*out_part));
  if (section->type == KILNI_IMAGE_SECTION_NOBITS ||
      !kilni_image_part_has(&elf->part, section->offset, section->size)) {
    uint64_t at = elf->table + (uint64_t)section->index * elf->stride;
    return kilni_image_bad(
        &elf->part, at, "section \"%.60s\" would be %llu bytes at %llu of %llu",
        section->name, (unsigned long long)section->size,
        (unsigned long long)section->offset,
        (unsigned long long)elf->part.size);
  }
  *out_part = kilni_image_part_at(&elf->part, section->offset, section->size);
  return kiln_ok();
}

kiln_status_t kilni_image_elf_symtab(const kilni_image_elf_t* elf,
                                     const kilni_image_section_t* section,
                                     kilni_image_symtab_t* out_symtab) {
  memset(out_symtab, 0, sizeof(*out_symtab));
  KILNI_RETURN_IF_ERROR(
      kilni_image_elf_bytes(elf, section, &out_symtab->entries));
  if (section->link >= elf->count) {
    return kilni_image_bad(&elf->part,
                           elf->table + (uint64_t)section->index * elf->stride,
                           "the symbols' names would be in section %u of %u",
                           section->link, elf->count);
  }
  kilni_image_section_t names;
  KILNI_RETURN_IF_ERROR(kilni_image_elf_section(elf, section->link, &names));
  KILNI_RETURN_IF_ERROR(kilni_image_elf_bytes(elf, &names, &out_symtab->names));
  out_symtab->count = section->size / KILNI_IMAGE_SYMBOL_BYTES;
  return kiln_ok();
}

kiln_status_t kilni_image_elf_symbol(const kilni_image_symtab_t* symtab,
                                     uint64_t index,
                                     kilni_image_elf_symbol_t* out_symbol) {
  uint64_t at = index * KILNI_IMAGE_SYMBOL_BYTES;
  const uint8_t* entry = symtab->entries.data + at;
  memset(out_symbol, 0, sizeof(*out_symbol));
  out_symbol->name = "";
  out_symbol->type = entry[4] & 15;
  out_symbol->binding = entry[4] >> 4;
  out_symbol->other = entry[5];
  out_symbol->section = kilni_image_u16(entry + 6);
  out_symbol->value = kilni_image_u64(entry + 8);
  out_symbol->size = kilni_image_u64(entry + 16);
  uint32_t name = kilni_image_u32(entry);
  if (name == 0) return kiln_ok();
  return kilni_image_elf_text(&symtab->names, name, &symtab->entries, at,
                              &out_symbol->name);
}
