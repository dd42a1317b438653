// SPDX-License-Identifier: Apache-2.0
//
// program: building programs by calls, with the reach of the text form.
//
//   kiln_program_builder_t* b;
//   kiln_status_t status = kiln_program_builder_create("twice", NULL, &b);
//   ...
//   uint32_t x = kiln_program_builder_buffer(b, "x", KILN_PROGRAM_ROLE_INOUT,
//                                            KILN_PROGRAM_TYPE_F32);
//   kiln_program_builder_work(b, kiln_program_builder_length(b, x), 0, 0);
//   kiln_expr_t i = kiln_program_builder_let(
//       b, "i", kiln_program_builder_id(b, KILN_PROGRAM_ID_GLOBAL_ID, 0));
//   kiln_expr_t v = kiln_program_builder_load(b, x, i);
//   kiln_program_builder_store(
//       b, x, i, kiln_program_builder_binary(b, KILN_PROGRAM_BINARY_ADD, v,
//       v));
//   status = kiln_program_builder_finish(b, &report, &program);
//   kiln_program_builder_release(b);
//
// Only the first and the last call can fail: an error is remembered, later
// calls do nothing, and `finish` reports it. Names may be NULL but for the
// program's and its parameters'.
#ifndef KILN_PROGRAM_BUILDER_H_
#define KILN_PROGRAM_BUILDER_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/program.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// A program while it is built. one-thread
typedef struct kiln_program_builder_t kiln_program_builder_t;

// A value: what a thread would compute. thread-compatible
//
// An index of its builder's; 0 is none. It may be used many times, and each
// use evaluates it there: a `let` shares.
typedef uint32_t kiln_expr_t;

// A program of that name without anything in it. `allocator` may be NULL. The
// caller owns `*out_builder`.
//
//   INVALID_ARGUMENT  no name
//   OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_program_builder_create(const char* name, const kiln_allocator_t* allocator,
                            kiln_program_builder_t** out_builder);

// Ends the builder. NULL is accepted. Since 0.1.
KILN_API void kiln_program_builder_release(kiln_program_builder_t* builder);

// Checks what was built and makes it a program; `out_report` may be NULL. The
// builder is empty afterwards and can only be released.
//
//   INVALID_ARGUMENT  a call with an expression, buffer or function that is
//                     invalid, an unknown operator, a parameter of the
//                     program without a name, a tag above 65535, or a step
//                     that the counter's type does not have
//   INVALID_STATE     a block that is not ended, or ended twice; or finished
//                     before
//   COMPILE_FAILED    a rule is broken (docs/reference/program-rules.md); the
//                     status is the first problem, `*out_report` holds all
//   LIMIT_EXCEEDED, OUT_OF_MEMORY
//
// The caller owns `*out_program` and `*out_report`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_program_builder_finish(
    kiln_program_builder_t* builder, kiln_program_report_t** out_report,
    kiln_program_t** out_program);

// ---- Parameters and arrays ----

// A parameter of the program, or of the function that is begun: a buffer of
// elements of `type`. Its index, 0 on failure. Since 0.1.
KILN_API uint32_t kiln_program_builder_buffer(kiln_program_builder_t* builder,
                                              const char* name, uint32_t role,
                                              uint32_t type);

// How many elements a buffer of the program has, made of lengths, scalars and
// numbers. Since 0.1.
KILN_API void kiln_program_builder_count(kiln_program_builder_t* builder,
                                         uint32_t buffer, kiln_expr_t count);

// A parameter by value; what reads it. Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_scalar(
    kiln_program_builder_t* builder, const char* name, uint32_t type);

// An array of the program or of the function that is begun:
// KILN_PROGRAM_ROLE_SHARED or _PRIVATE. Its index, 0 on failure. Since 0.1.
KILN_API uint32_t kiln_program_builder_array(kiln_program_builder_t* builder,
                                             const char* name, uint32_t role,
                                             uint32_t type, uint32_t count);

// The work size: 0 for axes that there are none of. Since 0.1.
KILN_API void kiln_program_builder_work(kiln_program_builder_t* builder,
                                        kiln_expr_t x, kiln_expr_t y,
                                        kiln_expr_t z);

// The threads of a block, 1 along axes that it does not have; all 0:
// unspecified. Since 0.1.
KILN_API void kiln_program_builder_block(kiln_program_builder_t* builder,
                                         uint32_t x, uint32_t y, uint32_t z);

// Begins a function with a result of `type` (NONE: without); parameters, arrays
// and statements are its own until it is ended. Its index, for calls; 0 on
// failure. Functions cannot be nested. Since 0.1.
KILN_API uint32_t kiln_program_builder_begin_function(
    kiln_program_builder_t* builder, const char* name, uint32_t type);
KILN_API void kiln_program_builder_end_function(
    kiln_program_builder_t* builder);

// ---- Values ----

// A number by its bits. Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_literal(
    kiln_program_builder_t* builder, uint32_t type, uint64_t bits);

// Numbers of the usual types. Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_u32(kiln_program_builder_t* builder,
                                              uint32_t value);
KILN_API kiln_expr_t kiln_program_builder_i32(kiln_program_builder_t* builder,
                                              int32_t value);
KILN_API kiln_expr_t kiln_program_builder_f32(kiln_program_builder_t* builder,
                                              float value);
KILN_API kiln_expr_t kiln_program_builder_f64(kiln_program_builder_t* builder,
                                              double value);
KILN_API kiln_expr_t kiln_program_builder_bool(kiln_program_builder_t* builder,
                                               bool value);

// How many elements a buffer has, as a u32 or a u64. Since 0.1.
KILN_API kiln_expr_t
kiln_program_builder_length(kiln_program_builder_t* builder, uint32_t buffer);
KILN_API kiln_expr_t
kiln_program_builder_length64(kiln_program_builder_t* builder, uint32_t buffer);

// KILN_PROGRAM_ID_*; `axis` is 0 to 2, 0 for one without. Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_id(kiln_program_builder_t* builder,
                                             uint32_t id, uint32_t axis);

// buffer[index]. Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_load(kiln_program_builder_t* builder,
                                               uint32_t buffer,
                                               kiln_expr_t index);

// KILN_PROGRAM_UNARY_* and KILN_PROGRAM_BINARY_*. Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_unary(kiln_program_builder_t* builder,
                                                uint32_t op, kiln_expr_t x);
KILN_API kiln_expr_t kiln_program_builder_binary(
    kiln_program_builder_t* builder, uint32_t op, kiln_expr_t x, kiln_expr_t y);

// select(condition, yes, no) and fma(x, y, z). Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_select(
    kiln_program_builder_t* builder, kiln_expr_t condition, kiln_expr_t yes,
    kiln_expr_t no);
KILN_API kiln_expr_t kiln_program_builder_fma(kiln_program_builder_t* builder,
                                              kiln_expr_t x, kiln_expr_t y,
                                              kiln_expr_t z);

// type(x) and bitcast_type(x). Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_cast(kiln_program_builder_t* builder,
                                               uint32_t type, kiln_expr_t x);
KILN_API kiln_expr_t kiln_program_builder_bitcast(
    kiln_program_builder_t* builder, uint32_t type, kiln_expr_t x);

// KILN_PROGRAM_SUBGROUP_*; `lane` is 0 for those without. The whole value of a
// let, var, assign or evaluate. Since 0.1.
KILN_API kiln_expr_t
kiln_program_builder_subgroup(kiln_program_builder_t* builder, uint32_t op,
                              kiln_expr_t x, kiln_expr_t lane);

// An atomic while it is put together. thread-compatible
typedef struct kiln_program_atomic_t {
  uint32_t op;  // KILN_PROGRAM_ATOMIC_*
  uint32_t buffer;
  kiln_expr_t index;
  kiln_expr_t expected;  // of COMPARE_EXCHANGE
  kiln_expr_t value;     // of all but LOAD
  uint32_t ordering;     // KILN_PROGRAM_ORDERING_*
  uint32_t scope;        // KILN_PROGRAM_SCOPE_*
} kiln_program_atomic_t;

// The whole value of a let, var, assign or evaluate. Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_atomic(
    kiln_program_builder_t* builder, const kiln_program_atomic_t* atomic);

// A call. Operands correspond to the parameters in order: expressions, and
// buffers by their indices. Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_call(kiln_program_builder_t* builder,
                                               uint32_t function,
                                               const uint32_t* operands,
                                               uint32_t count);

// ---- Statements ----

// let and var; what reads the variable, which is also what is assigned to.
// Since 0.1.
KILN_API kiln_expr_t kiln_program_builder_let(kiln_program_builder_t* builder,
                                              const char* name,
                                              kiln_expr_t value);
KILN_API kiln_expr_t kiln_program_builder_var(kiln_program_builder_t* builder,
                                              const char* name,
                                              kiln_expr_t value);
KILN_API void kiln_program_builder_assign(kiln_program_builder_t* builder,
                                          kiln_expr_t variable,
                                          kiln_expr_t value);

// buffer[index] = value. Since 0.1.
KILN_API void kiln_program_builder_store(kiln_program_builder_t* builder,
                                         uint32_t buffer, kiln_expr_t index,
                                         kiln_expr_t value);

// An expression for its effect. Since 0.1.
KILN_API void kiln_program_builder_evaluate(kiln_program_builder_t* builder,
                                            kiln_expr_t value);

// Blocks: what follows belongs to them until `end`. `begin_else` ends the
// block of an `if` and begins its other one. Since 0.1.
KILN_API void kiln_program_builder_begin_if(kiln_program_builder_t* builder,
                                            kiln_expr_t condition);
KILN_API void kiln_program_builder_begin_else(kiln_program_builder_t* builder);
KILN_API void kiln_program_builder_begin_while(kiln_program_builder_t* builder,
                                               kiln_expr_t condition);
// `step` 0 means the default of 1; `unroll` asks for it. What reads the
// counter.
KILN_API kiln_expr_t kiln_program_builder_begin_for(
    kiln_program_builder_t* builder, const char* name, kiln_expr_t from,
    kiln_expr_t to, uint64_t step, bool unroll);
KILN_API void kiln_program_builder_end(kiln_program_builder_t* builder);

// Since 0.1.
KILN_API void kiln_program_builder_break(kiln_program_builder_t* builder);
KILN_API void kiln_program_builder_continue(kiln_program_builder_t* builder);
// `value` is 0 where there is none.
KILN_API void kiln_program_builder_return(kiln_program_builder_t* builder,
                                          kiln_expr_t value);
KILN_API void kiln_program_builder_barrier(kiln_program_builder_t* builder);
KILN_API void kiln_program_builder_grid_barrier(
    kiln_program_builder_t* builder);
// The threads of a subgroup wait for each other; after it they all see what
// they wrote before it.
KILN_API void kiln_program_builder_subgroup_barrier(
    kiln_program_builder_t* builder);

// A subgroup's matrices, of which each thread has a part: d += a b, where d is
// of 16 x 8, a of 16 x 16 and b of 16 x 8. Private arrays: `d` f32[4], `a`
// f16[8] or bf16[8], `b` 4 of a's type.
KILN_API void kiln_program_builder_matrix(kiln_program_builder_t* builder,
                                          uint32_t d, uint32_t a, uint32_t b);

// An async_copy while it is put together. thread-compatible
typedef struct kiln_program_copy_t {
  uint32_t to;
  uint32_t from;
  kiln_expr_t to_index;
  kiln_expr_t from_index;
  kiln_expr_t count;
  uint32_t tag;  // up to 65535
} kiln_program_copy_t;

// A copy by the whole block, which goes on beside it: element k of `count`, a
// signed number, from from_index + k to to_index + k; what is out of range is 0
// there and not written here. And what waits for the copies that began with
// `tag` and for all that began before the last of them, and is a barrier too.
// Until then no thread may access the target of a copy, or write its source.
// Since 0.1.
KILN_API void kiln_program_builder_copy(kiln_program_builder_t* builder,
                                        const kiln_program_copy_t* copy);
KILN_API void kiln_program_builder_wait(kiln_program_builder_t* builder,
                                        uint32_t tag);
KILN_API void kiln_program_builder_trap(kiln_program_builder_t* builder,
                                        kiln_expr_t tag, kiln_expr_t address);

KILN_EXTERN_C_END

#endif  // KILN_PROGRAM_BUILDER_H_
