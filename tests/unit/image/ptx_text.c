// SPDX-License-Identifier: Apache-2.0
//
// image: what the PTX reader's tests share.
#include "ptx_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_check.h"

static kiln_bytes_view_t bytes_of(const char* text) {
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  return bytes;
}

kilni_image_ptx_module_t* ptx_read(const char* text) {
  kilni_image_ptx_module_t* module;
  kiln_status_t status = kilni_image_ptx_module_create(
      bytes_of(text), "test", NULL, kiln_allocator_libc(), &module);
  if (!kiln_status_is_ok(status)) {
    char message[2048];
    kiln_status_format(status, sizeof(message), message, NULL);
    kiln_status_free(status);
    fail_msg("refused: %s\n%s", text, message);
  }
  const char* problem = ptx_check(module);
  if (problem != NULL) fail_msg("not whole: %s\n%s", problem, text);
  return module;
}

kiln_status_t ptx_refuse(const char* text,
                         const kilni_image_ptx_limits_t* limits) {
  // Something to see overwritten.
  kilni_image_ptx_module_t* module = (kilni_image_ptx_module_t*)&module;
  kiln_status_t status = kilni_image_ptx_module_create(
      bytes_of(text), "test", limits, kiln_allocator_libc(), &module);
  if (kiln_status_is_ok(status)) {
    kilni_image_ptx_module_release(module);
    fail_msg("accepted: %s", text);
  }
  assert_null(module);
  return status;
}

const kilni_image_ptx_function_t* ptx_only_function(
    const kilni_image_ptx_module_t* module) {
  const kilni_image_ptx_function_t* only = NULL;
  for (uint32_t i = 0; i < module->function_count; i++) {
    if (!module->functions[i].is_defined) continue;
    assert_null(only);
    only = &module->functions[i];
  }
  assert_non_null(only);
  return only;
}

const kilni_image_ptx_instruction_t* ptx_instruction(
    const kilni_image_ptx_module_t* module, uint32_t index) {
  const kilni_image_ptx_function_t* function = ptx_only_function(module);
  assert_true(index < function->instruction_count);
  return &function->instructions[index];
}

const kilni_image_ptx_operand_t* ptx_operand(
    const kilni_image_ptx_module_t* module, uint32_t index, uint32_t operand) {
  const kilni_image_ptx_instruction_t* instruction =
      ptx_instruction(module, index);
  assert_true(operand < instruction->operand_count);
  return &kilni_image_ptx_instruction_operands(module, instruction)[operand];
}
