// SPDX-License-Identifier: Apache-2.0
//
// cli: the values of `kiln run`'s options.
#include "cli/cli_literal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_number.h"

#define MAX_LITERAL 128

static const char kFixLiteral[] =
    "write a number with its type, such as 1024i32, 2.5f32, 0x1fu64 or -3i64; "
    "or true, false, or len(P) for the element count of buffer P";

static bool is_hexadecimal(const char* text, size_t size) {
  return size > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

bool kilni_cli_u64_parse(const char* text, size_t size, uint64_t* out) {
  *out = 0;
  uint64_t base = 10;
  if (is_hexadecimal(text, size)) {
    base = 16;
    text += 2;
    size -= 2;
  }
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++) {
    char c = text[i];
    uint64_t digit = c >= '0' && c <= '9'   ? (uint64_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a') + 10
                     : c >= 'A' && c <= 'F' ? (uint64_t)(c - 'A') + 10
                                            : 99;
    if (digit >= base || value > (UINT64_MAX - digit) / base) return false;
    value = value * base + digit;
  }
  if (size == 0) return false;
  *out = value;
  return true;
}

static size_t sign_size(const char* text, size_t size) {
  return size > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
}

static bool digits_only(const char* text, size_t size) {
  if (is_hexadecimal(text, size)) {
    for (size_t i = 2; i < size; i++) {
      if (strchr("0123456789abcdefABCDEF", text[i]) == NULL) return false;
    }
    return true;
  }
  for (size_t i = 0; i < size; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
  }
  return size != 0;
}

static bool fail_range(const char* text, kilni_cli_type_t type,
                       kilni_cli_error_t* error) {
  const kilni_cli_type_info_t* info = kilni_cli_type_info(type);
  uint32_t bits = info->bytes * 8;
  if (info->kind == 'f') {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write a number in the range of the type, or inf",
                          "the value \"%s\" does not fit %s", text, info->text);
  }
  uint64_t most = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
  if (info->kind == 'u') {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write a value in that range, or a wider type",
                          "the value \"%s\" does not fit %s (0 to %" PRIu64 ")",
                          text, info->text, most);
  }
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "write a value in that range, or a wider type",
                        "the value \"%s\" does not fit %s (-%" PRIu64
                        " to %" PRIu64 ")",
                        text, info->text, most / 2 + 1, most / 2);
}

static bool parse_integer(const char* text, size_t size, kilni_cli_type_t type,
                          kilni_cli_scalar_t* out, kilni_cli_error_t* error) {
  const kilni_cli_type_info_t* info = kilni_cli_type_info(type);
  bool negative = size > 0 && text[0] == '-';
  size_t sign = sign_size(text, size);
  if (!digits_only(text + sign, size - sign)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, kFixLiteral,
                          "the value \"%s\" is not an integer", text);
  }
  uint64_t value;
  if (!kilni_cli_u64_parse(text + sign, size - sign, &value)) {
    return fail_range(text, type, error);
  }
  uint32_t bits = info->bytes * 8;
  uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
  uint64_t most =
      info->kind == 'u' ? (negative ? 0 : mask) : mask / 2 + (negative ? 1 : 0);
  if (value > most) return fail_range(text, type, error);
  out->type = type;
  out->bytes = info->bytes;
  out->bits = (negative ? 0 - value : value) & mask;
  return true;
}

// strtod accepts more than this language: no hexadecimal, no "nan(...)".
static bool float_shaped(const char* text, size_t size) {
  size_t sign = sign_size(text, size);
  text += sign;
  size -= sign;
  if (size == 3 &&
      (memcmp(text, "inf", 3) == 0 || memcmp(text, "nan", 3) == 0)) {
    return true;
  }
  bool digit = false;
  for (size_t i = 0; i < size; i++) {
    if (text[i] >= '0' && text[i] <= '9') {
      digit = true;
    } else if (strchr(".eE+-", text[i]) == NULL) {
      return false;
    }
  }
  return digit;
}

static bool parse_float(const char* text, size_t size, kilni_cli_type_t type,
                        kilni_cli_scalar_t* out, kilni_cli_error_t* error) {
  char copy[MAX_LITERAL];
  memcpy(copy, text, size);
  copy[size] = 0;
  char* end = copy;
  double wide = 0;
  float narrow = 0;
  if (float_shaped(copy, size)) {
    if (type == KILNI_CLI_TYPE_F32) {
      narrow = strtof(copy, &end);
    } else {
      wide = strtod(copy, &end);
    }
  }
  if (end == copy || *end != 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, kFixLiteral,
                          "the value \"%s\" is not a number", text);
  }
  // An f32 is rounded once, from the text.
  if (type == KILNI_CLI_TYPE_F32) wide = (double)narrow;
  uint64_t bits = 0;
  bool fits = kilni_cli_number_bits(wide, type, &bits);
  if (!fits || (isinf(wide) && strstr(copy, "inf") == NULL)) {
    return fail_range(text, type, error);
  }
  out->type = type;
  out->bytes = kilni_cli_type_info(type)->bytes;
  out->bits = bits;
  return true;
}

// The type at the end of `text` and the length of the part before it. In a
// hexadecimal number `f32` and `f64` are digits.
static kilni_cli_type_t split_type(const char* text, size_t size,
                                   size_t* out_number) {
  size_t sign = sign_size(text, size);
  bool hex = is_hexadecimal(text + sign, size - sign);
  for (size_t n = 2; n <= 4 && n < size; n++) {
    kilni_cli_type_t type = kilni_cli_type_find(text + size - n, n);
    if (type == KILNI_CLI_TYPE_NONE || type == KILNI_CLI_TYPE_BOOL) continue;
    if (hex && kilni_cli_type_info(type)->kind == 'f') continue;
    // f16 is the end of bf16
    if (n == 3 && size > 4 && text[size - 4] == 'b' &&
        type == KILNI_CLI_TYPE_F16) {
      continue;
    }
    *out_number = size - n;
    return type;
  }
  return KILNI_CLI_TYPE_NONE;
}

static bool parse_length(const char* text, size_t size, kilni_cli_value_t* out,
                         kilni_cli_error_t* error) {
  if (size < 6 || text[size - 1] != ')') {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write len(P) with P a buffer's position or name",
                          "the value \"%s\" is not complete", text);
  }
  out->is_length = true;
  out->parameter = text + 4;
  out->parameter_size = size - 5;
  return true;
}

static bool check_size(size_t size, kilni_cli_error_t* error) {
  if (size != 0 && size < MAX_LITERAL) return true;
  return kilni_cli_fail(
      error, KILN_STATUS_INVALID_ARGUMENT, kFixLiteral,
      size == 0 ? "a value is empty" : "a value of more than 127 characters");
}

// The first `size` bytes of a text.
static bool parse_number(const char* text, size_t size, kilni_cli_type_t type,
                         kilni_cli_scalar_t* out, kilni_cli_error_t* error) {
  if (kilni_cli_type_info(type)->kind == 'f') {
    return parse_float(text, size, type, out, error);
  }
  return parse_integer(text, size, type, out, error);
}

bool kilni_cli_value_is_typed(const char* text) {
  size_t number;
  return strncmp(text, "len(", 4) == 0 || strcmp(text, "true") == 0 ||
         strcmp(text, "false") == 0 ||
         split_type(text, strlen(text), &number) != KILNI_CLI_TYPE_NONE;
}

bool kilni_cli_value_parse_as(const char* text, kilni_cli_type_t type,
                              kilni_cli_scalar_t* out,
                              kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  if (type == KILNI_CLI_TYPE_BOOL) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write true or false",
                          "the value \"%s\" is not a bool", text);
  }
  return check_size(strlen(text), error) &&
         parse_number(text, strlen(text), type, out, error);
}

// A number is shown with the types it may have.
static bool fail_untyped(const char* text, size_t size,
                         kilni_cli_error_t* error) {
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, kFixLiteral,
                       "the value \"%s\" has no type", text);
  size_t sign = sign_size(text, size);
  bool is_whole = digits_only(text + sign, size - sign);
  if (is_whole && !is_hexadecimal(text + sign, size - sign)) {
    kilni_cli_error_fix(error,
                        "write the parameter's type after it, such as %si32, "
                        "%si64 or %sf32",
                        text, text, text);
  } else if (!is_whole && float_shaped(text, size)) {
    kilni_cli_error_fix(error,
                        "write the parameter's type after it, such as %sf32 or "
                        "%sf64",
                        text, text);
  }
  return false;
}

bool kilni_cli_value_parse(const char* text, kilni_cli_value_t* out,
                           kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  size_t size = strlen(text);
  if (strncmp(text, "len(", 4) == 0) {
    return parse_length(text, size, out, error);
  }
  if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
    out->scalar.type = KILNI_CLI_TYPE_BOOL;
    out->scalar.bytes = 1;
    out->scalar.bits = text[0] == 't';
    return true;
  }
  if (!check_size(size, error)) return false;
  size_t number = 0;
  kilni_cli_type_t type = split_type(text, size, &number);
  if (type == KILNI_CLI_TYPE_NONE) return fail_untyped(text, size, error);
  return parse_number(text, number, type, &out->scalar, error);
}

// ---- Structs ----

enum { MAX_STRUCT_DEPTH = 16 };

// A struct being read. one-thread
typedef struct struct_t {
  const char* text;
  const char* at;
  kilni_cli_buffer_t* out;
  kilni_cli_error_t* error;
  uint32_t depth;
  kilni_cli_member_fn_t* visit;  // NULL: no checks
  void* user;
} struct_t;

static bool fail_struct(const struct_t* s, const char* what) {
  return kilni_cli_fail(s->error, KILN_STATUS_INVALID_ARGUMENT,
                        "write numbers with their types between braces, in "
                        "quotes for the shell, such as '0={2.5f32,1i32}' or "
                        "'0={1u64,{2i32,3i32}}'",
                        "the struct \"%.200s\": %s", s->text, what);
}

static bool pad_to(struct_t* s, size_t alignment) {
  size_t size = s->out->size;
  size_t wanted = (size + alignment - 1) / alignment * alignment;
  if (wanted > KILNI_CLI_MAX_STRUCT_BYTES) {
    return fail_struct(s, "it has more than 32764 bytes");
  }
  if (wanted == size) return true;
  if (!kilni_cli_buffer_resize(s->out, wanted, s->error)) return false;
  memset(s->out->data + size, 0, wanted - size);
  return true;
}

// The bytes after the last member of a struct may be padding or forgotten
// members: the user must decide. `s->at` is its closing brace.
static bool fail_open_end(struct_t* s, size_t open) {
  char fill[24] = "";
  for (size_t left = open; left != 0;) {
    size_t at = left % 2 != 0 ? 1 : left % 4 != 0 ? 2 : 4;
    size_t used = strlen(fill);
    (void)snprintf(fill + used, sizeof(fill) - used, ",0u%zu", at * 8);
    left -= at;
  }
  (void)kilni_cli_fail(s->error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "the struct \"%.200s\" leaves %zu byte%s open after its "
                       "last member",
                       s->text, open, open == 1 ? "" : "s");
  if (strlen(s->text) > 200) {
    kilni_cli_error_fix(s->error,
                        "write each inner struct in braces of its own, add "
                        "the member that is missing, or write %s where they "
                        "are padding",
                        fill);
    return false;
  }
  kilni_cli_error_fix(s->error,
                      "write each inner struct in braces of its own, or add "
                      "the member that is missing; where they are padding, "
                      "write them, such as '%.*s%s%s'",
                      (int)(s->at - s->text), s->text, fill, s->at);
  return false;
}

static bool parse_member(struct_t* s, size_t* inout_alignment) {
  char word[MAX_LITERAL];
  size_t size = strcspn(s->at, ",{} ");
  kilni_cli_value_t value;
  if (size >= sizeof(word)) return fail_struct(s, "a member is too long");
  memcpy(word, s->at, size);
  word[size] = 0;
  if (!kilni_cli_value_parse(word, &value, s->error)) return false;
  if (value.is_length) return fail_struct(s, "len() is not allowed in it");
  uint32_t bytes = value.scalar.bytes;
  if (bytes == 0) return fail_struct(s, "a member has no size");
  if (bytes > *inout_alignment) *inout_alignment = bytes;
  s->at += size;
  if (!pad_to(s, bytes)) return false;
  if (s->visit != NULL &&
      !s->visit(s->user, (uint32_t)s->out->size, value.scalar.type)) {
    return false;
  }
  return kilni_cli_buffer_add(s->out, &value.scalar.bits, bytes, s->error);
}

static void literal_skip_blanks(struct_t* s) {
  s->at += strspn(s->at, " ");
}

// The alignment of the members from here to the closing brace, which an inner
// struct needs before its first member is written.
static size_t alignment_of(const char* at) {
  size_t most = 1;
  int depth = 1;
  while (*at != 0 && depth > 0) {
    size_t size = strcspn(at, ",{} ");
    char word[MAX_LITERAL];
    kilni_cli_error_t ignored;
    kilni_cli_value_t value;
    if (size != 0 && size < sizeof(word)) {
      memcpy(word, at, size);
      word[size] = 0;
      if (kilni_cli_value_parse(word, &value, &ignored) && !value.is_length &&
          value.scalar.bytes > most) {
        most = value.scalar.bytes;
      }
    }
    at += size;
    if (*at == '{') depth++;
    if (*at == '}') depth--;
    if (*at != 0) at++;
  }
  return most;
}

static bool parse_members(struct_t* s, size_t* inout_alignment) {
  size_t alignment = alignment_of(s->at);
  bool ok =
      s->depth++ < MAX_STRUCT_DEPTH || fail_struct(s, "it is nested too deep");
  if (!ok || !pad_to(s, alignment)) return false;
  for (;;) {
    literal_skip_blanks(s);
    if (*s->at == '{') {
      s->at++;
      ok = parse_members(s, &alignment);
    } else {
      ok = parse_member(s, &alignment);
    }
    if (!ok) return false;
    literal_skip_blanks(s);
    if (*s->at == '}') break;
    if (*s->at != ',') return fail_struct(s, "a comma or a brace is missing");
    s->at++;
  }
  size_t open = (alignment - s->out->size % alignment) % alignment;
  if (open != 0) return fail_open_end(s, open);
  s->at++;
  s->depth--;
  if (alignment > *inout_alignment) *inout_alignment = alignment;
  return true;
}

bool kilni_cli_struct_parse(const char* text, kilni_cli_buffer_t* out,
                            kilni_cli_error_t* error) {
  return kilni_cli_struct_visit(text, out, NULL, NULL, error);
}

bool kilni_cli_struct_visit(const char* text, kilni_cli_buffer_t* out,
                            kilni_cli_member_fn_t* visit, void* user,
                            kilni_cli_error_t* error) {
  struct_t s = {text, text + 1, out, error, 0, visit, user};
  size_t alignment = 1;
  if (text[0] != '{') return fail_struct(&s, "it does not begin with a brace");
  if (!parse_members(&s, &alignment)) return false;
  return *s.at == 0 || fail_struct(&s, "there is text after its end");
}

bool kilni_cli_scalar_length(uint64_t count, uint32_t bytes, bool is_signed,
                             kilni_cli_scalar_t* out,
                             kilni_cli_error_t* error) {
  uint64_t most = bytes >= 8 ? UINT64_MAX : ((uint64_t)1 << (bytes * 8)) - 1;
  if (is_signed) most /= 2;
  if (count > most) {
    return kilni_cli_fail(
        error, KILN_STATUS_INVALID_ARGUMENT, "give a shorter buffer",
        "the length %" PRIu64 " does not fit %" PRIu32 " bytes", count, bytes);
  }
  bool known = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  out->type = !known       ? KILNI_CLI_TYPE_NONE
              : bytes == 1 ? KILNI_CLI_TYPE_U8
              : bytes == 2 ? KILNI_CLI_TYPE_U16
              : bytes == 4 ? KILNI_CLI_TYPE_U32
                           : KILNI_CLI_TYPE_U64;
  out->bytes = bytes;
  out->bits = count;
  return true;
}

bool kilni_cli_split_assignment(const char* option, const char* text,
                                size_t* out_name_size, const char** out_rest,
                                kilni_cli_error_t* error) {
  const char* equals = strchr(text, '=');
  if (equals == NULL || equals == text || equals[1] == 0) {
    (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "--%s \"%s\" is not of the form P=%s", option, text,
                         strcmp(option, "arg") == 0 ? "VALUE" : "FILE");
    kilni_cli_error_fix(error,
                        "write --%s P=... with P the parameter's position "
                        "from 0 or its name",
                        option);
    return false;
  }
  *out_name_size = (size_t)(equals - text);
  *out_rest = equals + 1;
  return true;
}

static bool fail_spec(const char* spec, const char* what,
                      kilni_cli_error_t* error) {
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "the type and shape \":%s\": %s", spec, what);
  kilni_cli_error_fix(error,
                      "write :TYPE[N,...], such as :f32[1024] or :u8[64,48,3], "
                      "or :@P to copy those of parameter P; types are %s",
                      kilni_cli_type_names());
  return false;
}

static bool parse_extents(const char* spec, const char* text,
                          kilni_cli_spec_t* out, kilni_cli_error_t* error) {
  size_t size = strlen(text);
  if (size < 2 || text[size - 1] != ']') {
    return fail_spec(spec, "there is no closing bracket at its end", error);
  }
  const char* at = text + 1;
  const char* end = text + size - 1;
  while (at < end) {
    const char* comma = memchr(at, ',', (size_t)(end - at));
    const char* stop = comma == NULL ? end : comma;
    if (out->shape.rank == KILNI_CLI_MAX_RANK) {
      return fail_spec(spec, "more than 8 extents", error);
    }
    uint64_t value;
    if (!kilni_cli_u64_parse(at, (size_t)(stop - at), &value)) {
      return fail_spec(spec, "an extent is not a whole number", error);
    }
    out->shape.dims[out->shape.rank++] = value;
    if (comma != NULL && comma + 1 == end) {
      return fail_spec(spec, "an extent is not a whole number", error);
    }
    at = stop == end ? end : stop + 1;
  }
  out->kind = KILNI_CLI_SPEC_SHAPE;
  if (kilni_cli_shape_finish(&out->shape, error)) return true;
  error->code = KILN_STATUS_INVALID_ARGUMENT;  // no file has such a shape
  return false;
}

// Whether a word is meant as a type, as in other languages or with a width that
// does not exist: float32, uint8, f31.
static bool is_meant_as_type(const char* word, size_t size) {
  static const char* const kStems[] = {
      "f", "fp",  "float", "double", "half", "bf",  "i",
      "s", "int", "u",     "uint",   "char", "byte"};
  size_t stem = size;
  while (stem > 0 && word[stem - 1] >= '0' && word[stem - 1] <= '9') stem--;
  bool is_letter = stem <= 2 && stem == size;  // a file may well be "a:f"
  for (size_t i = 0; i < sizeof(kStems) / sizeof(kStems[0]) && !is_letter;
       i++) {
    if (strlen(kStems[i]) == stem && strncmp(word, kStems[i], stem) == 0) {
      return true;
    }
  }
  return false;
}

// A colon may be part of a file's name: what follows the last one is a shape
// only if it looks like one.
bool kilni_cli_spec_parse(const char* text, kilni_cli_spec_t* out,
                          kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  out->path_size = strlen(text);
  const char* colon = strrchr(text, ':');
  if (colon == NULL || strchr(colon, '/') != NULL) return true;
  const char* spec = colon + 1;
  size_t word = strcspn(spec, "[");
  kilni_cli_type_t type = kilni_cli_type_find(spec, word);
  if (spec[0] != '@' && spec[word] != '[' && type == KILNI_CLI_TYPE_NONE &&
      !is_meant_as_type(spec, word)) {
    return true;
  }
  out->path_size = (size_t)(colon - text);
  if (out->path_size == 0) {
    return fail_spec(spec, "there is no file before it", error);
  }
  if (spec[0] == '@') {
    out->kind = KILNI_CLI_SPEC_COPY;
    out->copied = spec + 1;
    return spec[1] != 0 || fail_spec(spec, "no parameter after the @", error);
  }
  if (type == KILNI_CLI_TYPE_NONE) {
    return fail_spec(spec, "there is no such type", error);
  }
  out->shape.type = type;
  out->is_type_written = true;
  out->kind = KILNI_CLI_SPEC_TYPE;
  if (spec[word] == 0) return true;
  return parse_extents(spec, spec + word, out, error);
}

bool kilni_cli_dims_parse(const char* option, const char* text, uint32_t out[3],
                          kilni_cli_error_t* error) {
  out[0] = out[1] = out[2] = 1;
  const char* at = text;
  for (int i = 0; i < 3; i++) {
    size_t size = strcspn(at, ",");
    uint64_t value;
    if (!kilni_cli_u64_parse(at, size, &value) || value == 0 ||
        value > UINT32_MAX) {
      break;
    }
    out[i] = (uint32_t)value;
    at += size;
    if (*at == 0) return true;
    at++;
  }
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "--%s \"%s\" is not one to three numbers above 0",
                       option, text);
  kilni_cli_error_fix(error, "write --%s X, --%s X,Y or --%s X,Y,Z", option,
                      option, option);
  return false;
}
