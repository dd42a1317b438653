// SPDX-License-Identifier: Apache-2.0
//
// locate: where facts live, and small tools for code that reads them.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status_make.h"
#include "base/str.h"
#include "locate/locate_facts_inside.h"

enum { FIRST_READ = 32 << 10 };

kiln_status_t kilni_locate_facts_print(kilni_locate_store_t* store,
                                       const char** out_text,
                                       const char* format, ...) {
  *out_text = NULL;
  kilni_base_str_t text;
  kilni_base_str_init(&text, store->allocator, KILNI_FACTS_MAX_PATH);
  va_list args;
  va_start(args, format);
  kilni_base_str_addv(&text, format, args);
  va_end(args);
  kiln_status_t status = kilni_base_str_status(&text);
  if (kiln_status_is_ok(status)) {
    status = kilni_locate_store_text(
        store, kilni_base_sv(kilni_base_str_cstr(&text)), out_text);
  }
  kilni_base_str_deinit(&text);
  return status;
}

kiln_status_t kilni_locate_facts_problem(kilni_locate_facts_read_t* read,
                                         const char* path, const char* why) {
  kilni_locate_facts_t* facts = read->facts;
  // One record may be asked more than once.
  for (uint32_t i = 0; i < facts->problem_count; i++) {
    if (strcmp(read->problems[i].path, path) == 0 &&
        strcmp(read->problems[i].why, why) == 0) {
      return kiln_ok();
    }
  }
  if (facts->problem_count == KILNI_FACTS_MAX_PROBLEMS) {
    facts->problems_left_out++;
    return kiln_ok();
  }
  kilni_locate_store_t* store = &read->reader->store;
  kilni_locate_problem_t* problem = &read->problems[facts->problem_count];
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, kilni_base_sv(path), &problem->path));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, kilni_base_sv(why), &problem->why));
  facts->problem_count++;
  return kiln_ok();
}

kiln_status_t kilni_locate_facts_absorb(kilni_locate_facts_read_t* read,
                                        const char* path,
                                        kiln_status_t status) {
  if (kiln_status_is_ok(status) ||
      kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) {
    return status;
  }
  kiln_status_t result =
      kilni_locate_facts_problem(read, path, kiln_status_message(status));
  kiln_status_free(status);
  return result;
}

kiln_status_t kilni_locate_facts_line(kilni_locate_store_t* store,
                                      uint32_t line, kiln_string_view_t text,
                                      const char* path,
                                      kilni_locate_line_t* out_line) {
  memset(out_line, 0, sizeof(*out_line));
  if (line == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_locate_store_text(store, text, &out_line->text));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(store, kilni_base_sv(path), &out_line->path));
  out_line->line = line;
  return kiln_ok();
}

// Reads the front of a window and closes it.
static kiln_status_t read_window(kiln_allocator_t allocator,
                                 kilni_base_window_t* window, size_t limit,
                                 uint8_t** out_data, size_t* out_size,
                                 size_t* out_capacity) {
  // /proc claims that its files are empty.
  uint64_t wanted = window->size > 0 ? window->size : FIRST_READ;
  size_t capacity = wanted < limit ? (size_t)wanted : limit;
  void* data = NULL;
  kiln_status_t status = kilni_base_alloc_unset(allocator, capacity, &data);
  if (kiln_status_is_ok(status)) {
    window->size = window->size > 0 ? window->size : FIRST_READ;
    status = kilni_base_window_read_some(window, 0, capacity, data, out_size);
  }
  kilni_base_window_close(window);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(allocator, data, capacity);
    *out_size = 0;
    return status;
  }
  *out_data = data;
  *out_capacity = capacity;
  return kiln_ok();
}

kiln_status_t kilni_locate_facts_front(kiln_allocator_t allocator,
                                       const char* path, size_t limit,
                                       uint8_t** out_data, size_t* out_size,
                                       size_t* out_capacity) {
  *out_data = NULL;
  *out_size = *out_capacity = 0;
  kilni_base_window_t window;
  KILNI_RETURN_IF_ERROR(kilni_base_window_open(path, &window));
  return read_window(allocator, &window, limit, out_data, out_size,
                     out_capacity);
}

kiln_status_t kilni_locate_facts_front_if(kiln_allocator_t allocator,
                                          const char* path, size_t limit,
                                          uint8_t** out_data, size_t* out_size,
                                          size_t* out_capacity) {
  *out_data = NULL;
  *out_size = *out_capacity = 0;
  kilni_base_window_t window;
  bool there;
  KILNI_RETURN_IF_ERROR(kilni_base_window_open_if(path, &window, &there));
  if (!there) return kiln_ok();
  return read_window(allocator, &window, limit, out_data, out_size,
                     out_capacity);
}

uint64_t kilni_locate_facts_hash(kiln_string_view_t text) {
  uint64_t hash = 0x9e3779b97f4a7c15u ^ text.size;
  size_t at = 0;
  for (; text.size - at >= 8; at += 8) {
    uint64_t word;
    memcpy(&word, text.data + at, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  for (; at < text.size; at++) {
    hash = (hash ^ (uint8_t)text.data[at]) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

kiln_status_t kilni_locate_facts_real_folder(kilni_locate_reader_t* reader,
                                             kiln_string_view_t path,
                                             const char** out_real) {
  *out_real = NULL;
  uint64_t hash = kilni_locate_facts_hash(path);
  for (const kilni_locate_facts_real_t* at = reader->reals; at; at = at->next) {
    if (at->hash != hash || !kilni_base_sv_equal_cstr(path, at->path)) continue;
    *out_real = at->real;
    return kiln_ok();
  }
  void* memory;
  KILNI_RETURN_IF_ERROR(kilni_locate_store_alloc(
      &reader->store, sizeof(kilni_locate_facts_real_t), &memory));
  kilni_locate_facts_real_t* entry = memory;
  memset(entry, 0, sizeof(*entry));
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_text(&reader->store, path, &entry->path));
  char* real = NULL;
  kiln_status_t status =
      kilni_base_path_real(reader->allocator, entry->path, &real);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) return status;
  kiln_status_free(status);
  status = kiln_ok();
  if (real != NULL) {
    status = kilni_locate_store_text(&reader->store, kilni_base_sv(real),
                                     &entry->real);
  }
  kilni_base_strfree(reader->allocator, real);
  KILNI_RETURN_IF_ERROR(status);
  entry->hash = hash;
  entry->next = reader->reals;
  reader->reals = entry;
  *out_real = entry->real;
  return kiln_ok();
}

bool kilni_locate_facts_below(const char* path, const char* base,
                              const char** out) {
  size_t size = strlen(base);
  while (size > 0 && base[size - 1] == '/') size--;
  if (strncmp(path, base, size) != 0 || path[size] != '/') return false;
  *out = path + size + 1;
  return true;
}
