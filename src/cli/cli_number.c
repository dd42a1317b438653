// SPDX-License-Identifier: Apache-2.0
//
// cli: numbers of the types that elements and values have.
#include "cli/cli_number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double half_number(uint32_t bits) {
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = fraction * 0x1p-24;
  if (exponent == 31) {
    value = fraction != 0 ? (double)NAN : (double)INFINITY;
  } else if (exponent != 0) {
    uint32_t wide = (exponent + 112) << 23 | fraction << 13;
    float number;
    memcpy(&number, &wide, sizeof(number));
    value = (double)number;
  }
  return bits >> 15 != 0 ? -value : value;
}

static double float_number(uint32_t bits) {
  float number;
  memcpy(&number, &bits, sizeof(number));
  return (double)number;
}

// Of an integer of the type: extended to 64 bits.
static uint64_t number_extend(const kilni_cli_type_info_t* info,
                              uint64_t bits) {
  uint32_t unused = 64 - info->bytes * 8;
  if (unused == 0) return bits;
  bits &= UINT64_MAX >> unused;
  if (info->kind == 'i' && (bits >> (info->bytes * 8 - 1)) != 0) {
    bits |= UINT64_MAX << (info->bytes * 8);
  }
  return bits;
}

double kilni_cli_number_of(kilni_cli_type_t type, uint64_t bits) {
  const kilni_cli_type_info_t* info = kilni_cli_type_info(type);
  if (type == KILNI_CLI_TYPE_F16) return half_number((uint32_t)bits & 0xffff);
  if (type == KILNI_CLI_TYPE_BF16) return float_number((uint32_t)bits << 16);
  if (type == KILNI_CLI_TYPE_F32) return float_number((uint32_t)bits);
  if (type == KILNI_CLI_TYPE_F64) {
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
  }
  bits = number_extend(info, bits);
  if (info->kind != 'i') return (double)bits;
  int64_t value;
  memcpy(&value, &bits, sizeof(value));
  return (double)value;
}

// `fraction` bits after the point, of a sign and `exponent` bits before them.
static uint64_t number_narrow(double value, uint32_t exponent,
                              uint32_t fraction) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  uint64_t sign = bits >> 63 << (exponent + fraction);
  uint64_t infinite = (((uint64_t)1 << exponent) - 1) << fraction;
  uint64_t rest = bits & 0x000fffffffffffffu;
  int64_t at = (int64_t)(bits >> 52 & 2047);
  if (at == 2047) {
    return sign | infinite | (rest != 0 ? (uint64_t)1 << (fraction - 1) : 0);
  }
  at += ((int64_t)1 << (exponent - 1)) - 1 - 1023;
  int64_t shift = 52 - (int64_t)fraction + (at < 1 ? 1 - at : 0);
  if (shift > 54) return sign;
  rest |= (uint64_t)1 << 52;
  uint64_t out = rest >> shift;
  uint64_t lost = rest - (out << shift);
  uint64_t middle = (uint64_t)1 << (shift - 1);
  if (lost > middle || (lost == middle && (out & 1) != 0)) out++;
  // A carry propagates into the exponent.
  if (at >= 1) out += (uint64_t)(at - 1) << fraction;
  return sign | (out < infinite ? out : infinite);
}

bool kilni_cli_number_bits(double value, kilni_cli_type_t type, uint64_t* out) {
  if (type == KILNI_CLI_TYPE_F16) {
    *out = number_narrow(value, 5, 10);
  } else if (type == KILNI_CLI_TYPE_BF16) {
    *out = number_narrow(value, 8, 7);
  } else if (type == KILNI_CLI_TYPE_F32) {
    *out = number_narrow(value, 8, 23);
  } else {
    memcpy(out, &value, sizeof(value));
  }
  return !isinf(kilni_cli_number_of(type, *out)) || isinf(value);
}

// With the fewest digits that identify it.
static void cli_number_write_float(double value, kilni_cli_type_t as,
                                   uint64_t bits,
                                   char out[KILNI_CLI_NUMBER_TEXT]) {
  for (int digits = 1; digits <= 17; digits++) {
    uint64_t again = 0;
    (void)snprintf(out, KILNI_CLI_NUMBER_TEXT, "%.*g", digits, value);
    if (kilni_cli_number_bits(strtod(out, NULL), as, &again) && again == bits) {
      return;
    }
  }
}

bool kilni_cli_number_text(kilni_cli_type_t type, uint64_t bits,
                           kilni_cli_type_t as,
                           char out[KILNI_CLI_NUMBER_TEXT]) {
  const kilni_cli_type_info_t* from = kilni_cli_type_info(type);
  const kilni_cli_type_info_t* to = kilni_cli_type_info(as);
  double value = kilni_cli_number_of(type, bits);
  uint64_t whole = from->kind == 'f' ? 0 : number_extend(from, bits);
  bool negative = from->kind == 'i' ? whole >> 63 != 0 : value < 0;
  if (to->kind == 'f') {
    uint64_t wanted;
    if (isnan(value) || isinf(value) ||
        !kilni_cli_number_bits(value, as, &wanted)) {
      return false;
    }
    cli_number_write_float(value, as, wanted, out);
  } else {
    if (from->kind == 'f') {
      if (!(value > -0x1p63 && value < 0x1p63)) return false;
      int64_t cut = (int64_t)value;
      if ((double)cut != value) return false;
      memcpy(&whole, &cut, sizeof(whole));
    }
    uint64_t most = UINT64_MAX >> (64 - to->bytes * 8);
    if (to->kind == 'i') most /= 2;
    uint64_t size = negative ? 0 - whole : whole;
    if (to->kind == 'b' || (negative && to->kind != 'i') ||
        size > most + (negative ? 1 : 0)) {
      return false;
    }
    (void)snprintf(out, KILNI_CLI_NUMBER_TEXT, "%s%" PRIu64,
                   negative ? "-" : "", size);
  }
  size_t used = strlen(out);
  (void)snprintf(out + used, KILNI_CLI_NUMBER_TEXT - used, "%s", to->text);
  return true;
}
