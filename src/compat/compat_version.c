// SPDX-License-Identifier: Apache-2.0
//
// compat: versions as PEP 440 has them, read and ordered.
#include "base/str.h"
#include "compat/compat_version.h"

#include <string.h>

#include "base/status_make.h"

// ---- Reading ----

static bool version_is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
}

static bool version_is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_separator(char c) {
  return c == '-' || c == '_' || c == '.';
}

static char version_lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_local_char(char c) {
  return version_is_digit(c) ||
         (version_lower(c) >= 'a' && version_lower(c) <= 'z');
}

kiln_string_view_t kilni_compat_version_trim(kiln_string_view_t text) {
  while (text.size > 0 && version_is_blank(text.data[0])) {
    text.data++;
    text.size--;
  }
  while (text.size > 0 && version_is_blank(text.data[text.size - 1])) {
    text.size--;
  }
  return text;
}

// A place in a text. one-thread
typedef struct cursor_t {
  const char* at;
  const char* end;
} cursor_t;

static char version_peek(const cursor_t* cursor, size_t ahead) {
  size_t left = (size_t)(cursor->end - cursor->at);
  return ahead < left ? cursor->at[ahead] : '\0';
}

static kiln_string_view_t version_take_digits(cursor_t* cursor) {
  const char* start = cursor->at;
  while (version_is_digit(version_peek(cursor, 0))) cursor->at++;
  return kilni_base_sv_make(start, (size_t)(cursor->at - start));
}

// Moves past `word` (lower case) if the text goes on with it.
static bool version_take_word(cursor_t* cursor, const char* word) {
  size_t size = strlen(word);
  for (size_t i = 0; i < size; i++) {
    if (version_lower(version_peek(cursor, i)) != word[i]) return false;
  }
  cursor->at += size;
  return true;
}

// A word and its letter in normal form.
typedef struct word_t {
  const char* word;
  char letter;
} word_t;

// [separator] word [separator] [digits], the first word that fits.
static char take_part(cursor_t* cursor, const word_t* words,
                      kiln_string_view_t* out_number) {
  cursor_t inside = *cursor;
  if (is_separator(version_peek(&inside, 0))) inside.at++;
  for (; words->word != NULL; words++) {
    if (!version_take_word(&inside, words->word)) continue;
    if (is_separator(version_peek(&inside, 0))) inside.at++;
    *out_number = version_take_digits(&inside);
    *cursor = inside;
    return words->letter;
  }
  return 0;
}

static const word_t kPreWords[] = {
    {"alpha", 'a'}, {"beta", 'b'}, {"preview", 'c'}, {"pre", 'c'}, {"a", 'a'},
    {"b", 'b'},     {"c", 'c'},    {"rc", 'c'},      {NULL, 0}};
static const word_t kPostWords[] = {
    {"post", 'p'}, {"rev", 'p'}, {"r", 'p'}, {NULL, 0}};
static const word_t kDevWords[] = {{"dev", 'd'}, {NULL, 0}};

static bool version_take_release(cursor_t* cursor,
                                 kilni_compat_version_t* version) {
  if (version_lower(version_peek(cursor, 0)) == 'v') cursor->at++;
  kiln_string_view_t first = version_take_digits(cursor);
  if (first.size == 0) return false;
  if (version_peek(cursor, 0) == '!') {
    version->epoch = first;
    cursor->at++;
    first = version_take_digits(cursor);
    if (first.size == 0) return false;
  }
  while (version_peek(cursor, 0) == '.' &&
         version_is_digit(version_peek(cursor, 1))) {
    cursor->at++;
    version_take_digits(cursor);
  }
  version->release =
      kilni_base_sv_make(first.data, (size_t)(cursor->at - first.data));
  return true;
}

static void take_suffixes(cursor_t* cursor, kilni_compat_version_t* version) {
  version->pre_letter = take_part(cursor, kPreWords, &version->pre);
  if (version_peek(cursor, 0) == '-' &&
      version_is_digit(version_peek(cursor, 1))) {
    cursor->at++;
    version->post = version_take_digits(cursor);
    version->has_post = true;
  } else {
    version->has_post = take_part(cursor, kPostWords, &version->post) != 0;
  }
  version->has_dev = take_part(cursor, kDevWords, &version->dev) != 0;
}

static bool take_local(cursor_t* cursor, kilni_compat_version_t* version) {
  if (version_peek(cursor, 0) != '+') return true;
  const char* start = ++cursor->at;
  for (;;) {
    if (!is_local_char(version_peek(cursor, 0))) return false;
    while (is_local_char(version_peek(cursor, 0))) cursor->at++;
    if (!is_separator(version_peek(cursor, 0))) break;
    cursor->at++;
  }
  version->has_local = true;
  version->local = kilni_base_sv_make(start, (size_t)(cursor->at - start));
  return true;
}

bool kilni_compat_version_parse(kiln_string_view_t text, uint32_t allowed,
                                kilni_compat_version_t* out_version,
                                bool* out_wild, size_t* out_at) {
  kiln_string_view_t inside = kilni_compat_version_trim(text);
  cursor_t cursor = {inside.data, inside.data + inside.size};
  kilni_compat_version_t version = {0};
  bool is_wild = false;
  bool is_good = inside.size > 0 && version_take_release(&cursor, &version);
  if (is_good && (allowed & KILNI_VERSION_WILD) &&
      version_peek(&cursor, 0) == '.' && version_peek(&cursor, 1) == '*') {
    cursor.at += 2;
    is_wild = true;
  } else if (is_good) {
    take_suffixes(&cursor, &version);
    if (allowed & KILNI_VERSION_LOCAL) is_good = take_local(&cursor, &version);
  }
  *out_version = version;
  if (out_wild != NULL) *out_wild = is_wild;
  if (out_at != NULL) {
    *out_at = inside.size > 0 ? (size_t)(cursor.at - text.data) : 0;
  }
  return is_good && cursor.at == cursor.end;
}

// ---- Order ----

static int sign(int value) {
  return (value > 0) - (value < 0);
}

static kiln_string_view_t strip_zeros(kiln_string_view_t digits) {
  while (digits.size > 0 && digits.data[0] == '0') {
    digits.data++;
    digits.size--;
  }
  return digits;
}

static int order_numbers(kiln_string_view_t a, kiln_string_view_t b) {
  a = strip_zeros(a);
  b = strip_zeros(b);
  if (a.size != b.size) return a.size < b.size ? -1 : 1;
  return a.size == 0 ? 0 : sign(memcmp(a.data, b.data, a.size));
}

// The next number of a release; an empty one (0) past its end.
static kiln_string_view_t version_next_number(kiln_string_view_t* inout) {
  kiln_string_view_t part = {NULL, 0};
  if (!kilni_base_sv_split(inout, '.', &part)) part.size = 0;
  return part;
}

static int order_releases(kiln_string_view_t a, kiln_string_view_t b) {
  while (a.size > 0 || b.size > 0) {
    int order = order_numbers(version_next_number(&a), version_next_number(&b));
    if (order != 0) return order;
  }
  return 0;
}

// The rank of a version among those of its release by its pre-release part: a
// development release of the release itself comes first, a release without a
// pre-release part last.
static int pre_rank(const kilni_compat_version_t* version) {
  if (version->pre_letter != 0) return version->pre_letter;
  return version->has_dev && !version->has_post ? 0 : 'z';
}

static bool version_is_number(kiln_string_view_t text) {
  for (size_t i = 0; i < text.size; i++) {
    if (!version_is_digit(text.data[i])) return false;
  }
  return true;
}

static int order_words(kiln_string_view_t a, kiln_string_view_t b) {
  size_t size = a.size < b.size ? a.size : b.size;
  for (size_t i = 0; i < size; i++) {
    int order = sign(version_lower(a.data[i]) - version_lower(b.data[i]));
    if (order != 0) return order;
  }
  return (a.size > b.size) - (a.size < b.size);
}

// The next part of a local version; empty at its end.
static kiln_string_view_t next_local(kiln_string_view_t* inout) {
  kiln_string_view_t part = {inout->data, 0};
  while (part.size < inout->size && !is_separator(inout->data[part.size])) {
    part.size++;
  }
  size_t used = part.size < inout->size ? part.size + 1 : part.size;
  inout->data += used;
  inout->size -= used;
  return part;
}

// No local part comes before any; words come before numbers.
static int order_locals(const kilni_compat_version_t* a,
                        const kilni_compat_version_t* b) {
  if (!a->has_local || !b->has_local) {
    return (int)a->has_local - (int)b->has_local;
  }
  kiln_string_view_t rest_a = a->local;
  kiln_string_view_t rest_b = b->local;
  while (rest_a.size > 0 && rest_b.size > 0) {
    kiln_string_view_t part_a = next_local(&rest_a);
    kiln_string_view_t part_b = next_local(&rest_b);
    bool number_a = version_is_number(part_a);
    bool number_b = version_is_number(part_b);
    int order = (int)number_a - (int)number_b;
    if (order == 0) {
      order = number_a ? order_numbers(part_a, part_b)
                       : order_words(part_a, part_b);
    }
    if (order != 0) return order;
  }
  return (rest_a.size > 0) - (rest_b.size > 0);
}

int kilni_compat_version_order(const kilni_compat_version_t* a,
                               const kilni_compat_version_t* b,
                               bool with_locals) {
  int order = order_numbers(a->epoch, b->epoch);
  if (order == 0) order = order_releases(a->release, b->release);
  if (order == 0) order = sign(pre_rank(a) - pre_rank(b));
  if (order == 0) order = order_numbers(a->pre, b->pre);
  if (order == 0) order = (int)a->has_post - (int)b->has_post;
  if (order == 0) order = order_numbers(a->post, b->post);
  if (order == 0) order = (int)b->has_dev - (int)a->has_dev;
  if (order == 0) order = order_numbers(a->dev, b->dev);
  if (order == 0 && with_locals) order = order_locals(a, b);
  return order;
}

size_t kilni_compat_version_release_count(
    const kilni_compat_version_t* version) {
  size_t count = 1;
  for (size_t i = 0; i < version->release.size; i++) {
    count += version->release.data[i] == '.';
  }
  return count;
}

bool kilni_compat_version_same_prefix(const kilni_compat_version_t* a,
                                      const kilni_compat_version_t* b,
                                      size_t count) {
  if (order_numbers(a->epoch, b->epoch) != 0) return false;
  kiln_string_view_t rest_a = a->release;
  kiln_string_view_t rest_b = b->release;
  for (size_t i = 0; i < count; i++) {
    if (order_numbers(version_next_number(&rest_a),
                      version_next_number(&rest_b)) != 0) {
      return false;
    }
  }
  return true;
}

// ---- The public calls ----

static kiln_status_t parse_public(const char* text, const char* name,
                                  kilni_compat_version_t* out_version) {
  memset(out_version, 0, sizeof(*out_version));
  KILNI_CHECK_ARGUMENT(text != NULL, name);
  size_t size = strlen(text);
  if (size > KILN_COMPAT_MAX_VERSION_BYTES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "a version of %zu bytes; the limit is %d",
                   size, (int)KILN_COMPAT_MAX_VERSION_BYTES),
        "give one like \"13.0.88\"");
  }
  size_t at = 0;
  if (!kilni_compat_version_parse(kilni_base_sv_make(text, size),
                                  KILNI_VERSION_LOCAL, out_version, NULL,
                                  &at)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "\"%s\" is not a version, from byte %zu on", text, at),
        "give one in the form of PEP 440, like \"13.0.88\" or \"1.0rc1\"");
  }
  return kiln_ok();
}

kiln_status_t kiln_compat_version_check(const char* version) {
  kilni_compat_version_t parts;
  return parse_public(version, "version", &parts);
}

kiln_status_t kiln_compat_version_compare(const char* a, const char* b,
                                          int32_t* out_order) {
  *out_order = 0;
  kilni_compat_version_t left;
  kilni_compat_version_t right;
  KILNI_RETURN_IF_ERROR(parse_public(a, "a", &left));
  KILNI_RETURN_IF_ERROR(parse_public(b, "b", &right));
  *out_order = kilni_compat_version_order(&left, &right, true);
  return kiln_ok();
}

kiln_status_t kiln_compat_version_is_prerelease(const char* version,
                                                bool* out_is) {
  *out_is = false;
  kilni_compat_version_t parts;
  KILNI_RETURN_IF_ERROR(parse_public(version, "version", &parts));
  *out_is = kilni_compat_version_is_pre(&parts);
  return kiln_ok();
}

// Text that stops at a capacity and goes on counting. one-thread
typedef struct writer_t {
  char* buffer;
  size_t capacity;
  size_t length;
} writer_t;

static void version_put(writer_t* writer, char c) {
  if (writer->length + 1 < writer->capacity) {
    writer->buffer[writer->length] = c;
  }
  writer->length++;
}

static void version_put_text(writer_t* writer, const char* text) {
  for (; *text != '\0'; text++) version_put(writer, *text);
}

static void version_put_number(writer_t* writer, kiln_string_view_t digits) {
  digits = strip_zeros(digits);
  if (digits.size == 0) version_put(writer, '0');
  for (size_t i = 0; i < digits.size; i++) version_put(writer, digits.data[i]);
}

static void put_version(writer_t* writer,
                        const kilni_compat_version_t* version) {
  if (strip_zeros(version->epoch).size > 0) {
    version_put_number(writer, version->epoch);
    version_put(writer, '!');
  }
  kiln_string_view_t rest = version->release;
  while (rest.size > 0) {
    version_put_number(writer, version_next_number(&rest));
    if (rest.size > 0) version_put(writer, '.');
  }
  if (version->pre_letter != 0) {
    if (version->pre_letter == 'c') version_put(writer, 'r');
    version_put(writer, version->pre_letter);
    version_put_number(writer, version->pre);
  }
  if (version->has_post) {
    version_put_text(writer, ".post");
    version_put_number(writer, version->post);
  }
  if (version->has_dev) {
    version_put_text(writer, ".dev");
    version_put_number(writer, version->dev);
  }
  if (!version->has_local) return;
  version_put(writer, '+');
  rest = version->local;
  while (rest.size > 0) {
    kiln_string_view_t part = next_local(&rest);
    if (version_is_number(part)) {
      version_put_number(writer, part);
    } else {
      for (size_t i = 0; i < part.size; i++) {
        version_put(writer, version_lower(part.data[i]));
      }
    }
    if (rest.size > 0) version_put(writer, '.');
  }
}

kiln_status_t kiln_compat_version_normalize(const char* version,
                                            size_t capacity, char* buffer,
                                            size_t* out_length) {
  writer_t writer = {buffer, capacity, 0};
  if (capacity > 0) buffer[0] = '\0';
  if (out_length != NULL) *out_length = 0;
  kilni_compat_version_t parts;
  KILNI_RETURN_IF_ERROR(parse_public(version, "version", &parts));
  put_version(&writer, &parts);
  if (capacity > 0) {
    buffer[writer.length < capacity ? writer.length : capacity - 1] = '\0';
  }
  if (out_length != NULL) *out_length = writer.length;
  return kiln_ok();
}
