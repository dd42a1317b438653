// SPDX-License-Identifier: Apache-2.0
//
// image: what a kernel does with its parameters and thread numbers, for users.
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "image/image_inside.h"
#include "image/ptx_use.h"

enum {
  MAX_WAYS = (KILNI_PTX_USE_KINDS - 1) * KILNI_PTX_USE_WIDTHS,
  MAX_ACCESSES = MAX_WAYS + KILNI_PTX_USE_MEMBERS
};

// The accesses of one parameter. thread-safe
typedef struct list_t {
  uint32_t count;
  kiln_image_access_t accesses[MAX_ACCESSES];
} list_t;

struct kiln_image_use_t {
  kiln_allocator_t allocator;
  kiln_image_threads_t threads;
  uint32_t param_count;
  list_t* params;
};

static void fill_list(const kilni_image_ptx_param_use_t* param, list_t* out) {
  for (uint32_t kind = 1; kind < KILNI_PTX_USE_KINDS; kind++) {
    for (uint32_t w = 0; w < KILNI_PTX_USE_WIDTHS; w++) {
      if ((param->widths[kind] >> w & 1) == 0) continue;
      uint8_t pitch = param->pitch[kind][w];
      kiln_image_access_t* access = &out->accesses[out->count++];
      access->kind = kind;
      access->bytes = 1u << w;
      access->pitch = pitch < 32 ? 1u << pitch : 0;
    }
  }
}

static void fill_members(const kilni_image_ptx_use_t* found, list_t* lists) {
  for (uint32_t i = 0; i < found->member_count; i++) {
    const kilni_image_ptx_member_use_t* member = &found->members[i];
    list_t* list = &lists[member->param];
    kiln_image_access_t* access = &list->accesses[list->count++];
    access->kind = member->kind;
    access->bytes = member->bytes;
    access->offset = member->offset;
  }
}

static kiln_status_t use_fill(kiln_image_use_t* use,
                              const kilni_image_ptx_module_t* module,
                              uint32_t function) {
  void* seen = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(use->allocator, sizeof(kilni_image_ptx_use_t), &seen));
  kilni_image_ptx_use_t* found = seen;
  void* lists = NULL;
  kiln_status_t status =
      kilni_image_ptx_use_make(module, function, use->allocator, found);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(use->allocator, found->param_count,
                                    sizeof(list_t), &lists);
  }
  if (kiln_status_is_ok(status)) {
    use->threads = found->threads;
    use->param_count = found->param_count;
    use->params = lists;
    for (uint32_t i = 0; i < use->param_count; i++) {
      fill_list(&found->params[i], &use->params[i]);
    }
    fill_members(found, use->params);
  }
  kilni_base_free(use->allocator, seen, sizeof(kilni_image_ptx_use_t));
  return status;
}

kiln_status_t kiln_image_use_create(const kiln_image_t* image,
                                    uint32_t kernel_index,
                                    kiln_image_use_t** out_use) {
  KILNI_CHECK_ARGUMENT(out_use != NULL, "out_use");
  *out_use = NULL;
  KILNI_CHECK_ARGUMENT(image != NULL, "image");
  const kiln_image_kernel_t* kernel = kiln_image_kernel(image, kernel_index);
  if (image->ptx == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "what a kernel does with its parameters can only be read "
                   "from PTX, and this is not PTX"),
        "give the PTX text that the code was made from");
  }
  if (kernel == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "there is no kernel %" PRIu32, kernel_index),
        "give an index below kiln_image_kernel_count");
  }
  kiln_string_view_t name = {kernel->name, strlen(kernel->name)};
  uint32_t function = kilni_image_ptx_function_find(image->ptx, name);
  void* made = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(image->allocator, sizeof(kiln_image_use_t), &made));
  kiln_image_use_t* use = made;
  use->allocator = image->allocator;
  kiln_status_t status = use_fill(use, image->ptx, function);
  if (!kiln_status_is_ok(status)) {
    kiln_image_use_release(use);
    return status;
  }
  *out_use = use;
  return kiln_ok();
}

void kiln_image_use_release(kiln_image_use_t* use) {
  if (use == NULL) return;
  kilni_base_free_array(use->allocator, use->params, use->param_count,
                        sizeof(list_t));
  kilni_base_free(use->allocator, use, sizeof(*use));
}

const kiln_image_threads_t* kiln_image_use_threads(
    const kiln_image_use_t* use) {
  return &use->threads;
}

uint32_t kiln_image_use_access_count(const kiln_image_use_t* use,
                                     uint32_t param_index) {
  return param_index < use->param_count ? use->params[param_index].count : 0;
}

const kiln_image_access_t* kiln_image_use_access(const kiln_image_use_t* use,
                                                 uint32_t param_index,
                                                 uint32_t index) {
  if (index >= kiln_image_use_access_count(use, param_index)) return NULL;
  return &use->params[param_index].accesses[index];
}
