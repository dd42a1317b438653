// SPDX-License-Identifier: Apache-2.0
//
// image: which format bytes begin like.
//
// Looks at the first bytes only. That the rest is whole is for the readers.
#include <string.h>

#include "image/image.h"

// ELF's own constants.
enum {
  ELF_TYPE_OFFSET = 16,
  ELF_MACHINE_OFFSET = 18,
  ELF_HEAD_BYTES = 20,
  ELF_TYPE_REL = 1,
  ELF_MACHINE_CUDA = 190,
};

static bool begins_with(kiln_bytes_view_t bytes, const void* magic,
                        size_t size) {
  return bytes.size >= size && memcmp(bytes.data, magic, size) == 0;
}

static uint32_t half_at(kiln_bytes_view_t bytes, size_t offset) {
  return bytes.data[offset] | (uint32_t)bytes.data[offset + 1] << 8;
}

// Code for a GPU, linked or not, or a host's object file. Programs and shared
// libraries of a host are not inputs of any CUDA tool.
static uint32_t elf_format(kiln_bytes_view_t bytes) {
  if (bytes.size < ELF_HEAD_BYTES) return KILN_CODE_FORMAT_UNKNOWN;
  bool relocatable = half_at(bytes, ELF_TYPE_OFFSET) == ELF_TYPE_REL;
  if (half_at(bytes, ELF_MACHINE_OFFSET) == ELF_MACHINE_CUDA) {
    return relocatable ? KILN_CODE_FORMAT_RELOCATABLE : KILN_CODE_FORMAT_CUBIN;
  }
  return relocatable ? KILN_CODE_FORMAT_OBJECT : KILN_CODE_FORMAT_UNKNOWN;
}

// A magic number and its meaning. thread-safe
typedef struct magic_t {
  uint8_t bytes[8];
  uint32_t size;
  uint32_t format;
} magic_t;

static uint32_t magic_format(kiln_bytes_view_t bytes) {
  static const magic_t kMagics[] = {
      {{0x50, 0xed, 0x55, 0xba}, 4, KILN_CODE_FORMAT_FATBIN},  // the file
      {{0xb1, 0x43, 0x62, 0x46}, 4, KILN_CODE_FORMAT_FATBIN},  // its wrapper
      {{0xed, 0x43, 0x4e, 0x7f}, 4, KILN_CODE_FORMAT_LTOIR},
      {"!<arch>\n", 8, KILN_CODE_FORMAT_LIBRARY},
      {{'B', 'C', 0xc0, 0xde}, 4, KILN_CODE_FORMAT_NVVM},
      {{0xde, 0xc0, 0x17, 0x0b}, 4, KILN_CODE_FORMAT_NVVM},  // its wrapper
  };
  if (begins_with(bytes, "\177ELF", 4)) return elf_format(bytes);
  for (size_t i = 0; i < sizeof(kMagics) / sizeof(kMagics[0]); i++) {
    if (begins_with(bytes, kMagics[i].bytes, kMagics[i].size)) {
      return kMagics[i].format;
    }
  }
  return KILN_CODE_FORMAT_UNKNOWN;
}

static bool code_format_is_blank(uint8_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// The rest of a text after blanks and PTX comments.
static kiln_bytes_view_t behind_comments(kiln_bytes_view_t text) {
  size_t i = 0;
  while (i < text.size) {
    const uint8_t* at = text.data + i;
    bool pair = i + 1 < text.size && at[0] == '/';
    if (code_format_is_blank(at[0])) {
      i++;
    } else if (pair && at[1] == '/') {
      while (i < text.size && text.data[i] != '\n') i++;
    } else if (pair && at[1] == '*') {
      i += 2;
      while (i + 1 < text.size &&
             !(text.data[i] == '*' && text.data[i + 1] == '/')) {
        i++;
      }
      i += 2;
    } else {
      break;
    }
  }
  if (i > text.size) i = text.size;
  return (kiln_bytes_view_t){text.data + i, text.size - i};
}

// The same for LLVM's comments.
static kiln_bytes_view_t behind_llvm_comments(kiln_bytes_view_t text) {
  size_t i = 0;
  while (i < text.size &&
         (code_format_is_blank(text.data[i]) || text.data[i] == ';')) {
    if (text.data[i] != ';') {
      i++;
      continue;
    }
    while (i < text.size && text.data[i] != '\n') i++;
  }
  return (kiln_bytes_view_t){text.data + i, text.size - i};
}

static bool is_nvvm_text(kiln_bytes_view_t bytes) {
  static const char* const kWords[] = {"target datalayout", "target triple",
                                       "source_filename"};
  kiln_bytes_view_t rest = behind_llvm_comments(bytes);
  for (size_t i = 0; i < sizeof(kWords) / sizeof(kWords[0]); i++) {
    if (begins_with(rest, kWords[i], strlen(kWords[i]))) return true;
  }
  return false;
}

uint32_t kiln_code_format_of(kiln_bytes_view_t bytes) {
  if (bytes.data == NULL) return KILN_CODE_FORMAT_UNKNOWN;
  uint32_t format = magic_format(bytes);
  if (format != KILN_CODE_FORMAT_UNKNOWN) return format;
  kiln_bytes_view_t rest = behind_comments(bytes);
  if (rest.size > 8 && begins_with(rest, ".version", 8)) {
    return KILN_CODE_FORMAT_PTX;
  }
  return is_nvvm_text(bytes) ? KILN_CODE_FORMAT_NVVM : KILN_CODE_FORMAT_UNKNOWN;
}

// A number of at most three digits; false if there is none.
static bool code_format_read_number(kiln_bytes_view_t* inout_rest,
                                    uint32_t* out_number) {
  kiln_bytes_view_t rest = *inout_rest;
  uint32_t number = 0;
  size_t digits = 0;
  while (digits < 3 && digits < rest.size && rest.data[digits] >= '0' &&
         rest.data[digits] <= '9') {
    number = number * 10 + (uint32_t)(rest.data[digits++] - '0');
  }
  *inout_rest = (kiln_bytes_view_t){rest.data + digits, rest.size - digits};
  *out_number = number;
  return digits > 0;
}

uint32_t kilni_image_ptx_isa(kiln_bytes_view_t bytes) {
  static const char kWord[] = ".version";
  if (bytes.data == NULL) return 0;
  kiln_bytes_view_t rest = behind_comments(bytes);
  size_t at = sizeof(kWord) - 1;
  if (rest.size <= at || !begins_with(rest, kWord, at) ||
      !code_format_is_blank(rest.data[at])) {
    return 0;
  }
  while (at < rest.size && code_format_is_blank(rest.data[at])) at++;
  rest = (kiln_bytes_view_t){rest.data + at, rest.size - at};
  uint32_t major = 0;
  uint32_t minor = 0;
  if (!code_format_read_number(&rest, &major) || rest.size == 0 ||
      rest.data[0] != '.') {
    return 0;
  }
  rest = (kiln_bytes_view_t){rest.data + 1, rest.size - 1};
  if (!code_format_read_number(&rest, &minor) || minor > 9) return 0;
  return major * 10 + minor;
}

const char* kiln_code_format_name(uint32_t format) {
  static const char* const kNames[] = {"unknown", "ptx",         "cubin",
                                       "fatbin",  "ltoir",       "object",
                                       "library", "relocatable", "nvvm"};
  return format < sizeof(kNames) / sizeof(kNames[0]) ? kNames[format]
                                                     : kNames[0];
}
