// SPDX-License-Identifier: Apache-2.0
//
// image: device code inside a host's files: objects, programs, shared
// libraries, and archives of them.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status_make.h"
#include "image/image_elf.h"
#include "kiln/api.h"
#include "kiln/image.h"
#include "kiln/status.h"

// ---------------------------------------------------------------------------
// ELF files
// ---------------------------------------------------------------------------

static bool holds_code(const kilni_image_section_t* section) {
  static const char* const kNames[] = {".nv_fatbin", "__nv_relfatbin"};
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); i++) {
    if (strcmp(section->name, kNames[i]) == 0) return true;
  }
  return false;
}

// What a linker may follow: the bytes of each section, of the first, which is
// none, too. Which other section it belongs to matters to the host's linker
// alone: device linkers take an object where that is out of range.
static kiln_status_t check_host_section(const kilni_image_elf_t* elf,
                                        const kilni_image_section_t* section) {
  kilni_image_part_t bytes;
  if (section->type == KILNI_IMAGE_SECTION_NOBITS) return kiln_ok();
  return kilni_image_elf_bytes(elf, section, &bytes);
}

// What nvlink refuses of an object that it is given by itself; of those in an
// archive, linkers only follow those with device code.
static kiln_status_t image_host_check_host(const kiln_image_t* image,
                                           const kilni_image_elf_t* elf) {
  const kilni_image_part_t* part = &elf->part;
  if (image->link == NULL || elf->count == 0) return kiln_ok();
  bool is_inside = image->nesting > 0;
  uint64_t segments = (uint64_t)kilni_image_u16(part->data + 54) *
                      kilni_image_u16(part->data + 56);
  if (!kilni_image_part_has(part, kilni_image_u64(part->data + 32), segments)) {
    kiln_status_t wrong =
        kilni_image_bad(part, 32, "the file ends within its segments");
    KILNI_RETURN_IF_ERROR(is_inside ? kilni_image_doubt(image->link, wrong)
                                    : wrong);
  }
  for (uint32_t i = 0; i < elf->count; i++) {
    kilni_image_section_t section;
    kiln_status_t wrong = kilni_image_elf_section(elf, i, &section);
    KILNI_RETURN_IF_ERROR(kilni_image_doubt(image->link, wrong));
    wrong = check_host_section(elf, &section);
    KILNI_RETURN_IF_ERROR(is_inside ? kilni_image_doubt(image->link, wrong)
                                    : wrong);
  }
  return kiln_ok();
}

// What a fatbin begins with.
enum { MAGIC_BYTES = 4 };
static const uint8_t kMagic[MAGIC_BYTES] = {0x50, 0xed, 0x55, 0xba};

static bool is_magic(const kilni_image_part_t* part, uint64_t at) {
  return kilni_image_part_has(part, at, MAGIC_BYTES) &&
         memcmp(part->data + at, kMagic, MAGIC_BYTES) == 0;
}

// A section whose name cannot be read may be the wanted one.
static bool host_is_hidden(const kilni_image_elf_t* elf,
                           const kilni_image_section_t* section) {
  return section->name[0] == 0 && section->size >= MAGIC_BYTES &&
         is_magic(&elf->part, section->offset);
}

// A linker takes such an object, and nothing comes of it.
static kiln_status_t no_code(const kilni_image_part_t* part) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA,
                 "%s: an object without device code: it has neither a section "
                 "\".nv_fatbin\" nor \"__nv_relfatbin\"",
                 part->name),
      "compile it with nvcc and `-rdc=true`; objects of the host alone belong "
      "to the host's linker");
}

// Device code in a file whose sections cannot be read: a fatbin begins with
// this, wherever it is.
static bool may_hold_code(const kilni_image_part_t* part) {
  for (uint64_t at = 0; part->size - at >= MAGIC_BYTES; at++) {
    const uint8_t* found =
        memchr(part->data + at, kMagic[0], (size_t)(part->size - at));
    if (found == NULL) return false;
    at = (uint64_t)(found - part->data);
    if (is_magic(part, at)) return true;
  }
  return false;
}

// Linkers pass over it. An archive may have such members as long as only the
// host has code in them.
static kiln_status_t read_foreign(const kiln_image_t* image,
                                  const kilni_image_part_t* part) {
  if (image->nesting > 0 && !may_hold_code(part)) return kiln_ok();
  return kilni_image_link_foreign(part);
}

// The fatbins of a section; in an archive, those that are in the file.
static kiln_status_t host_read_fatbins(kiln_image_t* image,
                                       const kilni_image_elf_t* elf,
                                       const kilni_image_section_t* section,
                                       const kilni_image_about_t* about) {
  kilni_image_part_t fatbins;
  kiln_status_t wrong = kilni_image_elf_bytes(elf, section, &fatbins);
  bool was_clipped = image->is_clipped;
  if (!kiln_status_is_ok(wrong)) {
    const kilni_image_part_t* part = &elf->part;
    bool begins = image->nesting > 0 && section->offset < part->size;
    KILNI_RETURN_IF_ERROR(begins ? kilni_image_doubt(image->link, wrong)
                                 : wrong);
    fatbins = kilni_image_part_at(part, section->offset,
                                  part->size - section->offset);
    image->is_clipped = true;
  }
  kiln_status_t status = kilni_image_read_fatbin(image, &fatbins, about);
  image->is_clipped = was_clipped;
  return status;
}

kiln_status_t kilni_image_read_host(kiln_image_t* image,
                                    const kilni_image_part_t* part,
                                    const kilni_image_about_t* about) {
  kilni_image_elf_t elf;
  bool found = false;
  if (image->link != NULL && kilni_image_elf_is_foreign(part)) {
    return read_foreign(image, part);
  }
  KILNI_RETURN_IF_ERROR(kilni_image_elf_open(part, &elf));
  KILNI_RETURN_IF_ERROR(image_host_check_host(image, &elf));
  for (uint32_t i = 1; i < elf.count; i++) {
    kilni_image_section_t section;
    kiln_status_t wrong = kilni_image_elf_section(&elf, i, &section);
    if (!host_is_hidden(&elf, &section)) {
      wrong = kilni_image_doubt(image->link, wrong);
    }
    KILNI_RETURN_IF_ERROR(wrong);
    if (!holds_code(&section) || section.type == KILNI_IMAGE_SECTION_NOBITS ||
        section.size == 0) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(host_read_fatbins(image, &elf, &section, about));
    found = true;
  }
  bool needed = image->link != NULL && image->nesting == 0;
  return found || !needed ? kiln_ok() : no_code(part);
}

// ---------------------------------------------------------------------------
// Archives
// ---------------------------------------------------------------------------

enum {
  ARCHIVE_MAGIC_BYTES = 8,
  MEMBER_HEAD_BYTES = 60,
  NAME_BYTES = 16,
  SIZE_AT = 48,
  SIZE_DIGITS = 10,
  SHOWN_NAME_BYTES = 1024,
};

// A member of an archive. thread-compatible
typedef struct archive_member_t {
  kilni_image_part_t body;
  char name[SHOWN_NAME_BYTES];
  bool is_index;  // of symbols
  bool is_names;  // the long names of the others
} archive_member_t;

// A number of decimal digits and blanks; false for anything else.
static bool field(const uint8_t* text, size_t size, uint64_t* out_value) {
  uint64_t value = 0;
  size_t i = 0;
  while (i < size && text[i] >= '0' && text[i] <= '9') {
    value = value * 10 + (uint64_t)(text[i++] - '0');
  }
  *out_value = value;
  bool any = i > 0;
  while (i < size && text[i] == ' ') i++;
  return any && i == size;
}

static void host_copy_name(const uint8_t* from, size_t size,
                           archive_member_t* out) {
  if (size >= SHOWN_NAME_BYTES) size = SHOWN_NAME_BYTES - 1;
  memcpy(out->name, from, size);
  out->name[size] = 0;
}

// "/123": at that place of the long names, up to "/" and a new line.
static kiln_status_t long_name(const kilni_image_part_t* archive, uint64_t at,
                               const kilni_image_part_t* names,
                               archive_member_t* out) {
  uint64_t offset = 0;
  const uint8_t* text = archive->data + at;
  if (!field(text + 1, NAME_BYTES - 1, &offset) || offset >= names->size) {
    return kilni_image_bad(archive, at, "a name that is not in the archive");
  }
  uint64_t end = offset;
  while (end < names->size && names->data[end] != '\n') end++;
  if (end > offset && names->data[end - 1] == '/') end--;
  host_copy_name(names->data + offset, (size_t)(end - offset), out);
  return kiln_ok();
}

static kiln_status_t member_name(const kilni_image_part_t* archive, uint64_t at,
                                 const kilni_image_part_t* names,
                                 archive_member_t* out) {
  const uint8_t* text = archive->data + at;
  if (memcmp(text, "/ ", 2) == 0 || memcmp(text, "/SYM64/ ", 8) == 0 ||
      memcmp(text, "__.SYMDEF", 9) == 0) {
    out->is_index = true;
    return kiln_ok();
  }
  if (memcmp(text, "// ", 3) == 0) {
    out->is_names = true;
    return kiln_ok();
  }
  if (text[0] == '/') return long_name(archive, at, names, out);
  if (memcmp(text, "#1/", 3) == 0) {
    // BSD: the name is the beginning of the member.
    uint64_t size = 0;
    if (!field(text + 3, NAME_BYTES - 3, &size) || size > out->body.size) {
      return kilni_image_bad(archive, at, "a name longer than its member");
    }
    host_copy_name(out->body.data, (size_t)size, out);
    out->body = kilni_image_part_at(&out->body, size, out->body.size - size);
    return kiln_ok();
  }
  size_t size = NAME_BYTES;
  while (size > 0 && text[size - 1] == ' ') size--;
  if (size > 0 && text[size - 1] == '/') size--;
  host_copy_name(text, size, out);
  return kiln_ok();
}

static kiln_status_t open_member(const kilni_image_link_visit_t* link,
                                 const kilni_image_part_t* archive, uint64_t at,
                                 const kilni_image_part_t* names,
                                 archive_member_t* out, uint64_t* out_next) {
  memset(out, 0, sizeof(*out));
  *out_next = at;
  if (!kilni_image_part_has(archive, at, MEMBER_HEAD_BYTES)) {
    return kilni_image_bad(archive, at, "a member's header is cut off");
  }
  const uint8_t* head = archive->data + at;
  uint64_t size = 0;
  bool has_size = field(head + SIZE_AT, SIZE_DIGITS, &size);
  if (head[58] != '`' || head[59] != '\n' || !has_size) {
    kiln_status_t wrong =
        kilni_image_bad(archive, at, "no member of an archive begins here");
    // Linkers read nothing after the digits of its size.
    bool has_end = head[58] == '`' && head[59] == '\n' && size != 0;
    KILNI_RETURN_IF_ERROR(has_end ? kilni_image_doubt(link, wrong) : wrong);
  }
  uint64_t body = at + MEMBER_HEAD_BYTES;
  if (!kilni_image_part_has(archive, body, size)) {
    return kilni_image_bad(archive, at,
                           "a member of %" PRIu64 " bytes is cut off", size);
  }
  out->body = kilni_image_part_at(archive, body, size);
  *out_next = body + size + size % 2;
  return member_name(archive, at, names, out);
}

// A name as messages have it, which are one line.
static void host_show_name(const char* name, char out[SHOWN_NAME_BYTES]) {
  size_t i = 0;
  for (; name[i] != 0; i++) {
    unsigned char c = (unsigned char)name[i];
    out[i] = c < ' ' || c >= 0x7f ? '?' : name[i];
  }
  out[i] = 0;
}

// Device code that is in no object. An archive in an archive counts where it
// contains some; an object of Clang's begins like NVVM IR, too.
static bool is_loose(const kilni_image_part_t* part, uint32_t format) {
  switch (format) {
    case KILN_CODE_FORMAT_PTX:
    case KILN_CODE_FORMAT_CUBIN:
    case KILN_CODE_FORMAT_RELOCATABLE:
    case KILN_CODE_FORMAT_FATBIN:
    case KILN_CODE_FORMAT_LTOIR:
      return true;
    case KILN_CODE_FORMAT_LIBRARY:
      return may_hold_code(part);
    default:
      return false;
  }
}

static kiln_status_t report_loose(const kiln_image_t* image,
                                  const kilni_image_part_t* part,
                                  const char* shown, uint32_t format) {
  const kilni_image_link_visit_t* link = image->link;
  if (link == NULL || link->loose == NULL || !is_loose(part, format)) {
    return kiln_ok();
  }
  return link->loose(link->user, part->name, shown, format);
}

static kiln_status_t read_member(kiln_image_t* image,
                                 const archive_member_t* member,
                                 const kilni_image_about_t* outer) {
  kiln_bytes_view_t bytes = {member->body.data, (size_t)member->body.size};
  bool is_elf = bytes.size >= 4 && memcmp(bytes.data, "\177ELF", 4) == 0;
  // What is not code is not read.
  uint32_t format = kiln_code_format_of(bytes);
  if (!is_elf && format == KILN_CODE_FORMAT_UNKNOWN) return kiln_ok();
  char shown[SHOWN_NAME_BYTES];
  host_show_name(member->name, shown);
  KILNI_RETURN_IF_ERROR(report_loose(image, &member->body, shown, format));
  char name[SHOWN_NAME_BYTES + 256];
  (void)snprintf(name, sizeof(name), "%.200s(%s)", member->body.name, shown);
  kilni_image_part_t part = member->body;
  part.name = name;
  kilni_image_about_t about = *outer;
  about.origin = member->name;
  about.offset = part.base;
  about.bytes = part.size;
  return kilni_image_read_entry(image, &part, &about);
}

kiln_status_t kilni_image_read_archive(kiln_image_t* image,
                                       const kilni_image_part_t* part,
                                       const kilni_image_about_t* about) {
  kilni_image_part_t names = {0};
  uint64_t at = ARCHIVE_MAGIC_BYTES;
  while (at < part->size) {
    archive_member_t member;
    uint64_t next = 0;
    KILNI_RETURN_IF_ERROR(
        open_member(image->link, part, at, &names, &member, &next));
    at = next;
    if (member.is_names) names = member.body;
    if (member.is_names || member.is_index) continue;
    KILNI_RETURN_IF_ERROR(read_member(image, &member, about));
  }
  return kiln_ok();
}
