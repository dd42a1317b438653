// SPDX-License-Identifier: Apache-2.0
//
// compile: what header an #include of a macro may mean.
//
// A text is read from left to right. Each name in it means itself and every
// value that it was ever given, and all combinations are headers that it may
// mean. A name whose value is being read means itself, as in C.
//
// Why that is enough: a header's name is made of its own text, of values that
// some text or option defines, and of values that the compiler itself knows. Of
// the last only names matter that the source does not define and a compiler
// may: those with a leading underscore, and a few old ones.
#include "compile/compile_macro.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"

enum {
  MAX_TEXT_BYTES = 64 << 20,
  MAX_NAME_BYTES = 1024,  // of a header
  MAX_HEADERS = 512,      // that one text may mean
  MAX_VALUES = 512,       // of one name; with more it may mean anything
  MAX_STEPS = 20000,      // of one expansion
  MAX_DEPTH = 200,
};

// One value of one name. one-thread
typedef struct kilni_compile_macro_t {
  size_t name_at;
  size_t name_size;
  size_t value_at;
  size_t value_size;
  uint32_t older;  // index + 1 of another value of the name; 0: none
  bool opaque;
} macro_t;

void kilni_compile_macros_init(kilni_compile_macros_t* macros,
                               kiln_allocator_t allocator) {
  memset(macros, 0, sizeof(*macros));
  macros->allocator = allocator;
  kilni_base_str_init(&macros->text, allocator, MAX_TEXT_BYTES);
}

void kilni_compile_macros_deinit(kilni_compile_macros_t* macros) {
  kilni_base_free_array(macros->allocator, macros->items, macros->capacity,
                        sizeof(macro_t));
  kilni_base_free_array(macros->allocator, macros->slots, macros->slot_count,
                        sizeof(uint32_t));
  kilni_base_str_deinit(&macros->text);
}

// ---- The table ----

static kiln_string_view_t macro_name_of(const kilni_compile_macros_t* macros,
                                        const macro_t* macro) {
  return kilni_base_sv_make(macros->text.data + macro->name_at,
                            macro->name_size);
}

static kiln_string_view_t macro_value_of(const kilni_compile_macros_t* macros,
                                         const macro_t* macro) {
  return kilni_base_sv_make(macros->text.data + macro->value_at,
                            macro->value_size);
}

static uint64_t macro_hash_of(kiln_string_view_t text) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < text.size; i++) {
    hash = (hash ^ (uint8_t)text.data[i]) * UINT64_C(1099511628211);
  }
  return hash;
}

// The slot of a name: empty, or with its last value.
static uint32_t* macro_slot_of(const kilni_compile_macros_t* macros,
                               kiln_string_view_t name) {
  size_t mask = macros->slot_count - 1;
  for (size_t at = (size_t)macro_hash_of(name) & mask;; at = (at + 1) & mask) {
    uint32_t* slot = &macros->slots[at];
    if (*slot == 0 ||
        kilni_base_sv_equal(name,
                            macro_name_of(macros, &macros->items[*slot - 1]))) {
      return slot;
    }
  }
}

static kiln_status_t macro_grow(kilni_compile_macros_t* macros) {
  if (macros->count * 2 < macros->slot_count) return kiln_ok();
  size_t old_count = macros->slot_count;
  uint32_t* old = macros->slots;
  size_t wanted = old_count != 0 ? old_count * 2 : 1024;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(macros->allocator, wanted,
                                               sizeof(uint32_t), &block));
  macros->slots = block;
  macros->slot_count = wanted;
  for (size_t i = 0; i < old_count; i++) {
    if (old[i] == 0) continue;
    *macro_slot_of(macros, macro_name_of(macros, &macros->items[old[i] - 1])) =
        old[i];
  }
  kilni_base_free_array(macros->allocator, old, old_count, sizeof(uint32_t));
  return kiln_ok();
}

// `*out_count` is how many it has, if it lacks this one.
static bool has_value(const kilni_compile_macros_t* macros, uint32_t index,
                      kiln_string_view_t value, uint32_t* out_count) {
  *out_count = 0;
  // After an unknown value no other counts.
  if (index != 0 && macros->items[index - 1].opaque) return true;
  for (; index != 0; index = macros->items[index - 1].older) {
    ++*out_count;
    const macro_t* macro = &macros->items[index - 1];
    if (macro->opaque != (value.data == NULL)) continue;
    if (macro->opaque ||
        kilni_base_sv_equal(value, macro_value_of(macros, macro))) {
      return true;
    }
  }
  return false;
}

kiln_status_t kilni_compile_macros_add(kilni_compile_macros_t* macros,
                                       kiln_string_view_t name,
                                       kiln_string_view_t value) {
  KILNI_RETURN_IF_ERROR(macro_grow(macros));
  uint32_t* slot = macro_slot_of(macros, name);
  uint32_t count = 0;
  if (has_value(macros, *slot, value, &count)) return kiln_ok();
  if (count >= MAX_VALUES) value = kilni_base_sv_make(NULL, 0);
  macro_t macro = {0, name.size, 0, value.size, *slot, value.data == NULL};
  if (*slot != 0) {
    macro.name_at = macros->items[*slot - 1].name_at;
  } else {
    macro.name_at = macros->text.size;
    kilni_base_str_add(&macros->text, name);
  }
  macro.value_at = macros->text.size;
  if (value.data != NULL) kilni_base_str_add(&macros->text, value);
  KILNI_RETURN_IF_ERROR(kilni_base_str_status(&macros->text));
  void* items = macros->items;
  kiln_status_t status =
      kilni_base_grow(macros->allocator, macros->count + 1, sizeof(macro_t),
                      &macros->capacity, &items);
  macros->items = items;
  KILNI_RETURN_IF_ERROR(status);
  macros->items[macros->count++] = macro;
  *slot = (uint32_t)macros->count;
  return kiln_ok();
}

bool kilni_compile_macros_has(const kilni_compile_macros_t* macros,
                              kiln_string_view_t name) {
  return macros->slot_count != 0 && *macro_slot_of(macros, name) != 0;
}

kiln_status_t kilni_compile_macros_add_option(kilni_compile_macros_t* macros,
                                              const char* define) {
  const char* equal = strchr(define, '=');
  kiln_string_view_t name = kilni_base_sv(define);
  kiln_string_view_t value = kilni_base_sv("1");
  if (equal != NULL) {
    name.size = (size_t)(equal - define);
    value = kilni_base_sv(equal + 1);
  }
  // One that takes arguments is not a part of a header's name.
  if (name.size == 0 || memchr(name.data, '(', name.size) != NULL) {
    return kiln_ok();
  }
  if (!kilni_compile_scan_is_plain(value)) value.data = NULL;
  return kilni_compile_macros_add(macros, name, value);
}

// ---- Expanding ----

// A text being read, and the name whose value it is. one-thread
typedef struct frame_t {
  kiln_string_view_t rest;
  kiln_string_view_t name;
  const struct frame_t* below;
} frame_t;

// An expansion. one-thread
typedef struct expand_t {
  const kilni_compile_macros_t* macros;
  kiln_status_t (*fn)(void* user, const kilni_compile_scan_found_t* found);
  void* user;
  kiln_status_t status;
  uint32_t steps;
  uint32_t headers;
  bool all;
  char out[MAX_NAME_BYTES];
} expand_t;

static bool macro_give_up(expand_t* expand) {
  expand->all = false;
  return false;
}

static bool macro_emit(expand_t* expand, size_t size) {
  const char* out = expand->out;
  // The compiler refuses what is not a header's name.
  if (size < 3) return true;
  char close = out[0] == '<' ? '>' : '"';
  if ((out[0] != '<' && out[0] != '"') || out[size - 1] != close) return true;
  if (memchr(out + 1, close, size - 2) != NULL) return true;
  if (++expand->headers > MAX_HEADERS) return macro_give_up(expand);
  kilni_compile_scan_found_t found = {0};
  found.kind = close == '"' ? KILNI_SCAN_QUOTE : KILNI_SCAN_ANGLE;
  found.name = kilni_base_sv_make(out + 1, size - 2);
  expand->status = expand->fn(expand->user, &found);
  return kiln_status_is_ok(expand->status);
}

static bool macro_put(expand_t* expand, size_t* inout_size,
                      kiln_string_view_t text) {
  if (text.size > sizeof(expand->out) - *inout_size) {
    return macro_give_up(expand);
  }
  memcpy(expand->out + *inout_size, text.data, text.size);
  *inout_size += text.size;
  return true;
}

static bool macro_is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A name, a number, a literal, or one character.
static kiln_string_view_t token_of(kiln_string_view_t text) {
  size_t size = 1;
  char first = text.data[0];
  if (first == '"') {
    while (size < text.size && text.data[size] != '"') size++;
    if (size < text.size) size++;
  } else if (kilni_compile_scan_is_word(first) || macro_is_digit(first)) {
    while (size < text.size && (kilni_compile_scan_is_word(text.data[size]) ||
                                macro_is_digit(text.data[size]))) {
      size++;
    }
  }
  return kilni_base_sv_make(text.data, size);
}

// A name that a compiler may have defined before anybody else.
static bool is_compilers(kiln_string_view_t word) {
  return word.data[0] == '_' || kilni_base_sv_equal_cstr(word, "linux") ||
         kilni_base_sv_equal_cstr(word, "unix") ||
         kilni_base_sv_equal_cstr(word, "i386");
}

static bool is_active(const frame_t* frame, kiln_string_view_t word) {
  for (; frame != NULL; frame = frame->below) {
    if (kilni_base_sv_equal(frame->name, word)) return true;
  }
  return false;
}

static bool macro_walk(expand_t* expand, frame_t top, size_t size,
                       uint32_t depth);

// All that a name may mean, each followed by the rest.
static bool walk_word(expand_t* expand, const frame_t* after,
                      kiln_string_view_t word, size_t size, uint32_t depth) {
  const kilni_compile_macros_t* macros = expand->macros;
  uint32_t index = macros->slot_count != 0 ? *macro_slot_of(macros, word) : 0;
  if (index == 0 && is_compilers(word)) return macro_give_up(expand);
  size_t itself = size;
  if (!macro_put(expand, &itself, word) ||
      !macro_walk(expand, *after, itself, depth + 1)) {
    return false;
  }
  if (is_active(after, word)) return true;
  for (; index != 0; index = macros->items[index - 1].older) {
    const macro_t* macro = &macros->items[index - 1];
    if (macro->opaque) return macro_give_up(expand);
    frame_t inner = {macro_value_of(macros, macro), word, after};
    if (!macro_walk(expand, inner, size, depth + 1)) return false;
  }
  return true;
}

// False ends the expansion.
static bool macro_walk(expand_t* expand, frame_t top, size_t size,
                       uint32_t depth) {
  if (depth > MAX_DEPTH || ++expand->steps > MAX_STEPS) {
    return macro_give_up(expand);
  }
  for (;;) {
    while (top.rest.size == 0) {
      if (top.below == NULL) return macro_emit(expand, size);
      top = *top.below;
    }
    kiln_string_view_t token = token_of(top.rest);
    top.rest.data += token.size;
    top.rest.size -= token.size;
    if (kilni_compile_scan_is_word(token.data[0])) {
      return walk_word(expand, &top, token, size, depth);
    }
    if (!macro_put(expand, &size, token)) return false;
  }
}

kiln_status_t kilni_compile_macros_expand(
    const kilni_compile_macros_t* macros, kiln_string_view_t text,
    kiln_status_t (*fn)(void* user, const kilni_compile_scan_found_t* found),
    void* user, bool* out_all) {
  expand_t expand = {.macros = macros, .fn = fn, .user = user, .all = true};
  frame_t top = {text, {NULL, 0}, NULL};
  *out_all = false;
  if (!kilni_compile_scan_is_plain(text)) return kiln_ok();
  (void)macro_walk(&expand, top, 0, 0);
  *out_all = expand.all;
  return expand.status;
}
