// SPDX-License-Identifier: Apache-2.0
//
// image: the fixed words of PTX and facts about them.
#include "base/str.h"
#include "image/ptx_reader.h"

#include <string.h>

typedef struct opcode_row_t {
  const char* text;
  uint8_t least;
  uint8_t most;
} opcode_row_t;

static const opcode_row_t kOpcodes[] = {
#define KILNI_PTX_OPCODE(name, text, least, most) {text, least, most},
#include "image/ptx_opcodes.inc"
#undef KILNI_PTX_OPCODE
};

static const char* const kModifiers[] = {
    "?",
#define KILNI_PTX_TYPE_TEXT(name, text, bits, class_) text,
    KILNI_PTX_TYPES(KILNI_PTX_TYPE_TEXT)
#undef KILNI_PTX_TYPE_TEXT
        "?",
#define KILNI_PTX_MODIFIER(name, text) text,
#include "image/ptx_modifiers.inc"
#undef KILNI_PTX_MODIFIER
};

typedef struct type_row_t {
  uint8_t bits;
  uint8_t class_;
} type_row_t;

static const type_row_t kTypes[] = {{0, 0},
#define KILNI_PTX_TYPE_ROW(name, text, bits, class_) \
  {bits, KILNI_PTX_CLASS_##class_},
                                    KILNI_PTX_TYPES(KILNI_PTX_TYPE_ROW)
#undef KILNI_PTX_TYPE_ROW
};

typedef struct sreg_row_t {
  const char* text;
  uint8_t components;
  uint8_t type;
} sreg_row_t;

static const sreg_row_t kSregs[] = {
#define KILNI_PTX_SREG_ROW(name, text, components, type) \
  {text, components, KILNI_PTX_TYPE_##type},
    KILNI_PTX_SREGS(KILNI_PTX_SREG_ROW)
#undef KILNI_PTX_SREG_ROW
};

const char* kilni_image_ptx_opcode_text(uint32_t opcode) {
  return opcode < KILNI_PTX_OPCODE_COUNT ? kOpcodes[opcode].text : "?";
}

const char* kilni_image_ptx_modifier_text(uint32_t modifier) {
  return modifier < KILNI_PTX_MODIFIER_COUNT ? kModifiers[modifier] : "?";
}

const char* kilni_image_ptx_sreg_text(uint32_t sreg) {
  return sreg < KILNI_PTX_SREG_COUNT ? kSregs[sreg].text : "?";
}

const char* kilni_image_ptx_space_text(uint32_t space) {
  static const char* const kSpaces[] = {"",      "reg",   "const",  "global",
                                        "local", "param", "shared", "tex"};
  return space <= KILNI_PTX_SPACE_TEX ? kSpaces[space] : "?";
}

uint32_t kilni_image_ptx_type_bits(uint32_t type) {
  return type < KILNI_PTX_MODIFIER_TYPES_END ? kTypes[type].bits : 0;
}

uint32_t kilni_image_ptx_type_bytes(uint32_t type) {
  return (kilni_image_ptx_type_bits(type) + 7) / 8;
}

kilni_image_ptx_class_t kilni_image_ptx_type_class(uint32_t type) {
  return type < KILNI_PTX_MODIFIER_TYPES_END
             ? (kilni_image_ptx_class_t)kTypes[type].class_
             : KILNI_PTX_CLASS_NONE;
}

uint32_t kilni_image_ptx_sreg_components(uint32_t sreg) {
  return sreg < KILNI_PTX_SREG_COUNT ? kSregs[sreg].components : 0;
}

uint32_t kilni_image_ptx_sreg_type(uint32_t sreg) {
  return sreg < KILNI_PTX_SREG_COUNT ? kSregs[sreg].type : 0;
}

uint32_t kilni_image_ptx_opcode_least(uint32_t opcode) {
  return kOpcodes[opcode].least;
}

uint32_t kilni_image_ptx_opcode_most(uint32_t opcode) {
  return kOpcodes[opcode].most;
}

// Both are asked once per distinct spelling, so a walk is enough; the number
// of spellings has a limit.
uint32_t kilni_image_ptx_opcode_find(kiln_string_view_t text) {
  for (uint32_t i = 0; i < KILNI_PTX_OPCODE_COUNT; i++) {
    if (kOpcodes[i].text[0] == text.data[0] &&
        kilni_base_sv_equal_cstr(text, kOpcodes[i].text)) {
      return i;
    }
  }
  return KILNI_PTX_NONE;
}

// Types are few; the others stand by their first letters, large or small.
uint32_t kilni_image_ptx_modifier_find(kiln_string_view_t text) {
  enum { SMALL = 0x20 };  // makes a letter small, and digits stay
  const char head = text.data[0];
  for (uint32_t i = 1; i < KILNI_PTX_MODIFIER_TYPES_END; i++) {
    if (kModifiers[i][0] == head &&
        kilni_base_sv_equal_cstr(text, kModifiers[i])) {
      return i;
    }
  }
  uint32_t first = KILNI_PTX_MODIFIER_TYPES_END + 1;
  uint32_t end = KILNI_PTX_MODIFIER_COUNT;
  while (first < end) {
    uint32_t middle = first + (end - first) / 2;
    if ((kModifiers[middle][0] | SMALL) < (head | SMALL)) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  for (uint32_t i = first; i < KILNI_PTX_MODIFIER_COUNT &&
                           (kModifiers[i][0] | SMALL) == (head | SMALL);
       i++) {
    if (kModifiers[i][0] == head &&
        kilni_base_sv_equal_cstr(text, kModifiers[i])) {
      return i;
    }
  }
  return KILNI_PTX_MOD_NONE;
}

uint32_t kilni_image_ptx_type_find(kiln_string_view_t text) {
  for (uint32_t i = 1; i < KILNI_PTX_MODIFIER_TYPES_END; i++) {
    if (kilni_base_sv_equal_cstr(text, kModifiers[i])) return i;
  }
  return KILNI_PTX_TYPE_NONE;
}

uint32_t kilni_image_ptx_space_find(kiln_string_view_t text) {
  for (uint32_t i = 1; i <= KILNI_PTX_SPACE_TEX; i++) {
    if (kilni_base_sv_equal_cstr(text, kilni_image_ptx_space_text(i))) return i;
  }
  return KILNI_PTX_SPACE_NONE;
}

// `text` without '%'. Numbered families give their number in `out_number`.
uint32_t kilni_image_ptx_sreg_find(kiln_string_view_t text,
                                   uint64_t* out_number) {
  static const struct {
    const char* prefix;
    const char* suffix;
    uint32_t sreg;
    uint32_t count;
  } kFamilies[] = {
      {"pm", "", KILNI_PTX_SREG_PM, 8},
      {"pm", "_64", KILNI_PTX_SREG_PM_64, 8},
      {"envreg", "", KILNI_PTX_SREG_ENVREG, 32},
      {"reserved_smem_offset_", "", KILNI_PTX_SREG_RESERVED_SMEM_OFFSET, 2},
  };
  *out_number = 0;
  for (size_t i = 0; i < sizeof(kFamilies) / sizeof(kFamilies[0]); i++) {
    if (!kilni_base_sv_starts_with(text, kFamilies[i].prefix)) continue;
    if (!kilni_base_sv_ends_with(text, kFamilies[i].suffix)) continue;
    size_t start = strlen(kFamilies[i].prefix);
    size_t end = text.size - strlen(kFamilies[i].suffix);
    if (end <= start || end - start > 2) continue;
    uint32_t number = 0;
    bool digits = true;
    for (size_t at = start; at < end; at++) {
      digits = digits && text.data[at] >= '0' && text.data[at] <= '9';
      number = number * 10 + (uint32_t)(text.data[at] - '0');
    }
    if (!digits || number >= kFamilies[i].count) continue;
    *out_number = number;
    return kFamilies[i].sreg;
  }
  for (uint32_t i = 0; i < KILNI_PTX_SREG_COUNT; i++) {
    if (i == KILNI_PTX_SREG_PM || i == KILNI_PTX_SREG_PM_64 ||
        i == KILNI_PTX_SREG_ENVREG ||
        i == KILNI_PTX_SREG_RESERVED_SMEM_OFFSET) {
      continue;
    }
    if (kilni_base_sv_equal_cstr(text, kSregs[i].text)) return i;
  }
  return KILNI_PTX_NONE;
}

kilni_image_ptx_limits_t kilni_image_ptx_limits_default(void) {
  kilni_image_ptx_limits_t limits = {
#define KILNI_PTX_LIMIT_VALUE(name, value, text) .name = value,
      KILNI_PTX_LIMITS(KILNI_PTX_LIMIT_VALUE)
#undef KILNI_PTX_LIMIT_VALUE
  };
  return limits;
}
