// SPDX-License-Identifier: Apache-2.0
//
// image: what the PTX reader's tests share.
#ifndef KILN_TESTS_UNIT_IMAGE_PTX_TEXT_H_
#define KILN_TESTS_UNIT_IMAGE_PTX_TEXT_H_

#include "image/ptx.h"

// Three lines: version, target and address size. What follows is in line 4.
#define PTX_HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

// Line 4 to 6 are a kernel's header and registers; what follows is in line 7.
#define PTX_KERNEL_HEAD                                     \
  PTX_HEAD                                                  \
  ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"    \
  ".reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; " \
  ".reg .f32 %f<9>; .reg .f64 %fd<9>;\n"
#define PTX_KERNEL_TAIL "\nret;\n}\n"

// A kernel around `body`.
#define PTX_KERNEL(body) PTX_KERNEL_HEAD body PTX_KERNEL_TAIL

// Reads `text`; fails the test with the error's text if it is refused or the
// tree is not whole. Release with kilni_image_ptx_module_release.
kilni_image_ptx_module_t* ptx_read(const char* text);

// Reads `text` with `limits` (or NULL), which must be refused. Free the status.
kiln_status_t ptx_refuse(const char* text,
                         const kilni_image_ptx_limits_t* limits);

// The module's only function that has a body, and its instruction `index`.
const kilni_image_ptx_function_t* ptx_only_function(
    const kilni_image_ptx_module_t* module);
const kilni_image_ptx_instruction_t* ptx_instruction(
    const kilni_image_ptx_module_t* module, uint32_t index);
// Operand `operand` of that instruction.
const kilni_image_ptx_operand_t* ptx_operand(
    const kilni_image_ptx_module_t* module, uint32_t index, uint32_t operand);

#endif  // KILN_TESTS_UNIT_IMAGE_PTX_TEXT_H_
