// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as PTX text: an error with its place, or a whole tree.
//
// The same bytes are read twice, with the limits of the library and with small
// ones, so that each limit is met, too. tests/fuzz/ptx.dict holds words.
#include <stdlib.h>
#include <string.h>

#include "image/image.h"
#include "ptx_check.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static void read_with(kiln_bytes_view_t text,
                      const kilni_image_ptx_limits_t* limits) {
  kilni_image_ptx_module_t* module;
  kiln_status_t status = kilni_image_ptx_module_create(
      text, "fuzz", limits, kiln_allocator_libc(), &module);
  if (kiln_status_is_ok(status)) {
    require(module != NULL && ptx_check(module) == NULL);
  } else {
    require(module == NULL);
    require(kiln_status_fix(status) != NULL);
    require(kiln_status_code(status) == KILN_STATUS_BAD_DATA ||
            kiln_status_code(status) == KILN_STATUS_UNSUPPORTED ||
            kiln_status_code(status) == KILN_STATUS_LIMIT_EXCEEDED);
  }
  kiln_status_free(status);
  kilni_image_ptx_module_release(module);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kiln_bytes_view_t text = {data, size};
  kilni_image_ptx_limits_t limits;
  memset(&limits, 0, sizeof(limits));
  limits.nesting = 4;
  limits.identifier_bytes = 24;
  limits.registers = 64;
  limits.labels = 4;
  limits.instructions = 12;
  limits.vector_elements = 4;
  limits.modifiers = 5;
  limits.variable_bytes = 256;
  limits.initialiser_bytes = 64;
  limits.forms = 8;
  limits.parameters = 6;
  limits.operands = 64;
  read_with(text, NULL);
  read_with(text, &limits);

  kiln_image_t* image;
  kiln_status_t status = kiln_image_create(text, NULL, &image);
  require(kiln_status_is_ok(status) == (image != NULL));
  if (image != NULL) {
    for (uint32_t i = 0; i < kiln_image_kernel_count(image); i++) {
      const kiln_image_kernel_t* kernel = kiln_image_kernel(image, i);
      require(kernel->name[0] != '\0');
      for (uint32_t p = 0; p < kernel->param_count; p++) {
        require(kiln_image_kernel_param(image, i, p) != NULL);
      }
    }
  }
  kiln_status_free(status);
  kiln_image_release(image);
  return 0;
}
