// SPDX-License-Identifier: Apache-2.0
//
// cli: which elements a kernel takes through a pointer, by its name in C++ and
// by what its PTX does with them.
#include "cli/run_element.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kiln/code.h"

enum { NAME_BYTES = 2048 };

// The types of C++ on the platforms that CUDA has.
static const struct {
  const char* name;
  const char* type;
} kElements[] = {
    {"bool", "bool"},      {"char", "i8"},
    {"signed char", "i8"}, {"unsigned char", "u8"},
    {"short", "i16"},      {"unsigned short", "u16"},
    {"int", "i32"},        {"unsigned int", "u32"},
    {"long", "i64"},       {"unsigned long", "u64"},
    {"long long", "i64"},  {"unsigned long long", "u64"},
    {"float", "f32"},      {"double", "f64"},
    {"__half", "f16"},     {"__nv_bfloat16", "bf16"},
};

// The text of parameter `index` in "name(A, B<C, D>, E)"; its size, or 0.
static size_t parameter_of(const char* signature, uint32_t index,
                           const char** out_text) {
  size_t size = strlen(signature);
  if (size == 0 || signature[size - 1] != ')') return 0;
  const char* at = signature + size - 1;
  for (int depth = 0; at > signature; at--) {
    if (*at == ')') depth++;
    if (*at == '(' && --depth == 0) break;
  }
  const char* begin = ++at;
  for (int depth = 0; *at != 0; at++) {
    if (*at == '<' || *at == '(') depth++;
    bool is_end = depth == 0 && (*at == ',' || *at == ')');
    if (*at == '>' || (*at == ')' && depth > 0)) depth--;
    if (!is_end) continue;
    if (index == 0) {
      *out_text = begin;
      return (size_t)(at - begin);
    }
    index--;
    begin = at + (at[1] == ' ' ? 2 : 1);
  }
  return 0;
}

static bool run_element_ends_with(const char* text, size_t size,
                                  const char* end) {
  size_t length = strlen(end);
  return size >= length && memcmp(text + size - length, end, length) == 0;
}

static size_t without_qualifiers(const char* text, size_t size) {
  static const char* const kQualifiers[] = {" const", " volatile",
                                            " __restrict", " restrict"};
  for (size_t i = 0; i < sizeof(kQualifiers) / sizeof(kQualifiers[0]);) {
    if (run_element_ends_with(text, size, kQualifiers[i])) {
      size -= strlen(kQualifiers[i]);
      i = 0;
    } else {
      i++;
    }
  }
  return size;
}

// What a pointer of a C++ type points to: NONE if unknown.
static kilni_cli_type_t element_of(const char* text, size_t size) {
  size = without_qualifiers(text, size);
  for (size_t i = 0; i < sizeof(kElements) / sizeof(kElements[0]); i++) {
    if (strlen(kElements[i].name) != size ||
        memcmp(kElements[i].name, text, size) != 0) {
      continue;
    }
    return kilni_cli_type_find(kElements[i].type, strlen(kElements[i].type));
  }
  return KILNI_CLI_TYPE_NONE;
}

bool kilni_cli_type_suits(kilni_cli_type_t type, bool is_bytes,
                          kilni_cli_type_t element) {
  const kilni_cli_type_info_t* a = kilni_cli_type_info(type);
  const kilni_cli_type_info_t* b = kilni_cli_type_info(element);
  if (type == element || (is_bytes && type == KILNI_CLI_TYPE_U8)) return true;
  if (a->bytes != b->bytes) return false;
  if (b->kind == 'f') return b->bytes == 2 && a->kind != 'f';
  return a->kind != 'f';
}

// The parameter's type by the kernel's name in the code, in `signature`; its
// size, or 0.
static size_t run_element_read_parameter(const char* kernel, uint32_t index,
                                         char signature[NAME_BYTES],
                                         const char** out_text) {
  if (!kiln_code_demangle(kernel, KILN_SWITCH_ON, NAME_BYTES, signature)) {
    return 0;
  }
  size_t size = parameter_of(signature, index, out_text);
  return size == 0 ? 0 : without_qualifiers(*out_text, size);
}

// What a pointer points to, as text; its size, or 0 if it is not a pointer or
// the text is too long.
static size_t read_pointee(const char* kernel, uint32_t index,
                           char out_pointee[KILNI_CLI_TAKEN_TEXT]) {
  char signature[NAME_BYTES];
  const char* text = NULL;
  size_t size = run_element_read_parameter(kernel, index, signature, &text);
  if (size < 2 || text[size - 1] != '*' || size > KILNI_CLI_TAKEN_TEXT) {
    return 0;
  }
  memcpy(out_pointee, text, size - 1);
  out_pointee[size - 1] = 0;
  return size - 1;
}

bool kilni_cli_is_pointer(const char* kernel, uint32_t index,
                          const kiln_image_use_t* use_or_null) {
  char signature[NAME_BYTES];
  const char* text = NULL;
  size_t size = run_element_read_parameter(kernel, index, signature, &text);
  if (size != 0) return text[size - 1] == '*';
  return use_or_null != NULL &&
         kiln_image_use_access_count(use_or_null, index) != 0;
}

kilni_cli_type_t kilni_cli_value_type(const char* kernel, uint32_t index) {
  char signature[NAME_BYTES];
  const char* text = NULL;
  size_t size = run_element_read_parameter(kernel, index, signature, &text);
  return size == 0 ? KILNI_CLI_TYPE_NONE : element_of(text, size);
}

bool kilni_cli_element_fits(const char* kernel, uint32_t index,
                            kilni_cli_type_t type, bool is_bytes,
                            char out_pointee[KILNI_CLI_TAKEN_TEXT],
                            kilni_cli_type_t* out_type) {
  char pointee[KILNI_CLI_TAKEN_TEXT];
  *out_type = KILNI_CLI_TYPE_NONE;
  out_pointee[0] = 0;
  size_t size = read_pointee(kernel, index, pointee);
  if (size == 0) return true;
  *out_type = element_of(pointee, size);
  if (*out_type == KILNI_CLI_TYPE_NONE ||
      kilni_cli_type_suits(type, is_bytes, *out_type)) {
    return true;
  }
  memcpy(out_pointee, pointee, size + 1);
  return false;
}

// The element of one of CUDA's vectors: "float" for "float4".
static kilni_cli_type_t element_of_vector(const char* text, size_t size) {
  static const struct {
    const char* name;
    kilni_cli_type_t type;
  } kVectors[] = {
      {"char", KILNI_CLI_TYPE_I8},      {"uchar", KILNI_CLI_TYPE_U8},
      {"short", KILNI_CLI_TYPE_I16},    {"ushort", KILNI_CLI_TYPE_U16},
      {"int", KILNI_CLI_TYPE_I32},      {"uint", KILNI_CLI_TYPE_U32},
      {"long", KILNI_CLI_TYPE_I64},     {"ulong", KILNI_CLI_TYPE_U64},
      {"longlong", KILNI_CLI_TYPE_I64}, {"ulonglong", KILNI_CLI_TYPE_U64},
      {"float", KILNI_CLI_TYPE_F32},    {"double", KILNI_CLI_TYPE_F64},
      {"__half", KILNI_CLI_TYPE_F16},   {"__nv_bfloat16", KILNI_CLI_TYPE_BF16},
  };
  size = without_qualifiers(text, size);
  if (size < 2 || text[size - 1] < '1' || text[size - 1] > '4') {
    return KILNI_CLI_TYPE_NONE;
  }
  for (size_t i = 0; i < sizeof(kVectors) / sizeof(kVectors[0]); i++) {
    if (strlen(kVectors[i].name) == size - 1 &&
        memcmp(kVectors[i].name, text, size - 1) == 0) {
      return kVectors[i].type;
    }
  }
  return KILNI_CLI_TYPE_NONE;
}

// Whether the kernel computes with elements of the type that a parameter points
// to.
static bool computes_with(const kiln_image_use_t* use, uint32_t index,
                          const kilni_cli_type_info_t* element) {
  uint32_t kind = element->kind == 'f' ? KILN_IMAGE_ACCESS_FLOAT
                                       : KILN_IMAGE_ACCESS_INTEGER;
  uint32_t count = use == NULL ? 0 : kiln_image_use_access_count(use, index);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_image_access_t* access = kiln_image_use_access(use, index, i);
    if (access->kind == kind && access->bytes == element->bytes) return true;
  }
  return false;
}

bool kilni_cli_vector_fits(const char* kernel, uint32_t index,
                           const kiln_image_use_t* use_or_null,
                           kilni_cli_type_t type, bool is_bytes,
                           char out_pointee[KILNI_CLI_TAKEN_TEXT],
                           kilni_cli_type_t* out_type) {
  char pointee[KILNI_CLI_TAKEN_TEXT];
  *out_type = KILNI_CLI_TYPE_NONE;
  out_pointee[0] = 0;
  size_t size = read_pointee(kernel, index, pointee);
  if (size == 0) return true;
  *out_type = element_of_vector(pointee, size);
  if (*out_type == KILNI_CLI_TYPE_NONE) return true;
  const kilni_cli_type_info_t* element = kilni_cli_type_info(*out_type);
  // Integers of any width may be packed into others, and halves into integers.
  bool is_packed = kilni_cli_type_info(type)->kind != 'f' &&
                   (element->kind != 'f' || element->bytes == 2);
  if (is_packed || kilni_cli_type_suits(type, is_bytes, *out_type) ||
      !computes_with(use_or_null, index, element)) {
    return true;
  }
  memcpy(out_pointee, pointee, size + 1);
  return false;
}

// Whether data of this type can never fit an access. Words that are only moved
// may be parts of wider elements or contain several narrower ones: they
// contradict data only if their addresses fall inside one element.
static bool contradicts(const kilni_cli_type_info_t* data,
                        const kiln_image_access_t* access) {
  bool is_float = data->kind == 'f';
  bool is_within = access->bytes < data->bytes && access->pitch != 0 &&
                   access->pitch < data->bytes;
  switch (access->kind) {
    case KILN_IMAGE_ACCESS_FLOAT:
      // Halves are often kept as their bits.
      if (access->bytes == 2 && !is_float) return is_within;
      return !is_float || data->bytes != access->bytes;
    case KILN_IMAGE_ACCESS_INTEGER:
      if (is_float) return is_within || data->bytes == access->bytes;
      return is_within && access->bytes > 1;
    default:
      return is_within && access->bytes > 1;
  }
}

static bool fits_all(const kiln_image_use_t* use, uint32_t index,
                     kilni_cli_type_t type, bool is_bytes) {
  const kilni_cli_type_info_t* data = kilni_cli_type_info(type);
  uint32_t count = kiln_image_use_access_count(use, index);
  if (count == 0 || (is_bytes && type == KILNI_CLI_TYPE_U8)) return true;
  for (uint32_t i = 0; i < count; i++) {
    if (!contradicts(data, kiln_image_use_access(use, index, i))) return true;
  }
  return false;
}

// The most specific access: they are sorted by how little they imply.
static const kiln_image_access_t* clearest(const kiln_image_use_t* use,
                                           uint32_t index) {
  return kiln_image_use_access(use, index,
                               kiln_image_use_access_count(use, index) - 1);
}

// The types that fit an access.
static const char* types_of_access(const kiln_image_access_t* access,
                                   char kind) {
  static const char* const kFloats[] = {"u8", "f16 or bf16", "f32", "f64"};
  static const char* const kSigned[] = {"u8", "i16", "i32", "i64"};
  static const char* const kUnsigned[] = {"u8", "u16", "u32", "u64"};
  static const char* const kBits[] = {"u8 or i8", "i16, u16, f16 or bf16",
                                      "i32, u32 or f32", "i64, u64 or f64"};
  uint32_t width = 0;
  while (width < 3 && (1u << width) < access->bytes) width++;
  return access->kind == KILN_IMAGE_ACCESS_FLOAT  ? kFloats[width]
         : access->kind == KILN_IMAGE_ACCESS_BITS ? kBits[width]
         : kind == 'u'                            ? kUnsigned[width]
                                                  : kSigned[width];
}

static void tell_access(const kiln_image_access_t* access,
                        kilni_cli_type_t type,
                        char out_what[KILNI_CLI_TAKEN_TEXT],
                        char out_types[KILNI_CLI_TAKEN_TEXT]) {
  static const char* const kWhat[] = {"", "elements", "integers", "floats"};
  (void)snprintf(out_types, KILNI_CLI_TAKEN_TEXT, "%s",
                 types_of_access(access, kilni_cli_type_info(type)->kind));
  (void)snprintf(out_what, KILNI_CLI_TAKEN_TEXT, "%s of %" PRIu32 " byte%s",
                 kWhat[access->kind], access->bytes,
                 access->bytes == 1 ? "" : "s");
}

bool kilni_cli_access_fits(const kiln_image_use_t* use_or_null, uint32_t index,
                           kilni_cli_type_t type, bool is_bytes,
                           char out_what[KILNI_CLI_TAKEN_TEXT],
                           char out_types[KILNI_CLI_TAKEN_TEXT]) {
  out_what[0] = 0;
  out_types[0] = 0;
  if (use_or_null == NULL || fits_all(use_or_null, index, type, is_bytes)) {
    return true;
  }
  tell_access(clearest(use_or_null, index), type, out_what, out_types);
  return false;
}

// ---- Members of structs ----

// Whether a number of this type at `offset` can never fit a load of a member. A
// byte may be part of anything.
static bool contradicts_member(const kilni_cli_type_info_t* data,
                               uint32_t offset,
                               const kiln_image_access_t* access) {
  if (data->bytes == 1) return false;
  if (access->offset == offset) return contradicts(data, access);
  return access->kind == KILN_IMAGE_ACCESS_FLOAT;
}

// Whether one of the loads at `place` fits it.
static bool suits_a_load(const kiln_image_use_t* use, uint32_t index,
                         uint32_t place, uint32_t offset,
                         const kilni_cli_type_info_t* data) {
  uint32_t count = kiln_image_use_access_count(use, index);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_image_access_t* access = kiln_image_use_access(use, index, i);
    if (access->offset == place && !contradicts_member(data, offset, access)) {
      return true;
    }
  }
  return false;
}

bool kilni_cli_member_fits(const kiln_image_use_t* use_or_null, uint32_t index,
                           uint32_t offset, kilni_cli_type_t type,
                           char out_what[KILNI_CLI_TAKEN_TEXT],
                           char out_types[KILNI_CLI_TAKEN_TEXT]) {
  const kilni_cli_type_info_t* data = kilni_cli_type_info(type);
  const kiln_image_access_t* found = NULL;
  uint32_t count =
      use_or_null == NULL ? 0 : kiln_image_use_access_count(use_or_null, index);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_image_access_t* access =
        kiln_image_use_access(use_or_null, index, i);
    if (access->offset < offset || access->offset - offset >= data->bytes) {
      continue;
    }
    if (!suits_a_load(use_or_null, index, access->offset, offset, data)) {
      found = access;
    }
  }
  if (found == NULL) return true;
  tell_access(found, type, out_what, out_types);
  return false;
}
