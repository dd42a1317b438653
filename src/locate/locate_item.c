// SPDX-License-Identifier: Apache-2.0
//
// locate: items: what was looked for, and what came of it.
//
// An item is one block of memory: nothing in it can be half there.
#include "locate/locate_item.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "locate/locate.h"

struct kiln_locate_item_t {
  atomic_uint references;
  uint32_t scope;
  uint32_t major;
  uint32_t layout;
  kiln_allocator_t allocator;
  size_t size;  // of the block
  const kiln_locate_entry_t* entry;
  const char* path;
  const char* real;
  const char* file;
  const char* file_name;
  const char* root;
  const char* via;
  const char* warnings[KILNI_ITEM_MAX_WARNINGS];
  uint32_t warning_count;
  uint32_t tried_count;
  const kiln_locate_tried_t* tried;
};

// ---- Search logs ----

void kilni_locate_trail_init(kilni_locate_trail_t* trail,
                             kiln_allocator_t allocator) {
  memset(trail, 0, sizeof(*trail));
  trail->allocator = allocator;
  kilni_base_str_init(&trail->text, allocator, KILNI_TRAIL_MAX_BYTES);
}

void kilni_locate_trail_deinit(kilni_locate_trail_t* trail) {
  kilni_base_str_deinit(&trail->text);
  kilni_base_free_array(trail->allocator, trail->marks, trail->capacity,
                        2 * sizeof(uint32_t));
  kiln_status_free(trail->status);
  kilni_locate_trail_init(trail, trail->allocator);
}

void kilni_locate_trail_clear(kilni_locate_trail_t* trail) {
  if (!kiln_status_is_ok(kilni_locate_trail_status(trail))) {
    kilni_locate_trail_deinit(trail);
    return;
  }
  trail->text.size = 0;
  trail->count = 0;
  trail->dropped = 0;
}

void kilni_locate_trail_add(kilni_locate_trail_t* trail, const char* path,
                            const char* why) {
  if (!kiln_status_is_ok(trail->status)) return;
  size_t path_size = strlen(path) + 1;
  size_t why_size = strlen(why) + 1;
  if (trail->count == KILNI_TRAIL_MAX_LINES ||
      path_size + why_size > KILNI_TRAIL_MAX_BYTES - trail->text.size) {
    trail->dropped++;
    return;
  }
  trail->status =
      kilni_base_grow(trail->allocator, trail->count + 1, 2 * sizeof(uint32_t),
                      &trail->capacity, &trail->marks);
  if (!kiln_status_is_ok(trail->status)) return;
  uint32_t* mark = (uint32_t*)trail->marks + 2 * trail->count++;
  mark[0] = (uint32_t)trail->text.size;
  kilni_base_str_add(&trail->text, kilni_base_sv_make(path, path_size));
  // Most lines give the reason that the one before gave.
  mark[1] = trail->count > 1 ? mark[-1] : 0;
  if (trail->text.failed == KILN_STATUS_OK && mark[1] != 0 &&
      strcmp(trail->text.data + mark[1], why) == 0) {
    return;
  }
  mark[1] = (uint32_t)trail->text.size;
  kilni_base_str_add(&trail->text, kilni_base_sv_make(why, why_size));
}

void kilni_locate_trail_append(kilni_locate_trail_t* trail,
                               const kilni_locate_trail_t* lines) {
  const uint32_t* marks = lines->marks;
  const char* text = lines->text.data;
  for (size_t i = 0; i < lines->count; i++) {
    kilni_locate_trail_add(trail, text + marks[2 * i], text + marks[2 * i + 1]);
  }
}

kiln_status_t kilni_locate_trail_status(const kilni_locate_trail_t* trail) {
  if (!kiln_status_is_ok(trail->status) ||
      trail->text.failed != KILN_STATUS_OK) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  return kiln_ok();
}

size_t kilni_locate_trail_bytes(const kilni_locate_trail_t* trail) {
  return trail->count * sizeof(kiln_locate_tried_t) + trail->text.size;
}

kiln_locate_tried_t* kilni_locate_trail_copy(const kilni_locate_trail_t* trail,
                                             void* block) {
  kiln_locate_tried_t* tried = block;
  char* text = (char*)(tried + trail->count);
  if (trail->text.size > 0) {
    memcpy(text, trail->text.data, trail->text.size);
  }
  const uint32_t* marks = trail->marks;
  for (size_t i = 0; i < trail->count; i++) {
    tried[i].path = text + marks[2 * i];
    tried[i].why = text + marks[2 * i + 1];
  }
  return tried;
}

// ---- Items ----

static const char* item_put_text(char** inout_at, const char* text) {
  if (text == NULL || text[0] == 0) return "";
  char* at = *inout_at;
  size_t size = strlen(text) + 1;
  memcpy(at, text, size);
  *inout_at = at + size;
  return at;
}

static size_t item_text_bytes(const char* text) {
  return text ? strlen(text) + 1 : 1;
}

static void item_fill(kiln_locate_item_t* item,
                      const kilni_locate_found_t* found, char* at) {
  item->path = item_put_text(&at, found->path);
  item->real = item_put_text(&at, found->real);
  item->file = item_put_text(&at, found->file);
  item->file_name = item_put_text(&at, found->file_name);
  item->root = item_put_text(&at, found->root);
  item->via = item_put_text(&at, found->via);
  for (uint32_t i = 0; i < item->warning_count; i++) {
    item->warnings[i] = item_put_text(&at, item->warnings[i]);
  }
  if (found->path == NULL) return;
  item->scope = found->scope;
  item->major = found->major;
  item->layout = found->layout;
}

kiln_status_t kilni_locate_item_create(kiln_allocator_t allocator,
                                       const kiln_locate_entry_t* entry,
                                       const kilni_locate_found_t* found,
                                       const char* const* warnings,
                                       size_t warning_count,
                                       const kilni_locate_trail_t* trail,
                                       kiln_locate_item_t** out_item) {
  *out_item = NULL;
  KILNI_RETURN_IF_ERROR(kilni_locate_trail_status(trail));
  size_t trail_at = (sizeof(kiln_locate_item_t) + 15) & ~(size_t)15;
  size_t text_at = trail_at + kilni_locate_trail_bytes(trail);
  size_t size = text_at;
  const char* texts[] = {found->path,      found->real, found->file,
                         found->file_name, found->root, found->via};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    size += item_text_bytes(texts[i]);
  }
  if (warning_count > KILNI_ITEM_MAX_WARNINGS) {
    warning_count = KILNI_ITEM_MAX_WARNINGS;
  }
  for (size_t i = 0; i < warning_count; i++) {
    size += item_text_bytes(warnings[i]);
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(allocator, size, &block));
  kiln_locate_item_t* item = block;
  atomic_init(&item->references, 1);
  item->allocator = allocator;
  item->size = size;
  item->entry = entry;
  item->warning_count = (uint32_t)warning_count;
  for (size_t i = 0; i < warning_count; i++) item->warnings[i] = warnings[i];
  item->tried = kilni_locate_trail_copy(trail, (char*)block + trail_at);
  item->tried_count = (uint32_t)trail->count;
  item_fill(item, found, (char*)block + text_at);
  *out_item = item;
  return kiln_ok();
}

void kiln_locate_item_retain(kiln_locate_item_t* item) {
  if (item == NULL) return;
  atomic_fetch_add_explicit(&item->references, 1, memory_order_relaxed);
}

void kiln_locate_item_release(kiln_locate_item_t* item) {
  if (item == NULL) return;
  if (atomic_fetch_sub_explicit(&item->references, 1, memory_order_acq_rel) ==
      1) {
    kilni_base_free(item->allocator, item, item->size);
  }
}

// True if the search log already has that path: two methods may find one
// folder.
static bool is_repeated(const kiln_locate_item_t* item, uint32_t index) {
  for (uint32_t i = 0; i < index; i++) {
    if (strcmp(item->tried[i].path, item->tried[index].path) == 0) return true;
  }
  return false;
}

static kiln_status_t add_tried(kiln_status_t status,
                               const kiln_locate_item_t* item) {
  uint32_t listed = 0;
  uint32_t at = 0;
  for (; at < item->tried_count && listed < KILNI_ITEM_LISTED; at++) {
    if (is_repeated(item, at)) continue;
    status = KILNI_ANNOTATE(status, "tried \"%s\": %s", item->tried[at].path,
                            item->tried[at].why);
    listed++;
  }
  if (at == item->tried_count) return status;
  return KILNI_ANNOTATE(status, "and %u more",
                        (unsigned)(item->tried_count - at));
}

kiln_status_t kiln_locate_item_require(const kiln_locate_item_t* item) {
  KILNI_CHECK_ARGUMENT(item != NULL, "item");
  if (kiln_locate_item_found(item)) return kiln_ok();
  uint32_t kind = kiln_locate_entry_kind(item->entry);
  const char* name = kiln_locate_entry_name(item->entry);
  const char* wheel =
      kiln_locate_entry_list_text(item->entry, KILN_LOCATE_LIST_WHEELS, 0);
  char variable[KILNI_OVERRIDE_NAME_BYTES];
  kilni_locate_override_name(item->entry, sizeof(variable), variable);
  kiln_status_t status = add_tried(
      KILNI_FAIL(NOT_FOUND,
                 "%s \"%s\" (%s) was not found in any place that was searched",
                 kiln_locate_kind_name(kind), name,
                 kiln_locate_entry_summary(item->entry)),
      item);
  if (kiln_locate_entry_class(item->entry) == KILN_LOCATE_CLASS_DRIVER) {
    return kilni_base_status_with_fix(
        status, "install NVIDIA's display driver, or set %s to its path",
        variable);
  }
  if (wheel == NULL) {
    return kilni_base_status_with_fix(
        status, "install a CUDA toolkit, or set %s to its path", variable);
  }
  return kilni_base_status_with_fix(
      status,
      "install it: `python3 -m venv cuda && cuda/bin/pip install %s && export "
      "VIRTUAL_ENV=$PWD/cuda` (on Debian and Ubuntu after `apt-get install "
      "python3-venv`); or set %s to its path",
      wheel, variable);
}

const kiln_locate_entry_t* kiln_locate_item_entry(
    const kiln_locate_item_t* item) {
  return item ? item->entry : NULL;
}

bool kiln_locate_item_found(const kiln_locate_item_t* item) {
  return item != NULL && item->path[0] != 0;
}

const char* kiln_locate_item_path(const kiln_locate_item_t* item) {
  return item ? item->path : "";
}

const char* kiln_locate_item_real_path(const kiln_locate_item_t* item) {
  return item ? item->real : "";
}

const char* kiln_locate_item_file(const kiln_locate_item_t* item) {
  return item ? item->file : "";
}

const char* kiln_locate_item_file_name(const kiln_locate_item_t* item) {
  return item ? item->file_name : "";
}

uint32_t kiln_locate_item_major(const kiln_locate_item_t* item) {
  return item ? item->major : 0;
}

uint32_t kiln_locate_item_scope(const kiln_locate_item_t* item) {
  return item ? item->scope : 0;
}

const char* kiln_locate_item_root(const kiln_locate_item_t* item) {
  return item ? item->root : "";
}

const char* kiln_locate_item_via(const kiln_locate_item_t* item) {
  return item ? item->via : "";
}

uint32_t kilni_locate_item_layout(const kiln_locate_item_t* item) {
  return item->layout;
}

uint32_t kiln_locate_item_warning_count(const kiln_locate_item_t* item) {
  return item ? item->warning_count : 0;
}

const char* kiln_locate_item_warning(const kiln_locate_item_t* item,
                                     uint32_t index) {
  if (item == NULL || index >= item->warning_count) return NULL;
  return item->warnings[index];
}

uint32_t kiln_locate_item_tried_count(const kiln_locate_item_t* item) {
  return item ? item->tried_count : 0;
}

const kiln_locate_tried_t* kiln_locate_item_tried(
    const kiln_locate_item_t* item, uint32_t index) {
  if (item == NULL || index >= item->tried_count) return NULL;
  return &item->tried[index];
}
