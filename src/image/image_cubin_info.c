// SPDX-License-Identifier: Apache-2.0
//
// image: the attributes of a cubin, as its .nv.info sections have them.
//
// An attribute is a byte for its form, one for its code, and either two bytes
// of value or a two-byte count of those that follow. Unknown codes are skipped.
#include <string.h>

#include "base/status_make.h"
#include "image/image_cubin.h"
#include "kiln/image.h"
#include "kiln/status.h"

enum {
  FORM_NONE = 1,
  FORM_BYTE = 2,
  FORM_HALF = 3,
  FORM_SIZED = 4,
  ATTRIBUTE_BYTES = 4,

  MAX_THREADS = 0x05,
  PARAM_CBANK = 0x0a,
  REQNTID = 0x10,
  FRAME_SIZE = 0x11,
  MIN_STACK_SIZE = 0x12,
  KPARAM_INFO = 0x17,
  CBANK_PARAM_SIZE = 0x19,
  MAXREG_COUNT = 0x1b,
  REGCOUNT = 0x2f,
  CUDA_API_VERSION = 0x37,
  CTA_PER_CLUSTER = 0x3d,
  EXPLICIT_CLUSTER = 0x3e,
  KPARAM_INFO_V2 = 0x45,
  NUM_BARRIERS = 0x4c,
  BLOCKS_ARE_CLUSTERS = 0x5b,

  COMPAT_ACCELERATOR = 0x09,

  KPARAM_BYTES = 12,
  NOT_DESCRIBED = 0x7fff,  // in `kind`, until it is
};

// Steps to the next attribute; `*out_more` is false after the last.
static kiln_status_t next_attribute(kilni_image_cubin_attributes_t* attributes,
                                    bool* out_more) {
  kilni_image_cubin_attributes_t* a = attributes;
  *out_more = false;
  if (a->at == a->part.size) return kiln_ok();
  if (!kilni_image_part_has(&a->part, a->at, ATTRIBUTE_BYTES)) {
    return kilni_image_bad(&a->part, a->at, "an attribute is cut off");
  }
  const uint8_t* head = a->part.data + a->at;
  a->code = head[1];
  a->value_at = a->at + 2;
  a->size = 2;
  uint32_t follows = 0;
  if (head[0] == FORM_SIZED) {
    follows = kilni_image_u16(head + 2);
    a->value_at = a->at + ATTRIBUTE_BYTES;
    a->size = follows;
  } else if (head[0] < FORM_NONE || head[0] > FORM_SIZED) {
    return kilni_image_bad(&a->part, a->at, "an attribute of form %u", head[0]);
  }
  if (!kilni_image_part_has(&a->part, a->at + ATTRIBUTE_BYTES, follows)) {
    return kilni_image_bad(&a->part, a->at, "an attribute of %u bytes, of %llu",
                           follows,
                           (unsigned long long)(a->part.size - a->at - 4));
  }
  a->value = a->part.data + a->value_at;
  a->at += ATTRIBUTE_BYTES + (uint64_t)follows;
  *out_more = true;
  return kiln_ok();
}

static kiln_status_t cubin_info_need(const kilni_image_cubin_attributes_t* a,
                                     uint32_t bytes) {
  if (a->size >= bytes) return kiln_ok();
  return kilni_image_bad(&a->part, a->value_at,
                         "attribute 0x%02x has %u bytes, not %u", a->code,
                         a->size, bytes);
}

static bool is_param(const kilni_image_cubin_attributes_t* a) {
  return a->code == KPARAM_INFO || a->code == KPARAM_INFO_V2;
}

kiln_status_t kilni_image_cubin_count_params(const kilni_image_part_t* part,
                                             uint32_t* out_count) {
  kilni_image_cubin_attributes_t a = {*part, 0, 0, NULL, 0, 0};
  *out_count = 0;
  for (;;) {
    bool more = false;
    KILNI_RETURN_IF_ERROR(next_attribute(&a, &more));
    if (!more) return kiln_ok();
    if (!is_param(&a)) continue;
    KILNI_RETURN_IF_ERROR(cubin_info_need(&a, KPARAM_BYTES));
    if (++*out_count > KILNI_IMAGE_MAX_KERNEL_PARAMS) {
      return kilni_image_over(part->name, "parameters of a kernel",
                              KILNI_IMAGE_MAX_KERNEL_PARAMS);
    }
  }
}

// Each of the kernel's parameters is described once, in any order.
static kiln_status_t read_param(kiln_image_t* image,
                                const kilni_image_cubin_attributes_t* a,
                                kilni_image_row_t* row) {
  uint32_t ordinal = kilni_image_u16(a->value + 4);
  kiln_image_kernel_t* kernel = &row->shown;
  if (ordinal >= kernel->param_count) {
    return kilni_image_bad(&a->part, a->value_at,
                           "parameter %u of \"%.60s\", which has %u", ordinal,
                           kernel->name, kernel->param_count);
  }
  kiln_image_param_t* param = &image->params[row->first_param + ordinal];
  if (param->kind != NOT_DESCRIBED) {
    return kilni_image_bad(&a->part, a->value_at,
                           "parameter %u of \"%.60s\" is described twice",
                           ordinal, kernel->name);
  }
  param->kind = KILN_IMAGE_PARAM_UNKNOWN;
  param->offset = kilni_image_u16(a->value + 6);
  uint32_t rest = kilni_image_u32(a->value + 8);
  param->bytes = a->code == KPARAM_INFO ? rest >> 18 : rest & 0xffff;
  uint32_t end = param->offset + param->bytes;
  if (end > kernel->param_bytes) kernel->param_bytes = end;
  return kiln_ok();
}

static kiln_status_t read_three(const kilni_image_cubin_attributes_t* a,
                                uint32_t out[3]) {
  KILNI_RETURN_IF_ERROR(cubin_info_need(a, 12));
  for (int i = 0; i < 3; i++) out[i] = kilni_image_u32(a->value + 4 * i);
  return kiln_ok();
}

static kiln_status_t cubin_info_read_attribute(
    kilni_image_cubin_t* cubin, const kilni_image_cubin_attributes_t* a,
    kilni_image_row_t* row, bool* out_cluster) {
  kiln_image_kernel_t* kernel = &row->shown;
  switch (a->code) {
    case KPARAM_INFO:
    case KPARAM_INFO_V2:
      return read_param(cubin->image, a, row);
    case MAX_THREADS:
      return read_three(a, kernel->maximum_block);
    case REQNTID:
      return read_three(a, kernel->required_block);
    case CTA_PER_CLUSTER:
      return read_three(a, kernel->required_cluster);
    case EXPLICIT_CLUSTER:
      *out_cluster = true;
      return kiln_ok();
    case BLOCKS_ARE_CLUSTERS:
      kernel->blocks_are_clusters = 1;
      return kiln_ok();
    case NUM_BARRIERS:
      kernel->barriers = a->value[0];
      return kiln_ok();
    case MAXREG_COUNT:
      KILNI_RETURN_IF_ERROR(cubin_info_need(a, 2));
      kernel->maximum_registers = kilni_image_u16(a->value);
      return kiln_ok();
    case PARAM_CBANK:
      KILNI_RETURN_IF_ERROR(cubin_info_need(a, 8));
      kernel->parameter_offset = kilni_image_u16(a->value + 4);
      return kiln_ok();
    case CUDA_API_VERSION:
      KILNI_RETURN_IF_ERROR(cubin_info_need(a, 4));
      if (cubin->line == 0) {
        cubin->line = kilni_image_cubin_line(kilni_image_u16(a->value));
      }
      return kiln_ok();
    default:
      return kiln_ok();
  }
}

kiln_status_t kilni_image_cubin_read_kernel(kilni_image_cubin_t* cubin,
                                            const kilni_image_part_t* part,
                                            kilni_image_row_t* row) {
  kilni_image_cubin_attributes_t a = {*part, 0, 0, NULL, 0, 0};
  bool cluster = false;
  for (uint32_t i = 0; i < row->shown.param_count; i++) {
    cubin->image->params[row->first_param + i].kind = NOT_DESCRIBED;
  }
  for (;;) {
    bool more = false;
    KILNI_RETURN_IF_ERROR(next_attribute(&a, &more));
    if (!more) break;
    KILNI_RETURN_IF_ERROR(cubin_info_read_attribute(cubin, &a, row, &cluster));
  }
  // Without the mark, 1,1,1 is what a compiler writes for no cluster.
  static const uint32_t kOne[3] = {1, 1, 1};
  kiln_image_kernel_t* kernel = &row->shown;
  if (!cluster && memcmp(kernel->required_cluster, kOne, sizeof(kOne)) == 0) {
    memset(kernel->required_cluster, 0, sizeof(kOne));
  }
  kernel->explicit_cluster = cluster;
  kernel->params_known = 1;
  return kiln_ok();
}

// The kernel whose entry is the symbol at `index`; NULL for another function.
static kilni_image_row_t* cubin_info_row_of(kilni_image_cubin_t* cubin,
                                            uint32_t index) {
  if (index >= cubin->symtab.count) return NULL;
  uint32_t section = kilni_image_cubin_section_of(cubin, index);
  if (section >= cubin->elf.count) return NULL;
  const kilni_image_cubin_code_t* code = &cubin->codes[section];
  if (code->row == 0 || code->symbol != index) return NULL;
  return &cubin->image->rows[code->row - 1];
}

kiln_status_t kilni_image_cubin_read_file(kilni_image_cubin_t* cubin,
                                          const kilni_image_part_t* part) {
  kilni_image_cubin_attributes_t a = {*part, 0, 0, NULL, 0, 0};
  for (;;) {
    bool more = false;
    KILNI_RETURN_IF_ERROR(next_attribute(&a, &more));
    if (!more) return kiln_ok();
    if (a.code != REGCOUNT && a.code != FRAME_SIZE &&
        a.code != MIN_STACK_SIZE) {
      continue;
    }
    KILNI_RETURN_IF_ERROR(cubin_info_need(&a, 8));
    kilni_image_row_t* row = cubin_info_row_of(cubin, kilni_image_u32(a.value));
    if (row == NULL) continue;
    uint32_t value = kilni_image_u32(a.value + 4);
    if (a.code == REGCOUNT) row->shown.registers = value;
    if (a.code == FRAME_SIZE) row->shown.frame_bytes = value;
    if (a.code == MIN_STACK_SIZE) row->shown.stack_bytes = value;
  }
}

kiln_status_t kilni_image_cubin_read_compat(kilni_image_cubin_t* cubin,
                                            const kilni_image_part_t* part) {
  kilni_image_cubin_attributes_t a = {*part, 0, 0, NULL, 0, 0};
  for (;;) {
    bool more = false;
    KILNI_RETURN_IF_ERROR(next_attribute(&a, &more));
    if (!more) return kiln_ok();
    if (a.code == COMPAT_ACCELERATOR) cubin->accelerated = a.value[0] == 1;
  }
}
