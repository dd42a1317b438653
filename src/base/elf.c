// SPDX-License-Identifier: Apache-2.0
//
// base: the reader of ELF files.
//
// The start of the file is read once; reads inside it cost nothing more, which
// for most libraries is all but .dynamic. Small reads elsewhere go through one
// block that is kept.
#include <string.h>

#include "base/alloc.h"
#include "base/elf_inside.h"
#include "base/status_make.h"
#include "base/str.h"

enum {
  MAX_NEEDED = 4096,
  MAX_TEXT = 4096,    // bytes of a name in .dynstr
  DYNAMIC_PIECE = 64  // entries read at a time
};

// Tags, types and sizes as the System V ABI and its GNU additions give them.
enum {
  ET_IS_CORE = 4,
  DT_IS_NULL = 0,
  DT_IS_NEEDED = 1,
  DT_IS_HASH = 4,
  DT_IS_STRTAB = 5,
  DT_IS_SYMTAB = 6,
  DT_IS_STRSZ = 10,
  DT_IS_SONAME = 14,
  DT_IS_RPATH = 15,
  DT_IS_RUNPATH = 29,
  DT_IS_GNU_HASH = 0x6ffffef5,
  DT_IS_VERDEF = 0x6ffffffc,
  DT_IS_VERDEFNUM = 0x6ffffffd,
  DT_IS_VERNEED = 0x6ffffffe,
  DT_IS_VERNEEDNUM = 0x6fffffff
};

// What .dynamic states of texts, before the place of the texts is known.
typedef struct dynamic_texts_t {
  bool has_soname, has_rpath, has_runpath;
  uint64_t soname, rpath, runpath;
  uint64_t* needed;
  size_t needed_count;
  size_t needed_capacity;
} dynamic_texts_t;

kiln_status_t kilni_base_elf_broken(const kilni_base_elf_t* elf,
                                    const char* what) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA, "\"%s\" is a damaged ELF file: %s", elf->name, what),
      "install the package that it belongs to again");
}

kiln_status_t kilni_base_elf_too_many(const kilni_base_elf_t* elf,
                                      const char* what, uint64_t count,
                                      uint64_t limit) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "\"%s\" has %llu %s, over the limit of %llu",
                 elf->name, (unsigned long long)count, what,
                 (unsigned long long)limit),
      "check that it is the library you meant");
}

// ---- Bytes ----

kiln_status_t kilni_base_elf_fetch(const kilni_base_elf_t* elf, uint64_t offset,
                                   size_t size, void* out) {
  if (offset <= elf->head_size && size <= elf->head_size - offset) {
    if (size > 0) memcpy(out, elf->head + offset, size);
    return kiln_ok();
  }
  if (offset > elf->window.size || size > elf->window.size - offset) {
    return kilni_base_elf_broken(elf, "a table extends past its end");
  }
  if (size > KILNI_ELF_PIECE_SMALL) {
    return kilni_base_window_read(&elf->window, offset, size, out);
  }
  kilni_base_elf_piece_t* piece = elf->piece;
  bool is_in = offset >= piece->offset &&
               offset - piece->offset <= piece->size &&
               size <= piece->size - (size_t)(offset - piece->offset);
  if (!is_in) {
    uint64_t before =
        offset < KILNI_ELF_PIECE_BEFORE ? offset : KILNI_ELF_PIECE_BEFORE;
    piece->offset = offset - before;
    piece->size = 0;
    KILNI_RETURN_IF_ERROR(kilni_base_window_read_some(
        &elf->window, piece->offset, KILNI_ELF_PIECE_BYTES, piece->data,
        &piece->size));
    if (piece->size < before || piece->size - before < size) {
      return kilni_base_elf_broken(elf, "it became shorter while it was read");
    }
  }
  memcpy(out, piece->data + (offset - piece->offset), size);
  return kiln_ok();
}

// The place in the file of `size` bytes at an address; false if none of the
// loaded segments has them all.
static bool elf_place_of(const kilni_base_elf_t* elf, uint64_t address,
                         uint64_t size, uint64_t* out_offset) {
  for (uint32_t i = 0; i < elf->segment_count; i++) {
    const kilni_base_elf_segment_t* segment = &elf->segments[i];
    if (segment->type != KILNI_ELF_PT_LOAD || address < segment->address) {
      continue;
    }
    uint64_t inside = address - segment->address;
    if (inside > segment->size || size > segment->size - inside) continue;
    *out_offset = segment->offset + inside;
    return *out_offset >= segment->offset;
  }
  return false;
}

kiln_status_t kilni_base_elf_fetch_address(const kilni_base_elf_t* elf,
                                           uint64_t address, size_t size,
                                           void* out) {
  uint64_t offset;
  if (!elf_place_of(elf, address, size, &offset)) {
    return kilni_base_elf_broken(elf, "a table is in none of its segments");
  }
  return kilni_base_elf_fetch(elf, offset, size, out);
}

// The text at `offset` of .dynstr, as a copy.
kiln_status_t kilni_base_elf_fetch_text(const kilni_base_elf_t* elf,
                                        uint64_t offset, char** out_text) {
  *out_text = NULL;
  if (offset >= elf->strings_size) {
    return kilni_base_elf_broken(elf, "a name extends past its string table");
  }
  char text[MAX_TEXT];
  uint64_t rest = elf->strings_size - offset;
  size_t size = rest < sizeof(text) ? (size_t)rest : sizeof(text);
  uint64_t place;
  if (elf->strings + offset < elf->strings ||
      !elf_place_of(elf, elf->strings + offset, 1, &place)) {
    return kilni_base_elf_broken(elf,
                                 "its string table is in none of its segments");
  }
  // The end of the file may come before the end that .dynamic claims.
  uint64_t left = place < elf->window.size ? elf->window.size - place : 0;
  if (left < size) size = (size_t)left;
  KILNI_RETURN_IF_ERROR(kilni_base_elf_fetch(elf, place, size, text));
  const char* end = size > 0 ? memchr(text, 0, size) : NULL;
  if (end == NULL) {
    return kilni_base_elf_broken(elf, "a name is not terminated");
  }
  return kilni_base_strdup(
      elf->allocator, kilni_base_sv_make(text, (size_t)(end - text)), out_text);
}

// ---- Headers ----

// True if the first bytes of a file are those of an ELF file.
static bool elf_is_elf(kiln_bytes_view_t head) {
  return head.size >= 4 && memcmp(head.data, "\177ELF", 4) == 0;
}

static kiln_status_t elf_check_header(const kilni_base_elf_t* elf) {
  kiln_bytes_view_t head = {elf->head, elf->head_size};
  if (!elf_is_elf(head)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "\"%s\" is not an ELF file", elf->name),
        "name a shared library or a program");
  }
  if (elf->head_size < 64) {
    return kilni_base_elf_broken(elf, "it ends in its header");
  }
  uint8_t width = elf->head[4];
  if (width != 1 && width != 2) {
    return kilni_base_elf_broken(elf, "its class is neither 32 nor 64 bits");
  }
  if (elf->head[5] != 1) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "\"%s\" is an ELF file of another byte order",
                   elf->name),
        "name a library of x86-64 or aarch64");
  }
  return kiln_ok();
}

static kilni_base_elf_segment_t segment_at(const kilni_base_elf_t* elf,
                                           const uint8_t* at) {
  kilni_base_elf_segment_t segment;
  segment.type = kilni_base_elf_get32(at);
  if (elf->wide) {
    segment.offset = kilni_base_elf_get64(at + 8);
    segment.address = kilni_base_elf_get64(at + 16);
    segment.size = kilni_base_elf_get64(at + 32);
  } else {
    segment.offset = kilni_base_elf_get32(at + 4);
    segment.address = kilni_base_elf_get32(at + 8);
    segment.size = kilni_base_elf_get32(at + 16);
  }
  return segment;
}

static kiln_status_t read_segments(kilni_base_elf_t* elf, uint64_t offset,
                                   uint32_t size, uint32_t count) {
  if (count == 0) return kiln_ok();
  if (count > KILNI_ELF_MAX_PROGRAM_HEADERS) {
    return kilni_base_elf_too_many(elf, "program headers", count,
                                   KILNI_ELF_MAX_PROGRAM_HEADERS);
  }
  if (size < (elf->wide ? 56u : 32u) || size > 1024) {
    return kilni_base_elf_broken(elf, "its program headers have no size");
  }
  void* table = NULL;
  void* segments = NULL;
  kiln_status_t status =
      kilni_base_alloc_array(elf->allocator, count, size, &table);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_elf_fetch(elf, offset, (size_t)count * size, table);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(
        elf->allocator, count, sizeof(kilni_base_elf_segment_t), &segments);
  }
  if (kiln_status_is_ok(status)) {
    elf->segments = segments;
    elf->segment_count = count;
    for (uint32_t i = 0; i < count; i++) {
      elf->segments[i] =
          segment_at(elf, (const uint8_t*)table + (size_t)i * size);
    }
  }
  kilni_base_free_array(elf->allocator, table, count, size);
  return status;
}

static kiln_status_t elf_read_header(kilni_base_elf_t* elf) {
  KILNI_RETURN_IF_ERROR(elf_check_header(elf));
  const uint8_t* head = elf->head;
  elf->wide = head[4] == 2;
  if (kilni_base_elf_get16(head + 16) >= ET_IS_CORE) {
    return kilni_base_elf_broken(elf, "it is neither a library nor a program");
  }
  elf->machine = kilni_base_elf_get16(head + 18);
  uint64_t segments = elf->wide ? kilni_base_elf_get64(head + 32)
                                : kilni_base_elf_get32(head + 28);
  elf->section_offset = elf->wide ? kilni_base_elf_get64(head + 40)
                                  : kilni_base_elf_get32(head + 32);
  const uint8_t* sizes = head + (elf->wide ? 54 : 42);
  elf->section_size = kilni_base_elf_get16(sizes + 4);
  elf->section_count = kilni_base_elf_get16(sizes + 6);
  elf->section_names = kilni_base_elf_get16(sizes + 8);
  return read_segments(elf, segments, kilni_base_elf_get16(sizes),
                       kilni_base_elf_get16(sizes + 2));
}

// ---- .dynamic ----

static kiln_status_t add_needed(kilni_base_elf_t* elf, dynamic_texts_t* texts,
                                uint64_t offset) {
  if (texts->needed_count == MAX_NEEDED) {
    return kilni_base_elf_too_many(elf, "needed libraries", MAX_NEEDED + 1,
                                   MAX_NEEDED);
  }
  void* items = texts->needed;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(elf->allocator, texts->needed_count + 1,
                                        sizeof(uint64_t),
                                        &texts->needed_capacity, &items));
  texts->needed = items;
  texts->needed[texts->needed_count++] = offset;
  return kiln_ok();
}

static kiln_status_t take_entry(kilni_base_elf_t* elf, dynamic_texts_t* texts,
                                uint64_t tag, uint64_t value) {
  switch (tag) {
    case DT_IS_NEEDED:
      return add_needed(elf, texts, value);
    case DT_IS_SONAME:
      texts->has_soname = true;
      texts->soname = value;
      return kiln_ok();
    case DT_IS_RPATH:
      texts->has_rpath = true;
      texts->rpath = value;
      return kiln_ok();
    case DT_IS_RUNPATH:
      texts->has_runpath = true;
      texts->runpath = value;
      return kiln_ok();
    case DT_IS_STRTAB:
      elf->strings = value;
      return kiln_ok();
    case DT_IS_STRSZ:
      elf->strings_size = value;
      return kiln_ok();
    case DT_IS_SYMTAB:
      elf->symbols = value;
      return kiln_ok();
    case DT_IS_HASH:
      elf->hash = value;
      return kiln_ok();
    case DT_IS_GNU_HASH:
      elf->gnu_hash = value;
      return kiln_ok();
    case DT_IS_VERDEF:
      elf->defined_versions = value;
      return kiln_ok();
    case DT_IS_VERDEFNUM:
      elf->defined_version_count = value;
      return kiln_ok();
    case DT_IS_VERNEED:
      elf->needed_versions = value;
      return kiln_ok();
    case DT_IS_VERNEEDNUM:
      elf->needed_version_count = value;
      return kiln_ok();
    default:
      return kiln_ok();
  }
}

static kiln_status_t read_entries(kilni_base_elf_t* elf,
                                  const kilni_base_elf_segment_t* dynamic,
                                  dynamic_texts_t* texts) {
  size_t size = elf->wide ? 16 : 8;
  uint64_t count = dynamic->size / size;
  uint8_t piece[DYNAMIC_PIECE * 16] = {0};
  for (uint64_t at = 0; at < count; at += DYNAMIC_PIECE) {
    if (at >= KILNI_ELF_MAX_DYNAMIC) {
      return kilni_base_elf_too_many(elf, "dynamic entries", count,
                                     KILNI_ELF_MAX_DYNAMIC);
    }
    size_t here =
        count - at < DYNAMIC_PIECE ? (size_t)(count - at) : DYNAMIC_PIECE;
    uint64_t offset = dynamic->offset + at * size;
    if (offset < dynamic->offset) {
      return kilni_base_elf_broken(elf, "a table has no address");
    }
    KILNI_RETURN_IF_ERROR(
        kilni_base_elf_fetch(elf, offset, here * size, piece));
    for (size_t i = 0; i < here; i++) {
      uint64_t tag = kilni_base_elf_get_word(elf, piece + i * size);
      if (tag == DT_IS_NULL) return kiln_ok();
      uint64_t value =
          kilni_base_elf_get_word(elf, piece + i * size + size / 2);
      KILNI_RETURN_IF_ERROR(take_entry(elf, texts, tag, value));
    }
  }
  return kiln_ok();
}

static kiln_status_t read_needed(kilni_base_elf_t* elf,
                                 const dynamic_texts_t* texts) {
  void* items = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(elf->allocator, texts->needed_count,
                                        sizeof(char*), &elf->needed_capacity,
                                        &items));
  elf->needed = items;
  for (size_t i = 0; i < texts->needed_count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_base_elf_fetch_text(
        elf, texts->needed[i], &elf->needed[elf->needed_count]));
    elf->needed_count++;
  }
  return kiln_ok();
}

static kiln_status_t read_texts(kilni_base_elf_t* elf,
                                const dynamic_texts_t* texts) {
  if (texts->has_soname) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_elf_fetch_text(elf, texts->soname, &elf->soname));
  }
  if (texts->has_rpath) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_elf_fetch_text(elf, texts->rpath, &elf->rpath));
  }
  if (texts->has_runpath) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_elf_fetch_text(elf, texts->runpath, &elf->runpath));
  }
  return texts->needed_count > 0 ? read_needed(elf, texts) : kiln_ok();
}

static kiln_status_t read_dynamic(kilni_base_elf_t* elf) {
  for (uint32_t i = 0; i < elf->segment_count; i++) {
    if (elf->segments[i].type != KILNI_ELF_PT_DYNAMIC) continue;
    elf->is_dynamic = true;
    dynamic_texts_t texts;
    memset(&texts, 0, sizeof(texts));
    kiln_status_t status = read_entries(elf, &elf->segments[i], &texts);
    if (kiln_status_is_ok(status)) status = read_texts(elf, &texts);
    kilni_base_free_array(elf->allocator, texts.needed, texts.needed_capacity,
                          sizeof(uint64_t));
    return status;
  }
  return kiln_ok();
}

// ---- Opening ----

static kiln_status_t read_head(kilni_base_elf_t* elf) {
  void* head;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_unset(elf->allocator, KILNI_ELF_HEAD_BYTES, &head));
  elf->head = head;
  void* piece;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(
      elf->allocator, sizeof(kilni_base_elf_piece_t), &piece));
  elf->piece = piece;
  elf->piece->offset = 0;
  elf->piece->size = 0;
  return kilni_base_window_read_some(&elf->window, 0, KILNI_ELF_HEAD_BYTES,
                                     head, &elf->head_size);
}

// Takes the window over, also on failure.
static kiln_status_t elf_open_window(kiln_allocator_t allocator,
                                     kilni_base_window_t* window,
                                     kilni_base_elf_t** out_elf) {
  void* memory = NULL;
  kiln_status_t status =
      kilni_base_alloc(allocator, sizeof(kilni_base_elf_t), &memory);
  if (!kiln_status_is_ok(status)) {
    kilni_base_window_close(window);
    return status;
  }
  kilni_base_elf_t* elf = memory;
  elf->allocator = allocator;
  elf->window = *window;
  status =
      kilni_base_strdup(allocator, kilni_base_sv(window->name), &elf->name);
  if (kiln_status_is_ok(status)) {
    elf->window.name = elf->name;
    status = read_head(elf);
  }
  if (kiln_status_is_ok(status)) status = elf_read_header(elf);
  if (kiln_status_is_ok(status)) status = read_dynamic(elf);
  if (kiln_status_is_ok(status)) {
    *out_elf = elf;
  } else {
    kilni_base_elf_close(elf);
  }
  return status;
}

kiln_status_t kilni_base_elf_open(kiln_allocator_t allocator, const char* path,
                                  kilni_base_elf_t** out_elf) {
  *out_elf = NULL;
  kilni_base_window_t window;
  KILNI_RETURN_IF_ERROR(kilni_base_window_open(path, &window));
  return elf_open_window(allocator, &window, out_elf);
}

kiln_status_t kilni_base_elf_open_bytes(kiln_allocator_t allocator,
                                        kiln_bytes_view_t bytes,
                                        const char* name,
                                        kilni_base_elf_t** out_elf) {
  *out_elf = NULL;
  kilni_base_window_t window;
  kilni_base_window_of_bytes(bytes, name, &window);
  return elf_open_window(allocator, &window, out_elf);
}

void kilni_base_elf_close(kilni_base_elf_t* elf) {
  if (elf == NULL) return;
  kiln_allocator_t allocator = elf->allocator;
  for (size_t i = 0; i < elf->needed_count; i++) {
    kilni_base_strfree(allocator, elf->needed[i]);
  }
  kilni_base_free_array(allocator, elf->needed, elf->needed_capacity,
                        sizeof(char*));
  kilni_base_strfree(allocator, elf->soname);
  kilni_base_strfree(allocator, elf->rpath);
  kilni_base_strfree(allocator, elf->runpath);
  kilni_base_free_array(allocator, elf->segments, elf->segment_count,
                        sizeof(kilni_base_elf_segment_t));
  kilni_base_free(allocator, elf->head, KILNI_ELF_HEAD_BYTES);
  kilni_base_free(allocator, elf->piece, sizeof(kilni_base_elf_piece_t));
  kilni_base_window_close(&elf->window);
  kilni_base_strfree(allocator, elf->name);
  kilni_base_free(allocator, elf, sizeof(*elf));
}

uint32_t kilni_base_elf_machine(const kilni_base_elf_t* elf) {
  return elf->machine;
}

uint32_t kilni_base_elf_bits(const kilni_base_elf_t* elf) {
  return elf->wide ? 64 : 32;
}

uint64_t kilni_base_elf_file_bytes(const kilni_base_elf_t* elf) {
  return elf->window.size;
}

bool kilni_base_elf_is_dynamic(const kilni_base_elf_t* elf) {
  return elf->is_dynamic;
}

const char* kilni_base_elf_soname(const kilni_base_elf_t* elf) {
  return elf->soname;
}

const char* kilni_base_elf_rpath(const kilni_base_elf_t* elf) {
  return elf->rpath;
}

const char* kilni_base_elf_runpath(const kilni_base_elf_t* elf) {
  return elf->runpath;
}

uint32_t kilni_base_elf_needed_count(const kilni_base_elf_t* elf) {
  return (uint32_t)elf->needed_count;
}

const char* kilni_base_elf_needed(const kilni_base_elf_t* elf, uint32_t index) {
  return index < elf->needed_count ? elf->needed[index] : NULL;
}
