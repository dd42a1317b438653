// SPDX-License-Identifier: Apache-2.0
//
// compile: describes a cache entry by its key and metadata.
//
// For people: a list, a verification. Keys of other versions have other fields,
// so nothing is taken for granted, and what is missing is left empty.
#include <string.h>

#include "cache/cache.h"
#include "compile/compile_files.h"

static bool is_field(const kilni_cache_key_field_t* field, const char* name) {
  return kilni_base_sv_equal_cstr(field->name, name);
}

static kiln_string_view_t entry_text_of(const kilni_cache_key_field_t* field) {
  return kilni_base_sv_make((const char*)field->value.data, field->value.size);
}

// "NVRTC build 1a2b..., 3 bytes" is NVRTC's.
static kiln_string_view_t first_word(kiln_string_view_t text) {
  const char* blank = memchr(text.data, ' ', text.size);
  if (blank != NULL) text.size = (size_t)(blank - text.data);
  return text;
}

static void take_field(const kilni_cache_key_field_t* field,
                       kiln_compile_entry_t* out) {
  if (is_field(field, "tool")) {
    out->tool = first_word(entry_text_of(field));
  } else if (is_field(field, "line")) {
    out->line = (uint32_t)field->number;
  } else if (is_field(field, "name")) {
    out->name = entry_text_of(field);
  } else if (is_field(field, "arch")) {
    out->arch = entry_text_of(field);
  } else if (is_field(field, "source")) {
    out->action = KILN_COMPILE_ENTRY_COMPILED;
    out->source_bytes = field->value.size;
  } else if (is_field(field, "inputs")) {
    out->action = KILN_COMPILE_ENTRY_LINKED;
    out->input_count = (uint32_t)field->number;
  } else if (is_field(field, "bytes") &&
             out->action == KILN_COMPILE_ENTRY_LINKED) {
    out->source_bytes += field->number;
  }
}

bool kiln_compile_entry_read(const kiln_cache_entry_t* entry,
                             kiln_compile_entry_t* out_entry) {
  kilni_cache_key_reader_t key = {kiln_cache_entry_key(entry)};
  kilni_cache_key_field_t field;
  kilni_compile_kept_reader_t kept;
  memset(out_entry, 0, sizeof(*out_entry));
  out_entry->tool = kilni_base_sv_make("", 0);
  out_entry->name = out_entry->tool;
  out_entry->arch = out_entry->tool;
  if (entry == NULL ||
      !kilni_compile_kept_open(&kept, kiln_cache_entry_metadata(entry))) {
    return false;
  }
  while (kilni_cache_key_next(&key, &field)) take_field(&field, out_entry);
  if (kept.arch.size != 0) out_entry->arch = kept.arch;
  out_entry->format = kept.format;
  out_entry->file_count = kept.file_count;
  return out_entry->action != 0;
}

bool kiln_compile_entry_holds(const kiln_cache_entry_t* entry,
                              const kiln_allocator_t* allocator,
                              kiln_string_view_t* out_changed) {
  kiln_allocator_t memory =
      allocator != NULL ? *allocator : kiln_allocator_libc();
  kilni_compile_kept_reader_t kept;
  kilni_compile_file_dep_t dep;
  kiln_code_name_t name;
  *out_changed = kilni_base_sv_make("", 0);
  if (entry == NULL ||
      !kilni_compile_kept_open(&kept, kiln_cache_entry_metadata(entry))) {
    return false;
  }
  for (uint32_t i = 0; i < kept.name_count; i++) {
    if (!kilni_compile_kept_name(&kept, &name)) return false;
  }
  for (uint32_t i = 0; i < kept.file_count; i++) {
    if (!kilni_compile_kept_file(&kept, &dep)) return false;
    if (kilni_compile_file_dep_holds(memory, &dep, true)) continue;
    *out_changed = kilni_base_sv(dep.path);
    return false;
  }
  return true;
}
