// SPDX-License-Identifier: Apache-2.0
//
// image: constant expressions of PTX, worth what ptxas makes of them.
//
// Integers are 64 bits, signed unless one side is unsigned; they wrap. A
// shift by 64 or more leaves the sign. Floats are doubles.
#include "base/str.h"
#include "image/ptx_reader.h"

#include <string.h>

typedef struct binary_row_t {
  uint32_t punctuation;
  uint32_t rank;  // larger binds tighter
} binary_row_t;

static const binary_row_t kBinary[] = {
    {KILNI_PTX_PUNCT_OR, 1},
    {KILNI_PTX_PUNCT_AND, 2},
    {'|', 3},
    {'^', 4},
    {'&', 5},
    {KILNI_PTX_PUNCT_EQ, 6},
    {KILNI_PTX_PUNCT_NE, 6},
    {'<', 7},
    {'>', 7},
    {KILNI_PTX_PUNCT_LE, 7},
    {KILNI_PTX_PUNCT_GE, 7},
    {KILNI_PTX_PUNCT_SHL, 8},
    {KILNI_PTX_PUNCT_SHR, 8},
    {'+', 9},
    {'-', 9},
    {'*', 10},
    {'/', 10},
    {'%', 10},
};

static uint32_t ptx_constant_rank_of(const kilni_image_ptx_reader_t* reader) {
  if (reader->token.kind != KILNI_PTX_TOKEN_PUNCTUATION) return 0;
  for (size_t i = 0; i < sizeof(kBinary) / sizeof(kBinary[0]); i++) {
    if (kBinary[i].punctuation == reader->token.punctuation) {
      return kBinary[i].rank;
    }
  }
  return 0;
}

static double as_double(uint64_t bits) {
  double number;
  memcpy(&number, &bits, sizeof(number));
  return number;
}

static void set_double(kilni_image_ptx_constant_t* out, double number) {
  memcpy(&out->value, &number, sizeof(number));
  out->immediate = KILNI_PTX_IMMEDIATE_F64;
}

static void set_truth(kilni_image_ptx_constant_t* out, bool truth) {
  out->value = truth;
  out->immediate = KILNI_PTX_IMMEDIATE_S64;
}

static bool ptx_constant_is_integer(
    const kilni_image_ptx_constant_t* constant) {
  return constant->immediate <= KILNI_PTX_IMMEDIATE_U64;
}

static bool fail_mix(kilni_image_ptx_reader_t* reader,
                     const kilni_image_ptx_token_t* at) {
  return kilni_image_ptx_fail(reader, at, "write the value as one literal",
                              "\"%.*s\" cannot be applied to these constants",
                              KILNI_SV(at->text));
}

static bool apply_floats(kilni_image_ptx_reader_t* reader,
                         const kilni_image_ptx_token_t* at,
                         kilni_image_ptx_constant_t* left,
                         const kilni_image_ptx_constant_t* right) {
  if (left->immediate != KILNI_PTX_IMMEDIATE_F64 ||
      right->immediate != KILNI_PTX_IMMEDIATE_F64) {
    return fail_mix(reader, at);
  }
  double a = as_double(left->value);
  double b = as_double(right->value);
  switch (at->punctuation) {
    case '+':
      set_double(left, a + b);
      return true;
    case '-':
      set_double(left, a - b);
      return true;
    case '*':
      set_double(left, a * b);
      return true;
    case '/':
      set_double(left, a / b);
      return true;
    case '<':
      set_truth(left, a < b);
      return true;
    case '>':
      set_truth(left, a > b);
      return true;
    case KILNI_PTX_PUNCT_LE:
      set_truth(left, a <= b);
      return true;
    case KILNI_PTX_PUNCT_GE:
      set_truth(left, a >= b);
      return true;
    case KILNI_PTX_PUNCT_EQ:
      set_truth(left, a == b);
      return true;
    case KILNI_PTX_PUNCT_NE:
      set_truth(left, a != b);
      return true;
    default:
      return fail_mix(reader, at);
  }
}

static uint64_t negate(uint64_t value) {
  return 0 - value;
}

static uint64_t ptx_constant_magnitude(uint64_t value) {
  return (int64_t)value < 0 ? negate(value) : value;
}

// Signed quotient and remainder on magnitudes, so that nothing overflows.
static uint64_t ptx_constant_divide(uint64_t a, uint64_t b, bool is_signed,
                                    bool remainder) {
  if (!is_signed) return remainder ? a % b : a / b;
  bool a_negative = (int64_t)a < 0;
  bool b_negative = (int64_t)b < 0;
  if (remainder) {
    uint64_t rest = ptx_constant_magnitude(a) % ptx_constant_magnitude(b);
    return a_negative ? negate(rest) : rest;
  }
  uint64_t quotient = ptx_constant_magnitude(a) / ptx_constant_magnitude(b);
  return a_negative != b_negative ? negate(quotient) : quotient;
}

static uint64_t ptx_constant_shift(uint64_t a, uint64_t by, bool left,
                                   bool is_signed) {
  bool negative = is_signed && (int64_t)a < 0;
  if (left) return by >= 64 ? 0 : a << by;
  if (by >= 64) return negative ? UINT64_MAX : 0;
  if (by == 0) return a;
  return a >> by | (negative ? UINT64_MAX << (64 - by) : 0);
}

static bool ptx_constant_less(uint64_t a, uint64_t b, bool is_signed) {
  return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static bool apply_comparison(uint32_t punctuation, uint64_t a, uint64_t b,
                             bool is_signed, bool* out_truth) {
  switch (punctuation) {
    case '<':
      *out_truth = ptx_constant_less(a, b, is_signed);
      return true;
    case '>':
      *out_truth = ptx_constant_less(b, a, is_signed);
      return true;
    case KILNI_PTX_PUNCT_LE:
      *out_truth = !ptx_constant_less(b, a, is_signed);
      return true;
    case KILNI_PTX_PUNCT_GE:
      *out_truth = !ptx_constant_less(a, b, is_signed);
      return true;
    case KILNI_PTX_PUNCT_EQ:
      *out_truth = a == b;
      return true;
    case KILNI_PTX_PUNCT_NE:
      *out_truth = a != b;
      return true;
    case KILNI_PTX_PUNCT_AND:
      *out_truth = a != 0 && b != 0;
      return true;
    case KILNI_PTX_PUNCT_OR:
      *out_truth = a != 0 || b != 0;
      return true;
    default:
      return false;
  }
}

static bool apply_binary(kilni_image_ptx_reader_t* reader,
                         const kilni_image_ptx_token_t* at,
                         kilni_image_ptx_constant_t* left,
                         const kilni_image_ptx_constant_t* right) {
  if (!ptx_constant_is_integer(left) || !ptx_constant_is_integer(right)) {
    return apply_floats(reader, at, left, right);
  }
  uint64_t a = left->value;
  uint64_t b = right->value;
  bool is_signed = left->immediate == KILNI_PTX_IMMEDIATE_S64 &&
                   right->immediate == KILNI_PTX_IMMEDIATE_S64;
  bool truth;
  if (apply_comparison(at->punctuation, a, b, is_signed, &truth)) {
    set_truth(left, truth);
    return true;
  }
  if ((at->punctuation == '/' || at->punctuation == '%') && b == 0) {
    return kilni_image_ptx_fail(reader, at, "divide by something else",
                                "a constant is divided by zero");
  }
  if (at->punctuation == KILNI_PTX_PUNCT_SHL ||
      at->punctuation == KILNI_PTX_PUNCT_SHR) {
    left->value =
        ptx_constant_shift(a, b, at->punctuation == KILNI_PTX_PUNCT_SHL,
                           left->immediate == KILNI_PTX_IMMEDIATE_S64);
    return true;
  }
  switch (at->punctuation) {
    case '+':
      a += b;
      break;
    case '-':
      a -= b;
      break;
    case '*':
      a *= b;
      break;
    case '/':
      a = ptx_constant_divide(a, b, is_signed, false);
      break;
    case '%':
      a = ptx_constant_divide(a, b, is_signed, true);
      break;
    case '&':
      a &= b;
      break;
    case '|':
      a |= b;
      break;
    default:
      a ^= b;
      break;
  }
  left->value = a;
  left->immediate =
      is_signed ? KILNI_PTX_IMMEDIATE_S64 : KILNI_PTX_IMMEDIATE_U64;
  return true;
}

static bool ternary(kilni_image_ptx_reader_t* reader,
                    kilni_image_ptx_constant_t* out);
static bool ptx_constant_unary(kilni_image_ptx_reader_t* reader,
                               kilni_image_ptx_constant_t* out);

// After '(': a cast's type or an expression.
static bool parenthesis(kilni_image_ptx_reader_t* reader,
                        kilni_image_ptx_constant_t* out) {
  bool to_signed = kilni_image_ptx_is_word(reader, "s64");
  if (!to_signed && !kilni_image_ptx_is_word(reader, "u64")) {
    return ternary(reader, out) && kilni_image_ptx_expect(reader, ')');
  }
  kilni_image_ptx_token_t at = reader->token;
  if (!kilni_image_ptx_next(reader) || !kilni_image_ptx_expect(reader, ')') ||
      !ptx_constant_unary(reader, out)) {
    return false;
  }
  if (!ptx_constant_is_integer(out)) return fail_mix(reader, &at);
  out->immediate =
      to_signed ? KILNI_PTX_IMMEDIATE_S64 : KILNI_PTX_IMMEDIATE_U64;
  return true;
}

static bool primary(kilni_image_ptx_reader_t* reader,
                    kilni_image_ptx_constant_t* out) {
  memset(out, 0, sizeof(*out));
  if (reader->token.kind == KILNI_PTX_TOKEN_NUMBER) {
    out->value = reader->token.value;
    out->immediate = reader->token.immediate;
    return kilni_image_ptx_next(reader);
  }
  if (reader->token.kind == KILNI_PTX_TOKEN_IDENTIFIER &&
      kilni_base_sv_equal_cstr(reader->token.text, "WARP_SZ")) {
    out->value = 32;
    return kilni_image_ptx_next(reader);
  }
  if (!kilni_image_ptx_is(reader, '(')) {
    return kilni_image_ptx_fail_expected(reader, "a constant");
  }
  return kilni_image_ptx_next(reader) && parenthesis(reader, out);
}

static bool apply_unary(kilni_image_ptx_reader_t* reader,
                        const kilni_image_ptx_token_t* at,
                        kilni_image_ptx_constant_t* out) {
  if (out->immediate == KILNI_PTX_IMMEDIATE_F64 &&
      (at->punctuation == '-' || at->punctuation == '+')) {
    if (at->punctuation == '-') out->value ^= UINT64_C(1) << 63;
    return true;
  }
  if (!ptx_constant_is_integer(out)) return fail_mix(reader, at);
  if (at->punctuation == '-') {
    out->value = negate(out->value);
  } else if (at->punctuation == '~') {
    out->value = ~out->value;
  } else if (at->punctuation == '!') {
    set_truth(out, out->value == 0);
  }
  return true;
}

static bool ptx_constant_unary(kilni_image_ptx_reader_t* reader,
                               kilni_image_ptx_constant_t* out) {
  if (!kilni_image_ptx_enter(reader)) return false;
  bool ok;
  if (kilni_image_ptx_is(reader, '-') || kilni_image_ptx_is(reader, '+') ||
      kilni_image_ptx_is(reader, '~') || kilni_image_ptx_is(reader, '!')) {
    kilni_image_ptx_token_t at = reader->token;
    ok = kilni_image_ptx_next(reader) && ptx_constant_unary(reader, out) &&
         apply_unary(reader, &at, out);
  } else {
    ok = primary(reader, out);
  }
  kilni_image_ptx_leave(reader);
  return ok;
}

// Depth is bounded by the number of ranks for each level of
// `ptx_constant_unary`.
static bool ptx_constant_binary(kilni_image_ptx_reader_t* reader,
                                uint32_t least,
                                kilni_image_ptx_constant_t* out) {
  if (!ptx_constant_unary(reader, out)) return false;
  for (;;) {
    uint32_t rank = ptx_constant_rank_of(reader);
    if (rank < least || rank == 0) return true;
    kilni_image_ptx_token_t at = reader->token;
    kilni_image_ptx_constant_t right;
    if (!kilni_image_ptx_next(reader) ||
        !ptx_constant_binary(reader, rank + 1, &right) ||
        !apply_binary(reader, &at, out, &right)) {
      return false;
    }
  }
}

static bool ternary(kilni_image_ptx_reader_t* reader,
                    kilni_image_ptx_constant_t* out) {
  if (!ptx_constant_binary(reader, 1, out)) return false;
  if (!kilni_image_ptx_is(reader, '?')) return true;
  kilni_image_ptx_token_t at = reader->token;
  kilni_image_ptx_constant_t first;
  kilni_image_ptx_constant_t second;
  if (!ptx_constant_is_integer(out)) return fail_mix(reader, &at);
  if (!kilni_image_ptx_next(reader) || !kilni_image_ptx_enter(reader)) {
    return false;
  }
  bool ok = ternary(reader, &first) && kilni_image_ptx_expect(reader, ':') &&
            ternary(reader, &second);
  kilni_image_ptx_leave(reader);
  if (!ok) return false;
  *out = out->value != 0 ? first : second;
  return true;
}

bool kilni_image_ptx_constant(kilni_image_ptx_reader_t* reader,
                              kilni_image_ptx_constant_t* out) {
  return ternary(reader, out);
}

bool kilni_image_ptx_count(kilni_image_ptx_reader_t* reader, const char* what,
                           uint64_t most, uint64_t* out_value) {
  const kilni_image_ptx_token_t* token = &reader->token;
  if (token->kind != KILNI_PTX_TOKEN_NUMBER ||
      token->immediate > KILNI_PTX_IMMEDIATE_U64) {
    return kilni_image_ptx_fail_expected(reader, what);
  }
  if (token->value > most) {
    return kilni_image_ptx_fail(reader, token, "write a smaller number",
                                "%.*s is too large for %s",
                                KILNI_SV(token->text), what);
  }
  *out_value = token->value;
  return kilni_image_ptx_next(reader);
}
