// SPDX-License-Identifier: Apache-2.0
//
// base: names of kernels as C++ writes them.
//
// The part of the Itanium C++ ABI that kernels are named by: functions in
// namespaces and classes, templates of types and integers, and the types of
// parameters. What is left out (operators, expressions, function types, local
// names) is refused, never guessed.
#include "base/demangle.h"

#include <stdint.h>
#include <string.h>

enum {
  ARENA_BYTES = 8192,
  MAX_TEXT = 2048,  // of one name; a copy of a copy of a copy grows fast
  MAX_SEEN = 128,   // substitutions, and arguments of one template
  MAX_DEPTH = 48,
};

// A text in the arena; NONE for what cannot be read.
typedef uint32_t text_t;
#define NONE UINT32_MAX

// One name being demangled. one-thread
typedef struct reader_t {
  const char* at;
  uint32_t used;
  uint32_t depth;
  uint32_t seen_count;
  uint32_t argument_count;  // of the function's own template
  text_t seen[MAX_SEEN];
  text_t arguments[MAX_SEEN];
  bool is_template;  // the name ends with arguments: a return type follows it
  bool is_named;     // the name is read: parameters follow
  char arena[ARENA_BYTES];
} reader_t;

static text_t demangle_read_type(reader_t* r);

// ---- Texts ----

static const char* demangle_at(const reader_t* r, text_t text) {
  return r->arena + text;
}

// Up to four texts as one; NULL ends them.
static text_t demangle_join(reader_t* r, const char* a, const char* b,
                            const char* c, const char* d) {
  const char* const parts[] = {a, b, c, d};
  text_t text = r->used;
  uint32_t used = r->used;
  for (int i = 0; i < 4 && parts[i] != NULL; i++) {
    size_t size = strlen(parts[i]);
    if (size >= ARENA_BYTES - used || used + size - text >= MAX_TEXT) {
      return NONE;
    }
    memcpy(r->arena + used, parts[i], size);
    used += (uint32_t)size;
  }
  r->arena[used++] = 0;
  r->used = used;
  return text;
}

static text_t demangle_add(reader_t* r, const char* words) {
  return demangle_join(r, words, NULL, NULL, NULL);
}

// Notes a text that later parts of the name may refer to.
static text_t demangle_note(reader_t* r, text_t text) {
  if (text == NONE || r->seen_count == MAX_SEEN) return NONE;
  r->seen[r->seen_count++] = text;
  return text;
}

static bool demangle_take(reader_t* r, char c) {
  if (*r->at != c) return false;
  r->at++;
  return true;
}

// ---- Parts of a name ----

// "_" is 0, "0_" is 1, "Z_" is 36.
static bool demangle_read_index(reader_t* r, uint32_t base, uint32_t* out) {
  uint32_t value = 0;
  bool is_first = *r->at == '_';
  while (*r->at != '_') {
    char c = *r->at;
    uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'A' && c <= 'Z' ? (uint32_t)(c - 'A') + 10
                                            : base;
    if (digit >= base || value > MAX_SEEN) return false;
    value = value * base + digit;
    r->at++;
  }
  r->at++;
  *out = is_first ? 0 : value + 1;
  return true;
}

// S_, S0_, St and the other short names of std.
static text_t read_substitution(reader_t* r) {
  uint32_t index;
  r->at++;
  if (demangle_take(r, 't')) return demangle_add(r, "std");
  if (demangle_take(r, 'a')) return demangle_add(r, "std::allocator");
  if (demangle_take(r, 's')) return demangle_add(r, "std::string");
  if (!demangle_read_index(r, 36, &index) || index >= r->seen_count) {
    return NONE;
  }
  return r->seen[index];
}

// T_: an argument of the function's own template.
static text_t read_template_parameter(reader_t* r) {
  uint32_t index;
  r->at++;
  if (!r->is_named || !demangle_read_index(r, 10, &index) ||
      index >= r->argument_count || *r->at == 'I') {
    return NONE;
  }
  return r->arguments[index];
}

static bool demangle_is_word(const char* text, size_t size) {
  for (size_t i = 0; i < size; i++) {
    unsigned char c = (unsigned char)text[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '_' || c == '$' || c >= 0x80;
    if (!letter && (i == 0 || c < '0' || c > '9')) return false;
  }
  return true;
}

// "3add", also "L3add" of one that is internal to its file.
static text_t read_source_name(reader_t* r) {
  static const char HIDDEN[] = "_GLOBAL__N_";
  size_t size = 0;
  (void)demangle_take(r, 'L');
  if (*r->at < '1' || *r->at > '9') return NONE;
  while (*r->at >= '0' && *r->at <= '9') {
    size = size * 10 + (size_t)(*r->at++ - '0');
    if (size >= MAX_TEXT) return NONE;
  }
  char word[MAX_TEXT];
  if (memchr(r->at, 0, size) != NULL || !demangle_is_word(r->at, size)) {
    return NONE;
  }
  memcpy(word, r->at, size);
  word[size] = 0;
  r->at += size;
  // nvcc adds a hash of the file.
  if (strncmp(word, HIDDEN, sizeof(HIDDEN) - 1) == 0) {
    return demangle_add(r, "(anonymous namespace)");
  }
  return demangle_add(r, word);
}

// ---- Arguments of templates ----

// The digits of "Li4E", with the sign and what C++ puts after them.
static text_t demangle_read_integer(reader_t* r, const char* suffix,
                                    const char* cast) {
  char digits[32];
  size_t size = 0;
  if (demangle_take(r, 'n')) digits[size++] = '-';
  while (*r->at >= '0' && *r->at <= '9' && size < sizeof(digits) - 1) {
    digits[size++] = *r->at++;
  }
  digits[size] = 0;
  if (size == 0 || digits[size - 1] == '-' || !demangle_take(r, 'E')) {
    return NONE;
  }
  if (cast == NULL) return demangle_join(r, digits, suffix, NULL, NULL);
  return demangle_join(r, "(", cast, ")", digits);
}

// L<type><value>E, after the L.
static text_t read_literal(reader_t* r) {
  static const struct {
    char letter;
    const char* suffix;
  } INTEGERS[] = {{'i', ""},   {'j', "u"},  {'l', "l"},
                  {'m', "ul"}, {'x', "ll"}, {'y', "ull"}};
  for (size_t i = 0; i < sizeof(INTEGERS) / sizeof(INTEGERS[0]); i++) {
    if (demangle_take(r, INTEGERS[i].letter)) {
      return demangle_read_integer(r, INTEGERS[i].suffix, NULL);
    }
  }
  if (demangle_take(r, 'b')) {
    bool is_true = *r->at == '1';
    if (*r->at != '0' && !is_true) return NONE;
    r->at++;
    return demangle_take(r, 'E') ? demangle_add(r, is_true ? "true" : "false")
                                 : NONE;
  }
  // Characters and values of an enum; numbers with a point are left out.
  if (strchr("fdeg_", *r->at) != NULL) return NONE;
  text_t type = demangle_read_type(r);
  if (type == NONE) return NONE;
  return demangle_read_integer(r, "", demangle_at(r, type));
}

static text_t read_arguments(reader_t* r, bool is_pack);

static text_t demangle_read_argument(reader_t* r) {
  if (demangle_take(r, 'L')) return read_literal(r);
  if (demangle_take(r, 'J')) return read_arguments(r, true);
  return demangle_read_type(r);
}

// Up to the E: "<float, 4>", or of a pack "float, 4". Those of a template are
// what T_ means from here on.
static text_t read_arguments(reader_t* r, bool is_pack) {
  text_t list[MAX_SEEN];
  uint32_t count = 0;
  text_t text = demangle_add(r, "");
  if (r->depth >= MAX_DEPTH) return NONE;
  r->depth++;
  while (text != NONE && !demangle_take(r, 'E')) {
    text_t one = count < MAX_SEEN ? demangle_read_argument(r) : NONE;
    if (one == NONE) return NONE;
    list[count++] = one;
    if (demangle_at(r, one)[0] == 0) continue;  // a pack of nothing
    text = demangle_join(r, demangle_at(r, text),
                         demangle_at(r, text)[0] != 0 ? ", " : "",
                         demangle_at(r, one), NULL);
  }
  r->depth--;
  if (text == NONE || is_pack) return text;
  if (!r->is_named) {
    memcpy(r->arguments, list, count * sizeof(list[0]));
    r->argument_count = count;
  }
  return demangle_join(r, "<", demangle_at(r, text), ">", NULL);
}

// ---- Names ----

// What is between N and E. A function itself is never a substitution; all its
// enclosing scopes are.
static text_t read_nested(reader_t* r, bool is_function) {
  text_t name = NONE;
  bool ends_in_arguments = false;
  while (!demangle_take(r, 'E')) {
    bool is_noted = true;
    ends_in_arguments = false;
    if (*r->at == 'S' && name == NONE) {
      is_noted = false;
      name = read_substitution(r);
    } else if (*r->at == 'T' && name == NONE) {
      name = read_template_parameter(r);
    } else if (*r->at == 'I' && name != NONE) {
      r->at++;
      text_t arguments = read_arguments(r, false);
      if (arguments == NONE) return NONE;
      name = demangle_join(r, demangle_at(r, name), demangle_at(r, arguments),
                           NULL, NULL);
      ends_in_arguments = true;
    } else {
      text_t part = read_source_name(r);
      if (part == NONE) return NONE;
      if (name != NONE) {
        name = demangle_join(r, demangle_at(r, name),
                             "::", demangle_at(r, part), NULL);
      } else {
        name = part;
      }
    }
    if (name == NONE) return NONE;
    if (is_function && *r->at == 'E') is_noted = false;
    if (is_noted && demangle_note(r, name) == NONE) return NONE;
  }
  if (is_function) r->is_template = ends_in_arguments;
  return name;
}

// A name without N: "3add", "St4pair", "S1_", with arguments or not.
static text_t demangle_read_plain(reader_t* r, bool is_function) {
  text_t name;
  bool is_noted = true;
  if (strncmp(r->at, "St", 2) == 0) {
    r->at += 2;
    text_t word = read_source_name(r);
    name = word == NONE
               ? NONE
               : demangle_join(r, "std::", demangle_at(r, word), NULL, NULL);
  } else if (*r->at == 'S') {
    name = read_substitution(r);
    is_noted = false;
  } else {
    name = read_source_name(r);
  }
  if (name == NONE) return NONE;
  bool has_arguments = *r->at == 'I';
  if (is_noted && (has_arguments || !is_function) &&
      demangle_note(r, name) == NONE) {
    return NONE;
  }
  if (is_function) r->is_template = has_arguments;
  if (!demangle_take(r, 'I')) return name;
  text_t arguments = read_arguments(r, false);
  if (arguments == NONE) return NONE;
  name = demangle_join(r, demangle_at(r, name), demangle_at(r, arguments), NULL,
                       NULL);
  return is_function ? name : demangle_note(r, name);
}

// ---- Types ----

static const char* builtin_name(char c) {
  switch (c) {
    case 'v':
      return "void";
    case 'w':
      return "wchar_t";
    case 'b':
      return "bool";
    case 'c':
      return "char";
    case 'a':
      return "signed char";
    case 'h':
      return "unsigned char";
    case 's':
      return "short";
    case 't':
      return "unsigned short";
    case 'i':
      return "int";
    case 'j':
      return "unsigned int";
    case 'l':
      return "long";
    case 'm':
      return "unsigned long";
    case 'x':
      return "long long";
    case 'y':
      return "unsigned long long";
    case 'n':
      return "__int128";
    case 'o':
      return "unsigned __int128";
    case 'f':
      return "float";
    case 'd':
      return "double";
    case 'e':
      return "long double";
    case 'z':
      return "...";
    default:
      return NULL;
  }
}

// K, V and r before a type, which follow it in words.
static text_t read_qualified(reader_t* r) {
  bool is_restrict = demangle_take(r, 'r');
  bool is_volatile = demangle_take(r, 'V');
  bool is_const = demangle_take(r, 'K');
  text_t inner = demangle_read_type(r);
  if (inner == NONE) return NONE;
  return demangle_note(
      r, demangle_join(r, demangle_at(r, inner), is_const ? " const" : "",
                       is_volatile ? " volatile" : "",
                       is_restrict ? " __restrict" : ""));
}

// D and one more letter.
static text_t read_long_builtin(reader_t* r) {
  static const char* const NAMES[][2] = {
      {"Dn", "decltype(nullptr)"}, {"Di", "char32_t"}, {"Ds", "char16_t"},
      {"Du", "char8_t"},           {"Dh", "half"},     {"DF16_", "_Float16"}};
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
    size_t size = strlen(NAMES[i][0]);
    if (strncmp(r->at, NAMES[i][0], size) != 0) continue;
    r->at += size;
    return demangle_add(r, NAMES[i][1]);
  }
  // A pack of parameters: "Dp" and the pack of types, as it is written out.
  if (strncmp(r->at, "DpT", 3) != 0) return NONE;
  r->at += 2;
  return demangle_note(r, demangle_note(r, read_template_parameter(r)));
}

static text_t read_type_inside(reader_t* r) {
  const char* name = builtin_name(*r->at);
  const char* mark = *r->at == 'P'   ? "*"
                     : *r->at == 'R' ? "&"
                     : *r->at == 'O' ? "&&"
                                     : NULL;
  if (name != NULL) {
    r->at++;
    return demangle_add(r, name);
  }
  if (mark != NULL) {
    r->at++;
    text_t inner = demangle_read_type(r);
    if (inner == NONE) return NONE;
    return demangle_note(
        r, demangle_join(r, demangle_at(r, inner), mark, NULL, NULL));
  }
  switch (*r->at) {
    case 'r':
    case 'V':
    case 'K':
      return read_qualified(r);
    case 'D':
      return read_long_builtin(r);
    case 'T':
      return demangle_note(r, read_template_parameter(r));
    case 'N':
      r->at++;
      return read_nested(r, false);
    case 'u':
      r->at++;
      return demangle_note(r, read_source_name(r));
    default:
      return demangle_read_plain(r, false);
  }
}

static text_t demangle_read_type(reader_t* r) {
  if (r->depth >= MAX_DEPTH) return NONE;
  r->depth++;
  text_t type = read_type_inside(r);
  r->depth--;
  return type;
}

// ---- All of it ----

// The types of the parameters, up to the end of the name: "(float*, int)".
static text_t demangle_read_parameters(reader_t* r) {
  if (r->is_template && demangle_read_type(r) == NONE) return NONE;
  if (strcmp(r->at, "v") == 0) return demangle_add(r, "()");
  text_t text = demangle_add(r, "");
  while (text != NONE && *r->at != 0) {
    text_t one = demangle_read_type(r);
    if (one == NONE) return NONE;
    if (demangle_at(r, one)[0] == 0) continue;  // a pack of nothing
    text = demangle_join(r, demangle_at(r, text),
                         demangle_at(r, text)[0] != 0 ? ", " : "",
                         demangle_at(r, one), NULL);
  }
  return text == NONE ? NONE
                      : demangle_join(r, "(", demangle_at(r, text), ")", NULL);
}

static bool demangle_write_text(const char* text, size_t* inout_used,
                                size_t capacity, char* out) {
  size_t size = strlen(text);
  if (size >= capacity - *inout_used) return false;
  memcpy(out + *inout_used, text, size + 1);
  *inout_used += size;
  return true;
}

bool kilni_base_demangle(const char* name, bool with_parameters,
                         size_t capacity, char* out) {
  reader_t r;
  size_t used = 0;
  if (capacity == 0 || out == NULL) return false;
  out[0] = 0;
  if (name == NULL || strncmp(name, "_Z", 2) != 0) return false;
  memset(&r, 0, offsetof(reader_t, seen));
  r.is_template = r.is_named = false;
  r.at = name + 2;
  text_t text = demangle_take(&r, 'N') ? read_nested(&r, true)
                                       : demangle_read_plain(&r, true);
  if (text == NONE) return false;
  r.is_named = true;
  // A name without parameters is one of data.
  bool has_parameters = *r.at != 0;
  text_t list = has_parameters ? demangle_read_parameters(&r) : text;
  // Either form reads the same names.
  if (list == NONE ||
      (has_parameters &&
       strlen(demangle_at(&r, text)) + strlen(demangle_at(&r, list)) >=
           MAX_TEXT)) {
    return false;
  }
  bool shows = has_parameters && with_parameters;
  bool ok = demangle_write_text(demangle_at(&r, text), &used, capacity, out) &&
            (!shows ||
             demangle_write_text(demangle_at(&r, list), &used, capacity, out));
  if (!ok) out[0] = 0;
  return ok;
}
