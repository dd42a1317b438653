// SPDX-License-Identifier: Apache-2.0
//
// program: numbers of the text form: read and written exactly, in any locale.
//
// strtod and printf know a locale's decimal point, and neither knows f16. A
// decimal is read by dividing whole numbers of up to 2300 bits: 64 bits of the
// quotient and whether something is left decide every rounding.
#include "program/text/program_number.h"

#include <stdio.h>
#include <string.h>

#include "program/ir/program_types.h"

// ---- Whole numbers of any size ----

enum {
  LIMBS = 72,
  // Below 10^MIN_POWER even 128 digits are nothing in any type, above
  // 10^MAX_POWER one is too large.
  MIN_POWER = -600,
  MAX_POWER = 400,
  QUOTIENT_BITS = 63,
};

typedef struct whole_t {
  uint32_t limbs[LIMBS];  // the least first
  uint32_t count;         // those in use
} whole_t;

static void multiply_add(whole_t* x, uint32_t factor, uint32_t more) {
  uint64_t carry = more;
  for (uint32_t i = 0; i < x->count; i++) {
    carry += (uint64_t)x->limbs[i] * factor;
    x->limbs[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry != 0 && x->count < LIMBS) x->limbs[x->count++] = (uint32_t)carry;
}

static void multiply_by_power(whole_t* x, uint32_t power) {
  for (; power >= 9; power -= 9) multiply_add(x, 1000000000, 0);
  for (; power > 0; power--) multiply_add(x, 10, 0);
}

static uint32_t number_bits_of(const whole_t* x) {
  if (x->count == 0) return 0;
  uint32_t top = x->limbs[x->count - 1], bits = 0;
  for (; top != 0; top >>= 1) bits++;
  return 32 * (x->count - 1) + bits;
}

static void shift_left(whole_t* x, uint32_t by) {
  uint32_t words = by / 32, bits = by % 32;
  if (x->count == 0 || by == 0) return;
  for (uint32_t i = x->count + words + 1; i-- > 0;) {
    if (i >= LIMBS) continue;
    uint32_t high =
        i >= words && i - words < x->count ? x->limbs[i - words] : 0;
    uint32_t low = i >= words + 1 && i - words - 1 < x->count
                       ? x->limbs[i - words - 1]
                       : 0;
    x->limbs[i] = bits == 0 ? high : high << bits | low >> (32 - bits);
  }
  x->count += words + 1;
  if (x->count > LIMBS) x->count = LIMBS;
  while (x->count > 0 && x->limbs[x->count - 1] == 0) x->count--;
}

static int number_compare(const whole_t* a, const whole_t* b) {
  if (a->count != b->count) return a->count < b->count ? -1 : 1;
  for (uint32_t i = a->count; i-- > 0;) {
    if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
  }
  return 0;
}

static void subtract(whole_t* a, const whole_t* b) {
  int64_t borrow = 0;
  for (uint32_t i = 0; i < a->count; i++) {
    borrow += (int64_t)a->limbs[i] - (i < b->count ? b->limbs[i] : 0);
    a->limbs[i] = (uint32_t)borrow;
    borrow >>= 32;
  }
  while (a->count > 0 && a->limbs[a->count - 1] == 0) a->count--;
}

// ---- Floats from a mantissa and a power of two ----

typedef struct format_t {
  int precision, least, most;  // of the exponent of 1.xxx
} format_t;

static format_t number_format_of(uint32_t type) {
  switch (type) {
    case KILN_PROGRAM_TYPE_F16:
      return (format_t){11, -14, 15};
    case KILN_PROGRAM_TYPE_BF16:
      return (format_t){8, -126, 127};
    case KILN_PROGRAM_TYPE_F32:
      return (format_t){24, -126, 127};
    default:
      return (format_t){53, -1022, 1023};
  }
}

static uint64_t number_infinity_of(format_t format) {
  return (uint64_t)(format.most - format.least + 2) << (format.precision - 1);
}

// `mantissa` * 2^`power`, and a little more where `more`; false: too large.
static bool round_to(uint32_t type, uint64_t mantissa, int power, bool more,
                     uint64_t* out_bits) {
  format_t format = number_format_of(type);
  *out_bits = 0;
  if (mantissa == 0) return true;
  for (; mantissa >> 63 == 0; power--) mantissa <<= 1;
  int exponent = power + 63;
  int keep = format.precision;
  if (exponent < format.least) keep -= format.least - exponent;
  if (keep < 0) return true;
  uint32_t drop = (uint32_t)(64 - keep);
  uint64_t kept = drop == 64 ? 0 : mantissa >> drop;
  uint64_t rest =
      drop == 64 ? mantissa : mantissa & ((UINT64_C(1) << drop) - 1);
  uint64_t half = UINT64_C(1) << (drop - 1);
  if (rest > half || (rest == half && (more || (kept & 1) != 0))) kept++;
  if (exponent >= format.least) {
    uint64_t hidden = UINT64_C(1) << (format.precision - 1);
    kept += (uint64_t)(exponent - format.least) * hidden;
  }
  *out_bits = kept;
  return kept < number_infinity_of(format);
}

static kilni_program_number_result_t from_decimal(uint32_t type,
                                                  whole_t* digits, int power,
                                                  uint64_t* out_bits) {
  if (digits->count == 0 || power < MIN_POWER) return KILNI_NUMBER_OK;
  if (power > MAX_POWER) return KILNI_NUMBER_TOO_LARGE;
  whole_t under = {{1}, 1};
  if (power > 0) multiply_by_power(digits, (uint32_t)power);
  if (power < 0) multiply_by_power(&under, (uint32_t)-power);
  // Both shifted so that the quotient has 63 or 64 bits.
  int scale =
      (int)number_bits_of(digits) - (int)number_bits_of(&under) - QUOTIENT_BITS;
  shift_left(scale < 0 ? digits : &under,
             (uint32_t)(scale < 0 ? -scale : scale));
  shift_left(&under, QUOTIENT_BITS);
  uint64_t quotient = 0;
  // Long division from the top: `digits` doubles instead of `under` halving.
  for (int i = 0; i <= QUOTIENT_BITS; i++) {
    quotient <<= 1;
    if (number_compare(digits, &under) >= 0) {
      subtract(digits, &under);
      quotient |= 1;
    }
    shift_left(digits, 1);
  }
  return round_to(type, quotient, scale, digits->count != 0, out_bits)
             ? KILNI_NUMBER_OK
             : KILNI_NUMBER_TOO_LARGE;
}

// ---- Reading ----

// A number cut into its parts.
typedef struct parts_t {
  kiln_string_view_t whole, fraction;
  bool hex, has_point, has_exponent;
  int exponent;
} parts_t;

static int number_digit_of(char c, bool hex) {
  if (c >= '0' && c <= '9') return c - '0';
  if (hex && c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (hex && c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

static kiln_string_view_t number_take_digits(kiln_string_view_t* text,
                                             bool hex) {
  kiln_string_view_t digits = {text->data, 0};
  while (text->size > 0 && number_digit_of(text->data[0], hex) >= 0) {
    text->data++, text->size--, digits.size++;
  }
  return digits;
}

static bool number_take(kiln_string_view_t* text, char a, char b) {
  if (text->size == 0 || (text->data[0] != a && text->data[0] != b)) {
    return false;
  }
  text->data++, text->size--;
  return true;
}

static bool number_cut(kiln_string_view_t text, parts_t* out) {
  memset(out, 0, sizeof(*out));
  if (text.size > 2 && text.data[0] == '0' &&
      (text.data[1] == 'x' || text.data[1] == 'X')) {
    out->hex = true;
    text.data += 2, text.size -= 2;
  }
  out->whole = number_take_digits(&text, out->hex);
  if (out->whole.size == 0) return false;
  out->has_point = number_take(&text, '.', '.');
  if (out->has_point) {
    out->fraction = number_take_digits(&text, out->hex);
    if (out->fraction.size == 0) return false;
  }
  if (number_take(&text, out->hex ? 'p' : 'e', out->hex ? 'P' : 'E')) {
    out->has_exponent = true;
    bool minus = number_take(&text, '-', '-');
    if (!minus) number_take(&text, '+', '+');
    kiln_string_view_t digits = number_take_digits(&text, false);
    if (digits.size == 0) return false;
    for (size_t i = 0; i < digits.size; i++) {
      if (out->exponent < 100000) {
        out->exponent = 10 * out->exponent + (digits.data[i] - '0');
      }
    }
    if (minus) out->exponent = -out->exponent;
  }
  return text.size == 0 && (!out->hex || !out->has_point || out->has_exponent);
}

static kilni_program_number_result_t number_read_integer(const parts_t* parts,
                                                         uint32_t type,
                                                         bool negative,
                                                         uint64_t* out_bits) {
  if (parts->has_point || parts->has_exponent) return KILNI_NUMBER_NOT_WHOLE;
  uint64_t value = 0, base = parts->hex ? 16 : 10;
  for (size_t i = 0; i < parts->whole.size; i++) {
    uint64_t digit =
        (uint64_t)number_digit_of(parts->whole.data[i], parts->hex);
    if (value > (UINT64_MAX - digit) / base) return KILNI_NUMBER_TOO_LARGE;
    value = value * base + digit;
  }
  uint32_t bits = 8 * kilni_program_type_bytes(type);
  uint64_t most = UINT64_MAX >> (64 - bits);
  bool is_signed = kilni_program_type_class(type) == KILNI_CLASS_SIGNED;
  if (is_signed) most = (most >> 1) + (negative ? 1 : 0);
  if (value > most || (negative && !is_signed && value != 0)) {
    return KILNI_NUMBER_TOO_LARGE;
  }
  if (negative) value = (UINT64_C(0) - value) & (UINT64_MAX >> (64 - bits));
  *out_bits = value;
  return KILNI_NUMBER_OK;
}

static kilni_program_number_result_t read_hex_float(const parts_t* parts,
                                                    uint32_t type,
                                                    uint64_t* out_bits) {
  uint64_t mantissa = 0;
  bool more = false;
  int power = parts->exponent;
  for (int part = 0; part < 2; part++) {
    kiln_string_view_t digits = part == 0 ? parts->whole : parts->fraction;
    for (size_t i = 0; i < digits.size; i++) {
      uint64_t digit = (uint64_t)number_digit_of(digits.data[i], true);
      if (mantissa >> 60 == 0) {
        mantissa = mantissa << 4 | digit;
        if (part == 1) power -= 4;
      } else {
        more = more || digit != 0;
        if (part == 0) power += 4;
      }
    }
  }
  return round_to(type, mantissa, power, more, out_bits)
             ? KILNI_NUMBER_OK
             : KILNI_NUMBER_TOO_LARGE;
}

static kilni_program_number_result_t read_decimal_float(const parts_t* parts,
                                                        uint32_t type,
                                                        uint64_t* out_bits) {
  whole_t digits;
  memset(&digits, 0, sizeof(digits));
  for (int part = 0; part < 2; part++) {
    kiln_string_view_t text = part == 0 ? parts->whole : parts->fraction;
    for (size_t i = 0; i < text.size; i++) {
      multiply_add(&digits, 10, (uint32_t)(text.data[i] - '0'));
    }
  }
  int power = parts->exponent - (int)parts->fraction.size;
  return from_decimal(type, &digits, power, out_bits);
}

kilni_program_number_result_t kilni_program_number_read(kiln_string_view_t text,
                                                        uint32_t type,
                                                        bool negative,
                                                        uint64_t* out_bits) {
  *out_bits = 0;
  parts_t parts;
  if (text.size > KILNI_NUMBER_MAX_BYTES || !number_cut(text, &parts)) {
    return KILNI_NUMBER_MALFORMED;
  }
  if (kilni_program_type_is_integer(type)) {
    return number_read_integer(&parts, type, negative, out_bits);
  }
  kilni_program_number_result_t result =
      parts.hex ? read_hex_float(&parts, type, out_bits)
                : read_decimal_float(&parts, type, out_bits);
  if (negative) {
    *out_bits |= UINT64_C(1) << (8 * kilni_program_type_bytes(type) - 1);
  }
  return result;
}

// ---- Writing ----

static double number_value_of(uint32_t type, uint64_t bits) {
  format_t format = number_format_of(type);
  uint64_t fraction = bits & ((UINT64_C(1) << (format.precision - 1)) - 1);
  int exponent = (int)(bits >> (format.precision - 1));
  // The same number with the fields of a double, put together as whole
  // numbers: exact, for there is space for all of both.
  double value = (double)fraction;
  int power = format.least - (format.precision - 1);
  if (exponent != 0) {
    value += (double)(UINT64_C(1) << (format.precision - 1));
    power += exponent - 1;
  }
  for (; power > 0; power--) value *= 2;
  // In steps that stay normal until the last, which is exact.
  for (; power < 0; power++) value *= 0.5;
  return value;
}

// Digits and exponent of `value`, d.ddd * 10^exponent, with `count` digits.
static int number_digits_of(double value, int count, char out_digits[20]) {
  char text[40];
  snprintf(text, sizeof(text), "%.*e", count - 1, value);
  int used = 0, exponent = 0;
  const char* at = text;
  // Whatever stands between digits is the locale's point.
  for (; *at != 'e'; at++) {
    if (*at >= '0' && *at <= '9' && used < count) out_digits[used++] = *at;
  }
  bool minus = at[1] == '-';
  for (at += 2; *at != 0; at++) exponent = 10 * exponent + (*at - '0');
  out_digits[used] = 0;
  return minus ? -exponent : exponent;
}

// Lays the digits out: 120.0, 0.0012, 1.5e30.
static void number_lay_out(const char* digits, int exponent, char* out_text) {
  int count = (int)strlen(digits);
  char* to = out_text;
  if (exponent < -5 || exponent > 15) {
    sprintf(to, "%c.%se%d", digits[0], count > 1 ? digits + 1 : "0", exponent);
    return;
  }
  if (exponent < 0) {
    *to++ = '0', *to++ = '.';
    for (int i = -1; i > exponent; i--) *to++ = '0';
    strcpy(to, digits);
    return;
  }
  for (int i = 0; i <= exponent; i++) *to++ = i < count ? digits[i] : '0';
  *to++ = '.';
  strcpy(to, count > exponent + 1 ? digits + exponent + 1 : "0");
}

static void write_finite(uint32_t type, uint64_t bits, char* out_text) {
  double value = number_value_of(type, bits);
  for (int count = 1; count <= 17; count++) {
    char digits[20] = "";
    int exponent = number_digits_of(value, count, digits);
    for (int i = count - 1; i > 0 && digits[i] == '0'; i--) digits[i] = 0;
    number_lay_out(digits, exponent, out_text);
    uint64_t back;
    kilni_program_number_result_t result = kilni_program_number_read(
        (kiln_string_view_t){out_text, strlen(out_text)}, type, false, &back);
    if (result == KILNI_NUMBER_OK && back == bits) return;
  }
}

static void program_number_write_float(uint32_t type, uint64_t bits,
                                       char* out_text) {
  uint64_t sign = UINT64_C(1) << (8 * kilni_program_type_bytes(type) - 1);
  uint64_t infinity = number_infinity_of(number_format_of(type)),
           size = bits & (sign - 1);
  if (size > infinity) {
    sprintf(out_text, "nan_%s", kilni_program_type_name(type));
    return;
  }
  if ((bits & sign) != 0) *out_text++ = '-';
  if (size == infinity) {
    sprintf(out_text, "inf_%s", kilni_program_type_name(type));
    return;
  }
  write_finite(type, size, out_text);
  if (type != KILN_PROGRAM_TYPE_F32) {
    strcat(out_text, kilni_program_type_name(type));
  }
}

void kilni_program_number_write(uint32_t type, uint64_t bits,
                                char out_text[KILNI_NUMBER_TEXT]) {
  switch (kilni_program_type_class(type)) {
    case KILNI_CLASS_BOOL:
      strcpy(out_text, bits != 0 ? "true" : "false");
      return;
    case KILNI_CLASS_FLOAT:
      program_number_write_float(type, bits, out_text);
      return;
    default:
      break;
  }
  uint64_t sign = UINT64_C(1) << (8 * kilni_program_type_bytes(type) - 1);
  bool minus =
      kilni_program_type_class(type) == KILNI_CLASS_SIGNED && (bits & sign);
  if (minus) bits = (UINT64_C(0) - bits) & (sign | (sign - 1));
  sprintf(out_text, "%s%llu%s", minus ? "-" : "", (unsigned long long)bits,
          type == KILN_PROGRAM_TYPE_U32 ? "" : kilni_program_type_name(type));
}
