// SPDX-License-Identifier: Apache-2.0
//
// test: what must hold of every image, whatever it was made from.
#include "image_check.h"

#include <string.h>

static const char* check_kernel(const kiln_image_t* image, uint32_t member,
                                const kiln_image_kernel_t* kernel,
                                uint32_t index) {
  if (kernel == NULL) return "a kernel is missing";
  if (kernel->name == NULL || kernel->targets == NULL) return "no name";
  for (uint32_t i = 0; i < kernel->param_count; i++) {
    const kiln_image_param_t* param =
        kiln_image_member_param(image, member, index, i);
    if (param == NULL || param->name == NULL || param->type == NULL) {
      return "a parameter is missing";
    }
    if ((uint64_t)param->offset + param->bytes > kernel->param_bytes) {
      return "a parameter behind the last";
    }
    if (param->kind > KILN_IMAGE_PARAM_POINTER) return "no kind of parameter";
  }
  if (kiln_image_member_param(image, member, index, kernel->param_count)) {
    return "one parameter too many";
  }
  // Each kernel of a member is among those of the file.
  uint32_t found = 0;
  kiln_status_t status = kiln_image_kernel_find(image, kernel->name, &found);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return "a member's kernel is not in the list of all";
  }
  return NULL;
}

static const char* check_member(const kiln_image_t* image, uint32_t index,
                                uint32_t* inout_symbols) {
  const kiln_image_member_t* member = kiln_image_member(image, index);
  if (member == NULL) return "a member is missing";
  const char* const texts[] = {member->origin,  member->identifier,
                               member->target,  member->producer,
                               member->options, member->triple};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    if (texts[i] == NULL) return "a member's text is missing";
  }
  if (member->format > KILN_CODE_FORMAT_NVVM) return "no format";
  if (member->unread != NULL &&
      (member->unread[0] == 0 || member->kernel_count > 0)) {
    return "an unread member with kernels, or without a reason";
  }
  // The search is linear: only the first are looked for.
  uint32_t count = member->kernel_count < 64 ? member->kernel_count : 64;
  for (uint32_t i = 0; i < count; i++) {
    const char* wrong = check_kernel(
        image, index, kiln_image_member_kernel(image, index, i), i);
    if (wrong != NULL) return wrong;
  }
  if (kiln_image_member_kernel(image, index, member->kernel_count) != NULL) {
    return "one kernel too many";
  }
  *inout_symbols += member->symbol_count;
  return NULL;
}

const char* image_check(const kiln_image_t* image) {
  uint32_t symbols = 0;
  uint32_t members = kiln_image_member_count(image);
  for (uint32_t i = 0; i < members; i++) {
    const char* wrong = check_member(image, i, &symbols);
    if (wrong != NULL) return wrong;
  }
  if (kiln_image_member(image, members) != NULL) return "one member too many";
  if (symbols != kiln_image_symbol_count(image)) return "symbols of nobody";
  for (uint32_t i = 0; i < symbols; i++) {
    const kiln_image_symbol_t* symbol = kiln_image_symbol(image, i);
    if (symbol == NULL || symbol->name == NULL || symbol->member >= members ||
        symbol->kind < KILN_IMAGE_SYMBOL_VARIABLE ||
        symbol->kind > KILN_IMAGE_SYMBOL_FUNCTION) {
      return "a symbol that is none";
    }
  }
  for (uint32_t i = 0; i < kiln_image_target_count(image); i++) {
    const char* target = kiln_image_target(image, i);
    if (target == NULL || target[0] == 0) return "a target without a name";
  }
  return NULL;
}

const char* image_check_bytes(kiln_bytes_view_t bytes) {
  kiln_image_t* image = NULL;
  kiln_image_options_t options = kiln_image_options_default();
  options.name = "bytes";
  kiln_status_t status = kiln_image_create(bytes, &options, &image);
  if (kiln_status_is_ok(status) != (image != NULL)) return "neither, or both";
  if (kiln_status_is_ok(status)) {
    const char* wrong = image_check(image);
    kiln_image_release(image);
    return wrong;
  }
  kiln_status_code_t code = kiln_status_code(status);
  const char* wrong = NULL;
  if (code != KILN_STATUS_BAD_DATA && code != KILN_STATUS_UNSUPPORTED &&
      code != KILN_STATUS_LIMIT_EXCEEDED) {
    wrong = "an error of another kind";
  } else if (kiln_status_fix(status) == NULL) {
    wrong = "an error without a cure";
  } else if (strchr(kiln_status_message(status), '\n') != NULL &&
             kiln_code_format_of(bytes) != KILN_CODE_FORMAT_PTX) {
    wrong = "an error of two lines";
  }
  kiln_status_free(status);
  return wrong;
}
