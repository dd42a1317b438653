// SPDX-License-Identifier: Apache-2.0
//
// image: what a cubin was made by, and for which architecture.
//
// The ELF header has the number of the architecture, in one of two places; the
// letter after it is a bit of the header, an attribute, or implied by the
// compiler's options, which depends on the toolkit.
#include <string.h>

#include "base/status_make.h"
#include "image/image.h"
#include "image/image_cubin.h"
#include "kiln/status.h"

enum {
  ABI_NEW = 8,
  OS_ABI_NEW = 0x41,
  OLD_ACCELERATED = 0x800,
  NEW_ACCELERATED = 0x8,
  NOTE_BYTES = 12,  // sizes of name and text, and the kind
  NOTE_CUDA = 1000,
  NOTE_TOOL = 2000,
  TOOL_HEAD_BYTES = 24,
};

uint32_t kilni_image_cubin_line(uint32_t number) {
  return number / 10 * 1000 + number % 10 * 10;
}

void kilni_image_cubin_read_header(kilni_image_cubin_t* cubin) {
  const kilni_image_elf_t* elf = &cubin->elf;
  uint32_t flags = elf->flags;
  if (elf->os_abi == OS_ABI_NEW || elf->abi_version >= ABI_NEW) {
    cubin->sm = flags >> 8 & 0xffff;
    // The bit is one of toolkit 12; those of 13 have an attribute.
    if (flags & NEW_ACCELERATED) cubin->accelerated = 1;
  } else {
    cubin->sm = flags & 0xff;
    cubin->virtual_sm = flags >> 16 & 0xff;
    if (flags & OLD_ACCELERATED) cubin->accelerated = 1;
    // Their version of ELF is that of the toolkit: 129 is 12.9.
    if (elf->version > 1) cubin->line = kilni_image_cubin_line(elf->version);
  }
}

uint32_t kilni_image_cubin_sm(kiln_bytes_view_t bytes) {
  enum { HEADER_BYTES = 64 };
  if (bytes.size < HEADER_BYTES || memcmp(bytes.data, "\177ELF", 4) != 0) {
    return 0;
  }
  kilni_image_cubin_t cubin;
  memset(&cubin, 0, sizeof(cubin));
  cubin.elf.os_abi = bytes.data[7];
  cubin.elf.abi_version = bytes.data[8];
  cubin.elf.flags = kilni_image_u32(bytes.data + 48);
  kilni_image_cubin_read_header(&cubin);
  return cubin.sm;
}

// "-arch sm_100f" among the options, for this architecture.
static char option_suffix(const kilni_image_cubin_t* cubin) {
  const char* at = cubin->options;
  while ((at = strstr(at, "sm_")) != NULL) {
    at += 3;
    uint32_t number = 0;
    while (*at >= '0' && *at <= '9' && number < 10000) {
      number = number * 10 + (uint32_t)(*at++ - '0');
    }
    if (number == cubin->sm && (*at == 'a' || *at == 'f')) return *at;
  }
  return 0;
}

void kilni_image_cubin_settle_target(kilni_image_cubin_t* cubin) {
  cubin->suffix = cubin->accelerated ? 'a' : option_suffix(cubin);
}

static uint32_t decimal(const char** inout_text) {
  uint32_t number = 0;
  while (**inout_text >= '0' && **inout_text <= '9' && number < 10000) {
    number = number * 10 + (uint32_t)(*(*inout_text)++ - '0');
  }
  return number;
}

// 13000 of "Cuda compilation tools, release 13.0, V13.0.88"; 0 of another text.
static uint32_t cubin_note_line_of(const char* text) {
  static const char kWord[] = "release ";
  const char* at = strstr(text, kWord);
  if (at == NULL) return 0;
  at += sizeof(kWord) - 1;
  uint32_t major = decimal(&at);
  if (major == 0 || *at != '.') return 0;
  at++;
  uint32_t minor = decimal(&at);
  return major < 1000 && minor < 100 ? major * 1000 + minor * 10 : 0;
}

static kiln_status_t tool_text(kilni_image_cubin_t* cubin,
                               const kilni_image_part_t* note, uint32_t field,
                               const char** out_text) {
  kilni_image_part_t texts =
      kilni_image_part_at(note, TOOL_HEAD_BYTES, note->size - TOOL_HEAD_BYTES);
  const char* text = "";
  KILNI_RETURN_IF_ERROR(
      kilni_image_elf_text(&texts, kilni_image_u32(note->data + 4 * field),
                           note, 4 * (uint64_t)field, &text));
  size_t size = strlen(text);
  while (size > 0 && text[size - 1] == ' ') size--;
  return kilni_image_text(cubin->image, text, size, out_text);
}

// Offsets of texts and then the texts: tool, version, branch, options. The
// first tool is the compiler; others only passed it on.
static kiln_status_t read_tool(kilni_image_cubin_t* cubin,
                               const kilni_image_part_t* note) {
  enum { VERSION = 3, OPTIONS = 5 };
  if (note->size < TOOL_HEAD_BYTES || cubin->producer[0] != 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(tool_text(cubin, note, VERSION, &cubin->producer));
  KILNI_RETURN_IF_ERROR(tool_text(cubin, note, OPTIONS, &cubin->options));
  uint32_t line = cubin_note_line_of(cubin->producer);
  if (line != 0) cubin->line = line;
  return kiln_ok();
}

static void read_cuda(kilni_image_cubin_t* cubin,
                      const kilni_image_part_t* note) {
  if (note->size < 6) return;
  cubin->virtual_sm = kilni_image_u16(note->data + 2);
  if (cubin->line == 0) {
    cubin->line = kilni_image_cubin_line(kilni_image_u16(note->data + 4));
  }
}

static uint64_t align4(uint64_t size) {
  return (size + 3) & ~(uint64_t)3;
}

kiln_status_t kilni_image_cubin_read_notes(kilni_image_cubin_t* cubin,
                                           const kilni_image_part_t* part) {
  uint64_t at = 0;
  while (kilni_image_part_has(part, at, NOTE_BYTES)) {
    const uint8_t* head = part->data + at;
    uint64_t name = kilni_image_u32(head);
    uint64_t size = kilni_image_u32(head + 4);
    uint32_t kind = kilni_image_u32(head + 8);
    uint64_t text_at = at + NOTE_BYTES + align4(name);
    if (!kilni_image_part_has(part, text_at, size)) {
      return kilni_image_bad(part, at, "a note of %llu bytes is cut off",
                             (unsigned long long)size);
    }
    kilni_image_part_t note = kilni_image_part_at(part, text_at, size);
    if (kind == NOTE_TOOL) KILNI_RETURN_IF_ERROR(read_tool(cubin, &note));
    if (kind == NOTE_CUDA) read_cuda(cubin, &note);
    at = text_at + align4(size);
  }
  return kiln_ok();
}
