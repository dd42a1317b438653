// SPDX-License-Identifier: Apache-2.0
//
// image: adding members, kernels and names to an image that is being made.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "image/image_inside.h"
#include "image/ptx.h"
#include "kiln/image.h"

enum { TEXT_CHUNK_BYTES = 8 << 10 };

struct kilni_image_texts_t {
  kilni_image_texts_t* next;
  size_t used;
  size_t capacity;
  char text[];
};

static kiln_status_t text_space(kiln_image_t* image, size_t size,
                                char** out_space) {
  kilni_image_texts_t* chunk = image->texts;
  if (chunk == NULL || chunk->capacity - chunk->used < size) {
    size_t capacity = size > TEXT_CHUNK_BYTES ? size : TEXT_CHUNK_BYTES;
    void* block = NULL;
    KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(
        image->allocator, sizeof(kilni_image_texts_t) + capacity, &block));
    chunk = block;
    chunk->next = image->texts;
    chunk->used = 0;
    chunk->capacity = capacity;
    image->texts = chunk;
  }
  *out_space = chunk->text + chunk->used;
  chunk->used += size;
  return kiln_ok();
}

kiln_status_t kilni_image_text(kiln_image_t* image, const char* text,
                               size_t size, const char** out_text) {
  *out_text = "";
  if (text == NULL || size == 0 || text[0] == 0) return kiln_ok();
  const char* end = memchr(text, 0, size);
  if (end != NULL) size = (size_t)(end - text);
  if (size >= KILNI_IMAGE_MAX_TEXT - image->text_bytes) {
    return kilni_image_over("the image", "bytes of names",
                            KILNI_IMAGE_MAX_TEXT);
  }
  char* space = NULL;
  KILNI_RETURN_IF_ERROR(text_space(image, size + 1, &space));
  image->text_bytes += size + 1;
  memcpy(space, text, size);
  space[size] = 0;
  *out_text = space;
  return kiln_ok();
}

kiln_status_t kilni_image_target_text(kiln_image_t* image, const char* prefix,
                                      uint32_t number, char suffix,
                                      const char** out_text) {
  char text[32];
  char end[2] = {suffix, 0};
  (void)snprintf(text, sizeof(text), "%s%u%s", prefix, number, end);
  return kilni_image_text(image, text, strlen(text), out_text);
}

static kiln_status_t copy_about(kiln_image_t* image,
                                const kilni_image_about_t* about,
                                uint32_t format, kiln_image_member_t* member) {
  const char* const kTexts[] = {about->origin, about->identifier,
                                about->options};
  const char** const outs[] = {&member->origin, &member->identifier,
                               &member->options};
  for (size_t i = 0; i < sizeof(outs) / sizeof(outs[0]); i++) {
    const char* text = kTexts[i] != NULL ? kTexts[i] : "";
    KILNI_RETURN_IF_ERROR(kilni_image_text(image, text, strlen(text), outs[i]));
  }
  member->debug = about->debug;
  member->packing = about->packing;
  member->offset = about->offset;
  member->bytes = about->bytes;
  if (about->target == 0) return kiln_ok();
  bool machine = format == KILN_CODE_FORMAT_CUBIN ||
                 format == KILN_CODE_FORMAT_RELOCATABLE;
  return kilni_image_target_text(image, machine ? "sm_" : "compute_",
                                 about->target, about->suffix, &member->target);
}

kiln_status_t kilni_image_add_member(kiln_image_t* image,
                                     const kilni_image_part_t* part,
                                     const kilni_image_about_t* about,
                                     uint32_t format,
                                     kiln_image_member_t** out_member) {
  *out_member = NULL;
  if (image->box_count == KILNI_IMAGE_MAX_MEMBERS) {
    return kilni_image_over(part->name, "members", KILNI_IMAGE_MAX_MEMBERS);
  }
  void* boxes = image->boxes;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(image->allocator, image->box_count + 1,
                                        sizeof(*image->boxes),
                                        &image->box_capacity, &boxes));
  image->boxes = boxes;
  kilni_image_box_t* box = &image->boxes[image->box_count];
  memset(box, 0, sizeof(*box));
  box->first_row = image->row_count;
  kiln_image_member_t* member = &box->shown;
  member->target = "";
  member->producer = "";
  member->triple = "";
  member->format = format;
  KILNI_RETURN_IF_ERROR(copy_about(image, about, format, member));
  member->unpacked_bytes = part->size;
  image->box_count++;
  *out_member = member;
  return kiln_ok();
}

static void build_row_init(kiln_image_kernel_t* kernel) {
  kernel->frame_bytes = KILN_IMAGE_UNTOLD;
  kernel->stack_bytes = KILN_IMAGE_UNTOLD;
  kernel->reserved_shared_bytes = KILN_IMAGE_UNTOLD;
  kernel->parameter_bank_bytes = KILN_IMAGE_UNTOLD;
  kernel->parameter_offset = KILN_IMAGE_UNTOLD;
  kernel->barriers = KILN_IMAGE_UNTOLD;
  kernel->maximum_registers = KILN_IMAGE_UNTOLD;
  kernel->code_bytes = KILN_IMAGE_UNTOLD;
}

static kiln_status_t add_params(kiln_image_t* image, uint32_t count) {
  if (count == 0) return kiln_ok();
  if (count > KILNI_IMAGE_MAX_PARAMS - image->param_count) {
    return kilni_image_over("the image", "parameters", KILNI_IMAGE_MAX_PARAMS);
  }
  void* params = image->params;
  KILNI_RETURN_IF_ERROR(
      kilni_base_grow(image->allocator, image->param_count + count,
                      sizeof(*image->params), &image->param_capacity, &params));
  image->params = params;
  for (uint32_t i = 0; i < count; i++) {
    kiln_image_param_t* param = &image->params[image->param_count++];
    memset(param, 0, sizeof(*param));
    param->name = "";
    param->type = "";
  }
  return kiln_ok();
}

kiln_status_t kilni_image_add_kernel(kiln_image_t* image, const char* name,
                                     size_t name_size, uint32_t param_count,
                                     kilni_image_row_t** out_row) {
  *out_row = NULL;
  if (image->row_count == KILNI_IMAGE_MAX_KERNELS) {
    return kilni_image_over("the image", "kernels", KILNI_IMAGE_MAX_KERNELS);
  }
  void* rows = image->rows;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(image->allocator, image->row_count + 1,
                                        sizeof(*image->rows),
                                        &image->row_capacity, &rows));
  image->rows = rows;
  kilni_image_row_t* row = &image->rows[image->row_count];
  memset(row, 0, sizeof(*row));
  build_row_init(&row->shown);
  kilni_image_box_t* box = &image->boxes[image->box_count - 1];
  KILNI_RETURN_IF_ERROR(
      kilni_image_text(image, name, name_size, &row->shown.name));
  row->first_param = image->param_count;
  KILNI_RETURN_IF_ERROR(add_params(image, param_count));
  row->shown.param_count = param_count;
  row->shown.targets = box->shown.target;
  row->member = (uint32_t)(image->box_count - 1);
  image->row_count++;
  box->shown.kernel_count++;
  *out_row = row;
  return kiln_ok();
}

kiln_status_t kilni_image_add_symbol(kiln_image_t* image, const char* name,
                                     size_t name_size,
                                     kiln_image_symbol_t symbol) {
  if (image->symbol_count == KILNI_IMAGE_MAX_SYMBOLS) {
    return kilni_image_over("the image", "symbols", KILNI_IMAGE_MAX_SYMBOLS);
  }
  void* symbols = image->symbols;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(
      image->allocator, image->symbol_count + 1, sizeof(*image->symbols),
      &image->symbol_capacity, &symbols));
  image->symbols = symbols;
  KILNI_RETURN_IF_ERROR(kilni_image_text(image, name, name_size, &symbol.name));
  symbol.member = (uint32_t)(image->box_count - 1);
  image->symbols[image->symbol_count++] = symbol;
  image->boxes[image->box_count - 1].shown.symbol_count++;
  return kiln_ok();
}

// ---------------------------------------------------------------------------
// Each name once
// ---------------------------------------------------------------------------

static kiln_status_t build_add_target(kiln_image_t* image, const char* target) {
  if (target[0] == 0) return kiln_ok();
  for (size_t i = 0; i < image->target_count; i++) {
    if (strcmp(image->targets[i], target) == 0) return kiln_ok();
  }
  void* targets = image->targets;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(
      image->allocator, image->target_count + 1, sizeof(*image->targets),
      &image->target_capacity, &targets));
  image->targets = targets;
  image->targets[image->target_count++] = target;
  return kiln_ok();
}

static uint64_t build_hash_of(const char* text) {
  uint64_t hash = 14695981039346656037u;
  for (; *text != 0; text++) {
    hash = (hash ^ (unsigned char)*text) * 1099511628211u;
  }
  return hash ^ hash >> 29;
}

// True if `list`, parted by ", ", has `word`.
static bool has_word(const char* list, const char* word) {
  size_t size = strlen(word);
  for (const char* at = list; at != NULL; at = strstr(at, ", ")) {
    if (at != list) at += 2;
    if (strncmp(at, word, size) == 0 && (at[size] == 0 || at[size] == ',')) {
      return true;
    }
  }
  return false;
}

static kiln_status_t join_target(kiln_image_t* image,
                                 kiln_image_kernel_t* kernel,
                                 const char* target) {
  if (target[0] == 0 || has_word(kernel->targets, target)) return kiln_ok();
  if (kernel->targets[0] == 0) {
    kernel->targets = target;
    return kiln_ok();
  }
  kilni_base_str_t list;
  kilni_base_str_init(&list, image->allocator, KILNI_IMAGE_MAX_TEXT);
  kilni_base_str_addf(&list, "%s, %s", kernel->targets, target);
  kiln_status_t status = kilni_base_str_status(&list);
  if (kiln_status_is_ok(status)) {
    status = kilni_image_text(image, kilni_base_str_cstr(&list), list.size,
                              &kernel->targets);
  }
  kilni_base_str_deinit(&list);
  return status;
}

// Puts each row under its name; `slots` is a table of kernels counted from 1.
static kiln_status_t merge_rows(kiln_image_t* image, uint32_t* slots,
                                size_t slot_count) {
  for (size_t i = 0; i < image->row_count; i++) {
    const kilni_image_row_t* row = &image->rows[i];
    size_t at = (size_t)build_hash_of(row->shown.name) & (slot_count - 1);
    while (slots[at] != 0 && strcmp(image->kernels[slots[at] - 1].shown.name,
                                    row->shown.name) != 0) {
      at = (at + 1) & (slot_count - 1);
    }
    if (slots[at] == 0) {
      image->kernels[image->kernel_count++] = *row;
      slots[at] = (uint32_t)image->kernel_count;
      continue;
    }
    KILNI_RETURN_IF_ERROR(join_target(
        image, &image->kernels[slots[at] - 1].shown, row->shown.targets));
  }
  return kiln_ok();
}

kiln_status_t kilni_image_finish(kiln_image_t* image) {
  for (size_t i = 0; i < image->box_count; i++) {
    KILNI_RETURN_IF_ERROR(
        build_add_target(image, image->boxes[i].shown.target));
  }
  void* kernels = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      image->allocator, image->row_count, sizeof(*image->kernels), &kernels));
  image->kernels = kernels;
  size_t slot_count = 16;
  while (slot_count < 2 * image->row_count) slot_count *= 2;
  void* slots = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(image->allocator, slot_count,
                                               sizeof(uint32_t), &slots));
  kiln_status_t status = merge_rows(image, slots, slot_count);
  kilni_base_free_array(image->allocator, slots, slot_count, sizeof(uint32_t));
  return status;
}

void kilni_image_drop(kiln_image_t* image) {
  kiln_allocator_t allocator = image->allocator;
  while (image->texts != NULL) {
    kilni_image_texts_t* next = image->texts->next;
    kilni_base_free(allocator, image->texts,
                    sizeof(kilni_image_texts_t) + image->texts->capacity);
    image->texts = next;
  }
  kilni_base_free_array(allocator, image->kernels, image->row_count,
                        sizeof(*image->kernels));
  kilni_base_free_array(allocator, image->boxes, image->box_capacity,
                        sizeof(*image->boxes));
  kilni_base_free_array(allocator, image->rows, image->row_capacity,
                        sizeof(*image->rows));
  kilni_base_free_array(allocator, image->params, image->param_capacity,
                        sizeof(*image->params));
  kilni_base_free_array(allocator, image->symbols, image->symbol_capacity,
                        sizeof(*image->symbols));
  kilni_base_free_array(allocator, image->targets, image->target_capacity,
                        sizeof(*image->targets));
  kilni_image_ptx_module_release(image->ptx);
}
