// SPDX-License-Identifier: Apache-2.0
//
// image: operands of PTX instructions.
#include "base/str.h"
#include "image/ptx_reader.h"

#include <string.h>

void kilni_image_ptx_operand_init(kilni_image_ptx_operand_t* out,
                                  uint32_t kind) {
  memset(out, 0, sizeof(*out));
  out->kind = (uint8_t)kind;
  out->index = KILNI_PTX_NONE;
  out->component = KILNI_PTX_WHOLE;
}

static bool fail_undeclared(kilni_image_ptx_reader_t* reader,
                            const kilni_image_ptx_token_t* at) {
  return kilni_image_ptx_fail(reader, at, "declare it, or correct the name",
                              "\"%.*s\" is not declared", KILNI_SV(at->text));
}

static bool ptx_operand_is_video(uint32_t opcode) {
  return opcode != KILNI_PTX_OP_VOTE &&
         kilni_image_ptx_opcode_text(opcode)[0] == 'v';
}

static bool takes_address(uint32_t opcode) {
  switch (opcode) {
    case KILNI_PTX_OP_LD:
    case KILNI_PTX_OP_LDU:
    case KILNI_PTX_OP_ST:
    case KILNI_PTX_OP_ATOM:
    case KILNI_PTX_OP_RED:
      return true;
    default:
      return false;
  }
}

static bool takes_residency(uint32_t opcode) {
  return opcode == KILNI_PTX_OP_TEX || opcode == KILNI_PTX_OP_TLD4;
}

// ---------------------------------------------------------------------------
// Children
// ---------------------------------------------------------------------------

static bool push_child(kilni_image_ptx_reader_t* reader,
                       const kilni_image_ptx_operand_t* operand) {
  kilni_image_ptx_operand_t* slot = kilni_image_ptx_push(
      reader, &reader->children, 1, "operands", reader->limits.operands);
  if (slot == NULL) return false;
  *slot = *operand;
  return true;
}

// Moves the children after `mark` to their final place.
static bool keep_children(kilni_image_ptx_reader_t* reader, uint32_t mark,
                          kilni_image_ptx_operand_t* out) {
  uint32_t count = reader->children.count - mark;
  out->first = reader->arena->operands.count;
  out->count = (uint16_t)count;
  reader->children.count = mark;
  if (count == 0) return true;
  kilni_image_ptx_operand_t* slots =
      kilni_image_ptx_push(reader, &reader->arena->operands, count, "operands",
                           reader->limits.operands);
  if (slots == NULL) return false;
  memcpy(slots, KILNI_PTX_AT(reader->children, kilni_image_ptx_operand_t, mark),
         count * sizeof(*slots));
  return true;
}

// Operands up to `close`, which is consumed.
static bool read_children(kilni_image_ptx_reader_t* reader, uint32_t opcode,
                          uint32_t close, kilni_image_ptx_operand_t* out) {
  uint64_t most = reader->limits.vector_elements;
  if (most > UINT16_MAX) most = UINT16_MAX;
  uint32_t mark = reader->children.count;
  bool more = !kilni_image_ptx_is(reader, close);
  if (!kilni_image_ptx_enter(reader)) return false;
  while (more) {
    kilni_image_ptx_operand_t child;
    if (reader->children.count - mark >= most) {
      return kilni_image_ptx_fail_limit(reader, "vector_elements", most);
    }
    if (!kilni_image_ptx_operand(reader, opcode, &child) ||
        !push_child(reader, &child) ||
        !kilni_image_ptx_accept(reader, ',', &more)) {
      return false;
    }
  }
  kilni_image_ptx_leave(reader);
  return kilni_image_ptx_expect(reader, close) &&
         keep_children(reader, mark, out);
}

static bool ptx_operand_read_vector(kilni_image_ptx_reader_t* reader,
                                    uint32_t opcode,
                                    kilni_image_ptx_operand_t* out) {
  kilni_image_ptx_token_t at = reader->token;
  out->kind = KILNI_PTX_OPERAND_VECTOR;
  if (!kilni_image_ptx_next(reader) ||
      !read_children(reader, opcode, '}', out)) {
    return false;
  }
  if (out->count > 0) return true;
  return kilni_image_ptx_fail(reader, &at, "write its elements",
                              "a vector without elements");
}

bool kilni_image_ptx_list(kilni_image_ptx_reader_t* reader,
                          kilni_image_ptx_operand_t* out) {
  kilni_image_ptx_operand_init(out, KILNI_PTX_OPERAND_LIST);
  return kilni_image_ptx_next(reader) &&
         read_children(reader, KILNI_PTX_OP_CALL, ')', out);
}

// ---------------------------------------------------------------------------
// Registers, special registers, symbols
// ---------------------------------------------------------------------------

static bool read_selector_word(kiln_string_view_t text,
                               kilni_image_ptx_operand_t* out) {
  if (text.size < 2 || (text.data[0] != 'b' && text.data[0] != 'h')) {
    return false;
  }
  bool bytes = text.data[0] == 'b';
  uint64_t digits = 0;
  for (size_t i = 1; i < text.size; i++) {
    char c = text.data[i];
    if (c < '0' || c > (bytes ? '7' : '3') || text.size > 5) return false;
    digits = digits << 4 | (uint64_t)(c - '0');
  }
  if (text.size == 2 && digits < (bytes ? 4u : 2u)) {
    out->selector =
        (uint8_t)((bytes ? KILNI_PTX_SELECT_B0 : KILNI_PTX_SELECT_H0) + digits);
  } else {
    out->selector = bytes ? KILNI_PTX_SELECT_BYTES : KILNI_PTX_SELECT_HALVES;
    out->value = digits | (uint64_t)(text.size - 1) << 16;
  }
  return true;
}

static uint32_t component_of(kiln_string_view_t text) {
  static const char kLetters[] = "xyzwrgba";
  if (text.size != 1) return KILNI_PTX_WHOLE;
  const char* found = strchr(kLetters, text.data[0]);
  if (found == NULL || *found == '\0') return KILNI_PTX_WHOLE;
  return (uint32_t)(found - kLetters) & 3;
}

// `.x` after a register or a special register of `components`.
static bool read_component(kilni_image_ptx_reader_t* reader, uint32_t opcode,
                           uint32_t components,
                           kilni_image_ptx_operand_t* out) {
  if (reader->token.kind != KILNI_PTX_TOKEN_DOT_WORD) return true;
  kiln_string_view_t text = reader->token.text;
  if (ptx_operand_is_video(opcode) && read_selector_word(text, out)) {
    return kilni_image_ptx_next(reader);
  }
  uint32_t component = component_of(text);
  if (component >= components) {
    return kilni_image_ptx_fail(reader, &reader->token, "drop the component",
                                "there is no component .%.*s here",
                                KILNI_SV(text));
  }
  out->component = (uint8_t)component;
  return kilni_image_ptx_next(reader);
}

static bool read_register(kilni_image_ptx_reader_t* reader, uint32_t opcode,
                          uint32_t index, kilni_image_ptx_operand_t* out) {
  out->kind = KILNI_PTX_OPERAND_REGISTER;
  out->index = index;
  const kilni_image_ptx_register_t* reg = kilni_image_ptx_register(reader, out);
  // A scalar has no component at all.
  uint32_t components = reg->vector > 1 ? reg->vector : 0;
  return kilni_image_ptx_next(reader) &&
         read_component(reader, opcode, components, out);
}

static bool ptx_operand_read_special(kilni_image_ptx_reader_t* reader,
                                     uint32_t opcode,
                                     kilni_image_ptx_operand_t* out) {
  kilni_image_ptx_token_t at = reader->token;
  kiln_string_view_t text = {at.text.data + 1, at.text.size - 1};
  uint32_t sreg = kilni_image_ptx_sreg_find(text, &out->value);
  if (sreg == KILNI_PTX_NONE) return fail_undeclared(reader, &at);
  out->kind = KILNI_PTX_OPERAND_SPECIAL;
  out->index = sreg;
  uint32_t components = kilni_image_ptx_sreg_components(sreg);
  return kilni_image_ptx_next(reader) &&
         read_component(reader, opcode, components > 1 ? components : 0, out);
}

static bool integer_constant(kilni_image_ptx_reader_t* reader, uint64_t* out) {
  kilni_image_ptx_token_t at = reader->token;
  kilni_image_ptx_constant_t constant;
  if (!kilni_image_ptx_constant(reader, &constant)) return false;
  *out = constant.value;
  if (constant.immediate <= KILNI_PTX_IMMEDIATE_U64) return true;
  return kilni_image_ptx_fail(reader, &at, "write an integer",
                              "an offset must be an integer");
}

// `+ n` after a symbol or a base register.
static bool read_offset(kilni_image_ptx_reader_t* reader, uint64_t* out) {
  bool there;
  if (!kilni_image_ptx_accept(reader, '+', &there)) return false;
  if (!there && kilni_image_ptx_is(reader, '-')) {
    return kilni_image_ptx_fail(reader, &reader->token, "write `+ -n`",
                                "a negative offset is written with +");
  }
  return !there || integer_constant(reader, out);
}

// `[n]` after a variable: its n-th element.
static bool ptx_operand_read_index(kilni_image_ptx_reader_t* reader,
                                   uint32_t opcode,
                                   kilni_image_ptx_operand_t* out) {
  const kilni_image_ptx_variable_t* variable =
      kilni_image_ptx_variable(reader, out);
  uint64_t element =
      (uint64_t)kilni_image_ptx_type_bytes(variable->type) * variable->vector;
  uint64_t number;
  if (!kilni_image_ptx_next(reader) || !integer_constant(reader, &number)) {
    return false;
  }
  out->value = number * element;
  if (takes_address(opcode)) {
    out->kind = KILNI_PTX_OPERAND_ADDRESS;
    out->base = KILNI_PTX_BASE_VARIABLE;
  }
  return kilni_image_ptx_expect(reader, ']');
}

static bool ptx_operand_read_variable(kilni_image_ptx_reader_t* reader,
                                      uint32_t opcode, uint32_t index,
                                      kilni_image_ptx_operand_t* out) {
  out->kind = KILNI_PTX_OPERAND_VARIABLE;
  out->index = index;
  if (!kilni_image_ptx_next(reader)) return false;
  if (kilni_image_ptx_is(reader, '[')) {
    return ptx_operand_read_index(reader, opcode, out);
  }
  return read_offset(reader, &out->value);
}

static bool read_immediate(kilni_image_ptx_reader_t* reader,
                           kilni_image_ptx_operand_t* out) {
  kilni_image_ptx_constant_t constant;
  if (!kilni_image_ptx_constant(reader, &constant)) return false;
  out->kind = KILNI_PTX_OPERAND_IMMEDIATE;
  out->immediate = (uint8_t)constant.immediate;
  out->value = constant.value;
  return true;
}

static bool ptx_operand_read_table(kilni_image_ptx_reader_t* reader,
                                   uint32_t opcode,
                                   const kilni_image_ptx_token_t* at,
                                   uint32_t kind, uint32_t index,
                                   kilni_image_ptx_operand_t* out) {
  if (kind != KILNI_PTX_SYMBOL_TABLE ||
      (opcode != KILNI_PTX_OP_BRX && opcode != KILNI_PTX_OP_CALL)) {
    return kilni_image_ptx_fail(reader, at, "use a register or a constant",
                                "\"%.*s\" is a label, not a value",
                                KILNI_SV(at->text));
  }
  out->kind = KILNI_PTX_OPERAND_TABLE;
  out->index = index;
  return kilni_image_ptx_next(reader);
}

static bool read_identifier(kilni_image_ptx_reader_t* reader, uint32_t opcode,
                            kilni_image_ptx_operand_t* out) {
  kilni_image_ptx_token_t at = reader->token;
  if (kilni_base_sv_equal_cstr(at.text, "_")) {
    out->kind = KILNI_PTX_OPERAND_SINK;
    return kilni_image_ptx_next(reader);
  }
  uint32_t kind;
  uint32_t index;
  if (!kilni_image_ptx_resolve(reader, at.text, &kind, &index)) return false;
  switch (kind) {
    case KILNI_PTX_SYMBOL_REGISTER:
      return read_register(reader, opcode, index, out);
    case KILNI_PTX_SYMBOL_VARIABLE:
      return ptx_operand_read_variable(reader, opcode, index, out);
    case KILNI_PTX_SYMBOL_FUNCTION:
      out->kind = KILNI_PTX_OPERAND_FUNCTION;
      out->index = index;
      return kilni_image_ptx_next(reader);
    case KILNI_PTX_SYMBOL_NONE:
      break;
    default:
      return ptx_operand_read_table(reader, opcode, &at, kind, index, out);
  }
  if (at.text.data[0] == '%') {
    return ptx_operand_read_special(reader, opcode, out);
  }
  if (kilni_base_sv_equal_cstr(at.text, "WARP_SZ")) {
    return read_immediate(reader, out);
  }
  return fail_undeclared(reader, &at);
}

// ---------------------------------------------------------------------------
// Addresses, signs, pairs
// ---------------------------------------------------------------------------

static bool read_base(kilni_image_ptx_reader_t* reader, uint32_t opcode,
                      kilni_image_ptx_operand_t* out) {
  if (reader->token.kind != KILNI_PTX_TOKEN_IDENTIFIER ||
      kilni_base_sv_equal_cstr(reader->token.text, "WARP_SZ")) {
    return integer_constant(reader, &out->value);
  }
  kilni_image_ptx_token_t at = reader->token;
  uint32_t kind;
  if (!kilni_image_ptx_resolve(reader, at.text, &kind, &out->index)) {
    return false;
  }
  switch (kind) {
    case KILNI_PTX_SYMBOL_REGISTER:
      out->base = KILNI_PTX_BASE_REGISTER;
      break;
    case KILNI_PTX_SYMBOL_VARIABLE:
      out->base = KILNI_PTX_BASE_VARIABLE;
      break;
    case KILNI_PTX_SYMBOL_FUNCTION:
      out->base = KILNI_PTX_BASE_FUNCTION;
      break;
    default:
      return fail_undeclared(reader, &at);
  }
  if (!kilni_image_ptx_next(reader)) return false;
  if (out->base == KILNI_PTX_BASE_REGISTER) {
    const kilni_image_ptx_register_t* reg =
        kilni_image_ptx_register(reader, out);
    if (!read_component(reader, opcode, reg->vector > 1 ? reg->vector : 0,
                        out)) {
      return false;
    }
  }
  return read_offset(reader, &out->value);
}

static bool ptx_operand_read_address(kilni_image_ptx_reader_t* reader,
                                     uint32_t opcode,
                                     kilni_image_ptx_operand_t* out) {
  bool more;
  out->kind = KILNI_PTX_OPERAND_ADDRESS;
  if (!kilni_image_ptx_next(reader) || !read_base(reader, opcode, out) ||
      !kilni_image_ptx_accept(reader, ',', &more)) {
    return false;
  }
  if (more) return read_children(reader, opcode, ']', out);
  return kilni_image_ptx_expect(reader, ']');
}

// `!p` and the `-a` of video instructions; a sign before a number is part of
// a constant.
static bool read_sign(kilni_image_ptx_reader_t* reader, uint32_t opcode,
                      kilni_image_ptx_operand_t* out) {
  kilni_image_ptx_token_t at = reader->token;
  kilni_image_ptx_lexer_t before = reader->lexer;
  if (!kilni_image_ptx_next(reader)) return false;
  if (reader->token.kind != KILNI_PTX_TOKEN_IDENTIFIER ||
      kilni_base_sv_equal_cstr(reader->token.text, "WARP_SZ")) {
    reader->lexer = before;
    reader->token = at;
    return read_immediate(reader, out);
  }
  if (!read_identifier(reader, opcode, out)) return false;
  if (out->kind != KILNI_PTX_OPERAND_REGISTER) {
    return kilni_image_ptx_fail(reader, &at, "use a register",
                                "only a register can be negated");
  }
  uint32_t type = kilni_image_ptx_register(reader, out)->type;
  bool is_not = at.punctuation == '!';
  if (is_not ? type != KILNI_PTX_TYPE_PRED : !ptx_operand_is_video(opcode)) {
    return kilni_image_ptx_fail(reader, &at,
                                "negate it in an instruction of its own",
                                "this operand cannot be negated");
  }
  out->negated = 1;
  return true;
}

static bool read_pair(kilni_image_ptx_reader_t* reader, uint32_t opcode,
                      kilni_image_ptx_operand_t* out) {
  kilni_image_ptx_operand_t second;
  kilni_image_ptx_operand_t first = *out;
  uint32_t mark = reader->children.count;
  kilni_image_ptx_token_t at;
  if (!kilni_image_ptx_next(reader)) return false;
  at = reader->token;
  kilni_image_ptx_operand_init(&second, KILNI_PTX_OPERAND_NONE);
  if (at.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "a register");
  }
  if (!read_identifier(reader, opcode, &second)) return false;
  if (second.kind != KILNI_PTX_OPERAND_REGISTER &&
      second.kind != KILNI_PTX_OPERAND_SINK) {
    return kilni_image_ptx_fail(reader, &at, "use a register",
                                "\"%.*s\" is not a register",
                                KILNI_SV(at.text));
  }
  if (!push_child(reader, &first) || !push_child(reader, &second)) {
    return false;
  }
  kilni_image_ptx_operand_init(out, KILNI_PTX_OPERAND_PAIR);
  return keep_children(reader, mark, out);
}

bool kilni_image_ptx_operand(kilni_image_ptx_reader_t* reader, uint32_t opcode,
                             kilni_image_ptx_operand_t* out) {
  kilni_image_ptx_operand_init(out, KILNI_PTX_OPERAND_NONE);
  if (reader->token.kind == KILNI_PTX_TOKEN_IDENTIFIER) {
    if (!read_identifier(reader, opcode, out)) return false;
    bool can_pair = out->kind == KILNI_PTX_OPERAND_REGISTER ||
                    out->kind == KILNI_PTX_OPERAND_SINK;
    if (can_pair && kilni_image_ptx_is(reader, '|')) {
      return read_pair(reader, opcode, out);
    }
    return true;
  }
  if (kilni_image_ptx_is(reader, '{')) {
    if (!ptx_operand_read_vector(reader, opcode, out)) return false;
    // Texture loads report in a predicate whether the texel is resident.
    return takes_residency(opcode) && kilni_image_ptx_is(reader, '|')
               ? read_pair(reader, opcode, out)
               : true;
  }
  if (kilni_image_ptx_is(reader, '[')) {
    return ptx_operand_read_address(reader, opcode, out);
  }
  if (kilni_image_ptx_is(reader, '!') || kilni_image_ptx_is(reader, '-')) {
    return read_sign(reader, opcode, out);
  }
  if (reader->token.kind == KILNI_PTX_TOKEN_NUMBER ||
      kilni_image_ptx_is(reader, '(') || kilni_image_ptx_is(reader, '~') ||
      kilni_image_ptx_is(reader, '+')) {
    return read_immediate(reader, out);
  }
  return kilni_image_ptx_fail_expected(reader, "an operand");
}
