// SPDX-License-Identifier: Apache-2.0
//
// image: the public object: making one, and reading its facts.
#include "base/alloc.h"
#include "base/status_make.h"
#include "image/image.h"

#include <string.h>

#include "base/options.h"
#include "base/str.h"
#include "image/image_inside.h"

// ---------------------------------------------------------------------------
// The object
// ---------------------------------------------------------------------------

static bool image_is_elf(const kilni_image_part_t* part) {
  return part->size >= 4 && memcmp(part->data, "\177ELF", 4) == 0;
}

static kiln_status_t unknown_format(const kilni_image_part_t* part) {
  kiln_bytes_view_t bytes = {part->data, (size_t)part->size};
  KILNI_RETURN_IF_ERROR(kilni_image_code_check_thin(bytes, part->name));
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA,
                 "%s: neither PTX, nor a cubin, a fatbin, LTO-IR, NVVM IR, a "
                 "host's ELF file or an archive of those",
                 part->name),
      "give a code file: PTX begins with .version, and CUDA C++ is compiled "
      "first");
}

// Formats whose header does not identify their producer.
static bool tells_no_producer(uint32_t format) {
  return format == KILN_CODE_FORMAT_PTX || format == KILN_CODE_FORMAT_NVVM;
}

// What a linker is given: a container's parts are walked like an image's.
static kiln_status_t check_piece(kiln_image_t* image,
                                 const kilni_image_part_t* part,
                                 const kilni_image_about_t* about,
                                 uint32_t format) {
  bool is_code = format == KILN_CODE_FORMAT_PTX ||
                 format == KILN_CODE_FORMAT_CUBIN ||
                 format == KILN_CODE_FORMAT_RELOCATABLE ||
                 format == KILN_CODE_FORMAT_LTOIR;
  if (is_code) kilni_image_count_part(image->link);
  kilni_image_count_piece(image->link, format);
  switch (format) {
    case KILN_CODE_FORMAT_PTX:
      return kilni_image_link_ptx(part, image->link, image->allocator);
    case KILN_CODE_FORMAT_CUBIN:
    case KILN_CODE_FORMAT_RELOCATABLE:
      return kilni_image_link_cubin(part, image->link);
    case KILN_CODE_FORMAT_FATBIN:
      return kilni_image_read_fatbin(image, part, about);
    case KILN_CODE_FORMAT_LTOIR:
      return kilni_image_check_ltoir(part);
    case KILN_CODE_FORMAT_LIBRARY:
      return kilni_image_read_archive(image, part, about);
    case KILN_CODE_FORMAT_NVVM:
      return kiln_ok();
    default:
      return image_is_elf(part) ? kilni_image_read_host(image, part, about)
                                : unknown_format(part);
  }
}

// Code of any format.
static kiln_status_t image_read_code(kiln_image_t* image,
                                     const kilni_image_part_t* part,
                                     const kilni_image_about_t* about) {
  kiln_bytes_view_t bytes = {part->data, (size_t)part->size};
  uint32_t format = kiln_code_format_of(bytes);
  if (image->link != NULL) return check_piece(image, part, about, format);
  if (image->producers_only && tells_no_producer(format)) return kiln_ok();
  switch (format) {
    case KILN_CODE_FORMAT_PTX:
      return kilni_image_read_ptx(image, part, about);
    case KILN_CODE_FORMAT_CUBIN:
    case KILN_CODE_FORMAT_RELOCATABLE:
      return kilni_image_read_cubin(image, part, about);
    case KILN_CODE_FORMAT_FATBIN:
      return kilni_image_read_fatbin(image, part, about);
    case KILN_CODE_FORMAT_LTOIR:
      return kilni_image_read_ltoir(image, part, about);
    case KILN_CODE_FORMAT_LIBRARY:
      return kilni_image_read_archive(image, part, about);
    case KILN_CODE_FORMAT_NVVM:
      return kilni_image_read_nvvm(image, part, about);
    default:
      return image_is_elf(part) ? kilni_image_read_host(image, part, about)
                                : unknown_format(part);
  }
}

// Whether a container lists what could not be read, and goes on: what another
// version would read, and PTX with an error in it.
static bool is_listed(kiln_status_code_t code, uint32_t format) {
  return code == KILN_STATUS_UNSUPPORTED ||
         (format == KILN_CODE_FORMAT_PTX &&
          (code == KILN_STATUS_BAD_DATA || code == KILN_STATUS_LIMIT_EXCEEDED));
}

kiln_status_t kilni_image_read_entry(kiln_image_t* image,
                                     const kilni_image_part_t* part,
                                     const kilni_image_about_t* about) {
  if (image->nesting == KILNI_IMAGE_MAX_NESTING) {
    return kilni_image_over(part->name, "nested containers",
                            KILNI_IMAGE_MAX_NESTING);
  }
  size_t boxes = image->box_count;
  size_t rows = image->row_count;
  size_t params = image->param_count;
  size_t symbols = image->symbol_count;
  image->nesting++;
  kiln_status_t status = image_read_code(image, part, about);
  image->nesting--;
  kiln_bytes_view_t bytes = {part->data, (size_t)part->size};
  uint32_t format = kiln_code_format_of(bytes);
  if (!is_listed(kiln_status_code(status), format)) return status;
  if (image->link != NULL) {
    kiln_status_free(status);
    return kiln_ok();
  }
  image->box_count = boxes;
  image->row_count = rows;
  image->param_count = params;
  image->symbol_count = symbols;
  kiln_image_member_t* member = NULL;
  kiln_status_t listed =
      kilni_image_add_member(image, part, about, format, &member);
  if (kiln_status_is_ok(listed)) {
    const char* why = kiln_status_message(status);
    listed = kilni_image_text(image, why, strlen(why), &member->unread);
  }
  kiln_status_free(status);
  return listed;
}

static kiln_status_t image_read_file(kiln_image_t* image,
                                     kiln_bytes_view_t bytes,
                                     const char* name) {
  kilni_image_part_t part = {bytes.data, bytes.size, 0,
                             name != NULL ? name : "the image"};
  image->format = kiln_code_format_of(bytes);
  if (image->format == KILN_CODE_FORMAT_UNKNOWN) {
    if (!image_is_elf(&part)) return unknown_format(&part);
    image->format = KILN_CODE_FORMAT_OBJECT;
  }
  kilni_image_about_t about = {0};
  about.bytes = part.size;
  KILNI_RETURN_IF_ERROR(image_read_code(image, &part, &about));
  return kilni_image_finish(image);
}

kiln_status_t kiln_image_create(kiln_bytes_view_t bytes,
                                const kiln_image_options_t* options,
                                kiln_image_t** out_image) {
  KILNI_CHECK_ARGUMENT(out_image != NULL, "out_image");
  *out_image = NULL;
  KILNI_CHECK_ARGUMENT(bytes.data != NULL || bytes.size == 0, "bytes");
  kiln_image_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_image_options_t, &given));
  kiln_allocator_t allocator =
      given.allocator != NULL ? *given.allocator : kiln_allocator_libc();
  kilni_base_keep_t nobody = {NULL, NULL, NULL};
  return kilni_image_create(bytes, given.name, allocator, nobody, out_image);
}

kiln_status_t kilni_image_create(kiln_bytes_view_t bytes, const char* name,
                                 kiln_allocator_t allocator,
                                 kilni_base_keep_t keep,
                                 kiln_image_t** out_image) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_image_t), &block));
  kiln_image_t* image = block;
  atomic_init(&image->references, 1);
  image->allocator = allocator;
  image->keep = keep;
  kilni_base_keep_retain(keep);
  kiln_status_t status = image_read_file(image, bytes, name);
  if (!kiln_status_is_ok(status)) {
    kiln_image_release(image);
    return status;
  }
  *out_image = image;
  return kiln_ok();
}

static kiln_status_t read_producers(kiln_image_t* image,
                                    const kilni_image_part_t* part,
                                    uint32_t* out_line) {
  kilni_image_about_t about = {0};
  about.bytes = part->size;
  KILNI_RETURN_IF_ERROR(image_read_code(image, part, &about));
  for (size_t i = 0; i < image->box_count; i++) {
    uint32_t line = image->boxes[i].shown.producer_line;
    if (line > *out_line) *out_line = line;
  }
  return kiln_ok();
}

kiln_status_t kilni_image_producer_line(kiln_bytes_view_t bytes,
                                        const char* name,
                                        kiln_allocator_t allocator,
                                        uint32_t* out_line) {
  kiln_image_t image = {0};
  kilni_image_part_t part = {bytes.data, bytes.size, 0, name};
  *out_line = 0;
  image.allocator = allocator;
  image.producers_only = true;
  kiln_status_t status = read_producers(&image, &part, out_line);
  kilni_image_drop(&image);
  return status;
}

// How bytes must begin for a linker that is given their format. A linked cubin
// and an unlinked one are accepted for each other.
static kiln_status_t image_check_format(const kilni_image_part_t* part,
                                        uint32_t format) {
  uint32_t seen =
      kiln_code_format_of((kiln_bytes_view_t){part->data, (size_t)part->size});
  if (seen == KILN_CODE_FORMAT_RELOCATABLE) seen = KILN_CODE_FORMAT_CUBIN;
  if (format == KILN_CODE_FORMAT_RELOCATABLE) format = KILN_CODE_FORMAT_CUBIN;
  if (seen == format || format == KILN_CODE_FORMAT_PTX) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(BAD_DATA, "%s: no %s begins here", part->name,
                 kiln_code_format_name(format)),
      "make the file again: it was damaged; or specify its format");
}

kiln_status_t kilni_image_check_link(kiln_bytes_view_t bytes, uint32_t format,
                                     const char* name,
                                     kiln_allocator_t allocator,
                                     const kilni_image_link_visit_t* visit) {
  kiln_image_t image = {0};
  kilni_image_part_t part = {bytes.data, bytes.size, 0, name};
  kilni_image_about_t about = {0};
  about.bytes = part.size;
  image.allocator = allocator;
  image.link = visit;
  KILNI_RETURN_IF_ERROR(image_check_format(&part, format));
  if (format == KILN_CODE_FORMAT_PTX) {
    kilni_image_count_part(visit);
    kilni_image_count_piece(visit, format);
    return kilni_image_link_ptx(&part, visit, allocator);
  }
  kiln_status_t status = image_read_code(&image, &part, &about);
  kilni_image_drop(&image);
  if (kiln_status_code(status) != KILN_STATUS_UNSUPPORTED) return status;
  kiln_status_free(status);
  return kiln_ok();
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
  kilni_base_keep_t keep = image->keep;
  kilni_image_drop(image);
  kilni_base_free(image->allocator, image, sizeof(*image));
  kilni_base_keep_release(keep);
}

uint32_t kiln_image_format(const kiln_image_t* image) {
  return image->format;
}

uint32_t kiln_image_ptx_version(const kiln_image_t* image) {
  if (image->ptx == NULL) return 0;
  return image->ptx->version_major * 1000 + image->ptx->version_minor * 10;
}

uint32_t kiln_image_target_count(const kiln_image_t* image) {
  return (uint32_t)image->target_count;
}

const char* kiln_image_target(const kiln_image_t* image, uint32_t index) {
  return index < image->target_count ? image->targets[index] : NULL;
}

uint32_t kiln_image_kernel_count(const kiln_image_t* image) {
  return (uint32_t)image->kernel_count;
}

const kiln_image_kernel_t* kiln_image_kernel(const kiln_image_t* image,
                                             uint32_t index) {
  return index < image->kernel_count ? &image->kernels[index].shown : NULL;
}

kiln_status_t kiln_image_kernel_find(const kiln_image_t* image,
                                     const char* name, uint32_t* out_index) {
  enum { LIST_BYTES = 512 };
  KILNI_CHECK_ARGUMENT(out_index != NULL, "out_index");
  *out_index = 0;
  KILNI_CHECK_ARGUMENT(image != NULL, "image");
  KILNI_CHECK_ARGUMENT(name != NULL, "name");
  for (uint32_t i = 0; i < image->kernel_count; i++) {
    if (strcmp(image->kernels[i].shown.name, name) == 0) {
      *out_index = i;
      return kiln_ok();
    }
  }
  if (image->kernel_count == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "there is no kernel \"%s\", and no other", name),
        "give a file that has kernels");
  }
  kilni_base_str_t list;
  kilni_base_str_init(&list, image->allocator, LIST_BYTES);
  for (uint32_t i = 0; i < image->kernel_count; i++) {
    kilni_base_str_addf(&list, "%s%s", i > 0 ? ", " : "",
                        image->kernels[i].shown.name);
  }
  kiln_status_t status = kilni_base_status_with_fix(
      KILNI_FAIL(NOT_FOUND, "there is no kernel \"%s\"", name),
      "name one of: %s", kilni_base_str_cstr(&list));
  kilni_base_str_deinit(&list);
  return status;
}

static const kiln_image_param_t* image_param_of(const kiln_image_t* image,
                                                const kilni_image_row_t* row,
                                                uint32_t index) {
  return index < row->shown.param_count
             ? &image->params[row->first_param + index]
             : NULL;
}

const kiln_image_param_t* kiln_image_kernel_param(const kiln_image_t* image,
                                                  uint32_t kernel_index,
                                                  uint32_t param_index) {
  if (kernel_index >= image->kernel_count) return NULL;
  return image_param_of(image, &image->kernels[kernel_index], param_index);
}

uint32_t kiln_image_member_count(const kiln_image_t* image) {
  return (uint32_t)image->box_count;
}

const kiln_image_member_t* kiln_image_member(const kiln_image_t* image,
                                             uint32_t index) {
  return index < image->box_count ? &image->boxes[index].shown : NULL;
}

static const kilni_image_row_t* image_row_of(const kiln_image_t* image,
                                             uint32_t member_index,
                                             uint32_t kernel_index) {
  if (member_index >= image->box_count) return NULL;
  const kilni_image_box_t* box = &image->boxes[member_index];
  return kernel_index < box->shown.kernel_count
             ? &image->rows[box->first_row + kernel_index]
             : NULL;
}

const kiln_image_kernel_t* kiln_image_member_kernel(const kiln_image_t* image,
                                                    uint32_t member_index,
                                                    uint32_t kernel_index) {
  const kilni_image_row_t* row =
      image_row_of(image, member_index, kernel_index);
  return row != NULL ? &row->shown : NULL;
}

const kiln_image_param_t* kiln_image_member_param(const kiln_image_t* image,
                                                  uint32_t member_index,
                                                  uint32_t kernel_index,
                                                  uint32_t param_index) {
  const kilni_image_row_t* row =
      image_row_of(image, member_index, kernel_index);
  return row != NULL ? image_param_of(image, row, param_index) : NULL;
}

uint32_t kiln_image_symbol_count(const kiln_image_t* image) {
  return (uint32_t)image->symbol_count;
}

const kiln_image_symbol_t* kiln_image_symbol(const kiln_image_t* image,
                                             uint32_t index) {
  return index < image->symbol_count ? &image->symbols[index] : NULL;
}

const char* kiln_image_packing_name(uint32_t packing) {
  static const char* const kNames[] = {"none", "lz4", "zstd"};
  return packing < sizeof(kNames) / sizeof(kNames[0]) ? kNames[packing]
                                                      : "unknown";
}

const kilni_image_ptx_module_t* kilni_image_ptx(const kiln_image_t* image) {
  return image->ptx;
}

kilni_image_ptx_module_t* kilni_image_ptx_share(const kiln_image_t* image) {
  kilni_image_ptx_module_retain(image->ptx);
  return image->ptx;
}
