// SPDX-License-Identifier: Apache-2.0
//
// program: the state that the files of the builder share.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_BUILDING_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_BUILDING_H_

#include "kiln/program_builder.h"
#include "program/ir/program_ir.h"

// A block that is begun.
typedef struct kilni_program_open_block_t {
  uint32_t statement;  // whose block it is; 0: a whole body
  uint32_t last;       // statement in it; 0: none yet
  bool is_other;       // the else of an if
} kilni_program_open_block_t;

struct kiln_program_builder_t {
  kilni_program_ir_t ir;
  kiln_status_t failed;  // what went wrong first
  bool finished;
  uint16_t function;  // that is begun; 0: the program itself
  // Blocks that are open: the bodies of the program and of a function, and
  // what is nested in them.
  kilni_program_open_block_t blocks[KILNI_IR_MAX_NESTING + 2];
  uint32_t block_count;
  uint32_t function_block;  // where the function's body is among them
  uint32_t order[KILNI_IR_MAX_PARAMETERS];
  uint32_t order_count;
  uint32_t parameters[KILNI_IR_MAX_CALL];  // of the function
  uint32_t parameter_count;
  uint16_t* depths;  // of expressions
  size_t depth_capacity;
};

// True where nothing has gone wrong yet.
bool kilni_program_builder_works(const kiln_program_builder_t* builder);

// Remembers the first error. Takes `status`.
void kilni_program_builder_fail(kiln_program_builder_t* builder,
                                kiln_status_t status);

// Whether an index is one of an expression or buffer; remembers it if not.
bool kilni_program_builder_has_expr(kiln_program_builder_t* builder,
                                    kiln_expr_t expr);
bool kilni_program_builder_has_buffer(kiln_program_builder_t* builder,
                                      uint32_t buffer);
bool kilni_program_builder_has_type(kiln_program_builder_t* builder,
                                    uint32_t type);

// Adds an expression; 0 on failure.
kiln_expr_t kilni_program_builder_add(kiln_program_builder_t* builder,
                                      kilni_program_expr_record_t record);

// A name among the tables'.
uint32_t kilni_program_builder_name(kiln_program_builder_t* builder,
                                    const char* name);

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_BUILDING_H_
