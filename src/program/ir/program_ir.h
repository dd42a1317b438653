// SPDX-License-Identifier: Apache-2.0
//
// program: a program in memory: flat tables of records, named by their index.
//
// Everything else in the module reads these tables: the printer, the validator,
// the hash, the optimiser (which writes new ones), the lowering and the tests'
// evaluator. Records refer to each other by index, 0 is "none" (the first
// record of each table is unused), so that a program is copied by copying its
// tables and never needs relocation.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_IR_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_IR_H_

#include "kiln/allocator.h"
#include "kiln/program.h"
#include "kiln/program_operators.h"
#include "kiln/status.h"

// What an expression is; its operands.
typedef enum kilni_program_expr_op_t {
  KILNI_EXPR_NONE = 0,
  KILNI_EXPR_LITERAL,   // a, b: low and high 32 bits of its value's bits
  KILNI_EXPR_VARIABLE,  // a: variable
  KILNI_EXPR_SCALAR,    // a: scalar
  KILNI_EXPR_LENGTH,    // a: buffer; type U32, or U64 (length64)
  KILNI_EXPR_ID,        // extra: KILN_PROGRAM_ID_* | axis << 8
  KILNI_EXPR_LOAD,      // a: buffer, b: index of any integer type
  KILNI_EXPR_UNARY,     // extra: KILN_PROGRAM_UNARY_*, a
  KILNI_EXPR_BINARY,    // extra: KILN_PROGRAM_BINARY_*, a, b
  KILNI_EXPR_SELECT,    // a: bool, b: if true, c: if false; both evaluated
  KILNI_EXPR_FMA,       // a * b + c, rounded once
  KILNI_EXPR_CAST,      // a, to `type`, by value
  KILNI_EXPR_BITCAST,   // a, to a type of the same size, by bits
  KILNI_EXPR_SUBGROUP,  // extra: KILN_PROGRAM_SUBGROUP_*, a: value, b: lane
  KILNI_EXPR_ATOMIC,    // extra: KILNI_ATOMIC(...), a: buffer, b: first of
                        // the operands: index, [expected,] value (LOAD: only
                        // the index), c: how many
  KILNI_EXPR_CALL,      // a: function, b: first of the operands, c: how many;
                        // for a parameter that is a buffer: the buffer
} kilni_program_expr_op_t;

// An expression. `type` is KILN_PROGRAM_TYPE_*, NONE for a call or an atomic
// without a value. SUBGROUP, ATOMIC and a CALL of a function that is not pure
// are the whole right side of a let, var, assign or evaluate, never inside
// another expression: the order of effects is the order of statements.
typedef struct kilni_program_expr_record_t {
  uint8_t op;
  uint8_t type;
  uint16_t extra;
  uint32_t a;
  uint32_t b;
  uint32_t c;
} kilni_program_expr_record_t;

#define KILNI_ATOMIC(op, ordering, scope) \
  ((uint16_t)((op) | (ordering) << 8 | (scope) << 12))
#define KILNI_ATOMIC_OP(extra)       ((extra) & 0xffU)
#define KILNI_ATOMIC_ORDERING(extra) ((extra) >> 8 & 0xfU)
#define KILNI_ATOMIC_SCOPE(extra)    ((extra) >> 12)

typedef enum kilni_program_statement_op_t {
  KILNI_STATEMENT_NONE = 0,
  KILNI_STATEMENT_LET,       // a: variable, b: value
  KILNI_STATEMENT_VAR,       // a: variable, b: first value
  KILNI_STATEMENT_ASSIGN,    // a: variable, b: value
  KILNI_STATEMENT_STORE,     // a: buffer, b: index, c: value
  KILNI_STATEMENT_EVALUATE,  // a: expression with an effect
  KILNI_STATEMENT_IF,        // a: condition, body, other
  KILNI_STATEMENT_FOR,       // a: variable, b: from, c: to (half open), d:
                             // step or 0 (1), body; extra: KILNI_FOR_UNROLL
  KILNI_STATEMENT_WHILE,     // a: condition, body
  KILNI_STATEMENT_BREAK,
  KILNI_STATEMENT_CONTINUE,
  KILNI_STATEMENT_RETURN,  // a: value or 0
  KILNI_STATEMENT_BARRIER,
  KILNI_STATEMENT_GRID_BARRIER,
  KILNI_STATEMENT_ASYNC_COPY,  // a: to buffer | from buffer << 16, b: to
                               // index, c: from index, d: count; extra: tag
  KILNI_STATEMENT_ASYNC_WAIT,  // extra: tag
  KILNI_STATEMENT_TRAP,        // a: tag (u32), b: address (u64)
  KILNI_STATEMENT_SUBGROUP_BARRIER,
  KILNI_STATEMENT_MATRIX,  // d += a b, fragments of matrices in private
                           // arrays; a: d, b: a, c: b
  KILNI_STATEMENT_COUNT,   // behind the last
} kilni_program_statement_op_t;

enum { KILNI_FOR_UNROLL = 1 };

// Elements of the arrays of a MATRIX.
enum {
  KILNI_MATRIX_D = 4,
  KILNI_MATRIX_A = 8,
  KILNI_MATRIX_B = 4,
};

// A statement; `next` follows it in its list.
typedef struct kilni_program_statement_record_t {
  uint8_t op;
  uint8_t reserved;
  uint16_t extra;
  uint32_t a;
  uint32_t b;
  uint32_t c;
  uint32_t d;
  uint32_t body;   // first statement of the inner list
  uint32_t other;  // of else
  uint32_t next;
  uint32_t line;  // where it stands in its text; 0 for a built one
} kilni_program_statement_record_t;

// A let, a var, a loop's counter or a function's parameter.
typedef struct kilni_program_variable_record_t {
  uint32_t name;      // into the names
  uint8_t type;       // KILN_PROGRAM_TYPE_*
  uint8_t kind;       // KILNI_VARIABLE_*
  uint16_t function;  // whose it is; 0: the program's own
} kilni_program_variable_record_t;

enum {
  KILNI_VARIABLE_LET = 1,
  KILNI_VARIABLE_VAR,
  KILNI_VARIABLE_COUNTER,    // of a for
  KILNI_VARIABLE_PARAMETER,  // of a function, by value
};

// A buffer: a parameter of the program, a shared or private array, or a
// buffer parameter of a function (`role` is what the function does with it).
typedef struct kilni_program_buffer_record_t {
  uint32_t name;
  uint8_t type;
  uint8_t role;       // KILN_PROGRAM_ROLE_*
  uint16_t function;  // whose parameter or private array; 0: the program's
  uint32_t count;     // expression of lengths, scalars and literals; 0: what
                      // the caller brings. Shared and private: a literal
  uint32_t line;
} kilni_program_buffer_record_t;

typedef struct kilni_program_scalar_record_t {
  uint32_t name;
  uint8_t type;
  uint8_t reserved[3];
} kilni_program_scalar_record_t;

// Operands and parameters are runs of `operands`: expressions in a call, in a
// function's list variables, or buffers with KILNI_PARAMETER_BUFFER set.
typedef struct kilni_program_function_record_t {
  uint32_t name;
  uint32_t parameters;  // first of them in `operands`
  uint16_t parameter_count;
  uint8_t type;  // of the result, NONE for none
  uint8_t pure;  // no store, atomic, barrier, subgroup, trap, no call of such
  uint32_t body;
  uint32_t line;
} kilni_program_function_record_t;

#define KILNI_PARAMETER_BUFFER 0x80000000U

// A table that grows; `items` starts with the unused record.
#define KILNI_IR_TABLE(type) \
  struct {                   \
    type* items;             \
    uint32_t count;          \
    uint32_t capacity;       \
  }

// The tables whose records a problem may be about.
enum {
  KILNI_IR_PROGRAM,  // the program itself
  KILNI_IR_EXPR,
  KILNI_IR_STATEMENT,
  KILNI_IR_VARIABLE,
  KILNI_IR_BUFFER,
  KILNI_IR_SCALAR,
  KILNI_IR_FUNCTION,
  KILNI_IR_KIND_COUNT,
};

// How many records a table may have.
enum {
  KILNI_IR_MAX_EXPRS = 1 << 20,
  KILNI_IR_MAX_STATEMENTS = 1 << 20,
  KILNI_IR_MAX_VARIABLES = 1 << 20,
  KILNI_IR_MAX_BUFFERS = 0xffff,
  KILNI_IR_MAX_SCALARS = 0xffff,
  KILNI_IR_MAX_FUNCTIONS = 0xffff,
  KILNI_IR_MAX_OPERANDS = 1 << 20,
  KILNI_IR_MAX_NAME_BYTES = 1 << 24,

  KILNI_IR_MAX_CALL = 64,         // operands of a call
  KILNI_IR_MAX_DEPTH = 256,       // of expressions in each other
  KILNI_IR_MAX_NESTING = 120,     // of statements
  KILNI_IR_MAX_TREE = 1 << 20,    // nodes, what is used twice counted twice
  KILNI_IR_MAX_CALL_DEPTH = 32,   // of functions that call each other
  KILNI_IR_MAX_PARAMETERS = 128,  // of the program
  KILNI_IR_MAX_ARRAY_BYTES = 1 << 20,  // shared ones together
  // Private ones together: local memory of a thread, by the table of technical
  // specifications in the CUDA C++ Programming Guide.
  KILNI_IR_MAX_PRIVATE_BYTES = 512 << 10,
  KILNI_IR_MAX_NAME = 63,  // bytes of one name
};

// A program's tables. One block of memory each, from one allocator.
typedef struct kilni_program_ir_t {
  kiln_allocator_t allocator;
  kiln_status_code_t failed;  // of the first add that failed; OK
  KILNI_IR_TABLE(kilni_program_expr_record_t) exprs;
  KILNI_IR_TABLE(kilni_program_statement_record_t) statements;
  KILNI_IR_TABLE(kilni_program_variable_record_t) variables;
  KILNI_IR_TABLE(kilni_program_buffer_record_t) buffers;
  KILNI_IR_TABLE(kilni_program_scalar_record_t) scalars;
  KILNI_IR_TABLE(kilni_program_function_record_t) functions;
  KILNI_IR_TABLE(uint32_t) operands;
  KILNI_IR_TABLE(char) names;  // NUL-terminated, one behind the other
  uint32_t name;               // the program's
  uint32_t body;
  uint32_t work[3];      // expressions of lengths and scalars; 0: not said
  uint32_t block[3];     // threads; 0: not said
  uint32_t order_count;  // parameters in the order they were declared:
  uint32_t order;        // first in `operands`; scalars, or buffers with
                         // KILNI_PARAMETER_BUFFER
} kilni_program_ir_t;

// Tables with nothing in them but the unused records, which are made with the
// first add. `deinit` accepts what is all zero.
void kilni_program_ir_init(kilni_program_ir_t* ir, kiln_allocator_t allocator);
void kilni_program_ir_deinit(kilni_program_ir_t* ir);

// A copy of `from` with memory of its own, for deinit. On failure empty.
kiln_status_t kilni_program_ir_copy(const kilni_program_ir_t* from,
                                    kiln_allocator_t allocator,
                                    kilni_program_ir_t* out_ir);

// OK, or what the first failed add came to: OUT_OF_MEMORY, or LIMIT_EXCEEDED
// where a table would have more records than it may.
kiln_status_t kilni_program_ir_status(const kilni_program_ir_t* ir);

// Each adds one record and gives its index. 0 on failure, which is remembered
// (kilni_program_ir_status), so that adds can be written without a check each.
uint32_t kilni_program_ir_add_expr(kilni_program_ir_t* ir,
                                   kilni_program_expr_record_t record);
uint32_t kilni_program_ir_add_statement(
    kilni_program_ir_t* ir, kilni_program_statement_record_t record);
uint32_t kilni_program_ir_add_variable(kilni_program_ir_t* ir,
                                       kilni_program_variable_record_t record);
uint32_t kilni_program_ir_add_buffer(kilni_program_ir_t* ir,
                                     kilni_program_buffer_record_t record);
uint32_t kilni_program_ir_add_scalar(kilni_program_ir_t* ir,
                                     kilni_program_scalar_record_t record);
uint32_t kilni_program_ir_add_function(kilni_program_ir_t* ir,
                                       kilni_program_function_record_t record);

// A run of `count` operands; the index of the first, also where count is 0.
uint32_t kilni_program_ir_add_operands(kilni_program_ir_t* ir,
                                       const uint32_t* operands,
                                       uint32_t count);

// A name, and back. Index 0 is "", what has no name.
uint32_t kilni_program_ir_add_name(kilni_program_ir_t* ir, const char* name,
                                   size_t size);
const char* kilni_program_ir_name(const kilni_program_ir_t* ir, uint32_t name);

// A literal of that type with those bits (the low ones of `bits`). NaNs become
// the canonical one of their type, a bool 0 or 1.
uint32_t kilni_program_ir_add_literal(kilni_program_ir_t* ir, uint8_t type,
                                      uint64_t bits);

// The expressions that an expression is made of; how many. An operand always
// stands before what is made of it.
uint32_t kilni_program_ir_operands(const kilni_program_ir_t* ir, uint32_t expr,
                                   uint32_t out_operands[KILNI_IR_MAX_CALL]);

// The expressions that a statement has itself, not in its bodies; how many.
uint32_t kilni_program_ir_statement_exprs(
    const kilni_program_statement_record_t* statement, uint32_t out_exprs[3]);

// Which parameter of the program a buffer is; order_count for others.
uint32_t kilni_program_ir_parameter_of(const kilni_program_ir_t* ir,
                                       uint32_t buffer);

// The bits of a literal.
static inline uint64_t kilni_program_ir_literal_bits(
    const kilni_program_expr_record_t* expr) {
  return (uint64_t)expr->b << 32 | expr->a;
}

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_IR_H_
