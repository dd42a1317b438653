// SPDX-License-Identifier: Apache-2.0
//
// compile: the facts in an input of a link, and whether it is in the result.
//
// nvlink, nvJitLink and what is like them link relocatable code. Machine code
// that is finished (compiled without relocatable device code) they leave out
// and report success, from cubins, fatbins, objects and archives alike.
#include <string.h>

#include "base/status_make.h"
#include "compile/link_inside.h"
#include "image/image.h"

kiln_status_t kilni_compile_link_read_image(const kiln_code_t* code,
                                            kiln_allocator_t allocator,
                                            kiln_image_t** out_image) {
  kiln_image_options_t options = kiln_image_options_default();
  options.name = kiln_code_name(code);
  options.allocator = &allocator;
  kiln_status_t status =
      kiln_image_create(kiln_code_bytes(code), &options, out_image);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  return kiln_ok();
}

// ---- What made it ----

static bool link_input_is_machine_code(uint32_t format) {
  return format == KILN_CODE_FORMAT_CUBIN ||
         format == KILN_CODE_FORMAT_RELOCATABLE ||
         format == KILN_CODE_FORMAT_FATBIN ||
         format == KILN_CODE_FORMAT_OBJECT ||
         format == KILN_CODE_FORMAT_LIBRARY;
}

// The newest release of the compilers that made its contents; 0: unknown.
static uint32_t line_inside(const kiln_code_t* code) {
  uint32_t line = 0;
  uint32_t format = kiln_code_format(code);
  if (!link_input_is_machine_code(format) && format != KILN_CODE_FORMAT_LTOIR) {
    return 0;
  }
  // The linker refuses what cannot be read. Without memory nothing is known,
  // and the link itself will report that.
  kiln_status_t status =
      kilni_image_producer_line(kiln_code_bytes(code), kiln_code_name(code),
                                kiln_allocator_libc(), &line);
  bool is_known = kiln_status_is_ok(status);
  kiln_status_free(status);
  return is_known ? line : 0;
}

void kiln_link_input_fact_of(const kiln_code_t* code,
                             kiln_link_input_fact_t* out_fact) {
  memset(out_fact, 0, sizeof(*out_fact));
  out_fact->format = kiln_code_format(code);
  out_fact->line = kiln_code_producer_line(code);
  out_fact->name = kiln_code_name(code);
  if (out_fact->format == KILN_CODE_FORMAT_PTX) {
    out_fact->ptx_isa = kilni_image_ptx_isa(kiln_code_bytes(code));
  } else if (out_fact->line == 0) {
    out_fact->line = line_inside(code);
  }
}

kiln_status_t kilni_compile_link_input_damage(const kiln_code_t* input) {
  kiln_allocator_t allocator = kiln_allocator_libc();
  kiln_image_options_t options = kiln_image_options_default();
  kiln_image_t* image = NULL;
  uint32_t format = kiln_code_format(input);
  if (format != KILN_CODE_FORMAT_CUBIN &&
      format != KILN_CODE_FORMAT_RELOCATABLE) {
    return kiln_ok();
  }
  options.name = kiln_code_name(input);
  options.allocator = &allocator;
  kiln_status_t status =
      kiln_image_create(kiln_code_bytes(input), &options, &image);
  kiln_image_release(image);
  if (kiln_status_code(status) == KILN_STATUS_BAD_DATA) return status;
  kiln_status_free(status);
  return kiln_ok();
}

// ---- What came out ----

kiln_status_t kilni_compile_link_lost(const kilni_compile_link_given_t* given,
                                      const kiln_code_t* input,
                                      const char* kernel) {
  // Over machine code nvJitLink reads one list as if the other were there, too.
  if (given->options->variables_used_count > 0 &&
      given->options->kernels_used_count == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LINK_FAILED,
                   "the kernel \"%s\" of \"%s\" is not in the result: where "
                   "variables are named, linkers omit kernels that are not",
                   kernel, kiln_code_name(input)),
        "name each kernel that is to stay, too (`kernels_used`, "
        "--kernels-used), or no variable");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(LINK_FAILED,
                 "the kernel \"%s\" of \"%s\" is not in the result: linkers "
                 "omit finished machine code and code for other devices",
                 kernel, kiln_code_name(input)),
      "compile it for this device with relocatable device code "
      "(`-rdc=true`), or give it as PTX");
}

// A cubin that was given by itself is in the result with all of its kernels; of
// a container's contents, a linker may omit what is unused, but not all.
static kiln_status_t link_input_check_input(
    const kilni_compile_link_given_t* given, const kiln_code_t* input,
    const kiln_image_t* in, const kiln_image_t* out) {
  bool alone = kiln_code_format(input) == KILN_CODE_FORMAT_CUBIN;
  for (uint32_t i = 0; i < kiln_image_kernel_count(in); i++) {
    const char* name = kiln_image_kernel(in, i)->name;
    uint32_t index = 0;
    if (!alone) return kilni_compile_link_lost(given, input, name);
    kiln_status_t status = kiln_image_kernel_find(out, name, &index);
    bool found = kiln_status_is_ok(status);
    kiln_status_free(status);
    if (!found) return kilni_compile_link_lost(given, input, name);
  }
  return kiln_ok();
}

static bool link_input_is_empty(const kiln_image_t* image) {
  return kiln_image_kernel_count(image) == 0 &&
         kiln_image_symbol_count(image) == 0;
}

static kiln_status_t check_inputs(const kilni_compile_link_given_t* given,
                                  const kiln_image_t* out) {
  kiln_status_t status = kiln_ok();
  // Where kernels are named, all others may go.
  bool empty =
      link_input_is_empty(out) && given->options->kernels_used_count == 0;
  for (size_t i = 0; i < given->count && kiln_status_is_ok(status); i++) {
    const kiln_code_t* input = given->inputs[i];
    uint32_t format = kiln_code_format(input);
    if (!link_input_is_machine_code(format) ||
        (format != KILN_CODE_FORMAT_CUBIN && !empty)) {
      continue;
    }
    kiln_image_t* in = NULL;
    status = kilni_compile_link_read_image(input, given->allocator, &in);
    if (in != NULL) status = link_input_check_input(given, input, in, out);
    kiln_image_release(in);
  }
  return status;
}

kiln_status_t kilni_compile_link_check_kept(
    const kilni_compile_link_given_t* given,
    const kilni_compile_link_names_t* names, const kiln_code_t* linked) {
  kiln_image_t* out = NULL;
  if (!link_input_is_machine_code(kiln_code_format(linked))) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_compile_link_read_image(linked, given->allocator, &out));
  if (out == NULL) return kiln_ok();
  kiln_status_t status = check_inputs(given, out);
  // Those that the options do not name may go.
  if (kiln_status_is_ok(status) && given->options->kernels_used_count == 0) {
    status = kilni_compile_link_check_kernels(given, names, out);
  }
  kiln_image_release(out);
  return status;
}
