// SPDX-License-Identifier: Apache-2.0
//
// cli: which elements a kernel of CUDA C++ takes through a pointer.
#include "cli/run_element.h"

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

static bool ends_with(const char* text, size_t size, const char* end) {
  size_t length = strlen(end);
  return size >= length && memcmp(text + size - length, end, length) == 0;
}

static size_t without_qualifiers(const char* text, size_t size) {
  static const char* const kQualifiers[] = {" const", " volatile",
                                            " __restrict", " restrict"};
  for (size_t i = 0; i < sizeof(kQualifiers) / sizeof(kQualifiers[0]);) {
    if (ends_with(text, size, kQualifiers[i])) {
      size -= strlen(kQualifiers[i]);
      i = 0;
    } else {
      i++;
    }
  }
  return size;
}

// What a pointer of a C++ type points to: NONE where nothing is known of it.
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

// The sign of an integer is a matter of how it is read, and halves are often
// kept as their bits.
static bool is_compatible(kilni_cli_type_t type, kilni_cli_type_t element) {
  const kilni_cli_type_info_t* a = kilni_cli_type_info(type);
  const kilni_cli_type_info_t* b = kilni_cli_type_info(element);
  if (type == element || strcmp(a->text, "u8") == 0) return true;
  if (a->bytes != b->bytes) return false;
  if (b->kind == 'f') return b->bytes == 2 && a->kind != 'f';
  return a->kind != 'f';
}

// The parameter as the kernel's name in the code says it, in `signature`; its
// size, or 0.
static size_t read_parameter(const char* kernel, uint32_t index,
                             char signature[NAME_BYTES],
                             const char** out_text) {
  if (!kiln_code_demangle(kernel, KILN_SWITCH_ON, NAME_BYTES, signature)) {
    return 0;
  }
  size_t size = parameter_of(signature, index, out_text);
  return size == 0 ? 0 : without_qualifiers(*out_text, size);
}

kilni_cli_type_t kilni_cli_value_type(const char* kernel, uint32_t index) {
  char signature[NAME_BYTES];
  const char* text = NULL;
  size_t size = read_parameter(kernel, index, signature, &text);
  return size == 0 ? KILNI_CLI_TYPE_NONE : element_of(text, size);
}

bool kilni_cli_element_fits(const char* kernel, uint32_t index,
                            kilni_cli_type_t type, char out_pointee[64],
                            kilni_cli_type_t* out_type) {
  char signature[NAME_BYTES];
  const char* text = NULL;
  *out_type = KILNI_CLI_TYPE_NONE;
  out_pointee[0] = 0;
  size_t size = read_parameter(kernel, index, signature, &text);
  if (size == 0 || text[size - 1] != '*' || size > 64) return true;
  *out_type = element_of(text, size - 1);
  if (*out_type == KILNI_CLI_TYPE_NONE || is_compatible(type, *out_type)) {
    return true;
  }
  memcpy(out_pointee, text, size - 1);
  out_pointee[size - 1] = 0;
  return false;
}
