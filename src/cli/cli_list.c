// SPDX-License-Identifier: Apache-2.0
//
// cli: a text that may be a list of numbers.
#include "cli/cli_list.h"

#include <string.h>

static bool list_is_digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

static bool list_is_blank(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static size_t list_digits_of(const uint8_t* text, size_t size) {
  size_t count = 0;
  while (count < size && list_is_digit(text[count])) count++;
  return count;
}

// "nan" and "inf", in any case.
static bool list_is_word(const uint8_t* text, size_t size) {
  static const char* const WORDS[] = {"nan", "inf"};
  for (int i = 0; size == 3 && i < 2; i++) {
    size_t same = 0;
    while (same < 3 && (text[same] | 32) == WORDS[i][same]) same++;
    if (same == 3) return true;
  }
  return false;
}

static void note_whole(const uint8_t* text, size_t size, bool is_negative,
                       kilni_cli_list_t* list) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++) {
    uint64_t digit = (uint64_t)(text[i] - '0');
    if (value > (UINT64_MAX - digit) / 10) {
      value = UINT64_MAX;
      list->is_whole = false;
      break;
    }
    value = value * 10 + digit;
  }
  uint64_t* most = is_negative ? &list->least : &list->greatest;
  if (value > *most) *most = value;
}

// Whether a cell is a number, as Python reads one.
static bool list_read_number(const uint8_t* text, size_t size,
                             kilni_cli_list_t* list) {
  bool is_negative = size != 0 && text[0] == '-';
  size_t at = size != 0 && (is_negative || text[0] == '+') ? 1 : 0;
  if (list_is_word(text + at, size - at)) {
    list->is_whole = false;
    return true;
  }
  size_t whole = list_digits_of(text + at, size - at);
  size_t end = at + whole;
  size_t part = 0;
  if (end < size && text[end] == '.') {
    part = list_digits_of(text + end + 1, size - end - 1);
    end += 1 + part;
  }
  if (whole + part == 0) return false;
  if (end < size && (text[end] | 32) == 'e') {
    end++;
    if (end < size && (text[end] == '-' || text[end] == '+')) end++;
    size_t exponent = list_digits_of(text + end, size - end);
    if (exponent == 0) return false;
    end += exponent;
  }
  if (end != size) return false;
  if (end == at + whole) {
    note_whole(text + at, whole, is_negative, list);
  } else {
    list->is_whole = false;
  }
  return true;
}

// The contents of a line. thread-compatible
typedef struct line_t {
  size_t numbers;
  size_t others;   // empty cells among them
  bool is_spoilt;  // one may be a number in another notation
} line_t;

static void read_cell(const uint8_t* text, size_t size, line_t* line,
                      kilni_cli_list_t* list) {
  while (size != 0 && list_is_blank(text[0])) {
    text++;
    size--;
  }
  while (size != 0 && list_is_blank(text[size - 1])) size--;
  if (list_read_number(text, size, list)) {
    line->numbers++;
  } else {
    line->others++;
    line->is_spoilt |=
        size != 0 && (list_is_digit(text[0]) || text[0] >= 0x80 ||
                      strchr("+-.", text[0]) != NULL);
  }
}

// `separator` 0: blanks, as many as there are.
static line_t read_line(const uint8_t* text, size_t size, uint8_t separator,
                        kilni_cli_list_t* list) {
  line_t line = {0, 0, false};
  size_t at = 0;
  while (size != 0 && list_is_blank(text[size - 1])) size--;
  while (at < size && list_is_blank(text[at])) at++;
  while (at < size) {
    size_t end = at;
    while (end < size && (separator == 0 ? !list_is_blank(text[end])
                                         : text[end] != separator)) {
      end++;
    }
    read_cell(text + at, end - at, &line, list);
    // A separator at the end is followed by an empty cell.
    if (separator != 0 && end + 1 == size) line.others++;
    at = end + 1;
    while (separator == 0 && at < size && list_is_blank(text[at])) at++;
  }
  return line;
}

static bool list_has(const uint8_t* text, size_t size, char c) {
  return size != 0 && memchr(text, c, size) != NULL;
}

void kilni_cli_list_look(const uint8_t* text, size_t size,
                         kilni_cli_list_t* out) {
  bool is_dotted = list_has(text, size, ';');
  uint8_t separator = is_dotted ? ';' : list_has(text, size, ',') ? ',' : 0;
  size_t numbers = 0;
  memset(out, 0, sizeof(*out));
  out->is_whole = true;
  // 2,5;3 may be two numbers or three.
  out->is_plain = !is_dotted || !list_has(text, size, ',');
  for (size_t at = 0; at < size && out->is_plain;) {
    const uint8_t* end = memchr(text + at, '\n', size - at);
    size_t length = end == NULL ? size - at : (size_t)(end - text) - at;
    line_t line = read_line(text + at, length, separator, out);
    if (at == 0 && line.numbers == 0 && line.others != 0 && !line.is_spoilt) {
      out->has_head = true;
    } else {
      out->is_plain = line.others == 0;
    }
    numbers += line.numbers;
    at += length + 1;
  }
  out->is_plain = out->is_plain && numbers != 0;
}

bool kilni_cli_list_fits(const kilni_cli_list_t* list, kilni_cli_type_t type) {
  const kilni_cli_type_info_t* info = kilni_cli_type_info(type);
  if (info->kind == 'f') return true;
  bool is_signed = info->kind == 'i';
  uint64_t most = UINT64_MAX >> (64 - info->bytes * 8 + (is_signed ? 1 : 0));
  return list->is_whole && list->greatest <= most &&
         list->least <= (is_signed ? most + 1 : 0);
}
