// SPDX-License-Identifier: Apache-2.0
//
// program: what a program takes, and how much of it.
#include <string.h>

#include "base/status_make.h"
#include "program/ir/program_integers.h"
#include "program/ir/program_object.h"
#include "program/ir/program_types.h"

// ---- Queries ----

const char* kiln_program_name(const kiln_program_t* program) {
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  return kilni_program_ir_name(ir, ir->name);
}

uint32_t kiln_program_parameter_count(const kiln_program_t* program) {
  return kilni_program_ir(program)->order_count;
}

bool kiln_program_parameter(const kiln_program_t* program, uint32_t index,
                            kiln_program_parameter_info_t* out_parameter) {
  memset(out_parameter, 0, sizeof(*out_parameter));
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  if (index >= ir->order_count) return false;
  uint32_t parameter = ir->operands.items[ir->order + index];
  uint32_t record = parameter & ~KILNI_PARAMETER_BUFFER;
  if ((parameter & KILNI_PARAMETER_BUFFER) != 0) {
    const kilni_program_buffer_record_t* buffer = &ir->buffers.items[record];
    out_parameter->name = kilni_program_ir_name(ir, buffer->name);
    out_parameter->type = buffer->type;
    out_parameter->role = buffer->role;
    out_parameter->is_counted = buffer->count != 0;
  } else {
    out_parameter->name =
        kilni_program_ir_name(ir, ir->scalars.items[record].name);
    out_parameter->type = ir->scalars.items[record].type;
  }
  out_parameter->type_bytes = kilni_program_type_bytes(out_parameter->type);
  return true;
}

bool kiln_program_find_parameter(const kiln_program_t* program,
                                 const char* name, uint32_t* out_index) {
  kiln_program_parameter_info_t parameter;
  for (uint32_t i = 0; kiln_program_parameter(program, i, &parameter); i++) {
    if (strcmp(parameter.name, name) == 0) {
      *out_index = i;
      return true;
    }
  }
  *out_index = 0;
  return false;
}

uint32_t kiln_program_work_dimensions(const kiln_program_t* program) {
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  uint32_t count = 0;
  while (count < 3 && ir->work[count] != 0) count++;
  return count;
}

void kiln_program_block(const kiln_program_t* program, uint32_t out_block[3]) {
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  memcpy(out_block, ir->block, sizeof(ir->block));
}

const char* kiln_program_type_name(uint32_t type) {
  return kilni_program_type_bytes(type) == 0 ? ""
                                             : kilni_program_type_name(type);
}

uint32_t kiln_program_type_find(const char* name) {
  for (uint32_t type = 1; type < KILNI_TYPE_COUNT; type++) {
    if (strcmp(kilni_program_type_name(type), name) == 0) return type;
  }
  return KILN_PROGRAM_TYPE_NONE;
}

const char* kiln_program_role_name(uint32_t role) {
  return kilni_program_role_name(role);
}

// ---- Sizes ----

// One launch while its sizes are found. Only the program has scalars, so their
// records are as few as its parameters.
typedef struct sizing_t {
  const kilni_program_ir_t* ir;
  kiln_program_size_t* sizes;
  uint64_t lengths[KILNI_IR_MAX_PARAMETERS + 1];  // by parameter
  uint64_t scalars[KILNI_IR_MAX_PARAMETERS + 1];  // by scalar
} sizing_t;

static kiln_status_t sizes_out_of_range(const sizing_t* sizing,
                                        const char* what, const char* name,
                                        const char* limit) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE, "%s of \"%s\" %s", what,
                 name != NULL
                     ? name
                     : kilni_program_ir_name(sizing->ir, sizing->ir->name),
                 limit),
      "use smaller buffers, or divide the work");
}

static kiln_status_t sizes_evaluate(const sizing_t* sizing, uint32_t expr,
                                    const char* what, const char* name,
                                    uint64_t* out_value) {
  bool wraps = false;
  kilni_program_known_t known = {sizing->lengths, sizing->scalars, &wraps};
  kilni_program_ir_evaluate(sizing->ir, expr, &known, out_value);
  if (wraps) {
    return kilni_base_status_with_fix(
        sizes_out_of_range(sizing, what, name, "wraps around in its type"),
        "compute it from u64s: length64(x), u64(n)");
  }
  int64_t value = kilni_program_integer_signed(
      sizing->ir->exprs.items[expr].type, *out_value);
  *out_value = (uint64_t)value;
  uint32_t class_ =
      kilni_program_type_class(sizing->ir->exprs.items[expr].type);
  if (class_ == KILNI_CLASS_SIGNED && value < 0) {
    return sizes_out_of_range(sizing, what, name, "is negative");
  }
  return kiln_ok();
}

static bool sizes_is_known(const sizing_t* sizing, uint32_t expr) {
  const kilni_program_expr_record_t* record = &sizing->ir->exprs.items[expr];
  if (record->op == KILNI_EXPR_LENGTH) {
    return sizing->lengths[kilni_program_ir_parameter_of(
               sizing->ir, record->a)] != KILN_PROGRAM_COUNT_UNKNOWN;
  }
  uint32_t operands[KILNI_IR_MAX_CALL];
  uint32_t count = kilni_program_ir_operands(sizing->ir, expr, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!sizes_is_known(sizing, operands[i])) return false;
  }
  return true;
}

static kiln_status_t sizes_check_count(const sizing_t* sizing, uint32_t buffer,
                                       uint64_t given, uint64_t count) {
  const kilni_program_buffer_record_t* record =
      &sizing->ir->buffers.items[buffer];
  const char* name = kilni_program_ir_name(sizing->ir, record->name);
  if (given != KILN_PROGRAM_COUNT_UNKNOWN && given != count) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "buffer \"%s\" has %llu elements; the program says %llu",
                   name, (unsigned long long)given, (unsigned long long)count),
        "bind a buffer of the size that the program says");
  }
  if (count > (UINT64_MAX >> 1) / kilni_program_type_bytes(record->type)) {
    return sizes_out_of_range(sizing, "the size", name, "is over 2^63 bytes");
  }
  return kiln_ok();
}

// Finds the counts that the ones already known tell; true if there were any.
static kiln_status_t find_counts(sizing_t* sizing, bool* out_found) {
  const kilni_program_ir_t* ir = sizing->ir;
  *out_found = false;
  for (uint32_t i = 0; i < ir->order_count; i++) {
    uint32_t parameter = ir->operands.items[ir->order + i];
    uint32_t buffer = parameter & ~KILNI_PARAMETER_BUFFER;
    if ((parameter & KILNI_PARAMETER_BUFFER) == 0 ||
        sizing->lengths[i] != KILN_PROGRAM_COUNT_UNKNOWN) {
      continue;
    }
    uint64_t count = sizing->sizes[i].count;
    uint32_t expr = ir->buffers.items[buffer].count;
    if (expr != 0) {
      if (!sizes_is_known(sizing, expr)) continue;
      KILNI_RETURN_IF_ERROR(sizes_evaluate(
          sizing, expr, "the count",
          kilni_program_ir_name(ir, ir->buffers.items[buffer].name), &count));
    } else if (count == KILN_PROGRAM_COUNT_UNKNOWN) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT, "nothing says how long \"%s\" is",
                     kilni_program_ir_name(ir, ir->buffers.items[buffer].name)),
          "bind a buffer, or declare its count: %s[length(x)]",
          kilni_program_type_name(ir->buffers.items[buffer].type));
    }
    KILNI_RETURN_IF_ERROR(
        sizes_check_count(sizing, buffer, sizing->sizes[i].count, count));
    sizing->lengths[i] = count;
    sizing->sizes[i].count = count;
    *out_found = true;
  }
  return kiln_ok();
}

// Whether anybody may ask for length() of a buffer, which is a u32: a function
// may be handed any.
static bool length_is_asked(const kilni_program_ir_t* ir, uint32_t buffer) {
  for (uint32_t i = 1; i < ir->exprs.count; i++) {
    const kilni_program_expr_record_t* expr = &ir->exprs.items[i];
    if (expr->op != KILNI_EXPR_LENGTH || expr->type != KILN_PROGRAM_TYPE_U32) {
      continue;
    }
    if (expr->a == buffer || ir->buffers.items[expr->a].function != 0) {
      return true;
    }
  }
  return false;
}

static kiln_status_t check_lengths(const sizing_t* sizing) {
  const kilni_program_ir_t* ir = sizing->ir;
  for (uint32_t i = 0; i < ir->order_count; i++) {
    uint32_t parameter = ir->operands.items[ir->order + i];
    uint32_t buffer = parameter & ~KILNI_PARAMETER_BUFFER;
    if ((parameter & KILNI_PARAMETER_BUFFER) != 0 &&
        sizing->lengths[i] > UINT32_MAX && length_is_asked(ir, buffer)) {
      return sizes_out_of_range(
          sizing, "the length()",
          kilni_program_ir_name(ir, ir->buffers.items[buffer].name),
          "is over 2^32 - 1; length64() has no such limit");
    }
  }
  return kiln_ok();
}

static kiln_status_t sizes_find_work(const sizing_t* sizing,
                                     uint64_t out_work[3]) {
  const kilni_program_ir_t* ir = sizing->ir;
  if (ir->work[0] == 0) return kiln_ok();
  uint64_t work[3] = {1, 1, 1};
  for (int i = 0; i < 3 && ir->work[i] != 0; i++) {
    KILNI_RETURN_IF_ERROR(
        sizes_evaluate(sizing, ir->work[i], "the work size", NULL, &work[i]));
    if (work[i] > UINT32_MAX) {
      return sizes_out_of_range(sizing, "the work size", NULL,
                                "is over 2^32 - 1 along an axis");
    }
  }
  memcpy(out_work, work, sizeof(work));
  return kiln_ok();
}

kiln_status_t kiln_program_sizes(const kiln_program_t* program,
                                 kiln_program_size_t* inout_sizes,
                                 uint64_t out_work[3]) {
  KILNI_CHECK_ARGUMENT(out_work != NULL, "out_work");
  memset(out_work, 0, 3 * sizeof(*out_work));
  KILNI_CHECK_ARGUMENT(program != NULL, "program");
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  KILNI_CHECK_ARGUMENT(inout_sizes != NULL || ir->order_count == 0,
                       "inout_sizes");
  sizing_t sizing;
  memset(&sizing, 0, sizeof(sizing));
  sizing.ir = ir;
  sizing.sizes = inout_sizes;
  for (uint32_t i = 0; i < ir->order_count; i++) {
    uint32_t parameter = ir->operands.items[ir->order + i];
    uint32_t record = parameter & ~KILNI_PARAMETER_BUFFER;
    if ((parameter & KILNI_PARAMETER_BUFFER) != 0) {
      sizing.lengths[i] = KILN_PROGRAM_COUNT_UNKNOWN;
    } else {
      uint32_t type = ir->scalars.items[record].type;
      uint32_t bits = 8 * kilni_program_type_bytes(type);
      uint64_t value = inout_sizes[i].bits & (UINT64_MAX >> (64 - bits));
      // Every byte but 0 is true.
      if (type == KILN_PROGRAM_TYPE_BOOL) value = value != 0;
      sizing.scalars[record] = value;
    }
  }
  // Counts may name each other in any order, but in no circle.
  bool found = true;
  while (found) KILNI_RETURN_IF_ERROR(find_counts(&sizing, &found));
  KILNI_RETURN_IF_ERROR(check_lengths(&sizing));
  return sizes_find_work(&sizing, out_work);
}
