// SPDX-License-Identifier: Apache-2.0
//
// image: PTX as a member: its kernels, parameters and variables.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "image/image_inside.h"
#include "image/ptx.h"
#include "kiln/api.h"
#include "kiln/image.h"
#include "kiln/status.h"

// What kind of argument a PTX parameter takes, KILN_IMAGE_PARAM_*.
static uint32_t param_kind(const kilni_image_ptx_variable_t* variable) {
  if (variable->dimension_count > 0 || variable->vector > 1) {
    return KILN_IMAGE_PARAM_BYTES;
  }
  if (variable->is_pointer) return KILN_IMAGE_PARAM_POINTER;
  switch (kilni_image_ptx_type_class(variable->type)) {
    case KILNI_PTX_CLASS_UNSIGNED:
    case KILNI_PTX_CLASS_SIGNED:
      return KILN_IMAGE_PARAM_INTEGER;
    case KILNI_PTX_CLASS_FLOAT:
      return KILN_IMAGE_PARAM_FLOAT;
    case KILNI_PTX_CLASS_BITS:
      // Untyped bits: a half, a float or an integer.
      return variable->type == KILNI_PTX_TYPE_B128 ? KILN_IMAGE_PARAM_BYTES
                                                   : KILN_IMAGE_PARAM_UNKNOWN;
    default:
      return KILN_IMAGE_PARAM_UNKNOWN;
  }
}

static uint64_t ptx_align_up(uint64_t value, uint64_t align) {
  return align == 0 ? value : (value + align - 1) / align * align;
}

// Which kernel, counted from 1, counted a variable last, so that each counts
// it once. one-thread
typedef struct mark_t {
  uint32_t* kernels;
  uint32_t kernel;
  uint32_t reserved;
} mark_t;

static void count_shared(const kilni_image_ptx_module_t* module, uint32_t index,
                         mark_t* mark, uint64_t* inout_bytes) {
  const kilni_image_ptx_variable_t* variable = &module->variables[index];
  if (variable->space != KILNI_PTX_SPACE_SHARED || variable->declared_only ||
      mark->kernels[index] == mark->kernel) {
    return;
  }
  mark->kernels[index] = mark->kernel;
  *inout_bytes =
      ptx_align_up(*inout_bytes, variable->align) + variable->size_bytes;
}

static void visit_operand(const kilni_image_ptx_module_t* module,
                          const kilni_image_ptx_operand_t* operand,
                          mark_t* mark, uint64_t* inout_bytes) {
  if (operand->kind == KILNI_PTX_OPERAND_VARIABLE ||
      (operand->kind == KILNI_PTX_OPERAND_ADDRESS &&
       operand->base == KILNI_PTX_BASE_VARIABLE)) {
    count_shared(module, operand->index, mark, inout_bytes);
  }
}

// Bytes of .shared variables that the function's instructions name. Children of
// an operand precede the instruction's own, so that one walk over the
// function's range of operands visits all.
static uint64_t shared_bytes(const kilni_image_ptx_module_t* module,
                             const kilni_image_ptx_function_t* function,
                             uint32_t first_operand, mark_t* mark) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < function->variable_count; i++) {
    count_shared(module, function->first_variable + i, mark, &bytes);
  }
  if (function->instruction_count == 0) return bytes;
  const kilni_image_ptx_instruction_t* last =
      &function->instructions[function->instruction_count - 1];
  uint32_t end = last->first_operand + last->operand_count;
  for (uint32_t i = first_operand; i < end; i++) {
    visit_operand(module, &module->operands[i], mark, &bytes);
  }
  return bytes;
}

// Where the operands of a function begin: after those of the previous one in
// the text.
static uint32_t first_operand_of(const kilni_image_ptx_module_t* module,
                                 const kilni_image_ptx_function_t* function) {
  if (function->first_instruction == 0) return 0;
  const kilni_image_ptx_instruction_t* before =
      &module->instructions[function->first_instruction - 1];
  return before->first_operand + before->operand_count;
}

static kiln_status_t fill_param(kiln_image_t* image,
                                const kilni_image_ptx_variable_t* variable,
                                uint64_t offset, kiln_image_param_t* out) {
  out->type = kilni_image_ptx_modifier_text(variable->type);
  out->offset = (uint32_t)offset;
  out->bytes = (uint32_t)variable->size_bytes;
  out->align = variable->align;
  out->kind = param_kind(variable);
  return kilni_image_text(image, variable->name, strlen(variable->name),
                          &out->name);
}

static kiln_status_t ptx_fill_params(kiln_image_t* image,
                                     const kilni_image_ptx_module_t* module,
                                     const kilni_image_ptx_function_t* function,
                                     kilni_image_row_t* row) {
  uint64_t end = 0;
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    const kilni_image_ptx_variable_t* variable =
        &module->variables[function->first_parameter + i];
    uint64_t offset = ptx_align_up(end, variable->align);
    end = offset + variable->size_bytes;
    if (end > UINT32_MAX) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(LIMIT_EXCEEDED,
                     "the parameters of \"%s\" exceed 4294967295 bytes",
                     function->name),
          "pass large data by a pointer");
    }
    KILNI_RETURN_IF_ERROR(fill_param(image, variable, offset,
                                     &image->params[row->first_param + i]));
  }
  row->shown.params_known = 1;
  row->shown.param_bytes = (uint32_t)end;
  return kiln_ok();
}

static kiln_status_t ptx_add_kernel(kiln_image_t* image,
                                    const kilni_image_ptx_module_t* module,
                                    const kilni_image_ptx_function_t* function,
                                    mark_t* mark) {
  kilni_image_row_t* row = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_image_add_kernel(image, function->name, strlen(function->name),
                             function->parameter_count, &row));
  KILNI_RETURN_IF_ERROR(ptx_fill_params(image, module, function, row));
  kiln_image_kernel_t* kernel = &row->shown;
  mark->kernel++;
  uint64_t shared =
      shared_bytes(module, function, first_operand_of(module, function), mark);
  kernel->line = function->line;
  kernel->static_shared_bytes =
      shared > UINT32_MAX ? UINT32_MAX : (uint32_t)shared;
  if (function->maxnreg != 0) kernel->maximum_registers = function->maxnreg;
  kernel->blocks_are_clusters = function->blocks_are_clusters;
  kernel->explicit_cluster = function->explicit_cluster;
  memcpy(kernel->required_block, function->reqntid, sizeof(function->reqntid));
  memcpy(kernel->maximum_block, function->maxntid, sizeof(function->maxntid));
  memcpy(kernel->required_cluster, function->reqnctapercluster,
         sizeof(function->reqnctapercluster));
  return kiln_ok();
}

static kiln_status_t add_kernels(kiln_image_t* image,
                                 const kilni_image_ptx_module_t* module) {
  void* marks = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      image->allocator, module->variable_count, sizeof(uint32_t), &marks));
  mark_t mark = {marks, 0, 0};
  kiln_status_t status = kiln_ok();
  for (uint32_t i = 0; i < module->function_count; i++) {
    const kilni_image_ptx_function_t* function = &module->functions[i];
    if (!function->is_entry || !function->is_defined) continue;
    status = ptx_add_kernel(image, module, function, &mark);
    if (!kiln_status_is_ok(status)) break;
  }
  kilni_base_free_array(image->allocator, marks, module->variable_count,
                        sizeof(uint32_t));
  return status;
}

static kiln_status_t ptx_add_variables(kiln_image_t* image,
                                       const kilni_image_ptx_module_t* module) {
  for (uint32_t i = 0; i < module->variable_count; i++) {
    const kilni_image_ptx_variable_t* variable = &module->variables[i];
    bool constant = variable->space == KILNI_PTX_SPACE_CONST;
    if (variable->function != KILNI_PTX_NONE ||
        (!constant && variable->space != KILNI_PTX_SPACE_GLOBAL)) {
      continue;
    }
    kiln_image_symbol_t symbol = {0};
    symbol.bytes = variable->size_bytes;
    symbol.kind =
        constant ? KILN_IMAGE_SYMBOL_CONSTANT : KILN_IMAGE_SYMBOL_VARIABLE;
    symbol.defined = !variable->declared_only;
    symbol.exported = variable->linkage != KILNI_PTX_LINKAGE_NONE;
    kiln_image_member_t* member = &image->boxes[image->box_count - 1].shown;
    if (symbol.defined && constant) member->constant_bytes += symbol.bytes;
    if (symbol.defined && !constant) member->global_bytes += symbol.bytes;
    KILNI_RETURN_IF_ERROR(kilni_image_add_symbol(
        image, variable->name, strlen(variable->name), symbol));
  }
  return kiln_ok();
}

static kiln_status_t add_functions(kiln_image_t* image,
                                   const kilni_image_ptx_module_t* module) {
  for (uint32_t i = 0; i < module->function_count; i++) {
    const kilni_image_ptx_function_t* function = &module->functions[i];
    if (function->is_entry) continue;
    kiln_image_symbol_t symbol = {0};
    symbol.kind = KILN_IMAGE_SYMBOL_FUNCTION;
    symbol.defined = function->is_defined;
    symbol.exported = function->linkage != KILNI_PTX_LINKAGE_NONE;
    if (symbol.defined && !symbol.exported) continue;
    KILNI_RETURN_IF_ERROR(kilni_image_add_symbol(
        image, function->name, strlen(function->name), symbol));
  }
  return kiln_ok();
}

static kiln_status_t ptx_add_module(kiln_image_t* image,
                                    const kilni_image_ptx_module_t* module,
                                    const kilni_image_part_t* part,
                                    const kilni_image_about_t* about) {
  kiln_image_member_t* member = NULL;
  KILNI_RETURN_IF_ERROR(kilni_image_add_member(image, part, about,
                                               KILN_CODE_FORMAT_PTX, &member));
  member->ptx_version =
      module->version_major * 1000 + module->version_minor * 10;
  if (module->debug) member->debug |= KILN_IMAGE_DEBUG_FULL;
  if (module->location_count > 0) member->debug |= KILN_IMAGE_DEBUG_LINES;
  KILNI_RETURN_IF_ERROR(kilni_image_text(image, module->target_text,
                                         sizeof(module->target_text),
                                         &member->target));
  KILNI_RETURN_IF_ERROR(add_kernels(image, module));
  KILNI_RETURN_IF_ERROR(ptx_add_variables(image, module));
  return add_functions(image, module);
}

kiln_status_t kilni_image_read_ptx(kiln_image_t* image,
                                   const kilni_image_part_t* part,
                                   const kilni_image_about_t* about) {
  kiln_bytes_view_t text = {part->data, (size_t)part->size};
  // PTX in a fatbin ends with a NUL.
  while (text.size > 0 && text.data[text.size - 1] == 0) text.size--;
  kilni_image_ptx_module_t* module = NULL;
  KILNI_RETURN_IF_ERROR(kilni_image_ptx_module_create(
      text, part->name, NULL, image->allocator, &module));
  kiln_status_t status = ptx_add_module(image, module, part, about);
  if (kiln_status_is_ok(status) && image->format == KILN_CODE_FORMAT_PTX) {
    image->ptx = module;
    return kiln_ok();
  }
  kilni_image_ptx_module_release(module);
  return status;
}
