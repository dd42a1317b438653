// SPDX-License-Identifier: Apache-2.0
//
// locate: readers of versions, headers, RECORD, METADATA and version.json.
#include <string.h>

#include "base/str.h"
#include "locate/locate_facts_parse.h"

static bool facts_parse_is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool facts_parse_is_blank(char c) {
  return c == ' ' || c == '\t';
}

static bool facts_parse_is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         facts_parse_is_digit(c) || c == '_';
}

static kiln_string_view_t facts_parse_skip(kiln_string_view_t text,
                                           size_t count) {
  return kilni_base_sv_make(text.data + count, text.size - count);
}

static kiln_string_view_t facts_parse_trim(kiln_string_view_t text) {
  while (text.size > 0 && (facts_parse_is_blank(text.data[0]) ||
                           text.data[0] == '\n' || text.data[0] == '\r')) {
    text = facts_parse_skip(text, 1);
  }
  while (text.size > 0) {
    char last = text.data[text.size - 1];
    if (!facts_parse_is_blank(last) && last != '\n' && last != '\r') break;
    text.size--;
  }
  return text;
}

// ---- Versions ----

// The number at the front of a text, which it is cut off; false without one or
// above `limit`.
static bool cut_number(kiln_string_view_t* inout, uint64_t limit,
                       uint64_t* out_value) {
  size_t count = 0;
  uint64_t value = 0;
  while (count < inout->size && facts_parse_is_digit(inout->data[count])) {
    value = value * 10 + (uint64_t)(inout->data[count] - '0');
    if (value > limit) return false;
    count++;
  }
  *inout = facts_parse_skip(*inout, count);
  *out_value = value;
  return count > 0;
}

static uint32_t facts_parse_line_of(uint64_t major, uint64_t minor) {
  if (major == 0 || major > KILNI_PARSE_MAX_MAJOR ||
      minor > KILNI_PARSE_MAX_MINOR) {
    return 0;
  }
  return (uint32_t)(major * 1000 + minor * 10);
}

uint32_t kilni_locate_line_of_number(uint64_t number) {
  return facts_parse_line_of(number / 1000, number % 1000 / 10);
}

uint32_t kilni_locate_line_of_digits(kiln_string_view_t text) {
  uint64_t number;
  if (!cut_number(&text, UINT32_MAX, &number) || text.size > 0) return 0;
  return kilni_locate_line_of_number(number);
}

uint32_t kilni_locate_line_of_version(kiln_string_view_t text) {
  uint64_t major;
  uint64_t minor;
  if (!cut_number(&text, KILNI_PARSE_MAX_MAJOR, &major)) return 0;
  if (text.size == 0 || text.data[0] != '.') return 0;
  text = facts_parse_skip(text, 1);
  if (!cut_number(&text, KILNI_PARSE_MAX_MINOR, &minor)) return 0;
  return facts_parse_line_of(major, minor);
}

uint32_t kilni_locate_line_of_symbol(kiln_string_view_t name) {
  size_t at = name.size;
  while (at > 0 && facts_parse_is_digit(name.data[at - 1])) at--;
  if (at == name.size || at == 0 || name.data[at - 1] != '_') return 0;
  kiln_string_view_t minor_text = facts_parse_skip(name, at);
  size_t end = at - 1;
  at = end;
  while (at > 0 && facts_parse_is_digit(name.data[at - 1])) at--;
  if (at == end || at == 0 || name.data[at - 1] != '_') return 0;
  kiln_string_view_t major_text = kilni_base_sv_make(name.data + at, end - at);
  uint64_t major;
  uint64_t minor;
  if (!cut_number(&major_text, KILNI_PARSE_MAX_MAJOR, &major) ||
      !cut_number(&minor_text, KILNI_PARSE_MAX_MINOR, &minor)) {
    return 0;
  }
  return facts_parse_line_of(major, minor);
}

kiln_string_view_t kilni_locate_version_at(kiln_string_view_t text) {
  size_t size = 0;
  while (size < text.size &&
         (facts_parse_is_digit(text.data[size]) || text.data[size] == '.')) {
    size++;
  }
  while (size > 0 && text.data[size - 1] == '.') size--;
  return kilni_base_sv_make(text.data, size);
}

// ---- C headers ----

static kiln_string_view_t facts_parse_skip_blanks(kiln_string_view_t text) {
  while (text.size > 0 && facts_parse_is_blank(text.data[0])) {
    text = facts_parse_skip(text, 1);
  }
  return text;
}

// `word` at the start, then something that is not part of a name.
static bool cut_word(kiln_string_view_t* inout, const char* word) {
  size_t size = strlen(word);
  if (inout->size < size || memcmp(inout->data, word, size) != 0) return false;
  if (inout->size > size && facts_parse_is_name(inout->data[size])) {
    return false;
  }
  *inout = facts_parse_skip(*inout, size);
  return true;
}

static bool define_in_line(kiln_string_view_t line, const char* name,
                           uint64_t* out_value) {
  line = facts_parse_skip_blanks(line);
  if (line.size == 0 || line.data[0] != '#') return false;
  line = facts_parse_skip_blanks(facts_parse_skip(line, 1));
  if (!cut_word(&line, "define")) return false;
  if (line.size == 0 || !facts_parse_is_blank(line.data[0])) return false;
  line = facts_parse_skip_blanks(line);
  if (!cut_word(&line, name)) return false;
  if (line.size == 0 || !facts_parse_is_blank(line.data[0])) return false;
  line = facts_parse_skip_blanks(line);
  if (!cut_number(&line, UINT32_MAX, out_value)) return false;
  return line.size == 0 || !facts_parse_is_name(line.data[0]);
}

bool kilni_locate_define_find(kiln_string_view_t text, const char* name,
                              uint64_t* out_value) {
  *out_value = 0;
  kiln_string_view_t line;
  while (kilni_base_sv_split(&text, '\n', &line)) {
    uint64_t value;
    if (define_in_line(line, name, &value)) {
      *out_value = value;
      return true;
    }
  }
  return false;
}

// ---- RECORD ----

// Cuts a line off, without its end, which may be CR LF.
static kiln_string_view_t facts_parse_cut_line(kiln_string_view_t* inout) {
  const char* end =
      inout->size > 0 ? memchr(inout->data, '\n', inout->size) : NULL;
  size_t size = end != NULL ? (size_t)(end - inout->data) : inout->size;
  kiln_string_view_t line = kilni_base_sv_make(inout->data, size);
  *inout = facts_parse_skip(*inout, end != NULL ? size + 1 : size);
  if (line.size > 0 && line.data[line.size - 1] == '\r') line.size--;
  return line;
}

// A quoted path may hold line ends, so its end is sought in the whole rest.
// False, with nothing cut, where it is not terminated.
static bool cut_quoted(kiln_string_view_t* inout,
                       kilni_locate_record_row_t* row) {
  kiln_string_view_t rest = facts_parse_skip(*inout, 1);
  for (size_t at = 0; at < rest.size && at <= KILNI_PARSE_MAX_PATH; at++) {
    if (rest.data[at] != '"') continue;
    if (at + 1 < rest.size && rest.data[at + 1] == '"') {
      row->is_doubled = true;
      at++;
      continue;
    }
    row->path = kilni_base_sv_make(rest.data, at);
    *inout = facts_parse_skip(rest, at + 1);
    return true;
  }
  return false;
}

// The fields after the path: ",hash,size". Hash and size need no quotes.
static bool read_tail(kiln_string_view_t line, kilni_locate_record_row_t* row) {
  if (line.size == 0 || line.data[0] != ',') return false;
  line = facts_parse_skip(line, 1);
  const char* comma = line.size > 0 ? memchr(line.data, ',', line.size) : NULL;
  if (comma == NULL) return false;
  size_t hash = (size_t)(comma - line.data);
  row->hash = kilni_base_sv_make(line.data, hash);
  row->size = facts_parse_skip(line, hash + 1);
  return row->size.size == 0 ||
         memchr(row->size.data, ',', row->size.size) == NULL;
}

bool kilni_locate_record_next(kiln_string_view_t* inout,
                              kilni_locate_record_row_t* out_row) {
  memset(out_row, 0, sizeof(*out_row));
  while (inout->size > 0 &&
         (inout->data[0] == '\n' || inout->data[0] == '\r')) {
    *inout = facts_parse_skip(*inout, 1);
  }
  if (inout->size == 0) return false;
  if (inout->data[0] == '"') {
    bool ended = cut_quoted(inout, out_row);
    kiln_string_view_t line = facts_parse_cut_line(inout);
    out_row->is_broken = !ended || !read_tail(line, out_row);
    return true;
  }
  kiln_string_view_t line = facts_parse_cut_line(inout);
  const char* comma = line.size > 0 ? memchr(line.data, ',', line.size) : NULL;
  size_t size = comma != NULL ? (size_t)(comma - line.data) : 0;
  out_row->path = kilni_base_sv_make(line.data, size);
  out_row->is_broken = size == 0 || size > KILNI_PARSE_MAX_PATH ||
                       !read_tail(facts_parse_skip(line, size), out_row);
  return true;
}

size_t kilni_locate_record_path(const kilni_locate_record_row_t* row,
                                size_t capacity, char* out_path) {
  kiln_string_view_t path = row->path;
  size_t size = 0;
  for (size_t at = 0; at < path.size; at++) {
    if (size == capacity) return SIZE_MAX;
    out_path[size++] = path.data[at];
    if (row->is_doubled && path.data[at] == '"') at++;
  }
  return size;
}

// ---- METADATA ----

static bool is_field_name(kiln_string_view_t name) {
  for (size_t i = 0; i < name.size; i++) {
    if (name.data[i] <= ' ' || name.data[i] == 127) return false;
  }
  return name.size > 0;
}

bool kilni_locate_metadata_next(kiln_string_view_t* inout,
                                kilni_locate_metadata_field_t* out_field,
                                size_t* inout_broken) {
  memset(out_field, 0, sizeof(*out_field));
  while (inout->size > 0) {
    kiln_string_view_t line = facts_parse_cut_line(inout);
    if (line.size == 0) {
      // What follows is the description.
      inout->size = 0;
      return false;
    }
    const char* colon = memchr(line.data, ':', line.size);
    size_t size = colon != NULL ? (size_t)(colon - line.data) : 0;
    kiln_string_view_t name = kilni_base_sv_make(line.data, size);
    if (!is_field_name(name)) {
      if (inout_broken != NULL) ++*inout_broken;
      continue;
    }
    const char* end = line.data + line.size;
    while (inout->size > 0 && facts_parse_is_blank(inout->data[0])) {
      kiln_string_view_t more = facts_parse_cut_line(inout);
      end = more.data + more.size;
    }
    const char* value = line.data + size + 1;
    out_field->name = name;
    out_field->value =
        facts_parse_trim(kilni_base_sv_make(value, (size_t)(end - value)));
    return true;
  }
  return false;
}

static char facts_parse_lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool kilni_locate_metadata_is(const kilni_locate_metadata_field_t* field,
                              const char* name) {
  if (field->name.size != strlen(name)) return false;
  for (size_t i = 0; i < field->name.size; i++) {
    if (facts_parse_lower(field->name.data[i]) != facts_parse_lower(name[i])) {
      return false;
    }
  }
  return true;
}

static bool facts_parse_is_dash(char c) {
  return c == '-' || c == '_' || c == '.';
}

size_t kilni_locate_name_normalise(kiln_string_view_t name, size_t capacity,
                                   char* out_name) {
  size_t size = 0;
  for (size_t i = 0; i < name.size && size + 1 < capacity; i++) {
    char c = facts_parse_lower(name.data[i]);
    if (facts_parse_is_dash(c)) {
      if (size > 0 && out_name[size - 1] == '-') continue;
      c = '-';
    }
    out_name[size++] = c;
  }
  if (capacity > 0) out_name[size] = 0;
  return size;
}

// Cuts "[a,b]" off the front; false if it has no end.
static bool cut_extras(kiln_string_view_t* inout) {
  if (inout->size == 0 || inout->data[0] != '[') return true;
  const char* end = memchr(inout->data, ']', inout->size);
  if (end == NULL) return false;
  *inout = facts_parse_trim(
      facts_parse_skip(*inout, (size_t)(end - inout->data) + 1));
  return true;
}

// A specifier, with or without the brackets of old metadata.
static bool is_specifier(kiln_string_view_t* inout) {
  kiln_string_view_t text = *inout;
  if (text.size >= 2 && text.data[0] == '(' &&
      text.data[text.size - 1] == ')') {
    text = facts_parse_trim(kilni_base_sv_make(text.data + 1, text.size - 2));
  }
  *inout = text;
  if (text.size == 0) return true;
  return memchr("<>=!~", text.data[0], 5) != NULL;
}

bool kilni_locate_requirement_read(
    kiln_string_view_t text, kilni_locate_requirement_t* out_requirement) {
  memset(out_requirement, 0, sizeof(*out_requirement));
  out_requirement->specifier = out_requirement->marker = kilni_base_sv("");
  text = facts_parse_trim(text);
  size_t size = 0;
  while (size < text.size && (facts_parse_is_name(text.data[size]) ||
                              facts_parse_is_dash(text.data[size]))) {
    size++;
  }
  if (size == 0 || size > KILNI_PARSE_MAX_NAME) return false;
  if (facts_parse_is_dash(text.data[0]) ||
      facts_parse_is_dash(text.data[size - 1])) {
    return false;
  }
  out_requirement->name = kilni_base_sv_make(text.data, size);
  kiln_string_view_t rest = facts_parse_trim(facts_parse_skip(text, size));
  if (!cut_extras(&rest)) return false;
  bool by_address = rest.size > 0 && rest.data[0] == '@';
  const char* semicolon =
      rest.size > 0 ? memchr(rest.data, ';', rest.size) : NULL;
  if (semicolon != NULL) {
    size_t before = (size_t)(semicolon - rest.data);
    out_requirement->marker =
        facts_parse_trim(facts_parse_skip(rest, before + 1));
    rest = facts_parse_trim(kilni_base_sv_make(rest.data, before));
  }
  if (by_address) return true;
  if (!is_specifier(&rest)) return false;
  if (rest.size > 0) out_requirement->specifier = rest;
  return true;
}

// ---- JSON ----

static kiln_string_view_t json_blanks(kiln_string_view_t text) {
  while (text.size > 0 && (facts_parse_is_blank(text.data[0]) ||
                           text.data[0] == '\n' || text.data[0] == '\r')) {
    text = facts_parse_skip(text, 1);
  }
  return text;
}

bool kilni_locate_json_cut(kiln_string_view_t* inout, char wanted) {
  *inout = json_blanks(*inout);
  if (inout->size == 0 || inout->data[0] != wanted) return false;
  *inout = facts_parse_skip(*inout, 1);
  return true;
}

bool kilni_locate_json_string(kiln_string_view_t* inout,
                              kiln_string_view_t* out_text) {
  if (!kilni_locate_json_cut(inout, '"')) return false;
  for (size_t at = 0; at < inout->size; at++) {
    char c = inout->data[at];
    if (c == '\n') return false;
    if (c == '\\') {
      at++;
    } else if (c == '"') {
      *out_text = kilni_base_sv_make(inout->data, at);
      *inout = facts_parse_skip(*inout, at + 1);
      return true;
    }
  }
  return false;
}

// Brackets are only counted: what is skipped need not be right, but must have
// an end.
bool kilni_locate_json_skip(kiln_string_view_t* inout) {
  size_t depth = 0;
  do {
    *inout = json_blanks(*inout);
    if (inout->size == 0) return false;
    char c = inout->data[0];
    kiln_string_view_t text;
    if (c == '"') {
      if (!kilni_locate_json_string(inout, &text)) return false;
      continue;
    }
    if (c == '{' || c == '[') {
      if (++depth > KILNI_PARSE_MAX_NESTING) return false;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return false;
      depth--;
    } else if (depth == 0) {
      if (c == ',' || c == ':') return false;
      while (inout->size > 0 && inout->data[0] != ',' &&
             inout->data[0] != '}' && inout->data[0] != ']') {
        *inout = facts_parse_skip(*inout, 1);
      }
      return true;
    }
    *inout = facts_parse_skip(*inout, 1);
  } while (depth > 0);
  return true;
}

// Leaves `inout` at the value of `key` in the object that begins there.
static bool json_enter(kiln_string_view_t* inout, const char* key) {
  if (!kilni_locate_json_cut(inout, '{')) return false;
  for (;;) {
    kiln_string_view_t name;
    if (!kilni_locate_json_string(inout, &name) ||
        !kilni_locate_json_cut(inout, ':')) {
      return false;
    }
    if (kilni_base_sv_equal_cstr(name, key)) return true;
    if (!kilni_locate_json_skip(inout) || !kilni_locate_json_cut(inout, ',')) {
      return false;
    }
  }
}

bool kilni_locate_json_find(kiln_string_view_t text, const char* outer,
                            const char* inner, kiln_string_view_t* out_text) {
  *out_text = kilni_base_sv("");
  return json_enter(&text, outer) && json_enter(&text, inner) &&
         kilni_locate_json_string(&text, out_text);
}
