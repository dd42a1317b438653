// SPDX-License-Identifier: Apache-2.0
//
// image: code files as lists of kernels and parameters.
#include "image/image.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "base/str.h"

struct kiln_image_t {
  atomic_uint references;
  uint32_t format;
  kiln_allocator_t allocator;
  kilni_ptx_module_t* ptx;
  kiln_image_kernel_t* kernels;
  uint32_t* first_params;  // of each kernel, in `params`
  kiln_image_param_t* params;
  uint32_t kernel_count;
  uint32_t param_count;
};

// ---------------------------------------------------------------------------
// From the syntax tree
// ---------------------------------------------------------------------------

uint32_t kilni_image_param_kind(const kilni_ptx_variable_t* variable) {
  if (variable->dimension_count > 0 || variable->vector > 1) {
    return KILN_IMAGE_PARAM_BYTES;
  }
  if (variable->is_pointer) return KILN_IMAGE_PARAM_POINTER;
  switch (kilni_ptx_type_class(variable->type)) {
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

static uint64_t align_up(uint64_t value, uint64_t align) {
  return align == 0 ? value : (value + align - 1) / align * align;
}

// Which kernel, counted from 1, counted a variable last, so that each counts
// it once. one-thread
typedef struct mark_t {
  uint32_t* kernels;
  uint32_t kernel;
  uint32_t reserved;
} mark_t;

static void count_shared(const kilni_ptx_module_t* module, uint32_t index,
                         mark_t* mark, uint64_t* inout_bytes) {
  const kilni_ptx_variable_t* variable = &module->variables[index];
  if (variable->space != KILNI_PTX_SPACE_SHARED || variable->declared_only ||
      mark->kernels[index] == mark->kernel) {
    return;
  }
  mark->kernels[index] = mark->kernel;
  *inout_bytes = align_up(*inout_bytes, variable->align) + variable->size_bytes;
}

static void visit_operand(const kilni_ptx_module_t* module,
                          const kilni_ptx_operand_t* operand, mark_t* mark,
                          uint64_t* inout_bytes) {
  if (operand->kind == KILNI_PTX_OPERAND_VARIABLE ||
      (operand->kind == KILNI_PTX_OPERAND_ADDRESS &&
       operand->base == KILNI_PTX_BASE_VARIABLE)) {
    count_shared(module, operand->index, mark, inout_bytes);
  }
}

// Bytes of .shared variables that the function's instructions name. Children
// of an operand lie in front of the instruction's own, so that one walk over
// the function's stretch of operands meets all.
static uint64_t shared_bytes(const kilni_ptx_module_t* module,
                             const kilni_ptx_function_t* function,
                             uint32_t first_operand, mark_t* mark) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < function->variable_count; i++) {
    count_shared(module, function->first_variable + i, mark, &bytes);
  }
  if (function->instruction_count == 0) return bytes;
  const kilni_ptx_instruction_t* last =
      &function->instructions[function->instruction_count - 1];
  uint32_t end = last->first_operand + last->operand_count;
  for (uint32_t i = first_operand; i < end; i++) {
    visit_operand(module, &module->operands[i], mark, &bytes);
  }
  return bytes;
}

// Where the operands of a function begin: behind those of the one before it
// in the text.
static uint32_t first_operand_of(const kilni_ptx_module_t* module,
                                 const kilni_ptx_function_t* function) {
  if (function->first_instruction == 0) return 0;
  const kilni_ptx_instruction_t* before =
      &module->instructions[function->first_instruction - 1];
  return before->first_operand + before->operand_count;
}

static void fill_param(const kilni_ptx_variable_t* variable, uint64_t offset,
                       kiln_image_param_t* out) {
  out->name = variable->name;
  out->type = kilni_ptx_modifier_text(variable->type);
  out->offset = (uint32_t)offset;
  out->bytes = (uint32_t)variable->size_bytes;
  out->align = variable->align;
  out->kind = kilni_image_param_kind(variable);
}

static kiln_status_t fill_kernel(kiln_image_t* image,
                                 const kilni_ptx_function_t* function,
                                 uint32_t index, mark_t* mark) {
  kiln_image_kernel_t* kernel = &image->kernels[index];
  uint64_t end = 0;
  image->first_params[index] = image->param_count;
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    const kilni_ptx_variable_t* variable =
        &image->ptx->variables[function->first_parameter + i];
    uint64_t offset = align_up(end, variable->align);
    end = offset + variable->size_bytes;
    if (end > UINT32_MAX) {
      return kilni_status_with_fix(
          KILNI_FAIL(LIMIT_EXCEEDED,
                     "the parameters of \"%s\" exceed 4294967295 bytes",
                     function->name),
          "pass large data by a pointer");
    }
    fill_param(variable, offset, &image->params[image->param_count++]);
  }
  uint64_t shared = shared_bytes(image->ptx, function,
                                 first_operand_of(image->ptx, function), mark);
  kernel->name = function->name;
  kernel->line = function->line;
  kernel->params_known = 1;
  kernel->param_count = function->parameter_count;
  kernel->param_bytes = (uint32_t)end;
  kernel->static_shared_bytes =
      shared > UINT32_MAX ? UINT32_MAX : (uint32_t)shared;
  memcpy(kernel->required_block, function->reqntid, sizeof(function->reqntid));
  memcpy(kernel->maximum_block, function->maxntid, sizeof(function->maxntid));
  return NULL;
}

static bool is_kernel(const kilni_ptx_function_t* function) {
  return function->is_entry && function->is_defined;
}

static kiln_status_t alloc_lists(kiln_image_t* image, uint32_t params) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc_array(image->allocator, image->kernel_count,
                                          sizeof(*image->kernels), &block));
  image->kernels = block;
  KILNI_RETURN_IF_ERROR(kilni_alloc_array(image->allocator, image->kernel_count,
                                          sizeof(*image->first_params),
                                          &block));
  image->first_params = block;
  KILNI_RETURN_IF_ERROR(kilni_alloc_array(image->allocator, params,
                                          sizeof(*image->params), &block));
  image->params = block;
  return NULL;
}

static kiln_status_t list_kernels(kiln_image_t* image) {
  const kilni_ptx_module_t* module = image->ptx;
  uint32_t params = 0;
  for (uint32_t i = 0; i < module->function_count; i++) {
    if (!is_kernel(&module->functions[i])) continue;
    image->kernel_count++;
    params += module->functions[i].parameter_count;
  }
  KILNI_RETURN_IF_ERROR(alloc_lists(image, params));
  void* marks = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc_array(
      image->allocator, module->variable_count, sizeof(uint32_t), &marks));
  mark_t mark = {marks, 0, 0};
  kiln_status_t status = NULL;
  for (uint32_t i = 0; i < module->function_count; i++) {
    if (!kiln_status_is_ok(status)) break;
    if (!is_kernel(&module->functions[i])) continue;
    mark.kernel++;
    status = fill_kernel(image, &module->functions[i], mark.kernel - 1, &mark);
  }
  kilni_free_array(image->allocator, marks, module->variable_count,
                   sizeof(uint32_t));
  return status;
}

// ---------------------------------------------------------------------------
// The object
// ---------------------------------------------------------------------------

static kiln_status_t read_bytes(kiln_image_t* image, kiln_bytes_view_t bytes,
                                const char* name) {
  if (image->format == KILN_CODE_FORMAT_PTX) {
    KILNI_RETURN_IF_ERROR(kilni_ptx_module_create(
        bytes, name, NULL, image->allocator, &image->ptx));
    return list_kernels(image);
  }
  if (image->format == KILN_CODE_FORMAT_UNKNOWN) {
    return kilni_status_with_fix(
        KILNI_FAIL(BAD_DATA, "%s: neither PTX, nor a cubin, nor a fatbin",
                   name != NULL ? name : "the image"),
        "give PTX text that begins with .version");
  }
  return kilni_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "%s: a %s is recognised, but its kernels are "
                 "not read",
                 name != NULL ? name : "the image",
                 kiln_code_format_name(image->format)),
      "give the PTX that it was made from");
}

kiln_status_t kiln_image_create(kiln_bytes_view_t bytes,
                                const kiln_image_options_t* options,
                                kiln_image_t** out_image) {
  KILNI_CHECK_ARGUMENT(out_image != NULL, "out_image");
  *out_image = NULL;
  KILNI_CHECK_ARGUMENT(bytes.data != NULL || bytes.size == 0, "bytes");
  kiln_image_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_options_read(options, "kiln_image_options_t",
                                           sizeof(given), &given));
  kiln_allocator_t allocator =
      given.allocator != NULL ? *given.allocator : kiln_allocator_libc();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc(allocator, sizeof(kiln_image_t), &block));
  kiln_image_t* image = block;
  atomic_init(&image->references, 1);
  image->allocator = allocator;
  image->format = kiln_code_format_of(bytes);
  kiln_status_t status = read_bytes(image, bytes, given.name);
  if (!kiln_status_is_ok(status)) {
    kiln_image_release(image);
    return status;
  }
  *out_image = image;
  return NULL;
}

void kiln_image_retain(kiln_image_t* image) {
  if (image == NULL) return;
  atomic_fetch_add_explicit(&image->references, 1, memory_order_relaxed);
}

void kiln_image_release(kiln_image_t* image) {
  if (image == NULL || atomic_fetch_sub_explicit(&image->references, 1,
                                                 memory_order_acq_rel) != 1) {
    return;
  }
  uint32_t params = 0;
  if (image->ptx != NULL) {
    for (uint32_t i = 0; i < image->ptx->function_count; i++) {
      if (is_kernel(&image->ptx->functions[i])) {
        params += image->ptx->functions[i].parameter_count;
      }
    }
  }
  kilni_free_array(image->allocator, image->kernels, image->kernel_count,
                   sizeof(*image->kernels));
  kilni_free_array(image->allocator, image->first_params, image->kernel_count,
                   sizeof(*image->first_params));
  kilni_free_array(image->allocator, image->params, params,
                   sizeof(*image->params));
  kilni_ptx_module_release(image->ptx);
  kilni_free(image->allocator, image, sizeof(*image));
}

uint32_t kiln_image_format(const kiln_image_t* image) {
  return image->format;
}

uint32_t kiln_image_ptx_version(const kiln_image_t* image) {
  if (image->ptx == NULL) return 0;
  return image->ptx->version_major * 1000 + image->ptx->version_minor * 10;
}

uint32_t kiln_image_target_count(const kiln_image_t* image) {
  return image->ptx != NULL ? 1 : 0;
}

const char* kiln_image_target(const kiln_image_t* image, uint32_t index) {
  return image->ptx != NULL && index == 0 ? image->ptx->target_text : NULL;
}

uint32_t kiln_image_kernel_count(const kiln_image_t* image) {
  return image->kernel_count;
}

const kiln_image_kernel_t* kiln_image_kernel(const kiln_image_t* image,
                                             uint32_t index) {
  return index < image->kernel_count ? &image->kernels[index] : NULL;
}

kiln_status_t kiln_image_kernel_find(const kiln_image_t* image,
                                     const char* name, uint32_t* out_index) {
  enum { LIST_BYTES = 512 };
  KILNI_CHECK_ARGUMENT(out_index != NULL, "out_index");
  *out_index = 0;
  KILNI_CHECK_ARGUMENT(image != NULL, "image");
  KILNI_CHECK_ARGUMENT(name != NULL, "name");
  for (uint32_t i = 0; i < image->kernel_count; i++) {
    if (strcmp(image->kernels[i].name, name) == 0) {
      *out_index = i;
      return NULL;
    }
  }
  kilni_str_t list;
  kilni_str_init(&list, image->allocator, LIST_BYTES);
  for (uint32_t i = 0; i < image->kernel_count; i++) {
    kilni_str_addf(&list, "%s%s", i > 0 ? ", " : "", image->kernels[i].name);
  }
  kiln_status_t status = kilni_status_with_fix(
      KILNI_FAIL(NOT_FOUND, "there is no kernel \"%s\"", name),
      "name one of: %s", kilni_str_cstr(&list));
  kilni_str_deinit(&list);
  return status;
}

const kiln_image_param_t* kiln_image_kernel_param(const kiln_image_t* image,
                                                  uint32_t kernel_index,
                                                  uint32_t param_index) {
  const kiln_image_kernel_t* kernel = kiln_image_kernel(image, kernel_index);
  if (kernel == NULL || param_index >= kernel->param_count) return NULL;
  return &image->params[image->first_params[kernel_index] + param_index];
}

const kilni_ptx_module_t* kilni_image_ptx(const kiln_image_t* image) {
  return image->ptx;
}
