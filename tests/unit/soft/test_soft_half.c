// SPDX-License-Identifier: Apache-2.0
//
// soft: every form on f16, bf16, tf32, fp8 and pairs of 16-bit integers, from
// PTX text to memory in every lane set, against MPFR: edges, halfway cases and
// seeded bits; 16-bit sources of one operand exhaustively.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>
#include <mpfr.h>

#include "soft/decode/soft_forms.h"
#include "soft_kit.h"

// A sanitizer makes each run many times slower.
#if defined(KILNI_SANITIZED)
enum { TOKENS = 8, ROWS = 256, EVERY = 4096, EXACT = 800 };
#else
enum { TOKENS = 8, ROWS = 4096, EVERY = 65536, EXACT = 800 };
#endif

// A type by what its bits mean. thread-compatible
typedef struct type_t {
  const char* name;
  char kind;        // f, u, s, b, p
  unsigned bits;    // of one number
  unsigned count;   // of numbers
  unsigned digits;  // of a float, the hidden one too
  int least;        // exponent of the least normal number
} type_t;

static const type_t types[] = {
    {"f16", 'f', 16, 1, 11, -14},   {"bf16", 'f', 16, 1, 8, -126},
    {"f16x2", 'f', 16, 2, 11, -14}, {"bf16x2", 'f', 16, 2, 8, -126},
    {"tf32", 'f', 32, 1, 11, -126}, {"f32", 'f', 32, 1, 24, -126},
    {"f64", 'f', 64, 1, 53, -1022}, {"e4m3x2", 'f', 8, 2, 4, -6},
    {"e5m2x2", 'f', 8, 2, 3, -14},  {"u8", 'u', 8, 1, 0, 0},
    {"s8", 's', 8, 1, 0, 0},        {"u16", 'u', 16, 1, 0, 0},
    {"s16", 's', 16, 1, 0, 0},      {"u32", 'u', 32, 1, 0, 0},
    {"s32", 's', 32, 1, 0, 0},      {"u64", 'u', 64, 1, 0, 0},
    {"s64", 's', 64, 1, 0, 0},      {"u16x2", 'u', 16, 2, 0, 0},
    {"s16x2", 's', 16, 2, 0, 0},
};

// A form taken apart. one-thread
typedef struct form_t {
  char text[64];
  const char* token[TOKENS];
  unsigned count;
  const type_t* to;
  const type_t* from;
  unsigned sources;
} form_t;

static bool has(const form_t* f, const char* token) {
  for (unsigned i = 1; i < f->count; i++) {
    if (strcmp(f->token[i], token) == 0) return true;
  }
  return false;
}

static bool is(const form_t* f, const char* opcode) {
  return strcmp(f->token[0], opcode) == 0;
}

static void form_read(const char* text, form_t* f) {
  memset(f, 0, sizeof(*f));
  assert_true(strlen(text) < sizeof(f->text));
  strcpy(f->text, text);
  for (char* at = f->text; at;) {
    char* dot = strchr(at, '.');
    if (dot) *dot = 0;
    assert_true(f->count < TOKENS);
    f->token[f->count++] = at;
    at = dot ? dot + 1 : NULL;
  }
  for (unsigned i = 1; i < f->count; i++) {
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
      if (strcmp(types[t].name, f->token[i]) != 0) continue;
      if (!f->to) f->to = &types[t];
      f->from = &types[t];
    }
  }
  assert_non_null(f->to);
  f->sources = 2;
  if (is(f, "fma")) f->sources = 3;
  if (is(f, "neg") || is(f, "abs") || is(f, "ex2") || is(f, "tanh")) {
    f->sources = 1;
  }
  if (is(f, "cvt")) {
    f->sources = f->to->count == 2 && f->from->count == 1 ? 2 : 1;
  }
}

// ---- Numbers ----

static uint64_t low(uint64_t x, unsigned bits) {
  return bits < 64 ? x & (((uint64_t)1 << bits) - 1) : x;
}

// Where the number's own bits end: tf32 fills the upper bits of its word.
static unsigned spare(const type_t* t) {
  return strcmp(t->name, "tf32") == 0 ? 13 : 0;
}
static unsigned own_bits(const type_t* t) {
  return t->bits - spare(t);
}
static uint64_t infinity_of(const type_t* t) {
  unsigned fraction = t->digits - 1;
  uint64_t ones = low(UINT64_MAX, own_bits(t) - 1 - fraction);
  return ones << fraction;
}
static bool has_infinity(const type_t* t) {
  return strcmp(t->name, "e4m3x2") != 0;
}
static uint64_t greatest_of(const type_t* t) {
  return has_infinity(t) ? infinity_of(t) - 1 : 0x7e;
}
static uint64_t nan_of(const type_t* t) {
  if (t->bits == 64) return 0xfff8000000000000u;
  return low(UINT64_MAX, t->bits - 1) >> spare(t) << spare(t);
}

// The number that the bits say, exactly.
static void decode(mpfr_t r, const type_t* t, uint64_t x) {
  x = low(x, t->bits) >> spare(t);
  unsigned bits = own_bits(t);
  if (t->kind != 'f') {
    if (t->kind == 's' && x >> (bits - 1) & 1) {
      mpfr_set_uj(r, low(~x + 1, bits), MPFR_RNDN);
      mpfr_neg(r, r, MPFR_RNDN);
    } else {
      mpfr_set_uj(r, x, MPFR_RNDN);
    }
    return;
  }
  uint64_t body = low(x, bits - 1);
  unsigned fraction = t->digits - 1;
  uint64_t exponent = body >> fraction;
  if (has_infinity(t) ? body > infinity_of(t) : body > greatest_of(t)) {
    mpfr_set_nan(r);
    mpfr_setsign(r, r, (int)(x >> (bits - 1) & 1), MPFR_RNDN);
    return;
  }
  if (has_infinity(t) && body == infinity_of(t)) {
    mpfr_set_inf(r, 1);
  } else {
    uint64_t m = low(body, fraction);
    if (exponent) m |= (uint64_t)1 << fraction;
    mpfr_set_uj_2exp(
        r, m, (int)(exponent ? exponent - 1 : 0) + t->least - (int)fraction,
        MPFR_RNDN);
  }
  mpfr_setsign(r, r, (int)(x >> (bits - 1) & 1), MPFR_RNDN);
}

static mpfr_rnd_t rounding_of(const form_t* f) {
  if (has(f, "rz") || has(f, "rzi")) return MPFR_RNDZ;
  if (has(f, "rm") || has(f, "rmi")) return MPFR_RNDD;
  if (has(f, "rp") || has(f, "rpi")) return MPFR_RNDU;
  return MPFR_RNDN;
}

// The bits of a number that is one of the type, exactly.
static uint64_t encode(const type_t* t, const mpfr_t x) {
  unsigned fraction = t->digits - 1;
  uint64_t sign = (uint64_t)(mpfr_signbit(x) != 0) << (own_bits(t) - 1);
  if (mpfr_nan_p(x)) return nan_of(t);
  if (mpfr_inf_p(x)) return (sign | infinity_of(t)) << spare(t);
  if (mpfr_zero_p(x)) return sign << spare(t);
  mpfr_t m;
  mpfr_init2(m, EXACT);
  mpfr_abs(m, x, MPFR_RNDN);
  int exponent = (int)mpfr_get_exp(m) - 1;
  if (exponent < t->least) exponent = t->least;
  mpfr_mul_2si(m, m, (long)fraction - exponent, MPFR_RNDN);
  uint64_t body =
      ((uint64_t)(exponent - t->least) << fraction) + mpfr_get_uj(m, MPFR_RNDN);
  mpfr_clear(m);
  return (sign | body) << spare(t);
}

// Rounds an exact number to the type and says its bits.
static uint64_t rounded(const form_t* f, const type_t* t, const mpfr_t x,
                        mpfr_rnd_t mode) {
  mpfr_t m, whole, r;
  mpfr_inits2(EXACT, m, whole, r, (mpfr_ptr)0);
  bool special = mpfr_nan_p(x) || mpfr_inf_p(x) || mpfr_zero_p(x);
  mpfr_set(r, x, MPFR_RNDN);
  if (!special) {
    int exponent = (int)mpfr_get_exp(x) - 1;
    if (exponent < t->least) exponent = t->least;
    long scale = (long)t->digits - 1 - exponent;
    mpfr_mul_2si(m, x, scale, MPFR_RNDN);
    if (has(f, "rna")) {
      mpfr_round(whole, m);
    } else {
      mpfr_rint(whole, m, mode);
    }
    if (mpfr_zero_p(whole)) {
      mpfr_setsign(whole, whole, mpfr_signbit(x), MPFR_RNDN);
    }
    mpfr_mul_2si(r, whole, -scale, MPFR_RNDN);
    mpfr_t most;
    mpfr_init2(most, EXACT);
    decode(most, t, greatest_of(t) << spare(t));
    if (mpfr_cmpabs(r, most) > 0) {
      bool up = mode == MPFR_RNDN || (mode == MPFR_RNDU && mpfr_sgn(r) > 0) ||
                (mode == MPFR_RNDD && mpfr_sgn(r) < 0);
      if (up) {
        mpfr_set_inf(r, mpfr_sgn(r));
      } else {
        mpfr_setsign(r, most, mpfr_signbit(r), MPFR_RNDN);
      }
    }
    mpfr_clear(most);
  }
  if (has(f, "satfinite") && mpfr_inf_p(r)) {
    int negative = mpfr_signbit(r);
    decode(r, t, greatest_of(t) << spare(t));
    mpfr_setsign(r, r, negative, MPFR_RNDN);
  }
  uint64_t bits = encode(t, r);
  mpfr_clears(m, whole, r, (mpfr_ptr)0);
  return bits;
}

// ---- What a form computes ----

static uint64_t flush(const type_t* t, uint64_t x) {
  uint64_t sign = (uint64_t)1 << (t->bits - 1);
  uint64_t exponent = infinity_of(t) << spare(t);
  return x & exponent ? x : x & sign;
}

static void clamp(const form_t* f, mpfr_t r) {
  if (has(f, "sat")) {
    if (mpfr_nan_p(r) || mpfr_signbit(r)) mpfr_set_zero(r, 1);
    if (mpfr_cmp_ui(r, 1) > 0) mpfr_set_ui(r, 1, MPFR_RNDN);
  }
  if (has(f, "relu") && !mpfr_nan_p(r) && mpfr_signbit(r)) mpfr_set_zero(r, 1);
}

static void extreme(const form_t* f, mpfr_t r, const mpfr_t a, const mpfr_t b) {
  mpfr_t x, y;
  mpfr_inits2(EXACT, x, y, (mpfr_ptr)0);
  mpfr_set(x, a, MPFR_RNDN);
  mpfr_set(y, b, MPFR_RNDN);
  bool xorsign = has(f, "xorsign");
  int sign = (mpfr_signbit(a) != 0) != (mpfr_signbit(b) != 0);
  if (xorsign) mpfr_abs(x, x, MPFR_RNDN), mpfr_abs(y, y, MPFR_RNDN);
  bool nan = mpfr_nan_p(x) || mpfr_nan_p(y);
  if (nan && has(f, "NaN")) {
    mpfr_set_nan(r);
  } else if (nan) {
    mpfr_set(r, mpfr_nan_p(x) ? y : x, MPFR_RNDN);
  } else {
    bool less = mpfr_less_p(x, y) ||
                (mpfr_equal_p(x, y) && mpfr_signbit(x) && !mpfr_signbit(y));
    mpfr_set(r, less == is(f, "min") ? x : y, MPFR_RNDN);
  }
  if (xorsign && !mpfr_nan_p(r)) mpfr_setsign(r, r, sign, MPFR_RNDN);
  mpfr_clears(x, y, (mpfr_ptr)0);
}

// What a result may be. thread-compatible
typedef struct want_t {
  uint64_t d;
  bool near;  // or one of its neighbours
} want_t;

static void calculate(const form_t* f, mpfr_t r, mpfr_t* s) {
  if (is(f, "add")) {
    mpfr_add(r, s[0], s[1], MPFR_RNDN);
  } else if (is(f, "sub")) {
    mpfr_sub(r, s[0], s[1], MPFR_RNDN);
  } else if (is(f, "mul")) {
    mpfr_mul(r, s[0], s[1], MPFR_RNDN);
  } else if (is(f, "fma")) {
    mpfr_fma(r, s[0], s[1], s[2], MPFR_RNDN);
  } else if (is(f, "neg")) {
    mpfr_neg(r, s[0], MPFR_RNDN);
  } else if (is(f, "abs")) {
    mpfr_abs(r, s[0], MPFR_RNDN);
  } else if (is(f, "ex2")) {
    mpfr_exp2(r, s[0], MPFR_RNDN);
  } else if (is(f, "tanh")) {
    mpfr_tanh(r, s[0], MPFR_RNDN);
  } else {
    extreme(f, r, s[0], s[1]);
  }
}

static want_t arithmetic(const form_t* f, const type_t* t,
                         const uint64_t* bits) {
  mpfr_t r, s[3];
  mpfr_init2(r, EXACT);
  bool ftz = has(f, "ftz");
  for (int i = 0; i < 3; i++) {
    mpfr_init2(s[i], EXACT);
    decode(s[i], t, ftz ? flush(t, bits[i]) : bits[i]);
  }
  calculate(f, r, s);
  clamp(f, r);
  want_t want = {rounded(f, t, r, MPFR_RNDN), is(f, "ex2") || is(f, "tanh")};
  if (ftz) {
    // What is too small once it has the format's digits, its exponent free.
    mpfr_prec_round(r, t->digits, MPFR_RNDN);
    bool small = mpfr_regular_p(r) && mpfr_get_exp(r) <= t->least;
    uint64_t sign = (uint64_t)1 << (t->bits - 1);
    want.d = small ? want.d & sign : flush(t, want.d);
  }
  for (int i = 0; i < 3; i++) mpfr_clear(s[i]);
  mpfr_clear(r);
  return want;
}

static uint64_t integers(const form_t* f, const type_t* t,
                         const uint64_t* bits) {
  int64_t x[2];
  for (int i = 0; i < 2; i++) {
    x[i] = (int64_t)low(bits[i], 16);
    if (t->kind == 's' && x[i] >= 0x8000) x[i] -= 0x10000;
  }
  int64_t r = x[0] + x[1];
  if (is(f, "min")) r = x[0] < x[1] ? x[0] : x[1];
  if (is(f, "max")) r = x[0] > x[1] ? x[0] : x[1];
  if (has(f, "relu") && r < 0) r = 0;
  return low((uint64_t)r, 16);
}

// An integer of the type, in its register: bytes fill 16 bits.
static uint64_t to_integer(const type_t* t, const mpfr_t x) {
  unsigned have = t->bits == 8 ? 16 : t->bits;
  uint64_t top = (uint64_t)1 << (t->bits - 1);
  if (mpfr_nan_p(x)) return t->bits <= 32 ? 0 : top;
  mpfr_t least, most, r;
  mpfr_inits2(EXACT, least, most, r, (mpfr_ptr)0);
  mpfr_set_uj(most, t->kind == 's' ? top - 1 : low(UINT64_MAX, t->bits),
              MPFR_RNDN);
  mpfr_set_uj(least, t->kind == 's' ? top : 0, MPFR_RNDN);
  mpfr_neg(least, least, MPFR_RNDN);
  mpfr_set(r, x, MPFR_RNDN);
  if (mpfr_less_p(r, least)) mpfr_set(r, least, MPFR_RNDN);
  if (mpfr_greater_p(r, most)) mpfr_set(r, most, MPFR_RNDN);
  bool negative = mpfr_sgn(r) < 0;
  mpfr_abs(r, r, MPFR_RNDN);
  uint64_t d = mpfr_get_uj(r, MPFR_RNDN);
  mpfr_clears(least, most, r, (mpfr_ptr)0);
  return low(negative ? ~d + 1 : d, have);
}

static uint64_t tf32_away(const form_t* f, uint64_t x) {
  uint32_t body = (uint32_t)x & 0x7fffffffu;
  if (body < 0x7f800000u) x += 0x1000;
  x &= 0xffffe000u;
  // An infinity becomes the greatest number; so an H200 counts a NaN down too.
  bool large = (x & 0x7fffffffu) >= 0x7f800000u;
  return has(f, "satfinite") && large ? x - 0x2000 : x;
}

// Between f64 and the small ones a NaN keeps sign and payload, and is quiet.
static uint64_t nan_moved(const type_t* to, const type_t* from, uint64_t x) {
  const type_t* small = to->bits == 64 ? from : to;
  unsigned fraction = small->digits - 1;
  uint64_t negative = x >> (from->bits - 1) & 1;
  if (to->bits == 64) {
    return negative << 63 | 0x7ff8000000000000u |
           low(x, fraction) << (52 - fraction);
  }
  uint64_t quiet = (uint64_t)1 << (fraction - 1);
  return negative << 15 | infinity_of(to) | quiet |
         low(x, 52) >> (52 - fraction);
}

static uint64_t convert(const form_t* f, const type_t* to, const type_t* from,
                        uint64_t bits) {
  bool bf16_moves = strcmp(from->name, "bf16") == 0 &&
                    strcmp(to->name, "f32") == 0 && !has(f, "ftz");
  if (bf16_moves) return low(bits, 16) << 16;
  if (has(f, "rna")) return tf32_away(f, bits);
  // To f16 a subnormal source stays as it is.
  bool to_f16 = strncmp(to->name, "f16", 3) == 0;
  if (has(f, "ftz") && from->bits == 32 && !to_f16) bits = flush(from, bits);
  mpfr_t x;
  mpfr_init2(x, EXACT);
  decode(x, from, bits);
  bool whole = has(f, "rni") || has(f, "rzi") || has(f, "rmi") || has(f, "rpi");
  if (whole && mpfr_number_p(x)) {
    int negative = mpfr_signbit(x);
    mpfr_rint(x, x, rounding_of(f));
    if (mpfr_zero_p(x)) mpfr_setsign(x, x, negative, MPFR_RNDN);
  }
  uint64_t d;
  if (to->kind != 'f') {
    d = to_integer(to, x);
  } else {
    clamp(f, x);
    d = rounded(f, to, x, rounding_of(f));
    bool moved = (to->bits == 64 && from->bits == 16) ||
                 (from->bits == 64 && to->bits == 16);
    if (moved && mpfr_nan_p(x)) d = nan_moved(to, from, bits);
    if (has(f, "ftz") && to->bits == 32) d = flush(to, d);
  }
  mpfr_clear(x);
  return d;
}

static bool compares(const form_t* f, const type_t* t, const uint64_t* bits) {
  static const char* const rows[][2] = {
      {"eq", "="},    {"ne", "<>"},   {"lt", "<"},   {"le", "<="},
      {"gt", ">"},    {"ge", ">="},   {"equ", "=?"}, {"neu", "<>?"},
      {"ltu", "<?"},  {"leu", "<=?"}, {"gtu", ">?"}, {"geu", ">=?"},
      {"num", "<=>"}, {"nan", "?"}};
  mpfr_t a, b;
  mpfr_inits2(EXACT, a, b, (mpfr_ptr)0);
  bool ftz = has(f, "ftz");
  decode(a, t, ftz ? flush(t, bits[0]) : bits[0]);
  decode(b, t, ftz ? flush(t, bits[1]) : bits[1]);
  char order = '=';
  if (mpfr_unordered_p(a, b)) {
    order = '?';
  } else if (mpfr_less_p(a, b)) {
    order = '<';
  } else if (mpfr_greater_p(a, b)) {
    order = '>';
  }
  mpfr_clears(a, b, (mpfr_ptr)0);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (strcmp(rows[i][0], f->token[1]) == 0) {
      return strchr(rows[i][1], order) != NULL;
    }
  }
  fail_msg("no such compare: %s", f->token[1]);
  return false;
}

static uint64_t true_of(const form_t* f, bool pair) {
  if (strncmp(f->to->name, "f16", 3) == 0) return 0x3c00;
  if (strncmp(f->to->name, "bf16", 4) == 0) return 0x3f80;
  return pair || f->to->bits == 16 ? 0xffff : 0xffffffff;
}

// The whole of a row: each number of a pair by itself. setp says 1 for p, 2
// for q.
static want_t expected(const form_t* f, const uint64_t* bits) {
  want_t want = {0, false};
  const type_t* t = f->from;
  if (is(f, "cvt")) {
    unsigned count = f->to->count;
    for (unsigned i = 0; i < count; i++) {
      uint64_t x = bits[0] >> (i * t->bits);
      if (f->sources == 2) x = bits[1 - i];  // the first is the upper one
      want.d |= convert(f, f->to, t, x) << (i * f->to->bits);
    }
    return want;
  }
  for (unsigned i = 0; i < t->count; i++) {
    uint64_t s[3];
    for (int k = 0; k < 3; k++) s[k] = low(bits[k] >> (i * t->bits), t->bits);
    uint64_t d;
    if (is(f, "setp")) {
      bool yes = compares(f, t, s);
      want.d |= (uint64_t)yes << i;
      continue;
    }
    if (is(f, "set")) {
      d = compares(f, t, s) ? true_of(f, t->count == 2) : 0;
    } else if (t->kind != 'f') {
      d = integers(f, t, s);
    } else {
      want_t one = arithmetic(f, t, s);
      want.near |= one.near;
      // The NaN of what lies out of bounds, as an H200 has it.
      bool out = (s[0] & 0x7fff) == 0x7ff7 || (s[1] & 0x7fff) == 0x7ff7;
      d = has(f, "oob") && out ? 0 : one.d;
    }
    want.d |= d << (i * 16);
  }
  return want;
}

// ---- Rows and kernels ----

static uint64_t next(uint64_t* seed) {
  *seed += 0x9e3779b97f4a7c15u;
  uint64_t z = *seed;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static uint64_t edge_float(const type_t* t, uint64_t which, uint64_t* seed) {
  // A type has bits.
  // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
  uint64_t sign = (which & 1) << (t->bits - 1);
  uint64_t inf = infinity_of(t) << spare(t);
  unsigned fraction = t->digits - 1;
  uint64_t one = (uint64_t)(-t->least + 1) << fraction;
  uint64_t table[] = {0,
                      1,
                      2,
                      ((uint64_t)1 << fraction) - 1,
                      (uint64_t)1 << fraction,
                      ((uint64_t)1 << fraction) + 1,
                      one,
                      one - 1,
                      one + 1,
                      one + (1ull << (fraction - 1)),
                      one + (1ull << fraction),
                      inf - 1,
                      inf,
                      inf + 1,
                      low(UINT64_MAX, t->bits - 1),
                      inf / 2,
                      one + ((uint64_t)8 << fraction),
                      one + ((uint64_t)15 << fraction),
                      one + ((uint64_t)7 << fraction) - 1,
                      one - ((uint64_t)9 << fraction),
                      next(seed)};
  uint64_t x = table[(which >> 1) % (sizeof(table) / sizeof(table[0]))];
  return low(x, t->bits - 1) | sign;
}

// Near the numbers of a small format and halfway between them.
static uint64_t halfway(const type_t* t, uint64_t* seed) {
  static const type_t* const smalls[] = {&types[0], &types[1], &types[4],
                                         &types[7], &types[8]};
  uint64_t r = next(seed);
  const type_t* small = smalls[r % 5];
  form_t none = {.count = 0};
  mpfr_t x;
  mpfr_init2(x, EXACT);
  decode(x, small, next(seed) << spare(small));
  uint64_t bits = rounded(&none, t, x, MPFR_RNDN);
  mpfr_clear(x);
  if (t->digits <= small->digits) return bits;
  bits += (r >> 8 & 1) << (t->digits - small->digits - 1);
  return bits + (r >> 9) % 3 - 1;
}

static uint64_t number(const type_t* t, uint64_t row, uint64_t* seed) {
  uint64_t r = next(seed);
  if (t->kind != 'f') {
    if (r % 4 == 0) return low(next(seed), t->bits);
    if (r % 4 == 1) return low(0 - (r >> 40) % 5, t->bits);
    uint64_t x = ((uint64_t)1 << (r >> 16) % 64) + (r >> 24) % 3 - 1;
    return low(r % 4 == 2 ? x : x | next(seed) >> ((r >> 32) % 64), t->bits);
  }
  if (row % 3 == 0) return edge_float(t, row / 3 + (r & 1), seed);
  if (t->bits >= 32 && row % 3 == 1) return halfway(t, seed);
  if (t->bits >= 32 && r % 2) {
    // Exponents that small formats have.
    uint64_t exponent = (uint64_t)(-t->least + 1 - 30) + (r >> 20) % 60;
    return low(next(seed), t->digits - 1) | exponent << (t->digits - 1) |
           (r >> 40 & 1) << (t->bits - 1);
  }
  return low(next(seed), t->bits);
}

static uint64_t source(const form_t* f, uint64_t row, unsigned k,
                       uint64_t* seed) {
  const type_t* t = f->from;
  if (f->sources == 1 && t->bits * t->count <= 16 && t->count == 1) {
    return row;  // all there are
  }
  uint64_t x = 0;
  for (unsigned i = 0; i < t->count; i++) {
    uint64_t at = k == 0 ? row : row / 7 + k * row;
    // All of them together have 64 bits at most.
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
    x |= number(t, at + i, seed) << (i * t->bits);
  }
  return x;
}

static const char* letter_of(const type_t* t) {
  unsigned bits = t->bits * t->count;
  return bits <= 16 ? "h" : bits == 32 ? "r" : "d";
}

static unsigned width_of(const type_t* t) {
  unsigned bits = t->bits * t->count;
  return bits <= 16 ? 16 : bits;
}

static void write_kernel(const char* text, const form_t* f, char* out,
                         size_t capacity) {
  char loads[512] = "";
  char operands[64] = "";
  for (unsigned k = 0; k < f->sources; k++) {
    size_t at = strlen(loads);
    snprintf(loads + at, sizeof(loads) - at,
             "ld.global.b%u %%%s%u, [%%rd5+%u];\n", width_of(f->from),
             letter_of(f->from), 10 + k, 8 * k);
    at = strlen(operands);
    snprintf(operands + at, sizeof(operands) - at, ", %%%s%u",
             letter_of(f->from), 10 + k);
  }
  char store[200];
  char d[16];
  if (is(f, "setp")) {
    // Only a pair of numbers gives a pair of predicates.
    bool pair = f->from->count == 2;
    snprintf(d, sizeof(d), pair ? "%%p1|%%p2" : "%%p1");
    snprintf(store, sizeof(store),
             "%sselp.u32 %%r5, 1, 0, %%p1;\nselp.u32 %%r6, 2, 0, %%p2;\n"
             "or.b32 %%r7, %%r5, %%r6;\nst.global.u32 [%%rd6], %%r7;\n",
             pair ? "" : "setp.ne.u32 %p2, 0, 0;\n");
  } else {
    snprintf(d, sizeof(d), "%%%s20", letter_of(f->to));
    snprintf(store, sizeof(store), "st.global.b%u [%%rd6], %s;\n",
             width_of(f->to), d);
  }
  snprintf(out, capacity,
           ".version 8.6\n.target sm_90\n.address_size 64\n"
           ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
           ".reg .pred %%p<4>;\n.reg .b16 %%h<24>;\n.reg .b32 %%r<24>;\n"
           ".reg .b64 %%rd<8>;\n.reg .b64 %%d<24>;\n"
           "ld.param.u64 %%rd1, [in];\nld.param.u64 %%rd2, [out];\n"
           "mov.u32 %%r1, %%ctaid.x;\nmov.u32 %%r2, %%ntid.x;\n"
           "mov.u32 %%r3, %%tid.x;\nmad.lo.s32 %%r4, %%r1, %%r2, %%r3;\n"
           "mul.wide.u32 %%rd3, %%r4, 24;\nmul.wide.u32 %%rd4, %%r4, 8;\n"
           "add.s64 %%rd5, %%rd1, %%rd3;\nadd.s64 %%rd6, %%rd2, %%rd4;\n"
           "%s%s %s%s;\n%sret;\n}\n",
           loads, text, d, operands, store);
}

static uint64_t in[65536][3];
static uint64_t out[65536];
static want_t wants[65536];

static bool check_rows(const char* text, const char* lanes, const form_t* f,
                       unsigned rows) {
  for (unsigned i = 0; i < rows; i++) {
    int64_t apart = (int64_t)out[i] - (int64_t)wants[i].d;
    bool good = apart == 0;
    if (wants[i].near && f->to->count == 1) good |= apart * apart == 1;
    if (wants[i].near && f->to->count == 2) {
      int64_t l = (int64_t)(out[i] & 0xffff) - (int64_t)(wants[i].d & 0xffff);
      int64_t h = (int64_t)(out[i] >> 16) - (int64_t)(wants[i].d >> 16);
      good |= l * l <= 1 && h * h <= 1;
    }
    if (good) continue;
    print_error("%s %s: %llx %llx %llx gave %llx, not %llx\n", text, lanes,
                (unsigned long long)in[i][0], (unsigned long long)in[i][1],
                (unsigned long long)in[i][2], (unsigned long long)out[i],
                (unsigned long long)wants[i].d);
    return false;
  }
  return true;
}

static soft_kit_t kit;

static unsigned failed_forms;

static unsigned check_form(const char* text, uint64_t* seed) {
  form_t f;
  char ptx[2048];
  form_read(text, &f);
  const type_t* t = f.from;
  bool all = f.sources == 1 && t->bits * t->count <= 16 && t->count == 1;
  unsigned rows = all ? (t->bits == 8 ? 256 : EVERY) : ROWS;
  for (unsigned i = 0; i < rows; i++) {
    for (unsigned k = 0; k < 3; k++) in[i][k] = source(&f, i, k, seed);
    wants[i] = expected(&f, in[i]);
  }
  write_kernel(text, &f, ptx, sizeof(ptx));
  static const char* const sets[] = {"plain", "avx2", "avx512"};
  for (unsigned s = 0; s < 3; s++) {
    if (!kilni_soft_lanes_choose(sets[s])) continue;
    soft_kit_way_t way = {sets[s], 1, 0};
    soft_kit_open(&kit, &way);
    soft_kit_load(&kit, ptx);
    uint64_t params[2] = {soft_kit_buffer(&kit, in, rows * sizeof(in[0])),
                          soft_kit_buffer(&kit, NULL, rows * 8)};
    soft_kit_run(&kit, "k", rows / 256, 256, 2, params);
    soft_kit_read(&kit, params[1], out, rows * 8);
    soft_kit_close(&kit);
    if (!check_rows(text, sets[s], &f, rows)) failed_forms++;
  }
  return rows;
}

static void every_form_on_small_floats_is_exact(void** state) {
  (void)state;
  uint64_t seed = 11;
  unsigned forms = 0;
  uint64_t rows = 0;
  kilni_soft_op_t op;
  const char* text;
  for (size_t i = 0; (text = kilni_soft_form_at(i, &op)); i++) {
    if (strcmp(kilni_soft_op_family(op), "half") != 0) continue;
    rows += check_form(text, &seed);
    forms++;
  }
  mpfr_free_cache();
  assert_int_equal(failed_forms, 0);
  assert_true(forms > 600);
  print_message("%u forms, %llu rows\n", forms, (unsigned long long)rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_form_on_small_floats_is_exact),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
