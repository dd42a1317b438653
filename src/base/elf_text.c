// SPDX-License-Identifier: Apache-2.0
//
// base: notes of an ELF file, and text in one of its sections.
#include <string.h>

#include "base/alloc.h"
#include "base/elf_inside.h"
#include "base/status_make.h"

enum {
  NT_IS_GNU_BUILD_ID = 3,
  SHT_IS_NOBITS = 8,
  SHN_IS_XINDEX = 0xffff,
  MAX_SECTION_NAMES = 16 << 20,  // bytes
  MAX_SECTION_SIZE = 1024        // bytes of one header
};

// ---- Build id ----

// Writes the build id in a block of notes, if it has one.
static void build_id_in(const uint8_t* notes, size_t size, char* out_text) {
  static const char digits[] = "0123456789abcdef";
  size_t at = 0;
  while (size - at >= 12) {
    uint64_t name = kilni_base_elf_get32(notes + at);
    uint64_t bytes = kilni_base_elf_get32(notes + at + 4);
    uint32_t type = kilni_base_elf_get32(notes + at + 8);
    uint64_t name_space = (name + 3) & ~(uint64_t)3;
    uint64_t left = size - at - 12;
    if (name_space > left || bytes > left - name_space) return;
    const uint8_t* text = notes + at + 12;
    const uint8_t* id = text + name_space;
    if (type == NT_IS_GNU_BUILD_ID && name == 4 && bytes > 0 &&
        memcmp(text, "GNU", 4) == 0 && bytes <= KILNI_ELF_MAX_BUILD_ID) {
      for (size_t i = 0; i < bytes; i++) {
        out_text[2 * i] = digits[id[i] >> 4];
        out_text[2 * i + 1] = digits[id[i] & 15];
      }
      out_text[2 * bytes] = 0;
      return;
    }
    uint64_t next = name_space + ((bytes + 3) & ~(uint64_t)3);
    if (next > left) return;
    at += 12 + (size_t)next;
  }
}

kiln_status_t kilni_base_elf_build_id(kilni_base_elf_t* elf, char* out_text) {
  out_text[0] = 0;
  for (uint32_t i = 0; i < elf->segment_count && out_text[0] == 0; i++) {
    const kilni_base_elf_segment_t* segment = &elf->segments[i];
    if (segment->type != KILNI_ELF_PT_NOTE) continue;
    if (segment->size > KILNI_ELF_MAX_NOTES) {
      return kilni_base_elf_too_many(elf, "bytes of notes", segment->size,
                                     KILNI_ELF_MAX_NOTES);
    }
    void* notes;
    size_t size = (size_t)segment->size;
    KILNI_RETURN_IF_ERROR(kilni_base_alloc(elf->allocator, size, &notes));
    kiln_status_t status =
        kilni_base_elf_fetch(elf, segment->offset, size, notes);
    if (kiln_status_is_ok(status)) build_id_in(notes, size, out_text);
    kilni_base_free(elf->allocator, notes, size);
    KILNI_RETURN_IF_ERROR(status);
  }
  return kiln_ok();
}

// ---- Sections ----

// One section header.
typedef struct section_t {
  uint32_t name;
  uint32_t type;
  uint64_t offset;
  uint64_t size;
  uint32_t link;
} section_t;

static section_t section_at(const kilni_base_elf_t* elf, const uint8_t* at) {
  section_t section;
  section.name = kilni_base_elf_get32(at);
  section.type = kilni_base_elf_get32(at + 4);
  if (elf->wide) {
    section.offset = kilni_base_elf_get64(at + 24);
    section.size = kilni_base_elf_get64(at + 32);
    section.link = kilni_base_elf_get32(at + 40);
  } else {
    section.offset = kilni_base_elf_get32(at + 16);
    section.size = kilni_base_elf_get32(at + 20);
    section.link = kilni_base_elf_get32(at + 24);
  }
  return section;
}

// The number of sections and which one has their names. Numbers that do not fit
// the header are in the first section.
static kiln_status_t count_sections(const kilni_base_elf_t* elf,
                                    uint64_t* out_count, uint64_t* out_names) {
  *out_count = elf->section_count;
  *out_names = elf->section_names;
  if (elf->section_offset == 0) {
    *out_count = 0;
    return kiln_ok();
  }
  if (elf->section_size < (elf->wide ? 64u : 40u) ||
      elf->section_size > MAX_SECTION_SIZE) {
    return kilni_base_elf_broken(elf, "its section headers have no size");
  }
  if (*out_count == 0 || *out_names == SHN_IS_XINDEX) {
    uint8_t first[64];
    KILNI_RETURN_IF_ERROR(kilni_base_elf_fetch(elf, elf->section_offset,
                                               elf->wide ? 64 : 40, first));
    section_t section = section_at(elf, first);
    if (*out_count == 0) *out_count = section.size;
    if (*out_names == SHN_IS_XINDEX) *out_names = section.link;
  }
  if (*out_count > KILNI_ELF_MAX_SECTIONS) {
    return kilni_base_elf_too_many(elf, "sections", *out_count,
                                   KILNI_ELF_MAX_SECTIONS);
  }
  return kiln_ok();
}

static bool names_equal(const char* names, size_t size, uint32_t at,
                        const char* name) {
  size_t length = strlen(name) + 1;
  return at <= size && length <= size - at &&
         memcmp(names + at, name, length) == 0;
}

// Finds a section in a table of headers, with the names of all of them.
static kiln_status_t find_in_table(const kilni_base_elf_t* elf,
                                   const uint8_t* table, uint64_t count,
                                   uint64_t names, const char* name,
                                   section_t* out_section) {
  if (names >= count) return kiln_ok();  // they have no names
  section_t holder = section_at(elf, table + names * elf->section_size);
  if (holder.size > MAX_SECTION_NAMES) {
    return kilni_base_elf_too_many(elf, "bytes of section names", holder.size,
                                   MAX_SECTION_NAMES);
  }
  if (holder.size > elf->window.size) {
    return kilni_base_elf_broken(elf,
                                 "its section names are larger than the file");
  }
  void* text;
  size_t size = (size_t)holder.size;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(elf->allocator, size, &text));
  kiln_status_t status = kilni_base_elf_fetch(elf, holder.offset, size, text);
  for (uint64_t i = 0; kiln_status_is_ok(status) && i < count; i++) {
    section_t section = section_at(elf, table + i * elf->section_size);
    if (names_equal(text, size, section.name, name)) {
      *out_section = section;
      break;
    }
  }
  kilni_base_free(elf->allocator, text, size);
  return status;
}

// A section by its name; of size 0 where there is none.
static kiln_status_t find_section(const kilni_base_elf_t* elf, const char* name,
                                  section_t* out_section) {
  memset(out_section, 0, sizeof(*out_section));
  uint64_t count;
  uint64_t names;
  KILNI_RETURN_IF_ERROR(count_sections(elf, &count, &names));
  if (count == 0) return kiln_ok();
  void* table;
  size_t size = (size_t)count * elf->section_size;
  if (size > elf->window.size) {
    return kilni_base_elf_broken(
        elf, "its section headers are larger than the file");
  }
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(elf->allocator, size, &table));
  kiln_status_t status =
      kilni_base_elf_fetch(elf, elf->section_offset, size, table);
  if (kiln_status_is_ok(status)) {
    status = find_in_table(elf, table, count, names, name, out_section);
  }
  kilni_base_free(elf->allocator, table, size);
  return status;
}

// ---- Text ----

// A text that is sought by its last byte, skipping as far as it allows.
typedef struct needle_t {
  const uint8_t* text;
  size_t size;
  uint16_t skip[256];
} needle_t;

static void needle_init(needle_t* needle, const char* text) {
  needle->text = (const uint8_t*)text;
  needle->size = strlen(text);
  for (size_t i = 0; i < 256; i++) needle->skip[i] = (uint16_t)needle->size;
  for (size_t i = 0; i + 1 < needle->size; i++) {
    needle->skip[needle->text[i]] = (uint16_t)(needle->size - 1 - i);
  }
}

// The first place of the needle, or `size`.
static size_t needle_find(const needle_t* needle, const uint8_t* data,
                          size_t size) {
  if (size < needle->size) return size;
  size_t last = needle->size - 1;
  for (size_t at = 0; at <= size - needle->size;) {
    uint8_t end = data[at + last];
    if (end == needle->text[last] &&
        memcmp(data + at, needle->text, last) == 0) {
      return at;
    }
    at += needle->skip[end];
  }
  return size;
}

// Copies the printable text at `offset`, which ends before `end`.
static kiln_status_t elf_text_copy_text(const kilni_base_elf_t* elf,
                                        uint64_t offset, uint64_t end,
                                        size_t capacity, char* out_text) {
  size_t space = capacity - 1;
  if (end - offset < space) space = (size_t)(end - offset);
  KILNI_RETURN_IF_ERROR(kilni_base_elf_fetch(elf, offset, space, out_text));
  size_t length = 0;
  while (length < space && out_text[length] >= ' ' && out_text[length] < 127) {
    length++;
  }
  out_text[length] = 0;
  return kiln_ok();
}

static kiln_status_t find_in_range(const kilni_base_elf_t* elf,
                                   const needle_t* needle, uint64_t begin,
                                   uint64_t end, uint8_t* piece,
                                   uint64_t* out_offset) {
  for (uint64_t at = begin; end - at >= needle->size;) {
    uint64_t left = end - at;
    size_t size =
        left < KILNI_ELF_SCAN_BYTES ? (size_t)left : KILNI_ELF_SCAN_BYTES;
    KILNI_RETURN_IF_ERROR(kilni_base_elf_fetch(elf, at, size, piece));
    size_t found = needle_find(needle, piece, size);
    if (found < size) {
      *out_offset = at + found;
      return kiln_ok();
    }
    if (size == left) return kiln_ok();
    at += size - (needle->size - 1);  // it may span two blocks
  }
  return kiln_ok();
}

kiln_status_t kilni_base_elf_text_find(kilni_base_elf_t* elf,
                                       const char* section, const char* text,
                                       uint64_t limit, size_t capacity,
                                       char* out_text) {
  out_text[0] = 0;
  needle_t needle;
  needle_init(&needle, text);
  if (needle.size == 0 || needle.size > KILNI_ELF_MAX_NEEDLE) return kiln_ok();
  section_t found;
  KILNI_RETURN_IF_ERROR(find_section(elf, section, &found));
  if (found.type == SHT_IS_NOBITS) return kiln_ok();
  if (found.offset > elf->window.size ||
      found.size > elf->window.size - found.offset) {
    return kilni_base_elf_broken(elf, "a section extends past its end");
  }
  uint64_t end = found.offset + found.size;
  uint64_t stop = found.size < limit ? end : found.offset + limit;
  size_t size = stop - found.offset < KILNI_ELF_SCAN_BYTES
                    ? (size_t)(stop - found.offset)
                    : KILNI_ELF_SCAN_BYTES;
  void* piece;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(elf->allocator, size, &piece));
  uint64_t offset = 0;
  kiln_status_t status =
      find_in_range(elf, &needle, found.offset, stop, piece, &offset);
  kilni_base_free(elf->allocator, piece, size);
  if (!kiln_status_is_ok(status) || offset == 0) return status;
  return elf_text_copy_text(elf, offset, end, capacity, out_text);
}
