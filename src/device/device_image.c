// SPDX-License-Identifier: Apache-2.0
//
// device: what a code file says about itself: its format, and for PTX its
// version, kernels and parameters.
//
// A driver reads cubins and fatbins by the sizes in their own headers, so those
// are compared with what was handed in before it sees them.
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "device/device_inside.h"
#include "image/ptx.h"

#define FATBIN_MAGIC 0xba55ed50u
enum { ELF_HEADER_BYTES = 64, FATBIN_HEADER_BYTES = 16, MACHINE_CUDA = 190 };

static uint64_t read_le(const uint8_t* data, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; i++) value |= (uint64_t)data[i] << (8 * i);
  return value;
}

static kiln_status_t cut_short(const char* name, const char* what,
                               size_t size) {
  return kilni_status_with_fix(
      KILNI_FAIL(BAD_DATA,
                 "\"%s\" says it is %s, and its %zu bytes end too "
                 "early for what its header promises",
                 name, what, size),
      "make the file again: it was cut off or damaged");
}

static kiln_status_t check_cubin(kiln_bytes_view_t bytes, const char* name) {
  if (bytes.size < ELF_HEADER_BYTES) {
    return cut_short(name, "a cubin", bytes.size);
  }
  if (read_le(bytes.data + 18, 2) != MACHINE_CUDA) {
    return kilni_status_with_fix(
        KILNI_FAIL(BAD_DATA, "\"%s\" is an ELF file, but not one for CUDA",
                   name),
        "give a cubin, a fatbin or PTX: host objects and libraries cannot be "
        "loaded on a device");
  }
  uint64_t at[2] = {read_le(bytes.data + 40, 8), read_le(bytes.data + 32, 8)};
  uint64_t each[2] = {read_le(bytes.data + 58, 2), read_le(bytes.data + 54, 2)};
  uint64_t count[2] = {read_le(bytes.data + 60, 2),
                       read_le(bytes.data + 56, 2)};
  for (int i = 0; i < 2; i++) {
    uint64_t length = each[i] * count[i];
    if (at[i] > bytes.size || length > bytes.size - at[i]) {
      return cut_short(name, "a cubin", bytes.size);
    }
  }
  // Each section's bytes, but of those that take none (SHT_NOBITS is 8).
  for (uint64_t i = 0; each[0] >= 40 && i < count[0]; i++) {
    const uint8_t* section = bytes.data + at[0] + i * each[0];
    uint64_t offset = read_le(section + 24, 8);
    uint64_t size = read_le(section + 32, 8);
    if (read_le(section + 4, 4) == 8) continue;
    if (offset > bytes.size || size > bytes.size - offset) {
      return cut_short(name, "a cubin", bytes.size);
    }
  }
  return NULL;
}

static kiln_status_t check_fatbin(kiln_bytes_view_t bytes, const char* name) {
  if (bytes.size < FATBIN_HEADER_BYTES) {
    return cut_short(name, "a fatbin", bytes.size);
  }
  uint64_t header = read_le(bytes.data + 6, 2);
  uint64_t body = read_le(bytes.data + 8, 8);
  if (header > bytes.size || body > bytes.size - header) {
    return cut_short(name, "a fatbin", bytes.size);
  }
  return NULL;
}

// ---- PTX ----

static uint32_t kind_of(const kilni_ptx_variable_t* variable) {
  if (variable->dimension_count > 0 || variable->vector > 1) {
    return KILN_PARAM_KIND_BYTES;
  }
  if (variable->is_pointer) return KILN_PARAM_KIND_POINTER;
  switch (kilni_ptx_type_class(variable->type)) {
    case KILNI_PTX_CLASS_UNSIGNED:
    case KILNI_PTX_CLASS_SIGNED:
      return KILN_PARAM_KIND_INTEGER;
    case KILNI_PTX_CLASS_FLOAT:
      return KILN_PARAM_KIND_FLOAT;
    default:
      return KILN_PARAM_KIND_UNKNOWN;
  }
}

static kiln_status_t add_params(kilni_image_t* image,
                                kilni_image_kernel_t* kernel,
                                const kilni_ptx_module_t* module,
                                const kilni_ptx_function_t* function) {
  if (function->parameter_count == 0) return NULL;
  void* params = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc_array(image->allocator, function->parameter_count,
                        sizeof(kiln_kernel_param_t), &params));
  kernel->params = params;
  kernel->param_count = function->parameter_count;
  uint64_t at = 0;
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    const kilni_ptx_variable_t* variable =
        &module->variables[function->first_parameter + i];
    uint64_t align = variable->align ? variable->align : 1;
    at = (at + align - 1) / align * align;
    kiln_kernel_param_t* param = &kernel->params[i];
    char* name = NULL;
    KILNI_RETURN_IF_ERROR(
        kilni_strdup(image->allocator, kilni_sv(variable->name), &name));
    param->name = name;
    param->offset = (uint32_t)at;
    param->bytes = (uint32_t)variable->size_bytes;
    param->align = (uint32_t)align;
    param->kind = kind_of(variable);
    at += variable->size_bytes;
  }
  return NULL;
}

static kiln_status_t take_kernels(kilni_image_t* image,
                                  const kilni_ptx_module_t* module) {
  size_t count = 0;
  for (uint32_t i = 0; i < module->function_count; i++) {
    const kilni_ptx_function_t* function = &module->functions[i];
    if (function->is_entry && function->is_defined) count++;
  }
  if (count == 0) return NULL;
  void* kernels = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc_array(
      image->allocator, count, sizeof(kilni_image_kernel_t), &kernels));
  image->kernels = kernels;
  image->kernel_count = count;
  kilni_image_kernel_t* kernel = kernels;
  for (uint32_t i = 0; i < module->function_count; i++) {
    const kilni_ptx_function_t* function = &module->functions[i];
    if (!function->is_entry || !function->is_defined) continue;
    KILNI_RETURN_IF_ERROR(kilni_strdup(
        image->allocator, kilni_sv(function->name), &kernel->name));
    memcpy(kernel->required_block, function->reqntid,
           sizeof(kernel->required_block));
    KILNI_RETURN_IF_ERROR(add_params(image, kernel, module, function));
    kernel++;
  }
  return NULL;
}

// The version that the text states, for a text that cannot be read further.
static void scan_version(kilni_image_t* image, kiln_bytes_view_t bytes) {
  kiln_string_view_t rest = kilni_sv_make((const char*)bytes.data, bytes.size);
  kiln_string_view_t line;
  for (int i = 0; i < 256 && kilni_sv_split(&rest, '\n', &line); i++) {
    static const char word[] = ".version ";
    if (!kilni_sv_starts_with(line, word)) continue;
    uint32_t* part = &image->version_major;
    for (size_t k = sizeof(word) - 1; k < line.size; k++) {
      char c = line.data[k];
      if (c == '.') {
        part = &image->version_minor;
      } else if (c >= '0' && c <= '9' && *part < 1000) {
        *part = *part * 10 + (uint32_t)(c - '0');
      } else if (c != ' ') {
        break;
      }
    }
    return;
  }
}

static kiln_status_t read_ptx(kilni_image_t* image, kiln_bytes_view_t bytes,
                              const char* name, kiln_status_t* out_doubt) {
  kilni_ptx_module_t* module = NULL;
  kiln_status_t status =
      kilni_ptx_module_create(bytes, name, NULL, image->allocator, &module);
  kiln_status_code_t code = kiln_status_code(status);
  if (code == KILN_STATUS_OUT_OF_MEMORY) return status;
  if (code != KILN_STATUS_OK) {
    scan_version(image, bytes);
    *out_doubt = status;
    return NULL;
  }
  image->version_major = module->version_major;
  image->version_minor = module->version_minor;
  status = take_kernels(image, module);
  image->params_known = kiln_status_is_ok(status);
  kilni_ptx_module_release(module);
  return status;
}

// ---- The image ----

static kiln_status_t read_image(kilni_image_t* image, kiln_bytes_view_t bytes,
                                const char* name, kiln_status_t* out_doubt) {
  if (bytes.size == 0) {
    return kilni_status_with_fix(KILNI_FAIL(BAD_DATA, "\"%s\" is empty", name),
                                 "give PTX, a cubin or a fatbin");
  }
  if (bytes.size >= 4 && memcmp(bytes.data, "\177ELF", 4) == 0) {
    image->format = KILNI_IMAGE_CUBIN;
    return check_cubin(bytes, name);
  }
  if (bytes.size >= 4 && read_le(bytes.data, 4) == FATBIN_MAGIC) {
    image->format = KILNI_IMAGE_FATBIN;
    return check_fatbin(bytes, name);
  }
  image->format = KILNI_IMAGE_PTX;
  return read_ptx(image, bytes, name, out_doubt);
}

kiln_status_t kilni_image_init(kilni_image_t* image, kiln_allocator_t allocator,
                               kiln_bytes_view_t bytes, const char* name,
                               kiln_status_t* out_doubt) {
  memset(image, 0, sizeof(*image));
  image->allocator = allocator;
  *out_doubt = NULL;
  kiln_status_t status = read_image(image, bytes, name, out_doubt);
  if (!kiln_status_is_ok(status)) kilni_image_deinit(image);
  return status;
}

static void kernel_deinit(kiln_allocator_t allocator,
                          kilni_image_kernel_t* kernel) {
  for (uint32_t i = 0; i < kernel->param_count; i++) {
    // Owned by the image and const only to its readers.
    char* name = NULL;
    memcpy(&name, &kernel->params[i].name, sizeof(name));
    kilni_strfree(allocator, name);
  }
  kilni_free_array(allocator, kernel->params, kernel->param_count,
                   sizeof(kiln_kernel_param_t));
  kilni_strfree(allocator, kernel->name);
}

void kilni_image_deinit(kilni_image_t* image) {
  for (size_t i = 0; i < image->kernel_count; i++) {
    kernel_deinit(image->allocator, &image->kernels[i]);
  }
  kilni_free_array(image->allocator, image->kernels, image->kernel_count,
                   sizeof(kilni_image_kernel_t));
  image->kernels = NULL;
  image->kernel_count = 0;
}

size_t kilni_image_find(const kilni_image_t* image, const char* name) {
  for (size_t i = 0; i < image->kernel_count; i++) {
    if (strcmp(image->kernels[i].name, name) == 0) return i;
  }
  return image->kernel_count;
}

kiln_status_t kilni_image_add_name(kilni_image_t* image, const char* name) {
  size_t count = image->kernel_count;
  void* kernels = NULL;
  KILNI_RETURN_IF_ERROR(kilni_alloc_array(
      image->allocator, count + 1, sizeof(kilni_image_kernel_t), &kernels));
  kilni_image_kernel_t* items = kernels;
  kiln_status_t status =
      kilni_strdup(image->allocator, kilni_sv(name), &items[count].name);
  if (!kiln_status_is_ok(status)) {
    kilni_free_array(image->allocator, kernels, count + 1,
                     sizeof(kilni_image_kernel_t));
    return status;
  }
  if (count > 0) {
    memcpy(items, image->kernels, count * sizeof(kilni_image_kernel_t));
  }
  kilni_free_array(image->allocator, image->kernels, count,
                   sizeof(kilni_image_kernel_t));
  image->kernels = kernels;
  image->kernel_count = count + 1;
  return NULL;
}
