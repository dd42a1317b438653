// SPDX-License-Identifier: Apache-2.0
//
// base: names of C++ functions as their source has them: what the Itanium C++
// ABI says of names of functions, their parameters and template arguments.
//
// Each rule appends what it reads to the text. What the ABI lets later parts
// refer to (S0_) is remembered as text; so are the arguments of the function's
// template (T_). What is not known is no error: the caller shows the mangled
// name.
#include "base/demangle.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 2048, PARTS = 64, ARGUMENTS = 32, DEPTH = 48 };

// A stretch of `kept`. one-thread
typedef struct part_t {
  size_t at;
  size_t size;
} part_t;

typedef struct reader_t {
  const char* at;
  uint32_t depth;
  bool bad;
  char text[TEXT_BYTES];
  size_t size;
  char kept[2 * TEXT_BYTES];
  size_t kept_size;
  part_t parts[PARTS];  // that S_ refers to
  size_t part_count;
  part_t arguments[ARGUMENTS];  // that T_ refers to
  size_t argument_count;
} reader_t;

static bool read_type(reader_t* r);

static bool fail(reader_t* r) {
  r->bad = true;
  return false;
}

static bool add_n(reader_t* r, const char* text, size_t size) {
  if (size >= sizeof(r->text) - r->size) return fail(r);
  memcpy(r->text + r->size, text, size);
  r->size += size;
  return true;
}

static bool add(reader_t* r, const char* text) {
  return add_n(r, text, strlen(text));
}

static bool insert(reader_t* r, size_t at, const char* text) {
  size_t size = strlen(text);
  if (size >= sizeof(r->text) - r->size) return fail(r);
  memmove(r->text + at + size, r->text + at, r->size - at);
  memcpy(r->text + at, text, size);
  r->size += size;
  return true;
}

static bool keep(reader_t* r, size_t from, part_t* out_part) {
  size_t size = r->size - from;
  if (size > sizeof(r->kept) - r->kept_size) return fail(r);
  memcpy(r->kept + r->kept_size, r->text + from, size);
  *out_part = (part_t){r->kept_size, size};
  r->kept_size += size;
  return true;
}

// What was appended since `from` is the next that S_ may refer to.
static bool remember(reader_t* r, size_t from) {
  if (r->part_count == PARTS) return fail(r);
  return keep(r, from, &r->parts[r->part_count]) && ++r->part_count > 0;
}

static bool accept(reader_t* r, char c) {
  if (*r->at != c) return false;
  r->at++;
  return true;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool read_number(reader_t* r, size_t* out) {
  if (!is_digit(*r->at)) return fail(r);
  *out = 0;
  while (is_digit(*r->at) && *out < TEXT_BYTES) {
    *out = *out * 10 + (size_t)(*r->at++ - '0');
  }
  return true;
}

// <length> <identifier>
static bool read_source_name(reader_t* r) {
  static const char kAnonymous[] = "_GLOBAL__N_";
  size_t size;
  if (!read_number(r, &size) || memchr(r->at, 0, size) != NULL) return fail(r);
  const char* name = r->at;
  r->at += size;
  if (size >= sizeof(kAnonymous) - 1 &&
      memcmp(name, kAnonymous, sizeof(kAnonymous) - 1) == 0) {
    return add(r, "(anonymous namespace)");
  }
  return add_n(r, name, size);
}

// "_" is 0, "0_" is 1, "Z_" is 36.
static bool read_sequence(reader_t* r, size_t base, size_t* out) {
  size_t value = 0;
  if (accept(r, '_')) {
    *out = 0;
    return true;
  }
  while (*r->at != '_') {
    char c = *r->at++;
    size_t digit = base;
    if (is_digit(c)) digit = (size_t)(c - '0');
    if (c >= 'A' && c <= 'Z') digit = (size_t)(c - 'A') + 10;
    if (digit >= base || value > TEXT_BYTES) return fail(r);
    value = value * base + digit;
  }
  r->at++;
  *out = value + 1;
  return true;
}

static bool add_kept(reader_t* r, const part_t* list, size_t count, size_t at) {
  if (at >= count) return fail(r);
  return add_n(r, r->kept + list[at].at, list[at].size);
}

// Behind the S: of the standard library, or what was remembered.
static bool read_substitution(reader_t* r) {
  static const char* const kStandard[][2] = {
      {"a", "std::allocator"}, {"b", "std::basic_string"},
      {"s", "std::string"},    {"i", "std::istream"},
      {"o", "std::ostream"},   {"d", "std::iostream"}};
  for (size_t i = 0; i < sizeof(kStandard) / sizeof(kStandard[0]); i++) {
    if (accept(r, kStandard[i][0][0])) return add(r, kStandard[i][1]);
  }
  size_t at;
  return read_sequence(r, 36, &at) && add_kept(r, r->parts, r->part_count, at);
}

// ---- Template arguments ----

// L <type> <value> E
static bool read_literal(reader_t* r) {
  char type = *r->at;
  size_t from = r->size;
  if (!read_type(r)) return false;
  bool plain = type == 'i' || type == 'j' || type == 'l' || type == 'm' ||
               type == 'b' || type == 'x' || type == 'y';
  if (plain) {
    r->size = from;
  } else if (!insert(r, from, "(") || !add(r, ")")) {
    return false;
  }
  if (type == 'b') {
    bool is_true = *r->at == '1';
    if (*r->at != '0' && !is_true) return fail(r);
    r->at++;
    return add(r, is_true ? "true" : "false") && (accept(r, 'E') || fail(r));
  }
  if (accept(r, 'n') && !add(r, "-")) return false;
  const char* digits = r->at;
  while (is_digit(*r->at)) r->at++;
  if (r->at == digits) return fail(r);
  return add_n(r, digits, (size_t)(r->at - digits)) &&
         (type != 'j' || add(r, "u")) && (accept(r, 'E') || fail(r));
}

static bool read_arguments(reader_t* r, bool of_function);

// A pack is its members with commas between them.
static bool read_argument(reader_t* r) {
  if (accept(r, 'L')) return read_literal(r);
  if (!accept(r, 'J')) return read_type(r);
  for (bool first = true; !accept(r, 'E'); first = false) {
    if (!first && !add(r, ", ")) return false;
    if (!read_argument(r)) return false;
  }
  return true;
}

// Behind the I: "<" arguments ">".
static bool read_arguments(reader_t* r, bool of_function) {
  part_t list[ARGUMENTS];
  size_t count = 0;
  if (!add(r, "<")) return false;
  while (!accept(r, 'E')) {
    if (count == ARGUMENTS || (count > 0 && !add(r, ", "))) return fail(r);
    size_t from = r->size;
    if (!read_argument(r) || !keep(r, from, &list[count])) return false;
    count++;
  }
  if (of_function) {
    memcpy(r->arguments, list, count * sizeof(list[0]));
    r->argument_count = count;
  }
  return add(r, ">");
}

// ---- Names ----

// Behind the N: parts, each of which S_ may refer to but for the whole.
static bool read_nested(reader_t* r, bool of_function, bool* out_template) {
  size_t from = r->size;
  while (*r->at == 'r' || *r->at == 'V' || *r->at == 'K') r->at++;
  for (bool first = true; !accept(r, 'E'); first = false) {
    bool known = false;
    *out_template = false;
    if (accept(r, 'I')) {
      if (first || !read_arguments(r, of_function)) return fail(r);
      *out_template = true;
    } else {
      if (!first && !add(r, "::")) return false;
      (void)accept(r, 'L');
      if (first && r->at[0] == 'S' && r->at[1] == 't') {
        r->at += 2;
        known = true;
        if (!add(r, "std")) return false;
      } else if (first && accept(r, 'S')) {
        known = true;
        if (!read_substitution(r)) return false;
      } else if (!read_source_name(r)) {
        return false;
      }
    }
    if (!known && *r->at != 'E' && !remember(r, from)) return false;
  }
  return true;
}

// `*out_template`: it ends with template arguments.
static bool read_name(reader_t* r, bool of_function, bool* out_template) {
  size_t from = r->size;
  bool known = false;
  *out_template = false;
  if (accept(r, 'N')) return read_nested(r, of_function, out_template);
  (void)accept(r, 'L');
  if (r->at[0] == 'S' && r->at[1] == 't') {
    r->at += 2;
    if (!add(r, "std::") || !read_source_name(r)) return false;
  } else if (accept(r, 'S')) {
    known = true;
    if (!read_substitution(r)) return false;
  } else if (!read_source_name(r)) {
    return false;
  }
  if (!accept(r, 'I')) return true;
  *out_template = true;
  return (known || remember(r, from)) && read_arguments(r, of_function);
}

// ---- Types ----

static const char* builtin(char c) {
  static const char* const kNames[26] = {
      ['a' - 'a'] = "signed char", ['b' - 'a'] = "bool",
      ['c' - 'a'] = "char",        ['d' - 'a'] = "double",
      ['e' - 'a'] = "long double", ['f' - 'a'] = "float",
      ['g' - 'a'] = "__float128",  ['h' - 'a'] = "unsigned char",
      ['i' - 'a'] = "int",         ['j' - 'a'] = "unsigned int",
      ['l' - 'a'] = "long",        ['m' - 'a'] = "unsigned long",
      ['n' - 'a'] = "__int128",    ['o' - 'a'] = "unsigned __int128",
      ['s' - 'a'] = "short",       ['t' - 'a'] = "unsigned short",
      ['v' - 'a'] = "void",        ['w' - 'a'] = "wchar_t",
      ['x' - 'a'] = "long long",   ['y' - 'a'] = "unsigned long long",
      ['z' - 'a'] = "..."};
  return c >= 'a' && c <= 'z' ? kNames[c - 'a'] : NULL;
}

static bool read_pointer(reader_t* r, size_t from, const char* mark) {
  r->at++;
  return read_type(r) && add(r, mark) && remember(r, from);
}

// What is said of a type before its name, of a pointer behind it.
static bool read_qualified(reader_t* r, size_t from, const char* word) {
  char text[16];
  r->at++;
  if (!read_type(r)) return false;
  char last = r->text[r->size - 1];
  bool behind = last == '*' || last == '&';
  (void)snprintf(text, sizeof(text), behind ? " %s" : "%s ", word);
  return (behind ? add(r, text) : insert(r, from, text)) && remember(r, from);
}

static bool read_template_parameter(reader_t* r, size_t from) {
  size_t at;
  r->at++;
  return read_sequence(r, 10, &at) &&
         add_kept(r, r->arguments, r->argument_count, at) && remember(r, from);
}

static bool read_class(reader_t* r, size_t from) {
  bool is_template;
  bool known = r->at[0] == 'S' && r->at[1] != 't';
  return read_name(r, false, &is_template) &&
         ((known && !is_template) || remember(r, from));
}

static bool read_type_inner(reader_t* r) {
  size_t from = r->size;
  const char* name = builtin(*r->at);
  if (name != NULL) {
    r->at++;
    return add(r, name);
  }
  switch (*r->at) {
    case 'P':
      return read_pointer(r, from, "*");
    case 'R':
      return read_pointer(r, from, "&");
    case 'O':
      return read_pointer(r, from, "&&");
    case 'K':
      return read_qualified(r, from, "const");
    case 'V':
      return read_qualified(r, from, "volatile");
    case 'r':  // __restrict__, which says nothing of the type
      r->at++;
      return read_type(r) && remember(r, from);
    case 'T':
      return read_template_parameter(r, from);
    case 'u':  // a type of the compiler's own
      r->at++;
      return read_source_name(r) && remember(r, from);
    case 'D':
      if (r->at[1] != 'p') return fail(r);
      r->at += 2;
      return read_type(r) && remember(r, from);
    default:
      return read_class(r, from);
  }
}

static bool read_type(reader_t* r) {
  if (r->depth == DEPTH) return fail(r);
  r->depth++;
  bool ok = read_type_inner(r);
  r->depth--;
  return ok;
}

// ---- Functions ----

static bool read_function(reader_t* r) {
  bool is_template;
  if (strncmp(r->at, "_Z", 2) != 0) return fail(r);
  r->at += 2;
  if (!read_name(r, true, &is_template)) return false;
  size_t name = r->size;
  if (is_template) {  // these say what they return
    if (!read_type(r)) return false;
    r->size = name;
  }
  if (*r->at == 0) return fail(r);
  if (strcmp(r->at, "v") == 0) return add(r, "()");
  if (!add(r, "(")) return false;
  for (bool first = true; *r->at != 0; first = false) {
    if (!first && !add(r, ", ")) return false;
    if (!read_type(r)) return false;
  }
  return add(r, ")");
}

bool kilni_demangle(const char* mangled, char* out_text, size_t capacity) {
  reader_t r;
  r.at = mangled;
  r.depth = 0;
  r.bad = false;
  r.size = 0;
  r.kept_size = 0;
  r.part_count = 0;
  r.argument_count = 0;
  bool ok = read_function(&r) && !r.bad;
  r.text[ok ? r.size : 0] = 0;
  if (capacity > 0) {
    (void)snprintf(out_text, capacity, "%s", ok ? r.text : mangled);
  }
  return ok;
}
