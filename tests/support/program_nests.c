// SPDX-License-Identifier: Apache-2.0
//
// test: programs of operators in operators: f(x, g(y, h(z))) and the like.
#include "program_nests.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kiln/program.h"
#include "program/ir/program_types.h"

#define TYPE(NAME) KILN_PROGRAM_TYPE_##NAME

// Which types have an operator.
enum {
  WHOLE = 1,
  SIGNED = 2,  // integers
  FLOAT = 4,
  LONG = 8,   // integers of 32 bits and more
  WIDE = 16,  // integers of 64 bits
  INTEGERS = WHOLE,
  NUMBERS = WHOLE | FLOAT,
};

// What one is as a function's body: of T, the type; U, the unsigned integer
// of an integer's width; B, the unsigned integer of any one's width.
typedef struct operator_t {
  uint8_t classes;
  const char* body;
} operator_t;

// Of a and b.
static const operator_t OUTER[] = {
    {NUMBERS, "a + b"},
    {NUMBERS, "a - b"},
    {NUMBERS, "a * b"},
    {NUMBERS, "a / b"},
    {NUMBERS, "min(a, b)"},
    {NUMBERS, "max(a, b)"},
    {NUMBERS, "T(abs_diff(a, b))"},
    {NUMBERS, "select(a < b, a, b)"},
    {NUMBERS, "select(a <= b, b, a)"},
    {NUMBERS, "select(a == b, T(1), a)"},
    {NUMBERS, "select(a > T(0), b, a)"},
    {NUMBERS, "select(a != T(0), b, T(0))"},
    {NUMBERS, "T(a < b)"},
    {NUMBERS, "T(a >= b)"},
    {NUMBERS, "T(a != b)"},
    {NUMBERS, "select(a < b && b != T(0), b, a)"},
    {NUMBERS, "T(a <= b || a == T(3))"},
    {NUMBERS, "T((a < b) != (b < T(1)))"},
    {NUMBERS, "max(a + b, T(0))"},
    {INTEGERS, "a & b"},
    {INTEGERS, "a & ~b"},
    {INTEGERS, "a | b"},
    {INTEGERS, "a ^ b"},
    {INTEGERS, "a << U(b)"},
    {INTEGERS, "a >> U(b)"},
    {INTEGERS, "rotate_left(a, U(b))"},
    {INTEGERS, "(a << 2u32) + b"},
    {INTEGERS, "add_sat(a, b)"},
    {INTEGERS, "sub_sat(a, b)"},
    {INTEGERS, "mul_high(a, b)"},
    {INTEGERS, "mul_sat(a, b)"},
    {LONG, "T(i16(a)) * T(i16(b))"},
    {WIDE, "T(u32(a)) * T(u32(b))"},
    {WIDE, "T(i32(a)) * T(i32(b))"},
    {FLOAT, "fma(a, b, T(1))"},
    {FLOAT, "fma(a, a, b)"},
    {FLOAT, "fma(b, T(-2), a)"},
    {FLOAT, "select(b < T(0), -abs(a), abs(a))"},
    {FLOAT, "select(is_nan(a), b, a)"},
    {FLOAT, "bitcast_T(bitcast_B(a) ^ (bitcast_B(b) & bitcast_B(T(-0.0))))"},
};

// Of a.
static const operator_t INNER[] = {
    {NUMBERS, "a"},
    {NUMBERS, "-a"},
    {NUMBERS, "a + T(1)"},
    {NUMBERS, "a * T(3)"},
    {NUMBERS, "T(a > T(0))"},
    {NUMBERS, "T(f32(a))"},
    {NUMBERS, "T(u8(a))"},
    {NUMBERS, "T(i8(a))"},
    {NUMBERS, "T(u16(a))"},
    {NUMBERS, "T(i16(a))"},
    {NUMBERS, "T(u32(a))"},
    {NUMBERS, "T(i32(a))"},
    {NUMBERS, "max(a, T(0))"},
    {INTEGERS, "~a"},
    {INTEGERS, "T(popcount(a))"},
    {INTEGERS, "T(clz(a))"},
    {INTEGERS, "T(ctz(a))"},
    {INTEGERS, "reverse_bits(a)"},
    {INTEGERS, "unpack4_high(a)"},
    {INTEGERS, "unpack8_high(a)"},
    {INTEGERS, "a << 3u32"},
    {INTEGERS, "a >> 5u32"},
    {INTEGERS, "T(U(a) >> 3u32)"},
    {INTEGERS, "a & T(60)"},
    {INTEGERS, "a * T(-1)"},
    {INTEGERS, "rotate_left(a, 8u32)"},
    {INTEGERS, "T(u32(a) >> 16u32)"},
    {INTEGERS, "a / T(10)"},
    {INTEGERS, "a % T(8)"},
    {INTEGERS, "T(f32(unpack8_high(a)))"},
    {INTEGERS, "T(f32(i8(a)))"},
    {SIGNED, "abs(a)"},
    {SIGNED, "sign(a)"},
    {FLOAT, "abs(a)"},
    {FLOAT, "-abs(a)"},
    {FLOAT, "sign(a)"},
    {FLOAT, "floor(a)"},
    {FLOAT, "trunc(a)"},
    {FLOAT, "round(a)"},
    {FLOAT, "T(f16(a))"},
    {FLOAT, "T(bf16(a))"},
    {FLOAT, "a * T(-1)"},
    {FLOAT, "a * T(0.5)"},
    {FLOAT, "min(max(a, T(0)), T(1))"},
    {FLOAT, "bitcast_T(bitcast_B(a) & ~bitcast_B(T(-0.0)))"},
};

enum {
  OUTERS = sizeof OUTER / sizeof OUTER[0],
  INNERS = sizeof INNER / sizeof INNER[0],
  FORMS = 8,  // how they stand in each other
  SIZE = PROGRAM_NEST_EXPRESSIONS,
  TYPES = KILNI_TYPE_COUNT,
  FAMILIES = TYPES * TYPES,
};

// What f and h have, of one type, and g, of the same or of another.
// immutable once filled
typedef struct family_t {
  uint8_t type;
  uint8_t inside;
  uint8_t outer[OUTERS];
  uint8_t inner[INNERS];
  uint8_t middle[OUTERS];
  uint32_t outers;
  uint32_t inners;
  uint32_t middles;
  uint32_t stride;
  uint32_t expressions;
  uint32_t programs;
} family_t;

static family_t families[FAMILIES];
static uint32_t family_count;

static uint32_t classes_of(uint32_t type) {
  const uint32_t bytes = kilni_program_type_bytes(type);
  if (kilni_program_type_class(type) == KILNI_CLASS_FLOAT) return FLOAT;
  if (!kilni_program_type_is_integer(type)) return 0;
  return (uint32_t)WHOLE |
         (kilni_program_type_class(type) == KILNI_CLASS_SIGNED ? SIGNED : 0U) |
         (bytes >= 4U ? LONG : 0U) | (bytes == 8U ? WIDE : 0U);
}

// One of so many expressions is taken, more at types that programs have more.
static uint32_t stride_of(uint32_t type, uint32_t inside) {
  if (type != inside) return 151;
  switch (type) {
    case TYPE(I32):
    case TYPE(U32):
    case TYPE(F32):
      return 1;
    case TYPE(I64):
    case TYPE(U64):
    case TYPE(F16):
    case TYPE(F64):
      return 5;
    default:
      return 11;
  }
}

static uint32_t common_divisor(uint32_t x, uint32_t y) {
  return y == 0U ? x : common_divisor(y, x % y);
}

static uint32_t pick(const operator_t* table, uint32_t count, uint32_t classes,
                     uint8_t* out) {
  uint32_t size = 0;
  for (uint32_t i = 0; i < count; i++) {
    if ((table[i].classes & classes) != 0U) out[size++] = (uint8_t)i;
  }
  return size;
}

static void fill(uint32_t type, uint32_t inside) {
  const uint32_t classes = classes_of(type);
  if (classes == 0U || classes_of(inside) == 0U) return;
  family_t* f = &families[family_count++];
  f->type = (uint8_t)type;
  f->inside = (uint8_t)inside;
  f->outers = pick(OUTER, OUTERS, classes, f->outer);
  f->inners = pick(INNER, INNERS, classes, f->inner);
  f->middles = pick(OUTER, OUTERS, classes_of(inside), f->middle);
  const uint32_t all = f->outers * f->middles * f->inners * (uint32_t)FORMS;
  // So that each pair of f, g, h and form comes up.
  f->stride = stride_of(type, inside);
  while (common_divisor(all, f->stride) != 1U) f->stride++;
  // A stride without a common divisor is not 0.
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
  f->expressions = all / f->stride;
  f->programs = (f->expressions + SIZE - 1U) / SIZE;
}

static uint32_t sum(uint64_t* out_expressions) {
  uint32_t programs = 0;
  *out_expressions = 0;
  for (uint32_t i = family_count == 0U ? 0U : FAMILIES; i < FAMILIES; i++) {
    fill(i / TYPES, i % TYPES);
  }
  for (uint32_t i = 0; i < family_count; i++) {
    programs += families[i].programs;
    *out_expressions += families[i].expressions;
  }
  return programs;
}

uint32_t program_nest_count(void) {
  uint64_t expressions = 0;
  return sum(&expressions);
}

uint64_t program_nest_expressions(void) {
  uint64_t expressions = 0;
  (void)sum(&expressions);
  return expressions;
}

// -- one of them ------------------------------------------------------------

typedef struct writer_t {
  char* text;
  size_t size;
  const family_t* family;
  uint32_t first;  // expression of its family
  uint32_t count;
} writer_t;

static void put(writer_t* w, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
static void put(writer_t* w, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int wrote = vsnprintf(w->text + w->size, PROGRAM_NEST_BYTES - w->size,
                              format, arguments);
  va_end(arguments);
  if (wrote > 0) w->size += (size_t)wrote;
  if (w->size >= PROGRAM_NEST_BYTES) w->size = PROGRAM_NEST_BYTES - 1U;
}

// Which operators an expression has, by their places in the tables.
typedef struct nest_t {
  uint32_t f, g, h, form;
} nest_t;

static nest_t nest_of(const writer_t* w, uint32_t k) {
  const family_t* y = w->family;
  uint32_t n = (w->first + k) * y->stride;
  nest_t out;
  out.h = y->inner[n % y->inners], n /= y->inners;
  out.g = y->middle[n % y->middles], n /= y->middles;
  out.form = n % FORMS, n /= FORMS;
  out.f = y->outer[n];
  return out;
}

// g's type and those of its width are called S, V and C.
static void put_middle(writer_t* w, uint32_t at) {
  char body[96];
  size_t size = strlen(OUTER[at].body);
  if (size >= sizeof body) return;
  for (size_t i = 0; i <= size; i++) {
    const char c = OUTER[at].body[i];
    body[i] = (char)(c == 'T' ? 'S' : c == 'U' ? 'V' : c == 'B' ? 'C' : c);
  }
  put(w, "fn G%u(a: S, b: S) -> S { return %s; }\n", at, body);
}

static void put_functions(writer_t* w) {
  bool f[OUTERS] = {false}, g[OUTERS] = {false}, h[INNERS] = {false};
  for (uint32_t k = 0; k < w->count; k++) {
    const nest_t n = nest_of(w, k);
    f[n.f] = g[n.g] = h[n.h] = true;
  }
  for (uint32_t i = 0; i < (uint32_t)OUTERS; i++) {
    if (f[i]) {
      put(w, "fn F%u(a: T, b: T) -> T { return %s; }\n", i, OUTER[i].body);
    }
    if (g[i]) put_middle(w, i);
  }
  for (uint32_t i = 0; i < (uint32_t)INNERS; i++) {
    if (h[i]) put(w, "fn H%u(a: T) -> T { return %s; }\n", i, INNER[i].body);
  }
}

static void put_expression(writer_t* w, uint32_t k) {
  static const char* const kForms[][FORMS] = {
      {"F(a, G(b, H(z)))", "F(a, G(H(z), b))", "F(G(b, H(z)), a)",
       "F(G(H(z), b), a)", "F(a, H(G(b, z)))", "F(H(G(b, z)), a)",
       "F(H(w), G(a, z))", "F(G(a, z), H(w))"},
      {"F(a, T(G(S(b), S(H(z)))))", "F(a, T(G(S(H(z)), S(b))))",
       "F(T(G(S(b), S(H(z)))), a)", "F(T(G(S(H(z)), S(b))), a)",
       "F(a, H(T(G(S(b), S(z)))))", "F(H(T(G(S(b), S(z)))), a)",
       "F(H(w), T(G(S(a), S(z))))", "F(T(G(S(a), S(z))), H(w))"}};
  const nest_t n = nest_of(w, k);
  const bool other = w->family->type != w->family->inside;
  put(w, "  o[j + %u] = ", k);
  for (const char* at = kForms[other][n.form]; *at != '\0'; at++) {
    switch (*at) {
      case 'F':
        put(w, "F%u", n.f);
        break;
      case 'G':
        put(w, "G%u", n.g);
        break;
      case 'H':
        put(w, "H%u", n.h);
        break;
      case 'z':
        put(w, "z[i + %u]", k);
        break;
      case 'w':
        put(w, "z[i + %u]", k + 1U);
        break;
      default:
        put(w, "%c", *at);
    }
  }
  put(w, ";\n");
}

static void put_types(writer_t* w, const char* names, uint32_t type) {
  static const char* const kUnsigned[] = {"", "u8", "u16", "",   "u32",
                                          "", "",   "",    "u64"};
  put(w, "type %c = %s;\ntype %c = %s;\ntype %c = %s;\n", names[0],
      kilni_program_type_name(type), names[1],
      kilni_program_type_name(kilni_program_type_unsigned(type)), names[2],
      kUnsigned[kilni_program_type_bytes(type)]);
}

void program_nest_text(uint32_t nest, const char* name, char* text) {
  writer_t w = {.text = text, .family = families};
  const uint32_t programs = program_nest_count();
  // Neighbours are far from each other.
  uint32_t step = 7919;
  while (common_divisor(programs, step) != 1U) step++;
  nest = (uint32_t)((uint64_t)nest * step % programs);
  while (nest >= w.family->programs) nest -= w.family++->programs;
  w.first = nest * SIZE;
  w.count = w.family->expressions - w.first;
  if (w.count > SIZE) w.count = SIZE;
  put_types(&w, "TUB", w.family->type);
  put_types(&w, "SVC", w.family->inside);
  put_functions(&w);
  put(&w,
      "program %s(x: in T[%u], y: in T[%u], z: in T[%u],\n"
      "    o: out T[%u]) work %u block 32\n"
      "{ let i = u64(global_id.x); let j = i * %u;\n"
      "  let a = x[i]; let b = y[i];\n",
      name, PROGRAM_NEST_ELEMENTS, PROGRAM_NEST_ELEMENTS,
      PROGRAM_NEST_ELEMENTS + w.count + 1U, PROGRAM_NEST_ELEMENTS * w.count,
      PROGRAM_NEST_ELEMENTS, w.count);
  for (uint32_t k = 0; k < w.count; k++) put_expression(&w, k);
  put(&w, "}\n");
}
