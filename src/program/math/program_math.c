// SPDX-License-Identifier: Apache-2.0
//
// program: strict math: the library of functions, and who may be faster.
//
// The tables are made by tools/gen_program_math.py from the functions as they
// are written in tools/strict_math.py.
#include "program/math/program_math.h"

#include <stddef.h>

#include "program/math/program_math_gen.inc"

#define E(op, type, extra, a, b, c) \
  {KILNI_EXPR_##op, KILN_PROGRAM_TYPE_##type, (extra), (a), (b), (c)},
static const kilni_program_expr_record_t kExprs[] = {KILNI_MATH_EXPRS};

// A statement of the library has at most two operands and one inner list.
#define S(op_, a_, b_, body_, next_) \
  {.op = KILNI_STATEMENT_##op_,      \
   .a = (a_),                        \
   .b = (b_),                        \
   .body = (body_),                  \
   .next = (next_)},
static const kilni_program_statement_record_t kStatements[] = {
    KILNI_MATH_STATEMENTS};

#define KIND_0         0
#define KIND_LET       KILNI_VARIABLE_LET
#define KIND_VAR       KILNI_VARIABLE_VAR
#define KIND_PARAMETER KILNI_VARIABLE_PARAMETER
#define V(name, type, kind, function) \
  {(name), KILN_PROGRAM_TYPE_##type, KIND_##kind, (function)},
static const kilni_program_variable_record_t kVariables[] = {
    KILNI_MATH_VARIABLES};

#define F(name_, parameters_, count_, type_, body_) \
  {.name = (name_),                                 \
   .parameters = (parameters_),                     \
   .parameter_count = (count_),                     \
   .type = KILN_PROGRAM_TYPE_##type_,               \
   .pure = 1,                                       \
   .body = (body_)},
static const kilni_program_function_record_t kFunctions[] = {
    KILNI_MATH_FUNCTIONS};

#define O(value) (value),
static const uint32_t kOperands[] = {KILNI_MATH_OPERANDS};

static const char kNames[] = KILNI_MATH_NAMES;

typedef struct which_t {
  uint8_t binary;
  uint8_t op;
  uint8_t type;
  uint8_t function;
} which_t;

enum { IS_UNARY = 0, IS_BINARY = 1 };
#define W(kind, op, type, function) \
  {IS_##kind, KILN_PROGRAM_##kind##_##op, KILN_PROGRAM_TYPE_##type, (function)},
static const which_t kWhich[] = {KILNI_MATH_WHICH};

enum { WHICH_COUNT = sizeof kWhich / sizeof *kWhich };

// The IR's tables are written by those who build them; nobody writes here.
#define VIEW(table, rows)                                                 \
  do {                                                                    \
    out_library->table.items = (void*)(uintptr_t)(rows);                  \
    out_library->table.count = (uint32_t)(sizeof(rows) / sizeof *(rows)); \
    out_library->table.capacity = out_library->table.count;               \
  } while (0)

void kilni_program_math_view(kilni_program_ir_t* out_library) {
  *out_library = (kilni_program_ir_t){.name = 0};
  VIEW(exprs, kExprs);
  VIEW(statements, kStatements);
  VIEW(variables, kVariables);
  VIEW(functions, kFunctions);
  VIEW(operands, kOperands);
  VIEW(names, kNames);
}

static uint32_t math_find(uint32_t binary, uint32_t op, uint8_t type) {
  for (uint32_t i = 0; i < (uint32_t)WHICH_COUNT; i++) {
    if (kWhich[i].binary == binary && kWhich[i].op == op &&
        kWhich[i].type == type) {
      return kWhich[i].function;
    }
  }
  return 0;
}

uint32_t kilni_program_math_unary(uint32_t op, uint8_t type) {
  return math_find(IS_UNARY, op, type);
}

uint32_t kilni_program_math_binary(uint32_t op, uint8_t type) {
  return math_find(IS_BINARY, op, type);
}

// What each approximation promises at worst, in units of the last place of an
// f32, rounded up, and where the PTX ISA says so, under "Floating Point
// Instructions" by the instruction's name. A relative error of 2^-n is less
// than 2^(24 - n) ULP. Those with an absolute bound only are as wrong as can
// be near a zero of the function: no budget but the unlimited one covers them.
#define UNARY(NAME)  IS_UNARY, KILN_PROGRAM_UNARY_##NAME
#define BINARY(NAME) IS_BINARY, KILN_PROGRAM_BINARY_##NAME

static const struct {
  uint32_t binary;
  uint32_t op;
  uint32_t ulp;
  kilni_program_math_fast_t fast;
} kFast[] = {
    // rcp: 1 ulp over the full range of inputs.
    {UNARY(RECIPROCAL), 1, KILNI_MATH_FAST_RCP},
    // rsqrt: relative 2^-22.9 over all positive finite numbers: 2.15.
    {UNARY(INVERSE_SQRT), 3, KILNI_MATH_FAST_RSQRT},
    // sqrt: relative 2^-23 over all positive finite numbers.
    {UNARY(SQRT), 2, KILNI_MATH_FAST_SQRT},
    // ex2: 2 ulp from the correctly rounded result, itself half of one off.
    {UNARY(EXP2), 3, KILNI_MATH_FAST_EX2},
    // The same of y = x * log2(e), |y| < 128: rounding y is 2^-18, the factor
    // 1.4e-8 of y; their sum times ln(2) is 64.2 ULP of the result.
    {UNARY(EXP), 67, KILNI_MATH_FAST_EXP},
    // lg2: absolute 2^-22 in (0.5, 2), relative elsewhere.
    {UNARY(LOG2), UINT32_MAX, KILNI_MATH_FAST_LG2},
    {UNARY(LOG), UINT32_MAX, KILNI_MATH_FAST_LOG},
    // sin, cos: absolute 2^-20.5 to 2 pi, 2^-14.7 to 100 pi, none beyond.
    {UNARY(SIN), UINT32_MAX, KILNI_MATH_FAST_SIN},
    {UNARY(COS), UINT32_MAX, KILNI_MATH_FAST_COS},
    // tanh: relative 2^-11 over all numbers.
    {UNARY(TANH), 8192, KILNI_MATH_FAST_TANH},
    // div.full: 2 ulp over the full range of inputs.
    {BINARY(DIV), 2, KILNI_MATH_FAST_DIV},
};

static kilni_program_math_fast_t math_fast(uint32_t binary, uint32_t op,
                                           uint8_t type, uint32_t max_ulp) {
  if (type != KILN_PROGRAM_TYPE_F32) return KILNI_MATH_FAST_NONE;
  for (size_t i = 0; i < sizeof kFast / sizeof *kFast; i++) {
    if (kFast[i].binary == binary && kFast[i].op == op) {
      return kFast[i].ulp <= max_ulp ? kFast[i].fast : KILNI_MATH_FAST_NONE;
    }
  }
  return KILNI_MATH_FAST_NONE;
}

kilni_program_math_fast_t kilni_program_math_fast_unary(uint32_t op,
                                                        uint8_t type,
                                                        uint32_t max_ulp) {
  return math_fast(IS_UNARY, op, type, max_ulp);
}

kilni_program_math_fast_t kilni_program_math_fast_binary(uint32_t op,
                                                         uint8_t type,
                                                         uint32_t max_ulp) {
  return math_fast(IS_BINARY, op, type, max_ulp);
}

// mma of f16 and bf16 into f32: products as they are, sums of "at least single
// precision" in an order and with a rounding that the PTX ISA leaves open. 16
// sums, each less than 2^-23 of what it comes to, and that is no more than the
// sum S of all absolute values: 16 * 2^-23 * S is 32 ULP of S at most.
enum { MATRIX_ULP = 32 };

bool kilni_program_math_fast_matrix(uint32_t max_ulp) {
  return max_ulp >= MATRIX_ULP;
}
