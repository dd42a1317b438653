// SPDX-License-Identifier: Apache-2.0
//
// device: the facts in a code file: its format, kernels and parameters, as the
// readers of image/ find them.
//
// A driver trusts the headers of a cubin or fatbin, so a file that is shorter
// than they state is refused before it sees it. Anything else that the readers
// cannot read is only a problem to report: the driver may be newer than they
// are.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "device/device_inside.h"
#include "image/image.h"

// The values of one are those of the other.
_Static_assert((int)KILN_PARAM_KIND_UNKNOWN == (int)KILN_IMAGE_PARAM_UNKNOWN &&
                   (int)KILN_PARAM_KIND_INTEGER ==
                       (int)KILN_IMAGE_PARAM_INTEGER &&
                   (int)KILN_PARAM_KIND_FLOAT == (int)KILN_IMAGE_PARAM_FLOAT &&
                   (int)KILN_PARAM_KIND_BYTES == (int)KILN_IMAGE_PARAM_BYTES &&
                   (int)KILN_PARAM_KIND_POINTER ==
                       (int)KILN_IMAGE_PARAM_POINTER,
               "kinds of parameters");

// ---- Kernels ----

static kiln_status_t take_params(kilni_device_code_facts_t* facts,
                                 kilni_device_code_kernel_t* to,
                                 const kiln_image_t* image, uint32_t index,
                                 uint32_t count) {
  if (count == 0) return kiln_ok();
  void* params = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      facts->allocator, count, sizeof(kiln_kernel_param_t), &params));
  to->params = params;
  to->param_count = count;
  for (uint32_t i = 0; i < count; i++) {
    const kiln_image_param_t* from = kiln_image_kernel_param(image, index, i);
    kiln_kernel_param_t* param = &to->params[i];
    char* name = NULL;
    KILNI_RETURN_IF_ERROR(
        kilni_base_strdup(facts->allocator, kilni_base_sv(from->name), &name));
    param->name = name;
    param->offset = from->offset;
    param->bytes = from->bytes;
    param->align = from->align;
    param->kind = from->kind;
  }
  return kiln_ok();
}

static kiln_status_t take_kernels(kilni_device_code_facts_t* facts,
                                  const kiln_image_t* image) {
  uint32_t count = kiln_image_kernel_count(image);
  if (count == 0) return kiln_ok();
  void* kernels = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      facts->allocator, count, sizeof(kilni_device_code_kernel_t), &kernels));
  facts->kernels = kernels;
  facts->kernel_count = count;
  facts->kernel_capacity = count;
  for (uint32_t i = 0; i < count; i++) {
    const kiln_image_kernel_t* from = kiln_image_kernel(image, i);
    kilni_device_code_kernel_t* to = &facts->kernels[i];
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(
        facts->allocator, kilni_base_sv(from->name), &to->name));
    memcpy(to->required_block, from->required_block,
           sizeof(to->required_block));
    memcpy(to->required_cluster, from->required_cluster,
           sizeof(to->required_cluster));
    to->explicit_cluster = from->explicit_cluster != 0;
    to->blocks_are_clusters = from->blocks_are_clusters != 0;
    to->params_known = from->params_known != 0;
    KILNI_RETURN_IF_ERROR(take_params(facts, to, image, i, from->param_count));
  }
  return kiln_ok();
}

// ---- The file ----

// What the code read before, or reads now; otherwise it is for these facts.
static kiln_status_t image_open(const kilni_device_code_facts_t* facts,
                                const kilni_device_code_source_t* source,
                                kiln_image_t** out_image) {
  if (source->code != NULL && source->keeps) {
    return kilni_image_code_read(source->code, source->name, out_image);
  }
  if (source->code != NULL) {
    *out_image = kilni_image_code_seen(source->code);
    if (*out_image != NULL) return kiln_ok();
  }
  kiln_image_options_t options = kiln_image_options_default();
  options.name = source->name;
  options.allocator = &facts->allocator;
  return kiln_image_create(source->bytes, &options, out_image);
}

static kiln_status_t read_kernels(kilni_device_code_facts_t* facts,
                                  const kilni_device_code_source_t* source,
                                  kiln_status_t* out_doubt) {
  kiln_image_t* image = NULL;
  kiln_status_t status = image_open(facts, source, &image);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  if (!kiln_status_is_ok(status)) {
    *out_doubt = status;
    return kiln_ok();
  }
  status = take_kernels(facts, image);
  facts->is_listed = kiln_status_is_ok(status);
  facts->tree = kilni_image_ptx_share(image);
  kiln_image_release(image);
  return status;
}

// BAD_DATA is the file's own fault; all else is a problem to report.
static kiln_status_t image_check_whole(kiln_bytes_view_t bytes,
                                       const char* name,
                                       kiln_status_t* out_doubt) {
  kiln_status_t status = kilni_image_check_whole(bytes, name);
  kiln_status_code_t code = kiln_status_code(status);
  if (code == KILN_STATUS_OK || code == KILN_STATUS_BAD_DATA) return status;
  *out_doubt = status;
  return kiln_ok();
}

static kiln_status_t image_read_facts(kilni_device_code_facts_t* facts,
                                      const kilni_device_code_source_t* source,
                                      kiln_status_t* out_doubt) {
  const kiln_bytes_view_t bytes = source->bytes;
  const char* name = source->name;
  if (bytes.size == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(BAD_DATA, "\"%s\" is empty", name),
        "give PTX, a cubin or a fatbin");
  }
  if (kiln_code_format_of(bytes) == KILN_CODE_FORMAT_LTOIR) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(BAD_DATA, "\"%s\" is LTO-IR, which no device loads", name),
        "link it first: `kiln link FILE --lto --arch sm_90 -o OUT.cubin` for "
        "a GPU, with `--output ptx -o OUT.ptx` for the software device; in a "
        "program, kiln_link_finish with `lto`");
  }
  bool is_elf = bytes.size >= 4 && memcmp(bytes.data, "\177ELF", 4) == 0;
  bool is_fatbin = kiln_code_format_of(bytes) == KILN_CODE_FORMAT_FATBIN;
  facts->format = is_elf      ? KILN_CODE_FORMAT_CUBIN
                  : is_fatbin ? KILN_CODE_FORMAT_FATBIN
                              : KILN_CODE_FORMAT_PTX;
  if (facts->format == KILN_CODE_FORMAT_PTX) {
    KILNI_RETURN_IF_ERROR(kilni_image_code_check_text(bytes, name));
  }
  facts->ptx_isa = kilni_image_ptx_isa(bytes);
  if (is_elf || is_fatbin) {
    KILNI_RETURN_IF_ERROR(image_check_whole(bytes, name, out_doubt));
  }
  // A fatbin has kernels for many devices, packed; the driver takes its own.
  if (is_fatbin || !kiln_status_is_ok(*out_doubt)) return kiln_ok();
  return read_kernels(facts, source, out_doubt);
}

kiln_status_t kilni_device_code_facts_init(
    kilni_device_code_facts_t* facts, kiln_allocator_t allocator,
    const kilni_device_code_source_t* source, kiln_status_t* out_doubt) {
  memset(facts, 0, sizeof(*facts));
  facts->allocator = allocator;
  *out_doubt = NULL;
  kiln_status_t status = image_read_facts(facts, source, out_doubt);
  if (!kiln_status_is_ok(status)) kilni_device_code_facts_deinit(facts);
  return status;
}

static void kernel_deinit(kiln_allocator_t allocator,
                          kilni_device_code_kernel_t* kernel) {
  for (uint32_t i = 0; i < kernel->param_count; i++) {
    // Owned by the image and const only to its readers.
    char* name = NULL;
    memcpy(&name, &kernel->params[i].name, sizeof(name));
    kilni_base_strfree(allocator, name);
  }
  kilni_base_free_array(allocator, kernel->params, kernel->param_count,
                        sizeof(kiln_kernel_param_t));
  kilni_base_strfree(allocator, kernel->name);
}

void kilni_device_code_facts_drop_tree(kilni_device_code_facts_t* facts) {
  kilni_image_ptx_module_release(facts->tree);
  facts->tree = NULL;
}

void kilni_device_code_facts_deinit(kilni_device_code_facts_t* facts) {
  kilni_device_code_facts_drop_tree(facts);
  for (size_t i = 0; i < facts->kernel_count; i++) {
    kernel_deinit(facts->allocator, &facts->kernels[i]);
  }
  kilni_base_free_array(facts->allocator, facts->kernels,
                        facts->kernel_capacity,
                        sizeof(kilni_device_code_kernel_t));
  facts->kernels = NULL;
  facts->kernel_count = 0;
  facts->kernel_capacity = 0;
}

size_t kilni_device_code_facts_find(const kilni_device_code_facts_t* facts,
                                    const char* name) {
  for (size_t i = 0; i < facts->kernel_count; i++) {
    if (strcmp(facts->kernels[i].name, name) == 0) return i;
  }
  return facts->kernel_count;
}

// Space for one kernel more after the last.
static kiln_status_t image_make_space(kilni_device_code_facts_t* facts) {
  void* kernels = facts->kernels;
  kiln_status_t status = kilni_base_grow(
      facts->allocator, facts->kernel_count + 1,
      sizeof(kilni_device_code_kernel_t), &facts->kernel_capacity, &kernels);
  facts->kernels = kernels;
  return status;
}

// Replaces a kernel by its description, or appends that. `*kernel` then has the
// replaced kernel, or is empty.
static kiln_status_t image_describe(kilni_device_code_facts_t* facts,
                                    kilni_device_code_kernel_t* kernel) {
  const size_t at = kilni_device_code_facts_find(facts, kernel->name);
  if (at == facts->kernel_count) {
    KILNI_RETURN_IF_ERROR(image_make_space(facts));
    facts->kernel_count++;
  }
  const kilni_device_code_kernel_t before = facts->kernels[at];
  facts->kernels[at] = *kernel;
  *kernel = before;
  return kiln_ok();
}

kiln_status_t kilni_device_code_facts_describe(
    kilni_device_code_facts_t* facts, const kilni_device_code_source_t* ptx) {
  kilni_device_code_facts_t other;
  kiln_status_t doubt = kiln_ok();
  if (facts->format != KILN_CODE_FORMAT_CUBIN) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_device_code_facts_init(&other, facts->allocator, ptx, &doubt));
  // What our reader cannot read describes nothing; the code is good all the
  // same.
  kiln_status_free(doubt);
  kiln_status_t status = kiln_ok();
  for (size_t i = 0; i < other.kernel_count && kiln_status_is_ok(status); i++) {
    status = image_describe(facts, &other.kernels[i]);
  }
  kilni_device_code_facts_deinit(&other);
  return status;
}

kiln_status_t kilni_device_code_facts_add(kilni_device_code_facts_t* facts,
                                          const char* name) {
  KILNI_RETURN_IF_ERROR(image_make_space(facts));
  KILNI_RETURN_IF_ERROR(
      kilni_base_strdup(facts->allocator, kilni_base_sv(name),
                        &facts->kernels[facts->kernel_count].name));
  facts->kernel_count++;
  return kiln_ok();
}
