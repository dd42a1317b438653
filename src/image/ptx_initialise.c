// SPDX-License-Identifier: Apache-2.0
//
// image: initial values of PTX variables, as bytes and relocations.
#include "base/str.h"
#include "image/ptx_reader.h"

#include <string.h>

// The shape of what is being filled: one level for each array dimension, and
// one for the components of a vector. one-thread
typedef struct shape_t {
  kilni_image_ptx_variable_t* variable;
  uint32_t level_count;
  uint32_t reserved;
  uint64_t counts[KILNI_PTX_MAX_DIMENSIONS + 1];   // 0: as many as written
  uint64_t strides[KILNI_PTX_MAX_DIMENSIONS + 1];  // bytes of one element
} shape_t;

static void make_shape(kilni_image_ptx_variable_t* variable, shape_t* out) {
  memset(out, 0, sizeof(*out));
  out->variable = variable;
  for (uint32_t i = 0; i < variable->dimension_count; i++) {
    out->counts[out->level_count++] = variable->dimensions[i];
  }
  if (variable->vector > 1) out->counts[out->level_count++] = variable->vector;
  uint64_t stride = kilni_image_ptx_type_bytes(variable->type);
  for (uint32_t i = out->level_count; i-- > 0;) {
    out->strides[i] = stride;
    // The sizes were checked when the variable was declared.
    if (out->counts[i] != 0) stride *= out->counts[i];
  }
}

// Where `size` bytes at `offset` of the variable are stored.
static uint8_t* bytes_at(kilni_image_ptx_reader_t* reader,
                         kilni_image_ptx_variable_t* variable, uint64_t offset,
                         uint32_t size) {
  uint64_t end = offset + size;
  if (end > reader->limits.variable_bytes) {
    kilni_image_ptx_fail_limit(reader, "variable_bytes",
                               reader->limits.variable_bytes);
    return NULL;
  }
  if (end > variable->byte_count) {
    uint64_t more = end - variable->byte_count;
    if (more > UINT32_MAX ||
        kilni_image_ptx_push(reader, &reader->arena->bytes, (uint32_t)more,
                             "initialiser_bytes",
                             reader->limits.initialiser_bytes) == NULL) {
      kilni_image_ptx_fail_limit(reader, "initialiser_bytes",
                                 reader->limits.initialiser_bytes);
      return NULL;
    }
    variable->byte_count = end;
  }
  return (uint8_t*)reader->arena->bytes.data + variable->bytes_offset + offset;
}

static bool ptx_initialise_fail_type(kilni_image_ptx_reader_t* reader,
                                     const kilni_image_ptx_token_t* at) {
  return kilni_image_ptx_fail(reader, at,
                              "write a value of the variable's own type",
                              "the initial value does not fit the type");
}

static bool store_constant(kilni_image_ptx_reader_t* reader,
                           const kilni_image_ptx_token_t* at,
                           kilni_image_ptx_variable_t* variable,
                           uint64_t offset,
                           const kilni_image_ptx_constant_t* constant) {
  uint32_t size = kilni_image_ptx_type_bytes(variable->type);
  uint64_t bits = constant->value;
  bool is_integer = constant->immediate <= KILNI_PTX_IMMEDIATE_U64;
  if (variable->type == KILNI_PTX_TYPE_F32 ||
      variable->type == KILNI_PTX_TYPE_F64) {
    if (is_integer) return ptx_initialise_fail_type(reader, at);
    double number;
    float narrow;
    uint32_t narrow_bits = (uint32_t)bits;
    if (constant->immediate == KILNI_PTX_IMMEDIATE_F64) {
      memcpy(&number, &bits, sizeof(number));
      narrow = (float)number;
      memcpy(&narrow_bits, &narrow, sizeof(narrow));
    } else {
      memcpy(&narrow, &narrow_bits, sizeof(narrow));
      number = (double)narrow;
      memcpy(&bits, &number, sizeof(number));
    }
    if (variable->type == KILNI_PTX_TYPE_F32) bits = narrow_bits;
  } else if (!is_integer || kilni_image_ptx_type_class(variable->type) ==
                                KILNI_PTX_CLASS_FLOAT) {
    return ptx_initialise_fail_type(reader, at);
  }
  uint8_t* bytes = bytes_at(reader, variable, offset, size);
  if (bytes == NULL) return false;
  for (uint32_t i = 0; i < size && i < 8; i++) {
    bytes[i] = (uint8_t)(bits >> (8 * i));
  }
  return true;
}

// A name or generic(name), then `+ n`.
static bool ptx_initialise_read_address(kilni_image_ptx_reader_t* reader,
                                        kilni_image_ptx_relocation_t* out) {
  if (reader->token.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "a variable or function");
  }
  if (kilni_base_sv_equal_cstr(reader->token.text, "generic")) {
    out->generic = 1;
    if (!kilni_image_ptx_next(reader) || !kilni_image_ptx_expect(reader, '(')) {
      return false;
    }
  }
  kilni_image_ptx_token_t at = reader->token;
  uint32_t kind;
  uint32_t index;
  if (at.kind != KILNI_PTX_TOKEN_IDENTIFIER) {
    return kilni_image_ptx_fail_expected(reader, "a variable or function");
  }
  if (!kilni_image_ptx_resolve(reader, at.text, &kind, &index)) return false;
  if (kind != KILNI_PTX_SYMBOL_VARIABLE && kind != KILNI_PTX_SYMBOL_FUNCTION) {
    return kilni_image_ptx_fail(
        reader, &at, "declare the variable or function before this line",
        "\"%.*s\" is not declared", KILNI_SV(at.text));
  }
  out->kind = kind == KILNI_PTX_SYMBOL_VARIABLE ? KILNI_PTX_RELOC_VARIABLE
                                                : KILNI_PTX_RELOC_FUNCTION;
  out->index = index;
  if (!kilni_image_ptx_next(reader)) return false;
  if (out->generic && !kilni_image_ptx_expect(reader, ')')) return false;
  bool there;
  if (!kilni_image_ptx_accept(reader, '+', &there)) return false;
  if (!there) return true;
  kilni_image_ptx_constant_t addend;
  at = reader->token;
  if (!kilni_image_ptx_constant(reader, &addend)) return false;
  if (addend.immediate > KILNI_PTX_IMMEDIATE_U64) {
    return ptx_initialise_fail_type(reader, &at);
  }
  out->addend = (int64_t)addend.value;
  return true;
}

static bool add_relocation(kilni_image_ptx_reader_t* reader,
                           kilni_image_ptx_variable_t* variable,
                           uint64_t offset,
                           const kilni_image_ptx_relocation_t* relocation) {
  if (bytes_at(reader, variable, offset, relocation->size) == NULL) {
    return false;
  }
  kilni_image_ptx_relocation_t* slot =
      kilni_image_ptx_push(reader, &reader->arena->relocations, 1,
                           "relocations", reader->limits.relocations);
  if (slot == NULL) return false;
  *slot = *relocation;
  slot->offset = offset;
  if (variable->relocation_count++ == 0) {
    variable->first_relocation = reader->arena->relocations.count - 1;
  }
  return true;
}

// 0xff00(name): the byte that the mask selects.
static bool read_mask(kilni_image_ptx_reader_t* reader,
                      kilni_image_ptx_variable_t* variable, uint64_t offset,
                      const kilni_image_ptx_token_t* mask) {
  kilni_image_ptx_relocation_t relocation;
  memset(&relocation, 0, sizeof(relocation));
  uint32_t shift = 0;
  while (shift < 56 && (mask->value >> shift & 0xff) == 0) shift += 8;
  if (mask->value >> shift != 0xff ||
      kilni_image_ptx_type_bytes(variable->type) != 1) {
    return kilni_image_ptx_fail(
        reader, mask, "use 0xff, 0xff00, ... on an array of bytes",
        "the mask %.*s selects no single byte", KILNI_SV(mask->text));
  }
  relocation.shift = (uint8_t)shift;
  relocation.size = 1;
  return kilni_image_ptx_expect(reader, '(') &&
         ptx_initialise_read_address(reader, &relocation) &&
         kilni_image_ptx_expect(reader, ')') &&
         add_relocation(reader, variable, offset, &relocation);
}

static bool ptx_initialise_read_scalar(kilni_image_ptx_reader_t* reader,
                                       kilni_image_ptx_variable_t* variable,
                                       uint64_t offset) {
  kilni_image_ptx_token_t at = reader->token;
  if (at.kind == KILNI_PTX_TOKEN_IDENTIFIER &&
      !kilni_base_sv_equal_cstr(at.text, "WARP_SZ")) {
    kilni_image_ptx_relocation_t relocation;
    memset(&relocation, 0, sizeof(relocation));
    relocation.size = (uint8_t)kilni_image_ptx_type_bytes(variable->type);
    if (!ptx_initialise_read_address(reader, &relocation)) return false;
    kilni_image_ptx_class_t class_ = kilni_image_ptx_type_class(variable->type);
    if (relocation.size < 4 || relocation.size > 8 ||
        class_ == KILNI_PTX_CLASS_FLOAT || class_ == KILNI_PTX_CLASS_OPAQUE) {
      return ptx_initialise_fail_type(reader, &at);
    }
    return add_relocation(reader, variable, offset, &relocation);
  }
  if (at.kind == KILNI_PTX_TOKEN_NUMBER &&
      at.immediate <= KILNI_PTX_IMMEDIATE_U64) {
    kilni_image_ptx_lexer_t before = reader->lexer;
    if (!kilni_image_ptx_next(reader)) return false;
    if (kilni_image_ptx_is(reader, '(')) {
      return read_mask(reader, variable, offset, &at);
    }
    reader->lexer = before;
    reader->token = at;
  }
  kilni_image_ptx_constant_t constant;
  return kilni_image_ptx_constant(reader, &constant) &&
         store_constant(reader, &at, variable, offset, &constant);
}

static bool ptx_initialise_read_list(kilni_image_ptx_reader_t* reader,
                                     const shape_t* shape, uint32_t level,
                                     uint64_t offset, uint64_t* out_count) {
  uint64_t count = 0;
  bool more = true;
  if (!kilni_image_ptx_expect(reader, '{')) return false;
  if (kilni_image_ptx_is(reader, '}')) more = false;
  while (more) {
    if (shape->counts[level] != 0 && count == shape->counts[level]) {
      return kilni_image_ptx_fail(reader, &reader->token,
                                  "drop the excess values",
                                  "more than %llu initial values",
                                  (unsigned long long)shape->counts[level]);
    }
    uint64_t at = offset + count * shape->strides[level];
    bool nested = level + 1 < shape->level_count;
    uint64_t inner;
    if (nested ? !ptx_initialise_read_list(reader, shape, level + 1, at, &inner)
               : !ptx_initialise_read_scalar(reader, shape->variable, at)) {
      return false;
    }
    count++;
    if (!kilni_image_ptx_accept(reader, ',', &more)) return false;
  }
  *out_count = count;
  return kilni_image_ptx_expect(reader, '}');
}

bool kilni_image_ptx_initialiser(kilni_image_ptx_reader_t* reader,
                                 kilni_image_ptx_variable_t* variable) {
  shape_t shape;
  make_shape(variable, &shape);
  variable->has_initialiser = 1;
  variable->bytes_offset = reader->arena->bytes.count;
  if (kilni_image_ptx_type_class(variable->type) == KILNI_PTX_CLASS_OPAQUE) {
    return kilni_image_ptx_fail(reader, &reader->token,
                                "set the texture or sampler from the program",
                                "a .%s cannot have an initial value here",
                                kilni_image_ptx_modifier_text(variable->type));
  }
  if (shape.level_count == 0) {
    return ptx_initialise_read_scalar(reader, variable, 0);
  }
  uint64_t count = 0;
  if (!ptx_initialise_read_list(reader, &shape, 0, 0, &count)) return false;
  if (variable->unsized && count > 0) {
    variable->unsized = 0;
    variable->dimensions[0] = count;
    variable->size_bytes = count * shape.strides[0];
  }
  return true;
}
