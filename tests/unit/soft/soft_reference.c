// SPDX-License-Identifier: Apache-2.0
//
// soft: the reference for integer operations, and the reading of forms.
#include "soft_reference.h"

#include <stdio.h>
#include <string.h>

#include "soft_reference_float.h"

__extension__ typedef unsigned __int128 u128_t;
__extension__ typedef __int128 s128_t;

static bool type_of(const char* token, soft_type_t* out) {
  static const char* const names[] = {"u8",  "s8",  "u16", "s16", "u32",
                                      "s32", "u64", "s64", "b16", "b32",
                                      "b64", "f32", "f64", "pred"};
  static const unsigned bits[] = {8,  8,  16, 16, 32, 32, 64,
                                  64, 16, 32, 64, 32, 64, 1};
  for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (strcmp(token, names[i]) == 0) {
      *out = (soft_type_t){token, token[0], bits[i]};
      return true;
    }
  }
  return false;
}

static bool form_read(const char* text, soft_form_t* f) {
  memset(f, 0, sizeof(*f));
  if (strlen(text) >= sizeof(f->text)) return false;
  strcpy(f->text, text);
  f->rounding = "";
  for (char* at = f->text; at;) {
    char* dot = strchr(at, '.');
    if (dot) *dot = 0;
    if (f->count < SOFT_FORM_TOKENS) f->token[f->count++] = at;
    at = dot ? dot + 1 : NULL;
  }
  for (unsigned i = 1; i < f->count; i++) {
    const char* t = f->token[i];
    if (f->types < 3 && type_of(t, &f->type[f->types])) f->types++;
    if (t[0] == 'r' && strchr("nzmp", t[1]) && t[1] &&
        (!t[2] || (t[2] == 'i' && !t[3]))) {
      f->rounding = t;
    }
  }
  return f->types > 0;
}

bool soft_form_has(const soft_form_t* f, const char* token) {
  for (unsigned i = 1; i < f->count; i++) {
    if (strcmp(f->token[i], token) == 0) return true;
  }
  return false;
}

static bool is(const soft_form_t* f, const char* opcode) {
  return strcmp(f->token[0], opcode) == 0;
}

static uint64_t low(uint64_t x, unsigned bits) {
  return bits < 64 ? x & (((uint64_t)1 << bits) - 1) : x;
}

// The number that `bits` bits of x say.
static s128_t number(uint64_t x, soft_type_t t) {
  x = low(x, t.bits);
  if (t.kind == 's' && (x >> (t.bits - 1) & 1)) {
    return (s128_t)x - ((s128_t)1 << t.bits);
  }
  return (s128_t)x;
}

static s128_t clamp(s128_t x, s128_t least, s128_t greatest) {
  return x < least ? least : x > greatest ? greatest : x;
}

static s128_t least_of(soft_type_t t) {
  return t.kind == 's' ? -((s128_t)1 << (t.bits - 1)) : 0;
}
static s128_t greatest_of(soft_type_t t) {
  return ((s128_t)1 << (t.kind == 's' ? t.bits - 1 : t.bits)) - 1;
}

// mul, mad, mul24, mad24 without carry.
static uint64_t multiply(const soft_form_t* f, const soft_lane_in_t* in,
                         bool adds, bool is24) {
  soft_type_t t = f->type[0];
  soft_type_t narrow = {t.name, t.kind, 24};
  s128_t a = number(in->s[0], is24 ? narrow : t);
  s128_t b = number(in->s[1], is24 ? narrow : t);
  u128_t product = (u128_t)a * (u128_t)b;
  if (soft_form_has(f, "wide")) {
    uint64_t c = adds ? in->s[2] : 0;
    return low((uint64_t)product + c, 2 * t.bits);
  }
  unsigned shift = soft_form_has(f, "hi") ? (is24 ? 16 : t.bits) : 0;
  uint64_t part = low((uint64_t)(product >> shift), t.bits);
  if (!adds) return part;
  if (soft_form_has(f, "sat")) {
    s128_t sum = number(part, t) + number(in->s[2], t);
    return low((uint64_t)clamp(sum, least_of(t), greatest_of(t)), t.bits);
  }
  return low(part + in->s[2], t.bits);
}

// add.cc, addc, sub.cc, subc, mad.cc, madc.
static bool chain(const soft_form_t* f, const soft_lane_in_t* in,
                  soft_lane_out_t* out) {
  static const char* const opcodes[] = {"addc", "subc", "madc"};
  bool cc = soft_form_has(f, "cc");
  bool takes = false;
  for (int i = 0; i < 3; i++) takes |= is(f, opcodes[i]);
  if (!cc && !takes) return false;
  unsigned bits = f->type[0].bits;
  u128_t x = low(in->s[0], bits);
  u128_t y = low(in->s[1], bits);
  if (f->token[0][0] == 'm') {
    u128_t product = (u128_t)number(in->s[0], f->type[0]) *
                     (u128_t)number(in->s[1], f->type[0]);
    x = low((uint64_t)(soft_form_has(f, "hi") ? product >> bits : product),
            bits);
    y = low(in->s[2], bits);
  }
  // A difference is a sum with the complement, and takes and leaves its carry.
  bool minus = f->token[0][0] == 's';
  if (minus) y = low((uint64_t)~y, bits);
  u128_t sum = x + y + (takes ? in->carry : minus);
  out->d = low((uint64_t)sum, bits);
  out->carry = (uint32_t)(sum >> bits & 1);
  out->has_carry = cc;
  return true;
}

static bool arithmetic(const soft_form_t* f, const soft_lane_in_t* in,
                       soft_lane_out_t* out) {
  soft_type_t t = f->type[0];
  if (chain(f, in, out)) return true;
  if (is(f, "mul") || is(f, "mad") || is(f, "mul24") || is(f, "mad24")) {
    out->d = multiply(f, in, f->token[0][1] == 'a', f->token[0][3] == '2');
    return true;
  }
  s128_t a = number(in->s[0], t);
  s128_t b = number(in->s[1], t);
  s128_t c = number(in->s[2], t);
  s128_t r;
  if (is(f, "add")) {
    r = a + b;
  } else if (is(f, "sub")) {
    r = a - b;
  } else if (is(f, "neg")) {
    r = -a;
  } else if (is(f, "abs")) {
    r = a < 0 ? -a : a;
  } else if (is(f, "min")) {
    r = a < b ? a : b;
  } else if (is(f, "max")) {
    r = a > b ? a : b;
  } else if (is(f, "sad")) {
    r = c + (a > b ? a - b : b - a);
  } else if (is(f, "div")) {
    r = b ? a / b : -1;
  } else if (is(f, "rem")) {
    r = b ? a % b : -1;
  } else {
    return false;
  }
  if (soft_form_has(f, "sat")) r = clamp(r, least_of(t), greatest_of(t));
  if (soft_form_has(f, "relu") && r < 0) r = 0;
  out->d = low((uint64_t)r, t.bits);
  return true;
}

static uint64_t shift(const soft_form_t* f, const soft_lane_in_t* in) {
  soft_type_t t = f->type[0];
  uint64_t count = low(in->s[1], 32);
  s128_t a = number(in->s[0], t);
  if (count > t.bits) count = t.bits;
  if (is(f, "shl")) return low((uint64_t)((u128_t)a << count), t.bits);
  return low((uint64_t)(a >> count), t.bits);
}

static uint64_t funnel(const soft_form_t* f, const soft_lane_in_t* in) {
  uint32_t n = (uint32_t)in->s[2];
  n = soft_form_has(f, "wrap") ? n % 32 : n > 32 ? 32 : n;
  u128_t both = (u128_t)low(in->s[1], 32) << 32 | low(in->s[0], 32);
  return low((uint64_t)(soft_form_has(f, "l") ? both << n >> 32 : both >> n),
             32);
}

static bool logic(const soft_form_t* f, const soft_lane_in_t* in,
                  soft_lane_out_t* out) {
  unsigned bits = f->type[0].bits;
  uint64_t a = low(in->s[0], bits);
  uint64_t b = low(in->s[1], bits);
  if (is(f, "and")) {
    out->d = a & b;
  } else if (is(f, "or")) {
    out->d = a | b;
  } else if (is(f, "xor")) {
    out->d = a ^ b;
  } else if (is(f, "not")) {
    out->d = low(~a, bits);
  } else if (is(f, "cnot")) {
    out->d = a == 0;
  } else if (is(f, "shl") || is(f, "shr")) {
    out->d = shift(f, in);
  } else if (is(f, "shf")) {
    out->d = funnel(f, in);
  } else if (is(f, "lop3")) {
    out->d = 0;
    for (unsigned i = 0; i < 32; i++) {
      unsigned k = (unsigned)((in->s[0] >> i & 1) << 2 |
                              (in->s[1] >> i & 1) << 1 | (in->s[2] >> i & 1));
      out->d |= (uint64_t)(in->immediate >> k & 1) << i;
    }
  } else {
    return false;
  }
  return true;
}

// bfind: the position of the highest bit unlike the sign.
static uint64_t find(const soft_form_t* f, uint64_t a) {
  soft_type_t t = f->type[0];
  uint64_t x = low(a, t.bits);
  if (number(a, t) < 0) x = low(~x, t.bits);
  for (unsigned i = t.bits; i-- > 0;) {
    if (x >> i & 1) return soft_form_has(f, "shiftamt") ? t.bits - 1 - i : i;
  }
  return UINT32_MAX;
}

static uint64_t extract(soft_type_t t, const soft_lane_in_t* in) {
  unsigned msb = t.bits - 1;
  // The manual gives 0 to 255; above it a GPU takes 32 bits of it modulo 256,
  // and 64 as they are.
  uint32_t most = t.bits == 32 ? 0xff : UINT32_MAX;
  uint64_t pos = (uint32_t)in->s[1] & most;
  uint64_t len = (uint32_t)in->s[2] & most;
  uint64_t last = pos + len - 1 < msb ? pos + len - 1 : msb;
  bool sign = t.kind == 's' && len && (in->s[0] >> last & 1);
  uint64_t d = 0;
  for (unsigned i = 0; i <= msb; i++) {
    bool bit = i < len && pos + i <= msb ? in->s[0] >> (pos + i) & 1 : sign;
    d |= (uint64_t)bit << i;
  }
  return d;
}

static uint64_t insert(soft_type_t t, const soft_lane_in_t* in) {
  uint32_t most = t.bits == 32 ? 0xff : UINT32_MAX;
  uint64_t pos = (uint32_t)in->s[2] & most;
  uint64_t len = (uint32_t)in->s[3] & most;
  uint64_t d = low(in->s[1], t.bits);
  for (uint64_t i = 0; i < len && pos + i < t.bits; i++) {
    d &= ~((uint64_t)1 << (pos + i));
    d |= (in->s[0] >> i & 1) << (pos + i);
  }
  return d;
}

static uint64_t bit_mask(bool clamps, uint32_t a, uint32_t b) {
  uint32_t a1 = a & 31, b1 = b & 31;
  uint32_t mask0 = UINT32_MAX << a1;
  bool over = a1 + b1 >= 32;
  uint32_t mask1 = over ? 0 : UINT32_MAX << (a1 + b1);
  if (clamps && a >= 32) mask0 = mask1 = 0;
  if (clamps && b >= 32) mask1 = 0;
  return mask0 & ~mask1;
}

static uint64_t sign_extend(const soft_form_t* f, uint32_t a, uint32_t b) {
  uint32_t b1 = b & 31;
  bool large = soft_form_has(f, "clamp") && b >= 32;
  uint32_t mask = large ? 0 : UINT32_MAX << b1;
  bool sign = b1 && !large && f->type[0].kind == 's' && (a >> (b1 - 1) & 1);
  return (a & ~mask) | (sign ? mask : 0);
}

static uint64_t nth_one(uint32_t mask, uint32_t base, int32_t offset) {
  if (base > 31) return UINT32_MAX;
  if (offset == 0) return mask >> base & 1 ? base : UINT32_MAX;
  int64_t count = (offset < 0 ? -(int64_t)offset : offset) - 1;
  for (int pos = (int)base; pos >= 0 && pos < 32; pos += offset > 0 ? 1 : -1) {
    if (!(mask >> pos & 1)) continue;
    if (count-- == 0) return (uint32_t)pos;
  }
  return UINT32_MAX;
}

static uint64_t permute(const soft_form_t* f, const soft_lane_in_t* in) {
  // Bytes of the result, highest first, for each value of the low two bits.
  static const struct {
    const char* mode;
    const char* bytes[4];
  } modes[] = {
      {"f4e", {"3210", "4321", "5432", "6543"}},
      {"b4e", {"5670", "6701", "7012", "0123"}},
      {"rc8", {"0000", "1111", "2222", "3333"}},
      {"ecl", {"3210", "3211", "3222", "3333"}},
      {"ecr", {"0000", "1110", "2210", "3210"}},
      {"rc16", {"1010", "3232", "1010", "3232"}},
  };
  uint8_t bytes[8];
  for (int i = 0; i < 4; i++) {
    bytes[i] = (uint8_t)(in->s[0] >> (8 * i));
    bytes[4 + i] = (uint8_t)(in->s[1] >> (8 * i));
  }
  uint64_t d = 0;
  for (int i = 0; i < 4; i++) {
    unsigned nibble = in->s[2] >> (4 * i) & 15;
    uint8_t byte = bytes[nibble & 7];
    if (nibble & 8) byte = byte & 0x80 ? 0xff : 0;
    for (unsigned m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
      if (!soft_form_has(f, modes[m].mode)) continue;
      byte = bytes[modes[m].bytes[in->s[2] & 3][3 - i] - '0'];
    }
    d |= (uint64_t)byte << (8 * i);
  }
  return d;
}

static uint64_t dot(const soft_form_t* f, const soft_lane_in_t* in) {
  bool four = is(f, "dp4a");
  unsigned width = four ? 8 : 16;
  soft_type_t ta = {"", f->type[0].kind, width};
  soft_type_t tb = {"", f->type[1].kind, 8};
  unsigned from = !four && soft_form_has(f, "hi") ? 2 : 0;
  s128_t sum = (s128_t)low(in->s[2], 32);
  for (unsigned i = 0; i < (four ? 4u : 2u); i++) {
    sum += number(in->s[0] >> (width * i), ta) *
           number(in->s[1] >> (8 * (from + i)), tb);
  }
  return low((uint64_t)sum, 32);
}

static bool fields(const soft_form_t* f, const soft_lane_in_t* in,
                   soft_lane_out_t* out) {
  soft_type_t t = f->type[0];
  uint64_t a = low(in->s[0], t.bits);
  if (is(f, "popc")) {
    for (unsigned i = 0; i < t.bits; i++) out->d += a >> i & 1;
  } else if (is(f, "clz")) {
    while (out->d < t.bits && !(a >> (t.bits - 1 - out->d) & 1)) out->d++;
  } else if (is(f, "brev")) {
    for (unsigned i = 0; i < t.bits; i++) {
      out->d |= (a >> i & 1) << (t.bits - 1 - i);
    }
  } else if (is(f, "bfind")) {
    out->d = find(f, a);
  } else if (is(f, "bfe")) {
    out->d = extract(t, in);
  } else if (is(f, "bfi")) {
    out->d = insert(t, in);
  } else if (is(f, "bmsk")) {
    out->d =
        bit_mask(soft_form_has(f, "clamp"), (uint32_t)a, (uint32_t)in->s[1]);
  } else if (is(f, "szext")) {
    out->d = sign_extend(f, (uint32_t)a, (uint32_t)in->s[1]);
  } else if (is(f, "fns")) {
    out->d = nth_one((uint32_t)a, (uint32_t)in->s[1], (int32_t)in->s[2]);
  } else if (is(f, "prmt")) {
    out->d = permute(f, in);
  } else if (is(f, "dp4a") || is(f, "dp2a")) {
    out->d = dot(f, in);
  } else {
    return false;
  }
  return true;
}

// The order of two numbers: -1, 0, 1, or 2 when there is none.
static int order(const soft_form_t* f, soft_type_t t, uint64_t x, uint64_t y) {
  if (t.kind == 'f') return soft_float_order(f, t.bits, x, y);
  s128_t a = number(x, t), b = number(y, t);
  return (a > b) - (a < b);
}

static bool compares(const char* how, int o) {
  static const struct {
    const char* name;
    const char* orders;  // of "<=>?", those for which it holds
  } rows[] = {{"eq", "="},    {"ne", "<>"},   {"lt", "<"},   {"le", "<="},
              {"gt", ">"},    {"ge", ">="},   {"lo", "<"},   {"ls", "<="},
              {"hi", ">"},    {"hs", ">="},   {"equ", "=?"}, {"neu", "<>?"},
              {"ltu", "<?"},  {"leu", "<=?"}, {"gtu", ">?"}, {"geu", ">=?"},
              {"num", "<=>"}, {"nan", "?"}};
  for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (strcmp(rows[i].name, how) == 0) {
      return strchr(rows[i].orders, "<=>?"[o + 1]) != NULL;
    }
  }
  return false;
}

static bool choices(const soft_form_t* f, const soft_lane_in_t* in,
                    soft_lane_out_t* out) {
  soft_type_t last = f->type[f->types - 1];
  if (is(f, "mov")) {
    out->d = low(in->s[0], f->type[0].bits);
  } else if (is(f, "selp")) {
    out->d = low(in->s[2] & 1 ? in->s[0] : in->s[1], f->type[0].bits);
  } else if (is(f, "slct")) {
    int o = order(f, last, in->s[2], 0);
    out->d = low(o == 0 || o == 1 ? in->s[0] : in->s[1], f->type[0].bits);
  } else if (is(f, "setp")) {
    out->d = compares(f->token[1], order(f, last, in->s[0], in->s[1]));
  } else if (is(f, "set")) {
    bool yes = compares(f->token[1], order(f, last, in->s[0], in->s[1]));
    out->d = !yes ? 0 : f->type[0].kind == 'f' ? 0x3f800000u : 0xffffffffu;
  } else {
    return false;
  }
  return true;
}

// A number as a register of type t: signed bytes fill 16 bits.
static uint64_t as_register(s128_t x, soft_type_t t) {
  uint64_t bits = (uint64_t)number((uint64_t)x, t);
  return low(bits, t.bits == 8 ? 16 : t.bits);
}

static bool convert(const soft_form_t* f, const soft_lane_in_t* in,
                    soft_lane_out_t* out) {
  if (!is(f, "cvt")) return false;
  soft_type_t to = f->type[0];
  soft_type_t from = f->type[1];
  if (to.kind == 'f') {
    if (from.kind == 'f') return soft_float_to_float(f, in->s[0], out);
    s128_t x = number(in->s[0], from);
    if (soft_form_has(f, "sat")) x = clamp(x, 0, 1);
    out->d = soft_float_of_int(f, x < 0, (uint64_t)(x < 0 ? -x : x));
    return true;
  }
  if (from.kind == 'f') {
    bool negative;
    uint64_t magnitude;
    switch (soft_float_to_int(f, in->s[0], &negative, &magnitude)) {
      case SOFT_INT_NAN:
        out->d = from.bits == 32 && to.bits <= 32
                     ? 0
                     : as_register((s128_t)1 << (to.bits - 1), to);
        return true;
      case SOFT_INT_BEYOND:
        out->d = as_register(negative ? least_of(to) : greatest_of(to), to);
        return true;
      case SOFT_INT_EXACT:
        break;
    }
    s128_t x = negative ? -(s128_t)magnitude : (s128_t)magnitude;
    out->d = as_register(clamp(x, least_of(to), greatest_of(to)), to);
    return true;
  }
  s128_t x = number(in->s[0], from);
  if (soft_form_has(f, "sat")) x = clamp(x, least_of(to), greatest_of(to));
  out->d = as_register(x, to);
  return true;
}

bool soft_reference(const char* form, const soft_lane_in_t* in,
                    soft_lane_out_t* out) {
  soft_form_t f;
  memset(out, 0, sizeof(*out));
  if (!form_read(form, &f)) return false;
  if (choices(&f, in, out) || convert(&f, in, out)) return true;
  if (f.type[0].kind == 'f') return soft_float_reference(&f, in, out);
  return arithmetic(&f, in, out) || logic(&f, in, out) || fields(&f, in, out);
}

const char* soft_reference_source_type(const char* form, unsigned index) {
  // The types of the table live as long as the form: names are constants.
  static const char* const names[] = {"u8",  "s8",  "u16", "s16", "u32",
                                      "s32", "u64", "s64", "b16", "b32",
                                      "b64", "f32", "f64", "pred"};
  soft_form_t f;
  if (!form_read(form, &f)) return "b32";
  const char* name = f.type[0].name;
  bool last = is(&f, "cvt") || is(&f, "setp") || is(&f, "set") ||
              (is(&f, "slct") && index == 2);
  if (last) name = f.type[f.types - 1].name;
  for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (strcmp(name, names[i]) == 0) return names[i];
  }
  return "b32";
}
