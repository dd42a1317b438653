// SPDX-License-Identifier: Apache-2.0
//
// image: identifiers of a PTX text, scopes, and what a name means where.
//
// Every identifier is kept once. A name knows its innermost local meaning; a
// declaration stacks a new one and the end of its scope takes it off again, so
// that a look-up never walks the scopes.
#include "base/alloc.h"
#include "image/ptx_reader.h"

#include <string.h>

enum { RANGE_DIGITS = 8 };  // more cannot number a register

uint32_t kilni_image_ptx_hash(kiln_string_view_t text) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < text.size; i++) {
    hash = (hash ^ (unsigned char)text.data[i]) * 16777619u;
  }
  return hash ^ (hash >> 15);
}

kilni_image_ptx_name_t* kilni_image_ptx_name(
    const kilni_image_ptx_reader_t* reader, uint32_t name) {
  return KILNI_PTX_AT(reader->names, kilni_image_ptx_name_t, name);
}

const char* kilni_image_ptx_text(const kilni_image_ptx_reader_t* reader,
                                 uint32_t offset) {
  return (const char*)reader->arena->text.data + offset;
}

bool kilni_image_ptx_add_text(kilni_image_ptx_reader_t* reader,
                              kiln_string_view_t text, uint32_t* out_offset) {
  *out_offset = reader->arena->text.count;
  char* copy =
      kilni_image_ptx_push(reader, &reader->arena->text,
                           (uint32_t)text.size + 1, "input_bytes", UINT32_MAX);
  if (copy == NULL) return false;
  if (text.size > 0) memcpy(copy, text.data, text.size);
  return true;
}

// The bucket of `text`, or the free one where it belongs.
static size_t find_bucket(const kilni_image_ptx_reader_t* reader,
                          kiln_string_view_t text, uint32_t hash) {
  size_t mask = reader->bucket_count - 1;
  size_t at = hash & mask;
  while (reader->buckets[at] != 0) {
    const kilni_image_ptx_name_t* name =
        kilni_image_ptx_name(reader, reader->buckets[at] - 1);
    if (name->hash == hash && name->size == text.size &&
        memcmp(kilni_image_ptx_text(reader, name->offset), text.data,
               text.size) == 0) {
      break;
    }
    at = (at + 1) & mask;
  }
  return at;
}

static bool grow_buckets(kilni_image_ptx_reader_t* reader) {
  size_t count = reader->bucket_count * 2;
  void* block = NULL;
  kiln_status_t status = kilni_base_alloc_array(reader->allocator, count,
                                                sizeof(uint32_t), &block);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return kilni_image_ptx_fail_memory(reader);
  }
  kilni_base_free_array(reader->allocator, reader->buckets,
                        reader->bucket_count, sizeof(uint32_t));
  reader->buckets = block;
  reader->bucket_count = count;
  for (uint32_t i = 0; i < reader->names.count; i++) {
    size_t at = kilni_image_ptx_name(reader, i)->hash & (count - 1);
    while (reader->buckets[at] != 0) at = (at + 1) & (count - 1);
    reader->buckets[at] = i + 1;
  }
  return true;
}

bool kilni_image_ptx_intern(kilni_image_ptx_reader_t* reader,
                            kiln_string_view_t text, uint32_t* out_name) {
  uint32_t hash = kilni_image_ptx_hash(text);
  size_t at = find_bucket(reader, text, hash);
  if (reader->buckets[at] != 0) {
    *out_name = reader->buckets[at] - 1;
    return true;
  }
  if ((size_t)reader->names.count * 2 >= reader->bucket_count) {
    if (!grow_buckets(reader)) return false;
    at = find_bucket(reader, text, hash);
  }
  uint32_t offset;
  if (!kilni_image_ptx_add_text(reader, text, &offset)) return false;
  kilni_image_ptx_name_t* name = kilni_image_ptx_push(
      reader, &reader->names, 1, "identifiers", reader->limits.identifiers);
  if (name == NULL) return false;
  name->offset = offset;
  name->size = (uint32_t)text.size;
  name->hash = hash;
  name->binding = KILNI_PTX_NONE;
  name->range = KILNI_PTX_NONE;
  *out_name = reader->names.count - 1;
  reader->buckets[at] = reader->names.count;
  return true;
}

static kilni_image_ptx_binding_t* binding_at(
    const kilni_image_ptx_reader_t* reader, uint32_t index) {
  return KILNI_PTX_AT(reader->bindings, kilni_image_ptx_binding_t, index);
}

static kilni_image_ptx_range_t* range_at(const kilni_image_ptx_reader_t* reader,
                                         uint32_t index) {
  return KILNI_PTX_AT(reader->ranges, kilni_image_ptx_range_t, index);
}

// The range that `text` is a member of, innermost first. `out_member` is its
// number in it.
static uint32_t ptx_scope_find_range(const kilni_image_ptx_reader_t* reader,
                                     kiln_string_view_t text,
                                     uint32_t* out_member) {
  uint32_t best = KILNI_PTX_NONE;
  uint64_t member = 0;
  uint64_t unit = 1;
  for (size_t digits = 1; digits <= RANGE_DIGITS && digits < text.size;
       digits++) {
    char c = text.data[text.size - digits];
    if (c < '0' || c > '9') break;
    member += unit * (uint64_t)(c - '0');
    unit *= 10;
    kiln_string_view_t prefix = {text.data, text.size - digits};
    size_t at = find_bucket(reader, prefix, kilni_image_ptx_hash(prefix));
    if (reader->buckets[at] == 0) continue;
    uint32_t range =
        kilni_image_ptx_name(reader, reader->buckets[at] - 1)->range;
    if (range == KILNI_PTX_NONE) continue;
    if (member >= range_at(reader, range)->count) continue;
    if (best == KILNI_PTX_NONE ||
        range_at(reader, range)->depth > range_at(reader, best)->depth) {
      best = range;
      *out_member = (uint32_t)member;
    }
  }
  return best;
}

static bool fail_duplicate(kilni_image_ptx_reader_t* reader,
                           const kilni_image_ptx_token_t* at, uint32_t name,
                           uint32_t line) {
  return kilni_image_ptx_fail(
      reader, at, "rename one of the two, or put it into a scope of its own",
      "\"%s\" is declared twice in one scope, first in line %u",
      kilni_image_ptx_text(reader, kilni_image_ptx_name(reader, name)->offset),
      line);
}

bool kilni_image_ptx_bind(kilni_image_ptx_reader_t* reader,
                          const kilni_image_ptx_token_t* at, uint32_t name,
                          uint32_t kind, uint32_t index,
                          kilni_image_ptx_binding_t** out_binding) {
  uint32_t previous = kilni_image_ptx_name(reader, name)->binding;
  if (previous != KILNI_PTX_NONE &&
      binding_at(reader, previous)->depth == reader->depth) {
    return fail_duplicate(reader, at, name, binding_at(reader, previous)->line);
  }
  const kilni_image_ptx_name_t* entry = kilni_image_ptx_name(reader, name);
  kiln_string_view_t text = {kilni_image_ptx_text(reader, entry->offset),
                             entry->size};
  uint32_t member;
  uint32_t range = ptx_scope_find_range(reader, text, &member);
  if (range != KILNI_PTX_NONE &&
      range_at(reader, range)->depth == reader->depth) {
    return fail_duplicate(reader, at, name, range_at(reader, range)->line);
  }
  kilni_image_ptx_binding_t* binding = kilni_image_ptx_push(
      reader, &reader->bindings, 1, "identifiers", reader->limits.identifiers);
  if (binding == NULL) return false;
  binding->name = name;
  binding->kind = kind;
  binding->index = index;
  binding->depth = reader->depth;
  binding->previous = previous;
  binding->line = at->line;
  kilni_image_ptx_name(reader, name)->binding = reader->bindings.count - 1;
  if (out_binding != NULL) *out_binding = binding;
  return true;
}

bool kilni_image_ptx_bind_range(kilni_image_ptx_reader_t* reader,
                                const kilni_image_ptx_token_t* at,
                                uint32_t name, uint32_t count, uint32_t type,
                                uint32_t vector) {
  uint32_t previous = kilni_image_ptx_name(reader, name)->range;
  if (previous != KILNI_PTX_NONE &&
      range_at(reader, previous)->depth == reader->depth) {
    return fail_duplicate(reader, at, name, range_at(reader, previous)->line);
  }
  uint32_t slot = reader->slots.count;
  if (count > 0 &&
      kilni_image_ptx_push(reader, &reader->slots, count, "registers",
                           reader->limits.registers) == NULL) {
    return false;
  }
  kilni_image_ptx_range_t* range = kilni_image_ptx_push(
      reader, &reader->ranges, 1, "registers", reader->limits.registers);
  if (range == NULL) return false;
  range->name = name;
  range->count = count;
  range->first_slot = slot;
  range->depth = reader->depth;
  range->previous = previous;
  range->type = (uint8_t)type;
  range->vector = (uint8_t)vector;
  range->line = at->line;
  kilni_image_ptx_name(reader, name)->range = reader->ranges.count - 1;
  return true;
}

bool kilni_image_ptx_new_register(kilni_image_ptx_reader_t* reader,
                                  uint32_t name, uint32_t type, uint32_t vector,
                                  uint32_t line, uint32_t* out_index) {
  kilni_image_ptx_register_t* reg =
      kilni_image_ptx_push(reader, &reader->arena->registers, 1, "operands",
                           reader->limits.operands);
  if (reg == NULL) return false;
  reg->name_id = name;
  reg->type = (uint8_t)type;
  reg->vector = (uint8_t)vector;
  reg->line = line;
  *out_index = reader->arena->registers.count - 1 - reader->first_register;
  return true;
}

static bool resolve_range(kilni_image_ptx_reader_t* reader,
                          uint32_t range_index, uint32_t member,
                          kiln_string_view_t text, uint32_t* out_index) {
  const kilni_image_ptx_range_t* range = range_at(reader, range_index);
  uint32_t* slot =
      KILNI_PTX_AT(reader->slots, uint32_t, range->first_slot + member);
  if (*slot == 0) {
    uint32_t name;
    uint32_t index;
    if (!kilni_image_ptx_intern(reader, text, &name) ||
        !kilni_image_ptx_new_register(reader, name, range->type, range->vector,
                                      range->line, &index)) {
      return false;
    }
    *slot = index + 1;
  }
  *out_index = *slot - 1;
  return true;
}

static bool resolve_binding(kilni_image_ptx_reader_t* reader,
                            uint32_t binding_index, uint32_t* out_kind,
                            uint32_t* out_index) {
  kilni_image_ptx_binding_t* binding = binding_at(reader, binding_index);
  if (binding->kind == KILNI_PTX_SYMBOL_REGISTER &&
      binding->index == KILNI_PTX_NONE &&
      !kilni_image_ptx_new_register(reader, binding->name, binding->type,
                                    binding->vector, binding->line,
                                    &binding->index)) {
    return false;
  }
  *out_kind = binding->kind;
  *out_index = binding->index;
  return true;
}

bool kilni_image_ptx_resolve(kilni_image_ptx_reader_t* reader,
                             kiln_string_view_t text, uint32_t* out_kind,
                             uint32_t* out_index) {
  *out_kind = KILNI_PTX_SYMBOL_NONE;
  *out_index = KILNI_PTX_NONE;
  size_t at = find_bucket(reader, text, kilni_image_ptx_hash(text));
  uint32_t binding = KILNI_PTX_NONE;
  if (reader->buckets[at] != 0) {
    binding = kilni_image_ptx_name(reader, reader->buckets[at] - 1)->binding;
  }
  uint32_t member = 0;
  uint32_t range = ptx_scope_find_range(reader, text, &member);
  if (range != KILNI_PTX_NONE &&
      (binding == KILNI_PTX_NONE ||
       range_at(reader, range)->depth > binding_at(reader, binding)->depth)) {
    *out_kind = KILNI_PTX_SYMBOL_REGISTER;
    return resolve_range(reader, range, member, text, out_index);
  }
  if (binding != KILNI_PTX_NONE) {
    return resolve_binding(reader, binding, out_kind, out_index);
  }
  if (reader->buckets[at] != 0) {
    const kilni_image_ptx_name_t* name =
        kilni_image_ptx_name(reader, reader->buckets[at] - 1);
    *out_kind = name->global_kind;
    *out_index = name->global_index;
  }
  return true;
}

// ---------------------------------------------------------------------------
// Scopes and labels
// ---------------------------------------------------------------------------

bool kilni_image_ptx_scope_open(kilni_image_ptx_reader_t* reader,
                                uint32_t* out_mark) {
  if (reader->depth >= reader->limits.nesting) {
    return kilni_image_ptx_fail_limit(reader, "nesting",
                                      reader->limits.nesting);
  }
  reader->depth++;
  *out_mark = reader->pending.count;
  return true;
}

bool kilni_image_ptx_pend(kilni_image_ptx_reader_t* reader,
                          const kilni_image_ptx_token_t* at, uint32_t name,
                          bool is_entry, uint32_t index) {
  kilni_image_ptx_pending_t* pending = kilni_image_ptx_push(
      reader, &reader->pending, 1, "operands", reader->limits.operands);
  if (pending == NULL) return false;
  pending->name = name;
  pending->is_entry = is_entry;
  pending->index = index;
  pending->line = at->line;
  pending->column = at->column;
  pending->start = at->start;
  return true;
}

static bool fail_label(kilni_image_ptx_reader_t* reader,
                       const kilni_image_ptx_pending_t* pending,
                       bool is_something) {
  kilni_image_ptx_token_t at;
  memset(&at, 0, sizeof(at));
  at.line = pending->line;
  at.column = pending->column;
  at.start = pending->start;
  return kilni_image_ptx_fail(
      reader, &at, "write the label in this scope or in one around it",
      is_something ? "\"%s\" is not a label" : "the label \"%s\" is not found",
      kilni_image_ptx_text(
          reader, kilni_image_ptx_name(reader, pending->name)->offset));
}

static void set_target(kilni_image_ptx_reader_t* reader,
                       const kilni_image_ptx_pending_t* pending,
                       uint32_t label) {
  if (pending->is_entry) {
    *KILNI_PTX_AT(reader->arena->entries, uint32_t, pending->index) = label;
  } else {
    KILNI_PTX_AT(reader->arena->operands, kilni_image_ptx_operand_t,
                 pending->index)
        ->index = label;
  }
}

// Labels of the scope that ends are known by now; what it does not have is
// left for the scope around it.
static bool settle_labels(kilni_image_ptx_reader_t* reader, uint32_t mark) {
  uint32_t kept = mark;
  for (uint32_t i = mark; i < reader->pending.count; i++) {
    kilni_image_ptx_pending_t* pending =
        KILNI_PTX_AT(reader->pending, kilni_image_ptx_pending_t, i);
    uint32_t index = kilni_image_ptx_name(reader, pending->name)->binding;
    const kilni_image_ptx_binding_t* binding =
        index == KILNI_PTX_NONE ? NULL : binding_at(reader, index);
    if (binding != NULL && binding->depth == reader->depth) {
      if (binding->kind != KILNI_PTX_SYMBOL_LABEL) {
        return fail_label(reader, pending, true);
      }
      set_target(reader, pending, binding->index);
    } else if (reader->depth == 1) {
      return fail_label(reader, pending, false);
    } else {
      *KILNI_PTX_AT(reader->pending, kilni_image_ptx_pending_t, kept) =
          *pending;
      kept++;
    }
  }
  reader->pending.count = kept;
  return true;
}

bool kilni_image_ptx_scope_close(kilni_image_ptx_reader_t* reader,
                                 uint32_t mark) {
  if (!settle_labels(reader, mark)) return false;
  while (reader->bindings.count > 0) {
    kilni_image_ptx_binding_t* last =
        binding_at(reader, reader->bindings.count - 1);
    if (last->depth != reader->depth) break;
    kilni_image_ptx_name(reader, last->name)->binding = last->previous;
    reader->bindings.count--;
  }
  while (reader->ranges.count > 0) {
    kilni_image_ptx_range_t* last = range_at(reader, reader->ranges.count - 1);
    if (last->depth != reader->depth) break;
    kilni_image_ptx_name(reader, last->name)->range = last->previous;
    reader->slots.count = last->first_slot;
    reader->ranges.count--;
  }
  reader->depth--;
  return true;
}
