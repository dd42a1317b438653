// SPDX-License-Identifier: Apache-2.0
//
// image: the heads of LTO-IR and NVVM IR: versions and target. What is inside
// is a compiler's own and not read.
//
// LTO-IR begins with versions, the size of the header, and a list of tags with
// two bytes of value each; the tag of the architecture was found by comparing
// the output of NVRTC 12.9 to 13.5 for several.
#include <string.h>

#include "base/status_make.h"
#include "image/image_inside.h"
#include "kiln/image.h"
#include "kiln/status.h"

enum {
  LTOIR_HEAD_BYTES = 24,
  HEAD_SIZE_AT = 12,  // where the tags begin
  VERSION_AT = 6,     // of NVVM IR
  LINE_AT = 4,        // what identifies the release that made it
  LINE_BYTES = 6,
  TAG_BYTES = 4,
  TAG_ARCH = 0x01,         // ten times the number
  TAG_ACCELERATED = 0x20,  // 1: for one architecture; 2: for its family
  TAG_END = 0x63,
  MAX_TAGS = 64,

  BITCODE_WRAPPER_BYTES = 20,
  TEXT_HEAD_BYTES = 1 << 20,  // of NVVM IR's text that is looked at
};

static kiln_status_t read_tags(const kilni_image_part_t* part,
                               uint32_t* out_arch, char* out_suffix) {
  uint64_t at = kilni_image_u16(part->data + HEAD_SIZE_AT);
  for (int i = 0; i < MAX_TAGS; i++, at += TAG_BYTES) {
    if (!kilni_image_part_has(part, at, TAG_BYTES)) {
      return kilni_image_bad(part, part->size,
                             "the file ends within the head of its LTO-IR");
    }
    uint32_t tag = kilni_image_u16(part->data + at);
    uint32_t value = kilni_image_u16(part->data + at + 2);
    if (tag == TAG_END) return kiln_ok();
    if (tag == TAG_ARCH) *out_arch = value / 10;
    if (tag == TAG_ACCELERATED) *out_suffix = value == 2 ? 'f' : 'a';
  }
  return kiln_ok();
}

// What each release writes into bytes 4 to 9 of its LTO-IR: the versions of the
// container, of NVVM IR and of its debug information. Measured on NVRTC 12.0 to
// 13.5, all existing releases. thread-safe
typedef struct ltoir_line_t {
  uint32_t line;
  uint8_t bytes[6];
} ltoir_line_t;

static const ltoir_line_t kLtoirLines[] = {
    {12000, {0x01, 0x39, 0x02, 0x33, 0x03, 0x01}},
    {12010, {0x01, 0x39, 0x02, 0x35, 0x03, 0x01}},
    {12020, {0x01, 0x3b, 0x02, 0x3a, 0x03, 0x01}},
    {12030, {0x01, 0x3c, 0x02, 0x3f, 0x03, 0x01}},
    {12040, {0x01, 0x3d, 0x02, 0x47, 0x03, 0x01}},
    {12050, {0x01, 0x3d, 0x02, 0x53, 0x03, 0x01}},
    {12060, {0x01, 0x3e, 0x02, 0x54, 0x03, 0x01}},
    {12080, {0x01, 0x40, 0x02, 0x59, 0x03, 0x02}},
    {12090, {0x01, 0x40, 0x02, 0x5d, 0x03, 0x02}},
    {13000, {0x01, 0x41, 0x02, 0x62, 0x03, 0x02}},
    {13010, {0x01, 0x42, 0x02, 0x6b, 0x03, 0x02}},
    {13020, {0x01, 0x42, 0x02, 0x72, 0x03, 0x02}},
    {13030, {0x01, 0x43, 0x02, 0x73, 0x03, 0x02}},
    {13040, {0x01, 0x43, 0x02, 0x78, 0x03, 0x02}},
    {13050, {0x01, 0x43, 0x02, 0x83, 0x03, 0x02}},
};

uint32_t kilni_image_ltoir_line(const uint8_t* versions, size_t size) {
  for (size_t i = 0; i < sizeof(kLtoirLines) / sizeof(kLtoirLines[0]); i++) {
    if (memcmp(kLtoirLines[i].bytes, versions, size) == 0) {
      return kLtoirLines[i].line;
    }
  }
  return 0;
}

kiln_status_t kilni_image_check_ltoir(const kilni_image_part_t* part) {
  uint32_t arch = 0;
  char suffix = 0;
  if (part->size < LTOIR_HEAD_BYTES) {
    return kilni_image_bad(part, part->size,
                           "the file ends within the head of its LTO-IR");
  }
  return read_tags(part, &arch, &suffix);
}

kiln_status_t kilni_image_read_ltoir(kiln_image_t* image,
                                     const kilni_image_part_t* part,
                                     const kilni_image_about_t* about) {
  if (part->size < LTOIR_HEAD_BYTES) {
    return kilni_image_bad(part, part->size,
                           "the file ends within the head of its LTO-IR");
  }
  uint32_t arch = 0;
  char suffix = 0;
  KILNI_RETURN_IF_ERROR(read_tags(part, &arch, &suffix));
  kilni_image_about_t known = *about;
  if (arch != 0) {
    known.target = arch;
    known.suffix = suffix;
  }
  kiln_image_member_t* member = NULL;
  KILNI_RETURN_IF_ERROR(kilni_image_add_member(
      image, part, &known, KILN_CODE_FORMAT_LTOIR, &member));
  member->ir_version =
      part->data[VERSION_AT] * 1000u + part->data[VERSION_AT + 1];
  member->producer_line =
      kilni_image_ltoir_line(part->data + LINE_AT, LINE_BYTES);
  return kiln_ok();
}

// ---------------------------------------------------------------------------
// NVVM IR
// ---------------------------------------------------------------------------

// A wrapper gives the place of the bitcode.
static kiln_status_t check_bitcode(const kilni_image_part_t* part) {
  if (part->data[0] == 'B') return kiln_ok();
  if (part->size < BITCODE_WRAPPER_BYTES) {
    return kilni_image_bad(part, part->size,
                           "the file ends within the wrapper of its bitcode");
  }
  uint32_t at = kilni_image_u32(part->data + 8);
  uint32_t size = kilni_image_u32(part->data + 12);
  if (!kilni_image_part_has(part, at, size)) {
    return kilni_image_bad(part, 8, "bitcode of %u bytes at %u of %llu", size,
                           at, (unsigned long long)part->size);
  }
  return kiln_ok();
}

// After the first `word` of the text; NULL where it is missing.
static const char* ir_behind(const kilni_image_part_t* part, const char* word) {
  size_t size = strlen(word);
  const char* text = (const char*)part->data;
  const char* end = text + part->size;
  for (const char* at = text; (size_t)(end - at) > size; at++) {
    at = memchr(at, word[0], (size_t)(end - at) - size);
    if (at == NULL) return NULL;
    if (memcmp(at, word, size) == 0) return at + size;
  }
  return NULL;
}

// The decimal number at `*inout_at`, which moves past it.
static uint32_t ir_number_at(const char** inout_at, const char* end) {
  uint32_t value = 0;
  const char* at = *inout_at;
  while (at < end && *at >= '0' && *at <= '9' && value < 100000) {
    value = value * 10 + (uint32_t)(*at++ - '0');
  }
  *inout_at = at;
  return value;
}

// !nvvmir.version = !{!7}, and !7 = !{i32 2, i32 0, ...}.
static uint32_t text_version(const kilni_image_part_t* part) {
  const char* end = (const char*)part->data + part->size;
  const char* at = ir_behind(part, "!nvvmir.version = !{!");
  if (at == NULL) return 0;
  char row[32] = "\n!";
  size_t size = 2;
  while (at < end && *at >= '0' && *at <= '9' && size < 12) row[size++] = *at++;
  memcpy(row + size, " = !{i32 ", sizeof(" = !{i32 "));
  at = ir_behind(part, row);
  if (at == NULL) return 0;
  uint32_t major = ir_number_at(&at, end);
  static const char kNext[] = ", i32 ";
  if ((size_t)(end - at) < sizeof(kNext) ||
      memcmp(at, kNext, sizeof(kNext) - 1) != 0) {
    return 0;
  }
  at += sizeof(kNext) - 1;
  uint32_t minor = ir_number_at(&at, end);
  return major < 1000 && minor < 1000 ? major * 1000 + minor : 0;
}

static kiln_status_t text_triple(kiln_image_t* image,
                                 const kilni_image_part_t* part,
                                 kiln_image_member_t* member) {
  const char* at = ir_behind(part, "target triple = \"");
  if (at == NULL) return kiln_ok();
  size_t left = (size_t)((const char*)part->data + part->size - at);
  const char* end = memchr(at, '"', left < 256 ? left : 256);
  if (end == NULL) return kiln_ok();
  return kilni_image_text(image, at, (size_t)(end - at), &member->triple);
}

kiln_status_t kilni_image_read_nvvm(kiln_image_t* image,
                                    const kilni_image_part_t* part,
                                    const kilni_image_about_t* about) {
  bool text = part->data[0] != 'B' && part->data[0] != 0xde;
  if (!text) KILNI_RETURN_IF_ERROR(check_bitcode(part));
  kiln_image_member_t* member = NULL;
  KILNI_RETURN_IF_ERROR(kilni_image_add_member(image, part, about,
                                               KILN_CODE_FORMAT_NVVM, &member));
  if (!text) return kiln_ok();
  kilni_image_part_t head = *part;
  if (head.size > TEXT_HEAD_BYTES) head.size = TEXT_HEAD_BYTES;
  KILNI_RETURN_IF_ERROR(text_triple(image, &head, member));
  member->ir_version = text_version(part);
  return kiln_ok();
}
