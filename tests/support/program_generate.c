// SPDX-License-Identifier: Apache-2.0
//
// test: programs from seeds: valid, and with one meaning each.
#include "program_generate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "evaluator_values.h"
#include "kiln/program.h"
#include "program/math/program_math.h"

enum {
  PARAMETERS_MOST = 3,  // of a function
  NAMES_MAX = 96,
  ARRAYS_MAX = 24,
  FUNCTIONS_MAX = 4,
  SLOTS = 4,         // elements of each thread in a buffer of its own
  TEXT_ROOM = 2000,  // below this nothing is begun
};

#define TYPE(NAME)                               KILN_PROGRAM_TYPE_##NAME
#define TYPE_NAME(NAME, spelling, bytes, class_) [TYPE(NAME)] = spelling,
static const char* const TYPE_NAMES[] = {KILN_PROGRAM_TYPES(TYPE_NAME)};
enum { TYPE_FIRST = TYPE(BOOL), TYPE_LAST = TYPE(F64) };

// Which operands an operator takes, and what it yields: the table's words.
enum { ANY, NUMBER, INTEGER, SIGNED, FLOAT, BOOL };
enum { SAME, TO_BOOL, TO_U32, UNSIGNED };
#define RESULT_SAME     SAME
#define RESULT_BOOL     TO_BOOL
#define RESULT_U32      TO_U32
#define RESULT_UNSIGNED UNSIGNED

typedef struct operator_t {
  const char* spelling;
  uint8_t operands;
  uint8_t result;
} operator_t;

#define OPERATOR(NAME, spelling, operands, result, meaning) \
  {spelling, operands, RESULT_##result},
static const operator_t UNARY[] = {KILN_PROGRAM_UNARY_OPERATORS(OPERATOR)};
static const operator_t BINARY[] = {KILN_PROGRAM_BINARY_OPERATORS(OPERATOR)};
#define SUBGROUP_ROW(NAME, spelling, operands, result, lane, meaning) \
  {spelling, operands, (lane) << 4U | RESULT_##result},
static const operator_t SUBGROUP[] = {KILN_PROGRAM_SUBGROUPS(SUBGROUP_ROW)};
#define ATOMIC_ROW(NAME, spelling, operands, meaning) {spelling, operands, 0},
static const operator_t ATOMICS[] = {KILN_PROGRAM_ATOMICS(ATOMIC_ROW)};

enum {
  UNARY_COUNT = sizeof UNARY / sizeof *UNARY,
  BINARY_COUNT = sizeof BINARY / sizeof *BINARY,
  SUBGROUP_COUNT = sizeof SUBGROUP / sizeof *SUBGROUP,
  ATOMIC_COUNT = sizeof ATOMICS / sizeof *ATOMICS,
};

typedef struct name_t {
  char kind;  // v: var, l: let, s: scalar, k: a loop's counter
  uint8_t type;
  bool uniform;
  uint32_t number;
} name_t;

// What an array is for.
enum {
  FOR_READING,  // everybody reads it
  FOR_OWN,      // each thread its own elements
  FOR_ATOMICS,  // the common ones, by one operator
  FOR_BLOCK,    // shared
  FOR_COPIES,   // async copies from shared arrays end there
  FOR_SELF,     // private
};

typedef struct array_t {
  char prefix;
  uint8_t type;
  uint8_t use;
  uint32_t number;
  uint32_t count;  // 0: what the caller brings
  uint32_t atomic;
} array_t;

typedef struct function_t {
  uint8_t result;
  uint8_t parameters[PARAMETERS_MOST];
  uint32_t parameter_count;
  uint8_t buffer;  // the type of a buffer parameter, or 0
  bool writes;     // to that buffer, at an index that is its last parameter
} function_t;

typedef struct generator_t {
  uint64_t seed;
  uint32_t with;
  char* text;
  size_t size;
  uint32_t indent;
  uint32_t next;  // number of the next name
  name_t names[NAMES_MAX];
  uint32_t name_count;
  array_t arrays[ARRAYS_MAX];
  uint32_t array_count;
  uint32_t matrices;  // the first of three arrays for a product; 0: none
  function_t functions[FUNCTIONS_MAX];
  uint32_t function_count;
  uint32_t threads;  // in all, those beyond the work not counted
  uint32_t block;    // threads of a block
  uint32_t blocks;
  bool in_function;
  bool uniform;      // all threads of the block come here
  bool everybody;    // shared arrays may be read by all, and not be written
  uint32_t loops;    // around this
  bool loop_breaks;  // the innermost may be left
  bool trapped;      // there is a trap already
} generator_t;

uint64_t program_random(uint64_t* seed) {
  *seed += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *seed;
  z = (z ^ z >> 30U) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27U) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31U;
}

static uint32_t below(generator_t* g, uint32_t n) {
  return (uint32_t)(program_random(&g->seed) % n);
}

static bool one_in(generator_t* g, uint32_t n) {
  return below(g, n) == 0U;
}

__attribute__((format(printf, 2, 3))) static void put(generator_t* g,
                                                      const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(g->text + g->size, PROGRAM_TEXT_BYTES - g->size,
                             format, arguments);
  va_end(arguments);
  if (size > 0) g->size += (size_t)size;
  if (g->size >= PROGRAM_TEXT_BYTES) g->size = PROGRAM_TEXT_BYTES - 1U;
}

static void line(generator_t* g) {
  put(g, "\n%*s", (int)(2U * g->indent), "");
}

static bool full(const generator_t* g) {
  return g->size > PROGRAM_TEXT_BYTES - TEXT_ROOM || g->next > 4000U;
}

// -- types and values -------------------------------------------------------

static bool is_float(uint8_t type) {
  return program_type_is_float(type);
}

static bool is_integer(uint8_t type) {
  return type != TYPE(BOOL) && !is_float(type);
}

static bool takes(uint8_t operands, uint8_t type) {
  switch (operands) {
    case NUMBER:
      return type != TYPE(BOOL);
    case INTEGER:
      return is_integer(type);
    case SIGNED:
      return is_float(type) || program_type_is_signed(type);
    case FLOAT:
      return is_float(type);
    case BOOL:
      return type == TYPE(BOOL);
    default:
      return true;
  }
}

static uint8_t any_type(generator_t* g) {
  return (uint8_t)(TYPE_FIRST + below(g, TYPE_LAST - TYPE_FIRST + 1U));
}

static uint8_t type_for(generator_t* g, uint8_t operands) {
  for (;;) {
    const uint8_t type = any_type(g);
    if (takes(operands, type)) return type;
  }
}

static uint8_t unsigned_type(generator_t* g) {
  static const uint8_t types[] = {TYPE(U8), TYPE(U16), TYPE(U32), TYPE(U64)};
  return types[below(g, 4)];
}

uint64_t program_random_value(uint64_t* seed, uint8_t type) {
  const uint64_t how = program_random(seed) % 8U;
  const uint64_t word = program_random(seed);
  const uint32_t width = 8U * program_type_bytes(type);
  const uint64_t mask = width == 64U ? UINT64_MAX : (UINT64_C(1) << width) - 1U;
  if (type == TYPE(BOOL)) return word & 1U;
  if (how < 2U) return word & mask;
  if (is_float(type)) {
    const bool minus = (word & 1U) != 0U;
    if (how == 2U) return program_nan(type);
    if (how == 3U) return program_nearest(type, minus, 1U, 5000);  // infinity
    if (how == 4U) return program_nearest(type, minus, 0, 0);
    return program_nearest(type, minus, word >> 1U & 0xfffU,
                           -(int32_t)(word >> 20U & 15U));
  }
  const uint64_t small = word >> 8U & 15U;
  if (how < 5U) return small;
  if (how == 5U) return (0U - small) & mask;
  const uint64_t top = UINT64_C(1) << (width - 1U);
  return (how == 6U ? top + small - 8U : word >> (word & 63U)) & mask;
}

// The largest finite number and the least normal one of each float type.
static uint64_t float_end(uint8_t type, bool least) {
  switch (type) {
    case TYPE(F16):
      return least ? 0x400U : 0x7bffU;
    case TYPE(BF16):
      return least ? 0x80U : 0x7f7fU;
    case TYPE(F32):
      return least ? 0x800000U : 0x7f7fffffU;
    default:
      return least ? UINT64_C(1) << 52U : UINT64_C(0x7fefffffffffffff);
  }
}

uint64_t program_edge_value(uint8_t type, uint32_t which) {
  static const double numbers[] = {
      0.0,   1.0,   0.5,     1.5,     2.5,    3.0,    INFINITY, 127.5,
      255.0, 256.0, 65504.0, 32768.0, 0x1p31, 0x1p32, 0x1p63,   0x1p64};
  static const uint64_t whole[] = {0,  1,  2,  3,  7,   8,      10,   31,
                                   32, 33, 63, 64, 100, 0x5555, 1000, 65537};
  const uint32_t width = 8U * program_type_bytes(type);
  const uint64_t mask = width == 64U ? UINT64_MAX : (UINT64_C(1) << width) - 1U;
  const uint64_t top = UINT64_C(1) << (width - 1U);
  const uint32_t half = which / 2U;
  const bool minus = which % 2U != 0U;
  if (type == TYPE(BOOL)) return which & 1U;
  if (!is_float(type)) {
    // 16 numbers of both signs, then four around each end.
    const uint64_t at = half < 16U ? whole[half] : top + (half - 18U);
    return (minus ? 0U - at : at) & mask;
  }
  if (which == 36U) return program_nan(type);
  if (which == 37U) return float_end(type, true) - 1U;
  if (half < 16U) {
    uint64_t bits = 0;
    const double number = minus ? -numbers[half] : numbers[half];
    memcpy(&bits, &number, sizeof bits);
    return program_cast(TYPE(F64), type, bits);
  }
  const uint64_t end = half == 16U   ? 1U
                       : half == 17U ? float_end(type, true)
                                     : float_end(type, false);
  return end | (minus ? top : 0U);
}

static void literal_of(generator_t* g, uint8_t type, uint64_t value) {
  const char* name = TYPE_NAMES[type];
  if (type == TYPE(BOOL)) {
    put(g, "%s", value != 0U ? "true" : "false");
  } else if (is_float(type)) {
    const double number = program_number(type, value);
    const char* minus = signbit(number) ? "-" : "";
    if (isnan(number)) {
      put(g, "nan_%s", name);
    } else if (isinf(number)) {
      put(g, "(%sinf_%s)", minus, name);
    } else {
      put(g, "(%s%a%s)", minus, fabs(number), name);
    }
  } else if (program_type_is_signed(type)) {
    static const char* const other[] = {[TYPE(I8)] = "u8",
                                        [TYPE(I16)] = "u16",
                                        [TYPE(I32)] = "u32",
                                        [TYPE(I64)] = "u64"};
    if (program_extend(type, value) <= INT64_MAX) {
      put(g, "%llu%s", (unsigned long long)value, name);
    } else {
      put(g, "bitcast_%s(%llu%s)", name, (unsigned long long)value,
          other[type]);
    }
  } else {
    put(g, "%llu%s", (unsigned long long)value, name);
  }
}

static void literal(generator_t* g, uint8_t type) {
  literal_of(g, type, program_random_value(&g->seed, type));
}

// -- expressions ------------------------------------------------------------

static void expression(generator_t* g, uint8_t type, uint32_t depth);

static void put_name(generator_t* g, const name_t* name) {
  put(g, "%c%u", name->kind, name->number);
}

// A name of a type in view, at random; NULL if there is none.
static const name_t* some_name(generator_t* g, uint8_t type, bool uniform) {
  const name_t* found = NULL;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < g->name_count; i++) {
    const name_t* n = &g->names[i];
    if (n->type != type || (uniform && !n->uniform)) continue;
    if (one_in(g, ++seen)) found = n;
  }
  return found;
}

static const array_t* some_array(generator_t* g, uint8_t type, uint8_t use) {
  const array_t* found = NULL;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < g->array_count; i++) {
    const array_t* a = &g->arrays[i];
    if (a->use != use || (type != 0U && a->type != type)) continue;
    if (one_in(g, ++seen)) found = a;
  }
  return found;
}

static void own_number(generator_t* g) {
  static const char* const numbers[] = {
      "global_id.x", "local_id.x",  "local_index",  "lane",
      "subgroup",    "block_id.x",  "block_size.x", "block_count.x",
      "work_size.x", "global_id.y", "local_id.z"};
  put(g, "%s", numbers[below(g, sizeof numbers / sizeof *numbers)]);
}

static void leaf(generator_t* g, uint8_t type) {
  const name_t* name = some_name(g, type, false);
  if (name != NULL && !one_in(g, 3)) {
    put_name(g, name);
  } else if (type == TYPE(U32) && !g->in_function && one_in(g, 2)) {
    own_number(g);
  } else if (g->name_count != 0U && one_in(g, 2)) {
    name = &g->names[below(g, g->name_count)];
    if (name->type == type) {
      put_name(g, name);
    } else {
      put(g, "%s(", TYPE_NAMES[type]);
      put_name(g, name);
      put(g, ")");
    }
  } else {
    literal(g, type);
  }
}

static void index_any(generator_t* g, uint32_t depth) {
  if (!g->in_function && one_in(g, 2)) {
    put(g, "(%s + %uu32)", one_in(g, 2) ? "gi" : "local_index", below(g, 4));
  } else if (one_in(g, 4)) {
    put(g, "%uu32", below(g, 40));
  } else {
    expression(g, type_for(g, INTEGER), depth);
  }
}

static void name_array(generator_t* g, const array_t* a) {
  put(g, "%c%u", a->prefix, a->number);
}

// An index of an element that is this thread's own, or of none at all.
static void index_own(generator_t* g, const array_t* a) {
  static const char* const casts[] = {"u64(", "i64(", "i32(", "("};
  if (one_in(g, 12)) {
    static const char* const far[] = {"4294967295u32", "(-1i32)",
                                      "bitcast_i64(18446744073709551000u64)",
                                      "9223372036854775807i64", "(-128i8)"};
    put(g, "%s", far[below(g, 5)]);
    return;
  }
  put(g, "%s", casts[below(g, 4)]);
  if (a->use == FOR_BLOCK) {
    put(g, "local_index)");
  } else if (a->use == FOR_SELF) {
    put(g, "%uu32)", below(g, a->count + 2U));
  } else {
    put(g, "gi * %uu32 + %uu32)", SLOTS, below(g, SLOTS));
  }
}

// A load that nobody else's store comes between.
static bool load(generator_t* g, uint8_t type, uint32_t depth) {
  static const uint8_t uses[] = {FOR_READING, FOR_OWN, FOR_BLOCK, FOR_SELF};
  const uint8_t use = uses[below(g, 4)];
  const array_t* a = some_array(g, type, use);
  if (a == NULL) return false;
  name_array(g, a);
  put(g, "[");
  if (use == FOR_OWN || (use == FOR_BLOCK && !g->everybody)) {
    index_own(g, a);
  } else {
    index_any(g, depth);
  }
  put(g, "]");
  return true;
}

static bool spelt_out(const char* spelling) {
  return spelling[0] >= 'a' && spelling[0] <= 'z';
}

static bool is_math(bool two, uint32_t op) {
  const uint8_t type = TYPE(F32);
  return two ? kilni_program_math_binary(op, type) != 0U &&
                   op != KILN_PROGRAM_BINARY_REM
             : kilni_program_math_unary(op, type) != 0U;
}

static bool unary(generator_t* g, uint8_t type, uint32_t depth) {
  const uint32_t at = below(g, UNARY_COUNT);
  const operator_t* op = &UNARY[at];
  if (is_math(false, at) && (g->with & PROGRAM_WITH_MATH) == 0U) return false;
  uint8_t operand = type;
  if (op->result == TO_BOOL) {
    if (type != TYPE(BOOL)) return false;
    operand = type_for(g, op->operands);
  } else if (op->result == TO_U32) {
    if (type != TYPE(U32)) return false;
    operand = type_for(g, op->operands);
  } else if (!takes(op->operands, type)) {
    return false;
  }
  put(g, spelt_out(op->spelling) ? "%s(" : "(%s(", op->spelling);
  expression(g, operand, depth);
  put(g, spelt_out(op->spelling) ? ")" : "))");
  return true;
}

// The signed type of an unsigned one's width.
static uint8_t signed_of(uint8_t type) {
  switch (type) {
    case TYPE(U8):
      return TYPE(I8);
    case TYPE(U16):
      return TYPE(I16);
    case TYPE(U32):
      return TYPE(I32);
    default:
      return TYPE(I64);
  }
}

static bool binary(generator_t* g, uint8_t type, uint32_t depth) {
  const uint32_t at = below(g, BINARY_COUNT);
  const operator_t* op = &BINARY[at];
  if (is_math(true, at) && (g->with & PROGRAM_WITH_MATH) == 0U) return false;
  uint8_t left = type;
  if (op->result == TO_BOOL) {
    if (type != TYPE(BOOL)) return false;
    left = type_for(g, op->operands);
  } else if (!takes(op->operands, type)) {
    return false;
  } else if (op->result == UNSIGNED && is_integer(type)) {
    if (program_type_is_signed(type)) return false;
    if (one_in(g, 2)) left = signed_of(type);
  }
  uint8_t right = left;
  if (at >= KILN_PROGRAM_BINARY_SHL && at <= KILN_PROGRAM_BINARY_ROTATE_RIGHT) {
    right = unsigned_type(g);
  }
  const bool called = spelt_out(op->spelling);
  put(g, called ? "%s(" : "(", op->spelling);
  expression(g, left, depth);
  if (called) {
    put(g, ", ");
  } else {
    put(g, " %s ", op->spelling);
  }
  expression(g, right, depth);
  put(g, ")");
  return true;
}

static bool call(generator_t* g, uint8_t type, uint32_t depth) {
  if (g->function_count == 0U || g->in_function) return false;
  const uint32_t at = below(g, g->function_count);
  const function_t* f = &g->functions[at];
  if (f->result != type || f->writes) return false;
  const array_t* a = NULL;
  if (f->buffer != 0U) {
    a = some_array(g, f->buffer, FOR_READING);
    if (a == NULL) return false;
  }
  put(g, "f%u(", at);
  for (uint32_t i = 0; i < f->parameter_count; i++) {
    if (i != 0U) put(g, ", ");
    expression(g, f->parameters[i], depth);
  }
  if (a != NULL) {
    put(g, f->parameter_count != 0U ? ", " : "");
    name_array(g, a);
  }
  put(g, ")");
  return true;
}

static bool other(generator_t* g, uint8_t type, uint32_t depth) {
  uint8_t from = 0;
  const array_t* a = NULL;
  switch (below(g, 6)) {
    case 0:
      put(g, "select(");
      expression(g, TYPE(BOOL), depth);
      put(g, ", ");
      expression(g, type, depth);
      put(g, ", ");
      break;
    case 1:
      if (!is_float(type)) return false;
      put(g, "fma(");
      expression(g, type, depth);
      put(g, ", ");
      expression(g, type, depth);
      put(g, ", ");
      break;
    case 2:
      put(g, "%s(", TYPE_NAMES[type]);
      type = any_type(g);
      break;
    case 3:
      from = any_type(g);
      if (from == TYPE(BOOL) || type == TYPE(BOOL) ||
          program_type_bytes(from) != program_type_bytes(type)) {
        return false;
      }
      put(g, "bitcast_%s(", TYPE_NAMES[type]);
      type = from;
      break;
    case 4:
      return call(g, type, depth);
    default:
      if (type != TYPE(U32) && type != TYPE(U64)) return false;
      a = some_array(g, 0, one_in(g, 3) ? FOR_BLOCK : FOR_READING);
      if (a == NULL) return false;
      put(g, type == TYPE(U32) ? "length(" : "length64(");
      name_array(g, a);
      put(g, ")");
      return true;
  }
  expression(g, type, depth);
  put(g, ")");
  return true;
}

static void expression(generator_t* g, uint8_t type, uint32_t depth) {
  if (depth == 0U || full(g) || one_in(g, 8)) {
    leaf(g, type);
    return;
  }
  for (uint32_t tries = 0; tries < 12U; tries++) {
    switch (below(g, 8)) {
      case 0:
      case 1:
        if (unary(g, type, depth - 1U)) return;
        break;
      case 2:
      case 3:
      case 4:
        if (binary(g, type, depth - 1U)) return;
        break;
      case 5:
        if (load(g, type, depth - 1U)) return;
        break;
      default:
        if (other(g, type, depth - 1U)) return;
        break;
    }
  }
  leaf(g, type);
}

static uint32_t some_depth(generator_t* g) {
  return 1U + below(g, 4);
}

// The same in all threads of the grid.
static void uniform_u32(generator_t* g) {
  const name_t* name = some_name(g, TYPE(U32), true);
  if (name != NULL && one_in(g, 2)) {
    put(g, "(");
    put_name(g, name);
    put(g, " %% %uu32)", 1U + below(g, 9));
  } else {
    put(g, "%uu32", below(g, 9));
  }
}

static void uniform_condition(generator_t* g) {
  static const char* const signs[] = {"<", ">", "==", "!=", "<=", ">="};
  put(g, "(");
  uniform_u32(g);
  put(g, " %s ", signs[below(g, 6)]);
  if ((g->with & PROGRAM_WITH_GRID_BARRIER) == 0U && one_in(g, 3)) {
    put(g, "block_id.x");
  } else {
    uniform_u32(g);
  }
  put(g, ")");
}

// -- statements -------------------------------------------------------------

static void body(generator_t* g, uint32_t count, uint32_t depth);

static uint32_t add_name(generator_t* g, char kind, uint8_t type,
                         bool uniform) {
  const uint32_t number = g->next++;
  if (g->name_count < NAMES_MAX) {
    g->names[g->name_count++] = (name_t){kind, type, uniform, number};
  }
  return number;
}

static void declare(generator_t* g) {
  const uint8_t type = any_type(g);
  const bool var = one_in(g, 2);
  line(g);
  put(g, "%s %c%u = ", var ? "var" : "let", var ? 'v' : 'l', g->next);
  expression(g, type, some_depth(g));
  put(g, ";");
  add_name(g, var ? 'v' : 'l', type, false);
}

static bool assign(generator_t* g) {
  const name_t* name = some_name(g, any_type(g), false);
  if (name == NULL || name->kind != 'v') return false;
  line(g);
  put_name(g, name);
  if (is_integer(name->type) && one_in(g, 3)) {
    static const char* const signs[] = {"+", "-", "*", "/", "%", "&", "|", "^"};
    put(g, " %s= ", signs[below(g, 8)]);
  } else {
    put(g, " = ");
  }
  expression(g, name->type, some_depth(g));
  put(g, ";");
  return true;
}

static bool do_store(generator_t* g) {
  static const uint8_t uses[] = {FOR_OWN, FOR_OWN, FOR_BLOCK, FOR_SELF};
  const uint8_t use = uses[below(g, 4)];
  const array_t* a = some_array(g, 0, use);
  if (a == NULL || (use == FOR_BLOCK && g->everybody)) return false;
  line(g);
  name_array(g, a);
  put(g, "[");
  if (use == FOR_SELF && one_in(g, 2)) {
    index_any(g, 2);
  } else {
    index_own(g, a);
  }
  put(g, takes(NUMBER, a->type) && one_in(g, 6) ? "] += " : "] = ");
  expression(g, a->type, some_depth(g));
  put(g, ";");
  return true;
}

static void open_brace(generator_t* g) {
  put(g, " {");
  g->indent++;
}

static void close_brace(generator_t* g) {
  g->indent--;
  line(g);
  put(g, "}");
}

static void barrier(generator_t* g) {
  line(g);
  put(g, one_in(g, 12) && (g->with & PROGRAM_WITH_GRID_BARRIER) != 0U
             ? "grid_barrier;"
             : "barrier;");
  g->everybody = !g->everybody;
}

// A body in which arrays end as they begin.
static void inner(generator_t* g, uint32_t depth) {
  const uint32_t names = g->name_count;
  const bool everybody = g->everybody;
  body(g, 1U + below(g, 4), depth - 1U);
  if (g->everybody != everybody) {
    line(g);
    put(g, "barrier;");
    g->everybody = everybody;
  }
  g->name_count = names;
}

// Leaves what it stands in, as the last statement of an if.
static void leave(generator_t* g) {
  line(g);
  if (g->loops != 0U && g->loop_breaks && !one_in(g, 3)) {
    put(g, one_in(g, 2) ? "break;" : "continue;");
  } else {
    put(g, "return;");
  }
}

static void do_if(generator_t* g, uint32_t depth) {
  const bool uniform = g->uniform && one_in(g, 2);
  const bool was = g->uniform;
  line(g);
  put(g, "if ");
  if (uniform) {
    uniform_condition(g);
  } else {
    expression(g, TYPE(BOOL), some_depth(g));
    g->uniform = false;
  }
  open_brace(g);
  inner(g, depth);
  const bool leaves = !g->in_function && !uniform && one_in(g, 6);
  if (leaves) leave(g);
  close_brace(g);
  if (one_in(g, 2)) {
    put(g, " else");
    open_brace(g);
    inner(g, depth);
    close_brace(g);
  }
  g->uniform = was;
}

// Loads of elements one behind the other; what they come to, or each by itself.
static void loads_in_a_row(generator_t* g, const array_t* a, uint32_t step) {
  const uint32_t count = 2U + below(g, 7), first = below(g, 3);
  const bool sum = takes(NUMBER, a->type) && one_in(g, 3);
  const uint32_t number = g->next;
  if (sum) {
    line(g);
    put(g, "var v%u = %s(0);", number, TYPE_NAMES[a->type]);
    add_name(g, 'v', a->type, false);
  }
  for (uint32_t k = 0; k < count; k++) {
    line(g);
    if (sum) {
      put(g, "v%u = v%u + ", number, number);
    } else {
      put(g, "let l%u = ", g->next);
    }
    name_array(g, a);
    put(g, "[gi * %uu32 + %uu32];", step, first + k);
    if (!sum) add_name(g, 'l', a->type, false);
  }
}

// What may become vectors: of an array that all read, now and then where a test
// has told that all of them are there, or of the thread's own elements.
static bool in_a_row(generator_t* g) {
  const bool store = one_in(g, 3);
  const array_t* a = some_array(g, 0, store ? FOR_OWN : FOR_READING);
  if (a == NULL || g->in_function) return false;
  for (uint32_t k = 0; store && k < SLOTS; k++) {
    line(g);
    name_array(g, a);
    put(g, "[gi * %uu32 + %uu32] = ", SLOTS, k);
    leaf(g, a->type);
    put(g, ";");
  }
  const uint32_t step = 1U + below(g, 8);
  if (store) return true;
  if (one_in(g, 2)) {
    loads_in_a_row(g, a, step);
    return true;
  }
  const bool was = g->uniform;
  const uint32_t names = g->name_count;
  line(g);
  put(g, "if 12u32 < u32(length(");
  name_array(g, a);
  put(g, ")) && gi * %uu32 < u32(length(", step);
  name_array(g, a);
  put(g, ")) - 12u32");
  g->uniform = false;
  open_brace(g);
  loads_in_a_row(g, a, step);
  inner(g, 1);
  close_brace(g);
  g->name_count = names;
  g->uniform = was;
  return true;
}

static void do_trap(generator_t* g) {
  line(g);
  put(g, "if gi == %uu32 {", below(g, g->threads));
  g->indent++;
  line(g);
  put(g, "trap(%uu32, ", below(g, 1000));
  expression(g, TYPE(U64), 2);
  put(g, ");");
  close_brace(g);
  g->trapped = true;
}

// Bounds near the end of the counter's type now and then.
static void range(generator_t* g, uint8_t type, bool uniform) {
  const uint32_t width = 8U * program_type_bytes(type);
  const bool is_signed = program_type_is_signed(type);
  const uint64_t end = (is_signed      ? UINT64_C(1) << (width - 1U)
                        : width == 64U ? 0U
                                       : UINT64_C(1) << width) -
                       1U;
  const char* name = TYPE_NAMES[type];
  if (one_in(g, 3)) {
    const uint64_t from = end - below(g, 6);
    put(g, "%llu%s..%llu%s", (unsigned long long)from, name,
        (unsigned long long)end, name);
  } else if (is_signed && one_in(g, 2)) {
    put(g, "(-%u%s)..%u%s", below(g, 4), name, below(g, 4), name);
  } else if (!uniform && type == TYPE(U32)) {
    put(g, "0u32..(");
    expression(g, type, 2);
    put(g, " %% 5u32)");
  } else {
    put(g, "%u%s..%u%s", below(g, 3), name, below(g, 6), name);
  }
  if (one_in(g, 2)) {
    static const char* const unsigned_names[] = {
        [TYPE(U8)] = "u8",   [TYPE(I8)] = "u8",   [TYPE(U16)] = "u16",
        [TYPE(I16)] = "u16", [TYPE(U32)] = "u32", [TYPE(I32)] = "u32",
        [TYPE(U64)] = "u64", [TYPE(I64)] = "u64"};
    put(g, " step %u%s", 1U + below(g, 120), unsigned_names[type]);
  }
  if (one_in(g, 4)) put(g, " unroll");
}

static void do_for(generator_t* g, uint32_t depth) {
  const bool was = g->uniform, breaks = g->loop_breaks;
  const uint32_t names = g->name_count;
  const uint8_t type = type_for(g, INTEGER);
  if (g->uniform && one_in(g, 2)) g->uniform = false;
  g->loop_breaks = !g->uniform;
  line(g);
  put(g, "for k%u in ", g->next);
  range(g, type, g->uniform);
  add_name(g, 'k', type, g->uniform);
  open_brace(g);
  g->loops++;
  inner(g, depth);
  g->loops--;
  close_brace(g);
  g->name_count = names;
  g->uniform = was;
  g->loop_breaks = breaks;
}

static void do_while(generator_t* g, uint32_t depth) {
  const bool was = g->uniform, breaks = g->loop_breaks;
  const uint32_t number = g->next++;
  line(g);
  put(g, "var w%u = 0u32;", number);
  line(g);
  put(g, "while w%u < %uu32", number, below(g, 5));
  g->uniform = false;
  if (one_in(g, 2)) {
    put(g, " && ");
    expression(g, TYPE(BOOL), 2);
  }
  g->loop_breaks = true;
  open_brace(g);
  line(g);
  put(g, "w%u += 1u32;", number);
  g->loops++;
  inner(g, depth);
  g->loops--;
  close_brace(g);
  g->uniform = was;
  g->loop_breaks = breaks;
}

static void ordering(generator_t* g, uint32_t op, bool shared) {
  static const char* const words[] = {"relaxed", "acquire", "release",
                                      "acq_rel", "seq_cst"};
  static const char* const scopes[] = {"block", "device", "system"};
  if (one_in(g, 2)) return;
  const char* word = words[below(g, 5)];
  if (op == KILN_PROGRAM_ATOMIC_LOAD) {
    word = one_in(g, 2) ? "acquire" : "seq_cst";
  }
  if (op == KILN_PROGRAM_ATOMIC_STORE) {
    word = one_in(g, 2) ? "release" : "seq_cst";
  }
  put(g, ", %s", word);
  if (one_in(g, 2)) put(g, ", %s", shared ? "block" : scopes[below(g, 3)]);
}

// An atomic on an element of its own: its old value is known.
static bool atomic_own(generator_t* g) {
  const uint8_t use = one_in(g, 3) ? FOR_BLOCK : FOR_OWN;
  const array_t* a = some_array(g, 0, use);
  const uint32_t op = below(g, ATOMIC_COUNT);
  if (a == NULL || !takes(ATOMICS[op].operands, a->type)) return false;
  if (use == FOR_BLOCK && g->everybody) return false;
  const bool exchanges = op == KILN_PROGRAM_ATOMIC_COMPARE_EXCHANGE;
  if (exchanges && is_float(a->type)) return false;  // by bits: which NaN?
  line(g);
  const bool store = op == KILN_PROGRAM_ATOMIC_STORE;
  if (!store) put(g, "let l%u = ", g->next);
  put(g, "%s(", ATOMICS[op].spelling);
  name_array(g, a);
  put(g, "[");
  index_own(g, a);
  put(g, "]");
  const uint32_t values = op == KILN_PROGRAM_ATOMIC_LOAD ? 0U
                          : exchanges                    ? 2U
                                                         : 1U;
  for (uint32_t i = 0; i < values; i++) {
    put(g, ", ");
    expression(g, a->type, 2);
  }
  ordering(g, op, use == FOR_BLOCK);
  put(g, ");");
  if (!store) add_name(g, 'l', a->type, false);
  return true;
}

static bool atomic_common(generator_t* g) {
  const array_t* a = some_array(g, 0, FOR_ATOMICS);
  if (a == NULL) return false;
  line(g);
  put(g, "%s(", ATOMICS[a->atomic].spelling);
  name_array(g, a);
  put(g, "[");
  index_any(g, 2);
  put(g, "], ");
  expression(g, a->type, 2);
  ordering(g, a->atomic, false);
  put(g, ");");
  return true;
}

// What another thread of the subgroup has written: nobody writes it between
// the two barriers.
static bool neighbour(generator_t* g) {
  const array_t* a = some_array(g, 0, FOR_BLOCK);
  if (a == NULL || g->everybody) return false;
  line(g);
  put(g, "subgroup_barrier; let l%u = ", g->next);
  name_array(g, a);
  put(g, "[local_index ^ %uu32]; subgroup_barrier;", 1U + below(g, 31));
  add_name(g, 'l', a->type, false);
  return true;
}

static bool matrices(generator_t* g) {
  if (g->matrices == 0U) return false;
  const array_t* d = &g->arrays[g->matrices];
  line(g);
  put(g, "matrix_multiply_accumulate(p%u, p%u, p%u);", d[0].number, d[1].number,
      d[2].number);
  return true;
}

static bool subgroup(generator_t* g) {
  if (!g->uniform || g->in_function) return false;
  if (one_in(g, 6) && neighbour(g)) return true;
  if (one_in(g, 3) && matrices(g)) return true;
  const uint32_t at = below(g, SUBGROUP_COUNT);
  const operator_t* op = &SUBGROUP[at];
  const uint8_t type = type_for(g, op->operands);
  line(g);
  put(g, "let l%u = %s(", g->next, op->spelling);
  expression(g, type, 2);
  if (at == KILN_PROGRAM_SUBGROUP_BROADCAST) {
    put(g, ", ");
    uniform_u32(g);
  } else if (op->result >> 4U != 0U) {
    put(g, ", ");
    expression(g, TYPE(U32), 2);
    put(g, " %% 40u32");
  }
  put(g, ");");
  add_name(g, 'l', (op->result & 15U) == TO_U32 ? TYPE(U32) : type, false);
  return true;
}

// Another shared array than this one, with an array to fill it from.
static const array_t* other_shared(const generator_t* g, const array_t* but,
                                   const array_t** out_from) {
  for (uint32_t i = 0; i < g->array_count; i++) {
    const array_t* a = &g->arrays[i];
    if (a == but || a->use != FOR_BLOCK) continue;
    for (uint32_t k = 0; k < g->array_count; k++) {
      *out_from = &g->arrays[k];
      if ((*out_from)->use == FOR_READING && (*out_from)->type == a->type) {
        return a;
      }
    }
  }
  return NULL;
}

// What a copy brought is read while another one goes on.
static void async_copy_two(generator_t* g, const array_t* first, uint32_t tag) {
  const array_t* from = NULL;
  const array_t* second = other_shared(g, first, &from);
  if (second == NULL) return;
  line(g);
  put(g, "async_copy(%c%u, 1u32, %c%u, block_id.x, 9u32) tag %u;",
      second->prefix, second->number, from->prefix, from->number, tag + 1U);
  line(g);
  put(g, "async_wait %u;", tag);
  line(g);
  put(g, "let l%u = %c%u[local_index];", g->next, first->prefix, first->number);
  add_name(g, 'l', first->type, false);
  line(g);
  put(g, "async_wait %u;", tag + 1U);
}

static bool async_copy(generator_t* g) {
  if (!g->uniform || g->in_function || g->loops > 1U) return false;
  const array_t* shared = some_array(g, 0, FOR_BLOCK);
  if (shared == NULL) return false;
  const bool out = one_in(g, 3);
  const array_t* global =
      some_array(g, shared->type, out ? FOR_COPIES : FOR_READING);
  if (global == NULL) return false;
  if (!(out && g->everybody)) {
    line(g);
    put(g, "barrier;");
  }
  const uint32_t tag = below(g, 3);
  line(g);
  if (out) {
    put(g,
        "async_copy(%c%u, (block_id.x + block_count.x * (block_id.y + "
        "block_count.y * block_id.z)) * %uu32, %c%u, %uu32, %uu32) tag %u;",
        global->prefix, global->number, g->block, shared->prefix,
        shared->number, below(g, 4), g->block, tag);
  } else {
    put(g, "async_copy(%c%u, %uu32, %c%u, ", shared->prefix, shared->number,
        below(g, 5), global->prefix, global->number);
    uniform_u32(g);
    put(g, ", %uu32) tag %u;", below(g, 70), tag);
    if (tag == 2U) async_copy_two(g, shared, tag);
  }
  line(g);
  put(g, "async_wait %u;", tag);
  g->everybody = true;
  return true;
}

// A call of a function that writes.
static bool call_writer(generator_t* g) {
  if (g->in_function || g->function_count == 0U) return false;
  const uint32_t at = below(g, g->function_count);
  const function_t* f = &g->functions[at];
  if (!f->writes) return false;
  const array_t* a = some_array(g, f->buffer, FOR_OWN);
  if (a == NULL) return false;
  line(g);
  if (f->result != 0U) put(g, "let l%u = ", g->next);
  put(g, "f%u(", at);
  for (uint32_t i = 0; i < f->parameter_count; i++) {
    expression(g, f->parameters[i], 2);
    put(g, ", ");
  }
  name_array(g, a);
  put(g, ", gi * %uu32 + %uu32);", SLOTS, below(g, SLOTS));
  if (f->result != 0U) add_name(g, 'l', f->result, false);
  return true;
}

static bool uniform_let(generator_t* g) {
  line(g);
  put(g, "let l%u = ", g->next);
  uniform_u32(g);
  put(g, ";");
  add_name(g, 'l', TYPE(U32), true);
  return true;
}

static void statement(generator_t* g, uint32_t depth) {
  for (;;) {
    switch (below(g, 26)) {
      case 0:
      case 1:
      case 2:
        declare(g);
        return;
      case 3:
      case 4:
        if (assign(g)) return;
        break;
      case 5:
      case 6:
      case 7:
      case 8:
        if (do_store(g)) return;
        break;
      case 9:
      case 10:
        if (depth == 0U) break;
        do_if(g, depth);
        return;
      case 11:
        if (depth == 0U || g->loops > 2U) break;
        do_for(g, depth);
        return;
      case 12:
        if (depth == 0U || g->loops > 2U) break;
        do_while(g, depth);
        return;
      case 13:
      case 14:
        if (!g->in_function && atomic_own(g)) return;
        break;
      case 15:
        if (!g->in_function && atomic_common(g)) return;
        break;
      case 16:
      case 17:
      case 18:
        if (subgroup(g)) return;
        break;
      case 19:
      case 20:
        if (!g->uniform || g->in_function) break;
        barrier(g);
        return;
      case 21:
        if (async_copy(g)) return;
        break;
      case 24:
      case 25:
        if (in_a_row(g)) return;
        break;
      case 22:
        if (call_writer(g) || (g->uniform && uniform_let(g))) return;
        break;
      default:
        if ((g->with & PROGRAM_WITH_TRAP) == 0U || g->trapped ||
            g->in_function || !one_in(g, 8)) {
          break;
        }
        do_trap(g);
        return;
    }
  }
}

static void body(generator_t* g, uint32_t count, uint32_t depth) {
  for (uint32_t i = 0; i < count; i++) {
    if (full(g)) break;
    statement(g, depth);
  }
}

// -- the program ------------------------------------------------------------

static void private_array(generator_t* g) {
  if (g->array_count == ARRAYS_MAX) return;
  array_t* a = &g->arrays[g->array_count++];
  *a = (array_t){'p', any_type(g), FOR_SELF, g->next++, 1U + below(g, 9), 0};
  line(g);
  put(g, "private p%u: %s[%u];", a->number, TYPE_NAMES[a->type], a->count);
}

// Parts of three matrices, filled with something.
static void matrix_arrays(generator_t* g) {
  if (g->array_count + 3U > (uint32_t)ARRAYS_MAX) return;
  const uint8_t type = one_in(g, 2) ? TYPE(F16) : TYPE(BF16);
  const uint8_t types[3] = {TYPE(F32), type, type};
  const uint32_t counts[3] = {4, 8, 4};
  g->matrices = g->array_count;
  for (uint32_t i = 0; i < 3U; i++) {
    array_t* a = &g->arrays[g->array_count++];
    *a = (array_t){'p', types[i], FOR_SELF, g->next++, counts[i], 0};
    line(g);
    put(g, "private p%u: %s[%u];", a->number, TYPE_NAMES[a->type], a->count);
  }
}

static void fill_matrices(generator_t* g) {
  if (g->matrices == 0U) return;
  for (uint32_t i = 1; i < 3U; i++) {
    const array_t* a = &g->arrays[g->matrices + i];
    for (uint32_t k = 0; k < a->count; k += 1U + below(g, 3)) {
      line(g);
      put(g, "p%u[%u] = %s(i32(lane * %uu32 %% 13u32) - 6i32);", a->number, k,
          TYPE_NAMES[a->type], 1U + below(g, 12));
    }
  }
}

static void function(generator_t* g) {
  const uint32_t at = g->function_count;
  function_t* f = &g->functions[at];
  const uint32_t arrays = g->array_count;
  *f = (function_t){.result = any_type(g),
                    .parameter_count = below(g, PARAMETERS_MOST + 1)};
  f->writes = one_in(g, 3);
  if (f->writes && one_in(g, 2)) f->result = 0;
  if (f->writes || one_in(g, 3)) f->buffer = any_type(g);
  g->in_function = true;
  g->uniform = false;
  put(g, "fn f%u(", at);
  // The second bound is for compilers that cannot see the first.
  for (uint32_t i = 0; i < f->parameter_count && i < PARAMETERS_MOST; i++) {
    f->parameters[i] = any_type(g);
    put(g, "%ss%u: %s", i != 0U ? ", " : "", g->next,
        TYPE_NAMES[f->parameters[i]]);
    add_name(g, 's', f->parameters[i], false);
  }
  const char* comma = f->parameter_count != 0U ? ", " : "";
  if (f->buffer != 0U) {
    put(g, "%sb%u: %s %s[]", comma, at, f->writes ? "inout" : "in",
        TYPE_NAMES[f->buffer]);
    if (!f->writes) {
      g->arrays[g->array_count++] =
          (array_t){'b', f->buffer, FOR_READING, at, 0, 0};
    }
  }
  if (f->writes) put(g, ", at: u32");
  put(g, ")");
  if (f->result != 0U) put(g, " -> %s", TYPE_NAMES[f->result]);
  open_brace(g);
  if (one_in(g, 2)) private_array(g);
  body(g, below(g, 4), 2);
  if (f->writes) {
    line(g);
    put(g, "b%u[at] = ", at);
    expression(g, f->buffer, 3);
    put(g, ";");
  }
  if (one_in(g, 2)) {
    line(g);
    put(g, "if ");
    expression(g, TYPE(BOOL), 2);
    put(g, " { return");
    if (f->result != 0U) {
      put(g, " ");
      expression(g, f->result, 2);
    }
    put(g, "; }");
  }
  if (f->result != 0U) {
    line(g);
    put(g, "return ");
    expression(g, f->result, 3);
    put(g, ";");
  }
  close_brace(g);
  put(g, "\n\n");
  g->name_count = 0;
  g->array_count = arrays;
  g->in_function = false;
  g->function_count++;
}

static void buffer(generator_t* g, const char* role, uint8_t use, uint8_t type,
                   uint32_t count) {
  array_t* a = &g->arrays[g->array_count++];
  *a = (array_t){'b', type, use, g->next++, count, 0};
  put(g, ",\n    b%u: %s %s[", a->number, role, TYPE_NAMES[type]);
  if (count != 0U) put(g, "%u", count);
  put(g, "]");
  if (use != FOR_ATOMICS) return;
  static const uint8_t ops[] = {
      KILN_PROGRAM_ATOMIC_ADD, KILN_PROGRAM_ATOMIC_SUB, KILN_PROGRAM_ATOMIC_MIN,
      KILN_PROGRAM_ATOMIC_MAX, KILN_PROGRAM_ATOMIC_AND, KILN_PROGRAM_ATOMIC_OR,
      KILN_PROGRAM_ATOMIC_XOR};
  a->atomic = ops[below(g, 7)];
  // A sum of floats depends on its order.
  if (is_float(type)) a->atomic = one_in(g, 2) ? ops[2] : ops[3];
}

static void parameters(generator_t* g) {
  put(g, "s9000: u32");
  g->names[g->name_count++] = (name_t){'s', TYPE(U32), true, 9000};
  for (uint32_t i = 0, count = below(g, 3); i < count; i++) {
    const uint8_t type = any_type(g);
    put(g, ", s%u: %s", g->next, TYPE_NAMES[type]);
    add_name(g, 's', type, true);
  }
  for (uint32_t i = 0, count = 2U + below(g, 3); i < count; i++) {
    buffer(g, one_in(g, 4) ? "uniform" : "in", FOR_READING, any_type(g),
           one_in(g, 2) ? 0U : 1U + below(g, 200));
  }
  for (uint32_t i = 0, count = 1U + below(g, 3); i < count; i++) {
    // Some threads' elements may be missing.
    const uint32_t slots = g->threads * SLOTS;
    buffer(g,
           one_in(g, 2)   ? "out"
           : one_in(g, 2) ? "inout"
                          : "resident",
           FOR_OWN, any_type(g), one_in(g, 4) ? 1U + below(g, slots) : slots);
  }
  if (one_in(g, 2)) {
    buffer(g, "inout", FOR_ATOMICS, type_for(g, NUMBER), 1U + below(g, 9));
  }
}

// Work and block; sets threads, block and blocks.
static void shape(generator_t* g, char* out_text, size_t space) {
  static const uint32_t blocks[][3] = {{32, 1, 1}, {64, 1, 1}, {48, 1, 1},
                                       {7, 1, 1},  {33, 1, 1}, {8, 4, 1},
                                       {16, 3, 1}, {4, 3, 5},  {1, 1, 1}};
  const uint32_t* b = blocks[below(g, 9)];
  const uint32_t dims = b[2] > 1U ? 3U : b[1] > 1U ? 2U : 1U;
  uint32_t work[3] = {1, 1, 1};
  g->block = b[0] * b[1] * b[2];
  g->threads = 1;
  g->blocks = 1;
  for (uint32_t k = 0; k < dims; k++) {
    work[k] = 1U + below(g, b[k] * (k == 0U ? 3U : 2U));
    g->threads *= work[k];
    g->blocks *= (work[k] + b[k] - 1U) / b[k];
  }
  snprintf(out_text, space, "    work (%u, %u, %u)\n    block (%u, %u, %u)\n{",
           work[0], work[1], work[2], b[0], b[1], b[2]);
}

void program_generate(uint64_t seed, uint32_t with, const char* name,
                      char* out_text) {
  generator_t g = {.seed = seed, .with = with, .text = out_text};
  char head[128];
  // Small changes of the seed are large ones of the program.
  g.seed = program_random(&g.seed);
  shape(&g, head, sizeof head);
  out_text[0] = '\0';
  for (uint32_t i = 0, count = below(&g, FUNCTIONS_MAX); i < count; i++) {
    function(&g);
  }
  put(&g, "program %s(", name);
  parameters(&g);
  const uint8_t copied = any_type(&g);
  if (one_in(&g, 3)) {
    buffer(&g, "in", FOR_READING, copied, 1U + below(&g, 90));
    buffer(&g, "out", FOR_COPIES, copied, g.blocks * g.block);
  }
  put(&g, ")\n%s", head);
  g.indent = 1;
  g.uniform = true;
  for (uint32_t i = 0, count = below(&g, 3); i < count; i++) {
    array_t* a = &g.arrays[g.array_count++];
    *a = (array_t){'c',
                   i == 0U ? copied : any_type(&g),
                   FOR_BLOCK,
                   g.next++,
                   one_in(&g, 3) ? 1U + below(&g, g.block) : g.block,
                   0};
    line(&g);
    put(&g, "shared c%u: %s[%u];", a->number, TYPE_NAMES[a->type], a->count);
  }
  for (uint32_t i = 0, count = below(&g, 3); i < count; i++) private_array(&g);
  if (one_in(&g, 6)) matrix_arrays(&g);
  fill_matrices(&g);
  line(&g);
  put(&g,
      "let gi = global_id.x + work_size.x * (global_id.y + "
      "work_size.y * global_id.z);");
  body(&g, 6U + below(&g, 14), 3);
  // What it came to is seen.
  for (uint32_t i = 0; i < 4U; i++) (void)do_store(&g);
  close_brace(&g);
  put(&g, "\n");
}
