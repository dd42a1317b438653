// SPDX-License-Identifier: Apache-2.0
//
// image: whether the operands of an instruction are what its rule wants.
//
// The rules are those of the PTX ISA's section on operand types, as ptxas has
// them: the sizes are equal, or the register is the wider one in loads, stores
// and conversions; a `.b` type goes with any class, signed with unsigned, and
// an integer never with a float. Addresses are ptx_address.c's.
#include "image/ptx_reader.h"

#include <stdio.h>

// The functions themselves, not their declarations for an analyzer.
#undef kilni_image_ptx_fail_operand

// What a role is about.
enum {
  ABOUT_NOTHING = 0,
  ABOUT_FIRST,   // a value of the spelling's first type
  ABOUT_SECOND,  //
  ABOUT_WIDE,    // an integer of twice the size of the first type
  ABOUT_U32,     // an integer of 32 bits, whatever the spelling
  ABOUT_B32,
  ABOUT_U64,
  ABOUT_PREDICATE,
  ABOUT_POINTER,  // an integer of 32 or 64 bits
  ABOUT_TABLE,    // the constant of lop3
  ABOUT_BARRIER,  // the number of a barrier
  ABOUT_THREADS,  // whole warps
  ABOUT_ADDRESS,
  ABOUT_WRITTEN  // an address that is not a parameter of this function
};

// What else is accepted there besides a register of the type.
enum {
  TAKES_NUMBER = 1,     // so it is a source
  TAKES_WIDER = 2,      // a wider register
  TAKES_SINK = 4,       // `_`
  TAKES_PAIR = 8,       // `d|p`, p a predicate
  TAKES_SPECIAL = 16,   // %tid.x
  TAKES_SYMBOL = 32,    // the address of a variable or a function
  TAKES_VECTOR = 64,    // `{a, b}`, exactly if the spelling has `.v2`
  TAKES_IN_SPACE = 128  // a symbol only of the spelling's space
};

typedef struct role_t {
  uint8_t about;
  uint8_t takes;
} role_t;

// The letters of ptx_rules.inc. In capitals are mostly the destinations and
// the relaxed ones.
static const role_t kRoles[128] = {
    ['d'] = {ABOUT_FIRST, 0},
    ['e'] = {ABOUT_FIRST, TAKES_SINK | TAKES_VECTOR},
    ['f'] = {ABOUT_FIRST, TAKES_PAIR},
    ['g'] = {ABOUT_FIRST, TAKES_VECTOR},
    ['D'] = {ABOUT_FIRST, TAKES_WIDER | TAKES_VECTOR},
    ['t'] = {ABOUT_FIRST, TAKES_NUMBER},
    ['v'] = {ABOUT_FIRST, TAKES_NUMBER | TAKES_VECTOR},
    ['V'] = {ABOUT_FIRST, TAKES_NUMBER | TAKES_VECTOR | TAKES_WIDER},
    ['j'] = {ABOUT_FIRST, TAKES_NUMBER | TAKES_SYMBOL},
    ['k'] = {ABOUT_FIRST,
             TAKES_NUMBER | TAKES_VECTOR | TAKES_SPECIAL | TAKES_SYMBOL},
    ['A'] = {ABOUT_FIRST, TAKES_NUMBER | TAKES_SYMBOL | TAKES_IN_SPACE},
    ['s'] = {ABOUT_SECOND, TAKES_NUMBER},
    ['S'] = {ABOUT_SECOND, TAKES_NUMBER | TAKES_WIDER | TAKES_SPECIAL},
    ['R'] = {ABOUT_SECOND, TAKES_NUMBER | TAKES_WIDER},
    ['L'] = {ABOUT_U32, TAKES_WIDER},
    ['l'] = {ABOUT_B32, TAKES_NUMBER | TAKES_WIDER},
    ['w'] = {ABOUT_WIDE, 0},
    ['W'] = {ABOUT_WIDE, TAKES_NUMBER},
    ['m'] = {ABOUT_U32, TAKES_NUMBER},
    ['M'] = {ABOUT_U32, 0},
    ['N'] = {ABOUT_U32, TAKES_PAIR},
    ['h'] = {ABOUT_U64, TAKES_NUMBER},
    ['p'] = {ABOUT_PREDICATE, TAKES_NUMBER},
    ['P'] = {ABOUT_PREDICATE, TAKES_PAIR},
    ['o'] = {ABOUT_POINTER, TAKES_NUMBER},
    ['i'] = {ABOUT_TABLE, TAKES_NUMBER},
    ['b'] = {ABOUT_BARRIER, TAKES_NUMBER},
    ['c'] = {ABOUT_THREADS, TAKES_NUMBER},
    ['a'] = {ABOUT_ADDRESS, 0},
    ['z'] = {ABOUT_WRITTEN, 0},
    ['-'] = {ABOUT_NOTHING, 0},
};

// ---------------------------------------------------------------------------
// Errors
// ---------------------------------------------------------------------------

static const char kConvert[] =
    "use an operand of that type, or convert it with cvt or mov.b";

static const char* found_text(const kilni_image_ptx_judge_t* judge,
                              const kilni_image_ptx_operand_t* operand,
                              size_t size, char* buffer) {
  switch (operand->kind) {
    case KILNI_PTX_OPERAND_REGISTER: {
      const kilni_image_ptx_register_t* reg =
          kilni_image_ptx_register(judge->reader, operand);
      bool is_whole = operand->component == KILNI_PTX_WHOLE;
      snprintf(buffer, size, "%s.%s",
               reg->vector > 1 && is_whole ? "a vector of " : "",
               kilni_image_ptx_modifier_text(reg->type));
      return buffer;
    }
    case KILNI_PTX_OPERAND_SPECIAL:
      snprintf(buffer, size, "%%%s", kilni_image_ptx_sreg_text(operand->index));
      return buffer;
    case KILNI_PTX_OPERAND_IMMEDIATE:
      return operand->immediate <= KILNI_PTX_IMMEDIATE_U64 ? "an integer"
                                                           : "a decimal number";
    case KILNI_PTX_OPERAND_VARIABLE:
    case KILNI_PTX_OPERAND_FUNCTION:
      return "a symbol";
    case KILNI_PTX_OPERAND_ADDRESS:
      return "an address";
    case KILNI_PTX_OPERAND_VECTOR:
      return "a vector";
    case KILNI_PTX_OPERAND_PAIR:
      return "a pair";
    case KILNI_PTX_OPERAND_SINK:
      return "\"_\"";
    default:
      return "something else";
  }
}

bool kilni_image_ptx_fail_operand(const kilni_image_ptx_judge_t* judge,
                                  uint32_t index, const char* fix,
                                  const char* wanted, const char* found) {
  kilni_image_ptx_token_t at = {.line = judge->places[index].line,
                                .column = judge->places[index].column,
                                .start = judge->places[index].start};
  return kilni_image_ptx_fail(
      judge->reader, &at, fix, "operand %u of \"%s\" must be %s, and is %s",
      index + 1, kilni_image_ptx_opcode_text(judge->opcode), wanted, found);
}

static bool ptx_types_fail_type(const kilni_image_ptx_judge_t* judge,
                                uint32_t index,
                                const kilni_image_ptx_operand_t* operand,
                                uint32_t want, bool wider) {
  char wanted[64];
  char found[64];
  snprintf(wanted, sizeof(wanted), "of type .%s%s",
           kilni_image_ptx_modifier_text(want), wider ? " or wider" : "");
  return kilni_image_ptx_fail_operand(
      judge, index, kConvert, wanted,
      found_text(judge, operand, sizeof(found), found));
}

static bool fail_kind(const kilni_image_ptx_judge_t* judge, uint32_t index,
                      const char* wanted) {
  char found[64];
  return kilni_image_ptx_fail_operand(
      judge, index, "write such an operand, or move it into a register first",
      wanted, found_text(judge, &judge->operands[index], sizeof(found), found));
}

// ---------------------------------------------------------------------------
// Types
// ---------------------------------------------------------------------------

const kilni_image_ptx_register_t* kilni_image_ptx_register(
    const kilni_image_ptx_reader_t* reader,
    const kilni_image_ptx_operand_t* operand) {
  return KILNI_PTX_AT(reader->arena->registers, kilni_image_ptx_register_t,
                      reader->first_register + operand->index);
}

static bool ptx_types_is_integer(uint32_t type) {
  kilni_image_ptx_class_t class_ = kilni_image_ptx_type_class(type);
  return class_ == KILNI_PTX_CLASS_UNSIGNED || class_ == KILNI_PTX_CLASS_SIGNED;
}

static bool is_bits(uint32_t type) {
  return kilni_image_ptx_type_class(type) == KILNI_PTX_CLASS_BITS;
}

static bool is_predicate(uint32_t type) {
  return type == KILNI_PTX_TYPE_PRED;
}

static bool class_fits(uint32_t have, uint32_t want) {
  if (is_predicate(have) || is_predicate(want)) return have == want;
  if (is_bits(have) || is_bits(want)) return true;
  // A pair of halves has always passed for a word.
  if (ptx_types_is_integer(want)) {
    return ptx_types_is_integer(have) || have == KILNI_PTX_TYPE_F16X2;
  }
  return have == want;
}

// True if a register of type `have` is accepted for `want`.
static bool type_fits(uint32_t have, uint32_t want, bool wider) {
  uint32_t bits = kilni_image_ptx_type_bits(have);
  uint32_t wanted = kilni_image_ptx_type_bits(want);
  return (bits == wanted || (wider && bits > wanted)) && class_fits(have, want);
}

static bool number_fits(const kilni_image_ptx_operand_t* operand,
                        uint32_t want) {
  bool is_f32 = operand->immediate == KILNI_PTX_IMMEDIATE_F32;
  bool is_f64 = operand->immediate == KILNI_PTX_IMMEDIATE_F64;
  switch (want) {
    case KILNI_PTX_TYPE_F32:
    case KILNI_PTX_TYPE_F64:
      return is_f32 || is_f64;
    case KILNI_PTX_TYPE_B32:
    case KILNI_PTX_TYPE_TF32:
      return !is_f64;
    case KILNI_PTX_TYPE_B64:
      return !is_f32;
    default:
      // Halves and packed numbers have no literals.
      return !is_f32 && !is_f64 &&
             (ptx_types_is_integer(want) || is_bits(want) ||
              is_predicate(want));
  }
}

// The 16 bits that these once had are still read.
static bool was_short(uint32_t sreg) {
  return sreg == KILNI_PTX_SREG_TID || sreg == KILNI_PTX_SREG_NTID ||
         sreg == KILNI_PTX_SREG_CTAID || sreg == KILNI_PTX_SREG_NCTAID ||
         sreg == KILNI_PTX_SREG_GRIDID;
}

static bool special_fits(const kilni_image_ptx_judge_t* judge,
                         const kilni_image_ptx_operand_t* operand,
                         uint32_t want, bool wider) {
  uint32_t have = kilni_image_ptx_sreg_type(operand->index);
  // A conversion reads one only where both its types are integers.
  if (kilni_image_ptx_type_class(judge->rule->types[0]) ==
      KILNI_PTX_CLASS_FLOAT) {
    return false;
  }
  if (kilni_image_ptx_sreg_components(operand->index) > 1 &&
      operand->component == KILNI_PTX_WHOLE) {
    return false;
  }
  if (is_predicate(have) || is_predicate(want)) return have == want;
  if (!ptx_types_is_integer(want) && !is_bits(want)) return false;
  uint32_t bits = kilni_image_ptx_type_bits(want);
  if (was_short(operand->index)) {
    return (wider || bits >= 16) && bits <= kilni_image_ptx_type_bits(have);
  }
  return kilni_image_ptx_type_bits(have) == bits ||
         (wider && kilni_image_ptx_type_bits(have) > bits);
}

static bool may_be_wider(const kilni_image_ptx_judge_t* judge, role_t role) {
  return (role.takes & TAKES_WIDER) != 0 && judge->rule->exact == 0;
}

static uint32_t wanted_type(const kilni_image_ptx_judge_t* judge,
                            uint32_t about) {
  const uint8_t* types = judge->rule->types;
  switch (about) {
    case ABOUT_FIRST:
      return types[0];
    case ABOUT_SECOND:
      return types[1];
    case ABOUT_B32:
      return KILNI_PTX_TYPE_B32;
    case ABOUT_WIDE:
      return kilni_image_ptx_type_bits(types[0]) == 16 ? KILNI_PTX_TYPE_U32
                                                       : KILNI_PTX_TYPE_U64;
    case ABOUT_U64:
      return KILNI_PTX_TYPE_U64;
    case ABOUT_PREDICATE:
      return KILNI_PTX_TYPE_PRED;
    default:
      return KILNI_PTX_TYPE_U32;
  }
}

// ---------------------------------------------------------------------------
// Vectors
// ---------------------------------------------------------------------------

static const kilni_image_ptx_operand_t* children_of(
    const kilni_image_ptx_judge_t* judge,
    const kilni_image_ptx_operand_t* operand) {
  return KILNI_PTX_AT(judge->reader->arena->operands, kilni_image_ptx_operand_t,
                      operand->first);
}

// Elements between braces, or those of a vector register; 0 for a scalar.
static uint32_t vector_length(const kilni_image_ptx_judge_t* judge,
                              const kilni_image_ptx_operand_t* operand) {
  if (operand->kind == KILNI_PTX_OPERAND_VECTOR) return operand->count;
  if (operand->component != KILNI_PTX_WHOLE) return 0;
  if (operand->kind == KILNI_PTX_OPERAND_SPECIAL) {
    uint32_t components = kilni_image_ptx_sreg_components(operand->index);
    return components > 1 ? components : 0;
  }
  if (operand->kind != KILNI_PTX_OPERAND_REGISTER) return 0;
  uint32_t length = kilni_image_ptx_register(judge->reader, operand)->vector;
  return length > 1 ? length : 0;
}

// The type that all elements have; one of class `.b` matches all of its size,
// as it does beside a scalar. NONE if they do not agree or if there is no
// register among them (then `*out_open` is true).
static uint32_t element_type(const kilni_image_ptx_judge_t* judge,
                             const kilni_image_ptx_operand_t* vector,
                             bool* out_open) {
  uint32_t type = KILNI_PTX_TYPE_NONE;
  *out_open = true;
  if (vector->kind != KILNI_PTX_OPERAND_VECTOR) {
    *out_open = false;
    return vector->kind == KILNI_PTX_OPERAND_SPECIAL
               ? kilni_image_ptx_sreg_type(vector->index)
               : kilni_image_ptx_register(judge->reader, vector)->type;
  }
  const kilni_image_ptx_operand_t* children = children_of(judge, vector);
  for (uint32_t i = 0; i < vector->count; i++) {
    if (children[i].kind != KILNI_PTX_OPERAND_REGISTER) continue;
    uint32_t have = kilni_image_ptx_register(judge->reader, &children[i])->type;
    *out_open = false;
    if (type == KILNI_PTX_TYPE_NONE) type = have;
    if (!type_fits(have, type, false)) return KILNI_PTX_TYPE_NONE;
    if (is_bits(have)) type = have;
  }
  return type;
}

// Elements that are not registers.
static bool check_other_elements(const kilni_image_ptx_judge_t* judge,
                                 uint32_t index, role_t role, uint32_t want) {
  const kilni_image_ptx_operand_t* vector = &judge->operands[index];
  if (vector->kind != KILNI_PTX_OPERAND_VECTOR) return true;
  const kilni_image_ptx_operand_t* children = children_of(judge, vector);
  bool is_source = (role.takes & TAKES_NUMBER) != 0;
  for (uint32_t i = 0; i < vector->count; i++) {
    bool fits = true;
    switch (children[i].kind) {
      case KILNI_PTX_OPERAND_REGISTER:
      case KILNI_PTX_OPERAND_SPECIAL:
        break;
      case KILNI_PTX_OPERAND_IMMEDIATE:
        fits = is_source && number_fits(&children[i], want);
        break;
      case KILNI_PTX_OPERAND_SINK:
        fits = !is_source;
        break;
      default:
        fits = false;
    }
    if (!fits) {
      return ptx_types_fail_type(judge, index, &children[i], want, false);
    }
  }
  return true;
}

static bool ptx_types_check_elements(const kilni_image_ptx_judge_t* judge,
                                     uint32_t index, role_t role,
                                     uint32_t want) {
  const kilni_image_ptx_operand_t* vector = &judge->operands[index];
  char wanted[64];
  char found[64];
  uint32_t length = vector_length(judge, vector);
  if (length != judge->rule->vector) {
    snprintf(wanted, sizeof(wanted), "a vector of %u",
             (unsigned)judge->rule->vector);
    snprintf(found, sizeof(found), "one of %u", (unsigned)length);
    return kilni_image_ptx_fail_operand(
        judge, index, "write as many elements as the instruction takes", wanted,
        found);
  }
  bool open;
  uint32_t have = element_type(judge, vector, &open);
  if (have == KILNI_PTX_TYPE_NONE) {
    if (open && (role.takes & TAKES_NUMBER) != 0) {
      return check_other_elements(judge, index, role, want);
    }
    return kilni_image_ptx_fail_operand(
        judge, index, "use registers of one type",
        "a vector of registers of one type",
        open ? "without a register" : "a mixed one");
  }
  // ptxas takes integers in a vector of floats, and compilers write them.
  bool fits =
      type_fits(have, want, may_be_wider(judge, role)) ||
      (kilni_image_ptx_type_class(want) == KILNI_PTX_CLASS_FLOAT &&
       ptx_types_is_integer(have) &&
       kilni_image_ptx_type_bits(have) == kilni_image_ptx_type_bits(want));
  if (fits) return check_other_elements(judge, index, role, want);
  snprintf(wanted, sizeof(wanted), "a vector of .%s",
           kilni_image_ptx_modifier_text(want));
  snprintf(found, sizeof(found), "one of .%s",
           kilni_image_ptx_modifier_text(have));
  return kilni_image_ptx_fail_operand(judge, index, kConvert, wanted, found);
}

// mov.b64 d, {a, b} and mov.b64 {a, b}, d: the parts make up the whole.
static bool check_pack(const kilni_image_ptx_judge_t* judge) {
  uint32_t side = vector_length(judge, &judge->operands[0]) > 0 ? 0 : 1;
  const kilni_image_ptx_operand_t* vector = &judge->operands[side];
  const kilni_image_ptx_operand_t* whole = &judge->operands[1 - side];
  uint32_t want = judge->rule->types[0];
  if (!is_bits(want)) return fail_kind(judge, side, "a scalar");
  if (vector_length(judge, whole) > 0) {
    return fail_kind(judge, 1 - side, "a scalar beside a vector");
  }
  bool open;
  uint32_t have = element_type(judge, vector, &open);
  uint32_t bits =
      kilni_image_ptx_type_bits(have) * vector_length(judge, vector);
  bool fits = (open && side == 1) ||
              (have != KILNI_PTX_TYPE_NONE && !is_predicate(have) &&
               bits == kilni_image_ptx_type_bits(want));
  if (fits) return true;
  char wanted[64];
  snprintf(wanted, sizeof(wanted), "parts of one type that make up .%s",
           kilni_image_ptx_modifier_text(want));
  return kilni_image_ptx_fail_operand(
      judge, side,
      "split into equal parts, or use the type that "
      "they make up",
      wanted, "a vector of others");
}

// ---------------------------------------------------------------------------
// Operands
// ---------------------------------------------------------------------------

static bool ptx_types_check_symbol(const kilni_image_ptx_judge_t* judge,
                                   uint32_t index, role_t role, uint32_t want) {
  const kilni_image_ptx_operand_t* operand = &judge->operands[index];
  if ((role.takes & TAKES_SYMBOL) == 0) {
    return fail_kind(judge, index, "a value");
  }
  if (!ptx_types_is_integer(want) && !is_bits(want)) {
    return ptx_types_fail_type(judge, index, operand, want, false);
  }
  if (operand->kind != KILNI_PTX_OPERAND_VARIABLE) return true;
  uint32_t space = kilni_image_ptx_variable(judge->reader, operand)->space;
  if ((role.takes & TAKES_IN_SPACE) != 0 && space != judge->rule->space) {
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "a variable in .%s",
             kilni_image_ptx_space_text(judge->rule->space));
    return kilni_image_ptx_fail_operand(judge, index,
                                        "name the variable's own space", wanted,
                                        "one in another space");
  }
  if (space == KILNI_PTX_SPACE_GLOBAL &&
      kilni_image_ptx_type_bits(want) == 32) {
    return kilni_image_ptx_fail_operand(judge, index,
                                        "use .u64 and a 64-bit register",
                                        "of 32 bits", "an address of 64 bits");
  }
  return true;
}

static bool ptx_types_check_pair(const kilni_image_ptx_judge_t* judge,
                                 uint32_t index, uint32_t want) {
  const kilni_image_ptx_operand_t* operand = &judge->operands[index];
  const kilni_image_ptx_operand_t* children = children_of(judge, operand);
  const uint32_t types[2] = {want, KILNI_PTX_TYPE_PRED};
  for (uint32_t i = 0; i < 2; i++) {
    if (children[i].kind != KILNI_PTX_OPERAND_REGISTER) continue;
    uint32_t have = kilni_image_ptx_register(judge->reader, &children[i])->type;
    if (!type_fits(have, types[i], false)) {
      return ptx_types_fail_type(judge, index, &children[i], types[i], false);
    }
  }
  return true;
}

static bool check_register(const kilni_image_ptx_judge_t* judge, uint32_t index,
                           role_t role, uint32_t want) {
  const kilni_image_ptx_operand_t* operand = &judge->operands[index];
  const kilni_image_ptx_register_t* reg =
      kilni_image_ptx_register(judge->reader, operand);
  bool wider = may_be_wider(judge, role);
  bool is_scalar = reg->vector == 1 || operand->component != KILNI_PTX_WHOLE;
  // The part of a register that a video instruction takes fits by itself.
  if (operand->selector != KILNI_PTX_SELECT_NONE) return true;
  if (is_scalar && type_fits(reg->type, want, wider)) return true;
  return ptx_types_fail_type(judge, index, operand, want, wider);
}

static bool ptx_types_check_value(const kilni_image_ptx_judge_t* judge,
                                  uint32_t index, role_t role, uint32_t want) {
  const kilni_image_ptx_operand_t* operand = &judge->operands[index];
  bool wider = may_be_wider(judge, role);
  switch (operand->kind) {
    case KILNI_PTX_OPERAND_REGISTER:
      return check_register(judge, index, role, want);
    case KILNI_PTX_OPERAND_IMMEDIATE:
      if ((role.takes & TAKES_NUMBER) == 0) {
        return fail_kind(judge, index, "a register");
      }
      return number_fits(operand, want) ||
             ptx_types_fail_type(judge, index, operand, want, false);
    case KILNI_PTX_OPERAND_SPECIAL:
      if ((role.takes & TAKES_SPECIAL) == 0) {
        return fail_kind(judge, index, "a register or a number");
      }
      return special_fits(judge, operand, want, wider) ||
             ptx_types_fail_type(judge, index, operand, want, wider);
    case KILNI_PTX_OPERAND_VARIABLE:
    case KILNI_PTX_OPERAND_FUNCTION:
      return ptx_types_check_symbol(judge, index, role, want);
    case KILNI_PTX_OPERAND_SINK:
      return (role.takes & TAKES_SINK) != 0 ||
             fail_kind(judge, index, "a register");
    case KILNI_PTX_OPERAND_PAIR:
      if ((role.takes & TAKES_PAIR) != 0) {
        return ptx_types_check_pair(judge, index, want);
      }
      return fail_kind(judge, index, "a single register");
    default:
      return fail_kind(judge, index, "a value");
  }
}

static bool ptx_types_check_typed(const kilni_image_ptx_judge_t* judge,
                                  uint32_t index, role_t role) {
  const kilni_image_ptx_operand_t* operand = &judge->operands[index];
  uint32_t want = wanted_type(judge, role.about);
  // Nearly always: a scalar of just the type.
  if (operand->kind == KILNI_PTX_OPERAND_REGISTER && judge->rule->vector == 1) {
    const kilni_image_ptx_register_t* reg =
        kilni_image_ptx_register(judge->reader, operand);
    if (reg->type == want && reg->vector == 1) return true;
  }
  uint32_t length = vector_length(judge, operand);
  if ((role.takes & TAKES_VECTOR) != 0) {
    // `{a}` is a scalar to ptxas.
    if (judge->rule->vector > 1 || length == 1) {
      return ptx_types_check_elements(judge, index, role, want);
    }
  }
  return ptx_types_check_value(judge, index, role, want);
}

static bool check_pointer(const kilni_image_ptx_judge_t* judge, uint32_t index,
                          role_t role) {
  const kilni_image_ptx_operand_t* operand = &judge->operands[index];
  bool is_wide =
      operand->kind == KILNI_PTX_OPERAND_REGISTER &&
      kilni_image_ptx_type_bits(
          kilni_image_ptx_register(judge->reader, operand)->type) > 32;
  return ptx_types_check_value(
      judge, index, role, is_wide ? KILNI_PTX_TYPE_U64 : KILNI_PTX_TYPE_U32);
}

static bool check_barrier(const kilni_image_ptx_judge_t* judge, uint32_t index,
                          role_t role) {
  const kilni_image_ptx_operand_t* operand = &judge->operands[index];
  if (operand->kind != KILNI_PTX_OPERAND_IMMEDIATE) {
    return ptx_types_check_value(judge, index, role, KILNI_PTX_TYPE_U32);
  }
  bool is_number = role.about == ABOUT_BARRIER;
  bool is_integer_ = operand->immediate <= KILNI_PTX_IMMEDIATE_U64;
  bool fits = is_number ? operand->value < 16 : operand->value % 32 == 0;
  if (is_integer_ && fits) return true;
  return kilni_image_ptx_fail_operand(
      judge, index,
      is_number ? "use one of the 16 barriers" : "let whole warps take part",
      is_number ? "a number from 0 to 15" : "a multiple of 32", "another");
}

static bool ptx_types_check_operand(const kilni_image_ptx_judge_t* judge,
                                    uint32_t index, char letter) {
  role_t role = kRoles[letter & 127];
  switch (role.about) {
    case ABOUT_NOTHING:
      return true;
    case ABOUT_ADDRESS:
      return kilni_image_ptx_check_address(judge, index, false);
    case ABOUT_WRITTEN:
      return kilni_image_ptx_check_address(judge, index, true);
    case ABOUT_POINTER:
      return check_pointer(judge, index, role);
    case ABOUT_BARRIER:
    case ABOUT_THREADS:
      return check_barrier(judge, index, role);
    case ABOUT_TABLE:
      return judge->operands[index].kind == KILNI_PTX_OPERAND_IMMEDIATE ||
             fail_kind(judge, index, "a number");
    default:
      return ptx_types_check_typed(judge, index, role);
  }
}

// The shape among "a/b" that has `count` letters; NULL if none has.
static const char* shape_for(const char* shapes, uint32_t count) {
  const char* start = shapes;
  for (const char* at = shapes;; at++) {
    if (*at != '/' && *at != '\0') continue;
    if ((size_t)(at - start) == count) return start;
    if (*at == '\0') return NULL;
    start = at + 1;
  }
}

bool kilni_image_ptx_check_operands(const kilni_image_ptx_judge_t* judge) {
  const kilni_image_ptx_rule_t* rule = judge->rule;
  uint32_t count = judge->count;
  if (rule->hint != 0 && shape_for(rule->shapes, count) == NULL && count > 0) {
    count--;
    if (!ptx_types_check_operand(judge, count, 'h')) return false;
  }
  const char* shape = shape_for(rule->shapes, count);
  if (shape == NULL) {
    kilni_image_ptx_token_t at = judge->reader->token;
    return kilni_image_ptx_fail(judge->reader, &at, "correct the operands",
                                "this \"%s\" does not take %u operands",
                                kilni_image_ptx_opcode_text(judge->opcode),
                                judge->count);
  }
  bool is_pack = judge->opcode == KILNI_PTX_OP_MOV && rule->vector == 1 &&
                 (vector_length(judge, &judge->operands[0]) > 0 ||
                  vector_length(judge, &judge->operands[1]) > 0);
  if (is_pack && !check_pack(judge)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (is_pack && vector_length(judge, &judge->operands[i]) > 0) continue;
    if (!ptx_types_check_operand(judge, i, shape[i])) return false;
  }
  return true;
}
