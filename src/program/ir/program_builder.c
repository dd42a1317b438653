// SPDX-License-Identifier: Apache-2.0
//
// program: the builder: its life, parameters, functions, the end.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "program/ir/program_building.h"
#include "program/ir/program_check.h"
#include "program/ir/program_object.h"
#include "program/ir/program_report.h"
#include "program/ir/program_rules.h"
#include "program/ir/program_types.h"

// ---- Errors ----

bool kilni_program_builder_works(const kiln_program_builder_t* builder) {
  return kiln_status_is_ok(builder->failed) &&
         builder->ir.failed == KILN_STATUS_OK && !builder->finished;
}

void kilni_program_builder_fail(kiln_program_builder_t* builder,
                                kiln_status_t status) {
  if (kilni_program_builder_works(builder)) {
    builder->failed = status;
  } else {
    kiln_status_free(status);
  }
}

static void builder_no_such(kiln_program_builder_t* builder, const char* what,
                            uint32_t index) {
  if (!kilni_program_builder_works(builder)) return;
  kilni_program_builder_fail(
      builder, kilni_base_status_with_fix(
                   KILNI_FAIL(INVALID_ARGUMENT,
                              "%s %u of a program that is built: there "
                              "is none",
                              what, index),
                   "use what this builder has given"));
}

bool kilni_program_builder_has_expr(kiln_program_builder_t* builder,
                                    kiln_expr_t expr) {
  if (expr != 0 && expr < builder->ir.exprs.count) return true;
  builder_no_such(builder, "expression", expr);
  return false;
}

bool kilni_program_builder_has_buffer(kiln_program_builder_t* builder,
                                      uint32_t buffer) {
  if (buffer != 0 && buffer < builder->ir.buffers.count) return true;
  builder_no_such(builder, "buffer", buffer);
  return false;
}

bool kilni_program_builder_has_type(kiln_program_builder_t* builder,
                                    uint32_t type) {
  if (kilni_program_type_bytes(type) != 0) return true;
  builder_no_such(builder, "type", type);
  return false;
}

uint32_t kilni_program_builder_name(kiln_program_builder_t* builder,
                                    const char* name) {
  return name == NULL
             ? 0
             : kilni_program_ir_add_name(&builder->ir, name, strlen(name));
}

// ---- Life ----

kiln_status_t kiln_program_builder_create(
    const char* name, const kiln_allocator_t* allocator,
    kiln_program_builder_t** out_builder) {
  KILNI_CHECK_ARGUMENT(out_builder != NULL, "out_builder");
  *out_builder = NULL;
  KILNI_CHECK_ARGUMENT(name != NULL && name[0] != 0, "name");
  kiln_allocator_t mine =
      allocator != NULL ? *allocator : kiln_allocator_libc();
  void* block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(mine, sizeof(kiln_program_builder_t), &block));
  kiln_program_builder_t* builder = block;
  kilni_program_ir_init(&builder->ir, mine);
  builder->ir.name = kilni_program_builder_name(builder, name);
  builder->block_count = 1;
  if (builder->ir.failed == KILN_STATUS_OUT_OF_MEMORY) {
    kiln_program_builder_release(builder);
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  *out_builder = builder;
  return kiln_ok();
}

void kiln_program_builder_release(kiln_program_builder_t* builder) {
  if (builder == NULL) return;
  kiln_allocator_t allocator = builder->ir.allocator;
  kilni_base_free_array(allocator, builder->depths, builder->depth_capacity,
                        sizeof(uint16_t));
  kilni_program_ir_deinit(&builder->ir);
  kiln_status_free(builder->failed);
  kilni_base_free(allocator, builder, sizeof(*builder));
}

// ---- Parameters ----

static void add_parameter(kiln_program_builder_t* builder, uint32_t parameter) {
  bool own = builder->function != 0;
  uint32_t* items = own ? builder->parameters : builder->order;
  uint32_t* count = own ? &builder->parameter_count : &builder->order_count;
  uint32_t most = own ? KILNI_IR_MAX_CALL : KILNI_IR_MAX_PARAMETERS;
  if (*count < most) {
    items[(*count)++] = parameter;
    return;
  }
  kilni_program_builder_fail(
      builder, kilni_base_status_with_fix(
                   KILNI_FAIL(LIMIT_EXCEEDED, "more than %u parameters", most),
                   "put several into one buffer"));
}

// A parameter of the program is bound by its name.
static bool builder_has_name(kiln_program_builder_t* builder,
                             const char* name) {
  if (builder->function != 0 || (name != NULL && name[0] != 0)) return true;
  kilni_program_builder_fail(
      builder, kilni_base_status_with_fix(
                   KILNI_FAIL(INVALID_ARGUMENT,
                              "a parameter of the program has no name"),
                   "give it one"));
  return false;
}

uint32_t kiln_program_builder_buffer(kiln_program_builder_t* builder,
                                     const char* name, uint32_t role,
                                     uint32_t type) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_type(builder, type) ||
      !builder_has_name(builder, name)) {
    return 0;
  }
  if (role == KILN_PROGRAM_ROLE_NONE || role > KILN_PROGRAM_ROLE_RESIDENT) {
    builder_no_such(builder, "role of a parameter", role);
    return 0;
  }
  kilni_program_buffer_record_t record = {
      kilni_program_builder_name(builder, name),
      (uint8_t)type,
      (uint8_t)role,
      builder->function,
      0,
      0};
  uint32_t index = kilni_program_ir_add_buffer(&builder->ir, record);
  add_parameter(builder, index | KILNI_PARAMETER_BUFFER);
  return index;
}

void kiln_program_builder_count(kiln_program_builder_t* builder,
                                uint32_t buffer, kiln_expr_t count) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_buffer(builder, buffer) ||
      !kilni_program_builder_has_expr(builder, count)) {
    return;
  }
  kilni_program_buffer_record_t* record = &builder->ir.buffers.items[buffer];
  if (record->function != 0 || record->role > KILN_PROGRAM_ROLE_RESIDENT) {
    builder_no_such(builder, "count of buffer", buffer);
    return;
  }
  record->count = count;
}

kiln_expr_t kiln_program_builder_scalar(kiln_program_builder_t* builder,
                                        const char* name, uint32_t type) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_type(builder, type) ||
      !builder_has_name(builder, name)) {
    return 0;
  }
  uint32_t text = kilni_program_builder_name(builder, name), index;
  if (builder->function != 0) {
    kilni_program_variable_record_t variable = {
        text, (uint8_t)type, KILNI_VARIABLE_PARAMETER, builder->function};
    index = kilni_program_ir_add_variable(&builder->ir, variable);
  } else {
    kilni_program_scalar_record_t scalar = {text, (uint8_t)type, {0, 0, 0}};
    index = kilni_program_ir_add_scalar(&builder->ir, scalar);
  }
  add_parameter(builder, index);
  kilni_program_expr_record_t record = {
      builder->function != 0 ? KILNI_EXPR_VARIABLE : KILNI_EXPR_SCALAR,
      (uint8_t)type,
      0,
      index,
      0,
      0};
  return kilni_program_builder_add(builder, record);
}

uint32_t kiln_program_builder_array(kiln_program_builder_t* builder,
                                    const char* name, uint32_t role,
                                    uint32_t type, uint32_t count) {
  if (!kilni_program_builder_works(builder) ||
      !kilni_program_builder_has_type(builder, type)) {
    return 0;
  }
  if (role != KILN_PROGRAM_ROLE_SHARED && role != KILN_PROGRAM_ROLE_PRIVATE) {
    builder_no_such(builder, "role of an array", role);
    return 0;
  }
  kilni_program_buffer_record_t record = {
      kilni_program_builder_name(builder, name),
      (uint8_t)type,
      (uint8_t)role,
      builder->function,
      kiln_program_builder_u32(builder, count),
      0};
  return kilni_program_ir_add_buffer(&builder->ir, record);
}

void kiln_program_builder_work(kiln_program_builder_t* builder, kiln_expr_t x,
                               kiln_expr_t y, kiln_expr_t z) {
  kiln_expr_t axes[3] = {x, y, z};
  for (int i = 0; i < 3; i++) {
    if (!kilni_program_builder_works(builder)) return;
    // The first is there, and none behind one that is not.
    bool wanted = i == 0 || axes[i] != 0 || (i == 1 && z != 0);
    if (wanted && !kilni_program_builder_has_expr(builder, axes[i])) return;
    builder->ir.work[i] = axes[i];
  }
}

void kiln_program_builder_block(kiln_program_builder_t* builder, uint32_t x,
                                uint32_t y, uint32_t z) {
  if (!kilni_program_builder_works(builder)) return;
  builder->ir.block[0] = x;
  builder->ir.block[1] = y;
  builder->ir.block[2] = z;
}

// ---- Functions ----

static void out_of_order(kiln_program_builder_t* builder, const char* what) {
  kilni_program_builder_fail(
      builder,
      kilni_base_status_with_fix(KILNI_FAIL(INVALID_STATE, "%s", what),
                                 "end each block once, the last begun first"));
}

uint32_t kiln_program_builder_begin_function(kiln_program_builder_t* builder,
                                             const char* name, uint32_t type) {
  if (!kilni_program_builder_works(builder)) return 0;
  if (builder->function != 0 || builder->block_count > 1) {
    out_of_order(builder, "a function inside something else");
    return 0;
  }
  if (type != KILN_PROGRAM_TYPE_NONE &&
      !kilni_program_builder_has_type(builder, type)) {
    return 0;
  }
  kilni_program_function_record_t record;
  memset(&record, 0, sizeof(record));
  record.name = kilni_program_builder_name(builder, name);
  record.type = (uint8_t)type;
  uint32_t index = kilni_program_ir_add_function(&builder->ir, record);
  builder->function = (uint16_t)index;
  builder->parameter_count = 0;
  builder->blocks[builder->block_count++] =
      (kilni_program_open_block_t){0, 0, false};
  return index;
}

void kiln_program_builder_end_function(kiln_program_builder_t* builder) {
  if (!kilni_program_builder_works(builder)) return;
  if (builder->function == 0 || builder->block_count != 2) {
    out_of_order(builder, "the end of a function where none can end");
    return;
  }
  uint32_t first = kilni_program_ir_add_operands(
      &builder->ir, builder->parameters, builder->parameter_count);
  kilni_program_function_record_t* record =
      &builder->ir.functions.items[builder->function];
  record->parameters = first;
  record->parameter_count = (uint16_t)builder->parameter_count;
  builder->block_count = 1;
  builder->function = 0;
}

// ---- The end ----

static void add_problem(const kilni_program_problem_t* problem, void* user) {
  kiln_program_report_t* report = user;
  char message[400];
  snprintf(message, sizeof(message), "%s: %s",
           kilni_program_rule_message(problem->rule), problem->detail);
  kiln_program_problem_t mine = {problem->rule, problem->is_note, 0,   0,
                                 message,       problem->fix,     NULL};
  kilni_program_report_add(report, &mine, (kiln_string_view_t){"", 0});
}

static kiln_status_t builder_finish(kiln_program_builder_t* builder,
                                    kiln_program_report_t* report) {
  if (builder->finished) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the builder is finished"),
        "make another one");
  }
  if (builder->block_count != 1) {
    out_of_order(builder, "a block that is not ended");
  }
  builder->finished = true;
  kiln_status_t failed = builder->failed;
  builder->failed = NULL;
  KILNI_RETURN_IF_ERROR(failed);
  kilni_program_ir_t* ir = &builder->ir;
  ir->order =
      kilni_program_ir_add_operands(ir, builder->order, builder->order_count);
  ir->order_count = builder->order_count;
  KILNI_RETURN_IF_ERROR(kilni_program_ir_status(ir));
  KILNI_RETURN_IF_ERROR(kilni_program_ir_check(ir, true, add_problem, report));
  return kilni_program_report_end(report);
}

kiln_status_t kiln_program_builder_finish(kiln_program_builder_t* builder,
                                          kiln_program_report_t** out_report,
                                          kiln_program_t** out_program) {
  if (out_report != NULL) *out_report = NULL;
  KILNI_CHECK_ARGUMENT(out_program != NULL, "out_program");
  *out_program = NULL;
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  kiln_program_report_t* report;
  KILNI_RETURN_IF_ERROR(kilni_program_report_create(
      builder->ir.allocator,
      kilni_program_ir_name(&builder->ir, builder->ir.name), &report));
  kiln_status_t status = builder_finish(builder, report);
  if (kiln_status_is_ok(status)) {
    kiln_allocator_t allocator = builder->ir.allocator;
    status = kilni_program_create(&builder->ir, out_program);
    builder->ir.allocator = allocator;
  }
  bool tells = kiln_status_is_ok(status) ||
               kiln_status_code(status) == KILN_STATUS_COMPILE_FAILED;
  if (out_report != NULL && tells) {
    *out_report = report;
  } else {
    kiln_program_report_release(report);
  }
  return status;
}
