// SPDX-License-Identifier: Apache-2.0
//
// image: which rule the operands of a spelling follow (ptx_rules.inc).
//
// Found once for each distinct spelling; ptx_types.c then checks every
// instruction of that spelling against it.
#include "image/ptx_reader.h"

#include <string.h>

// Sets of types and of spaces.
#define T(name)        (UINT64_C(1) << KILNI_PTX_TYPE_##name)
#define S(name)        (1u << KILNI_PTX_SPACE_##name)
#define SIGNEDS        (T(S16) | T(S32) | T(S64))
#define INTEGERS       (T(U16) | T(U32) | T(U64) | SIGNEDS)
#define INTEGERS_16_32 (T(U16) | T(U32) | T(S16) | T(S32))
#define INTEGERS_32_64 (T(U32) | T(U64) | T(S32) | T(S64))
#define BITS           (T(B16) | T(B32) | T(B64))
#define FLOATS         (T(F32) | T(F64))
#define MEMORY         (INTEGERS | BITS | FLOATS | T(U8) | T(S8) | T(B8))
// Half, packed and small formats come with almost every version of PTX; no
// row lists them, and none is refused.
#define LISTED    (MEMORY | T(B128) | T(PRED))
#define ANY       0xffu
#define FAR       (S(NONE) | S(GLOBAL))
#define SHAREABLE (FAR | S(SHARED))
#define WRITABLE  (SHAREABLE | S(LOCAL) | S(PARAM))

typedef struct row_t {
  uint64_t types;  // none: whatever they are
  const char* shapes;
  uint16_t opcode;
  uint16_t modifier;
  uint32_t spaces;
} row_t;

static const row_t kRows[] = {
#define KILNI_PTX_RULE(opcode, modifier, types, spaces, shapes) \
  {types, shapes, KILNI_PTX_OP_##opcode, KILNI_PTX_MOD_##modifier, spaces},
#include "image/ptx_rules.inc"
#undef KILNI_PTX_RULE
};

static bool ptx_rules_has(const uint16_t* modifiers, uint32_t count,
                          uint32_t wanted) {
  for (uint32_t i = 0; i < count; i++) {
    if (modifiers[i] == wanted) return true;
  }
  return false;
}

static const row_t* ptx_rules_find_row(uint32_t opcode,
                                       const uint16_t* modifiers,
                                       uint32_t count) {
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    if (kRows[i].opcode == opcode &&
        (kRows[i].modifier == KILNI_PTX_MOD_NONE ||
         ptx_rules_has(modifiers, count, kRows[i].modifier))) {
      return &kRows[i];
    }
  }
  return NULL;
}

static uint32_t ptx_rules_space_of(uint32_t modifier) {
  switch (modifier) {
    case KILNI_PTX_MOD_GLOBAL:
      return KILNI_PTX_SPACE_GLOBAL;
    case KILNI_PTX_MOD_SHARED:
    case KILNI_PTX_MOD_SHARED_CTA:
    case KILNI_PTX_MOD_SHARED_CLUSTER:
      return KILNI_PTX_SPACE_SHARED;
    case KILNI_PTX_MOD_LOCAL:
      return KILNI_PTX_SPACE_LOCAL;
    case KILNI_PTX_MOD_CONST:
      return KILNI_PTX_SPACE_CONST;
    case KILNI_PTX_MOD_PARAM:
    case KILNI_PTX_MOD_PARAM_ENTRY:
    case KILNI_PTX_MOD_PARAM_FUNC:
      return KILNI_PTX_SPACE_PARAM;
    default:
      return KILNI_PTX_SPACE_NONE;
  }
}

static uint32_t vector_of(uint32_t modifier) {
  switch (modifier) {
    case KILNI_PTX_MOD_V2:
      return 2;
    case KILNI_PTX_MOD_V4:
      return 4;
    case KILNI_PTX_MOD_V8:
      return 8;
    default:
      return 1;
  }
}

// The half, packed and small formats that came after the rule by which a
// register may be wider.
static bool is_exact(uint32_t type) {
  if (!kilni_image_ptx_modifier_is_type(type)) return false;
  switch (kilni_image_ptx_type_class(type)) {
    case KILNI_PTX_CLASS_PACKED:
      return type != KILNI_PTX_TYPE_F16X2;
    case KILNI_PTX_CLASS_FLOAT:
      return type != KILNI_PTX_TYPE_F16 && type != KILNI_PTX_TYPE_F32 &&
             type != KILNI_PTX_TYPE_F64;
    default:
      return false;
  }
}

// The number of types that a spelling under this rule is written with.
static uint32_t types_needed(const char* shapes) {
  if (strpbrk(shapes, "sSR") != NULL) return 2;
  return strpbrk(shapes, "defgDtvVkjAwW") != NULL ? 1 : 0;
}

static bool ptx_rules_check_row(kilni_image_ptx_reader_t* reader,
                                const kilni_image_ptx_token_t* at,
                                const row_t* row,
                                const kilni_image_ptx_rule_t* rule) {
  uint64_t type = UINT64_C(1) << rule->types[0];
  if (row->types != 0 && (type & LISTED & ~row->types) != 0) {
    return kilni_image_ptx_fail(reader, at, "use a type that it works on",
                                "\"%s\" does not work on .%s",
                                kilni_image_ptx_opcode_text(row->opcode),
                                kilni_image_ptx_modifier_text(rule->types[0]));
  }
  if ((row->spaces >> rule->space & 1) == 0) {
    return kilni_image_ptx_fail(reader, at, "use a space that it works on",
                                "\"%s\" does not work on .%s",
                                kilni_image_ptx_opcode_text(row->opcode),
                                kilni_image_ptx_space_text(rule->space));
  }
  return true;
}

bool kilni_image_ptx_rule_find(kilni_image_ptx_reader_t* reader,
                               const kilni_image_ptx_token_t* at,
                               uint32_t opcode, const uint16_t* modifiers,
                               uint32_t count,
                               kilni_image_ptx_rule_t* out_rule) {
  memset(out_rule, 0, sizeof(*out_rule));
  out_rule->vector = 1;
  const row_t* row = ptx_rules_find_row(opcode, modifiers, count);
  if (row == NULL || row->shapes[0] == '\0') return true;
  uint32_t types = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (kilni_image_ptx_modifier_is_type(modifiers[i]) && types < 2) {
      out_rule->types[types++] = (uint8_t)modifiers[i];
    }
    if (is_exact(modifiers[i])) out_rule->exact = 1;
    uint32_t vector = vector_of(modifiers[i]);
    if (vector > 1) out_rule->vector = (uint8_t)vector;
    uint32_t space = ptx_rules_space_of(modifiers[i]);
    if (space != KILNI_PTX_SPACE_NONE) out_rule->space = (uint8_t)space;
    if (modifiers[i] == KILNI_PTX_MOD_L2_CACHE_HINT) out_rule->hint = 1;
  }
  // A second type where one is enough is arithmetic of mixed precision, whose
  // operands determine which of the two they are.
  uint32_t needed = types_needed(row->shapes);
  if (types < needed || (needed == 1 && types > 1)) return true;
  out_rule->shapes = row->shapes;
  return ptx_rules_check_row(reader, at, row, out_rule);
}
